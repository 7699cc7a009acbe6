#include <google/protobuf/any.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <zstd.h>

#include <limits>

#include "connect/message_input_internal.h"
#include "spark/connect/base.pb.h"

namespace fleuve::connect {

namespace pb = google::protobuf;

namespace {

constexpr int kMaxLevels = 10000;
constexpr std::size_t kMaxPlanBytes = std::size_t{512} << 20;
constexpr std::string_view kOwnPackage = "fleuve.pb.";

Error CannotParse(const std::string& what) {
  return Error(ErrorKind::kInvalidArgument, "CONNECT_INVALID_PLAN.CANNOT_PARSE",
               "The Spark Connect plan is invalid. Cannot decompress or parse the input plan (" + what + ").")
      .With("errorMsg", what);
}

Result<void> Parse(pb::io::CodedInputStream* input, pb::Message* message) {
  input->SetRecursionLimit(kMaxLevels);
  if (!message->ParseFromCodedStream(input) || !input->ConsumedEntireMessage()) {
    return CannotParse("the " + message->GetDescriptor()->name() +
                       " message is malformed or nests deeper than 10,000 levels");
  }
  return {};
}

Result<std::string> Decompress(const std::string& data) {
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
  std::string out;
  ZSTD_inBuffer input{data.data(), data.size(), 0};
  std::string chunk(ZSTD_DStreamOutSize(), '\0');
  std::size_t left = 1;
  while (input.pos < input.size) {
    ZSTD_outBuffer output{chunk.data(), chunk.size(), 0};
    left = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(left) != 0) {
      return CannotParse(ZSTD_getErrorName(left));
    }
    if (out.size() + output.pos > kMaxPlanBytes) {
      return Error(ErrorKind::kResourceExhausted, "CONNECT_INVALID_PLAN.PLAN_SIZE_LARGER_THAN_MAX",
                   "The Spark Connect plan is invalid. The plan size is larger than max (" +
                       std::to_string(kMaxPlanBytes) + ").")
          .With("maxPlanSize", std::to_string(kMaxPlanBytes))
          .With("planSize", "unknown");
    }
    out.append(chunk.data(), output.pos);
  }
  // What stays inside the decompressor comes out without more input.
  while (left != 0) {
    ZSTD_outBuffer output{chunk.data(), chunk.size(), 0};
    left = ZSTD_decompressStream(context.get(), &output, &input);
    if (ZSTD_isError(left) != 0 || output.pos == 0) {
      return CannotParse("the compressed plan ends too early");
    }
    out.append(chunk.data(), output.pos);
  }
  return out;
}

Result<void> CheckAny(const pb::Any& any) {
  const std::string_view url = any.type_url();
  const std::string_view name = url.substr(url.rfind('/') + 1);
  if (name.starts_with(kOwnPackage) || any.value().find(kOwnPackage) != std::string::npos) {
    return Error::Unsupported("the message " + std::string(name) + " from a client");
  }
  return {};
}

}  // namespace

Result<void> ParseMessage(const grpc::ByteBuffer& bytes, pb::Message* message) {
  grpc::ByteBuffer copy(bytes);
  grpc::ProtoBufferReader reader(&copy);
  pb::io::CodedInputStream input(&reader);
  return Parse(&input, message);
}

Result<void> ParseMessage(std::string_view bytes, pb::Message* message) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return CannotParse("more than 2 GiB");
  }
  pb::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(bytes.data()), static_cast<int>(bytes.size()));
  return Parse(&input, message);
}

Result<grpc::ByteBuffer> SerializeMessage(const pb::Message& message) {
  const std::size_t size = message.ByteSizeLong();
  if (size > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    return Error(ErrorKind::kResourceExhausted, "INTERNAL_ERROR", "A response is larger than 2 GiB.");
  }
  grpc::Slice slice(size);
  message.SerializeWithCachedSizesToArray(const_cast<std::uint8_t*>(slice.begin()));
  return grpc::ByteBuffer(&slice, 1);
}

Result<void> ExpandPlan(spark::connect::Plan* plan) {
  if (!plan->has_compressed_operation()) {
    return {};
  }
  const auto& compressed = plan->compressed_operation();
  if (compressed.compression_codec() != spark::connect::COMPRESSION_CODEC_ZSTD) {
    return Error(ErrorKind::kUnsupported, "CONNECT_INVALID_PLAN.UNSUPPORTED_COMPRESSION_CODEC",
                 "The Spark Connect plan is invalid. Unsupported compression codec " +
                     std::to_string(compressed.compression_codec()) + ".");
  }
  const auto op_type = compressed.op_type();
  FLEUVE_ASSIGN(std::string bytes, Decompress(compressed.data()));
  if (op_type == spark::connect::Plan::CompressedOperation::OP_TYPE_RELATION) {
    return ParseMessage(bytes, plan->mutable_root());
  }
  if (op_type == spark::connect::Plan::CompressedOperation::OP_TYPE_COMMAND) {
    return ParseMessage(bytes, plan->mutable_command());
  }
  return CannotParse("unknown operation type " + std::to_string(op_type));
}

Result<void> CheckMessage(const pb::Message& message) {
  const pb::Reflection* reflection = message.GetReflection();
  const pb::UnknownFieldSet& unknown = reflection->GetUnknownFields(message);
  if (!unknown.empty()) {
    return Error::Unsupported("field " + std::to_string(unknown.field(0).number()) + " of the message " +
                              message.GetDescriptor()->full_name());
  }
  std::vector<const pb::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    if (field->cpp_type() != pb::FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    }
    const int count = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const pb::Message& child = field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                                      : reflection->GetMessage(message, field);
      if (child.GetDescriptor() == pb::Any::descriptor()) {
        FLEUVE_TRY(CheckAny(static_cast<const pb::Any&>(child)));
      } else {
        FLEUVE_TRY(CheckMessage(child));
      }
    }
  }
  return {};
}

std::size_t FieldFingerprint(const grpc::ByteBuffer& bytes, int number) {
  grpc::ByteBuffer copy(bytes);
  grpc::ProtoBufferReader reader(&copy);
  pb::io::CodedInputStream input(&reader);
  using Lite = pb::internal::WireFormatLite;
  std::size_t fingerprint = 0;
  while (const std::uint32_t tag = input.ReadTag()) {
    std::uint32_t length = 0;
    if (Lite::GetTagFieldNumber(tag) == number && Lite::GetTagWireType(tag) == Lite::WIRETYPE_LENGTH_DELIMITED) {
      std::string value;
      if (!input.ReadVarint32(&length) || !input.ReadString(&value, static_cast<int>(length))) {
        break;
      }
      fingerprint = std::hash<std::string>()(value) + fingerprint * 31;
    } else if (!Lite::SkipField(&input, tag)) {
      break;
    }
  }
  return fingerprint;
}

}  // namespace fleuve::connect
