#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "engine/functions/java_math_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/text_numbers_internal.h"

namespace fleuve::engine {

namespace {

using plan::CastMode;
using types::TypeKind;

template <double (*kFunction)(double)>
Result<Kernel> MakeUnary(const ScalarSite&) {
  return MapRows<double, double>([](double x) { return kFunction(x); });
}

template <double (*kFunction)(double, double)>
Result<Kernel> MakeBinary(const ScalarSite&) {
  return MapRows<double, double, double>([](double x, double y) { return kFunction(x, y); });
}

// Spark's own formulas over logarithms.
double Asinh(double x) { return std::isinf(x) ? x : java_math::Log(x + std::sqrt(x * x + 1)); }
double Acosh(double x) { return java_math::Log(x + std::sqrt(x * x - 1)); }
double Atanh(double x) { return 0.5 * (std::log1p(x) - std::log1p(-x)); }
/// Spark knows no -0.0 here.
double Atan2(double y, double x) { return java_math::Atan2(y + 0.0, x + 0.0); }
double Log2(double x) { return java_math::Log(x) / java_math::Log(2); }
double Cot(double x) { return 1 / std::tan(x); }
double Sec(double x) { return 1 / std::cos(x); }
double Csc(double x) { return 1 / std::sin(x); }
double Degrees(double x) { return x * (180.0 / 3.141592653589793); }
double Radians(double x) { return x * (3.141592653589793 / 180.0); }

/// Logarithms are NULL where they are not defined. \tparam kAbove  the argument must be above it
template <double (*kFunction)(double), int kAbove>
Result<Kernel> MakeLog(const ScalarSite&) {
  return MapRows<double, double>([](double x) -> std::optional<double> {
    return x <= kAbove ? std::nullopt : std::optional<double>(kFunction(x));
  });
}

Result<Kernel> MakeLogBase(const ScalarSite&) {
  return MapRows<double, double, double>([](double base, double x) -> std::optional<double> {
    if (base <= 0 || x <= 0) {
      return std::nullopt;
    }
    return java_math::Log(x) / java_math::Log(base);
  });
}

Result<Kernel> MakeSign(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kDayTimeInterval)) {
    return MapRows<double, std::int64_t>([](std::int64_t x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  }
  if (site.ArgumentType(0).Is(TypeKind::kYearMonthInterval)) {
    return MapRows<double, std::int32_t>([](std::int32_t x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : 0.0; });
  }
  return MapRows<double, double>([](double x) { return x > 0 ? 1.0 : x < 0 ? -1.0 : x; });
}

// ---- Rounding ----

enum class Rounding { kHalfUp, kHalfEven, kCeil, kFloor };

/// Divides by 10^digits with the given rounding.
Int128 Drop(Int128 value, int digits, Rounding rounding) {
  if (digits <= 0) {
    return value;
  }
  if (digits > 38) {
    return rounding == Rounding::kCeil && value > 0 ? 1 : rounding == Rounding::kFloor && value < 0 ? -1 : 0;
  }
  Int128 unit = PowerOfTen(digits);
  Int128 quotient = value / unit;
  Int128 rest = value % unit;
  if (rest == 0) {
    return quotient;
  }
  Int128 magnitude = rest < 0 ? -rest : rest;
  int away = value < 0 ? -1 : 1;
  switch (rounding) {
    case Rounding::kHalfUp:
      return magnitude >= unit - magnitude ? quotient + away : quotient;
    case Rounding::kHalfEven: {
      Int128 other = unit - magnitude;
      bool up = magnitude > other || (magnitude == other && quotient % 2 != 0);
      return up ? quotient + away : quotient;
    }
    case Rounding::kCeil:
      return value > 0 ? quotient + 1 : quotient;
    case Rounding::kFloor:
      return value < 0 ? quotient - 1 : quotient;
  }
  return quotient;
}

/// Rounds a decimal of (p1, s1) at `scale` digits into (p, s).
Kernel DecimalRound(const types::DataType& from, const types::DataType& to, int scale, Rounding rounding) {
  int precision = from.precision();
  int from_scale = from.scale();
  int to_precision = to.precision();
  int to_scale = to.scale();
  return [=](duckdb::DataChunk& args, duckdb::Vector& result) {
    DecimalColumn column(args.data[0], args.size(), precision);
    bool constant = args.data[0].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < (constant ? 1 : args.size()); ++row) {
      if (column.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      Int128 value = column.Get(row);
      if (scale < from_scale) {
        value = Drop(value, from_scale - scale, rounding);
        // Now at `scale` digits; bring it to the scale of the result.
        int up = to_scale - scale;
        bool fits = up <= 38 && !__builtin_mul_overflow(value, PowerOfTen(std::min(up, 38)), &value);
        if (!fits && value != 0) {
          duckdb::FlatVector::SetNull(result, row, true);
          continue;
        }
      }
      if (value >= PowerOfTen(to_precision) || value <= -PowerOfTen(to_precision)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      StoreDecimal(result, row, value, to_precision);
    }
    if (constant) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
    }
  };
}

/// A double as decimal digits (as Java prints it), rounded at `scale` digits.
double RoundReal(double value, int scale, Rounding rounding) {
  if (!std::isfinite(value)) {
    return value;
  }
  char buffer[400];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(buffer, sizeof buffer, "%.*e", digits - 1, value);
    if (std::strtod(buffer, nullptr) == value) {
      break;
    }
  }
  // Digits and exponent of the shortest form.
  std::string digits;
  bool negative = false;
  const char* at = buffer;
  if (*at == '-') {
    negative = true;
    ++at;
  }
  for (; *at != 0 && *at != 'e'; ++at) {
    if (*at != '.') {
      digits += *at;
    }
  }
  int exponent = std::atoi(at + 1);
  // value = 0.d1d2d3... * 10^(exponent + 1)
  int keep = exponent + 1 + scale;
  if (keep >= static_cast<int>(digits.size())) {
    return value;
  }
  if (keep < 0) {
    return 0.0;
  }
  bool up = false;
  char next = digits[static_cast<std::size_t>(keep)];
  bool rest = digits.find_first_not_of('0', static_cast<std::size_t>(keep) + 1) != std::string::npos;
  if (rounding == Rounding::kHalfUp) {
    up = next >= '5';
  } else {
    bool odd = keep > 0 && (digits[static_cast<std::size_t>(keep) - 1] - '0') % 2 != 0;
    up = next > '5' || (next == '5' && (rest || odd));
  }
  std::string kept = digits.substr(0, static_cast<std::size_t>(keep));
  if (up) {
    int i = static_cast<int>(kept.size()) - 1;
    while (i >= 0 && kept[static_cast<std::size_t>(i)] == '9') {
      kept[static_cast<std::size_t>(i)] = '0';
      --i;
    }
    if (i >= 0) {
      ++kept[static_cast<std::size_t>(i)];
    } else {
      kept.insert(kept.begin(), '1');
    }
  }
  if (kept.empty() || kept.find_first_not_of('0') == std::string::npos) {
    return 0.0;
  }
  std::string text = (negative ? "-" : "") + kept + "e" + std::to_string(-scale);
  return std::strtod(text.c_str(), nullptr);
}

template <typename T>
Kernel IntegerRound(int scale, Rounding rounding, CastMode mode) {
  if (scale >= 0) {
    return MapRows<T, T>([](T value) { return value; });
  }
  return MapRows<T, T>([scale, rounding, mode](T value) -> std::optional<T> {
    Int128 rounded = Drop(value, -scale, rounding);
    if (-scale <= 20) {
      rounded *= PowerOfTen(-scale);
    } else {
      rounded = 0;
    }
    if (rounded > std::numeric_limits<T>::max() || rounded < std::numeric_limits<T>::min()) {
      if (mode == CastMode::kAnsi) {
        ThrowRowError(
            Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
                  "Overflow. If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error."));
      }
    }
    return static_cast<T>(rounded);
  });
}

