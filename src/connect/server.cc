#include "connect/server.h"

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "connect/service_internal.h"

namespace fleuve::connect {

namespace {

constexpr std::string_view kServiceName = "/spark.connect.SparkConnectService/";

class Call;

/// The calls in flight, so that `Stop` can wait for them and long streams can be cut.
class CallTable {
 public:
  /// \param left  called when a stream has left its execution; from any thread.
  explicit CallTable(std::function<void()> left) : left_(std::move(left)) {}
  void ExecutionLeft() { left_(); }
  void Add(const std::shared_ptr<Call>& call) {
    std::lock_guard lock(mutex_);
    calls_.insert(call);
  }
  void Remove(const std::shared_ptr<Call>& call) {
    std::lock_guard lock(mutex_);
    calls_.erase(call);
  }
  std::vector<std::shared_ptr<Call>> All() {
    std::lock_guard lock(mutex_);
    return {calls_.begin(), calls_.end()};
  }

 private:
  const std::function<void()> left_;
  std::mutex mutex_;
  std::set<std::shared_ptr<Call>> calls_;
};

/// One call of any method, driven by gRPC's reactions; nothing here blocks a gRPC thread.
class Call final : public grpc::ServerGenericBidiReactor,
                   public StreamReader,
                   public std::enable_shared_from_this<Call> {
 public:
  Call(Service* service, WorkerPool* pool, CallTable* table, std::string method)
      : service_(service), pool_(pool), table_(table), method_(std::move(method)) {}

  void Begin(grpc::Status refused) {
    self_ = shared_from_this();
    table_->Add(self_);
    if (!refused.ok()) {
      FinishOnce(std::move(refused));
      return;
    }
    if (method_ == "AddArtifacts") {
      upload_ = Service::NewUpload();
    }
    StartRead(&request_);
  }

  void OnReadDone(bool ok) override {
    if (upload_ != nullptr) {
      pool_->Submit([self = shared_from_this(), ok] { self->TakeArtifacts(ok); });
      return;
    }
    if (!ok) {
      FinishOnce(grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "the call holds no message"));
      return;
    }
    pool_->Submit([self = shared_from_this()] { self->Handle(); });
  }

  void OnWriteDone(bool ok) override {
    ExecutionPtr execution;
    {
      std::lock_guard lock(mutex_);
      execution = execution_;
      failed_ = failed_ || !ok;
    }
    if (execution != nullptr && ok) {
      execution->Sent(this);
    }
    {
      // Only now may another thread write: it would be given the same response before `Sent`.
      std::lock_guard lock(mutex_);
      writing_ = false;
    }
    if (execution != nullptr) {
      Pump();
    }
  }

  void OnCancel() override {
    {
      std::lock_guard lock(mutex_);
      failed_ = true;
    }
    Pump();
  }

  void OnDone() override {
    ExecutionPtr execution;
    {
      std::lock_guard lock(mutex_);
      execution = std::move(execution_);
      execution_ = nullptr;
    }
    if (execution != nullptr) {
      execution->Detach(this);
      service_->StreamEnded(execution);
      table_->ExecutionLeft();
    }
    table_->Remove(self_);
    self_ = nullptr;
  }

  // StreamReader.
  void Wake() override { Pump(); }

  /// Milliseconds (monotonic) when this stream began to read; 0 before.
  std::int64_t attached_ms() {
    std::lock_guard lock(mutex_);
    return attached_ms_;
  }
  void Cut() {
    ExecutionPtr execution;
    {
      std::lock_guard lock(mutex_);
      execution = execution_;
    }
    if (execution != nullptr && execution->reattachable()) {
      execution->CutStream();
    }
  }

