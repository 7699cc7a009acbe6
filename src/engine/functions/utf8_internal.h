#pragma once

/// \file
/// Steps over UTF-8 that cope with any bytes: a byte that starts nothing counts as one character, as in Spark's
/// strings.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace fleuve::engine {

/// Most texts are plain ASCII, which short loops tell faster than anything that knows all of UTF-8.
inline bool IsAscii(const char* text, std::size_t size) {
  std::uint64_t bits = 0;
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text + at, 8);
    bits |= word;
  }
  for (; at < size; ++at) {
    bits |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[at]));
  }
  return (bits & 0x8080808080808080U) == 0;
}

/// The text with U+FFFD in place of bytes that are no UTF-8, as Java decodes it.
std::string MakeValidUtf8(std::string_view text);

inline std::size_t CharacterBytes(unsigned char first) {
  if (first < 0xC2) {
    return 1;
  }
  if (first < 0xE0) {
    return 2;
  }
  if (first < 0xF0) {
    return 3;
  }
  return first < 0xF5 ? 4 : 1;
}

/// Bytes of the character at `at`, never beyond the end.
inline std::size_t StepAt(std::string_view text, std::size_t at) {
  std::size_t bytes = CharacterBytes(static_cast<unsigned char>(text[at]));
  return bytes > text.size() - at ? text.size() - at : bytes;
}

inline std::int64_t CountCharacters(std::string_view text) {
  std::int64_t count = 0;
  for (std::size_t at = 0; at < text.size(); at += StepAt(text, at)) {
    ++count;
  }
  return count;
}

/// Byte offset of the character number `n` (from 0), the size where there are fewer.
inline std::size_t OffsetOf(std::string_view text, std::int64_t n) {
  std::size_t at = 0;
  while (n > 0 && at < text.size()) {
    at += StepAt(text, at);
    --n;
  }
  return at;
}

inline std::uint32_t DecodeAt(std::string_view text, std::size_t at) {
  std::size_t bytes = StepAt(text, at);
  auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(text[at + i])); };
  switch (bytes) {
    case 2:
      return ((byte(0) & 0x1F) << 6) | (byte(1) & 0x3F);
    case 3:
      return ((byte(0) & 0x0F) << 12) | ((byte(1) & 0x3F) << 6) | (byte(2) & 0x3F);
    case 4:
      return ((byte(0) & 0x07) << 18) | ((byte(1) & 0x3F) << 12) | ((byte(2) & 0x3F) << 6) | (byte(3) & 0x3F);
    default:
      return byte(0);
  }
}

inline void AppendUtf8(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += static_cast<char>(0xC0 | (c >> 6));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    out += static_cast<char>(0xE0 | (c >> 12));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  } else {
    out += static_cast<char>(0xF0 | (c >> 18));
    out += static_cast<char>(0x80 | ((c >> 12) & 0x3F));
    out += static_cast<char>(0x80 | ((c >> 6) & 0x3F));
    out += static_cast<char>(0x80 | (c & 0x3F));
  }
}

inline bool IsAscii(std::string_view text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) {
      return false;
    }
  }
  return true;
}

std::string UpperText(std::string_view text);
std::string LowerText(std::string_view text);

}  // namespace fleuve::engine
