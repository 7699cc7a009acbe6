#include <cmath>
#include <limits>

#include "base/clock.h"
#include "base/json.h"
#include "engine/functions/cast_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/text_numbers_internal.h"
#include "engine/functions/value_text_internal.h"
#include "engine/functions/variant_internal.h"
#include "engine/functions/wide_internal.h"
#include "plan/function_builder.h"

namespace fleuve::engine {

using plan::CastMode;
using types::DataType;
using types::TypeKind;

namespace {

constexpr std::int64_t kMicrosPerSecond = 1000000;
constexpr std::int64_t kMicrosPerDay = 86400000000;

std::int64_t FloorDivide(std::int64_t a, std::int64_t b) {
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

/// What a caster knows besides the types.
struct Rule {
  DataType from;
  DataType to;
  CastMode mode;
  std::shared_ptr<const types::TimeZone> zone;
  std::shared_ptr<const QueryContext> context;
};

[[noreturn]] void Fail(Error error, const Rule& rule) {
  if (rule.context) {
    ThrowRowError(std::move(error).At(*rule.context));
  }
  ThrowRowError(std::move(error));
}

[[noreturn]] void FailInvalid(const Rule& rule, std::string_view value, bool quoted = true) {
  std::string shown = quoted ? "'" + std::string(value) + "'" : std::string(value);
  Error error(ErrorKind::kInvalidArgument, "CAST_INVALID_INPUT",
              "The value " + shown + " of the type \"" + rule.from.Sql() + "\" cannot be cast to \"" + rule.to.Sql() +
                  "\" because it is malformed. Correct the value as per the syntax, or change its target type. Use "
                  "`try_cast` to tolerate malformed input and return NULL instead.");
  error = std::move(error)
              .With("expression", shown)
              .With("sourceType", "\"" + rule.from.Sql() + "\"")
              .With("targetType", "\"" + rule.to.Sql() + "\"");
  if (rule.to.IsDateTime()) {
    error = std::move(error).Family(ErrorFamily::kDateTime);
  } else if (rule.to.Is(TypeKind::kBoolean)) {
    error = std::move(error).Family(ErrorFamily::kRuntime);
  }
  Fail(std::move(error), rule);
}

[[noreturn]] void FailOverflow(const Rule& rule, const std::string& value) {
  Fail(Error(ErrorKind::kInvalidArgument, "CAST_OVERFLOW",
             "The value " + value + " of the type \"" + rule.from.Sql() + "\" cannot be cast to \"" + rule.to.Sql() +
                 "\" due to an overflow. Use `try_cast` to tolerate overflow and return NULL instead.")
           .With("value", value)
           .With("sourceType", "\"" + rule.from.Sql() + "\"")
           .With("targetType", "\"" + rule.to.Sql() + "\""),
       rule);
}

/// A caster of flat values: f gives std::optional<To> or To.
template <typename To, typename From, typename F>
Caster Each(F f) {
  return [f = std::move(f)](duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out) {
    Column column(in, count);
    auto* data = duckdb::FlatVector::GetData<typename Physical<To>::Type>(out);
    auto& validity = duckdb::FlatVector::Validity(out);
    for (duckdb::idx_t row = 0; row < count; ++row) {
      if (column.IsNull(row)) {
        validity.SetInvalid(row);
        continue;
      }
      auto value = f(column.Get<From>(row));
      if constexpr (IsOptional<decltype(value)>::value) {
        if (!value) {
          validity.SetInvalid(row);
          continue;
        }
        data[row] = Physical<To>::Write(out, *value);
      } else {
        data[row] = Physical<To>::Write(out, value);
      }
    }
  };
}

/// Calls `f` with a zero of the C++ type of an integral type.
template <typename F>
auto WithInteger(TypeKind kind, F f) {
  switch (kind) {
    case TypeKind::kByte:
      return f(std::int8_t{});
    case TypeKind::kShort:
      return f(std::int16_t{});
    case TypeKind::kInt:
      return f(std::int32_t{});
    default:
      return f(std::int64_t{});
  }
}

/// A caster out of any number type; `f` takes the C++ value (decimals as Int128).
template <typename To, typename F>
Caster FromNumber(const DataType& from, F f) {
  switch (from.kind()) {
    case TypeKind::kByte:
      return Each<To, std::int8_t>(f);
    case TypeKind::kShort:
      return Each<To, std::int16_t>(f);
    case TypeKind::kInt:
      return Each<To, std::int32_t>(f);
    case TypeKind::kLong:
      return Each<To, std::int64_t>(f);
    case TypeKind::kFloat:
      return Each<To, float>(f);
    case TypeKind::kDouble:
      return Each<To, double>(f);
    default:
      return WithDecimalCarrier(from.precision(), [&](auto zero) -> Caster {
        using T = decltype(zero);
        return Each<To, T>([f](T v) { return f(Int128{v}); });
      });
  }
}

double DecimalToDouble(Int128 value, int scale) {
  constexpr Int128 kExact = Int128{1} << 53;
  if (value < kExact && value > -kExact && scale <= 22) {
    return static_cast<double>(value) / static_cast<double>(PowerOfTen(scale));
  }
  return std::strtod(types::DecimalToString(value, scale).c_str(), nullptr);
}

template <typename T>
std::optional<T> IntegerFromReal(double value, const Rule& rule, const std::string& suffix) {
  constexpr double kMax = static_cast<double>(std::numeric_limits<T>::max());
  constexpr double kMin = static_cast<double>(std::numeric_limits<T>::min());
  if (std::floor(value) <= kMax && std::ceil(value) >= kMin) {
    double whole = std::trunc(value);
    return whole >= 9223372036854775807.0 ? std::numeric_limits<T>::max() : static_cast<T>(whole);
  }
  if (rule.mode == CastMode::kAnsi) {
    FailOverflow(rule, (rule.from.Is(TypeKind::kFloat) ? JavaFloatToString(static_cast<float>(value))
                                                       : JavaDoubleToString(value)) +
                           suffix);
  }
  if (rule.mode == CastMode::kTry) {
    return std::nullopt;
  }
  // As Java narrows: through int for the small types, saturating; NaN is 0.
  if (std::isnan(value)) {
    return T{0};
  }
  if constexpr (sizeof(T) < 4) {
    std::int32_t middle = value >= 2147483647.0    ? 2147483647
                          : value <= -2147483648.0 ? std::numeric_limits<std::int32_t>::min()
                                                   : static_cast<std::int32_t>(value);
    return static_cast<T>(middle);
  } else {
    return value > 0 ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
  }
}

template <typename T>
std::optional<T> IntegerFromWhole(Int128 value, const Rule& rule, const char* suffix, int scale = 0) {
  Int128 whole = scale > 0 ? value / PowerOfTen(scale) : value;
  if (whole >= std::numeric_limits<T>::min() && whole <= std::numeric_limits<T>::max()) {
    return static_cast<T>(whole);
  }
  if (rule.mode == CastMode::kAnsi) {
    FailOverflow(rule, types::DecimalToString(value, scale) + suffix);
  }
  if (rule.mode == CastMode::kTry) {
    return std::nullopt;
  }
  return static_cast<T>(whole);
}

const char* SuffixOf(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kByte:
      return "Y";
    case TypeKind::kShort:
      return "S";
    case TypeKind::kLong:
      return "L";
    case TypeKind::kDouble:
      return "D";
    case TypeKind::kDecimal:
      return "BD";
    default:
      return "";
  }
}

constexpr std::int64_t kUnitMicros[] = {86400000000, 3600000000, 60000000, 1000000};

template <typename T>
Result<Caster> ToInteger(const Rule& rule) {
  const DataType& from = rule.from;
  if (from.IsString()) {
    bool fraction = rule.mode == CastMode::kLegacy;
    return Each<T, Str>([rule, fraction](Str text) -> std::optional<T> {
      auto value = ParseLong(text, fraction);
      if (!value || *value < std::numeric_limits<T>::min() || *value > std::numeric_limits<T>::max()) {
        if (rule.mode == CastMode::kAnsi) {
          FailInvalid(rule, text);
        }
        return std::nullopt;
      }
      return static_cast<T>(*value);
    });
  }
  if (from.IsIntegral() || from.Is(TypeKind::kDecimal)) {
    int scale = from.Is(TypeKind::kDecimal) ? from.scale() : 0;
    const char* suffix = SuffixOf(from);
    return FromNumber<T>(from, [rule, scale, suffix](auto value) -> std::optional<T> {
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        return std::nullopt;
      } else {
        return IntegerFromWhole<T>(Int128{value}, rule, suffix, scale);
      }
    });
  }
  switch (from.kind()) {
    case TypeKind::kFloat:
      return Each<T, float>([rule](float value) { return IntegerFromReal<T>(value, rule, ""); });
    case TypeKind::kDouble:
      return Each<T, double>([rule](double value) { return IntegerFromReal<T>(value, rule, "D"); });
    case TypeKind::kBoolean:
      return Each<T, bool>([](bool value) { return static_cast<T>(value ? 1 : 0); });
    case TypeKind::kTimestamp:
      return Each<T, std::int64_t>(
          [rule](std::int64_t micros) { return IntegerFromWhole<T>(FloorDivide(micros, kMicrosPerSecond), rule, ""); });
    case TypeKind::kDate:
      return Each<T, std::int32_t>([](std::int32_t) -> std::optional<T> { return std::nullopt; });
    case TypeKind::kDayTimeInterval: {
      std::int64_t unit = kUnitMicros[from.scale()];
      return Each<T, std::int64_t>(
          [rule, unit](std::int64_t micros) { return IntegerFromWhole<T>(micros / unit, rule, ""); });
    }
    case TypeKind::kYearMonthInterval: {
      int unit = from.scale() == 0 ? 12 : 1;
      return Each<T, std::int32_t>(
          [rule, unit](std::int32_t months) { return IntegerFromWhole<T>(months / unit, rule, ""); });
    }
    default:
      return Error::Internal("no cast from " + from.Sql() + " to " + rule.to.Sql());
  }
}

template <typename T>
Result<Caster> ToReal(const Rule& rule) {
  const DataType& from = rule.from;
  if (from.IsString()) {
    return Each<T, Str>([rule](Str text) -> std::optional<T> {
      std::optional<T> value;
      if constexpr (sizeof(T) == 4) {
        value = ParseFloat(text);
      } else {
        value = ParseDouble(text);
      }
      if (!value && rule.mode == CastMode::kAnsi) {
        FailInvalid(rule, text);
      }
      return value;
    });
  }
  if (from.IsNumeric()) {
    int scale = from.scale();
    return FromNumber<T>(from, [scale](auto value) -> T {
      if constexpr (std::is_same_v<decltype(value), Int128>) {
        return static_cast<T>(DecimalToDouble(value, scale));
      } else {
        return static_cast<T>(value);
      }
    });
  }
  switch (from.kind()) {
    case TypeKind::kBoolean:
      return Each<T, bool>([](bool value) { return static_cast<T>(value ? 1 : 0); });
    case TypeKind::kTimestamp:
      return Each<T, std::int64_t>(
          [](std::int64_t micros) { return static_cast<T>(static_cast<double>(micros) / 1e6); });
    case TypeKind::kDate:
      return Each<T, std::int32_t>([](std::int32_t) -> std::optional<T> { return std::nullopt; });
    default:
      return Error::Internal("no cast from " + from.Sql() + " to " + rule.to.Sql());
  }
}

/// An exact decimal value brought to the target's scale; nullopt or an error where it does not fit.
std::optional<Int128> FitDecimal(Int128 value, int scale, const Rule& rule) {
  int precision = rule.to.precision();
  int to_scale = rule.to.scale();
  Int128 out = 0;
  bool fits = true;
  if (scale >= to_scale) {
    out = DropDigits(value, scale - to_scale);
  } else {
    fits = !__builtin_mul_overflow(value, PowerOfTen(to_scale - scale), &out);
  }
  Int128 bound = PowerOfTen(precision);
  if (fits && out < bound && out > -bound) {
    return out;
  }
  if (rule.mode == CastMode::kAnsi) {
    Fail(DecimalOverflow(value, scale, precision, to_scale), rule);
  }
  return std::nullopt;
}

std::optional<Int128> DecimalFromText(Str text, const Rule& rule) {
  Int128 value = 0;
  switch (ParseDecimal(text, rule.to.precision(), rule.to.scale(), &value)) {
    case DecimalParse::kOk:
      return value;
    case DecimalParse::kMalformed:
      if (rule.mode == CastMode::kAnsi) {
        FailInvalid(rule, text);
      }
      return std::nullopt;
    case DecimalParse::kOverflow:
      break;
  }
  if (rule.mode == CastMode::kAnsi) {
    Fail(Error(ErrorKind::kInvalidArgument, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION",
               "The " + std::string(text) + " cannot be represented as Decimal(" + std::to_string(rule.to.precision()) +
                   ", " + std::to_string(rule.to.scale()) +
                   "). If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error, and return NULL "
                   "instead.")
             .With("value", std::string(text))
             .With("precision", std::to_string(rule.to.precision()))
             .With("scale", std::to_string(rule.to.scale()))
             .With("config", "\"spark.sql.ansi.enabled\""),
         rule);
  }
  return std::nullopt;
}

template <typename T>
Result<Caster> ToDecimalCarrier(const Rule& rule) {
  const DataType& from = rule.from;
  auto narrow = [](std::optional<Int128> value) -> std::optional<T> {
    if (!value) {
      return std::nullopt;
    }
    return static_cast<T>(*value);
  };
  if (from.IsString()) {
    return Each<T, Str>([rule, narrow](Str text) { return narrow(DecimalFromText(text, rule)); });
  }
  if (from.IsNumeric()) {
    int scale = from.Is(TypeKind::kDecimal) ? from.scale() : 0;
    return FromNumber<T>(from, [rule, narrow, scale](auto value) -> std::optional<T> {
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        if (!std::isfinite(value)) {
          return std::nullopt;
        }
        Int128 decimal = 0;
        if (DecimalOfReal(value, rule.to.precision(), rule.to.scale(), &decimal) == DecimalParse::kOk) {
          return static_cast<T>(decimal);
        }
        return narrow(DecimalFromText(JavaDoubleToString(value), rule));
      } else {
        return narrow(FitDecimal(Int128{value}, scale, rule));
      }
    });
  }
  switch (from.kind()) {
    case TypeKind::kBoolean:
      return Each<T, bool>([rule, narrow](bool value) { return narrow(FitDecimal(value ? 1 : 0, 0, rule)); });
    case TypeKind::kTimestamp:
      return Each<T, std::int64_t>([rule, narrow](std::int64_t micros) { return narrow(FitDecimal(micros, 6, rule)); });
    case TypeKind::kDate:
      return Each<T, std::int32_t>([](std::int32_t) -> std::optional<T> { return std::nullopt; });
    case TypeKind::kDayTimeInterval: {
      std::int64_t unit = kUnitMicros[from.scale()];
      bool seconds = from.scale() == 3;
      return Each<T, std::int64_t>([rule, narrow, unit, seconds](std::int64_t micros) {
        return narrow(seconds ? FitDecimal(micros, 6, rule) : FitDecimal(micros / unit, 0, rule));
      });
    }
    case TypeKind::kYearMonthInterval: {
      int unit = from.scale() == 0 ? 12 : 1;
      return Each<T, std::int32_t>(
          [rule, narrow, unit](std::int32_t months) { return narrow(FitDecimal(months / unit, 0, rule)); });
    }
    default:
      return Error::Internal("no cast from " + from.Sql() + " to " + rule.to.Sql());
  }
}

