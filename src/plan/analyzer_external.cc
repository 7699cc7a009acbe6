// Functions of the user in another language: calls, functions over partitions and groups, table functions.

#include <proto/unpack.h>

#include <algorithm>
#include <limits>

#include "plan/analyzer_internal.h"
#include "plan/event_time.h"
#include "plan/external.h"
#include "plan/external_proto.h"
#include "plan/proto_types.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

/// Settings that running functions look at.
constexpr const char* kSettings[] = {
    "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.execution.pandas.convertToArrowArraySafely",
    "spark.sql.execution.pyspark.binaryAsBytes",
    "spark.sql.execution.pyspark.python",
    "spark.sql.execution.pythonUDF.arrow.concurrency.level",
    "spark.sql.execution.pythonUDF.pandas.intToDecimalCoercionEnabled",
    "spark.sql.legacy.execution.pandas.groupedMap.assignColumnsByName",
    "spark.sql.legacy.execution.pythonUDF.pandas.conversion.enabled",
    "spark.sql.legacy.execution.pythonUDTF.pandas.conversion.enabled",
    "spark.sql.pyspark.inferNestedDictAsStruct.enabled",
};

Error NotPython(const std::string& name, bool java) {
  return Error::Unsupported(std::string(java ? "the Java function " : "the Scala function ") + name);
}

Result<void> CheckArgumentNames(const std::string& function, const std::vector<std::string>& names) {
  bool named = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) {
      if (named) {
        return Error(ErrorKind::kInvalidArgument, "UNEXPECTED_POSITIONAL_ARGUMENT",
                     "Cannot invoke routine " + QuoteParts({function}) +
                         " because it contains positional argument(s) following the named argument assigned to " +
                         QuoteParts({names[i - 1]}) +
                         "; please rearrange them so the positional arguments come first "
                         "and then retry the query again.")
            .With("routineName", QuoteParts({function}))
            .With("parameterName", QuoteParts({names[i - 1]}));
      }
      continue;
    }
    named = true;
    for (std::size_t j = 0; j < i; ++j) {
      if (names[j] == names[i]) {
        return Error(ErrorKind::kInvalidArgument,
                     "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT.DOUBLE_NAMED_ARGUMENT_REFERENCE",
                     "Call to routine " + QuoteParts({function}) +
                         " is invalid because it includes multiple argument assignments to the same parameter name " +
                         QuoteParts({names[i]}) +
                         ". More than one named argument referred to the same parameter. "
                         "Please assign a value only once.")
            .With("routineName", QuoteParts({function}))
            .With("parameterName", QuoteParts({names[i]}));
      }
    }
  }
  return {};
}

/// An argument as Spark shows it inside a call of such a function: casts in small letters, structs with their names.
std::string ArgumentText(const Expr& argument) {
  if (argument.kind == ExprKind::kCast && argument.display.starts_with("CAST(")) {
    return "cast(" + ArgumentText(*argument.children[0]) + " as " + argument.type.SimpleString() + ")";
  }
  if (argument.kind == ExprKind::kCall && argument.function == "spark_struct" &&
      argument.display.starts_with("struct(") && argument.children.size() == argument.type.fields().size()) {
    std::string text;
    for (std::size_t i = 0; i < argument.children.size(); ++i) {
      text += (i == 0 ? "" : ", ") + argument.type.fields()[i].name + ", " + ArgumentText(*argument.children[i]);
    }
    return "struct(" + text + ")";
  }
  return argument.display;
}

std::string Shown(const std::string& function, const std::vector<ExprPtr>& arguments,
                  const std::vector<std::string>& names) {
  std::string shown;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    shown += (i == 0 ? "" : ", ") + (names[i].empty() ? "" : names[i] + " => ") + ArgumentText(*arguments[i]);
  }
  return function + "(" + shown + ")";
}

std::vector<Attribute> Visible(const LogicalPlan& plan) {
  std::vector<Attribute> visible;
  for (const Attribute& attribute : plan.output) {
    if (!attribute.hidden) {
      visible.push_back(attribute);
    }
  }
  return visible;
}

std::vector<ExprPtr> Exprs(const std::vector<Attribute>& attributes) {
  std::vector<ExprPtr> exprs;
  for (const Attribute& attribute : attributes) {
    exprs.push_back(MakeAttribute(attribute));
  }
  return exprs;
}

}  // namespace

