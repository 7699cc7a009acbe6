#include "duckdb/parser/expression/subquery_expression.hpp"
#include "duckdb/parser/tableref/table_function_ref.hpp"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"
#include "plan/external.h"

namespace fleuve::engine {

Translator::Block Translator::External(const plan::PlanPtr& plan) {
  const plan::LogicalPlan& node = *plan;
  // The engine would have to run the operator once per row of the query around it.
  plan::VisitPlan(plan, [](const plan::LogicalPlan& below) {
    for (const auto& expr : plan::ExpressionsOf(below)) {
      if (plan::AnyExpr(expr, [](const plan::Expr& part) { return part.is_outer; })) {
        RaiseError(
            Error::Unsupported("a function of the user in a subquery, over rows that depend on the query around it"));
      }
    }
  });
  const auto& child = node.children.at(0);
  Block block = Plan(child);
  const std::string alias = NewAlias();
  auto select = Select(block);
  Scope scope(*this, block.names);
  const auto add = [&select](ParsedPtr expr) {
    expr->SetAlias("c" + std::to_string(select->select_list.size()));
    select->select_list.push_back(std::move(expr));
  };
  // First what passes, then the keys, then the arguments.
  if (plan::PassesChild(node)) {
    for (std::size_t i = 0; i < plan::PassedColumns(node); i++) {
      const auto& attribute = node.output[i];
      const auto found = block.names.find(attribute.id.value);
      if (found == block.names.end()) {
        RaiseError(Error::Internal("column " + attribute.name + " is not given by the plan below"));
      }
      add(Ref(found->second));
    }
  }
  for (const auto& key : node.grouping) {
    add(Expr(key));
  }
  for (const auto& expr : node.exprs) {
    add(Expr(expr));
  }
  if (select->select_list.empty()) {
    add(Constant(duckdb::Value::INTEGER(0)));
  }
  auto argument = duckdb::make_uniq<duckdb::SubqueryExpression>();
  argument->subquery_type = duckdb::SubqueryType::SCALAR;
  argument->subquery = duckdb::make_uniq<duckdb::SelectStatement>();
  argument->subquery->node = std::move(select);
  auto table = duckdb::make_uniq<duckdb::TableFunctionRef>();
  table->function = FunctionOf("fleuve_external", Constant(duckdb::Value::BIGINT(state_.AddExternal(plan))),
                               ParsedPtr(std::move(argument)));
  table->alias = alias;
  Block result;
  for (std::size_t i = 0; i < node.output.size(); i++) {
    const std::string name = "c" + std::to_string(i);
    table->column_name_alias.push_back(name);
    result.names[node.output[i].id.value] = Column{alias, name};
  }
  result.from = std::move(table);
  return result;
}

}  // namespace fleuve::engine