Result<Caster> ToBoolean(const Rule& rule) {
  const DataType& from = rule.from;
  if (from.IsString()) {
    return Each<bool, Str>([rule](Str text) {
      auto value = ParseBoolean(text);
      if (!value && rule.mode == CastMode::kAnsi) {
        FailInvalid(rule, text);
      }
      return value;
    });
  }
  if (from.IsNumeric()) {
    return FromNumber<bool>(from, [](auto value) -> bool { return value != 0; });
  }
  if (from.Is(TypeKind::kTimestamp)) {
    return Each<bool, std::int64_t>([](std::int64_t value) { return value != 0; });
  }
  return Each<bool, std::int32_t>([](std::int32_t) -> std::optional<bool> { return std::nullopt; });
}

Result<Caster> ToText(const Rule& rule) {
  if (rule.from.IsString() || rule.from.Is(TypeKind::kBinary)) {
    return Each<Str, Str>([](Str text) { return text; });
  }
  return Caster([rule](duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out) {
    ValueText text(rule.from, rule.zone);
    text.Bind(in, count);
    auto* data = duckdb::FlatVector::GetData<duckdb::string_t>(out);
    auto& validity = duckdb::FlatVector::Validity(out);
    std::string buffer;
    for (duckdb::idx_t row = 0; row < count; ++row) {
      if (text.IsNull(row)) {
        validity.SetInvalid(row);
        continue;
      }
      buffer.clear();
      text.Append(row, buffer);
      data[row] = duckdb::StringVector::AddStringOrBlob(out, buffer.data(), buffer.size());
    }
  });
}

