#include <algorithm>
#include <tuple>
#include <unordered_set>

#include "engine/carriers_internal.h"
#include "engine/projection_chain_internal.h"
#include "engine/translate_internal.h"

namespace fleuve::engine {

using plan::ExprKind;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;

namespace {

/// From here on a chain of projections runs as one: the columns of all of its projections together.
constexpr std::size_t kWideChain = 2000;
constexpr std::size_t kFewProjections = 3;

/// True where the expression may be evaluated outside of DuckDB's own projections.
bool IsPlain(const ExprPtr& expr) {
  if (expr->kind == ExprKind::kAttribute) {
    return !expr->is_outer;
  }
  return expr->deterministic && !plan::AnyExpr(expr, [](const plan::Expr& node) {
           return node.is_outer || node.kind == ExprKind::kSubquery || node.kind == ExprKind::kAggregate ||
                  node.kind == ExprKind::kWindow;
         });
}

bool IsPlainProject(const LogicalPlan& node) {
  return node.kind == PlanKind::kProject && std::all_of(node.exprs.begin(), node.exprs.end(), IsPlain);
}

bool HoldsColumn(const ExprPtr& expr) {
  return plan::AnyExpr(expr, [](const plan::Expr& node) { return node.kind == ExprKind::kAttribute; });
}

/// The expressions' positions, small ones first: neighbouring projections that became one hold the same expression as
/// a column and inside of later columns, and what is inside is made before what holds it.
std::vector<std::size_t> BySize(const std::vector<ExprPtr>& exprs) {
  std::vector<std::pair<std::size_t, std::size_t>> sized;
  for (std::size_t i = 0; i < exprs.size(); i++) {
    std::size_t size = 0;
    if (exprs[i]->kind != ExprKind::kAttribute) {
      plan::VisitExpr(exprs[i], [&size](const plan::Expr&) { size++; });
    }
    sized.emplace_back(size, i);
  }
  std::sort(sized.begin(), sized.end());
  std::vector<std::size_t> order;
  for (const auto& [size, position] : sized) {
    order.push_back(position);
  }
  return order;
}

/// The columns that expressions refer to, and those that get another id.
std::unordered_set<std::int64_t> Sources(const std::vector<const LogicalPlan*>& projections) {
  std::unordered_set<std::int64_t> ids;
  for (const LogicalPlan* node : projections) {
    for (std::size_t i = 0; i < node->exprs.size(); i++) {
      const ExprPtr& expr = node->exprs[i];
      if (expr->kind != ExprKind::kAttribute) {
        plan::VisitExpr(expr, [&ids](const plan::Expr& part) {
          if (part.kind == ExprKind::kAttribute) {
            ids.insert(part.attribute.id.value);
          }
        });
      } else if (expr->attribute.id != node->output[i].id) {
        ids.insert(expr->attribute.id.value);
      }
    }
  }
  return ids;
}

}  // namespace

bool Translator::IsWideChain(const LogicalPlan& top) {
  std::size_t columns = 0;
  std::size_t projections = 0;
  for (const LogicalPlan* node = &top; node->kind == PlanKind::kProject; node = node->children[0].get()) {
    columns += node->exprs.size();
    projections += 1;
    if (columns >= kWideChain && projections >= kFewProjections) {
      break;
    }
  }
  if (columns < kWideChain || projections < kFewProjections) {
    return false;
  }
  projections = 0;
  for (const LogicalPlan* node = &top; projections < kFewProjections; node = node->children[0].get()) {
    if (!IsPlainProject(*node)) {
      return false;
    }
    projections += 1;
  }
  return true;
}

Translator::Block Translator::Chain(const LogicalPlan& top) {
  std::vector<const LogicalPlan*> projections{&top};
  while (IsPlainProject(*projections.back()->children[0])) {
    projections.push_back(projections.back()->children[0].get());
  }
  const plan::PlanPtr& base = projections.back()->children[0];
  Block block = Plan(base);

  // Where a column of the projection at hand is found: among the base's columns, or among the chain's steps.
  struct Place {
    bool computed = false;
    std::size_t index = 0;
  };
  std::unordered_map<std::int64_t, Place> places;
  std::vector<plan::Attribute> columns;
  for (const auto& attribute : base->output) {
    if (places.emplace(attribute.id.value, Place{false, columns.size()}).second) {
      columns.push_back(attribute);
    }
  }
  ParsedChain chain;
  Names names;
  std::vector<ParsedPtr> arguments;
  const std::unordered_set<std::int64_t> used = Sources(projections);
  for (const auto& attribute : columns) {
    if (used.contains(attribute.id.value)) {
      names[attribute.id.value] = Column{"", "v" + std::to_string(chain.inputs)};
      arguments.push_back(Ref(block.names.at(attribute.id.value)));
      chain.inputs += 1;
    }
  }
  const auto* outer_row = std::exchange(row_column_, nullptr);
  auto outer_replacements = std::exchange(replacements_, {});
  {
    const Scope scope(*this, names);
    for (auto node = projections.rbegin(); node != projections.rend(); ++node) {
      const auto& exprs = (*node)->exprs;
      const auto& output = (*node)->output;
      // All of a projection's expressions see the columns below it.
      std::vector<std::tuple<std::int64_t, Place, Column>> made;
      for (const std::size_t i : BySize(exprs)) {
        const std::int64_t id = output[i].id.value;
        if (exprs[i]->kind == ExprKind::kAttribute) {
          if (const std::int64_t source = exprs[i]->attribute.id.value; source != id) {
            made.emplace_back(id, places.at(source), names.at(source));
          }
          continue;
        }
        const std::size_t step = chain.steps.size();
        const Column column{"", "v" + std::to_string(chain.inputs + step)};
        chain.steps.push_back(
            {duckdb::shared_ptr<duckdb::ParsedExpression>(Expr(exprs[i]).release()), CarrierType(exprs[i]->type)});
        made.emplace_back(id, Place{true, step}, column);
        if (HoldsColumn(exprs[i])) {
          steps_[exprs[i].get()] = column;
        }
      }
      steps_.clear();
      for (auto& [id, place, column] : made) {
        places[id] = place;
        names[id] = std::move(column);
      }
    }
  }
  row_column_ = outer_row;
  replacements_ = std::move(outer_replacements);

  // Below: the base's columns and the chain's result. Above: the top's columns out of both.
  const std::string alias = NewAlias();
  const std::string outer_alias = NewAlias();
  auto inner = Select(block);
  Names base_names;
  AddColumns(*inner, block, columns, alias, &base_names);
  auto outer = duckdb::make_uniq<duckdb::SelectNode>();
  Block result;
  std::unordered_map<std::size_t, std::size_t> fields;
  for (const auto& attribute : top.output) {
    const Place place = places.at(attribute.id.value);
    ParsedPtr column;
    if (!place.computed) {
      column = Ref(base_names.at(columns[place.index].id.value));
    } else {
      const auto [field, added] = fields.emplace(place.index, chain.results.size());
      if (added) {
        chain.results.push_back(place.index);
      }
      column = FunctionOf("struct_extract_at", Ref(Column{alias, "chain"}),
                          Constant(duckdb::Value::BIGINT(static_cast<std::int64_t>(field->second) + 1)));
    }
    const std::string name = "c" + std::to_string(outer->select_list.size());
    column->SetAlias(name);
    outer->select_list.push_back(std::move(column));
    result.names[attribute.id.value] = Column{outer_alias, name};
  }
  arguments.push_back(Constant(duckdb::Value::BIGINT(state_.AddChain(std::move(chain)))));
  auto call = Function(kChainFunction, std::move(arguments));
  call->SetAlias("chain");
  inner->select_list.push_back(std::move(call));
  outer->from_table = AsTable(std::move(inner), alias);
  result.from = AsTable(std::move(outer), outer_alias);
  return result;
}

}  // namespace fleuve::engine
