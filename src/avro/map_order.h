#pragma once

/// \file
/// The order of a map's entries. Avro has none, and Java's library, whose order Spark shows, keeps entries in hash
/// maps.

#include <cstdint>
#include <string_view>
#include <vector>

namespace fleuve::avro {

/// Of a key as the decoder holds it: of its bytes.
std::int32_t HashOfBytes(std::string_view key);
/// Of a key as the encoder holds it: of its UTF-16 units.
std::int32_t HashOfText(std::string_view utf8);

/// The places of `keys` in the order of a Java hash map made for `expected` entries into which they were put one after
/// the other. Of equal keys the last one stands where the first one would.
std::vector<std::size_t> MapOrder(const std::vector<std::string_view>& keys, std::size_t expected,
                                  std::int32_t (*hash)(std::string_view));

}  // namespace fleuve::avro
