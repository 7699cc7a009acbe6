#include <proto/unpack.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "plan/analyzer_internal.h"
#include "plan/char_padding.h"
#include "plan/external.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;
using Arguments = google::protobuf::RepeatedPtrField<sc::Expression>;

/// True where `expr` uses a variable of the lambdas that it stands in.
bool UsesLambda(const ExprPtr& expr, const std::vector<std::vector<Attribute>>& lambdas) {
  return AnyExpr(expr, [&](const Expr& node) {
    return node.kind == ExprKind::kLambdaVariable &&
           std::any_of(lambdas.begin(), lambdas.end(), [&](const std::vector<Attribute>& variables) {
             return std::any_of(variables.begin(), variables.end(),
                                [&](const Attribute& variable) { return variable.id == node.attribute.id; });
           });
  });
}

bool IsStar(const sc::Expression& expression) { return expression.has_unresolved_star(); }

/// `* EXCEPT (...)` as an argument.
bool IsStarExcept(const sc::Expression& expression) {
  if (!expression.has_extension()) {
    return false;
  }
  const auto extension = fleuve::pb::Unpack<fleuve::pb::ExpressionExtension>(expression.extension());
  return extension && extension->has_star_except();
}

/// The name that `struct(...)` gives a field made of this argument; nullopt: by position.
std::optional<std::string> FieldName(const sc::Expression& argument) {
  if (argument.has_alias() && argument.alias().name_size() == 1) {
    return argument.alias().name(0);
  }
  if (argument.has_unresolved_attribute()) {
    auto parts = SplitIdentifier(argument.unresolved_attribute().unparsed_identifier());
    if (parts.ok()) {
      return parts->back();
    }
  }
  if (argument.has_unresolved_named_lambda_variable() &&
      argument.unresolved_named_lambda_variable().name_parts_size()) {
    const auto& parts = argument.unresolved_named_lambda_variable().name_parts();
    return parts.Get(parts.size() - 1);
  }
  return std::nullopt;
}

/// What may stand in FILTER (WHERE ...). `filter` may be null.
Result<void> CheckAggregateFilter(const ExprPtr& filter) {
  if (filter == nullptr) {
    return {};
  }
  const auto wrong = [&filter](const char* reason, const std::string& expected) -> Result<void> {
    return Error(ErrorKind::kInvalidArgument, std::string("INVALID_AGGREGATE_FILTER.") + reason,
                 "The FILTER expression \"" + filter->display + "\" in an aggregate function is invalid. Expected a " +
                     expected + ".")
        .With("filterExpr", "\"" + filter->display + "\"");
  };
  if (!filter->deterministic) {
    return wrong("NON_DETERMINISTIC", "deterministic FILTER expression");
  }
  if (HasAggregate(filter)) {
    return wrong("CONTAINS_AGGREGATE", "FILTER expression without an aggregation");
  }
  if (HasWindow(filter)) {
    return wrong("CONTAINS_WINDOW_FUNCTION", "FILTER expression without a window function");
  }
  return {};
}

Error UnresolvedRoutine(const std::vector<std::string>& parts) {
  const std::string name = QuoteParts(parts);
  return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_ROUTINE",
               "Cannot resolve routine " + name +
                   " on search path [`system`.`builtin`, `system`.`session`, `spark_catalog`.`default`].")
      .With("routineName", name)
      .With("searchPath", "[`system`.`builtin`, `system`.`session`, `spark_catalog`.`default`]");
}

}  // namespace

Result<void> Analyzer::CheckAggregated(const ExprPtr& argument, bool in_window, const std::string& function) {
  if (argument == nullptr || in_window || argument->deterministic) {
    return {};
  }
  const std::string shown = "\"" + function + "(" + argument->display + ")\"";
  return Error(
             ErrorKind::kInvalidArgument, "AGGREGATE_FUNCTION_WITH_NONDETERMINISTIC_EXPRESSION",
             "Non-deterministic expression " + shown + " should not appear in the arguments of an aggregate function.")
      .With("sqlExpr", shown);
}