Result<std::shared_ptr<const ExternalContext>> Analyzer::ExternalSettings() {
  if (external_ == nullptr) {
    auto context = std::make_shared<ExternalContext>();
    context->runtime = resolver_.External();
    if (context->runtime == nullptr) {
      return Error::Unsupported("functions in other languages: nothing here runs them");
    }
    if (const auto profiler = Conf("spark.sql.pyspark.udf.profiler"); profiler && !profiler->empty()) {
      return Error::Unsupported("profiling of Python functions (spark.sql.pyspark.udf.profiler)");
    }
    for (const char* key : kSettings) {
      if (std::optional<std::string> value = Conf(key)) {
        context->settings.emplace(key, *std::move(value));
      }
    }
    context->session_zone = config_.session_zone;
    const auto rows = context->settings.find(kSettings[0]);
    if (rows != context->settings.end()) {
      context->batch_rows = std::atoll(rows->second.c_str());
    }
    if (context->batch_rows <= 0) {
      context->batch_rows = std::numeric_limits<std::int32_t>::max();
    }
    external_ = std::move(context);
  }
  return external_;
}

Result<std::shared_ptr<const ExternalFunction>> ExternalFunctionFromProto(
    const sc::CommonInlineUserDefinedFunction& proto) {
  if (!proto.has_python_udf()) {
    return NotPython(proto.function_name(), proto.has_java_udf());
  }
  auto function = std::make_shared<ExternalFunction>();
  const sc::PythonUDF& udf = proto.python_udf();
  function->name = proto.function_name();
  function->eval_type = udf.eval_type();
  function->command = udf.command();
  function->python_version = udf.python_ver();
  function->includes.assign(udf.additional_includes().begin(), udf.additional_includes().end());
  FLEUVE_ASSIGN(function->type, TypeFromProto(udf.output_type()));
  function->deterministic = proto.deterministic();
  return std::shared_ptr<const ExternalFunction>(std::move(function));
}

Result<ExprPtr> Analyzer::ExternalFunctionCall(const sc::CommonInlineUserDefinedFunction& proto, const Scope& scope) {
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalFunction> function, ExternalFunctionFromProto(proto));
  return ExternalFunctionCall(std::move(function), proto.arguments(), proto.is_distinct(), scope);
}

Result<ExprPtr> Analyzer::ExternalFunctionCall(std::shared_ptr<const ExternalFunction> function,
                                               const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                               bool is_distinct, const Scope& scope) {
  const bool in_window = std::exchange(is_window_function_, false);
  const ExternalCallKind kind = function->call_kind();
  const bool is_aggregate = kind == ExternalCallKind::kAggregate;
  if (!is_aggregate && kind != ExternalCallKind::kScalar && kind != ExternalCallKind::kScalarIter) {
    return Error::Unsupported("the function " + function->name + " (evaluation type " +
                              std::to_string(function->eval_type) + ") in an expression");
  }
  if (is_aggregate && scope.aggregate_input != nullptr) {
    Scope inner = scope;
    inner.tiers = {scope.aggregate_input};
    inner.aggregate_input = nullptr;
    inner.aliases = nullptr;
    is_window_function_ = in_window;
    return ExternalFunctionCall(std::move(function), arguments, is_distinct, inner);
  }
  if (is_distinct) {
    FunctionOptions options;
    options.distinct = true;
    FLEUVE_TRY(CheckNoClauses(function->name, options));
  }
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalContext> context, ExternalSettings());
  FLEUVE_ASSIGN(FunctionCall call, MakeFunctionCall(function->name, arguments, FunctionOptions(), scope, nullptr));
  FLEUVE_TRY(CheckArgumentNames(function->name, call.argument_names));
  for (const ExprPtr& argument : call.arguments) {
    if (argument == nullptr) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_LAMBDA_FUNCTION_CALL.NON_HIGHER_ORDER_FUNCTION",
                   "Invalid lambda function call. A lambda function should only be used in a higher order function. "
                   "However, its class is a Python function, which is not a higher order function.");
    }
    if (is_aggregate && !in_window && HasAggregate(argument)) {
      return Error(ErrorKind::kInvalidArgument, "NESTED_AGGREGATE_FUNCTION",
                   "It is not allowed to use an aggregate function in the argument of another aggregate function. "
                   "Please use the inner aggregate function in a sub-query.");
    }
    if (is_aggregate) {
      FLEUVE_TRY(CheckAggregated(argument, in_window, function->name));
    }
  }
  std::string shown = Shown(function->name, call.arguments, call.argument_names);
  if (!scope.lambdas.empty()) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.LAMBDA_FUNCTION_WITH_PYTHON_UDF",
                 "The feature is not supported: Lambda function with Python UDF \"" + shown +
                     "\" in a higher order function.")
        .With("funcName", "\"" + shown + "\"");
  }
  auto bound = std::make_shared<ExternalFunction>(*function);
  bound->context = std::move(context);
  ExprPtr made = MakeCall("external", call.arguments, function->type, true, true, function->deterministic);
  auto copy = std::make_shared<Expr>(*made);
  copy->kind = is_aggregate ? ExprKind::kAggregate : ExprKind::kCall;
  copy->external = std::move(bound);
  const bool named = std::any_of(call.argument_names.begin(), call.argument_names.end(),
                                 [](const std::string& name) { return !name.empty(); });
  if (named) {
    copy->argument_names = std::move(call.argument_names);
  }
  copy->display = std::move(shown);
  return ExprPtr(std::move(copy));
}

