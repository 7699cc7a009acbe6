#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

// Bitmaps of 4,096 bytes for counts of distinct integers: a number is a bit of one bucket.

namespace fleuve::engine {

namespace {

constexpr std::size_t kBitmapBytes = 4096;
constexpr std::int64_t kBitmapBits = 8 * kBitmapBytes;

Result<Kernel> MakeBitPosition(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>([](std::int64_t value) {
    // The magnitude of the least integer fits no integer, but is a multiple of the size.
    return value > 0 ? (value - 1) % kBitmapBits : -(value % kBitmapBits);
  });
}
Result<Kernel> MakeBucketNumber(const ScalarSite&) {
  return MapRows<std::int64_t, std::int64_t>(
      [](std::int64_t value) { return value > 0 ? 1 + (value - 1) / kBitmapBits : value / kBitmapBits; });
}
Result<Kernel> MakeCount(const ScalarSite&) {
  return MapRows<std::int64_t, Str>([](Str bitmap) {
    std::int64_t bits = 0;
    for (const char byte : bitmap) {
      bits += std::popcount(static_cast<unsigned char>(byte));
    }
    return bits;
  });
}

/// Empty until the first value came.
struct Bitmap {
  std::string bytes;
  auto Fields() { return std::tie(bytes); }
};

/// Combines bitmaps. \tparam Combine  has kEmpty, each byte where no value came, and Apply(bytes, bitmap).
template <typename Combine>
struct BitmapAggregate {
  using State = Bitmap;

  static std::string& Bytes(State& state) {
    if (state.bytes.empty()) {
      state.bytes.assign(kBitmapBytes, Combine::kEmpty);
    }
    return state.bytes;
  }
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (!inputs[0].IsNull(row)) {
      Combine::Apply(Bytes(state), inputs[0].Get<Str>(row));
    }
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    if (!from.bytes.empty()) {
      Combine::Apply(Bytes(into), from.bytes);
    }
  }
  static void Finish(State& state, duckdb::Vector& result, duckdb::idx_t row, const AggregateData&) {
    FinishValue<Str>(result, row, Bytes(state));
  }
};

struct Or {
  static constexpr char kEmpty = '\0';
  static void Apply(std::string& bytes, Str bitmap) {
    for (std::size_t i = 0; i < std::min(bitmap.size(), kBitmapBytes); ++i) {
      bytes[i] = static_cast<char>(bytes[i] | bitmap[i]);
    }
  }
};

struct And {
  static constexpr char kEmpty = '\xFF';
  /// Bytes that a shorter bitmap lacks are zero.
  static void Apply(std::string& bytes, Str bitmap) {
    for (std::size_t i = 0; i < kBitmapBytes; ++i) {
      bytes[i] = i < bitmap.size() ? static_cast<char>(bytes[i] & bitmap[i]) : '\0';
    }
  }
};

/// Sets the bits at the positions.
struct ConstructBitmap : BitmapAggregate<Or> {
  static void Step(State& state, const Inputs& inputs, duckdb::idx_t row, const AggregateData&) {
    if (inputs[0].IsNull(row)) {
      return;
    }
    const std::int64_t position = inputs[0].Get<std::int64_t>(row);
    if (position < 0 || position >= kBitmapBits) {
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_BITMAP_POSITION",
                          "The 0-indexed bitmap position " + std::to_string(position) +
                              " is out of bounds. The bitmap has " + std::to_string(kBitmapBits) + " bits (" +
                              std::to_string(kBitmapBytes) + " bytes).")
                        .With("bitPosition", std::to_string(position))
                        .With("bitmapNumBytes", std::to_string(kBitmapBytes))
                        .With("bitmapNumBits", std::to_string(kBitmapBits)));
    }
    char& byte = Bytes(state)[static_cast<std::size_t>(position / 8)];
    byte = static_cast<char>(byte | 1 << position % 8);
  }
};

template <typename Policy>
Result<AggregateImplementation> MakeBitmap(const AggregateSite& site) {
  return RowAggregate<Policy>::Make(site);
}

}  // namespace

const ScalarTable& BitmapKernels() {
  static const ScalarTable table = {
      {"spark_bitmap_bit_position", Nulls::kPropagate, MakeBitPosition},
      {"spark_bitmap_bucket_number", Nulls::kPropagate, MakeBucketNumber},
      {"spark_bitmap_count", Nulls::kPropagate, MakeCount},
  };
  return table;
}

const AggregateTable& BitmapAggregates() {
  static const AggregateTable table = {
      {"spark_bitmap_construct_agg", MakeBitmap<ConstructBitmap>},
      {"spark_bitmap_or_agg", MakeBitmap<BitmapAggregate<Or>>},
      {"spark_bitmap_and_agg", MakeBitmap<BitmapAggregate<And>>},
  };
  return table;
}

}  // namespace fleuve::engine
