#include "duckdb/catalog/catalog_entry/table_function_catalog_entry.hpp"
#include "duckdb/common/multi_file/multi_file_reader.hpp"
#include "duckdb/common/multi_file/multi_file_states.hpp"
#include "duckdb/function/cast/cast_function_set.hpp"
#include "duckdb/optimizer/filter_combiner.hpp"
#include "duckdb/parser/expression/constant_expression.hpp"
#include "duckdb/parser/parsed_data/create_table_function_info.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/expression_iterator.hpp"
#include "duckdb/planner/filter/constant_filter.hpp"
#include "duckdb/planner/operator/logical_get.hpp"
#include "duckdb/planner/table_filter.hpp"
#include "duckdb/storage/statistics/base_statistics.hpp"
#include "duckdb/storage/statistics/numeric_stats.hpp"
#include "engine/carriers_internal.h"
#include "engine/duckdb_symbols_internal.h"
#include "engine/legacy_calendar_internal.h"
#include "engine/parquet_scan_internal.h"
#include "engine/parquet_variants_internal.h"
#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"
#include "parquet_reader.hpp"

namespace fleuve::engine {
namespace {

using duckdb::idx_t;
using duckdb::LogicalType;
using duckdb::MultiFileColumnDefinition;
using types::DataType;
using types::TypeKind;

/// A file of fewer rows than this has one row group as a rule: one thread reads it.
constexpr std::int64_t kRowGroupRows = 122880;
/// No column of a file has this name.
constexpr const char* kMissing = "\x01missing";

/// What the output columns of a leaf are, in the order of the table function's columns: data, partition, constants,
/// then the six parts of `_metadata`.
struct Layout {
  explicit Layout(const std::shared_ptr<Leaf>& leaf) : leaf(leaf) {
    const auto& scan = leaf->scan();
    data = scan.data_schema.fields().size();
    for (const auto* schema : {&scan.data_schema, &scan.partition_schema, &scan.constants_schema}) {
      for (const auto& field : schema->fields()) {
        types.push_back(field.type);
      }
    }
    if (scan.with_metadata) {
      for (const auto& field : plan::MetadataColumnType().fields()) {
        types.push_back(field.type);
      }
    }
  }

  /// The value of a column that is constant in a file.
  duckdb::Value Constant(const plan::ScanFile& file, std::size_t column) const {
    const auto& scan = leaf->scan();
    const std::size_t partitions = scan.partition_schema.fields().size();
    const std::size_t constants = scan.constants_schema.fields().size();
    if (column < data + partitions) {
      return CarrierValue(file.partition_values.at(column - data), types[column]);
    }
    if (column < data + partitions + constants) {
      return CarrierValue(file.constants.at(column - data - partitions), types[column]);
    }
    types::Value value;
    switch (column - data - partitions - constants) {
      case 0:
        value = types::Value(file.uri);
        break;
      case 1:
        value = types::Value(file.path.substr(file.path.rfind('/') + 1));
        break;
      case 2:
        value = types::Value(file.size_bytes);
        break;
      case 3:
        value = types::Value(std::int64_t{0});
        break;
      case 4:
        value = types::Value(file.size_bytes);
        break;
      default:
        value = types::Value(file.modified_ms * 1000);
        break;
    }
    return CarrierValue(value, types[column]);
  }

  std::shared_ptr<Leaf> leaf;
  std::vector<DataType> types;
  std::size_t data = 0;
};

class DeletedRowsFilter : public duckdb::DeleteFilter {
 public:
  explicit DeletedRowsFilter(std::shared_ptr<const plan::DeletedRows> deleted) : deleted_(std::move(deleted)) {}

  idx_t Filter(duckdb::row_t start, idx_t count, duckdb::SelectionVector& kept) override {
    kept.Initialize(STANDARD_VECTOR_SIZE);
    return static_cast<idx_t>(deleted_->Keep(start, static_cast<std::int64_t>(count), kept.data()));
  }

 private:
  std::shared_ptr<const plan::DeletedRows> deleted_;
};

/// The files of a leaf, or some of them.
class FileList : public duckdb::MultiFileList {
 public:
  FileList(std::shared_ptr<const Layout> layout, std::vector<std::uint32_t> files)
      : layout_(std::move(layout)), files_(std::move(files)) {}
  explicit FileList(std::shared_ptr<const Layout> layout) : layout_(std::move(layout)) {
    for (std::size_t i = 0; i < layout_->leaf->scan().files.size(); i++) {
      files_.push_back(static_cast<std::uint32_t>(i));
    }
  }

  const plan::ScanFile& File(idx_t i) const { return layout_->leaf->scan().files[files_[i]]; }
  const Layout& layout() const { return *layout_; }

