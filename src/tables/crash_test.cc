// The process dies at every single call of the store, in every operation that changes a table: afterwards the table can
// be read, is what it was or what it should become, and takes the next commit.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "storage/memory_store.h"
#include "tables/local_table_internal.h"

namespace fleuve::tables {
namespace {

/// Files of the newest version and their vectors.
std::set<std::string> FilesOf(const std::string& path) {
  LocalProcess reader(SharedEngine());
  const auto snapshot = reader.Open(path)->Latest();
  EXPECT_TRUE(snapshot.ok()) << snapshot.error().ToString();
  std::set<std::string> files;
  if (snapshot.ok()) {
    (*snapshot)->ForEachFile([&](const delta::AddFile& add) {
      files.insert(add.path);
      EXPECT_TRUE(std::filesystem::exists(path + "/" + add.path)) << add.path;
    });
  }
  return files;
}

struct Operation {
  const char* name;
  std::function<void(LocalProcess&, const std::string&)> prepare;
  std::function<Result<void>(LocalProcess&, const std::string&)> run;
};

Result<void> Ignore(const Result<RowsResult>& result) { return result.ok() ? Result<void>() : result.error(); }

std::vector<Operation> Operations() {
  const auto table = [](delta::StringMap properties) {
    return [properties](LocalProcess& process, const std::string& path) {
      ASSERT_TRUE(process.Create(path, properties).ok());
      for (int i = 0; i < 6; ++i) {
        ASSERT_TRUE(process.Append(path, "f" + std::to_string(i), {{i, 1}, {i + 100, 2}}).ok());
      }
    };
  };
  const auto expired = [table](delta::StringMap properties) {
    return [=](LocalProcess& process, const std::string& path) {
      table(properties)(process, path);
      ASSERT_TRUE(process.Open(path)->Checkpoint({}).ok());
      ASSERT_TRUE(process.Append(path, "late", {{7, 7}}).ok());
      MakeCommitsOld(path, 7, 60);
    };
  };
  const auto checkpoint = [](delta::CheckpointShape shape) {
    return [shape](LocalProcess& process, const std::string& path) { return process.Open(path)->Checkpoint(shape); };
  };
  const delta::StringMap v2{{"delta.checkpointPolicy", "v2"}};
  return {
      {"append", table({}),
       [](LocalProcess& process, const std::string& path) -> Result<void> {
         FLEUVE_TRY(process.Append(path, "new", {{1, 1}}));
         return {};
       }},
      {"append_with_checkpoint", table({{"delta.checkpointInterval", "7"}}),
       [](LocalProcess& process, const std::string& path) -> Result<void> {
         FLEUVE_TRY(process.Append(path, "new", {{1, 1}}));
         return {};
       }},
      {"create", [](LocalProcess&, const std::string&) {},
       [](LocalProcess& process, const std::string& path) { return process.Create(path, {}); }},
      {"checkpoint", table({}), checkpoint({})},
      {"checkpoint_in_parts", table({}), checkpoint({.part_rows = 2})},
      {"checkpoint_v2_json", table(v2), checkpoint({.part_rows = 3})},
      {"checkpoint_v2_parquet", table(v2), checkpoint({.part_rows = 3, .parquet_top = true})},
      {"checkpoint_and_clean_up", expired({}), checkpoint({})},
      {"checkpoint_v2_and_clean_up", expired(v2), checkpoint({})},
      {"optimize", table({}),
       [](LocalProcess& process, const std::string& path) {
         return Ignore(Optimize(process.context(), process.Table(path), {}));
       }},
      {"restore", table({}),
       [](LocalProcess& process, const std::string& path) {
         delta::TimeTravel when;
         when.version = 3;
         return Ignore(Restore(process.context(), process.Table(path), when));
       }},
      {"vacuum",
       [table](LocalProcess& process, const std::string& path) {
         table({})(process, path);
         ASSERT_TRUE(Optimize(process.context(), process.Table(path), {}).ok());
         ASSERT_TRUE(process.WriteFile(path, "stray", {{1, 1}}).ok());
       },
       [](LocalProcess& process, const std::string& path) {
         process.settings = {{"spark.databricks.delta.retentionDurationCheck.enabled", "false"}};
         return Ignore(Vacuum(process.context(), process.Table(path), 0.0, false));
       }},
  };
}

class Crash : public testing::TestWithParam<Operation> {};

TEST_P(Crash, AtEveryCallOfTheStoreLeavesTheOldTableOrTheNewOne) {
  const Operation& operation = GetParam();
  TemporaryFolder folder;
  const std::string before = folder.path() + "/before";
  {
    LocalProcess process(SharedEngine());
    operation.prepare(process, before);
  }
  const bool is_new = !std::filesystem::exists(before);
  const std::set<std::string> old_files = is_new ? std::set<std::string>() : FilesOf(before);
  std::set<std::string> new_files;
  int points = 0;
  // Round 0 runs through and counts; each later one dies at one call, before it or with its answer on the way.
  for (int round = 0; round <= points * 2; ++round) {
    const int at = (round + 1) / 2;
    const bool carried_out = round % 2 == 0;
    const std::string path = folder.path() + "/t" + std::to_string(round);
    if (!is_new) {
      std::filesystem::copy(before, path, std::filesystem::copy_options::recursive);
      // Copies are new files: the log's times are part of the table.
      for (const auto& entry : std::filesystem::directory_iterator(before + "/_delta_log")) {
        std::filesystem::last_write_time(path + "/_delta_log/" + entry.path().filename().string(),
                                         std::filesystem::last_write_time(entry.path()));
      }
    }
    std::atomic<int> calls{0};
    Result<void> done;
    {
      const auto store = storage::MakeFaultyStore(storage::LocalStore(), [&](std::string_view, std::string_view) {
        const int call = ++calls;
        if (round == 0 || call < at || (call == at && carried_out)) {
          return call == at && round > 0 ? storage::Fault::kFailAfter : storage::Fault::kNone;
        }
        return storage::Fault::kFailBefore;
      });
      LocalProcess process(SharedEngine(), store);
      done = operation.run(process, path);
    }
    if (round == 0) {
      ASSERT_TRUE(done.ok()) << done.error().ToString();
      points = calls;
      new_files = FilesOf(path);
      ASSERT_GT(points, 3);
      continue;
    }
    const std::string where = "call " + std::to_string(at) + " of " + std::to_string(points);
    LocalProcess next(SharedEngine());
    const auto log = next.Open(path);
    if (is_new && !*log->Exists()) {
      EXPECT_TRUE(next.Create(path, {}).ok()) << where;
      continue;
    }
    const std::set<std::string> files = FilesOf(path);
    // OPTIMIZE gives its file a fresh name each time.
    const bool is_old = files == old_files;
    EXPECT_TRUE(is_old || files == new_files ||
                (std::string(operation.name) == "optimize" && files.size() == new_files.size()))
        << where;
    const auto problems = log->Check();
    ASSERT_TRUE(problems.ok()) << where << problems.error().ToString();
    // A checkpoint whose parts were cut short is no part of the table.
    const auto real = std::count_if(problems->begin(), problems->end(), [](const std::string& text) {
      return text.find("misses some of its parts") == std::string::npos;
    });
    EXPECT_EQ(real, 0) << where << ": " << (problems->empty() ? "" : problems->front());
    const auto version = next.Append(path, "after", {{9, 9}});
    EXPECT_TRUE(version.ok()) << where << version.error().ToString();
    EXPECT_EQ(FilesOf(path).size(), files.size() + 1) << where;
    std::filesystem::remove_all(path);
  }
}

INSTANTIATE_TEST_SUITE_P(Operations, Crash, testing::ValuesIn(Operations()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace fleuve::tables
