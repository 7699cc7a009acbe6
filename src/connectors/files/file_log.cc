#include "connectors/files/file_log.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/json.h"
#include "connectors/files/file_schema.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

FileLog::FileLog(std::shared_ptr<storage::ObjectStore> store, std::string folder, std::int64_t compact_interval)
    : log_(std::move(store), std::move(folder)), interval_(std::max<std::int64_t>(1, compact_interval)) {}

std::string FileLog::NameOf(std::int64_t id) const {
  const auto found = entries_.find(id);
  const bool compact = found != entries_.end() ? found->second : IsCompaction(id);
  return std::to_string(id) + (compact ? ".compact" : "");
}

void FileLog::FindInterval() {
  std::vector<std::int64_t> compacts;
  for (const auto& [id, compact] : entries_) {
    if (compact) {
      compacts.push_back(id);
    }
  }
  if (compacts.size() >= 2) {
    interval_ = compacts[compacts.size() - 1] - compacts[compacts.size() - 2];
  } else if (compacts.size() == 1) {
    const std::int64_t span = compacts[0] + 1;
    if (span <= interval_) {
      interval_ = span;
    } else if (interval_ < span / 2) {
      for (std::int64_t divisor = interval_; divisor <= span; ++divisor) {
        if (span % divisor == 0) {
          interval_ = divisor;
          break;
        }
      }
    } else {
      interval_ = span;
    }
  }
}

Result<void> FileLog::Open() {
  FLEUVE_ASSIGN(const auto names, log_.List(true));
  entries_.clear();
  newest_ = -1;
  for (const checkpoint::LogName& name : names) {
    bool& compact = entries_[name.id];
    compact = compact || name.is_compact;
    newest_ = std::max(newest_, name.id);
  }
  FindInterval();
  if (newest_ >= 0) {
    // The run that wrote it may have died before it was synced, and this run builds on it.
    AddUnsynced(NameOf(newest_));
  }
  return {};
}

Result<std::vector<std::string>> FileLog::Read(std::int64_t id) {
  FLEUVE_ASSIGN(const std::string text, log_.Read(NameOf(id)));
  FLEUVE_ASSIGN(checkpoint::LogText parsed, checkpoint::ParseLogText(text, 1, log_.PathOf(NameOf(id))));
  std::vector<std::string> lines;
  for (std::string& line : parsed.lines) {
    if (!line.empty()) {
      lines.push_back(std::move(line));
    }
  }
  if (!lines.empty()) {
    // A file that was cut off ends inside an entry; whoever reads the entries does not know the file's name.
    if (const auto last = Json::Parse(lines.back()); !last.ok()) {
      return Error(ErrorKind::kCorrupt, "",
                   "Failed to read log file " + log_.PathOf(NameOf(id)) +
                       ". Its last entry is no JSON, the file may be cut off: " + last.error().message());
    }
  }
  return lines;
}

Result<std::vector<std::string>> FileLog::ReadAll() {
  std::int64_t from = 0;
  for (const auto& [id, compact] : entries_) {
    if (compact) {
      from = id;
    }
  }
  std::vector<std::string> all;
  for (const auto& [id, compact] : entries_) {
    if (id < from) {
      continue;
    }
    FLEUVE_ASSIGN(auto lines, Read(id));
    all.insert(all.end(), std::make_move_iterator(lines.begin()), std::make_move_iterator(lines.end()));
  }
  return all;
}

Result<void> FileLog::Append(std::int64_t id, const std::vector<std::string>& lines) {
  const bool compact = IsCompaction(id);
  std::string text = "v1";
  const auto add = [&](const std::vector<std::string>& some) {
    for (const std::string& line : some) {
      text += "\n" + line;
    }
  };
  if (compact) {
    FLEUVE_ASSIGN(const auto before, ReadAll());
    add(before);
  }
  add(lines);
  const std::string name = std::to_string(id) + (compact ? ".compact" : "");
  FLEUVE_TRY(log_.Write(name, text));
  entries_[id] = compact;
  newest_ = std::max(newest_, id);
  AddUnsynced(name);
  return {};
}

void FileLog::AddUnsynced(const std::string& name) {
  unsynced_.files.push_back(log_.PathOf(name));
  if (std::find(unsynced_.folders.begin(), unsynced_.folders.end(), log_.path()) == unsynced_.folders.end()) {
    unsynced_.folders.push_back(log_.path());
    const std::string parent = log_.path().substr(0, log_.path().rfind('/'));
    unsynced_.folders.push_back(parent);
    unsynced_.folders.push_back(parent.substr(0, parent.rfind('/')));
  }
}

Result<void> FileLog::DeleteExpired(std::int64_t keep, std::int64_t delay_ms, std::int64_t now_ms) {
  // The newest compact file that is older than the last `keep` entries holds all that came before it.
  std::int64_t boundary = -1;
  for (const auto& [id, compact] : entries_) {
    if (compact && id <= newest_ - keep) {
      boundary = id;
    }
  }
  if (boundary < 0) {
    return {};
  }
  for (auto it = entries_.begin(); it != entries_.end() && it->first < boundary;) {
    const std::string name = NameOf(it->first);
    auto meta = log_.store()->Head(log_.PathOf(name));
    if (meta.ok() && now_ms - meta->modified_ms < delay_ms) {
      ++it;
      continue;
    }
    FLEUVE_TRY(log_.Remove(name));
    it = entries_.erase(it);
  }
  return {};
}

DurableRecords FileLog::TakeDurableRecords() {
  DurableRecords records = std::move(unsynced_);
  unsynced_ = {};
  return records;
}

Result<std::optional<std::vector<ListedFile>>> SinkLogFiles(const std::string& folder) {
  const std::string log_folder = folder + "/_spark_metadata";
  bool is_directory = false;
  if (!StatFile(log_folder, &is_directory) || !is_directory) {
    return std::optional<std::vector<ListedFile>>();
  }
  FileLog log(storage::LocalStore(), log_folder, 10);
  FLEUVE_TRY(log.Open());
  FLEUVE_ASSIGN(const auto lines, log.ReadAll());
  std::map<std::string, ListedFile> files;
  for (const std::string& line : lines) {
    FLEUVE_ASSIGN(const Json entry, Json::Parse(line));
    FLEUVE_ASSIGN(const std::string path, LocalPathOf(entry["path"].AsString()));
    if (entry["action"].AsString() == "delete") {
      files.erase(path);
      continue;
    }
    ListedFile file;
    file.path = path;
    file.size_bytes = entry["size"].AsInt();
    file.modified_ms = entry["modificationTime"].AsInt();
    file.modified_nanos = file.modified_ms * 1000000;
    files[path] = file;
  }
  std::vector<ListedFile> out;
  for (auto& [path, file] : files) {
    out.push_back(std::move(file));
  }
  return std::optional(std::move(out));
}

}  // namespace fleuve::connectors::files
