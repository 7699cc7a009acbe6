// The store as hash tables, in memory or as far as a pager lets them; the files are the truth.

#include <algorithm>
#include <deque>
#include <future>
#include <memory>
#include <set>
#include <thread>

#include "base/failpoint.h"
#include "base/ids.h"
#include "state/chain_internal.h"
#include "state/loader_internal.h"
#include "state/row_table_internal.h"
#include "state/snapshot_writer_internal.h"

namespace fleuve::state {

namespace {

/// Snapshots: not before this many versions, and not so often that they cost more bytes per batch than this or twice
/// what the batch changed.
constexpr std::int64_t kFewestVersions = 10;
constexpr std::int64_t kMostVersions = 100;
constexpr std::int64_t kSnapshotBytesPerVersion = 256 << 10;
constexpr std::int64_t kFewestBytes = 64 << 10;
/// A file of a snapshot has about so many bytes of rows.
constexpr std::int64_t kPartBytes = 8 << 20;
/// Old files removed with one batch.
constexpr int kRemovalsPerBatch = 32;
/// One large batch does not hold memory for ever.
constexpr std::size_t kMostSpareBytes = 16 << 20;

/// A snapshot that is being collected.
struct Collection {
  /// The version it was begun at.
  std::int64_t from = 0;
  std::string id;
  std::int64_t parts = 0;
  /// What comes next.
  SpaceId space = 0;
  std::uint64_t position = 0;
  /// Records of the next file.
  std::string records;
  /// The version of its last file, once that is being written.
  std::optional<std::int64_t> closed_at;
};

/// Copies of bytes that stay where they are until `Clear`.
class KeptBytes {
 public:
  std::string_view Add(std::string_view bytes) {
    if (pieces_.empty() || pieces_.back().capacity() - pieces_.back().size() < bytes.size()) {
      pieces_.emplace_back().reserve(std::max(kPieceBytes, bytes.size()));
    }
    std::string& piece = pieces_.back();
    piece += bytes;
    return std::string_view(piece).substr(piece.size() - bytes.size());
  }
  void Clear() {
    if (!pieces_.empty()) {
      pieces_.resize(pieces_.front().capacity() > 2 * kPieceBytes ? 0 : 1);
    }
    if (!pieces_.empty()) {
      pieces_.front().clear();
    }
  }

 private:
  static constexpr std::size_t kPieceBytes = 64 << 10;
  std::deque<std::string> pieces_;
};

/// A file read ahead of its turn.
struct ReadFile {
  std::unique_ptr<const std::string> text;
  ParsedFile parsed;  // views into `text`
};

class HashStore final : public Store {
 public:
  HashStore(StoreSpec spec, std::unique_ptr<Pager> pager)
      : spec_(std::move(spec)), pager_(std::move(pager)), writer_(spec_.folder), changes_(kHeadRoom, ' ') {
    for (const SpaceSpec& space : spec_.spaces) {
      tables_.push_back(std::make_unique<RowTable>(space.timed            ? Timing::kKey
                                                   : space.timed_by_value ? Timing::kValue
                                                                          : Timing::kNone,
                                                   pager_.get()));
    }
  }

  ~HashStore() override {
    if (spec_.budget) {
      spec_.budget->used_bytes -= counted_bytes_;
    }
  }

  /// Fills the tables with version `at`.
  Result<void> Load(const Version& at);

  const Version& version() const override { return version_; }