Result<void> Analyzer::CheckNoClauses(const std::string& name, const FunctionOptions& options) {
  const char* const clause = options.distinct            ? "DISTINCT"
                             : options.filter != nullptr ? "FILTER clause"
                             : options.ignore_nulls      ? "IGNORE NULLS"
                                                         : nullptr;
  if (clause == nullptr) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX",
               "Invalid SQL syntax: The function " + QuoteParts({name}) + " does not support " + clause + ".")
      .With("prettyName", QuoteParts({name}))
      .With("syntax", clause);
}

Result<ExprPtr> Analyzer::Function(const std::string& name, const Arguments& arguments, const FunctionOptions& options,
                                   const Scope& scope, std::shared_ptr<const QueryContext> context) {
  const bool in_window = std::exchange(is_window_function_, false);
  std::string function = name;
  const bool is_operator = !name.empty() && name.find_first_of("`.") == std::string::npos;
  if (!is_operator && name != ".") {
    FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(name));
    if (parts.size() > 1) {
      const bool builtin = LowerName(parts[parts.size() - 2]) == "builtin" &&
                           (parts.size() == 2 || LowerName(parts.front()) == "system");
      if (!builtin) {
        is_window_function_ = in_window;
        FLEUVE_ASSIGN(std::optional<ExprPtr> user, UserFunction(parts, arguments, scope));
        if (user) {
          FLEUVE_TRY(CheckNoClauses(parts.back(), options));
        }
        return user ? Result<ExprPtr>(*user) : Result<ExprPtr>(UnresolvedRoutine(parts));
      }
    }
    function = parts.back();
  }
  const std::optional<FunctionKind> kind = FindFunctionKind(function);
  if (kind && function == name && std::isalpha(static_cast<unsigned char>(function.front())) != 0) {
    // A registered function stands in for Spark's own of that name.
    FLEUVE_ASSIGN(const std::optional<SqlFunction> registered, resolver_.ResolveFunction({function}));
    if (registered && registered->external != nullptr &&
        registered->external->call_kind() != ExternalCallKind::kTable) {
      FLEUVE_TRY(CheckNoClauses(function, options));
      is_window_function_ = in_window;
      return ExternalFunctionCall(registered->external, arguments, false, scope);
    }
  }
  FLEUVE_ASSIGN(std::optional<ExprPtr> special, SpecialFunction(LowerName(function), arguments, scope));
  if (special) {
    return *special;
  }
  if (!kind) {
    is_window_function_ = in_window;
    FLEUVE_ASSIGN(std::optional<ExprPtr> user, UserFunction({function}, arguments, scope));
    if (user) {
      FLEUVE_TRY(CheckNoClauses(function, options));
    }
    return user ? Result<ExprPtr>(*user) : Result<ExprPtr>(UnresolvedRoutine({function}));
  }
  if (*kind == FunctionKind::kGenerator) {
    return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS",
                 "The generator is not supported: nested in expressions \"" + function + "\".")
        .With("expression", "\"" + function + "\"");
  }
  if (*kind == FunctionKind::kAggregate && scope.aggregate_input != nullptr) {
    Scope inner = scope;
    inner.tiers = {scope.aggregate_input};
    inner.aggregate_input = nullptr;
    inner.aliases = nullptr;
    is_window_function_ = in_window;
    return Function(name, arguments, options, inner, std::move(context));
  }
  FLEUVE_ASSIGN(FunctionCall call, MakeFunctionCall(function, arguments, options, scope, std::move(context)));
  if (*kind == FunctionKind::kWindow && !in_window) {
    return Error(ErrorKind::kInvalidArgument, "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE",
                 "Window function \"" + function + "()\" requires an OVER clause.")
        .With("funcName", "\"" + function + "()\"");
  }
  if (*kind == FunctionKind::kAggregate) {
    for (const ExprPtr& argument : call.arguments) {
      if (argument != nullptr && !in_window && HasAggregate(argument)) {
        return Error(ErrorKind::kInvalidArgument, "NESTED_AGGREGATE_FUNCTION",
                     "It is not allowed to use an aggregate function in the argument of another aggregate function. "
                     "Please use the inner aggregate function in a sub-query.");
      }
      if (argument != nullptr && !in_window && HasWindow(argument)) {
        return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1031",
                     "It is not allowed to use a window function inside an aggregate function. Please use the inner "
                     "window function in a sub-query.")
            .Family(ErrorFamily::kAnalysis);
      }
      FLEUVE_TRY(CheckAggregated(argument, in_window, function));
      if (!scope.lambdas.empty() && argument != nullptr && UsesLambda(argument, scope.lambdas)) {
        return Error::Unsupported("an aggregate function over a variable of a lambda function (" + function + ")");
      }
    }
    FLEUVE_TRY(CheckAggregateFilter(call.filter));
  } else if (*kind == FunctionKind::kScalar) {
    FLEUVE_TRY(CheckNoClauses(function, options));
  } else if (options.distinct) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_SQL_SYNTAX.FUNCTION_WITH_UNSUPPORTED_SYNTAX",
                 "Invalid SQL syntax: The function " + function + " does not support DISTINCT.");
  }
  if (ComparesChars(function)) {
    FLEUVE_TRY(PadComparison(&call.arguments, config_));
  }
  return BuildFunction(call);
}

