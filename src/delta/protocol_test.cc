#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <memory>
#include <thread>

#include "delta/deletion_vector.h"
#include "delta/file_set_internal.h"
#include "delta/json_checksum_internal.h"
#include "delta/log.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_fixture_internal.h"
#include "delta/table_source.h"
#include "delta/transaction.h"
#include "storage/memory_store.h"

namespace fleuve::delta {
namespace {

using types::DataType;

TEST(Actions, LinesAreWrittenAsSparkWritesThem) {
  const std::string lines =
      R"({"commitInfo":{"timestamp":1795990765301,"operation":"STREAMING UPDATE","operationParameters":{"outputMode":"Append","queryId":"q","epochId":"0","description":null},"readVersion":3,"isolationLevel":"Serializable","isBlindAppend":true,"operationMetrics":{"numRemovedFiles":"0"},"engineInfo":"e","txnId":"t"}})"
      "\n"
      R"({"metaData":{"id":"8e","format":{"provider":"parquet","options":{}},"schemaString":"{\"type\":\"struct\",\"fields\":[]}","partitionColumns":["p"],"configuration":{"a":"b"},"createdTime":1795990762433}})"
      "\n"
      R"({"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors","invariants"]}})"
      "\n"
      R"({"txn":{"appId":"8c","version":0,"lastUpdated":1795990765275}})"
      "\n"
      R"({"add":{"path":"p=a%20b/x.parquet","partitionValues":{"p":"a b","q":null},"size":454,"modificationTime":7,"dataChange":true,"stats":"{\"numRecords\":1}","deletionVector":{"storageType":"u","pathOrInlineDv":"id%3BD>eXgHonh9&kk:^","offset":1,"sizeInBytes":318,"cardinality":143}}})"
      "\n"
      R"({"remove":{"path":"x","deletionTimestamp":9,"dataChange":true,"extendedFileMetadata":true,"partitionValues":{},"size":748,"stats":"{\"numRecords\":7}"}})"
      "\n"
      R"({"cdc":{"path":"_change_data/y","partitionValues":{"p":"0"},"size":1018,"dataChange":false}})"
      "\n"
      R"({"domainMetadata":{"domain":"d","configuration":"{}","removed":false}})"
      "\n";
  const auto actions = ParseActions(lines, "x");
  ASSERT_TRUE(actions.ok()) << actions.error().ToString();
  std::string again;
  for (const Action& action : *actions) {
    AppendJsonLine(again, action);
  }
  EXPECT_EQ(again, lines);
}

TEST(Actions, UnknownOnesAreSkippedAndDamageIsFound) {
  EXPECT_EQ(ParseActions("\n{\"new\":{\"a\":1}}\n\n{\"add\":{\"path\":\"x\",\"later\":{\"y\":[1]}}}\n", "f")->size(),
            1u);
  EXPECT_EQ(ParseActions("{\"add\":{\"path\":\"x\"", "f").error().condition(), "DELTA_CORRUPT_LOG");
  EXPECT_FALSE(ParseActions("not json\n", "f").ok());
}

TEST(JsonChecksum, MatchesTheProtocolsExample) {
  const auto json =
      Json::Parse(R"({"k0":"'v 0'","checksum":"x","k1":{"k2":2,"k3":["v3",[1,2],{"k4":"v4","k5":["v5","v6","v7"]}]}})");
  EXPECT_EQ(CanonicalJson(*json),
            R"("k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3","k1"+"k3"+1+0=1,"k1"+"k3"+1+1=2,)"
            R"("k1"+"k3"+2+"k4"="v4","k1"+"k3"+2+"k5"+0="v5","k1"+"k3"+2+"k5"+1="v6","k1"+"k3"+2+"k5"+2="v7")");
  EXPECT_EQ(Md5Hex(CanonicalJson(*json)), "6a92d155a59bf2eecbd4b4ec7fd1f875");
}

