#include <gtest/gtest.h>

#include "cli/pipelines_program.h"

namespace fleuve::cli {
namespace {

TEST(YamlToJson, GivesPlainScalarsTheirTypes) {
  EXPECT_EQ(*YamlToJson("name: p\nn: 1\nx: 1.5\ny: 'yes'\nz: yes\nq: \"1\"\nnone:\n"),
            R"({"name":"p","n":1,"x":1.5,"y":"yes","z":true,"q":"1","none":null})");
  EXPECT_EQ(*YamlToJson("[0x1F, 017, 1_000, -3, 1e3, file:///a, '']"), R"([31,15,1000,-3,"1e3","file:///a",""])");
}

TEST(YamlToJson, ReadsASpecFile) {
  EXPECT_EQ(
      *YamlToJson(
          "storage: file:///s\nlibraries:\n  - glob:\n      include: transformations/**\nconfiguration: {a: b}\n"),
      R"({"storage":"file:///s","libraries":[{"glob":{"include":"transformations/**"}}],"configuration":{"a":"b"}})");
}

TEST(YamlToJson, TellsWhereTheFaultIs) {
  const auto bad = YamlToJson("a: [1\nb: 2\n");
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.error().message().find("line 2"), std::string::npos) << bad.error().message();
}

}  // namespace
}  // namespace fleuve::cli
