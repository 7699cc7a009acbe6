#include "tables/create.h"

#include "base/bytes.h"
#include "connectors/files/file_table.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"

namespace fleuve::session {

using types::DataType;
using types::StructField;

plan::Options ToOptions(const google::protobuf::RepeatedPtrField<pb::Property>& properties) {
  plan::Options options;
  for (const pb::Property& property : properties) {
    options[property.key()] = property.value();
  }
  return options;
}

std::vector<std::string> PartsOf(const pb::Name& name) { return {name.parts().begin(), name.parts().end()}; }

Result<void> Executor::MakeTable(const TableTarget& target, const NewTable& table) {
  if (table.query != nullptr && table.query->is_streaming) {
    return Error(
        ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3102",
        "Queries with streaming sources must be executed with writeStream.start(), or from a streaming table or flow "
        "definition within a Spark Declarative Pipeline.;");
  }
  if (table.provider != "delta" && !connectors::files::IsFileFormat(table.provider)) {
    return UnknownProvider(table.provider, "tables");
  }
  if (!target.is_path) {
    FLEUVE_TRY(state_.services().catalog->GetDatabase(target.database));
    if (AsciiLower(target.name) != target.name) {
      return Error::Unsupported("a table name with capital letters where spark.sql.caseSensitive is true");
    }
  }
  tables::TableRef ref = RefOf(target);
  bool managed = false;
  if (!target.is_path) {
    if (target.row && table.location.empty()) {
      ref.location = target.location;
      managed = target.row->kind == catalog::TableKind::kManaged;
    } else if (!table.location.empty()) {
      FLEUVE_ASSIGN(ref.location, storage::Resolve(table.location));
    } else {
      FLEUVE_ASSIGN(const std::string folder,
                    state_.services().catalog->DefaultTableLocation(target.database, target.name));
      FLEUVE_ASSIGN(ref.location, storage::Resolve(folder));
      managed = true;
    }
    ref.is_managed = managed;
  }
  catalog::Table row;
  row.database = target.database;
  row.name = target.name;
  row.kind = managed ? catalog::TableKind::kManaged : catalog::TableKind::kExternal;
  row.provider = table.provider;
  row.location = ref.location.path;
  row.comment = table.comment.value_or("");
  row.owner = state_.services().user;
  row.created_ms = state_.services().clock->NowMillis();
  if (table.provider == "delta") {
    tables::CreateSpec spec;
    spec.schema = table.schema;
    spec.partition_by = table.partition_by;
    spec.cluster_by = table.cluster_by;
    spec.comment = table.comment;
    spec.properties = table.properties;
    spec.query = table.query;
    spec.replace = table.replace;
    spec.operation = table.operation;
    spec.options = table.options;
    FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
    FLEUVE_TRY(tables::CreateTable(context, ref, spec));
  } else {
    if (!table.cluster_by.empty()) {
      return Error::Unsupported("CLUSTER BY for tables of the format " + table.provider);
    }
    if (table.replace && target.row) {
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                   "The feature is not supported: Table " + QuoteParts(Split(target.display, '.')) +
                       " does not support REPLACE TABLE.");
    }
    row.partition_columns = table.partition_by;
    row.properties = {table.properties.begin(), table.properties.end()};
    row.options = {table.options.begin(), table.options.end()};
    types::Schema schema = table.schema;
    if (table.query != nullptr) {
      schema = plan::SchemaOf(*table.query).AsNullable();
      FLEUVE_TRY(WriteFiles(table.provider, ref.location.path, table.query,
                            managed ? tables::SaveMode::kOverwrite : tables::SaveMode::kErrorIfExists,
                            table.partition_by, table.options));
    } else if (schema.fields().empty() && !managed) {
      connectors::files::FileReadRequest request;
      request.format = table.provider;
      request.options = table.options;
      request.paths = {ref.location.path};
      FLEUVE_ASSIGN(const auto source, connectors::files::MakeFileTable(request, state_.AnalysisSettings()));
      schema = source->schema();
    } else if (managed) {
      FLEUVE_TRY(ref.location.store->CreateDirectory(ref.location.path));
    }
    // Partition columns stand last, as Spark lays such tables out.
    std::vector<StructField> ordered;
    std::vector<StructField> partitions;
    for (const StructField& field : schema.fields()) {
      bool partition = false;
      for (const std::string& name : table.partition_by) {
        partition = partition || EqualsIgnoreAsciiCase(name, field.name);
      }
      (partition ? partitions : ordered).push_back(field);
    }
    if (partitions.size() != table.partition_by.size()) {
      return Error(ErrorKind::kInvalidArgument, "COLUMN_NOT_DEFINED_IN_TABLE",
                   "A partition column is not defined in table " + QuoteParts(Split(target.display, '.')) + ".");
    }
    ordered.insert(ordered.end(), partitions.begin(), partitions.end());
    row.schema_json = DataType::Struct(std::move(ordered)).ToJson().Dump();
  }
  if (target.is_path) {
    return {};
  }
  return state_.services().catalog->CreateTable(std::move(row), target.row.has_value());
}

