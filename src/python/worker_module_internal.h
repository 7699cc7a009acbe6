#pragma once

/// \file
/// The text of the worker module, as the build took it from `python/fleuve_worker`.

#include <span>
#include <string_view>

namespace fleuve::python {

struct ModuleFile {
  /// Below the module's parent folder: `fleuve_worker/kinds/map.py`.
  std::string_view path;
  std::string_view text;
};

std::span<const ModuleFile> WorkerModuleFiles();

}  // namespace fleuve::python
