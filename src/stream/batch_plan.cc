#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/bytes.h"
#include "stream/batch_plan_internal.h"
#include "stream/pushed_filters_internal.h"
#include "stream/watermark.h"
#include "types/time_zone.h"

namespace fleuve::stream {

namespace {

using plan::PlanPtr;

constexpr std::string_view kLeafMark = "stream leaf ";

/// A leaf without rows.
PlanPtr EmptyLeaf(const plan::LogicalPlan& leaf) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kRows;
  node->output = leaf.output;
  node->rows = std::make_shared<plan::RowScan>();
  return node;
}

const plan::Attribute* FindByName(const std::vector<plan::Attribute>& attributes, const std::string& name) {
  for (const auto& attribute : attributes) {
    if (attribute.name == name) {
      return &attribute;
    }
  }
  for (const auto& attribute : attributes) {
    if (EqualsIgnoreAsciiCase(attribute.name, name)) {
      return &attribute;
    }
  }
  return nullptr;
}

Result<PlanPtr> ScanLeaf(const plan::LogicalPlan& leaf, const std::shared_ptr<const plan::FileScan>& scan,
                         std::size_t index) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kFileScan;
  node->name = std::string(kLeafMark) + std::to_string(index);
  for (const types::Schema* schema : {&scan->data_schema, &scan->partition_schema, &scan->constants_schema}) {
    for (const auto& field : schema->fields()) {
      const plan::Attribute* attribute = FindByName(leaf.output, field.name);
      if (attribute == nullptr) {
        // A column that the query was not analyzed with: it is read and dropped above.
        plan::Attribute extra;
        extra.id = plan::NewAttributeId();
        extra.name = field.name;
        extra.type = field.type;
        extra.hidden = true;
        node->output.push_back(std::move(extra));
      } else {
        node->output.push_back(*attribute);
      }
    }
  }
  const bool wants_metadata =
      std::any_of(leaf.output.begin(), leaf.output.end(), [&](const plan::Attribute& attribute) {
        return attribute.hidden && attribute.name == "_metadata" && FindByName(node->output, "_metadata") == nullptr;
      });
  if (wants_metadata) {
    node->output.push_back(*FindByName(leaf.output, "_metadata"));
  }
  if (scan->with_metadata == wants_metadata) {
    node->scan = scan;
  } else {
    auto copy = std::make_shared<plan::FileScan>(*scan);
    copy->with_metadata = wants_metadata;
    node->scan = std::move(copy);
  }
  const bool same_order = node->output.size() == leaf.output.size() &&
                          std::equal(node->output.begin(), node->output.end(), leaf.output.begin(),
                                     [](const plan::Attribute& a, const plan::Attribute& b) { return a.id == b.id; });
  if (same_order) {
    return PlanPtr(node);
  }
  std::vector<plan::ExprPtr> exprs;
  for (const auto& attribute : leaf.output) {
    const bool present = std::any_of(node->output.begin(), node->output.end(),
                                     [&](const plan::Attribute& a) { return a.id == attribute.id; });
    exprs.push_back(present ? plan::MakeAttribute(attribute) : plan::MakeNull(attribute.type));
  }
  return plan::MakeProject(node, std::move(exprs), leaf.output);
}

/// A source's own plan in the place of the leaf; its scans count as the leaf's.
PlanPtr PlanLeaf(const plan::LogicalPlan& leaf, const PlanPtr& made, std::size_t index) {
  const PlanPtr named = plan::RewritePlan(made, [&](const PlanPtr& node) -> PlanPtr {
    if (node->kind != plan::PlanKind::kFileScan) {
      return nullptr;
    }
    auto copy = std::make_shared<plan::LogicalPlan>(*node);
    copy->name = std::string(kLeafMark) + std::to_string(index);
    return copy;
  });
  std::vector<plan::ExprPtr> exprs;
  for (const auto& attribute : leaf.output) {
    const plan::Attribute* given = FindByName(named->output, attribute.name);
    exprs.push_back(given != nullptr ? plan::MakeAttribute(*given) : plan::MakeNull(attribute.type));
  }
  PlanPtr made_leaf = plan::MakeProject(named, std::move(exprs), leaf.output);
  // What a function of the user reads is counted above it: no scan tells.
  return named->kind == plan::PlanKind::kExternal ? CountRows(std::move(made_leaf), index) : made_leaf;
}

PlanPtr RowsLeaf(const plan::LogicalPlan& leaf, const std::shared_ptr<const plan::RowScan>& rows, std::size_t index) {
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kRows;
  node->name = std::string(kLeafMark) + std::to_string(index);
  node->output = leaf.output;
  node->rows = rows;
  return node;
}

