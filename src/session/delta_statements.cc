#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "tables/commands.h"

namespace fleuve::session {

namespace {

/// The Delta table that a relation is, perhaps with time travel; null where it is a view or something else.
std::shared_ptr<const delta::DeltaTable> DeltaTableOf(const plan::PlanPtr& relation) {
  if (relation->kind != plan::PlanKind::kTable) {
    return nullptr;
  }
  if (auto table = std::dynamic_pointer_cast<const delta::DeltaTable>(relation->table)) {
    return table;
  }
  if (const auto pinned = std::dynamic_pointer_cast<const PinnedTable>(relation->table)) {
    return pinned->table();
  }
  return nullptr;
}

}  // namespace

Result<RowsResult> Executor::Clone(const plan::PlanPtr& source, const CloneTarget& asked, SessionResolver& resolver) {
  const auto table = DeltaTableOf(source);
  if (table == nullptr) {
    if (source->kind == plan::PlanKind::kTable && source->table->provider() == "parquet") {
      return Error::Unsupported("SHALLOW CLONE of a Parquet table");
    }
    return Error(ErrorKind::kUnsupported, "DELTA_CLONE_UNSUPPORTED_SOURCE",
                 "Unsupported clone source: only Delta tables can be cloned.");
  }
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(asked.parts, false));
  bool exists = target.row.has_value();
  if (target.is_path) {
    if (target.provider != "delta") {
      return Error::Unsupported("SHALLOW CLONE to the format " + target.provider);
    }
    FLEUVE_ASSIGN(exists, state_.services().logs->Open(target.location)->Exists());
  }
  if (exists && asked.if_not_exists) {
    return RowsResult{tables::CloneResultSchema(), {}};
  }
  if (exists && !asked.replace && !target.is_path) {
    return Error(ErrorKind::kAlreadyExists, "DELTA_TABLE_ALREADY_EXISTS",
                 "Table " + target.display + " already exists.")
        .With("tableName", target.display);
  }
  if (!exists && asked.replace && !asked.or_create) {
    return Error(ErrorKind::kNotFound, "DELTA_CANNOT_REPLACE_MISSING_TABLE",
                 "Table " + QuoteParts(asked.parts) +
                     " cannot be replaced as it does not exist. Use CREATE OR REPLACE TABLE to create the table.")
        .With("tableName", QuoteParts(asked.parts));
  }
  tables::TableRef ref = RefOf(target);
  if (!target.is_path) {
    FLEUVE_TRY(state_.services().catalog->GetDatabase(target.database));
    if (asked.location) {
      FLEUVE_ASSIGN(ref.location, storage::Resolve(*asked.location));
      ref.is_managed = false;
    } else if (!target.row) {
      FLEUVE_ASSIGN(const std::string folder,
                    state_.services().catalog->DefaultTableLocation(target.database, target.name));
      FLEUVE_ASSIGN(ref.location, storage::Resolve(folder));
      ref.is_managed = true;
    }
  }
  tables::CloneSpec spec;
  spec.source = table->snapshot();
  spec.source_name = table->name();
  spec.properties = asked.properties;
  spec.replace = asked.replace;
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  FLEUVE_ASSIGN(tables::RowsResult result, tables::CloneTable(context, ref, spec));
  if (!target.is_path) {
    catalog::Table row;
    row.database = target.database;
    row.name = target.name;
    row.kind = ref.is_managed ? catalog::TableKind::kManaged : catalog::TableKind::kExternal;
    row.provider = "delta";
    row.location = ref.location.path;
    row.comment = table->snapshot()->metadata().description.value_or("");
    row.owner = state_.services().user;
    row.created_ms = state_.services().clock->NowMillis();
    FLEUVE_TRY(state_.services().catalog->CreateTable(std::move(row), target.row.has_value()));
  }
  return RowsResult{std::move(result.schema), std::move(result.rows)};
}

