#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "columnar/ipc.h"

namespace fleuve::columnar {
namespace {

using types::DataType;
using types::StructField;
using types::Value;

types::Schema WideSchema() {
  return DataType::Struct({
      {"b", DataType::Boolean(), true, {}},
      {"i", DataType::Int(), false, {}},
      {"l", DataType::Long(), true, {}},
      {"d", DataType::Double(), true, {}},
      {"dec", DataType::Decimal(38, 10), true, {}},
      {"s", DataType::String(), true, {}},
      {"bin", DataType::Binary(), true, {}},
      {"day", DataType::Date(), true, {}},
      {"ts", DataType::Timestamp(), true, {}},
      {"ntz", DataType::TimestampNtz(), true, {}},
      {"arr", DataType::Array(DataType::Int()), true, {}},
      {"map", DataType::Map(DataType::String(), DataType::Long()), true, {}},
      {"st", DataType::Struct({{"x", DataType::Short(), true, {}}, {"y", DataType::String(), false, {}}}), true, {}},
      {"dt", DataType::DayTimeInterval(), true, {}},
      {"v", DataType::Variant(), true, {}},
  });
}

std::vector<Value::List> WideRows() {
  Value::List full = {Value(true),
                      Value(1),
                      Value(std::int64_t{1} << 40),
                      Value(1.5),
                      Value(static_cast<types::Int128>(-12345) << 70),
                      Value("é"),
                      Value(std::string("\0\1", 2)),
                      Value(19000),
                      Value(std::int64_t{1700000000000000}),
                      Value(std::int64_t{-1}),
                      Value(Value::List{Value(1), Value(), Value(3)}),
                      Value(Value::List{Value(Value::List{Value("k"), Value(7)})}),
                      Value(Value::List{Value(5), Value("y")}),
                      Value(std::int64_t{90}),
                      Value(Value::List{Value("a"), Value("b")})};
  Value::List empty(full.size());
  empty[1] = Value(2);
  return {full, empty, full};
}

TEST(ColumnarTest, RowsSurviveABatchAndAStream) {
  auto batch = BatchFromRows(WideSchema(), WideRows());
  ASSERT_TRUE(batch.ok()) << batch.error().ToString();
  auto rows = RowsFromBatch(*batch);
  ASSERT_TRUE(rows.ok()) << rows.error().ToString();
  EXPECT_EQ(*rows, WideRows());

  auto bytes = EncodeIpcStream(WideSchema(), {*batch}, ArrowOptions{"Asia/Tokyo"});
  ASSERT_TRUE(bytes.ok()) << bytes.error().ToString();
  auto content = DecodeIpcStream(*bytes);
  ASSERT_TRUE(content.ok()) << content.error().ToString();
  EXPECT_EQ(content->schema, WideSchema());
  ASSERT_EQ(content->batches.size(), 1u);
  auto again = RowsFromBatch(content->batches[0]);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ(*again, WideRows());
}

TEST(ColumnarTest, IntervalsBeyondArrowsNanosecondsAreRefused) {
  const types::Schema schema = DataType::Struct({{"i", DataType::Of(types::TypeKind::kCalendarInterval), true, {}}});
  const std::int64_t most = INT64_MAX / 1000;
  const std::vector<Value::List> rows = {{Value(types::CalendarInterval{-1, 2, most})}, {Value()}};
  auto batch = BatchFromRows(schema, rows);
  ASSERT_TRUE(batch.ok()) << batch.error().ToString();
  auto again = RowsFromBatch(*batch);
  ASSERT_TRUE(again.ok()) << again.error().ToString();
  EXPECT_EQ(*again, rows);
  for (const std::int64_t micros : {most + 1, -most - 1, INT64_MIN}) {
    batch = BatchFromRows(schema, {{Value(types::CalendarInterval{0, 0, micros})}});
    ASSERT_FALSE(batch.ok()) << micros;
    EXPECT_EQ(batch.error().message(), "long overflow");
  }
}

TEST(ColumnarTest, SlicesShareAndOutliveTheirBatch) {
  RecordBatch slice;
  {
    auto batch = BatchFromRows(WideSchema(), WideRows());
    ASSERT_TRUE(batch.ok());
    slice = Slice(Slice(*batch, 1, 2), 1, 1);
  }
  auto rows = RowsFromBatch(slice);
  ASSERT_TRUE(rows.ok()) << rows.error().ToString();
  EXPECT_THAT(*rows, testing::ElementsAre(WideRows()[2]));
  auto bytes = EncodeIpcStream(WideSchema(), {slice}, ArrowOptions{});
  ASSERT_TRUE(bytes.ok());
  auto content = DecodeIpcStream(*bytes);
  ASSERT_TRUE(content.ok());
  EXPECT_EQ(*RowsFromBatch(content->batches[0]), *rows);
}

TEST(ColumnarTest, SchemasConvertBothWays) {
  ArrowSchema schema{};
  ASSERT_TRUE(ToArrowSchema(WideSchema(), ArrowOptions{}, &schema).ok());
  EXPECT_STREQ(schema.format, "+s");
  EXPECT_STREQ(schema.children[8]->format, "tsu:UTC");
  auto back = FromArrowSchema(schema);
  ASSERT_TRUE(back.ok()) << back.error().ToString();
  EXPECT_EQ(*back, WideSchema());
  schema.release(&schema);
}

TEST(ColumnarTest, EmptyStreamsAndGarbage) {
  auto bytes = EncodeIpcStream(WideSchema(), {}, ArrowOptions{});
  ASSERT_TRUE(bytes.ok());
  auto content = DecodeIpcStream(*bytes);
  ASSERT_TRUE(content.ok());
  EXPECT_TRUE(content->batches.empty());
  EXPECT_FALSE(DecodeIpcStream("nothing of the kind").ok());
  EXPECT_EQ(DecodeIpcStream(bytes->substr(0, bytes->size() / 2)).error().kind(), ErrorKind::kCorrupt);

  const types::Schema none = DataType::Struct({});
  auto batch = BatchFromRows(none, {{}, {}, {}});
  ASSERT_TRUE(batch.ok());
  EXPECT_EQ(batch->row_count(), 3);
  auto encoded = EncodeIpcStream(none, {*batch}, ArrowOptions{});
  ASSERT_TRUE(encoded.ok());
  EXPECT_EQ(DecodeIpcStream(*encoded)->batches.at(0).row_count(), 3);
}

}  // namespace
}  // namespace fleuve::columnar
