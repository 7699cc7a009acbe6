#include <algorithm>

#include "base/bytes.h"
#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"
#include "engine/functions/calendar_internal.h"
#include "engine/legacy_calendar_internal.h"
#include "engine/raise_internal.h"
#include "types/parts.h"
#include "types/value.h"

namespace fleuve::engine {
namespace {

using duckdb::idx_t;
using types::DataType;
using types::TypeKind;

/// 1582-10-15, the first day of the Gregorian part of the hybrid calendar.
constexpr std::int64_t kGregorianStart = -141427;
/// 1900-01-01T00:00:00Z: from then on every zone's wall clock is the same in both time libraries of Java.
constexpr std::int64_t kSameInstants = -2208988800000000;

[[noreturn]] void RaiseAncient(bool int96) {
  const std::string format = int96 ? "Parquet INT96" : "Parquet";
  const std::string option = int96 ? "int96RebaseMode" : "datetimeRebaseMode";
  const std::string config = "spark.sql.parquet." + option + "InRead";
  RaiseError(Error(ErrorKind::kInvalidArgument, "INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME",
                   "You may get a different result due to the upgrading to Spark >= 3.0: reading dates before "
                   "1582-10-15 or timestamps before 1900-01-01T00:00:00Z from " +
                       format +
                       " files can be ambiguous, as the files may be written by Spark 2.x or legacy versions of Hive, "
                       "which uses a legacy hybrid calendar that is different from Spark 3.0+'s Proleptic Gregorian "
                       "calendar. See more details in SPARK-31404. You can set the SQL config \"" +
                       config + "\" or the datasource option \"" + option +
                       "\" to \"LEGACY\" to rebase the datetime values w.r.t. the calendar difference during reading. "
                       "To read the datetime values as it is, set the SQL config or the datasource option to "
                       "\"CORRECTED\".")
                 .With("format", format)
                 .With("config", "\"" + config + "\"")
                 .With("option", "\"" + option + "\""));
}

/// The rule that an option names for files which do not tell who wrote them.
CalendarRule RuleByOption(const plan::FileScan& scan, const char* name) {
  const std::string* text = plan::FindOption(scan.options, name);
  const std::string mode = text == nullptr ? "corrected" : AsciiLower(*text);
  if (mode == "corrected") {
    return CalendarRule::kKeep;
  }
  if (mode == "legacy") {
    return CalendarRule::kRebase;
  }
  if (mode == "exception") {
    return CalendarRule::kRefuse;
  }
  RaiseError(Error(ErrorKind::kInvalidArgument, "INVALID_OPTION_VALUE",
                   "Invalid value '" + *text + "' for option '" + name + "': must be CORRECTED, LEGACY or EXCEPTION.")
                 .With("option", name)
                 .With("value", *text));
}

void MapLeaf(duckdb::Vector& vector, idx_t count, const std::function<std::int64_t(std::int64_t)>& map, bool days) {
  auto& validity = duckdb::FlatVector::Validity(vector);
  for (idx_t i = 0; i < count; i++) {
    if (!validity.RowIsValid(i)) {
      continue;
    }
    if (days) {
      auto& value = duckdb::FlatVector::GetData<duckdb::date_t>(vector)[i];
      if (duckdb::Date::IsFinite(value)) {
        value.days = static_cast<std::int32_t>(map(value.days));
      }
    } else {
      auto& value = duckdb::FlatVector::GetData<duckdb::timestamp_t>(vector)[i];
      if (duckdb::Timestamp::IsFinite(value)) {
        value.value = map(value.value);
      }
    }
  }
}

/// Changes the values of a flat vector in place.
void Apply(duckdb::Vector& vector, idx_t count, const DataType& type, const FileCalendar& calendar, bool int96) {
  if (!HoldsCalendarValues(type)) {
    return;
  }
  switch (type.kind()) {
    case TypeKind::kDate:
      MapLeaf(
          vector, count,
          [&calendar](std::int64_t days) {
            if (days < kGregorianStart && calendar.dates == CalendarRule::kRefuse) {
              RaiseAncient(false);
            }
            return calendar.dates == CalendarRule::kRebase ? ProlepticDay(days) : days;
          },
          true);
      return;
    case TypeKind::kTimestamp: {
      const CalendarRule rule = int96 ? calendar.int96 : calendar.dates;
      MapLeaf(
          vector, count,
          [&calendar, rule, int96](std::int64_t micros) {
            if (micros < kSameInstants && rule == CalendarRule::kRefuse) {
              RaiseAncient(int96);
            }
            return rule == CalendarRule::kRebase ? ProlepticMicros(micros, *calendar.zone) : micros;
          },
          false);
      return;
    }
    case TypeKind::kArray:
      Apply(duckdb::ListVector::GetEntry(vector), duckdb::ListVector::GetListSize(vector), type.element(), calendar,
            int96);
      return;
    case TypeKind::kMap: {
      const idx_t entries = duckdb::ListVector::GetListSize(vector);
      auto& pairs = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(vector));
      Apply(*pairs[0], entries, type.key(), calendar, int96);
      Apply(*pairs[1], entries, type.value(), calendar, int96);
      return;
    }
    case TypeKind::kStruct: {
      auto& fields = duckdb::StructVector::GetEntries(vector);
      for (std::size_t i = 0; i < type.fields().size() && i < fields.size(); i++) {
        Apply(*fields[i], count, type.fields()[i].type, calendar, int96);
      }
      return;
    }
    default:
      return;
  }
}

}  // namespace

