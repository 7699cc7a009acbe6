#pragma once

/// \file
/// The door of this room: the pipeline messages of clients, and streaming tables and materialized views of plain SQL.

#include <memory>

#include "session/pipelines.h"

namespace fleuve::pipelines {

/// One per process.
std::shared_ptr<session::Pipelines> MakePipelines();

}  // namespace fleuve::pipelines
