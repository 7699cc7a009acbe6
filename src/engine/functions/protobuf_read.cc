#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>

#include "engine/functions/protobuf_internal.h"
#include "engine/functions/rows_internal.h"
#include "plan/protobuf_message.h"

namespace fleuve::engine {

namespace pb = google::protobuf;
using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::ListVector;
using duckdb::Vector;
using plan::ProtobufForm;
using types::DataType;
using types::TypeKind;

namespace {

/// A field and the place of its values.
struct Node {
  const pb::FieldDescriptor* field = nullptr;  ///< null: the name that stands for an empty message
  ProtobufForm form = ProtobufForm::kValue;
  DataType type;  ///< of one value, also where the field is repeated
  std::vector<Node> children;
};

std::vector<Node> Compile(const pb::Descriptor& message, const DataType& type, const plan::ProtobufOptions& options);

Node Compile(const pb::FieldDescriptor& field, const DataType& type, const plan::ProtobufOptions& options) {
  Node node;
  node.field = &field;
  node.form = plan::ProtobufFormOf(field, options);
  node.type = field.is_repeated() && node.form != ProtobufForm::kMap ? type.element() : type;
  if (node.form == ProtobufForm::kMap) {
    node.children.push_back(Compile(*field.message_type()->map_key(), type.key(), options));
    node.children.push_back(Compile(*field.message_type()->map_value(), type.value(), options));
  } else if (node.form == ProtobufForm::kStruct) {
    node.children = Compile(*field.message_type(), node.type, options);
  }
  return node;
}

std::vector<Node> Compile(const pb::Descriptor& message, const DataType& type, const plan::ProtobufOptions& options) {
  std::vector<Node> nodes;
  for (const types::StructField& field : type.fields()) {
    const pb::FieldDescriptor* found = message.FindFieldByName(field.name);
    nodes.push_back(found == nullptr ? Node() : Compile(*found, field.type, options));
  }
  return nodes;
}

std::int64_t Micros(const pb::Message& message) {
  const pb::Descriptor& type = *message.GetDescriptor();
  const pb::Reflection& reflection = *message.GetReflection();
  const std::int64_t seconds = reflection.GetInt64(message, type.field(0));
  const std::int64_t nanos = reflection.GetInt32(message, type.field(1));
  std::int64_t micros = 0;
  if (__builtin_mul_overflow(seconds, std::int64_t{1000000}, &micros) ||
      __builtin_add_overflow(micros, nanos / 1000, &micros)) {
    ThrowRowError(
        Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
              "long overflow. If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."));
  }
  return micros;
}

/// The content of a google.protobuf.Any is no message that the descriptors know.
struct UnreadableAny {};

/// Writes the values of messages into vectors. Threads: one.
class Reader {
 public:
  Reader(const plan::ProtobufMessage& message, const plan::ProtobufOptions& options)
      : message_(message), options_(options) {}

  void Fields(const std::vector<Node>& nodes, const pb::Message& message, Vector& out, idx_t row) {
    auto& entries = duckdb::StructVector::GetEntries(out);
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Field(nodes[i], message, *entries[i], row);
    }
  }

 private:
  void Field(const Node& node, const pb::Message& message, Vector& out, idx_t row) {
    if (node.field == nullptr) {
      FlatVector::SetNull(out, row, true);
      return;
    }
    const pb::Reflection& reflection = *message.GetReflection();
    if (node.field->is_repeated()) {
      Repeated(node, message, out, row);
      return;
    }
    const bool present = reflection.HasField(message, node.field) || node.field->has_default_value() ||
                         (!node.field->has_presence() && options_.emit_defaults);
    if (!present) {
      FlatVector::SetNull(out, row, true);
      return;
    }
    if (node.form == ProtobufForm::kValue) {
      Plain(node, *node.field, message, -1, out, row);
    } else {
      Message(node, reflection.GetMessage(message, node.field), out, row);
    }
  }

