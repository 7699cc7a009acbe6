#include "types/data_type.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "types/collated_fields_internal.h"
#include "types/collation.h"

namespace fleuve::types {
namespace {

struct SimpleName {
  TypeKind kind;
  std::string_view simple;  ///< simpleString
  std::string_view json;    ///< typeName, as in JSON and tree
  std::string_view sql;
};

constexpr auto kSimpleNames = std::to_array<SimpleName>({
    {TypeKind::kVoid, "void", "void", "VOID"},
    {TypeKind::kBoolean, "boolean", "boolean", "BOOLEAN"},
    {TypeKind::kByte, "tinyint", "byte", "TINYINT"},
    {TypeKind::kShort, "smallint", "short", "SMALLINT"},
    {TypeKind::kInt, "int", "integer", "INT"},
    {TypeKind::kLong, "bigint", "long", "BIGINT"},
    {TypeKind::kFloat, "float", "float", "FLOAT"},
    {TypeKind::kDouble, "double", "double", "DOUBLE"},
    {TypeKind::kString, "string", "string", "STRING"},
    {TypeKind::kBinary, "binary", "binary", "BINARY"},
    {TypeKind::kDate, "date", "date", "DATE"},
    {TypeKind::kTime, "time", "time", "TIME"},
    {TypeKind::kTimestamp, "timestamp", "timestamp", "TIMESTAMP"},
    {TypeKind::kTimestampNtz, "timestamp_ntz", "timestamp_ntz", "TIMESTAMP_NTZ"},
    {TypeKind::kCalendarInterval, "interval", "interval", "INTERVAL"},
    {TypeKind::kVariant, "variant", "variant", "VARIANT"},
});

const SimpleName* FindSimple(TypeKind kind) {
  const auto found =
      std::find_if(kSimpleNames.begin(), kSimpleNames.end(), [&](const SimpleName& n) { return n.kind == kind; });
  return found == kSimpleNames.end() ? nullptr : &*found;
}

constexpr std::array<std::string_view, 4> kDayTimeFields = {"day", "hour", "minute", "second"};
constexpr std::array<std::string_view, 2> kYearMonthFields = {"year", "month"};

template <std::size_t N>
std::string IntervalName(const std::array<std::string_view, N>& fields, int start, int end) {
  std::string text = "interval " + std::string(fields[static_cast<std::size_t>(start)]);
  if (start != end) {
    text += " to " + std::string(fields[static_cast<std::size_t>(end)]);
  }
  return text;
}

std::string Bracketed(std::string_view name, int a) { return std::string(name) + "(" + std::to_string(a) + ")"; }
std::string Bracketed(std::string_view name, int a, int b) {
  return std::string(name) + "(" + std::to_string(a) + "," + std::to_string(b) + ")";
}

/// `COMMENT 'x'` of a field, with a leading blank, or nothing.
std::string CommentOf(const StructField& field) {
  const Json& comment = field.metadata["comment"];
  if (!comment.is_string()) {
    return "";
  }
  std::string escaped;
  for (const char c : comment.AsString()) {
    if (c == '\'' || c == '\\') {
      escaped += '\\';
    }
    escaped += c;
  }
  return " COMMENT '" + escaped + "'";
}

void AppendTree(std::string& out, const DataType& type, const std::string& prefix, int level, int level_max);

void AppendTreeField(std::string& out, std::string_view name, const DataType& type, std::string_view flag_name,
                     bool flag, const std::string& prefix, int level, int level_max) {
  out += prefix + "-- " + std::string(name) + ": " + type.TypeName();
  if (!flag_name.empty()) {
    out += " (" + std::string(flag_name) + " = " + (flag ? "true" : "false") + ")";
  }
  out += '\n';
  AppendTree(out, type, prefix + "    |", level + 1, level_max);
}

void AppendTree(std::string& out, const DataType& type, const std::string& prefix, int level, int level_max) {
  if (level_max > 0 && level > level_max) {
    return;
  }
  if (type.Is(TypeKind::kStruct)) {
    for (const auto& field : type.fields()) {
      AppendTreeField(out, field.name, field.type, "nullable", field.nullable, prefix, level, level_max);
    }
  } else if (type.Is(TypeKind::kArray)) {
    AppendTreeField(out, "element", type.element(), "containsNull", type.contains_null(), prefix, level, level_max);
  } else if (type.Is(TypeKind::kMap)) {
    AppendTreeField(out, "key", type.key(), "", true, prefix, level, level_max);
    AppendTreeField(out, "value", type.value(), "valueContainsNull", type.contains_null(), prefix, level, level_max);
  }
}

Error UnknownJsonType(const std::string& text) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_JSON_DATA_TYPE",
               "Failed to convert the JSON string '" + text + "' to a data type. Please enter a valid data type.")
      .With("invalidType", text);
}

