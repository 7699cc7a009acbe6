#include "delta/transaction.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <set>
#include <thread>

#include "base/bytes.h"
#include "base/failpoint.h"
#include "base/ids.h"
#include "base/log.h"
#include "delta/row_conflict_internal.h"
#include "delta/row_tracking.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"

namespace fleuve::delta {
namespace {

const CommitInfo* InfoOf(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    if (const auto* info = std::get_if<CommitInfo>(&action)) {
      return info;
    }
  }
  return nullptr;
}

bool InCommitTimesEnabled(const Metadata& metadata) {
  const std::string* value = FindIn(metadata.configuration, "delta.enableInCommitTimestamps");
  return value != nullptr && *value == "true";
}

/// The weaker of the two levels at which rows are read: what was only added may count as added after us.
bool IsWriteSerializable(const Metadata& metadata) {
  const std::string* level = FindIn(metadata.configuration, "delta.isolationLevel");
  return level != nullptr && EqualsIgnoreAsciiCase(*level, "WriteSerializable");
}

/// The commit's new metadata says new high water marks of identity columns and nothing else.
bool OnlyCountsIdentities(const Commit& commit) {
  const CommitInfo* info = InfoOf(commit.actions);
  const std::string* tag =
      info == nullptr || !info->tags ? nullptr : FindIn(*info->tags, "delta.identity.schemaUpdate");
  return tag != nullptr && *tag == "true";
}

Error Conflict(std::string condition, const std::string& what, const Commit& winner) {
  const CommitInfo* info = InfoOf(winner.actions);
  const std::string operation = info == nullptr ? "another commit" : info->operation;
  return Error(ErrorKind::kConflict, std::move(condition),
               what + " (version " + std::to_string(winner.version) + ": " + operation + "). Try the operation again.")
      .With("operation", operation)
      .With("version", std::to_string(winner.version))
      .With("docLink", "");
}

}  // namespace

Transaction::Transaction(DeltaLogPtr log, SnapshotPtr snapshot)
    : log_(std::move(log)), snapshot_(std::move(snapshot)) {}

Transaction::~Transaction() { Abandon(); }

void Transaction::ReadFiles(const std::vector<AddFile>& files, std::vector<plan::ExprPtr> filters,
                            std::vector<plan::Attribute> columns, bool rows_alone) {
  rows_alone_ = rows_alone_ && rows_alone;
  for (const AddFile& file : files) {
    read_paths_.push_back(file.path);
  }
  read_sets_.push_back({std::move(filters), std::move(columns)});
}

Result<void> Transaction::UpdateMetadata(Metadata metadata) {
  NameMaterializedRowIds(&metadata);
  FLEUVE_ASSIGN(const auto shape, MakeShape(metadata));
  const Protocol* current = new_protocol_ ? &*new_protocol_ : (snapshot_ ? &snapshot_->protocol() : nullptr);
  FLEUVE_ASSIGN(Protocol protocol, ProtocolFor(current, metadata, shape->schema));
  if (current == nullptr || !(protocol == *current)) {
    new_protocol_ = std::move(protocol);
  }
  new_metadata_ = std::move(metadata);
  return {};
}

const Metadata& Transaction::metadata() const { return new_metadata_ ? *new_metadata_ : snapshot_->metadata(); }
const Protocol& Transaction::protocol() const { return new_protocol_ ? *new_protocol_ : snapshot_->protocol(); }

Result<void> Transaction::CheckActions(const std::vector<Action>& actions) const {
  if (snapshot_ == nullptr && (!new_metadata_ || !new_protocol_)) {
    return Error::Internal("the first commit of a table carries no metadata");
  }
  FLEUVE_TRY(CheckWritable(protocol(), log_->location().path));
  const bool removes = std::any_of(actions.begin(), actions.end(), [](const Action& action) {
    const auto* remove = std::get_if<RemoveFile>(&action);
    return remove != nullptr && remove->data_change;
  });
  const std::string* append_only = FindIn(metadata().configuration, "delta.appendOnly");
  if (removes && append_only != nullptr && *append_only == "true") {
    return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                 "The table only takes appends: its property delta.appendOnly is true.")
        .With("table_name", log_->location().path)
        .With("config", "delta.appendOnly");
  }
  return {};
}