/// What a kExternal node with one call is made of, beside its function.
struct Analyzer::ExternalParts {
  /// Its kind and what goes with it; without calls and context.
  ExternalOperator op;
  std::vector<ExprPtr> grouping;
  std::vector<SortKey> order_by;
  /// Stands in front of the arguments and is none; may be null.
  ExprPtr side;
  std::vector<ExprPtr> arguments;
  std::vector<std::string> argument_names;
};

Result<PlanPtr> Analyzer::ExternalPlan(ExternalParts parts, const PlanPtr& child,
                                       const std::shared_ptr<const ExternalFunction>& function) {
  if (!function->type.Is(TypeKind::kStruct)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_RETURN_TYPE_FOR_PANDAS_UDF",
                 "The function " + function->name + " must return a struct type.");
  }
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalContext> context, ExternalSettings());
  auto bound = std::make_shared<ExternalFunction>(*function);
  bound->context = context;
  auto plan = std::make_shared<LogicalPlan>();
  ExternalCall call;
  call.chain.push_back(std::move(bound));
  call.argument_names = std::move(parts.argument_names);
  if (parts.side != nullptr) {
    plan->exprs.push_back(std::move(parts.side));
  }
  for (ExprPtr& argument : parts.arguments) {
    call.arguments.push_back(static_cast<int>(plan->exprs.size()));
    plan->exprs.push_back(std::move(argument));
  }
  parts.op.context = std::move(context);
  parts.op.calls.push_back(std::move(call));
  plan->kind = PlanKind::kExternal;
  plan->is_streaming = child->is_streaming;
  plan->external = std::make_shared<ExternalOperator>(std::move(parts.op));
  plan->grouping = std::move(parts.grouping);
  plan->order_by = std::move(parts.order_by);
  plan->output = AttributesOf(function->type);
  plan->children.push_back(child);
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::MapPartitions(const sc::MapPartitions& map) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(map.input()));
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalFunction> function, ExternalFunctionFromProto(map.func()));
  if (function->call_kind() != ExternalCallKind::kMap) {
    return Error::Unsupported("a function of evaluation type " + std::to_string(function->eval_type) +
                              " over partitions");
  }
  if (map.has_profile_id() && map.profile_id() != 0) {
    return Error::Unsupported("resource profiles of mapInPandas and mapInArrow");
  }
  input = WithoutHidden(input);
  ExternalParts parts;
  parts.op.kind = ExternalKind::kMap;
  parts.arguments = Exprs(input->output);
  return ExternalPlan(std::move(parts), input, function);
}

Result<PlanPtr> Analyzer::GroupKeys(const PlanPtr& input,
                                    const google::protobuf::RepeatedPtrField<sc::Expression>& grouping,
                                    std::vector<Attribute>& keys) {
  FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(grouping, input, false));
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  for (SelectItem& item : items) {
    if (item.generator || item.expr == nullptr || HasAggregate(item.expr)) {
      return Error(ErrorKind::kInvalidArgument, "GROUP_BY_AGGREGATE",
                   "Aggregate functions and generators are not allowed in GROUP BY.");
    }
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = item.name;
    attribute.type = item.expr->type;
    attribute.nullable = item.expr->nullable;
    attribute.hidden = true;
    exprs.push_back(std::move(item.expr));
    output.push_back(attribute);
    keys.push_back(std::move(attribute));
  }
  for (const Attribute& attribute : Visible(*input)) {
    exprs.push_back(AttributeExpr(attribute));
    output.push_back(attribute);
  }
  return MakeProject(input, std::move(exprs), std::move(output));
}

