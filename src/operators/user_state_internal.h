#pragma once

/// \file
/// Names of what a stateful processor keeps beside its values, in a space of its store.

#include <string_view>

namespace fleuve::operators {

/// The space. Its rows `timeMode` and `outputMode` are those words, the others JSON or the worker's own.
inline constexpr std::string_view kProcessorIndex = "index";
/// In front of a state variable's name: kind, key, value (types), position, ttl.
inline constexpr std::string_view kVariableRow = "variable:";

}  // namespace fleuve::operators
