#include <array>
#include <cmath>
#include <limits>

#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/wide_internal.h"

namespace fleuve::engine {

namespace {

using plan::CastMode;
using types::DataType;
using types::TypeKind;

enum class Op { kAdd, kSubtract, kMultiply, kDivide, kRemainder, kPmod };

const char* TryNameOf(Op op) {
  switch (op) {
    case Op::kAdd:
      return "try_add";
    case Op::kSubtract:
      return "try_subtract";
    case Op::kMultiply:
      return "try_multiply";
    case Op::kDivide:
      return "try_divide";
    default:
      return "try_mod";
  }
}

Error Overflow(const char* what, const char* hint) {
  return Error(
             ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
             std::string(what) + " overflow." +
                 (*hint != 0 ? std::string(" Use '") + hint + "' to tolerate overflow and return NULL instead." : "") +
                 " If necessary set \"spark.sql.ansi.enabled\" to \"false\" to bypass this error.")
      .With("message", std::string(what) + " overflow")
      .With("alternative", *hint != 0 ? std::string(" Use '") + hint + "' to tolerate overflow and return NULL instead."
                                      : std::string())
      .With("config", "\"spark.sql.ansi.enabled\"");
}

Error ByZero(bool remainder) {
  if (remainder) {
    return Error(
               ErrorKind::kInvalidArgument, "REMAINDER_BY_ZERO",
               "Remainder by zero. Use `try_mod` to tolerate divisor being 0 and return NULL instead. If necessary set "
               "\"spark.sql.ansi.enabled\" to \"false\" to bypass this error.")
        .With("config", "\"spark.sql.ansi.enabled\"");
  }
  return Error(
             ErrorKind::kInvalidArgument, "DIVIDE_BY_ZERO",
             "Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If necessary set "
             "\"spark.sql.ansi.enabled\" to \"false\" to bypass this error.")
      .With("config", "\"spark.sql.ansi.enabled\"");
}

/// Raises the error at the place of the node.
[[noreturn]] void Fail(Error error, const std::shared_ptr<const QueryContext>& context) {
  if (context) {
    ThrowRowError(std::move(error).At(*context));
  }
  ThrowRowError(std::move(error));
}

template <typename T>
const char* NameOfType() {
  if constexpr (sizeof(T) == 8) {
    return "long";
  } else {
    return "integer";
  }
}

template <typename T>
[[noreturn]] void FailOverflow(Op op, T a, T b, const std::shared_ptr<const QueryContext>& context) {
  if constexpr (sizeof(T) < 4) {
    const char* suffix = sizeof(T) == 1 ? "Y" : "S";
    const char* symbol = op == Op::kAdd ? "+" : op == Op::kSubtract ? "-" : "*";
    std::string left = std::to_string(a) + suffix;
    std::string right = std::to_string(b) + suffix;
    Fail(Error(ErrorKind::kInvalidArgument, "BINARY_ARITHMETIC_OVERFLOW",
               left + " " + symbol + " " + right + " caused overflow. Use '" + TryNameOf(op) +
                   "' to ignore overflow problem and return NULL.")
             .With("value1", left)
             .With("symbol", symbol)
             .With("value2", right)
             .With("functionName", std::string("`") + TryNameOf(op) + "`"),
         context);
  } else {
    Fail(Overflow(NameOfType<T>(), TryNameOf(op)), context);
  }
}

/// Text of a mode as a template argument keeps the branch out of the loop.
template <typename T, Op kOp>
Kernel IntegerOperation(CastMode mode, std::shared_ptr<const QueryContext> context) {
  return MapRows<T, T, T>([mode, context](T a, T b) -> std::optional<T> {
    using U = std::make_unsigned_t<T>;
    T out = 0;
    if constexpr (kOp == Op::kAdd || kOp == Op::kSubtract || kOp == Op::kMultiply) {
      bool overflow = false;
      if constexpr (kOp == Op::kAdd) {
        overflow = __builtin_add_overflow(a, b, &out);
      } else if constexpr (kOp == Op::kSubtract) {
        overflow = __builtin_sub_overflow(a, b, &out);
      } else {
        overflow = __builtin_mul_overflow(a, b, &out);
      }
      if (overflow) {
        if (mode == CastMode::kAnsi) {
          FailOverflow<T>(kOp, a, b, context);
        }
        if (mode == CastMode::kTry) {
          return std::nullopt;
        }
      }
      return out;
    } else {
      if (b == 0) {
        if (mode == CastMode::kAnsi) {
          Fail(ByZero(true), context);
        }
        return std::nullopt;
      }
      if (b == -1) {
        return T{0};
      }
      T rest = static_cast<T>(a % b);
      if constexpr (kOp == Op::kPmod) {
        if (rest < 0) {
          rest = static_cast<T>(static_cast<T>(static_cast<U>(rest) + static_cast<U>(b)) % b);
        }
      }
      return rest;
    }
  });
}

template <typename T, Op kOp>
Kernel RealOperation(CastMode mode, std::shared_ptr<const QueryContext> context) {
  return MapRows<T, T, T>([mode, context](T a, T b) -> std::optional<T> {
    (void)mode;  // of divisions alone
    if constexpr (kOp == Op::kAdd) {
      return a + b;
    } else if constexpr (kOp == Op::kSubtract) {
      return a - b;
    } else if constexpr (kOp == Op::kMultiply) {
      return a * b;
    } else {
      if (b == 0) {
        if (mode == CastMode::kAnsi) {
          Fail(ByZero(kOp != Op::kDivide), context);
        }
        return std::nullopt;
      }
      if constexpr (kOp == Op::kDivide) {
        return a / b;
      } else {
        T rest = std::fmod(a, b);
        if constexpr (kOp == Op::kPmod) {
          if (rest < 0) {
            rest = std::fmod(rest + b, b);
          }
        }
        return rest;
      }
    }
  });
}

// ---- Decimals ----

struct DecimalShape {
  int p1, s1, p2, s2, p, s;
};

unsigned __int128 Magnitude(Int128 value) {
  return value < 0 ? ~static_cast<unsigned __int128>(value) + 1 : static_cast<unsigned __int128>(value);
}

constexpr unsigned __int128 kLargest = static_cast<unsigned __int128>(-1) >> 1;

/// value * 10^digits; digits up to 76.
Wide ScaledUp(unsigned __int128 value, int digits) {
  if (digits <= 38) {
    return Wide::Product(value, static_cast<unsigned __int128>(PowerOfTen(digits)));
  }
  Wide first = Wide::Product(value, static_cast<unsigned __int128>(PowerOfTen(38)));
  Wide high = Wide::Product(first.high, static_cast<unsigned __int128>(PowerOfTen(digits - 38)));
  Wide low = Wide::Product(first.low, static_cast<unsigned __int128>(PowerOfTen(digits - 38)));
  return Wide{high.low + low.high, low.low};
}

/// Rounds to `drop` fewer digits and gives it its sign; false where it exceeds 127 bits.
bool Narrow(Wide value, int drop, bool negative, Int128* out) {
  if (drop > 0) {
    value = Wide::DivideRounded(value, ScaledUp(1, drop));
  }
  if (value.high != 0 || value.low > kLargest) {
    return false;
  }
  *out = negative ? -static_cast<Int128>(value.low) : static_cast<Int128>(value.low);
  return true;
}

/// nullopt where the result does not fit (or the divisor is zero: `by_zero`).
template <Op kOp>
std::optional<Int128> DecimalCompute(const DecimalShape& shape, Int128 a, Int128 b, bool* by_zero) {
  Int128 out = 0;
  if constexpr (kOp == Op::kAdd || kOp == Op::kSubtract) {
    int scale = std::max(shape.s1, shape.s2);
    if constexpr (kOp == Op::kSubtract) {
      b = -b;
    }
    Int128 x = 0;
    Int128 y = 0;
    Int128 sum = 0;
    if (!__builtin_mul_overflow(a, PowerOfTen(scale - shape.s1), &x) &&
        !__builtin_mul_overflow(b, PowerOfTen(scale - shape.s2), &y) && !__builtin_add_overflow(x, y, &sum)) {
      out = DropDigits(sum, scale - shape.s);
    } else {
      Wide u = ScaledUp(Magnitude(a), scale - shape.s1);
      Wide v = ScaledUp(Magnitude(b), scale - shape.s2);
      bool negative = a < 0;
      Wide total;
      if ((a < 0) == (b < 0)) {
        total = u + v;
      } else if (u >= v) {
        total = u - v;
      } else {
        total = v - u;
        negative = b < 0;
      }
      if (!Narrow(total, scale - shape.s, negative, &out)) {
        return std::nullopt;
      }
    }
  } else if constexpr (kOp == Op::kMultiply) {
    Int128 product = 0;
    int drop = shape.s1 + shape.s2 - shape.s;
    if (!__builtin_mul_overflow(a, b, &product)) {
      out = DropDigits(product, drop);
    } else if (!Narrow(Wide::Product(Magnitude(a), Magnitude(b)), drop, (a < 0) != (b < 0), &out)) {
      return std::nullopt;
    }
  } else {
    if (b == 0) {
      *by_zero = true;
      return std::nullopt;
    }
    if constexpr (kOp == Op::kDivide) {
      int shift = shape.s - shape.s1 + shape.s2;
      Wide dividend = ScaledUp(Magnitude(a), std::max(shift, 0));
      Wide divisor = ScaledUp(Magnitude(b), std::max(-shift, 0));
      if (!Narrow(Wide::DivideRounded(dividend, divisor), 0, (a < 0) != (b < 0), &out)) {
        return std::nullopt;
      }
    } else {
      int scale = std::max(shape.s1, shape.s2);
      Wide u = ScaledUp(Magnitude(a), scale - shape.s1);
      Wide v = ScaledUp(Magnitude(b), scale - shape.s2);
      Wide quotient;
      Wide rest;
      Wide::Divide(u, v, &quotient, &rest);
      bool negative = a < 0;
      if constexpr (kOp == Op::kPmod) {
        if (negative && !rest.IsZero()) {
          if (b > 0) {
            rest = v - rest;
            negative = false;
          }
          // For a negative divisor the remainder of (rest + b) is rest again.
        }
      }
      if (!Narrow(rest, scale - shape.s, negative, &out)) {
        return std::nullopt;
      }
    }
  }
  Int128 bound = PowerOfTen(shape.p);
  if (out >= bound || out <= -bound) {
    return std::nullopt;
  }
  return out;
}

template <Op kOp>
Kernel DecimalOperation(const ScalarSite& site, CastMode mode) {
  DecimalShape shape{site.ArgumentType(0).precision(), site.ArgumentType(0).scale(), site.ArgumentType(1).precision(),
                     site.ArgumentType(1).scale(),     site.expr.type.precision(),   site.expr.type.scale()};
  auto context = site.expr.context;
  return [shape, mode, context](duckdb::DataChunk& args, duckdb::Vector& result) {
    DecimalColumn left(args.data[0], args.size(), shape.p1);
    DecimalColumn right(args.data[1], args.size(), shape.p2);
    bool constant = args.data[0].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR &&
                    args.data[1].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto& validity = duckdb::FlatVector::Validity(result);
    for (duckdb::idx_t row = 0; row < (constant ? 1 : args.size()); ++row) {
      if (left.IsNull(row) || right.IsNull(row)) {
        validity.SetInvalid(row);
        continue;
      }
      Int128 a = left.Get(row);
      Int128 b = right.Get(row);
      bool by_zero = false;
      auto value = DecimalCompute<kOp>(shape, a, b, &by_zero);
      if (!value) {
        if (mode == CastMode::kAnsi) {
          Fail(by_zero ? ByZero(kOp != Op::kDivide) : DecimalOverflow(a, shape.s1, shape.p, shape.s), context);
        }
        validity.SetInvalid(row);
        continue;
      }
      StoreDecimal(result, row, *value, shape.p);
    }
    if (constant) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
    }
  };
}

template <Op kOp>
Result<Kernel> MakeOperation(const ScalarSite& site) {
  CastMode mode = ModeOf(site.expr);
  auto context = site.expr.context;
  switch (site.expr.type.kind()) {
    case TypeKind::kDecimal:
      return DecimalOperation<kOp>(site, mode);
    case TypeKind::kFloat:
      return RealOperation<float, kOp>(mode, context);
    case TypeKind::kDouble:
      return RealOperation<double, kOp>(mode, context);
    default:
      break;
  }
  if constexpr (kOp != Op::kDivide) {
    switch (site.expr.type.kind()) {
      case TypeKind::kByte:
        return IntegerOperation<std::int8_t, kOp>(mode, context);
      case TypeKind::kShort:
        return IntegerOperation<std::int16_t, kOp>(mode, context);
      case TypeKind::kInt:
        return IntegerOperation<std::int32_t, kOp>(mode, context);
      case TypeKind::kLong:
        return IntegerOperation<std::int64_t, kOp>(mode, context);
      default:
        break;
    }
  }
  return Error::Internal("no arithmetic on " + site.expr.type.Sql());
}

Result<Kernel> MakeDiv(const ScalarSite& site) {
  CastMode mode = ModeOf(site.expr);
  auto context = site.expr.context;
  const DataType& type = site.ArgumentType(0);
  if (type.Is(TypeKind::kDecimal)) {
    DecimalShape shape{
        type.precision(), type.scale(), site.ArgumentType(1).precision(), site.ArgumentType(1).scale(), 38, 0};
    return Kernel([shape, mode, context](duckdb::DataChunk& args, duckdb::Vector& result) {
      DecimalColumn left(args.data[0], args.size(), shape.p1);
      DecimalColumn right(args.data[1], args.size(), shape.p2);
      result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
      auto* out = duckdb::FlatVector::GetData<std::int64_t>(result);
      auto& validity = duckdb::FlatVector::Validity(result);
      for (duckdb::idx_t row = 0; row < args.size(); ++row) {
        if (left.IsNull(row) || right.IsNull(row)) {
          validity.SetInvalid(row);
          continue;
        }
        Int128 a = left.Get(row);
        Int128 b = right.Get(row);
        if (b == 0) {
          if (mode == CastMode::kAnsi) {
            Fail(ByZero(false), context);
          }
          validity.SetInvalid(row);
          continue;
        }
        int scale = std::max(shape.s1, shape.s2);
        Wide quotient;
        Wide rest;
        Wide::Divide(ScaledUp(Magnitude(a), scale - shape.s1), ScaledUp(Magnitude(b), scale - shape.s2), &quotient,
                     &rest);
        Int128 value = static_cast<Int128>(quotient.low);
        if ((a < 0) != (b < 0)) {
          value = -value;
        }
        if (quotient.high != 0 || value > std::numeric_limits<std::int64_t>::max() ||
            value < std::numeric_limits<std::int64_t>::min()) {
          if (mode == CastMode::kAnsi) {
            Fail(Overflow("long", "try_divide"), context);
          }
        }
        out[row] = static_cast<std::int64_t>(value);
      }
    });
  }
  auto divide = [mode, context](std::int64_t a, std::int64_t b) -> std::optional<std::int64_t> {
    if (b == 0) {
      if (mode == CastMode::kAnsi) {
        Fail(ByZero(false), context);
      }
      return std::nullopt;
    }
    if (b == -1) {
      if (a == std::numeric_limits<std::int64_t>::min()) {
        if (mode == CastMode::kAnsi) {
          Fail(Overflow("long", "try_divide"), context);
        }
        return a;
      }
      return -a;
    }
    return a / b;
  };
  if (type.Is(TypeKind::kYearMonthInterval)) {
    return MapRows<std::int64_t, std::int32_t, std::int32_t>(
        [divide](std::int32_t a, std::int32_t b) { return divide(a, b); });
  }
  return MapRows<std::int64_t, std::int64_t, std::int64_t>(divide);
}

enum class Single { kNegate, kAbs };

template <Single kOp>
Result<Kernel> MakeSingle(const ScalarSite& site) {
  CastMode mode = ModeOf(site.expr);
  auto context = site.expr.context;
  auto integer = [&]<typename T>(T) -> Kernel {
    return MapRows<T, T>([mode, context](T a) -> T {
      if (kOp == Single::kAbs && a >= 0) {
        return a;
      }
      if (a == std::numeric_limits<T>::min()) {
        if (mode == CastMode::kAnsi) {
          const char* name = sizeof(T) == 8 ? "long" : sizeof(T) == 4 ? "integer" : sizeof(T) == 2 ? "short" : "byte";
          if constexpr (sizeof(T) < 4) {
            Fail(Error(ErrorKind::kInvalidArgument, "ARITHMETIC_OVERFLOW",
                       std::string(kOp == Single::kAbs ? "abs" : "- ") + " caused overflow for " + name + "."),
                 context);
          }
          Fail(Overflow(name, ""), context);
        }
        return a;
      }
      return static_cast<T>(-a);
    });
  };
  switch (site.expr.type.kind()) {
    case TypeKind::kByte:
      return integer(std::int8_t{});
    case TypeKind::kShort:
      return integer(std::int16_t{});
    case TypeKind::kInt:
    case TypeKind::kYearMonthInterval:
      return integer(std::int32_t{});
    case TypeKind::kLong:
    case TypeKind::kDayTimeInterval:
      return integer(std::int64_t{});
    case TypeKind::kFloat:
      return MapRows<float, float>([](float a) { return kOp == Single::kAbs ? std::fabs(a) : -a; });
    case TypeKind::kDouble:
      return MapRows<double, double>([](double a) { return kOp == Single::kAbs ? std::fabs(a) : -a; });
    case TypeKind::kDecimal:
      return WithDecimalCarrier(site.expr.type.precision(), [](auto zero) -> Kernel {
        using T = decltype(zero);
        return MapRows<T, T>([](T a) -> T { return kOp == Single::kAbs && a >= 0 ? a : static_cast<T>(-a); });
      });
    default:
      return Error::Internal("no sign of " + site.expr.type.Sql());
  }
}

template <typename F>
Result<Kernel> ForIntegers(const DataType& type, F f) {
  switch (type.kind()) {
    case TypeKind::kByte:
      return f(std::int8_t{});
    case TypeKind::kShort:
      return f(std::int16_t{});
    case TypeKind::kInt:
      return f(std::int32_t{});
    case TypeKind::kLong:
      return f(std::int64_t{});
    default:
      return Error::Internal("no bits of " + type.Sql());
  }
}

Result<Kernel> MakeBits(const ScalarSite& site) {
  char op = site.expr.function[10];  // spark_bit_(a)nd, (o)r, (x)or
  return ForIntegers(site.expr.type, [op]<typename T>(T) -> Kernel {
    switch (op) {
      case 'a':
        return MapRows<T, T, T>([](T a, T b) { return static_cast<T>(a & b); });
      case 'o':
        return MapRows<T, T, T>([](T a, T b) { return static_cast<T>(a | b); });
      default:
        return MapRows<T, T, T>([](T a, T b) { return static_cast<T>(a ^ b); });
    }
  });
}

Result<Kernel> MakeBitNot(const ScalarSite& site) {
  return ForIntegers(site.expr.type,
                     []<typename T>(T) -> Kernel { return MapRows<T, T>([](T a) { return static_cast<T>(~a); }); });
}

template <typename T>
Kernel ShiftKernel(const std::string& name) {
  using U = std::make_unsigned_t<T>;
  constexpr int kMask = sizeof(T) * 8 - 1;
  if (name == "spark_shift_left") {
    return MapRows<T, T, std::int32_t>(
        [](T a, std::int32_t n) { return static_cast<T>(static_cast<U>(a) << (n & kMask)); });
  }
  if (name == "spark_shift_right") {
    return MapRows<T, T, std::int32_t>([](T a, std::int32_t n) { return static_cast<T>(a >> (n & kMask)); });
  }
  return MapRows<T, T, std::int32_t>(
      [](T a, std::int32_t n) { return static_cast<T>(static_cast<U>(a) >> (n & kMask)); });
}

Result<Kernel> MakeShift(const ScalarSite& site) {
  if (site.expr.type.Is(TypeKind::kLong)) {
    return ShiftKernel<std::int64_t>(site.expr.function);
  }
  return ShiftKernel<std::int32_t>(site.expr.function);
}

Result<Kernel> MakeBitCount(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kBoolean)) {
    return MapRows<std::int32_t, bool>([](bool a) { return a ? 1 : 0; });
  }
  return ForIntegers(site.ArgumentType(0), []<typename T>(T) -> Kernel {
    return MapRows<std::int32_t, T>([](T a) {
      return static_cast<std::int32_t>(__builtin_popcountll(static_cast<std::uint64_t>(std::int64_t{a})));
    });
  });
}

