#include <set>

#include "duckdb/parser/expression/case_expression.hpp"
#include "duckdb/parser/expression/cast_expression.hpp"
#include "duckdb/parser/expression/columnref_expression.hpp"
#include "duckdb/parser/expression/comparison_expression.hpp"
#include "duckdb/parser/expression/conjunction_expression.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/expression/function_expression.hpp"
#include "duckdb/parser/expression/operator_expression.hpp"
#include "duckdb/parser/expression/subquery_expression.hpp"
#include "engine/call_functions_internal.h"
#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"
#include "types/numeric_rank.h"

namespace fleuve::engine {

using duckdb::ExpressionType;
using duckdb::LogicalType;
using plan::ExprKind;
using types::DataType;
using types::TypeKind;

ParsedPtr Constant(duckdb::Value value) { return duckdb::make_uniq<duckdb::ConstantExpression>(std::move(value)); }

ParsedPtr Function(const std::string& name, std::vector<ParsedPtr> children) {
  duckdb::vector<ParsedPtr> list;
  for (auto& child : children) {
    list.push_back(std::move(child));
  }
  return duckdb::make_uniq<duckdb::FunctionExpression>(name, std::move(list));
}

ParsedPtr Compare(ExpressionType type, ParsedPtr a, ParsedPtr b) {
  return duckdb::make_uniq<duckdb::ComparisonExpression>(type, std::move(a), std::move(b));
}

ParsedPtr Operator(ExpressionType type, ParsedPtr a) {
  return duckdb::make_uniq<duckdb::OperatorExpression>(type, std::move(a));
}

ParsedPtr And(ParsedPtr a, ParsedPtr b) {
  if (a == nullptr) {
    return b;
  }
  if (b == nullptr) {
    return a;
  }
  return duckdb::make_uniq<duckdb::ConjunctionExpression>(ExpressionType::CONJUNCTION_AND, std::move(a), std::move(b));
}

bool DependsOnPosition(const std::string& function) {
  static const std::set<std::string> kNames = {
      "spark_rand",    "spark_randn",   "spark_uuid",          "spark_shuffle",
      "spark_randstr", "spark_uniform", "spark_random_string", "spark_monotonically_increasing_id"};
  return kNames.contains(function);
}

bool HasPositionCall(const plan::ExprPtr& expr) {
  if (expr->deterministic) {
    return false;
  }
  bool found = false;
  plan::VisitExpr(expr, [&found](const plan::Expr& node) {
    found = found || (node.kind == ExprKind::kCall && DependsOnPosition(node.function));
  });
  return found;
}

namespace {

/// Types that hold the same carrier values, whatever their field names and nullability.
bool SameValues(const DataType& from, const DataType& to) {
  if (from.IsString() && to.Is(TypeKind::kString)) {
    return true;
  }
  if (from.kind() != to.kind()) {
    return false;
  }
  switch (from.kind()) {
    case TypeKind::kArray:
      return SameValues(from.element(), to.element());
    case TypeKind::kMap:
      return SameValues(from.key(), to.key()) && SameValues(from.value(), to.value());
    case TypeKind::kStruct: {
      if (from.fields().size() != to.fields().size()) {
        return false;
      }
      for (std::size_t i = 0; i < from.fields().size(); i++) {
        if (!SameValues(from.fields()[i].type, to.fields()[i].type)) {
          return false;
        }
      }
      return true;
    }
    case TypeKind::kDecimal:
      return from.precision() == to.precision() && from.scale() == to.scale();
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return from.length() == to.length();
    default:
      return true;
  }
}

int IntegerDigits(TypeKind kind) {
  switch (kind) {
    case TypeKind::kByte:
      return 3;
    case TypeKind::kShort:
      return 5;
    case TypeKind::kInt:
      return 10;
    default:
      return 20;
  }
}

/// Casts that DuckDB does as Spark does, and that cannot fail.
bool IsNativeCast(const DataType& from, const DataType& to) {
  if (from.IsIntegral()) {
    if (to.IsIntegral()) {
      return types::IntegerRank(from.kind()) <= types::IntegerRank(to.kind());
    }
    if (to.Is(TypeKind::kDouble)) {
      return true;
    }
    if (to.Is(TypeKind::kFloat)) {
      return types::IntegerRank(from.kind()) <= 2;
    }
    if (to.Is(TypeKind::kDecimal)) {
      return to.precision() - to.scale() >= IntegerDigits(from.kind());
    }
    return false;
  }
  if (from.Is(TypeKind::kFloat)) {
    return to.Is(TypeKind::kDouble);
  }
  if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal)) {
    return to.scale() >= from.scale() && to.precision() - to.scale() >= from.precision() - from.scale();
  }
  return false;
}

}  // namespace

