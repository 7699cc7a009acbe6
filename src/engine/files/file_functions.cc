// The table functions that read JSON, CSV, text and binary files.

#include <sys/stat.h>

#include <algorithm>
#include <atomic>

#include "engine/carriers_internal.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/file_functions_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::idx_t;
using plan::FileFormat;

/// Larger files are read in parts of this size, one thread each.
constexpr std::int64_t kPartBytes = 8 << 20;

struct ScanBindData final : duckdb::FunctionData {
  std::shared_ptr<Leaf> leaf;
  duckdb::unique_ptr<duckdb::FunctionData> Copy() const override {
    auto copy = duckdb::make_uniq<ScanBindData>();
    copy->leaf = leaf;
    return copy;
  }
  bool Equals(const duckdb::FunctionData& other) const override { return leaf == other.Cast<ScanBindData>().leaf; }
};

struct ScanGlobalState final : duckdb::GlobalTableFunctionState {
  TextScanPlan plan;
  std::vector<FilePart> parts;
  std::atomic<idx_t> next{0};
  std::vector<duckdb::column_t> columns;
  /// Every data column is parsed, for what is read depends on them.
  bool parses_all = false;
  bool ignore_missing = false;
  bool ignore_corrupt = false;
  idx_t MaxThreads() const override { return std::max<idx_t>(1, parts.size()); }
};

struct ScanLocalState final : duckdb::LocalTableFunctionState {
  idx_t part = 0;
  std::unique_ptr<RecordReader> reader;
  RowTarget target;
  /// Takes the data columns that are parsed and not read.
  duckdb::DataChunk spare;
};

/// One row per file: path, modificationTime, length, content.
class BinaryReader final : public RecordReader {
 public:
  BinaryReader(const TextScanPlan& plan, const FilePart& part) : plan_(plan), part_(part) {}

  idx_t Read(RowTarget& target, idx_t) override {
    if (done_) {
      return 0;
    }
    done_ = true;
    const plan::ScanFile& file = *part_.file;
    struct stat info{};
    if (::stat(file.path.c_str(), &info) != 0) {
      RaiseError(FailedReadFile(file.uri, Error(ErrorKind::kNotFound, "FAILED_READ_FILE.NO_HINT", "no such file")));
    }
    const auto& fields = plan_.scan->data_schema.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      duckdb::Vector* column = target.columns[i];
      if (column == nullptr) {
        continue;
      }
      if (fields[i].name == "path") {
        SetText(*column, 0, file.uri);
      } else if (fields[i].name == "modificationTime") {
        duckdb::FlatVector::GetData<duckdb::timestamp_t>(*column)[0] = duckdb::timestamp_t(file.modified_ms * 1000);
      } else if (fields[i].name == "length") {
        duckdb::FlatVector::GetData<std::int64_t>(*column)[0] = file.size_bytes;
      } else if (fields[i].name == "content") {
        constexpr std::int64_t kMost = 0x7fffffff;
        if (file.size_bytes > kMost) {
          RaiseError(Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2099",
                           "The length of " + file.uri + " is " + std::to_string(file.size_bytes) +
                               ", which exceeds the max length allowed: 2147483647."));
        }
        auto bytes = ReadRaw(file.path);
        SetText(*column, 0, bytes);
      } else {
        SetNull(*column, 0);
      }
    }
    if (target.rescued != nullptr) {
      SetNull(*target.rescued, 0);
    }
    return 1;
  }

 private:
  std::string ReadRaw(const std::string& path) const {
    std::string bytes;
    FILE* in = std::fopen(path.c_str(), "rb");
    if (in == nullptr) {
      RaiseError(
          FailedReadFile(part_.file->uri, Error(ErrorKind::kNotFound, "FAILED_READ_FILE.NO_HINT", "no such file")));
    }
    char block[1 << 16];
    std::size_t got = 0;
    while ((got = std::fread(block, 1, sizeof(block), in)) > 0) {
      bytes.append(block, got);
    }
    std::fclose(in);
    return bytes;
  }

  const TextScanPlan& plan_;
  const FilePart part_;
  bool done_ = false;
};

