#include "engine/functions/register_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

void RaiseError(const Error& error) { ThrowRowError(error); }

bool IsCarried(const duckdb::ErrorData& error) {
  // The mark that ThrowRowError puts into the text.
  return error.RawMessage().find("fleuve-row-error:") != std::string::npos;
}

Error ToError(const duckdb::ErrorData& error) {
  if (auto carried = TakeRowError(error.RawMessage())) {
    return *std::move(carried);
  }
  switch (error.Type()) {
    case duckdb::ExceptionType::INTERRUPT:
      return Error::Cancelled();
    case duckdb::ExceptionType::OUT_OF_MEMORY:
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_OUT_OF_MEMORY",
                   "The operation needs more memory or spill space than it may use: " + error.RawMessage());
    case duckdb::ExceptionType::IO:
      return Error(ErrorKind::kTransient, "FLEUVE_IO_ERROR", "Reading or writing a file failed: " + error.RawMessage());
    default:
      return Error::Internal(duckdb::Exception::ExceptionTypeToString(error.Type()) + ": " + error.RawMessage());
  }
}

}  // namespace fleuve::engine
