#include "types/collated_fields_internal.h"
#include "types/collation.h"
#include "types/parts.h"

namespace fleuve::types {

namespace {

/// `type` with every string that belongs to its field replaced by what `replace` makes of it and its path.
template <typename Replace>
DataType MapStrings(const DataType& type, const std::string& path, const Replace& replace) {
  switch (type.kind()) {
    case TypeKind::kString:
      return replace(type, path);
    case TypeKind::kArray:
      return DataType::Array(MapStrings(type.element(), path + ".element", replace), type.contains_null());
    case TypeKind::kMap:
      return DataType::Map(MapStrings(type.key(), path + ".key", replace),
                           MapStrings(type.value(), path + ".value", replace), type.contains_null());
    default:
      return type;
  }
}

}  // namespace

const std::string* CollationIn(const DataType& type) {
  const std::string* found = nullptr;
  AnyPart(type, [&found](const DataType& part) {
    const bool collated = part.Is(TypeKind::kString) && !part.collation().empty() && part.collation() != "UTF8_BINARY";
    found = collated ? &part.collation() : nullptr;
    return collated;
  });
  return found;
}

DataType WithCollations(const DataType& type, const std::string& path, const Json& named) {
  return MapStrings(type, path, [&named](const DataType& text, const std::string& at) {
    const Json* full = named.Find(at);
    if (full == nullptr || !full->is_string()) {
      return text;
    }
    // provider.NAME, or provider.NAME.version
    const std::string& name = full->AsString();
    const std::size_t begin = name.find('.') + 1;
    return DataType::String(name.substr(begin, name.find('.', begin) - begin));
  });
}

DataType WithoutCollations(const DataType& type, const std::string& path, Json* named) {
  return MapStrings(type, path, [named](const DataType& text, const std::string& at) {
    const std::string* name = CollationIn(text);
    if (name == nullptr) {
      return text;
    }
    named->Set(at, (name->starts_with("UTF8_") ? "spark." : "icu.") + *name);
    return DataType::String();
  });
}

}  // namespace fleuve::types
