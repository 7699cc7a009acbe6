#include <simdjson.h>

#include "delta/actions.h"
#include "delta/actions_internal.h"

namespace fleuve::delta {
namespace {

namespace ondemand = simdjson::ondemand;

std::string Text(ondemand::value value) { return std::string(std::string_view(value.get_string())); }

std::optional<std::string> OptionalText(ondemand::value value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  return Text(value);
}

std::optional<std::int64_t> OptionalInt(ondemand::value value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  return std::int64_t(value.get_int64());
}

bool Flag(ondemand::value value, bool fallback) { return value.is_null() ? fallback : bool(value.get_bool()); }

PartitionValues Values(ondemand::value value) {
  PartitionValues out;
  if (value.is_null()) {
    return out;
  }
  for (auto field : value.get_object()) {
    std::string key(std::string_view(field.unescaped_key()));
    out.emplace_back(std::move(key), OptionalText(field.value()));
  }
  return out;
}

std::optional<StringMap> Tags(ondemand::value value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  StringMap out;
  for (auto field : value.get_object()) {
    std::string key(std::string_view(field.unescaped_key()));
    out.emplace_back(std::move(key), OptionalText(field.value()).value_or(""));
  }
  return out;
}

std::optional<DeletionVectorDescriptor> Vector(ondemand::value value) {
  if (value.is_null()) {
    return std::nullopt;
  }
  DeletionVectorDescriptor dv;
  for (auto field : value.get_object()) {
    const std::string_view key = field.unescaped_key();
    ondemand::value v = field.value();
    if (key == "storageType") {
      dv.storage_type = Text(v);
    } else if (key == "pathOrInlineDv") {
      dv.path_or_inline_dv = Text(v);
    } else if (key == "offset") {
      if (auto n = OptionalInt(v)) {
        dv.offset = static_cast<std::int32_t>(*n);
      }
    } else if (key == "sizeInBytes") {
      dv.size_in_bytes = static_cast<std::int32_t>(OptionalInt(v).value_or(0));
    } else if (key == "cardinality") {
      dv.cardinality = OptionalInt(v).value_or(0);
    } else if (key == "maxRowIndex") {
      dv.max_row_index = OptionalInt(v);
    }
  }
  return dv;
}

AddFile ParseAdd(ondemand::object object) {
  AddFile a;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value v = field.value();
    if (key == "path") {
      a.path = CanonicalPath(Text(v));
    } else if (key == "partitionValues") {
      a.partition_values = Values(v);
    } else if (key == "size") {
      a.size = OptionalInt(v).value_or(0);
    } else if (key == "modificationTime") {
      a.modification_time = OptionalInt(v).value_or(0);
    } else if (key == "dataChange") {
      a.data_change = Flag(v, true);
    } else if (key == "stats") {
      a.stats = OptionalText(v).value_or("");
    } else if (key == "tags") {
      a.tags = Tags(v);
    } else if (key == "deletionVector") {
      a.deletion_vector = Vector(v);
    } else if (key == "baseRowId") {
      a.base_row_id = OptionalInt(v);
    } else if (key == "defaultRowCommitVersion") {
      a.default_row_commit_version = OptionalInt(v);
    } else if (key == "clusteringProvider") {
      a.clustering_provider = OptionalText(v);
    }
  }
  return a;
}

RemoveFile ParseRemove(ondemand::object object) {
  RemoveFile r;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value v = field.value();
    if (key == "path") {
      r.path = CanonicalPath(Text(v));
    } else if (key == "deletionTimestamp") {
      r.deletion_timestamp = OptionalInt(v);
    } else if (key == "dataChange") {
      r.data_change = Flag(v, true);
    } else if (key == "extendedFileMetadata") {
      if (!v.is_null()) {
        r.extended_file_metadata = bool(v.get_bool());
      }
    } else if (key == "partitionValues") {
      if (!v.is_null()) {
        r.partition_values = Values(v);
      }
    } else if (key == "size") {
      r.size = OptionalInt(v);
    } else if (key == "tags") {
      r.tags = Tags(v);
    } else if (key == "deletionVector") {
      r.deletion_vector = Vector(v);
    } else if (key == "baseRowId") {
      r.base_row_id = OptionalInt(v);
    } else if (key == "defaultRowCommitVersion") {
      r.default_row_commit_version = OptionalInt(v);
    } else if (key == "stats") {
      r.stats = OptionalText(v).value_or("");
    }
  }
  return r;
}

