#include "base/json.h"

#include <simdjson.h>

#include <charconv>
#include <cmath>

namespace fleuve {
namespace {

constexpr int kDepthMax = 1000;

Json FromDom(const simdjson::dom::element& element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY: {
      Json::Array items;
      for (const auto child : simdjson::dom::array(element)) {
        items.push_back(FromDom(child));
      }
      return items;
    }
    case element_type::OBJECT: {
      Json object{Json::Object()};
      for (const auto [key, child] : simdjson::dom::object(element)) {
        object.Set(std::string(key), FromDom(child));
      }
      return object;
    }
    case element_type::INT64:
      return Json(std::int64_t(element));
    case element_type::UINT64:
      return Json(static_cast<double>(std::uint64_t(element)));
    case element_type::DOUBLE:
      return Json(double(element));
    case element_type::STRING:
      return Json(std::string_view(element));
    case element_type::BOOL:
      return Json(bool(element));
    case element_type::NULL_VALUE:
      break;
  }
  return Json();
}

void Print(std::string& out, const Json& value) {
  if (value.is_null()) {
    out += "null";
  } else if (value.is_bool()) {
    out += value.AsBool() ? "true" : "false";
  } else if (value.is_int()) {
    out += std::to_string(value.AsInt());
  } else if (value.is_number()) {
    out += JavaDoubleToString(value.AsDouble());
  } else if (value.is_string()) {
    AppendJsonString(out, value.AsString());
  } else if (value.is_array()) {
    out += '[';
    const char* separator = "";
    for (const auto& item : value.items()) {
      out += separator;
      Print(out, item);
      separator = ",";
    }
    out += ']';
  } else {
    out += '{';
    const char* separator = "";
    for (const auto& [key, item] : value.fields()) {
      out += separator;
      AppendJsonString(out, key);
      out += ':';
      Print(out, item);
      separator = ",";
    }
    out += '}';
  }
}

void PrintPretty(std::string& out, const Json& value, int indent) {
  const auto line = [&](int depth) {
    out += '\n';
    out.append(static_cast<std::size_t>(depth) * 2, ' ');
  };
  if (value.is_array()) {
    if (value.items().empty()) {
      out += "[ ]";
      return;
    }
    out += "[ ";
    const char* separator = "";
    for (const auto& item : value.items()) {
      out += separator;
      PrintPretty(out, item, indent);
      separator = ", ";
    }
    out += " ]";
  } else if (value.is_object()) {
    if (value.fields().empty()) {
      out += "{ }";
      return;
    }
    out += '{';
    const char* separator = "";
    for (const auto& [key, item] : value.fields()) {
      out += separator;
      line(indent + 1);
      AppendJsonString(out, key);
      out += " : ";
      PrintPretty(out, item, indent + 1);
      separator = ",";
    }
    line(indent);
    out += '}';
  } else {
    Print(out, value);
  }
}

/// Lays the shortest digits of a double or float out as Java's toString does.
template <typename T>
std::string JavaFloating(T value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value > 0 ? "Infinity" : "-Infinity";
  }
  if (value == 0) {
    return std::signbit(value) ? "-0.0" : "0.0";
  }
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
  std::string out;
  // Java prints at least two digits, and takes the two that are closest: 4.9E-324 where one digit would do.
  char two[64];
  if (text.find('.') == std::string_view::npos) {
    const auto two_end = std::to_chars(two, two + sizeof(two), value, std::chars_format::scientific, 1).ptr;
    T back = 0;
    if (std::from_chars(two, two_end, back).ec == std::errc() && back == value) {
      text = std::string_view(two, static_cast<std::size_t>(two_end - two));
    }
  }
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const auto e = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(e + 1)).c_str());
  std::string digits(text.substr(0, 1));
  if (e > 2) {
    digits += text.substr(2, e - 2);
  }
  if (digits.size() == 2 && digits[1] == '0') {
    digits.pop_back();
  }
  if (exponent >= -3 && exponent < 7) {
    if (exponent < 0) {
      out += "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
    } else {
      const auto whole = static_cast<std::size_t>(exponent) + 1;
      if (digits.size() <= whole) {
        out += digits + std::string(whole - digits.size(), '0') + ".0";
      } else {
        out += digits.substr(0, whole) + "." + digits.substr(whole);
      }
    }
  } else {
    out += digits.substr(0, 1) + "." + (digits.size() > 1 ? digits.substr(1) : "0") + "E" + std::to_string(exponent);
  }
  return out;
}

}  // namespace

