#include "delta/snapshot.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/bytes.h"
#include "base/clock.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"

namespace fleuve::delta {

Result<std::shared_ptr<const TableShape>> MakeShape(Metadata metadata) {
  auto shape = std::make_shared<TableShape>();
  if (metadata.schema_string.empty()) {
    shape->schema = types::DataType::Struct({});
  } else {
    FLEUVE_ASSIGN(const Json json, Json::Parse(metadata.schema_string));
    FLEUVE_ASSIGN(shape->schema, types::DataType::FromJson(json));
  }
  std::vector<types::StructField> partitions;
  for (const std::string& name : metadata.partition_columns) {
    const auto at = types::FieldIndex(shape->schema, name);
    if (!at) {
      return Error(ErrorKind::kCorrupt, "DELTA_PARTITION_COLUMN_NOT_FOUND",
                   "The partition column " + name + " is not in the table's schema.")
          .With("columnName", name);
    }
    partitions.push_back(shape->schema.fields()[*at]);
  }
  shape->partition_schema = types::DataType::Struct(std::move(partitions));
  shape->metadata = std::move(metadata);
  return std::shared_ptr<const TableShape>(std::move(shape));
}

namespace {

/// Files removed at or before this time no longer count.
std::int64_t TombstoneHorizon(const Metadata& metadata) {
  std::int64_t retention = 7LL * 86400000;
  if (const std::string* text = FindIn(metadata.configuration, "delta.deletedFileRetentionDuration")) {
    retention = ParseIntervalMs(*text).value_or(retention);
  }
  return Clock::System()->NowMillis() - retention;
}

}  // namespace

Result<std::shared_ptr<SnapshotState>> ApplyCommit(const SnapshotState& before, std::int64_t version,
                                                   std::int64_t timestamp_ms, const std::vector<Action>& actions) {
  auto next = std::make_shared<SnapshotState>(before);
  next->version = version;
  next->timestamp_ms = timestamp_ms;
  std::vector<const AddFile*> added;
  std::vector<const RemoveFile*> removed;
  for (const Action& action : actions) {
    if (const auto* add = std::get_if<AddFile>(&action)) {
      added.push_back(add);
    } else if (const auto* remove = std::get_if<RemoveFile>(&action)) {
      removed.push_back(remove);
    } else if (const auto* metadata = std::get_if<Metadata>(&action)) {
      if (!next->shape || !(next->shape->metadata == *metadata)) {
        FLEUVE_ASSIGN(next->shape, MakeShape(*metadata));
      }
    } else if (const auto* protocol = std::get_if<Protocol>(&action)) {
      FLEUVE_TRY(CheckReadable(*protocol, before.location.path));
      next->protocol = std::make_shared<const Protocol>(*protocol);
    } else if (const auto* txn = std::get_if<SetTransaction>(&action)) {
      next->transactions.Set(txn->app_id, *txn);
    } else if (const auto* domain = std::get_if<DomainMetadata>(&action)) {
      next->domains.Set(domain->domain, *domain);
    }
  }
  if (!added.empty() || !removed.empty()) {
    next->files = before.files->Apply(removed, added);
  }
  if (!removed.empty()) {
    auto chunk = std::make_shared<std::vector<RemoveFile>>();
    for (const RemoveFile* file : removed) {
      chunk->push_back(*file);
    }
    while (!next->tombstones.empty() && next->tombstones.back()->size() <= chunk->size()) {
      const auto older = next->tombstones.back();
      next->tombstones.pop_back();
      chunk->insert(chunk->begin(), older->begin(), older->end());
    }
    if (chunk->size() > 1024) {
      // Long-lived tables lose what has expired, now and then.
      const std::int64_t horizon = TombstoneHorizon(next->shape ? next->shape->metadata : Metadata());
      std::erase_if(*chunk, [&](const RemoveFile& file) { return file.deletion_timestamp.value_or(0) <= horizon; });
    }
    next->tombstones.push_back(std::move(chunk));
  }
  return next;
}

std::optional<std::int64_t> ParseIntervalMs(std::string_view text) {
  std::string lower = AsciiLower(TrimAscii(text));
  std::vector<std::string> words;
  for (const std::string& word : Split(lower, ' ')) {
    if (!word.empty()) {
      words.push_back(word);
    }
  }
  std::size_t at = !words.empty() && words[0] == "interval" ? 1 : 0;
  if (at >= words.size() || (words.size() - at) % 2 != 0) {
    return std::nullopt;
  }
  struct Unit {
    std::string_view name;
    double ms;
  };
  static constexpr std::array<Unit, 8> kUnits{{{"week", 604800000.0},
                                               {"day", 86400000.0},
                                               {"hour", 3600000.0},
                                               {"minute", 60000.0},
                                               {"second", 1000.0},
                                               {"millisecond", 1.0},
                                               {"microsecond", 0.001},
                                               {"nanosecond", 0.000001}}};
  double total = 0;
  for (; at < words.size(); at += 2) {
    std::string number = words[at];
    if (number.size() >= 2 && number.front() == '\'' && number.back() == '\'') {
      number = number.substr(1, number.size() - 2);
    }
    char* end = nullptr;
    const double amount = std::strtod(number.c_str(), &end);
    if (end == number.c_str() || *end != '\0') {
      return std::nullopt;
    }
    std::string_view unit = words[at + 1];
    if (unit.ends_with('s')) {
      unit.remove_suffix(1);
    }
    const auto found = std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == unit; });
    if (found == kUnits.end()) {
      return std::nullopt;
    }
    total += amount * found->ms;
  }
  return static_cast<std::int64_t>(total);
}

