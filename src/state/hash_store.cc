// The store as hash tables in memory; the files are the truth.

#include <algorithm>
#include <deque>
#include <memory>

#include "base/failpoint.h"
#include "state/changelog_internal.h"
#include "state/row_table_internal.h"

namespace fleuve::state {

namespace {

/// Snapshots: not before this many versions, and not so often that they cost more bytes per batch than this.
constexpr std::int64_t kFewestVersions = 10;
constexpr std::int64_t kMostVersions = 100;
constexpr std::int64_t kSnapshotBytesPerVersion = 256 << 10;
/// Old files removed with one batch.
constexpr int kRemovalsPerBatch = 32;

class HashStore final : public Store {
 public:
  explicit HashStore(StoreSpec spec) : spec_(std::move(spec)) {
    for (const SpaceSpec& space : spec_.spaces) {
      tables_.push_back(std::make_unique<RowTable>(space.timed            ? Timing::kKey
                                                   : space.timed_by_value ? Timing::kValue
                                                                          : Timing::kNone));
    }
  }

  /// Fills the tables with version `at`.
  Result<void> Load(const Version& at);

  const Version& version() const override { return version_; }

  void GetMany(SpaceId space, const ByteRows& keys, std::vector<std::string_view>* values) const override {
    values->clear();
    values->reserve(keys.size());
    RowTable::Ahead ahead(*tables_[space], keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ahead.Step(i);
      values->push_back(tables_[space]->Find(keys[i]));
    }
  }
  std::string_view Get(SpaceId space, std::string_view key) const override { return tables_[space]->Find(key); }
  void PutMany(SpaceId space, const ByteRows& keys, const ByteRows& values) override {
    RowTable::Ahead ahead(*tables_[space], keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ahead.Step(i);
      Put(space, keys[i], values[i]);
    }
  }
  void Put(SpaceId space, std::string_view key, std::string_view value) override {
    tables_[space]->Put(key, value);
    AppendPut(changes_, space, key, value);
    ++change_count_;
  }
  void AddMany(SpaceId space, const ByteRows& keys, const ByteRows& values, std::vector<bool>* added) override {
    added->assign(keys.size(), false);
    RowTable::Ahead ahead(*tables_[space], keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ahead.Step(i);
      if (tables_[space]->Add(keys[i], values[i])) {
        (*added)[i] = true;
        AppendPut(changes_, space, keys[i], values[i]);
        ++change_count_;
      }
    }
  }
  void RemoveMany(SpaceId space, const ByteRows& keys) override {
    RowTable::Ahead ahead(*tables_[space], keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ahead.Step(i);
      Remove(space, keys[i]);
    }
  }
  bool Remove(SpaceId space, std::string_view key) override {
    // The key may be a view into the row that goes.
    const std::size_t before = changes_.size();
    AppendRemoval(changes_, space, key);
    if (!tables_[space]->Remove(key)) {
      changes_.resize(before);
      return false;
    }
    ++change_count_;
    return true;
  }

  void Range(SpaceId space, std::int64_t from, std::int64_t to, const Visit& visit) const override {
    tables_[space]->Range(from, to, visit);
  }
  void Scan(SpaceId space, const Visit& visit) const override { tables_[space]->Scan(visit); }
  std::int64_t row_count(SpaceId space) const override { return tables_[space]->row_count(); }

  Result<StagedFiles> Stage(const std::string& attempt, std::int64_t next_watermark_ms) override;
  Result<void> Apply() override;
  Result<void> Discard() override;
  StoreMetrics metrics() const override {
    StoreMetrics metrics;
    for (const auto& table : tables_) {
      metrics.memory_bytes += table->memory_bytes();
    }
    metrics.memory_bytes += static_cast<std::int64_t>(changes_.capacity());
    metrics.changelog_bytes = staged_bytes_;
    return metrics;
  }

 private:
  /// Puts a file's records into the tables.
  Result<void> Replay(const ParsedFile& file, const std::string& path);
  /// Removes what runs left that were given up: the version that is written next has one attempt only, and a commit
  /// need not name it. The folder is synced with the new changelog.
  Result<void> RemoveLater();
  Result<void> WriteSnapshot();
  Result<void> RemoveOld();
  std::int64_t payload_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& table : tables_) {
      bytes += table->payload_bytes();
    }
    return bytes;
  }

