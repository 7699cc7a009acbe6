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
    {"delta.parquet.compression.codec", Kind::kText},
    {"delta.randomizeFilePrefixes", Kind::kBool},
    {"delta.randomPrefixLength", Kind::kPositive},
    {"delta.requireCheckpointProtectionBeforeVersion", Kind::kInteger},
    {"delta.rowTrackingSuspended", Kind::kBool},
    {"delta.sampling.enabled", Kind::kBool},
    {"delta.setTransactionRetentionDuration", Kind::kInterval},
    {"delta.targetFileSize", Kind::kText},
    {"delta.tuneFileSizesForRewrites", Kind::kBool},
    {"delta.universalFormat.enabledFormats", Kind::kText},
});

Error BadValue(const std::string& key, const std::string& value, std::string_view what) {
  return Error(ErrorKind::kInvalidArgument, "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
               "The table property " + key + " must be " + std::string(what) + ", not '" + value + "'.");
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
      continue;  // a nested field, or a column that comes later
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
          return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2045",
                       "The table property " + key + " must be true or false, not '" + value + "'.")
              .Family(ErrorFamily::kIllegalArgument);
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
        if (!delta::ParseIntervalMs(value)) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_INTERVAL",
                       "The table property " + key + " must be an interval such as 'interval 7 days', not '" + value +
                           "'.")
              .With("interval", value);
        }
        break;
      case Kind::kText:
        break;
    }
    if (found->name == "delta.columnMapping.mode" && !EqualsIgnoreAsciiCase(value, "none") &&
        !EqualsIgnoreAsciiCase(value, "name") && !EqualsIgnoreAsciiCase(value, "id")) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_MODE_NOT_SUPPORTED",
                   "The column mapping mode '" + value + "' is not one of none, name, id.")
          .With("mode", value)
          .With("supportedModes", "none, id, name");
    }
    if (found->name == "delta.isolationLevel" && !EqualsIgnoreAsciiCase(value, "Serializable")) {
      return BadValue(key, value, "Serializable");
    }
    if (found->name == "delta.checkpointPolicy" && !EqualsIgnoreAsciiCase(value, "classic") &&
        !EqualsIgnoreAsciiCase(value, "v2")) {
      return BadValue(key, value, "classic or v2");
    }
    out.emplace_back(std::string(found->name), value);
  }
  return out;
}

}  // namespace fleuve::tables
