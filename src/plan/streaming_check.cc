#include "plan/streaming_check.h"

#include <algorithm>

#include "plan/event_time.h"
#include "plan/external.h"
#include "plan/stream_join.h"

namespace fleuve::plan {
namespace {

/// Spark's refusals of operations on streams that have no condition of their own.
Error Refused(const std::string& text) {
  return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_3102", text + ";").Family(ErrorFamily::kAnalysis);
}

Error BadMode(const std::string& mode, const std::string& what) {
  return Error(ErrorKind::kInvalidArgument, "STREAMING_OUTPUT_MODE.UNSUPPORTED_OPERATION",
               "Invalid streaming output mode: " + mode + ". This output mode is not supported for " + what +
                   " on streaming DataFrames/DataSets.")
      .With("outputMode", mode)
      .With("operation", what);
}

std::string ModeName(const std::string& mode) {
  std::string out = mode;
  if (!out.empty() && out[0] >= 'a' && out[0] <= 'z') {
    out[0] = static_cast<char>(out[0] - 'a' + 'A');
  }
  return out;
}

std::string JoinName(JoinType type) {
  switch (type) {
    case JoinType::kInner:
      return "Inner";
    case JoinType::kLeft:
      return "LeftOuter";
    case JoinType::kRight:
      return "RightOuter";
    case JoinType::kFull:
      return "FullOuter";
    case JoinType::kLeftSemi:
      return "LeftSemi";
    case JoinType::kLeftAnti:
      return "LeftAnti";
    case JoinType::kCross:
      return "Cross";
  }
  return "";
}

/// The state of an outer or semi join must end some day: by a watermark in the keys, or on the side that may give NULLs
/// together with a bound of the times.
Result<void> CheckStreamJoinWatermark(const LogicalPlan& node) {
  const auto& left = node.children[0]->output;
  const auto& right = node.children[1]->output;
  bool bounded = HasWatermarkInKeys(SplitStreamJoin(node));
  if (node.join_type != JoinType::kRight) {
    bounded = bounded || JoinStateOffsetMs(left, right, node.condition).has_value();
  }
  if (node.join_type == JoinType::kRight || node.join_type == JoinType::kFull) {
    bounded = bounded || JoinStateOffsetMs(right, left, node.condition).has_value();
  }
  if (bounded) {
    return {};
  }
  return Refused("Stream-stream " + JoinName(node.join_type) +
                 " join between two streaming DataFrame/Datasets is not supported without a watermark in the join "
                 "keys, or a watermark on the nullable side and an appropriate range condition");
}

Result<void> CheckJoin(const LogicalPlan& node, const std::string& mode) {
  const bool left = node.children[0]->is_streaming;
  const bool right = node.children[1]->is_streaming;
  const std::string name = JoinName(node.join_type);
  if (left && right) {
    if (mode != "append") {
      return Refused("Join between two streaming DataFrames/Datasets is not supported in " + ModeName(mode) +
                     " output mode, only in Append output mode");
    }
    switch (node.join_type) {
      case JoinType::kInner:
      case JoinType::kCross:
        return {};
      case JoinType::kLeftAnti:
        return Refused("LeftAnti joins with a streaming DataFrame/Dataset on the right are not supported");
      default:
        return CheckStreamJoinWatermark(node);
    }
  }
  switch (node.join_type) {
    case JoinType::kFull:
      return Refused(std::string("FullOuter joins with streaming DataFrames/Datasets on the ") +
                     (left ? "left" : "right") + " and a static DataFrame/Dataset on the " + (left ? "right" : "left") +
                     " is not supported");
    case JoinType::kLeft:
    case JoinType::kLeftSemi:
      if (right) {
        return Refused(name +
                       " join with a streaming DataFrame/Dataset on the right and a static DataFrame/Dataset on "
                       "the left is not supported");
      }
      return {};
    case JoinType::kRight:
      if (left) {
        return Refused(name +
                       " join with a streaming DataFrame/Dataset on the left and a static DataFrame/DataSet on "
                       "the right not supported");
      }
      return {};
    case JoinType::kLeftAnti:
      if (right) {
        return Refused("LeftAnti joins with a streaming DataFrame/Dataset on the right are not supported");
      }
      return {};
    case JoinType::kInner:
    case JoinType::kCross:
      return {};
  }
  return {};
}

bool IsStreamJoin(const LogicalPlan& node) {
  return node.kind == PlanKind::kJoin && node.children[0]->is_streaming && node.children[1]->is_streaming;
}

bool IsUserState(const LogicalPlan& node) {
  return node.kind == PlanKind::kExternal && node.external->kind == ExternalKind::kGroupState;
}

bool KeepsState(const LogicalPlan& node) {
  return node.is_streaming && (node.kind == PlanKind::kAggregate || node.kind == PlanKind::kDistinct ||
                               IsStreamJoin(node) || IsUserState(node));
}

/// True where one stands below the node.
bool HasStreamingAggregate(const LogicalPlan& node) {
  bool found = false;
  for (const PlanPtr& child : node.children) {
    VisitPlan(child, [&found](const LogicalPlan& below) {
      found = found || (below.kind == PlanKind::kAggregate && below.is_streaming);
    });
  }
  return found;
}

/// Refuses a stateful node over one that gives rows older than the watermark.
Result<void> CheckLateRows(const std::vector<const LogicalPlan*>& nodes, const std::string& mode) {
  if (mode == "append") {
    return {};
  }
  for (const LogicalPlan* node : nodes) {
    if (KeepsState(*node) && HasStreamingAggregate(*node)) {
      return Refused(
          "Detected pattern of possible 'correctness' issue due to global watermark. The query contains stateful "
          "operation which can emit rows older than the current watermark plus allowed late record delay, which are "
          "\"late rows\" in downstream stateful operations and these rows can be discarded. Please refer the "
          "programming guide doc for more details. If you understand the possible risk of correctness issue and still "
          "need to run the query, you can disable this check by setting the config "
          "`spark.sql.streaming.statefulOperator.checkCorrectness.enabled` to false.");
    }
  }
  return {};
}

/// The name that the projection over a node gives to one of its columns.
std::string NameAbove(const std::vector<const LogicalPlan*>& nodes, const LogicalPlan& node, const Attribute& column) {
  for (const LogicalPlan* above : nodes) {
    if (above->kind != PlanKind::kProject || above->children[0].get() != &node) {
      continue;
    }
    for (std::size_t i = 0; i < above->exprs.size() && i < above->output.size(); ++i) {
      if (above->exprs[i]->kind == ExprKind::kAttribute && above->exprs[i]->attribute.id == column.id) {
        return above->output[i].name;
      }
    }
  }
  return column.name;
}

/// True for the union of the two sides of a co-group, or of the rows of a stateful processor and its initial state.
bool JoinsTwoSides(const LogicalPlan& node, const std::vector<const LogicalPlan*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [&node](const LogicalPlan* above) {
    return above->kind == PlanKind::kExternal && above->external->left_arguments > 0 &&
           above->children.front().get() == &node;
  });
}

/// applyInPandasWithState: its output mode, aggregations around it, its timeout.
Result<void> CheckGroupState(const LogicalPlan& node, const std::string& mode,
                             const std::vector<const LogicalPlan*>& nodes) {
  const std::string& own = node.external->output_mode;
  const bool aggregates =
      std::any_of(nodes.begin(), nodes.end(), [](const LogicalPlan* one) { return one->kind == PlanKind::kAggregate; });
  const std::string text = "applyInPandasWithState in " + own + " mode is not supported ";
  if (!aggregates && own != mode) {
    return Refused(text + "with " + ModeName(mode) + " output mode on a streaming DataFrame/Dataset");
  }
  if (aggregates && own == "update") {
    return Refused(text + "with aggregation on a streaming DataFrame/Dataset");
  }
  if (HasStreamingAggregate(node)) {
    return Refused(text + "after aggregation on a streaming DataFrame/Dataset");
  }
  if (node.external->timeout == "EventTimeTimeout" && EventTimeColumn(node.children[0]->output) == nullptr) {
    return Refused(
        "Watermark must be specified in the query using '[Dataset/DataFrame].withWatermark()' for using event-time "
        "timeout in a applyInPandasWithState. Event-time timeout not supported without watermark.");
  }
  return {};
}

/// What Spark's own checker refuses, node by node, the input first.
Result<void> CheckNode(const LogicalPlan& node, const std::string& mode, const std::vector<const LogicalPlan*>& nodes) {
  for (const ExprPtr& expr : ExpressionsOf(node)) {
    if (AnyExpr(expr, [](const Expr& part) {
          return part.kind == ExprKind::kCall && part.function.find("monotonically_increasing_id") != std::string::npos;
        })) {
      return Refused(
          "Expression(s): monotonically_increasing_id() is not supported with streaming DataFrames/Datasets");
    }
  }
  switch (node.kind) {
    case PlanKind::kAggregate:
      for (const ExprPtr& expr : node.aggregates) {
        if (AnyExpr(expr, [](const Expr& part) { return part.kind == ExprKind::kAggregate && part.distinct; })) {
          return Refused(
              "Distinct aggregations are not supported on streaming DataFrames/Datasets. Consider using "
              "approx_count_distinct() instead.");
        }
      }
      return {};
    case PlanKind::kExternal:
      // The output mode of a stateful processor is not compared with the query's.
      return node.is_streaming && IsUserState(node) && node.external->state_type ? CheckGroupState(node, mode, nodes)
                                                                                 : Result<void>();
    case PlanKind::kDistinct:
      if (node.within_watermark && EventTimeColumn(node.children[0]->output) == nullptr) {
        return Refused(
            "dropDuplicatesWithinWatermark is not supported on streaming DataFrames/DataSets without watermark");
      }
      return {};
    case PlanKind::kJoin:
      return CheckJoin(node, mode);
    case PlanKind::kUnion: {
      if (JoinsTwoSides(node, nodes)) {
        return {};
      }
      const bool all = std::all_of(node.children.begin(), node.children.end(),
                                   [](const PlanPtr& child) { return child->is_streaming; });
      if (!all) {
        return Refused("Union between streaming and batch DataFrames/Datasets is not supported");
      }
      return {};
    }
    case PlanKind::kExcept:
      if (node.children[1]->is_streaming) {
        return Refused("Except on a streaming DataFrame/Dataset on the right is not supported");
      }
      return {};
    case PlanKind::kIntersect:
      if (node.children[0]->is_streaming && node.children[1]->is_streaming) {
        return Refused("Intersect of streaming DataFrames/Datasets is not supported");
      }
      return {};
    case PlanKind::kSort:
      if (mode != "complete" || !HasStreamingAggregate(node)) {
        return Refused(
            "Sorting is not supported on streaming DataFrames/Datasets, unless it is on aggregated "
            "DataFrame/Dataset in Complete output mode");
      }
      return {};
    case PlanKind::kLimit:
      if (mode == "update") {
        return Refused("Limits are not supported on streaming DataFrames/Datasets in Update output mode");
      }
      return {};
    case PlanKind::kOffset:
      return Refused("Offset is not supported on streaming DataFrames/Datasets");
    case PlanKind::kSample:
      return Refused("Sampling is not supported on streaming DataFrames/Datasets");
    case PlanKind::kWindow: {
      std::string names;
      std::string specs;
      for (std::size_t i = 0; i < node.exprs.size(); ++i) {
        const std::string& shown = node.exprs[i]->display;
        const std::size_t over = shown.find(" OVER ");
        std::string function = shown.substr(0, over);
        specs += (specs.empty() ? "" : ", ") + (over == std::string::npos ? shown : shown.substr(over + 6));
        std::transform(function.begin(), function.end(), function.begin(),
                       [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
        const Attribute& result = node.output[node.output.size() - node.exprs.size() + i];
        const std::string column = NameAbove(nodes, node, result);
        names += (names.empty() ? "" : ", ") + function + " (as column `" + column + "`)";
      }
      return Error(ErrorKind::kInvalidArgument, "NON_TIME_WINDOW_NOT_SUPPORTED_IN_STREAMING",
                   "Window function is not supported in " + names +
                       " on streaming DataFrames/Datasets.\nStructured Streaming only supports time-window aggregation "
                       "using the WINDOW function. (window specification: " +
                       specs + ")")
          .With("windowFunc", names);
    }
    default:
      return {};
  }
}

/// What no operator here runs.
Result<void> CheckServed(const LogicalPlan& node) {
  switch (node.kind) {
    case PlanKind::kTail:
      return Error::Unsupported("tail on a stream");
    case PlanKind::kAggregate:
      for (const ExprPtr& key : node.grouping) {
        const bool inside = AnyExpr(key, [](const Expr& part) {
          return part.kind == ExprKind::kCall && part.function == "spark_session_window";
        });
        if (inside && !IsSessionWindow(key)) {
          return Error::Unsupported("session_window() inside another grouping expression of a stream");
        }
      }
      return {};
    case PlanKind::kIntersect:
    case PlanKind::kExcept:
      return node.all ? Result<void>(Error::Unsupported("INTERSECT ALL and EXCEPT ALL on a stream")) : Result<void>();
    default:
      return {};
  }
}

/// A subquery over a stream has no batch of its own that it could be computed from.
bool HasStreamingSubquery(const LogicalPlan& node) {
  const std::vector<ExprPtr> exprs = ExpressionsOf(node);
  return std::any_of(exprs.begin(), exprs.end(), [](const ExprPtr& expr) {
    return AnyExpr(expr, [](const Expr& part) {
      return part.kind == ExprKind::kSubquery && part.subquery != nullptr && part.subquery->is_streaming;
    });
  });
}

}  // namespace

Result<void> CheckStreaming(const PlanPtr& plan, const StreamingRules& rules) {
  const std::string& mode = rules.output_mode;
  std::vector<const LogicalPlan*> nodes;
  bool streaming_subquery = false;
  VisitPlan(plan, [&](const LogicalPlan& node) {
    streaming_subquery = streaming_subquery || HasStreamingSubquery(node);
    if (node.is_streaming) {
      nodes.push_back(&node);
    }
  });
  if (nodes.empty()) {
    return Refused("Queries without streaming sources cannot be executed with writeStream.start()");
  }
  const auto group_states = std::count_if(nodes.begin(), nodes.end(), [](const LogicalPlan* node) {
    return IsUserState(*node) && node->external->state_type.has_value();
  });
  if (group_states > 1) {
    return Refused("Multiple applyInPandasWithStates are not supported on a streaming DataFrames/Datasets");
  }
  const auto aggregate = std::find_if(nodes.begin(), nodes.end(),
                                      [](const LogicalPlan* node) { return node->kind == PlanKind::kAggregate; });
  // Spark looks at the topmost aggregation alone.
  if (aggregate != nodes.end()) {
    const auto& grouping = (*aggregate)->grouping;
    if (mode == "append" && std::none_of(grouping.begin(), grouping.end(), CarriesWatermark)) {
      return BadMode("append", "streaming aggregations without watermark");
    }
    if (mode == "update" && std::any_of(grouping.begin(), grouping.end(), IsSessionWindow)) {
      return BadMode("update", "session window streaming aggregations");
    }
  } else if (mode == "complete") {
    return BadMode("complete", "no streaming aggregations");
  }
  for (std::size_t i = nodes.size(); i > 0; --i) {
    FLEUVE_TRY(CheckNode(*nodes[i - 1], mode, nodes));
  }
  if (rules.check_correctness) {
    FLEUVE_TRY(CheckLateRows(nodes, mode));
  }
  if (streaming_subquery) {
    return Error::Unsupported("a subquery over a stream");
  }
  for (std::size_t i = nodes.size(); i > 0; --i) {
    FLEUVE_TRY(CheckServed(*nodes[i - 1]));
  }
  return {};
}

namespace {

/// True where a watermark stands in `plan` and nothing that keeps state is above it.
bool ReachesWatermark(const PlanPtr& plan) {
  if (!plan->is_streaming || KeepsState(*plan)) {
    return false;
  }
  return plan->kind == PlanKind::kWatermark ||
         std::any_of(plan->children.begin(), plan->children.end(), ReachesWatermark);
}

/// Several columns with watermarks among `columns`.
Result<void> CheckOneEventTime(const std::vector<Attribute>& columns) {
  std::vector<const Attribute*> found;
  for (const Attribute& column : columns) {
    const bool known = std::any_of(found.begin(), found.end(), [&](const Attribute* a) { return a->id == column.id; });
    if (WatermarkDelayMs(column) && !known) {
      found.push_back(&column);
    }
  }
  if (found.size() < 2) {
    return {};
  }
  std::string names;
  for (const Attribute* column : found) {
    names += (names.empty() ? "" : ",") + column->name + "#" + std::to_string(column->id.value) + "-T" +
             std::to_string(*WatermarkDelayMs(*column)) + "ms";
  }
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3077",
               "More than one event time columns are available. Please ensure there is at most one event time column "
               "per stream. event time columns: (" +
                   names + ")")
      .Family(ErrorFamily::kAnalysis);
}

Result<void> CheckNodeBatch(const LogicalPlan& node, const StreamingRules& rules) {
  switch (node.kind) {
    case PlanKind::kWatermark:
      if (rules.allow_multiple && ReachesWatermark(node.children[0])) {
        return Error(
                   ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3076",
                   "Redefining watermark is disallowed. You can set the config "
                   "'spark.sql.streaming.statefulOperator.allowMultiple' to 'false' to restore the previous behavior. "
                   "Note that multiple stateful operators will be disallowed.")
            .Family(ErrorFamily::kAnalysis);
      }
      return {};
    case PlanKind::kAggregate: {
      for (const ExprPtr& expr : node.aggregates) {
        if (AnyExpr(expr,
                    [](const Expr& part) { return part.kind == ExprKind::kAggregate && part.external != nullptr; })) {
          return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3067",
                       "Streaming aggregation doesn't support group aggregate pandas UDF");
        }
      }
      const bool marked = std::any_of(node.grouping.begin(), node.grouping.end(), CarriesWatermark);
      if (rules.output_mode == "append" && !marked) {
        return Error(ErrorKind::kUnsupported, "UNSUPPORTED_STREAMING_OPERATOR_WITHOUT_WATERMARK",
                     "Append output mode not supported for aggregations on streaming DataFrames/DataSets without "
                     "watermark.")
            .With("outputMode", "Append")
            .With("statefulOperator", "aggregations");
      }
      const bool session = std::any_of(node.grouping.begin(), node.grouping.end(), IsSessionWindow);
      if (session && node.grouping.size() == 1) {
        return Error(ErrorKind::kUnsupported, "",
                     "Global aggregation with session window in streaming query is not supported.")
            .Family(ErrorFamily::kAnalysis);
      }
      if (rules.allow_multiple && rules.output_mode != "complete") {
        std::vector<Attribute> keys(node.output.begin(),
                                    node.output.begin() + static_cast<std::ptrdiff_t>(node.grouping.size()));
        return CheckOneEventTime(keys);
      }
      return {};
    }
    case PlanKind::kDistinct:
      return rules.allow_multiple ? CheckOneEventTime(node.children[0]->output) : Result<void>();
    case PlanKind::kJoin: {
      if (!IsStreamJoin(node)) {
        return {};
      }
      if (SplitStreamJoin(node).keys.empty()) {
        return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_1181",
                     "Stream-stream join without equality predicate is not supported.;\nJoin " +
                         JoinName(node.join_type) + (node.condition ? ", " + node.condition->display : ""))
            .Family(ErrorFamily::kAnalysis);
      }
      if (rules.allow_multiple) {
        FLEUVE_TRY(CheckOneEventTime(node.children[0]->output));
        return CheckOneEventTime(node.children[1]->output);
      }
      return {};
    }
    default:
      return {};
  }
}

}  // namespace

Result<void> CheckStreamingBatch(const PlanPtr& plan, const StreamingRules& rules) {
  std::vector<const LogicalPlan*> nodes;
  VisitPlan(plan, [&nodes](const LogicalPlan& node) {
    if (node.is_streaming) {
      nodes.push_back(&node);
    }
  });
  for (std::size_t i = nodes.size(); i > 0; --i) {
    FLEUVE_TRY(CheckNodeBatch(*nodes[i - 1], rules));
  }
  return {};
}

}  // namespace fleuve::plan
