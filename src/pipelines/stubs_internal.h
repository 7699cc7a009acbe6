#pragma once

/// \file
/// What stands for a table of the graph while the graph is analyzed. Private to this room.

#include <memory>
#include <string>

#include "plan/scan.h"

namespace fleuve::pipelines {

/// Columns without rows.
class StubTable final : public plan::TableSource {
 public:
  StubTable(std::string name, types::Schema schema) : name_(std::move(name)), schema_(std::move(schema)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return "delta"; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>& filters,
                                                         const std::vector<plan::Attribute>& columns) const override {
    (void)filters;
    (void)columns;
    return Error::Internal("a dataset of a graph that is only analyzed has no files");
  }
  Result<std::shared_ptr<const plan::RowScan>> PlanRows() const override {
    return std::make_shared<const plan::RowScan>();
  }

 private:
  const std::string name_;
  const types::Schema schema_;
};

/// Columns of a stream that is never started.
class StubStream final : public plan::StreamRelation {
 public:
  StubStream(std::string name, types::Schema schema, plan::Options options)
      : name_(std::move(name)), schema_(std::move(schema)), options_(std::move(options)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return "delta"; }
  const plan::Options& options() const override { return options_; }
  bool has_file_metadata() const override { return true; }

 private:
  const std::string name_;
  const types::Schema schema_;
  const plan::Options options_;
};

}  // namespace fleuve::pipelines
