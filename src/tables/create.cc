#include "tables/create.h"

#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "delta/transaction.h"
#include "tables/clustering_internal.h"
#include "tables/column_default_internal.h"
#include "tables/create_parameters_internal.h"
#include "tables/data_files_internal.h"
#include "tables/identity_internal.h"
#include "tables/insert_columns_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;

namespace {

std::string JsonList(const std::vector<std::string>& items) {
  Json::Array array;
  for (const std::string& item : items) {
    array.emplace_back(item);
  }
  return Json(std::move(array)).Dump();
}

std::string JsonMap(const delta::StringMap& map) {
  Json object(Json::Object{});
  for (const auto& [key, value] : map) {
    object.Set(key, Json(value));
  }
  return object.Dump();
}

}  // namespace

Json CreateParameters(const TableRef& table, const delta::Metadata& metadata,
                      const std::vector<std::string>& cluster_by, const std::optional<std::string>& comment) {
  Json parameters(Json::Object{});
  parameters.Set("partitionBy", Json(JsonList(metadata.partition_columns)));
  parameters.Set("clusterBy", Json(JsonList(cluster_by)));
  parameters.Set("description", comment ? Json(*comment) : Json());
  parameters.Set("isManaged", Json(table.is_managed ? "true" : "false"));
  parameters.Set("properties", Json(JsonMap(metadata.configuration)));
  return parameters;
}

namespace {

/// What SQL's own rules say of a definition, before Delta's.
Result<std::vector<std::string>> CheckDefinition(const types::Schema& schema,
                                                 const std::vector<std::string>& partition_by,
                                                 const std::vector<std::string>& cluster_by) {
  std::set<std::string> seen;
  for (const StructField& field : schema.fields()) {
    if (!seen.insert(AsciiLower(field.name)).second) {
      return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                   "The column `" + AsciiLower(field.name) + "` already exists. Choose another name.")
          .With("columnName", "`" + AsciiLower(field.name) + "`");
    }
  }
  std::vector<std::string> names;
  for (const std::string& column : partition_by) {
    const auto at = types::FieldIndex(schema, column);
    if (!at) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3060",
                   "Couldn't find column " + column + " in: " + schema.SimpleString())
          .Family(ErrorFamily::kAnalysis);
    }
    const StructField& field = schema.fields()[*at];
    if (field.type.IsNested() || field.type.Is(types::TypeKind::kVariant)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PARTITION_COLUMN_DATA_TYPE",
                   "Cannot use " + field.type.Sql() + " for a partition column.")
          .With("type", field.type.Sql());
    }
    if (std::find(names.begin(), names.end(), field.name) != names.end()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3058",
                   "Found duplicate column(s) in the partition columns: `" + AsciiLower(field.name) + "`.")
          .Family(ErrorFamily::kAnalysis);
    }
    names.push_back(field.name);
  }
  std::set<std::string> clustered;
  for (const std::string& column : cluster_by) {
    if (!types::FieldIndex(schema, Split(column, '.')[0])) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.PARTITION_WITH_NESTED_COLUMN_IS_UNSUPPORTED",
                   "The feature is not supported: Invalid partitioning: `" + column +
                       "` is missing or is in a map or array.")
          .With("cols", "`" + column + "`")
          .Family(ErrorFamily::kAnalysis);
    }
    if (!clustered.insert(AsciiLower(column)).second) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_DUPLICATE_COLUMNS_FOUND.CLUSTER_BY",
                   "Found duplicate column(s): " + column + ". The duplicate was found in CLUSTER BY.")
          .With("duplicateCols", column);
    }
  }
  if (!names.empty() && names.size() == schema.fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
                 "Cannot use all columns for partition columns.");
  }
  return names;
}

bool SameSchema(const types::Schema& a, const types::Schema& b) {
  if (a.fields().size() != b.fields().size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.fields().size(); ++i) {
    if (a.fields()[i].name != b.fields()[i].name || a.fields()[i].nullable != b.fields()[i].nullable ||
        !a.fields()[i].type.EqualsIgnoringNullability(b.fields()[i].type)) {
      return false;
    }
  }
  return true;
}

