#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "base/bytes.h"
#include "base/json.h"
#include "checkpoint/log_folder.h"
#include "connectors/autoloader/cloud_schema_internal.h"
#include "storage/object_store.h"

namespace fleuve::connectors::autoloader {

using files::ListedFile;
using plan::FileFormat;
using types::DataType;
using types::StructField;
using types::TypeKind;

Result<std::optional<StoredSchema>> ReadStoredSchema(const std::string& location) {
  FLEUVE_ASSIGN(const storage::Location place, storage::Resolve(location));
  checkpoint::LogFolder log(place.store, place.path + "/_schemas");
  FLEUVE_ASSIGN(const auto names, log.List());
  if (names.empty()) {
    return std::optional<StoredSchema>();
  }
  const std::string name = std::to_string(names.back().id);
  FLEUVE_ASSIGN(const std::string text, log.Read(name));
  FLEUVE_ASSIGN(const checkpoint::LogText parsed, checkpoint::ParseLogText(text, 1, log.PathOf(name)));
  if (parsed.lines.empty()) {
    return Error(ErrorKind::kCorrupt, "MALFORMED_LOG_FILE",
                 "Log file was malformed: no schema in " + log.PathOf(name) + ".");
  }
  FLEUVE_ASSIGN(const Json json, Json::Parse(parsed.lines.front()));
  StoredSchema stored;
  stored.version = names.back().id;
  FLEUVE_ASSIGN(const Json data, Json::Parse(json["dataSchemaJson"].AsString()));
  FLEUVE_ASSIGN(stored.data, DataType::FromJson(data));
  stored.partition = DataType::Struct({});
  if (!json["partitionSchemaJson"].AsString().empty()) {
    FLEUVE_ASSIGN(const Json partition, Json::Parse(json["partitionSchemaJson"].AsString()));
    FLEUVE_ASSIGN(stored.partition, DataType::FromJson(partition));
  }
  return std::optional(std::move(stored));
}

Result<bool> WriteStoredSchema(const std::string& location, const StoredSchema& schema) {
  FLEUVE_ASSIGN(const storage::Location place, storage::Resolve(location));
  checkpoint::LogFolder log(place.store, place.path + "/_schemas");
  Json json = Json::Object{};
  json.Set("dataSchemaJson", schema.data.ToJson().Dump());
  json.Set("partitionSchemaJson", schema.partition.ToJson().Dump());
  const std::string name = std::to_string(schema.version);
  auto written = log.Write(name, "v1\n" + json.Dump());
  if (!written.ok()) {
    if (written.error().kind() == ErrorKind::kAlreadyExists) {
      return false;
    }
    return std::move(written).error();
  }
  const std::vector<std::string> files = {log.PathOf(name)};
  const std::vector<std::string> folders = {log.path(), place.path};
  FLEUVE_TRY(place.store->Sync(files, folders));
  return true;
}

Result<std::vector<Hint>> ParseHints(const std::string& text) {
  std::vector<Hint> hints;
  std::vector<std::string> parts;
  int depth = 0;
  bool quoted = false;
  std::string part;
  for (const char c : text) {
    if (c == '`') {
      quoted = !quoted;
    }
    if (!quoted && (c == '<' || c == '(')) {
      ++depth;
    }
    if (!quoted && (c == '>' || c == ')')) {
      --depth;
    }
    if (!quoted && depth == 0 && c == ',') {
      parts.push_back(part);
      part.clear();
      continue;
    }
    part.push_back(c);
  }
  parts.push_back(part);
  for (const std::string& raw : parts) {
    const std::string_view hint = TrimAscii(raw);
    if (hint.empty()) {
      continue;
    }
    Hint parsed;
    std::string name;
    std::size_t i = 0;
    bool inside = false;
    for (; i < hint.size(); ++i) {
      const char c = hint[i];
      if (c == '`') {
        inside = !inside;
      } else if (!inside && c == '.') {
        parsed.path.push_back(std::move(name));
        name.clear();
      } else if (!inside && (c == ' ' || c == '\t' || c == '\n' || c == ':')) {
        break;
      } else {
        name.push_back(c);
      }
    }
    parsed.path.push_back(std::move(name));
    std::string_view type = TrimAscii(hint.substr(std::min(i + 1, hint.size())));
    if (!type.empty() && type.front() == ':') {
      type = TrimAscii(type.substr(1));
    }
    auto ddl = type.empty() ? Result<DataType>(Error::Internal("")) : DataType::FromDdl(type);
    if (!ddl.ok()) {
      return Error(ErrorKind::kInvalidArgument, "CF_INVALID_SCHEMA_HINTS",
                   "The schema hint '" + std::string(hint) +
                       "' of option 'cloudFiles.schemaHints' is not a column name and a type.");
    }
    parsed.type = std::move(ddl).value();
    hints.push_back(std::move(parsed));
  }
  return hints;
}

namespace {

DataType ApplyHint(const DataType& type, const std::vector<std::string>& path, std::size_t at, const DataType& hint) {
  if (at == path.size()) {
    return hint;
  }
  if (type.Is(TypeKind::kArray) && EqualsIgnoreAsciiCase(path[at], "element")) {
    return DataType::Array(ApplyHint(type.element(), path, at + 1, hint));
  }
  if (type.Is(TypeKind::kMap) && EqualsIgnoreAsciiCase(path[at], "key")) {
    return DataType::Map(ApplyHint(type.key(), path, at + 1, hint), type.value());
  }
  if (type.Is(TypeKind::kMap) && EqualsIgnoreAsciiCase(path[at], "value")) {
    return DataType::Map(type.key(), ApplyHint(type.value(), path, at + 1, hint));
  }
  std::vector<StructField> fields = type.fields();
  for (StructField& field : fields) {
    if (EqualsIgnoreAsciiCase(field.name, path[at])) {
      field.type = ApplyHint(field.type, path, at + 1, hint);
      return DataType::Struct(std::move(fields));
    }
  }
  fields.push_back({path[at], ApplyHint(DataType::Struct({}), path, at + 1, hint), true, {}});
  return DataType::Struct(std::move(fields));
}

bool AddInside(const DataType& current, const DataType& found, const std::string& prefix, DataType* merged,
               std::vector<std::string>* names) {
  if (current.Is(TypeKind::kArray) && found.Is(TypeKind::kArray)) {
    DataType element;
    if (!AddInside(current.element(), found.element(), prefix + "element.", &element, names)) {
      return false;
    }
    *merged = DataType::Array(std::move(element));
    return true;
  }
  if (!current.Is(TypeKind::kStruct) || !found.Is(TypeKind::kStruct)) {
    return false;
  }
  std::vector<StructField> fields = current.fields();
  bool changed = false;
  for (const StructField& field : found.fields()) {
    const auto at = types::FieldIndex(current, field.name);
    if (!at) {
      fields.push_back({field.name, field.type, true, {}});
      names->push_back(prefix + field.name);
      changed = true;
      continue;
    }
    DataType inner;
    if (AddInside(current.fields()[*at].type, field.type, prefix + field.name + ".", &inner, names)) {
      fields[*at].type = std::move(inner);
      changed = true;
    }
  }
  if (changed) {
    *merged = DataType::Struct(std::move(fields));
  }
  return changed;
}

/// The folder above the first part of a path that has a glob.
std::string LiteralBase(const std::string& path) {
  if (!files::IsGlob(path)) {
    return path;
  }
  const std::size_t glob = path.find_first_of("*?[{");
  const std::size_t slash = path.rfind('/', glob);
  return slash == 0 ? "/" : path.substr(0, slash);
}

bool ParquetReads(const DataType& file, const DataType& wanted) {
  if (file.EqualsIgnoringNullability(wanted)) {
    return true;
  }
  if (file.Is(TypeKind::kStruct) && wanted.Is(TypeKind::kStruct)) {
    for (const StructField& field : wanted.fields()) {
      const auto at = types::FieldIndex(file, field.name);
      if (at && !ParquetReads(file.fields()[*at].type, field.type)) {
        return false;
      }
    }
    return true;
  }
  if (file.Is(TypeKind::kArray) && wanted.Is(TypeKind::kArray)) {
    return ParquetReads(file.element(), wanted.element());
  }
  if (file.Is(TypeKind::kMap) && wanted.Is(TypeKind::kMap)) {
    return ParquetReads(file.key(), wanted.key()) && ParquetReads(file.value(), wanted.value());
  }
  if (file.IsIntegral() && wanted.IsIntegral()) {
    return file.kind() <= wanted.kind();
  }
  if (file.IsIntegral() && wanted.Is(TypeKind::kDouble)) {
    return !file.Is(TypeKind::kLong);
  }
  if (file.Is(TypeKind::kFloat) && wanted.Is(TypeKind::kDouble)) {
    return true;
  }
  if (file.Is(TypeKind::kDate) && wanted.Is(TypeKind::kTimestampNtz)) {
    return true;
  }
  if (file.Is(TypeKind::kDecimal) && wanted.Is(TypeKind::kDecimal)) {
    return wanted.scale() >= file.scale() && wanted.precision() - wanted.scale() >= file.precision() - file.scale();
  }
  return false;
}

}  // namespace

types::Schema ApplyHints(const types::Schema& schema, const std::vector<Hint>& hints) {
  types::Schema out = schema;
  for (const Hint& hint : hints) {
    out = ApplyHint(out, hint.path, 0, hint.type);
  }
  return out;
}

std::optional<types::Schema> AddNewFields(const types::Schema& current, const types::Schema& found,
                                          std::vector<std::string>* names) {
  DataType merged;
  if (!AddInside(current, found, "", &merged, names)) {
    return std::nullopt;
  }
  return merged;
}

/// Hears of unknown fields while a batch is read: infers the schema of all its files once.
class EvolutionHandler final : public plan::UnknownFieldHandler {
 public:
  EvolutionHandler(std::shared_ptr<const CloudRelation> relation, std::vector<ListedFile> files)
      : relation_(std::move(relation)), files_(std::move(files)) {}