/// `decimal(10,2)` -> {10, 2}; `char(3)` -> {3}.
std::vector<int> NumbersIn(std::string_view text) {
  std::vector<int> numbers;
  int current = -1;
  for (const char c : text) {
    if (c >= '0' && c <= '9') {
      current = (current < 0 ? 0 : current * 10) + (c - '0');
    } else if (current >= 0) {
      numbers.push_back(current);
      current = -1;
    }
  }
  return numbers;
}

Result<DataType> FromJsonName(const std::string& name) {
  for (const auto& simple : kSimpleNames) {
    if (name == simple.json) {
      return DataType::Of(simple.kind);
    }
  }
  if (name == "null") {
    return DataType::Void();
  }
  if (name == "decimal") {
    return DataType::Decimal(10, 0);
  }
  const auto numbers = NumbersIn(name);
  if (name.starts_with("decimal(") && numbers.size() == 2 && numbers[0] <= 38) {
    return DataType::Decimal(numbers[0], numbers[1]);
  }
  if (name.starts_with("char(") && numbers.size() == 1) {
    return DataType::Char(numbers[0]);
  }
  if (name.starts_with("varchar(") && numbers.size() == 1) {
    return DataType::Varchar(numbers[0]);
  }
  if (name.starts_with("string collate ")) {
    return DataType::String(name.substr(15));
  }
  if (name.starts_with("time(")) {
    return DataType::Of(TypeKind::kTime);
  }
  for (int start = 0; start < 4; ++start) {
    for (int end = start; end < 4; ++end) {
      if (name == IntervalName(kDayTimeFields, start, end)) {
        return DataType::DayTimeInterval(start, end);
      }
      if (start < 2 && end < 2 && name == IntervalName(kYearMonthFields, start, end)) {
        return DataType::YearMonthInterval(start, end);
      }
    }
  }
  return UnknownJsonType(name);
}

}  // namespace

DataType DataType::Of(TypeKind kind) {
  if (kind == TypeKind::kVoid) {
    return {};
  }
  // One shared instance per kind without parameters.
  static const auto instances = [] {
    std::vector<std::shared_ptr<const Rep>> made;
    for (int i = 0; i <= static_cast<int>(TypeKind::kVariant); ++i) {
      auto rep = std::make_shared<Rep>();
      rep->kind = static_cast<TypeKind>(i);
      made.push_back(std::move(rep));
    }
    return made;
  }();
  return DataType(instances[static_cast<std::size_t>(kind)]);
}

DataType DataType::String(std::string collation) {
  if (collation.empty() || collation == "UTF8_BINARY") {
    return String();
  }
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kString;
  rep->text = std::move(collation);
  return DataType(std::move(rep));
}

DataType DataType::Decimal(int precision, int scale) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kDecimal;
  rep->a = precision;
  rep->b = scale;
  return DataType(std::move(rep));
}

DataType DataType::Char(int length) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kChar;
  rep->a = length;
  return DataType(std::move(rep));
}

