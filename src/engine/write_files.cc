#include <simdjson.h>

#include <algorithm>
#include <filesystem>

#include "base/bytes.h"
#include "base/ids.h"
#include "duckdb/common/type_visitor.hpp"
#include "engine/carriers_internal.h"
#include "engine/functions/utf8_internal.h"
#include "engine/parquet_writer_internal.h"
#include "engine/raise_internal.h"
#include "engine/write_files_internal.h"

namespace fleuve::engine {
namespace {

using types::DataType;
using types::TypeKind;

/// A path segment as Hive and Spark escape it.
std::string EscapeSegment(const std::string& text) {
  static const std::string kSpecial = "\"#%'*/:=?\\{[]^";
  static const char* const kHex = "0123456789ABCDEF";
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F || kSpecial.find(c) != std::string::npos) {
      escaped += '%';
      escaped += kHex[byte >> 4];
      escaped += kHex[byte & 15];
    } else {
      escaped += c;
    }
  }
  return escaped;
}

/// A partition value as text, as Spark casts it to string.
std::string PartitionText(const types::Value& value, const DataType& type, const std::string& zone) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
      return value.boolean() ? "true" : "false";
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return std::to_string(value.integer());
    case TypeKind::kFloat:
      return JavaFloatToString(static_cast<float>(value.real()));
    case TypeKind::kDouble:
      return JavaDoubleToString(value.real());
    case TypeKind::kDecimal:
      return types::DecimalToString(value.decimal(), type.scale());
    case TypeKind::kDate:
      return types::DateToString(value.integer());
    case TypeKind::kTimestamp:
      return ValueOrRaise(types::TimestampToString(value.integer(), zone));
    case TypeKind::kTimestampNtz:
      return types::TimestampNtzToString(value.integer());
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kBinary:
      return value.text();
    default:
      RaiseError(Error(ErrorKind::kInvalidArgument, "INVALID_PARTITION_COLUMN_DATA_TYPE",
                       "Cannot use " + type.Sql() + " for partition column."));
  }
}

/// Where the rows of one partition go.
struct Partition {
  std::int64_t task = 0;
  types::Value::List values;
  std::string folder;  ///< below the target; empty or ending in '/'
  std::unique_ptr<RowFileWriter> writer;
  std::unique_ptr<StatisticsCollector> statistics;
  std::string relative_path;
  std::int64_t rows = 0;
  int files = 0;
};

class FileSetWriter {
 public:
  FileSetWriter(Run& run, const WriteSpec& spec) : run_(run), spec_(spec) {
    std::vector<types::StructField> fields;
    std::vector<bool> is_partition(run.columns().size(), false);
    for (const auto& name : spec.partition_columns) {
      std::size_t found = run.columns().size();
      for (std::size_t i = 0; i < run.columns().size() && found == run.columns().size(); i++) {
        if (run.columns()[i].name == name && !is_partition[i]) {
          found = i;
        }
      }
      for (std::size_t i = 0; i < run.columns().size() && found == run.columns().size(); i++) {
        if (duckdb::StringUtil::CIEquals(run.columns()[i].name, name) && !is_partition[i]) {
          found = i;
        }
      }
      if (found == run.columns().size()) {
        RaiseError(Error(ErrorKind::kInvalidArgument, "COLUMN_NOT_FOUND",
                         "The partition column " + name + " is not in the data."));
      }
      is_partition[found] = true;
      partition_columns_.push_back(found);
      const auto& type = run.columns()[found].type;
      if (type.IsNested() || type.Is(TypeKind::kVariant) || type.Is(TypeKind::kVoid)) {
        RaiseError(Error(ErrorKind::kInvalidArgument, "INVALID_PARTITION_COLUMN_DATA_TYPE",
                         "Cannot use " + type.Sql() + " for partition column."));
      }
    }
    const std::size_t columns = run.columns().size() - (spec.by_task ? 1 : 0);
    for (std::size_t i = 0; i < columns; i++) {
      if (!is_partition[i]) {
        const auto& column = run.columns()[i];
        fields.push_back({column.name, column.type, column.nullable, column.metadata});
        data_columns_.push_back(i);
        data_types_.push_back(CarrierType(column.type));
      }
    }
    if (fields.empty()) {
      RaiseError(Error(ErrorKind::kInvalidArgument, "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
                       "Cannot use all columns for partition columns."));
    }
    schema_ = DataType::Struct(std::move(fields));
    physical_ = spec.physical_schema.value_or(schema_);
    if (physical_.fields().size() != schema_.fields().size()) {
      RaiseError(Error::Internal("the physical schema has another number of columns than the data"));
    }
    if (spec.format == plan::FileFormat::kParquet) {
      parquet_.schema = schema_;
      parquet_.physical_schema = physical_;
      parquet_.compression = spec.compression;
      parquet_.key_value_metadata = spec.key_value_metadata;
      parquet_.key_value_metadata.emplace("org.apache.spark.sql.parquet.row.metadata", physical_.ToJson().Dump());
      parquet_.key_value_metadata.emplace("org.apache.spark.version", "4.1.1");
      parquet_.row_group_rows = spec.row_group_rows;
      parquet_.budget = run.instance().budget();
      CheckParquetOptions(parquet_);
      extension_ = ParquetExtension(spec.compression);
    } else {
      extension_ = RowFileExtension(spec);
    }
    std::filesystem::create_directories(spec.folder);
  }

