#include "checkpoint/entries.h"
#include "tests/fuzz/fuzzer.h"

const char* const kSeeds[] = {
    "v1\n{\"batchWatermarkMs\":0,\"batchTimestampMs\":1,\"conf\":{\"a\":\"b\"}}\n{\"logOffset\":0}",
    "v1\n{\"nextBatchWatermarkMs\":0}", "{\"id\":\"00000000-0000-4000-8000-000000000000\"}", nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fleuve::checkpoint::DecodeOffsets(AsText(data, size), "fuzz");
  (void)fleuve::checkpoint::DecodeCommit(AsText(data, size), "fuzz");
  (void)fleuve::checkpoint::DecodeMetadata(AsText(data, size), "fuzz");
  return 0;
}
