#include <cmath>
#include <cstring>
#include <limits>

#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "engine/functions/elements_internal.h"
#include "engine/functions/tables_internal.h"

// Keys that DuckDB compares bytewise or as integers in Spark's order: NaN above everything and equal to itself, -0.0
// equal to 0.0, NULL inside arrays and structs first, a shorter array before a longer one that it begins.

namespace fleuve::engine {

namespace {

using duckdb::idx_t;
using types::DataType;
using types::TypeKind;
using Format = duckdb::RecursiveUnifiedVectorFormat;

template <typename T>
auto At(const Format& format, idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

/// The double as an integer in the same order.
std::int64_t OrderedBits(double value) {
  if (std::isnan(value)) {
    return std::numeric_limits<std::int64_t>::max();
  }
  value = value == 0 ? 0.0 : value;
  std::int64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits < 0 ? std::numeric_limits<std::int64_t>::min() - bits : bits;
}

template <typename T>
void AppendInteger(std::string& key, T value) {
  for (std::size_t byte = sizeof(T); byte > 0; --byte) {
    auto part = static_cast<unsigned char>(value >> ((byte - 1) * 8));
    if (byte == sizeof(T)) {
      part ^= 0x80;
    }
    key.push_back(static_cast<char>(part));
  }
}

/// The bytes with an end that sorts before every byte.
void AppendText(std::string& key, Str text) {
  for (const char c : text) {
    key.push_back(c);
    if (c == '\0') {
      key.push_back('\xff');
    }
  }
  key.append(2, '\0');
}

void AppendValue(std::string& key, const DataType& type, const Format& format, idx_t index);

void AppendRow(std::string& key, const DataType& type, const Format& format, idx_t row) {
  const idx_t index = format.unified.sel->get_index(row);
  if (!format.unified.validity.RowIsValid(index)) {
    key.push_back('\1');
    return;
  }
  key.push_back('\2');
  AppendValue(key, type, format, index);
}

void AppendValue(std::string& key, const DataType& type, const Format& format, idx_t index) {
  switch (type.kind()) {
    case TypeKind::kArray: {
      const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      for (idx_t k = 0; k < entry.length; ++k) {
        AppendRow(key, type.element(), format.children[0], entry.offset + k);
      }
      key.push_back('\0');
      return;
    }
    case TypeKind::kMap: {
      const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
      for (idx_t k = 0; k < entry.length; ++k) {
        AppendRow(key, type.key(), format.children[0].children[0], entry.offset + k);
        AppendRow(key, type.value(), format.children[0].children[1], entry.offset + k);
      }
      key.push_back('\0');
      return;
    }
    case TypeKind::kStruct:
      for (std::size_t k = 0; k < type.fields().size(); ++k) {
        AppendRow(key, type.fields()[k].type, format.children[k], index);
      }
      return;
    case TypeKind::kBoolean:
      key.push_back(At<bool>(format, index) ? '\1' : '\0');
      return;
    case TypeKind::kByte:
      return AppendInteger(key, At<std::int8_t>(format, index));
    case TypeKind::kShort:
      return AppendInteger(key, At<std::int16_t>(format, index));
    case TypeKind::kInt:
    case TypeKind::kDate:
    case TypeKind::kYearMonthInterval:
      return AppendInteger(key, At<std::int32_t>(format, index));
    case TypeKind::kFloat:
      return AppendInteger(key, OrderedBits(At<float>(format, index)));
    case TypeKind::kDouble:
      return AppendInteger(key, OrderedBits(At<double>(format, index)));
    case TypeKind::kDecimal:
      WithDecimalCarrier(type.precision(), [&](auto zero) {
        AppendInteger(key, At<decltype(zero)>(format, index));
        return 0;
      });
      return;
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return AppendText(key, At<Str>(format, index));
    case TypeKind::kLong:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
    case TypeKind::kDayTimeInterval:
      return AppendInteger(key, At<std::int64_t>(format, index));
    default:
      ThrowRowError(Error::Internal("values of type " + type.SimpleString() + " have no order"));
  }
}

/// spark_order_key(array or struct): BINARY.
Result<Kernel> MakeOrderKey(const ScalarSite& site) {
  return Kernel([type = site.ArgumentType(0)](duckdb::DataChunk& args, duckdb::Vector& result) {
    const idx_t count = args.size();
    args.data[0].Flatten(count);
    Format format;
    duckdb::Vector::RecursiveToUnifiedFormat(args.data[0], count, format);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    std::string key;
    for (idx_t row = 0; row < count; ++row) {
      const idx_t index = format.unified.sel->get_index(row);
      if (!format.unified.validity.RowIsValid(index)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      key.clear();
      AppendValue(key, type, format, index);
      out[row] = duckdb::StringVector::AddStringOrBlob(result, key.data(), key.size());
    }
  });
}

/// spark_order_number(float or double): BIGINT.
Result<Kernel> MakeOrderNumber(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kFloat)) {
    return MapRows<std::int64_t, float>([](float x) { return OrderedBits(x); });
  }
  return MapRows<std::int64_t, double>([](double x) { return OrderedBits(x); });
}

template <typename T>
void NormalizeRows(duckdb::Vector& vector, idx_t count) {
  auto* data = duckdb::FlatVector::GetData<T>(vector);
  for (idx_t i = 0; i < count; ++i) {
    data[i] = std::isnan(data[i]) ? std::numeric_limits<T>::quiet_NaN() : data[i] == 0 ? T{0} : data[i];
  }
}

/// In a flat vector.
void Normalize(duckdb::Vector& vector, idx_t count, const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kFloat:
      return NormalizeRows<float>(vector, count);
    case TypeKind::kDouble:
      return NormalizeRows<double>(vector, count);
    case TypeKind::kArray:
      return Normalize(duckdb::ListVector::GetEntry(vector), duckdb::ListVector::GetListSize(vector), type.element());
    case TypeKind::kMap: {
      const idx_t entries = duckdb::ListVector::GetListSize(vector);
      auto& pairs = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(vector));
      Normalize(*pairs[0], entries, type.key());
      Normalize(*pairs[1], entries, type.value());
      return;
    }
    case TypeKind::kStruct: {
      auto& fields = duckdb::StructVector::GetEntries(vector);
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        Normalize(*fields[i], count, type.fields()[i].type);
      }
      return;
    }
    default:
      return;
  }
}

/// spark_normalize_number(x): one NaN and no -0.0 in it.
Result<Kernel> MakeNormalize(const ScalarSite& site) {
  return Kernel([type = site.ArgumentType(0)](duckdb::DataChunk& args, duckdb::Vector& result) {
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    duckdb::VectorOperations::Copy(args.data[0], result, args.size(), 0, 0);
    Normalize(result, args.size(), type);
  });
}

}  // namespace

const ScalarTable& OrderKeyKernels() {
  static const auto* table = new ScalarTable{
      {"spark_order_key", Nulls::kPropagate, MakeOrderKey},
      {"spark_order_number", Nulls::kPropagate, MakeOrderNumber},
      {"spark_normalize_number", Nulls::kPropagate, MakeNormalize},
  };
  return *table;
}

}  // namespace fleuve::engine
