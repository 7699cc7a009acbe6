#include <gtest/gtest.h>

#include <future>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/resource_lease.h"
#include "base/thread_pool.h"

namespace fleuve {
namespace {

TEST(JsonTest, PrintsWhatItReadInTheSameOrder) {
  const std::string text = R"({"b":1,"a":[true,null,"x\"y"],"c":{"d":1.5}})";
  const auto json = Json::Parse(text);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->Dump(), text);
  EXPECT_EQ((*json)["c"]["d"].AsDouble(), 1.5);
  EXPECT_FALSE(Json::Parse("{\"a\":").ok());
}

TEST(JsonTest, DoublesPrintAsJavaPrintsThem) {
  EXPECT_EQ(JavaDoubleToString(1e10), "1.0E10");
  EXPECT_EQ(JavaDoubleToString(1e-5), "1.0E-5");
  EXPECT_EQ(JavaDoubleToString(123456.789), "123456.789");
  EXPECT_EQ(JavaDoubleToString(0.001), "0.001");
  EXPECT_EQ(JavaDoubleToString(-0.0), "-0.0");
  EXPECT_EQ(JavaDoubleToString(9999999.0), "9999999.0");
  EXPECT_EQ(JavaFloatToString(1.1F), "1.1");
}

TEST(BytesTest, EncodingsComeBack) {
  const std::string bytes("\x00\xff ab/%", 7);
  EXPECT_EQ(*Base64Decode(Base64Encode(bytes)), bytes);
  EXPECT_EQ(PercentDecode(PercentEncode(bytes)), bytes);
  EXPECT_EQ(Join(Split("a,b,,c", ','), ","), "a,b,,c");
  EXPECT_FALSE(Base64Decode("a*b").ok());
}

TEST(ErrorTest, SubclassTakesStateOfItsMainCondition) {
  const Error error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "no such column");
  EXPECT_EQ(error.sql_state(), "42703");
  EXPECT_EQ(error.ToString(), "[UNRESOLVED_COLUMN.WITH_SUGGESTION] no such column SQLSTATE: 42703");
}

TEST(ResourceLeaseTest, SecondLeaseWaitsForTheFirst) {
  ResourceBudget budget(1, 100);
  auto first = budget.Acquire(4, nullptr);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ((*first)->threads(), 1);
  const auto token = std::make_shared<CancellationToken>();
  token->Cancel();
  EXPECT_FALSE(budget.Acquire(1, token).ok());
  first->reset();
  EXPECT_TRUE(budget.Acquire(1, nullptr).ok());
}

TEST(ResourceLeaseTest, OneMoreThreadIsLentOnlyWhereOneIsFree) {
  ResourceBudget budget(2, 100);
  auto first = budget.Acquire(1, nullptr);
  ASSERT_TRUE(first.ok());
  auto second = budget.TryAcquire();
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->threads(), 1);
  EXPECT_EQ(budget.TryAcquire(), nullptr);
  second.reset();
  EXPECT_NE(budget.TryAcquire(), nullptr);
}

TEST(ThreadPoolTest, ATaskMayDropThePool) {
  std::promise<void> dropped;
  std::promise<void> later;
  auto pool = std::make_shared<ThreadPool>(1);
  std::promise<void> begin;
  pool->Submit([pool, &begin, &dropped]() mutable {
    begin.get_future().wait();
    pool.reset();
    dropped.set_value();
  });
  pool->Submit([&later] { later.set_value(); });
  pool.reset();
  begin.set_value();
  dropped.get_future().wait();
  later.get_future().wait();
}

TEST(ThreadPoolTest, RunAllWaitsForEveryTask) {
  ThreadPool pool(2);
  std::atomic<int> sum{0};
  std::vector<std::function<void()>> tasks;
  for (int i = 0; i < 100; ++i) {
    tasks.emplace_back([&sum] { ++sum; });
  }
  pool.RunAll(std::move(tasks));
  EXPECT_EQ(sum.load(), 100);
}

TEST(UuidTest, HasVersionFour) {
  const std::string uuid = NewUuid();
  EXPECT_EQ(uuid.size(), 36U);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_NE(uuid, NewUuid());
}

}  // namespace
}  // namespace fleuve
