#include <algorithm>

#include "delta/table_source.h"
#include "tables/clustering_internal.h"
#include "tables/commands.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;
using types::Value;

namespace {

StructField Field(std::string name, DataType type) { return {std::move(name), std::move(type), true, Json()}; }

DataType TextMap() { return DataType::Map(DataType::String(), DataType::String()); }

Value Text(const std::optional<std::string>& text) { return text ? Value(*text) : Value(); }

Value MapOf(const delta::StringMap& map) {
  Value::List entries;
  for (const auto& [key, value] : map) {
    entries.push_back(Value(Value::List{Value(key), Value(value)}));
  }
  return Value(std::move(entries));
}

Value Texts(const std::vector<std::string>& items) {
  Value::List list;
  for (const std::string& item : items) {
    list.push_back(Value(item));
  }
  return Value(std::move(list));
}

}  // namespace

Result<RowsResult> DescribeHistory(const TableContext& context, const TableRef& table,
                                   std::optional<std::int64_t> limit) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_TRY(log->Latest());
  FLEUVE_ASSIGN(std::vector<delta::VersionTime> times, log->CommitsFrom(0));
  std::reverse(times.begin(), times.end());
  if (limit && static_cast<std::int64_t>(times.size()) > *limit) {
    times.resize(static_cast<std::size_t>(std::max<std::int64_t>(*limit, 0)));
  }
  RowsResult result;
  result.schema = DataType::Struct(
      {Field("version", DataType::Long()), Field("timestamp", DataType::Timestamp()),
       Field("userId", DataType::String()), Field("userName", DataType::String()),
       Field("operation", DataType::String()), Field("operationParameters", TextMap()),
       Field("job",
             DataType::Struct({Field("jobId", DataType::String()), Field("jobName", DataType::String()),
                               Field("jobRunId", DataType::String()), Field("runId", DataType::String()),
                               Field("jobOwnerId", DataType::String()), Field("triggerType", DataType::String())})),
       Field("notebook", DataType::Struct({Field("notebookId", DataType::String())})),
       Field("clusterId", DataType::String()), Field("readVersion", DataType::Long()),
       Field("isolationLevel", DataType::String()), Field("isBlindAppend", DataType::Boolean()),
       Field("operationMetrics", TextMap()), Field("userMetadata", DataType::String()),
       Field("engineInfo", DataType::String())});
  for (const delta::VersionTime& time : times) {
    auto commit = log->ReadCommit(time.version);
    if (!commit.ok()) {
      if (commit.error().kind() == ErrorKind::kNotFound) {
        continue;  // cleaned up meanwhile
      }
      return std::move(commit).error();
    }
    const delta::CommitInfo* info = nullptr;
    for (const delta::Action& action : commit->actions) {
      if (const auto* found = std::get_if<delta::CommitInfo>(&action)) {
        info = found;
      }
    }
    Value::List row(15);
    row[0] = Value(time.version);
    row[1] = Value(time.timestamp_ms * 1000);
    if (info != nullptr) {
      row[2] = Text(info->user_id);
      row[3] = Text(info->user_name);
      row[4] = Value(info->operation);
      Value::List parameters;
      for (const auto& [key, value] : info->operation_parameters.fields()) {
        Value text;
        if (value.is_string()) {
          text = Value(value.AsString());
        } else if (!value.is_null()) {
          text = Value(value.Dump());
        }
        parameters.push_back(Value(Value::List{Value(key), std::move(text)}));
      }
      row[5] = Value(std::move(parameters));
      row[9] = info->read_version ? Value(*info->read_version) : Value();
      row[10] = Text(info->isolation_level);
      row[11] = info->is_blind_append ? Value(*info->is_blind_append) : Value();
      row[12] = info->operation_metrics ? MapOf(*info->operation_metrics) : Value();
      row[13] = Text(info->user_metadata);
      row[14] = Text(info->engine_info);
    }
    result.rows.push_back(std::move(row));
  }
  return result;
}

Result<RowsResult> DescribeDetail(const TableContext& context, const TableRef& table) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  auto latest = log->Latest();
  if (!latest.ok() && latest.error().condition() == "DELTA_TABLE_NOT_FOUND" &&
      !table.location.store->Head(table.location.path).ok()) {
    return Error(ErrorKind::kNotFound, "DELTA_FILE_NOT_FOUND", "The path " + table.location.path + " does not exist.")
        .With("path", table.location.path);
  }
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, std::move(latest));
  const delta::Metadata& metadata = snapshot->metadata();
  RowsResult result;
  const DataType texts = DataType::Array(DataType::String());
  result.schema = DataType::Struct({Field("format", DataType::String()), Field("id", DataType::String()),
                                    Field("name", DataType::String()), Field("description", DataType::String()),
                                    Field("location", DataType::String()), Field("createdAt", DataType::Timestamp()),
                                    Field("lastModified", DataType::Timestamp()), Field("partitionColumns", texts),
                                    Field("clusteringColumns", texts), Field("numFiles", DataType::Long()),
                                    Field("sizeInBytes", DataType::Long()), Field("properties", TextMap()),
                                    Field("minReaderVersion", DataType::Int()),
                                    Field("minWriterVersion", DataType::Int()), Field("tableFeatures", texts)});
  std::string name;
  for (const std::string& part : table.catalog_name) {
    name += (name.empty() ? "" : ".") + part;
  }
  result.rows.push_back({Value("delta"), Value(metadata.id), name.empty() ? Value() : Value(name),
                         Text(metadata.description), Value(storage::ToFileUri(table.location.path)),
                         metadata.created_time ? Value(*metadata.created_time * 1000) : Value(),
                         Value(snapshot->timestamp_ms() * 1000), Texts(metadata.partition_columns),
                         Texts(ClusteringColumns(*snapshot)), Value(snapshot->file_count()),
                         Value(snapshot->size_bytes()), MapOf(metadata.configuration),
                         Value(static_cast<std::int64_t>(snapshot->protocol().min_reader_version)),
                         Value(static_cast<std::int64_t>(snapshot->protocol().min_writer_version)),
                         Texts(delta::FeaturesOf(snapshot->protocol()))});
  return result;
}

}  // namespace fleuve::tables
