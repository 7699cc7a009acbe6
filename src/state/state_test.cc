#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <map>
#include <new>
#include <random>
#include <set>
#include <thread>

#include "state/row_table_internal.h"
#include "state/store.h"
#include "storage/memory_store.h"

namespace fleuve::state {
namespace {

constexpr SpaceId kPlain = 0;
constexpr SpaceId kTimed = 1;

/// Every store does the same: with all rows in memory, and with room for a few of them.
class StoreTest : public testing::TestWithParam<bool> {
 public:
  static bool spills;

 protected:
  void SetUp() override { spills = GetParam(); }
};
bool StoreTest::spills = false;

INSTANTIATE_TEST_SUITE_P(All, StoreTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Spilling" : "InMemory"; });

StoreSpec Spec(const std::shared_ptr<storage::ObjectStore>& store, std::int64_t retain = 100) {
  StoreSpec spec;
  if (StoreTest::spills) {
    spec.budget = std::make_shared<MemoryBudget>();
    spec.budget->limit_bytes = 2 << 20;
    spec.spill_folder = testing::TempDir() + "fleuve-state-test";
  }
  spec.folder = {store, "/cp/state/0"};
  spec.operator_name = "stateStoreSave";
  spec.spaces = {{"default", false, "struct<string>", "struct<bigint>", "count"},
                 {"timers", true, "struct<string>", "struct<>", ""}};
  spec.versions_to_retain = retain;
  return spec;
}

std::string Timed(std::int64_t micros, const std::string& rest) {
  std::string key;
  AppendTime(key, micros);
  return key + rest;
}

using Rows = std::map<std::string, std::string>;

Rows All(const Store& store, SpaceId space) {
  Rows rows;
  store.Scan(space, [&](std::string_view key, std::string_view value) {
    rows[std::string(key)] = std::string(value);
    return true;
  });
  return rows;
}

void Finish(Store& store, storage::ObjectStore& objects, const std::string& attempt) {
  auto staged = store.Stage(attempt, 7);
  ASSERT_TRUE(staged.ok()) << staged.error().message();
  ASSERT_TRUE(objects.Sync(staged->files, staged->folders).ok());
  auto applied = store.Apply();
  ASSERT_TRUE(applied.ok()) << applied.error().message();
}

TEST(RowTableTest, HoldsWhatAMapHolds) {
  std::mt19937_64 random(1);
  RowTable table(Timing::kKey);
  Rows expected;
  for (int step = 0; step < 200000; ++step) {
    const std::string key =
        Timed(static_cast<std::int64_t>(random() % 64) * 700000 - 20000000, std::to_string(random() % 60));
    switch (random() % 4) {
      case 0:
        ASSERT_EQ(table.Remove(key), expected.erase(key) == 1);
        break;
      case 1:
        ASSERT_EQ(table.Add(key, "added"), expected.emplace(key, "added").second);
        break;
      default: {
        const std::string value(random() % 40, 'v');
        ASSERT_EQ(table.Put(key, value), !expected.contains(key));
        expected[key] = value;
      }
    }
    ASSERT_EQ(table.row_count(), static_cast<std::int64_t>(expected.size()));
  }
  Rows scanned;
  table.Scan([&](std::string_view key, std::string_view value) {
    scanned[std::string(key)] = std::string(value);
    return true;
  });
  EXPECT_EQ(scanned, expected);
  std::int64_t last = INT64_MIN;
  Rows ranged;
  table.Range(-3000000, 9000000, [&](std::string_view key, std::string_view value) {
    EXPECT_LE(last, TimeOf(key));
    last = TimeOf(key);
    ranged[std::string(key)] = std::string(value);
    return true;
  });
  std::erase_if(expected, [](const auto& row) { return TimeOf(row.first) < -3000000 || TimeOf(row.first) > 9000000; });
  EXPECT_EQ(ranged, expected);
}

TEST(RowTableTest, IndexesTheTimesOfValues) {
  std::mt19937_64 random(3);
  RowTable table(Timing::kValue);
  Rows expected;
  for (int step = 0; step < 50000; ++step) {
    const std::string key = "k" + std::to_string(random() % 500);
    if (random() % 4 == 0) {
      ASSERT_EQ(table.Remove(key), expected.erase(key) == 1);
    } else {
      const std::string value =
          Timed(static_cast<std::int64_t>(random() % 90) * 300000, std::string(random() % 30, 'v'));
      table.Put(key, value);
      expected[key] = value;
    }
  }
  Rows ranged;
  std::int64_t last = INT64_MIN;
  table.Range(5000000, 20000000, [&](std::string_view key, std::string_view value) {
    EXPECT_LE(last, TimeOf(value));
    last = TimeOf(value);
    ranged[std::string(key)] = std::string(value);
    return true;
  });
  std::erase_if(expected,
                [](const auto& row) { return TimeOf(row.second) < 5000000 || TimeOf(row.second) > 20000000; });
  EXPECT_EQ(ranged, expected);
}

TEST(RowTableTest, TwoHalvesMakeATable) {
  // Rows of both halves, of one alone, few and many; and what was emptied again.
  for (const auto& [rows, keeps] :
       {std::pair(0, 3), {1, 3}, {40, 3}, {40, 1}, {40, 2}, {30000, 3}, {30000, 1}, {30000, 0}}) {
    std::mt19937_64 random(static_cast<unsigned>(rows + keeps));
    RowTable lower(Timing::kKey);
    RowTable upper(Timing::kKey);
    Rows expected;
    for (int i = 0; i < rows; ++i) {
      const std::string key =
          Timed(static_cast<std::int64_t>(random() % 40) * 700000, std::to_string(random() % 20000));
      const std::uint64_t half = HashKey(key) >> 63;
      RowTable& table = half == 0 ? lower : upper;
      table.Put(key, "a value");
      if ((keeps >> half & 1) == 0 || random() % 3 == 0) {
        table.Remove(key);
        expected.erase(key);
      } else {
        expected[key] = "a value";
      }
    }
    lower.TakeUpperHalf(upper);
    for (int i = 0; i < 2000; ++i) {
      const std::string key =
          Timed(static_cast<std::int64_t>(random() % 50) * 700000, std::to_string(random() % 20000));
      ASSERT_EQ(lower.Put(key, "another"), !expected.contains(key));
      expected[key] = "another";
    }
    ASSERT_EQ(lower.row_count(), static_cast<std::int64_t>(expected.size()));
    Rows scanned;
    const auto add = [&scanned](std::string_view key, std::string_view value) {
      scanned[std::string(key)] = std::string(value);
      return true;
    };
    lower.Scan(add);
    EXPECT_EQ(scanned, expected);
    scanned.clear();
    lower.Range(INT64_MIN, INT64_MAX, add);
    EXPECT_EQ(scanned, expected);
    std::uint64_t position = 0;
    Rows in_pieces;
    while (lower.ScanSome(&position, 1000, [&in_pieces](std::string_view key, std::string_view value) {
      in_pieces[std::string(key)] = std::string(value);
    })) {
    }
    EXPECT_EQ(in_pieces, expected);
    for (const auto& [key, value] : expected) {
      ASSERT_TRUE(lower.Remove(key));
    }
    EXPECT_EQ(lower.memory_bytes(), RowTable(Timing::kKey).memory_bytes());
  }
}

TEST_P(StoreTest, EveryRetainedVersionOpensAsItWas) {
  auto objects = storage::MemoryStore::Make();
  std::mt19937_64 random(2);
  std::vector<Rows> versions = {{}};
  auto store = *Store::Open(Spec(objects, 15), Version{});
  Rows rows;
  for (int version = 1; version <= 240; ++version) {
    for (int i = 0; i < 30; ++i) {
      const std::string key = "k" + std::to_string(random() % 200);
      if (random() % 3 == 0) {
        store->Remove(kPlain, key);
        rows.erase(key);
      } else {
        const std::string value = std::to_string(random());
        store->Put(kPlain, key, value);
        rows[key] = value;
      }
    }
    Finish(*store, *objects, "a" + std::to_string(version));
    // Batches take some time, in which the thread that writes snapshots comes to work.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    versions.push_back(rows);
  }
  for (int version : {240, 239, 230, 226, 225}) {
    auto opened = Store::Open(Spec(objects), Version{version, "a" + std::to_string(version)});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    EXPECT_EQ(All(**opened, kPlain), versions[static_cast<std::size_t>(version)]) << version;
  }
  // Old files go: nothing grows with the number of batches.
  EXPECT_LT(objects->List("/cp/state/0")->size(), 180u);
  auto gone = Store::Open(Spec(objects), Version{1, "a1"});
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().condition(), "CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS");
}

/// Changes some rows of a large state in each version, and tells what it is.
class LargeState {
 public:
  static constexpr int kKeys = 3000;
  static constexpr std::size_t kValueBytes = 10000;

