#include <cmath>
#include <cstring>

#include "engine/functions/elements_internal.h"

namespace fleuve::engine {

using duckdb::idx_t;
using types::DataType;
using types::TypeKind;

namespace {

template <typename T>
auto At(const duckdb::RecursiveUnifiedVectorFormat& format, idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

template <typename T>
int Order(T a, T b) {
  return a < b ? -1 : a > b ? 1 : 0;
}

template <typename T>
int OrderReal(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) {
    return Order(std::isnan(a) ? 1 : 0, std::isnan(b) ? 1 : 0);
  }
  return Order(a, b);
}

template <typename T>
void AppendBytes(std::string& key, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  key.append(bytes, sizeof(T));
}

/// Calls `f` with a zero of the C++ type that carries plain values of `type`.
template <typename F>
auto WithCarrier(const DataType& type, F f) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
      return f(bool{});
    case TypeKind::kByte:
      return f(std::int8_t{});
    case TypeKind::kShort:
      return f(std::int16_t{});
    case TypeKind::kInt:
    case TypeKind::kDate:
    case TypeKind::kYearMonthInterval:
    case TypeKind::kVoid:
      return f(std::int32_t{});
    case TypeKind::kFloat:
      return f(float{});
    case TypeKind::kDouble:
      return f(double{});
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return f(Str{});
    case TypeKind::kDecimal:
      return WithDecimalCarrier(type.precision(), f);
    default:
      return f(std::int64_t{});
  }
}

}  // namespace

Elements::Elements(DataType type, duckdb::Vector& vector, idx_t count) : type_(std::move(type)) {
  if (type_.IsNested() || type_.Is(TypeKind::kCalendarInterval) || type_.Is(TypeKind::kVariant)) {
    vector.Flatten(count);
  }
  duckdb::Vector::RecursiveToUnifiedFormat(vector, count, format_);
}

int Elements::CompareAt(const DataType& type, const Format& a, idx_t i, const Format& b, idx_t j) {
  switch (type.kind()) {
    case TypeKind::kArray:
    case TypeKind::kMap: {
      const auto x = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(a.unified)[i];
      const auto y = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(b.unified)[j];
      const DataType element =
          type.Is(TypeKind::kMap)
              ? DataType::Struct({{"key", type.key(), true, Json()}, {"value", type.value(), true, Json()}})
              : type.element();
      for (idx_t k = 0; k < x.length && k < y.length; ++k) {
        const int order = CompareRows(element, a.children[0], x.offset + k, b.children[0], y.offset + k);
        if (order != 0) {
          return order;
        }
      }
      return Order(x.length, y.length);
    }
    case TypeKind::kStruct:
      for (std::size_t k = 0; k < type.fields().size(); ++k) {
        const int order = CompareRows(type.fields()[k].type, a.children[k], i, b.children[k], j);
        if (order != 0) {
          return order;
        }
      }
      return 0;
    case TypeKind::kCalendarInterval:
    case TypeKind::kVariant:
      for (std::size_t k = 0; k < a.children.size(); ++k) {
        const DataType part = type.Is(TypeKind::kVariant) ? DataType::Binary()
                              : k < 2                     ? DataType::Int()
                                                          : DataType::Long();
        const int order = CompareRows(part, a.children[k], i, b.children[k], j);
        if (order != 0) {
          return order;
        }
      }
      return 0;
    default:
      return WithCarrier(type, [&](auto zero) -> int {
        using T = decltype(zero);
        if constexpr (std::is_floating_point_v<T>) {
          return OrderReal(At<T>(a, i), At<T>(b, j));
        } else if constexpr (std::is_same_v<T, Str>) {
          const int order = At<Str>(a, i).compare(At<Str>(b, j));
          return Order(order, 0);
        } else {
          return Order(At<T>(a, i), At<T>(b, j));
        }
      });
  }
}

