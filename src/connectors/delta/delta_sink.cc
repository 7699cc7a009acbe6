#include "base/bytes.h"
#include "base/failpoint.h"
#include "connectors/delta/delta_sink_internal.h"
#include "connectors/delta/upsert_internal.h"
#include "delta/table_source.h"
#include "tables/write.h"

namespace fleuve::connectors::delta {

namespace {

namespace dl = ::fleuve::delta;

/// A batch that the table already holds.
class HeldBatch final : public StagedBatch {
 public:
  explicit HeldBatch(std::string log_folder) : log_folder_(std::move(log_folder)) {}
  bool already_there() const override { return true; }
  Result<CommitOutcome> Commit() override { return CommitOutcome::kAlreadyThere; }
  /// The run that committed it may have died before its sync.
  DurableRecords AfterCommit() override { return {{}, {log_folder_}}; }

 private:
  const std::string log_folder_;
};

class DeltaBatch final : public StagedBatch {
 public:
  DeltaBatch(std::unique_ptr<tables::PendingWrite> write, std::string log_folder)
      : write_(std::move(write)), log_folder_(std::move(log_folder)) {}
  DurableRecords BeforeCommit() override { return {write_->files(), write_->folders()}; }
  Result<CommitOutcome> Commit() override {
    auto committed = write_->Commit();
    if (!committed.ok()) {
      if (committed.error().condition() == "DELTA_CONCURRENT_TRANSACTION") {
        return CommitOutcome::kAlreadyThere;
      }
      return std::move(committed).error();
    }
    return CommitOutcome::kCommitted;
  }
  DurableRecords AfterCommit() override { return {{}, {log_folder_}}; }

 private:
  std::unique_ptr<tables::PendingWrite> write_;
  const std::string log_folder_;
};

/// A batch that its run has committed already.
class MergedBatch final : public StagedBatch {
 public:
  explicit MergedBatch(std::string log_folder) : log_folder_(std::move(log_folder)) {}
  Result<CommitOutcome> Commit() override { return CommitOutcome::kCommitted; }
  DurableRecords AfterCommit() override { return {{}, {log_folder_}}; }

 private:
  const std::string log_folder_;
};

class DeltaSink final : public Sink {
 public:
  DeltaSink(SinkSpec spec, SinkContext context, storage::Location location, std::string description,
            std::shared_ptr<dl::LogRegistry> logs, std::optional<UpsertOptions> upsert)
      : upsert_(std::move(upsert)),
        spec_(std::move(spec)),
        context_(std::move(context)),
        description_(std::move(description)),
        logs_(std::move(logs)),
        log_(logs_->Open(location)) {
    table_.location = std::move(location);
    table_.name = spec_.table_name.empty() ? "delta.`" + table_.location.path + "`" : Join(spec_.table_name, ".");
    table_.catalog_name = spec_.table_name;
  }

  std::string description() const override { return description_; }
  storage::ObjectStore* store() const override { return table_.location.store.get(); }
  /// An upsert reads the table that it changes: it commits while it runs, so that a conflict can be computed anew.
  bool run_is_effect() const override { return upsert_.has_value(); }

  Result<std::string> Identity() override {
    FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, Snapshot());
    return snapshot ? snapshot->metadata().id : std::string();
  }

  Result<SinkRecord> Newest() override {
    SinkRecord record;
    FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, Snapshot());
    if (snapshot) {
      if (const auto held = snapshot->Transaction(context_.query_id)) {
        record.newest_batch = held->version;
      }
    }
    return record;
  }

