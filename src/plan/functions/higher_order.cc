#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

/// A parameter of a lambda; its name is the user's, which `bind_lambda` puts in.
Attribute Parameter(const char* name, DataType type, bool nullable) {
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = name;
  attribute.type = std::move(type);
  attribute.nullable = nullable;
  return attribute;
}

/// Binds the lambda at `i` and puts it into the arguments; gives its body.
Result<ExprPtr> Bind(Call& call, std::size_t i, const std::vector<Attribute>& parameters) {
  if (i >= call.source.arguments.size() || call.source.arguments[i] != nullptr || !call.source.bind_lambda) {
    return call.Mismatch("UNEXPECTED_INPUT_TYPE",
                         "A lambda function is required as argument " + std::to_string(i + 1) + ".");
  }
  FLEUVE_ASSIGN(ExprPtr lambda, call.source.bind_lambda(i, parameters));
  call.args[i] = lambda;
  call.shown[i] = lambda->display;
  return lambda->children[0];
}

std::size_t Arity(const Call& call, std::size_t i) {
  return call.source.lambda_arity ? call.source.lambda_arity(i) : 0;
}

Result<void> NeedArray(Call& call, std::size_t i) {
  if (call.args[i] == nullptr) {
    return call.Mismatch("UNEXPECTED_INPUT_TYPE", "An array is required.");
  }
  if (call.type(i).Is(TypeKind::kVoid)) {
    return call.Cast(i, DataType::Array(DataType::Void()));
  }
  if (!call.type(i).Is(TypeKind::kArray)) {
    return call.Unexpected(i, "ARRAY");
  }
  return {};
}

Result<void> NeedMap(Call& call, std::size_t i) {
  if (call.args[i] == nullptr) {
    return call.Mismatch("UNEXPECTED_INPUT_TYPE", "A map is required.");
  }
  if (call.type(i).Is(TypeKind::kVoid)) {
    return call.Cast(i, DataType::Map(DataType::Void(), DataType::Void()));
  }
  if (!call.type(i).Is(TypeKind::kMap)) {
    return call.Unexpected(i, "MAP");
  }
  return {};
}

Attribute Element(const DataType& array, const char* name) {
  return Parameter(name, array.element(), array.contains_null());
}

/// The lambda at `i` gives a boolean.
Result<void> NeedBoolean(Call& call, std::size_t i, const ExprPtr& body) {
  if (body->type.Is(TypeKind::kBoolean)) {
    return {};
  }
  if (body->type.Is(TypeKind::kVoid)) {
    return {};
  }
  return call
      .Mismatch("UNEXPECTED_INPUT_TYPE", "The second parameter requires the \"BOOLEAN\" type, however \"" +
                                             call.shown[i] + "\" has the type \"" + body->type.Sql() + "\".")
      .With("requiredType", "\"BOOLEAN\"")
      .With("inputType", "\"" + body->type.Sql() + "\"");
}

/// A copy of the lambda at `i` whose body is cast to `type`.
Result<void> CastBody(Call& call, std::size_t i, const DataType& type) {
  const ExprPtr& lambda = call.args[i];
  if (lambda->children[0]->type.EqualsIgnoringNullability(type)) {
    return {};
  }
  FLEUVE_ASSIGN(ExprPtr body, MakeCast(lambda->children[0], type, call.config));
  auto copy = std::make_shared<Expr>(*lambda);
  copy->children[0] = body;
  copy->type = type;
  copy->can_fail = copy->can_fail || body->can_fail;
  call.args[i] = copy;
  return {};
}

Result<ExprPtr> Finish(Call& call, const std::string& function, DataType type, bool nullable) {
  bool can_fail = false;
  bool deterministic = true;
  for (const ExprPtr& argument : call.args) {
    const Expr& inner = argument->kind == ExprKind::kLambda ? *argument->children[0] : *argument;
    can_fail = can_fail || argument->can_fail || inner.can_fail;
    deterministic = deterministic && argument->deterministic && inner.deterministic;
  }
  ExprPtr made = call.Make(function, std::move(type), nullable, can_fail);
  if (!deterministic) {
    auto copy = std::make_shared<Expr>(*made);
    copy->deterministic = false;
    return copy;
  }
  return made;
}

Result<ExprPtr> BuildTransform(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  std::vector<Attribute> parameters{Element(call.type(0), "x")};
  if (Arity(call, 1) == 2) {
    parameters.push_back(Parameter("i", DataType::Int(), false));
  }
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, parameters));
  return Finish(call, "spark_transform", DataType::Array(body->type, body->nullable), call.args[0]->nullable);
}