TEST(DeletionVectors, InlineOnesAreDecoded) {
  DeletionVectorDescriptor dv;
  dv.storage_type = "i";
  dv.path_or_inline_dv = "^Bg9^0rr910000000000iXQKl0rr91000625c8Xg000936951j";
  dv.size_in_bytes = 38;
  dv.cardinality = 3;
  const auto rows = LoadDeletionVector(dv, {storage::MemoryStore::Make(), "/t"});
  ASSERT_TRUE(rows.ok()) << rows.error().ToString();
  EXPECT_EQ((*rows)->rows(), (std::vector<std::uint64_t>{0, 3, 19}));
  std::vector<std::uint32_t> kept(8);
  EXPECT_EQ((*rows)->Keep(2, 4, kept.data()), 3);
  EXPECT_EQ(kept[0], 0u);
  EXPECT_EQ(kept[1], 2u);
  dv.storage_type = "u";
  dv.path_or_inline_dv = "ab^-aqEH.-t@S}K{vb[*k^";
  EXPECT_EQ(*DeletionVectorPath(dv, {nullptr, "/t"}), "/t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
}

TEST(Features, VersionsAndListsAreRaisedAsSparkDoes) {
  Metadata m = SimpleMetadata();
  const auto schema = DataType::FromJson(*Json::Parse(m.schema_string));
  EXPECT_EQ(ToJsonLine(*ProtocolFor(nullptr, m, *schema)),
            "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":2}}\n");
  const auto with = [&](const std::string& key, const std::string& value) {
    Metadata n = SimpleMetadata();
    n.configuration = {{key, value}};
    return ToJsonLine(*ProtocolFor(nullptr, n, *schema));
  };
  EXPECT_EQ(with("delta.enableDeletionVectors", "true"),
            "{\"protocol\":{\"minReaderVersion\":3,\"minWriterVersion\":7,\"readerFeatures\":[\"deletionVectors\"],"
            "\"writerFeatures\":[\"deletionVectors\",\"invariants\",\"appendOnly\"]}}\n");
  EXPECT_EQ(with("delta.columnMapping.mode", "name"),
            "{\"protocol\":{\"minReaderVersion\":2,\"minWriterVersion\":7,"
            "\"writerFeatures\":[\"columnMapping\",\"invariants\",\"appendOnly\"]}}\n");
  EXPECT_EQ(with("delta.constraints.c", "id > 0"), "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":3}}\n");
  EXPECT_EQ(with("delta.enableChangeDataFeed", "true"),
            "{\"protocol\":{\"minReaderVersion\":1,\"minWriterVersion\":7,"
            "\"writerFeatures\":[\"changeDataFeed\",\"invariants\",\"appendOnly\"]}}\n");
  Protocol strange{3, 7, std::vector<std::string>{"b"}, std::vector<std::string>{"b"}};
  EXPECT_EQ(CheckReadable(strange, "t").error().condition(), "DELTA_UNSUPPORTED_FEATURES_FOR_READ");
  Protocol writer{1, 7, std::nullopt, std::vector<std::string>{"b"}};
  EXPECT_TRUE(CheckReadable(writer, "t").ok());
  EXPECT_EQ(CheckWritable(writer, "t").error().condition(), "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE");
}

