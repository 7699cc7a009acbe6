#include <proto/unpack.h>

#include "base/bytes.h"
#include "plan/analyzer_internal.h"
#include "plan/proto_types.h"
#include "plan/variant_path_internal.h"
#include "sql/parser.h"
#include "types/parts.h"
#include "types/time_zone.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

constexpr int kMaxDepth = 10000;

/// Casts know no length limits: Spark takes char and varchar as string there.
DataType WithoutLengths(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return DataType::String();
    case TypeKind::kArray:
      return DataType::Array(WithoutLengths(type.element()), type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(WithoutLengths(type.key()), WithoutLengths(type.value()), type.contains_null());
    case TypeKind::kStruct: {
      std::vector<types::StructField> fields = type.fields();
      for (types::StructField& field : fields) {
        field.type = WithoutLengths(field.type);
      }
      return DataType::Struct(std::move(fields));
    }
    default:
      return type;
  }
}

class DepthGuard {
 public:
  explicit DepthGuard(int& depth) : depth_(depth) { ++depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --depth_; }

 private:
  int& depth_;
};

}  // namespace

Result<ExprPtr> Analyzer::Expression(const sc::Expression& expression, const Scope& scope) {
  DepthGuard guard(depth_);
  if (depth_ > kMaxDepth) {
    return Error::Unsupported("a plan of more than " + std::to_string(kMaxDepth) + " levels");
  }
  Result<ExprPtr> result = ExpressionBody(expression, scope);
  if (!result.ok() && result.error().contexts().empty() && expression.has_common()) {
    if (const auto context = ContextOf(expression)) {
      return std::move(result).error().At(*context);
    }
  }
  return result;
}

std::shared_ptr<const QueryContext> Analyzer::ContextOf(const sc::Expression& expression) const {
  if (!expression.has_common() || !expression.common().has_origin()) {
    return nullptr;
  }
  const sc::Origin& origin = expression.common().origin();
  if (origin.has_python_origin()) {
    auto context = std::make_shared<QueryContext>();
    context->fragment = origin.python_origin().fragment();
    context->call_site = origin.python_origin().call_site();
    return context;
  }
  if (origin.has_jvm_origin()) {
    const sc::JvmOrigin& jvm = origin.jvm_origin();
    auto context = std::make_shared<QueryContext>();
    context->object_type = jvm.object_type();
    context->object_name = jvm.object_name();
    context->line = jvm.line();
    context->column = jvm.start_position();
    context->start_index = jvm.start_index();
    context->stop_index = jvm.stop_index();
    if (context->start_index >= 0 && context->stop_index >= context->start_index &&
        static_cast<std::size_t>(context->stop_index) < sql_text_.size()) {
      context->fragment = sql_text_.substr(static_cast<std::size_t>(context->start_index),
                                           static_cast<std::size_t>(context->stop_index - context->start_index) + 1);
    }
    return context;
  }
  return nullptr;
}

Result<std::shared_ptr<const sc::Expression>> Analyzer::ParsedExpression(const std::string& text) {
  sql::ParserOptions options;
  options.session_zone = config_.session_zone;
  options.now_micros = config_.now_micros;
  options.timestamp_is_ltz = Conf("spark.sql.timestampType").value_or("TIMESTAMP_LTZ") != "TIMESTAMP_NTZ";
  options.double_quoted_identifiers =
      config_.ansi && Conf("spark.sql.ansi.doubleQuotedIdentifiers").value_or("false") == "true";
  options.escaped_string_literals = Conf("spark.sql.parser.escapedStringLiterals").value_or("false") == "true";
  FLEUVE_ASSIGN(auto parsed, sql::ParseExpression(text, options));
  kept_.push_back(parsed);
  return parsed;
}

