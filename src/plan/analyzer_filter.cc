#include <proto/unpack.h>

#include <algorithm>

#include "plan/analyzer_internal.h"
#include "types/parts.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

/// Set operations compare rows: columns that hold maps or variants have no order to do so.
Result<void> CheckComparable(const Attribute& attribute) {
  for (const auto& [kind, name] : {std::pair(TypeKind::kMap, "MAP"), std::pair(TypeKind::kVariant, "VARIANT")}) {
    if (types::Holds(attribute.type, kind)) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.SET_OPERATION_ON_" + std::string(name) + "_TYPE",
                   "The feature is not supported: Cannot have " + std::string(name) +
                       " type columns in DataFrame which calls set operations (INTERSECT, EXCEPT, etc.), but the type "
                       "of column " +
                       QuoteParts({attribute.name}) + " is " + TypesSql(attribute.type) + ".")
          .Family(ErrorFamily::kAnalysis)
          .With("colName", QuoteParts({attribute.name}))
          .With("dataType", TypesSql(attribute.type));
    }
  }
  return {};
}

}  // namespace

Result<void> CheckComparable(const PlanPtr& plan) {
  for (const Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      FLEUVE_TRY(CheckComparable(attribute));
    }
  }
  return {};
}

namespace {

Error WindowInFilter() {
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1034",
               "It is not allowed to use window functions inside WHERE clause.")
      .Family(ErrorFamily::kAnalysis);
}

/// True where the expression as written is a window function or compares one.
bool MentionsWindow(const sc::Expression& expression) {
  if (expression.has_window()) {
    return true;
  }
  const auto& arguments = expression.unresolved_function().arguments();
  return expression.has_unresolved_function() && std::any_of(arguments.begin(), arguments.end(), MentionsWindow);
}

}  // namespace

Result<PlanPtr> Analyzer::Filter(const PlanPtr& input, const sc::Expression& condition, bool is_having) {
  PlanPtr below = input;
  Result<std::vector<ExprPtr>> resolved = ResolveOver(below, {&condition});
  if (!resolved.ok()) {
    if (!is_having && resolved.error().condition() == "MISSING_GROUP_BY") {
      return Error(ErrorKind::kInvalidArgument, "INVALID_WHERE_CONDITION",
                   "The WHERE condition contains invalid expressions. Rewrite the query to avoid window functions, "
                   "aggregate functions, and generator functions in the WHERE clause.");
    }
    if (is_having && resolved.error().condition() == "MISSING_GROUP_BY" && MentionsWindow(condition)) {
      return WindowInFilter();
    }
    if (resolved.error().condition() == "UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS") {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
                   "The generator is not supported: outside the SELECT clause, found: Filter.")
          .With("plan", "Filter");
    }
    return std::move(resolved).error();
  }
  std::vector<ExprPtr> exprs = *std::move(resolved);
  if (HasWindow(exprs.front())) {
    return WindowInFilter();
  }
  FLEUVE_ASSIGN(ExprPtr boolean, AsBoolean(exprs.front(), "Filter"));
  FLEUVE_ASSIGN(boolean, WithExistence(boolean, true));
  PlanPtr filtered = MakeFilter(below, std::move(boolean));
  return below == input ? filtered : Restore(filtered, input->output);
}

Result<PlanPtr> Analyzer::Having(const fleuve::pb::Having& having) {
  PlanPtr input;
  if (having.input().has_project()) {
    PlanPtr below;
    if (having.input().project().has_input()) {
      FLEUVE_ASSIGN(below, Relation(having.input().project().input()));
    } else {
      auto one = std::make_shared<LogicalPlan>();
      one->kind = PlanKind::kOneRow;
      below = std::move(one);
    }
    FLEUVE_ASSIGN(input, SqlAggregateOver(std::move(below), having.input().project().expressions(), nullptr));
  } else {
    FLEUVE_ASSIGN(input, Relation(having.input()));
  }
  return Filter(input, having.condition(), true);
}

