#include <algorithm>

#include "plan/functions/registry_internal.h"
#include "types/parts.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;

namespace {

std::string Symbol(const Call& call) {
  if (call.name == "div") {
    return "div";
  }
  if (call.name == "==") {
    return "=";
  }
  if (call.name == "<>") {
    return "!=";
  }
  return call.name;
}

bool IsOperator(const std::string& name) {
  return std::none_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) != 0; }) || name == "div";
}

std::string OperatorDisplay(const Call& call) {
  if (!IsOperator(call.name)) {
    return call.Display();
  }
  return "(" + call.shown[0] + " " + Symbol(call) + " " + call.shown[1] + ")";
}

Error DiffTypes(const Call& call) {
  return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.BINARY_OP_DIFF_TYPES",
               "Cannot resolve \"" + OperatorDisplay(call) +
                   "\" due to data type mismatch: the left and right operands of the binary operator have incompatible "
                   "types (\"" +
                   call.args[0]->type.Sql() + "\" and \"" + call.args[1]->type.Sql() + "\").")
      .With("sqlExpr", "\"" + OperatorDisplay(call) + "\"")
      .With("left", "\"" + call.args[0]->type.Sql() + "\"")
      .With("right", "\"" + call.args[1]->type.Sql() + "\"");
}

Error WrongOperand(const Call& call, const std::string& required) {
  return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE",
               "Cannot resolve \"" + OperatorDisplay(call) +
                   "\" due to data type mismatch: the binary operator requires the input type \"" + required +
                   "\", not \"" + call.args[0]->type.Sql() + "\".")
      .With("sqlExpr", "\"" + OperatorDisplay(call) + "\"")
      .With("inputType", "\"" + required + "\"")
      .With("actualDataType", "\"" + call.args[0]->type.Sql() + "\"");
}

bool IsInterval(const DataType& type) {
  return type.Is(TypeKind::kDayTimeInterval) || type.Is(TypeKind::kYearMonthInterval) ||
         type.Is(TypeKind::kCalendarInterval);
}

/// The decimal that exactly holds an integer literal.
std::optional<DataType> LiteralDecimal(const ExprPtr& expr) {
  if (expr->kind != ExprKind::kLiteral || expr->value.is_null() || !expr->type.IsIntegral() ||
      expr->type.Is(TypeKind::kByte)) {
    return std::nullopt;
  }
  std::string digits = std::to_string(expr->value.integer());
  int count = static_cast<int>(digits.size()) - (digits[0] == '-' ? 1 : 0);
  return DataType::Decimal(count, 0);
}

/// Casts decimals' partners to decimal (or both to double); gives the promoted types of strings.
Result<void> PromoteArithmetic(Call& call) {
  auto& args = call.args;
  for (int i = 0; i < 2; ++i) {
    int o = 1 - i;
    if (args[i]->type.IsString() && !args[o]->type.IsString()) {
      if (!call.ansi()) {
        if (args[o]->type.IsNumeric() || args[o]->type.Is(TypeKind::kVoid)) {
          FLEUVE_TRY(call.Cast(i, DataType::Double()));
        }
      } else if (args[o]->type.IsNumeric() || args[o]->type.Is(TypeKind::kBoolean)) {
        auto wider = WiderType(args[i]->type, args[o]->type, call.config);
        if (wider) {
          FLEUVE_TRY(call.Cast(i, *wider));
          FLEUVE_TRY(call.Cast(o, *wider));
        }
      }
    }
  }
  if (!call.ansi() && args[0]->type.IsString() && args[1]->type.IsString()) {
    FLEUVE_TRY(call.Cast(0, DataType::Double()));
    FLEUVE_TRY(call.Cast(1, DataType::Double()));
  }
  for (int i = 0; i < 2; ++i) {
    int o = 1 - i;
    if (!args[i]->type.Is(TypeKind::kDecimal)) {
      continue;
    }
    if (args[o]->type.IsIntegral()) {
      FLEUVE_TRY(call.Cast(o, LiteralDecimal(args[o]).value_or(DecimalForType(args[o]->type))));
    } else if (args[o]->type.IsNumeric() && !args[o]->type.Is(TypeKind::kDecimal)) {
      FLEUVE_TRY(call.Cast(i, DataType::Double()));
      FLEUVE_TRY(call.Cast(o, DataType::Double()));
    }
  }
  if (args[0]->type.IsNumeric() && args[1]->type.IsNumeric() && !args[0]->type.Is(TypeKind::kDecimal)) {
    auto wider = TightestCommonType(args[0]->type, args[1]->type, call.config);
    if (wider) {
      FLEUVE_TRY(call.Cast(0, *wider));
      FLEUVE_TRY(call.Cast(1, *wider));
    }
  }
  for (int i = 0; i < 2; ++i) {
    if (args[i]->type.Is(TypeKind::kVoid) && args[1 - i]->type.IsNumeric()) {
      FLEUVE_TRY(call.Cast(i, args[1 - i]->type));
    }
  }
  if (args[0]->type.Is(TypeKind::kVoid) && args[1]->type.Is(TypeKind::kVoid)) {
    FLEUVE_TRY(call.Cast(0, DataType::Double()));
    FLEUVE_TRY(call.Cast(1, DataType::Double()));
  }
  return {};
}