TEST(PartitionValues, AreReadAndWrittenByType) {
  const auto round = [](const std::string& text, const DataType& type) {
    const auto value = ParsePartitionValue(text, type);
    return value.ok() ? FormatPartitionValue(*value, type)->value_or("null") : value.error().condition();
  };
  EXPECT_EQ(round("-99.99", DataType::Decimal(4, 2)), "-99.99");
  EXPECT_EQ(round("1969-12-31T23:59:59.999999Z", DataType::Timestamp()), "1969-12-31T23:59:59.999999Z");
  EXPECT_EQ(round("2024-01-02 03:04:05.6", DataType::Timestamp()), "2024-01-02T03:04:05.600000Z");
  EXPECT_EQ(round("9999-12-31 23:59:59.999999", DataType::TimestampNtz()), "9999-12-31 23:59:59.999999");
  EXPECT_EQ(round("0001-01-01", DataType::Date()), "0001-01-01");
  EXPECT_EQ(round("-Infinity", DataType::Double()), "-Infinity");
  EXPECT_EQ(round("-9223372036854775808", DataType::Long()), "-9223372036854775808");
  EXPECT_EQ(round("", DataType::Int()), "null");
  EXPECT_EQ(round("x", DataType::Int()), "DELTA_CORRUPT_LOG");
  EXPECT_EQ(EncodeUriPath(PartitionFolder({{"k", "{x}"}, {"m", "a b%#"}, {"n", std::nullopt}, {"o", "é"}})),
            "k=%257Bx%7D/m=a%20b%2525%2523/n=__HIVE_DEFAULT_PARTITION__/o=é");
}

TEST(FileSets, AnyOrderOfCommitsGivesTheSameFilesAsAMap) {
  std::map<std::string, AddFile> model;
  auto set = FileSet::Empty();
  std::uint32_t seed = 1;
  const auto next = [&] { return seed = seed * 1664525 + 1013904223; };
  for (int commit = 0; commit < 3000; ++commit) {
    std::vector<AddFile> adds;
    std::vector<RemoveFile> removes;
    for (std::uint32_t i = 0; i < next() % 4; ++i) {
      adds.push_back(File("f" + std::to_string(next() >> 16 & 0x3FFF)));
    }
    if (next() % 3 == 0 && !model.empty()) {
      removes.push_back(Gone(std::next(model.begin(), next() % model.size())->first));
    }
    std::vector<const AddFile*> a;
    std::vector<const RemoveFile*> r;
    for (const auto& file : removes) {
      model.erase(file.path);
      r.push_back(&file);
    }
    for (const auto& file : adds) {
      model[file.path] = file;
      a.push_back(&file);
    }
    set = set->Apply(r, a);
  }
  std::set<std::string> seen;
  set->ForEach([&](const AddFile& file) { EXPECT_TRUE(seen.insert(file.path).second); }, true);
  EXPECT_EQ(seen.size(), model.size());
  EXPECT_EQ(set->count(), static_cast<std::int64_t>(model.size()));
  EXPECT_EQ(set->records(), static_cast<std::int64_t>(model.size()) * 10);
  for (const auto& [path, file] : model) {
    EXPECT_TRUE(seen.contains(path));
    EXPECT_TRUE(set->Find(path).has_value());
  }
}

TEST(FileSets, AnAbsolutePathIsOneFileWithAndWithoutItsScheme) {
  const std::vector<std::string> forms = {"/a/b%20c", "file:/a/b%20c", "file:///a/b%20c"};
  for (const std::string& added : forms) {
    const AddFile file = File(added);
    const auto set = FileSet::Empty()->Apply({}, {&file});
    for (const std::string& other : forms) {
      EXPECT_TRUE(set->Find(other).has_value()) << added << " " << other;
      const RemoveFile gone = Gone(other);
      EXPECT_EQ(set->Apply({&gone}, {})->count(), 0) << added << " " << other;
    }
  }
  const auto parsed = ParseActions(R"({"remove":{"path":"file:///a/b%20c","dataChange":true}})", "log");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(std::get<RemoveFile>(parsed->front()).path, "/a/b%20c");
}

TEST(Features, CollationsAreRefusedWhereTheyWouldBeWritten) {
  Metadata metadata;
  const auto needed = [&metadata](DataType type) -> std::string {
    const auto names = FeaturesNeeded(metadata, DataType::Struct({{"c", std::move(type), true, Json()}}));
    return names.ok() ? "" : names.error().message();
  };
  EXPECT_EQ(needed(DataType::String()), "");
  EXPECT_THAT(needed(DataType::String("UNICODE")), testing::HasSubstr("UNICODE"));
  EXPECT_THAT(needed(DataType::Array(DataType::Map(DataType::Int(), DataType::String("UTF8_LCASE"), true), true)),
              testing::HasSubstr("UTF8_LCASE"));
}

TEST_F(TableTest, CommitsAreSeenByOthersOneByOne) {
  const auto log = Make();
  const auto other = Fresh();
  EXPECT_EQ((*other->Latest())->version(), 0);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Append(log, {File("f" + std::to_string(i))}).ok());
    EXPECT_EQ((*other->Latest())->file_count(), i + 1);
  }
  EXPECT_EQ((*other->At(7))->file_count(), 7);
  EXPECT_EQ((*Fresh()->Latest())->row_count(), 200);
  ASSERT_TRUE(Append(log, {Gone("f3")}).ok());
  EXPECT_EQ((*other->Latest())->file_count(), 19);
  EXPECT_EQ((*other->Latest())->Tombstones().size(), 1u);
}

