#pragma once

/// \file
/// The text of the worker module, as the build took it from `python/fleuve_worker`.

#include <span>

#include "base/embedded_file.h"

namespace fleuve::python {

std::span<const EmbeddedFile> WorkerModuleFiles();

}  // namespace fleuve::python
