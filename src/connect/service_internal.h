#pragma once

/// \file
/// The twelve calls of SparkConnectService, apart from how bytes arrive and leave.

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "connect/execution_internal.h"
#include "connect/server.h"
#include "connect/wire_status_internal.h"
#include "connect/worker_pool_internal.h"
#include "session/session_manager.h"
#include "spark/connect/base.pb.h"

namespace fleuve::connect {

/// How one call ended that answers once.
struct UnaryAnswer {
  grpc::Status status;
  grpc::ByteBuffer bytes;
};

/// Artifacts of one AddArtifacts call, put together from its messages.
class ArtifactUpload;

/// Threads: every method from any thread of the worker pool.
class Service {
 public:
  Service(std::shared_ptr<session::SessionManager> sessions, ServerOptions options)
      : sessions_(std::move(sessions)), options_(std::move(options)) {}

  /// A call that answers once. \param method  name without the service: `Config`, `AnalyzePlan`, ...
  UnaryAnswer CallUnary(const std::string& method, const grpc::ByteBuffer& request);
  static bool IsUnary(const std::string& method);

  /// Starts an operation and gives its results to `reader`; runs it to its end in the calling thread.
  /// \param attached  called once `reader` reads an execution, before anything runs.
  /// Returns the status with which the stream ends at once where nothing was attached.
  grpc::Status ExecutePlan(grpc::ByteBuffer request, const std::shared_ptr<StreamReader>& reader,
                           const std::function<void(ExecutionPtr)>& attached);
  grpc::Status ReattachExecute(const grpc::ByteBuffer& request, const std::shared_ptr<StreamReader>& reader,
                               const std::function<void(ExecutionPtr)>& attached);

  static std::shared_ptr<ArtifactUpload> NewUpload();
  grpc::Status AddToUpload(ArtifactUpload* upload, const grpc::ByteBuffer& request);
  UnaryAnswer FinishUpload(ArtifactUpload* upload);

  /// The status of an error of this session; its details can be fetched.
  grpc::Status Fail(const session::SessionPtr& session, const Error& error);
  /// The stream of an execution has ended; what nobody can ask for again is forgotten.
  void StreamEnded(const ExecutionPtr& execution);

  /// Periodic duties; returns the milliseconds until the next time.
  std::int64_t Tick();
  /// Ends all operations.
  void CancelAll();
  const ServerOptions& options() const { return options_; }

 private:
  Result<void> TakeUploadMessage(ArtifactUpload* upload, const grpc::ByteBuffer& request);
  template <typename Request>
  Result<session::SessionPtr> SessionOf(const Request& request, bool create = true);
  template <typename Request, typename Response>
  UnaryAnswer Handle(const grpc::ByteBuffer& bytes, bool create,
                     Result<void> (Service::*handler)(const session::SessionPtr&, const Request&, Response*));

  Result<void> Config(const session::SessionPtr& session, const spark::connect::ConfigRequest& request,
                      spark::connect::ConfigResponse* response);
  Result<void> AnalyzePlan(const session::SessionPtr& session, const spark::connect::AnalyzePlanRequest& request,
                           spark::connect::AnalyzePlanResponse* response);
  Result<void> ArtifactStatus(const session::SessionPtr& session,
                              const spark::connect::ArtifactStatusesRequest& request,
                              spark::connect::ArtifactStatusesResponse* response);
  Result<void> Interrupt(const session::SessionPtr& session, const spark::connect::InterruptRequest& request,
                         spark::connect::InterruptResponse* response);
  Result<void> ReleaseExecute(const session::SessionPtr& session, const spark::connect::ReleaseExecuteRequest& request,
                              spark::connect::ReleaseExecuteResponse* response);
  Result<void> GetStatus(const session::SessionPtr& session, const spark::connect::GetStatusRequest& request,
                         spark::connect::GetStatusResponse* response);
  Result<void> CloneSession(const session::SessionPtr& session, const spark::connect::CloneSessionRequest& request,
                            spark::connect::CloneSessionResponse* response);
  UnaryAnswer FetchErrorDetails(const grpc::ByteBuffer& bytes);
  UnaryAnswer ReleaseSession(const grpc::ByteBuffer& bytes);
  grpc::Status ExecuteParsed(spark::connect::ExecutePlanRequest* request, std::size_t fingerprint,
                             const std::shared_ptr<StreamReader>& reader,
                             const std::function<void(ExecutionPtr)>& attached);

  const std::shared_ptr<session::SessionManager> sessions_;
  const ServerOptions options_;
  ErrorStore errors_;
  ExecutionTable executions_;
  std::atomic<std::int64_t> last_expiry_ms_{0};
};

}  // namespace fleuve::connect