std::int64_t Snapshot::version() const { return state_->version; }
std::int64_t Snapshot::timestamp_ms() const { return state_->timestamp_ms; }
const storage::Location& Snapshot::location() const { return state_->location; }
const Metadata& Snapshot::metadata() const { return state_->shape->metadata; }
const Protocol& Snapshot::protocol() const { return *state_->protocol; }
const types::Schema& Snapshot::schema() const { return state_->shape->schema; }
const types::Schema& Snapshot::partition_schema() const { return state_->shape->partition_schema; }

const std::string* Snapshot::Property(std::string_view key) const {
  return FindIn(state_->shape->metadata.configuration, key);
}

bool Snapshot::BooleanProperty(std::string_view key, bool fallback) const {
  const std::string* value = Property(key);
  return value == nullptr ? fallback : EqualsIgnoreAsciiCase(*value, "true");
}

std::int64_t Snapshot::file_count() const { return state_->files->count(); }
std::int64_t Snapshot::size_bytes() const { return state_->files->bytes(); }
std::int64_t Snapshot::row_count() const { return state_->files->records(); }

namespace {

/// Milliseconds before which transactions no longer count; nullopt where they never expire.
std::optional<std::int64_t> TransactionHorizon(const Snapshot& snapshot) {
  const std::string* text = snapshot.Property("delta.setTransactionRetentionDuration");
  if (text == nullptr) {
    return std::nullopt;
  }
  const auto ms = ParseIntervalMs(*text);
  if (!ms) {
    return std::nullopt;
  }
  return Clock::System()->NowMillis() - *ms;
}

}  // namespace

std::optional<SetTransaction> Snapshot::Transaction(std::string_view app_id) const {
  const SetTransaction* txn = state_->transactions.Find(app_id);
  if (txn == nullptr) {
    return std::nullopt;
  }
  const auto horizon = TransactionHorizon(*this);
  if (horizon && txn->last_updated && *txn->last_updated <= *horizon) {
    return std::nullopt;
  }
  return *txn;
}

std::vector<SetTransaction> Snapshot::Transactions() const {
  std::vector<SetTransaction> all;
  const auto horizon = TransactionHorizon(*this);
  state_->transactions.ForEach([&](const SetTransaction& txn) {
    if (!horizon || !txn.last_updated || *txn.last_updated > *horizon) {
      all.push_back(txn);
    }
  });
  return all;
}

std::optional<std::string> Snapshot::Domain(std::string_view domain) const {
  const DomainMetadata* found = state_->domains.Find(domain);
  if (found == nullptr || found->removed) {
    return std::nullopt;
  }
  return found->configuration;
}

std::vector<DomainMetadata> Snapshot::Domains() const {
  std::vector<DomainMetadata> all;
  state_->domains.ForEach([&](const DomainMetadata& domain) {
    if (!domain.removed) {
      all.push_back(domain);
    }
  });
  return all;
}

void Snapshot::ForEachFile(const std::function<void(const AddFile&)>& visit, bool stats) const {
  state_->files->ForEach(visit, stats);
}

std::vector<AddFile> Snapshot::AllFiles() const {
  std::vector<AddFile> files;
  files.reserve(static_cast<std::size_t>(file_count()));
  ForEachFile([&](const AddFile& file) { files.push_back(file); });
  return files;
}

Result<std::vector<AddFile>> Snapshot::Files(const std::vector<plan::ExprPtr>& filters,
                                             const std::vector<plan::Attribute>& columns) const {
  if (filters.empty()) {
    return AllFiles();
  }
  FLEUVE_ASSIGN(const FileFilter filter, FileFilter::Make(metadata(), schema(), filters, columns));
  std::vector<AddFile> files;
  ForEachFile(
      [&](const AddFile& file) {
        if (filter.MayMatch(file)) {
          files.push_back(file);
        }
      },
      true);
  return files;
}

std::optional<AddFile> Snapshot::FindFile(std::string_view path) const { return state_->files->Find(path); }

std::vector<RemoveFile> Snapshot::Tombstones() const {
  const std::int64_t horizon = TombstoneHorizon(metadata());
  std::map<std::string, const RemoveFile*> newest;
  for (const auto& chunk : state_->tombstones) {
    for (const RemoveFile& file : *chunk) {
      newest[file.path + '\0' + (file.deletion_vector ? file.deletion_vector->UniqueId() : std::string())] = &file;
    }
  }
  std::vector<RemoveFile> kept;
  for (const auto& [key, file] : newest) {
    if (file->deletion_timestamp.value_or(0) <= horizon) {
      continue;
    }
    const std::string id = file->deletion_vector ? file->deletion_vector->UniqueId() : std::string();
    const auto active = state_->files->Find(file->path);
    if (active && (active->deletion_vector ? active->deletion_vector->UniqueId() : std::string()) == id) {
      continue;
    }
    kept.push_back(*file);
  }
  return kept;
}

}  // namespace fleuve::delta
