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

template <template <typename> class Policy, bool kElement>
Result<AggregateImplementation> MakeCollect(const AggregateSite& site) {
  std::optional<AggregateImplementation> made;
  const types::DataType& type = site.ArgumentType(0);
  if (!WithCarrier(type, [&](auto zero) { made = RowAggregate<Policy<decltype(zero)>>::Make(site); })) {
    made = RowAggregate<Policy<duckdb::Value>>::Make(site);
  }
  return *std::move(made);
}

Result<AggregateImplementation> MakeListAgg(const AggregateSite& site) { return RowAggregate<ListAgg>::Make(site); }

}  // namespace

const AggregateTable& CollectAggregates() {
  static const AggregateTable table = {
      {"spark_collect_list", MakeCollect<CollectList, true>},
      {"spark_collect_set", MakeCollect<CollectSet, true>},
      {"spark_mode", MakeCollect<Mode, false>},
      {"spark_listagg", MakeListAgg},
  };
  return table;
}

}  // namespace fleuve::engine
