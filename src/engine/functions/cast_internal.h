#pragma once

/// \file
/// Casts between all types, by Spark's rules.

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/result.h"
#include "engine/duckdb_pch.h"
#include "plan/expr.h"
#include "types/data_type.h"
#include "types/time_zone.h"

namespace fleuve::engine {

/// Casts `count` rows of the first vector (any form) into the flat second one.
using Caster = std::function<void(duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out)>;
/// \param zone  the session's zone, empty = UTC. Threads: a caster from any number at once.
Result<Caster> MakeCaster(const types::DataType& from, const types::DataType& to, plan::CastMode mode,
                          const std::string& zone, std::shared_ptr<const QueryContext> context = nullptr);

}  // namespace fleuve::engine
