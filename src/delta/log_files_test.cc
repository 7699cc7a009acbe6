// Files of the log beside its commits: version checksums, compactions, what names mean, paths of data files.
#include <gtest/gtest.h>

#include "delta/deletion_vector.h"
#include "delta/features.h"
#include "delta/log_compaction_internal.h"
#include "delta/log_listing_internal.h"
#include "delta/table_fixture_internal.h"
#include "delta/table_source.h"
#include "delta/version_checksum_internal.h"

namespace fleuve::delta {
namespace {

std::string ChecksumPath(std::int64_t version) {
  std::string path = CommitPath("/t", version);
  return path.replace(path.rfind(".json"), 5, ".crc");
}

TEST_F(TableTest, EveryCommitHasItsChecksum) {
  const auto log = Make({}, {{"delta.enableInCommitTimestamps", "true"}});
  ASSERT_TRUE(Append(log, {File("f"), SetTransaction{"app", 7, 1}, DomainMetadata{"d", "{\"a\":1}", false}}).ok());
  ASSERT_TRUE(Append(log, {Gone("f"), File("g"), File("h"), DomainMetadata{"d", "", true}}).ok());
  for (std::int64_t version = 0; version <= 2; ++version) {
    const auto json = Json::Parse(*store_->Get(ChecksumPath(version)));
    ASSERT_TRUE(json.ok());
    EXPECT_EQ((*json)["numFiles"].AsInt(), version);
    EXPECT_EQ((*json)["tableSizeBytes"].AsInt(), version * 100);
    EXPECT_EQ((*json)["numMetadata"].AsInt(), 1);
    EXPECT_EQ((*json)["numProtocol"].AsInt(), 1);
    EXPECT_EQ((*json)["metadata"]["id"].AsString(), SimpleMetadata().id);
    EXPECT_EQ((*json)["protocol"]["minWriterVersion"].AsInt(), 7);
    EXPECT_EQ((*json)["inCommitTimestampOpt"].AsInt(), (*Fresh()->At(version))->timestamp_ms());
    EXPECT_EQ((*json)["setTransactions"].items().size(), version > 0 ? 1u : 0u);
    EXPECT_EQ((*json)["domainMetadata"].items().size(), version == 1 ? 1u : 0u);
    EXPECT_EQ((*json)["txnId"].AsString().size(), 36u);
    EXPECT_TRUE(CompareWithChecksum((*Fresh()->At(version))->state()).ok());
  }
  EXPECT_TRUE(log->Check()->empty());
}

TEST_F(TableTest, ALogThatItsChecksumContradictsIsToldAndGetsNoCheckpoint) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("f")}).ok());
  ASSERT_TRUE(Append(log, {File("g")}).ok());
  // A commit loses a line, as a hand or a disk may do.
  const std::string text = *store_->Get(CommitPath("/t", 1));
  const std::string cut = text.substr(0, text.find('\n') + 1);
  ASSERT_TRUE(store_->Put(CommitPath("/t", 1), cut, storage::PutMode::kOverwrite).ok());
  const auto other = Fresh();
  ASSERT_TRUE(other->Latest().ok());
  EXPECT_EQ(CompareWithChecksum((*other->Latest())->state()).error().condition(), "DELTA_TXN_LOG_FAILED_INTEGRITY");
  EXPECT_EQ(other->Checkpoint({}).error().condition(), "DELTA_TXN_LOG_FAILED_INTEGRITY");
  const auto problems = *other->Check();
  ASSERT_EQ(problems.size(), 4u) << "files and bytes of two versions";
  EXPECT_NE(problems[0].find("number of files is 0 by the log and 1 by the checksum"), std::string::npos);
}

