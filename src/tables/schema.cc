#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/skipping.h"
#include "plan/analyzer.h"
#include "plan/coercion.h"
#include "plan/function_builder.h"
#include "spark/connect/expressions.pb.h"
#include "sql/parser.h"
#include "tables/schema_internal.h"
#include "types/numeric_rank.h"
#include "types/parts.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::TypeKind;

namespace {

Error FailedToMerge(const std::string& table, const std::string& data) {
  return Error(ErrorKind::kInvalidArgument, "DELTA_FAILED_TO_MERGE_FIELDS",
               "Failed to merge fields: the table has " + table + ", the data has " + data + ".")
      .With("currentField", table)
      .With("updateField", data);
}

struct Merger {
  const MergeRules& rules;
  const plan::AnalysisConfig& config;
  /// First column that the table lacks; empty = none.
  std::string extra;

  Result<DataType> Type(const DataType& table, const DataType& data, const std::string& name) {
    if (table.EqualsIgnoringNullability(data) || data.Is(TypeKind::kVoid)) {
      return table;
    }
    if (table.Is(TypeKind::kStruct) && data.Is(TypeKind::kStruct)) {
      return Struct(table, data, name);
    }
    if (table.Is(TypeKind::kArray) && data.Is(TypeKind::kArray)) {
      FLEUVE_ASSIGN(DataType element, Type(table.element(), data.element(), name + ".element"));
      return DataType::Array(std::move(element), table.contains_null());
    }
    if (table.Is(TypeKind::kMap) && data.Is(TypeKind::kMap)) {
      FLEUVE_ASSIGN(DataType key, Type(table.key(), data.key(), name + ".key"));
      FLEUVE_ASSIGN(DataType value, Type(table.value(), data.value(), name + ".value"));
      return DataType::Map(std::move(key), std::move(value), table.contains_null());
    }
    if (table.Is(TypeKind::kVoid) && rules.add_columns) {
      return data;
    }
    if (table.IsString() && data.IsString()) {
      return table;
    }
    // Parquet stores the three smallest integers alike.
    const auto small = [](const DataType& type) {
      return type.Is(TypeKind::kByte) ? 1 : type.Is(TypeKind::kShort) ? 2 : type.Is(TypeKind::kInt) ? 3 : 0;
    };
    if (small(data) > 0 && small(data) < small(table)) {
      return table;
    }
    if (rules.widen && rules.add_columns && MayWidenAutomatically(table, data, config)) {
      return data;
    }
    if (rules.allow_casts && !table.IsNested() && !data.IsNested() && plan::CanCast(data, table, config)) {
      return table;
    }
    return FailedToMerge(name + " " + table.SimpleString(), name + " " + data.SimpleString());
  }

  Result<DataType> Struct(const DataType& table, const DataType& data, const std::string& prefix) {
    std::vector<StructField> fields = table.fields();
    for (const StructField& field : data.fields()) {
      const std::string name = prefix.empty() ? field.name : prefix + "." + field.name;
      const auto at = types::FieldIndex(table, field.name);
      if (at) {
        FLEUVE_ASSIGN(fields[*at].type, Type(table.fields()[*at].type, field.type, name));
        continue;
      }
      if (!rules.add_columns && extra.empty()) {
        extra = name;
      }
      StructField added = field;
      added.type = field.type.AsNullable();
      added.nullable = true;
      fields.push_back(std::move(added));
    }
    return DataType::Struct(std::move(fields));
  }
};

/// Nothing but settings: expressions of a table see no other tables.
class SettingsResolver final : public plan::Resolver {
 public:
  explicit SettingsResolver(const plan::AnalysisConfig& config) : config_(config) {}
  plan::AnalysisConfig Config() override { return config_; }
  Result<plan::ResolvedTable> ResolveTable(const std::vector<std::string>&, const plan::Options&, bool) override {
    return Refuse();
  }
  Result<plan::ResolvedTable> ResolveDataSource(const std::string&, const std::optional<types::Schema>&,
                                                const plan::Options&, const std::vector<std::string>&,
                                                const std::vector<std::string>&, bool) override {
    return Refuse();
  }
  Result<plan::PlanPtr> ResolveCachedRelation(const std::string&) override { return Refuse(); }
  Result<std::string> CachedArtifact(const std::string&) override { return Refuse(); }
  Result<std::shared_ptr<const spark::connect::Relation>> ParseQuery(const std::string&) override { return Refuse(); }
  Result<std::shared_ptr<const spark::connect::Relation>> ParseSql(const spark::connect::SQL&) override {
    return Refuse();
  }

