#include "avro/schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace fleuve::avro {

namespace {

/// Deeper schemas are no schemas of tables, and every walk over a schema is recursive.
constexpr int kMaxDepth = 200;

constexpr std::array<std::pair<std::string_view, Kind>, 8> kPrimitives = {{{"null", Kind::kNull},
                                                                           {"boolean", Kind::kBoolean},
                                                                           {"int", Kind::kInt},
                                                                           {"long", Kind::kLong},
                                                                           {"float", Kind::kFloat},
                                                                           {"double", Kind::kDouble},
                                                                           {"bytes", Kind::kBytes},
                                                                           {"string", Kind::kString}}};

std::optional<Kind> Primitive(std::string_view name) {
  for (const auto& [word, kind] : kPrimitives) {
    if (word == name) {
      return kind;
    }
  }
  return std::nullopt;
}

std::string_view KindName(Kind kind) {
  static constexpr std::string_view kNames[] = {"null",   "boolean", "int",  "long",  "float", "double", "bytes",
                                                "string", "record",  "enum", "array", "map",   "fixed",  "union"};
  return kNames[static_cast<std::size_t>(kind)];
}

Error Bad(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "", std::move(message)).Family(ErrorFamily::kAnalysis);
}

Result<void> CheckName(std::string_view name) {
  if (name.empty()) {
    return Bad("Empty name in an Avro schema");
  }
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  };
  if (!is_letter(name[0])) {
    return Bad("Illegal initial character: " + std::string(name));
  }
  for (const char c : name) {
    if (!is_letter(c) && (c < '0' || c > '9')) {
      return Bad("Illegal character in: " + std::string(name));
    }
  }
  return {};
}

/// A name as written and the namespace around it, taken apart.
struct FullName {
  std::string space;
  std::string name;
  std::string Text() const { return space.empty() ? name : space + "." + name; }
};
FullName Qualify(const std::string& name, const std::string& space) {
  const std::size_t dot = name.rfind('.');
  return dot == std::string::npos ? FullName{space, name} : FullName{name.substr(0, dot), name.substr(dot + 1)};
}

/// The greatest precision of a decimal in so many bytes.
std::int64_t MaxPrecision(std::int64_t size) {
  return static_cast<std::int64_t>(std::floor(std::log10(2.0) * (8.0 * static_cast<double>(size) - 1)));
}

void SetLogical(const Json& json, Node* node) {
  node->logical_name = json["logicalType"].AsString();
  const std::string& name = node->logical_name;
  if (name.empty()) {
    return;
  }
  node->logical = Logical::kOther;
  const bool is_long = node->kind == Kind::kLong;
  const bool is_bytes = node->kind == Kind::kBytes || node->kind == Kind::kFixed;
  if (name == "date" && node->kind == Kind::kInt) {
    node->logical = Logical::kDate;
  } else if (is_long && name == "timestamp-millis") {
    node->logical = Logical::kTimestampMillis;
  } else if (is_long && name == "timestamp-micros") {
    node->logical = Logical::kTimestampMicros;
  } else if (is_long && name == "local-timestamp-millis") {
    node->logical = Logical::kLocalTimestampMillis;
  } else if (is_long && name == "local-timestamp-micros") {
    node->logical = Logical::kLocalTimestampMicros;
  } else if ((name == "decimal" && is_bytes) || (name == "custom-decimal" && is_long)) {
    const std::int64_t precision = json["precision"].AsInt();
    const std::int64_t scale = json["scale"].AsInt();
    const bool fits = node->kind != Kind::kFixed || precision <= MaxPrecision(node->size);
    if (precision > 0 && precision <= 1'000'000 && scale >= 0 && scale <= precision && fits) {
      node->logical = is_bytes ? Logical::kDecimal : Logical::kCustomDecimal;
      node->precision = static_cast<int>(precision);
      node->scale = static_cast<int>(scale);
    }
  }
}

}  // namespace

bool Node::IsNullable() const {
  return kind == Kind::kNull ||
         (kind == Kind::kUnion &&
          std::any_of(children.begin(), children.end(), [](const Node* n) { return n->kind == Kind::kNull; }));
}

std::vector<const Node*> Node::NonNull() const {
  std::vector<const Node*> branches;
  std::copy_if(children.begin(), children.end(), std::back_inserter(branches),
               [](const Node* node) { return node->kind != Kind::kNull; });
  return branches;
}

class Parser {
 public:
  Result<Schema> Run(const Json& json) {
    FLEUVE_ASSIGN(const Node* root, Read(json, "", 0));
    return Schema(std::move(nodes_), root);
  }

 private:
  Node* New(Kind kind) {
    Node& node = nodes_->emplace_back();
    node.kind = kind;
    node.name = node.full_name = std::string(KindName(kind));
    return &node;
  }

