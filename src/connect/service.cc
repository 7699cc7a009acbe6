#include <google/protobuf/arena.h>

#include <algorithm>

#include "base/big_stack.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "connect/message_input_internal.h"
#include "connect/service_internal.h"

namespace fleuve::connect {

namespace sc = spark::connect;
using session::SessionKey;
using session::SessionPtr;

namespace {

constexpr std::int64_t kExpiryCheckMs = 30 * 1000;

std::int64_t NowMs() { return Clock::System()->MonotonicNanos() / 1000000; }

Error InvalidPlanInput(const std::string& what) {
  return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", what).With("message", what);
}

/// The definition of a pipeline that a request belongs to, where its client says so.
Result<void> ReadPipelineContext(const sc::UserContext& user, session::Operation* operation) {
  for (const google::protobuf::Any& extension : user.extensions()) {
    if (!extension.Is<sc::PipelineAnalysisContext>()) {
      continue;
    }
    sc::PipelineAnalysisContext context;
    if (!extension.UnpackTo(&context)) {
      return InvalidPlanInput("The pipeline context of the request is malformed.");
    }
    operation->pipeline_graph = context.dataflow_graph_id();
    operation->pipeline_flow = context.flow_name();
  }
  return {};
}

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

template <typename Request>
SessionKey KeyOf(const Request& request) {
  return SessionKey{request.user_context().user_id(), request.session_id()};
}

/// Every plan of an AnalyzePlan request.
std::vector<sc::Plan*> PlansOf(sc::AnalyzePlanRequest* request) {
  switch (request->analyze_case()) {
    case sc::AnalyzePlanRequest::kSchema:
      return {request->mutable_schema()->mutable_plan()};
    case sc::AnalyzePlanRequest::kExplain:
      return {request->mutable_explain()->mutable_plan()};
    case sc::AnalyzePlanRequest::kTreeString:
      return {request->mutable_tree_string()->mutable_plan()};
    case sc::AnalyzePlanRequest::kIsLocal:
      return {request->mutable_is_local()->mutable_plan()};
    case sc::AnalyzePlanRequest::kIsStreaming:
      return {request->mutable_is_streaming()->mutable_plan()};
    case sc::AnalyzePlanRequest::kInputFiles:
      return {request->mutable_input_files()->mutable_plan()};
    case sc::AnalyzePlanRequest::kSameSemantics:
      return {request->mutable_same_semantics()->mutable_target_plan(),
              request->mutable_same_semantics()->mutable_other_plan()};
    case sc::AnalyzePlanRequest::kSemanticHash:
      return {request->mutable_semantic_hash()->mutable_plan()};
    default:
      return {};
  }
}

UnaryAnswer Answer(const google::protobuf::Message& response) {
  auto bytes = SerializeMessage(response);
  if (!bytes.ok()) {
    return UnaryAnswer{ToStatus(bytes.error(), ""), {}};
  }
  return UnaryAnswer{grpc::Status::OK, std::move(*bytes)};
}

}  // namespace

template <typename Request>
Result<SessionPtr> Service::SessionOf(const Request& request, bool create) {
  FLEUVE_ASSIGN(SessionPtr session,
                sessions_->Get(KeyOf(request), request.client_observed_server_side_session_id(), create));
  session->Touch();
  return session;
}

grpc::Status Service::Fail(const SessionPtr& session, const Error& error) {
  if (session == nullptr) {
    return ToStatus(error, "");
  }
  if (error.kind() == ErrorKind::kInternal) {
    LogError(error.ToString());
  }
  return ToStatus(error, errors_.Add(session->server_side_id(), error));
}

template <typename Request, typename Response>
UnaryAnswer Service::Handle(const grpc::ByteBuffer& bytes, bool create,
                            Result<void> (Service::*handler)(const SessionPtr&, const Request&, Response*)) {
  Request request;
  if (auto parsed = ParseMessage(bytes, &request); !parsed.ok()) {
    return UnaryAnswer{Fail(nullptr, parsed.error()), {}};
  }
  auto session = SessionOf(request, create);
  if (!session.ok()) {
    return UnaryAnswer{Fail(nullptr, session.error()), {}};
  }
  Response response;
  response.set_session_id(request.session_id());
  response.set_server_side_session_id((*session)->server_side_id());
  if (auto done = (this->*handler)(*session, request, &response); !done.ok()) {
    return UnaryAnswer{Fail(*session, done.error()), {}};
  }
  return Answer(response);
}

bool Service::IsUnary(const std::string& method) {
  static const std::set<std::string>* const kMethods = new std::set<std::string>{
      "AnalyzePlan",       "Config",       "ArtifactStatus", "Interrupt", "ReleaseExecute", "ReleaseSession",
      "FetchErrorDetails", "CloneSession", "GetStatus"};
  return kMethods->contains(method);
}

UnaryAnswer Service::CallUnary(const std::string& method, const grpc::ByteBuffer& request) {
  if (method == "Config") {
    return Handle(request, true, &Service::Config);
  }
  if (method == "AnalyzePlan") {
    // Plans nest deeply: they are read, analyzed and freed where the stack is large.
    UnaryAnswer answer;
    RunOnBigStack([&] { answer = Handle(request, true, &Service::AnalyzePlan); });
    return answer;
  }
  if (method == "ArtifactStatus") {
    return Handle(request, true, &Service::ArtifactStatus);
  }
  if (method == "Interrupt") {
    return Handle(request, true, &Service::Interrupt);
  }
  if (method == "ReleaseExecute") {
    return Handle(request, false, &Service::ReleaseExecute);
  }
  if (method == "GetStatus") {
    return Handle(request, false, &Service::GetStatus);
  }
  if (method == "CloneSession") {
    return Handle(request, false, &Service::CloneSession);
  }
  if (method == "ReleaseSession") {
    return ReleaseSession(request);
  }
  if (method == "FetchErrorDetails") {
    return FetchErrorDetails(request);
  }
  return UnaryAnswer{grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "unknown method " + method), {}};
}

