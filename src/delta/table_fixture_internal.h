#pragma once

/// \file
/// A table in memory for tests of the log: columns `id` INT and `p` STRING, files that only the log knows.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "delta/log.h"
#include "delta/transaction.h"
#include "storage/memory_store.h"

namespace fleuve::delta {

inline Metadata SimpleMetadata(std::vector<std::string> partition_columns = {}) {
  Metadata m;
  m.id = "3f0f0a6e-0000-4000-8000-000000000000";
  m.schema_string = R"({"type":"struct","fields":[{"name":"id","type":"integer","nullable":true,"metadata":{}},)"
                    R"({"name":"p","type":"string","nullable":true,"metadata":{}}]})";
  m.partition_columns = std::move(partition_columns);
  m.created_time = 1;
  return m;
}

inline AddFile File(std::string path, std::int64_t low = 0, std::int64_t high = 9, std::string p = "") {
  AddFile a;
  a.path = std::move(path);
  a.size = 100;
  a.modification_time = 5;
  a.stats = R"({"numRecords":10,"minValues":{"id":)" + std::to_string(low) + R"(},"maxValues":{"id":)" +
            std::to_string(high) + R"(},"nullCount":{"id":0}})";
  if (!p.empty()) {
    a.partition_values = {{"p", p}};
  }
  return a;
}

inline RemoveFile Gone(std::string path) {
  RemoveFile r;
  r.path = std::move(path);
  r.deletion_timestamp = Clock::System()->NowMillis();
  return r;
}

class TableTest : public testing::Test {
 protected:
  TableTest() : registry_(LogContext{}) {}

  DeltaLogPtr Make(std::vector<std::string> partition_columns = {}, StringMap configuration = {}) {
    auto log = registry_.Open({store_, "/t"});
    Transaction txn(log, nullptr);
    Metadata m = SimpleMetadata(std::move(partition_columns));
    m.configuration = std::move(configuration);
    EXPECT_TRUE(txn.UpdateMetadata(std::move(m)).ok());
    const auto done = txn.Commit({}, {.name = "CREATE TABLE"});
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().ToString());
    return log;
  }
  Result<std::int64_t> Append(const DeltaLogPtr& log, std::vector<Action> actions) {
    FLEUVE_ASSIGN(auto snapshot, log->Latest());
    Transaction txn(log, snapshot);
    FLEUVE_ASSIGN(const CommitResult result, txn.Commit(std::move(actions), {.name = "WRITE"}));
    return result.version;
  }
  /// A log of another process: shares nothing but the store.
  DeltaLogPtr Fresh() {
    others_.push_back(std::make_unique<LogRegistry>(LogContext{}));
    return others_.back()->Open({store_, "/t"});
  }

  std::shared_ptr<storage::MemoryStore> store_ = storage::MemoryStore::Make();
  LogRegistry registry_;
  std::vector<std::unique_ptr<LogRegistry>> others_;
};

}  // namespace fleuve::delta
