#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

using types::TypeKind;

duckdb::unique_ptr<AggregateData> MakeAggregateData(const AggregateSite& site) {
  auto data = duckdb::make_uniq<AggregateData>();
  data->mode = ModeOf(site.expr);
  data->result = site.expr.type;
  data->ignore_nulls = site.expr.ignore_nulls;
  data->context = site.expr.context;
  data->key = site.expr.function + "|" + site.expr.type.SimpleString() + (data->ignore_nulls ? "|1" : "|0");
  for (const plan::ExprPtr& child : site.expr.children) {
    data->types.push_back(child->type);
    data->literals.push_back(child->kind == plan::ExprKind::kLiteral ? child->value : types::Value());
    data->key += "|" + child->type.SimpleString();
  }
  if (!data->types.empty()) {
    data->input = data->types[0];
  }
  return data;
}

int CompareValues(const duckdb::Value& a, const duckdb::Value& b) {
  if (a.IsNull() || b.IsNull()) {
    return a.IsNull() == b.IsNull() ? 0 : a.IsNull() ? -1 : 1;
  }
  switch (a.type().id()) {
    case duckdb::LogicalTypeId::FLOAT:
      return Compare(a.GetValue<float>(), b.GetValue<float>());
    case duckdb::LogicalTypeId::DOUBLE:
      return Compare(a.GetValue<double>(), b.GetValue<double>());
    case duckdb::LogicalTypeId::VARCHAR:
    case duckdb::LogicalTypeId::BLOB: {
      int order = duckdb::StringValue::Get(a).compare(duckdb::StringValue::Get(b));
      return order < 0 ? -1 : order > 0 ? 1 : 0;
    }
    case duckdb::LogicalTypeId::LIST:
    case duckdb::LogicalTypeId::MAP: {
      const auto& x = duckdb::ListValue::GetChildren(a);
      const auto& y = duckdb::ListValue::GetChildren(b);
      for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
        if (int order = CompareValues(x[i], y[i]); order != 0) {
          return order;
        }
      }
      return x.size() < y.size() ? -1 : x.size() > y.size() ? 1 : 0;
    }
    case duckdb::LogicalTypeId::STRUCT: {
      const auto& x = duckdb::StructValue::GetChildren(a);
      const auto& y = duckdb::StructValue::GetChildren(b);
      for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
        if (int order = CompareValues(x[i], y[i]); order != 0) {
          return order;
        }
      }
      return 0;
    }
    default:
      return a < b ? -1 : b < a ? 1 : 0;
  }
}

namespace {

/// Any carrier type: a plain C++ value, or a DuckDB value for nested types.
template <typename T>
typename Kept<T>::Type ReadAs(const Inputs& inputs, std::size_t i, duckdb::idx_t row) {
  if constexpr (std::is_same_v<T, duckdb::Value>) {
    return inputs.Value(i, row);
  } else if constexpr (std::is_same_v<T, Int128>) {
    return ToHugeint(inputs[i].Get<T>(row));
  } else {
    return typename Kept<T>::Type(inputs[i].Get<T>(row));
  }
}

template <typename T>
int Order(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, duckdb::Value>) {
    return CompareValues(a, b);
  } else if constexpr (std::is_same_v<T, std::string>) {
    return a.compare(b);
  } else {
    return Compare(a, b);
  }
}

template <typename T>
void Write(duckdb::Vector& result, duckdb::idx_t row, const typename Kept<T>::Type& value) {
  if constexpr (std::is_same_v<T, duckdb::Value>) {
    result.SetValue(row, value);
  } else if constexpr (std::is_same_v<T, Str>) {
    FinishValue<Str>(result, row, Str(value));
  } else if constexpr (std::is_same_v<T, Int128>) {
    FinishValue<T>(result, row, ToInt128(value));
  } else {
    FinishValue<T>(result, row, value);
  }
}

