// Runs a fuzzer's entry point over its seeds and over mutations of them from a fixed generator.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>

#include "tests/fuzz/fuzzer.h"

int main() {
  constexpr int kRounds = 400;
  std::mt19937 random(42);
  std::size_t runs = 0;
  for (const char* const* seed = kSeeds; *seed != nullptr; ++seed) {
    for (int round = 0; round < kRounds; ++round) {
      std::string text = *seed;
      const int changes = round == 0 ? 0 : 1 + static_cast<int>(random() % 4);
      for (int i = 0; i < changes && !text.empty(); ++i) {
        const std::size_t at = random() % text.size();
        switch (random() % 4) {
          case 0:
            text[at] = static_cast<char>(random());
            break;
          case 1:
            text.erase(at, 1 + random() % 8);
            break;
          case 2:
            text.insert(at, text.substr(random() % text.size(), random() % 16));
            break;
          default:
            text.resize(at);
        }
      }
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      ++runs;
    }
  }
  std::printf("%zu inputs\n", runs);
  return 0;
}
