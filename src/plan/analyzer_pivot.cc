#include <algorithm>
#include <set>

#include "plan/analyzer_internal.h"
#include "plan/proto_types.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

/// A pivot value as the name of a column: what a cast to string gives.
std::string ValueName(const types::Value& value, const DataType& type, const std::string& zone) {
  if (value.is_null()) {
    return "null";
  }
  switch (type.kind()) {
    case TypeKind::kDate:
      return types::DateToString(value.integer());
    case TypeKind::kTimestamp: {
      auto text = types::TimestampToString(value.integer(), zone);
      return text.ok() ? *text : types::TimestampNtzToString(value.integer());
    }
    case TypeKind::kTimestampNtz:
      return types::TimestampNtzToString(value.integer());
    case TypeKind::kStruct: {
      std::string out = "{";
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        out += (i > 0 ? ", " : "") + ValueName(value.list()[i], type.fields()[i].type, zone);
      }
      return out + "}";
    }
    default:
      return LiteralDisplay(value, type, zone);
  }
}

SelectItem ColumnItem(const ExprPtr& expr, const std::string& name) {
  SelectItem item;
  item.expr = expr;
  item.name = name;
  return item;
}

void CollectAttributes(const ExprPtr& expr, std::set<std::int64_t>& ids) {
  VisitExpr(expr, [&ids](const Expr& node) {
    if (node.kind == ExprKind::kAttribute) {
      ids.insert(node.attribute.id.value);
    }
  });
}

}  // namespace

Result<PlanPtr> Analyzer::Pivot(const sc::Aggregate& aggregate, PlanPtr input) {
  FLEUVE_ASSIGN(std::vector<SelectItem> grouping, SelectItems(aggregate.grouping_expressions(), input, false));
  const Scope scope = ScopeOf(input);
  FLEUVE_ASSIGN(ExprPtr column, Expression(aggregate.pivot().col(), scope));
  FLEUVE_ASSIGN(std::vector<SelectItem> aggregates, SelectItems(aggregate.aggregate_expressions(), input, false));
  std::vector<PivotColumn> values;
  if (aggregate.pivot().values().empty()) {
    // The values are what the column holds, in order.
    const std::optional<std::string> most = config_.conf ? config_.conf("spark.sql.pivotMaxValues") : std::nullopt;
    const std::int64_t limit = most ? std::strtoll(most->c_str(), nullptr, 10) : 10000;
    if (input->is_streaming) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3063",
                   "pivot is not supported on a streaming DataFrames/Datasets")
          .Family(ErrorFamily::kAnalysis);
    }
    FLEUVE_ASSIGN(std::vector<types::Value> found, DistinctValues(input, column, limit));
    if (found.size() > static_cast<std::size_t>(limit)) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1324",
                   "The pivot column " + column->display + " has more than " + std::to_string(limit) +
                       " distinct values, this could indicate an error. If this was intended, set "
                       "spark.sql.pivotMaxValues to at least the number of distinct values of the pivot column.")
          .Family(ErrorFamily::kAnalysis);
    }
    for (const types::Value& value : found) {
      values.push_back({MakeLiteral(value, column->type), ValueName(value, column->type, config_.session_zone)});
    }
  }
  for (const sc::Expression_Literal& literal : aggregate.pivot().values()) {
    FLEUVE_ASSIGN(ExprPtr value, LiteralFromProto(literal));
    values.push_back({value, ValueName(value->value, value->type, config_.session_zone)});
  }
  return MakePivot(input, std::move(grouping), column, values, aggregates);
}

