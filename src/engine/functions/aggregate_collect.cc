#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using types::TypeKind;

/// Adds a value to a list vector's child.
template <typename T>
void PutElement(duckdb::Vector& child, duckdb::idx_t at, const typename Kept<T>::Type& value) {
  if constexpr (std::is_same_v<T, duckdb::Value>) {
    child.SetValue(at, value);
  } else if constexpr (std::is_same_v<T, Int128>) {
    duckdb::FlatVector::GetData<duckdb::hugeint_t>(child)[at] = value;
  } else {
    duckdb::FlatVector::GetData<typename Physical<T>::Type>(child)[at] = Physical<T>::Write(child, T(value));
  }
}

template <typename T>
typename Kept<T>::Type TakeValue(const Inputs& inputs, std::size_t i, duckdb::idx_t row) {
  if constexpr (std::is_same_v<T, duckdb::Value>) {
    return inputs.Value(i, row);
  } else if constexpr (std::is_same_v<T, Int128>) {
    return ToHugeint(inputs[i].Get<T>(row));
  } else {
    return typename Kept<T>::Type(inputs[i].Get<T>(row));
  }
}

template <typename V>
bool SameValue(const V& a, const V& b) {
  if constexpr (std::is_same_v<V, duckdb::Value>) {
    return CompareValues(a, b) == 0;
  } else {
    return Compare(a, b) == 0;
  }
}

template <typename V>
bool LessValue(const V& a, const V& b) {
  if constexpr (std::is_same_v<V, duckdb::Value>) {
    return CompareValues(a, b) < 0;
  } else {
    return Compare(a, b) < 0;
  }
}

template <typename V>
struct Less {
  bool operator()(const V& a, const V& b) const { return LessValue(a, b); }
};

template <typename T, typename Values>
void FinishList(duckdb::Vector& result, duckdb::idx_t row, const Values& values) {
  duckdb::idx_t start = duckdb::ListVector::GetListSize(result);
  duckdb::ListVector::Reserve(result, start + values.size());
  auto& child = duckdb::ListVector::GetEntry(result);
  duckdb::idx_t at = start;
  for (const auto& value : values) {
    PutElement<T>(child, at++, value);
  }
  duckdb::ListVector::SetListSize(result, at);
  duckdb::FlatVector::GetData<duckdb::list_entry_t>(result)[row] = duckdb::list_entry_t(start, at - start);
}

