#pragma once

/// \file
/// Which DuckDB type carries which Spark type, and values both ways.
///
/// boolean BOOLEAN; byte TINYINT; short SMALLINT; int INTEGER; long BIGINT; float FLOAT; double DOUBLE;
/// decimal(p,s) DECIMAL(p,s); string, char, varchar VARCHAR (any bytes); binary BLOB; date DATE;
/// timestamp TIMESTAMP WITH TIME ZONE (microseconds UTC); timestamp_ntz TIMESTAMP; day-time interval BIGINT
/// (microseconds); year-month interval INTEGER (months); calendar interval STRUCT(f0 INTEGER months, f1 INTEGER days,
/// f2 BIGINT microseconds); variant STRUCT(f0 BLOB value, f1 BLOB metadata); void INTEGER (always NULL);
/// array LIST; map MAP; struct STRUCT(f0, f1, ...) with positional names; empty struct STRUCT(f0 INTEGER) hidden field.

#include "base/result.h"
#include "engine/duckdb_pch.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::engine {

/// Throws (RaiseError) kUnsupported for kTime.
duckdb::LogicalType CarrierType(const types::DataType& type);
duckdb::Value CarrierValue(const types::Value& value, const types::DataType& type);
types::Value FromCarrier(const duckdb::Value& value, const types::DataType& type);

inline types::Int128 ToInt128(duckdb::hugeint_t value) {
  return static_cast<types::Int128>((static_cast<unsigned __int128>(static_cast<std::uint64_t>(value.upper)) << 64) |
                                    value.lower);
}
inline duckdb::hugeint_t ToHugeint(types::Int128 value) {
  return duckdb::hugeint_t(static_cast<std::int64_t>(value >> 64), static_cast<std::uint64_t>(value));
}

}  // namespace fleuve::engine
