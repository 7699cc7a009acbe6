#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "connectors/delta/delta_source_internal.h"

namespace fleuve::connectors::delta {

namespace {

using types::DataType;
using types::TypeKind;

bool Widens(const DataType& from, const DataType& to) {
  const auto digits = [](TypeKind kind) {
    return kind == TypeKind::kByte ? 3 : kind == TypeKind::kShort ? 5 : kind == TypeKind::kInt ? 10 : 20;
  };
  if (from.IsIntegral()) {
    if (to.IsIntegral()) {
      return digits(from.kind()) <= digits(to.kind());
    }
    if (to.Is(TypeKind::kDouble)) {
      return !from.Is(TypeKind::kLong);
    }
    return to.Is(TypeKind::kDecimal) && to.precision() - to.scale() >= (from.Is(TypeKind::kLong) ? 20 : 10);
  }
  if (from.Is(TypeKind::kFloat)) {
    return to.Is(TypeKind::kDouble);
  }
  if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal)) {
    return to.scale() >= from.scale() && to.precision() - to.scale() >= from.precision() - from.scale();
  }
  return from.Is(TypeKind::kDate) && to.Is(TypeKind::kTimestampNtz);
}

bool TypeReadable(const DataType& existing, const DataType& read) {
  if (existing.kind() != read.kind()) {
    return Widens(existing, read);
  }
  switch (existing.kind()) {
    case TypeKind::kStruct:
      return IsReadable(existing, read);
    case TypeKind::kArray:
      return (read.contains_null() || !existing.contains_null()) && TypeReadable(existing.element(), read.element());
    case TypeKind::kMap:
      return (read.contains_null() || !existing.contains_null()) && TypeReadable(existing.key(), read.key()) &&
             TypeReadable(existing.value(), read.value());
    default:
      return existing.EqualsIgnoringNullability(read) || Widens(existing, read);
  }
}

std::string PhysicalName(const types::StructField& field) {
  const Json& name = field.metadata["delta.columnMapping.physicalName"];
  return name.is_string() ? name.AsString() : field.name;
}

bool RenamedOrDropped(const DataType& before, const DataType& after) {
  if (before.kind() != after.kind()) {
    return false;
  }
  if (before.Is(TypeKind::kStruct)) {
    std::map<std::string, const types::StructField*> now;
    for (const auto& field : after.fields()) {
      now[PhysicalName(field)] = &field;
    }
    for (const auto& field : before.fields()) {
      const auto it = now.find(PhysicalName(field));
      if (it == now.end() || it->second->name != field.name || RenamedOrDropped(field.type, it->second->type)) {
        return true;
      }
    }
    return false;
  }
  if (before.Is(TypeKind::kArray)) {
    return RenamedOrDropped(before.element(), after.element());
  }
  if (before.Is(TypeKind::kMap)) {
    return RenamedOrDropped(before.key(), after.key()) || RenamedOrDropped(before.value(), after.value());
  }
  return false;
}

bool HasMapping(const dl::Metadata& metadata) {
  const std::string* mode = dl::FindIn(metadata.configuration, "delta.columnMapping.mode");
  return mode != nullptr && *mode != "none";
}

}  // namespace

bool IsWidening(const DataType& from, const DataType& to) { return Widens(from, to); }

bool HasWidening(const DataType& a, const DataType& b) {
  if (a.kind() == b.kind() && a.Is(TypeKind::kStruct)) {
    return std::any_of(a.fields().begin(), a.fields().end(), [&](const types::StructField& field) {
      const auto at = types::FieldIndex(b, field.name);
      return at && HasWidening(field.type, b.fields()[*at].type);
    });
  }
  if (a.kind() == b.kind() && a.Is(TypeKind::kArray)) {
    return HasWidening(a.element(), b.element());
  }
  if (a.kind() == b.kind() && a.Is(TypeKind::kMap)) {
    return HasWidening(a.key(), b.key()) || HasWidening(a.value(), b.value());
  }
  return !a.EqualsIgnoringNullability(b) && (Widens(a, b) || Widens(b, a));
}

bool IsReadable(const types::Schema& existing, const types::Schema& read) {
  for (const auto& field : existing.fields()) {
    const auto index = types::FieldIndex(read, field.name);
    if (!index || read.fields()[*index].name != field.name) {
      return false;
    }
    const auto& other = read.fields()[*index];
    if (!other.nullable && field.nullable) {
      return false;
    }
    if (!TypeReadable(field.type, other.type)) {
      return false;
    }
  }
  return true;
}

bool HasRenameOrDrop(const dl::Metadata& before, const dl::Metadata& after) {
  const bool mapped_before = HasMapping(before);
  const bool mapped_after = HasMapping(after);
  if (!mapped_before && !mapped_after) {
    return false;
  }
  if (mapped_before && !mapped_after) {
    return true;
  }
  if (before.partition_columns != after.partition_columns) {
    return true;
  }
  auto old_json = Json::Parse(before.schema_string);
  auto new_json = Json::Parse(after.schema_string);
  if (!old_json.ok() || !new_json.ok()) {
    return false;
  }
  auto old_schema = DataType::FromJson(*old_json);
  auto new_schema = DataType::FromJson(*new_json);
  return old_schema.ok() && new_schema.ok() && RenamedOrDropped(*old_schema, *new_schema);
}

}  // namespace fleuve::connectors::delta