TEST_F(TableTest, ChecksumsThatCannotBeReadCountAsNone) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("f")}).ok());
  for (const char* text : {"", "{", "[]", "{\"numFiles\":1}", "{\"numFiles\":\"1\",\"tableSizeBytes\":100}",
                           "{\"numFiles\":1,\"tableSizeBytes\":100,\"metadata\":{\"id\":1}}",
                           "{\"numFiles\":9,\"tableSizeBytes\":1,\"setTransactions\":[{\"appId\":1}]}"}) {
    ASSERT_TRUE(store_->Put(ChecksumPath(1), text, storage::PutMode::kOverwrite).ok());
    EXPECT_FALSE(ParseVersionChecksum(text)) << text;
    EXPECT_TRUE(CompareWithChecksum((*Fresh()->Latest())->state()).ok()) << text;
  }
  // One as Spark writes it, with members that we do not write.
  const auto spark = ParseVersionChecksum(
      R"({"txnId":"1d","tableSizeBytes":3651,"numFiles":3,"numMetadata":1,"numProtocol":1,"setTransactions":[{"appId":"8f","version":3,"lastUpdated":1795991101534}],"domainMetadata":[],"metadata":{"id":"4e","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":[],"configuration":{},"createdTime":1795991073969},"protocol":{"minReaderVersion":1,"minWriterVersion":2},"fileSizeHistogram":{"sortedBinBoundaries":[0],"fileCounts":[3],"totalBytes":[3651]},"allFiles":[]})");
  ASSERT_TRUE(spark);
  EXPECT_EQ(spark->num_files, 3);
  EXPECT_EQ(spark->transactions->at(0).version, 3);
  EXPECT_EQ(spark->protocol->min_writer_version, 2);
}

TEST_F(TableTest, ACompactionStandsForItsCommits) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("a"), File("b"), SetTransaction{"app", 1, 1}}).ok());
  ASSERT_TRUE(Append(log, {Gone("a"), File("c"), SetTransaction{"app", 2, 1}, DomainMetadata{"d", "{}", false}}).ok());
  ASSERT_TRUE(Append(log, {Gone("b"), File("a")}).ok());
  ASSERT_TRUE(Append(log, {File("e")}).ok());
  const auto before = *Fresh()->Latest();
  ASSERT_TRUE(WriteCompaction(*log, 1, 3).ok());
  ASSERT_TRUE(WriteCompaction(*log, 1, 3).ok()) << "one that is there stays";
  EXPECT_TRUE(log->Check()->empty());

  // A commit that cannot be read shows that the compaction was taken.
  const std::string commit = *store_->Get(CommitPath("/t", 2));
  ASSERT_TRUE(store_->Put(CommitPath("/t", 2), "no json", storage::PutMode::kOverwrite).ok());
  const auto after = Fresh()->Latest();
  ASSERT_TRUE(after.ok()) << after.error().ToString();
  EXPECT_EQ((*after)->version(), 4);
  EXPECT_EQ((*after)->file_count(), before->file_count());
  EXPECT_EQ((*after)->timestamp_ms(), before->timestamp_ms());
  EXPECT_EQ((*after)->Transaction("app")->version, 2);
  EXPECT_EQ((*after)->Tombstones().size(), before->Tombstones().size());
  EXPECT_TRUE((*after)->Domain("d"));
  for (const char* name : {"a", "b", "c", "e"}) {
    EXPECT_EQ((*after)->FindFile(name).has_value(), before->FindFile(name).has_value()) << name;
  }
  // Versions within it are read from the commits.
  EXPECT_FALSE(Fresh()->At(2).ok());
  EXPECT_EQ((*Fresh()->At(1))->file_count(), 2);

  // One that holds two actions of a file is left aside: which of them counts cannot be told.
  const std::string compacted = *store_->Get(CompactionPath("/t", 1, 3));
  ASSERT_TRUE(store_->Put(CommitPath("/t", 2), commit, storage::PutMode::kOverwrite).ok());
  std::string twice = compacted;
  AppendJsonLine(twice, Action(File("b")));
  ASSERT_TRUE(store_->Put(CompactionPath("/t", 1, 3), twice, storage::PutMode::kOverwrite).ok());
  EXPECT_FALSE((*Fresh()->Latest())->FindFile("b"));
  EXPECT_EQ((*Fresh()->Latest())->file_count(), before->file_count());
  ASSERT_TRUE(store_->Put(CompactionPath("/t", 1, 3), compacted, storage::PutMode::kOverwrite).ok());

  // It never hides a hole, and one that cannot be read is left aside.
  ASSERT_TRUE(store_->Delete(CommitPath("/t", 2)).ok());
  EXPECT_EQ(Fresh()->Latest().error().condition(), "DELTA_VERSIONS_NOT_CONTIGUOUS");
  ASSERT_TRUE(store_->Put(CommitPath("/t", 2), commit, storage::PutMode::kOverwrite).ok());
  ASSERT_TRUE(store_->Put(CompactionPath("/t", 1, 3), "no json", storage::PutMode::kOverwrite).ok());
  EXPECT_EQ((*Fresh()->Latest())->file_count(), before->file_count());
  EXPECT_EQ(log->Check()->size(), 1u);
}