Result<void> Executor::Convert(const std::vector<std::string>& parts, const types::Schema& partition_schema,
                               bool statistics, SessionResolver& resolver) {
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
  if (target.provider == "delta") {
    return {};  // as it should be already
  }
  if (target.row && target.row->kind == catalog::TableKind::kView) {
    return Error(ErrorKind::kUnsupported, "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
                 "Operation not allowed: Converting a view to a Delta table is not supported: " + target.display + ".")
        .With("operation", "Converting a view to a Delta table");
  }
  if (target.provider != "parquet") {
    return Error(ErrorKind::kUnsupported, "DELTA_CONVERT_NON_PARQUET_TABLE",
                 "CONVERT TO DELTA works on Parquet only, not on " + target.display + ".")
        .With("ident", target.display)
        .With("sourceName", target.provider);
  }
  tables::ConvertSpec spec;
  spec.partition_schema = partition_schema;
  spec.statistics = statistics;
  if (target.row && !target.row->partition_columns.empty()) {
    FLEUVE_ASSIGN(const Json json, Json::Parse(target.row->schema_json));
    FLEUVE_ASSIGN(const types::DataType schema, types::DataType::FromJson(json));
    std::vector<types::StructField> fields;
    for (const std::string& name : target.row->partition_columns) {
      if (const auto at = types::FieldIndex(schema, name)) {
        fields.push_back(schema.fields()[*at]);
      }
    }
    spec.partition_schema = types::DataType::Struct(std::move(fields));
  }
  if (target.row && !partition_schema.fields().empty() &&
      !spec.partition_schema.EqualsIgnoringNullability(partition_schema)) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_UNEXPECTED_PARTITION_SCHEMA_FROM_USER",
                 "CONVERT TO DELTA was called with the partition schema " + partition_schema.SimpleString() +
                     ", the catalog has " + spec.partition_schema.SimpleString() + ".")
        .With("catalogPartitionSchema", spec.partition_schema.SimpleString())
        .With("userPartitionSchema", partition_schema.SimpleString());
  }
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  FLEUVE_TRY(tables::ConvertToDelta(context, RefOf(target), spec));
  if (target.row) {
    catalog::Table row = *target.row;
    row.provider = "delta";
    row.schema_json.clear();
    row.partition_columns.clear();
    FLEUVE_TRY(state_.services().catalog->AlterTable(row));
  }
  return {};
}

Result<RowsResult> Executor::DeltaStatement(const pb::Command& command, SessionResolver& resolver) {
  switch (command.kind_case()) {
    case pb::Command::kCloneTable: {
      const pb::CloneTable& clone = command.clone_table();
      FLEUVE_ASSIGN(const plan::PlanPtr source, AnalyzeWith(resolver, clone.source()));
      CloneTarget target;
      target.parts = PartsOf(clone.table());
      if (clone.has_location()) {
        target.location = clone.location();
      }
      target.replace = clone.replace();
      target.or_create = clone.or_create();
      target.if_not_exists = clone.if_not_exists();
      target.properties = ToOptions(clone.properties());
      return Clone(source, target, resolver);
    }
    case pb::Command::kConvertToDelta: {
      const pb::ConvertToDelta& convert = command.convert_to_delta();
      std::vector<types::StructField> fields;
      for (const pb::ColumnDefinition& column : convert.partition_columns()) {
        FLEUVE_ASSIGN(types::DataType type, sql::ParseDataType(column.type()));
        fields.push_back({column.name(column.name_size() - 1), std::move(type), true, Json(Json::Object{})});
      }
      FLEUVE_TRY(Convert(PartsOf(convert.table()), types::DataType::Struct(std::move(fields)), !convert.no_statistics(),
                         resolver));
      return Nothing();
    }
    case pb::Command::kGenerateManifest: {
      const pb::GenerateManifest& generate = command.generate_manifest();
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(PartsOf(generate.table()), resolver, "GENERATE"));
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      FLEUVE_TRY(tables::GenerateManifest(context, table, generate.mode()));
      return Nothing();
    }
    case pb::Command::kReorg: {
      const pb::Reorg& reorg = command.reorg();
      if (AsciiUpper(reorg.apply()).find("PURGE") == std::string::npos) {
        return Error::Unsupported("REORG TABLE ... APPLY (" + reorg.apply() + ")");
      }
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(PartsOf(reorg.table()), resolver, "REORG TABLE"));
      tables::OptimizeSpec spec;
      spec.purge = true;
      if (reorg.has_condition()) {
        spec.where = reorg.condition_sql();
      }
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      return tables::Optimize(context, table, spec);
    }
    default:
      break;
  }
  return Error::Internal("a statement on Delta tables of no kind");
}

}  // namespace fleuve::session
