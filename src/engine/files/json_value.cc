#include <simdjson.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/json.h"
#include "engine/carriers_internal.h"
#include "engine/files/json_value_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/files/text_value_internal.h"
#include "engine/functions/json_path_internal.h"
#include "engine/functions/utf8_internal.h"
#include "engine/functions/variant_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::FlatVector;
using duckdb::idx_t;
using types::TypeKind;

std::string Fold(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

template <typename T>
void Store(duckdb::Vector& out, idx_t row, T value) {
  FlatVector::GetData<T>(out)[row] = value;
  FlatVector::Validity(out).SetValid(row);
}

/// Keeps the text alive that strings of a vector point into.
class HeldText final : public duckdb::VectorBuffer {
 public:
  explicit HeldText(std::shared_ptr<char[]> block)
      : VectorBuffer(duckdb::VectorBufferType::OPAQUE_BUFFER), block_(std::move(block)) {}

 private:
  const std::shared_ptr<char[]> block_;
};

bool ParseInteger(std::string_view text, std::int64_t* value) {
  if (!text.empty() && text[0] == '+') {
    text.remove_prefix(1);
  }
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size();
}

bool ParseReal(std::string_view text, double* value) {
  const bool negative = !text.empty() && text[0] == '-';
  std::string_view word = text;
  if (!word.empty() && (word[0] == '-' || word[0] == '+')) {
    word.remove_prefix(1);
  }
  if (word == "NaN") {
    *value = std::numeric_limits<double>::quiet_NaN();
    return true;
  }
  if (word == "Infinity" || word == "INF") {
    *value = negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    return true;
  }
  if (word.empty() || (!(word[0] >= '0' && word[0] <= '9') && word[0] != '.')) {
    return false;
  }
  double parsed = 0;
  const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), parsed);
  if (end != word.data() + word.size()) {
    return false;
  }
  if (code == std::errc::result_out_of_range) {
    // Beyond the largest double, or below the smallest.
    const std::size_t e = word.find_first_of("eE");
    const bool tiny = (e != std::string_view::npos && e + 1 < word.size() && word[e + 1] == '-') ||
                      (e == std::string_view::npos && word[0] == '0');
    parsed = tiny ? 0.0 : std::numeric_limits<double>::infinity();
  }
  *value = negative ? -parsed : parsed;
  return true;
}

int Base64Value(char c) {
  if (c >= 'A' && c <= 'Z') {
    return c - 'A';
  }
  if (c >= 'a' && c <= 'z') {
    return c - 'a' + 26;
  }
  if (c >= '0' && c <= '9') {
    return c - '0' + 52;
  }
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool DecodeBase64(std::string_view text, std::string* out) {
  out->clear();
  if (text.size() % 4 != 0) {
    return false;
  }
  for (int padding = 0; padding < 2 && !text.empty() && text.back() == '='; ++padding) {
    text.remove_suffix(1);
  }
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = Base64Value(c);
    if (value < 0) {
      return false;
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out->push_back(static_cast<char>((bits >> count) & 0xFF));
    }
  }
  return count != 6;
}

bool Fits(TypeKind kind, std::int64_t value) {
  switch (kind) {
    case TypeKind::kByte:
      return value >= -128 && value <= 127;
    case TypeKind::kShort:
      return value >= -32768 && value <= 32767;
    case TypeKind::kInt:
      return value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max();
    default:
      return true;
  }
}

}  // namespace

int JsonNode::Find(std::string_view name, bool case_sensitive) {
  if (hint < fields.size() && fields[hint].name == name) {
    return static_cast<int>(hint++);
  }
  const auto found = exact_.find(name);
  if (found != exact_.end()) {
    hint = static_cast<std::size_t>(found->second) + 1;
    return found->second;
  }
  if (!case_sensitive) {
    const auto folded = folded_.find(Fold(name));
    if (folded != folded_.end()) {
      return folded->second;
    }
  }
  return -1;
}

bool JsonNode::HasOtherCase(std::string_view name) const { return folded_.contains(Fold(name)); }