  StoreSpec spec_;
  std::vector<std::unique_ptr<RowTable>> tables_;
  Version version_;
  /// Records since version_.
  std::string changes_;
  std::int64_t change_count_ = 0;
  std::optional<ChangelogHeader> staged_;
  std::int64_t staged_bytes_ = 0;
  bool metadata_written_ = false;
  /// Since the newest snapshot (or version 0).
  std::int64_t bytes_since_ = 0;
  std::int64_t snapshot_version_ = 0;
  /// Synced snapshots by ascending version, and every file that may be removed one day.
  std::vector<std::int64_t> snapshots_;
  std::deque<std::pair<std::int64_t, std::string>> files_;
};

Result<void> HashStore::Replay(const ParsedFile& file, const std::string& path) {
  return ReadRecords(
      file.records, path, tables_.size(),
      [this](SpaceId space, std::string_view key, std::string_view value) { tables_[space]->Put(key, value); },
      [this](SpaceId space, std::string_view key) { tables_[space]->Remove(key); });
}

Result<void> HashStore::Load(const Version& at) {
  for (const auto& table : tables_) {
    table->Clear();
  }
  changes_.clear();
  change_count_ = 0;
  staged_.reset();
  bytes_since_ = 0;
  snapshot_version_ = 0;
  snapshots_.clear();
  files_.clear();
  version_ = at;
  const std::string& folder = spec_.folder.path;
  std::vector<FileName> names;
  auto listed = spec_.folder.store->List(folder);
  if (!listed.ok() && listed.error().kind() != ErrorKind::kNotFound) {
    return std::move(listed).error();
  }
  if (listed.ok()) {
    for (const storage::ObjectMeta& meta : *listed) {
      FileName name = ParseFileName(std::string_view(meta.path).substr(meta.path.rfind('/') + 1));
      if (name.version.number >= 0) {
        files_.emplace_back(name.version.number, meta.path);
        names.push_back(std::move(name));
      }
    }
  }
  std::sort(files_.begin(), files_.end());
  if (at.number == 0) {
    return {};
  }
  metadata_written_ = true;
  if (version_.attempt.empty()) {
    for (const FileName& name : names) {
      if (name.version.number != at.number || name.is_snapshot) {
        continue;
      }
      if (!version_.attempt.empty()) {
        return CannotLoad(ErrorKind::kCorrupt, "UNEXPECTED_VERSION",
                          "Version " + std::to_string(at.number) + " of the state in " + folder +
                              " was written by more than one run, and nothing says which of them was committed.");
      }
      version_.attempt = name.version.attempt;
    }
  }
  // Backwards from the wanted version to a snapshot or to the beginning.
  struct File {
    std::string path;
    std::unique_ptr<const std::string> text;
    ParsedFile parsed;  // views into `text`
  };
  std::vector<File> chain;
  std::optional<File> snapshot;
  Version wanted = version_;
  while (wanted.number > 0) {
    const bool has_snapshot = std::any_of(names.begin(), names.end(), [&](const FileName& name) {
      return name.is_snapshot && name.version.number == wanted.number && name.version.attempt == wanted.attempt;
    });
    if (has_snapshot) {
      std::string path = SnapshotPath(folder, wanted);
      auto got = spec_.folder.store->Get(path);
      // A snapshot that was cut off by a crash is no loss: the changelogs below it are still there.
      if (got.ok()) {
        auto text = std::make_unique<const std::string>(*std::move(got));
        if (auto parsed = ParseFile(*text, path); parsed.ok()) {
          snapshot = File{std::move(path), std::move(text), *std::move(parsed)};
          break;
        }
      }
    }
    std::string path = ChangelogPath(folder, wanted);
    auto got = spec_.folder.store->Get(path);
    if (!got.ok()) {
      if (got.error().kind() == ErrorKind::kNotFound) {
        return CannotLoad(ErrorKind::kNotFound, "CANNOT_READ_DELTA_FILE_NOT_EXISTS",
                          "Error reading delta file " + path + " of the state of operator " +
                              std::to_string(spec_.operator_id) + " (" + spec_.operator_name + "): " + path +
                              " does not exist.");
      }
      return std::move(got).error();
    }
    auto text = std::make_unique<const std::string>(*std::move(got));
    FLEUVE_ASSIGN(ParsedFile parsed, ParseFile(*text, path));
    wanted = Version{wanted.number - 1, parsed.header.base_attempt};
    bytes_since_ += static_cast<std::int64_t>(text->size());
    chain.push_back(File{std::move(path), std::move(text), std::move(parsed)});
  }
  if (snapshot) {
    snapshot_version_ = wanted.number;
    // A snapshot has its rows in the order of the table that wrote it. Into a table that grows on the way they would go
    // run upon run into slots that are taken.
    std::vector<std::size_t> rows(tables_.size(), 0);
    FLEUVE_TRY(ReadRecords(
        snapshot->parsed.records, snapshot->path, tables_.size(),
        [&rows](SpaceId space, std::string_view, std::string_view) { ++rows[space]; },
        [](SpaceId, std::string_view) {}));
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      tables_[i]->Reserve(rows[i]);
    }
    FLEUVE_TRY(Replay(snapshot->parsed, snapshot->path));
    snapshot.reset();
    // Whether it was synced is not known: it serves, but old files stay until the next one.
  }
  while (!chain.empty()) {
    FLEUVE_TRY(Replay(chain.back().parsed, chain.back().path));
    chain.pop_back();
  }
  return {};
}

