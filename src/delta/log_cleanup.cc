#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "delta/features.h"
#include "delta/log_cleanup_internal.h"
#include "delta/log_listing_internal.h"
#include "delta/snapshot_build.h"

namespace fleuve::delta {
namespace {

constexpr std::int64_t kDayMs = 86400000;

/// Sidecars that no kept checkpoint names. \param cutoff  younger ones may be of a checkpoint that is being written.
Result<void> CleanUpSidecars(const Snapshot& snapshot, const LogContext& context, const LogListing& listing,
                             std::int64_t keep_from, std::int64_t cutoff) {
  auto& store = *snapshot.location().store;
  const auto sidecars = store.List(LogFolder(snapshot.location().path) + "/_sidecars");
  if (!sidecars.ok()) {
    return sidecars.error().kind() == ErrorKind::kNotFound ? Result<void>() : Result<void>(sidecars.error());
  }
  if (std::none_of(sidecars->begin(), sidecars->end(), [&](const auto& file) { return file.modified_ms < cutoff; })) {
    return {};
  }
  std::set<std::string, std::less<>> named;
  for (const CheckpointFiles& files : listing.checkpoints) {
    if (files.version >= keep_from) {
      FLEUVE_ASSIGN(const std::vector<std::string> paths, SidecarsOf(snapshot.location(), context, files));
      named.insert(paths.begin(), paths.end());
    }
  }
  for (const storage::ObjectMeta& file : *sidecars) {
    if (!file.is_directory && file.modified_ms < cutoff && !named.contains(NameOf(file))) {
      const auto deleted = store.Delete(file.path);
      if (!deleted.ok() && deleted.error().kind() != ErrorKind::kNotFound) {
        return deleted.error();
      }
    }
  }
  return {};
}

}  // namespace

Result<void> CleanUpLog(const Snapshot& snapshot, const LogContext& context) {
  if (!snapshot.BooleanProperty("delta.enableExpiredLogCleanup", true)) {
    return {};
  }
  std::int64_t retention = 30 * kDayMs;
  if (const std::string* text = snapshot.Property("delta.logRetentionDuration")) {
    retention = ParseIntervalMs(*text).value_or(retention);
  }
  // Whole days, as the reference cuts them: a file of the cut-off day stays.
  const std::int64_t now = context.clock->NowMillis();
  const std::int64_t cutoff = (now - retention) / kDayMs * kDayMs;
  auto& store = *snapshot.location().store;
  FLEUVE_ASSIGN(const auto entries, store.List(LogFolder(snapshot.location().path)));
  const LogListing listing = SortLog(entries);
  // What processes that died had staged: nothing takes a day from there to its name.
  for (const auto& entry : entries) {
    const std::string_view name = NameOf(entry);
    if (!entry.is_directory && name.starts_with(".") && name.ends_with(".tmp") && entry.modified_ms < now - kDayMs) {
      store.Delete(entry.path).IgnoreBecause("a left-over is harmless");
    }
  }
  std::int64_t newest_expired = -1;
  std::int64_t adjusted = -1;
  for (const storage::ObjectMeta& entry : listing.commits) {
    adjusted = std::max(entry.modified_ms, adjusted + 1);
    if (adjusted <= cutoff) {
      newest_expired = VersionOf(NameOf(entry));
    }
  }
  // A version that is kept must be rebuilt from a whole checkpoint at or before it: what is older is of no use.
  std::int64_t keep_from = -1;
  for (const CheckpointFiles& files : listing.checkpoints) {
    if (files.version <= newest_expired + 1 && files.version <= snapshot.version()) {
      keep_from = std::max(keep_from, files.version);
    }
  }
  if (keep_from < 0) {
    return {};
  }
  if (HasFeature(snapshot.protocol(), "checkpointProtection")) {
    // Versions before this one may need features that their readers could not see without their checkpoints: they go
    // all at once or not at all.
    const std::string* before = snapshot.Property("delta.requireCheckpointProtectionBeforeVersion");
    if (before != nullptr && keep_from < std::strtoll(before->c_str(), nullptr, 10)) {
      return {};
    }
  }
  for (const auto& entry : entries) {
    const std::int64_t version = VersionOf(NameOf(entry));
    if (version < 0 || entry.is_directory || version >= keep_from || version > newest_expired) {
      continue;
    }
    const auto deleted = store.Delete(entry.path);
    if (!deleted.ok() && deleted.error().kind() != ErrorKind::kNotFound) {
      return deleted.error();
    }
  }
  return CleanUpSidecars(snapshot, context, listing, keep_from, std::min(cutoff, now - kDayMs));
}

}  // namespace fleuve::delta