AddCdcFile ParseCdc(ondemand::object object) {
  AddCdcFile c;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value v = field.value();
    if (key == "path") {
      c.path = Text(v);
    } else if (key == "partitionValues") {
      c.partition_values = Values(v);
    } else if (key == "size") {
      c.size = OptionalInt(v).value_or(0);
    } else if (key == "tags") {
      c.tags = Tags(v);
    }
  }
  return c;
}

SetTransaction ParseTxn(ondemand::object object) {
  SetTransaction t;
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value v = field.value();
    if (key == "appId") {
      t.app_id = Text(v);
    } else if (key == "version") {
      t.version = OptionalInt(v).value_or(0);
    } else if (key == "lastUpdated") {
      t.last_updated = OptionalInt(v);
    }
  }
  return t;
}

Error Corrupt(std::string_view path, std::int64_t line, std::string_view why) {
  return Error(ErrorKind::kCorrupt, "DELTA_CORRUPT_LOG",
               "The log file " + std::string(path) + " cannot be read at line " + std::to_string(line) + ": " +
                   std::string(why));
}

std::optional<std::string> JsonText(const Json& json) {
  if (json.is_string()) {
    return json.AsString();
  }
  return std::nullopt;
}

std::optional<std::int64_t> JsonInt(const Json& json) {
  if (json.is_int()) {
    return json.AsInt();
  }
  return std::nullopt;
}

StringMap JsonMap(const Json& json) {
  StringMap map;
  for (const auto& [k, v] : json.fields()) {
    map.emplace_back(k, v.is_string() ? v.AsString() : (v.is_null() ? std::string() : v.Dump()));
  }
  return map;
}

std::vector<std::string> JsonStrings(const Json& json) {
  std::vector<std::string> out;
  for (const Json& item : json.items()) {
    out.push_back(item.AsString());
  }
  return out;
}

Result<std::optional<Action>> ParseOne(ondemand::object object, std::string_view line) {
  for (auto field : object) {
    const std::string_view key = field.unescaped_key();
    ondemand::value value = field.value();
    if (value.is_null()) {
      continue;
    }
    if (key == "add") {
      return std::optional<Action>(ParseAdd(value.get_object()));
    }
    if (key == "remove") {
      return std::optional<Action>(ParseRemove(value.get_object()));
    }
    if (key == "cdc") {
      return std::optional<Action>(ParseCdc(value.get_object()));
    }
    if (key == "txn") {
      return std::optional<Action>(ParseTxn(value.get_object()));
    }
    const bool known = key == "metaData" || key == "protocol" || key == "commitInfo" || key == "domainMetadata" ||
                       key == "checkpointMetadata" || key == "sidecar";
    if (!known) {
      continue;
    }
    const std::string name(key);
    FLEUVE_ASSIGN(const Json whole, Json::Parse(line));
    const Json& json = whole[name];
    if (name == "metaData") {
      FLEUVE_ASSIGN(Metadata metadata, MetadataFromJson(json));
      return std::optional<Action>(std::move(metadata));
    }
    if (name == "protocol") {
      return std::optional<Action>(ProtocolFromJson(json));
    }
    if (name == "commitInfo") {
      return std::optional<Action>(CommitInfoFromJson(json));
    }
    if (name == "domainMetadata") {
      return std::optional<Action>(
          DomainMetadata{json["domain"].AsString(), json["configuration"].AsString(), json["removed"].AsBool()});
    }
    if (name == "checkpointMetadata") {
      return std::optional<Action>(CheckpointMetadata{json["version"].AsInt()});
    }
    return std::optional<Action>(
        SidecarFile{json["path"].AsString(), json["sizeInBytes"].AsInt(), json["modificationTime"].AsInt()});
  }
  return std::optional<Action>();
}

}  // namespace

