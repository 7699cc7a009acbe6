#include "tables/change_feed.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/bytes.h"
#include "delta/skipping.h"
#include "delta/snapshot_build.h"
#include "delta/table_source.h"
#include "tables/change_scans.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;

namespace {

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

plan::PlanPtr PlanOf(ChangeScans& scans, const types::Schema& output) {
  auto all = std::make_shared<plan::LogicalPlan>();
  all->kind = plan::PlanKind::kUnion;
  all->children = {Leaf(std::move(scans.whole_files()), output), Leaf(std::move(scans.change_files()), output)};
  all->output = plan::AttributesOf(output);
  return all;
}

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
  const auto empty_plan = [&]() -> Result<plan::PlanPtr> {
    ChangeScans scans(latest->metadata(), log->location());
    FLEUVE_TRY(scans.Begin());
    return PlanOf(scans, WithChangeFields(delta::ReadSchemaOf(latest->schema())));
  };
  std::int64_t start = 0;
  if (from.version) {
    start = *from.version;
    if (start < 0) {
      return Error(ErrorKind::kNotFound, "DELTA_LOG_FILE_NOT_FOUND",
                   "There are no log files of the table's version " + std::to_string(start) + ".")
          .With("version", std::to_string(start))
          .With("logPath", delta::LogFolder(log->location().path));
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
    const auto at = std::lower_bound(times.begin(), times.end(), version,
                                     [](const delta::VersionTime& t, std::int64_t v) { return t.version < v; });
    return at == times.end() || at->version != version ? std::int64_t{0} : at->timestamp_ms;
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
      return MissingChangeData(start, end, start);
    }
    if (first.ok() && delta::ColumnMappingMode(latest->metadata()) != "none" &&
        !ReadableAs((*first)->schema(), shape->schema(), shape->metadata())) {
      return Error(ErrorKind::kUnsupported, "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
                   "Columns were renamed, dropped or changed between versions " + std::to_string(start) + " and " +
                       std::to_string(end) + ".");
    }
  }
  ChangeScans scans(shape->metadata(), log->location());
  FLEUVE_TRY(scans.Begin());
  for (std::int64_t version = start; version <= end; ++version) {
    FLEUVE_ASSIGN(const delta::Commit commit, log->ReadCommit(version));
    for (const delta::Action& action : commit.actions) {
      if (const auto* metadata = std::get_if<delta::Metadata>(&action)) {
        if (!FeedEnabled(*metadata)) {
          return MissingChangeData(start, end, version);
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
    const std::vector<ChangeFile> files = ChangeFilesOf(commit.actions);
    std::vector<const ChangeFile*> all;
    for (const ChangeFile& file : files) {
      all.push_back(&file);
    }
    FLEUVE_TRY(scans.Add(all, version, time_of(version)));
  }
  return PlanOf(scans, WithChangeFields(delta::ReadSchemaOf(shape->schema())));
}

}  // namespace fleuve::tables