  Result<SinkRecord> FindBatch(BatchId batch) override {
    FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, Snapshot());
    for (std::int64_t version = snapshot ? snapshot->version() : -1; version >= 0; --version) {
      auto commit = log_->ReadCommit(version);
      if (!commit.ok()) {
        if (commit.error().kind() != ErrorKind::kNotFound) {
          return std::move(commit).error();
        }
        return Error(ErrorKind::kNotFound, "FLEUVE_CHECKPOINT_BEHIND_SINK",
                     "The history of " + table_.name + " before version " + std::to_string(version + 1) +
                         " is gone, so it cannot be told whether it holds batch " + std::to_string(batch.value) +
                         " of this query. Start with a new checkpoint location.");
      }
      SinkRecord record;
      bool ours = false;
      bool older = false;
      for (const auto& action : commit->actions) {
        if (const auto* txn = std::get_if<dl::SetTransaction>(&action);
            txn != nullptr && txn->app_id == context_.query_id) {
          ours = txn->version == batch.value;
          older = txn->version < batch.value;
          record.newest_batch = txn->version;
        } else if (const auto* info = std::get_if<dl::CommitInfo>(&action)) {
          record.attempt_id = info->txn_id.value_or("");
          for (const Json& offset : info->fleuve["offsets"].items()) {
            record.offsets.push_back(offset.AsString());
          }
        }
      }
      if (ours) {
        record.after_commit.folders.push_back(dl::LogFolder(table_.location.path));
        return record;
      }
      if (older) {
        break;
      }
    }
    return SinkRecord{};
  }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    const std::string log_folder = dl::LogFolder(table_.location.path);
    tables::TableContext context;
    context.logs = logs_.get();
    context.engine = batch.engine;
    context.config = batch.config;
    context.token = batch.token;
    context.observer = batch.observer;
    context.on_prepared = batch.on_prepared;
    tables::WriteSpec spec;
    const bool complete = spec_.output_mode == "complete";
    spec.mode = complete ? tables::SaveMode::kOverwrite : tables::SaveMode::kAppend;
    if (!spec_.partition_by.empty()) {
      spec.partition_by = spec_.partition_by;
    }
    spec.cluster_by = spec_.cluster_by;
    for (const auto& [name, value] : spec_.options) {
      const std::string key = AsciiLower(name);
      // Options of the stream itself, and those that have no effect on a stream (as in the reference).
      if (key == "checkpointlocation" || key == "path" || key == "queryname" || key == "upsertkeys" ||
          key == "sequenceby" || key == "replacewhere" || key == "datachange" || key == "partitionoverwritemode" ||
          key == "txnappid" || key == "txnversion" || (key == "overwriteschema" && !complete)) {
        continue;
      }
      spec.options[name] = value;
    }
    tables::StreamBatch stream;
    stream.query_id = context_.query_id;
    stream.batch_id = batch.batch_id.value;
    stream.output_mode = complete ? "Complete" : "Append";
    stream.reads_target = ReadsTarget(batch.plan);
    stream.attempt_id = batch.attempt_id;
    stream.commit_fields = batch.commit_fields;
    stream.caller_syncs_log = true;
    spec.stream = std::move(stream);
    if (batch.is_recovered) {
      FLEUVE_ASSIGN(const bool forgotten, HoldsForgotten(batch.batch_id));
      if (forgotten) {
        return std::unique_ptr<StagedBatch>(std::make_unique<HeldBatch>(log_folder));
      }
    }
    plan::PlanPtr rows = batch.plan;
    if (upsert_) {
      FLEUVE_ASSIGN(rows, ReduceToKeys(*upsert_, batch));
      FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, Snapshot());
      if (snapshot) {
        // Columns that the table lacks are refused as in an append: MERGE would leave them out.
        FLEUVE_TRY(tables::CheckWrite(context, table_, plan::SchemaOf(*rows), spec));
        const std::string* merge = plan::FindOption(spec_.options, "mergeSchema");
        const bool merge_schema = merge != nullptr && EqualsIgnoreAsciiCase(*merge, "true");
        FLEUVE_ASSIGN(const bool merged, MergeByKeys(*upsert_, rows, context, table_, context_.query_id,
                                                     batch.batch_id.value, merge_schema));
        FLEUVE_TRY(Failpoint("delta_sink.merged"));
        return merged ? std::unique_ptr<StagedBatch>(std::make_unique<MergedBatch>(log_folder))
                      : std::make_unique<HeldBatch>(log_folder);
      }
      // The table is made by this batch: there is nothing to update yet.
      context.observer = nullptr;
      context.on_prepared = nullptr;
    }
    FLEUVE_ASSIGN(auto write, tables::PrepareWrite(context, table_, rows, spec));
    FLEUVE_TRY(Failpoint("delta_sink.files_written"));
    if (write->skipped()) {
      return std::unique_ptr<StagedBatch>(std::make_unique<HeldBatch>(log_folder));
    }
    return std::unique_ptr<StagedBatch>(std::make_unique<DeltaBatch>(std::move(write), log_folder));
  }

  /// Who was told that the query has ended may take the table's folder away: nothing of it is written any more.
  void Stop() override { log_->WaitForBackground(); }

 private:
  /// Null where the table does not exist yet.
  Result<dl::SnapshotPtr> Snapshot() {
    FLEUVE_ASSIGN(const bool exists, log_->Exists());
    if (!exists) {
      return dl::SnapshotPtr();
    }
    return log_->Latest();
  }

  bool ReadsTarget(const plan::PlanPtr& plan) const {
    bool reads = false;
    plan::VisitPlan(plan, [&](const plan::LogicalPlan& node) {
      if (node.kind == plan::PlanKind::kTable && node.table->provider() == "delta") {
        const auto* table = dynamic_cast<const dl::DeltaTable*>(node.table.get());
        reads = reads || (table != nullptr && table->snapshot()->location().path == table_.location.path);
      }
    });
    return reads;
  }

  /// True where the table forgot the transaction (`delta.setTransactionRetentionDuration`) but its history has the
  /// batch.
  Result<bool> HoldsForgotten(BatchId batch) {
    FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, Snapshot());
    if (!snapshot || snapshot->Property("delta.setTransactionRetentionDuration") == nullptr ||
        snapshot->Transaction(context_.query_id)) {
      return false;
    }
    FLEUVE_ASSIGN(const SinkRecord record, FindBatch(batch));
    return record.newest_batch == batch.value;
  }

  const std::optional<UpsertOptions> upsert_;
  const SinkSpec spec_;
  const SinkContext context_;
  const std::string description_;
  const std::shared_ptr<dl::LogRegistry> logs_;
  const dl::DeltaLogPtr log_;
  tables::TableRef table_;
};

}  // namespace

Result<std::unique_ptr<Sink>> MakeDeltaSink(const SinkSpec& spec, const SinkContext& context,
                                            const storage::Location& location, std::string description,
                                            std::shared_ptr<dl::LogRegistry> logs) {
  FLEUVE_ASSIGN(auto upsert, ParseUpsertOptions(spec.options, spec.output_mode));
  return std::unique_ptr<Sink>(
      std::make_unique<DeltaSink>(spec, context, location, std::move(description), std::move(logs), std::move(upsert)));
}

}  // namespace fleuve::connectors::delta