duckdb::unique_ptr<duckdb::FunctionData> Bind(duckdb::ClientContext& context, duckdb::TableFunctionBindInput& input,
                                              duckdb::vector<duckdb::LogicalType>& return_types,
                                              duckdb::vector<duckdb::string>& names) {
  auto data = duckdb::make_uniq<ScanBindData>();
  data->leaf = RunState::Of(context).LeafAt(input.inputs.at(0).GetValue<std::int64_t>());
  const plan::FileScan& scan = data->leaf->scan();
  const auto add = [&](const types::DataType& type) {
    return_types.push_back(CarrierType(type));
    names.push_back("c" + std::to_string(names.size()));
  };
  for (const types::Schema* schema : {&scan.data_schema, &scan.partition_schema, &scan.constants_schema}) {
    for (const types::StructField& field : schema->fields()) {
      add(field.type);
    }
  }
  if (scan.with_metadata) {
    add(plan::MetadataColumnType());
  }
  if (return_types.empty()) {
    // A table function must have a column; the plan reads none.
    add(types::DataType::Boolean());
  }
  return data;
}

int FindField(const types::Schema& schema, const std::string& name) {
  if (name.empty()) {
    return -1;
  }
  const auto found = types::FieldIndex(schema, name, false);
  return found ? static_cast<int>(*found) : -1;
}

/// Spark's rules for the column of corrupt records: a string, and never all that a query reads of the files, for then
/// nothing would be parsed. True where it is, in a session that holds rows, and all columns have to be parsed.
bool CheckCorruptColumn(const plan::FileScan& scan, int corrupt_index, const std::vector<bool>& wanted) {
  if (corrupt_index < 0) {
    return false;
  }
  const auto at = static_cast<std::size_t>(corrupt_index);
  const types::StructField& field = scan.data_schema.fields()[at];
  if (!field.type.IsString()) {
    RaiseError(Error(ErrorKind::kInvalidArgument, "INVALID_CORRUPT_RECORD_TYPE",
                     "The column `" + field.name +
                         "` for corrupt records must have the nullable STRING type, but got \"" + field.type.Sql() +
                         "\".")
                   .With("columnName", "`" + field.name + "`")
                   .With("actualType", "\"" + field.type.Sql() + "\""));
  }
  const plan::Options& options = scan.options;
  const std::string* whole = plan::FindOption(options, "fleuve.corruptRecordAlone");
  if (!wanted[at] || std::ranges::count(wanted, true) != 1) {
    return false;
  }
  if (whole == nullptr || *whole != "true") {
    RaiseError(Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.QUERY_ONLY_CORRUPT_RECORD_COLUMN",
                     "The feature is not supported: Queries from raw JSON/CSV/XML files are disallowed when the "
                     "referenced columns only include the internal corrupt record column (named `" +
                         field.name + "`). Read other columns too, or cache the DataFrame before.")
                   .Family(ErrorFamily::kAnalysis));
  }
  return true;
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitGlobal(duckdb::ClientContext&,
                                                                duckdb::TableFunctionInitInput& input) {
  auto state = duckdb::make_uniq<ScanGlobalState>();
  const plan::FileScan& scan = input.bind_data->Cast<ScanBindData>().leaf->scan();
  TextScanPlan& plan = state->plan;
  plan.scan = &scan;
  const ReadOptions* shared = nullptr;
  bool divisible = true;
  switch (scan.format) {
    case FileFormat::kJson:
      plan.json = ValueOrRaise(MakeJsonOptions(scan.options, scan.session_zone));
      shared = &plan.json;
      divisible = plan.json.container.empty();
      break;
    case FileFormat::kCsv:
      plan.csv = ValueOrRaise(MakeCsvOptions(scan.options, scan.session_zone));
      shared = &plan.csv;
      break;
    default:
      plan.text = ValueOrRaise(MakeTextOptions(scan.options, scan.session_zone));
      shared = &plan.text;
      divisible = !plan.text.whole_text && scan.format == FileFormat::kText;
      break;
  }
  divisible = divisible && !shared->multi_line && shared->encoding.empty();
  if (scan.format == FileFormat::kJson || scan.format == FileFormat::kCsv) {
    plan.corrupt_index = FindField(scan.data_schema, shared->corrupt_column);
    plan.rescued_index = FindField(scan.data_schema, shared->rescued_column);
    if (!shared->bad_records_path.empty()) {
      plan.bad_records = std::make_unique<BadRecords>(shared->bad_records_path);
    }
  }
  state->ignore_missing = shared->ignore_missing_files;
  state->ignore_corrupt = shared->ignore_corrupt_files;
  state->columns = input.column_ids;
  plan.wanted.assign(scan.data_schema.fields().size(), false);
  for (const duckdb::column_t id : state->columns) {
    if (id < plan.wanted.size()) {
      plan.wanted[id] = true;
    }
  }
  if (plan.json.container != "avro") {
    state->parses_all = CheckCorruptColumn(scan, plan.corrupt_index, plan.wanted);
    if (state->parses_all) {
      plan.wanted.assign(plan.wanted.size(), true);
    }
  }
  for (const plan::ScanFile& file : scan.files) {
    if (!divisible || file.size_bytes < 2 * kPartBytes || IsCompressedName(file.path)) {
      state->parts.push_back({&file, 0, -1});
      continue;
    }
    for (std::int64_t begin = 0; begin < file.size_bytes; begin += kPartBytes) {
      const bool last = begin + 2 * kPartBytes > file.size_bytes;
      state->parts.push_back({&file, begin, last ? -1 : begin + kPartBytes});
      if (last) {
        break;
      }
    }
  }
  return state;
}

