#pragma once

/// \file
/// A graph with every flow analyzed: what it reads, what columns it gives, in which order it may run. Tables that the
/// graph makes stand for their columns here; nothing is read, written or made.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "pipelines/graph.h"
#include "pipelines/stage.h"
#include "plan/logical_plan.h"
#include "session/workbench.h"

namespace fleuve::pipelines {

struct ResolvedFlow {
  /// Of the graph.
  std::size_t flow = 0;
  types::Schema schema;
  bool is_streaming = false;
  /// Datasets that it reads by name: tables and views.
  std::set<std::size_t> reads;
  /// Tables that it reads, through views too.
  std::set<std::size_t> tables;
  /// Settings of the graph, of the views that it reads and its own.
  std::map<std::string, std::string> conf;
};

struct ResolvedDataset {
  types::Schema schema;
  /// Flows into it, by index.
  std::vector<std::size_t> flows;
  /// Tables that its flows read, through views too.
  std::set<std::size_t> upstream;
};

struct ResolvedGraph {
  std::vector<ResolvedFlow> flows;
  std::vector<ResolvedDataset> datasets;
  /// Datasets, what is read before what reads it.
  std::vector<std::size_t> order;
};

/// Where the sources of a flow keep what they remember (a schema that was inferred). \param source  counts the
/// sources of the flow from 0.
using SourceFolder = std::function<std::string(const Flow& flow, int source)>;
/// Told of flows that cannot be resolved. \param upstream  it reads one that cannot.
using FailureListener = std::function<void(const Flow& flow, const Error& error, bool upstream)>;

/// Analyzes and checks the graph, and decides the kinds that it leaves open. Errors: of the first check that fails, as
/// Spark orders them.
Result<ResolvedGraph> Resolve(Graph& graph, Stage& stage, const SourceFolder& folder, const FailureListener& failed);

/// Analyzes a flow against what is there: tables of the graph as the catalog has them, views by their queries.
Result<plan::PlanPtr> AnalyzeForRun(const Graph& graph, const ResolvedGraph& resolved, std::size_t flow, Stage& stage,
                                    const SourceFolder& folder);

/// How observe() names the counts of a dataset's expectations.
std::string ExpectationLabel(const Dataset& dataset);
/// The relation with the dataset's expectations: rows are counted, bad ones dropped or refused.
std::shared_ptr<const spark::connect::Relation> WithExpectations(
    const std::shared_ptr<const spark::connect::Relation>& relation, const Dataset& dataset, const std::string& label);

}  // namespace fleuve::pipelines
