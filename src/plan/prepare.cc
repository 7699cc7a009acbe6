#include "plan/analyzer.h"

namespace fleuve::plan {

Result<PlanPtr> Prepare(const PlanPtr& plan, const AnalysisConfig& config) {
  (void)config;
  return plan;
}

Result<void> CheckStreaming(const PlanPtr& plan, const std::string& output_mode) {
  (void)plan;
  (void)output_mode;
  return {};
}

}  // namespace fleuve::plan
