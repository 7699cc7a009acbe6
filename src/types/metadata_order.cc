#include "types/metadata_order.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fleuve::types {
namespace {

using Member = std::pair<std::string, Json>;

/// Java's hash of a string: over its UTF-16 units.
std::uint32_t JavaHash(std::string_view text) {
  std::uint32_t hash = 0;
  const auto add = [&hash](std::uint32_t unit) { hash = hash * 31 + unit; };
  for (std::size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    std::uint32_t point = length == 1 ? first : first & (0x7fU >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      point = (point << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    }
    if (point >= 0x10000) {
      add(0xd800 + ((point - 0x10000) >> 10));
      add(0xdc00 + ((point - 0x10000) & 0x3ff));
    } else {
      add(point);
    }
    i += length;
  }
  return hash;
}

/// As scala.collection.mutable.HashMap goes through its buckets.
std::vector<Member> InMutableMap(std::vector<Member> members) {
  std::size_t buckets = 16;
  while (members.size() >= buckets * 3 / 4) {
    buckets *= 2;
  }
  const auto place = [buckets](const Member& member) {
    const std::uint32_t hash = JavaHash(member.first);
    const std::uint32_t spread = hash ^ (hash >> 16);
    return std::pair(spread & (buckets - 1), static_cast<std::int32_t>(spread));
  };
  std::stable_sort(members.begin(), members.end(),
                   [&place](const Member& a, const Member& b) { return place(a) < place(b); });
  return members;
}

/// As scala.collection.immutable.HashMap goes through its tree of 32 branches: values of a node first.
void InImmutableMap(std::vector<Member> members, int shift, std::vector<Member>* out) {
  const auto branch = [shift](const Member& member) {
    const std::uint32_t code = JavaHash(member.first);
    std::uint32_t hash = code + ~(code << 9);
    hash ^= hash >> 14;
    hash += hash << 4;
    hash ^= hash >> 10;
    return shift < 32 ? (hash >> shift) & 31 : 0;
  };
  std::map<std::uint32_t, std::vector<Member>> branches;
  for (Member& member : members) {
    branches[branch(member)].push_back(std::move(member));
  }
  for (auto& [at, inside] : branches) {
    if (inside.size() == 1 || shift >= 32) {
      std::move(inside.begin(), inside.end(), std::back_inserter(*out));
      inside.clear();
    }
  }
  for (auto& [at, inside] : branches) {
    if (!inside.empty()) {
      InImmutableMap(std::move(inside), shift + 5, out);
    }
  }
}

}  // namespace

Json InMetadataOrder(const Json& metadata) {
  if (metadata.is_array()) {
    Json::Array items;
    for (const Json& item : metadata.items()) {
      items.push_back(InMetadataOrder(item));
    }
    return Json(std::move(items));
  }
  if (!metadata.is_object() || metadata.fields().empty()) {
    return metadata;
  }
  std::vector<Member> members;
  for (const auto& [key, value] : metadata.fields()) {
    members.emplace_back(key, InMetadataOrder(value));
  }
  members = InMutableMap(std::move(members));
  if (members.size() > 4) {
    std::vector<Member> ordered;
    InImmutableMap(std::move(members), 0, &ordered);
    members = std::move(ordered);
  }
  return Json(Json::Object(std::move(members)));
}

}  // namespace fleuve::types
