#include <charconv>
#include <optional>
#include <vector>

#include "delta/log_cleanup_internal.h"
#include "delta/snapshot_build.h"

namespace fleuve::delta {
namespace {

std::int64_t VersionOf(std::string_view name) {
  std::int64_t version = -1;
  if (name.size() < 20) {
    return -1;
  }
  const auto end = std::from_chars(name.data(), name.data() + 20, version);
  return end.ec == std::errc() && end.ptr == name.data() + 20 ? version : -1;
}

}  // namespace

Result<void> CleanUpLog(const Snapshot& snapshot, const LogContext& context) {
  if (!snapshot.BooleanProperty("delta.enableExpiredLogCleanup", true)) {
    return {};
  }
  std::int64_t retention = 30LL * 86400000;
  if (const std::string* text = snapshot.Property("delta.logRetentionDuration")) {
    retention = ParseIntervalMs(*text).value_or(retention);
  }
  // Whole days, as the reference cuts them: a file of the cut-off day stays.
  const std::int64_t cutoff = (context.clock->NowMillis() - retention) / 86400000 * 86400000;
  auto& store = *snapshot.location().store;
  FLEUVE_ASSIGN(const auto entries, store.List(LogFolder(snapshot.location().path)));
  // The newest checkpoint whose commit has expired: older files are of no use; its own and later ones stay.
  std::int64_t keep_from = -1;
  std::int64_t newest_expired = -1;
  std::int64_t adjusted = -1;
  for (const auto& entry : entries) {
    const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
    const std::int64_t version = VersionOf(name);
    if (version >= 0 && name.size() == 25 && name.ends_with(".json")) {
      adjusted = std::max(entry.modified_ms, adjusted + 1);
      if (adjusted <= cutoff) {
        newest_expired = version;
      }
    }
  }
  for (const auto& entry : entries) {
    const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
    const std::int64_t version = VersionOf(name);
    const bool is_checkpoint = version >= 0 && name.substr(20).starts_with(".checkpoint.");
    // A version that is kept must be rebuilt from a checkpoint at or before it.
    if (is_checkpoint && version <= newest_expired + 1 && version <= snapshot.version()) {
      keep_from = std::max(keep_from, version);
    }
  }
  for (const auto& entry : entries) {
    const std::string_view name = std::string_view(entry.path).substr(entry.path.rfind('/') + 1);
    const std::int64_t version = VersionOf(name);
    if (version < 0 || entry.is_directory || version >= keep_from || version > newest_expired) {
      continue;
    }
    const auto deleted = store.Delete(entry.path);
    if (!deleted.ok() && deleted.error().kind() != ErrorKind::kNotFound) {
      return deleted.error();
    }
  }
  return {};
}

}  // namespace fleuve::delta
