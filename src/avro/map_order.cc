#include "avro/map_order.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace fleuve::avro {

std::int32_t HashOfBytes(std::string_view key) {
  std::uint32_t hash = 1;
  for (const char byte : key) {
    hash = hash * 31 + static_cast<std::uint32_t>(static_cast<std::int32_t>(static_cast<signed char>(byte)));
  }
  return static_cast<std::int32_t>(hash);
}

std::int32_t HashOfText(std::string_view utf8) {
  std::uint32_t hash = 0;
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    std::uint32_t code = length == 1 ? lead : lead & (0x7Fu >> length);
    for (std::size_t k = 1; k < length && i + k < utf8.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(utf8[i + k]) & 0x3F);
    }
    i += length;
    if (code >= 0x10000) {
      hash = hash * 31 + (0xD800 + ((code - 0x10000) >> 10));
      code = 0xDC00 + ((code - 0x10000) & 0x3FF);
    }
    hash = hash * 31 + code;
  }
  return static_cast<std::int32_t>(hash);
}

std::vector<std::size_t> MapOrder(const std::vector<std::string_view>& keys, std::size_t expected,
                                  std::int32_t (*hash)(std::string_view)) {
  struct Entry {
    std::size_t place;
    std::uint32_t hash;
  };
  std::vector<Entry> entries;
  std::unordered_map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys.size() > 1) {
      const auto [at, fresh] = known.emplace(keys[i], entries.size());
      if (!fresh) {
        entries[at->second].place = i;
        continue;
      }
    }
    const auto raw = static_cast<std::uint32_t>(hash(keys[i]));
    entries.push_back({i, raw ^ (raw >> 16)});
  }
  std::size_t capacity = std::bit_ceil(std::max<std::size_t>(expected, 1));
  while (entries.size() > capacity * 3 / 4) {
    capacity *= 2;
  }
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    return (a.hash & (capacity - 1)) < (b.hash & (capacity - 1));
  });
  std::vector<std::size_t> order;
  order.reserve(entries.size());
  for (const Entry& entry : entries) {
    order.push_back(entry.place);
  }
  return order;
}

}  // namespace fleuve::avro