Result<void> Service::Config(const SessionPtr& session, const sc::ConfigRequest& request,
                             sc::ConfigResponse* response) {
  session::Config& config = session->config();
  const auto& operation = request.operation();
  const auto put = [&](const std::string& key, const std::optional<std::string>& value) {
    auto* pair = response->add_pairs();
    pair->set_key(key);
    if (value) {
      pair->set_value(*value);
    }
  };
  switch (operation.op_type_case()) {
    case sc::ConfigRequest::Operation::kSet:
      for (const auto& pair : operation.set().pairs()) {
        auto done = pair.has_value() ? config.Set(pair.key(), pair.value())
                                     : Result<void>(Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR",
                                                          "The value of the config " + pair.key() + " is missing."));
        if (!done.ok()) {
          if (!operation.set().silent()) {
            return done;
          }
          response->add_warnings("Failed to set " + pair.key() + " to " + pair.value() + " due to " +
                                 done.error().ToString());
        }
      }
      return {};
    case sc::ConfigRequest::Operation::kGet:
      for (const std::string& key : operation.get().keys()) {
        // A known setting without a value is none, an unknown one is an error.
        const auto value = config.Text(key);
        if (!value && session::FindConfigKey(key) == nullptr) {
          return config.Get(key).error();
        }
        put(key, value);
      }
      return {};
    case sc::ConfigRequest::Operation::kGetWithDefault:
      for (const auto& pair : operation.get_with_default().pairs()) {
        auto value = config.SetText(pair.key());
        if (!value && pair.has_value()) {
          value = pair.value();
        }
        put(pair.key(), value);
      }
      return {};
    case sc::ConfigRequest::Operation::kGetOption:
      for (const std::string& key : operation.get_option().keys()) {
        put(key, config.Text(key));
      }
      return {};
    case sc::ConfigRequest::Operation::kGetAll: {
      const std::string& prefix = operation.get_all().prefix();
      for (const auto& [key, value] : config.All()) {
        if (key.starts_with(prefix)) {
          put(key.substr(prefix.size()), value);
        }
      }
      return {};
    }
    case sc::ConfigRequest::Operation::kUnset:
      for (const std::string& key : operation.unset().keys()) {
        FLEUVE_TRY(config.Unset(key));
      }
      return {};
    case sc::ConfigRequest::Operation::kIsModifiable:
      for (const std::string& key : operation.is_modifiable().keys()) {
        put(key, config.IsModifiable(key) ? "true" : "false");
      }
      return {};
    case sc::ConfigRequest::Operation::OP_TYPE_NOT_SET:
      break;
  }
  return Error(ErrorKind::kUnsupported, "", "OPTYPE_NOT_SET not supported.").Family(ErrorFamily::kUnsupportedOperation);
}

Result<void> Service::AnalyzePlan(const SessionPtr& session, const sc::AnalyzePlanRequest& request,
                                  sc::AnalyzePlanResponse* response) {
  auto* changeable = const_cast<sc::AnalyzePlanRequest*>(&request);
  for (sc::Plan* plan : PlansOf(changeable)) {
    FLEUVE_TRY(ExpandPlan(plan));
  }
  FLEUVE_TRY(CheckMessage(request));
  return session->Analyze(request, response);
}

