#include <algorithm>
#include <cmath>
#include <map>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"

// Variance and its kin, correlation, regression, percentiles. The sums are kept as Spark keeps them,
// so that the last digits agree.

namespace fleuve::engine {

namespace {

using types::TypeKind;

enum class Moment { kStddevPop, kStddevSamp, kVarPop, kVarSamp, kSkewness, kKurtosis };

struct MomentState {
  double n = 0;
  double average = 0;
  double m2 = 0;
  double m3 = 0;
  double m4 = 0;
  auto Fields() { return std::tie(n, average, m2, m3, m4); }
};

template <Moment kMoment>
struct Moments {
  using State = MomentState;
  static void Step(State& s, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (inputs[0].IsNull(row)) {
      return;
    }
    const double value = inputs[0].Get<double>(row);
    s.n += 1;
    const double delta = value - s.average;
    const double delta_n = delta / s.n;
    s.average += delta_n;
    s.m2 += delta * (delta - delta_n);
    const double delta2 = delta * delta;
    const double delta_n2 = delta_n * delta_n;
    s.m3 += -3 * delta_n * s.m2 + delta * (delta2 - delta_n2);
    s.m4 += -4 * delta_n * s.m3 - 6 * delta_n2 * s.m2 + delta * (delta * delta2 - delta_n * delta_n2);
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.n == 0) {
      return;
    }
    if (into.n == 0) {
      into = from;
      return;
    }
    const double n1 = into.n;
    const double n2 = from.n;
    const double n = n1 + n2;
    const double delta = from.average - into.average;
    const double delta_n = delta / n;
    const double m2 = into.m2 + from.m2 + delta * delta_n * n1 * n2;
    const double m3 = into.m3 + from.m3 + delta_n * delta_n * delta * n1 * n2 * (n1 - n2) +
                      3 * delta_n * (n1 * from.m2 - n2 * into.m2);
    const double m4 =
        into.m4 + from.m4 + delta_n * delta_n * delta_n * delta * n1 * n2 * (n1 * n1 - n1 * n2 + n2 * n2) +
        6 * delta_n * delta_n * (n1 * n1 * from.m2 + n2 * n2 * into.m2) + 4 * delta_n * (n1 * from.m3 - n2 * into.m3);
    into = State{n, into.average + delta_n * n2, m2, m3, m4};
  }
  static void Finish(State& s, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    const bool sample = kMoment == Moment::kStddevSamp || kMoment == Moment::kVarSamp;
    const bool shape = kMoment == Moment::kSkewness || kMoment == Moment::kKurtosis;
    if (s.n == 0 || (sample && s.n == 1) || (shape && s.m2 == 0)) {
      FinishNull(result, row);
      return;
    }
    double value = 0;
    switch (kMoment) {
      case Moment::kStddevPop:
        value = std::sqrt(s.m2 / s.n);
        break;
      case Moment::kStddevSamp:
        value = std::sqrt(s.m2 / (s.n - 1));
        break;
      case Moment::kVarPop:
        value = s.m2 / s.n;
        break;
      case Moment::kVarSamp:
        value = s.m2 / (s.n - 1);
        break;
      case Moment::kSkewness:
        value = std::sqrt(s.n) * s.m3 / std::sqrt(s.m2 * s.m2 * s.m2);
        break;
      case Moment::kKurtosis:
        value = s.n * s.m4 / (s.m2 * s.m2) - 3.0;
        break;
    }
    FinishValue<double>(result, row, value);
  }
};

enum class Pair {
  kCovarPop,
  kCovarSamp,
  kCorr,
  kCount,
  kAvgX,
  kAvgY,
  kSxx,
  kSyy,
  kSxy,
  kSlope,
  kIntercept,
  kR2,
};

struct PairState {
  double n = 0;
  double x_average = 0;
  double y_average = 0;
  double ck = 0;
  double x_mk = 0;
  double y_mk = 0;
  auto Fields() { return std::tie(n, x_average, y_average, ck, x_mk, y_mk); }
};

/// Functions of two columns. The regression functions take y first.
template <Pair kPair>
struct Pairs {
  using State = PairState;
  // regr_sxy and regr_r2 fold their arguments in the order in which they are written.
  static constexpr bool kYFirst = kPair >= Pair::kCount && kPair != Pair::kSxy && kPair != Pair::kR2;
  static constexpr bool kAverage = kPair == Pair::kAvgX || kPair == Pair::kAvgY;
  static void Step(State& s, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (inputs[0].IsNull(row) || inputs[1].IsNull(row)) {
      return;
    }
    const double x = inputs[kYFirst ? 1 : 0].Get<double>(row);
    const double y = inputs[kYFirst ? 0 : 1].Get<double>(row);
    s.n += 1;
    if constexpr (kAverage) {
      s.ck += kPair == Pair::kAvgX ? x : y;
      return;
    }
    const double dx = x - s.x_average;
    const double dy = y - s.y_average;
    if constexpr (kPair == Pair::kSxx || kPair == Pair::kSyy || kPair == Pair::kSlope || kPair == Pair::kIntercept) {
      // The second moment of one column, as the variance has it.
      s.x_mk += dx * (dx - dx / s.n);
      s.y_mk += dy * (dy - dy / s.n);
      s.x_average += dx / s.n;
      s.y_average += dy / s.n;
      s.ck += dx * (y - s.y_average);
      return;
    }
    s.x_average += dx / s.n;
    s.y_average += dy / s.n;
    s.ck += dx * (y - s.y_average);
    s.x_mk += dx * (x - s.x_average);
    s.y_mk += dy * (y - s.y_average);
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.n == 0) {
      return;
    }
    if (into.n == 0) {
      into = from;
      return;
    }
    const double n1 = into.n;
    const double n2 = from.n;
    const double n = n1 + n2;
    const double dx = from.x_average - into.x_average;
    const double dx_n = dx / n;
    const double dy = from.y_average - into.y_average;
    const double dy_n = dy / n;
    into.ck = into.ck + from.ck + (kAverage ? 0 : dx * dy_n * n1 * n2);
    into.x_mk = into.x_mk + from.x_mk + dx * dx_n * n1 * n2;
    into.y_mk = into.y_mk + from.y_mk + dy * dy_n * n1 * n2;
    into.x_average += dx_n * n2;
    into.y_average += dy_n * n2;
    into.n = n;
  }
  static void Finish(State& s, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if constexpr (kPair == Pair::kCount) {
      FinishValue<std::int64_t>(result, row, static_cast<std::int64_t>(s.n));
      return;
    }
    const bool no_slope =
        ((kPair == Pair::kSlope || kPair == Pair::kIntercept) && s.x_mk == 0) || (kPair == Pair::kR2 && s.x_mk == 0);
    if (s.n == 0 || no_slope || ((kPair == Pair::kCovarSamp || kPair == Pair::kCorr) && s.n == 1) ||
        (kPair == Pair::kCorr && s.x_mk * s.y_mk == 0)) {
      FinishNull(result, row);
      return;
    }
    double value = 0;
    switch (kPair) {
      case Pair::kCovarPop:
        value = s.ck / s.n;
        break;
      case Pair::kCovarSamp:
        value = s.ck / (s.n - 1);
        break;
      case Pair::kCorr:
        value = s.ck / std::sqrt(s.x_mk * s.y_mk);
        break;
      case Pair::kAvgX:
        value = s.ck / s.n;
        break;
      case Pair::kAvgY:
        value = s.ck / s.n;
        break;
      case Pair::kSxx:
        value = s.x_mk;
        break;
      case Pair::kSyy:
        value = s.y_mk;
        break;
      case Pair::kSxy:
        value = s.ck;
        break;
      case Pair::kSlope:
        value = s.ck / s.x_mk;
        break;
      case Pair::kIntercept:
        value = s.y_average - s.ck / s.x_mk * s.x_average;
        break;
      case Pair::kR2:
        value = s.ck / std::sqrt(s.x_mk * s.y_mk);
        value = s.y_mk == 0 ? 1.0 : value * value;
        break;
      default:
        break;
    }
    FinishValue<double>(result, row, value);
  }
};

