#include <cmath>
#include <limits>

#include "engine/functions/calendar_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using plan::CastMode;
using types::DataType;
using types::TypeKind;

Error IntervalOverflow() {
  return Error(ErrorKind::kInvalidArgument, "INTERVAL_ARITHMETIC_OVERFLOW.WITHOUT_SUGGESTION",
               "Integer overflow while operating with intervals.")
      .Family(ErrorFamily::kArithmetic);
}

/// Reads the three parts of calendar intervals.
class CalendarColumn {
 public:
  CalendarColumn(duckdb::Vector& vector, duckdb::idx_t count) {
    duckdb::Vector::RecursiveToUnifiedFormat(vector, count, format_);
  }
  bool IsNull(duckdb::idx_t row) const {
    return !format_.unified.validity.RowIsValid(format_.unified.sel->get_index(row));
  }
  types::CalendarInterval Get(duckdb::idx_t row) const {
    duckdb::idx_t index = format_.unified.sel->get_index(row);
    return {Part<std::int32_t>(0, index), Part<std::int32_t>(1, index), Part<std::int64_t>(2, index)};
  }

 private:
  template <typename T>
  T Part(std::size_t i, duckdb::idx_t index) const {
    const auto& child = format_.children[i].unified;
    return duckdb::UnifiedVectorFormat::GetData<T>(child)[child.sel->get_index(index)];
  }
  duckdb::RecursiveUnifiedVectorFormat format_;
};

void StoreCalendar(duckdb::Vector& result, duckdb::idx_t row, const types::CalendarInterval& value) {
  auto& parts = duckdb::StructVector::GetEntries(result);
  duckdb::FlatVector::GetData<std::int32_t>(*parts[0])[row] = value.months;
  duckdb::FlatVector::GetData<std::int32_t>(*parts[1])[row] = value.days;
  duckdb::FlatVector::GetData<std::int64_t>(*parts[2])[row] = value.micros;
}

