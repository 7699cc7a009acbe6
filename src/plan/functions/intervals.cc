#include <spark/connect/expressions.pb.h>

#include <cctype>
#include <charconv>
#include <limits>

#include "base/bytes.h"
#include "plan/duration_text.h"
#include "plan/functions/registry_internal.h"
#include "sql/parser.h"

namespace fleuve::plan {

namespace {

Error NoInterval(std::string_view text) {
  return Error(ErrorKind::kInvalidArgument, "CANNOT_PARSE_INTERVAL",
               "Unable to parse '" + std::string(text) +
                   "'. Please ensure that the value provided is in a valid format for defining an interval.")
      .With("intervalString", "'" + std::string(text) + "'");
}

}  // namespace

Result<types::CalendarInterval> ParseIntervalText(std::string_view input) {
  std::string lowered = AsciiLower(TrimAscii(input));
  std::string_view text = lowered;
  types::CalendarInterval out;
  auto skip_space = [&] {
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) {
      text.remove_prefix(1);
    }
  };
  if (text.substr(0, 8) == "interval" && (text.size() == 8 || std::isspace(static_cast<unsigned char>(text[8])) != 0)) {
    text.remove_prefix(8);
  }
  skip_space();
  if (text.empty()) {
    return NoInterval(input);
  }
  __int128 months = 0;
  __int128 days = 0;
  __int128 micros = 0;
  while (!text.empty()) {
    int sign = 1;
    if (text.front() == '-' || text.front() == '+') {
      sign = text.front() == '-' ? -1 : 1;
      text.remove_prefix(1);
      skip_space();
    }
    std::size_t digits = 0;
    __int128 whole = 0;
    while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0 && digits < 19) {
      whole = whole * 10 + (text[digits] - '0');
      ++digits;
    }
    std::size_t number = digits;
    text.remove_prefix(digits);
    if (whole > std::numeric_limits<std::int64_t>::max()) {
      return NoInterval(input);
    }
    std::int64_t fraction = 0;
    bool has_fraction = false;
    if (!text.empty() && text.front() == '.') {
      has_fraction = true;
      text.remove_prefix(1);
      std::int64_t scale = 100000;
      std::size_t count = 0;
      while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) != 0) {
        if (++count > 9) {
          return NoInterval(input);
        }
        fraction += (text.front() - '0') * scale;
        scale /= 10;
        text.remove_prefix(1);
        ++number;
      }
    }
    if (number == 0 || text.empty() || std::isspace(static_cast<unsigned char>(text.front())) == 0) {
      return NoInterval(input);
    }
    skip_space();
    std::size_t letters = 0;
    while (letters < text.size() && std::isalpha(static_cast<unsigned char>(text[letters])) != 0) {
      ++letters;
    }
    std::string_view unit = text.substr(0, letters);
    text.remove_prefix(letters);
    if (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) == 0) {
      return NoInterval(input);
    }
    skip_space();
    if (!unit.empty() && unit.back() == 's') {
      unit.remove_suffix(1);
    }
    whole *= sign;
    fraction *= sign;
    if (has_fraction && unit != "second") {
      return NoInterval(input);
    }
    if (unit == "year") {
      months += whole * 12;
    } else if (unit == "month") {
      months += whole;
    } else if (unit == "week") {
      days += whole * 7;
    } else if (unit == "day") {
      days += whole;
    } else if (unit == "hour") {
      micros += whole * 3600000000;
    } else if (unit == "minute") {
      micros += whole * 60000000;
    } else if (unit == "second") {
      micros += whole * 1000000 + fraction;
    } else if (unit == "millisecond") {
      micros += whole * 1000;
    } else if (unit == "microsecond") {
      micros += whole;
    } else {
      return NoInterval(input);
    }
  }
  auto fits32 = [](__int128 v) {
    return v >= std::numeric_limits<std::int32_t>::min() && v <= std::numeric_limits<std::int32_t>::max();
  };
  if (!fits32(months) || !fits32(days) || micros > std::numeric_limits<std::int64_t>::max() ||
      micros < std::numeric_limits<std::int64_t>::min()) {
    return NoInterval(input);
  }
  out.months = static_cast<std::int32_t>(months);
  out.days = static_cast<std::int32_t>(days);
  out.micros = static_cast<std::int64_t>(micros);
  return out;
}

Result<types::CalendarInterval> ParseDurationText(std::string_view input) {
  Result<types::CalendarInterval> plain = ParseIntervalText(input);
  if (plain.ok() || !AsciiLower(TrimAscii(input)).starts_with("interval")) {
    return plain;
  }
  const auto parsed = sql::ParseExpression(input);
  if (!parsed.ok() || !(*parsed)->has_literal()) {
    return plain;
  }
  types::CalendarInterval out;
  if ((*parsed)->literal().has_day_time_interval()) {
    out.micros = (*parsed)->literal().day_time_interval();
  } else if ((*parsed)->literal().has_year_month_interval()) {
    out.months = (*parsed)->literal().year_month_interval();
  } else {
    return plain;
  }
  return out;
}

}  // namespace fleuve::plan

namespace fleuve::plan::functions {

using types::DataType;
using types::Value;

namespace {

Result<ExprPtr> BuildMakeInterval(Call& call) {
  bool is_try = call.name == "try_make_interval" || !call.ansi();
  for (std::size_t i = 0; i < 7; ++i) {
    bool seconds = i == 6;
    DataType type = seconds ? DataType::Decimal(18, 6) : DataType::Int();
    if (i >= call.size()) {
      call.Default(seconds ? Value(types::Int128{0}) : Value(0), type);
    } else {
      FLEUVE_TRY(call.To(i, type));
    }
  }
  return call.Make(is_try ? "spark_make_interval_try" : "spark_make_interval",
                   DataType::Of(types::TypeKind::kCalendarInterval), call.AnyNullable() || is_try, !is_try);
}

Result<ExprPtr> BuildMakeDayTime(Call& call) {
  for (std::size_t i = 0; i < 4; ++i) {
    bool seconds = i == 3;
    DataType type = seconds ? DataType::Decimal(18, 6) : DataType::Int();
    if (i >= call.size()) {
      call.Default(seconds ? Value(types::Int128{0}) : Value(0), type);
    } else {
      FLEUVE_TRY(call.To(i, type));
    }
  }
  return call.Make("spark_make_dt_interval", DataType::DayTimeInterval(0, 3), call.AnyNullable(), true);
}

Result<ExprPtr> BuildMakeYearMonth(Call& call) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (i >= call.size()) {
      call.Default(Value(0), DataType::Int());
    } else {
      FLEUVE_TRY(call.To(i, DataType::Int()));
    }
  }
  return call.Make("spark_make_ym_interval", DataType::YearMonthInterval(0, 1), call.AnyNullable(), true);
}

}  // namespace

const Table& IntervalFunctions() {
  static const Table table = {
      Scalar("make_interval", 0, 7, BuildMakeInterval),
      Scalar("try_make_interval", 0, 7, BuildMakeInterval),
      Scalar("make_dt_interval", 0, 4, BuildMakeDayTime),
      Scalar("make_ym_interval", 0, 2, BuildMakeYearMonth),
  };
  return table;
}

}  // namespace fleuve::plan::functions
