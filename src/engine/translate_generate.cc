#include <set>

#include "duckdb/parser/expression/case_expression.hpp"
#include "duckdb/parser/expression/cast_expression.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/expression/subquery_expression.hpp"
#include "duckdb/parser/tableref/table_function_ref.hpp"
#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"

namespace fleuve::engine {

using duckdb::ExpressionType;
using types::TypeKind;

Translator::Block Translator::Generate(const plan::LogicalPlan& node) {
  const auto& child = node.children[0];
  const auto& spec = node.generator;
  std::string name = spec.function;
  for (const char* prefix : {"spark_", "duck_"}) {
    if (name.starts_with(prefix)) {
      name = name.substr(std::string(prefix).size());
    }
  }
  bool outer = spec.outer;
  if (name.ends_with("_outer")) {
    outer = true;
    name = name.substr(0, name.size() - 6);
  }
  const std::size_t generated = node.output.size() - [&] {
    std::size_t kept = 0;
    for (const auto& attribute : node.output) {
      for (const auto& below : child->output) {
        if (below.id == attribute.id) {
          kept++;
          break;
        }
      }
    }
    return kept;
  }();
  const std::vector<plan::Attribute> columns(node.output.end() - static_cast<std::ptrdiff_t>(generated),
                                             node.output.end());
  const auto& arguments = spec.arguments;
  bool positional = false;
  for (const auto& argument : arguments) {
    positional = positional || HasPositionCall(argument);
  }

  Block block = Plan(child);
  Column row;
  if (positional) {
    block = WithRowNumber(std::move(block), child->output, &row);
  }
  // First the list that is taken apart, as a column; then one row per element; then the element's parts.
  const std::string list_alias = NewAlias();
  Block with_list;
  auto lists = Select(block);
  AddColumns(*lists, block, child->output, list_alias, &with_list.names);
  bool entries_of_map = false;
  bool fields_of_struct = false;
  bool with_position = false;
  duckdb::LogicalType element;
  {
    Scope scope(*this, block.names);
    const Column* outer_row = std::exchange(row_column_, positional ? &row : nullptr);
    ParsedPtr list;
    if (name == "stack") {
      // children: number of rows, then values row by row.
      if (arguments.empty() || arguments[0]->kind != plan::ExprKind::kLiteral) {
        RaiseError(Error::Unsupported("stack with a number of rows that is no literal"));
      }
      const auto rows = static_cast<std::size_t>(arguments[0]->value.integer());
      const std::size_t width = columns.size();
      std::vector<ParsedPtr> elements;
      duckdb::child_list_t<duckdb::LogicalType> fields;
      for (std::size_t i = 0; i < width; i++) {
        fields.emplace_back("f" + std::to_string(i), CarrierType(columns[i].type));
      }
      element = duckdb::LogicalType::STRUCT(fields);
      for (std::size_t r = 0; r < rows; r++) {
        std::vector<ParsedPtr> parts;
        for (std::size_t i = 0; i < width; i++) {
          const std::size_t at = 1 + r * width + i;
          ParsedPtr part =
              at < arguments.size() ? Expr(arguments[at]) : Constant(duckdb::Value(CarrierType(columns[i].type)));
          part->SetAlias("f" + std::to_string(i));
          parts.push_back(std::move(part));
        }
        elements.push_back(Function("struct_pack", std::move(parts)));
      }
      list = duckdb::make_uniq<duckdb::CastExpression>(duckdb::LogicalType::LIST(element),
                                                       Function("list_value", std::move(elements)));
      fields_of_struct = true;
    } else if (name == "explode" || name == "posexplode" || name == "inline") {
      const auto& type = arguments.at(0)->type;
      list = Expr(arguments[0]);
      with_position = name == "posexplode";
      if (type.Is(TypeKind::kMap)) {
        // A map is a list of key-value pairs.
        entries_of_map = true;
        element = duckdb::LogicalType::STRUCT({{"key", CarrierType(type.key())}, {"value", CarrierType(type.value())}});
        list = FunctionOf("map_entries", std::move(list));
      } else if (type.Is(TypeKind::kArray)) {
        element = CarrierType(type.element());
        fields_of_struct = name == "inline";
      } else if (type.Is(TypeKind::kVoid)) {
        element = duckdb::LogicalType::INTEGER;
        list = Constant(duckdb::Value(duckdb::LogicalType::LIST(element)));
      } else {
        RaiseError(Error::Internal(name + " over a value of type " + type.SimpleString()));
      }
    } else {
      // A function of ours that gives array<struct<columns>>.
      std::vector<types::StructField> fields;
      for (const auto& column : columns) {
        fields.push_back({column.name, column.type, true, Json()});
      }
      const auto type = types::DataType::Array(types::DataType::Struct(std::move(fields)));
      list = Expr(plan::MakeCall("spark_" + name, arguments, type, true, true, true));
      element = CarrierType(type.element());
      fields_of_struct = true;
    }
    row_column_ = outer_row;
    list->SetAlias("list");
    lists->select_list.push_back(std::move(list));
  }
  with_list.from = AsTable(std::move(lists), list_alias);
  const Column list{list_alias, "list"};

  const std::string element_alias = NewAlias();
  Block elements;
  auto unnest = Select(with_list);
  AddColumns(*unnest, with_list, child->output, element_alias, &elements.names);
  const auto padded = [&](ParsedPtr value, const duckdb::LogicalType& type) {
    if (!outer) {
      return value;
    }
    // No element: one NULL.
    auto choice = duckdb::make_uniq<duckdb::CaseExpression>();
    duckdb::CaseCheck check;
    check.when_expr =
        Compare(ExpressionType::COMPARE_GREATERTHAN, FunctionOf("len", Ref(list)), Constant(duckdb::Value::BIGINT(0)));
    check.then_expr = std::move(value);
    choice->case_checks.push_back(std::move(check));
    choice->else_expr = Constant(duckdb::Value::LIST(type, {duckdb::Value(type)}));
    return ParsedPtr(std::move(choice));
  };
  if (with_position) {
    auto positions = FunctionOf("range", FunctionOf("len", Ref(list)));
    auto position = FunctionOf("unnest", padded(std::move(positions), duckdb::LogicalType::BIGINT));
    position->SetAlias("position");
    unnest->select_list.push_back(std::move(position));
  }
  auto one = FunctionOf("unnest", padded(Ref(list), element));
  one->SetAlias("element");
  unnest->select_list.push_back(std::move(one));
  elements.from = AsTable(std::move(unnest), element_alias);

  const std::string alias = NewAlias();
  Block result;
  auto select = Select(elements);
  AddColumns(*select, elements, child->output, alias, &result.names);
  std::vector<ParsedPtr> values;
  const Column element_column{element_alias, "element"};
  if (with_position) {
    values.push_back(duckdb::make_uniq<duckdb::CastExpression>(duckdb::LogicalType::INTEGER,
                                                               Ref(Column{element_alias, "position"})));
  }
  if (entries_of_map) {
    values.push_back(FunctionOf("struct_extract", Ref(element_column), Constant(duckdb::Value("key"))));
    values.push_back(FunctionOf("struct_extract", Ref(element_column), Constant(duckdb::Value("value"))));
  } else if (fields_of_struct) {
    for (std::size_t i = 0; i < columns.size(); i++) {
      values.push_back(
          FunctionOf("struct_extract", Ref(element_column), Constant(duckdb::Value("f" + std::to_string(i)))));
    }
  } else {
    values.push_back(Ref(element_column));
  }
  if (values.size() != columns.size()) {
    RaiseError(Error::Internal(name + " gives " + std::to_string(values.size()) + " columns where the plan has " +
                               std::to_string(columns.size())));
  }
  for (std::size_t i = 0; i < values.size(); i++) {
    const std::string value_name = "g" + std::to_string(i);
    auto value = Typed(std::move(values[i]), columns[i].type);
    value->SetAlias(value_name);
    select->select_list.push_back(std::move(value));
    result.names[columns[i].id.value] = Column{alias, value_name};
  }
  result.from = AsTable(std::move(select), alias);
  return result;
}

Translator::Block Translator::Metrics(const plan::LogicalPlan& node, const plan::PlanPtr& plan) {
  Block block = Plan(node.children[0]);
  if (state_.observer == nullptr) {
    return block;
  }
  const auto& output = node.children[0]->output;
  // The rows pass an operator that keeps what the aggregates need of each.
  MetricsRows kept;
  kept.node = plan;
  std::set<std::int64_t> needed;
  const auto need = [&needed](const plan::ExprPtr& expr) {
    if (expr != nullptr) {
      plan::VisitExpr(expr, [&needed](const plan::Expr& part) {
        if (part.kind == plan::ExprKind::kAttribute) {
          needed.insert(part.attribute.id.value);
        }
        const auto add = [&needed](const plan::Expr& inner) {
          if (inner.kind == plan::ExprKind::kAttribute) {
            needed.insert(inner.attribute.id.value);
          }
        };
        if (part.filter != nullptr) {
          plan::VisitExpr(part.filter, add);
        }
        for (const auto& key : part.order_by) {
          plan::VisitExpr(key.expr, add);
        }
      });
    }
  };
  for (const auto& expr : node.exprs) {
    need(expr);
  }
  for (const auto& attribute : output) {
    if (needed.erase(attribute.id.value) != 0) {
      kept.inputs.push_back(attribute);
    }
  }
  const std::string alias = NewAlias();
  Block result;
  auto select = Select(block);
  AddColumns(*select, block, output, alias, &result.names);
  if (select->select_list.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
  }
  const std::size_t passed = select->select_list.size();
  kept.passed = passed;
  for (const auto& attribute : kept.inputs) {
    select->select_list.push_back(Ref(block.names.at(attribute.id.value)));
  }
  if (kept.inputs.empty()) {
    select->select_list.push_back(Constant(duckdb::Value::INTEGER(0)));
  }
  const auto number = state_.AddMetrics(std::move(kept));
  auto argument = duckdb::make_uniq<duckdb::SubqueryExpression>();
  argument->subquery_type = duckdb::SubqueryType::SCALAR;
  argument->subquery = duckdb::make_uniq<duckdb::SelectStatement>();
  argument->subquery->node = std::move(select);
  auto table = duckdb::make_uniq<duckdb::TableFunctionRef>();
  table->function =
      FunctionOf("fleuve_metrics", Constant(duckdb::Value::BIGINT(number)), ParsedPtr(std::move(argument)));
  table->alias = alias;
  for (std::size_t i = 0; i < passed; i++) {
    table->column_name_alias.push_back("c" + std::to_string(i));
  }
  result.from = std::move(table);
  return result;
}

}  // namespace fleuve::engine