Result<void> CheckNumericOperands(Call& call) {
  const DataType& a = call.args[0]->type;
  const DataType& b = call.args[1]->type;
  if (a.IsNumeric() && b.IsNumeric()) {
    return {};
  }
  if (a.kind() != b.kind()) {
    return DiffTypes(call);
  }
  return WrongOperand(call, "NUMERIC");
}

enum class Op { kAdd, kSubtract, kMultiply, kDivide, kRemainder, kPmod };

DataType DecimalResult(Op op, const DataType& a, const DataType& b) {
  int p1 = a.precision();
  int s1 = a.scale();
  int p2 = b.precision();
  int s2 = b.scale();
  switch (op) {
    case Op::kAdd:
    case Op::kSubtract: {
      int scale = std::max(s1, s2);
      return AdjustedDecimal(std::max(p1 - s1, p2 - s2) + scale + 1, scale);
    }
    case Op::kMultiply:
      return AdjustedDecimal(p1 + p2 + 1, s1 + s2);
    case Op::kDivide: {
      int integral = p1 - s1 + s2;
      int scale = std::max(6, s1 + p2 + 1);
      return AdjustedDecimal(integral + scale, scale);
    }
    default: {
      int scale = std::max(s1, s2);
      return AdjustedDecimal(std::min(p1 - s1, p2 - s2) + scale, scale);
    }
  }
}

const char* NameOf(Op op) {
  switch (op) {
    case Op::kAdd:
      return "spark_add";
    case Op::kSubtract:
      return "spark_subtract";
    case Op::kMultiply:
      return "spark_multiply";
    case Op::kDivide:
      return "spark_divide";
    case Op::kRemainder:
      return "spark_remainder";
    case Op::kPmod:
      return "spark_pmod";
  }
  return "";
}

bool IsTry(const Call& call) { return call.name.rfind("try_", 0) == 0; }

std::string Suffix(const Call& call) { return IsTry(call) ? "_try" : ModeSuffix(call); }

Result<ExprPtr> NumericOperation(Call& call, Op op) {
  std::string display = OperatorDisplay(call);
  FLEUVE_TRY(PromoteArithmetic(call));
  FLEUVE_TRY(CheckNumericOperands(call));
  if (op == Op::kDivide && !call.type(0).Is(TypeKind::kDecimal)) {
    FLEUVE_TRY(call.Cast(0, DataType::Double()));
    FLEUVE_TRY(call.Cast(1, DataType::Double()));
  }
  DataType type = call.type(0);
  if (type.Is(TypeKind::kDecimal)) {
    type = DecimalResult(op, call.type(0), call.type(1));
  }
  bool division = op == Op::kDivide || op == Op::kRemainder || op == Op::kPmod;
  bool floating = type.Is(TypeKind::kDouble) || type.Is(TypeKind::kFloat);
  bool can_go_wrong = division || !floating;
  if (can_go_wrong && call.LiteralOf(1) != nullptr && division && !type.Is(TypeKind::kDecimal) &&
      !call.LiteralOf(1)->is_null()) {
    // A literal divisor that is neither 0 nor -1 cannot fail.
    const types::Value& v = *call.LiteralOf(1);
    bool safe = floating ? v.real() != 0 : (v.integer() != 0);
    can_go_wrong = !safe;
  }
  bool ansi = call.ansi() && !IsTry(call);
  bool nullable =
      call.AnyNullable() || (!ansi && can_go_wrong && (type.Is(TypeKind::kDecimal) || IsTry(call))) || division;
  ExprPtr made = call.Make(std::string(NameOf(op)) + Suffix(call), type, nullable, ansi && can_go_wrong);
  return call.Shown(made, std::move(display));
}

