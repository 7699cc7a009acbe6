#include "delta/table_source.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/bytes.h"
#include "delta/deletion_vector.h"
#include "delta/row_tracking_scan.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"

namespace fleuve::delta {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

types::Schema CleanType(const DataType& type);

types::StructField CleanField(const types::StructField& field) {
  types::StructField clean = field;
  clean.type = CleanType(field.type);
  if (field.metadata.is_object()) {
    Json::Object kept;
    for (const auto& [key, value] : field.metadata.fields()) {
      const bool internal = key.starts_with("delta.columnMapping.") || key.starts_with("parquet.field.") ||
                            key == "delta.typeChanges" || key == "delta.generationExpression" ||
                            key.starts_with("delta.identity.");
      if (!internal) {
        kept.emplace_back(key, value);
      }
    }
    clean.metadata = Json(std::move(kept));
  }
  return clean;
}

DataType CleanType(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return DataType::Array(CleanType(type.element()), type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(CleanType(type.key()), CleanType(type.value()), type.contains_null());
    case TypeKind::kStruct: {
      std::vector<types::StructField> fields;
      for (const types::StructField& field : type.fields()) {
        fields.push_back(CleanField(field));
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

/// The same shape with physical names and `parquet.field.id`.
DataType PhysicalType(const DataType& type);

types::StructField PhysicalField(const types::StructField& field) {
  types::StructField physical;
  const Json& name = field.metadata["delta.columnMapping.physicalName"];
  physical.name = name.is_string() ? name.AsString() : field.name;
  physical.type = PhysicalType(field.type);
  physical.nullable = field.nullable;
  if (const Json* id = field.metadata.Find("delta.columnMapping.id"); id != nullptr && id->is_int()) {
    physical.metadata.Set("parquet.field.id", *id);
  }
  return physical;
}

DataType PhysicalType(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return DataType::Array(PhysicalType(type.element()), type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(PhysicalType(type.key()), PhysicalType(type.value()), type.contains_null());
    case TypeKind::kStruct: {
      std::vector<types::StructField> fields;
      for (const types::StructField& field : type.fields()) {
        fields.push_back(PhysicalField(field));
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

Error BadPartitionValue(const std::string& text, const DataType& type) {
  return Error(ErrorKind::kCorrupt, "DELTA_CORRUPT_LOG",
               "The partition value '" + text + "' is no " + type.SimpleString() + ".");
}

types::Int128 PowerOfTen(int n) {
  types::Int128 value = 1;
  for (int i = 0; i < n; ++i) {
    value *= 10;
  }
  return value;
}

bool IsUriPathChar(unsigned char c) {
  if (c >= 0x80) {
    return true;
  }
  return std::isalnum(c) != 0 ||
         std::string_view("_-!.~'()*,;:$&+=@/").find(static_cast<char>(c)) != std::string_view::npos;
}

}  // namespace

types::Schema ReadSchemaOf(const types::Schema& schema) { return CleanType(schema); }
types::Schema PhysicalSchemaOf(const types::Schema& schema) { return PhysicalType(schema); }

std::string EncodeUriPath(std::string_view path) {
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char byte : path) {
    const auto c = static_cast<unsigned char>(byte);
    if (IsUriPathChar(c)) {
      out += byte;
    } else {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    }
  }
  return out;
}

Result<std::string> AbsolutePath(const storage::Location& table, std::string_view log_path) {
  log_path = CanonicalPath(log_path);
  if (log_path.starts_with("/")) {
    return PercentDecode(log_path);
  }
  const std::size_t colon = log_path.find("://");
  if (colon != std::string_view::npos && colon < log_path.find('/')) {
    return Error::Unsupported("data files outside the table's own store (" + std::string(log_path) + ")");
  }
  return table.path + "/" + PercentDecode(log_path);
}

Result<Value> ParsePartitionValue(const std::optional<std::string>& text, const DataType& type) {
  if (!text || (text->empty() && !type.IsString()) || text->empty()) {
    return Value();
  }
  const std::string& t = *text;
  switch (type.kind()) {
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return Value(t);
    case TypeKind::kBoolean:
      if (EqualsIgnoreAsciiCase(t, "true")) {
        return Value(true);
      }
      if (EqualsIgnoreAsciiCase(t, "false")) {
        return Value(false);
      }
      return BadPartitionValue(t, type);
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong: {
      std::int64_t value = 0;
      const char* begin = t.data() + (t[0] == '+' ? 1 : 0);
      const auto end = std::from_chars(begin, t.data() + t.size(), value);
      if (end.ec != std::errc() || end.ptr != t.data() + t.size()) {
        return BadPartitionValue(t, type);
      }
      return Value(value);
    }
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      if (t == "NaN") {
        return Value(std::nan(""));
      }
      if (t == "Infinity" || t == "+Infinity") {
        return Value(HUGE_VAL);
      }
      if (t == "-Infinity") {
        return Value(-HUGE_VAL);
      }
      char* end = nullptr;
      const double value = std::strtod(t.c_str(), &end);
      if (end == t.c_str() || *end != '\0') {
        return BadPartitionValue(t, type);
      }
      return type.Is(TypeKind::kFloat) ? Value(static_cast<double>(static_cast<float>(value))) : Value(value);
    }
    case TypeKind::kDecimal: {
      auto parsed = types::DecimalFromString(t);
      if (!parsed.ok()) {
        return BadPartitionValue(t, type);
      }
      auto [unscaled, scale] = *parsed;
      if (scale < type.scale()) {
        unscaled *= PowerOfTen(type.scale() - scale);
      } else if (scale > type.scale()) {
        unscaled /= PowerOfTen(scale - type.scale());
      }
      return Value(unscaled);
    }
    case TypeKind::kDate: {
      const auto days = types::ParseDate(t);
      return days ? Result<Value>(Value(*days)) : Result<Value>(BadPartitionValue(t, type));
    }
    case TypeKind::kTimestamp: {
      const auto micros = types::ParseTimestamp(t, "UTC");
      return micros ? Result<Value>(Value(*micros)) : Result<Value>(BadPartitionValue(t, type));
    }
    case TypeKind::kTimestampNtz: {
      const auto micros = types::ParseTimestampNtz(t);
      return micros ? Result<Value>(Value(*micros)) : Result<Value>(BadPartitionValue(t, type));
    }
    default:
      return Error::Unsupported("partition columns of type " + type.SimpleString());
  }
}

Result<std::optional<std::string>> FormatPartitionValue(const Value& value, const DataType& type) {
  if (value.is_null()) {
    return std::optional<std::string>();
  }
  switch (type.kind()) {
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      // The empty text is NULL, as it would be once read back from a folder's name.
      // So is the name that NULL has there.
      return value.text().empty() || value.text() == "__HIVE_DEFAULT_PARTITION__"
                 ? std::optional<std::string>()
                 : std::optional<std::string>(value.text());
    case TypeKind::kBoolean:
      return std::optional<std::string>(value.boolean() ? "true" : "false");
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return std::optional<std::string>(std::to_string(value.integer()));
    case TypeKind::kFloat:
      return std::optional<std::string>(JavaFloatToString(static_cast<float>(value.real())));
    case TypeKind::kDouble:
      return std::optional<std::string>(JavaDoubleToString(value.real()));
    case TypeKind::kDecimal:
      return std::optional<std::string>(types::DecimalToString(value.decimal(), type.scale()));
    case TypeKind::kDate:
      return std::optional<std::string>(types::DateToString(value.integer()));
    case TypeKind::kTimestampNtz:
      return std::optional<std::string>(types::TimestampNtzToString(value.integer()));
    case TypeKind::kTimestamp: {
      // ISO with six digits in UTC.
      std::int64_t seconds = value.integer() / 1000000;
      std::int64_t micros = value.integer() % 1000000;
      if (micros < 0) {
        micros += 1000000;
        --seconds;
      }
      std::string text = types::TimestampNtzToString(seconds * 1000000);
      text[text.find(' ')] = 'T';
      std::string fraction = std::to_string(micros);
      fraction.insert(0, 6 - fraction.size(), '0');
      return std::optional<std::string>(text + "." + fraction + "Z");
    }
    default:
      return Error::Unsupported("partition columns of type " + type.SimpleString());
  }
}

std::string EscapePathName(std::string_view name) {
  static constexpr std::string_view kEscaped = "\"#%'*/:=?\\{[]^";
  static constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char byte : name) {
    const auto c = static_cast<unsigned char>(byte);
    if (c < 0x20 || c == 0x7F || kEscaped.find(byte) != std::string_view::npos) {
      out += '%';
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out += byte;
    }
  }
  return out;
}

std::string PartitionFolder(const PartitionValues& values) {
  std::string out;
  for (const auto& [name, value] : values) {
    if (!out.empty()) {
      out += '/';
    }
    out += EscapePathName(name) + "=";
    out += value && !value->empty() ? EscapePathName(*value) : "__HIVE_DEFAULT_PARTITION__";
  }
  return out;
}

std::int64_t NumRecords(const AddFile& file) { return NumRecords(std::string_view(file.stats)); }

std::int64_t NumRecords(std::string_view stats) {
  // The member is nearly always the first; a full parse would cost more than everything else a commit does. Elsewhere
  // it may be a column of that name.
  static constexpr std::string_view kKey = "\"numRecords\":";
  const std::size_t at = stats.find(kKey);
  if (at == std::string::npos) {
    return -1;
  }
  if (at != stats.find('"')) {
    const auto json = Json::Parse(stats);
    return json.ok() ? (*json)["numRecords"].AsInt(-1) : -1;
  }
  std::size_t from = at + kKey.size();
  while (from < stats.size() && stats[from] == ' ') {
    ++from;
  }
  std::int64_t value = -1;
  const auto end = std::from_chars(stats.data() + from, stats.data() + stats.size(), value);
  return end.ec == std::errc() ? value : -1;
}

Result<plan::FileScan> MakeScan(const Metadata& metadata) {
  FLEUVE_ASSIGN(const auto shape, MakeShape(metadata));
  plan::FileScan scan;
  scan.format = plan::FileFormat::kParquet;
  std::vector<types::StructField> data;
  std::vector<types::StructField> physical;
  for (const types::StructField& field : shape->schema.fields()) {
    const bool is_partition =
        std::any_of(metadata.partition_columns.begin(), metadata.partition_columns.end(),
                    [&](const std::string& name) { return EqualsIgnoreAsciiCase(name, field.name); });
    if (!is_partition) {
      data.push_back(CleanField(field));
      physical.push_back(PhysicalField(field));
    }
  }
  scan.data_schema = DataType::Struct(std::move(data));
  const std::string mode = ColumnMappingMode(metadata);
  if (mode != "none") {
    scan.physical_schema = DataType::Struct(std::move(physical));
    scan.map_by_field_id = mode == "id";
  }
  scan.partition_schema = CleanType(shape->partition_schema);
  scan.constants_schema = DataType::Struct({});
  return scan;
}

Result<plan::ScanFile> MakeScanFile(const plan::FileScan& scan, const Metadata& metadata, const AddFile& file,
                                    const storage::Location& table) {
  plan::ScanFile out;
  FLEUVE_ASSIGN(out.path, AbsolutePath(table, file.path));
  out.uri = storage::ToFileUri(out.path);
  out.size_bytes = file.size;
  out.modified_ms = file.modification_time;
  out.row_count = NumRecords(file);
  const std::string mode = ColumnMappingMode(metadata);
  const auto& fields = scan.partition_schema.fields();
  if (!fields.empty()) {
    // Physical names come from the table's own schema: the scan's is cleaned.
    std::vector<std::string> names;
    if (mode == "none") {
      for (const types::StructField& field : fields) {
        names.push_back(field.name);
      }
    } else {
      FLEUVE_ASSIGN(const auto shape, MakeShape(metadata));
      for (const types::StructField& field : shape->partition_schema.fields()) {
        names.push_back(PhysicalName(field, metadata));
      }
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      std::optional<std::string> text;
      for (const auto& [name, value] : file.partition_values) {
        if (name == names[i] || (mode == "none" && EqualsIgnoreAsciiCase(name, names[i]))) {
          text = value;
        }
      }
      FLEUVE_ASSIGN(Value value, ParsePartitionValue(text, fields[i].type));
      out.partition_values.push_back(std::move(value));
    }
  }
  if (file.deletion_vector) {
    FLEUVE_ASSIGN(out.deleted_rows, LoadDeletionVector(*file.deletion_vector, table));
    if (out.row_count >= 0) {
      out.row_count -= file.deletion_vector->cardinality;
    }
  }
  out.base_row_id = file.base_row_id;
  return out;
}

DeltaTable::DeltaTable(SnapshotPtr snapshot, std::string name)
    : snapshot_(std::move(snapshot)), name_(std::move(name)), schema_(CleanType(snapshot_->schema())) {}

Result<std::shared_ptr<const plan::FileScan>> DeltaTable::PlanScan(const std::vector<plan::ExprPtr>& filters,
                                                                   const std::vector<plan::Attribute>& columns) const {
  return Plan(filters, columns, false);
}

bool DeltaTable::has_row_ids() const {
  return TracksRows(snapshot_->metadata()) && MaterializedRowIdsOf(snapshot_->metadata()).has_value();
}

Result<std::shared_ptr<const plan::FileScan>> DeltaTable::PlanRowIdScan(
    const std::vector<plan::ExprPtr>& filters, const std::vector<plan::Attribute>& columns) const {
  return Plan(filters, columns, true);
}

Result<std::shared_ptr<const plan::FileScan>> DeltaTable::Plan(const std::vector<plan::ExprPtr>& filters,
                                                               const std::vector<plan::Attribute>& columns,
                                                               bool row_ids) const {
  if (schema_.fields().empty()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_READ_TABLE_WITHOUT_COLUMNS",
                 "You are trying to read the Delta table " + name_ + " that does not have any columns.")
        .With("tableName", name_)
        .With("hint", "Write some data with the option mergeSchema = true to set a schema.");
  }
  FLEUVE_ASSIGN(plan::FileScan scan, MakeScan(snapshot_->metadata()));
  FLEUVE_ASSIGN(const std::vector<AddFile> files, snapshot_->Files(filters, columns));
  if (row_ids) {
    AddRowIdColumns(*MaterializedRowIdsOf(snapshot_->metadata()), &scan);
  }
  scan.files.reserve(files.size());
  for (const AddFile& file : files) {
    FLEUVE_ASSIGN(plan::ScanFile scan_file, MakeScanFile(scan, snapshot_->metadata(), file, snapshot_->location()));
    if (row_ids) {
      AppendRowIdConstants(file, &scan_file);
    }
    scan.files.push_back(std::move(scan_file));
  }
  return std::make_shared<const plan::FileScan>(std::move(scan));
}

Result<SnapshotPtr> Travel(const DeltaLogPtr& log, const TimeTravel& when) {
  FLEUVE_ASSIGN(SnapshotPtr latest, log->Latest());
  std::int64_t version = latest->version();
  std::int64_t time = 0;
  bool has_time = false;
  if (when.version) {
    version = *when.version;
    FLEUVE_ASSIGN(const std::int64_t earliest, log->EarliestVersion(true));
    if (version < earliest || version > latest->version()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_VERSION_NOT_FOUND",
                   "Cannot time travel to version " + std::to_string(version) + ": available versions are " +
                       std::to_string(earliest) + " to " + std::to_string(latest->version()) + ".")
          .With("userVersion", std::to_string(version))
          .With("earliest", std::to_string(earliest))
          .With("latest", std::to_string(latest->version()));
    }
  } else if (when.timestamp_ms) {
    FLEUVE_ASSIGN(const VersionTime at, log->VersionAtTime(*when.timestamp_ms, false, true));
    version = at.version;
    time = at.timestamp_ms;
    has_time = true;
  } else {
    return latest;
  }
  if (version == latest->version()) {
    return latest;
  }
  // Data files of old versions may be gone after the retention time.
  std::int64_t retention = 7LL * 86400000;
  if (const std::string* text = latest->Property("delta.deletedFileRetentionDuration")) {
    retention = ParseIntervalMs(*text).value_or(retention);
  }
  FLEUVE_ASSIGN(SnapshotPtr snapshot, log->At(version));
  if (!has_time) {
    time = snapshot->timestamp_ms();
  }
  if (time > 0 && log->context().clock->NowMillis() - time > retention) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
                 "Version " + std::to_string(version) +
                     " is older than delta.deletedFileRetentionDuration; its files may have been deleted. Raise that "
                     "table property to read it.")
        .With("deletedFileRetention", std::to_string(retention / 3600000) + " HOURS")
        .With("version", std::to_string(version));
  }
  return snapshot;
}

}  // namespace fleuve::delta