 private:
  void Handle() {
    if (Service::IsUnary(method_)) {
      UnaryAnswer answer = service_->CallUnary(method_, request_);
      Reply(std::move(answer));
      return;
    }
    const auto attached = [this](const ExecutionPtr& execution) {
      {
        std::lock_guard lock(mutex_);
        execution_ = execution;
        attached_ms_ = Clock::System()->MonotonicNanos() / 1000000;
      }
      Pump();
    };
    grpc::ByteBuffer request;
    request.Swap(&request_);
    const grpc::Status status = method_ == "ExecutePlan"
                                    ? service_->ExecutePlan(std::move(request), shared_from_this(), attached)
                                    : service_->ReattachExecute(request, shared_from_this(), attached);
    if (!status.ok()) {
      FinishOnce(status);
    }
  }

  void TakeArtifacts(bool ok) {
    if (!ok) {
      Reply(service_->FinishUpload(upload_.get()));
      return;
    }
    if (grpc::Status status = service_->AddToUpload(upload_.get(), request_); !status.ok()) {
      FinishOnce(std::move(status));
      return;
    }
    request_.Clear();
    StartRead(&request_);
  }

  void Reply(UnaryAnswer answer) {
    if (!answer.status.ok()) {
      FinishOnce(std::move(answer.status));
      return;
    }
    {
      std::lock_guard lock(mutex_);
      if (finished_) {
        return;
      }
      finished_ = true;
      response_ = std::move(answer.bytes);
    }
    StartWriteAndFinish(&response_, grpc::WriteOptions(), grpc::Status::OK);
  }

  void FinishOnce(grpc::Status status) {
    {
      std::lock_guard lock(mutex_);
      if (finished_ || writing_) {
        return;
      }
      finished_ = true;
    }
    Finish(std::move(status));
  }

  /// Sends what there is, or ends the stream. At most one write is under way.
  void Pump() {
    ExecutionPtr execution;
    bool failed = false;
    {
      std::lock_guard lock(mutex_);
      if (finished_ || execution_ == nullptr) {
        return;
      }
      if (writing_) {
        woken_ = true;
        return;
      }
      execution = execution_;
      failed = failed_;
      writing_ = true;  // keeps other threads out until the step is decided
      woken_ = false;
    }
    if (failed) {
      End(execution, grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled"));
      return;
    }
    while (true) {
      NextStep step = execution->Next(this);
      switch (step.kind) {
        case NextStep::Kind::kSend:
          response_ = std::move(step.bytes);
          StartWrite(&response_);
          return;
        case NextStep::Kind::kEnd:
          End(execution, grpc::Status::OK);
          return;
        case NextStep::Kind::kFail:
          End(execution, service_->Fail(execution->session(), *step.error));
          return;
        case NextStep::Kind::kWait:
          break;
      }
      std::unique_lock lock(mutex_);
      if (failed_) {
        lock.unlock();
        End(execution, grpc::Status(grpc::StatusCode::CANCELLED, "the call was cancelled"));
        return;
      }
      if (!woken_) {
        writing_ = false;
        return;
      }
      woken_ = false;
    }
  }

  void End(const ExecutionPtr& execution, grpc::Status status) {
    {
      std::lock_guard lock(mutex_);
      finished_ = true;
      writing_ = false;
    }
    execution->Detach(this);
    Finish(std::move(status));
  }

  Service* const service_;
  WorkerPool* const pool_;
  CallTable* const table_;
  const std::string method_;
  std::shared_ptr<Call> self_;
  std::shared_ptr<ArtifactUpload> upload_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;

  std::mutex mutex_;
  ExecutionPtr execution_;
  std::int64_t attached_ms_ = 0;
  bool writing_ = false;
  bool finished_ = false;
  bool failed_ = false;
  bool woken_ = false;
};

}  // namespace

class Server::Impl final : public grpc::CallbackGenericService {
 public:
  Impl(std::shared_ptr<session::SessionManager> sessions, ServerOptions options)
      : options_(options), service_(std::move(sessions), std::move(options)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    const std::string& path = context->method();
    std::string method = path.starts_with(kServiceName) ? path.substr(kServiceName.size()) : std::string();
    grpc::Status refused;
    if (!Service::IsUnary(method) && method != "ExecutePlan" && method != "ReattachExecute" &&
        method != "AddArtifacts") {
      refused = grpc::Status(grpc::StatusCode::UNIMPLEMENTED, "Method not found: " + path);
    } else if (!options_.token.empty() && !Authorized(*context)) {
      refused = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, "the bearer token is missing or wrong");
    }
    auto call = std::make_shared<Call>(&service_, &pool_, &table_, std::move(method));
    call->Begin(std::move(refused));
    return call.get();
  }

