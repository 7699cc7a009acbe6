#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;

namespace {

Result<void> CheckCondition(const Call& call, std::size_t i) {
  if (!call.type(i).Is(TypeKind::kBoolean)) {
    return call.Unexpected(i, "BOOLEAN");
  }
  return {};
}

Result<ExprPtr> BuildIf(Call& call) {
  std::string display =
      call.name == "if" ? "(IF(" + call.shown[0] + ", " + call.shown[1] + ", " + call.shown[2] + "))" : call.Display();
  if (call.type(0).Is(TypeKind::kVoid)) {
    FLEUVE_TRY(call.Cast(0, DataType::Boolean()));
  }
  FLEUVE_TRY(CheckCondition(call, 0));
  FLEUVE_ASSIGN(DataType type, call.ToCommon(1, 3));
  return call.Shown(MakeCase({call.args[0], call.args[1], call.args[2]}, true, type), display);
}

/// `when`: condition, value, condition, value, ..., [else].
Result<ExprPtr> BuildWhen(Call& call) {
  bool has_else = call.size() % 2 == 1;
  std::size_t pairs = call.size() / 2;
  std::string display = "CASE";
  std::vector<std::size_t> values;
  for (std::size_t i = 0; i < pairs; ++i) {
    display += " WHEN " + call.shown[2 * i] + " THEN " + call.shown[2 * i + 1];
    values.push_back(2 * i + 1);
    FLEUVE_TRY(CheckCondition(call, 2 * i));
  }
  if (has_else) {
    display += " ELSE " + call.shown.back();
    values.push_back(call.size() - 1);
  }
  display += " END";
  call.name = "casewhen";
  FLEUVE_ASSIGN(DataType type, call.ToCommon(values));
  ExprPtr made = MakeCase(call.args, has_else, type);
  const types::Value* test = call.LiteralOf(0);
  if (test != nullptr && !test->is_null() && test->boolean() && !call.args[1]->nullable && made->nullable) {
    // The first branch is always taken.
    auto copy = std::make_shared<Expr>(*made);
    copy->nullable = false;
    made = std::move(copy);
  }
  return call.Shown(made, display);
}

Result<ExprPtr> BuildCoalesce(Call& call) {
  FLEUVE_ASSIGN(DataType type, call.ToCommon(0, call.size()));
  bool nullable = true;
  for (const ExprPtr& arg : call.args) {
    nullable = nullable && arg->nullable;
  }
  if (call.size() == 1) {
    return call.Shown(call.args[0], call.Display());
  }
  return call.Make("coalesce", type, nullable);
}

Result<ExprPtr> BuildNullIf(Call& call) {
  FLEUVE_ASSIGN(ExprPtr equal, CallNamed(call, "=", {call.args[0], call.args[1]}));
  ExprPtr made = MakeCase({equal, MakeNull(call.type(0)), call.args[0]}, true, call.type(0));
  return call.Shown(made, call.Display());
}

Result<ExprPtr> BuildNvl2(Call& call) {
  FLEUVE_ASSIGN(ExprPtr test, CallNamed(call, "isnotnull", {call.args[0]}));
  FLEUVE_ASSIGN(ExprPtr made, CallNamed(call, "if", {test, call.args[1], call.args[2]}));
  return call.Shown(made, call.Display());
}

Result<ExprPtr> BuildZero(Call& call) {
  ExprPtr zero = MakeLiteral(types::Value(0), DataType::Int());
  if (call.name == "nullifzero") {
    FLEUVE_ASSIGN(ExprPtr equal, CallNamed(call, "=", {call.args[0], zero}));
    return call.Shown(MakeCase({equal, MakeNull(call.type(0)), call.args[0]}, true, call.type(0)), call.Display());
  }
  FLEUVE_ASSIGN(ExprPtr made, CallNamed(call, "coalesce", {call.args[0], zero}));
  return call.Shown(made, call.Display());
}

Result<ExprPtr> BuildExtreme(Call& call) {
  std::vector<types::DataType> all;
  for (std::size_t i = 0; i < call.size(); ++i) {
    all.push_back(call.type(i));
  }
  // Numbers and strings do not mix here, unlike in coalesce.
  bool strings = false;
  bool others = false;
  for (const DataType& type : all) {
    strings = strings || type.IsString();
    others = others || (!type.IsString() && !type.Is(TypeKind::kVoid));
  }
  if (strings && others) {
    std::string types;
    for (const DataType& t : all) {
      types += (types.empty() ? "\"" : ", \"") + t.Sql() + "\"";
    }
    return call.Mismatch("DATA_DIFF_TYPES",
                         "Input to `" + call.name + "` should all be the same type, but it's [" + types + "].");
  }
  FLEUVE_ASSIGN(DataType type, call.ToCommon(0, call.size()));
  bool nullable = true;
  for (const ExprPtr& arg : call.args) {
    nullable = nullable && arg->nullable;
  }
  return call.Make(call.name == "greatest" ? "spark_greatest" : "spark_least", type, nullable);
}

Result<ExprPtr> BuildNanvl(Call& call) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (!call.type(i).Is(TypeKind::kFloat) && !call.type(i).Is(TypeKind::kDouble)) {
      FLEUVE_TRY(call.To(i, DataType::Double()));
    }
  }
  FLEUVE_ASSIGN(DataType type, call.ToCommon(0, 2));
  return call.Make("spark_nanvl", type);
}