Result<ExprPtr> Analyzer::ExpressionBody(const sc::Expression& expression, const Scope& scope) {
  switch (expression.expr_type_case()) {
    case sc::Expression::kLiteral: {
      FLEUVE_ASSIGN(ExprPtr literal, LiteralFromProto(expression.literal()));
      if (literal->type.Is(TypeKind::kTimestamp) || literal->type.IsNested()) {
        return WithDisplay(literal, LiteralDisplay(literal->value, literal->type, config_.session_zone));
      }
      return literal;
    }
    case sc::Expression::kUnresolvedAttribute: {
      const auto& attribute = expression.unresolved_attribute();
      FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(attribute.unparsed_identifier()));
      if (attribute.has_plan_id()) {
        return DataFrameColumn(parts, attribute.plan_id(), scope);
      }
      return Name(parts, scope);
    }
    case sc::Expression::kUnresolvedFunction: {
      const auto& function = expression.unresolved_function();
      FunctionOptions options;
      options.distinct = function.is_distinct();
      return Function(function.function_name(), function.arguments(), options, scope, ContextOf(expression));
    }
    case sc::Expression::kCallFunction:
      return Function(expression.call_function().function_name(), expression.call_function().arguments(),
                      FunctionOptions(), scope, ContextOf(expression));
    case sc::Expression::kExpressionString: {
      FLEUVE_ASSIGN(auto parsed, ParsedExpression(expression.expression_string().expression()));
      std::string text = expression.expression_string().expression();
      std::swap(text, sql_text_);
      Result<ExprPtr> result = Expression(*parsed, scope);
      std::swap(text, sql_text_);
      return result;
    }
    case sc::Expression::kAlias: {
      const auto& alias = expression.alias();
      FLEUVE_ASSIGN(ExprPtr child, Expression(alias.expr(), scope));
      if (alias.name_size() != 1) {
        return Error(ErrorKind::kInvalidArgument, "MULTI_ALIAS_WITHOUT_GENERATOR",
                     "Multi part aliasing (" + std::to_string(alias.name_size()) +
                         " names) is not supported with this expression as it is not a generator function.");
      }
      return WithDisplay(child, child->display + " AS " + alias.name(0));
    }
    case sc::Expression::kCast:
      return Cast(expression.cast(), scope);
    case sc::Expression::kWindow:
      return Window(expression.window(), scope);
    case sc::Expression::kUnresolvedExtractValue: {
      FLEUVE_ASSIGN(ExprPtr child, Expression(expression.unresolved_extract_value().child(), scope));
      FLEUVE_ASSIGN(ExprPtr extraction, Expression(expression.unresolved_extract_value().extraction(), scope));
      return ExtractValue(child, extraction);
    }
    case sc::Expression::kUpdateFields:
      return UpdateFields(expression.update_fields(), scope);
    case sc::Expression::kUnresolvedNamedLambdaVariable: {
      const auto& variable = expression.unresolved_named_lambda_variable();
      std::vector<std::string> parts(variable.name_parts().begin(), variable.name_parts().end());
      if (parts.empty()) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_ATTRIBUTE_NAME_SYNTAX", "A lambda variable has no name.");
      }
      return Name(parts, scope);
    }
    case sc::Expression::kSubqueryExpression: {
      const auto& subquery = expression.subquery_expression();
      const auto reference = references_.find(subquery.plan_id());
      if (reference == references_.end()) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_SUBQUERY_EXPRESSION",
                     "A subquery refers to a plan that is not part of the request.");
      }
      std::vector<ExprPtr> values;
      for (const sc::Expression& value : subquery.in_subquery_values()) {
        FLEUVE_ASSIGN(ExprPtr made, Expression(value, scope));
        values.push_back(std::move(made));
      }
      switch (subquery.subquery_type()) {
        case sc::SubqueryExpression::SUBQUERY_TYPE_SCALAR:
          return Subquery(SubqueryKind::kScalar, *reference->second, {}, scope);
        case sc::SubqueryExpression::SUBQUERY_TYPE_EXISTS:
          return Subquery(SubqueryKind::kExists, *reference->second, {}, scope);
        case sc::SubqueryExpression::SUBQUERY_TYPE_IN:
          return Subquery(SubqueryKind::kIn, *reference->second, std::move(values), scope);
        case sc::SubqueryExpression::SUBQUERY_TYPE_TABLE_ARG:
          return Error::Unsupported("table arguments of functions");
        default:
          return Error::Unsupported("a subquery of kind " + std::to_string(subquery.subquery_type()));
      }
    }
    case sc::Expression::kExtension:
      return ExtensionExpression(expression, scope);
    case sc::Expression::kUnresolvedStar:
    case sc::Expression::kUnresolvedRegex:
      return Error(ErrorKind::kInvalidArgument, "INVALID_USAGE_OF_STAR_OR_REGEX",
                   "Invalid usage of '*' in an expression.")
          .With("elem", "'*'")
          .With("prettyName", "expression");
    case sc::Expression::kNamedArgumentExpression:
      return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_ROUTINE", "A named argument stands outside of a call.");
    case sc::Expression::kLambdaFunction:
      return Error(ErrorKind::kInvalidArgument, "INVALID_LAMBDA_FUNCTION_CALL.NON_HIGHER_ORDER_FUNCTION",
                   "Invalid lambda function call. A lambda function should only be used in a higher order function.");
    case sc::Expression::kSortOrder:
      return Error::Unsupported("a sort order outside of a sort or a window");
    case sc::Expression::kCommonInlineUserDefinedFunction:
      return ExternalFunctionCall(expression.common_inline_user_defined_function(), scope);
    case sc::Expression::kMergeAction:
      return Error::Unsupported("a merge action outside of MERGE INTO");
    case sc::Expression::kTypedAggregateExpression:
      return Error::Unsupported("typed aggregates of Scala programs");
    case sc::Expression::kDirectShufflePartitionId:
      return Error::Unsupported("repartitionById");
    case sc::Expression::EXPR_TYPE_NOT_SET:
      break;
  }
  return Error::Unsupported("an expression without a known type");
}

