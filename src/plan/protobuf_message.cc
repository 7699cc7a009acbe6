#include "plan/protobuf_message.h"

#include <google/protobuf/descriptor.pb.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/bytes.h"

namespace fleuve::plan {

namespace pb = google::protobuf;
using types::DataType;
using types::StructField;

namespace {

/// Errors of a broken descriptor are ours to tell, not libprotobuf's to print.
class Silent final : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string&, const std::string&, const pb::Message*, ErrorLocation,
                const std::string&) override {}
};

Error BadDescriptor() {
  return Error(ErrorKind::kInvalidArgument, "CANNOT_PARSE_PROTOBUF_DESCRIPTOR",
               "Error parsing descriptor bytes into Protobuf FileDescriptorSet.");
}

bool HasSecondsAndNanos(const pb::Descriptor& type) {
  return type.field_count() == 2 && type.field(0)->name() == "seconds" && type.field(1)->name() == "nanos";
}

bool IsWrapper(const pb::Descriptor& type) {
  static const std::set<std::string> kNames = {
      "google.protobuf.BoolValue",  "google.protobuf.Int32Value",  "google.protobuf.UInt32Value",
      "google.protobuf.Int64Value", "google.protobuf.UInt64Value", "google.protobuf.StringValue",
      "google.protobuf.BytesValue", "google.protobuf.FloatValue",  "google.protobuf.DoubleValue"};
  return kNames.count(type.full_name()) > 0;
}

/// Message types above a field, and how often each stands there.
using Path = std::map<std::string, int>;

Result<std::optional<StructField>> FieldOf(const pb::FieldDescriptor& field, const ProtobufOptions& options,
                                           const Path& path);

Result<std::vector<StructField>> FieldsOf(const pb::Descriptor& message, const ProtobufOptions& options,
                                          const Path& path) {
  std::vector<StructField> fields;
  for (int i = 0; i < message.field_count(); ++i) {
    FLEUVE_ASSIGN(auto field, FieldOf(*message.field(i), options, path));
    if (field) {
      fields.push_back(*std::move(field));
    }
  }
  if (fields.empty() && options.keep_empty) {
    fields.push_back({kEmptyMessageField, DataType::String(), true, {}});
  }
  return fields;
}

Result<DataType> ValueType(const pb::FieldDescriptor& field, const ProtobufOptions& options) {
  switch (field.type()) {
    case pb::FieldDescriptor::TYPE_UINT32:
    case pb::FieldDescriptor::TYPE_FIXED32:
      return options.upcast_unsigned ? DataType::Long() : DataType::Int();
    case pb::FieldDescriptor::TYPE_UINT64:
    case pb::FieldDescriptor::TYPE_FIXED64:
      return options.upcast_unsigned ? DataType::Decimal(20, 0) : DataType::Long();
    default:
      break;
  }
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return DataType::Int();
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return DataType::Long();
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return DataType::Float();
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return DataType::Double();
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return DataType::Boolean();
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return field.type() == pb::FieldDescriptor::TYPE_BYTES ? DataType::Binary() : DataType::String();
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return options.enums_as_ints ? DataType::Int() : DataType::String();
    default:
      break;
  }
  const std::string name = field.type_name();
  return Error(ErrorKind::kUnsupported, "PROTOBUF_TYPE_NOT_SUPPORT", "Protobuf type not yet supported: " + name + ".")
      .With("protobufType", name);
}

Result<std::optional<StructField>> FieldOf(const pb::FieldDescriptor& field, const ProtobufOptions& options,
                                           const Path& path) {
  DataType type;
  switch (ProtobufFormOf(field, options)) {
    case ProtobufForm::kTimestamp:
      type = DataType::Timestamp();
      break;
    case ProtobufForm::kDuration:
      type = DataType::DayTimeInterval();
      break;
    case ProtobufForm::kAny:
      type = DataType::String();
      break;
    case ProtobufForm::kWrapper: {
      FLEUVE_ASSIGN(type, ValueType(*field.message_type()->field(0), options));
      break;
    }
    case ProtobufForm::kMap: {
      FLEUVE_ASSIGN(const auto key, FieldOf(*field.message_type()->map_key(), options, path));
      FLEUVE_ASSIGN(const auto value, FieldOf(*field.message_type()->map_value(), options, path));
      if (!key || !value) {
        return std::optional<StructField>();
      }
      return std::optional(StructField{field.name(), DataType::Map(key->type, value->type, false), false, {}});
    }
    case ProtobufForm::kStruct: {
      const std::string& name = field.message_type()->full_name();
      const auto found = path.find(name);
      const int depth = found == path.end() ? 0 : found->second;
      if (depth > 0 && (options.recursion_depth <= 0 || options.recursion_depth > 10)) {
        return Error(ErrorKind::kInvalidArgument, "RECURSIVE_PROTOBUF_SCHEMA",
                     "Found recursive reference in Protobuf schema, which can not be processed by Spark by default: " +
                         field.full_name() +
                         ". try setting the option `recursive.fields.max.depth` 1 to 10. Going beyond 10 levels of "
                         "recursion is not allowed.")
            .With("fieldDescriptor", field.full_name());
      }
      if (depth > 0 && depth >= options.recursion_depth) {
        return std::optional<StructField>();
      }
      Path below = path;
      below[name] = depth + 1;
      FLEUVE_ASSIGN(std::vector<StructField> fields, FieldsOf(*field.message_type(), options, below));
      if (fields.empty()) {
        return std::optional<StructField>();
      }
      type = DataType::Struct(std::move(fields));
      break;
    }
    case ProtobufForm::kValue: {
      FLEUVE_ASSIGN(type, ValueType(field, options));
      break;
    }
  }
  if (field.is_repeated()) {
    return std::optional(StructField{field.name(), DataType::Array(std::move(type), false), true, {}});
  }
  return std::optional(StructField{field.name(), std::move(type), !field.is_required(), {}});
}

}  // namespace

