#pragma once

/// \file
/// What every fuzzer gives: seeds (ended by null) and the entry point that libFuzzer calls too.

#include <cstddef>
#include <cstdint>
#include <string_view>

extern const char* const kSeeds[];
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

inline std::string_view AsText(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
