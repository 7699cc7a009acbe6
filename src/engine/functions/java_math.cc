#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/functions/java_math_internal.h"

namespace fleuve::engine::java_math {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kHalfLn2 = 0.34657359027997264;
constexpr double kExpOverflow = 709.782712893384;
constexpr double kExpUnderflow = -745.1332191019411;

constexpr double kPi = 3.1415926535897931160;
constexpr double kPiLow = 1.2246467991473531772e-16;
constexpr double kHalfPi = 1.57079632679489655800;
constexpr double kHalfPiLow = 6.12323399573676603587e-17;
constexpr double kQuarterPi = 7.85398163397448278999e-01;

/// Sign, exponent and the 20 upper bits of the fraction.
std::int32_t High(double x) { return static_cast<std::int32_t>(std::bit_cast<std::uint64_t>(x) >> 32); }

double WithHigh(double x, std::int32_t high) {
  const std::uint64_t low = std::bit_cast<std::uint64_t>(x) & 0xffffffffU;
  return std::bit_cast<double>((static_cast<std::uint64_t>(static_cast<std::uint32_t>(high)) << 32) | low);
}

/// The lower 32 bits cleared: products of two such numbers are exact.
double Head(double x) { return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & 0xffffffff00000000U); }

/// c[0] + x * (c[1] + x * (...)).
template <std::size_t kCount>
double Horner(const double (&c)[kCount], double x) {
  double sum = c[kCount - 1];
  for (std::size_t i = kCount - 1; i-- > 0;) {
    sum = c[i] + x * sum;
  }
  return sum;
}

constexpr double kExpTerms[] = {1.66666666666666019037e-01, -2.77777777770155933842e-03, 6.61375632143793436117e-05,
                                -1.65339022054652515390e-06, 4.13813679705723846039e-08};

/// (asin(x) - x) / x^3 as a function of t = x^2.
double ArcRatio(double t) {
  constexpr double kP[] = {1.66666666666666657415e-01,  -3.25565818622400915405e-01, 2.01212532134862925881e-01,
                           -4.00555345006794114027e-02, 7.91534994289814532176e-04,  3.47933107596021167570e-05};
  constexpr double kQ[] = {1.0, -2.40339491173441421878e+00, 2.02094576023350569471e+00, -6.88283971605453293030e-01,
                           7.70381505559019352791e-02};
  return t * Horner(kP, t) / Horner(kQ, t);
}

/// log2 of a magnitude in two parts; the first has its lower half cleared.
struct TwoParts {
  double head;
  double tail;
};

/// For |x - 1| <= 2^-20: the first four terms of the series.
TwoParts Log2NearOne(double magnitude) {
  constexpr double kPerLn2 = 1.44269504088896338700e+00;
  constexpr double kPerLn2Head = 1.44269502162933349609e+00;
  constexpr double kPerLn2Tail = 1.92596299112661746887e-08;
  const double t = magnitude - 1;
  const double w = (t * t) * (0.5 - t * (0.3333333333333333333333 - t * 0.25));
  const double u = kPerLn2Head * t;
  const double v = t * kPerLn2Tail - w * kPerLn2;
  const double head = Head(u + v);
  return {head, v - (head - u)};
}