duckdb::unique_ptr<duckdb::LocalTableFunctionState> InitLocal(duckdb::ExecutionContext&,
                                                              duckdb::TableFunctionInitInput&,
                                                              duckdb::GlobalTableFunctionState*) {
  return duckdb::make_uniq<ScanLocalState>();
}

std::unique_ptr<RecordReader> MakeReader(const TextScanPlan& plan, const FilePart& part) {
  switch (plan.scan->format) {
    case FileFormat::kJson:
      return MakeJsonReader(plan, part);
    case FileFormat::kCsv:
      return MakeCsvReader(plan, part);
    case FileFormat::kBinaryFile:
      return std::make_unique<BinaryReader>(plan, part);
    default:
      return MakeTextReader(plan, part);
  }
}

duckdb::Value MetadataValue(const plan::ScanFile& file) {
  const std::size_t slash = file.uri.rfind('/');
  const std::string name = slash == std::string::npos ? file.uri : file.uri.substr(slash + 1);
  const types::Value value(types::Value::List{types::Value(file.uri), types::Value(name), types::Value(file.size_bytes),
                                              types::Value(std::int64_t{0}), types::Value(file.size_bytes),
                                              types::Value(file.modified_ms * 1000)});
  return CarrierValue(value, plan::MetadataColumnType());
}

/// Constants of the file in the columns that the reader does not fill.
void FillConstants(const ScanGlobalState& state, const plan::ScanFile& file, duckdb::DataChunk& output, bool rescued) {
  const plan::FileScan& scan = *state.plan.scan;
  const std::size_t data = scan.data_schema.fields().size();
  const auto& partitions = scan.partition_schema.fields();
  const auto& constants = scan.constants_schema.fields();
  for (std::size_t i = 0; i < state.columns.size(); ++i) {
    std::size_t at = state.columns[i];
    if (at < data) {
      continue;
    }
    at -= data;
    if (at < partitions.size()) {
      output.data[i].Reference(CarrierValue(file.partition_values.at(at), partitions[at].type));
      continue;
    }
    at -= partitions.size();
    if (at < constants.size()) {
      const std::string* column = plan::FindOption(scan.options, "rescuedDataColumn");
      if (rescued && column != nullptr && constants[at].name == *column) {
        continue;
      }
      const types::Value value = at < file.constants.size() ? file.constants[at] : types::Value();
      output.data[i].Reference(CarrierValue(value, constants[at].type));
      continue;
    }
    at -= constants.size();
    if (at == 0 && scan.with_metadata) {
      output.data[i].Reference(MetadataValue(file));
      continue;
    }
    output.data[i].Reference(duckdb::Value(output.data[i].GetType()));
  }
}

/// An error about what a file holds, which Spark tells as the cause of the failed read.
bool IsOfRecord(const Error& error) {
  return error.condition().empty() || error.condition().starts_with("MALFORMED_RECORD_IN_PARSING") ||
         error.condition() == "_LEGACY_ERROR_TEMP_3241";
}