  void GetMany(SpaceId space, const ByteRows& keys, std::vector<std::string_view>* values) const override {
    values->assign(keys.size(), {});
    const RowTable& table = *tables_[space];
    EachKey(table, keys,
            [&](std::size_t i, std::uint64_t hash) { (*values)[i] = Keep(table, table.Find(hash, keys[i])); });
  }
  std::string_view Get(SpaceId space, std::string_view key) const override {
    return Keep(*tables_[space], tables_[space]->Find(key));
  }
  void PutMany(SpaceId space, const ByteRows& keys, const ByteRows& values) override {
    kept_.Clear();
    RowTable& table = *tables_[space];
    EachKey(table, keys, [&](std::size_t i, std::uint64_t hash) {
      table.Put(hash, keys[i], values[i]);
      AppendPut(changes_, space, keys[i], values[i]);
    });
  }
  void Put(SpaceId space, std::string_view key, std::string_view value) override {
    AppendPut(changes_, space, key, value);
    tables_[space]->Put(key, value);
    kept_.Clear();
  }
  void AddMany(SpaceId space, const ByteRows& keys, const ByteRows& values, std::vector<bool>* added) override {
    kept_.Clear();
    added->assign(keys.size(), false);
    RowTable& table = *tables_[space];
    EachKey(table, keys, [&](std::size_t i, std::uint64_t hash) {
      if (table.Add(hash, keys[i], values[i])) {
        (*added)[i] = true;
        AppendPut(changes_, space, keys[i], values[i]);
      }
    });
  }
  void RemoveMany(SpaceId space, const ByteRows& keys) override {
    kept_.Clear();
    RowTable& table = *tables_[space];
    EachKey(table, keys, [&](std::size_t i, std::uint64_t hash) {
      if (table.Remove(hash, keys[i])) {
        AppendRemoval(changes_, space, keys[i]);
      }
    });
  }
  bool Remove(SpaceId space, std::string_view key) override {
    // The key may be a view into the row that goes.
    const std::size_t before = changes_.size();
    AppendRemoval(changes_, space, key);
    if (!tables_[space]->Remove(key)) {
      changes_.resize(before);
      return false;
    }
    kept_.Clear();
    return true;
  }

  void Range(SpaceId space, std::int64_t from, std::int64_t to, const Visit& visit) const override {
    tables_[space]->Range(from, to, visit);
  }
  void Scan(SpaceId space, const Visit& visit) const override { tables_[space]->Scan(visit); }
  std::int64_t row_count(SpaceId space) const override { return tables_[space]->row_count(); }

  Result<void> CheckMemory() override;
  Result<StagedFiles> Stage(const std::string& attempt, std::int64_t next_watermark_ms) override;
  Result<void> Apply() override;
  Result<void> Discard() override;
  StoreMetrics metrics() const override {
    StoreMetrics metrics;
    for (const auto& table : tables_) {
      metrics.memory_bytes += table->memory_bytes();
    }
    metrics.memory_bytes += static_cast<std::int64_t>(changes_.capacity());
    if (collection_) {
      metrics.memory_bytes += static_cast<std::int64_t>(collection_->records.capacity());
    }
    metrics.changelog_bytes = staged_bytes_;
    return metrics;
  }

 private:
  /// Calls `visit(i, hash)` for each key; equal ones in their order.
  template <typename Visit>
  void EachKey(const RowTable& table, const ByteRows& keys, const Visit& visit) const {
    if (pager_ == nullptr) {
      RowTable::Ahead ahead(table, keys);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        visit(i, ahead.Step(i));
      }
      return;
    }
    // By hash, so that a segment comes once for all of its keys.
    std::vector<std::pair<std::uint64_t, std::size_t>> order;
    order.reserve(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      order.emplace_back(HashKey(keys[i]), i);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [hash, i] : order) {
      visit(i, hash);
    }
  }
  /// A value that stays where it is until the next change: a copy where rows come and go.
  std::string_view Keep(const RowTable& table, std::string_view value) const {
    if (pager_ != nullptr) {
      if (value.data() != nullptr) {
        value = kept_.Add(value);
      }
      table.Settle();
    }
    return value;
  }
  /// Forgets everything but the spec.
  void Clear();
  Result<void> LoadFiles(const Chain& chain, std::set<std::string>* damaged);
  /// \param more  bytes of rows that are not in the tables yet.
  Result<void> CheckMemoryWith(std::int64_t more);
  /// Removes what runs left that were given up: the version that is written next has one attempt only, and a commit
  /// need not name it. The folder is synced with the new changelog.
  Result<void> RemoveLater();
  /// Begins a snapshot where it is time, and takes the one that is being collected further.
  Result<void> AdvanceSnapshot();
  /// Collects about `bytes` more; full files go to the writer.
  Result<void> Collect(std::int64_t bytes);
  /// True where the writer takes a file. Waits for it where the changelogs outgrow the rows by far.
  Result<bool> WriterIsReady();
  Result<void> RemoveOld();
  std::int64_t payload_bytes() const {
    std::int64_t bytes = 0;
    for (const auto& table : tables_) {
      bytes += table->payload_bytes();
    }
    return bytes;
  }