TwoParts Log2(double magnitude) {
  constexpr double kTerms[] = {5.99999999999994648725e-01, 4.28571428578550184252e-01, 3.33333329818377432918e-01,
                               2.72728123808534006489e-01, 2.30660745775561754067e-01, 2.06975017800338417784e-01};
  constexpr double kScale = 9.61796693925975554329e-01;  // 2 / (3 ln 2)
  constexpr double kScaleHead = 9.61796700954437255859e-01;
  constexpr double kScaleTail = -7.02846165095275826516e-09;
  constexpr double kCentre[] = {1.0, 1.5};
  constexpr double kCentreLog2Head[] = {0.0, 5.84962487220764160156e-01};
  constexpr double kCentreLog2Tail[] = {0.0, 1.35003920212974897128e-08};

  int exponent = 0;
  if (High(magnitude) < 0x00100000) {
    magnitude *= 9007199254740992.0;
    exponent = -53;
  }
  std::int32_t high = High(magnitude);
  exponent += (high >> 20) - 0x3ff;
  const std::int32_t fraction = high & 0x000fffff;
  high = fraction | 0x3ff00000;
  int centre = 0;
  if (fraction > 0x3988E) {    // above sqrt(3/2)
    if (fraction < 0xBB67A) {  // below sqrt(3)
      centre = 1;
    } else {
      ++exponent;
      high -= 0x00100000;
    }
  }
  const double a = WithHigh(magnitude, high);
  const double c = kCentre[centre];
  // s = (a - c) / (a + c) in two parts.
  double u = a - c;
  double v = 1 / (a + c);
  const double s = u * v;
  const double s_head = Head(s);
  double t_head = WithHigh(0.0, ((high >> 1) | 0x20000000) + 0x00080000 + (centre << 18));
  double t_tail = a - (t_head - c);
  const double s_tail = v * ((u - s_head * t_head) - s_head * t_tail);
  double square = s * s;
  double r = square * square * Horner(kTerms, square);
  r += s_tail * (s_head + s);
  square = s_head * s_head;
  t_head = Head(3.0 + square + r);
  t_tail = r - ((t_head - 3.0) - square);
  u = s_head * t_head;
  v = s_tail * t_head + t_tail * s;
  const double p_head = Head(u + v);
  const double p_tail = v - (p_head - u);
  const double z_head = kScaleHead * p_head;
  const double z_tail = kScaleTail * p_head + p_tail * kScale + kCentreLog2Tail[centre];
  const double n = exponent;
  const double head = Head(((z_head + z_tail) + kCentreLog2Head[centre]) + n);
  return {head, z_tail - (((head - n) - kCentreLog2Head[centre]) - z_head)};
}

/// 2 to the power of head + tail, which lies where the result is finite and not zero.
double Power2(double head, double tail) {
  constexpr double kLn2 = 6.93147180559945286227e-01;
  constexpr double kLn2Head = 6.93147182464599609375e-01;
  constexpr double kLn2Tail = -1.90465429995776804525e-09;
  const std::int32_t high = High(head + tail);
  const std::int32_t magnitude = high & 0x7fffffff;
  std::int32_t n = 0;
  if (magnitude > 0x3fe00000) {  // above 1/2: take the nearest whole number out
    n = high + (0x00100000 >> (((magnitude >> 20) - 0x3ff) + 1));
    const int shift = ((n & 0x7fffffff) >> 20) - 0x3ff;
    head -= WithHigh(0.0, n & ~(0x000fffff >> shift));
    n = ((n & 0x000fffff) | 0x00100000) >> (20 - shift);
    if (high < 0) {
      n = -n;
    }
  }
  double t = Head(tail + head);
  const double u = t * kLn2Head;
  const double v = (tail - (t - head)) * kLn2 + t * kLn2Tail;
  double z = u + v;
  const double w = v - (z - u);
  t = z * z;
  const double t1 = z - t * Horner(kExpTerms, t);
  const double r = (z * t1) / (t1 - 2) - (w + z * w);
  z = 1 - (r - z);
  const std::int32_t scaled = High(z) + static_cast<std::int32_t>(static_cast<std::uint32_t>(n) << 20);
  return (scaled >> 20) <= 0 ? std::scalbn(z, n) : WithHigh(z, scaled);
}

enum class Parity { kNotWhole, kOdd, kEven };

Parity ParityOf(double y) {
  const double magnitude = std::fabs(y);
  if (magnitude >= 9007199254740992.0) {
    return Parity::kEven;
  }
  if (magnitude != std::floor(magnitude)) {
    return Parity::kNotWhole;
  }
  return (static_cast<std::int64_t>(magnitude) & 1) != 0 ? Parity::kOdd : Parity::kEven;
}

}  // namespace

