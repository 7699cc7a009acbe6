#pragma once

/// \file
/// Avro schemas as values: parsed from their JSON, or made of Spark types.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "types/data_type.h"

namespace fleuve::avro {

enum class Kind {
  kNull,
  kBoolean,
  kInt,
  kLong,
  kFloat,
  kDouble,
  kBytes,
  kString,
  kRecord,
  kEnum,
  kArray,
  kMap,
  kFixed,
  kUnion,
};

/// Logical types that Spark knows. One that does not fit its type (a decimal of precision 0) counts as none, as Avro
/// says.
enum class Logical {
  kNone,
  kDate,
  kDecimal,        ///< of bytes and fixed: two's complement, big endian
  kCustomDecimal,  ///< of long: `custom-decimal`
  kTimestampMillis,
  kTimestampMicros,
  kLocalTimestampMillis,
  kLocalTimestampMicros,
  kOther,  ///< one without a Spark type of its own; its name is in `Node::logical_name`
};

struct Node;

struct Field {
  std::string name;
  const Node* type = nullptr;
  /// As written; a JSON null is a default, nullopt is none.
  std::optional<Json> default_value;
  std::vector<std::string> aliases;
};

/// One type. Nodes of recursive schemas refer to themselves: whoever walks them counts the depth.
struct Node {
  Kind kind = Kind::kNull;
  std::string name;       ///< of a named type, without namespace; else the type's own: `int`, `array`, `union`
  std::string full_name;  ///< with namespace
  std::vector<std::string> aliases;  ///< full names
  Logical logical = Logical::kNone;
  std::string logical_name;
  int precision = 0;
  int scale = 0;
  /// Property `spark.sql.catalyst.type`: an interval's Spark type.
  std::string spark_type;
  std::int64_t size = 0;                    ///< of a fixed: bytes
  std::vector<Field> fields;                ///< of a record
  std::vector<std::string> symbols;         ///< of an enum
  std::optional<std::string> enum_default;  ///< of an enum
  std::vector<const Node*> children;        ///< element, value, or branches

  bool IsNamed() const { return kind == Kind::kRecord || kind == Kind::kEnum || kind == Kind::kFixed; }
  /// Null, or a union with a null branch.
  bool IsNullable() const;
  /// The branches of a union that are not null.
  std::vector<const Node*> NonNull() const;
};

/// An immutable schema with the nodes it is made of. Cheap to copy. Threads: any.
class Schema {
 public:
  /// kInvalidArgument with Avro's words where the text is no schema.
  static Result<Schema> Parse(std::string_view text);
  /// As Spark writes values of `type`: nullable ones are unions whose second branch is null. kInvalidArgument for types
  /// and names that Avro lacks.
  static Result<Schema> Of(const types::DataType& type, bool nullable, const std::string& name = "topLevelRecord",
                           const std::string& space = "");

  const Node& root() const { return *root_; }

 private:
  using Nodes = std::deque<Node>;
  friend class Parser;
  friend class Maker;
  Schema(std::shared_ptr<const Nodes> nodes, const Node* root) : nodes_(std::move(nodes)), root_(root) {}
  std::shared_ptr<const Nodes> nodes_;
  const Node* root_;
};

/// Compact JSON, named types in full where they come first.
std::string Text(const Node& node);

/// How Avro types become Spark types.
struct TypeOptions {
  /// Members of unions are named after their types (`member_int`), not by their places (`member0`).
  bool stable_union_names = false;
  std::string stable_prefix = "member_";
  /// How often a record may stand below itself, from 1; deeper fields are left out. Else recursive types are refused.
  int recursion_depth = -1;
};

struct SparkType {
  types::DataType type;
  bool nullable = false;
};
/// kInvalidArgument for recursive types, names that collide, and decimals beyond 38 digits.
Result<SparkType> ToSpark(const Node& node, const TypeOptions& options);

/// Whether a union is read as a struct with one member per branch (and not as its only branch, or the wider number).
bool IsMemberUnion(const Node& union_node);

}  // namespace fleuve::avro