  StoreSpec spec_;
  std::unique_ptr<Pager> pager_;
  std::vector<std::unique_ptr<RowTable>> tables_;
  mutable KeptBytes kept_;
  SnapshotWriter writer_;
  Version version_;
  /// Room for the first lines, then records since version_.
  std::string changes_;
  std::optional<ChangelogHeader> staged_;
  std::int64_t staged_bytes_ = 0;
  /// What the budget knows of.
  std::int64_t counted_bytes_ = 0;
  bool metadata_written_ = false;
  bool may_have_later_files_ = true;
  std::optional<Collection> collection_;
  /// Since the newest snapshot was begun (or version 0).
  std::int64_t bytes_since_ = 0;
  std::int64_t snapshot_version_ = 0;
  /// Synced snapshots: their versions, and those they were begun at.
  std::vector<std::pair<std::int64_t, std::int64_t>> snapshots_;
  /// Every file that may be removed one day, about by ascending version.
  std::deque<std::pair<std::int64_t, std::string>> files_;
};

void HashStore::Clear() {
  static_cast<void>(writer_.Wait());
  for (const auto& table : tables_) {
    table->Clear();
  }
  kept_.Clear();
  if (pager_ != nullptr) {
    pager_->Clear();
  }
  changes_.resize(kHeadRoom);
  staged_.reset();
  collection_.reset();
  may_have_later_files_ = true;
  bytes_since_ = 0;
  snapshot_version_ = 0;
  snapshots_.clear();
  files_.clear();
}

Result<void> HashStore::Load(const Version& at) {
  std::set<std::string> damaged;
  for (;;) {
    Clear();
    version_ = at;
    FLEUVE_ASSIGN(const std::vector<StoreFile> files, ListFiles(spec_.folder));
    for (const StoreFile& file : files) {
      files_.emplace_back(file.name.version.number, file.path);
    }
    if (at.number == 0) {
      return {};
    }
    metadata_written_ = true;
    FLEUVE_ASSIGN(const Chain chain, FindChain(spec_, files, at, damaged));
    version_ = chain.version;
    const std::size_t damaged_before = damaged.size();
    auto loaded = LoadFiles(chain, &damaged);
    // With a snapshot that is damaged, one before it may serve.
    if (loaded.ok() || damaged.size() == damaged_before) {
      return loaded;
    }
  }
}

Result<void> HashStore::LoadFiles(const Chain& chain, std::set<std::string>* damaged) {
  std::vector<std::string> paths;
  Loader loader(tables_, pager_ == nullptr && std::thread::hardware_concurrency() > 1);
  if (chain.snapshot) {
    for (std::int64_t part = 0; part < chain.parts.count; ++part) {
      paths.push_back(PartPath(spec_.folder.path, chain.parts.from, chain.parts.id, part));
    }
    paths.push_back(chain.snapshot->path);
    snapshot_version_ = chain.parts.from;
    // Whether it was synced is not known: it serves, but old files stay until the next one.
    loader.Reserve(chain.parts.space_rows);
  }
  const std::size_t snapshot_files = paths.size();
  for (const StoreFile& file : chain.changes) {
    paths.push_back(file.path);
    bytes_since_ += file.size_bytes;
  }
  const auto read = [&store = *spec_.folder.store](const std::string& path) -> Result<ReadFile> {
    ReadFile file;
    FLEUVE_ASSIGN(std::string text, store.Get(path));
    file.text = std::make_unique<const std::string>(std::move(text));
    FLEUVE_ASSIGN(file.parsed, ParseFile(*file.text, path));
    return file;
  };
  std::future<Result<ReadFile>> next;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    auto file = i == 0 ? read(paths[i]) : next.get();
    if (i + 1 < paths.size()) {
      next = std::async(std::launch::async, read, std::cref(paths[i + 1]));
    }
    if (!file.ok()) {
      if (i < snapshot_files) {
        damaged->insert(chain.snapshot->path);
      }
      return std::move(file).error();
    }
    if (i >= snapshot_files) {
      const std::size_t change = i - snapshot_files;
      const ChangelogHeader& header = file->parsed.header;
      const bool follows = change == 0 || header.base_attempt == chain.changes[change - 1].name.version.attempt;
      if (!follows || header.version.number != chain.changes[change].name.version.number) {
        return CannotLoad(ErrorKind::kCorrupt, "UNEXPECTED_VERSION",
                          "The changelog " + paths[i] + " was not made from the one before it, but from attempt " +
                              header.base_attempt + ".");
      }
    }
    FLEUVE_TRY(loader.Add(file->parsed, paths[i]));
    FLEUVE_TRY(CheckMemoryWith(loader.memory_bytes()));
  }
  loader.Finish();
  return {};
}

