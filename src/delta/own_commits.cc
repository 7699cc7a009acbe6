#include <algorithm>

#include "delta/own_commits_internal.h"

namespace fleuve::delta {
namespace {

/// Between another writer's look for our file and its rename lie milliseconds; after this long none is under way.
constexpr std::int64_t kSettledNanos = 2'000'000'000;
/// A busy writer's commits are looked at before they are this many.
constexpr std::size_t kMost = 256;

}  // namespace

std::string WriterOf(const std::vector<Action>& commit) {
  for (const Action& action : commit) {
    if (const auto* info = std::get_if<CommitInfo>(&action)) {
      return info->operation + " of " + info->engine_info.value_or("an engine that does not give its name");
    }
  }
  return "another commit";
}

void OwnCommits::Add(std::int64_t version, std::string etag, std::string txn_id, std::string table_id,
                     std::int64_t now_nanos) {
  const std::lock_guard lock(mutex_);
  if (commits_.size() >= kMost) {
    commits_.pop_front();
  }
  commits_.push_back({version, std::move(etag), std::move(txn_id), std::move(table_id), now_nanos});
}

std::vector<ReplacedCommit> OwnCommits::Replaced(const storage::Location& table, std::int64_t now_nanos, bool all) {
  std::vector<Own> due;
  {
    const std::lock_guard lock(mutex_);
    for (const Own& own : commits_) {
      if (all || now_nanos - own.committed_nanos >= kSettledNanos) {
        due.push_back(own);
      }
    }
  }
  std::vector<ReplacedCommit> replaced;
  std::vector<std::int64_t> done;
  for (const Own& own : due) {
    const bool is_old = now_nanos - own.committed_nanos >= kSettledNanos;
    const std::string path = CommitPath(table.path, own.version);
    const auto head = table.store->Head(path);
    if (!head.ok() && head.error().kind() != ErrorKind::kNotFound) {
      continue;  // the store does not answer: next time
    }
    if (!head.ok() || head->etag == own.etag) {
      // Gone: cleaned up, or the whole table went.
      if (is_old || !head.ok()) {
        done.push_back(own.version);
      }
      continue;
    }
    const auto text = table.store->Get(path);
    if (!text.ok()) {
      continue;
    }
    ReplacedCommit lost{own.version, own.table_id, "a file that is no commit"};
    bool is_ours = false;
    if (const auto actions = ParseActions(*text, path); actions.ok()) {
      lost.by = WriterOf(*actions);
      for (const Action& action : *actions) {
        const auto* info = std::get_if<CommitInfo>(&action);
        is_ours = is_ours || (info != nullptr && info->txn_id == own.txn_id);
      }
    }
    done.push_back(own.version);
    if (!is_ours) {
      replaced.push_back(std::move(lost));
    }
  }
  const std::lock_guard lock(mutex_);
  std::erase_if(commits_, [&](const Own& own) {
    return std::find(done.begin(), done.end(), own.version) != done.end() &&
           std::any_of(due.begin(), due.end(), [&](const Own& d) { return d.txn_id == own.txn_id; });
  });
  return replaced;
}

}  // namespace fleuve::delta