Result<void> CheckExisting(const delta::Snapshot& snapshot, const CreateSpec& spec, const types::Schema& declared,
                           const std::vector<std::string>& partition_by, const delta::StringMap& properties) {
  if (spec.schema.fields().empty()) {
    return {};
  }
  if (!SameSchema(delta::ReadSchemaOf(snapshot.schema()), delta::ReadSchemaOf(declared))) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
                 "The declared schema is not that of the table at " + snapshot.location().path + ": declared " +
                     declared.SimpleString() + ", there " + snapshot.schema().SimpleString())
        .With("path", snapshot.location().path)
        .With("specifiedSchema", declared.SimpleString())
        .With("existingSchema", snapshot.schema().SimpleString())
        .With("schemaDifferences", "");
  }
  if (partition_by != snapshot.metadata().partition_columns) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
                 "The declared partitioning is not that of the table at " + snapshot.location().path + ".")
        .With("path", snapshot.location().path)
        .With("specifiedColumns", Join(partition_by, ", "))
        .With("existingColumns", Join(snapshot.metadata().partition_columns, ", "));
  }
  for (const auto& [key, value] : properties) {
    const std::string* there = snapshot.Property(key);
    if (!key.starts_with("delta.feature.") && (there == nullptr || *there != value)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
                   "The declared property " + key + " is not that of the table at " + snapshot.location().path + ".")
          .With("path", snapshot.location().path);
    }
  }
  return {};
}

/// Defaults are constants of their own: no subquery.
Result<void> CheckDefaults(const types::Schema& schema, const plan::AnalysisConfig& config) {
  for (const StructField& field : schema.fields()) {
    const std::string* sql = FieldText(field, "CURRENT_DEFAULT");
    if (sql == nullptr) {
      continue;
    }
    FLEUVE_TRY(CheckDefault(*sql, field, config));
  }
  return {};
}

/// Generation expressions are computed from the row's other, stored columns, the same way each time.
Result<void> CheckGenerated(const types::Schema& schema, const plan::AnalysisConfig& config) {
  std::shared_ptr<plan::LogicalPlan> leaf;
  for (const StructField& field : schema.fields()) {
    const std::string* sql = FieldText(field, "delta.generationExpression");
    if (sql == nullptr) {
      continue;
    }
    if (leaf == nullptr) {
      leaf = std::make_shared<plan::LogicalPlan>();
      leaf->kind = plan::PlanKind::kRows;
      leaf->output = plan::AttributesOf(schema);
    }
    FLEUVE_ASSIGN(const plan::ExprPtr value, AnalyzeSql(*sql, leaf, config));
    if (!value->deterministic) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NON_DETERMINISTIC_EXPRESSION_IN_GENERATED_COLUMN",
                   "The generation expression " + *sql + " of column " + field.name + " is not deterministic.")
          .With("expr", *sql);
    }
    if (plan::AnyExpr(value, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kAggregate; })) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_AGGREGATE_IN_GENERATED_COLUMN",
                   "The generation expression " + *sql + " of column " + field.name + " holds an aggregate.")
          .With("sqlExpr", *sql);
    }
    const bool other = plan::AnyExpr(value, [&](const plan::Expr& e) {
      if (e.kind != plan::ExprKind::kAttribute) {
        return false;
      }
      const auto at = types::FieldIndex(schema, e.attribute.name);
      return at && FieldText(schema.fields()[*at], "delta.generationExpression") != nullptr;
    });
    if (other) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_GENERATED_COLUMN_REFERENCES",
                   "The generation expression " + *sql + " of column " + field.name +
                       " refers to a column that is generated itself.");
    }
  }
  return {};
}

bool HasDefaults(const types::Schema& schema) {
  return std::any_of(schema.fields().begin(), schema.fields().end(),
                     [](const StructField& f) { return FieldText(f, "CURRENT_DEFAULT") != nullptr; });
}

}  // namespace

