#pragma once

/// \file
/// Values written as text, as Spark's CSV source reads them.

#include <cstdint>
#include <string_view>

#include "engine/duckdb_pch.h"
#include "engine/files/format_options_internal.h"
#include "types/data_type.h"

namespace fleuve::engine {

/// Java's Integer.parseInt and friends: an optional sign and digits.
bool ParseJavaInteger(std::string_view text, std::int64_t* value);
/// Java's Double.parseDouble: blanks around, exponent, suffix d or f, NaN, Infinity.
bool ParseJavaDouble(std::string_view text, double* value);

/// Stores the value of `text`, which is not NULL; false where the text does not fit the type. Raises kUnsupported for
/// types that CSV files cannot hold.
bool StoreCsvValue(const CsvOptions& options, const types::DataType& type, std::string_view text, duckdb::Vector& out,
                   duckdb::idx_t row);

}  // namespace fleuve::engine
