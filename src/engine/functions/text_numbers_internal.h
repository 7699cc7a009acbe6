#pragma once

/// \file
/// Numbers and intervals out of text, as Spark's casts read them.

#include <cstdint>
#include <optional>
#include <string_view>

#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::engine {

/// Without the bytes up to and including the space at both ends.
std::string_view TrimAll(std::string_view text);
/// A 64-bit integer. \param fraction_allowed  `12.7` gives 12 (Spark without ANSI).
std::optional<std::int64_t> ParseLong(std::string_view text, bool fraction_allowed);
std::optional<double> ParseDouble(std::string_view text);
std::optional<float> ParseFloat(std::string_view text);
std::optional<bool> ParseBoolean(std::string_view text);

enum class DecimalParse { kOk, kMalformed, kOverflow };
/// A decimal of `precision` and `scale`, rounded half up.
DecimalParse ParseDecimal(std::string_view text, int precision, int scale, types::Int128* out);
/// The same of a finite number's shortest text.
DecimalParse DecimalOfReal(double value, int precision, int scale, types::Int128* out);
/// Microseconds of `1 10:00:00`, `INTERVAL '1' DAY`, `2` for the fields of `type`.
std::optional<std::int64_t> ParseDayTime(std::string_view text, const types::DataType& type);
/// Months of `1-2`, `INTERVAL '5' YEAR`, `3` for the fields of `type`.
std::optional<std::int64_t> ParseYearMonth(std::string_view text, const types::DataType& type);

}  // namespace fleuve::engine
