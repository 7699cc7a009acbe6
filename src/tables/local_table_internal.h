#pragma once

/// \file
/// A table on the local disk with real Parquet files, for tests: columns `id` BIGINT and `v` BIGINT.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "columnar/ipc.h"
#include "delta/log.h"
#include "delta/transaction.h"
#include "engine/engine.h"
#include "engine/parquet_files.h"
#include "tables/commands.h"

namespace fleuve::tables {

/// A folder that goes when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fleuve-tables-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// One for all tests of the program.
inline engine::Engine* SharedEngine() {
  static const std::unique_ptr<engine::Engine> engine = [] {
    engine::EngineOptions options;
    options.threads = 1;
    return *engine::Engine::Open(options);
  }();
  return engine.get();
}

/// The logs of one process over a store of its own, as a process has them.
class LocalProcess {
 public:
  explicit LocalProcess(engine::Engine* engine, std::shared_ptr<storage::ObjectStore> store = storage::LocalStore())
      : store_(std::move(store)), logs_(Context()) {
    context_.logs = &logs_;
    context_.engine = engine;
    context_.config.conf = [this](const std::string& key) {
      const auto at = settings.find(key);
      return at == settings.end() ? std::optional<std::string>() : std::optional<std::string>(at->second);
    };
  }

  delta::DeltaLogPtr Open(const std::string& path) { return logs_.Open({store_, path}); }
  TableRef Table(const std::string& path) const {
    TableRef table;
    table.location = {store_, path};
    table.name = "delta.`" + path + "`";
    return table;
  }
  const TableContext& context() const { return context_; }

  Result<void> Create(const std::string& path, delta::StringMap properties) {
    delta::Metadata metadata;
    metadata.id = "3f0f0a6e-0000-4000-8000-000000000000";
    metadata.schema_string = R"({"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}},)"
                             R"({"name":"v","type":"long","nullable":true,"metadata":{}}]})";
    metadata.configuration = std::move(properties);
    delta::Transaction transaction(Open(path), nullptr);
    FLEUVE_TRY(transaction.UpdateMetadata(std::move(metadata)));
    FLEUVE_TRY(transaction.Commit({}, {.name = "CREATE TABLE"}));
    return {};
  }

  /// A file of rows (id, v), written and synced, not yet of the table.
  Result<delta::AddFile> WriteFile(const std::string& path, const std::string& name,
                                   const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) {
    const types::Schema schema = *types::DataType::FromDdl("id bigint, v bigint");
    std::vector<types::Value::List> values;
    for (const auto& [id, v] : rows) {
      values.push_back({types::Value(id), types::Value(v)});
    }
    FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(schema, values));
    std::vector<columnar::RecordBatch> batches;
    batches.push_back(std::move(batch));
    std::filesystem::create_directories(path);
    delta::AddFile add;
    FLEUVE_ASSIGN(add.size, engine::MakeParquetWriter()->Write(path + "/" + name, schema,
                                                               columnar::MakeReader(schema, std::move(batches))));
    add.path = name;
    add.modification_time = 1;
    add.stats = "{\"numRecords\":" + std::to_string(rows.size()) + "}";
    return add;
  }

  Result<std::int64_t> Append(const std::string& path, const std::string& name,
                              const std::vector<std::pair<std::int64_t, std::int64_t>>& rows) {
    FLEUVE_ASSIGN(const delta::AddFile add, WriteFile(path, name, rows));
    const delta::DeltaLogPtr log = Open(path);
    FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
    delta::Transaction transaction(log, snapshot);
    FLEUVE_ASSIGN(const delta::CommitResult done,
                  transaction.Commit({add}, {.name = "WRITE"}, {path + "/" + name}, {path}));
    log->WaitForBackground();
    return done.version;
  }

  std::map<std::string, std::string> settings;

 private:
  static delta::LogContext Context() {
    delta::LogContext context;
    context.parquet_reader = engine::MakeParquetReader();
    context.parquet_writer = engine::MakeParquetWriter();
    return context;
  }

  std::shared_ptr<storage::ObjectStore> store_;
  delta::LogRegistry logs_;
  TableContext context_;
};

/// Sets a file's time of change to `days` before now.
inline void MakeOld(const std::string& path, int days) {
  std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(24) * days);
}

/// Of every commit before `version`, a second apart.
inline void MakeCommitsOld(const std::string& table, std::int64_t version, int days) {
  for (std::int64_t v = 0; v < version; ++v) {
    std::filesystem::last_write_time(
        delta::CommitPath(table, v),
        std::filesystem::file_time_type::clock::now() - std::chrono::hours(24) * days + std::chrono::seconds(v));
  }
}

}  // namespace fleuve::tables
