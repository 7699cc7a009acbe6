#include "columnar/ipc.h"

#include <arrow/c/bridge.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/api.h>

#include "columnar/arrays.h"
#include "columnar/arrow_types_internal.h"

namespace fleuve::columnar {

namespace {

class VectorReader final : public BatchReader {
 public:
  VectorReader(types::Schema schema, std::vector<RecordBatch> batches)
      : schema_(std::move(schema)), batches_(std::move(batches)) {}
  const types::Schema& schema() const override { return schema_; }
  Result<std::optional<RecordBatch>> Next() override {
    while (next_ < batches_.size()) {
      RecordBatch batch = std::move(batches_[next_++]);
      if (batch.row_count() > 0) {
        return std::optional<RecordBatch>(std::move(batch));
      }
    }
    return std::optional<RecordBatch>();
  }

 private:
  types::Schema schema_;
  std::vector<RecordBatch> batches_;
  std::size_t next_ = 0;
};

}  // namespace

std::unique_ptr<BatchReader> MakeReader(types::Schema schema, std::vector<RecordBatch> batches) {
  return std::make_unique<VectorReader>(std::move(schema), std::move(batches));
}

/// The batch as Arrow C++ sees it, with the types of `schema`.
Result<std::shared_ptr<arrow::RecordBatch>> ImportBatch(const RecordBatch& batch,
                                                        const std::shared_ptr<arrow::Schema>& schema) {
  ArrowArray borrowed = ShareArray(*batch.array->get(), batch.array);
  const std::int64_t rows = borrowed.length;
  if (borrowed.n_children != schema->num_fields()) {
    borrowed.release(&borrowed);
    return Error::Internal("a batch of " + std::to_string(borrowed.n_children) + " columns meets a schema of " +
                           std::to_string(schema->num_fields()));
  }
  auto imported = arrow::ImportArray(&borrowed, arrow::struct_(schema->fields()));
  if (!imported.ok()) {
    return FromArrowStatus(imported.status());
  }
  const auto& structs = static_cast<const arrow::StructArray&>(**imported);
  arrow::ArrayVector columns;
  for (int i = 0; i < structs.num_fields(); ++i) {
    columns.push_back(structs.field(i));
  }
  return arrow::RecordBatch::Make(schema, rows, std::move(columns));
}

Result<RecordBatch> ExportBatch(const arrow::RecordBatch& batch, std::shared_ptr<const types::Schema> schema) {
  ArrowArray array{};
  FLEUVE_ARROW_TRY(arrow::ExportRecordBatch(batch, &array));
  return RecordBatch{std::move(schema), std::make_shared<ArrayHolder>(&array)};
}

Result<std::string> EncodeIpcStream(const types::Schema& schema, const std::vector<RecordBatch>& batches,
                                    const ArrowOptions& options) {
  FLEUVE_ASSIGN(auto arrow_schema, ToArrowCppSchema(schema, options));
  auto sink = arrow::io::BufferOutputStream::Create(4096);
  if (!sink.ok()) {
    return FromArrowStatus(sink.status());
  }
  arrow::ipc::IpcWriteOptions write_options = arrow::ipc::IpcWriteOptions::Defaults();
  write_options.use_threads = false;
  auto writer = arrow::ipc::MakeStreamWriter(*sink, arrow_schema, write_options);
  if (!writer.ok()) {
    return FromArrowStatus(writer.status());
  }
  for (const RecordBatch& batch : batches) {
    FLEUVE_ASSIGN(auto arrow_batch, ImportBatch(batch, arrow_schema));
    FLEUVE_ARROW_TRY((*writer)->WriteRecordBatch(*arrow_batch));
  }
  FLEUVE_ARROW_TRY((*writer)->Close());
  auto buffer = (*sink)->Finish();
  if (!buffer.ok()) {
    return FromArrowStatus(buffer.status());
  }
  return (*buffer)->ToString();
}

Result<IpcContent> DecodeIpcStream(std::string_view bytes) {
  // The batches point into one copy of the bytes, which lives as long as they do.
  auto buffer = arrow::Buffer::FromString(std::string(bytes));
  arrow::ipc::IpcReadOptions read_options = arrow::ipc::IpcReadOptions::Defaults();
  read_options.use_threads = false;
  auto reader =
      arrow::ipc::RecordBatchStreamReader::Open(std::make_shared<arrow::io::BufferReader>(buffer), read_options);
  if (!reader.ok()) {
    return FromArrowStatus(reader.status(), true);
  }
  IpcContent content;
  FLEUVE_ASSIGN(content.schema, FromArrowCppSchema(*(*reader)->schema()));
  auto schema = std::make_shared<const types::Schema>(content.schema);
  while (true) {
    std::shared_ptr<arrow::RecordBatch> batch;
    if (arrow::Status status = (*reader)->ReadNext(&batch); !status.ok()) {
      return FromArrowStatus(status, true);
    }
    if (batch == nullptr) {
      return content;
    }
    // The bytes come from outside: offsets and lengths must be right before anything follows them.
    if (arrow::Status status = batch->ValidateFull(); !status.ok()) {
      return FromArrowStatus(status, true);
    }
    arrow::ArrayVector columns;
    arrow::FieldVector fields;
    for (int i = 0; i < batch->num_columns(); ++i) {
      FLEUVE_ASSIGN(auto column, ToCanonical(batch->column(i)));
      fields.push_back(batch->schema()->field(i)->WithType(column->type()));
      columns.push_back(std::move(column));
    }
    auto canonical = arrow::RecordBatch::Make(arrow::schema(std::move(fields)), batch->num_rows(), std::move(columns));
    FLEUVE_ASSIGN(auto exported, ExportBatch(*canonical, schema));
    content.batches.push_back(std::move(exported));
  }
}

RecordBatch Slice(const RecordBatch& batch, std::int64_t offset, std::int64_t count) {
  const ArrowArray& source = *batch.array->get();
  // The offset moves into the columns, so that the struct itself begins at 0 and every column can be taken alone.
  std::vector<ArrowArray> columns;
  columns.reserve(static_cast<std::size_t>(source.n_children));
  for (std::int64_t i = 0; i < source.n_children; ++i) {
    ArrowArray column = ShareArray(*source.children[i], batch.array);
    column.offset += source.offset + offset;
    column.length = count;
    column.null_count = column.null_count == 0 ? 0 : -1;
    columns.push_back(column);
  }
  return MakeBatch(batch.schema, count, std::move(columns));
}

}  // namespace fleuve::columnar