Result<void> HashStore::CheckMemory() { return CheckMemoryWith(0); }

Result<void> HashStore::CheckMemoryWith(std::int64_t more) {
  if (pager_ != nullptr && pager_->error()) {
    return *pager_->error();
  }
  if (!spec_.budget) {
    return {};
  }
  MemoryBudget& budget = *spec_.budget;
  std::int64_t now = more;
  for (const auto& table : tables_) {
    now += table->memory_bytes();
  }
  budget.used_bytes += now - counted_bytes_;
  counted_bytes_ = now;
  if (budget.used_bytes <= budget.limit_bytes) {
    return {};
  }
  std::int64_t rows = 0;
  for (const auto& table : tables_) {
    rows += table->row_count();
  }
  const auto mebibytes = [](std::int64_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; };
  return Error(ErrorKind::kResourceExhausted, "FLEUVE_STATE_MEMORY_LIMIT",
               "The state of the query takes " + mebibytes(budget.used_bytes) +
                   " of memory, and fleuve.state.memoryLimit is " + mebibytes(budget.limit_bytes) + ". Operator " +
                   std::to_string(spec_.operator_id) + " (" + spec_.operator_name + ") keeps " + std::to_string(rows) +
                   " rows. Nothing of the batch was committed. Set a larger fleuve.state.memoryLimit" +
                   (pager_ != nullptr
                        ? std::string()
                        : ", or spark.sql.streaming.stateStore.providerClass to " +
                              std::string(kSpillingProviderClass) + ", with which rows beyond the limit lie on disk,") +
                   " and start the query again from its checkpoint; or keep less: a watermark, or a shorter one, lets "
                   "rows expire.")
      .With("usedBytes", std::to_string(budget.used_bytes))
      .With("limitBytes", std::to_string(budget.limit_bytes));
}

Result<StagedFiles> HashStore::Stage(const std::string& attempt, std::int64_t next_watermark_ms) {
  const auto cannot_commit = [this](Error cause) {
    return Error(cause.kind(), "CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT",
                 "Error writing state store files for provider " + std::string(kProviderClass) +
                     ": cannot perform commit during state checkpoint of " + spec_.folder.path + ". " + cause.message())
        .CausedBy(cause);
  };
  FLEUVE_TRY(CheckMemory());
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
  SetHead(header, changes_);
  EndFile(changes_);
  const std::string path = ChangelogPath(spec_.folder.path, header.version);
  may_have_later_files_ = true;
  auto put = spec_.folder.store->Put(path, changes_, storage::PutMode::kIfAbsent);
  if (!put.ok()) {
    return cannot_commit(std::move(put).error());
  }
  staged_bytes_ = static_cast<std::int64_t>(changes_.size());
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
  kept_.Clear();
  may_have_later_files_ = false;
  bytes_since_ += staged_bytes_;
  changes_.resize(kHeadRoom);
  if (changes_.capacity() > kMostSpareBytes) {
    changes_.shrink_to_fit();
  }
  FLEUVE_TRY(AdvanceSnapshot());
  return RemoveOld();
}

