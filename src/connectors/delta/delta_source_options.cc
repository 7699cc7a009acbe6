#include <charconv>

#include "base/bytes.h"
#include "base/json.h"
#include "connectors/delta/delta_source_internal.h"
#include "tables/options.h"

namespace fleuve::connectors::delta {

namespace {

using tables::IllegalOption;

bool ParseLong(std::string_view text, std::int64_t* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// `10`, `10k`, `10mb`, ...: bytes.
bool ParseBytes(std::string_view text, std::int64_t* value) {
  const std::string lower = AsciiLower(TrimAscii(text));
  const std::size_t digits = lower.find_first_not_of("0123456789");
  std::int64_t number = 0;
  if (!ParseLong(std::string_view(lower).substr(0, digits), &number)) {
    return false;
  }
  const std::string unit = digits == std::string::npos ? "" : lower.substr(digits);
  int shift = 0;
  if (unit.empty() || unit == "b") {
    shift = 0;
  } else if (unit == "k" || unit == "kb") {
    shift = 10;
  } else if (unit == "m" || unit == "mb") {
    shift = 20;
  } else if (unit == "g" || unit == "gb") {
    shift = 30;
  } else if (unit == "t" || unit == "tb") {
    shift = 40;
  } else if (unit == "p" || unit == "pb") {
    shift = 50;
  } else {
    return false;
  }
  if (number > (INT64_MAX >> shift)) {
    return false;
  }
  *value = number << shift;
  return true;
}

Error BadOffset(const std::string& text) {
  return Error(ErrorKind::kCorrupt, "DELTA_INVALID_SOURCE_OFFSET_FORMAT",
               "The stored source offset format is invalid: " + text);
}

}  // namespace

Result<bool> BooleanOption(const plan::Options& options, const char* name, bool fallback) {
  FLEUVE_ASSIGN(const auto given, tables::FlagOption(options, name));
  return given.value_or(fallback);
}

Result<bool> ReadsChangeFeed(const plan::Options& options) {
  FLEUVE_ASSIGN(const bool feed, BooleanOption(options, "readChangeFeed", false));
  FLEUVE_ASSIGN(const bool data, BooleanOption(options, "readChangeData", false));
  return feed || data;
}

Result<std::optional<storage::Location>> TrackingFolder(const plan::Options& options, const std::string& table_id) {
  const std::string* location = plan::FindOption(options, "schemaTrackingLocation");
  if (location == nullptr) {
    location = plan::FindOption(options, "schemaLocation");
  }
  if (location == nullptr) {
    return std::optional<storage::Location>();
  }
  FLEUVE_ASSIGN(storage::Location folder, storage::Resolve(*location));
  folder.path += "/_schema_log_" + table_id;
  if (const std::string* id = plan::FindOption(options, "streamingSourceTrackingId")) {
    folder.path += "_" + *id;
  }
  return std::optional<storage::Location>(std::move(folder));
}

Result<DeltaSourceOptions> ParseDeltaSourceOptions(const plan::Options& options) {
  DeltaSourceOptions parsed;
  if (const std::string* text = plan::FindOption(options, "maxBytesPerTrigger")) {
    std::int64_t bytes = 0;
    if (!ParseBytes(*text, &bytes) || bytes <= 0) {
      return IllegalOption("maxBytesPerTrigger", *text, "must be a size configuration such as '10g'");
    }
    parsed.max_bytes = bytes;
    parsed.max_files.reset();
    parsed.has_limit = true;
  }
  if (const std::string* text = plan::FindOption(options, "maxFilesPerTrigger")) {
    std::int64_t files = 0;
    if (!ParseLong(*text, &files) || files <= 0 || files > INT32_MAX) {
      return IllegalOption("maxFilesPerTrigger", *text, "must be a positive integer");
    }
    parsed.max_files = files;
    parsed.has_limit = true;
  }
  if (const std::string* text = plan::FindOption(options, "startingVersion")) {
    std::int64_t version = 0;
    if (*text == "latest") {
      parsed.start_at_latest = true;
    } else if (ParseLong(*text, &version) && version >= 0) {
      parsed.starting_version = version;
    } else {
      return IllegalOption("startingVersion", *text, "must be greater than or equal to zero");
    }
  }
  if (const std::string* text = plan::FindOption(options, "startingTimestamp")) {
    parsed.starting_timestamp = *text;
  }
  if (parsed.starting_timestamp && (parsed.starting_version || parsed.start_at_latest)) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_STARTING_VERSION_AND_TIMESTAMP_BOTH_SET",
                 "Please either provide 'startingVersion' or 'startingTimestamp'")
        .With("version", "startingVersion")
        .With("timestamp", "startingTimestamp");
  }
  FLEUVE_ASSIGN(parsed.ignore_deletes, BooleanOption(options, "ignoreDeletes", false));
  FLEUVE_ASSIGN(parsed.ignore_changes, BooleanOption(options, "ignoreChanges", false));
  FLEUVE_ASSIGN(const bool ignore_file_deletion, BooleanOption(options, "ignoreFileDeletion", false));
  parsed.ignore_changes = parsed.ignore_changes || ignore_file_deletion;
  FLEUVE_ASSIGN(parsed.skip_change_commits, BooleanOption(options, "skipChangeCommits", false));
  FLEUVE_ASSIGN(parsed.fail_on_data_loss, BooleanOption(options, "failOnDataLoss", true));
  if (const std::string* text = plan::FindOption(options, "excludeRegex")) {
    auto regex = types::JavaRegex::Compile(*text);
    if (!regex.ok()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_REGEX_OPT_SYNTAX_ERROR",
                   "Please recheck your syntax for 'excludeRegex': " + regex.error().message())
          .With("regExpOption", "excludeRegex");
    }
    parsed.exclude = *std::move(regex);
  }
  FLEUVE_ASSIGN(parsed.read_change_feed, ReadsChangeFeed(options));
  if (plan::FindOption(options, "withEventTimeOrder") != nullptr) {
    FLEUVE_ASSIGN(parsed.with_event_time_order, BooleanOption(options, "withEventTimeOrder", false));
  }
  return parsed;
}

