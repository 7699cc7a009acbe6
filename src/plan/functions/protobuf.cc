#include <fstream>
#include <sstream>

#include "plan/functions/options_internal.h"
#include "plan/protobuf_message.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

/// What both functions are told beside their value.
struct MessageArguments {
  std::string name;
  std::string descriptor_set;
  Options options;
  ProtobufOptions parsed;
  std::shared_ptr<const ProtobufMessage> message;
};

Result<std::string> ReadDescriptorFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (!file || !(bytes << file.rdbuf())) {
    return Error(ErrorKind::kNotFound, "PROTOBUF_DESCRIPTOR_FILE_NOT_FOUND",
                 "Error reading Protobuf descriptor file at path: " + path + ".")
        .With("filePath", path);
  }
  return bytes.str();
}

Error Hint(const Call& call, const std::string& message) {
  return call.Mismatch("TYPE_CHECK_FAILURE_WITH_HINT", message);
}

Result<MessageArguments> Arguments(Call& call) {
  MessageArguments arguments;
  const Value* name = ConstantOf(call.args[1]);
  if (name == nullptr || name->is_null() || !call.type(1).IsString()) {
    return Hint(call, "The second argument of the " + call.name +
                          " SQL function must be a constant string representing the Protobuf message name.");
  }
  arguments.name = name->text();
  const bool has_descriptor = call.size() > 2 && !call.type(2).Is(TypeKind::kMap);
  if (has_descriptor) {
    const Value* descriptor = ConstantOf(call.args[2]);
    const bool fits = call.type(2).IsString() || call.type(2).Is(TypeKind::kBinary);
    if (descriptor == nullptr || !fits) {
      return Hint(call, "The third argument of the " + call.name +
                            " SQL function must be a constant string or binary data representing the Protobuf "
                            "descriptor file path.");
    }
    if (!descriptor->is_null()) {
      arguments.descriptor_set = descriptor->text();
      if (call.type(2).IsString()) {
        FLEUVE_ASSIGN(arguments.descriptor_set, ReadDescriptorFile(descriptor->text()));
      }
    }
  }
  FLEUVE_ASSIGN(arguments.options, OptionsOf(call, has_descriptor ? 3 : 2));
  if (!has_descriptor) {
    return Error(ErrorKind::kUnsupported, "CANNOT_LOAD_PROTOBUF_CLASS",
                 "Could not load Protobuf class with name " + arguments.name +
                     ". There are no Java classes here: give a descriptor file.")
        .With("protobufClassName", arguments.name)
        .With("explanation", "There are no Java classes here: give a descriptor file");
  }
  FLEUVE_ASSIGN(arguments.parsed, ProtobufOptions::Parse(arguments.options, call.name));
  FLEUVE_ASSIGN(arguments.message, ProtobufMessage::Find(arguments.descriptor_set, arguments.name));
  return arguments;
}

ExprPtr Made(Call& call, MessageArguments arguments, const char* function, DataType type, bool nullable) {
  const std::string display = call.name + "(" + call.shown[0] + ")";
  call.args.resize(1);
  call.Hidden(Value(arguments.name), DataType::String());
  call.Hidden(Value(std::move(arguments.descriptor_set)), DataType::Binary());
  HideOptions(call, arguments.options);
  auto copy = std::make_shared<Expr>(*call.Make(function, std::move(type), nullable, true));
  copy->display = display;
  copy->context = call.source.context;
  return copy;
}

}  // namespace

Result<ExprPtr> BuildFromProtobuf(Call& call) {
  FLEUVE_ASSIGN(MessageArguments arguments, Arguments(call));
  if (!call.type(0).Is(TypeKind::kBinary) && !call.type(0).Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "BINARY");
  }
  FLEUVE_TRY(call.To(0, DataType::Binary()));
  FLEUVE_ASSIGN(DataType schema, ProtobufSchema(*arguments.message->descriptor(), arguments.parsed));
  return Made(call, std::move(arguments), "spark_from_protobuf", std::move(schema), true);
}

Result<ExprPtr> BuildToProtobuf(Call& call) {
  FLEUVE_ASSIGN(MessageArguments arguments, Arguments(call));
  if (!call.type(0).Is(TypeKind::kStruct)) {
    return call.Unexpected(0, "STRUCT");
  }
  return Made(call, std::move(arguments), "spark_to_protobuf", DataType::Binary(), call.AnyNullable());
}

}  // namespace fleuve::plan::functions
