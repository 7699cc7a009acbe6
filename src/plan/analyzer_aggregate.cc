#include <algorithm>

#include "plan/analyzer_internal.h"
#include "plan/event_time.h"
#include "plan/time_windows_internal.h"
#include "types/parts.h"

namespace fleuve::plan {

using types::DataType;
using types::TypeKind;

namespace {

Error MissingAggregation(const ExprPtr& expr) {
  return Error(ErrorKind::kInvalidArgument, "MISSING_AGGREGATION",
               "The non-aggregating expression \"" + expr->display +
                   "\" is based on columns which are not participating in the GROUP BY clause.\nAdd the columns or "
                   "the expression to the GROUP BY, aggregate the expression, or use \"any_value(" +
                   expr->display + ")\" if you do not care which of the values within a group is returned.")
      .With("expression", "\"" + expr->display + "\"")
      .With("expressionAnyValue", "\"any_value(" + expr->display + ")\"");
}

}  // namespace

/// An Aggregate node under construction: expressions above it are rewritten over its output.
struct Analyzer::AggregateSite {
  std::vector<ExprPtr> grouping;
  std::vector<Attribute> grouping_attributes;
  std::vector<ExprPtr> aggregates;
  std::vector<Attribute> aggregate_attributes;
  /// Further attributes that expressions may use as they are.
  std::vector<AttributeId> allowed;
};

Result<ExprPtr> Analyzer::OverAggregate(const ExprPtr& expr, AggregateSite& site) {
  for (std::size_t i = 0; i < site.grouping.size(); ++i) {
    if (SameExpr(expr, site.grouping[i])) {
      ExprPtr made = AttributeExpr(site.grouping_attributes[i]);
      return made->display == expr->display ? made : WithDisplay(made, expr->display);
    }
  }
  // window_time() is a column below the aggregation: it is no function of the window that is grouped by.
  if (expr->kind == ExprKind::kCall && expr->function == "spark_window_time") {
    return MissingAggregation(expr);
  }
  switch (expr->kind) {
    case ExprKind::kLiteral:
      return expr;
    case ExprKind::kAggregate: {
      std::size_t i = 0;
      while (i < site.aggregates.size() && !(expr->deterministic && SameExpr(expr, site.aggregates[i]))) {
        ++i;
      }
      if (i == site.aggregates.size()) {
        Attribute attribute;
        attribute.id = NewAttributeId();
        attribute.name = expr->display;
        attribute.type = expr->type;
        attribute.nullable = expr->nullable;
        site.aggregates.push_back(expr);
        site.aggregate_attributes.push_back(std::move(attribute));
      }
      return WithDisplay(MakeAttribute(site.aggregate_attributes[i]), expr->display);
    }
    case ExprKind::kAttribute: {
      if (expr->is_outer) {
        return expr;
      }
      const AttributeId id = expr->attribute.id;
      const auto is_id = [&id](const Attribute& attribute) { return attribute.id == id; };
      if (std::any_of(site.aggregate_attributes.begin(), site.aggregate_attributes.end(), is_id) ||
          std::any_of(site.grouping_attributes.begin(), site.grouping_attributes.end(), is_id) ||
          std::find(site.allowed.begin(), site.allowed.end(), id) != site.allowed.end()) {
        return expr;
      }
      if (site.grouping.empty()) {
        return Error(ErrorKind::kInvalidArgument, "MISSING_GROUP_BY",
                     "The query does not include a GROUP BY clause. Add GROUP BY or turn it into the window functions "
                     "using OVER clauses.");
      }
      return MissingAggregation(expr);
    }
    default:
      break;
  }
  std::vector<ExprPtr> operands = OperandsOf(*expr);
  bool changed = false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    ExprPtr made;
    if (expr->kind == ExprKind::kWindow && i == 0) {
      // The window's own function runs over the groups: only its operands are the query's.
      std::vector<ExprPtr> inner = OperandsOf(*operands[i]);
      for (ExprPtr& operand : inner) {
        FLEUVE_ASSIGN(operand, OverAggregate(operand, site));
      }
      made = WithOperands(operands[i], inner);
    } else {
      FLEUVE_ASSIGN(made, OverAggregate(operands[i], site));
    }
    changed = changed || made != operands[i];
    operands[i] = std::move(made);
  }
  return changed ? WithOperands(expr, operands) : expr;
}

