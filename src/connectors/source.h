#pragma once

/// \file
/// The reading end of a stream: offsets, admission control, and what lies between two offsets.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "plan/logical_plan.h"
#include "plan/scan.h"

namespace fleuve::connectors {

/// A position in a source: one line of JSON (or a bare number) exactly as it stands in `offsets/N`.
using Offset = std::string;

/// How the next end offset is found.
enum class Admission {
  kRateLimited,   ///< the source's own limits (maxFilesPerTrigger, ...)
  kAllAvailable,  ///< everything there is (Trigger.Once)
};

/// What one batch reads of one source. Exactly one of `scan` and `rows` is set, or none: the batch is empty.
/// The columns of `scan` (data, partition, constants) are found by name in the source's schema, whatever their order;
/// `with_metadata` is set by the loop where the plan uses `_metadata`. `rows` is in the order of the schema.
struct BatchInput {
  std::shared_ptr<const plan::FileScan> scan;
  std::shared_ptr<const plan::RowScan> rows;
  /// Further scans beside `scan`, of the same columns by name (change files beside whole files).
  std::vector<std::shared_ptr<const plan::FileScan>> more_scans;
  /// Makes analyzed plans that are read beside `scan`: their columns are found by name in the source's schema,
  /// `_metadata` among them. Called once for each leaf of the query that reads the source; null: there are none. Plans
  /// that were made for one leaf may be run again, one run after the other.
  std::function<std::vector<plan::PlanPtr>()> make_plans;
  /// Over the attributes of `SourceContext::event_time`: only rows for which it is true are read. May be null.
  plan::ExprPtr filter;
  /// Rows that a scan will give where the source knows it (Delta statistics); -1: counted while running.
  std::int64_t row_count = -1;
};

/// Records of a batch that must be durable with `offsets/N` (file source log, Auto Loader ledger): paths to sync.
struct DurableRecords {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

/// A running source of one query. Threads: all methods from the query's loop thread, but `SetDataListener`'s callback
/// comes from anywhere.
class Source {
 public:
  virtual ~Source() = default;
  virtual const types::Schema& schema() const = 0;
  /// `DeltaSource[file:/x]`, `FileStreamSource[file:/x]`, `RateStreamV2[...]`: progress' `description`.
  virtual std::string description() const = 0;

  /// Called once before anything else. \param metadata_path  `<checkpoint>/sources/<i>`.
  /// The offset where a new query begins; nullopt: before everything (progress shows null).
  virtual Result<std::optional<Offset>> InitialOffset() = 0;
  /// The end of the next batch after `start` (nullopt: nothing read yet) under `admission`; equal to `start` or nullopt
  /// where nothing is new. Durable records of the source are written here, not synced.
  virtual Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission admission) = 0;
  /// Fixes the target of Trigger.AvailableNow: later `LatestOffset` calls stop there.
  virtual Result<void> PrepareForAvailableNow() = 0;
  /// True where an offset means the same without what the source keeps in the checkpoint (Delta versions, rate): the
  /// offsets of lost batches may then be taken from the sink's commits.
  virtual bool offsets_stand_alone() const { return false; }
  /// Says which planned range a restarted query will run again before new ones (a source may check its files).
  /// kNotFound: the source's record of the range never became durable; the batch is planned anew.
  virtual Result<void> Recover(const std::optional<Offset>& start, const std::optional<Offset>& end) {
    (void)start;
    (void)end;
    return {};
  }
  /// The batch that begins at `start` stands in `offsets/N`. A source that cannot go on beyond `start` in this run (its
  /// table's schema changes there) makes its records durable and says so now: the batch runs after a restart.
  virtual Result<void> BatchPlanned(const std::optional<Offset>& start) {
    (void)start;
    return {};
  }
  /// What lies in (start, end].
  virtual Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) = 0;
  /// What the last `LatestOffset` wrote and W1 must sync.
  virtual DurableRecords TakeDurableRecords() { return {}; }
  /// The batch that ends at `end` is committed: the source may clean up.
  virtual Result<void> Commit(const Offset& end) {
    (void)end;
    return {};
  }
  /// For progress: `metrics` of the source and its newest offset.
  virtual std::map<std::string, std::string> Metrics(const std::optional<Offset>& latest_consumed) {
    (void)latest_consumed;
    return {};
  }
  /// `latestOffset` in progress; nullopt prints null.
  virtual std::optional<Offset> ReportLatestOffset() { return std::nullopt; }
  /// `callback` is called when new data may be there, so that an idle query need not poll. A source that cannot tell
  /// returns false and is polled.
  virtual bool SetDataListener(std::function<void()> callback) {
    (void)callback;
    return false;
  }
  /// After a `LatestOffset` that found nothing: data was seen that may be taken in so many milliseconds (a file that
  /// may still be written). The loop looks again then; until then processAllAvailable and Trigger.AvailableNow wait.
  virtual std::optional<std::int64_t> LookAgainMs() { return std::nullopt; }
  /// Ends what the source runs in the background. Nothing is called afterwards.
  virtual void Stop() {}
};

}  // namespace fleuve::connectors
