#pragma once

/// \file
/// Dates and timestamps of Parquet files that were written in the hybrid Julian-Gregorian calendar (Spark before 3.0,
/// Hive, or Spark's LEGACY rebase mode). The footer tells it; where it tells nothing, options or settings do.

#include <map>
#include <memory>
#include <string>

#include "engine/duckdb_pch.h"
#include "plan/scan.h"
#include "types/data_type.h"
#include "types/time_zone.h"

namespace fleuve::engine {

/// What happens to values before the calendars agree (dates before 1582-10-15, timestamps before 1900).
enum class CalendarRule {
  kKeep,    ///< the file is in the proleptic Gregorian calendar
  kRebase,  ///< the same wall-clock fields in the proleptic calendar
  kRefuse,  ///< INCONSISTENT_BEHAVIOR_CROSS_VERSION.READ_ANCIENT_DATETIME
};

/// The rules of one file.
struct FileCalendar {
  CalendarRule dates = CalendarRule::kKeep;
  /// For INT96 timestamps; all others follow `dates`.
  CalendarRule int96 = CalendarRule::kKeep;
  /// The zone of the writer; null where nothing is rebased.
  std::shared_ptr<const types::TimeZone> zone;

  bool keeps_all() const { return dates == CalendarRule::kKeep && int96 == CalendarRule::kKeep; }
};

/// The rules of a file with this key-value metadata, read with the scan's options `datetimeRebaseMode` and
/// `int96RebaseMode` (CORRECTED unless set).
FileCalendar CalendarOf(const std::map<std::string, std::string>& metadata, const plan::FileScan& scan);

/// True where values of the type hold dates or timestamps that a file may hold in the old calendar.
bool HoldsCalendarValues(const types::DataType& type);

/// `value` (of the type's carrier) with its old dates and timestamps by the file's rules. \param int96  the column's
/// timestamps lie as INT96.
duckdb::unique_ptr<duckdb::Expression> InNewCalendar(duckdb::unique_ptr<duckdb::Expression> value,
                                                     const types::DataType& type, const FileCalendar& calendar,
                                                     bool int96);

/// The day, in days since 1970-01-01, that has in the proleptic Gregorian calendar the fields that `days` has in the
/// hybrid calendar.
std::int64_t ProlepticDay(std::int64_t hybrid_days);
/// The same for an instant in microseconds, with wall-clock fields in `zone`.
std::int64_t ProlepticMicros(std::int64_t hybrid_micros, const types::TimeZone& zone);

}  // namespace fleuve::engine
