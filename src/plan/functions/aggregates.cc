#include <algorithm>
#include <cmath>

#include "plan/functions/registry_internal.h"
#include "types/parts.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

bool IsInterval(const DataType& type) {
  return type.Is(TypeKind::kDayTimeInterval) || type.Is(TypeKind::kYearMonthInterval);
}

/// count(*), count(a, b): rows where all are not NULL.
Result<ExprPtr> BuildCount(Call& call) {
  std::string display = "count(";
  if (call.source.is_star || call.size() == 0) {
    if (!call.source.is_star) {
      return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITH_SUGGESTION",
                   "The `count` requires >= 1 parameters but the actual number is 0.")
          .With("functionName", "`count`")
          .With("expectedNum", " >= 1")
          .With("actualNum", "0")
          .With("legacyConfKey", "\"spark.sql.legacy.allowParameterlessCount\"")
          .With("legacyConfValue", "\"true\"");
    }
    call.args.clear();
    ExprPtr made = call.Aggregate("duck_count_star", DataType::Long(), false, "count(1)");
    return made;
  }
  display += call.source.distinct ? "DISTINCT " : "";
  for (std::size_t i = 0; i < call.size(); ++i) {
    display += (i > 0 ? ", " : "") + call.shown[i];
  }
  display += ")";
  const Value* literal = call.size() == 1 ? call.LiteralOf(0) : nullptr;
  if (literal != nullptr && !literal->is_null() && !call.source.distinct) {
    call.args.clear();
    return call.Aggregate("duck_count_star", DataType::Long(), false, display);
  }
  if (call.size() == 1) {
    return call.Aggregate("duck_count", DataType::Long(), false, display);
  }
  // One struct of all arguments, NULL where any is NULL.
  std::vector<types::StructField> fields;
  ExprPtr all;
  for (std::size_t i = 0; i < call.size(); ++i) {
    fields.push_back({"c" + std::to_string(i), call.type(i), call.args[i]->nullable, Json()});
    ExprPtr test = MakeCall("isnotnull", {call.args[i]}, DataType::Boolean(), false);
    all = all ? MakeAnd(all, test) : test;
  }
  DataType type = DataType::Struct(fields);
  ExprPtr row = MakeCall("spark_struct", call.args, type, false);
  call.args = {MakeCase({all, row}, false, type)};
  return call.Aggregate("duck_count", DataType::Long(), false, display);
}

DataType SumType(const DataType& type) {
  if (type.Is(TypeKind::kDecimal)) {
    return BoundedDecimal(type.precision() + 10, type.scale());
  }
  if (type.IsIntegral()) {
    return DataType::Long();
  }
  if (IsInterval(type)) {
    return type;
  }
  return DataType::Double();
}

Result<void> ToSummable(Call& call) {
  if (IsInterval(call.type(0))) {
    return {};
  }
  const DataType& type = call.type(0);
  if (!type.IsNumeric() && !type.IsString() && !type.Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "NUMERIC\" or \"ANSI INTERVAL");
  }
  return call.ToNumeric(0);
}

Result<ExprPtr> BuildSum(Call& call) {
  FLEUVE_TRY(ToSummable(call));
  DataType type = SumType(call.type(0));
  bool is_try = call.name == "try_sum";
  std::string suffix = is_try ? "_try" : (IsInterval(type) ? "" : ModeSuffix(call));
  if (type.Is(TypeKind::kLong)) {
    FLEUVE_TRY(call.Cast(0, DataType::Long()));
  } else if (type.Is(TypeKind::kDouble)) {
    FLEUVE_TRY(call.Cast(0, DataType::Double()));
  }
  return call.Aggregate("spark_sum" + suffix, type, true);
}

