#include <gtest/gtest.h>

#include "types/data_type.h"
#include "types/metadata_order.h"
#include "types/time_zone.h"
#include "types/value.h"

namespace fleuve::types {
namespace {

TEST(DataTypeTest, TextFormsAreSparks) {
  const auto type = DataType::FromDdl(
      "a int not null, b array<struct<x: decimal(10,2), `y z`: string>>, m map<string,date> comment 'it''s'");
  EXPECT_FALSE(type.ok());  // two quotes are no escape in DDL comments
  const auto schema =
      DataType::FromDdl("a int not null, b array<struct<x: decimal(10,2), `y z`: string>>, m map<string,date>");
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->SimpleString(), "struct<a:int,b:array<struct<x:decimal(10,2),y z:string>>,m:map<string,date>>");
  EXPECT_EQ(ToDdl(*schema), "a INT NOT NULL,b ARRAY<STRUCT<x: DECIMAL(10,2), `y z`: STRING>>,m MAP<STRING, DATE>");
  EXPECT_EQ(TreeString(*schema),
            "root\n |-- a: integer (nullable = false)\n |-- b: array (nullable = true)\n"
            " |    |-- element: struct (containsNull = true)\n |    |    |-- x: decimal(10,2) (nullable = true)\n"
            " |    |    |-- y z: string (nullable = true)\n |-- m: map (nullable = true)\n |    |-- key: string\n"
            " |    |-- value: date (valueContainsNull = true)\n");
  const auto back = DataType::FromJson(schema->ToJson());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, *schema);
}

TEST(DataTypeTest, JsonFormIsSparks) {
  const auto type = DataType::FromDdl("struct<a: int>");
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->ToJson().Dump(),
            R"({"type":"struct","fields":[{"name":"a","type":"integer","nullable":true,"metadata":{}}]})");
  EXPECT_EQ(DataType::FromDdl("interval day to second")->SimpleString(), "interval day to second");
  EXPECT_EQ(DataType::FromDdl("interval year")->ToJson().AsString(), "interval year");
  EXPECT_EQ(DataType::FromDdl("foo").error().condition(), "UNSUPPORTED_DATATYPE");
  EXPECT_EQ(DataType::FromDdl("array<int").error().condition(), "PARSE_SYNTAX_ERROR");
}

TEST(ValueTest, DatesAndTimesComeBack) {
  for (const std::int64_t days : {-719528LL, -1LL, 0LL, 19727LL, 2932896LL}) {
    EXPECT_EQ(ParseDate(DateToString(days)), days);
  }
  EXPECT_EQ(ParseDate("2024-1-5"), 19727);
  EXPECT_EQ(ParseDate("2024"), 19723);
  EXPECT_FALSE(ParseDate("2024-02-30"));
  EXPECT_EQ(*ParseTimestamp("2024-01-05T10:00:00.5+01:00", "UTC"), 1704445200500000);
  EXPECT_EQ(*TimestampToString(1704445200500000, "Europe/Paris"), "2024-01-05 10:00:00.5");
}

TEST(ValueTest, DecimalsAreExact) {
  EXPECT_EQ(DecimalToString(1230, 2), "12.30");
  EXPECT_EQ(DecimalToString(-5, 3), "-0.005");
  const auto parsed = DecimalFromString("-1.25e1");
  ASSERT_TRUE(parsed.ok());
  EXPECT_TRUE(parsed->first == -125 && parsed->second == 1);
  EXPECT_FALSE(DecimalFromString("1.2.3").ok());
  EXPECT_FALSE(DecimalFromString("123456789012345678901234567890123456789").ok());
}

TEST(TimeZoneTest, GapsAndOverlapsAsInJava) {
  const auto zone = *TimeZone::Find("America/New_York");
  // 2024-03-10 02:30 does not exist: it becomes 03:30 EDT.
  EXPECT_EQ(zone->LocalToUtc(*ParseTimestampNtz("2024-03-10 02:30:00")),
            *ParseTimestamp("2024-03-10 03:30:00-04:00", "UTC"));
  // 2024-11-03 01:30 happens twice: the earlier one, EDT.
  EXPECT_EQ(zone->LocalToUtc(*ParseTimestampNtz("2024-11-03 01:30:00")),
            *ParseTimestamp("2024-11-03 01:30:00-04:00", "UTC"));
  EXPECT_FALSE(TimeZone::Find("Mars/Phobos").ok());
  EXPECT_EQ((*TimeZone::Find("-8"))->OffsetSecondsAtUtc(0), -28800);
}

TEST(MetadataOrderTest, KeysStandAsInScalasMaps) {
  const auto shown = [](const char* text) { return InMetadataOrder(*Json::Parse(text)).Dump(); };
  EXPECT_EQ(shown(R"({"comment":"why","n":1,"list":[1,2],"f":1.5})"),
            R"({"f":1.5,"comment":"why","list":[1,2],"n":1})");
  EXPECT_EQ(shown(R"({"b":{"comment":"x","f":2},"a":1})"), R"({"a":1,"b":{"f":2,"comment":"x"}})");
  EXPECT_EQ(shown("{}"), "{}");
}

TEST(DataType, CollationsStandInTheMetadataOfFields) {
  const char* text =
      R"({"type":"struct","fields":[)"
      R"({"name":"a","type":"string","nullable":true,"metadata":{"comment":"c","__COLLATIONS":{"a":"icu.UNICODE_CI"}}},)"
      R"({"name":"b","type":{"type":"map","keyType":"string","valueType":{"type":"array","elementType":"string",)"
      R"("containsNull":true},"valueContainsNull":true},"nullable":true,)"
      R"("metadata":{"__COLLATIONS":{"b.value.element":"spark.UTF8_LCASE"}}},)"
      R"({"name":"s","type":{"type":"struct","fields":[{"name":"x","type":"string","nullable":true,)"
      R"("metadata":{"__COLLATIONS":{"x":"icu.UNICODE"}}}]},"nullable":true,"metadata":{}}]})";
  const auto json = Json::Parse(text);
  ASSERT_TRUE(json.ok());
  const auto type = DataType::FromJson(*json);
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->fields()[0].type.collation(), "UNICODE_CI");
  EXPECT_EQ(type->fields()[0].metadata.Dump(), R"({"comment":"c"})");
  EXPECT_EQ(type->fields()[1].type.value().element().collation(), "UTF8_LCASE");
  EXPECT_EQ(type->fields()[1].type.key(), DataType::String());
  EXPECT_EQ(type->fields()[2].type.fields()[0].type.collation(), "UNICODE");
  EXPECT_EQ(type->ToJson().Dump(), text);

  const auto versioned =
      DataType::FromJson(*Json::Parse(R"({"type":"struct","fields":[{"name":"a","type":"string","nullable":true,)"
                                      R"("metadata":{"__COLLATIONS":{"a":"icu.de_CI.75.1"}}}]})"));
  ASSERT_TRUE(versioned.ok());
  EXPECT_EQ(versioned->fields()[0].type.collation(), "de_CI");
}

}  // namespace
}  // namespace fleuve::types
