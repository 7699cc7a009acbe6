#include <gtest/gtest.h>

#include "session/pretty_text_internal.h"

namespace fleuve::session {
namespace {

using types::DataType;
using types::Value;

TEST(PrettyTextTest, TablesAsShowPrintsThem) {
  const std::vector<std::string> names = {"id", "name"};
  const std::vector<std::vector<std::string>> cells = {
      {"1", "a longer text than twenty"}, {"22", "b\nc"}, {"3", "日本"}};
  EXPECT_EQ(ShowString(names, cells, 20, 20, false),
            "+---+--------------------+\n"
            "| id|                name|\n"
            "+---+--------------------+\n"
            "|  1|a longer text tha...|\n"
            "| 22|                b\\nc|\n"
            "|  3|                日本|\n"
            "+---+--------------------+\n");
  EXPECT_EQ(ShowString(names, cells, 1, 0, false),
            "+---+-------------------------+\n"
            "|id |name                     |\n"
            "+---+-------------------------+\n"
            "|1  |a longer text than twenty|\n"
            "+---+-------------------------+\n"
            "only showing top 1 row");
  EXPECT_EQ(ShowString(names, {{"1", "x"}}, 20, 20, true),
            "-RECORD 0---\n"
            " id   | 1   \n"
            " name | x   \n");
  EXPECT_EQ(ShowString({}, {{}}, 20, 20, false), "++\n||\n++\n||\n++\n");
}

TEST(PrettyTextTest, ValuesOfEveryShape) {
  const auto text = [](const Value& value, const DataType& type) { return PrettyValue(value, type, "UTC").value(); };
  EXPECT_EQ(text(Value(), DataType::Int()), "NULL");
  EXPECT_EQ(text(Value(Value::List{Value(1), Value()}), DataType::Array(DataType::Int())), "[1, NULL]");
  EXPECT_EQ(text(Value(Value::List{Value(Value::List{Value("k"), Value(2)})}),
                 DataType::Map(DataType::String(), DataType::Int())),
            "{k -> 2}");
  EXPECT_EQ(text(Value(std::string("\x01\xff", 2)), DataType::Binary()), "[01 FF]");
  EXPECT_EQ(text(Value(std::int64_t{93784500000}), DataType::DayTimeInterval()),
            "INTERVAL '1 02:03:04.5' DAY TO SECOND");
  EXPECT_EQ(text(Value(-14), DataType::YearMonthInterval()), "INTERVAL '-1-2' YEAR TO MONTH");
  EXPECT_EQ(text(Value(1.0), DataType::Double()), "1.0");
}

}  // namespace
}  // namespace fleuve::session