Result<ExprPtr> BuildAvg(Call& call) {
  FLEUVE_TRY(ToSummable(call));
  const DataType in = call.type(0);
  bool is_try = call.name == "try_avg";
  DataType type = DataType::Double();
  if (in.Is(TypeKind::kDecimal)) {
    // The sum keeps ten more digits, the mean four more of each kind.
    type = BoundedDecimal(in.precision() + 4, in.scale() + 4);
  } else if (in.Is(TypeKind::kDayTimeInterval)) {
    type = DataType::DayTimeInterval(0, 3);
  } else if (in.Is(TypeKind::kYearMonthInterval)) {
    type = DataType::YearMonthInterval(0, 1);
  } else {
    FLEUVE_TRY(call.Cast(0, DataType::Double()));
  }
  std::string suffix = is_try ? "_try" : (type.Is(TypeKind::kDecimal) ? ModeSuffix(call) : "");
  return call.Aggregate("spark_avg" + suffix, type, true);
}

Result<void> CheckOrderable(const Call& call, std::size_t i) {
  if (!types::IsOrderable(call.type(i))) {
    return call.Mismatch("INVALID_ORDERING_TYPE",
                         "The `" + call.name + "` does not support ordering on type \"" + call.type(i).Sql() + "\".");
  }
  return {};
}

Result<ExprPtr> BuildExtreme(Call& call) {
  FLEUVE_TRY(CheckOrderable(call, 0));
  return call.Aggregate(call.name == "min" ? "spark_min" : "spark_max", call.type(0), true);
}

Result<ExprPtr> BuildExtremeBy(Call& call) {
  FLEUVE_TRY(CheckOrderable(call, 1));
  return call.Aggregate(call.name == "min_by" ? "spark_min_by" : "spark_max_by", call.type(0), true);
}

/// first, last, any_value: `first(x, true)` and IGNORE NULLS leave out NULLs.
Result<ExprPtr> BuildFirst(Call& call) {
  bool ignore = call.source.ignore_nulls;
  // IGNORE NULLS makes the plain function of first_value and last_value.
  std::string shown = call.name;
  if (ignore && shown.ends_with("_value") && shown != "any_value") {
    shown.resize(shown.size() - 6);
  }
  std::string display = shown + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0] + ")";
  if (call.size() == 2) {
    const Value* literal = call.LiteralOf(1);
    if (literal == nullptr || !call.type(1).Is(TypeKind::kBoolean)) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1210",
                   "The second argument in " + call.name + " should be a boolean literal.")
          .Family(ErrorFamily::kAnalysis);
    }
    ignore = ignore || (!literal->is_null() && literal->boolean());
    call.args.pop_back();
  }
  bool last = call.name == "last" || call.name == "last_value";
  ExprPtr made = call.Aggregate(last ? "spark_last" : "spark_first", call.type(0), true, display);
  auto copy = std::make_shared<Expr>(*made);
  copy->ignore_nulls = ignore;
  return copy;
}

Result<ExprPtr> BuildCollect(Call& call) {
  bool set = call.name == "collect_set";
  if (set && call.type(0).Is(TypeKind::kMap)) {
    return call.Mismatch("UNSUPPORTED_INPUT_TYPE", "The input of `collect_set` can't be \"MAP\" type data.");
  }
  call.name = set ? "collect_set" : "collect_list";
  return call.Aggregate("spark_" + call.name, DataType::Array(call.type(0), false), false);
}

Result<ExprPtr> BuildCountIf(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Boolean()));
  std::string display = call.name + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0] + ")";
  ExprPtr test = MakeCase({call.args[0], MakeLiteral(Value(true), DataType::Boolean())}, false, DataType::Boolean());
  call.args = {test};
  return call.Aggregate("duck_count", DataType::Long(), false, display);
}

Result<ExprPtr> BuildBoolean(Call& call) {
  if (call.type(0).IsString()) {
    FLEUVE_TRY(call.Cast(0, DataType::Boolean()));
  }
  if (!call.type(0).Is(TypeKind::kBoolean)) {
    if (!call.type(0).Is(TypeKind::kVoid)) {
      return call.Unexpected(0, "BOOLEAN");
    }
    FLEUVE_TRY(call.Cast(0, DataType::Boolean()));
  }
  bool all = call.name == "bool_and" || call.name == "every";
  return call.Aggregate(all ? "spark_min" : "spark_max", DataType::Boolean(), true);
}