void Scan(duckdb::ClientContext& context, duckdb::TableFunctionInput& input, duckdb::DataChunk& output) {
  auto& state = input.global_state->Cast<ScanGlobalState>();
  auto& local = input.local_state->Cast<ScanLocalState>();
  const plan::FileScan& scan = *state.plan.scan;
  RunState::Of(context).CheckCancelled();
  RowTarget& target = local.target;
  const std::size_t data = scan.data_schema.fields().size();
  target.columns.assign(data, nullptr);
  target.rescued = nullptr;
  const std::string* rescued_column = plan::FindOption(scan.options, "rescuedDataColumn");
  for (std::size_t i = 0; i < state.columns.size(); ++i) {
    const std::size_t at = state.columns[i];
    if (at < data) {
      target.columns[at] = &output.data[i];
    } else if (rescued_column != nullptr && state.plan.rescued_index < 0) {
      const std::size_t constant = at - data - scan.partition_schema.fields().size();
      const auto& constants = scan.constants_schema.fields();
      if (at >= data + scan.partition_schema.fields().size() && constant < constants.size() &&
          constants[constant].name == *rescued_column) {
        target.rescued = &output.data[i];
      }
    }
  }
  if (state.parses_all) {
    if (local.spare.ColumnCount() == 0) {
      duckdb::vector<duckdb::LogicalType> kinds;
      for (const types::StructField& field : scan.data_schema.fields()) {
        kinds.push_back(CarrierType(field.type));
      }
      local.spare.Initialize(duckdb::Allocator::DefaultAllocator(), kinds);
    }
    local.spare.Reset();
    for (std::size_t i = 0; i < data; ++i) {
      target.columns[i] = target.columns[i] == nullptr ? &local.spare.data[i] : target.columns[i];
    }
  }
  for (;;) {
    idx_t count = 0;
    try {
      if (local.reader == nullptr) {
        local.part = state.next.fetch_add(1);
        if (local.part >= state.parts.size()) {
          output.SetCardinality(0);
          return;
        }
        local.reader = MakeReader(state.plan, state.parts[local.part]);
      }
      count = local.reader->Read(target, STANDARD_VECTOR_SIZE);
    } catch (std::exception& caught) {
      const Error error = ToError(duckdb::ErrorData(caught));
      const bool missing = error.condition() == "FAILED_READ_FILE.FILE_NOT_EXIST";
      const bool corrupt = !missing && error.condition().starts_with("FAILED_READ_FILE");
      if ((missing && state.ignore_missing) || (corrupt && state.ignore_corrupt)) {
        local.reader.reset();
        continue;
      }
      if (corrupt && state.plan.bad_records != nullptr) {
        state.plan.bad_records->AddFile(state.parts[local.part].file->uri, error.message());
        local.reader.reset();
        continue;
      }
      if (!IsOfRecord(error)) {
        throw;
      }
      RaiseError(FailedReadFile(state.parts[local.part].file->uri, error));
    }
    if (count == 0) {
      local.reader.reset();
      RunState::Of(context).CheckCancelled();
      continue;
    }
    FillConstants(state, *state.parts[local.part].file, output, target.rescued != nullptr);
    output.SetCardinality(count);
    input.bind_data->Cast<ScanBindData>().leaf->rows.fetch_add(static_cast<std::int64_t>(count));
    return;
  }
}

duckdb::OperatorPartitionData PartitionData(duckdb::ClientContext&, duckdb::TableFunctionGetPartitionInput& input) {
  if (input.partition_info.RequiresPartitionColumns()) {
    RaiseError(Error::Internal("text scans have no partition columns"));
  }
  return duckdb::OperatorPartitionData(input.local_state->Cast<ScanLocalState>().part);
}

}  // namespace

void RegisterFileReaders(duckdb::DatabaseInstance& db) {
  for (const char* name : {"fleuve_json", "fleuve_csv", "fleuve_text", "fleuve_binary"}) {
    duckdb::TableFunction function(name, {duckdb::LogicalType::BIGINT}, Scan, Bind, InitGlobal, InitLocal);
    function.projection_pushdown = true;
    function.filter_pushdown = false;
    function.get_partition_data = PartitionData;
    InstallTableFunction(db, std::move(function));
  }
}

}  // namespace fleuve::engine