  Result<int> Start(const std::string& host, int port) {
    grpc::ServerBuilder builder;
    int bound = 0;
    const std::string address =
        (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &bound);
    builder.RegisterCallbackGenericService(this);
    builder.SetMaxReceiveMessageSize(
        static_cast<int>(std::min<std::int64_t>(options_.message_bytes, std::numeric_limits<int>::max())));
    builder.SetMaxSendMessageSize(-1);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
    builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 60000);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20000);
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, 64 * 1024);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || bound == 0) {
      server_ = nullptr;
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_PORT_IN_USE",
                   "Cannot listen on " + address + ": the port is taken or the address is not of this machine.");
    }
    timer_ = std::thread([this] { RunTimer(); });
    return bound;
  }

  void Stop(std::int64_t grace_ms) {
    if (server_ == nullptr) {
      return;
    }
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
      wake_.notify_all();
    }
    timer_.join();
    const auto deadline = std::chrono::system_clock::now() + std::chrono::milliseconds(grace_ms);
    // Streams that wait for more (listeners, awaitTermination) would use up the grace: the last moment is for them.
    std::thread canceller([this, grace_ms] {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(grace_ms), [this] { return stopped_; });
      lock.unlock();
      service_.CancelAll();
    });
    server_->Shutdown(deadline);
    {
      std::lock_guard lock(mutex_);
      stopped_ = true;
      wake_.notify_all();
    }
    canceller.join();
    service_.CancelAll();
    pool_.Drain();
    server_->Wait();
    server_ = nullptr;
  }

 private:
  bool Authorized(const grpc::GenericCallbackServerContext& context) const {
    const auto found = context.client_metadata().find("authorization");
    if (found == context.client_metadata().end()) {
      return false;
    }
    const std::string expected = "Bearer " + options_.token;
    const std::string_view given(found->second.data(), found->second.size());
    // Compares in a time that does not tell how much was right.
    unsigned difference = given.size() == expected.size() ? 0 : 1;
    for (std::size_t i = 0; i < given.size() && i < expected.size(); ++i) {
      difference |= static_cast<unsigned>(given[i] ^ expected[i]);
    }
    return difference == 0;
  }

  void RunTimer() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      std::int64_t wait_ms = service_.Tick();
      const std::int64_t now = Clock::System()->MonotonicNanos() / 1000000;
      for (const auto& call : table_.All()) {
        const std::int64_t since = call->attached_ms();
        if (since != 0) {
          wait_ms = std::min<std::int64_t>(wait_ms, 1000);
          if (now - since >= options_.stream_duration_ms) {
            call->Cut();
          }
        }
      }
      lock.lock();
      wake_.wait_for(lock, std::chrono::milliseconds(wait_ms), [this] { return stopping_ || look_again_; });
      look_again_ = false;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  bool look_again_ = false;  ///< an execution has lost its reader: its time runs
  bool stopping_ = false;
  bool stopped_ = false;
  const ServerOptions options_;
  Service service_;
  WorkerPool pool_;
  CallTable table_{[this] {
    std::lock_guard lock(mutex_);
    look_again_ = true;
    wake_.notify_all();
  }};
  std::unique_ptr<grpc::Server> server_;
  std::thread timer_;
};

Server::Server(std::shared_ptr<session::SessionManager> sessions, ServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(sessions), std::move(options))) {}

Server::~Server() { impl_->Stop(0); }

Result<int> Server::Start(const std::string& host, int port) { return impl_->Start(host, port); }

void Server::Stop(std::int64_t grace_ms) { impl_->Stop(grace_ms); }

}  // namespace fleuve::connect