int Elements::CompareRows(const DataType& type, const Format& a, idx_t i, const Format& b, idx_t j) {
  const idx_t x = a.unified.sel->get_index(i);
  const idx_t y = b.unified.sel->get_index(j);
  const bool x_null = !a.unified.validity.RowIsValid(x);
  const bool y_null = !b.unified.validity.RowIsValid(y);
  if (x_null || y_null) {
    return Order(x_null ? 0 : 1, y_null ? 0 : 1);
  }
  return CompareAt(type, a, x, b, y);
}

int Elements::Compare(idx_t row, const Elements& other, idx_t other_row) const {
  return CompareRows(type_, format_, row, other.format_, other_row);
}

void Elements::KeyOf(const DataType& type, const Format& format, idx_t row, std::string& key) {
  const idx_t index = format.unified.sel->get_index(row);
  if (!format.unified.validity.RowIsValid(index)) {
    key.push_back('\0');
    return;
  }
  key.push_back('\1');
  switch (type.kind()) {
    case TypeKind::kArray:
    case TypeKind::kMap: {
      const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      AppendBytes(key, entry.length);
      const DataType element =
          type.Is(TypeKind::kMap)
              ? DataType::Struct({{"key", type.key(), true, Json()}, {"value", type.value(), true, Json()}})
              : type.element();
      for (idx_t k = 0; k < entry.length; ++k) {
        KeyOf(element, format.children[0], entry.offset + k, key);
      }
      return;
    }
    case TypeKind::kStruct:
      for (std::size_t k = 0; k < type.fields().size(); ++k) {
        KeyOf(type.fields()[k].type, format.children[k], index, key);
      }
      return;
    case TypeKind::kCalendarInterval:
    case TypeKind::kVariant:
      for (std::size_t k = 0; k < format.children.size(); ++k) {
        const DataType part = type.Is(TypeKind::kVariant) ? DataType::Binary()
                              : k < 2                     ? DataType::Int()
                                                          : DataType::Long();
        KeyOf(part, format.children[k], index, key);
      }
      return;
    default:
      WithCarrier(type, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_floating_point_v<T>) {
          T value = At<T>(format, index);
          value = std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value == 0 ? T{0} : value;
          AppendBytes(key, value);
        } else if constexpr (std::is_same_v<T, Str>) {
          const Str text = At<Str>(format, index);
          AppendBytes(key, text.size());
          key.append(text);
        } else {
          AppendBytes(key, At<T>(format, index));
        }
        return 0;
      });
  }
}

void Elements::AppendKey(idx_t row, std::string& key) const { KeyOf(type_, format_, row, key); }

std::string Elements::SetKey(idx_t row) const {
  std::string key = Key(row);
  const idx_t index = format_.unified.sel->get_index(row);
  const bool minus =
      !IsNull(row) &&
      ((type_.Is(TypeKind::kDouble) && std::signbit(At<double>(format_, index)) && At<double>(format_, index) == 0) ||
       (type_.Is(TypeKind::kFloat) && std::signbit(At<float>(format_, index)) && At<float>(format_, index) == 0));
  if (minus) {
    key.push_back('-');
  }
  return key;
}

namespace {

/// Keys of maps have no -0.0. \param keys  flat
template <typename T>
void NormalizeZeros(duckdb::Vector& keys, idx_t count) {
  T* values = duckdb::FlatVector::GetData<T>(keys);
  for (idx_t i = 0; i < count; ++i) {
    if (values[i] == 0) {
      values[i] = 0;
    }
  }
}

}  // namespace

void ElementPicker::CopyInto(duckdb::Vector& target, idx_t start) const {
  if (picks_.empty()) {
    return;
  }
  duckdb::SelectionVector from(picks_.size());
  for (idx_t i = 0; i < picks_.size(); ++i) {
    from.set_index(i, picks_[i].index);
  }
  idx_t at = 0;
  while (at < picks_.size()) {
    idx_t end = at + 1;
    while (end < picks_.size() && picks_[end].source == picks_[at].source) {
      ++end;
    }
    if (picks_[at].source == nullptr) {
      for (idx_t i = at; i < end; ++i) {
        duckdb::FlatVector::SetNull(target, start + i, true);
      }
    } else {
      duckdb::VectorOperations::Copy(*picks_[at].source, target, from, end, at, start + at);
    }
    at = end;
  }
}

