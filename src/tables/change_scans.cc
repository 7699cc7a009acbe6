#include "tables/change_scans.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "delta/deletion_vector.h"
#include "delta/table_source.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;
using types::Value;

namespace {

/// Keeps exactly the rows of a set: what one deletion vector has and another has not.
class OnlyRows final : public plan::DeletedRows {
 public:
  OnlyRows(std::vector<std::uint64_t> rows, std::int64_t file_rows)
      : rows_(std::move(rows)),
        deleted_(std::max<std::int64_t>(0, file_rows - static_cast<std::int64_t>(rows_.size()))) {}
  std::int64_t count() const override { return deleted_; }
  std::int64_t Keep(std::int64_t start, std::int64_t count, std::uint32_t* kept) const override {
    auto at = std::lower_bound(rows_.begin(), rows_.end(), static_cast<std::uint64_t>(start));
    std::int64_t n = 0;
    for (; at != rows_.end() && *at < static_cast<std::uint64_t>(start + count); ++at) {
      kept[n++] = static_cast<std::uint32_t>(*at - static_cast<std::uint64_t>(start));
    }
    return n;
  }

 private:
  std::vector<std::uint64_t> rows_;
  std::int64_t deleted_;
};

/// A commit of a MERGE that changed no row.
bool ChangedNothing(const delta::CommitInfo& info) {
  if (info.operation != "MERGE" || !info.operation_metrics) {
    return false;
  }
  for (const char* key : {"numTargetRowsInserted", "numTargetRowsUpdated", "numTargetRowsDeleted"}) {
    const std::string* value = delta::FindIn(*info.operation_metrics, key);
    if (value == nullptr || *value != "0") {
      return false;
    }
  }
  return true;
}

delta::AddFile AsAdd(const delta::RemoveFile& remove) {
  delta::AddFile add;
  add.path = remove.path;
  add.partition_values = remove.partition_values.value_or(delta::PartitionValues());
  add.size = remove.size.value_or(0);
  add.stats = remove.stats;
  add.deletion_vector = remove.deletion_vector;
  return add;
}

Result<std::vector<std::uint64_t>> RowsOf(const std::optional<delta::DeletionVectorDescriptor>& dv,
                                          const storage::Location& table) {
  if (!dv) {
    return std::vector<std::uint64_t>();
  }
  FLEUVE_ASSIGN(const auto rows, delta::LoadDeletionVector(*dv, table));
  return rows->rows();
}

}  // namespace

std::vector<StructField> ChangeFields() {
  return {{"_change_type", DataType::String(), true, Json()},
          {"_commit_version", DataType::Long(), true, Json()},
          {"_commit_timestamp", DataType::Timestamp(), true, Json()}};
}

types::Schema WithChangeFields(const types::Schema& schema) {
  std::vector<StructField> columns = schema.fields();
  for (StructField& field : ChangeFields()) {
    columns.push_back(std::move(field));
  }
  return DataType::Struct(std::move(columns));
}

bool FeedEnabled(const delta::Metadata& metadata) {
  const std::string* value = delta::FindIn(metadata.configuration, "delta.enableChangeDataFeed");
  if (value == nullptr) {
    value = delta::FindIn(metadata.configuration, "delta.enableChangeDataCapture");
  }
  return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
}

Error MissingChangeData(std::int64_t start, std::int64_t end, std::int64_t version) {
  return Error(ErrorKind::kInvalidArgument, "DELTA_MISSING_CHANGE_DATA",
               "Cannot read the changes of versions " + std::to_string(start) + " to " + std::to_string(end) +
                   ": version " + std::to_string(version) +
                   " did not keep a change feed (table property delta.enableChangeDataFeed).")
      .With("startVersion", std::to_string(start))
      .With("endVersion", std::to_string(end))
      .With("version", std::to_string(version))
      .With("key", "delta.enableChangeDataFeed");
}

std::vector<ChangeFile> ChangeFilesOf(const std::vector<delta::Action>& actions) {
  std::vector<ChangeFile> changes;
  std::vector<ChangeFile> whole;
  bool nothing = false;
  for (const delta::Action& action : actions) {
    if (const auto* cdc = std::get_if<delta::AddCdcFile>(&action)) {
      ChangeFile file;
      file.kind = ChangeKind::kChangeFile;
      file.file.path = cdc->path;
      file.file.partition_values = cdc->partition_values;
      file.file.size = cdc->size;
      changes.push_back(std::move(file));
    } else if (const auto* add = std::get_if<delta::AddFile>(&action); add != nullptr && add->data_change) {
      whole.push_back({ChangeKind::kInsert, *add});
    } else if (const auto* remove = std::get_if<delta::RemoveFile>(&action); remove != nullptr && remove->data_change) {
      whole.push_back({ChangeKind::kDelete, AsAdd(*remove), !remove->partition_values});
    } else if (const auto* info = std::get_if<delta::CommitInfo>(&action)) {
      nothing = ChangedNothing(*info);
    }
  }
  if (!changes.empty()) {
    return changes;
  }
  return nothing ? std::vector<ChangeFile>() : whole;
}

