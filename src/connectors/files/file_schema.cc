#include "connectors/files/file_schema.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/bytes.h"
#include "connectors/files/file_log.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

using plan::FileFormat;
using types::DataType;
using types::StructField;
using types::TypeKind;

namespace {

DataType WithoutChar(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return DataType::String();
    case TypeKind::kArray:
      return DataType::Array(WithoutChar(type.element()), type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(WithoutChar(type.key()), WithoutChar(type.value()), type.contains_null());
    case TypeKind::kStruct: {
      std::vector<StructField> fields = type.fields();
      for (StructField& field : fields) {
        field.type = WithoutChar(field.type);
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

bool Holds(FileFormat format, const DataType& type) {
  switch (format) {
    case FileFormat::kCsv:
      return !type.IsNested() && !type.Is(TypeKind::kVoid) && !type.Is(TypeKind::kBinary) &&
             !type.Is(TypeKind::kVariant) && !type.Is(TypeKind::kCalendarInterval);
    case FileFormat::kText:
      return type.IsString();
    case FileFormat::kParquet:
      return !type.Is(TypeKind::kCalendarInterval);
    default:
      return true;
  }
}

}  // namespace

bool IsFileFormat(std::string_view format) {
  const std::string name = AsciiLower(format);
  for (const char* known : {"json", "csv", "parquet", "text", "binaryfile", "orc", "avro", "xml"}) {
    if (name == known) {
      return true;
    }
  }
  return false;
}

Result<FileFormat> ParseFormat(const std::string& name) {
  const std::string lower = AsciiLower(name);
  if (lower == "json") {
    return FileFormat::kJson;
  }
  if (lower == "csv") {
    return FileFormat::kCsv;
  }
  if (lower == "parquet") {
    return FileFormat::kParquet;
  }
  if (lower == "text") {
    return FileFormat::kText;
  }
  if (lower == "binaryfile") {
    return FileFormat::kBinaryFile;
  }
  if (lower == "xml" || lower == "avro") {
    return FileFormat::kJson;
  }
  if (lower == "orc") {
    return Error::Unsupported("the file format " + lower);
  }
  return Error(ErrorKind::kNotFound, "DATA_SOURCE_NOT_FOUND",
               "Failed to find the data source: " + name +
                   ". Make sure the provider name is correct and the package is "
                   "properly registered and compatible with your Spark version.");
}

std::string ContainerOf(const std::string& format) {
  const std::string lower = AsciiLower(format);
  return lower == "xml" || lower == "avro" ? lower : std::string();
}

const char* FormatName(FileFormat format) {
  switch (format) {
    case FileFormat::kJson:
      return "json";
    case FileFormat::kCsv:
      return "csv";
    case FileFormat::kText:
      return "text";
    case FileFormat::kBinaryFile:
      return "binaryFile";
    case FileFormat::kParquet:
      break;
  }
  return "parquet";
}

bool ConfBool(const plan::AnalysisConfig& config, const char* key, bool fallback) {
  if (!config.conf) {
    return fallback;
  }
  const auto value = config.conf(key);
  return value ? EqualsIgnoreAsciiCase(*value, "true") : fallback;
}

std::string ConfText(const plan::AnalysisConfig& config, const char* key, const std::string& fallback) {
  if (!config.conf) {
    return fallback;
  }
  return config.conf(key).value_or(fallback);
}

Result<plan::Options> ReaderOptions(FileFormat format, const plan::Options& options,
                                    const plan::AnalysisConfig& config) {
  plan::Options out = options;
  const auto fill = [&](const char* option, const std::string& value) {
    if (plan::FindOption(out, option) == nullptr) {
      out[option] = value;
    }
  };
  fill("columnNameOfCorruptRecord", ConfText(config, "spark.sql.columnNameOfCorruptRecord", "_corrupt_record"));
  if (ConfBool(config, "spark.sql.files.ignoreMissingFiles", false)) {
    fill("ignoreMissingFiles", "true");
  }
  if (ConfBool(config, "spark.sql.files.ignoreCorruptFiles", false)) {
    fill("ignoreCorruptFiles", "true");
  }
  if (!ConfBool(config, "spark.databricks.sql.rescuedDataColumn.filePath.enabled", true)) {
    out["fleuve.rescuedFilePath"] = "false";
  }
  FLEUVE_TRY(engine::CheckReadOptions(format, out, config.session_zone));
  return out;
}

Result<FindOptions> MakeFindOptions(const plan::Options& options, const plan::AnalysisConfig& config) {
  FindOptions find;
  FLEUVE_ASSIGN(find.filter, MakeListFilter(options, config.session_zone));
  if (const std::string* recursive = plan::FindOption(options, "recursiveFileLookup")) {
    find.recursive = EqualsIgnoreAsciiCase(*recursive, "true");
    if (!find.recursive && !EqualsIgnoreAsciiCase(*recursive, "false")) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "Invalid value '" + *recursive + "' for option 'recursiveFileLookup': must be true or false.")
          .Family(ErrorFamily::kIllegalArgument);
    }
  }
  if (const std::string* base = plan::FindOption(options, "basePath")) {
    FLEUVE_ASSIGN(find.base_path, LocalPathOf(*base));
    bool is_directory = false;
    if (!StatFile(find.base_path, &is_directory) || !is_directory) {
      return Error(ErrorKind::kInvalidArgument, "", "Option 'basePath' must be a directory")
          .Family(ErrorFamily::kIllegalArgument);
    }
  }
  return find;
}

Result<FoundFiles> FindFiles(const std::vector<std::string>& paths, const FindOptions& options, bool lenient) {
  FoundFiles found;
  for (const std::string& path : paths) {
    const std::vector<std::string> roots = ExpandGlob(path);
    if (roots.empty() || (!IsGlob(path) && !StatFile(path))) {
      if (lenient) {
        continue;
      }
      return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND", "Path does not exist: " + storage::ToFileUri(path) + ".")
          .With("path", storage::ToFileUri(path));
    }
    for (const std::string& root : roots) {
      if (IsGlob(path) && IsHiddenName(root.substr(root.rfind('/') + 1))) {
        continue;
      }
      std::vector<ListedFile> files;
      FLEUVE_ASSIGN(auto logged, SinkLogFiles(root));
      if (logged) {
        files = std::move(*logged);
      } else {
        FLEUVE_ASSIGN(files, ListFiles(root, options.filter));
      }
      bool is_directory = false;
      StatFile(root, &is_directory);
      const std::string base = !options.base_path.empty() ? options.base_path
                               : is_directory             ? root
                                                          : root.substr(0, root.rfind('/'));
      for (ListedFile& file : files) {
        found.bases.push_back(base);
        found.files.push_back(std::move(file));
      }
    }
  }
  return found;
}

FoundFiles Distinct(FoundFiles found) {
  FoundFiles kept;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    if (seen.insert(found.files[i].path).second) {
      kept.files.push_back(std::move(found.files[i]));
      kept.bases.push_back(std::move(found.bases[i]));
    }
  }
  return kept;
}

FoundFiles DirectChildren(const FoundFiles& found) {
  FoundFiles kept;
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    const std::string& path = found.files[i].path;
    if (path.substr(0, path.rfind('/')) == found.bases[i] || found.bases[i] == "/") {
      kept.files.push_back(found.files[i]);
      kept.bases.push_back(found.bases[i]);
    }
  }
  return kept;
}

