#pragma once

/// \file
/// The Spark Connect service over gRPC.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "session/session_manager.h"

namespace fleuve::connect {

struct ServerOptions {
  /// How long an operation runs on while no client is attached.
  std::int64_t detached_timeout_ms = 5 * 60 * 1000;
  /// The same for queries and waits of which the client has seen nothing yet: coming back it starts them again.
  std::int64_t forget_timeout_ms = 5 * 1000;
  /// Bytes of results kept for a client that has not read them (or may ask for them again).
  std::int64_t buffer_bytes = std::int64_t{64} << 20;
  /// How long one response stream stays open before the client is asked to reattach.
  std::int64_t stream_duration_ms = 2 * 60 * 1000;
  /// The largest message that a client may send.
  std::int64_t message_bytes = std::int64_t{128} << 20;
  /// Non-empty: every call must carry `authorization: Bearer <token>`.
  std::string token;
};

/// One listening service. Threads: `Start` and `Stop` from one thread; calls run on threads of its own.
class Server {
 public:
  Server(std::shared_ptr<session::SessionManager> sessions, ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Listens; returns the port (a free one where `port` is 0). kResourceExhausted where the port is taken.
  Result<int> Start(const std::string& host, int port);
  /// Refuses new calls, lets running ones go on for `grace_ms`, then cancels them. Idempotent.
  void Stop(std::int64_t grace_ms);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fleuve::connect