/// Date, timestamp and interval sums; nullptr where none of the operands is one.
Result<ExprPtr> TimeOperation(Call& call, bool subtract) {
  auto& args = call.args;
  std::string display = OperatorDisplay(call);
  auto finish = [&](Result<ExprPtr> made) -> Result<ExprPtr> {
    FLEUVE_ASSIGN(ExprPtr expr, std::move(made));
    return call.Shown(expr, display);
  };
  auto node = [&](const char* function, DataType type, bool fails) -> Result<ExprPtr> {
    bool is_try = IsTry(call);
    std::string name = std::string(function) + (is_try ? "_try" : "");
    return finish(call.Make(name, std::move(type), call.AnyNullable() || is_try, fails && !is_try));
  };
  const DataType a = args[0]->type;
  const DataType b = args[1]->type;
  if (!subtract && IsInterval(a) && !IsInterval(b) && !b.Is(TypeKind::kVoid)) {
    std::swap(args[0], args[1]);
    std::swap(call.shown[0], call.shown[1]);
    return TimeOperation(call, false);
  }
  // Spark names the expressions that its analyzer puts in the place of the operator.
  const bool is_operator = IsOperator(call.name);
  if (IsInterval(b)) {
    if (IsInterval(a)) {
      if (a.kind() != b.kind()) {
        return call.Unexpected(1, "(\"DATE\" or \"TIMESTAMP\" or \"TIMESTAMP WITHOUT TIME ZONE\")");
      }
      auto type = TightestCommonType(a, b, call.config);
      FLEUVE_TRY(call.Cast(0, *type));
      FLEUVE_TRY(call.Cast(1, *type));
      return node(subtract ? "spark_interval_subtract" : "spark_interval_add", *type, true);
    }
    if (a.Is(TypeKind::kVoid)) {
      FLEUVE_TRY(call.Cast(0, b));
      return node(subtract ? "spark_interval_subtract" : "spark_interval_add", b, true);
    }
    if (a.IsString() && !b.Is(TypeKind::kCalendarInterval)) {
      FLEUVE_TRY(call.Cast(0, DataType::Timestamp()));
    } else if (a.IsString()) {
      FLEUVE_TRY(call.Cast(0, DataType::Timestamp()));
    }
    const DataType t = args[0]->type;
    if (!t.IsDateTime()) {
      return call.Unexpected(0, "(\"DATE\" or \"TIMESTAMP\" or \"TIMESTAMP WITHOUT TIME ZONE\")");
    }
    const bool whole_days =
        t.Is(TypeKind::kDate) && b.Is(TypeKind::kDayTimeInterval) && b.precision() == 0 && b.scale() == 0;
    if (is_operator && whole_days) {
      const std::string days = "extractansiintervaldays(" + call.shown[1] + ")";
      display = "date_add(" + call.shown[0] + ", " + (subtract ? "(- " + days + ")" : days) + ")";
    } else if (is_operator) {
      display = call.shown[0] + (subtract ? " - " : " + ") + call.shown[1];
    }
    if (subtract) {
      std::vector<ExprPtr> inner{args[1]};
      bool calendar = b.Is(TypeKind::kCalendarInterval);
      ExprPtr negated =
          MakeCall(calendar ? "spark_calendar_negate" : "spark_negate", inner, b, args[1]->nullable, true);
      // Subtraction must not overflow in the negation of the smallest interval: that row fails as Spark's does.
      args[1] = WithDisplay(negated, args[1]->display);
    }
    DataType result = t;
    if (t.Is(TypeKind::kDate)) {
      if (b.Is(TypeKind::kDayTimeInterval)) {
        if (b.precision() == 0 && b.scale() == 0) {
          result = DataType::Date();
        } else {
          FLEUVE_TRY(call.Cast(0, DataType::Timestamp()));
          result = DataType::Timestamp();
        }
      }
    }
    call.Hidden(types::Value(call.config.session_zone), DataType::String());
    FLEUVE_ASSIGN(ExprPtr sum, node("spark_time_add", result, true));
    // A string gives a string again.
    return a.IsString() ? MakeCast(sum, a, call.config) : Result<ExprPtr>(sum);
  }
  if (subtract && a.IsString() && b.Is(TypeKind::kDate)) {
    FLEUVE_TRY(call.Cast(0, DataType::Date()));
    return node("spark_date_minus_date", DataType::DayTimeInterval(0, 0), false);
  }
  if (a.Is(TypeKind::kDate) || (b.Is(TypeKind::kDate) && !subtract)) {
    bool swapped = !a.Is(TypeKind::kDate);
    if (swapped) {
      std::swap(args[0], args[1]);
      std::swap(call.shown[0], call.shown[1]);
    }
    DataType other = args[1]->type;
    if (subtract && (other.Is(TypeKind::kDate) || (other.IsString()))) {
      if (other.IsString()) {
        FLEUVE_TRY(call.Cast(1, DataType::Date()));
      }
      return node("spark_date_minus_date", DataType::DayTimeInterval(0, 0), false);
    }
    if (subtract && (other.Is(TypeKind::kTimestamp) || other.Is(TypeKind::kTimestampNtz))) {
      FLEUVE_TRY(call.Cast(0, other));
    } else {
      if (other.Is(TypeKind::kVoid)) {
        FLEUVE_TRY(call.Cast(1, DataType::Int()));
      } else if (!other.Is(TypeKind::kInt) && !other.Is(TypeKind::kShort) && !other.Is(TypeKind::kByte)) {
        Call shown(call.source);
        shown.name = subtract ? "date_sub" : "date_add";
        shown.args = args;
        shown.shown = call.shown;
        return shown.Unexpected(1, "(\"INT\" or \"SMALLINT\" or \"TINYINT\")");
      }
      FLEUVE_TRY(call.Cast(1, DataType::Int()));
      if (is_operator) {
        display = std::string(subtract ? "date_sub(" : "date_add(") + call.shown[0] + ", " + call.shown[1] + ")";
      }
      return node(subtract ? "spark_date_sub" : "spark_date_add", DataType::Date(), true);
    }
  }
  const DataType x = args[0]->type;
  const DataType y = args[1]->type;
  auto instant = [](const DataType& t) { return t.Is(TypeKind::kTimestamp) || t.Is(TypeKind::kTimestampNtz); };
  if (subtract && (instant(x) || instant(y))) {
    DataType common = x.Is(TypeKind::kTimestampNtz) && y.Is(TypeKind::kTimestampNtz) ? DataType::TimestampNtz()
                                                                                     : DataType::Timestamp();
    if (!((instant(x) || x.Is(TypeKind::kDate) || x.IsString() || x.Is(TypeKind::kVoid)) &&
          (instant(y) || y.Is(TypeKind::kDate) || y.IsString() || y.Is(TypeKind::kVoid)))) {
      return call.Unexpected(instant(x) ? 1 : 0, "(\"TIMESTAMP\" or \"TIMESTAMP WITHOUT TIME ZONE\")");
    }
    if ((x.Is(TypeKind::kTimestampNtz) && !y.Is(TypeKind::kTimestamp)) ||
        (y.Is(TypeKind::kTimestampNtz) && !x.Is(TypeKind::kTimestamp))) {
      common = DataType::TimestampNtz();
    }
    FLEUVE_TRY(call.Cast(0, common));
    FLEUVE_TRY(call.Cast(1, common));
    call.Hidden(types::Value(call.config.session_zone), DataType::String());
    return node("spark_timestamp_minus_timestamp", DataType::DayTimeInterval(0, 3), true);
  }
  return ExprPtr();
}

