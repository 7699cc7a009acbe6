#include <algorithm>

#include "base/bytes.h"
#include "plan/call_function.h"
#include "tables/alter_internal.h"
#include "tables/commands.h"
#include "tables/data_files_internal.h"
#include "tables/identity_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::Value;

namespace {

std::int64_t NumberOf(const StructField& field, const char* key, std::int64_t fallback) {
  const Json* value = field.metadata.Find(key);
  return value != nullptr && value->is_int() ? value->AsInt() : fallback;
}

constexpr const char* kHighWaterMark = "delta.identity.highWaterMark";
constexpr const char* kColumnId = "delta.columnMapping.id";

/// True where the column's own mark lies before `mark`, in the direction in which it counts.
bool IsFarther(const StructField& field, std::int64_t mark) {
  const Json* own = field.metadata.Find(kHighWaterMark);
  if (own == nullptr || !own->is_int()) {
    return true;
  }
  return NumberOf(field, "delta.identity.step", 1) > 0 ? mark > own->AsInt() : mark < own->AsInt();
}

std::int64_t NextOf(const StructField& field) {
  const Json* mark = field.metadata.Find(kHighWaterMark);
  const std::int64_t step = NumberOf(field, "delta.identity.step", 1);
  return mark != nullptr && mark->is_int() ? mark->AsInt() + step : NumberOf(field, "delta.identity.start", 1);
}

}  // namespace

bool IsIdentity(const StructField& field) { return field.metadata.Find("delta.identity.start") != nullptr; }

Result<std::vector<std::size_t>> GeneratedIdentities(const std::vector<NamedColumn>& columns,
                                                     const types::Schema& schema) {
  std::vector<std::size_t> generated;
  for (std::size_t i = 0; i < schema.fields().size(); ++i) {
    const StructField& field = schema.fields()[i];
    if (!IsIdentity(field)) {
      continue;
    }
    const bool given = std::any_of(columns.begin(), columns.end(), [&](const NamedColumn& column) {
      return EqualsIgnoreAsciiCase(column.name, field.name);
    });
    if (!given) {
      generated.push_back(i);
      continue;
    }
    const Json* explicit_values = field.metadata.Find("delta.identity.allowExplicitInsert");
    if (explicit_values == nullptr || !explicit_values->is_bool() || !explicit_values->AsBool()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_IDENTITY_COLUMNS_EXPLICIT_INSERT_NOT_SUPPORTED",
                   "Values of the identity column " + field.name + " cannot be given: they are always generated.")
          .With("colName", field.name);
    }
  }
  return generated;
}

plan::PlanPtr FillIdentities(const plan::PlanPtr& rows, const types::Schema& schema,
                             const std::vector<std::size_t>& generated) {
  if (generated.empty()) {
    return rows;
  }
  // One counter serves all columns.
  std::vector<ExprPtr> exprs;
  std::vector<plan::Attribute> output = rows->output;
  for (const plan::Attribute& attribute : rows->output) {
    exprs.push_back(plan::MakeAttribute(attribute));
  }
  plan::Attribute counter;
  counter.id = plan::NewAttributeId();
  counter.name = "__count";
  counter.type = DataType::Long();
  counter.nullable = false;
  exprs.push_back(plan::MakeCall("spark_monotonically_increasing_id", {}, DataType::Long(), false, false, false));
  output.push_back(counter);
  const plan::PlanPtr counted = plan::MakeProject(rows, std::move(exprs), std::move(output));
  std::vector<ExprPtr> values;
  std::vector<plan::Attribute> result;
  for (std::size_t i = 0; i < rows->output.size(); ++i) {
    plan::Attribute attribute = rows->output[i];
    ExprPtr value = plan::MakeAttribute(attribute);
    if (std::find(generated.begin(), generated.end(), i) != generated.end()) {
      const StructField& field = schema.fields()[i];
      const auto literal = [](std::int64_t number) { return plan::MakeLiteral(Value(number), DataType::Long()); };
      value = plan::MakeCall(
          "spark_add",
          {literal(NextOf(field)),
           plan::MakeCall("spark_multiply",
                          {plan::MakeAttribute(counter), literal(NumberOf(field, "delta.identity.step", 1))},
                          DataType::Long(), false, true)},
          DataType::Long(), false, true);
      attribute.nullable = false;
    }
    attribute.id = plan::NewAttributeId();
    values.push_back(std::move(value));
    result.push_back(std::move(attribute));
  }
  return plan::MakeProject(counted, std::move(values), std::move(result));
}