  explicit LargeState(Store* store) : store_(store) {}
  void Change() {
    for (int i = 0; i < 40; ++i) {
      const std::string key = "k" + std::to_string(random_() % kKeys);
      if (random_() % 8 == 0) {
        store_->Remove(kPlain, key);
        rows_.erase(key);
      } else {
        const std::string value(kValueBytes, static_cast<char>('a' + random_() % 26));
        store_->Put(kPlain, key, value);
        rows_[key] = value;
      }
    }
  }
  const Rows& rows() const { return rows_; }

 private:
  Store* store_;
  std::mt19937_64 random_{4};
  Rows rows_;
};

bool HasFile(storage::ObjectStore& objects, const std::string& ending) {
  const auto listed = objects.List("/cp/state/0");
  return listed.ok() &&
         std::any_of(listed->begin(), listed->end(), [&](const auto& meta) { return meta.path.ends_with(ending); });
}

TEST_P(StoreTest, SnapshotsAreCollectedWhileRowsChange) {
  auto objects = storage::MemoryStore::Make();
  auto store = *Store::Open(Spec(objects, 5), Version{});
  LargeState state(store.get());
  std::map<int, Rows> wanted;
  std::size_t most_files = 0;
  for (int version = 1; version <= 500; ++version) {
    state.Change();
    const std::string attempt = "a" + std::to_string(version);
    Finish(*store, *objects, attempt);
    // No file is as large as the state, and old ones go.
    const auto listed = *objects->List("/cp/state/0");
    for (const auto& meta : listed) {
      ASSERT_LT(meta.size_bytes, 12 << 20) << meta.path;
    }
    most_files = std::max(most_files, listed.size());
    if (version % 23 == 0) {
      auto opened = Store::Open(Spec(objects), Version{version, attempt});
      ASSERT_TRUE(opened.ok()) << opened.error().message();
      ASSERT_EQ(All(**opened, kPlain), state.rows()) << version;
    }
    if (version > 495) {
      wanted[version] = state.rows();
    }
  }
  store.reset();
  EXPECT_TRUE(HasFile(*objects, ".snapshot"));
  EXPECT_TRUE(HasFile(*objects, ".part"));
  EXPECT_LT(most_files, 400u);
  for (const auto& [version, rows] : wanted) {
    auto opened = Store::Open(Spec(objects), Version{version, ""});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    EXPECT_EQ(All(**opened, kPlain), rows) << version;
  }
}

TEST_P(StoreTest, ACutInTheMiddleOfASnapshotLosesNothing) {
  for (int cut_at : {60, 83, 120, 155, 190}) {
    auto objects = storage::MemoryStore::Make();
    auto store = *Store::Open(Spec(objects, 5), Version{});
    LargeState state(store.get());
    for (int version = 1; version <= cut_at; ++version) {
      state.Change();
      Finish(*store, *objects, "a");
    }
    store.reset();
    objects->PowerCut();
    auto opened = Store::Open(Spec(objects, 5), Version{cut_at, "a"});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    ASSERT_EQ(All(**opened, kPlain), state.rows()) << cut_at;
    // Goes on, and gives a batch up on the way.
    Rows before = state.rows();
    (*opened)->Put(kPlain, "lost", "x");
    ASSERT_TRUE((*opened)->Discard().ok());
    for (int version = cut_at + 1; version <= cut_at + 70; ++version) {
      (*opened)->Put(kPlain, "more", std::string(200000, 'm'));
      Finish(**opened, *objects, "b");
    }
    before["more"] = std::string(200000, 'm');
    opened = Store::Open(Spec(objects, 5), Version{cut_at + 70, "b"});
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    ASSERT_EQ(All(**opened, kPlain), before) << cut_at;
  }
}

TEST_P(StoreTest, ADamagedPartOfASnapshotIsNoLossWhileItsChangelogsAreThere) {
  auto objects = storage::MemoryStore::Make();
  auto store = *Store::Open(Spec(objects, 100000), Version{});
  LargeState state(store.get());
  int version = 0;
  while (!HasFile(*objects, ".snapshot") && version < 400) {
    state.Change();
    Finish(*store, *objects, "a");
    ++version;
  }
  store.reset();
  const auto listed = *objects->List("/cp/state/0");
  for (const auto& meta : listed) {
    if (meta.path.ends_with(".1.part")) {
      std::string bytes = *objects->Get(meta.path);
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      ASSERT_TRUE(objects->Put(meta.path, bytes, storage::PutMode::kOverwrite).ok());
    }
  }
  auto opened = Store::Open(Spec(objects), Version{version, "a"});
  ASSERT_TRUE(opened.ok()) << opened.error().message();
  EXPECT_EQ(All(**opened, kPlain), state.rows());
}

TEST_P(StoreTest, NoBatchWaitsForAllKeys) {
  auto objects = storage::MemoryStore::Make();
  StoreSpec spec = Spec(objects);
  if (spec.budget) {
    spec.budget->limit_bytes = 80 << 20;  // of many timed rows a part stays in memory: where they are found by time
  }
  auto store = *Store::Open(spec, Version{});
  ByteRows keys;
  ByteRows values;
  std::vector<std::string_view> known;
  double longest = 0;
  double sum = 0;
  constexpr int kBatches = 1500;
  for (int batch = 0; batch < kBatches; ++batch) {
    keys.Clear();
    values.Clear();
    for (int i = 0; i < 1000; ++i) {
      AppendTime(keys.bytes(), batch);
      keys.Add(std::to_string(batch * 1000 + i));
      values.Add("one value");
    }
    const auto began = std::chrono::steady_clock::now();
    store->GetMany(kTimed, keys, &known);
    store->PutMany(kTimed, keys, values);
    Finish(*store, *objects, "a");
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    longest = std::max(longest, took);
    sum += took;
  }
  // Growing a table of so many rows at once, or writing all of them, takes longer than a tenth of a second.
  EXPECT_LT(longest, 0.05 + 10 * sum / kBatches);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_P(StoreTest, WhereMemoryEndsTheStoreGoesBackToItsLastVersion) {
  const auto fill = [] {
    auto objects = storage::MemoryStore::Make();
    StoreSpec spec = Spec(objects);
    if (spec.budget) {
      spec.budget->limit_bytes = 512 << 20;
    }
    auto store = *Store::Open(spec, Version{});
    store->Put(kPlain, "a", "1");
    auto staged = store->Stage("one", 0);
    if (!staged.ok() || !store->Apply().ok()) {
      return 1;
    }
    std::ifstream statm("/proc/self/statm");
    std::uint64_t pages = 0;
    statm >> pages;
    const rlimit limit{pages * 4096 + (64 << 20), RLIM_INFINITY};
    if (setrlimit(RLIMIT_AS, &limit) != 0) {
      return 2;
    }
    bool ended = false;
    try {
      for (int i = 0; i < 10000000; ++i) {
        store->Put(kTimed, Timed(i, std::to_string(i)), "some value");
      }
    } catch (const std::bad_alloc&) {
      ended = true;
    }
    const bool back = store->Discard().ok() && All(*store, kPlain) == Rows{{"a", "1"}} && store->row_count(kTimed) == 0;
    return ended && back ? 0 : 3;
  };
  EXPECT_EXIT(std::_Exit(fill()), testing::ExitedWithCode(0), "");
}
#endif

TEST_P(StoreTest, RowsBeyondTheLimitLieOnDiskOrEndTheQueryByName) {
  auto objects = storage::MemoryStore::Make();
  StoreSpec spec = Spec(objects);
  spec.budget = std::make_shared<MemoryBudget>();
  spec.budget->limit_bytes = 1 << 20;
  auto store = *Store::Open(spec, Version{});
  std::mt19937_64 random(5);
  Rows plain;
  Rows timed;
  for (int version = 1; version <= 12; ++version) {
    for (int i = 0; i < 4000; ++i) {
      const std::string key = std::to_string(random() % 40000);
      const std::string value(random() % 120, 'v');
      if (random() % 4 == 0) {
        store->Remove(kPlain, key);
        plain.erase(key);
      } else {
        store->Put(kPlain, key, value);
        plain[key] = value;
      }
      const std::string in_time = Timed(static_cast<std::int64_t>(random() % 50) * 1000000, key);
      store->Put(kTimed, in_time, value);
      timed[in_time] = value;
    }
    auto staged = store->Stage("a", 0);
    if (!spills && !staged.ok()) {
      EXPECT_EQ(staged.error().condition(), "FLEUVE_STATE_MEMORY_LIMIT");
      EXPECT_NE(staged.error().message().find("fleuve.state.memoryLimit"), std::string::npos);
      EXPECT_NE(staged.error().message().find("RocksDB"), std::string::npos);
      return;
    }
    ASSERT_TRUE(staged.ok()) << staged.error().message();
    ASSERT_TRUE(store->Apply().ok());
    if (spills) {
      EXPECT_LE(spec.budget->used_bytes, spec.budget->limit_bytes);
    }
    // A range of times, and what goes with it.
    const std::int64_t until = version * 3000000;
    ByteRows gone;
    std::int64_t last = INT64_MIN;
    store->Range(kTimed, INT64_MIN, until, [&](std::string_view key, std::string_view value) {
      EXPECT_LE(last, TimeOf(key));
      last = TimeOf(key);
      EXPECT_EQ(timed[std::string(key)], value);
      gone.Add(key);
      return true;
    });
    const auto expired = std::erase_if(timed, [&](const auto& row) { return TimeOf(row.first) <= until; });
    EXPECT_EQ(gone.size(), expired);
    store->RemoveMany(kTimed, gone);
    ByteRows keys;
    std::vector<std::string_view> values;
    for (const auto& [key, value] : plain) {
      keys.Add(key);
    }
    store->GetMany(kPlain, keys, &values);
    std::size_t i = 0;
    for (const auto& [key, value] : plain) {
      ASSERT_EQ(values[i++], value) << key;
    }
    ASSERT_EQ(All(*store, kPlain), plain);
    ASSERT_EQ(All(*store, kTimed), timed);
    ASSERT_EQ(store->row_count(kPlain), static_cast<std::int64_t>(plain.size()));
  }
  EXPECT_TRUE(spills) << "the limit was not noticed";
}

TEST_P(StoreTest, AnAbandonedRunLeavesNoTrace) {
  auto objects = storage::MemoryStore::Make();
  auto store = *Store::Open(Spec(objects), Version{});
  store->Put(kPlain, "a", "1");
  store->Put(kTimed, Timed(5, "a"), "");
  Finish(*store, *objects, "one");
  store->Put(kPlain, "a", "2");
  store->Put(kPlain, "b", "2");
  store->Remove(kTimed, Timed(5, "a"));
  ASSERT_TRUE(store->Stage("lost", 0).ok());
  ASSERT_TRUE(store->Discard().ok());
  EXPECT_EQ(All(*store, kPlain), (Rows{{"a", "1"}}));
  EXPECT_EQ(store->row_count(kTimed), 1);
  store->Put(kPlain, "c", "3");
  Finish(*store, *objects, "two");
  for (const char* attempt : {"two", ""}) {
    auto opened = *Store::Open(Spec(objects), Version{2, attempt});
    EXPECT_EQ(All(*opened, kPlain), (Rows{{"a", "1"}, {"c", "3"}}));
  }
  EXPECT_FALSE((*FindChangelog(Spec(objects).folder, Version{2, "lost"})).has_value());
  // A second run of version 2 that somebody else wrote: then one has to say which counts.
  const std::string foreign = *objects->Get("/cp/state/0/2_two.changes");
  ASSERT_TRUE(objects->Put("/cp/state/0/2_other.changes", foreign, storage::PutMode::kIfAbsent).ok());
  auto unknown = Store::Open(Spec(objects), Version{2, ""});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().condition(), "CANNOT_LOAD_STATE_STORE.UNEXPECTED_VERSION");
  auto header = *FindChangelog(Spec(objects).folder, Version{2, "two"});
  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->base_attempt, "one");
  EXPECT_EQ(header->next_watermark_ms, 7);
  EXPECT_FALSE((*FindChangelog(Spec(objects).folder, Version{2, "three"})).has_value());
}

TEST_P(StoreTest, SyncedVersionsOutliveAPowerCut) {
  for (int cut_at = 1; cut_at <= 40; ++cut_at) {
    auto objects = storage::MemoryStore::Make();
    auto store = *Store::Open(Spec(objects), Version{});
    Rows rows;
    Rows synced;
    for (int version = 1; version <= cut_at; ++version) {
      store->Put(kPlain, "k" + std::to_string(version % 7), std::string(9000, static_cast<char>('a' + version % 26)));
      rows["k" + std::to_string(version % 7)] = std::string(9000, static_cast<char>('a' + version % 26));
      auto staged = *store->Stage("a" + std::to_string(version), 0);
      if (version == cut_at) {
        break;  // the power goes before the sync
      }
      ASSERT_TRUE(objects->Sync(staged.files, staged.folders).ok());
      ASSERT_TRUE(store->Apply().ok());
      synced = rows;
    }
    store.reset();
    objects->PowerCut();
    const Version last{cut_at - 1, cut_at > 1 ? "a" + std::to_string(cut_at - 1) : ""};
    auto opened = Store::Open(Spec(objects), last);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    EXPECT_EQ(All(**opened, kPlain), synced) << cut_at;
  }
}

TEST_P(StoreTest, ReadingASnapshotCostsAboutWhatMakingItsRowsDid) {
  if (spills) {
    GTEST_SKIP() << "what comes and goes has no such measure";
  }
  const auto objects = storage::MemoryStore::Make();
  const StoreSpec spec = Spec(objects);
  constexpr int kRows = 640000;
  const auto seconds_of = [](const auto& work) {
    const auto began = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  auto store = Store::Open(spec, Version{});
  ASSERT_TRUE(store.ok());
  const double made = seconds_of([&] {
    for (int i = 0; i < kRows; ++i) {
      (*store)->Put(kPlain, std::to_string(i), "v");
    }
  });
  constexpr std::int64_t kVersions = 70;  // as many as the pieces of a snapshot take
  for (std::int64_t version = 1; version <= kVersions; ++version) {
    Finish(**store, *objects, "a");
  }
  store->reset();  // waits for what is being written
  auto listed = objects->List(spec.folder.path);
  ASSERT_TRUE(listed.ok());
  ASSERT_TRUE(
      std::any_of(listed->begin(), listed->end(), [](const auto& meta) { return meta.path.ends_with(".snapshot"); }));
  std::int64_t rows = 0;
  const double read = seconds_of([&] {
    auto again = Store::Open(spec, Version{kVersions, "a"});
    ASSERT_TRUE(again.ok());
    rows = (*again)->row_count(kPlain);
  });
  EXPECT_EQ(rows, kRows);
  EXPECT_LT(read, 5 * made + 0.2);
}

TEST_P(StoreTest, EveryStoreCallMayFail) {
  for (int call = 1; call < 60; ++call) {
    auto objects = storage::MemoryStore::Make();
    std::atomic<int> calls = 0;  // snapshots are written by a thread of their own
    auto faulty = storage::MakeFaultyStore(objects, [&](std::string_view, std::string_view) {
      return ++calls == call ? storage::Fault::kFailBefore : storage::Fault::kNone;
    });
    Rows applied;
    Version last;
    auto opened = Store::Open(Spec(faulty), Version{});
    if (opened.ok()) {
      auto store = *std::move(opened);
      Rows rows;
      for (int version = 1; version <= 14; ++version) {
        const std::string value(8000, static_cast<char>('a' + version));
        store->Put(kPlain, "k" + std::to_string(version % 3), value);
        rows["k" + std::to_string(version % 3)] = value;
        auto staged = store->Stage("a" + std::to_string(version), 0);
        if (!staged.ok()) {
          EXPECT_EQ(staged.error().condition(), "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT");
          break;
        }
        applied = rows;
        last = Version{version, "a" + std::to_string(version)};
        if (!store->Apply().ok()) {
          break;
        }
      }
    }
    auto again = Store::Open(Spec(objects), last);
    ASSERT_TRUE(again.ok()) << again.error().message();
    EXPECT_EQ(All(**again, kPlain), applied) << call;
  }
}

TEST_P(StoreTest, DamageIsFound) {
  auto objects = storage::MemoryStore::Make();
  auto store = *Store::Open(Spec(objects), Version{});
  store->Put(kPlain, "a", "1");
  Finish(*store, *objects, "one");
  const std::string path = "/cp/state/0/1_one.changes";
  const std::string whole = *objects->Get(path);
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bad = whole;
    bad[i] = static_cast<char>(bad[i] ^ 0x20);
    ASSERT_TRUE(objects->Put(path, bad, storage::PutMode::kOverwrite).ok());
    EXPECT_FALSE(Store::Open(Spec(objects), Version{1, "one"}).ok()) << i;
    ASSERT_TRUE(objects->Put(path, whole.substr(0, i), storage::PutMode::kOverwrite).ok());
    EXPECT_FALSE(Store::Open(Spec(objects), Version{1, "one"}).ok()) << i;
  }
}

TEST_P(StoreTest, ChangedTypesAreRefusedAsSparkDoes) {
  auto objects = storage::MemoryStore::Make();
  auto store = *Store::Open(Spec(objects), Version{});
  Finish(*store, *objects, "one");
  StoreSpec spec = Spec(objects);
  spec.spaces[0].key_schema = "struct<string,int>";
  auto opened = Store::Open(spec, Version{1, "one"});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().condition(), "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE");
  spec = Spec(objects);
  spec.spaces[0].value_schema = "struct<int>";
  opened = Store::Open(spec, Version{1, "one"});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().condition(), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");
  EXPECT_TRUE(Store::Open(spec, Version{1, "one"}, /*schema_check=*/false).ok());
  spec = Spec(objects);
  spec.spaces[0].value_note = "sum";
  opened = Store::Open(spec, Version{1, "one"});
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().condition(), "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE");
}