  /// \param space  the namespace around the type.
  Result<const Node*> Read(const Json& json, const std::string& space, int depth) {
    if (depth > kMaxDepth) {
      return Bad("An Avro schema is nested more than " + std::to_string(kMaxDepth) + " levels deep");
    }
    if (json.is_string()) {
      return Reference(json.AsString(), space);
    }
    if (json.is_array()) {
      return Union(json, space, depth);
    }
    if (!json.is_object()) {
      return Bad("Schema not yet supported: " + json.Dump());
    }
    const std::string& type = json["type"].AsString();
    if (type.empty()) {
      return Bad("No type: " + json.Dump());
    }
    if (const auto kind = Primitive(type)) {
      Node* node = New(*kind);
      node->spark_type = json["spark.sql.catalyst.type"].AsString();
      SetLogical(json, node);
      return node;
    }
    if (type == "record" || type == "error") {
      return Record(json, space, depth);
    }
    if (type == "enum") {
      return Enum(json, space);
    }
    if (type == "fixed") {
      return Fixed(json, space);
    }
    if (type == "array" || type == "map") {
      const bool is_array = type == "array";
      const Json* child = json.Find(is_array ? "items" : "values");
      if (child == nullptr) {
        return Bad((is_array ? "Array has no items type: " : "Map has no values type: ") + json.Dump());
      }
      Node* node = New(is_array ? Kind::kArray : Kind::kMap);
      FLEUVE_ASSIGN(const Node* of, Read(*child, space, depth + 1));
      node->children.push_back(of);
      return node;
    }
    return Reference(type, space);
  }

  Result<const Node*> Reference(const std::string& name, const std::string& space) {
    if (const auto kind = Primitive(name)) {
      return New(*kind);
    }
    const FullName full = Qualify(name, space);
    auto found = named_.find(full.Text());
    if (found == named_.end() && full.name == name) {
      found = named_.find(name);
    }
    if (found == named_.end()) {
      return Bad("Undefined schema: " + full.Text());
    }
    return found->second;
  }

  /// Makes the node of a named type and remembers it. \param inner  becomes the namespace of what stands within.
  Result<Node*> Named(const Json& json, Kind kind, const std::string& space, std::string* inner) {
    const Json* name = json.Find("name");
    if (name == nullptr || !name->is_string()) {
      return Bad("No name in schema: " + json.Dump());
    }
    const Json* own = json.Find("namespace");
    const FullName full = Qualify(name->AsString(), own != nullptr ? own->AsString() : space);
    FLEUVE_TRY(CheckName(full.name));
    if (full.space.empty() && Primitive(full.name)) {
      return Bad("Schemas may not be named after primitives: " + full.name);
    }
    Node* node = New(kind);
    node->name = full.name;
    node->full_name = full.Text();
    if (!named_.emplace(node->full_name, node).second) {
      return Bad("Can't redefine: " + node->full_name);
    }
    for (const Json& alias : json["aliases"].items()) {
      node->aliases.push_back(Qualify(alias.AsString(), full.space).Text());
    }
    *inner = full.space;
    return node;
  }

  Result<const Node*> Record(const Json& json, const std::string& space, int depth) {
    std::string inner;
    FLEUVE_ASSIGN(Node * node, Named(json, Kind::kRecord, space, &inner));
    if (!json["fields"].is_array()) {
      return Bad("Record has no fields: " + json.Dump());
    }
    std::set<std::string> names;
    for (const Json& entry : json["fields"].items()) {
      Field field;
      field.name = entry["name"].AsString();
      if (!entry["name"].is_string()) {
        return Bad("No field name: " + entry.Dump());
      }
      FLEUVE_TRY(CheckName(field.name));
      const Json* type = entry.Find("type");
      if (type == nullptr) {
        return Bad("No field type: " + entry.Dump());
      }
      if (!names.insert(field.name).second) {
        return Bad("Duplicate field " + field.name + " in record " + node->full_name);
      }
      FLEUVE_ASSIGN(field.type, Read(*type, inner, depth + 1));
      if (const Json* value = entry.Find("default")) {
        field.default_value = *value;
      }
      for (const Json& alias : entry["aliases"].items()) {
        field.aliases.push_back(alias.AsString());
      }
      node->fields.push_back(std::move(field));
    }
    return node;
  }

