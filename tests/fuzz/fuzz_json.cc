#include "base/json.h"
#include "tests/fuzz/fuzzer.h"
#include "types/data_type.h"

const char* const kSeeds[] = {
    R"({"type":"struct","fields":[{"name":"a","type":{"type":"array","elementType":"integer","containsNull":true},"nullable":true,"metadata":{}}]})",
    "[1, 2.5, \"x\\u0041\", null, true, {\"a\": {}}]", nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (const auto json = fleuve::Json::Parse(AsText(data, size)); json.ok()) {
    (void)fleuve::types::DataType::FromJson(*json);
    (void)json->Dump();
  }
  return 0;
}
