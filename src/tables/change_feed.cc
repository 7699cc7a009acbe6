#include "tables/change_feed.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/bytes.h"
#include "delta/deletion_vector.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"
#include "tables/write_options_internal.h"

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

std::vector<StructField> ChangeFields() {
  return {{"_change_type", DataType::String(), true, Json()},
          {"_commit_version", DataType::Long(), true, Json()},
          {"_commit_timestamp", DataType::Timestamp(), true, Json()}};
}

bool FeedEnabled(const delta::Metadata& metadata) {
  const std::string* value = delta::FindIn(metadata.configuration, "delta.enableChangeDataFeed");
  if (value == nullptr) {
    value = delta::FindIn(metadata.configuration, "delta.enableChangeDataCapture");
  }
  return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
}

Error MissingData(std::int64_t start, std::int64_t end, std::int64_t version) {
  return Error(ErrorKind::kInvalidArgument, "DELTA_MISSING_CHANGE_DATA",
               "Cannot read the changes of versions " + std::to_string(start) + " to " + std::to_string(end) +
                   ": version " + std::to_string(version) +
                   " did not keep a change feed (table property delta.enableChangeDataFeed).")
      .With("startVersion", std::to_string(start))
      .With("endVersion", std::to_string(end))
      .With("version", std::to_string(version))
      .With("key", "delta.enableChangeDataFeed");
}

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

/// Every column of `part` is in `whole` under the same names and with the same type.
bool ReadableAs(const DataType& part, const DataType& whole, const delta::Metadata& metadata) {
  for (const StructField& field : part.fields()) {
    const auto at = types::FieldIndex(whole, field.name);
    if (!at || !whole.fields()[*at].type.EqualsIgnoringNullability(field.type)) {
      if (!at || !whole.fields()[*at].type.Is(types::TypeKind::kStruct) || !field.type.Is(types::TypeKind::kStruct) ||
          !ReadableAs(field.type, whole.fields()[*at].type, metadata)) {
        return false;
      }
      continue;
    }
    if (delta::PhysicalName(field, metadata) != delta::PhysicalName(whole.fields()[*at], metadata)) {
      return false;
    }
  }
  return true;
}

plan::PlanPtr Leaf(plan::FileScan scan, const types::Schema& output_schema) {
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  std::map<std::string, plan::Attribute> by_name;
  for (const types::Schema* schema : {&scan.data_schema, &scan.partition_schema, &scan.constants_schema}) {
    for (const plan::Attribute& attribute : plan::AttributesOf(*schema)) {
      by_name[attribute.name] = attribute;
      leaf->output.push_back(attribute);
    }
  }
  leaf->scan = std::make_shared<const plan::FileScan>(std::move(scan));
  std::vector<plan::ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (const StructField& field : output_schema.fields()) {
    const plan::Attribute& from = by_name.at(field.name);
    exprs.push_back(plan::MakeAttribute(from));
    plan::Attribute attribute = from;
    attribute.id = plan::NewAttributeId();
    attribute.nullable = true;
    output.push_back(std::move(attribute));
  }
  return plan::MakeProject(leaf, std::move(exprs), std::move(output));
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

/// Collects the files of a range into two scans: change files, and whole files whose rows are inserts or deletes.
class FeedScans {
 public:
  FeedScans(const delta::Metadata& metadata, const storage::Location& table) : metadata_(metadata), table_(table) {}

  Result<void> Begin() {
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

  Result<void> Add(const delta::Commit& commit, std::int64_t timestamp_ms) {
    const Value version(commit.version);
    const Value time(timestamp_ms * 1000);
    bool has_changes = false;
    bool nothing = false;
    std::map<std::string, const delta::AddFile*> adds;
    std::vector<const delta::RemoveFile*> removes;
    for (const delta::Action& action : commit.actions) {
      if (const auto* cdc = std::get_if<delta::AddCdcFile>(&action)) {
        has_changes = true;
        delta::AddFile add;
        add.path = cdc->path;
        add.partition_values = cdc->partition_values;
        add.size = cdc->size;
        FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(changes_, metadata_, add, table_));
        file.constants = {version, time};
        changes_.files.push_back(std::move(file));
      } else if (const auto* add = std::get_if<delta::AddFile>(&action); add != nullptr && add->data_change) {
        adds[add->path] = add;
      } else if (const auto* remove = std::get_if<delta::RemoveFile>(&action);
                 remove != nullptr && remove->data_change) {
        removes.push_back(remove);
      } else if (const auto* info = std::get_if<delta::CommitInfo>(&action)) {
        nothing = ChangedNothing(*info);
      }
    }
    if (has_changes || nothing) {
      return {};
    }
    const auto put = [&](const delta::AddFile& add, const char* type) -> Result<void> {
      FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(plain_, metadata_, add, table_));
      file.constants = {Value(type), version, time};
      plain_.files.push_back(std::move(file));
      return {};
    };
    const auto put_rows = [&](delta::AddFile add, std::vector<std::uint64_t> rows, const char* type) -> Result<void> {
      if (rows.empty()) {
        return {};
      }
      add.deletion_vector.reset();
      FLEUVE_ASSIGN(plan::ScanFile file, delta::MakeScanFile(plain_, metadata_, add, table_));
      const std::int64_t all = file.row_count;
      file.row_count = static_cast<std::int64_t>(rows.size());
      file.deleted_rows = std::make_shared<OnlyRows>(std::move(rows), all);
      file.constants = {Value(type), version, time};
      plain_.files.push_back(std::move(file));
      return {};
    };
    for (const delta::RemoveFile* remove : removes) {
      if (!remove->partition_values) {
        return Error(
                   ErrorKind::kCorrupt, "DELTA_REMOVE_FILE_CDC_MISSING_EXTENDED_METADATA",
                   "The removed file " + remove->path + " has no partition values in the log: its rows cannot be read.")
            .With("file", remove->path);
      }
      const auto again = adds.find(remove->path);
      if (again == adds.end()) {
        FLEUVE_TRY(put(AsAdd(*remove), "delete"));
        continue;
      }
      const delta::AddFile add = *again->second;
      adds.erase(again);
      FLEUVE_ASSIGN(const auto before, RowsOf(remove->deletion_vector, table_));
      FLEUVE_ASSIGN(const auto after, RowsOf(add.deletion_vector, table_));
      std::vector<std::uint64_t> gone;
      std::vector<std::uint64_t> back;
      std::set_difference(after.begin(), after.end(), before.begin(), before.end(), std::back_inserter(gone));
      std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::back_inserter(back));
      FLEUVE_TRY(put_rows(add, std::move(gone), "delete"));
      FLEUVE_TRY(put_rows(add, std::move(back), "insert"));
    }
    for (const auto& [path, add] : adds) {
      FLEUVE_TRY(put(*add, "insert"));
    }
    return {};
  }

  plan::PlanPtr Finish(const types::Schema& output) {
    auto all = std::make_shared<plan::LogicalPlan>();
    all->kind = plan::PlanKind::kUnion;
    all->children = {Leaf(std::move(plain_), output), Leaf(std::move(changes_), output)};
    all->output = plan::AttributesOf(output);
    return all;
  }

 private:
  const delta::Metadata& metadata_;
  const storage::Location& table_;
  plan::FileScan plain_;
  plan::FileScan changes_;
};

}  // namespace

