#pragma once

/// \file
/// Spark's data types and schemas as values, with their text forms.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace fleuve::types {

enum class TypeKind {
  kVoid,
  kBoolean,
  kByte,
  kShort,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kDecimal,
  kString,
  kChar,
  kVarchar,
  kBinary,
  kDate,
  kTime,          ///< known, so that it can be refused by name
  kTimestamp,     ///< an instant: microseconds since the epoch, UTC
  kTimestampNtz,  ///< a wall-clock time: microseconds since 1970-01-01 00:00:00
  kDayTimeInterval,
  kYearMonthInterval,
  kCalendarInterval,
  kArray,
  kMap,
  kStruct,
  kVariant,
};

class DataType;
struct StructField;

/// A type. Immutable, cheap to copy; equal when every part is equal (names, nullability and metadata included).
class DataType {
 public:
  DataType() = default;  ///< void

  static DataType Of(TypeKind kind);  ///< any kind without parameters
  static DataType Void() { return DataType(); }
  static DataType Boolean() { return Of(TypeKind::kBoolean); }
  static DataType Byte() { return Of(TypeKind::kByte); }
  static DataType Short() { return Of(TypeKind::kShort); }
  static DataType Int() { return Of(TypeKind::kInt); }
  static DataType Long() { return Of(TypeKind::kLong); }
  static DataType Float() { return Of(TypeKind::kFloat); }
  static DataType Double() { return Of(TypeKind::kDouble); }
  static DataType String() { return Of(TypeKind::kString); }
  /// A string with a collation such as UNICODE_CI; "UTF8_BINARY" gives the plain string.
  static DataType String(std::string collation);
  static DataType Binary() { return Of(TypeKind::kBinary); }
  static DataType Date() { return Of(TypeKind::kDate); }
  static DataType Timestamp() { return Of(TypeKind::kTimestamp); }
  static DataType TimestampNtz() { return Of(TypeKind::kTimestampNtz); }
  static DataType Variant() { return Of(TypeKind::kVariant); }
  /// \param precision 1..38, \param scale 0..precision (or negative as Spark allows in config only)
  static DataType Decimal(int precision, int scale);
  static DataType Char(int length);
  static DataType Varchar(int length);
  /// Fields 0 day, 1 hour, 2 minute, 3 second; start <= end.
  static DataType DayTimeInterval(int start_field = 0, int end_field = 3);
  /// Fields 0 year, 1 month.
  static DataType YearMonthInterval(int start_field = 0, int end_field = 1);
  static DataType Array(DataType element, bool contains_null = true);
  static DataType Map(DataType key, DataType value, bool value_contains_null = true);
  static DataType Struct(std::vector<StructField> fields);

  TypeKind kind() const { return rep_ ? rep_->kind : TypeKind::kVoid; }
  bool Is(TypeKind kind) const { return this->kind() == kind; }
  /// Decimal precision, char/varchar length, interval start field.
  int precision() const { return rep_ ? rep_->a : 0; }
  /// Decimal scale, interval end field.
  int scale() const { return rep_ ? rep_->b : 0; }
  int length() const { return precision(); }
  const std::string& collation() const;
  const DataType& element() const;                           ///< of an array
  const DataType& key() const;                               ///< of a map
  const DataType& value() const;                             ///< of a map
  bool contains_null() const { return rep_ && rep_->flag; }  ///< of an array's elements or a map's values
  const std::vector<StructField>& fields() const;            ///< of a struct; empty for other kinds

  bool IsIntegral() const;    ///< byte, short, int, long
  bool IsNumeric() const;     ///< integral, float, double, decimal
  bool IsFractional() const;  ///< float, double, decimal
  bool IsString() const;      ///< string, char, varchar
  bool IsNested() const;      ///< array, map, struct
  bool IsDateTime() const;    ///< date, timestamp, timestamp_ntz

  /// Equal but for field names' case? No: fully equal.
  bool operator==(const DataType& other) const;
  /// Equal when nullability and metadata of every part are left out; names compare exactly.
  bool EqualsIgnoringNullability(const DataType& other) const;
  /// Everything nullable, recursively.
  DataType AsNullable() const;

  /// `struct<a:int,b:array<string>>`: Spark's simpleString (long structs are not cut).
  std::string SimpleString() const;
  /// `INT`, `STRUCT<a: INT, b: STRING NOT NULL>`: Spark's sql form.
  std::string Sql() const;
  /// `int`, `struct<...>`: catalogString.
  std::string CatalogString() const { return SimpleString(); }
  /// The name in Spark's JSON: `integer`, `decimal(10,2)`, or an object.
  Json ToJson() const;
  /// As printed by printSchema's lines: `integer`, `decimal(10,2)`.
  std::string TypeName() const;
  static Result<DataType> FromJson(const Json& json);
  /// Parses a DDL type (`array<int>`, `struct<a: int not null comment 'x'>`) or a column list
  /// (`a INT, b STRING`: gives a struct). PARSE_SYNTAX_ERROR or UNSUPPORTED_DATATYPE otherwise.
  static Result<DataType> FromDdl(std::string_view text);

 private:
  struct Rep {
    TypeKind kind = TypeKind::kVoid;
    int a = 0;
    int b = 0;
    bool flag = true;
    std::string text;
    std::vector<DataType> children;
    std::vector<StructField> fields;
  };
  explicit DataType(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  std::shared_ptr<const Rep> rep_;
};

/// One column of a schema or one field of a struct.
struct StructField {
  std::string name;
  DataType type;
  bool nullable = true;
  /// A JSON object or null (no metadata).
  Json metadata;

  bool operator==(const StructField& other) const = default;
};

/// A schema is a struct type.
using Schema = DataType;

/// `root\n |-- a: integer (nullable = true)\n ...` with a line break at the end: Spark's printSchema.
/// \param level  0 = everything.
std::string TreeString(const Schema& schema, int level = 0);
/// `a INT, b STRING NOT NULL COMMENT 'x'`: toDDL.
std::string ToDdl(const Schema& schema);
/// Index of the field `name`, ignoring ASCII case unless `case_sensitive`; nullopt where there is none.
std::optional<std::size_t> FieldIndex(const Schema& schema, std::string_view name, bool case_sensitive = false);
/// Quotes with backticks where Spark does (not an identifier, or a keyword-like name is left alone).
std::string QuoteIfNeeded(std::string_view name);
std::string QuoteIdentifier(std::string_view name);

}  // namespace fleuve::types
