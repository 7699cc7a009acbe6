// Variants from JSON texts and from values of Spark types.

#include <charconv>
#include <cstring>

#include "engine/carriers_internal.h"
#include "engine/files/json_scanner_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/variant_builder_internal.h"
#include "engine/functions/variant_internal.h"

namespace fleuve::engine {

using types::DataType;
using types::TypeKind;

namespace {

class VariantWriter : private VariantBuilder {
 public:
  explicit VariantWriter(const JsonOptions& options) : scanner_(options) {}

  std::optional<VariantBytes> Run(std::string_view json) {
    scanner_.Reset(json);
    VariantBytes out;
    if (!Append(out.value, 0) || scanner_.SkipBlank()) {
      return std::nullopt;
    }
    out.metadata = Metadata();
    return out;
  }

 private:
  bool Append(std::string& out, int depth) {
    if (depth > JsonScanner::kMaxDepth) {
      return false;
    }
    const JsonToken token = scanner_.Begin();
    switch (token) {
      case JsonToken::kNull:
        AppendNull(out);
        return true;
      case JsonToken::kTrue:
      case JsonToken::kFalse:
        AppendBoolean(token == JsonToken::kTrue, out);
        return true;
      case JsonToken::kString: {
        std::string_view text;
        if (!scanner_.String(&text)) {
          return false;
        }
        AppendText(text, out);
        return true;
      }
      case JsonToken::kInteger:
      case JsonToken::kFraction:
        AppendNumber(std::string(scanner_.number()), token == JsonToken::kInteger, out);
        return true;
      case JsonToken::kObject:
        return AppendObject(out, depth);
      case JsonToken::kArray:
        return AppendArray(out, depth);
      default:
        return false;
    }
  }

  static void AppendNumber(const std::string& text, bool whole, std::string& out) {
    if (whole) {
      std::int64_t value = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
      if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size()) {
        AppendWhole(value, out);
        return;
      }
    }
    if (text.find_first_not_of("-.0123456789") == std::string::npos) {
      auto decimal = types::DecimalFromString(text);
      if (decimal.ok() && decimal->second <= 38) {
        if (std::max(DecimalDigits(decimal->first), decimal->second) <= 38) {
          AppendDecimal(decimal->first, decimal->second, out);
          return;
        }
      }
    }
    AppendReal(std::strtod(text.c_str(), nullptr), out);
  }

  bool AppendObject(std::string& out, int depth) {
    scanner_.Open();
    std::vector<Member> members;
    while (true) {
      std::string_view name;
      const int next = scanner_.NextName(members.empty(), &name);
      if (next < 0) {
        return false;
      }
      if (next == 0) {
        break;
      }
      Member member{std::string(name), 0, {}};
      member.id = IdOf(member.name);
      if (!Append(member.value, depth + 1)) {
        return false;
      }
      members.push_back(std::move(member));
    }
    AppendMembers(std::move(members), out);
    return true;
  }

  bool AppendArray(std::string& out, int depth) {
    scanner_.Open();
    std::vector<std::string> items;
    while (true) {
      const int next = scanner_.NextElement(items.empty());
      if (next < 0) {
        return false;
      }
      if (next == 0) {
        break;
      }
      std::string item;
      if (!Append(item, depth + 1)) {
        return false;
      }
      items.push_back(std::move(item));
    }
    AppendItems(items, out);
    return true;
  }

  JsonScanner scanner_;
};

template <typename T>
auto At(const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

/// Values of Spark types as variants.
class ValueEncoder : private VariantBuilder {
 public:
  VariantBytes Run(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t row) {
    VariantBytes out;
    Append(type, format, row, out.value);
    out.metadata = Metadata();
    return out;
  }

 private:
  void Append(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, duckdb::idx_t row,
              std::string& out) {
    const duckdb::idx_t index = format.unified.sel->get_index(row);
    if (type.Is(TypeKind::kVoid) || !format.unified.validity.RowIsValid(index)) {
      AppendNull(out);
      return;
    }
    switch (type.kind()) {
      case TypeKind::kBoolean:
        return AppendBoolean(At<bool>(format, index), out);
      case TypeKind::kByte:
        return AppendWhole(At<std::int8_t>(format, index), out);
      case TypeKind::kShort:
        return AppendWhole(At<std::int16_t>(format, index), out);
      case TypeKind::kInt:
        return AppendWhole(At<std::int32_t>(format, index), out);
      case TypeKind::kLong:
        return AppendWhole(At<std::int64_t>(format, index), out);
      case TypeKind::kFloat:
        return AppendFloat(At<float>(format, index), out);
      case TypeKind::kDouble:
        return AppendReal(At<double>(format, index), out);
      case TypeKind::kDecimal:
        return AppendDecimal(
            WithDecimalCarrier(type.precision(),
                               [&](auto zero) -> types::Int128 { return At<decltype(zero)>(format, index); }),
            type.scale(), out);
      case TypeKind::kDate:
        return AppendFixed(kPrimitiveDate, At<std::int32_t>(format, index), 4, out);
      case TypeKind::kTimestamp:
        return AppendFixed(kPrimitiveTimestamp, At<std::int64_t>(format, index), 8, out);
      case TypeKind::kTimestampNtz:
        return AppendFixed(kPrimitiveTimestampNtz, At<std::int64_t>(format, index), 8, out);
      case TypeKind::kString:
      case TypeKind::kChar:
      case TypeKind::kVarchar:
        return AppendText(At<Str>(format, index), out);
      case TypeKind::kBinary:
        return AppendBytes(At<Str>(format, index), out);
      case TypeKind::kArray: {
        const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
        std::vector<std::string> items(entry.length);
        for (duckdb::idx_t i = 0; i < entry.length; ++i) {
          Append(type.element(), format.children[0], entry.offset + i, items[i]);
        }
        return AppendItems(items, out);
      }
      case TypeKind::kMap: {
        const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
        const auto& pairs = format.children[0];
        std::vector<Member> members;
        for (duckdb::idx_t i = 0; i < entry.length; ++i) {
          const duckdb::idx_t at = pairs.unified.sel->get_index(entry.offset + i);
          const duckdb::idx_t key = pairs.children[0].unified.sel->get_index(at);
          Member member{std::string(At<Str>(pairs.children[0], key)), 0, {}};
          member.id = IdOf(member.name);
          Append(type.value(), pairs.children[1], at, member.value);
          members.push_back(std::move(member));
        }
        return AppendMembers(std::move(members), out);
      }
      case TypeKind::kStruct: {
        std::vector<Member> members;
        for (std::size_t i = 0; i < type.fields().size(); ++i) {
          Member member{type.fields()[i].name, 0, {}};
          member.id = IdOf(member.name);
          Append(type.fields()[i].type, format.children[i], index, member.value);
          members.push_back(std::move(member));
        }
        return AppendMembers(std::move(members), out);
      }
      default:
        ThrowRowError(Error::Unsupported("a value of type " + type.Sql() + " as VARIANT"));
    }
  }
};

}  // namespace

VariantBytes VariantFromValue(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format,
                              duckdb::idx_t row) {
  return ValueEncoder().Run(type, format, row);
}

std::optional<VariantBytes> VariantFromJson(std::string_view json) {
  JsonOptions options;
  options.allow_single_quotes = false;
  options.allow_non_numeric = false;
  return VariantWriter(options).Run(json);
}

}  // namespace fleuve::engine
