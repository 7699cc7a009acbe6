#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "base/bytes.h"
#include "base/log.h"
#include "connectors/autoloader/cloud_options_internal.h"
#include "connectors/files/file_listing.h"
#include "connectors/files/file_schema.h"

namespace fleuve::connectors::autoloader {

namespace {

constexpr std::string_view kPrefix = "cloudfiles.";

/// Options that this source serves, without prefix.
constexpr std::array kServed = {"format",
                                "schemaLocation",
                                "schemaEvolutionMode",
                                "schemaHints",
                                "inferColumnTypes",
                                "partitionColumns",
                                "includeExistingFiles",
                                "allowOverwrites",
                                "maxFilesPerTrigger",
                                "maxBytesPerTrigger",
                                "backfillInterval",
                                "maxFileAge",
                                "cleanSource",
                                "cleanSource.retentionDuration",
                                "cleanSource.moveDestination",
                                "cleanSource.waitForCompletion",
                                "useStrictGlobber",
                                "validateOptions",
                                "useIncrementalListing",
                                "useNotifications",
                                "useManagedFileEvents",
                                "listOnStart",
                                "rescuedDataColumn"};

/// Options that only mean something with notifications or managed file events.
constexpr std::array kNotificationOnly = {"fetchParallelism",
                                          "pathRewrites",
                                          "region",
                                          "queueUrl",
                                          "restrictNotificationSetupToSameAWSAccountId",
                                          "awsAccessKey",
                                          "awsSecretKey",
                                          "roleArn",
                                          "roleExternalId",
                                          "roleSessionName",
                                          "stsEndpoint",
                                          "resourceGroup",
                                          "subscriptionId",
                                          "tenantId",
                                          "clientId",
                                          "clientSecret",
                                          "connectionString",
                                          "queueName",
                                          "projectId",
                                          "subscription",
                                          "client",
                                          "clientEmail",
                                          "privateKey",
                                          "privateKeyId"};

/// The one such option that has no prefix.
constexpr const char* kServiceCredential = "databricks.serviceCredential";

/// Reader options that users write with the prefix by mistake.
constexpr std::array kUnprefixed = {"pathGlobFilter",
                                    "readerCaseSensitive",
                                    "modifiedAfter",
                                    "modifiedBefore",
                                    "recursiveFileLookup",
                                    "ignoreCorruptFiles",
                                    "ignoreMissingFiles",
                                    "multiLine",
                                    "header",
                                    "mode",
                                    "badRecordsPath",
                                    "dateFormat",
                                    "timestampFormat",
                                    "encoding",
                                    "sep",
                                    "delimiter",
                                    "mergeSchema",
                                    "columnNameOfCorruptRecord"};

std::string NameWithoutPrefix(const std::string& key) {
  return AsciiLower(key).starts_with(kPrefix) ? key.substr(kPrefix.size()) : std::string();
}

Error Invalid(const std::string& option, const std::string& value, const std::string& wanted) {
  return Error(ErrorKind::kInvalidArgument, "CF_INVALID_OPTION_VALUE",
               "The value '" + value + "' of option 'cloudFiles." + option + "' is not valid: " + wanted + ".")
      .With("option", "cloudFiles." + option)
      .With("value", value);
}

/// Options of the prefix by lower-case name without it.
using CloudMap = std::map<std::string, std::string>;

const std::string* Find(const CloudMap& map, std::string_view name) {
  const auto found = map.find(AsciiLower(name));
  return found == map.end() ? nullptr : &found->second;
}

Result<bool> Flag(const CloudMap& map, const char* name, bool fallback) {
  const std::string* text = Find(map, name);
  if (text == nullptr) {
    return fallback;
  }
  if (EqualsIgnoreAsciiCase(*text, "true")) {
    return true;
  }
  if (EqualsIgnoreAsciiCase(*text, "false")) {
    return false;
  }
  return Invalid(name, *text, "it must be true or false");
}

bool IsListed(const std::string& name, const auto& list) {
  return std::any_of(list.begin(), list.end(), [&](const char* known) { return EqualsIgnoreAsciiCase(name, known); });
}

/// Refuses an option that only means something with file notifications; without validation it is only told.
Result<void> CheckNotificationOption(const std::string& option, bool validate) {
  if (!validate) {
    LogWarn("option " + option + " is ignored: files are discovered by listing");
    return {};
  }
  return Error(ErrorKind::kUnsupported, "CF_NOTIFICATIONS_UNSUPPORTED",
               "Option '" + option +
                   "' only has a meaning with file notifications, which are off: this engine discovers files by "
                   "listing folders. Remove the option.")
      .With("option", option);
}

Result<void> CheckKeys(const CloudMap& map, bool validate) {
  std::vector<std::string> unknown;
  std::string hint;
  for (const auto& [name, value] : map) {
    if (IsListed(name, kServed)) {
      continue;
    }
    const bool notification = IsListed(name, kNotificationOnly) || name.starts_with("resourcetag.");
    if (notification) {
      FLEUVE_TRY(CheckNotificationOption("cloudFiles." + name, validate));
      continue;
    }
    unknown.push_back("cloudfiles." + name);
    for (const char* plain : kUnprefixed) {
      if (EqualsIgnoreAsciiCase(name, plain)) {
        hint += std::string(" Use '") + plain + "' without the prefix.";
      }
    }
    if (name == "filenamepattern") {
      hint += " Use 'pathGlobFilter' without the prefix.";
    }
    if (name == "casesensitive") {
      hint += " Use 'readerCaseSensitive' without the prefix.";
    }
  }
  if (!unknown.empty() && validate) {
    return Error(ErrorKind::kInvalidArgument, "CF_UNKNOWN_OPTION_KEYS_ERROR",
                 "Found unknown option keys: " + Join(unknown, ", ") +
                     ". Please make sure that all provided option keys are correct. If you want to skip the validation "
                     "of your options and ignore these unknown options, you can set 'cloudFiles.validateOptions' to "
                     "false." +
                     hint)
        .With("optionKeys", Join(unknown, ", "));
  }
  return {};
}

Result<void> ParseCleaning(const CloudMap& map, CloudOptions& out) {
  const std::string* mode = Find(map, "cleanSource");
  const std::string lower = mode == nullptr ? "off" : AsciiLower(*mode);
  if (lower == "delete") {
    out.clean = Clean::kDelete;
  } else if (lower == "move") {
    out.clean = Clean::kMove;
  } else if (lower != "off") {
    return Invalid("cleanSource", *mode, "it must be OFF, DELETE or MOVE");
  }
  constexpr std::int64_t kDayMs = 86400000;
  out.retention_ms = 30 * kDayMs;
  if (const std::string* text = Find(map, "cleanSource.retentionDuration")) {
    const auto parsed = ParseInterval(*text);
    if (!parsed) {
      return Invalid("cleanSource.retentionDuration", *text, "it must be an interval such as '30 days'");
    }
    out.retention_ms = *parsed;
  }
  if (out.clean == Clean::kDelete && out.retention_ms <= 7 * kDayMs) {
    const std::string* text = Find(map, "cleanSource.retentionDuration");
    return Invalid("cleanSource.retentionDuration", text == nullptr ? "" : *text,
                   "it must be more than 7 days with cleanSource DELETE");
  }
  if (out.clean == Clean::kMove) {
    const std::string* folder = Find(map, "cleanSource.moveDestination");
    if (folder == nullptr || folder->empty()) {
      return Invalid("cleanSource", "MOVE", "'cleanSource.moveDestination' must be set");
    }
    FLEUVE_ASSIGN(out.move_folder, files::LocalPathOf(*folder));
  }
  FLEUVE_ASSIGN(out.wait_for_cleaning, Flag(map, "cleanSource.waitForCompletion", false));
  return {};
}

Result<std::optional<std::int64_t>> PositiveCount(const CloudMap& map, const plan::Options& options, const char* name) {
  const std::string* text = Find(map, name);
  if (text == nullptr) {
    text = plan::FindOption(options, name);
  }
  if (text == nullptr) {
    return std::optional<std::int64_t>();
  }
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size() || value <= 0) {
    return Invalid(name, *text, "it must be a positive integer");
  }
  return std::optional<std::int64_t>(value);
}

}  // namespace

