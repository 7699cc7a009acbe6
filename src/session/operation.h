#pragma once

/// \file
/// One execution of a plan: who may stop it, and where its results go.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "columnar/record_batch.h"

namespace spark::connect {
class ExecutePlanResponse;
}

namespace fleuve::session {

/// Takes the results of one operation. Threads: one caller at a time, but a listener bus calls `PutMessage` and `End`
/// from the threads of its queries.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  virtual Result<void> PutSchema(const types::Schema& schema) = 0;
  /// Waits while the reader has no room; kCancelled once nobody wants more.
  virtual Result<void> PutBatch(const columnar::RecordBatch& batch) = 0;
  /// Command results, metrics, events: everything but identifiers is filled. Does not wait.
  virtual Result<void> PutMessage(spark::connect::ExecutePlanResponse message) = 0;
  /// Ends an operation for which `Session::Execute` returned `Completion::kLater`. Once.
  virtual void End(Result<void> outcome) = 0;
};

enum class Completion {
  kNow,    ///< all results were put
  kLater,  ///< more comes from other threads; `ResultSink::End` will be called
};

/// An operation of a session. Threads: any.
struct Operation {
  std::string id;
  std::vector<std::string> tags;
  /// The run of a streaming query whose user code asked for it (`Session::BeginRun`); empty otherwise.
  std::string run;
  /// The dataflow graph, and the flow in it, whose definition asks for this; empty otherwise.
  std::string pipeline_graph;
  std::string pipeline_flow;
  CancellationTokenPtr token = std::make_shared<CancellationToken>();
  std::shared_ptr<ResultSink> sink;
  /// Running it once more changes nothing but the time it takes: a query, a wait. Set once that is sure, and no more
  /// taken back: who has read it may act on it.
  std::atomic<bool> repeatable = false;
};

using OperationPtr = std::shared_ptr<Operation>;

/// The name by which the client of a run's user code is known (`user_agent` of its URL), and the run that a client's
/// name holds; empty where it holds none.
std::string ClientOfRun(const std::string& run);
std::string RunOfClient(std::string_view client);

}  // namespace fleuve::session
