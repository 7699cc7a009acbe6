#pragma once

/// \file
/// What a session asks of the room that knows declarative pipelines. It stands above this one and is given in
/// `Services`.

#include <string>

#include "base/result.h"
#include "session/operation.h"

namespace spark::connect {
class PipelineCommand;
}
namespace fleuve::pb {
class Command;
}

namespace fleuve::session {

class Session;

/// Threads: every method from any thread, on a big stack.
class Pipelines {
 public:
  virtual ~Pipelines() = default;
  /// One message of a client; its results go to `operation->sink`.
  virtual Result<void> Run(Session& session, const spark::connect::PipelineCommand& command,
                           const OperationPtr& operation) = 0;
  /// CREATE and REFRESH of a streaming table or a materialized view as plain SQL. \param operation  may be null.
  virtual Result<void> RunStatement(Session& session, const pb::Command& command, const OperationPtr& operation) = 0;
  /// The session has ended: its graphs go. \param server_side_id  of the session.
  virtual void Forget(const std::string& server_side_id) = 0;
};

}  // namespace fleuve::session
