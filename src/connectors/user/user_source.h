#pragma once

/// \file
/// Data sources that the user wrote in Python (`pyspark.sql.datasource`): tables, streams and sinks whose rows the
/// user's code reads and writes in worker processes.
///
/// A read is a plan: partitions, one row each, under a function of the user (`plan::ExternalKind::kMap`) that reads
/// them.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/sink.h"
#include "plan/resolver.h"
#include "python/worker.h"

namespace fleuve::engine {
class Engine;
}

namespace fleuve::connectors::user {

/// `StreamRelation::provider()` of every such stream.
inline constexpr const char* kProvider = "python data source";

/// A class that a client has registered, or that an installed module offers, and where it runs.
struct SourceClass {
  /// As the user calls it.
  std::string name;
  /// As the client pickled it.
  std::string command;
  /// `3.11`: the client's Python; empty: not known.
  std::string python_version;
  std::shared_ptr<python::WorkerPool> workers;
  python::WorkerSetup setup;
  python::WorkerLimits limits;
};

/// `path`, or `paths` as a JSON list where there are several, as an option.
plan::Options WithPaths(plan::Options options, const std::vector<std::string>& paths);

/// `spark.read.format(name)`. PYTHON_DATA_SOURCE_ERROR where the user's code refuses.
Result<std::shared_ptr<const plan::TableSource>> OpenTable(const SourceClass& source,
                                                           const std::optional<types::Schema>& schema,
                                                           const plan::Options& options,
                                                           const plan::AnalysisConfig& config);
/// `spark.readStream.format(name)`; its provider is `kProvider`.
Result<std::shared_ptr<const plan::StreamRelation>> OpenStream(const SourceClass& source,
                                                               const std::optional<types::Schema>& schema,
                                                               const plan::Options& options,
                                                               const plan::AnalysisConfig& config);
/// `df.write.format(name)`: the rows of an analyzed plan, committed by the writer or aborted.
Result<void> WriteRows(engine::Engine& engine, const SourceClass& source, const plan::PlanPtr& plan,
                       const plan::Options& options, bool overwrite, const plan::AnalysisConfig& config,
                       const CancellationTokenPtr& token);
/// `df.writeStream.format(name)`: a provider for one query, for `stream::QueryRequest::sink_provider`.
std::shared_ptr<SinkProvider> MakeSinkProvider(SourceClass source);
/// The provider `kProvider`.
void RegisterUserSources(ConnectorRegistry& registry);

/// The classes that installed modules offer (`pyspark_*` with a `DefaultSource`), by the names they give themselves.
/// \param place  where they run; its name and command are not used.
Result<std::vector<SourceClass>> FindInstalled(const SourceClass& place);

}  // namespace fleuve::connectors::user
