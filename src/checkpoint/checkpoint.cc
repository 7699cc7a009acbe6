#include "checkpoint/checkpoint.h"

#include <algorithm>

#include "base/failpoint.h"
#include "base/log.h"

namespace fleuve::checkpoint {

namespace {

std::string Name(std::int64_t id) { return std::to_string(id); }

Result<bool> HasAnyFile(storage::ObjectStore& store, const std::string& folder) {
  auto files = store.ListRecursive(folder);
  if (!files.ok()) {
    if (files.error().kind() == ErrorKind::kNotFound) {
      return false;
    }
    return std::move(files).error();
  }
  return std::any_of(files->begin(), files->end(), [](const storage::ObjectMeta& file) {
    return !file.path.substr(file.path.rfind('/') + 1).starts_with(".");
  });
}

void AddOnce(std::vector<std::string>& list, const std::string& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) {
    list.push_back(value);
  }
}

std::string ParentOf(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

}  // namespace

Result<std::optional<std::string>> Checkpoint::ReadQueryId(const storage::Location& location) {
  const std::string path = location.path + "/metadata";
  auto text = location.store->Get(path);
  if (text.ok()) {
    if (text->empty()) {
      // What a power cut left of the first start: nothing can have been committed under an id that never was durable.
      LogFolder offsets(location.store, location.path + "/offsets");
      FLEUVE_ASSIGN(const auto names, offsets.List());
      if (names.empty()) {
        return std::optional<std::string>();
      }
    }
    FLEUVE_ASSIGN(std::string id, DecodeMetadata(*text, path));
    return std::optional<std::string>(std::move(id));
  }
  if (text.error().kind() != ErrorKind::kNotFound) {
    return std::move(text).error();
  }
  for (const char* folder : {"/offsets", "/commits"}) {
    LogFolder log(location.store, location.path + folder);
    FLEUVE_ASSIGN(const auto names, log.List());
    // A commit without any planned batch is refused when the logs are read.
    if (!names.empty() && std::string_view(folder) == "/offsets") {
      return Error(ErrorKind::kCorrupt, "STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
                   "Checkpoint location " + location.path +
                       " is in an inconsistent state: the metadata file is missing "
                       "but offset and/or commit logs contain data. Restore the metadata file, or create a new "
                       "checkpoint "
                       "directory.")
          .With("checkpointLocation", location.path);
    }
  }
  return std::optional<std::string>();
}

Result<std::unique_ptr<Checkpoint>> Checkpoint::Open(const storage::Location& location, bool sync) {
  storage::ObjectStore& store = *location.store;
  // Folders that are new must survive with their names: each one's parent is synced.
  std::vector<std::string> new_names_in;
  for (std::string folder = location.path; folder.size() > 1; folder = ParentOf(folder)) {
    auto head = store.Head(folder);
    if (head.ok()) {
      break;
    }
    if (head.error().kind() != ErrorKind::kNotFound) {
      return std::move(head).error();
    }
    new_names_in.push_back(ParentOf(folder));
  }
  FLEUVE_TRY(store.CreateDirectory(location.path));
  FLEUVE_ASSIGN(auto lock, LockCheckpoint(location));
  FLEUVE_ASSIGN(std::optional<std::string> id, ReadQueryId(location));
  const std::string metadata_path = location.path + "/metadata";
  if (!id) {
    id = NewUuid();
    FLEUVE_TRY(Failpoint("checkpoint.metadata.before"));
    FLEUVE_TRY(store.Put(metadata_path, EncodeMetadata(*id), storage::PutMode::kOverwrite));
    FLEUVE_TRY(store.Put(location.path + "/.metadata.crc", HadoopChecksums(EncodeMetadata(*id)),
                         storage::PutMode::kOverwrite));
    FLEUVE_TRY(Failpoint("checkpoint.metadata.written"));
  }
  FLEUVE_TRY(store.CreateDirectory(location.path + "/offsets"));
  FLEUVE_TRY(store.CreateDirectory(location.path + "/commits"));
  if (sync) {
    new_names_in.push_back(location.path);
    const std::vector<std::string> files = {metadata_path};
    FLEUVE_TRY(store.Sync(files, new_names_in));
    FLEUVE_TRY(Failpoint("checkpoint.metadata.synced"));
  }
  return std::unique_ptr<Checkpoint>(new Checkpoint(location, *std::move(id), std::move(lock)));
}

Result<void> Checkpoint::DropCutOff(LogFolder& folder, std::vector<LogName>& names, bool is_offsets,
                                    std::optional<std::int64_t> committed, Recovered& recovered) {
  if (names.empty()) {
    return {};
  }
  const std::string name = Name(names.back().id);
  FLEUVE_ASSIGN(const std::string text, folder.Read(name));
  if (!IsCutOff(text, is_offsets)) {
    return {};
  }
  if (is_offsets && committed && *committed >= names.back().id) {
    // It was whole when its batch was committed: no crash of ours did this.
    return Error(ErrorKind::kCorrupt, "",
                 "Malformed log file found in " + folder.PathOf(name) + ": batch " + name +
                     " is committed, but its offsets cannot be read. Restore the file from a copy, or start with a new "
                     "checkpoint location.");
  }
  FLEUVE_ASSIGN(std::string moved, folder.MoveAway(name, location_.path + "/.fleuve/damaged"));
  LogWarn("checkpoint: " + folder.PathOf(name) + " was cut off (a crash or a power cut); moved to " + moved);
  recovered.moved_away.push_back(std::move(moved));
  AddUnsynced({}, {folder.path()});
  names.pop_back();
  return {};
}

Result<Recovered> Checkpoint::Recover() {
  Recovered recovered;
  FLEUVE_ASSIGN(auto offsets, offsets_.List(/*remove_leftovers=*/true));
  FLEUVE_ASSIGN(auto commits, commits_.List(/*remove_leftovers=*/true));
  std::erase_if(offsets, [](const LogName& name) { return name.is_compact; });
  std::erase_if(commits, [](const LogName& name) { return name.is_compact; });
  const bool had_offsets = !offsets.empty();
  FLEUVE_TRY(DropCutOff(commits_, commits, false, std::nullopt, recovered));
  FLEUVE_TRY(DropCutOff(offsets_, offsets, true,
                        commits.empty() ? std::nullopt : std::optional<std::int64_t>(commits.back().id), recovered));
  if (offsets.empty()) {
    bool used = !commits.empty();
    if (!used && !had_offsets) {
      FLEUVE_ASSIGN(used, HasAnyFile(*location_.store, location_.path + "/state"));
    }
    if (used) {
      return Error(ErrorKind::kInvalidArgument, "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
                   "The checkpoint location " + location_.path +
                       " should be empty on batch 0\nPlease either use a new "
                       "checkpoint location, or delete the existing data in the checkpoint location.")
          .With("checkpointLocation", location_.path);
    }
    return recovered;
  }
  oldest_offsets_ = offsets.front().id;
  const std::int64_t newest = offsets.back().id;
  FLEUVE_ASSIGN(const std::string text, offsets_.Read(Name(newest)));
  FLEUVE_ASSIGN(recovered.planned, DecodeOffsets(text, offsets_.PathOf(Name(newest))));
  recovered.newest_planned = BatchId(newest);
  // The run that wrote the newest entries may have died before it synced them, and this run builds on them.
  AddUnsynced({offsets_.PathOf(Name(newest))}, {offsets_.path()});
  if (!commits.empty()) {
    oldest_commits_ = commits.front().id;
    const std::int64_t committed = commits.back().id;
    FLEUVE_ASSIGN(const std::string commit_text, commits_.Read(Name(committed)));
    FLEUVE_ASSIGN(recovered.committed, DecodeCommit(commit_text, commits_.PathOf(Name(committed))));
    recovered.newest_committed = BatchId(committed);
    AddUnsynced({commits_.PathOf(Name(committed))}, {commits_.path()});
  } else {
    oldest_commits_ = newest;
  }
  if (newest > 0) {
    const std::string before = Name(newest - 1);
    auto before_text = offsets_.Read(before);
    if (!before_text.ok()) {
      if (before_text.error().kind() == ErrorKind::kNotFound) {
        return Error(ErrorKind::kCorrupt, "",
                     "batch " + before + " doesn't exist: " + offsets_.PathOf(before) +
                         " is missing. Restore it from a "
                         "copy, or start with a new checkpoint location.");
      }
      return std::move(before_text).error();
    }
    FLEUVE_ASSIGN(OffsetEntry entry, DecodeOffsets(*before_text, offsets_.PathOf(before)));
    recovered.before = std::move(entry);
  }
  return recovered;
}

Result<void> Checkpoint::WriteOffsets(BatchId batch, const OffsetEntry& entry) {
  const std::string name = Name(batch.value);
  FLEUVE_TRY(Failpoint("checkpoint.offsets.before"));
  FLEUVE_TRY(offsets_.Write(name, EncodeOffsets(entry)));
  AddUnsynced({offsets_.PathOf(name)}, {offsets_.path()});
  return Failpoint("checkpoint.offsets.written");
}

Result<void> Checkpoint::WriteCommit(BatchId batch, const CommitEntry& entry) {
  const std::string name = Name(batch.value);
  FLEUVE_TRY(Failpoint("checkpoint.commits.before"));
  FLEUVE_TRY(commits_.Write(name, EncodeCommit(entry)));
  AddUnsynced({commits_.PathOf(name)}, {commits_.path()});
  return Failpoint("checkpoint.commits.written");
}

void Checkpoint::AddUnsynced(std::vector<std::string> files, std::vector<std::string> folders) {
  for (const auto& file : files) {
    AddOnce(unsynced_.files, file);
  }
  for (const auto& folder : folders) {
    AddOnce(unsynced_.folders, folder);
  }
}

Unsynced Checkpoint::TakeUnsynced() { return std::exchange(unsynced_, {}); }

Result<void> Checkpoint::DropPlanned(BatchId batch) {
  FLEUVE_ASSIGN(const std::string moved, offsets_.MoveAway(Name(batch.value), location_.path + "/.fleuve/damaged"));
  LogWarn("checkpoint: batch " + Name(batch.value) + " will be planned anew; its old plan was moved to " + moved);
  std::erase(unsynced_.files, offsets_.PathOf(Name(batch.value)));
  AddUnsynced({}, {offsets_.path()});
  return {};
}

Result<OffsetEntry> Checkpoint::ReadOffsets(BatchId batch) {
  const std::string name = Name(batch.value);
  FLEUVE_ASSIGN(const std::string text, offsets_.Read(name));
  return DecodeOffsets(text, offsets_.PathOf(name));
}

Result<void> Checkpoint::Purge(BatchId first_kept) {
  while (oldest_offsets_ < first_kept.value) {
    FLEUVE_TRY(offsets_.Remove(Name(oldest_offsets_)));
    std::erase(unsynced_.files, offsets_.PathOf(Name(oldest_offsets_)));
    ++oldest_offsets_;
  }
  while (oldest_commits_ < first_kept.value) {
    FLEUVE_TRY(commits_.Remove(Name(oldest_commits_)));
    std::erase(unsynced_.files, commits_.PathOf(Name(oldest_commits_)));
    ++oldest_commits_;
  }
  return {};
}

Result<std::optional<std::string>> Checkpoint::ReadRecord(const std::string& name) {
  const std::string folder = location_.path + "/.fleuve";
  auto text = location_.store->Get(folder + "/" + name);
  if (text.ok()) {
    // As with entries that are found: it may not have been synced.
    AddUnsynced({folder + "/" + name}, {folder, location_.path});
    return std::optional<std::string>(*std::move(text));
  }
  if (text.error().kind() == ErrorKind::kNotFound) {
    return std::optional<std::string>();
  }
  return std::move(text).error();
}

Result<void> Checkpoint::WriteRecord(const std::string& name, const std::string& text) {
  const std::string folder = location_.path + "/.fleuve";
  FLEUVE_TRY(location_.store->Put(folder + "/" + name, text, storage::PutMode::kOverwrite));
  AddUnsynced({folder + "/" + name}, {folder, location_.path});
  return {};
}

}  // namespace fleuve::checkpoint
