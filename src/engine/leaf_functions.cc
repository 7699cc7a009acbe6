#include "duckdb/parser/parsed_data/create_table_function_info.hpp"
#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/files/file_functions_internal.h"
#include "engine/leaf_functions_internal.h"
#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"

namespace fleuve::engine {

using duckdb::idx_t;

void InstallTableFunction(duckdb::DatabaseInstance& db, duckdb::TableFunction function) {
  auto& catalog = duckdb::Catalog::GetSystemCatalog(db);
  duckdb::CreateTableFunctionInfo info(std::move(function));
  info.internal = true;
  catalog.CreateTableFunction(duckdb::CatalogTransaction::GetSystemTransaction(db), info);
}

namespace {

/// Rows of a range that one task gives before it asks for more.
constexpr std::int64_t kRangeBlock = 120 * STANDARD_VECTOR_SIZE;

struct LeafBindData : duckdb::TableFunctionData {
  std::shared_ptr<Leaf> leaf;
  std::int64_t rows = 0;
};

struct LeafGlobalState : duckdb::GlobalTableFunctionState {
  std::atomic<std::int64_t> next{0};
  std::int64_t units = 0;
  duckdb::vector<duckdb::column_t> columns;
  idx_t MaxThreads() const override { return static_cast<idx_t>(std::max<std::int64_t>(1, units)); }
};

struct LeafLocalState : duckdb::LocalTableFunctionState {
  std::int64_t unit = -1;
  std::int64_t at = 0;
  std::int64_t end = 0;
};

std::int64_t RangeRows(const plan::RangeSpec& range) {
  if (range.step == 0) {
    RaiseError(Error::Internal("a range has the step 0"));
  }
  const types::Int128 distance = static_cast<types::Int128>(range.end) - range.start;
  const types::Int128 step = range.step;
  if ((step > 0) != (distance > 0) || distance == 0) {
    return 0;
  }
  const types::Int128 count = (distance + step + (step > 0 ? -1 : 1)) / step;
  if (count > std::numeric_limits<std::int64_t>::max()) {
    RaiseError(Error::Unsupported("a range of more than 2^63 rows"));
  }
  return static_cast<std::int64_t>(count);
}

duckdb::unique_ptr<duckdb::FunctionData> BindLeaf(duckdb::ClientContext& context, duckdb::TableFunctionBindInput& input,
                                                  duckdb::vector<duckdb::LogicalType>& types,
                                                  duckdb::vector<duckdb::string>& names) {
  auto data = duckdb::make_uniq<LeafBindData>();
  data->leaf = RunState::Of(context).LeafAt(input.inputs[0].GetValue<std::int64_t>());
  const auto& node = *data->leaf->node;
  for (const auto& attribute : node.output) {
    names.push_back("c" + std::to_string(names.size()));
    types.push_back(CarrierType(attribute.type));
  }
  if (node.output.empty()) {
    names.push_back("none");
    types.push_back(duckdb::LogicalType::INTEGER);
  }
  if (node.kind == plan::PlanKind::kRange) {
    data->rows = RangeRows(node.range);
  } else {
    for (const auto& batch : node.rows->batches) {
      data->rows += batch.row_count();
    }
  }
  return data;
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitLeaf(duckdb::ClientContext&,
                                                              duckdb::TableFunctionInitInput& input) {
  auto state = duckdb::make_uniq<LeafGlobalState>();
  const auto& data = input.bind_data->Cast<LeafBindData>();
  state->units = data.leaf->node->kind == plan::PlanKind::kRange
                     ? (data.rows + kRangeBlock - 1) / kRangeBlock
                     : static_cast<std::int64_t>(data.leaf->node->rows->batches.size());
  state->columns = input.column_ids;
  return state;
}

duckdb::unique_ptr<duckdb::LocalTableFunctionState> InitLeafLocal(duckdb::ExecutionContext&,
                                                                  duckdb::TableFunctionInitInput&,
                                                                  duckdb::GlobalTableFunctionState*) {
  return duckdb::make_uniq<LeafLocalState>();
}

void SetAbsent(duckdb::Vector& vector) {
  vector.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
  duckdb::ConstantVector::SetNull(vector, true);
}

void ScanRange(duckdb::ClientContext&, duckdb::TableFunctionInput& input, duckdb::DataChunk& output) {
  const auto& data = input.bind_data->Cast<LeafBindData>();
  auto& global = input.global_state->Cast<LeafGlobalState>();
  auto& local = input.local_state->Cast<LeafLocalState>();
  if (local.at >= local.end) {
    local.unit = global.next.fetch_add(1);
    if (local.unit >= global.units) {
      return;
    }
    local.at = local.unit * kRangeBlock;
    local.end = std::min(data.rows, local.at + kRangeBlock);
  }
  const auto count = std::min<std::int64_t>(STANDARD_VECTOR_SIZE, local.end - local.at);
  const auto& range = data.leaf->node->range;
  for (idx_t i = 0; i < global.columns.size(); i++) {
    if (duckdb::IsVirtualColumn(global.columns[i])) {
      SetAbsent(output.data[i]);
      continue;
    }
    const auto first = static_cast<std::uint64_t>(range.start) +
                       static_cast<std::uint64_t>(local.at) * static_cast<std::uint64_t>(range.step);
    auto* values = duckdb::FlatVector::GetData<std::int64_t>(output.data[i]);
    for (std::int64_t row = 0; row < count; row++) {
      values[row] =
          static_cast<std::int64_t>(first + static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(range.step));
    }
  }
  output.SetCardinality(static_cast<idx_t>(count));
  local.at += count;
  data.leaf->rows += count;
}

void ScanRows(duckdb::ClientContext&, duckdb::TableFunctionInput& input, duckdb::DataChunk& output) {
  const auto& data = input.bind_data->Cast<LeafBindData>();
  auto& global = input.global_state->Cast<LeafGlobalState>();
  auto& local = input.local_state->Cast<LeafLocalState>();
  const auto& node = *data.leaf->node;
  while (local.at >= local.end) {
    local.unit = global.next.fetch_add(1);
    if (local.unit >= global.units) {
      return;
    }
    local.at = 0;
    local.end = node.rows->batches[static_cast<std::size_t>(local.unit)].row_count();
  }
  const auto count = std::min<std::int64_t>(STANDARD_VECTOR_SIZE, local.end - local.at);
  const auto& array = *node.rows->batches[static_cast<std::size_t>(local.unit)].array->get();
  for (idx_t i = 0; i < global.columns.size(); i++) {
    if (duckdb::IsVirtualColumn(global.columns[i]) || node.output.empty()) {
      SetAbsent(output.data[i]);
      continue;
    }
    const auto column = static_cast<std::size_t>(global.columns[i]);
    ArrowToVector(*array.children[column], node.output[column].type, static_cast<idx_t>(array.offset + local.at),
                  static_cast<idx_t>(count), output.data[i]);
  }
  output.SetCardinality(static_cast<idx_t>(count));
  local.at += count;
  data.leaf->rows += count;
}

duckdb::OperatorPartitionData LeafPartition(duckdb::ClientContext&, duckdb::TableFunctionGetPartitionInput& input) {
  if (input.partition_info.RequiresPartitionColumns()) {
    RaiseError(Error::Internal("rows have no partition columns"));
  }
  return duckdb::OperatorPartitionData(static_cast<idx_t>(input.local_state->Cast<LeafLocalState>().unit));
}

duckdb::unique_ptr<duckdb::NodeStatistics> LeafCardinality(duckdb::ClientContext&, const duckdb::FunctionData* data) {
  const auto rows = static_cast<idx_t>(data->Cast<LeafBindData>().rows);
  return duckdb::make_uniq<duckdb::NodeStatistics>(rows, rows);
}

duckdb::virtual_column_map_t LeafVirtualColumns(duckdb::ClientContext&, duckdb::optional_ptr<duckdb::FunctionData>) {
  duckdb::virtual_column_map_t columns;
  columns.insert(
      std::make_pair(duckdb::COLUMN_IDENTIFIER_EMPTY, duckdb::TableColumn("", duckdb::LogicalType::BOOLEAN)));
  return columns;
}

// ---- fleuve_metrics ----

struct MetricsBindData : duckdb::TableFunctionData {
  MetricsRows* rows = nullptr;
};

struct MetricsGlobalState : duckdb::GlobalTableFunctionState {
  duckdb::vector<duckdb::LogicalType> kept_types;
  idx_t MaxThreads() const override { return 1; }
};

duckdb::unique_ptr<duckdb::FunctionData> BindMetrics(duckdb::ClientContext& context,
                                                     duckdb::TableFunctionBindInput& input,
                                                     duckdb::vector<duckdb::LogicalType>& types,
                                                     duckdb::vector<duckdb::string>& names) {
  auto data = duckdb::make_uniq<MetricsBindData>();
  data->rows = &RunState::Of(context).MetricsAt(input.inputs[0].GetValue<std::int64_t>());
  duckdb::vector<duckdb::LogicalType> kept;
  for (std::size_t i = 0; i < input.input_table_types.size(); i++) {
    if (i < data->rows->passed) {
      names.push_back("c" + std::to_string(i));
      types.push_back(input.input_table_types[i]);
    } else {
      kept.push_back(input.input_table_types[i]);
    }
  }
  data->rows->rows = duckdb::make_uniq<duckdb::ColumnDataCollection>(duckdb::BufferManager::GetBufferManager(context),
                                                                     std::move(kept));
  return data;
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitMetrics(duckdb::ClientContext&,
                                                                 duckdb::TableFunctionInitInput&) {
  return duckdb::make_uniq<MetricsGlobalState>();
}

duckdb::OperatorResultType PassMetrics(duckdb::ExecutionContext&, duckdb::TableFunctionInput& input,
                                       duckdb::DataChunk& in, duckdb::DataChunk& out) {
  auto& rows = *input.bind_data->Cast<MetricsBindData>().rows;
  duckdb::DataChunk kept;
  kept.InitializeEmpty(rows.rows->Types());
  for (std::size_t i = 0; i < in.ColumnCount(); i++) {
    if (i < rows.passed) {
      out.data[i].Reference(in.data[i]);
    } else {
      kept.data[i - rows.passed].Reference(in.data[i]);
    }
  }
  kept.SetCardinality(in.size());
  rows.rows->Append(kept);
  out.SetCardinality(in.size());
  return duckdb::OperatorResultType::NEED_MORE_INPUT;
}

}  // namespace

void InstallLeafFunctions(duckdb::DatabaseInstance& db) {
  for (const bool range : {false, true}) {
    duckdb::TableFunction function(range ? "fleuve_range" : "fleuve_rows", {duckdb::LogicalType::BIGINT},
                                   range ? ScanRange : ScanRows, BindLeaf, InitLeaf, InitLeafLocal);
    function.projection_pushdown = true;
    function.get_partition_data = LeafPartition;
    function.cardinality = LeafCardinality;
    function.get_virtual_columns = LeafVirtualColumns;
    InstallTableFunction(db, std::move(function));
  }
  duckdb::TableFunction metrics("fleuve_metrics", {duckdb::LogicalType::BIGINT, duckdb::LogicalType::TABLE}, nullptr,
                                BindMetrics, InitMetrics);
  metrics.in_out_function = PassMetrics;
  InstallTableFunction(db, std::move(metrics));
}

}  // namespace fleuve::engine
