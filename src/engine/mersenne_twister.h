#pragma once

/// \file
/// MT19937 seeded by 64 bits as Spark's array functions seed it, and whole numbers drawn from it.

#include <array>
#include <cstdint>

namespace fleuve::engine {

/// Threads: one at a time.
class MersenneTwister {
 public:
  explicit MersenneTwister(std::int64_t seed) {
    const std::array<std::uint32_t, 2> key = {static_cast<std::uint32_t>(static_cast<std::uint64_t>(seed) >> 32),
                                              static_cast<std::uint32_t>(seed)};
    state_[0] = 19650218;
    for (std::uint32_t i = 1; i < kSize; ++i) {
      state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
    }
    std::uint32_t i = 1;
    std::uint32_t j = 0;
    const auto next = [this, &i] {
      if (++i >= kSize) {
        state_[0] = state_[kSize - 1];
        i = 1;
      }
    };
    for (std::uint32_t k = 0; k < kSize; ++k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525U)) + key[j] + j;
      next();
      j = (j + 1) % key.size();
    }
    for (std::uint32_t k = 0; k + 1 < kSize; ++k) {
      state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941U)) - i;
      next();
    }
    state_[0] = 0x80000000U;
  }

  /// 0 .. bound-1, `bound` above 0.
  std::int32_t NextBelow(std::int32_t bound) {
    if ((bound & -bound) == bound) {
      return static_cast<std::int32_t>((static_cast<std::int64_t>(bound) * Next31()) >> 31);
    }
    while (true) {
      const std::int32_t bits = Next31();
      const std::int32_t value = bits % bound;
      // The last, incomplete round of values is drawn again.
      if (static_cast<std::int64_t>(bits) - value + (bound - 1) <= INT32_MAX) {
        return value;
      }
    }
  }

  std::uint64_t NextLong() {
    const std::uint64_t high = Next32();
    return (high << 32) | Next32();
  }

 private:
  static constexpr std::uint32_t kSize = 624;
  static constexpr std::uint32_t kShift = 397;

  std::int32_t Next31() { return static_cast<std::int32_t>(Next32() >> 1); }

  std::uint32_t Next32() {
    if (at_ >= kSize) {
      for (std::uint32_t i = 0; i < kSize; ++i) {
        const std::uint32_t mixed = (state_[i] & 0x80000000U) | (state_[(i + 1) % kSize] & 0x7fffffffU);
        state_[i] = state_[(i + kShift) % kSize] ^ (mixed >> 1) ^ ((mixed & 1) != 0 ? 0x9908b0dfU : 0U);
      }
      at_ = 0;
    }
    std::uint32_t y = state_[at_++];
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c5680U;
    y ^= (y << 15) & 0xefc60000U;
    return y ^ (y >> 18);
  }

  std::array<std::uint32_t, kSize> state_{};
  std::uint32_t at_ = kSize;
};

}  // namespace fleuve::engine