/// decode(expr, search, result, ..., default): with two arguments it is the character set function.
Result<ExprPtr> BuildDecode(Call& call) {
  if (call.size() == 2) {
    FLEUVE_TRY(call.To(0, DataType::Binary()));
    FLEUVE_TRY(call.To(1, DataType::String()));
    return call.Make("spark_decode", DataType::String(), true, true);
  }
  std::vector<ExprPtr> parts;
  std::size_t i = 1;
  std::string display = call.Display();
  for (; i + 1 < call.size(); i += 2) {
    FLEUVE_ASSIGN(ExprPtr equal, CallNamed(call, "<=>", {call.args[0], call.args[i]}));
    parts.push_back(equal);
    parts.push_back(call.args[i + 1]);
  }
  if (i < call.size()) {
    parts.push_back(call.args[i]);
  }
  FLEUVE_ASSIGN(ExprPtr made, CallNamed(call, "when", parts));
  return call.Shown(made, display);
}

Result<ExprPtr> BuildIsNan(Call& call) {
  if (!call.type(0).Is(TypeKind::kFloat)) {
    FLEUVE_TRY(call.To(0, DataType::Double()));
  }
  // NULL is not NaN: the answer is never NULL.
  ExprPtr made = call.Make("spark_isnan", DataType::Boolean(), false);
  return made;
}

}  // namespace

const Table& ConditionalFunctions() {
  static const Table table = {
      Scalar("if", 3, 3, BuildIf),
      Scalar("when", 2, -1, BuildWhen),
      Scalar("case", 2, -1, BuildWhen),
      Scalar("coalesce", 1, -1, BuildCoalesce),
      Scalar("nvl", 2, 2, BuildCoalesce),
      Scalar("ifnull", 2, 2, BuildCoalesce),
      Scalar("nvl2", 3, 3, BuildNvl2),
      Scalar("nullif", 2, 2, BuildNullIf),
      Scalar("nullifzero", 1, 1, BuildZero),
      Scalar("zeroifnull", 1, 1, BuildZero),
      Scalar("greatest", 2, -1, BuildExtreme),
      Scalar("least", 2, -1, BuildExtreme),
      Scalar("nanvl", 2, 2, BuildNanvl),
      Scalar("decode", 2, -1, BuildDecode),
      Scalar("isnan", 1, 1, BuildIsNan),
  };
  return table;
}

}  // namespace fleuve::plan::functions