Result<Caster> ToBinary(const Rule& rule) {
  if (rule.from.IsString() || rule.from.Is(TypeKind::kBinary)) {
    return Each<Str, Str>([](Str text) { return text; });
  }
  return WithInteger(rule.from.kind(), [](auto zero) -> Caster {
    using T = decltype(zero);
    return Each<Str, T>([](T value) {
      std::string bytes;
      for (int shift = (static_cast<int>(sizeof(T)) - 1) * 8; shift >= 0; shift -= 8) {
        bytes += static_cast<char>((static_cast<std::uint64_t>(std::int64_t{value}) >> shift) & 0xff);
      }
      return bytes;
    });
  });
}

Result<Caster> ToDate(const Rule& rule) {
  auto zone = rule.zone;
  switch (rule.from.kind()) {
    case TypeKind::kTimestamp:
      return Each<std::int32_t, std::int64_t>([zone](std::int64_t micros) {
        return static_cast<std::int32_t>(FloorDivide(zone->UtcToLocal(micros), kMicrosPerDay));
      });
    case TypeKind::kTimestampNtz:
      return Each<std::int32_t, std::int64_t>(
          [](std::int64_t micros) { return static_cast<std::int32_t>(FloorDivide(micros, kMicrosPerDay)); });
    default:
      return Each<std::int32_t, Str>([rule](Str text) -> std::optional<std::int32_t> {
        auto days = types::ParseDate(text);
        if (!days || *days > std::numeric_limits<std::int32_t>::max() ||
            *days < std::numeric_limits<std::int32_t>::min()) {
          if (rule.mode == CastMode::kAnsi) {
            FailInvalid(rule, text);
          }
          return std::nullopt;
        }
        return static_cast<std::int32_t>(*days);
      });
  }
}

