#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/json.h"
#include "plan/functions/options_internal.h"
#include "plan/functions/registry_internal.h"
#include "plan/reader_schema.h"
#include "plan/scan.h"
#include "sql/parser.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

const Value* ConstantOf(const ExprPtr& expr) {
  const Expr* node = expr.get();
  while (node->kind == ExprKind::kCast && node->type.IsString() && node->children[0]->type.IsString()) {
    node = node->children[0].get();
  }
  return node->kind == ExprKind::kLiteral ? &node->value : nullptr;
}

Result<Options> OptionsOf(Call& call, std::size_t i) {
  Options options;
  if (i >= call.size()) {
    return options;
  }
  const ExprPtr& map = call.args[i];
  const auto wrong_type = [&] {
    return Error(ErrorKind::kInvalidArgument, "INVALID_OPTIONS.NON_STRING_TYPE",
                 "Invalid options: A type of keys and values in `map()` must be string, but got \"" + map->type.Sql() +
                     "\".")
        .With("mapType", "\"" + map->type.Sql() + "\"");
  };
  if (!map->type.Is(TypeKind::kMap)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_OPTIONS.NON_MAP_FUNCTION",
                 "Invalid options: Must use the `map()` function for options.");
  }
  if (!map->type.key().IsString() || !map->type.value().IsString()) {
    // An empty map has no types.
    if (map->kind == ExprKind::kCall && map->children.size() <= 1) {
      return options;
    }
    return wrong_type();
  }
  if (map->kind == ExprKind::kLiteral && !map->value.is_null()) {
    for (const Value& entry : map->value.list()) {
      if (!entry.list()[1].is_null()) {
        options[entry.list()[0].text()] = entry.list()[1].text();
      }
    }
    return options;
  }
  if (map->kind != ExprKind::kCall || map->function != "spark_map") {
    return Error(ErrorKind::kInvalidArgument, "INVALID_OPTIONS.NON_MAP_FUNCTION",
                 "Invalid options: Must use the `map()` function for options.");
  }
  for (std::size_t k = 0; k + 1 < map->children.size(); k += 2) {
    const Value* key = ConstantOf(map->children[k]);
    const Value* value = ConstantOf(map->children[k + 1]);
    if (key == nullptr || value == nullptr || key->is_null()) {
      return Error::Unsupported("options of " + call.name + " that are no constants");
    }
    if (!value->is_null()) {
      options[key->text()] = value->text();
    }
  }
  return options;
}

void HideOptions(Call& call, const Options& options) {
  Value::List list;
  for (const auto& [key, value] : options) {
    list.push_back(Value(key));
    list.push_back(Value(value));
  }
  call.Hidden(Value(std::move(list)), DataType::Array(DataType::String(), false));
  call.Hidden(Value(call.config.session_zone), DataType::String());
}

namespace {

/// A schema as text: DDL or the JSON that clients send.
Result<DataType> SchemaFromText(const Call& call, const std::string& text) {
  sql::ParserOptions options;
  options.session_zone = call.config.session_zone;
  const std::size_t start = text.find_first_not_of(" \t\n\r");
  if (start != std::string::npos && (text[start] == '{' || text[start] == '"')) {
    auto json = Json::Parse(text);
    if (json.ok()) {
      return DataType::FromJson(*json);
    }
  }
  auto columns = sql::ParseColumnList(text, options);
  return columns.ok() ? std::move(columns) : sql::ParseDataType(text, options);
}

Result<DataType> SchemaOf(Call& call, std::size_t i) {
  const Value* text = ConstantOf(call.args[i]);
  if (text == nullptr || text->is_null() || !call.type(i).IsString()) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_SCHEMA.NON_STRING_LITERAL",
                 "The input schema \"" + call.shown[i] +
                     "\" is not a valid schema string. The input expression must be string literal and not null.")
        .With("inputSchema", "\"" + call.shown[i] + "\"");
  }
  FLEUVE_ASSIGN(DataType type, SchemaFromText(call, text->text()));
  FLEUVE_TRY(RefuseCharTypes(type));
  return type.AsNullable();
}

bool IsFailFast(const Options& options) {
  const std::string* mode = FindOption(options, "mode");
  return mode != nullptr && EqualsIgnoreAsciiCase(*mode, "FAILFAST");
}

