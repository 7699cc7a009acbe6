#pragma once

/// \file
/// Arrow C++ types of Spark types, and Arrow's Status as our Error. Private to this room.

#include <arrow/api.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "columnar/ipc.h"

namespace fleuve::columnar {

/// kInternal for bugs, kResourceExhausted where memory ran out, kCorrupt where `corrupt`.
Error FromArrowStatus(const arrow::Status& status, bool corrupt = false);

Result<std::shared_ptr<arrow::DataType>> ToArrowType(const types::DataType& type, const ArrowOptions& options);
Result<std::shared_ptr<arrow::Field>> ToArrowField(const types::StructField& field, const ArrowOptions& options);
Result<std::shared_ptr<arrow::Schema>> ToArrowCppSchema(const types::Schema& schema, const ArrowOptions& options);

/// UNSUPPORTED_ARROWTYPE where Spark has no such type.
Result<types::DataType> FromArrowType(const arrow::DataType& type);
Result<types::Schema> FromArrowCppSchema(const arrow::Schema& schema);

/// The array in the one form that rooms use for its Spark type: no dictionaries, 32-bit offsets, microseconds.
Result<std::shared_ptr<arrow::Array>> ToCanonical(const std::shared_ptr<arrow::Array>& array);

}  // namespace fleuve::columnar

#define FLEUVE_ARROW_TRY(expr)                     \
  do {                                             \
    ::arrow::Status fleuve_arrow_status = (expr);  \
    if (!fleuve_arrow_status.ok()) {               \
      return FromArrowStatus(fleuve_arrow_status); \
    }                                              \
  } while (false)
