#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/message.h>

#include "base/bytes.h"
#include "engine/functions/protobuf_internal.h"
#include "engine/functions/rows_internal.h"
#include "plan/protobuf_message.h"

namespace fleuve::engine {

namespace pb = google::protobuf;
using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using plan::ProtobufForm;
using types::DataType;
using types::TypeKind;

namespace {

using Format = duckdb::RecursiveUnifiedVectorFormat;

/// A column and the field that takes its values.
struct Node {
  const pb::FieldDescriptor* field = nullptr;
  ProtobufForm form = ProtobufForm::kValue;
  /// Of one value, also where the field is repeated.
  DataType type;
  std::vector<Node> children;
};

std::string ProtobufName(const pb::FieldDescriptor& field) {
  return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE ? field.message_type()->name() : field.type_name();
}

Error NotConvertible(const pb::FieldDescriptor& field, const std::string& path, const DataType& type) {
  return Error(ErrorKind::kInvalidArgument, "CANNOT_CONVERT_SQL_TYPE_TO_PROTOBUF_FIELD_TYPE",
               "Cannot convert SQL " + path + " to Protobuf " + field.full_name() +
                   " because schema is incompatible (protobufType = " + ProtobufName(field) + ", sqlType = \"" +
                   type.Sql() + "\").")
      .With("sqlColumn", path)
      .With("protobufColumn", field.full_name())
      .With("protobufType", ProtobufName(field))
      .With("sqlType", "\"" + type.Sql() + "\"");
}

bool Fits(const pb::FieldDescriptor& field, const DataType& type) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return type.Is(TypeKind::kBoolean);
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return type.Is(TypeKind::kInt) || type.Is(TypeKind::kShort) || type.Is(TypeKind::kByte) ||
             type.Is(TypeKind::kDate);
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return type.Is(TypeKind::kInt) || type.Is(TypeKind::kShort) || type.Is(TypeKind::kByte) ||
             type.Is(TypeKind::kLong);
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return type.Is(TypeKind::kLong);
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return type.Is(TypeKind::kLong) || (type.Is(TypeKind::kDecimal) && type.precision() == 20 && type.scale() == 0);
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return type.Is(TypeKind::kFloat);
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return type.Is(TypeKind::kDouble);
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return field.type() == pb::FieldDescriptor::TYPE_BYTES ? type.Is(TypeKind::kBinary) : type.IsString();
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return type.IsString() || type.Is(TypeKind::kInt);
    default:
      return false;
  }
}

Result<std::vector<Node>> Compile(const pb::Descriptor& message, const DataType& type, const std::string& path,
                                  const plan::ProtobufOptions& options);

Result<Node> Compile(const pb::FieldDescriptor& field, const DataType& type, const std::string& path,
                     const plan::ProtobufOptions& options) {
  Node node;
  node.field = &field;
  node.form = plan::ProtobufFormOf(field, options);
  const bool repeated = field.is_repeated() && node.form != ProtobufForm::kMap;
  if (repeated && !type.Is(TypeKind::kArray)) {
    return NotConvertible(field, path, type);
  }
  node.type = repeated ? type.element() : type;
  const TypeKind wanted = node.form == ProtobufForm::kStruct      ? TypeKind::kStruct
                          : node.form == ProtobufForm::kMap       ? TypeKind::kMap
                          : node.form == ProtobufForm::kTimestamp ? TypeKind::kTimestamp
                          : node.form == ProtobufForm::kDuration  ? TypeKind::kDayTimeInterval
                                                                  : node.type.kind();
  if (node.type.kind() != wanted || node.form == ProtobufForm::kAny) {
    return NotConvertible(field, path, type);
  }
  switch (node.form) {
    case ProtobufForm::kStruct: {
      FLEUVE_ASSIGN(node.children, Compile(*field.message_type(), node.type, path + ".", options));
      break;
    }
    case ProtobufForm::kMap: {
      FLEUVE_ASSIGN(Node key, Compile(*field.message_type()->map_key(), type.key(), path + ".key", options));
      FLEUVE_ASSIGN(Node value, Compile(*field.message_type()->map_value(), type.value(), path + ".value", options));
      node.children.push_back(std::move(key));
      node.children.push_back(std::move(value));
      break;
    }
    case ProtobufForm::kWrapper:
      if (!Fits(*field.message_type()->field(0), node.type)) {
        return NotConvertible(field, path, type);
      }
      break;
    case ProtobufForm::kValue:
      if (!Fits(field, node.type)) {
        return NotConvertible(field, path, type);
      }
      break;
    default:
      break;
  }
  return node;
}