PlanPtr Analyzer::Expand(const PlanPtr& input, const AggregateParts& parts, std::vector<Attribute>& grouping_attributes,
                         std::vector<Attribute>& extra_keys) {
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kExpand;
  plan->is_streaming = input->is_streaming;
  plan->output = input->output;
  for (const ExprPtr& expr : parts.grouping) {
    Attribute attribute;
    if (expr->kind == ExprKind::kAttribute) {
      attribute = expr->attribute;
      attribute.hidden = false;
    } else {
      attribute.name = expr->display;
      attribute.type = expr->type;
    }
    attribute.id = NewAttributeId();
    attribute.nullable = true;
    grouping_attributes.push_back(attribute);
    plan->output.push_back(std::move(attribute));
  }
  Attribute id;
  if (parts.grouping_id) {
    id = *parts.grouping_id;
  } else {
    id.id = NewAttributeId();
    id.name = "spark_grouping_id";
    id.type = DataType::Long();
    id.nullable = false;
  }
  extra_keys.push_back(id);
  plan->output.push_back(id);
  bool repeated = false;
  for (std::size_t i = 0; i < parts.sets.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      std::vector<int> a = parts.sets[i];
      std::vector<int> b = parts.sets[j];
      std::sort(a.begin(), a.end());
      std::sort(b.begin(), b.end());
      repeated = repeated || a == b;
    }
  }
  if (repeated) {
    Attribute position;
    position.id = NewAttributeId();
    position.name = "_gen_grouping_pos";
    position.type = DataType::Int();
    position.nullable = false;
    extra_keys.push_back(position);
    plan->output.push_back(std::move(position));
  }
  for (std::size_t s = 0; s < parts.sets.size(); ++s) {
    std::vector<ExprPtr> projection;
    for (const Attribute& attribute : input->output) {
      projection.push_back(AttributeExpr(attribute));
    }
    std::int64_t bits = 0;
    for (std::size_t i = 0; i < parts.grouping.size(); ++i) {
      const bool in_set =
          std::find(parts.sets[s].begin(), parts.sets[s].end(), static_cast<int>(i)) != parts.sets[s].end();
      bits = (bits << 1) | (in_set ? 0 : 1);
      projection.push_back(in_set ? parts.grouping[i] : MakeNull(parts.grouping[i]->type));
    }
    projection.push_back(MakeLiteral(types::Value(bits), DataType::Long()));
    if (repeated) {
      projection.push_back(MakeLiteral(types::Value(static_cast<std::int64_t>(s)), DataType::Int()));
    }
    plan->projections.push_back(std::move(projection));
  }
  plan->children.push_back(input);
  return plan;
}

