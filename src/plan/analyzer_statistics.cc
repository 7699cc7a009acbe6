#include <algorithm>
#include <charconv>
#include <set>

#include "plan/analyzer_internal.h"
#include "plan/proto_types.h"

namespace fleuve::plan {

using types::DataType;
using types::TypeKind;

Result<PlanPtr> Analyzer::Describe(const PlanPtr& input, std::vector<std::string> columns,
                                   std::vector<std::string> statistics, bool all_columns) {
  if (statistics.empty()) {
    statistics = {"count", "mean", "stddev", "min", "25%", "50%", "75%", "max"};
  }
  std::vector<std::optional<double>> fractions;
  for (const std::string& statistic : statistics) {
    static const std::set<std::string> kKnown = {"count", "count_distinct", "approx_count_distinct", "mean",
                                                 "stddev", "min", "max"};
    fractions.emplace_back();
    if (statistic.ends_with("%")) {
      double percent = 0;
      const char* end = statistic.data() + statistic.size() - 1;
      const auto parsed = std::from_chars(statistic.data(), end, percent);
      if (parsed.ec != std::errc() || parsed.ptr != end || percent < 0 || percent > 100) {
        return Error(ErrorKind::kInvalidArgument, "UNRECOGNIZED_STATISTIC",
                     "Unable to parse " + statistic + " as a percentile.")
            .Family(ErrorFamily::kIllegalArgument)
            .With("stats", statistic);
      }
      fractions.back() = percent / 100;
    } else if (!kKnown.contains(statistic)) {
      return Error(ErrorKind::kInvalidArgument, "UNRECOGNIZED_STATISTIC",
                   "The statistic " + statistic +
                       " is not recognized. Valid statistics include `count`, `count_distinct`, "
                       "`approx_count_distinct`, `mean`, `stddev`, `min`, `max`, and percentile values.")
          .Family(ErrorFamily::kIllegalArgument)
          .With("stats", statistic);
    }
  }
  std::vector<Attribute> described;
  if (all_columns) {
    for (const Attribute& attribute : input->output) {
      if (!attribute.hidden) {
        described.push_back(attribute);
      }
    }
  } else {
    google::protobuf::RepeatedPtrField<std::string> names;
    for (const std::string& name : columns) {
      *names.Add() = name;
    }
    FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, names));
    for (const std::size_t i : positions) {
      described.push_back(input->output[i]);
    }
  }
  std::erase_if(described, [](const Attribute& attribute) {
    return !attribute.type.IsNumeric() && !attribute.type.IsString();
  });
  std::vector<SelectItem> items;
  for (std::size_t s = 0; s < statistics.size(); ++s) {
    for (const Attribute& attribute : described) {
      const ExprPtr column = AttributeExpr(attribute);
      ExprPtr number = column;
      if (attribute.type.IsString()) {
        FLEUVE_ASSIGN(number, MakeCast(column, DataType::Double(), CastMode::kTry, config_));
      }
      ExprPtr value;
      if (fractions[s]) {
        FLEUVE_ASSIGN(value, Call("percentile_approx",
                                  {number, MakeLiteral(types::Value(*fractions[s]), DataType::Double())}));
      } else if (statistics[s] == "count_distinct") {
        FunctionCall call;
        call.name = "count";
        call.arguments = {column};
        call.argument_names.resize(1);
        call.distinct = true;
        call.config = &config_;
        FLEUVE_ASSIGN(value, BuildFunction(call));
      } else if (statistics[s] == "mean" || statistics[s] == "stddev") {
        FLEUVE_ASSIGN(value, Call(statistics[s] == "mean" ? "avg" : "stddev", {number}));
      } else {
        FLEUVE_ASSIGN(value, Call(statistics[s], {column}));
      }
      SelectItem item;
      FLEUVE_ASSIGN(item.expr, MakeCast(value, DataType::String(), config_));
      item.name = attribute.name;
      item.is_alias = true;
      items.push_back(std::move(item));
    }
  }
  FLEUVE_ASSIGN(PlanPtr aggregated, MakeAggregate(input, AggregateParts(), std::move(items)));
  const std::vector<Attribute> cells = WithoutHidden(aggregated)->output;
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kExpand;
  plan->is_streaming = input->is_streaming;
  const auto add = [&plan](const std::string& name) {
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = name;
    attribute.type = DataType::String();
    plan->output.push_back(std::move(attribute));
  };
  add("summary");
  for (const Attribute& attribute : described) {
    add(attribute.name);
  }
  for (std::size_t s = 0; s < statistics.size(); ++s) {
    std::vector<ExprPtr> row;
    row.push_back(MakeLiteral(types::Value(statistics[s]), DataType::String()));
    for (std::size_t c = 0; c < described.size(); ++c) {
      row.push_back(AttributeExpr(cells[s * described.size() + c]));
    }
    plan->projections.push_back(std::move(row));
  }
  plan->children.push_back(std::move(aggregated));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::Covariance(const PlanPtr& input, const std::string& a, const std::string& b,
                                     bool correlation) {
  google::protobuf::RepeatedPtrField<std::string> names;
  *names.Add() = a;
  *names.Add() = b;
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, names));
  std::vector<ExprPtr> columns;
  for (const std::size_t i : positions) {
    const Attribute& attribute = input->output[i];
    if (!attribute.type.IsNumeric()) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                   std::string("requirement failed: Currently ") + (correlation ? "correlation" : "covariance") +
                       " calculation for columns with dataType " + attribute.type.SimpleString() + " not supported.")
          .Family(ErrorFamily::kIllegalArgument);
    }
    FLEUVE_ASSIGN(ExprPtr column, MakeCast(AttributeExpr(attribute), DataType::Double(), config_));
    columns.push_back(std::move(column));
  }
  SelectItem item;
  FLEUVE_ASSIGN(item.expr, Call(correlation ? "corr" : "covar_samp", std::move(columns)));
  item.name = correlation ? "corr" : "cov";
  item.is_alias = true;
  std::vector<SelectItem> items;
  items.push_back(std::move(item));
  return MakeAggregate(input, AggregateParts(), std::move(items));
}

