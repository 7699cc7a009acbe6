#include "checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "storage/memory_store.h"

namespace fleuve::checkpoint {
namespace {

// As Apache Spark 4.1.1 wrote it for a query with one file source.
constexpr std::string_view kSparkOffsets =
    R"(v1
{"batchWatermarkMs":0,"batchTimestampMs":1795991103087,"conf":{"spark.sql.streaming.stateStore.providerClass":"org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider","spark.sql.streaming.stateStore.rocksdb.formatVersion":"5","spark.sql.streaming.stateStore.encodingFormat":"unsaferow","spark.sql.streaming.statefulOperator.useStrictDistribution":"true","spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion":"2","spark.sql.streaming.multipleWatermarkPolicy":"min","spark.sql.streaming.aggregation.stateFormatVersion":"2","spark.sql.shuffle.partitions":"2","spark.sql.streaming.join.stateFormatVersion":"2","spark.sql.streaming.stateStore.compression.codec":"lz4","spark.sql.optimizer.pruneFiltersCanPruneStreamingSubplan":"false"}}
{"logOffset":3}
-)";

storage::Location Memory() { return {storage::MemoryStore::Make(), "/cp"}; }

TEST(EntriesTest, SparkBytesComeBackUnchanged) {
  auto entry = DecodeOffsets(kSparkOffsets, "x");
  ASSERT_TRUE(entry.ok()) << entry.error().ToString();
  EXPECT_EQ(entry->timestamp_ms, 1795991103087);
  ASSERT_EQ(entry->offsets.size(), 2U);
  EXPECT_EQ(entry->offsets[0], "{\"logOffset\":3}");
  EXPECT_FALSE(entry->offsets[1].has_value());
  EXPECT_EQ(*entry->FindConf("spark.sql.shuffle.partitions"), "2");
  EXPECT_EQ(EncodeOffsets(*entry), kSparkOffsets);

  EXPECT_EQ(EncodeCommit({}), "v1\n{\"nextBatchWatermarkMs\":0}");
  EXPECT_EQ(DecodeCommit("v1", "x")->next_watermark_ms, 0);
  const std::string v2 = "v2\n{\"nextBatchWatermarkMs\":5,\"stateUniqueIds\":{\"0\":[[\"a\"]]}}";
  EXPECT_EQ(EncodeCommit(*DecodeCommit(v2, "x")), v2);
  EXPECT_EQ(EncodeMetadata("ce011fdc-8762-4dcb-84eb-a77333e28109"),
            "{\"id\":\"ce011fdc-8762-4dcb-84eb-a77333e28109\"}");

  const std::string offsets_v2 =
      "v2\n{\"batchWatermarkMs\":1,\"batchTimestampMs\":2,\"conf\":{},\"sourceMetadataInfo\":{}}\n0:7\n1:-";
  EXPECT_EQ(EncodeOffsets(*DecodeOffsets(offsets_v2, "x")), offsets_v2);
}

TEST(EntriesTest, RefusesOtherVersionsAndTellsCutOffFiles) {
  EXPECT_EQ(DecodeOffsets("v9\n{}\n{\"logOffset\":0}", "x").error().condition(),
            "INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION");
  EXPECT_EQ(DecodeOffsets("vx\n{}\n1", "x").error().condition(), "MALFORMED_LOG_FILE");
  EXPECT_NE(DecodeOffsets("", "x").error().message().find("Incomplete log file"), std::string::npos);
  for (std::size_t length = 0; length < kSparkOffsets.size() - 2; ++length) {
    const bool whole_source = kSparkOffsets.substr(0, length).ends_with("{\"logOffset\":3}");
    EXPECT_EQ(IsCutOff(kSparkOffsets.substr(0, length), true), !whole_source) << length;
  }
  EXPECT_FALSE(IsCutOff(kSparkOffsets, true));
  EXPECT_FALSE(IsCutOff("v1", false));
  EXPECT_TRUE(IsCutOff("v1\n{\"nextBatch", false));
  EXPECT_TRUE(IsCutOff(std::string(100, '\0'), true));
  EXPECT_FALSE(IsCutOff("v9\n{}\n{\"logOffset\":0}", true));
}

TEST(LogFolderTest, HadoopChecksums) {
  // "v1\n{\"nextBatchWatermarkMs\":0}" has CRC-32 as zlib computes it; 123456789 is the textbook value cbf43926.
  EXPECT_EQ(HadoopChecksums("123456789"), std::string("crc\0\0\0\2\0\xcb\xf4\x39\x26", 12));
}

TEST(CheckpointTest, FirstStartThenRestart) {
  const auto location = Memory();
  std::string id;
  {
    auto checkpoint = Checkpoint::Open(location, true);
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().ToString();
    id = (*checkpoint)->query_id();
    EXPECT_FALSE((*checkpoint)->Recover()->newest_planned.has_value());
    OffsetEntry entry;
    entry.offsets = {"{\"logOffset\":0}"};
    ASSERT_TRUE((*checkpoint)->WriteOffsets(BatchId(0), entry).ok());
    EXPECT_EQ((*checkpoint)
                  ->WriteOffsets(BatchId(0),
                                 [] {
                                   OffsetEntry other;
                                   other.offsets = {"1"};
                                   return other;
                                 }())
                  .error()
                  .condition(),
              "CONCURRENT_STREAM_LOG_UPDATE");
    ASSERT_TRUE((*checkpoint)->WriteCommit(BatchId(0), {}).ok());
    entry.offsets = {"{\"logOffset\":1}"};
    ASSERT_TRUE((*checkpoint)->WriteOffsets(BatchId(1), entry).ok());
    auto unsynced = (*checkpoint)->TakeUnsynced();
    EXPECT_EQ(unsynced.files.size(), 3U);
    EXPECT_EQ(unsynced.folders.size(), 2U);
    EXPECT_EQ(Checkpoint::Open(location, true).error().condition(), "FLEUVE_CHECKPOINT_IN_USE");
  }
  auto again = Checkpoint::Open(location, true);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ((*again)->query_id(), id);
  auto recovered = (*again)->Recover();
  ASSERT_TRUE(recovered.ok()) << recovered.error().ToString();
  EXPECT_EQ(recovered->newest_planned->value, 1);
  EXPECT_EQ(recovered->newest_committed->value, 0);
  EXPECT_EQ(recovered->before->offsets[0], "{\"logOffset\":0}");
  ASSERT_TRUE((*again)->Purge(BatchId(1)).ok());
  EXPECT_EQ(location.store->Get("/cp/offsets/0").error().kind(), ErrorKind::kNotFound);
  EXPECT_EQ(location.store->Get("/cp/commits/.0.crc").error().kind(), ErrorKind::kNotFound);
}

TEST(CheckpointTest, DamagedNewestFileIsMovedAwayOthersFail) {
  const auto location = Memory();
  auto& store = *location.store;
  const auto put = [&](const std::string& path, const std::string& text) {
    ASSERT_TRUE(store.Put(path, text, storage::PutMode::kOverwrite).ok());
  };
  put("/cp/metadata", EncodeMetadata("a"));
  put("/cp/offsets/0", "v1\n{}\n5");
  put("/cp/offsets/1", "v1\n{\"batchWater");
  put("/cp/offsets/.2.x.tmp", "junk");
  put("/cp/offsets/1.bak", "junk");
  put("/cp/commits/0", "v1\n{}");
  {
    auto checkpoint = *Checkpoint::Open(location, false);
    auto recovered = checkpoint->Recover();
    ASSERT_TRUE(recovered.ok()) << recovered.error().ToString();
    EXPECT_EQ(recovered->newest_planned->value, 0);
    EXPECT_EQ(recovered->moved_away.size(), 1U);
    EXPECT_FALSE(store.Get("/cp/offsets/.2.x.tmp").ok());
    EXPECT_TRUE(store.Get("/cp/offsets/1.bak").ok());
  }
  put("/cp/offsets/0", "");
  put("/cp/offsets/1", "v1\n{}\n6");
  {
    auto checkpoint = *Checkpoint::Open(location, false);
    auto recovered = checkpoint->Recover();
    ASSERT_FALSE(recovered.ok());
    EXPECT_NE(recovered.error().message().find("Incomplete log file"), std::string::npos);
  }
  ASSERT_TRUE(store.Delete("/cp/metadata").ok());
  EXPECT_EQ(Checkpoint::Open(location, false).error().condition(), "STREAMING_CHECKPOINT_MISSING_METADATA_FILE");
}

TEST(LockTest, AnotherProcessIsRefusedByName) {
  const auto root = std::filesystem::temp_directory_path() / ("fleuve-lock-" + NewUuid());
  const storage::Location location{storage::LocalStore(), root.string()};
  auto held = Checkpoint::Open(location, false);
  ASSERT_TRUE(held.ok()) << held.error().ToString();
  const pid_t child = ::fork();
  if (child == 0) {
    auto refused = LockCheckpoint(location);
    const bool named = !refused.ok() && refused.error().condition() == "FLEUVE_CHECKPOINT_IN_USE" &&
                       refused.error().message().find("process " + std::to_string(::getppid())) != std::string::npos;
    ::_exit(named ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  held->reset();
  EXPECT_TRUE(LockCheckpoint(location).ok());
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace fleuve::checkpoint
