#include <algorithm>

#include "duckdb/common/vector_operations/vector_operations.hpp"
#include "duckdb/planner/expression/bound_function_expression.hpp"
#include "engine/carriers_internal.h"
#include "engine/duckdb_symbols_internal.h"
#include "engine/functions/variant_shredded_internal.h"
#include "engine/parquet_variants_internal.h"
#include "engine/raise_internal.h"
#include "parquet_writer.hpp"
#include "writer/struct_column_writer.hpp"

namespace fleuve::engine {
namespace {

using duckdb::idx_t;
using duckdb::LogicalType;
using duckdb::LogicalTypeId;
using duckdb::MultiFileColumnDefinition;
using types::DataType;
using types::TypeKind;

constexpr const char* kVariantGroup = "fleuve_variant_group";
constexpr const char* kCreateWriter =
    "_ZN6duckdb12ColumnWriter21CreateWriterRecursiveERNS_13ClientContextERNS_13ParquetWriterENS_"
    "6vectorINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEELb1ESaISB_EEERKNS_11LogicalTypeERKSB_bNS_12optional_"
    "ptrIKNS_13ChildFieldIDsELb1EEENSJ_IKNS_13ShreddingTypeELb1EEEmmb";

LogicalType StructOf(const duckdb::vector<duckdb::ParquetColumnSchema>& children) {
  duckdb::child_list_t<LogicalType> fields;
  for (const auto& child : children) {
    fields.emplace_back(child.name, child.type);
  }
  return LogicalType::STRUCT(std::move(fields));
}

/// True where the schema or one below it changed.
bool AsStructs(duckdb::ParquetColumnSchema& schema) {
  bool changed = false;
  for (auto& child : schema.children) {
    changed = AsStructs(child) || changed;
  }
  if (schema.schema_type == duckdb::ParquetColumnSchemaType::VARIANT) {
    schema.schema_type = duckdb::ParquetColumnSchemaType::COLUMN;
    schema.type = StructOf(schema.children);
    return true;
  }
  if (changed) {
    switch (schema.type.id()) {
      case LogicalTypeId::LIST:
        schema.type = LogicalType::LIST(schema.children[0].type);
        break;
      case LogicalTypeId::MAP:
        schema.type = LogicalType::MAP(schema.children[0].children.at(0).type, schema.children[0].children.at(1).type);
        schema.children[0].type = duckdb::ListType::GetChildType(schema.type);
        break;
      default:
        schema.type = StructOf(schema.children);
        break;
    }
  }
  return changed;
}

void TakeTypes(const duckdb::ParquetColumnSchema& schema, MultiFileColumnDefinition* column) {
  column->type = schema.type;
  for (std::size_t i = 0; i < column->children.size(); i++) {
    TakeTypes(schema.children.at(i), &column->children[i]);
  }
}

/// A type with what must be done at its variants.
struct Plan {
  explicit Plan(const DataType& type, const LogicalType& from) {
    const auto add = [this](const DataType& child_type, const LogicalType& child_from) {
      children.emplace_back(child_type, child_from);
      changes = changes || children.back().changes;
    };
    switch (type.kind()) {
      case TypeKind::kVariant:
        if (from != CarrierType(type)) {
          assembler.emplace(from);
          changes = true;
        }
        break;
      case TypeKind::kArray:
        add(type.element(), duckdb::ListType::GetChildType(from));
        break;
      case TypeKind::kMap:
        add(type.key(), duckdb::MapType::KeyType(from));
        add(type.value(), duckdb::MapType::ValueType(from));
        break;
      case TypeKind::kStruct:
        for (std::size_t i = 0; i < type.fields().size(); i++) {
          add(type.fields()[i].type, duckdb::StructType::GetChildType(from, i));
        }
        break;
      default:
        break;
    }
  }

  std::vector<Plan> children;
  std::optional<VariantAssembler> assembler;
  bool changes = false;
};

void Convert(const Plan& plan, duckdb::Vector& from, idx_t count, duckdb::Vector& to) {
  if (!plan.changes) {
    duckdb::VectorOperations::Copy(from, to, count, 0, 0);
    return;
  }
  if (plan.assembler.has_value()) {
    plan.assembler->Assemble(from, count, to);
    return;
  }
  from.Flatten(count);
  to.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
  duckdb::FlatVector::Validity(to).Copy(duckdb::FlatVector::Validity(from), count);
  if (from.GetType().id() == LogicalTypeId::STRUCT) {
    auto& inner = duckdb::StructVector::GetEntries(from);
    auto& outer = duckdb::StructVector::GetEntries(to);
    for (std::size_t i = 0; i < plan.children.size(); i++) {
      Convert(plan.children[i], *inner[i], count, *outer[i]);
    }
    return;
  }
  std::copy_n(duckdb::FlatVector::GetData<duckdb::list_entry_t>(from), count,
              duckdb::FlatVector::GetData<duckdb::list_entry_t>(to));
  const idx_t entries = duckdb::ListVector::GetListSize(from);
  duckdb::ListVector::Reserve(to, entries);
  auto& inner = duckdb::ListVector::GetEntry(from);
  auto& outer = duckdb::ListVector::GetEntry(to);
  if (plan.children.size() == 1) {
    Convert(plan.children[0], inner, entries, outer);
  } else {
    inner.Flatten(entries);
    auto& parts = duckdb::StructVector::GetEntries(inner);
    auto& made = duckdb::StructVector::GetEntries(outer);
    Convert(plan.children[0], *parts[0], entries, *made[0]);
    Convert(plan.children[1], *parts[1], entries, *made[1]);
  }
  duckdb::ListVector::SetListSize(to, entries);
}

/// A struct whose schema element says that it is a variant.
class VariantGroupWriter final : public duckdb::StructColumnWriter {
 public:
  using StructColumnWriter::StructColumnWriter;

