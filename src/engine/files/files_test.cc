// Readers, writers and inference of text formats, through the engine and by themselves.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "base/ids.h"
#include "columnar/ipc.h"
#include "engine/engine.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/csv_record_internal.h"
#include "engine/files/date_pattern_internal.h"
#include "engine/infer.h"
#include "plan/logical_plan.h"
#include "storage/object_store.h"

namespace fleuve::engine {
namespace {

using ::testing::ElementsAre;
using types::DataType;
using types::Value;
using Rows = std::vector<Value::List>;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() : folder_(std::filesystem::temp_directory_path() / ("fleuve-files-" + NewUuid())) {
    std::filesystem::create_directories(folder_);
    EngineOptions options;
    options.threads = 2;
    engine_ = std::move(Engine::Open(options)).value();
  }
  ~FilesTest() override { std::filesystem::remove_all(folder_); }

  plan::ScanFile Put(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << text;
    plan::ScanFile file;
    file.path = path;
    file.uri = storage::ToFileUri(path);
    file.size_bytes = static_cast<std::int64_t>(text.size());
    return file;
  }

  static plan::PlanPtr ScanOf(plan::FileFormat format, const std::string& ddl, std::vector<plan::ScanFile> files,
                              plan::Options options = {}) {
    auto scan = std::make_shared<plan::FileScan>();
    scan->format = format;
    scan->data_schema = std::move(DataType::FromDdl(ddl)).value();
    scan->partition_schema = DataType::Struct({});
    scan->constants_schema = DataType::Struct({});
    scan->options = std::move(options);
    scan->files = std::move(files);
    auto node = std::make_shared<plan::LogicalPlan>();
    node->kind = plan::PlanKind::kFileScan;
    for (const auto& field : scan->data_schema.fields()) {
      plan::Attribute attribute;
      attribute.id = plan::NewAttributeId();
      attribute.name = field.name;
      attribute.type = field.type;
      node->output.push_back(std::move(attribute));
    }
    node->scan = std::move(scan);
    return node;
  }

  Result<Rows> Run(const plan::PlanPtr& plan) {
    FLEUVE_ASSIGN(auto reader, engine_->Execute(plan, {}));
    FLEUVE_ASSIGN(const auto batches, ReadAll(*reader));
    Rows rows;
    for (const auto& batch : batches) {
      FLEUVE_ASSIGN(auto some, columnar::RowsFromBatch(batch));
      rows.insert(rows.end(), some.begin(), some.end());
    }
    return rows;
  }

  Rows Read(plan::FileFormat format, const std::string& ddl, const std::string& text, plan::Options options = {}) {
    auto rows = Run(ScanOf(format, ddl, {Put("in" + std::to_string(++count_), text)}, std::move(options)));
    if (!rows.ok()) {
      ADD_FAILURE() << rows.error().ToString();
      return {};
    }
    return *rows;
  }

  std::filesystem::path folder_;
  std::unique_ptr<Engine> engine_;
  int count_ = 0;
};

constexpr auto kJson = plan::FileFormat::kJson;
constexpr auto kCsv = plan::FileFormat::kCsv;

TEST_F(FilesTest, MalformedJsonFollowsTheMode) {
  const std::string text =
      "{\"id\": 1, \"v\": \"ok\"}\n{\"id\": 2, \"v\":\n{\"id\": \"text\", \"v\": \"half\"}\n[3]\n\n  \nnull\n";
  const std::string ddl = "id int, v string, _corrupt_record string";
  EXPECT_THAT(Read(kJson, ddl, text),
              ElementsAre(Value::List{1, "ok", Value()}, Value::List{Value(), Value(), "{\"id\": 2, \"v\":"},
                          Value::List{Value(), "half", "{\"id\": \"text\", \"v\": \"half\"}"},
                          Value::List{Value(), Value(), "[3]"}, Value::List{Value(), Value(), "null"}));
  EXPECT_THAT(Read(kJson, "id int, v string", text, {{"mode", "DROPMALFORMED"}}), ElementsAre(Value::List{1, "ok"}));
  auto failed = Run(ScanOf(kJson, "id int", {Put("bad", text)}, {{"mode", "failfast"}}));
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().condition(), "FAILED_READ_FILE.NO_HINT");
  ASSERT_NE(failed.error().cause(), nullptr);
  EXPECT_EQ(failed.error().cause()->condition(), "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION");
}