std::optional<types::Schema> FixedSchema(FileFormat format) {
  if (format == FileFormat::kText) {
    return DataType::Struct({{"value", DataType::String(), true, {}}});
  }
  if (format == FileFormat::kBinaryFile) {
    return DataType::Struct({{"path", DataType::String(), true, {}},
                             {"modificationTime", DataType::Timestamp(), true, {}},
                             {"length", DataType::Long(), true, {}},
                             {"content", DataType::Binary(), true, {}}});
  }
  return std::nullopt;
}

Result<types::Schema> InferFileSchema(FileFormat format, const std::vector<ListedFile>& files,
                                      const plan::Options& options, const plan::AnalysisConfig& config) {
  if (auto fixed = FixedSchema(format)) {
    return *fixed;
  }
  const auto nothing = [&]() {
    std::string name = AsciiUpper(FormatName(format));
    if (format == FileFormat::kParquet) {
      name = "Parquet";
    }
    return Error(ErrorKind::kInvalidArgument, "UNABLE_TO_INFER_SCHEMA",
                 "Unable to infer schema for " + name + ". It must be specified manually.")
        .With("format", name);
  };
  if (files.empty()) {
    return nothing();
  }
  const std::string* container = plan::FindOption(options, "fleuve.container");
  if (container != nullptr && *container == "avro") {
    return engine::ReadAvroFileSchema(files.front().path);
  }
  if (container != nullptr && *container == "xml") {
    const std::string* infer_schema = plan::FindOption(options, "inferSchema");
    std::vector<plan::ScanFile> xml_files;
    for (const ListedFile& file : files) {
      xml_files.push_back(ToScanFile(file));
    }
    return engine::InferXmlFiles(xml_files, options, config.session_zone,
                                 infer_schema == nullptr || EqualsIgnoreAsciiCase(*infer_schema, "true"));
  }
  if (format == FileFormat::kParquet) {
    bool merge = ConfBool(config, "spark.sql.parquet.mergeSchema", false);
    if (const std::string* option = plan::FindOption(options, "mergeSchema")) {
      merge = EqualsIgnoreAsciiCase(*option, "true");
    }
    const std::string* ignore = plan::FindOption(options, "ignoreCorruptFiles");
    const bool ignore_corrupt = ignore != nullptr && EqualsIgnoreAsciiCase(*ignore, "true");
    std::optional<types::Schema> merged;
    for (const ListedFile& file : files) {
      auto schema = engine::ReadParquetSchema(file.path);
      if (!schema.ok()) {
        if (ignore_corrupt) {
          continue;
        }
        return std::move(schema).error();
      }
      if (!merged) {
        merged = std::move(schema).value();
        if (!merge) {
          break;
        }
        continue;
      }
      std::vector<StructField> fields = merged->fields();
      for (const StructField& field : schema->fields()) {
        const auto at = types::FieldIndex(*merged, field.name, config.case_sensitive);
        if (!at) {
          fields.push_back(field);
        } else if (!fields[*at].type.EqualsIgnoringNullability(field.type)) {
          FLEUVE_ASSIGN(fields[*at].type, MergeParquetTypes(field.name, fields[*at].type, field.type));
        }
      }
      merged = DataType::Struct(std::move(fields));
    }
    if (!merged) {
      return nothing();
    }
    return *merged;
  }
  engine::InferOptions infer;
  infer.options = options;
  infer.session_zone = config.session_zone;
  if (const std::string* column = plan::FindOption(options, "columnNameOfCorruptRecord")) {
    infer.corrupt_record_column = *column;
  }
  std::vector<plan::ScanFile> scan_files;
  scan_files.reserve(files.size());
  for (const ListedFile& file : files) {
    scan_files.push_back(ToScanFile(file));
  }
  if (format == FileFormat::kJson) {
    return engine::InferJson(scan_files, infer);
  }
  return engine::InferCsv(scan_files, infer);
}

