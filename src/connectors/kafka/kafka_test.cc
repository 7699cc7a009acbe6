#include "connectors/kafka/kafka.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/ids.h"
#include "columnar/ipc.h"
#include "connectors/kafka/kafka_internal.h"
#include "engine/engine.h"

// After rdkafka.h, which it needs.
#include <librdkafka/rdkafka_mock.h>

namespace fleuve::connectors::kafka {
namespace {

using types::DataType;
using types::Value;

engine::EngineOptions Small() {
  engine::EngineOptions options;
  options.threads = 1;
  return options;
}

/// A broker inside this process.
class KafkaTest : public ::testing::Test {
 protected:
  KafkaTest() {
    char text[256];
    owner_ = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof text);
    cluster_ = rd_kafka_mock_cluster_new(owner_, 1);
    servers_ = rd_kafka_mock_cluster_bootstraps(cluster_);
    checkpoint_ = std::filesystem::temp_directory_path() / ("kafka-" + NewUuid());
    engine_ = std::move(*engine::Engine::Open(Small()));
    RegisterKafka(registry_);
  }
  ~KafkaTest() override {
    rd_kafka_mock_cluster_destroy(cluster_);
    rd_kafka_destroy(owner_);
    std::filesystem::remove_all(checkpoint_);
  }

  void Topic(const std::string& name, int partitions) {
    ASSERT_EQ(rd_kafka_mock_topic_create(cluster_, name.c_str(), partitions, 1), RD_KAFKA_RESP_ERR_NO_ERROR);
  }

  /// Rows of (topic, key, value, headers, partition).
  Result<void> Write(const std::vector<Value::List>& rows, plan::Options options = {}) {
    const types::Schema schema =
        DataType::Struct({{"topic", DataType::String(), true, Json()},
                          {"key", DataType::String(), true, Json()},
                          {"value", DataType::Binary(), true, Json()},
                          {"headers",
                           DataType::Array(DataType::Struct({{"key", DataType::String(), true, Json()},
                                                             {"value", DataType::Binary(), true, Json()}})),
                           true, Json()},
                          {"partition", DataType::Int(), true, Json()}});
    auto plan = std::make_shared<plan::LogicalPlan>();
    plan->kind = plan::PlanKind::kRows;
    plan->output = plan::AttributesOf(schema);
    auto data = std::make_shared<plan::RowScan>();
    data->batches.push_back(*columnar::BatchFromRows(schema, rows));
    plan->rows = std::move(data);
    options["kafka.bootstrap.servers"] = servers_;
    return WriteTopic(*engine_, plan, options, {}, nullptr);
  }
  void Produce(const std::string& topic, int partition, int count) {
    std::vector<Value::List> rows;
    for (int i = 0; i < count; ++i) {
      rows.push_back({Value(topic), Value(), Value("v" + std::to_string(i)), Value(), Value(partition)});
    }
    auto written = Write(rows);
    ASSERT_TRUE(written.ok()) << written.error().ToString();
  }

  plan::Options Read(plan::Options options) {
    options["kafka.bootstrap.servers"] = servers_;
    return options;
  }
  /// partition/offset=value of a batch read.
  std::vector<std::string> Table(plan::Options options) {
    auto table = KafkaTable(Read(std::move(options)), {});
    if (!table.ok()) {
      return {table.error().message()};
    }
    auto rows = (*table)->PlanRows();
    if (!rows.ok()) {
      return {rows.error().condition() + ": " + rows.error().message()};
    }
    return Texts((*rows)->batches);
  }
  static std::vector<std::string> Texts(const std::vector<columnar::RecordBatch>& batches) {
    std::vector<std::string> out;
    for (const auto& batch : batches) {
      const auto rows = *columnar::RowsFromBatch(batch);
      for (const auto& row : rows) {
        out.push_back(std::to_string(row[3].integer()) + "/" + std::to_string(row[4].integer()) + "=" +
                      (row[1].is_null() ? "NULL" : row[1].text()));
      }
    }
    return out;
  }

