#pragma once

/// \file
/// Errors as Spark Connect clients read them: gRPC status with google.rpc details, and details on demand.

#include <grpcpp/support/status.h>

#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"

namespace spark::connect {
class FetchErrorDetailsResponse;
}

namespace fleuve::connect {

/// Class names of the exception, most derived first.
std::vector<std::string> ExceptionClasses(const Error& error);
/// Status INTERNAL with `google.rpc.Status` in its details. \param error_id  empty: no details are kept.
grpc::Status ToStatus(const Error& error, const std::string& error_id);
/// The error and its causes (at most five).
void FillErrorDetails(const Error& error, spark::connect::FetchErrorDetailsResponse* response);

/// Errors of sessions, kept until they are fetched; at most 20 a session. Threads: any.
class ErrorStore {
 public:
  /// Returns the id under which `error` can be fetched once.
  std::string Add(const std::string& session, const Error& error);
  /// False where the id is unknown or was fetched.
  bool Take(const std::string& session, const std::string& id, Error* error);
  void Forget(const std::string& session);

 private:
  std::mutex mutex_;
  std::map<std::string, std::deque<std::pair<std::string, Error>>> sessions_;
};

}  // namespace fleuve::connect
