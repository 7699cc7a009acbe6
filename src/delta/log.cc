#include "delta/log.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <list>
#include <map>
#include <set>
#include <unordered_map>

#include "base/log.h"
#include "base/thread_pool.h"
#include "delta/actions_internal.h"
#include "delta/checkpoint_internal.h"
#include "delta/log_cleanup_internal.h"

namespace fleuve::delta {
namespace {

/// The version in a name's first twenty digits; -1 where they are none.
std::int64_t VersionOf(std::string_view name) {
  if (name.size() < 20) {
    return -1;
  }
  std::int64_t version = -1;
  const auto end = std::from_chars(name.data(), name.data() + 20, version);
  return end.ec == std::errc() && end.ptr == name.data() + 20 ? version : -1;
}

bool IsCommit(std::string_view name) { return name.size() == 25 && name.ends_with(".json") && VersionOf(name) >= 0; }

std::string_view NameOf(const storage::ObjectMeta& meta) {
  return std::string_view(meta.path).substr(meta.path.rfind('/') + 1);
}

struct Listing {
  std::vector<storage::ObjectMeta> commits;  ///< by version
  std::vector<CheckpointFiles> checkpoints;  ///< complete ones, by version
  bool has_incomplete = false;
  std::int64_t incomplete_version = -1;
};

Listing Sort(const std::vector<storage::ObjectMeta>& entries) {
  Listing listing;
  std::map<std::pair<std::int64_t, std::size_t>, std::map<std::int64_t, std::string>> parts;
  for (const storage::ObjectMeta& entry : entries) {
    const std::string_view name = NameOf(entry);
    const std::int64_t version = VersionOf(name);
    if (version < 0 || entry.is_directory) {
      continue;
    }
    if (IsCommit(name)) {
      listing.commits.push_back(entry);
      continue;
    }
    const std::string_view rest = name.substr(20);
    if (!rest.starts_with(".checkpoint.")) {
      continue;
    }
    if (rest == ".checkpoint.parquet") {
      listing.checkpoints.push_back({version, false, {std::string(name)}});
    } else if (rest.size() == 12 + 10 + 1 + 10 + 8 && rest.ends_with(".parquet") && rest[22] == '.') {
      std::int64_t part = 0;
      std::int64_t total = 0;
      std::from_chars(rest.data() + 12, rest.data() + 22, part);
      std::from_chars(rest.data() + 23, rest.data() + 33, total);
      parts[{version, static_cast<std::size_t>(total)}][part] = std::string(name);
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
  return listing;
}

Error TableNotFound(const std::string& path) {
  return Error(ErrorKind::kNotFound, "DELTA_TABLE_NOT_FOUND", "There is no Delta table at " + path + ".")
      .With("tableName", path);
}

Error NotContiguous(std::int64_t before, std::int64_t after) {
  return Error(ErrorKind::kCorrupt, "DELTA_VERSIONS_NOT_CONTIGUOUS",
               "The log has versions " + std::to_string(before) + " and " + std::to_string(after) +
                   " but none between them.")
      .With("startVersion", std::to_string(before))
      .With("endVersion", std::to_string(after))
      .With("versionToLoad", std::to_string(after));
}

/// What a checkpoint says otherwise than the commits.
std::vector<std::string> DifferencesOf(const SnapshotState& commits, const SnapshotState& checkpoint) {
  std::vector<std::string> out;
  if (!checkpoint.shape || !commits.shape || !(checkpoint.shape->metadata == commits.shape->metadata)) {
    out.emplace_back("its metadata is not that of the commits");
  }
  if (!checkpoint.protocol || !commits.protocol || FeaturesOf(*checkpoint.protocol) != FeaturesOf(*commits.protocol) ||
      checkpoint.protocol->min_reader_version != commits.protocol->min_reader_version) {
    out.emplace_back("its protocol is not that of the commits");
  }
  const auto key = [](const AddFile& add) {
    return add.path + '\0' + (add.deletion_vector ? add.deletion_vector->UniqueId() : std::string());
  };
  std::unordered_map<std::string, std::int64_t> files;
  commits.files->ForEach([&](const AddFile& add) { files[key(add)] = add.size; }, false);
  std::int64_t surplus = 0;
  std::int64_t other_size = 0;
  std::string example;
  checkpoint.files->ForEach(
      [&](const AddFile& add) {
        const auto at = files.find(key(add));
        if (at == files.end()) {
          ++surplus;
          example = add.path;
          return;
        }
        other_size += at->second != add.size ? 1 : 0;
        files.erase(at);
      },
      false);
  if (surplus > 0) {
    out.push_back("it has " + std::to_string(surplus) + " files that the commits do not have, such as " + example);
  }
  if (!files.empty()) {
    out.push_back("it lacks " + std::to_string(files.size()) + " files of the commits, such as " +
                  files.begin()->first.substr(0, files.begin()->first.find('\0')));
  }
  if (other_size > 0) {
    out.push_back("it gives " + std::to_string(other_size) + " files another size");
  }
  std::int64_t transactions = 0;
  commits.transactions.ForEach([&](const SetTransaction& t) {
    const SetTransaction* there = checkpoint.transactions.Find(t.app_id);
    transactions += there != nullptr && there->version != t.version ? 1 : 0;
  });
  if (transactions > 0) {
    out.push_back("it gives " + std::to_string(transactions) + " applications another transaction");
  }
  commits.domains.ForEach([&](const DomainMetadata& d) {
    const DomainMetadata* there = checkpoint.domains.Find(d.domain);
    if (!d.removed && (there == nullptr || there->configuration != d.configuration)) {
      out.push_back("its domain " + d.domain + " is not that of the commits");
    }
  });
  return out;
}

class Log final : public DeltaLog {
 public:
  Log(storage::Location location, const LogContext& context, std::shared_ptr<ThreadPool> background)
      : location_(std::move(location)), context_(context), background_(std::move(background)) {}

  const storage::Location& location() const override { return location_; }
  const LogContext& context() const override { return context_; }

  Result<bool> Exists() override {
    if (Cached() != nullptr && location_.store->Head(CommitPath(location_.path, Cached()->version())).ok()) {
      return true;
    }
    FLEUVE_ASSIGN(const auto entries, ListLog({}));
    const Listing listing = Sort(entries);
    return !listing.commits.empty() || !listing.checkpoints.empty();
  }

  SnapshotPtr Cached() override {
    const std::lock_guard lock(state_mutex_);
    return latest_;
  }

  Result<SnapshotPtr> Latest() override {
    const std::lock_guard refresh(refresh_mutex_);
    SnapshotPtr known = Cached();
    if (known != nullptr) {
      FLEUVE_ASSIGN(SnapshotPtr next, Advance(known));
      if (next != nullptr) {
        return next;
      }
    }
    std::string etag;
    FLEUVE_ASSIGN(SnapshotPtr loaded, Load(std::nullopt, &etag));
    Keep(loaded, etag);
    return loaded;
  }

  Result<SnapshotPtr> At(std::int64_t version) override {
    // A kept snapshot counts only while its commit is still the same file: the table may have been made anew.
    if (const auto head = location_.store->Head(CommitPath(location_.path, version)); head.ok()) {
      const std::lock_guard lock(state_mutex_);
      if (latest_ != nullptr && latest_->version() == version && head->etag == etag_) {
        return latest_;
      }
      if (last_old_ != nullptr && last_old_->version() == version && head->etag == last_old_etag_) {
        return last_old_;
      }
    }
    std::string etag;
    FLEUVE_ASSIGN(SnapshotPtr loaded, Load(version, &etag));
    const std::lock_guard lock(state_mutex_);
    last_old_ = loaded;
    last_old_etag_ = etag;
    return loaded;
  }

  Result<Commit> ReadCommit(std::int64_t version) override {
    std::string etag;
    return ReadCommitFile(version, &etag);
  }

  Result<std::vector<VersionTime>> CommitsFrom(std::int64_t start) override {
    FLEUVE_ASSIGN(const auto entries, ListLog({}));
    const Listing listing = Sort(entries);
    std::optional<std::int64_t> enabled_at;
    if (auto latest = Latest(); latest.ok() && (*latest)->BooleanProperty("delta.enableInCommitTimestamps", false)) {
      enabled_at = 0;
      if (const std::string* text = (*latest)->Property("delta.inCommitTimestampEnablementVersion")) {
        enabled_at = std::strtoll(text->c_str(), nullptr, 10);
      }
    }
    std::vector<VersionTime> times;
    std::int64_t previous = -1;
    for (const storage::ObjectMeta& entry : listing.commits) {
      const std::int64_t version = VersionOf(NameOf(entry));
      std::int64_t time = entry.modified_ms;
      if (enabled_at && version >= *enabled_at) {
        FLEUVE_ASSIGN(const auto ict, InCommitTime(version));
        time = ict.value_or(time);
      } else {
        time = std::max(time, previous + 1);
      }
      previous = time;
      if (version >= start) {
        times.push_back({version, time});
      }
    }
    return times;
  }

  Result<std::int64_t> EarliestVersion(bool recreatable) override {
    FLEUVE_ASSIGN(const auto entries, ListLog({}));
    const Listing listing = Sort(entries);
    if (!recreatable) {
      if (listing.commits.empty()) {
        return TableNotFound(location_.path);
      }
      return VersionOf(NameOf(listing.commits.front()));
    }
    if (!listing.commits.empty() && VersionOf(NameOf(listing.commits.front())) == 0) {
      return std::int64_t{0};
    }
    // The oldest checkpoint that commits lead on from (or that stands alone at the end).
    for (const CheckpointFiles& files : listing.checkpoints) {
      return files.version;
    }
    return Error(ErrorKind::kNotFound, "DELTA_NO_RECREATABLE_HISTORY_FOUND",
                 "No version of the table at " + location_.path +
                     " can be rebuilt: its first commits are gone and no "
                     "checkpoint is there.");
  }

  Result<VersionTime> VersionAtTime(std::int64_t timestamp_ms, bool can_return_last, bool must_be_recreatable,
                                    bool can_return_earliest) override {
    FLEUVE_ASSIGN(const std::int64_t earliest, EarliestVersion(must_be_recreatable));
    FLEUVE_ASSIGN(const std::vector<VersionTime> times, CommitsFrom(earliest));
    if (times.empty()) {
      return TableNotFound(location_.path);
    }
    if (timestamp_ms < times.front().timestamp_ms) {
      if (can_return_earliest) {
        return times.front();
      }
      return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
                   "The time asked for (" + Text(timestamp_ms) + ") is before the earliest version available (" +
                       Text(times.front().timestamp_ms) + ").")
          .With("userTimestamp", Text(timestamp_ms))
          .With("commitTs", Text(times.front().timestamp_ms))
          .With("timestampString", Text(times.front().timestamp_ms));
    }
    if (timestamp_ms > times.back().timestamp_ms && !can_return_last) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                   "The time asked for (" + Text(timestamp_ms) + ") is after the latest version (" +
                       Text(times.back().timestamp_ms) + ").")
          .With("providedTimestamp", Text(timestamp_ms))
          .With("lastCommitTimestamp", Text(times.back().timestamp_ms))
          .With("maximumTimestamp", Text(times.back().timestamp_ms));
    }
    VersionTime found = times.front();
    for (const VersionTime& time : times) {
      if (time.timestamp_ms <= timestamp_ms) {
        found = time;
      }
    }
    return found;
  }