  std::optional<Error> OnUnknownField(const plan::ScanFile& file, const std::string&, std::string_view) const override {
    const std::lock_guard lock(mutex_);
    if (!asked_) {
      asked_ = true;
      auto found = relation_->Infer(files_);
      if (!found.ok()) {
        answer_ = found.error();
      } else {
        auto evolved = relation_->Evolve(*found, file.uri);
        answer_ = evolved.ok() ? *evolved : std::optional<Error>(evolved.error());
      }
    }
    return answer_;
  }

 private:
  const std::shared_ptr<const CloudRelation> relation_;
  const std::vector<ListedFile> files_;
  mutable std::mutex mutex_;
  mutable bool asked_ = false;
  mutable std::optional<Error> answer_;
};

Result<std::shared_ptr<const CloudRelation>> CloudRelation::Make(const std::vector<std::string>& paths,
                                                                 const std::optional<types::Schema>& schema,
                                                                 const plan::Options& options,
                                                                 bool defaults_of_read_files, bool batch,
                                                                 const plan::AnalysisConfig& config) {
  auto relation = std::shared_ptr<CloudRelation>(new CloudRelation());
  const bool given = schema && !schema->fields().empty();
  FLEUVE_ASSIGN(relation->cloud_, ParseCloudOptions(options, given, defaults_of_read_files, config));
  const CloudOptions& cloud = relation->cloud_;
  relation->options_ = options;
  relation->config_ = config;
  std::vector<std::string> all_paths = paths;
  if (all_paths.empty()) {
    if (const std::string* path = plan::FindOption(options, "path")) {
      all_paths.push_back(*path);
    }
  }
  if (all_paths.size() != 1) {
    return Error(ErrorKind::kInvalidArgument, "CF_MISSING_PATH",
                 all_paths.empty() ? "Auto Loader needs a path: call load(path)."
                                   : "Auto Loader reads one path; give a glob or start one stream for each path.");
  }
  FLEUVE_ASSIGN(relation->path_, files::LocalPathOf(all_paths[0]));
  relation->base_ = LiteralBase(relation->path_);
  bool is_directory = true;
  if (!files::IsGlob(relation->path_)) {
    if (!files::StatFile(relation->path_, &is_directory)) {
      return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND",
                   "Path does not exist: " + storage::ToFileUri(relation->path_) + ".")
          .With("path", storage::ToFileUri(relation->path_));
    }
    if (!is_directory) {
      relation->base_ = relation->path_.substr(0, relation->path_.rfind('/'));
    }
  }
  if (cloud.clean == Clean::kMove && (cloud.move_folder + "/").starts_with(relation->base_ + "/")) {
    return Error(ErrorKind::kInvalidArgument, "CF_INVALID_OPTION_VALUE",
                 "The value '" + cloud.move_folder +
                     "' of option 'cloudFiles.cleanSource.moveDestination' is not valid: it must not lie under the "
                     "source folder.");
  }
  FLEUVE_ASSIGN(relation->filter_, files::MakeListFilter(cloud.reader, config.session_zone));
  FLEUVE_ASSIGN(relation->hints_, ParseHints(cloud.hints));
  plan::Options reader = cloud.reader;
  if (cloud.format == FileFormat::kCsv) {
    if (!given && plan::FindOption(reader, "header") == nullptr) {
      reader["header"] = "true";
    }
    const std::string* header = plan::FindOption(reader, "header");
    reader["fleuve.csvByHeader"] = header != nullptr && EqualsIgnoreAsciiCase(*header, "true") ? "true" : "false";
  }
  FLEUVE_ASSIGN(relation->reader_, files::ReaderOptions(cloud.format, reader, config));

