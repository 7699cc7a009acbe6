#pragma once

/// \file
/// The writing end of a stream: one batch is run, made durable and committed, each at most once for the table.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/resource_lease.h"
#include "base/result.h"
#include "connectors/source.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"
#include "storage/object_store.h"

namespace fleuve::engine {
class Engine;
class RunObserver;
}  // namespace fleuve::engine

namespace fleuve::connectors {

/// What `writeStream` says about the place of the rows, as the user wrote it.
struct SinkSpec {
  /// Lower case: delta, memory, console, noop, ...
  std::string format;
  /// Where the rows go (start(path), option path, or the location of the table of toTable); empty where not given.
  std::string path;
  /// Name parts of toTable's table; empty otherwise. The caller has created the table.
  std::vector<std::string> table_name;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  plan::Options options;
  /// append, update, complete.
  std::string output_mode = "append";
};

/// What a sink may ask of the session that started the query.
struct SessionHooks {
  /// Creates or replaces the temporary view `name` over a table (memory sink). Rows are read when the view is used.
  std::function<Result<void>(const std::string& name, std::shared_ptr<const plan::TableSource> table)> publish_view;
  /// The text of show() of a prepared-or-not plan (console sink). \param truncate  0 = whole values.
  std::function<Result<std::string>(const plan::PlanPtr& plan, std::int64_t rows, std::int64_t truncate)> show_text;
};

/// What a sink knows of its query.
struct SinkContext {
  std::string query_id;
  std::string run_id;
  std::optional<std::string> query_name;
  /// Columns of the query.
  types::Schema schema;
  plan::AnalysisConfig config;
  SessionHooks hooks;
};

/// An engine to run something on, with the share of the process's budget that it uses. May outlive the batch.
struct EngineLoan {
  std::unique_ptr<ResourceLease> lease;
  std::shared_ptr<engine::Engine> engine;
};

/// One batch for a sink.
struct SinkBatch {
  BatchId batch_id;
  /// Analyzed plan without streaming leaves; its visible output has the columns of the query. Not yet prepared: a sink
  /// puts its casts on top, prepares (plan::Prepare with `config`) and runs it.
  plan::PlanPtr plan;
  /// Analysis settings with the batch's timestamp.
  plan::AnalysisConfig config;
  /// Lent for this batch; lives longer than its `StagedBatch`. Null for sinks that run user code.
  engine::Engine* engine = nullptr;
  /// For sinks that run user code: an engine for as long as they need one. Waits for a free share of the budget;
  /// kCancelled when the token is cancelled first. Threads: any, also after the batch.
  std::function<Result<EngineLoan>(const CancellationTokenPtr& token)> borrow_engine;
  CancellationTokenPtr token;
  int threads = 1;
  /// Names this run of this batch; unique in the world. Goes into `commitInfo.txnId`.
  std::string attempt_id;
  /// Goes into `commitInfo.fleuve`: queryId, batchId, offsets.
  Json commit_fields;
  /// Planned by an earlier run: the sink may already hold it.
  bool is_recovered = false;
  /// To be given to the engine's run; counts the rows of leaves and computes observe().
  std::shared_ptr<engine::RunObserver> observer;
  /// To be called with the plan that runs, so that `observer`'s leaves can be found. May be null.
  std::function<void(const plan::PlanPtr& prepared)> on_prepared;
};

/// What a sink with a memory says of a batch.
struct SinkRecord {
  /// The newest batch of this query that the sink holds; -1: none.
  std::int64_t newest_batch = -1;
  /// `commitInfo.txnId` and the end offsets of that commit where they are known.
  std::string attempt_id;
  std::vector<std::string> offsets;
  /// What must be durable before a batch that was found counts: the run that committed it may have died before its
  /// sync (`StagedBatch::AfterCommit`).
  DurableRecords after_commit{};
};

enum class CommitOutcome {
  kCommitted,
  kAlreadyThere,  ///< another run of this query has committed this batch or a later one
};

/// A batch that has run and waits to be made visible. Destroyed without `Commit`: what it wrote is left for clean-up.
class StagedBatch {
 public:
  virtual ~StagedBatch() = default;
  /// True where the run found that the sink already holds this batch or a later one: nothing was written.
  virtual bool already_there() const { return false; }
  /// What must be durable before `Commit` (data files, folders that gained a name, the staged commit).
  virtual DurableRecords BeforeCommit() { return {}; }
  /// Makes the batch visible, once. Settles lost answers and lost races itself.
  virtual Result<CommitOutcome> Commit() = 0;
  /// What must be durable before the batch counts (the log's folder).
  virtual DurableRecords AfterCommit() { return {}; }
  /// Work that may be done once the batch counts, beside the next one.
  virtual void Finish() {}
  /// Rows given out; -1: not told (Delta, as Spark).
  virtual std::int64_t num_output_rows() const { return -1; }
};

/// A running sink of one query. Threads: the query's loop thread.
class Sink {
 public:
  virtual ~Sink() = default;
  /// `DeltaSink[/x]`, `ConsoleTable$`, ...: progress' `description`.
  virtual std::string description() const = 0;
  /// The store of what `BeforeCommit` and `AfterCommit` name; null: nothing to sync.
  virtual storage::ObjectStore* store() const { return nullptr; }
  /// True where running a batch already changes the outside world (console, foreachBatch, Kafka): the planned offsets
  /// are made durable before such a run.
  virtual bool run_is_effect() const { return false; }
  /// True where `Run` waits for code of the user, which may itself need what the process lends: no lease and no engine
  /// is held meanwhile, the sink borrows them (`SinkBatch::borrow_engine`).
  virtual bool runs_user_code() const { return false; }
  /// An identity that must not change between runs (the Delta table's id); empty: none. May be asked once the sink has
  /// committed a batch or found its table.
  virtual Result<std::string> Identity() { return std::string(); }
  /// The newest batch of the query that the sink holds. Called before each batch; must be cheap when nothing changed.
  virtual Result<SinkRecord> Newest() { return SinkRecord{}; }
  /// Looks for the commit of one batch in the sink's history, where `Newest` has forgotten it. kNotFound: not there.
  virtual Result<SinkRecord> FindBatch(BatchId batch) {
    (void)batch;
    return SinkRecord{};
  }
  /// Runs the batch: rows are written where nobody sees them yet.
  virtual Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) = 0;
  virtual void Stop() {}
};