Result<std::vector<types::Value>> Analyzer::DistinctValues(const PlanPtr& input, const ExprPtr& column,
                                                           std::int64_t limit) {
  auto distinct = std::make_shared<LogicalPlan>();
  distinct->kind = PlanKind::kDistinct;
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = column->display;
  attribute.type = column->type;
  attribute.nullable = column->nullable;
  distinct->children.push_back(MakeProject(input, {column}, {attribute}));
  distinct->output = distinct->children.front()->output;
  auto sort = std::make_shared<LogicalPlan>();
  sort->kind = PlanKind::kSort;
  sort->output = distinct->output;
  SortKey key;
  key.expr = MakeAttribute(attribute);
  sort->order_by.push_back(std::move(key));
  sort->children.push_back(std::move(distinct));
  auto head = std::make_shared<LogicalPlan>();
  head->kind = PlanKind::kLimit;
  head->count = limit + 1;
  head->output = sort->output;
  head->children.push_back(std::move(sort));
  FLEUVE_ASSIGN(std::vector<types::Value::List> rows, resolver_.RunQuery(head));
  std::vector<types::Value> values;
  for (types::Value::List& row : rows) {
    values.push_back(std::move(row.front()));
  }
  return values;
}

Result<PlanPtr> Analyzer::SqlPivot(const fleuve::pb::SqlPivot& pivot) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(pivot.input()));
  const Scope scope = ScopeOf(input);
  FLEUVE_ASSIGN(std::vector<SelectItem> aggregates, SelectItems(pivot.aggregates(), input, false));
  std::vector<ExprPtr> columns;
  std::set<std::int64_t> used;
  for (const sc::Expression& expression : pivot.columns()) {
    FLEUVE_ASSIGN(ExprPtr column, Expression(expression, scope));
    CollectAttributes(column, used);
    columns.push_back(std::move(column));
  }
  for (const SelectItem& item : aggregates) {
    if (item.expr == nullptr || !HasAggregate(item.expr)) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1006",
                   "Aggregate expression required for pivot, but a plain expression was found in the pivot clause.")
          .Family(ErrorFamily::kAnalysis);
    }
    CollectAttributes(item.expr, used);
  }
  std::vector<SelectItem> grouping;
  for (const Attribute& attribute : input->output) {
    if (!attribute.hidden && !used.contains(attribute.id.value)) {
      grouping.push_back(ColumnItem(AttributeExpr(attribute), attribute.name));
    }
  }
  const auto combine = [this](const std::vector<ExprPtr>& parts) -> Result<ExprPtr> {
    if (parts.size() == 1) {
      return parts.front();
    }
    std::vector<ExprPtr> arguments;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      arguments.push_back(MakeLiteral(types::Value("f" + std::to_string(i)), DataType::String()));
      arguments.push_back(parts[i]);
    }
    return Call("named_struct", std::move(arguments));
  };
  FLEUVE_ASSIGN(ExprPtr column, combine(columns));
  std::vector<PivotColumn> values;
  for (const fleuve::pb::PivotValue& value : pivot.values()) {
    std::vector<ExprPtr> parts;
    std::string name;
    for (const sc::Expression& expression : value.values()) {
      Result<ExprPtr> part = Expression(expression, Scope());
      if (!part.ok()) {
        if (IsUnresolvedColumn(part.error())) {
          return Error(ErrorKind::kInvalidArgument, "NON_LITERAL_PIVOT_VALUES",
                       "Literal expressions required for pivot values, found a column.");
        }
        return std::move(part).error();
      }
      if (parts.size() < columns.size() && !(*part)->type.EqualsIgnoringNullability(columns[parts.size()]->type)) {
        if (!CanImplicitlyCast((*part)->type, columns[parts.size()]->type, config_)) {
          return Error(ErrorKind::kInvalidArgument, "PIVOT_VALUE_DATA_TYPE_MISMATCH",
                       "Invalid pivot value '" + (*part)->display + "': value data type " + TypesSql((*part)->type) +
                           " does not match pivot column data type " + TypesSql(columns[parts.size()]->type) + ".");
        }
      }
      const std::string shown = (*part)->kind == ExprKind::kLiteral
                                    ? ValueName((*part)->value, (*part)->type, config_.session_zone)
                                    : (*part)->display;
      name += (name.empty() ? "" : ", ") + shown;
      parts.push_back(*std::move(part));
    }
    if (parts.size() > 1) {
      name = "{" + name + "}";
    }
    PivotColumn made;
    FLEUVE_ASSIGN(made.value, combine(parts));
    made.name = value.has_alias() ? value.alias() : name;
    values.push_back(std::move(made));
  }
  return MakePivot(input, std::move(grouping), column, values, aggregates);
}