Result<ExprPtr> BuildFilter(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  std::vector<Attribute> parameters{Element(call.type(0), "x")};
  if (Arity(call, 1) == 2) {
    parameters.push_back(Parameter("i", DataType::Int(), false));
  }
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, parameters));
  FLEUVE_TRY(NeedBoolean(call, 1, body));
  FLEUVE_TRY(CastBody(call, 1, DataType::Boolean()));
  return Finish(call, "spark_filter", call.type(0), call.args[0]->nullable);
}

Result<ExprPtr> BuildExists(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, {Element(call.type(0), "x")}));
  FLEUVE_TRY(NeedBoolean(call, 1, body));
  FLEUVE_TRY(CastBody(call, 1, DataType::Boolean()));
  return Finish(call, call.name == "exists" ? "spark_exists" : "spark_forall", DataType::Boolean(),
                call.args[0]->nullable || body->nullable);
}

Result<ExprPtr> BuildAggregate(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  if (call.args[1] == nullptr) {
    return call.Mismatch("UNEXPECTED_INPUT_TYPE", "The start value must not be a lambda function.");
  }
  const DataType zero = call.type(1).AsNullable();
  FLEUVE_TRY(call.Cast(1, zero));
  FLEUVE_ASSIGN(const ExprPtr merge, Bind(call, 2, {Parameter("acc", zero, true), Element(call.type(0), "x")}));
  if (!merge->type.EqualsIgnoringNullability(zero) && !merge->type.Is(TypeKind::kVoid)) {
    return call
        .Mismatch("UNEXPECTED_INPUT_TYPE", "The third parameter requires the \"" + zero.Sql() + "\" type, however \"" +
                                               call.shown[2] + "\" has the type \"" + merge->type.Sql() + "\".")
        .With("requiredType", "\"" + zero.Sql() + "\"")
        .With("inputType", "\"" + merge->type.Sql() + "\"");
  }
  FLEUVE_TRY(CastBody(call, 2, zero));
  DataType result = zero;
  bool nullable = true;
  if (call.size() == 4) {
    FLEUVE_ASSIGN(const ExprPtr finish, Bind(call, 3, {Parameter("acc", zero, true)}));
    result = finish->type;
    nullable = call.args[0]->nullable || finish->nullable;
  } else {
    // The identity, which shows in the name.
    call.shown.push_back("lambdafunction(namedlambdavariable(), namedlambdavariable())");
  }
  return Finish(call, "spark_aggregate", result, nullable);
}

Result<ExprPtr> BuildZipWith(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(NeedArray(call, 1));
  FLEUVE_ASSIGN(
      const ExprPtr body,
      Bind(call, 2, {Parameter("x", call.type(0).element(), true), Parameter("y", call.type(1).element(), true)}));
  return Finish(call, "spark_zip_with", DataType::Array(body->type, body->nullable),
                call.args[0]->nullable || call.args[1]->nullable);
}

std::vector<Attribute> KeyAndValue(const DataType& map) {
  return {Parameter("k", map.key(), false), Parameter("v", map.value(), map.contains_null())};
}

Result<ExprPtr> BuildMapFilter(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, KeyAndValue(call.type(0))));
  FLEUVE_TRY(NeedBoolean(call, 1, body));
  FLEUVE_TRY(CastBody(call, 1, DataType::Boolean()));
  return Finish(call, "spark_map_filter", call.type(0), call.args[0]->nullable);
}

Result<ExprPtr> BuildTransformValues(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, KeyAndValue(call.type(0))));
  return Finish(call, "spark_transform_values", DataType::Map(call.type(0).key(), body->type, body->nullable),
                call.args[0]->nullable);
}

bool LastWins(const Call& call) {
  if (!call.config.conf) {
    return false;
  }
  auto policy = call.config.conf("spark.sql.mapKeyDedupPolicy");
  return policy && EqualsIgnoreAsciiCase(*policy, "LAST_WIN");
}