Result<bool> HashStore::WriterIsReady() {
  if (writer_.is_busy() && bytes_since_ < 2 * payload_bytes() + kPartBytes) {
    return false;
  }
  FLEUVE_TRY(writer_.Wait());
  return true;
}

Result<void> HashStore::AdvanceSnapshot() {
  if (!writer_.is_busy()) {
    FLEUVE_TRY(writer_.Wait());
    if (collection_ && collection_->closed_at) {
      snapshots_.emplace_back(*collection_->closed_at, collection_->from);
      collection_.reset();
    }
  }
  const std::int64_t since = version_.number - snapshot_version_;
  const std::int64_t live = payload_bytes();
  if (!collection_ && since >= kFewestVersions &&
      (bytes_since_ >= std::max(live / 2, kFewestBytes) ||
       since >= std::max(kMostVersions, live / kSnapshotBytesPerVersion))) {
    collection_.emplace();
    collection_->from = version_.number;
    collection_->id = NewUuid();
    snapshot_version_ = version_.number;
    bytes_since_ = 0;
  }
  return collection_ && !collection_->closed_at ? Collect(std::max(2 * staged_bytes_, kSnapshotBytesPerVersion))
                                                : Result<void>();
}

Result<void> HashStore::Collect(std::int64_t bytes) {
  Collection& now = *collection_;
  const std::string& folder = spec_.folder.path;
  while (bytes > 0 && now.space < tables_.size()) {
    if (static_cast<std::int64_t>(now.records.size()) >= kPartBytes) {
      FLEUVE_ASSIGN(const bool ready, WriterIsReady());
      if (!ready) {
        return {};
      }
      std::string path = PartPath(folder, now.from, now.id, now.parts++);
      files_.emplace_back(now.from, path);
      writer_.Write(std::move(path), PartHead(), std::exchange(now.records, {}));
    }
    const std::size_t before = now.records.size();
    const std::int64_t some = std::min(bytes, kPartBytes);
    const bool more = tables_[now.space]->ScanSome(
        &now.position, some,
        [&now](std::string_view key, std::string_view value) { AppendPut(now.records, now.space, key, value); });
    if (pager_ != nullptr && pager_->error()) {
      return *pager_->error();
    }
    if (more) {
      bytes -= some;
    } else {
      bytes -= static_cast<std::int64_t>(now.records.size() - before);
      ++now.space;
      now.position = 0;
    }
  }
  if (now.space < tables_.size()) {
    return {};
  }
  FLEUVE_ASSIGN(const bool ready, WriterIsReady());
  if (!ready) {
    return {};
  }
  SnapshotParts parts{now.from, now.parts, now.id, {}};
  for (const auto& table : tables_) {
    parts.space_rows.push_back(table->row_count());
  }
  std::string path = SnapshotPath(folder, version_);
  files_.emplace_back(version_.number, path);
  now.closed_at = version_.number;
  writer_.Write(std::move(path), SnapshotHead(version_, parts), std::exchange(now.records, {}));
  return {};
}

Result<void> HashStore::RemoveLater() {
  if (!may_have_later_files_) {
    return {};
  }
  std::erase_if(snapshots_, [this](const auto& snapshot) { return snapshot.first > version_.number; });
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
  for (const auto& [snapshot, from] : snapshots_) {
    if (snapshot <= oldest) {
      keep_from = from;
    }
  }
  std::erase_if(snapshots_, [&](const auto& snapshot) { return snapshot.second < keep_from; });
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
  std::unique_ptr<Pager> pager;
  if (!spec.spill_folder.empty() && spec.budget) {
    FLEUVE_ASSIGN(pager, Pager::Make(spec.spill_folder, spec.budget->limit_bytes / spec.budget->stores));
  }
  auto store = std::make_unique<HashStore>(spec, std::move(pager));
  FLEUVE_TRY(store->Load(at));
  FLEUVE_TRY(store->CheckMemory());
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
      if (name.version.number != version.number || name.kind != FileKind::kChanges) {
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