Result<PlanPtr> Analyzer::MakePivot(const PlanPtr& input, std::vector<SelectItem> grouping, const ExprPtr& column,
                                    const std::vector<PivotColumn>& values, const std::vector<SelectItem>& aggregates) {
  AggregateParts inner;
  for (const SelectItem& item : grouping) {
    inner.grouping.push_back(item.expr);
  }
  inner.grouping.push_back(column);
  const std::size_t keys = grouping.size();
  std::vector<SelectItem> items = std::move(grouping);
  items.push_back(ColumnItem(column, "__pivot"));
  items.back().is_alias = true;
  for (const SelectItem& item : aggregates) {
    if (item.expr == nullptr || !HasAggregate(item.expr)) {
      return Error(ErrorKind::kInvalidArgument, "MISSING_AGGREGATION", "Aggregate expression required for pivot.");
    }
    items.push_back(item);
    items.back().is_alias = true;
  }
  FLEUVE_ASSIGN(PlanPtr first, MakeAggregate(input, inner, std::move(items)));
  const std::vector<Attribute> output = WithoutHidden(first)->output;
  AggregateParts outer;
  std::vector<SelectItem> result;
  for (std::size_t i = 0; i < keys; ++i) {
    outer.grouping.push_back(AttributeExpr(output[i]));
    result.push_back(ColumnItem(outer.grouping.back(), output[i].name));
  }
  const ExprPtr pivot_column = AttributeExpr(output[keys]);
  for (const PivotColumn& value : values) {
    FLEUVE_ASSIGN(ExprPtr wanted, MakeCast(value.value, pivot_column->type, config_));
    FLEUVE_ASSIGN(ExprPtr is_value, Call("<=>", {pivot_column, wanted}));
    for (std::size_t i = 0; i < aggregates.size(); ++i) {
      const Attribute& attribute = output[keys + 1 + i];
      ExprPtr chosen = MakeCase({is_value, AttributeExpr(attribute)}, false, attribute.type);
      FLEUVE_ASSIGN(ExprPtr cell, Call("first", {chosen, MakeLiteral(types::Value(true), DataType::Boolean())}));
      SelectItem item;
      item.expr = std::move(cell);
      item.name = aggregates.size() == 1 ? value.name : value.name + "_" + aggregates[i].name;
      item.is_alias = true;
      result.push_back(std::move(item));
    }
  }
  return MakeAggregate(std::move(first), outer, std::move(result));
}