  std::unique_ptr<Source> Stream(plan::Options options) {
    StreamRequest request;
    request.format = "kafka";
    request.options = Read(std::move(options));
    auto relation = registry_.source("kafka")->Resolve(request, {});
    EXPECT_TRUE(relation.ok()) << relation.error().ToString();
    SourceContext context;
    context.checkpoint = *storage::Resolve(checkpoint_.string());
    context.metadata_path = context.checkpoint.path + "/sources/0";
    return std::move(*registry_.source("kafka")->MakeSource(*relation, context));
  }
  /// The end of the next batch, then its records.
  static std::vector<std::string> Batch(Source& source, std::optional<Offset>* at) {
    auto end = source.LatestOffset(*at, Admission::kRateLimited);
    if (!end.ok()) {
      return {end.error().message()};
    }
    auto input = source.Read(*at, **end);
    if (!input.ok()) {
      return {input.error().message()};
    }
    std::vector<std::string> out = {**end};
    const auto rows = Texts(input->rows->batches);
    out.insert(out.end(), rows.begin(), rows.end());
    *at = *end;
    return out;
  }

  rd_kafka_t* owner_ = nullptr;
  rd_kafka_mock_cluster_t* cluster_ = nullptr;
  std::string servers_;
  std::filesystem::path checkpoint_;
  std::unique_ptr<engine::Engine> engine_;
  ConnectorRegistry registry_;
};

using Lines = std::vector<std::string>;

TEST(KafkaOffsets, JsonAsSparkWritesIt) {
  const PartitionOffsets offsets = {{{"a", 0}, 5}, {{"a", 1}, 7}, {{"b", 0}, 1}};
  EXPECT_EQ(OffsetsToJson(offsets), R"({"a":{"0":5,"1":7},"b":{"0":1}})");
  EXPECT_EQ(*OffsetsFromJson(OffsetsToJson(offsets)), offsets);
  EXPECT_EQ(OffsetsToJson({}), "{}");
  for (const char* text : {"first", "[]", R"({"a":1})", R"({"a":{"x":1}})", R"({"a":{"0":"1"}})"}) {
    EXPECT_EQ(OffsetsFromJson(text).error().message(),
              std::string(R"(Expected e.g. {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}, got )") + text);
  }
}

TEST(KafkaSettings, JavaNamesAreMappedAndUnknownOnesRefused) {
  const auto condition = [](const std::map<std::string, std::string>& settings) {
    auto conf = MakeConf(settings, false);
    return conf.ok() ? std::string() : conf.error().condition() + conf.error().message();
  };
  EXPECT_EQ(condition({{"bootstrap.servers", "x:1"},
                       {"fetch.max.wait.ms", "50"},
                       {"max.partition.fetch.bytes", "100000"},
                       {"security.protocol", "SASL_PLAINTEXT"},
                       {"sasl.mechanism", "PLAIN"},
                       {"sasl.jaas.config",
                        "org.apache.kafka.common.security.plain.PlainLoginModule required "
                        "username=\"u\" password=\"p\\\"q\";"},
                       {"ssl.endpoint.identification.algorithm", ""}}),
            "");
  EXPECT_NE(condition({{"metric.reporters", "x"}}).find("kafka.metric.reporters"), std::string::npos);
  EXPECT_NE(condition({{"ssl.truststore.location", "/x.jks"}}).find("JKS"), std::string::npos);
  EXPECT_NE(condition({{"fetch.min.bytes", "many"}}), "");
}

TEST(KafkaSpill, LargeReadsLeaveTheMemory) {
  Spill spill(100000);
  const std::vector<std::uint8_t> bytes(80000, 7);
  EXPECT_EQ(spill.Store(bytes), nullptr);
  const auto mapped = spill.Store(bytes);
  ASSERT_NE(mapped, nullptr);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), mapped.get()));
  EXPECT_EQ(spill.Store({1, 2, 3}), nullptr);
}