Result<StagedFiles> HashStore::Stage(const std::string& attempt, std::int64_t next_watermark_ms) {
  const auto cannot_commit = [this](Error cause) {
    return Error(cause.kind(), "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT",
                 "Error writing state store files for provider " + std::string(kProviderClass) +
                     ": cannot perform commit during state checkpoint of " + spec_.folder.path + ". " + cause.message())
        .CausedBy(cause);
  };
  StagedFiles staged;
  if (!metadata_written_) {
    auto written = WriteMetadata(spec_, &staged);
    if (!written.ok()) {
      return cannot_commit(std::move(written).error());
    }
    metadata_written_ = true;
  }
  FLEUVE_TRY(Failpoint("state.stage"));
  auto alone = RemoveLater();
  if (!alone.ok()) {
    return cannot_commit(std::move(alone).error());
  }
  ChangelogHeader header;
  header.version = Version{version_.number + 1, attempt};
  header.base_attempt = version_.attempt;
  header.next_watermark_ms = next_watermark_ms;
  std::string file = BeginFile(false, header, change_count_);
  file += changes_;
  EndFile(file);
  const std::string path = ChangelogPath(spec_.folder.path, header.version);
  auto put = spec_.folder.store->Put(path, file, storage::PutMode::kIfAbsent);
  if (!put.ok()) {
    return cannot_commit(std::move(put).error());
  }
  staged_bytes_ = static_cast<std::int64_t>(file.size());
  files_.emplace_back(header.version.number, path);
  staged.files.push_back(path);
  staged.folders.push_back(spec_.folder.path);
  staged_ = std::move(header);
  return staged;
}

Result<void> HashStore::Apply() {
  if (!staged_) {
    return Error::Internal("a state store is applied without being staged");
  }
  version_ = staged_->version;
  staged_.reset();
  bytes_since_ += staged_bytes_;
  changes_.clear();
  // One large batch does not hold memory for ever.
  if (changes_.capacity() > std::size_t{16} << 20) {
    changes_.shrink_to_fit();
  }
  change_count_ = 0;
  const std::int64_t since = version_.number - snapshot_version_;
  const std::int64_t live = payload_bytes();
  if (since >= kFewestVersions && (bytes_since_ >= std::max<std::int64_t>(live, 64 << 10) ||
                                   since >= std::max(kMostVersions, live / kSnapshotBytesPerVersion))) {
    FLEUVE_TRY(WriteSnapshot());
  }
  return RemoveOld();
}

