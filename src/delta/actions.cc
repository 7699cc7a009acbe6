#include "delta/actions.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "delta/actions_internal.h"

namespace fleuve::delta {
namespace {

void AppendInt(std::string& out, std::int64_t value) {
  std::array<char, 24> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  out.append(buffer.data(), end.ptr);
}

/// Writes an object member by member; absent members are left out.
class ObjectWriter {
 public:
  explicit ObjectWriter(std::string& out) : out_(out) { out_ += '{'; }
  void Key(std::string_view key) {
    if (!first_) {
      out_ += ',';
    }
    first_ = false;
    AppendJsonString(out_, key);
    out_ += ':';
  }
  void String(std::string_view key, std::string_view value) {
    Key(key);
    AppendJsonString(out_, value);
  }
  void String(std::string_view key, const std::optional<std::string>& value) {
    if (value) {
      String(key, std::string_view(*value));
    }
  }
  void Int(std::string_view key, std::int64_t value) {
    Key(key);
    AppendInt(out_, value);
  }
  template <typename T>
  void Int(std::string_view key, const std::optional<T>& value) {
    if (value) {
      Int(key, static_cast<std::int64_t>(*value));
    }
  }
  void Bool(std::string_view key, bool value) {
    Key(key);
    out_ += value ? "true" : "false";
  }
  void Bool(std::string_view key, const std::optional<bool>& value) {
    if (value) {
      Bool(key, *value);
    }
  }
  void Map(std::string_view key, const StringMap& map) {
    Key(key);
    out_ += '{';
    bool first = true;
    for (const auto& [k, v] : map) {
      if (!first) {
        out_ += ',';
      }
      first = false;
      AppendJsonString(out_, k);
      out_ += ':';
      AppendJsonString(out_, v);
    }
    out_ += '}';
  }
  void Map(std::string_view key, const std::optional<StringMap>& map) {
    if (map) {
      Map(key, *map);
    }
  }
  void Values(std::string_view key, const PartitionValues& values) {
    Key(key);
    out_ += '{';
    bool first = true;
    for (const auto& [k, v] : values) {
      if (!first) {
        out_ += ',';
      }
      first = false;
      AppendJsonString(out_, k);
      out_ += ':';
      if (v) {
        AppendJsonString(out_, *v);
      } else {
        out_ += "null";
      }
    }
    out_ += '}';
  }
  void Strings(std::string_view key, const std::vector<std::string>& values) {
    Key(key);
    out_ += '[';
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0) {
        out_ += ',';
      }
      AppendJsonString(out_, values[i]);
    }
    out_ += ']';
  }
  void Vector(std::string_view key, const std::optional<DeletionVectorDescriptor>& dv) {
    if (!dv) {
      return;
    }
    Key(key);
    ObjectWriter w(out_);
    w.String("storageType", std::string_view(dv->storage_type));
    w.String("pathOrInlineDv", std::string_view(dv->path_or_inline_dv));
    w.Int("offset", dv->offset);
    w.Int("sizeInBytes", dv->size_in_bytes);
    w.Int("cardinality", dv->cardinality);
    w.Int("maxRowIndex", dv->max_row_index);
    w.End();
  }
  void End() { out_ += '}'; }

 private:
  std::string& out_;
  bool first_ = true;
};

struct LineWriter {
  std::string& out;