 private:
  static Error Refuse() { return Error::Unsupported("tables and subqueries inside an expression of a table"); }
  const plan::AnalysisConfig& config_;
};

ExprPtr TextLiteral(const std::string& text) { return plan::MakeLiteral(types::Value(text), DataType::String()); }

Result<ExprPtr> Build(const std::string& name, std::vector<ExprPtr> arguments, const plan::AnalysisConfig& config,
                      std::function<Result<ExprPtr>(const std::vector<plan::Attribute>&)> lambda = nullptr,
                      std::size_t arity = 1) {
  plan::FunctionCall call;
  call.name = name;
  call.arguments = std::move(arguments);
  call.argument_names.resize(call.arguments.size());
  call.config = &config;
  if (lambda) {
    call.bind_lambda = [lambda](std::size_t, const std::vector<plan::Attribute>& parameters) -> Result<ExprPtr> {
      FLEUVE_ASSIGN(ExprPtr body, lambda(parameters));
      auto node = std::make_shared<plan::Expr>();
      node->kind = plan::ExprKind::kLambda;
      node->type = body->type;
      node->nullable = body->nullable;
      node->can_fail = body->can_fail;
      node->deterministic = body->deterministic;
      node->children = {body};
      node->parameters = parameters;
      return ExprPtr(node);
    };
    call.lambda_arity = [arity](std::size_t index) { return index == 1 ? arity : 0; };
  } else {
    call.lambda_arity = [](std::size_t) { return std::size_t{0}; };
  }
  return plan::BuildFunction(call);
}

ExprPtr LambdaVariable(const plan::Attribute& parameter) {
  auto node = std::make_shared<plan::Expr>();
  node->kind = plan::ExprKind::kLambdaVariable;
  node->type = parameter.type;
  node->nullable = parameter.nullable;
  node->attribute = parameter;
  node->display = parameter.name;
  return node;
}

/// Changes of the type of one field, from the outside in.
void TypeChangesOf(const DataType& before, const DataType& after, const std::string& path, Json* changes) {
  if (before.Is(TypeKind::kArray) && after.Is(TypeKind::kArray)) {
    TypeChangesOf(before.element(), after.element(), path + (path.empty() ? "element" : ".element"), changes);
    return;
  }
  if (before.Is(TypeKind::kMap) && after.Is(TypeKind::kMap)) {
    TypeChangesOf(before.key(), after.key(), path + (path.empty() ? "key" : ".key"), changes);
    TypeChangesOf(before.value(), after.value(), path + (path.empty() ? "value" : ".value"), changes);
    return;
  }
  if (before.IsNested() || after.IsNested() || before == after || before.Is(TypeKind::kVoid)) {
    return;
  }
  Json one(Json::Object{});
  one.Set("toType", after.ToJson());
  one.Set("fromType", before.ToJson());
  if (!path.empty()) {
    one.Set("fieldPath", Json(path));
  }
  changes->Append(std::move(one));
}

DataType RecordInside(const DataType& before, const DataType& after) {
  if (before.Is(TypeKind::kArray) && after.Is(TypeKind::kArray)) {
    return DataType::Array(RecordInside(before.element(), after.element()), after.contains_null());
  }
  if (before.Is(TypeKind::kMap) && after.Is(TypeKind::kMap)) {
    return DataType::Map(RecordInside(before.key(), after.key()), RecordInside(before.value(), after.value()),
                         after.contains_null());
  }
  if (before.Is(TypeKind::kStruct) && after.Is(TypeKind::kStruct)) {
    return RecordTypeChanges(before, after);
  }
  return after;
}

}  // namespace

