#include <algorithm>

#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

/// round, bround: the scale is a constant.
Result<ExprPtr> BuildRound(Call& call) {
  FLEUVE_TRY(call.ToNumeric(0));
  if (call.size() == 1) {
    call.Default(Value(0), DataType::Int());
  } else {
    FLEUVE_TRY(call.To(1, DataType::Int()));
  }
  const Value* literal = call.LiteralOf(1);
  if (literal == nullptr) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `scale` should be a foldable \"INT\" expression.");
  }
  int scale = literal->is_null() ? 0 : static_cast<int>(literal->integer());
  DataType type = call.type(0);
  bool fails = call.ansi() && type.IsIntegral();
  if (type.Is(TypeKind::kDecimal)) {
    int integral_least = type.precision() - type.scale() + 1;
    if (scale < 0) {
      int precision = std::max(integral_least, -scale + 1);
      type = DataType::Decimal(std::min(precision, 38), 0);
    } else {
      int new_scale = std::min(type.scale(), scale);
      type = DataType::Decimal(std::min(integral_least + new_scale, 38), new_scale);
    }
  }
  if (literal->is_null()) {
    return WithDisplay(MakeNull(type), call.Display());
  }
  const char* function = call.name == "bround" ? "spark_bround" : "spark_round";
  return call.Make(function + ModeSuffix(call), type, true, fails);
}

/// ceil, floor: to bigint, decimals stay decimals; with a scale the result is a decimal.
Result<ExprPtr> BuildCeil(Call& call) {
  bool up = call.name != "floor";
  std::string display = (call.name == "ceil" ? "CEIL" : call.name == "floor" ? "FLOOR" : call.name) + call.Display("");
  if (call.size() == 2) {
    const Value* literal = call.LiteralOf(1);
    if (literal == nullptr || !call.type(1).IsIntegral() || literal->is_null()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `scale` should be a foldable \"INT\" expression.");
    }
    display = call.Display();
    if (call.type(0).IsIntegral()) {
      FLEUVE_TRY(call.Cast(0, DecimalForType(call.type(0))));
    } else if (!call.type(0).Is(TypeKind::kDecimal)) {
      FLEUVE_TRY(call.ToNumeric(0));
      FLEUVE_TRY(call.Cast(0, DataType::Decimal(30, 15)));
    }
    FLEUVE_TRY(call.To(1, DataType::Int()));
    int scale = static_cast<int>(literal->integer());
    DataType type = call.type(0);
    int integral_least = type.precision() - type.scale() + 1;
    if (scale < 0) {
      type = DataType::Decimal(std::min(std::max(integral_least, -scale + 1), 38), 0);
    } else {
      int new_scale = std::min(type.scale(), scale);
      type = DataType::Decimal(std::min(integral_least + new_scale, 38), new_scale);
    }
    return WithDisplay(call.Make(up ? "spark_ceil_scale" : "spark_floor_scale", type, true, false), display);
  }
  if (!call.type(0).Is(TypeKind::kDecimal) && !call.type(0).Is(TypeKind::kLong)) {
    if (call.type(0).IsIntegral()) {
      FLEUVE_TRY(call.Cast(0, DataType::Long()));
    } else {
      FLEUVE_TRY(call.To(0, DataType::Double()));
    }
  }
  DataType type = DataType::Long();
  if (call.type(0).Is(TypeKind::kDecimal)) {
    const DataType& d = call.type(0);
    type = d.scale() == 0 ? d : DataType::Decimal(std::min(d.precision() - d.scale() + 1, 38), 0);
  }
  return WithDisplay(call.Make(up ? "spark_ceil" : "spark_floor", type, true), display);
}

Result<ExprPtr> BuildConstant(Call& call) {
  double value = call.name == "pi" ? 3.141592653589793 : 2.718281828459045;
  return WithDisplay(MakeLiteral(Value(value), DataType::Double()), AsciiUpper(call.name) + "()");
}

Result<ExprPtr> BuildLog(Call& call) {
  std::string display = call.size() == 2     ? "LOG" + call.Display("")
                        : call.name == "log" ? "LOG(E(), " + call.shown[0] + ")"
                                             : "ln" + call.Display("");
  for (std::size_t i = 0; i < call.size(); ++i) {
    FLEUVE_TRY(call.To(i, DataType::Double()));
  }
  return WithDisplay(call.Make(call.size() == 2 ? "spark_log_base" : "spark_ln", DataType::Double(), true), display);
}

Result<ExprPtr> BuildSign(Call& call) {
  std::string display = call.name == "signum" ? "SIGNUM" + call.Display("") : call.Display();
  if (!call.type(0).Is(TypeKind::kDayTimeInterval) && !call.type(0).Is(TypeKind::kYearMonthInterval)) {
    FLEUVE_TRY(call.To(0, DataType::Double()));
  }
  return WithDisplay(call.Make("spark_sign", DataType::Double(), true), display);
}

