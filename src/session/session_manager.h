#pragma once

/// \file
/// All sessions of the process.

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "session/services.h"
#include "session/session.h"

namespace fleuve::session {

/// Threads: every method from any thread.
class SessionManager {
 public:
  explicit SessionManager(std::shared_ptr<const Services> services) : services_(std::move(services)) {}
  ~SessionManager() { CloseAll(); }

  /// The session of `key`, made where `create`.
  /// \param observed_server_id  what the client believes the server's id to be; empty = it has none.
  /// Errors: INVALID_HANDLE.FORMAT, .SESSION_NOT_FOUND, .SESSION_CHANGED, .SESSION_CLOSED.
  Result<SessionPtr> Get(const SessionKey& key, const std::string& observed_server_id, bool create = true);
  /// Closes and forgets a session; an unknown one is no error (null). Without `allow_reconnect` its key is refused
  /// from now on.
  SessionPtr Release(const SessionKey& key, bool allow_reconnect);
  /// A copy of `source` under `new_session_id`. INVALID_CLONE_SESSION_REQUEST.* where that id is bad or taken.
  Result<SessionPtr> Clone(const SessionPtr& source, const std::string& new_session_id);
  /// Closes sessions that nobody used for `spark.connect.session.manager.defaultSessionTimeout`. Call it now and then.
  void ExpireIdle();
  void CloseAll();
  std::vector<SessionPtr> All() const;
  const Services& services() const { return *services_; }

 private:
  const std::shared_ptr<const Services> services_;
  mutable std::mutex mutex_;
  std::map<SessionKey, SessionPtr> sessions_;
  std::set<SessionKey> closed_;
  std::deque<SessionKey> closed_order_;
};

}  // namespace fleuve::session