Result<PlanPtr> Analyzer::MakeAggregate(PlanPtr input, const AggregateParts& parts, std::vector<SelectItem> items) {
  AggregateSite site;
  site.grouping = parts.grouping;
  for (const ExprPtr& expr : parts.grouping) {
    if (!types::IsGroupable(expr->type)) {
      return Error(ErrorKind::kInvalidArgument, "GROUP_EXPRESSION_TYPE_IS_NOT_ORDERABLE",
                   "The expression \"" + expr->display +
                       "\" cannot be used as a grouping expression because its data "
                       "type " +
                       TypesSql(expr->type) + " is not an orderable data type.")
          .With("sqlExpr", "\"" + expr->display + "\"")
          .With("dataType", TypesSql(expr->type));
    }
    if (HasAggregate(expr)) {
      return Error(ErrorKind::kInvalidArgument, "GROUP_BY_AGGREGATE",
                   "Aggregate functions are not allowed in GROUP BY, but found " + expr->display + ".")
          .With("sqlExpr", expr->display);
    }
  }
  std::vector<ExprPtr> keys;
  if (parts.has_sets) {
    std::vector<Attribute> extra;
    input = Expand(input, parts, site.grouping_attributes, extra);
    for (const Attribute& attribute : site.grouping_attributes) {
      keys.push_back(AttributeExpr(attribute));
    }
    for (const Attribute& attribute : extra) {
      keys.push_back(AttributeExpr(attribute));
      site.grouping.push_back(keys.back());
      site.grouping_attributes.push_back(attribute);
    }
  } else {
    keys = parts.grouping;
    for (ExprPtr& key : keys) {
      if (key->type.Is(TypeKind::kMap)) {
        // Maps with the same entries are one group, in whatever order they come.
        key = WithDisplay(MakeCall("spark_map_sort", {key}, key->type, key->nullable), key->display);
      }
    }
    for (const ExprPtr& expr : parts.grouping) {
      Attribute attribute;
      if (expr->kind == ExprKind::kAttribute && !expr->is_outer) {
        attribute = expr->attribute;
        attribute.hidden = false;
      } else {
        attribute.id = NewAttributeId();
        attribute.name = expr->display;
        attribute.type = expr->type;
        attribute.nullable = expr->nullable;
        attribute.metadata = EventTimeMetadata(*expr);
      }
      site.grouping_attributes.push_back(std::move(attribute));
    }
  }
  FLEUVE_ASSIGN(input, AddGenerator(std::move(input), items));
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  for (SelectItem& item : items) {
    if (item.expr->kind == ExprKind::kAttribute && !item.is_alias && !item.expr->is_outer) {
      // The column keeps its identity where it groups.
      const std::string name = item.name;
      FLEUVE_ASSIGN(item.expr, OverAggregate(item.expr, site));
      item.name = name;
    } else {
      FLEUVE_ASSIGN(item.expr, OverAggregate(item.expr, site));
      if (item.expr->kind == ExprKind::kAttribute && !item.is_alias) {
        Attribute attribute = item.expr->attribute;
        attribute.name = item.name;
        output.push_back(std::move(attribute));
        exprs.push_back(item.expr);
        continue;
      }
    }
    output.push_back(OutputAttribute(item));
    exprs.push_back(item.expr);
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kAggregate;
  plan->is_streaming = input->is_streaming;
  if (keys.empty() && site.aggregates.empty()) {
    FLEUVE_ASSIGN(ExprPtr count, Call("count", {MakeLiteral(types::Value(1), DataType::Int())}));
    FLEUVE_ASSIGN(ExprPtr unused, OverAggregate(count, site));
    (void)unused;
  }
  plan->grouping = std::move(keys);
  plan->aggregates = site.aggregates;
  plan->output = site.grouping_attributes;
  plan->output.insert(plan->output.end(), site.aggregate_attributes.begin(), site.aggregate_attributes.end());
  plan->children.push_back(std::move(input));
  PlanPtr below = std::move(plan);
  FLEUVE_ASSIGN(below, ExtractWindows(std::move(below), exprs));
  return MakeProject(std::move(below), std::move(exprs), std::move(output));
}

Result<PlanPtr> Analyzer::AggregateAllColumns(PlanPtr input) {
  AggregateParts parts;
  std::vector<SelectItem> items;
  for (const Attribute& attribute : input->output) {
    SelectItem item;
    item.expr = AttributeExpr(attribute);
    item.name = attribute.name;
    parts.grouping.push_back(item.expr);
    items.push_back(std::move(item));
  }
  return MakeAggregate(std::move(input), parts, std::move(items));
}

Result<PlanPtr> Analyzer::Aggregate(const sc::Aggregate& aggregate) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(aggregate.input()));
  if (aggregate.group_type() == sc::Aggregate::GROUP_TYPE_PIVOT) {
    return Pivot(aggregate, std::move(input));
  }
  FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(aggregate.grouping_expressions(), input, false));
  AggregateParts parts;
  for (const SelectItem& item : items) {
    if (item.generator) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
                   "The generator is not supported: outside the SELECT clause, found: GROUP BY.");
    }
    parts.grouping.push_back(item.expr);
  }
  const int count = static_cast<int>(parts.grouping.size());
  switch (aggregate.group_type()) {
    case sc::Aggregate::GROUP_TYPE_GROUPBY:
      break;
    case sc::Aggregate::GROUP_TYPE_ROLLUP:
      parts.has_sets = true;
      for (int length = count; length >= 0; --length) {
        std::vector<int> set;
        for (int i = 0; i < length; ++i) {
          set.push_back(i);
        }
        parts.sets.push_back(std::move(set));
      }
      break;
    case sc::Aggregate::GROUP_TYPE_CUBE:
      parts.has_sets = true;
      if (count > 16) {
        return Error::Unsupported("a cube over more than 16 columns");
      }
      for (int mask = (1 << count) - 1; mask >= 0; --mask) {
        std::vector<int> set;
        for (int i = 0; i < count; ++i) {
          if ((mask >> (count - 1 - i)) & 1) {
            set.push_back(i);
          }
        }
        parts.sets.push_back(std::move(set));
      }
      break;
    case sc::Aggregate::GROUP_TYPE_GROUPING_SETS: {
      parts.has_sets = true;
      const Scope scope = ScopeOf(input);
      for (const auto& grouping_set : aggregate.grouping_sets()) {
        std::vector<int> set;
        for (const sc::Expression& expression : grouping_set.grouping_set()) {
          FLEUVE_ASSIGN(ExprPtr expr, Expression(expression, scope));
          int index = 0;
          while (index < count && !SameExpr(parts.grouping[static_cast<std::size_t>(index)], expr)) {
            ++index;
          }
          if (index == count) {
            return Error(ErrorKind::kInvalidArgument, "GROUPING_COLUMN_MISMATCH",
                         "Column of grouping (" + expr->display + ") can't be found in grouping columns.");
          }
          set.push_back(index);
        }
        parts.sets.push_back(std::move(set));
      }
      break;
    }
    default:
      return Error::Unsupported("an aggregate of group type " + std::to_string(aggregate.group_type()));
  }
  Scope scope = ScopeOf(input);
  if (parts.has_sets) {
    Attribute id;
    id.id = NewAttributeId();
    id.name = "spark_grouping_id";
    id.type = DataType::Long();
    id.nullable = false;
    parts.grouping_id = id;
    scope.grouping_sets = &parts.grouping;
    scope.grouping_id = MakeAttribute(id);
  }
  for (const sc::Expression& expression : aggregate.aggregate_expressions()) {
    FLEUVE_TRY(AppendItem(expression, scope, input, items));
  }
  return MakeAggregate(std::move(input), parts, std::move(items));
}