/// Puts doubles where the result wants them: a double, an interval, or an array of those.
void FinishDoubles(const std::vector<double>& values, const types::DataType& type, duckdb::Vector& result,
                   duckdb::idx_t row) {
  const auto put = [](duckdb::Vector& vector, duckdb::idx_t at, double value, const types::DataType& one) {
    if (one.Is(TypeKind::kDayTimeInterval)) {
      duckdb::FlatVector::GetData<std::int64_t>(vector)[at] = static_cast<std::int64_t>(value);
    } else if (one.Is(TypeKind::kYearMonthInterval)) {
      duckdb::FlatVector::GetData<std::int32_t>(vector)[at] = static_cast<std::int32_t>(value);
    } else {
      duckdb::FlatVector::GetData<double>(vector)[at] = value;
    }
  };
  if (!type.Is(TypeKind::kArray)) {
    put(result, row, values[0], type);
    return;
  }
  const duckdb::idx_t offset = duckdb::ListVector::GetListSize(result);
  duckdb::ListVector::Reserve(result, offset + values.size());
  auto& child = duckdb::ListVector::GetEntry(result);
  for (std::size_t i = 0; i < values.size(); ++i) {
    put(child, offset + i, values[i], type.element());
  }
  duckdb::FlatVector::GetData<duckdb::list_entry_t>(result)[row] = duckdb::list_entry_t(offset, values.size());
  duckdb::ListVector::SetListSize(result, offset + values.size());
}