Result<ExprPtr> Analyzer::ExtensionExpression(const sc::Expression& expression, const Scope& scope) {
  const std::optional<fleuve::pb::ExpressionExtension> extension =
      fleuve::pb::Unpack<fleuve::pb::ExpressionExtension>(expression.extension());
  if (!extension) {
    return Error::Unsupported("the extension expression " + expression.extension().type_url());
  }
  switch (extension->kind_case()) {
    case fleuve::pb::ExpressionExtension::kSubquery: {
      const fleuve::pb::Subquery& subquery = extension->subquery();
      std::vector<ExprPtr> values;
      for (const sc::Expression& value : subquery.values()) {
        FLEUVE_ASSIGN(ExprPtr made, Expression(value, scope));
        values.push_back(std::move(made));
      }
      switch (subquery.kind()) {
        case fleuve::pb::Subquery::SCALAR:
          return Subquery(SubqueryKind::kScalar, subquery.relation(), {}, scope);
        case fleuve::pb::Subquery::EXISTS:
          return Subquery(SubqueryKind::kExists, subquery.relation(), {}, scope);
        case fleuve::pb::Subquery::IN:
          return Subquery(SubqueryKind::kIn, subquery.relation(), std::move(values), scope);
        default:
          break;
      }
      return Error::Unsupported("a subquery of this kind");
    }
    case fleuve::pb::ExpressionExtension::kFunction: {
      const fleuve::pb::FunctionModifiers& modifiers = extension->function();
      FunctionOptions options;
      options.distinct = modifiers.function().is_distinct();
      options.ignore_nulls = modifiers.ignore_nulls();
      options.filter = modifiers.has_filter() ? &modifiers.filter() : nullptr;
      options.within_group = &modifiers.within_group();
      return Function(modifiers.function().function_name(), modifiers.function().arguments(), options, scope,
                      ContextOf(expression));
    }
    case fleuve::pb::ExpressionExtension::kStarExcept:
      return Error(ErrorKind::kInvalidArgument, "INVALID_USAGE_OF_STAR_OR_REGEX",
                   "Invalid usage of '*' in an expression.");
    case fleuve::pb::ExpressionExtension::kOrderByAll:
      return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
                   "ORDER BY ALL cannot be combined with other sort keys.");
    case fleuve::pb::ExpressionExtension::kDefaultValue:
      return Error(ErrorKind::kInvalidArgument, "DEFAULT_PLACEMENT_INVALID",
                   "A DEFAULT keyword in a MERGE, INSERT, UPDATE, or SET VARIABLE command could not be directly "
                   "assigned to a target column because it was part of an expression.");
    case fleuve::pb::ExpressionExtension::kVariantPath: {
      FLEUVE_ASSIGN(ExprPtr child, Expression(extension->variant_path().child(), scope));
      const std::string& path = extension->variant_path().path();
      FLEUVE_ASSIGN(ExprPtr value, Call("variant_get", {child, MakeLiteral(types::Value(path), DataType::String()),
                                                        MakeLiteral(types::Value("variant"), DataType::String())}));
      // The last name of the path is the name of the value, inside other expressions too.
      const std::string last = LastNameOfPath(path);
      return WithDisplay(value,
                         "variant_get(" + child->display + ", " + path + ")" + (last.empty() ? "" : " AS " + last));
    }
    case fleuve::pb::ExpressionExtension::kDynamicName: {
      const fleuve::pb::DynamicName& name = extension->dynamic_name();
      FLEUVE_ASSIGN(ExprPtr text, Expression(name.name(), scope));
      const std::optional<std::string> constant = ConstantText(text);
      if (!constant) {
        return Error(ErrorKind::kInvalidArgument, "NOT_A_CONSTANT_STRING.NOT_CONSTANT",
                     "The expression " + text->display +
                         " used for the routine or clause IDENTIFIER must be a constant STRING which is NOT NULL.");
      }
      if (name.is_function()) {
        return Function(*constant, name.arguments(), FunctionOptions(), scope, ContextOf(expression));
      }
      FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(*constant));
      return Name(parts, scope);
    }
    case fleuve::pb::ExpressionExtension::kTableArgument:
      return Error::Unsupported("table arguments of functions");
    case fleuve::pb::ExpressionExtension::KIND_NOT_SET:
      break;
  }
  return Error::Unsupported("an extension expression of an unknown kind");
}