template <Rounding kRounding>
Result<Kernel> MakeRound(const ScalarSite& site) {
  int scale = static_cast<int>(site.Literal(1).integer());
  CastMode mode = ModeOf(site.expr);
  switch (site.expr.type.kind()) {
    case TypeKind::kDecimal:
      return DecimalRound(site.ArgumentType(0), site.expr.type, scale, kRounding);
    case TypeKind::kDouble:
      return MapRows<double, double>([scale](double value) { return RoundReal(value, scale, kRounding); });
    case TypeKind::kFloat:
      return MapRows<float, float>(
          [scale](float value) { return static_cast<float>(RoundReal(static_cast<double>(value), scale, kRounding)); });
    case TypeKind::kByte:
      return IntegerRound<std::int8_t>(scale, kRounding, mode);
    case TypeKind::kShort:
      return IntegerRound<std::int16_t>(scale, kRounding, mode);
    case TypeKind::kInt:
      return IntegerRound<std::int32_t>(scale, kRounding, mode);
    default:
      return IntegerRound<std::int64_t>(scale, kRounding, mode);
  }
}

std::int64_t SaturatedLong(double value) {
  if (std::isnan(value)) {
    return 0;
  }
  if (value >= 9223372036854775807.0) {
    return std::numeric_limits<std::int64_t>::max();
  }
  if (value <= -9223372036854775808.0) {
    return std::numeric_limits<std::int64_t>::min();
  }
  return static_cast<std::int64_t>(value);
}

