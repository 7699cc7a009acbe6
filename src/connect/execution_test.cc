#include <gtest/gtest.h>

#include <thread>

#include "columnar/ipc.h"
#include "connect/execution_internal.h"
#include "connect/message_input_internal.h"
#include "spark/connect/base.pb.h"

namespace fleuve::connect {
namespace {

namespace sc = spark::connect;

class Reader final : public StreamReader {
 public:
  void Wake() override {}
};

std::shared_ptr<Execution> Make(ExecutionOptions options) {
  auto services = std::make_shared<session::Services>();
  services->scratch = testing::TempDir();
  auto session =
      std::make_shared<session::Session>(session::SessionKey{"u", "00112233-4455-6677-8899-aabbccddeeff"}, services);
  return std::make_shared<Execution>(session, "op", std::vector<std::string>(), options, 1);
}

sc::ExecutePlanResponse Decode(const grpc::ByteBuffer& bytes) {
  sc::ExecutePlanResponse message;
  EXPECT_TRUE(ParseMessage(bytes, &message).ok());
  return message;
}

columnar::RecordBatch Numbers(std::int64_t count) {
  const auto schema = types::DataType::Struct({{"id", types::DataType::Long(), false, {}}});
  std::vector<types::Value::List> rows;
  for (std::int64_t i = 0; i < count; ++i) {
    rows.push_back({types::Value(i)});
  }
  return *columnar::BatchFromRows(schema, rows);
}

TEST(ExecutionTest, ResponsesCanBeReadAgainUntilReleased) {
  ExecutionOptions options;
  options.reattachable = true;
  options.buffer_bytes = 1 << 20;
  options.rows_per_batch = 2;
  const auto execution = Make(options);
  ASSERT_TRUE(execution->PutBatch(Numbers(3)).ok());
  execution->End({});
  auto reader = std::make_shared<Reader>();
  ASSERT_TRUE(execution->Attach(reader, "").ok());
  std::vector<std::string> ids;
  std::int64_t rows = 0;
  while (true) {
    NextStep step = execution->Next(reader.get());
    if (step.kind != NextStep::Kind::kSend) {
      EXPECT_EQ(step.kind, NextStep::Kind::kEnd);
      break;
    }
    const auto message = Decode(step.bytes);
    if (message.has_arrow_batch()) {
      EXPECT_EQ(message.arrow_batch().start_offset(), rows);
      rows += message.arrow_batch().row_count();
    }
    ids.push_back(message.response_id());
    execution->Sent(reader.get());
  }
  EXPECT_EQ(rows, 3);
  ASSERT_EQ(ids.size(), 3u);

  auto second = std::make_shared<Reader>();
  ASSERT_TRUE(execution->Attach(second, ids[0]).ok());
  EXPECT_EQ(execution->Next(reader.get()).error->condition(), "INVALID_CURSOR.DISCONNECTED");
  EXPECT_EQ(Decode(execution->Next(second.get()).bytes).response_id(), ids[1]);

  ASSERT_TRUE(execution->ReleaseUntil(ids[1]).ok());
  EXPECT_EQ(execution->Attach(second, "").error().condition(), "INVALID_CURSOR.POSITION_NOT_AVAILABLE");
  EXPECT_EQ(execution->Attach(second, ids[0]).error().condition(), "INVALID_CURSOR.POSITION_NOT_AVAILABLE");
  EXPECT_EQ(execution->Attach(second, "nope").error().condition(), "INVALID_CURSOR.POSITION_NOT_FOUND");
  ASSERT_TRUE(execution->Attach(second, ids[1]).ok());
  EXPECT_EQ(Decode(execution->Next(second.get()).bytes).response_id(), ids[2]);
}

TEST(ExecutionTest, WhatAClientHasSeenNothingOfIsForgottenEarlier) {
  ExecutionOptions options;
  options.reattachable = true;
  options.buffer_bytes = 1 << 20;
  const auto execution = Make(options);
  auto reader = std::make_shared<Reader>();
  std::int64_t left = 1 << 30;
  ASSERT_TRUE(execution->Attach(reader, "").ok());
  execution->operation()->repeatable = true;
  ASSERT_TRUE(execution->PutSchema(types::DataType::Struct({{"id", types::DataType::Long(), false, {}}})).ok());
  EXPECT_EQ(execution->Next(reader.get()).kind, NextStep::Kind::kWait) << "a schema travels with the first rows";
  EXPECT_EQ(execution->AbandonIfDetached(0, 0, &left), Execution::Fate::kKept) << "it has a reader";
  execution->Detach(reader.get());
  EXPECT_EQ(execution->AbandonIfDetached(1000000, 1000, &left), Execution::Fate::kKept);
  EXPECT_LE(left, 1000);
  EXPECT_EQ(execution->AbandonIfDetached(1000000, 0, &left), Execution::Fate::kForgotten);
  EXPECT_TRUE(execution->operation()->token->cancelled());
  EXPECT_FALSE(execution->PutBatch(Numbers(1)).ok());
}

TEST(ExecutionTest, WhatAClientHasSeenOrWhatHasEffectsIsKeptLonger) {
  ExecutionOptions options;
  options.reattachable = true;
  options.buffer_bytes = 1 << 20;
  std::int64_t left = 1 << 30;
  const auto command = Make(options);
  EXPECT_EQ(command->AbandonIfDetached(1000000, 0, &left), Execution::Fate::kKept);
  EXPECT_EQ(command->AbandonIfDetached(0, 1000000, &left), Execution::Fate::kAbandoned);

  const auto seen = Make(options);
  seen->operation()->repeatable = true;
  auto reader = std::make_shared<Reader>();
  ASSERT_TRUE(seen->Attach(reader, "").ok());
  ASSERT_TRUE(seen->PutBatch(Numbers(1)).ok());
  EXPECT_EQ(seen->Next(reader.get()).kind, NextStep::Kind::kSend);
  seen->Detach(reader.get());
  EXPECT_EQ(seen->AbandonIfDetached(1000000, 0, &left), Execution::Fate::kKept);
  EXPECT_FALSE(seen->operation()->token->cancelled());
}

TEST(ExecutionTest, TheProducerWaitsForTheReaderAndEndsWithIt) {
  ExecutionOptions options;
  options.reattachable = true;
  options.buffer_bytes = 10000;
  options.rows_per_batch = 1000;
  const auto execution = Make(options);
  auto reader = std::make_shared<Reader>();
  ASSERT_TRUE(execution->Attach(reader, "").ok());
  std::atomic<int> batches = 0;
  std::thread producer([&] {
    while (execution->PutBatch(Numbers(1000)).ok()) {
      ++batches;
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LE(batches.load(), 3);
  execution->Cancelled();
  execution->Abandon();
  producer.join();
}

TEST(ExecutionTest, OneRowLargerThanAChunkTravelsInChunks) {
  ExecutionOptions options;
  options.reattachable = false;
  options.allow_chunking = true;
  options.chunk_bytes = 1024;
  options.buffer_bytes = 1 << 30;
  const auto execution = Make(options);
  const auto schema = types::DataType::Struct({{"s", types::DataType::String(), true, {}}});
  ASSERT_TRUE(execution->PutBatch(*columnar::BatchFromRows(schema, {{types::Value(std::string(5000, 'x'))}})).ok());
  execution->End({});
  auto reader = std::make_shared<Reader>();
  ASSERT_TRUE(execution->Attach(reader, "").ok());
  std::string joined;
  std::int64_t chunk = 0;
  for (NextStep step = execution->Next(reader.get()); step.kind == NextStep::Kind::kSend;
       step = execution->Next(reader.get())) {
    const auto message = Decode(step.bytes);
    EXPECT_EQ(message.arrow_batch().chunk_index(), chunk++);
    EXPECT_EQ(message.arrow_batch().row_count(), 1);
    joined += message.arrow_batch().data();
    execution->Sent(reader.get());
  }
  EXPECT_GT(chunk, 3);
  EXPECT_EQ(columnar::DecodeIpcStream(joined)->batches.at(0).row_count(), 1);
}

}  // namespace
}  // namespace fleuve::connect
