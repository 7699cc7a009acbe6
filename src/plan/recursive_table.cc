#include "plan/recursive_table.h"

#include "columnar/ipc.h"
#include "columnar/record_batch.h"

namespace fleuve::plan {
namespace {

std::shared_ptr<RowScan> ScanOf(columnar::RecordBatch batch) {
  auto scan = std::make_shared<RowScan>();
  scan->batches.push_back(std::move(batch));
  return scan;
}

/// The plan with other rows in its leaves over `from`, subqueries and recursive tables inside included.
PlanPtr WithRows(const PlanPtr& plan, const std::shared_ptr<const RowScan>& from,
                 const std::shared_ptr<const RowScan>& to) {
  return RewritePlan(plan, [&](const PlanPtr& node) -> PlanPtr {
    if (node->kind == PlanKind::kRows && node->rows == from) {
      auto copy = std::make_shared<LogicalPlan>(*node);
      copy->rows = to;
      return copy;
    }
    const auto* inner =
        node->kind == PlanKind::kTable ? dynamic_cast<const RecursiveSource*>(node->table.get()) : nullptr;
    if (inner != nullptr) {
      auto copy = std::make_shared<LogicalPlan>(*node);
      copy->table = inner->WithRows(from, to);
      return copy;
    }
    return MapExpressions(node, [&](const ExprPtr& expr) -> ExprPtr {
      if (!AnyExpr(expr, [](const Expr& part) { return part.kind == ExprKind::kSubquery; })) {
        return nullptr;
      }
      return RewriteExpr(expr, [&](const ExprPtr& part) -> ExprPtr {
        if (part->kind != ExprKind::kSubquery) {
          return nullptr;
        }
        auto copy = std::make_shared<Expr>(*part);
        copy->subquery = WithRows(part->subquery, from, to);
        return copy;
      });
    });
  });
}

}  // namespace

Result<std::shared_ptr<const FileScan>> RecursiveSource::PlanScan(const std::vector<ExprPtr>& /*filters*/,
                                                                  const std::vector<Attribute>& /*columns*/) const {
  return Error::Internal("a recursive table has no files");
}

Result<std::shared_ptr<const RowScan>> RecursiveSource::PlanRows() const {
  FLEUVE_ASSIGN(std::vector<types::Value::List> round, parts_.run(parts_.anchor));
  std::vector<types::Value::List> all = round;
  const auto enough = [this, &all] { return wanted_ >= 0 && static_cast<std::int64_t>(all.size()) >= wanted_; };
  for (std::int64_t level = 0; !round.empty() && !enough(); ++level) {
    if (parts_.max_level >= 0 && level > parts_.max_level) {
      return Error(ErrorKind::kInvalidArgument, "RECURSION_LEVEL_LIMIT_EXCEEDED",
                   "Recursion level limit " + std::to_string(parts_.max_level) +
                       " reached but query has not exhausted, try increasing it like 'WITH RECURSIVE t(col) MAX "
                       "RECURSION LEVEL 200'.")
          .With("levelLimit", std::to_string(parts_.max_level));
    }
    FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(parts_.schema, round));
    FLEUVE_ASSIGN(round, parts_.run(plan::WithRows(parts_.step, parts_.last_round, ScanOf(std::move(batch)))));
    all.insert(all.end(), round.begin(), round.end());
    if (parts_.max_rows >= 0 && static_cast<std::int64_t>(all.size()) > parts_.max_rows && !enough()) {
      return Error(ErrorKind::kInvalidArgument, "RECURSION_ROW_LIMIT_EXCEEDED",
                   "Recursion row limit " + std::to_string(parts_.max_rows) +
                       " reached but query has not exhausted, try setting it to a larger value.")
          .With("rowLimit", std::to_string(parts_.max_rows));
    }
  }
  FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(parts_.schema, all));
  return std::shared_ptr<const RowScan>(ScanOf(std::move(batch)));
}

std::shared_ptr<const RecursiveSource> RecursiveSource::FirstRows(std::int64_t rows) const {
  return std::make_shared<RecursiveSource>(parts_, wanted_ < 0 ? rows : std::min(rows, wanted_));
}

std::shared_ptr<const RecursiveSource> RecursiveSource::WithRows(const std::shared_ptr<const RowScan>& from,
                                                                 const std::shared_ptr<const RowScan>& to) const {
  Parts parts = parts_;
  parts.anchor = plan::WithRows(parts.anchor, from, to);
  parts.step = plan::WithRows(parts.step, from, to);
  return std::make_shared<RecursiveSource>(std::move(parts), wanted_);
}

PlanPtr LimitRecursions(const PlanPtr& plan) {
  return RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    if (node->kind != PlanKind::kLimit) {
      return nullptr;
    }
    std::int64_t rows = node->count;
    std::vector<const LogicalPlan*> between;
    const LogicalPlan* below = node->children.front().get();
    while (below->kind == PlanKind::kProject || below->kind == PlanKind::kOffset || below->kind == PlanKind::kLimit) {
      if (below->kind == PlanKind::kOffset) {
        rows += below->count;
      }
      between.push_back(below);
      below = below->children.front().get();
    }
    const auto* table =
        below->kind == PlanKind::kTable ? dynamic_cast<const RecursiveSource*>(below->table.get()) : nullptr;
    if (table == nullptr) {
      return nullptr;
    }
    auto leaf = std::make_shared<LogicalPlan>(*below);
    leaf->table = table->FirstRows(rows);
    PlanPtr made = std::move(leaf);
    for (std::size_t i = between.size(); i > 0; --i) {
      auto copy = std::make_shared<LogicalPlan>(*between[i - 1]);
      copy->children.front() = std::move(made);
      made = std::move(copy);
    }
    auto top = std::make_shared<LogicalPlan>(*node);
    top->children.front() = std::move(made);
    return top;
  });
}

}  // namespace fleuve::plan