ParsedPtr Translator::Ref(const Column& column) {
  if (column.table.empty()) {
    return duckdb::make_uniq<duckdb::ColumnRefExpression>(column.name);
  }
  return duckdb::make_uniq<duckdb::ColumnRefExpression>(column.name, column.table);
}

ParsedPtr Translator::Typed(ParsedPtr expr, const DataType& type) {
  return FunctionOf(kTypedFunction, std::move(expr), Constant(duckdb::Value(CarrierType(type))));
}

const Translator::Column* Translator::FindColumn(plan::AttributeId id) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = (*scope)->find(id.value);
    if (found != (*scope)->end()) {
      return &found->second;
    }
  }
  return nullptr;
}

ParsedPtr Translator::Expr(const plan::ExprPtr& expr) {
  if (const auto step = steps_.find(expr.get()); step != steps_.end()) {
    return Ref(step->second);
  }
  for (const auto& [known, column] : replacements_) {
    if (known->kind == expr->kind && plan::SameExpr(known, expr)) {
      return Ref(column);
    }
  }
  switch (expr->kind) {
    case ExprKind::kLiteral:
      return Constant(CarrierValue(expr->value, expr->type));
    case ExprKind::kAttribute:
    case ExprKind::kLambdaVariable: {
      const Column* column = FindColumn(expr->attribute.id);
      if (column == nullptr) {
        RaiseError(Error::Internal("column " + expr->attribute.name + " (#" + std::to_string(expr->attribute.id.value) +
                                   ") is not in sight"));
      }
      return Ref(*column);
    }
    case ExprKind::kCall:
      return CallExpr(expr);
    case ExprKind::kCast:
      return CastExpr(expr);
    case ExprKind::kCase: {
      auto result = duckdb::make_uniq<duckdb::CaseExpression>();
      const std::size_t pairs = expr->children.size() / 2;
      for (std::size_t i = 0; i < pairs; i++) {
        duckdb::CaseCheck check;
        check.when_expr = Expr(expr->children[2 * i]);
        check.then_expr = Expr(expr->children[2 * i + 1]);
        result->case_checks.push_back(std::move(check));
      }
      result->else_expr =
          expr->has_else ? Expr(expr->children.back()) : Constant(duckdb::Value(CarrierType(expr->type)));
      return Typed(std::move(result), expr->type);
    }
    case ExprKind::kGetField:
      // DuckDB takes a field of a constant NULL for a NULL of no type.
      return Typed(FunctionOf("struct_extract", Expr(expr->children[0]),
                              Constant(duckdb::Value("f" + std::to_string(expr->ordinal)))),
                   expr->type);
    case ExprKind::kSubquery:
      // Where it is a value, IN is never NULL in Spark: it asks whether an equal row exists.
      if (expr->subquery_kind == plan::SubqueryKind::kIn) {
        return OrElse(Subquery(expr), false);
      }
      return Subquery(expr);
    case ExprKind::kAggregate:
      RaiseError(Error::Internal("aggregate " + expr->display + " stands outside of an aggregation"));
    case ExprKind::kWindow:
      if (window_row_ != nullptr) {
        return WindowCall(expr, window_row_);
      }
      RaiseError(Error::Internal("window function " + expr->display + " stands outside of a window node"));
    case ExprKind::kLambda:
      RaiseError(Error::Internal("a lambda stands where no function takes one"));
  }
  RaiseError(Error::Internal("unknown kind of expression"));
}