Result<FunctionCall> Analyzer::MakeFunctionCall(const std::string& name, const Arguments& arguments,
                                                const FunctionOptions& options, const Scope& scope,
                                                std::shared_ptr<const QueryContext> context) {
  FunctionCall call;
  call.name = name;
  call.distinct = options.distinct;
  call.ignore_nulls = options.ignore_nulls;
  call.config = &config_;
  call.context = std::move(context);
  std::vector<const sc::Expression*> sources;
  for (const sc::Expression& argument : arguments) {
    const sc::Expression* source = &argument;
    std::string argument_name;
    if (argument.has_named_argument_expression()) {
      argument_name = argument.named_argument_expression().key();
      source = &argument.named_argument_expression().value();
    }
    if (source->has_expression_string() && source->expression_string().expression() == "*" &&
        LowerName(name) == "count" && arguments.size() == 1 && !options.distinct) {
      call.is_star = true;  // count(expr("*"))
      continue;
    }
    if (IsStar(*source)) {
      if (LowerName(name) == "count" && arguments.size() == 1 && !source->unresolved_star().has_unparsed_target() &&
          !options.distinct) {
        call.is_star = true;
        continue;
      }
      const auto& star = source->unresolved_star();
      if (LowerName(name) == "count" && star.has_unparsed_target() && !options.distinct && arguments.size() == 1) {
        return Error(
                   ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1021",
                   "count(" + star.unparsed_target() +
                       ") is not allowed. Please use count(*) or expand the columns manually, e.g. count(col1, col2).")
            .Family(ErrorFamily::kAnalysis);
      }
      FLEUVE_ASSIGN(
          std::vector<Attribute> columns,
          ExpandStar(star.unparsed_target(), scope, nullptr,
                     star.has_plan_id() ? std::optional<std::int64_t>(star.plan_id()) : std::nullopt, nullptr));
      for (const Attribute& column : columns) {
        call.arguments.push_back(AttributeExpr(column));
        call.argument_names.emplace_back();
        sources.push_back(nullptr);
      }
      continue;
    }
    if (IsStarExcept(*source)) {
      std::vector<SelectItem> items;
      FLEUVE_TRY(AppendItem(*source, scope, nullptr, items));
      for (SelectItem& item : items) {
        call.arguments.push_back(std::move(item.expr));
        call.argument_names.emplace_back();
        sources.push_back(nullptr);
      }
      continue;
    }
    call.argument_names.push_back(std::move(argument_name));
    sources.push_back(source);
    if (source->has_lambda_function()) {
      call.arguments.push_back(nullptr);
      continue;
    }
    FLEUVE_ASSIGN(ExprPtr made, Expression(*source, scope));
    call.arguments.push_back(std::move(made));
  }
  if (options.filter != nullptr) {
    FLEUVE_ASSIGN(ExprPtr filter, Expression(*options.filter, scope));
    if (!filter->type.Is(types::TypeKind::kBoolean)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_AGGREGATE_FILTER.NOT_BOOLEAN",
                   "The FILTER expression \"" + filter->display +
                       "\" in an aggregate function is invalid. Expected a FILTER expression of the BOOLEAN type.")
          .With("filterExpr", "\"" + filter->display + "\"");
    }
    FLEUVE_ASSIGN(call.filter, AsBoolean(filter, "Filter"));
  }
  if (options.within_group != nullptr) {
    for (const sc::Expression_SortOrder& order : *options.within_group) {
      FLEUVE_ASSIGN(SortKey key, Order(order, scope));
      call.within_group.push_back(std::move(key));
    }
  }
  call.lambda_arity = [sources](std::size_t index) -> std::size_t {
    return index < sources.size() && sources[index] != nullptr && sources[index]->has_lambda_function()
               ? static_cast<std::size_t>(sources[index]->lambda_function().arguments_size())
               : 0;
  };
  call.bind_lambda = [this, sources, &scope](std::size_t index,
                                             const std::vector<Attribute>& parameters) -> Result<ExprPtr> {
    if (index >= sources.size() || sources[index] == nullptr || !sources[index]->has_lambda_function()) {
      return Error(ErrorKind::kInvalidArgument, "UNEXPECTED_INPUT_TYPE", "A lambda function is expected here.");
    }
    const auto& lambda = sources[index]->lambda_function();
    if (static_cast<std::size_t>(lambda.arguments_size()) != parameters.size()) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_LAMBDA_FUNCTION_CALL.NUM_ARGS_MISMATCH",
                   "Invalid lambda function call. A higher order function expects " +
                       std::to_string(lambda.arguments_size()) + " arguments, but got " +
                       std::to_string(parameters.size()) + ".")
          .With("expectedNumArgs", std::to_string(lambda.arguments_size()))
          .With("actualNumArgs", std::to_string(parameters.size()));
    }
    std::vector<Attribute> bound = parameters;
    for (std::size_t i = 0; i < bound.size(); ++i) {
      const auto& argument = lambda.arguments(static_cast<int>(i));
      bound[i].name = argument.name_parts_size() > 0 ? argument.name_parts(0) : "";
      bound[i].id = NewAttributeId();
      for (std::size_t j = 0; j < i; ++j) {
        if (EqualNames(bound[j].name, bound[i].name, config_.case_sensitive)) {
          return Error(ErrorKind::kInvalidArgument, "INVALID_LAMBDA_FUNCTION_CALL.DUPLICATE_ARG_NAMES",
                       "Invalid lambda function call. The lambda function has duplicate arguments.");
        }
      }
    }
    Scope inner = scope;
    inner.lambdas.push_back(bound);
    FLEUVE_ASSIGN(ExprPtr body, Expression(lambda.function(), inner));
    auto made = std::make_shared<Expr>();
    made->kind = ExprKind::kLambda;
    made->type = body->type;
    made->nullable = body->nullable;
    made->can_fail = body->can_fail;
    made->deterministic = body->deterministic;
    made->display = "lambdafunction(" + body->display;
    for (std::size_t i = 0; i < bound.size(); ++i) {
      made->display += ", namedlambdavariable()";
    }
    made->display += ")";
    made->children.push_back(std::move(body));
    made->parameters = std::move(bound);
    return made;
  };
  return call;
}