  ~FileSetWriter() {
    if (!done_) {
      partitions_.clear();
      for (const auto& path : made_) {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
      }
    }
  }

  WriteResult Write() {
    while (auto chunk = run_.Next()) {
      Route(*chunk);
    }
    if (partition_columns_.empty() && spec_.write_empty_file && !partitions_.contains("0/")) {
      Open(PartitionOf("0/", 0, nullptr, 0));  // the first task writes a file though it has no row
    }
    std::stable_sort(in_order_.begin(), in_order_.end(),
                     [](const Partition* a, const Partition* b) { return a->task < b->task; });
    for (auto* partition : in_order_) {
      Close(*partition);
    }
    done_ = true;
    return std::move(result_);
  }

 private:
  void Route(duckdb::DataChunk& chunk) {
    result_.row_count += static_cast<std::int64_t>(chunk.size());
    duckdb::DataChunk data;
    data.InitializeEmpty(data_types_);
    for (std::size_t i = 0; i < data_columns_.size(); i++) {
      data.data[i].Reference(chunk.data[data_columns_[i]]);
    }
    data.SetCardinality(chunk.size());
    if (partition_columns_.empty() && !spec_.by_task) {
      Append(PartitionOf("0/", 0, nullptr, 0), data);
      return;
    }
    const std::int64_t* tasks = nullptr;
    if (spec_.by_task) {
      auto& last = chunk.data.back();
      last.Flatten(chunk.size());
      tasks = duckdb::FlatVector::GetData<std::int64_t>(last);
    }
    const auto task_of = [tasks](duckdb::idx_t row) { return tasks == nullptr ? 0 : tasks[row]; };
    // Rows of one partition, in order.
    std::vector<std::pair<Partition*, std::vector<std::uint32_t>>> groups;
    std::unordered_map<Partition*, std::size_t> places;
    bool constant =
        tasks == nullptr || std::all_of(tasks, tasks + chunk.size(), [tasks](auto t) { return t == *tasks; });
    for (const auto column : partition_columns_) {
      constant = constant && chunk.data[column].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    }
    if (constant) {
      Append(PartitionOf(KeyOf(chunk, 0, task_of(0)), task_of(0), &chunk, 0), data);
      return;
    }
    for (duckdb::idx_t row = 0; row < chunk.size(); row++) {
      auto& partition = PartitionOf(KeyOf(chunk, row, task_of(row)), task_of(row), &chunk, row);
      const auto place = places.try_emplace(&partition, groups.size());
      if (place.second) {
        groups.emplace_back(&partition, std::vector<std::uint32_t>());
      }
      groups[place.first->second].second.push_back(static_cast<std::uint32_t>(row));
    }
    for (auto& [partition, rows] : groups) {
      if (rows.size() == chunk.size()) {
        Append(*partition, data);
        continue;
      }
      duckdb::SelectionVector selection(rows.data());
      duckdb::DataChunk part;
      part.InitializeEmpty(data_types_);
      part.Slice(data, selection, rows.size());
      Append(*partition, part);
    }
  }

  /// An empty string has the folder of NULL, and is NULL when it is read.
  static bool IsEmptyText(const duckdb::Value& value) {
    return !value.IsNull() && value.type().id() == duckdb::LogicalTypeId::VARCHAR &&
           duckdb::StringValue::Get(value).empty();
  }

