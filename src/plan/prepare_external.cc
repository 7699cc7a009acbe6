// Cuts plans where functions of the user stand: their calls become columns of operators of their own, evaluated for
// every row that reaches the node that held them.

#include <algorithm>

#include "plan/external.h"
#include "plan/function_builder.h"
#include "plan/prepare_internal.h"

namespace fleuve::plan {
namespace {

using types::DataType;

/// The name of a sort that only brings the rows of each group together.
constexpr const char* kSortedMark = "groups";

bool IsScalarCall(const Expr& expr) { return expr.kind == ExprKind::kCall && expr.external != nullptr; }
bool IsUserAggregate(const Expr& expr) { return expr.kind == ExprKind::kAggregate && expr.external != nullptr; }
bool HasScalarCall(const ExprPtr& expr) { return AnyExpr(expr, IsScalarCall); }
bool IsOuter(const Expr& expr) { return expr.kind == ExprKind::kAttribute && expr.is_outer; }

/// A call that is made of the result of another one inside the worker.
bool IsChained(const Expr& call) {
  return call.children.size() == 1 && call.argument_names.empty() && IsScalarCall(*call.children.front()) &&
         call.external->call_kind() == ExternalCallKind::kScalar &&
         call.children.front()->external->eval_type == call.external->eval_type;
}

/// True where the arguments hold no call that has to be evaluated first.
bool IsReady(const Expr& call) {
  const Expr* at = &call;
  while (IsChained(*at)) {
    at = at->children.front().get();
  }
  return std::none_of(at->children.begin(), at->children.end(),
                      [](const ExprPtr& child) { return HasScalarCall(child); });
}

bool OnlyOver(const ExprPtr& expr, const Ids& ids) {
  return !AnyExpr(expr, [&ids](const Expr& node) {
    return node.kind == ExprKind::kAttribute && (node.is_outer || !ids.contains(node.attribute.id.value));
  });
}

Attribute Column(const ExprPtr& expr, std::string name) {
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = std::move(name);
  attribute.type = expr->type;
  attribute.nullable = expr->nullable;
  attribute.hidden = true;
  return attribute;
}

/// Calls that are ready, outermost first, each once.
void Collect(const ExprPtr& expr, const Ids* within, std::vector<ExprPtr>& calls) {
  if (!HasScalarCall(expr)) {
    return;
  }
  if (IsScalarCall(*expr) && IsReady(*expr)) {
    if (AnyExpr(expr, IsOuter) || (within != nullptr && !OnlyOver(expr, *within))) {
      return;
    }
    for (const ExprPtr& known : calls) {
      if (known == expr || (expr->deterministic && SameExpr(known, expr))) {
        return;
      }
    }
    calls.push_back(expr);
    return;
  }
  for (const ExprPtr& operand : OperandsOf(*expr)) {
    Collect(operand, within, calls);
  }
}

struct Replaced {
  ExprPtr call;
  Attribute column;
};

ExprPtr Replace(const ExprPtr& expr, const std::vector<Replaced>& replaced) {
  if (!HasScalarCall(expr)) {
    return expr;
  }
  if (IsScalarCall(*expr)) {
    for (const Replaced& entry : replaced) {
      if (entry.call == expr || (expr->deterministic && SameExpr(entry.call, expr))) {
        return WithDisplay(MakeAttribute(entry.column), expr->display);
      }
    }
  }
  std::vector<ExprPtr> operands = OperandsOf(*expr);
  bool changed = false;
  for (ExprPtr& operand : operands) {
    ExprPtr made = Replace(operand, replaced);
    changed = changed || made != operand;
    operand = std::move(made);
  }
  return changed ? WithOperands(expr, operands) : expr;
}

/// Adds a call to an operator; its arguments to the operator's expressions, each once.
void AddCall(const ExprPtr& expr, ExternalOperator& op, std::vector<ExprPtr>& exprs) {
  ExternalCall call;
  const Expr* at = expr.get();
  while (IsScalarCall(*at) && IsChained(*at)) {
    call.chain.push_back(at->external);
    at = at->children.front().get();
  }
  call.chain.push_back(at->external);
  std::reverse(call.chain.begin(), call.chain.end());
  for (const ExprPtr& argument : at->children) {
    std::size_t i = 0;
    while (i < exprs.size() && !(argument->deterministic && SameExpr(exprs[i], argument))) {
      ++i;
    }
    if (i == exprs.size()) {
      exprs.push_back(argument);
    }
    call.arguments.push_back(static_cast<int>(i));
  }
  call.argument_names = at->argument_names;
  if (call.argument_names.empty()) {
    call.argument_names.resize(call.arguments.size());
  }
  op.calls.push_back(std::move(call));
}

/// The child with one more column for each call. Functions over iterators have an operator of their own.
PlanPtr Evaluate(PlanPtr child, const std::vector<ExprPtr>& calls, std::vector<Replaced>& replaced) {
  std::size_t next = 0;
  while (next < calls.size()) {
    auto op = std::make_shared<ExternalOperator>();
    op->kind = ExternalKind::kEvaluate;
    op->context = calls[next]->external->context;
    auto plan = std::make_shared<LogicalPlan>();
    plan->kind = PlanKind::kExternal;
    plan->is_streaming = child->is_streaming;
    plan->output = child->output;
    const std::size_t first = next;
    for (; next < calls.size(); ++next) {
      const bool iterates = calls[next]->external->call_kind() == ExternalCallKind::kScalarIter;
      if (next > first && (iterates || calls[first]->external->call_kind() == ExternalCallKind::kScalarIter)) {
        break;
      }
      AddCall(calls[next], *op, plan->exprs);
      Attribute column = Column(calls[next], calls[next]->external->name);
      plan->output.push_back(column);
      replaced.push_back(Replaced{calls[next], std::move(column)});
    }
    // What depends on the position of rows is a projection's work.
    const bool plain =
        std::all_of(plan->exprs.begin(), plan->exprs.end(), [](const ExprPtr& expr) { return expr->deterministic; });
    if (!plain) {
      std::vector<ExprPtr> exprs;
      std::vector<Attribute> output = child->output;
      for (const Attribute& attribute : child->output) {
        exprs.push_back(MakeAttribute(attribute));
      }
      for (ExprPtr& expr : plan->exprs) {
        if (!expr->deterministic) {
          Attribute column = Column(expr, "argument");
          exprs.push_back(expr);
          output.push_back(column);
          expr = MakeAttribute(column);
        }
      }
      child = MakeProject(child, std::move(exprs), std::move(output));
    }
    plan->external = std::move(op);
    plan->children.push_back(std::move(child));
    child = std::move(plan);
  }
  return child;
}

bool PassesInput(PlanKind kind) {
  switch (kind) {
    case PlanKind::kFilter:
    case PlanKind::kSort:
    case PlanKind::kWindow:
    case PlanKind::kGenerate:
    case PlanKind::kRepartition:
    case PlanKind::kMetrics:
      return true;
    default:
      return false;
  }
}

PlanPtr Restore(PlanPtr plan, const std::vector<Attribute>& output) {
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : output) {
    exprs.push_back(MakeAttribute(attribute));
  }
  return MakeProject(std::move(plan), std::move(exprs), output);
}

/// A node over one child, the calls in its expressions evaluated below it.
PlanPtr CutNode(PlanPtr node) {
  const std::vector<Attribute> output = node->output;
  bool changed = false;
  while (true) {
    std::vector<ExprPtr> calls;
    for (const ExprPtr& expr : ExpressionsOf(*node)) {
      Collect(expr, nullptr, calls);
    }
    if (calls.empty()) {
      break;
    }
    changed = true;
    std::vector<Replaced> replaced;
    const PlanPtr child = node->children.front();
    PlanPtr below = Evaluate(child, calls, replaced);
    auto copy = std::make_shared<LogicalPlan>(
        *MapExpressions(node, [&replaced](const ExprPtr& expr) { return Replace(expr, replaced); }));
    if (PassesInput(copy->kind)) {
      const auto own = static_cast<std::ptrdiff_t>(copy->output.size() - child->output.size());
      std::vector<Attribute> columns = below->output;
      columns.insert(columns.end(), copy->output.end() - own, copy->output.end());
      copy->output = std::move(columns);
    }
    copy->children.front() = std::move(below);
    node = std::move(copy);
  }
  return changed && PassesInput(node->kind) ? Restore(std::move(node), output) : node;
}

PlanPtr CutFilter(const PlanPtr& node) {
  std::vector<ExprPtr> first;
  std::vector<ExprPtr> rest;
  for (const ExprPtr& conjunct : Flatten(node->condition, "and")) {
    (conjunct->deterministic && !HasScalarCall(conjunct) ? first : rest).push_back(conjunct);
  }
  PlanPtr child = node->children.front();
  if (!first.empty()) {
    child = MakeFilter(child, Balanced(first, "and"));
  }
  return CutNode(MakeFilter(child, Balanced(rest, "and")));
}

const char* JoinTypeName(JoinType type) {
  switch (type) {
    case JoinType::kInner:
      return "INNER";
    case JoinType::kLeft:
      return "LEFT OUTER";
    case JoinType::kRight:
      return "RIGHT OUTER";
    case JoinType::kFull:
      return "FULL OUTER";
    case JoinType::kLeftSemi:
      return "LEFT SEMI";
    case JoinType::kLeftAnti:
      return "LEFT ANTI";
    case JoinType::kCross:
      return "CROSS";
  }
  return "";
}

Result<PlanPtr> CutJoin(const PlanPtr& node) {
  const std::vector<Attribute> output = node->output;
  std::vector<ExprPtr> kept;
  std::vector<ExprPtr> above;
  const Ids sides[2] = {IdsOf(node->children[0]->output), IdsOf(node->children[1]->output)};
  for (const ExprPtr& conjunct : Flatten(node->condition, "and")) {
    const bool both = AnyExpr(conjunct, [&sides](const Expr& part) {
      if (!IsScalarCall(part)) {
        return false;
      }
      const ExprPtr call = std::make_shared<Expr>(part);
      return !OnlyOver(call, sides[0]) && !OnlyOver(call, sides[1]);
    });
    (both ? above : kept).push_back(conjunct);
  }
  if (!above.empty() && node->join_type != JoinType::kInner && node->join_type != JoinType::kCross) {
    const std::string type = JoinTypeName(node->join_type);
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.PYTHON_UDF_IN_ON_CLAUSE",
                 "The feature is not supported: Python UDF in the ON clause of a " + type +
                     " JOIN. In case of an INNER JOIN consider rewriting to a CROSS JOIN with a WHERE clause.")
        .With("joinType", type);
  }
  auto join = std::make_shared<LogicalPlan>(*node);
  join->condition = kept.empty() ? nullptr : Balanced(kept, "and");
  if (join->condition == nullptr) {
    join->join_type = JoinType::kCross;
  }
  bool changed = !above.empty();
  for (std::size_t side = 0; side < 2; ++side) {
    while (join->condition != nullptr) {
      std::vector<ExprPtr> calls;
      const Ids ids = IdsOf(join->children[side]->output);
      Collect(join->condition, &ids, calls);
      if (calls.empty()) {
        break;
      }
      changed = true;
      std::vector<Replaced> replaced;
      join->children[side] = Evaluate(join->children[side], calls, replaced);
      join->condition = Replace(join->condition, replaced);
    }
  }
  if (!changed) {
    return node;
  }
  if (join->join_type != JoinType::kLeftSemi && join->join_type != JoinType::kLeftAnti) {
    // The columns of the two sides keep what the join says of them.
    std::vector<Attribute> columns;
    for (const PlanPtr& child : join->children) {
      for (const Attribute& attribute : child->output) {
        const auto known = std::find_if(output.begin(), output.end(),
                                        [&](const Attribute& other) { return other.id == attribute.id; });
        columns.push_back(known == output.end() ? attribute : *known);
      }
    }
    join->output = std::move(columns);
  } else {
    join->output = join->children[0]->output;
  }
  PlanPtr made = std::move(join);
  if (!above.empty()) {
    made = CutNode(MakeFilter(made, Balanced(above, "and")));
  }
  return Restore(std::move(made), output);
}