Result<void> HashStore::WriteSnapshot() {
  ChangelogHeader header;
  header.version = version_;
  std::int64_t rows = 0;
  for (const auto& table : tables_) {
    rows += table->row_count();
  }
  std::string file = BeginFile(true, header, rows);
  file.reserve(file.size() + static_cast<std::size_t>(payload_bytes() + rows * 8 + 64));
  for (SpaceId space = 0; space < tables_.size(); ++space) {
    tables_[space]->Scan([&](std::string_view key, std::string_view value) {
      AppendPut(file, space, key, value);
      return true;
    });
  }
  EndFile(file);
  const std::string path = SnapshotPath(spec_.folder.path, version_);
  FLEUVE_TRY(Failpoint("state.snapshot"));
  FLEUVE_TRY(spec_.folder.store->Put(path, file, storage::PutMode::kOverwrite));
  const std::vector<std::string> files = {path};
  const std::vector<std::string> folders = {spec_.folder.path};
  FLEUVE_TRY(spec_.folder.store->Sync(files, folders));
  files_.emplace_back(version_.number, path);
  snapshots_.push_back(version_.number);
  snapshot_version_ = version_.number;
  bytes_since_ = 0;
  return {};
}

Result<void> HashStore::RemoveLater() {
  std::erase_if(snapshots_, [this](std::int64_t snapshot) { return snapshot > version_.number; });
  for (auto at = files_.begin(); at != files_.end();) {
    if (at->first <= version_.number) {
      ++at;
      continue;
    }
    auto gone = spec_.folder.store->Delete(at->second);
    if (!gone.ok() && gone.error().kind() != ErrorKind::kNotFound) {
      return std::move(gone).error();
    }
    at = files_.erase(at);
  }
  return {};
}

Result<void> HashStore::RemoveOld() {
  // The newest snapshot that the oldest retained version can be rebuilt from.
  const std::int64_t oldest = version_.number - spec_.versions_to_retain;
  std::int64_t keep_from = 0;
  for (std::int64_t snapshot : snapshots_) {
    if (snapshot <= oldest) {
      keep_from = snapshot;
    }
  }
  std::erase_if(snapshots_, [&](std::int64_t snapshot) { return snapshot < keep_from; });
  for (int removed = 0; removed < kRemovalsPerBatch && !files_.empty() && files_.front().first < keep_from; ++removed) {
    auto gone = spec_.folder.store->Delete(files_.front().second);
    if (!gone.ok() && gone.error().kind() != ErrorKind::kNotFound) {
      return std::move(gone).error();
    }
    files_.pop_front();
  }
  return {};
}

Result<void> HashStore::Discard() { return Load(Version(version_)); }

}  // namespace

Result<std::unique_ptr<Store>> Store::Open(const StoreSpec& spec, const Version& at, bool schema_check) {
  if (spec.spaces.empty() || spec.spaces.size() > kMostSpaces) {
    return Error::Internal("a state store with " + std::to_string(spec.spaces.size()) + " spaces");
  }
  if (at.number > 0 && schema_check) {
    FLEUVE_TRY(CheckSchema(spec));
  }
  auto store = std::make_unique<HashStore>(spec);
  FLEUVE_TRY(store->Load(at));
  return std::unique_ptr<Store>(std::move(store));
}

Result<std::optional<ChangelogHeader>> FindChangelog(const storage::Location& folder, const Version& version) {
  std::string path = ChangelogPath(folder.path, version);
  if (version.attempt.empty()) {
    path.clear();
    auto listed = folder.store->List(folder.path);
    if (!listed.ok() && listed.error().kind() != ErrorKind::kNotFound) {
      return std::move(listed).error();
    }
    for (const auto& meta : listed.ok() ? *listed : std::vector<storage::ObjectMeta>()) {
      const FileName name = ParseFileName(std::string_view(meta.path).substr(meta.path.rfind('/') + 1));
      if (name.version.number != version.number || name.is_snapshot) {
        continue;
      }
      if (!path.empty()) {
        return std::optional<ChangelogHeader>();
      }
      path = meta.path;
    }
    if (path.empty()) {
      return std::optional<ChangelogHeader>();
    }
  }
  auto text = folder.store->Get(path);
  if (!text.ok()) {
    if (text.error().kind() == ErrorKind::kNotFound) {
      return std::optional<ChangelogHeader>();
    }
    return std::move(text).error();
  }
  auto parsed = ParseFile(*text, path);
  if (!parsed.ok()) {
    return std::optional<ChangelogHeader>();
  }
  return std::optional<ChangelogHeader>(parsed->header);
}

}  // namespace fleuve::state