Result<void> Service::ArtifactStatus(const SessionPtr& session, const sc::ArtifactStatusesRequest& request,
                                     sc::ArtifactStatusesResponse* response) {
  for (const std::string& name : request.names()) {
    auto& status = (*response->mutable_statuses())[name];
    if (session->artifacts().Exists(name)) {
      status.set_exists(true);
    }
  }
  return {};
}

Result<void> Service::Interrupt(const SessionPtr& session, const sc::InterruptRequest& request,
                                sc::InterruptResponse* response) {
  std::vector<std::string> ids;
  switch (request.interrupt_type()) {
    case sc::InterruptRequest::INTERRUPT_TYPE_ALL:
      ids = session->InterruptAll();
      break;
    case sc::InterruptRequest::INTERRUPT_TYPE_TAG:
      if (!request.has_operation_tag()) {
        return InvalidPlanInput("INTERRUPT_TYPE_TAG requested, but no operation_tag provided.");
      }
      ids = session->InterruptTag(request.operation_tag());
      break;
    case sc::InterruptRequest::INTERRUPT_TYPE_OPERATION_ID:
      if (!request.has_operation_id()) {
        return InvalidPlanInput("INTERRUPT_TYPE_OPERATION_ID requested, but no operation_id provided.");
      }
      ids = session->InterruptOperation(request.operation_id());
      break;
    default:
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.INTERRUPT_TYPE",
                   "The feature is not supported: Unsupported interrupt type: INTERRUPT_TYPE_UNSPECIFIED.")
          .With("interruptType", "INTERRUPT_TYPE_UNSPECIFIED");
  }
  for (const std::string& id : ids) {
    if (const ExecutionPtr execution = executions_.Find(session->key(), id); execution != nullptr) {
      execution->Cancelled();
    }
    response->add_interrupted_ids(id);
  }
  return {};
}

Result<void> Service::ReleaseExecute(const SessionPtr& session, const sc::ReleaseExecuteRequest& request,
                                     sc::ReleaseExecuteResponse* response) {
  const ExecutionPtr execution = executions_.Find(session->key(), request.operation_id());
  if (execution == nullptr) {
    return {};
  }
  if (request.has_release_until()) {
    FLEUVE_TRY(execution->ReleaseUntil(request.release_until().response_id()));
  } else if (request.has_release_all()) {
    executions_.Remove(session->key(), execution->id(), true);
    execution->Abandon();
  } else {
    return Error(ErrorKind::kUnsupported, "", "Unknown ReleaseExecute type!")
        .Family(ErrorFamily::kUnsupportedOperation);
  }
  response->set_operation_id(execution->id());
  return {};
}

Result<void> Service::GetStatus(const SessionPtr& session, const sc::GetStatusRequest& request,
                                sc::GetStatusResponse* response) {
  if (!request.has_operation_status()) {
    return {};
  }
  using Status = sc::GetStatusResponse::OperationStatus;
  const auto put = [&](const std::string& id, const ExecutionPtr& execution) {
    auto* status = response->add_operation_statuses();
    status->set_operation_id(id);
    if (execution == nullptr) {
      status->set_state(Status::OPERATION_STATE_UNKNOWN);
    } else if (!execution->ended()) {
      status->set_state(execution->operation()->token->cancelled() ? Status::OPERATION_STATE_TERMINATING
                                                                   : Status::OPERATION_STATE_RUNNING);
    } else if (const auto failure = execution->failure(); !failure) {
      status->set_state(Status::OPERATION_STATE_SUCCEEDED);
    } else {
      status->set_state(failure->kind() == ErrorKind::kCancelled ? Status::OPERATION_STATE_CANCELLED
                                                                 : Status::OPERATION_STATE_FAILED);
    }
  };
  if (request.operation_status().operation_ids().empty()) {
    for (const ExecutionPtr& execution : executions_.OfSession(session->key())) {
      put(execution->id(), execution);
    }
  }
  for (const std::string& id : request.operation_status().operation_ids()) {
    put(id, executions_.Find(session->key(), id));
  }
  return {};
}

Result<void> Service::CloneSession(const SessionPtr& session, const sc::CloneSessionRequest& request,
                                   sc::CloneSessionResponse* response) {
  FLEUVE_ASSIGN(SessionPtr clone,
                sessions_->Clone(session, request.has_new_session_id() ? request.new_session_id() : NewUuid()));
  response->set_new_session_id(clone->key().session_id);
  response->set_new_server_side_session_id(clone->server_side_id());
  return {};
}

