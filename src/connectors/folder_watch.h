#pragma once

/// \file
/// Hears of changes in local folders (inotify), so that idle queries need not look. One thread for the process, started
/// with the first watch.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace fleuve::connectors {

/// Ends the watch when it dies; waits for a callback that is running.
class FolderWatch {
 public:
  virtual ~FolderWatch() = default;
  /// True where events may have been lost (queue overflow, a new or vanished folder) since the last call: look at
  /// everything.
  virtual bool TakeOverflow() = 0;
};

/// What happened to one name.
struct FolderEvent {
  /// Absolute path; empty after an overflow.
  std::string path;
  /// Complete: closed after writing, or moved here. False: only created, deleted or moved away.
  bool is_complete = false;
  bool is_directory = false;
};

/// Calls `callback` for every change among the direct children of `folder`; with `recursive` in all folders below too
/// (new ones included). The callback runs in the watcher's thread and must be short.
/// Null where the system cannot watch this folder reliably (no such folder, network file systems, out of watches): then
/// it must be looked at from time to time.
std::unique_ptr<FolderWatch> WatchFolder(const std::string& folder, bool recursive,
                                         std::function<void(const FolderEvent&)> callback);

}  // namespace fleuve::connectors