namespace {

Result<void> CheckKeepsState(const ExternalFunction& function) {
  if (function.call_kind() == ExternalCallKind::kGroupState) {
    return {};
  }
  return Error::Unsupported("a function of evaluation type " + std::to_string(function.eval_type) +
                            " over groups with state");
}

Result<void> CheckOutputMode(const std::string& output_mode) {
  const std::string output = LowerName(output_mode);
  if (output != "append" && output != "update" && output != "complete") {
    return Error(ErrorKind::kInvalidArgument, "STREAMING_OUTPUT_MODE.INVALID",
                 "Invalid streaming output mode: " + output_mode +
                     ". Accepted output modes are 'Append', 'Complete', 'Update'.")
        .With("outputMode", output_mode)
        .Family(ErrorFamily::kIllegalArgument);
  }
  return {};
}

Result<void> CheckTimeMode(const std::string& time_mode) {
  const std::string time = LowerName(time_mode);
  if (time != "none" && time != "processingtime" && time != "eventtime") {
    return Error(
               ErrorKind::kInvalidArgument, "STATEFUL_PROCESSOR_UNKNOWN_TIME_MODE",
               "Unknown time mode " + time_mode + ". Accepted timeMode modes are 'none', 'processingTime', 'eventTime'")
        .With("timeMode", time_mode)
        .Family(ErrorFamily::kIllegalArgument);
  }
  return {};
}

/// The processor's output column `name` has the watermark of its input.
Result<PlanPtr> WithEventTime(const PlanPtr& processor, const ExprPtr& column, const std::string& name) {
  if (!column->type.Is(TypeKind::kTimestamp) || column->kind != ExprKind::kAttribute) {
    return Error(ErrorKind::kInvalidArgument, "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE",
                 "The event time `" + name + "` has the invalid type \"" + column->type.Sql() +
                     "\", but expected \"TIMESTAMP\".")
        .With("eventName", "`" + name + "`")
        .With("eventType", "\"" + column->type.Sql() + "\"");
  }
  const Attribute* time = EventTimeColumn(processor->children.front()->output);
  if (time == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "CANNOT_ASSIGN_EVENT_TIME_COLUMN_WITHOUT_WATERMARK",
                 "Watermark needs to be defined to reassign event time column. Failed to find watermark definition in "
                 "the streaming query.");
  }
  auto plan = std::make_shared<LogicalPlan>(*processor);
  plan->output = WithWatermark(std::move(plan->output), column->attribute.id, *WatermarkDelayMs(*time) * 1000);
  return PlanPtr(std::move(plan));
}

}  // namespace

Result<PlanPtr> Analyzer::GroupMap(const sc::GroupMap& map) {
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalFunction> function, ExternalFunctionFromProto(map.func()));
  if (map.has_transform_with_state_info()) {
    const auto& info = map.transform_with_state_info();
    FLEUVE_TRY(CheckTimeMode(info.time_mode()));
    FLEUVE_TRY(CheckOutputMode(map.output_mode()));
    FLEUVE_TRY(CheckKeepsState(*function));
    auto with_type = std::make_shared<ExternalFunction>(*function);
    if (info.has_output_schema()) {
      FLEUVE_ASSIGN(with_type->type, TypeFromProto(info.output_schema()));
    }
    PlanPtr made;
    if (map.has_initial_input() && map.initial_input().rel_type_case() != sc::Relation::REL_TYPE_NOT_SET) {
      // Rows and initial state are the two sides of a co-group.
      sc::CoGroupMap sides;
      *sides.mutable_func() = map.func();
      if (info.has_output_schema()) {
        *sides.mutable_func()->mutable_python_udf()->mutable_output_type() = info.output_schema();
      }
      *sides.mutable_input() = map.input();
      *sides.mutable_other() = map.initial_input();
      *sides.mutable_input_grouping_expressions() = map.grouping_expressions();
      *sides.mutable_other_grouping_expressions() = map.initial_grouping_expressions();
      FLEUVE_ASSIGN(const PlanPtr both, CoGroupMap(sides));
      if (both->children.front()->children.back()->is_streaming) {
        return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_3102",
                     "Streaming DataFrame/Dataset is not supported as the initial state of transformWithState;")
            .Family(ErrorFamily::kAnalysis);
      }
      auto op = std::make_shared<ExternalOperator>(*both->external);
      op->output_mode = LowerName(map.output_mode());
      op->timeout = info.time_mode();
      auto processor = std::make_shared<LogicalPlan>(*both);
      processor->external = std::move(op);
      made = std::move(processor);
    } else {
      FLEUVE_ASSIGN(made, GroupState(map.input(), map.grouping_expressions(), std::move(with_type), map.output_mode(),
                                     info.time_mode(), std::nullopt));
    }
    if (info.event_time_column_name().empty()) {
      return made;
    }
    FLEUVE_ASSIGN(const ExprPtr column, Name({info.event_time_column_name()}, ScopeOf(made)));
    return WithEventTime(made, column, info.event_time_column_name());
  }
  if (map.has_is_map_groups_with_state()) {
    return Error::Unsupported("functions over groups that keep state, of Scala programs");
  }
  if (function->call_kind() != ExternalCallKind::kGroupMap) {
    return Error::Unsupported("a function of evaluation type " + std::to_string(function->eval_type) + " over groups");
  }
  if (map.sorting_expressions_size() != 0) {
    return Error::Unsupported("sorted groups");
  }
  FLEUVE_ASSIGN(PlanPtr input, Relation(map.input()));
  std::vector<Attribute> keys;
  FLEUVE_ASSIGN(PlanPtr keyed, GroupKeys(input, map.grouping_expressions(), keys));
  ExternalParts parts;
  parts.op.kind = ExternalKind::kGroupMap;
  parts.grouping = Exprs(keys);
  parts.arguments = Exprs(Visible(*keyed));
  return ExternalPlan(std::move(parts), keyed, function);
}