  /// The row's task and partition values in a form that is equal only where they are.
  std::string KeyOf(duckdb::DataChunk& chunk, duckdb::idx_t row, std::int64_t task) {
    std::string key = std::to_string(task) + "/";
    for (const auto column : partition_columns_) {
      const auto value = chunk.GetValue(column, row);
      if (value.IsNull() || IsEmptyText(value)) {
        key += 'n';
        continue;
      }
      const std::string text = value.type().InternalType() == duckdb::PhysicalType::VARCHAR
                                   ? duckdb::StringValue::Get(value)
                                   : value.ToString();
      key += 'v';
      key += std::to_string(text.size());
      key += ':';
      key += text;
    }
    return key;
  }

  Partition& PartitionOf(const std::string& key, std::int64_t task, duckdb::DataChunk* chunk, duckdb::idx_t row) {
    auto& slot = partitions_[key];
    if (slot != nullptr) {
      return *slot;
    }
    slot = std::make_unique<Partition>();
    slot->task = task;
    in_order_.push_back(slot.get());
    if (chunk == nullptr) {
      return *slot;
    }
    for (std::size_t i = 0; i < partition_columns_.size(); i++) {
      const auto& column = run_.columns()[partition_columns_[i]];
      const auto carried = chunk->GetValue(partition_columns_[i], row);
      auto value = IsEmptyText(carried) ? types::Value() : FromCarrier(carried, column.type);
      if (spec_.partition_folders) {
        const std::string& name =
            i < spec_.partition_folder_names.size() ? spec_.partition_folder_names[i] : column.name;
        std::string text = value.is_null() ? "" : PartitionText(value, column.type, spec_.session_zone);
        slot->folder += EscapeSegment(name) + "=" +
                        (text.empty() ? std::string("__HIVE_DEFAULT_PARTITION__") : EscapeSegment(text)) + "/";
      }
      slot->values.push_back(std::move(value));
    }
    return *slot;
  }

  void Open(Partition& partition) {
    char task[24];
    char number[16];
    std::snprintf(task, sizeof(task), "%05lld", static_cast<long long>(partition.task));
    std::snprintf(number, sizeof(number), "%03d", partition.files++);
    partition.relative_path = partition.folder + "part-" + task + "-" + NewUuid() + "-c" + number + extension_;
    if (!partition.folder.empty()) {
      std::filesystem::create_directories(spec_.folder + "/" + partition.folder);
    }
    const std::string path = spec_.folder + "/" + partition.relative_path;
    made_.push_back(path);
    if (spec_.format == plan::FileFormat::kParquet) {
      partition.writer = std::make_unique<ParquetFileWriter>(run_.context(), parquet_, path);
    } else {
      partition.writer = MakeRowFileWriter(spec_, schema_, path);
    }
    if (spec_.statistics_columns != 0 && spec_.format == plan::FileFormat::kParquet) {
      partition.statistics = std::make_unique<StatisticsCollector>(schema_, physical_, spec_.statistics_columns);
    }
    partition.rows = 0;
  }

  void Append(Partition& partition, duckdb::DataChunk& rows) {
    duckdb::idx_t at = 0;
    while (at < rows.size()) {
      if (partition.writer == nullptr) {
        Open(partition);
      }
      duckdb::idx_t count = rows.size() - at;
      if (spec_.max_file_rows > 0) {
        count = std::min(count, static_cast<duckdb::idx_t>(spec_.max_file_rows - partition.rows));
      }
      if (count == rows.size()) {
        AppendAll(partition, rows);
      } else {
        duckdb::SelectionVector selection(count);
        for (duckdb::idx_t i = 0; i < count; i++) {
          selection.set_index(i, at + i);
        }
        duckdb::DataChunk part;
        part.InitializeEmpty(data_types_);
        part.Slice(rows, selection, count);
        AppendAll(partition, part);
      }
      at += count;
      if ((spec_.max_file_rows > 0 && partition.rows >= spec_.max_file_rows) ||
          (spec_.target_file_bytes > 0 && partition.writer->bytes() >= spec_.target_file_bytes)) {
        Close(partition);
      }
    }
  }

