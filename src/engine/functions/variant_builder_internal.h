#pragma once

/// \file
/// The bytes of Spark's VARIANT encoding, from the inside out: scalars, arrays and objects are appended to strings, and
/// the names of all objects of one variant share the dictionary that `Metadata` gives at the end.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/functions/variant_internal.h"
#include "types/value.h"

namespace fleuve::engine {

// Basic types (two lowest bits of a value's first byte) and primitive types (the six above them).
enum Basic { kPrimitive = 0, kShortString = 1, kObjectBasic = 2, kArrayBasic = 3 };
enum Primitive {
  kPrimitiveNull = 0,
  kTrue = 1,
  kFalse = 2,
  kInt8 = 3,
  kInt16 = 4,
  kInt32 = 5,
  kInt64 = 6,
  kPrimitiveDouble = 7,
  kDecimal4 = 8,
  kDecimal8 = 9,
  kDecimal16 = 10,
  kPrimitiveDate = 11,
  kPrimitiveTimestamp = 12,
  kPrimitiveTimestampNtz = 13,
  kPrimitiveFloat = 14,
  kPrimitiveBinary = 15,
  kLongString = 16,
};

/// At least 1.
int DecimalDigits(types::Int128 value);

class VariantBuilder {
 public:
  struct Member {
    std::string name;
    std::uint64_t id;
    std::string value;
  };

  static void Put(std::string& out, std::uint64_t value, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) {
      out.push_back(static_cast<char>(value >> (8 * i)));
    }
  }
  static char Header(int primitive) { return static_cast<char>(primitive << 2); }

  /// The number of a name in the dictionary.
  std::uint64_t IdOf(const std::string& name);

  static void AppendNull(std::string& out) { out.push_back(Header(kPrimitiveNull)); }
  static void AppendBoolean(bool value, std::string& out) { out.push_back(Header(value ? kTrue : kFalse)); }
  static void AppendText(std::string_view text, std::string& out);
  static void AppendBytes(std::string_view bytes, std::string& out);
  /// In the smallest size that holds it.
  static void AppendWhole(std::int64_t value, std::string& out);
  /// At most 38 digits.
  static void AppendDecimal(types::Int128 value, int scale, std::string& out);
  static void AppendReal(double value, std::string& out);
  static void AppendFloat(float value, std::string& out);
  /// A primitive of fixed size: dates and timestamps.
  static void AppendFixed(int primitive, std::int64_t value, std::size_t bytes, std::string& out) {
    out.push_back(Header(primitive));
    Put(out, static_cast<std::uint64_t>(value), bytes);
  }
  /// Sorts the members by name; a name that comes twice is an error.
  static void AppendMembers(std::vector<Member> members, std::string& out);
  static void AppendItems(const std::vector<std::string>& items, std::string& out);
  /// A value of another variant, with the names of its objects in this dictionary.
  void AppendView(const VariantView& view, std::string& out);

  /// The dictionary of all names seen.
  std::string Metadata() const;

 private:
  static std::size_t SizeFor(std::uint64_t most) {
    return most <= 0xFF ? 1 : most <= 0xFFFF ? 2 : most <= 0xFFFFFF ? 3 : 4;
  }

  std::vector<std::string> names_;
  std::unordered_map<std::string, std::uint64_t> ids_;
};

}  // namespace fleuve::engine
