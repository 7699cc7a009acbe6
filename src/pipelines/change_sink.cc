// The sink of an AUTO CDC flow: a batch goes into the flow's book, then into its target.
#include <algorithm>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/json.h"
#include "connectors/run_batch.h"
#include "engine/engine.h"
#include "pipelines/change_sql_internal.h"
#include "pipelines/changes_internal.h"
#include "pipelines/flow_runs_internal.h"

namespace fleuve::pipelines {

using types::StructField;

namespace {

Error BadEvents(const char* kind, const std::string& what, std::int64_t rows) {
  return Error(ErrorKind::kInvalidArgument, std::string("AUTOCDC_MICROBATCH_VALIDATION.") + kind,
               "A batch of an AUTO CDC flow holds " + std::to_string(rows) + " events without " + what +
                   ". Nothing of it was applied.")
      .With("rowCount", std::to_string(rows));
}

class ChangeBatch final : public connectors::StagedBatch {
 public:
  explicit ChangeBatch(std::int64_t rows) : rows_(rows) {}
  Result<connectors::CommitOutcome> Commit() override { return connectors::CommitOutcome::kCommitted; }
  std::int64_t num_output_rows() const override { return rows_; }

 private:
  const std::int64_t rows_;
};

/// What the sink of one flow needs; copied, so that it does not look at the run's graph.
struct ChangeTarget {
  ChangeRules rules;
  std::vector<std::string> target;
  /// Folder of the flow's checkpoint.
  storage::Location folder;
};

class ChangeSink final : public connectors::Sink {
 public:
  ChangeSink(ChangeTarget target, session::Workbench place)
      : target_(std::move(target)), place_(std::move(place)), view_("__fleuve_events_" + Short()) {}

  std::string description() const override { return "AutoCdcSink[" + Join(target_.target, ".") + "]"; }
  // The offsets are written down first: a batch that died half-way is applied again, whole, which changes nothing more.
  bool run_is_effect() const override { return true; }

  Result<std::unique_ptr<connectors::StagedBatch>> Run(const connectors::SinkBatch& batch) override {
    FLEUVE_ASSIGN(auto reader, connectors::RunBatch(batch, batch.plan));
    FLEUVE_ASSIGN(std::vector<columnar::RecordBatch> batches, engine::ReadAll(*reader));
    reader.reset();
    std::int64_t rows = 0;
    const types::Schema schema = plan::SchemaOf(*batch.plan);
    const auto shared = std::make_shared<const types::Schema>(schema);
    for (columnar::RecordBatch& one : batches) {
      one.schema = shared;
      rows += one.row_count();
    }
    if (rows > 0) {
      place_.PutRows(view_, schema, std::move(batches));
      auto applied = Apply(schema, std::to_string(batch.batch_id.value));
      place_.DropRows(view_);
      FLEUVE_TRY(std::move(applied));
    }
    return std::unique_ptr<connectors::StagedBatch>(std::make_unique<ChangeBatch>(rows));
  }

 private:
  static std::string Short() {
    std::string id = NewUuid();
    std::erase(id, '-');
    return id;
  }

  Result<void> Apply(const types::Schema& events, const std::string& batch) {
    const ChangeSql sql(target_.rules, events, target_.target, target_.folder.path + "/_changes", view_);
    FLEUVE_ASSIGN(const auto counts, place_.Query(sql.Check()));
    if (const std::int64_t missing = counts.at(0).at(0).integer(); missing > 0) {
      return BadEvents("NULL_SEQUENCE", "a sequence", missing);
    }
    if (const std::int64_t missing = counts.at(0).at(1).integer(); missing > 0) {
      return BadEvents("NULL_KEY", "a key", missing);
    }
    FLEUVE_TRY(OpenBook(sql));
    FLEUVE_TRY(place_.RunSql(sql.Record(batch)));
    return place_.RunSql(sql.Apply(batch, counts.at(0).at(2).integer() > 0));
  }

