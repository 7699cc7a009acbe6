#include "base/ids.h"
#include "delta/deletion_vector.h"
#include "delta/table_source.h"
#include "tables/commands.h"
#include "tables/data_files_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::Value;

namespace {

/// The file as another table names it: by its absolute URI.
Result<delta::AddFile> FromElsewhere(const delta::AddFile& add, const storage::Location& source) {
  delta::AddFile out = add;
  FLEUVE_ASSIGN(const std::string path, delta::AbsolutePath(source, add.path));
  out.path = "file:" + delta::EncodeUriPath(path);
  out.data_change = true;
  if (add.deletion_vector && add.deletion_vector->storage_type == "u") {
    FLEUVE_ASSIGN(const std::string vector, delta::DeletionVectorPath(*add.deletion_vector, source));
    out.deletion_vector->storage_type = "p";
    out.deletion_vector->path_or_inline_dv = "file:" + delta::EncodeUriPath(vector);
  }
  return out;
}

RowsResult CloneResult(std::int64_t size, std::int64_t files) {
  return {CloneResultSchema(), {{Value(size), Value(files), Value(0), Value(0), Value(0), Value(0)}}};
}

}  // namespace

types::Schema CloneResultSchema() {
  std::vector<types::StructField> fields;
  for (const char* name : {"source_table_size", "source_num_of_files", "num_removed_files", "num_copied_files",
                           "removed_files_size", "copied_files_size"}) {
    fields.push_back({name, DataType::Long(), true, Json()});
  }
  return DataType::Struct(std::move(fields));
}

Result<RowsResult> CloneTable(const TableContext& context, const TableRef& table, const CloneSpec& spec) {
  const delta::Snapshot& source = *spec.source;
  FLEUVE_TRY(delta::CheckWritable(source.protocol(), spec.source_name));
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  delta::SnapshotPtr target;
  if (auto latest = log->Latest(); latest.ok()) {
    target = *latest;
  } else if (latest.error().condition() != "DELTA_TABLE_NOT_FOUND") {
    return std::move(latest).error();
  }
  if (target != nullptr && (target->file_count() > 0 || !spec.replace)) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_NON_EMPTY_CLONE",
                 "The clone's target " + table.name + " is not empty: empty it, or clone to another place.");
  }
  FLEUVE_ASSIGN(const delta::StringMap properties, CheckProperties(spec.properties));
  delta::Metadata metadata = source.metadata();
  metadata.id = target == nullptr ? NewUuid() : target->metadata().id;
  metadata.created_time = context.logs->context().clock->NowMillis();
  for (const auto& [key, value] : properties) {
    delta::SetIn(metadata.configuration, key, value);
  }
  std::vector<delta::Action> actions;
  for (const delta::DomainMetadata& domain : source.Domains()) {
    actions.emplace_back(domain);
  }
  Result<void> walked;
  source.ForEachFile([&](const delta::AddFile& add) {
    if (!walked.ok()) {
      return;
    }
    auto file = FromElsewhere(add, source.location());
    if (!file.ok()) {
      walked = std::move(file).error();
      return;
    }
    actions.emplace_back(*std::move(file));
  });
  FLEUVE_TRY(std::move(walked));

  delta::Transaction transaction(log, target);
  if (target != nullptr) {
    transaction.ReadWholeTable();
  }
  transaction.UpdateProtocol(source.protocol());
  FLEUVE_TRY(transaction.UpdateMetadata(std::move(metadata)));
  delta::Operation operation = NamedOperation(context, "CLONE");
  Json parameters(Json::Object{});
  parameters.Set("source", Json(spec.source_name));
  parameters.Set("sourceVersion", Json(source.version()));
  operation.parameters = std::move(parameters);
  operation.is_blind_append = false;
  operation.metrics = {{"sourceTableSize", std::to_string(source.size_bytes())},
                       {"sourceNumOfFiles", std::to_string(source.file_count())},
                       {"numRemovedFiles", "0"},
                       {"numCopiedFiles", "0"},
                       {"removedFilesSize", "0"},
                       {"copiedFilesSize", "0"}};
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation)));
  log->WaitForBackground();
  return CloneResult(source.size_bytes(), source.file_count());
}

}  // namespace fleuve::tables