Result<PlanPtr> Analyzer::ApproxQuantile(const sc::StatApproxQuantile& quantile) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(quantile.input()));
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, quantile.cols()));
  if (quantile.relative_error() < 0) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                 "requirement failed: Relative Error must be non-negative but got " +
                     std::to_string(quantile.relative_error()))
        .Family(ErrorFamily::kIllegalArgument);
  }
  std::vector<ExprPtr> probabilities;
  for (const double probability : quantile.probabilities()) {
    probabilities.push_back(MakeLiteral(types::Value(probability), DataType::Double()));
  }
  types::Value::List values;
  for (const double probability : quantile.probabilities()) {
    values.push_back(types::Value(probability));
  }
  const ExprPtr wanted = MakeLiteral(types::Value(std::move(values)), DataType::Array(DataType::Double(), false));
  const int accuracy = quantile.relative_error() <= 1e-6 ? 1000000 : static_cast<int>(1 / quantile.relative_error());
  std::vector<ExprPtr> results;
  for (const std::size_t i : positions) {
    FLEUVE_ASSIGN(ExprPtr column, MakeCast(AttributeExpr(input->output[i]), DataType::Double(), config_));
    FLEUVE_ASSIGN(column, Call("nanvl", {column, MakeNull(DataType::Double())}));
    FLEUVE_ASSIGN(ExprPtr value, Call("percentile_approx",
                                      {column, wanted, MakeLiteral(types::Value(std::max(accuracy, 1)),
                                                                   DataType::Int())}));
    const ExprPtr none =
        MakeLiteral(types::Value(types::Value::List()), DataType::Array(DataType::Double(), false));
    FLEUVE_ASSIGN(value, Call("coalesce", {value, none}));
    results.push_back(std::move(value));
  }
  SelectItem item;
  FLEUVE_ASSIGN(item.expr, Call("array", std::move(results)));
  item.name = "approx_quantile";
  item.is_alias = true;
  std::vector<SelectItem> items;
  items.push_back(std::move(item));
  return MakeAggregate(std::move(input), AggregateParts(), std::move(items));
}

Result<PlanPtr> Analyzer::SampleBy(const sc::StatSampleBy& sample) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(sample.input()));
  const Scope scope = ScopeOf(input);
  FLEUVE_ASSIGN(ExprPtr column, Expression(sample.col(), scope));
  std::vector<ExprPtr> branches;
  for (const auto& fraction : sample.fractions()) {
    if (fraction.fraction() < 0 || fraction.fraction() > 1) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                   "requirement failed: Fractions must be in [0, 1].")
          .Family(ErrorFamily::kIllegalArgument);
    }
    FLEUVE_ASSIGN(ExprPtr stratum, LiteralFromProto(fraction.stratum()));
    FLEUVE_ASSIGN(ExprPtr equal, Call("<=>", {column, stratum}));
    branches.push_back(std::move(equal));
    branches.push_back(MakeLiteral(types::Value(fraction.fraction()), DataType::Double()));
  }
  ExprPtr limit = MakeLiteral(types::Value(0.0), DataType::Double());
  if (!branches.empty()) {
    branches.push_back(limit);
    limit = MakeCase(std::move(branches), true, DataType::Double());
  }
  std::vector<ExprPtr> seed;
  if (sample.has_seed()) {
    seed.push_back(MakeLiteral(types::Value(static_cast<std::int64_t>(sample.seed())), DataType::Long()));
  }
  FLEUVE_ASSIGN(ExprPtr random, Call("rand", std::move(seed)));
  FLEUVE_ASSIGN(ExprPtr condition, Call("<", {random, limit}));
  return MakeFilter(std::move(input), std::move(condition));
}

}  // namespace fleuve::plan
