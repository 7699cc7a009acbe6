#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"

// approx_count_distinct: HyperLogLog++ over Spark's 64-bit hashes, with Spark's choice of estimator, so that the
// estimates are the same numbers.

namespace fleuve::engine {

namespace {

#include "engine/functions/hyperloglog_bias.inc"

constexpr int kLeastPrecision = 4;
constexpr int kMostCorrectedPrecision = 18;

/// Ranks of the registers, 2^precision of them. A group of few values holds them as a list.
struct Registers {
  /// Register in the upper 24 bits, rank in the lower 8; in no order, each register once.
  std::vector<std::uint32_t> few;
  /// A byte per register once there are many; `few` is empty then.
  std::string all;
  auto Fields() { return std::tie(few, all); }

  void Raise(std::uint32_t at, std::uint8_t rank, int precision) {
    if (!all.empty()) {
      char& held = all[at];
      held = static_cast<char>(std::max(static_cast<std::uint8_t>(held), rank));
      return;
    }
    for (std::uint32_t& entry : few) {
      if (entry >> 8 == at) {
        entry = std::max(entry, at << 8 | rank);
        return;
      }
    }
    if (few.size() < kFewMost) {
      few.push_back(at << 8 | rank);
      return;
    }
    all.assign(std::size_t{1} << precision, '\0');
    for (const std::uint32_t entry : few) {
      all[entry >> 8] = static_cast<char>(entry & 0xFF);
    }
    few = {};
    Raise(at, rank, precision);
  }

 private:
  static constexpr std::size_t kFewMost = 24;
};

/// The mean bias of the six measured points that lie around the estimate.
double Bias(double estimate, int precision) {
  constexpr int kNeighbours = 6;
  const int begin = kPointsBegin[precision - kLeastPrecision];
  const int end = kPointsBegin[precision - kLeastPrecision + 1];
  const auto distance = [&](int i) { return std::abs(estimate - kRawEstimates[i]); };
  // The points of 5 and 6 bits are not quite in order: what a search finds there depends on its steps.
  int nearest = 0;
  for (int last = end - begin - 1; nearest <= last;) {
    const int middle = (nearest + last) / 2;
    if (kRawEstimates[begin + middle] < estimate) {
      nearest = middle + 1;
    } else if (kRawEstimates[begin + middle] > estimate) {
      last = middle - 1;
    } else {
      nearest = middle;
      break;
    }
  }
  nearest += begin;
  int low = std::max(nearest - kNeighbours + 1, begin);
  int high = std::min(low + kNeighbours, end);
  while (high < end && distance(high) < distance(low)) {
    ++low;
    ++high;
  }
  double sum = 0;
  for (int i = low; i < high; ++i) {
    sum += kBiases[i];
  }
  return sum / (high - low);
}

/// \param inverse  sum of 2^-rank over all registers. \param zeros  registers of rank 0.
std::int64_t Estimate(double inverse, double zeros, int precision) {
  const double m = static_cast<double>(std::int64_t{1} << precision);
  const double alpha = precision == 4   ? 0.673
                       : precision == 5 ? 0.697
                       : precision == 6 ? 0.709
                                        : 0.7213 / (1.0 + 1.079 / m);
  const double raw = alpha * m * m / inverse;
  const bool measured = precision <= kMostCorrectedPrecision;
  const double corrected = measured && raw < 5 * m ? raw - Bias(raw, precision) : raw;
  if (zeros > 0) {
    const double linear = m * std::log(m / zeros);
    if ((measured && linear <= kLinearBelow[precision - kLeastPrecision]) || raw <= 2.5 * m) {
      return static_cast<std::int64_t>(std::floor(linear + 0.5));
    }
  }
  return static_cast<std::int64_t>(std::floor(corrected + 0.5));
}

/// hyperloglog(hash, precision): hashes that are NULL do not count.
struct HyperLogLog {
  using State = Registers;

  static int Precision(const AggregateData& data) { return static_cast<int>(data.literals[1].integer()); }

  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData& data) {
    if (inputs[0].IsNull(row)) {
      return;
    }
    const int precision = Precision(data);
    const auto hash = static_cast<std::uint64_t>(inputs[0].Get<std::int64_t>(row));
    const auto at = static_cast<std::uint32_t>(hash >> (64 - precision));
    // The bit below the rest of the hash ends the count of zeros.
    const std::uint64_t rest = hash << precision | std::uint64_t{1} << (precision - 1);
    state.Raise(at, static_cast<std::uint8_t>(std::countl_zero(rest) + 1), precision);
  }
  static void Merge(const State& from, State& into, const AggregateData& data) {
    const int precision = Precision(data);
    for (const std::uint32_t entry : from.few) {
      into.Raise(entry >> 8, static_cast<std::uint8_t>(entry), precision);
    }
    for (std::size_t i = 0; i < from.all.size(); ++i) {
      if (from.all[i] != '\0') {
        into.Raise(static_cast<std::uint32_t>(i), static_cast<std::uint8_t>(from.all[i]), precision);
      }
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData& data) {
    const int precision = Precision(data);
    double inverse = 0;
    std::int64_t held = 0;
    const auto add = [&](std::uint8_t rank) {
      inverse += std::ldexp(1.0, -rank);
      held += rank != 0;
    };
    for (const std::uint32_t entry : state.few) {
      add(static_cast<std::uint8_t>(entry));
    }
    for (const char rank : state.all) {
      add(static_cast<std::uint8_t>(rank));
    }
    const std::int64_t zeros = (std::int64_t{1} << precision) - held;
    if (state.all.empty()) {
      inverse += static_cast<double>(zeros);
    }
    FinishValue<std::int64_t>(result, row, Estimate(inverse, static_cast<double>(zeros), precision));
  }
};

Result<AggregateImplementation> MakeHyperLogLog(const AggregateSite& site) {
  return RowAggregate<HyperLogLog>::Make(site);
}

}  // namespace

const AggregateTable& SketchAggregates() {
  static const AggregateTable table = {{"spark_hyperloglog", MakeHyperLogLog}};
  return table;
}

}  // namespace fleuve::engine
