#pragma once

/// \file
/// Files and data that a client has sent to its session.

#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"

namespace fleuve::session {

/// Threads: every method from any thread.
class ArtifactStore {
 public:
  /// \param folder  where the bytes are kept; made at the first `Add`, removed with the store.
  explicit ArtifactStore(std::string folder) : folder_(std::move(folder)) {}
  ~ArtifactStore();
  ArtifactStore(const ArtifactStore&) = delete;
  ArtifactStore& operator=(const ArtifactStore&) = delete;

  /// Keeps `bytes` under `name` (`cache/<hash>`, `pyfiles/x.py`, `files/x`, `archives/x.zip#x`, `jars/x.jar`).
  /// ARTIFACT_ALREADY_EXISTS where other bytes stand under the name; kUnsupported for names of other kinds.
  Result<void> Add(const std::string& name, std::string_view bytes);
  bool Exists(const std::string& name) const;
  /// Bytes of `cache/<hash>`; kNotFound.
  Result<std::string> CacheBytes(const std::string& hash) const;
  /// Folder of `pyfiles/` and `files/`, for workers; may not exist.
  std::string folder() const { return folder_; }
  /// Copies what `other` holds (a cloned session).
  Result<void> CopyFrom(const ArtifactStore& other);

 private:
  Result<std::string> PathOf(const std::string& name) const;

  const std::string folder_;
  mutable std::mutex mutex_;
  /// Name to size.
  std::map<std::string, std::int64_t> known_;
};

}  // namespace fleuve::session
