#pragma once

/// \file
/// Kernels of from_avro and to_avro. Private to this room.

#include "engine/functions/register_internal.h"

namespace fleuve::engine {

/// Of values in binary form to values; constants: schema, options, zone, whether names are compared with their case.
Result<Kernel> MakeFromAvro(const ScalarSite& site);
/// Of values to their binary form; constants: schema or NULL, whether the value is nullable, case.
Result<Kernel> MakeToAvro(const ScalarSite& site);

}  // namespace fleuve::engine