  duckdb::vector<duckdb::OpenFileInfo> GetAllFiles() const override {
    duckdb::vector<duckdb::OpenFileInfo> all;
    for (idx_t i = 0; i < files_.size(); i++) {
      all.push_back(GetFile(i));
    }
    return all;
  }
  duckdb::FileExpandResult GetExpandResult() const override {
    if (files_.empty()) {
      return duckdb::FileExpandResult::NO_FILES;
    }
    const bool small = files_.size() == 1 && File(0).row_count >= 0 && File(0).row_count <= kRowGroupRows;
    return small ? duckdb::FileExpandResult::SINGLE_FILE : duckdb::FileExpandResult::MULTIPLE_FILES;
  }
  idx_t GetTotalFileCount() const override { return files_.size(); }
  duckdb::unique_ptr<duckdb::MultiFileList> Copy() const override {
    return duckdb::make_uniq<FileList>(layout_, files_);
  }
  duckdb::unique_ptr<duckdb::NodeStatistics> GetCardinality(duckdb::ClientContext&) const override {
    idx_t rows = 0;
    for (idx_t i = 0; i < files_.size(); i++) {
      const auto& file = File(i);
      rows +=
          static_cast<idx_t>(file.row_count >= 0 ? file.row_count : std::max<std::int64_t>(1, file.size_bytes / 50));
    }
    return duckdb::make_uniq<duckdb::NodeStatistics>(rows);
  }

  duckdb::unique_ptr<duckdb::MultiFileList> ComplexFilterPushdown(
      duckdb::ClientContext& context, const duckdb::MultiFileOptions&, duckdb::MultiFilePushdownInfo& info,
      duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& filters) const override {
    if (filters.empty()) {
      return nullptr;
    }
    duckdb::FilterCombiner combiner(context);
    for (const auto& filter : filters) {
      combiner.AddFilter(filter->Copy());
    }
    duckdb::vector<duckdb::FilterPushdownResult> results;
    auto set = combiner.GenerateTableScanFilters(info.column_indexes, results);
    return Prune(set, [](idx_t column) { return column; });
  }
  duckdb::unique_ptr<duckdb::MultiFileList> DynamicFilterPushdown(duckdb::ClientContext&,
                                                                  const duckdb::MultiFileOptions&,
                                                                  const duckdb::vector<duckdb::string>&,
                                                                  const duckdb::vector<LogicalType>&,
                                                                  const duckdb::vector<duckdb::column_t>& column_ids,
                                                                  duckdb::TableFilterSet& filters) const override {
    return Prune(filters, [&column_ids](idx_t position) { return column_ids[position]; });
  }

 protected:
  duckdb::OpenFileInfo GetFile(idx_t i) const override {
    if (i >= files_.size()) {
      return duckdb::OpenFileInfo();
    }
    const auto& file = File(i);
    duckdb::OpenFileInfo info(file.path);
    info.extended_info = duckdb::make_shared_ptr<duckdb::ExtendedOpenFileInfo>();
    auto& options = info.extended_info->options;
    if (file.size_bytes > 0) {
      options["file_size"] = duckdb::Value::UBIGINT(static_cast<std::uint64_t>(file.size_bytes));
    }
    options["last_modified"] = duckdb::Value::TIMESTAMP(duckdb::timestamp_t(file.modified_ms * 1000));
    options["etag"] = duckdb::Value("");
    options["validate_external_file_cache"] = duckdb::Value::BOOLEAN(false);
    options["has_deletes"] = duckdb::Value::BOOLEAN(file.deleted_rows != nullptr);
    return info;
  }

 private:
  template <typename ColumnOf>
  duckdb::unique_ptr<duckdb::MultiFileList> Prune(duckdb::TableFilterSet& filters, const ColumnOf& column_of) const {
    std::vector<std::uint32_t> kept;
    for (idx_t i = 0; i < files_.size(); i++) {
      bool may_match = true;
      for (auto& entry : filters.filters) {
        const auto column = column_of(entry.first);
        if (duckdb::IsVirtualColumn(column) || column < layout_->data || column >= layout_->types.size()) {
          continue;
        }
        if (!MayMatch(layout_->Constant(File(i), column), *entry.second)) {
          may_match = false;
          break;
        }
      }
      if (may_match) {
        kept.push_back(files_[i]);
      }
    }
    if (kept.size() == files_.size()) {
      return nullptr;
    }
    return duckdb::make_uniq<FileList>(layout_, std::move(kept));
  }

