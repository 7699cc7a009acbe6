#include <algorithm>

#include "plan/external.h"
#include "plan/prepare_internal.h"

namespace fleuve::plan {
namespace {

void AddReferences(const ExprPtr& expr, Ids& ids);

/// Columns of the query around it that a subquery (or a lateral side) refers to.
void AddOuterReferences(const PlanPtr& plan, Ids& ids) {
  VisitPlan(plan, [&ids](const LogicalPlan& node) {
    for (const ExprPtr& expr : ExpressionsOf(node)) {
      VisitExpr(expr, [&ids](const Expr& part) {
        if (part.kind == ExprKind::kAttribute && part.is_outer) {
          ids.insert(part.attribute.id.value);
        } else if (part.kind == ExprKind::kSubquery) {
          AddOuterReferences(part.subquery, ids);
        }
      });
    }
  });
}

void AddReferences(const ExprPtr& expr, Ids& ids) {
  if (expr->kind == ExprKind::kAttribute) {
    ids.insert(expr->attribute.id.value);
    return;
  }
  VisitExpr(expr, [&ids](const Expr& part) {
    if (part.kind == ExprKind::kAttribute) {
      ids.insert(part.attribute.id.value);
    } else if (part.kind == ExprKind::kSubquery) {
      AddOuterReferences(part.subquery, ids);
    }
  });
}

std::vector<Attribute> Kept(const std::vector<Attribute>& output, const std::vector<PlanPtr>& children) {
  Ids there;
  for (const PlanPtr& child : children) {
    for (const Attribute& attribute : child->output) {
      there.insert(attribute.id.value);
    }
  }
  std::vector<Attribute> kept;
  for (const Attribute& attribute : output) {
    if (there.contains(attribute.id.value)) {
      kept.push_back(attribute);
    }
  }
  return kept;
}

class Pruner {
 public:
  PlanPtr Prune(const PlanPtr& plan, const Ids& needed) {
    switch (plan->kind) {
      case PlanKind::kTable:
      case PlanKind::kFileScan:
        return Leaf(plan, needed);
      case PlanKind::kOneRow:
      case PlanKind::kRows:
      case PlanKind::kRange:
      case PlanKind::kStream:
        return plan;
      case PlanKind::kProject: {
        Ids below;
        std::vector<ExprPtr> exprs;
        std::vector<Attribute> output;
        exprs.reserve(plan->exprs.size());
        output.reserve(plan->exprs.size());
        for (std::size_t i = 0; i < plan->exprs.size(); ++i) {
          if (needed.contains(plan->output[i].id.value)) {
            AddReferences(plan->exprs[i], below);
            exprs.push_back(plan->exprs[i]);
            output.push_back(plan->output[i]);
          }
        }
        PlanPtr child = Prune(plan->children.front(), below);
        if (child == plan->children.front() && exprs.size() == plan->exprs.size()) {
          return plan;
        }
        auto copy = std::make_shared<LogicalPlan>(*plan);
        copy->exprs = std::move(exprs);
        copy->output = std::move(output);
        copy->children.front() = std::move(child);
        return copy;
      }
      case PlanKind::kFilter:
      case PlanKind::kSort:
      case PlanKind::kLimit:
      case PlanKind::kOffset:
      case PlanKind::kTail:
      case PlanKind::kSample:
      case PlanKind::kRepartition:
      case PlanKind::kWatermark:
      case PlanKind::kMetrics: {
        Ids below = needed;
        for (const ExprPtr& expr : ExpressionsOf(*plan)) {
          AddReferences(expr, below);
        }
        return Above(plan, Prune(plan->children.front(), below));
      }
      case PlanKind::kDistinct: {
        if (plan->keys.empty()) {
          return SameChildren(plan);
        }
        Ids below = needed;
        for (const AttributeId key : plan->keys) {
          below.insert(key.value);
        }
        return Above(plan, Prune(plan->children.front(), below));
      }
      case PlanKind::kJoin: {
        Ids below = needed;
        if (plan->condition != nullptr) {
          AddReferences(plan->condition, below);
        }
        if (plan->lateral) {
          AddOuterReferences(plan->children[1], below);
        }
        std::vector<PlanPtr> children{Prune(plan->children[0], below), Prune(plan->children[1], below)};
        if (children == plan->children) {
          return plan;
        }
        auto copy = std::make_shared<LogicalPlan>(*plan);
        copy->output = Kept(plan->output, children);
        copy->children = std::move(children);
        return copy;
      }
      case PlanKind::kWindow:
      case PlanKind::kGenerate: {
        Ids below = needed;
        for (const ExprPtr& expr : ExpressionsOf(*plan)) {
          AddReferences(expr, below);
        }
        const std::size_t own = plan->output.size() - plan->children.front()->output.size();
        PlanPtr child = Prune(plan->children.front(), below);
        if (child == plan->children.front()) {
          return plan;
        }
        auto copy = std::make_shared<LogicalPlan>(*plan);
        copy->output = child->output;
        copy->output.insert(copy->output.end(), plan->output.end() - static_cast<std::ptrdiff_t>(own),
                            plan->output.end());
        copy->children.front() = std::move(child);
        return copy;
      }
      case PlanKind::kAggregate: {
        Ids below;
        std::vector<ExprPtr> aggregates;
        std::vector<Attribute> output(plan->output.begin(),
                                      plan->output.begin() + static_cast<std::ptrdiff_t>(plan->grouping.size()));
        for (std::size_t i = 0; i < plan->aggregates.size(); ++i) {
          const Attribute& attribute = plan->output[plan->grouping.size() + i];
          // One stays where there is nothing else, so that there is a row.
          const bool last = plan->grouping.empty() && aggregates.empty() && i + 1 == plan->aggregates.size();
          if (needed.contains(attribute.id.value) || last) {
            aggregates.push_back(plan->aggregates[i]);
            output.push_back(attribute);
          }
        }
        for (const ExprPtr& expr : plan->grouping) {
          AddReferences(expr, below);
        }
        for (const ExprPtr& expr : aggregates) {
          AddReferences(expr, below);
        }
        PlanPtr child = Prune(plan->children.front(), below);
        auto copy = std::make_shared<LogicalPlan>(*plan);
        copy->aggregates = std::move(aggregates);
        copy->output = std::move(output);
        copy->children.front() = std::move(child);
        return copy;
      }
      case PlanKind::kExpand: {
        Ids below;
        auto copy = std::make_shared<LogicalPlan>(*plan);
        copy->output.clear();
        for (std::vector<ExprPtr>& projection : copy->projections) {
          projection.clear();
        }
        for (std::size_t i = 0; i < plan->output.size(); ++i) {
          if (!needed.contains(plan->output[i].id.value)) {
            continue;
          }
          copy->output.push_back(plan->output[i]);
          for (std::size_t p = 0; p < plan->projections.size(); ++p) {
            AddReferences(plan->projections[p][i], below);
            copy->projections[p].push_back(plan->projections[p][i]);
          }
        }
        if (copy->output.empty() && !plan->output.empty()) {
          return SameChildren(plan);
        }
        copy->children.front() = Prune(plan->children.front(), below);
        return copy;
      }
      case PlanKind::kExternal:
        return External(plan, needed);
      case PlanKind::kUnion:
      case PlanKind::kIntersect:
      case PlanKind::kExcept:
        return SameChildren(plan);
    }
    return plan;
  }

