#include "plan/expr.h"

#include <atomic>
#include <unordered_map>

#include "plan/deferred_drop_internal.h"
#include "plan/external.h"
#include "plan/logical_plan.h"

namespace fleuve::plan {

thread_local DeferredDrop* DeferredDrop::active_ = nullptr;

AttributeId NewAttributeId() {
  static std::atomic<std::int64_t> next{1};
  return AttributeId(next.fetch_add(1, std::memory_order_relaxed));
}

Expr::~Expr() {
  if (children.empty() && subquery == nullptr && filter == nullptr && order_by.empty() && window.partition_by.empty() &&
      window.order_by.empty()) {
    return;
  }
  DeferredDrop drop;
  for (ExprPtr& child : children) {
    drop.Take(child);
  }
  drop.Take(subquery);
  drop.Take(filter);
  for (SortKey& key : order_by) {
    drop.Take(key.expr);
  }
  for (ExprPtr& expr : window.partition_by) {
    drop.Take(expr);
  }
  for (SortKey& key : window.order_by) {
    drop.Take(key.expr);
  }
}

namespace {

void TakeOverFlags(Expr& expr, const std::vector<ExprPtr>& operands) {
  for (const ExprPtr& operand : operands) {
    expr.can_fail = expr.can_fail || operand->can_fail;
    expr.deterministic = expr.deterministic && operand->deterministic;
  }
}

bool SameFrameBound(const WindowFrame::Bound& a, const WindowFrame::Bound& b) {
  return a.kind == b.kind && (a.offset == nullptr) == (b.offset == nullptr);
}

bool SameSortFlags(const std::vector<SortKey>& a, const std::vector<SortKey>& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].ascending != b[i].ascending || a[i].nulls_first != b[i].nulls_first) {
      return false;
    }
  }
  return true;
}

bool SameFunction(const Expr& a, const Expr& b) {
  if (a.external == nullptr || b.external == nullptr) {
    return a.external == b.external;
  }
  return a.external->Same(*b.external) && a.argument_names == b.argument_names;
}

/// Everything but the operands.
bool SameNode(const Expr& a, const Expr& b) {
  if (a.kind != b.kind || a.children.size() != b.children.size() || !(a.type == b.type)) {
    return false;
  }
  switch (a.kind) {
    case ExprKind::kLiteral:
      return a.value == b.value;
    case ExprKind::kAttribute:
    case ExprKind::kLambdaVariable:
      return a.attribute.id == b.attribute.id && a.is_outer == b.is_outer;
    case ExprKind::kCall:
      return a.function == b.function && a.ignore_nulls == b.ignore_nulls && a.deterministic == b.deterministic &&
             SameFunction(a, b);
    case ExprKind::kCast:
      return a.cast_mode == b.cast_mode && a.zone == b.zone;
    case ExprKind::kCase:
      return a.has_else == b.has_else;
    case ExprKind::kGetField:
      return a.ordinal == b.ordinal;
    case ExprKind::kLambda: {
      if (a.parameters.size() != b.parameters.size()) {
        return false;
      }
      for (std::size_t i = 0; i < a.parameters.size(); ++i) {
        if (a.parameters[i].id != b.parameters[i].id) {
          return false;
        }
      }
      return true;
    }
    case ExprKind::kAggregate:
      return a.function == b.function && a.distinct == b.distinct && a.ignore_nulls == b.ignore_nulls &&
             (a.filter == nullptr) == (b.filter == nullptr) && SameSortFlags(a.order_by, b.order_by) &&
             SameFunction(a, b);
    case ExprKind::kWindow:
      return a.window.partition_by.size() == b.window.partition_by.size() &&
             SameSortFlags(a.window.order_by, b.window.order_by) && a.window.frame.unit == b.window.frame.unit &&
             SameFrameBound(a.window.frame.lower, b.window.frame.lower) &&
             SameFrameBound(a.window.frame.upper, b.window.frame.upper);
    case ExprKind::kSubquery:
      return a.subquery == b.subquery && a.subquery_kind == b.subquery_kind;
  }
  return false;
}

}  // namespace

ExprPtr MakeLiteral(types::Value value, types::DataType type) {
  auto expr = std::make_shared<Expr>();
  expr->kind = ExprKind::kLiteral;
  expr->display = LiteralDisplay(value, type, "UTC");
  expr->nullable = value.is_null();
  expr->value = std::move(value);
  expr->type = std::move(type);
  return expr;
}