TEST_F(FilesTest, LimitsOfCsvAreErrorsInEveryMode) {
  for (const char* mode : {"PERMISSIVE", "DROPMALFORMED", "FAILFAST"}) {
    const plan::Options columns = {{"mode", mode}, {"maxColumns", "2"}};
    const plan::Options chars = {{"mode", mode}, {"maxCharsPerColumn", "3"}};
    for (const plan::Options& options : {columns, chars}) {
      auto failed = Run(ScanOf(kCsv, "a string, b string", {Put("wide", "1,2\n1,2345,3\n")}, options));
      ASSERT_FALSE(failed.ok()) << mode;
      EXPECT_EQ(failed.error().condition(), "FAILED_READ_FILE.NO_HINT") << mode;
    }
  }
}

TEST_F(FilesTest, TheColumnOfCorruptRecordsNeedsOthersAndText) {
  auto alone = Run(ScanOf(kJson, "_corrupt_record string", {Put("alone", "{\n")}, {}));
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.error().condition(), "UNSUPPORTED_FEATURE.QUERY_ONLY_CORRUPT_RECORD_COLUMN");
  EXPECT_TRUE(
      Run(ScanOf(kJson, "_corrupt_record string", {Put("held", "{\n")}, {{"fleuve.corruptRecordAlone", "true"}})).ok());
  auto number = Run(ScanOf(kCsv, "a int, _corrupt_record int", {Put("number", "1\n")}, {}));
  ASSERT_FALSE(number.ok());
  EXPECT_EQ(number.error().condition(), "INVALID_CORRUPT_RECORD_TYPE");
}

TEST_F(FilesTest, JsonValuesTakeTheTypesOfTheSchema) {
  const auto rows = Read(kJson,
                         "b boolean, i int, l bigint, d double, n decimal(6,2), s string, t timestamp, y date, "
                         "a array<int>, m map<string,int>, o struct<x:int,y:string>, z binary",
                         "{\"b\":true,\"i\":7,\"l\":-9223372036854775808,\"d\":\"NaN\",\"n\":12.345,\"s\":{\"q\": 1},"
                         "\"t\":\"2024-01-05T10:00:00Z\",\"y\":\"2024-01-05\",\"a\":[1,null,3],\"m\":{\"k\":1,\"k\":2},"
                         "\"o\":{\"y\":\"p\"},\"z\":\"AQI=\"}\n"
                         "{\"i\":2147483648,\"d\":NaN,\"a\":[1,\"x\"],\"s\":\"a\\u00e9\\n\",\"i\":5,\"s\":1.50}\n",
                         {});
  ASSERT_EQ(rows.size(), 2);
  EXPECT_EQ(rows[0][0], Value(true));
  EXPECT_EQ(rows[0][2], Value(INT64_MIN));
  EXPECT_EQ(rows[0][4], Value(types::Int128{1235}));
  EXPECT_EQ(rows[0][5], Value("{\"q\": 1}"));
  EXPECT_EQ(rows[0][6], Value(std::int64_t{1704448800000000}));
  EXPECT_EQ(rows[0][8], Value(Value::List{1, Value(), 3}));
  EXPECT_EQ(rows[0][9], Value(Value::List{Value(Value::List{"k", 2})}));
  EXPECT_EQ(rows[0][10], Value(Value::List{Value(), "p"}));
  EXPECT_EQ(rows[0][11], Value(std::string("\x01\x02")));
  EXPECT_EQ(rows[1][1], Value(5));
  EXPECT_EQ(rows[1][5], Value("1.50"));
  EXPECT_TRUE(rows[1][8].is_null());
}

