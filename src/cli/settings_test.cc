#include "cli/settings.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace fleuve::cli {
namespace {

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    std::string name = ::testing::TempDir() + "settings-XXXXXX";
    file_ = std::string(::mkdtemp(name.data())) + "/fleuve.conf";
    ::setenv("FLEUVE_CONF_FILE", file_.c_str(), 1);
    ::unsetenv("FLEUVE_PORT");
    ::unsetenv("FLEUVE_CONF");
    Write("");
  }
  void Write(const std::string& text) { std::ofstream(file_) << text; }
  std::string file_;
};

TEST_F(SettingsTest, FlagsWinOverEnvironmentOverFile) {
  Write("fleuve.server.port 1\nspark.a  x y\nspark.b = z\n# c\n");
  EXPECT_EQ(LoadSettings({})->port, 1);
  EXPECT_EQ(LoadSettings({})->conf.at("spark.a"), "x y");
  EXPECT_EQ(LoadSettings({})->conf.at("spark.b"), "z");
  ::setenv("FLEUVE_PORT", "2", 1);
  EXPECT_EQ(LoadSettings({})->port, 2);
  EXPECT_EQ(LoadSettings({.host = "", .port = "3", .warehouse = "", .log_level = "", .conf = {}})->port, 3);
}

TEST_F(SettingsTest, WhatCannotBeReadIsNamedWithItsPlace) {
  Write("spark.a\n");
  const auto bad = LoadSettings({});
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find("fleuve.conf line 1"), std::string::npos);
  Write("");
  EXPECT_FALSE(LoadSettings({.host = "", .port = "x", .warehouse = "", .log_level = "", .conf = {}}).ok());
  EXPECT_FALSE(LoadSettings({.host = "", .port = "", .warehouse = "", .log_level = "loud", .conf = {}}).ok());
}

}  // namespace
}  // namespace fleuve::cli
