#pragma once

/// \file
/// Lambda arguments of functions (transform, filter, aggregate, ...): bound bodies that a kernel evaluates for
/// elements.

#include <cstddef>
#include <memory>
#include <vector>

#include "engine/duckdb_pch.h"
#include "plan/expr.h"

namespace fleuve::engine {

/// One bound lambda. Threads: `Evaluate` from any number at once.
class BoundLambda {
 public:
  virtual ~BoundLambda() = default;
  virtual const duckdb::LogicalType& result_type() const = 0;
  virtual std::size_t parameter_count() const = 0;
  /// Evaluates the body for `count` elements.
  /// \param args        the chunk that the kernel was called with (non-lambda arguments, then captured columns)
  /// \param parameters  one vector of at least `count` values per lambda parameter, in order; any vector type
  /// \param rows        for each element the row of `args` it belongs to (for captured columns)
  /// \param result      of type `result_type()`, with room for `count` values; flat afterwards
  /// Give only elements that must be evaluated: the body may raise.
  virtual void Evaluate(duckdb::DataChunk& args, const std::vector<duckdb::Vector*>& parameters,
                        const std::uint32_t* rows, duckdb::idx_t count, duckdb::Vector& result) const = 0;
};

}  // namespace fleuve::engine
