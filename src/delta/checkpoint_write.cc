#include <algorithm>
#include <array>
#include <cstdio>

#include "base/bytes.h"
#include "base/ids.h"
#include "columnar/ipc.h"
#include "delta/actions_internal.h"
#include "delta/checkpoint_internal.h"
#include "delta/json_checksum_internal.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"

namespace fleuve::delta {

using types::DataType;
using types::Value;

namespace {

DataType Record(std::vector<std::pair<std::string, DataType>> members) {
  std::vector<types::StructField> fields;
  for (auto& [name, type] : members) {
    fields.push_back({std::move(name), std::move(type), true, Json(Json::Object{})});
  }
  return DataType::Struct(std::move(fields));
}

DataType TextMap() { return DataType::Map(DataType::String(), DataType::String()); }

DataType VectorType() {
  return Record({{"storageType", DataType::String()},
                 {"pathOrInlineDv", DataType::String()},
                 {"offset", DataType::Int()},
                 {"sizeInBytes", DataType::Int()},
                 {"cardinality", DataType::Long()},
                 {"maxRowIndex", DataType::Long()}});
}

Value Optional(const std::optional<std::string>& v) { return v ? Value(*v) : Value(); }
template <typename T>
Value OptionalInt(const std::optional<T>& v) {
  return v ? Value(static_cast<std::int64_t>(*v)) : Value();
}

Value MapOf(const StringMap& map) {
  Value::List entries;
  for (const auto& [k, v] : map) {
    entries.push_back(Value(Value::List{Value(k), Value(v)}));
  }
  return Value(std::move(entries));
}

Value MapOf(const PartitionValues& values) {
  Value::List entries;
  for (const auto& [k, v] : values) {
    entries.push_back(Value(Value::List{Value(k), Optional(v)}));
  }
  return Value(std::move(entries));
}

Value ListOf(const std::vector<std::string>& items) {
  Value::List values;
  for (const std::string& item : items) {
    values.push_back(Value(item));
  }
  return Value(std::move(values));
}

Value VectorOf(const std::optional<DeletionVectorDescriptor>& dv) {
  if (!dv) {
    return Value();
  }
  return Value(Value::List{Value(dv->storage_type), Value(dv->path_or_inline_dv), OptionalInt(dv->offset),
                           Value(static_cast<std::int64_t>(dv->size_in_bytes)), Value(dv->cardinality),
                           OptionalInt(dv->max_row_index)});
}

DataType TransactionType() {
  return Record({{"appId", DataType::String()}, {"version", DataType::Long()}, {"lastUpdated", DataType::Long()}});
}

DataType MetadataType() {
  return Record({{"id", DataType::String()},
                 {"name", DataType::String()},
                 {"description", DataType::String()},
                 {"format", Record({{"provider", DataType::String()}, {"options", TextMap()}})},
                 {"schemaString", DataType::String()},
                 {"partitionColumns", DataType::Array(DataType::String())},
                 {"configuration", TextMap()},
                 {"createdTime", DataType::Long()}});
}

DataType ProtocolType() {
  return Record({{"minReaderVersion", DataType::Int()},
                 {"minWriterVersion", DataType::Int()},
                 {"readerFeatures", DataType::Array(DataType::String())},
                 {"writerFeatures", DataType::Array(DataType::String())}});
}

DataType DomainType() {
  return Record(
      {{"domain", DataType::String()}, {"configuration", DataType::String()}, {"removed", DataType::Boolean()}});
}

/// Types whose bounds a checkpoint keeps typed.
bool HasBounds(const DataType& type) {
  switch (type.kind()) {
    case types::TypeKind::kByte:
    case types::TypeKind::kShort:
    case types::TypeKind::kInt:
    case types::TypeKind::kLong:
    case types::TypeKind::kFloat:
    case types::TypeKind::kDouble:
    case types::TypeKind::kDecimal:
    case types::TypeKind::kString:
    case types::TypeKind::kDate:
    case types::TypeKind::kTimestamp:
    case types::TypeKind::kTimestampNtz:
      return true;
    default:
      return false;
  }
}

/// Struct of the leaf columns of `schema` (physical names), each of its own type or of `counts`.
std::optional<DataType> StatisticsType(const DataType& schema, bool counts) {
  std::vector<types::StructField> fields;
  for (const types::StructField& field : schema.fields()) {
    if (field.type.Is(types::TypeKind::kStruct)) {
      if (auto inner = StatisticsType(field.type, counts)) {
        fields.push_back({field.name, *std::move(inner), true, Json(Json::Object{})});
      }
    } else if (counts) {
      fields.push_back({field.name, DataType::Long(), true, Json(Json::Object{})});
    } else if (HasBounds(field.type)) {
      fields.push_back({field.name, field.type, true, Json(Json::Object{})});
    }
  }
  if (fields.empty()) {
    return std::nullopt;
  }
  return DataType::Struct(std::move(fields));
}

/// A member of JSON statistics as a value of `type`.
Value StatisticsValue(const Json& json, const DataType& type) {
  if (json.is_null()) {
    return Value();
  }
  if (type.Is(types::TypeKind::kStruct)) {
    Value::List values;
    for (const types::StructField& field : type.fields()) {
      values.push_back(StatisticsValue(json[field.name], field.type));
    }
    return Value(std::move(values));
  }
  const std::string text = json.is_string() ? json.AsString() : json.Dump();
  if (type.IsString()) {
    return json.is_string() ? Value(text) : Value();
  }
  auto value = ParsePartitionValue(text, type);
  return value.ok() ? *std::move(value) : Value();
}

/// How one snapshot becomes rows of checkpoint files.
class CheckpointRows {
 public:
  explicit CheckpointRows(const Snapshot& snapshot) {
    const Metadata& metadata = snapshot.metadata();
    stats_as_json_ = snapshot.BooleanProperty("delta.checkpoint.writeStatsAsJson", true);
    stats_as_struct_ = snapshot.BooleanProperty("delta.checkpoint.writeStatsAsStruct", true);
    std::vector<std::pair<std::string, DataType>> add{{"path", DataType::String()},
                                                      {"partitionValues", TextMap()},
                                                      {"size", DataType::Long()},
                                                      {"modificationTime", DataType::Long()},
                                                      {"dataChange", DataType::Boolean()},
                                                      {"tags", TextMap()},
                                                      {"deletionVector", VectorType()},
                                                      {"baseRowId", DataType::Long()},
                                                      {"defaultRowCommitVersion", DataType::Long()},
                                                      {"clusteringProvider", DataType::String()}};
    if (stats_as_json_) {
      add.emplace_back("stats", DataType::String());
    }
    if (stats_as_struct_) {
      const types::Schema physical =
          ColumnMappingMode(metadata) == "none" ? snapshot.schema() : PhysicalSchemaOf(snapshot.schema());
      std::vector<types::StructField> data;
      std::vector<types::StructField> partitions;
      for (std::size_t i = 0; i < physical.fields().size(); ++i) {
        types::StructField field = physical.fields()[i];
        field.nullable = true;
        field.metadata = Json(Json::Object{});
        const bool is_partition = std::any_of(
            metadata.partition_columns.begin(), metadata.partition_columns.end(),
            [&](const auto& name) { return EqualsIgnoreAsciiCase(name, snapshot.schema().fields()[i].name); });
        (is_partition ? partitions : data).push_back(std::move(field));
      }
      if (!partitions.empty()) {
        partition_type_ = DataType::Struct(std::move(partitions));
        add.emplace_back("partitionValues_parsed", *partition_type_);
      }
      std::vector<std::pair<std::string, DataType>> stats{{"numRecords", DataType::Long()}};
      const DataType data_type = DataType::Struct(std::move(data));
      if (auto bounds = StatisticsType(data_type, false)) {
        stats.emplace_back("minValues", *bounds);
        stats.emplace_back("maxValues", *bounds);
      }
      if (auto counts = StatisticsType(data_type, true)) {
        stats.emplace_back("nullCount", *counts);
      }
      if (HasFeature(snapshot.protocol(), "deletionVectors")) {
        stats.emplace_back("tightBounds", DataType::Boolean());
      }
      stats_type_ = Record(std::move(stats));
      add.emplace_back("stats_parsed", *stats_type_);
    }
    add_type_ = Record(std::move(add));
    remove_type_ = Record({{"path", DataType::String()},
                           {"deletionTimestamp", DataType::Long()},
                           {"dataChange", DataType::Boolean()},
                           {"extendedFileMetadata", DataType::Boolean()},
                           {"partitionValues", TextMap()},
                           {"size", DataType::Long()},
                           {"deletionVector", VectorType()},
                           {"baseRowId", DataType::Long()},
                           {"defaultRowCommitVersion", DataType::Long()}});
  }

