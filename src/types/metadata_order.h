#pragma once

/// \file
/// The order in which Spark shows the keys of a column's metadata: that of the hash maps it keeps them in.

#include "base/json.h"

namespace fleuve::types {

/// The object with its members, and those of objects inside it, in Spark's order. Anything else as it is.
Json InMetadataOrder(const Json& metadata);

}  // namespace fleuve::types
