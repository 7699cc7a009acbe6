#include <cmath>
#include <cstring>

#include "operators/row_merge_internal.h"

namespace fleuve::operators {

using types::TypeKind;

std::optional<RowMerger> RowMerger::For(const AggregateStates& states) {
  RowMerger merger;
  for (std::size_t i = 0; i < states.columns.size(); ++i) {
    const std::string& function = states.merge[i]->function;
    Column column;
    switch (states.columns[i].type.kind()) {
      case TypeKind::kBoolean:
        column = {Fold::kSum, Kind::kBoolean, 1};
        break;
      case TypeKind::kByte:
        column = {Fold::kSum, Kind::kInt8, 1};
        break;
      case TypeKind::kShort:
        column = {Fold::kSum, Kind::kInt16, 2};
        break;
      case TypeKind::kInt:
      case TypeKind::kDate:
      case TypeKind::kYearMonthInterval:
        column = {Fold::kSum, Kind::kInt32, 4};
        break;
      case TypeKind::kLong:
      case TypeKind::kTimestamp:
      case TypeKind::kTimestampNtz:
      case TypeKind::kDayTimeInterval:
        column = {Fold::kSum, Kind::kInt64, 8};
        break;
      case TypeKind::kFloat:
        column = {Fold::kSum, Kind::kFloat, 4};
        break;
      case TypeKind::kDouble:
        column = {Fold::kSum, Kind::kDouble, 8};
        break;
      default:
        return std::nullopt;
    }
    if (function == "spark_sum") {
      column.fold = Fold::kSum;
    } else if (function == "spark_sum_legacy") {
      column.fold = Fold::kWrappingSum;
    } else if (function == "spark_min") {
      column.fold = Fold::kMin;
    } else if (function == "spark_max") {
      column.fold = Fold::kMax;
    } else if (function == "spark_bit_and_agg") {
      column.fold = Fold::kAnd;
    } else if (function == "spark_bit_or_agg") {
      column.fold = Fold::kOr;
    } else if (function == "spark_bit_xor_agg") {
      column.fold = Fold::kXor;
    } else {
      return std::nullopt;
    }
    merger.columns_.push_back(column);
  }
  return merger;
}

template <typename T>
bool RowMerger::FoldReal(Fold fold, const char* older, const char* newer, std::string* out) {
  T a;
  T b;
  std::memcpy(&a, older, sizeof(T));
  std::memcpy(&b, newer, sizeof(T));
  // NaN is the largest of all.
  const auto less = [](T x, T y) { return std::isnan(y) ? !std::isnan(x) : x < y; };
  T folded = a;
  switch (fold) {
    case Fold::kSum:
    case Fold::kWrappingSum:
      folded = a + b;
      break;
    case Fold::kMin:
      folded = less(b, a) ? b : a;
      break;
    case Fold::kMax:
      folded = less(a, b) ? b : a;
      break;
    default:
      return false;
  }
  out->append(reinterpret_cast<const char*>(&folded), sizeof(T));
  return true;
}

template <typename T>
bool RowMerger::FoldWhole(Fold fold, const char* older, const char* newer, std::string* out) {
  T a;
  T b;
  std::memcpy(&a, older, sizeof(T));
  std::memcpy(&b, newer, sizeof(T));
  T folded = a;
  switch (fold) {
    case Fold::kSum:
      if (__builtin_add_overflow(a, b, &folded)) {
        return false;
      }
      break;
    case Fold::kWrappingSum:
      static_cast<void>(__builtin_add_overflow(a, b, &folded));
      break;
    case Fold::kMin:
      folded = b < a ? b : a;
      break;
    case Fold::kMax:
      folded = a < b ? b : a;
      break;
    case Fold::kAnd:
      folded = static_cast<T>(a & b);
      break;
    case Fold::kOr:
      folded = static_cast<T>(a | b);
      break;
    case Fold::kXor:
      folded = static_cast<T>(a ^ b);
      break;
  }
  out->append(reinterpret_cast<const char*>(&folded), sizeof(T));
  return true;
}

bool RowMerger::Merge(std::string_view older, std::string_view newer, std::string* out) const {
  const std::size_t bits = (columns_.size() + 7) / 8;
  if (older.size() < bits || newer.size() < bits) {
    return false;
  }
  const auto is_null = [](std::string_view row, std::size_t i) {
    return (static_cast<unsigned char>(row[i / 8]) >> (i % 8) & 1) != 0;
  };
  const std::size_t begin = out->size();
  for (std::size_t i = 0; i < bits; ++i) {
    // NULL where both are.
    out->push_back(static_cast<char>(older[i] & newer[i]));
  }
  std::size_t at_older = bits;
  std::size_t at_newer = bits;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const Column& column = columns_[i];
    const bool has_older = !is_null(older, i);
    const bool has_newer = !is_null(newer, i);
    if (older.size() < at_older + (has_older ? column.width : 0) ||
        newer.size() < at_newer + (has_newer ? column.width : 0)) {
      out->resize(begin);
      return false;
    }
    const char* a = older.data() + at_older;
    const char* b = newer.data() + at_newer;
    at_older += has_older ? column.width : 0;
    at_newer += has_newer ? column.width : 0;
    if (has_older != has_newer) {
      out->append(has_older ? a : b, column.width);
      continue;
    }
    if (!has_older) {
      continue;
    }
    bool folded = false;
    switch (column.kind) {
      case Kind::kBoolean:
      case Kind::kInt8:
        folded = FoldWhole<std::int8_t>(column.fold, a, b, out);
        break;
      case Kind::kInt16:
        folded = FoldWhole<std::int16_t>(column.fold, a, b, out);
        break;
      case Kind::kInt32:
        folded = FoldWhole<std::int32_t>(column.fold, a, b, out);
        break;
      case Kind::kInt64:
        folded = FoldWhole<std::int64_t>(column.fold, a, b, out);
        break;
      case Kind::kFloat:
        folded = FoldReal<float>(column.fold, a, b, out);
        break;
      case Kind::kDouble:
        folded = FoldReal<double>(column.fold, a, b, out);
        break;
    }
    if (!folded) {
      return false;
    }
  }
  return true;
}

}  // namespace fleuve::operators
