#include "base/json.h"
#include "state/byte_codec.h"
#include "state/changelog_internal.h"

namespace fleuve::state {

namespace {

constexpr std::string_view kMagic = "fleuve state 1\n";
constexpr std::string_view kChanges = ".changes";
constexpr std::string_view kSnapshot = ".snapshot";
constexpr std::string_view kPart = ".part";
/// Where the first lines of a file end at the latest.
constexpr std::int64_t kMostHeadBytes = 64 << 10;

bool TakeBytes(std::string_view& text, std::string_view* bytes) {
  std::size_t length = 0;
  if (!TakeLength(text, &length) || length > text.size()) {
    return false;
  }
  *bytes = text.substr(0, length);
  text.remove_prefix(length);
  return true;
}

Result<FileHead> ParseHead(std::string_view line) {
  FLEUVE_ASSIGN(const Json json, Json::Parse(line));
  FileHead head;
  const std::string& kind = json["kind"].AsString();
  head.kind = kind == "snapshot" ? FileKind::kSnapshot : kind == "part" ? FileKind::kPart : FileKind::kChanges;
  head.header.version = Version{json["version"].AsInt(-1), json["attempt"].AsString()};
  head.header.base_attempt = json["base"].AsString();
  head.header.next_watermark_ms = json["nextWatermarkMs"].AsInt();
  head.parts.from = json["from"].AsInt(head.header.version.number);
  head.parts.count = json["parts"].AsInt();
  head.parts.id = json["partsId"].AsString();
  for (const Json& rows : json["spaceRows"].items()) {
    head.parts.space_rows.push_back(rows.AsInt());
  }
  return head;
}

std::string PathOf(const std::string& folder, const Version& version, std::string_view ending) {
  return folder + "/" + std::to_string(version.number) + "_" + version.attempt + std::string(ending);
}

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t Word(const char* from, std::size_t count) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, count);
  return word;
}

}  // namespace

std::uint64_t HashBytes(std::string_view bytes) {
  constexpr std::uint64_t kOdd1 = 0x9E3779B97F4A7C15ULL;
  constexpr std::uint64_t kOdd2 = 0xC2B2AE3D27D4EB4FULL;
  std::uint64_t hash = kOdd2 ^ bytes.size();
  const char* at = bytes.data();
  std::size_t left = bytes.size();
  while (left > 8) {
    hash = Mix(hash ^ Word(at, 8), kOdd1);
    at += 8;
    left -= 8;
  }
  hash = Mix(hash ^ Word(at, left), kOdd1 + left);
  return Mix(hash, kOdd2);
}

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

std::string PartPath(const std::string& folder, std::int64_t from, const std::string& id, std::int64_t part) {
  return PathOf(folder, Version{from, id}, "." + std::to_string(part) + std::string(kPart));
}

FileName ParseFileName(std::string_view name) {
  FileName parsed;
  std::string_view rest = name;
  for (const auto& [ending, kind] : {std::pair(kSnapshot, FileKind::kSnapshot), std::pair(kPart, FileKind::kPart),
                                     std::pair(kChanges, FileKind::kChanges)}) {
    if (rest.ends_with(ending)) {
      parsed.kind = kind;
      rest.remove_suffix(ending.size());
      break;
    }
  }
  if (rest.size() == name.size()) {
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

void SetHead(const ChangelogHeader& header, std::string& file) {
  Json json;
  json.Set("kind", "changes")
      .Set("version", header.version.number)
      .Set("attempt", header.version.attempt)
      .Set("base", header.base_attempt)
      .Set("nextWatermarkMs", header.next_watermark_ms);
  std::string head = std::string(kMagic) + json.Dump();
  head.append(head.size() + 1 < kHeadRoom ? kHeadRoom - 1 - head.size() : 0, ' ');
  head.push_back('\n');
  file.replace(0, kHeadRoom, head);
}

std::string PartHead() {
  Json json;
  json.Set("kind", "part");
  return std::string(kMagic) + json.Dump() + "\n";
}

std::string SnapshotHead(const Version& version, const SnapshotParts& parts) {
  Json::Array rows;
  for (const std::int64_t count : parts.space_rows) {
    rows.emplace_back(count);
  }
  Json json;
  json.Set("kind", "snapshot")
      .Set("version", version.number)
      .Set("attempt", version.attempt)
      .Set("from", parts.from)
      .Set("parts", parts.count)
      .Set("partsId", parts.id)
      .Set("spaceRows", std::move(rows));
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
  ParsedFile parsed;
  FLEUVE_ASSIGN(static_cast<FileHead&>(parsed), ParseHead(text.substr(kMagic.size(), line_end - kMagic.size())));
  parsed.records = text.substr(line_end + 1, text.size() - kCheckBytes - line_end - 1);
  return parsed;
}

Result<std::optional<FileHead>> ReadHead(storage::ObjectStore& store, const std::string& path) {
  for (std::int64_t size = 2 * kHeadRoom; size <= kMostHeadBytes; size *= 4) {
    auto text = store.GetRange(path, 0, size);
    if (!text.ok()) {
      if (text.error().kind() == ErrorKind::kNotFound) {
        return std::optional<FileHead>();
      }
      return std::move(text).error();
    }
    const std::size_t line_end = text->find('\n', kMagic.size());
    if (text->starts_with(kMagic) && line_end != std::string::npos) {
      auto head = ParseHead(std::string_view(*text).substr(kMagic.size(), line_end - kMagic.size()));
      return head.ok() ? std::optional<FileHead>(*std::move(head)) : std::optional<FileHead>();
    }
    if (static_cast<std::int64_t>(text->size()) < size) {
      break;
    }
  }
  return std::optional<FileHead>();
}

Result<bool> RecordReader::Next(Record* record) {
  if (records_.empty()) {
    return false;
  }
  const auto head = static_cast<unsigned char>(records_.front());
  records_.remove_prefix(1);
  record->space = head / 2U;
  record->is_removal = (head & 1) != 0;
  record->value = {};
  if (record->space >= spaces_ || !TakeBytes(records_, &record->key) ||
      (!record->is_removal && !TakeBytes(records_, &record->value))) {
    return CannotLoad(ErrorKind::kCorrupt, "CANNOT_READ_STREAMING_STATE_FILE",
                      "Error reading streaming state file of " + path_ + ": a record in it does not end.");
  }
  return true;
}

}  // namespace fleuve::state