Result<PlanPtr> Analyzer::SqlAggregate(const fleuve::pb::SqlAggregate& aggregate) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(aggregate.input()));
  return SqlAggregateOver(std::move(input), aggregate.select(), &aggregate);
}

Result<PlanPtr> Analyzer::SqlAggregateOver(PlanPtr input,
                                           const google::protobuf::RepeatedPtrField<sc::Expression>& select,
                                           const fleuve::pb::SqlAggregate* aggregate) {
  AggregateParts parts;
  std::vector<std::optional<std::string>> aliases;
  std::vector<std::optional<std::int64_t>> ordinals;
  const Scope plain = ScopeOf(input);
  if (aggregate != nullptr) {
    for (const sc::Expression& expression : aggregate->grouping()) {
      aliases.emplace_back();
      ordinals.emplace_back();
      if (expression.has_literal() && expression.literal().has_integer()) {
        ordinals.back() = expression.literal().integer();
        parts.grouping.push_back(MakeNull(DataType::Void()));
        continue;
      }
      Result<ExprPtr> expr = Expression(expression, plain);
      if (!expr.ok()) {
        if (expr.error().condition().starts_with("UNRESOLVED_COLUMN.") && expression.has_unresolved_attribute()) {
          FLEUVE_ASSIGN(std::vector<std::string> name,
                        SplitIdentifier(expression.unresolved_attribute().unparsed_identifier()));
          const bool is_alias = name.size() == 1 && std::any_of(select.begin(), select.end(), [&](const auto& item) {
                                  return item.has_alias() && item.alias().name_size() == 1 &&
                                         EqualNames(item.alias().name(0), name.front(), config_.case_sensitive);
                                });
          if (is_alias) {
            aliases.back() = name.front();
            parts.grouping.push_back(MakeNull(DataType::Void()));
            continue;
          }
        }
        return std::move(expr).error();
      }
      parts.grouping.push_back(*std::move(expr));
    }
    for (const fleuve::pb::GroupingSet& set : aggregate->sets()) {
      parts.has_sets = true;
      parts.sets.emplace_back(set.index().begin(), set.index().end());
    }
  }
  const std::optional<GroupingWindow> window = PlaceGroupingWindow(input, parts.grouping);
  std::vector<SelectItem> items;
  Scope scope = window ? ScopeOf(input) : plain;
  scope.aliases = &items;
  if (parts.has_sets) {
    Attribute id;
    id.id = NewAttributeId();
    id.name = "spark_grouping_id";
    id.type = DataType::Long();
    id.nullable = false;
    parts.grouping_id = id;
    scope.grouping_sets = &parts.grouping;
    scope.grouping_id = MakeAttribute(id);
  }
  for (const sc::Expression& expression : select) {
    FLEUVE_TRY(AppendItem(expression, scope, input, items));
  }
  if (window) {
    for (SelectItem& item : items) {
      item.expr = WithGroupingWindow(item.expr, *window);
    }
  }
  for (std::size_t i = 0; i < parts.grouping.size(); ++i) {
    if (ordinals[i]) {
      const std::int64_t position = *ordinals[i];
      if (position < 1 || position > static_cast<std::int64_t>(items.size())) {
        return Error(ErrorKind::kInvalidArgument, "GROUP_BY_POS_OUT_OF_RANGE",
                     "GROUP BY position " + std::to_string(position) + " is not in select list (valid range is [1, " +
                         std::to_string(items.size()) + "]).")
            .With("index", std::to_string(position))
            .With("size", std::to_string(items.size()));
      }
      const SelectItem& item = items[static_cast<std::size_t>(position - 1)];
      if (item.generator) {
        return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
                     "The generator is not supported: outside the SELECT clause, found: Aggregate.");
      }
      if (HasAggregate(item.expr)) {
        return Error(ErrorKind::kInvalidArgument, "GROUP_BY_POS_AGGREGATE",
                     "GROUP BY " + std::to_string(position) + " refers to an expression " + item.expr->display +
                         " that contains an aggregate function. Aggregate functions are not allowed in GROUP BY.")
            .With("index", std::to_string(position))
            .With("aggExpr", item.expr->display);
      }
      parts.grouping[i] = item.expr;
    } else if (aliases[i]) {
      for (const SelectItem& item : items) {
        if (item.is_alias && item.expr != nullptr && EqualNames(item.name, *aliases[i], config_.case_sensitive)) {
          parts.grouping[i] = item.expr;
          break;
        }
      }
    }
  }
  if (aggregate != nullptr && aggregate->group_by_all()) {
    for (const SelectItem& item : items) {
      if (item.expr == nullptr || HasAggregate(item.expr) || HasWindow(item.expr)) {
        continue;
      }
      const bool known = std::any_of(parts.grouping.begin(), parts.grouping.end(),
                                     [&](const ExprPtr& other) { return SameExpr(other, item.expr); });
      if (!known && item.expr->kind != ExprKind::kLiteral) {
        parts.grouping.push_back(item.expr);
      }
    }
  }
  return MakeAggregate(std::move(input), parts, std::move(items));
}