template <typename T, bool kMax>
struct Extreme {
  struct State {
    typename Kept<T>::Type value{};
    bool set = false;
    auto Fields() { return std::tie(value, set); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (inputs[0].IsNull(row)) {
      return;
    }
    if constexpr (std::is_same_v<T, Str>) {
      Str value = inputs[0].Get<Str>(row);
      if (!state.set || (kMax ? value > Str(state.value) : value < Str(state.value))) {
        state.value = std::string(value);
        state.set = true;
      }
    } else {
      auto value = ReadAs<T>(inputs, 0, row);
      if (!state.set || (kMax ? Order(value, state.value) > 0 : Order(value, state.value) < 0)) {
        state.value = value;
        state.set = true;
      }
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.set && (!into.set || (kMax ? Order(from.value, into.value) > 0 : Order(from.value, into.value) < 0))) {
      into = from;
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (!state.set) {
      FinishNull(result, row);
    } else {
      Write<T>(result, row, state.value);
    }
  }
};

/// max_by: the first of the largest keys; NULL keys do not count, NULL values do.
template <typename K, bool kMax>
struct ExtremeBy {
  struct State {
    typename Kept<K>::Type key{};
    duckdb::Value value;
    bool set = false;
    auto Fields() { return std::tie(key, value, set); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (inputs[1].IsNull(row)) {
      return;
    }
    auto key = ReadAs<K>(inputs, 1, row);
    // Spark keeps the later row of two equal keys.
    if (!state.set || (kMax ? Order(key, state.key) >= 0 : Order(key, state.key) <= 0)) {
      state.key = key;
      state.value = inputs.Value(0, row);
      state.set = true;
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.set && (!into.set || (kMax ? Order(from.key, into.key) >= 0 : Order(from.key, into.key) <= 0))) {
      into = from;
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (!state.set || state.value.IsNull()) {
      FinishNull(result, row);
    } else {
      result.SetValue(row, state.value);
    }
  }
};

template <typename T, bool kLast>
struct Edge {
  struct State {
    typename Kept<T>::Type value{};
    bool set = false;
    bool null = true;
    auto Fields() { return std::tie(value, set, null); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData& data) {
    if (!kLast && state.set) {
      return;
    }
    bool null = inputs[0].IsNull(row);
    if (null && data.ignore_nulls) {
      return;
    }
    state.set = true;
    state.null = null;
    if (!null) {
      state.value = ReadAs<T>(inputs, 0, row);
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.set && (kLast || !into.set)) {
      into = from;
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (state.null) {
      FinishNull(result, row);
    } else {
      Write<T>(result, row, state.value);
    }
  }
};

template <bool kMax>
Result<AggregateImplementation> MakeExtreme(const AggregateSite& site) {
  std::optional<Result<AggregateImplementation>> made;
  if (!WithCarrier(site.expr.type,
                   [&](auto zero) { made = RowAggregate<Extreme<decltype(zero), kMax>>::Make(site); })) {
    made = RowAggregate<Extreme<duckdb::Value, kMax>>::Make(site);
  }
  return *std::move(made);
}

template <bool kMax>
Result<AggregateImplementation> MakeExtremeBy(const AggregateSite& site) {
  std::optional<Result<AggregateImplementation>> made;
  if (!WithCarrier(site.ArgumentType(1),
                   [&](auto zero) { made = RowAggregate<ExtremeBy<decltype(zero), kMax>>::Make(site); })) {
    made = RowAggregate<ExtremeBy<duckdb::Value, kMax>>::Make(site);
  }
  return *std::move(made);
}

template <bool kLast>
Result<AggregateImplementation> MakeEdge(const AggregateSite& site) {
  std::optional<Result<AggregateImplementation>> made;
  if (!WithCarrier(site.expr.type, [&](auto zero) { made = RowAggregate<Edge<decltype(zero), kLast>>::Make(site); })) {
    made = RowAggregate<Edge<duckdb::Value, kLast>>::Make(site);
  }
  return *std::move(made);
}

}  // namespace

const AggregateTable& OrderAggregates() {
  static const AggregateTable table = {
      {"spark_min", MakeExtreme<false>},     {"spark_max", MakeExtreme<true>}, {"spark_min_by", MakeExtremeBy<false>},
      {"spark_max_by", MakeExtremeBy<true>}, {"spark_first", MakeEdge<false>}, {"spark_last", MakeEdge<true>},
  };
  return table;
}

}  // namespace fleuve::engine