/// The condition, or `value` where it is NULL.
ParsedPtr Translator::OrElse(ParsedPtr condition, bool value) {
  duckdb::vector<ParsedPtr> operands;
  operands.push_back(std::move(condition));
  operands.push_back(Constant(duckdb::Value::BOOLEAN(value)));
  return duckdb::make_uniq<duckdb::OperatorExpression>(ExpressionType::OPERATOR_COALESCE, std::move(operands));
}

ParsedPtr Translator::Conjunct(const plan::ExprPtr& expr) {
  const auto is_in = [](const plan::ExprPtr& part) {
    return part->kind == ExprKind::kSubquery && part->subquery_kind == plan::SubqueryKind::kIn;
  };
  if (expr->kind == ExprKind::kCall && expr->function == "and") {
    ParsedPtr both;
    for (const auto& child : expr->children) {
      both = And(std::move(both), Conjunct(child));
    }
    return both;
  }
  // NULL and FALSE are one here, so DuckDB may make a join of it.
  if (is_in(expr)) {
    return Subquery(expr);
  }
  if (expr->kind == ExprKind::kCall && expr->function == "not" && is_in(expr->children[0])) {
    return Operator(ExpressionType::OPERATOR_NOT, Subquery(expr->children[0]));
  }
  return Expr(expr);
}

ParsedPtr Translator::CallExpr(const plan::ExprPtr& expr) {
  const auto& name = expr->function;
  const auto& children = expr->children;
  static const std::unordered_map<std::string, ExpressionType> kComparisons = {
      {"eq", ExpressionType::COMPARE_EQUAL},
      {"ne", ExpressionType::COMPARE_NOTEQUAL},
      {"lt", ExpressionType::COMPARE_LESSTHAN},
      {"le", ExpressionType::COMPARE_LESSTHANOREQUALTO},
      {"gt", ExpressionType::COMPARE_GREATERTHAN},
      {"ge", ExpressionType::COMPARE_GREATERTHANOREQUALTO},
      {"eqnullsafe", ExpressionType::COMPARE_NOT_DISTINCT_FROM}};
  if (const auto comparison = kComparisons.find(name); comparison != kComparisons.end()) {
    if (CarrierType(children[0]->type) != CarrierType(children[1]->type)) {
      RaiseError(Error::Internal("operands of " + expr->display + " have two types: " +
                                 children[0]->type.SimpleString() + ", " + children[1]->type.SimpleString()));
    }
    return Compare(comparison->second, Expr(children[0]), Expr(children[1]));
  }
  if (name == "and" || name == "or") {
    duckdb::vector<ParsedPtr> operands;
    for (const auto& child : children) {
      operands.push_back(Expr(child));
    }
    return duckdb::make_uniq<duckdb::ConjunctionExpression>(
        name == "and" ? ExpressionType::CONJUNCTION_AND : ExpressionType::CONJUNCTION_OR, std::move(operands));
  }
  if (name == "not") {
    if (children[0]->kind == ExprKind::kSubquery && children[0]->subquery_kind == plan::SubqueryKind::kIn) {
      // NOT IN as a value asks that no row is equal or might be.
      return Operator(ExpressionType::OPERATOR_NOT, OrElse(Subquery(children[0]), true));
    }
    return Operator(ExpressionType::OPERATOR_NOT, Expr(children[0]));
  }
  if (name == "isnull") {
    return Operator(ExpressionType::OPERATOR_IS_NULL, Expr(children[0]));
  }
  if (name == "isnotnull") {
    return Operator(ExpressionType::OPERATOR_IS_NOT_NULL, Expr(children[0]));
  }
  if (name == "isnan") {
    // NULL is no NaN.
    return OrElse(FunctionOf("isnan", Expr(children[0])), false);
  }
  if (name == "in") {
    if (children.size() == 1) {
      return Constant(duckdb::Value::BOOLEAN(false));
    }
    duckdb::vector<ParsedPtr> operands;
    for (const auto& child : children) {
      operands.push_back(Expr(child));
    }
    return duckdb::make_uniq<duckdb::OperatorExpression>(ExpressionType::COMPARE_IN, std::move(operands));
  }
  if (name == "if") {
    auto result = duckdb::make_uniq<duckdb::CaseExpression>();
    duckdb::CaseCheck check;
    check.when_expr = Expr(children[0]);
    check.then_expr = Expr(children[1]);
    result->case_checks.push_back(std::move(check));
    result->else_expr = Expr(children[2]);
    return Typed(std::move(result), expr->type);
  }
  if (name == "coalesce") {
    duckdb::vector<ParsedPtr> operands;
    for (const auto& child : children) {
      operands.push_back(Expr(child));
    }
    return Typed(duckdb::make_uniq<duckdb::OperatorExpression>(ExpressionType::OPERATOR_COALESCE, std::move(operands)),
                 expr->type);
  }
  if (name.starts_with("duck_")) {
    return BuiltIn(expr, name.substr(5));
  }
  return OwnCall(expr);
}

