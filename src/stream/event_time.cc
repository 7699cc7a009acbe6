#include <algorithm>
#include <map>

#include "stream/event_time_internal.h"

namespace fleuve::stream {

namespace {

using plan::LogicalPlan;
using plan::PlanKind;

bool Reads(const LogicalPlan& node, const plan::StreamRelation* stream) {
  const plan::PlanPtr owned = std::make_shared<LogicalPlan>(node);
  const std::vector<const LogicalPlan*> leaves = plan::StreamingLeaves(owned);
  return std::any_of(leaves.begin(), leaves.end(),
                     [&](const LogicalPlan* leaf) { return leaf->stream.get() == stream; });
}

bool Gives(const LogicalPlan& node, plan::AttributeId id) {
  return std::any_of(node.output.begin(), node.output.end(),
                     [&](const plan::Attribute& attribute) { return attribute.id == id; });
}

/// Only attributes that `node` gives, or none at all.
bool IsOver(const plan::ExprPtr& expr, const LogicalPlan& node) {
  return !plan::AnyExpr(expr, [&](const plan::Expr& part) {
    return part.kind == plan::ExprKind::kSubquery ||
           (part.kind == plan::ExprKind::kAttribute && !Gives(node, part.attribute.id));
  });
}

plan::ExprPtr Replace(const plan::ExprPtr& expr, const std::map<plan::AttributeId, plan::ExprPtr>& by_id) {
  return plan::RewriteExpr(expr, [&](const plan::ExprPtr& part) -> plan::ExprPtr {
    if (part->kind != plan::ExprKind::kAttribute) {
      return nullptr;
    }
    const auto at = by_id.find(part->attribute.id);
    return at == by_id.end() ? nullptr : at->second;
  });
}

bool IsColumn(const plan::ExprPtr& expr) {
  const plan::Expr* at = expr.get();
  while (at->kind == plan::ExprKind::kGetField) {
    at = at->children[0].get();
  }
  return at->kind == plan::ExprKind::kAttribute;
}

/// Follows the watermark's column from the watermark down to the leaf.
connectors::EventTime Follow(const LogicalPlan& watermark, const plan::StreamRelation* stream) {
  connectors::EventTime found;
  std::vector<const plan::StreamRelation*> delta;
  std::size_t leaves = 0;
  for (const LogicalPlan* leaf : plan::StreamingLeaves(watermark.children[0])) {
    leaves += leaf->stream.get() == stream ? 1 : 0;
    if (leaf->stream->provider() == stream->provider() &&
        std::find(delta.begin(), delta.end(), leaf->stream.get()) == delta.end()) {
      delta.push_back(leaf->stream.get());
    }
  }
  if (delta.size() > 1 || leaves > 1) {
    found.refusal = "the watermark is fed by more than one source of the format " + stream->provider();
    return found;
  }
  plan::PlanPtr node = watermark.children[0];
  const auto column = std::find_if(node->output.begin(), node->output.end(), [&](const plan::Attribute& attribute) {
    return attribute.id == watermark.event_time;
  });
  if (column == node->output.end()) {
    found.refusal = "the watermark's column is not found below it";
    return found;
  }
  plan::ExprPtr time = plan::MakeAttribute(*column);
  bool only_projections = true;
  for (;;) {
    switch (node->kind) {
      case PlanKind::kStream:
        found.is_plain_column = IsColumn(time);
        if (!found.is_plain_column && !only_projections) {
          found.refusal = "the event time is computed, and there is more than projections between it and the source";
          return found;
        }
        if (!found.is_plain_column && plan::AnyExpr(time, [](const plan::Expr& e) { return !e.deterministic; })) {
          found.refusal = "the event time is not deterministic";
          return found;
        }
        found.time = std::move(time);
        found.columns = node->output;
        return found;
      case PlanKind::kProject: {
        std::map<plan::AttributeId, plan::ExprPtr> by_id;
        for (std::size_t i = 0; i < node->output.size() && i < node->exprs.size(); ++i) {
          by_id[node->output[i].id] = node->exprs[i];
        }
        time = Replace(time, by_id);
        node = node->children[0];
        break;
      }
      case PlanKind::kWatermark:
      case PlanKind::kMetrics:
        node = node->children[0];
        break;
      case PlanKind::kUnion: {
        only_projections = false;
        plan::PlanPtr next;
        for (const auto& child : node->children) {
          if (Reads(*child, stream)) {
            next = child;
          }
        }
        std::map<plan::AttributeId, plan::ExprPtr> by_id;
        for (std::size_t i = 0; i < node->output.size() && i < next->output.size(); ++i) {
          by_id[node->output[i].id] = plan::MakeAttribute(next->output[i]);
        }
        time = Replace(time, by_id);
        node = next;
        break;
      }
      default: {
        only_projections = false;
        plan::PlanPtr next;
        for (const auto& child : node->children) {
          if (Reads(*child, stream)) {
            next = child;
          }
        }
        if (!next || !IsOver(time, *next)) {
          found.refusal = "the event time is not a column of the source";
          return found;
        }
        node = next;
        break;
      }
    }
  }
}

}  // namespace

std::optional<connectors::EventTime> EventTimeOf(const plan::PlanPtr& plan, const plan::StreamRelation* stream) {
  std::optional<connectors::EventTime> found;
  plan::VisitPlan(plan, [&](const LogicalPlan& node) {
    if (node.kind != PlanKind::kWatermark || node.children.empty() || !Reads(*node.children[0], stream)) {
      return;
    }
    // The watermark nearest to the source is the one that decides what is late.
    found = Follow(node, stream);
  });
  return found;
}

}  // namespace fleuve::stream