ExprPtr MakeNull(types::DataType type) { return MakeLiteral(types::Value(), std::move(type)); }

ExprPtr MakeAttribute(const Attribute& attribute) {
  auto expr = std::make_shared<Expr>();
  expr->kind = ExprKind::kAttribute;
  expr->type = attribute.type;
  expr->nullable = attribute.nullable;
  expr->display = attribute.name;
  expr->attribute = attribute;
  return expr;
}

ExprPtr MakeCall(std::string function, std::vector<ExprPtr> children, types::DataType type, bool nullable,
                 bool can_fail, bool deterministic) {
  auto expr = std::make_shared<Expr>();
  expr->kind = ExprKind::kCall;
  expr->function = std::move(function);
  expr->type = std::move(type);
  expr->nullable = nullable;
  expr->can_fail = can_fail;
  expr->deterministic = deterministic;
  expr->children = std::move(children);
  TakeOverFlags(*expr, expr->children);
  return expr;
}

ExprPtr MakeCase(std::vector<ExprPtr> children, bool has_else, types::DataType type) {
  auto expr = std::make_shared<Expr>();
  expr->kind = ExprKind::kCase;
  expr->type = std::move(type);
  expr->has_else = has_else;
  expr->nullable = !has_else;
  for (std::size_t i = 1; i < children.size(); i += 2) {
    expr->nullable = expr->nullable || children[i]->nullable;
  }
  if (has_else) {
    expr->nullable = expr->nullable || children.back()->nullable;
  }
  expr->children = std::move(children);
  TakeOverFlags(*expr, expr->children);
  return expr;
}

ExprPtr MakeAnd(ExprPtr a, ExprPtr b) {
  std::string display = "(" + a->display + " AND " + b->display + ")";
  const bool nullable = a->nullable || b->nullable;
  ExprPtr made = MakeCall("and", {std::move(a), std::move(b)}, types::DataType::Boolean(), nullable);
  return WithDisplay(made, std::move(display));
}

ExprPtr MakeGetField(ExprPtr child, int ordinal) {
  auto expr = std::make_shared<Expr>();
  expr->kind = ExprKind::kGetField;
  const types::StructField& field = child->type.fields().at(static_cast<std::size_t>(ordinal));
  expr->type = field.type;
  expr->nullable = child->nullable || field.nullable;
  expr->ordinal = ordinal;
  expr->display = child->display + "." + field.name;
  expr->children.push_back(std::move(child));
  TakeOverFlags(*expr, expr->children);
  return expr;
}

ExprPtr WithDisplay(const ExprPtr& expr, std::string display) {
  auto copy = std::make_shared<Expr>(*expr);
  copy->display = std::move(display);
  return copy;
}

ExprPtr WithChildren(const ExprPtr& expr, std::vector<ExprPtr> children) {
  auto copy = std::make_shared<Expr>(*expr);
  copy->children = std::move(children);
  TakeOverFlags(*copy, copy->children);
  return copy;
}

std::vector<ExprPtr> OperandsOf(const Expr& expr) {
  std::vector<ExprPtr> operands = expr.children;
  if (expr.filter != nullptr) {
    operands.push_back(expr.filter);
  }
  for (const SortKey& key : expr.order_by) {
    operands.push_back(key.expr);
  }
  for (const ExprPtr& part : expr.window.partition_by) {
    operands.push_back(part);
  }
  for (const SortKey& key : expr.window.order_by) {
    operands.push_back(key.expr);
  }
  if (expr.window.frame.lower.offset != nullptr) {
    operands.push_back(expr.window.frame.lower.offset);
  }
  if (expr.window.frame.upper.offset != nullptr) {
    operands.push_back(expr.window.frame.upper.offset);
  }
  return operands;
}

ExprPtr WithOperands(const ExprPtr& expr, const std::vector<ExprPtr>& operands) {
  auto copy = std::make_shared<Expr>(*expr);
  std::size_t next = 0;
  for (ExprPtr& child : copy->children) {
    child = operands.at(next++);
  }
  if (copy->filter != nullptr) {
    copy->filter = operands.at(next++);
  }
  for (SortKey& key : copy->order_by) {
    key.expr = operands.at(next++);
  }
  for (ExprPtr& part : copy->window.partition_by) {
    part = operands.at(next++);
  }
  for (SortKey& key : copy->window.order_by) {
    key.expr = operands.at(next++);
  }
  if (copy->window.frame.lower.offset != nullptr) {
    copy->window.frame.lower.offset = operands.at(next++);
  }
  if (copy->window.frame.upper.offset != nullptr) {
    copy->window.frame.upper.offset = operands.at(next++);
  }
  TakeOverFlags(*copy, operands);
  return copy;
}

