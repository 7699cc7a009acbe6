// The SQL functions read_files, cloud_files and cloud_files_state.

#include <algorithm>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "connectors/autoloader/auto_loader.h"
#include "connectors/autoloader/cloud_schema_internal.h"
#include "connectors/autoloader/ledger_internal.h"

namespace fleuve::connectors::autoloader {

namespace {

using types::DataType;
using types::Value;

/// The files of read_files as a table.
class CloudTable final : public plan::TableSource {
 public:
  CloudTable(std::shared_ptr<const CloudRelation> relation, std::shared_ptr<const plan::FileScan> scan)
      : relation_(std::move(relation)), scan_(std::move(scan)) {}
  const types::Schema& schema() const override { return relation_->schema(); }
  std::string name() const override { return "read_files(" + relation_->path() + ")"; }
  std::string provider() const override { return files::FormatName(relation_->cloud().format); }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>&,
                                                         const std::vector<plan::Attribute>&) const override {
    return scan_;
  }

 private:
  const std::shared_ptr<const CloudRelation> relation_;
  const std::shared_ptr<const plan::FileScan> scan_;
};

class StateTable final : public plan::TableSource {
 public:
  StateTable(types::Schema schema, std::shared_ptr<const plan::RowScan> rows)
      : schema_(std::move(schema)), rows_(std::move(rows)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return "cloud_files_state"; }
  std::string provider() const override { return "cloudFiles"; }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>&,
                                                         const std::vector<plan::Attribute>&) const override {
    return std::shared_ptr<const plan::FileScan>();
  }
  Result<std::shared_ptr<const plan::RowScan>> PlanRows() const override { return rows_; }

 private:
  const types::Schema schema_;
  const std::shared_ptr<const plan::RowScan> rows_;
};

/// Format by the names of the files: all must agree.
Result<std::string> DetectFormat(const std::string& path) {
  FLEUVE_ASSIGN(const std::string local, files::LocalPathOf(path));
  std::string format;
  for (const std::string& root : files::ExpandGlob(local)) {
    FLEUVE_ASSIGN(const auto listed, files::ListFiles(root, {}));
    for (const files::ListedFile& file : listed) {
      std::string name = AsciiLower(file.path.substr(file.path.rfind('/') + 1));
      for (const char* suffix : {".gz", ".bz2", ".deflate"}) {
        if (name.ends_with(suffix)) {
          name.resize(name.size() - std::string_view(suffix).size());
        }
      }
      const std::size_t dot = name.rfind('.');
      const std::string extension = dot == std::string::npos ? "" : name.substr(dot + 1);
      const std::string found = extension == "json" || extension == "jsonl" || extension == "ndjson" ? "json"
                                : extension == "csv" || extension == "tsv"                           ? "csv"
                                : extension == "parquet"                                             ? "parquet"
                                : extension == "txt" || extension == "text" || extension == "log"    ? "text"
                                : extension == "avro" || extension == "orc" || extension == "xml"    ? extension
                                                                                                     : "";
      if (found.empty() || (!format.empty() && found != format)) {
        return Error(ErrorKind::kInvalidArgument, "CF_MISSING_FORMAT",
                     "The format of the files in " + path +
                         " cannot be told from their names. Give it with the argument format.");
      }
      format = found;
    }
  }
  if (format.empty()) {
    return Error(ErrorKind::kInvalidArgument, "CF_EMPTY_DIR_FOR_SCHEMA_INFERENCE",
                 "Cannot infer schema when the input path " + path + " is empty.");
  }
  return format;
}

struct Arguments {
  plan::Options options;
  std::optional<types::Schema> schema;
};

Result<Arguments> ReadArguments(const std::string& path, const plan::Options& arguments) {
  Arguments out;
  for (const auto& [name, value] : arguments) {
    const std::string lower = AsciiLower(name);
    if (lower == "schema") {
      FLEUVE_ASSIGN(out.schema, DataType::FromDdl(value));
      if (!out.schema->Is(types::TypeKind::kStruct)) {
        return Error(ErrorKind::kInvalidArgument, "CF_INVALID_OPTION_VALUE",
                     "The argument schema of read_files must be a list of columns.");
      }
    } else if (lower == "filenamepattern") {
      out.options["pathGlobFilter"] = value;
    } else if (lower.starts_with("cloudfiles.")) {
      out.options[name] = value;
    } else if (const auto prefixed = CloudOptionName(name)) {
      out.options[*prefixed] = value;
    } else {
      out.options[name] = value;
    }
  }
  if (plan::FindOption(out.options, "cloudFiles.format") == nullptr) {
    FLEUVE_ASSIGN(out.options["cloudFiles.format"], DetectFormat(path));
  }
  return out;
}

}  // namespace

