#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

#include "state/row_table_internal.h"
#include "state/store.h"
#include "storage/memory_store.h"

namespace fleuve::state {
namespace {

constexpr SpaceId kPlain = 0;
constexpr SpaceId kTimed = 1;

StoreSpec Spec(const std::shared_ptr<storage::ObjectStore>& store, std::int64_t retain = 100) {
  StoreSpec spec;
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

TEST(StoreTest, EveryRetainedVersionOpensAsItWas) {
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

TEST(StoreTest, AnAbandonedRunLeavesNoTrace) {
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

TEST(StoreTest, SyncedVersionsOutliveAPowerCut) {
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

TEST(StoreTest, ReadingASnapshotCostsAboutWhatMakingItsRowsDid) {
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
  constexpr std::int64_t kVersions = 20;
  for (std::int64_t version = 1; version <= kVersions; ++version) {
    Finish(**store, *objects, "a");
  }
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

TEST(StoreTest, EveryStoreCallMayFail) {
  for (int call = 1; call < 60; ++call) {
    auto objects = storage::MemoryStore::Make();
    int calls = 0;
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

TEST(StoreTest, DamageIsFound) {
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

TEST(StoreTest, ChangedTypesAreRefusedAsSparkDoes) {
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

TEST(StoreTest, StateOfAnotherEngineIsRefused) {
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

TEST(StoreTest, TimesSortAsBytes) {
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