Result<std::shared_ptr<const ProtobufMessage>> ProtobufMessage::Find(std::string_view descriptor_set,
                                                                     const std::string& name) {
  pb::FileDescriptorSet set;
  if (!set.ParseFromArray(descriptor_set.data(), static_cast<int>(descriptor_set.size()))) {
    return BadDescriptor();
  }
  std::set<std::string> names;
  for (const pb::FileDescriptorProto& file : set.file()) {
    names.insert(file.name());
  }
  std::shared_ptr<ProtobufMessage> made(new ProtobufMessage());
  for (const pb::FileDescriptorProto& file : set.file()) {
    for (const std::string& dependency : file.dependency()) {
      if (names.count(dependency) == 0) {
        return Error(ErrorKind::kInvalidArgument, "PROTOBUF_DEPENDENCY_NOT_FOUND",
                     "Could not find dependency: " + dependency + ".")
            .With("dependencyName", dependency);
      }
    }
    made->database_.Add(file);
  }
  made->errors_ = std::make_unique<Silent>();
  made->pool_ = std::make_unique<pb::DescriptorPool>(&made->database_, made->errors_.get());
  for (const pb::FileDescriptorProto& proto : set.file()) {
    const pb::FileDescriptor* file = made->pool_->FindFileByName(proto.name());
    if (file == nullptr) {
      return BadDescriptor();
    }
    for (int i = 0; i < file->message_type_count() && made->descriptor_ == nullptr; ++i) {
      const pb::Descriptor* message = file->message_type(i);
      if (message->name() == name || message->full_name() == name) {
        made->descriptor_ = message;
      }
    }
  }
  if (made->descriptor_ == nullptr) {
    return Error(ErrorKind::kNotFound, "PROTOBUF_MESSAGE_NOT_FOUND",
                 "Unable to locate Message " + name + " in Descriptor.")
        .With("messageName", name);
  }
  made->factory_.SetDelegateToGeneratedFactory(false);
  return std::shared_ptr<const ProtobufMessage>(std::move(made));
}

std::unique_ptr<pb::Message> ProtobufMessage::New() const {
  return std::unique_ptr<pb::Message>(factory_.GetPrototype(descriptor_)->New());
}

Result<ProtobufOptions> ProtobufOptions::Parse(const Options& options, const std::string& function) {
  ProtobufOptions parsed;
  for (const auto& [key, value] : options) {
    const std::string name = AsciiLower(key);
    if (name == "mode") {
      const std::string mode = AsciiUpper(value);
      if (mode == "DROPMALFORMED") {
        return Error(ErrorKind::kInvalidArgument, "PARSE_MODE_UNSUPPORTED",
                     "The function `" + function +
                         "` doesn't support the DROPMALFORMED mode. Acceptable modes are PERMISSIVE and FAILFAST.")
            .With("funcName", "`" + function + "`")
            .With("mode", mode);
      }
      parsed.permissive = mode != "FAILFAST";
      continue;
    }
    if (name == "recursive.fields.max.depth") {
      char* end = nullptr;
      const long depth = std::strtol(value.c_str(), &end, 10);
      if (value.empty() || *end != '\0') {
        return Error(ErrorKind::kInvalidArgument, "", "For input string: \"" + value + "\"")
            .Family(ErrorFamily::kNumberFormat);
      }
      parsed.recursion_depth = static_cast<int>(std::max<long>(-1, std::min<long>(depth, 100)));
      continue;
    }
    bool* flag = name == "convert.any.fields.to.json"       ? &parsed.any_as_json
                 : name == "emit.default.values"            ? &parsed.emit_defaults
                 : name == "enums.as.ints"                  ? &parsed.enums_as_ints
                 : name == "upcast.unsigned.ints"           ? &parsed.upcast_unsigned
                 : name == "unwrap.primitive.wrapper.types" ? &parsed.unwrap_wrappers
                 : name == "retain.empty.message.types"     ? &parsed.keep_empty
                                                            : nullptr;
    if (flag == nullptr) {
      return Error::Unsupported("the option " + key + " of " + function);
    }
    const std::string text = AsciiLower(value);
    if (text != "true" && text != "false") {
      return Error(ErrorKind::kInvalidArgument, "", "For input string: \"" + value + "\"")
          .Family(ErrorFamily::kIllegalArgument);
    }
    *flag = text == "true";
  }
  return parsed;
}

ProtobufForm ProtobufFormOf(const pb::FieldDescriptor& field, const ProtobufOptions& options) {
  if (field.cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) {
    return ProtobufForm::kValue;
  }
  const pb::Descriptor& type = *field.message_type();
  if (field.is_map()) {
    return ProtobufForm::kMap;
  }
  if (type.name() == "Duration" && HasSecondsAndNanos(type)) {
    return ProtobufForm::kDuration;
  }
  if (type.name() == "Timestamp" && HasSecondsAndNanos(type)) {
    return ProtobufForm::kTimestamp;
  }
  if (options.any_as_json && type.full_name() == "google.protobuf.Any") {
    return ProtobufForm::kAny;
  }
  return options.unwrap_wrappers && IsWrapper(type) ? ProtobufForm::kWrapper : ProtobufForm::kStruct;
}

Result<DataType> ProtobufSchema(const pb::Descriptor& message, const ProtobufOptions& options) {
  FLEUVE_ASSIGN(std::vector<StructField> fields, FieldsOf(message, options, {{message.full_name(), 1}}));
  return DataType::Struct(std::move(fields));
}

}  // namespace fleuve::plan
