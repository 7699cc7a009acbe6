#pragma once

/// \file
/// Options of from_avro, to_avro and schema_of_avro.

#include <optional>
#include <string>

#include "avro/schema.h"
#include "base/result.h"
#include "plan/scan.h"

namespace fleuve::plan {

/// What happens to dates and timestamps before the Julian and the Gregorian calendar agree.
enum class AvroCalendar { kCorrected, kLegacy, kException };

struct AvroOptions {
  bool permissive = false;
  /// The schema to read with, where it is another than the values' own.
  std::optional<std::string> schema;
  avro::TypeOptions types;
  AvroCalendar calendar = AvroCalendar::kCorrected;

  /// Other options are refused by name. Reads the file of `avroSchemaUrl`. \param function  for errors.
  static Result<AvroOptions> Parse(const Options& options, const std::string& function);
};

}  // namespace fleuve::plan