  const auto fixed = files::FixedSchema(cloud.format);
  std::optional<StoredSchema> stored;
  if (!given && !cloud.schema_location.empty() && !batch) {
    FLEUVE_ASSIGN(stored, ReadStoredSchema(cloud.schema_location));
  }
  if (stored) {
    relation->schema_version_ = stored->version;
    types::Schema partition = stored->partition;
    if (cloud.partition_columns) {
      FLEUVE_ASSIGN(const auto found, relation->List());
      FLEUVE_ASSIGN(const auto partitioning, relation->FindPartitions(found, std::nullopt));
      partition = partitioning.schema;
    }
    FLEUVE_TRY(relation->Finish(ApplyHints(stored->data, relation->hints_), partition, true));
    return std::shared_ptr<const CloudRelation>(std::move(relation));
  }
  if (!given && !fixed && cloud.schema_location.empty() && !batch) {
    return Error(ErrorKind::kInvalidArgument, "CF_MISSING_SCHEMA_LOCATION",
                 "The schema of the stream is not known. Give a schema with schema(...), or set option "
                 "'cloudFiles.schemaLocation' so that it can be inferred and tracked.");
  }
  FLEUVE_ASSIGN(const auto found, relation->List());
  if (given || fixed) {
    FLEUVE_ASSIGN(const auto partitioning, relation->FindPartitions(found, given ? schema : std::nullopt));
    FLEUVE_TRY(relation->Finish(given ? *schema : *fixed, partitioning.schema, false));
    return std::shared_ptr<const CloudRelation>(std::move(relation));
  }
  if (found.empty()) {
    return Error(ErrorKind::kInvalidArgument, "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
                 "Cannot infer schema when the input path " + relation->path_ +
                     " is empty. Please try to start the stream when there are files in the input path, or specify the "
                     "schema.")
        .With("directory", relation->path_);
  }
  std::vector<ListedFile> sample = found;
  std::sort(sample.begin(), sample.end(), [](const ListedFile& a, const ListedFile& b) {
    return a.modified_nanos != b.modified_nanos ? a.modified_nanos > b.modified_nanos : a.path < b.path;
  });
  std::size_t count = 0;
  std::int64_t bytes = 0;
  while (count < sample.size() && static_cast<std::int64_t>(count) < cloud.sample_files && bytes < cloud.sample_bytes) {
    bytes += sample[count++].size_bytes;
  }
  sample.resize(count);
  // The first spelling of a name is the one of the oldest file.
  std::sort(sample.begin(), sample.end(), [](const ListedFile& a, const ListedFile& b) {
    return a.modified_nanos != b.modified_nanos ? a.modified_nanos < b.modified_nanos : a.path < b.path;
  });
  FLEUVE_ASSIGN(types::Schema data, relation->Infer(sample));
  FLEUVE_ASSIGN(const auto partitioning, relation->FindPartitions(found, std::nullopt));
  data = ApplyHints(data, relation->hints_);
  types::Schema partition = partitioning.schema;
  if (!batch) {
    StoredSchema first{0, data, partition};
    FLEUVE_ASSIGN(const bool mine, WriteStoredSchema(cloud.schema_location, first));
    if (!mine) {
      FLEUVE_ASSIGN(const auto other, ReadStoredSchema(cloud.schema_location));
      if (other) {
        first = *other;
      }
    }
    relation->schema_version_ = first.version;
    data = ApplyHints(first.data, relation->hints_);
    partition = first.partition;
  }
  FLEUVE_TRY(relation->Finish(data, partition, true));
  return std::shared_ptr<const CloudRelation>(std::move(relation));
}

