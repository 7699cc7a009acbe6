// limit(n) in append mode: n rows over the whole life of the query.

#include <algorithm>
#include <cstring>

#include "columnar/ipc.h"
#include "operators/stateful_operator_internal.h"
#include "operators/stopwatch_internal.h"

namespace fleuve::operators {

namespace {

using plan::Attribute;
using plan::LogicalPlan;
using plan::PlanPtr;

constexpr std::string_view kKey = "rows";

class GlobalLimit final : public StatefulOperator {
 public:
  GlobalLimit(const LogicalPlan& node, const OperatorContext& context)
      : limit_(node.count), inputs_{NeededColumns(node.children[0], context.needed)}, node_output_(node.output) {}

  std::string name() const override { return "globalLimit"; }
  std::vector<state::SpaceSpec> spaces() const override {
    return {state::SpaceSpec{"default", false, "struct<int>", "struct<bigint>", ""}};
  }
  const std::vector<PlanPtr>& inputs() const override { return inputs_; }
  const std::vector<Attribute>& output() const override { return inputs_[0]->output; }
  PlanPtr Above(const PlanPtr& leaf) const override { return GiveOutput(leaf, output(), node_output_); }
  Result<std::shared_ptr<const plan::RowScan>> Run(OperatorBatch& batch, state::Store& store) override;
  bool NeedsBatch(std::optional<std::int64_t>, std::optional<std::int64_t>) const override { return false; }
  bool single_partition() const override { return true; }

 private:
  std::int64_t limit_ = 0;
  std::vector<PlanPtr> inputs_;
  std::vector<Attribute> node_output_;
};

Result<std::shared_ptr<const plan::RowScan>> GlobalLimit::Run(OperatorBatch& batch, state::Store& store) {
  auto out = std::make_shared<plan::RowScan>();
  std::int64_t given = 0;
  const std::string_view kept = store.Get(0, kKey);
  if (kept.size() == sizeof(given)) {
    std::memcpy(&given, kept.data(), sizeof(given));
  }
  const std::int64_t before = given;
  FLEUVE_ASSIGN(auto reader, batch.Read(0));
  for (;;) {
    FLEUVE_TRY(batch.CheckCancelled());
    // Read to the end: what is counted below the limit counts every row.
    FLEUVE_ASSIGN(const auto next, reader->Next());
    if (!next) {
      break;
    }
    const std::int64_t wanted = std::min(next->row_count(), limit_ - given);
    if (wanted > 0) {
      given += wanted;
      out->batches.push_back(wanted == next->row_count() ? *next : columnar::Slice(*next, 0, wanted));
    }
  }
  if (given > before) {
    ++batch.counts->rows_updated;
    const Stopwatch watch(&batch.counts->all_updates_ns);
    store.Put(0, kKey, std::string_view(reinterpret_cast<const char*>(&given), sizeof(given)));
  }
  return std::shared_ptr<const plan::RowScan>(std::move(out));
}

}  // namespace

Result<OperatorPtr> MakeGlobalLimit(const LogicalPlan& node, const OperatorContext& context) {
  return OperatorPtr(std::make_unique<GlobalLimit>(node, context));
}

}  // namespace fleuve::operators