Result<ExprPtr> BuildBitCount(Call& call) {
  if (!call.type(0).Is(TypeKind::kBoolean) && !call.type(0).IsIntegral()) {
    FLEUVE_TRY(call.To(0, DataType::Long()));
  }
  return call.Make("spark_bit_count", DataType::Int());
}

Result<ExprPtr> BuildBitGet(Call& call) {
  if (!call.type(0).IsIntegral()) {
    FLEUVE_TRY(call.To(0, DataType::Long()));
  }
  FLEUVE_TRY(call.To(1, DataType::Int()));
  return call.Make("spark_bit_get", DataType::Byte(), call.AnyNullable(), true);
}

Result<ExprPtr> BuildWidthBucket(Call& call) {
  bool intervals = call.type(0).Is(TypeKind::kDayTimeInterval) || call.type(0).Is(TypeKind::kYearMonthInterval);
  for (std::size_t i = 0; i < 3 && !intervals; ++i) {
    FLEUVE_TRY(call.To(i, DataType::Double()));
  }
  FLEUVE_TRY(call.To(3, DataType::Long()));
  if (intervals) {
    return Error::Unsupported("width_bucket over intervals");
  }
  return call.Make("spark_width_bucket", DataType::Long(), true);
}

Result<ExprPtr> BuildRandom(Call& call) {
  bool normal = call.name == "randn";
  std::int64_t seed = 0;
  if (call.size() == 1) {
    FLEUVE_TRY(call.To(0, DataType::Long()));
    const Expr* node = call.args[0].get();
    if (node->kind == ExprKind::kCast) {
      node = node->children[0].get();
    }
    if (node->kind != ExprKind::kLiteral || (!node->value.is_null() && !node->type.IsIntegral())) {
      return Error(ErrorKind::kInvalidArgument, "SEED_EXPRESSION_IS_UNFOLDABLE",
                   "The seed expression \"" + call.shown[0] + "\" of the expression \"" + call.Display() +
                       "\" must be foldable.");
    }
    seed = node->value.is_null() ? 0 : node->value.integer();
  } else {
    seed = static_cast<std::int64_t>(RandomSeed());
  }
  const std::string shown = normal ? "randn" : "rand";
  std::string display = call.size() == 1 ? call.Display(shown) : shown + "()";
  ExprPtr made = MakeCall(normal ? "spark_randn" : "spark_rand", {MakeLiteral(Value(seed), DataType::Long())},
                          DataType::Double(), false, false, false);
  return WithDisplay(made, display);
}

Result<ExprPtr> BuildUniform(Call& call) {
  for (std::size_t i = 0; i < 2; ++i) {
    const Expr* node = call.args[i].get();
    if (node->kind == ExprKind::kCast) {
      node = node->children[0].get();
    }
    if (node->kind != ExprKind::kLiteral) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `min` or `max` should be a foldable number.");
    }
    if (!call.type(i).IsNumeric() && !call.type(i).Is(TypeKind::kVoid)) {
      return call.Unexpected(i, "integer or floating-point");
    }
  }
  FLEUVE_ASSIGN(DataType type, call.ToCommon(0, 2));
  std::string display = call.Display();
  std::int64_t seed = static_cast<std::int64_t>(RandomSeed());
  if (call.size() == 3) {
    FLEUVE_TRY(call.To(2, DataType::Long()));
    const Value* literal = call.LiteralOf(2);
    const Expr* node = call.args[2].get();
    if (node->kind == ExprKind::kCast && node->children[0]->kind == ExprKind::kLiteral) {
      literal = &node->children[0]->value;
    }
    if (literal == nullptr) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `seed` should be a foldable integer.");
    }
    seed = literal->is_null() ? 0 : literal->integer();
    call.args.pop_back();
  }
  ExprPtr random =
      MakeCall("spark_rand", {MakeLiteral(Value(seed), DataType::Long())}, DataType::Double(), false, false, false);
  FLEUVE_ASSIGN(ExprPtr low, MakeCast(call.args[0], DataType::Double(), call.config));
  FLEUVE_ASSIGN(ExprPtr high, MakeCast(call.args[1], DataType::Double(), call.config));
  ExprPtr span = MakeCall("spark_subtract", {high, low}, DataType::Double(), call.AnyNullable());
  ExprPtr scaled = MakeCall("spark_multiply", {span, random}, DataType::Double(), call.AnyNullable());
  ExprPtr sum = MakeCall("spark_add", {low, scaled}, DataType::Double(), call.AnyNullable());
  FLEUVE_ASSIGN(ExprPtr made, MakeCast(sum, type, call.config));
  auto copy = std::make_shared<Expr>(*made);
  copy->nullable = call.AnyNullable();
  return WithDisplay(copy, display);
}

