#include "delta/log.h"

#include <algorithm>
#include <array>
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
#include "delta/log_compaction_internal.h"
#include "delta/log_listing_internal.h"
#include "delta/own_commits_internal.h"
#include "delta/version_checksum_internal.h"

namespace fleuve::delta {
namespace {

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
    // A long log is not listed only to learn that it is there.
    const std::optional<std::int64_t> hint = HintedVersion();
    for (const std::int64_t version : {std::int64_t{0}, hint.value_or(0)}) {
      if (location_.store->Head(CommitPath(location_.path, version)).ok()) {
        return true;
      }
    }
    FLEUVE_ASSIGN(const auto entries, ListLog({}));
    const LogListing listing = SortLog(entries);
    return !listing.commits.empty() || !listing.checkpoints.empty();
  }

  SnapshotPtr Cached() override {
    const std::lock_guard lock(state_mutex_);
    return latest_;
  }

  Result<SnapshotPtr> Latest() override {
    const std::lock_guard refresh(refresh_mutex_);
    SnapshotPtr known = Cached();
    std::vector<ReplacedCommit> replaced;
    if (known != nullptr) {
      FLEUVE_ASSIGN(SnapshotPtr next, Advance(known));
      replaced = own_commits_.Replaced(location_, context_.clock->MonotonicNanos(), next == nullptr);
      if (next != nullptr && replaced.empty()) {
        return next;
      }
    }
    std::string etag;
    FLEUVE_ASSIGN(SnapshotPtr loaded, Load(std::nullopt, &etag));
    Keep(loaded, etag);
    for (const ReplacedCommit& commit : replaced) {
      if (commit.table_id == loaded->metadata().id) {  // else the table was made anew
        return Replaced(commit);
      }
    }
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
    const LogListing listing = SortLog(entries);
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
    const LogListing listing = SortLog(entries);
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
          .With("userTimestamp", WithFraction(timestamp_ms))
          .With("commitTs", WithFraction(times.front().timestamp_ms))
          .With("timestampString", Text(times.front().timestamp_ms));
    }
    if (timestamp_ms > times.back().timestamp_ms && !can_return_last) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
                   "The time asked for (" + Text(timestamp_ms) + ") is after the latest version (" +
                       Text(times.back().timestamp_ms) + ").")
          .With("providedTimestamp", WithFraction(timestamp_ms))
          .With("tableName", WithFraction(times.back().timestamp_ms))  // so named by Spark
          .With("maximumTimestamp", Text(times.back().timestamp_ms / 1000 * 1000));
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
                 const std::vector<Action>& actions, const CheckpointShape& checkpoint) override {
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
      } else if (known != nullptr && known->version() < version) {
        // Others were faster: their commits are read now instead of at the next look, and ours with them.
        (void)Advance(known);
      }
    }
    const CommitInfo* info = nullptr;
    for (const Action& action : actions) {
      info = info == nullptr ? std::get_if<CommitInfo>(&action) : info;
    }
    const SnapshotPtr after = Cached();
    const bool is_known = after != nullptr && after->version() == version;
    if (info != nullptr && info->txn_id && after != nullptr) {
      own_commits_.Add(version, etag, *info->txn_id, after->metadata().id, context_.clock->MonotonicNanos());
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
    if (info != nullptr && is_known) {
      WriteVersionChecksum(after->state(), info->txn_id.value_or(""), info->in_commit_timestamp)
          .IgnoreBecause("a version without a checksum is as good");
    }
    MaybeCheckpoint(version, checkpoint);
  }

  Error CommitWasReplaced(const fleuve::delta::Commit& there) override {
    {
      const std::lock_guard lock(state_mutex_);
      latest_ = nullptr;
    }
    return Replaced({there.version, "", WriterOf(there.actions)});
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

  Result<void> Checkpoint(const CheckpointShape& shape) override {
    FLEUVE_ASSIGN(const SnapshotPtr snapshot, Latest());
    return CheckpointOf(*snapshot, shape);
  }

  Result<std::vector<std::string>> Check() override {
    FLEUVE_ASSIGN(const auto entries, ListLog({}));
    const LogListing listing = SortLog(entries);
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
      if (const auto checksum = ReadVersionChecksum(location_, version)) {
        for (const std::string& text : DifferencesFrom(*checksum, *state)) {
          problems.push_back(std::string(NameOf(entry)) + ": " + text);
        }
      }
    }
    compare_until(std::numeric_limits<std::int64_t>::max());
    for (const CompactionFile& file : listing.compactions) {
      FLEUVE_TRY(CheckCompaction(file, &problems));
    }
    return problems;
  }

  void WaitForBackground() override {
    std::unique_lock lock(state_mutex_);
    background_done_.wait(lock, [&] { return !checkpoint_running_ || checkpoint_is_large_; });
  }

 private:
  Error Replaced(const ReplacedCommit& commit) {
    Error error = Error(ErrorKind::kConflict, "FLEUVE_COMMIT_REPLACED",
                        "Version " + std::to_string(commit.version) + " of the table at " + location_.path +
                            " was committed by this process and then replaced by another writer (" + commit.by +
                            "). What this process had committed as that version is lost. That writer renames its "
                            "commits over existing ones: let it not write to this table at the same time.")
                      .With("version", std::to_string(commit.version))
                      .With("path", location_.path)
                      .With("writer", commit.by);
    LogError(error.ToString());
    return error;
  }

  /// Checkpoint and clean-up of a state that the log still agrees with.
  Result<void> CheckpointOf(const Snapshot& snapshot, const CheckpointShape& shape) {
    for (const ReplacedCommit& commit : own_commits_.Replaced(location_, context_.clock->MonotonicNanos(), true)) {
      if (commit.table_id == snapshot.metadata().id) {
        {
          const std::lock_guard lock(state_mutex_);
          latest_ = nullptr;
        }
        return Replaced(commit);
      }
    }
    FLEUVE_TRY(CompareWithChecksum(snapshot.state()));
    FLEUVE_TRY(WriteCheckpoint(snapshot, context_, shape));
    return CleanUpLog(snapshot, context_);
  }

  /// A compaction must say what its commits say.
  Result<void> CheckCompaction(const CompactionFile& file, std::vector<std::string>* problems) {
    const std::string path = CompactionPath(location_.path, file.first, file.last);
    const auto name = path.substr(path.rfind('/') + 1);
    FLEUVE_ASSIGN(const std::string text, location_.store->Get(path));
    const auto actions = ParseActions(text, path);
    if (!actions.ok()) {
      problems->push_back(name + ": " + actions.error().message());
      return {};
    }
    std::vector<std::vector<Action>> commits;
    for (std::int64_t version = file.first; version <= file.last; ++version) {
      std::string etag;
      auto commit = ReadCommitFile(version, &etag);
      if (!commit.ok()) {
        return {};  // cleaned up, or told already
      }
      commits.push_back(std::move(commit->actions));
    }
    const auto files = [](const std::vector<Action>& some) {
      std::set<std::string> keys;
      for (const Action& action : some) {
        if (const auto* add = std::get_if<AddFile>(&action)) {
          keys.insert("+" + add->path + (add->deletion_vector ? add->deletion_vector->UniqueId() : std::string()));
        } else if (const auto* remove = std::get_if<RemoveFile>(&action)) {
          keys.insert("-" + remove->path +
                      (remove->deletion_vector ? remove->deletion_vector->UniqueId() : std::string()));
        }
      }
      return keys;
    };
    if (files(*actions) != files(Compact(commits))) {
      problems->push_back(name + ": its files are not those of the commits");
    }
    return {};
  }

  static std::string Text(std::int64_t ms) { return types::TimestampNtzToString(ms * 1000); }
  /// As Java prints timestamps: whole seconds end in `.0`.
  static std::string WithFraction(std::int64_t ms) { return Text(ms) + (ms % 1000 == 0 ? ".0" : ""); }

  Result<std::vector<storage::ObjectMeta>> ListLog(std::string_view start_after) {
    auto entries = location_.store->List(LogFolder(location_.path), start_after);
    if (!entries.ok() && entries.error().kind() == ErrorKind::kNotFound) {
      return std::vector<storage::ObjectMeta>();
    }
    return entries;
  }

  /// The version that `_last_checkpoint` names; nullopt where it cannot be read.
  std::optional<std::int64_t> HintedVersion() {
    const auto text = location_.store->Get(LogFolder(location_.path) + "/_last_checkpoint");
    if (!text.ok()) {
      return std::nullopt;
    }
    const auto json = Json::Parse(*text);
    if (!json.ok() || !(*json)["version"].is_int() || (*json)["version"].AsInt() < 0) {
      return std::nullopt;
    }
    return (*json)["version"].AsInt();
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
    LogListing listing;
    bool found = false;
    if (!target) {
      // The hint saves a long listing; it may be stale or wrong.
      if (const std::optional<std::int64_t> hint = HintedVersion()) {
        FLEUVE_ASSIGN(const auto entries, ListLog(*hint == 0 ? "" : VersionName(*hint - 1) + ".z"));
        listing = SortLog(entries);
        found = std::any_of(listing.checkpoints.begin(), listing.checkpoints.end(),
                            [&](const CheckpointFiles& files) { return files.version == *hint; });
      }
    }
    if (!found) {
      FLEUVE_ASSIGN(const auto entries, ListLog({}));
      listing = SortLog(entries);
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
    FLEUVE_ASSIGN(Base base, LoadBase(&listing, found, version));
    std::shared_ptr<SnapshotState> state = std::move(base.state);
    const bool has_checkpoint = state->version >= 0;
    // Commits behind the checkpoint, without a hole.
    std::int64_t expected = state->version + 1;
    const std::int64_t first = expected;
    std::int64_t compacted_until = -1;
    *etag = "";
    for (const storage::ObjectMeta& entry : listing.commits) {
      const std::int64_t v = VersionOf(NameOf(entry));
      if (v == state->version && has_checkpoint) {
        state->timestamp_ms = entry.modified_ms;
        *etag = entry.etag;
      }
      if (v < expected || v > version) {
        continue;
      }
      if (v <= compacted_until) {
        ++expected;  // it is in the compaction
        continue;
      }
      if (v != expected) {
        if (base.failure) {
          return *std::move(base.failure);
        }
        if (expected == first && !has_checkpoint) {
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
      // The last commit is read itself: its time is the snapshot's.
      if (const CompactionFile* compaction = CompactionFrom(listing, v, version - 1)) {
        if (auto compacted = ApplyCompaction(*state, *compaction); compacted.ok()) {
          state = *std::move(compacted);
          compacted_until = compaction->last;
          ++expected;
          continue;
        }
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
      if (base.failure) {
        return *std::move(base.failure);
      }
      if (!has_checkpoint && listing.has_incomplete) {
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
    if (auto compared = CompareWithChecksum(*state); !compared.ok()) {
      LogWarn(compared.error().ToString());
    }
    return std::make_shared<const Snapshot>(std::move(state));
  }

  /// What the commits are applied to: a checkpoint's state, or nothing.
  struct Base {
    std::shared_ptr<SnapshotState> state;
    /// Why a newer checkpoint could not be read, where that was so.
    std::optional<Error> failure;
  };

  /// The newest checkpoint at or before `version` that can be read. \param from_hint  the listing begins at the newest
  /// checkpoint: it is made whole where that cannot be read.
  Result<Base> LoadBase(LogListing* listing, bool from_hint, std::int64_t version) {
    Base base;
    std::int64_t below = version + 1;
    std::set<std::string> tried;
    for (bool whole = !from_hint;; whole = true) {
      for (auto files = listing->checkpoints.rbegin(); files != listing->checkpoints.rend(); ++files) {
        if (files->version >= below || !tried.insert(files->names.front()).second) {
          continue;
        }
        auto loaded = LoadCheckpoint(location_, context_, *files);
        if (loaded.ok()) {
          base.state = *std::move(loaded);
          return base;
        }
        const ErrorKind kind = loaded.error().kind();
        if (kind == ErrorKind::kUnsupported || kind == ErrorKind::kTransient || kind == ErrorKind::kPermissionDenied ||
            kind == ErrorKind::kResourceExhausted || kind == ErrorKind::kCancelled) {
          return std::move(loaded).error();
        }
        LogWarn("the checkpoint " + files->names.front() + " of " + location_.path +
                " cannot be read, an older one or the commits are taken: " + loaded.error().ToString());
        if (!base.failure) {
          base.failure = std::move(loaded).error();
        }
      }
      if (whole || !base.failure) {
        break;
      }
      FLEUVE_ASSIGN(const auto entries, ListLog({}));
      *listing = SortLog(entries);
    }
    if (base.failure && (listing->commits.empty() || VersionOf(NameOf(listing->commits.front())) != 0)) {
      return *std::move(base.failure);
    }
    base.state = std::make_shared<SnapshotState>();
    base.state->location = location_;
    return base;
  }

  /// The longest compaction that begins at `first`, ends at or before `last` and whose commits are all there.
  static const CompactionFile* CompactionFrom(const LogListing& listing, std::int64_t first, std::int64_t last) {
    const auto has = [&](std::int64_t version) {
      return std::binary_search(listing.commits.begin(), listing.commits.end(), version,
                                [](const auto& a, const auto& b) {
                                  const auto of = [](const auto& x) {
                                    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, std::int64_t>) {
                                      return x;
                                    } else {
                                      return VersionOf(NameOf(x));
                                    }
                                  };
                                  return of(a) < of(b);
                                });
    };
    const CompactionFile* found = nullptr;
    for (const CompactionFile& file : listing.compactions) {
      if (file.first == first && file.last <= last) {
        found = &file;
      }
    }
    for (std::int64_t version = first; found != nullptr && version <= found->last; ++version) {
      found = has(version) ? found : nullptr;
    }
    return found;
  }

  Result<std::shared_ptr<SnapshotState>> ApplyCompaction(const SnapshotState& before, const CompactionFile& file) {
    const std::string path = CompactionPath(location_.path, file.first, file.last);
    FLEUVE_ASSIGN(const std::string text, location_.store->Get(path));
    FLEUVE_ASSIGN(const std::vector<Action> actions, ParseActions(text, path));
    if (!IsReconciled(actions)) {
      return Error(ErrorKind::kCorrupt, "DELTA_CORRUPT_LOG", path + " holds two actions of one file.");
    }
    return ApplyCommit(before, file.last, before.timestamp_ms, actions);
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

  void MaybeCheckpoint(std::int64_t version, const CheckpointShape& shape) {
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
    // A checkpoint costs what the table's size is, a commit does not. Where the table does not ask for its interval, it
    // is written the more seldom the more files there are; compactions keep the log behind it short.
    const std::int64_t seldom = std::clamp<std::int64_t>(snapshot->file_count() / kFilesPerInterval, 1, 500);
    const bool compacts =
        snapshot->Property("delta.checkpointInterval") == nullptr && version % (interval * seldom) != 0;
    {
      const std::lock_guard lock(state_mutex_);
      if (checkpoint_running_) {
        return;
      }
      checkpoint_running_ = true;
      checkpoint_is_large_ = !compacts && snapshot->file_count() > kLargeTable;
    }
    if (compacts) {
      background_->Submit([self = shared_from_this(), this, version, interval] {
        if (auto done = WriteCompaction(*this, version - interval + 1, version); !done.ok()) {
          LogWarn("compaction of the log of " + location_.path + " failed: " + done.error().ToString());
        }
        {
          const std::lock_guard lock(state_mutex_);
          checkpoint_running_ = false;
        }
        background_done_.notify_all();
      });
      return;
    }
    // The snapshot of exactly this version where it is still known; a later one serves as well.
    background_->Submit([self = shared_from_this(), this, snapshot, shape] {
      if (auto done = CheckpointOf(*snapshot, shape); !done.ok()) {
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
  /// So many files make one interval's checkpoint worth its commits.
  static constexpr std::int64_t kFilesPerInterval = 2000;
  bool checkpoint_is_large_ = false;
  std::map<std::int64_t, std::function<void(std::int64_t)>> listeners_;
  std::int64_t last_key_ = 0;
  OwnCommits own_commits_;
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
