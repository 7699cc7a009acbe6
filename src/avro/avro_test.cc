#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "avro/decoder.h"
#include "avro/map_order.h"
#include "avro/resolution.h"
#include "avro/schema.h"
#include "base/bytes.h"

namespace fleuve::avro {
namespace {

/// Values as text, to see what the decoder tells its target.
struct TextTarget {
  struct Place {
    explicit operator bool() const { return true; }
  };
  std::string out;

  bool Add(const std::string& text) {
    out += text;
    return true;
  }
  bool Null(Place) { return Add("null "); }
  bool Boolean(Place, bool value) { return Add(value ? "true " : "false "); }
  bool Int(Place, std::int32_t value) { return Add(std::to_string(value) + "i "); }
  bool Long(Place, std::int64_t value) { return Add(std::to_string(value) + "l "); }
  bool Float(Place, float value) { return Add(std::to_string(value) + "f "); }
  bool Double(Place, double value) { return Add(std::to_string(value) + "d "); }
  bool Bytes(Place, std::string_view value) { return Add(HexEncode(value) + "x "); }
  bool Text(Place, std::string_view value) { return Add("'" + std::string(value) + "' "); }
  bool BeginRecord(Place, const Node&) { return Add("{ "); }
  Place Field(Place, const Node& node, std::size_t field) {
    Add(node.fields[field].name + "=");
    return {};
  }
  void EndRecord(Place) { Add("} "); }
  bool BeginList(Place) { return Add("[ "); }
  Place Item(Place) { return {}; }
  void EndList(Place) { Add("] "); }
  bool BeginMap(Place) { return Add("( "); }
  Place Entry(Place, std::string_view key) {
    Add(std::string(key) + ":");
    return {};
  }
  void EndMap(Place) { Add(") "); }
  Place Branch(Place, const Node&, int branch) {
    Add("#" + std::to_string(branch) + " ");
    return {};
  }
};

std::string Read(const std::string& writer, const std::string& reader, std::string_view bytes) {
  auto from = Schema::Parse(writer);
  auto to = Schema::Parse(reader);
  if (!from.ok() || !to.ok()) {
    return from.ok() ? to.error().message() : from.error().message();
  }
  const Resolution resolution(*from, *to);
  TextTarget target;
  ByteReader in(bytes);
  return Decoder<TextTarget>(target).Read(resolution.root(), in, {}) ? target.out : "broken";
}
std::string Read(const std::string& schema, std::string_view bytes) { return Read(schema, schema, bytes); }

TEST(AvroDecoder, ReadsEveryKind) {
  EXPECT_EQ(Read(R"("int")", "\x03"), "-2i ");
  EXPECT_EQ(Read(R"("int")", "\xff\xff\xff\xff\x0f"), "-2147483648i ");
  EXPECT_EQ(Read(R"("int")", "\xff\xff\xff\xff\xff\x01"), "broken");
  EXPECT_EQ(Read(R"("long")", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "-9223372036854775808l ");
  EXPECT_EQ(Read(R"("boolean")", "\x02"), "false ");
  EXPECT_EQ(Read(R"("string")", "\x04hi"), "'hi' ");
  EXPECT_EQ(Read(R"("string")", "\x06hi"), "broken");
  EXPECT_EQ(Read(R"({"type":"fixed","name":"f","size":2})", "ab"), "6162x ");
  EXPECT_EQ(Read(R"({"type":"enum","name":"E","symbols":["P","Q"]})", "\x02"), "'Q' ");
  EXPECT_EQ(Read(R"({"type":"enum","name":"E","symbols":["P","Q"]})", "\x04"), "broken");
  EXPECT_EQ(Read(R"({"type":"array","items":"int"})", std::string_view("\x03\x04\x06\x08\x00", 5)), "[ 3i 4i ] ");
  EXPECT_EQ(Read(R"(["null","int"])", "\x02\x04"), "#1 2i ");
  EXPECT_EQ(Read(R"(["null","int"])", "\x04\x04"), "broken");
}

TEST(AvroDecoder, MapsHaveTheOrderOfJavaAndTheLastOfEqualKeys) {
  const std::string schema = R"({"type":"map","values":"int"})";
  EXPECT_EQ(Read(schema, std::string_view("\x06\x02k\x02\x02z\x04\x02"
                                          "a\x06\x00",
                                          11)),
            "( a:3i z:2i k:1i ) ");
  EXPECT_EQ(Read(schema, std::string_view("\x04\x02k\x02\x02k\x04\x00", 8)), "( k:2i ) ");
}

TEST(AvroDecoder, PromisesOfEmptyItemsWithoutEndAreBroken) {
  const std::string nulls = R"({"type":"array","items":{"type":"array","items":"null"}})";
  std::string bytes = "\x80\x01";  // 64 lists of a million nulls each
  for (int i = 0; i < 64; ++i) {
    bytes += std::string("\x80\x80\x7a\x00", 4);
  }
  EXPECT_EQ(Read(nulls, bytes + std::string(1, '\0')), "broken");
}

TEST(AvroResolution, FieldsGoByNameAndDefaultsFill) {
  const std::string writer =
      R"({"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"string"}]})";
  EXPECT_EQ(Read(writer,
                 R"({"type":"record","name":"q","fields":[{"name":"b","type":"bytes"},
                     {"name":"m","type":{"type":"map","values":"long"},"default":{"x":7}},
                     {"name":"u","type":["null","int"],"default":null},{"name":"v","type":["int","string"],"default":"s"},
                     {"name":"a","type":"double"}]})",
                 "\x02\x02z"),
            "{ a=1.000000d b=7ax m=( x:7l ) u=#0 null v=#1 's' } ");
  EXPECT_EQ(Read(writer, R"({"type":"record","name":"r","fields":[{"name":"z","type":"int"}]})", "\x02\x02z"),
            "broken");
  EXPECT_EQ(
      Read(writer, R"({"type":"record","name":"r","fields":[{"name":"z","aliases":["a"],"type":"int"}]})", "\x02\x02z"),
      "{ z=1i } ");
  EXPECT_EQ(
      Read(writer, R"({"type":"record","name":"r","fields":[{"name":"z","type":"int","default":"x"}]})", "\x02\x02z"),
      "broken");
}