Result<ExprPtr> BuildRandStr(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Int()));
  std::int64_t seed = static_cast<std::int64_t>(RandomSeed());
  std::string display = call.Display();
  if (call.size() == 2) {
    const Value* literal = call.LiteralOf(1);
    if (literal == nullptr || !call.type(1).IsIntegral()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `seed` should be a foldable integer.");
    }
    seed = literal->integer();
    call.args.pop_back();
  }
  ExprPtr made = MakeCall("spark_randstr", {call.args[0], MakeLiteral(Value(seed), DataType::Long())},
                          DataType::String(), false, true, false);
  return WithDisplay(made, display);
}

Result<ExprPtr> BuildConv(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  FLEUVE_TRY(call.To(2, DataType::Int()));
  return call.Make("spark_conv" + ModeSuffix(call), DataType::String(), true, call.ansi());
}

}  // namespace

const Table& MathFunctions() {
  static const Table table = {
      Scalar("round", 1, 2, BuildRound),
      Scalar("bround", 1, 2, BuildRound),
      Scalar("ceil", 1, 2, BuildCeil),
      Scalar("ceiling", 1, 2, BuildCeil),
      Scalar("floor", 1, 2, BuildCeil),
      Scalar("pi", 0, 0, BuildConstant),
      Scalar("e", 0, 0, BuildConstant),
      Scalar("ln", 1, 1, BuildLog),
      Scalar("log", 1, 2, BuildLog),
      Scalar("sign", 1, 1, BuildSign),
      Scalar("signum", 1, 1, BuildSign),
      Scalar("bit_count", 1, 1, BuildBitCount),
      Scalar("bit_get", 2, 2, BuildBitGet),
      Scalar("getbit", 2, 2, BuildBitGet),
      Scalar("width_bucket", 4, 4, BuildWidthBucket),
      Scalar("rand", 0, 1, BuildRandom),
      Scalar("random", 0, 1, BuildRandom),
      Scalar("randn", 0, 1, BuildRandom),
      Scalar("uniform", 2, 3, BuildUniform),
      Scalar("randstr", 1, 2, BuildRandStr),
      Scalar("conv", 3, 3, BuildConv),
      Simple("sqrt", "spark_sqrt", "d>d", kUpper | kNullable),
      Simple("cbrt", "spark_cbrt", "d>d", kUpper | kNullable),
      Simple("exp", "spark_exp", "d>d", kUpper | kNullable),
      Simple("expm1", "spark_expm1", "d>d", kUpper | kNullable),
      Simple("log10", "spark_log10", "d>d", kUpper | kNullable),
      Simple("log2", "spark_log2", "d>d", kUpper | kNullable),
      Simple("log1p", "spark_log1p", "d>d", kUpper | kNullable),
      Simple("sin", "spark_sin", "d>d", kUpper | kNullable),
      Simple("cos", "spark_cos", "d>d", kUpper | kNullable),
      Simple("tan", "spark_tan", "d>d", kUpper | kNullable),
      Simple("cot", "spark_cot", "d>d", kUpper | kNullable),
      Simple("sec", "spark_sec", "d>d", kUpper | kNullable),
      Simple("csc", "spark_csc", "d>d", kUpper | kNullable),
      Simple("asin", "spark_asin", "d>d", kUpper | kNullable),
      Simple("acos", "spark_acos", "d>d", kUpper | kNullable),
      Simple("atan", "spark_atan", "d>d", kUpper | kNullable),
      Simple("sinh", "spark_sinh", "d>d", kUpper | kNullable),
      Simple("cosh", "spark_cosh", "d>d", kUpper | kNullable),
      Simple("tanh", "spark_tanh", "d>d", kUpper | kNullable),
      Simple("asinh", "spark_asinh", "d>d", kUpper | kNullable),
      Simple("acosh", "spark_acosh", "d>d", kUpper | kNullable),
      Simple("atanh", "spark_atanh", "d>d", kUpper | kNullable),
      Simple("atan2", "spark_atan2", "dd>d", kUpper),
      Simple("hypot", "spark_hypot", "dd>d", kUpper),
      Simple("degrees", "spark_degrees", "d>d", kUpper | kNullable),
      Simple("radians", "spark_radians", "d>d", kUpper | kNullable),
      Simple("rint", "spark_rint", "d>d", kNullable),
      Simple("pow", "spark_pow", "dd>d"),
      Simple("power", "spark_pow", "dd>d", kUpper),
      Simple("factorial", "spark_factorial", "i>l", kNullable),
      Simple("bin", "spark_bin", "l>s"),
  };
  return table;
}

}  // namespace fleuve::plan::functions