Result<PlanPtr> Analyzer::GroupState(const sc::Relation& relation,
                                     const google::protobuf::RepeatedPtrField<sc::Expression>& grouping,
                                     std::shared_ptr<const ExternalFunction> function, const std::string& output_mode,
                                     const std::string& timeout, std::optional<DataType> state_type) {
  FLEUVE_TRY(CheckKeepsState(*function));
  FLEUVE_ASSIGN(PlanPtr input, Relation(relation));
  std::vector<Attribute> keys;
  FLEUVE_ASSIGN(PlanPtr keyed, GroupKeys(input, grouping, keys));
  ExternalParts parts;
  parts.op.kind = ExternalKind::kGroupState;
  parts.op.output_mode = LowerName(output_mode);
  parts.op.timeout = timeout;
  parts.op.state_type = std::move(state_type);
  parts.grouping = Exprs(keys);
  parts.arguments = Exprs(Visible(*keyed));
  return ExternalPlan(std::move(parts), keyed, function);
}

Result<PlanPtr> Analyzer::ApplyWithState(const sc::ApplyInPandasWithState& apply) {
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalFunction> function, ExternalFunctionFromProto(apply.func()));
  const auto type_of = [](const std::string& text) -> Result<DataType> {
    if (!text.empty() && text.front() == '{') {
      FLEUVE_ASSIGN(const Json json, Json::Parse(text));
      return DataType::FromJson(json);
    }
    return DataType::FromDdl(text);
  };
  FLEUVE_TRY(CheckOutputMode(apply.output_mode()));
  if (LowerName(apply.output_mode()) == "complete") {
    return Error(ErrorKind::kInvalidArgument, "", "The output mode of function should be append or update")
        .Family(ErrorFamily::kIllegalArgument);
  }
  const std::string& timeout = apply.timeout_conf();
  if (timeout != "NoTimeout" && timeout != "ProcessingTimeTimeout" && timeout != "EventTimeTimeout") {
    return Error(ErrorKind::kInvalidArgument, "", "Invalid string for GroupStateTimeout: " + timeout)
        .Family(ErrorFamily::kIllegalArgument);
  }
  auto with_type = std::make_shared<ExternalFunction>(*function);
  FLEUVE_ASSIGN(with_type->type, type_of(apply.output_schema()));
  FLEUVE_ASSIGN(DataType state_type, type_of(apply.state_schema()));
  return GroupState(apply.input(), apply.grouping_expressions(), std::move(with_type), apply.output_mode(),
                    apply.timeout_conf(), std::move(state_type));
}

