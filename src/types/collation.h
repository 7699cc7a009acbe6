#pragma once

/// \file
/// Which strings of a type have a collation.

#include <string>

#include "types/data_type.h"

namespace fleuve::types {

/// The first collation of a string in the type, at any depth; null where all strings compare by their bytes.
const std::string* CollationIn(const DataType& type);

}  // namespace fleuve::types