CommitInfo Transaction::MakeInfo(std::int64_t version) {
  CommitInfo info;
  const std::int64_t now = log_->context().clock->NowMillis();
  info.timestamp = now;
  if (InCommitTimesEnabled(metadata())) {
    std::int64_t time = now;
    if (snapshot_ != nullptr) {
      time = std::max(time, std::max(snapshot_->timestamp_ms(), winner_timestamp_) + 1);
    }
    info.in_commit_timestamp = time;
    info.timestamp = time;
    const bool was_enabled = snapshot_ != nullptr && InCommitTimesEnabled(snapshot_->metadata());
    if (!was_enabled && version > 0 && new_metadata_) {
      SetIn(new_metadata_->configuration, "delta.inCommitTimestampEnablementVersion", std::to_string(version));
      SetIn(new_metadata_->configuration, "delta.inCommitTimestampEnablementTimestamp", std::to_string(time));
    }
  }
  info.operation = operation_.name;
  info.operation_parameters = operation_.parameters;
  if (snapshot_ != nullptr) {
    info.read_version = snapshot_->version();
  }
  bool only_file_actions = true;
  bool data_change = false;
  bool only_adds = true;
  bool any_file = false;
  for (const Action& action : actions_) {
    if (const auto* add = std::get_if<AddFile>(&action)) {
      data_change = data_change || add->data_change;
      any_file = true;
    } else if (const auto* remove = std::get_if<RemoveFile>(&action)) {
      data_change = data_change || remove->data_change;
      only_adds = false;
      any_file = true;
    } else if (std::holds_alternative<AddCdcFile>(action)) {
      only_adds = false;
    } else {
      only_file_actions = false;
    }
  }
  // Without any action it depends on what the operation is there for.
  const bool moves_files = any_file || operation_.name.starts_with("VACUUM ") || operation_.name == "Empty Commit";
  const bool snapshot_isolation = only_file_actions && moves_files && !data_change && !new_metadata_ && !new_protocol_;
  info.isolation_level = snapshot_isolation                ? "SnapshotIsolation"
                         : IsWriteSerializable(metadata()) ? "WriteSerializable"
                                                           : "Serializable";
  const bool read_nothing = !read_whole_table_ && read_sets_.empty();
  info.is_blind_append = operation_.is_blind_append.value_or(only_adds && read_nothing);
  info.operation_metrics = operation_.metrics;
  info.user_metadata = operation_.user_metadata;
  if (!operation_.tags.empty()) {
    info.tags = operation_.tags;
  }
  info.engine_info = EngineInfo();
  info.txn_id = operation_.txn_id;
  info.fleuve = operation_.fleuve;
  return info;
}

Result<void> Transaction::Write(std::int64_t version) {
  lines_.clear();
  CommitInfo info = MakeInfo(version);
  lines_.emplace_back(std::move(info));
  if (new_metadata_) {
    lines_.emplace_back(*new_metadata_);
  }
  if (new_protocol_) {
    lines_.emplace_back(*new_protocol_);
  }
  if (AssignsRowIds(protocol(), metadata())) {
    std::vector<Action> actions = actions_;
    FLEUVE_TRY(AssignRowIds(&actions, std::max(RowIdHighWaterMark(snapshot_.get()), winner_row_id_), version));
    lines_.insert(lines_.end(), std::make_move_iterator(actions.begin()), std::make_move_iterator(actions.end()));
  } else {
    lines_.insert(lines_.end(), actions_.begin(), actions_.end());
  }
  std::string text;
  for (const Action& line : lines_) {
    AppendJsonLine(text, line);
  }
  auto& store = *log_->location().store;
  const std::string path = CommitPath(log_->location().path, version);
  FLEUVE_ASSIGN(staged_->file, store.Stage(path, text, operation_.txn_id));
  staged_->version = version;
  return {};
}