std::unique_ptr<JsonNode> CompileJsonNode(const types::DataType& type) {
  auto node = std::make_unique<JsonNode>();
  node->kind = type.kind();
  node->type = type;
  switch (type.kind()) {
    case TypeKind::kDecimal:
      node->precision = type.precision();
      node->scale = type.scale();
      break;
    case TypeKind::kArray:
      node->element = CompileJsonNode(type.element());
      break;
    case TypeKind::kMap:
      node->element = CompileJsonNode(type.value());
      if (!type.key().IsString()) {
        RaiseError(Error::Unsupported("JSON files with maps whose keys are no strings"));
      }
      node->key = CompileJsonNode(type.key());
      break;
    case TypeKind::kStruct:
      for (const types::StructField& field : type.fields()) {
        const int index = static_cast<int>(node->fields.size());
        node->fields.push_back({field.name, CompileJsonNode(field.type), 0});
        node->exact_.emplace(field.name, index);
        node->folded_.emplace(Fold(field.name), index);
      }
      break;
    case TypeKind::kDayTimeInterval:
    case TypeKind::kYearMonthInterval:
    case TypeKind::kCalendarInterval:
    case TypeKind::kTime:
      RaiseError(Error::Unsupported("JSON files with columns of type " + type.SimpleString()));
    default:
      break;
  }
  return node;
}

bool ParseDecimalText(std::string_view text, int precision, int scale, types::Int128* unscaled) {
  bool negative = false;
  std::size_t i = 0;
  if (i < text.size() && (text[i] == '-' || text[i] == '+')) {
    negative = text[i] == '-';
    ++i;
  }
  std::string digits;
  std::int64_t point = -1;
  bool any = false;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c >= '0' && c <= '9') {
      any = true;
      digits.push_back(c);
    } else if (c == '.' && point < 0) {
      point = static_cast<std::int64_t>(digits.size());
    } else {
      break;
    }
  }
  if (!any) {
    return false;
  }
  if (point < 0) {
    point = static_cast<std::int64_t>(digits.size());
  }
  if (i < text.size()) {
    if (text[i] != 'e' && text[i] != 'E') {
      return false;
    }
    std::int64_t exponent = 0;
    if (!ParseInteger(text.substr(i + 1), &exponent) || exponent > 100000 || exponent < -100000) {
      return false;
    }
    point += exponent;
  }
  // The value is 0.digits * 10^point; keep `scale` digits behind the point.
  const std::int64_t wanted = point + scale;
  types::Int128 value = 0;
  int significant = 0;
  for (std::int64_t k = 0; k < wanted; ++k) {
    const int digit = k < static_cast<std::int64_t>(digits.size()) ? digits[static_cast<std::size_t>(k)] - '0' : 0;
    if (value == 0 && digit == 0) {
      if (k >= static_cast<std::int64_t>(digits.size())) {
        break;
      }
      continue;
    }
    if (++significant > 38) {
      return false;
    }
    value = value * 10 + digit;
  }
  if (wanted >= 0 && wanted < static_cast<std::int64_t>(digits.size()) &&
      digits[static_cast<std::size_t>(wanted)] >= '5') {
    value += 1;
  }
  types::Int128 limit = 1;
  for (int k = 0; k < precision; ++k) {
    limit *= 10;
  }
  if (value >= limit) {
    return false;
  }
  *unscaled = negative ? -value : value;
  return true;
}

void SetDecimal(duckdb::Vector& out, idx_t row, types::Int128 unscaled, int precision) {
  if (precision <= 4) {
    Store(out, row, static_cast<std::int16_t>(unscaled));
  } else if (precision <= 9) {
    Store(out, row, static_cast<std::int32_t>(unscaled));
  } else if (precision <= 18) {
    Store(out, row, static_cast<std::int64_t>(unscaled));
  } else {
    Store(out, row, ToHugeint(unscaled));
  }
}

