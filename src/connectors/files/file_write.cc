#include "connectors/files/file_write.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "base/bytes.h"
#include "base/ids.h"
#include "connectors/files/file_schema.h"
#include "plan/analyzer.h"
#include "plan/write_tasks.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

namespace {

namespace fs = std::filesystem;
using plan::FileFormat;

Error IoError(const std::string& what, const std::error_code& code) {
  return Error(code == std::errc::no_space_on_device ? ErrorKind::kResourceExhausted : ErrorKind::kTransient,
               "TASK_WRITE_FAILED", what + ": " + code.message());
}

Result<void> RemoveData(const fs::path& folder) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder, code)) {
    std::error_code removed;
    if (entry.path().filename().string().starts_with("_temporary")) {
      continue;
    }
    fs::remove_all(entry.path(), removed);
    if (removed) {
      return IoError("cannot remove " + entry.path().string(), removed);
    }
  }
  return {};
}

bool ReadsFrom(const plan::PlanPtr& plan, const std::string& folder) {
  bool reads = false;
  plan::VisitPlan(plan, [&](const plan::LogicalPlan& node) {
    std::shared_ptr<const plan::FileScan> scan = node.scan;
    if (node.kind == plan::PlanKind::kTable && node.table != nullptr && IsFileFormat(node.table->provider())) {
      auto planned = node.table->PlanScan({}, {});
      if (planned.ok()) {
        scan = *planned;
      }
    }
    if (scan != nullptr) {
      for (const plan::ScanFile& file : scan->files) {
        reads = reads || file.path.starts_with(folder + "/");
      }
    }
  });
  return reads;
}

}  // namespace

Result<engine::WriteSpec> MakeWriteSpec(const FileWriteRequest& request, const types::Schema& schema,
                                        const plan::AnalysisConfig& config) {
  engine::WriteSpec spec;
  FLEUVE_ASSIGN(spec.format, ParseFormat(request.format));
  if (!ContainerOf(request.format).empty()) {
    return Error::Unsupported("writing files of the format " + ContainerOf(request.format));
  }
  if (spec.format == FileFormat::kBinaryFile) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.WRITE_FOR_BINARY_SOURCE",
                 "The feature is not supported: Write for the binary file data source.")
        .Family(ErrorFamily::kUnsupportedOperation);
  }
  FLEUVE_ASSIGN(spec.folder, LocalPathOf(request.path));
  spec.options = request.options;
  spec.session_zone = config.session_zone;
  spec.partition_columns = {};
  for (const std::string& column : request.partition_by) {
    const auto at = types::FieldIndex(schema, column, config.case_sensitive);
    if (!at) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1155",
                   "Partition column `" + column + "` not found in schema " + schema.SimpleString())
          .Family(ErrorFamily::kAnalysis);
    }
    if (schema.fields()[*at].type.IsNested() || schema.fields()[*at].type.Is(types::TypeKind::kVariant)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PARTITION_COLUMN_DATA_TYPE",
                   "Cannot use " + schema.fields()[*at].type.SimpleString() + " for partition column.");
    }
    if (std::ranges::find(spec.partition_columns, schema.fields()[*at].name) != spec.partition_columns.end()) {
      return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                   "The column `" + AsciiLower(column) +
                       "` already exists. Choose another name or rename the existing column.")
          .With("columnName", "`" + AsciiLower(column) + "`");
    }
    spec.partition_columns.push_back(schema.fields()[*at].name);
  }
  if (!spec.partition_columns.empty() && spec.partition_columns.size() == schema.fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "ALL_PARTITION_COLUMNS_NOT_ALLOWED",
                 "Cannot use all columns for partition columns.");
  }
  std::vector<types::StructField> data;
  std::vector<types::StructField> partition;
  for (const auto& field : schema.fields()) {
    const bool is_partition = std::find(spec.partition_columns.begin(), spec.partition_columns.end(), field.name) !=
                              spec.partition_columns.end();
    (is_partition ? partition : data).push_back(field);
  }
  if (data.empty() && spec.format != FileFormat::kText) {
    return Error(ErrorKind::kInvalidArgument, "EMPTY_SCHEMA_NOT_SUPPORTED_FOR_DATASOURCE",
                 std::string("The ") + FormatName(spec.format) +
                     " datasource does not support writing empty or nested empty schemas.");
  }
  FLEUVE_TRY(MakeSchema(spec.format, types::DataType::Struct(std::move(data)),
                        types::DataType::Struct(std::move(partition)), config.case_sensitive));
  const std::string* compression = plan::FindOption(request.options, "compression");
  if (spec.format == FileFormat::kParquet) {
    if (compression == nullptr) {
      compression = plan::FindOption(request.options, "parquet.compression");
    }
    spec.compression = AsciiLower(
        compression != nullptr ? *compression : ConfText(config, "spark.sql.parquet.compression.codec", "snappy"));
    if (spec.compression == "none") {
      spec.compression = "uncompressed";
    }
    static const std::set<std::string> kCodecs = {"uncompressed", "snappy", "gzip", "zstd", "lz4", "lz4_raw", "brotli"};
    if (!kCodecs.contains(spec.compression)) {
      return Error(ErrorKind::kInvalidArgument, "CODEC_NOT_AVAILABLE.WITH_AVAILABLE_CODECS_SUGGESTION",
                   "The codec " + spec.compression +
                       " is not available. Available codecs are brotli, uncompressed, lz4, gzip, none, snappy, zstd.");
    }
  } else {
    spec.compression = compression != nullptr ? *compression : "none";
    FLEUVE_TRY(engine::CheckWriteOptions(spec.format, request.options, spec.compression, config.session_zone));
  }
  std::string rows = ConfText(config, "spark.sql.files.maxRecordsPerFile", "0");
  if (const std::string* option = plan::FindOption(request.options, "maxRecordsPerFile")) {
    rows = *option;
  }
  char* end = nullptr;
  spec.max_file_rows = std::max<long long>(0, std::strtoll(rows.c_str(), &end, 10));
  if (rows.empty() || *end != '\0') {
    return Error(ErrorKind::kInvalidArgument, "INVALID_OPTION_VALUE",
                 "Invalid value '" + rows + "' for option 'maxRecordsPerFile': must be an integer.");
  }
  spec.statistics_columns = 0;
  spec.write_empty_file = spec.partition_columns.empty();
  return spec;
}