namespace {

/// What `epoch`, `now`, `today`, `tomorrow` and `yesterday` stand for in a cast; null for any other text.
ExprPtr SpecialDate(const Expr& text, const DataType& type, const AnalysisConfig& config) {
  const bool date = type.Is(TypeKind::kDate);
  if (text.kind != ExprKind::kLiteral || !text.type.IsString() || text.value.is_null() ||
      (!date && !type.Is(TypeKind::kTimestamp) && !type.Is(TypeKind::kTimestampNtz))) {
    return nullptr;
  }
  const std::string word = AsciiLower(TrimAscii(text.value.text()));
  const auto zone = types::TimeZone::Find(config.session_zone);
  if (!zone.ok()) {
    return nullptr;
  }
  constexpr std::int64_t kDay = 86400000000;
  const std::int64_t local = (*zone)->UtcToLocal(config.now_micros);
  const std::int64_t today = local / kDay - (local % kDay < 0 ? 1 : 0);
  std::int64_t day = today;
  if (word == "epoch") {
    day = 0;
  } else if (word == "tomorrow") {
    day = today + 1;
  } else if (word == "yesterday") {
    day = today - 1;
  } else if (word != "today" && word != "now") {
    return nullptr;
  }
  if (date) {
    return MakeLiteral(types::Value(day), type);
  }
  if (type.Is(TypeKind::kTimestampNtz)) {
    return MakeLiteral(types::Value(word == "now" ? local : day * kDay), type);
  }
  const std::int64_t instant = word == "now"     ? config.now_micros
                               : word == "epoch" ? 0
                                                 : (*zone)->LocalToUtc(day * kDay);
  return MakeLiteral(types::Value(instant), type);
}

}  // namespace

Result<ExprPtr> Analyzer::Cast(const sc::Expression_Cast& cast, const Scope& scope) {
  FLEUVE_ASSIGN(ExprPtr child, Expression(cast.expr(), scope));
  DataType type;
  if (cast.has_type()) {
    FLEUVE_ASSIGN(type, TypeFromProto(cast.type()));
  } else {
    FLEUVE_ASSIGN(type, DataType::FromDdl(cast.type_str()));
  }
  type = WithoutLengths(type);
  CastMode mode = config_.ansi ? CastMode::kAnsi : CastMode::kLegacy;
  switch (cast.eval_mode()) {
    case sc::Expression_Cast::EVAL_MODE_UNSPECIFIED:
      break;
    case sc::Expression_Cast::EVAL_MODE_LEGACY:
      mode = CastMode::kLegacy;
      break;
    case sc::Expression_Cast::EVAL_MODE_ANSI:
      mode = CastMode::kAnsi;
      break;
    case sc::Expression_Cast::EVAL_MODE_TRY:
      mode = CastMode::kTry;
      break;
    default:
      return Error::Unsupported("a cast with evaluation mode " + std::to_string(cast.eval_mode()));
  }
  FLEUVE_ASSIGN(ExprPtr made, MakeCast(child, type, mode, config_));
  if (const ExprPtr special = SpecialDate(*child, type, config_); special != nullptr) {
    made = special;
  }
  if (type.Is(TypeKind::kArray) || type.Is(TypeKind::kMap) || type.Is(TypeKind::kStruct)) {
    return made;  // shown as the child alone
  }
  return WithDisplay(made,
                     (mode == CastMode::kTry ? "TRY_CAST(" : "CAST(") + child->display + " AS " + type.Sql() + ")");
}