TEST_F(KafkaTest, RangesOfABatchReadAreChecked) {
  Topic("t", 1);
  Produce("t", 0, 3);
  const auto refusal = [&](plan::Options options) {
    options["subscribe"] = "t";
    return Table(std::move(options)).front();
  };
  const auto begins = [](const std::string& text, const std::string& start) { return text.starts_with(start); };
  EXPECT_TRUE(begins(refusal({{"startingOffsets", R"({"t":{"0":3}})"}, {"endingOffsets", R"({"t":{"0":1}})"}}),
                     "UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET: "));
  EXPECT_TRUE(
      begins(refusal({{"startingOffsets", R"({"t":{"0":9}})"}}), "RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET: "));
  const std::string beyond = R"({"t":{"0":99}})";
  EXPECT_TRUE(begins(refusal({{"endingOffsets", beyond}}), "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE: "));
  EXPECT_EQ(Table({{"subscribe", "t"},
                   {"endingOffsets", beyond},
                   {"failOnDataLoss", "false"},
                   {"kafka.fetch.max.bytes", "45000"}}),
            (Lines{"0/0=v0", "0/1=v1", "0/2=v2"}));
  EXPECT_EQ(refusal({{"startingTimestamp", "-5"}}),
            ": No offset matched from request of topic-partition t-0 and timestamp -5.");
  EXPECT_EQ(refusal({{"startingTimestamp", "soon"}}), "Expected a single long value, got soon");
}

TEST_F(KafkaTest, AssignedPartitionsThatAreNotThereAreLeftOut) {
  Topic("t", 1);
  Produce("t", 0, 1);
  EXPECT_EQ(Table({{"assign", R"({"t":[0,7]})"}}), Lines{"0/0=v0"});
}

TEST_F(KafkaTest, FewRecordsWithoutAKeyStayTogether) {
  for (int i = 0; i < 10; ++i) {
    const std::string topic = "t" + std::to_string(i);
    Topic(topic, 4);
    const std::vector<Value::List> rows(10, {Value(topic), Value(), Value("v"), Value(), Value()});
    ASSERT_TRUE(Write(rows).ok());
    const auto read = Table({{"subscribe", topic}});
    ASSERT_EQ(read.size(), 10U);
    EXPECT_TRUE(read.back().ends_with("/9=v")) << read.back();
  }
}

TEST_F(KafkaTest, ManyRecordsWithoutAKeyGoEverywhere) {
  Topic("t", 2);
  ASSERT_TRUE(
      Write(std::vector<Value::List>(1000, {Value("t"), Value(), Value(std::string(1000, 'v')), Value(), Value()}))
          .ok());
  std::map<char, int> counts;
  for (const std::string& row : Table({{"subscribe", "t"}})) {
    ++counts[row.front()];
  }
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_GT(std::min(counts['0'], counts['1']), 100);
}

TEST_F(KafkaTest, WhatIsWrittenIsRead) {
  Topic("t", 2);
  const Value headers(Value::List{Value(Value::List{Value("h"), Value("x")}), Value(Value::List{Value("h"), Value()})});
  ASSERT_TRUE(Write({{Value("t"), Value("k"), Value("v"), headers, Value(1)},
                     {Value("t"), Value(), Value(), Value(), Value(1)},
                     {Value("t"), Value(""), Value(""), Value(), Value(0)}})
                  .ok());
  auto table = KafkaTable(Read({{"subscribe", "t"}, {"includeHeaders", "true"}}), {});
  ASSERT_TRUE(table.ok());
  auto rows = (*table)->PlanRows();
  ASSERT_TRUE(rows.ok()) << rows.error().ToString();
  std::vector<Value::List> all;
  for (const auto& batch : (*rows)->batches) {
    auto some = *columnar::RowsFromBatch(batch);
    all.insert(all.end(), some.begin(), some.end());
  }
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0][0], Value(""));
  EXPECT_EQ(all[0][1], Value(""));
  EXPECT_TRUE(all[0][7].is_null());
  EXPECT_EQ(all[1][0], Value("k"));
  EXPECT_EQ(all[1][2], Value("t"));
  EXPECT_EQ(all[1][7], headers);
  EXPECT_TRUE(all[2][0].is_null());
  EXPECT_TRUE(all[2][1].is_null());
  // The option stands above the column.
  ASSERT_TRUE(Write({{Value("elsewhere"), Value(), Value("w"), Value(), Value(0)}}, {{"topic", "t"}}).ok());
  EXPECT_EQ(Table({{"assign", R"({"t":[0]})"}}), (Lines{"0/0=", "0/1=w"}));
  EXPECT_EQ(Write({{Value(), Value(), Value("w"), Value(), Value(0)}}).error().condition(), "KAFKA_NULL_TOPIC_IN_DATA");
}