std::int64_t ProlepticDay(std::int64_t hybrid_days) {
  if (hybrid_days >= kGregorianStart) {
    return hybrid_days;
  }
  // The Julian calendar's years begin in March here, counted from 4801 BC; the day count from the same day.
  const std::int64_t shifted = hybrid_days + 2440588 + 32082;
  const std::int64_t year = FloorDiv(4 * shifted + 3, 1461);
  const std::int64_t day_of_year = shifted - FloorDiv(1461 * year, 4);
  const std::int64_t month = (5 * day_of_year + 2) / 153;
  const std::int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
  // A 29 February that only the Julian calendar has is the first of March.
  return types::DaysFromCivil(year - 4800 + month / 10, static_cast<unsigned>(month + 3 - 12 * (month / 10)), 1) + day -
         1;
}

std::int64_t ProlepticMicros(std::int64_t hybrid_micros, const types::TimeZone& zone) {
  if (hybrid_micros >= kSameInstants) {
    return hybrid_micros;
  }
  // Java's old library knows no local mean time: before 1900 it takes today's standard offset.
  constexpr std::int64_t kWinter = 2082844800000000;
  constexpr std::int64_t kSummer = 2098483200000000;
  const std::int64_t standard = std::min(zone.OffsetSecondsAtUtc(kWinter), zone.OffsetSecondsAtUtc(kSummer)) * 1000000;
  const std::int64_t local = hybrid_micros + standard;
  const std::int64_t day = FloorDiv(local, kDayMicros);
  return zone.LocalToUtc(ProlepticDay(day) * kDayMicros + local - day * kDayMicros);
}

FileCalendar CalendarOf(const std::map<std::string, std::string>& metadata, const plan::FileScan& scan) {
  FileCalendar calendar;
  const auto version = metadata.find("org.apache.spark.version");
  if (version == metadata.end()) {
    calendar.dates = RuleByOption(scan, "datetimeRebaseMode");
    calendar.int96 = RuleByOption(scan, "int96RebaseMode");
  } else {
    const auto rule = [&](const char* first_proleptic, const char* legacy_mark) {
      return version->second < first_proleptic || metadata.contains(legacy_mark) ? CalendarRule::kRebase
                                                                                 : CalendarRule::kKeep;
    };
    calendar.dates = rule("3.0.0", "org.apache.spark.legacyDateTime");
    calendar.int96 = rule("3.1.0", "org.apache.spark.legacyINT96");
  }
  if (calendar.dates == CalendarRule::kRebase || calendar.int96 == CalendarRule::kRebase) {
    const auto zone = metadata.find("org.apache.spark.timeZone");
    calendar.zone = ValueOrRaise(
        types::TimeZone::Find(version != metadata.end() && zone != metadata.end() ? zone->second : scan.session_zone));
  }
  return calendar;
}

bool HoldsCalendarValues(const DataType& type) {
  return types::Holds(type, TypeKind::kDate) || types::Holds(type, TypeKind::kTimestamp);
}

duckdb::unique_ptr<duckdb::Expression> InNewCalendar(duckdb::unique_ptr<duckdb::Expression> value, const DataType& type,
                                                     const FileCalendar& calendar, bool int96) {
  const duckdb::LogicalType carrier = value->return_type;
  duckdb::ScalarFunction function(
      "fleuve_in_new_calendar", {carrier}, carrier,
      [type, calendar, int96](duckdb::DataChunk& args, duckdb::ExpressionState&, duckdb::Vector& result) {
        result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
        duckdb::VectorOperations::Copy(args.data[0], result, args.size(), 0, 0);
        Apply(result, args.size(), type, calendar, int96);
      });
  duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> children;
  children.push_back(std::move(value));
  return duckdb::make_uniq<duckdb::BoundFunctionExpression>(carrier, std::move(function), std::move(children), nullptr);
}

}  // namespace fleuve::engine
