// Checkpoints, clean-up of the log, VACUUM and OPTIMIZE over files on the disk.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <set>

#include "tables/local_table_internal.h"

namespace fleuve::tables {
namespace {

class Maintenance : public testing::Test {
 protected:
  Maintenance() : path_(folder_.path() + "/t"), process_(SharedEngine()) {}

  void Fill(int files, delta::StringMap properties = {}) {
    ASSERT_TRUE(process_.Create(path_, std::move(properties)).ok());
    for (int i = 0; i < files; ++i) {
      ASSERT_TRUE(process_.Append(path_, "f" + std::to_string(i), {{i, i}}).ok());
    }
  }
  std::set<std::string> Names(const std::string& below) const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path_ + below)) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }
  std::set<std::string> Log(const std::string& ending) const {
    std::set<std::string> names;
    for (const std::string& name : Names("/_delta_log")) {
      if (name.ends_with(ending) && name[0] != '.') {
        names.insert(name.substr(16, 4));
      }
    }
    return names;
  }
  Result<delta::SnapshotPtr> Fresh() {
    LocalProcess reader(SharedEngine());
    return reader.Open(path_)->Latest();
  }

  TemporaryFolder folder_;
  std::string path_;
  LocalProcess process_;
};

TEST_F(Maintenance, CleanUpKeepsACheckpointForEveryVersionThatStays) {
  Fill(12, {{"delta.checkpointInterval", "4"}, {"delta.logRetentionDuration", "interval 30 days"}});
  // Versions 0 to 6 have expired: the checkpoint of 4 is what 5 and 6 and 7 are rebuilt from.
  MakeCommitsOld(path_, 7, 60);
  for (const char* name : {"/.00000000000000000009.json.x.tmp", "/.00000000000000000010.json.y.tmp"}) {
    std::ofstream(path_ + "/_delta_log" + name) << "staged by a process that died, or that is about to commit";
  }
  MakeOld(path_ + "/_delta_log/.00000000000000000009.json.x.tmp", 2);
  ASSERT_TRUE(process_.Open(path_)->Checkpoint({}).ok());
  EXPECT_FALSE(Names("/_delta_log").contains(".00000000000000000009.json.x.tmp"));
  EXPECT_TRUE(Names("/_delta_log").contains(".00000000000000000010.json.y.tmp"));
  EXPECT_EQ(*Log(".json").begin(), "0004");
  EXPECT_EQ(*Log(".crc").begin(), "0004");
  EXPECT_EQ(*Log(".checkpoint.parquet").begin(), "0004");
  LocalProcess reader(SharedEngine());
  for (std::int64_t version = 4; version <= 12; ++version) {
    const auto snapshot = reader.Open(path_)->At(version);
    ASSERT_TRUE(snapshot.ok()) << snapshot.error().ToString();
    EXPECT_EQ((*snapshot)->file_count(), version);
  }
  EXPECT_EQ(reader.Open(path_)->At(3).error().condition(), "DELTA_VERSION_NOT_FOUND");
}

TEST_F(Maintenance, CleanUpGoesByWholeCheckpointsAlone) {
  Fill(12, {{"delta.checkpointInterval", "100"}});
  LocalProcess writer(SharedEngine());
  ASSERT_TRUE(writer.Open(path_)->Checkpoint({.part_rows = 4}).ok());
  // A newer checkpoint of which a part is missing, as a writer that died leaves it.
  for (int i = 12; i < 15; ++i) {
    ASSERT_TRUE(writer.Append(path_, "f" + std::to_string(i), {{i, i}}).ok());
  }
  std::ofstream(path_ + "/_delta_log/00000000000000000014.checkpoint.0000000001.0000000002.parquet") << "x";
  MakeCommitsOld(path_, 15, 60);
  ASSERT_TRUE(writer.Append(path_, "last", {{1, 1}}).ok());
  ASSERT_TRUE(writer.Open(path_)->Checkpoint({}).ok());
  EXPECT_EQ(*Log(".json").begin(), "0012") << "not 0014: that checkpoint is none";
  LocalProcess reader(SharedEngine());
  for (std::int64_t version = 12; version <= 16; ++version) {
    EXPECT_TRUE(reader.Open(path_)->At(version).ok()) << version;
  }
}