/// Sorted by `keys`, then by `order`.
PlanPtr Sorted(PlanPtr input, const std::vector<ExprPtr>& keys, const std::vector<SortKey>& order) {
  if (keys.empty() && order.empty()) {
    return input;
  }
  auto sort = std::make_shared<LogicalPlan>();
  sort->kind = PlanKind::kSort;
  sort->name = kSortedMark;
  sort->is_streaming = input->is_streaming;
  sort->output = input->output;
  for (const ExprPtr& key : keys) {
    SortKey sort_key;
    sort_key.expr = key;
    sort->order_by.push_back(std::move(sort_key));
  }
  sort->order_by.insert(sort->order_by.end(), order.begin(), order.end());
  sort->children.push_back(std::move(input));
  return sort;
}

/// A plain aggregate whose functions are all the user's: groups as runs of sorted rows.
Result<PlanPtr> CutAggregate(const PlanPtr& node) {
  std::string names;
  for (const ExprPtr& expr : node->aggregates) {
    if (expr->external != nullptr) {
      names += (names.empty() ? "" : ", ") + ("\"" + expr->external->name + "\"");
    }
  }
  for (const ExprPtr& expr : node->aggregates) {
    if (!IsUserAggregate(*expr)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PANDAS_UDF_PLACEMENT",
                   "The group aggregate pandas UDF " + names +
                       " cannot be invoked together with as other, non-pandas aggregate functions.")
          .With("functionList", names);
    }
    if (expr->filter != nullptr || expr->distinct || !expr->order_by.empty()) {
      return Error::Unsupported("FILTER, DISTINCT or an order of rows with the aggregate function " +
                                expr->external->name);
    }
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kExternal;
  plan->is_streaming = node->is_streaming;
  plan->output = node->output;
  auto op = std::make_shared<ExternalOperator>();
  op->kind = ExternalKind::kAggregate;
  op->context = node->aggregates.front()->external->context;
  for (const ExprPtr& key : node->grouping) {
    Attribute column = Column(key, key->display);
    plan->grouping.push_back(MakeAttribute(column));
    exprs.push_back(key);
    output.push_back(std::move(column));
  }
  for (const ExprPtr& expr : node->aggregates) {
    AddCall(expr, *op, plan->exprs);
  }
  for (ExprPtr& argument : plan->exprs) {
    Attribute column = Column(argument, argument->display);
    exprs.push_back(argument);
    argument = MakeAttribute(column);
    output.push_back(std::move(column));
  }
  if (exprs.empty()) {
    exprs.push_back(MakeLiteral(types::Value(0), DataType::Int()));
    output.push_back(Column(exprs.back(), "row"));
  }
  plan->external = std::move(op);
  PlanPtr below = CutNode(MakeProject(node->children.front(), std::move(exprs), std::move(output)));
  plan->children.push_back(Sorted(std::move(below), plan->grouping, {}));
  return PlanPtr(std::move(plan));
}

