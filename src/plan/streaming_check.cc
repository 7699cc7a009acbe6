#include <algorithm>
#include <set>

#include "plan/analyzer.h"

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

/// The column ids that carry a watermark somewhere in the plan: event-time columns, their aliases, windows over them.
std::set<std::int64_t> WatermarkedColumns(const PlanPtr& plan) {
  std::set<std::int64_t> ids;
  bool grown = true;
  VisitPlan(plan, [&ids](const LogicalPlan& node) {
    if (node.kind == PlanKind::kWatermark) {
      ids.insert(node.event_time.value);
    }
  });
  while (grown && !ids.empty()) {
    grown = false;
    VisitPlan(plan, [&](const LogicalPlan& node) {
      const std::vector<ExprPtr>& exprs = node.kind == PlanKind::kAggregate ? node.grouping : node.exprs;
      if (node.kind != PlanKind::kProject && node.kind != PlanKind::kAggregate) {
        return;
      }
      for (std::size_t i = 0; i < exprs.size() && i < node.output.size(); ++i) {
        const bool carries = exprs[i]->kind == ExprKind::kAttribute || exprs[i]->display.starts_with("window") ||
                             exprs[i]->display.starts_with("session_window");
        const bool over = AnyExpr(exprs[i], [&ids](const Expr& part) {
          return part.kind == ExprKind::kAttribute && ids.contains(part.attribute.id.value);
        });
        if (carries && over && ids.insert(node.output[i].id.value).second) {
          grown = true;
        }
      }
    });
  }
  return ids;
}

bool IsWatermarked(const ExprPtr& expr, const std::set<std::int64_t>& ids) {
  const bool shape = expr->kind == ExprKind::kAttribute || expr->display.starts_with("window") ||
                     expr->display.starts_with("session_window");
  return shape && AnyExpr(expr, [&ids](const Expr& part) {
           return part.kind == ExprKind::kAttribute && ids.contains(part.attribute.id.value);
         });
}

Result<void> CheckJoin(const LogicalPlan& node, const std::string& mode, bool has_aggregate) {
  const bool left = node.children[0]->is_streaming;
  const bool right = node.children[1]->is_streaming;
  const std::string name = JoinName(node.join_type);
  if (left && right) {
    if (mode != "append") {
      return Refused("Join between two streaming DataFrames/Datasets is not supported in " + ModeName(mode) +
                     " output mode, only in Append output mode");
    }
    if (node.join_type == JoinType::kLeftAnti) {
      return Refused("LeftAnti joins with a streaming DataFrame/Dataset on the right are not supported");
    }
    (void)has_aggregate;
    return {};
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

Result<void> CheckOuterStreamJoin(const LogicalPlan& node, const std::set<std::int64_t>& watermarked) {
  switch (node.join_type) {
    case JoinType::kLeft:
    case JoinType::kRight:
    case JoinType::kFull:
    case JoinType::kLeftSemi:
      if (watermarked.empty()) {
        return Refused(
            "Stream-stream " + JoinName(node.join_type) +
            " join between two streaming DataFrame/Datasets is not supported without a watermark in the join "
            "keys, or a watermark on the nullable side and an appropriate range condition");
      }
      return {};
    default:
      return {};
  }
}

/// What Spark's own checker refuses, node by node, the input first.
Result<void> CheckNode(const LogicalPlan& node, const std::string& mode, bool has_aggregate,
                       const std::set<std::int64_t>& watermarked) {
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
    case PlanKind::kJoin: {
      FLEUVE_TRY(CheckJoin(node, mode, has_aggregate));
      if (node.children[0]->is_streaming && node.children[1]->is_streaming) {
        return CheckOuterStreamJoin(node, watermarked);
      }
      return {};
    }
    case PlanKind::kUnion: {
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
      if (mode != "complete" || !has_aggregate) {
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
        const std::string& column = node.output[node.output.size() - node.exprs.size() + i].name;
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

/// What this build does not run on a stream yet.
Result<void> CheckServed(const LogicalPlan& node) {
  switch (node.kind) {
    case PlanKind::kAggregate:
      return Error::Unsupported("an aggregation on a stream");
    case PlanKind::kDistinct:
      return Error::Unsupported("dropDuplicates on a stream");
    case PlanKind::kWatermark:
      return Error::Unsupported("withWatermark on a stream");
    case PlanKind::kLimit:
      return Error::Unsupported("limit on a stream");
    case PlanKind::kTail:
      return Error::Unsupported("tail on a stream");
    case PlanKind::kExpand: {
      return {};
    }
    case PlanKind::kIntersect:
    case PlanKind::kExcept:
      return Error::Unsupported("INTERSECT and EXCEPT on a stream");
    case PlanKind::kJoin:
      if (node.children[0]->is_streaming && node.children[1]->is_streaming) {
        return Error::Unsupported("a join of two streams");
      }
      return {};
    default:
      return {};
  }
}

}  // namespace

Result<void> CheckStreaming(const PlanPtr& plan, const std::string& output_mode) {
  std::vector<const LogicalPlan*> nodes;
  VisitPlan(plan, [&nodes](const LogicalPlan& node) {
    if (node.is_streaming) {
      nodes.push_back(&node);
    }
  });
  if (nodes.empty()) {
    return Refused("Queries without streaming sources cannot be executed with writeStream.start()");
  }
  std::vector<const LogicalPlan*> aggregates;
  for (const LogicalPlan* node : nodes) {
    if (node->kind == PlanKind::kAggregate) {
      aggregates.push_back(node);
    }
  }
  const std::set<std::int64_t> watermarked = WatermarkedColumns(plan);
  if (output_mode == "complete" && aggregates.empty()) {
    return BadMode("complete", "no streaming aggregations");
  }
  for (const LogicalPlan* node : aggregates) {
    const bool session = std::any_of(node->grouping.begin(), node->grouping.end(),
                                     [](const ExprPtr& expr) { return expr->display.starts_with("session_window"); });
    if (output_mode == "append") {
      const bool any = std::any_of(node->grouping.begin(), node->grouping.end(),
                                   [&](const ExprPtr& expr) { return IsWatermarked(expr, watermarked); });
      if (!any) {
        return BadMode("append", "streaming aggregations without watermark");
      }
    }
    if (output_mode == "update" && session) {
      return BadMode("update", "session window streaming aggregations");
    }
  }
  if (output_mode != "append" && aggregates.size() > 1) {
    return Refused(
        "Detected pattern of possible 'correctness' issue due to global watermark. The query contains stateful "
        "operation which can emit rows older than the current watermark plus allowed late record delay, which are "
        "\"late rows\" in downstream stateful operations and these rows can be discarded. Please refer the programming "
        "guide doc for more details. If you understand the possible risk of correctness issue and still need to run "
        "the "
        "query, you can disable this check by setting the config "
        "`spark.sql.streaming.statefulOperator.checkCorrectness.enabled` to false.");
  }
  for (std::size_t i = nodes.size(); i > 0; --i) {
    FLEUVE_TRY(CheckNode(*nodes[i - 1], output_mode, !aggregates.empty(), watermarked));
  }
  for (std::size_t i = nodes.size(); i > 0; --i) {
    FLEUVE_TRY(CheckServed(*nodes[i - 1]));
  }
  return {};
}

}  // namespace fleuve::plan
