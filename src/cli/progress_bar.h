#pragma once

/// \file
/// A bar on the terminal for work that takes long.

#include <cstdint>
#include <string>
#include <string_view>

namespace fleuve::cli {

/// `checking files [######------]  50 % 5 of 10`; without a total `checking files 5`. At most `width` characters.
std::string ProgressLine(std::string_view what, std::int64_t done, std::int64_t total, int width);

/// Draws what the process's work says of itself on the standard error, where that is a terminal: ten times a second at
/// most, and only of work that takes longer than a blink. Nothing is left on the line at the end.
void ShowProgress();

}  // namespace fleuve::cli