types::Schema RecordTypeChanges(const types::Schema& before, const types::Schema& after) {
  std::vector<StructField> fields = after.fields();
  for (StructField& field : fields) {
    const auto at = types::FieldIndex(before, field.name);
    if (!at) {
      continue;
    }
    const DataType& old_type = before.fields()[*at].type;
    Json changes = field.metadata["delta.typeChanges"];
    const Json old_changes = changes;
    TypeChangesOf(old_type, field.type, "", &changes);
    if (!(changes == old_changes)) {
      field.metadata.Set("delta.typeChanges", std::move(changes));
    }
    field.type = RecordInside(old_type, field.type);
  }
  return DataType::Struct(std::move(fields));
}

bool CanWiden(const DataType& from, const DataType& to) {
  const auto rank = [](const DataType& t) { return types::IntegerRank(t.kind()); };
  if (rank(from) > 0 && rank(to) > 0) {
    return rank(from) < rank(to);
  }
  if (from.Is(TypeKind::kFloat) && to.Is(TypeKind::kDouble)) {
    return true;
  }
  if (rank(from) > 0 && rank(from) <= 3 && to.Is(TypeKind::kDouble)) {
    return true;
  }
  if (from.Is(TypeKind::kDate) && to.Is(TypeKind::kTimestampNtz)) {
    return true;
  }
  const auto digits = [](const DataType& t) { return t.precision() - t.scale(); };
  if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal)) {
    return to.scale() >= from.scale() && digits(to) >= digits(from) && !(to == from);
  }
  if (rank(from) > 0 && to.Is(TypeKind::kDecimal)) {
    return digits(to) >= (rank(from) == 4 ? 20 : 10);
  }
  return false;
}

bool MayWidenAutomatically(const DataType& from, const DataType& to, const plan::AnalysisConfig& config) {
  const auto mode = config.conf ? config.conf("spark.databricks.delta.typeWidening.allowAutomaticWidening")
                                : std::optional<std::string>();
  if (!CanWiden(from, to) || (mode && EqualsIgnoreAsciiCase(*mode, "never"))) {
    return false;
  }
  if (mode && EqualsIgnoreAsciiCase(*mode, "same_family_type")) {
    return (from.IsIntegral() && to.IsIntegral()) || from.Is(to.kind()) ||
           (from.Is(TypeKind::kFloat) && to.Is(TypeKind::kDouble));
  }
  return true;
}

Result<types::Schema> MergeSchemas(const types::Schema& table, const types::Schema& data, const MergeRules& rules,
                                   const plan::AnalysisConfig& config) {
  std::set<std::string> seen;
  for (const StructField& field : data.fields()) {
    if (!seen.insert(AsciiLower(field.name)).second) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_DUPLICATE_COLUMNS_FOUND.DATA",
                   "The data has the column " + field.name + " more than once.")
          .With("coltype", "in the data to save")
          .With("duplicateCols", field.name);
    }
  }
  Merger merger{rules, config, {}};
  FLEUVE_ASSIGN(types::Schema merged, merger.Struct(table, data, ""));
  if (!merger.extra.empty()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_METADATA_MISMATCH",
                 "A schema mismatch was found when writing to the table: it has no column " + merger.extra +
                     ". Set the option mergeSchema to true to add it. Table: " + table.SimpleString() +
                     ", data: " + data.SimpleString());
  }
  return merged;
}

