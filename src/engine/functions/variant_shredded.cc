#include <optional>

#include "engine/functions/rows_internal.h"
#include "engine/functions/variant_builder_internal.h"
#include "engine/functions/variant_shredded_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

using duckdb::idx_t;
using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using Format = duckdb::RecursiveUnifiedVectorFormat;

namespace {

[[noreturn]] void ThrowMalformed() {
  ThrowRowError(Error(ErrorKind::kCorrupt, "MALFORMED_VARIANT",
                      "Variant binary is malformed. Please check the data source is valid.")
                    .Family(ErrorFamily::kRuntime));
}

}  // namespace

/// A group with its parts found.
struct VariantAssembler::Node {
  std::optional<std::size_t> value;  ///< which child of the group
  std::optional<std::size_t> typed;
  LogicalType type;  ///< of `typed_value`
  /// Where `typed_value` is an object or an array.
  std::vector<std::pair<std::string, std::shared_ptr<const Node>>> fields;
  std::shared_ptr<const Node> element;
};

namespace {

using Node = VariantAssembler::Node;

bool IsScalar(const LogicalType& type) {
  switch (type.id()) {
    case LogicalTypeId::BOOLEAN:
    case LogicalTypeId::TINYINT:
    case LogicalTypeId::SMALLINT:
    case LogicalTypeId::INTEGER:
    case LogicalTypeId::BIGINT:
    case LogicalTypeId::FLOAT:
    case LogicalTypeId::DOUBLE:
    case LogicalTypeId::DECIMAL:
    case LogicalTypeId::DATE:
    case LogicalTypeId::TIMESTAMP:
    case LogicalTypeId::TIMESTAMP_TZ:
    case LogicalTypeId::VARCHAR:
    case LogicalTypeId::BLOB:
      return true;
    default:
      return false;
  }
}

std::shared_ptr<const Node> NodeOf(const LogicalType& group) {
  auto node = std::make_shared<Node>();
  if (group.id() != LogicalTypeId::STRUCT) {
    RaiseError(Error::Unsupported("a shredded variant with a part of type " + group.ToString()));
  }
  const auto& parts = duckdb::StructType::GetChildTypes(group);
  for (std::size_t i = 0; i < parts.size(); i++) {
    if (parts[i].first == "value" && parts[i].second.id() == LogicalTypeId::BLOB) {
      node->value = i;
    } else if (parts[i].first == "typed_value") {
      node->typed = i;
      node->type = parts[i].second;
    }
  }
  if (!node->typed.has_value()) {
    return node;
  }
  if (node->type.id() == LogicalTypeId::STRUCT) {
    for (const auto& [name, type] : duckdb::StructType::GetChildTypes(node->type)) {
      node->fields.emplace_back(name, NodeOf(type));
    }
  } else if (node->type.id() == LogicalTypeId::LIST) {
    node->element = NodeOf(duckdb::ListType::GetChildType(node->type));
  } else if (!IsScalar(node->type)) {
    RaiseError(Error::Unsupported("a shredded variant with values of type " + node->type.ToString()));
  }
  return node;
}

template <typename T>
auto At(const Format& format, idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

/// The place of a row in the data of a vector; nullopt for NULL.
std::optional<idx_t> IndexOf(const Format& format, idx_t row) {
  const idx_t index = format.unified.sel->get_index(row);
  return format.unified.validity.RowIsValid(index) ? std::optional<idx_t>(index) : std::nullopt;
}

class RowAssembler : private VariantBuilder {
 public:
  VariantBytes Run(const Node& node, const Format& group, idx_t index, std::string_view metadata) {
    VariantBytes out;
    if (!Append(node, group, index, metadata, out.value)) {
      ThrowMalformed();
    }
    out.metadata = Metadata();
    return out;
  }

 private:
  /// False where neither part is there: the field is missing.
  bool Append(const Node& node, const Format& group, idx_t index, std::string_view metadata, std::string& out) {
    const auto value = node.value ? IndexOf(group.children[*node.value], index) : std::nullopt;
    const auto typed = node.typed ? IndexOf(group.children[*node.typed], index) : std::nullopt;
    const auto rest = [&] { return VariantView(At<Str>(group.children[*node.value], *value), metadata); };
    if (!typed.has_value()) {
      if (value.has_value()) {
        AppendView(rest(), out);
      }
      return value.has_value();
    }
    const Format& content = group.children[*node.typed];
    if (node.type.id() == LogicalTypeId::STRUCT) {
      AppendObject(node, content, *typed, value ? std::optional<VariantView>(rest()) : std::nullopt, metadata, out);
      return true;
    }
    if (value.has_value()) {
      ThrowMalformed();
    }
    if (node.element != nullptr) {
      const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(content.unified)[*typed];
      std::vector<std::string> items(entry.length);
      for (idx_t i = 0; i < entry.length; i++) {
        const auto at = IndexOf(content.children[0], entry.offset + i);
        if (!at.has_value() || !Append(*node.element, content.children[0], *at, metadata, items[i])) {
          ThrowMalformed();
        }
      }
      AppendItems(items, out);
      return true;
    }
    AppendScalar(node.type, content, *typed, out);
    return true;
  }

  void AppendObject(const Node& node, const Format& fields, idx_t index, const std::optional<VariantView>& rest,
                    std::string_view metadata, std::string& out) {
    std::vector<Member> members;
    for (std::size_t i = 0; i < node.fields.size(); i++) {
      const auto& [name, field] = node.fields[i];
      const auto at = IndexOf(fields.children[i], index);
      Member member{name, 0, {}};
      if (at.has_value() && Append(*field, fields.children[i], *at, metadata, member.value)) {
        member.id = IdOf(name);
        members.push_back(std::move(member));
      }
    }
    if (rest.has_value()) {
      if (rest->kind() != VariantKind::kObject) {
        ThrowMalformed();
      }
      for (std::size_t i = 0, count = rest->size(); i < count; i++) {
        Member member{std::string(rest->name(i)), 0, {}};
        const bool shredded = std::any_of(node.fields.begin(), node.fields.end(),
                                          [&](const auto& field) { return field.first == member.name; });
        if (shredded) {
          ThrowMalformed();
        }
        member.id = IdOf(member.name);
        AppendView(rest->child(i), member.value);
        members.push_back(std::move(member));
      }
    }
    AppendMembers(std::move(members), out);
  }

  static void AppendScalar(const LogicalType& type, const Format& format, idx_t index, std::string& out) {
    switch (type.id()) {
      case LogicalTypeId::BOOLEAN:
        return AppendBoolean(At<bool>(format, index), out);
      case LogicalTypeId::TINYINT:
        return AppendWhole(At<std::int8_t>(format, index), out);
      case LogicalTypeId::SMALLINT:
        return AppendWhole(At<std::int16_t>(format, index), out);
      case LogicalTypeId::INTEGER:
        return AppendWhole(At<std::int32_t>(format, index), out);
      case LogicalTypeId::BIGINT:
        return AppendWhole(At<std::int64_t>(format, index), out);
      case LogicalTypeId::FLOAT:
        return AppendFloat(At<float>(format, index), out);
      case LogicalTypeId::DOUBLE:
        return AppendReal(At<double>(format, index), out);
      case LogicalTypeId::DECIMAL: {
        const int scale = duckdb::DecimalType::GetScale(type);
        switch (type.InternalType()) {
          case duckdb::PhysicalType::INT16:
            return AppendDecimal(At<std::int16_t>(format, index), scale, out);
          case duckdb::PhysicalType::INT32:
            return AppendDecimal(At<std::int32_t>(format, index), scale, out);
          case duckdb::PhysicalType::INT64:
            return AppendDecimal(At<std::int64_t>(format, index), scale, out);
          default:
            return AppendDecimal(At<Int128>(format, index), scale, out);
        }
      }
      case LogicalTypeId::DATE:
        return AppendFixed(kPrimitiveDate, At<std::int32_t>(format, index), 4, out);
      case LogicalTypeId::TIMESTAMP:
        return AppendFixed(kPrimitiveTimestampNtz, At<std::int64_t>(format, index), 8, out);
      case LogicalTypeId::TIMESTAMP_TZ:
        return AppendFixed(kPrimitiveTimestamp, At<std::int64_t>(format, index), 8, out);
      case LogicalTypeId::VARCHAR:
        return AppendText(At<Str>(format, index), out);
      default:
        return AppendBytes(At<Str>(format, index), out);
    }
  }
};

}  // namespace

VariantAssembler::VariantAssembler(const LogicalType& group) : root_(NodeOf(group)) {
  const auto& parts = duckdb::StructType::GetChildTypes(group);
  while (metadata_ < parts.size() && parts[metadata_].first != "metadata") {
    metadata_++;
  }
  if (metadata_ == parts.size()) {
    RaiseError(Error::Internal("a variant group without metadata"));
  }
}

void VariantAssembler::Assemble(duckdb::Vector& groups, idx_t count, duckdb::Vector& out) const {
  Format format;
  duckdb::Vector::RecursiveToUnifiedFormat(groups, count, format);
  out.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
  auto& parts = duckdb::StructVector::GetEntries(out);
  const auto put = [&](idx_t row, std::string_view value, std::string_view metadata) {
    duckdb::FlatVector::GetData<duckdb::string_t>(*parts[0])[row] = Physical<Str>::Write(*parts[0], value);
    duckdb::FlatVector::GetData<duckdb::string_t>(*parts[1])[row] = Physical<Str>::Write(*parts[1], metadata);
  };
  for (idx_t row = 0; row < count; row++) {
    const auto group = IndexOf(format, row);
    if (!group.has_value()) {
      duckdb::FlatVector::SetNull(out, row, true);
      continue;
    }
    const auto at = IndexOf(format.children[metadata_], *group);
    if (!at.has_value()) {
      ThrowMalformed();
    }
    const Str metadata = At<Str>(format.children[metadata_], *at);
    const auto value = root_->value ? IndexOf(format.children[*root_->value], *group) : std::nullopt;
    if (value.has_value() && !(root_->typed && IndexOf(format.children[*root_->typed], *group))) {
      put(row, At<Str>(format.children[*root_->value], *value), metadata);  // nothing of this row was shredded
      continue;
    }
    const VariantBytes whole = RowAssembler().Run(*root_, format, *group, metadata);
    put(row, whole.value, whole.metadata);
  }
}

}  // namespace fleuve::engine