/// What a batch reads of the source of `leaf`: its scans, one after the other, under the source's filter.
Result<PlanPtr> ScansLeaf(const plan::LogicalPlan& leaf, const connectors::BatchInput& input, std::size_t index) {
  std::vector<std::shared_ptr<const plan::FileScan>> scans;
  if (input.scan && !input.scan->files.empty()) {
    scans.push_back(input.scan);
  }
  for (const auto& scan : input.more_scans) {
    if (!scan->files.empty()) {
      scans.push_back(scan);
    }
  }
  PlanPtr made;
  if (scans.size() == 1 && !input.make_plans) {
    FLEUVE_ASSIGN(made, ScanLeaf(leaf, scans.front(), index));
  } else {
    auto all = std::make_shared<plan::LogicalPlan>();
    all->kind = plan::PlanKind::kUnion;
    all->output = leaf.output;
    const auto fresh = [&leaf] {
      plan::LogicalPlan part = leaf;
      for (auto& attribute : part.output) {
        attribute.id = plan::NewAttributeId();
      }
      return part;
    };
    for (const auto& scan : scans) {
      FLEUVE_ASSIGN(PlanPtr child, ScanLeaf(fresh(), scan, index));
      all->children.push_back(std::move(child));
    }
    if (input.make_plans) {
      for (const PlanPtr& plan : input.make_plans()) {
        all->children.push_back(PlanLeaf(fresh(), plan, index));
      }
    }
    if (all->children.size() == 1) {
      std::vector<plan::ExprPtr> exprs;
      for (const auto& attribute : all->children[0]->output) {
        exprs.push_back(plan::MakeAttribute(attribute));
      }
      made = plan::MakeProject(all->children[0], std::move(exprs), leaf.output);
    } else {
      made = std::move(all);
    }
  }
  return input.filter ? plan::MakeFilter(std::move(made), input.filter) : std::move(made);
}

bool HasScan(const connectors::BatchInput& input) {
  return (input.scan && !input.scan->files.empty()) || input.make_plans != nullptr ||
         std::any_of(input.more_scans.begin(), input.more_scans.end(),
                     [](const auto& scan) { return !scan->files.empty(); });
}

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// The clock of one batch: what the literals that stand for the time are in it.
struct BatchTime {
  std::int64_t now_micros = 0;
  std::int64_t local_micros = 0;

  plan::ExprPtr Rewrite(const plan::ExprPtr& expr) const {
    return plan::RewriteExpr(expr, [this](const plan::ExprPtr& node) -> plan::ExprPtr {
      if (node->kind != plan::ExprKind::kLiteral || node->function.empty()) {
        return nullptr;
      }
      std::int64_t value = now_micros;
      if (node->function == "localtimestamp") {
        value = local_micros;
      } else if (node->function == "current_date") {
        value = FloorDiv(local_micros, 86400000000);
      } else if (node->function == "unix_timestamp") {
        value = FloorDiv(now_micros, 1000000);
      } else if (node->function != "current_timestamp") {
        return nullptr;
      }
      auto copy = std::make_shared<plan::Expr>(*node);
      copy->value = types::Value(value);
      return copy;
    });
  }

  void Apply(plan::ExprPtr& expr) const {
    if (expr) {
      expr = Rewrite(expr);
    }
  }

  void Apply(plan::LogicalPlan& node) const {
    for (auto* list : {&node.exprs, &node.grouping, &node.aggregates, &node.generator.arguments}) {
      for (auto& expr : *list) {
        Apply(expr);
      }
    }
    Apply(node.condition);
    for (auto& key : node.order_by) {
      Apply(key.expr);
    }
    for (auto& projection : node.projections) {
      for (auto& expr : projection) {
        Apply(expr);
      }
    }
  }
};

bool HasTime(const plan::ExprPtr& expr) {
  bool found = false;
  if (expr) {
    plan::VisitExpr(expr, [&](const plan::Expr& node) {
      found = found || (node.kind == plan::ExprKind::kLiteral && !node.function.empty());
    });
  }
  return found;
}

bool HasTime(const plan::LogicalPlan& node) {
  const auto any = [](const std::vector<plan::ExprPtr>& list) {
    return std::any_of(list.begin(), list.end(), [](const plan::ExprPtr& expr) { return HasTime(expr); });
  };
  return any(node.exprs) || any(node.grouping) || any(node.aggregates) || any(node.generator.arguments) ||
         HasTime(node.condition) ||
         std::any_of(node.order_by.begin(), node.order_by.end(), [](const auto& key) { return HasTime(key.expr); }) ||
         std::any_of(node.projections.begin(), node.projections.end(), any);
}

int LeafIndex(const plan::LogicalPlan& node) {
  if (!node.name.starts_with(kLeafMark)) {
    return -1;
  }
  return std::atoi(node.name.c_str() + kLeafMark.size());
}

}  // namespace

std::vector<std::shared_ptr<const plan::StreamRelation>> DistinctStreams(const PlanPtr& plan) {
  std::vector<std::shared_ptr<const plan::StreamRelation>> streams;
  for (const plan::LogicalPlan* leaf : plan::StreamingLeaves(plan)) {
    if (std::find(streams.begin(), streams.end(), leaf->stream) == streams.end()) {
      streams.push_back(leaf->stream);
    }
  }
  return streams;
}

