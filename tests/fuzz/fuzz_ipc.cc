#include "columnar/ipc.h"
#include "tests/fuzz/fuzzer.h"

const char* const kSeeds[] = {"\xff\xff\xff\xff\x70\x00\x00\x00\x10", "\xff\xff\xff\xff", nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)fleuve::columnar::DecodeIpcStream(AsText(data, size));
  return 0;
}