TEST_F(TableTest, HolesAndMissingPartsOfTheLogHaveNames) {
  const auto log = Make();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(Append(log, {File("f" + std::to_string(i))}).ok());
  }
  EXPECT_EQ(log->At(9).error().condition(), "DELTA_VERSION_NOT_FOUND");
  ASSERT_TRUE(store_->Delete(CommitPath("/t", 1)).ok());
  EXPECT_EQ(Fresh()->Latest().error().condition(), "DELTA_VERSIONS_NOT_CONTIGUOUS");
  ASSERT_TRUE(store_->Delete(CommitPath("/t", 0)).ok());
  EXPECT_EQ(Fresh()->Latest().error().condition(), "DELTA_TRUNCATED_TRANSACTION_LOG");
  EXPECT_EQ(registry_.Open({store_, "/nothing"})->Latest().error().condition(), "DELTA_TABLE_NOT_FOUND");
}

TEST_F(TableTest, ARecreatedTableIsNoticed) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("old")}).ok());
  const auto other = Fresh();
  ASSERT_TRUE(other->Latest().ok());
  ASSERT_TRUE(store_->DeleteAll("/t").ok());
  {
    const auto maker = Fresh();
    Transaction txn(maker, nullptr);
    ASSERT_TRUE(txn.UpdateMetadata(SimpleMetadata()).ok());
    ASSERT_TRUE(txn.Commit({File("new")}, {.name = "WRITE"}).ok());
  }
  const auto snapshot = other->Latest();
  ASSERT_TRUE(snapshot.ok());
  EXPECT_EQ((*snapshot)->version(), 0);
  EXPECT_TRUE((*snapshot)->FindFile("new").has_value());
}

TEST_F(TableTest, TransactionsOfApplicationsAreFound) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {SetTransaction{"app", 7, 1}}).ok());
  EXPECT_EQ((*log->Latest())->Transaction("app")->version, 7);
  EXPECT_FALSE((*log->Latest())->Transaction("other").has_value());
  EXPECT_EQ((*Fresh()->Latest())->Transaction("app")->version, 7);
}

