#include "pipelines/graph.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "pipelines/checkpoints.h"

namespace fleuve::pipelines {
namespace {

Dataset Make(DatasetKind kind, const std::string& name) {
  Dataset dataset;
  dataset.kind = kind;
  dataset.name = {name};
  return dataset;
}

Flow Into(const std::string& target, const std::string& name, bool is_default = false) {
  Flow flow;
  flow.name = {name};
  flow.target = {target};
  flow.database = "d";
  flow.is_default = is_default;
  return flow;
}

TEST(Graph, NamesOfTablesAreQualifiedAndThoseOfViewsAreNot) {
  Graph graph("id", "spark_catalog", "D", {});
  EXPECT_EQ(*graph.Add(Make(DatasetKind::kStreamingTable, "T"), "d"),
            (std::vector<std::string>{"spark_catalog", "d", "t"}));
  EXPECT_EQ(*graph.Add(Make(DatasetKind::kTemporaryView, "V"), "d"), (std::vector<std::string>{"V"}));
  EXPECT_TRUE(graph.Find({"t"}, "d"));
  EXPECT_TRUE(graph.Find({"D", "t"}, "other"));
  EXPECT_FALSE(graph.Find({"t"}, "other"));
  EXPECT_TRUE(graph.Find({"v"}, "other"));
  EXPECT_TRUE(graph.Find({"LIVE", "t"}, "d"));
  EXPECT_FALSE(graph.Find({"parquet", "/t"}, "d"));
}

TEST(Graph, ASecondOutputOfANameIsRefused) {
  Graph graph("id", "spark_catalog", "d", {});
  ASSERT_TRUE(graph.Add(Make(DatasetKind::kStreamingTable, "t"), "d").ok());
  EXPECT_EQ(graph.Add(Make(DatasetKind::kMaterializedView, "T"), "d").error().condition(),
            "PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT");
  EXPECT_TRUE(graph.Add(Make(DatasetKind::kMaterializedView, "t"), "e").ok());
}

TEST(Graph, FlowsAreNamedWithinTheirTarget) {
  Graph graph("id", "spark_catalog", "d", {});
  ASSERT_TRUE(graph.Add(Make(DatasetKind::kStreamingTable, "t"), "d").ok());
  ASSERT_TRUE(graph.Add(Make(DatasetKind::kSink, "s"), "d").ok());
  EXPECT_EQ(*graph.Add(Into("t", "f")), (std::vector<std::string>{"spark_catalog", "d", "f"}));
  EXPECT_EQ(*graph.Add(Into("s", "g")), (std::vector<std::string>{"g"}));
  EXPECT_EQ(graph.Add(Into("t", "f")).error().condition(), "PIPELINE_DUPLICATE_IDENTIFIERS.FLOW");
  Flow qualified = Into("t", "h");
  qualified.name = {"d", "h"};
  EXPECT_EQ(graph.Add(qualified).error().condition(), "MULTIPART_FLOW_NAME_NOT_SUPPORTED");
  ASSERT_TRUE(graph.Add(Make(DatasetKind::kStreamingTable, "u"), "d").ok());
  EXPECT_EQ(graph.Add(Into("t", "u")).error().condition(), "FLOW_NAME_CONFLICTS_WITH_TABLE");
}

TEST(Graph, AFlowMayComeBeforeItsSink) {
  Graph graph("id", "spark_catalog", "d", {});
  ASSERT_TRUE(graph.Add(Into("s", "f")).ok());
  ASSERT_TRUE(graph.Add(Make(DatasetKind::kSink, "s"), "d").ok());
  EXPECT_EQ(graph.flows()[0].target, (std::vector<std::string>{"s"}));
  EXPECT_EQ(graph.flows()[0].name, (std::vector<std::string>{"f"}));
}

TEST(Checkpoints, StorageIsAnAbsoluteAddressWithAScheme) {
  for (const char* bad : {"relative/folder", "/absolute", "file:relative", "C"}) {
    EXPECT_EQ(Checkpoints::Root(bad).error().condition(), "PIPELINE_STORAGE_ROOT_INVALID") << bad;
  }
  EXPECT_TRUE(Checkpoints::Root("file:///tmp/x").ok());
  EXPECT_TRUE(Checkpoints::Root("memory:/x").ok());
}

TEST(Checkpoints, AFullRefreshBeginsTheNextGeneration) {
  const std::string folder = testing::TempDir() + "fleuve_pipelines_generations";
  std::filesystem::remove_all(folder);
  auto root = Checkpoints::Root("file://" + folder);
  ASSERT_TRUE(root.ok());
  Checkpoints checkpoints(*root);
  Flow flow = Into("t", "f");
  flow.target = {"spark_catalog", "d", "t"};
  flow.name = {"spark_catalog", "d", "f"};
  Dataset table = Make(DatasetKind::kStreamingTable, "t");
  table.name = flow.target;
  const std::string base = root->path + "/_checkpoints/spark_catalog/d/t/f/";
  EXPECT_EQ(*checkpoints.Folder(flow), base + "0");
  ASSERT_TRUE(root->store->Put(base + "0/metadata", "{}", storage::PutMode::kOverwrite).ok());
  EXPECT_FALSE(*checkpoints.IsResetPending(table));
  ASSERT_TRUE(checkpoints.BeginReset(table).ok());
  EXPECT_TRUE(*checkpoints.IsResetPending(table));
  ASSERT_TRUE(checkpoints.EndReset(table, {&flow}).ok());
  EXPECT_FALSE(*checkpoints.IsResetPending(table));
  EXPECT_EQ(*checkpoints.NextFolder(flow), base + "2");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fleuve::pipelines