Result<ExprPtr> AlignExpr(const ExprPtr& expr, const DataType& to, bool by_name, const plan::AnalysisConfig& config) {
  const DataType& from = expr->type;
  if (from.EqualsIgnoringNullability(to)) {
    return expr;
  }
  if (from.Is(TypeKind::kStruct) && to.Is(TypeKind::kStruct)) {
    std::vector<ExprPtr> arguments;
    if (!by_name && from.fields().size() != to.fields().size()) {
      const bool fewer = from.fields().size() < to.fields().size();
      return Error(ErrorKind::kInvalidArgument,
                   fewer ? "DELTA_INSERT_COLUMN_ARITY_MISMATCH" : "DELTA_METADATA_MISMATCH",
                   "A struct of " + std::to_string(from.fields().size()) + " fields does not fit a struct of " +
                       std::to_string(to.fields().size()) + " fields.");
    }
    for (std::size_t i = 0; i < to.fields().size(); ++i) {
      const StructField& field = to.fields()[i];
      const auto at = by_name ? types::FieldIndex(from, field.name) : std::optional<std::size_t>(i);
      arguments.push_back(TextLiteral(field.name));
      if (!at) {
        arguments.push_back(plan::MakeNull(field.type));
        continue;
      }
      FLEUVE_ASSIGN(ExprPtr value,
                    AlignExpr(plan::MakeGetField(expr, static_cast<int>(*at)), field.type, by_name, config));
      arguments.push_back(std::move(value));
    }
    FLEUVE_ASSIGN(ExprPtr made, Build("named_struct", std::move(arguments), config));
    if (!expr->nullable) {
      return made;
    }
    const ExprPtr is_null = plan::MakeCall("isnull", {expr}, DataType::Boolean(), false);
    return plan::MakeCase({is_null, plan::MakeNull(made->type), made}, true, made->type);
  }
  if (from.Is(TypeKind::kArray) && to.Is(TypeKind::kArray)) {
    return Build("transform", {expr, nullptr}, config, [&](const std::vector<plan::Attribute>& parameters) {
      return AlignExpr(LambdaVariable(parameters[0]), to.element(), by_name, config);
    });
  }
  if (from.Is(TypeKind::kMap) && to.Is(TypeKind::kMap)) {
    ExprPtr map = expr;
    if (!from.value().EqualsIgnoringNullability(to.value())) {
      FLEUVE_ASSIGN(map, Build(
                             "transform_values", {map, nullptr}, config,
                             [&](const std::vector<plan::Attribute>& parameters) {
                               return AlignExpr(LambdaVariable(parameters[1]), to.value(), by_name, config);
                             },
                             2));
    }
    if (!from.key().EqualsIgnoringNullability(to.key())) {
      FLEUVE_ASSIGN(map, Build(
                             "transform_keys", {map, nullptr}, config,
                             [&](const std::vector<plan::Attribute>& parameters) {
                               return AlignExpr(LambdaVariable(parameters[0]), to.key(), by_name, config);
                             },
                             2));
    }
    return map;
  }
  return plan::MakeCast(expr, to, plan::CastMode::kAnsi, config);
}

Result<ExprPtr> AnalyzeSql(const std::string& sql, const plan::PlanPtr& input, const plan::AnalysisConfig& config) {
  sql::ParserOptions options;
  options.session_zone = config.session_zone;
  options.now_micros = config.now_micros;
  FLEUVE_ASSIGN(const auto parsed, sql::ParseExpression(sql, options));
  SettingsResolver resolver(config);
  return plan::AnalyzeExpression(*parsed, input, resolver);
}

std::vector<ExprPtr> SplitAnd(const ExprPtr& condition) {
  std::vector<ExprPtr> out;
  std::vector<ExprPtr> work{condition};
  while (!work.empty()) {
    ExprPtr expr = std::move(work.back());
    work.pop_back();
    if (expr == nullptr) {
      continue;
    }
    if (expr->kind == plan::ExprKind::kCall && expr->function == "and") {
      for (std::size_t i = expr->children.size(); i-- > 0;) {
        work.push_back(expr->children[i]);
      }
    } else {
      out.push_back(std::move(expr));
    }
  }
  return out;
}

namespace {

/// How a type that Delta cannot hold is called in messages; "" for one that it can.
std::string UnsupportedName(const DataType& type) {
  const auto range = [&](const char* name) {
    return std::string(name) + "(" + std::to_string(type.precision()) + "," + std::to_string(type.scale()) + ")";
  };
  switch (type.kind()) {
    case TypeKind::kYearMonthInterval:
      return range("YearMonthIntervalType");
    case TypeKind::kDayTimeInterval:
      return range("DayTimeIntervalType");
    default:
      return {};
  }
}

void FindUnsupported(const DataType& type, const std::string& path, std::string* found) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return FindUnsupported(type.element(), path + "[]", found);
    case TypeKind::kMap:
      FindUnsupported(type.key(), path + "[key]", found);
      return FindUnsupported(type.value(), path + "[value]", found);
    case TypeKind::kStruct:
      for (const StructField& field : type.fields()) {
        FindUnsupported(field.type, path.empty() ? field.name : path + "." + field.name, found);
      }
      return;
    default:
      if (const std::string name = UnsupportedName(type); !name.empty()) {
        *found += (found->empty() ? "" : ", ") + path + ": " + name;
      }
  }
}

