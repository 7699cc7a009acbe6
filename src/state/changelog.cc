#include "base/json.h"
#include "state/byte_codec.h"
#include "state/changelog_internal.h"
#include "state/row_table_internal.h"

namespace fleuve::state {

namespace {

constexpr std::string_view kMagic = "fleuve state 1\n";
constexpr std::string_view kChanges = ".changes";
constexpr std::string_view kSnapshot = ".snapshot";
constexpr std::size_t kCheckBytes = 8;

bool TakeBytes(std::string_view& text, std::string_view* bytes) {
  std::size_t length = 0;
  if (!TakeLength(text, &length) || length > text.size()) {
    return false;
  }
  *bytes = text.substr(0, length);
  text.remove_prefix(length);
  return true;
}

std::string PathOf(const std::string& folder, const Version& version, std::string_view ending) {
  return folder + "/" + std::to_string(version.number) + "_" + version.attempt + std::string(ending);
}

}  // namespace

Error CannotLoad(ErrorKind kind, const std::string& subclass, std::string message) {
  return Error(kind, "CANNOT_LOAD_STATE_STORE." + subclass,
               "An error occurred during loading state. " + std::move(message));
}

std::string ChangelogPath(const std::string& folder, const Version& version) {
  return PathOf(folder, version, kChanges);
}

std::string SnapshotPath(const std::string& folder, const Version& version) {
  return PathOf(folder, version, kSnapshot);
}

FileName ParseFileName(std::string_view name) {
  FileName parsed;
  std::string_view rest = name;
  if (rest.ends_with(kSnapshot)) {
    parsed.is_snapshot = true;
    rest.remove_suffix(kSnapshot.size());
  } else if (rest.ends_with(kChanges)) {
    rest.remove_suffix(kChanges.size());
  } else {
    return parsed;
  }
  const std::size_t cut = rest.find('_');
  if (cut == std::string_view::npos || cut == 0 || cut > 18 || cut + 1 == rest.size()) {
    return parsed;
  }
  std::int64_t number = 0;
  for (char c : rest.substr(0, cut)) {
    if (c < '0' || c > '9') {
      return parsed;
    }
    number = number * 10 + (c - '0');
  }
  parsed.version = Version{number, std::string(rest.substr(cut + 1))};
  return parsed;
}

void AppendPut(std::string& out, SpaceId space, std::string_view key, std::string_view value) {
  out.push_back(static_cast<char>(space * 2));
  AppendLength(out, key.size());
  out.append(key);
  AppendLength(out, value.size());
  out.append(value);
}

void AppendRemoval(std::string& out, SpaceId space, std::string_view key) {
  out.push_back(static_cast<char>(space * 2 + 1));
  AppendLength(out, key.size());
  out.append(key);
}

std::string BeginFile(bool is_snapshot, const ChangelogHeader& header, std::int64_t rows) {
  Json json;
  json.Set("kind", is_snapshot ? "snapshot" : "changes")
      .Set("version", header.version.number)
      .Set("attempt", header.version.attempt)
      .Set("base", header.base_attempt)
      .Set("nextWatermarkMs", header.next_watermark_ms)
      .Set("rows", rows);
  return std::string(kMagic) + json.Dump() + "\n";
}

void EndFile(std::string& file) {
  std::uint64_t check = HashBytes(file);
  for (std::size_t i = 0; i < kCheckBytes; ++i) {
    file.push_back(static_cast<char>(check & 0xFF));
    check >>= 8;
  }
}

Result<ParsedFile> ParseFile(std::string_view text, const std::string& path) {
  if (!text.starts_with(kMagic)) {
    return CannotLoad(ErrorKind::kCorrupt, "UNCATEGORIZED",
                      "The file " + path + " is no state file of this engine, or of a newer version of it.");
  }
  const std::size_t line_end = text.find('\n', kMagic.size());
  if (line_end == std::string_view::npos || text.size() < line_end + 1 + kCheckBytes) {
    return CannotLoad(ErrorKind::kCorrupt, "CANNOT_READ_STREAMING_STATE_FILE",
                      "Error reading streaming state file of " + path + ": premature end of file.");
  }
  std::uint64_t check = 0;
  for (std::size_t i = 0; i < kCheckBytes; ++i) {
    check |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[text.size() - kCheckBytes + i])) << (8 * i);
  }
  if (check != HashBytes(text.substr(0, text.size() - kCheckBytes))) {
    return CannotLoad(ErrorKind::kCorrupt, "CANNOT_READ_STREAMING_STATE_FILE",
                      "Error reading streaming state file of " + path +
                          ": its check sum does not fit; the file is damaged or cut off.");
  }
  FLEUVE_ASSIGN(const Json json, Json::Parse(text.substr(kMagic.size(), line_end - kMagic.size())));
  ParsedFile parsed;
  parsed.is_snapshot = json["kind"].AsString() == "snapshot";
  parsed.header.version = Version{json["version"].AsInt(-1), json["attempt"].AsString()};
  parsed.header.base_attempt = json["base"].AsString();
  parsed.header.next_watermark_ms = json["nextWatermarkMs"].AsInt();
  parsed.records = text.substr(line_end + 1, text.size() - kCheckBytes - line_end - 1);
  return parsed;
}

Result<void> ReadRecords(std::string_view records, const std::string& path, std::size_t spaces,
                         const std::function<void(SpaceId, std::string_view, std::string_view)>& put,
                         const std::function<void(SpaceId, std::string_view)>& remove) {
  while (!records.empty()) {
    const auto head = static_cast<unsigned char>(records.front());
    records.remove_prefix(1);
    std::string_view key;
    std::string_view value;
    const bool removal = (head & 1) != 0;
    if (head / 2U >= spaces || !TakeBytes(records, &key) || (!removal && !TakeBytes(records, &value))) {
      return CannotLoad(ErrorKind::kCorrupt, "CANNOT_READ_STREAMING_STATE_FILE",
                        "Error reading streaming state file of " + path + ": a record in it does not end.");
    }
    if (removal) {
      remove(head / 2U, key);
    } else {
      put(head / 2U, key, value);
    }
  }
  return {};
}

}  // namespace fleuve::state
