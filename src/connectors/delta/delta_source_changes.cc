// The source as a stream of row changes: what a batch admits of the commits, and the scans that give the rows.

#include <map>

#include "connectors/delta/delta_source_internal.h"

namespace fleuve::connectors::delta {

Result<void> DeltaSource::CheckFeed(std::int64_t version) {
  if (feed_checked_) {
    return {};
  }
  auto snapshot = log_->At(version);
  if (!snapshot.ok()) {
    // A version that cannot be rebuilt: its later metadata are checked as they are met.
    return snapshot.error().kind() == ErrorKind::kNotFound ? Result<void>() : Result<void>(std::move(snapshot).error());
  }
  if (!tables::FeedEnabled((*snapshot)->metadata())) {
    return tables::MissingChangeData(version, version, version);
  }
  feed_checked_ = true;
  return {};
}

Result<DeltaOffset> DeltaSource::WalkChanges(DeltaOffset at, Budget budget, bool used, std::int64_t last_version) {
  const bool limited = budget.is_limited();
  std::int64_t next = at.version;
  bool is_first = true;
  while (next <= last_version && !budget.is_used_up()) {
    std::int64_t version = next;
    FLEUVE_ASSIGN(const auto commit, OpenCommit(&version, last_version));
    if (!commit) {
      break;
    }
    // Where in the commit the walk stands: only the first one may have been begun before.
    DeltaOffset here = is_first && version == at.version ? at : DeltaOffset{version, -1, false};
    is_first = false;
    if (commit->barrier && here.index == -1) {
      return DeltaOffset{version, kBarrier, false};
    }
    std::int64_t files = 0;
    std::int64_t bytes = 0;
    for (std::int64_t i = here.next_file(); i < commit->count(); ++i) {
      if (!IsExcluded(commit->file(i))) {
        ++files;
        bytes += commit->file(i).size;
      }
    }
    if (commit->has_change_files && limited && here.next_file() >= commit->count()) {
      // All of it is done: the end of the commit alone makes no batch.
      next = version + 1;
      continue;
    }
    if (commit->is_unit && files > 0) {
      // Images before and after one update never come apart.
      const bool fits =
          !used || ((!budget.files || files <= *budget.files) && (!budget.bytes || bytes <= *budget.bytes));
      if (budget.files) {
        *budget.files -= files;
      }
      if (budget.bytes) {
        *budget.bytes -= bytes;
      }
      if (!fits) {
        return at;
      }
      used = true;
      at = commit->has_change_files && limited ? DeltaOffset{version, commit->count() - 1, false}
                                               : DeltaOffset{version + 1, -1, false};
      next = version + 1;
      continue;
    }
    used = used || here != at;
    at = here;
    for (std::int64_t i = here.next_file(); i < commit->count(); ++i) {
      if (!IsExcluded(commit->file(i))) {
        if (!budget.Take(commit->file(i).size)) {
          return at;
        }
        used = true;
      }
      at.index = i;
    }
    at = DeltaOffset{version + 1, -1, false};
    next = version + 1;
  }
  return at;
}

Result<BatchInput> DeltaSource::ReadChanges(const DeltaOffset& from, const std::vector<Part>& parts) {
  BatchInput input;
  std::map<std::int64_t, std::int64_t> times;
  if (!parts.empty()) {
    FLEUVE_ASSIGN(const auto commits, log_->CommitsFrom(parts.front().version));
    for (const auto& commit : commits) {
      times[commit.version] = commit.timestamp_ms;
    }
  }
  tables::ChangeScans scans(metadata_, log_->location());
  FLEUVE_TRY(scans.Begin());
  for (const Part& part : parts) {
    std::vector<const tables::ChangeFile*> files;
    for (std::int64_t i = part.first; i <= part.last; ++i) {
      if (!IsExcluded(part.files->file(i))) {
        files.push_back(&part.files->changes[static_cast<std::size_t>(i)]);
      }
    }
    if (files.empty()) {
      continue;
    }
    std::int64_t time = times[part.version];
    if (part.is_snapshot) {
      FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, log_->At(from.version));
      time = snapshot->timestamp_ms();
    }
    FLEUVE_TRY(scans.Add(files, part.version, time));
  }
  scans.whole_files().session_zone = context_.config.session_zone;
  scans.change_files().session_zone = context_.config.session_zone;
  if (scans.whole_files().files.empty() && scans.change_files().files.empty()) {
    input.row_count = 0;
    return input;
  }
  input.scan = std::make_shared<const plan::FileScan>(std::move(scans.whole_files()));
  input.more_scans = {std::make_shared<const plan::FileScan>(std::move(scans.change_files()))};
  return input;
}

}  // namespace fleuve::connectors::delta