template <Rounding kRounding>
Result<Kernel> MakeCeil(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kDecimal)) {
    return DecimalRound(site.ArgumentType(0), site.expr.type, 0, kRounding);
  }
  if (site.ArgumentType(0).Is(TypeKind::kLong)) {
    return MapRows<std::int64_t, std::int64_t>([](std::int64_t value) { return value; });
  }
  return MapRows<std::int64_t, double>(
      [](double value) { return SaturatedLong(kRounding == Rounding::kCeil ? std::ceil(value) : std::floor(value)); });
}

template <Rounding kRounding>
Result<Kernel> MakeCeilScale(const ScalarSite& site) {
  return DecimalRound(site.ArgumentType(0), site.expr.type, static_cast<int>(site.Literal(1).integer()), kRounding);
}

Result<Kernel> MakeFactorial(const ScalarSite&) {
  return MapRows<std::int64_t, std::int32_t>([](std::int32_t n) -> std::optional<std::int64_t> {
    if (n < 0 || n > 20) {
      return std::nullopt;
    }
    std::int64_t product = 1;
    for (std::int32_t i = 2; i <= n; ++i) {
      product *= i;
    }
    return product;
  });
}

Result<Kernel> MakeBin(const ScalarSite&) {
  return MapRows<Str, std::int64_t>([](std::int64_t value) {
    auto bits = static_cast<std::uint64_t>(value);
    std::string out;
    do {
      out.insert(out.begin(), static_cast<char>('0' + (bits & 1)));
      bits >>= 1;
    } while (bits != 0);
    return out;
  });
}

Result<Kernel> MakeWidthBucket(const ScalarSite&) {
  return MapRows<std::int64_t, double, double, double, std::int64_t>(
      [](double value, double low, double high, std::int64_t buckets) -> std::optional<std::int64_t> {
        if (buckets <= 0 || buckets == std::numeric_limits<std::int64_t>::max() || std::isnan(value) || low == high ||
            !std::isfinite(low) || !std::isfinite(high)) {
          return std::nullopt;
        }
        double least = std::min(low, high);
        double most = std::max(low, high);
        if (low < high) {
          if (value < least) {
            return 0;
          }
          if (value >= most) {
            return buckets + 1;
          }
          return static_cast<std::int64_t>(static_cast<double>(buckets) * (value - low) / (high - low)) + 1;
        }
        if (value > most) {
          return 0;
        }
        if (value <= least) {
          return buckets + 1;
        }
        return static_cast<std::int64_t>(static_cast<double>(buckets) * (low - value) / (low - high)) + 1;
      });
}

Result<Kernel> MakeConv(const ScalarSite& site) {
  CastMode mode = ModeOf(site.expr);
  return MapRows<Str, Str, std::int32_t, std::int32_t>([mode](Str input, std::int32_t from,
                                                              std::int32_t to) -> std::optional<std::string> {
    if (from < 2 || from > 36 || std::abs(to) < 2 || std::abs(to) > 36) {
      return std::nullopt;
    }
    Str text = input;
    while (!text.empty() && text.front() == ' ') {
      text.remove_prefix(1);
    }
    while (!text.empty() && text.back() == ' ') {
      text.remove_suffix(1);
    }
    if (text.empty()) {
      return std::nullopt;
    }
    bool negative = text.front() == '-';
    if (negative) {
      text.remove_prefix(1);
    }
    unsigned __int128 value = 0;
    bool overflow = false;
    for (char c : text) {
      int digit = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'z' ? c - 'a' + 10
                  : c >= 'A' && c <= 'Z' ? c - 'A' + 10
                                         : 99;
      if (digit >= from) {
        break;
      }
      value = value * static_cast<unsigned>(from) + static_cast<unsigned>(digit);
      if (value > ~std::uint64_t{0}) {
        overflow = true;
        value = ~std::uint64_t{0};
        break;
      }
    }
    if (overflow && mode == CastMode::kAnsi) {
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
                          "Overflow in function conv(). If necessary set \"spark.sql.ansi.enabled\" to \"false\" to "
                          "bypass this error."));
    }
    auto bits = static_cast<std::uint64_t>(value);
    if (negative && to > 0) {
      bits = static_cast<std::int64_t>(bits) < 0 ? ~std::uint64_t{0} : ~bits + 1;
    }
    bool minus = false;
    if (to < 0) {
      // Signed output.
      if (negative) {
        minus = bits != 0;
      } else if (static_cast<std::int64_t>(bits) < 0) {
        minus = true;
        bits = ~bits + 1;
      }
    }
    auto base = static_cast<std::uint64_t>(std::abs(to));
    std::string out;
    do {
      out.insert(out.begin(), "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[bits % base]);
      bits /= base;
    } while (bits != 0);
    return (minus ? "-" : "") + out;
  });
}

}  // namespace