std::int64_t SecondsToMicros(std::int64_t seconds) {
  std::int64_t micros = 0;
  if (__builtin_mul_overflow(seconds, kMicrosPerSecond, &micros)) {
    return seconds > 0 ? std::numeric_limits<std::int64_t>::max() : std::numeric_limits<std::int64_t>::min();
  }
  return micros;
}

/// `[T]h:m...`: no date before the first colon.
bool IsTimeOfDay(Str text) {
  std::size_t i = text.find_first_not_of(" \t\r\n");
  if (i == Str::npos) {
    return false;
  }
  i += text[i] == 'T' ? 1 : 0;
  std::size_t digits = 0;
  while (i < text.size() && text[i] >= '0' && text[i] <= '9') {
    ++i;
    ++digits;
  }
  return (digits == 1 || digits == 2) && i < text.size() && text[i] == ':';
}

Result<Caster> ToTimestamp(const Rule& rule) {
  auto zone = rule.zone;
  const DataType& from = rule.from;
  bool ntz = rule.to.Is(TypeKind::kTimestampNtz);
  if (from.IsString()) {
    std::string zone_id = zone->id();
    return Each<std::int64_t, Str>([rule, ntz, zone, zone_id](Str text) {
      auto micros = ntz ? types::ParseTimestampNtz(text) : types::ParseTimestamp(text, zone_id);
      if (!micros && !ntz && IsTimeOfDay(text)) {
        // A time alone is one of today.
        const std::int64_t local = zone->UtcToLocal(Clock::System()->NowMicros());
        const std::size_t first = text.find_first_not_of(" \t\r\nT");
        micros = types::ParseTimestamp(types::DateToString(FloorDivide(local, kMicrosPerDay)) + " " +
                                           std::string(text.substr(first == Str::npos ? text.size() : first)),
                                       zone_id);
      }
      if (!micros && rule.mode == CastMode::kAnsi) {
        FailInvalid(rule, text);
      }
      return micros;
    });
  }
  switch (from.kind()) {
    case TypeKind::kDate:
      return Each<std::int64_t, std::int32_t>([zone, ntz](std::int32_t days) {
        std::int64_t local = days * kMicrosPerDay;
        return ntz ? local : zone->LocalToUtc(local);
      });
    case TypeKind::kTimestamp:
      return Each<std::int64_t, std::int64_t>([zone](std::int64_t micros) { return zone->UtcToLocal(micros); });
    case TypeKind::kTimestampNtz:
      return Each<std::int64_t, std::int64_t>([zone](std::int64_t micros) { return zone->LocalToUtc(micros); });
    case TypeKind::kBoolean:
      return Each<std::int64_t, bool>([](bool value) { return std::int64_t{value ? 1 : 0}; });
    default:
      break;
  }
  if (!from.IsNumeric()) {
    return Error::Internal("no cast from " + from.Sql() + " to " + rule.to.Sql());
  }
  int scale = from.scale();
  return FromNumber<std::int64_t>(from, [rule, scale](auto value) -> std::optional<std::int64_t> {
    using V = decltype(value);
    if constexpr (std::is_floating_point_v<V>) {
      if (!std::isfinite(value)) {
        if (rule.mode == CastMode::kAnsi) {
          FailInvalid(rule, JavaDoubleToString(value), false);
        }
        return std::nullopt;
      }
      double micros = static_cast<double>(value) * 1e6;
      if (micros >= 9223372036854775807.0 || micros <= -9223372036854775808.0) {
        if (rule.mode == CastMode::kTry) {
          return std::nullopt;
        }
        if (rule.mode == CastMode::kAnsi) {
          Rule inner = rule;
          inner.from = DataType::Double();
          inner.to = DataType::Long();
          FailOverflow(inner, JavaDoubleToString(micros) + "D");
        }
      }
      if (micros >= 9223372036854775807.0) {
        return std::numeric_limits<std::int64_t>::max();
      }
      if (micros <= -9223372036854775808.0) {
        return std::numeric_limits<std::int64_t>::min();
      }
      return static_cast<std::int64_t>(micros);
    } else if constexpr (std::is_same_v<V, Int128>) {
      // Truncated to microseconds.
      Int128 micros = scale > 6 ? value / PowerOfTen(scale - 6) : value * PowerOfTen(6 - scale);
      return static_cast<std::int64_t>(micros);
    } else {
      return SecondsToMicros(value);
    }
  });
}

