#include "engine/functions/rows_internal.h"

namespace fleuve::engine {

Int128 PowerOfTen(int exponent) {
  static const auto* powers = [] {
    auto* table = new std::array<Int128, 39>();
    (*table)[0] = 1;
    for (std::size_t i = 1; i < table->size(); ++i) {
      (*table)[i] = (*table)[i - 1] * 10;
    }
    return table;
  }();
  return (*powers)[static_cast<std::size_t>(exponent)];
}

Int128 DropDigits(Int128 value, int digits) {
  if (digits <= 0) {
    return value;
  }
  if (digits > 38) {
    return 0;
  }
  Int128 unit = PowerOfTen(digits);
  Int128 quotient = value / unit;
  Int128 rest = value % unit;
  Int128 magnitude = rest < 0 ? -rest : rest;
  if (magnitude >= unit - magnitude) {
    quotient += value < 0 ? -1 : 1;
  }
  return quotient;
}

void StoreDecimal(duckdb::Vector& result, duckdb::idx_t row, Int128 value, int precision) {
  WithDecimalCarrier(precision, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, Int128>) {
      duckdb::FlatVector::GetData<duckdb::hugeint_t>(result)[row] = ToHugeint(value);
    } else {
      duckdb::FlatVector::GetData<T>(result)[row] = static_cast<T>(value);
    }
  });
}

Error DecimalOverflow(Int128 value, int scale, int precision, int to_scale) {
  std::string text = types::DecimalToString(value, scale);
  return Error(ErrorKind::kInvalidArgument, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
               "The " + text + " cannot be represented as Decimal(" + std::to_string(precision) + ", " +
                   std::to_string(to_scale) +
                   "). If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass "
                   "this error, and return NULL instead.")
      .With("value", text)
      .With("precision", std::to_string(precision))
      .With("scale", std::to_string(to_scale))
      .With("config", "\"spark.sql.ansi.enabled\"");
}

}  // namespace fleuve::engine