Result<StructField> DeclaredColumn(const pb::ColumnDefinition& column) {
  StructField field;
  field.name = column.name().empty() ? "" : column.name(column.name_size() - 1);
  FLEUVE_ASSIGN(field.type, sql::ParseDataType(column.type()));
  if (column.has_collation()) {
    field.type = DataType::String(column.collation());
  }
  field.nullable = !column.not_null();
  if (column.has_comment()) {
    field.metadata.Set("comment", Json(column.comment()));
  }
  if (column.has_default_sql()) {
    field.metadata.Set("CURRENT_DEFAULT", Json(column.default_sql()));
    field.metadata.Set("EXISTS_DEFAULT", Json(column.default_sql()));
  }
  if (column.has_generated_sql()) {
    field.metadata.Set("delta.generationExpression", Json(column.generated_sql()));
  }
  if (column.has_identity()) {
    field.metadata.Set("delta.identity.start", Json(static_cast<std::int64_t>(column.identity().start())));
    field.metadata.Set("delta.identity.step", Json(static_cast<std::int64_t>(column.identity().step())));
    field.metadata.Set("delta.identity.allowExplicitInsert", Json(!column.identity().always()));
  }
  return field;
}

Result<RowsResult> Executor::CreateTable(const pb::CreateTable& create, SessionResolver& resolver) {
  if (create.temporary()) {
    return Error::Unsupported("CREATE TEMPORARY TABLE");
  }
  if (!create.hive_clauses().empty()) {
    return Error::Unsupported("the Hive clause " + create.hive_clauses(0));
  }
  if (create.has_bucket()) {
    return Error(ErrorKind::kUnsupported, "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
                 "Operation not allowed: `Bucketing` is not supported for Delta tables")
        .With("operation", "Bucketing");
  }
  if (create.cluster_by_auto()) {
    return Error::Unsupported("CLUSTER BY AUTO");
  }
  const std::vector<std::string> parts = PartsOf(create.table());
  FLEUVE_ASSIGN(TableTarget target, resolver.Target(parts, false));
  bool exists = target.row.has_value();
  if (target.is_path && target.provider == "delta") {
    FLEUVE_ASSIGN(exists, state_.services().logs->Open(target.location)->Exists());
  }
  if (exists && !create.replace()) {
    if (create.if_not_exists()) {
      return Nothing();
    }
    if (!target.is_path && create.has_like() && target.provider == "delta") {
      return Error(ErrorKind::kAlreadyExists, "DELTA_TABLE_ALREADY_EXISTS",
                   "Table " + target.display + " already exists.")
          .With("tableName", target.display);
    }
    if (!target.is_path) {
      return TableExists(target.display);
    }
  }
  if (!exists && create.replace() && !create.or_create()) {
    return TableNotFound(parts);
  }
  if (target.row && target.row->kind == catalog::TableKind::kView) {
    return TableExists(target.display);
  }
  NewTable table;
  table.provider =
      target.is_path ? target.provider
                     : AsciiLower(create.has_provider() ? create.provider()
                                                        : state_.config().GetOr("spark.sql.sources.default", "delta"));
  table.location = create.location();
  table.options = ToOptions(create.options());
  if (const std::string* path = plan::FindOption(table.options, "path"); path != nullptr && table.location.empty()) {
    table.location = *path;
    std::erase_if(table.options, [](const auto& entry) { return EqualsIgnoreAsciiCase(entry.first, "path"); });
  }
  table.properties = ToOptions(create.properties());
  if (create.has_comment()) {
    table.comment = create.comment();
  }
  table.replace = create.replace();
  if (create.has_like()) {
    FLEUVE_ASSIGN(const plan::ResolvedTable like, resolver.ResolveTable(PartsOf(create.like()), {}, false));
    FLEUVE_ASSIGN(const TableTarget source, resolver.Target(PartsOf(create.like()), false));
    table.schema = like.table != nullptr ? like.table->schema() : plan::SchemaOf(*like.view_plan);
    if (!create.has_provider() && source.row && !source.row->provider.empty()) {
      table.provider = AsciiLower(source.row->provider);
    }
    if (const auto delta = std::dynamic_pointer_cast<const delta::DeltaTable>(like.table); delta != nullptr) {
      for (const StructField& field : delta->snapshot()->partition_schema().fields()) {
        table.partition_by.push_back(field.name);
      }
      for (const auto& [key, value] : delta->snapshot()->metadata().configuration) {
        // What a table keeps for its own use does not pass on.
        if (!key.starts_with("delta.rowTracking.materialized") && key != "delta.columnMapping.maxColumnId" &&
            !key.starts_with("delta.inCommitTimestampEnablement") &&
            key != "delta.requireCheckpointProtectionBeforeVersion") {
          table.properties.emplace(key, value);
        }
      }
    } else if (source.row) {
      table.partition_by = source.row->partition_columns;
    }
  } else {
    std::vector<StructField> fields;
    for (const pb::ColumnDefinition& column : create.columns()) {
      FLEUVE_ASSIGN(StructField field, DeclaredColumn(column));
      fields.push_back(std::move(field));
    }
    for (const pb::ColumnDefinition& column : create.partition_columns()) {
      FLEUVE_ASSIGN(StructField field, DeclaredColumn(column));
      table.partition_by.push_back(field.name);
      fields.push_back(std::move(field));
    }
    table.schema = DataType::Struct(std::move(fields));
  }
  for (const pb::Transform& transform : create.partitioned_by()) {
    if (transform.function() != "identity") {
      return Error::Unsupported("partitioning by " + transform.function() + "()");
    }
    table.partition_by.push_back(Join({transform.column().begin(), transform.column().end()}, "."));
  }
  for (const pb::Name& column : create.cluster_by()) {
    table.cluster_by.push_back(Join(PartsOf(column), "."));
  }
  if (create.has_query()) {
    FLEUVE_ASSIGN(table.query, AnalyzeWith(resolver, create.query()));
    if (!create.columns().empty()) {
      return Error(ErrorKind::kInvalidArgument, "PARSE_SYNTAX_ERROR",
                   "Schema may not be specified in a Create Table As Select (CTAS) statement.");
    }
  }
  const std::string suffix = create.has_query() ? " AS SELECT" : "";
  table.operation = (!create.replace()    ? std::string("CREATE TABLE")
                     : create.or_create() ? std::string("CREATE OR REPLACE TABLE")
                                          : std::string("REPLACE TABLE")) +
                    suffix;
  if (create.constraints_size() > 0) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                 "The feature is not supported: Table " + QuoteParts(parts) +
                     " does not support table constraints in CREATE TABLE. Add CHECK constraints with ALTER TABLE ... "
                     "ADD "
                     "CONSTRAINT.")
        .With("tableName", QuoteParts(parts))
        .With("operation", "table constraint")
        .Family(ErrorFamily::kAnalysis);
  }
  FLEUVE_TRY(MakeTable(target, table));
  return Nothing();
}

}  // namespace fleuve::session