Result<ExprPtr> BuildAdd(Call& call) {
  FLEUVE_ASSIGN(ExprPtr time, TimeOperation(call, false));
  return time ? Result<ExprPtr>(time) : NumericOperation(call, Op::kAdd);
}

Result<ExprPtr> BuildSubtract(Call& call) {
  if (call.size() == 1) {
    ExprPtr arg = call.args[0];
    return CallNamed(call, "unary_minus", {arg});
  }
  FLEUVE_ASSIGN(ExprPtr time, TimeOperation(call, true));
  return time ? Result<ExprPtr>(time) : NumericOperation(call, Op::kSubtract);
}

Result<ExprPtr> ScaleInterval(Call& call, bool divide) {
  std::string display = OperatorDisplay(call);
  if (!IsInterval(call.type(0))) {
    std::swap(call.args[0], call.args[1]);
    if (IsOperator(call.name)) {
      display = "(" + call.shown[1] + " " + Symbol(call) + " " + call.shown[0] + ")";
    }
  }
  const DataType interval = call.type(0);
  if (call.type(1).IsString()) {
    FLEUVE_TRY(call.Cast(1, DataType::Double()));
  }
  if (call.type(1).Is(TypeKind::kVoid)) {
    FLEUVE_TRY(call.Cast(1, DataType::Double()));
  }
  if (!call.type(1).IsNumeric()) {
    return call.Unexpected(1, "\"NUMERIC\"");
  }
  if (call.type(1).IsIntegral()) {
    FLEUVE_TRY(call.Cast(1, DataType::Long()));
  } else if (call.type(1).Is(TypeKind::kFloat)) {
    FLEUVE_TRY(call.Cast(1, DataType::Double()));
  }
  DataType result = interval.Is(TypeKind::kDayTimeInterval)     ? DataType::DayTimeInterval(0, 3)
                    : interval.Is(TypeKind::kYearMonthInterval) ? DataType::YearMonthInterval(0, 1)
                                                                : interval;
  std::string name =
      std::string(divide ? "spark_interval_divide" : "spark_interval_multiply") + (IsTry(call) ? "_try" : "");
  return call.Shown(call.Make(name, result, call.AnyNullable() || IsTry(call), !IsTry(call)), display);
}

Result<ExprPtr> BuildMultiply(Call& call) {
  if (IsInterval(call.type(0)) || IsInterval(call.type(1))) {
    return ScaleInterval(call, false);
  }
  return NumericOperation(call, Op::kMultiply);
}

