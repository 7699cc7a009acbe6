#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "base/bytes.h"
#include "delta/json_checksum_internal.h"

namespace fleuve::delta {
namespace {

constexpr std::array<std::uint32_t, 64> kSines{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};
constexpr std::array<int, 16> kShifts{7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21};

void Canonical(const Json& json, const std::string& path, std::vector<std::string>& out, bool top) {
  if (json.is_object()) {
    for (const auto& [key, value] : json.fields()) {
      if (top && key == "checksum") {
        continue;
      }
      Canonical(value, path + (path.empty() ? "" : "+") + '"' + PercentEncode(key) + '"', out, false);
    }
    return;
  }
  if (json.is_array()) {
    for (std::size_t i = 0; i < json.items().size(); ++i) {
      Canonical(json.items()[i], path + (path.empty() ? "" : "+") + std::to_string(i), out, false);
    }
    return;
  }
  out.push_back(path + "=" + (json.is_string() ? '"' + PercentEncode(json.AsString()) + '"' : json.Dump()));
}

}  // namespace

std::string Md5Hex(std::string_view text) {
  std::string message(text);
  message += '\x80';
  while (message.size() % 64 != 56) {
    message += '\0';
  }
  const std::uint64_t bits = static_cast<std::uint64_t>(text.size()) * 8;
  for (int i = 0; i < 8; ++i) {
    message += static_cast<char>(bits >> (8 * i) & 0xFF);
  }
  std::array<std::uint32_t, 4> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  for (std::size_t at = 0; at < message.size(); at += 64) {
    std::array<std::uint32_t, 16> words{};
    std::memcpy(words.data(), message.data() + at, 64);
    auto [a, b, c, d] = state;
    for (std::uint32_t i = 0; i < 64; ++i) {
      std::uint32_t f = 0;
      std::uint32_t g = 0;
      if (i < 16) {
        f = (b & c) | (~b & d);
        g = i;
      } else if (i < 32) {
        f = (d & b) | (~d & c);
        g = (5 * i + 1) % 16;
      } else if (i < 48) {
        f = b ^ c ^ d;
        g = (3 * i + 5) % 16;
      } else {
        f = c ^ (b | ~d);
        g = 7 * i % 16;
      }
      const std::uint32_t next = b + std::rotl(a + f + kSines[i] + words[g], kShifts[i / 16 * 4 + i % 4]);
      a = d;
      d = c;
      c = b;
      b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }
  std::string bytes(16, '\0');
  std::memcpy(bytes.data(), state.data(), 16);
  return AsciiLower(HexEncode(bytes));
}

std::string CanonicalJson(const Json& json) {
  std::vector<std::string> lines;
  Canonical(json, "", lines, true);
  std::sort(lines.begin(), lines.end());
  return Join(lines, ",");
}

}  // namespace fleuve::delta