Result<DataType> MergeParquetTypes(const std::string& name, const DataType& a, const DataType& b) {
  if (a.Is(TypeKind::kStruct) && b.Is(TypeKind::kStruct)) {
    std::vector<StructField> fields = a.fields();
    for (const StructField& field : b.fields()) {
      const auto at = types::FieldIndex(a, field.name, true);
      if (!at) {
        fields.push_back(field);
      } else {
        FLEUVE_ASSIGN(fields[*at].type, MergeParquetTypes(field.name, fields[*at].type, field.type));
      }
    }
    return DataType::Struct(std::move(fields));
  }
  if (a.Is(TypeKind::kArray) && b.Is(TypeKind::kArray)) {
    FLEUVE_ASSIGN(DataType element, MergeParquetTypes(name, a.element(), b.element()));
    return DataType::Array(std::move(element));
  }
  if (a.Is(TypeKind::kMap) && b.Is(TypeKind::kMap)) {
    FLEUVE_ASSIGN(DataType key, MergeParquetTypes(name, a.key(), b.key()));
    FLEUVE_ASSIGN(DataType value, MergeParquetTypes(name, a.value(), b.value()));
    return DataType::Map(std::move(key), std::move(value));
  }
  if (a.EqualsIgnoringNullability(b)) {
    return a;
  }
  if (a.IsIntegral() && b.IsIntegral()) {
    return a.kind() > b.kind() ? a : b;
  }
  if ((a.Is(TypeKind::kFloat) && b.Is(TypeKind::kDouble)) || (a.Is(TypeKind::kDouble) && b.Is(TypeKind::kFloat))) {
    return DataType::Double();
  }
  if (a.Is(TypeKind::kDecimal) && b.Is(TypeKind::kDecimal) && a.scale() == b.scale()) {
    return a.precision() > b.precision() ? a : b;
  }
  return Error(ErrorKind::kInvalidArgument, "CANNOT_MERGE_SCHEMAS",
               "Failed merging schemas: column " + name + " is \"" + a.Sql() + "\" in one file and \"" + b.Sql() +
                   "\" in another.")
      .With("column", name);
}

