#pragma once

/// \file
/// Events of a session's streaming queries, pushed to its client. Holds no thread.

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "session/operation.h"
#include "stream/manager.h"

namespace fleuve::session {

/// The long-running operation behind `spark.streams.addListener`. Threads: any.
class ListenerBus : public std::enable_shared_from_this<ListenerBus> {
 public:
  ListenerBus(std::shared_ptr<stream::Manager> queries, std::string session_key, OperationPtr operation);
  ~ListenerBus();
  /// Confirms to the client and begins to listen. \param on_cancel  called when the operation is interrupted.
  void Start(std::function<void()> on_cancel);
  /// Ends the operation. Idempotent.
  void Stop();

 private:
  class Forwarder;
  const std::shared_ptr<stream::Manager> queries_;
  const std::string session_key_;
  const OperationPtr operation_;
  const std::shared_ptr<ResultSink> sink_;
  std::mutex mutex_;
  std::int64_t listener_key_ = 0;
  bool stopped_ = false;
};

}  // namespace fleuve::session
