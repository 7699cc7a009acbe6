#include "delta/skipping.h"
#include "tables/data_files_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/upgrades_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;

namespace {

bool IsOfMapping(std::string_view key) {
  return key.starts_with("delta.columnMapping.") || key.starts_with("parquet.field.");
}

}  // namespace

Result<void> RemoveColumnMapping(const TableContext& context, const TableRef& table,
                                 const delta::StringMap& properties) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  delta::Metadata metadata = snapshot->metadata();
  const types::Schema schema = WithoutFieldMetadata(snapshot->schema(), IsOfMapping);
  if (const auto named = CheckColumns(schema, false); !named.ok()) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
                 "Column mapping cannot be removed: " + named.error().message());
  }
  for (const auto& [key, value] : properties) {
    delta::SetIn(metadata.configuration, key, value);
  }
  delta::EraseFrom(metadata.configuration, "delta.columnMapping.maxColumnId");
  metadata.schema_string = SchemaText(schema);

  delta::Transaction transaction(log, snapshot);
  transaction.ReadWholeTable();
  FLEUVE_TRY(transaction.UpdateMetadata(metadata));
  const std::vector<delta::AddFile> files = snapshot->AllFiles();
  std::vector<delta::Action> actions;
  DataFiles written;
  if (!files.empty()) {
    const plan::PlanPtr leaf = TableLeaf(snapshot, table.name);
    FLEUVE_ASSIGN(const FileRows rows, ScanFiles(snapshot, files, leaf->output, {.row_ids = true}));
    std::vector<plan::ExprPtr> columns;
    for (const plan::Attribute& attribute : leaf->output) {
      columns.push_back(plan::MakeAttribute(attribute));
    }
    std::vector<plan::ExprPtr> ids;
    for (const plan::Attribute& attribute : rows.row_ids) {
      ids.push_back(plan::MakeAttribute(attribute));
    }
    types::Schema with_ids = schema;
    AppendRowIds(metadata, std::move(ids), &columns, &with_ids);
    DataFileOptions options;
    options.data_change = false;
    FLEUVE_ASSIGN(written, WriteDataFiles(context, table.location, metadata, schema,
                                          ProjectTo(rows.plan, std::move(columns), with_ids), {}, options));
    const std::int64_t now = context.logs->context().clock->NowMillis();
    for (const delta::AddFile& add : files) {
      actions.emplace_back(RemovalOf(add, now, false));
    }
    for (const delta::AddFile& add : written.adds) {
      actions.emplace_back(add);
    }
  }
  delta::Operation operation = NamedOperation(context, "REMOVE COLUMN MAPPING");
  Json parameters(Json::Object{});
  Json given(Json::Object{});
  for (const auto& [key, value] : properties) {
    given.Set(key, Json(value));
  }
  parameters.Set("properties", Json(given.Dump()));
  operation.parameters = std::move(parameters);
  operation.metrics = {{"numRewrittenFiles", std::to_string(files.size())},
                       {"numOutputRows", std::to_string(written.row_count)},
                       {"numOutputBytes", std::to_string(written.bytes)},
                       {"numCopiedRows", std::to_string(written.row_count)},
                       {"numFiles", std::to_string(written.adds.size())}};
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation), written.files, written.folders));
  log->WaitForBackground();
  return {};
}

}  // namespace fleuve::tables
