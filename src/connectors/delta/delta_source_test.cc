#include <gtest/gtest.h>

#include "base/ids.h"
#include "connectors/delta/delta_source_internal.h"
#include "connectors/delta/delta_stream.h"
#include "storage/memory_store.h"

namespace fleuve::connectors::delta {
namespace {

constexpr const char* kId = "5b1f0a52-6a4f-4f4e-8f63-0a4d7c3a9e11";

std::string MetadataLine(const std::string& fields, const std::string& id = kId) {
  Json schema;
  schema.Set("type", "struct").Set("fields", *Json::Parse("[" + fields + "]"));
  Json metadata;
  metadata.Set("id", id).Set("format", *Json::Parse(R"({"provider":"parquet","options":{}})"));
  metadata.Set("schemaString", schema.Dump())
      .Set("partitionColumns", Json::Array{})
      .Set("configuration", Json::Object{});
  metadata.Set("createdTime", 1700000000000);
  Json line;
  line.Set("metaData", std::move(metadata));
  return line.Dump() + "\n";
}

const char* const kIdField = R"({"name":"id","type":"long","nullable":true,"metadata":{}})";
const char* const kProtocol = "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n";

std::string Add(const std::string& path, std::int64_t size, std::int64_t time = 1700000000000,
                bool data_change = true) {
  return "{\"add\":{\"path\":\"" + path + "\",\"partitionValues\":{},\"size\":" + std::to_string(size) +
         ",\"modificationTime\":" + std::to_string(time) + ",\"dataChange\":" + (data_change ? "true" : "false") +
         ",\"stats\":\"{\\\"numRecords\\\":1}\"}}\n";
}
std::string Remove(const std::string& path) {
  return "{\"remove\":{\"path\":\"" + path + "\",\"deletionTimestamp\":1700000000000,\"dataChange\":true}}\n";
}

/// A table in a folder of this machine whose commits are written by hand; no data file is ever opened.
class DeltaSourceTest : public ::testing::Test {
 protected:
  DeltaSourceTest() : logs_(std::make_shared<dl::LogRegistry>(dl::LogContext{})) {
    root_ = "/delta-source-" + NewUuid();
    location_ = *storage::Resolve("memory:" + root_);
    RegisterDelta(registry_, logs_);
  }

  void Commit(std::int64_t version, const std::string& text) {
    ASSERT_TRUE(location_.store->Put(dl::CommitPath(location_.path, version), text, storage::PutMode::kIfAbsent).ok());
  }
  void NewTable(const std::string& adds) { Commit(0, kProtocol + MetadataLine(kIdField) + adds); }

  std::unique_ptr<Source> Make(plan::Options options) {
    StreamRequest request;
    request.format = "delta";
    request.options = options;
    request.paths = {"memory:" + root_};
    auto relation = registry_.source("delta")->Resolve(request, {});
    EXPECT_TRUE(relation.ok()) << relation.error().ToString();
    SourceContext context;
    context.checkpoint = {location_.store, root_ + "-cp"};
    auto source = registry_.source("delta")->MakeSource(*relation, context);
    if (!source.ok()) {
      make_error_ = source.error().condition();
      return nullptr;
    }
    return *std::move(source);
  }
  static std::string At(std::int64_t version, std::int64_t index, bool starting) {
    return DeltaOffset{version, index, starting}.ToJson(kId);
  }
  /// The ends of all batches, then the file names that each read.
  std::vector<std::string> Batches(Source& source, std::optional<Offset> from = std::nullopt) {
    std::vector<std::string> out;
    for (;;) {
      auto end = source.LatestOffset(from, Admission::kRateLimited);
      if (!end.ok()) {
        out.push_back(end.error().condition());
        return out;
      }
      if (!*end || *end == from) {
        return out;
      }
      auto input = source.Read(from, **end);
      if (!input.ok()) {
        out.push_back(input.error().condition());
        return out;
      }
      const DeltaOffset offset = *DeltaOffset::Parse(**end, kId);
      std::string line =
          std::to_string(offset.version) + "/" + std::to_string(offset.index) + (offset.is_starting ? "s" : "");
      for (const auto& file : input->scan ? input->scan->files : std::vector<plan::ScanFile>{}) {
        line += " " + file.path.substr(file.path.rfind('/') + 1);
      }
      out.push_back(line);
      from = *end;
    }
  }