const ScalarTable& MathKernels() {
  static const ScalarTable table = {
      {"spark_sqrt", Nulls::kPropagate, MakeUnary<std::sqrt>},
      {"spark_cbrt", Nulls::kPropagate, MakeUnary<java_math::Cbrt>},
      {"spark_exp", Nulls::kPropagate, MakeUnary<java_math::Exp>},
      {"spark_expm1", Nulls::kPropagate, MakeUnary<std::expm1>},
      {"spark_sin", Nulls::kPropagate, MakeUnary<std::sin>},
      {"spark_cos", Nulls::kPropagate, MakeUnary<std::cos>},
      {"spark_tan", Nulls::kPropagate, MakeUnary<std::tan>},
      {"spark_cot", Nulls::kPropagate, MakeUnary<Cot>},
      {"spark_sec", Nulls::kPropagate, MakeUnary<Sec>},
      {"spark_csc", Nulls::kPropagate, MakeUnary<Csc>},
      {"spark_asin", Nulls::kPropagate, MakeUnary<java_math::Asin>},
      {"spark_acos", Nulls::kPropagate, MakeUnary<java_math::Acos>},
      {"spark_atan", Nulls::kPropagate, MakeUnary<java_math::Atan>},
      {"spark_sinh", Nulls::kPropagate, MakeUnary<java_math::Sinh>},
      {"spark_cosh", Nulls::kPropagate, MakeUnary<java_math::Cosh>},
      {"spark_tanh", Nulls::kPropagate, MakeUnary<java_math::Tanh>},
      {"spark_asinh", Nulls::kPropagate, MakeUnary<Asinh>},
      {"spark_acosh", Nulls::kPropagate, MakeUnary<Acosh>},
      {"spark_atanh", Nulls::kPropagate, MakeUnary<Atanh>},
      {"spark_rint", Nulls::kPropagate, MakeUnary<std::nearbyint>},
      {"spark_degrees", Nulls::kPropagate, MakeUnary<Degrees>},
      {"spark_radians", Nulls::kPropagate, MakeUnary<Radians>},
      {"spark_atan2", Nulls::kPropagate, MakeBinary<Atan2>},
      {"spark_hypot", Nulls::kPropagate, MakeBinary<java_math::Hypot>},
      {"spark_pow", Nulls::kPropagate, MakeBinary<java_math::Pow>},
      {"spark_ln", Nulls::kPropagate, MakeLog<java_math::Log, 0>},
      {"spark_log10", Nulls::kPropagate, MakeLog<java_math::Log10, 0>},
      {"spark_log2", Nulls::kPropagate, MakeLog<Log2, 0>},
      {"spark_log1p", Nulls::kPropagate, MakeLog<std::log1p, -1>},
      {"spark_log_base", Nulls::kPropagate, MakeLogBase},
      {"spark_sign", Nulls::kPropagate, MakeSign},
      {"spark_round", Nulls::kPropagate, MakeRound<Rounding::kHalfUp>},
      {"spark_bround", Nulls::kPropagate, MakeRound<Rounding::kHalfEven>},
      {"spark_ceil", Nulls::kPropagate, MakeCeil<Rounding::kCeil>},
      {"spark_floor", Nulls::kPropagate, MakeCeil<Rounding::kFloor>},
      {"spark_ceil_scale", Nulls::kPropagate, MakeCeilScale<Rounding::kCeil>},
      {"spark_floor_scale", Nulls::kPropagate, MakeCeilScale<Rounding::kFloor>},
      {"spark_factorial", Nulls::kPropagate, MakeFactorial},
      {"spark_bin", Nulls::kPropagate, MakeBin},
      {"spark_width_bucket", Nulls::kPropagate, MakeWidthBucket},
      {"spark_conv", Nulls::kPropagate, MakeConv},
  };
  return table;
}

}  // namespace fleuve::engine
