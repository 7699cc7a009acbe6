#pragma once

/// \file
/// Aggregates written row by row: a policy class with a State becomes a DuckDB aggregate function.
///
///   struct Policy {
///     struct State { ... };                                  // default constructed, destroyed
///     using Reader = ...;                                    // Reader(Vector inputs[], idx_t count, const
///     AggregateData&) static void Step(State&, const Reader&, idx_t row, const AggregateData&); static void
///     Merge(const State& from, State& into, const AggregateData&); static void Finish(State&, duckdb::Vector& result,
///     idx_t row, const AggregateData&);  // result is flat
///   };

#include <new>

#include "engine/functions/aggregate_states_internal.h"
#include "engine/functions/rows_internal.h"

namespace fleuve::engine {

/// What an aggregate knows of its call.
struct AggregateData : public duckdb::FunctionData {
  plan::CastMode mode = plan::CastMode::kAnsi;
  types::DataType input;
  types::DataType result;
  bool ignore_nulls = false;
  std::vector<types::Value> literals;  ///< of the children; NULL where one is no literal
  std::vector<types::DataType> types;  ///< of the children
  std::shared_ptr<const QueryContext> context;
  std::string key;

  duckdb::unique_ptr<duckdb::FunctionData> Copy() const override { return duckdb::make_uniq<AggregateData>(*this); }
  bool Equals(const duckdb::FunctionData& other) const override { return key == other.Cast<AggregateData>().key; }
};

duckdb::unique_ptr<AggregateData> MakeAggregateData(const AggregateSite& site);

/// The columns of a step.
class Inputs {
 public:
  Inputs(duckdb::Vector inputs[], duckdb::idx_t columns, duckdb::idx_t count) {
    columns_.reserve(columns);
    for (duckdb::idx_t i = 0; i < columns; ++i) {
      columns_.emplace_back(inputs[i], count);
      vectors_.push_back(&inputs[i]);
    }
  }
  const Column& operator[](std::size_t i) const { return columns_[i]; }
  duckdb::Value Value(std::size_t i, duckdb::idx_t row) const { return vectors_[i]->GetValue(row); }

 private:
  std::vector<Column> columns_;
  std::vector<duckdb::Vector*> vectors_;
};

template <typename P>
struct RowAggregate {
  using State = typename P::State;

  static duckdb::idx_t Size(const duckdb::AggregateFunction&) { return sizeof(State); }
  static void Initialize(const duckdb::AggregateFunction&, duckdb::data_ptr_t state) { new (state) State(); }
  static const AggregateData& Data(duckdb::AggregateInputData& input) { return input.bind_data->Cast<AggregateData>(); }
  static void Update(duckdb::Vector inputs[], duckdb::AggregateInputData& input, duckdb::idx_t columns,
                     duckdb::Vector& states, duckdb::idx_t count) {
    Inputs reader(inputs, columns, count);
    const AggregateData& data = Data(input);
    duckdb::UnifiedVectorFormat format;
    states.ToUnifiedFormat(count, format);
    auto* pointers = duckdb::UnifiedVectorFormat::GetData<State*>(format);
    for (duckdb::idx_t row = 0; row < count; ++row) {
      P::Step(*pointers[format.sel->get_index(row)], reader, row, data);
    }
  }
  static void SimpleUpdate(duckdb::Vector inputs[], duckdb::AggregateInputData& input, duckdb::idx_t columns,
                           duckdb::data_ptr_t state, duckdb::idx_t count) {
    Inputs reader(inputs, columns, count);
    const AggregateData& data = Data(input);
    State& target = *reinterpret_cast<State*>(state);
    for (duckdb::idx_t row = 0; row < count; ++row) {
      P::Step(target, reader, row, data);
    }
  }
  static void Combine(duckdb::Vector& source, duckdb::Vector& target, duckdb::AggregateInputData& input,
                      duckdb::idx_t count) {
    const AggregateData& data = Data(input);
    duckdb::UnifiedVectorFormat from;
    source.ToUnifiedFormat(count, from);
    auto* sources = duckdb::UnifiedVectorFormat::GetData<State*>(from);
    auto* targets = duckdb::FlatVector::GetData<State*>(target);
    for (duckdb::idx_t row = 0; row < count; ++row) {
      P::Merge(*sources[from.sel->get_index(row)], *targets[row], data);
    }
  }
  static void Finalize(duckdb::Vector& states, duckdb::AggregateInputData& input, duckdb::Vector& result,
                       duckdb::idx_t count, duckdb::idx_t offset) {
    const AggregateData& data = Data(input);
    duckdb::UnifiedVectorFormat format;
    states.ToUnifiedFormat(count, format);
    auto* pointers = duckdb::UnifiedVectorFormat::GetData<State*>(format);
    bool constant = states.GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    duckdb::idx_t rows = constant ? 1 : count;
    for (duckdb::idx_t row = 0; row < rows; ++row) {
      P::Finish(*pointers[format.sel->get_index(row)], result, row + (constant ? 0 : offset), data);
    }
    if (constant) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
    }
  }
  static void Destroy(duckdb::Vector& states, duckdb::AggregateInputData&, duckdb::idx_t count) {
    auto* pointers = duckdb::FlatVector::GetData<State*>(states);
    for (duckdb::idx_t row = 0; row < count; ++row) {
      pointers[row]->~State();
    }
  }