Result<Caster> ToDayTime(const Rule& rule) {
  const DataType& from = rule.from;
  DataType to = rule.to;
  std::int64_t unit = kUnitMicros[to.scale()];
  if (from.IsString()) {
    return Each<std::int64_t, Str>([rule](Str text) {
      auto micros = ParseDayTime(text, rule.to);
      if (!micros && rule.mode == CastMode::kAnsi) {
        Fail(Error(ErrorKind::kInvalidArgument, "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING_WITH_NOTICE",
                   "Error parsing '" + std::string(text) +
                       "' to interval. Please ensure that the value provided is in a "
                       "valid format for defining an interval: " +
                       rule.to.Sql() + ".")
                 .Family(ErrorFamily::kIllegalArgument),
             rule);
      }
      return micros;
    });
  }
  if (from.Is(TypeKind::kDayTimeInterval)) {
    bool keep = to.scale() == 3;
    return Each<std::int64_t, std::int64_t>(
        [unit, keep](std::int64_t micros) { return keep ? micros : micros - micros % unit; });
  }
  int scale = from.Is(TypeKind::kDecimal) ? from.scale() : 0;
  return FromNumber<std::int64_t>(from, [rule, unit, scale](auto value) -> std::optional<std::int64_t> {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      return std::nullopt;
    } else {
      Int128 micros = 0;
      bool overflow = __builtin_mul_overflow(Int128{value}, Int128{unit}, &micros);
      micros = DropDigits(micros, scale);
      if (overflow || micros > std::numeric_limits<std::int64_t>::max() ||
          micros < std::numeric_limits<std::int64_t>::min()) {
        if (rule.mode == CastMode::kAnsi) {
          FailOverflow(rule, types::DecimalToString(value, scale));
        }
        return std::nullopt;
      }
      return static_cast<std::int64_t>(micros);
    }
  });
}

