#include <algorithm>

#include "base/bytes.h"
#include "delta/table_source.h"
#include "plan/call_function.h"
#include "tables/modify_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::Value;

Result<delta::SnapshotPtr> SnapshotOf(const plan::PlanPtr& target) {
  const auto table = std::dynamic_pointer_cast<const delta::DeltaTable>(target->table);
  if (table == nullptr) {
    return Error(ErrorKind::kUnsupported, "DELTA_TABLE_ONLY_OPERATION", "The statement works on Delta tables only.");
  }
  return table->snapshot();
}

Result<void> CheckCondition(const ExprPtr& condition, const std::string& statement) {
  if (condition == nullptr) {
    return {};
  }
  if (plan::AnyExpr(condition, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kSubquery; })) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_SUBQUERY",
                 "Subqueries are not supported in the condition of " + statement + ".")
        .With("operation", statement)
        .With("cond", condition->display);
  }
  FLEUVE_TRY(CheckOfRow(condition, statement));
  if (!condition->type.Is(types::TypeKind::kBoolean)) {
    return NotBoolean(*condition);
  }
  if (!condition->deterministic) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                 "The condition " + condition->display + " of " + statement + " is not deterministic.")
        .With("sqlExprs", "\"" + condition->display + "\"");
  }
  return {};
}

Error NotBoolean(const plan::Expr& condition) {
  return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
               "The condition " + condition.display + " of type " + condition.type.Sql() + " is not a boolean.")
      .With("sqlExpr", "\"" + condition.display + "\"")
      .With("filter", "\"" + condition.display + "\"")
      .With("type", "\"" + condition.type.Sql() + "\"");
}

Result<void> CheckOfRow(const ExprPtr& expr, const std::string& statement) {
  std::string invalid;
  const bool found = plan::AnyExpr(expr, [&](const plan::Expr& e) {
    const bool of_many = e.kind == plan::ExprKind::kAggregate || e.kind == plan::ExprKind::kWindow;
    invalid = of_many ? e.display : invalid;
    return of_many;
  });
  if (!found) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_EXPR_FOR_OPERATOR",
               statement + " cannot use aggregate and window functions: " + invalid + ".")
      .With("invalidExprSqls", "\"" + invalid + "\"");
}

Result<void> CheckStructs(const DataType& from, const DataType& to, bool may_lack_fields) {
  if (from.kind() != to.kind()) {
    return {};
  }
  if (from.Is(types::TypeKind::kArray)) {
    return CheckStructs(from.element(), to.element(), may_lack_fields);
  }
  if (from.Is(types::TypeKind::kMap)) {
    FLEUVE_TRY(CheckStructs(from.key(), to.key(), may_lack_fields));
    return CheckStructs(from.value(), to.value(), may_lack_fields);
  }
  if (!from.Is(types::TypeKind::kStruct)) {
    return {};
  }
  bool fits = may_lack_fields || from.fields().size() == to.fields().size();
  for (const StructField& field : from.fields()) {
    fits = fits && types::FieldIndex(to, field.name);
  }
  if (!fits) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_UPDATE_SCHEMA_MISMATCH_EXPRESSION",
                 "Cannot cast " + from.SimpleString() + " to " + to.SimpleString() +
                     ": the structs do not have the same fields.")
        .With("fromCatalog", from.SimpleString())
        .With("toCatalog", to.SimpleString());
  }
  for (const StructField& field : from.fields()) {
    FLEUVE_TRY(CheckStructs(field.type, to.fields()[*types::FieldIndex(to, field.name)].type, may_lack_fields));
  }
  return {};
}

plan::PlanPtr UnionOf(std::vector<plan::PlanPtr> plans) {
  if (plans.size() == 1) {
    return std::move(plans[0]);
  }
  auto all = std::make_shared<plan::LogicalPlan>();
  all->kind = plan::PlanKind::kUnion;
  for (plan::Attribute attribute : plans[0]->output) {
    attribute.id = plan::NewAttributeId();
    attribute.nullable = true;
    all->output.push_back(std::move(attribute));
  }
  all->children = std::move(plans);
  return all;
}

ExprPtr IsTrue(const ExprPtr& condition) {
  return plan::MakeCall("eqnullsafe", {condition, plan::MakeLiteral(Value(true), DataType::Boolean())},
                        DataType::Boolean(), false, condition->can_fail);
}

ExprPtr Not(const ExprPtr& condition) {
  return plan::MakeCall("not", {condition}, DataType::Boolean(), condition->nullable, condition->can_fail);
}

Error WriteError(Error error) {
  if (error.condition() == "CAST_OVERFLOW" || error.condition().starts_with("NUMERIC_VALUE_OUT_OF_RANGE")) {
    return Error(error.kind(), "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
                 "A value does not fit the type of its column: " + error.message());
  }
  return error;
}