Result<PlanPtr> Analyzer::Sort(const sc::Sort& sort) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(sort.input()));
  std::vector<const sc::Expression_SortOrder*> order;
  for (const sc::Expression_SortOrder& key : sort.order()) {
    order.push_back(&key);
  }
  FLEUVE_ASSIGN(PlanPtr sorted, SortBy(std::move(input), order));
  if (!sort.has_is_global() || sort.is_global()) {
    return sorted;
  }
  // The node itself, or the one below a projection that leaves out what only the sort saw.
  const bool projected = sorted->kind != PlanKind::kSort;
  auto local = std::make_shared<LogicalPlan>(projected ? *sorted->children.front() : *sorted);
  local->all = true;
  if (!projected) {
    return PlanPtr(std::move(local));
  }
  auto above = std::make_shared<LogicalPlan>(*sorted);
  above->children.front() = std::move(local);
  return PlanPtr(std::move(above));
}

Result<PlanPtr> Analyzer::SortBy(PlanPtr input, const std::vector<const sc::Expression_SortOrder*>& order) {
  std::vector<SortKey> keys;
  std::vector<const sc::Expression*> expressions;
  std::vector<std::size_t> open;
  const auto set_direction = [](SortKey& key, sc::Expression_SortOrder::SortDirection direction,
                                sc::Expression_SortOrder::NullOrdering nulls) {
    key.ascending = direction != sc::Expression_SortOrder::SORT_DIRECTION_DESCENDING;
    key.nulls_first = nulls == sc::Expression_SortOrder::SORT_NULLS_UNSPECIFIED
                          ? key.ascending
                          : nulls == sc::Expression_SortOrder::SORT_NULLS_FIRST;
  };
  for (const sc::Expression_SortOrder* source : order) {
    SortKey key;
    set_direction(key, source->direction(), source->null_ordering());
    const sc::Expression& child = source->child();
    if (child.has_extension()) {
      const auto extension = fleuve::pb::Unpack<fleuve::pb::ExpressionExtension>(child.extension());
      if (extension && extension->has_order_by_all()) {
        const auto& all = extension->order_by_all();
        if (all.direction() != sc::Expression_SortOrder::SORT_DIRECTION_UNSPECIFIED) {
          set_direction(key, all.direction(), all.null_ordering());
        }
        for (const Attribute& attribute : input->output) {
          if (!attribute.hidden) {
            key.expr = AttributeExpr(attribute);
            keys.push_back(key);
          }
        }
        continue;
      }
    }
    if (child.has_literal() && child.literal().has_integer()) {
      std::vector<const Attribute*> visible;
      for (const Attribute& attribute : input->output) {
        if (!attribute.hidden) {
          visible.push_back(&attribute);
        }
      }
      const std::int64_t position = child.literal().integer();
      if (position < 1 || position > static_cast<std::int64_t>(visible.size())) {
        return Error(ErrorKind::kInvalidArgument, "ORDER_BY_POS_OUT_OF_RANGE",
                     "ORDER BY position " + std::to_string(position) + " is not in select list (valid range is [1, " +
                         std::to_string(visible.size()) + "]).")
            .With("index", std::to_string(position))
            .With("size", std::to_string(visible.size()));
      }
      key.expr = AttributeExpr(*visible[static_cast<std::size_t>(position - 1)]);
      keys.push_back(std::move(key));
      continue;
    }
    open.push_back(keys.size());
    expressions.push_back(&child);
    keys.push_back(std::move(key));
  }
  PlanPtr below = input;
  FLEUVE_ASSIGN(std::vector<ExprPtr> exprs, ResolveOver(below, expressions));
  for (const ExprPtr& expr : exprs) {
    if (HasWindow(expr)) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_EXPR_FOR_OPERATOR",
                   "A query operator contains one or more unsupported expressions. Consider to rewrite it to avoid "
                   "window functions, aggregate functions, and generator functions in the WHERE clause.\nInvalid "
                   "expressions: [" +
                       expr->display + "]")
          .With("invalidExprSqls", expr->display);
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    keys[open[i]].expr = exprs[i];
  }
  for (const SortKey& key : keys) {
    if (!types::IsOrderable(key.expr->type)) {
      return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                   "Cannot resolve \"" + key.expr->display +
                       "\" due to data type mismatch: The `sortorder` does not support ordering on type " +
                       TypesSql(key.expr->type) + ".")
          .With("functionName", "`sortorder`")
          .With("dataType", TypesSql(key.expr->type));
    }
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kSort;
  plan->is_streaming = below->is_streaming;
  plan->output = below->output;
  plan->order_by = std::move(keys);
  plan->children.push_back(below);
  return below == input ? PlanPtr(std::move(plan)) : Restore(plan, input->output);
}