  std::string root_;
  storage::Location location_;
  std::shared_ptr<dl::LogRegistry> logs_;
  ConnectorRegistry registry_;
  std::string make_error_;
};

using Lines = std::vector<std::string>;

TEST_F(DeltaSourceTest, OffsetsAsSparkWritesThem) {
  EXPECT_EQ(At(3, -1, false),
            "{\"sourceVersion\":1,\"reservoirId\":\"5b1f0a52-6a4f-4f4e-8f63-0a4d7c3a9e11\","
            "\"reservoirVersion\":3,\"index\":-1,\"isStartingVersion\":false}");
  EXPECT_EQ(*DeltaOffset::Parse(At(3, 7, true), kId), (DeltaOffset{3, 7, true}));
  EXPECT_EQ(DeltaOffset::Parse(At(3, 7, true), "other").error().condition(),
            "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE");
  const auto parse = [](const std::string& version, const std::string& index) {
    return DeltaOffset::Parse("{\"sourceVersion\":" + version + ",\"reservoirId\":\"" + kId +
                                  "\",\"reservoirVersion\":3,\"index\":" + index + ",\"isStartingVersion\":false}",
                              kId);
  };
  EXPECT_EQ(parse("3", "-100")->index, -1);
  EXPECT_EQ(parse("2", "1").error().condition(), "DELTA_INVALID_SOURCE_VERSION");
  EXPECT_EQ(parse("4", "1").error().condition(), "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION");
  EXPECT_EQ(parse("3", "-1").error().condition(), "DELTA_INVALID_SOURCE_OFFSET_FORMAT");
  EXPECT_EQ(DeltaOffset::Parse("not json", kId).error().condition(), "DELTA_INVALID_SOURCE_OFFSET_FORMAT");
}

TEST_F(DeltaSourceTest, SnapshotByTimeThenCommitsWithinLimits) {
  NewTable(Add("b", 10, 2) + Add("c", 10, 1) + Add("a", 10, 2));
  Commit(1, Add("e", 10) + Add("d", 10));
  auto source = Make({{"maxFilesPerTrigger", "2"}});
  // The snapshot is the version at the start; the first batch with room goes on into later commits.
  Commit(2, "{\"commitInfo\":{\"timestamp\":1,\"operation\":\"OPTIMIZE\"}}\n" + Add("x", 1, 1, false));
  Commit(3, Add("f", 10));
  EXPECT_EQ(Batches(*source), (Lines{"1/1s c a", "1/3s b d", "4/-1 e f"}));
}

TEST_F(DeltaSourceTest, BytesAreSoft) {
  NewTable("");
  for (int version = 1; version <= 5; ++version) {
    Commit(version, Add("f" + std::to_string(version), 3));
  }
  auto source = Make({{"maxBytesPerTrigger", "10b"}, {"startingVersion", "1"}});
  EXPECT_EQ(Batches(*source), (Lines{"5/-1 f1 f2 f3 f4", "6/-1 f5"}));
}

TEST_F(DeltaSourceTest, ChangesAreRefusedOrSkipped) {
  NewTable(Add("a", 1));
  Commit(1, Remove("a"));
  Commit(2, Add("b", 1));
  Commit(3, Remove("b") + Add("c", 1));
  const auto from = At(1, -1, false);
  EXPECT_EQ(Batches(*Make({}), from), (Lines{"DELTA_SOURCE_IGNORE_DELETE"}));
  EXPECT_EQ(Batches(*Make({{"ignoreDeletes", "TRUE"}}), from), (Lines{"DELTA_SOURCE_TABLE_IGNORE_CHANGES"}));
  EXPECT_EQ(Batches(*Make({{"ignoreChanges", "true"}}), from), (Lines{"4/-1 b c"}));
  EXPECT_EQ(Batches(*Make({{"skipChangeCommits", "true"}}), from), (Lines{"4/-1 b"}));
  // A limit that stops before the forbidden commit does not help: the scan opens it.
  EXPECT_EQ(Batches(*Make({{"ignoreDeletes", "true"}, {"maxFilesPerTrigger", "1"}}), from),
            (Lines{"DELTA_SOURCE_TABLE_IGNORE_CHANGES"}));
}

TEST_F(DeltaSourceTest, StartsAndBadOptions) {
  NewTable(Add("a", 1));
  Commit(1, Add("b", 1));
  EXPECT_EQ(Batches(*Make({{"startingVersion", "1"}})), (Lines{"2/-1 b"}));
  auto latest = Make({{"startingVersion", "latest"}});
  EXPECT_EQ(Batches(*latest), Lines{});
  Commit(2, Add("c", 1));
  EXPECT_EQ(Batches(*latest), (Lines{"3/-1 c"}));
  EXPECT_EQ(Batches(*Make({{"startingVersion", "9"}})), (Lines{"DELTA_VERSION_NOT_FOUND"}));
  EXPECT_EQ(Batches(*Make({{"startingTimestamp", "2999-01-01"}})), (Lines{"DELTA_TIMESTAMP_GREATER_THAN_COMMIT"}));
  EXPECT_EQ(Batches(*Make({{"startingTimestamp", "soon"}})), (Lines{"DELTA_TIMESTAMP_INVALID"}));
  for (const auto& [name, value, condition] :
       std::vector<std::array<std::string, 3>>{{"startingVersion", "earliest", "DELTA_ILLEGAL_OPTION"},
                                               {"maxFilesPerTrigger", "0", "DELTA_ILLEGAL_OPTION"},
                                               {"maxBytesPerTrigger", "1.5m", "DELTA_ILLEGAL_OPTION"},
                                               {"skipChangeCommits", "maybe", "DELTA_ILLEGAL_OPTION"},
                                               {"excludeRegex", "(", "DELTA_REGEX_OPT_SYNTAX_ERROR"},
                                               {"schemaTrackingLocation", "/x", "UNSUPPORTED_FEATURE.FLEUVE"}}) {
    EXPECT_EQ(Make({{name, value}}), nullptr) << name;
    EXPECT_EQ(make_error_, condition) << name;
  }
}

TEST_F(DeltaSourceTest, MissingCommitsAndExcludedFiles) {
  NewTable("");
  for (int version = 1; version <= 3; ++version) {
    Commit(version, Add("f" + std::to_string(version), 3));
  }
  auto warm = Make({});
  ASSERT_TRUE(location_.store->Delete(dl::CommitPath(location_.path, 1)).ok());
  const auto from = At(1, -1, false);
  EXPECT_EQ(Batches(*warm, from), (Lines{"DELTA_MISSING_FILES_UNEXPECTED_VERSION"}));
  EXPECT_EQ(Batches(*Make({{"excludeRegex", "f[2]$"}}), At(2, -1, false)), (Lines{"4/-1 f3"}));
}

TEST_F(DeltaSourceTest, SchemaChangesStopTheStream) {
  NewTable(Add("a", 1));
  auto running = Make({});
  Commit(1, MetadataLine(std::string(kIdField) + R"(,{"name":"v","type":"string","nullable":true,"metadata":{}})") +
                Add("b", 1));
  EXPECT_EQ(Batches(*running), (Lines{"DELTA_SCHEMA_CHANGED_WITH_VERSION"}));
  // A restart reads with the new schema.
  EXPECT_EQ(Batches(*Make({}), At(1, -1, false)), (Lines{"2/-1 b"}));
  Commit(2, MetadataLine(R"({"name":"id","type":"string","nullable":true,"metadata":{}})") + Add("c", 1));
  EXPECT_EQ(Batches(*Make({}), At(1, -1, false)), (Lines{"DELTA_SCHEMA_CHANGED_WITH_VERSION"}));
}

TEST_F(DeltaSourceTest, AReplayedFirstBatchReadsWhatItRead) {
  NewTable(Add("a", 1));
  auto first = Make({});
  auto end = first->LatestOffset(std::nullopt, Admission::kRateLimited);
  ASSERT_TRUE(end.ok() && *end);
  EXPECT_EQ(**end, At(1, -1, false));
  const auto records = first->TakeDurableRecords();
  EXPECT_EQ(records.files.size(), 1U);
  Commit(1, Add("b", 1));
  auto again = Make({});
  ASSERT_TRUE(again->Recover(std::nullopt, *end).ok());
  auto input = again->Read(std::nullopt, **end);
  ASSERT_TRUE(input.ok()) << input.error().ToString();
  ASSERT_EQ(input->scan->files.size(), 1U);
  EXPECT_TRUE(input->scan->files[0].path.ends_with("/a"));
  EXPECT_EQ(input->row_count, 1);
}

}  // namespace
}  // namespace fleuve::connectors::delta