template <typename T>
struct CollectList {
  struct State {
    // vector<bool> has no references: booleans are kept as bytes.
    std::vector<std::conditional_t<std::is_same_v<T, bool>, char, typename Kept<T>::Type>> values;
    auto Fields() { return std::tie(values); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      state.values.push_back(TakeValue<T>(inputs, 0, row));
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    into.values.insert(into.values.end(), from.values.begin(), from.values.end());
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    FinishList<T>(result, row, state.values);
  }
};

/// The first of equal values stays, in the order in which they came.
template <typename T>
struct CollectSet {
  using V = std::conditional_t<std::is_same_v<T, bool>, char, typename Kept<T>::Type>;
  struct State {
    std::vector<V> values;
    std::set<V, Less<V>> seen;
    /// `Merge` reads the values of its first argument only.
    auto Fields() { return std::tie(values); }
  };
  static void Add(State& state, const V& value) {
    if (state.seen.insert(value).second) {
      state.values.push_back(value);
    }
  }
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      Add(state, TakeValue<T>(inputs, 0, row));
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    for (const V& value : from.values) {
      Add(into, value);
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    FinishList<T>(result, row, state.values);
  }
};

/// mode(value, kind): kind 1 takes the smallest of the most frequent, 2 the largest, 0 any.
template <typename T>
struct Mode {
  using V = typename Kept<T>::Type;
  struct State {
    std::map<V, std::int64_t, Less<V>> counts;
    auto Fields() { return std::tie(counts); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      ++state.counts[TakeValue<T>(inputs, 0, row)];
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    for (const auto& [value, count] : from.counts) {
      into.counts[value] += count;
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    const V* best = nullptr;
    std::int64_t most = 0;
    bool largest = data.literals[1].integer() == 2;
    for (const auto& [value, count] : state.counts) {
      if (best == nullptr || count > most || (largest && count == most)) {
        best = &value;
        most = count;
      }
    }
    if (best == nullptr) {
      FinishNull(result, row);
    } else {
      PutElement<T>(result, row, *best);
    }
  }
};

/// listagg(value, delimiter)
struct ListAgg {
  struct State {
    std::string text;
    bool set = false;
    auto Fields() { return std::tie(text, set); }
  };
  static void Append(State& state, Str part, const AggregateData& data) {
    if (state.set) {
      state.text += data.literals[1].text();
    }
    state.set = true;
    state.text += part;
  }
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData& data) {
    if (!inputs[0].IsNull(row)) {
      Append(state, inputs[0].Get<Str>(row), data);
    }
  }
  static void Merge(const State& from, State& into, const AggregateData& data) {
    if (from.set) {
      Append(into, from.text, data);
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (!state.set) {
      FinishNull(result, row);
    } else {
      FinishValue<Str>(result, row, state.text);
    }
  }
};

/// histogram_numeric(value, bins): bins are merged where they lie closest, as Hive's histogram does.
struct Histogram {
  struct State {
    std::vector<std::pair<double, double>> bins;
    auto Fields() { return std::tie(bins); }
  };
  static void Trim(State& state, std::size_t most) {
    while (state.bins.size() > most) {
      std::size_t best = 0;
      for (std::size_t i = 0; i + 1 < state.bins.size(); ++i) {
        if (state.bins[i + 1].first - state.bins[i].first < state.bins[best + 1].first - state.bins[best].first) {
          best = i;
        }
      }
      auto& left = state.bins[best];
      const auto& right = state.bins[best + 1];
      double weight = left.second + right.second;
      left.first = (left.first * left.second + right.first * right.second) / weight;
      left.second = weight;
      state.bins.erase(state.bins.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
  }
  static void Add(State& state, double x, double weight, std::size_t most) {
    auto at = std::lower_bound(state.bins.begin(), state.bins.end(), x,
                               [](const auto& bin, double value) { return bin.first < value; });
    if (at != state.bins.end() && at->first == x) {
      at->second += weight;
      return;
    }
    state.bins.insert(at, {x, weight});
    Trim(state, most);
  }
  static std::size_t Most(const AggregateData& data) { return static_cast<std::size_t>(data.literals[1].integer()); }
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData& data) {
    if (inputs[0].IsNull(row)) {
      return;
    }
    double x = 0;
    WithCarrier(data.input, [&](auto zero) {
      using T = decltype(zero);
      if constexpr (!std::is_same_v<T, Str>) {
        x = static_cast<double>(inputs[0].Get<T>(row));
      }
    });
    if (data.input.Is(TypeKind::kDecimal)) {
      x /= static_cast<double>(PowerOfTen(data.input.scale()));
    }
    Add(state, x, 1, Most(data));
  }
  static void Merge(const State& from, State& into, const AggregateData& data) {
    for (const auto& [x, weight] : from.bins) {
      Add(into, x, weight, Most(data));
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    if (state.bins.empty()) {
      FinishNull(result, row);
      return;
    }
    duckdb::idx_t start = duckdb::ListVector::GetListSize(result);
    duckdb::ListVector::Reserve(result, start + state.bins.size());
    auto& parts = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
    duckdb::idx_t at = start;
    for (const auto& [x, weight] : state.bins) {
      double value = x;
      duckdb::FlatVector::GetData<double>(*parts[1])[at] = weight;
      WithCarrier(data.input, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_same_v<T, Str> || std::is_same_v<T, bool>) {
        } else if constexpr (std::is_same_v<T, Int128>) {
          double unit = static_cast<double>(PowerOfTen(data.input.scale()));
          duckdb::FlatVector::GetData<duckdb::hugeint_t>(*parts[0])[at] = ToHugeint(static_cast<Int128>(value * unit));
        } else {
          double unit = data.input.Is(TypeKind::kDecimal) ? static_cast<double>(PowerOfTen(data.input.scale())) : 1;
          duckdb::FlatVector::GetData<T>(*parts[0])[at] = static_cast<T>(value * unit);
        }
      });
      ++at;
    }
    duckdb::ListVector::SetListSize(result, at);
    duckdb::FlatVector::GetData<duckdb::list_entry_t>(result)[row] = duckdb::list_entry_t(start, at - start);
  }
};

template <template <typename> class Policy, bool kElement>
Result<AggregateImplementation> MakeCollect(const AggregateSite& site) {
  std::optional<Result<AggregateImplementation>> made;
  const types::DataType& type = site.ArgumentType(0);
  if (!WithCarrier(type, [&](auto zero) { made = RowAggregate<Policy<decltype(zero)>>::Make(site); })) {
    made = RowAggregate<Policy<duckdb::Value>>::Make(site);
  }
  return *std::move(made);
}

Result<AggregateImplementation> MakeHistogram(const AggregateSite& site) { return RowAggregate<Histogram>::Make(site); }
Result<AggregateImplementation> MakeListAgg(const AggregateSite& site) { return RowAggregate<ListAgg>::Make(site); }

}  // namespace

const AggregateTable& CollectAggregates() {
  static const AggregateTable table = {
      {"spark_collect_list", MakeCollect<CollectList, true>},
      {"spark_collect_set", MakeCollect<CollectSet, true>},
      {"spark_mode", MakeCollect<Mode, false>},
      {"spark_listagg", MakeListAgg},
      {"spark_histogram_numeric", MakeHistogram},
  };
  return table;
}

}  // namespace fleuve::engine
