#pragma once

/// \file
/// Options of from_avro, to_avro and schema_of_avro.

#include <optional>
#include <string>

#include "avro/schema.h"
#include "base/result.h"
#include "plan/scan.h"
#include "registry/schema_registry.h"

namespace fleuve::plan {

/// What happens to dates and timestamps before the Julian and the Gregorian calendar agree.
enum class AvroCalendar { kCorrected, kLegacy, kException };

struct AvroOptions {
  bool permissive = false;
  /// The schema to read with, where it is another than the values' own.
  std::optional<std::string> schema;
  avro::TypeOptions types;
  AvroCalendar calendar = AvroCalendar::kCorrected;
  /// Values carry the number of their schema in this registry (`schema.registry.url`).
  std::optional<registry::Address> registry;
  std::string subject;
  /// to_avro registers a schema that the subject lacks.
  bool auto_register = true;

  /// Other options are refused by name. Reads the file of `avroSchemaUrl`. \param function  for errors.
  static Result<AvroOptions> Parse(const Options& options, const std::string& function);
  /// True for options whose values are nobody's business. \param name  in any letter case.
  static bool IsSecret(const std::string& name);
};

}  // namespace fleuve::plan
