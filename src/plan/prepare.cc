#include "base/big_stack.h"
#include "plan/prepare_internal.h"
#include "plan/recursive_table.h"

namespace fleuve::plan {
namespace {

/// Options that scans of Parquet files take from settings where the reader does not set them.
using ScanOptions = std::vector<std::pair<std::string, std::string>>;

ScanOptions ScanOptionsOf(const AnalysisConfig& config) {
  ScanOptions options;
  for (const char* name : {"datetimeRebaseMode", "int96RebaseMode"}) {
    const auto mode = config.conf ? config.conf("spark.sql.parquet." + std::string(name) + "InRead") : std::nullopt;
    if (mode.has_value() && *mode != "CORRECTED") {
      options.emplace_back(name, *mode);
    }
  }
  return options;
}

PlanPtr SetScanOptions(const PlanPtr& plan, const ScanOptions& options) {
  if (options.empty()) {
    return plan;
  }
  return RewritePlan(plan, [&options](const PlanPtr& node) -> PlanPtr {
    if (node->kind != PlanKind::kFileScan || node->scan->format != FileFormat::kParquet) {
      return nullptr;
    }
    auto scan = std::make_shared<FileScan>(*node->scan);
    for (const auto& [name, value] : options) {
      if (FindOption(scan->options, name) == nullptr) {
        scan->options.emplace(name, value);
      }
    }
    auto copy = std::make_shared<LogicalPlan>(*node);
    copy->scan = std::move(scan);
    return copy;
  });
}

Result<PlanPtr> PrepareHere(const PlanPtr& plan, const ScanOptions& options, const AnalysisConfig& config);

/// Prepares the plans of subqueries.
Result<PlanPtr> PrepareSubqueries(const PlanPtr& plan, const ScanOptions& options, const AnalysisConfig& config) {
  Result<void> status;
  PlanPtr made = RewritePlan(plan, [&status, &options, &config](const PlanPtr& node) -> PlanPtr {
    return MapExpressions(node, [&status, &options, &config](const ExprPtr& expr) -> ExprPtr {
      if (!AnyExpr(expr, [](const Expr& part) { return part.kind == ExprKind::kSubquery; })) {
        return nullptr;
      }
      return RewriteExpr(expr, [&status, &options, &config](const ExprPtr& part) -> ExprPtr {
        if (part->kind != ExprKind::kSubquery) {
          return nullptr;
        }
        Result<PlanPtr> prepared = PrepareHere(part->subquery, options, config);
        if (!prepared.ok()) {
          status = std::move(prepared).error();
          return nullptr;
        }
        auto copy = std::make_shared<Expr>(*part);
        copy->subquery = *std::move(prepared);
        return copy;
      });
    });
  });
  FLEUVE_TRY(std::move(status));
  return made;
}

Result<PlanPtr> PrepareHere(const PlanPtr& plan, const ScanOptions& options, const AnalysisConfig& config) {
  FLEUVE_TRY(RefuseCollations(plan));
  FLEUVE_ASSIGN(PlanPtr made, PrepareSubqueries(plan, options, config));
  made = LimitRecursions(made);
  made = FoldLiterals(made);
  made = PruneColumns(made);
  made = MergeNeighbours(made);
  const Ids counts = CountsOfTables(made);
  FLEUVE_ASSIGN(made, PushFilters(made));
  made = CountFromStatistics(made, counts);
  made = MergeNeighbours(made);
  if (HoldsExternal(made)) {
    FLEUVE_ASSIGN(made, CutExternal(made, config));
    made = PruneColumns(made);
  }
  made = AddGuards(made);
  made = AddOrderKeys(made);
  made = SetScanOptions(made, options);
  return SplitDeepExpressions(made);
}

}  // namespace

ExprPtr Substitute(const ExprPtr& expr, const Substitution& map) {
  if (expr->kind == ExprKind::kAttribute) {
    if (expr->is_outer) {
      return expr;
    }
    const auto found = map.find(expr->attribute.id.value);
    return found == map.end() ? expr : found->second;
  }
  return RewriteExpr(expr, [&map](const ExprPtr& node) -> ExprPtr {
    if (node->kind != ExprKind::kAttribute || node->is_outer) {
      return nullptr;
    }
    const auto found = map.find(node->attribute.id.value);
    return found == map.end() ? nullptr : found->second;
  });
}

int DepthOf(const ExprPtr& expr) {
  int deepest = 0;
  std::vector<std::pair<const Expr*, int>> pending{{expr.get(), 1}};
  std::vector<ExprPtr> kept;
  while (!pending.empty()) {
    const auto [node, depth] = pending.back();
    pending.pop_back();
    deepest = std::max(deepest, depth);
    if (node->filter == nullptr && node->order_by.empty() && node->kind != ExprKind::kWindow) {
      for (const ExprPtr& child : node->children) {
        pending.emplace_back(child.get(), depth + 1);
      }
      continue;
    }
    for (const ExprPtr& operand : OperandsOf(*node)) {
      pending.emplace_back(operand.get(), depth + 1);
    }
  }
  return deepest;
}

int SizeOf(const ExprPtr& expr, int limit) {
  int size = 0;
  std::vector<const Expr*> pending{expr.get()};
  while (!pending.empty() && size <= limit) {
    const Expr* node = pending.back();
    pending.pop_back();
    ++size;
    for (const ExprPtr& child : node->children) {
      pending.push_back(child.get());
    }
    if (node->filter != nullptr) {
      pending.push_back(node->filter.get());
    }
  }
  return size;
}

Ids IdsOf(const std::vector<Attribute>& attributes) {
  Ids ids;
  for (const Attribute& attribute : attributes) {
    ids.insert(attribute.id.value);
  }
  return ids;
}

std::vector<ExprPtr> Flatten(const ExprPtr& expr, const char* function) {
  std::vector<ExprPtr> operands;
  std::vector<ExprPtr> pending{expr};
  while (!pending.empty()) {
    ExprPtr node = std::move(pending.back());
    pending.pop_back();
    if (node->kind == ExprKind::kCall && node->function == function && node->children.size() >= 2) {
      for (std::size_t i = node->children.size(); i > 0; --i) {
        pending.push_back(node->children[i - 1]);
      }
      continue;
    }
    operands.push_back(std::move(node));
  }
  return operands;
}

ExprPtr Balanced(const std::vector<ExprPtr>& operands, const char* function) {
  std::vector<ExprPtr> level = operands;
  while (level.size() > 1) {
    std::vector<ExprPtr> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2) {
      next.push_back(MakeCall(function, {level[i], level[i + 1]}, types::DataType::Boolean(),
                              level[i]->nullable || level[i + 1]->nullable));
    }
    if (level.size() % 2 == 1) {
      next.push_back(level.back());
    }
    level = std::move(next);
  }
  return level.front();
}

Result<PlanPtr> Prepare(const PlanPtr& plan, const AnalysisConfig& config) {
  const ScanOptions options = ScanOptionsOf(config);
  std::optional<Result<PlanPtr>> result;
  RunOnBigStack([&] { result = PrepareHere(plan, options, config); });
  return *std::move(result);
}

}  // namespace fleuve::plan