  types::Schema ClassicSchema() const { return Record(ClassicColumns()); }
  /// Of a v2 checkpoint's Parquet file on top of its sidecars. It has the columns of files too, although it names none:
  /// the reference asks for them.
  types::Schema TopSchema() const {
    auto columns = ClassicColumns();
    columns.emplace_back("checkpointMetadata", Record({{"version", DataType::Long()}, {"tags", TextMap()}}));
    columns.emplace_back("sidecar", Record({{"path", DataType::String()},
                                            {"sizeInBytes", DataType::Long()},
                                            {"modificationTime", DataType::Long()},
                                            {"tags", TextMap()}}));
    return Record(std::move(columns));
  }
  types::Schema SidecarSchema() const { return Record({{"add", add_type_}, {"remove", remove_type_}}); }

  Value AddRow(const AddFile& a) const {
    Value::List row{Value(a.path),
                    MapOf(a.partition_values),
                    Value(a.size),
                    Value(a.modification_time),
                    Value(false),
                    a.tags ? MapOf(*a.tags) : Value(),
                    VectorOf(a.deletion_vector),
                    OptionalInt(a.base_row_id),
                    OptionalInt(a.default_row_commit_version),
                    Optional(a.clustering_provider)};
    if (stats_as_json_) {
      row.push_back(a.stats.empty() ? Value() : Value(a.stats));
    }
    if (stats_as_struct_) {
      if (partition_type_) {
        Value::List values;
        for (const types::StructField& field : partition_type_->fields()) {
          std::optional<std::string> text;
          for (const auto& [name, value] : a.partition_values) {
            if (name == field.name) {
              text = value;
            }
          }
          auto value = ParsePartitionValue(text, field.type);
          values.push_back(value.ok() ? *std::move(value) : Value());
        }
        row.push_back(Value(std::move(values)));
      }
      Value stats;
      if (!a.stats.empty()) {
        if (auto json = Json::Parse(a.stats); json.ok()) {
          Value::List members;
          for (const types::StructField& field : stats_type_->fields()) {
            const Json& member = (*json)[field.name];
            if (field.type.Is(types::TypeKind::kBoolean)) {
              members.push_back(member.is_bool() ? Value(member.AsBool()) : Value());
            } else {
              members.push_back(StatisticsValue(member, field.type));
            }
          }
          stats = Value(std::move(members));
        }
      }
      row.push_back(std::move(stats));
    }
    return Value(std::move(row));
  }

