#pragma once

/// \file
/// The names of all functions, for SHOW FUNCTIONS and the catalog.

#include <string>
#include <vector>

namespace fleuve::plan {

/// Every function name of Spark that is known, sorted; operators and names of our own are left out.
std::vector<std::string> KnownFunctionNames();

}  // namespace fleuve::plan