double Exp(double x) {
  constexpr double kPerLn2 = 1.44269504088896338700;
  if (std::isnan(x) || std::isinf(x) || x > kExpOverflow || x < kExpUnderflow) {
    return std::exp(x);
  }
  const double magnitude = std::fabs(x);
  double high = x;
  double low = 0;
  int k = 0;
  if (magnitude > kHalfLn2) {
    if (magnitude < 1.0397207708399179) {
      k = x < 0 ? -1 : 1;
    } else {
      k = static_cast<int>(kPerLn2 * x + (x < 0 ? -0.5 : 0.5));
    }
    high = x - k * kLn2High;
    low = k * kLn2Low;
    x = high - low;
  } else if (magnitude < 3.725290298461914e-09) {
    return 1 + x;
  }
  const double t = x * x;
  const double c = x - t * Horner(kExpTerms, t);
  if (k == 0) {
    return 1 - ((x * c) / (c - 2) - x);
  }
  return std::ldexp(1 - ((low - (x * c) / (2 - c)) - high), k);
}

double Log(double x) {
  constexpr double kOdd[] = {6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01,
                             1.479819860511658591e-01};
  constexpr double kEven[] = {3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01};
  if (std::isnan(x) || x < 0) {
    return kNaN;
  }
  if (x == 0) {
    return -kInfinity;
  }
  if (std::isinf(x)) {
    return x;
  }
  int k = 0;
  if (High(x) < 0x00100000) {
    k = -54;
    x *= 18014398509481984.0;
  }
  // x = 2^k (1 + f), 1 + f between sqrt(2)/2 and sqrt(2).
  const std::int32_t high = High(x);
  k += (high >> 20) - 1023;
  const std::int32_t fraction = high & 0x000fffff;
  const std::int32_t above = (fraction + 0x95f64) & 0x100000;
  k += above >> 20;
  const double f = WithHigh(x, fraction | (above ^ 0x3ff00000)) - 1;
  const double n = k;
  if ((0x000fffff & (2 + fraction)) < 3) {  // |f| below 2^-20
    if (f == 0) {
      return k == 0 ? 0.0 : n * kLn2High + n * kLn2Low;
    }
    const double r = f * f * (0.5 - 0.33333333333333333 * f);
    return k == 0 ? f - r : n * kLn2High - ((r - n * kLn2Low) - f);
  }
  const double s = f / (2 + f);
  const double z = s * s;
  const double w = z * z;
  const double r = z * Horner(kOdd, w) + w * Horner(kEven, w);
  if (((fraction - 0x6147a) | (0x6b851 - fraction)) > 0) {
    const double half = 0.5 * f * f;
    return k == 0 ? f - (half - s * (half + r)) : n * kLn2High - ((half - (s * (half + r) + n * kLn2Low)) - f);
  }
  return k == 0 ? f - s * (f - r) : n * kLn2High - ((s * (f - r) - n * kLn2Low) - f);
}

double Log10(double x) {
  constexpr double kPerLn10 = 4.34294481903251816668e-01;
  constexpr double kLog2High = 3.01029995663611771306e-01;
  constexpr double kLog2Low = 3.69423907715893078616e-13;
  if (std::isnan(x) || x <= 0 || std::isinf(x)) {
    return std::log10(x);
  }
  int k = 0;
  if (High(x) < 0x00100000) {
    k = -54;
    x *= 18014398509481984.0;
  }
  const std::int32_t high = High(x);
  k += (high >> 20) - 1023;
  const int below = k < 0 ? 1 : 0;
  const double n = k + below;
  const double z = n * kLog2Low + kPerLn10 * Log(WithHigh(x, (high & 0x000fffff) | ((0x3ff - below) << 20)));
  return z + n * kLog2High;
}