Result<Caster> ToYearMonth(const Rule& rule) {
  const DataType& from = rule.from;
  int unit = rule.to.scale() == 0 ? 12 : 1;
  if (from.IsString()) {
    return Each<std::int32_t, Str>([rule](Str text) -> std::optional<std::int32_t> {
      auto months = ParseYearMonth(text, rule.to);
      if (!months) {
        if (rule.mode == CastMode::kAnsi) {
          Fail(Error(ErrorKind::kInvalidArgument, "INVALID_INTERVAL_FORMAT.UNMATCHED_FORMAT_STRING_WITH_NOTICE",
                     "Error parsing '" + std::string(text) +
                         "' to interval. Please ensure that the value provided is in "
                         "a valid format for defining an interval: " +
                         rule.to.Sql() + ".")
                   .Family(ErrorFamily::kIllegalArgument),
               rule);
        }
        return std::nullopt;
      }
      return static_cast<std::int32_t>(*months);
    });
  }
  if (from.Is(TypeKind::kYearMonthInterval)) {
    return Each<std::int32_t, std::int32_t>([unit](std::int32_t months) { return months - months % unit; });
  }
  int scale = from.Is(TypeKind::kDecimal) ? from.scale() : 0;
  return FromNumber<std::int32_t>(from, [rule, unit, scale](auto value) -> std::optional<std::int32_t> {
    if constexpr (std::is_floating_point_v<decltype(value)>) {
      return std::nullopt;
    } else {
      Int128 months = DropDigits(Int128{value} * unit, scale);
      if (months > std::numeric_limits<std::int32_t>::max() || months < std::numeric_limits<std::int32_t>::min()) {
        if (rule.mode == CastMode::kAnsi) {
          FailOverflow(rule, types::DecimalToString(value, scale));
        }
        return std::nullopt;
      }
      return static_cast<std::int32_t>(months);
    }
  });
}

