#include <set>

#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/expression/function_expression.hpp"
#include "engine/call_functions_internal.h"
#include "engine/carriers_internal.h"
#include "engine/functions/register_internal.h"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"

namespace fleuve::engine {

using plan::ExprKind;
using plan::ExprPtr;

bool DependsOnOrder(const std::string& aggregate) {
  static const std::set<std::string> kNames = {"spark_first",        "spark_last",        "spark_any_value",
                                               "spark_collect_list", "spark_collect_set", "spark_array_agg",
                                               "spark_listagg",      "spark_string_agg",  "spark_max_by",
                                               "spark_min_by",       "spark_mode",        "spark_histogram_numeric",
                                               "duck_first",         "duck_last",         "duck_any_value",
                                               "duck_list",          "duck_arg_max",      "duck_arg_min",
                                               "duck_string_agg",    "spark_map_agg",     "duck_mode"};
  return kNames.contains(std::string(WithoutForm(aggregate)));
}

ParsedPtr Translator::AggregateCall(const ExprPtr& expr, const Column* row) {
  duckdb::vector<ParsedPtr> arguments;
  for (const auto& child : expr->children) {
    arguments.push_back(Expr(child));
  }
  ParsedPtr filter = expr->filter != nullptr ? Expr(expr->filter) : nullptr;
  auto order = duckdb::make_uniq<duckdb::OrderModifier>();
  order->orders = Orders(expr->order_by);
  if (row != nullptr && !expr->distinct && DependsOnOrder(expr->function)) {
    order->orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST, Ref(*row));
  }
  std::string name;
  if (expr->function.starts_with("duck_")) {
    name = expr->function.substr(5);
  } else {
    name = kAggregateFunction;
    arguments.push_back(CallNumber(expr, {}, {}));
  }
  auto call = duckdb::make_uniq<duckdb::FunctionExpression>(name, std::move(arguments), std::move(filter),
                                                            std::move(order), expr->distinct);
  return Typed(std::move(call), expr->type);
}

Translator::Block Translator::Aggregate(const plan::LogicalPlan& node) {
  const auto& child = node.children[0];
  Block block = Plan(child);

  // The aggregate calls, each once, and whether they are all there is to compute.
  std::vector<ExprPtr> calls;
  bool plain = true;
  const auto add_call = [&calls](const ExprPtr& call) {
    for (const auto& known : calls) {
      if (plan::SameExpr(known, call)) {
        return;
      }
    }
    calls.push_back(call);
  };
  const std::function<void(const ExprPtr&)> collect = [&](const ExprPtr& expr) {
    if (expr->kind == ExprKind::kAggregate) {
      add_call(expr);
      return;
    }
    for (const auto& part : expr->children) {
      collect(part);
    }
  };
  bool positional = false;
  for (const auto& aggregate : node.aggregates) {
    plain = plain && aggregate->kind == ExprKind::kAggregate;
    positional = positional || HasPositionCall(aggregate);
    collect(aggregate);
  }
  for (const auto& key : node.grouping) {
    positional = positional || HasPositionCall(key);
  }
  bool ordered = positional;
  for (const auto& call : calls) {
    ordered = ordered || (DependsOnOrder(call->function) && !call->distinct &&
                          (!options_.single_thread || !call->order_by.empty()));
  }
  Column row;
  if (ordered) {
    block = WithRowNumber(std::move(block), child->output, &row);
  }

  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  std::vector<std::pair<ExprPtr, Column>> known;
  {
    Scope scope(*this, block.names);
    const Column* outer_row = std::exchange(row_column_, positional ? &row : nullptr);
    auto outer_replacements = std::exchange(replacements_, {});
    duckdb::GroupingSet set;
    for (std::size_t i = 0; i < node.grouping.size(); i++) {
      auto key = Expr(node.grouping[i]);
      const std::string name = "c" + std::to_string(i);
      key->SetAlias(name);
      select->select_list.push_back(std::move(key));
      select->groups.group_expressions.push_back(Constant(duckdb::Value::INTEGER(static_cast<std::int32_t>(i + 1))));
      set.insert(i);
      known.emplace_back(node.grouping[i], Column{alias, name});
      result.names[node.output[i].id.value] = Column{alias, name};
    }
    if (!node.grouping.empty()) {
      select->groups.grouping_sets.push_back(std::move(set));
    }
    for (const auto& call : calls) {
      const std::string name = "c" + std::to_string(select->select_list.size());
      auto expr = AggregateCall(call, ordered ? &row : nullptr);
      expr->SetAlias(name);
      select->select_list.push_back(std::move(expr));
      known.emplace_back(call, Column{alias, name});
    }
    if (calls.empty() && node.grouping.empty()) {
      // One row, whatever is below.
      select->select_list.push_back(Function("count_star", {}));
      select->select_list.back()->SetAlias("none");
    }
    row_column_ = outer_row;
    replacements_ = std::move(outer_replacements);
  }
  result.from = AsTable(std::move(select), alias);

  if (plain) {
    for (std::size_t i = 0; i < node.aggregates.size(); i++) {
      for (const auto& [expr, column] : known) {
        if (expr->kind == ExprKind::kAggregate && plan::SameExpr(expr, node.aggregates[i])) {
          result.names[node.output[node.grouping.size() + i].id.value] = column;
        }
      }
    }
    return result;
  }

  // What stands above the aggregates.
  const std::string outer_alias = NewAlias();
  Block outer;
  auto above = Select(result);
  Names grouping_names;
  for (std::size_t i = 0; i < node.grouping.size(); i++) {
    if (node.grouping[i]->kind == ExprKind::kAttribute) {
      grouping_names[node.grouping[i]->attribute.id.value] = known[i].second;
    }
    grouping_names[node.output[i].id.value] = known[i].second;
  }
  Scope scope(*this, grouping_names);
  auto outer_replacements = std::exchange(replacements_, known);
  for (std::size_t i = 0; i < node.output.size(); i++) {
    auto expr = i < node.grouping.size() ? Ref(known[i].second) : Expr(node.aggregates[i - node.grouping.size()]);
    const std::string name = "c" + std::to_string(i);
    expr->SetAlias(name);
    above->select_list.push_back(std::move(expr));
    outer.names[node.output[i].id.value] = Column{outer_alias, name};
  }
  replacements_ = std::move(outer_replacements);
  outer.from = AsTable(std::move(above), outer_alias);
  return outer;
}

}  // namespace fleuve::engine