double Pow(double x, double y) {
  if (y == 0) {
    return 1;
  }
  if (std::isnan(x) || std::isnan(y)) {
    return kNaN;
  }
  const double magnitude = std::fabs(x);
  if (std::isinf(y)) {
    // Unlike C, Java has no answer for 1 and -1.
    return magnitude == 1 ? kNaN : (magnitude > 1) == (y > 0) ? kInfinity : 0.0;
  }
  if (std::fabs(y) == 1) {
    return y == 1 ? x : 1 / x;
  }
  if (y == 2) {
    return x * x;
  }
  if (y == 0.5 && !std::isinf(x)) {
    return std::sqrt(x + 0.0);
  }
  const Parity parity = ParityOf(y);
  const bool negative = std::signbit(x);
  if (magnitude == 0 || magnitude == 1 || std::isinf(magnitude)) {
    const double z = y < 0 ? 1 / magnitude : magnitude;
    if (!negative) {
      return z;
    }
    return magnitude == 1 && parity == Parity::kNotWhole ? kNaN : parity == Parity::kOdd ? -z : z;
  }
  if (negative && parity == Parity::kNotWhole) {
    return kNaN;
  }
  const double sign = negative && parity == Parity::kOdd ? -1.0 : 1.0;
  const std::int32_t high = High(magnitude);
  const std::int32_t y_high = High(y) & 0x7fffffff;
  TwoParts log;
  if (y_high > 0x41e00000) {  // |y| above 2^31
    const bool far = y_high > 0x43f00000;
    if (high < (far ? 0x3ff00000 : 0x3fefffff)) {
      return y < 0 ? sign * kInfinity : sign * 0.0;
    }
    if (far || high > 0x3ff00000) {
      return y > 0 ? sign * kInfinity : sign * 0.0;
    }
    log = Log2NearOne(magnitude);
  } else {
    log = Log2(magnitude);
  }
  const double y_head = Head(y);
  const double tail = (y - y_head) * log.head + y * log.tail;
  const double head = y_head * log.head;
  const double z = tail + head;
  constexpr double kOverflowTail = 8.0085662595372944372e-17;
  if (z > 1024 || (z == 1024 && tail + kOverflowTail > z - head)) {
    return sign * kInfinity;
  }
  if (z < -1075 || (z == -1075 && tail <= z - head)) {
    return sign * 0.0;
  }
  return sign * Power2(head, tail);
}

double Cbrt(double x) {
  constexpr double kC = 5.42857142857142815906e-01;   // 19/35
  constexpr double kD = -7.05306122448979611050e-01;  // -864/1225
  constexpr double kE = 1.41428571428571436819e+00;   // 99/70
  constexpr double kF = 1.60714285714285720630e+00;   // 45/28
  constexpr double kG = 3.57142857142857150787e-01;   // 5/14
  if (x == 0 || !std::isfinite(x)) {
    return x;
  }
  const double magnitude = std::fabs(x);
  // A third of the exponent gives five bits.
  double t = 0;
  if (High(magnitude) < 0x00100000) {
    const double scaled = 18014398509481984.0 * magnitude;
    t = WithHigh(0.0, High(scaled) / 3 + 696219795);
  } else {
    t = WithHigh(0.0, High(magnitude) / 3 + 715094163);
  }
  double r = t * t / magnitude;
  double s = kC + r * t;
  t *= kG + kF / (s + kE + kD / s);
  // Cut to 20 bits and made larger than the root; one step of Newton's gives the rest.
  t = WithHigh(0.0, High(t) + 1);
  s = t * t;
  r = magnitude / s;
  r = (r - t) / (t + t + r);
  t += t * r;
  return std::copysign(t, x);
}