TEST_F(TableTest, FilesAreLeftOutByPartitionAndStatistics) {
  const auto log = Make({"p"});
  ASSERT_TRUE(Append(log, {File("a", 0, 9, "x"), File("b", 10, 19, "x"), File("c", 0, 9, "y")}).ok());
  const auto snapshot = *log->Latest();
  const std::vector<plan::Attribute> columns{{plan::NewAttributeId(), "id", DataType::Int(), true, {}, {}, false},
                                             {plan::NewAttributeId(), "p", DataType::String(), true, {}, {}, false}};
  const auto count = [&](const std::string& op, std::size_t column, types::Value value, DataType type) {
    const auto expr = plan::MakeCall(op, {plan::MakeAttribute(columns[column]), plan::MakeLiteral(value, type)},
                                     DataType::Boolean(), true);
    return snapshot->Files({expr}, columns)->size();
  };
  EXPECT_EQ(count("eq", 0, 5, DataType::Int()), 2u);
  EXPECT_EQ(count("gt", 0, 9, DataType::Int()), 1u);
  EXPECT_EQ(count("ge", 0, 20, DataType::Int()), 0u);
  EXPECT_EQ(count("lt", 0, 0, DataType::Int()), 0u);
  EXPECT_EQ(count("eq", 1, "y", DataType::String()), 1u);
  EXPECT_EQ(count("ne", 1, "x", DataType::String()), 1u);
  const auto null = plan::MakeCall("isnull", {plan::MakeAttribute(columns[0])}, DataType::Boolean(), false);
  EXPECT_EQ(snapshot->Files({null}, columns)->size(), 0u);
}

TEST_F(TableTest, NaNIsTheGreatestValueInStatistics) {
  const auto log = Make();
  const auto with = [](const std::string& path, const std::string& low, const std::string& high) {
    AddFile file = File(path);
    file.stats =
        R"({"numRecords":2,"minValues":{"d":)" + low + R"(},"maxValues":{"d":)" + high + R"(},"nullCount":{"d":0}})";
    return file;
  };
  ASSERT_TRUE(Append(log, {with("a", "-1.0", "\"NaN\""), with("b", "\"NaN\"", "\"NaN\""), with("c", "-0.0", "0.0"),
                           with("d", "\"-Infinity\"", "\"Infinity\""), with("e", "1.5", "null")})
                  .ok());
  const auto snapshot = *log->Latest();
  const types::Schema schema = DataType::Struct({{"d", DataType::Double(), true, {}}});
  const std::vector<plan::Attribute> columns{{plan::NewAttributeId(), "d", DataType::Double(), true, {}, {}, false}};
  const auto kept = [&](const std::string& op, double value) {
    const auto expr = plan::MakeCall(
        op, {plan::MakeAttribute(columns[0]), plan::MakeLiteral(types::Value(value), DataType::Double())},
        DataType::Boolean(), true);
    const auto filter = FileFilter::Make(snapshot->metadata(), schema, {expr}, columns);
    EXPECT_TRUE(filter.ok());
    std::string paths;
    for (const char* path : {"a", "b", "c", "d", "e"}) {
      for (const auto& file : snapshot->AllFiles()) {
        paths += file.path == path && filter->MayMatch(file) ? path : "";
      }
    }
    return paths;
  };
  EXPECT_EQ(kept("gt", 0), "abde");
  EXPECT_EQ(kept("ge", 0), "abcde");
  EXPECT_EQ(kept("eq", -0.0), "acd") << "zeros are equal";
  EXPECT_EQ(kept("eq", std::nan("")), "abe");
  EXPECT_EQ(kept("lt", 0), "ad");
  EXPECT_EQ(kept("gt", HUGE_VAL), "abe");
  EXPECT_EQ(kept("ne", 0), "abde");
}

