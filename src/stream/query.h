#pragma once

/// \file
/// A streaming query as its user sees it: identity, progress, waiting, stopping.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/json.h"
#include "base/result.h"
#include "connectors/sink.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::stream {

enum class TriggerKind { kProcessingTime, kOnce, kAvailableNow };

struct TriggerSpec {
  TriggerKind kind = TriggerKind::kProcessingTime;
  /// 0: the next batch as soon as there is data.
  std::int64_t interval_ms = 0;
};

/// `10 seconds`, `1 minute`, `interval 2 hours`: milliseconds. Errors as Spark's: months and years, negative values, no
/// interval.
Result<std::int64_t> ParseTriggerInterval(const std::string& text);

/// `append`, `update` or `complete` from any letter case; empty is append. STREAMING_OUTPUT_MODE.INVALID otherwise.
Result<std::string> ParseOutputMode(const std::string& text);

/// Everything a query needs to start.
struct QueryRequest {
  /// Analyzed plan with at least one streaming leaf. References to one relation object share one source.
  plan::PlanPtr plan;
  connectors::SinkSpec sink;
  /// The provider of a sink that belongs to this query alone (foreachBatch, foreach); null: by `sink.format`.
  std::shared_ptr<connectors::SinkProvider> sink_provider;
  TriggerSpec trigger;
  std::optional<std::string> name;
  /// A copy of the session's settings at this moment; `conf` answers `spark.sql.streaming.*` and `fleuve.*` keys.
  plan::AnalysisConfig config;
  connectors::SessionHooks hooks;
  /// The table as it is now, for a static leaf (Delta without time travel: its newest version); asked once per batch.
  /// Gives the same object where the table does not move. May be empty: leaves stay as they are.
  std::function<Result<std::shared_ptr<const plan::TableSource>>(const std::shared_ptr<const plan::TableSource>& table)>
      refresh_table;
  /// Whose query it is: names are unique and `active` is answered within it.
  std::string session_key;
  /// `fleuve.state.memoryLimit` in bytes; 0: a quarter of the machine's or the control group's memory.
  std::int64_t state_memory_limit_bytes = 0;
  /// Names of a plan printed by explain(); may be empty.
  std::function<std::string(const plan::PlanPtr& plan, bool extended)> explain;
};

struct QueryStatus {
  std::string message;
  bool is_data_available = false;
  bool is_trigger_active = false;
  bool is_active = false;
};

/// A failure in the forms that clients show.
struct QueryFailure {
  /// STREAM_FAILED with the cause inside: what awaitTermination raises.
  Error error;
  /// The text of `str(query.exception())`: the cause's message, then `=== Streaming Query ===` and the rest.
  std::string description;
  /// Condition of the cause (what `errorClassOnException` tells); empty where it has none.
  std::string cause_condition;
};

/// A query that runs or has ended. Threads: every method from any thread.
class Query {
 public:
  virtual ~Query() = default;
  virtual const std::string& id() const = 0;
  virtual const std::string& run_id() const = 0;
  virtual const std::optional<std::string>& name() const = 0;
  virtual const std::string& session_key() const = 0;

  virtual QueryStatus status() const = 0;
  bool is_active() const { return status().is_active; }
  /// Progress documents, oldest first, as a Spark Connect server sends them (one JSON object each).
  virtual std::vector<std::string> RecentProgress() const = 0;
  virtual std::optional<std::string> LastProgress() const = 0;
  /// Nullopt while the query is healthy or was stopped.
  virtual std::optional<QueryFailure> failure() const = 0;
  /// The plan of the last batch, or `No physical plan. Waiting for data.`
  virtual std::string Explain(bool extended) const = 0;
  /// The JSON of the QueryStarted event.
  virtual const std::string& started_event() const = 0;

  /// Ends the query and waits for its thread. The batch in flight is given up and run again at the next start.
  /// Idempotent.
  virtual Result<void> Stop() = 0;
  /// True once the query has ended, false when `timeout_ms` has passed; without it, waits for ever. The query's
  /// failure, where it failed. kCancelled through `token`, which may be null.
  virtual Result<bool> AwaitTermination(std::optional<std::int64_t> timeout_ms, const CancellationTokenPtr& token) = 0;
  /// Waits until a trigger finds nothing new. The query's failure where it fails meanwhile.
  virtual Result<void> ProcessAllAvailable(const CancellationTokenPtr& token) = 0;
};

using QueryPtr = std::shared_ptr<Query>;

}  // namespace fleuve::stream