Result<StagedCommit> Transaction::Stage(std::vector<Action> actions, Operation operation) {
  FLEUVE_TRY(CheckActions(actions));
  actions_ = std::move(actions);
  operation_ = std::move(operation);
  if (operation_.txn_id.empty()) {
    operation_.txn_id = NewUuid();
  }
  const std::string& table = log_->location().path;
  const std::string folder = LogFolder(table);
  staged_ = StagedCommit{};
  staged_->txn_id = operation_.txn_id;
  staged_->folders.push_back(folder);
  if (snapshot_ == nullptr) {
    FLEUVE_TRY(log_->location().store->CreateDirectory(folder));
    staged_->folders.push_back(table);
    if (const std::size_t slash = table.rfind('/'); slash != std::string::npos && slash > 0) {
      staged_->folders.push_back(table.substr(0, slash));
    }
  }
  FLEUVE_TRY(Write(snapshot_ == nullptr ? 0 : snapshot_->version() + 1));
  FLEUVE_TRY(Failpoint("delta.commit.staged"));
  return *staged_;
}

Result<void> Transaction::CheckConflict(const fleuve::delta::Commit& winner) {
  if (snapshot_ == nullptr) {
    return Conflict("DELTA_PROTOCOL_CHANGED", "Another commit has created the table", winner);
  }
  bool writes_data = false;
  for (const Action& action : actions_) {
    if (const auto* add = std::get_if<AddFile>(&action)) {
      writes_data = writes_data || add->data_change;
    } else if (const auto* remove = std::get_if<RemoveFile>(&action)) {
      writes_data = writes_data || remove->data_change;
    } else {
      writes_data = true;
    }
  }
  writes_data = writes_data || new_metadata_ || new_protocol_;
  for (const Action& action : winner.actions) {
    if (std::holds_alternative<Protocol>(action)) {
      return Conflict("DELTA_PROTOCOL_CHANGED", "Another commit has changed the table's protocol", winner);
    }
    if (std::holds_alternative<Metadata>(action) && (new_metadata_ || !OnlyCountsIdentities(winner))) {
      return Conflict("DELTA_METADATA_CHANGED", "Another commit has changed the table's metadata", winner);
    }
  }
  const bool reads = read_whole_table_ || !read_sets_.empty();
  if (reads && writes_data) {
    FLEUVE_TRY(CheckAdded(winner));
  }
  for (const Action& action : winner.actions) {
    if (const auto* remove = std::get_if<RemoveFile>(&action)) {
      FLEUVE_TRY(CheckRemoved(winner, *remove));
    } else if (const auto* txn = std::get_if<SetTransaction>(&action)) {
      if (std::find(read_apps_.begin(), read_apps_.end(), txn->app_id) != read_apps_.end()) {
        return Conflict("DELTA_CONCURRENT_TRANSACTION", "Another run of the same application has written to the table",
                        winner);
      }
    } else if (const auto mark = RowIdHighWaterMark(action)) {
      winner_row_id_ = std::max(winner_row_id_, *mark);  // our row ids are given out anew behind it
    } else if (const auto* domain = std::get_if<DomainMetadata>(&action)) {
      for (const Action& own : actions_) {
        if (const auto* ours = std::get_if<DomainMetadata>(&own); ours != nullptr && ours->domain == domain->domain) {
          return Conflict("DELTA_METADATA_CHANGED", "Another commit has changed the domain " + domain->domain, winner);
        }
      }
    }
  }
  return {};
}

bool Transaction::ComparesRows() const {
  const std::string* marks = FindIn(metadata().configuration, "delta.enableDeletionVectors");
  return rows_alone_ && !read_whole_table_ && !read_sets_.empty() && TracksRows(metadata()) && marks != nullptr &&
         EqualsIgnoreAsciiCase(*marks, "true");
}