bool SameKeys(const WindowSpec& a, const WindowSpec& b) {
  if (a.partition_by.size() != b.partition_by.size() || a.order_by.size() != b.order_by.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.partition_by.size(); ++i) {
    if (!SameExpr(a.partition_by[i], b.partition_by[i])) {
      return false;
    }
  }
  for (std::size_t i = 0; i < a.order_by.size(); ++i) {
    if (!SameExpr(a.order_by[i].expr, b.order_by[i].expr) || a.order_by[i].ascending != b.order_by[i].ascending ||
        a.order_by[i].nulls_first != b.order_by[i].nulls_first) {
      return false;
    }
  }
  return true;
}

ExprPtr Over(const ExprPtr& function, WindowSpec spec) {
  auto made = std::make_shared<Expr>();
  made->kind = ExprKind::kWindow;
  made->type = function->type;
  made->nullable = function->nullable;
  made->display = function->display;
  made->window = std::move(spec);
  made->children.push_back(function);
  return made;
}

/// Windows of one partitioning and order whose functions are the user's. The bounds of a frame are counted by windows
/// of the engine: the rows up to its end, and the rows in it.
Result<PlanPtr> CutWindows(PlanPtr input, const std::vector<ExprPtr>& windows, const std::vector<Attribute>& columns,
                           const AnalysisConfig& config) {
  WindowSpec spec = windows.front()->window;
  spec.frame.unit = WindowFrame::Unit::kRows;
  spec.frame.lower.kind = WindowFrame::BoundKind::kUnboundedPreceding;
  spec.frame.upper.kind = WindowFrame::BoundKind::kCurrentRow;
  spec.frame.lower.offset = nullptr;
  spec.frame.upper.offset = nullptr;
  auto counts = std::make_shared<LogicalPlan>();
  counts->kind = PlanKind::kWindow;
  counts->is_streaming = input->is_streaming;
  counts->output = input->output;
  const auto add_window = [&counts](const ExprPtr& window) {
    Attribute column = Column(window, window->display);
    counts->exprs.push_back(window);
    counts->output.push_back(column);
    return MakeAttribute(column);
  };
  FunctionCall call;
  call.config = &config;
  call.name = "count";
  call.arguments = {MakeLiteral(types::Value(1), DataType::Int())};
  call.argument_names.resize(1);
  FLEUVE_ASSIGN(const ExprPtr count, BuildFunction(call));
  call.name = "row_number";
  call.arguments.clear();
  call.argument_names.clear();
  FLEUVE_ASSIGN(const ExprPtr row_number, BuildFunction(call));

  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kExternal;
  plan->is_streaming = input->is_streaming;
  plan->output = input->output;
  plan->output.insert(plan->output.end(), columns.begin(), columns.end());
  auto op = std::make_shared<ExternalOperator>();
  op->kind = ExternalKind::kWindow;
  op->context = windows.front()->children.front()->external->context;
  bool ordered = !spec.order_by.empty();
  for (const ExprPtr& window : windows) {
    const ExprPtr& function = window->children.front();
    if (function->filter != nullptr || function->distinct || window->ignore_nulls) {
      return Error::Unsupported("FILTER, DISTINCT or IGNORE NULLS with the aggregate function " +
                                function->external->name);
    }
    AddCall(function, *op, plan->exprs);
    const WindowFrame& frame = window->window.frame;
    if (frame.lower.kind == WindowFrame::BoundKind::kUnboundedPreceding &&
        frame.upper.kind == WindowFrame::BoundKind::kUnboundedFollowing) {
      op->framed.push_back(-1);
      continue;
    }
    ordered = true;
    WindowSpec until = window->window;
    until.frame.lower.kind = WindowFrame::BoundKind::kUnboundedPreceding;
    until.frame.lower.offset = nullptr;
    op->framed.push_back(static_cast<int>(plan->exprs.size()));
    plan->exprs.push_back(add_window(Over(count, until)));
    plan->exprs.push_back(add_window(Over(count, window->window)));
  }
  std::vector<SortKey> order;
  if (ordered) {
    SortKey key;
    key.expr = add_window(Over(row_number, spec));
    order.push_back(std::move(key));
  }
  PlanPtr below = counts->exprs.empty() ? input : counts;
  if (!counts->exprs.empty()) {
    counts->children.push_back(input);
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output = below->output;
  for (const Attribute& attribute : output) {
    exprs.push_back(MakeAttribute(attribute));
  }
  for (const ExprPtr& key : spec.partition_by) {
    Attribute column = Column(key, key->display);
    exprs.push_back(key);
    plan->grouping.push_back(MakeAttribute(column));
    output.push_back(std::move(column));
  }
  below = MakeProject(below, std::move(exprs), std::move(output));
  plan->external = std::move(op);
  plan->children.push_back(Sorted(std::move(below), plan->grouping, order));
  return PlanPtr(std::move(plan));
}

/// A node of windows, some of them over functions of the user. \param output  what the node gave at first
Result<PlanPtr> CutWindow(const PlanPtr& node, const std::vector<Attribute>& output, const AnalysisConfig& config) {
  struct Group {
    std::vector<ExprPtr> windows;
    std::vector<Attribute> columns;
  };
  std::vector<Group> groups;
  auto rest = std::make_shared<LogicalPlan>(*node);
  rest->exprs.clear();
  rest->output = node->children.front()->output;
  const std::size_t first = node->output.size() - node->exprs.size();
  for (std::size_t i = 0; i < node->exprs.size(); ++i) {
    const ExprPtr& window = node->exprs[i];
    const Attribute& column = node->output[first + i];
    if (window->kind != ExprKind::kWindow || !IsUserAggregate(*window->children.front())) {
      rest->exprs.push_back(window);
      rest->output.push_back(column);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(), [&window](const Group& known) {
      return SameKeys(known.windows.front()->window, window->window);
    });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), Group());
    }
    group->windows.push_back(window);
    group->columns.push_back(column);
  }
  PlanPtr made = rest->exprs.empty() ? node->children.front() : PlanPtr(rest);
  for (const Group& group : groups) {
    FLEUVE_ASSIGN(made, CutWindows(made, group.windows, group.columns, config));
  }
  return Restore(std::move(made), output);
}

