#include <array>
#include <charconv>

#include "base/bytes.h"
#include "tables/options.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {
namespace {

std::optional<std::int64_t> Number(const std::string& text) {
  std::int64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || end.ec != std::errc() || end.ptr != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<std::string> Conf(const plan::AnalysisConfig& config, const std::string& key) {
  return config.conf ? config.conf(key) : std::nullopt;
}

bool ConfFlag(const plan::AnalysisConfig& config, const std::string& key, bool fallback) {
  const auto value = Conf(config, key);
  return value ? EqualsIgnoreAsciiCase(*value, "true") : fallback;
}

Result<WriteOptions> ReadWriteOptions(const plan::Options& options, const plan::AnalysisConfig& config) {
  WriteOptions out;
  FLEUVE_ASSIGN(const auto merge, FlagOption(options, "mergeSchema"));
  out.merge_schema = merge.value_or(ConfFlag(config, "spark.databricks.delta.schema.autoMerge.enabled", false));
  FLEUVE_ASSIGN(const auto overwrite, FlagOption(options, "overwriteSchema"));
  out.overwrite_schema = overwrite.value_or(false);
  FLEUVE_ASSIGN(const auto change, FlagOption(options, "dataChange"));
  out.data_change = change.value_or(true);
  FLEUVE_TRY(FlagOption(options, "optimizeWrite"));
  if (const std::string* text = plan::FindOption(options, "replaceWhere")) {
    out.replace_where = *text;
  }
  if (const std::string* text = plan::FindOption(options, "partitionOverwriteMode")) {
    if (EqualsIgnoreAsciiCase(*text, "dynamic")) {
      out.dynamic_overwrite = true;
    } else if (EqualsIgnoreAsciiCase(*text, "static")) {
      out.dynamic_overwrite = false;
    } else {
      return IllegalOption("partitionOverwriteMode", *text, "must be 'STATIC' or 'DYNAMIC'");
    }
  }
  if (const std::string* text = plan::FindOption(options, "userMetadata")) {
    out.user_metadata = *text;
  } else {
    out.user_metadata = Conf(config, "spark.databricks.delta.commitInfo.userMetadata");
  }
  std::optional<std::string> most;
  if (const std::string* text = plan::FindOption(options, "maxRecordsPerFile")) {
    most = *text;
  } else {
    most = Conf(config, "spark.sql.files.maxRecordsPerFile");
  }
  if (most) {
    const auto number = Number(*most);
    if (!number) {
      return IllegalOption("maxRecordsPerFile", *most, "must be a number");
    }
    out.max_records_per_file = std::max<std::int64_t>(*number, 0);
  }
  if (const std::string* text = plan::FindOption(options, "compression")) {
    out.compression = AsciiLower(*text);
  } else if (const auto codec = Conf(config, "spark.sql.parquet.compression.codec")) {
    out.compression = AsciiLower(*codec);
  }
  if (out.compression == "none") {
    out.compression = "uncompressed";
  }
  return out;
}

Result<std::optional<delta::SetTransaction>> ReadAppTransaction(const plan::Options& options,
                                                                const plan::AnalysisConfig& config) {
  const std::string* app = plan::FindOption(options, "txnAppId");
  const std::string* version = plan::FindOption(options, "txnVersion");
  if ((app == nullptr) != (version == nullptr)) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
                 "Both of the options txnAppId and txnVersion must be set, or none.");
  }
  std::optional<std::string> conf_app;
  std::optional<std::string> conf_version;
  if (app == nullptr) {
    conf_app = Conf(config, "spark.databricks.delta.write.txnAppId");
    conf_version = Conf(config, "spark.databricks.delta.write.txnVersion");
    if (conf_app.has_value() != conf_version.has_value()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
                   "Both of spark.databricks.delta.write.txnAppId and spark.databricks.delta.write.txnVersion must be "
                   "set, or none.");
    }
    if (!conf_app) {
      return std::optional<delta::SetTransaction>();
    }
    app = &*conf_app;
    version = &*conf_version;
  }
  const auto number = Number(*version);
  if (!number || *number < 0) {
    return IllegalOption("txnVersion", *version, "must be a non-negative number");
  }
  return std::optional<delta::SetTransaction>(delta::SetTransaction{*app, *number, std::nullopt});
}

delta::Operation NamedOperation(const TableContext& context, std::string name) {
  delta::Operation operation;
  operation.name = std::move(name);
  operation.user_metadata = Conf(context.config, "spark.databricks.delta.commitInfo.userMetadata");
  operation.checkpoint = CheckpointShapeOf(context.config);
  return operation;
}

delta::CheckpointShape CheckpointShapeOf(const plan::AnalysisConfig& config) {
  delta::CheckpointShape shape;
  const auto rows = Conf(config, "spark.databricks.delta.checkpoint.partSize");
  shape.part_rows = rows ? Number(*rows).value_or(0) : 0;
  const auto top = Conf(config, "spark.databricks.delta.checkpointV2.topLevelFileFormat");
  shape.parquet_top = top && EqualsIgnoreAsciiCase(*top, "parquet");
  return shape;
}

delta::StringMap DefaultProperties(const plan::AnalysisConfig& config) {
  static constexpr auto kKeys = std::to_array<std::string_view>(
      {"appendOnly", "checkpointInterval", "checkpointPolicy", "columnMapping.mode", "dataSkippingNumIndexedCols",
       "deletedFileRetentionDuration", "enableChangeDataFeed", "enableDeletionVectors", "enableExpiredLogCleanup",
       "enableInCommitTimestamps", "enableRowTracking", "enableTypeWidening", "enableVariantShredding",
       "logRetentionDuration", "minReaderVersion", "minWriterVersion", "setTransactionRetentionDuration",
       "checkpoint.writeStatsAsJson", "checkpoint.writeStatsAsStruct"});
  delta::StringMap out;
  for (const std::string_view key : kKeys) {
    if (auto value = Conf(config, "spark.databricks.delta.properties.defaults." + std::string(key))) {
      out.emplace_back("delta." + std::string(key), *std::move(value));
    }
  }
  return out;
}

}  // namespace fleuve::tables
