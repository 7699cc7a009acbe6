#pragma once

/// \file
/// Reads our extension messages out of an Any, however deep they nest.

#include <google/protobuf/any.pb.h>
#include <google/protobuf/io/coded_stream.h>

#include <optional>
#include <string_view>

#include "fleuve/plan.pb.h"

namespace fleuve::pb {

/// Puts `message` into `any`. Its depth is bounded only by the stack (base/big_stack.h).
template <typename Message>
void Pack(const Message& message, google::protobuf::Any* any) {
  any->set_type_url("type.googleapis.com/" + message.GetTypeName());
  message.SerializeToString(any->mutable_value());
}

/// The message in `any`, or nullopt where it holds something else. Unlike Any::UnpackTo it has no limit of 100 levels.
template <typename Message>
std::optional<Message> Unpack(const google::protobuf::Any& any) {
  Message message;
  std::string_view url = any.type_url();
  const std::size_t slash = url.rfind('/');
  if (slash == std::string_view::npos || url.substr(slash + 1) != std::string_view(message.GetTypeName())) {
    return std::nullopt;
  }
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const std::uint8_t*>(any.value().data()),
                                               static_cast<int>(any.value().size()));
  input.SetRecursionLimit(1'000'000);
  if (!message.ParseFromCodedStream(&input)) {
    return std::nullopt;
  }
  return message;
}

}  // namespace fleuve::pb
