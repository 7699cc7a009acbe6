#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"

namespace fleuve::engine {

RunState& RunState::Of(duckdb::ClientContext& context) {
  auto state = context.registered_state->Get<RunState>(kName);
  if (!state) {
    RaiseError(Error::Internal("a function of the engine was called outside of a run"));
  }
  return *state;
}

std::int64_t RunState::AddLeaf(plan::PlanPtr node, bool counted) {
  auto leaf = std::make_shared<Leaf>();
  leaf->node = std::move(node);
  leaf->counted = counted;
  leaves_.push_back(std::move(leaf));
  return static_cast<std::int64_t>(leaves_.size()) - 1;
}

const std::shared_ptr<Leaf>& RunState::LeafAt(std::int64_t number) const {
  return leaves_.at(static_cast<std::size_t>(number));
}

std::int64_t RunState::AddCall(Call call) {
  calls_.push_back(std::move(call));
  return static_cast<std::int64_t>(calls_.size()) - 1;
}

const Call& RunState::CallAt(std::int64_t number) const { return calls_.at(static_cast<std::size_t>(number)); }

std::int64_t RunState::AddMetrics(MetricsRows rows) {
  metrics_.push_back(std::make_unique<MetricsRows>(std::move(rows)));
  return static_cast<std::int64_t>(metrics_.size()) - 1;
}

void RunState::CheckCancelled() const {
  if (token != nullptr && token->cancelled()) {
    RaiseError(Error::Cancelled());
  }
}

}  // namespace fleuve::engine