 private:
  static PlanPtr Leaf(const PlanPtr& plan, const Ids& needed) {
    const bool has_metadata = !plan->output.empty() && plan->output.back().hidden &&
                              plan->output.back().name == "_metadata" &&
                              (plan->kind == PlanKind::kTable || plan->scan->with_metadata);
    if (!has_metadata || needed.contains(plan->output.back().id.value)) {
      return plan;
    }
    auto copy = std::make_shared<LogicalPlan>(*plan);
    copy->output.pop_back();
    if (plan->kind == PlanKind::kFileScan) {
      auto scan = std::make_shared<FileScan>(*plan->scan);
      scan->with_metadata = false;
      copy->scan = std::move(scan);
    }
    return copy;
  }

  static PlanPtr Above(const PlanPtr& plan, PlanPtr child) {
    if (child == plan->children.front()) {
      return plan;
    }
    auto copy = std::make_shared<LogicalPlan>(*plan);
    copy->children.front() = std::move(child);
    copy->output = Kept(plan->output, copy->children);
    return copy;
  }

  /// The function gives all of its columns; what passes beside them may be left out.
  PlanPtr External(const PlanPtr& plan, const Ids& needed) {
    Ids below;
    for (const ExprPtr& expr : ExpressionsOf(*plan)) {
      AddReferences(expr, below);
    }
    std::vector<Attribute> output;
    const std::size_t passed = PassedColumns(*plan);
    for (std::size_t i = 0; i < plan->output.size(); ++i) {
      const std::int64_t id = plan->output[i].id.value;
      if (i >= passed || needed.contains(id)) {
        output.push_back(plan->output[i]);
        if (i < passed) {
          below.insert(id);
        }
      }
    }
    PlanPtr child = Prune(plan->children.front(), below);
    if (child == plan->children.front() && output.size() == plan->output.size()) {
      return plan;
    }
    auto copy = std::make_shared<LogicalPlan>(*plan);
    copy->output = std::move(output);
    copy->children.front() = std::move(child);
    return copy;
  }

