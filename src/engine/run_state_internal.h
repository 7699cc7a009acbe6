#pragma once

/// \file
/// What one run knows: its leaves, its typed calls, who may cancel it. Found from DuckDB's ClientContext while a query
/// is bound and while it runs.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancellation.h"
#include "duckdb/common/types/column/column_data_collection.hpp"
#include "duckdb/parser/parsed_expression.hpp"
#include "engine/duckdb_pch.h"
#include "engine/engine.h"
#include "plan/logical_plan.h"

namespace fleuve::engine {

/// One leaf of the plan that runs. Table functions get its number as their only argument and find it here.
struct Leaf {
  plan::PlanPtr node;
  /// True: every row given must be counted, so nothing may be filtered inside the reader.
  bool counted = false;
  /// Rows given so far. Readers add to it once per chunk.
  std::atomic<std::int64_t> rows{0};

  const plan::FileScan& scan() const { return *node->scan; }
};

/// A lambda of a call as translated: its body refers to its parameters and to the captured columns by name.
struct ParsedLambda {
  duckdb::shared_ptr<duckdb::ParsedExpression> body;
  /// Names of the body's inputs: parameters first, then captured columns; `table.column` or `column`.
  std::vector<std::string> inputs;
  std::vector<duckdb::LogicalType> input_types;
  std::size_t parameter_count = 0;
  /// Position of each captured column among the call's arguments.
  std::vector<std::size_t> capture_arguments;
};

/// One use of a function of ours in the plan that runs.
struct Call {
  plan::ExprPtr expr;
  /// Carriers that the arguments must have.
  std::vector<duckdb::LogicalType> arguments;
  std::vector<ParsedLambda> lambdas;
};

/// The expressions of a chain of projections, one after the other. Each refers to the chain's inputs and to the
/// expressions before it by `v<n>`: inputs are numbered first.
struct ParsedChain {
  struct Step {
    duckdb::shared_ptr<duckdb::ParsedExpression> body;
    duckdb::LogicalType type;
  };
  std::size_t inputs = 0;
  std::vector<Step> steps;
  /// The steps (from 0) whose values leave the chain, in the order of the result's fields `f<n>`.
  std::vector<std::size_t> results;
};

/// The rows that passed a kMetrics node, as far as its aggregates need them. Filled by one thread at a time.
struct MetricsRows {
  plan::PlanPtr node;
  /// The attributes kept, in order; at least one column is kept (a constant where the aggregates need none).
  std::vector<plan::Attribute> inputs;
  /// Number of columns that pass; the kept ones follow them in the operator's input.
  std::size_t passed = 0;
  duckdb::unique_ptr<duckdb::ColumnDataCollection> rows;
};

/// Threads: filled by the thread that translates, read-only afterwards (but for the atomics).
class RunState : public duckdb::ClientContextState {
 public:
  static constexpr const char* kName = "fleuve_run";

  /// The run of this connection. Raises INTERNAL_ERROR where there is none.
  static RunState& Of(duckdb::ClientContext& context);

  std::int64_t AddLeaf(plan::PlanPtr node, bool counted);
  const std::shared_ptr<Leaf>& LeafAt(std::int64_t number) const;
  std::int64_t AddCall(Call call);
  const Call& CallAt(std::int64_t number) const;
  std::int64_t AddChain(ParsedChain chain) {
    chains_.push_back(std::move(chain));
    return static_cast<std::int64_t>(chains_.size()) - 1;
  }
  const ParsedChain& ChainAt(std::int64_t number) const { return chains_.at(static_cast<std::size_t>(number)); }
  const std::deque<std::shared_ptr<Leaf>>& leaves() const { return leaves_; }

  std::int64_t AddMetrics(MetricsRows rows);
  MetricsRows& MetricsAt(std::int64_t number) { return *metrics_.at(static_cast<std::size_t>(number)); }
  std::deque<std::unique_ptr<MetricsRows>>& metrics() { return metrics_; }

  /// Operators whose work is done elsewhere (kExternal nodes).
  std::int64_t AddExternal(plan::PlanPtr node) {
    externals_.push_back(std::move(node));
    return static_cast<std::int64_t>(externals_.size()) - 1;
  }
  const plan::PlanPtr& ExternalAt(std::int64_t number) const { return externals_.at(static_cast<std::size_t>(number)); }

  /// For loops longer than 10 ms: raises kCancelled when the run shall end.
  void CheckCancelled() const;

  CancellationTokenPtr token;
  std::shared_ptr<RunObserver> observer;

 private:
  std::deque<std::shared_ptr<Leaf>> leaves_;
  std::deque<Call> calls_;
  std::deque<ParsedChain> chains_;
  std::deque<std::unique_ptr<MetricsRows>> metrics_;
  std::deque<plan::PlanPtr> externals_;
};

}  // namespace fleuve::engine