/// An expression over the columns of the query around it, as one over columns of the same query.
ExprPtr Joined(const ExprPtr& expr, const Ids& left) {
  return RewriteExpr(expr, [&left](const ExprPtr& part) -> ExprPtr {
    if (!IsOuter(*part) || !left.contains(part->attribute.id.value)) {
      return nullptr;
    }
    auto copy = std::make_shared<Expr>(*part);
    copy->is_outer = false;
    return copy;
  });
}

/// The right side of a lateral join as a plan over the left one whose columns come first; null where that cannot be.
PlanPtr OverLeft(const PlanPtr& right, const PlanPtr& left, bool outer) {
  const Ids ids = IdsOf(left->output);
  if (right->kind == PlanKind::kExternal && right->external->kind == ExternalKind::kTable &&
      right->children.front()->kind == PlanKind::kOneRow) {
    auto copy = std::make_shared<LogicalPlan>(
        *MapExpressions(right, [&ids](const ExprPtr& expr) { return Joined(expr, ids); }));
    auto op = std::make_shared<ExternalOperator>(*copy->external);
    op->outer = outer;
    copy->external = std::move(op);
    copy->children.front() = left;
    copy->output = left->output;
    copy->output.insert(copy->output.end(), right->output.begin(), right->output.end());
    copy->is_streaming = left->is_streaming;
    return copy;
  }
  const bool filter = right->kind == PlanKind::kFilter && !outer;
  const bool project = right->kind == PlanKind::kProject &&
                       (!outer || std::all_of(right->exprs.begin(), right->exprs.end(), [](const ExprPtr& expr) {
                         return expr->kind == ExprKind::kAttribute && !expr->is_outer;
                       }));
  if (!filter && !project) {
    return nullptr;
  }
  const PlanPtr below = OverLeft(right->children.front(), left, outer);
  if (below == nullptr) {
    return nullptr;
  }
  auto copy =
      std::make_shared<LogicalPlan>(*MapExpressions(right, [&ids](const ExprPtr& expr) { return Joined(expr, ids); }));
  copy->children.front() = below;
  copy->is_streaming = below->is_streaming;
  if (filter) {
    copy->output = below->output;
    return copy;
  }
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : left->output) {
    exprs.push_back(MakeAttribute(attribute));
  }
  exprs.insert(exprs.end(), copy->exprs.begin(), copy->exprs.end());
  copy->exprs = std::move(exprs);
  copy->output = left->output;
  copy->output.insert(copy->output.end(), right->output.begin(), right->output.end());
  return copy;
}