  void Repeated(const Node& node, const pb::Message& message, Vector& out, idx_t row) {
    const pb::Reflection& reflection = *message.GetReflection();
    const auto count = static_cast<idx_t>(reflection.FieldSize(message, node.field));
    const idx_t offset = ListVector::GetListSize(out);
    ListVector::Reserve(out, offset + count);
    ListVector::SetListSize(out, offset + count);
    FlatVector::GetData<duckdb::list_entry_t>(out)[row] = duckdb::list_entry_t(offset, count);
    Vector& elements = ListVector::GetEntry(out);
    for (idx_t i = 0; i < count; ++i) {
      if (node.form == ProtobufForm::kValue) {
        Plain(node, *node.field, message, static_cast<int>(i), elements, offset + i);
        continue;
      }
      const pb::Message& one = reflection.GetRepeatedMessage(message, node.field, static_cast<int>(i));
      if (node.form != ProtobufForm::kMap) {
        Message(node, one, elements, offset + i);
        continue;
      }
      auto& pair = duckdb::StructVector::GetEntries(elements);
      for (std::size_t part = 0; part < 2; ++part) {
        const Node& child = node.children[part];
        if (child.form == ProtobufForm::kValue) {
          Plain(child, *child.field, one, -1, *pair[part], offset + i);
        } else {
          Message(child, one.GetReflection()->GetMessage(one, child.field), *pair[part], offset + i);
        }
      }
    }
  }

  /// \param message  the field's own.
  void Message(const Node& node, const pb::Message& message, Vector& out, idx_t row) {
    switch (node.form) {
      case ProtobufForm::kStruct:
        Fields(node.children, message, out, row);
        return;
      case ProtobufForm::kTimestamp:
      case ProtobufForm::kDuration:
        FlatVector::GetData<std::int64_t>(out)[row] = Micros(message);
        return;
      case ProtobufForm::kWrapper:
        Plain(node, *message.GetDescriptor()->field(0), message, -1, out, row);
        return;
      default:
        FlatVector::GetData<duckdb::string_t>(out)[row] = Physical<Str>::Write(out, AnyText(message));
        return;
    }
  }

  std::string AnyText(const pb::Message& any) {
    if (resolver_ == nullptr) {
      resolver_.reset(pb::util::NewTypeResolverForDescriptorPool("type.googleapis.com", &message_.pool()));
    }
    pb::util::JsonPrintOptions print;
    print.preserve_proto_field_names = true;
    std::string text;
    const auto status = pb::util::BinaryToJsonString(resolver_.get(), "type.googleapis.com/google.protobuf.Any",
                                                     any.SerializePartialAsString(), &text, print);
    if (!status.ok()) {
      throw UnreadableAny();
    }
    return text;
  }

  template <typename T>
  static void Put(Vector& out, idx_t row, T value) {
    FlatVector::GetData<T>(out)[row] = value;
  }

