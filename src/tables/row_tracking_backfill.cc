#include "delta/features.h"
#include "delta/row_tracking.h"
#include "delta/transaction.h"
#include "tables/data_files_internal.h"
#include "tables/upgrades_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

Result<void> BackfillRowIds(const TableContext& context, const TableRef& table) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(delta::SnapshotPtr snapshot, log->Latest());
  if (!delta::HasFeature(snapshot->protocol(), "rowTracking")) {
    // From here on every writer gives ids to new files; what is there gets its own after that.
    delta::Transaction transaction(log, snapshot);
    FLEUVE_ASSIGN(delta::Protocol protocol, delta::WithFeature(snapshot->protocol(), "rowTracking"));
    Json parameters(Json::Object{});
    Json shown(Json::Object{});
    shown.Set("minReaderVersion", Json(static_cast<std::int64_t>(protocol.min_reader_version)));
    shown.Set("minWriterVersion", Json(static_cast<std::int64_t>(protocol.min_writer_version)));
    parameters.Set("newProtocol", Json(shown.Dump()));
    transaction.UpdateProtocol(std::move(protocol));
    delta::Operation operation = NamedOperation(context, "UPGRADE PROTOCOL");
    operation.parameters = std::move(parameters);
    FLEUVE_TRY(transaction.Commit({}, std::move(operation)));
    FLEUVE_ASSIGN(snapshot, log->Latest());
  }
  std::vector<delta::AddFile> bare;
  std::vector<delta::Action> actions;
  snapshot->ForEachFile([&](const delta::AddFile& add) {
    if (!add.base_row_id) {
      bare.push_back(add);
      delta::AddFile again = add;
      again.data_change = false;
      actions.emplace_back(std::move(again));
    }
  });
  if (bare.empty()) {
    return {};
  }
  delta::Transaction transaction(log, snapshot);
  transaction.ReadFiles(bare, {}, {});
  delta::Operation operation = NamedOperation(context, "ROW TRACKING BACKFILL");
  operation.parameters.Set("batchId", Json(std::int64_t{0}));
  operation.tags = {{"delta.rowTracking.preserved", "true"}};
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation)));
  log->WaitForBackground();
  return {};
}

}  // namespace fleuve::tables