PlanPtr WithoutRows(const PlanPtr& plan) {
  return plan::RewritePlan(plan, [](const PlanPtr& node) -> PlanPtr {
    if (node->kind != plan::PlanKind::kRows || !node->rows || node->rows->batches.empty()) {
      return nullptr;
    }
    auto empty = std::make_shared<plan::LogicalPlan>(*node);
    empty->rows = std::make_shared<const plan::RowScan>();
    return empty;
  });
}

Result<PlanPtr> MakeBatchPlan(const PlanPtr& plan,
                              const std::vector<std::shared_ptr<const plan::StreamRelation>>& streams,
                              const std::vector<connectors::BatchInput>& inputs, const QueryRequest& request,
                              std::int64_t now_micros) {
  BatchTime time;
  time.now_micros = now_micros;
  FLEUVE_ASSIGN(const auto zone, types::TimeZone::Find(request.config.session_zone));
  time.local_micros = zone->UtcToLocal(now_micros);
  std::optional<Error> failure;
  std::map<const plan::TableSource*, std::shared_ptr<const plan::TableSource>> refreshed;
  PlanPtr made = plan::RewritePlan(plan, [&](const PlanPtr& node) -> PlanPtr {
    if (node->kind == plan::PlanKind::kStream) {
      const auto at = std::find(streams.begin(), streams.end(), node->stream);
      const std::size_t index = static_cast<std::size_t>(at - streams.begin());
      const connectors::BatchInput& input = inputs[index];
      if (HasScan(input)) {
        auto leaf = ScansLeaf(*node, input, index);
        if (!leaf.ok()) {
          failure = std::move(leaf).error();
          return nullptr;
        }
        return *std::move(leaf);
      }
      return input.rows ? RowsLeaf(*node, input.rows, index) : EmptyLeaf(*node);
    }
    if (node->kind == plan::PlanKind::kTable && request.refresh_table && !failure) {
      auto& current = refreshed[node->table.get()];
      if (!current) {
        auto table = request.refresh_table(node->table);
        if (!table.ok()) {
          failure = std::move(table).error();
          return nullptr;
        }
        current = *std::move(table);
      }
      if (current != node->table) {
        auto copy = std::make_shared<plan::LogicalPlan>(*node);
        copy->table = current;
        copy->is_streaming = false;
        return copy;
      }
      return nullptr;
    }
    if (node->kind == plan::PlanKind::kFilter && !failure && !HasTime(*node)) {
      if (PlanPtr counted = CountPassedRows(node, LeafIndex)) {
        return counted;
      }
    }
    if (node->kind == plan::PlanKind::kWatermark && !failure) {
      auto observed = ObserveEventTime(*node, node->children[0], request.config);
      if (!observed.ok()) {
        failure = std::move(observed).error();
        return nullptr;
      }
      return *std::move(observed);
    }
    const bool has_time = HasTime(*node);
    if (node->is_streaming || has_time) {
      auto copy = std::make_shared<plan::LogicalPlan>(*node);
      copy->is_streaming = false;
      if (has_time) {
        time.Apply(*copy);
      }
      return copy;
    }
    return nullptr;
  });
  if (failure) {
    return *std::move(failure);
  }
  return made;
}

std::vector<std::int64_t> CountInputRows(const std::vector<PlanPtr>& prepared, const engine::RunObserver& observer,
                                         const std::vector<connectors::BatchInput>& inputs) {
  std::vector<std::int64_t> counts(inputs.size(), 0);
  std::vector<bool> seen(inputs.size(), false);
  for (const PlanPtr& plan : prepared) {
    if (!plan) {
      continue;
    }
    // A leaf below a node that counts what passed its reader's filters is not counted itself.
    std::vector<std::pair<const plan::LogicalPlan*, bool>> pending = {{plan.get(), false}};
    while (!pending.empty()) {
      const auto [node, counted_above] = pending.back();
      pending.pop_back();
      const bool counts_passed = node->kind == plan::PlanKind::kMetrics && node->name.starts_with(kPassedRowsPrefix);
      for (const PlanPtr& child : node->children) {
        pending.emplace_back(child.get(), counted_above || counts_passed);
      }
      const int index = LeafIndex(*node);
      if (index >= 0 && static_cast<std::size_t>(index) < counts.size()) {
        seen[static_cast<std::size_t>(index)] = true;
        if (!counted_above) {
          counts[static_cast<std::size_t>(index)] += std::max<std::int64_t>(0, observer.LeafRows(node));
        }
      }
    }
  }
  for (const auto& metrics : observer.metrics()) {
    if (metrics.name.starts_with(kPassedRowsPrefix) && metrics.row.size() == 1) {
      const std::size_t index = std::strtoul(metrics.name.c_str() + std::strlen(kPassedRowsPrefix), nullptr, 10);
      if (index < counts.size()) {
        counts[index] += metrics.row[0].integer();
      }
    }
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!seen[i] && inputs[i].row_count > 0) {
      counts[i] = inputs[i].row_count;
    }
  }
  return counts;
}

}  // namespace fleuve::stream
