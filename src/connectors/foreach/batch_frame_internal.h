#pragma once

/// \file
/// The rows of one micro-batch as user code sees them: computed at the first use, then kept.

#include <memory>
#include <mutex>
#include <string>

#include "columnar/record_batch.h"
#include "connectors/sink.h"
#include "plan/scan.h"

namespace fleuve::connectors::foreach {

/// A table whose rows are those of one batch's plan. The plan runs once, when the first reader comes: every use sees
/// the same rows, whatever the sources or a random function do meanwhile, and progress counts its input once. Small
/// batches are kept in memory, larger ones in files that go with the table. Threads: any.
class BatchFrame final : public plan::TableSource {
 public:
  /// \param spill_folder  not there yet; made for a large batch.
  BatchFrame(const SinkBatch& batch, std::string name, std::string spill_folder);
  ~BatchFrame() override;

  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return "micro-batch"; }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>& filters,
                                                         const std::vector<plan::Attribute>& columns) const override;
  Result<std::shared_ptr<const plan::RowScan>> PlanRows() const override;

  /// All rows, computed now if nobody did.
  Result<std::unique_ptr<columnar::BatchReader>> Open() const;
  /// Adds what the run counted to `observer`; the plan that ran, or null where nobody asked for rows.
  plan::PlanPtr Report(engine::RunObserver& observer) const;

 private:
  Result<void> Compute() const;
  Result<void> Spill(const plan::PlanPtr& prepared, const EngineLoan& loan) const;

  const plan::PlanPtr plan_;
  const plan::AnalysisConfig config_;
  const std::function<Result<EngineLoan>(const CancellationTokenPtr&)> borrow_engine_;
  const CancellationTokenPtr token_;
  const types::Schema schema_;
  const std::string name_;
  const std::string spill_folder_;

  mutable std::mutex mutex_;
  mutable plan::PlanPtr prepared_;
  mutable std::shared_ptr<engine::RunObserver> observer_;
  mutable std::shared_ptr<const plan::RowScan> rows_;
  mutable std::shared_ptr<const plan::FileScan> files_;
};

}  // namespace fleuve::connectors::foreach
