#include <limits>

#include "duckdb/parser/expression/case_expression.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/expression/function_expression.hpp"
#include "duckdb/parser/expression/subquery_expression.hpp"
#include "duckdb/parser/expression/window_expression.hpp"
#include "duckdb/parser/query_node/set_operation_node.hpp"
#include "duckdb/parser/tableref/column_data_ref.hpp"
#include "duckdb/parser/tableref/emptytableref.hpp"
#include "duckdb/parser/tableref/joinref.hpp"
#include "duckdb/parser/tableref/subqueryref.hpp"
#include "duckdb/parser/tableref/table_function_ref.hpp"
#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"

namespace fleuve::engine {

using duckdb::ExpressionType;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

duckdb::unique_ptr<duckdb::SelectNode> Translator::Select(Block& block) {
  auto select = duckdb::make_uniq<duckdb::SelectNode>();
  select->from_table = std::move(block.from);
  select->where_clause = std::move(block.where);
  return select;
}

TableRefPtr Translator::AsTable(duckdb::unique_ptr<duckdb::QueryNode> node, const std::string& alias) {
  auto statement = duckdb::make_uniq<duckdb::SelectStatement>();
  statement->node = std::move(node);
  return duckdb::make_uniq<duckdb::SubqueryRef>(std::move(statement), alias);
}

void Translator::AddColumns(duckdb::SelectNode& select, const Block& block,
                            const std::vector<plan::Attribute>& attributes, const std::string& alias, Names* names) {
  for (const auto& attribute : attributes) {
    if (names->contains(attribute.id.value)) {
      continue;
    }
    const auto found = block.names.find(attribute.id.value);
    if (found == block.names.end()) {
      RaiseError(Error::Internal("column " + attribute.name + " is not given by the plan below"));
    }
    auto column = Ref(found->second);
    const std::string name = "c" + std::to_string(select.select_list.size());
    column->SetAlias(name);
    select.select_list.push_back(std::move(column));
    (*names)[attribute.id.value] = Column{alias, name};
  }
}

Translator::Block Translator::Close(Block block, const std::vector<plan::Attribute>& attributes) {
  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  AddColumns(*select, block, attributes, alias, &result.names);
  if (select->select_list.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
    select->select_list.back()->SetAlias("none");
  }
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::WithRowNumber(Block block, const std::vector<plan::Attribute>& attributes, Column* row) {
  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  AddColumns(*select, block, attributes, alias, &result.names);
  auto number = duckdb::make_uniq<duckdb::WindowExpression>(ExpressionType::WINDOW_ROW_NUMBER, "", "", "row_number");
  number->start = duckdb::WindowBoundary::UNBOUNDED_PRECEDING;
  number->end = duckdb::WindowBoundary::CURRENT_ROW_ROWS;
  auto index = FunctionOf("-", ParsedPtr(std::move(number)), Constant(duckdb::Value::BIGINT(1)));
  index->SetAlias("row");
  select->select_list.push_back(std::move(index));
  result.from = AsTable(std::move(select), alias);
  *row = Column{alias, "row"};
  return result;
}

duckdb::unique_ptr<duckdb::SelectStatement> Translator::Statement(const PlanPtr& plan,
                                                                  const std::vector<plan::Attribute>& columns) {
  Block block = Plan(plan);
  auto select = Select(block);
  for (const auto& attribute : columns) {
    const auto found = block.names.find(attribute.id.value);
    if (found == block.names.end()) {
      RaiseError(Error::Internal("column " + attribute.name + " is not given by the plan"));
    }
    auto column = Ref(found->second);
    column->SetAlias("c" + std::to_string(select->select_list.size()));
    select->select_list.push_back(std::move(column));
  }
  if (columns.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
  }
  auto statement = duckdb::make_uniq<duckdb::SelectStatement>();
  statement->node = std::move(select);
  return statement;
}

Translator::Block Translator::Plan(const PlanPtr& plan) {
  const LogicalPlan& node = *plan;
  switch (node.kind) {
    case PlanKind::kOneRow:
      return OneRow();
    case PlanKind::kRows:
      if (collection_leaf_ == plan.get()) {
        return Collection(node);
      }
      return LeafFunction(plan, "fleuve_rows");
    case PlanKind::kRange:
      return LeafFunction(plan, "fleuve_range");
    case PlanKind::kFileScan:
      switch (node.scan->format) {
        case plan::FileFormat::kParquet:
          return LeafFunction(plan, "fleuve_parquet");
        case plan::FileFormat::kJson:
          return LeafFunction(plan, "fleuve_json");
        case plan::FileFormat::kCsv:
          return LeafFunction(plan, "fleuve_csv");
        case plan::FileFormat::kText:
          return LeafFunction(plan, "fleuve_text");
        case plan::FileFormat::kBinaryFile:
          return LeafFunction(plan, "fleuve_binary");
      }
      break;
    case PlanKind::kTable:
      RaiseError(Error::Internal("the table " + (node.table ? node.table->name() : std::string("?")) +
                                 " was not planned into a scan"));
    case PlanKind::kStream:
      RaiseError(Error::Internal("a streaming source stands in a plan that runs as a batch"));
    case PlanKind::kProject:
      return IsWideChain(node) ? Chain(node) : Project(node);
    case PlanKind::kFilter:
      return Filter(node);
    case PlanKind::kAggregate:
      return Aggregate(node);
    case PlanKind::kJoin:
      return Join(node);
    case PlanKind::kUnion:
      return Union(node);
    case PlanKind::kIntersect:
      return SetOperation(node, false);
    case PlanKind::kExcept:
      return SetOperation(node, true);
    case PlanKind::kDistinct:
      return Distinct(node);
    case PlanKind::kSort:
      return Sort(node);
    case PlanKind::kLimit:
    case PlanKind::kOffset:
      return Limit(node);
    case PlanKind::kTail:
      return Tail(node);
    case PlanKind::kSample:
      return Sample(node);
    case PlanKind::kWindow:
      return Window(node);
    case PlanKind::kGenerate:
      return Generate(node);
    case PlanKind::kExpand:
      return Expand(node);
    case PlanKind::kRepartition:
    case PlanKind::kWatermark:
      return Plan(node.children[0]);
    case PlanKind::kMetrics:
      return Metrics(node, plan);
    case PlanKind::kExternal:
      return External(plan);
  }
  RaiseError(Error::Internal("unknown kind of plan node"));
}

Translator::Block Translator::OneRow() {
  Block block;
  block.from = duckdb::make_uniq<duckdb::EmptyTableRef>();
  return block;
}

Translator::Block Translator::Collection(const LogicalPlan& node) {
  const std::string alias = NewAlias();
  Block block;
  duckdb::vector<duckdb::string> names;
  for (std::size_t i = 0; i < collection_->ColumnCount(); i++) {
    names.push_back("c" + std::to_string(i));
    if (i < node.output.size()) {
      block.names[node.output[i].id.value] = Column{alias, names.back()};
    }
  }
  block.from = duckdb::make_uniq<duckdb::ColumnDataRef>(
      duckdb::optionally_owned_ptr<duckdb::ColumnDataCollection>(*collection_), std::move(names));
  block.from->alias = alias;
  return block;
}

Translator::Block Translator::LeafFunction(const PlanPtr& plan, const std::string& function) {
  const auto number = state_.AddLeaf(plan, state_.observer != nullptr);
  const std::string alias = NewAlias();
  Block block;
  auto table = duckdb::make_uniq<duckdb::TableFunctionRef>();
  std::vector<ParsedPtr> arguments;
  if (function == "fleuve_parquet") {
    // Its file list is found by text, as parquet_scan's is.
    const bool counted = state_.LeafAt(number)->counted;
    arguments.push_back(Constant(duckdb::Value(std::to_string(number))));
    table->function = Function(counted ? "fleuve_parquet_counted" : "fleuve_parquet", std::move(arguments));
  } else {
    arguments.push_back(Constant(duckdb::Value::BIGINT(number)));
    table->function = Function(function, std::move(arguments));
  }
  table->alias = alias;
  std::size_t plain = plan->output.size();
  const bool parquet = function == "fleuve_parquet";
  const bool with_row_index = plan->kind == PlanKind::kFileScan && plan->scan->with_row_index;
  const bool with_metadata = plan->kind == PlanKind::kFileScan && plan->scan->with_metadata;
  if (with_row_index && !parquet) {
    RaiseError(Error::Internal("only Parquet scans know the position of rows"));
  }
  plain -= with_row_index ? 1 : 0;
  plain -= parquet && with_metadata ? 1 : 0;
  for (std::size_t i = 0; i < plain; i++) {
    const std::string name = "c" + std::to_string(i);
    table->column_name_alias.push_back(name);
    block.names[plan->output[i].id.value] = Column{alias, name};
  }
  block.from = std::move(table);
  if (plain == plan->output.size()) {
    return block;
  }
  // The parts of `_metadata` are columns of the reader, so that filters on them leave out files.
  const std::string outer = NewAlias();
  Block result;
  auto select = Select(block);
  const std::vector<plan::Attribute> read(plan->output.begin(),
                                          plan->output.begin() + static_cast<std::ptrdiff_t>(plain));
  AddColumns(*select, block, read, outer, &result.names);
  if (with_metadata) {
    std::vector<ParsedPtr> parts;
    for (std::size_t i = 0; i < plan::MetadataColumnType().fields().size(); i++) {
      auto part = Ref(Column{alias, "c" + std::to_string(plain + i)});
      part->SetAlias("f" + std::to_string(i));
      parts.push_back(std::move(part));
    }
    auto metadata = Function("struct_pack", std::move(parts));
    metadata->SetAlias("metadata");
    select->select_list.push_back(std::move(metadata));
    result.names[plan->output[plain].id.value] = Column{outer, "metadata"};
  }
  if (with_row_index) {
    auto index = Ref(Column{alias, "file_row_number"});
    index->SetAlias("row_index");
    select->select_list.push_back(std::move(index));
    result.names[plan->output.back().id.value] = Column{outer, "row_index"};
  }
  result.from = AsTable(std::move(select), outer);
  return result;
}

Translator::Block Translator::Project(const LogicalPlan& node) {
  Block block = Plan(node.children[0]);
  bool only_columns = true;
  bool positional = false;
  for (const auto& expr : node.exprs) {
    only_columns =
        only_columns && expr->kind == plan::ExprKind::kAttribute && block.names.contains(expr->attribute.id.value);
    positional = positional || HasPositionCall(expr);
  }
  if (only_columns) {
    Names names;
    for (std::size_t i = 0; i < node.exprs.size(); i++) {
      names[node.output[i].id.value] = block.names.at(node.exprs[i]->attribute.id.value);
    }
    block.names = std::move(names);
    return block;
  }
  Column row;
  if (positional) {
    block = WithRowNumber(std::move(block), node.children[0]->output, &row);
  }
  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  Scope scope(*this, block.names);
  const Column* outer_row = std::exchange(row_column_, positional ? &row : nullptr);
  for (std::size_t i = 0; i < node.exprs.size(); i++) {
    auto expr = Expr(node.exprs[i]);
    const std::string name = "c" + std::to_string(i);
    expr->SetAlias(name);
    select->select_list.push_back(std::move(expr));
    result.names[node.output[i].id.value] = Column{alias, name};
  }
  row_column_ = outer_row;
  if (select->select_list.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
  }
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::Filter(const LogicalPlan& node) {
  Block block = Plan(node.children[0]);
  Column row;
  const bool positional = HasPositionCall(node.condition);
  if (positional) {
    block = WithRowNumber(std::move(block), node.children[0]->output, &row);
  }
  Scope scope(*this, block.names);
  const Column* outer_row = std::exchange(row_column_, positional ? &row : nullptr);
  auto condition = Conjunct(node.condition);
  row_column_ = outer_row;
  block.where = And(std::move(block.where), std::move(condition));
  return block;
}

namespace {

/// True where the condition is a conjunction of equalities, each between one expression of either side.
bool IsHashable(const plan::ExprPtr& condition, const std::vector<plan::Attribute>& left,
                const std::vector<plan::Attribute>& right) {
  if (condition == nullptr) {
    return false;
  }
  if (condition->kind != plan::ExprKind::kCall) {
    return false;
  }
  if (condition->function == "and") {
    for (const auto& child : condition->children) {
      if (!IsHashable(child, left, right)) {
        return false;
      }
    }
    return true;
  }
  if (condition->function != "eq" && condition->function != "eqnullsafe") {
    return false;
  }
  const auto side = [&](const plan::ExprPtr& expr) {
    int sides = 0;
    plan::VisitExpr(expr, [&](const plan::Expr& node) {
      if (node.kind == plan::ExprKind::kSubquery || node.is_outer) {
        sides |= 3;
      }
      if (node.kind != plan::ExprKind::kAttribute) {
        return;
      }
      for (const auto& attribute : left) {
        sides |= attribute.id == node.attribute.id ? 1 : 0;
      }
      for (const auto& attribute : right) {
        sides |= attribute.id == node.attribute.id ? 2 : 0;
      }
    });
    return sides;
  };
  const int a = side(condition->children[0]);
  const int b = side(condition->children[1]);
  return (a == 1 && b == 2) || (a == 2 && b == 1);
}

}  // namespace

Translator::Block Translator::Join(const LogicalPlan& node) {
  const auto& left_plan = node.children[0];
  const auto& right_plan = node.children[1];
  Block left = Plan(left_plan);
  Block right;
  if (node.lateral) {
    // The right side is a subquery that names columns of the left one.
    left = Close(std::move(left), left_plan->output);
    Scope scope(*this, left.names);
    right = Close(Plan(right_plan), right_plan->output);
  } else {
    right = Plan(right_plan);
  }
  if (left.where != nullptr || left.from->type == duckdb::TableReferenceType::EMPTY_FROM) {
    left = Close(std::move(left), left_plan->output);
  }
  if (right.where != nullptr || right.from->type == duckdb::TableReferenceType::EMPTY_FROM ||
      right.from->type == duckdb::TableReferenceType::JOIN) {
    right = Close(std::move(right), right_plan->output);
  }
  Names both = left.names;
  both.insert(right.names.begin(), right.names.end());
  if (node.condition != nullptr && HasPositionCall(node.condition)) {
    RaiseError(Error::Unsupported("a join condition that depends on the position of rows"));
  }

  const bool semi = node.join_type == plan::JoinType::kLeftSemi;
  const bool anti = node.join_type == plan::JoinType::kLeftAnti;
  if ((semi || anti) && !IsHashable(node.condition, left_plan->output, right_plan->output)) {
    // [NOT] EXISTS (SELECT 1 FROM right WHERE condition)
    Block result;
    {
      Scope scope(*this, both);
      right.where = node.condition != nullptr ? Expr(node.condition) : nullptr;
    }
    auto select = Select(right);
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(1)));
    auto exists = duckdb::make_uniq<duckdb::SubqueryExpression>();
    exists->subquery_type = duckdb::SubqueryType::EXISTS;
    exists->subquery = duckdb::make_uniq<duckdb::SelectStatement>();
    exists->subquery->node = std::move(select);
    left.where = anti ? Operator(ExpressionType::OPERATOR_NOT, std::move(exists)) : ParsedPtr(std::move(exists));
    return left;
  }

  auto join = duckdb::make_uniq<duckdb::JoinRef>(duckdb::JoinRefType::REGULAR);
  join->left = std::move(left.from);
  join->right = std::move(right.from);
  if (node.condition != nullptr) {
    Scope scope(*this, both);
    join->condition = Expr(node.condition);
  }
  switch (node.join_type) {
    case plan::JoinType::kInner:
    case plan::JoinType::kCross:
      join->type = duckdb::JoinType::INNER;
      if (join->condition == nullptr) {
        join->ref_type = duckdb::JoinRefType::CROSS;
      }
      break;
    case plan::JoinType::kLeft:
      join->type = duckdb::JoinType::LEFT;
      break;
    case plan::JoinType::kRight:
      join->type = duckdb::JoinType::RIGHT;
      break;
    case plan::JoinType::kFull:
      join->type = duckdb::JoinType::OUTER;
      break;
    case plan::JoinType::kLeftSemi:
      join->type = duckdb::JoinType::SEMI;
      break;
    case plan::JoinType::kLeftAnti:
      join->type = duckdb::JoinType::ANTI;
      break;
  }
  if (join->condition == nullptr && join->ref_type != duckdb::JoinRefType::CROSS) {
    join->condition = Constant(duckdb::Value::BOOLEAN(true));
  }
  Block result;
  result.from = std::move(join);
  result.names = semi || anti ? std::move(left.names) : std::move(both);
  return result;
}

Translator::Block Translator::Union(const LogicalPlan& node) {
  auto set = duckdb::make_uniq<duckdb::SetOperationNode>();
  set->setop_type = duckdb::SetOperationType::UNION;
  set->setop_all = true;
  for (const auto& child : node.children) {
    if (child->output.size() != node.output.size()) {
      RaiseError(Error::Internal("a union's children differ in their number of columns"));
    }
    for (std::size_t i = 0; i < node.output.size(); i++) {
      if (CarrierType(child->output[i].type) != CarrierType(node.output[i].type)) {
        RaiseError(Error::Internal("column " + node.output[i].name + " of a union has two types"));
      }
    }
    set->children.push_back(std::move(Statement(child, child->output)->node));
  }
  const std::string alias = NewAlias();
  Block result;
  for (std::size_t i = 0; i < node.output.size(); i++) {
    result.names[node.output[i].id.value] = Column{alias, "c" + std::to_string(i)};
  }
  if (set->children.size() == 1) {
    result.from = AsTable(std::move(set->children[0]), alias);
  } else {
    result.from = AsTable(std::move(set), alias);
  }
  return result;
}

Translator::Block Translator::SetOperation(const LogicalPlan& node, bool except) {
  auto set = duckdb::make_uniq<duckdb::SetOperationNode>();
  set->setop_type = except ? duckdb::SetOperationType::EXCEPT : duckdb::SetOperationType::INTERSECT;
  set->setop_all = node.all;
  for (const auto& child : node.children) {
    set->children.push_back(std::move(Statement(child, child->output)->node));
  }
  const std::string alias = NewAlias();
  Block result;
  for (std::size_t i = 0; i < node.output.size(); i++) {
    result.names[node.output[i].id.value] = Column{alias, "c" + std::to_string(i)};
  }
  result.from = AsTable(std::move(set), alias);
  return result;
}

Translator::Block Translator::Distinct(const LogicalPlan& node) {
  const auto& output = node.children[0]->output;
  Block block = Plan(node.children[0]);
  const std::string alias = NewAlias();
  Block result;
  auto distinct = duckdb::make_uniq<duckdb::DistinctModifier>();
  if (node.keys.empty() && !output.empty()) {
    auto select = Select(block);
    AddColumns(*select, block, output, alias, &result.names);
    select->modifiers.push_back(std::move(distinct));
    result.from = AsTable(std::move(select), alias);
    return result;
  }
  // The first row of each key is kept, so rows must be told apart by their order.
  Column row;
  block = WithRowNumber(std::move(block), output, &row);
  auto select = Select(block);
  AddColumns(*select, block, output, alias, &result.names);
  for (const auto& key : node.keys) {
    distinct->distinct_on_targets.push_back(Ref(block.names.at(key.value)));
  }
  if (distinct->distinct_on_targets.empty()) {
    auto limit = duckdb::make_uniq<duckdb::LimitModifier>();
    limit->limit = Constant(duckdb::Value::BIGINT(1));
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
    select->modifiers.push_back(std::move(limit));
  } else {
    auto order = duckdb::make_uniq<duckdb::OrderModifier>();
    order->orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST, Ref(row));
    select->modifiers.push_back(std::move(distinct));
    select->modifiers.push_back(std::move(order));
  }
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::Sort(const LogicalPlan& node) {
  const auto& output = node.children[0]->output;
  Block block = Plan(node.children[0]);
  // Rows with equal keys keep their order.
  Column row;
  block = WithRowNumber(std::move(block), output, &row);

  // Keys that are no plain columns become columns first.
  bool plain = true;
  for (const auto& key : node.order_by) {
    plain = plain && key.expr->kind == plan::ExprKind::kAttribute;
  }
  const std::string alias = NewAlias();
  Block result;
  auto order = duckdb::make_uniq<duckdb::OrderModifier>();
  if (plain) {
    auto select = Select(block);
    AddColumns(*select, block, output, alias, &result.names);
    Scope scope(*this, block.names);
    order->orders = Orders(node.order_by);
    order->orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST, Ref(row));
    select->modifiers.push_back(std::move(order));
    result.from = AsTable(std::move(select), alias);
    return result;
  }
  const std::string inner_alias = NewAlias();
  Block inner;
  auto keys = Select(block);
  AddColumns(*keys, block, output, inner_alias, &inner.names);
  auto row_column = Ref(row);
  row_column->SetAlias("row");
  keys->select_list.push_back(std::move(row_column));
  const Column* outer_row = std::exchange(row_column_, &row);
  {
    Scope scope(*this, block.names);
    auto orders = Orders(node.order_by);
    for (std::size_t i = 0; i < orders.size(); i++) {
      const std::string name = "k" + std::to_string(i);
      auto key = std::move(orders[i].expression);
      key->SetAlias(name);
      keys->select_list.push_back(std::move(key));
      order->orders.emplace_back(orders[i].type, orders[i].null_order, Ref(Column{inner_alias, name}));
    }
  }
  row_column_ = outer_row;
  order->orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST,
                             Ref(Column{inner_alias, "row"}));
  inner.from = AsTable(std::move(keys), inner_alias);
  auto select = Select(inner);
  AddColumns(*select, inner, output, alias, &result.names);
  select->modifiers.push_back(std::move(order));
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::Limit(const LogicalPlan& node) {
  const auto& output = node.children[0]->output;
  Block block = Plan(node.children[0]);
  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  AddColumns(*select, block, output, alias, &result.names);
  if (select->select_list.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
  }
  auto limit = duckdb::make_uniq<duckdb::LimitModifier>();
  auto count = Constant(duckdb::Value::BIGINT(std::max<std::int64_t>(node.count, 0)));
  (node.kind == PlanKind::kLimit ? limit->limit : limit->offset) = std::move(count);
  select->modifiers.push_back(std::move(limit));
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::Tail(const LogicalPlan& node) {
  const auto& output = node.children[0]->output;
  Column row;
  Block block = WithRowNumber(Plan(node.children[0]), output, &row);
  // The last rows: order by the row's index from the end, keep some, turn around.
  const std::string inner_alias = NewAlias();
  Block inner;
  auto last = Select(block);
  AddColumns(*last, block, output, inner_alias, &inner.names);
  auto row_column = Ref(row);
  row_column->SetAlias("row");
  last->select_list.push_back(std::move(row_column));
  auto order = duckdb::make_uniq<duckdb::OrderModifier>();
  order->orders.emplace_back(duckdb::OrderType::DESCENDING, duckdb::OrderByNullType::NULLS_LAST, Ref(row));
  last->modifiers.push_back(std::move(order));
  auto limit = duckdb::make_uniq<duckdb::LimitModifier>();
  limit->limit = Constant(duckdb::Value::BIGINT(std::max<std::int64_t>(node.count, 0)));
  last->modifiers.push_back(std::move(limit));
  inner.from = AsTable(std::move(last), inner_alias);

  const std::string alias = NewAlias();
  Block result;
  auto select = Select(inner);
  AddColumns(*select, inner, output, alias, &result.names);
  if (select->select_list.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
  }
  auto forward = duckdb::make_uniq<duckdb::OrderModifier>();
  forward->orders.emplace_back(duckdb::OrderType::ASCENDING, duckdb::OrderByNullType::NULLS_FIRST,
                               Ref(Column{inner_alias, "row"}));
  select->modifiers.push_back(std::move(forward));
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::Sample(const LogicalPlan& node) {
  if (node.sample.with_replacement) {
    // Each row is repeated as often as the generator says.
    Column row;
    const auto& output = node.children[0]->output;
    Block block = WithRowNumber(Plan(node.children[0]), output, &row);
    const std::string alias = NewAlias();
    Block result;
    auto select = Select(block);
    AddColumns(*select, block, output, alias, &result.names);
    auto copies = FunctionOf("fleuve_poisson_sample", Ref(row), Constant(duckdb::Value::DOUBLE(node.sample.upper)),
                             Constant(duckdb::Value::BIGINT(node.sample.seed)));
    auto unnest = FunctionOf("unnest", std::move(copies));
    unnest->SetAlias("copy");
    select->select_list.push_back(std::move(unnest));
    result.from = AsTable(std::move(select), alias);
    return result;
  }
  Column row;
  Block block = WithRowNumber(Plan(node.children[0]), node.children[0]->output, &row);
  block.where =
      FunctionOf("fleuve_bernoulli_sample", Ref(row), Constant(duckdb::Value::DOUBLE(node.sample.lower)),
                 Constant(duckdb::Value::DOUBLE(node.sample.upper)), Constant(duckdb::Value::BIGINT(node.sample.seed)));
  return block;
}

Translator::Block Translator::Expand(const LogicalPlan& node) {
  const auto& output = node.children[0]->output;
  // One copy of the row for each projection, told apart by `which`.
  Block block = Plan(node.children[0]);
  const std::string inner_alias = NewAlias();
  Block inner;
  auto copies = Select(block);
  AddColumns(*copies, block, output, inner_alias, &inner.names);
  duckdb::vector<duckdb::Value> numbers;
  for (std::size_t i = 0; i < node.projections.size(); i++) {
    numbers.push_back(duckdb::Value::INTEGER(static_cast<std::int32_t>(i)));
  }
  auto which = FunctionOf("unnest", Constant(duckdb::Value::LIST(duckdb::LogicalType::INTEGER, std::move(numbers))));
  which->SetAlias("which");
  copies->select_list.push_back(std::move(which));
  inner.from = AsTable(std::move(copies), inner_alias);

  const std::string alias = NewAlias();
  Block result;
  auto select = Select(inner);
  Scope scope(*this, inner.names);
  for (std::size_t column = 0; column < node.output.size(); column++) {
    bool same = true;
    for (const auto& projection : node.projections) {
      same = same && plan::SameExpr(projection[column], node.projections[0][column]);
    }
    ParsedPtr expr;
    if (same) {
      expr = Expr(node.projections[0][column]);
    } else {
      auto choice = duckdb::make_uniq<duckdb::CaseExpression>();
      for (std::size_t i = 0; i < node.projections.size(); i++) {
        duckdb::CaseCheck check;
        check.when_expr = Compare(ExpressionType::COMPARE_EQUAL, Ref(Column{inner_alias, "which"}),
                                  Constant(duckdb::Value::INTEGER(static_cast<std::int32_t>(i))));
        check.then_expr = Expr(node.projections[i][column]);
        choice->case_checks.push_back(std::move(check));
      }
      choice->else_expr = Constant(duckdb::Value(CarrierType(node.output[column].type)));
      expr = Typed(std::move(choice), node.output[column].type);
    }
    const std::string name = "c" + std::to_string(column);
    expr->SetAlias(name);
    select->select_list.push_back(std::move(expr));
    result.names[node.output[column].id.value] = Column{alias, name};
  }
  result.from = AsTable(std::move(select), alias);
  return result;
}

}  // namespace fleuve::engine