struct DoubleLess {
  bool operator()(double a, double b) const { return Compare(a, b) < 0; }
};

/// percentile(value, frequency, percentages, flags): exact. Flag 1: order reversed; 2: no interpolation.
template <typename T>
struct Percentile {
  struct State {
    std::map<double, std::int64_t, DoubleLess> counts;
    auto Fields() { return std::tie(counts); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData& data) {
    if (inputs[0].IsNull(row) || inputs[1].IsNull(row)) {
      return;
    }
    const std::int64_t frequency = inputs[1].Get<std::int64_t>(row);
    if (frequency < 0) {
      Error error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3105",
                  "Negative values found in " + std::to_string(frequency) + ".");
      ThrowRowError(data.context ? std::move(error).At(*data.context) : std::move(error));
    }
    if (frequency > 0) {
      state.counts[static_cast<double>(inputs[0].Get<T>(row))] += frequency;
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    for (const auto& [value, count] : from.counts) {
      into.counts[value] += count;
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    if (state.counts.empty()) {
      FinishNull(result, row);
      return;
    }
    const std::int64_t flags = data.literals[3].integer();
    std::vector<std::pair<double, std::int64_t>> counts(state.counts.begin(), state.counts.end());
    if ((flags & 1) != 0) {
      std::reverse(counts.begin(), counts.end());
    }
    std::int64_t total = 0;
    for (auto& [value, count] : counts) {
      total += count;
      count = total;
    }
    const auto value_at = [&](std::int64_t position) {
      return std::lower_bound(counts.begin(), counts.end(), position + 1,
                              [](const auto& entry, std::int64_t wanted) { return entry.second < wanted; })
          ->first;
    };
    std::vector<double> values;
    for (const types::Value& percentage : data.literals[2].list()) {
      const double p = percentage.real();
      if ((flags & 2) != 0) {
        values.push_back(value_at(
            std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(p * static_cast<double>(total))), 1) - 1));
        continue;
      }
      const double position = static_cast<double>(total - 1) * p;
      const auto lower = static_cast<std::int64_t>(std::floor(position));
      const auto higher = static_cast<std::int64_t>(std::ceil(position));
      const double low = value_at(lower);
      const double high = value_at(higher);
      values.push_back(lower == higher || low == high ? low
                                                      : (static_cast<double>(higher) - position) * low +
                                                            (position - static_cast<double>(lower)) * high);
    }
    FinishDoubles(values, data.result, result, row);
  }
};

