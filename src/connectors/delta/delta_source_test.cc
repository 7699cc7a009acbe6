#include <gtest/gtest.h>

#include "base/ids.h"
#include "connectors/delta/delta_source_internal.h"
#include "connectors/delta/delta_stream.h"
#include "storage/memory_store.h"

namespace fleuve::connectors::delta {
namespace {

constexpr const char* kId = "5b1f0a52-6a4f-4f4e-8f63-0a4d7c3a9e11";

std::string MetadataLine(const std::string& fields, const std::string& id = kId, Json configuration = Json::Object{}) {
  Json schema;
  schema.Set("type", "struct").Set("fields", *Json::Parse("[" + fields + "]"));
  Json metadata;
  metadata.Set("id", id).Set("format", *Json::Parse(R"({"provider":"parquet","options":{}})"));
  metadata.Set("schemaString", schema.Dump())
      .Set("partitionColumns", Json::Array{})
      .Set("configuration", std::move(configuration));
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

std::string Cdc(const std::string& path, std::int64_t size) {
  return "{\"cdc\":{\"path\":\"" + path + "\",\"partitionValues\":{},\"size\":" + std::to_string(size) +
         ",\"dataChange\":false}}\n";
}
std::string RemoveWhole(const std::string& path, std::int64_t size) {
  return "{\"remove\":{\"path\":\"" + path +
         "\",\"deletionTimestamp\":1700000000000,\"dataChange\":true,\"extendedFileMetadata\":true,"
         "\"partitionValues\":{},\"size\":" +
         std::to_string(size) + "}}\n";
}
Json Feed(bool enabled) {
  Json configuration;
  configuration.Set("delta.enableChangeDataFeed", enabled ? "true" : "false");
  return configuration;
}
const char* const kTimeField = R"({"name":"t","type":"timestamp","nullable":true,"metadata":{}})";

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
    context.metadata_path = root_ + "-cp/sources/0";
    context.config.conf = [this](const std::string& key) {
      const auto at = conf_.find(key);
      return at == conf_.end() ? std::nullopt : std::optional<std::string>(at->second);
    };
    if (watermark_) {
      context.event_time.emplace();
      context.event_time->columns = plan::AttributesOf((*relation)->schema());
      context.event_time->time = plan::MakeAttribute(context.event_time->columns.back());
      context.event_time->is_plain_column = true;
    }
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
      if (offset.event_time_ms) {
        line += "@" + std::to_string(*offset.event_time_ms);
      }
      auto scans = input->more_scans;
      scans.insert(scans.begin(), input->scan ? input->scan : std::make_shared<const plan::FileScan>());
      for (const auto& scan : scans) {
        for (const auto& file : scan->files) {
          line += " " + file.path.substr(file.path.rfind('/') + 1);
          if (!file.constants.empty()) {
            line += file.constants.size() == 3 ? ":" + file.constants[0].text() : ":change";
          }
        }
      }
      out.push_back(line);
      if (auto planned = source.BatchPlanned(from); !planned.ok()) {
        out.push_back(planned.error().condition());
        return out;
      }
      from = *end;
    }
  }

