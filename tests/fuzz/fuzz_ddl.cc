#include "tests/fuzz/fuzzer.h"
#include "types/data_type.h"

const char* const kSeeds[] = {
    "a INT NOT NULL COMMENT 'x', b ARRAY<STRUCT<x: DECIMAL(10,2), `y z`: STRING>>, m MAP<STRING, DATE>",
    "interval day to second", "struct<a:int>", "array<array<array<varchar(3)>>>", nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fleuve::types::DataType::FromDdl(AsText(data, size));
  return 0;
}