void SetText(duckdb::Vector& vector, idx_t row, std::string_view text) {
  std::string valid;
  if (vector.GetType().id() == duckdb::LogicalTypeId::VARCHAR && !IsAscii(text.data(), text.size()) &&
      !simdjson::validate_utf8(text.data(), text.size())) {
    // As Java decodes such bytes. Files and logs hold no text that is none.
    valid = MakeValidUtf8(text);
    text = valid;
  }
  FlatVector::GetData<duckdb::string_t>(vector)[row] =
      duckdb::StringVector::AddStringOrBlob(vector, text.data(), text.size());
  FlatVector::Validity(vector).SetValid(row);
}

void SetNull(duckdb::Vector& vector, idx_t row) { FlatVector::SetNull(vector, row, true); }

void JsonValueParser::Rescue(std::string* rescued, std::string_view name, std::string_view raw) {
  if (!rescued->empty()) {
    rescued->push_back(',');
  }
  AppendJsonString(*rescued, name);
  rescued->push_back(':');
  if (raw.size() >= 2 && raw[0] == '\'') {
    JsonScanner scanner(options_);
    scanner.Reset(raw);
    std::string_view text;
    if (scanner.String(&text)) {
      AppendJsonString(*rescued, text);
      return;
    }
  }
  *rescued += CompactJson(raw);
}

JsonOutcome JsonValueParser::Object(JsonNode& node, const std::vector<duckdb::Vector*>& columns, idx_t row,
                                    std::string* rescued) {
  if (++depth_ > JsonScanner::kMaxDepth) {
    --depth_;
    return JsonOutcome::kSyntax;
  }
  scanner_.Open();
  node.hint = 0;
  const std::uint64_t generation = ++node.generation;
  std::size_t seen = 0;
  bool partial = false;
  bool first = true;
  for (;;) {
    std::string_view name;
    const int got = scanner_.NextName(first, &name);
    if (got == 0) {
      break;
    }
    if (got < 0) {
      --depth_;
      return JsonOutcome::kSyntax;
    }
    first = false;
    const int index = node.Find(name, options_.case_sensitive);
    if (index < 0) {
      if (rescued == nullptr && unknown_ == nullptr) {
        if (!scanner_.SkipValue()) {
          --depth_;
          return JsonOutcome::kSyntax;
        }
        continue;
      }
      const std::string kept(name);
      if (!scanner_.SkipBlank()) {
        --depth_;
        return JsonOutcome::kSyntax;
      }
      const char* begin = scanner_.position();
      if (!scanner_.SkipValue()) {
        --depth_;
        return JsonOutcome::kSyntax;
      }
      if (unknown_ != nullptr) {
        std::string path;
        for (const std::string& part : path_) {
          path += part + ".";
        }
        unknown_->OnUnknown(path + kept, node.HasOtherCase(kept));
      }
      if (rescued != nullptr) {
        Rescue(rescued, kept, std::string_view(begin, static_cast<std::size_t>(scanner_.position() - begin)));
      }
      continue;
    }
    JsonNode::Field& field = node.fields[static_cast<std::size_t>(index)];
    duckdb::Vector* column = columns[static_cast<std::size_t>(index)];
    if (column == nullptr) {
      if (!scanner_.SkipValue()) {
        --depth_;
        return JsonOutcome::kSyntax;
      }
      continue;
    }
    if (!scanner_.SkipBlank()) {
      --depth_;
      return JsonOutcome::kSyntax;
    }
    const char* begin = scanner_.position();
    JsonOutcome outcome;
    if (field.node->kind == TypeKind::kStruct && (rescued != nullptr || unknown_ != nullptr)) {
      path_.push_back(field.name);
      std::string inner;
      outcome = Value(*field.node, *column, row, rescued != nullptr ? &inner : nullptr);
      path_.pop_back();
      if (!inner.empty() && outcome == JsonOutcome::kOk) {
        if (!rescued->empty()) {
          rescued->push_back(',');
        }
        AppendJsonString(*rescued, field.name);
        *rescued += ":{" + inner + "}";
      }
    } else {
      outcome = Value(*field.node, *column, row, rescued);
    }
    switch (outcome) {
      case JsonOutcome::kOk:
        break;
      case JsonOutcome::kPartial:
        partial = true;
        break;
      case JsonOutcome::kMismatch:
        if (rescued != nullptr) {
          Rescue(rescued, field.name, std::string_view(begin, static_cast<std::size_t>(scanner_.position() - begin)));
        } else {
          partial = true;
        }
        break;
      case JsonOutcome::kExtra:
        Rescue(rescued, field.name, std::string_view(begin, static_cast<std::size_t>(scanner_.position() - begin)));
        break;
      case JsonOutcome::kSyntax:
        --depth_;
        return JsonOutcome::kSyntax;
    }
    if (field.seen != generation) {
      field.seen = generation;
      ++seen;
    }
  }
  --depth_;
  if (seen < node.fields.size()) {
    for (std::size_t i = 0; i < node.fields.size(); ++i) {
      if (node.fields[i].seen != generation && columns[i] != nullptr) {
        SetNull(*columns[i], row);
      }
    }
  }
  return partial ? JsonOutcome::kPartial : JsonOutcome::kOk;
}

