#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "delta/features.h"
#include "delta/row_tracking.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "tables/alter_internal.h"
#include "tables/commands.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

namespace {

/// A feature that can be taken from a table.
struct Removable {
  std::string_view name;
  /// Readers must know it: old versions stay unreadable without it, so their checkpoints are protected.
  bool reader = false;
};
constexpr Removable kRemovable[] = {
    {"deletionVectors", true},       {"typeWidening", true},        {"typeWidening-preview", true},
    {"v2Checkpoint", true},          {"vacuumProtocolCheck", true}, {"columnMapping", true},
    {"inCommitTimestamp", false},    {"checkConstraints", false},   {"rowTracking", false},
    {"checkpointProtection", false},
};

Error DropError(std::string condition, const std::string& message, const std::string& feature) {
  return Error(ErrorKind::kUnsupported, std::move(condition), message).With("feature", feature);
}

/// Commits metadata, file actions or nothing, under a name of its own.
Result<void> CommitStep(const TableContext& context, const TableRef& table, const std::string& name, Json parameters,
                        const std::function<Result<void>(const delta::SnapshotPtr&, delta::Transaction*,
                                                         std::vector<delta::Action>*)>& fill) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  delta::Transaction transaction(log, snapshot);
  std::vector<delta::Action> actions;
  FLEUVE_TRY(fill(snapshot, &transaction, &actions));
  delta::Operation operation = NamedOperation(context, name);
  operation.parameters = std::move(parameters);
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation)));
  log->WaitForBackground();
  return {};
}

Result<void> UnsetIfSet(const TableContext& context, const TableRef& table, const delta::Snapshot& snapshot,
                        const std::vector<std::string>& keys) {
  std::vector<std::string> there;
  for (const std::string& key : keys) {
    if (snapshot.Property(key) != nullptr) {
      there.push_back(key);
    }
  }
  return there.empty() ? Result<void>() : UnsetProperties(context, table, there);
}

bool HasTypeChanges(const types::DataType& type) {
  switch (type.kind()) {
    case types::TypeKind::kArray:
      return HasTypeChanges(type.element());
    case types::TypeKind::kMap:
      return HasTypeChanges(type.key()) || HasTypeChanges(type.value());
    case types::TypeKind::kStruct:
      return std::any_of(type.fields().begin(), type.fields().end(), [](const types::StructField& field) {
        return field.metadata.Find("delta.typeChanges") != nullptr || HasTypeChanges(field.type);
      });
    default:
      return false;
  }
}

/// Makes the newest version free of what the feature allows.
Result<void> RemoveUse(const TableContext& context, const TableRef& table, const std::string& feature) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  if (feature == "deletionVectors") {
    FLEUVE_TRY(UnsetIfSet(context, table, *snapshot, {"delta.enableDeletionVectors"}));
    OptimizeSpec purge;
    purge.purge = true;
    FLEUVE_TRY(Optimize(context, table, purge));
    return {};
  }
  if (feature == "inCommitTimestamp") {
    return UnsetIfSet(context, table, *snapshot,
                      {"delta.enableInCommitTimestamps", "delta.inCommitTimestampEnablementVersion",
                       "delta.inCommitTimestampEnablementTimestamp"});
  }
  if (feature == "v2Checkpoint") {
    FLEUVE_TRY(UnsetIfSet(context, table, *snapshot, {"delta.checkpointPolicy"}));
    return log->Checkpoint(CheckpointShapeOf(context.config));
  }
  if (feature == "columnMapping") {
    if (delta::ColumnMappingMode(snapshot->metadata()) != "none") {
      FLEUVE_TRY(SetProperties(context, table, {{"delta.columnMapping.mode", "none"}}));
    }
    return {};
  }
  if (feature == "typeWidening" || feature == "typeWidening-preview") {
    FLEUVE_TRY(UnsetIfSet(context, table, *snapshot, {"delta.enableTypeWidening"}));
    if (HasTypeChanges(snapshot->schema())) {
      OptimizeSpec all;
      all.rewrite_all = true;
      FLEUVE_TRY(Optimize(context, table, all));
    }
    return {};
  }
  if (feature == "checkConstraints") {
    std::vector<std::string> names;
    for (const auto& [key, value] : snapshot->metadata().configuration) {
      if (key.starts_with("delta.constraints.")) {
        names.push_back("`" + key.substr(18) + "`");
      }
    }
    if (!names.empty()) {
      return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
                   "The feature checkConstraints cannot be dropped while the table has CHECK constraints: drop " +
                       Join(names, ", ") + " first.")
          .With("constraints", Join(names, ", "));
    }
  }
  return {};
}

/// True where some version that the log still holds uses the feature.
Result<bool> HistoryUses(const delta::DeltaLogPtr& log, const std::string& feature) {
  FLEUVE_ASSIGN(const std::vector<delta::VersionTime> versions, log->CommitsFrom(0));
  for (const delta::VersionTime& at : versions) {
    FLEUVE_ASSIGN(const delta::Commit commit, log->ReadCommit(at.version));
    for (const delta::Action& action : commit.actions) {
      if (const auto* add = std::get_if<delta::AddFile>(&action)) {
        if (feature == "deletionVectors" && add->deletion_vector) {
          return true;
        }
      } else if (const auto* metadata = std::get_if<delta::Metadata>(&action)) {
        if ((feature == "columnMapping" && delta::ColumnMappingMode(*metadata) != "none") ||
            (feature.starts_with("typeWidening") &&
             metadata->schema_string.find("delta.typeChanges") != std::string::npos) ||
            (feature == "v2Checkpoint" &&
             metadata->configuration.end() !=
                 std::find_if(metadata->configuration.begin(), metadata->configuration.end(), [](const auto& entry) {
                   return entry.first == "delta.checkpointPolicy" && EqualsIgnoreAsciiCase(entry.second, "v2");
                 }))) {
          return true;
        }
      }
    }
  }
  return false;
}

}  // namespace