Result<Metadata> MetadataFromJson(const Json& json) {
  Metadata m;
  m.id = json["id"].AsString();
  m.name = JsonText(json["name"]);
  m.description = JsonText(json["description"]);
  m.format_provider = json["format"]["provider"].is_string() ? json["format"]["provider"].AsString() : "parquet";
  m.format_options = JsonMap(json["format"]["options"]);
  m.schema_string = json["schemaString"].AsString();
  m.partition_columns = JsonStrings(json["partitionColumns"]);
  m.configuration = JsonMap(json["configuration"]);
  m.created_time = JsonInt(json["createdTime"]);
  return m;
}

Protocol ProtocolFromJson(const Json& json) {
  Protocol p;
  p.min_reader_version = static_cast<std::int32_t>(json["minReaderVersion"].AsInt());
  p.min_writer_version = static_cast<std::int32_t>(json["minWriterVersion"].AsInt());
  if (json["readerFeatures"].is_array()) {
    p.reader_features = JsonStrings(json["readerFeatures"]);
  }
  if (json["writerFeatures"].is_array()) {
    p.writer_features = JsonStrings(json["writerFeatures"]);
  }
  return p;
}

CommitInfo CommitInfoFromJson(const Json& json) {
  CommitInfo c;
  c.in_commit_timestamp = JsonInt(json["inCommitTimestamp"]);
  c.timestamp = JsonInt(json["timestamp"]);
  c.user_id = JsonText(json["userId"]);
  c.user_name = JsonText(json["userName"]);
  c.operation = json["operation"].AsString();
  c.operation_parameters = json["operationParameters"];
  c.read_version = JsonInt(json["readVersion"]);
  c.isolation_level = JsonText(json["isolationLevel"]);
  if (json["isBlindAppend"].is_bool()) {
    c.is_blind_append = json["isBlindAppend"].AsBool();
  }
  if (json["operationMetrics"].is_object()) {
    c.operation_metrics = JsonMap(json["operationMetrics"]);
  }
  c.user_metadata = JsonText(json["userMetadata"]);
  if (json["tags"].is_object()) {
    c.tags = JsonMap(json["tags"]);
  }
  c.engine_info = JsonText(json["engineInfo"]);
  c.txn_id = JsonText(json["txnId"]);
  c.fleuve = json["fleuve"];
  return c;
}

Result<std::vector<Action>> ParseActions(std::string_view text, std::string_view path) {
  std::vector<Action> actions;
  ondemand::parser parser;
  simdjson::padded_string padded(text);
  std::int64_t line_number = 0;
  std::size_t start = 0;
  while (start < text.size()) {
    ++line_number;
    std::size_t end = text.find('\n', start);
    if (end == std::string_view::npos) {
      end = text.size();
    }
    const std::size_t from = start;
    start = end + 1;
    const std::string_view line = text.substr(from, end - from);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      continue;
    }
    // simdjson reads past the end of the line into the rest of the padded copy, never past the padding.
    try {
      ondemand::document document =
          parser.iterate(padded.data() + from, line.size(), padded.size() - from + simdjson::SIMDJSON_PADDING);
      FLEUVE_ASSIGN(std::optional<Action> action, ParseOne(document.get_object(), line));
      if (action) {
        actions.push_back(*std::move(action));
      }
    } catch (const simdjson::simdjson_error& e) {
      return Corrupt(path, line_number, e.what());
    }
  }
  return actions;
}

}  // namespace fleuve::delta