std::optional<std::int64_t> ParseBytes(std::string_view text) {
  const std::string lower = AsciiLower(TrimAscii(text));
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(lower.data(), lower.data() + lower.size(), value);
  if (code != std::errc() || value < 0) {
    return std::nullopt;
  }
  const std::string unit(TrimAscii(std::string_view(end, static_cast<std::size_t>(lower.data() + lower.size() - end))));
  int shift = 0;
  if (unit.empty() || unit == "b") {
    shift = 0;
  } else if (unit == "k" || unit == "kb" || unit == "kib") {
    shift = 10;
  } else if (unit == "m" || unit == "mb" || unit == "mib") {
    shift = 20;
  } else if (unit == "g" || unit == "gb" || unit == "gib") {
    shift = 30;
  } else if (unit == "t" || unit == "tb" || unit == "tib") {
    shift = 40;
  } else if (unit == "p" || unit == "pb" || unit == "pib") {
    shift = 50;
  } else {
    return std::nullopt;
  }
  if (value > (INT64_MAX >> shift)) {
    return std::nullopt;
  }
  return value << shift;
}

std::optional<std::int64_t> ParseInterval(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& word : Split(AsciiLower(TrimAscii(text)), ' ')) {
    if (!word.empty()) {
      words.push_back(word);
    }
  }
  if (!words.empty() && words.front() == "interval") {
    words.erase(words.begin());
  }
  if (words.empty() || words.size() % 2 != 0) {
    return std::nullopt;
  }
  std::int64_t total = 0;
  for (std::size_t i = 0; i < words.size(); i += 2) {
    std::int64_t value = 0;
    const std::string& number = words[i];
    const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (code != std::errc() || end != number.data() + number.size() || value < 0) {
      return std::nullopt;
    }
    std::string unit = words[i + 1];
    if (unit.size() > 1 && unit.ends_with('s') && unit != "ms") {
      unit.pop_back();
    }
    const std::int64_t factor = unit == "millisecond" || unit == "ms" ? 1
                                : unit == "second" || unit == "sec"   ? 1000
                                : unit == "minute" || unit == "min"   ? 60000
                                : unit == "hour"                      ? 3600000
                                : unit == "day"                       ? 86400000
                                : unit == "week"                      ? 7LL * 86400000
                                                                      : 0;
    if (factor == 0 || value > (INT64_MAX - total) / factor) {
      return std::nullopt;
    }
    total += value * factor;
  }
  return total;
}