Result<ExprPtr> BuildFromJson(Call& call) {
  FLEUVE_ASSIGN(const DataType schema, SchemaOf(call, 1));
  const std::string display = schema.Is(TypeKind::kMap) ? "entries" : "from_json(" + call.shown[0] + ")";
  FLEUVE_ASSIGN(const Options options, OptionsOf(call, 2));
  if (!call.type(0).IsString() && !call.type(0).Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "STRING");
  }
  if (!schema.Is(TypeKind::kStruct) && !schema.Is(TypeKind::kArray) && !schema.Is(TypeKind::kMap) &&
      !schema.Is(TypeKind::kVariant)) {
    return call.Mismatch("INVALID_JSON_SCHEMA",
                         "Input schema \"" + schema.Sql() + "\" must be a struct, an array, a map or a variant.");
  }
  if (schema.Is(TypeKind::kMap) && !schema.key().IsString()) {
    return call.Mismatch("INVALID_JSON_MAP_KEY_TYPE",
                         "Input schema \"" + schema.Sql() + "\" can only contain STRING as a key type for a MAP.");
  }
  call.args.resize(1);
  FLEUVE_TRY(call.To(0, DataType::String()));
  HideOptions(call, options);
  return call.Shown(call.Make("spark_from_json", schema, true, IsFailFast(options)), display);
}

Result<ExprPtr> BuildToJson(Call& call) {
  const std::string display = "to_json(" + call.shown[0] + ")";
  FLEUVE_ASSIGN(const Options options, OptionsOf(call, 1));
  const DataType& type = call.type(0);
  if (!type.Is(TypeKind::kStruct) && !type.Is(TypeKind::kArray) && !type.Is(TypeKind::kMap) &&
      !type.Is(TypeKind::kVariant)) {
    return call.Mismatch("INVALID_JSON_SCHEMA",
                         "Input schema \"" + type.Sql() + "\" must be a struct, an array, a map or a variant.");
  }
  call.args.resize(1);
  if (type.Is(TypeKind::kVariant)) {
    call.Hidden(Value(call.config.session_zone), DataType::String());
    return call.Shown(call.Make("spark_variant_to_json", DataType::String(), true), display);
  }
  HideOptions(call, options);
  return call.Shown(call.Make("spark_to_json", DataType::String(), true), display);
}

// --------------------------------------------------------------------------------------------- inference of schemas