Result<void> CloudRelation::Finish(const types::Schema& data, const types::Schema& partition, bool inferred) {
  const bool fixed = files::FixedSchema(cloud_.format).has_value();
  const std::string* wanted = plan::FindOption(reader_, "rescuedDataColumn");
  if (wanted != nullptr && !wanted->empty()) {
    rescued_column_ = *wanted;
  } else if ((inferred && cloud_.evolution != Evolution::kNone) ||
             (!inferred && !fixed && cloud_.evolution == Evolution::kRescue)) {
    rescued_column_ = "_rescued_data";
  }
  if (fixed) {
    rescued_column_.clear();
  }
  if (!rescued_column_.empty()) {
    reader_["rescuedDataColumn"] = rescued_column_;
  }
  FLEUVE_ASSIGN(const files::SplitSchema split,
                files::MakeSchema(cloud_.format, data, partition, config_.case_sensitive));
  data_ = split.data;
  partition_ = split.partition;
  constants_ = DataType::Struct({});
  all_ = split.all;
  if (!rescued_column_.empty() && !types::FieldIndex(all_, rescued_column_, config_.case_sensitive)) {
    constants_ = DataType::Struct({{rescued_column_, DataType::String(), true, {}}});
    std::vector<StructField> fields = all_.fields();
    fields.push_back(constants_.fields()[0]);
    all_ = DataType::Struct(std::move(fields));
  }
  return {};
}

