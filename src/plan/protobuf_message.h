#pragma once

/// \file
/// Message types of a Protobuf descriptor set, and the Spark types of their values.

#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "plan/scan.h"
#include "types/data_type.h"

namespace fleuve::plan {

/// One message type with the pool it lives in. Immutable. Threads: any.
class ProtobufMessage {
 public:
  /// \param descriptor_set  a serialized `FileDescriptorSet` with everything that it imports; \param name  with or
  /// without its package; the first file that has it counts.
  /// CANNOT_PARSE_PROTOBUF_DESCRIPTOR, PROTOBUF_DEPENDENCY_NOT_FOUND, PROTOBUF_MESSAGE_NOT_FOUND.
  static Result<std::shared_ptr<const ProtobufMessage>> Find(std::string_view descriptor_set, const std::string& name);

  const google::protobuf::Descriptor* descriptor() const { return descriptor_; }
  const google::protobuf::DescriptorPool& pool() const { return *pool_; }
  /// An empty message of this type.
  std::unique_ptr<google::protobuf::Message> New() const;

 private:
  ProtobufMessage() = default;
  google::protobuf::SimpleDescriptorDatabase database_;
  std::unique_ptr<google::protobuf::DescriptorPool::ErrorCollector> errors_;
  std::unique_ptr<google::protobuf::DescriptorPool> pool_;
  mutable google::protobuf::DynamicMessageFactory factory_;
  const google::protobuf::Descriptor* descriptor_ = nullptr;
};

/// Options of from_protobuf and to_protobuf.
struct ProtobufOptions {
  bool permissive = false;
  /// -1: recursive types are refused.
  int recursion_depth = -1;
  bool any_as_json = false;
  bool emit_defaults = false;
  bool enums_as_ints = false;
  bool upcast_unsigned = false;
  bool unwrap_wrappers = false;
  bool keep_empty = false;

  /// Other options are refused by name. \param function  for errors.
  static Result<ProtobufOptions> Parse(const Options& options, const std::string& function);
};

/// How a field's values look in Spark.
enum class ProtobufForm {
  kValue,      ///< as its type says
  kStruct,     ///< a message
  kMap,        ///< entries of a map
  kTimestamp,  ///< google.protobuf.Timestamp
  kDuration,   ///< google.protobuf.Duration
  kAny,        ///< google.protobuf.Any as JSON text
  kWrapper,    ///< google.protobuf.Int32Value and its like, as the value within
};
ProtobufForm ProtobufFormOf(const google::protobuf::FieldDescriptor& field, const ProtobufOptions& options);

/// The struct that from_protobuf gives. RECURSIVE_PROTOBUF_SCHEMA, PROTOBUF_TYPE_NOT_SUPPORT.
Result<types::DataType> ProtobufSchema(const google::protobuf::Descriptor& message, const ProtobufOptions& options);

/// The name of the one field of a struct that stands for a message without fields (`retain.empty.message.types`).
inline constexpr const char* kEmptyMessageField = "__dummy_field_in_empty_struct";

}  // namespace fleuve::plan