  /// False where no row of a column that always has this value passes the filter.
  static bool MayMatch(const duckdb::Value& value, duckdb::TableFilter& filter) {
    const auto& type = value.type();
    if (!type.IsNumeric() && !type.IsTemporal()) {
      if (filter.filter_type == duckdb::TableFilterType::CONSTANT_COMPARISON &&
          type.id() == duckdb::LogicalTypeId::VARCHAR) {
        return !value.IsNull() && filter.Cast<duckdb::ConstantFilter>().Compare(value);
      }
      return true;
    }
    auto statistics = duckdb::NumericStats::CreateEmpty(type);
    if (value.IsNull()) {
      statistics.Set(duckdb::StatsInfo::CAN_HAVE_NULL_VALUES);
    } else {
      duckdb::NumericStats::SetMin(statistics, value);
      duckdb::NumericStats::SetMax(statistics, value);
      statistics.Set(duckdb::StatsInfo::CAN_HAVE_VALID_VALUES);
    }
    return filter.CheckStatistics(statistics) != duckdb::FilterPropagateResult::FILTER_ALWAYS_FALSE;
  }

  std::shared_ptr<const Layout> layout_;
  std::vector<std::uint32_t> files_;
};

[[noreturn]] void RaiseMismatch(const std::string& path, const std::string& column, const DataType& expected,
                                const LogicalType& found) {
  RaiseError(Error(ErrorKind::kInvalidArgument, "FAILED_READ_FILE.PARQUET_COLUMN_DATA_TYPE_MISMATCH",
                   "Encountered error while reading file " + path +
                       ". Data type mismatches when reading Parquet column " + column + ". Expected Spark type " +
                       expected.SimpleString() + ", actual Parquet type " + found.ToString() + ".")
                 .With("path", path)
                 .With("column", "[" + column + "]")
                 .With("expectedType", expected.SimpleString())
                 .With("actualType", found.ToString()));
}

/// True where a file's column of this type may be read as the Spark type (the same, or one that only widens).
bool MayRead(const LogicalType& from, const DataType& to) {
  using duckdb::LogicalTypeId;
  const auto id = from.id();
  const bool small_integer = id == LogicalTypeId::TINYINT || id == LogicalTypeId::SMALLINT ||
                             id == LogicalTypeId::INTEGER || id == LogicalTypeId::UTINYINT ||
                             id == LogicalTypeId::USMALLINT;
  const bool integer = small_integer || id == LogicalTypeId::BIGINT || id == LogicalTypeId::UINTEGER;
  switch (to.kind()) {
    case TypeKind::kVoid:
      return true;
    case TypeKind::kBoolean:
      return id == LogicalTypeId::BOOLEAN;
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kYearMonthInterval:
      return small_integer;
    case TypeKind::kLong:
    case TypeKind::kDayTimeInterval:
      return integer;
    case TypeKind::kFloat:
      return id == LogicalTypeId::FLOAT;
    case TypeKind::kDouble:
      return id == LogicalTypeId::DOUBLE || id == LogicalTypeId::FLOAT || small_integer;
    case TypeKind::kDecimal:
      if (id == LogicalTypeId::DECIMAL) {
        const int precision = duckdb::DecimalType::GetWidth(from);
        const int scale = duckdb::DecimalType::GetScale(from);
        return to.scale() >= scale && to.precision() - to.scale() >= precision - scale;
      }
      return (integer && to.precision() - to.scale() >= (small_integer ? 10 : 19)) || id == LogicalTypeId::UBIGINT;
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return id == LogicalTypeId::VARCHAR || id == LogicalTypeId::BLOB || id == LogicalTypeId::ENUM;
    case TypeKind::kBinary:
      return id == LogicalTypeId::BLOB || id == LogicalTypeId::VARCHAR;
    case TypeKind::kDate:
      return id == LogicalTypeId::DATE;
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return id == LogicalTypeId::TIMESTAMP || id == LogicalTypeId::TIMESTAMP_TZ || id == LogicalTypeId::TIMESTAMP_NS ||
             id == LogicalTypeId::TIMESTAMP_MS || (to.Is(TypeKind::kTimestampNtz) && id == LogicalTypeId::DATE);
    case TypeKind::kArray:
      return id == LogicalTypeId::LIST;
    case TypeKind::kMap:
      return id == LogicalTypeId::MAP;
    case TypeKind::kStruct:
      return id == LogicalTypeId::STRUCT;
    case TypeKind::kVariant:
      return id == LogicalTypeId::STRUCT;  // its parts are looked at where they are matched
    case TypeKind::kCalendarInterval:
    case TypeKind::kTime:
      break;
  }
  return false;
}

/// Gives the parts of lists and maps the names by which DuckDB knows them: what writers call them says nothing
/// ("bag" of "array" and "map" of "key" and "value" in Spark's legacy format, "array" in Avro's).
void NameParts(duckdb::vector<MultiFileColumnDefinition>* columns) {
  for (MultiFileColumnDefinition& column : *columns) {
    NameParts(&column.children);
    if (column.type.id() == duckdb::LogicalTypeId::LIST && column.children.size() == 1) {
      column.children[0].name = "list";
    } else if (column.type.id() == duckdb::LogicalTypeId::MAP) {
      auto& pair = column.children.size() == 1 ? column.children[0].children : column.children;
      if (pair.size() == 2) {
        pair[0].name = "key";
        pair[1].name = "value";
      }
    }
  }
}

/// Finds the columns of one file for the columns of the scan.
class ColumnMatcher {
 public:
  ColumnMatcher(const plan::FileScan& scan, const std::string& path) : scan_(scan), path_(path) {}

