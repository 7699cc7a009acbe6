#include "connectors/autoloader/auto_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/ids.h"
#include "connectors/autoloader/cloud_schema_internal.h"
#include "connectors/autoloader/ledger_internal.h"
#include "storage/object_store.h"

namespace fleuve::connectors::autoloader {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using types::DataType;

class AutoLoaderTest : public ::testing::Test {
 protected:
  AutoLoaderTest() : root_(fs::temp_directory_path() / ("fleuve-loader-" + NewUuid())) {
    fs::create_directories(root_ / "in");
    RegisterAutoLoader(registry_);
  }
  ~AutoLoaderTest() override { fs::remove_all(root_); }

  /// A file that nobody has written to for a while.
  void Put(const std::string& name, const std::string& text, int age_seconds = 100) {
    const fs::path path = root_ / "in" / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(age_seconds));
  }

  Result<std::shared_ptr<const plan::StreamRelation>> Load(plan::Options options, const std::string& ddl = {}) {
    StreamRequest request;
    request.format = "cloudfiles";
    request.options = std::move(options);
    request.options.emplace("cloudFiles.format", "json");
    request.paths = {(root_ / "in").string()};
    if (!ddl.empty()) {
      request.schema = std::move(DataType::FromDdl(ddl)).value();
    }
    return registry_.source("cloudfiles")->Resolve(request, {});
  }

  std::unique_ptr<Source> Start(const std::shared_ptr<const plan::StreamRelation>& relation) {
    SourceContext context;
    context.checkpoint = std::move(storage::Resolve((root_ / "cp").string())).value();
    context.metadata_path = context.checkpoint.path + "/sources/0";
    auto source = registry_.source("cloudfiles")->MakeSource(relation, context);
    EXPECT_TRUE(source.ok());
    EXPECT_TRUE((*source)->InitialOffset().ok());
    return std::move(source).value();
  }

  /// Names of the files of the next batch, which becomes `start`; empty where there is none.
  static std::vector<std::string> Next(Source& source, std::optional<Offset>& start,
                                       Admission admission = Admission::kRateLimited) {
    auto end = source.LatestOffset(start, admission);
    EXPECT_TRUE(end.ok());
    std::vector<std::string> names;
    if (!end.ok() || !*end || *end == start) {
      return names;
    }
    auto batch = source.Read(start, **end);
    EXPECT_TRUE(batch.ok()) << batch.error().ToString();
    if (batch.ok() && batch->scan != nullptr) {
      for (const auto& file : batch->scan->files) {
        names.push_back(file.path.substr(file.path.rfind('/') + 1));
      }
    }
    start = *end;
    return names;
  }

  fs::path root_;
  ConnectorRegistry registry_;
};

TEST_F(AutoLoaderTest, EachFileComesOnceAndInOrder) {
  for (int i = 0; i < 5; ++i) {
    Put(std::to_string(i) + ".json", "{\"id\":1}", 100 - i);
  }
  const auto relation = Load({{"cloudFiles.maxFilesPerTrigger", "2"}}, "id int");
  ASSERT_TRUE(relation.ok());
  std::optional<Offset> at;
  {
    auto source = Start(*relation);
    EXPECT_THAT(Next(*source, at), ElementsAre("0.json", "1.json"));
    EXPECT_EQ(source->Metrics(at)["numFilesOutstanding"], "3");
    // The next batch is planned, and then the process dies.
    ASSERT_TRUE(source->LatestOffset(at, Admission::kRateLimited).ok());
  }
  Put("a.json", "{}", 5000);
  const auto other_limit = Load({{"cloudFiles.maxFilesPerTrigger", "1"}}, "id int");
  auto source = Start(*other_limit);
  EXPECT_THAT(Next(*source, at), ElementsAre("2.json", "3.json"));
  EXPECT_THAT(Next(*source, at), ElementsAre("a.json"));
  EXPECT_THAT(Next(*source, at), ElementsAre("4.json"));
  EXPECT_THAT(Next(*source, at), ElementsAre());
  Put("2.json", "{\"id\":7}", 1);
  EXPECT_THAT(Next(*source, at), ElementsAre());
}

TEST_F(AutoLoaderTest, AFileIsKnownForItsMaximalAge) {
  Put("a.json", "{\"id\":1}");
  std::optional<Offset> at;
  EXPECT_THAT(Next(*Start(*Load({}, "id int")), at), ElementsAre("a.json"));
  // As if the file had been seen long ago.
  const fs::path record = root_ / "cp/sources/0/fleuve-files/1";
  std::ostringstream text;
  text << std::ifstream(record).rdbuf();
  const std::string written = text.str();
  const auto seen = written.find("\"discoveredMs\":") + 15;
  std::ofstream(record) << written.substr(0, seen) << 1600000000000LL << written.substr(written.find('}', seen));
  EXPECT_THAT(Next(*Start(*Load({}, "id int")), at), ElementsAre()) << "no maximal age";
  const auto relation = Load({{"cloudFiles.maxFileAge", "90 days"}}, "id int");
  EXPECT_THAT(Next(*Start(*relation), at), ElementsAre("a.json"));
  EXPECT_THAT(Next(*Start(*relation), at), ElementsAre());
}

TEST_F(AutoLoaderTest, APlannedFileThatChangedIsNotReadInSilence) {
  Put("a.json", "{\"id\":1}");
  auto source = Start(*Load({}, "id int"));
  const auto end = source->LatestOffset(std::nullopt, Admission::kRateLimited);
  ASSERT_TRUE(end.ok() && *end);
  Put("a.json", "{\"id\":1}\n{\"id\":2}", 3);
  auto batch = source->Read(std::nullopt, **end);
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().condition(), "CF_FILE_CHANGED");
  fs::remove(root_ / "in/a.json");
  batch = source->Read(std::nullopt, **end);
  ASSERT_FALSE(batch.ok());
  EXPECT_EQ(batch.error().condition(), "FAILED_READ_FILE.FILE_NOT_EXIST");
}

