// Avro types as Spark types.

#include <map>
#include <optional>
#include <set>

#include "avro/schema.h"
#include "base/bytes.h"

namespace fleuve::avro {

using types::DataType;
using types::StructField;

namespace {

constexpr int kMaxRecursion = 15;
/// A short schema of records that name each other twice describes a type without end.
constexpr int kMostTypes = 100'000;
constexpr int kMaxDepth = 200;

Error Incompatible(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "", std::move(message)).Family(ErrorFamily::kAnalysis);
}

class Converter {
 public:
  explicit Converter(const TypeOptions& options) : options_(options) {}

  /// nullopt where nothing is left of the type within the depth of recursion.
  Result<std::optional<SparkType>> Convert(const Node& node) {
    if (++types_ > kMostTypes) {
      return Error::Unsupported("Avro schemas that stand for more than " + std::to_string(kMostTypes) + " types");
    }
    if (level_ > kMaxDepth) {
      return Error::Unsupported("Avro schemas of more than " + std::to_string(kMaxDepth) + " levels");
    }
    ++level_;
    auto type = Plain(node);
    --level_;
    return type;
  }

 private:
  Result<std::optional<SparkType>> Plain(const Node& node) {
    switch (node.kind) {
      case Kind::kNull:
        return std::optional(SparkType{DataType::Void(), true});
      case Kind::kBoolean:
        return Of(DataType::Boolean());
      case Kind::kInt:
        return node.logical == Logical::kDate ? Of(DataType::Date()) : Number(node, DataType::Int());
      case Kind::kLong:
        return Long(node);
      case Kind::kFloat:
        return Of(DataType::Float());
      case Kind::kDouble:
        return Of(DataType::Double());
      case Kind::kBytes:
      case Kind::kFixed:
        return node.logical == Logical::kDecimal ? Decimal(node) : Of(DataType::Binary());
      case Kind::kString:
      case Kind::kEnum:
        return Of(DataType::String());
      case Kind::kRecord:
        return Record(node);
      case Kind::kArray:
      case Kind::kMap: {
        FLEUVE_ASSIGN(const auto child, Convert(*node.children[0]));
        if (!child) {
          return std::optional<SparkType>();
        }
        return Of(node.kind == Kind::kArray ? DataType::Array(child->type, child->nullable)
                                            : DataType::Map(DataType::String(), child->type, child->nullable));
      }
      case Kind::kUnion:
        return Union(node);
    }
    return Error::Internal("an Avro type of no kind");
  }

  static std::optional<SparkType> Of(DataType type) { return SparkType{std::move(type), false}; }

  static Result<std::optional<SparkType>> Number(const Node& node, DataType plain) {
    if (node.spark_type.empty()) {
      return Of(std::move(plain));
    }
    FLEUVE_ASSIGN(DataType type, DataType::FromDdl(node.spark_type));
    return Of(std::move(type));
  }

  static Result<std::optional<SparkType>> Decimal(const Node& node) {
    if (node.precision > 38) {
      const std::string precision = std::to_string(node.precision);
      return Error(ErrorKind::kInvalidArgument, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
                   "Decimal precision " + precision + " exceeds max precision 38.")
          .With("precision", precision)
          .With("maxPrecision", "38");
    }
    return Of(DataType::Decimal(node.precision, node.scale));
  }

  static Result<std::optional<SparkType>> Long(const Node& node) {
    switch (node.logical) {
      case Logical::kCustomDecimal:
        return Decimal(node);
      case Logical::kTimestampMillis:
      case Logical::kTimestampMicros:
        return Of(DataType::Timestamp());
      case Logical::kLocalTimestampMillis:
      case Logical::kLocalTimestampMicros:
        return Of(DataType::TimestampNtz());
      default:
        return Number(node, DataType::Long());
    }
  }

  Result<std::optional<SparkType>> Record(const Node& node) {
    int& depth = depth_[node.full_name];
    if (depth > 0 && options_.recursion_depth <= 0) {
      return Incompatible(
          "Found recursive reference in Avro schema, which can not be processed by Spark by default: " + Text(node) +
          ". Try setting the option `recursiveFieldMaxDepth` to 1 - " + std::to_string(kMaxRecursion) + ".");
    }
    if (depth > 0 && depth >= options_.recursion_depth) {
      return std::optional<SparkType>();
    }
    ++depth;
    std::vector<StructField> fields;
    for (const Field& field : node.fields) {
      FLEUVE_ASSIGN(auto type, Convert(*field.type));
      if (type) {
        fields.push_back({field.name, std::move(type->type), type->nullable, {}});
      }
    }
    --depth;
    return Of(DataType::Struct(std::move(fields)));
  }

  Result<std::optional<SparkType>> Union(const Node& node) {
    const std::vector<const Node*> branches = node.NonNull();
    const bool nullable = branches.size() < node.children.size();
    if (!IsMemberUnion(node)) {
      if (branches.size() == 2) {
        const bool integers = branches[0]->kind == Kind::kInt || branches[0]->kind == Kind::kLong;
        return std::optional(SparkType{integers ? DataType::Long() : DataType::Double(), nullable});
      }
      FLEUVE_ASSIGN(auto type, Convert(*branches[0]));
      if (type) {
        type->nullable = type->nullable || nullable;
      }
      return type;
    }
    std::vector<StructField> fields;
    std::set<std::string> names;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      FLEUVE_ASSIGN(auto type, Convert(*branches[i]));
      if (!type) {
        continue;
      }
      std::string name = "member" + std::to_string(i);
      if (options_.stable_union_names) {
        name = options_.stable_prefix + branches[i]->name;
        if (!names.insert(AsciiLower(name)).second) {
          return Incompatible(
              "Cannot generate stable identifier for Avro union type due to name conflict of type name " +
              branches[i]->name);
        }
      }
      fields.push_back({std::move(name), std::move(type->type), true, {}});
    }
    return std::optional(SparkType{DataType::Struct(std::move(fields)), nullable});
  }

  const TypeOptions& options_;
  std::map<std::string, int> depth_;
  int types_ = 0;
  int level_ = 0;
};

}  // namespace

bool IsMemberUnion(const Node& union_node) {
  const std::vector<const Node*> branches = union_node.NonNull();
  if (branches.size() == 1) {
    return false;
  }
  if (branches.size() != 2) {
    return true;
  }
  const auto are = [&](Kind a, Kind b) {
    return (branches[0]->kind == a && branches[1]->kind == b) || (branches[0]->kind == b && branches[1]->kind == a);
  };
  return !are(Kind::kInt, Kind::kLong) && !are(Kind::kFloat, Kind::kDouble);
}

Result<SparkType> ToSpark(const Node& node, const TypeOptions& options) {
  FLEUVE_ASSIGN(auto type, Converter(options).Convert(node));
  if (!type) {
    return Error::Internal("an Avro schema of nothing");
  }
  return *std::move(type);
}

}  // namespace fleuve::avro