Result<ExprPtr> BuildDivide(Call& call) {
  if (IsInterval(call.type(0))) {
    return ScaleInterval(call, true);
  }
  return NumericOperation(call, Op::kDivide);
}

Result<ExprPtr> BuildRemainder(Call& call) { return NumericOperation(call, Op::kRemainder); }
Result<ExprPtr> BuildPmod(Call& call) { return NumericOperation(call, Op::kPmod); }

Result<ExprPtr> BuildIntegralDivide(Call& call) {
  std::string display = "(" + call.shown[0] + " div " + call.shown[1] + ")";
  if (IsInterval(call.type(0)) && call.type(0).kind() == call.type(1).kind()) {
    return call.Shown(call.Make("spark_div", DataType::Long(), true, true), display);
  }
  FLEUVE_TRY(PromoteArithmetic(call));
  for (std::size_t i = 0; i < 2; ++i) {
    if (call.type(i).Is(TypeKind::kVoid)) {
      FLEUVE_TRY(call.Cast(i, DataType::Long()));
    }
  }
  if (call.type(0).IsIntegral() && call.type(1).IsIntegral()) {
    FLEUVE_TRY(call.Cast(0, DataType::Long()));
    FLEUVE_TRY(call.Cast(1, DataType::Long()));
  }
  if (!(call.type(0).Is(TypeKind::kLong) || call.type(0).Is(TypeKind::kDecimal))) {
    return call.type(0).kind() != call.type(1).kind() ? DiffTypes(call)
                                                      : WrongOperand(call, "(\"BIGINT\" or \"DECIMAL\")");
  }
  bool fails = call.ansi();
  return call.Shown(call.Make("spark_div" + ModeSuffix(call), DataType::Long(), true, fails), display);
}

Result<ExprPtr> BuildNegate(Call& call) {
  std::string display = call.name == "negative" ? "negative(" + call.shown[0] + ")" : "(- " + call.shown[0] + ")";
  if (call.source.name == "-" || call.name == "unary_minus") {
    display = "(- " + call.shown[0] + ")";
  }
  if (!IsInterval(call.type(0))) {
    FLEUVE_TRY(call.ToNumeric(0));
  }
  const DataType type = call.type(0);
  if (type.Is(TypeKind::kCalendarInterval)) {
    return call.Shown(call.Make("spark_calendar_negate", type, call.AnyNullable(), true), display);
  }
  bool fails = call.ansi() && (type.IsIntegral() || IsInterval(type));
  return call.Shown(call.Make("spark_negate" + ModeSuffix(call), type, call.AnyNullable(), fails), display);
}

Result<ExprPtr> BuildPositive(Call& call) {
  if (!IsInterval(call.type(0))) {
    FLEUVE_TRY(call.ToNumeric(0));
  }
  return call.Shown(call.args[0], "(+ " + call.shown[0] + ")");
}

Result<ExprPtr> BuildAbs(Call& call) {
  if (!IsInterval(call.type(0)) || call.type(0).Is(TypeKind::kCalendarInterval)) {
    FLEUVE_TRY(call.ToNumeric(0));
  }
  const DataType type = call.type(0);
  bool fails = call.ansi() && (type.IsIntegral() || IsInterval(type));
  return call.Make("spark_abs" + ModeSuffix(call), type, call.AnyNullable(), fails);
}

// ---- Bits ----

Result<ExprPtr> BuildBitwise(Call& call) {
  std::string display = OperatorDisplay(call);
  if (call.type(0).IsString() && call.type(1).IsNumeric()) {
    FLEUVE_TRY(call.Cast(0, DataType::Long()));
  }
  if (call.type(1).IsString() && call.type(0).IsNumeric()) {
    FLEUVE_TRY(call.Cast(1, DataType::Long()));
  }
  for (std::size_t i = 0; i < 2; ++i) {
    if (call.type(i).Is(TypeKind::kVoid)) {
      FLEUVE_TRY(call.Cast(i, call.type(1 - i).Is(TypeKind::kVoid) ? DataType::Int() : call.type(1 - i)));
    }
  }
  if (!call.type(0).IsIntegral() || !call.type(1).IsIntegral()) {
    return call.type(0).kind() != call.type(1).kind() ? DiffTypes(call) : WrongOperand(call, "INTEGRAL");
  }
  FLEUVE_ASSIGN(DataType type, call.ToCommon(0, 2));
  const char* function = call.name == "&" ? "spark_bit_and" : call.name == "|" ? "spark_bit_or" : "spark_bit_xor";
  return call.Shown(call.Make(function, type), display);
}