TEST_F(Maintenance, CleanUpTakesSidecarsThatNoCheckpointNames) {
  Fill(4, {{"delta.checkpointPolicy", "v2"}, {"delta.checkpointInterval", "2"}});
  ASSERT_EQ(Names("/_delta_log/_sidecars").size(), 2u);
  for (const std::string& name : Names("/_delta_log/_sidecars")) {
    MakeOld(path_ + "/_delta_log/_sidecars/" + name, 60);
  }
  MakeCommitsOld(path_, 5, 60);
  ASSERT_TRUE(process_.Append(path_, "f4", {{4, 4}}).ok());
  ASSERT_TRUE(process_.Append(path_, "f5", {{5, 5}}).ok());
  // The sidecar of version 2 has gone with its checkpoint; that of 4 is still needed.
  EXPECT_EQ(Names("/_delta_log/_sidecars").size(), 2u);
  EXPECT_EQ((*Fresh())->file_count(), 6);
  LocalProcess reader(SharedEngine());
  EXPECT_EQ((*reader.Open(path_)->At(4))->file_count(), 4);
}

TEST_F(Maintenance, ProtectedCheckpointsKeepTheirHistory) {
  Fill(8, {{"delta.checkpointInterval", "4"},
           {"delta.feature.checkpointProtection", "supported"},
           {"delta.requireCheckpointProtectionBeforeVersion", "6"}});
  MakeCommitsOld(path_, 5, 60);
  ASSERT_TRUE(process_.Open(path_)->Checkpoint({}).ok());
  EXPECT_EQ(*Log(".json").begin(), "0000") << "what comes before version 6 goes at once or not at all";
  MakeCommitsOld(path_, 8, 60);
  ASSERT_TRUE(process_.Open(path_)->Checkpoint({}).ok());
  EXPECT_EQ(*Log(".json").begin(), "0008");
}

TEST_F(Maintenance, ACheckpointThatCannotBeReadGivesWayToAnOlderOneOrTheCommits) {
  Fill(8, {{"delta.checkpointInterval", "4"}});
  const std::string newest = path_ + "/_delta_log/00000000000000000008.checkpoint.parquet";
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);
  ASSERT_TRUE(Fresh().ok()) << Fresh().error().ToString();
  EXPECT_EQ((*Fresh())->file_count(), 8);
  std::filesystem::remove(delta::CommitPath(path_, 2));
  EXPECT_EQ((*Fresh())->file_count(), 8) << "from the checkpoint of version 4";
  const std::string older = path_ + "/_delta_log/00000000000000000004.checkpoint.parquet";
  std::ofstream(older, std::ios::trunc) << "no parquet";
  const auto lost = Fresh();
  ASSERT_FALSE(lost.ok()) << "nothing is left to rebuild it from";
  std::filesystem::remove(delta::CommitPath(path_, 0));
  EXPECT_FALSE(Fresh().ok());
}

TEST_F(Maintenance, AHintThatIsWrongIsLeftAside) {
  Fill(8, {{"delta.checkpointInterval", "4"}});
  const std::string hint = path_ + "/_delta_log/_last_checkpoint";
  for (const char* text : {"", "{", "{\"version\":\"x\"}", "{\"version\":3,\"size\":1}", "{\"version\":999}",
                           "{\"version\":-1}", "{\"version\":4,\"size\":6}"}) {
    std::ofstream(hint, std::ios::trunc) << text;
    ASSERT_TRUE(Fresh().ok()) << text << Fresh().error().ToString();
    EXPECT_EQ((*Fresh())->version(), 8) << text;
    EXPECT_EQ((*Fresh())->file_count(), 8) << text;
  }
  std::filesystem::remove(hint);
  EXPECT_EQ((*Fresh())->file_count(), 8);
}