/// A limit is told to the function below it; null where there is none.
PlanPtr LimitRows(const PlanPtr& limit) {
  std::vector<PlanPtr> above;
  PlanPtr at = limit->children.front();
  while (at->kind == PlanKind::kProject) {
    above.push_back(at);
    at = at->children.front();
  }
  if (at->kind != PlanKind::kExternal || at->external->kind != ExternalKind::kMap) {
    return nullptr;
  }
  auto op = std::make_shared<ExternalOperator>(*at->external);
  op->row_limit = op->row_limit < 0 ? limit->count : std::min(op->row_limit, limit->count);
  auto copy = std::make_shared<LogicalPlan>(*at);
  copy->external = std::move(op);
  PlanPtr made = std::move(copy);
  above.push_back(limit);
  std::rotate(above.begin(), above.end() - 1, above.end());
  for (std::size_t i = above.size(); i > 0; --i) {
    auto node = std::make_shared<LogicalPlan>(*above[i - 1]);
    node->children.front() = std::move(made);
    made = std::move(node);
  }
  return made;
}

bool HoldsTableFunction(const PlanPtr& plan) {
  bool found = false;
  VisitPlan(plan, [&found](const LogicalPlan& node) {
    found = found || (node.kind == PlanKind::kExternal && node.external->kind == ExternalKind::kTable);
  });
  return found;
}

