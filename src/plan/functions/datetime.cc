#include <array>

#include "base/bytes.h"
#include "plan/duration_text.h"
#include "plan/functions/registry_internal.h"
#include "types/time_zone.h"

namespace fleuve::plan {

using types::DataType;
using types::TypeKind;
using types::Value;

Result<TimeWindowSpec> AnalyzeTimeWindow(const FunctionCall& source) {
  functions::Call call(source);
  if (call.size() < 2 || call.size() > 4) {
    return call.WrongCount("[2, 4]");
  }
  TimeWindowSpec spec;
  auto micros = [&](std::size_t i) -> Result<std::int64_t> {
    const Expr* node = call.args[i].get();
    while (node->kind == ExprKind::kCast) {
      node = node->children[0].get();
    }
    if (node->kind != ExprKind::kLiteral || node->value.is_null()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "The duration and time inputs to window must be literals.");
    }
    if (node->type.IsIntegral() || node->type.Is(TypeKind::kDayTimeInterval)) {
      return node->value.integer();
    }
    types::CalendarInterval interval;
    if (node->type.Is(TypeKind::kCalendarInterval)) {
      interval = node->value.interval();
    } else if (node->type.IsString()) {
      FLEUVE_ASSIGN(interval, ParseDurationText(node->value.text()));
    } else {
      return call.Unexpected(i, "STRING");
    }
    if (interval.months != 0) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3231",
                   "Intervals greater than a month is not supported (" + call.shown[i] + ").")
          .Family(ErrorFamily::kIllegalArgument);
    }
    return interval.days * std::int64_t{86400000000} + interval.micros;
  };
  FLEUVE_ASSIGN(spec.window, micros(1));
  spec.slide = spec.window;
  if (call.size() > 2) {
    FLEUVE_ASSIGN(spec.slide, micros(2));
  }
  if (call.size() > 3) {
    FLEUVE_ASSIGN(spec.start, micros(3));
  }
  const DataType& type = call.type(0);
  if (type.Is(TypeKind::kStruct)) {
    // The window of a window: its end less a microsecond.
    FLEUVE_ASSIGN(call.args[0], functions::CallNamed(call, "window_time", {call.args[0]}));
  } else if (!type.Is(TypeKind::kTimestamp) && !type.Is(TypeKind::kTimestampNtz)) {
    FLEUVE_TRY(call.To(0, DataType::Timestamp()));
  }
  auto out_of_range = [&](const char* what, std::int64_t value) {
    return call.Mismatch("VALUE_OUT_OF_RANGE", std::string("The `") + what +
                                                   "` must be between (0, 9223372036854775807] (current value = " +
                                                   std::to_string(value) + "L).");
  };
  if (spec.window <= 0) {
    return out_of_range("window_duration", spec.window);
  }
  if (spec.slide <= 0) {
    return out_of_range("slide_duration", spec.slide);
  }
  if (spec.slide > spec.window) {
    return call.Mismatch("PARAMETER_CONSTRAINT_VIOLATION", "The `slide_duration`(" + std::to_string(spec.slide) +
                                                               "L) must be <= the `window_duration`(" +
                                                               std::to_string(spec.window) + "L).");
  }
  if (std::abs(spec.start) >= spec.slide) {
    return call.Mismatch("PARAMETER_CONSTRAINT_VIOLATION", "The `abs(start_time)`(" + std::to_string(spec.start) +
                                                               "L) must be < the `slide_duration`(" +
                                                               std::to_string(spec.slide) + "L).");
  }
  spec.time = call.args[0];
  spec.type = DataType::Struct({{"start", spec.time->type, true, Json()}, {"end", spec.time->type, true, Json()}});
  return spec;
}

ExprPtr MakeTimeWindow(const TimeWindowSpec& spec, std::int64_t index) {
  auto literal = [](std::int64_t value) { return MakeLiteral(Value(value), DataType::Long()); };
  ExprPtr made = MakeCall("spark_window",
                          {spec.time, literal(spec.window), literal(spec.slide), literal(spec.start), literal(index)},
                          spec.type, spec.time->nullable || index > 0);
  return WithDisplay(made, "window");
}

}  // namespace fleuve::plan