  void Committed(std::int64_t version, std::int64_t timestamp_ms, const std::string& etag,
                 const std::vector<Action>& actions, std::int64_t checkpoint_part_rows) override {
    {
      const std::lock_guard refresh(refresh_mutex_);
      const SnapshotPtr known = Cached();
      if ((known == nullptr && version == 0) || (known != nullptr && known->version() + 1 == version)) {
        SnapshotState empty;
        empty.location = location_;
        auto next = ApplyCommit(known == nullptr ? empty : known->state(), version, timestamp_ms, actions);
        if (next.ok() && (*next)->shape && (*next)->protocol) {
          Keep(std::make_shared<const Snapshot>(*std::move(next)), etag);
        }
      }
    }
    std::vector<std::function<void(std::int64_t)>> listeners;
    {
      const std::lock_guard lock(state_mutex_);
      for (const auto& [key, listener] : listeners_) {
        listeners.push_back(listener);
      }
    }
    for (const auto& listener : listeners) {
      listener(version);
    }
    MaybeCheckpoint(version, checkpoint_part_rows);
  }

  std::int64_t AddCommitListener(std::function<void(std::int64_t)> listener) override {
    const std::lock_guard lock(state_mutex_);
    listeners_[++last_key_] = std::move(listener);
    return last_key_;
  }