/// The event time that a watermark of the query takes from one source.
struct EventTime {
  /// The time over `columns`.
  plan::ExprPtr time;
  /// Attributes of the leaf that reads the source.
  std::vector<plan::Attribute> columns;
  /// A column (or a field of one) of the source, not a computed value.
  bool is_plain_column = false;
  /// Why the time cannot be followed down to this source alone; empty: `time` is set.
  std::string refusal;
};

/// What a source knows of its query.
struct SourceContext {
  int index = 0;
  std::string query_id;
  std::string run_id;
  /// The store and folder of the checkpoint; the source's own folder is `metadata_path`.
  storage::Location checkpoint;
  /// `<checkpoint>/sources/<index>`; not created yet.
  std::string metadata_path;
  /// The checkpoint held offsets when the query started.
  bool is_restart = false;
  /// Settings, time zone and `conf` of the session at start.
  plan::AnalysisConfig config;
  CancellationTokenPtr token;
  /// nullopt: no watermark above the source.
  std::optional<EventTime> event_time;
};

/// What `readStream` says.
struct StreamRequest {
  /// Lower case: json, delta, cloudfiles, rate, ...
  std::string format;
  std::optional<types::Schema> schema;
  plan::Options options;
  std::vector<std::string> paths;
  /// Name parts of the table for readStream.table (paths then holds its location).
  std::vector<std::string> table_name;
};

/// One system that can be read as a stream. Threads: any.
class SourceProvider {
 public:
  virtual ~SourceProvider() = default;
  /// What the analyzer needs: schema and name. Errors are the ones that `load()` raises.
  virtual Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                                      const plan::AnalysisConfig& config) = 0;
  /// The running source of a relation that this provider resolved. Errors end the query (STREAM_FAILED).
  virtual Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                                     const SourceContext& context) = 0;
  /// What `start()` refuses because of the checkpoint or of the other sources of the query.
  /// \param relations  all distinct streams of the query that this provider resolved.
  virtual Result<void> CheckStart(const std::vector<std::shared_ptr<const plan::StreamRelation>>& relations,
                                  const storage::Location& checkpoint, const plan::AnalysisConfig& config) {
    (void)relations;
    (void)checkpoint;
    (void)config;
    return {};
  }
};

/// One system that can be written as a stream. Threads: any.
class SinkProvider {
 public:
  virtual ~SinkProvider() = default;
  /// The refusals that come before a look at the plan and the checkpoint: output mode, path, partitioning.
  /// \param context  without a query id.
  virtual Result<void> CheckSpec(const SinkSpec& spec, const SinkContext& context) {
    (void)spec;
    (void)context;
    return {};
  }
  /// Makes the sink; errors are the ones that `start()` raises. No table is written before the first batch.
  virtual Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& context) = 0;
  /// True for memory, console, noop, foreach, foreachBatch: a query without checkpoint location gets a temporary one.
  virtual bool uses_temporary_checkpoint() const { return false; }
};

/// The systems this process knows, by lower-case format name. Filled at start-up, then only read.
class ConnectorRegistry {
 public:
  void AddSource(std::string format, std::shared_ptr<SourceProvider> provider) {
    sources_[std::move(format)] = std::move(provider);
  }
  void AddSink(std::string format, std::shared_ptr<SinkProvider> provider) {
    sinks_[std::move(format)] = std::move(provider);
  }
  /// Null where the format cannot be read, or written, as a stream.
  SourceProvider* source(const std::string& format) const {
    auto it = sources_.find(format);
    return it == sources_.end() ? nullptr : it->second.get();
  }
  SinkProvider* sink(const std::string& format) const {
    auto it = sinks_.find(format);
    return it == sinks_.end() ? nullptr : it->second.get();
  }

 private:
  std::map<std::string, std::shared_ptr<SourceProvider>> sources_;
  std::map<std::string, std::shared_ptr<SinkProvider>> sinks_;
};

}  // namespace fleuve::connectors
