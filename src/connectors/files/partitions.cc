#include "connectors/files/partitions.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <set>

#include "base/bytes.h"

namespace fleuve::connectors::files {

namespace {

using types::DataType;
using types::TypeKind;
using types::Value;

constexpr std::string_view kNullName = "__HIVE_DEFAULT_PARTITION__";

bool ParseLong(std::string_view text, std::int64_t* value) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
  }
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size();
}

bool ParseDouble(const std::string& text, double* value) {
  if (text.empty() || std::string_view("0123456789+-.").find(text[0]) == std::string_view::npos ||
      text.find_first_of("xXpP") != std::string::npos) {
    return false;
  }
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);
  // Java's numbers may name their type.
  const char* const last = text.c_str() + text.size();
  return end == last || (end + 1 == last && std::string_view("dDfF").find(*end) != std::string_view::npos);
}

bool LooksLikeDate(std::string_view text) {
  return text.size() >= 10 && text[4] == '-' && text[7] == '-' &&
         std::all_of(text.begin(), text.begin() + 4, [](char c) { return c >= '0' && c <= '9'; });
}

DataType TypeOf(const std::string& text, const std::string& zone) {
  std::int64_t whole = 0;
  if (ParseLong(text, &whole)) {
    return whole >= INT32_MIN && whole <= INT32_MAX ? DataType::Int() : DataType::Long();
  }
  if (auto decimal = types::DecimalFromString(text); decimal.ok() && decimal->second <= 0) {
    int digits = -decimal->second;
    for (types::Int128 rest = decimal->first; rest != 0; rest /= 10) {
      ++digits;
    }
    if (digits <= 38) {
      return DataType::Decimal(std::max(digits, 1), 0);
    }
  }
  double real = 0;
  if (ParseDouble(text, &real)) {
    return DataType::Double();
  }
  if (LooksLikeDate(text)) {
    if (text.size() == 10 && types::ParseDate(text)) {
      return DataType::Date();
    }
    if (text.size() > 10 && types::ParseTimestamp(text, zone)) {
      return DataType::Timestamp();
    }
  }
  return DataType::String();
}

int Rank(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kVoid:
      return 0;
    case TypeKind::kInt:
      return 1;
    case TypeKind::kLong:
      return 2;
    case TypeKind::kDecimal:
      return 3;
    case TypeKind::kDouble:
      return 4;
    default:
      return -1;
  }
}

DataType Widest(const DataType& a, const DataType& b) {
  if (a == b || b.Is(TypeKind::kVoid)) {
    return a;
  }
  if (a.Is(TypeKind::kVoid)) {
    return b;
  }
  if (Rank(a) > 0 && Rank(b) > 0) {
    const DataType& wider = Rank(a) > Rank(b) ? a : b;
    const DataType& other = Rank(a) > Rank(b) ? b : a;
    if (wider.Is(TypeKind::kDouble) && !other.Is(TypeKind::kInt) && !other.Is(TypeKind::kDouble)) {
      return DataType::String();  // digits would be lost
    }
    if (wider.Is(TypeKind::kDecimal)) {
      const int least = other.Is(TypeKind::kInt) ? 10 : other.Is(TypeKind::kLong) ? 20 : other.precision();
      return DataType::Decimal(std::max(wider.precision(), least), 0);
    }
    return wider;
  }
  if (a.IsDateTime() && b.IsDateTime()) {
    return DataType::Timestamp();
  }
  return DataType::String();
}

Error ConflictingFolders(const std::string& a, const std::string& b) {
  return Error(ErrorKind::kInvalidArgument, "CONFLICTING_DIRECTORY_STRUCTURES",
               "Conflicting directory structures detected. Suspicious paths: " + a + ", " + b +
                   ". If provided paths are partition directories, please set \"basePath\" in the options of the "
                   "data source to specify the root directory of the table. If there are multiple root "
                   "directories, please load them separately and then union them.")
      .Family(ErrorFamily::kRuntime);
}

bool SameName(const std::string& a, const std::string& b, bool case_sensitive) {
  return case_sensitive ? a == b : EqualsIgnoreAsciiCase(a, b);
}

}  // namespace

std::vector<std::pair<std::string, std::optional<std::string>>> PartitionLevels(const std::string& base,
                                                                                const std::string& file) {
  std::vector<std::pair<std::string, std::optional<std::string>>> levels;
  if (file.size() <= base.size() + 1 || file.compare(0, base.size(), base) != 0) {
    return levels;
  }
  const std::string below = file.substr(base.size() + (base.ends_with('/') ? 0 : 1));
  const std::size_t last = below.rfind('/');
  if (last == std::string::npos) {
    return levels;
  }
  for (const std::string& part : Split(std::string_view(below).substr(0, last), '/')) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0) {
      continue;
    }
    std::string value = part.substr(equals + 1);
    std::optional<std::string> decoded;
    if (value != kNullName) {
      decoded = PercentDecode(value);
    }
    levels.emplace_back(PercentDecode(part.substr(0, equals)), std::move(decoded));
  }
  return levels;
}