Result<Kernel> MakeBitGet(const ScalarSite& site) {
  return ForIntegers(site.ArgumentType(0), []<typename T>(T) -> Kernel {
    return MapRows<std::int8_t, T, std::int32_t>([](T a, std::int32_t n) {
      constexpr int kBits = sizeof(T) * 8;
      if (n < 0 || n >= kBits) {
        ThrowRowError(
            Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.BIT_POSITION_RANGE",
                  "The value of parameter(s) `pos` in `bit_get` is invalid: expects an integer value in [0, " +
                      std::to_string(kBits) + "), but got " + std::to_string(n) + ".")
                .Family(ErrorFamily::kIllegalArgument));
      }
      return static_cast<std::int8_t>((a >> n) & 1);
    });
  });
}

}  // namespace

const ScalarTable& ArithmeticKernels() {
  static const ScalarTable table = {
      {"spark_add", Nulls::kPropagate, MakeOperation<Op::kAdd>},
      {"spark_subtract", Nulls::kPropagate, MakeOperation<Op::kSubtract>},
      {"spark_multiply", Nulls::kPropagate, MakeOperation<Op::kMultiply>},
      {"spark_divide", Nulls::kPropagate, MakeOperation<Op::kDivide>},
      {"spark_remainder", Nulls::kPropagate, MakeOperation<Op::kRemainder>},
      {"spark_pmod", Nulls::kPropagate, MakeOperation<Op::kPmod>},
      {"spark_div", Nulls::kPropagate, MakeDiv},
      {"spark_negate", Nulls::kPropagate, MakeSingle<Single::kNegate>},
      {"spark_abs", Nulls::kPropagate, MakeSingle<Single::kAbs>},
      {"spark_bit_and", Nulls::kPropagate, MakeBits},
      {"spark_bit_or", Nulls::kPropagate, MakeBits},
      {"spark_bit_xor", Nulls::kPropagate, MakeBits},
      {"spark_bit_not", Nulls::kPropagate, MakeBitNot},
      {"spark_shift_left", Nulls::kPropagate, MakeShift},
      {"spark_shift_right", Nulls::kPropagate, MakeShift},
      {"spark_shift_right_unsigned", Nulls::kPropagate, MakeShift},
      {"spark_bit_count", Nulls::kPropagate, MakeBitCount},
      {"spark_bit_get", Nulls::kPropagate, MakeBitGet},
  };
  return table;
}

}  // namespace fleuve::engine