  Result<const Node*> Enum(const Json& json, const std::string& space) {
    std::string inner;
    FLEUVE_ASSIGN(Node * node, Named(json, Kind::kEnum, space, &inner));
    if (!json["symbols"].is_array()) {
      return Bad("Enum has no symbols: " + json.Dump());
    }
    for (const Json& symbol : json["symbols"].items()) {
      FLEUVE_TRY(CheckName(symbol.AsString()));
      if (std::find(node->symbols.begin(), node->symbols.end(), symbol.AsString()) != node->symbols.end()) {
        return Bad("Duplicate enum symbol: " + symbol.AsString());
      }
      node->symbols.push_back(symbol.AsString());
    }
    if (const Json* value = json.Find("default")) {
      if (std::find(node->symbols.begin(), node->symbols.end(), value->AsString()) == node->symbols.end()) {
        return Bad("The Enum Default: " + value->AsString() + " is not in the enum symbol set");
      }
      node->enum_default = value->AsString();
    }
    return node;
  }

  Result<const Node*> Fixed(const Json& json, const std::string& space) {
    std::string inner;
    FLEUVE_ASSIGN(Node * node, Named(json, Kind::kFixed, space, &inner));
    if (!json["size"].is_int()) {
      return Bad("Invalid or no size: " + json.Dump());
    }
    node->size = json["size"].AsInt();
    if (node->size < 0 || node->size > std::int64_t{1} << 30) {
      return Bad("Invalid size of a fixed type: " + json.Dump());
    }
    SetLogical(json, node);
    return node;
  }

  Result<const Node*> Union(const Json& json, const std::string& space, int depth) {
    Node* node = New(Kind::kUnion);
    std::set<std::string> names;
    for (const Json& branch : json.items()) {
      FLEUVE_ASSIGN(const Node* child, Read(branch, space, depth + 1));
      if (child->kind == Kind::kUnion) {
        return Bad("Nested union: " + json.Dump());
      }
      if (!names.insert(child->full_name).second) {
        return Bad("Duplicate in union:" + child->full_name);
      }
      node->children.push_back(child);
    }
    return node;
  }

  std::shared_ptr<Schema::Nodes> nodes_ = std::make_shared<Schema::Nodes>();
  std::map<std::string, const Node*> named_;
};

class Maker {
 public:
  Result<Schema> Run(const types::DataType& type, bool nullable, const std::string& name, const std::string& space) {
    FLEUVE_ASSIGN(const Node* root, Make(type, nullable, name, space, 0));
    return Schema(std::move(nodes_), root);
  }

 private:
  using TypeKind = types::TypeKind;

  Node* New(Kind kind) {
    Node& node = nodes_->emplace_back();
    node.kind = kind;
    node.name = node.full_name = std::string(KindName(kind));
    return &node;
  }
  Node* New(Kind kind, Logical logical, const char* name) {
    Node* node = New(kind);
    node->logical = logical;
    node->logical_name = name;
    return node;
  }

  Result<const Node*> Make(const types::DataType& type, bool nullable, const std::string& name,
                           const std::string& space, int depth) {
    if (depth > kMaxDepth) {
      return Bad("A type is nested more than " + std::to_string(kMaxDepth) + " levels deep, too deep for Avro");
    }
    FLEUVE_ASSIGN(const Node* plain, Plain(type, name, space, depth));
    if (!nullable || plain->kind == Kind::kNull) {
      return plain;
    }
    Node* node = New(Kind::kUnion);
    node->children = {plain, New(Kind::kNull)};
    return node;
  }