TEST(LogListing, NamesAreSorted) {
  std::vector<storage::ObjectMeta> entries;
  for (const char* name :
       {"00000000000000000003.json", "00000000000000000003.crc", "00000000000000000004.json",
        "00000000000000000003.00000000000000000009.compacted.json",
        "00000000000000000009.00000000000000000003.compacted.json", "00000000000000000003.checkpoint.parquet",
        "00000000000000000004.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000005.checkpoint.0000000001.0000000002.parquet",
        "00000000000000000005.checkpoint.0000000002.0000000002.parquet",
        "00000000000000000006.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.json",
        "00000000000000000007.checkpoint.80a083e8-7026-4e79-81be-64bd76c43a11.parquet", "_last_checkpoint",
        ".00000000000000000004.json.x.tmp", "0000000000000000000x.json", "3.json",
        "00000000000000000008.checkpoint.0000000003.0000000002.parquet", "99999999999999999999.json"}) {
    storage::ObjectMeta meta;
    meta.path = std::string("/t/_delta_log/") + name;
    entries.push_back(meta);
  }
  const LogListing listing = SortLog(entries);
  ASSERT_EQ(listing.commits.size(), 2u);
  ASSERT_EQ(listing.compactions.size(), 1u);
  EXPECT_EQ(listing.compactions[0].last, 9);
  ASSERT_EQ(listing.checkpoints.size(), 4u);
  EXPECT_EQ(listing.checkpoints[1].names.size(), 2u);
  EXPECT_TRUE(listing.checkpoints[2].is_v2);
  EXPECT_TRUE(listing.has_incomplete);
  EXPECT_EQ(listing.incomplete_version, 4);
}

TEST(DeletionVectors, MayStandAnywhere) {
  const auto store = storage::MemoryStore::Make();
  const storage::Location table{store, "/base/t"};
  const auto written = WriteDeletionVectors({{1, 5}, {7}}, table);
  ASSERT_TRUE(written.ok());
  const std::string bytes = *store->Get(written->file);
  ASSERT_TRUE(store->Put("/else where/v.bin", bytes, storage::PutMode::kOverwrite).ok());
  for (const char* path : {"/else%20where/v.bin", "file:/else%20where/v.bin", "file:///else%20where/v.bin"}) {
    DeletionVectorDescriptor vector = written->descriptors[1];
    vector.storage_type = "p";
    vector.path_or_inline_dv = path;
    const auto rows = LoadDeletionVector(vector, table);
    ASSERT_TRUE(rows.ok()) << path << rows.error().ToString();
    EXPECT_EQ((*rows)->rows(), (std::vector<std::uint64_t>{7}));
  }
  DeletionVectorDescriptor broken = written->descriptors[0];
  broken.storage_type = "p";
  broken.path_or_inline_dv = "/broken.bin";
  const auto condition = [&](const DeletionVectorDescriptor& vector) {
    const auto rows = LoadDeletionVector(vector, table);
    return rows.ok() ? std::string() : rows.error().condition();
  };
  EXPECT_FALSE(LoadDeletionVector(broken, table).ok()) << "there is no such file";
  std::string flipped = bytes;
  flipped[20] ^= 1;
  ASSERT_TRUE(store->Put("/broken.bin", flipped, storage::PutMode::kOverwrite).ok());
  EXPECT_EQ(condition(broken), "DELTA_DELETION_VECTOR_CHECKSUM_MISMATCH");
  ASSERT_TRUE(store->Put("/broken.bin", bytes.substr(0, 12), storage::PutMode::kOverwrite).ok());
  EXPECT_EQ(condition(broken), "DELTA_DELETION_VECTOR_SIZE_MISMATCH");
  for (const auto& [size, offset] : {std::pair{-1, 1}, {0, 1}, {0x7FFFFFFF, 1}, {20, -5}, {20, 0x7FFFFFFF}}) {
    broken.size_in_bytes = size;
    broken.offset = offset;
    EXPECT_EQ(condition(broken), "DELTA_DELETION_VECTOR_SIZE_MISMATCH") << size << " " << offset;
  }
  DeletionVectorDescriptor few = written->descriptors[0];
  few.cardinality = 1;
  few.storage_type = "p";
  few.path_or_inline_dv = "/else%20where/v.bin";
  EXPECT_EQ(condition(few), "DELTA_DELETION_VECTOR_SIZE_MISMATCH") << "more rows than the log says";
}