namespace fleuve::plan::functions {

namespace {

bool UsesNtz(const Call& call) {
  if (!call.config.conf) {
    return false;
  }
  auto value = call.config.conf("spark.sql.timestampType");
  return value && *value == "TIMESTAMP_NTZ";
}

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// A literal that depends on the time of the execution: `function` names what it is, so that a stream can give it
/// another value in each batch.
ExprPtr MakeCurrent(const char* what, Value value, DataType type) {
  auto made = std::make_shared<Expr>(*MakeLiteral(std::move(value), std::move(type)));
  made->function = what;
  return made;
}

Result<ExprPtr> BuildCurrent(Call& call) {
  std::string display = call.name + "()";
  if (call.name == "current_timezone") {
    return WithDisplay(MakeLiteral(Value(call.config.session_zone), DataType::String()), display);
  }
  std::int64_t now = call.config.now_micros;
  if (call.name == "current_timestamp" || call.name == "now") {
    return WithDisplay(MakeCurrent("current_timestamp", Value(now), DataType::Timestamp()), display);
  }
  FLEUVE_ASSIGN(auto zone, types::TimeZone::Find(call.config.session_zone));
  std::int64_t local = zone->UtcToLocal(now);
  if (call.name == "localtimestamp") {
    return WithDisplay(MakeCurrent("localtimestamp", Value(local), DataType::TimestampNtz()), display);
  }
  return WithDisplay(MakeCurrent("current_date", Value(FloorDiv(local, 86400000000)), DataType::Date()),
                     "current_date()");
}

/// The fields of a date; the name is a constant parameter.
Result<ExprPtr> DateField(Call& call, const char* field, DataType type) {
  FLEUVE_TRY(call.To(0, DataType::Date()));
  call.Hidden(Value(field), DataType::String());
  return call.Make("spark_date_field", std::move(type));
}

Result<void> ToInstant(Call& call, std::size_t i) {
  if (call.type(i).Is(TypeKind::kTimestamp) || call.type(i).Is(TypeKind::kTimestampNtz)) {
    return {};
  }
  return call.To(i, DataType::Timestamp());
}

Result<ExprPtr> TimeField(Call& call, const char* field, DataType type) {
  FLEUVE_TRY(ToInstant(call, 0));
  call.Hidden(Value(field), DataType::String());
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Make("spark_time_field", std::move(type));
}

template <const char* kField>
Result<ExprPtr> BuildDateField(Call& call) {
  return DateField(call, kField, DataType::Int());
}
template <const char* kField>
Result<ExprPtr> BuildTimeField(Call& call) {
  return TimeField(call, kField, DataType::Int());
}
constexpr char kYear[] = "year";
constexpr char kQuarter[] = "quarter";
constexpr char kMonth[] = "month";
constexpr char kDay[] = "day";
constexpr char kDayOfWeek[] = "dayofweek";
constexpr char kWeekday[] = "weekday";
constexpr char kDayOfYear[] = "dayofyear";
constexpr char kWeek[] = "week";
constexpr char kHour[] = "hour";
constexpr char kMinute[] = "minute";
constexpr char kSecond[] = "second";

Result<ExprPtr> BuildDayName(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Date()));
  return call.Make(call.name == "dayname" ? "spark_dayname" : "spark_monthname", DataType::String());
}

