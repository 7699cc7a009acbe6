#pragma once

/// \file
/// One DuckDB instance with our functions in it, and one run on it.

#include <memory>
#include <string>

#include "engine/duckdb_pch.h"
#include "engine/engine.h"
#include "engine/run_state_internal.h"

namespace fleuve::engine {

/// An open instance. Threads: any.
class Instance {
 public:
  /// Raises.
  explicit Instance(const EngineOptions& options);
  ~Instance();
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  duckdb::DatabaseInstance& db() { return *db_->instance; }
  bool Invalidated();
  void Set(const std::string& name, duckdb::Value value);
  int threads() const { return threads_; }
  void set_threads(int threads) { threads_ = threads; }
  /// May be null.
  const std::shared_ptr<ResourceBudget>& budget() const { return budget_; }

 private:
  std::unique_ptr<duckdb::DuckDB> db_;
  std::string own_spill_directory_;
  std::atomic<int> threads_{1};
  const std::shared_ptr<ResourceBudget> budget_;
};

/// One plan on its way through an instance: a connection of its own, rows as chunks. Threads: one at a time.
class Run {
 public:
  /// Translates, binds and starts the plan; raises. The result's columns are the plan's visible ones.
  /// \param buffer_bytes  rows that may wait to be fetched; 0 = DuckDB's default (1 MB)
  Run(std::shared_ptr<Instance> instance, plan::PlanPtr plan, const ExecuteOptions& options, std::int64_t buffer_bytes);
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const std::vector<plan::Attribute>& columns() const { return columns_; }
  /// The next chunk, or null at the end (then the observer is complete); raises.
  duckdb::unique_ptr<duckdb::DataChunk> Next();
  /// The connection, for writers that need its context.
  duckdb::ClientContext& context() { return *connection_->context; }
  Instance& instance() { return *instance_; }

 private:
  void Start();
  void FinishObserver();
  void StopListening();

  std::shared_ptr<Instance> instance_;
  plan::PlanPtr plan_;
  ExecuteOptions options_;
  std::vector<plan::Attribute> columns_;
  duckdb::shared_ptr<RunState> state_;
  std::unique_ptr<duckdb::Connection> connection_;
  duckdb::unique_ptr<duckdb::QueryResult> result_;
  std::int64_t callback_ = -1;
  bool finished_ = false;
};

/// The visible columns of a plan.
std::vector<plan::Attribute> VisibleColumns(const plan::LogicalPlan& plan);

}  // namespace fleuve::engine
