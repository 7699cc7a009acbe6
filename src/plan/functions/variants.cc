#include "plan/functions/registry_internal.h"
#include "sql/parser.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

Result<void> NeedVariant(Call& call, std::size_t i) {
  if (!call.type(i).Is(TypeKind::kVariant)) {
    return call.Unexpected(i, "VARIANT");
  }
  return {};
}

Result<ExprPtr> BuildParseJson(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  const bool tolerant = call.name == "try_parse_json";
  return call.Make(tolerant ? "spark_parse_json_try" : "spark_parse_json", DataType::Variant(),
                   tolerant || call.args[0]->nullable, !tolerant);
}

Result<ExprPtr> BuildVariantGet(Call& call) {
  const bool tolerant = call.name == "try_variant_get";
  const std::string display = call.name + "(" + call.shown[0] + ", " + call.shown[1] + ")";
  FLEUVE_TRY(NeedVariant(call, 0));
  FLEUVE_TRY(call.To(1, DataType::String()));
  DataType type = DataType::Variant();
  if (call.size() == 3) {
    const Value* text = call.LiteralOf(2);
    if (text == nullptr || text->is_null() || !call.type(2).IsString()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `type` should be a foldable \"STRING\" expression.");
    }
    FLEUVE_ASSIGN(type, sql::ParseDataType(text->text()));
    call.args.resize(2);
  }
  if (type.Is(TypeKind::kMap) && !type.key().IsString()) {
    return call.Mismatch("CAST_WITHOUT_SUGGESTION", "cannot cast \"VARIANT\" to \"" + type.Sql() + "\".");
  }
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Shown(call.Make(tolerant ? "spark_variant_get_try" : "spark_variant_get", type.AsNullable(), true, true),
                    display);
}

Result<ExprPtr> BuildIsVariantNull(Call& call) {
  FLEUVE_TRY(NeedVariant(call, 0));
  return call.Make("spark_is_variant_null", DataType::Boolean(), false);
}

Result<ExprPtr> BuildSchemaOfVariant(Call& call) {
  FLEUVE_TRY(NeedVariant(call, 0));
  const std::string display = call.Display();
  const bool nullable = call.args[0]->nullable;
  call.Hidden(Value(call.config.session_zone), DataType::String());
  return call.Shown(call.Make("spark_schema_of_variant", DataType::String(), nullable), display);
}

Result<ExprPtr> BuildToVariantObject(Call& call) {
  if (!call.type(0).IsNested()) {
    return call.Mismatch("CAST_WITHOUT_SUGGESTION",
                         "cannot cast \"" + call.type(0).Sql() + "\" to \"VARIANT\" with `to_variant_object`.");
  }
  return call.Make("spark_to_variant_object", DataType::Variant(), call.args[0]->nullable, true);
}

Result<ExprPtr> BuildSchemaOfVariantAgg(Call& call) {
  FLEUVE_TRY(NeedVariant(call, 0));
  return call.Aggregate("spark_schema_of_variant_agg", DataType::String(), false);
}

}  // namespace

const Table& VariantFunctions() {
  static const Table table = {
      Scalar("parse_json", 1, 1, BuildParseJson),
      Scalar("try_parse_json", 1, 1, BuildParseJson),
      Scalar("variant_get", 2, 3, BuildVariantGet),
      Scalar("try_variant_get", 2, 3, BuildVariantGet),
      Scalar("is_variant_null", 1, 1, BuildIsVariantNull),
      Scalar("schema_of_variant", 1, 1, BuildSchemaOfVariant),
      Scalar("to_variant_object", 1, 1, BuildToVariantObject),
      Agg("schema_of_variant_agg", 1, 1, BuildSchemaOfVariantAgg),
  };
  return table;
}

}  // namespace fleuve::plan::functions