/// Text that is no interval is NULL in every mode.
Result<Caster> ToCalendarInterval(const Rule&) {
  return Caster([](duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out) {
    Column column(in, count);
    auto& parts = duckdb::StructVector::GetEntries(out);
    for (duckdb::idx_t row = 0; row < count; ++row) {
      std::optional<types::CalendarInterval> value;
      if (!column.IsNull(row)) {
        auto parsed = plan::ParseIntervalText(column.Get<Str>(row));
        if (parsed.ok()) {
          value = *parsed;
        }
      }
      if (!value) {
        duckdb::FlatVector::SetNull(out, row, true);
        continue;
      }
      duckdb::FlatVector::GetData<std::int32_t>(*parts[0])[row] = value->months;
      duckdb::FlatVector::GetData<std::int32_t>(*parts[1])[row] = value->days;
      duckdb::FlatVector::GetData<std::int64_t>(*parts[2])[row] = value->micros;
    }
  });
}

/// Casts the elements of lists: only those that a row that is not NULL holds.
Caster ListCaster(std::vector<Caster> parts, bool is_map) {
  return [parts = std::move(parts), is_map](duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out) {
    Column column(in, count);
    auto* entries = column.Data<duckdb::list_entry_t>();
    auto* out_entries = duckdb::FlatVector::GetData<duckdb::list_entry_t>(out);
    auto& validity = duckdb::FlatVector::Validity(out);
    duckdb::idx_t total = 0;
    for (duckdb::idx_t row = 0; row < count; ++row) {
      total += column.IsNull(row) ? 0 : entries[column.Index(row)].length;
    }
    duckdb::SelectionVector elements(std::max<duckdb::idx_t>(total, 1));
    duckdb::idx_t next = 0;
    for (duckdb::idx_t row = 0; row < count; ++row) {
      if (column.IsNull(row)) {
        validity.SetInvalid(row);
        out_entries[row] = duckdb::list_entry_t(next, 0);
        continue;
      }
      const auto& entry = entries[column.Index(row)];
      out_entries[row] = duckdb::list_entry_t(next, entry.length);
      for (duckdb::idx_t i = 0; i < entry.length; ++i) {
        elements.set_index(next++, entry.offset + i);
      }
    }
    duckdb::ListVector::Reserve(out, total);
    duckdb::ListVector::SetListSize(out, total);
    if (total == 0) {
      return;
    }
    if (is_map) {
      duckdb::Vector keys(duckdb::MapVector::GetKeys(in), elements, total);
      duckdb::Vector values(duckdb::MapVector::GetValues(in), elements, total);
      parts[0](keys, total, duckdb::MapVector::GetKeys(out));
      parts[1](values, total, duckdb::MapVector::GetValues(out));
    } else {
      duckdb::Vector child(duckdb::ListVector::GetEntry(in), elements, total);
      parts[0](child, total, duckdb::ListVector::GetEntry(out));
    }
  };
}

Caster StructCaster(std::vector<Caster> parts) {
  return [parts = std::move(parts)](duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out) {
    // Rows that are NULL are left out, so that what their fields happen to hold cannot fail.
    Column column(in, count);
    duckdb::SelectionVector rows(std::max<duckdb::idx_t>(count, 1));
    duckdb::idx_t valid = 0;
    for (duckdb::idx_t row = 0; row < count; ++row) {
      if (!column.IsNull(row)) {
        rows.set_index(valid++, row);
      }
    }
    auto& children = duckdb::StructVector::GetEntries(out);
    if (valid == count) {
      in.Flatten(count);
      auto& sources = duckdb::StructVector::GetEntries(in);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        parts[i](*sources[i], count, *children[i]);
      }
      return;
    }
    duckdb::Vector packed_rows(in, rows, valid);
    packed_rows.Flatten(valid);
    auto& sources = duckdb::StructVector::GetEntries(packed_rows);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      duckdb::Vector packed(children[i]->GetType(), std::max<duckdb::idx_t>(valid, 1));
      if (valid > 0) {
        parts[i](*sources[i], valid, packed);
      }
      for (duckdb::idx_t k = 0; k < valid; ++k) {
        duckdb::VectorOperations::Copy(packed, *children[i], k + 1, k, rows.get_index(k));
      }
    }
    for (duckdb::idx_t row = 0; row < count; ++row) {
      if (column.IsNull(row)) {
        duckdb::FlatVector::SetNull(out, row, true);
      }
    }
  };
}

