#pragma once

/// \file
/// What one run knows: its leaves, its typed calls, who may cancel it. Found from DuckDB's ClientContext while a query is
/// bound and while it runs.

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/cancellation.h"
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

/// Threads: filled by the thread that translates, read-only afterwards (but for the atomics).
class RunState : public duckdb::ClientContextState {
 public:
  static constexpr const char* kName = "fleuve_run";

  /// The run of this connection. Raises INTERNAL_ERROR where there is none.
  static RunState& Of(duckdb::ClientContext& context);

  std::int64_t AddLeaf(plan::PlanPtr node, bool counted);
  const std::shared_ptr<Leaf>& LeafAt(std::int64_t number) const;
  std::int64_t AddCall(plan::ExprPtr call);
  const plan::ExprPtr& CallAt(std::int64_t number) const;
  const std::deque<std::shared_ptr<Leaf>>& leaves() const { return leaves_; }

  /// For loops longer than 10 ms: raises kCancelled when the run shall end.
  void CheckCancelled() const;

  CancellationTokenPtr token;
  std::shared_ptr<RunObserver> observer;

 private:
  std::deque<std::shared_ptr<Leaf>> leaves_;
  std::deque<plan::ExprPtr> calls_;
};

}  // namespace fleuve::engine
