#include "session/session_manager.h"

#include <cctype>

namespace fleuve::session {

namespace {

constexpr std::size_t kClosedKept = 1000;

bool IsUuid(const std::string& text) {
  if (text.size() != 36) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : std::isxdigit(static_cast<unsigned char>(text[i])) == 0) {
      return false;
    }
  }
  return true;
}

Error Invalid(const std::string& kind, const std::string& handle, const std::string& text) {
  return Error(ErrorKind::kNotFound, "INVALID_HANDLE." + kind, "The handle " + handle + " is invalid. " + text)
      .With("handle", handle);
}

Error Changed(const std::string& handle) {
  return Invalid("SESSION_CHANGED", handle,
                 "The existing Spark server driver instance has restarted. Please reconnect.");
}

}  // namespace

Result<SessionPtr> SessionManager::Get(const SessionKey& key, const std::string& observed_server_id, bool create) {
  if (!IsUuid(key.session_id)) {
    return Invalid("FORMAT", key.session_id,
                   "Handle must be an UUID string of the format '00112233-4455-6677-8899-aabbccddeeff'");
  }
  std::lock_guard lock(mutex_);
  if (const auto found = sessions_.find(key); found != sessions_.end()) {
    if (!observed_server_id.empty() && observed_server_id != found->second->server_side_id()) {
      return Changed(key.session_id);
    }
    return found->second;
  }
  if (closed_.contains(key)) {
    return Invalid("SESSION_CLOSED", key.session_id, "Session was closed.");
  }
  if (!create) {
    return Invalid("SESSION_NOT_FOUND", key.session_id, "Session not found.");
  }
  if (!observed_server_id.empty()) {
    return Changed(key.session_id);
  }
  auto session = std::make_shared<Session>(key, services_);
  sessions_.emplace(key, session);
  return session;
}

SessionPtr SessionManager::Release(const SessionKey& key, bool allow_reconnect) {
  SessionPtr session;
  {
    std::lock_guard lock(mutex_);
    const auto found = sessions_.find(key);
    if (found == sessions_.end()) {
      return nullptr;
    }
    session = std::move(found->second);
    sessions_.erase(found);
    if (!allow_reconnect && closed_.insert(key).second) {
      closed_order_.push_back(key);
      if (closed_order_.size() > kClosedKept) {
        closed_.erase(closed_order_.front());
        closed_order_.pop_front();
      }
    }
  }
  session->Close();
  return session;
}

Result<SessionPtr> SessionManager::Clone(const SessionPtr& source, const std::string& new_session_id) {
  if (!IsUuid(new_session_id)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_FORMAT",
                 "Invalid session clone request. Target session ID " + new_session_id +
                     " for clone operation must be an UUID string of the format "
                     "'00112233-4455-6677-8899-aabbccddeeff'.")
        .With("targetSessionId", new_session_id);
  }
  const SessionKey key{source->key().user_id, new_session_id};
  {
    std::lock_guard lock(mutex_);
    if (sessions_.contains(key) || closed_.contains(key)) {
      return Error(ErrorKind::kAlreadyExists,
                   closed_.contains(key) ? "INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_CLOSED"
                                         : "INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_EXISTS",
                   "Invalid session clone request. Cannot clone session to target session ID " + new_session_id +
                       " because a session with this ID already exists or was closed.")
          .With("targetSessionId", new_session_id);
    }
  }
  FLEUVE_ASSIGN(SessionPtr clone, source->Clone(key));
  std::lock_guard lock(mutex_);
  return sessions_.emplace(key, std::move(clone)).first->second;
}

void SessionManager::ExpireIdle() {
  const std::int64_t now = services_->clock->NowMillis();
  for (const SessionPtr& session : All()) {
    const std::int64_t timeout =
        session->config().GetInt("spark.connect.session.manager.defaultSessionTimeout", 60 * 60 * 1000);
    if (now - session->last_used_ms() > timeout && !session->InUse()) {
      Release(session->key(), false);
    }
  }
}

void SessionManager::CloseAll() {
  std::map<SessionKey, SessionPtr> sessions;
  {
    std::lock_guard lock(mutex_);
    sessions.swap(sessions_);
  }
  for (const auto& [key, session] : sessions) {
    session->Close();
  }
}

std::vector<SessionPtr> SessionManager::All() const {
  std::lock_guard lock(mutex_);
  std::vector<SessionPtr> all;
  for (const auto& [key, session] : sessions_) {
    all.push_back(session);
  }
  return all;
}

}  // namespace fleuve::session
