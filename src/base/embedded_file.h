#pragma once

/// \file
/// A file that the build made part of the binary.

#include <string_view>

namespace fleuve {

struct EmbeddedFile {
  /// Below the module's parent folder: `fleuve_worker/kinds/map.py`.
  std::string_view path;
  std::string_view text;
};

}  // namespace fleuve