double Hypot(double x, double y) {
  if (std::isinf(x) || std::isinf(y)) {
    return kInfinity;
  }
  if (std::isnan(x) || std::isnan(y)) {
    return kNaN;
  }
  double a = std::fabs(x);
  double b = std::fabs(y);
  if (b > a) {
    std::swap(a, b);
  }
  if (High(a) - High(b) > 0x3c00000) {
    return a + b;
  }
  int scale = 0;
  if (High(a) > 0x5f300000) {
    a = std::ldexp(a, -600);
    b = std::ldexp(b, -600);
    scale = 600;
  }
  if (High(b) < 0x20b00000) {
    if (b == 0) {
      return std::ldexp(a, scale);
    }
    const int up = High(b) <= 0x000fffff ? 1022 : 600;
    a = std::ldexp(a, up);
    b = std::ldexp(b, up);
    scale -= up;
  }
  double w = a - b;
  if (w > b) {
    const double head = Head(a);
    w = std::sqrt(head * head - (b * (-b) - (a - head) * (a + head)));
  } else {
    const double twice = a + a;
    const double b_head = Head(b);
    const double head = WithHigh(0.0, High(a) + 0x00100000);
    w = std::sqrt(head * b_head - (w * (-w) - (head * (b - b_head) + (twice - head) * b)));
  }
  return scale != 0 ? std::ldexp(w, scale) : w;
}

double Asin(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude <= 1)) {
    return kNaN;
  }
  if (magnitude == 1) {
    return x * kHalfPi + x * kHalfPiLow;
  }
  if (magnitude < 0.5) {
    return magnitude < 7.450580596923828e-09 ? x : x + x * ArcRatio(x * x);
  }
  const double t = (1 - magnitude) * 0.5;
  const double ratio = ArcRatio(t);
  const double s = std::sqrt(t);
  double result = 0;
  if (High(magnitude) >= 0x3fef3333) {  // about 0.975
    result = kHalfPi - (2 * (s + s * ratio) - kHalfPiLow);
  } else {
    const double head = Head(s);
    const double rest = (t - head * head) / (s + head);
    const double p = 2 * s * ratio - (kHalfPiLow - 2 * rest);
    const double q = kQuarterPi - 2 * head;
    result = kQuarterPi - (p - q);
  }
  return x > 0 ? result : -result;
}

double Acos(double x) {
  const double magnitude = std::fabs(x);
  if (!(magnitude <= 1)) {
    return kNaN;
  }
  if (magnitude == 1) {
    return x > 0 ? 0.0 : kPi + 2 * kHalfPiLow;
  }
  if (magnitude < 0.5) {
    if (High(magnitude) <= 0x3c600000) {
      return kHalfPi + kHalfPiLow;
    }
    return kHalfPi - (x - (kHalfPiLow - x * ArcRatio(x * x)));
  }
  const double z = (1 - magnitude) * 0.5;
  const double s = std::sqrt(z);
  const double ratio = ArcRatio(z);
  if (x < 0) {
    return kPi - 2 * (s + (ratio * s - kHalfPiLow));
  }
  const double head = Head(s);
  const double rest = (z - head * head) / (s + head);
  return 2 * (head + (ratio * s + rest));
}

double Atan(double x) {
  constexpr double kBase[] = {4.63647609000806093515e-01, 7.85398163397448278999e-01, 9.82793723247329054082e-01,
                              kHalfPi};
  constexpr double kBaseLow[] = {2.26987774529616870924e-17, 3.06161699786838301793e-17, 1.39033110312309984516e-17,
                                 kHalfPiLow};
  constexpr double kFirst[] = {3.33333333333329318027e-01, 1.42857142725034663711e-01, 9.09088713343650656196e-02,
                               6.66107313738753120669e-02, 4.97687799461593236017e-02, 1.62858201153657823623e-02};
  constexpr double kSecond[] = {-1.99999999998764832476e-01, -1.11111104054623557880e-01, -7.69187620504482999495e-02,
                                -5.83357013379057348645e-02, -3.65315727442169155270e-02};
  if (std::isnan(x)) {
    return kNaN;
  }
  double a = std::fabs(x);
  if (High(a) >= 0x44100000) {
    return std::copysign(kHalfPi + kHalfPiLow, x);
  }
  int base = -1;
  if (High(a) < 0x3fdc0000) {  // below 7/16
    if (High(a) < 0x3e200000) {
      return x;
    }
  } else if (High(a) < 0x3fe60000) {  // below 11/16
    base = 0;
    a = (2 * a - 1) / (2 + a);
  } else if (High(a) < 0x3ff30000) {  // below 19/16
    base = 1;
    a = (a - 1) / (a + 1);
  } else if (High(a) < 0x40038000) {  // below 39/16
    base = 2;
    a = (a - 1.5) / (1 + 1.5 * a);
  } else {
    base = 3;
    a = -1 / a;
  }
  const double z = a * a;
  const double w = z * z;
  const double sum = z * Horner(kFirst, w) + w * Horner(kSecond, w);
  if (base < 0) {
    return x - x * sum;
  }
  const double result = kBase[base] - ((a * sum - kBaseLow[base]) - a);
  return std::signbit(x) ? -result : result;
}