TEST_F(FilesTest, WhatFindsNoPlaceIsRescued) {
  const auto rows =
      Read(kJson, "id int, o struct<x:int>, _r string",
           "{\"id\":1,\"o\":{\"x\":1,\"n\":[1, 2]},\"Id\":2}\n{\"id\":\"12O0\",\"o\":{\"x\":\"q\"}}\n{\"id\":3}\n",
           {{"rescuedDataColumn", "_r"}, {"fleuve.rescuedFilePath", "false"}, {"mode", "FAILFAST"}});
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows[0][2], Value("{\"o\":{\"n\":[1,2]},\"Id\":2}"));
  EXPECT_EQ(rows[1][2], Value("{\"id\":\"12O0\",\"o\":{\"x\":\"q\"}}"));
  EXPECT_TRUE(rows[1][0].is_null());
  EXPECT_TRUE(rows[2][2].is_null());
}

TEST_F(FilesTest, ArraysAtTheTopAreRows) {
  std::string text = "[";
  for (int i = 0; i < 5000; ++i) {
    text += (i == 0 ? "{\"i\":" : ",\n{\"i\":") + std::to_string(i) + "}";
  }
  const auto rows = Read(kJson, "i int", text + "]", {{"multiLine", "true"}});
  ASSERT_EQ(rows.size(), 5000);
  EXPECT_EQ(rows[4999][0], Value(4999));
}

TEST_F(FilesTest, LongTextsOutliveTheBlocksTheyWereReadFrom) {
  std::string text;
  Rows expected;
  for (int i = 0; i < 20000; ++i) {
    const std::string number = std::to_string(i);
    const std::string plain = number + std::string(40 + static_cast<std::size_t>(i % 90), 'p');
    const std::string escaped = number + std::string(30, 'e') + "\n";
    text += "{\"a\":\"" + plain + "\",\"o\":{\"s\":\"" + number + std::string(30, 'e') + "\\n\"},\"l\":[\"" + plain +
            "\",\"short\"],\"m\":{\"" + plain + "\":\"" + plain + "\"}}\n";
    if (i % 1000 == 7) {
      text += "[{\"a\":\"" + plain + "\"},{\"a\":\"" + plain + "\"}]\n";
    }
    expected.push_back({plain, Value(Value::List{escaped}), Value(Value::List{plain, "short"}),
                        Value(Value::List{Value(Value::List{plain, plain})})});
    if (i % 1000 == 7) {
      expected.insert(expected.end(), 2, {plain, Value(), Value(), Value()});
    }
  }
  const auto rows = Read(kJson, "a string, o struct<s:string>, l array<string>, m map<string,string>", text);
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i], expected[i]) << i;
  }
}

TEST_F(FilesTest, BytesThatAreNoTextAreReplaced) {
  EXPECT_THAT(Read(kCsv, "id int, name string", "1,caf\xe9\n"), ElementsAre(Value::List{1, "caf\xef\xbf\xbd"}));
  EXPECT_THAT(Read(plan::FileFormat::kText, "value string", "a\xff\xffz\n"),
              ElementsAre(Value::List{"a\xef\xbf\xbd\xef\xbf\xbdz"}));
  EXPECT_THAT(Read(kJson, "id int, _corrupt_record string", "{\"id\":\"\xe9\"}\n"),
              ElementsAre(Value::List{Value(), "{\"id\":\"\xef\xbf\xbd\"}"}));
}

TEST_F(FilesTest, PartsOfALargeFileGiveEachLineOnceInOrder) {
  std::string text;
  std::mt19937 random(7);
  std::int64_t lines = 0;
  while (text.size() < (40U << 20)) {
    text += "{\"i\":" + std::to_string(lines++) + ",\"s\":\"" + std::string(random() % 300, 'x') + "\"}" +
            (random() % 2 == 0 ? "\n" : "\r\n");
  }
  const auto rows = Read(kJson, "i bigint", text);
  ASSERT_EQ(static_cast<std::int64_t>(rows.size()), lines);
  for (std::int64_t i = 0; i < lines; ++i) {
    ASSERT_EQ(rows[static_cast<std::size_t>(i)][0], Value(i));
  }
}

