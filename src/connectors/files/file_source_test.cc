#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/ids.h"
#include "connectors/files/file_stream.h"
#include "connectors/files/file_table.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using types::DataType;
using types::Value;

class FileSourceTest : public ::testing::Test {
 protected:
  FileSourceTest() : root_(fs::temp_directory_path() / ("fleuve-source-" + NewUuid())) {
    fs::create_directories(root_ / "in");
    RegisterFileConnectors(registry_);
  }
  ~FileSourceTest() override { fs::remove_all(root_); }

  void Put(const std::string& name, const std::string& text, int age_seconds) {
    const fs::path path = root_ / "in" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(age_seconds));
  }

  std::unique_ptr<Source> Start(plan::Options options) {
    StreamRequest request;
    request.format = "json";
    request.schema = std::move(DataType::FromDdl("id int")).value();
    request.options = std::move(options);
    request.paths = {(root_ / "in").string()};
    SourceContext context;
    context.checkpoint = std::move(storage::Resolve((root_ / "cp").string())).value();
    context.metadata_path = context.checkpoint.path + "/sources/0";
    SourceProvider* provider = registry_.source("json");
    auto source = provider->MakeSource(std::move(provider->Resolve(request, {})).value(), context);
    EXPECT_TRUE(source.ok()) << source.error().ToString();
    return std::move(source).value();
  }

  static std::vector<std::string> Next(Source& source, std::optional<Offset>& start) {
    auto end = source.LatestOffset(start, Admission::kRateLimited);
    EXPECT_TRUE(end.ok());
    std::vector<std::string> names;
    if (!*end || *end == start) {
      return names;
    }
    auto batch = source.Read(start, **end);
    EXPECT_TRUE(batch.ok());
    for (const auto& file : batch->scan->files) {
      names.push_back(file.path.substr(file.path.rfind('/') + 1));
    }
    EXPECT_TRUE(source.Commit(**end).ok());
    start = *end;
    return names;
  }

  std::string Text(const std::string& name) {
    std::ifstream in(root_ / "cp/sources/0" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  fs::path root_;
  ConnectorRegistry registry_;
};

TEST_F(FileSourceTest, TheLogIsSparksAndOutlivesARestart) {
  for (int i = 0; i < 12; ++i) {
    Put((i < 10 ? "0" : "") + std::to_string(i) + " x.json", "{}", 100 - i);
  }
  std::optional<Offset> at;
  {
    auto source = Start({{"maxFilesPerTrigger", "1"}});
    for (int i = 0; i < 11; ++i) {
      EXPECT_EQ(Next(*source, at).size(), 1);
    }
    EXPECT_EQ(*at, "{\"logOffset\":10}");
  }
  EXPECT_TRUE(fs::exists(root_ / "cp/sources/0/9.compact"));
  EXPECT_THAT(Text("0"), ::testing::MatchesRegex("v1\n\\{\"path\":\"file:///.*/in/00%20x.json\",\"timestamp\":[0-9]+,"
                                                 "\"batchId\":0\\}"));
  // The old entries are in the compact file.
  fs::remove(root_ / "cp/sources/0/7");
  auto source = Start({{"maxFilesPerTrigger", "1"}});
  EXPECT_THAT(Next(*source, at), ElementsAre("11 x.json"));
  EXPECT_THAT(Next(*source, at), ElementsAre());
}

TEST_F(FileSourceTest, AnEntryWrittenBeforeACrashIsTheNextBatch) {
  Put("a.json", "{}", 10);
  std::optional<Offset> at;
  {
    auto source = Start({});
    ASSERT_TRUE(source->LatestOffset(at, Admission::kRateLimited).ok());
  }
  Put("b.json", "{}", 5);
  auto source = Start({});
  EXPECT_THAT(Next(*source, at), ElementsAre("a.json"));
  EXPECT_THAT(Next(*source, at), ElementsAre("b.json"));
}

TEST_F(FileSourceTest, PartitionColumnsComeFromFolders) {
  Put("y=2024/m=07/a.json", "{\"v\":1}", 10);
  Put("y=2025/m=__HIVE_DEFAULT_PARTITION__/b.json", "{\"v\":2}", 10);
  FileReadRequest request;
  request.format = "JSON";
  request.paths = {(root_ / "in").string()};
  const auto table = MakeFileTable(request, {});
  ASSERT_TRUE(table.ok()) << table.error().ToString();
  EXPECT_EQ((*table)->schema().SimpleString(), "struct<v:bigint,y:int,m:int>");
  const auto scan = (*table)->PlanScan({}, {});
  ASSERT_EQ((*scan)->files.size(), 2);
  EXPECT_THAT((*scan)->files[0].partition_values, ElementsAre(Value(2024), Value(7)));
  EXPECT_THAT((*scan)->files[1].partition_values, ElementsAre(Value(2025), Value()));
  Put("z=1/c.json", "{}", 10);
  const auto conflict = MakeFileTable(request, {});
  ASSERT_FALSE(conflict.ok());
  EXPECT_EQ(conflict.error().condition(), "CONFLICTING_PARTITION_COLUMN_NAMES");
}

}  // namespace
}  // namespace fleuve::connectors::files
