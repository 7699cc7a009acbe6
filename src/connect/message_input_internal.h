#pragma once

/// \file
/// From bytes on the wire to messages that may be looked at: deep nesting, compression, unknown content.

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "base/result.h"

namespace spark::connect {
class Plan;
}

namespace fleuve::connect {

/// Parses with room for 10,000 levels. CONNECT_INVALID_PLAN.CANNOT_PARSE otherwise.
Result<void> ParseMessage(const grpc::ByteBuffer& bytes, google::protobuf::Message* message);
Result<void> ParseMessage(std::string_view bytes, google::protobuf::Message* message);
Result<grpc::ByteBuffer> SerializeMessage(const google::protobuf::Message& message);

/// Replaces a compressed plan by what it holds. Does nothing to others.
Result<void> ExpandPlan(spark::connect::Plan* plan);

/// Refuses, by name or number, fields that this build does not know, and messages that only our own front ends may
/// send. Needs a big stack.
Result<void> CheckMessage(const google::protobuf::Message& message);

/// A fingerprint of field `number` of a message in wire form (0 where it is absent).
std::size_t FieldFingerprint(const grpc::ByteBuffer& bytes, int number);

}  // namespace fleuve::connect