/// approx_percentile(value, percentages, accuracy): keeps all values, so the error is none.
template <typename T>
struct ApproxPercentile {
  struct State {
    std::vector<typename Kept<T>::Type> values;
    auto Fields() { return std::tie(values); }
  };
  static T Unpack(const typename Kept<T>::Type& value) {
    if constexpr (std::is_same_v<T, Int128>) {
      return ToInt128(value);
    } else {
      return T(value);
    }
  }
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      if constexpr (std::is_same_v<T, Int128>) {
        state.values.push_back(ToHugeint(inputs[0].Get<T>(row)));
      } else {
        state.values.push_back(typename Kept<T>::Type(inputs[0].Get<T>(row)));
      }
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    into.values.insert(into.values.end(), from.values.begin(), from.values.end());
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    if (state.values.empty()) {
      FinishNull(result, row);
      return;
    }
    std::sort(state.values.begin(), state.values.end(),
              [](const auto& a, const auto& b) { return Compare(Unpack(a), Unpack(b)) < 0; });
    const auto at = [&](double p) {
      const double rank = std::ceil(p * static_cast<double>(state.values.size()));
      return Unpack(state.values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]);
    };
    const types::Value::List& percentages = data.literals[1].list();
    if (!data.result.Is(TypeKind::kArray)) {
      FinishValue<T>(result, row, at(percentages[0].real()));
      return;
    }
    const duckdb::idx_t offset = duckdb::ListVector::GetListSize(result);
    duckdb::ListVector::Reserve(result, offset + percentages.size());
    auto& child = duckdb::ListVector::GetEntry(result);
    for (std::size_t i = 0; i < percentages.size(); ++i) {
      FinishValue<T>(child, offset + i, at(percentages[i].real()));
    }
    duckdb::FlatVector::GetData<duckdb::list_entry_t>(result)[row] = duckdb::list_entry_t(offset, percentages.size());
    duckdb::ListVector::SetListSize(result, offset + percentages.size());
  }
};

template <Moment kMoment>
Result<AggregateImplementation> MakeMoment(const AggregateSite& site) {
  return RowAggregate<Moments<kMoment>>::Make(site);
}

template <Pair kPair>
Result<AggregateImplementation> MakePair(const AggregateSite& site) {
  return RowAggregate<Pairs<kPair>>::Make(site);
}

Result<AggregateImplementation> MakePercentile(const AggregateSite& site) {
  switch (site.ArgumentType(0).kind()) {
    case TypeKind::kDayTimeInterval:
      return RowAggregate<Percentile<std::int64_t>>::Make(site);
    case TypeKind::kYearMonthInterval:
      return RowAggregate<Percentile<std::int32_t>>::Make(site);
    default:
      return RowAggregate<Percentile<double>>::Make(site);
  }
}

Result<AggregateImplementation> MakeApproxPercentile(const AggregateSite& site) {
  Result<AggregateImplementation> made = Error::Unsupported("approx_percentile of " + site.ArgumentType(0).Sql());
  WithCarrier(site.ArgumentType(0), [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, Str> && !std::is_same_v<T, bool>) {
      made = RowAggregate<ApproxPercentile<T>>::Make(site);
    }
  });
  return made;
}

}  // namespace

const AggregateTable& StatisticAggregates() {
  static const AggregateTable table = {
      {"spark_stddev_pop", MakeMoment<Moment::kStddevPop>},
      {"spark_stddev_samp", MakeMoment<Moment::kStddevSamp>},
      {"spark_var_pop", MakeMoment<Moment::kVarPop>},
      {"spark_var_samp", MakeMoment<Moment::kVarSamp>},
      {"spark_skewness", MakeMoment<Moment::kSkewness>},
      {"spark_kurtosis", MakeMoment<Moment::kKurtosis>},
      {"spark_covar_pop", MakePair<Pair::kCovarPop>},
      {"spark_covar_samp", MakePair<Pair::kCovarSamp>},
      {"spark_corr", MakePair<Pair::kCorr>},
      {"spark_regr_count", MakePair<Pair::kCount>},
      {"spark_regr_avgx", MakePair<Pair::kAvgX>},
      {"spark_regr_avgy", MakePair<Pair::kAvgY>},
      {"spark_regr_sxx", MakePair<Pair::kSxx>},
      {"spark_regr_syy", MakePair<Pair::kSyy>},
      {"spark_regr_sxy", MakePair<Pair::kSxy>},
      {"spark_regr_slope", MakePair<Pair::kSlope>},
      {"spark_regr_intercept", MakePair<Pair::kIntercept>},
      {"spark_regr_r2", MakePair<Pair::kR2>},
      {"spark_percentile", MakePercentile},
      {"spark_approx_percentile", MakeApproxPercentile},
  };
  return table;
}

}  // namespace fleuve::engine
