#pragma once

/// \file
/// Java's regular expressions (through ICU, whose dialect is the nearest), for options that take one.

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fleuve::types {

/// A compiled pattern. Threads: const methods from any thread.
class JavaRegex {
 public:
  virtual ~JavaRegex() = default;
  /// True where the pattern matches somewhere in `text` (UTF-8).
  virtual bool Find(std::string_view text) const = 0;
  /// kInvalidArgument (no condition) with the parser's words.
  static Result<std::shared_ptr<const JavaRegex>> Compile(std::string_view pattern);
};

}  // namespace fleuve::types