  /// The book is made at the first batch; what it was made for must not change.
  Result<void> OpenBook(const ChangeSql& sql) {
    if (open_) {
      return {};
    }
    Json now;
    now.Set("scdType", Json(target_.rules.scd_type));
    now.Set("allEvents", Json(sql.keeps_all_events()));
    Json::Array keys;
    Json columns;
    for (const StructField& field : sql.columns()) {
      const bool key = std::any_of(target_.rules.keys.begin(), target_.rules.keys.end(),
                                   [&](const std::string& name) { return EqualsIgnoreAsciiCase(name, field.name); });
      if (key) {
        keys.push_back(Json(AsciiLower(field.name) + " " + field.type.Sql()));
      }
      columns.Set(AsciiLower(field.name), Json(field.type.Sql()));
    }
    now.Set("keys", Json(std::move(keys)));
    now.Set("columns", std::move(columns));
    const std::string path = target_.folder.path + "/_changes.json";
    auto known = target_.folder.store->Get(path);
    if (!known.ok() && known.error().kind() != ErrorKind::kNotFound) {
      return known.error();
    }
    FLEUVE_TRY(place_.RunSql(sql.CreateBook()));
    if (known.ok()) {
      FLEUVE_ASSIGN(const Json before, Json::Parse(*known));
      FLEUVE_TRY(CheckDrift(before, now));
      std::vector<StructField> added;
      for (const StructField& field : sql.columns()) {
        if (before["columns"].Find(AsciiLower(field.name)) == nullptr) {
          added.push_back(field);
        }
      }
      if (!added.empty()) {
        FLEUVE_TRY(place_.RunSql(sql.AddBookColumns(added)));
        for (const auto& [name, type] : before["columns"].fields()) {
          if (now["columns"].Find(name) == nullptr) {
            Json all = now["columns"];
            all.Set(name, type);
            now.Set("columns", std::move(all));
          }
        }
      }
      if (added.empty()) {
        open_ = true;
        return {};
      }
    }
    FLEUVE_TRY(target_.folder.store->Put(path, now.Dump(), storage::PutMode::kOverwrite));
    const std::vector<std::string> files = {path};
    const std::vector<std::string> folders = {target_.folder.path};
    FLEUVE_TRY(target_.folder.store->Sync(files, folders));
    open_ = true;
    return {};
  }

  Result<void> CheckDrift(const Json& before, const Json& now) const {
    const auto drift = [&](const char* kind, const std::string& what) {
      return Error(ErrorKind::kInvalidArgument, std::string("AUTOCDC_INVALID_STATE.") + kind,
                   "The AUTO CDC flow into " + Join(target_.target, ".") + " was begun with other " + what +
                       ". Please full refresh the table.")
          .With("tableName", Join(target_.target, "."));
    };
    if (before["scdType"].AsInt() != now["scdType"].AsInt()) {
      return drift("SCD_TYPE_DRIFT", "rules of storage (SCD type " + std::to_string(before["scdType"].AsInt()) + ")");
    }
    if (before["keys"].Dump() != now["keys"].Dump()) {
      return drift("KEY_SCHEMA_DRIFT", "keys: " + before["keys"].Dump());
    }
    if (before["allEvents"].AsBool() != now["allEvents"].AsBool()) {
      return drift("IGNORE_NULL_UPDATES_DRIFT", "rules for NULL updates");
    }
    return {};
  }

  const ChangeTarget target_;
  session::Workbench place_;
  const std::string view_;
  bool open_ = false;
};

class ChangeProvider final : public connectors::SinkProvider {
 public:
  ChangeProvider(ChangeTarget target, session::Workbench place)
      : target_(std::move(target)), place_(std::move(place)) {}
  Result<std::unique_ptr<connectors::Sink>> MakeSink(const connectors::SinkSpec&,
                                                     const connectors::SinkContext&) override {
    return std::unique_ptr<connectors::Sink>(std::make_unique<ChangeSink>(target_, place_));
  }

 private:
  const ChangeTarget target_;
  const session::Workbench place_;
};

}  // namespace

Result<std::shared_ptr<connectors::SinkProvider>> MakeChangeSink(const RunContext& run, std::size_t index) {
  const Flow& flow = run.graph.flows()[index];
  const Dataset& dataset = run.graph.datasets()[*run.graph.FindKey(KeyOf(flow.target))];
  if (dataset.kind != DatasetKind::kStreamingTable || (!dataset.format.empty() && dataset.format != "delta")) {
    return Error(ErrorKind::kUnsupported, "AUTOCDC_TARGET_DOES_NOT_SUPPORT_MERGE",
                 "The target of an AUTO CDC flow is a streaming table of the format delta; " + Join(dataset.name, ".") +
                     " is none.");
  }
  ChangeTarget target;
  target.rules = *flow.changes;
  target.target = dataset.name;
  FLEUVE_ASSIGN(const std::string folder, run.checkpoints.Folder(flow));
  target.folder = storage::Location{run.checkpoints.root().store, folder};
  FLEUVE_ASSIGN(session::Workbench place, run.stage.Place(run.resolved.flows[index].conf, flow.database));
  return std::shared_ptr<connectors::SinkProvider>(
      std::make_shared<ChangeProvider>(std::move(target), std::move(place)));
}

}  // namespace fleuve::pipelines
