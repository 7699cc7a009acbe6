// The source's dealings with its schema tracking log: the first entry, barriers, and the end of a run at each change.

#include <algorithm>

#include "connectors/delta/delta_source_internal.h"
#include "delta/features.h"

namespace fleuve::connectors::delta {

namespace {

bool IsSuperset(const dl::Protocol& later, const dl::Protocol& earlier) {
  const std::vector<std::string> now = dl::FeaturesOf(later);
  const std::vector<std::string> before = dl::FeaturesOf(earlier);
  return std::includes(now.begin(), now.end(), before.begin(), before.end());
}

Error CannotStart(const TrackedMetadata& a, const TrackedMetadata& b) {
  return Error(ErrorKind::kConflict, "DELTA_STREAMING_SCHEMA_LOG_INIT_FAILED_INCOMPATIBLE_METADATA",
               "We could not initialize the Delta streaming source schema log because\nwe detected an incompatible "
               "schema or protocol change while serving a streaming batch from table version " +
                   std::to_string(a.version) + " to " + std::to_string(b.version) + ".")
      .With("a", std::to_string(a.version))
      .With("b", std::to_string(b.version));
}

}  // namespace

std::string DeltaSource::SourcePath() const { return storage::ToFileUri(context_.metadata_path); }

Result<void> DeltaSource::StartTracking(std::int64_t first, std::int64_t last) {
  FLEUVE_ASSIGN(const dl::SnapshotPtr at, log_->At(first));
  FLEUVE_ASSIGN(TrackedMetadata newest, TrackedMetadata::Of(at->metadata(), at->protocol(), first, SourcePath()));
  std::vector<TrackedMetadata> seen = {newest};
  for (std::int64_t version = first + 1; version <= last; ++version) {
    FLEUVE_ASSIGN(const dl::Commit commit, log_->ReadCommit(version));
    bool changed = false;
    for (const auto& action : commit.actions) {
      if (const auto* metadata = std::get_if<dl::Metadata>(&action)) {
        FLEUVE_ASSIGN(TrackedMetadata next, TrackedMetadata::Of(*metadata, *newest.protocol, version, SourcePath()));
        newest = std::move(next);
        changed = true;
      }
    }
    for (const auto& action : commit.actions) {
      if (const auto* protocol = std::get_if<dl::Protocol>(&action)) {
        newest.protocol = *protocol;
        changed = true;
      }
    }
    if (changed) {
      seen.push_back(newest);
    }
  }
  const dl::Metadata plain;
  for (std::size_t i = 0; i + 1 < seen.size(); ++i) {
    FLEUVE_ASSIGN(const dl::Metadata before, seen[i].Apply(plain));
    FLEUVE_ASSIGN(const dl::Metadata after, newest.Apply(plain));
    FLEUVE_ASSIGN(const types::Schema old_schema, SchemaOfJson(before.schema_string));
    FLEUVE_ASSIGN(const types::Schema new_schema, SchemaOfJson(after.schema_string));
    if (HasRenameOrDrop(before, after) || !IsReadable(dl::ReadSchemaOf(old_schema), dl::ReadSchemaOf(new_schema)) ||
        before.partition_columns != after.partition_columns || !IsSuperset(*seen[i + 1].protocol, *seen[i].protocol)) {
      return CannotStart(seen[i], newest);
    }
  }
  newest.version = std::max(first, last);
  FLEUVE_TRY(schema_log_->Add(newest, /*replace=*/false));
  tracked_ = schema_log_->newest();
  commits_.clear();
  FLEUVE_ASSIGN(const dl::SnapshotPtr analyzed_at, log_->At(relation_->version()));
  FLEUVE_ASSIGN(const TrackedMetadata analyzed, TrackedMetadata::Of(relation_->metadata(), analyzed_at->protocol(),
                                                                    relation_->version(), SourcePath()));
  FLEUVE_ASSIGN(const bool differs, IsChange(*tracked_, analyzed));
  if (differs) {
    return MetadataEvolution(*tracked_);
  }
  return {};
}

Result<void> DeltaSource::FollowSnapshot(std::int64_t version) {
  if (version <= tracked_->version) {
    return {};
  }
  FLEUVE_ASSIGN(const dl::SnapshotPtr at, log_->At(version));
  FLEUVE_ASSIGN(TrackedMetadata entry, TrackedMetadata::Of(at->metadata(), at->protocol(), version, SourcePath()));
  FLEUVE_ASSIGN(const bool differs, IsChange(*tracked_, entry));
  if (!differs) {
    return {};
  }
  FLEUVE_TRY(schema_log_->Add(std::move(entry), /*replace=*/true));
  return MetadataEvolution(schema_log_->newest());
}

Result<std::optional<TrackedMetadata>> DeltaSource::BarrierOf(const std::vector<dl::Action>& actions,
                                                              std::int64_t version) const {
  const dl::Metadata* metadata = nullptr;
  const dl::Protocol* protocol = nullptr;
  for (const auto& action : actions) {
    if (const auto* found = std::get_if<dl::Metadata>(&action)) {
      metadata = found;
    } else if (const auto* raised = std::get_if<dl::Protocol>(&action)) {
      protocol = raised;
    }
  }
  if ((metadata == nullptr && protocol == nullptr) || version <= tracked_->version) {
    return std::optional<TrackedMetadata>();
  }
  TrackedMetadata entry = *tracked_;
  entry.previous.reset();
  if (metadata != nullptr) {
    FLEUVE_ASSIGN(TrackedMetadata changed, TrackedMetadata::Of(*metadata, dl::Protocol(), version, SourcePath()));
    changed.protocol = tracked_->protocol;
    entry = std::move(changed);
  }
  if (protocol != nullptr) {
    entry.protocol = *protocol;
  }
  entry.version = version;
  entry.source_path = SourcePath();
  FLEUVE_ASSIGN(const bool differs, IsChange(*tracked_, entry));
  return differs ? std::optional<TrackedMetadata>(std::move(entry)) : std::nullopt;
}

Result<void> DeltaSource::Evolve(std::int64_t version) {
  FLEUVE_ASSIGN(const auto commit, CommitFiles(version));
  if (!commit->barrier) {
    return {};
  }
  FLEUVE_TRY(schema_log_->Add(*commit->barrier, /*replace=*/false));
  return MetadataEvolution(schema_log_->newest());
}

}  // namespace fleuve::connectors::delta
