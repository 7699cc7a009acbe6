#include <algorithm>

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "engine/infer.h"
#include "plan/function_builder.h"
#include "tables/commands.h"
#include "tables/data_files_internal.h"
#include "tables/file_statistics_internal.h"
#include "tables/measure_files_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;

namespace {

/// Folders that begin with these are no data, unless they name a partition.
bool IsHiddenName(const std::string& name) {
  return (name.starts_with("_") || name.starts_with(".")) && name.find('=') == std::string::npos;
}

/// Partition values of a file below the table, from its folders.
Result<delta::PartitionValues> PartitionsOf(const std::vector<std::string>& folders, const types::Schema& schema) {
  delta::PartitionValues values;
  std::vector<std::string> names;
  for (const std::string& folder : folders) {
    const std::size_t equals = folder.find('=');
    if (equals == std::string::npos) {
      continue;
    }
    names.push_back(PercentDecode(folder.substr(0, equals)));
    const std::string text = PercentDecode(folder.substr(equals + 1));
    values.emplace_back(names.back(), text == "__HIVE_DEFAULT_PARTITION__" ? std::nullopt : std::optional(text));
  }
  if (names.size() != schema.fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_UNEXPECTED_NUM_PARTITION_COLUMNS_FROM_FILE_NAME",
                 "Expecting " + std::to_string(schema.fields().size()) + " partition columns, but found " +
                     std::to_string(names.size()) + " in the name of a folder: " + Join(names, ", "))
        .With("expectedColsSize", std::to_string(schema.fields().size()))
        .With("parsedColsSize", std::to_string(names.size()))
        .With("parsedCols", Join(names, ", "));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const StructField& field = schema.fields()[i];
    if (!EqualsIgnoreAsciiCase(field.name, names[i])) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_UNEXPECTED_PARTITION_COLUMN_FROM_FILE_NAME",
                   "Expecting the partition column " + field.name + ", but found " + names[i] + ".")
          .With("expectedCol", field.name)
          .With("parsedCol", names[i]);
    }
    if (!delta::ParsePartitionValue(values[i].second, field.type).ok()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_FAILED_CAST_PARTITION_VALUE",
                   "The partition value " + values[i].second.value_or("NULL") + " is no " + field.type.SimpleString() +
                       ".")
          .With("value", values[i].second.value_or("NULL"))
          .With("dataType", field.type.SimpleString());
    }
    values[i].first = field.name;
  }
  return values;
}

}  // namespace

Result<void> ConvertToDelta(const TableContext& context, const TableRef& table, const ConvertSpec& spec) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const bool exists, log->Exists());
  if (exists) {
    return {};
  }
  auto& store = *table.location.store;
  auto listing = store.ListRecursive(table.location.path);
  if (!listing.ok() && listing.error().kind() != ErrorKind::kNotFound) {
    return std::move(listing).error();
  }
  std::vector<delta::AddFile> files;
  types::Schema data = DataType::Struct({});
  const auto entries = listing.ok() ? *std::move(listing) : std::vector<storage::ObjectMeta>();
  for (const storage::ObjectMeta& entry : entries) {
    const std::string relative = entry.path.substr(table.location.path.size() + 1);
    std::vector<std::string> parts = Split(relative, '/');
    if (entry.is_directory || std::any_of(parts.begin(), parts.end(), IsHiddenName)) {
      continue;
    }
    parts.pop_back();
    delta::AddFile add;
    add.path = delta::EncodeUriPath(relative);
    add.size = entry.size_bytes;
    add.modification_time = entry.modified_ms;
    FLEUVE_ASSIGN(add.partition_values, PartitionsOf(parts, spec.partition_schema));
    FLEUVE_ASSIGN(const types::Schema schema, engine::ReadParquetSchema(entry.path));
    FLEUVE_ASSIGN(data, MergeSchemas(data, schema, {true, false, false}, context.config));
    files.push_back(std::move(add));
  }
  if (files.empty() && !table.catalog_name.empty() && !spec.partition_schema.fields().empty()) {
    return Error(ErrorKind::kNotFound, "DELTA_CONVERSION_NO_PARTITION_FOUND",
                 "Found no partition information in the catalog for table " + table.name + ".")
        .With("tableName", table.name);
  }
  if (files.empty()) {
    return Error(ErrorKind::kNotFound, "DELTA_EMPTY_DIRECTORY",
                 "No file was found in the folder " + table.location.path + ".")
        .With("directory", table.location.path);
  }
  delta::Metadata metadata;
  metadata.id = NewUuid();
  metadata.created_time = context.logs->context().clock->NowMillis();
  metadata.configuration = DefaultProperties(context.config);
  std::vector<StructField> fields;
  for (const StructField& field : data.fields()) {
    const bool is_partition = types::FieldIndex(spec.partition_schema, field.name).has_value();
    if (!is_partition) {
      fields.push_back(field);
    }
  }
  for (const StructField& field : spec.partition_schema.fields()) {
    fields.push_back({field.name, field.type, true, Json(Json::Object{})});
    metadata.partition_columns.push_back(field.name);
  }
  types::Schema schema = StoredSchema(DataType::Struct(std::move(fields)), true);
  FLEUVE_TRY(CheckColumns(schema, delta::ColumnMappingMode(metadata) != "none"));
  metadata.schema_string = SchemaText(schema);
  if (delta::ColumnMappingMode(metadata) != "none") {
    return Error::Unsupported("CONVERT TO DELTA with column mapping by default");
  }
  if (spec.statistics && ConfFlag(context.config, "spark.databricks.delta.stats.collect", true)) {
    const std::vector<StatisticsLeaf> leaves = IndexedLeaves(metadata, schema);
    FLEUVE_ASSIGN(const std::vector<FileMeasure> measures,
                  MeasureFiles(context, table.location, metadata, files, leaves));
    const std::string* vectors = delta::FindIn(metadata.configuration, "delta.enableDeletionVectors");
    for (std::size_t i = 0; i < files.size(); ++i) {
      files[i].stats = StatisticsText(leaves, measures[i].rows, measures[i].leaves,
                                      vectors != nullptr && EqualsIgnoreAsciiCase(*vectors, "true"));
    }
  }
  std::vector<delta::Action> actions;
  for (delta::AddFile& add : files) {
    actions.emplace_back(std::move(add));
  }
  delta::Transaction transaction(log, nullptr);
  FLEUVE_TRY(transaction.UpdateMetadata(metadata));
  delta::Operation operation = NamedOperation(context, "CONVERT");
  Json parameters(Json::Object{});
  parameters.Set("numFiles", Json(static_cast<std::int64_t>(files.size())));
  Json::Array partition_by;
  if (table.catalog_name.empty()) {  // of a listed table the catalog knows them, and the statement says nothing
    partition_by.assign(metadata.partition_columns.begin(), metadata.partition_columns.end());
  }
  parameters.Set("partitionedBy", Json(Json(std::move(partition_by)).Dump()));
  parameters.Set("collectStats", Json(spec.statistics));
  if (!table.catalog_name.empty()) {
    std::vector<std::string> quoted;
    for (const std::string& part : table.catalog_name) {
      quoted.push_back(types::QuoteIdentifier(part));
    }
    parameters.Set("catalogTable", Json(Join(quoted, ".")));
  }
  parameters.Set("sourceFormat", Json("parquet"));
  operation.parameters = std::move(parameters);
  operation.is_blind_append = false;
  operation.metrics = {{"numConvertedFiles", std::to_string(files.size())}};
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation)));
  log->WaitForBackground();
  return {};
}

}  // namespace fleuve::tables