namespace {

/// Names that differ only by case count as one column, spelled as in the first of the files that has it.
Result<types::Schema> FirstSpellings(const types::Schema& schema, const std::vector<plan::ScanFile>& files,
                                     const engine::InferOptions& infer) {
  std::map<std::string, std::vector<StructField>> by_name;
  for (const StructField& field : schema.fields()) {
    by_name[AsciiLower(field.name)].push_back(field);
  }
  if (by_name.size() == schema.fields().size()) {
    return schema;
  }
  std::map<std::string, std::string> first;
  for (const plan::ScanFile& file : files) {
    FLEUVE_ASSIGN(const types::Schema own, engine::InferJson({file}, infer));
    for (const StructField& field : own.fields()) {
      first.emplace(AsciiLower(field.name), field.name);
    }
  }
  std::vector<StructField> fields;
  for (const StructField& field : schema.fields()) {
    const std::string lower = AsciiLower(field.name);
    const auto spelled = first.find(lower);
    if (by_name[lower].size() == 1 || (spelled != first.end() && spelled->second == field.name)) {
      fields.push_back(field);
    }
  }
  return DataType::Struct(std::move(fields));
}

}  // namespace

Result<types::Schema> CloudRelation::Infer(const std::vector<ListedFile>& sample) const {
  engine::InferOptions infer;
  infer.options = reader_;
  infer.session_zone = config_.session_zone;
  infer.corrupt_record_column.clear();
  infer.byte_limit = cloud_.sample_bytes;
  std::vector<plan::ScanFile> scan_files;
  for (const ListedFile& file : sample) {
    scan_files.push_back(files::ToScanFile(file));
  }
  const std::string* container = plan::FindOption(reader_, "fleuve.container");
  if (container != nullptr && *container == "xml") {
    return engine::InferXmlFiles(scan_files, reader_, config_.session_zone, cloud_.infer_types);
  }
  if (cloud_.format == FileFormat::kJson && container == nullptr) {
    if (!cloud_.infer_types) {
      infer.options["primitivesAsString"] = "true";
    }
    if (cloud_.widens_types) {
      infer.options["prefersDecimal"] = "true";
    }
    FLEUVE_ASSIGN(types::Schema schema, engine::InferJson(scan_files, infer));
    return FirstSpellings(schema, scan_files, infer);
  }
  if (cloud_.format == FileFormat::kCsv) {
    infer.options["inferSchema"] = cloud_.infer_types ? "true" : "false";
    infer.csv_merge_headers = true;
    return engine::InferCsv(scan_files, infer);
  }
  const std::string* ignore = plan::FindOption(reader_, "ignoreCorruptFiles");
  const bool ignore_corrupt = ignore != nullptr && EqualsIgnoreAsciiCase(*ignore, "true");
  std::vector<StructField> fields;
  for (const ListedFile& file : sample) {
    auto schema = container != nullptr ? engine::ReadAvroFileSchema(file.path) : engine::ReadParquetSchema(file.path);
    if (!schema.ok()) {
      if (ignore_corrupt) {
        continue;
      }
      return std::move(schema).error();
    }
    for (const StructField& field : schema->fields()) {
      const auto at = types::FieldIndex(DataType::Struct(fields), field.name);
      if (!at) {
        fields.push_back(field);
        continue;
      }
      const bool hinted = std::any_of(hints_.begin(), hints_.end(), [&](const Hint& hint) {
        return hint.path.size() == 1 && EqualsIgnoreAsciiCase(hint.path[0], field.name);
      });
      if (hinted) {
        continue;
      }
      auto merged = files::MergeParquetTypes(field.name, fields[*at].type, field.type);
      if (!merged.ok()) {
        return Error(ErrorKind::kInvalidArgument, "CF_FAILED_TO_INFER_SCHEMA.CANNOT_MERGE",
                     "Failed to infer schema for format parquet from existing files in input path " + path_ +
                         ". Failed to merge the schema of " + file.path + ": column " + field.name +
                         " has types that cannot be merged (" + fields[*at].type.Sql() + " and " + field.type.Sql() +
                         "). Give the type with option 'cloudFiles.schemaHints'.");
      }
      fields[*at].type = std::move(merged).value();
    }
  }
  return DataType::Struct(std::move(fields));
}

