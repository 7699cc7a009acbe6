#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan {

using functions::Call;
using types::DataType;
using types::StructField;
using types::TypeKind;

namespace {

StructField Column(std::string name, DataType type, bool nullable) {
  return StructField{std::move(name), std::move(type), nullable, Json()};
}

Result<GeneratorResult> BuildExplode(Call& call, const std::string& base, bool outer) {
  FLEUVE_TRY(call.Count(1, 1));
  GeneratorResult result;
  result.spec.function = base;
  result.spec.outer = outer;
  const DataType& type = call.type(0);
  if (base == "posexplode") {
    result.columns.push_back(Column("pos", DataType::Int(), outer));
  }
  if (type.Is(TypeKind::kArray)) {
    result.columns.push_back(Column("col", type.element(), outer || type.contains_null()));
  } else if (type.Is(TypeKind::kMap)) {
    result.columns.push_back(Column("key", type.key(), outer));
    result.columns.push_back(Column("value", type.value(), outer || type.contains_null()));
  } else if (type.Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "(ARRAY or MAP)");
  } else {
    return call.Unexpected(0, "(\"ARRAY\" or \"MAP\")");
  }
  result.spec.arguments = call.args;
  return result;
}

Result<GeneratorResult> BuildInline(Call& call, bool outer) {
  FLEUVE_TRY(call.Count(1, 1));
  GeneratorResult result;
  result.spec.function = "inline";
  result.spec.outer = outer;
  const DataType& type = call.type(0);
  if (!type.Is(TypeKind::kArray) || !type.element().Is(TypeKind::kStruct)) {
    return call.Unexpected(0, "ARRAY<STRUCT>");
  }
  for (const StructField& field : type.element().fields()) {
    result.columns.push_back({field.name, field.type, field.nullable || outer || type.contains_null(), field.metadata});
  }
  result.spec.arguments = call.args;
  return result;
}

Result<GeneratorResult> BuildStack(Call& call) {
  if (call.size() < 2) {
    return call.WrongCount("> 1");
  }
  GeneratorResult result;
  result.spec.function = "stack";
  const types::Value* rows = call.LiteralOf(0);
  if (rows == nullptr || !call.type(0).IsIntegral()) {
    return call.Mismatch(
        "NON_FOLDABLE_INPUT",
        "the input `n` should be a foldable \"INT\" expression; however, got \"" + call.shown[0] + "\".");
  }
  if (rows->is_null() || rows->integer() <= 0) {
    return call.Mismatch("VALUE_OUT_OF_RANGE", "The `n` must be between (0, 2147483647].");
  }
  FLEUVE_TRY(call.Cast(0, DataType::Int()));
  const std::size_t count = static_cast<std::size_t>(rows->integer());
  const std::size_t values = call.size() - 1;
  const std::size_t width = (values + count - 1) / count;
  for (std::size_t column = 0; column < width; ++column) {
    DataType type;
    for (std::size_t i = 1 + column; i < call.size(); i += width) {
      if (type.Is(TypeKind::kVoid)) {
        type = call.type(i);
      } else if (!call.type(i).Is(TypeKind::kVoid) && !call.type(i).EqualsIgnoringNullability(type)) {
        return call.Mismatch("STACK_COLUMN_DIFF_TYPES", "The data type of the column (" + std::to_string(column) +
                                                            ") do not have the same type: \"" + type.Sql() +
                                                            "\" <> \"" + call.type(i).Sql() + "\".");
      }
    }
    for (std::size_t i = 1 + column; i < call.size(); i += width) {
      FLEUVE_TRY(call.Cast(i, type));
    }
    result.columns.push_back(Column("col" + std::to_string(column), type, true));
  }
  result.spec.arguments = call.args;
  return result;
}

Result<GeneratorResult> BuildJsonTuple(Call& call) {
  if (call.size() < 2) {
    return call.WrongCount("> 1");
  }
  GeneratorResult result;
  result.spec.function = "json_tuple";
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (!call.type(i).IsString() && !call.type(i).Is(TypeKind::kVoid)) {
      return call.Mismatch("NON_STRING_TYPE", "all arguments of the function `json_tuple` must be strings.");
    }
    FLEUVE_TRY(call.Cast(i, DataType::String()));
    if (i > 0) {
      result.columns.push_back(Column("c" + std::to_string(i - 1), DataType::String(), true));
    }
  }
  result.spec.arguments = call.args;
  return result;
}

Result<GeneratorResult> BuildVariantExplode(Call& call, bool outer) {
  FLEUVE_TRY(call.Count(1, 1));
  if (!call.type(0).Is(TypeKind::kVariant)) {
    return call.Unexpected(0, "VARIANT");
  }
  GeneratorResult result;
  result.spec.function = "variant_explode";
  result.spec.outer = outer;
  result.columns.push_back(Column("pos", DataType::Int(), outer));
  result.columns.push_back(Column("key", DataType::String(), true));
  result.columns.push_back(Column("value", DataType::Variant(), outer));
  result.spec.arguments = call.args;
  return result;
}

}  // namespace

Result<GeneratorResult> BuildGenerator(const FunctionCall& source) {
  Call call(source);
  for (const ExprPtr& argument : call.args) {
    if (argument == nullptr) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_LAMBDA_FUNCTION_CALL.NON_HIGHER_ORDER_FUNCTION",
                   "A lambda function should only be used in a higher order function.");
    }
  }
  std::string base = call.name;
  const bool outer = base.ends_with("_outer");
  if (outer) {
    base.resize(base.size() - 6);
  }
  if (base == "explode" || base == "posexplode") {
    return BuildExplode(call, base, outer);
  }
  if (base == "inline") {
    return BuildInline(call, outer);
  }
  if (base == "stack") {
    return BuildStack(call);
  }
  if (base == "json_tuple") {
    return BuildJsonTuple(call);
  }
  if (base == "variant_explode") {
    return BuildVariantExplode(call, outer);
  }
  return Error::Unsupported("the function " + call.name);
}

}  // namespace fleuve::plan
