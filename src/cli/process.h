#pragma once

/// \file
/// The composition root: builds every room's objects and wires them. Nothing else in the tree names concrete classes of
/// several rooms.

#include <memory>
#include <string>

#include "base/result.h"
#include "cli/settings.h"
#include "connect/server.h"
#include "session/session_manager.h"

namespace fleuve::cli {

/// A running engine with its service. Threads: one.
class Process {
 public:
  /// Opens the warehouse and listens on `settings.host:settings.port` (0: a free port).
  static Result<std::unique_ptr<Process>> Start(const Settings& settings);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  int port() const { return port_; }
  /// `sc://host:port`.
  std::string url() const { return "sc://" + host_ + ":" + std::to_string(port_); }
  /// Refuses new work, waits up to `grace_ms` for batches in flight, ends everything. Idempotent.
  void Stop(std::int64_t grace_ms);

 private:
  Process() = default;

  std::string host_;
  int port_ = 0;
  std::string scratch_;
  bool stopped_ = false;
  std::shared_ptr<session::Services> services_;
  std::shared_ptr<session::SessionManager> sessions_;
  std::unique_ptr<connect::Server> server_;
};

}  // namespace fleuve::cli
