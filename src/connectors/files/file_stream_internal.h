#pragma once

/// \file
/// The parts of streams of files.

#include <memory>
#include <string>
#include <vector>

#include "connectors/files/file_schema.h"
#include "connectors/files/file_stream.h"

namespace fleuve::connectors::files {

/// A stream of files as the analyzer sees it. Immutable.
class FileRelation final : public plan::StreamRelation {
 public:
  static Result<std::shared_ptr<const FileRelation>> Make(const StreamRequest& request,
                                                          const plan::AnalysisConfig& config);

  const types::Schema& schema() const override { return schema_.all; }
  std::string name() const override { return provider_; }
  std::string provider() const override { return provider_; }
  const plan::Options& options() const override { return options_; }
  bool has_file_metadata() const override { return true; }

  /// Absolute, may be a glob.
  const std::string& path() const { return path_; }
  const plan::Options& reader_options() const { return reader_options_; }
  /// The files that are there now, as Spark lists them.
  Result<std::vector<ListedFile>> List() const;
  Result<std::shared_ptr<const plan::FileScan>> Scan(const std::vector<ListedFile>& files,
                                                     const std::string& session_zone) const;

 private:
  FileRelation() = default;

  plan::FileFormat format_ = plan::FileFormat::kJson;
  std::string provider_;
  plan::Options options_;
  plan::Options reader_options_;
  std::string path_;
  FindOptions find_;
  SplitSchema schema_;
  bool case_sensitive_ = false;
};

std::shared_ptr<SinkProvider> MakeFileSinkProvider();

}  // namespace fleuve::connectors::files