Result<ExprPtr> Analyzer::UpdateFields(const sc::Expression_UpdateFields& update, const Scope& scope) {
  FLEUVE_ASSIGN(ExprPtr record, Expression(update.struct_expression(), scope));
  FLEUVE_ASSIGN(std::vector<std::string> path, SplitIdentifier(update.field_name()));
  ExprPtr value;
  if (update.has_value_expression()) {
    FLEUVE_ASSIGN(value, Expression(update.value_expression(), scope));
  }
  const std::string display =
      "update_fields(" + record->display + ", " + (value ? "WithField(" + value->display + ")" : "dropfield()") + ")";
  const std::function<Result<ExprPtr>(const ExprPtr&, std::size_t)> change = [&](const ExprPtr& target,
                                                                                 std::size_t level) -> Result<ExprPtr> {
    if (!target->type.Is(TypeKind::kStruct)) {
      return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
                   "Cannot resolve \"" + display +
                       "\" due to data type mismatch: the first parameter requires the "
                       "\"STRUCT\" type, however \"" +
                       target->display + "\" has the type " + TypesSql(target->type) + ".");
    }
    std::vector<ExprPtr> parts;
    bool found = false;
    for (std::size_t i = 0; i < target->type.fields().size(); ++i) {
      const types::StructField& field = target->type.fields()[i];
      ExprPtr current = MakeGetField(target, static_cast<int>(i));
      if (EqualNames(field.name, path[level], config_.case_sensitive)) {
        found = true;
        if (level + 1 < path.size()) {
          FLEUVE_ASSIGN(current, change(current, level + 1));
        } else if (value == nullptr) {
          continue;
        } else {
          current = value;
        }
        parts.push_back(
            MakeLiteral(types::Value(level + 1 < path.size() ? field.name : path[level]), DataType::String()));
      } else {
        parts.push_back(MakeLiteral(types::Value(field.name), DataType::String()));
      }
      parts.push_back(std::move(current));
    }
    if (!found) {
      if (level + 1 < path.size()) {
        return Error(ErrorKind::kInvalidArgument, "FIELD_NOT_FOUND",
                     "No such struct field " + QuoteParts({path[level]}) + ".");
      }
      if (value != nullptr) {
        parts.push_back(MakeLiteral(types::Value(path[level]), DataType::String()));
        parts.push_back(value);
      }
    }
    if (parts.empty()) {
      return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.CANNOT_DROP_ALL_FIELDS",
                   "Cannot resolve \"" + display + "\" due to data type mismatch: cannot drop all fields in struct.");
    }
    FLEUVE_ASSIGN(ExprPtr made, Call("named_struct", std::move(parts)));
    if (!target->nullable) {
      return made;
    }
    FLEUVE_ASSIGN(ExprPtr is_null, Call("isnull", {target}));
    return MakeCase({is_null, MakeNull(made->type), made}, true, made->type);
  };
  FLEUVE_ASSIGN(ExprPtr made, change(record, 0));
  return WithDisplay(made, display);
}

Result<ExprPtr> Analyzer::Call(const std::string& name, std::vector<ExprPtr> arguments) {
  FunctionCall call;
  call.name = name;
  call.argument_names.resize(arguments.size());
  call.arguments = std::move(arguments);
  call.config = &config_;
  call.lambda_arity = [](std::size_t) -> std::size_t { return 0; };
  call.bind_lambda = [](std::size_t, const std::vector<Attribute>&) -> Result<ExprPtr> {
    return Error::Internal("a call without lambdas was asked for one");
  };
  return BuildFunction(call);
}

Result<ExprPtr> Analyzer::AsBoolean(const ExprPtr& expr, const char* what) {
  if (expr->type.Is(TypeKind::kBoolean)) {
    return expr;
  }
  if (expr->type.Is(TypeKind::kVoid)) {
    return MakeCast(expr, DataType::Boolean(), config_);
  }
  return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN",
               "Cannot resolve \"" + expr->display + "\" due to data type mismatch: " + what +
                   " expression must be of the type \"BOOLEAN\", but got " + TypesSql(expr->type) + ".")
      .With("sqlExpr", "\"" + expr->display + "\"")
      .With("filter", "\"" + expr->display + "\"")
      .With("type", TypesSql(expr->type));
}

Result<SortKey> Analyzer::Order(const sc::Expression_SortOrder& order, const Scope& scope) {
  SortKey key;
  FLEUVE_ASSIGN(key.expr, Expression(order.child(), scope));
  key.ascending = order.direction() != sc::Expression_SortOrder::SORT_DIRECTION_DESCENDING;
  key.nulls_first = order.null_ordering() == sc::Expression_SortOrder::SORT_NULLS_UNSPECIFIED
                        ? key.ascending
                        : order.null_ordering() == sc::Expression_SortOrder::SORT_NULLS_FIRST;
  if (!types::IsOrderable(key.expr->type)) {
    return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                 "Cannot resolve \"" + key.expr->display +
                     "\" due to data type mismatch: the sort order does not "
                     "support ordering on type " +
                     TypesSql(key.expr->type) + ".")
        .With("functionName", "`sortorder`")
        .With("dataType", TypesSql(key.expr->type));
  }
  return key;
}

}  // namespace fleuve::plan