Result<void> CheckColumnTypes(const types::Schema& schema) {
  if (types::Holds(schema, TypeKind::kCalendarInterval)) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1183",
                 "Cannot use \"INTERVAL\" type in the table schema.");
  }
  if (types::Holds(schema, TypeKind::kTime)) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_TIME_TYPE", "The data type TIME is not supported.");
  }
  std::string found;
  FindUnsupported(schema, "", &found);
  if (!found.empty()) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_DATA_TYPES",
                 "Found columns using unsupported data types: [" + found + "].")
        .With("dataTypeList", "[" + found + "]")
        .With("config", "spark.databricks.delta.schema.typeCheck.enabled");
  }
  return {};
}

}  // namespace

Result<void> CheckNestedVoid(const types::Schema& data) {
  for (const StructField& field : data.fields()) {
    const char* kind = field.type.Is(TypeKind::kArray) ? "ArrayType" : field.type.Is(TypeKind::kMap) ? "MapType" : "";
    if (*kind != 0 && types::Holds(field.type, TypeKind::kVoid)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE",
                   "Found nested NullType in column " + field.name + " which is of " + kind +
                       ". Delta doesn't support writing NullType in complex types.")
          .With("columName", field.name)
          .With("dataType", kind);
    }
  }
  return {};
}

Result<void> CheckColumns(const types::Schema& schema, bool names_are_mapped) {
  FLEUVE_TRY(CheckColumnTypes(schema));
  std::vector<const DataType*> work{&schema};
  while (!work.empty()) {
    const DataType* type = work.back();
    work.pop_back();
    switch (type->kind()) {
      case TypeKind::kArray:
        work.push_back(&type->element());
        continue;
      case TypeKind::kMap:
        work.push_back(&type->key());
        work.push_back(&type->value());
        continue;
      case TypeKind::kStruct:
        break;
      default:
        continue;
    }
    std::set<std::string> seen;
    for (const StructField& field : type->fields()) {
      if (!seen.insert(AsciiLower(field.name)).second) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_DUPLICATE_COLUMNS_FOUND",
                     "The column " + field.name + " stands more than once.")
            .With("coltype", "in the data to save")
            .With("duplicateCols", field.name);
      }
      if (!names_are_mapped && field.name.find_first_of(" ,;{}()\n\t=") != std::string::npos) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES",
                     "The column name '" + field.name +
                         "' has a character of ' ,;{}()\\n\\t='. Rename it, or switch column mapping on.")
            .With("invalidColumnNames", field.name);
      }
      work.push_back(&field.type);
    }
  }
  return {};
}

Result<std::vector<std::string>> CheckPartitionColumns(const types::Schema& schema,
                                                       const std::vector<std::string>& columns) {
  std::vector<std::string> names;
  for (const std::string& column : columns) {
    const auto at = types::FieldIndex(schema, column);
    if (!at) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_PARTITION_COLUMN_NOT_FOUND",
                   "The partition column " + column + " is not in the schema.")
          .With("columnName", column)
          .With("schemaMap", schema.SimpleString());
    }
    const StructField& field = schema.fields()[*at];
    if (field.type.IsNested() || field.type.Is(TypeKind::kVariant) || field.type.Is(TypeKind::kVoid) ||
        field.type.Is(TypeKind::kCalendarInterval)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_PARTITION_COLUMN_TYPE",
                   "A column of type " + field.type.SimpleString() + " cannot be a partition column.")
          .With("name", field.name)
          .With("dataType", field.type.SimpleString());
    }
    if (std::find(names.begin(), names.end(), field.name) != names.end()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_DUPLICATE_COLUMNS_FOUND",
                   "The partition column " + field.name + " stands more than once.");
    }
    names.push_back(field.name);
  }
  if (!names.empty() && names.size() == schema.fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION",
                 "A table cannot be partitioned by all of its columns.");
  }
  return names;
}

