#include <algorithm>
#include <functional>

#include "operators/cut_internal.h"
#include "plan/event_time.h"
#include "plan/external.h"

namespace fleuve::operators {

using plan::Attribute;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

namespace {

constexpr std::string_view kLeafMark = "state operator ";

/// Every attribute that the plan's expressions read, and those whose place counts.
void CollectNeeded(const PlanPtr& plan, std::set<std::int64_t>& needed) {
  const auto all = [&needed](const std::vector<Attribute>& attributes) {
    for (const Attribute& attribute : attributes) {
      if (!attribute.hidden) {
        needed.insert(attribute.id.value);
      }
    }
  };
  all(plan->output);
  plan::VisitPlan(plan, [&](const LogicalPlan& node) {
    for (const ExprPtr& expr : plan::ExpressionsOf(node)) {
      plan::VisitExpr(expr, [&needed](const plan::Expr& part) {
        if (part.kind == plan::ExprKind::kAttribute) {
          needed.insert(part.attribute.id.value);
        } else if (part.kind == plan::ExprKind::kSubquery) {
          CollectNeeded(part.subquery, needed);
        }
      });
    }
    switch (node.kind) {
      case PlanKind::kUnion:
      case PlanKind::kIntersect:
      case PlanKind::kExcept:
        for (const PlanPtr& child : node.children) {
          for (const Attribute& attribute : child->output) {
            needed.insert(attribute.id.value);
          }
        }
        break;
      case PlanKind::kExternal:
        all(node.children[0]->output);
        break;
      case PlanKind::kDistinct:
        if (node.keys.empty()) {
          all(node.output);
        }
        for (const plan::AttributeId& key : node.keys) {
          needed.insert(key.value);
        }
        break;
      case PlanKind::kWatermark:
        needed.insert(node.event_time.value);
        break;
      default:
        break;
    }
  });
}

PlanPtr OperatorLeaf(const StatefulOperator& made, std::size_t number) {
  auto leaf = std::make_shared<LogicalPlan>();
  leaf->kind = PlanKind::kRows;
  leaf->name = std::string(kLeafMark) + std::to_string(number);
  leaf->output = made.output();
  leaf->is_streaming = true;
  leaf->rows = std::make_shared<plan::RowScan>();
  return leaf;
}

Result<OperatorPtr> MakeOperator(const LogicalPlan& node, const OperatorContext& context) {
  switch (node.kind) {
    case PlanKind::kAggregate: {
      const bool session = std::any_of(node.grouping.begin(), node.grouping.end(),
                                       [](const ExprPtr& key) { return plan::IsSessionWindow(key); });
      return session ? MakeSessionWindow(node, context) : MakeAggregation(node, context);
    }
    case PlanKind::kDistinct:
      return MakeDeduplication(node, context);
    case PlanKind::kLimit:
      return MakeGlobalLimit(node, context);
    case PlanKind::kJoin:
      return MakeStreamJoin(node, context);
    case PlanKind::kExternal:
      return MakeUserState(node, context);
    default:
      return Error::Internal("a stateful node without an operator");
  }
}

}  // namespace

bool IsStateful(const LogicalPlan& node, const std::string& output_mode) {
  if (!node.is_streaming) {
    return false;
  }
  switch (node.kind) {
    case PlanKind::kAggregate:
    case PlanKind::kDistinct:
      return true;
    case PlanKind::kLimit:
      // In complete mode it is a limit of each batch's whole result.
      return output_mode != "complete";
    case PlanKind::kJoin:
      return node.children[0]->is_streaming && node.children[1]->is_streaming;
    case PlanKind::kExternal:
      return node.external->kind == plan::ExternalKind::kGroupState;
    default:
      return false;
  }
}

std::vector<Attribute> Visible(std::vector<Attribute> columns) {
  for (Attribute& column : columns) {
    column.hidden = false;
  }
  return columns;
}

Attribute NewColumn(std::string name, types::DataType type) {
  Attribute attribute;
  attribute.id = plan::NewAttributeId();
  attribute.name = std::move(name);
  attribute.type = std::move(type);
  return attribute;
}

std::vector<ExprPtr> ColumnsOf(const std::vector<Attribute>& attributes) {
  std::vector<ExprPtr> out;
  for (const Attribute& attribute : attributes) {
    out.push_back(plan::MakeAttribute(attribute));
  }
  return out;
}

std::shared_ptr<const types::Schema> SchemaFor(const std::vector<Attribute>& columns) {
  LogicalPlan node;
  node.output = columns;
  return std::make_shared<const types::Schema>(plan::SchemaOf(node));
}

PlanPtr GiveOutput(const PlanPtr& from, const std::vector<Attribute>& available, const std::vector<Attribute>& wanted) {
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : wanted) {
    const auto kept = std::find_if(available.begin(), available.end(),
                                   [&](const Attribute& other) { return other.id == attribute.id; });
    exprs.push_back(kept != available.end() ? plan::MakeAttribute(*kept) : plan::MakeNull(attribute.type));
  }
  return plan::MakeProject(from, std::move(exprs), wanted);
}

