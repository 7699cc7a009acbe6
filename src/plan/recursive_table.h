#pragma once

/// \file
/// The rows of a recursive common table: a source that runs its recursion when the plan around it is about to run.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "plan/logical_plan.h"
#include "plan/resolver.h"

namespace fleuve::plan {

/// Immutable.
class RecursiveSource final : public TableSource {
 public:
  using Run = std::function<Result<std::vector<types::Value::List>>(const PlanPtr&)>;
  struct Parts {
    std::string name;
    types::Schema schema;
    /// The rows of round 0.
    PlanPtr anchor;
    /// The rows of a round from those of the round before, which stand in it as leaves with `last_round`.
    PlanPtr step;
    std::shared_ptr<const RowScan> last_round;
    Run run;
    /// Rounds and rows before the query fails; negative: no limit.
    std::int64_t max_level = 100;
    std::int64_t max_rows = 1000000;
  };

  explicit RecursiveSource(Parts parts, std::int64_t wanted = -1) : parts_(std::move(parts)), wanted_(wanted) {}

  const types::Schema& schema() const override { return parts_.schema; }
  std::string name() const override { return parts_.name; }
  std::string provider() const override { return "recursive"; }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const FileScan>> PlanScan(const std::vector<ExprPtr>& filters,
                                                   const std::vector<Attribute>& columns) const override;
  /// RECURSION_LEVEL_LIMIT_EXCEEDED, RECURSION_ROW_LIMIT_EXCEEDED.
  Result<std::shared_ptr<const RowScan>> PlanRows() const override;

  /// The same table, of which only the first `rows` are needed.
  std::shared_ptr<const RecursiveSource> FirstRows(std::int64_t rows) const;
  /// The same table with other rows in the leaves over `from` that stand in its rounds: those of a recursive table
  /// around it.
  std::shared_ptr<const RecursiveSource> WithRows(const std::shared_ptr<const RowScan>& from,
                                                  const std::shared_ptr<const RowScan>& to) const;

 private:
  Parts parts_;
  /// Negative: all.
  std::int64_t wanted_;
};

/// Tells recursive tables below a LIMIT how many rows are needed: their recursion ends there.
PlanPtr LimitRecursions(const PlanPtr& plan);

}  // namespace fleuve::plan