  /// \param index  of a repeated field; -1: it is none.
  void Plain(const Node& node, const pb::FieldDescriptor& field, const pb::Message& m, int index, Vector& out,
             idx_t row) {
    const pb::Reflection& r = *m.GetReflection();
    const bool one = index < 0;
    switch (field.cpp_type()) {
      case pb::FieldDescriptor::CPPTYPE_INT32:
        Put(out, row, one ? r.GetInt32(m, &field) : r.GetRepeatedInt32(m, &field, index));
        return;
      case pb::FieldDescriptor::CPPTYPE_UINT32: {
        const std::uint32_t value = one ? r.GetUInt32(m, &field) : r.GetRepeatedUInt32(m, &field, index);
        if (node.type.Is(TypeKind::kLong)) {
          Put(out, row, static_cast<std::int64_t>(value));
        } else {
          Put(out, row, static_cast<std::int32_t>(value));
        }
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_INT64:
        Put<std::int64_t>(out, row, one ? r.GetInt64(m, &field) : r.GetRepeatedInt64(m, &field, index));
        return;
      case pb::FieldDescriptor::CPPTYPE_UINT64: {
        const std::uint64_t value = one ? r.GetUInt64(m, &field) : r.GetRepeatedUInt64(m, &field, index);
        if (node.type.Is(TypeKind::kDecimal)) {
          Put(out, row, ToHugeint(static_cast<Int128>(value)));
        } else {
          Put(out, row, static_cast<std::int64_t>(value));
        }
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_FLOAT:
        Put(out, row, one ? r.GetFloat(m, &field) : r.GetRepeatedFloat(m, &field, index));
        return;
      case pb::FieldDescriptor::CPPTYPE_DOUBLE:
        Put(out, row, one ? r.GetDouble(m, &field) : r.GetRepeatedDouble(m, &field, index));
        return;
      case pb::FieldDescriptor::CPPTYPE_BOOL:
        Put(out, row, one ? r.GetBool(m, &field) : r.GetRepeatedBool(m, &field, index));
        return;
      case pb::FieldDescriptor::CPPTYPE_STRING: {
        const std::string& value = one ? r.GetStringReference(m, &field, &scratch_)
                                       : r.GetRepeatedStringReference(m, &field, index, &scratch_);
        Put(out, row, Physical<Str>::Write(out, value));
        return;
      }
      case pb::FieldDescriptor::CPPTYPE_ENUM: {
        const int number = one ? r.GetEnumValue(m, &field) : r.GetRepeatedEnumValue(m, &field, index);
        if (node.type.Is(TypeKind::kInt)) {
          Put(out, row, static_cast<std::int32_t>(number));
          return;
        }
        const pb::EnumValueDescriptor* value = field.enum_type()->FindValueByNumber(number);
        Put(out, row,
            Physical<Str>::Write(out, value != nullptr ? value->name()
                                                       : "UNKNOWN_ENUM_VALUE_" + field.enum_type()->name() + "_" +
                                                             std::to_string(number)));
        return;
      }
      default:
        FlatVector::SetNull(out, row, true);
    }
  }

  const plan::ProtobufMessage& message_;
  const plan::ProtobufOptions& options_;
  std::unique_ptr<pb::util::TypeResolver> resolver_;
  std::string scratch_;
};

/// False where the bytes are no such message, or have a field of it in another form.
bool Parse(Str bytes, const pb::Descriptor& type, pb::Message* message) {
  if (!message->ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) || !message->IsInitialized()) {
    return false;
  }
  const pb::UnknownFieldSet& unknown = message->GetReflection()->GetUnknownFields(*message);
  for (int i = 0; i < unknown.field_count(); ++i) {
    if (type.FindFieldByNumber(unknown.field(i).number()) != nullptr) {
      return false;
    }
  }
  return true;
}

}  // namespace

plan::Options ProtobufOptionsAt(const ScalarSite& site) {
  plan::Options options;
  const types::Value::List& list = site.Literal(3).list();
  for (std::size_t k = 0; k + 1 < list.size(); k += 2) {
    options[list[k].text()] = list[k + 1].text();
  }
  return options;
}

Result<Kernel> MakeFromProtobuf(const ScalarSite& site) {
  FLEUVE_ASSIGN(const plan::ProtobufOptions options,
                plan::ProtobufOptions::Parse(ProtobufOptionsAt(site), "from_protobuf"));
  FLEUVE_ASSIGN(const auto message, plan::ProtobufMessage::Find(site.Literal(2).text(), site.Literal(1).text()));
  const auto nodes =
      std::make_shared<const std::vector<Node>>(Compile(*message->descriptor(), site.expr.type, options));
  const auto context = site.expr.context;
  return Kernel([options, message, nodes, context](DataChunk& args, Vector& result) {
    const Column bytes(args.data[0], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    Reader reader(*message, options);
    const std::unique_ptr<pb::Message> one = message->New();
    for (idx_t row = 0; row < args.size(); ++row) {
      if (bytes.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      bool good = Parse(bytes.Get<Str>(row), *message->descriptor(), one.get());
      if (good) {
        try {
          reader.Fields(*nodes, *one, result, row);
        } catch (const UnreadableAny&) {
          good = false;
        }
      }
      if (good) {
        continue;
      }
      if (!options.permissive) {
        Error error =
            Error(ErrorKind::kInvalidArgument, "MALFORMED_PROTOBUF_MESSAGE",
                  "Malformed Protobuf messages are detected in message deserialization. Parse Mode: FAILFAST. "
                  "To process malformed protobuf message as null result, try setting the option 'mode' as "
                  "'PERMISSIVE'.")
                .With("failFastMode", "FAILFAST");
        ThrowRowError(context ? std::move(error).At(*context) : std::move(error));
      }
      FlatVector::SetNull(result, row, true);
    }
  });
}

}  // namespace fleuve::engine
