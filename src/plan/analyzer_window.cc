#include <algorithm>
#include <set>

#include "plan/analyzer_internal.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;
using Bound = WindowFrame::Bound;
using BoundKind = WindowFrame::BoundKind;

/// A negated copy of a literal offset; null where it cannot be negated.
ExprPtr Negated(const ExprPtr& literal) {
  const types::Value& value = literal->value;
  if (literal->type.IsIntegral() || literal->type.Is(TypeKind::kDayTimeInterval) ||
      literal->type.Is(TypeKind::kYearMonthInterval)) {
    return MakeLiteral(types::Value(-value.integer()), literal->type);
  }
  if (literal->type.Is(TypeKind::kDecimal)) {
    return MakeLiteral(types::Value(-value.decimal()), literal->type);
  }
  if (literal->type.IsFractional()) {
    return MakeLiteral(types::Value(-value.real()), literal->type);
  }
  return nullptr;
}

std::string ShowBound(const Bound& bound) {
  switch (bound.kind) {
    case BoundKind::kUnboundedPreceding:
      return "UNBOUNDED PRECEDING";
    case BoundKind::kUnboundedFollowing:
      return "UNBOUNDED FOLLOWING";
    case BoundKind::kCurrentRow:
      return "CURRENT ROW";
    case BoundKind::kOffset:
      break;
  }
  return bound.offset->display;
}

std::string ShowSpec(const WindowSpec& spec) {
  std::string out;
  for (const ExprPtr& part : spec.partition_by) {
    out += (out.empty() ? "PARTITION BY " : ", ") + part->display;
  }
  for (std::size_t i = 0; i < spec.order_by.size(); ++i) {
    const SortKey& key = spec.order_by[i];
    out += (i == 0 ? (out.empty() ? "ORDER BY " : " ORDER BY ") : ", ") + key.expr->display +
           (key.ascending ? " ASC" : " DESC") + (key.nulls_first ? " NULLS FIRST" : " NULLS LAST");
  }
  out += out.empty() ? "" : " ";
  return out + (spec.frame.unit == WindowFrame::Unit::kRows ? "ROWS" : "RANGE") + " BETWEEN " +
         ShowBound(spec.frame.lower) + " AND " + ShowBound(spec.frame.upper);
}

Error FrameError(const char* subclass, const std::string& message) {
  return Error(ErrorKind::kInvalidArgument, std::string("DATATYPE_MISMATCH.") + subclass, message);
}

}  // namespace