Result<types::Schema> CreateTable(const TableContext& context, const TableRef& table, const CreateSpec& spec) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  delta::SnapshotPtr snapshot;
  if (auto latest = log->Latest(); latest.ok()) {
    snapshot = *latest;
  } else if (latest.error().condition() != "DELTA_TABLE_NOT_FOUND") {
    return std::move(latest).error();
  }
  types::Schema declared = spec.schema;
  std::vector<NamedColumn> columns;
  bool narrows = false;
  if (spec.query != nullptr) {
    WriteSpec by_name;
    FLEUVE_ASSIGN(columns, ResolveInputColumns(spec.query, nullptr, {}, by_name, context.config, false, &narrows));
    std::vector<StructField> fields;
    for (const plan::Attribute& attribute : spec.query->output) {
      if (!attribute.hidden) {
        fields.push_back(plan::FieldOf(attribute));
      }
    }
    declared = DataType::Struct(std::move(fields));
    FLEUVE_TRY(CheckNestedVoid(declared));
  }
  FLEUVE_ASSIGN(const std::vector<std::string> partition_by,
                CheckDefinition(declared, spec.partition_by, spec.cluster_by));
  plan::Options given = spec.properties;
  for (const auto& [key, value] : spec.options) {
    if (AsciiLower(key).starts_with("delta.")) {
      given.emplace(key, value);
    }
  }
  FLEUVE_ASSIGN(const delta::StringMap properties, CheckProperties(given));
  types::Schema schema = StoredSchema(declared, spec.query != nullptr);

  if (snapshot != nullptr && !spec.replace) {
    if (spec.query != nullptr) {
      return Error(ErrorKind::kAlreadyExists, "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
                   "There is a table at " + table.location.path + " already.")
          .With("tableId", table.name)
          .With("tableLocation", table.location.path);
    }
    FLEUVE_TRY(CheckExisting(*snapshot, spec, schema, partition_by, properties));
    return delta::ReadSchemaOf(snapshot->schema());
  }
  if (snapshot == nullptr) {
    const auto there = table.location.store->List(table.location.path);
    if (there.ok()) {
      const bool has_files = std::any_of(there->begin(), there->end(), [](const storage::ObjectMeta& meta) {
        const std::string name = meta.path.substr(meta.path.rfind('/') + 1);
        return !name.starts_with(".") && !name.starts_with("_");
      });
      if (has_files) {
        return Error(ErrorKind::kAlreadyExists, "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION",
                     "The folder " + table.location.path + " is not empty and holds no Delta table.")
            .With("tableId", table.name)
            .With("tableLocation", table.location.path);
      }
    }
  }

  delta::Metadata metadata;
  metadata.id = snapshot == nullptr ? NewUuid() : snapshot->metadata().id;
  metadata.created_time = context.logs->context().clock->NowMillis();
  metadata.description = spec.comment;
  metadata.configuration = DefaultProperties(context.config);
  for (const auto& [key, value] : properties) {
    delta::SetIn(metadata.configuration, key, value);
  }
  metadata.partition_columns = partition_by;
  FLEUVE_TRY(CheckColumns(schema, delta::ColumnMappingMode(metadata) != "none"));
  if (const std::string* feed = delta::FindIn(metadata.configuration, "delta.enableChangeDataFeed");
      feed != nullptr && EqualsIgnoreAsciiCase(*feed, "true")) {
    for (const char* reserved : {"_change_type", "_commit_version", "_commit_timestamp"}) {
      if (types::FieldIndex(schema, reserved)) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
                     std::string("The change data feed cannot be enabled: the table has a column ") + reserved + ".")
            .With("columnList", reserved);
      }
    }
  }
  FLEUVE_TRY(CheckDefaults(schema, context.config));
  FLEUVE_TRY(CheckIdentities(schema, partition_by));
  FLEUVE_TRY(CheckGenerated(schema, context.config));
  FLEUVE_TRY(CheckStatisticsColumns(metadata, schema));
  metadata.schema_string = SchemaText(schema);
  FLEUVE_TRY(AssignColumnMapping(metadata, schema, true));
  if (HasDefaults(schema) && delta::FindIn(metadata.configuration, "delta.feature.allowColumnDefaults") == nullptr &&
      (snapshot == nullptr || !delta::HasFeature(snapshot->protocol(), "allowColumnDefaults"))) {
    return Error(ErrorKind::kInvalidArgument, "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                 "Column defaults need the table feature allowColumnDefaults: set the table property "
                 "'delta.feature.allowColumnDefaults' = 'supported'.");
  }
  std::vector<delta::Action> actions;
  if (!spec.cluster_by.empty()) {
    FLEUVE_ASSIGN(delta::DomainMetadata domain, ClusteringDomain(schema, metadata, spec.cluster_by));
    delta::SetIn(metadata.configuration, "delta.feature.clustering", "supported");
    actions.emplace_back(std::move(domain));
  } else if (snapshot != nullptr && snapshot->Domain("delta.clustering")) {
    if (!partition_by.empty()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
                   "Replacing a clustered Delta table with a partitioned table is not allowed.");
    }
    actions.emplace_back(delta::DomainMetadata{
        "delta.clustering", "{\"clusteringColumns\":[],\"domainName\":\"delta.clustering\"}", false});
  }

  delta::Transaction transaction(log, snapshot);
  const bool replaces = snapshot != nullptr;
  if (replaces) {
    transaction.ReadWholeTable();
  }
  FLEUVE_TRY(transaction.UpdateMetadata(metadata));
  metadata = transaction.metadata();

  DataFiles written;
  if (spec.query != nullptr) {
    FLEUVE_ASSIGN(const WriteOptions options, ReadWriteOptions(spec.options, context.config));
    FLEUVE_ASSIGN(const plan::PlanPtr rows, FillColumns(spec.query, columns, schema, context.config));
    FLEUVE_ASSIGN(const auto constraints, ConstraintsOf(metadata, schema, rows, context.config));
    DataFileOptions files;
    files.max_file_rows = options.max_records_per_file.value_or(0);
    if (options.compression) {
      files.compression = *options.compression;
    }
    files.by_task = true;
    files.empty_file = true;
    FLEUVE_ASSIGN(written, WriteDataFiles(context, table.location, metadata, schema, rows, constraints, files));
    for (const delta::AddFile& add : written.adds) {
      actions.emplace_back(add);
    }
  }
  std::int64_t removed = 0;
  std::int64_t removed_bytes = 0;
  if (replaces) {
    const std::int64_t now = context.logs->context().clock->NowMillis();
    snapshot->ForEachFile([&](const delta::AddFile& add) {
      actions.emplace_back(RemovalOf(add, now, true));
      ++removed;
      removed_bytes += add.size;
    });
  }

  delta::Operation operation = NamedOperation(context, spec.operation);
  if (const std::string* text = plan::FindOption(spec.options, "userMetadata")) {
    operation.user_metadata = *text;
  }
  operation.parameters = CreateParameters(table, metadata, spec.cluster_by, spec.comment);
  if (spec.query != nullptr) {
    operation.metrics = {{"numFiles", std::to_string(written.written_files)}};
    if (replaces) {
      operation.metrics.emplace_back("numRemovedFiles", std::to_string(removed));
      operation.metrics.emplace_back("numRemovedBytes", std::to_string(removed_bytes));
    }
    operation.metrics.emplace_back("numOutputRows", std::to_string(written.row_count));
    operation.metrics.emplace_back("numOutputBytes", std::to_string(written.bytes));
  }
  FLEUVE_ASSIGN(const auto app, ReadAppTransaction(spec.options, context.config));
  if (app) {
    delta::SetTransaction txn = *app;
    txn.last_updated = context.logs->context().clock->NowMillis();
    actions.insert(actions.begin(), delta::Action(txn));
  }
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation), written.files, written.folders));
  log->WaitForBackground();
  return delta::ReadSchemaOf(schema);
}

}  // namespace fleuve::tables