  void RemoveCommitListener(std::int64_t key) override {
    const std::lock_guard lock(state_mutex_);
    listeners_.erase(key);
  }

  Result<void> Checkpoint(std::int64_t part_rows) override {
    FLEUVE_ASSIGN(const SnapshotPtr snapshot, Latest());
    FLEUVE_TRY(WriteCheckpoint(*snapshot, context_, part_rows));
    return CleanUpLog(*snapshot, context_);
  }

  Result<std::vector<std::string>> Check() override {
    FLEUVE_ASSIGN(const auto entries, ListLog({}));
    const Listing listing = Sort(entries);
    if (listing.commits.empty() && listing.checkpoints.empty()) {
      return TableNotFound(location_.path);
    }
    std::vector<std::string> problems;
    if (listing.has_incomplete) {
      problems.push_back("the checkpoint of version " + std::to_string(listing.incomplete_version) +
                         " misses some of its parts");
    }
    const auto checkpoint_name = [](const CheckpointFiles& files) { return files.names.front(); };
    std::shared_ptr<SnapshotState> state;
    if (!listing.commits.empty() && VersionOf(NameOf(listing.commits.front())) == 0) {
      state = std::make_shared<SnapshotState>();
      state->location = location_;
    }
    auto checkpoint = listing.checkpoints.begin();
    const auto compare_until = [&](std::int64_t version) {
      for (; checkpoint != listing.checkpoints.end() && checkpoint->version <= version; ++checkpoint) {
        auto loaded = LoadCheckpoint(location_, context_, *checkpoint);
        if (!loaded.ok()) {
          problems.push_back(checkpoint_name(*checkpoint) + ": " + loaded.error().message());
          continue;
        }
        if (state != nullptr && state->version == checkpoint->version) {
          for (const std::string& text : DifferencesOf(*state, **loaded)) {
            problems.push_back(checkpoint_name(*checkpoint) + ": " + text);
          }
        } else if (state == nullptr || state->version < checkpoint->version) {
          state = *std::move(loaded);
        }
      }
    };
    for (const storage::ObjectMeta& entry : listing.commits) {
      const std::int64_t version = VersionOf(NameOf(entry));
      compare_until(version - 1);
      if (state == nullptr || version <= state->version) {
        continue;  // older than the first checkpoint
      }
      if (version != state->version + 1) {
        problems.push_back("commits " + std::to_string(state->version + 1) + " to " + std::to_string(version - 1) +
                           " are missing");
        state = nullptr;
        continue;
      }
      std::string etag;
      auto commit = ReadCommitFile(version, &etag);
      auto next = commit.ok() ? ApplyCommit(*state, version, commit->timestamp_ms, commit->actions)
                              : Result<std::shared_ptr<SnapshotState>>(commit.error());
      if (!next.ok()) {
        problems.push_back(std::string(NameOf(entry)) + ": " + next.error().message());
        state = nullptr;
        continue;
      }
      state = *std::move(next);
    }
    compare_until(std::numeric_limits<std::int64_t>::max());
    return problems;
  }

