#include <gtest/gtest.h>

#include "delta/skipping.h"
#include "tables/column_default_internal.h"
#include "tables/schema_internal.h"

namespace fleuve::tables {
namespace {

using types::DataType;

DataType Ddl(const std::string& text) { return *DataType::FromDdl(text); }

std::string Merge(const std::string& table, const std::string& data, MergeRules rules = {}) {
  const auto merged = MergeSchemas(Ddl(table), Ddl(data), rules, plan::AnalysisConfig{});
  return merged.ok() ? merged->SimpleString() : merged.error().condition();
}

TEST(MergeSchemas, MatchesByNameWithoutCase) {
  EXPECT_EQ(Merge("id int, v string", "V string, ID int"), "struct<id:int,v:string>");
  EXPECT_EQ(Merge("id int, v string", "id int"), "struct<id:int,v:string>");
  EXPECT_EQ(Merge("id int, s struct<a:int,b:string>", "id int, s struct<B:string>"),
            "struct<id:int,s:struct<a:int,b:string>>");
}

TEST(MergeSchemas, NewColumnsNeedTheOption) {
  EXPECT_EQ(Merge("id int", "id int, x int"), "DELTA_METADATA_MISMATCH");
  EXPECT_EQ(Merge("id int", "x int, id int", {.add_columns = true}), "struct<id:int,x:int>");
  EXPECT_EQ(Merge("a array<struct<k:int>>", "a array<struct<k:int,l:string>>", {.add_columns = true}),
            "struct<a:array<struct<k:int,l:string>>>");
  EXPECT_EQ(Merge("m map<string,struct<q:int>>", "m map<string,struct<q:int,r:boolean>>"), "DELTA_METADATA_MISMATCH");
}

TEST(MergeSchemas, OtherTypesNeedCastsOrWidening) {
  EXPECT_EQ(Merge("id bigint", "id int"), "DELTA_FAILED_TO_MERGE_FIELDS");
  EXPECT_EQ(Merge("id bigint", "id int", {.allow_casts = true}), "struct<id:bigint>");
  EXPECT_EQ(Merge("id int", "id bigint", {.add_columns = true, .widen = true}), "struct<id:bigint>");
  EXPECT_EQ(Merge("id int", "id string", {.add_columns = true, .widen = true}), "DELTA_FAILED_TO_MERGE_FIELDS");
  EXPECT_EQ(Merge("id int", "id array<int>", {.allow_casts = true}), "DELTA_FAILED_TO_MERGE_FIELDS");
  EXPECT_EQ(Merge("id int", "id int, ID int"), "DELTA_DUPLICATE_COLUMNS_FOUND.DATA");
  EXPECT_EQ(Merge("id int, s struct<a:short>", "id short, s struct<a:byte>"), "struct<id:int,s:struct<a:smallint>>");
  EXPECT_EQ(Merge("id short", "id int"), "DELTA_FAILED_TO_MERGE_FIELDS");
}

TEST(StoredSchema, LengthsMoveIntoMetadata) {
  const auto stored = StoredSchema(Ddl("c char(3) not null, v varchar(5), a array<int>"), false);
  EXPECT_EQ(stored.SimpleString(), "struct<c:string,v:string,a:array<int>>");
  EXPECT_EQ(*FieldText(stored.fields()[0], "__CHAR_VARCHAR_TYPE_STRING"), "char(3)");
  EXPECT_FALSE(stored.fields()[0].nullable);
  EXPECT_TRUE(StoredSchema(Ddl("c int not null"), true).fields()[0].nullable);
}

TEST(ColumnMapping, IdsAndPhysicalNamesAreGivenOnce) {
  delta::Metadata metadata;
  metadata.configuration = {{"delta.columnMapping.mode", "name"}};
  DataType schema = StoredSchema(Ddl("a int, s struct<x:int>"), false);
  ASSERT_TRUE(AssignColumnMapping(metadata, schema, true).ok());
  EXPECT_EQ(*delta::FindIn(metadata.configuration, "delta.columnMapping.maxColumnId"), "3");
  const std::string name = delta::PhysicalName(schema.fields()[0], metadata);
  EXPECT_TRUE(name.starts_with("col-"));
  ASSERT_TRUE(AssignColumnMapping(metadata, schema, true).ok());
  EXPECT_EQ(delta::PhysicalName(schema.fields()[0], metadata), name);
  EXPECT_EQ(*delta::FindIn(metadata.configuration, "delta.columnMapping.maxColumnId"), "3");
}

TEST(Properties, UnknownDeltaKeysAndWrongValuesAreRefused) {
  EXPECT_EQ(CheckProperties({{"delta.nosuch", "1"}}).error().condition(), "DELTA_UNKNOWN_CONFIGURATION");
  EXPECT_EQ(CheckProperties({{"delta.logRetentionDuration", "soon"}}).error().condition(), "DELTA_INVALID_INTERVAL");
  const auto checked = CheckProperties({{"DELTA.APPENDONLY", "true"}, {"Mine", "x"}});
  ASSERT_TRUE(checked.ok());
  EXPECT_EQ(*delta::FindIn(*checked, "delta.appendOnly"), "true");
  EXPECT_EQ(*delta::FindIn(*checked, "Mine"), "x");
}

TEST(ColumnNames, ForbiddenCharactersAndDuplicates) {
  EXPECT_EQ(CheckColumns(Ddl("`a b` int"), false).error().condition(), "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES");
  EXPECT_TRUE(CheckColumns(Ddl("`a b` int"), true).ok());
  EXPECT_EQ(CheckPartitionColumns(Ddl("a int"), {"a"}).error().condition(),
            "DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION");
  EXPECT_EQ(CheckPartitionColumns(Ddl("a int, m map<int,int>"), {"m"}).error().condition(),
            "DELTA_INVALID_PARTITION_COLUMN_TYPE");
}

TEST(ColumnTypes, IntervalsAndTimesAreInNoTable) {
  const auto condition = [](const std::string& ddl) { return CheckColumns(Ddl(ddl), true).error().condition(); };
  for (const char* ddl : {"v interval day", "v interval year to month", "s struct<a: interval hour>",
                          "l array<interval month>", "m map<string, interval day>"}) {
    EXPECT_EQ(condition(ddl), "DELTA_UNSUPPORTED_DATA_TYPES") << ddl;
  }
  EXPECT_EQ(condition("v interval"), "_LEGACY_ERROR_TEMP_1183");
  EXPECT_EQ(condition("l array<time(6)>"), "UNSUPPORTED_TIME_TYPE");
  EXPECT_EQ(CheckNestedVoid(DataType::Struct({{"l", DataType::Array(DataType::Void(), true), true, Json()}}))
                .error()
                .condition(),
            "DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE");
  EXPECT_TRUE(CheckNestedVoid(DataType::Struct({{"v", DataType::Void(), true, Json()}})).ok());
}

TEST(ColumnDefaults, MustBeValuesOfTheColumn) {
  const plan::AnalysisConfig config;
  const auto check = [&](const char* sql, const char* type) {
    const auto checked = CheckDefault(sql, Ddl(std::string("c ") + type).fields()[0], config);
    return checked.ok() ? std::string("ok") : checked.error().condition();
  };
  EXPECT_EQ(check("7", "bigint"), "ok");
  EXPECT_EQ(check("300L", "int"), "ok");
  EXPECT_EQ(check("'2020-01-01'", "date"), "ok");
  EXPECT_EQ(check("1.5", "decimal(4,2)"), "ok");
  EXPECT_EQ(check("NULL", "date"), "ok");
  EXPECT_EQ(check("300", "tinyint"), "INVALID_DEFAULT_VALUE.DATA_TYPE");
  EXPECT_EQ(check("3000000000", "int"), "INVALID_DEFAULT_VALUE.DATA_TYPE");
  EXPECT_EQ(check("'abc'", "int"), "INVALID_DEFAULT_VALUE.DATA_TYPE");
  EXPECT_EQ(check("other", "int"), "INVALID_DEFAULT_VALUE.UNRESOLVED_EXPRESSION");
  EXPECT_EQ(check("(SELECT 1)", "int"), "INVALID_DEFAULT_VALUE.SUBQUERY_EXPRESSION");
}

}  // namespace
}  // namespace fleuve::tables
