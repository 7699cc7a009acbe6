#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/bytes.h"
#include "delta/snapshot_build.h"
#include "tables/schema_internal.h"

namespace fleuve::tables {
namespace {

enum class Kind { kBool, kPositive, kInterval, kText, kInteger };

struct Property {
  std::string_view name;
  Kind kind;
};

constexpr auto kProperties = std::to_array<Property>({
    {"delta.appendOnly", Kind::kBool},
    {"delta.autoOptimize.autoCompact", Kind::kText},
    {"delta.autoOptimize.optimizeWrite", Kind::kBool},
    {"delta.castIcebergTimeType", Kind::kBool},
    {"delta.checkpoint.writeStatsAsJson", Kind::kBool},
    {"delta.checkpoint.writeStatsAsStruct", Kind::kBool},
    {"delta.checkpointInterval", Kind::kPositive},
    {"delta.checkpointPolicy", Kind::kText},
    {"delta.checkpointRetentionDuration", Kind::kInterval},
    {"delta.columnMapping.maxColumnId", Kind::kInteger},
    {"delta.columnMapping.mode", Kind::kText},
    {"delta.compatibility.symlinkFormatManifest.enabled", Kind::kBool},
    {"delta.dataSkippingNumIndexedCols", Kind::kInteger},
    {"delta.dataSkippingStatsColumns", Kind::kText},
    {"delta.deletedFileRetentionDuration", Kind::kInterval},
    {"delta.enableChangeDataFeed", Kind::kBool},
    {"delta.enableDeletionVectors", Kind::kBool},
    {"delta.enableExpiredLogCleanup", Kind::kBool},
    {"delta.enableFullRetentionRollback", Kind::kBool},
    {"delta.enableIcebergCompatV1", Kind::kBool},
    {"delta.enableIcebergCompatV2", Kind::kBool},
    {"delta.enableInCommitTimestamps", Kind::kBool},
    {"delta.enableRowTracking", Kind::kBool},
    {"delta.enableTypeWidening", Kind::kBool},
    {"delta.enableVariantShredding", Kind::kBool},
    {"delta.inCommitTimestampEnablementTimestamp", Kind::kInteger},
    {"delta.inCommitTimestampEnablementVersion", Kind::kInteger},
    {"delta.isolationLevel", Kind::kText},
    {"delta.logRetentionDuration", Kind::kInterval},
    {"delta.minReaderVersion", Kind::kInteger},
    {"delta.minWriterVersion", Kind::kInteger},
    {"delta.randomizeFilePrefixes", Kind::kBool},
    {"delta.randomPrefixLength", Kind::kPositive},
    {"delta.requireCheckpointProtectionBeforeVersion", Kind::kInteger},
    {"delta.rowTrackingSuspended", Kind::kBool},
    {"delta.sampling.enabled", Kind::kBool},
    {"delta.setTransactionRetentionDuration", Kind::kInterval},
    {"delta.universalFormat.enabledFormats", Kind::kText},
});

/// Has no condition of its own; ALTER TABLE gives it one.
Error BadValue(const std::string& key, const std::string& value, std::string_view what) {
  return Error(ErrorKind::kInvalidArgument, "",
               "The table property " + key + " must be " + std::string(what) + ", not '" + value + "'.")
      .Family(ErrorFamily::kIllegalArgument);
}

/// The log must be kept as long as the files it removes. Judged on what a statement gives, with the defaults of the
/// rest.
Result<void> CheckRetention(const delta::StringMap& given) {
  const std::string* log = delta::FindIn(given, "delta.logRetentionDuration");
  const std::string* files = delta::FindIn(given, "delta.deletedFileRetentionDuration");
  if (log == nullptr && files == nullptr) {
    return {};
  }
  const std::string log_text = log == nullptr ? "interval 30 days" : *log;
  const std::string files_text = files == nullptr ? "interval 1 week" : *files;
  if (*delta::ParseIntervalMs(log_text) >= *delta::ParseIntervalMs(files_text)) {
    return {};
  }
  return log != nullptr ? BadValue("delta.logRetentionDuration", log_text,
                                   "at least as long as delta.deletedFileRetentionDuration (" + files_text + ")")
                        : BadValue("delta.deletedFileRetentionDuration", files_text,
                                   "at most as long as delta.logRetentionDuration (" + log_text + ")");
}

}  // namespace

Result<void> CheckStatisticsColumns(const delta::Metadata& metadata, const types::Schema& schema) {
  const std::string* text = delta::FindIn(metadata.configuration, "delta.dataSkippingStatsColumns");
  if (text == nullptr) {
    return {};
  }
  for (const std::string& item : Split(*text, ',')) {
    std::string name(TrimAscii(item));
    std::erase(name, '`');
    const auto at = types::FieldIndex(schema, name);
    if (!at) {
      if (name.find('.') != std::string::npos) {
        continue;  // a nested field
      }
      return Error(ErrorKind::kInvalidArgument, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                   "The column " + name + " of delta.dataSkippingStatsColumns is not in the schema.")
          .With("columnName", name)
          .With("tableSchema", schema.SimpleString());
    }
    const types::DataType& type = schema.fields()[*at].type;
    if (!type.IsNumeric() && !type.IsDateTime() && !type.IsString() && !type.Is(types::TypeKind::kStruct)) {
      return Error(ErrorKind::kUnsupported, "DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE",
                   "Data skipping is not supported for column " + name + " of type " + type.SimpleString() + ".")
          .With("columnName", name)
          .With("columnType", type.SimpleString());
    }
  }
  return {};
}

Result<delta::StringMap> CheckProperties(const plan::Options& properties) {
  delta::StringMap out;
  for (const auto& [key, value] : properties) {
    if (!AsciiLower(key).starts_with("delta.")) {
      out.emplace_back(key, value);
      continue;
    }
    if (AsciiLower(key).starts_with("delta.feature.")) {
      out.emplace_back("delta.feature." + key.substr(14), value);
      continue;
    }
    if (AsciiLower(key).starts_with("delta.constraints.")) {
      out.emplace_back(AsciiLower(key), value);
      continue;
    }
    const auto found = std::find_if(kProperties.begin(), kProperties.end(),
                                    [&key = key](const Property& p) { return EqualsIgnoreAsciiCase(p.name, key); });
    if (found == kProperties.end()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_UNKNOWN_CONFIGURATION",
                   "The table property " + key + " is not known.")
          .With("config", key);
    }
    switch (found->kind) {
      case Kind::kBool:
        if (!EqualsIgnoreAsciiCase(value, "true") && !EqualsIgnoreAsciiCase(value, "false")) {
          return BadValue(key, value, "true or false");
        }
        break;
      case Kind::kPositive:
      case Kind::kInteger: {
        char* end = nullptr;
        const long long number = std::strtoll(value.c_str(), &end, 10);
        if (value.empty() || *end != '\0' || (found->kind == Kind::kPositive && number <= 0)) {
          return BadValue(key, value, found->kind == Kind::kPositive ? "a positive number" : "a number");
        }
        break;
      }
      case Kind::kInterval:
        if (TrimAscii(value).empty()) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_CALENDAR_INTERVAL_EMPTY",
                       "The interval of the table property " + key + " cannot be empty.");
        }
        if (!delta::ParseIntervalMs(value)) {
          const std::string lower = AsciiLower(value);
          if (lower.find("month") != std::string::npos || lower.find("year") != std::string::npos) {
            return BadValue(key, value, "an interval of a length that is certain: months and years have none");
          }
          return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_INTERVAL",
                       "The table property " + key + " must be an interval such as 'interval 7 days', not '" + value +
                           "'.")
              .With("interval", value);
        }
        break;
      case Kind::kText:
        break;
    }
    if (found->name == "delta.columnMapping.maxColumnId") {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
                   "The Delta table configuration " + std::string(found->name) + " cannot be specified by the user.")
          .With("prop", std::string(found->name));
    }
    if (found->name == "delta.columnMapping.mode" && !EqualsIgnoreAsciiCase(value, "none") &&
        !EqualsIgnoreAsciiCase(value, "name") && !EqualsIgnoreAsciiCase(value, "id")) {
      return Error(ErrorKind::kUnsupported, "",
                   "The column mapping mode `" + value + "` is not supported: it must be one of none, name, id.")
          .Family(ErrorFamily::kRuntime);
    }
    if (found->name == "delta.minReaderVersion" || found->name == "delta.minWriterVersion") {
      const int highest = found->name == "delta.minReaderVersion" ? 3 : 7;
      const int number = std::atoi(value.c_str());
      if (number < 1 || number > highest) {
        return BadValue(key, value, "a version from 1 to " + std::to_string(highest));
      }
    }
    if (found->name == "delta.dataSkippingNumIndexedCols" && std::atoll(value.c_str()) < -1) {
      return BadValue(key, value, "-1 or greater");
    }
    if (found->kind == Kind::kInterval && *delta::ParseIntervalMs(value) < 0) {
      return BadValue(key, value, "an interval of zero or more");
    }
    if (found->name == "delta.isolationLevel" && !EqualsIgnoreAsciiCase(value, "Serializable")) {
      return BadValue(key, value, "Serializable");
    }
    if (found->name == "delta.autoOptimize.autoCompact" && !EqualsIgnoreAsciiCase(value, "true") &&
        !EqualsIgnoreAsciiCase(value, "false") && !EqualsIgnoreAsciiCase(value, "auto")) {
      return BadValue(key, value, "true, false or auto");
    }
    if (found->name == "delta.universalFormat.enabledFormats" && !value.empty() &&
        !EqualsIgnoreAsciiCase(value, "iceberg") && !EqualsIgnoreAsciiCase(value, "hudi")) {
      return BadValue(key, value, "a list of iceberg and hudi");
    }
    if (found->name == "delta.checkpointPolicy" && !EqualsIgnoreAsciiCase(value, "classic") &&
        !EqualsIgnoreAsciiCase(value, "v2")) {
      return BadValue(key, value, "classic or v2");
    }
    out.emplace_back(std::string(found->name), value);
  }
  FLEUVE_TRY(CheckRetention(out));
  return out;
}

}  // namespace fleuve::tables
