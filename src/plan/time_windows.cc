#include <algorithm>

#include "plan/event_time.h"
#include "plan/time_windows_internal.h"

namespace fleuve::plan {

namespace {

using types::DataType;
using types::Value;

bool IsOpenWindow(const Expr& expr) {
  return expr.kind == ExprKind::kCall && expr.function == "spark_window" && expr.children.size() == 5 &&
         expr.children[4]->kind == ExprKind::kLiteral && expr.children[4]->value.integer() == -1;
}

bool IsSession(const Expr& expr) { return expr.kind == ExprKind::kCall && expr.function == "spark_session_window"; }

bool IsMark(const Expr& expr) { return IsOpenWindow(expr) || IsSession(expr); }

std::vector<ExprPtr> ExprsOf(const LogicalPlan& node) {
  std::vector<ExprPtr> all = node.exprs;
  if (node.condition != nullptr) {
    all.push_back(node.condition);
  }
  all.insert(all.end(), node.grouping.begin(), node.grouping.end());
  all.insert(all.end(), node.aggregates.begin(), node.aggregates.end());
  for (const SortKey& key : node.order_by) {
    all.push_back(key.expr);
  }
  all.insert(all.end(), node.generator.arguments.begin(), node.generator.arguments.end());
  for (const auto& projection : node.projections) {
    all.insert(all.end(), projection.begin(), projection.end());
  }
  return all;
}

bool HasMark(const PlanPtr& plan) {
  bool found = false;
  VisitPlan(plan, [&found](const LogicalPlan& node) {
    for (const ExprPtr& expr : ExprsOf(node)) {
      found = found || AnyExpr(expr, [](const Expr& part) {
                return IsMark(part) || (part.kind == ExprKind::kSubquery && HasMark(part.subquery));
              });
    }
  });
  return found;
}

Attribute NewColumn(const char* name, DataType type, bool nullable);

/// The column of the window `mark`, with the watermark of its time.
Attribute WindowColumn(const Expr& mark) {
  Attribute column = NewColumn(IsSession(mark) ? "session_window" : "window", mark.type, false);
  column.metadata = EventTimeMetadata(mark);
  return column;
}

Attribute NewColumn(const char* name, DataType type, bool nullable) {
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = name;
  attribute.type = std::move(type);
  attribute.nullable = nullable;
  return attribute;
}

std::vector<ExprPtr> Columns(const std::vector<Attribute>& attributes) {
  std::vector<ExprPtr> out;
  for (const Attribute& attribute : attributes) {
    out.push_back(MakeAttribute(attribute));
  }
  return out;
}

/// The child with one more column.
PlanPtr WithColumn(const PlanPtr& child, ExprPtr expr, const Attribute& column) {
  std::vector<ExprPtr> exprs = Columns(child->output);
  exprs.push_back(std::move(expr));
  std::vector<Attribute> output = child->output;
  output.push_back(column);
  return MakeProject(child, std::move(exprs), std::move(output));
}

ExprPtr IsNotNull(const ExprPtr& expr) {
  return WithDisplay(MakeCall("isnotnull", {expr}, DataType::Boolean(), false), "(" + expr->display + " IS NOT NULL)");
}

ExprPtr WithIndex(const Expr& mark, ExprPtr index) {
  std::vector<ExprPtr> children = mark.children;
  children[4] = std::move(index);
  ExprPtr made = MakeCall("spark_window", std::move(children), mark.type, true, mark.can_fail, mark.deterministic);
  return WithDisplay(made, "window");
}

/// The child with the window of `mark` as `column`, one row per window.
PlanPtr ExpandWindow(const PlanPtr& child, const Expr& mark, const Attribute& column) {
  std::int64_t width = mark.children[1]->value.integer();
  std::int64_t slide = mark.children[2]->value.integer();
  std::int64_t overlap = (width + slide - 1) / slide;
  PlanPtr base = child;
  ExprPtr index = MakeLiteral(Value(std::int64_t{0}), DataType::Long());
  if (overlap > 1) {
    Attribute number = NewColumn("window_index", DataType::Long(), false);
    auto expand = std::make_shared<LogicalPlan>();
    expand->kind = PlanKind::kExpand;
    expand->children = {child};
    expand->is_streaming = child->is_streaming;
    expand->output = child->output;
    expand->output.push_back(number);
    for (std::int64_t i = overlap - 1; i >= 0; --i) {
      std::vector<ExprPtr> projection = Columns(child->output);
      projection.push_back(MakeLiteral(Value(i), DataType::Long()));
      expand->projections.push_back(std::move(projection));
    }
    base = expand;
    index = MakeAttribute(number);
  }
  PlanPtr computed = WithColumn(base, WithIndex(mark, index), column);
  return MakeFilter(computed, IsNotNull(MakeAttribute(column)));
}

ExprPtr Replace(const ExprPtr& expr, const ExprPtr& mark, const Attribute& column) {
  return RewriteExpr(expr, [&](const ExprPtr& part) -> ExprPtr {
    if (IsMark(*part) && SameExpr(part, mark)) {
      return WithDisplay(MakeAttribute(column), part->display);
    }
    return nullptr;
  });
}

ExprPtr WindowOver(ExprPtr function, std::vector<ExprPtr> partition_by, const ExprPtr& order, bool running,
                   bool before_this_row) {
  auto made = std::make_shared<Expr>();
  made->kind = ExprKind::kWindow;
  made->type = function->type;
  made->nullable = true;
  made->display = function->display;
  made->children = {std::move(function)};
  made->window.partition_by = std::move(partition_by);
  if (running) {
    made->window.order_by.push_back(SortKey{order, true, true});
    made->window.frame.unit = WindowFrame::Unit::kRows;
    made->window.frame.upper.kind = WindowFrame::BoundKind::kCurrentRow;
    if (before_this_row) {
      made->window.frame.upper.kind = WindowFrame::BoundKind::kOffset;
      made->window.frame.upper.offset = MakeLiteral(Value(-1), DataType::Int());
    }
  } else {
    made->window.frame.unit = WindowFrame::Unit::kRows;
    made->window.frame.upper.kind = WindowFrame::BoundKind::kUnboundedFollowing;
  }
  return made;
}

ExprPtr Fold(const char* function, const ExprPtr& argument, DataType type) {
  auto made = std::make_shared<Expr>();
  made->kind = ExprKind::kAggregate;
  made->function = function;
  made->type = std::move(type);
  made->children = {argument};
  made->display = std::string(function) + "(" + argument->display + ")";
  return made;
}

PlanPtr WithWindows(const PlanPtr& child, std::vector<ExprPtr> exprs, const std::vector<Attribute>& columns) {
  auto made = std::make_shared<LogicalPlan>();
  made->kind = PlanKind::kWindow;
  made->children = {child};
  made->output = child->output;
  made->output.insert(made->output.end(), columns.begin(), columns.end());
  made->exprs = std::move(exprs);
  return made;
}

/// The child with the merged session of each row as `column`; rows of other keys never meet.
PlanPtr MergeSessions(const PlanPtr& child, const ExprPtr& mark, const std::vector<ExprPtr>& keys,
                      const Attribute& column) {
  const DataType time = mark->type.fields()[0].type;
  Attribute single = NewColumn("session_row", mark->type, true);
  // Under another name: it is no longer a mark to be replaced.
  auto row = std::make_shared<Expr>(*mark);
  row->function = "spark_session_row";
  PlanPtr plan = MakeFilter(WithColumn(child, row, single), IsNotNull(MakeAttribute(single)));
  Attribute start = NewColumn("session_start", time, true);
  Attribute end = NewColumn("session_end", time, true);
  plan = WithColumn(plan, MakeGetField(MakeAttribute(single), 0), start);
  plan = WithColumn(plan, MakeGetField(MakeAttribute(single), 1), end);
  std::vector<Attribute> key_columns;
  for (const ExprPtr& key : keys) {
    Attribute attribute = NewColumn("session_key", key->type, key->nullable);
    plan = WithColumn(plan, key, attribute);
    key_columns.push_back(attribute);
  }
  std::vector<ExprPtr> partition = Columns(key_columns);
  // A row begins a session where no row before it reaches it.
  Attribute reached = NewColumn("session_reached", time, true);
  plan = WithWindows(
      plan, {WindowOver(Fold("spark_max", MakeAttribute(end), time), partition, MakeAttribute(start), true, true)},
      {reached});
  Attribute begins = NewColumn("session_begins", DataType::Long(), false);
  ExprPtr apart = MakeCall("gt", {MakeAttribute(start), MakeAttribute(reached)}, DataType::Boolean(), true);
  ExprPtr first = MakeCall("isnull", {MakeAttribute(reached)}, DataType::Boolean(), false);
  ExprPtr begin = MakeCase(
      {MakeCall("or", {first, apart}, DataType::Boolean(), true), MakeLiteral(Value(std::int64_t{1}), DataType::Long()),
       MakeLiteral(Value(std::int64_t{0}), DataType::Long())},
      true, DataType::Long());
  plan = WithColumn(plan, begin, begins);
  Attribute number = NewColumn("session_number", DataType::Long(), true);
  plan = WithWindows(plan,
                     {WindowOver(Fold("spark_sum", MakeAttribute(begins), DataType::Long()), partition,
                                 MakeAttribute(start), true, false)},
                     {number});
  std::vector<ExprPtr> sessions = partition;
  sessions.push_back(MakeAttribute(number));
  Attribute from = NewColumn("session_from", time, true);
  Attribute to = NewColumn("session_to", time, true);
  plan = WithWindows(plan,
                     {WindowOver(Fold("spark_min", MakeAttribute(start), time), sessions, nullptr, false, false),
                      WindowOver(Fold("spark_max", MakeAttribute(end), time), sessions, nullptr, false, false)},
                     {from, to});
  ExprPtr whole = MakeCall("spark_struct", {MakeAttribute(from), MakeAttribute(to)}, mark->type, false);
  return WithColumn(plan, WithDisplay(whole, "session_window"), column);
}

struct Resolver {
  std::optional<Error> error;