Result<void> ChangeScans::Begin() {
  FLEUVE_ASSIGN(plain_, delta::MakeScan(metadata_));
  const std::vector<StructField> fields = ChangeFields();
  plain_.constants_schema = DataType::Struct(fields);
  changes_ = plain_;
  std::vector<StructField> data = changes_.data_schema.fields();
  data.push_back(fields[0]);
  changes_.data_schema = DataType::Struct(std::move(data));
  if (changes_.physical_schema) {
    std::vector<StructField> physical = changes_.physical_schema->fields();
    physical.push_back(fields[0]);
    changes_.physical_schema = DataType::Struct(std::move(physical));
    changes_.map_by_field_id = false;
  }
  changes_.constants_schema = DataType::Struct({fields[1], fields[2]});
  return {};
}

Result<void> ChangeScans::Put(const delta::AddFile& add, const char* type, std::int64_t version,
                              std::int64_t timestamp_ms) {
  FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(plain_, metadata_, add, table_));
  file.constants = {Value(type), Value(version), Value(timestamp_ms * 1000)};
  plain_.files.push_back(std::move(file));
  return {};
}

Result<void> ChangeScans::PutRows(delta::AddFile add, std::vector<std::uint64_t> rows, const char* type,
                                  std::int64_t version, std::int64_t timestamp_ms) {
  if (rows.empty()) {
    return {};
  }
  add.deletion_vector.reset();
  FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(plain_, metadata_, add, table_));
  const std::int64_t all = file.row_count;
  file.row_count = static_cast<std::int64_t>(rows.size());
  file.deleted_rows = std::make_shared<OnlyRows>(std::move(rows), all);
  file.constants = {Value(type), Value(version), Value(timestamp_ms * 1000)};
  plain_.files.push_back(std::move(file));
  return {};
}

Result<void> ChangeScans::Add(const std::vector<const ChangeFile*>& files, std::int64_t version,
                              std::int64_t timestamp_ms) {
  std::map<std::string, const ChangeFile*> removed;
  for (const ChangeFile* change : files) {
    if (change->kind != ChangeKind::kDelete) {
      continue;
    }
    if (change->unreadable) {
      return Error(ErrorKind::kCorrupt, "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
                   "The removed file " + change->file.path +
                       " has no partition values in the log: its rows cannot be read.")
          .With("file", change->file.path);
    }
    removed[change->file.path] = change;
  }
  std::map<std::string, const ChangeFile*> again;
  for (const ChangeFile* change : files) {
    if (change->kind == ChangeKind::kInsert && removed.contains(change->file.path)) {
      again[change->file.path] = change;
    }
  }
  for (const ChangeFile* change : files) {
    const delta::AddFile& file = change->file;
    if (change->kind == ChangeKind::kChangeFile) {
      FLEUVE_ASSIGN(plan::ScanFile scan, delta::MakeScanFile(changes_, metadata_, file, table_));
      scan.constants = {Value(version), Value(timestamp_ms * 1000)};
      changes_.files.push_back(std::move(scan));
      continue;
    }
    const auto both = again.find(file.path);
    if (both == again.end()) {
      FLEUVE_TRY(Put(file, change->kind == ChangeKind::kDelete ? "delete" : "insert", version, timestamp_ms));
      continue;
    }
    if (change->kind == ChangeKind::kInsert) {
      continue;
    }
    FLEUVE_ASSIGN(const auto before, RowsOf(file.deletion_vector, table_));
    FLEUVE_ASSIGN(const auto after, RowsOf(both->second->file.deletion_vector, table_));
    std::vector<std::uint64_t> gone;
    std::vector<std::uint64_t> back;
    std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(gone));
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(back));
    FLEUVE_TRY(PutRows(both->second->file, std::move(gone), "delete", version, timestamp_ms));
    FLEUVE_TRY(PutRows(both->second->file, std::move(back), "insert", version, timestamp_ms));
  }
  return {};
}

}  // namespace fleuve::tables
