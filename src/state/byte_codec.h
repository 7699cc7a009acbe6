#pragma once

/// \file
/// Numbers and lengths as bytes: what keys, values, changelogs and snapshots are written with.

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

namespace fleuve::state {

/// The bytes of a number or a plain struct as they lie in memory.
template <typename T>
void AppendRaw(std::string& out, const T& value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

/// Takes them from the front of `text`; false where it ends first.
template <typename T>
bool TakeRaw(std::string_view& text, T* value) {
  if (text.size() < sizeof(T)) {
    return false;
  }
  std::memcpy(value, text.data(), sizeof(T));
  text.remove_prefix(sizeof(T));
  return true;
}

/// A length in as few groups of seven bits as it needs, the lowest first.
inline void AppendLength(std::string& out, std::size_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

/// False where the text ends first.
inline bool TakeLength(std::string_view& text, std::size_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !text.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(text.front());
    text.remove_prefix(1);
    *value |= static_cast<std::size_t>(byte & 0x7F) << shift;
    if (byte < 0x80) {
      return true;
    }
  }
  return false;
}

}  // namespace fleuve::state