Result<files::Partitioning> CloudRelation::FindPartitions(const std::vector<ListedFile>& found,
                                                          const std::optional<types::Schema>& user_schema) const {
  files::Partitioning result;
  std::vector<std::string> names;
  if (cloud_.partition_columns) {
    names = *cloud_.partition_columns;
  } else {
    bool first = true;
    for (const ListedFile& file : found) {
      std::vector<std::string> here;
      for (const auto& [name, value] : files::PartitionLevels(base_, file.path)) {
        here.push_back(name);
      }
      if (first) {
        names = here;
        first = false;
      } else if (here != names) {
        // Folders that do not agree: no partition columns.
        return result;
      }
    }
  }
  std::vector<StructField> fields;
  for (const std::string& name : names) {
    if (user_schema) {
      // With a schema only the columns that it names are there.
      if (const auto at = types::FieldIndex(*user_schema, name, config_.case_sensitive)) {
        fields.push_back(user_schema->fields()[*at]);
      }
      continue;
    }
    std::vector<std::optional<std::string>> values;
    for (const ListedFile& file : found) {
      for (auto& [level, value] : files::PartitionLevels(base_, file.path)) {
        if (EqualsIgnoreAsciiCase(level, name)) {
          values.push_back(std::move(value));
        }
      }
    }
    DataType type = cloud_.infer_types ? files::InferPartitionType(values, config_.session_zone) : DataType::String();
    for (const Hint& hint : hints_) {
      if (hint.path.size() == 1 && EqualsIgnoreAsciiCase(hint.path[0], name)) {
        type = hint.type;
      }
    }
    fields.push_back({name, type, true, {}});
  }
  result.schema = DataType::Struct(std::move(fields));
  return result;
}

Result<std::vector<ListedFile>> CloudRelation::List() const {
  if (!files::IsGlob(path_)) {
    return files::ListFiles(path_, filter_);
  }
  std::vector<ListedFile> found;
  if (cloud_.strict_globs) {
    std::set<std::string> seen;
    for (const std::string& root : files::ExpandGlob(path_)) {
      FLEUVE_ASSIGN(auto some, files::ListFiles(root, filter_));
      for (ListedFile& file : some) {
        if (seen.insert(file.path).second) {
          found.push_back(std::move(file));
        }
      }
    }
  } else {
    FLEUVE_ASSIGN(found, files::ListFiles(base_, filter_));
    std::erase_if(found, [&](const ListedFile& file) { return !files::GlobMatches(path_ + "*", file.path, true); });
  }
  std::sort(found.begin(), found.end(), [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; });
  return found;
}

Result<std::optional<Error>> CloudRelation::Evolve(const types::Schema& found, const std::string& uri) const {
  std::vector<std::string> names;
  std::vector<std::string> widened;
  StoredSchema current{schema_version_, data_, partition_};
  for (;;) {
    // Columns that stand in folder names are no new columns.
    std::vector<StructField> known = current.data.fields();
    known.insert(known.end(), partition_.fields().begin(), partition_.fields().end());
    if (!rescued_column_.empty()) {
      known.push_back({rescued_column_, DataType::String(), true, {}});
    }
    names.clear();
    widened.clear();
    std::optional<types::Schema> merged = AddNewFields(DataType::Struct(known), found, &names);
    if (cloud_.widens_types) {
      const types::Schema base = merged ? *merged : DataType::Struct(known);
      if (auto wider = WidenFields(base, found, hints_, cloud_.format == FileFormat::kParquet, &widened)) {
        merged = std::move(wider);
      }
    }
    if (!merged) {
      return std::optional<Error>();
    }
    if (cloud_.evolution != Evolution::kAddNewColumns) {
      break;
    }
    std::vector<StructField> fields = merged->fields();
    const std::size_t extra = partition_.fields().size() + (rescued_column_.empty() ? 0 : 1);
    fields.erase(fields.begin() + static_cast<std::ptrdiff_t>(current.data.fields().size()),
                 fields.begin() + static_cast<std::ptrdiff_t>(current.data.fields().size() + extra));
    StoredSchema next{current.version + 1, DataType::Struct(std::move(fields)), partition_};
    FLEUVE_ASSIGN(const bool mine, WriteStoredSchema(cloud_.schema_location, next));
    if (mine) {
      break;
    }
    // Another writer was first: what it stored is merged with what was found here.
    FLEUVE_ASSIGN(const auto stored, ReadStoredSchema(cloud_.schema_location));
    if (!stored || stored->version <= current.version) {
      break;
    }
    current.version = stored->version;
    current.data = stored->data;
  }
  const bool retry = cloud_.evolution == Evolution::kAddNewColumns;
  const char* kind = widened.empty() ? "NEW_FIELDS_IN_FILE"
                     : names.empty() ? "NEW_TYPE_FOR_FIELDS_IN_FILE"
                                     : "NEW_FIELDS_AND_WIDENED_TYPES_IN_FILE";
  std::string what = names.empty() ? "" : "unknown fields during parsing: " + Join(names, ", ");
  if (!widened.empty()) {
    what += (what.empty() ? "" : "; ") + std::string("fields of wider types: ") + Join(widened, ", ");
  }
  names.insert(names.end(), widened.begin(), widened.end());
  return std::optional<Error>(
      Error(ErrorKind::kInvalidArgument, std::string("UNKNOWN_FIELD_EXCEPTION.") + kind,
            "UnknownFieldException: encountered " + what + ". File: " + uri +
                (retry ? ". The new columns were added to the schema: restart the stream to continue (automatic retry: "
                         "true)."
                       : ". Change the schema or remove the file (automatic retry: false)."))
          .With("unknownFields", Join(names, ", "))
          .With("filePath", uri)
          .With("isRetryable", retry ? "true" : "false"));
}