Result<std::optional<ExprPtr>> Analyzer::SpecialFunction(const std::string& name, const Arguments& arguments,
                                                         const Scope& scope) {
  if (name == "struct") {
    std::vector<ExprPtr> parts;
    std::string shown;
    std::string shown_tuple;
    int position = 0;
    const auto add = [&](const std::string& field, const ExprPtr& value) {
      parts.push_back(MakeLiteral(types::Value(field), DataType::String()));
      parts.push_back(value);
      shown += (shown.empty() ? "" : ", ") + value->display;
      shown_tuple += (shown_tuple.empty() ? "" : ", ") + field + ", " + value->display;
    };
    for (const sc::Expression& argument : arguments) {
      if (IsStar(argument)) {
        const auto& star = argument.unresolved_star();
        FLEUVE_ASSIGN(
            std::vector<Attribute> columns,
            ExpandStar(star.unparsed_target(), scope, nullptr,
                       star.has_plan_id() ? std::optional<std::int64_t>(star.plan_id()) : std::nullopt, nullptr));
        for (const Attribute& column : columns) {
          ++position;
          add(column.name, AttributeExpr(column));
        }
        continue;
      }
      if (IsStarExcept(argument)) {
        std::vector<SelectItem> items;
        FLEUVE_TRY(AppendItem(argument, scope, nullptr, items));
        for (const SelectItem& item : items) {
          ++position;
          add(item.name, item.expr);
        }
        continue;
      }
      ++position;
      FLEUVE_ASSIGN(ExprPtr value, Expression(argument, scope));
      add(FieldName(argument).value_or("col" + std::to_string(position)), value);
    }
    FLEUVE_ASSIGN(ExprPtr made, Call("named_struct", std::move(parts)));
    return std::optional<ExprPtr>(WithDisplay(made, "struct(" + shown + ")"));
  }
  if (name == "grouping" || name == "grouping_id") {
    if (scope.grouping_sets == nullptr) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_GROUPING_EXPRESSION",
                   "grouping()/grouping_id() can only be used with GroupingSets/Cube/Rollup.");
    }
    const std::vector<ExprPtr>& grouping = *scope.grouping_sets;
    std::vector<ExprPtr> columns;
    std::string shown;
    for (const sc::Expression& argument : arguments) {
      FLEUVE_ASSIGN(ExprPtr column, Expression(argument, scope));
      shown += (shown.empty() ? "" : ", ") + column->display;
      columns.push_back(std::move(column));
    }
    if (name == "grouping_id") {
      bool same = columns.empty() || columns.size() == grouping.size();
      for (std::size_t i = 0; same && i < columns.size(); ++i) {
        same = SameExpr(columns[i], grouping[i]);
      }
      if (!same) {
        return Error(ErrorKind::kInvalidArgument, "GROUPING_ID_COLUMN_MISMATCH",
                     "Columns of grouping_id (" + shown + ") does not match grouping columns.")
            .With("groupingIdColumn", shown);
      }
      return std::optional<ExprPtr>(WithDisplay(scope.grouping_id, "grouping_id(" + shown + ")"));
    }
    if (columns.size() != 1) {
      return Error(
          ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
          "The `grouping` requires 1 parameters but the actual number is " + std::to_string(columns.size()) + ".");
    }
    for (std::size_t i = 0; i < grouping.size(); ++i) {
      if (!SameExpr(columns.front(), grouping[i])) {
        continue;
      }
      const int shift = static_cast<int>(grouping.size() - 1 - i);
      FLEUVE_ASSIGN(ExprPtr shifted,
                    Call("shiftright", {scope.grouping_id, MakeLiteral(types::Value(shift), DataType::Int())}));
      FLEUVE_ASSIGN(ExprPtr bit, Call("&", {shifted, MakeLiteral(types::Value(1), DataType::Long())}));
      FLEUVE_ASSIGN(ExprPtr byte, MakeCast(bit, DataType::Byte(), CastMode::kLegacy, config_));
      return std::optional<ExprPtr>(WithDisplay(byte, "grouping(" + shown + ")"));
    }
    return Error(ErrorKind::kInvalidArgument, "GROUPING_COLUMN_MISMATCH",
                 "Column of grouping (" + shown + ") can't be found in grouping columns.")
        .With("grouping", shown);
  }
  return std::optional<ExprPtr>();
}