std::string Millis(std::int64_t from_nanos, std::int64_t to_nanos) {
  return std::to_string((to_nanos - from_nanos) / 1000000);
}

Result<bool> AddAppTransaction(const TableContext& context, const delta::Snapshot& snapshot,
                               std::vector<delta::Action>* actions) {
  FLEUVE_ASSIGN(auto app, ReadAppTransaction({}, context.config));
  if (!app) {
    return false;
  }
  const auto last = snapshot.Transaction(app->app_id);
  if (last && last->version >= app->version) {
    return true;
  }
  app->last_updated = context.logs->context().clock->NowMillis();
  actions->emplace_back(*app);
  return false;
}

RowsResult AffectedRows(std::int64_t count) {
  return {DataType::Struct({{"num_affected_rows", DataType::Long(), true, Json()}}), {{Value(count)}}};
}

namespace {

/// Values by the rest of their paths below one column or field.
using Parts = std::vector<std::pair<std::vector<std::string>, ExprPtr>>;

Error Conflict(const std::string& name, const Parts& parts) {
  std::string names;
  for (const auto& [path, value] : parts) {
    names += (names.empty() ? "`" : ", `") + name + (path.empty() ? "" : "." + Join(path, ".")) + "`";
  }
  return Error(ErrorKind::kInvalidArgument, "DELTA_CONFLICT_SET_COLUMN",
               "There is more than one assignment to " + name + " or to a part of it.")
      .With("columnList", "[" + names + "]");
}

/// `value` for a column of `to`: struct fields by name.
Result<ExprPtr> AssignValue(const ExprPtr& value, const DataType& to, const ExprPtr& old_value,
                            MissingFields missing_fields, const plan::AnalysisConfig& config) {
  if (value->type.Is(types::TypeKind::kStruct) && to.Is(types::TypeKind::kStruct)) {
    bool missing = false;
    for (const StructField& field : to.fields()) {
      missing = missing || !types::FieldIndex(value->type, field.name);
    }
    if (missing && missing_fields == MissingFields::kKept && old_value != nullptr) {
      std::vector<ExprPtr> members;
      for (std::size_t i = 0; i < to.fields().size(); ++i) {
        const StructField& field = to.fields()[i];
        members.push_back(plan::MakeLiteral(Value(field.name), DataType::String()));
        const ExprPtr old_field = plan::MakeGetField(old_value, static_cast<int>(i));
        const auto at = types::FieldIndex(value->type, field.name);
        if (!at) {
          members.push_back(old_field);
          continue;
        }
        FLEUVE_ASSIGN(ExprPtr part, AssignValue(plan::MakeGetField(value, static_cast<int>(*at)), field.type, old_field,
                                                missing_fields, config));
        members.push_back(std::move(part));
      }
      FLEUVE_ASSIGN(ExprPtr made, plan::CallFunction("named_struct", std::move(members), config));
      const ExprPtr is_null = plan::MakeCall("isnull", {value}, DataType::Boolean(), false);
      return plan::MakeCase({is_null, plan::MakeNull(made->type), made}, true, made->type);
    }
  }
  return AlignExpr(value, to, true, config);
}

/// One column (or field) after the assignments whose paths begin with it.
Result<ExprPtr> Update(const ExprPtr& old_value, const DataType& type, const std::string& name, const Parts& parts,
                       MissingFields missing, const plan::AnalysisConfig& config) {
  for (const auto& [path, value] : parts) {
    if (path.empty()) {
      if (parts.size() > 1) {
        return Conflict(name, parts);
      }
      FLEUVE_TRY(CheckStructs(value->type, type, missing != MissingFields::kRefused));
      return AssignValue(value, type, old_value, missing, config);
    }
  }
  if (!type.Is(types::TypeKind::kStruct)) {
    if (type.Is(types::TypeKind::kMap) || type.Is(types::TypeKind::kArray)) {
      return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_NESTED_FIELD_IN_UPDATE",
                   "Only fields of structs can be set: " + name + " is of type " + type.SimpleString() + ".")
          .Family(ErrorFamily::kAnalysis);
    }
    return Error(ErrorKind::kInvalidArgument, "INVALID_EXTRACT_BASE_FIELD_TYPE",
                 "Fields of " + name + " of type " + type.SimpleString() + " cannot be set.")
        .With("base", "\"" + name + "\"")
        .With("other", "\"" + type.Sql() + "\"");
  }
  std::vector<ExprPtr> members;
  std::vector<bool> used(parts.size(), false);
  for (std::size_t i = 0; i < type.fields().size(); ++i) {
    const StructField& field = type.fields()[i];
    Parts inner;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      if (EqualsIgnoreAsciiCase(parts[p].first[0], field.name)) {
        inner.emplace_back(std::vector<std::string>(parts[p].first.begin() + 1, parts[p].first.end()), parts[p].second);
        used[p] = true;
      }
    }
    ExprPtr value = plan::MakeGetField(old_value, static_cast<int>(i));
    if (!inner.empty()) {
      FLEUVE_ASSIGN(value, Update(value, field.type, name + "." + field.name, inner, missing, config));
    }
    members.push_back(plan::MakeLiteral(Value(field.name), DataType::String()));
    members.push_back(std::move(value));
  }
  for (std::size_t p = 0; p < parts.size(); ++p) {
    if (!used[p]) {
      std::string fields;
      for (const StructField& field : type.fields()) {
        fields += (fields.empty() ? "`" : ", `") + field.name + "`";
      }
      return Error(ErrorKind::kInvalidArgument, "FIELD_NOT_FOUND",
                   "No such struct field `" + parts[p].first[0] + "` in " + fields + ".")
          .With("fieldName", "`" + parts[p].first[0] + "`")
          .With("fields", fields);
    }
  }
  return plan::CallFunction("named_struct", std::move(members), config);
}

}  // namespace