  std::string root_;
  storage::Location location_;
  std::shared_ptr<dl::LogRegistry> logs_;
  ConnectorRegistry registry_;
  std::string make_error_;
  /// The last column is a watermark's.
  bool watermark_ = false;
  std::map<std::string, std::string> conf_;
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
                                               {"excludeRegex", "(", "DELTA_REGEX_OPT_SYNTAX_ERROR"}}) {
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

TEST_F(DeltaSourceTest, ChangeFeedKeepsTheImagesOfAnUpdateTogether) {
  Commit(0, kProtocol + MetadataLine(kIdField, kId, Feed(true)) + Add("a", 1) + Add("b", 1));
  Commit(1, Add("c", 1));
  Commit(2, RemoveWhole("c", 1));
  Commit(3, Cdc("x", 1) + Cdc("y", 1) + RemoveWhole("a", 1) + Add("d", 1));
  Commit(4, Cdc("z", 1) + Cdc("w", 1));
  const plan::Options feed = {{"readChangeFeed", "true"}, {"startingVersion", "0"}};
  auto limited = feed;
  limited["maxFilesPerTrigger"] = "1";
  EXPECT_EQ(Batches(*Make(limited)), (Lines{"0/0 a:insert", "1/-1 b:insert", "2/-1 c:insert", "3/-1 c:delete",
                                            "3/1 x:change y:change", "4/1 z:change w:change"}));
  limited["maxFilesPerTrigger"] = "3";
  EXPECT_EQ(Batches(*Make(limited))[0], "2/-1 a:insert b:insert c:insert");
  // A change file that is left out does not bring back the whole files of its commit.
  auto excluded = feed;
  excluded["excludeRegex"] = "^[xyzw]$";
  EXPECT_EQ(Batches(*Make(excluded), At(3, -1, false)), (Lines{"5/-1"}));
  EXPECT_EQ(Batches(*Make({{"readChangeFeed", "true"}}))[0], "5/-1 b:insert d:insert");
}

TEST_F(DeltaSourceTest, ChangeFeedMustHaveBeenKept) {
  NewTable(Add("a", 1));
  Commit(1, MetadataLine(kIdField, kId, Feed(true)));
  Commit(2, Add("b", 1));
  Commit(3, MetadataLine(kIdField, kId, Feed(false)));
  Commit(4, Add("c", 1));
  for (const char* version : {"0", "1", "2", "4"}) {
    EXPECT_EQ(Batches(*Make({{"readChangeFeed", "true"}, {"startingVersion", version}})),
              (Lines{"DELTA_MISSING_CHANGE_DATA"}))
        << version;
  }
  EXPECT_EQ(Batches(*Make({{"readChangeFeed", "true"}, {"startingVersion", "1"}, {"maxFilesPerTrigger", "1"}})),
            (Lines{"3/-1 b:insert", "DELTA_MISSING_CHANGE_DATA"}));
}

TEST_F(DeltaSourceTest, ATrackedSchemaStopsTheStreamOnceAtEachChange) {
  const auto field = [](const std::string& name) {
    return std::string(R"({"name":")") + name +
           R"(","type":"string","nullable":true,"metadata":{"delta.columnMapping.id":1,)"
           R"("delta.columnMapping.physicalName":"p"}})";
  };
  Json mapping;
  mapping.Set("delta.columnMapping.mode", "name");
  Commit(0,
         "{\"protocol\":{\"minReaderVersion\":2,\"minWriterVersion\":5}}\n" + MetadataLine(field("b"), kId, mapping));
  Commit(1, Add("r1", 1));
  Commit(2, MetadataLine(field("c"), kId, mapping));
  Commit(3, Add("r2", 1));
  plan::Options options = {{"startingVersion", "0"}, {"schemaTrackingLocation", "memory:" + root_ + "-cp"}};
  EXPECT_EQ(Batches(*Make(options)), (Lines{"DELTA_STREAMING_METADATA_EVOLUTION"}));
  EXPECT_EQ(Batches(*Make(options)), (Lines{"2/-20 r1", "2/-19", "DELTA_STREAMING_METADATA_EVOLUTION"}));
  EXPECT_EQ(Make(options), nullptr);
  EXPECT_EQ(make_error_, "DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION");
  options["allowSourceColumnRename"] = "3";
  EXPECT_EQ(Make(options), nullptr);
  options["allowSourceColumnRename"] = "2";
  DeltaOffset barrier{2, kPastBarrier, false};
  EXPECT_EQ(Batches(*Make(options), barrier.ToJson(kId)), (Lines{"4/-1 r2"}));
  barrier.index = kBarrier;
  EXPECT_EQ(Batches(*Make(options), barrier.ToJson(kId)), (Lines{"2/-19", "4/-1 r2"}));
  const auto entry = location_.store->Get(root_ + "-cp/_schema_log_" + kId + "/1");
  ASSERT_TRUE(entry.ok());
  EXPECT_NE(entry->find("\"deltaCommitVersion\":2"), std::string::npos) << *entry;
}

TEST_F(DeltaSourceTest, WidenedTypesAskForTrackingWhereTheSettingsSaySo) {
  const auto field = [](const char* type) {
    return std::string(R"({"name":"id","type":")") + type + R"(","nullable":true,"metadata":{}})";
  };
  Commit(0, kProtocol + MetadataLine(field("integer")) + Add("a", 1));
  Commit(1, MetadataLine(field("long")) + Add("b", 1));
  const plan::Options options = {{"startingVersion", "0"}};
  EXPECT_EQ(Batches(*Make(options)), (Lines{"2/-1 a b"}));
  conf_["spark.databricks.delta.typeWidening.enableStreamingSchemaTracking"] = "true";
  EXPECT_EQ(Batches(*Make(options)), (Lines{"DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"}));
  conf_ = {{"spark.databricks.delta.typeWidening.allowTypeChangeStreamingDeltaSource", "false"}};
  EXPECT_EQ(Batches(*Make(options)), (Lines{"DELTA_SCHEMA_CHANGED_WITH_STARTING_OPTIONS"}));
}

TEST_F(DeltaSourceTest, TheSnapshotInEventTimeOrder) {
  const auto add = [](const std::string& path, int low, int high) {
    const auto time = [](int second) {
      return "\\\"2024-01-01T00:00:" + std::string(second < 10 ? "0" : "") + std::to_string(second) + ".000Z\\\"";
    };
    return "{\"add\":{\"path\":\"" + path +
           "\",\"partitionValues\":{},\"size\":1,\"modificationTime\":" + std::to_string(100 - high) +
           ",\"dataChange\":true,\"stats\":\"{\\\"numRecords\\\":2,\\\"minValues\\\":{\\\"t\\\":" + time(low) +
           "},\\\"maxValues\\\":{\\\"t\\\":" + time(high) +
           "},\\\"nullCount\\\":{\\\"t\\\":" + (path == "n" ? "1" : "0") + "}}\"}}\n";
  };
  Commit(0, kProtocol + MetadataLine(kTimeField) + add("d", 30, 39) + add("c", 20, 29) + add("b", 5, 19) +
                add("a", 0, 9) + add("n", 50, 55));
  watermark_ = true;
  const std::string first = "0/-1s@1704067219001";
  EXPECT_EQ(Batches(*Make({{"withEventTimeOrder", "true"}, {"maxFilesPerTrigger", "2"}})),
            (Lines{first + " a b n", "0/-1s@1704067239001 c d", "1/-1 n"}));
  DeltaOffset inside{0, -1, true, 1704067219001};
  EXPECT_TRUE(inside.ToJson(kId).starts_with("{\"sourceVersion\":2,")) << inside.ToJson(kId);
  const auto recover = [&](plan::Options options, const DeltaOffset& offset) {
    auto recovered = Make(std::move(options))->Recover(offset.ToJson(kId), std::nullopt);
    return recovered.ok() ? std::string() : recovered.error().condition();
  };
  EXPECT_EQ(recover({}, inside), "FLEUVE_EVENT_TIME_ORDER_CHANGED");
  EXPECT_EQ(recover({{"withEventTimeOrder", "true"}}, DeltaOffset{0, 1, true}), "FLEUVE_EVENT_TIME_ORDER_CHANGED");
  EXPECT_EQ(recover({{"withEventTimeOrder", "true"}}, inside), "");
  EXPECT_EQ(recover({}, DeltaOffset{1, -1, false}), "");
  // Other limits after a restart: the rest comes once.
  EXPECT_EQ(Batches(*Make({{"withEventTimeOrder", "true"}, {"maxFilesPerTrigger", "9"}}), inside.ToJson(kId)),
            (Lines{"1/-1 c d n"}));
  watermark_ = false;
  EXPECT_EQ(Batches(*Make({{"withEventTimeOrder", "true"}, {"maxFilesPerTrigger", "2"}}))[0], "0/1s n d");
}

}  // namespace
}  // namespace fleuve::connectors::delta
