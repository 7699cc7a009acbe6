#pragma once

/// \file
/// The text of the module behind `fleuve pipelines`, as the build took it from `python/fleuve_pipelines`.

#include <span>
#include <string_view>

namespace fleuve::cli {

struct ModuleFile {
  /// Below the module's parent folder: `fleuve_pipelines/registry.py`.
  std::string_view path;
  std::string_view text;
};

std::span<const ModuleFile> PipelinesModuleFiles();

}  // namespace fleuve::cli