TEST_F(Maintenance, EveryShapeOfCheckpointGivesTheSameTable) {
  int number = 0;
  for (const bool v2 : {false, true}) {
    for (const delta::CheckpointShape& shape : {delta::CheckpointShape{}, delta::CheckpointShape{.part_rows = 3},
                                                delta::CheckpointShape{.part_rows = 4, .parquet_top = true}}) {
      path_ = folder_.path() + "/t" + std::to_string(++number);
      Fill(7, v2 ? delta::StringMap{{"delta.checkpointPolicy", "v2"}} : delta::StringMap{});
      {
        const auto log = process_.Open(path_);
        delta::Transaction transaction(log, *log->Latest());
        delta::RemoveFile gone;
        gone.path = "f3";
        gone.deletion_timestamp = Clock::System()->NowMillis();
        ASSERT_TRUE(transaction
                        .Commit({gone, delta::SetTransaction{"app", 3, 1}, delta::DomainMetadata{"d", "{}", false}},
                                {.name = "DELETE"})
                        .ok());
        ASSERT_TRUE(log->Checkpoint(shape).ok());
        EXPECT_TRUE(log->Check()->empty());
      }
      for (std::int64_t version = 0; version < 8; ++version) {
        std::filesystem::remove(delta::CommitPath(path_, version));
      }
      const auto snapshot = Fresh();
      ASSERT_TRUE(snapshot.ok()) << snapshot.error().ToString();
      EXPECT_EQ((*snapshot)->file_count(), 6);
      EXPECT_EQ((*snapshot)->row_count(), 6);
      EXPECT_EQ((*snapshot)->Tombstones().size(), 1u);
      EXPECT_EQ((*snapshot)->Transaction("app")->version, 3);
      EXPECT_TRUE((*snapshot)->Domain("d"));
      EXPECT_EQ((*snapshot)->schema().fields().size(), 2u);
    }
  }
}

TEST_F(Maintenance, LargeTablesGetCompactionsBetweenCheckpoints) {
  ASSERT_TRUE(process_.Create(path_, {}).ok());
  const auto log = process_.Open(path_);
  const auto add = [&](int first, int count) {
    std::vector<delta::Action> actions;
    for (int i = first; i < first + count; ++i) {
      delta::AddFile file;
      file.path = "f" + std::to_string(i);
      file.size = 1;
      file.stats = "{\"numRecords\":1}";
      actions.emplace_back(std::move(file));
    }
    delta::Transaction transaction(log, *log->Latest());
    EXPECT_TRUE(transaction.Commit(std::move(actions), {.name = "WRITE"}).ok());
    log->WaitForBackground();
  };
  add(0, 5000);
  for (int i = 0; i < 18; ++i) {
    add(100000 + i, 1);
  }
  EXPECT_TRUE(Log(".checkpoint.parquet").empty()) << "every twentieth version, not every tenth";
  EXPECT_EQ(Log(".compacted.json").size(), 1u);
  EXPECT_TRUE(Names("/_delta_log").contains("00000000000000000001.00000000000000000010.compacted.json"));
  EXPECT_EQ((*Fresh())->file_count(), 5018);
  EXPECT_TRUE(log->Check()->empty());
  add(200000, 1);
  EXPECT_EQ(*Log(".checkpoint.parquet").begin(), "0020");
  EXPECT_EQ((*Fresh())->file_count(), 5019);
}

class VacuumTest : public Maintenance, public testing::WithParamInterface<bool> {
 protected:
  /// Files that OPTIMIZE made superfluous, and one that no commit knows.
  void MakeGarbage() {
    Fill(30);
    ASSERT_TRUE(Optimize(process_.context(), process_.Table(path_), {}).ok());
    ASSERT_TRUE(process_.WriteFile(path_, "stray", {{1, 1}}).ok());
    process_.settings["spark.databricks.delta.vacuum.parallelDelete.enabled"] = GetParam() ? "true" : "false";
  }
  std::size_t DataFiles() const {
    const auto names = Names("");
    return names.size() - names.count("_delta_log");
  }
};

