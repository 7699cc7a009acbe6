#pragma once

/// \file
/// One write through a writer in Python. Private to this folder.

#include <memory>
#include <optional>

#include "base/ids.h"
#include "columnar/record_batch.h"
#include "connectors/user/user_source.h"

namespace fleuve::connectors::user {

/// What is written.
struct WriteTarget {
  types::Schema schema;
  plan::Options options;
  bool overwrite = false;
  /// Of a stream; nullopt: a batch query.
  std::optional<BatchId> batch_id;
  std::string zone = "UTC";
};

/// A writer that has taken rows, and waits to be told whether they count. Threads: one at a time.
class RunningWrite {
 public:
  /// Makes the writer. PYTHON_DATA_SOURCE_ERROR where the user's code refuses. \param token  kills the process.
  static Result<std::unique_ptr<RunningWrite>> Start(const SourceClass& source, const WriteTarget& target,
                                                     CancellationTokenPtr token);
  /// Aborts what was written and not decided.
  ~RunningWrite();
  RunningWrite(const RunningWrite&) = delete;
  RunningWrite& operator=(const RunningWrite&) = delete;

  /// Hands the rows out; after an error, also that of `rows`, the writer has aborted.
  Result<void> Take(Result<std::unique_ptr<columnar::BatchReader>> rows);
  /// Commits, or aborts. A commit that raises is followed by an abort.
  Result<void> Decide(bool commit);
  std::int64_t rows() const { return rows_; }

 private:
  explicit RunningWrite(WriteTarget target) : target_(std::move(target)) {}
  Error Raised(Error error) const;

  const WriteTarget target_;
  python::BorrowedWorker worker_;
  /// The writer waits for `Decide`.
  bool written_ = false;
  std::int64_t rows_ = 0;
};

}  // namespace fleuve::connectors::user
