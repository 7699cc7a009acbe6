#pragma once

/// \file
/// All streaming queries of the process: starting, finding, waiting for any, listening.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/resource_lease.h"
#include "base/result.h"
#include "connectors/sink.h"
#include "plan/streaming_check.h"
#include "stream/query.h"

namespace fleuve::stream {

enum class EventKind { kStarted, kProgress, kIdle, kTerminated };

/// Hears of queries. Called from a thread of the manager, one event at a time; `kStarted` from the thread that starts
/// the query, before `Start` returns.
class Listener {
 public:
  virtual ~Listener() = default;
  /// \param event_json  as `StreamingQueryListener` events print themselves.
  virtual void OnEvent(EventKind kind, const std::string& event_json) = 0;
};

/// Spark's rules for the plan of a query, by the settings of its session; the errors that `Start` raises for it.
Result<void> CheckPlan(const QueryRequest& request);
/// Those rules, as the request's settings have them.
plan::StreamingRules RulesOf(const QueryRequest& request);

/// What the manager needs of the process.
struct ManagerOptions {
  std::shared_ptr<const connectors::ConnectorRegistry> connectors;
  /// A new instance with one thread; batches borrow those that are there (see `EnginePool`).
  std::function<Result<std::shared_ptr<engine::Engine>>()> make_engine;
  std::shared_ptr<ResourceBudget> budget;
  /// An existing folder for temporary checkpoints.
  std::string scratch = "/tmp";
  Clock* clock = Clock::System();
};

/// One per process. Threads: every method from any thread.
class Manager {
 public:
  virtual ~Manager() = default;
  static std::shared_ptr<Manager> Make(ManagerOptions options);

  /// Starts a query; returns when its thread runs. Errors are the ones that `start()` raises: unsupported plans, output
  /// modes, names, no checkpoint location (resolved here: option, setting, temporary folder). Everything later ends the
  /// query and shows in `failure()`. A running query with the same checkpoint is stopped first.
  virtual Result<QueryPtr> Start(QueryRequest request) = 0;

  /// Running queries of a session, in the order of their start.
  virtual std::vector<QueryPtr> Active(const std::string& session_key) const = 0;
  /// A running query by id; null where there is none.
  virtual QueryPtr Get(const std::string& session_key, const std::string& id) const = 0;
  /// A query of this run, running or ended (ended ones are kept for an hour); null where it is unknown.
  virtual QueryPtr Find(const std::string& session_key, const std::string& id, const std::string& run_id) const = 0;
  /// True once a query of the session has ended since the session began or `ResetTerminated`; its failure where the
  /// last ended one failed. False when `timeout_ms` has passed.
  virtual Result<bool> AwaitAny(const std::string& session_key, std::optional<std::int64_t> timeout_ms,
                                const CancellationTokenPtr& token) = 0;
  virtual void ResetTerminated(const std::string& session_key) = 0;

  /// Events of the session's queries from now on. Returns a key for `RemoveListener`.
  virtual std::int64_t AddListener(const std::string& session_key, std::shared_ptr<Listener> listener) = 0;
  virtual void RemoveListener(std::int64_t key) = 0;

  /// Ends the queries of one session (it was released).
  virtual void StopSession(const std::string& session_key) = 0;
  /// Ends every query: waits up to `grace_ms` for batches in flight, then cancels them. For SIGTERM.
  virtual void StopAll(std::int64_t grace_ms) = 0;
  /// Every query of the process, running or ended lately: for the web page.
  virtual std::vector<QueryPtr> All() const = 0;
};

}  // namespace fleuve::stream
