#pragma once

/// \file
/// One user's session: what every front end calls.

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "session/artifacts.h"
#include "session/config.h"
#include "session/operation.h"
#include "session/services.h"

namespace spark::connect {
class AnalyzePlanRequest;
class AnalyzePlanResponse;
class Plan;
}  // namespace spark::connect

namespace fleuve::session {

/// Whose session: chosen by the client.
struct SessionKey {
  std::string user_id;
  std::string session_id;
  auto operator<=>(const SessionKey&) const = default;
  /// `<user>/<session>`: the key under which streams and logs know the session.
  std::string ToString() const { return user_id + "/" + session_id; }
};

class SessionState;

/// Threads: every method from any thread. No lock is held while a plan runs, so a plan may call back into its session.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(SessionKey key, std::shared_ptr<const Services> services);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const SessionKey& key() const { return key_; }
  /// A UUID made with the session; tells a client that the server was restarted.
  const std::string& server_side_id() const { return server_side_id_; }
  Config& config() { return config_; }
  ArtifactStore& artifacts() { return artifacts_; }

  /// Runs a plan, a query or a command, and puts what it gives into `operation->sink`. Blocks; takes a big stack
  /// itself. Errors are the ones that the client shall see.
  Result<Completion> Execute(const spark::connect::Plan& plan, const OperationPtr& operation);
  /// Every variant of AnalyzePlan; identifiers of the response are left to the caller. Takes a big stack itself.
  Result<void> Analyze(const spark::connect::AnalyzePlanRequest& request,
                       spark::connect::AnalyzePlanResponse* response);

  /// Keeps a running operation for `Interrupt`. kAlreadyExists where its id is running; kCancelled where its run has
  /// ended.
  Result<void> AddOperation(const OperationPtr& operation);
  /// Forgets this operation, not another one that has its id by now.
  void RemoveOperation(const OperationPtr& operation);
  /// Each gives the ids that were asked to end.
  std::vector<std::string> InterruptAll();
  std::vector<std::string> InterruptTag(const std::string& tag);
  std::vector<std::string> InterruptOperation(const std::string& id);

  /// Operations of `run` are accepted from now on.
  void BeginRun(const std::string& run);
  /// Refuses operations of `run` from now on, interrupts those that are running and waits up to `timeout_ms` for their
  /// end.
  void EndRun(const std::string& run, std::int64_t timeout_ms);

  /// Milliseconds since the epoch of the last call from its client.
  std::int64_t last_used_ms() const;
  void Touch();
  /// True while operations run or streams of this session are active: such a session does not expire.
  bool InUse() const;
  /// Cancels every operation, stops every stream, forgets everything. Idempotent.
  void Close();
  bool closed() const;

  /// A session with the settings, views, current names and artifacts of this one.
  Result<std::shared_ptr<Session>> Clone(SessionKey key);

  /// For the rooms that act for a client inside the server.
  SessionState& state() { return *state_; }

 private:
  const SessionKey key_;
  const std::string server_side_id_;
  const std::shared_ptr<const Services> services_;
  Config config_;
  ArtifactStore artifacts_;
  std::unique_ptr<SessionState> state_;

  mutable std::mutex mutex_;
  std::map<std::string, OperationPtr> operations_;
  std::condition_variable operation_ended_;
  std::set<std::string> runs_;
  std::int64_t last_used_ms_ = 0;
  bool closed_ = false;
};

using SessionPtr = std::shared_ptr<Session>;

}  // namespace fleuve::session