Result<ExprPtr> BuildBitNot(Call& call) {
  std::string display = "~" + call.shown[0];
  if (call.type(0).IsString() || call.type(0).Is(TypeKind::kVoid)) {
    FLEUVE_TRY(call.Cast(0, call.type(0).IsString() ? DataType::Long() : DataType::Int()));
  }
  if (!call.type(0).IsIntegral()) {
    return call.Unexpected(0, "INTEGRAL");
  }
  return call.Shown(call.Make("spark_bit_not", call.type(0)), display);
}

Result<ExprPtr> BuildShift(Call& call) {
  bool left = call.name == "<<" || call.name == "shiftleft";
  bool unsigned_right = call.name == ">>>" || call.name == "shiftrightunsigned";
  std::string display = OperatorDisplay(call);
  FLEUVE_TRY(call.ToOneOf(0, {DataType::Int(), DataType::Long()}));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  const char* function = left             ? "spark_shift_left"
                         : unsigned_right ? "spark_shift_right_unsigned"
                                          : "spark_shift_right";
  return call.Shown(call.Make(function, call.type(0)), display);
}

// ---- Comparison ----

/// True where a string inside one type stands where the other has something else: inside arrays and structs nothing is
/// made of text.
bool TextMeetsOthers(const DataType& a, const DataType& b) {
  if (a.Is(TypeKind::kArray) && b.Is(TypeKind::kArray)) {
    return TextMeetsOthers(a.element(), b.element());
  }
  if (a.Is(TypeKind::kStruct) && b.Is(TypeKind::kStruct) && a.fields().size() == b.fields().size()) {
    for (std::size_t i = 0; i < a.fields().size(); ++i) {
      if (TextMeetsOthers(a.fields()[i].type, b.fields()[i].type)) {
        return true;
      }
    }
    return false;
  }
  return a.IsString() != b.IsString() && !a.Is(TypeKind::kVoid) && !b.Is(TypeKind::kVoid);
}

/// Brings both operands of a comparison to one type.
Result<void> PromoteComparison(Call& call) {
  auto& args = call.args;
  const DataType a = args[0]->type;
  const DataType b = args[1]->type;
  if (a.EqualsIgnoringNullability(b)) {
    return {};
  }
  std::optional<DataType> common;
  if (!call.ansi()) {
    // Strings follow the other side's type.
    if (a.IsString() && !b.IsString() && !b.IsNested() && !b.Is(TypeKind::kVoid)) {
      common = b;
    } else if (b.IsString() && !a.IsString() && !a.IsNested() && !a.Is(TypeKind::kVoid)) {
      common = a;
    }
  }
  if (!common && a.Is(TypeKind::kStruct) && b.Is(TypeKind::kStruct) && a.fields().size() == b.fields().size()) {
    // Structs compare by position whatever their fields are called.
    std::vector<types::StructField> renamed;
    for (std::size_t i = 0; i < a.fields().size(); ++i) {
      renamed.push_back({a.fields()[i].name, b.fields()[i].type, b.fields()[i].nullable, Json()});
    }
    DataType other = DataType::Struct(renamed);
    common = a.EqualsIgnoringNullability(other) ? a : WiderType(a, other, call.config);
  }
  if (!common) {
    common = WiderType(a, b, call.config);
  }
  if (!common || (a.IsNested() && b.IsNested() && TextMeetsOthers(a, b))) {
    return DiffTypes(call);
  }
  FLEUVE_TRY(call.Cast(0, *common));
  FLEUVE_TRY(call.Cast(1, *common));
  return {};
}

Result<ExprPtr> Compare(Call& call, const char* function, std::string display) {
  FLEUVE_TRY(PromoteComparison(call));
  if (!types::IsOrderable(call.type(0))) {
    return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.INVALID_ORDERING_TYPE",
                 "Cannot resolve \"" + display + "\" due to data type mismatch: The `" + Symbol(call) +
                     "` does not support ordering on type \"" + call.type(0).Sql() + "\".")
        .With("sqlExpr", "\"" + display + "\"")
        .With("functionName", "`" + Symbol(call) + "`")
        .With("dataType", "\"" + call.type(0).Sql() + "\"");
  }
  bool null_safe = std::string_view(function) == "eqnullsafe";
  return call.Shown(call.Make(function, DataType::Boolean(), !null_safe && call.AnyNullable()), std::move(display));
}

