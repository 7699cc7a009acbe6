#include "session/session.h"

#include <algorithm>
#include <chrono>

#include "base/big_stack.h"
#include "base/ids.h"
#include "base/log.h"
#include "python/worker.h"
#include "session/executor_internal.h"
#include "session/pipelines.h"
#include "session/session_state_internal.h"
#include "stream/manager.h"

namespace fleuve::session {

namespace {
constexpr std::string_view kRunMark = "fleuve-run-";
}  // namespace

std::string ClientOfRun(const std::string& run) { return std::string(kRunMark) + run; }

std::string RunOfClient(std::string_view client) {
  const std::size_t at = client.find(kRunMark);
  if (at == std::string_view::npos) {
    return "";
  }
  const std::string_view rest = client.substr(at + kRunMark.size());
  return std::string(rest.substr(0, rest.find(' ')));
}

Session::Session(SessionKey key, std::shared_ptr<const Services> services)
    : key_(std::move(key)),
      server_side_id_(NewUuid()),
      services_(std::move(services)),
      config_(services_->conf),
      artifacts_(services_->scratch + "/artifacts/" + server_side_id_),
      state_(std::make_unique<SessionState>(this, services_)),
      last_used_ms_(services_->clock->NowMillis()) {}

Session::~Session() { state_->Close(); }

Result<Completion> Session::Execute(const spark::connect::Plan& plan, const OperationPtr& operation) {
  const auto alive = shared_from_this();
  Result<Completion> outcome = Completion::kNow;
  RunOnBigStack([&] { outcome = Executor(*state_, operation).Run(plan); });
  Touch();
  return outcome;
}

Result<void> Session::Analyze(const spark::connect::AnalyzePlanRequest& request,
                              spark::connect::AnalyzePlanResponse* response) {
  const auto alive = shared_from_this();
  Result<void> outcome;
  RunOnBigStack([&] { outcome = Executor(*state_, nullptr).Analyze(request, response); });
  return outcome;
}

Result<void> Session::AddOperation(const OperationPtr& operation) {
  std::lock_guard lock(mutex_);
  if (closed_) {
    return Error(ErrorKind::kNotFound, "INVALID_HANDLE.SESSION_CLOSED",
                 "The handle " + key_.session_id + " is invalid. Session was closed.")
        .With("handle", key_.session_id);
  }
  if (!operation->run.empty() && !runs_.contains(operation->run)) {
    return Error::Cancelled("the run of the streaming query that asks for this has ended");
  }
  if (!operations_.emplace(operation->id, operation).second) {
    return Error(ErrorKind::kAlreadyExists, "INVALID_HANDLE.OPERATION_ALREADY_EXISTS",
                 "The handle " + operation->id + " is invalid. Operation already exists.")
        .With("handle", operation->id);
  }
  return {};
}

void Session::RemoveOperation(const OperationPtr& operation) {
  {
    std::lock_guard lock(mutex_);
    const auto found = operations_.find(operation->id);
    if (found == operations_.end() || found->second != operation) {
      return;
    }
    operations_.erase(found);
    operation_ended_.notify_all();
  }
  if (operation->token->cancelled()) {
    Log(LogLevel::kDebug, "operation " + operation->id + " has ended after its interrupt");
  }
}

namespace {

std::vector<std::string> CancelAll(const std::vector<OperationPtr>& operations) {
  std::vector<std::string> ids;
  for (const OperationPtr& operation : operations) {
    Log(LogLevel::kDebug, "operation " + operation->id + " is interrupted");
    operation->token->Cancel();
    ids.push_back(operation->id);
  }
  return ids;
}

}  // namespace

std::vector<std::string> Session::InterruptAll() {
  std::vector<OperationPtr> found;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, operation] : operations_) {
      found.push_back(operation);
    }
  }
  return CancelAll(found);
}

std::vector<std::string> Session::InterruptTag(const std::string& tag) {
  std::vector<OperationPtr> found;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, operation] : operations_) {
      if (std::find(operation->tags.begin(), operation->tags.end(), tag) != operation->tags.end()) {
        found.push_back(operation);
      }
    }
  }
  return CancelAll(found);
}

std::vector<std::string> Session::InterruptOperation(const std::string& id) {
  std::vector<OperationPtr> found;
  {
    std::lock_guard lock(mutex_);
    if (const auto it = operations_.find(id); it != operations_.end()) {
      found.push_back(it->second);
    }
  }
  return CancelAll(found);
}

void Session::BeginRun(const std::string& run) {
  std::lock_guard lock(mutex_);
  runs_.insert(run);
}

void Session::EndRun(const std::string& run, std::int64_t timeout_ms) {
  std::vector<OperationPtr> found;
  const auto none_left = [&] {
    found.clear();
    for (const auto& [id, operation] : operations_) {
      if (operation->run == run) {
        found.push_back(operation);
      }
    }
    return found.empty();
  };
  {
    std::lock_guard lock(mutex_);
    runs_.erase(run);
    none_left();
  }
  CancelAll(found);
  std::unique_lock lock(mutex_);
  if (!operation_ended_.wait_for(lock, std::chrono::milliseconds(timeout_ms), none_left)) {
    LogWarn("operations of an ended streaming query are still running");
  }
}

std::int64_t Session::last_used_ms() const {
  std::lock_guard lock(mutex_);
  return last_used_ms_;
}

void Session::Touch() {
  const std::int64_t now = services_->clock->NowMillis();
  std::lock_guard lock(mutex_);
  last_used_ms_ = now;
}

bool Session::InUse() const {
  {
    std::lock_guard lock(mutex_);
    if (!operations_.empty()) {
      return true;
    }
  }
  return services_->queries != nullptr && !services_->queries->Active(key_.ToString()).empty();
}

void Session::Close() {
  {
    std::lock_guard lock(mutex_);
    if (closed_) {
      return;
    }
    closed_ = true;
  }
  InterruptAll();
  if (services_->queries != nullptr) {
    services_->queries->StopSession(key_.ToString());
  }
  if (services_->pipelines != nullptr) {
    services_->pipelines->Forget(server_side_id_);
  }
  if (services_->workers != nullptr) {
    services_->workers->Forget(key_.ToString());
  }
  state_->Close();
}

bool Session::closed() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

Result<std::shared_ptr<Session>> Session::Clone(SessionKey key) {
  auto clone = std::make_shared<Session>(std::move(key), services_);
  for (const auto& [name, value] : config_.All()) {
    clone->config_.Restore(name, value);
  }
  state_->CopyTo(*clone->state_);
  FLEUVE_TRY(clone->artifacts_.CopyFrom(artifacts_));
  return clone;
}

}  // namespace fleuve::session
