#include <gtest/gtest.h>

#include "operators/cut_internal.h"
#include "operators/row_codec_internal.h"

namespace fleuve::operators {
namespace {

TEST(RowCodecTest, RowsComeBackAsTheyWere) {
  using types::DataType;
  const DataType nested = DataType::Struct(
      {{"a", DataType::Array(DataType::String(), true), true, Json()}, {"b", DataType::Boolean(), true, Json()}});
  auto schema = std::make_shared<types::Schema>(
      DataType::Struct({{"k", DataType::String(), true, Json()},
                        {"n", DataType::Long(), true, Json()},
                        {"d", DataType::Double(), true, Json()},
                        {"s", nested, true, Json()},
                        {"m", DataType::Map(DataType::Int(), DataType::Decimal(20, 2), true), true, Json()}}));
  // Rows of bytes -> columns -> the same bytes.
  RowEncoder encoder(*schema, {0, 1, 2, 3, 4}, false);
  RowDecoder decoder(schema, {5});
  const std::string empty_row(1, '\x1F');
  ASSERT_TRUE(decoder.Add({empty_row}).ok());
  std::string row(1, '\0');
  row += std::string("\x03xyz", 4);
  row += std::string("\x05\0\0\0\0\0\0\0", 8);
  row += std::string("\0\0\0\0\0\0\xF0\x3F", 8);
  row += std::string(1, '\0') + std::string("\x03\x02", 2) + std::string("\x01p\0", 3) + std::string("\x01", 1);
  row += std::string("\x01\0", 2) + std::string(1, '\0') + std::string("\x09\0\0\0", 4) + std::string(16, '\x01');
  ASSERT_TRUE(decoder.Add({row}).ok());
  ASSERT_TRUE(decoder.Add({std::string_view()}).ok());
  const columnar::RecordBatch batch = decoder.Finish();
  ASSERT_EQ(batch.row_count(), 3);
  state::ByteRows rows;
  encoder.Encode(batch, nullptr, &rows);
  EXPECT_EQ(rows[0], empty_row);
  EXPECT_EQ(rows[1], row);
  EXPECT_EQ(rows[2], empty_row);
  EXPECT_FALSE(decoder.Add({std::string_view(row).substr(0, 20)}).ok());
}

TEST(RowCodecTest, EqualKeysHaveEqualBytes) {
  using types::DataType;
  auto schema = std::make_shared<types::Schema>(DataType::Struct({{"d", DataType::Double(), true, Json()}}));
  const auto key_of = [&](double value) {
    RowDecoder decoder(schema, {1});
    std::string row(1, '\0');
    row.append(reinterpret_cast<const char*>(&value), sizeof(value));
    EXPECT_TRUE(decoder.Add({row}).ok());
    std::string key;
    RowEncoder(*schema, {0}, true).EncodeRow(decoder.Finish(), 0, &key);
    return key;
  };
  EXPECT_EQ(key_of(0.0), key_of(-0.0));
  EXPECT_EQ(key_of(std::numeric_limits<double>::quiet_NaN()), key_of(-std::numeric_limits<double>::quiet_NaN()));
  EXPECT_NE(key_of(1.0), key_of(2.0));
}

}  // namespace
}  // namespace fleuve::operators
