#pragma once

/// \file
/// A JSON document as a value: for logs, options, schemas and progress. Keys keep their order. Not for data rows.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fleuve {

/// One JSON value. Integers that fit are kept as int64; a number's own text is kept otherwise.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  Json() = default;
  Json(std::nullptr_t) {}                                        // NOLINT: implicit on purpose
  Json(bool value) : value_(value) {}                            // NOLINT
  Json(std::int64_t value) : value_(value) {}                    // NOLINT
  Json(int value) : value_(static_cast<std::int64_t>(value)) {}  // NOLINT
  Json(double value) : value_(value) {}                          // NOLINT
  Json(std::string value) : value_(std::move(value)) {}          // NOLINT
  Json(std::string_view value) : value_(std::string(value)) {}   // NOLINT
  Json(const char* value) : value_(std::string(value)) {}        // NOLINT
  Json(Array value) : value_(std::move(value)) {}                // NOLINT
  Json(Object value) : value_(std::move(value)) {}               // NOLINT

  /// Parses one document; kCorrupt with the byte position otherwise. Depth at most 1,000. Duplicate keys: last wins.
  static Result<Json> Parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_int() const { return std::holds_alternative<std::int64_t>(value_); }
  bool is_number() const { return is_int() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  /// The value, or the fallback where the type is another.
  bool AsBool(bool fallback = false) const;
  std::int64_t AsInt(std::int64_t fallback = 0) const;
  double AsDouble(double fallback = 0) const;
  /// The text of a string; empty for other types.
  const std::string& AsString() const;
  /// Elements; empty for other types.
  const Array& items() const;
  const Object& fields() const;
  Array& mutable_items();
  Object& mutable_fields();

  /// The member `key` of an object, or null where there is none.
  const Json* Find(std::string_view key) const;
  /// The member `key`, or a JSON null.
  const Json& operator[](std::string_view key) const;
  /// Sets or replaces a member; makes this an object if it is null.
  Json& Set(std::string key, Json value);
  void Append(Json value);

  /// Compact text: no blanks, `/` unescaped, non-ASCII as is: as Jackson prints it.
  std::string Dump() const;
  /// Indented by two blanks with `"key" : value`, as json4s and Jackson print it prettily.
  std::string DumpPretty() const;

  bool operator==(const Json& other) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

/// Appends `text` with quotes and escapes to `out`.
void AppendJsonString(std::string& out, std::string_view text);
/// A double as Java prints it: 1.0, 1.0E10, NaN.
std::string JavaDoubleToString(double value);
std::string JavaFloatToString(float value);

}  // namespace fleuve
