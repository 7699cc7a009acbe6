#include "delta/actions.h"
#include "tests/fuzz/fuzzer.h"

const char* const kSeeds[] = {
    R"({"commitInfo":{"timestamp":1,"operation":"WRITE","operationParameters":{"mode":"Append"}}}
{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["deletionVectors"],"writerFeatures":["deletionVectors"]}}
{"metaData":{"id":"x","format":{"provider":"parquet","options":{}},"schemaString":"{\\"type\\":\\"struct\\",\\"fields\\":[]}","partitionColumns":[],"configuration":{}}}
{"add":{"path":"a","partitionValues":{"p":null},"size":1,"modificationTime":2,"dataChange":true,"stats":"{\\"numRecords\\":1}"}}
{"remove":{"path":"a","deletionTimestamp":1,"dataChange":true}}
{"txn":{"appId":"q","version":3}})",
    nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fleuve::delta::ParseActions(AsText(data, size), "fuzz");
  return 0;
}
