#include "engine/parquet_files.h"

#include <filesystem>

#include "engine/arrow_rows_internal.h"
#include "engine/carriers_internal.h"
#include "engine/engine.h"
#include "engine/infer.h"
#include "engine/instance_internal.h"
#include "engine/parquet_writer_internal.h"
#include "engine/raise_internal.h"
#include "plan/logical_plan.h"

namespace fleuve::engine {
namespace {

/// Checkpoints are read by one thread at a time as a rule, beside the operation that needs them.
EngineOptions SmallOptions() {
  EngineOptions options;
  options.threads = 1;
  options.memory_bytes = std::int64_t{1} << 30;
  return options;
}

Result<Engine*> SharedEngine() {
  static std::mutex mutex;
  static Engine* engine = nullptr;
  std::lock_guard lock(mutex);
  if (engine == nullptr) {
    FLEUVE_ASSIGN(auto opened, Engine::Open(SmallOptions()));
    engine = opened.release();
  }
  return engine;
}

Result<std::shared_ptr<Instance>> SharedInstance() {
  static std::mutex mutex;
  static auto* instance = new std::shared_ptr<Instance>();
  std::lock_guard lock(mutex);
  return Guard([&]() -> Result<std::shared_ptr<Instance>> {
    if (*instance == nullptr || (*instance)->Invalidated()) {
      *instance = std::make_shared<Instance>(SmallOptions());
    }
    return *instance;
  });
}

class FileReader final : public delta::ParquetReader {
 public:
  Result<types::Schema> ReadSchema(const std::string& path) override { return ReadParquetSchema(path); }

  Result<std::unique_ptr<columnar::BatchReader>> Read(const std::string& path, const types::Schema& schema) override {
    FLEUVE_ASSIGN(auto* engine, SharedEngine());
    std::error_code status;
    const auto size = std::filesystem::file_size(path, status);
    if (status) {
      return Error(ErrorKind::kNotFound, "FAILED_READ_FILE.FILE_NOT_EXIST", "The file " + path + " does not exist.");
    }
    auto scan = std::make_shared<plan::FileScan>();
    scan->data_schema = schema;
    plan::ScanFile file;
    file.path = path;
    file.uri = "file:" + path;
    file.size_bytes = static_cast<std::int64_t>(size);
    scan->files.push_back(std::move(file));
    auto node = std::make_shared<plan::LogicalPlan>();
    node->kind = plan::PlanKind::kFileScan;
    for (const auto& field : schema.fields()) {
      plan::Attribute attribute;
      attribute.id = plan::NewAttributeId();
      attribute.name = field.name;
      attribute.type = field.type;
      node->output.push_back(std::move(attribute));
    }
    node->scan = std::move(scan);
    return engine->Execute(node, ExecuteOptions());
  }
};

class FileWriter final : public delta::ParquetWriter {
 public:
  Result<std::int64_t> Write(const std::string& path, const types::Schema& schema,
                             std::unique_ptr<columnar::BatchReader> rows) override {
    FLEUVE_ASSIGN(auto instance, SharedInstance());
    auto written = Guard([&]() -> Result<std::int64_t> {
      ParquetFileOptions options;
      options.schema = schema;
      options.physical_schema = schema;
      options.key_value_metadata["org.apache.spark.sql.parquet.row.metadata"] = schema.ToJson().Dump();
      CheckParquetOptions(options);
      duckdb::Connection connection(instance->db());
      connection.BeginTransaction();
      ParquetFileWriter writer(*connection.context, options, path);
      duckdb::vector<duckdb::LogicalType> types;
      for (const auto& field : schema.fields()) {
        types.push_back(CarrierType(field.type));
      }
      while (true) {
        FLEUVE_ASSIGN(auto batch, rows->Next());
        if (!batch.has_value()) {
          break;
        }
        const auto& array = *batch->array->get();
        for (std::int64_t at = 0; at < array.length; at += STANDARD_VECTOR_SIZE) {
          const auto count =
              static_cast<duckdb::idx_t>(std::min<std::int64_t>(STANDARD_VECTOR_SIZE, array.length - at));
          duckdb::DataChunk part;
          part.Initialize(duckdb::Allocator::DefaultAllocator(), types);
          for (std::size_t i = 0; i < types.size(); i++) {
            ArrowToVector(*array.children[i], schema.fields()[i].type, static_cast<duckdb::idx_t>(array.offset + at),
                          count, part.data[i]);
          }
          part.SetCardinality(count);
          writer.Write(part);
        }
      }
      const std::int64_t size = writer.Finish();
      connection.Commit();
      return size;
    });
    if (!written.ok()) {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
    return written;
  }
};

}  // namespace

std::shared_ptr<delta::ParquetReader> MakeParquetReader() { return std::make_shared<FileReader>(); }
std::shared_ptr<delta::ParquetWriter> MakeParquetWriter() { return std::make_shared<FileWriter>(); }

}  // namespace fleuve::engine
