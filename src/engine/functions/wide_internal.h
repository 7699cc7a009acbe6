#pragma once

/// \file
/// 256-bit unsigned integers: products and quotients of decimals.

#include <cstdint>

namespace fleuve::engine {

struct Wide {
  unsigned __int128 high = 0;
  unsigned __int128 low = 0;

  static Wide Of(unsigned __int128 value) { return Wide{0, value}; }
  static Wide Product(unsigned __int128 a, unsigned __int128 b) {
    constexpr unsigned __int128 kMask = ~std::uint64_t{0};
    unsigned __int128 a0 = a & kMask;
    unsigned __int128 a1 = a >> 64;
    unsigned __int128 b0 = b & kMask;
    unsigned __int128 b1 = b >> 64;
    unsigned __int128 low = a0 * b0;
    unsigned __int128 middle = a1 * b0 + (low >> 64);
    unsigned __int128 carry = middle >> 64;
    middle = (middle & kMask) + a0 * b1;
    return Wide{a1 * b1 + carry + (middle >> 64), (middle << 64) | (low & kMask)};
  }

  bool operator>=(const Wide& other) const { return high != other.high ? high > other.high : low >= other.low; }
  bool operator==(const Wide& other) const = default;
  bool IsZero() const { return high == 0 && low == 0; }
  Wide operator+(const Wide& other) const {
    Wide sum{high + other.high, low + other.low};
    sum.high += sum.low < low ? 1 : 0;
    return sum;
  }
  Wide operator-(const Wide& other) const {
    Wide difference{high - other.high, low - other.low};
    difference.high -= low < other.low ? 1 : 0;
    return difference;
  }
  Wide ShiftLeft() const { return Wide{(high << 1) | (low >> 127), low << 1}; }
  bool Bit(int i) const { return ((i >= 128 ? high >> (i - 128) : low >> i) & 1) != 0; }
  int BitLength() const {
    auto length = [](unsigned __int128 v) {
      auto top = static_cast<std::uint64_t>(v >> 64);
      auto bottom = static_cast<std::uint64_t>(v);
      return top != 0 ? 128 - __builtin_clzll(top) : bottom != 0 ? 64 - __builtin_clzll(bottom) : 0;
    };
    return high != 0 ? 128 + length(high) : length(low);
  }

  /// Quotient and remainder; the divisor is not zero.
  static void Divide(const Wide& dividend, const Wide& divisor, Wide* quotient, Wide* remainder) {
    if (dividend.high == 0 && divisor.high == 0) {
      *quotient = Of(dividend.low / divisor.low);
      *remainder = Of(dividend.low % divisor.low);
      return;
    }
    Wide q;
    Wide r;
    for (int i = dividend.BitLength() - 1; i >= 0; --i) {
      bool carry = (r.high >> 127) != 0;
      r = r.ShiftLeft();
      r.low |= dividend.Bit(i) ? 1 : 0;
      q = q.ShiftLeft();
      if (carry || r >= divisor) {
        r = r - divisor;
        q.low |= 1;
      }
    }
    *quotient = q;
    *remainder = r;
  }
  /// Rounds half away from zero.
  static Wide DivideRounded(const Wide& dividend, const Wide& divisor) {
    Wide q;
    Wide r;
    Divide(dividend, divisor, &q, &r);
    if (r >= divisor - r) {
      q = q + Of(1);
    }
    return q;
  }
};

}  // namespace fleuve::engine