  PlanPtr Run(const PlanPtr& plan) {
    return RewritePlan(plan, [this](const PlanPtr& node) { return Node(node); });
  }

  void Fail(Error failure) {
    if (!error) {
      error = std::move(failure);
    }
  }

  ExprPtr Subqueries(const ExprPtr& expr) {
    if (expr == nullptr) {
      return expr;
    }
    return RewriteExpr(expr, [this](const ExprPtr& part) -> ExprPtr {
      if (part->kind != ExprKind::kSubquery || !HasMark(part->subquery)) {
        return nullptr;
      }
      auto copy = std::make_shared<Expr>(*part);
      copy->subquery = Run(part->subquery);
      return copy;
    });
  }

  PlanPtr Node(const PlanPtr& node) {
    std::vector<ExprPtr> all = ExprsOf(*node);
    bool subqueries = false;
    std::vector<ExprPtr> marks;
    for (const ExprPtr& expr : all) {
      AnyExpr(expr, [&](const Expr& part) {
        subqueries = subqueries || (part.kind == ExprKind::kSubquery && HasMark(part.subquery));
        return false;
      });
      RewriteExpr(expr, [&](const ExprPtr& part) -> ExprPtr {
        if (IsMark(*part) &&
            std::none_of(marks.begin(), marks.end(), [&](const ExprPtr& other) { return SameExpr(other, part); })) {
          marks.push_back(part);
        }
        return nullptr;
      });
    }
    if (marks.empty() && !subqueries) {
      return nullptr;
    }
    auto copy = std::make_shared<LogicalPlan>(*node);
    if (subqueries) {
      for (ExprPtr& expr : copy->exprs) {
        expr = Subqueries(expr);
      }
      copy->condition = Subqueries(copy->condition);
      for (ExprPtr& expr : copy->grouping) {
        expr = Subqueries(expr);
      }
      for (ExprPtr& expr : copy->aggregates) {
        expr = Subqueries(expr);
      }
    }
    if (marks.empty()) {
      return copy;
    }
    if (marks.size() > 1) {
      Fail(Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1039",
                 "Multiple time/session window expressions would result in a cartesian product of rows, therefore they "
                 "are currently not supported.")
               .Family(ErrorFamily::kAnalysis));
      return nullptr;
    }
    const ExprPtr mark = marks[0];
    const bool session = IsSession(*mark);
    if (session && (node->kind != PlanKind::kAggregate || node->is_streaming || node->children[0]->is_streaming)) {
      if (node->kind == PlanKind::kAggregate) {
        return subqueries ? PlanPtr(copy) : nullptr;  // the stream's own operator merges sessions
      }
      Fail(Error::Unsupported("session_window() outside the keys of an aggregate"));
      return nullptr;
    }
    if (node->kind != PlanKind::kProject && node->kind != PlanKind::kAggregate && node->kind != PlanKind::kFilter &&
        node->kind != PlanKind::kExpand) {
      Fail(Error::Unsupported("window() in this place"));
      return nullptr;
    }
    const Attribute column = WindowColumn(*mark);
    const PlanPtr& child = node->children[0];
    PlanPtr below;
    if (session) {
      std::vector<ExprPtr> keys;
      for (const ExprPtr& key : node->grouping) {
        if (!AnyExpr(key, IsMark)) {
          keys.push_back(key);
        }
      }
      below = MergeSessions(child, mark, keys, column);
    } else {
      below = ExpandWindow(child, *mark, column);
    }
    copy->children = {below};
    for (ExprPtr& expr : copy->exprs) {
      expr = Replace(expr, mark, column);
    }
    for (ExprPtr& expr : copy->grouping) {
      expr = Replace(expr, mark, column);
    }
    for (ExprPtr& expr : copy->aggregates) {
      expr = Replace(expr, mark, column);
    }
    for (auto& projection : copy->projections) {
      for (ExprPtr& expr : projection) {
        expr = Replace(expr, mark, column);
      }
    }
    if (node->kind == PlanKind::kFilter) {
      copy->condition = Replace(copy->condition, mark, column);
      copy->output = below->output;
      return MakeProject(copy, Columns(child->output), child->output);
    }
    return copy;
  }
};

}  // namespace

