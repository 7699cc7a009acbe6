#pragma once

/// \file
/// Schemas of Auto Loader streams: inference, hints, the history in `_schemas`, and new columns.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "connectors/autoloader/cloud_options_internal.h"
#include "connectors/files/file_schema.h"
#include "connectors/source.h"
#include "connectors/stream_relation.h"

namespace fleuve::connectors::autoloader {

/// One version of `_schemas`.
struct StoredSchema {
  std::int64_t version = -1;
  types::Schema data;
  types::Schema partition;
};

/// The newest version; nullopt where there is none.
Result<std::optional<StoredSchema>> ReadStoredSchema(const std::string& location);
/// Writes version `schema.version`; false where another writer was first.
Result<bool> WriteStoredSchema(const std::string& location, const StoredSchema& schema);

/// `user.born DATE, sizes.element INT, tags MAP<STRING,STRING>`.
struct Hint {
  std::vector<std::string> path;
  types::DataType type;
};
Result<std::vector<Hint>> ParseHints(const std::string& text);
/// Columns with the hints' types; hinted columns that are not there come last.
types::Schema ApplyHints(const types::Schema& schema, const std::vector<Hint>& hints);

/// `current` with the fields that only `found` has, at the end of their structs; nullopt where there are none.
/// \param names  dotted names of what was added
std::optional<types::Schema> AddNewFields(const types::Schema& current, const types::Schema& found,
                                          std::vector<std::string>* names);

/// `current` with the types of `found` where Auto Loader widens them (hinted columns stay as they are); nullopt where
/// none is wider. \param names  dotted names of what was widened.
std::optional<types::Schema> WidenFields(const types::Schema& current, const types::Schema& found,
                                         const std::vector<Hint>& hints, bool dates, std::vector<std::string>* names);

/// A `cloudFiles` stream, or the files of `read_files`, as the analyzer sees it. Immutable.
class CloudRelation final : public plan::StreamRelation {
 public:
  /// \param batch  read_files without STREAM: no schema location is needed, nothing is stored.
  static Result<std::shared_ptr<const CloudRelation>> Make(const std::vector<std::string>& paths,
                                                           const std::optional<types::Schema>& schema,
                                                           const plan::Options& options, bool defaults_of_read_files,
                                                           bool batch, const plan::AnalysisConfig& config);

  const types::Schema& schema() const override { return all_; }
  std::string name() const override { return "cloudFiles"; }
  std::string provider() const override { return "cloudFiles"; }
  const plan::Options& options() const override { return options_; }
  bool has_file_metadata() const override { return true; }

  const CloudOptions& cloud() const { return cloud_; }
  /// Absolute, may be a glob.
  const std::string& path() const { return path_; }
  const std::string& base() const { return base_; }
  const files::ListFilter& filter() const { return filter_; }
  /// The files that are there now, sorted by path.
  Result<std::vector<files::ListedFile>> List() const;
  /// A scan over files, with schema evolution and rescued data as the options say. Looks into Parquet footers.
  Result<std::shared_ptr<const plan::FileScan>> Scan(const std::vector<files::ListedFile>& files) const;
  /// What a batch reads: the scan, and a plan of their own for Parquet files some of whose columns are rescued.
  Result<BatchInput> Input(const std::vector<files::ListedFile>& files) const;

 private:
  /// A Parquet file with columns that the schema lacks or has under a type that cannot be read from it.
  struct RescuedFile {
    files::ListedFile file;
    /// As the file has them.
    std::vector<types::StructField> columns;
    /// Columns of the schema that the file only has in another case.
    std::vector<std::string> absent;
  };
  /// How files are read: which columns stand in them, which in their folders' names.
  struct PartitionedFiles {
    files::SplitSchema schema;
    /// Per file, one text per partition column.
    std::vector<std::vector<std::optional<std::string>>> values;
  };
  PartitionedFiles PartitionsOf(const std::vector<files::ListedFile>& files) const;
  Result<std::shared_ptr<const plan::FileScan>> ScanOf(const std::vector<files::ListedFile>& kept) const;
  /// True where a column in another case than the schema's is rescued rather than read.
  bool MatchesCase() const;
  /// Reads the files of one shape; the columns go as JSON into the rescued column, those of `absent` are NULL.
  Result<plan::PlanPtr> RescuePlan(const std::vector<files::ListedFile>& files,
                                   const std::vector<types::StructField>& found,
                                   const std::vector<std::string>& absent) const;
  Result<plan::ExprPtr> RescuedPart(const plan::ExprPtr& value, const types::StructField& column) const;
  Result<plan::ExprPtr> KnownPart(const plan::ExprPtr& value, const types::DataType& type) const;
  friend class EvolutionHandler;
  CloudRelation() = default;
  Result<types::Schema> Infer(const std::vector<files::ListedFile>& sample) const;
  Result<files::Partitioning> FindPartitions(const std::vector<files::ListedFile>& found,
                                             const std::optional<types::Schema>& user_schema) const;
  Result<void> Finish(const types::Schema& data, const types::Schema& partition, bool inferred);
  /// \param rescued  takes the files that need a plan of their own; null: such files are refused.
  Result<std::vector<files::ListedFile>> CheckParquet(const std::vector<files::ListedFile>& files,
                                                      std::vector<RescuedFile>* rescued) const;
  /// UNKNOWN_FIELD_EXCEPTION once the new columns are stored; nullopt where there are none.
  Result<std::optional<Error>> Evolve(const types::Schema& found, const std::string& uri) const;

  CloudOptions cloud_;
  plan::Options options_;
  plan::Options reader_;
  plan::AnalysisConfig config_;
  std::string path_;
  std::string base_;
  files::ListFilter filter_;
  std::vector<Hint> hints_;
  types::Schema data_;
  types::Schema partition_;
  types::Schema constants_;
  types::Schema all_;
  std::string rescued_column_;
  std::int64_t schema_version_ = -1;
};

}  // namespace fleuve::connectors::autoloader