Result<PlanPtr> Analyzer::Deduplicate(const sc::Deduplicate& deduplicate) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(deduplicate.input()));
  if (deduplicate.within_watermark()) {
    if (!input->is_streaming) {
      return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_3102",
                   "dropDuplicatesWithinWatermark is not supported with batch DataFrames/DataSets;")
          .Family(ErrorFamily::kAnalysis);
    }
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kDistinct;
  plan->within_watermark = deduplicate.within_watermark();
  if (deduplicate.all_columns_as_keys() || deduplicate.column_names_size() == 0) {
    input = WithoutHidden(input);
    FLEUVE_TRY(CheckComparable(input));
  } else {
    for (const std::string& name : deduplicate.column_names()) {
      bool found = false;
      for (const Attribute& attribute : input->output) {
        if (!attribute.hidden && EqualNames(attribute.name, name, config_.case_sensitive)) {
          FLEUVE_TRY(CheckComparable(attribute));
          plan->keys.push_back(attribute.id);
          found = true;
        }
      }
      if (!found) {
        std::string names;
        for (const Attribute& attribute : input->output) {
          if (!attribute.hidden) {
            names += (names.empty() ? "" : ", ") + attribute.name;
          }
        }
        return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN_AMONG_FIELD_NAMES",
                     "Cannot resolve column name \"" + name + "\" among (" + names + ").")
            .With("colName", name)
            .With("fieldNames", names);
      }
    }
  }
  plan->is_streaming = input->is_streaming;
  plan->output = input->output;
  plan->children.push_back(std::move(input));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::DistinctRows(PlanPtr input) {
  input = WithoutHidden(input);
  FLEUVE_TRY(CheckComparable(input));
  if (input->is_streaming) {
    return AggregateAllColumns(std::move(input));
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kDistinct;
  plan->output = input->output;
  plan->children.push_back(std::move(input));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::RepartitionByExpression(const sc::RepartitionByExpression& repartition) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(repartition.input()));
  const Scope scope = ScopeOf(input);
  std::vector<ExprPtr> keys;
  bool by_range = false;
  for (const sc::Expression& expression : repartition.partition_exprs()) {
    by_range = by_range || expression.has_sort_order();
    FLEUVE_ASSIGN(ExprPtr key,
                  Expression(expression.has_sort_order() ? expression.sort_order().child() : expression, scope));
    if (!by_range && types::Holds(key->type, TypeKind::kVariant)) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.PARTITION_BY_VARIANT",
                   "The feature is not supported: Cannot use VARIANT producing expressions to partition a DataFrame, "
                   "but the type of expression " +
                       key->display + " is " + TypesSql(key->type) + ".")
          .Family(ErrorFamily::kAnalysis)
          .With("expr", key->display)
          .With("dataType", TypesSql(key->type));
    }
    keys.push_back(std::move(key));
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kRepartition;
  plan->is_streaming = input->is_streaming;
  plan->output = input->output;
  plan->shuffle = true;
  if (!by_range) {
    plan->count = repartition.num_partitions();
    plan->exprs = std::move(keys);
  }
  plan->children.push_back(std::move(input));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::Hint(const sc::Hint& hint) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(hint.input()));
  const std::string name = LowerName(hint.name());
  if (name != "repartition" && name != "coalesce") {
    return input;
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kRepartition;
  plan->is_streaming = input->is_streaming;
  plan->output = input->output;
  plan->shuffle = name == "repartition";
  for (int i = 0; i < hint.parameters_size(); ++i) {
    const sc::Expression& parameter = hint.parameters(i);
    if (i == 0 && parameter.has_literal() && parameter.literal().has_integer()) {
      plan->count = parameter.literal().integer();
    } else if (plan->shuffle) {
      FLEUVE_ASSIGN(ExprPtr key, Expression(parameter, ScopeOf(input)));
      plan->exprs.push_back(std::move(key));
    }
  }
  if (plan->count <= 0) {
    return input;
  }
  plan->children.push_back(std::move(input));
  return PlanPtr(std::move(plan));
}

}  // namespace fleuve::plan
