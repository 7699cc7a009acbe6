#include <set>

#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/expression/window_expression.hpp"
#include "engine/call_functions_internal.h"
#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"

namespace fleuve::engine {

using duckdb::ExpressionType;
using duckdb::WindowBoundary;
using plan::ExprKind;
using plan::ExprPtr;
using plan::WindowFrame;
using types::TypeKind;

namespace {

/// The function's name without the prefix of its home.
std::string BareName(const std::string& function) {
  for (const char* prefix : {"spark_", "duck_", "window_"}) {
    if (function.starts_with(prefix)) {
      return function.substr(std::string(prefix).size());
    }
  }
  return function;
}

const std::unordered_map<std::string, ExpressionType>& WindowFunctions() {
  static const std::unordered_map<std::string, ExpressionType> kFunctions = {
      {"row_number", ExpressionType::WINDOW_ROW_NUMBER},
      {"rank", ExpressionType::WINDOW_RANK},
      {"dense_rank", ExpressionType::WINDOW_RANK_DENSE},
      {"percent_rank", ExpressionType::WINDOW_PERCENT_RANK},
      {"cume_dist", ExpressionType::WINDOW_CUME_DIST},
      {"ntile", ExpressionType::WINDOW_NTILE},
      {"lag", ExpressionType::WINDOW_LAG},
      {"lead", ExpressionType::WINDOW_LEAD},
      {"first", ExpressionType::WINDOW_FIRST_VALUE},
      {"first_value", ExpressionType::WINDOW_FIRST_VALUE},
      {"last", ExpressionType::WINDOW_LAST_VALUE},
      {"last_value", ExpressionType::WINDOW_LAST_VALUE},
      {"any_value", ExpressionType::WINDOW_FIRST_VALUE},
      {"nth_value", ExpressionType::WINDOW_NTH_VALUE}};
  return kFunctions;
}

std::string DuckName(ExpressionType type) {
  switch (type) {
    case ExpressionType::WINDOW_ROW_NUMBER:
      return "row_number";
    case ExpressionType::WINDOW_RANK:
      return "rank";
    case ExpressionType::WINDOW_RANK_DENSE:
      return "dense_rank";
    case ExpressionType::WINDOW_PERCENT_RANK:
      return "percent_rank";
    case ExpressionType::WINDOW_CUME_DIST:
      return "cume_dist";
    case ExpressionType::WINDOW_NTILE:
      return "ntile";
    case ExpressionType::WINDOW_LAG:
      return "lag";
    case ExpressionType::WINDOW_LEAD:
      return "lead";
    case ExpressionType::WINDOW_FIRST_VALUE:
      return "first_value";
    case ExpressionType::WINDOW_LAST_VALUE:
      return "last_value";
    default:
      return "nth_value";
  }
}

/// A frame bound's distance as DuckDB wants it: not negative, an interval where the key is a time.
duckdb::Value Distance(const ExprPtr& offset, const types::DataType& key, bool rows) {
  if (offset == nullptr || offset->kind != ExprKind::kLiteral || offset->value.is_null()) {
    RaiseError(Error::Unsupported("a window frame whose bound is no literal"));
  }
  const auto& value = offset->value;
  const auto& type = offset->type;
  if (rows) {
    return duckdb::Value::BIGINT(std::abs(value.integer()));
  }
  switch (type.kind()) {
    case TypeKind::kDayTimeInterval:
      return duckdb::Value::INTERVAL(0, 0, std::abs(value.integer()));
    case TypeKind::kYearMonthInterval:
      return duckdb::Value::INTERVAL(static_cast<std::int32_t>(std::abs(value.integer())), 0, 0);
    case TypeKind::kCalendarInterval: {
      const auto& interval = value.interval();
      return duckdb::Value::INTERVAL(std::abs(interval.months), std::abs(interval.days), std::abs(interval.micros));
    }
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return CarrierValue(types::Value(std::abs(value.real())), type);
    case TypeKind::kDecimal: {
      const auto unscaled = value.decimal();
      return CarrierValue(types::Value(unscaled < 0 ? -unscaled : unscaled), type);
    }
    default:
      if (key.Is(TypeKind::kDate)) {
        return duckdb::Value::INTERVAL(0, static_cast<std::int32_t>(std::abs(value.integer())), 0);
      }
      return CarrierValue(types::Value(std::abs(value.integer())), type);
  }
}

bool IsNegative(const ExprPtr& offset) {
  if (offset == nullptr || offset->kind != ExprKind::kLiteral || offset->value.is_null()) {
    return false;
  }
  switch (offset->type.kind()) {
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return offset->value.real() < 0;
    case TypeKind::kDecimal:
      return offset->value.decimal() < 0;
    case TypeKind::kCalendarInterval: {
      const auto& interval = offset->value.interval();
      return interval.months < 0 || interval.days < 0 || interval.micros < 0;
    }
    default:
      return offset->value.integer() < 0;
  }
}

}  // namespace

ParsedPtr Translator::WindowCall(const ExprPtr& expr, const Column* row) {
  const auto& call = expr->children[0];
  const auto& spec = expr->window;
  const std::string name = BareName(call->function);
  const auto function = WindowFunctions().find(name);
  if (call->kind != ExprKind::kAggregate && (call->kind != ExprKind::kCall || function == WindowFunctions().end())) {
    // An expression over aggregates: each of them is computed over the window.
    const auto over = plan::RewriteExpr(call, [&expr](const ExprPtr& part) -> ExprPtr {
      if (part->kind != ExprKind::kAggregate) {
        return nullptr;
      }
      auto window = std::make_shared<plan::Expr>(*expr);
      window->children = {part};
      window->type = part->type;
      window->nullable = part->nullable;
      return window;
    });
    const Column* outer = std::exchange(window_row_, row);
    auto result = Expr(over);
    window_row_ = outer;
    return result;
  }
  const bool ranking = function != WindowFunctions().end() && !call->distinct && call->filter == nullptr;
  duckdb::unique_ptr<duckdb::WindowExpression> window;
  if (ranking) {
    window = duckdb::make_uniq<duckdb::WindowExpression>(function->second, "", "", DuckName(function->second));
    std::size_t arguments = call->children.size();
    if (function->second == ExpressionType::WINDOW_LAG || function->second == ExpressionType::WINDOW_LEAD) {
      if (arguments > 1) {
        window->offset_expr = Expr(call->children[1]);
      }
      if (arguments > 2) {
        window->default_expr = Expr(call->children[2]);
      }
      arguments = 1;
    }
    window->ignore_nulls = call->ignore_nulls || expr->ignore_nulls;
    if (name == "first" || name == "last" || name == "first_value" || name == "last_value" || name == "any_value") {
      // A second literal child says whether NULLs are left out.
      if (arguments > 1 && call->children[1]->kind == ExprKind::kLiteral &&
          call->children[1]->type.Is(TypeKind::kBoolean) && !call->children[1]->value.is_null()) {
        window->ignore_nulls = window->ignore_nulls || call->children[1]->value.boolean();
      }
      arguments = 1;
    }
    if (name == "nth_value" && arguments > 2) {
      if (call->children[2]->kind == ExprKind::kLiteral && call->children[2]->type.Is(TypeKind::kBoolean)) {
        window->ignore_nulls = window->ignore_nulls || call->children[2]->value.boolean();
      }
      arguments = 2;
    }
    if (function->second == ExpressionType::WINDOW_ROW_NUMBER || function->second == ExpressionType::WINDOW_RANK ||
        function->second == ExpressionType::WINDOW_RANK_DENSE ||
        function->second == ExpressionType::WINDOW_PERCENT_RANK ||
        function->second == ExpressionType::WINDOW_CUME_DIST) {
      arguments = 0;
    }
    for (std::size_t i = 0; i < arguments; i++) {
      window->children.push_back(Expr(call->children[i]));
    }
  } else {
    if (call->kind != ExprKind::kAggregate) {
      RaiseError(Error::Unsupported("the window function " + call->display));
    }
    const bool built_in = call->function.starts_with("duck_");
    window = duckdb::make_uniq<duckdb::WindowExpression>(ExpressionType::WINDOW_AGGREGATE, "", "",
                                                         built_in ? call->function.substr(5) : kAggregateFunction);
    for (const auto& child : call->children) {
      window->children.push_back(Expr(child));
    }
    if (!built_in) {
      window->children.push_back(CallNumber(call, {}, {}));
    }
    window->distinct = call->distinct;
    if (call->filter != nullptr) {
      window->filter_expr = Expr(call->filter);
    }
    window->arg_orders = Orders(call->order_by);
  }
  for (const auto& key : spec.partition_by) {
    window->partitions.push_back(Expr(key));
  }
  window->orders = Orders(spec.order_by);
  const bool rows = spec.frame.unit == WindowFrame::Unit::kRows;
  // Where the place among rows with equal keys shows, rows keep their order.
  static const std::set<std::string> kPositional = {"row_number", "ntile", "lag", "lead"};
  if (row != nullptr &&
      (kPositional.contains(name) || (rows && (!ranking || name == "first" || name == "last" || name == "first_value" ||
                                               name == "last_value" || name == "nth_value" || name == "any_value")))) {
    window->orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST, Ref(*row));
  } else if (row != nullptr && window->arg_orders.empty() &&
             (DependsOnOrder(call->function) || name == "nth_value" || name == "first_value" || name == "last_value")) {
    window->arg_orders = Orders(spec.order_by);
    window->arg_orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST, Ref(*row));
  }
  if (kPositional.contains(name) || name == "rank" || name == "dense_rank" || name == "percent_rank" ||
      name == "cume_dist") {
    // Their frame is fixed; DuckDB's default serves.
    window->start = WindowBoundary::UNBOUNDED_PRECEDING;
    window->end = WindowBoundary::CURRENT_ROW_RANGE;
  } else {
    const types::DataType key = spec.order_by.empty() ? types::DataType() : spec.order_by[0].expr->type;
    const auto bound = [&](const WindowFrame::Bound& frame, ParsedPtr* distance) {
      switch (frame.kind) {
        case WindowFrame::BoundKind::kUnboundedPreceding:
          return WindowBoundary::UNBOUNDED_PRECEDING;
        case WindowFrame::BoundKind::kUnboundedFollowing:
          return WindowBoundary::UNBOUNDED_FOLLOWING;
        case WindowFrame::BoundKind::kCurrentRow:
          return rows ? WindowBoundary::CURRENT_ROW_ROWS : WindowBoundary::CURRENT_ROW_RANGE;
        case WindowFrame::BoundKind::kOffset:
          break;
      }
      *distance = Constant(Distance(frame.offset, key, rows));
      if (IsNegative(frame.offset)) {
        return rows ? WindowBoundary::EXPR_PRECEDING_ROWS : WindowBoundary::EXPR_PRECEDING_RANGE;
      }
      return rows ? WindowBoundary::EXPR_FOLLOWING_ROWS : WindowBoundary::EXPR_FOLLOWING_RANGE;
    };
    window->start = bound(spec.frame.lower, &window->start_expr);
    window->end = bound(spec.frame.upper, &window->end_expr);
  }
  return Typed(std::move(window), expr->type);
}

Translator::Block Translator::Window(const plan::LogicalPlan& node) {
  const auto& child = node.children[0];
  Column row;
  Block block = WithRowNumber(Plan(child), child->output, &row);
  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  AddColumns(*select, block, child->output, alias, &result.names);
  Scope scope(*this, block.names);
  const Column* outer_row = std::exchange(row_column_, &row);
  for (std::size_t i = 0; i < node.exprs.size(); i++) {
    const auto& expr = node.exprs[i];
    if (expr->kind != ExprKind::kWindow) {
      RaiseError(Error::Internal("a window node holds " + expr->display));
    }
    auto window = WindowCall(expr, &row);
    const std::string name = "w" + std::to_string(i);
    window->SetAlias(name);
    select->select_list.push_back(std::move(window));
    result.names[node.output[node.output.size() - node.exprs.size() + i].id.value] = Column{alias, name};
  }
  row_column_ = outer_row;
  result.from = AsTable(std::move(select), alias);
  return result;
}

}  // namespace fleuve::engine
