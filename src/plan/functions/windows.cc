#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

Result<ExprPtr> BuildRank(Call& call) {
  bool fraction = call.name == "percent_rank" || call.name == "cume_dist";
  ExprPtr made = MakeCall(call.name, {}, fraction ? DataType::Double() : DataType::Int(), false);
  const bool upper = call.name == "rank" || call.name == "dense_rank" || call.name == "percent_rank";
  return WithDisplay(made, (upper ? AsciiUpper(call.name) : call.name) + "()");
}

Result<ExprPtr> BuildNtile(Call& call) {
  std::string display = call.Display();
  if (call.size() == 0) {
    call.Default(Value(1), DataType::Int());
    display = call.Display();
  }
  FLEUVE_TRY(call.To(0, DataType::Int()));
  const Value* literal = call.LiteralOf(0);
  if (literal == nullptr) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `buckets` should be a foldable \"INT\" expression.");
  }
  if (literal->is_null() || literal->integer() <= 0) {
    return call.Mismatch("VALUE_OUT_OF_RANGE", "The `buckets` must be between [1, 2147483647].");
  }
  return WithDisplay(MakeCall("ntile", call.args, DataType::Int(), false), display);
}

/// lag, lead(value[, offset[, default]]): children value, offset (literal), default.
Result<ExprPtr> BuildShift(Call& call) {
  if (call.size() < 2) {
    call.Default(Value(1), DataType::Int());
  }
  FLEUVE_TRY(call.To(1, DataType::Int()));
  const Value* offset = call.LiteralOf(1);
  if (offset == nullptr && call.args[1]->kind == ExprKind::kCall && call.args[1]->children.size() == 1 &&
      call.args[1]->children[0]->kind == ExprKind::kLiteral) {
    // -1 written as a negation of a literal.
    std::int64_t value = -call.args[1]->children[0]->value.integer();
    call.args[1] = WithDisplay(MakeLiteral(Value(value), DataType::Int()), call.shown[1]);
    offset = call.LiteralOf(1);
  }
  if (offset == nullptr || offset->is_null()) {
    return call.Mismatch(
        "NON_FOLDABLE_INPUT",
        "the input `offset` should be a foldable \"INT\" expression; however, got \"" + call.shown[1] + "\".");
  }
  if (call.size() < 3) {
    call.Default(Value(), DataType::Void());
  }
  FLEUVE_TRY(call.To(2, call.type(0)));
  bool nullable = call.args[0]->nullable || call.args[2]->nullable;
  std::string display = call.Display();
  auto copy = std::make_shared<Expr>(*MakeCall(call.name, call.args, call.type(0), nullable));
  copy->display = display;
  copy->ignore_nulls = call.source.ignore_nulls;
  return copy;
}

Result<ExprPtr> BuildNth(Call& call) {
  bool ignore_nulls = call.source.ignore_nulls;
  if (call.size() == 3) {
    const Value* flag = call.LiteralOf(2);
    if (flag == nullptr || flag->is_null() || !call.type(2).Is(TypeKind::kBoolean)) {
      return call.Unexpected(2, "BOOLEAN");
    }
    ignore_nulls = ignore_nulls || flag->boolean();
    call.args.pop_back();
    call.shown.pop_back();
  }
  FLEUVE_TRY(call.To(1, DataType::Int()));
  const Value* offset = call.LiteralOf(1);
  if (offset == nullptr) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `offset` should be a foldable \"INT\" expression.");
  }
  if (offset->is_null() || offset->integer() <= 0) {
    return call.Mismatch("VALUE_OUT_OF_RANGE", "The `offset` must be between (0, 2147483647].");
  }
  bool ignore = call.source.ignore_nulls;
  if (call.size() == 3) {
    const Value* flag = call.LiteralOf(2);
    if (flag == nullptr || flag->is_null() || !call.type(2).Is(TypeKind::kBoolean)) {
      return call.Mismatch("NON_FOLDABLE_INPUT",
                           "the input `ignoreNulls` should be a foldable \"BOOLEAN\" expression.");
    }
    ignore = ignore || flag->boolean();
    call.args.pop_back();
    call.shown.pop_back();
  }
  std::string display = call.Display() + (ignore ? " ignore nulls" : "");
  auto copy = std::make_shared<Expr>(*MakeCall("nth_value", call.args, call.type(0), true));
  copy->display = display;
  copy->ignore_nulls = ignore;
  return copy;
}

}  // namespace

const Table& WindowFunctions() {
  static const Table table = {
      Window("row_number", 0, 0, BuildRank),  Window("rank", 0, -1, BuildRank),
      Window("dense_rank", 0, -1, BuildRank), Window("percent_rank", 0, -1, BuildRank),
      Window("cume_dist", 0, 0, BuildRank),   Window("ntile", 0, 1, BuildNtile),
      Window("lag", 1, 3, BuildShift),        Window("lead", 1, 3, BuildShift),
      Window("nth_value", 2, 3, BuildNth),
  };
  return table;
}

}  // namespace fleuve::plan::functions