  static Value TransactionRow(const SetTransaction& t) {
    return Value(Value::List{Value(t.app_id), Value(t.version), OptionalInt(t.last_updated)});
  }
  static Value DomainRow(const DomainMetadata& d) {
    return Value(Value::List{Value(d.domain), Value(d.configuration), Value(d.removed)});
  }
  static Value RemoveRow(const RemoveFile& r) {
    return Value(Value::List{Value(r.path), OptionalInt(r.deletion_timestamp), Value(false),
                             r.extended_file_metadata ? Value(*r.extended_file_metadata) : Value(),
                             r.partition_values ? MapOf(*r.partition_values) : Value(), OptionalInt(r.size),
                             VectorOf(r.deletion_vector), OptionalInt(r.base_row_id),
                             OptionalInt(r.default_row_commit_version)});
  }
  static Value MetadataRow(const Metadata& m) {
    return Value(Value::List{Value(m.id), Optional(m.name), Optional(m.description),
                             Value(Value::List{Value(m.format_provider), MapOf(m.format_options)}),
                             Value(m.schema_string), ListOf(m.partition_columns), MapOf(m.configuration),
                             OptionalInt(m.created_time)});
  }
  static Value ProtocolRow(const Protocol& p) {
    return Value(Value::List{Value(static_cast<std::int64_t>(p.min_reader_version)),
                             Value(static_cast<std::int64_t>(p.min_writer_version)),
                             p.reader_features ? ListOf(*p.reader_features) : Value(),
                             p.writer_features ? ListOf(*p.writer_features) : Value()});
  }

