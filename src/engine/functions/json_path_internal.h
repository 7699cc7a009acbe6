#pragma once

/// \file
/// JSON texts printed anew.

#include <string>
#include <string_view>

namespace fleuve::engine {

/// `raw` as a JSON writer prints it: no blanks, fractions as doubles. `raw` itself where it is no JSON.
std::string RewriteJson(std::string_view raw);

}  // namespace fleuve::engine