DataType DataType::Varchar(int length) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kVarchar;
  rep->a = length;
  return DataType(std::move(rep));
}

DataType DataType::DayTimeInterval(int start_field, int end_field) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kDayTimeInterval;
  rep->a = start_field;
  rep->b = end_field;
  return DataType(std::move(rep));
}

DataType DataType::YearMonthInterval(int start_field, int end_field) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kYearMonthInterval;
  rep->a = start_field;
  rep->b = end_field;
  return DataType(std::move(rep));
}

DataType DataType::Array(DataType element, bool contains_null) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kArray;
  rep->flag = contains_null;
  rep->children.push_back(std::move(element));
  return DataType(std::move(rep));
}

DataType DataType::Map(DataType key, DataType value, bool value_contains_null) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kMap;
  rep->flag = value_contains_null;
  rep->children.push_back(std::move(key));
  rep->children.push_back(std::move(value));
  return DataType(std::move(rep));
}

DataType DataType::Struct(std::vector<StructField> fields) {
  auto rep = std::make_shared<Rep>();
  rep->kind = TypeKind::kStruct;
  rep->fields = std::move(fields);
  return DataType(std::move(rep));
}

const std::string& DataType::collation() const {
  static const std::string binary = "UTF8_BINARY";
  return rep_ && !rep_->text.empty() ? rep_->text : binary;
}

const DataType& DataType::element() const {
  FLEUVE_CHECK(Is(TypeKind::kArray));
  return rep_->children[0];
}

const DataType& DataType::key() const {
  FLEUVE_CHECK(Is(TypeKind::kMap));
  return rep_->children[0];
}

const DataType& DataType::value() const {
  FLEUVE_CHECK(Is(TypeKind::kMap));
  return rep_->children[1];
}

const std::vector<StructField>& DataType::fields() const {
  static const std::vector<StructField> none;
  return rep_ ? rep_->fields : none;
}

bool DataType::IsIntegral() const {
  return Is(TypeKind::kByte) || Is(TypeKind::kShort) || Is(TypeKind::kInt) || Is(TypeKind::kLong);
}

bool DataType::IsFractional() const { return Is(TypeKind::kFloat) || Is(TypeKind::kDouble) || Is(TypeKind::kDecimal); }

bool DataType::IsNumeric() const { return IsIntegral() || IsFractional(); }

bool DataType::IsString() const { return Is(TypeKind::kString) || Is(TypeKind::kChar) || Is(TypeKind::kVarchar); }

bool DataType::IsNested() const { return Is(TypeKind::kArray) || Is(TypeKind::kMap) || Is(TypeKind::kStruct); }

bool DataType::IsDateTime() const {
  return Is(TypeKind::kDate) || Is(TypeKind::kTimestamp) || Is(TypeKind::kTimestampNtz);
}

bool DataType::operator==(const DataType& other) const {
  if (rep_ == other.rep_) {
    return true;
  }
  if (!rep_ || !other.rep_) {
    return kind() == other.kind();
  }
  return rep_->kind == other.rep_->kind && rep_->a == other.rep_->a && rep_->b == other.rep_->b &&
         rep_->flag == other.rep_->flag && rep_->text == other.rep_->text && rep_->children == other.rep_->children &&
         rep_->fields == other.rep_->fields;
}

bool DataType::EqualsIgnoringNullability(const DataType& other) const {
  if (rep_ == other.rep_) {
    return true;
  }
  if (!rep_ || !other.rep_) {
    return kind() == other.kind();
  }
  if (rep_->kind != other.rep_->kind || rep_->a != other.rep_->a || rep_->b != other.rep_->b ||
      rep_->text != other.rep_->text || rep_->children.size() != other.rep_->children.size() ||
      rep_->fields.size() != other.rep_->fields.size()) {
    return false;
  }
  for (std::size_t i = 0; i < rep_->children.size(); ++i) {
    if (!rep_->children[i].EqualsIgnoringNullability(other.rep_->children[i])) {
      return false;
    }
  }
  for (std::size_t i = 0; i < rep_->fields.size(); ++i) {
    if (rep_->fields[i].name != other.rep_->fields[i].name ||
        !rep_->fields[i].type.EqualsIgnoringNullability(other.rep_->fields[i].type)) {
      return false;
    }
  }
  return true;
}

