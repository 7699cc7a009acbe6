#pragma once

#include "engine/engine.h"
#include "engine/instance_internal.h"

namespace fleuve::engine {

/// Writes the rows of a started run. Raises; what it wrote is removed then.
WriteResult WriteRun(Run& run, const WriteSpec& spec);

}  // namespace fleuve::engine