Result<Json> Json::Parse(std::string_view text) {
  thread_local simdjson::dom::parser parser;
  if (parser.max_depth() != kDepthMax) {
    if (parser.allocate(1024, kDepthMax) != simdjson::SUCCESS) {
      return Error::Internal("the JSON parser could not be allocated");
    }
  }
  simdjson::dom::element root;
  const auto error = parser.parse(text.data(), text.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return Error(
        ErrorKind::kCorrupt, "",
        "malformed JSON (" + std::string(simdjson::error_message(error)) + "): " + std::string(text.substr(0, 200)));
  }
  return FromDom(root);
}

bool Json::AsBool(bool fallback) const {
  const auto* value = std::get_if<bool>(&value_);
  return value == nullptr ? fallback : *value;
}

std::int64_t Json::AsInt(std::int64_t fallback) const {
  if (const auto* value = std::get_if<std::int64_t>(&value_)) {
    return *value;
  }
  if (const auto* value = std::get_if<double>(&value_)) {
    return static_cast<std::int64_t>(*value);
  }
  return fallback;
}

double Json::AsDouble(double fallback) const {
  if (const auto* value = std::get_if<double>(&value_)) {
    return *value;
  }
  if (const auto* value = std::get_if<std::int64_t>(&value_)) {
    return static_cast<double>(*value);
  }
  return fallback;
}

const std::string& Json::AsString() const {
  static const std::string empty;
  const auto* value = std::get_if<std::string>(&value_);
  return value == nullptr ? empty : *value;
}

const Json::Array& Json::items() const {
  static const Array empty;
  const auto* value = std::get_if<Array>(&value_);
  return value == nullptr ? empty : *value;
}

const Json::Object& Json::fields() const {
  static const Object empty;
  const auto* value = std::get_if<Object>(&value_);
  return value == nullptr ? empty : *value;
}

Json::Array& Json::mutable_items() {
  if (!is_array()) {
    value_ = Array();
  }
  return std::get<Array>(value_);
}

Json::Object& Json::mutable_fields() {
  if (!is_object()) {
    value_ = Object();
  }
  return std::get<Object>(value_);
}

const Json* Json::Find(std::string_view key) const {
  for (const auto& [name, value] : fields()) {
    if (name == key) {
      return &value;
    }
  }
  return nullptr;
}

const Json& Json::operator[](std::string_view key) const {
  static const Json null;
  const Json* found = Find(key);
  return found == nullptr ? null : *found;
}

Json& Json::Set(std::string key, Json value) {
  auto& members = mutable_fields();
  for (auto& [name, old] : members) {
    if (name == key) {
      old = std::move(value);
      return *this;
    }
  }
  members.emplace_back(std::move(key), std::move(value));
  return *this;
}

void Json::Append(Json value) { mutable_items().push_back(std::move(value)); }

std::string Json::Dump() const {
  std::string out;
  Print(out, *this);
  return out;
}

std::string Json::DumpPretty() const {
  std::string out;
  PrintPretty(out, *this, 0);
  return out;
}

void AppendJsonString(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          char escape[8];
          std::snprintf(escape, sizeof(escape), "\\u%04X", static_cast<unsigned>(c));
          out += escape;
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

std::string JavaDoubleToString(double value) { return JavaFloating(value); }
std::string JavaFloatToString(float value) { return JavaFloating(value); }

}  // namespace fleuve
