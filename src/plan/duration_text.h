#pragma once

/// \file
/// Durations that programs give as text.

#include <string_view>

#include "base/result.h"
#include "types/value.h"

namespace fleuve::plan {

/// What watermark delays and window widths take: what a cast to an interval does (`5 minutes`, `interval 1 day`), and
/// an interval literal of SQL (`INTERVAL '1 02:00:00' DAY TO SECOND`). CANNOT_PARSE_INTERVAL where it is none.
Result<types::CalendarInterval> ParseDurationText(std::string_view text);

}  // namespace fleuve::plan
