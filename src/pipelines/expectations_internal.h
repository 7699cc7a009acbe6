#pragma once

/// \file
/// What a run learns of expectations. Private to this room.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "pipelines/graph.h"

namespace fleuve::pipelines {

/// Begins the text that a refused row raises.
inline constexpr std::string_view kViolationMark = "fleuve.expectation.violated ";

/// EXPECTATION_VIOLATION where the error is that of a refused row.
std::optional<Error> ViolationIn(const Error& error);
/// `data_quality` of a flow's progress. \param keys, values  what the dataset's metrics gave.
Json QualityOf(const Dataset& dataset, const std::vector<std::string>& keys, const std::vector<std::int64_t>& values);

}  // namespace fleuve::pipelines