TEST_F(FilesTest, CsvFieldsAreQuotedAsSparkDoes) {
  const std::string text = "1,\"Smith, John\",1.5\n2,\"say \"\"hi\"\"\",\n3,,2.0\n 4 , x ,3\n5,\"a\\\"b\",\n6,\"open\n";
  const auto rows = Read(kCsv, "id string, name string, score string", text);
  ASSERT_EQ(rows.size(), 6);
  EXPECT_THAT(rows[0], ElementsAre(Value("1"), Value("Smith, John"), Value("1.5")));
  EXPECT_THAT(rows[1], ElementsAre(Value("2"), Value("\"say \"\"hi\"\"\""), Value()));
  EXPECT_THAT(rows[3], ElementsAre(Value(" 4 "), Value(" x "), Value("3")));
  EXPECT_THAT(rows[4], ElementsAre(Value("5"), Value("a\"b"), Value()));
  EXPECT_THAT(rows[5], ElementsAre(Value("6"), Value("open"), Value()));
  const auto joined = Read(kCsv, "a int, b string", "a,b\n1,\"x\ny\"\n# no\n2,z\n",
                           {{"header", "true"}, {"multiLine", "true"}, {"comment", "#"}});
  EXPECT_THAT(joined, ElementsAre(Value::List{1, "x\ny"}, Value::List{2, "z"}));
}

TEST_F(FilesTest, JsonSchemasAreInferredAsSparkDoes) {
  InferOptions options;
  auto schema = InferJson({Put("a",
                               "{\"i\":1,\"d\":1,\"m\":5,\"o\":{\"x\":1},\"l\":[1],\"e\":\"\"}\n"
                               "{\"i\":2,\"d\":2.5,\"m\":\"five\",\"o\":{\"y\":\"q\"},\"l\":[0.5],\"n\":null,"
                               "\"big\":99999999999999999999}\n")},
                          options);
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->SimpleString(),
            "struct<big:decimal(20,0),d:double,e:string,i:bigint,l:array<double>,m:string,n:string,"
            "o:struct<x:bigint,y:string>>");
  options.options["primitivesAsString"] = "true";
  schema = InferJson({Put("b", "{\"z\":1,\"a\":{\"b\":true}}\n{bad\n")}, options);
  EXPECT_EQ(schema->SimpleString(), "struct<_corrupt_record:string,a:struct<b:string>,z:string>");
}

TEST_F(FilesTest, CsvSchemasAreInferredAsSparkDoes) {
  InferOptions options;
  options.options = {{"header", "true"}, {"inferSchema", "true"}, {"sep", ";"}};
  const auto schema = InferCsv({Put("a",
                                    "id;day;ok;t;w;\n1;2024-01-05;true;2024-01-05 10:00:00;1;x\n"
                                    "3000000000;2024-02-06;false;2024-01-05T11:30:00;1.5;\n")},
                               options);
  ASSERT_TRUE(schema.ok());
  EXPECT_EQ(schema->SimpleString(), "struct<id:bigint,day:date,ok:boolean,t:timestamp,w:double,_c5:string>");
}