Result<ExprPtr> BuildBits(Call& call) {
  if (!call.type(0).IsIntegral()) {
    if (!call.type(0).IsString() && !call.type(0).Is(TypeKind::kVoid)) {
      return call.Unexpected(0, "INTEGRAL");
    }
    FLEUVE_TRY(call.Cast(0, call.type(0).IsString() ? DataType::Long() : DataType::Int()));
  }
  return call.Aggregate("spark_" + call.name + "_agg", call.type(0), true);
}

Result<ExprPtr> BuildMode(Call& call) {
  std::string display = call.Display();
  bool deterministic = false;
  if (call.size() == 0) {
    // mode() WITHIN GROUP (ORDER BY x)
    if (call.source.within_group.size() != 1) {
      return call.WrongCount("1");
    }
    call.args = {call.source.within_group[0].expr};
    const SortKey& key = call.source.within_group[0];
    call.Hidden(Value(key.ascending ? 1 : 2), DataType::Int());
    ExprPtr made =
        call.Aggregate("spark_mode", call.type(0), true,
                       "mode() WITHIN GROUP (ORDER BY " + key.expr->display + (key.ascending ? " DESC)" : ")"));
    auto copy = std::make_shared<Expr>(*made);
    copy->order_by.clear();
    return copy;
  }
  if (call.size() == 2) {
    const Value* literal = call.LiteralOf(1);
    if (literal == nullptr || literal->is_null() || !call.type(1).Is(TypeKind::kBoolean)) {
      return call.Mismatch("NON_FOLDABLE_INPUT",
                           "the input `deterministic` should be a foldable \"BOOLEAN\" expression.");
    }
    deterministic = literal->boolean();
    call.args.pop_back();
    display =
        deterministic ? "mode() WITHIN GROUP (ORDER BY " + call.shown[0] + " DESC)" : "mode(" + call.shown[0] + ")";
  }
  call.Hidden(Value(deterministic ? 1 : 0), DataType::Int());
  return call.Aggregate("spark_mode", call.type(0), true, display);
}

Result<ExprPtr> BuildListAgg(Call& call) {
  std::string name = call.name;
  if (!call.type(0).Is(TypeKind::kBinary)) {
    FLEUVE_TRY(call.To(0, DataType::String()));
  }
  DataType type = call.type(0).Is(TypeKind::kBinary) ? DataType::Binary() : DataType::String();
  if (!call.source.within_group.empty()) {
    name = "listagg";
  }
  std::string display = name + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0];
  if (call.size() == 2) {
    display += ", " + call.shown[1];
    if (call.LiteralOf(1) == nullptr) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `delimiter` should be a foldable \"STRING\" expression.");
    }
    if (call.type(1).Is(TypeKind::kVoid)) {
      call.args[1] = MakeLiteral(Value(""), type);
    }
    if (!call.type(1).IsString() && !call.type(1).Is(TypeKind::kBinary)) {
      return call.Unexpected(1, "STRING");
    }
  } else {
    display += ", NULL";
    call.Hidden(Value(""), type);
  }
  display += ")";
  if (!call.source.within_group.empty()) {
    display += " WITHIN GROUP (ORDER BY ";
    for (std::size_t i = 0; i < call.source.within_group.size(); ++i) {
      const SortKey& key = call.source.within_group[i];
      display += (i > 0 ? ", " : "") + key.expr->display + (key.ascending ? " ASC" : " DESC") +
                 (key.nulls_first ? " NULLS FIRST" : " NULLS LAST");
    }
    display += ")";
  }
  return call.Aggregate("spark_listagg", type, true, display);
}

Result<ExprPtr> BuildProduct(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Double()));
  return call.Aggregate("spark_product", DataType::Double(), true);
}