ParsedPtr Translator::BuiltIn(const plan::ExprPtr& expr, std::string name) {
  std::vector<ParsedPtr> children;
  for (const auto& child : expr->children) {
    children.push_back(Expr(child));
  }
  return Typed(Function(name, std::move(children)), expr->type);
}

ParsedPtr Translator::CallNumber(const plan::ExprPtr& expr, std::vector<ParsedLambda> lambdas,
                                 const std::vector<LogicalType>& extra_arguments) {
  Call call;
  call.expr = expr;
  call.lambdas = std::move(lambdas);
  for (const auto& child : expr->children) {
    if (child->kind != ExprKind::kLambda) {
      call.arguments.push_back(CarrierType(child->type));
    }
  }
  call.arguments.insert(call.arguments.end(), extra_arguments.begin(), extra_arguments.end());
  return Constant(duckdb::Value::BIGINT(state_.AddCall(std::move(call))));
}

ParsedPtr Translator::OwnCall(const plan::ExprPtr& expr) {
  std::vector<ParsedPtr> arguments;
  for (const auto& child : expr->children) {
    if (child->kind != ExprKind::kLambda) {
      arguments.push_back(Expr(child));
    }
  }
  std::vector<ParsedLambda> lambdas;
  std::vector<LogicalType> extra;
  for (const auto& child : expr->children) {
    if (child->kind != ExprKind::kLambda) {
      continue;
    }
    ParsedLambda lambda;
    Names parameters;
    for (const auto& parameter : child->parameters) {
      const std::string name = "p" + std::to_string(parameter.id.value);
      parameters[parameter.id.value] = Column{"", name};
      lambda.inputs.push_back(name);
      lambda.input_types.push_back(CarrierType(parameter.type));
    }
    lambda.parameter_count = child->parameters.size();
    // Columns of the query, and variables of lambdas around this one, become arguments of the call.
    std::set<std::int64_t> captured;
    std::set<std::int64_t> own;
    plan::VisitExpr(child, [&own](const plan::Expr& node) {
      for (const auto& parameter : node.parameters) {
        own.insert(parameter.id.value);
      }
    });
    plan::VisitExpr(child, [&](const plan::Expr& node) {
      if ((node.kind != ExprKind::kAttribute && node.kind != ExprKind::kLambdaVariable) ||
          own.contains(node.attribute.id.value) || !captured.insert(node.attribute.id.value).second) {
        return;
      }
      const Column* column = FindColumn(node.attribute.id);
      if (column == nullptr) {
        RaiseError(Error::Internal("column " + node.attribute.name + " in a lambda is not in sight"));
      }
      lambda.inputs.push_back(column->table.empty() ? column->name : column->table + "." + column->name);
      // DuckDB refers to columns as table.name; the body's references carry the same text.
      lambda.input_types.push_back(CarrierType(node.type));
      lambda.capture_arguments.push_back(arguments.size());
      extra.push_back(CarrierType(node.type));
      arguments.push_back(Ref(*column));
    });
    // The place of a draw is the number of draws before it, not the row's; the row is captured all the same, so that
    // rows come in order and nothing is computed ahead.
    const Column* outer_row = row_column_;
    const Column draw{"", kDrawInput};
    if (row_column_ != nullptr && HasPositionCall(child)) {
      lambda.inputs.emplace_back(kDrawInput);
      lambda.input_types.push_back(LogicalType::BIGINT);
      lambda.capture_arguments.push_back(arguments.size());
      extra.push_back(LogicalType::BIGINT);
      arguments.push_back(Ref(*row_column_));
      row_column_ = &draw;
    }
    Scope scope(*this, parameters);
    auto outer_steps = std::exchange(steps_, {});  // a body sees what it captured
    lambda.body = duckdb::shared_ptr<duckdb::ParsedExpression>(Expr(child->children[0]).release());
    steps_ = std::move(outer_steps);
    row_column_ = outer_row;
    lambdas.push_back(std::move(lambda));
  }
  if (expr->kind == ExprKind::kCall && DependsOnPosition(expr->function)) {
    if (row_column_ == nullptr) {
      RaiseError(Error::Unsupported("the function " + expr->display + " at this place of a query"));
    }
    arguments.push_back(Ref(*row_column_));
    extra.push_back(LogicalType::BIGINT);
  }
  arguments.push_back(CallNumber(expr, std::move(lambdas), extra));
  return Function(kCallFunction, std::move(arguments));
}

