#include <limits>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/wide_internal.h"

namespace fleuve::engine {

using plan::CastMode;
using types::TypeKind;

namespace {

[[noreturn]] void FailOverflow(const AggregateData& data, const char* what, const char* hint) {
  std::string alternative = std::string(" Use '") + hint + "' to tolerate overflow and return NULL instead.";
  Error error = Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
                      std::string(what) + " overflow." + alternative +
                          " If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error.")
                    .With("message", std::string(what) + " overflow")
                    .With("alternative", alternative)
                    .With("config", "\"spark.sql.ansi.enabled\"");
  if (data.context) {
    error = std::move(error).At(*data.context);
  }
  ThrowRowError(std::move(error));
}

struct WholeState {
  duckdb::hugeint_t packed{0};  // 128 bits, aligned to eight bytes as states are
  std::int64_t count = 0;
  bool overflow = false;
  auto Fields() { return std::tie(packed, count, overflow); }
};

void AddWhole(WholeState& state, Int128 value, std::int64_t count) {
  Int128 sum = 0;
  state.overflow = __builtin_add_overflow(ToInt128(state.packed), value, &sum) || state.overflow;
  state.packed = ToHugeint(sum);
  state.count += count;
}

/// Sums of integers, intervals and decimals, in 128 bits.
template <typename T>
struct WholeSum {
  using State = WholeState;
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      AddWhole(state, Int128{inputs[0].Get<T>(row)}, 1);
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    AddWhole(into, ToInt128(from.packed), from.count);
    into.overflow = into.overflow || from.overflow;
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    if (state.count == 0) {
      FinishNull(result, row);
      return;
    }
    const Int128 sum = ToInt128(state.packed);
    if (data.result.Is(TypeKind::kDecimal)) {
      int precision = data.result.precision();
      Int128 bound = PowerOfTen(precision);
      if (state.overflow || sum >= bound || sum <= -bound) {
        if (data.mode == CastMode::kAnsi) {
          ThrowRowError(DecimalOverflow(sum, data.result.scale(), precision, data.result.scale()));
        }
        FinishNull(result, row);
        return;
      }
      StoreDecimal(result, row, sum, precision);
      return;
    }
    bool months = data.result.Is(TypeKind::kYearMonthInterval);
    Int128 most = months ? Int128{std::numeric_limits<std::int32_t>::max()} : std::numeric_limits<std::int64_t>::max();
    Int128 least = months ? Int128{std::numeric_limits<std::int32_t>::min()} : std::numeric_limits<std::int64_t>::min();
    if (state.overflow || sum > most || sum < least) {
      if (data.mode == CastMode::kAnsi) {
        FailOverflow(data, data.result.Is(TypeKind::kLong) ? "long" : "interval", "try_sum");
      }
      if (data.mode == CastMode::kTry) {
        FinishNull(result, row);
        return;
      }
    }
    if (months) {
      FinishValue<std::int32_t>(result, row, static_cast<std::int32_t>(sum));
    } else {
      FinishValue<std::int64_t>(result, row, static_cast<std::int64_t>(sum));
    }
  }
};

/// Means of intervals and decimals.
template <typename T>
struct WholeMean : WholeSum<T> {
  using State = WholeState;
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    if (state.count == 0) {
      FinishNull(result, row);
      return;
    }
    const Int128 sum = ToInt128(state.packed);
    int shift = 0;
    if (data.result.Is(TypeKind::kDecimal)) {
      shift = data.result.scale() - data.input.scale();
    }
    bool negative = sum < 0;
    auto magnitude = static_cast<unsigned __int128>(negative ? -sum : sum);
    Wide mean = Wide::DivideRounded(Wide::Product(magnitude, static_cast<unsigned __int128>(PowerOfTen(shift))),
                                    Wide::Of(static_cast<unsigned __int128>(state.count)));
    Int128 value = static_cast<Int128>(mean.low);
    bool fits = !state.overflow && mean.high == 0 && value >= 0;
    value = negative ? -value : value;
    if (data.result.Is(TypeKind::kDecimal)) {
      Int128 bound = PowerOfTen(data.result.precision());
      if (!fits || value >= bound || value <= -bound) {
        if (data.mode == CastMode::kAnsi) {
          ThrowRowError(DecimalOverflow(sum, data.input.scale(), data.result.precision(), data.result.scale()));
        }
        FinishNull(result, row);
        return;
      }
      StoreDecimal(result, row, value, data.result.precision());
    } else if (data.result.Is(TypeKind::kYearMonthInterval)) {
      FinishValue<std::int32_t>(result, row, static_cast<std::int32_t>(value));
    } else {
      FinishValue<std::int64_t>(result, row, static_cast<std::int64_t>(value));
    }
  }
};