Result<PlanPtr> Analyzer::CoGroupMap(const sc::CoGroupMap& map) {
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalFunction> function, ExternalFunctionFromProto(map.func()));
  // A processor with an initial state comes here too (see GroupMap).
  const ExternalCallKind call_kind = function->call_kind();
  if (call_kind != ExternalCallKind::kCoGroupMap && call_kind != ExternalCallKind::kGroupState) {
    return Error::Unsupported("a function of evaluation type " + std::to_string(function->eval_type) +
                              " over co-grouped data");
  }
  if (map.input_sorting_expressions_size() != 0 || map.other_sorting_expressions_size() != 0) {
    return Error::Unsupported("sorted groups");
  }
  FLEUVE_ASSIGN(PlanPtr left_input, Relation(map.input()));
  FLEUVE_ASSIGN(PlanPtr right_input, Relation(map.other()));
  right_input = FreshInstance(right_input);
  std::vector<Attribute> keys[2];
  FLEUVE_ASSIGN(PlanPtr left, GroupKeys(left_input, map.input_grouping_expressions(), keys[0]));
  FLEUVE_ASSIGN(PlanPtr right, GroupKeys(right_input, map.other_grouping_expressions(), keys[1]));
  if (keys[0].size() != keys[1].size()) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "requirement failed: Cogroup keys must have same size: " + std::to_string(keys[0].size()) +
                     " != " + std::to_string(keys[1].size()))
        .Family(ErrorFamily::kIllegalArgument);
  }
  for (std::size_t i = 0; i < keys[0].size(); ++i) {
    if (!(keys[0][i].type == keys[1][i].type)) {
      return Error::Unsupported("co-grouping by columns of different types");
    }
  }
  // Rows of both sides in one stream, told apart by their first column.
  const std::vector<Attribute> columns[2] = {Visible(*left), Visible(*right)};
  std::vector<PlanPtr> sides;
  std::vector<Attribute> output;
  for (int side = 0; side < 2; ++side) {
    std::vector<ExprPtr> exprs;
    std::vector<Attribute> side_output;
    const auto add = [&](ExprPtr expr, const std::string& name) {
      Attribute attribute;
      attribute.id = NewAttributeId();
      attribute.name = name;
      attribute.type = expr->type;
      side_output.push_back(std::move(attribute));
      exprs.push_back(std::move(expr));
    };
    for (const Attribute& key : keys[side]) {
      add(AttributeExpr(key), key.name);
    }
    add(MakeLiteral(types::Value(side), DataType::Int()), "_side");
    for (int of = 0; of < 2; ++of) {
      for (const Attribute& column : columns[of]) {
        add(of == side ? AttributeExpr(column) : MakeNull(column.type), column.name);
        // The watermark of the left side counts.
        side_output.back().metadata = of == 0 ? column.metadata : Json();
      }
    }
    sides.push_back(MakeProject(side == 0 ? left : right, std::move(exprs), side_output));
    output = std::move(side_output);
  }
  auto both = std::make_shared<LogicalPlan>();
  both->kind = PlanKind::kUnion;
  both->is_streaming = left->is_streaming || right->is_streaming;
  both->children = std::move(sides);
  for (Attribute& attribute : output) {
    attribute.id = NewAttributeId();
  }
  both->output = output;
  const auto side_at = output.begin() + static_cast<std::ptrdiff_t>(keys[0].size());
  ExternalParts parts;
  parts.op.kind = call_kind == ExternalCallKind::kGroupState ? ExternalKind::kGroupState : ExternalKind::kCoGroupMap;
  parts.op.left_arguments = columns[0].size();
  parts.grouping = Exprs({output.begin(), side_at});
  parts.side = AttributeExpr(*side_at);
  parts.order_by.emplace_back().expr = parts.side;
  parts.arguments = Exprs({side_at + 1, output.end()});
  return ExternalPlan(std::move(parts), both, function);
}

Result<PlanPtr> Analyzer::ExternalTable(const sc::CommonInlineUserDefinedTableFunction& proto) {
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalFunction> function, ExternalTableFunctionFromProto(proto));
  return ExternalTable(std::move(function), proto.arguments());
}

Result<std::shared_ptr<const ExternalFunction>> ExternalTableFunctionFromProto(
    const sc::CommonInlineUserDefinedTableFunction& proto) {
  if (!proto.has_python_udtf()) {
    return Error::Unsupported("the table function " + proto.function_name() + " that is no Python function");
  }
  const sc::PythonUDTF& udtf = proto.python_udtf();
  auto function = std::make_shared<ExternalFunction>();
  function->name = proto.function_name();
  function->eval_type = udtf.eval_type();
  function->command = udtf.command();
  function->python_version = udtf.python_ver();
  if (udtf.has_return_type()) {
    FLEUVE_ASSIGN(function->type, TypeFromProto(udtf.return_type()));
    if (!function->type.Is(TypeKind::kStruct)) {
      return Error(ErrorKind::kInvalidArgument, "UDTF_RETURN_TYPE_MISMATCH",
                   "The return type of the table function " + function->name + " must be a struct.");
    }
  }
  function->deterministic = proto.deterministic();
  return std::shared_ptr<const ExternalFunction>(std::move(function));
}

/// Where a table argument comes from and how its rows are divided.
struct Analyzer::TableArgument {
  const sc::Relation* relation = nullptr;
  const sc::SubqueryExpression_TableArgOptions* options = nullptr;
};

