#include "base/bytes.h"
#include "engine/functions/avro_vectors_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/legacy_calendar_internal.h"

namespace fleuve::engine {

using avro::Kind;
using avro::Logical;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::ListVector;
using duckdb::StructVector;
using duckdb::Vector;
using types::DataType;
using types::TypeKind;

namespace {

/// 1582-10-15, the first day of the Gregorian calendar; from 1900-01-01T00:00:00Z on every zone's clocks agree.
constexpr std::int64_t kGregorianDay = -141427;
constexpr std::int64_t kSameInstants = -2208988800000000;
constexpr std::int64_t kMillisPerDay = 86'400'000;

bool Fits(const avro::Node& node, const DataType& type) {
  switch (node.kind) {
    case Kind::kNull:
      return type.Is(TypeKind::kVoid);
    case Kind::kBoolean:
      return type.Is(TypeKind::kBoolean);
    case Kind::kInt:
      return type.Is(TypeKind::kInt) || type.Is(TypeKind::kDate) || type.Is(TypeKind::kYearMonthInterval) ||
             type.Is(TypeKind::kLong) || type.Is(TypeKind::kDouble);
    case Kind::kLong:
      return type.Is(TypeKind::kLong) || type.Is(TypeKind::kTimestamp) || type.Is(TypeKind::kTimestampNtz) ||
             type.Is(TypeKind::kDate) || type.Is(TypeKind::kDayTimeInterval) ||
             (type.Is(TypeKind::kDecimal) && node.logical == Logical::kCustomDecimal);
    case Kind::kFloat:
      return type.Is(TypeKind::kFloat) || type.Is(TypeKind::kDouble);
    case Kind::kDouble:
      return type.Is(TypeKind::kDouble);
    case Kind::kBytes:
    case Kind::kFixed:
      return type.Is(TypeKind::kBinary) || (type.Is(TypeKind::kDecimal) && node.logical == Logical::kDecimal);
    case Kind::kString:
    case Kind::kEnum:
      return type.IsString();
    default:
      return false;
  }
}

/// The child of a struct for one of its names; nullopt: more than one field of the record is meant.
std::optional<int> ChildOf(const avro::Node& record, const DataType& type, const std::string& name,
                           bool case_sensitive) {
  int same = 0;
  for (const avro::Field& field : record.fields) {
    same += field.name == name || (!case_sensitive && EqualsIgnoreAsciiCase(field.name, name)) ? 1 : 0;
  }
  for (std::size_t i = 0; i < type.fields().size(); ++i) {
    if (type.fields()[i].name == name) {
      return same > 1 ? std::nullopt : std::optional(static_cast<int>(i));
    }
  }
  return -1;
}

template <typename T>
bool Put(AvroVectors::Place place, T value) {
  FlatVector::GetData<T>(*place.vector)[place.row] = value;
  return true;
}

bool PutDecimal(AvroVectors::Place place, types::Int128 value) {
  const int precision = place.column->type.precision();
  const types::Int128 bound = PowerOfTen(precision);
  if (value >= bound || value <= -bound) {
    return false;
  }
  return WithDecimalCarrier(precision, [&](auto carrier) {
    using T = decltype(carrier);
    if constexpr (std::is_same_v<T, types::Int128>) {
      return Put(place, ToHugeint(value));
    } else {
      return Put(place, static_cast<T>(value));
    }
  });
}

}  // namespace

std::optional<AvroColumn> CompileAvroColumn(const avro::Node& node, const DataType& type, bool case_sensitive) {
  AvroColumn column;
  column.type = type;
  column.logical = node.logical;
  const auto add = [&](const avro::Node& child, const DataType& child_type) {
    auto compiled = CompileAvroColumn(child, child_type, case_sensitive);
    if (compiled) {
      column.children.push_back(*std::move(compiled));
    }
    return compiled.has_value();
  };
  switch (node.kind) {
    case Kind::kRecord:
      for (const avro::Field& field : node.fields) {
        const auto child = ChildOf(node, type, field.name, case_sensitive);
        if (!type.Is(TypeKind::kStruct) || !child) {
          return std::nullopt;
        }
        column.places.push_back(*child < 0 ? -1 : static_cast<int>(column.children.size()));
        if (*child >= 0 && !add(*field.type, type.fields()[static_cast<std::size_t>(*child)].type)) {
          return std::nullopt;
        }
      }
      return column;
    case Kind::kArray:
      return type.Is(TypeKind::kArray) && add(*node.children[0], type.element()) ? std::optional(column) : std::nullopt;
    case Kind::kMap:
      return type.Is(TypeKind::kMap) && add(*node.children[0], type.value()) ? std::optional(column) : std::nullopt;
    case Kind::kUnion: {
      const std::vector<const avro::Node*> branches = node.NonNull();
      if (!avro::IsMemberUnion(node)) {
        return branches.size() == 1 ? CompileAvroColumn(*branches[0], type, case_sensitive) : column;
      }
      if (!type.Is(TypeKind::kStruct) || type.fields().size() != branches.size()) {
        return std::nullopt;
      }
      column.members = true;
      for (const avro::Node* branch : node.children) {
        const std::size_t next = column.children.size();
        column.places.push_back(branch->kind == Kind::kNull ? -1 : static_cast<int>(next));
        if (branch->kind != Kind::kNull && !add(*branch, type.fields()[next].type)) {
          return std::nullopt;
        }
      }
      return column;
    }
    default:
      return Fits(node, type) ? std::optional(column) : std::nullopt;
  }
}

std::optional<types::Int128> AvroDecimal(std::string_view bytes) {
  const auto is_negative = [](char byte) { return (static_cast<unsigned char>(byte) & 0x80) != 0; };
  const bool negative = !bytes.empty() && is_negative(bytes[0]);
  while (bytes.size() > sizeof(types::Int128) && bytes[0] == (negative ? '\xff' : '\0') &&
         is_negative(bytes[1]) == negative) {
    bytes.remove_prefix(1);
  }
  if (bytes.empty() || bytes.size() > sizeof(types::Int128)) {
    return std::nullopt;
  }
  types::Int128 value = negative ? -1 : 0;
  for (const char byte : bytes) {
    value = static_cast<types::Int128>(static_cast<unsigned __int128>(value) << 8) | static_cast<unsigned char>(byte);
  }
  return value;
}

bool AvroVectors::Null(Place place) {
  FlatVector::SetNull(*place.vector, place.row, true);
  return true;
}

bool AvroVectors::Boolean(Place place, bool value) { return Put(place, value); }

bool AvroVectors::Date(Place place, std::int64_t days) {
  if (days < kGregorianDay && calendar_ != plan::AvroCalendar::kCorrected) {
    if (calendar_ == plan::AvroCalendar::kException) {
      return false;
    }
    days = ProlepticDay(days);
  }
  return Put(place, static_cast<std::int32_t>(days));
}

bool AvroVectors::Int(Place place, std::int32_t value) {
  switch (place.column->type.kind()) {
    case TypeKind::kDate:
      return Date(place, value);
    case TypeKind::kLong:
      return Put(place, std::int64_t{value});
    case TypeKind::kDouble:
      return Put(place, static_cast<double>(value));
    default:
      return Put(place, value);
  }
}

bool AvroVectors::Timestamp(Place place, std::int64_t value, bool rebase) {
  const Logical logical = place.column->logical;
  const bool micros = logical == Logical::kTimestampMicros || logical == Logical::kLocalTimestampMicros;
  if (!micros && __builtin_mul_overflow(value, std::int64_t{1000}, &value)) {
    return false;
  }
  if (rebase && value < kSameInstants && calendar_ != plan::AvroCalendar::kCorrected) {
    if (calendar_ == plan::AvroCalendar::kException) {
      return false;
    }
    value = ProlepticMicros(value, *zone_);
  }
  return Put(place, value);
}

bool AvroVectors::Long(Place place, std::int64_t value) {
  switch (place.column->type.kind()) {
    case TypeKind::kTimestamp:
      return Timestamp(place, value, true);
    case TypeKind::kTimestampNtz:
      return Timestamp(place, value, false);
    case TypeKind::kDate:
      return Put(place, static_cast<std::int32_t>(value / kMillisPerDay));
    case TypeKind::kDecimal:
      return PutDecimal(place, value);
    default:
      return Put(place, value);
  }
}

bool AvroVectors::Float(Place place, float value) {
  return place.column->type.Is(TypeKind::kDouble) ? Put(place, static_cast<double>(value)) : Put(place, value);
}

bool AvroVectors::Double(Place place, double value) { return Put(place, value); }

bool AvroVectors::Bytes(Place place, std::string_view value) {
  if (place.column->type.Is(TypeKind::kDecimal)) {
    const auto number = AvroDecimal(value);
    return number && PutDecimal(place, *number);
  }
  return Text(place, value);
}

bool AvroVectors::Text(Place place, std::string_view value) {
  return Put(place, Physical<Str>::Write(*place.vector, value));
}

bool AvroVectors::BeginRecord(Place place, const avro::Node&) {
  if (place.column->children.empty()) {  // the hidden field of an empty struct
    FlatVector::SetNull(*StructVector::GetEntries(*place.vector)[0], place.row, true);
  }
  return true;
}

AvroVectors::Place AvroVectors::Field(Place place, const avro::Node&, std::size_t field) {
  const int child = place.column->places[field];
  if (child < 0) {
    return {};
  }
  const auto at = static_cast<std::size_t>(child);
  return {&place.column->children[at], StructVector::GetEntries(*place.vector)[at].get(), place.row};
}

bool AvroVectors::BeginList(Place place) {
  return Put(place, duckdb::list_entry_t(ListVector::GetListSize(*place.vector), 0));
}

AvroVectors::Place AvroVectors::Item(Place place) {
  const idx_t row = ListVector::GetListSize(*place.vector);
  ListVector::Reserve(*place.vector, row + 1);
  ListVector::SetListSize(*place.vector, row + 1);
  ++FlatVector::GetData<duckdb::list_entry_t>(*place.vector)[place.row].length;
  return {&place.column->children[0], &ListVector::GetEntry(*place.vector), row};
}

AvroVectors::Place AvroVectors::Entry(Place place, std::string_view key) {
  const Place item = Item(place);
  auto& pair = StructVector::GetEntries(*item.vector);
  FlatVector::GetData<duckdb::string_t>(*pair[0])[item.row] = Physical<Str>::Write(*pair[0], key);
  return {item.column, pair[1].get(), item.row};
}

AvroVectors::Place AvroVectors::Branch(Place place, const avro::Node&, int branch) {
  if (!place.column->members) {
    return place;
  }
  const int child = place.column->places[static_cast<std::size_t>(branch)];
  if (child < 0) {
    return place;
  }
  auto& entries = StructVector::GetEntries(*place.vector);
  const auto at = static_cast<std::size_t>(child);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (i != at) {
      FlatVector::SetNull(*entries[i], place.row, true);
    }
  }
  return {&place.column->children[at], entries[at].get(), place.row};
}

}  // namespace fleuve::engine
