#include <set>

#include "columnar/ipc.h"
#include "delta/actions_internal.h"
#include "delta/checkpoint_columns_internal.h"
#include "delta/checkpoint_internal.h"
#include "delta/table_source.h"

namespace fleuve::delta {

using types::DataType;
using types::Value;

namespace {

/// The part of `wanted` that `there` has, recursively by name; nullopt where nothing is left.
std::optional<DataType> Intersect(const DataType& wanted, const DataType& there) {
  if (!wanted.Is(types::TypeKind::kStruct)) {
    return there;
  }
  if (!there.Is(types::TypeKind::kStruct)) {
    return std::nullopt;
  }
  std::vector<types::StructField> fields;
  for (const types::StructField& field : wanted.fields()) {
    const auto at = types::FieldIndex(there, field.name, true);
    if (!at) {
      continue;
    }
    if (auto type = Intersect(field.type, there.fields()[*at].type)) {
      fields.push_back({field.name, *std::move(type), true, Json()});
    }
  }
  if (fields.empty()) {
    return std::nullopt;
  }
  return DataType::Struct(std::move(fields));
}

DataType WantedSchema() {
  const DataType text = DataType::String();
  const DataType whole = DataType::Long();
  const DataType map = DataType::Map(text, text);
  const auto record = [](std::vector<std::pair<std::string, DataType>> members) {
    std::vector<types::StructField> fields;
    for (auto& [name, type] : members) {
      fields.push_back({name, type, true, Json()});
    }
    return DataType::Struct(std::move(fields));
  };
  const DataType vector = record({{"storageType", text},
                                  {"pathOrInlineDv", text},
                                  {"offset", DataType::Int()},
                                  {"sizeInBytes", DataType::Int()},
                                  {"cardinality", whole},
                                  {"maxRowIndex", whole}});
  return record({
      {"txn", record({{"appId", text}, {"version", whole}, {"lastUpdated", whole}})},
      {"add", record({{"path", text},
                      {"partitionValues", map},
                      {"size", whole},
                      {"modificationTime", whole},
                      {"dataChange", DataType::Boolean()},
                      {"stats", text},
                      {"tags", map},
                      {"deletionVector", vector},
                      {"baseRowId", whole},
                      {"defaultRowCommitVersion", whole},
                      {"clusteringProvider", text}})},
      {"remove", record({{"path", text},
                         {"deletionTimestamp", whole},
                         {"dataChange", DataType::Boolean()},
                         {"extendedFileMetadata", DataType::Boolean()},
                         {"partitionValues", map},
                         {"size", whole},
                         {"deletionVector", vector},
                         {"baseRowId", whole},
                         {"defaultRowCommitVersion", whole}})},
      {"metaData", record({{"id", text},
                           {"name", text},
                           {"description", text},
                           {"format", record({{"provider", text}, {"options", map}})},
                           {"schemaString", text},
                           {"partitionColumns", DataType::Array(text)},
                           {"configuration", map},
                           {"createdTime", whole}})},
      {"protocol", record({{"minReaderVersion", DataType::Int()},
                           {"minWriterVersion", DataType::Int()},
                           {"readerFeatures", DataType::Array(text)},
                           {"writerFeatures", DataType::Array(text)}})},
      {"domainMetadata", record({{"domain", text}, {"configuration", text}, {"removed", DataType::Boolean()}})},
      {"checkpointMetadata", record({{"version", whole}})},
      {"sidecar", record({{"path", text}, {"sizeInBytes", whole}, {"modificationTime", whole}})},
  });
}

/// A struct value with its type: members by name.
class Record {
 public:
  Record(const Value& value, const DataType& type) : value_(value), type_(type) {}
  const Value* Get(std::string_view name) const {
    const auto& fields = type_.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (fields[i].name == name) {
        const Value& v = value_.list()[i];
        return v.is_null() ? nullptr : &v;
      }
    }
    return nullptr;
  }
  const DataType& TypeOf(std::string_view name) const {
    for (const types::StructField& field : type_.fields()) {
      if (field.name == name) {
        return field.type;
      }
    }
    return type_;
  }
  std::string Text(std::string_view name) const {
    const Value* v = Get(name);
    return v == nullptr ? std::string() : v->text();
  }
  std::optional<std::string> OptionalText(std::string_view name) const {
    const Value* v = Get(name);
    return v == nullptr ? std::nullopt : std::optional<std::string>(v->text());
  }
  std::optional<std::int64_t> OptionalInt(std::string_view name) const {
    const Value* v = Get(name);
    return v == nullptr ? std::nullopt : std::optional<std::int64_t>(v->integer());
  }
  std::int64_t Int(std::string_view name) const { return OptionalInt(name).value_or(0); }
  bool Bool(std::string_view name, bool fallback) const {
    const Value* v = Get(name);
    return v == nullptr ? fallback : v->boolean();
  }
  std::optional<PartitionValues> Values(std::string_view name) const {
    const Value* v = Get(name);
    if (v == nullptr) {
      return std::nullopt;
    }
    PartitionValues out;
    for (const Value& entry : v->list()) {
      const Value& value = entry.list()[1];
      out.emplace_back(entry.list()[0].text(),
                       value.is_null() ? std::nullopt : std::optional<std::string>(value.text()));
    }
    return out;
  }
  std::optional<StringMap> Map(std::string_view name) const {
    const auto values = Values(name);
    if (!values) {
      return std::nullopt;
    }
    StringMap out;
    for (const auto& [k, v] : *values) {
      out.emplace_back(k, v.value_or(""));
    }
    return out;
  }
  std::optional<std::vector<std::string>> Strings(std::string_view name) const {
    const Value* v = Get(name);
    if (v == nullptr) {
      return std::nullopt;
    }
    std::vector<std::string> out;
    for (const Value& item : v->list()) {
      out.push_back(item.is_null() ? std::string() : item.text());
    }
    return out;
  }
  std::optional<DeletionVectorDescriptor> Vector() const {
    const Value* v = Get("deletionVector");
    if (v == nullptr) {
      return std::nullopt;
    }
    const Record r(*v, TypeOf("deletionVector"));
    if (r.Get("storageType") == nullptr) {
      return std::nullopt;
    }
    DeletionVectorDescriptor dv;
    dv.storage_type = r.Text("storageType");
    dv.path_or_inline_dv = r.Text("pathOrInlineDv");
    if (const auto offset = r.OptionalInt("offset")) {
      dv.offset = static_cast<std::int32_t>(*offset);
    }
    dv.size_in_bytes = static_cast<std::int32_t>(r.Int("sizeInBytes"));
    dv.cardinality = r.Int("cardinality");
    dv.max_row_index = r.OptionalInt("maxRowIndex");
    return dv;
  }

