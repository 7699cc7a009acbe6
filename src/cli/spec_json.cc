#include <yaml-cpp/yaml.h>

#include <charconv>
#include <cmath>

#include "base/bytes.h"
#include "base/json.h"
#include "cli/pipelines_program.h"

namespace fleuve::cli {

namespace {

bool IsOneOf(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text == word) {
      return true;
    }
  }
  return false;
}

/// A plain scalar as YAML 1.1 takes it: yes and on are true, 0x1f and 017 are numbers.
Json Plain(const std::string& text) {
  if (text.empty() || IsOneOf(text, {"~", "null", "Null", "NULL"})) {
    return Json(nullptr);
  }
  if (IsOneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"})) {
    return Json(true);
  }
  if (IsOneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"})) {
    return Json(false);
  }
  std::string digits;
  for (const char c : text) {
    if (c != '_') {
      digits += c;
    }
  }
  const bool negative = digits[0] == '-';
  std::string_view body = digits;
  if (negative || digits[0] == '+') {
    body.remove_prefix(1);
  }
  int base = 10;
  if (body.starts_with("0x")) {
    base = 16;
    body.remove_prefix(2);
  } else if (body.starts_with("0b")) {
    base = 2;
    body.remove_prefix(2);
  } else if (body.size() > 1 && body[0] == '0' && body.find_first_not_of("01234567") == std::string_view::npos) {
    base = 8;
  }
  std::int64_t whole = 0;
  const auto [end, code] = std::from_chars(body.data(), body.data() + body.size(), whole, base);
  if (code == std::errc() && end == body.data() + body.size() && !body.empty() && body[0] != '-') {
    return Json(negative ? -whole : whole);
  }
  // Floats have a point: 1e3 is a string to YAML 1.1.
  if (body.find('.') != std::string_view::npos && body.find_first_of("0123456789") != std::string_view::npos) {
    double real = 0;
    const auto [stop, failed] = std::from_chars(body.data(), body.data() + body.size(), real);
    if (failed == std::errc() && stop == body.data() + body.size()) {
      return Json(negative ? -real : real);
    }
  }
  return Json(text);
}

Result<Json> Convert(const YAML::Node& node, int depth) {
  if (depth > 100) {
    return Error(ErrorKind::kInvalidArgument, "", "the YAML document nests deeper than 100 levels");
  }
  switch (node.Type()) {
    case YAML::NodeType::Scalar:
      return node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str" ? Json(node.Scalar()) : Plain(node.Scalar());
    case YAML::NodeType::Sequence: {
      Json::Array items;
      for (const auto& item : node) {
        FLEUVE_ASSIGN(Json value, Convert(item, depth + 1));
        items.push_back(std::move(value));
      }
      return Json(std::move(items));
    }
    case YAML::NodeType::Map: {
      Json::Object fields;
      for (const auto& entry : node) {
        if (!entry.first.IsScalar()) {
          return Error(ErrorKind::kInvalidArgument, "", "a key of the YAML document is no scalar");
        }
        FLEUVE_ASSIGN(Json value, Convert(entry.second, depth + 1));
        fields.emplace_back(entry.first.Scalar(), std::move(value));
      }
      return Json(std::move(fields));
    }
    default:
      return Json(nullptr);
  }
}

}  // namespace

Result<std::string> YamlToJson(const std::string& yaml) {
  try {
    FLEUVE_ASSIGN(const Json json, Convert(YAML::Load(yaml), 0));
    return json.Dump();
  } catch (const YAML::Exception& error) {
    return Error(ErrorKind::kInvalidArgument, "", std::string("not valid YAML: ") + error.what());
  }
}

}  // namespace fleuve::cli