Result<std::optional<Analyzer::TableArgument>> Analyzer::TableArgumentOf(const sc::Expression& expression) {
  TableArgument argument;
  if (expression.has_subquery_expression() &&
      expression.subquery_expression().subquery_type() == sc::SubqueryExpression::SUBQUERY_TYPE_TABLE_ARG) {
    const auto& subquery = expression.subquery_expression();
    const auto reference = references_.find(subquery.plan_id());
    if (reference == references_.end()) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_SUBQUERY_EXPRESSION",
                   "A subquery refers to a plan that is not part of the request.");
    }
    argument.relation = reference->second;
    argument.options = subquery.has_table_arg_options() ? &subquery.table_arg_options() : nullptr;
    return std::optional<TableArgument>(argument);
  }
  if (expression.has_extension()) {
    auto extension = fleuve::pb::Unpack<fleuve::pb::ExpressionExtension>(expression.extension());
    if (extension && extension->has_table_argument()) {
      auto kept = std::make_shared<fleuve::pb::ExpressionExtension>(*std::move(extension));
      argument.relation = &kept->table_argument().relation();
      if (kept->table_argument().has_options()) {
        argument.options = &kept->table_argument().options();
      }
      kept_.push_back(std::move(kept));
      return std::optional<TableArgument>(argument);
    }
  }
  return std::optional<TableArgument>();
}