DataType MergeTypes(const DataType& a, const DataType& b) {
  if (a == b || b.Is(TypeKind::kVoid)) {
    return a;
  }
  if (a.Is(TypeKind::kVoid)) {
    return b;
  }
  if (a.Is(TypeKind::kArray) && b.Is(TypeKind::kArray)) {
    return DataType::Array(MergeTypes(a.element(), b.element()));
  }
  if (a.Is(TypeKind::kStruct) && b.Is(TypeKind::kStruct)) {
    std::vector<StructField> fields = a.fields();
    for (const StructField& other : b.fields()) {
      auto found =
          std::find_if(fields.begin(), fields.end(), [&](const StructField& f) { return f.name == other.name; });
      if (found == fields.end()) {
        fields.push_back(other);
      } else {
        found->type = MergeTypes(found->type, other.type);
      }
    }
    std::sort(fields.begin(), fields.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
    return DataType::Struct(std::move(fields));
  }
  if (a.IsNumeric() && b.IsNumeric()) {
    if (a.Is(TypeKind::kDouble) || b.Is(TypeKind::kDouble)) {
      return DataType::Double();
    }
    const auto as_decimal = [](const DataType& t) { return t.Is(TypeKind::kDecimal) ? t : DataType::Decimal(20, 0); };
    const DataType x = as_decimal(a);
    const DataType y = as_decimal(b);
    const int scale = std::max(x.scale(), y.scale());
    const int range = std::max(x.precision() - x.scale(), y.precision() - y.scale());
    return range + scale > 38 ? DataType::Double() : DataType::Decimal(range + scale, scale);
  }
  return DataType::String();
}

/// Infers the type of one JSON text. Numbers are judged by their digits.
class JsonInference {
 public:
  JsonInference(std::string_view text, bool primitives_as_string, bool prefers_decimal)
      : text_(text), primitives_as_string_(primitives_as_string), prefers_decimal_(prefers_decimal) {}

  std::optional<DataType> Run() {
    auto type = Value(0);
    Skip();
    return at_ == text_.size() ? type : std::nullopt;
  }

 private:
  void Skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    }
  }
  bool Accept(char c) {
    Skip();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }

  std::optional<std::string> Text() {
    const std::size_t start = at_;
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) {
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    if (at_ >= text_.size()) {
      return std::nullopt;
    }
    ++at_;
    std::string raw(text_.substr(start, at_ - start));
    if (quote == '"') {
      auto parsed = Json::Parse(raw);
      return parsed.ok() ? std::optional<std::string>(parsed->AsString()) : std::nullopt;
    }
    return raw.substr(1, raw.size() - 2);
  }

  std::optional<DataType> Value(int depth) {
    Skip();
    if (at_ >= text_.size() || depth > 1000) {
      return std::nullopt;
    }
    const char c = text_[at_];
    if (c == '{') {
      return Object(depth);
    }
    if (c == '[') {
      ++at_;
      DataType element;
      if (Accept(']')) {
        return DataType::Array(element);
      }
      do {
        const auto item = Value(depth + 1);
        if (!item) {
          return std::nullopt;
        }
        element = MergeTypes(element, *item);
      } while (Accept(','));
      return Accept(']') ? std::optional<DataType>(DataType::Array(element)) : std::nullopt;
    }
    if (c == '"' || c == '\'') {
      return Text() ? std::optional<DataType>(DataType::String()) : std::nullopt;
    }
    std::size_t end = at_;
    while (end < text_.size() && std::string_view(",]} \t\r\n").find(text_[end]) == std::string_view::npos) {
      ++end;
    }
    const std::string word(text_.substr(at_, end - at_));
    at_ = end;
    if (word == "null") {
      return DataType::Void();
    }
    if (word == "true" || word == "false") {
      return primitives_as_string_ ? DataType::String() : DataType::Boolean();
    }
    return Number(word);
  }

  std::optional<DataType> Number(const std::string& word) const {
    auto decimal = types::DecimalFromString(word);
    char* end = nullptr;
    (void)std::strtod(word.c_str(), &end);
    if (word.empty() || end != word.c_str() + word.size() ||
        std::string_view("-0123456789").find(word[0]) == std::string_view::npos) {
      return std::nullopt;
    }
    if (primitives_as_string_) {
      return DataType::String();
    }
    const bool whole = word.find_first_of(".eE") == std::string::npos;
    std::int64_t value = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
    if (whole && parsed.ec == std::errc()) {
      return DataType::Long();
    }
    if (decimal.ok() && (whole || prefers_decimal_)) {
      Int128 unscaled = decimal->first < 0 ? -decimal->first : decimal->first;
      int digits = 0;
      for (; unscaled != 0; unscaled /= 10) {
        ++digits;
      }
      return DataType::Decimal(std::max({digits, decimal->second, 1}), decimal->second);
    }
    return DataType::Double();
  }

  std::optional<DataType> Object(int depth) {
    ++at_;
    std::vector<StructField> fields;
    if (Accept('}')) {
      return DataType::Struct({});
    }
    do {
      Skip();
      if (at_ >= text_.size() || (text_[at_] != '"' && text_[at_] != '\'')) {
        return std::nullopt;
      }
      auto name = Text();
      if (!name || !Accept(':')) {
        return std::nullopt;
      }
      const auto type = Value(depth + 1);
      if (!type) {
        return std::nullopt;
      }
      fields.push_back({std::move(*name), *type, true, Json()});
    } while (Accept(','));
    if (!Accept('}')) {
      return std::nullopt;
    }
    std::sort(fields.begin(), fields.end(), [](const auto& x, const auto& y) { return x.name < y.name; });
    return DataType::Struct(std::move(fields));
  }

  using Int128 = types::Int128;
  std::string_view text_;
  std::size_t at_ = 0;
  bool primitives_as_string_;
  bool prefers_decimal_;
};