Result<ExprPtr> Analyzer::Window(const sc::Expression_Window& window, const Scope& scope) {
  is_window_function_ = true;
  Result<ExprPtr> analyzed = Expression(window.window_function(), scope);
  is_window_function_ = false;
  if (!analyzed.ok()) {
    return std::move(analyzed).error();
  }
  const ExprPtr function = *std::move(analyzed);
  WindowSpec spec;
  for (const sc::Expression& part : window.partition_spec()) {
    FLEUVE_ASSIGN(ExprPtr made, Expression(part, scope));
    spec.partition_by.push_back(std::move(made));
  }
  for (const sc::Expression_SortOrder& order : window.order_spec()) {
    FLEUVE_ASSIGN(SortKey key, Order(order, scope));
    spec.order_by.push_back(std::move(key));
  }
  const auto earlier_item = [](const ExprPtr& expr) {
    return AnyExpr(expr, [](const Expr& node) { return node.display.starts_with(kAliasReference); });
  };
  bool refers = earlier_item(function) ||
                std::any_of(spec.partition_by.begin(), spec.partition_by.end(), earlier_item) ||
                std::any_of(spec.order_by.begin(), spec.order_by.end(),
                            [&earlier_item](const SortKey& key) { return earlier_item(key.expr); });
  if (refers) {
    return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.LATERAL_COLUMN_ALIAS_IN_WINDOW",
                 "The feature is not supported: Referencing a lateral column alias in the window expression " +
                     function->display + ".")
        .Family(ErrorFamily::kAnalysis);
  }
  static const std::set<std::string> kRanks = {"row_number",   "rank",      "dense_rank",
                                               "percent_rank", "cume_dist", "ntile"};
  static const std::set<std::string> kShifts = {"lag", "lead"};
  const bool is_call = function->kind == ExprKind::kCall;
  const bool is_rank = is_call && kRanks.contains(function->function);
  const bool is_shift = is_call && kShifts.contains(function->function);
  const bool is_window_call = is_rank || is_shift || (is_call && function->function == "nth_value");
  if (!is_window_call && !AnyExpr(function, [](const Expr& node) { return node.kind == ExprKind::kAggregate; })) {
    return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_EXPR_FOR_WINDOW",
                 "Expression \"" + function->display + "\" not supported within a window function.")
        .With("sqlExpr", "\"" + function->display + "\"");
  }
  if (AnyExpr(function, [](const Expr& node) { return node.kind == ExprKind::kAggregate && node.distinct; })) {
    return Error(ErrorKind::kInvalidArgument, "DISTINCT_WINDOW_FUNCTION_UNSUPPORTED",
                 "Distinct window functions are not supported: \"" + function->display + "\".")
        .With("windowExpr", "\"" + function->display + "\"");
  }
  if (AnyExpr(function, [](const Expr& node) { return node.kind == ExprKind::kAggregate && node.filter != nullptr; })) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1030",
                 "Window aggregate function with filter predicate is not supported yet.")
        .Family(ErrorFamily::kAnalysis);
  }
  if ((is_rank || is_shift) && spec.order_by.empty()) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1037",
                 "Window function " + function->display +
                     " requires window to be ordered, please add ORDER BY clause. For example SELECT " +
                     function->display +
                     "(value_expr) OVER (PARTITION BY window_partition ORDER BY window_ordering) "
                     "from table.")
        .Family(ErrorFamily::kAnalysis);
  }
  std::string shown_frame;
  if (window.has_frame_spec()) {
    const auto& frame = window.frame_spec();
    switch (frame.frame_type()) {
      case sc::Expression_Window_WindowFrame::FRAME_TYPE_ROW:
        spec.frame.unit = WindowFrame::Unit::kRows;
        break;
      case sc::Expression_Window_WindowFrame::FRAME_TYPE_RANGE:
        spec.frame.unit = WindowFrame::Unit::kRange;
        break;
      default:
        return Error::Unsupported("a window frame of type " + std::to_string(frame.frame_type()));
    }
    const auto read = [&](const sc::Expression_Window_WindowFrame_FrameBoundary& boundary,
                          bool lower) -> Result<Bound> {
      Bound bound;
      if (boundary.has_current_row()) {
        bound.kind = BoundKind::kCurrentRow;
        return bound;
      }
      if (boundary.has_unbounded()) {
        bound.kind = lower ? BoundKind::kUnboundedPreceding : BoundKind::kUnboundedFollowing;
        return bound;
      }
      bound.kind = BoundKind::kOffset;
      FLEUVE_ASSIGN(ExprPtr value, Expression(boundary.value(), scope));
      std::string shown = value->display + " FOLLOWING";
      if (AnyExpr(value, [](const Expr& node) { return node.kind == ExprKind::kAttribute; })) {
        return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_0064", "Frame bound value must be a literal.")
            .Family(ErrorFamily::kParse);
      }
      if (AnyExpr(value, [](const Expr& node) {
            return node.kind == ExprKind::kLiteral && node.type.IsString() && !node.value.is_null();
          })) {
        return FrameError("SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE", "A window frame bound must not be a string.");
      }
      if (value->kind != ExprKind::kLiteral) {
        if (value->kind == ExprKind::kCall && value->children.size() >= 1 &&
            value->children.front()->kind == ExprKind::kLiteral && value->display.starts_with("(- ")) {
          const ExprPtr& distance = value->children.front();
          shown = distance->display + " PRECEDING";
          value = Negated(distance);
        } else {
          FLEUVE_ASSIGN(std::optional<types::Value> constant, ConstantValue(value));
          if (!constant) {
            return FrameError("SPECIFIED_WINDOW_FRAME_WITHOUT_FOLDABLE",
                              "Cannot resolve the window frame: the " + std::string(lower ? "lower" : "upper") +
                                  " window frame bound \"" + value->display + "\" is not a literal.");
          }
          value = MakeLiteral(*constant, value->type);
        }
      }
      if (value == nullptr || value->value.is_null()) {
        return FrameError("SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE", "A window frame bound must not be NULL.");
      }
      if (spec.frame.unit == WindowFrame::Unit::kRows) {
        if (!value->type.IsIntegral()) {
          return FrameError("SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE",
                            "The data type of the " + std::string(lower ? "lower" : "upper") + " bound " +
                                TypesSql(value->type) + " does not match the expected data type \"INT\".");
        }
      }
      if (value->type.IsIntegral() && value->value.integer() == 0) {
        bound.kind = BoundKind::kCurrentRow;
        return bound;
      }
      bound.offset = WithDisplay(value, std::move(shown));
      return bound;
    };
    FLEUVE_ASSIGN(spec.frame.lower, read(frame.lower(), true));
    FLEUVE_ASSIGN(spec.frame.upper, read(frame.upper(), false));
    const bool has_offset = spec.frame.lower.kind == BoundKind::kOffset || spec.frame.upper.kind == BoundKind::kOffset;
    if (spec.frame.unit == WindowFrame::Unit::kRange) {
      if (has_offset && spec.order_by.size() > 1) {
        return FrameError("RANGE_FRAME_MULTI_ORDER",
                          "A range window frame with value boundaries cannot be used in a window specification with "
                          "multiple order by expressions.");
      }
      if (spec.order_by.empty() && (has_offset || spec.frame.lower.kind == BoundKind::kCurrentRow ||
                                    spec.frame.upper.kind == BoundKind::kCurrentRow)) {
        return FrameError("RANGE_FRAME_WITHOUT_ORDER",
                          "A range window frame cannot be used in an unordered window specification.");
      }
      if (has_offset) {
        // The offset has the type of the key, or is an interval over a date or timestamp.
        const DataType& key = spec.order_by.front().expr->type;
        for (Bound* bound : {&spec.frame.lower, &spec.frame.upper}) {
          if (bound->offset == nullptr) {
            continue;
          }
          const DataType& type = bound->offset->type;
          const bool interval = type.Is(TypeKind::kDayTimeInterval) || type.Is(TypeKind::kYearMonthInterval) ||
                                type.Is(TypeKind::kCalendarInterval);
          const bool fits = (key.IsNumeric() && type.IsNumeric()) || (key.IsDateTime() && interval) ||
                            (key.Is(TypeKind::kDate) && type.IsIntegral());
          if (!fits) {
            return FrameError("SPECIFIED_WINDOW_FRAME_UNACCEPTED_TYPE",
                              "The data type " + TypesSql(key) +
                                  " used in the order specification does not support the "
                                  "data type " +
                                  TypesSql(type) + " which is used in the range frame.");
          }
          if (key.IsIntegral() && type.IsIntegral() && !(key == type)) {
            bound->offset = WithDisplay(MakeLiteral(bound->offset->value, key), bound->offset->display);
          }
        }
      }
    }
    bool reversed = spec.frame.lower.kind == BoundKind::kUnboundedFollowing ||
                    spec.frame.upper.kind == BoundKind::kUnboundedPreceding;
    if (!reversed && spec.frame.lower.offset != nullptr && spec.frame.upper.offset != nullptr &&
        spec.frame.lower.offset->type.IsIntegral() && spec.frame.upper.offset->type.IsIntegral()) {
      reversed = spec.frame.lower.offset->value.integer() > spec.frame.upper.offset->value.integer();
    }
    if (reversed) {
      return FrameError("SPECIFIED_WINDOW_FRAME_WRONG_COMPARISON",
                        "The lower bound of a window frame must be less than or equal to the upper bound.");
    }
    if (is_rank || is_shift) {
      const bool same = !is_shift && spec.frame.unit == WindowFrame::Unit::kRows &&
                        spec.frame.lower.kind == BoundKind::kUnboundedPreceding &&
                        spec.frame.upper.kind == BoundKind::kCurrentRow;
      if (is_shift) {
        return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1035",
                     "Cannot specify window frame for " + function->function + " function.")
            .With("prettyName", function->function)
            .Family(ErrorFamily::kAnalysis);
      }
      if (!same) {
        return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1036",
                     "Window Frame specified does not match the required frame of " + function->display + ".")
            .Family(ErrorFamily::kAnalysis);
      }
    }
  } else if (is_shift) {
    spec.frame.unit = WindowFrame::Unit::kRows;
    std::int64_t offset = function->children.size() > 1 && function->children[1]->kind == ExprKind::kLiteral
                              ? function->children[1]->value.integer()
                              : 1;
    offset = function->function == "lag" ? -offset : offset;
    const std::string bound = std::to_string(offset) + " FOLLOWING";
    spec.frame.lower.kind = BoundKind::kUnboundedPreceding;
    spec.frame.upper.kind = BoundKind::kUnboundedFollowing;
    shown_frame = "ROWS BETWEEN " + bound + " AND " + bound;
  } else if (is_rank) {
    spec.frame.unit = function->function == "cume_dist" ? WindowFrame::Unit::kRange : WindowFrame::Unit::kRows;
    spec.frame.lower.kind = BoundKind::kUnboundedPreceding;
    spec.frame.upper.kind = BoundKind::kCurrentRow;
  } else if (spec.order_by.empty()) {
    spec.frame.unit = WindowFrame::Unit::kRows;
    spec.frame.lower.kind = BoundKind::kUnboundedPreceding;
    spec.frame.upper.kind = BoundKind::kUnboundedFollowing;
  } else {
    spec.frame.unit = WindowFrame::Unit::kRange;
    spec.frame.lower.kind = BoundKind::kUnboundedPreceding;
    spec.frame.upper.kind = BoundKind::kCurrentRow;
  }
  std::string shown = ShowSpec(spec);
  if (!shown_frame.empty()) {
    const std::size_t frame = shown.rfind("ROWS BETWEEN ");
    shown = shown.substr(0, frame) + shown_frame;
  }
  const auto wrap = [&](const ExprPtr& inner) -> ExprPtr {
    auto made = std::make_shared<Expr>();
    made->kind = ExprKind::kWindow;
    made->type = inner->type;
    made->nullable = inner->nullable;
    made->can_fail = inner->can_fail;
    made->deterministic = inner->deterministic;
    made->ignore_nulls = inner->ignore_nulls;
    made->display = inner->display;
    made->window = spec;
    for (const ExprPtr& operand : OperandsOf(*made)) {
      made->can_fail = made->can_fail || operand->can_fail;
      made->deterministic = made->deterministic && operand->deterministic;
    }
    made->children.push_back(inner);
    return made;
  };
  ExprPtr made;
  if (is_window_call || function->kind == ExprKind::kAggregate) {
    made = wrap(function);
  } else {
    made = RewriteExpr(function, [&](const ExprPtr& node) -> ExprPtr {
      return node->kind == ExprKind::kAggregate ? wrap(node) : nullptr;
    });
  }
  return WithDisplay(made, function->display + " OVER (" + shown + ")");
}

}  // namespace fleuve::plan