Result<SplitSchema> MakeSchema(FileFormat format, const types::Schema& data, const types::Schema& partition,
                               bool case_sensitive) {
  SplitSchema out;
  std::vector<StructField> fields;
  for (const StructField& field : data.fields()) {
    if (types::FieldIndex(partition, field.name, case_sensitive)) {
      continue;
    }
    if (!Holds(format, field.type)) {
      std::string name = AsciiUpper(FormatName(format));
      if (format == FileFormat::kText) {
        name = "Text";
      }
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
                   "The " + name + " datasource doesn't support the column `" + field.name + "` of the type \"" +
                       field.type.Sql() + "\".")
          .With("columnName", "`" + field.name + "`")
          .With("columnType", "\"" + field.type.Sql() + "\"")
          .With("format", name);
    }
    fields.push_back({field.name, WithoutChar(field.type).AsNullable(), true, field.metadata});
  }
  if (format == FileFormat::kText && fields.size() > 1) {
    return Error(
        ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1290",
        "Text data source supports only a single column, and you have " + std::to_string(fields.size()) + " columns.");
  }
  out.data = DataType::Struct(fields);
  std::vector<StructField> columns;
  for (const StructField& field : partition.fields()) {
    columns.push_back({field.name, WithoutChar(field.type), true, field.metadata});
  }
  out.partition = DataType::Struct(columns);
  fields.insert(fields.end(), columns.begin(), columns.end());
  std::set<std::string> names;
  for (const StructField& field : fields) {
    if (!names.insert(case_sensitive ? field.name : AsciiLower(field.name)).second) {
      return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                   "The column `" + AsciiLower(field.name) +
                       "` already exists. Choose another name or rename the existing column.")
          .With("columnName", "`" + AsciiLower(field.name) + "`");
    }
  }
  out.all = DataType::Struct(std::move(fields));
  return out;
}

Result<std::shared_ptr<plan::FileScan>> MakeScan(FileFormat format, const SplitSchema& schema,
                                                 const plan::Options& options, const std::string& session_zone,
                                                 const std::vector<ListedFile>& files,
                                                 const std::vector<std::vector<std::optional<std::string>>>& values) {
  auto scan = std::make_shared<plan::FileScan>();
  scan->format = format;
  scan->data_schema = schema.data;
  scan->partition_schema = schema.partition;
  scan->constants_schema = DataType::Struct({});
  scan->options = options;
  scan->session_zone = session_zone;
  scan->files.reserve(files.size());
  const auto& partition = schema.partition.fields();
  const auto flag = [&](const char* name) {
    const std::string* value = plan::FindOption(options, name);
    return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
  };
  const bool ignore_corrupt = format == FileFormat::kParquet && flag("ignoreCorruptFiles");
  const bool ignore_missing = flag("ignoreMissingFiles");
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (ignore_missing && !StatFile(files[i].path)) {
      continue;
    }
    if (ignore_corrupt) {
      const auto footer = engine::ReadParquetSchema(files[i].path);
      if (!footer.ok() && footer.error().kind() == ErrorKind::kCorrupt) {
        continue;
      }
    }
    plan::ScanFile file = ToScanFile(files[i]);
    for (std::size_t k = 0; k < partition.size(); ++k) {
      const std::optional<std::string> text = i < values.size() && k < values[i].size() ? values[i][k] : std::nullopt;
      FLEUVE_ASSIGN(types::Value value, PartitionValue(text, partition[k].type, session_zone));
      file.partition_values.push_back(std::move(value));
    }
    scan->files.push_back(std::move(file));
  }
  return scan;
}

}  // namespace fleuve::connectors::files