  void WaitForBackground() override {
    std::unique_lock lock(state_mutex_);
    background_done_.wait(lock, [&] { return !checkpoint_running_ || checkpoint_is_large_; });
  }

 private:
  static std::string Text(std::int64_t ms) { return types::TimestampNtzToString(ms * 1000); }

  Result<std::vector<storage::ObjectMeta>> ListLog(std::string_view start_after) {
    auto entries = location_.store->List(LogFolder(location_.path), start_after);
    if (!entries.ok() && entries.error().kind() == ErrorKind::kNotFound) {
      return std::vector<storage::ObjectMeta>();
    }
    return entries;
  }

  void Keep(const SnapshotPtr& snapshot, std::string etag) {
    const std::lock_guard lock(state_mutex_);
    latest_ = snapshot;
    etag_ = std::move(etag);
  }

  Result<fleuve::delta::Commit> ReadCommitFile(std::int64_t version, std::string* etag) {
    const std::string path = CommitPath(location_.path, version);
    auto head = location_.store->Head(path);
    if (!head.ok()) {
      if (head.error().kind() != ErrorKind::kNotFound) {
        return std::move(head).error();
      }
      return Error(ErrorKind::kNotFound, "DELTA_LOG_FILE_NOT_FOUND", "The commit file " + path + " is missing.")
          .With("version", std::to_string(version))
          .With("logPath", LogFolder(location_.path));
    }
    auto text = location_.store->Get(path);
    if (!text.ok()) {
      return std::move(text).error();
    }
    fleuve::delta::Commit commit;
    commit.version = version;
    commit.timestamp_ms = head->modified_ms;
    commit.size_bytes = static_cast<std::int64_t>(text->size());
    *etag = head->etag;
    FLEUVE_ASSIGN(commit.actions, ParseActions(*text, path));
    for (const Action& action : commit.actions) {
      if (const auto* info = std::get_if<CommitInfo>(&action); info != nullptr && info->in_commit_timestamp) {
        commit.timestamp_ms = *info->in_commit_timestamp;
      }
    }
    return commit;
  }