Result<std::shared_ptr<const plan::TableSource>> ReadFilesTable(const std::string& path, const plan::Options& arguments,
                                                                const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(const Arguments read, ReadArguments(path, arguments));
  FLEUVE_ASSIGN(auto relation, CloudRelation::Make({path}, read.schema, read.options, true, true, config));
  FLEUVE_ASSIGN(const auto listed, relation->List());
  FLEUVE_ASSIGN(const auto scan, relation->Scan(listed));
  // A batch has no schema to evolve: fields that came later than the sample are rescued.
  auto batch_scan = std::make_shared<plan::FileScan>(*scan);
  batch_scan->unknown_fields = nullptr;
  return std::shared_ptr<const plan::TableSource>(
      std::make_shared<CloudTable>(std::move(relation), std::move(batch_scan)));
}

Result<std::shared_ptr<const plan::StreamRelation>> ReadFilesStream(const std::string& path,
                                                                    const plan::Options& arguments,
                                                                    const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(const Arguments read, ReadArguments(path, arguments));
  FLEUVE_ASSIGN(auto relation, CloudRelation::Make({path}, read.schema, read.options, true, false, config));
  return std::shared_ptr<const plan::StreamRelation>(std::move(relation));
}

Result<std::shared_ptr<const plan::StreamRelation>> CloudFilesStream(const std::string& path, const std::string& format,
                                                                     const plan::Options& options,
                                                                     const plan::AnalysisConfig& config) {
  plan::Options all;
  std::optional<types::Schema> schema;
  for (const auto& [name, value] : options) {
    if (EqualsIgnoreAsciiCase(name, "schema")) {
      FLEUVE_ASSIGN(schema, DataType::FromDdl(value));
    } else {
      all[name] = value;
    }
  }
  all["cloudFiles.format"] = format;
  FLEUVE_ASSIGN(auto relation, CloudRelation::Make({path}, schema, all, false, false, config));
  return std::shared_ptr<const plan::StreamRelation>(std::move(relation));
}

Result<std::shared_ptr<const plan::TableSource>> CloudFilesState(const std::string& checkpoint) {
  FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(checkpoint));
  const types::Schema schema = DataType::Struct({{"path", DataType::String(), false, {}},
                                                 {"size", DataType::Long(), false, {}},
                                                 {"create_time", DataType::Timestamp(), false, {}},
                                                 {"discovery_time", DataType::Timestamp(), false, {}},
                                                 {"processed_time", DataType::Timestamp(), true, {}},
                                                 {"commit_time", DataType::Timestamp(), true, {}},
                                                 {"archive_time", DataType::Timestamp(), true, {}},
                                                 {"archive_mode", DataType::String(), true, {}},
                                                 {"move_location", DataType::String(), true, {}},
                                                 {"source_id", DataType::String(), true, {}},
                                                 {"flow_name", DataType::String(), true, {}},
                                                 {"ingestion_state", DataType::String(), true, {}}});
  auto sources = location.store->List(location.path + "/sources");
  if (!sources.ok()) {
    if (sources.error().kind() == ErrorKind::kNotFound) {
      return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND",
                   "Path does not exist: " + location.path + "/sources: it is no checkpoint of an Auto Loader stream.");
    }
    return std::move(sources).error();
  }
  std::vector<Value::List> rows;
  for (const storage::ObjectMeta& source : *sources) {
    const std::string id = source.path.substr(source.path.rfind('/') + 1);
    if (id.empty() || id.find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    Ledger ledger(location.store, source.path);
    FLEUVE_ASSIGN(const bool started, ledger.Open());
    if (!started) {
      continue;
    }
    FLEUVE_ASSIGN(const auto times, CommitTimes(location, std::stoi(id)));
    FLEUVE_ASSIGN(const auto entries, ledger.Range(0, ledger.last()));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const LedgerEntry& entry = entries[i];
      const auto sequence = static_cast<std::int64_t>(i + 1);
      Value commit;
      for (const auto& [end, time_ms] : times) {
        if (sequence <= end) {
          commit = Value(time_ms * 1000);
          break;
        }
      }
      rows.push_back({Value(storage::ToFileUri(entry.path)), Value(entry.size_bytes),
                      Value(entry.modified_nanos / 1000), Value(entry.discovered_ms * 1000), commit, commit, Value(),
                      Value(), Value(), Value(id), Value(), Value(commit.is_null() ? "DISCOVERED" : "INGESTED")});
    }
  }
  auto scan = std::make_shared<plan::RowScan>();
  FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(schema, rows));
  scan->batches.push_back(std::move(batch));
  return std::shared_ptr<const plan::TableSource>(std::make_shared<StateTable>(schema, std::move(scan)));
}

Error BatchReadRefused() {
  return Error(ErrorKind::kUnsupported, "CF_BATCH_NOT_SUPPORTED",
               "The cloudFiles source only supports streaming. To read the files as a batch use the SQL function "
               "read_files, or spark.read with the files' own format.");
}

}  // namespace fleuve::connectors::autoloader
