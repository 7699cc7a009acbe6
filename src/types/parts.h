#pragma once

/// \file
/// Questions about a type and the types inside it.

#include <algorithm>

#include "types/data_type.h"

namespace fleuve::types {

/// True where `test` holds for the type itself or for a type in it at any depth: elements, keys, values, fields.
template <typename Test>
bool AnyPart(const DataType& type, const Test& test) {
  if (test(type)) {
    return true;
  }
  switch (type.kind()) {
    case TypeKind::kArray:
      return AnyPart(type.element(), test);
    case TypeKind::kMap:
      return AnyPart(type.key(), test) || AnyPart(type.value(), test);
    case TypeKind::kStruct:
      return std::any_of(type.fields().begin(), type.fields().end(),
                         [&test](const StructField& field) { return AnyPart(field.type, test); });
    default:
      return false;
  }
}

/// True where a part of the type is of this kind.
inline bool Holds(const DataType& type, TypeKind kind) {
  return AnyPart(type, [kind](const DataType& part) { return part.Is(kind); });
}

/// True where a part of the type is CHAR or VARCHAR.
inline bool HoldsLengths(const DataType& type) {
  return Holds(type, TypeKind::kChar) || Holds(type, TypeKind::kVarchar);
}

/// True where rows can be grouped by values of the type.
inline bool IsGroupable(const DataType& type) {
  return !Holds(type, TypeKind::kVariant) && !Holds(type, TypeKind::kCalendarInterval);
}

/// True where values of the type have an order: what can be grouped, but for maps.
inline bool IsOrderable(const DataType& type) { return IsGroupable(type) && !Holds(type, TypeKind::kMap); }

}  // namespace fleuve::types