bool SameExpr(const ExprPtr& a, const ExprPtr& b) {
  std::vector<std::pair<ExprPtr, ExprPtr>> pending{{a, b}};
  while (!pending.empty()) {
    auto [left, right] = std::move(pending.back());
    pending.pop_back();
    if (left == right) {
      continue;
    }
    if (left == nullptr || right == nullptr || !SameNode(*left, *right)) {
      return false;
    }
    std::vector<ExprPtr> left_operands = OperandsOf(*left);
    std::vector<ExprPtr> right_operands = OperandsOf(*right);
    if (left_operands.size() != right_operands.size()) {
      return false;
    }
    for (std::size_t i = 0; i < left_operands.size(); ++i) {
      pending.emplace_back(std::move(left_operands[i]), std::move(right_operands[i]));
    }
  }
  return true;
}

namespace {

/// Most expressions of wide plans are bare columns: they need no list of what is to be visited.
bool IsLeaf(const Expr& expr) { return expr.kind == ExprKind::kAttribute || expr.kind == ExprKind::kLiteral; }

}  // namespace

void VisitExpr(const ExprPtr& expr, const std::function<void(const Expr&)>& visit) {
  if (expr != nullptr && IsLeaf(*expr)) {
    visit(*expr);
    return;
  }
  std::vector<ExprPtr> pending{expr};
  while (!pending.empty()) {
    const ExprPtr node = std::move(pending.back());
    pending.pop_back();
    if (node == nullptr) {
      continue;
    }
    visit(*node);
    std::vector<ExprPtr> operands = OperandsOf(*node);
    for (std::size_t i = operands.size(); i > 0; --i) {
      pending.push_back(std::move(operands[i - 1]));
    }
  }
}

bool AnyExpr(const ExprPtr& expr, const std::function<bool(const Expr&)>& test) {
  if (expr != nullptr && IsLeaf(*expr)) {
    return test(*expr);
  }
  std::vector<ExprPtr> pending{expr};
  while (!pending.empty()) {
    const ExprPtr node = std::move(pending.back());
    pending.pop_back();
    if (node == nullptr) {
      continue;
    }
    if (test(*node)) {
      return true;
    }
    std::vector<ExprPtr> operands = OperandsOf(*node);
    std::move(operands.begin(), operands.end(), std::back_inserter(pending));
  }
  return false;
}

ExprPtr RewriteExpr(const ExprPtr& expr, const std::function<ExprPtr(const ExprPtr&)>& rewrite) {
  struct Frame {
    ExprPtr node;
    std::vector<ExprPtr> operands;
    std::size_t next = 0;
    bool changed = false;
  };
  std::unordered_map<const Expr*, ExprPtr> done;
  std::vector<Frame> stack;
  stack.push_back(Frame{expr, OperandsOf(*expr)});
  ExprPtr result;
  while (true) {
    Frame& top = stack.back();
    if (top.next < top.operands.size()) {
      const ExprPtr& operand = top.operands[top.next];
      const auto found = operand.use_count() > 2 ? done.find(operand.get()) : done.end();
      if (found == done.end()) {
        stack.push_back(Frame{operand, OperandsOf(*operand)});
        continue;
      }
      top.changed = top.changed || found->second != operand;
      top.operands[top.next] = found->second;
      ++top.next;
      continue;
    }
    ExprPtr rebuilt = top.changed ? WithOperands(top.node, top.operands) : top.node;
    if (ExprPtr replacement = rewrite(rebuilt)) {
      rebuilt = std::move(replacement);
    }
    done.emplace(top.node.get(), rebuilt);
    const ExprPtr original = std::move(top.node);
    stack.pop_back();
    if (stack.empty()) {
      result = std::move(rebuilt);
      break;
    }
    Frame& parent = stack.back();
    parent.changed = parent.changed || rebuilt != original;
    parent.operands[parent.next] = std::move(rebuilt);
    ++parent.next;
  }
  return result;
}

}  // namespace fleuve::plan