types::Schema AdvanceIdentities(const types::Schema& schema, const std::vector<std::size_t>& generated,
                                std::int64_t row_count) {
  std::vector<StructField> fields = schema.fields();
  for (const std::size_t i : generated) {
    const std::int64_t step = NumberOf(fields[i], "delta.identity.step", 1);
    fields[i].metadata.Set(kHighWaterMark, Json(NextOf(fields[i]) + step * (row_count - 1)));
  }
  return DataType::Struct(std::move(fields));
}

types::Schema KeepFarthestMarks(const types::Schema& restored, const types::Schema& current) {
  std::vector<StructField> fields = restored.fields();
  for (StructField& field : fields) {
    const auto other =
        std::find_if(current.fields().begin(), current.fields().end(), [&](const StructField& candidate) {
          const Json* own_id = field.metadata.Find(kColumnId);
          const Json* other_id = candidate.metadata.Find(kColumnId);
          return own_id != nullptr && other_id != nullptr ? *own_id == *other_id
                                                          : EqualsIgnoreAsciiCase(candidate.name, field.name);
        });
    if (!IsIdentity(field) || other == current.fields().end() || !IsIdentity(*other)) {
      continue;
    }
    const Json* mark = other->metadata.Find(kHighWaterMark);
    if (mark != nullptr && mark->is_int() && IsFarther(field, mark->AsInt())) {
      field.metadata.Set(kHighWaterMark, Json(mark->AsInt()));
    }
  }
  return DataType::Struct(std::move(fields));
}

Result<void> CheckIdentities(const types::Schema& schema, const std::vector<std::string>& partition_by) {
  for (const StructField& field : schema.fields()) {
    if (!IsIdentity(field)) {
      continue;
    }
    if (!field.type.Is(types::TypeKind::kLong)) {
      return Error(ErrorKind::kUnsupported, "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
                   "The identity column " + field.name + " must be BIGINT, not " + field.type.Sql() + ".")
          .With("dataType", field.type.SimpleString());
    }
    if (NumberOf(field, "delta.identity.step", 1) == 0) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP",
                   "The step of the identity column " + field.name + " must not be 0.");
    }
    if (FieldText(field, "delta.generationExpression") != nullptr) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
                   "The column " + field.name + " cannot be an identity column and have a generation expression.");
    }
    if (std::any_of(partition_by.begin(), partition_by.end(),
                    [&](const std::string& name) { return EqualsIgnoreAsciiCase(name, field.name); })) {
      return Error(ErrorKind::kUnsupported, "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
                   "A table cannot be partitioned by its identity column " + field.name + ".")
          .With("colName", field.name);
    }
  }
  return {};
}

Result<void> SyncIdentity(const TableContext& context, const TableRef& table, const std::vector<std::string>& path) {
  return Alter(context, table, "SYNC IDENTITY", [&](Alteration& a) -> Result<void> {
    const auto at = path.size() == 1 ? types::FieldIndex(a.schema, path[0]) : std::nullopt;
    if (!at || !IsIdentity(a.schema.fields()[*at])) {
      return Error(
          ErrorKind::kInvalidArgument, "DELTA_IDENTITY_COLUMNS_ALTER_NON_IDENTITY_COLUMN",
          "ALTER TABLE ALTER COLUMN SYNC IDENTITY works on identity columns only, not on " + Join(path, ".") + ".");
    }
    std::vector<StructField> fields = a.schema.fields();
    StructField& field = fields[*at];
    const std::int64_t step = NumberOf(field, "delta.identity.step", 1);
    const std::int64_t start = NumberOf(field, "delta.identity.start", 1);
    const plan::PlanPtr leaf = TableLeaf(a.snapshot, table.name);
    FLEUVE_ASSIGN(const ExprPtr farthest, plan::CallFunction(step > 0 ? "max" : "min",
                                                             {plan::MakeAttribute(leaf->output[*at])}, context.config));
    FLEUVE_ASSIGN(const plan::PlanPtr plan, AggregateAll(leaf, {farthest}));
    FLEUVE_ASSIGN(const auto rows, RunRows(context, plan));
    a.reads_table = true;
    a.parameters.Set("columns", Json(Json(Json::Array{Json(field.name)}).Dump()));
    if (rows.empty() || rows[0][0].is_null()) {
      a.changed = false;
      return {};
    }
    const std::int64_t value = rows[0][0].integer();
    // Values on the wrong side of the start say nothing; others are rounded to the next one that the column may give.
    const bool behind = step > 0 ? value < start : value > start;
    std::int64_t mark = value;
    if (const std::int64_t rest = (value - start) % step; rest != 0) {
      mark = value - rest + step;
    }
    if (behind || !IsFarther(field, mark)) {
      a.changed = false;
      return {};
    }
    field.metadata.Set(kHighWaterMark, Json(mark));
    a.schema = DataType::Struct(std::move(fields));
    a.metadata.schema_string = SchemaText(a.schema);
    return {};
  });
}

}  // namespace fleuve::tables