Result<std::pair<ChangeBound, ChangeBound>> ChangeBoundsOf(const plan::Options& options,
                                                           const plan::AnalysisConfig& config) {
  const auto bound = [&](const char* version_name, const char* time_name, const char* which) -> Result<ChangeBound> {
    const std::string* version = plan::FindOption(options, version_name);
    const std::string* time = plan::FindOption(options, time_name);
    ChangeBound out;
    if (version != nullptr && time != nullptr) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_MULTIPLE_CDC_BOUNDARY",
                   std::string("Only one of ") + version_name + " and " + time_name + " can be set.")
          .With("startingOrEnding", which);
    }
    if (version != nullptr) {
      std::int64_t number = 0;
      const auto end = std::from_chars(version->data(), version->data() + version->size(), number);
      if (version->empty() || end.ec != std::errc() || end.ptr != version->data() + version->size()) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_VERSION_INVALID",
                     "The version '" + *version + "' is not a number.")
            .With("version", *version);
      }
      out.version = number;
    }
    if (time != nullptr) {
      const auto micros = types::ParseTimestamp(*time, config.session_zone);
      if (!micros) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_INVALID",
                     "The provided timestamp (" + *time + ") cannot be converted to a valid timestamp.")
            .With("expr", *time);
      }
      out.timestamp_ms = *micros >= 0 ? *micros / 1000 : (*micros - 999) / 1000;
    }
    return out;
  };
  FLEUVE_ASSIGN(const ChangeBound start, bound("startingVersion", "startingTimestamp", "starting"));
  FLEUVE_ASSIGN(const ChangeBound end, bound("endingVersion", "endingTimestamp", "ending"));
  if (!start.version && !start.timestamp_ms) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_NO_START_FOR_CDC_READ",
                 "No startingVersion or startingTimestamp is given for the read of a change feed.");
  }
  return std::pair(start, end);
}

