#pragma once

/// \file
/// Writes the files of snapshots beside the batches.

#include <future>
#include <optional>
#include <string>

#include "base/result.h"
#include "storage/object_store.h"

namespace fleuve::state {

/// One file at a time; its bytes are all the memory it takes. Threads: one caller; it has a thread of its own while it
/// writes.
class SnapshotWriter {
 public:
  explicit SnapshotWriter(storage::Location folder) : folder_(std::move(folder)) {}
  /// Waits for the file that is being written.
  ~SnapshotWriter();

  bool is_busy() const;
  /// Puts and syncs a file, and the folder, in the background. Not while it is busy.
  void Write(std::string path, std::string head, std::string records);
  /// Waits for the file that was begun last, and gives what became of it; nothing where there was none.
  Result<void> Wait();

 private:
  storage::Location folder_;
  std::future<Result<void>> writing_;
};

}  // namespace fleuve::state