/// HyperLogLog++ over the hash of the value.
Result<ExprPtr> BuildApproxCountDistinct(Call& call) {
  double deviation = 0.05;
  const std::string display = call.name + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0] + ")";
  if (call.size() == 2) {
    const Value* literal = call.LiteralOf(1);
    if (literal == nullptr || literal->is_null() ||
        !(call.type(1).Is(TypeKind::kDecimal) || call.type(1).Is(TypeKind::kDouble))) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1104",
                   "The second argument should be a double literal.");
    }
    deviation = call.type(1).Is(TypeKind::kDouble)
                    ? literal->real()
                    : static_cast<double>(literal->decimal()) / std::pow(10.0, call.type(1).scale());
  }
  const double bits = std::ceil(2.0 * std::log(1.106 / deviation) / std::log(2.0));
  if (!(bits >= 4)) {
    return Error(ErrorKind::kInvalidArgument, "FAILED_FUNCTION_CALL",
                 "Failed preparing of the function `" + call.name +
                     "` for call. Please, double check function's arguments.")
        .With("funcName", "`" + call.name + "`");
  }
  constexpr double kMostBits = 24;
  if (bits > kMostBits) {
    return Error::Unsupported("a relative standard deviation below 0.00027 in " + call.name);
  }
  call.args = {MakeCall("spark_xxhash64_or_null", {call.args[0]}, DataType::Long(), call.args[0]->nullable)};
  call.Hidden(Value(static_cast<std::int64_t>(bits)), DataType::Int());
  return call.Aggregate("spark_hyperloglog", DataType::Long(), false, display);
}

/// count_min_sketch, histogram_numeric and other sketches come from their own files.
Result<ExprPtr> BuildHistogram(Call& call) {
  const DataType type = call.type(0);
  if (!type.IsNumeric() && !type.IsDateTime() && !IsInterval(type) && !type.Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "NUMERIC");
  }
  FLEUVE_TRY(call.To(1, DataType::Int()));
  const Value* bins = call.LiteralOf(1);
  if (bins == nullptr) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `nb` should be a foldable \"INT\" expression.");
  }
  if (bins->is_null() || bins->integer() < 2) {
    return call.Mismatch("VALUE_OUT_OF_RANGE", "The `nb` must be between [2, 2147483647].");
  }
  DataType entry = DataType::Struct({{"x", type, true, Json()}, {"y", DataType::Double(), true, Json()}});
  return call.Aggregate("spark_histogram_numeric", DataType::Array(entry, true), true);
}

}  // namespace

const Table& AggregateFunctions() {
  static const Table table = {
      Agg("count", 0, -1, BuildCount),
      Agg("sum", 1, 1, BuildSum),
      Agg("try_sum", 1, 1, BuildSum),
      Agg("avg", 1, 1, BuildAvg),
      Agg("mean", 1, 1, BuildAvg),
      Agg("try_avg", 1, 1, BuildAvg),
      Agg("min", 1, 1, BuildExtreme),
      Agg("max", 1, 1, BuildExtreme),
      Agg("min_by", 2, 2, BuildExtremeBy),
      Agg("max_by", 2, 2, BuildExtremeBy),
      Agg("first", 1, 2, BuildFirst),
      Agg("first_value", 1, 2, BuildFirst),
      Agg("last", 1, 2, BuildFirst),
      Agg("last_value", 1, 2, BuildFirst),
      Agg("any_value", 1, 2, BuildFirst),
      Agg("collect_list", 1, 1, BuildCollect),
      Agg("array_agg", 1, 1, BuildCollect),
      Agg("collect_set", 1, 1, BuildCollect),
      Agg("count_if", 1, 1, BuildCountIf),
      Agg("bool_and", 1, 1, BuildBoolean),
      Agg("every", 1, 1, BuildBoolean),
      Agg("bool_or", 1, 1, BuildBoolean),
      Agg("some", 1, 1, BuildBoolean),
      Agg("any", 1, 1, BuildBoolean),
      Agg("bit_and", 1, 1, BuildBits),
      Agg("bit_or", 1, 1, BuildBits),
      Agg("bit_xor", 1, 1, BuildBits),
      Agg("mode", 0, 2, BuildMode),
      Agg("listagg", 1, 2, BuildListAgg),
      Agg("string_agg", 1, 2, BuildListAgg),
      Agg("product", 1, 1, BuildProduct),
      Agg("approx_count_distinct", 1, 2, BuildApproxCountDistinct),
      Agg("histogram_numeric", 2, 2, BuildHistogram),
  };
  return table;
}

}  // namespace fleuve::plan::functions