struct RealState {
  double sum = 0;
  std::int64_t count = 0;
  auto Fields() { return std::tie(sum, count); }
};

struct RealSum {
  using State = RealState;
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      state.sum += inputs[0].Get<double>(row);
      ++state.count;
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    into.sum += from.sum;
    into.count += from.count;
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (state.count == 0) {
      FinishNull(result, row);
    } else {
      FinishValue<double>(result, row, state.sum);
    }
  }
};

struct RealMean : RealSum {
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (state.count == 0) {
      FinishNull(result, row);
    } else {
      FinishValue<double>(result, row, state.sum / static_cast<double>(state.count));
    }
  }
};

struct Product {
  struct State {
    double value = 1;
    bool set = false;
    auto Fields() { return std::tie(value, set); }
  };
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      state.value *= inputs[0].Get<double>(row);
      state.set = true;
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.set) {
      into.value *= from.value;
      into.set = true;
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (!state.set) {
      FinishNull(result, row);
    } else {
      FinishValue<double>(result, row, state.value);
    }
  }
};

template <template <typename> class Whole, typename Real>
Result<AggregateImplementation> MakeTotal(const AggregateSite& site) {
  const types::DataType& input = site.ArgumentType(0);
  switch (input.kind()) {
    case TypeKind::kDouble:
      return RowAggregate<Real>::Make(site);
    case TypeKind::kLong:
    case TypeKind::kDayTimeInterval:
      return RowAggregate<Whole<std::int64_t>>::Make(site);
    case TypeKind::kYearMonthInterval:
      return RowAggregate<Whole<std::int32_t>>::Make(site);
    case TypeKind::kDecimal: {
      std::optional<Result<AggregateImplementation>> made;
      WithDecimalCarrier(input.precision(), [&](auto zero) { made = RowAggregate<Whole<decltype(zero)>>::Make(site); });
      return *std::move(made);
    }
    default:
      return Error::Internal("no sum of " + input.Sql());
  }
}

enum class Bits { kAnd, kOr, kXor };

template <typename T, Bits kOp>
struct BitFold {
  struct State {
    T value = kOp == Bits::kAnd ? static_cast<T>(-1) : T{0};
    bool set = false;
    auto Fields() { return std::tie(value, set); }
  };
  static void Fold(State& state, T value) {
    if constexpr (kOp == Bits::kAnd) {
      state.value = static_cast<T>(state.value & value);
    } else if constexpr (kOp == Bits::kOr) {
      state.value = static_cast<T>(state.value | value);
    } else {
      state.value = static_cast<T>(state.value ^ value);
    }
    state.set = true;
  }
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      Fold(state, inputs[0].Get<T>(row));
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (from.set) {
      Fold(into, from.value);
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    if (!state.set) {
      FinishNull(result, row);
    } else {
      FinishValue<T>(result, row, state.value);
    }
  }
};

template <Bits kOp>
Result<AggregateImplementation> MakeBits(const AggregateSite& site) {
  switch (site.expr.type.kind()) {
    case TypeKind::kByte:
      return RowAggregate<BitFold<std::int8_t, kOp>>::Make(site);
    case TypeKind::kShort:
      return RowAggregate<BitFold<std::int16_t, kOp>>::Make(site);
    case TypeKind::kInt:
      return RowAggregate<BitFold<std::int32_t, kOp>>::Make(site);
    default:
      return RowAggregate<BitFold<std::int64_t, kOp>>::Make(site);
  }
}

Result<AggregateImplementation> MakeProduct(const AggregateSite& site) { return RowAggregate<Product>::Make(site); }

}  // namespace

const AggregateTable& SumAggregates() {
  static const AggregateTable table = {
      {"spark_sum", MakeTotal<WholeSum, RealSum>},
      {"spark_avg", MakeTotal<WholeMean, RealMean>},
      {"spark_product", MakeProduct},
      {"spark_bit_and_agg", MakeBits<Bits::kAnd>},
      {"spark_bit_or_agg", MakeBits<Bits::kOr>},
      {"spark_bit_xor_agg", MakeBits<Bits::kXor>},
  };
  return table;
}

}  // namespace fleuve::engine
