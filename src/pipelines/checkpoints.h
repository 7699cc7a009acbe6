#pragma once

/// \file
/// What a pipeline keeps below its storage root: `_checkpoints/<table>/<flow>/<generation>`, one folder per flow; a
/// full refresh begins a new generation, older ones stay.

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "pipelines/graph.h"
#include "storage/object_store.h"

namespace fleuve::pipelines {

/// Threads: any; one run of a pipeline at a time.
class Checkpoints {
 public:
  explicit Checkpoints(storage::Location root) : root_(std::move(root)) {}

  /// Checks `spark.sql.pipelines` storage roots: an absolute address with a scheme. PIPELINE_STORAGE_ROOT_INVALID.
  static Result<storage::Location> Root(const std::string& storage);

  const storage::Location& root() const { return root_; }
  /// The folder of the generation in use; of the first one where there is none yet.
  Result<std::string> Folder(const Flow& flow) const;
  /// As `Folder`, after the next reset.
  Result<std::string> NextFolder(const Flow& flow) const;

  /// A reset is written down before the table is emptied and struck out when its flows have new generations: a run that
  /// finds one does it again.
  Result<bool> IsResetPending(const Dataset& table) const;
  Result<void> BeginReset(const Dataset& table);
  Result<void> EndReset(const Dataset& table, const std::vector<const Flow*>& flows);

  /// Of a flow that runs once: its identity in the table's log, made at the first call, and whether it has run.
  Result<std::string> OnceId(const Flow& flow);
  Result<bool> IsOnceDone(const Flow& flow) const;
  Result<void> SetOnceDone(const Flow& flow);

 private:
  std::string BaseOf(const Flow& flow) const;
  std::string MarkerOf(const Dataset& table) const;
  Result<std::int64_t> Generation(const Flow& flow) const;
  Result<void> PutDurably(const std::string& path, const std::string& bytes);

  const storage::Location root_;
};

}  // namespace fleuve::pipelines