TEST_F(FilesTest, WrittenRowsAreReadBack) {
  std::mt19937_64 random(11);
  const std::string ddl =
      "b boolean, i int, l bigint, d double, n decimal(20,4), s string, t timestamp, y date, a array<string>, "
      "o struct<x:bigint,y:string>";
  const types::Schema schema = std::move(DataType::FromDdl(ddl)).value();
  const auto maybe = [&](Value value) { return random() % 5 == 0 ? Value() : value; };
  const auto text = [&] {
    static const char* const kPieces[] = {"a", "é", "\"", "\\", ",", "\t", "{", "😀", " ", "x:y", "null"};
    std::string out;
    for (std::uint64_t k = random() % 6; k > 0; --k) {
      out += kPieces[random() % std::size(kPieces)];
    }
    return out + ".";
  };
  Rows rows;
  for (int k = 0; k < 3000; ++k) {
    rows.push_back(
        {maybe(Value(random() % 2 == 0)), maybe(Value(static_cast<std::int64_t>(static_cast<int>(random())))),
         maybe(Value(static_cast<std::int64_t>(random()))), maybe(Value(std::ldexp(random() % 100000, -7))),
         maybe(Value(types::Int128(static_cast<std::int64_t>(random() / 4)))), maybe(Value(text())),
         maybe(Value(static_cast<std::int64_t>(random() % 4000000000000) * 1000)),
         maybe(Value(static_cast<std::int64_t>(random() % 40000))), maybe(Value(Value::List{Value(text()), Value()})),
         maybe(Value(Value::List{Value(static_cast<std::int64_t>(random() % 100)), Value(text())}))});
  }
  auto node = std::make_shared<plan::LogicalPlan>();
  node->kind = plan::PlanKind::kRows;
  auto held = std::make_shared<plan::RowScan>();
  held->batches.push_back(std::move(columnar::BatchFromRows(schema, rows)).value());
  node->rows = held;
  for (const auto& field : schema.fields()) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = field.name;
    attribute.type = field.type;
    node->output.push_back(std::move(attribute));
  }
  for (const char* compression : {"none", "gzip", "bzip2"}) {
    WriteSpec spec;
    spec.format = kJson;
    spec.folder = (folder_ / compression).string();
    spec.compression = compression;
    auto written = engine_->WriteFiles(node, spec, {});
    ASSERT_TRUE(written.ok()) << written.error().ToString();
    ASSERT_EQ(written->files.size(), 1);
    plan::ScanFile file;
    file.path = spec.folder + "/" + written->files[0].relative_path;
    file.uri = storage::ToFileUri(file.path);
    file.size_bytes = written->files[0].size_bytes;
    auto read = Run(ScanOf(kJson, ddl, {file}, {{"mode", "FAILFAST"}}));
    ASSERT_TRUE(read.ok()) << read.error().ToString();
    ASSERT_EQ(read->size(), rows.size());
    for (std::size_t k = 0; k < rows.size(); ++k) {
      ASSERT_EQ((*read)[k], rows[k]) << k;
    }
  }
}

TEST_F(FilesTest, BrokenTextNeverBreaksTheReader) {
  std::mt19937 random(3);
  const std::string good = "{\"a\":1,\"b\":[1,2,{\"c\":\"x\\u00e9\"}],\"d\":{\"e\":null,\"f\":-1.5e3},\"g\":\"tail\"}";
  const std::string noise = "{}[]\",:\\\x01\xff'0-+.eEtfn \t";
  std::string json;
  std::int64_t lines = 0;
  for (int k = 0; k < 20000; ++k) {
    std::string line = good;
    for (std::uint32_t n = random() % 4; n > 0; --n) {
      const std::size_t at = random() % line.size();
      switch (random() % 3) {
        case 0:
          line[at] = noise[random() % noise.size()];
          break;
        case 1:
          line.erase(at, 1 + random() % 5);
          break;
        default:
          line.insert(at, 1, noise[random() % noise.size()]);
      }
      if (line.empty()) {
        line = "x";
      }
    }
    json += line + "\n";
    ++lines;
  }
  const std::string ddl =
      "a int, b array<struct<c:string>>, d struct<e:string,f:double>, g string, _corrupt_record string";
  const auto kept = Read(kJson, ddl, json);
  EXPECT_GT(static_cast<std::int64_t>(kept.size()), lines * 9 / 10);
  const auto rescued = Read(kJson, ddl + ", _r string", json, {{"rescuedDataColumn", "_r"}});
  EXPECT_EQ(rescued.size(), kept.size());
  Read(kCsv, "a string, b int, c string", json, {{"multiLine", "true"}, {"quote", "'"}});
  Read(kCsv, "a string, b int, c string", json, {});
}

/// An Avro file of one record {v: <type>} whose value is `value`.
std::string AvroFile(const std::string& type, const std::string& value) {
  const auto number = [](std::size_t n) {
    std::string out;
    for (n *= 2; n >= 128; n >>= 7) {
      out.push_back(static_cast<char>(n | 128));
    }
    return out + static_cast<char>(n);
  };
  const auto text = [&](const std::string& bytes) { return number(bytes.size()) + bytes; };
  const std::string schema = R"({"type": "record", "name": "r", "fields": [{"name": "v", "type": )" + type + "}]}";
  const std::string sync(16, 's');
  return "Obj\x01" + number(1) + text("avro.schema") + text(schema) + number(0) + sync + number(1) + text(value) + sync;
}