/// extract(field, source), date_part.
Result<ExprPtr> BuildExtract(Call& call) {
  std::string display =
      call.name == "date_part" ? call.Display() : call.name + "(" + call.shown[0] + " FROM " + call.shown[1] + ")";
  const Value* literal = call.LiteralOf(0);
  if (literal == nullptr || (!literal->is_null() && !call.type(0).IsString())) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `field` should be a foldable \"STRING\" expression.");
  }
  if (literal->is_null()) {
    return WithDisplay(MakeNull(DataType::Double()), display);
  }
  std::string field = AsciiUpper(literal->text());
  auto is = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (field == name) {
        return true;
      }
    }
    return false;
  };
  Error unknown = Error(ErrorKind::kInvalidArgument, "INVALID_EXTRACT_FIELD",
                        "Cannot extract \"" + literal->text() + "\" from \"" + call.shown[1] + "\".")
                      .With("field", "\"" + literal->text() + "\"")
                      .With("expr", "\"" + call.shown[1] + "\"");
  call.args.erase(call.args.begin());
  call.shown.erase(call.shown.begin());
  const DataType source = call.type(0);
  auto finish = [&](Result<ExprPtr> made) -> Result<ExprPtr> {
    FLEUVE_ASSIGN(ExprPtr expr, std::move(made));
    return WithDisplay(expr, display);
  };
  if (source.Is(TypeKind::kDayTimeInterval) || source.Is(TypeKind::kYearMonthInterval) ||
      source.Is(TypeKind::kCalendarInterval)) {
    bool ym = !source.Is(TypeKind::kDayTimeInterval);
    bool dt = !source.Is(TypeKind::kYearMonthInterval);
    std::pair<const char*, DataType> found{nullptr, DataType()};
    if (ym && is({"YEAR", "Y", "YEARS", "YR", "YRS"})) {
      found = {"year", DataType::Int()};
    } else if (ym && is({"MONTH", "MON", "MONS", "MONTHS"})) {
      found = {"month", DataType::Byte()};
    } else if (dt && is({"DAY", "D", "DAYS"})) {
      found = {"day", DataType::Int()};
    } else if (dt && is({"HOUR", "H", "HOURS", "HR", "HRS"})) {
      found = {"hour", DataType::Byte()};
    } else if (dt && is({"MINUTE", "M", "MIN", "MINS", "MINUTES"})) {
      found = {"minute", DataType::Byte()};
    } else if (dt && is({"SECOND", "S", "SEC", "SECONDS", "SECS"})) {
      found = {"second", DataType::Decimal(8, 6)};
    }
    if (found.first == nullptr) {
      return unknown;
    }
    call.Hidden(Value(found.first), DataType::String());
    return finish(call.Make("spark_interval_field", found.second));
  }
  if (is({"YEAR", "Y", "YEARS", "YR", "YRS"})) {
    return finish(DateField(call, "year", DataType::Int()));
  }
  if (is({"YEAROFWEEK"})) {
    return finish(DateField(call, "yearofweek", DataType::Int()));
  }
  if (is({"QUARTER", "QTR"})) {
    return finish(DateField(call, "quarter", DataType::Int()));
  }
  if (is({"MONTH", "MON", "MONS", "MONTHS"})) {
    return finish(DateField(call, "month", DataType::Int()));
  }
  if (is({"WEEK", "W", "WEEKS"})) {
    return finish(DateField(call, "week", DataType::Int()));
  }
  if (is({"DAY", "D", "DAYS"})) {
    return finish(DateField(call, "day", DataType::Int()));
  }
  if (is({"DAYOFWEEK", "DOW"})) {
    return finish(DateField(call, "dayofweek", DataType::Int()));
  }
  if (is({"DAYOFWEEK_ISO", "DOW_ISO"})) {
    return finish(DateField(call, "dayofweek_iso", DataType::Int()));
  }
  if (is({"DOY"})) {
    return finish(DateField(call, "dayofyear", DataType::Int()));
  }
  if (is({"HOUR", "H", "HOURS", "HR", "HRS"})) {
    return finish(TimeField(call, "hour", DataType::Int()));
  }
  if (is({"MINUTE", "M", "MIN", "MINS", "MINUTES"})) {
    return finish(TimeField(call, "minute", DataType::Int()));
  }
  if (is({"SECOND", "S", "SEC", "SECONDS", "SECS"})) {
    return finish(TimeField(call, "seconds", DataType::Decimal(8, 6)));
  }
  return unknown;
}

Result<void> ToDays(Call& call, std::size_t i) {
  const DataType& type = call.type(i);
  if (type.Is(TypeKind::kVoid) || type.IsString()) {
    return call.Cast(i, DataType::Int());
  }
  if (!type.Is(TypeKind::kInt) && !type.Is(TypeKind::kShort) && !type.Is(TypeKind::kByte)) {
    return call.Unexpected(i, "(\"INT\" or \"SMALLINT\" or \"TINYINT\")");
  }
  return call.Cast(i, DataType::Int());
}

