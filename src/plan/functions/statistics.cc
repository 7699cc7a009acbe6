#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

Result<ExprPtr> Moments(Call& call, const char* function) {
  FLEUVE_TRY(call.To(0, DataType::Double()));
  return call.Aggregate(function, DataType::Double(), true);
}

Result<ExprPtr> Pairs(Call& call, const char* function) {
  FLEUVE_TRY(call.To(0, DataType::Double()));
  FLEUVE_TRY(call.To(1, DataType::Double()));
  return call.Aggregate(function, DataType::Double(), true);
}

bool IsInterval(const DataType& type) {
  return type.Is(TypeKind::kDayTimeInterval) || type.Is(TypeKind::kYearMonthInterval);
}

/// A constant double or array of doubles out of literals and array(...) of literals.
Result<std::vector<double>> Percentages(const Call& call, std::size_t i, bool* many) {
  std::vector<const Expr*> items;
  const Expr* node = call.args[i].get();
  while (node->kind == ExprKind::kCast) {
    node = node->children[0].get();
  }
  std::vector<double> out;
  auto number = [](const Value& value, const DataType& type) {
    if (type.Is(TypeKind::kDecimal)) {
      return std::stod(types::DecimalToString(value.decimal(), type.scale()));
    }
    return type.IsIntegral() ? static_cast<double>(value.integer()) : value.real();
  };
  *many = node->type.Is(TypeKind::kArray);
  if (*many && node->kind == ExprKind::kLiteral && !node->value.is_null()) {
    for (const Value& v : node->value.list()) {
      out.push_back(number(v, node->type.element()));
    }
  } else if (*many && node->kind == ExprKind::kCall) {
    for (const ExprPtr& child : node->children) {
      const Expr* item = child.get();
      while (item->kind == ExprKind::kCast) {
        item = item->children[0].get();
      }
      items.push_back(item);
    }
  } else {
    items.push_back(node);
  }
  for (const Expr* item : items) {
    if (item->kind != ExprKind::kLiteral || item->value.is_null() || !item->type.IsNumeric()) {
      return call.Mismatch(
          "NON_FOLDABLE_INPUT",
          "the input `percentage(s)` should be a foldable \"DOUBLE\" or \"ARRAY<DOUBLE>\" expression.");
    }
    out.push_back(number(item->value, item->type));
  }
  for (double p : out) {
    if (!(p >= 0 && p <= 1)) {
      return call.Mismatch("VALUE_OUT_OF_RANGE", "The `percentage(s)` must be between [0.0, 1.0] (current value = " +
                                                     std::to_string(p) + ").");
    }
  }
  return out;
}

ExprPtr DoubleArray(const std::vector<double>& values) {
  Value::List list;
  for (double v : values) {
    list.emplace_back(v);
  }
  return MakeLiteral(Value(std::move(list)), DataType::Array(DataType::Double(), false));
}

Result<void> ToPercentileInput(Call& call, std::size_t i) {
  if (IsInterval(call.type(i))) {
    return {};
  }
  FLEUVE_TRY(call.ToNumeric(i));
  return call.Cast(i, DataType::Double());
}

DataType PercentileType(const DataType& input, bool many) {
  DataType one = input.Is(TypeKind::kDayTimeInterval)     ? DataType::DayTimeInterval(0, 3)
                 : input.Is(TypeKind::kYearMonthInterval) ? DataType::YearMonthInterval(0, 1)
                                                          : DataType::Double();
  return many ? DataType::Array(one, false) : one;
}

/// Children: value, frequency, percentages (array literal), flags. Flag 1: reversed order; 2: discrete.
Result<ExprPtr> FinishPercentile(Call& call, ExprPtr frequency, const std::vector<double>& percentages, bool many,
                                 std::int64_t flags, std::string display) {
  DataType input = call.type(0);
  call.args = {call.args[0], std::move(frequency), DoubleArray(percentages),
               MakeLiteral(Value(flags), DataType::Int())};
  ExprPtr made = call.Aggregate("spark_percentile", PercentileType(input, many), true, std::move(display));
  auto copy = std::make_shared<Expr>(*made);
  copy->order_by.clear();
  return copy;
}

Result<ExprPtr> BuildPercentile(Call& call) {
  bool many = false;
  FLEUVE_ASSIGN(std::vector<double> percentages, Percentages(call, 1, &many));
  std::string display = call.name + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0] + ", " +
                        call.shown[1] + ", " + (call.size() == 3 ? call.shown[2] : "1") + ")";
  FLEUVE_TRY(ToPercentileInput(call, 0));
  ExprPtr frequency = MakeLiteral(Value(std::int64_t{1}), DataType::Long());
  if (call.size() == 3) {
    if (!call.type(2).IsIntegral()) {
      return call.Unexpected(2, "INTEGRAL");
    }
    FLEUVE_TRY(call.Cast(2, DataType::Long()));
    frequency = call.args[2];
  }
  return FinishPercentile(call, frequency, percentages, many, 0, display);
}

Result<ExprPtr> BuildMedian(Call& call) {
  std::string display = call.name + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0] + ")";
  FLEUVE_TRY(ToPercentileInput(call, 0));
  return FinishPercentile(call, MakeLiteral(Value(std::int64_t{1}), DataType::Long()), {0.5}, false, 0, display);
}

