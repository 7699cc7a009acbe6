#pragma once

/// \file
/// Options of the `cloudFiles` source, checked.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/resolver.h"
#include "plan/scan.h"

namespace fleuve::connectors::autoloader {

enum class Evolution { kAddNewColumns, kRescue, kFailOnNewColumns, kNone };
enum class Clean { kOff, kDelete, kMove };

struct CloudOptions {
  plan::FileFormat format = plan::FileFormat::kJson;
  std::string schema_location;
  Evolution evolution = Evolution::kNone;
  bool evolution_given = false;
  /// With kAddNewColumns: types grow too (addNewColumnsWithTypeWidening).
  bool widens_types = false;
  std::string hints;
  bool infer_types = false;
  /// Nullopt: found in folder names; empty: none.
  std::optional<std::vector<std::string>> partition_columns;
  bool include_existing = true;
  bool allow_overwrites = false;
  /// How long a file that was read is known; nullopt: always.
  std::optional<std::int64_t> max_age_ms;
  std::optional<std::int64_t> max_files;
  std::optional<std::int64_t> max_bytes;
  Clean clean = Clean::kOff;
  std::int64_t retention_ms = 0;
  std::string move_folder;
  bool wait_for_cleaning = false;
  bool strict_globs = false;
  std::int64_t sample_files = 1000;
  std::int64_t sample_bytes = 50LL << 30;
  /// What is left: options of the format, of listing, of rescued data.
  plan::Options reader;
};

/// Checks and reads the options. \param defaults_of_read_files  types inferred, strict globs.
/// CF_UNKNOWN_OPTION_KEYS_ERROR, CF_MISSING_FORMAT, CF_INVALID_OPTION_VALUE, CF_NOTIFICATIONS_UNSUPPORTED, ...
Result<CloudOptions> ParseCloudOptions(const plan::Options& options, bool has_schema, bool defaults_of_read_files,
                                       const plan::AnalysisConfig& config);

/// `10g`, `100 mb`, `5`: bytes.
std::optional<std::int64_t> ParseBytes(std::string_view text);
/// `1 day`, `2 weeks 3 hours`, `interval 30 seconds`: milliseconds.
std::optional<std::int64_t> ParseInterval(std::string_view text);

/// The prefixed name of an option that `read_files` knows without prefix; nullopt for reader options.
std::optional<std::string> CloudOptionName(std::string_view name);

}  // namespace fleuve::connectors::autoloader