bool CloudRelation::MatchesCase() const {
  const std::string* value = plan::FindOption(reader_, "readerCaseSensitive");
  return !rescued_column_.empty() && (value == nullptr || !EqualsIgnoreAsciiCase(*value, "false"));
}

Result<std::vector<ListedFile>> CloudRelation::CheckParquet(const std::vector<ListedFile>& files,
                                                            std::vector<RescuedFile>* rescued) const {
  const auto flag = [&](const char* name) {
    const std::string* value = plan::FindOption(reader_, name);
    return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
  };
  std::vector<ListedFile> kept;
  std::vector<StructField> found;
  std::string newest_uri;
  for (const ListedFile& file : files) {
    auto schema = engine::ReadParquetSchema(file.path);
    if (!schema.ok()) {
      if (schema.error().kind() == ErrorKind::kNotFound ? flag("ignoreMissingFiles") : flag("ignoreCorruptFiles")) {
        continue;
      }
      return std::move(schema).error();
    }
    std::vector<StructField> own;
    std::vector<std::string> extra;
    std::vector<std::string> wider;
    AddNewFields(all_, *schema, &extra);
    if (cloud_.widens_types) {
      WidenFields(data_, *schema, hints_, true, &wider);
    }
    if (!extra.empty() || !wider.empty()) {
      newest_uri = storage::ToFileUri(file.path);
      std::vector<std::string> ignored;
      if (const auto more = AddNewFields(DataType::Struct(found), *schema, &ignored)) {
        found = more->fields();
      }
      if (cloud_.widens_types) {
        if (const auto more = WidenFields(DataType::Struct(found), *schema, hints_, true, &ignored)) {
          found = more->fields();
        }
      }
    }
    std::vector<std::string> absent;
    const bool exact = rescued != nullptr && MatchesCase();
    for (const StructField& field : schema->fields()) {
      const auto at = types::FieldIndex(all_, field.name, exact);
      if (const auto other = types::FieldIndex(data_, field.name); !at && other) {
        // A column of the schema in another case: it is rescued, and the schema's own is not in the file.
        const std::string& wanted = data_.fields()[*other].name;
        if (!types::FieldIndex(*schema, wanted, true)) {
          absent.push_back(wanted);
        }
      }
      const bool unreadable =
          at && types::FieldIndex(data_, field.name, exact) && !ParquetReads(field.type, all_.fields()[*at].type);
      std::vector<std::string> inside;
      if (at && !unreadable) {
        AddNewFields(DataType::Struct({all_.fields()[*at]}), DataType::Struct({field}), &inside);
      }
      // Without a rescued column, what the schema lacks is left out; a value of another type is NULL all the same.
      if (unreadable || (!rescued_column_.empty() && (!at || !inside.empty()))) {
        own.push_back(field);
      }
    }
    if (own.empty()) {
      kept.push_back(file);
    } else if (rescued != nullptr) {
      rescued->push_back({file, std::move(own), std::move(absent)});
    } else {
      return Error::Unsupported("reading columns of Parquet files that do not fit the schema (" + own.front().name +
                                " in " + storage::ToFileUri(file.path) + ") in a batch read");
    }
  }
  if (!found.empty() && cloud_.evolution != Evolution::kNone && cloud_.evolution != Evolution::kRescue) {
    FLEUVE_ASSIGN(const auto error, Evolve(DataType::Struct(std::move(found)), newest_uri));
    if (error) {
      return *error;
    }
  }
  return kept;
}