TEST(Statistics, TheNumberOfRowsIsNotThatOfAColumnOfTheName) {
  EXPECT_EQ(NumRecords(std::string_view(R"({"numRecords":10,"minValues":{"numRecords":3}})")), 10);
  EXPECT_EQ(NumRecords(std::string_view(R"({"minValues":{"numRecords":3},"numRecords":10})")), 10);
  EXPECT_EQ(NumRecords(std::string_view(R"({"minValues":{"numRecords":3}})")), -1);
  EXPECT_EQ(NumRecords(std::string_view(R"({ "numRecords" : 4})")), -1) << "told to be unknown, not wrong";
  EXPECT_EQ(NumRecords(std::string_view("")), -1);
}

TEST(Features, ThoseThatCannotBeKeptAreRefusedByName) {
  for (const char* name : {"icebergCompatV1", "icebergCompatV2", "icebergCompatV3", "icebergWriterCompatV1",
                           "materializePartitionColumns", "collations-preview", "catalogManaged", "fromTomorrow"}) {
    const Protocol writer{1, 7, std::nullopt, std::vector<std::string>{"appendOnly", name}};
    EXPECT_TRUE(CheckReadable(writer, "t").ok()) << name;
    const auto refused = CheckWritable(writer, "t");
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().condition(), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
    EXPECT_NE(refused.error().message().find(name), std::string::npos);
  }
  for (const char* name : {"catalogManaged", "fromTomorrow"}) {
    const Protocol both{3, 7, std::vector<std::string>{"deletionVectors", name}, std::vector<std::string>{name}};
    const auto refused = CheckReadable(both, "t");
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().condition(), "DELTA_UNSUPPORTED_FEATURES_FOR_READ");
    EXPECT_NE(refused.error().message().find(name), std::string::npos);
    EXPECT_EQ(refused.error().message().find("deletionVectors"), std::string::npos) << "only what is not known";
  }
  for (const char* name : {"domainMetadata", "inCommitTimestamp", "vacuumProtocolCheck", "checkpointProtection",
                           "v2Checkpoint", "deletionVectors", "rowTracking", "clustering"}) {
    const auto with = WithFeature(Protocol{}, name);
    ASSERT_TRUE(with.ok()) << name;
    EXPECT_TRUE(CheckWritable(*with, "t").ok()) << name;
  }
  EXPECT_EQ(CheckReadable(Protocol{4, 7, {}, {}}, "t").error().condition(), "DELTA_INVALID_PROTOCOL_VERSION");
  EXPECT_EQ(CheckReadable(Protocol{3, 8, {}, {}}, "t").error().condition(), "DELTA_INVALID_PROTOCOL_VERSION");
}

TEST_F(TableTest, ACommitThatCutsAFeatureShutsOldWritersOut) {
  const auto log = Make();
  const auto before = *log->Latest();
  {
    std::string text;
    AppendJsonLine(text, Protocol{1, 7, std::nullopt, std::vector<std::string>{"fromTomorrow"}});
    ASSERT_TRUE(store_->Put(CommitPath("/t", 1), text, storage::PutMode::kIfAbsent).ok());
  }
  Transaction slow(log, before);
  EXPECT_EQ(slow.Commit({File("f")}, {.name = "WRITE"}).error().condition(), "DELTA_PROTOCOL_CHANGED");
  EXPECT_EQ(Append(log, {File("g")}).error().condition(), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
  EXPECT_EQ((*log->Latest())->file_count(), 0);
}

TEST(Paths, OfFilesAreDecodedAndResolved) {
  const storage::Location table{storage::MemoryStore::Make(), "/base/t"};
  const auto path = [&](const char* text) {
    const auto resolved = AbsolutePath(table, text);
    return resolved.ok() ? *resolved : "refused: " + resolved.error().condition();
  };
  EXPECT_EQ(path("a.parquet"), "/base/t/a.parquet");
  EXPECT_EQ(path("p=a%20b/x%25y.parquet"), "/base/t/p=a b/x%y.parquet");
  EXPECT_EQ(path("p=a%252Fb/x.parquet"), "/base/t/p=a%2Fb/x.parquet") << "decoded once";
  EXPECT_EQ(path("p=%C3%A9/x"), "/base/t/p=é/x");
  EXPECT_EQ(path("p=1+2/x"), "/base/t/p=1+2/x") << "a plus is a plus";
  EXPECT_EQ(path("file:/other/a%20b"), "/other/a b");
  EXPECT_EQ(path("file:///other/x"), "/other/x");
  EXPECT_EQ(path("/other/x%20y"), "/other/x y");
}

}  // namespace
}  // namespace fleuve::delta