UnaryAnswer Service::FetchErrorDetails(const grpc::ByteBuffer& bytes) {
  sc::FetchErrorDetailsRequest request;
  if (auto parsed = ParseMessage(bytes, &request); !parsed.ok()) {
    return UnaryAnswer{Fail(nullptr, parsed.error()), {}};
  }
  auto session = SessionOf(request, true);
  if (!session.ok()) {
    return UnaryAnswer{Fail(nullptr, session.error()), {}};
  }
  sc::FetchErrorDetailsResponse response;
  Error error = Error::Internal("");
  if (errors_.Take((*session)->server_side_id(), request.error_id(), &error)) {
    response.set_session_id(request.session_id());
    response.set_server_side_session_id((*session)->server_side_id());
    FillErrorDetails(error, &response);
  }
  return Answer(response);
}

UnaryAnswer Service::ReleaseSession(const grpc::ByteBuffer& bytes) {
  sc::ReleaseSessionRequest request;
  if (auto parsed = ParseMessage(bytes, &request); !parsed.ok()) {
    return UnaryAnswer{Fail(nullptr, parsed.error()), {}};
  }
  const SessionKey key = KeyOf(request);
  sc::ReleaseSessionResponse response;
  response.set_session_id(request.session_id());
  for (const ExecutionPtr& execution : executions_.OfSession(key)) {
    executions_.Remove(key, execution->id(), true);
    execution->Cancelled();
    execution->Abandon();
  }
  if (const SessionPtr session = sessions_->Release(key, request.allow_reconnect()); session != nullptr) {
    response.set_server_side_session_id(session->server_side_id());
    errors_.Forget(session->server_side_id());
  }
  return Answer(response);
}

grpc::Status Service::ExecutePlan(grpc::ByteBuffer bytes, const std::shared_ptr<StreamReader>& reader,
                                  const std::function<void(ExecutionPtr)>& attached) {
  grpc::Status status;
  RunOnBigStack([&] {
    google::protobuf::Arena arena;
    auto* request = google::protobuf::Arena::CreateMessage<sc::ExecutePlanRequest>(&arena);
    if (auto parsed = ParseMessage(bytes, request); !parsed.ok()) {
      status = Fail(nullptr, parsed.error());
      return;
    }
    const std::size_t fingerprint = FieldFingerprint(bytes, sc::ExecutePlanRequest::kPlanFieldNumber);
    bytes.Clear();
    status = ExecuteParsed(request, fingerprint, reader, attached);
  });
  return status;
}

