#include <algorithm>

#include "avro/binary.h"
#include "avro/map_order.h"
#include "avro/schema.h"
#include "base/bytes.h"
#include "engine/functions/avro_internal.h"
#include "engine/functions/rows_internal.h"
#include "plan/avro_options.h"
#include "registry/schema_registry.h"

namespace fleuve::engine {

using avro::Kind;
using avro::Logical;
using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using types::DataType;
using types::TypeKind;

namespace {

using Format = duckdb::RecursiveUnifiedVectorFormat;

/// A column and the Avro type that takes its values.
struct Node {
  const avro::Node* schema = nullptr;  ///< as it stands in the schema, perhaps a union
  const avro::Node* avro = nullptr;    ///< what a value is written as
  DataType type;
  int branch = -1;       ///< of the union; -1: there is none
  int null_branch = -1;  ///< of the union; -1: NULL cannot be written
  std::vector<Node> children;
  /// Of a record: per field, in the schema's order, the struct's field that it takes (-1: it is NULL).
  std::vector<int> columns;
  std::string path;  ///< for errors
};

std::string Shown(const std::string& path) { return path.empty() ? "top-level record" : "field '" + path + "'"; }
std::string Below(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

Error Incompatible(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "", std::move(message)).Family(ErrorFamily::kAnalysis);
}

class Compiler {
 public:
  explicit Compiler(bool case_sensitive) : case_sensitive_(case_sensitive) {}

  /// \param top  a struct is then a record, never a union's members.
  Result<Node> Compile(const DataType& type, const avro::Node& schema, const std::string& path, bool top = false) {
    Node node;
    node.schema = &schema;
    node.avro = &schema;
    node.type = type;
    node.path = path;
    if (schema.kind == Kind::kUnion) {
      FLEUVE_TRY(Union(&node, top));
    }
    if (node.avro->kind == Kind::kUnion) {
      return Members(std::move(node));
    }
    switch (node.avro->kind) {
      case Kind::kRecord:
        if (type.Is(TypeKind::kStruct)) {
          return Record(std::move(node));
        }
        break;
      case Kind::kArray:
        if (type.Is(TypeKind::kArray)) {
          FLEUVE_ASSIGN(Node child, Compile(type.element(), *node.avro->children[0], Below(path, "element")));
          node.children.push_back(std::move(child));
          return node;
        }
        break;
      case Kind::kMap:
        if (type.Is(TypeKind::kMap) && type.key().IsString()) {
          FLEUVE_ASSIGN(Node child, Compile(type.value(), *node.avro->children[0], Below(path, "value")));
          node.children.push_back(std::move(child));
          return node;
        }
        break;
      default:
        if (Fits(type, *node.avro)) {
          return node;
        }
    }
    return Incompatible("Cannot convert SQL " + Shown(path) + " to Avro " + Shown(path) +
                        " because schema is incompatible (sqlType = " + type.Sql() +
                        ", avroType = " + avro::Text(*node.avro) + ")");
  }

 private:
  static bool Fits(const DataType& type, const avro::Node& avro) {
    switch (type.kind()) {
      case TypeKind::kVoid:
        return avro.kind == Kind::kNull;
      case TypeKind::kBoolean:
        return avro.kind == Kind::kBoolean;
      case TypeKind::kByte:
      case TypeKind::kShort:
      case TypeKind::kInt:
      case TypeKind::kDate:
      case TypeKind::kYearMonthInterval:
        return avro.kind == Kind::kInt;
      case TypeKind::kLong:
      case TypeKind::kDayTimeInterval:
        return avro.kind == Kind::kLong;
      case TypeKind::kTimestamp:
        return avro.kind == Kind::kLong &&
               (avro.logical == Logical::kNone || avro.logical == Logical::kTimestampMillis ||
                avro.logical == Logical::kTimestampMicros);
      case TypeKind::kTimestampNtz:
        return avro.kind == Kind::kLong &&
               (avro.logical == Logical::kNone || avro.logical == Logical::kLocalTimestampMillis ||
                avro.logical == Logical::kLocalTimestampMicros);
      case TypeKind::kFloat:
        return avro.kind == Kind::kFloat;
      case TypeKind::kDouble:
        return avro.kind == Kind::kDouble;
      case TypeKind::kDecimal:
        return avro.logical == Logical::kDecimal && avro.precision == type.precision() && avro.scale == type.scale();
      case TypeKind::kString:
      case TypeKind::kChar:
      case TypeKind::kVarchar:
        return avro.kind == Kind::kString || avro.kind == Kind::kEnum;
      case TypeKind::kBinary:
        return avro.kind == Kind::kBytes || avro.kind == Kind::kFixed;
      default:
        return false;
    }
  }