PlanPtr NeededColumns(const PlanPtr& child, const std::set<std::int64_t>& needed) {
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  for (const Attribute& attribute : child->output) {
    if (needed.contains(attribute.id.value)) {
      exprs.push_back(plan::MakeAttribute(attribute));
      output.push_back(attribute);
    }
  }
  if (output.empty() && !child->output.empty()) {
    // Rows without columns would have no number.
    exprs.push_back(plan::MakeAttribute(child->output[0]));
    output.push_back(child->output[0]);
  }
  return plan::MakeProject(child, std::move(exprs), Visible(std::move(output)));
}

PlanPtr RowsPlan(std::vector<Attribute> output, std::vector<columnar::RecordBatch> batches) {
  auto rows = std::make_shared<plan::RowScan>();
  rows->batches = std::move(batches);
  auto leaf = std::make_shared<LogicalPlan>();
  leaf->kind = PlanKind::kRows;
  leaf->output = std::move(output);
  leaf->rows = std::move(rows);
  return leaf;
}

namespace {

std::string TypeText(const types::DataType& type) {
  using types::TypeKind;
  switch (type.kind()) {
    case TypeKind::kStruct: {
      std::string text = "struct<";
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        text += (i > 0 ? "," : "") + TypeText(type.fields()[i].type);
      }
      return text + ">";
    }
    case TypeKind::kArray:
      return "array<" + TypeText(type.element()) + ">";
    case TypeKind::kMap:
      return "map<" + TypeText(type.key()) + "," + TypeText(type.value()) + ">";
    default:
      return type.SimpleString();
  }
}

}  // namespace

std::string TypesText(const std::vector<Attribute>& columns) {
  std::string text = "struct<";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    text += (i > 0 ? "," : "") + TypeText(columns[i].type);
  }
  return text + ">";
}

std::string ColumnsText(const std::vector<Attribute>& columns) { return SchemaFor(Visible(columns))->ToJson().Dump(); }

int OperatorOfLeaf(const LogicalPlan& node) {
  if (node.kind != PlanKind::kRows || !node.name.starts_with(kLeafMark)) {
    return -1;
  }
  return std::atoi(node.name.c_str() + kLeafMark.size());
}

Result<CutPlan> CutAtState(const PlanPtr& plan, const StatefulOptions& options) {
  OperatorContext context;
  context.output_mode = options.output_mode;
  context.config = options.config;
  CollectNeeded(plan, context.needed);
  CutPlan cut;
  std::optional<Error> failure;
  cut.top = plan::RewritePlan(plan, [&](const PlanPtr& node) -> PlanPtr {
    if (failure || !IsStateful(*node, options.output_mode)) {
      return nullptr;
    }
    auto made = MakeOperator(*node, context);
    if (!made.ok()) {
      failure = std::move(made).error();
      return nullptr;
    }
    const PlanPtr leaf = OperatorLeaf(**made, cut.operators.size());
    PlanPtr above = (*made)->Above(leaf);
    cut.operators.push_back(*std::move(made));
    return above;
  });
  if (failure) {
    return *std::move(failure);
  }
  return cut;
}

std::vector<std::size_t> SparkOrder(const CutPlan& cut) {
  std::vector<std::size_t> order;
  const std::function<void(const PlanPtr&)> visit = [&](const PlanPtr& fragment) {
    plan::VisitPlan(fragment, [&](const LogicalPlan& node) {
      const int number = OperatorOfLeaf(node);
      if (number < 0) {
        return;
      }
      const auto position = static_cast<std::size_t>(number);
      if (std::find(order.begin(), order.end(), position) != order.end()) {
        return;
      }
      order.push_back(position);
      for (const PlanPtr& input : cut.operators[position]->inputs()) {
        visit(input);
      }
    });
  };
  visit(cut.top);
  return order;
}

}  // namespace fleuve::operators