TEST_F(TableTest, ConflictsHaveTheirNames) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("f")}).ok());
  const auto racing = [&](std::vector<Action> winner, auto prepare, std::vector<Action> ours) -> std::string {
    const auto snapshot = *log->Latest();
    Transaction txn(log, snapshot);
    prepare(txn);
    EXPECT_TRUE(Append(Fresh(), std::move(winner)).ok());
    const auto done = txn.Commit(std::move(ours), {.name = "DELETE"});
    return done.ok() ? "" : done.error().condition();
  };
  const auto nothing = [](Transaction&) {};
  const auto whole = [](Transaction& t) { t.ReadWholeTable(); };
  EXPECT_EQ(racing({File("g")}, nothing, {File("h")}), "");
  EXPECT_EQ(racing({File("i")}, whole, {File("j")}), "DELTA_CONCURRENT_APPEND");
  EXPECT_EQ(racing({Gone("f")}, nothing, {Gone("f")}), "DELTA_CONCURRENT_DELETE_DELETE");
  EXPECT_EQ(racing({Gone("g")}, [&](Transaction& t) { t.ReadFiles({File("g")}, {}, {}); }, {}),
            "DELTA_CONCURRENT_DELETE_READ");
  EXPECT_EQ(racing({File("m")}, [&](Transaction& t) { t.ReadFiles({File("h")}, {}, {}); }, {Gone("h")}),
            "DELTA_CONCURRENT_APPEND")
      << "without filters every row was read";
  EXPECT_EQ(racing({SetTransaction{"q", 1, 1}}, [](Transaction& t) { t.ReadApp("q"); }, {SetTransaction{"q", 1, 1}}),
            "DELTA_CONCURRENT_TRANSACTION");
  Metadata changed = SimpleMetadata();
  changed.description = "x";
  EXPECT_EQ(racing({changed}, nothing, {File("k")}), "DELTA_METADATA_CHANGED");
  EXPECT_EQ(racing({Protocol{1, 2, {}, {}}}, nothing, {File("l")}), "DELTA_PROTOCOL_CHANGED");
}

TEST_F(TableTest, ManyWritersLoseNothing) {
  Make();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 8; ++t) {
    const auto log = t % 2 == 0 ? Fresh() : registry_.Open({store_, "/t"});
    threads.emplace_back([this, t, log, &failures] {
      for (int i = 0; i < 25; ++i) {
        if (!Append(log, {File("t" + std::to_string(t) + "-" + std::to_string(i))}).ok()) {
          ++failures;
        }
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
  const auto snapshot = Fresh()->Latest();
  EXPECT_EQ((*snapshot)->version(), 200);
  EXPECT_EQ((*snapshot)->file_count(), 200);
}

TEST_F(TableTest, ACommitSurvivesAPowerCutAndAHalfOneDoesNot) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("f")}).ok());
  {
    Transaction txn(log, *log->Latest());
    ASSERT_TRUE(txn.Stage({File("g")}, {.name = "WRITE"}).ok());
    store_->PowerCut();
  }
  const auto snapshot = Fresh()->Latest();
  ASSERT_TRUE(snapshot.ok()) << snapshot.error().ToString();
  EXPECT_EQ((*snapshot)->version(), 1);
  EXPECT_EQ((*snapshot)->file_count(), 1);
}

TEST_F(TableTest, LostAnswersAreSettledByReadingBack) {
  Make();
  for (const auto fault : {storage::Fault::kFailAfter, storage::Fault::kFailUnknown, storage::Fault::kFailBefore}) {
    int calls = 0;
    auto faulty = storage::MakeFaultyStore(store_, [&](std::string_view operation, std::string_view) {
      return operation == "CommitStaged" && calls++ == 0 ? fault : storage::Fault::kNone;
    });
    LogRegistry registry(LogContext{});
    const auto log = registry.Open({faulty, "/t"});
    const auto before = (*log->Latest())->version();
    const auto version = Append(log, {File("x" + std::to_string(static_cast<int>(fault)))});
    ASSERT_TRUE(version.ok()) << version.error().ToString();
    EXPECT_EQ(*version, before + 1);
    EXPECT_EQ((*Fresh()->Latest())->version(), before + 1);
  }
}

TEST_F(TableTest, InCommitTimesRise) {
  const auto log = Make({}, {{"delta.enableInCommitTimestamps", "true"}});
  std::int64_t last = (*log->Latest())->timestamp_ms();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Append(log, {File("f" + std::to_string(i))}).ok());
    const auto now = (*log->Latest())->timestamp_ms();
    EXPECT_GT(now, last);
    last = now;
  }
  EXPECT_EQ((*Fresh()->Latest())->timestamp_ms(), last);
}

}  // namespace
}  // namespace fleuve::delta