TEST_F(KafkaTest, BatchReadsBetweenOffsets) {
  Topic("t", 2);
  Produce("t", 0, 5);
  Produce("t", 1, 3);
  EXPECT_EQ(Table({{"subscribe", "t"}}).size(), 8U);
  EXPECT_EQ(Table({{"subscribe", "t"}, {"startingOffsets", R"({"t":{"0":3,"1":2}})"}}),
            (Lines{"0/3=v3", "0/4=v4", "1/2=v2"}));
  EXPECT_EQ(Table({{"subscribePattern", "t+"},
                   {"startingOffsets", R"({"t":{"0":-2,"1":1}})"},
                   {"endingOffsets", R"({"t":{"0":2,"1":-1}})"}}),
            (Lines{"0/0=v0", "0/1=v1", "1/1=v1", "1/2=v2"}));
  EXPECT_TRUE(Table({{"subscribe", "t"}, {"startingOffsets", R"({"t":{"0":0}})"}})[0].starts_with(
      "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED"));
  EXPECT_EQ(Table({{"subscribe", "t"}, {"startingOffsets", "latest"}}),
            (Lines{"starting offset can't be latest for batch queries on Kafka"}));
}

TEST_F(KafkaTest, StreamsShareTheLimitAndKeepTheirStart) {
  Topic("t", 2);
  Produce("t", 0, 8);
  Produce("t", 1, 2);
  auto source = Stream({{"subscribe", "t"}, {"startingOffsets", "earliest"}, {"maxOffsetsPerTrigger", "5"}});
  auto at = *source->InitialOffset();
  EXPECT_EQ(*at, R"({"t":{"0":0,"1":0}})");
  const auto file = storage::LocalStore()->Get(checkpoint_.string() + "/sources/0/0");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file, std::string(1, '\0') + "v1\n{\"t\":{\"0\":0,\"1\":0}}");
  EXPECT_EQ(Batch(*source, &at), (Lines{R"({"t":{"0":4,"1":1}})", "0/0=v0", "0/1=v1", "0/2=v2", "0/3=v3", "1/0=v0"}));
  EXPECT_EQ(source->Metrics(at).at("maxOffsetsBehindLatest"), "4");
  EXPECT_EQ(source->Metrics(at).at("avgOffsetsBehindLatest"), "2.5");
  // A restart reads the same start, whatever the option says now.
  auto again = Stream({{"subscribe", "t"}, {"startingOffsets", "latest"}});
  EXPECT_EQ(**again->InitialOffset(), R"({"t":{"0":0,"1":0}})");
  EXPECT_EQ(Batch(*again, &at)[0], R"({"t":{"0":8,"1":2}})");
  Produce("t", 1, 1);
  EXPECT_EQ(Batch(*again, &at), (Lines{R"({"t":{"0":8,"1":3}})", "1/2=v0"}));
}

TEST_F(KafkaTest, MinOffsetsWaitButNotTheFirstTime) {
  Topic("t", 1);
  Produce("t", 0, 3);
  auto source = Stream({{"subscribe", "t"}, {"startingOffsets", "earliest"}, {"minOffsetsPerTrigger", "10"}});
  auto at = *source->InitialOffset();
  EXPECT_EQ(Batch(*source, &at)[0], R"({"t":{"0":3}})");
  Produce("t", 0, 3);
  EXPECT_EQ(Batch(*source, &at), (Lines{R"({"t":{"0":3}})"}));
  Produce("t", 0, 7);
  EXPECT_EQ(Batch(*source, &at)[0], R"({"t":{"0":13}})");
}

