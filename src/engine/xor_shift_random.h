#pragma once

/// \file
/// Spark's XORShiftRandom: the generator behind rand, randn, sample and shuffle.

#include <cstdint>
#include <initializer_list>

namespace fleuve::engine {

/// Gives the same numbers as Spark's for the same seed. Threads: one.
class XorShiftRandom {
 public:
  explicit XorShiftRandom(std::int64_t seed) : state_(HashSeed(seed)) {}

  /// The lowest `bits` bits of the next state.
  std::int32_t Next(int bits) {
    std::uint64_t next = state_ ^ (state_ << 21);
    next ^= next >> 35;
    next ^= next << 4;
    state_ = next;
    return static_cast<std::int32_t>(next & ((std::uint64_t{1} << bits) - 1));
  }
  double NextDouble() {
    const auto high = static_cast<std::int64_t>(Next(26)) << 27;
    return static_cast<double>(high + Next(27)) * 0x1.0p-53;
  }

 private:
  static std::uint32_t Rotate(std::uint32_t value, int by) { return (value << by) | (value >> (32 - by)); }

  /// MurmurHash3 of the eight bytes of `seed`, highest first.
  static std::uint32_t Murmur(std::int64_t seed, std::uint32_t hash) {
    const auto bits = static_cast<std::uint64_t>(seed);
    for (const auto half : {static_cast<std::uint32_t>(bits >> 32), static_cast<std::uint32_t>(bits)}) {
      std::uint32_t block = __builtin_bswap32(half);
      block = Rotate(block * 0xcc9e2d51U, 15) * 0x1b873593U;
      hash = Rotate(hash ^ block, 13) * 5 + 0xe6546b64U;
    }
    hash ^= 8;
    hash = (hash ^ (hash >> 16)) * 0x85ebca6bU;
    hash = (hash ^ (hash >> 13)) * 0xc2b2ae35U;
    return hash ^ (hash >> 16);
  }
  static std::uint64_t HashSeed(std::int64_t seed) {
    const std::uint32_t low = Murmur(seed, 0x3c074a61U);
    const std::uint32_t high = Murmur(seed, low);
    return (static_cast<std::uint64_t>(high) << 32) | low;
  }

  std::uint64_t state_;
};

}  // namespace fleuve::engine