DataType DataType::AsNullable() const {
  switch (kind()) {
    case TypeKind::kArray:
      return Array(element().AsNullable(), true);
    case TypeKind::kMap:
      return Map(key().AsNullable(), value().AsNullable(), true);
    case TypeKind::kStruct: {
      std::vector<StructField> nullable_fields = fields();
      for (auto& field : nullable_fields) {
        field.type = field.type.AsNullable();
        field.nullable = true;
      }
      return Struct(std::move(nullable_fields));
    }
    default:
      return *this;
  }
}

std::string DataType::SimpleString() const {
  switch (kind()) {
    case TypeKind::kDecimal:
      return Bracketed("decimal", precision(), scale());
    case TypeKind::kChar:
      return Bracketed("char", length());
    case TypeKind::kVarchar:
      return Bracketed("varchar", length());
    case TypeKind::kTime:
      return "time(6)";
    case TypeKind::kString:
      return rep_->text.empty() ? "string" : "string collate " + rep_->text;
    case TypeKind::kDayTimeInterval:
      return IntervalName(kDayTimeFields, precision(), scale());
    case TypeKind::kYearMonthInterval:
      return IntervalName(kYearMonthFields, precision(), scale());
    case TypeKind::kArray:
      return "array<" + element().SimpleString() + ">";
    case TypeKind::kMap:
      return "map<" + key().SimpleString() + "," + value().SimpleString() + ">";
    case TypeKind::kStruct: {
      std::string text = "struct<";
      const char* separator = "";
      for (const auto& field : fields()) {
        text += separator + field.name + ":" + field.type.SimpleString();
        separator = ",";
      }
      return text + ">";
    }
    default:
      return std::string(FindSimple(kind())->simple);
  }
}

std::string DataType::Sql() const {
  switch (kind()) {
    case TypeKind::kArray:
      return "ARRAY<" + element().Sql() + ">";
    case TypeKind::kMap:
      return "MAP<" + key().Sql() + ", " + value().Sql() + ">";
    case TypeKind::kString:
      return rep_->text.empty() ? "STRING" : "STRING COLLATE " + rep_->text;
    case TypeKind::kStruct: {
      std::string text = "STRUCT<";
      const char* separator = "";
      for (const auto& field : fields()) {
        text += separator + QuoteIfNeeded(field.name) + ": " + field.type.Sql() + (field.nullable ? "" : " NOT NULL") +
                CommentOf(field);
        separator = ", ";
      }
      return text + ">";
    }
    case TypeKind::kDecimal:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kTime:
    case TypeKind::kDayTimeInterval:
    case TypeKind::kYearMonthInterval:
      return AsciiUpper(SimpleString());
    default:
      return std::string(FindSimple(kind())->sql);
  }
}

Json DataType::ToJson() const {
  switch (kind()) {
    case TypeKind::kArray: {
      Json json;
      json.Set("type", "array").Set("elementType", element().ToJson()).Set("containsNull", contains_null());
      return json;
    }
    case TypeKind::kMap: {
      Json json;
      json.Set("type", "map").Set("keyType", key().ToJson()).Set("valueType", value().ToJson());
      json.Set("valueContainsNull", contains_null());
      return json;
    }
    case TypeKind::kStruct: {
      Json list{Json::Array()};
      for (const auto& field : fields()) {
        Json item;
        Json metadata = field.metadata.is_object() ? field.metadata : Json(Json::Object());
        Json type;
        if (CollationIn(field.type) == nullptr) {
          type = field.type.ToJson();
        } else {
          Json collations{Json::Object()};
          type = WithoutCollations(field.type, field.name, &collations).ToJson();
          if (!collations.fields().empty()) {
            metadata.Set(kCollationsKey, std::move(collations));
          }
        }
        item.Set("name", field.name).Set("type", std::move(type)).Set("nullable", field.nullable);
        item.Set("metadata", std::move(metadata));
        list.Append(std::move(item));
      }
      Json json;
      json.Set("type", "struct").Set("fields", std::move(list));
      return json;
    }
    default:
      return Json(TypeName());
  }
}

