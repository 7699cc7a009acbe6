#pragma once

/// \file
/// The order of the types of numbers.

#include "types/data_type.h"

namespace fleuve::types {

/// Place of a number's type among TINYINT (1), SMALLINT, INT, BIGINT (4), FLOAT, DOUBLE (6): a type holds those before
/// it, DOUBLE and FLOAT only nearly. 0: none of these.
inline int NumericRank(TypeKind kind) {
  switch (kind) {
    case TypeKind::kByte:
      return 1;
    case TypeKind::kShort:
      return 2;
    case TypeKind::kInt:
      return 3;
    case TypeKind::kLong:
      return 4;
    case TypeKind::kFloat:
      return 5;
    case TypeKind::kDouble:
      return 6;
    default:
      return 0;
  }
}

/// The same for integers; 0: no integer.
inline int IntegerRank(TypeKind kind) {
  const int rank = NumericRank(kind);
  return rank <= 4 ? rank : 0;
}

}  // namespace fleuve::types