Result<BatchInput> CloudRelation::Input(const std::vector<ListedFile>& files) const {
  BatchInput input;
  std::vector<ListedFile> kept = files;
  std::vector<RescuedFile> rescued;
  if (cloud_.format == FileFormat::kParquet) {
    FLEUVE_ASSIGN(kept, CheckParquet(files, &rescued));
  }
  if (!kept.empty()) {
    if (cloud_.widens_types && (cloud_.format == FileFormat::kJson || cloud_.format == FileFormat::kCsv)) {
      // Types are compared before anything is read: a value that does not fit is no unknown field to the readers.
      FLEUVE_ASSIGN(const types::Schema found, Infer(kept));
      FLEUVE_ASSIGN(const auto error, Evolve(found, storage::ToFileUri(kept.back().path)));
      if (error) {
        return *error;
      }
    }
    FLEUVE_ASSIGN(input.scan, ScanOf(kept));
  }
  // Files of one shape are read together.
  struct Shape {
    std::vector<ListedFile> files;
    std::vector<StructField> columns;
    std::vector<std::string> absent;
  };
  std::map<std::string, Shape> shapes;
  for (RescuedFile& one : rescued) {
    Shape& shape = shapes[DataType::Struct(one.columns).ToJson().Dump() + Join(one.absent, ",")];
    shape.files.push_back(std::move(one.file));
    shape.columns = std::move(one.columns);
    shape.absent = std::move(one.absent);
  }
  std::vector<plan::PlanPtr> plans;
  for (const auto& [text, shape] : shapes) {
    FLEUVE_ASSIGN(plan::PlanPtr plan, RescuePlan(shape.files, shape.columns, shape.absent));
    plans.push_back(std::move(plan));
  }
  if (!plans.empty()) {
    input.make_plans = [plans = std::move(plans)] { return plans; };
  }
  return input;
}

Result<std::shared_ptr<const plan::FileScan>> CloudRelation::Scan(const std::vector<ListedFile>& files) const {
  std::vector<ListedFile> kept = files;
  if (cloud_.format == FileFormat::kParquet) {
    FLEUVE_ASSIGN(kept, CheckParquet(files, nullptr));
  }
  return ScanOf(kept);
}

CloudRelation::PartitionedFiles CloudRelation::PartitionsOf(const std::vector<ListedFile>& files) const {
  PartitionedFiles split{{data_, partition_, all_}, {}};
  files::SplitSchema& schema = split.schema;
  if (!cloud_.partition_columns || !cloud_.partition_columns->empty()) {
    // Columns of the user's schema may have appeared in folder names after the stream was defined.
    for (const ListedFile& file : files) {
      const auto levels = files::PartitionLevels(base_, file.path);
      const auto is_level = [&](const std::string& name) {
        return std::any_of(levels.begin(), levels.end(),
                           [&](const auto& level) { return EqualsIgnoreAsciiCase(level.first, name); });
      };
      std::size_t first = schema.data.fields().size();
      while (first > 0 && is_level(schema.data.fields()[first - 1].name)) {
        --first;
      }
      if (first == schema.data.fields().size()) {
        continue;
      }
      std::vector<StructField> data(schema.data.fields().begin(),
                                    schema.data.fields().begin() + static_cast<std::ptrdiff_t>(first));
      std::vector<StructField> partition(schema.data.fields().begin() + static_cast<std::ptrdiff_t>(first),
                                         schema.data.fields().end());
      partition.insert(partition.end(), schema.partition.fields().begin(), schema.partition.fields().end());
      schema.data = DataType::Struct(std::move(data));
      schema.partition = DataType::Struct(std::move(partition));
    }
  }
  for (const ListedFile& file : files) {
    std::vector<std::optional<std::string>> row(schema.partition.fields().size());
    for (auto& [name, value] : files::PartitionLevels(base_, file.path)) {
      if (const auto at = types::FieldIndex(schema.partition, name)) {
        row[*at] = std::move(value);
      }
    }
    split.values.push_back(std::move(row));
  }
  return split;
}

Result<std::shared_ptr<const plan::FileScan>> CloudRelation::ScanOf(const std::vector<ListedFile>& kept) const {
  const PartitionedFiles split = PartitionsOf(kept);
  FLEUVE_ASSIGN(auto scan,
                files::MakeScan(cloud_.format, split.schema, reader_, config_.session_zone, kept, split.values));
  scan->constants_schema = constants_;
  for (plan::ScanFile& file : scan->files) {
    file.constants.assign(constants_.fields().size(), types::Value());
  }
  if ((cloud_.evolution == Evolution::kAddNewColumns || cloud_.evolution == Evolution::kFailOnNewColumns) &&
      (cloud_.format == FileFormat::kJson || cloud_.format == FileFormat::kCsv)) {
    auto self = std::make_shared<CloudRelation>(*this);
    scan->unknown_fields = std::make_shared<EvolutionHandler>(std::move(self), kept);
  }
  return std::shared_ptr<const plan::FileScan>(std::move(scan));
}

}  // namespace fleuve::connectors::autoloader
