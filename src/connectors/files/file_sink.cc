// Spark's streaming file sink: files in the target folder, made visible by `_spark_metadata/<batch>`.

#include <charconv>

#include "base/bytes.h"
#include "base/clock.h"
#include "connectors/files/file_log.h"
#include "connectors/files/file_stream_internal.h"
#include "connectors/files/file_write.h"
#include "connectors/run_batch.h"
#include "engine/engine.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

namespace {

std::int64_t IntervalOf(const plan::AnalysisConfig& config) {
  const std::string text = ConfText(config, "spark.sql.streaming.fileSink.log.compactInterval", "10");
  std::int64_t value = 10;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value > 0 ? value : 10;
}

class FileBatch final : public StagedBatch {
 public:
  FileBatch(FileLog* log, std::int64_t batch, std::string folder, engine::WriteResult result, std::int64_t skipped)
      : log_(log),
        batch_(batch),
        folder_(std::move(folder)),
        result_(std::move(result)),
        already_there_(skipped != 0) {}

  DurableRecords BeforeCommit() override {
    DurableRecords records;
    records.folders.push_back(folder_);
    for (const engine::WrittenFile& file : result_.files) {
      records.files.push_back(folder_ + "/" + file.relative_path);
      const std::size_t slash = file.relative_path.rfind('/');
      if (slash != std::string::npos) {
        records.folders.push_back(folder_ + "/" + file.relative_path.substr(0, slash));
      }
    }
    return records;
  }

  Result<CommitOutcome> Commit() override {
    if (already_there_) {
      return CommitOutcome::kAlreadyThere;
    }
    std::vector<std::string> lines;
    for (const engine::WrittenFile& file : result_.files) {
      const std::string path = folder_ + "/" + file.relative_path;
      const auto found = StatFile(path);
      Json line = Json::Object{};
      line.Set("path", "file://" + storage::ToFileUri(path).substr(5));
      line.Set("size", found ? found->size_bytes : file.size_bytes);
      line.Set("isDir", false);
      line.Set("modificationTime", found ? found->modified_ms : Clock::System()->NowMillis());
      line.Set("blockReplication", 1);
      line.Set("blockSize", 33554432);
      line.Set("action", "add");
      lines.push_back(line.Dump());
    }
    FLEUVE_TRY(log_->Append(batch_, lines));
    return CommitOutcome::kCommitted;
  }

  DurableRecords AfterCommit() override { return log_->TakeDurableRecords(); }

 private:
  FileLog* log_;
  const std::int64_t batch_;
  const std::string folder_;
  const engine::WriteResult result_;
  const bool already_there_;
};

class FileSink final : public Sink {
 public:
  FileSink(FileWriteRequest request, std::string folder, const plan::AnalysisConfig& config)
      : request_(std::move(request)),
        folder_(std::move(folder)),
        store_(storage::LocalStore()),
        log_(store_, folder_ + "/_spark_metadata", IntervalOf(config)) {}

  std::string description() const override { return "FileSink[" + storage::ToFileUri(folder_) + "]"; }
  storage::ObjectStore* store() const override { return store_.get(); }

  Result<SinkRecord> Newest() override {
    FLEUVE_TRY(OpenLog());
    SinkRecord record;
    record.newest_batch = log_.newest();
    return record;
  }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    FLEUVE_TRY(OpenLog());
    if (batch.batch_id.value <= log_.newest()) {
      return std::unique_ptr<StagedBatch>(
          std::make_unique<FileBatch>(&log_, batch.batch_id.value, folder_, engine::WriteResult{}, 1));
    }
    FLEUVE_ASSIGN(engine::WriteSpec spec, MakeWriteSpec(request_, plan::SchemaOf(*batch.plan), batch.config));
    FLEUVE_ASSIGN(const plan::PlanPtr prepared, PrepareBatch(batch, batch.plan));
    FLEUVE_TRY(store_->CreateDirectory(folder_));
    engine::ExecuteOptions options;
    options.token = batch.token;
    options.observer = batch.observer;
    FLEUVE_ASSIGN(engine::WriteResult result, batch.engine->WriteFiles(prepared, spec, options));
    return std::unique_ptr<StagedBatch>(
        std::make_unique<FileBatch>(&log_, batch.batch_id.value, folder_, std::move(result), 0));
  }

 private:
  Result<void> OpenLog() {
    if (!open_) {
      FLEUVE_TRY(log_.Open());
      open_ = true;
    }
    return {};
  }

  const FileWriteRequest request_;
  const std::string folder_;
  const std::shared_ptr<storage::ObjectStore> store_;
  FileLog log_;
  bool open_ = false;
};

class FileSinkProvider final : public SinkProvider {
 public:
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& context) override {
    if (spec.output_mode != "append") {
      std::string mode = spec.output_mode;
      mode[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(mode[0])));
      return Error(ErrorKind::kInvalidArgument, "STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE",
                   "Invalid streaming output mode: " + spec.output_mode +
                       ". This output mode is not supported by the "
                       "data source " +
                       spec.format + ".");
    }
    FileWriteRequest request;
    request.format = spec.format;
    request.path = spec.path;
    request.partition_by = spec.partition_by;
    request.options = spec.options;
    if (request.path.empty()) {
      if (const std::string* path = plan::FindOption(spec.options, "path")) {
        request.path = *path;
      }
    }
    if (request.path.empty()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2047", "'path' is not specified")
          .Family(ErrorFamily::kIllegalArgument);
    }
    if (plan::FindOption(spec.options, "retention") != nullptr) {
      return Error::Unsupported("option retention of the streaming file sink");
    }
    FLEUVE_ASSIGN(const engine::WriteSpec checked, MakeWriteSpec(request, context.schema, context.config));
    return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(request), checked.folder, context.config));
  }
};

}  // namespace

std::shared_ptr<SinkProvider> MakeFileSinkProvider() { return std::make_shared<FileSinkProvider>(); }

}  // namespace fleuve::connectors::files