 private:
  std::vector<std::pair<std::string, DataType>> ClassicColumns() const {
    return {{"txn", TransactionType()},   {"add", add_type_},           {"remove", remove_type_},
            {"metaData", MetadataType()}, {"protocol", ProtocolType()}, {"domainMetadata", DomainType()}};
  }

  bool stats_as_json_ = true;
  bool stats_as_struct_ = true;
  std::optional<DataType> partition_type_;
  std::optional<DataType> stats_type_;
  DataType add_type_;
  DataType remove_type_;
};

/// Turns rows into batches a few thousand at a time, so that a large table is not held as values.
class RowsReader final : public columnar::BatchReader {
 public:
  using Source = std::function<bool(Value::List* row)>;
  RowsReader(types::Schema schema, Source next) : schema_(std::move(schema)), next_(std::move(next)) {}
  const types::Schema& schema() const override { return schema_; }
  Result<std::optional<columnar::RecordBatch>> Next() override {
    std::vector<Value::List> rows;
    Value::List row;
    while (rows.size() < 4096 && next_(&row)) {
      rows.push_back(std::move(row));
      row.clear();
    }
    if (rows.empty()) {
      return std::optional<columnar::RecordBatch>();
    }
    FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(schema_, rows));
    return std::optional<columnar::RecordBatch>(std::move(batch));
  }

 private:
  types::Schema schema_;
  Source next_;
};

Result<void> PutLastCheckpoint(const Snapshot& snapshot, const LogContext& context, Json last) {
  const std::string folder = LogFolder(snapshot.location().path);
  const std::string path = folder + "/_last_checkpoint";
  auto& store = *snapshot.location().store;
  last.Set("checksum", Json(Md5Hex(CanonicalJson(last))));
  FLEUVE_TRY(store.Put(path, last.Dump(), storage::PutMode::kOverwrite));
  if (context.durability == Durability::kStrict) {
    const std::array<std::string, 1> files{path};
    const std::array<std::string, 1> folders{folder};
    FLEUVE_TRY(store.Sync(files, folders));
  }
  return {};
}

/// Ten digits, as the names of parts have them.
std::string PartNumber(std::size_t number) {
  std::string text = std::to_string(number);
  text.insert(0, 10 - text.size(), '0');
  return text;
}

Json LastCheckpoint(std::int64_t version, std::int64_t size, std::int64_t bytes, std::int64_t adds) {
  Json last(Json::Object{});
  last.Set("version", Json(version));
  last.Set("size", Json(size));
  last.Set("sizeInBytes", Json(bytes));
  last.Set("numOfAddFiles", Json(adds));
  return last;
}

/// Writes a Parquet file under a hidden name, syncs it and gives it its name.
Result<std::int64_t> PutParquet(const Snapshot& snapshot, const LogContext& context, const std::string& path,
                                const types::Schema& schema, RowsReader::Source next) {
  auto& store = *snapshot.location().store;
  const std::size_t slash = path.rfind('/');
  const std::string folder = path.substr(0, slash);
  const std::string hidden = folder + "/." + path.substr(slash + 1) + "." + NewUuid() + ".tmp";
  FLEUVE_TRY(store.CreateDirectory(folder));
  auto written = context.parquet_writer->Write(hidden, schema, std::make_unique<RowsReader>(schema, std::move(next)));
  if (!written.ok()) {
    store.Delete(hidden).IgnoreBecause("the write has failed already");
    return std::move(written).error();
  }
  const std::array<std::string, 1> files{hidden};
  if (context.durability == Durability::kStrict) {
    FLEUVE_TRY(store.Sync(files, {}));
  }
  const auto committed = store.CommitStaged(hidden, path);
  if (!committed.ok()) {
    store.Delete(hidden).IgnoreBecause("another writer was first");
    if (committed.error().kind() != ErrorKind::kAlreadyExists) {
      return committed.error();
    }
  }
  if (context.durability == Durability::kStrict) {
    const std::array<std::string, 1> folders{folder};
    FLEUVE_TRY(store.Sync({}, folders));
  }
  return *written;
}

}  // namespace