TEST_F(KafkaTest, LostOffsetsAreReported) {
  Topic("t", 1);
  Produce("t", 0, 3);
  auto source = Stream({{"subscribe", "t"}});
  ASSERT_TRUE(source->InitialOffset().ok());
  std::optional<Offset> at = R"({"t":{"0":50}})";
  EXPECT_NE(Batch(*source, &at)[0].find("Partition t-0 offset was changed from 50 to 3."), std::string::npos);
  auto lenient = Stream({{"subscribe", "t"}, {"failOnDataLoss", "false"}});
  ASSERT_TRUE(lenient->InitialOffset().ok());
  EXPECT_EQ(Batch(*lenient, &at), (Lines{R"({"t":{"0":3}})"}));
}

TEST_F(KafkaTest, AListenerHearsOfRecords) {
  Topic("t", 1);
  Produce("t", 0, 1);
  auto source = Stream({{"subscribe", "t"}});
  auto at = *source->InitialOffset();
  std::atomic<int> heard = 0;
  ASSERT_TRUE(source->SetDataListener([&heard] { ++heard; }));
  auto end = source->LatestOffset(at, Admission::kRateLimited);
  ASSERT_TRUE(end.ok());
  EXPECT_EQ(**end, *at);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  ASSERT_TRUE(source->LatestOffset(at, Admission::kRateLimited).ok());
  heard = 0;
  Produce("t", 0, 1);
  for (int i = 0; i < 100 && heard == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_GT(heard, 0);
  EXPECT_EQ(Batch(*source, &at), (Lines{R"({"t":{"0":2}})", "0/1=v0"}));
}

TEST_F(KafkaTest, ATransactionHoldsTheRowsAndTheNumberOfTheBatch) {
  Topic("t", 1);
  SinkSpec spec;
  spec.format = "kafka";
  spec.options = Read({{"topic", "t"}, {"kafka.transactional.id", "x"}});
  SinkContext context;
  context.query_id = "q";
  ASSERT_TRUE(registry_.sink("kafka")->CheckSpec(spec, context).ok());
  const auto batch = [&](std::int64_t id, const char* value, bool recovered) {
    const types::Schema schema = DataType::Struct({{"value", DataType::String(), true, Json()}});
    auto plan = std::make_shared<plan::LogicalPlan>();
    plan->kind = plan::PlanKind::kRows;
    plan->output = plan::AttributesOf(schema);
    auto data = std::make_shared<plan::RowScan>();
    data->batches.push_back(*columnar::BatchFromRows(schema, {{Value(value)}}));
    plan->rows = std::move(data);
    SinkBatch made;
    made.batch_id = BatchId(id);
    made.plan = std::move(plan);
    made.engine = engine_.get();
    made.is_recovered = recovered;
    return made;
  };
  {
    auto sink = std::move(*registry_.sink("kafka")->MakeSink(spec, context));
    EXPECT_FALSE(sink->run_is_effect());
    auto newest = sink->Newest();
    ASSERT_TRUE(newest.ok()) << newest.error().ToString();
    EXPECT_EQ(newest->newest_batch, -1);
    auto staged = sink->Run(batch(0, "a", false));
    ASSERT_TRUE(staged.ok()) << staged.error().ToString();
    auto committed = (*staged)->Commit();
    ASSERT_TRUE(committed.ok()) << committed.error().ToString();
  }
  // The mock broker does not keep offsets that come with a transaction: that a batch is not written again is tested
  // against a real one.
  EXPECT_EQ(Table({{"subscribe", "t"}})[0], "0/0=a");
  spec.options.erase("topic");
  EXPECT_FALSE(registry_.sink("kafka")->CheckSpec(spec, context).ok());
}

}  // namespace
}  // namespace fleuve::connectors::kafka
