#include "delta/skipping.h"
#include "delta/table_source.h"
#include "delta/version_checksum_internal.h"
#include "storage/memory_store.h"
#include "tests/fuzz/fuzzer.h"

// Statistics, partition values, paths and version checksums: what a file's entry and its neighbours say as text.
const char* const kSeeds[] = {
    R"({"numRecords":10,"minValues":{"i":1,"s":"a","t":"2024-01-01T00:00:00.000Z","d":-1.5,"n":{"x":"0001-01-01"}},"maxValues":{"i":9,"s":"b","t":"2024-01-02T00:00:00.000Z","d":1e300,"n":{"x":"9999-12-31"}},"nullCount":{"i":0,"s":1,"t":0,"d":10,"n":{"x":2}},"tightBounds":true})",
    "p=a%20b/q=%C3%A9/part-0.parquet",
    "file:///a%2Fb/c",
    "2024-01-02 03:04:05.123456",
    "-99999.99",
    R"({"txnId":"x","tableSizeBytes":1,"numFiles":2,"numMetadata":1,"numProtocol":1,"setTransactions":[{"appId":"a","version":1}],"domainMetadata":[{"domain":"d","configuration":"{}"}],"metadata":{"id":"i","format":{"provider":"parquet","options":{}},"schemaString":"{}","partitionColumns":["p"],"configuration":{"a":"b"}},"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],"writerFeatures":["x"]}})",
    nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleuve;
  using types::DataType;
  const std::string text(AsText(data, size));
  static const storage::Location table{storage::MemoryStore::Make(), "/t"};
  (void)delta::AbsolutePath(table, text);
  (void)delta::NumRecords(std::string_view(text));
  (void)delta::ParseVersionChecksum(text);
  static const DataType schema =
      *DataType::FromDdl("i int, s string, t timestamp, d double, n struct<x: date>, b binary, c decimal(9,2)");
  for (const types::StructField& field : schema.fields()) {
    if (const auto value = delta::ParsePartitionValue(text, field.type); value.ok()) {
      (void)delta::FormatPartitionValue(*value, field.type);
    }
  }
  static const auto columns = [] {
    std::vector<plan::Attribute> all;
    for (const types::StructField& field : schema.fields()) {
      all.push_back({plan::NewAttributeId(), field.name, field.type, true, {}, {}, false});
    }
    return all;
  }();
  static const delta::Metadata metadata;
  const auto filter = [&](const char* op, std::size_t column, types::Value value) {
    return plan::MakeCall(
        op, {plan::MakeAttribute(columns[column]), plan::MakeLiteral(std::move(value), columns[column].type)},
        DataType::Boolean(), true);
  };
  static const auto made =
      delta::FileFilter::Make(metadata, schema,
                              {filter("gt", 0, types::Value(5)), filter("le", 1, types::Value("b")),
                               filter("eq", 2, types::Value(std::int64_t{1})), filter("lt", 3, types::Value(2.5))},
                              columns);
  delta::AddFile file;
  file.path = "f";
  file.stats = text;
  if (made.ok()) {
    (void)made->MayMatch(file);
  }
  return 0;
}