 private:
  const Value& value_;
  const DataType& type_;
};

Action ToAction(const std::string& kind, const Record& r) {
  if (kind == "add") {
    AddFile a;
    a.path = r.Text("path");
    a.partition_values = r.Values("partitionValues").value_or(PartitionValues());
    a.size = r.Int("size");
    a.modification_time = r.Int("modificationTime");
    a.data_change = r.Bool("dataChange", false);
    a.stats = r.Text("stats");
    a.tags = r.Map("tags");
    a.deletion_vector = r.Vector();
    a.base_row_id = r.OptionalInt("baseRowId");
    a.default_row_commit_version = r.OptionalInt("defaultRowCommitVersion");
    a.clustering_provider = r.OptionalText("clusteringProvider");
    return a;
  }
  if (kind == "remove") {
    RemoveFile f;
    f.path = CanonicalPath(r.Text("path"));
    f.deletion_timestamp = r.OptionalInt("deletionTimestamp");
    f.data_change = r.Bool("dataChange", false);
    if (r.Get("extendedFileMetadata") != nullptr) {
      f.extended_file_metadata = r.Bool("extendedFileMetadata", false);
    }
    f.partition_values = r.Values("partitionValues");
    f.size = r.OptionalInt("size");
    f.deletion_vector = r.Vector();
    f.base_row_id = r.OptionalInt("baseRowId");
    f.default_row_commit_version = r.OptionalInt("defaultRowCommitVersion");
    return f;
  }
  if (kind == "metaData") {
    Metadata m;
    m.id = r.Text("id");
    m.name = r.OptionalText("name");
    m.description = r.OptionalText("description");
    if (const Value* format = r.Get("format")) {
      const Record f(*format, r.TypeOf("format"));
      m.format_provider = f.Text("provider");
      m.format_options = f.Map("options").value_or(StringMap());
    }
    m.schema_string = r.Text("schemaString");
    m.partition_columns = r.Strings("partitionColumns").value_or(std::vector<std::string>());
    m.configuration = r.Map("configuration").value_or(StringMap());
    m.created_time = r.OptionalInt("createdTime");
    return m;
  }
  if (kind == "protocol") {
    Protocol p;
    p.min_reader_version = static_cast<std::int32_t>(r.Int("minReaderVersion"));
    p.min_writer_version = static_cast<std::int32_t>(r.Int("minWriterVersion"));
    if (p.min_reader_version >= 3) {
      p.reader_features = r.Strings("readerFeatures");
    }
    if (p.min_writer_version >= 7) {
      p.writer_features = r.Strings("writerFeatures");
    }
    return p;
  }
  if (kind == "txn") {
    return SetTransaction{r.Text("appId"), r.Int("version"), r.OptionalInt("lastUpdated")};
  }
  if (kind == "domainMetadata") {
    return DomainMetadata{r.Text("domain"), r.Text("configuration"), r.Bool("removed", false)};
  }
  if (kind == "sidecar") {
    return SidecarFile{r.Text("path"), r.Int("sizeInBytes"), r.Int("modificationTime")};
  }
  return CheckpointMetadata{r.Int("version")};
}

/// Collects the actions of checkpoint files.
class Loader {
 public:
  Loader(const storage::Location& table, const LogContext& context) : table_(table), context_(context) {}