Result<void> Transaction::CheckAdded(const fleuve::delta::Commit& winner) const {
  const CommitInfo* info = InfoOf(winner.actions);
  const bool only_appended = info != nullptr && info->is_blind_append.value_or(false);
  if (only_appended && !new_metadata_ && IsWriteSerializable(snapshot_->metadata())) {
    return {};
  }
  bool reads_all = read_whole_table_;
  std::vector<FileFilter> filters;
  for (const ReadSet& set : read_sets_) {
    if (set.filters.empty()) {
      reads_all = true;
      continue;
    }
    FLEUVE_ASSIGN(FileFilter filter,
                  FileFilter::Make(snapshot_->metadata(), snapshot_->schema(), set.filters, set.columns));
    filters.push_back(std::move(filter));
  }
  const bool compares_rows = ComparesRows();
  std::set<std::string> removed;
  for (const Action& action : winner.actions) {
    if (const auto* remove = std::get_if<RemoveFile>(&action)) {
      removed.insert(remove->path);
    }
  }
  for (const Action& action : winner.actions) {
    const auto* add = std::get_if<AddFile>(&action);
    if (add == nullptr || !add->data_change) {
      continue;
    }
    if (compares_rows && add->deletion_vector && removed.contains(add->path)) {
      continue;  // a file that was there, with fewer rows
    }
    const bool matches = reads_all || std::any_of(filters.begin(), filters.end(), [&](const FileFilter& f) {
                           return compares_rows ? f.MayMatch(*add) : f.PartitionMayMatch(add->partition_values);
                         });
    if (matches) {
      return Conflict("DELTA_CONCURRENT_APPEND", "Another commit has added files that this operation would have read",
                      winner);
    }
  }
  return {};
}

Result<void> Transaction::CheckRemoved(const fleuve::delta::Commit& winner, const RemoveFile& removed) {
  RemoveFile* our_removal = nullptr;
  AddFile* our_file = nullptr;
  for (Action& action : actions_) {
    if (auto* remove = std::get_if<RemoveFile>(&action); remove != nullptr && remove->path == removed.path) {
      our_removal = remove;
    } else if (auto* add = std::get_if<AddFile>(&action); add != nullptr && add->path == removed.path) {
      our_file = add;
    }
  }
  if (ComparesRows()) {
    if (const AddFile* theirs = MarkedAgain(winner.actions, removed)) {
      FLEUVE_ASSIGN(const bool only_marks, OnlyMarks(removed, *theirs, log_->location()));
      if (only_marks && our_removal == nullptr) {
        return {};  // read, and none of its rows was one of ours
      }
      if (our_file != nullptr && our_file->deletion_vector) {
        FLEUVE_ASSIGN(auto followed, Follow(*our_removal, *our_file, removed, *theirs, log_->location()));
        if (followed) {
          *our_removal = std::move(followed->removed);
          *our_file = std::move(followed->added);
          followed_vectors_.push_back(std::move(followed->file));
          return {};
        }
      }
    }
  }
  if ((read_whole_table_ && removed.data_change) ||
      std::find(read_paths_.begin(), read_paths_.end(), removed.path) != read_paths_.end()) {
    return Conflict("DELTA_CONCURRENT_DELETE_READ", "Another commit has deleted a file that this operation has read",
                    winner);
  }
  if (our_removal != nullptr) {
    return Conflict("DELTA_CONCURRENT_DELETE_DELETE",
                    "Another commit has deleted a file that this operation deletes too", winner);
  }
  return {};
}

Result<Transaction::Race> Transaction::Settle(std::int64_t version) {
  while (true) {
    auto winner = log_->ReadCommit(version);
    if (!winner.ok()) {
      if (winner.error().kind() == ErrorKind::kNotFound) {
        return Race{false, version};
      }
      return std::move(winner).error();
    }
    const CommitInfo* info = InfoOf(winner->actions);
    if (info != nullptr && info->txn_id == operation_.txn_id) {
      return Race{true, version};
    }
    FLEUVE_TRY(CheckConflict(*winner));
    winner_timestamp_ = std::max(winner_timestamp_, winner->timestamp_ms);
    ++version;
  }
}

