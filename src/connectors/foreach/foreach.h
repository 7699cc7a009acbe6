#pragma once

/// \file
/// The sinks `foreachBatch` and `foreach`: the user's Python takes the rows of each batch. Both hand a batch out at
/// least once; its number lets user code drop what it already has.

#include <functional>
#include <memory>
#include <string>

#include "connectors/sink.h"
#include "plan/resolver.h"
#include "python/worker.h"

namespace fleuve::connectors::foreach {

/// The user's function and where it runs.
struct UserFunction {
  /// As the client pickled it.
  std::string command;
  /// `3.11`: the client's Python.
  std::string python_version;
  std::shared_ptr<python::WorkerPool> workers;
  python::WorkerSetup setup;
  python::WorkerLimits limits;
  /// An existing folder: large batches are kept below it while they are in use.
  std::string scratch;
};

/// What foreachBatch needs of the session that started the query.
struct BatchFunctionHost {
  /// Where the worker reaches this server as a client of the same session, with everything in it that names the session
  /// and the run: `sc://127.0.0.1:15002/;session_id=...`.
  std::string url;
  std::string session_id;
  std::string user_id;
  /// Makes `rows` reachable for clients of the session under `id`, and takes it away again.
  std::function<Result<void>(const std::string& id, std::shared_ptr<const plan::TableSource> rows)> publish;
  std::function<void(const std::string& id)> withdraw;
  /// Refuses what the run's worker asks for from now on, interrupts what it has asked for, and waits for its end.
  std::function<void()> end_run;
};

/// A provider for one query, for `stream::QueryRequest::sink_provider`. Starts the worker and hands it the function:
/// STREAMING_PYTHON_RUNNER_INITIALIZATION_FAILURE where that fails.
/// \param token  ends the start; may be null.
Result<std::shared_ptr<SinkProvider>> MakeForeachBatch(UserFunction function, BatchFunctionHost host,
                                                       const CancellationTokenPtr& token);

/// As `MakeForeachBatch` for `writeStream.foreach`; the worker starts with the first batch.
std::shared_ptr<SinkProvider> MakeForeach(UserFunction function);

}  // namespace fleuve::connectors::foreach