JsonOutcome JsonValueParser::Mismatch(JsonToken token, duckdb::Vector& out, idx_t row) {
  SetNull(out, row);
  return scanner_.SkipRest(token) ? JsonOutcome::kMismatch : JsonOutcome::kSyntax;
}

JsonOutcome JsonValueParser::Value(JsonNode& node, duckdb::Vector& out, idx_t row, std::string* rescued) {
  if (node.kind == TypeKind::kVariant) {
    return Variant(out, row);
  }
  const JsonToken token = scanner_.Begin();
  if (token == JsonToken::kError) {
    return JsonOutcome::kSyntax;
  }
  if (token == JsonToken::kNull) {
    SetNull(out, row);
    return JsonOutcome::kOk;
  }
  switch (node.kind) {
    case TypeKind::kStruct: {
      if (token != JsonToken::kObject) {
        return Mismatch(token, out, row);
      }
      FlatVector::Validity(out).SetValid(row);
      auto& entries = duckdb::StructVector::GetEntries(out);
      std::vector<duckdb::Vector*> columns;
      columns.reserve(entries.size());
      for (auto& entry : entries) {
        columns.push_back(entry.get());
      }
      columns.resize(node.fields.size());
      return Object(node, columns, row, rescued);
    }
    case TypeKind::kArray:
      return token == JsonToken::kArray ? Array(node, out, row, rescued != nullptr) : Mismatch(token, out, row);
    case TypeKind::kMap:
      return token == JsonToken::kObject ? Map(node, out, row, rescued != nullptr) : Mismatch(token, out, row);
    default:
      return Scalar(node, token, out, row);
  }
}

JsonOutcome JsonValueParser::Variant(duckdb::Vector& out, idx_t row) {
  if (!scanner_.SkipBlank()) {
    return JsonOutcome::kSyntax;
  }
  const char* begin = scanner_.position();
  if (!scanner_.SkipValue()) {
    return JsonOutcome::kSyntax;
  }
  const auto bytes = VariantFromJson(std::string_view(begin, static_cast<std::size_t>(scanner_.position() - begin)));
  if (!bytes) {
    SetNull(out, row);
    return JsonOutcome::kMismatch;
  }
  auto& entries = duckdb::StructVector::GetEntries(out);
  SetText(*entries[0], row, bytes->value);
  SetText(*entries[1], row, bytes->metadata);
  return JsonOutcome::kOk;
}