Result<Value> PartitionValue(const std::optional<std::string>& text, const DataType& type, const std::string& zone) {
  if (!text) {
    return Value();
  }
  const auto bad = [&]() {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARTITION_VALUE",
                 "Failed to cast value " + *text + " to data type \"" + type.Sql() +
                     "\" for partition column. Ensure the value matches the expected data type for this partition "
                     "column.");
  };
  switch (type.kind()) {
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return Value(*text);
    case TypeKind::kBoolean: {
      const std::string lower = AsciiLower(*text);
      if (lower == "true" || lower == "t" || lower == "yes" || lower == "y" || lower == "1") {
        return Value(true);
      }
      if (lower == "false" || lower == "f" || lower == "no" || lower == "n" || lower == "0") {
        return Value(false);
      }
      return bad();
    }
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong: {
      std::int64_t value = 0;
      const std::int64_t limit = type.Is(TypeKind::kByte)    ? INT8_MAX
                                 : type.Is(TypeKind::kShort) ? INT16_MAX
                                 : type.Is(TypeKind::kInt)   ? INT32_MAX
                                                             : INT64_MAX;
      if (!ParseLong(TrimAscii(*text), &value) || value > limit || value < -limit - 1) {
        return bad();
      }
      return Value(value);
    }
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      double value = 0;
      if (!ParseDouble(std::string(TrimAscii(*text)), &value)) {
        return bad();
      }
      return Value(type.Is(TypeKind::kFloat) ? static_cast<double>(static_cast<float>(value)) : value);
    }
    case TypeKind::kDecimal: {
      auto parsed = types::DecimalFromString(TrimAscii(*text));
      if (!parsed.ok() || parsed->second > type.scale()) {
        return bad();
      }
      types::Int128 value = parsed->first;
      for (int scale = parsed->second; scale < type.scale(); ++scale) {
        value *= 10;
      }
      return Value(value);
    }
    case TypeKind::kDate: {
      const auto days = types::ParseDate(TrimAscii(*text));
      return days ? Result<Value>(Value(*days)) : Result<Value>(bad());
    }
    case TypeKind::kTimestamp: {
      const auto micros = types::ParseTimestamp(TrimAscii(*text), zone);
      return micros ? Result<Value>(Value(*micros)) : Result<Value>(bad());
    }
    case TypeKind::kTimestampNtz: {
      const auto micros = types::ParseTimestampNtz(TrimAscii(*text));
      return micros ? Result<Value>(Value(*micros)) : Result<Value>(bad());
    }
    case TypeKind::kVoid:
      return Value();
    default:
      return Error::Unsupported("partition columns of type " + type.SimpleString());
  }
}

DataType InferPartitionType(const std::vector<std::optional<std::string>>& values, const std::string& zone) {
  DataType type;
  for (const auto& value : values) {
    if (value) {
      type = Widest(type, TypeOf(*value, zone));
    }
  }
  return type.Is(TypeKind::kVoid) ? DataType::String() : type;
}

Result<Partitioning> DiscoverPartitions(const std::vector<ListedFile>& files, const std::vector<std::string>& bases,
                                        const std::optional<types::Schema>& user_schema, bool infer,
                                        bool case_sensitive, const std::string& zone) {
  Partitioning result;
  std::vector<std::string> names;
  std::set<std::string> variants;
  /// Folders with files that are no partitions.
  std::set<std::string> plain;
  std::string root;
  bool any = false;
  bool same = true;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const auto levels = PartitionLevels(bases[i], files[i].path);
    std::string folder = files[i].path.substr(0, files[i].path.rfind('/'));
    if (levels.empty()) {
      plain.insert(std::move(folder));
      continue;
    }
    while (folder.find('=', folder.rfind('/') + 1) == std::string::npos) {
      folder = folder.substr(0, folder.rfind('/'));  // below a partition folders may have any name
    }
    std::vector<std::string> here;
    std::vector<std::optional<std::string>> values;
    for (const auto& [name, value] : levels) {
      here.push_back(name);
      values.push_back(value);
    }
    for (std::size_t k = 0; k < levels.size(); ++k) {
      folder = folder.substr(0, folder.rfind('/'));
    }
    if (!any) {
      any = true;
      names = here;
      root = folder;
    }
    bool equal = here.size() == names.size();
    for (std::size_t k = 0; equal && k < here.size(); ++k) {
      equal = SameName(here[k], names[k], case_sensitive);
    }
    same = same && equal;
    variants.insert(Join(here, ", "));
    if (folder != root) {
      return ConflictingFolders(root, folder);
    }
    result.files.push_back(files[i]);
    result.values.push_back(std::move(values));
  }
  if (!any) {
    return result;
  }
  // Files in the root itself are left out; those of other folders that are no partition would vanish.
  plain.erase(root);
  if (!plain.empty()) {
    return ConflictingFolders(root, *plain.begin());
  }
  if (!same) {
    std::string listed;
    for (const std::string& variant : variants) {
      listed += "\n  Partition column name list: " + variant;
    }
    return Error(ErrorKind::kInvalidArgument, "CONFLICTING_PARTITION_COLUMN_NAMES",
                 "Conflicting partition column names detected:" + listed +
                     "\nFor partitioned table directories, data files should only live in leaf directories. And "
                     "directories at the same level should have the same partition column name. Please check the "
                     "following directories for unexpected files or inconsistent partition column names.")
        .Family(ErrorFamily::kRuntime);
  }
  std::vector<types::StructField> fields;
  for (std::size_t k = 0; k < names.size(); ++k) {
    std::optional<types::StructField> given;
    if (user_schema) {
      for (const auto& field : user_schema->fields()) {
        if (SameName(field.name, names[k], case_sensitive)) {
          given = field;
        }
      }
    }
    if (given) {
      fields.push_back({given->name, given->type, true, given->metadata});
      continue;
    }
    std::vector<std::optional<std::string>> column;
    column.reserve(result.values.size());
    for (const auto& row : result.values) {
      column.push_back(row[k]);
    }
    fields.push_back({names[k], infer ? InferPartitionType(column, zone) : DataType::String(), true, {}});
  }
  result.schema = DataType::Struct(std::move(fields));
  return result;
}

}  // namespace fleuve::connectors::files