Result<plan::PlanPtr> ChangeFeed(const delta::DeltaLogPtr& log, const ChangeBound& from, const ChangeBound& to,
                                 const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(const delta::SnapshotPtr latest, log->Latest());
  const bool out_of_range =
      ConfFlag(config, "spark.databricks.delta.changeDataFeed.timestampOutOfRange.enabled", false);
  FLEUVE_ASSIGN(const std::vector<delta::VersionTime> times, log->CommitsFrom(0));
  const auto invalid = [](std::int64_t a, std::int64_t b) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_CDC_RANGE",
                 "The range of versions from " + std::to_string(a) + " to " + std::to_string(b) + " is not valid.")
        .With("start", std::to_string(a))
        .With("end", std::to_string(b));
  };
  std::vector<StructField> fields;
  const auto empty_plan = [&]() -> Result<plan::PlanPtr> {
    FeedScans scans(latest->metadata(), log->location());
    FLEUVE_TRY(scans.Begin());
    std::vector<StructField> columns = delta::ReadSchemaOf(latest->schema()).fields();
    for (StructField& field : ChangeFields()) {
      columns.push_back(std::move(field));
    }
    return scans.Finish(DataType::Struct(std::move(columns)));
  };
  std::int64_t start = 0;
  if (from.version) {
    start = *from.version;
    if (start < 0) {
      return invalid(start, latest->version());
    }
    if (start > latest->version()) {
      if (out_of_range) {
        return empty_plan();
      }
      return Error(ErrorKind::kInvalidArgument, "DELTA_CDC_START_VERSION_AFTER_LATEST",
                   "The start version " + std::to_string(start) + " is after the latest version " +
                       std::to_string(latest->version()) + ".")
          .With("start", std::to_string(start))
          .With("latest", std::to_string(latest->version()));
    }
  } else {
    // The first commit at or after the time.
    const auto at =
        std::find_if(times.begin(), times.end(), [&](const auto& t) { return t.timestamp_ms >= *from.timestamp_ms; });
    if (at == times.end()) {
      if (out_of_range) {
        return empty_plan();
      }
      FLEUVE_ASSIGN(const delta::VersionTime late, log->VersionAtTime(*from.timestamp_ms, false, false));
      start = late.version + 1;
    } else {
      start = at->version;
    }
  }
  std::int64_t end = latest->version();
  if (to.version) {
    end = std::min(*to.version, latest->version());
    if (*to.version < start) {
      return invalid(start, *to.version);
    }
  } else if (to.timestamp_ms) {
    if (from.timestamp_ms && *to.timestamp_ms < *from.timestamp_ms) {
      return invalid(start, -1);
    }
    FLEUVE_ASSIGN(const delta::VersionTime at, log->VersionAtTime(*to.timestamp_ms, out_of_range, false));
    end = at.version;
    if (end < start) {
      return from.timestamp_ms ? empty_plan() : Result<plan::PlanPtr>(invalid(start, end));
    }
  }
  const auto time_of = [&](std::int64_t version) {
    const auto at = std::find_if(times.begin(), times.end(), [&](const auto& t) { return t.version == version; });
    return at == times.end() ? std::int64_t{0} : at->timestamp_ms;
  };
  std::int64_t retention = 7LL * 86400000;
  if (const std::string* text = latest->Property("delta.deletedFileRetentionDuration")) {
    retention = delta::ParseIntervalMs(*text).value_or(retention);
  }
  if (time_of(start) > 0 && start < latest->version() &&
      log->context().clock->NowMillis() - time_of(start) > retention) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_TIME_TRAVEL_BEYOND_DELETED_FILE_RETENTION_DURATION",
                 "Version " + std::to_string(start) + " is older than delta.deletedFileRetentionDuration.");
  }
  delta::SnapshotPtr shape = latest;
  if (delta::ColumnMappingMode(latest->metadata()) != "none" && end != latest->version()) {
    FLEUVE_ASSIGN(shape, log->At(end));
  }
  // The feed must be on in every version of the range.
  {
    auto first = log->At(start);
    if (first.ok() && !FeedEnabled((*first)->metadata())) {
      return MissingData(start, end, start);
    }
    if (first.ok() && delta::ColumnMappingMode(latest->metadata()) != "none" &&
        !ReadableAs((*first)->schema(), shape->schema(), shape->metadata())) {
      return Error(ErrorKind::kUnsupported, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                   "Columns were renamed, dropped or changed between versions " + std::to_string(start) + " and " +
                       std::to_string(end) + ".");
    }
  }
  FeedScans scans(shape->metadata(), log->location());
  FLEUVE_TRY(scans.Begin());
  for (std::int64_t version = start; version <= end; ++version) {
    FLEUVE_ASSIGN(const delta::Commit commit, log->ReadCommit(version));
    for (const delta::Action& action : commit.actions) {
      if (const auto* metadata = std::get_if<delta::Metadata>(&action)) {
        if (!FeedEnabled(*metadata)) {
          return MissingData(start, end, version);
        }
        FLEUVE_ASSIGN(const auto parsed, delta::MakeShape(*metadata));
        const bool mapped = delta::ColumnMappingMode(*metadata) != "none";
        if (mapped && !ReadableAs(parsed->schema, shape->schema(), shape->metadata())) {
          return Error(ErrorKind::kUnsupported, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                       "Columns were renamed, dropped or changed in version " + std::to_string(version) + ".")
              .With("start", std::to_string(start))
              .With("end", std::to_string(end))
              .With("incompatibleVersion", std::to_string(version));
        }
      }
    }
    FLEUVE_TRY(scans.Add(commit, time_of(version)));
  }
  std::vector<StructField> columns = delta::ReadSchemaOf(shape->schema()).fields();
  for (StructField& field : ChangeFields()) {
    columns.push_back(std::move(field));
  }
  return scans.Finish(DataType::Struct(std::move(columns)));
}

}  // namespace fleuve::tables