Result<std::string> Unit(const Call& call, bool difference) {
  const Value* literal = call.LiteralOf(0);
  static constexpr std::array<const char*, 10> kUnits = {"YEAR", "QUARTER", "MONTH",  "WEEK",        "DAY",
                                                         "HOUR", "MINUTE",  "SECOND", "MILLISECOND", "MICROSECOND"};
  std::string unit = literal != nullptr && !literal->is_null() && call.type(0).IsString() ? AsciiUpper(literal->text())
                                                                                          : std::string();
  if (unit == "DAYOFYEAR" && !difference) {
    unit = "DAY";
  }
  for (const char* known : kUnits) {
    if (unit == known) {
      return unit;
    }
  }
  return Error(
      ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.DATETIME_UNIT",
      "The value of parameter(s) `unit` in `" + call.name +
          "` is invalid: expects one of the units without "
          "quotes YEAR, QUARTER, MONTH, WEEK, DAY, DAYOFYEAR, HOUR, MINUTE, SECOND, MILLISECOND, MICROSECOND, but "
          "got '" +
          call.shown[0] + "'.");
}

Result<ExprPtr> BuildTimestampAdd(Call& call) {
  FLEUVE_ASSIGN(std::string unit, Unit(call, false));
  std::string display = "timestampadd(" + call.shown[0] + ", " + call.shown[1] + ", " + call.shown[2] + ")";
  FLEUVE_TRY(call.To(1, DataType::Long()));
  FLEUVE_TRY(ToInstant(call, 2));
  DataType type = call.type(2);
  ExprPtr made = MakeCall("spark_timestamp_add",
                          {call.args[2], call.args[1], MakeLiteral(Value(unit), DataType::String()),
                           MakeLiteral(Value(call.config.session_zone), DataType::String())},
                          type, call.AnyNullable(), true);
  return WithDisplay(made, display);
}

Result<ExprPtr> BuildTimestampDiff(Call& call) {
  FLEUVE_ASSIGN(std::string unit, Unit(call, true));
  std::string display = "timestampdiff(" + call.shown[0] + ", " + call.shown[1] + ", " + call.shown[2] + ")";
  FLEUVE_TRY(ToInstant(call, 1));
  FLEUVE_TRY(ToInstant(call, 2));
  FLEUVE_TRY(call.ToCommon(1, 3));
  ExprPtr made = MakeCall("spark_timestamp_diff",
                          {call.args[1], call.args[2], MakeLiteral(Value(unit), DataType::String()),
                           MakeLiteral(Value(call.config.session_zone), DataType::String())},
                          DataType::Long(), call.AnyNullable());
  return WithDisplay(made, display);
}

Result<ExprPtr> BuildDateAdd(Call& call) {
  if (call.size() == 3) {
    return BuildTimestampAdd(call);
  }
  FLEUVE_TRY(call.To(0, DataType::Date()));
  FLEUVE_TRY(ToDays(call, 1));
  call.name = call.name == "date_sub" ? "date_sub" : "date_add";
  return call.Make(call.name == "date_sub" ? "spark_date_sub" : "spark_date_add", DataType::Date(), call.AnyNullable(),
                   true);
}

Result<ExprPtr> BuildDateDiff(Call& call) {
  if (call.size() == 3) {
    return BuildTimestampDiff(call);
  }
  FLEUVE_TRY(call.To(0, DataType::Date()));
  FLEUVE_TRY(call.To(1, DataType::Date()));
  return call.Make("spark_datediff", DataType::Int());
}

Result<ExprPtr> BuildMonthsBetween(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Timestamp()));
  FLEUVE_TRY(call.To(1, DataType::Timestamp()));
  if (call.size() == 2) {
    call.Default(Value(true), DataType::Boolean());
  } else {
    FLEUVE_TRY(call.To(2, DataType::Boolean()));
  }
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Make("spark_months_between", DataType::Double());
}

/// Parses text by a pattern: the shared end of to_timestamp, to_date, unix_timestamp.
/// \param form  `timestamp` or `ntz`
ExprPtr ParseWith(const Call& call, const ExprPtr& text, const ExprPtr& pattern, bool ntz, bool is_try) {
  bool quiet = is_try || !call.ansi();
  std::string name = std::string("spark_parse_timestamp") + (quiet ? "_try" : "");
  return MakeCall(name,
                  {text, pattern, MakeLiteral(Value(call.config.session_zone), DataType::String()),
                   MakeLiteral(Value(is_try), DataType::Boolean())},
                  ntz ? DataType::TimestampNtz() : DataType::Timestamp(), quiet || text->nullable || pattern->nullable,
                  true);
}

