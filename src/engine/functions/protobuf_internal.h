#pragma once

/// \file
/// Kernels of from_protobuf and to_protobuf. Private to this room.

#include "engine/functions/register_internal.h"
#include "plan/scan.h"

namespace fleuve::engine {

/// The user's options of a call of either function.
plan::Options ProtobufOptionsAt(const ScalarSite& site);
/// Of messages in wire form to a struct; constants: name, descriptor set, options, zone.
Result<Kernel> MakeFromProtobuf(const ScalarSite& site);
/// Of a struct to messages in wire form; the same constants.
Result<Kernel> MakeToProtobuf(const ScalarSite& site);

}  // namespace fleuve::engine