Result<std::vector<ExprPtr>> Analyzer::ResolveOver(PlanPtr& input,
                                                   const std::vector<const sc::Expression*>& expressions) {
  Scope scope = ScopeOf(input);
  const LogicalPlan* aggregate = nullptr;
  PlanPtr aggregate_plan;
  PlanPtr node = input;
  while (true) {
    switch (node->kind) {
      case PlanKind::kFilter:
      case PlanKind::kSort:
      case PlanKind::kLimit:
      case PlanKind::kOffset:
      case PlanKind::kTail:
      case PlanKind::kSample:
      case PlanKind::kWindow:
      case PlanKind::kGenerate:
      case PlanKind::kRepartition:
      case PlanKind::kWatermark:
      case PlanKind::kMetrics:
        node = node->children.front();
        continue;
      case PlanKind::kProject:
        if (!node->name.empty()) {
          break;
        }
        node = node->children.front();
        scope.tiers.push_back(&node->output);
        continue;
      case PlanKind::kAggregate:
        aggregate = node.get();
        aggregate_plan = node;
        scope.tiers.push_back(&node->children.front()->output);
        scope.aggregate_input = &node->children.front()->output;
        break;
      default:
        break;
    }
    break;
  }
  // Grouping sets: grouping() and the grouping columns are those of the Expand node below.
  std::vector<ExprPtr> grouping_sets;
  if (aggregate != nullptr && aggregate->children.front()->kind == PlanKind::kExpand) {
    const LogicalPlan& expand = *aggregate->children.front();
    const std::size_t columns = expand.children.front()->output.size();
    for (std::size_t i = columns; i < expand.output.size(); ++i) {
      if (expand.output[i].name == "spark_grouping_id") {
        scope.grouping_id = MakeAttribute(expand.output[i]);
        break;
      }
      ExprPtr source;
      for (const std::vector<ExprPtr>& projection : expand.projections) {
        if (projection[i]->kind != ExprKind::kLiteral || !projection[i]->value.is_null()) {
          source = projection[i];
        }
      }
      grouping_sets.push_back(source == nullptr ? AttributeExpr(expand.output[i]) : source);
    }
    scope.grouping_sets = &grouping_sets;
  }
  std::vector<ExprPtr> exprs;
  bool has_aggregate = false;
  for (const sc::Expression* expression : expressions) {
    FLEUVE_ASSIGN(ExprPtr expr, Expression(*expression, scope));
    has_aggregate = has_aggregate || HasAggregate(expr);
    exprs.push_back(std::move(expr));
  }
  PlanPtr replaced = aggregate_plan;
  if (aggregate != nullptr) {
    AggregateSite site;
    site.grouping = aggregate->grouping;
    site.aggregates = aggregate->aggregates;
    site.grouping_attributes.assign(
        aggregate->output.begin(), aggregate->output.begin() + static_cast<std::ptrdiff_t>(aggregate->grouping.size()));
    site.aggregate_attributes.assign(
        aggregate->output.begin() + static_cast<std::ptrdiff_t>(aggregate->grouping.size()), aggregate->output.end());
    for (std::size_t i = 0; i < grouping_sets.size() && i < site.grouping.size(); ++i) {
      // Names of the input stand for the columns that the grouping sets blank out.
      site.grouping.push_back(grouping_sets[i]);
      site.grouping_attributes.push_back(site.grouping_attributes[i]);
    }
    for (std::size_t tier = 0; tier + 1 < scope.tiers.size(); ++tier) {
      for (const Attribute& attribute : *scope.tiers[tier]) {
        site.allowed.push_back(attribute.id);
      }
    }
    for (ExprPtr& expr : exprs) {
      FLEUVE_ASSIGN(expr, OverAggregate(expr, site));
    }
    if (site.aggregates.size() != aggregate->aggregates.size()) {
      auto copy = std::make_shared<LogicalPlan>(*aggregate);
      copy->aggregates = site.aggregates;
      copy->output.resize(aggregate->grouping.size());
      copy->output.insert(copy->output.end(), site.aggregate_attributes.begin(), site.aggregate_attributes.end());
      replaced = std::move(copy);
    }
  } else if (has_aggregate) {
    return Error(
        ErrorKind::kInvalidArgument, "MISSING_GROUP_BY",
        "The query does not include a GROUP BY clause. Add GROUP BY or turn it into the window functions using "
        "OVER clauses.");
  }
  std::vector<Attribute> needed;
  for (const ExprPtr& expr : exprs) {
    VisitExpr(expr, [&](const Expr& part) {
      if (part.kind != ExprKind::kAttribute || part.is_outer) {
        return;
      }
      const auto is_id = [&part](const Attribute& attribute) { return attribute.id == part.attribute.id; };
      if (std::none_of(input->output.begin(), input->output.end(), is_id) &&
          std::none_of(needed.begin(), needed.end(), is_id)) {
        Attribute attribute = part.attribute;
        attribute.hidden = true;
        needed.push_back(std::move(attribute));
      }
    });
  }
  if (!needed.empty()) {
    FLEUVE_ASSIGN(input, Expose(input, needed, aggregate, replaced));
  }
  return exprs;
}

