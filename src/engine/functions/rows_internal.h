#pragma once

/// \file
/// Row-wise kernels: a function of plain C++ values becomes a kernel over vectors.
///
///   MapRows<std::int32_t, Str>([](Str text) { return CountCodePoints(text); })
///
/// NULL in any of the listed arguments gives NULL. The function returns R, or std::optional<R> where it may give NULL;
/// text results may be std::string or std::string_view. Arguments beyond the listed ones (constant parameters) are left
/// out: the maker reads them from the site.

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "engine/carriers_internal.h"
#include "engine/duckdb_pch.h"
#include "engine/functions/register_internal.h"

namespace fleuve::engine {

using Str = std::string_view;
using types::Int128;

/// How a plain value lies in a vector.
template <typename T>
struct Physical {
  using Type = T;
  static T Read(const T& value) { return value; }
  static T Write(duckdb::Vector&, T value) { return value; }
};
template <>
struct Physical<Str> {
  using Type = duckdb::string_t;
  static Str Read(const duckdb::string_t& value) { return Str(value.GetData(), value.GetSize()); }
  static duckdb::string_t Write(duckdb::Vector& result, Str value) {
    return duckdb::StringVector::AddStringOrBlob(result, value.data(), value.size());
  }
};
template <>
struct Physical<Int128> {
  using Type = duckdb::hugeint_t;
  static Int128 Read(const duckdb::hugeint_t& value) { return ToInt128(value); }
  static duckdb::hugeint_t Write(duckdb::Vector&, Int128 value) { return ToHugeint(value); }
};

template <typename T>
struct IsOptional : std::false_type {};
template <typename T>
struct IsOptional<std::optional<T>> : std::true_type {};

template <typename R, typename... A, typename F, std::size_t... I>
void RunRows(const F& f, duckdb::DataChunk& args, duckdb::Vector& result, std::index_sequence<I...>) {
  constexpr std::size_t kArguments = sizeof...(A);
  duckdb::idx_t count = args.size();
  duckdb::UnifiedVectorFormat formats[kArguments == 0 ? 1 : kArguments];
  bool constant = kArguments > 0;
  ((args.data[I].ToUnifiedFormat(count, formats[I]),
    constant = constant && args.data[I].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR),
   ...);
  result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
  auto* out = duckdb::FlatVector::GetData<typename Physical<R>::Type>(result);
  auto& validity = duckdb::FlatVector::Validity(result);
  duckdb::idx_t rows = constant ? 1 : count;
  for (duckdb::idx_t row = 0; row < rows; ++row) {
    if (!(formats[I].validity.RowIsValid(formats[I].sel->get_index(row)) && ...)) {
      validity.SetInvalid(row);
      continue;
    }
    auto value = f(Physical<A>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<A>::Type>(
        formats[I])[formats[I].sel->get_index(row)])...);
    if constexpr (IsOptional<decltype(value)>::value) {
      if (!value) {
        validity.SetInvalid(row);
        continue;
      }
      out[row] = Physical<R>::Write(result, *value);
    } else {
      out[row] = Physical<R>::Write(result, value);
    }
  }
  if (constant) {
    result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
  }
}

template <typename R, typename... A, typename F>
Kernel MapRows(F f) {
  return [f = std::move(f)](duckdb::DataChunk& args, duckdb::Vector& result) {
    RunRows<R, A...>(f, args, result, std::index_sequence_for<A...>{});
  };
}

/// A value per row without arguments (random numbers): never constant.
template <typename R, typename F>
Kernel EachRow(F f) {
  return [f = std::move(f)](duckdb::DataChunk& args, duckdb::Vector& result) {
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<typename Physical<R>::Type>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      out[row] = Physical<R>::Write(result, f());
    }
  };
}

/// Reads one column of any physical form.
class Column {
 public:
  Column(duckdb::Vector& vector, duckdb::idx_t count) { vector.ToUnifiedFormat(count, format_); }
  bool IsNull(duckdb::idx_t row) const { return !format_.validity.RowIsValid(format_.sel->get_index(row)); }
  template <typename T>
  auto Get(duckdb::idx_t row) const {
    return Physical<T>::Read(
        duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format_)[format_.sel->get_index(row)]);
  }
  duckdb::idx_t Index(duckdb::idx_t row) const { return format_.sel->get_index(row); }
  template <typename T>
  const T* Data() const {
    return duckdb::UnifiedVectorFormat::GetData<T>(format_);
  }

 private:
  duckdb::UnifiedVectorFormat format_;
};

/// What the name's ending says: `_try`, `_legacy` or nothing.
inline plan::CastMode ModeOf(const plan::Expr& expr) {
  if (expr.kind == plan::ExprKind::kCast) {
    return expr.cast_mode;
  }
  if (expr.function.ends_with("_try")) {
    return plan::CastMode::kTry;
  }
  return expr.function.ends_with("_legacy") ? plan::CastMode::kLegacy : plan::CastMode::kAnsi;
}

/// Ten to the power of `exponent` (0..38).
Int128 PowerOfTen(int exponent);
/// Divides by 10^digits, rounding half away from zero.
Int128 DropDigits(Int128 value, int digits);
/// Calls `f` with a value of the integer type that carries a decimal of this precision.
template <typename F>
auto WithDecimalCarrier(int precision, F f) {
  if (precision <= 4) {
    return f(std::int16_t{});
  }
  if (precision <= 9) {
    return f(std::int32_t{});
  }
  if (precision <= 18) {
    return f(std::int64_t{});
  }
  return f(Int128{});
}
/// Reads decimals of any precision from a column.
class DecimalColumn {
 public:
  DecimalColumn(duckdb::Vector& vector, duckdb::idx_t count, int precision)
      : column_(vector, count), precision_(precision) {}
  bool IsNull(duckdb::idx_t row) const { return column_.IsNull(row); }
  Int128 Get(duckdb::idx_t row) const {
    if (precision_ <= 4) {
      return column_.Get<std::int16_t>(row);
    }
    if (precision_ <= 9) {
      return column_.Get<std::int32_t>(row);
    }
    if (precision_ <= 18) {
      return column_.Get<std::int64_t>(row);
    }
    return column_.Get<Int128>(row);
  }

 private:
  Column column_;
  int precision_;
};
/// Stores decimals of any precision into a flat vector.
void StoreDecimal(duckdb::Vector& result, duckdb::idx_t row, Int128 value, int precision);
/// NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION.
Error DecimalOverflow(Int128 value, int scale, int precision, int to_scale);

}  // namespace fleuve::engine