  Result<std::optional<std::int64_t>> InCommitTime(std::int64_t version) {
    // In-commit times stand in the first line.
    auto text = location_.store->Get(CommitPath(location_.path, version));
    if (!text.ok()) {
      return std::move(text).error();
    }
    const std::string first = text->substr(0, text->find('\n'));
    FLEUVE_ASSIGN(const auto actions, ParseActions(first, CommitPath(location_.path, version)));
    for (const Action& action : actions) {
      if (const auto* info = std::get_if<CommitInfo>(&action)) {
        return info->in_commit_timestamp;
      }
    }
    return std::optional<std::int64_t>();
  }

  /// From a known snapshot to the newest, by asking for the next commits by name. Null: the known one is no longer part
  /// of the log.
  Result<SnapshotPtr> Advance(const SnapshotPtr& known) {
    const auto head = location_.store->Head(CommitPath(location_.path, known->version()));
    if (!head.ok()) {
      return head.error().kind() == ErrorKind::kNotFound ? Result<SnapshotPtr>(SnapshotPtr())
                                                         : Result<SnapshotPtr>(head.error());
    }
    {
      const std::lock_guard lock(state_mutex_);
      if (head->etag != etag_) {
        return SnapshotPtr();
      }
    }
    SnapshotPtr current = known;
    while (true) {
      std::string etag;
      auto commit = ReadCommitFile(current->version() + 1, &etag);
      if (!commit.ok()) {
        if (commit.error().kind() == ErrorKind::kNotFound) {
          return current;
        }
        return std::move(commit).error();
      }
      FLEUVE_ASSIGN(auto next, ApplyCommit(current->state(), commit->version, commit->timestamp_ms, commit->actions));
      current = std::make_shared<const Snapshot>(std::move(next));
      Keep(current, etag);
    }
  }

