#include <cstring>

#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

using duckdb::idx_t;
using types::DataType;
using types::TypeKind;

namespace {

bool BitAt(const std::uint8_t* bits, std::int64_t at) { return ((bits[at / 8] >> (at % 8)) & 1) != 0; }

/// Marks NULL rows. A NULL struct has NULL fields: DuckDB relies on it.
void SetNulls(const ArrowArray& array, std::int64_t first, idx_t count, duckdb::Vector& out) {
  if (array.null_count == 0 || array.n_buffers == 0 || array.buffers[0] == nullptr) {
    return;
  }
  const auto* bits = static_cast<const std::uint8_t*>(array.buffers[0]);
  for (idx_t i = 0; i < count; i++) {
    if (!BitAt(bits, first + static_cast<std::int64_t>(i))) {
      duckdb::FlatVector::SetNull(out, i, true);
    }
  }
}

template <typename T>
void CopyDecimals(const types::Int128* values, idx_t count, duckdb::Vector& out) {
  auto* to = duckdb::FlatVector::GetData<T>(out);
  for (idx_t i = 0; i < count; i++) {
    types::Int128 value;
    std::memcpy(&value, values + i, sizeof(value));
    to[i] = static_cast<T>(value);
  }
}

}  // namespace

void ArrowToVector(const ArrowArray& array, const DataType& type, idx_t offset, idx_t count, duckdb::Vector& out) {
  const std::int64_t first = array.offset + static_cast<std::int64_t>(offset);
  const auto fixed = [&](std::size_t width) {
    if (count == 0) {
      return;  // an empty array may have no buffer
    }
    std::memcpy(duckdb::FlatVector::GetData(out),
                static_cast<const std::uint8_t*>(array.buffers[1]) + static_cast<std::size_t>(first) * width,
                count * width);
  };
  switch (type.kind()) {
    case TypeKind::kVoid:
      out.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
      duckdb::ConstantVector::SetNull(out, true);
      return;
    case TypeKind::kBoolean: {
      const auto* bits = static_cast<const std::uint8_t*>(array.buffers[1]);
      auto* to = duckdb::FlatVector::GetData<bool>(out);
      for (idx_t i = 0; i < count; i++) {
        to[i] = BitAt(bits, first + static_cast<std::int64_t>(i));
      }
      break;
    }
    case TypeKind::kByte:
      fixed(1);
      break;
    case TypeKind::kShort:
      fixed(2);
      break;
    case TypeKind::kInt:
    case TypeKind::kFloat:
    case TypeKind::kDate:
    case TypeKind::kYearMonthInterval:
      fixed(4);
      break;
    case TypeKind::kLong:
    case TypeKind::kDouble:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
    case TypeKind::kDayTimeInterval:
      fixed(8);
      break;
    case TypeKind::kDecimal: {
      const auto* values = static_cast<const types::Int128*>(array.buffers[1]) + first;
      switch (out.GetType().InternalType()) {
        case duckdb::PhysicalType::INT16:
          CopyDecimals<std::int16_t>(values, count, out);
          break;
        case duckdb::PhysicalType::INT32:
          CopyDecimals<std::int32_t>(values, count, out);
          break;
        case duckdb::PhysicalType::INT64:
          CopyDecimals<std::int64_t>(values, count, out);
          break;
        default: {
          auto* to = duckdb::FlatVector::GetData<duckdb::hugeint_t>(out);
          for (idx_t i = 0; i < count; i++) {
            types::Int128 value;
            std::memcpy(&value, values + i, sizeof(value));
            to[i] = ToHugeint(value);
          }
        }
      }
      break;
    }
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary: {
      const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]) + first;
      const auto* data = static_cast<const char*>(array.buffers[2]);
      auto* to = duckdb::FlatVector::GetData<duckdb::string_t>(out);
      for (idx_t i = 0; i < count; i++) {
        to[i] = duckdb::string_t(data == nullptr ? "" : data + offsets[i],
                                 static_cast<std::uint32_t>(offsets[i + 1] - offsets[i]));
      }
      break;
    }
    case TypeKind::kCalendarInterval: {
      auto& parts = duckdb::StructVector::GetEntries(out);
      auto* months = duckdb::FlatVector::GetData<std::int32_t>(*parts[0]);
      auto* days = duckdb::FlatVector::GetData<std::int32_t>(*parts[1]);
      auto* micros = duckdb::FlatVector::GetData<std::int64_t>(*parts[2]);
      const auto* from = static_cast<const std::uint8_t*>(array.buffers[1]) + first * 16;
      for (idx_t i = 0; i < count; i++) {
        std::int64_t nanos = 0;
        std::memcpy(&months[i], from + i * 16, 4);
        std::memcpy(&days[i], from + i * 16 + 4, 4);
        std::memcpy(&nanos, from + i * 16 + 8, 8);
        micros[i] = nanos / 1000;
      }
      break;
    }
    case TypeKind::kArray:
    case TypeKind::kMap: {
      const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]) + first;
      auto* to = duckdb::FlatVector::GetData<duckdb::list_entry_t>(out);
      const std::int32_t begin = offsets == nullptr || count == 0 ? 0 : offsets[0];
      const std::int32_t end = count == 0 ? begin : offsets[count];
      for (idx_t i = 0; i < count; i++) {
        to[i].offset = static_cast<idx_t>(offsets[i] - begin);
        to[i].length = static_cast<idx_t>(offsets[i + 1] - offsets[i]);
      }
      const auto size = static_cast<idx_t>(end - begin);
      duckdb::ListVector::Reserve(out, size);
      duckdb::ListVector::SetListSize(out, size);
      auto& child = duckdb::ListVector::GetEntry(out);
      if (type.Is(TypeKind::kArray)) {
        ArrowToVector(*array.children[0], type.element(), static_cast<idx_t>(begin), size, child);
      } else {
        const auto& entries = *array.children[0];
        auto& parts = duckdb::StructVector::GetEntries(child);
        const auto at = static_cast<idx_t>(entries.offset) + static_cast<idx_t>(begin);
        ArrowToVector(*entries.children[0], type.key(), at, size, *parts[0]);
        ArrowToVector(*entries.children[1], type.value(), at, size, *parts[1]);
        if (parts[1]->GetVectorType() != duckdb::VectorType::FLAT_VECTOR) {
          parts[1]->Flatten(size);
        }
      }
      if (child.GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR) {
        child.Flatten(size);
      }
      break;
    }
    case TypeKind::kStruct: {
      auto& parts = duckdb::StructVector::GetEntries(out);
      for (std::size_t i = 0; i < type.fields().size(); i++) {
        ArrowToVector(*array.children[i], type.fields()[i].type, static_cast<idx_t>(first), count, *parts[i]);
        if (parts[i]->GetVectorType() != duckdb::VectorType::FLAT_VECTOR) {
          parts[i]->Flatten(count);
        }
      }
      if (type.fields().empty()) {
        std::memset(duckdb::FlatVector::GetData(*parts[0]), 0, count * 4);
      }
      break;
    }
    case TypeKind::kVariant: {
      auto& parts = duckdb::StructVector::GetEntries(out);
      for (std::size_t i = 0; i < 2; i++) {
        ArrowToVector(*array.children[i], DataType::Binary(), static_cast<idx_t>(first), count, *parts[i]);
      }
      break;
    }
    case TypeKind::kTime:
      RaiseError(Error::Unsupported("values of type time"));
  }
  SetNulls(array, first, count, out);
}

}  // namespace fleuve::engine