Error DifferentTable(const std::string& now, const std::string& before) {
  return Error(ErrorKind::kConflict, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE",
               "The streaming query was reading from an unexpected Delta table (id = '" + now +
                   "'). It used to read from another Delta table (id = '" + before +
                   "') according to checkpoint. This may happen when you changed the code to read from a new table or "
                   "you deleted and re-created a table. Please revert your change or delete your streaming query "
                   "checkpoint to restart from scratch.")
      .With("newTableId", now)
      .With("oldTableId", before)
      .SqlState("55019");
}

std::string DeltaOffset::ToJson(const std::string& table_id) const {
  std::string out = event_time_ms  ? "{\"sourceVersion\":2"
                    : is_barrier() ? "{\"sourceVersion\":3"
                                   : "{\"sourceVersion\":1";
  out += ",\"reservoirId\":";
  AppendJsonString(out, table_id);
  out += ",\"reservoirVersion\":" + std::to_string(version) + ",\"index\":" + std::to_string(index) +
         ",\"isStartingVersion\":" + (is_starting ? "true" : "false");
  if (event_time_ms) {
    out += ",\"eventTimeMillis\":" + std::to_string(*event_time_ms);
  }
  return out + "}";
}

Result<DeltaOffset> DeltaOffset::Parse(const std::string& text, const std::string& table_id) {
  auto json = Json::Parse(text);
  if (!json.ok() || !json->is_object()) {
    return BadOffset(text);
  }
  const Json* version = json->Find("sourceVersion");
  std::int64_t source_version = 0;
  if (version != nullptr && !version->is_int() &&
      !(version->is_string() && ParseLong(version->AsString(), &source_version))) {
    return BadOffset(text);
  }
  if (version != nullptr && version->is_int()) {
    source_version = version->AsInt();
  }
  const Json& event_time = (*json)["eventTimeMillis"];
  if (version == nullptr || source_version < 1 || (source_version == 2 && !event_time.is_int())) {
    return Error(ErrorKind::kCorrupt, "DELTA_INVALID_SOURCE_VERSION",
                 "sourceVersion(" + (version == nullptr ? "" : std::to_string(source_version)) + ") is invalid.")
        .With("version", std::to_string(source_version));
  }
  if (source_version > 3) {
    return Error(ErrorKind::kUnsupported, "DELTA_INVALID_FORMAT_FROM_SOURCE_VERSION",
                 "Unsupported format. Expected version should be smaller than or equal to 3 but was " +
                     std::to_string(source_version) + ". Please upgrade to newer version of Delta.")
        .With("expectedVersion", "3")
        .With("realVersion", std::to_string(source_version));
  }
  const Json& id = (*json)["reservoirId"];
  if (!id.is_string() || !(*json)["reservoirVersion"].is_int() || !(*json)["index"].is_int() ||
      !(*json)["isStartingVersion"].is_bool()) {
    return BadOffset(text);
  }
  if (id.AsString() != table_id) {
    return DifferentTable(table_id, id.AsString());
  }
  DeltaOffset offset;
  offset.version = (*json)["reservoirVersion"].AsInt();
  offset.index = (*json)["index"].AsInt();
  offset.is_starting = (*json)["isStartingVersion"].AsBool();
  if (source_version == 3) {
    if (offset.index == -1) {
      return BadOffset(text);
    }
    if (offset.index == -100) {
      offset.index = -1;
    } else if (offset.index < 0 && !offset.is_barrier()) {
      return BadOffset(text);
    }
  } else if (offset.index < -1) {
    return BadOffset(text);
  }
  if (source_version == 2) {
    offset.event_time_ms = event_time.AsInt();
  }
  return offset;
}

void VersionFiles::Sum() {
  const auto n = static_cast<std::size_t>(count());
  bytes_from.assign(n + 1, 0);
  for (std::size_t i = n; i > 0; --i) {
    bytes_from[i - 1] = bytes_from[i] + file(static_cast<std::int64_t>(i - 1)).size;
  }
}

}  // namespace fleuve::connectors::delta