TEST_F(FilesTest, AvroValuesBeyondTheirTypeAreRefused) {
  const auto read = [&](const std::string& type, const std::string& ddl, const std::string& value) {
    return Run(ScanOf(kJson, ddl, {Put("avro" + std::to_string(++count_), AvroFile(type, value))},
                      {{"fleuve.container", "avro"}}));
  };
  const std::string nulls = R"({"type": "array", "items": "null"})";
  const std::string millis = R"({"type": "long", "logicalType": "timestamp-millis"})";
  const std::string decimal = R"({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0})";
  const std::string huge = std::string(9, '\xff') + '\x01';           // the smallest long
  const std::string most = '\xfe' + std::string(8, '\xff') + '\x01';  // the greatest
  const auto rows = read(nulls, "v array<string>", std::string("\x04\x00", 2));
  ASSERT_TRUE(rows.ok()) << rows.error().ToString();
  EXPECT_THAT(*rows, ElementsAre(Value::List{Value(Value::List{Value(), Value()})}));
  EXPECT_FALSE(read(nulls, "v array<string>", most + '\0').ok());
  EXPECT_FALSE(read(nulls, "v array<string>", huge + std::string(2, '\0')).ok());
  const auto time = read(millis, "v timestamp", "\x02");
  ASSERT_TRUE(time.ok()) << time.error().ToString();
  EXPECT_THAT(*time, ElementsAre(Value::List{std::int64_t{1000}}));
  EXPECT_FALSE(read(millis, "v timestamp", most).ok());
  const auto number = read(decimal, "v decimal(38,0)", '\x28' + std::string(19, '\xff') + '\xfe');
  ASSERT_TRUE(number.ok()) << number.error().ToString();
  EXPECT_THAT(*number, ElementsAre(Value::List{Value(types::Int128{-2})}));
  EXPECT_FALSE(read(decimal, "v decimal(38,0)", "\x28\x01" + std::string(19, '\0')).ok());
}

TEST(DatePatternTest, ReadsAndWritesJavaPatterns) {
  const auto parse = [](const char* pattern, const char* text) {
    auto times = TimeText::Make("", pattern, "", "Europe/Paris");
    EXPECT_TRUE(times.ok());
    return times->ParseTimestamp(text);
  };
  EXPECT_EQ(parse("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-05T10:00:00.250Z"), 1704448800250000);
  EXPECT_EQ(parse("yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "2024-01-05T11:00:00"), 1704448800000000);
  EXPECT_EQ(parse("dd/MM/yyyy hh:mm a", "05/01/2024 11:00 AM"), 1704448800000000);
  EXPECT_EQ(parse("MMM d, yyyy H:mm", "Jan 5, 2024 11:00"), 1704448800000000);
  EXPECT_EQ(parse("yyyyMMddHHmmss", "20240105110000"), 1704448800000000);
  EXPECT_EQ(parse("dd/MM/yyyy", "31/02/2024"), std::nullopt);
  const auto times = TimeText::Make("", "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]", "", "Europe/Paris");
  const auto other = TimeText::Make("dd.MM.yyyy", "dd.MM.yyyy", "", "Europe/Paris");
  EXPECT_EQ(other->ReadTimestamp("2024-01-05 11:00:00", false), std::nullopt);
  EXPECT_EQ(other->ReadTimestamp("2024-01-05 11:00:00", true), 1704448800000000);
  EXPECT_EQ(other->ReadTimestamp("2024-01-05T11:00:00GMT+01:00", true), 1704448800000000);
  EXPECT_EQ(other->ReadDate("2024-01-05", false), std::nullopt);
  EXPECT_EQ(other->ReadDate("2024-01-05", true), 19727);
  std::string out;
  times->FormatTimestamp(1704448800250000, out);
  EXPECT_EQ(out, "2024-01-05T11:00:00.250+01:00");
}

}  // namespace
}  // namespace fleuve::engine