Result<ExprPtr> BuildTransformKeys(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, KeyAndValue(call.type(0))));
  if (body->type.Is(TypeKind::kMap)) {
    return call.Mismatch("INVALID_MAP_KEY_TYPE", "The key of map cannot be/contain \"" + body->type.Sql() + "\".");
  }
  const DataType type = DataType::Map(body->type, call.type(0).value(), call.type(0).contains_null());
  const std::string display = call.Display();
  call.Hidden(Value(LastWins(call)), DataType::Boolean());
  FLEUVE_ASSIGN(ExprPtr made, Finish(call, "spark_transform_keys", type, call.args[0]->nullable));
  auto copy = std::make_shared<Expr>(*made);
  copy->can_fail = true;
  copy->display = display;
  return copy;
}

Result<ExprPtr> BuildMapZipWith(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  FLEUVE_TRY(NeedMap(call, 1));
  const DataType a = call.type(0);
  const DataType b = call.type(1);
  const auto key = a.key().EqualsIgnoringNullability(b.key()) ? std::optional<DataType>(a.key())
                                                              : WiderType(a.key(), b.key(), call.config);
  if (!key) {
    return call.Mismatch("MAP_ZIP_WITH_DIFF_TYPES",
                         "Input to the `map_zip_with` should have been two \"MAP\" with same key "
                         "type, but it's [\"" +
                             a.key().Sql() + "\", \"" + b.key().Sql() + "\"].");
  }
  FLEUVE_TRY(call.Cast(0, DataType::Map(*key, a.value(), a.contains_null())));
  FLEUVE_TRY(call.Cast(1, DataType::Map(*key, b.value(), b.contains_null())));
  FLEUVE_ASSIGN(
      const ExprPtr body,
      Bind(call, 2, {Parameter("k", *key, false), Parameter("x", a.value(), true), Parameter("y", b.value(), true)}));
  return Finish(call, "spark_map_zip_with", DataType::Map(*key, body->type, body->nullable),
                call.args[0]->nullable || call.args[1]->nullable);
}

Result<ExprPtr> BuildArraySort(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  if (call.size() == 1) {
    const DataType& element = call.type(0).element();
    if (element.Is(TypeKind::kMap)) {
      return call.Mismatch("INVALID_ORDERING_TYPE",
                           "The `array_sort` does not support ordering on type \"" + element.Sql() + "\".");
    }
    // The comparison that stands for a missing one shows in the name.
    call.shown.push_back(
        "lambdafunction((IF(((namedlambdavariable() IS NULL) AND (namedlambdavariable() IS NULL)), 0, "
        "(IF((namedlambdavariable() IS NULL), 1, (IF((namedlambdavariable() IS NULL), -1, "
        "(IF((namedlambdavariable() < namedlambdavariable()), -1, (IF((namedlambdavariable() > "
        "namedlambdavariable()), 1, 0)))))))))), namedlambdavariable(), namedlambdavariable())");
    return call.Make("spark_array_sort", call.type(0), call.args[0]->nullable);
  }
  FLEUVE_ASSIGN(const ExprPtr body, Bind(call, 1, {Element(call.type(0), "left"), Element(call.type(0), "right")}));
  if (!body->type.IsIntegral() && !body->type.Is(TypeKind::kVoid)) {
    return call.Mismatch(
        "UNEXPECTED_RETURN_TYPE",
        "The `array_sort` requires return \"INT\" type, but the actual is \"" + body->type.Sql() + "\" type.");
  }
  FLEUVE_TRY(CastBody(call, 1, DataType::Int()));
  FLEUVE_ASSIGN(ExprPtr made, Finish(call, "spark_array_sort_by", call.type(0), call.args[0]->nullable));
  auto copy = std::make_shared<Expr>(*made);
  copy->can_fail = true;
  return copy;
}

}  // namespace

const Table& HigherOrderFunctions() {
  static const Table table = {
      Scalar("transform", 2, 2, BuildTransform),
      Scalar("filter", 2, 2, BuildFilter),
      Scalar("exists", 2, 2, BuildExists),
      Scalar("forall", 2, 2, BuildExists),
      Scalar("aggregate", 3, 4, BuildAggregate),
      Scalar("reduce", 3, 4, BuildAggregate),
      Scalar("zip_with", 3, 3, BuildZipWith),
      Scalar("map_filter", 2, 2, BuildMapFilter),
      Scalar("transform_values", 2, 2, BuildTransformValues),
      Scalar("transform_keys", 2, 2, BuildTransformKeys),
      Scalar("map_zip_with", 3, 3, BuildMapZipWith),
      Scalar("array_sort", 1, 2, BuildArraySort),
  };
  return table;
}

}  // namespace fleuve::plan::functions
