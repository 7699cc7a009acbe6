#include "delta/row_tracking.h"

#include <gtest/gtest.h>

#include <memory>

#include "delta/deletion_vector.h"
#include "delta/features.h"
#include "delta/log.h"
#include "delta/transaction.h"
#include "storage/memory_store.h"

namespace fleuve::delta {
namespace {

AddFile File(std::string path, std::int64_t rows) {
  AddFile add;
  add.path = std::move(path);
  add.size = 100;
  add.stats = "{\"numRecords\":" + std::to_string(rows) + "}";
  return add;
}

class RowTracking : public testing::Test {
 protected:
  RowTracking() : registry_(LogContext{}), other_(LogContext{}) {
    const DeltaLogPtr log = Open();
    Transaction txn(log, nullptr);
    Metadata m;
    m.id = "3f0f0a6e-0000-4000-8000-000000000000";
    m.schema_string = R"({"type":"struct","fields":[{"name":"id","type":"integer","nullable":true,"metadata":{}}]})";
    m.configuration = {{"delta.enableRowTracking", "true"}};
    EXPECT_TRUE(txn.UpdateMetadata(std::move(m)).ok());
    EXPECT_TRUE(txn.Commit({}, {.name = "CREATE TABLE"}).ok());
  }
  DeltaLogPtr Open() { return registry_.Open({store_, "/t"}); }

  std::shared_ptr<storage::MemoryStore> store_ = storage::MemoryStore::Make();
  LogRegistry registry_;
  LogRegistry other_;
};

TEST_F(RowTracking, FilesGetIdsBehindTheHighWaterMark) {
  const DeltaLogPtr log = Open();
  EXPECT_TRUE(MaterializedRowIdsOf((*log->Latest())->metadata()).has_value());
  for (const auto& [path, base] : {std::pair<const char*, std::int64_t>{"a", 0}, {"b", 10}}) {
    Transaction txn(log, *log->Latest());
    ASSERT_TRUE(txn.Commit({File(path, 10)}, {.name = "WRITE"}).ok());
    EXPECT_EQ((*log->Latest())->FindFile(path)->base_row_id, base);
    EXPECT_EQ((*log->Latest())->FindFile(path)->default_row_commit_version, (*log->Latest())->version());
  }
  EXPECT_EQ(RowIdHighWaterMark((*log->Latest()).get()), 19);
}

TEST_F(RowTracking, TheLoserOfARaceCountsOnFromTheWinner) {
  const DeltaLogPtr log = Open();
  Transaction slow(log, *log->Latest());
  const DeltaLogPtr elsewhere = other_.Open({store_, "/t"});
  Transaction fast(elsewhere, *elsewhere->Latest());
  ASSERT_TRUE(fast.Commit({File("fast", 7)}, {.name = "WRITE"}).ok());
  ASSERT_TRUE(slow.Commit({File("slow", 5)}, {.name = "WRITE"}).ok());
  const SnapshotPtr now = *elsewhere->Latest();
  EXPECT_EQ(now->FindFile("fast")->base_row_id, 0);
  EXPECT_EQ(now->FindFile("slow")->base_row_id, 7);
  EXPECT_EQ(now->FindFile("slow")->default_row_commit_version, 2);
  EXPECT_EQ(RowIdHighWaterMark(now.get()), 11);
}

TEST_F(RowTracking, AFileWithoutCountIsRefused) {
  Transaction txn(Open(), *Open()->Latest());
  AddFile add = File("x", 1);
  add.stats.clear();
  const auto done = txn.Commit({add}, {.name = "WRITE"});
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().condition(), "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS");
}

TEST(DeletionVectors, WhatIsWrittenIsReadBack) {
  const storage::Location table{storage::MemoryStore::Make(), "/t"};
  std::vector<std::vector<std::uint64_t>> vectors{{3}, {}, {0, 1, 2, 70000, 5000000000ULL}};
  for (std::uint64_t i = 0; i < 10000; ++i) {
    vectors[1].push_back(i * 3);
  }
  const auto written = WriteDeletionVectors(vectors, table);
  ASSERT_TRUE(written.ok()) << written.error().ToString();
  ASSERT_EQ(written->descriptors.size(), vectors.size());
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const auto read = LoadDeletionVector(written->descriptors[i], table);
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    EXPECT_EQ((*read)->rows(), vectors[i]);
    EXPECT_EQ(*DeletionVectorPath(written->descriptors[i], table), written->file);
  }
}

TEST(Features, ADroppedFeatureTakesOldVersionsBack) {
  const auto names = [](const Protocol& p) { return FeaturesOf(p); };
  Protocol vectors = *WithFeature(Protocol{}, "deletionVectors");
  Protocol plain = *WithoutFeature(vectors, "deletionVectors");
  EXPECT_EQ(plain.min_reader_version, 1);
  EXPECT_EQ(plain.min_writer_version, 2);
  EXPECT_FALSE(plain.writer_features);
  Protocol tracked = *WithFeature(Protocol{}, "rowTracking");
  EXPECT_EQ(names(*WithoutFeature(tracked, "rowTracking")),
            (std::vector<std::string>{"appendOnly", "domainMetadata", "invariants"}));
  EXPECT_EQ(WithoutFeature(tracked, "domainMetadata").error().condition(), "DELTA_FEATURE_DROP_DEPENDENT_FEATURE");
  Protocol old{1, 4, std::nullopt, std::nullopt};
  EXPECT_EQ(names(*WithoutFeature(old, "checkConstraints")),
            (std::vector<std::string>{"appendOnly", "changeDataFeed", "generatedColumns", "invariants"}));
}

}  // namespace
}  // namespace fleuve::delta
