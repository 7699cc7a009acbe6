#pragma once

/// \file
/// The sinks of `writeStream.foreachBatch` and `writeStream.foreach`. Private to this room.

#include <memory>

#include "connectors/sink.h"
#include "session/session_state_internal.h"

namespace spark::connect {
class WriteStreamOperationStart;
}

namespace fleuve::session {

/// The provider of the user's function that `start` carries; null where it carries none.
Result<std::shared_ptr<connectors::SinkProvider>> ForeachProviderOf(
    const spark::connect::WriteStreamOperationStart& start, SessionState& state, const CancellationTokenPtr& token);

}  // namespace fleuve::session
