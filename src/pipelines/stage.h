#pragma once

/// \file
/// Sessions in which the flows of a graph are analyzed and run: each setting and database has its own, the user's
/// session stays as it is.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "base/cancellation.h"
#include "base/result.h"
#include "session/workbench.h"

namespace fleuve::pipelines {

/// Threads: any.
class Stage {
 public:
  /// \param origin  the user's session: its settings, functions and artifacts are there in every other one.
  Stage(session::Session& origin, CancellationTokenPtr token) : origin_(origin), token_(std::move(token)) {}
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  /// A place to work with these settings on top of the user's. SCHEMA_NOT_FOUND where the database is missing,
  /// INVALID_CONF_VALUE.* where a setting is refused.
  Result<session::Workbench> Place(const std::map<std::string, std::string>& conf, const std::string& database);
  /// The same without a database (what is made has full names).
  Result<session::Workbench> Place(const std::map<std::string, std::string>& conf);
  const CancellationTokenPtr& token() const { return token_; }

 private:
  session::Session& origin_;
  const CancellationTokenPtr token_;
  std::mutex mutex_;
  std::map<std::pair<std::map<std::string, std::string>, std::string>, session::SessionPtr> sessions_;
};

}  // namespace fleuve::pipelines