Result<void> DropFeature(const TableContext& context, const TableRef& table, const std::string& asked,
                         bool truncate_history) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(delta::SnapshotPtr snapshot, log->Latest());
  FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
  const std::string name(delta::FeatureName(asked));
  if (name.empty()) {
    return DropError("DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
                     "Cannot drop the feature " + asked + ": this version does not know it.", asked);
  }
  const auto* removable =
      std::find_if(std::begin(kRemovable), std::end(kRemovable), [&](const Removable& r) { return r.name == name; });
  if (removable == std::end(kRemovable)) {
    return DropError("DELTA_FEATURE_DROP_NONREMOVABLE_FEATURE", "The feature " + name + " cannot be dropped.", name);
  }
  if (!delta::HasFeature(snapshot->protocol(), name)) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT",
                 "Cannot drop the feature " + name + ": the table does not have it.")
        .With("feature", name);
  }
  if (name == "checkpointProtection" && !truncate_history) {
    return DropError("DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
                     "The feature checkpointProtection can only be dropped together with the history: add TRUNCATE "
                     "HISTORY.",
                     name);
  }
  if (name == "checkpointProtection") {
    return Error::Unsupported("ALTER TABLE ... DROP FEATURE checkpointProtection");
  }
  if (truncate_history && !removable->reader) {
    return DropError("DELTA_FEATURE_DROP_HISTORY_TRUNCATION_NOT_ALLOWED",
                     "Dropping the feature " + name + " needs no truncation of the history.", name);
  }
  FLEUVE_TRY(RemoveUse(context, table, name));
  if (truncate_history) {
    FLEUVE_ASSIGN(const bool used, HistoryUses(log, name));
    if (used) {
      return Error(
                 ErrorKind::kUnsupported, "DELTA_FEATURE_DROP_WAIT_FOR_RETENTION_PERIOD",
                 "Versions that use the feature " + name +
                     " are still in the log. The newest version no longer does: drop the feature again when the log's "
                     "retention has passed.")
          .With("feature", name);
    }
  }
  // Later checkpoints must not be rebuilt from versions that need the feature.
  const bool protects = removable->reader && !truncate_history;
  if (protects) {
    for (int i = 0; i < 3; ++i) {
      FLEUVE_TRY(CommitStep(
          context, table, "Empty Commit", Json(Json::Object{}),
          [](const delta::SnapshotPtr&, delta::Transaction*, std::vector<delta::Action>*) { return Result<void>(); }));
      FLEUVE_TRY(log->Checkpoint(CheckpointShapeOf(context.config)));
    }
  }
  Json parameters(Json::Object{});
  parameters.Set("featureName", Json(name));
  parameters.Set("truncateHistory", Json(truncate_history));
  return CommitStep(context, table, "DROP FEATURE", std::move(parameters),
                    [&](const delta::SnapshotPtr& now, delta::Transaction* transaction,
                        std::vector<delta::Action>* actions) -> Result<void> {
                      delta::Metadata metadata = now->metadata();
                      FLEUVE_ASSIGN(delta::Protocol protocol, delta::WithoutFeature(now->protocol(), name));
                      if (name == "rowTracking") {
                        for (const char* key : {"delta.enableRowTracking", "delta.rowTrackingSuspended",
                                                "delta.rowTracking.materializedRowIdColumnName",
                                                "delta.rowTracking.materializedRowCommitVersionColumnName"}) {
                          delta::EraseFrom(metadata.configuration, key);
                        }
                        actions->emplace_back(delta::DomainMetadata{"delta.rowTracking", "", true});
                        const std::vector<delta::AddFile> files = now->AllFiles();
                        // A file that another commit removes must not come back with this one.
                        transaction->ReadFiles(files, {}, {});
                        for (delta::AddFile plain : files) {
                          plain.base_row_id.reset();
                          plain.default_row_commit_version.reset();
                          plain.data_change = false;
                          actions->emplace_back(std::move(plain));
                        }
                      }
                      if (name.starts_with("typeWidening") && HasTypeChanges(now->schema())) {
                        metadata.schema_string = SchemaText(WithoutFieldMetadata(
                            now->schema(), [](std::string_view key) { return key == "delta.typeChanges"; }));
                      }
                      if (protects) {
                        FLEUVE_ASSIGN(protocol, delta::WithFeature(protocol, "checkpointProtection"));
                        delta::SetIn(metadata.configuration, "delta.requireCheckpointProtectionBeforeVersion",
                                     std::to_string(now->version() + 1));
                      }
                      transaction->UpdateProtocol(std::move(protocol));
                      return transaction->UpdateMetadata(std::move(metadata));
                    });
}

}  // namespace fleuve::tables