  Result<SnapshotPtr> Load(std::optional<std::int64_t> target, std::string* etag) {
    Listing listing;
    bool found = false;
    if (!target) {
      // The hint saves a long listing; it may be stale or wrong.
      const std::string path = LogFolder(location_.path) + "/_last_checkpoint";
      if (const auto text = location_.store->Get(path); text.ok()) {
        if (const auto json = Json::Parse(*text); json.ok() && (*json)["version"].is_int()) {
          const std::int64_t version = (*json)["version"].AsInt();
          FLEUVE_ASSIGN(const auto entries, ListLog(VersionName(version - 1) + ".z"));
          listing = Sort(entries);
          found = std::any_of(listing.checkpoints.begin(), listing.checkpoints.end(),
                              [&](const CheckpointFiles& files) { return files.version == version; });
        }
      }
    }
    if (!found) {
      FLEUVE_ASSIGN(const auto entries, ListLog({}));
      listing = Sort(entries);
    }
    if (listing.commits.empty() && listing.checkpoints.empty()) {
      return TableNotFound(location_.path);
    }
    const std::int64_t last_commit = listing.commits.empty() ? -1 : VersionOf(NameOf(listing.commits.back()));
    const std::int64_t last =
        std::max(last_commit, listing.checkpoints.empty() ? -1 : listing.checkpoints.back().version);
    const std::int64_t version = target.value_or(last);
    if (version > last || version < 0) {
      return VersionNotFound(version, last);
    }
    const CheckpointFiles* checkpoint = nullptr;
    for (const CheckpointFiles& files : listing.checkpoints) {
      if (files.version <= version) {
        checkpoint = &files;
      }
    }
    SnapshotState empty;
    empty.location = location_;
    std::shared_ptr<SnapshotState> state = std::make_shared<SnapshotState>(empty);
    if (checkpoint != nullptr) {
      auto loaded = LoadCheckpoint(location_, context_, *checkpoint);
      if (!loaded.ok() && loaded.error().condition() == "DELTA_MISSING_PART_FILES") {
        // A part went away between the listing and the reading, or was never there.
        return std::move(loaded).error();
      }
      FLEUVE_ASSIGN(state, std::move(loaded));
    }
    // Commits behind the checkpoint, without a hole.
    std::int64_t expected = state->version + 1;
    const std::int64_t first = expected;
    *etag = "";
    for (const storage::ObjectMeta& entry : listing.commits) {
      const std::int64_t v = VersionOf(NameOf(entry));
      if (v == state->version && checkpoint != nullptr) {
        state->timestamp_ms = entry.modified_ms;
        *etag = entry.etag;
      }
      if (v < expected || v > version) {
        continue;
      }
      if (v != expected) {
        if (expected == first && checkpoint == nullptr) {
          if (listing.has_incomplete) {
            return MissingParts(listing.incomplete_version);
          }
          if (target) {
            return VersionNotFound(version, last);
          }
          return Error(ErrorKind::kNotFound, "DELTA_TRUNCATED_TRANSACTION_LOG",
                       "The first commits of the table at " + location_.path +
                           " are gone and no checkpoint replaces them: the table cannot be rebuilt.")
              .With("path", CommitPath(location_.path, 0))
              .With("version", std::to_string(version))
              .With("logRetentionKey", "delta.logRetentionDuration")
              .With("checkpointRetentionKey", "delta.checkpointRetentionDuration");
        }
        return NotContiguous(expected - 1, v);
      }
      std::string commit_etag;
      auto commit = ReadCommitFile(v, &commit_etag);
      if (!commit.ok()) {
        return std::move(commit).error();
      }
      FLEUVE_ASSIGN(state, ApplyCommit(*state, v, commit->timestamp_ms, commit->actions));
      *etag = commit_etag;
      ++expected;
    }
    if (state->version != version) {
      if (checkpoint == nullptr && listing.has_incomplete) {
        return MissingParts(listing.incomplete_version);
      }
      return target ? VersionNotFound(version, last) : NotContiguous(state->version, version);
    }
    if (!state->protocol || !state->shape) {
      return Error(ErrorKind::kCorrupt, "DELTA_STATE_RECOVER_ERROR",
                   "The log of " + location_.path + " holds no " + (state->protocol ? "metadata" : "protocol") +
                       " at version " + std::to_string(version) + ".")
          .With("operation", state->protocol ? "metadata" : "protocol")
          .With("version", std::to_string(version));
    }
    return std::make_shared<const Snapshot>(std::move(state));
  }

