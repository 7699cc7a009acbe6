#pragma once

/// \file
/// What a run tells: sentences for its client while it goes, and the same with details in the storage root.

#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "session/operation.h"
#include "storage/object_store.h"

namespace fleuve::pipelines {

/// Threads: any.
class Events {
 public:
  /// \param log  folder of the log; nullopt: there is none (a dry run). \param run  names the run in it.
  Events(session::OperationPtr operation, std::optional<storage::Location> log, std::string pipeline, std::string run,
         Clock* clock);

  /// One event. `message` is what the client prints; `details` stand in the log only. \param level  INFO, WARN, ERROR.
  void Send(const std::string& level, const std::string& type, const std::string& message, Json details = {});
  /// Writes what was sent since the last call to the log.
  Result<void> Flush();

 private:
  const session::OperationPtr operation_;
  const std::optional<storage::Location> log_;
  const std::string pipeline_;
  const std::string run_;
  Clock* const clock_;
  std::mutex mutex_;
  std::string lines_;
  std::size_t written_ = 0;
};

}  // namespace fleuve::pipelines
