#include <filesystem>

#include "base/bytes.h"
#include "connectors/foreach/batch_frame_internal.h"
#include "engine/engine.h"
#include "plan/analyzer.h"

namespace fleuve::connectors::foreach {

namespace {

/// Batches of at most about 4 MB each that are kept in memory.
constexpr std::size_t kMemoryBatches = 32;

/// False for types that Parquet files cannot hold as they are.
bool FitsFiles(const types::DataType& type) {
  using types::TypeKind;
  switch (type.kind()) {
    case TypeKind::kArray:
      return FitsFiles(type.element());
    case TypeKind::kMap:
      return FitsFiles(type.key()) && FitsFiles(type.value());
    case TypeKind::kStruct:
      for (const auto& field : type.fields()) {
        if (!FitsFiles(field.type)) {
          return false;
        }
      }
      return !type.fields().empty();
    case TypeKind::kBoolean:
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
    case TypeKind::kFloat:
    case TypeKind::kDouble:
    case TypeKind::kDecimal:
    case TypeKind::kString:
    case TypeKind::kBinary:
    case TypeKind::kDate:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return true;
    default:
      return false;
  }
}

/// Column names of the files: those of the frame may not be unique.
types::Schema FileNames(const types::Schema& schema) {
  std::vector<types::StructField> fields;
  for (const auto& field : schema.fields()) {
    fields.push_back({"c" + std::to_string(fields.size()), field.type, field.nullable, {}});
  }
  return types::DataType::Struct(std::move(fields));
}

/// A scan of files that are removed when nobody can read them any more.
struct OwnedFiles {
  plan::FileScan scan;
  std::string folder;
  ~OwnedFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
};

/// Owns the engine it reads from.
class LoanedReader final : public columnar::BatchReader {
 public:
  LoanedReader(EngineLoan loan, std::unique_ptr<columnar::BatchReader> reader)
      : loan_(std::move(loan)), reader_(std::move(reader)) {}
  const types::Schema& schema() const override { return reader_->schema(); }
  Result<std::optional<columnar::RecordBatch>> Next() override { return reader_->Next(); }

 private:
  EngineLoan loan_;  // outlives the reader
  std::unique_ptr<columnar::BatchReader> reader_;
};

}  // namespace

BatchFrame::BatchFrame(const SinkBatch& batch, std::string name, std::string spill_folder)
    : plan_(batch.plan),
      config_(batch.config),
      borrow_engine_(batch.borrow_engine),
      token_(batch.token),
      schema_(plan::SchemaOf(*batch.plan)),
      name_(std::move(name)),
      spill_folder_(std::move(spill_folder)) {}

BatchFrame::~BatchFrame() = default;

Result<void> BatchFrame::Compute() const {
  std::lock_guard lock(mutex_);  // whoever comes meanwhile wants the same rows
  if (prepared_ != nullptr) {
    return {};
  }
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(plan_, config_));
  FLEUVE_ASSIGN(const EngineLoan loan, borrow_engine_(token_));
  engine::ExecuteOptions options;
  options.token = token_;
  options.observer = std::make_shared<engine::RunObserver>();
  options.batch_rows = 100000;  // so that bytes, not rows, end a batch
  auto rows = std::make_shared<plan::RowScan>();
  {
    FLEUVE_ASSIGN(auto reader, loan.engine->Execute(prepared, options));
    while (true) {
      FLEUVE_ASSIGN(auto next, reader->Next());
      if (!next) {
        break;
      }
      rows->batches.push_back(*std::move(next));
      if (rows->batches.size() > kMemoryBatches && FitsFiles(schema_)) {
        rows.reset();
        break;
      }
    }
  }
  if (rows == nullptr) {
    return Spill(prepared, loan);
  }
  rows_ = std::move(rows);
  observer_ = options.observer;
  prepared_ = prepared;
  return {};
}

Result<void> BatchFrame::Spill(const plan::PlanPtr& prepared, const EngineLoan& loan) const {
  engine::WriteSpec spec;
  spec.folder = spill_folder_;
  spec.physical_schema = FileNames(schema_);
  spec.statistics_columns = 0;
  spec.session_zone = config_.session_zone;
  engine::ExecuteOptions options;
  options.token = token_;
  options.observer = std::make_shared<engine::RunObserver>();
  FLEUVE_ASSIGN(const engine::WriteResult written, loan.engine->WriteFiles(prepared, spec, options));
  const auto owned = std::make_shared<OwnedFiles>();
  owned->folder = spill_folder_;
  plan::FileScan* scan = &owned->scan;
  scan->data_schema = schema_;
  scan->physical_schema = spec.physical_schema;
  scan->session_zone = config_.session_zone;
  for (const engine::WrittenFile& file : written.files) {
    plan::ScanFile one;
    one.path = spill_folder_ + "/" + file.relative_path;
    one.uri = "file:" + one.path;
    one.size_bytes = file.size_bytes;
    one.row_count = file.row_count;
    scan->files.push_back(std::move(one));
  }
  files_ = std::shared_ptr<const plan::FileScan>(owned, scan);
  observer_ = options.observer;
  prepared_ = prepared;
  return {};
}

Result<std::shared_ptr<const plan::RowScan>> BatchFrame::PlanRows() const {
  FLEUVE_TRY(Compute());
  return rows_;
}

Result<std::shared_ptr<const plan::FileScan>> BatchFrame::PlanScan(const std::vector<plan::ExprPtr>& /*filters*/,
                                                                   const std::vector<plan::Attribute>&) const {
  {
    std::lock_guard lock(mutex_);
    if (files_ != nullptr) {
      return files_;
    }
  }
  // Rows in memory: there are no files to name.
  auto none = std::make_shared<plan::FileScan>();
  none->data_schema = schema_;
  return std::shared_ptr<const plan::FileScan>(std::move(none));
}

Result<std::unique_ptr<columnar::BatchReader>> BatchFrame::Open() const {
  FLEUVE_TRY(Compute());
  if (rows_ != nullptr) {
    return columnar::MakeReader(schema_, rows_->batches);
  }
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  leaf->output = plan::AttributesOf(schema_);
  leaf->scan = files_;
  // Reading back is little work beside the user's code: the share of the budget is given back at once.
  FLEUVE_ASSIGN(EngineLoan loan, borrow_engine_(token_));
  loan.lease.reset();
  engine::ExecuteOptions options;
  options.token = token_;
  FLEUVE_ASSIGN(auto reader, loan.engine->Execute(leaf, options));
  return std::unique_ptr<columnar::BatchReader>(std::make_unique<LoanedReader>(std::move(loan), std::move(reader)));
}

plan::PlanPtr BatchFrame::Report(engine::RunObserver& observer) const {
  std::lock_guard lock(mutex_);
  if (prepared_ == nullptr) {
    return nullptr;
  }
  plan::VisitPlan(prepared_, [&](const plan::LogicalPlan& node) {
    if (const std::int64_t rows = observer_->LeafRows(&node); rows > 0) {
      observer.AddLeafRows(&node, rows);
    }
  });
  for (auto& metrics : observer_->metrics()) {
    observer.AddMetrics(std::move(metrics));
  }
  return prepared_;
}

}  // namespace fleuve::connectors::foreach
