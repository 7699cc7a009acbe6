#pragma once

/// \file
/// Paths into variants as the colon operator writes them: `$.a['b'][0]`.

#include <string>

namespace fleuve::plan {

/// `b` of `$.a['b'][0]`: Spark names the value after it. Empty where the path has no names.
inline std::string LastNameOfPath(const std::string& path) {
  std::string name;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] == '.') {
      name.clear();
      while (i + 1 < path.size() && path[i + 1] != '.' && path[i + 1] != '[') {
        name += path[++i];
      }
    } else if (path[i] == '[' && i + 1 < path.size() && (path[i + 1] == '\'' || path[i + 1] == '"')) {
      const char quote = path[i + 1];
      name.clear();
      for (i += 2; i < path.size() && path[i] != quote; ++i) {
        name += path[i];
      }
    }
  }
  return name;
}

}  // namespace fleuve::plan