std::string DataType::TypeName() const {
  switch (kind()) {
    case TypeKind::kArray:
      return "array";
    case TypeKind::kMap:
      return "map";
    case TypeKind::kStruct:
      return "struct";
    default:
      break;
  }
  const SimpleName* simple = FindSimple(kind());
  if (simple == nullptr || Is(TypeKind::kTime) || (Is(TypeKind::kString) && !rep_->text.empty())) {
    return SimpleString();
  }
  return std::string(simple->json);
}

Result<DataType> DataType::FromJson(const Json& json) {
  if (json.is_string()) {
    return FromJsonName(json.AsString());
  }
  const std::string& type = json["type"].AsString();
  if (type == "array") {
    FLEUVE_ASSIGN(auto element, FromJson(json["elementType"]));
    return Array(std::move(element), json["containsNull"].AsBool(true));
  }
  if (type == "map") {
    FLEUVE_ASSIGN(auto key, FromJson(json["keyType"]));
    FLEUVE_ASSIGN(auto value, FromJson(json["valueType"]));
    return Map(std::move(key), std::move(value), json["valueContainsNull"].AsBool(true));
  }
  if (type == "struct") {
    std::vector<StructField> fields;
    for (const auto& item : json["fields"].items()) {
      FLEUVE_ASSIGN(auto field_type, FromJson(item["type"]));
      Json metadata{Json::Object()};
      for (const auto& [key, value] : item["metadata"].fields()) {
        if (key == kCollationsKey) {
          field_type = WithCollations(field_type, item["name"].AsString(), value);
        } else {
          metadata.Set(key, value);
        }
      }
      fields.push_back({item["name"].AsString(), std::move(field_type), item["nullable"].AsBool(true),
                        metadata.fields().empty() ? Json() : std::move(metadata)});
    }
    return Struct(std::move(fields));
  }
  if (type == "udt" && json.Find("sqlType") != nullptr) {
    return FromJson(json["sqlType"]);
  }
  return UnknownJsonType(json.Dump());
}

std::string TreeString(const Schema& schema, int level) {
  std::string out = "root\n";
  AppendTree(out, schema, " |", 1, level);
  return out;
}

std::string ToDdl(const Schema& schema) {
  std::string text;
  for (const auto& field : schema.fields()) {
    if (!text.empty()) {
      text += ",";
    }
    text += QuoteIfNeeded(field.name) + " " + field.type.Sql() + (field.nullable ? "" : " NOT NULL") + CommentOf(field);
  }
  return text;
}

std::optional<std::size_t> FieldIndex(const Schema& schema, std::string_view name, bool case_sensitive) {
  const auto& fields = schema.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (case_sensitive ? fields[i].name == name : EqualsIgnoreAsciiCase(fields[i].name, name)) {
      return i;
    }
  }
  return std::nullopt;
}

std::string QuoteIdentifier(std::string_view name) {
  std::string quoted = "`";
  for (const char c : name) {
    quoted += c;
    if (c == '`') {
      quoted += '`';
    }
  }
  return quoted + "`";
}

std::string QuoteIfNeeded(std::string_view name) {
  const bool plain =
      !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
      });
  return plain ? std::string(name) : QuoteIdentifier(name);
}

}  // namespace fleuve::types