TEST_P(VacuumTest, DeletesWhatNoVersionWithinTheRetentionNeeds) {
  MakeGarbage();
  const auto table = process_.Table(path_);
  const auto refused = Vacuum(process_.context(), table, 0.0, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().condition(), "DELTA_VACUUM_RETENTION_PERIOD_TOO_SHORT");
  process_.settings["spark.databricks.delta.retentionDurationCheck.enabled"] = "false";
  EXPECT_EQ(DataFiles(), 32u);
  ASSERT_TRUE(Vacuum(process_.context(), table, std::nullopt, false).ok());
  EXPECT_EQ(DataFiles(), 32u) << "a week has not gone";
  const auto dry = Vacuum(process_.context(), table, 0.0, true);
  EXPECT_EQ(dry->rows.size(), 31u);
  EXPECT_EQ(DataFiles(), 32u) << "a dry run only tells";
  ASSERT_TRUE(Vacuum(process_.context(), table, 0.0, false).ok());
  EXPECT_EQ(DataFiles(), 1u);
  EXPECT_TRUE(CheckTable(process_.context(), table, true)->rows.empty());
}

TEST_P(VacuumTest, LiteGoesByTheLogAndByWhatTheLastOneLeft) {
  MakeGarbage();
  const auto table = process_.Table(path_);
  process_.settings["spark.databricks.delta.retentionDurationCheck.enabled"] = "false";
  const auto dry = Vacuum(process_.context(), table, 0.0, true, true);
  EXPECT_EQ(dry->rows.size(), 30u) << "the log does not know the stray file";
  ASSERT_TRUE(Vacuum(process_.context(), table, 0.0, false, true).ok());
  EXPECT_EQ(DataFiles(), 2u);
  const auto info = Json::Parse(*storage::LocalStore()->Get(path_ + "/_delta_log/_last_vacuum_info"));
  EXPECT_TRUE((*info)["latestCommitVersionOutsideOfRetentionWindow"].is_int());
  const std::int64_t known = (*info)["latestCommitVersionOutsideOfRetentionWindow"].AsInt();
  // The log's beginning may go once a VACUUM has dealt with it.
  ASSERT_TRUE(process_.Append(path_, "more", {{5, 5}}).ok());
  ASSERT_TRUE(process_.Open(path_)->Checkpoint({}).ok());
  for (std::int64_t version = 0; version < known; ++version) {
    std::filesystem::remove(delta::CommitPath(path_, version));
  }
  LocalProcess next(SharedEngine());
  next.settings = process_.settings;
  ASSERT_TRUE(Optimize(next.context(), table, {}).ok());
  const auto again = Vacuum(next.context(), table, 0.0, false, true);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ(DataFiles(), 2u);
  std::filesystem::remove(path_ + "/_delta_log/_last_vacuum_info");
  EXPECT_EQ(Vacuum(next.context(), table, 0.0, false, true).error().condition(), "DELTA_CANNOT_VACUUM_LITE");
}

TEST_P(VacuumTest, ATableWithAFeatureThatIsNotKnownIsLeftAlone) {
  MakeGarbage();
  {
    const auto log = process_.Open(path_);
    std::string text = *storage::LocalStore()->Get(delta::CommitPath(path_, (*log->Latest())->version()));
    const std::string next = delta::CommitPath(path_, (*log->Latest())->version() + 1);
    std::ofstream(next)
        << R"({"commitInfo":{"operation":"UPGRADE"}})"
        << "\n"
        << R"({"protocol":{"minReaderVersion":1,"minWriterVersion":7,"writerFeatures":["fromTomorrow"]}})"
        << "\n";
  }
  process_.settings["spark.databricks.delta.retentionDurationCheck.enabled"] = "false";
  const auto refused = Vacuum(process_.context(), process_.Table(path_), 0.0, false);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().condition(), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
  EXPECT_NE(refused.error().message().find("fromTomorrow"), std::string::npos);
  EXPECT_EQ(DataFiles(), 32u);
}

