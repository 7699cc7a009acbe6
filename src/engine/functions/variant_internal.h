#pragma once

/// \file
/// Spark's VARIANT encoding: reading its bytes, and writing them from JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/functions/cast_internal.h"
#include "types/value.h"

namespace fleuve::engine {

enum class VariantKind {
  kNull,
  kBoolean,
  kLong,  ///< every integer
  kDouble,
  kFloat,
  kDecimal,
  kDate,
  kTimestamp,
  kTimestampNtz,
  kString,
  kBinary,
  kObject,
  kArray,
};

/// What a schema says of a value: a Spark type (void for null), an object or array of such, or variant.
struct VariantShape {
  struct Field;
  enum class Kind { kPlain, kObject, kArray, kVariant } kind = Kind::kPlain;
  types::DataType type;
  std::vector<Field> fields;
  std::vector<VariantShape> element;
};
struct VariantShape::Field {
  std::string name;
  VariantShape shape;
};
VariantShape MergeShapes(const VariantShape& a, const VariantShape& b);
/// `OBJECT<a: BIGINT>`.
std::string ShapeText(const VariantShape& shape);

/// One value inside the bytes of a variant. Cheap to copy; the bytes must outlive it. Broken bytes raise
/// MALFORMED_VARIANT where they are met.
class VariantView {
 public:
  VariantView(std::string_view value, std::string_view metadata) : value_(value), metadata_(metadata) {}

  VariantKind kind() const;
  bool boolean() const;
  std::int64_t integer() const;  ///< also days and microseconds
  double real() const;
  /// Unscaled value and scale, without trailing zeros behind the point.
  std::pair<types::Int128, int> decimal() const;
  std::string_view text() const;

  /// Fields of an object (sorted by name) or elements of an array.
  std::size_t size() const;
  std::string_view name(std::size_t i) const;
  VariantView child(std::size_t i) const;
  std::optional<VariantView> Field(std::string_view name) const;

  /// The bytes of this value alone; its metadata are those of the whole.
  std::string_view bytes() const;
  std::string_view metadata() const { return metadata_; }

  /// As JSON. \param zone  for timestamps
  void AppendJson(std::string& out, const types::TimeZone& zone) const;
  /// `OBJECT<a: BIGINT>`.
  std::string Schema() const;
  VariantShape ShapeOfValue() const;

 private:
  struct Layout;
  Layout Container() const;
  std::uint64_t Read(std::size_t at, std::size_t bytes) const;
  std::string_view Dictionary(std::uint64_t id) const;

  std::string_view value_;
  std::string_view metadata_;
};

/// The encoding of a JSON text; nullopt where it is no JSON.
struct VariantBytes {
  std::string value;
  std::string metadata;
};
std::optional<VariantBytes> VariantFromJson(std::string_view json);
/// A value of a Spark type as a variant; structs and maps become objects.
VariantBytes VariantFromValue(const types::DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format,
                              duckdb::idx_t row);
/// Casts into variants.
Caster MakeToVariantCaster(const types::DataType& from);

/// Follows `$.a['b'][0]`; nullopt where nothing is there. Raises INVALID_VARIANT_GET_PATH for what is no path.
std::optional<VariantView> FollowVariantPath(const VariantView& root, std::string_view path);

/// The variant as a value of `type`; nullopt where it does not fit. A variant null gives a NULL value.
std::optional<duckdb::Value> VariantToValue(const VariantView& view, const types::DataType& type,
                                            const types::TimeZone& zone);
/// Casts variants: INVALID_VARIANT_CAST, or NULL in mode kTry.
Result<Caster> MakeVariantCaster(const types::DataType& to, plan::CastMode mode,
                                 std::shared_ptr<const types::TimeZone> zone,
                                 std::shared_ptr<const QueryContext> context);

}  // namespace fleuve::engine