  /// Finds the branch that values are written as: the only one, the wider of two numbers, or several as members.
  Result<void> Union(Node* node, bool top) {
    const auto& branches = node->schema->children;
    std::vector<int> others;
    for (std::size_t i = 0; i < branches.size(); ++i) {
      if (branches[i]->kind == Kind::kNull) {
        node->null_branch = static_cast<int>(i);
      } else {
        others.push_back(static_cast<int>(i));
      }
    }
    const auto at = [&](int branch) { return branches[static_cast<std::size_t>(branch)]; };
    if (others.size() <= 1) {
      node->branch = others.empty() ? node->null_branch : others[0];
      if (node->branch < 0) {
        return Incompatible("An Avro union without types takes no values");
      }
      node->avro = at(node->branch);
      return {};
    }
    for (const int branch : others) {
      if (!avro::IsMemberUnion(*node->schema) &&
          ((node->type.Is(TypeKind::kLong) && at(branch)->kind == Kind::kLong) ||
           (node->type.Is(TypeKind::kDouble) && at(branch)->kind == Kind::kDouble))) {
        node->branch = branch;
        node->avro = at(branch);
        return {};
      }
    }
    if (!node->type.Is(TypeKind::kStruct)) {
      return Incompatible("Cannot convert SQL " + Shown(node->path) + " to Avro " + Shown(node->path) +
                          " because schema is incompatible (sqlType = " + node->type.Sql() +
                          ", avroType = " + avro::Text(*node->schema) + ")");
    }
    if (top) {
      return Incompatible("Attempting to treat union as a RECORD, but it was: UNION");
    }
    return {};
  }

  Result<Node> Members(Node node) {
    const auto& fields = node.type.fields();
    const std::vector<const avro::Node*> branches = node.schema->NonNull();
    std::string expected;
    std::string given;
    bool same = fields.size() == branches.size();
    for (std::size_t i = 0; i < branches.size(); ++i) {
      const std::string name = "member" + std::to_string(i);
      expected += (i == 0 ? "" : ", ") + name;
      same = same && fields[i].name == name;
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      given += (i == 0 ? "" : ", ") + fields[i].name;
    }
    if (!same) {
      return Incompatible("Generic Avro union at " + Shown(node.path) + " does not match the SQL schema at " +
                          Shown(node.path) + ".  It expected the following members (" + expected + ") but got (" +
                          given + ")");
    }
    for (std::size_t i = 0; i < branches.size(); ++i) {
      FLEUVE_ASSIGN(Node child, Compile(fields[i].type, *branches[i], Below(node.path, fields[i].name)));
      const auto& all = node.schema->children;
      child.branch = static_cast<int>(std::find(all.begin(), all.end(), branches[i]) - all.begin());
      node.children.push_back(std::move(child));
    }
    return node;
  }

  bool Same(const std::string& a, const std::string& b) const {
    return case_sensitive_ ? a == b : EqualsIgnoreAsciiCase(a, b);
  }