Result<PlanPtr> Analyzer::Expose(const PlanPtr& plan, const std::vector<Attribute>& needed, const LogicalPlan* from,
                                 const PlanPtr& to) {
  if (from != nullptr && plan.get() == from) {
    return to;
  }
  const bool complete = std::all_of(needed.begin(), needed.end(), [&](const Attribute& attribute) {
    return std::any_of(plan->output.begin(), plan->output.end(),
                       [&](const Attribute& other) { return other.id == attribute.id; });
  });
  if (complete) {
    return plan;
  }
  if (plan->children.size() != 1) {
    return Error::Internal("a column cannot be brought up through this plan");
  }
  FLEUVE_ASSIGN(PlanPtr child, Expose(plan->children.front(), needed, from, to));
  auto copy = std::make_shared<LogicalPlan>(*plan);
  std::vector<Attribute> added;
  for (const Attribute& attribute : needed) {
    const auto is_id = [&](const Attribute& other) { return other.id == attribute.id; };
    if (std::any_of(child->output.begin(), child->output.end(), is_id) &&
        std::none_of(plan->output.begin(), plan->output.end(), is_id)) {
      added.push_back(attribute);
    }
  }
  if (plan->kind == PlanKind::kProject) {
    for (const Attribute& attribute : added) {
      copy->exprs.push_back(AttributeExpr(attribute));
      copy->output.push_back(attribute);
    }
  } else {
    // Everything else gives its child's columns, then its own.
    const std::size_t own = plan->output.size() - plan->children.front()->output.size();
    copy->output = child->output;
    copy->output.insert(copy->output.end(), plan->output.end() - static_cast<std::ptrdiff_t>(own), plan->output.end());
    for (Attribute& attribute : copy->output) {
      if (std::any_of(added.begin(), added.end(), [&](const Attribute& other) { return other.id == attribute.id; })) {
        attribute.hidden = true;
      }
    }
  }
  copy->children.front() = std::move(child);
  return PlanPtr(std::move(copy));
}

}  // namespace fleuve::plan