Result<engine::WriteResult> WriteFolder(engine::Engine& engine, const plan::PlanPtr& plan,
                                        const FileWriteRequest& request, const plan::AnalysisConfig& config,
                                        const engine::ExecuteOptions& execute) {
  FLEUVE_ASSIGN(engine::WriteSpec spec, MakeWriteSpec(request, plan::SchemaOf(*plan), config));
  const fs::path target = spec.folder;
  std::error_code code;
  const bool exists = fs::exists(target, code);
  if (exists && request.mode == SaveMode::kErrorIfExists) {
    return Error(ErrorKind::kAlreadyExists, "PATH_ALREADY_EXISTS",
                 "Path " + storage::ToFileUri(spec.folder) +
                     " already exists. Set mode as \"overwrite\" to overwrite the existing path.")
        .With("outputPath", storage::ToFileUri(spec.folder));
  }
  if (exists && request.mode == SaveMode::kIgnore) {
    return engine::WriteResult{};
  }
  if (exists && request.mode == SaveMode::kOverwrite && ReadsFrom(plan, spec.folder)) {
    return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_OVERWRITE.PATH",
                 "Can't overwrite the target that is also being read from. The target path is " +
                     storage::ToFileUri(spec.folder) + ".");
  }
  const std::string* overwrite = plan::FindOption(request.options, "partitionOverwriteMode");
  const std::string overwrite_mode = AsciiLower(
      overwrite != nullptr ? *overwrite : ConfText(config, "spark.sql.sources.partitionOverwriteMode", "static"));
  if (overwrite_mode != "static" && overwrite_mode != "dynamic") {
    return Error(
        ErrorKind::kInvalidArgument, "INVALID_OPTION_VALUE",
        "Invalid value '" + overwrite_mode + "' for option 'partitionOverwriteMode': must be static or dynamic.");
  }
  FLEUVE_ASSIGN(const plan::TaskedPlan tasked, plan::SpreadOverTasks(plan, config));
  spec.by_task = tasked.tasks > 1;
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(tasked.plan, config));
  const fs::path staging = target / ("_temporary-" + NewUuid());
  fs::create_directories(staging, code);
  if (code) {
    return IoError("cannot make the folder " + staging.string(), code);
  }
  spec.folder = staging.string();
  auto result = engine.WriteFiles(prepared, spec, execute);
  if (!result.ok()) {
    fs::remove_all(staging, code);
    if (!exists) {
      fs::remove(target, code);
    }
    return result;
  }
  if (exists && request.mode == SaveMode::kOverwrite) {
    if (overwrite_mode == "dynamic" && !spec.partition_columns.empty()) {
      std::set<std::string> folders;
      for (const engine::WrittenFile& file : result->files) {
        folders.insert(file.relative_path.substr(0, file.relative_path.rfind('/')));
      }
      for (const std::string& folder : folders) {
        FLEUVE_TRY(RemoveData(target / folder));
      }
    } else {
      for (const auto& entry : fs::directory_iterator(target, code)) {
        if (entry.path() == staging) {
          continue;
        }
        std::error_code removed;
        fs::remove_all(entry.path(), removed);
        if (removed) {
          return IoError("cannot remove " + entry.path().string(), removed);
        }
      }
    }
  }
  for (const engine::WrittenFile& file : result->files) {
    const fs::path to = target / file.relative_path;
    fs::create_directories(to.parent_path(), code);
    fs::rename(staging / file.relative_path, to, code);
    if (code) {
      return IoError("cannot move a written file to " + to.string(), code);
    }
  }
  fs::remove_all(staging, code);
  std::ofstream(target / "_SUCCESS").flush();
  return result;
}

}  // namespace fleuve::connectors::files