  Result<void> ReadParquet(const std::string& path) {
    if (!context_.parquet_reader) {
      return Error::Unsupported("reading Parquet checkpoints without a Parquet reader");
    }
    if (!table_.store->is_local()) {
      return Error::Unsupported("Parquet checkpoints outside the local file system");
    }
    if (const auto head = table_.store->Head(path); !head.ok()) {
      if (head.error().kind() == ErrorKind::kNotFound) {
        return Error(ErrorKind::kNotFound, "DELTA_MISSING_PART_FILES", "The checkpoint file " + path + " is missing.")
            .With("version", path);
      }
      return head.error();
    }
    FLEUVE_ASSIGN(const types::Schema there, context_.parquet_reader->ReadSchema(path));
    const auto schema = Intersect(WantedSchema(), there);
    if (!schema) {
      return Error(ErrorKind::kCorrupt, "DELTA_CORRUPT_LOG", "The checkpoint file " + path + " has no known columns.");
    }
    FLEUVE_ASSIGN(auto reader, context_.parquet_reader->Read(path, *schema));
    while (true) {
      FLEUVE_ASSIGN(auto batch, reader->Next());
      if (!batch) {
        return {};
      }
      FLEUVE_TRY(TakeBatch(*batch, *schema));
    }
  }

  /// Added files straight from the columns, the few other actions as rows.
  Result<void> TakeBatch(const columnar::RecordBatch& batch, const types::Schema& schema) {
    const AddColumns adds(batch, schema);
    std::int64_t at = 0;
    while (at < batch.row_count()) {
      if (adds.IsPlain(at)) {
        adds.AddTo(at, &files_);
        ++at;
        continue;
      }
      std::int64_t end = at + 1;
      while (end < batch.row_count() && !adds.IsPlain(end)) {
        ++end;
      }
      FLEUVE_ASSIGN(const auto rows, columnar::RowsFromBatch(columnar::Slice(batch, at, end - at)));
      for (const Value::List& row : rows) {
        for (std::size_t i = 0; i < schema.fields().size(); ++i) {
          if (!row[i].is_null()) {
            Take(ToAction(schema.fields()[i].name, Record(row[i], schema.fields()[i].type)));
          }
        }
      }
      at = end;
    }
    return {};
  }

  Result<void> ReadJson(const std::string& path) {
    FLEUVE_ASSIGN(const std::string text, table_.store->Get(path));
    FLEUVE_ASSIGN(std::vector<Action> actions, ParseActions(text, path));
    for (Action& action : actions) {
      Take(std::move(action));
    }
    return {};
  }

  Result<std::shared_ptr<SnapshotState>> Finish(std::int64_t version) {
    SnapshotState empty;
    empty.location = table_;
    FLEUVE_ASSIGN(auto state, ApplyCommit(empty, version, 0, others_));
    state->files = FileSet::FromSegment(files_.Finish());
    return state;
  }
  const std::vector<SidecarFile>& sidecars() const { return sidecars_; }

 private:
  void Take(Action action) {
    if (auto* add = std::get_if<AddFile>(&action)) {
      if (!add->path.empty()) {
        files_.Add(*add);
      }
    } else if (auto* sidecar = std::get_if<SidecarFile>(&action)) {
      sidecars_.push_back(*sidecar);
    } else if (auto* remove = std::get_if<RemoveFile>(&action)) {
      if (!remove->path.empty()) {
        others_.push_back(std::move(action));
      }
    } else {
      others_.push_back(std::move(action));
    }
  }

  const storage::Location& table_;
  const LogContext& context_;
  FileSegment::Builder files_;
  std::vector<Action> others_;
  std::vector<SidecarFile> sidecars_;
};

}  // namespace

namespace {

Result<void> ReadTop(const storage::Location& table, const CheckpointFiles& files, Loader* loader) {
  const std::string folder = LogFolder(table.path) + "/";
  for (const std::string& name : files.names) {
    if (name.ends_with(".json")) {
      FLEUVE_TRY(loader->ReadJson(folder + name));
    } else {
      FLEUVE_TRY(loader->ReadParquet(folder + name));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> SidecarsOf(const storage::Location& table, const LogContext& context,
                                            const CheckpointFiles& files) {
  Loader loader(table, context);
  FLEUVE_TRY(ReadTop(table, files, &loader));
  std::vector<std::string> paths;
  for (const SidecarFile& sidecar : loader.sidecars()) {
    paths.push_back(sidecar.path);
  }
  return paths;
}

Result<std::shared_ptr<SnapshotState>> LoadCheckpoint(const storage::Location& table, const LogContext& context,
                                                      const CheckpointFiles& files) {
  Loader loader(table, context);
  const std::string folder = LogFolder(table.path) + "/";
  FLEUVE_TRY(ReadTop(table, files, &loader));
  const std::vector<SidecarFile> sidecars = loader.sidecars();
  for (const SidecarFile& sidecar : sidecars) {
    if (sidecar.path.find('/') == std::string::npos) {
      FLEUVE_TRY(loader.ReadParquet(folder + "_sidecars/" + sidecar.path));
    } else {
      FLEUVE_ASSIGN(const std::string path, AbsolutePath(table, sidecar.path));
      FLEUVE_TRY(loader.ReadParquet(path));
    }
  }
  return loader.Finish(files.version);
}

}  // namespace fleuve::delta
