#pragma once

/// \file
/// Splitting text by a regular expression, as `split` does.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fleuve::engine {

/// Appends the parts. \param limit  most parts; not positive: all
void SplitText(std::string_view text, std::string_view pattern, std::int32_t limit, std::vector<std::string>& parts);

}  // namespace fleuve::engine