Result<std::vector<Node>> Compile(const pb::Descriptor& message, const DataType& type, const std::string& path,
                                  const plan::ProtobufOptions& options) {
  std::vector<Node> nodes;
  std::vector<bool> taken(static_cast<std::size_t>(message.field_count()), false);
  for (const types::StructField& field : type.fields()) {
    if (message.field_count() == 0 && field.name == plan::kEmptyMessageField) {
      nodes.emplace_back();
      continue;
    }
    std::vector<const pb::FieldDescriptor*> matches;
    for (int i = 0; i < message.field_count(); ++i) {
      if (EqualsIgnoreAsciiCase(message.field(i)->name(), field.name)) {
        matches.push_back(message.field(i));
      }
    }
    const std::string column = path + field.name;
    if (matches.empty()) {
      return Error(ErrorKind::kInvalidArgument, "NO_SQL_TYPE_IN_PROTOBUF_SCHEMA",
                   "Cannot find " + column + " in Protobuf schema.")
          .With("catalystFieldPath", column);
    }
    if (matches.size() > 1) {
      std::string names;
      for (const auto* match : matches) {
        names += (names.empty() ? "[" : ", ") + match->name();
      }
      return Error(ErrorKind::kInvalidArgument, "PROTOBUF_FIELD_MISSING",
                   "Searching for " + field.name + " in Protobuf schema at " + message.full_name() + " gave " +
                       std::to_string(matches.size()) + " matches. Candidates: " + names + "].")
          .With("field", field.name)
          .With("protobufSchema", message.full_name())
          .With("matchSize", std::to_string(matches.size()))
          .With("matches", names + "]");
    }
    taken[static_cast<std::size_t>(matches[0]->index())] = true;
    FLEUVE_ASSIGN(Node node, Compile(*matches[0], field.type, column, options));
    nodes.push_back(std::move(node));
  }
  for (int i = 0; i < message.field_count(); ++i) {
    if (message.field(i)->is_required() && !taken[static_cast<std::size_t>(i)]) {
      return Error(ErrorKind::kInvalidArgument, "PROTOBUF_FIELD_MISSING_IN_SQL_SCHEMA",
                   "Found " + message.field(i)->full_name() +
                       " in Protobuf schema but there is no match in the SQL schema.")
          .With("field", message.field(i)->full_name());
    }
  }
  return nodes;
}

