#include <string>

#include "tests/fuzz/fuzzer.h"
#include "types/time_zone.h"
#include "types/value.h"

const char* const kSeeds[] = {
    "2024-01-05T10:00:00.123456+01:00", "+12345-01-01", "1.25e-10", "GMT+08:30", "Europe/Paris", nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = AsText(data, size);
  (void)fleuve::types::ParseDate(text);
  (void)fleuve::types::ParseTimestamp(text, "UTC");
  (void)fleuve::types::DecimalFromString(text);
  (void)fleuve::types::TimeZone::Find(text.substr(0, 64));
  return 0;
}