  void operator()(const AddFile& a) const {
    out += "{\"add\":";
    ObjectWriter w(out);
    w.String("path", std::string_view(a.path));
    w.Values("partitionValues", a.partition_values);
    w.Int("size", a.size);
    w.Int("modificationTime", a.modification_time);
    w.Bool("dataChange", a.data_change);
    if (!a.stats.empty()) {
      w.String("stats", std::string_view(a.stats));
    }
    w.Map("tags", a.tags);
    w.Vector("deletionVector", a.deletion_vector);
    w.Int("baseRowId", a.base_row_id);
    w.Int("defaultRowCommitVersion", a.default_row_commit_version);
    w.String("clusteringProvider", a.clustering_provider);
    w.End();
  }
  void operator()(const RemoveFile& r) const {
    out += "{\"remove\":";
    ObjectWriter w(out);
    w.String("path", std::string_view(r.path));
    w.Int("deletionTimestamp", r.deletion_timestamp);
    w.Bool("dataChange", r.data_change);
    w.Bool("extendedFileMetadata", r.extended_file_metadata);
    if (r.partition_values) {
      w.Values("partitionValues", *r.partition_values);
    }
    w.Int("size", r.size);
    w.Map("tags", r.tags);
    w.Vector("deletionVector", r.deletion_vector);
    w.Int("baseRowId", r.base_row_id);
    w.Int("defaultRowCommitVersion", r.default_row_commit_version);
    if (!r.stats.empty()) {
      w.String("stats", std::string_view(r.stats));
    }
    w.End();
  }
  void operator()(const AddCdcFile& c) const {
    out += "{\"cdc\":";
    ObjectWriter w(out);
    w.String("path", std::string_view(c.path));
    w.Values("partitionValues", c.partition_values);
    w.Int("size", c.size);
    w.Map("tags", c.tags);
    w.Bool("dataChange", false);
    w.End();
  }
  void operator()(const Metadata& m) const {
    out += "{\"metaData\":";
    ObjectWriter w(out);
    w.String("id", std::string_view(m.id));
    w.String("name", m.name);
    w.String("description", m.description);
    w.Key("format");
    ObjectWriter f(out);
    f.String("provider", std::string_view(m.format_provider));
    f.Map("options", m.format_options);
    f.End();
    w.String("schemaString", std::string_view(m.schema_string));
    w.Strings("partitionColumns", m.partition_columns);
    w.Map("configuration", m.configuration);
    w.Int("createdTime", m.created_time);
    w.End();
  }
  void operator()(const Protocol& p) const {
    out += "{\"protocol\":";
    ObjectWriter w(out);
    w.Int("minReaderVersion", p.min_reader_version);
    w.Int("minWriterVersion", p.min_writer_version);
    if (p.reader_features) {
      w.Strings("readerFeatures", *p.reader_features);
    }
    if (p.writer_features) {
      w.Strings("writerFeatures", *p.writer_features);
    }
    w.End();
  }
  void operator()(const SetTransaction& t) const {
    out += "{\"txn\":";
    ObjectWriter w(out);
    w.String("appId", std::string_view(t.app_id));
    w.Int("version", t.version);
    w.Int("lastUpdated", t.last_updated);
    w.End();
  }
  void operator()(const DomainMetadata& d) const {
    out += "{\"domainMetadata\":";
    ObjectWriter w(out);
    w.String("domain", std::string_view(d.domain));
    w.String("configuration", std::string_view(d.configuration));
    w.Bool("removed", d.removed);
    w.End();
  }
  void operator()(const CommitInfo& c) const {
    out += "{\"commitInfo\":";
    ObjectWriter w(out);
    w.Int("inCommitTimestamp", c.in_commit_timestamp);
    w.Int("timestamp", c.timestamp);
    w.String("userId", c.user_id);
    w.String("userName", c.user_name);
    w.String("operation", std::string_view(c.operation));
    w.Key("operationParameters");
    out += c.operation_parameters.is_object() ? c.operation_parameters.Dump() : "{}";
    w.Int("readVersion", c.read_version);
    w.String("isolationLevel", c.isolation_level);
    w.Bool("isBlindAppend", c.is_blind_append);
    w.Map("operationMetrics", c.operation_metrics);
    w.String("userMetadata", c.user_metadata);
    w.Map("tags", c.tags);
    w.String("engineInfo", c.engine_info);
    w.String("txnId", c.txn_id);
    if (!c.fleuve.is_null()) {
      w.Key("fleuve");
      out += c.fleuve.Dump();
    }
    w.End();
  }
  void operator()(const CheckpointMetadata& c) const {
    out += "{\"checkpointMetadata\":";
    ObjectWriter w(out);
    w.Int("version", c.version);
    w.End();
  }
  void operator()(const SidecarFile& s) const {
    out += "{\"sidecar\":";
    ObjectWriter w(out);
    w.String("path", std::string_view(s.path));
    w.Int("sizeInBytes", s.size_in_bytes);
    w.Int("modificationTime", s.modification_time);
    w.End();
  }
};

}  // namespace

const std::string* FindIn(const StringMap& map, std::string_view key) {
  for (const auto& [k, v] : map) {
    if (k == key) {
      return &v;
    }
  }
  return nullptr;
}

void SetIn(StringMap& map, std::string_view key, std::string value) {
  for (auto& [k, v] : map) {
    if (k == key) {
      v = std::move(value);
      return;
    }
  }
  map.emplace_back(std::string(key), std::move(value));
}

bool EraseFrom(StringMap& map, std::string_view key) {
  return std::erase_if(map, [&](const auto& entry) { return entry.first == key; }) > 0;
}

std::string_view CanonicalPath(std::string_view log_path) {
  if (!log_path.starts_with("file:/")) {
    return log_path;
  }
  log_path.remove_prefix(std::string_view("file:").size());
  while (log_path.starts_with("//")) {
    log_path.remove_prefix(1);
  }
  return log_path;
}

std::string DeletionVectorDescriptor::UniqueId() const {
  std::string id = storage_type + path_or_inline_dv;
  if (offset) {
    id += '@' + std::to_string(*offset);
  }
  return id;
}

void AppendJsonLine(std::string& out, const Action& action) {
  std::visit(LineWriter{out}, action);
  out += "}\n";
}

std::string ToJsonLine(const Action& action) {
  std::string out;
  AppendJsonLine(out, action);
  return out;
}

std::string LogFolder(std::string_view table_path) { return std::string(table_path) + "/_delta_log"; }

std::string VersionName(std::int64_t version) {
  std::array<char, 32> buffer{};
  const int length = std::snprintf(buffer.data(), buffer.size(), "%020lld", static_cast<long long>(version));
  return std::string(buffer.data(), static_cast<std::size_t>(length));
}

std::string CommitPath(std::string_view table_path, std::int64_t version) {
  return LogFolder(table_path) + '/' + VersionName(version) + ".json";
}

std::string EngineInfo() { return "Apache-Spark/4.1.1 Fleuve/0.1.0"; }

}  // namespace fleuve::delta