  /// The definition of column `i` of the data schema in terms of the file's names.
  MultiFileColumnDefinition Match(std::size_t i, const duckdb::vector<MultiFileColumnDefinition>& local) const {
    const auto& field = scan_.data_schema.fields()[i];
    const types::StructField* physical = scan_.physical_schema ? &scan_.physical_schema->fields()[i] : nullptr;
    return MatchField(field, physical, "c" + std::to_string(i), local);
  }

 private:
  MultiFileColumnDefinition MatchField(const types::StructField& field, const types::StructField* physical,
                                       const std::string& name,
                                       const duckdb::vector<MultiFileColumnDefinition>& local) const {
    MultiFileColumnDefinition result(name, CarrierType(field.type));
    result.default_expression = duckdb::make_uniq<duckdb::ConstantExpression>(duckdb::Value(result.type));
    const MultiFileColumnDefinition* found = Find(physical != nullptr ? *physical : field, local);
    if (found == nullptr || field.type.Is(TypeKind::kVoid)) {
      result.identifier = duckdb::Value(kMissing);
      return result;
    }
    Fill(&result, field.type, physical != nullptr ? &physical->type : nullptr, *found, field.name);
    return result;
  }

  void Fill(MultiFileColumnDefinition* result, const DataType& type, const DataType* physical,
            const MultiFileColumnDefinition& local, const std::string& column) const {
    result->identifier = duckdb::Value(local.name);
    if (!MayRead(local.type, type)) {
      RaiseMismatch(path_, column, type, local.type);
    }
    const auto child = [&](const std::string& name, const DataType& child_type, const DataType* child_physical,
                           const MultiFileColumnDefinition& child_local) {
      MultiFileColumnDefinition definition(name, CarrierType(child_type));
      definition.default_expression = duckdb::make_uniq<duckdb::ConstantExpression>(duckdb::Value(definition.type));
      Fill(&definition, child_type, child_physical, child_local, column + "." + name);
      result->children.push_back(std::move(definition));
    };
    switch (type.kind()) {
      case TypeKind::kArray:
        if (local.children.size() == 1) {
          child("list", type.element(), physical != nullptr ? &physical->element() : nullptr, local.children[0]);
        }
        break;
      case TypeKind::kMap: {
        const auto& pair = local.children.size() == 1 ? local.children[0].children : local.children;
        if (pair.size() != 2) {
          RaiseMismatch(path_, column, type, local.type);
        }
        child("key", type.key(), physical != nullptr ? &physical->key() : nullptr, pair[0]);
        child("value", type.value(), physical != nullptr ? &physical->value() : nullptr, pair[1]);
        break;
      }
      case TypeKind::kStruct:
        if (type.fields().empty()) {
          MultiFileColumnDefinition hidden("f0", LogicalType::INTEGER);
          hidden.default_expression =
              duckdb::make_uniq<duckdb::ConstantExpression>(duckdb::Value(LogicalType::INTEGER));
          hidden.identifier = duckdb::Value(kMissing);
          result->children.push_back(std::move(hidden));
        }
        for (std::size_t i = 0; i < type.fields().size(); i++) {
          result->children.push_back(MatchField(type.fields()[i],
                                                physical != nullptr ? &physical->fields()[i] : nullptr,
                                                "f" + std::to_string(i), local.children));
        }
        break;
      case TypeKind::kVariant:
        FillVariant(result, type, local, column);
        break;
      default:
        break;
    }
    if (type.IsNested() && !result->children.empty()) {
      TakeTypesOfParts(result);
    }
  }

  void FillVariant(MultiFileColumnDefinition* result, const DataType& type, const MultiFileColumnDefinition& local,
                   const std::string& column) const {
    const auto part = [&](const char* name) {
      return std::find_if(local.children.begin(), local.children.end(),
                          [name](const auto& child) { return child.name == name; });
    };
    const bool shredded = IsShreddedVariant(local);
    for (const char* name : {"value", "metadata"}) {
      const auto found = part(name);
      const bool binary = found != local.children.end() && found->type.id() == duckdb::LogicalTypeId::BLOB;
      if (!binary && !(shredded && found == local.children.end() && std::string_view(name) == "value")) {
        RaiseMismatch(path_, column, type, local.type);
      }
      if (binary && !shredded) {
        auto definition = AsInFile(*found);
        definition.name = std::string_view(name) == "value" ? "f0" : "f1";
        result->children.push_back(std::move(definition));
      }
    }
    if (shredded) {
      const std::string name = result->name;
      *result = AsInFile(local);
      result->name = name;
    }
  }

