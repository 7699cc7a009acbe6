#include "connectors/files/file_table.h"

#include <algorithm>

#include "base/bytes.h"
#include "connectors/files/file_schema.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

namespace {

using plan::FileFormat;

/// Whether a conjunct over one partition column may hold for a value: only `column = literal` is looked at.
bool MayMatch(const plan::Expr& filter, const plan::Attribute& column, const types::Value& value) {
  if (filter.kind != plan::ExprKind::kCall || filter.children.size() != 2 || filter.function != "eq") {
    return true;
  }
  const plan::Expr* left = filter.children[0].get();
  const plan::Expr* right = filter.children[1].get();
  if (left->kind == plan::ExprKind::kLiteral) {
    std::swap(left, right);
  }
  if (left->kind != plan::ExprKind::kAttribute || right->kind != plan::ExprKind::kLiteral ||
      left->attribute.id != column.id || !(left->type == right->type)) {
    return true;
  }
  if (value.is_null() || right->value.is_null()) {
    return false;
  }
  const auto kind = right->type.kind();
  if (right->type.IsIntegral() || right->type.IsDateTime() || kind == types::TypeKind::kBoolean ||
      (right->type.IsString() && right->type.collation() == types::DataType::String().collation())) {
    return value == right->value;
  }
  return true;
}

class FileTable final : public plan::TableSource {
 public:
  FileTable(std::string name, FileFormat format, SplitSchema schema, std::shared_ptr<const plan::FileScan> scan)
      : name_(std::move(name)), format_(format), schema_(std::move(schema)), scan_(std::move(scan)) {}

  const types::Schema& schema() const override { return schema_.all; }
  std::string name() const override { return name_; }
  std::string provider() const override { return FormatName(format_); }

  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>& filters,
                                                         const std::vector<plan::Attribute>& columns) const override {
    const std::size_t data = schema_.data.fields().size();
    const std::size_t partitions = schema_.partition.fields().size();
    if (partitions == 0 || filters.empty() || columns.size() != data + partitions) {
      return scan_;
    }
    auto kept = std::make_shared<plan::FileScan>(*scan_);
    kept->files.clear();
    for (const plan::ScanFile& file : scan_->files) {
      bool match = true;
      for (std::size_t k = 0; match && k < partitions; ++k) {
        for (const plan::ExprPtr& filter : filters) {
          match = match && MayMatch(*filter, columns[data + k], file.partition_values[k]);
        }
      }
      if (match) {
        kept->files.push_back(file);
      }
    }
    return std::shared_ptr<const plan::FileScan>(std::move(kept));
  }

 private:
  const std::string name_;
  const FileFormat format_;
  const SplitSchema schema_;
  const std::shared_ptr<const plan::FileScan> scan_;
};

}  // namespace

Result<std::shared_ptr<const plan::TableSource>> MakeFileTable(const FileReadRequest& request,
                                                               const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(const FileFormat format, ParseFormat(request.format));
  plan::Options given = request.options;
  if (const std::string container = ContainerOf(request.format); !container.empty()) {
    given["fleuve.container"] = container;
  }
  FLEUVE_ASSIGN(const plan::Options options, ReaderOptions(format, given, config));
  std::vector<std::string> paths = request.paths;
  if (paths.empty()) {
    if (const std::string* path = plan::FindOption(request.options, "path")) {
      paths.push_back(*path);
    }
  }
  if (paths.empty()) {
    return Error(ErrorKind::kInvalidArgument, "UNABLE_TO_INFER_SCHEMA",
                 std::string("Unable to infer schema for ") + FormatName(format) + ". It must be specified manually.");
  }
  for (std::string& path : paths) {
    FLEUVE_ASSIGN(path, LocalPathOf(path));
  }
  FLEUVE_ASSIGN(const FindOptions find, MakeFindOptions(request.options, config));
  FLEUVE_ASSIGN(const FoundFiles all, FindFiles(paths, find, false));
  const FoundFiles found = Distinct(all);
  Partitioning partitioning;
  if (!find.recursive) {
    const bool infer = ConfBool(config, "spark.sql.sources.partitionColumnTypeInference.enabled", true);
    FLEUVE_ASSIGN(partitioning, DiscoverPartitions(found.files, found.bases, request.schema, infer,
                                                   config.case_sensitive, config.session_zone));
  }
  const bool partitioned = !partitioning.schema.fields().empty();
  const std::vector<ListedFile> files = partitioned      ? partitioning.files
                                        : find.recursive ? found.files
                                                         : DirectChildren(all).files;
  types::Schema data;
  if (request.schema && !request.schema->fields().empty()) {
    data = *request.schema;
  } else if (request.schema && FixedSchema(format)) {
    data = *FixedSchema(format);
  } else {
    FLEUVE_ASSIGN(data, InferFileSchema(format, files, options, config));
  }
  FLEUVE_ASSIGN(SplitSchema schema, MakeSchema(format, data, partitioning.schema, config.case_sensitive));
  FLEUVE_ASSIGN(auto scan, MakeScan(format, schema, options, config.session_zone, files, partitioning.values));
  std::string name = std::string(FormatName(format)) + ".`" + paths.front() + "`";
  return std::shared_ptr<const plan::TableSource>(
      std::make_shared<FileTable>(std::move(name), format, std::move(schema), std::move(scan)));
}

}  // namespace fleuve::connectors::files
