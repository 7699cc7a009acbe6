#pragma once

/// \file
/// Kernels of from_avro and to_avro. Private to this room.

#include "engine/functions/register_internal.h"
#include "plan/scan.h"

namespace fleuve::engine {

/// The user's options that stand as constant `i` of a call.
plan::Options AvroOptionsAt(const ScalarSite& site, std::size_t i);
/// Of values in binary form to values; constants: schema, options, zone, whether names are compared with their case.
Result<Kernel> MakeFromAvro(const ScalarSite& site);
/// Of values to their binary form; constants: schema or NULL, whether the value is
/// nullable, case, options, zone, the number of the schema in the registry or NULL.
Result<Kernel> MakeToAvro(const ScalarSite& site);

}  // namespace fleuve::engine
