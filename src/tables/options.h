#pragma once

/// \file
/// What options of Delta tables have in common, whoever reads them: batch, stream, reader, writer.

#include <optional>
#include <string>

#include "base/result.h"
#include "plan/scan.h"

namespace fleuve::tables {

/// DELTA_ILLEGAL_OPTION. \param explain  what a value must be: `must be a number`.
Error IllegalOption(const std::string& name, const std::string& value, const std::string& explain);

/// The value of an option that is true or false; nullopt where it is not given. DELTA_ILLEGAL_OPTION where it is
/// neither.
Result<std::optional<bool>> FlagOption(const plan::Options& options, const std::string& name);

}  // namespace fleuve::tables
