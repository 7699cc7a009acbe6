#pragma once

/// \file
/// Values of vectors as Spark's cast to string prints them.

#include <memory>
#include <string>

#include "engine/duckdb_pch.h"
#include "types/data_type.h"
#include "types/time_zone.h"

namespace fleuve::engine {

/// Appends rows of one vector as text: `{1, x}`, `[1, null]`, `{k -> 1}`, `1.0E10`, `2024-01-01 00:00:00`.
class ValueText {
 public:
  ValueText(types::DataType type, std::shared_ptr<const types::TimeZone> zone)
      : type_(std::move(type)), zone_(std::move(zone)) {}
  /// Looks at `count` rows of a vector; valid until the next call.
  void Bind(duckdb::Vector& vector, duckdb::idx_t count);
  bool IsNull(duckdb::idx_t row) const;
  /// The row must not be NULL.
  void Append(duckdb::idx_t row, std::string& out) const;

 private:
  void AppendValue(const types::DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t index,
                   std::string& out) const;
  void AppendOrNull(const types::DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t row,
                    std::string& out) const;

  types::DataType type_;
  std::shared_ptr<const types::TimeZone> zone_;
  duckdb::RecursiveUnifiedVectorFormat format_;
};

/// `INTERVAL '1 02:03:04.5' DAY TO SECOND`; a calendar interval as `1 years 2 months`.
std::string IntervalText(std::int64_t value, const types::DataType& type);
std::string CalendarIntervalText(std::int32_t months, std::int32_t days, std::int64_t micros);

}  // namespace fleuve::engine