/// percentile_cont(p) WITHIN GROUP (ORDER BY x [DESC]).
Result<ExprPtr> BuildPercentileWithin(Call& call) {
  if (call.source.within_group.size() != 1) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_WITHIN_GROUP_EXPRESSION.WITHIN_GROUP_MISSING",
                 "Invalid function `" + call.name + "` with WITHIN GROUP. WITHIN GROUP is required for the function.");
  }
  bool many = false;
  FLEUVE_ASSIGN(std::vector<double> percentages, Percentages(call, 0, &many));
  const SortKey key = call.source.within_group[0];
  std::string display = call.name + "(" + call.shown[0] + ") WITHIN GROUP (ORDER BY " + key.expr->display +
                        (key.ascending ? ")" : " DESC)");
  call.args = {key.expr};
  call.shown = {key.expr->display};
  FLEUVE_TRY(ToPercentileInput(call, 0));
  std::int64_t flags = (key.ascending ? 0 : 1) + (call.name == "percentile_disc" ? 2 : 0);
  return FinishPercentile(call, MakeLiteral(Value(std::int64_t{1}), DataType::Long()), percentages, many, flags,
                          display);
}

Result<ExprPtr> BuildApproxPercentile(Call& call) {
  bool many = false;
  FLEUVE_ASSIGN(std::vector<double> percentages, Percentages(call, 1, &many));
  std::int64_t accuracy = 10000;
  std::string shown_accuracy = "10000";
  if (call.size() == 3) {
    const Value* literal = call.LiteralOf(2);
    if (literal == nullptr || !call.type(2).IsIntegral()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `accuracy` should be a foldable \"INTEGRAL\" expression.");
    }
    accuracy = literal->is_null() ? 0 : literal->integer();
    shown_accuracy = call.shown[2];
    if (accuracy <= 0 || accuracy > 2147483647) {
      return call.Mismatch("VALUE_OUT_OF_RANGE",
                           "The `accuracy` must be between (0, 2147483647] (current value = " + shown_accuracy + ").");
    }
  }
  std::string display = call.name + "(" + (call.source.distinct ? "DISTINCT " : "") + call.shown[0] + ", " +
                        call.shown[1] + ", " + shown_accuracy + ")";
  const DataType type = call.type(0);
  if (!type.IsNumeric() && !type.IsDateTime() && !IsInterval(type)) {
    FLEUVE_TRY(call.ToNumeric(0));
  }
  DataType one = call.type(0);
  call.args = {call.args[0], DoubleArray(percentages), MakeLiteral(Value(accuracy), DataType::Long())};
  return call.Aggregate("spark_approx_percentile", many ? DataType::Array(one, false) : one, true, display);
}

Result<ExprPtr> BuildRegression(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Double()));
  FLEUVE_TRY(call.To(1, DataType::Double()));
  bool count = call.name == "regr_count";
  return call.Aggregate("spark_" + call.name, count ? DataType::Long() : DataType::Double(), !count);
}

}  // namespace

const Table& StatisticFunctions() {
  static const Table table = {
      Agg("stddev", 1, 1, [](Call& c) { return Moments(c, "spark_stddev_samp"); }),
      Agg("std", 1, 1, [](Call& c) { return Moments(c, "spark_stddev_samp"); }),
      Agg("stddev_samp", 1, 1, [](Call& c) { return Moments(c, "spark_stddev_samp"); }),
      Agg("stddev_pop", 1, 1, [](Call& c) { return Moments(c, "spark_stddev_pop"); }),
      Agg("variance", 1, 1, [](Call& c) { return Moments(c, "spark_var_samp"); }),
      Agg("var_samp", 1, 1, [](Call& c) { return Moments(c, "spark_var_samp"); }),
      Agg("var_pop", 1, 1, [](Call& c) { return Moments(c, "spark_var_pop"); }),
      Agg("skewness", 1, 1, [](Call& c) { return Moments(c, "spark_skewness"); }),
      Agg("kurtosis", 1, 1, [](Call& c) { return Moments(c, "spark_kurtosis"); }),
      Agg("corr", 2, 2, [](Call& c) { return Pairs(c, "spark_corr"); }),
      Agg("covar_pop", 2, 2, [](Call& c) { return Pairs(c, "spark_covar_pop"); }),
      Agg("covar_samp", 2, 2, [](Call& c) { return Pairs(c, "spark_covar_samp"); }),
      Agg("regr_count", 2, 2, BuildRegression),
      Agg("regr_avgx", 2, 2, BuildRegression),
      Agg("regr_avgy", 2, 2, BuildRegression),
      Agg("regr_sxx", 2, 2, BuildRegression),
      Agg("regr_syy", 2, 2, BuildRegression),
      Agg("regr_sxy", 2, 2, BuildRegression),
      Agg("regr_slope", 2, 2, BuildRegression),
      Agg("regr_intercept", 2, 2, BuildRegression),
      Agg("regr_r2", 2, 2, BuildRegression),
      Agg("percentile", 2, 3, BuildPercentile),
      Agg("median", 1, 1, BuildMedian),
      Agg("percentile_cont", 1, 1, BuildPercentileWithin),
      Agg("percentile_disc", 1, 1, BuildPercentileWithin),
      Agg("percentile_approx", 2, 3, BuildApproxPercentile),
      Agg("approx_percentile", 2, 3, BuildApproxPercentile),
  };
  return table;
}

}  // namespace fleuve::plan::functions