TEST(AvroResolution, UnionsTakeTheBranchThatFits) {
  EXPECT_EQ(Read(R"("int")", R"(["null","long"])", "\x02"), "#1 1l ");
  EXPECT_EQ(Read(R"("int")", R"(["null","string"])", "\x02"), "broken");
  EXPECT_EQ(Read(R"(["null","int"])", R"("long")", "\x02\x02"), "1l ");
  EXPECT_EQ(Read(R"(["null","int"])", R"("long")", std::string_view("\0", 1)), "broken");
  EXPECT_EQ(Read(R"(["string","int"])", R"(["int","string"])", "\x02\x02"), "#0 1i ");
}

TEST(AvroSchema, RecursionEndsAtItsDepth) {
  const auto schema = Schema::Parse(
      R"({"type":"record","name":"N","fields":[{"name":"id","type":"int"},{"name":"next","type":["null","N"]}]})");
  ASSERT_TRUE(schema.ok());
  EXPECT_FALSE(ToSpark(schema->root(), {}).ok());
  TypeOptions options;
  options.recursion_depth = 2;
  const auto type = ToSpark(schema->root(), options);
  ASSERT_TRUE(type.ok());
  EXPECT_EQ(type->type.SimpleString(), "struct<id:int,next:struct<id:int>>");
  const std::string deep(4000, '\x02');  // a chain that is deeper than any value may be
  EXPECT_EQ(Read(Text(schema->root()), deep), "broken");
}

TEST(AvroSchema, ShortSchemasOfEndlessTypesAreRefused) {
  std::string text = R"(["null")";
  for (int i = 0; i < 40; ++i) {
    const std::string below = i == 0 ? "int" : "R" + std::to_string(i - 1);
    text += R"(,{"type":"record","name":"R)" + std::to_string(i) + R"(","fields":[{"name":"a","type":")" + below +
            R"("},{"name":"b","type":")" + below + R"("}]})";
  }
  const auto schema = Schema::Parse(text + "]");
  ASSERT_TRUE(schema.ok()) << schema.error().message();
  EXPECT_FALSE(ToSpark(schema->root(), {}).ok());
}

TEST(AvroSchema, WrongOnesAreToldApart) {
  const auto message = [](const char* text) {
    const auto schema = Schema::Parse(text);
    return schema.ok() ? "" : schema.error().message();
  };
  EXPECT_EQ(message(R"({"type":"record","name":"a-b","fields":[]})"), "Illegal character in: a-b");
  EXPECT_EQ(message(R"({"type":"record","name":"ab"})"), R"(Record has no fields: {"type":"record","name":"ab"})");
  EXPECT_EQ(message(R"(["int","int"])"), "Duplicate in union:int");
  EXPECT_EQ(message(R"([["int"],"string"])"), R"(Nested union: [["int"],"string"])");
  EXPECT_EQ(message(R"({"type":"record","name":"n.r","fields":[{"name":"b","type":"q"}]})"), "Undefined schema: n.q");
  EXPECT_EQ(message(R"({"type":"foo"})"), "Undefined schema: foo");
}

TEST(AvroSchema, OfSparkTypesAndBack) {
  const auto type = types::DataType::FromDdl("a INT NOT NULL, b ARRAY<STRUCT<x: DECIMAL(10,2)>>, m MAP<STRING, DATE>");
  ASSERT_TRUE(type.ok());
  const auto schema = Schema::Of(*type, false);
  ASSERT_TRUE(schema.ok());
  const auto again = Schema::Parse(Text(schema->root()));
  ASSERT_TRUE(again.ok()) << Text(schema->root());
  EXPECT_EQ(ToSpark(again->root(), {})->type, *type);
  EXPECT_FALSE(Schema::Of(*types::DataType::FromDdl("m MAP<INT, DATE>"), false).ok());
}

}  // namespace
}  // namespace fleuve::avro
