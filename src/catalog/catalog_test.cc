#include "catalog/catalog.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "storage/object_store.h"

namespace fleuve::catalog {
namespace {

class CatalogTest : public ::testing::Test {
 protected:
  CatalogTest() {
    std::string name = ::testing::TempDir() + "catalog-XXXXXX";
    warehouse_ = ::mkdtemp(name.data());
  }
  ~CatalogTest() override { storage::LocalStore()->DeleteAll(warehouse_).IgnoreBecause("a temporary folder"); }
  std::unique_ptr<Catalog> Open() {
    auto opened = Catalog::Open(warehouse_);
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }
  std::string warehouse_;
};

TEST_F(CatalogTest, KeepsTablesAcrossOpenings) {
  {
    const auto catalog = Open();
    ASSERT_TRUE(
        catalog->CreateDatabase({.name = "Conf", .comment = "", .location = "", .properties = {}, .owner = ""}).ok());
    Table table;
    table.database = "conf";
    table.name = "T1";
    table.provider = "delta";
    table.location = *catalog->DefaultTableLocation("conf", "T1");
    table.partition_columns = {"a"};
    table.properties = {{"k", "v'"}};
    ASSERT_TRUE(catalog->CreateTable(table).ok());
    EXPECT_EQ(catalog->CreateTable(table).error().condition(), "TABLE_OR_VIEW_ALREADY_EXISTS");
  }
  const auto catalog = Open();
  const auto table = catalog->GetTable("CONF", "t1");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ(table->location, warehouse_ + "/conf.db/t1");
  EXPECT_EQ(table->properties.at("k"), "v'");
  EXPECT_EQ(catalog->ListDatabases()->size(), 2U);
  EXPECT_EQ(catalog->GetTable("conf", "t2").error().condition(), "TABLE_OR_VIEW_NOT_FOUND");
  EXPECT_EQ(catalog->DropDatabase("conf", false).error().condition(), "SCHEMA_NOT_EMPTY");
  EXPECT_TRUE(catalog->DropDatabase("conf", true).ok());
  EXPECT_EQ(catalog->GetDatabase("conf").error().condition(), "SCHEMA_NOT_FOUND");
}

TEST_F(CatalogTest, DropDeletesTheFolderOfAManagedTableOnly) {
  const auto catalog = Open();
  const auto store = storage::LocalStore();
  for (const auto kind : {TableKind::kManaged, TableKind::kExternal}) {
    Table table;
    table.database = "default";
    table.name = "t";
    table.kind = kind;
    table.location = warehouse_ + "/t";
    ASSERT_TRUE(store->Put(table.location + "/file", "x", storage::PutMode::kOverwrite).ok());
    ASSERT_TRUE(catalog->CreateTable(table).ok());
    ASSERT_TRUE(catalog->DropTable("default", "t").ok());
    EXPECT_EQ(store->Head(table.location).ok(), kind == TableKind::kExternal);
  }
}

TEST_F(CatalogTest, RenameKeepsTheFiles) {
  const auto catalog = Open();
  Table table;
  table.database = "default";
  table.name = "a";
  table.location = warehouse_ + "/a";
  ASSERT_TRUE(catalog->CreateTable(table).ok());
  ASSERT_TRUE(catalog->RenameTable("default", "a", "default", "b").ok());
  EXPECT_EQ(catalog->GetTable("default", "b")->location, warehouse_ + "/a");
  EXPECT_FALSE(catalog->GetTable("default", "a").ok());
  EXPECT_NE(*catalog->DefaultTableLocation("default", "a"), warehouse_ + "/a");
}

}  // namespace
}  // namespace fleuve::catalog
