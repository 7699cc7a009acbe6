#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"
#include "plan/call_function.h"
#include "tables/data_files_internal.h"
#include "tables/file_statistics_internal.h"
#include "tables/measure_files_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::Value;

namespace {

/// The leaf of a row; null where the columns have none of this path.
ExprPtr LeafOf(const std::vector<std::string>& path, const delta::Metadata& metadata, const types::Schema& schema,
               const std::vector<plan::Attribute>& columns) {
  ExprPtr value;
  const DataType* type = &schema;
  for (const std::string& part : path) {
    std::size_t at = 0;
    while (at < type->fields().size() && delta::PhysicalName(type->fields()[at], metadata) != part) {
      ++at;
    }
    if (at == type->fields().size()) {
      return nullptr;
    }
    value = value == nullptr ? plan::MakeAttribute(columns[at]) : plan::MakeGetField(value, static_cast<int>(at));
    type = &type->fields()[at].type;
  }
  return value;
}

}  // namespace

Result<std::vector<FileMeasure>> MeasureFiles(const TableContext& context, const storage::Location& table,
                                              const delta::Metadata& metadata, const std::vector<delta::AddFile>& files,
                                              const std::vector<StatisticsLeaf>& leaves) {
  std::vector<FileMeasure> out(files.size());
  for (FileMeasure& measure : out) {
    measure.leaves.resize(leaves.size());
  }
  if (files.empty()) {
    return out;
  }
  FLEUVE_ASSIGN(plan::FileScan scan, delta::MakeScan(metadata));
  scan.constants_schema = DataType::Struct({{"__file", DataType::Int(), false, Json()}});
  for (std::size_t i = 0; i < files.size(); ++i) {
    delta::AddFile plain = files[i];
    plain.deletion_vector.reset();
    plain.stats.clear();  // what is measured must not be believed
    FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(scan, metadata, plain, table));
    file.constants = {Value(static_cast<std::int64_t>(i))};
    scan.files.push_back(std::move(file));
  }
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  for (const types::Schema* schema : {&scan.data_schema, &scan.partition_schema, &scan.constants_schema}) {
    for (const plan::Attribute& attribute : plan::AttributesOf(*schema)) {
      leaf->output.push_back(attribute);
    }
  }
  // Names as the files have them come from the table's own schema: the scan's is cleaned.
  FLEUVE_ASSIGN(const auto shape, delta::MakeShape(metadata));
  const types::Schema& stored = shape->schema;
  std::vector<types::StructField> data_fields;
  for (const types::StructField& field : stored.fields()) {
    if (types::FieldIndex(scan.data_schema, field.name)) {
      data_fields.push_back(field);
    }
  }
  const types::Schema data = DataType::Struct(std::move(data_fields));
  leaf->scan = std::make_shared<const plan::FileScan>(std::move(scan));
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kAggregate;
  node->children = {leaf};
  node->grouping = {plan::MakeAttribute(leaf->output.back())};
  const auto output = [&](DataType type) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = "a" + std::to_string(node->output.size());
    attribute.type = std::move(type);
    node->output.push_back(std::move(attribute));
  };
  output(DataType::Int());
  const auto add = [&](Result<ExprPtr> built) -> Result<void> {
    FLEUVE_ASSIGN(ExprPtr aggregate, std::move(built));
    if (aggregate->kind != plan::ExprKind::kAggregate) {
      return Error::Internal("a measure of files is no plain aggregate");
    }
    output(aggregate->type);
    node->aggregates.push_back(std::move(aggregate));
    return {};
  };
  FLEUVE_TRY(add(CountIf(plan::MakeLiteral(Value(true), DataType::Boolean()), context.config)));
  // Columns of the result per leaf: nulls, and where the type has bounds, smallest and largest.
  std::vector<ExprPtr> values;
  for (const StatisticsLeaf& wanted : leaves) {
    const ExprPtr value = LeafOf(wanted.path, metadata, data, leaf->output);
    values.push_back(value);
    if (value == nullptr) {
      continue;
    }
    FLEUVE_TRY(add(CountIf(plan::MakeCall("isnull", {value}, DataType::Boolean(), false), context.config)));
    if (HasBounds(wanted.type)) {
      FLEUVE_TRY(add(plan::CallFunction("min", {value}, context.config)));
      FLEUVE_TRY(add(plan::CallFunction("max", {value}, context.config)));
    }
  }
  FLEUVE_ASSIGN(const auto rows, RunRows(context, node));
  for (const Value::List& row : rows) {
    FileMeasure& measure = out[static_cast<std::size_t>(row[0].integer())];
    measure.rows = row[1].integer();
    std::size_t at = 2;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (values[i] == nullptr) {
        continue;
      }
      measure.leaves[i].null_count = row[at++].integer();
      if (HasBounds(leaves[i].type)) {
        measure.leaves[i].min = row[at++];
        measure.leaves[i].max = row[at++];
      }
    }
  }
  for (FileMeasure& measure : out) {
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (measure.rows == 0 && values[i] != nullptr) {
        measure.leaves[i].null_count = 0;
      }
    }
  }
  return out;
}

}  // namespace fleuve::tables
