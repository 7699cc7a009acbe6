#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;

namespace {

template <typename Make>
Result<ExprPtr> CastFunction(Call& call, Make make) {
  FLEUVE_ASSIGN(ExprPtr made, MakeCast(call.args[0], make(), call.config));
  // Spark shows the argument alone.
  return WithDisplay(made, call.shown[0]);
}

Result<ExprPtr> BuildTypeOf(Call& call) {
  ExprPtr made = MakeLiteral(types::Value(call.type(0).CatalogString()), DataType::String());
  return WithDisplay(made, call.Display());
}

}  // namespace

const Table& CastFunctions() {
  static const Table table = {
      Scalar("boolean", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Boolean(); }); }),
      Scalar("tinyint", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Byte(); }); }),
      Scalar("smallint", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Short(); }); }),
      Scalar("int", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Int(); }); }),
      Scalar("bigint", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Long(); }); }),
      Scalar("float", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Float(); }); }),
      Scalar("double", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Double(); }); }),
      Scalar("decimal", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Decimal(10, 0); }); }),
      Scalar("date", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Date(); }); }),
      Scalar("timestamp", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Timestamp(); }); }),
      Scalar("binary", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::Binary(); }); }),
      Scalar("string", 1, 1, [](Call& c) { return CastFunction(c, [] { return DataType::String(); }); }),
      Scalar("typeof", 1, 1, BuildTypeOf),
  };
  return table;
}

}  // namespace fleuve::plan::functions
