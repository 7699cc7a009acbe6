#include "checkpoint/entries.h"

#include "base/bytes.h"
#include "base/json.h"
#include "checkpoint/log_folder.h"

namespace fleuve::checkpoint {

namespace {

Error BadLine(std::string_view path, const std::string& what) {
  return Error(ErrorKind::kCorrupt, "", "Failed to read log file " + std::string(path) + ". " + what);
}

/// True where the text is a complete JSON value, or an offset that is none but whole (`-`).
bool IsComplete(std::string_view line) { return line == "-" || Json::Parse(line).ok(); }

Result<std::pair<std::size_t, std::optional<std::string>>> DecodeNamedOffset(const std::string& line,
                                                                             std::string_view path) {
  const auto colon = line.find(':');
  std::size_t index = 0;
  if (colon == std::string::npos || colon == 0 || colon > 6) {
    return BadLine(path, "Invalid OffsetMap format: " + line);
  }
  for (std::size_t i = 0; i < colon; ++i) {
    if (line[i] < '0' || line[i] > '9') {
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.FLEUVE",
                   "The offset log " + std::string(path) + " names its sources (source '" + line.substr(0, colon) +
                       "'): streaming source evolution is not supported.");
    }
    index = index * 10 + static_cast<std::size_t>(line[i] - '0');
  }
  const std::string value = line.substr(colon + 1);
  return std::make_pair(index, value == "-" ? std::nullopt : std::optional<std::string>(value));
}

}  // namespace

const std::string* OffsetEntry::FindConf(std::string_view key) const {
  for (const auto& [name, value] : conf) {
    if (name == key) {
      return &value;
    }
  }
  return nullptr;
}

std::string EncodeOffsets(const OffsetEntry& entry) {
  std::string out = "v" + std::to_string(entry.version) + "\n";
  if (entry.has_metadata) {
    out += "{\"batchWatermarkMs\":" + std::to_string(entry.watermark_ms) +
           ",\"batchTimestampMs\":" + std::to_string(entry.timestamp_ms) + ",\"conf\":{";
    bool first = true;
    for (const auto& [key, value] : entry.conf) {
      if (!first) {
        out += ',';
      }
      first = false;
      AppendJsonString(out, key);
      out += ':';
      AppendJsonString(out, value);
    }
    out += '}';
    if (!entry.source_info.empty()) {
      out += ",\"sourceMetadataInfo\":" + entry.source_info;
    }
    out += '}';
  }
  for (std::size_t i = 0; i < entry.offsets.size(); ++i) {
    out += '\n';
    if (entry.version == 2) {
      out += std::to_string(i) + ":";
    }
    out += entry.offsets[i] ? *entry.offsets[i] : "-";
  }
  return out;
}

std::string EncodeCommit(const CommitEntry& entry) {
  std::string out =
      "v" + std::to_string(entry.version) + "\n{\"nextBatchWatermarkMs\":" + std::to_string(entry.next_watermark_ms);
  if (!entry.state_ids.empty()) {
    out += ",\"stateUniqueIds\":" + entry.state_ids;
  }
  return out + "}";
}

std::string EncodeMetadata(const std::string& query_id) {
  std::string out = "{\"id\":";
  AppendJsonString(out, query_id);
  return out + "}";
}

Result<OffsetEntry> DecodeOffsets(std::string_view text, std::string_view path) {
  FLEUVE_ASSIGN(LogText log, ParseLogText(text, 2, path));
  if (log.lines.empty()) {
    return BadLine(path, "Incomplete log file");
  }
  OffsetEntry entry;
  entry.version = log.version;
  if (log.lines[0].empty()) {
    entry.has_metadata = false;
  } else {
    auto parsed = Json::Parse(log.lines[0]);
    if (!parsed.ok() || !parsed->is_object()) {
      return BadLine(path, "Line 2 is not the batch's metadata: " + log.lines[0]);
    }
    entry.watermark_ms = (*parsed)["batchWatermarkMs"].AsInt();
    entry.timestamp_ms = (*parsed)["batchTimestampMs"].AsInt();
    for (const auto& [key, value] : (*parsed)["conf"].fields()) {
      entry.conf.emplace_back(key, value.is_string() ? value.AsString() : value.Dump());
    }
    if (const Json* info = parsed->Find("sourceMetadataInfo")) {
      entry.source_info = info->Dump();
    }
    if (parsed->Find("controlBatchInfo") != nullptr) {
      return Error::Unsupported("resuming from the control batch in " + std::string(path));
    }
  }
  for (std::size_t i = 1; i < log.lines.size(); ++i) {
    const std::string& line = log.lines[i];
    if (entry.version == 1) {
      entry.offsets.push_back(line == "-" ? std::nullopt : std::optional<std::string>(line));
      continue;
    }
    FLEUVE_ASSIGN(auto named, DecodeNamedOffset(line, path));
    if (entry.offsets.size() <= named.first) {
      entry.offsets.resize(named.first + 1);
    }
    entry.offsets[named.first] = std::move(named.second);
  }
  return entry;
}

Result<CommitEntry> DecodeCommit(std::string_view text, std::string_view path) {
  FLEUVE_ASSIGN(LogText log, ParseLogText(text, 2, path));
  CommitEntry entry;
  entry.version = log.version;
  if (log.lines.empty()) {
    return entry;
  }
  auto parsed = Json::Parse(log.lines[0]);
  if (!parsed.ok() || !parsed->is_object()) {
    return BadLine(path, "Line 2 is not a commit's metadata: " + log.lines[0]);
  }
  entry.next_watermark_ms = (*parsed)["nextBatchWatermarkMs"].AsInt();
  if (const Json* ids = parsed->Find("stateUniqueIds")) {
    entry.state_ids = ids->Dump();
  }
  return entry;
}

Result<std::string> DecodeMetadata(std::string_view text, std::string_view path) {
  auto parsed = Json::Parse(text);
  if (!parsed.ok() || !(*parsed)["id"].is_string() || (*parsed)["id"].AsString().empty()) {
    return Error(ErrorKind::kCorrupt, "FLEUVE_CHECKPOINT_CORRUPT",
                 "The file " + std::string(path) +
                     " does not hold a query id such as {\"id\":\"...\"}. Restore it from a "
                     "copy, or start with a new checkpoint location.");
  }
  return (*parsed)["id"].AsString();
}

bool IsCutOff(std::string_view text, bool is_offsets) {
  if (text.empty() || text.find_first_not_of('\0') == std::string_view::npos) {
    return true;
  }
  std::vector<std::string> lines = Split(text, '\n');
  while (lines.size() > 1 && lines.back().empty()) {
    lines.pop_back();  // a line break at the end says nothing
  }
  if (lines.size() == 1) {
    // "v", "v1": the first line alone. A commit may end there.
    return is_offsets ? (lines[0] == "v" || lines[0] == "v1" || lines[0] == "v2") : lines[0] == "v";
  }
  std::string_view last = lines.back();
  if (is_offsets && lines.size() == 2) {
    return true;  // no source's line yet: a query has one source at least
  }
  if (is_offsets && lines[0] == "v2") {
    const auto colon = last.find(':');
    last = colon == std::string_view::npos ? "" : last.substr(colon + 1);
  }
  return !IsComplete(last);
}

}  // namespace fleuve::checkpoint
