#include <algorithm>

#include "base/bytes.h"
#include "connectors/delta/schema_log_internal.h"
#include "delta/table_source.h"

namespace fleuve::connectors::delta {

namespace {

Error Undecodable(const std::string& path) {
  return Error(ErrorKind::kCorrupt, "DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED",
               "Incomplete log file in the Delta streaming source schema log at '" + path +
                   "'. The schema log may have been corrupted. Please pick a new schema location.")
      .With("location", path);
}

Result<dl::Protocol> ParseProtocol(const std::string& line, const std::string& path) {
  auto actions = dl::ParseActions(line + "\n", path);
  if (actions.ok()) {
    for (auto& action : *actions) {
      if (auto* protocol = std::get_if<dl::Protocol>(&action)) {
        return *std::move(protocol);
      }
    }
  }
  return Undecodable(path);
}

/// A schema without what is of no concern to a reader: ids and physical names of column mapping and the like.
Result<types::Schema> Plain(const std::string& json) {
  FLEUVE_ASSIGN(const types::Schema schema, SchemaOfJson(json));
  return dl::ReadSchemaOf(schema);
}

std::map<std::string, std::string> DeltaProperties(const std::optional<dl::StringMap>& configuration) {
  std::map<std::string, std::string> found;
  for (const auto& [key, value] : configuration.value_or(dl::StringMap())) {
    if (key.starts_with("delta.")) {
      found[key] = value;
    }
  }
  return found;
}

}  // namespace

std::optional<std::string> ConfOf(const plan::AnalysisConfig& config, const std::string& key) {
  return config.conf ? config.conf(key) : std::nullopt;
}

bool BooleanConf(const plan::AnalysisConfig& config, const std::string& key, bool fallback) {
  const auto value = ConfOf(config, key);
  return value ? EqualsIgnoreAsciiCase(*value, "true") : fallback;
}

Result<types::Schema> SchemaOfJson(const std::string& text) {
  FLEUVE_ASSIGN(const Json json, Json::Parse(text));
  return types::DataType::FromJson(json);
}

Result<TrackedMetadata> TrackedMetadata::Of(const dl::Metadata& metadata, const dl::Protocol& protocol,
                                            std::int64_t version, std::string source_path) {
  TrackedMetadata entry;
  entry.table_id = metadata.id;
  entry.version = version;
  entry.data_schema_json = metadata.schema_string;
  FLEUVE_ASSIGN(const types::Schema schema, SchemaOfJson(metadata.schema_string));
  std::vector<types::StructField> partition;
  for (const std::string& name : metadata.partition_columns) {
    if (const auto at = types::FieldIndex(schema, name)) {
      partition.push_back(schema.fields()[*at]);
    }
  }
  entry.partition_schema_json = types::DataType::Struct(std::move(partition)).ToJson().Dump();
  entry.source_path = std::move(source_path);
  entry.configuration = metadata.configuration;
  entry.protocol = protocol;
  return entry;
}

std::string TrackedMetadata::ToText() const {
  Json json;
  json.Set("tableId", table_id).Set("deltaCommitVersion", version);
  json.Set("dataSchemaJson", data_schema_json).Set("partitionSchemaJson", partition_schema_json);
  json.Set("sourceMetadataPath", source_path);
  if (configuration) {
    Json::Object pairs;
    for (const auto& [key, value] : *configuration) {
      pairs.emplace_back(key, value);
    }
    json.Set("tableConfigurations", std::move(pairs));
  }
  if (protocol) {
    std::string line = dl::ToJsonLine(*protocol);
    while (!line.empty() && line.back() == '\n') {
      line.pop_back();
    }
    json.Set("protocolJson", std::move(line));
  }
  if (previous) {
    json.Set("previousMetadataSeqNum", *previous);
  }
  return "v1\n" + json.Dump();
}

Result<TrackedMetadata> TrackedMetadata::Parse(const std::string& text, const std::string& path) {
  auto lines = checkpoint::ParseLogText(text, 1, path);
  if (!lines.ok() || lines->lines.empty()) {
    return Undecodable(path);
  }
  auto json = Json::Parse(lines->lines.front());
  if (!json.ok() || !(*json)["tableId"].is_string() || !(*json)["deltaCommitVersion"].is_int() ||
      !(*json)["dataSchemaJson"].is_string() || !(*json)["partitionSchemaJson"].is_string()) {
    return Undecodable(path);
  }
  TrackedMetadata entry;
  entry.table_id = (*json)["tableId"].AsString();
  entry.version = (*json)["deltaCommitVersion"].AsInt();
  entry.data_schema_json = (*json)["dataSchemaJson"].AsString();
  entry.partition_schema_json = (*json)["partitionSchemaJson"].AsString();
  entry.source_path = (*json)["sourceMetadataPath"].AsString();
  for (const std::string* schema : {&entry.data_schema_json, &entry.partition_schema_json}) {
    if (!SchemaOfJson(*schema).ok()) {
      return Error(
          ErrorKind::kCorrupt, "DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED",
          "Failed to parse the schema from the Delta streaming source schema log. The schema log may have been "
          "corrupted. Please pick a new schema location.");
    }
  }
  if (const Json& pairs = (*json)["tableConfigurations"]; pairs.is_object()) {
    entry.configuration.emplace();
    for (const auto& [key, value] : pairs.fields()) {
      entry.configuration->emplace_back(key, value.AsString());
    }
  }
  if (const Json& protocol = (*json)["protocolJson"]; protocol.is_string()) {
    FLEUVE_ASSIGN(entry.protocol, ParseProtocol(protocol.AsString(), path));
  }
  if (const Json& number = (*json)["previousMetadataSeqNum"]; number.is_int()) {
    entry.previous = number.AsInt();
  }
  return entry;
}

Result<dl::Metadata> TrackedMetadata::Apply(dl::Metadata latest) const {
  latest.schema_string = data_schema_json;
  FLEUVE_ASSIGN(const types::Schema partition, SchemaOfJson(partition_schema_json));
  latest.partition_columns.clear();
  for (const auto& field : partition.fields()) {
    latest.partition_columns.push_back(field.name);
  }
  if (configuration) {
    latest.configuration = *configuration;
  }
  return latest;
}

Result<SchemaLog> SchemaLog::Open(const storage::Location& folder, const std::string& table_id) {
  SchemaLog log(checkpoint::LogFolder(folder.store, folder.path));
  FLEUVE_ASSIGN(const auto names, log.folder_.List());
  if (names.empty()) {
    return log;
  }
  log.number_ = names.back().id;
  FLEUVE_ASSIGN(log.newest_, log.Read(log.number_));
  if (log.newest_.table_id != table_id) {
    return Error(ErrorKind::kConflict, "DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID",
                 "Detected incompatible Delta table id when trying to read Delta stream.\nPersisted table id: " +
                     log.newest_.table_id + ", Table id: " + table_id +
                     "\nThe schema log might have been reused. Please pick a new schema location.")
        .With("persistedId", log.newest_.table_id)
        .With("tableId", table_id);
  }
  return log;
}

Result<TrackedMetadata> SchemaLog::Read(std::int64_t number) {
  const std::string name = std::to_string(number);
  FLEUVE_ASSIGN(const std::string text, folder_.Read(name));
  return TrackedMetadata::Parse(text, folder_.PathOf(name));
}

Result<std::optional<TrackedMetadata>> SchemaLog::Predecessor() {
  const std::int64_t number = newest_.previous.value_or(number_ - 1);
  if (empty() || number < 0) {
    return std::optional<TrackedMetadata>();
  }
  FLEUVE_ASSIGN(TrackedMetadata entry, Read(number));
  return std::optional<TrackedMetadata>(std::move(entry));
}

Result<void> SchemaLog::Add(TrackedMetadata entry, bool replace) {
  if (replace && !empty()) {
    entry.previous = newest_.previous;
    if (!entry.previous && number_ > 0) {
      entry.previous = number_ - 1;
    }
  }
  const std::string name = std::to_string(number_ + 1);
  if (auto written = folder_.Write(name, entry.ToText()); !written.ok()) {
    if (written.error().kind() == ErrorKind::kAlreadyExists) {
      return Error(ErrorKind::kConflict, "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
                   "Detected conflicting schema location '" + folder_.path() +
                       "' while streaming from table or table located at '" + entry.table_id +
                       "'.\nAnother stream may be reusing the same schema location, which is not allowed.\nPlease "
                       "provide a new unique `schemaTrackingLocation` path or `streamingSourceTrackingId` as a reader "
                       "option for one of the streams from this table.")
          .With("loc", folder_.path())
          .With("table", entry.table_id)
          .CausedBy(std::move(written).error());
    }
    return written;
  }
  const std::vector<std::string> files = {folder_.PathOf(name)};
  std::vector<std::string> folders = {folder_.path()};
  for (int i = 0; i < 2; ++i) {
    const auto slash = folders.back().rfind('/');
    if (slash == std::string::npos || slash == 0) {
      break;
    }
    folders.push_back(folders.back().substr(0, slash));
  }
  FLEUVE_TRY(folder_.store()->Sync(files, folders));
  ++number_;
  newest_ = std::move(entry);
  return {};
}

Result<bool> IsChange(const TrackedMetadata& before, const TrackedMetadata& after) {
  FLEUVE_ASSIGN(const types::Schema old_schema, Plain(before.data_schema_json));
  FLEUVE_ASSIGN(const types::Schema new_schema, Plain(after.data_schema_json));
  FLEUVE_ASSIGN(const types::Schema old_partition, Plain(before.partition_schema_json));
  FLEUVE_ASSIGN(const types::Schema new_partition, Plain(after.partition_schema_json));
  if (old_schema.ToJson() != new_schema.ToJson() || old_partition.ToJson() != new_partition.ToJson()) {
    return true;
  }
  if (before.configuration && after.configuration &&
      DeltaProperties(before.configuration) != DeltaProperties(after.configuration)) {
    return true;
  }
  return before.protocol && after.protocol && *before.protocol != *after.protocol;
}

Result<void> MergeChanges(SchemaLog& log, const dl::DeltaLogPtr& table) {
  if (log.empty()) {
    return {};
  }
  TrackedMetadata merged = log.newest();
  FLEUVE_ASSIGN(const dl::SnapshotPtr latest, table->Latest());
  for (std::int64_t version = log.newest().version; version <= latest->version(); ++version) {
    auto commit = table->ReadCommit(version);
    if (!commit.ok()) {
      break;
    }
    const dl::Metadata* metadata = nullptr;
    const dl::Protocol* protocol = nullptr;
    bool has_files = false;
    for (const auto& action : commit->actions) {
      has_files = has_files || std::holds_alternative<dl::AddFile>(action) ||
                  std::holds_alternative<dl::RemoveFile>(action) || std::holds_alternative<dl::AddCdcFile>(action);
      if (const auto* found = std::get_if<dl::Metadata>(&action)) {
        metadata = found;
      } else if (const auto* raised = std::get_if<dl::Protocol>(&action)) {
        protocol = raised;
      }
    }
    if (has_files || (metadata == nullptr && protocol == nullptr)) {
      break;
    }
    if (version == log.newest().version) {
      continue;
    }
    if (metadata != nullptr) {
      FLEUVE_ASSIGN(TrackedMetadata next,
                    TrackedMetadata::Of(*metadata, protocol ? *protocol : merged.protocol.value_or(latest->protocol()),
                                        version, merged.source_path));
      merged = std::move(next);
    } else {
      merged.protocol = *protocol;
      merged.version = version;
    }
  }
  if (merged.version == log.newest().version) {
    return {};
  }
  return log.Add(std::move(merged), /*replace=*/true);
}

Error MetadataEvolution(const TrackedMetadata& entry) {
  const auto schema = SchemaOfJson(entry.data_schema_json);
  const std::string text = schema.ok() ? dl::ReadSchemaOf(*schema).SimpleString() : entry.data_schema_json;
  std::string config;
  for (const auto& [key, value] : DeltaProperties(entry.configuration)) {
    config += (config.empty() ? "" : ", ") + key + ":" + value;
  }
  const std::string protocol = entry.protocol ? std::to_string(entry.protocol->min_reader_version) + "," +
                                                    std::to_string(entry.protocol->min_writer_version)
                                              : std::string();
  return Error(ErrorKind::kConflict, "DELTA_STREAMING_METADATA_EVOLUTION",
               "The schema, table configuration or protocol of your Delta table has changed during streaming.\nThe "
               "schema or metadata tracking log has been updated.\nPlease restart the stream to continue processing "
               "using the updated metadata.\nUpdated schema: " +
                   text + ".\nUpdated table configurations: " + config + ".\nUpdated table protocol: " + protocol)
      .With("schema", text)
      .With("config", config)
      .With("protocol", protocol);
}

}  // namespace fleuve::connectors::delta