ParsedPtr Translator::CastExpr(const plan::ExprPtr& expr) {
  const auto& child = expr->children[0];
  const auto& from = child->type;
  const auto& to = expr->type;
  if (from.Is(TypeKind::kVoid)) {
    // What can fail (raise_error) must be run although its value is known to be NULL.
    return child->can_fail || !child->deterministic ? OwnCall(expr) : Constant(duckdb::Value(CarrierType(to)));
  }
  if (SameValues(from, to)) {
    return Expr(child);
  }
  if (IsNativeCast(from, to)) {
    return duckdb::make_uniq<duckdb::CastExpression>(CarrierType(to), Expr(child));
  }
  return OwnCall(expr);
}

ParsedPtr Translator::Subquery(const plan::ExprPtr& expr) {
  const auto& plan = expr->subquery;
  std::vector<plan::Attribute> visible;
  for (const auto& attribute : plan->output) {
    if (!attribute.hidden) {
      visible.push_back(attribute);
    }
  }
  auto result = duckdb::make_uniq<duckdb::SubqueryExpression>();
  const auto* outer_row = std::exchange(row_column_, nullptr);
  auto outer_replacements = std::exchange(replacements_, {});
  switch (expr->subquery_kind) {
    case plan::SubqueryKind::kExists: {
      result->subquery_type = duckdb::SubqueryType::EXISTS;
      result->subquery = Statement(plan, visible);
      break;
    }
    case plan::SubqueryKind::kScalar: {
      // More than one row is an error of Spark's, so the rows are counted.
      result->subquery_type = duckdb::SubqueryType::SCALAR;
      visible.resize(1);
      bool one_row = plan->kind == plan::PlanKind::kAggregate && plan->grouping.empty();
      const plan::LogicalPlan* below = plan.get();
      while (!one_row && below->kind == plan::PlanKind::kProject) {
        below = below->children[0].get();
        one_row = below->kind == plan::PlanKind::kAggregate && below->grouping.empty();
      }
      if (one_row) {
        result->subquery = Statement(plan, visible);
        break;
      }
      Block block = Close(Plan(plan), visible);
      auto select = duckdb::make_uniq<duckdb::SelectNode>();
      const Column column = block.names.at(visible[0].id.value);
      select->from_table = std::move(block.from);
      auto error = duckdb::make_uniq<duckdb::CaseExpression>();
      duckdb::CaseCheck check;
      check.when_expr =
          Compare(ExpressionType::COMPARE_GREATERTHAN, Function("count_star", {}), Constant(duckdb::Value::BIGINT(1)));
      check.then_expr = FunctionOf(kTooManyRowsFunction, FunctionOf("first", Ref(column)));
      error->case_checks.push_back(std::move(check));
      error->else_expr = FunctionOf("first", Ref(column));
      error->SetAlias("c0");
      select->select_list.push_back(std::move(error));
      result->subquery = duckdb::make_uniq<duckdb::SelectStatement>();
      result->subquery->node = std::move(select);
      break;
    }
    case plan::SubqueryKind::kIn: {
      result->subquery_type = duckdb::SubqueryType::ANY;
      result->comparison_type = ExpressionType::COMPARE_EQUAL;
      row_column_ = outer_row;
      std::swap(replacements_, outer_replacements);
      std::vector<ParsedPtr> values;
      for (const auto& child : expr->children) {
        values.push_back(Expr(child));
      }
      row_column_ = nullptr;
      std::swap(replacements_, outer_replacements);
      if (values.size() == 1) {
        result->child = std::move(values[0]);
        result->subquery = Statement(plan, visible);
        break;
      }
      // Several columns: TRUE where a row equals, else NULL where one might equal, else FALSE.
      row_column_ = outer_row;
      std::swap(replacements_, outer_replacements);
      auto answer = duckdb::make_uniq<duckdb::CaseExpression>();
      for (const bool maybe : {false, true}) {
        Block block = Close(Plan(plan), visible);
        ParsedPtr condition;
        for (std::size_t i = 0; i < values.size(); i++) {
          ParsedPtr equal =
              Compare(ExpressionType::COMPARE_EQUAL, values[i]->Copy(), Ref(block.names.at(visible[i].id.value)));
          if (maybe) {
            equal = OrElse(std::move(equal), true);
          }
          condition = And(std::move(condition), std::move(equal));
        }
        block.where = std::move(condition);
        auto select = Select(block);
        select->select_list.push_back(Constant(duckdb::Value::INTEGER(1)));
        auto exists = duckdb::make_uniq<duckdb::SubqueryExpression>();
        exists->subquery_type = duckdb::SubqueryType::EXISTS;
        exists->subquery = duckdb::make_uniq<duckdb::SelectStatement>();
        exists->subquery->node = std::move(select);
        duckdb::CaseCheck check;
        check.when_expr = std::move(exists);
        check.then_expr = Constant(maybe ? duckdb::Value(LogicalType::BOOLEAN) : duckdb::Value::BOOLEAN(true));
        answer->case_checks.push_back(std::move(check));
      }
      answer->else_expr = Constant(duckdb::Value::BOOLEAN(false));
      return answer;
    }
  }
  row_column_ = outer_row;
  replacements_ = std::move(outer_replacements);
  return result;
}

duckdb::vector<duckdb::OrderByNode> Translator::Orders(const std::vector<plan::SortKey>& keys) {
  duckdb::vector<duckdb::OrderByNode> orders;
  for (const auto& key : keys) {
    orders.emplace_back(key.ascending ? duckdb::OrderType::ASCENDING : duckdb::OrderType::DESCENDING,
                        key.nulls_first ? duckdb::OrderByNullType::NULLS_FIRST : duckdb::OrderByNullType::NULLS_LAST,
                        Expr(key.expr));
  }
  return orders;
}

}  // namespace fleuve::engine