  /// A nested column takes the types of its parts: shredded variants are read as they are in the file.
  static void TakeTypesOfParts(MultiFileColumnDefinition* column) {
    switch (column->type.id()) {
      case duckdb::LogicalTypeId::LIST:
        if (column->children.size() == 1) {
          column->type = LogicalType::LIST(column->children[0].type);
        }
        break;
      case duckdb::LogicalTypeId::MAP:
        column->type = LogicalType::MAP(column->children.at(0).type, column->children.at(1).type);
        break;
      default: {
        duckdb::child_list_t<LogicalType> fields;
        for (const auto& child : column->children) {
          fields.emplace_back(child.name, child.type);
        }
        column->type = LogicalType::STRUCT(std::move(fields));
        break;
      }
    }
    column->default_expression = duckdb::make_uniq<duckdb::ConstantExpression>(duckdb::Value(column->type));
  }

  const MultiFileColumnDefinition* Find(const types::StructField& field,
                                        const duckdb::vector<MultiFileColumnDefinition>& local) const {
    if (scan_.map_by_field_id) {
      // Columns that are not of the table's schema (kept row ids) have no id and are found by name.
      const Json* id = field.metadata.Find("parquet.field.id");
      for (const auto& candidate : local) {
        const bool same = id == nullptr ? candidate.name == field.name
                                        : !candidate.identifier.IsNull() &&
                                              candidate.identifier.GetValue<std::int32_t>() == id->AsInt();
        if (same) {
          return CheckFirst(candidate, local);
        }
      }
      return nullptr;
    }
    for (const auto& candidate : local) {
      if (candidate.name == field.name) {
        return CheckFirst(candidate, local);
      }
    }
    const MultiFileColumnDefinition* found = nullptr;
    for (const auto& candidate : local) {
      if (duckdb::StringUtil::CIEquals(candidate.name, field.name)) {
        if (found != nullptr) {
          RaiseError(Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2093",
                           "Found duplicate field(s) \"" + field.name + "\": [" + found->name + ", " + candidate.name +
                               "] in case-insensitive mode"));
        }
        found = &candidate;
      }
    }
    return found;
  }

  /// DuckDB finds columns of a file by name without case and takes the first: another one cannot be read.
  const MultiFileColumnDefinition* CheckFirst(const MultiFileColumnDefinition& candidate,
                                              const duckdb::vector<MultiFileColumnDefinition>& local) const {
    for (const auto& other : local) {
      if (&other == &candidate) {
        break;
      }
      if (duckdb::StringUtil::CIEquals(other.name, candidate.name)) {
        RaiseError(Error::Unsupported("the column " + candidate.name + " of the Parquet file " + path_ +
                                      ", which has another column of that name in another case,"));
      }
    }
    return &candidate;
  }

  const plan::FileScan& scan_;
  const std::string& path_;
};

struct ScanGlobalState : duckdb::MultiFileReaderGlobalState {
  explicit ScanGlobalState(const duckdb::MultiFileList& list) : MultiFileReaderGlobalState({}, &list) {}
};

class ScanReader : public duckdb::MultiFileReader {
 public:
  static duckdb::unique_ptr<duckdb::MultiFileReader> Create(const duckdb::TableFunction& function) {
    auto reader = duckdb::make_uniq<ScanReader>();
    reader->function_name = function.name;
    return reader;
  }
  duckdb::unique_ptr<duckdb::MultiFileReader> Copy() const override { return duckdb::make_uniq<ScanReader>(*this); }

  duckdb::shared_ptr<duckdb::MultiFileList> CreateFileList(duckdb::ClientContext& context,
                                                           const duckdb::vector<duckdb::string>& paths,
                                                           const duckdb::FileGlobInput&) override {
    const auto& leaf = RunState::Of(context).LeafAt(std::stoll(paths.at(0)));
    return duckdb::make_shared_ptr<FileList>(std::make_shared<const Layout>(leaf));
  }

  bool Bind(duckdb::MultiFileOptions&, duckdb::MultiFileList& files, duckdb::vector<LogicalType>& types,
            duckdb::vector<duckdb::string>& names, duckdb::MultiFileReaderBindData&) override {
    for (const auto& type : dynamic_cast<FileList&>(files).layout().types) {
      names.push_back("c" + std::to_string(names.size()));
      types.push_back(CarrierType(type));
    }
    if (types.empty()) {
      names.emplace_back("none");
      types.push_back(LogicalType::INTEGER);
    }
    return true;
  }