Caster CopyCaster() {
  return [](duckdb::Vector& in, duckdb::idx_t count, duckdb::Vector& out) {
    duckdb::VectorOperations::Copy(in, out, count, 0, 0);
  };
}

Caster NullCaster() {
  return [](duckdb::Vector&, duckdb::idx_t count, duckdb::Vector& out) {
    for (duckdb::idx_t row = 0; row < count; ++row) {
      duckdb::FlatVector::SetNull(out, row, true);
    }
  };
}

Result<Caster> Build(const Rule& rule) {
  const DataType& from = rule.from;
  const DataType& to = rule.to;
  if (from.Is(TypeKind::kVoid)) {
    return NullCaster();
  }
  if (from.EqualsIgnoringNullability(to)) {
    return CopyCaster();
  }
  if (from.Is(TypeKind::kVariant)) {
    return MakeVariantCaster(to, rule.mode, rule.zone, rule.context);
  }
  if (to.Is(TypeKind::kVariant)) {
    return MakeToVariantCaster(from);
  }
  switch (to.kind()) {
    case TypeKind::kBoolean:
      return ToBoolean(rule);
    case TypeKind::kByte:
      return ToInteger<std::int8_t>(rule);
    case TypeKind::kShort:
      return ToInteger<std::int16_t>(rule);
    case TypeKind::kInt:
      return ToInteger<std::int32_t>(rule);
    case TypeKind::kLong:
      return ToInteger<std::int64_t>(rule);
    case TypeKind::kFloat:
      return ToReal<float>(rule);
    case TypeKind::kDouble:
      return ToReal<double>(rule);
    case TypeKind::kDecimal:
      return WithDecimalCarrier(to.precision(),
                                [&](auto zero) -> Result<Caster> { return ToDecimalCarrier<decltype(zero)>(rule); });
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return ToText(rule);
    case TypeKind::kBinary:
      return ToBinary(rule);
    case TypeKind::kDate:
      return ToDate(rule);
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return ToTimestamp(rule);
    case TypeKind::kDayTimeInterval:
      return ToDayTime(rule);
    case TypeKind::kYearMonthInterval:
      return ToYearMonth(rule);
    case TypeKind::kCalendarInterval:
      return ToCalendarInterval(rule);
    case TypeKind::kArray: {
      Rule part = rule;
      part.from = from.element();
      part.to = to.element();
      FLEUVE_ASSIGN(Caster element, Build(part));
      return ListCaster({element}, false);
    }
    case TypeKind::kMap: {
      Rule part = rule;
      part.from = from.key();
      part.to = to.key();
      FLEUVE_ASSIGN(Caster key, Build(part));
      part.from = from.value();
      part.to = to.value();
      FLEUVE_ASSIGN(Caster value, Build(part));
      return ListCaster({key, value}, true);
    }
    case TypeKind::kStruct: {
      std::vector<Caster> parts;
      for (std::size_t i = 0; i < to.fields().size(); ++i) {
        Rule part = rule;
        part.from = from.fields()[i].type;
        part.to = to.fields()[i].type;
        FLEUVE_ASSIGN(Caster field, Build(part));
        parts.push_back(std::move(field));
      }
      return StructCaster(std::move(parts));
    }
    default:
      return Error::Internal("no cast from " + from.Sql() + " to " + to.Sql());
  }
}

Result<Kernel> MakeCastKernel(const ScalarSite& site) {
  FLEUVE_ASSIGN(Caster caster, MakeCaster(site.ArgumentType(0), site.expr.type, site.expr.cast_mode, site.expr.zone,
                                          site.expr.context));
  return Kernel([caster = std::move(caster)](duckdb::DataChunk& args, duckdb::Vector& result) {
    bool constant = args.data[0].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    caster(args.data[0], constant ? 1 : args.size(), result);
    if (constant) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
    }
  });
}

}  // namespace

Result<Caster> MakeCaster(const DataType& from, const DataType& to, CastMode mode, const std::string& zone,
                          std::shared_ptr<const QueryContext> context) {
  FLEUVE_ASSIGN(auto found, types::TimeZone::Find(zone.empty() ? "UTC" : zone));
  return Build(Rule{from, to, mode, std::move(found), std::move(context)});
}

const ScalarTable& CastKernels() {
  static const ScalarTable table = {{"spark_cast", Nulls::kPropagate, MakeCastKernel}};
  return table;
}

}  // namespace fleuve::engine