/// Spark compares an integer with a decimal literal as integers: the literal is rounded to the side that keeps the
/// answer, and where no long reaches it the answer is a constant, even for NULL. Gives that constant, or null with the
/// literal replaced; the call stays as it is where it is no such comparison.
ExprPtr RoundDecimalLiteral(Call& call) {
  const bool less = call.name[0] == '<';
  const bool or_equal = call.name.ends_with("=");
  for (std::size_t i = 0; i < 2; ++i) {
    const ExprPtr& literal = call.args[i];
    if (literal->kind != ExprKind::kLiteral || literal->value.is_null() || !literal->type.Is(TypeKind::kDecimal) ||
        !call.type(1 - i).IsIntegral()) {
      continue;
    }
    // As seen from the integer: is it to lie below the literal?
    const bool below = less == (i == 1);
    types::Int128 unit = 1;
    for (int digit = 0; digit < literal->type.scale(); ++digit) {
      unit *= 10;
    }
    const types::Int128 value = literal->value.decimal();
    types::Int128 whole = value / unit;
    const types::Int128 rest = value % unit;
    // x < 1.5 is x < 2 and x <= 1.5 is x <= 1; x > 1.5 is x > 1 and x >= 1.5 is x >= 2.
    const bool up = below != or_equal;
    if (rest != 0 && up == (rest > 0)) {
      whole += up ? 1 : -1;
    }
    if (whole < INT64_MIN || whole > INT64_MAX) {
      return MakeLiteral(types::Value(below == (whole > 0)), DataType::Boolean());
    }
    call.args[i] = MakeLiteral(types::Value(static_cast<std::int64_t>(whole)), DataType::Long());
    call.shown[i] = call.args[i]->display;
    return nullptr;
  }
  return nullptr;
}

Result<ExprPtr> BuildComparison(Call& call) {
  if (call.name == "<" || call.name == "<=" || call.name == ">" || call.name == ">=") {
    if (ExprPtr constant = RoundDecimalLiteral(call)) {
      return constant;
    }
  }
  static const std::pair<const char*, const char*> kNames[] = {
      {"=", "eq"}, {"==", "eq"}, {"<", "lt"},           {"<=", "le"},
      {">", "gt"}, {">=", "ge"}, {"<=>", "eqnullsafe"}, {"equal_null", "eqnullsafe"}};
  std::string display = OperatorDisplay(call);
  for (const auto& [symbol, function] : kNames) {
    if (call.name == symbol) {
      return Compare(call, function, display);
    }
  }
  // != is NOT (a = b).
  std::string equal = "(" + call.shown[0] + " = " + call.shown[1] + ")";
  FLEUVE_ASSIGN(ExprPtr inner, Compare(call, "eq", equal));
  ExprPtr made = MakeCall("not", {inner}, DataType::Boolean(), inner->nullable);
  return call.Shown(made, "(NOT " + equal + ")");
}

// ---- Logic ----

Result<void> ToBooleans(Call& call) {
  for (std::size_t i = 0; i < call.size(); ++i) {
    const DataType& t = call.type(i);
    if (t.Is(TypeKind::kBoolean)) {
      continue;
    }
    if (t.Is(TypeKind::kVoid) || (t.IsString() && call.ansi())) {
      FLEUVE_TRY(call.Cast(i, DataType::Boolean()));
      continue;
    }
    if (call.size() == 1) {
      return call.Unexpected(i, "BOOLEAN");
    }
    return call.type(0).kind() != call.type(1).kind() ? DiffTypes(call) : WrongOperand(call, "BOOLEAN");
  }
  return {};
}

Result<ExprPtr> BuildLogic(Call& call) {
  bool conjunction = call.name == "and";
  std::string word = conjunction ? " AND " : " OR ";
  if (call.size() < 2) {
    return call.WrongCount("2");
  }
  std::string display = "(" + call.shown[0] + word + call.shown[1] + ")";
  FLEUVE_TRY(ToBooleans(call));
  return call.Shown(call.Make(conjunction ? "and" : "or", DataType::Boolean()), display);
}

Result<ExprPtr> BuildNot(Call& call) {
  std::string display = "(NOT " + call.shown[0] + ")";
  FLEUVE_TRY(ToBooleans(call));
  return call.Shown(call.Make("not", DataType::Boolean()), display);
}

Result<ExprPtr> BuildIsNull(Call& call) {
  bool negated = call.name == "isnotnull";
  return call.Shown(call.Make(negated ? "isnotnull" : "isnull", DataType::Boolean(), false),
                    "(" + call.shown[0] + (negated ? " IS NOT NULL)" : " IS NULL)"));
}