std::optional<std::string> CloudOptionName(std::string_view name) {
  for (const char* known : kServed) {
    if (EqualsIgnoreAsciiCase(name, known) && !EqualsIgnoreAsciiCase(name, "rescuedDataColumn")) {
      return "cloudFiles." + std::string(known);
    }
  }
  for (const char* known : kNotificationOnly) {
    if (EqualsIgnoreAsciiCase(name, known)) {
      return "cloudFiles." + std::string(known);
    }
  }
  return std::nullopt;
}

Result<CloudOptions> ParseCloudOptions(const plan::Options& options, bool has_schema, bool defaults_of_read_files,
                                       const plan::AnalysisConfig& config) {
  CloudOptions out;
  CloudMap map;
  bool has_credential = false;
  for (const auto& [key, value] : options) {
    const std::string name = NameWithoutPrefix(key);
    if (!name.empty()) {
      map[AsciiLower(name)] = value;
    } else if (EqualsIgnoreAsciiCase(key, kServiceCredential)) {
      has_credential = true;
    } else if (!EqualsIgnoreAsciiCase(key, "path") && !EqualsIgnoreAsciiCase(key, "maxFilesPerTrigger") &&
               !EqualsIgnoreAsciiCase(key, "maxBytesPerTrigger")) {
      out.reader[key] = value;
    }
  }
  FLEUVE_ASSIGN(const bool validate, Flag(map, "validateOptions", true));
  for (const char* mode : {"useNotifications", "useManagedFileEvents"}) {
    FLEUVE_ASSIGN(const bool on, Flag(map, mode, false));
    if (on) {
      return Error(ErrorKind::kUnsupported, "CF_NOTIFICATIONS_UNSUPPORTED",
                   std::string("Option 'cloudFiles.") + mode +
                       "' is not supported: this engine discovers files by listing folders. Remove the option or set "
                       "it to false.")
          .With("option", std::string("cloudFiles.") + mode);
    }
  }
  FLEUVE_TRY(CheckKeys(map, validate));
  if (has_credential) {
    FLEUVE_TRY(CheckNotificationOption(kServiceCredential, validate));
  }
  const std::string* format = Find(map, "format");
  if (format == nullptr || format->empty()) {
    return Error(ErrorKind::kInvalidArgument, "CF_MISSING_FORMAT",
                 "The format of the files is not known. Set option 'cloudFiles.format' to json, csv, parquet, text or "
                 "binaryFile.");
  }
  const std::string lower_format = AsciiLower(*format);
  if (lower_format == "orc") {
    return Error::Unsupported("option cloudFiles.format with value " + *format);
  }
  if (const std::string container = files::ContainerOf(lower_format); !container.empty()) {
    out.reader["fleuve.container"] = container;
  }
  auto parsed_format = files::ParseFormat(lower_format);
  if (!parsed_format.ok()) {
    return Invalid("format", *format, "it must be json, csv, parquet, text or binaryFile");
  }
  out.format = *parsed_format;
  if (const std::string* location = Find(map, "schemaLocation")) {
    out.schema_location = *location;
  }
  const bool fixed = files::FixedSchema(out.format).has_value();
  out.evolution = has_schema || fixed ? Evolution::kNone : Evolution::kAddNewColumns;
  if (const std::string* mode = Find(map, "schemaEvolutionMode")) {
    out.evolution_given = true;
    const std::string lower = AsciiLower(*mode);
    if (lower == "addnewcolumns") {
      out.evolution = Evolution::kAddNewColumns;
    } else if (lower == "rescue") {
      out.evolution = Evolution::kRescue;
    } else if (lower == "failonnewcolumns") {
      out.evolution = Evolution::kFailOnNewColumns;
    } else if (lower == "none") {
      out.evolution = Evolution::kNone;
    } else if (lower == "addnewcolumnswithtypewidening") {
      out.evolution = Evolution::kAddNewColumns;
      out.widens_types = true;
    } else {
      return Invalid("schemaEvolutionMode", *mode,
                     "it must be addNewColumns, addNewColumnsWithTypeWidening, rescue, "
                     "failOnNewColumns or none");
    }
    if (fixed && out.evolution != Evolution::kNone) {
      return Error(ErrorKind::kInvalidArgument, "CF_UNSUPPORTED_SCHEMA_EVOLUTION_MODE",
                   "Schema evolution mode " + *mode + " is not supported for format: " + *format +
                       ". Please set the schema evolution mode to 'none'.");
    }
    if (has_schema && out.evolution == Evolution::kAddNewColumns) {
      return Error(ErrorKind::kInvalidArgument, "CF_ADD_NEW_NOT_SUPPORTED",
                   "Schema evolution mode addNewColumns is not supported when the schema is specified. To use this "
                   "mode, you can provide the schema through cloudFiles.schemaHints instead.");
    }
  }
  if (const std::string* hints = Find(map, "schemaHints")) {
    out.hints = *hints;
    if (has_schema) {
      return Invalid("schemaHints", *hints, "hints are for streams without a schema");
    }
  }
  FLEUVE_ASSIGN(out.infer_types, Flag(map, "inferColumnTypes", defaults_of_read_files));
  if (const std::string* columns = Find(map, "partitionColumns")) {
    out.partition_columns.emplace();
    for (const std::string& column : Split(*columns, ',')) {
      const std::string name(TrimAscii(column));
      if (!name.empty()) {
        out.partition_columns->push_back(name);
      }
    }
  }
  FLEUVE_ASSIGN(out.include_existing, Flag(map, "includeExistingFiles", true));
  FLEUVE_ASSIGN(out.allow_overwrites, Flag(map, "allowOverwrites", false));
  FLEUVE_ASSIGN(out.strict_globs, Flag(map, "useStrictGlobber", defaults_of_read_files));
  FLEUVE_TRY(Flag(map, "listOnStart", false));
  FLEUVE_ASSIGN(out.max_files, PositiveCount(map, options, "maxFilesPerTrigger"));
  const std::string* bytes = Find(map, "maxBytesPerTrigger");
  if (bytes == nullptr) {
    bytes = plan::FindOption(options, "maxBytesPerTrigger");
  }
  if (bytes != nullptr) {
    out.max_bytes = ParseBytes(*bytes);
    if (!out.max_bytes || *out.max_bytes <= 0) {
      return Invalid("maxBytesPerTrigger", *bytes, "it must be a number of bytes such as '10g'");
    }
  }
  if (!out.max_files && !out.max_bytes) {
    out.max_files = 1000;
  }
  if (const std::string* incremental = Find(map, "useIncrementalListing")) {
    const std::string lower = AsciiLower(*incremental);
    if (lower == "true") {
      LogWarn("option cloudFiles.useIncrementalListing: folders are always listed in full");
    } else if (lower != "auto" && lower != "false") {
      return Invalid("useIncrementalListing", *incremental, "it must be auto, true or false");
    }
  }
  constexpr std::int64_t kDayMs = 86400000;
  if (const std::string* age = Find(map, "maxFileAge")) {
    const auto parsed = ParseInterval(*age);
    if (!parsed || *parsed < 14 * kDayMs) {
      return Invalid("maxFileAge", *age, "it must be an interval of at least 14 days");
    }
    out.max_age_ms = *parsed;
  }
  if (const std::string* backfill = Find(map, "backfillInterval")) {
    // Every look at the folders is a full listing, which is more often than any interval.
    const auto parsed = ParseInterval(*backfill);
    if (!parsed || *parsed <= 0) {
      return Invalid("backfillInterval", *backfill, "it must be an interval such as '1 day'");
    }
  }
  FLEUVE_TRY(ParseCleaning(map, out));
  if (const std::string* column = Find(map, "rescuedDataColumn")) {
    if (plan::FindOption(out.reader, "rescuedDataColumn") == nullptr) {
      out.reader["rescuedDataColumn"] = *column;
    }
  }
  for (const char* prefix :
       {"spark.databricks.cloudFiles.schemaInference.sampleSize.", "cloudFiles.schemaInference.sampleSize."}) {
    const std::string files = files::ConfText(config, (std::string(prefix) + "numFiles").c_str(), "");
    if (!files.empty()) {
      std::from_chars(files.data(), files.data() + files.size(), out.sample_files);
    }
    const std::string size = files::ConfText(config, (std::string(prefix) + "numBytes").c_str(), "");
    if (const auto parsed = ParseBytes(size); !size.empty() && parsed) {
      out.sample_bytes = *parsed;
    }
  }
  return out;
}

}  // namespace fleuve::connectors::autoloader