  void BindOptions(duckdb::MultiFileOptions& options, duckdb::MultiFileList& files, duckdb::vector<LogicalType>& types,
                   duckdb::vector<duckdb::string>& names, duckdb::MultiFileReaderBindData& bind) override {
    options.auto_detect_hive_partitioning = false;
    options.hive_partitioning = false;
    options.union_by_name = false;
    MultiFileReader::BindOptions(options, files, types, names, bind);
    for (std::size_t i = 0; i < types.size(); i++) {
      MultiFileColumnDefinition column(names[i], types[i]);
      column.default_expression = duckdb::make_uniq<duckdb::ConstantExpression>(duckdb::Value(types[i]));
      bind.schema.push_back(std::move(column));
    }
    bind.mapping = duckdb::MultiFileColumnMappingMode::BY_NAME;
  }

  duckdb::unique_ptr<duckdb::MultiFileReaderGlobalState> InitializeGlobalState(
      duckdb::ClientContext&, const duckdb::MultiFileOptions&, const duckdb::MultiFileReaderBindData&,
      const duckdb::MultiFileList& files, const duckdb::vector<MultiFileColumnDefinition>&,
      const duckdb::vector<duckdb::ColumnIndex>&) override {
    return duckdb::make_uniq<ScanGlobalState>(files);
  }

  void FinalizeBind(duckdb::MultiFileReaderData& data, const duckdb::MultiFileOptions& options,
                    const duckdb::MultiFileReaderBindData& bind,
                    const duckdb::vector<MultiFileColumnDefinition>& columns,
                    const duckdb::vector<duckdb::ColumnIndex>& ids, duckdb::ClientContext& context,
                    duckdb::optional_ptr<duckdb::MultiFileReaderGlobalState> state) override {
    MultiFileReader::FinalizeBind(data, options, bind, columns, ids, context, state);
    const auto& list = dynamic_cast<const FileList&>(*state->file_list);
    const auto& file = list.File(data.reader->file_list_idx.GetIndex());
    for (idx_t i = 0; i < ids.size(); i++) {
      const auto column = ids[i].GetPrimaryIndex();
      if (!duckdb::IsVirtualColumn(column) && column >= list.layout().data && column < list.layout().types.size()) {
        data.constant_map.Add(duckdb::MultiFileGlobalIndex(i), list.layout().Constant(file, column));
      }
    }
    if (file.deleted_rows != nullptr && file.deleted_rows->count() > 0) {
      data.reader->deletion_filter = duckdb::make_uniq<DeletedRowsFilter>(file.deleted_rows);
    }
  }

  duckdb::ReaderInitializeType CreateMapping(duckdb::ClientContext& context, duckdb::MultiFileReaderData& data,
                                             const duckdb::vector<MultiFileColumnDefinition>& columns,
                                             const duckdb::vector<duckdb::ColumnIndex>& ids,
                                             duckdb::optional_ptr<duckdb::TableFilterSet> filters,
                                             duckdb::MultiFileList& files, const duckdb::MultiFileReaderBindData& bind,
                                             const duckdb::virtual_column_map_t& virtual_columns) override {
    const auto& list = dynamic_cast<const FileList&>(files);
    auto& reader = dynamic_cast<duckdb::ParquetReader&>(*data.reader);
    ShowVariantsAsStructs(reader);
    NameParts(&reader.columns);
    const auto& local = data.reader->GetColumns();
    const std::string path = data.reader->GetFileName();
    const ColumnMatcher matcher(list.layout().leaf->scan(), path);
    auto adapted = columns;
    for (const auto& id : ids) {
      const auto column = id.GetPrimaryIndex();
      if (!duckdb::IsVirtualColumn(column) && column < list.layout().data) {
        adapted[column] = matcher.Match(column, local);
      }
    }
    const auto& scan = list.layout().leaf->scan();
    Changes changes;
    changes.calendar = OldCalendar(*data.reader, scan, ids, list.layout().data, &changes.old);
    for (idx_t i = 0; i < ids.size(); i++) {
      const auto column = ids[i].GetPrimaryIndex();
      if (!duckdb::IsVirtualColumn(column) && column < list.layout().data &&
          adapted[column].type != columns[column].type) {
        changes.shredded.insert(i);
      }
    }
    duckdb::TableFilterSet others;
    duckdb::optional_ptr<duckdb::TableFilterSet> mapped = filters;
    if (filters && !changes.empty()) {
      for (const auto& [index, filter] : filters->filters) {
        if (!changes.Touch(index)) {
          others.filters.emplace(index, filter->Copy());
        }
      }
      mapped = others.filters.empty() ? nullptr : duckdb::optional_ptr<duckdb::TableFilterSet>(&others);
    }
    const auto state = MultiFileReader::CreateMapping(context, data, adapted, ids, mapped, files, bind, virtual_columns,
                                                      duckdb::MultiFileColumnMappingMode::BY_NAME);
    for (idx_t index = 0; index < ids.size(); index++) {
      if (changes.Touch(index)) {
        Change(data, index, list.layout().types[ids[index].GetPrimaryIndex()], changes, filters.get());
      }
    }
    return state;
  }
  using MultiFileReader::CreateMapping;