/// Nothing known becomes a string; empty structs vanish.
std::optional<DataType> Canonical(const DataType& type) {
  if (type.Is(TypeKind::kVoid)) {
    return DataType::String();
  }
  if (type.Is(TypeKind::kArray)) {
    auto element = Canonical(type.element());
    return element ? std::optional<DataType>(DataType::Array(*element)) : std::nullopt;
  }
  if (type.Is(TypeKind::kStruct)) {
    std::vector<StructField> fields;
    for (const StructField& field : type.fields()) {
      if (field.name.empty()) {
        continue;
      }
      if (auto inner = Canonical(field.type)) {
        fields.push_back({field.name, *inner, true, Json()});
      }
    }
    return fields.empty() ? std::nullopt : std::optional<DataType>(DataType::Struct(std::move(fields)));
  }
  return type;
}

Result<std::string> ConstantText(Call& call, std::size_t i) {
  const Value* text = ConstantOf(call.args[i]);
  if (text == nullptr || !call.type(i).IsString()) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input should be a foldable \"STRING\" expression; however, got \"" +
                                                   call.shown[i] + "\".");
  }
  if (text->is_null()) {
    return call.Mismatch("UNEXPECTED_NULL", "The input must not be null.");
  }
  return text->text();
}

Result<ExprPtr> BuildSchemaOfJson(Call& call) {
  FLEUVE_ASSIGN(const std::string text, ConstantText(call, 0));
  FLEUVE_ASSIGN(const Options options, OptionsOf(call, 1));
  for (const auto& [key, value] : options) {
    if (!EqualsIgnoreAsciiCase(key, "primitivesAsString") && !EqualsIgnoreAsciiCase(key, "prefersDecimal") &&
        !EqualsIgnoreAsciiCase(key, "allowNumericLeadingZeros")) {
      return Error::Unsupported("option " + key + " of schema_of_json");
    }
    if (EqualsIgnoreAsciiCase(key, "allowNumericLeadingZeros")) {
      return Error::Unsupported("option allowNumericLeadingZeros of schema_of_json");
    }
  }
  const auto flag = [&](const char* name) {
    const std::string* value = FindOption(options, name);
    return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
  };
  const auto inferred = JsonInference(text, flag("primitivesAsString"), flag("prefersDecimal")).Run();
  DataType type = DataType::String();
  if (inferred) {
    type = Canonical(*inferred).value_or(DataType::Struct({}));
  }
  return call.Shown(MakeLiteral(Value(type.Sql()), DataType::String()), "schema_of_json(" + call.shown[0] + ")");
}

DataType InferCsvType(std::string_view text, const std::string& zone) {
  if (text.empty()) {
    return DataType::Void();
  }
  std::int64_t whole = 0;
  const std::string_view digits = text.front() == '+' ? text.substr(1) : text;
  auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size()) {
    return whole >= INT32_MIN && whole <= INT32_MAX ? DataType::Int() : DataType::Long();
  }
  if (parsed.ec == std::errc::result_out_of_range && digits.size() <= 38) {
    return DataType::Decimal(static_cast<int>(digits.size() - (digits.front() == '-' ? 1 : 0)), 0);
  }
  char* end = nullptr;
  const std::string copy(text);
  const bool numeric =
      (text.front() >= '0' && text.front() <= '9') || text.front() == '.' || text.front() == '-' || text.front() == '+';
  (void)std::strtod(copy.c_str(), &end);
  if ((numeric && end == copy.c_str() + copy.size()) || text == "NaN" || text == "Inf" || text == "-Inf") {
    return DataType::Double();
  }
  if (text.size() == 10 && types::ParseDate(text)) {
    return DataType::Date();
  }
  if (text.find(':') != std::string_view::npos && text.size() >= 16 && types::ParseTimestamp(text, zone)) {
    return DataType::Timestamp();
  }
  if (EqualsIgnoreAsciiCase(text, "true") || EqualsIgnoreAsciiCase(text, "false")) {
    return DataType::Boolean();
  }
  return DataType::String();
}

