#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

Result<ExprPtr> BuildLike(Call& call) {
  bool ilike = call.name == "ilike";
  Value escape("\\");
  std::string display = call.shown[0] + " LIKE " + call.shown[1];
  if (ilike) {
    display = "ilike(" + call.shown[0] + ", " + call.shown[1] + ")";
  }
  if (call.size() == 3) {
    const Value* literal = call.LiteralOf(2);
    if (literal == nullptr || literal->is_null() || !call.type(2).IsString() || literal->text().size() != 1) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_ESC",
                   "Found an invalid escape string: '" + call.shown[2] +
                       "'. The escape string must contain only one character.")
          .With("invalidEscape", "'" + call.shown[2] + "'");
    }
    escape = *literal;
    if (!ilike && escape.text() != "\\") {
      display += " ESCAPE '" + escape.text() + "'";
    }
    call.args.pop_back();
  }
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  call.Hidden(escape, DataType::String());
  bool fails = true;
  if (const Value* pattern = call.LiteralOf(1); pattern != nullptr && !pattern->is_null()) {
    fails = pattern->text().find(escape.text()) != std::string::npos;
  }
  return WithDisplay(call.Make(ilike ? "spark_ilike" : "spark_like", DataType::Boolean(), call.AnyNullable(), fails),
                     display);
}

/// Spark does not look at what a comparison with many patterns is made of: it may be NULL.
ExprPtr WithNullable(const ExprPtr& expr) {
  auto copy = std::make_shared<Expr>(*expr);
  copy->nullable = true;
  return copy;
}

/// like any (...), like all (...): one comparison per pattern, joined as three-valued logic says.
Result<ExprPtr> BuildLikeMany(Call& call) {
  // likeall, notlikeall, likeany, notlikeany, ilike...
  bool ilike = call.name.find("ilike") != std::string::npos;
  bool negated = call.name.rfind("not", 0) == 0;
  bool all = call.name.size() > 3 && call.name.substr(call.name.size() - 3) == "all";
  ExprPtr result;
  for (std::size_t i = 1; i < call.size(); ++i) {
    FLEUVE_ASSIGN(ExprPtr one, CallNamed(call, ilike ? "ilike" : "like", {call.args[0], call.args[i]}));
    if (negated) {
      FLEUVE_ASSIGN(one, CallNamed(call, "not", {one}));
    }
    if (result) {
      FLEUVE_ASSIGN(one, CallNamed(call, all ? "and" : "or", {result, one}));
    }
    result = one;
  }
  std::string shown = call.name;
  if (ilike) {
    shown.erase(shown.find("ilike"), 1);
  }
  return WithDisplay(WithNullable(result),
                     shown + "(" + (ilike ? "lower(" + call.shown[0] + ")" : call.shown[0]) + ")");
}

bool PatternIsPlain(const Call& call, std::size_t i) {
  const Value* pattern = call.LiteralOf(i);
  if (pattern == nullptr) {
    return false;
  }
  return pattern->is_null() || pattern->text().find_first_of("\\[](){}*+?|^$.") == std::string::npos;
}

Result<ExprPtr> BuildRLike(Call& call) {
  std::string upper = call.name == "rlike" ? "RLIKE" : call.name == "regexp" ? "REGEXP" : "REGEXP_LIKE";
  std::string display = call.Display(upper);
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  return WithDisplay(call.Make("spark_rlike", DataType::Boolean(), call.AnyNullable(), !PatternIsPlain(call, 1)),
                     display);
}

Result<ExprPtr> BuildExtract(Call& call) {
  bool all = call.name == "regexp_extract_all";
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  if (call.size() == 2) {
    call.Default(Value(1), DataType::Int());
  } else {
    FLEUVE_TRY(call.To(2, DataType::Int()));
  }
  DataType type = all ? DataType::Array(DataType::String()) : DataType::String();
  return call.Make(all ? "spark_regexp_extract_all" : "spark_regexp_extract", type, call.AnyNullable(), true);
}

Result<ExprPtr> BuildReplace(Call& call) {
  for (std::size_t i = 0; i < 3; ++i) {
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  if (call.size() == 3) {
    call.Default(Value(1), DataType::Int());
  } else {
    FLEUVE_TRY(call.To(3, DataType::Int()));
  }
  if (const Value* position = call.LiteralOf(3);
      position != nullptr && !position->is_null() && position->integer() < 1) {
    return call.Mismatch("VALUE_OUT_OF_RANGE", "The position must be between (0, 2147483647] (current value = " +
                                                   std::to_string(position->integer()) + ").");
  }
  return call.Make("spark_regexp_replace", DataType::String(), call.AnyNullable(), true);
}

Result<ExprPtr> BuildSplit(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  if (call.size() == 2) {
    call.Default(Value(-1), DataType::Int());
  } else {
    FLEUVE_TRY(call.To(2, DataType::Int()));
  }
  return call.Make("spark_split", DataType::Array(DataType::String(), false), call.AnyNullable(),
                   !PatternIsPlain(call, 1));
}

Result<ExprPtr> BuildInstr(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  if (call.size() == 2) {
    call.Default(Value(0), DataType::Int());
  } else {
    FLEUVE_TRY(call.To(2, DataType::Int()));
  }
  return call.Make("spark_regexp_instr", DataType::Int(), call.AnyNullable(), true);
}

}  // namespace

const Table& RegexpFunctions() {
  static const Table table = {
      Scalar("like", 2, 3, BuildLike),
      Scalar("ilike", 2, 3, BuildLike),
      Scalar("likeall", 2, -1, BuildLikeMany),
      Scalar("likeany", 2, -1, BuildLikeMany),
      Scalar("notlikeall", 2, -1, BuildLikeMany),
      Scalar("notlikeany", 2, -1, BuildLikeMany),
      Scalar("ilikeall", 2, -1, BuildLikeMany),
      Scalar("ilikeany", 2, -1, BuildLikeMany),
      Scalar("notilikeall", 2, -1, BuildLikeMany),
      Scalar("notilikeany", 2, -1, BuildLikeMany),
      Scalar("rlike", 2, 2, BuildRLike),
      Scalar("regexp", 2, 2, BuildRLike),
      Scalar("regexp_like", 2, 2, BuildRLike),
      Scalar("regexp_extract", 2, 3, BuildExtract),
      Scalar("regexp_extract_all", 2, 3, BuildExtract),
      Scalar("regexp_replace", 3, 4, BuildReplace),
      Scalar("split", 2, 3, BuildSplit),
      Scalar("regexp_instr", 2, 3, BuildInstr),
      Simple("regexp_count", "spark_regexp_count", "ss>i", kFails),
      Simple("regexp_substr", "spark_regexp_substr", "ss>s", kFails | kNullable),
  };
  return table;
}

}  // namespace fleuve::plan::functions