  Result<Node> Record(Node node) {
    const auto& columns = node.type.fields();
    const std::vector<avro::Field>& fields = node.avro->fields;
    std::vector<int> column_of(fields.size(), -1);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      std::vector<std::size_t> matches;
      for (std::size_t k = 0; k < fields.size(); ++k) {
        if (Same(fields[k].name, columns[i].name)) {
          matches.push_back(k);
        }
      }
      if (matches.empty()) {
        return Incompatible("Cannot find " + Shown(Below(node.path, columns[i].name)) + " in Avro schema");
      }
      if (matches.size() > 1) {
        return Incompatible("Searching for '" + columns[i].name + "' in Avro schema at " + Shown(node.path) + " gave " +
                            std::to_string(matches.size()) + " matches");
      }
      column_of[matches[0]] = static_cast<int>(i);
    }
    for (std::size_t k = 0; k < fields.size(); ++k) {
      const int column = column_of[k];
      if (column < 0) {
        if (fields[k].type->kind != Kind::kUnion || !fields[k].type->IsNullable()) {
          return Incompatible("Found " + Shown(Below(node.path, fields[k].name)) +
                              " in Avro schema but there is no match in the SQL schema");
        }
        Node missing;
        const auto& branches = fields[k].type->children;
        missing.null_branch = static_cast<int>(
            std::find_if(branches.begin(), branches.end(), [](auto* b) { return b->kind == Kind::kNull; }) -
            branches.begin());
        node.children.push_back(std::move(missing));
      } else {
        const types::StructField& own = columns[static_cast<std::size_t>(column)];
        FLEUVE_ASSIGN(Node child, Compile(own.type, *fields[k].type, Below(node.path, own.name)));
        node.children.push_back(std::move(child));
      }
      node.columns.push_back(column);
    }
    return node;
  }

