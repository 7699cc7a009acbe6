#include <algorithm>
#include <charconv>

#include "base/json.h"
#include "checkpoint/entries.h"
#include "checkpoint/log_folder.h"
#include "connectors/autoloader/ledger_internal.h"

namespace fleuve::connectors::autoloader {

namespace {

std::string FormatEntry(const files::ListedFile& file, std::int64_t now_ms) {
  Json line = Json::Object{};
  line.Set("path", file.path);
  line.Set("size", file.size_bytes);
  line.Set("modifiedNanos", file.modified_nanos);
  line.Set("discoveredMs", now_ms);
  return line.Dump();
}

bool ParseNumber(std::string_view text, std::int64_t* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size() && *value > 0;
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string OffsetText(std::int64_t sequence, const std::string& path_uri) {
  Json offset = Json::Object{};
  offset.Set("seqNum", sequence);
  offset.Set("sourceVersion", 1);
  offset.Set("lastBackfillStartTimeMs", 0);
  offset.Set("lastBackfillFinishTimeMs", 0);
  offset.Set("lastInputPath", path_uri);
  return offset.Dump();
}

Result<std::int64_t> SequenceOf(const Offset& offset) {
  FLEUVE_ASSIGN(const Json json, Json::Parse(offset));
  const Json* sequence = json.Find("seqNum");
  if (sequence == nullptr || !sequence->is_int()) {
    return Error(ErrorKind::kCorrupt, "CF_INTERNAL_ERROR.INVALID_STATE",
                 "The offset " + offset + " is none of an Auto Loader stream.");
  }
  return sequence->AsInt();
}

Result<std::vector<LedgerEntry>> Ledger::ReadSegment(const std::string& name) {
  const std::string path = folder_ + "/" + name;
  FLEUVE_ASSIGN(const std::string text, store_->Get(path));
  FLEUVE_ASSIGN(const checkpoint::LogText parsed, checkpoint::ParseLogText(text, 1, path));
  std::vector<LedgerEntry> entries;
  for (const std::string& line : parsed.lines) {
    if (line.empty()) {
      continue;
    }
    FLEUVE_ASSIGN(const Json json, Json::Parse(line));
    LedgerEntry entry;
    entry.path = json["path"].AsString();
    entry.size_bytes = json["size"].AsInt();
    entry.modified_nanos = json["modifiedNanos"].AsInt();
    entry.discovered_ms = json["discoveredMs"].AsInt();
    entries.push_back(std::move(entry));
  }
  return entries;
}

void Ledger::Remember(const std::string& path, std::int64_t modified_nanos, std::int64_t discovered_ms) {
  Known& known = known_[path];
  known.modified_nanos = std::max(known.modified_nanos, modified_nanos);
  known.discovered_ms = std::max(known.discovered_ms, discovered_ms);
}

void Ledger::ForgetBefore(std::int64_t discovered_ms) {
  std::erase_if(known_, [&](const auto& entry) { return entry.second.discovered_ms < discovered_ms; });
}

Result<bool> Ledger::Open() {
  segments_.clear();
  known_.clear();
  last_ = 0;
  auto listed = store_->List(folder_);
  if (!listed.ok()) {
    if (listed.error().kind() == ErrorKind::kNotFound) {
      return false;
    }
    return std::move(listed).error();
  }
  bool started = false;
  for (const storage::ObjectMeta& meta : *listed) {
    const std::string name = NameOf(meta.path);
    std::int64_t first = 0;
    if (name == "start") {
      started = true;
    } else if (name == "existing") {
      FLEUVE_ASSIGN(const auto entries, ReadSegment(name));
      for (const LedgerEntry& entry : entries) {
        Remember(entry.path, entry.modified_nanos, entry.discovered_ms);
      }
    } else if (ParseNumber(name, &first)) {
      FLEUVE_ASSIGN(const auto entries, ReadSegment(name));
      segments_[first] = static_cast<std::int64_t>(entries.size());
      for (const LedgerEntry& entry : entries) {
        Remember(entry.path, entry.modified_nanos, entry.discovered_ms);
      }
    }
  }
  std::int64_t expected = 1;
  for (const auto& [first, count] : segments_) {
    if (first != expected) {
      return Error(ErrorKind::kCorrupt, "CF_INTERNAL_ERROR.INVALID_STATE",
                   "The record of seen files in " + folder_ + " lacks the files from number " +
                       std::to_string(expected) + " on.");
    }
    expected = first + count;
  }
  last_ = expected - 1;
  // The run that wrote these may have died before they were synced, and this run builds on them.
  for (const storage::ObjectMeta& meta : *listed) {
    const std::string name = NameOf(meta.path);
    if (name == "start" || name == "existing" ||
        (!segments_.empty() && name == std::to_string(segments_.rbegin()->first))) {
      AddUnsynced(meta.path);
    }
  }
  return started || !segments_.empty();
}

Result<void> Ledger::Write(const std::string& name, const std::string& text) {
  const std::string path = folder_ + "/" + name;
  FLEUVE_TRY(store_->Put(path, text, storage::PutMode::kIfAbsent));
  AddUnsynced(path);
  return {};
}

void Ledger::AddUnsynced(const std::string& path) {
  unsynced_.files.push_back(path);
  const std::string source = folder_.substr(0, folder_.rfind('/'));
  const std::string sources = source.substr(0, source.rfind('/'));
  unsynced_.folders = {folder_, source, sources, sources.substr(0, sources.rfind('/'))};
}

Result<void> Ledger::Start(bool include_existing, const std::vector<files::ListedFile>& existing, std::int64_t now_ms) {
  if (!include_existing) {
    std::string text = "v1";
    for (const files::ListedFile& file : existing) {
      text += "\n" + FormatEntry(file, now_ms);
      Remember(file.path, file.modified_nanos, now_ms);
    }
    auto written = Write("existing", text);
    // A start that was cut off before: what it saw counts.
    if (!written.ok() && written.error().kind() != ErrorKind::kAlreadyExists) {
      return written;
    }
  }
  Json start = Json::Object{};
  start.Set("includeExistingFiles", include_existing);
  start.Set("startMs", now_ms);
  return Write("start", "v1\n" + start.Dump());
}

bool Ledger::IsNew(const files::ListedFile& file, bool overwrites) const {
  const auto found = known_.find(file.path);
  return found == known_.end() || (overwrites && file.modified_nanos > found->second.modified_nanos);
}

Result<std::int64_t> Ledger::Append(const std::vector<files::ListedFile>& files, std::int64_t now_ms) {
  std::string text = "v1";
  for (const files::ListedFile& file : files) {
    text += "\n" + FormatEntry(file, now_ms);
  }
  const std::int64_t first = last_ + 1;
  FLEUVE_TRY(Write(std::to_string(first), text));
  segments_[first] = static_cast<std::int64_t>(files.size());
  last_ += static_cast<std::int64_t>(files.size());
  for (const files::ListedFile& file : files) {
    Remember(file.path, file.modified_nanos, now_ms);
  }
  return last_;
}

std::optional<std::int64_t> Ledger::SegmentEndAfter(std::int64_t sequence) const {
  for (const auto& [first, count] : segments_) {
    if (first + count - 1 > sequence) {
      return first + count - 1;
    }
  }
  return std::nullopt;
}

Result<std::vector<LedgerEntry>> Ledger::Range(std::int64_t after, std::int64_t to) {
  std::vector<LedgerEntry> out;
  for (const auto& [first, count] : segments_) {
    if (first + count - 1 <= after || first > to) {
      continue;
    }
    FLEUVE_ASSIGN(auto entries, ReadSegment(std::to_string(first)));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::int64_t sequence = first + static_cast<std::int64_t>(i);
      if (sequence > after && sequence <= to) {
        out.push_back(std::move(entries[i]));
      }
    }
  }
  if (static_cast<std::int64_t>(out.size()) != to - after) {
    return Error(ErrorKind::kCorrupt, "CF_INTERNAL_ERROR.INVALID_STATE",
                 "The record of seen files in " + folder_ + " does not hold the numbers " + std::to_string(after + 1) +
                     " to " + std::to_string(to) + ".");
  }
  return out;
}

DurableRecords Ledger::TakeDurableRecords() {
  DurableRecords records = std::move(unsynced_);
  unsynced_ = {};
  return records;
}

Result<std::vector<std::pair<std::int64_t, std::int64_t>>> CommitTimes(const storage::Location& checkpoint, int index) {
  std::vector<std::pair<std::int64_t, std::int64_t>> times;
  checkpoint::LogFolder commits(checkpoint.store, checkpoint.path + "/commits");
  checkpoint::LogFolder offsets(checkpoint.store, checkpoint.path + "/offsets");
  FLEUVE_ASSIGN(const auto names, commits.List());
  for (const checkpoint::LogName& name : names) {
    const std::string id = std::to_string(name.id);
    auto text = offsets.Read(id);
    auto meta = checkpoint.store->Head(commits.PathOf(id));
    if (!text.ok() || !meta.ok()) {
      continue;
    }
    FLEUVE_ASSIGN(const auto entry, checkpoint::DecodeOffsets(*text, offsets.PathOf(id)));
    if (static_cast<std::size_t>(index) >= entry.offsets.size() || !entry.offsets[static_cast<std::size_t>(index)]) {
      continue;
    }
    auto sequence = SequenceOf(*entry.offsets[static_cast<std::size_t>(index)]);
    if (sequence.ok()) {
      times.emplace_back(*sequence, meta->modified_ms);
    }
  }
  return times;
}

}  // namespace fleuve::connectors::autoloader
