#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "storage/memory_store.h"
#include "storage/object_store.h"

namespace fleuve::storage {
namespace {

std::string TemporaryFolder() {
  std::string name = ::testing::TempDir() + "storage-XXXXXX";
  return ::mkdtemp(name.data());
}

/// Both stores keep the same promises.
class StoreTest : public ::testing::TestWithParam<bool> {
 protected:
  StoreTest() : store_(GetParam() ? LocalStore() : MemoryStore::Make()), root_(GetParam() ? TemporaryFolder() : "/r") {}
  ~StoreTest() override { store_->DeleteAll(root_).IgnoreBecause("a temporary folder"); }
  std::shared_ptr<ObjectStore> store_;
  std::string root_;
};

TEST_P(StoreTest, SecondPutIfAbsentIsRefused) {
  const std::string path = root_ + "/a/b";
  ASSERT_TRUE(store_->Put(path, "one", PutMode::kIfAbsent).ok());
  const auto second = store_->Put(path, "two", PutMode::kIfAbsent);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind(), ErrorKind::kAlreadyExists);
  EXPECT_EQ(*store_->Get(path), "one");
  ASSERT_TRUE(store_->Put(path, "three", PutMode::kOverwrite).ok());
  EXPECT_EQ(*store_->GetRange(path, 1, 2), "hr");
}

TEST_P(StoreTest, OneOfManyRacersWins) {
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto staged = store_->Stage(root_ + "/x", std::to_string(i), std::to_string(i));
      if (staged.ok() && store_->CommitStaged(*staged, root_ + "/x").ok()) {
        ++winners;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(winners.load(), 1);
}

TEST_P(StoreTest, ListsChildrenByName) {
  for (const char* name : {"/f/2", "/f/10", "/f/1", "/f/d/x"}) {
    ASSERT_TRUE(store_->Put(root_ + name, "", PutMode::kOverwrite).ok());
  }
  const auto all = store_->List(root_ + "/f");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 4U);
  EXPECT_EQ((*all)[0].path, root_ + "/f/1");
  EXPECT_TRUE((*all)[3].is_directory);
  EXPECT_EQ(store_->List(root_ + "/f", "10")->size(), 2U);
  EXPECT_EQ(store_->ListRecursive(root_)->size(), 4U);
  EXPECT_EQ(store_->List(root_ + "/none").error().kind(), ErrorKind::kNotFound);
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreTest, ::testing::Values(true, false),
                         [](const auto& tested) { return tested.param ? "Local" : "Memory"; });

TEST(MemoryStoreTest, PowerCutDropsWhatWasNotSynced) {
  const auto store = MemoryStore::Make();
  ASSERT_TRUE(store->Put("/d/synced", "s", PutMode::kOverwrite).ok());
  ASSERT_TRUE(store->Put("/d/name_only", "n", PutMode::kOverwrite).ok());
  const std::vector<std::string> files = {"/d/synced"};
  const std::vector<std::string> folders = {"/d"};
  ASSERT_TRUE(store->Sync(files, folders).ok());
  ASSERT_TRUE(store->Put("/d/late", "l", PutMode::kOverwrite).ok());
  store->PowerCut();
  EXPECT_EQ(*store->Get("/d/synced"), "s");
  EXPECT_EQ(*store->Get("/d/name_only"), "");
  EXPECT_FALSE(store->Get("/d/late").ok());
}

TEST(FaultyStoreTest, LostAnswerIsOutcomeUnknown) {
  const auto inner = MemoryStore::Make();
  const auto store = MakeFaultyStore(inner, [](std::string_view operation, std::string_view) {
    return operation == "Put" ? Fault::kFailAfter : Fault::kNone;
  });
  EXPECT_EQ(store->Put("/a", "x", PutMode::kIfAbsent).error().kind(), ErrorKind::kOutcomeUnknown);
  EXPECT_EQ(*store->Get("/a"), "x");
}

TEST(LocationTest, SchemesAreResolvedOrRefusedByName) {
  EXPECT_EQ(Resolve("file:///a/b%20c/../d/")->path, "/a/d");
  EXPECT_EQ(Resolve("/x//y/.")->path, "/x/y");
  EXPECT_EQ(Resolve("s3a://bucket/x").error().kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(Resolve("foo:/x").error().kind(), ErrorKind::kInvalidArgument);
  EXPECT_EQ(ToFileUri("/a b/c=1"), "file:/a%20b/c=1");
}

}  // namespace
}  // namespace fleuve::storage
