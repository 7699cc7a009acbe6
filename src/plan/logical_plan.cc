#include "plan/logical_plan.h"

#include <unordered_map>

#include "plan/deferred_drop_internal.h"

namespace fleuve::plan {

LogicalPlan::~LogicalPlan() {
  if (children.empty()) {
    return;
  }
  DeferredDrop drop;
  for (PlanPtr& child : children) {
    drop.Take(child);
  }
}

types::StructField FieldOf(const Attribute& attribute) {
  return types::StructField{attribute.name, attribute.type, attribute.nullable, attribute.metadata};
}

types::Schema SchemaOf(const LogicalPlan& plan) {
  std::vector<types::StructField> fields;
  for (const Attribute& attribute : plan.output) {
    if (!attribute.hidden) {
      fields.push_back(FieldOf(attribute));
    }
  }
  return types::DataType::Struct(std::move(fields));
}

std::vector<Attribute> AttributesOf(const types::Schema& schema, const std::vector<std::string>& qualifier) {
  std::vector<Attribute> attributes;
  attributes.reserve(schema.fields().size());
  for (const types::StructField& field : schema.fields()) {
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = field.name;
    attribute.type = field.type;
    attribute.nullable = field.nullable;
    attribute.metadata = field.metadata;
    attribute.qualifier = qualifier;
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

PlanPtr MakeProject(PlanPtr child, std::vector<ExprPtr> exprs, std::vector<Attribute> output) {
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kProject;
  plan->is_streaming = child->is_streaming;
  plan->exprs = std::move(exprs);
  plan->output = std::move(output);
  plan->children.push_back(std::move(child));
  return plan;
}

PlanPtr MakeFilter(PlanPtr child, ExprPtr condition) {
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kFilter;
  plan->is_streaming = child->is_streaming;
  plan->output = child->output;
  plan->condition = std::move(condition);
  plan->children.push_back(std::move(child));
  return plan;
}

PlanPtr RewritePlan(const PlanPtr& plan, const std::function<PlanPtr(const PlanPtr&)>& rewrite) {
  struct Frame {
    PlanPtr node;
    std::vector<PlanPtr> children;
    std::size_t next = 0;
    bool changed = false;
  };
  std::unordered_map<const LogicalPlan*, PlanPtr> done;
  std::vector<Frame> stack;
  stack.push_back(Frame{plan, plan->children});
  while (true) {
    Frame& top = stack.back();
    if (top.next < top.children.size()) {
      const PlanPtr child = top.children[top.next];
      const auto found = done.find(child.get());
      if (found == done.end()) {
        stack.push_back(Frame{child, child->children});
        continue;
      }
      top.changed = top.changed || found->second != child;
      top.children[top.next] = found->second;
      ++top.next;
      continue;
    }
    PlanPtr rebuilt = top.node;
    if (top.changed) {
      auto copy = std::make_shared<LogicalPlan>(*top.node);
      copy->children = std::move(top.children);
      copy->is_streaming = false;
      for (const PlanPtr& child : copy->children) {
        copy->is_streaming = copy->is_streaming || child->is_streaming;
      }
      rebuilt = std::move(copy);
    }
    if (PlanPtr replacement = rewrite(rebuilt)) {
      rebuilt = std::move(replacement);
    }
    const PlanPtr original = std::move(top.node);
    done.emplace(original.get(), rebuilt);
    stack.pop_back();
    if (stack.empty()) {
      return rebuilt;
    }
    Frame& parent = stack.back();
    parent.changed = parent.changed || rebuilt != original;
    parent.children[parent.next] = std::move(rebuilt);
    ++parent.next;
  }
}

void VisitPlan(const PlanPtr& plan, const std::function<void(const LogicalPlan&)>& visit) {
  std::vector<PlanPtr> pending{plan};
  while (!pending.empty()) {
    const PlanPtr node = std::move(pending.back());
    pending.pop_back();
    visit(*node);
    for (std::size_t i = node->children.size(); i > 0; --i) {
      pending.push_back(node->children[i - 1]);
    }
  }
}

std::vector<ExprPtr> ExpressionsOf(const LogicalPlan& plan) {
  std::vector<ExprPtr> out = plan.exprs;
  if (plan.condition != nullptr) {
    out.push_back(plan.condition);
  }
  out.insert(out.end(), plan.grouping.begin(), plan.grouping.end());
  out.insert(out.end(), plan.aggregates.begin(), plan.aggregates.end());
  for (const SortKey& key : plan.order_by) {
    out.push_back(key.expr);
  }
  out.insert(out.end(), plan.generator.arguments.begin(), plan.generator.arguments.end());
  for (const std::vector<ExprPtr>& projection : plan.projections) {
    out.insert(out.end(), projection.begin(), projection.end());
  }
  return out;
}

PlanPtr MapExpressions(const PlanPtr& plan, const std::function<ExprPtr(const ExprPtr&)>& rewrite) {
  std::shared_ptr<LogicalPlan> copy;
  const auto change = [&](const ExprPtr& expr, const auto& place) {
    if (expr == nullptr) {
      return;
    }
    ExprPtr made = rewrite(expr);
    if (made == nullptr || made == expr) {
      return;
    }
    if (copy == nullptr) {
      copy = std::make_shared<LogicalPlan>(*plan);
    }
    place(*copy) = std::move(made);
  };
  for (std::size_t i = 0; i < plan->exprs.size(); ++i) {
    change(plan->exprs[i], [i](LogicalPlan& p) -> ExprPtr& { return p.exprs[i]; });
  }
  change(plan->condition, [](LogicalPlan& p) -> ExprPtr& { return p.condition; });
  for (std::size_t i = 0; i < plan->grouping.size(); ++i) {
    change(plan->grouping[i], [i](LogicalPlan& p) -> ExprPtr& { return p.grouping[i]; });
  }
  for (std::size_t i = 0; i < plan->aggregates.size(); ++i) {
    change(plan->aggregates[i], [i](LogicalPlan& p) -> ExprPtr& { return p.aggregates[i]; });
  }
  for (std::size_t i = 0; i < plan->order_by.size(); ++i) {
    change(plan->order_by[i].expr, [i](LogicalPlan& p) -> ExprPtr& { return p.order_by[i].expr; });
  }
  for (std::size_t i = 0; i < plan->generator.arguments.size(); ++i) {
    change(plan->generator.arguments[i], [i](LogicalPlan& p) -> ExprPtr& { return p.generator.arguments[i]; });
  }
  for (std::size_t i = 0; i < plan->projections.size(); ++i) {
    for (std::size_t j = 0; j < plan->projections[i].size(); ++j) {
      change(plan->projections[i][j], [i, j](LogicalPlan& p) -> ExprPtr& { return p.projections[i][j]; });
    }
  }
  return copy == nullptr ? plan : PlanPtr(std::move(copy));
}

std::vector<const LogicalPlan*> StreamingLeaves(const PlanPtr& plan) {
  std::vector<const LogicalPlan*> leaves;
  VisitPlan(plan, [&leaves](const LogicalPlan& node) {
    if (node.kind == PlanKind::kStream) {
      leaves.push_back(&node);
    }
  });
  return leaves;
}

}  // namespace fleuve::plan