Result<void> WriteCheckpoint(const Snapshot& snapshot, const LogContext& context, const CheckpointShape& shape) {
  if (!context.parquet_writer || !snapshot.location().store->is_local()) {
    return {};
  }
  FLEUVE_TRY(CheckWritable(snapshot.protocol(), snapshot.location().path));
  const CheckpointRows rows(snapshot);
  const std::string folder = LogFolder(snapshot.location().path);
  const std::string version = VersionName(snapshot.version());
  // Files are taken one by one: all of them at once would take more memory than the snapshot itself.
  FileSet::Cursor files(*snapshot.state().files);
  const auto next_file = [&files] {
    AddFile file;
    files.Next(&file);
    return file;
  };
  const std::vector<RemoveFile> tombstones = snapshot.Tombstones();
  const std::vector<SetTransaction> transactions = snapshot.Transactions();
  const std::vector<DomainMetadata> domains = snapshot.Domains();
  const std::string* policy = snapshot.Property("delta.checkpointPolicy");
  const bool v2 = policy != nullptr && EqualsIgnoreAsciiCase(*policy, "v2");
  const std::int64_t adds = snapshot.file_count();

  const std::size_t file_actions = static_cast<std::size_t>(adds) + tombstones.size();
  const auto most = static_cast<std::size_t>(std::max<std::int64_t>(0, shape.part_rows));
  const std::size_t parts = most == 0 ? 1 : std::max<std::size_t>(1, (file_actions + most - 1) / most);

  if (!v2) {
    std::size_t at = 0;
    std::size_t end = 0;
    const std::size_t total = 2 + transactions.size() + domains.size() + file_actions;
    const auto next = [&](Value::List* row) {
      if (at >= end) {
        return false;
      }
      row->assign(6, Value());
      std::size_t i = at++;
      if (i == 0) {
        (*row)[4] = CheckpointRows::ProtocolRow(snapshot.protocol());
      } else if (i == 1) {
        (*row)[3] = CheckpointRows::MetadataRow(snapshot.metadata());
      } else if ((i -= 2) < transactions.size()) {
        (*row)[0] = CheckpointRows::TransactionRow(transactions[i]);
      } else if ((i -= transactions.size()) < domains.size()) {
        (*row)[5] = CheckpointRows::DomainRow(domains[i]);
      } else if ((i -= domains.size()) < tombstones.size()) {
        (*row)[2] = CheckpointRows::RemoveRow(tombstones[i]);
      } else {
        (*row)[1] = rows.AddRow(next_file());
      }
      return true;
    };
    std::int64_t bytes = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      end = total * (part + 1) / parts;
      const std::string name = parts == 1
                                   ? ".checkpoint.parquet"
                                   : ".checkpoint." + PartNumber(part + 1) + "." + PartNumber(parts) + ".parquet";
      FLEUVE_ASSIGN(const std::int64_t part_bytes,
                    PutParquet(snapshot, context, folder + "/" + version + name, rows.ClassicSchema(), next));
      bytes += part_bytes;
    }
    Json last = LastCheckpoint(snapshot.version(), static_cast<std::int64_t>(total), bytes, adds);
    if (parts > 1) {
      last.Set("parts", Json(static_cast<std::int64_t>(parts)));
    }
    return PutLastCheckpoint(snapshot, context, std::move(last));
  }

  // v2: file actions in sidecars, the rest in a JSON file on top.
  std::size_t at = 0;
  std::size_t end = 0;
  const auto next = [&](Value::List* row) {
    if (at >= end) {
      return false;
    }
    row->assign(2, Value());
    const std::size_t i = at++;
    if (i < tombstones.size()) {
      (*row)[1] = CheckpointRows::RemoveRow(tombstones[i]);
    } else {
      (*row)[0] = rows.AddRow(next_file());
    }
    return true;
  };
  std::vector<SidecarFile> sidecars;
  std::int64_t sidecar_bytes = 0;
  for (std::size_t part = 0; part < parts; ++part) {
    end = file_actions * (part + 1) / parts;
    const std::string name =
        version + ".checkpoint." + PartNumber(part + 1) + "." + PartNumber(parts) + "." + NewUuid() + ".parquet";
    FLEUVE_ASSIGN(const std::int64_t bytes,
                  PutParquet(snapshot, context, folder + "/_sidecars/" + name, rows.SidecarSchema(), next));
    sidecars.push_back({name, bytes, context.clock->NowMillis()});
    sidecar_bytes += bytes;
  }
  std::string top;
  top += "{\"checkpointMetadata\":{\"version\":" + std::to_string(snapshot.version()) + ",\"tags\":{}}}\n";
  for (const SidecarFile& sidecar : sidecars) {
    AppendJsonLine(top, sidecar);
  }
  AppendJsonLine(top, snapshot.protocol());
  AppendJsonLine(top, snapshot.metadata());
  for (const SetTransaction& t : transactions) {
    AppendJsonLine(top, t);
  }
  for (const DomainMetadata& d : domains) {
    AppendJsonLine(top, d);
  }
  const std::string name = version + ".checkpoint." + NewUuid() + (shape.parquet_top ? ".parquet" : ".json");
  auto top_bytes = static_cast<std::int64_t>(top.size());
  if (shape.parquet_top) {
    std::vector<Value::List> top_rows;
    const auto add_row = [&](std::size_t column, Value value) {
      top_rows.emplace_back(8, Value());
      top_rows.back()[column] = std::move(value);
    };
    add_row(6, Value(Value::List{Value(snapshot.version()), MapOf(StringMap())}));
    for (const SidecarFile& sidecar : sidecars) {
      add_row(7, Value(Value::List{Value(sidecar.path), Value(sidecar.size_in_bytes), Value(sidecar.modification_time),
                                   Value()}));
    }
    add_row(4, CheckpointRows::ProtocolRow(snapshot.protocol()));
    add_row(3, CheckpointRows::MetadataRow(snapshot.metadata()));
    for (const SetTransaction& t : transactions) {
      add_row(0, CheckpointRows::TransactionRow(t));
    }
    for (const DomainMetadata& d : domains) {
      add_row(5, CheckpointRows::DomainRow(d));
    }
    std::size_t top_at = 0;
    const auto next_row = [&](Value::List* row) {
      if (top_at >= top_rows.size()) {
        return false;
      }
      *row = std::move(top_rows[top_at++]);
      return true;
    };
    FLEUVE_ASSIGN(top_bytes, PutParquet(snapshot, context, folder + "/" + name, rows.TopSchema(), next_row));
  } else {
    auto& store = *snapshot.location().store;
    FLEUVE_ASSIGN(const std::string staged, store.Stage(folder + "/" + name, top, NewUuid()));
    if (context.durability == Durability::kStrict) {
      const std::array<std::string, 1> staged_files{staged};
      FLEUVE_TRY(store.Sync(staged_files, {}));
    }
    FLEUVE_TRY(store.CommitStaged(staged, folder + "/" + name));
  }
  std::int64_t actions = 0;
  for (const char c : top) {
    actions += c == '\n' ? 1 : 0;
  }
  Json last = LastCheckpoint(snapshot.version(), actions + static_cast<std::int64_t>(file_actions),
                             top_bytes + sidecar_bytes, adds);
  Json v2_part(Json::Object{});
  v2_part.Set("path", Json(name));
  v2_part.Set("sizeInBytes", Json(top_bytes));
  v2_part.Set("modificationTime", Json(sidecars.back().modification_time));
  Json::Array non_file;
  for (const std::string& line : Split(top, '\n')) {
    if (!line.empty() && !line.starts_with("{\"sidecar\"")) {
      FLEUVE_ASSIGN(Json json, Json::Parse(line));
      non_file.push_back(std::move(json));
    }
  }
  v2_part.Set("nonFileActions", Json(std::move(non_file)));
  Json::Array sidecar_files;
  for (const SidecarFile& sidecar : sidecars) {
    FLEUVE_ASSIGN(Json json, Json::Parse(ToJsonLine(sidecar)));
    sidecar_files.push_back(json["sidecar"]);
  }
  v2_part.Set("sidecarFiles", Json(std::move(sidecar_files)));
  last.Set("v2Checkpoint", std::move(v2_part));
  return PutLastCheckpoint(snapshot, context, std::move(last));
}

}  // namespace fleuve::delta