Result<CommitResult> Transaction::CommitStaged(bool sync) {
  if (!staged_) {
    return Error::Internal("no commit is staged");
  }
  auto& store = *log_->location().store;
  const bool depends_on_version = InCommitTimesEnabled(metadata()) || AssignsRowIds(protocol(), metadata());
  std::int64_t version = staged_->version;
  int transient = 0;
  while (true) {
    std::string etag;
    if (const auto head = store.Head(staged_->file); head.ok()) {
      etag = head->etag;
    }
    FLEUVE_TRY(Failpoint("delta.commit.link"));
    const auto linked = store.CommitStaged(staged_->file, CommitPath(log_->location().path, version));
    if (linked.ok()) {
      return Finish(version, sync, etag);
    }
    switch (linked.error().kind()) {
      case ErrorKind::kTransient:
        if (++transient > 10) {
          return linked.error();
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(10 * transient));
        continue;
      case ErrorKind::kAlreadyExists:
      case ErrorKind::kOutcomeUnknown:
      case ErrorKind::kNotFound:
        break;
      default:
        return linked.error();
    }
    auto race = Settle(version);
    if (!race.ok()) {
      Abandon();
      return std::move(race).error();
    }
    if (race->ours) {
      return Finish(race->version, sync, etag);
    }
    const bool moved = race->version != version;
    version = race->version;
    if (linked.error().kind() == ErrorKind::kAlreadyExists && !moved) {
      return Error::Internal("version " + std::to_string(version) + " exists and cannot be read");
    }
    // In-commit times must rise, row ids follow the winner's, and the staged file may be gone after a lost answer:
    // write it anew, same bytes else.
    if ((moved && depends_on_version) || linked.error().kind() != ErrorKind::kAlreadyExists) {
      if (linked.error().kind() != ErrorKind::kAlreadyExists && ++transient > 10) {
        return linked.error();
      }
      store.Delete(staged_->file).IgnoreBecause("it may be gone");
      FLEUVE_TRY(Write(version));
      if (log_->context().durability == Durability::kStrict) {
        std::vector<std::string> files = followed_vectors_;
        files.push_back(staged_->file);
        std::vector<std::string> folders;
        if (!followed_vectors_.empty()) {
          folders.push_back(log_->location().path);
        }
        FLEUVE_TRY(store.Sync(files, folders));
      }
    }
  }
}

Result<CommitResult> Transaction::Finish(std::int64_t version, bool sync, const std::string& staged_etag) {
  auto& store = *log_->location().store;
  const std::string path = CommitPath(log_->location().path, version);
  staged_.reset();
  FLEUVE_TRY(Failpoint("delta.commit.linked"));
  if (sync && log_->context().durability == Durability::kStrict) {
    const std::array<std::string, 1> folders{LogFolder(log_->location().path)};
    FLEUVE_TRY(store.Sync({}, folders));
  }
  CommitResult result;
  result.version = version;
  if (const auto head = store.Head(path); head.ok()) {
    if (head->etag != staged_etag) {
      // Not the file that we gave this name; on some stores the same bytes all the same.
      FLEUVE_ASSIGN(const fleuve::delta::Commit there, log_->ReadCommit(version));
      const CommitInfo* info = InfoOf(there.actions);
      if (info == nullptr || info->txn_id != operation_.txn_id) {
        return log_->CommitWasReplaced(there);
      }
    }
    const CommitInfo* info = InfoOf(lines_);
    log_->Committed(version, info->in_commit_timestamp.value_or(head->modified_ms), head->etag, lines_,
                    operation_.checkpoint);
  }
  if (SnapshotPtr cached = log_->Cached(); cached != nullptr && cached->version() == version) {
    result.snapshot = std::move(cached);
  }
  return result;
}

void Transaction::Abandon() {
  if (staged_) {
    log_->location().store->Delete(staged_->file).IgnoreBecause("a left-over is harmless");
    staged_.reset();
  }
}

Result<CommitResult> Transaction::Commit(std::vector<Action> actions, Operation operation,
                                         const std::vector<std::string>& data_files,
                                         const std::vector<std::string>& data_folders) {
  FLEUVE_ASSIGN(const StagedCommit staged, Stage(std::move(actions), std::move(operation)));
  if (log_->context().durability == Durability::kStrict) {
    std::vector<std::string> files = data_files;
    files.push_back(staged.file);
    std::vector<std::string> folders = data_folders;
    folders.insert(folders.end(), staged.folders.begin(), staged.folders.end());
    FLEUVE_TRY(log_->location().store->Sync(files, folders));
  }
  return CommitStaged();
}

}  // namespace fleuve::delta