JsonOutcome JsonValueParser::Array(JsonNode& node, duckdb::Vector& out, idx_t row, bool rescuing) {
  if (++depth_ > JsonScanner::kMaxDepth) {
    --depth_;
    return JsonOutcome::kSyntax;
  }
  scanner_.Open();
  const idx_t start = duckdb::ListVector::GetListSize(out);
  idx_t at = start;
  bool first = true;
  bool partial = false;
  bool mismatch = false;
  bool extra = false;
  std::string inner;
  path_.emplace_back("element");
  JsonOutcome result = JsonOutcome::kOk;
  for (;;) {
    const int got = scanner_.NextElement(first);
    if (got == 0) {
      break;
    }
    if (got < 0) {
      result = JsonOutcome::kSyntax;
      break;
    }
    first = false;
    if (mismatch) {
      if (!scanner_.SkipValue()) {
        result = JsonOutcome::kSyntax;
        break;
      }
      continue;
    }
    duckdb::ListVector::Reserve(out, at + 1);
    const JsonOutcome outcome =
        Value(*node.element, duckdb::ListVector::GetEntry(out), at, rescuing ? &inner : nullptr);
    if (outcome == JsonOutcome::kSyntax) {
      result = outcome;
      break;
    }
    partial = partial || outcome == JsonOutcome::kPartial;
    extra = extra || outcome == JsonOutcome::kExtra || !inner.empty();
    mismatch = outcome == JsonOutcome::kMismatch;
    ++at;
    duckdb::ListVector::SetListSize(out, at);
  }
  path_.pop_back();
  --depth_;
  if (result == JsonOutcome::kSyntax || mismatch) {
    duckdb::ListVector::SetListSize(out, start);
    SetNull(out, row);
    return result == JsonOutcome::kSyntax ? result : JsonOutcome::kMismatch;
  }
  FlatVector::GetData<duckdb::list_entry_t>(out)[row] = {start, at - start};
  FlatVector::Validity(out).SetValid(row);
  return extra ? JsonOutcome::kExtra : partial ? JsonOutcome::kPartial : JsonOutcome::kOk;
}

JsonOutcome JsonValueParser::Map(JsonNode& node, duckdb::Vector& out, idx_t row, bool rescuing) {
  if (++depth_ > JsonScanner::kMaxDepth) {
    --depth_;
    return JsonOutcome::kSyntax;
  }
  scanner_.Open();
  const idx_t start = duckdb::ListVector::GetListSize(out);
  idx_t at = start;
  bool first = true;
  bool partial = false;
  bool mismatch = false;
  bool extra = false;
  std::string inner;
  std::unordered_map<std::string, idx_t> places;
  path_.emplace_back("value");
  JsonOutcome result = JsonOutcome::kOk;
  for (;;) {
    std::string_view name;
    const int got = scanner_.NextName(first, &name);
    if (got == 0) {
      break;
    }
    if (got < 0) {
      result = JsonOutcome::kSyntax;
      break;
    }
    first = false;
    if (mismatch) {
      if (!scanner_.SkipValue()) {
        result = JsonOutcome::kSyntax;
        break;
      }
      continue;
    }
    // The last of several equal keys wins.
    const auto [place, is_new] = places.emplace(std::string(name), at);
    const idx_t target = place->second;
    if (is_new) {
      duckdb::ListVector::Reserve(out, at + 1);
      SetText(duckdb::MapVector::GetKeys(out), at, name);
      ++at;
      duckdb::ListVector::SetListSize(out, at);
    }
    const JsonOutcome outcome =
        Value(*node.element, duckdb::MapVector::GetValues(out), target, rescuing ? &inner : nullptr);
    if (outcome == JsonOutcome::kSyntax) {
      result = outcome;
      break;
    }
    partial = partial || outcome == JsonOutcome::kPartial;
    extra = extra || outcome == JsonOutcome::kExtra || !inner.empty();
    mismatch = outcome == JsonOutcome::kMismatch;
  }
  path_.pop_back();
  --depth_;
  if (result == JsonOutcome::kSyntax || mismatch) {
    duckdb::ListVector::SetListSize(out, start);
    SetNull(out, row);
    return result == JsonOutcome::kSyntax ? result : JsonOutcome::kMismatch;
  }
  FlatVector::GetData<duckdb::list_entry_t>(out)[row] = {start, at - start};
  FlatVector::Validity(out).SetValid(row);
  return extra ? JsonOutcome::kExtra : partial ? JsonOutcome::kPartial : JsonOutcome::kOk;
}