TEST_P(StoreTest, StateOfAnotherEngineIsRefused) {
  auto objects = storage::MemoryStore::Make();
  EXPECT_TRUE((*FindOperators({objects, "/cp/state"})).empty());
  ASSERT_TRUE(objects->Put("/cp/state/0/0/1.delta", "x", storage::PutMode::kIfAbsent).ok());
  ASSERT_TRUE(objects->Put("/cp/state/0/_metadata/metadata", "v1\n{}", storage::PutMode::kIfAbsent).ok());
  auto found = FindOperators({objects, "/cp/state"});
  ASSERT_FALSE(found.ok());
  EXPECT_NE(found.error().message().find("another engine"), std::string::npos);

  auto own = storage::MemoryStore::Make();
  auto store = *Store::Open(Spec(own), Version{});
  Finish(*store, *own, "one");
  const auto operators = *FindOperators({own, "/cp/state"});
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(operators[0].name, "stateStoreSave");
  EXPECT_EQ(operators[0].partitions, 200);
}

TEST_P(StoreTest, TimesSortAsBytes) {
  std::set<std::string> keys;
  for (std::int64_t time : {INT64_MIN, std::int64_t{-5}, std::int64_t{0}, std::int64_t{7}, INT64_MAX}) {
    keys.insert(Timed(time, ""));
  }
  std::vector<std::int64_t> times;
  for (const std::string& key : keys) {
    times.push_back(TimeOf(key));
  }
  EXPECT_EQ(times, (std::vector<std::int64_t>{INT64_MIN, -5, 0, 7, INT64_MAX}));
}

}  // namespace
}  // namespace fleuve::state