Result<PlanPtr> Analyzer::MakeUnpivot(const PlanPtr& input, const std::vector<SelectItem>& ids,
                                      std::vector<UnpivotRow> rows, const std::string& variable_name,
                                      const std::vector<std::string>& value_names, bool include_nulls) {
  if (rows.empty()) {
    return Error(ErrorKind::kInvalidArgument, "UNPIVOT_REQUIRES_VALUE_COLUMNS",
                 "At least one value column needs to be specified for UNPIVOT, all columns specified as ids.");
  }
  std::vector<types::DataType> wanted;
  std::vector<bool> nullable(value_names.size(), false);
  for (std::size_t column = 0; column < value_names.size(); ++column) {
    DataType type = rows.front().values.at(column)->type;
    for (const UnpivotRow& row : rows) {
      const DataType& other = row.values.at(column)->type;
      if (!type.EqualsIgnoringNullability(other)) {
        const std::optional<DataType> wider = WiderType(type, other, config_);
        // Spark widens like set operations do, but takes no number for text.
        if (!wider || type.IsString() != other.IsString()) {
          std::string found;
          for (const UnpivotRow& each : rows) {
            found += (found.empty() ? "" : ", ") + TypesSql(each.values.at(column)->type) + " (" +
                     QuoteParts({each.values.at(column)->display}) + ")";
          }
          return Error(ErrorKind::kInvalidArgument, "UNPIVOT_VALUE_DATA_TYPE_MISMATCH",
                       "Unpivot value columns must share a least common type, some types do not: [" + found + "].")
              .With("types", found);
        }
        type = *wider;
      }
      nullable[column] = nullable[column] || row.values.at(column)->nullable;
    }
    wanted.push_back(std::move(type));
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kExpand;
  plan->is_streaming = input->is_streaming;
  for (const SelectItem& item : ids) {
    plan->output.push_back(OutputAttribute(item));
  }
  const auto add = [&plan](const std::string& name, const DataType& type, bool is_nullable) {
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = name;
    attribute.type = type;
    attribute.nullable = is_nullable;
    plan->output.push_back(std::move(attribute));
  };
  add(variable_name, DataType::String(), false);
  for (std::size_t column = 0; column < value_names.size(); ++column) {
    add(value_names[column], wanted[column], nullable[column]);
  }
  for (const UnpivotRow& row : rows) {
    std::vector<ExprPtr> projection;
    for (const SelectItem& item : ids) {
      projection.push_back(item.expr);
    }
    projection.push_back(MakeLiteral(types::Value(row.name), DataType::String()));
    for (std::size_t column = 0; column < value_names.size(); ++column) {
      FLEUVE_ASSIGN(ExprPtr value, MakeCast(row.values[column], wanted[column], config_));
      projection.push_back(std::move(value));
    }
    plan->projections.push_back(std::move(projection));
  }
  plan->children.push_back(input);
  if (include_nulls) {
    return PlanPtr(std::move(plan));
  }
  ExprPtr condition;
  for (std::size_t column = 0; column < value_names.size(); ++column) {
    FLEUVE_ASSIGN(ExprPtr valid, Call("isnotnull", {AttributeExpr(plan->output[ids.size() + 1 + column])}));
    if (condition == nullptr) {
      condition = std::move(valid);
    } else {
      FLEUVE_ASSIGN(condition, Call("or", {condition, valid}));
    }
  }
  return MakeFilter(std::move(plan), std::move(condition));
}

Result<PlanPtr> Analyzer::Unpivot(const sc::Unpivot& unpivot) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(unpivot.input()));
  FLEUVE_ASSIGN(std::vector<SelectItem> ids, SelectItems(unpivot.ids(), input, false));
  std::vector<SelectItem> values;
  if (unpivot.has_values()) {
    FLEUVE_ASSIGN(values, SelectItems(unpivot.values().values(), input, false));
  } else {
    std::set<std::int64_t> used;
    for (const SelectItem& item : ids) {
      CollectAttributes(item.expr, used);
    }
    for (const Attribute& attribute : input->output) {
      if (!attribute.hidden && !used.contains(attribute.id.value)) {
        values.push_back(ColumnItem(AttributeExpr(attribute), attribute.name));
      }
    }
  }
  std::vector<UnpivotRow> rows;
  for (const SelectItem& item : values) {
    rows.push_back({{item.expr}, item.name});
  }
  return MakeUnpivot(input, ids, std::move(rows), unpivot.variable_column_name(), {unpivot.value_column_name()}, true);
}

Result<PlanPtr> Analyzer::SqlUnpivot(const fleuve::pb::SqlUnpivot& unpivot) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(unpivot.input()));
  const Scope scope = ScopeOf(input);
  std::set<std::int64_t> used;
  std::vector<UnpivotRow> rows;
  for (const fleuve::pb::UnpivotSource& source : unpivot.sources()) {
    FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(source.columns(), input, false));
    UnpivotRow row;
    for (const SelectItem& item : items) {
      CollectAttributes(item.expr, used);
      row.name += (row.name.empty() ? "" : "_") + item.name;
      row.values.push_back(item.expr);
    }
    if (source.has_alias()) {
      row.name = source.alias();
    }
    if (row.values.size() != static_cast<std::size_t>(unpivot.value_names_size())) {
      return Error(ErrorKind::kInvalidArgument, "UNPIVOT_VALUE_SIZE_MISMATCH",
                   "All unpivot value columns must have the same size as there are value column names (" +
                       std::to_string(unpivot.value_names_size()) + ").");
    }
    rows.push_back(std::move(row));
  }
  std::vector<SelectItem> ids;
  for (const Attribute& attribute : input->output) {
    if (!attribute.hidden && !used.contains(attribute.id.value)) {
      ids.push_back(ColumnItem(AttributeExpr(attribute), attribute.name));
    }
  }
  return MakeUnpivot(input, ids, std::move(rows), unpivot.name_column(),
                     std::vector<std::string>(unpivot.value_names().begin(), unpivot.value_names().end()),
                     unpivot.include_nulls());
}

