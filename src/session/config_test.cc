#include "session/config.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace fleuve::session {
namespace {

TEST(ConfigTest, DefaultsAreAnsweredAndNotListed) {
  Config config(std::map<std::string, std::string>{{"spark.app.name", "x"}});
  EXPECT_EQ(config.Get("spark.sql.ansi.enabled").value(), "true");
  EXPECT_EQ(config.Find("no.such.key"), std::nullopt);
  EXPECT_EQ(config.Get("no.such.key").error().condition(), "SQL_CONF_NOT_FOUND");
  ASSERT_EQ(config.All().size(), 1u);
  EXPECT_EQ(config.All()[0].first, "spark.app.name");
}

TEST(ConfigTest, ValuesAreCheckedAndReadAsTheyWereWritten) {
  Config config;
  EXPECT_EQ(config.Set("spark.sql.ansi.enabled", "maybe").error().condition(), "INVALID_CONF_VALUE.TYPE_MISMATCH");
  EXPECT_EQ(config.Set("spark.sql.shuffle.partitions", "many").error().condition(), "INVALID_CONF_VALUE.TYPE_MISMATCH");
  EXPECT_EQ(config.Set("spark.sql.session.timeZone", "Nowhere").error().condition(), "INVALID_CONF_VALUE.TIME_ZONE");
  ASSERT_TRUE(config.Set("spark.sql.ansi.enabled", "FALSE").ok());
  EXPECT_FALSE(config.GetBool("spark.sql.ansi.enabled"));
  ASSERT_TRUE(config.Set("spark.sql.streaming.stopTimeout", "2s").ok());
  EXPECT_EQ(config.Get("spark.sql.streaming.stopTimeout").value(), "2s");
  EXPECT_EQ(config.Find("spark.sql.streaming.stopTimeout"), "2000ms");
  EXPECT_EQ(config.GetInt("spark.sql.streaming.stopTimeout"), 2000);
  ASSERT_TRUE(config.Set("spark.sql.streaming.noDataProgressEventInterval", "5s").ok());
  EXPECT_EQ(config.Get("spark.sql.streaming.noDataProgressEventInterval").value(), "5s");
  EXPECT_EQ(config.Set("spark.sql.streaming.stateStore.stateSchemaCheck", "perhaps").error().condition(),
            "INVALID_CONF_VALUE.TYPE_MISMATCH");
  ASSERT_TRUE(config.Set("my.key", "anything").ok());
  ASSERT_TRUE(config.Unset("my.key").ok());
  EXPECT_EQ(config.Find("my.key"), std::nullopt);
}

TEST(ConfigTest, StaticAndCoreKeysAreRefused) {
  Config config;
  EXPECT_EQ(config.Set("spark.sql.warehouse.dir", "/x").error().condition(), "CANNOT_MODIFY_STATIC_CONFIG");
  EXPECT_EQ(config.Set("spark.executor.memory", "2g").error().condition(), "CANNOT_MODIFY_CONFIG");
  EXPECT_TRUE(config.IsModifiable("spark.sql.ansi.enabled"));
  EXPECT_FALSE(config.IsModifiable("spark.sql.warehouse.dir"));
  EXPECT_FALSE(config.IsModifiable("no.such.key"));
}

TEST(ConfigTest, ASettingThatIsNotServedIsRefusedByName) {
  Config config;
  EXPECT_TRUE(config.Set("spark.sql.groupByOrdinal", "true").ok());
  const auto refused = config.Set("spark.sql.groupByOrdinal", "false");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind(), ErrorKind::kUnsupported);
  EXPECT_NE(refused.error().ToString().find("spark.sql.groupByOrdinal"), std::string::npos);
  EXPECT_EQ(config.Set("spark.sql.streaming.unsupportedOperationCheck", "false").error().kind(),
            ErrorKind::kUnsupported);
  EXPECT_FALSE(config.Set("spark.sql.legacy.someOldWay.enabled", "true").ok());
  EXPECT_TRUE(config.Set("spark.sql.legacy.someOldWay.enabled", "false").ok());
  EXPECT_TRUE(config.Set("my.own.key", "anything").ok());
}

TEST(ConfigTest, TheServersOwnSettingsAreChecked) {
  EXPECT_EQ(*CanonicalValue("spark.connect.execute.manager.detachedTimeout", "3s"), "3000ms");
  EXPECT_EQ(CanonicalValue("spark.sql.shuffle.partitions", "many").error().condition(),
            "INVALID_CONF_VALUE.TYPE_MISMATCH");
}

}  // namespace
}  // namespace fleuve::session
