#pragma once

/// \file
/// JSON values into typed vectors, and what Spark makes of values that do not fit.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/duckdb_pch.h"
#include "engine/files/json_scanner_internal.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::engine {

/// A type compiled for parsing. Belongs to one parser (it remembers where the last field was found).
struct JsonNode {
  struct Field {
    std::string name;
    std::unique_ptr<JsonNode> node;
    std::uint64_t seen = 0;
  };
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  types::TypeKind kind = types::TypeKind::kVoid;
  types::DataType type;
  int precision = 0;
  int scale = 0;
  std::vector<Field> fields;
  std::unique_ptr<JsonNode> element;  ///< of an array; the value of a map
  std::unique_ptr<JsonNode> key;
  std::size_t hint = 0;
  std::uint64_t generation = 0;
  std::uint64_t held = 0;  ///< the hold of its parser that its vector has

  /// Index of the field, or -1.
  int Find(std::string_view name, bool case_sensitive);
  /// True where a field has this name in another letter case.
  bool HasOtherCase(std::string_view name) const;

 private:
  friend std::unique_ptr<JsonNode> CompileJsonNode(const types::DataType& type);
  std::unordered_map<std::string, int, Hash, std::equal_to<>> exact_;
  std::unordered_map<std::string, int, Hash, std::equal_to<>> folded_;
};

/// Raises kUnsupported for types that JSON readers do not read (variant, intervals).
std::unique_ptr<JsonNode> CompileJsonNode(const types::DataType& type);

enum class JsonOutcome : std::uint8_t {
  kOk,
  kPartial,   ///< stored, but something inside did not fit: the record is malformed
  kMismatch,  ///< the value does not fit; consumed, NULL stored
  kExtra,     ///< stored, and something inside found no place: the whole value is rescued too
  kSyntax,    ///< the text is no JSON: the record is lost
};

/// Hears of fields that the schema lacks.
class JsonUnknownFields {
 public:
  virtual ~JsonUnknownFields() = default;
  /// \param other_case  a field of the schema differs from it in letter case only. May raise.
  virtual void OnUnknown(const std::string& path, bool other_case) = 0;
};

/// Threads: one at a time.
class JsonValueParser {
 public:
  JsonValueParser(const JsonOptions& options, JsonUnknownFields* unknown)
      : scanner_(options), options_(options), unknown_(unknown) {
    csv_.times = options.times;
  }

  JsonScanner& scanner() { return scanner_; }

  /// From here on texts without escapes are not copied: the vectors that get them hold the block in which the scanned
  /// text lies. To be called anew for other vectors and for another block. Null: texts are copied.
  void HoldTexts(const std::shared_ptr<char[]>* block) {
    block_ = block;
    ++hold_;
  }

  /// Parses the object that begins at the scanner's place into row `row` of the columns (null: only its grammar is
  /// checked). Fields that are missing become NULL.
  /// \param rescued  null, or collects `"name":value` members that found no place.
  JsonOutcome Object(JsonNode& node, const std::vector<duckdb::Vector*>& columns, duckdb::idx_t row,
                     std::string* rescued);
  /// Any value.
  JsonOutcome Value(JsonNode& node, duckdb::Vector& out, duckdb::idx_t row, std::string* rescued);

 private:
  JsonOutcome Variant(duckdb::Vector& out, duckdb::idx_t row);
  JsonOutcome Array(JsonNode& node, duckdb::Vector& out, duckdb::idx_t row, bool rescuing);
  JsonOutcome Map(JsonNode& node, duckdb::Vector& out, duckdb::idx_t row, bool rescuing);
  JsonOutcome Scalar(JsonNode& node, JsonToken token, duckdb::Vector& out, duckdb::idx_t row);
  void PutText(JsonNode& node, duckdb::Vector& out, duckdb::idx_t row, std::string_view text);
  JsonOutcome Mismatch(JsonToken token, duckdb::Vector& out, duckdb::idx_t row);
  void Rescue(std::string* rescued, std::string_view name, std::string_view raw);

  JsonScanner scanner_;
  const JsonOptions& options_;
  /// How strings are read as values where they hold any type.
  CsvOptions csv_;
  JsonUnknownFields* unknown_;
  std::vector<std::string> path_;
  int depth_ = 0;
  std::string text_;
  const std::shared_ptr<char[]>* block_ = nullptr;
  std::uint64_t hold_ = 0;
};

/// Decimal text (`[-+]digits[.digits][e±n]`) as an unscaled value of scale `scale`, rounded half up; false where it is
/// no number or does not fit into `precision` digits.
bool ParseDecimalText(std::string_view text, int precision, int scale, types::Int128* unscaled);
/// Stores an unscaled decimal in a vector of its carrier.
void SetDecimal(duckdb::Vector& out, duckdb::idx_t row, types::Int128 unscaled, int precision);

}  // namespace fleuve::engine