Result<ExprPtr> BuildToTimestamp(Call& call) {
  bool is_try = call.name == "try_to_timestamp" || call.name == "try_to_timestamp_ntz";
  bool ntz = call.name == "to_timestamp_ntz" || ((call.name == "to_timestamp" || is_try) && UsesNtz(call));
  DataType target = ntz ? DataType::TimestampNtz() : DataType::Timestamp();
  CastMode mode = is_try ? CastMode::kTry : call.ansi() ? CastMode::kAnsi : CastMode::kLegacy;
  const DataType type = call.type(0);
  if (!type.IsString() && !type.IsDateTime() && !type.Is(TypeKind::kVoid) && !type.IsNumeric()) {
    return call.Unexpected(0, "(\"STRING\" or \"DATE\" or \"TIMESTAMP\" or \"TIMESTAMP_NTZ\")");
  }
  if (call.size() == 1 || !type.IsString()) {
    if (call.size() == 2 && type.IsNumeric()) {
      return call.Unexpected(0, "(\"STRING\" or \"DATE\" or \"TIMESTAMP\" or \"TIMESTAMP_NTZ\")");
    }
    FLEUVE_ASSIGN(ExprPtr made, MakeCast(call.args[0], target, mode, call.config));
    return WithDisplay(made, call.Display());
  }
  FLEUVE_TRY(call.To(1, DataType::String()));
  return WithDisplay(ParseWith(call, call.args[0], call.args[1], ntz, is_try), call.Display());
}

Result<ExprPtr> BuildToDate(Call& call) {
  bool is_try = call.name == "try_to_date";
  CastMode mode = is_try ? CastMode::kTry : call.ansi() ? CastMode::kAnsi : CastMode::kLegacy;
  const DataType type = call.type(0);
  ExprPtr value = call.args[0];
  if (call.size() == 2 && type.IsString()) {
    FLEUVE_TRY(call.To(1, DataType::String()));
    value = ParseWith(call, value, call.args[1], false, is_try);
  } else if (!type.IsString() && !type.IsDateTime() && !type.Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "(\"STRING\" or \"DATE\" or \"TIMESTAMP\" or \"TIMESTAMP_NTZ\")");
  }
  FLEUVE_ASSIGN(ExprPtr made, MakeCast(value, DataType::Date(), mode, call.config));
  return WithDisplay(made, call.Display());
}

Result<ExprPtr> BuildUnixTimestamp(Call& call) {
  ExprPtr pattern = MakeLiteral(Value("yyyy-MM-dd HH:mm:ss"), DataType::String());
  std::string display;
  if (call.size() == 0) {
    display = "unix_timestamp(current_timestamp(), yyyy-MM-dd HH:mm:ss)";
    std::int64_t seconds = FloorDiv(call.config.now_micros, 1000000);
    return WithDisplay(MakeCurrent("unix_timestamp", Value(seconds), DataType::Long()), display);
  }
  display = call.name + "(" + call.shown[0] + ", " + (call.size() == 2 ? call.shown[1] : pattern->display) + ")";
  if (call.size() == 2) {
    FLEUVE_TRY(call.To(1, DataType::String()));
    pattern = call.args[1];
  }
  const DataType& type = call.type(0);
  ExprPtr value = call.args[0];
  if (type.IsString()) {
    value = ParseWith(call, value, pattern, false, false);
  } else if (type.IsDateTime() || type.Is(TypeKind::kVoid)) {
    FLEUVE_ASSIGN(value, MakeCast(value, DataType::Timestamp(), call.config));
  } else {
    return call.Unexpected(0, "(\"STRING\" or \"DATE\" or \"TIMESTAMP\" or \"TIMESTAMP_NTZ\")");
  }
  return WithDisplay(MakeCall("spark_unix_timestamp", {value}, DataType::Long(), !call.ansi() || value->nullable),
                     display);
}

Result<ExprPtr> BuildFromUnixtime(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Long()));
  if (call.size() == 1) {
    call.Default(Value("yyyy-MM-dd HH:mm:ss"), DataType::String());
  } else {
    FLEUVE_TRY(call.To(1, DataType::String()));
  }
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Make("spark_from_unixtime", DataType::String(), true, true);
}