namespace {

DataType StoredType(const DataType& type, bool nullable) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return DataType::Array(StoredType(type.element(), nullable), nullable || type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(StoredType(type.key(), nullable), StoredType(type.value(), nullable),
                           nullable || type.contains_null());
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return DataType::String();
    case TypeKind::kStruct: {
      std::vector<StructField> fields;
      for (const StructField& field : type.fields()) {
        StructField stored = field;
        if (stored.metadata.is_null()) {
          stored.metadata = Json(Json::Object{});
        }
        stored.type = StoredType(field.type, nullable);
        stored.nullable = nullable || field.nullable;
        fields.push_back(std::move(stored));
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

}  // namespace

types::Schema StoredSchema(const types::Schema& schema, bool nullable) {
  std::vector<StructField> fields = StoredType(schema, nullable).fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    // The whole column's type stands at the column, also where the length is inside.
    if (const DataType& declared = schema.fields()[i].type; types::HoldsLengths(declared)) {
      fields[i].metadata.Set("__CHAR_VARCHAR_TYPE_STRING", Json(declared.SimpleString()));
    }
  }
  return DataType::Struct(std::move(fields));
}

types::DataType WithoutFieldMetadata(const DataType& type, const std::function<bool(std::string_view)>& drop) {
  switch (type.kind()) {
    case types::TypeKind::kArray:
      return DataType::Array(WithoutFieldMetadata(type.element(), drop), type.contains_null());
    case types::TypeKind::kMap:
      return DataType::Map(WithoutFieldMetadata(type.key(), drop), WithoutFieldMetadata(type.value(), drop),
                           type.contains_null());
    case types::TypeKind::kStruct: {
      std::vector<types::StructField> fields = type.fields();
      for (types::StructField& field : fields) {
        field.type = WithoutFieldMetadata(field.type, drop);
        Json::Object kept;
        for (const auto& [key, value] : field.metadata.fields()) {
          if (!drop(key)) {
            kept.emplace_back(key, value);
          }
        }
        field.metadata = Json(std::move(kept));
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

std::string SchemaText(const types::Schema& schema) { return schema.ToJson().Dump(); }

const std::string* FieldText(const StructField& field, std::string_view key) {
  const Json* found = field.metadata.Find(key);
  return found != nullptr && found->is_string() ? &found->AsString() : nullptr;
}

namespace {

DataType MapType(const DataType& type, bool new_table, std::int64_t& last_id) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return DataType::Array(MapType(type.element(), new_table, last_id), type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(MapType(type.key(), new_table, last_id), MapType(type.value(), new_table, last_id),
                           type.contains_null());
    case TypeKind::kStruct: {
      std::vector<StructField> fields;
      for (const StructField& field : type.fields()) {
        StructField mapped = field;
        if (mapped.metadata.Find("delta.columnMapping.id") == nullptr) {
          mapped.metadata.Set("delta.columnMapping.id", Json(++last_id));
        }
        if (mapped.metadata.Find("delta.columnMapping.physicalName") == nullptr) {
          mapped.metadata.Set("delta.columnMapping.physicalName", Json(new_table ? "col-" + NewUuid() : field.name));
        }
        mapped.type = MapType(field.type, new_table, last_id);
        fields.push_back(std::move(mapped));
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

std::int64_t LargestId(const DataType& type) {
  std::int64_t largest = 0;
  if (type.Is(TypeKind::kArray)) {
    return LargestId(type.element());
  }
  if (type.Is(TypeKind::kMap)) {
    return std::max(LargestId(type.key()), LargestId(type.value()));
  }
  for (const StructField& field : type.fields()) {
    largest = std::max({largest, field.metadata["delta.columnMapping.id"].AsInt(), LargestId(field.type)});
  }
  return largest;
}

}  // namespace

Result<void> AssignColumnMapping(delta::Metadata& metadata, types::Schema& schema, bool new_table) {
  if (delta::ColumnMappingMode(metadata) == "none") {
    return {};
  }
  std::int64_t last = LargestId(schema);
  if (const std::string* text = delta::FindIn(metadata.configuration, "delta.columnMapping.maxColumnId")) {
    last = std::max<std::int64_t>(last, std::strtoll(text->c_str(), nullptr, 10));
  }
  schema = MapType(schema, new_table, last);
  delta::SetIn(metadata.configuration, "delta.columnMapping.maxColumnId", std::to_string(last));
  metadata.schema_string = SchemaText(schema);
  return {};
}

}  // namespace fleuve::tables
