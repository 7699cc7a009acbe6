#include <bit>
#include <cmath>
#include <mutex>

#include "engine/functions/java_math_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/mersenne_twister.h"

namespace fleuve::engine {

namespace {

/// Spark's XORShiftRandom for partition 0.
class XorShift {
 public:
  explicit XorShift(std::int64_t seed) {
    std::uint32_t low = HashSeed(static_cast<std::uint64_t>(seed), 0x3c074a61U);
    std::uint32_t high = HashSeed(static_cast<std::uint64_t>(seed), low);
    state_ = static_cast<std::uint64_t>(high) << 32 | low;
  }
  std::int32_t Next(int bits) {
    state_ ^= state_ << 21;
    state_ ^= state_ >> 35;
    state_ ^= state_ << 4;
    return static_cast<std::int32_t>(state_ & ((std::uint64_t{1} << bits) - 1));
  }
  double NextDouble() {
    std::int64_t high = std::int64_t{Next(26)} << 27;
    return static_cast<double>(high + Next(27)) * 0x1.0p-53;
  }
  /// The polar method, as java.util.Random does it.
  double NextGaussian() {
    if (has_next_) {
      has_next_ = false;
      return next_;
    }
    double a = 0;
    double b = 0;
    double s = 0;
    do {
      a = 2 * NextDouble() - 1;
      b = 2 * NextDouble() - 1;
      s = a * a + b * b;
    } while (s >= 1 || s == 0);
    double factor = std::sqrt(-2 * java_math::Log(s) / s);
    next_ = b * factor;
    has_next_ = true;
    return a * factor;
  }
  std::int32_t NextInt(std::int32_t bound) {
    std::int32_t r = Next(31);
    std::int32_t m = bound - 1;
    if ((bound & m) == 0) {
      return static_cast<std::int32_t>((std::int64_t{bound} * r) >> 31);
    }
    for (std::int32_t u = r; static_cast<std::int64_t>(u) - (r = u % bound) + m > 2147483647; u = Next(31)) {
    }
    return r;
  }

 private:
  /// Murmur3 of the eight bytes, the highest first.
  static std::uint32_t HashSeed(std::uint64_t seed, std::uint32_t h) {
    std::uint64_t swapped = __builtin_bswap64(seed);
    for (std::uint32_t k : {static_cast<std::uint32_t>(swapped), static_cast<std::uint32_t>(swapped >> 32)}) {
      k = std::rotl(k * 0xcc9e2d51U, 15) * 0x1b873593U;
      h = std::rotl(h ^ k, 13) * 5 + 0xe6546b64U;
    }
    h ^= 8;
    h ^= h >> 16;
    h *= 0x85ebca6bU;
    h ^= h >> 13;
    h *= 0xc2b2ae35U;
    return h ^ (h >> 16);
  }

  std::uint64_t state_ = 0;
  bool has_next_ = false;
  double next_ = 0;
};

/// One generator of a call; rows take from it in the order in which they are evaluated.
struct Generator {
  explicit Generator(std::int64_t seed) : random(seed) {}
  std::mutex mutex;
  XorShift random;
  std::int64_t counter = 0;
};

template <typename R, typename F>
Kernel FromGenerator(std::int64_t seed, F f) {
  auto generator = std::make_shared<Generator>(seed);
  return [generator, f](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::lock_guard lock(generator->mutex);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<typename Physical<R>::Type>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      out[row] = Physical<R>::Write(result, f(*generator));
    }
  };
}

Result<Kernel> MakeRand(const ScalarSite& site) {
  return FromGenerator<double>(site.Literal(0).integer(), [](Generator& g) { return g.random.NextDouble(); });
}

Result<Kernel> MakeRandn(const ScalarSite& site) {
  return FromGenerator<double>(site.Literal(0).integer(), [](Generator& g) { return g.random.NextGaussian(); });
}

Result<Kernel> MakeRandStr(const ScalarSite& site) {
  if (!site.IsLiteral(0) || site.Literal(0).is_null() || site.Literal(0).integer() < 0) {
    return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.NON_FOLDABLE_INPUT",
                 "the input `length` should be a foldable non-negative integer.");
  }
  std::int64_t length = site.Literal(0).integer();
  return FromGenerator<Str>(site.Literal(1).integer(), [length](Generator& g) {
    static constexpr char kPool[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    std::string out;
    for (std::int64_t i = 0; i < length; ++i) {
      out += kPool[std::abs(g.random.Next(32) % 62)];
    }
    return out;
  });
}

Result<Kernel> MakeUuid(const ScalarSite& site) {
  auto random = std::make_shared<MersenneTwister>(site.Literal(0).integer());
  return FromGenerator<Str>(0, [random](Generator&) {
    // Version 4, variant 1.
    const std::uint64_t high = (random->NextLong() & 0xFFFFFFFFFFFF0FFFU) | 0x4000U;
    const std::uint64_t low = (random->NextLong() | 0x8000000000000000U) & 0xBFFFFFFFFFFFFFFFU;
    std::string out;
    for (int digit = 0; digit < 32; ++digit) {
      if (digit == 8 || digit == 12 || digit == 16 || digit == 20) {
        out += '-';
      }
      out += "0123456789abcdef"[((digit < 16 ? high : low) >> (60 - 4 * (digit % 16))) & 15];
    }
    return out;
  });
}

Result<Kernel> MakeRowId(const ScalarSite&) {
  return FromGenerator<std::int64_t>(0, [](Generator& g) { return g.counter++; });
}

Result<Kernel> MakeInputFileName(const ScalarSite&) {
  // Where rows come from files the analyzer puts the file's name in place of this call.
  return EachRow<Str>([]() { return Str(); });
}

[[noreturn]] void RaiseUser(Str message) {
  ThrowRowError(Error(ErrorKind::kInvalidArgument, "USER_RAISED_EXCEPTION", std::string(message))
                    .With("errorMessage", std::string(message))
                    .Family(ErrorFamily::kRuntime));
}

Result<Kernel> MakeRaiseError(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column message(args.data[0], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      RaiseUser(message.IsNull(row) ? Str("null") : message.Get<Str>(row));
    }
  });
}

Result<Kernel> MakeAssertTrue(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column condition(args.data[0], args.size());
    Column message(args.data[1], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (condition.IsNull(row) || !condition.Get<bool>(row)) {
        RaiseUser(message.IsNull(row) ? Str("null") : message.Get<Str>(row));
      }
      duckdb::FlatVector::SetNull(result, row, true);
    }
  });
}

}  // namespace

const ScalarTable& MiscKernels() {
  static const ScalarTable table = {
      {"spark_rand", Nulls::kOwn, MakeRand},
      {"spark_randn", Nulls::kOwn, MakeRandn},
      {"spark_randstr", Nulls::kOwn, MakeRandStr},
      {"spark_uuid", Nulls::kOwn, MakeUuid},
      {"spark_monotonically_increasing_id", Nulls::kOwn, MakeRowId},
      {"spark_input_file_name", Nulls::kOwn, MakeInputFileName},
      {"spark_raise_error", Nulls::kOwn, MakeRaiseError},
      {"spark_assert_true", Nulls::kOwn, MakeAssertTrue},
  };
  return table;
}

}  // namespace fleuve::engine