Result<ExprPtr> BuildIn(Call& call) {
  std::string display = "(" + call.shown[0] + " IN (";
  for (std::size_t i = 1; i < call.size(); ++i) {
    display += (i > 1 ? ", " : "") + call.shown[i];
  }
  display += "))";
  std::vector<DataType> all;
  bool same = true;
  for (const ExprPtr& arg : call.args) {
    all.push_back(arg->type);
    same = same && arg->type.EqualsIgnoringNullability(all.front());
  }
  if (!same) {
    // Structs match by position: give every one the first one's names.
    auto common = [&]() -> std::optional<DataType> {
      if (all.front().Is(TypeKind::kStruct)) {
        for (DataType& type : all) {
          if (!type.Is(TypeKind::kStruct) || type.fields().size() != all.front().fields().size()) {
            break;
          }
          std::vector<types::StructField> fields = type.fields();
          for (std::size_t i = 0; i < fields.size(); ++i) {
            fields[i].name = all.front().fields()[i].name;
          }
          type = DataType::Struct(fields);
        }
      }
      return WiderType(all, call.config);
    }();
    if (!common) {
      std::string types;
      for (const DataType& t : all) {
        types += (types.empty() ? "\"" : ", \"") + t.Sql() + "\"";
      }
      return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.DATA_DIFF_TYPES",
                   "Cannot resolve \"" + display +
                       "\" due to data type mismatch: Input to `in` should all be the same "
                       "type, but it's [" +
                       types + "].");
    }
    for (std::size_t i = 0; i < call.size(); ++i) {
      FLEUVE_TRY(call.Cast(i, *common));
    }
  }
  if (!types::IsOrderable(call.type(0))) {
    return call.Mismatch("INVALID_ORDERING_TYPE",
                         "The `in` does not support ordering on type \"" + call.type(0).Sql() + "\".");
  }
  if (call.size() == 1) {
    return call.Shown(MakeLiteral(types::Value(false), DataType::Boolean()), display);
  }
  return call.Shown(call.Make("in", DataType::Boolean(), call.AnyNullable()), display);
}

Result<ExprPtr> BuildBetween(Call& call) {
  std::string display = "between(" + call.shown[0] + ", " + call.shown[1] + ", " + call.shown[2] + ")";
  FLEUVE_ASSIGN(ExprPtr low, CallNamed(call, ">=", {call.args[0], call.args[1]}));
  FLEUVE_ASSIGN(ExprPtr high, CallNamed(call, "<=", {call.args[0], call.args[2]}));
  return call.Shown(MakeAnd(low, high), display);
}

}  // namespace

const Table& OperatorFunctions() {
  static const Table table = {
      Scalar("+", 2, 2, [](Call& call) { return BuildAdd(call); }),
      Scalar("try_add", 2, 2, BuildAdd),
      Scalar("-", 1, 2, BuildSubtract),
      Scalar("try_subtract", 2, 2, BuildSubtract),
      Scalar("*", 2, 2, BuildMultiply),
      Scalar("try_multiply", 2, 2, BuildMultiply),
      Scalar("/", 2, 2, BuildDivide),
      Scalar("try_divide", 2, 2, BuildDivide),
      Scalar("%", 2, 2, BuildRemainder),
      Scalar("mod", 2, 2, BuildRemainder),
      Scalar("try_mod", 2, 2, BuildRemainder),
      Scalar("pmod", 2, 2, BuildPmod),
      Scalar("div", 2, 2, BuildIntegralDivide),
      Scalar("negative", 1, 1, BuildNegate),
      Scalar("negate", 1, 1, BuildNegate),
      Scalar("unary_minus", 1, 1, BuildNegate),
      Scalar("positive", 1, 1, BuildPositive),
      Scalar("unary_plus", 1, 1, BuildPositive),
      Scalar("abs", 1, 1, BuildAbs),
      Scalar("&", 2, 2, BuildBitwise),
      Scalar("|", 2, 2, BuildBitwise),
      Scalar("^", 2, 2, BuildBitwise),
      Scalar("~", 1, 1, BuildBitNot),
      Scalar("bitwise_not", 1, 1, BuildBitNot),
      Scalar("<<", 2, 2, BuildShift),
      Scalar(">>", 2, 2, BuildShift),
      Scalar(">>>", 2, 2, BuildShift),
      Scalar("shiftleft", 2, 2, BuildShift),
      Scalar("shiftright", 2, 2, BuildShift),
      Scalar("shiftrightunsigned", 2, 2, BuildShift),
      Scalar("=", 2, 2, BuildComparison),
      Scalar("==", 2, 2, BuildComparison),
      Scalar("!=", 2, 2, BuildComparison),
      Scalar("<>", 2, 2, BuildComparison),
      Scalar("<", 2, 2, BuildComparison),
      Scalar("<=", 2, 2, BuildComparison),
      Scalar(">", 2, 2, BuildComparison),
      Scalar(">=", 2, 2, BuildComparison),
      Scalar("<=>", 2, 2, BuildComparison),
      Scalar("equal_null", 2, 2, BuildComparison),
      Scalar("and", 2, 2, BuildLogic),
      Scalar("or", 2, 2, BuildLogic),
      Scalar("not", 1, 1, BuildNot),
      Scalar("!", 1, 1, BuildNot),
      Scalar("isnull", 1, 1, BuildIsNull),
      Scalar("isnotnull", 1, 1, BuildIsNull),
      Scalar("in", 1, -1, BuildIn),
      Scalar("between", 3, 3, BuildBetween),
  };
  return table;
}

}  // namespace fleuve::plan::functions