double Atan2(double y, double x) {
  if (std::isnan(x) || std::isnan(y)) {
    return kNaN;
  }
  if (x == 1) {
    return Atan(y);
  }
  if (y == 0) {
    return std::signbit(x) ? std::copysign(kPi, y) : y;
  }
  if (x == 0) {
    return std::copysign(kHalfPi, y);
  }
  if (std::isinf(x)) {
    if (std::isinf(y)) {
      return std::copysign(x > 0 ? kQuarterPi : 3 * kQuarterPi, y);
    }
    return std::copysign(x > 0 ? 0.0 : kPi, y);
  }
  if (std::isinf(y)) {
    return std::copysign(kHalfPi, y);
  }
  const int apart = ((High(y) & 0x7fffffff) - (High(x) & 0x7fffffff)) >> 20;
  double z = 0;
  if (apart > 60) {
    z = kHalfPi + 0.5 * kPiLow;
  } else if (!(std::signbit(x) && apart < -60)) {
    z = Atan(std::fabs(y / x));
  }
  if (!std::signbit(x)) {
    return std::signbit(y) ? -z : z;
  }
  return std::signbit(y) ? (z - kPiLow) - kPi : kPi - (z - kPiLow);
}

double Sinh(double x) {
  if (!std::isfinite(x)) {
    return x;
  }
  const double half = x < 0 ? -0.5 : 0.5;
  const double magnitude = std::fabs(x);
  if (magnitude < 22) {
    if (magnitude < 3.725290298461914e-09) {
      return x;
    }
    const double t = std::expm1(magnitude);
    return magnitude < 1 ? half * (2 * t - t * t / (t + 1)) : half * (t + t / (t + 1));
  }
  if (magnitude < 709.7822265625) {
    return half * Exp(magnitude);
  }
  const double root = Exp(0.5 * magnitude);
  return half * root * root;
}

double Cosh(double x) {
  const double magnitude = std::fabs(x);
  if (magnitude < kHalfLn2) {
    const double t = std::expm1(magnitude);
    const double w = 1 + t;
    return magnitude < 2.7755575615628914e-17 ? w : 1 + (t * t) / (w + w);
  }
  if (magnitude < 22) {
    const double t = Exp(magnitude);
    return 0.5 * t + 0.5 / t;
  }
  return magnitude < kExpOverflow ? 0.5 * Exp(magnitude) : std::cosh(x);
}

double Tanh(double x) {
  if (std::isnan(x)) {
    return kNaN;
  }
  const double magnitude = std::fabs(x);
  if (magnitude < 2.7755575615628914e-17) {
    return x * (1 + x);
  }
  double z = 1;
  if (magnitude < 1) {
    const double t = std::expm1(-2 * magnitude);
    z = -t / (t + 2);
  } else if (magnitude < 22) {
    z = 1 - 2 / (std::expm1(2 * magnitude) + 2);
  }
  return std::signbit(x) ? -z : z;
}

}  // namespace fleuve::engine::java_math
