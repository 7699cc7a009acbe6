#pragma once

/// \file
/// Collations in the JSON of a schema: a field's type says `string`, and its metadata says under `__COLLATIONS` which
/// strings of it have one, by path (`c`, `c.element`, `c.key`, `c.value`), as `spark.UTF8_LCASE` or `icu.UNICODE_CI`.
/// Strings in a struct belong to the struct's own fields. (Spark's schema JSON; Delta's protocol, "Collations".)

#include "types/data_type.h"

namespace fleuve::types {

inline constexpr const char* kCollationsKey = "__COLLATIONS";

/// `type` with the collations that `named` has for its strings. \param path  of the type: the field's name at first.
DataType WithCollations(const DataType& type, const std::string& path, const Json& named);

/// `type` with plain strings, and the collations that they had, by path. \param named  an object that is added to.
DataType WithoutCollations(const DataType& type, const std::string& path, Json* named);

}  // namespace fleuve::types