  Result<const Node*> Plain(const types::DataType& type, const std::string& name, const std::string& space, int depth) {
    switch (type.kind()) {
      case TypeKind::kVoid:
        return New(Kind::kNull);
      case TypeKind::kBoolean:
        return New(Kind::kBoolean);
      case TypeKind::kByte:
      case TypeKind::kShort:
      case TypeKind::kInt:
        return New(Kind::kInt);
      case TypeKind::kLong:
        return New(Kind::kLong);
      case TypeKind::kFloat:
        return New(Kind::kFloat);
      case TypeKind::kDouble:
        return New(Kind::kDouble);
      case TypeKind::kString:
      case TypeKind::kChar:
      case TypeKind::kVarchar:
        return New(Kind::kString);
      case TypeKind::kBinary:
        return New(Kind::kBytes);
      case TypeKind::kDate:
        return New(Kind::kInt, Logical::kDate, "date");
      case TypeKind::kTimestamp:
        return New(Kind::kLong, Logical::kTimestampMicros, "timestamp-micros");
      case TypeKind::kTimestampNtz:
        return New(Kind::kLong, Logical::kLocalTimestampMicros, "local-timestamp-micros");
      case TypeKind::kYearMonthInterval:
      case TypeKind::kDayTimeInterval: {
        Node* node = New(type.Is(TypeKind::kYearMonthInterval) ? Kind::kInt : Kind::kLong);
        node->spark_type = type.TypeName();
        return node;
      }
      case TypeKind::kDecimal: {
        Node* node = New(Kind::kFixed, Logical::kDecimal, "decimal");
        node->precision = type.precision();
        node->scale = type.scale();
        while (MaxPrecision(++node->size) < type.precision()) {
        }
        node->name = "fixed";
        node->full_name = (space.empty() ? name : space + "." + name) + ".fixed";
        return node;
      }
      case TypeKind::kArray:
      case TypeKind::kMap: {
        const bool is_array = type.Is(TypeKind::kArray);
        if (!is_array && !type.key().IsString()) {
          return Bad("Avro maps have strings as keys: unexpected type " + type.Sql() + ".");
        }
        Node* node = New(is_array ? Kind::kArray : Kind::kMap);
        FLEUVE_ASSIGN(const Node* of,
                      Make(is_array ? type.element() : type.value(), type.contains_null(), name, space, depth + 1));
        node->children.push_back(of);
        return node;
      }
      case TypeKind::kStruct: {
        FLEUVE_TRY(CheckName(name));
        Node* node = New(Kind::kRecord);
        node->name = name;
        node->full_name = space.empty() ? name : space + "." + name;
        const std::string inner = node->full_name;
        std::set<std::string> names;
        for (const types::StructField& field : type.fields()) {
          FLEUVE_TRY(CheckName(field.name));
          if (!names.insert(field.name).second) {
            return Bad("Duplicate field " + field.name + " in record " + name);
          }
          FLEUVE_ASSIGN(const Node* of, Make(field.type, field.nullable, field.name, inner, depth + 1));
          node->fields.push_back({field.name, of, std::nullopt, {}});
        }
        return node;
      }
      default:
        return Bad("Unexpected type " + type.Sql() + ": Avro has none for it.");
    }
  }

  std::shared_ptr<Schema::Nodes> nodes_ = std::make_shared<Schema::Nodes>();
};

Result<Schema> Schema::Parse(std::string_view text) {
  auto json = Json::Parse(text);
  if (!json.ok()) {
    return Bad("This is no Avro schema: " + json.error().message());
  }
  return Parser().Run(*json);
}

Result<Schema> Schema::Of(const types::DataType& type, bool nullable, const std::string& name,
                          const std::string& space) {
  return Maker().Run(type, nullable, name, space);
}

namespace {

Json Describe(const Node& node, std::set<const Node*>* seen) {
  const std::string kind(KindName(node.kind));
  if (node.kind == Kind::kUnion) {
    Json::Array branches;
    for (const Node* branch : node.children) {
      branches.push_back(Describe(*branch, seen));
    }
    return Json(std::move(branches));
  }
  if (node.IsNamed() && !seen->insert(&node).second) {
    return Json(node.full_name);
  }
  Json json;
  json.Set("type", Json(kind));
  switch (node.kind) {
    case Kind::kArray:
      json.Set("items", Describe(*node.children[0], seen));
      break;
    case Kind::kMap:
      json.Set("values", Describe(*node.children[0], seen));
      break;
    case Kind::kRecord:
    case Kind::kEnum:
    case Kind::kFixed: {
      json.Set("name", Json(node.name));
      if (node.full_name.size() > node.name.size()) {
        json.Set("namespace", Json(node.full_name.substr(0, node.full_name.size() - node.name.size() - 1)));
      }
      if (node.kind == Kind::kFixed) {
        json.Set("size", Json(node.size));
      } else if (node.kind == Kind::kEnum) {
        Json::Array symbols(node.symbols.begin(), node.symbols.end());
        json.Set("symbols", Json(std::move(symbols)));
        if (node.enum_default) {
          json.Set("default", Json(*node.enum_default));
        }
      } else {
        Json::Array fields;
        for (const Field& field : node.fields) {
          Json one;
          one.Set("name", Json(field.name));
          one.Set("type", Describe(*field.type, seen));
          if (field.default_value) {
            one.Set("default", *field.default_value);
          }
          fields.push_back(std::move(one));
        }
        json.Set("fields", Json(std::move(fields)));
      }
      break;
    }
    default:
      if (node.logical_name.empty() && node.spark_type.empty()) {
        return Json(kind);
      }
  }
  if (!node.logical_name.empty()) {
    json.Set("logicalType", Json(node.logical_name));
    if (node.precision > 0) {
      json.Set("precision", Json(node.precision));
      json.Set("scale", Json(node.scale));
    }
  }
  if (!node.spark_type.empty()) {
    json.Set("spark.sql.catalyst.type", Json(node.spark_type));
  }
  return json;
}

}  // namespace

std::string Text(const Node& node) {
  std::set<const Node*> seen;
  return Describe(node, &seen).Dump();
}

}  // namespace fleuve::avro