  bool case_sensitive_;
};

template <typename T>
auto At(const Format& format, idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}
idx_t IndexOf(const Format& format, idx_t row) { return format.unified.sel->get_index(row); }
bool IsNull(const Format& format, idx_t row) { return !format.unified.validity.RowIsValid(IndexOf(format, row)); }

std::int64_t FloorMillis(std::int64_t micros) { return micros / 1000 - (micros % 1000 < 0 ? 1 : 0); }

/// The shortest two's complement, big endian.
std::string DecimalBytes(types::Int128 value) {
  std::string bytes;
  do {
    bytes.insert(bytes.begin(), static_cast<char>(value & 0xFF));
    const bool negative = (value & 0x80) != 0;
    value >>= 8;
    if (value == (negative ? -1 : 0)) {
      break;
    }
  } while (bytes.size() < sizeof(value));
  return bytes;
}

/// Writes values of vectors. Threads: one.
class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) {}

  /// \param row  not NULL where `node` is the top.
  void Value(const Node& node, const Format& format, idx_t row) {
    if (IsNull(format, row)) {
      Null(node);
      return;
    }
    if (node.branch >= 0) {
      avro::AppendLong(out_, node.branch);
    }
    const idx_t index = IndexOf(format, row);
    switch (node.avro->kind) {
      case Kind::kNull:
        return;
      case Kind::kBoolean:
        out_.push_back(At<bool>(format, index) ? 1 : 0);
        return;
      case Kind::kInt:
      case Kind::kLong:
        avro::AppendLong(out_, Integer(node, format, index));
        return;
      case Kind::kFloat:
        avro::AppendNumber(out_, At<float>(format, index));
        return;
      case Kind::kDouble:
        avro::AppendNumber(out_, At<double>(format, index));
        return;
      case Kind::kString:
        avro::AppendBytes(out_, At<Str>(format, index));
        return;
      case Kind::kEnum:
        Enum(node, At<Str>(format, index));
        return;
      case Kind::kBytes:
      case Kind::kFixed:
        Bytes(node, format, index);
        return;
      case Kind::kRecord:
        for (std::size_t i = 0; i < node.children.size(); ++i) {
          Field(node, i, format, index);
        }
        return;
      case Kind::kArray:
        List(node, format, index);
        return;
      case Kind::kMap:
        Map(node, format, index);
        return;
      case Kind::kUnion:
        for (std::size_t i = 0; i < node.children.size(); ++i) {
          if (!IsNull(format.children[i], index)) {
            Value(node.children[i], format.children[i], index);
            return;
          }
        }
        Null(node);
    }
  }

 private:
  void Null(const Node& node) {
    if (node.null_branch >= 0) {
      avro::AppendLong(out_, node.null_branch);
    } else if (node.avro->kind != Kind::kNull) {
      ThrowRowError(
          Error(ErrorKind::kInvalidArgument, "",
                "to_avro: NULL cannot be written to Avro " + Shown(node.path) + " of type " + avro::Text(*node.schema))
              .Family(ErrorFamily::kRuntime));
    }
  }

  void Field(const Node& node, std::size_t i, const Format& format, idx_t index) {
    const Node& child = node.children[i];
    if (node.columns[i] < 0) {
      avro::AppendLong(out_, child.null_branch);
      return;
    }
    const Format& column = format.children[static_cast<std::size_t>(node.columns[i])];
    if (child.null_branch < 0 && child.avro->kind != Kind::kNull && IsNull(column, index)) {
      const avro::Field& field = node.avro->fields[i];
      const std::string name = types::QuoteIdentifier(field.name);
      const std::string type = avro::Text(*field.type);
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "AVRO_CANNOT_WRITE_NULL_FIELD",
                          "Cannot write null value for field " + name + " defined as non-null Avro data type " + type +
                              ".\nTo allow null value for this field, specify its avro schema as a union type with "
                              "\"null\" using `avroSchema` option.")
                        .With("name", name)
                        .With("dataType", type));
    }
    Value(child, column, index);
  }

  static std::int64_t Integer(const Node& node, const Format& format, idx_t index) {
    switch (node.type.kind()) {
      case TypeKind::kByte:
        return At<std::int8_t>(format, index);
      case TypeKind::kShort:
        return At<std::int16_t>(format, index);
      case TypeKind::kInt:
      case TypeKind::kDate:
      case TypeKind::kYearMonthInterval:
        return At<std::int32_t>(format, index);
      case TypeKind::kTimestamp:
      case TypeKind::kTimestampNtz: {
        const auto micros = At<std::int64_t>(format, index);
        const Logical logical = node.avro->logical;
        return logical == Logical::kTimestampMicros || logical == Logical::kLocalTimestampMicros ? micros
                                                                                                 : FloorMillis(micros);
      }
      default:
        return At<std::int64_t>(format, index);
    }
  }

  void Enum(const Node& node, Str value) {
    const auto& symbols = node.avro->symbols;
    const auto at = std::find(symbols.begin(), symbols.end(), value);
    if (at == symbols.end()) {
      std::string known;
      for (const std::string& symbol : symbols) {
        known += (known.empty() ? "\"" : ", \"") + symbol + "\"";
      }
      ThrowRowError(Incompatible("Cannot convert SQL " + Shown(node.path) + " to Avro " + Shown(node.path) +
                                 " because \"" + std::string(value) +
                                 "\" cannot be written since it's not defined in enum " + known));
    }
    avro::AppendLong(out_, at - symbols.begin());
  }

  void Bytes(const Node& node, const Format& format, idx_t index) {
    const bool fixed = node.avro->kind == Kind::kFixed;
    if (node.type.Is(TypeKind::kDecimal)) {
      const types::Int128 number = WithDecimalCarrier(node.type.precision(), [&](auto carrier) {
        return static_cast<types::Int128>(At<decltype(carrier)>(format, index));
      });
      std::string bytes = DecimalBytes(number);
      const auto size = static_cast<std::size_t>(node.avro->size);
      if (fixed && bytes.size() < size) {
        bytes.insert(0, size - bytes.size(), number < 0 ? '\xff' : '\0');
      }
      fixed ? void(out_.append(bytes)) : avro::AppendBytes(out_, bytes);
      return;
    }
    const Str bytes = At<Str>(format, index);
    if (!fixed) {
      avro::AppendBytes(out_, bytes);
      return;
    }
    if (static_cast<std::int64_t>(bytes.size()) != node.avro->size) {
      const auto shown = [](std::int64_t size) { return std::to_string(size) + (size > 1 ? " bytes" : " byte"); };
      ThrowRowError(Incompatible("Cannot convert SQL " + Shown(node.path) + " to Avro " + Shown(node.path) +
                                 " because " + shown(static_cast<std::int64_t>(bytes.size())) +
                                 " of binary data cannot be written into FIXED type with size of " +
                                 shown(node.avro->size)));
    }
    out_.append(bytes);
  }

  void List(const Node& node, const Format& format, idx_t index) {
    const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
    if (entry.length > 0) {
      avro::AppendLong(out_, static_cast<std::int64_t>(entry.length));
    }
    for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
      Value(node.children[0], format.children[0], i);
    }
    out_.push_back(0);
  }

  void Map(const Node& node, const Format& format, idx_t index) {
    const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
    const Format& pairs = format.children[0];
    std::vector<std::string_view> keys;
    for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
      const idx_t at = IndexOf(pairs, i);
      keys.push_back(At<Str>(pairs.children[0], IndexOf(pairs.children[0], at)));
    }
    const std::vector<std::size_t> order = avro::MapOrder(keys, keys.size(), avro::HashOfText);
    if (!order.empty()) {
      avro::AppendLong(out_, static_cast<std::int64_t>(order.size()));
    }
    for (const std::size_t i : order) {
      avro::AppendBytes(out_, keys[i]);
      Value(node.children[0], pairs.children[1], IndexOf(pairs, entry.offset + i));
    }
    out_.push_back(0);
  }

  std::string& out_;
};

