#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>

#include "delta/log_listing_internal.h"

namespace fleuve::delta {
namespace {

/// A number of exactly these digits; -1 otherwise.
std::int64_t Number(std::string_view digits) {
  std::int64_t number = -1;
  const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return end.ec == std::errc() && end.ptr == digits.data() + digits.size() ? number : -1;
}

constexpr std::size_t kDigits = 20;

}  // namespace

std::int64_t VersionOf(std::string_view name) { return name.size() < kDigits ? -1 : Number(name.substr(0, kDigits)); }

bool IsCommitName(std::string_view name) {
  return name.size() == kDigits + 5 && name.ends_with(".json") && VersionOf(name) >= 0;
}

std::string_view NameOf(const storage::ObjectMeta& meta) {
  return std::string_view(meta.path).substr(meta.path.rfind('/') + 1);
}

LogListing SortLog(const std::vector<storage::ObjectMeta>& entries) {
  LogListing listing;
  std::map<std::pair<std::int64_t, std::size_t>, std::map<std::int64_t, std::string>> parts;
  for (const storage::ObjectMeta& entry : entries) {
    const std::string_view name = NameOf(entry);
    const std::int64_t version = VersionOf(name);
    if (version < 0 || entry.is_directory) {
      continue;
    }
    if (IsCommitName(name)) {
      listing.commits.push_back(entry);
      continue;
    }
    const std::string_view rest = name.substr(kDigits);
    if (rest.size() == 1 + kDigits + 15 && rest.ends_with(".compacted.json")) {
      const std::int64_t last = Number(rest.substr(1, kDigits));
      if (last > version) {
        listing.compactions.push_back({version, last});
      }
      continue;
    }
    if (!rest.starts_with(".checkpoint.")) {
      continue;
    }
    if (rest == ".checkpoint.parquet") {
      listing.checkpoints.push_back({version, false, {std::string(name)}});
    } else if (rest.size() == 12 + 10 + 1 + 10 + 8 && rest.ends_with(".parquet") && rest[22] == '.') {
      const std::int64_t part = Number(rest.substr(12, 10));
      const std::int64_t total = Number(rest.substr(23, 10));
      if (part >= 1 && part <= total) {
        parts[{version, static_cast<std::size_t>(total)}][part] = std::string(name);
      }
    } else if (rest.ends_with(".parquet") || rest.ends_with(".json")) {
      listing.checkpoints.push_back({version, true, {std::string(name)}});
    }
  }
  for (const auto& [key, names] : parts) {
    if (names.size() != key.second) {
      listing.has_incomplete = true;
      listing.incomplete_version = key.first;
      continue;
    }
    CheckpointFiles files{key.first, false, {}};
    for (const auto& [part, name] : names) {
      files.names.push_back(name);
    }
    listing.checkpoints.push_back(std::move(files));
  }
  std::stable_sort(listing.checkpoints.begin(), listing.checkpoints.end(),
                   [](const auto& a, const auto& b) { return a.version < b.version; });
  std::sort(listing.compactions.begin(), listing.compactions.end(),
            [](const auto& a, const auto& b) { return std::pair(a.first, a.last) < std::pair(b.first, b.last); });
  return listing;
}

}  // namespace fleuve::delta