grpc::Status Service::ExecuteParsed(sc::ExecutePlanRequest* request, std::size_t fingerprint,
                                    const std::shared_ptr<StreamReader>& reader,
                                    const std::function<void(ExecutionPtr)>& attached) {
  auto found = SessionOf(*request, true);
  if (!found.ok()) {
    return Fail(nullptr, found.error());
  }
  const SessionPtr session = *found;
  std::string operation_id = request->operation_id();
  if (!request->has_operation_id()) {
    operation_id = NewUuid();
  } else if (!IsUuid(operation_id)) {
    return Fail(session, InvalidHandle("FORMAT", operation_id,
                                       "Handle must be an UUID string of the format "
                                       "'00112233-4455-6677-8899-aabbccddeeff'"));
  }
  ExecutionOptions options;
  options.buffer_bytes = options_.buffer_bytes;
  options.rows_per_batch = session->config().GetInt("spark.sql.execution.arrow.maxRecordsPerBatch", 10000);
  if (options.rows_per_batch <= 0) {
    options.rows_per_batch = std::int64_t{1} << 40;
  }
  options.time_zone = session->config().GetOr("spark.sql.session.timeZone", "UTC");
  for (const auto& option : request->request_options()) {
    if (option.has_reattach_options()) {
      options.reattachable = option.reattach_options().reattachable();
    } else if (option.has_result_chunking_options()) {
      options.allow_chunking = option.result_chunking_options().allow_arrow_batch_chunking();
      options.chunk_bytes = option.result_chunking_options().preferred_arrow_chunk_size();
    } else if (option.has_extension()) {
      return Fail(session, Error::Unsupported("the request option " + option.extension().type_url()));
    }
  }
  if (executions_.WasAbandoned(session->key(), operation_id)) {
    return Fail(session, InvalidHandle("OPERATION_ABANDONED", operation_id,
                                       "Operation was considered abandoned because of inactivity and removed."));
  }
  if (const ExecutionPtr known = executions_.Find(session->key(), operation_id); known != nullptr) {
    // A repeated request must not run twice: the same plan reads the responses of the first from the start.
    if (known->fingerprint() != fingerprint || !known->reattachable()) {
      return Fail(session, InvalidHandle("OPERATION_ALREADY_EXISTS", operation_id, "Operation already exists."));
    }
    if (auto done = known->Attach(reader, ""); !done.ok()) {
      return Fail(session, done.error());
    }
    attached(known);
    return grpc::Status::OK;
  }

  auto execution = std::make_shared<Execution>(session, operation_id,
                                               std::vector<std::string>(request->tags().begin(), request->tags().end()),
                                               options, fingerprint);
  if (!executions_.Add(session->key(), execution)) {
    return Fail(session, InvalidHandle("OPERATION_ALREADY_EXISTS", operation_id, "Operation already exists."));
  }
  execution->operation()->sink = execution;
  execution->operation()->run = session::RunOfClient(request->client_type());
  if (auto done = ReadPipelineContext(request->user_context(), execution->operation().get()); !done.ok()) {
    executions_.Remove(session->key(), operation_id, false);
    execution->operation()->sink = nullptr;
    return Fail(session, done.error());
  }
  if (auto done = session->AddOperation(execution->operation()); !done.ok()) {
    executions_.Remove(session->key(), operation_id, false);
    execution->operation()->sink = nullptr;
    return Fail(session, done.error());
  }
  execution->Attach(reader, "").IgnoreBecause("a new execution can be read from its start");
  attached(execution);

  Result<session::Completion> outcome = [&]() -> Result<session::Completion> {
    FLEUVE_TRY(ExpandPlan(request->mutable_plan()));
    FLEUVE_TRY(CheckMessage(request->plan()));
    return session->Execute(request->plan(), execution->operation());
  }();
  if (outcome.ok() && *outcome == session::Completion::kLater) {
    return grpc::Status::OK;
  }
  execution->End(outcome.ok() ? Result<void>() : Result<void>(std::move(outcome).error()));
  return grpc::Status::OK;
}

grpc::Status Service::ReattachExecute(const grpc::ByteBuffer& bytes, const std::shared_ptr<StreamReader>& reader,
                                      const std::function<void(ExecutionPtr)>& attached) {
  sc::ReattachExecuteRequest request;
  if (auto parsed = ParseMessage(bytes, &request); !parsed.ok()) {
    return Fail(nullptr, parsed.error());
  }
  auto session = SessionOf(request, false);
  if (!session.ok()) {
    return Fail(nullptr, session.error());
  }
  const std::string& id = request.operation_id();
  const ExecutionPtr execution = executions_.Find((*session)->key(), id);
  if (execution == nullptr) {
    return Fail(*session, InvalidHandle("OPERATION_NOT_FOUND", id, "Operation not found."));
  }
  if (!execution->reattachable()) {
    return Fail(*session, Error(ErrorKind::kInvalidArgument, "INVALID_CURSOR.NOT_REATTACHABLE",
                                "The cursor is invalid. The cursor is not reattachable."));
  }
  if (auto done = execution->Attach(reader, request.last_response_id()); !done.ok()) {
    return Fail(*session, done.error());
  }
  attached(execution);
  return grpc::Status::OK;
}

void Service::StreamEnded(const ExecutionPtr& execution) {
  if (!execution->reattachable()) {
    executions_.Remove(execution->session()->key(), execution->id(), false);
  }
}

std::int64_t Service::Tick() {
  const std::int64_t now = NowMs();
  std::int64_t wait_ms = kExpiryCheckMs;
  for (const auto& [key, execution] : executions_.All()) {
    const auto fate = execution->AbandonIfDetached(options_.detached_timeout_ms, options_.forget_timeout_ms, &wait_ms);
    if (fate != Execution::Fate::kKept) {
      LogInfo("operation " + execution->id() + " has no reader and is given up");
      executions_.Remove(key, execution->id(), fate == Execution::Fate::kAbandoned);
    }
  }
  if (now - last_expiry_ms_.load() >= kExpiryCheckMs) {
    last_expiry_ms_.store(now);
    sessions_->ExpireIdle();
  }
  return std::max<std::int64_t>(wait_ms, 10);
}

void Service::CancelAll() {
  for (const auto& [key, execution] : executions_.All()) {
    execution->Cancelled();
    execution->Abandon();
  }
}

}  // namespace fleuve::connect