  /// Text that is no UTF-8 (a binary value cast to string) would make a file, and a table's log, that nobody can read.
  /// \param size  rows that the vector has; \param rows  those that count, null = all
  static void CheckTexts(duckdb::Vector& column, duckdb::idx_t size, const std::vector<duckdb::idx_t>* rows) {
    if (!HoldsText(column.GetType())) {
      return;
    }
    const auto physical = column.GetType().InternalType();
    const bool nested = physical == duckdb::PhysicalType::STRUCT || physical == duckdb::PhysicalType::LIST;
    if (nested) {
      column.Flatten(size);
    }
    duckdb::UnifiedVectorFormat format;
    column.ToUnifiedFormat(size, format);
    const auto* texts = reinterpret_cast<const duckdb::string_t*>(format.data);
    const auto* lists = reinterpret_cast<const duckdb::list_entry_t*>(format.data);
    // What lies in a list or struct that is NULL, or between the lists of rows that were filtered out, is no value.
    std::vector<duckdb::idx_t> inner;
    const duckdb::idx_t count = rows == nullptr ? size : rows->size();
    for (duckdb::idx_t i = 0; i < count; i++) {
      const auto at = format.sel->get_index(rows == nullptr ? i : (*rows)[i]);
      if (!format.validity.RowIsValid(at)) {
        continue;
      }
      if (physical == duckdb::PhysicalType::STRUCT) {
        inner.push_back(at);
      } else if (physical == duckdb::PhysicalType::LIST) {
        for (duckdb::idx_t k = 0; k < lists[at].length; k++) {
          inner.push_back(lists[at].offset + k);
        }
      } else {
        CheckText(texts[at]);
      }
    }
    if (physical == duckdb::PhysicalType::STRUCT) {
      for (auto& field : duckdb::StructVector::GetEntries(column)) {
        CheckTexts(*field, size, &inner);
      }
    } else if (physical == duckdb::PhysicalType::LIST) {
      CheckTexts(duckdb::ListVector::GetEntry(column), duckdb::ListVector::GetListSize(column), &inner);
    }
  }

  static void CheckText(const duckdb::string_t& text) {
    if (IsAscii(text.GetData(), text.GetSize()) || simdjson::validate_utf8(text.GetData(), text.GetSize())) {
      return;
    }
    const std::string_view shown(text.GetData(), std::min<std::size_t>(text.GetSize(), 100));
    RaiseError(Error(ErrorKind::kInvalidArgument, "INVALID_UTF8_STRING",
                     "Invalid UTF8 byte sequence found in string: " + HexEncode(shown) +
                         ". Write it as BINARY, or make it text with make_valid_utf8."));
  }

  static bool HoldsText(const duckdb::LogicalType& type) {
    return duckdb::TypeVisitor::Contains(type, duckdb::LogicalTypeId::VARCHAR);
  }

  void AppendAll(Partition& partition, duckdb::DataChunk& rows) {
    for (duckdb::Vector& column : rows.data) {
      CheckTexts(column, rows.size(), nullptr);
    }
    if (partition.statistics != nullptr) {
      partition.statistics->Add(rows);
    }
    partition.writer->Write(rows);
    partition.rows += static_cast<std::int64_t>(rows.size());
  }

  void Close(Partition& partition) {
    if (partition.writer == nullptr) {
      return;
    }
    WrittenFile file;
    file.size_bytes = partition.writer->Finish();
    file.relative_path = partition.relative_path;
    file.row_count = partition.rows;
    file.partition_values = partition.values;
    if (partition.statistics != nullptr) {
      file.statistics = partition.statistics->Take();
    }
    result_.files.push_back(std::move(file));
    partition.writer.reset();
    partition.statistics.reset();
  }

  Run& run_;
  const WriteSpec& spec_;
  std::vector<std::size_t> partition_columns_;
  std::vector<std::size_t> data_columns_;
  duckdb::vector<duckdb::LogicalType> data_types_;
  types::Schema schema_;
  types::Schema physical_;
  ParquetFileOptions parquet_;
  std::string extension_;
  std::unordered_map<std::string, std::unique_ptr<Partition>> partitions_;
  std::vector<Partition*> in_order_;
  std::vector<std::string> made_;
  WriteResult result_;
  bool done_ = false;
};

}  // namespace

WriteResult WriteRun(Run& run, const WriteSpec& spec) {
  FileSetWriter writer(run, spec);
  return writer.Write();
}

}  // namespace fleuve::engine
