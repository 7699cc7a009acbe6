#pragma once

/// \file
/// What a schema that a reader gets may hold.

#include "base/result.h"
#include "types/data_type.h"

namespace fleuve::plan {

/// UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING where the type holds CHAR or VARCHAR at any depth: readers, from_json and the
/// like know strings only.
Result<void> RefuseCharTypes(const types::DataType& type);

}  // namespace fleuve::plan
