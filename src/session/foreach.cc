#include "connectors/foreach/foreach.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "session/foreach_internal.h"
#include "session/table_plans_internal.h"
#include "session/user_code_internal.h"
#include "spark/connect/commands.pb.h"

namespace fleuve::session {

namespace sc = spark::connect;

namespace {

/// How long the end of a query waits for what its function has asked for.
constexpr std::int64_t kEndRunMs = 10000;

Result<connectors::foreach::UserFunction> FunctionOf(const sc::StreamingForeachFunction& function, SessionState& state,
                                                     const std::string& what) {
  if (!function.has_python_function()) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.FLEUVE",
                 "This version of Fleuve does not support " + what + " with a Scala function.")
        .With("feature", what + " with a Scala function")
        .Family(ErrorFamily::kUnsupportedOperation);
  }
  if (state.services().workers == nullptr) {
    return Error::Unsupported(what + " in a process without Python workers");
  }
  connectors::foreach::UserFunction user;
  user.command = function.python_function().command();
  user.python_version = function.python_function().python_ver();
  user.workers = state.services().workers;
  user.setup = WorkerSetupOf(state.session());
  user.limits = WorkerLimitsOf(state.session(), *user.workers);
  user.scratch = state.services().scratch;
  return user;
}

}  // namespace

Result<std::shared_ptr<connectors::SinkProvider>> ForeachProviderOf(const sc::WriteStreamOperationStart& start,
                                                                    SessionState& state,
                                                                    const CancellationTokenPtr& token) {
  if (start.has_foreach_writer()) {
    FLEUVE_ASSIGN(auto function, FunctionOf(start.foreach_writer(), state, "foreach"));
    return connectors::foreach::MakeForeach(std::move(function));
  }
  if (!start.has_foreach_batch()) {
    return std::shared_ptr<connectors::SinkProvider>();
  }
  FLEUVE_ASSIGN(auto function, FunctionOf(start.foreach_batch(), state, "foreachBatch"));
  const std::string own_url = state.services().own_url ? state.services().own_url() : "";
  if (own_url.empty()) {
    return Error::Unsupported("foreachBatch in a process that does not listen for clients");
  }
  const SessionKey& key = state.session().key();
  const std::string run = NewUuid();
  connectors::foreach::BatchFunctionHost host;
  host.session_id = key.session_id;
  host.user_id = key.user_id;
  host.url = own_url + ";session_id=" + PercentEncode(key.session_id) + ";user_id=" + PercentEncode(key.user_id) +
             ";user_agent=" + ClientOfRun(run);
  const std::weak_ptr<Session> session = state.session().weak_from_this();
  host.publish = [session](const std::string& id, std::shared_ptr<const plan::TableSource> rows) -> Result<void> {
    const auto alive = session.lock();
    if (alive == nullptr) {
      return Error::Cancelled("the session has ended");
    }
    alive->state().PutRelation(id, LeafOf(std::move(rows), {}));
    return {};
  };
  host.withdraw = [session](const std::string& id) {
    if (const auto alive = session.lock(); alive != nullptr) {
      alive->state().DropRelation(id);
    }
  };
  host.end_run = [session, run] {
    if (const auto alive = session.lock(); alive != nullptr) {
      alive->EndRun(run, kEndRunMs);
    }
  };
  state.session().BeginRun(run);
  return connectors::foreach::MakeForeachBatch(std::move(function), std::move(host), token);
}

}  // namespace fleuve::session
