#include <algorithm>

#include "plan/event_time.h"
#include "plan/planned_source.h"
#include "plan/prepare_internal.h"
#include "plan/row_ids.h"

namespace fleuve::plan {
namespace {

using Conditions = std::vector<ExprPtr>;

constexpr int kMaxPushedSize = 200;

bool HoldsSubquery(const ExprPtr& expr) {
  return AnyExpr(expr, [](const Expr& node) {
    return node.kind == ExprKind::kSubquery || (node.kind == ExprKind::kAttribute && node.is_outer);
  });
}

bool OnlyOver(const ExprPtr& expr, const Ids& ids) {
  return !AnyExpr(expr, [&ids](const Expr& node) {
    return node.kind == ExprKind::kAttribute && !ids.contains(node.attribute.id.value);
  });
}

PlanPtr FilterBy(const PlanPtr& plan, const Conditions& conditions) {
  if (conditions.empty()) {
    return plan;
  }
  return MakeFilter(plan, Balanced(conditions, "and"));
}

PlanPtr WithChild(const PlanPtr& plan, std::vector<PlanPtr> children) {
  if (children == plan->children) {
    return plan;
  }
  auto copy = std::make_shared<LogicalPlan>(*plan);
  copy->children = std::move(children);
  return copy;
}

/// `_metadata` with the row's id and commit version. \param extras  kept id, kept version, first id, file's version.
ExprPtr RowIdMetadata(const Attribute& file_metadata, const Attribute& row_index, const std::vector<Attribute>& extras,
                      const types::DataType& type) {
  std::vector<ExprPtr> parts;
  for (std::size_t i = 0; i < MetadataColumnType().fields().size(); ++i) {
    parts.push_back(MakeGetField(MakeAttribute(file_metadata), static_cast<int>(i)));
  }
  const auto bigint = [](std::string function, std::vector<ExprPtr> arguments) {
    return MakeCall(std::move(function), std::move(arguments), types::DataType::Long(), true);
  };
  const ExprPtr first = MakeAttribute(extras[2]);
  const ExprPtr version = MakeAttribute(extras[3]);
  parts.push_back(
      bigint("coalesce", {MakeAttribute(extras[0]), bigint("spark_add", {first, MakeAttribute(row_index)})}));
  parts.push_back(first);
  parts.push_back(version);
  parts.push_back(bigint("coalesce", {MakeAttribute(extras[1]), version}));
  return MakeCall("spark_struct", std::move(parts), type, false);
}

/// Those of `conditions` that a source may be told.
Conditions UsableFor(const std::vector<Attribute>& columns, const Conditions& conditions) {
  Conditions usable;
  const Ids ids = IdsOf(columns);
  for (const ExprPtr& condition : conditions) {
    if (condition->deterministic && !HoldsSubquery(condition) && OnlyOver(condition, ids)) {
      usable.push_back(condition);
    }
  }
  return usable;
}

/// \param conditions  loses those that the table applies itself.
Result<PlanPtr> PlanTable(const PlanPtr& plan, Conditions& conditions) {
  std::vector<Attribute> columns = plan->output;
  std::optional<Attribute> metadata;
  if (!columns.empty() && columns.size() > plan->table->schema().fields().size()) {
    metadata = columns.back();
    columns.pop_back();
  }
  if (const auto* planned = dynamic_cast<const PlannedSource*>(plan->table.get()); planned != nullptr) {
    const Conditions usable = UsableFor(columns, conditions);
    FLEUVE_ASSIGN(const PlannedRead read, planned->PlanRead(usable, columns));
    for (const std::size_t position : read.applied) {
      std::erase(conditions, usable[position]);
    }
    return read.plan;
  }
  FLEUVE_ASSIGN(std::shared_ptr<const RowScan> rows, plan->table->PlanRows());
  auto leaf = std::make_shared<LogicalPlan>();
  leaf->name = plan->name;
  if (rows != nullptr) {
    leaf->kind = PlanKind::kRows;
    leaf->rows = std::move(rows);
    leaf->output = columns;
    if (metadata) {
      return Error::Unsupported("the column _metadata of " + plan->table->name());
    }
    return PlanPtr(std::move(leaf));
  }
  const Conditions usable = UsableFor(columns, conditions);
  const RowIdSource* row_ids = metadata && metadata->type.fields().size() > MetadataColumnType().fields().size()
                                   ? RowIdsOf(*plan->table)
                                   : nullptr;
  FLEUVE_ASSIGN(std::shared_ptr<const FileScan> scan,
                row_ids != nullptr ? row_ids->PlanRowIdScan(usable, columns) : plan->table->PlanScan(usable, columns));
  leaf->kind = PlanKind::kFileScan;
  std::vector<bool> used(columns.size(), false);
  // Columns that the table's schema does not have.
  std::vector<Attribute> extras;
  for (const types::Schema* schema : {&scan->data_schema, &scan->partition_schema, &scan->constants_schema}) {
    for (const types::StructField& field : schema->fields()) {
      std::size_t i = 0;
      while (i < columns.size() && (used[i] || plan->table->schema().fields()[i].name != field.name)) {
        ++i;
      }
      if (i < columns.size()) {
        used[i] = true;
        leaf->output.push_back(columns[i]);
        continue;
      }
      Attribute extra;
      extra.id = NewAttributeId();
      extra.name = field.name;
      extra.type = field.type;
      extra.hidden = true;
      extras.push_back(extra);
      leaf->output.push_back(std::move(extra));
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) {
      return Error::Internal("the scan of " + plan->table->name() + " does not give the column " + columns[i].name);
    }
  }
  Attribute file_metadata;
  Attribute row_index;
  if (metadata) {
    file_metadata = *metadata;
    if (row_ids != nullptr) {
      file_metadata.id = NewAttributeId();
      file_metadata.type = MetadataColumnType();
    }
    leaf->output.push_back(file_metadata);
  }
  if (row_ids != nullptr) {
    row_index.id = NewAttributeId();
    row_index.name = "__row";
    row_index.type = types::DataType::Long();
    row_index.nullable = false;
    row_index.hidden = true;
    leaf->output.push_back(row_index);
  }
  if (scan->with_metadata != metadata.has_value()) {
    auto copy = std::make_shared<FileScan>(*scan);
    copy->with_metadata = metadata.has_value();
    scan = std::move(copy);
  }
  leaf->scan = std::move(scan);
  const bool same = leaf->output.size() == plan->output.size() &&
                    std::equal(leaf->output.begin(), leaf->output.end(), plan->output.begin(),
                               [](const Attribute& a, const Attribute& b) { return a.id == b.id; });
  if (same) {
    return PlanPtr(std::move(leaf));
  }
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : plan->output) {
    exprs.push_back(row_ids != nullptr && attribute.id == metadata->id
                        ? RowIdMetadata(file_metadata, row_index, extras, metadata->type)
                        : MakeAttribute(attribute));
  }
  return MakeProject(std::move(leaf), std::move(exprs), plan->output);
}

/// Moves what can fail and concerns one side only out of a join's condition to the filters of that side, behind those
/// that are there: the engine would move it too, but not behind them. Gives the condition that is left.
ExprPtr TakeFallible(const LogicalPlan& join, const Ids& left_ids, const Ids& right_ids, Conditions* left,
                     Conditions* right) {
  if (join.condition == nullptr || !join.condition->can_fail || join.lateral) {
    return join.condition;
  }
  const JoinType type = join.join_type;
  const bool inner = type == JoinType::kInner || type == JoinType::kCross || type == JoinType::kLeftSemi;
  const bool left_ok = inner || type == JoinType::kRight;
  const bool right_ok = inner || type == JoinType::kLeft || type == JoinType::kLeftAnti;
  Conditions kept;
  bool moved = false;
  for (const ExprPtr& condition : Flatten(join.condition, "and")) {
    const bool movable = condition->can_fail && condition->deterministic && !HoldsSubquery(condition);
    if (movable && left_ok && OnlyOver(condition, left_ids)) {
      left->push_back(condition);
      moved = true;
    } else if (movable && right_ok && OnlyOver(condition, right_ids)) {
      right->push_back(condition);
      moved = true;
    } else {
      kept.push_back(condition);
    }
  }
  if (!moved) {
    return join.condition;
  }
  return kept.empty() ? MakeLiteral(types::Value(true), types::DataType::Boolean()) : Balanced(kept, "and");
}

/// `conditions` hold above `plan`; gives a plan in which they are applied as low as Spark would, in the same order.
Result<PlanPtr> Push(const PlanPtr& plan, Conditions conditions) {
  switch (plan->kind) {
    case PlanKind::kFilter: {
      const Conditions own = Flatten(plan->condition, "and");
      const bool deterministic =
          std::all_of(own.begin(), own.end(), [](const ExprPtr& expr) { return expr->deterministic; });
      if (!deterministic) {
        FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), {}));
        return FilterBy(WithChild(plan, {std::move(child)}), conditions);
      }
      Conditions all;
      for (const ExprPtr& condition : own) {
        // A filter on TRUE keeps everything.
        if (condition->kind != ExprKind::kLiteral || condition->value.is_null() || !condition->value.boolean()) {
          all.push_back(condition);
        }
      }
      std::vector<ExprPtr> rest;
      for (const ExprPtr& condition : conditions) {
        (condition->deterministic ? all : rest).push_back(condition);
      }
      FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), std::move(all)));
      return FilterBy(child, rest);
    }
    case PlanKind::kProject: {
      Conditions below;
      Conditions above;
      const bool deterministic =
          std::all_of(plan->exprs.begin(), plan->exprs.end(), [](const ExprPtr& expr) { return expr->deterministic; });
      if (!deterministic) {
        above = std::move(conditions);
      } else if (!conditions.empty()) {
        Substitution map;
        for (std::size_t i = 0; i < plan->exprs.size(); ++i) {
          map.emplace(plan->output[i].id.value, plan->exprs[i]);
        }
        for (ExprPtr& condition : conditions) {
          if (!above.empty() || HoldsSubquery(condition) || !condition->deterministic) {
            above.push_back(std::move(condition));
            continue;
          }
          ExprPtr moved = Substitute(condition, map);
          if (HoldsSubquery(moved) || SizeOf(moved, kMaxPushedSize) > kMaxPushedSize) {
            above.push_back(std::move(condition));
          } else {
            below.push_back(std::move(moved));
          }
        }
      }
      FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), std::move(below)));
      return FilterBy(WithChild(plan, {std::move(child)}), above);
    }
    case PlanKind::kJoin: {
      const bool left_ok = plan->join_type != JoinType::kRight && plan->join_type != JoinType::kFull;
      const bool right_ok =
          !plan->lateral && (plan->join_type == JoinType::kInner || plan->join_type == JoinType::kCross ||
                             plan->join_type == JoinType::kRight);
      const Ids left_ids = IdsOf(plan->children[0]->output);
      const Ids right_ids = IdsOf(plan->children[1]->output);
      Conditions left;
      Conditions right;
      Conditions above;
      for (ExprPtr& condition : conditions) {
        const bool movable = condition->deterministic && !HoldsSubquery(condition);
        if (movable && left_ok && OnlyOver(condition, left_ids)) {
          left.push_back(std::move(condition));
        } else if (movable && right_ok && OnlyOver(condition, right_ids)) {
          right.push_back(std::move(condition));
        } else {
          above.push_back(std::move(condition));
        }
      }
      const ExprPtr kept = TakeFallible(*plan, left_ids, right_ids, &left, &right);
      FLEUVE_ASSIGN(PlanPtr left_child, Push(plan->children[0], std::move(left)));
      FLEUVE_ASSIGN(PlanPtr right_child, Push(plan->children[1], std::move(right)));
      PlanPtr made = WithChild(plan, {std::move(left_child), std::move(right_child)});
      if (kept != plan->condition) {
        auto copy = std::make_shared<LogicalPlan>(*made);
        copy->condition = kept;
        made = std::move(copy);
      }
      return FilterBy(made, above);
    }
    case PlanKind::kUnion: {
      Conditions above;
      Conditions shared;
      for (ExprPtr& condition : conditions) {
        (condition->deterministic && !HoldsSubquery(condition) ? shared : above).push_back(std::move(condition));
      }
      std::vector<PlanPtr> children;
      for (const PlanPtr& input : plan->children) {
        Substitution map;
        for (std::size_t i = 0; i < plan->output.size(); ++i) {
          map.emplace(plan->output[i].id.value, MakeAttribute(input->output[i]));
        }
        Conditions below;
        for (const ExprPtr& condition : shared) {
          below.push_back(Substitute(condition, map));
        }
        FLEUVE_ASSIGN(PlanPtr child, Push(input, std::move(below)));
        children.push_back(std::move(child));
      }
      return FilterBy(WithChild(plan, std::move(children)), above);
    }
    case PlanKind::kWatermark:
    case PlanKind::kMetrics: {
      // observe() sees every row; the look at an event time those that pass the filters that do not ask for the time.
      Conditions above;
      Conditions below;
      for (ExprPtr& condition : conditions) {
        const bool stays = plan->event_time.value == 0 || !condition->deterministic || HoldsSubquery(condition) ||
                           AnyExpr(condition, [&](const Expr& part) {
                             return part.kind == ExprKind::kAttribute && part.attribute.id == plan->event_time;
                           });
        (stays ? above : below).push_back(std::move(condition));
      }
      FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), std::move(below)));
      return FilterBy(WithChild(plan, {std::move(child)}), above);
    }
    case PlanKind::kSort:
    case PlanKind::kRepartition: {
      Conditions above;
      Conditions below;
      for (ExprPtr& condition : conditions) {
        (condition->deterministic ? below : above).push_back(std::move(condition));
      }
      FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), std::move(below)));
      return FilterBy(WithChild(plan, {std::move(child)}), above);
    }
    case PlanKind::kGenerate: {
      const Ids ids = IdsOf(plan->children.front()->output);
      const bool deterministic = std::all_of(plan->generator.arguments.begin(), plan->generator.arguments.end(),
                                             [](const ExprPtr& expr) { return expr->deterministic; });
      Conditions above;
      Conditions below;
      for (ExprPtr& condition : conditions) {
        const bool movable = deterministic && above.empty() && condition->deterministic && OnlyOver(condition, ids);
        (movable ? below : above).push_back(std::move(condition));
      }
      FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), std::move(below)));
      return FilterBy(WithChild(plan, {std::move(child)}), above);
    }
    case PlanKind::kAggregate: {
      Conditions above;
      Conditions below;
      Substitution map;
      Ids keys;
      for (std::size_t i = 0; i < plan->grouping.size(); ++i) {
        // Sessions are merged before they are what the filter sees.
        if (plan->grouping[i]->deterministic && !IsSessionWindow(plan->grouping[i])) {
          map.emplace(plan->output[i].id.value, plan->grouping[i]);
          keys.insert(plan->output[i].id.value);
        }
      }
      for (ExprPtr& condition : conditions) {
        const bool movable =
            !keys.empty() && condition->deterministic && !HoldsSubquery(condition) && OnlyOver(condition, keys);
        if (movable) {
          below.push_back(Substitute(condition, map));
        } else {
          above.push_back(std::move(condition));
        }
      }
      FLEUVE_ASSIGN(PlanPtr child, Push(plan->children.front(), std::move(below)));
      return FilterBy(WithChild(plan, {std::move(child)}), above);
    }
    case PlanKind::kTable: {
      FLEUVE_ASSIGN(PlanPtr leaf, PlanTable(plan, conditions));
      return FilterBy(leaf, conditions);
    }
    case PlanKind::kOneRow:
    case PlanKind::kRows:
    case PlanKind::kRange:
    case PlanKind::kFileScan:
    case PlanKind::kStream:
      return FilterBy(plan, conditions);
    case PlanKind::kIntersect:
    case PlanKind::kExcept:
    case PlanKind::kDistinct:
    case PlanKind::kLimit:
    case PlanKind::kOffset:
    case PlanKind::kTail:
    case PlanKind::kSample:
    case PlanKind::kWindow:
    case PlanKind::kExpand:
    case PlanKind::kExternal: {
      std::vector<PlanPtr> children;
      for (const PlanPtr& input : plan->children) {
        FLEUVE_ASSIGN(PlanPtr child, Push(input, {}));
        children.push_back(std::move(child));
      }
      return FilterBy(WithChild(plan, std::move(children)), conditions);
    }
  }
  return Error::Internal("a plan node of an unknown kind");
}

}  // namespace

Result<PlanPtr> PushFilters(const PlanPtr& plan) { return Push(plan, {}); }

}  // namespace fleuve::plan