Result<ExprPtr> BuildSchemaOfCsv(Call& call) {
  FLEUVE_ASSIGN(const std::string text, ConstantText(call, 0));
  FLEUVE_ASSIGN(const Options options, OptionsOf(call, 1));
  std::string separator = ",";
  char quote = '"';
  for (const auto& [key, value] : options) {
    if ((EqualsIgnoreAsciiCase(key, "sep") || EqualsIgnoreAsciiCase(key, "delimiter")) && value.size() == 1) {
      separator = value;
    } else if (EqualsIgnoreAsciiCase(key, "quote") && value.size() == 1) {
      quote = value[0];
    } else {
      return Error::Unsupported("option " + key + " of schema_of_csv");
    }
  }
  std::vector<StructField> fields;
  std::string field;
  bool quoted = false;
  const auto finish = [&] {
    DataType type = InferCsvType(field, call.config.session_zone);
    fields.push_back(
        {"_c" + std::to_string(fields.size()), type.Is(TypeKind::kVoid) ? DataType::String() : type, true, Json()});
    field.clear();
  };
  for (const char c : text) {
    if (c == quote) {
      quoted = !quoted;
    } else if (c == separator[0] && !quoted) {
      finish();
    } else {
      field.push_back(c);
    }
  }
  finish();
  return call.Shown(MakeLiteral(Value(DataType::Struct(std::move(fields)).Sql()), DataType::String()),
                    "schema_of_csv(" + call.shown[0] + ")");
}

// --------------------------------------------------------------------------------------------------------------- CSV

Result<ExprPtr> BuildFromCsv(Call& call) {
  const std::string display = "from_csv(" + call.shown[0] + ")";
  FLEUVE_ASSIGN(const DataType schema, SchemaOf(call, 1));
  FLEUVE_ASSIGN(const Options options, OptionsOf(call, 2));
  if (!call.type(0).IsString() && !call.type(0).Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "STRING");
  }
  if (!schema.Is(TypeKind::kStruct)) {
    return Error(
        ErrorKind::kInvalidArgument, "INVALID_SCHEMA.NON_STRUCT_TYPE",
        "The input schema is not a valid schema string. The input expression should be evaluated to struct type, "
        "but got \"" +
            schema.Sql() + "\".");
  }
  call.args.resize(1);
  FLEUVE_TRY(call.To(0, DataType::String()));
  const bool nullable = call.args[0]->nullable;
  HideOptions(call, options);
  return call.Shown(call.Make("spark_from_csv", schema, nullable, true), display);
}

Result<ExprPtr> BuildToCsv(Call& call) {
  const std::string display = "to_csv(" + call.shown[0] + ")";
  FLEUVE_ASSIGN(const Options options, OptionsOf(call, 1));
  if (!call.type(0).Is(TypeKind::kStruct)) {
    return call.Unexpected(0, "STRUCT");
  }
  call.args.resize(1);
  HideOptions(call, options);
  return call.Shown(call.Make("spark_to_csv", DataType::String(), true), display);
}

}  // namespace

const Table& TextFormatFunctions() {
  static const Table table = {
      Scalar("from_json", 2, 3, BuildFromJson),
      Scalar("from_avro", 0, -1, BuildFromAvro),
      Scalar("to_avro", 0, -1, BuildToAvro),
      Scalar("schema_of_avro", 1, 2, BuildSchemaOfAvro),
      Scalar("from_protobuf", 2, 4, BuildFromProtobuf),
      Scalar("to_protobuf", 2, 4, BuildToProtobuf),
      Scalar("to_json", 1, 2, BuildToJson),
      Scalar("schema_of_json", 1, 2, BuildSchemaOfJson),
      Simple("get_json_object", "spark_get_json_object", "ss>s", kNullable),
      Simple("json_array_length", "spark_json_array_length", "s>i", kNullable),
      Scalar("json_object_keys", 1, 1,
             [](Call& call) -> Result<ExprPtr> {
               FLEUVE_TRY(call.To(0, DataType::String()));
               return call.Make("spark_json_object_keys", DataType::Array(DataType::String(), true), true);
             }),
      Scalar("from_csv", 2, 3, BuildFromCsv),
      Scalar("to_csv", 1, 2, BuildToCsv),
      Scalar("schema_of_csv", 1, 2, BuildSchemaOfCsv),
  };
  return table;
}

}  // namespace fleuve::plan::functions