Result<ExprPtr> BuildDateFormat(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Timestamp()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Make("spark_date_format", DataType::String(), call.AnyNullable(), true);
}

Result<ExprPtr> BuildDateTrunc(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::Timestamp()));
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Make("spark_date_trunc", DataType::Timestamp(), true);
}

Result<ExprPtr> BuildTrunc(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Date()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  return call.Make("spark_trunc", DataType::Date(), true);
}

Result<ExprPtr> BuildUnixPart(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Timestamp()));
  return call.Make("spark_" + call.name, DataType::Long());
}

Result<ExprPtr> BuildTimestampFrom(Call& call) {
  if (call.name == "timestamp_seconds") {
    FLEUVE_TRY(call.ToNumeric(0));
  } else if (!call.type(0).IsIntegral()) {
    if (call.type(0).IsNumeric()) {
      return call.Unexpected(0, "INTEGRAL");
    }
    FLEUVE_TRY(call.To(0, DataType::Long()));
  } else {
    FLEUVE_TRY(call.Cast(0, DataType::Long()));
  }
  bool floating = call.type(0).Is(TypeKind::kDouble) || call.type(0).Is(TypeKind::kFloat);
  return call.Make("spark_" + call.name, DataType::Timestamp(), call.AnyNullable() || floating,
                   call.name != "timestamp_micros");
}

Result<ExprPtr> BuildMakeDate(Call& call) {
  for (std::size_t i = 0; i < 3; ++i) {
    FLEUVE_TRY(call.To(i, DataType::Int()));
  }
  return call.Make("spark_make_date" + ModeSuffix(call), DataType::Date(), call.AnyNullable() || !call.ansi(),
                   call.ansi());
}

Result<ExprPtr> BuildMakeTimestamp(Call& call) {
  bool is_try = call.name.rfind("try_", 0) == 0;
  bool ntz = call.name.find("_ntz") != std::string::npos;
  bool plain = call.name == "make_timestamp" || call.name == "try_make_timestamp";
  if (call.size() == 1 && plain) {
    // The start of a day.
    if (!call.type(0).Is(TypeKind::kDate)) {
      return call.Unexpected(0, "DATE");
    }
    const std::string display = call.Display();
    FLEUVE_TRY(call.Cast(0, UsesNtz(call) ? DataType::TimestampNtz() : DataType::Timestamp()));
    return WithDisplay(call.args[0], display);
  }
  if (call.size() != 6 && call.size() != 7) {
    if (call.size() == 2 || call.size() == 3) {
      return Error::Unsupported(call.name + " of a date and a time");
    }
    return call.WrongCount("[6, 7]");
  }
  if (ntz && call.size() == 7) {
    return call.WrongCount("6");
  }
  for (std::size_t i = 0; i < 5; ++i) {
    FLEUVE_TRY(call.To(i, DataType::Int()));
  }
  FLEUVE_TRY(call.To(5, DataType::Decimal(16, 6)));
  if (call.size() == 7) {
    FLEUVE_TRY(call.To(6, DataType::String()));
  } else {
    call.Hidden(Value(call.config.session_zone), DataType::String());
  }
  if (call.name == "try_make_timestamp" && call.shown.size() == 7) {
    call.shown.pop_back();  // Spark does not show the zone here
  }
  DataType type = ntz || (plain && UsesNtz(call)) ? DataType::TimestampNtz() : DataType::Timestamp();
  bool quiet = is_try || !call.ansi();
  return call.Make(quiet ? "spark_make_timestamp_try" : "spark_make_timestamp", type, call.AnyNullable() || quiet,
                   !quiet || call.size() == 7);
}

Result<ExprPtr> BuildUtc(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Timestamp()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  return call.Make("spark_" + call.name, DataType::Timestamp(), call.AnyNullable(), true);
}

