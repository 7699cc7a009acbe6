#pragma once

/// \file
/// Errors through DuckDB: an Error is carried by a DuckDB exception and turned back at the room's edge.

#include <functional>
#include <memory>

#include "base/error.h"
#include "base/result.h"
#include "engine/duckdb_pch.h"

namespace fleuve::engine {

/// Throws a DuckDB exception that carries `error`; `Guard` gives it back whole. For functions, readers and writers that
/// run inside DuckDB. Never throw anything else from them: every other exception becomes INTERNAL_ERROR.
[[noreturn]] void RaiseError(const Error& error);
/// The value, or its error raised.
template <typename T>
T ValueOrRaise(Result<T> result) {
  if (!result.ok()) {
    RaiseError(std::move(result).error());
  }
  return std::move(result).value();
}
inline void CheckOrRaise(const Result<void>& result) {
  if (!result.ok()) {
    RaiseError(result.error());
  }
}

/// The Error that a DuckDB error stands for: a carried one, kCancelled for an interrupt, kResourceExhausted for memory
/// and disk, else INTERNAL_ERROR with DuckDB's text.
Error ToError(const duckdb::ErrorData& error);

/// True where the DuckDB error carries an Error of ours.
bool IsCarried(const duckdb::ErrorData& error);

/// Runs `body`; a DuckDB (or any other) exception becomes an Error.
template <typename Body>
auto Guard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (std::exception& caught) {
    return ToError(duckdb::ErrorData(caught));
  }
}

}  // namespace fleuve::engine