  idx_t FinalizeSchema(duckdb::vector<duckdb_parquet::SchemaElement>& schemas) override {
    const std::size_t at = schemas.size();
    const idx_t columns = StructColumnWriter::FinalizeSchema(schemas);
    duckdb_parquet::VariantType variant;
    variant.__set_specification_version(1);
    schemas[at].logicalType.__set_VARIANT(variant);
    schemas[at].__isset.logicalType = true;
    return columns;
  }
};

}  // namespace

void ShowVariantsAsStructs(duckdb::ParquetReader& reader) {
  if (AsStructs(*reader.root_schema)) {
    for (std::size_t i = 0; i < reader.columns.size(); i++) {
      TakeTypes(reader.root_schema->children.at(i), &reader.columns[i]);
    }
  }
}

bool IsShreddedVariant(const MultiFileColumnDefinition& group) {
  return std::any_of(group.children.begin(), group.children.end(),
                     [](const auto& child) { return child.name == "typed_value"; });
}

MultiFileColumnDefinition AsInFile(const MultiFileColumnDefinition& group) {
  MultiFileColumnDefinition copy(group.name, group.type);
  copy.identifier = duckdb::Value(group.name);
  copy.default_expression = duckdb::make_uniq<duckdb::ConstantExpression>(duckdb::Value(group.type));
  for (const auto& child : group.children) {
    copy.children.push_back(AsInFile(child));
  }
  return copy;
}

duckdb::unique_ptr<duckdb::Expression> WithWholeVariants(duckdb::unique_ptr<duckdb::Expression> value,
                                                         const DataType& type) {
  const LogicalType carrier = CarrierType(type);
  const auto plan = std::make_shared<const Plan>(type, value->return_type);
  duckdb::ScalarFunction function("fleuve_whole_variants", {value->return_type}, carrier,
                                  [plan](duckdb::DataChunk& args, duckdb::ExpressionState&, duckdb::Vector& result) {
                                    Convert(*plan, args.data[0], args.size(), result);
                                  });
  duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> children;
  children.push_back(std::move(value));
  return duckdb::make_uniq<duckdb::BoundFunctionExpression>(carrier, std::move(function), std::move(children), nullptr);
}

LogicalType VariantGroupType() {
  auto type = LogicalType::STRUCT({{"value", LogicalType::BLOB}, {"metadata", LogicalType::BLOB}});
  type.SetAlias(kVariantGroup);
  return type;
}

void CheckParquetVariants() {
  if (!ReachesUs(kCreateWriter)) {
    RaiseError(Error::Internal("DuckDB does not reach this program's writer of variants"));
  }
}

}  // namespace fleuve::engine

namespace duckdb {

unique_ptr<ColumnWriter> ColumnWriter::CreateWriterRecursive(ClientContext& context, ParquetWriter& writer,
                                                             vector<string> path_in_schema, const LogicalType& type,
                                                             const string& name, bool allow_geometry,
                                                             optional_ptr<const ChildFieldIDs> field_ids,
                                                             optional_ptr<const ShreddingType> shredding_types,
                                                             idx_t max_repeat, idx_t max_define, bool can_have_nulls) {
  using Create = unique_ptr<ColumnWriter> (*)(ClientContext&, ParquetWriter&, vector<string>, const LogicalType&,
                                              const string&, bool, optional_ptr<const ChildFieldIDs>,
                                              optional_ptr<const ShreddingType>, idx_t, idx_t, bool);
  static const auto library = reinterpret_cast<Create>(fleuve::engine::LibraryFunction(fleuve::engine::kCreateWriter));
  if (type.GetAlias() != fleuve::engine::kVariantGroup) {
    return library(context, writer, std::move(path_in_schema), type, name, allow_geometry, field_ids, shredding_types,
                   max_repeat, max_define, can_have_nulls);
  }
  path_in_schema.push_back(name);
  if (!can_have_nulls) {
    max_define--;
  }
  auto schema = ParquetColumnSchema::FromLogicalType(
      name, type, max_define, max_repeat, 0,
      can_have_nulls ? FieldRepetitionType::OPTIONAL : FieldRepetitionType::REQUIRED, allow_geometry);
  if (field_ids) {
    const auto id = field_ids->ids->find(name);
    if (id != field_ids->ids->end() && id->second.set) {
      schema.field_id = id->second.field_id;
    }
  }
  vector<unique_ptr<ColumnWriter>> parts;
  for (const auto& [part, part_type] : StructType::GetChildTypes(type)) {
    parts.push_back(library(context, writer, path_in_schema, part_type, part, allow_geometry, nullptr, nullptr,
                            max_repeat, max_define + 1, false));
  }
  return make_uniq<fleuve::engine::VariantGroupWriter>(writer, std::move(schema), std::move(path_in_schema),
                                                       std::move(parts));
}

}  // namespace duckdb