Result<ExprPtr> BuildConvertTimezone(Call& call) {
  std::string display = call.Display();
  if (call.size() == 2) {
    call.args.insert(call.args.begin(), MakeLiteral(Value(call.config.session_zone), DataType::String()));
    call.shown.insert(call.shown.begin(), "current_timezone()");
    display = call.Display();
  }
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  FLEUVE_TRY(call.To(2, DataType::TimestampNtz()));
  return WithDisplay(call.Make("spark_convert_timezone", DataType::TimestampNtz(), call.AnyNullable(), true), display);
}

Result<ExprPtr> BuildNextDay(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Date()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  return call.Make("spark_next_day" + ModeSuffix(call), DataType::Date(), true, call.ansi());
}

Result<ExprPtr> BuildWindowTime(Call& call) {
  const DataType& type = call.type(0);
  if (!type.Is(TypeKind::kStruct) || type.fields().size() != 2 || !type.fields()[1].type.IsDateTime()) {
    return call.Unexpected(0, "STRUCT");
  }
  ExprPtr end = MakeGetField(call.args[0], 1);
  return WithDisplay(MakeCall("spark_window_time", {end}, end->type, end->nullable), call.Display());
}

/// A mark that the analyzer makes into a column below: it drops rows without a time and multiplies those of sliding
/// windows.
Result<ExprPtr> BuildWindow(Call& call) {
  FLEUVE_ASSIGN(TimeWindowSpec spec, AnalyzeTimeWindow(call.source));
  return MakeTimeWindow(spec, -1);
}

/// session_window(time, gap): the session of one row; rows of a group are merged by the analyzer or the stream. A gap
/// that is not positive drops the row.
Result<ExprPtr> BuildSessionWindow(Call& call) {
  const DataType type = call.type(0);
  if (!type.Is(TypeKind::kTimestamp) && !type.Is(TypeKind::kTimestampNtz)) {
    FLEUVE_TRY(call.To(0, DataType::Timestamp()));
  }
  const DataType time = call.type(0);
  DataType session = DataType::Struct({{"start", time, true, Json()}, {"end", time, true, Json()}});
  if (call.type(1).IsString()) {
    // A gap that is no interval is NULL; like one that is not positive, it drops the row.
    if (const Value* gap = call.LiteralOf(1); gap != nullptr && !gap->is_null()) {
      const auto parsed = ParseIntervalText(gap->text());
      const types::CalendarInterval interval = parsed.ok() ? *parsed : types::CalendarInterval();
      if (interval.months != 0) {
        return call.Mismatch("UNEXPECTED_INPUT_TYPE", "Intervals greater than a month are not supported.");
      }
      call.args[1] = MakeLiteral(Value(interval), DataType::Of(TypeKind::kCalendarInterval));
    } else {
      FLEUVE_ASSIGN(call.args[1],
                    MakeCast(call.args[1], DataType::Of(TypeKind::kCalendarInterval), CastMode::kAnsi, call.config));
    }
  } else if (!call.type(1).Is(TypeKind::kDayTimeInterval) && !call.type(1).Is(TypeKind::kCalendarInterval)) {
    return call.Unexpected(1, "STRING");
  }
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return WithDisplay(call.Make("spark_session_window", session, true, false), "session_window");
}

Result<ExprPtr> BuildTimeConversion(Call& call) {
  // unix_date, date_from_unix_date
  if (call.name == "unix_date") {
    FLEUVE_TRY(call.To(0, DataType::Date()));
    return call.Make("spark_unix_date", DataType::Int());
  }
  FLEUVE_TRY(call.To(0, DataType::Int()));
  return call.Make("spark_date_from_unix_date", DataType::Date());
}

}  // namespace