std::optional<GroupingWindow> PlaceGroupingWindow(PlanPtr& input, std::vector<ExprPtr>& grouping) {
  ExprPtr mark;
  for (const ExprPtr& key : grouping) {
    RewriteExpr(key, [&mark](const ExprPtr& part) -> ExprPtr {
      if (mark == nullptr && IsMark(*part)) {
        mark = part;
      }
      return nullptr;
    });
  }
  if (mark == nullptr) {
    return std::nullopt;
  }
  GroupingWindow window{mark, WindowColumn(*mark)};
  if (IsSession(*mark) && input->is_streaming) {
    // The session of each row alone: the stream's own operator merges them.
    auto row = std::make_shared<Expr>(*mark);
    row->function = "spark_session_row";
    input = MakeFilter(WithColumn(input, row, window.column), IsNotNull(MakeAttribute(window.column)));
  } else if (IsSession(*mark)) {
    std::vector<ExprPtr> keys;
    for (const ExprPtr& key : grouping) {
      if (!AnyExpr(key, IsMark)) {
        keys.push_back(key);
      }
    }
    input = MergeSessions(input, mark, keys, window.column);
  } else {
    input = ExpandWindow(input, *mark, window.column);
  }
  for (ExprPtr& key : grouping) {
    key = Replace(key, mark, window.column);
  }
  return window;
}

ExprPtr WithGroupingWindow(const ExprPtr& expr, const GroupingWindow& window) {
  return expr == nullptr ? expr : Replace(expr, window.mark, window.column);
}

Result<PlanPtr> ResolveTimeWindows(const PlanPtr& plan) {
  if (plan == nullptr || !HasMark(plan)) {
    return plan;
  }
  Resolver resolver;
  PlanPtr resolved = resolver.Run(plan);
  if (resolver.error) {
    return *std::move(resolver.error);
  }
  return resolved;
}

}  // namespace fleuve::plan