void ListBuilder::Finish() {
  duckdb::ListVector::Reserve(result_, picker_.size());
  picker_.CopyInto(duckdb::ListVector::GetEntry(result_), 0);
  duckdb::ListVector::SetListSize(result_, picker_.size());
}

void MapBuilder::Add(const Elements& keys, duckdb::Vector& key_source, idx_t key, duckdb::Vector* value_source,
                     idx_t value) {
  if (keys.IsNull(key)) {
    ThrowNullMapKey();
  }
  std::string bytes = keys.Key(key);
  for (const auto& [other, at] : seen_) {
    if (other == bytes) {
      if (!last_wins_) {
        const std::string shown = key_source.GetValue(key).ToString();
        ThrowRowError(
            Error(ErrorKind::kInvalidArgument, "DUPLICATED_MAP_KEY",
                  "Duplicate map key " + shown +
                      " was found, please check the input data. If you want to remove the duplicated keys, you "
                      "can set \"spark.sql.mapKeyDedupPolicy\" to \"LAST_WIN\" so that the key inserted at last "
                      "takes precedence.")
                .With("key", shown)
                .With("mapKeyDedupPolicy", "\"spark.sql.mapKeyDedupPolicy\"")
                .Family(ErrorFamily::kRuntime));
      }
      pairs_[at].value_source = value_source;
      pairs_[at].value = value;
      return;
    }
  }
  seen_.emplace_back(std::move(bytes), pairs_.size());
  pairs_.push_back({&key_source, key, value_source, value});
}

void MapBuilder::EndRow(idx_t row) {
  entries_[row] = duckdb::list_entry_t(begin_, pairs_.size() - begin_);
  begin_ = pairs_.size();
  seen_.clear();
}

void MapBuilder::NullRow(idx_t row) {
  pairs_.resize(begin_);
  EndRow(row);
  duckdb::FlatVector::SetNull(result_, row, true);
}

void MapBuilder::Finish() {
  ElementPicker keys;
  ElementPicker values;
  for (const Pair& pair : pairs_) {
    keys.Add(*pair.key_source, pair.key);
    if (pair.value_source == nullptr) {
      values.AddNull();
    } else {
      values.Add(*pair.value_source, pair.value);
    }
  }
  duckdb::ListVector::Reserve(result_, pairs_.size());
  auto& entries = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result_));
  keys.CopyInto(*entries[0], 0);
  if (key_type_.Is(TypeKind::kDouble) && !keep_zeros_) {
    NormalizeZeros<double>(*entries[0], pairs_.size());
  } else if (key_type_.Is(TypeKind::kFloat) && !keep_zeros_) {
    NormalizeZeros<float>(*entries[0], pairs_.size());
  }
  values.CopyInto(*entries[1], 0);
  duckdb::ListVector::SetListSize(result_, pairs_.size());
}

void ThrowNullMapKey() {
  ThrowRowError(
      Error(ErrorKind::kInvalidArgument, "NULL_MAP_KEY", "Cannot use null as map key.").Family(ErrorFamily::kRuntime));
}

void CheckArrayLength(std::int64_t length, const char* function) {
  constexpr std::int64_t kMost = 2147483632;
  if (length < 0 || length > kMost) {
    ThrowRowError(Error(ErrorKind::kInvalidArgument, "COLLECTION_SIZE_LIMIT_EXCEEDED.FUNCTION",
                        "Can't create array with " + std::to_string(length) +
                            " elements which exceeding the array size limit " + std::to_string(kMost) +
                            ", unsuccessful try to create arrays in the function `" + function + "`.")
                      .With("numberOfElements", std::to_string(length))
                      .With("maxRoundedArrayLength", std::to_string(kMost))
                      .With("functionName", "`" + std::string(function) + "`")
                      .Family(ErrorFamily::kRuntime));
  }
}

}  // namespace fleuve::engine