Result<ExprPtr> Analyzer::ReconcileColumn(const ExprPtr& expr, const types::StructField& target,
                                          std::vector<std::string>& path) {
  if (expr->nullable && !target.nullable) {
    return Error(ErrorKind::kInvalidArgument, "NULLABLE_COLUMN_OR_FIELD",
                 "Column or field " + QuoteParts(path) + " is nullable while it's required to be non-nullable.")
        .With("name", QuoteParts(path));
  }
  const DataType& from = expr->type;
  const DataType& to = target.type;
  if (from.EqualsIgnoringNullability(to)) {
    return expr;
  }
  if (from.Is(TypeKind::kStruct) && to.Is(TypeKind::kStruct)) {
    std::vector<ExprPtr> parts;
    for (const types::StructField& field : to.fields()) {
      path.push_back(field.name);
      const std::optional<std::size_t> ordinal = types::FieldIndex(from, field.name, config_.case_sensitive);
      ExprPtr part;
      if (ordinal) {
        FLEUVE_ASSIGN(part, ReconcileColumn(MakeGetField(expr, static_cast<int>(*ordinal)), field, path));
      } else if (field.nullable) {
        part = MakeNull(field.type);
      } else {
        return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_FIELD.WITHOUT_SUGGESTION",
                     "A field with name " + QuoteParts({field.name}) + " cannot be resolved.");
      }
      parts.push_back(MakeLiteral(types::Value(field.name), DataType::String()));
      parts.push_back(std::move(part));
      path.pop_back();
    }
    FLEUVE_ASSIGN(ExprPtr made, Call("named_struct", std::move(parts)));
    if (!expr->nullable) {
      return made;
    }
    FLEUVE_ASSIGN(ExprPtr is_null, Call("isnull", {expr}));
    return MakeCase({is_null, MakeNull(made->type), made}, true, made->type);
  }
  if (!CanStoreAssign(from, to)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_COLUMN_OR_FIELD_DATA_TYPE",
                 "Column or field " + QuoteParts(path) + " is of type " + TypesSql(from) +
                     " while it's required to be " + TypesSql(to) + ".")
        .With("name", QuoteParts(path))
        .With("type", TypesSql(from))
        .With("expectedType", TypesSql(to));
  }
  return MakeCast(expr, to, config_);
}

Result<PlanPtr> Analyzer::ToSchema(const sc::ToSchema& to_schema) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(to_schema.input()));
  FLEUVE_ASSIGN(DataType schema, TypeFromProto(to_schema.schema()));
  if (!schema.Is(TypeKind::kStruct)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE", "The target schema must be a struct.");
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  for (const types::StructField& field : schema.fields()) {
    FLEUVE_ASSIGN(std::optional<ExprPtr> found, NameInColumns({field.name}, input->output));
    Attribute attribute;
    ExprPtr expr;
    if (found) {
      std::vector<std::string> path{field.name};
      FLEUVE_ASSIGN(expr, ReconcileColumn(*found, field, path));
      attribute = (*found)->attribute;
    } else if (field.nullable) {
      expr = MakeNull(field.type);
    } else {
      return UnresolvedColumn({field.name}, {&input->output});
    }
    if (!found || expr != *found) {
      attribute.id = NewAttributeId();
      attribute.qualifier.clear();
    }
    attribute.name = field.name;
    attribute.type = field.type;
    attribute.nullable = expr->nullable;
    attribute.hidden = false;
    if (!field.metadata.fields().empty()) {
      attribute.metadata = field.metadata;
    }
    exprs.push_back(std::move(expr));
    output.push_back(std::move(attribute));
  }
  return MakeProject(std::move(input), std::move(exprs), std::move(output));
}

}  // namespace fleuve::plan