  static Error MissingParts(std::int64_t version) {
    return Error(ErrorKind::kCorrupt, "DELTA_MISSING_PART_FILES",
                 "The checkpoint of version " + std::to_string(version) + " misses some of its parts.")
        .With("version", std::to_string(version));
  }

  static Error VersionNotFound(std::int64_t version, std::int64_t last) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_VERSION_NOT_FOUND",
                 "Version " + std::to_string(version) +
                     " cannot be rebuilt from the log (latest version: " + std::to_string(last) + ").")
        .With("userVersion", std::to_string(version))
        .With("latest", std::to_string(last));
  }

  void MaybeCheckpoint(std::int64_t version, std::int64_t part_rows) {
    const SnapshotPtr snapshot = Cached();
    if (snapshot == nullptr || snapshot->version() < version || version == 0 || !context_.parquet_writer) {
      return;
    }
    std::int64_t interval = 10;
    if (const std::string* text = snapshot->Property("delta.checkpointInterval")) {
      interval = std::max<std::int64_t>(1, std::strtoll(text->c_str(), nullptr, 10));
    }
    if (version % interval != 0) {
      return;
    }
    {
      const std::lock_guard lock(state_mutex_);
      if (checkpoint_running_) {
        return;
      }
      checkpoint_running_ = true;
      checkpoint_is_large_ = snapshot->file_count() > kLargeTable;
    }
    // The snapshot of exactly this version where it is still known; a later one serves as well.
    background_->Submit([self = shared_from_this(), this, snapshot, part_rows] {
      auto done = WriteCheckpoint(*snapshot, context_, part_rows);
      if (done.ok()) {
        done = CleanUpLog(*snapshot, context_);
      }
      if (!done.ok()) {
        LogWarn("checkpoint of " + location_.path + " failed: " + done.error().ToString());
      }
      {
        const std::lock_guard lock(state_mutex_);
        checkpoint_running_ = false;
      }
      background_done_.notify_all();
    });
  }

  const storage::Location location_;
  const LogContext& context_;
  const std::shared_ptr<ThreadPool> background_;
  std::mutex refresh_mutex_;
  std::mutex state_mutex_;
  SnapshotPtr latest_;
  std::string etag_;
  SnapshotPtr last_old_;
  std::string last_old_etag_;
  /// A checkpoint of so many files takes seconds: commands do not wait for it.
  static constexpr std::int64_t kLargeTable = 20000;
  bool checkpoint_is_large_ = false;
  std::map<std::int64_t, std::function<void(std::int64_t)>> listeners_;
  std::int64_t last_key_ = 0;
  bool checkpoint_running_ = false;
  std::condition_variable background_done_;
};

}  // namespace

struct LogRegistry::Entry {
  std::shared_ptr<DeltaLog> log;
};

LogRegistry::LogRegistry(LogContext context)
    : context_(std::move(context)), background_(std::make_shared<ThreadPool>(1)) {}

LogRegistry::~LogRegistry() {
  background_.reset();  // finishes checkpoints that run
}

DeltaLogPtr LogRegistry::Open(const storage::Location& location) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto& at = entries_[i]->log->location();
    if (at.path == location.path && at.store == location.store) {
      auto entry = entries_[i];
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
      entries_.push_back(entry);
      return entry->log;
    }
  }
  constexpr std::size_t kMostLogs = 500;
  for (std::size_t i = 0; entries_.size() >= kMostLogs && i < entries_.size(); ++i) {
    if (entries_[i]->log.use_count() == 1) {
      entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  auto entry = std::make_shared<Entry>();
  entry->log = std::make_shared<Log>(location, context_, background_);
  entries_.push_back(entry);
  return entry->log;
}

}  // namespace fleuve::delta