struct Writing {
  avro::Schema schema;
  Node node;
  /// Before each value: a zero and the number of the schema, where a registry has it.
  std::string prefix;
};

Result<std::string> PrefixFor(const ScalarSite& site, const avro::Schema& schema) {
  FLEUVE_ASSIGN(const plan::AvroOptions options, plan::AvroOptions::Parse(AvroOptionsAt(site, 4), "to_avro"));
  if (!options.registry) {
    return std::string();
  }
  if (!site.Literal(6).is_null()) {
    return registry::PrefixOf(static_cast<std::int32_t>(site.Literal(6).integer()));
  }
  if (options.subject.empty()) {
    return Error(ErrorKind::kInvalidArgument, "", "to_avro with a schema registry needs schema.registry.subject");
  }
  const std::string text = site.Literal(1).is_null() ? avro::Text(schema.root()) : site.Literal(1).text();
  FLEUVE_ASSIGN(const std::int32_t id,
                registry::SchemaRegistry::At(*options.registry)->IdOf(options.subject, text, options.auto_register));
  return registry::PrefixOf(id);
}

}  // namespace

Result<Kernel> MakeToAvro(const ScalarSite& site) {
  const DataType& type = site.ArgumentType(0);
  if (type.Is(TypeKind::kVoid)) {  // whatever the schema is
    return Kernel([](DataChunk&, Vector& result) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
      duckdb::ConstantVector::SetNull(result, true);
    });
  }
  FLEUVE_ASSIGN(avro::Schema schema, site.Literal(1).is_null() ? avro::Schema::Of(type, site.Literal(2).boolean())
                                                               : avro::Schema::Parse(site.Literal(1).text()));
  auto compiled = Compiler(site.Literal(3).boolean()).Compile(type, schema.root(), "", true);
  if (!compiled.ok()) {
    return Incompatible("Cannot convert SQL type " + type.Sql() + " to Avro type " + avro::Text(schema.root()) + ".")
        .CausedBy(std::move(compiled).error());
  }
  FLEUVE_ASSIGN(std::string prefix, PrefixFor(site, schema));
  const auto writing =
      std::make_shared<const Writing>(Writing{std::move(schema), *std::move(compiled), std::move(prefix)});
  return Kernel([writing](DataChunk& args, Vector& result) {
    args.data[0].Flatten(args.size());
    Format format;
    Vector::RecursiveToUnifiedFormat(args.data[0], args.size(), format);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<duckdb::string_t>(result);
    std::string bytes;
    Writer writer(bytes);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (IsNull(format, row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      bytes = writing->prefix;
      writer.Value(writing->node, format, row);
      out[row] = Physical<Str>::Write(result, bytes);
    }
  });
}

}  // namespace fleuve::engine