TEST_F(AutoLoaderTest, AFileThatIsBeingWrittenWaits) {
  Put("old.json", "{}");
  Put("young.json", "{}", 0);
  auto source = Start(*Load({}, "id int"));
  std::optional<Offset> at;
  EXPECT_THAT(Next(*source, at), ElementsAre("old.json"));
  EXPECT_THAT(Next(*source, at), ElementsAre());
  EXPECT_TRUE(source->LookAgainMs().has_value());
  EXPECT_THAT(Next(*source, at, Admission::kAllAvailable), ElementsAre("young.json"));
}

TEST_F(AutoLoaderTest, NewColumnsAreStoredBeforeTheStop) {
  Put("a.json", "{\"id\":1,\"o\":{\"x\":1}}");
  const plan::Options options = {{"cloudFiles.schemaLocation", (root_ / "schema").string()}};
  auto relation = Load(options);
  ASSERT_TRUE(relation.ok()) << relation.error().ToString();
  EXPECT_EQ((*relation)->schema().SimpleString(), "struct<id:string,o:struct<x:string>,_rescued_data:string>");
  Put("b.json", "{\"id\":2,\"v\":true,\"o\":{\"y\":1}}");
  Put("c.json", "{\"id\":3,\"w\":1}");
  auto source = Start(*relation);
  const auto end = source->LatestOffset(std::nullopt, Admission::kRateLimited);
  auto batch = source->Read(std::nullopt, **end);
  ASSERT_TRUE(batch.ok());
  ASSERT_NE(batch->scan->unknown_fields, nullptr);
  const auto error = batch->scan->unknown_fields->OnUnknownField(batch->scan->files[1], "v", "");
  ASSERT_TRUE(error.has_value());
  EXPECT_EQ(error->condition(), "UNKNOWN_FIELD_EXCEPTION.NEW_FIELDS_IN_FILE");
  EXPECT_THAT(error->message(), HasSubstr("UnknownFieldException"));
  relation = Load(options);
  EXPECT_EQ((*relation)->schema().SimpleString(),
            "struct<id:string,o:struct<x:string,y:string>,v:string,w:string,_rescued_data:string>");
}

TEST_F(AutoLoaderTest, OptionsAreCheckedByName) {
  Put("a.json", "{\"id\":1}");
  const auto condition = [&](plan::Options options, const std::string& ddl = "id int") {
    auto relation = Load(std::move(options), ddl);
    return relation.ok() ? std::string("ok") : relation.error().condition();
  };
  EXPECT_EQ(condition({{"cloudFiles.pathGlobFilter", "*"}}), "CF_UNKNOWN_OPTION_KEYS_ERROR");
  EXPECT_EQ(condition({{"cloudFiles.queueUrl", "x"}}), "CF_NOTIFICATIONS_UNSUPPORTED");
  EXPECT_EQ(condition({{"cloudFiles.queueUrl", "x"}, {"cloudFiles.validateOptions", "false"}}), "ok");
  EXPECT_EQ(condition({{"CloudFiles.UseNotifications", "true"}}), "CF_NOTIFICATIONS_UNSUPPORTED");
  EXPECT_EQ(condition({{"databricks.serviceCredential", "x"}}), "CF_NOTIFICATIONS_UNSUPPORTED");
  EXPECT_EQ(condition({{"cloudFiles.schemaEvolutionMode", "addNewColumns"}}), "CF_ADD_NEW_NOT_SUPPORTED");
  EXPECT_EQ(condition({{"cloudFiles.maxBytesPerTrigger", "ten"}}), "CF_INVALID_OPTION_VALUE");
  EXPECT_EQ(condition({}, ""), "CF_MISSING_SCHEMA_LOCATION");
  EXPECT_EQ(ParseBytes("10g"), 10LL << 30);
  EXPECT_EQ(ParseInterval("interval 2 weeks 1 day"), 15LL * 86400000);
  EXPECT_EQ(ParseInterval("soon"), std::nullopt);
}

TEST_F(AutoLoaderTest, HintsReachIntoColumns) {
  const auto schema =
      std::move(DataType::FromDdl("a string, s struct<x:string>, l array<string>, m map<string,string>")).value();
  const auto hints =
      ParseHints("s.y DATE, l.element INT, m.value BIGINT, `odd name` DECIMAL(6,2), a STRUCT<p: INT, q: INT>");
  ASSERT_TRUE(hints.ok());
  EXPECT_EQ(ApplyHints(schema, *hints).SimpleString(),
            "struct<a:struct<p:int,q:int>,s:struct<x:string,y:date>,l:array<int>,m:map<string,bigint>,"
            "odd name:decimal(6,2)>");
  EXPECT_FALSE(ParseHints("a NOTYPE").ok());
}

TEST(GlobTest, MatchesAsHadoopDoes) {
  using files::GlobMatches;
  EXPECT_TRUE(GlobMatches("a{b,c{d,e}}f", "acef"));
  EXPECT_FALSE(GlobMatches("a{b,c{d,e}}f", "acf"));
  EXPECT_TRUE(GlobMatches("[^a-c]?*", "dxyz"));
  EXPECT_FALSE(GlobMatches("*", "a/b"));
  EXPECT_TRUE(GlobMatches("/a/*/d*", "/a/b/c/d/file.txt", true));
  EXPECT_FALSE(GlobMatches("/a/*/d*", "/a/b/c/d/file.txt"));
}

}  // namespace
}  // namespace fleuve::connectors::autoloader