 private:
  /// What stands between the columns of a file and everything that sees them, by position in the list of columns.
  struct Changes {
    bool Touch(idx_t index) const { return old.contains(index) || shredded.contains(index); }
    bool empty() const { return old.empty() && shredded.empty(); }

    FileCalendar calendar;
    std::set<idx_t> old;       ///< hold dates and timestamps in an old calendar
    std::set<idx_t> shredded;  ///< hold shredded variants
  };

  /// The calendar of a file; the positions in `ids` of the columns that must be changed to the new one go to `old`.
  static FileCalendar OldCalendar(const duckdb::BaseFileReader& reader, const plan::FileScan& scan,
                                  const duckdb::vector<duckdb::ColumnIndex>& ids, std::size_t data_columns,
                                  std::set<idx_t>* old) {
    for (idx_t i = 0; i < ids.size(); i++) {
      const auto column = ids[i].GetPrimaryIndex();
      if (!duckdb::IsVirtualColumn(column) && column < data_columns &&
          HoldsCalendarValues(scan.data_schema.fields()[column].type)) {
        old->insert(i);
      }
    }
    FileCalendar calendar;
    if (!old->empty()) {
      std::map<std::string, std::string> metadata;
      for (const auto& pair :
           dynamic_cast<const duckdb::ParquetReader&>(reader).GetFileMetadata()->key_value_metadata) {
        metadata.emplace(pair.key, pair.value);
      }
      calendar = CalendarOf(metadata, scan);
    }
    if (calendar.keeps_all()) {
      old->clear();
    }
    return calendar;
  }

  /// Puts the changes between a column of the file and everything that sees it, filters included: the reader must
  /// compare new values and may not skip row groups by the old ones.
  static void Change(duckdb::MultiFileReaderData& data, idx_t index, const DataType& type, const Changes& changes,
                     const duckdb::TableFilterSet* filters) {
    auto& expr = data.expressions[index];
    std::optional<idx_t> local;
    duckdb::ExpressionIterator::VisitExpressionMutable<duckdb::BoundReferenceExpression>(
        expr, [&local](duckdb::BoundReferenceExpression& reference, duckdb::unique_ptr<duckdb::Expression>&) {
          local = reference.index;
        });
    if (!local.has_value()) {
      return;  // the file lacks the column
    }
    auto& reader = dynamic_cast<duckdb::ParquetReader&>(*data.reader);
    const auto column = reader.column_indexes[duckdb::MultiFileLocalIndex(*local)].GetPrimaryIndex();
    if (changes.shredded.contains(index)) {
      expr = WithWholeVariants(std::move(expr), type);
    }
    if (changes.old.contains(index)) {
      expr =
          InNewCalendar(std::move(expr), type, changes.calendar, HoldsInt96(reader.root_schema->children.at(column)));
    }
    if (filters == nullptr || !filters->filters.contains(index)) {
      return;
    }
    duckdb::ExpressionIterator::VisitExpressionMutable<duckdb::BoundReferenceExpression>(
        expr, [](duckdb::BoundReferenceExpression& reference, duckdb::unique_ptr<duckdb::Expression>&) {
          reference.index = 0;
        });
    const auto carrier = expr->return_type;
    reader.expression_map[column] = std::move(expr);
    expr = duckdb::make_uniq<duckdb::BoundReferenceExpression>(carrier, *local);
    if (reader.filters == nullptr) {
      reader.filters = duckdb::make_uniq<duckdb::TableFilterSet>();
    }
    reader.filters->filters.emplace(*local, filters->filters.at(index)->Copy());
  }