const Table& DateTimeFunctions() {
  static const Table table = {
      Scalar("current_date", 0, 0, BuildCurrent),
      Scalar("curdate", 0, 0, BuildCurrent),
      Scalar("current_timestamp", 0, 0, BuildCurrent),
      Scalar("now", 0, 0, BuildCurrent),
      Scalar("localtimestamp", 0, 0, BuildCurrent),
      Scalar("current_timezone", 0, 0, BuildCurrent),
      Scalar("year", 1, 1, BuildDateField<kYear>),
      Scalar("quarter", 1, 1, BuildDateField<kQuarter>),
      Scalar("month", 1, 1, BuildDateField<kMonth>),
      Scalar("day", 1, 1, BuildDateField<kDay>),
      Scalar("dayofmonth", 1, 1, BuildDateField<kDay>),
      Scalar("dayofweek", 1, 1, BuildDateField<kDayOfWeek>),
      Scalar("weekday", 1, 1, BuildDateField<kWeekday>),
      Scalar("dayofyear", 1, 1, BuildDateField<kDayOfYear>),
      Scalar("weekofyear", 1, 1, BuildDateField<kWeek>),
      Scalar("hour", 1, 1, BuildTimeField<kHour>),
      Scalar("minute", 1, 1, BuildTimeField<kMinute>),
      Scalar("second", 1, 1, BuildTimeField<kSecond>),
      Scalar("dayname", 1, 1, BuildDayName),
      Scalar("monthname", 1, 1, BuildDayName),
      Scalar("extract", 2, 2, BuildExtract),
      Scalar("date_part", 2, 2, BuildExtract),
      Scalar("datepart", 2, 2, BuildExtract),
      Scalar("date_add", 2, 3, BuildDateAdd),
      Scalar("dateadd", 2, 3, BuildDateAdd),
      Scalar("date_sub", 2, 2, BuildDateAdd),
      Scalar("datediff", 2, 3, BuildDateDiff),
      Scalar("date_diff", 2, 3, BuildDateDiff),
      Scalar("timestampadd", 3, 3, BuildTimestampAdd),
      Scalar("timestampdiff", 3, 3, BuildTimestampDiff),
      Scalar("months_between", 2, 3, BuildMonthsBetween),
      Scalar("to_timestamp", 1, 2, BuildToTimestamp),
      Scalar("to_timestamp_ltz", 1, 2, BuildToTimestamp),
      Scalar("to_timestamp_ntz", 1, 2, BuildToTimestamp),
      Scalar("try_to_timestamp", 1, 2, BuildToTimestamp),
      Scalar("to_date", 1, 2, BuildToDate),
      Scalar("try_to_date", 1, 2, BuildToDate),
      Scalar("unix_timestamp", 0, 2, BuildUnixTimestamp),
      Scalar("to_unix_timestamp", 1, 2, BuildUnixTimestamp),
      Scalar("from_unixtime", 1, 2, BuildFromUnixtime),
      Scalar("date_format", 2, 2, BuildDateFormat),
      Scalar("date_trunc", 2, 2, BuildDateTrunc),
      Scalar("trunc", 2, 2, BuildTrunc),
      Scalar("unix_seconds", 1, 1, BuildUnixPart),
      Scalar("unix_millis", 1, 1, BuildUnixPart),
      Scalar("unix_micros", 1, 1, BuildUnixPart),
      Scalar("timestamp_seconds", 1, 1, BuildTimestampFrom),
      Scalar("timestamp_millis", 1, 1, BuildTimestampFrom),
      Scalar("timestamp_micros", 1, 1, BuildTimestampFrom),
      Scalar("make_date", 3, 3, BuildMakeDate),
      Scalar("make_timestamp", 1, 7, BuildMakeTimestamp),
      Scalar("make_timestamp_ltz", 2, 7, BuildMakeTimestamp),
      Scalar("make_timestamp_ntz", 2, 6, BuildMakeTimestamp),
      Scalar("try_make_timestamp", 1, 7, BuildMakeTimestamp),
      Scalar("try_make_timestamp_ltz", 2, 7, BuildMakeTimestamp),
      Scalar("try_make_timestamp_ntz", 2, 6, BuildMakeTimestamp),
      Scalar("from_utc_timestamp", 2, 2, BuildUtc),
      Scalar("to_utc_timestamp", 2, 2, BuildUtc),
      Scalar("convert_timezone", 2, 3, BuildConvertTimezone),
      Scalar("next_day", 2, 2, BuildNextDay),
      Scalar("window", 2, 4, BuildWindow),
      Scalar("session_window", 2, 2, BuildSessionWindow),
      Scalar("window_time", 1, 1, BuildWindowTime),
      Scalar("unix_date", 1, 1, BuildTimeConversion),
      Scalar("date_from_unix_date", 1, 1, BuildTimeConversion),
      Simple("add_months", "spark_add_months", "Di>D", kFails),
      Simple("last_day", "spark_last_day", "D>D"),
  };
  return table;
}

}  // namespace fleuve::plan::functions
