// Tables whose segments come and go, and what becomes of them where the file fails.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <map>
#include <random>

#include "state/row_table_internal.h"
#include "state/store.h"
#include "storage/memory_store.h"

namespace fleuve::state {
namespace {

using Rows = std::map<std::string, std::string>;

std::string Folder() { return testing::TempDir() + "fleuve-pager-test"; }

std::string Timed(std::int64_t micros, const std::string& rest) {
  std::string key;
  AppendTime(key, micros);
  return key + rest;
}

TEST(PagerTest, TablesThatShareALimitHoldWhatMapsHold) {
  constexpr std::int64_t kLimit = 96 << 10;
  std::mt19937_64 random(11);
  auto pager = *Pager::Make(Folder(), kLimit);
  RowTable by_key(Timing::kKey, pager.get());
  RowTable plain(Timing::kNone, pager.get());
  Rows timed_rows;
  Rows plain_rows;
  for (int step = 0; step < 60000; ++step) {
    const std::string name = std::to_string(random() % 3000);
    const std::string key = Timed(static_cast<std::int64_t>(random() % 8) * 700000, name);
    // A few values are larger than the limit.
    const std::size_t size = random() % 2000 == 0 ? random() % (2 * kLimit) : random() % 60;
    const std::string value(size, static_cast<char>('a' + step % 26));
    switch (random() % 5) {
      case 0:
        ASSERT_EQ(by_key.Remove(key), timed_rows.erase(key) == 1);
        ASSERT_EQ(plain.Remove(name), plain_rows.erase(name) == 1);
        break;
      case 1:
        ASSERT_EQ(by_key.Add(key, value), timed_rows.emplace(key, value).second);
        ASSERT_EQ(plain.Add(name, value), plain_rows.emplace(name, value).second);
        break;
      case 2: {
        const auto row = plain_rows.find(name);
        const std::string_view found = plain.Find(name);
        ASSERT_EQ(found.data() != nullptr, row != plain_rows.end());
        if (row != plain_rows.end()) {
          ASSERT_EQ(found, row->second);
        }
        plain.Settle();
        break;
      }
      default:
        ASSERT_EQ(by_key.Put(key, value), timed_rows.insert_or_assign(key, value).second);
        ASSERT_EQ(plain.Put(name, value), plain_rows.insert_or_assign(name, value).second);
    }
    if (step % 5000 == 4999) {
      Rows scanned;
      const auto add = [&scanned](std::string_view one, std::string_view its_value) {
        scanned[std::string(one)] = std::string(its_value);
        return true;
      };
      plain.Scan(add);
      ASSERT_EQ(scanned, plain_rows);
      scanned.clear();
      by_key.Range(700000, 2800000, add);
      Rows expected = timed_rows;
      std::erase_if(expected,
                    [](const auto& row) { return TimeOf(row.first) < 700000 || TimeOf(row.first) > 2800000; });
      ASSERT_EQ(scanned, expected);
      ASSERT_FALSE(pager->error());
      const std::int64_t beside =
          by_key.memory_bytes() - by_key.resident_bytes() + plain.memory_bytes() - plain.resident_bytes();
      ASSERT_LE(by_key.resident_bytes() + plain.resident_bytes(), std::max(kLimit - beside, kLimit / 8));
    }
  }
}

TEST(PagerTest, WhatIsLargerThanTheLimitDoesNotMakeEveryCallWrite) {
  // The times of so many rows alone take more than the limit: then segments keep a part of it, and stay there while
  // they are used.
  auto pager = *Pager::Make(Folder(), 256 << 10);
  RowTable table(Timing::kKey, pager.get());
  for (int i = 0; i < 60000; ++i) {
    table.Put(Timed(i, ""), "value");
  }
  ASSERT_GT(table.memory_bytes() - table.resident_bytes(), 256 << 10);
  table.Put(Timed(1, ""), "other");
  EXPECT_GT(table.resident_bytes(), 0);
}

class SpillingStore : public testing::Test {
 protected:
  void SetUp() override {
    spec_.folder = {storage::MemoryStore::Make(), "/cp/state/0"};
    spec_.operator_name = "dedupe";
    spec_.spaces = {{"default", false, "struct<string>", "struct<>", ""}};
    spec_.budget = std::make_shared<MemoryBudget>();
    spec_.budget->limit_bytes = 256 << 10;
    spec_.spill_folder = Folder();
    store_ = *Store::Open(spec_, Version{});
    PutSome();
    Finish("one");
    before_ = All();
  }
  void PutSome() {
    for (int i = 0; i < 20000; ++i) {
      store_->Put(0, std::to_string(next_++), "some value of a row");
    }
  }
  void Finish(const std::string& attempt) {
    ASSERT_TRUE(store_->Stage(attempt, 0).ok());
    ASSERT_TRUE(store_->Apply().ok());
  }
  Rows All() const {
    Rows rows;
    store_->Scan(0, [&rows](std::string_view key, std::string_view value) {
      rows[std::string(key)] = std::string(value);
      return true;
    });
    return rows;
  }
  /// Nothing can be committed; given up, the store is as it was and goes on.
  void ExpectToGoBack(ErrorKind kind) {
    auto checked = store_->CheckMemory();
    ASSERT_FALSE(checked.ok());
    EXPECT_EQ(checked.error().condition(), "FLEUVE_IO_ERROR");
    EXPECT_EQ(checked.error().kind(), kind);
    auto staged = store_->Stage("two", 0);
    ASSERT_FALSE(staged.ok());
    EXPECT_EQ(staged.error().condition(), "FLEUVE_IO_ERROR");
    ASSERT_TRUE(store_->Discard().ok());
    EXPECT_EQ(All(), before_);
    PutSome();
    Finish("three");
  }

  StoreSpec spec_;
  std::unique_ptr<Store> store_;
  Rows before_;
  int next_ = 0;
};

TEST_F(SpillingStore, ADiskThatIsFullEndsTheBatchAndNoMore) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{64 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  PutSome();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  ExpectToGoBack(ErrorKind::kResourceExhausted);
}

TEST_F(SpillingStore, OtherBytesThanWereWrittenAreNoticed) {
  int damaged = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry.path(), gone).string().find(Folder()) == std::string::npos) {
      continue;
    }
    const int file = ::open(entry.path().c_str(), O_RDWR | O_CLOEXEC);
    ASSERT_GE(file, 0);
    for (off_t at = 100; at < (1 << 20); at += 4096) {
      ASSERT_EQ(::pwrite(file, "damage", 6, at), 6);
      ++damaged;
    }
    ::close(file);
  }
  ASSERT_GT(damaged, 0);
  EXPECT_LT(All().size(), before_.size());
  ExpectToGoBack(ErrorKind::kCorrupt);
}

TEST(PagerTest, AFolderThatIsNotThereIsTold) {
  auto pager = Pager::Make("/dev/null/nowhere", 1 << 20);
  ASSERT_FALSE(pager.ok());
  EXPECT_EQ(pager.error().condition(), "FLEUVE_IO_ERROR");
}

}  // namespace
}  // namespace fleuve::state
