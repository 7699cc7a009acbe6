#pragma once

/// \file
/// The text of the module behind `fleuve pipelines`, as the build took it from `python/fleuve_pipelines`.

#include <span>

#include "base/embedded_file.h"

namespace fleuve::cli {

std::span<const EmbeddedFile> PipelinesModuleFiles();

}  // namespace fleuve::cli