INSTANTIATE_TEST_SUITE_P(Deletes, VacuumTest, testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SideBySide" : "OneByOne"); });

TEST_F(Maintenance, ZOrderKeepsNeighboursInEveryColumnTogether) {
  ASSERT_TRUE(process_.Create(path_, {}).ok());
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  std::uint64_t seed = 1;
  const auto next = [&] { return static_cast<std::int64_t>((seed = seed * 6364136223846793005ULL + 1) >> 54); };
  for (int i = 0; i < 4096; ++i) {
    rows.emplace_back(next(), next() * next());  // 0 to 1023, and not evenly to a million
  }
  ASSERT_TRUE(process_.Append(path_, "all", rows).ok());
  OptimizeSpec spec;
  spec.zorder_by = {"id", "v"};
  ASSERT_TRUE(Optimize(process_.context(), process_.Table(path_), spec).ok());
  EXPECT_TRUE(CheckTable(process_.context(), process_.Table(path_), true)->rows.empty());
  const auto files = (*Fresh())->AllFiles();
  ASSERT_EQ(files.size(), 1u);
  const types::Schema schema = *types::DataType::FromDdl("id bigint, v bigint");
  const auto reader = *engine::MakeParquetReader()->Read(path_ + "/" + files[0].path, schema);
  std::vector<types::Value::List> ordered;
  while (true) {
    const auto batch = *reader->Next();
    if (!batch) {
      break;
    }
    const auto some = *columnar::RowsFromBatch(*batch);
    ordered.insert(ordered.end(), some.begin(), some.end());
  }
  ASSERT_EQ(ordered.size(), rows.size());
  // Ranks instead of values; a piece of a sixteenth should then be about a quarter wide in each column.
  std::vector<std::vector<std::int64_t>> sorted(2);
  for (const auto& row : ordered) {
    sorted[0].push_back(row[0].integer());
    sorted[1].push_back(row[1].integer());
  }
  for (auto& values : sorted) {
    std::sort(values.begin(), values.end());
  }
  for (std::size_t column = 0; column < 2; ++column) {
    double widths = 0;
    for (std::size_t piece = 0; piece < 16; ++piece) {
      double least = 1;
      double most = 0;
      for (std::size_t i = piece * 256; i < piece * 256 + 256; ++i) {
        const auto at = std::lower_bound(sorted[column].begin(), sorted[column].end(), ordered[i][column].integer());
        const double rank = static_cast<double>(at - sorted[column].begin()) / 4096;
        least = std::min(least, rank);
        most = std::max(most, rank);
      }
      widths += most - least;
    }
    EXPECT_LT(widths / 16, 0.4) << "column " << column;
  }
}

TEST_F(Maintenance, OptimizeGoesByTheSizesOfTheSession) {
  Fill(6);
  const std::int64_t size = (*Fresh())->AllFiles()[0].size;
  process_.settings["spark.databricks.delta.optimize.minFileSize"] = std::to_string(size / 2);
  ASSERT_TRUE(Optimize(process_.context(), process_.Table(path_), {}).ok());
  EXPECT_EQ((*Fresh())->file_count(), 6) << "no file is small";
  process_.settings["spark.databricks.delta.optimize.minFileSize"] = std::to_string(size * 2);
  process_.settings["spark.databricks.delta.optimize.maxFileSize"] = std::to_string(size * 3 + size / 2);
  ASSERT_TRUE(Optimize(process_.context(), process_.Table(path_), {}).ok());
  EXPECT_EQ((*Fresh())->file_count(), 2) << "three and three";
}

}  // namespace
}  // namespace fleuve::tables