/// Joins of rows with what a table function makes of each.
Result<PlanPtr> CutLateral(const PlanPtr& node) {
  const bool outer = node->join_type == JoinType::kLeft;
  const bool trivial =
      node->condition == nullptr || (node->condition->kind == ExprKind::kLiteral && !node->condition->value.is_null() &&
                                     node->condition->value.boolean());
  PlanPtr made;
  if ((outer && trivial) || node->join_type == JoinType::kInner || node->join_type == JoinType::kCross) {
    made = OverLeft(node->children[1], node->children[0], outer);
  }
  if (made == nullptr) {
    return Error::Unsupported("a lateral join of this kind with a table function of the user");
  }
  if (!trivial) {
    made = MakeFilter(made, node->condition);
  }
  return Restore(std::move(made), node->output);
}

}  // namespace

bool HoldsExternal(const PlanPtr& plan) {
  bool found = false;
  VisitPlan(plan, [&found](const LogicalPlan& node) {
    found = found || node.kind == PlanKind::kExternal;
    for (const ExprPtr& expr : found ? std::vector<ExprPtr>() : ExpressionsOf(node)) {
      found = found || HasExternal(expr);
    }
  });
  return found;
}

Result<PlanPtr> CutExternal(const PlanPtr& plan, const AnalysisConfig& config) {
  Result<void> status;
  PlanPtr made = RewritePlan(plan, [&](const PlanPtr& node) -> PlanPtr {
    if (!status.ok()) {
      return nullptr;
    }
    const auto take = [&status](Result<PlanPtr> result) -> PlanPtr {
      if (!result.ok()) {
        status = std::move(result).error();
        return nullptr;
      }
      return *std::move(result);
    };
    if (node->kind == PlanKind::kJoin && node->lateral && HoldsTableFunction(node->children[1])) {
      PlanPtr joined = take(CutLateral(node));
      return joined == nullptr ? nullptr : take(CutExternal(joined, config));
    }
    if (node->kind == PlanKind::kExternal) {
      const ExternalKind kind = node->external->kind;
      const PlanPtr& child = node->children.front();
      const bool grouped = kind == ExternalKind::kGroupMap || kind == ExternalKind::kGroupState ||
                           kind == ExternalKind::kCoGroupMap || kind == ExternalKind::kTableOfRows;
      if (grouped && child->name != kSortedMark) {
        auto copy = std::make_shared<LogicalPlan>(*node);
        copy->children.front() = Sorted(child, node->grouping, node->order_by);
        return copy;
      }
    }
    if (node->kind == PlanKind::kLimit) {
      return LimitRows(node);
    }
    bool scalar = false;
    bool aggregate = false;
    for (const ExprPtr& expr : ExpressionsOf(*node)) {
      scalar = scalar || HasScalarCall(expr);
      aggregate = aggregate || AnyExpr(expr, IsUserAggregate);
    }
    if (!scalar && !aggregate) {
      return nullptr;
    }
    if (node->kind == PlanKind::kFilter) {
      return CutFilter(node);
    }
    if (node->kind == PlanKind::kJoin) {
      return take(CutJoin(node));
    }
    PlanPtr cut = node->children.empty() ? node : CutNode(node);
    if (aggregate && node->kind == PlanKind::kAggregate) {
      return take(CutAggregate(cut));
    }
    if (aggregate && node->kind == PlanKind::kWindow) {
      return take(CutWindow(cut->kind == PlanKind::kProject ? cut->children.front() : cut, node->output, config));
    }
    return cut;
  });
  FLEUVE_TRY(std::move(status));
  std::optional<std::string> left;
  VisitPlan(made, [&left](const LogicalPlan& node) {
    for (const ExprPtr& expr : ExpressionsOf(node)) {
      VisitExpr(expr, [&left](const Expr& part) {
        if (part.external != nullptr) {
          left = part.external->name;
        }
      });
    }
  });
  if (left) {
    return Error::Unsupported("the function " + *left + " in this place");
  }
  return made;
}

}  // namespace fleuve::plan