void JsonValueParser::PutText(JsonNode& node, duckdb::Vector& out, idx_t row, std::string_view text) {
  if (block_ == nullptr || text.size() <= duckdb::string_t::INLINE_LENGTH || scanner_.IsUnescaped(text)) {
    SetText(out, row, text);
    return;
  }
  if (node.held != hold_) {
    duckdb::StringVector::AddBuffer(out, duckdb::make_buffer<HeldText>(*block_));
    node.held = hold_;
  }
  Store(out, row, duckdb::string_t(text.data(), static_cast<std::uint32_t>(text.size())));
}

JsonOutcome JsonValueParser::Scalar(JsonNode& node, JsonToken token, duckdb::Vector& out, idx_t row) {
  if (options_.strings_hold_values && token == JsonToken::kString && !node.type.IsString()) {
    std::string_view text;
    if (!scanner_.String(&text)) {
      return JsonOutcome::kSyntax;
    }
    if (StoreCsvValue(csv_, node.type, text, out, row)) {
      return JsonOutcome::kOk;
    }
    SetNull(out, row);
    return JsonOutcome::kMismatch;
  }
  switch (node.kind) {
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar: {
      if (token == JsonToken::kString) {
        std::string_view text;
        if (!scanner_.String(&text)) {
          return JsonOutcome::kSyntax;
        }
        PutText(node, out, row, text);
        return JsonOutcome::kOk;
      }
      if (token == JsonToken::kInteger || token == JsonToken::kFraction) {
        if (options_.strings_rewritten && token == JsonToken::kFraction) {
          SetText(out, row, JavaDoubleToString(std::strtod(std::string(scanner_.number()).c_str(), nullptr)));
        } else {
          SetText(out, row, scanner_.number());
        }
        return JsonOutcome::kOk;
      }
      if (token == JsonToken::kTrue || token == JsonToken::kFalse) {
        SetText(out, row, token == JsonToken::kTrue ? "true" : "false");
        return JsonOutcome::kOk;
      }
      const char* begin = scanner_.position();
      if (!scanner_.SkipRest(token)) {
        return JsonOutcome::kSyntax;
      }
      const std::string_view raw(begin, static_cast<std::size_t>(scanner_.position() - begin));
      SetText(out, row, options_.strings_rewritten ? RewriteJson(raw) : std::string(raw));
      return JsonOutcome::kOk;
    }
    case TypeKind::kBoolean:
      if (token != JsonToken::kTrue && token != JsonToken::kFalse) {
        return Mismatch(token, out, row);
      }
      Store(out, row, token == JsonToken::kTrue);
      return JsonOutcome::kOk;
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong: {
      std::int64_t value = 0;
      if (token != JsonToken::kInteger || !ParseInteger(scanner_.number(), &value) || !Fits(node.kind, value)) {
        return Mismatch(token, out, row);
      }
      switch (node.kind) {
        case TypeKind::kByte:
          Store(out, row, static_cast<std::int8_t>(value));
          break;
        case TypeKind::kShort:
          Store(out, row, static_cast<std::int16_t>(value));
          break;
        case TypeKind::kInt:
          Store(out, row, static_cast<std::int32_t>(value));
          break;
        default:
          Store(out, row, value);
          break;
      }
      return JsonOutcome::kOk;
    }
    case TypeKind::kFloat:
    case TypeKind::kDouble: {
      double value = 0;
      std::string_view text;
      if (token == JsonToken::kString) {
        if (!scanner_.String(&text)) {
          return JsonOutcome::kSyntax;
        }
        const bool named = text == "NaN" || text == "+INF" || text == "+Infinity" || text == "Infinity" ||
                           text == "-INF" || text == "-Infinity";
        if (!options_.allow_non_numeric || !named || !ParseReal(text, &value)) {
          SetNull(out, row);
          return JsonOutcome::kMismatch;
        }
      } else if ((token != JsonToken::kInteger && token != JsonToken::kFraction) ||
                 !ParseReal(scanner_.number(), &value)) {
        return Mismatch(token, out, row);
      }
      if (token == JsonToken::kInteger && value == 0) {
        value = 0;  // a whole number has no -0
      }
      if (node.kind == TypeKind::kFloat) {
        Store(out, row, static_cast<float>(value));
      } else {
        Store(out, row, value);
      }
      return JsonOutcome::kOk;
    }
    case TypeKind::kDecimal: {
      std::string_view text;
      if (token == JsonToken::kString) {
        if (!scanner_.String(&text)) {
          return JsonOutcome::kSyntax;
        }
      } else if (token == JsonToken::kInteger || token == JsonToken::kFraction) {
        text = scanner_.number();
      } else {
        return Mismatch(token, out, row);
      }
      types::Int128 value = 0;
      if (!ParseDecimalText(text, node.precision, node.scale, &value)) {
        SetNull(out, row);
        return JsonOutcome::kMismatch;
      }
      SetDecimal(out, row, value, node.precision);
      return JsonOutcome::kOk;
    }
    case TypeKind::kBinary: {
      if (token != JsonToken::kString) {
        return Mismatch(token, out, row);
      }
      std::string_view text;
      if (!scanner_.String(&text)) {
        return JsonOutcome::kSyntax;
      }
      if (!DecodeBase64(text, &text_)) {
        SetNull(out, row);
        return JsonOutcome::kMismatch;
      }
      SetText(out, row, text_);
      return JsonOutcome::kOk;
    }
    case TypeKind::kDate: {
      std::string_view text;
      if (token == JsonToken::kInteger && options_.container == "avro") {  // JSON text has dates as strings only
        std::int64_t days = 0;
        if (!ParseInteger(scanner_.number(), &days) || !Fits(TypeKind::kInt, days)) {
          SetNull(out, row);
          return JsonOutcome::kMismatch;
        }
        Store(out, row, duckdb::date_t(static_cast<std::int32_t>(days)));
        return JsonOutcome::kOk;
      }
      if (token != JsonToken::kString) {
        return Mismatch(token, out, row);
      }
      if (!scanner_.String(&text)) {
        return JsonOutcome::kSyntax;
      }
      const auto days = options_.times.ReadDate(text, options_.parsing_fallback);
      if (!days) {
        SetNull(out, row);
        return JsonOutcome::kMismatch;
      }
      Store(out, row, duckdb::date_t(static_cast<std::int32_t>(*days)));
      return JsonOutcome::kOk;
    }
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz: {
      if (token == JsonToken::kInteger && node.kind == TypeKind::kTimestamp) {
        std::int64_t seconds = 0;
        std::int64_t micros = 0;
        if (!ParseInteger(scanner_.number(), &seconds) || __builtin_mul_overflow(seconds, 1000000, &micros)) {
          SetNull(out, row);
          return JsonOutcome::kMismatch;
        }
        Store(out, row, duckdb::timestamp_t(micros));
        return JsonOutcome::kOk;
      }
      if (token != JsonToken::kString) {
        return Mismatch(token, out, row);
      }
      std::string_view text;
      if (!scanner_.String(&text)) {
        return JsonOutcome::kSyntax;
      }
      const auto micros = node.kind == TypeKind::kTimestamp
                              ? options_.times.ReadTimestamp(text, options_.parsing_fallback)
                              : options_.times.ParseTimestampNtz(text);
      if (!micros) {
        SetNull(out, row);
        return JsonOutcome::kMismatch;
      }
      Store(out, row, duckdb::timestamp_t(*micros));
      return JsonOutcome::kOk;
    }
    case TypeKind::kVoid:
      SetNull(out, row);
      return scanner_.SkipRest(token) ? JsonOutcome::kOk : JsonOutcome::kSyntax;
    default:
      return Mismatch(token, out, row);
  }
}

}  // namespace fleuve::engine