/// time_add(date or time, interval, zone)
Result<Kernel> MakeTimeAdd(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  bool date = site.ArgumentType(0).Is(TypeKind::kDate);
  bool ntz = site.ArgumentType(0).Is(TypeKind::kTimestampNtz);
  TypeKind kind = site.ArgumentType(1).kind();
  FLEUVE_ASSIGN(auto zone, types::TimeZone::Find(ntz || date ? std::string("UTC") : site.Literal(2).text()));
  return Kernel([=](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column time(args.data[0], args.size());
    Column interval(args.data[1], args.size());
    std::optional<CalendarColumn> calendar;
    if (kind == TypeKind::kCalendarInterval) {
      calendar.emplace(args.data[1], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (time.IsNull(row) || interval.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      types::CalendarInterval amount;
      if (calendar) {
        amount = calendar->Get(row);
      } else if (kind == TypeKind::kYearMonthInterval) {
        amount.months = interval.Get<std::int32_t>(row);
      } else {
        amount.micros = interval.Get<std::int64_t>(row);
      }
      std::int64_t out = 0;
      bool fine = true;
      if (date) {
        if (calendar && amount.micros != 0) {
          if (is_try) {
            duckdb::FlatVector::SetNull(result, row, true);
            continue;
          }
          ThrowRowError(
              Error(ErrorKind::kInvalidArgument, "INVALID_INTERVAL_WITH_MICROSECONDS_ADDITION",
                    "Cannot add an interval to a date because its microseconds part is not 0. To resolve this, "
                    "cast the input date to a timestamp, which supports the addition of intervals with "
                    "non-zero microseconds.")
                  .Family(ErrorFamily::kIllegalArgument));
        }
        std::int64_t days = time.Get<std::int32_t>(row);
        out = (amount.months != 0 ? AddMonths(days, amount.months) : days) + amount.days + amount.micros / kDayMicros;
        fine = out >= std::numeric_limits<std::int32_t>::min() && out <= std::numeric_limits<std::int32_t>::max();
      } else {
        fine = AddInterval(time.Get<std::int64_t>(row), amount.months, amount.days, 0, *zone, &out);
        if (fine && kind == TypeKind::kDayTimeInterval) {
          // Whole days follow the calendar of the zone, as Spark adds them.
          std::int64_t days = amount.micros / kDayMicros;
          fine = AddInterval(out, 0, days, amount.micros % kDayMicros, *zone, &out);
        } else if (fine) {
          fine = !__builtin_add_overflow(out, amount.micros, &out);
        }
      }
      if (!fine) {
        if (is_try) {
          duckdb::FlatVector::SetNull(result, row, true);
          continue;
        }
        ThrowRowError(Error(ErrorKind::kInvalidArgument, "DATETIME_OVERFLOW", "Datetime operation overflow.")
                          .Family(ErrorFamily::kArithmetic));
      }
      if (date) {
        duckdb::FlatVector::GetData<std::int32_t>(result)[row] = static_cast<std::int32_t>(out);
      } else {
        duckdb::FlatVector::GetData<std::int64_t>(result)[row] = out;
      }
    }
  });
}

/// timestamp_minus_timestamp(a, b, zone): the difference of the wall-clock times.
Result<Kernel> MakeTimestampDifference(const ScalarSite& site) {
  bool ntz = site.ArgumentType(0).Is(TypeKind::kTimestampNtz);
  FLEUVE_ASSIGN(auto zone, types::TimeZone::Find(site.Literal(2).text()));
  return MapRows<std::int64_t, std::int64_t, std::int64_t>(
      [ntz, zone](std::int64_t a, std::int64_t b) { return ntz ? a - b : zone->UtcToLocal(a) - zone->UtcToLocal(b); });
}

template <bool kSubtract>
Result<Kernel> MakeIntervalSum(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  auto combine = [is_try]<typename T>(T a, T b) -> std::optional<T> {
    T out = 0;
    bool overflow = kSubtract ? __builtin_sub_overflow(a, b, &out) : __builtin_add_overflow(a, b, &out);
    if (overflow) {
      if (is_try) {
        return std::nullopt;
      }
      ThrowRowError(IntervalOverflow());
    }
    return out;
  };
  switch (site.expr.type.kind()) {
    case TypeKind::kYearMonthInterval:
      return MapRows<std::int32_t, std::int32_t, std::int32_t>(
          [combine](std::int32_t a, std::int32_t b) { return combine(a, b); });
    case TypeKind::kDayTimeInterval:
      return MapRows<std::int64_t, std::int64_t, std::int64_t>(
          [combine](std::int64_t a, std::int64_t b) { return combine(a, b); });
    default:
      return Kernel([combine](duckdb::DataChunk& args, duckdb::Vector& result) {
        CalendarColumn left(args.data[0], args.size());
        CalendarColumn right(args.data[1], args.size());
        result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
        for (duckdb::idx_t row = 0; row < args.size(); ++row) {
          if (left.IsNull(row) || right.IsNull(row)) {
            duckdb::FlatVector::SetNull(result, row, true);
            continue;
          }
          auto a = left.Get(row);
          auto b = right.Get(row);
          auto months = combine(a.months, b.months);
          auto days = combine(a.days, b.days);
          auto micros = combine(a.micros, b.micros);
          if (!months || !days || !micros) {
            duckdb::FlatVector::SetNull(result, row, true);
          } else {
            StoreCalendar(result, row, {*months, *days, *micros});
          }
        }
      });
  }
}

Result<Kernel> MakeCalendarNegate(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    CalendarColumn input(args.data[0], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (input.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      auto value = input.Get(row);
      if (value.months == std::numeric_limits<std::int32_t>::min() ||
          value.days == std::numeric_limits<std::int32_t>::min() ||
          value.micros == std::numeric_limits<std::int64_t>::min()) {
        ThrowRowError(IntervalOverflow());
      }
      StoreCalendar(result, row, {-value.months, -value.days, -value.micros});
    }
  });
}

/// Interval times or by a number: rounded half up.
template <bool kDivide>
Result<Kernel> MakeIntervalScale(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  const DataType number = site.ArgumentType(1);
  bool months = site.expr.type.Is(TypeKind::kYearMonthInterval);
  if (site.expr.type.Is(TypeKind::kCalendarInterval)) {
    return Error::Unsupported("arithmetic of calendar intervals with numbers");
  }
  return Kernel([=](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column interval(args.data[0], args.size());
    Column factor(args.data[1], args.size());
    std::optional<DecimalColumn> decimal;
    if (number.Is(TypeKind::kDecimal)) {
      decimal.emplace(args.data[1], args.size(), number.precision());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (interval.IsNull(row) || factor.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      Int128 value = months ? Int128{interval.Get<std::int32_t>(row)} : Int128{interval.Get<std::int64_t>(row)};
      Int128 out = 0;
      bool overflow = false;
      bool by_zero = false;
      if (number.Is(TypeKind::kDouble)) {
        double x = factor.Get<double>(row);
        by_zero = kDivide && x == 0;
        double product = kDivide ? static_cast<double>(value) / x : static_cast<double>(value) * x;
        overflow = !std::isfinite(product) || std::fabs(product) > 9.3e18;
        if (!overflow) {
          out = static_cast<Int128>(std::floor(std::fabs(product) + 0.5)) * (product < 0 ? -1 : 1);
        }
      } else {
        int scale = decimal ? number.scale() : 0;
        Int128 x = decimal ? decimal->Get(row) : Int128{factor.Get<std::int64_t>(row)};
        if (kDivide) {
          by_zero = x == 0;
          Int128 top = 0;
          overflow = __builtin_mul_overflow(value, PowerOfTen(scale), &top);
          if (!by_zero && !overflow) {
            Int128 quotient = top / x;
            Int128 rest = top % x;
            Int128 magnitude = rest < 0 ? -rest : rest;
            Int128 divisor = x < 0 ? -x : x;
            if (magnitude >= divisor - magnitude && rest != 0) {
              quotient += (top < 0) != (x < 0) ? -1 : 1;
            }
            out = quotient;
          }
        } else {
          Int128 product = 0;
          overflow = __builtin_mul_overflow(value, x, &product);
          out = DropDigits(product, scale);
        }
      }
      Int128 most =
          months ? Int128{std::numeric_limits<std::int32_t>::max()} : std::numeric_limits<std::int64_t>::max();
      overflow = overflow || out > most || out < -most - 1;
      if (by_zero || overflow) {
        if (is_try) {
          duckdb::FlatVector::SetNull(result, row, true);
          continue;
        }
        if (by_zero) {
          ThrowRowError(Error(ErrorKind::kInvalidArgument, "INTERVAL_DIVIDED_BY_ZERO",
                              "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead.")
                            .Family(ErrorFamily::kArithmetic));
        }
        ThrowRowError(IntervalOverflow());
      }
      if (months) {
        duckdb::FlatVector::GetData<std::int32_t>(result)[row] = static_cast<std::int32_t>(out);
      } else {
        duckdb::FlatVector::GetData<std::int64_t>(result)[row] = static_cast<std::int64_t>(out);
      }
    }
  });
}

/// interval_field(interval, field)
Result<Kernel> MakeIntervalField(const ScalarSite& site) {
  std::string field = site.Literal(1).text();
  TypeKind kind = site.ArgumentType(0).kind();
  auto result_kind = site.expr.type.kind();
  return Kernel([=](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column input(args.data[0], args.size());
    std::optional<CalendarColumn> calendar;
    if (kind == TypeKind::kCalendarInterval) {
      calendar.emplace(args.data[0], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (input.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      std::int64_t months = 0;
      std::int64_t days = 0;
      std::int64_t micros = 0;
      if (calendar) {
        auto value = calendar->Get(row);
        months = value.months;
        days = value.days;
        micros = value.micros;
      } else if (kind == TypeKind::kYearMonthInterval) {
        months = input.Get<std::int32_t>(row);
      } else {
        micros = input.Get<std::int64_t>(row);
        days = micros / kDayMicros;
        micros %= kDayMicros;
      }
      std::int64_t value = field == "year"     ? months / 12
                           : field == "month"  ? months % 12
                           : field == "day"    ? days
                           : field == "hour"   ? micros / 3600000000
                           : field == "minute" ? micros / 60000000 % 60
                                               : micros % 60000000;
      if (result_kind == TypeKind::kByte) {
        duckdb::FlatVector::GetData<std::int8_t>(result)[row] = static_cast<std::int8_t>(value);
      } else {
        duckdb::FlatVector::GetData<std::int32_t>(result)[row] = static_cast<std::int32_t>(value);
      }
    }
  });
}

/// make_interval(years, months, weeks, days, hours, minutes, seconds decimal(18,6))
Result<Kernel> MakeMakeInterval(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  return Kernel([is_try](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::vector<Column> inputs;
    for (std::size_t i = 0; i < 7; ++i) {
      inputs.emplace_back(args.data[i], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      bool null = false;
      for (const Column& input : inputs) {
        null = null || input.IsNull(row);
      }
      if (null) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      auto part = [&](std::size_t i) { return Int128{inputs[i].Get<std::int32_t>(row)}; };
      Int128 months = part(0) * 12 + part(1);
      Int128 days = part(2) * 7 + part(3);
      Int128 micros = part(4) * 3600000000 + part(5) * 60000000 + inputs[6].Get<std::int64_t>(row);
      auto fits = [](Int128 v) {
        return v >= std::numeric_limits<std::int32_t>::min() && v <= std::numeric_limits<std::int32_t>::max();
      };
      if (!fits(months) || !fits(days) || micros > std::numeric_limits<std::int64_t>::max() ||
          micros < std::numeric_limits<std::int64_t>::min()) {
        if (is_try) {
          duckdb::FlatVector::SetNull(result, row, true);
          continue;
        }
        ThrowRowError(IntervalOverflow());
      }
      StoreCalendar(
          result, row,
          {static_cast<std::int32_t>(months), static_cast<std::int32_t>(days), static_cast<std::int64_t>(micros)});
    }
  });
}

Result<Kernel> MakeMakeDayTime(const ScalarSite&) {
  return MapRows<std::int64_t, std::int32_t, std::int32_t, std::int32_t, std::int64_t>(
      [](std::int32_t days, std::int32_t hours, std::int32_t minutes, std::int64_t seconds) {
        Int128 micros = Int128{days} * kDayMicros + Int128{hours} * 3600000000 + Int128{minutes} * 60000000 + seconds;
        if (micros > std::numeric_limits<std::int64_t>::max() || micros < std::numeric_limits<std::int64_t>::min()) {
          ThrowRowError(IntervalOverflow());
        }
        return static_cast<std::int64_t>(micros);
      });
}

Result<Kernel> MakeMakeYearMonth(const ScalarSite&) {
  return MapRows<std::int32_t, std::int32_t, std::int32_t>([](std::int32_t years, std::int32_t months) {
    std::int64_t total = std::int64_t{years} * 12 + months;
    if (total > std::numeric_limits<std::int32_t>::max() || total < std::numeric_limits<std::int32_t>::min()) {
      ThrowRowError(IntervalOverflow());
    }
    return static_cast<std::int32_t>(total);
  });
}

}  // namespace

const ScalarTable& IntervalKernels() {
  static const ScalarTable table = {
      {"spark_time_add", Nulls::kPropagate, MakeTimeAdd},
      {"spark_timestamp_minus_timestamp", Nulls::kPropagate, MakeTimestampDifference},
      {"spark_interval_add", Nulls::kPropagate, MakeIntervalSum<false>},
      {"spark_interval_subtract", Nulls::kPropagate, MakeIntervalSum<true>},
      {"spark_calendar_negate", Nulls::kPropagate, MakeCalendarNegate},
      {"spark_interval_multiply", Nulls::kPropagate, MakeIntervalScale<false>},
      {"spark_interval_divide", Nulls::kPropagate, MakeIntervalScale<true>},
      {"spark_interval_field", Nulls::kPropagate, MakeIntervalField},
      {"spark_make_interval", Nulls::kPropagate, MakeMakeInterval},
      {"spark_make_dt_interval", Nulls::kPropagate, MakeMakeDayTime},
      {"spark_make_ym_interval", Nulls::kPropagate, MakeMakeYearMonth},
  };
  return table;
}

}  // namespace fleuve::engine