Result<std::optional<ExprPtr>> Analyzer::UserFunction(const std::vector<std::string>& parts, const Arguments& arguments,
                                                      const Scope& scope) {
  const bool in_window = std::exchange(is_window_function_, false);
  FLEUVE_ASSIGN(std::optional<SqlFunction> function, resolver_.ResolveFunction(parts));
  if (!function || (function->external != nullptr && function->external->call_kind() == ExternalCallKind::kTable)) {
    return std::optional<ExprPtr>();  // table functions in other languages have names of their own
  }
  if (function->external != nullptr) {
    is_window_function_ = in_window;
    FLEUVE_ASSIGN(ExprPtr made, ExternalFunctionCall(function->external, arguments, false, scope));
    return std::optional<ExprPtr>(std::move(made));
  }
  if (function->body == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "NOT_A_SCALAR_FUNCTION",
                 QuoteParts(parts) +
                     " appears as a scalar expression here, but the function was defined as a table "
                     "function.")
        .With("functionName", QuoteParts(parts));
  }
  std::vector<std::pair<std::string, ExprPtr>> bound(function->parameters.size());
  const auto bind = [&](std::size_t index, const sc::Expression& value, const Scope& where) -> Result<void> {
    FLEUVE_ASSIGN(ExprPtr made, Expression(value, where));
    FLEUVE_ASSIGN(ExprPtr cast, MakeCast(made, function->parameters[index].type, config_));
    if (cast->kind == ExprKind::kLiteral && cast->type.IsIntegral()) {
      // A parameter has its declared type only: 1 counts as any INT, not as a number of one digit.
      const ExprPtr always = MakeLiteral(types::Value(true), DataType::Boolean());
      cast = WithDisplay(MakeCase({always, cast, cast}, true, cast->type), cast->display);
    }
    bound[index].second = std::move(cast);
    return {};
  };
  for (std::size_t i = 0; i < bound.size(); ++i) {
    bound[i].first = function->parameters[i].name;
  }
  std::string shown;
  bool named = false;
  std::size_t position = 0;
  for (const sc::Expression& argument : arguments) {
    std::size_t index = position;
    const sc::Expression* value = &argument;
    if (argument.has_named_argument_expression()) {
      value = &argument.named_argument_expression().value();
      index = bound.size();
      for (std::size_t i = 0; i < bound.size(); ++i) {
        if (EqualNames(bound[i].first, argument.named_argument_expression().key(), false)) {
          index = i;
        }
      }
      named = true;
      const std::string& key = argument.named_argument_expression().key();
      if (index == bound.size()) {
        return Error(ErrorKind::kInvalidArgument, "UNRECOGNIZED_PARAMETER_NAME",
                     "Cannot invoke routine " + QuoteParts(parts) +
                         " because the routine call included a named argument reference for the argument named " +
                         QuoteParts({key}) +
                         ", but this routine does not include any signature containing an "
                         "argument with this name.")
            .With("routineName", QuoteParts(parts))
            .With("argumentName", QuoteParts({key}));
      }
      if (bound[index].second != nullptr) {
        return Error(ErrorKind::kInvalidArgument,
                     position > index ? "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.DOUBLE_NAMED_ARGUMENT_REFERENCE"
                                      : "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.BOTH_POSITIONAL_AND_NAMED",
                     "Call to routine " + QuoteParts(parts) +
                         " is invalid because it includes multiple argument assignments to the same parameter name " +
                         QuoteParts({key}) + ".")
            .With("routineName", QuoteParts(parts))
            .With("parameterName", QuoteParts({key}));
      }
    }
    ++position;
    if (index >= bound.size()) {
      return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                   "The " + QuoteParts(parts) + " requires " + std::to_string(bound.size()) +
                       " parameters but the actual number is " + std::to_string(arguments.size()) + ".")
          .With("functionName", QuoteParts(parts))
          .With("expectedNum", std::to_string(bound.size()))
          .With("actualNum", std::to_string(arguments.size()));
    }
    FLEUVE_TRY(bind(index, *value, scope));
    shown += (shown.empty() ? "" : ", ") + bound[index].second->display;
  }
  for (std::size_t i = 0; i < bound.size(); ++i) {
    if (bound[i].second == nullptr) {
      if (i >= function->defaults.size() || function->defaults[i] == nullptr) {
        return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                     "The " + QuoteParts(parts) + " requires " + std::to_string(bound.size()) +
                         " parameters but the actual number is " + std::to_string(arguments.size()) + ".");
      }
      FLEUVE_TRY(bind(i, *function->defaults[i], Scope()));
    }
  }
  if (named) {
    shown.clear();
    for (const auto& [name, value] : bound) {
      shown += (shown.empty() ? "" : ", ") + value->display;
    }
  }
  Scope body_scope;
  body_scope.function_parameters = &bound;
  if (++view_depth_ > 100) {
    return Error::Unsupported("SQL functions nested more than 100 levels deep");
  }
  std::vector<const Scope*> outer;
  std::swap(outer, outer_scopes_);
  std::vector<CommonTable> tables;
  std::swap(tables, tables_);
  Result<ExprPtr> body = Expression(*function->body, body_scope);
  std::swap(tables, tables_);
  std::swap(outer, outer_scopes_);
  --view_depth_;
  if (!body.ok()) {
    return std::move(body).error();
  }
  ExprPtr value = *body;
  if (!function->return_type.Is(TypeKind::kVoid)) {
    FLEUVE_ASSIGN(value, MakeCast(value, function->return_type, config_));
  }
  return std::optional<ExprPtr>(WithDisplay(value, function->name + "(" + shown + ")"));
}

}  // namespace fleuve::plan
