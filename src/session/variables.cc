#include <google/protobuf/message.h>

#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "plan/coercion.h"
#include "plan/proto_types.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"

namespace fleuve::session {

namespace sc = spark::connect;
using types::DataType;
using types::StructField;
using types::Value;

namespace {

Error VariableNotFound(const std::vector<std::string>& parts) {
  return Error(ErrorKind::kNotFound, "VARIABLE_NOT_FOUND",
               "The variable " + QuoteParts(parts) +
                   " cannot be found. Verify the spelling and correctness of the schema "
                   "and catalog.")
      .With("variableName", QuoteParts(parts));
}

Error UnresolvedVariable(const std::vector<std::string>& parts) {
  return Error(ErrorKind::kNotFound, "UNRESOLVED_VARIABLE",
               "Cannot resolve variable " + QuoteParts(parts) + " on search path `SYSTEM`.`SESSION`.")
      .SqlState("42883")
      .Family(ErrorFamily::kAnalysis)
      .With("variableName", QuoteParts(parts));
}

plan::PlanPtr OneRow() {
  auto one = std::make_shared<plan::LogicalPlan>();
  one->kind = plan::PlanKind::kOneRow;
  return one;
}

/// A message whose owner is kept elsewhere, as a pointer of its own.
template <typename Message>
std::shared_ptr<const Message> Copy(const Message& message) {
  return std::make_shared<const Message>(message);
}

}  // namespace

namespace {

/// True where the text has a marker such as `:a` and none such as `?`.
bool NamedMarkerOnly(const std::string& text) {
  if (text.find('?') != std::string::npos) {
    return false;
  }
  for (std::size_t i = text.find(" :"); i != std::string::npos; i = text.find(" :", i + 1)) {
    if (i + 2 < text.size() && std::isalpha(static_cast<unsigned char>(text[i + 2])) != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<RowsResult> Executor::VariableStatement(const pb::Command& command, SessionResolver& resolver) {
  /// The value of an expression without columns, in `type` where it is given.
  const auto evaluate = [&](const sc::Expression& expression,
                            const std::optional<DataType>& type) -> Result<std::pair<Value, DataType>> {
    FLEUVE_ASSIGN(plan::ExprPtr expr, plan::AnalyzeExpression(expression, OneRow(), resolver));
    if (type) {
      FLEUVE_ASSIGN(expr, plan::MakeCast(expr, *type, plan::CastMode::kAnsi, resolver.Config()));
    }
    FLEUVE_ASSIGN(Value value, ValueOf(expr));
    return std::pair(std::move(value), expr->type);
  };
  const auto assign = [&](const std::vector<std::string>& parts, const Value& value,
                          const DataType& type) -> Result<void> {
    const auto known = state_.FindVariable(parts.back());
    if (!known) {
      return UnresolvedVariable(parts);
    }
    plan::SessionVariable variable = *known;
    if (type == variable.type || value.is_null()) {
      variable.value = value;
    } else {
      FLEUVE_ASSIGN(const plan::ExprPtr cast, plan::MakeCast(plan::MakeLiteral(value, type), variable.type,
                                                             plan::CastMode::kAnsi, resolver.Config()));
      FLEUVE_ASSIGN(variable.value, ValueOf(cast));
    }
    state_.PutVariable(parts.back(), std::move(variable));
    return {};
  };
  const auto is_default = [](const sc::Expression& expression) {
    if (!expression.has_extension()) {
      return false;
    }
    pb::ExpressionExtension extension;
    return expression.extension().UnpackTo(&extension) && extension.has_default_value();
  };

  switch (command.kind_case()) {
    case pb::Command::kDeclareVariable: {
      const pb::DeclareVariable& declare = command.declare_variable();
      std::optional<DataType> type;
      if (declare.has_type()) {
        FLEUVE_ASSIGN(type, sql::ParseDataType(declare.type()));
      }
      for (const pb::Name& name : declare.names()) {
        const std::vector<std::string> parts = PartsOf(name);
        if (state_.FindVariable(parts.back()) && !declare.or_replace()) {
          return Error(ErrorKind::kAlreadyExists, "VARIABLE_ALREADY_EXISTS",
                       "Cannot create the variable " + QuoteParts(parts) +
                           " because it already exists. Choose a different name, or drop or replace the existing "
                           "variable.")
              .With("variableName", QuoteParts(parts));
        }
        plan::SessionVariable variable;
        variable.name = parts.back();
        variable.type = type.value_or(DataType::Void());
        if (declare.has_default_value()) {
          FLEUVE_ASSIGN(const auto value, evaluate(declare.default_value(), type));
          variable.value = value.first;
          variable.type = value.second;
        }
        state_.PutVariableDefault(parts.back(), variable.value);
        state_.PutVariable(parts.back(), std::move(variable));
      }
      return Nothing();
    }
    case pb::Command::kSetVariable: {
      const pb::SetVariable& set = command.set_variable();
      if (set.has_query()) {
        FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeWith(resolver, set.query()));
        const types::Schema schema = plan::SchemaOf(*plan);
        if (schema.fields().size() != static_cast<std::size_t>(set.targets_size())) {
          return Error(ErrorKind::kInvalidArgument, "ASSIGNMENT_ARITY_MISMATCH",
                       "The number of columns or variables assigned or aliased: " + std::to_string(set.targets_size()) +
                           " does not match the number of source expressions: " +
                           std::to_string(schema.fields().size()) + ".")
              .With("numTarget", std::to_string(set.targets_size()))
              .With("numExpr", std::to_string(schema.fields().size()));
        }
        FLEUVE_ASSIGN(const auto rows, CollectRows(plan));
        if (rows.size() > 1) {
          return Error(ErrorKind::kInvalidArgument, "ROW_SUBQUERY_TOO_MANY_ROWS",
                       "More than one row returned by a subquery used as a row.");
        }
        for (int i = 0; i < set.targets_size(); ++i) {
          const auto column = static_cast<std::size_t>(i);
          FLEUVE_TRY(
              assign(PartsOf(set.targets(i)), rows.empty() ? Value() : rows[0][column], schema.fields()[column].type));
        }
        return Nothing();
      }
      for (const pb::Assignment& assignment : set.assignments()) {
        const std::vector<std::string> parts = PartsOf(assignment.column());
        const auto known = state_.FindVariable(parts.back());
        if (!known) {
          return UnresolvedVariable(parts);
        }
        if (is_default(assignment.value())) {
          FLEUVE_TRY(assign(parts, state_.VariableDefault(parts.back()), known->type));
          continue;
        }
        FLEUVE_ASSIGN(const auto value, evaluate(assignment.value(), known->type));
        FLEUVE_TRY(assign(parts, value.first, value.second));
      }
      return Nothing();
    }
    case pb::Command::kDropVariable: {
      const std::vector<std::string> parts = PartsOf(command.drop_variable().name());
      if (!state_.DropVariable(parts.back()) && !command.drop_variable().if_exists()) {
        return VariableNotFound(parts);
      }
      return Nothing();
    }
    case pb::Command::kCreateFunction: {
      const pb::CreateFunction& create = command.create_function();
      const std::vector<std::string> parts = PartsOf(create.function());
      if (create.has_class_name()) {
        return Error::Unsupported("functions of Java classes");
      }
      if (!create.temporary()) {
        return Error::Unsupported("CREATE FUNCTION without TEMPORARY");
      }
      if (state_.FindFunction(parts.back()) && !create.or_replace()) {
        if (create.if_not_exists()) {
          return Nothing();
        }
        return Error(
                   ErrorKind::kAlreadyExists, "ROUTINE_ALREADY_EXISTS",
                   "Cannot create the routine " + QuoteParts(parts) + " because a routine of that name already exists.")
            .With("routineName", QuoteParts(parts));
      }
      plan::SqlFunction function;
      function.name = parts.back();
      std::string with_default;
      for (const pb::FunctionParameter& parameter : create.parameters()) {
        for (const StructField& other : function.parameters) {
          if (EqualsIgnoreAsciiCase(other.name, parameter.name())) {
            return Error(ErrorKind::kInvalidArgument, "DUPLICATE_ROUTINE_PARAMETER_NAMES",
                         "Found duplicate name(s) in the parameter list of the user-defined routine " + parts.back() +
                             ": " + QuoteParts({parameter.name()}) + ".")
                .With("routineName", parts.back())
                .With("names", QuoteParts({parameter.name()}));
          }
        }
        if (!with_default.empty() && !parameter.has_default_value()) {
          return Error(ErrorKind::kInvalidArgument, "USER_DEFINED_FUNCTIONS.NOT_A_VALID_DEFAULT_PARAMETER_POSITION",
                       "User defined function is invalid: In routine `" + parts.back() + "` parameter `" +
                           with_default + "` with DEFAULT must not be followed by parameter `" + parameter.name() +
                           "` without DEFAULT.")
              .With("functionName", parts.back())
              .With("parameterName", with_default)
              .With("nextParameterName", parameter.name());
        }
        if (parameter.has_default_value()) {
          with_default = parameter.name();
        }
        FLEUVE_ASSIGN(const DataType type, sql::ParseDataType(parameter.type()));
        function.parameters.push_back({parameter.name(), type, true, {}});
        function.defaults.push_back(parameter.has_default_value() ? Copy(parameter.default_value()) : nullptr);
      }
      if (create.returns_table()) {
        std::vector<StructField> fields;
        for (const pb::ColumnDefinition& column : create.table_columns()) {
          FLEUVE_ASSIGN(const DataType type, sql::ParseDataType(column.type()));
          fields.push_back({column.name(0), type, true, {}});
        }
        function.return_type = DataType::Struct(std::move(fields));
        function.query = Copy(create.table_body());
      } else {
        if (create.has_return_type()) {
          FLEUVE_ASSIGN(function.return_type, sql::ParseDataType(create.return_type()));
        }
        function.body = Copy(create.body());
        // A body that cannot be analyzed is refused now, not at its first use.
        FLEUVE_TRY(
            plan::AnalyzeExpression(create.body(), RowsLeaf(DataType::Struct(function.parameters), {}), resolver));
      }
      state_.PutFunction(parts.back(), std::move(function));
      return Nothing();
    }
    case pb::Command::kDropFunction: {
      const std::vector<std::string> parts = PartsOf(command.drop_function().function());
      if (!state_.DropFunction(parts.back()) && !command.drop_function().if_exists()) {
        return Error(ErrorKind::kNotFound, "ROUTINE_NOT_FOUND",
                     "The routine " + QuoteParts(parts) + " cannot be found.")
            .With("routineName", QuoteParts(parts));
      }
      return Nothing();
    }
    case pb::Command::kExecuteImmediate: {
      const pb::ExecuteImmediate& execute = command.execute_immediate();
      FLEUVE_ASSIGN(const auto text, evaluate(execute.text(), std::nullopt));
      if (!text.second.IsString()) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_EXPR_TYPE_FOR_QUERY_EXECUTE_IMMEDIATE",
                     "Expression type must be string type but got \"" + text.second.Sql() + "\".")
            .With("exprType", "\"" + text.second.Sql() + "\"");
      }
      if (text.first.is_null()) {
        return Error(ErrorKind::kInvalidArgument, "NULL_QUERY_STRING_EXECUTE_IMMEDIATE",
                     "Execute immediate requires a non-null variable as the query string.");
      }
      sc::SQL sql;
      sql.set_query(text.first.text());
      const bool by_name_text = text.first.text().find(':') != std::string::npos;
      for (const sc::Expression& argument : execute.arguments()) {
        const bool by_name = by_name_text && argument.has_unresolved_attribute();
        const bool named = argument.has_alias();
        FLEUVE_ASSIGN(const auto value, evaluate(named ? argument.alias().expr() : argument, std::nullopt));
        sc::Expression literal;
        FLEUVE_TRY(plan::LiteralToProto(value.first, value.second, literal.mutable_literal()));
        if (named) {
          (*sql.mutable_named_arguments())[argument.alias().name(0)] = literal;
        } else if (by_name) {
          // A bare variable stands for the marker of its own name.
          FLEUVE_ASSIGN(const auto parts,
                        sql::ParseMultipartName(argument.unresolved_attribute().unparsed_identifier()));
          (*sql.mutable_named_arguments())[parts.back()] = literal;
        } else {
          *sql.add_pos_arguments() = literal;
        }
      }
      if (sql.pos_arguments_size() > 0 && (sql.named_arguments_size() > 0 || NamedMarkerOnly(text.first.text()))) {
        if (text.first.text().find('?') != std::string::npos) {
          return Error(ErrorKind::kInvalidArgument, "INVALID_QUERY_MIXED_QUERY_PARAMETERS",
                       "Parameterized query must either use positional, or named parameters, but not both.");
        }
        return Error(
            ErrorKind::kInvalidArgument, "ALL_PARAMETERS_MUST_BE_NAMED",
            "Using name parameterized queries requires all parameters to be named. Parameters missing names: " +
                std::to_string(sql.pos_arguments_size()) + ".");
      }
      FLEUVE_ASSIGN(const sql::Statement statement, resolver.ParseStatement(sql));
      RowsResult result;
      if (statement.command != nullptr) {
        if (!execute.into().empty()) {
          return Error(ErrorKind::kInvalidArgument, "INVALID_STATEMENT_FOR_EXECUTE_INTO",
                       "The INTO clause of EXECUTE IMMEDIATE is only valid for queries.");
        }
        return RunStatement(*statement.command, resolver);
      }
      FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeWith(resolver, *statement.query));
      result.schema = plan::SchemaOf(*plan);
      FLEUVE_ASSIGN(result.rows, CollectRows(plan));
      if (execute.into().empty()) {
        return result;
      }
      if (result.rows.size() > 1) {
        return Error(ErrorKind::kInvalidArgument, "ROW_SUBQUERY_TOO_MANY_ROWS",
                     "More than one row returned by a subquery used as a row.");
      }
      if (result.schema.fields().size() != static_cast<std::size_t>(execute.into_size())) {
        return Error(ErrorKind::kInvalidArgument, "ASSIGNMENT_ARITY_MISMATCH",
                     "The number of columns or variables assigned or aliased: " + std::to_string(execute.into_size()) +
                         " does not match the number of source expressions: " +
                         std::to_string(result.schema.fields().size()) + ".");
      }
      for (int i = 0; i < execute.into_size(); ++i) {
        const auto column = static_cast<std::size_t>(i);
        FLEUVE_TRY(assign(PartsOf(execute.into(i)), result.rows.empty() ? Value() : result.rows[0][column],
                          result.schema.fields()[column].type));
      }
      return Nothing();
    }
    default:
      break;
  }
  return Error::Internal("a variable statement of no kind");
}

}  // namespace fleuve::session