Result<PlanPtr> Analyzer::ExternalTable(std::shared_ptr<const ExternalFunction> function,
                                        const google::protobuf::RepeatedPtrField<sc::Expression>& arguments) {
  if (function->call_kind() != ExternalCallKind::kTable || function->eval_type == 302) {
    return Error::Unsupported("a table function of evaluation type " + std::to_string(function->eval_type));
  }
  FLEUVE_ASSIGN(std::shared_ptr<const ExternalContext> context, ExternalSettings());
  std::vector<ExprPtr> exprs;
  std::vector<std::string> names;
  std::optional<std::size_t> table_at;
  PlanPtr table;
  std::vector<ExprPtr> partition_by;
  std::vector<SortKey> order_by;
  bool single_partition = false;
  for (const sc::Expression& argument : arguments) {
    const sc::Expression* source = &argument;
    names.emplace_back();
    if (argument.has_named_argument_expression()) {
      names.back() = argument.named_argument_expression().key();
      source = &argument.named_argument_expression().value();
    }
    FLEUVE_ASSIGN(std::optional<TableArgument> table_argument, TableArgumentOf(*source));
    if (!table_argument) {
      FLEUVE_ASSIGN(ExprPtr made, Expression(*source, Scope()));
      exprs.push_back(std::move(made));
      continue;
    }
    if (table_at) {
      return Error(ErrorKind::kInvalidArgument, "TABLE_VALUED_FUNCTION_TOO_MANY_TABLE_ARGUMENTS",
                   "There are too many table arguments for table-valued function. It allows one table argument, but "
                   "got: 2.")
          .With("num", "2");
    }
    FLEUVE_ASSIGN(table, Relation(*table_argument->relation));
    table = FreshInstance(WithoutHidden(table));
    if (table_argument->options != nullptr) {
      Scope scope;
      scope.tiers.push_back(&table->output);
      for (const sc::Expression& part : table_argument->options->partition_spec()) {
        FLEUVE_ASSIGN(ExprPtr made, Expression(part, scope));
        partition_by.push_back(std::move(made));
      }
      for (const sc::Expression_SortOrder& order : table_argument->options->order_spec()) {
        FLEUVE_ASSIGN(SortKey key, Order(order, scope));
        order_by.push_back(std::move(key));
      }
      single_partition = table_argument->options->with_single_partition();
    }
    table_at = exprs.size();
    exprs.push_back(nullptr);
  }
  FLEUVE_TRY(CheckArgumentNames(function->name, names));
  if (function->type.Is(TypeKind::kVoid)) {
    std::vector<ExternalArgument> seen;
    for (std::size_t i = 0; i < exprs.size(); ++i) {
      ExternalArgument argument;
      argument.name = names[i];
      if (exprs[i] == nullptr) {
        argument.is_table = true;
        argument.type = SchemaOf(*table);
      } else {
        argument.type = exprs[i]->type;
        FLEUVE_ASSIGN(std::optional<types::Value> constant, ConstantValue(exprs[i]));
        argument.is_constant = constant.has_value();
        argument.value = constant.value_or(types::Value());
      }
      seen.push_back(std::move(argument));
    }
    auto asked = std::make_shared<ExternalFunction>(*function);
    asked->context = context;
    FLEUVE_ASSIGN(ExternalTableShape shape, context->runtime->AnalyzeTableFunction(*asked, seen));
    asked->type = shape.schema;
    asked->table_state = shape.state;
    function = std::move(asked);
    if (!shape.partition_by.empty() || shape.single_partition || !shape.order_by.empty() || !shape.select.empty()) {
      if (!table_at) {
        return Error(ErrorKind::kInvalidArgument, "TABLE_VALUED_FUNCTION_REQUIRED_METADATA_INCOMPATIBLE_WITH_CALL",
                     "Failed to evaluate the table function " + QuoteParts({function->name}) +
                         " because its table metadata requested partitioning or ordering, but the function call has "
                         "no table argument.")
            .With("functionName", function->name)
            .With("requestedMetadata", "specified its input table must be partitioned or ordered")
            .With("invalidFunctionCallProperty", "does not provide any TABLE argument");
      }
      if (!partition_by.empty() || single_partition || !order_by.empty()) {
        return Error(ErrorKind::kInvalidArgument, "TABLE_VALUED_FUNCTION_REQUIRED_METADATA_INCOMPATIBLE_WITH_CALL",
                     "Failed to evaluate the table function " + QuoteParts({function->name}) +
                         " because its table metadata requested partitioning or ordering, but the function call "
                         "specified the partitioning of the input table too.")
            .With("functionName", function->name)
            .With("requestedMetadata", "specified its own required partitioning of the input table")
            .With("invalidFunctionCallProperty",
                  "specified the WITH SINGLE PARTITION or PARTITION BY clause; please remove these clauses and retry "
                  "the query again.");
      }
    }
    if (table_at) {
      Scope scope;
      scope.tiers.push_back(&table->output);
      for (const std::string& column : shape.partition_by) {
        FLEUVE_ASSIGN(std::shared_ptr<const sc::Expression> parsed, ParsedExpression(column));
        FLEUVE_ASSIGN(ExprPtr made, Expression(*parsed, scope));
        partition_by.push_back(std::move(made));
      }
      for (const ExternalTableShape::Key& key : shape.order_by) {
        FLEUVE_ASSIGN(std::shared_ptr<const sc::Expression> parsed, ParsedExpression(key.column));
        SortKey sort_key;
        FLEUVE_ASSIGN(sort_key.expr, Expression(*parsed, scope));
        sort_key.ascending = key.ascending;
        sort_key.nulls_first = key.nulls_first.value_or(key.ascending);
        order_by.push_back(std::move(sort_key));
      }
      if (!shape.select.empty()) {
        return Error::Unsupported("`select` in the result of a table function's analyze method");
      }
      single_partition = single_partition || shape.single_partition;
    }
  }
  ExternalParts parts;
  parts.argument_names = std::move(names);
  if (!table_at) {
    auto one = std::make_shared<LogicalPlan>();
    one->kind = PlanKind::kOneRow;
    parts.op.kind = ExternalKind::kTable;
    parts.arguments = std::move(exprs);
    return ExternalPlan(std::move(parts), one, function);
  }
  for (const ExprPtr& expr : exprs) {
    if (expr != nullptr && AnyExpr(expr, [](const Expr& part) { return part.kind == ExprKind::kAttribute; })) {
      return Error::Unsupported("a table function over a table argument and columns of the query around it");
    }
  }
  std::vector<ExprPtr> below;
  std::vector<Attribute> output;
  std::vector<Attribute> keys;
  std::vector<ExprPtr> row;
  for (const Attribute& column : table->output) {
    below.push_back(AttributeExpr(column));
    output.push_back(column);
    row.push_back(MakeLiteral(types::Value(column.name), DataType::String()));
    row.push_back(AttributeExpr(column));
  }
  for (const ExprPtr& part : partition_by) {
    Attribute key;
    key.id = NewAttributeId();
    key.name = part->display;
    key.type = part->type;
    key.hidden = true;
    below.push_back(part);
    output.push_back(key);
    keys.push_back(std::move(key));
  }
  PlanPtr child = table;
  if (!keys.empty()) {
    child = MakeProject(table, std::move(below), output);
  }
  FLEUVE_ASSIGN(exprs[*table_at], Call("named_struct", std::move(row)));
  parts.op.kind = ExternalKind::kTableOfRows;
  parts.grouping = Exprs(keys);
  parts.order_by = std::move(order_by);
  parts.arguments = std::move(exprs);
  return ExternalPlan(std::move(parts), child, function);
}

}  // namespace fleuve::plan
