#pragma once

/// \file
/// Looks whether commits of this process are still there. A writer that renames its commit over ours without looking
/// (a file system without a rename that refuses to replace) takes away what we have told our user is committed.

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "delta/actions.h"
#include "storage/object_store.h"

namespace fleuve::delta {

/// A commit of ours, and what stands in its place.
struct ReplacedCommit {
  std::int64_t version = 0;
  std::string table_id;
  /// Operation and engine of the commit that is there now.
  std::string by;
};

/// Operation and engine of a commit, for people.
std::string WriterOf(const std::vector<Action>& commit);

/// Threads: any. No lock is held over I/O.
class OwnCommits {
 public:
  void Add(std::int64_t version, std::string etag, std::string txn_id, std::string table_id, std::int64_t now_nanos);
  /// Those that were replaced; each is told once. \param all  also those younger than the time in which a replacement
  /// is still likely; old ones are looked at once more and then forgotten.
  std::vector<ReplacedCommit> Replaced(const storage::Location& table, std::int64_t now_nanos, bool all);

 private:
  struct Own {
    std::int64_t version = 0;
    std::string etag;
    std::string txn_id;
    std::string table_id;
    std::int64_t committed_nanos = 0;
  };
  std::mutex mutex_;
  std::deque<Own> commits_;
};

}  // namespace fleuve::delta