template <typename T>
auto At(const Format& format, idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

idx_t IndexOf(const Format& format, idx_t row) { return format.unified.sel->get_index(row); }
bool IsNull(const Format& format, idx_t row) { return !format.unified.validity.RowIsValid(IndexOf(format, row)); }

[[noreturn]] void ThrowNull(const pb::FieldDescriptor& field) {
  ThrowRowError(Error(ErrorKind::kInvalidArgument, "",
                      "to_protobuf: NULL cannot stand in " + field.full_name() + ", which is repeated or required")
                    .Family(ErrorFamily::kIllegalArgument));
}

/// Fills messages from vectors. Threads: one.
class Writer {
 public:
  /// \param index  of the struct's row in `format`, as its children know it.
  void Fields(const std::vector<Node>& nodes, const Format& format, idx_t index, pb::Message* message) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].field != nullptr) {
        Field(nodes[i], format.children[i], index, message);
      }
    }
  }

 private:
  void Field(const Node& node, const Format& format, idx_t row, pb::Message* message) {
    if (IsNull(format, row)) {
      if (node.field->is_required()) {
        ThrowNull(*node.field);
      }
      return;
    }
    if (!node.field->is_repeated()) {
      Value(node, format, row, message, false);
      return;
    }
    const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[IndexOf(format, row)];
    for (idx_t i = entry.offset; i < entry.offset + entry.length; ++i) {
      if (node.form != ProtobufForm::kMap) {
        if (IsNull(format.children[0], i)) {
          ThrowNull(*node.field);
        }
        Value(node, format.children[0], i, message, true);
        continue;
      }
      const Format& pairs = format.children[0];
      const idx_t at = IndexOf(pairs, i);
      pb::Message* pair = message->GetReflection()->AddMessage(message, node.field);
      for (std::size_t part = 0; part < 2; ++part) {
        if (IsNull(pairs.children[part], at)) {
          ThrowNull(*node.field);
        }
        Value(node.children[part], pairs.children[part], at, pair, false);
      }
    }
  }

  void Value(const Node& node, const Format& format, idx_t row, pb::Message* message, bool add) {
    const pb::Reflection& r = *message->GetReflection();
    if (node.form == ProtobufForm::kValue) {
      Plain(*node.field, node.type, format, row, message, add);
      return;
    }
    pb::Message* own = add ? r.AddMessage(message, node.field) : r.MutableMessage(message, node.field);
    const idx_t index = IndexOf(format, row);
    if (node.form == ProtobufForm::kStruct) {
      Fields(node.children, format, index, own);
    } else if (node.form == ProtobufForm::kWrapper) {
      Plain(*own->GetDescriptor()->field(0), node.type, format, row, own, false);
    } else {
      Time(At<std::int64_t>(format, index), node.form == ProtobufForm::kTimestamp, own);
    }
  }

  static void Time(std::int64_t micros, bool timestamp, pb::Message* message) {
    std::int64_t seconds = micros / 1000000;
    std::int64_t rest = micros % 1000000;
    if (timestamp && rest < 0) {  // the nanos of a point in time are never negative
      --seconds;
      rest += 1000000;
    }
    const pb::Descriptor& type = *message->GetDescriptor();
    message->GetReflection()->SetInt64(message, type.field(0), seconds);
    message->GetReflection()->SetInt32(message, type.field(1), static_cast<std::int32_t>(rest * 1000));
  }

  static std::int64_t Integer(const DataType& type, const Format& format, idx_t index) {
    switch (type.kind()) {
      case TypeKind::kByte:
        return At<std::int8_t>(format, index);
      case TypeKind::kShort:
        return At<std::int16_t>(format, index);
      case TypeKind::kInt:
      case TypeKind::kDate:
        return At<std::int32_t>(format, index);
      default:
        return At<std::int64_t>(format, index);
    }
  }

  void Plain(const pb::FieldDescriptor& f, const DataType& type, const Format& format, idx_t row, pb::Message* m,
             bool add) {
    const pb::Reflection& r = *m->GetReflection();
    const idx_t i = IndexOf(format, row);
    switch (f.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        add ? r.AddBool(m, &f, At<bool>(format, i)) : r.SetBool(m, &f, At<bool>(format, i));
        return;
      case pb::FieldDescriptor::CPPTYPE_INT32: {
        const auto value = static_cast<std::int32_t>(Integer(type, format, i));
        add ? r.AddInt32(m, &f, value) : r.SetInt32(m, &f, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_UINT32: {
        const auto value = static_cast<std::uint32_t>(Integer(type, format, i));
        add ? r.AddUInt32(m, &f, value) : r.SetUInt32(m, &f, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_INT64: {
        const std::int64_t value = Integer(type, format, i);
        add ? r.AddInt64(m, &f, value) : r.SetInt64(m, &f, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_UINT64: {
        const auto value = type.Is(TypeKind::kDecimal) ? static_cast<std::uint64_t>(At<Int128>(format, i))
                                                       : static_cast<std::uint64_t>(Integer(type, format, i));
        add ? r.AddUInt64(m, &f, value) : r.SetUInt64(m, &f, value);
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        add ? r.AddFloat(m, &f, At<float>(format, i)) : r.SetFloat(m, &f, At<float>(format, i));
        return;
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        add ? r.AddDouble(m, &f, At<double>(format, i)) : r.SetDouble(m, &f, At<double>(format, i));
        return;
      case pb::FieldDescriptor::CPPTYPE_STRING: {
        std::string value(At<Str>(format, i));
        add ? r.AddString(m, &f, std::move(value)) : r.SetString(m, &f, std::move(value));
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_ENUM: {
        const pb::EnumValueDescriptor* value = nullptr;
        std::string shown;
        if (type.IsString()) {
          shown = std::string(At<Str>(format, i));
          value = f.enum_type()->FindValueByName(shown);
        } else {
          const auto number = At<std::int32_t>(format, i);
          shown = std::to_string(number);
          value = f.enum_type()->FindValueByNumber(number);
        }
        if (value == nullptr) {
          ThrowEnum(f, shown, type.IsString());
        }
        add ? r.AddEnum(m, &f, value) : r.SetEnum(m, &f, value);
        return;
      }
      default:
        return;
    }
  }

  [[noreturn]] static void ThrowEnum(const pb::FieldDescriptor& field, const std::string& value, bool is_text) {
    std::string known;
    for (int i = 0; i < field.enum_type()->value_count(); ++i) {
      const pb::EnumValueDescriptor* one = field.enum_type()->value(i);
      known += (i == 0 ? "" : ", ") + (is_text ? "\"" + one->name() + "\"" : std::to_string(one->number()));
    }
    const std::string shown = is_text ? "\"" + value + "\"" : value;
    ThrowRowError(Error(ErrorKind::kInvalidArgument, "CANNOT_CONVERT_SQL_VALUE_TO_PROTOBUF_ENUM_TYPE",
                        "Cannot convert SQL `" + field.name() + "` to Protobuf `" + field.name() + "` because " +
                            shown + " is not in defined values for enum: " + known + ".")
                      .With("sqlColumn", "`" + field.name() + "`")
                      .With("protobufColumn", "`" + field.name() + "`")
                      .With("data", shown)
                      .With("enumString", known));
  }
};

}  // namespace

Result<Kernel> MakeToProtobuf(const ScalarSite& site) {
  FLEUVE_ASSIGN(const plan::ProtobufOptions options,
                plan::ProtobufOptions::Parse(ProtobufOptionsAt(site), "to_protobuf"));
  FLEUVE_ASSIGN(const auto message, plan::ProtobufMessage::Find(site.Literal(2).text(), site.Literal(1).text()));
  auto compiled = Compile(*message->descriptor(), site.ArgumentType(0), "", options);
  if (!compiled.ok()) {
    const std::string& type = message->descriptor()->name();
    const std::string sql = "\"" + site.ArgumentType(0).Sql() + "\"";
    return Error(ErrorKind::kInvalidArgument, "UNABLE_TO_CONVERT_TO_PROTOBUF_MESSAGE_TYPE",
                 "Unable to convert SQL type " + sql + " to Protobuf type " + type + ".")
        .With("protobufType", type)
        .With("toType", sql)
        .CausedBy(std::move(compiled).error());
  }
  const auto nodes = std::make_shared<const std::vector<Node>>(*std::move(compiled));
  return Kernel([message, nodes](DataChunk& args, Vector& result) {
    args.data[0].Flatten(args.size());
    Format format;
    Vector::RecursiveToUnifiedFormat(args.data[0], args.size(), format);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<duckdb::string_t>(result);
    Writer writer;
    const std::unique_ptr<pb::Message> one = message->New();
    std::string bytes;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (IsNull(format, row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      one->Clear();
      writer.Fields(*nodes, format, IndexOf(format, row), one.get());
      bytes.clear();
      {
        pb::io::StringOutputStream stream(&bytes);
        pb::io::CodedOutputStream coded(&stream);
        coded.SetSerializationDeterministic(true);
        one->SerializePartialToCodedStream(&coded);
      }
      out[row] = Physical<Str>::Write(result, bytes);
    }
  });
}

}  // namespace fleuve::engine