  /// Every column of the children is needed, by position.
  PlanPtr SameChildren(const PlanPtr& plan) {
    std::vector<PlanPtr> children;
    for (const PlanPtr& child : plan->children) {
      children.push_back(Prune(child, IdsOf(child->output)));
    }
    if (children == plan->children) {
      return plan;
    }
    auto copy = std::make_shared<LogicalPlan>(*plan);
    copy->children = std::move(children);
    return copy;
  }
};

/// One projection that does what `outer` over `inner` do; null where that costs more or changes what comes out.
PlanPtr MergeProjects(const LogicalPlan& outer, const PlanPtr& inner) {
  constexpr int kMaxRepeated = 32;
  constexpr int kMaxDepth = 32;
  Substitution map;
  map.reserve(inner->output.size());
  bool plain = true;
  for (std::size_t i = 0; i < inner->exprs.size(); ++i) {
    const ExprPtr& expr = inner->exprs[i];
    if (!expr->deterministic) {
      return nullptr;
    }
    plain = plain && (expr->kind == ExprKind::kAttribute || expr->kind == ExprKind::kLiteral);
    map.emplace(inner->output[i].id.value, expr);
  }
  if (!plain) {
    std::unordered_map<std::int64_t, int> uses;
    for (const ExprPtr& expr : outer.exprs) {
      bool subquery = false;
      const auto count = [&](const Expr& node) {
        if (node.kind == ExprKind::kAttribute && !node.is_outer) {
          ++uses[node.attribute.id.value];
        }
        subquery = subquery || node.kind == ExprKind::kSubquery;
      };
      if (expr->kind == ExprKind::kAttribute) {
        count(*expr);
      } else {
        VisitExpr(expr, count);
      }
      if (subquery) {
        return nullptr;
      }
    }
    for (const auto& [id, count] : uses) {
      const auto found = map.find(id);
      if (count > 1 && found != map.end() && found->second->kind != ExprKind::kAttribute &&
          found->second->kind != ExprKind::kLiteral) {
        if (SizeOf(found->second, kMaxRepeated) > kMaxRepeated) {
          return nullptr;
        }
        if (AnyExpr(found->second, [](const Expr& node) { return node.kind == ExprKind::kSubquery; })) {
          return nullptr;
        }
      }
    }
  } else {
    for (const ExprPtr& expr : outer.exprs) {
      // A correlated subquery names the columns of the projection below by their ids.
      if (expr->kind != ExprKind::kAttribute &&
          AnyExpr(expr, [](const Expr& node) { return node.kind == ExprKind::kSubquery; })) {
        return nullptr;
      }
    }
  }
  std::vector<ExprPtr> exprs;
  exprs.reserve(outer.exprs.size());
  for (const ExprPtr& expr : outer.exprs) {
    ExprPtr made = Substitute(expr, map);
    if (!plain && made != expr && made->kind != ExprKind::kAttribute && expr->kind != ExprKind::kAttribute &&
        DepthOf(made) > kMaxDepth && DepthOf(made) > DepthOf(expr)) {
      return nullptr;
    }
    exprs.push_back(std::move(made));
  }
  auto plan = std::make_shared<LogicalPlan>(outer);
  plan->exprs = std::move(exprs);
  plan->children = inner->children;
  plan->name.clear();
  return plan;
}

bool IsIdentity(const LogicalPlan& plan) {
  const std::vector<Attribute>& below = plan.children.front()->output;
  if (plan.exprs.size() != below.size()) {
    return false;
  }
  for (std::size_t i = 0; i < below.size(); ++i) {
    if (plan.exprs[i]->kind != ExprKind::kAttribute || plan.exprs[i]->is_outer ||
        plan.exprs[i]->attribute.id != below[i].id || plan.output[i].id != below[i].id ||
        plan.output[i].hidden != below[i].hidden || plan.output[i].name != below[i].name) {
      return false;
    }
  }
  return true;
}

}  // namespace

PlanPtr PruneColumns(const PlanPtr& plan) {
  Ids needed;
  std::vector<Attribute> visible;
  for (const Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      needed.insert(attribute.id.value);
      visible.push_back(attribute);
    }
  }
  PlanPtr pruned = Pruner().Prune(plan, needed);
  if (visible.size() == pruned->output.size()) {
    return pruned;
  }
  // Columns that only inner nodes needed end here.
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : visible) {
    exprs.push_back(MakeAttribute(attribute));
  }
  return MakeProject(std::move(pruned), std::move(exprs), std::move(visible));
}

PlanPtr MergeNeighbours(const PlanPtr& plan) {
  PlanPtr merged = RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    if (node->kind == PlanKind::kProject) {
      const PlanPtr& child = node->children.front();
      if (child->kind == PlanKind::kProject) {
        return MergeProjects(*node, child);
      }
      return nullptr;
    }
    if (node->kind == PlanKind::kFilter && node->children.front()->kind == PlanKind::kFilter) {
      const PlanPtr& child = node->children.front();
      if (!node->condition->deterministic || !child->condition->deterministic) {
        return nullptr;
      }
      auto copy = std::make_shared<LogicalPlan>(*node);
      copy->condition = MakeCall("and", {child->condition, node->condition}, types::DataType::Boolean(),
                                 child->condition->nullable || node->condition->nullable);
      copy->children = child->children;
      return copy;
    }
    return nullptr;
  });
  // Projections that change nothing go away, except at the top, where they name the columns.
  const PlanPtr top = merged;
  return RewritePlan(merged, [&top](const PlanPtr& node) -> PlanPtr {
    if (node->kind == PlanKind::kProject && node != top && IsIdentity(*node)) {
      return node->children.front();
    }
    return nullptr;
  });
}

}  // namespace fleuve::plan