  static AggregateImplementation Plain(const AggregateSite& site) {
    duckdb::vector<duckdb::LogicalType> arguments(site.arguments.begin(), site.arguments.end());
    constexpr bool kTrivial = std::is_trivially_destructible_v<State>;
    duckdb::AggregateFunction function(site.expr.function, arguments, site.result, Size, Initialize, Update, Combine,
                                       Finalize, duckdb::FunctionNullHandling::SPECIAL_HANDLING, SimpleUpdate, nullptr,
                                       kTrivial ? nullptr : Destroy);
    return AggregateImplementation{std::move(function), MakeAggregateData(site)};
  }
  /// The form that `site` asks for.
  static Result<AggregateImplementation> Make(const AggregateSite& site);
};

inline void FinishNull(duckdb::Vector& result, duckdb::idx_t row) { duckdb::FlatVector::SetNull(result, row, true); }
template <typename T>
void FinishValue(duckdb::Vector& result, duckdb::idx_t row, T value) {
  duckdb::FlatVector::GetData<typename Physical<T>::Type>(result)[row] = Physical<T>::Write(result, value);
}

/// A policy whose result is its state.
template <typename P>
struct PartialForm : P {
  static void Finish(typename P::State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    FinishValue<Str>(result, row, WriteState(state));
  }
};

/// A policy whose input are states.
template <typename P>
struct FinalForm : P {
  static void Step(typename P::State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData& data) {
    if (!inputs[0].IsNull(row)) {
      P::Merge(ReadState<typename P::State>(inputs[0].Get<Str>(row)), state, data);
    }
  }
};

template <typename P>
Result<AggregateImplementation> RowAggregate<P>::Make(const AggregateSite& site) {
  if constexpr (KeptState<State>) {
    AggregateSite whole = site;
    whole.form = AggregateForm::kWhole;
    switch (site.form) {
      case AggregateForm::kWhole:
        break;
      case AggregateForm::kPartial:
        return RowAggregate<PartialForm<P>>::Plain(whole);
      case AggregateForm::kMerge:
        return RowAggregate<PartialForm<FinalForm<P>>>::Plain(whole);
      case AggregateForm::kFinal:
        return RowAggregate<FinalForm<P>>::Plain(whole);
    }
  } else if (site.form != AggregateForm::kWhole) {
    return Error::Unsupported("the aggregate function " + site.expr.function + " over a stream");
  }
  return Plain(site);
}

/// Spark's order of values: NULL first, NaN last among numbers, text by bytes, nested values part by part.
/// Negative, zero, positive.
int CompareValues(const duckdb::Value& a, const duckdb::Value& b);

/// Calls `f` with a value of the C++ type that carries `type`; false where the type is nested (use values there).
template <typename F>
bool WithCarrier(const types::DataType& type, F f) {
  using types::TypeKind;
  switch (type.kind()) {
    case TypeKind::kBoolean:
      f(bool{});
      return true;
    case TypeKind::kByte:
      f(std::int8_t{});
      return true;
    case TypeKind::kShort:
      f(std::int16_t{});
      return true;
    case TypeKind::kVoid:
    case TypeKind::kInt:
    case TypeKind::kDate:
    case TypeKind::kYearMonthInterval:
      f(std::int32_t{});
      return true;
    case TypeKind::kLong:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
    case TypeKind::kDayTimeInterval:
      f(std::int64_t{});
      return true;
    case TypeKind::kFloat:
      f(float{});
      return true;
    case TypeKind::kDouble:
      f(double{});
      return true;
    case TypeKind::kDecimal:
      WithDecimalCarrier(type.precision(), f);
      return true;
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      f(Str{});
      return true;
    default:
      return false;
  }
}

/// How a state keeps a value. States are aligned to eight bytes only, so no 128-bit integer may lie in one as such.
template <typename T>
struct Kept {
  using Type = T;
};
template <>
struct Kept<Int128> {
  using Type = duckdb::hugeint_t;
};
template <>
struct Kept<Str> {
  using Type = std::string;
};

template <typename T>
int Compare(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    bool nan_a = a != a;
    bool nan_b = b != b;
    if (nan_a || nan_b) {
      return nan_a == nan_b ? 0 : nan_a ? 1 : -1;
    }
  }
  return a < b ? -1 : b < a ? 1 : 0;
}

}  // namespace fleuve::engine
