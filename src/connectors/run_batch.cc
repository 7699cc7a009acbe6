#include "connectors/run_batch.h"

#include "engine/engine.h"
#include "plan/analyzer.h"

namespace fleuve::connectors {

Result<plan::PlanPtr> PrepareBatch(const SinkBatch& batch, const plan::PlanPtr& plan) {
  FLEUVE_ASSIGN(plan::PlanPtr prepared, plan::Prepare(plan, batch.config));
  if (batch.on_prepared) {
    batch.on_prepared(prepared);
  }
  return prepared;
}

Result<std::unique_ptr<columnar::BatchReader>> RunBatch(const SinkBatch& batch, const plan::PlanPtr& plan) {
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, PrepareBatch(batch, plan));
  engine::ExecuteOptions options;
  options.token = batch.token;
  options.observer = batch.observer;
  return batch.engine->Execute(prepared, options);
}

}  // namespace fleuve::connectors