bool DropQualifier(std::vector<std::string>* path, const plan::PlanPtr& rows) {
  const auto is_column = [&](const std::string& name, const std::string* qualifier) {
    return std::any_of(rows->output.begin(), rows->output.end(), [&](const plan::Attribute& attribute) {
      return EqualsIgnoreAsciiCase(attribute.name, name) &&
             (qualifier == nullptr ||
              (!attribute.qualifier.empty() && EqualsIgnoreAsciiCase(attribute.qualifier.back(), *qualifier)));
    });
  };
  if (path->size() < 2 || is_column((*path)[0], nullptr) || !is_column((*path)[1], &(*path)[0])) {
    return false;
  }
  path->erase(path->begin());
  return true;
}

Result<std::vector<ExprPtr>> ApplyAssignments(const types::Schema& schema, const std::vector<ExprPtr>& old_values,
                                              const std::vector<Assignment>& assignments, MissingFields missing,
                                              const plan::AnalysisConfig& config,
                                              const std::function<Error(const std::string&)>& unknown) {
  std::vector<Parts> by_column(schema.fields().size());
  for (const Assignment& assignment : assignments) {
    const auto at = types::FieldIndex(schema, assignment.path[0]);
    if (!at) {
      return unknown(Join(assignment.path, "."));
    }
    by_column[*at].emplace_back(std::vector<std::string>(assignment.path.begin() + 1, assignment.path.end()),
                                assignment.value);
  }
  std::vector<ExprPtr> values;
  for (std::size_t i = 0; i < by_column.size(); ++i) {
    if (by_column[i].empty()) {
      values.push_back(old_values[i]);
      continue;
    }
    FLEUVE_ASSIGN(ExprPtr value, Update(old_values[i], schema.fields()[i].type, schema.fields()[i].name, by_column[i],
                                        missing, config));
    values.push_back(std::move(value));
  }
  return values;
}

Result<plan::PlanPtr> RecomputeGenerated(const plan::PlanPtr& rows, const types::Schema& schema,
                                         const std::vector<std::string>& assigned, const plan::AnalysisConfig& config) {
  std::vector<ExprPtr> values;
  bool any = false;
  for (std::size_t i = 0; i < schema.fields().size(); ++i) {
    const StructField& field = schema.fields()[i];
    const std::string* sql = FieldText(field, "delta.generationExpression");
    const bool is_assigned = std::any_of(assigned.begin(), assigned.end(), [&](const std::string& name) {
      return EqualsIgnoreAsciiCase(name, field.name);
    });
    if (sql == nullptr || is_assigned) {
      values.push_back(plan::MakeAttribute(rows->output[i]));
      continue;
    }
    FLEUVE_ASSIGN(ExprPtr value, AnalyzeSql(*sql, rows, config));
    FLEUVE_ASSIGN(value, AlignExpr(value, field.type, true, config));
    values.push_back(std::move(value));
    any = true;
  }
  if (!any) {
    return rows;
  }
  std::vector<StructField> fields = schema.fields();
  for (std::size_t i = fields.size(); i < rows->output.size(); ++i) {
    values.push_back(plan::MakeAttribute(rows->output[i]));
    fields.push_back(plan::FieldOf(rows->output[i]));
  }
  return ProjectTo(rows, std::move(values), DataType::Struct(std::move(fields)));
}

}  // namespace fleuve::tables