  static bool HoldsInt96(const duckdb::ParquetColumnSchema& schema) {
    return schema.type_info == duckdb::ParquetExtraTypeInfo::IMPALA_TIMESTAMP ||
           std::any_of(schema.children.begin(), schema.children.end(), HoldsInt96);
  }
};

/// parquet_scan's own functions, called through ours; the same in every instance.
std::once_flag g_once;
duckdb::table_function_t g_scan = nullptr;
duckdb::table_function_init_global_t g_init_global = nullptr;
duckdb::table_function_init_local_t g_init_local = nullptr;

/// A failure of the reader is a failure to read the file, unless it is one of ours or asks for the end.
template <typename Body>
auto ReadGuard(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (std::exception& caught) {
    const duckdb::ErrorData error(caught);
    const auto type = error.Type();
    if (type == duckdb::ExceptionType::INTERRUPT || type == duckdb::ExceptionType::OUT_OF_MEMORY ||
        type == duckdb::ExceptionType::INTERNAL || type == duckdb::ExceptionType::FATAL || IsCarried(error)) {
      throw;
    }
    const bool missing = error.RawMessage().find("No such file or directory") != std::string::npos;
    RaiseError(Error(missing ? ErrorKind::kNotFound : ErrorKind::kCorrupt,
                     missing ? "FAILED_READ_FILE.FILE_NOT_EXIST" : "FAILED_READ_FILE.NO_HINT",
                     "Encountered error while reading a file: " + error.RawMessage()));
  }
}

void Scan(duckdb::ClientContext& context, duckdb::TableFunctionInput& input, duckdb::DataChunk& output) {
  ReadGuard([&] { g_scan(context, input, output); });
}

void CountedScan(duckdb::ClientContext& context, duckdb::TableFunctionInput& input, duckdb::DataChunk& output) {
  ReadGuard([&] { g_scan(context, input, output); });
  const auto& bind = input.bind_data->Cast<duckdb::MultiFileBindData>();
  dynamic_cast<const FileList&>(*bind.file_list).layout().leaf->rows += static_cast<std::int64_t>(output.size());
}

duckdb::unique_ptr<duckdb::GlobalTableFunctionState> InitGlobal(duckdb::ClientContext& context,
                                                                duckdb::TableFunctionInitInput& input) {
  return ReadGuard([&] { return g_init_global(context, input); });
}

duckdb::unique_ptr<duckdb::LocalTableFunctionState> InitLocal(duckdb::ExecutionContext& context,
                                                              duckdb::TableFunctionInitInput& input,
                                                              duckdb::GlobalTableFunctionState* state) {
  return ReadGuard([&] { return g_init_local(context, input, state); });
}

/// Bytes stay as they are between strings and binaries: files of other writers leave the mark off.
bool SameBytes(duckdb::Vector& source, duckdb::Vector& result, idx_t count, duckdb::CastParameters&) {
  result.Reinterpret(source);
  (void)count;
  return true;
}

}  // namespace

void InstallParquetScan(duckdb::DatabaseInstance& db) {
  CheckParquetCodecs();
  CheckParquetVariants();
  auto& catalog = duckdb::Catalog::GetSystemCatalog(db);
  const auto transaction = duckdb::CatalogTransaction::GetSystemTransaction(db);
  auto& schema = catalog.GetSchema(transaction, DEFAULT_SCHEMA);
  const auto entry = schema.GetEntry(transaction, duckdb::CatalogType::TABLE_FUNCTION_ENTRY, "parquet_scan");
  const auto& parquet = entry->Cast<duckdb::TableFunctionCatalogEntry>();
  for (const bool counted : {false, true}) {
    const std::string name = counted ? "fleuve_parquet_counted" : "fleuve_parquet";
    duckdb::TableFunctionSet set(name);
    for (auto function : parquet.functions.functions) {
      std::call_once(g_once, [&function] {
        g_scan = function.function;
        g_init_global = function.init_global;
        g_init_local = function.init_local;
      });
      function.name = name;
      function.function = counted ? CountedScan : Scan;
      function.init_global = InitGlobal;
      function.init_local = InitLocal;
      function.get_multi_file_reader = ScanReader::Create;
      function.serialize = nullptr;
      function.deserialize = nullptr;
      function.statistics = nullptr;
      function.statistics_extended = nullptr;
      function.get_partition_stats = nullptr;
      function.table_scan_progress = nullptr;
      function.get_bind_info = nullptr;
      function.late_materialization = false;
      if (counted) {
        function.filter_pushdown = false;
        function.filter_prune = false;
        function.pushdown_complex_filter = nullptr;
      }
      set.AddFunction(std::move(function));
    }
    duckdb::CreateTableFunctionInfo info(std::move(set));
    info.internal = true;
    catalog.CreateTableFunction(transaction, info);
  }
  auto& casts = duckdb::DBConfig::GetConfig(db).GetCastFunctions();
  casts.RegisterCastFunction(LogicalType::BLOB, LogicalType::VARCHAR, duckdb::BoundCastInfo(SameBytes));
  casts.RegisterCastFunction(LogicalType::VARCHAR, LogicalType::BLOB, duckdb::BoundCastInfo(SameBytes));
}

}  // namespace fleuve::engine
