#include <charconv>

#include "duckdb/parser/expression/columnref_expression.hpp"
#include "duckdb/parser/parsed_data/create_scalar_function_info.hpp"
#include "duckdb/planner/binder.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/expression_binder.hpp"
#include "engine/projection_chain_internal.h"
#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"

namespace fleuve::engine {
namespace {

using duckdb::LogicalType;

/// Binds a step: `v<n>` is column n of the chain's chunk, as far as that is known by now.
class StepBinder : public duckdb::ExpressionBinder {
 public:
  StepBinder(duckdb::Binder& binder, duckdb::ClientContext& context, const duckdb::vector<LogicalType>& columns)
      : ExpressionBinder(binder, context), columns_(columns) {}

 protected:
  duckdb::BindResult BindExpression(duckdb::unique_ptr<duckdb::ParsedExpression>& expr, duckdb::idx_t depth,
                                    bool root_expression) override {
    if (expr->GetExpressionClass() != duckdb::ExpressionClass::COLUMN_REF) {
      return ExpressionBinder::BindExpression(expr, depth, root_expression);
    }
    const std::string& name = expr->Cast<duckdb::ColumnRefExpression>().GetColumnName();
    std::size_t number = 0;
    const auto parsed = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (name.front() != 'v' || parsed.ec != std::errc() || number >= columns_.size()) {
      RaiseError(Error::Internal("a chain of projections refers to " + name + ", which it does not hold"));
    }
    return duckdb::BindResult(
        duckdb::make_uniq<duckdb::BoundReferenceExpression>(columns_[number], duckdb::idx_t(number)));
  }

 private:
  const duckdb::vector<LogicalType>& columns_;
};

/// A bound chain; never changed once it is bound.
struct Chain {
  /// Inputs, then steps.
  duckdb::vector<LogicalType> columns;
  std::size_t inputs = 0;
  duckdb::vector<duckdb::unique_ptr<duckdb::Expression>> steps;
  std::vector<std::size_t> results;
};

struct ChainData final : duckdb::FunctionData {
  explicit ChainData(std::shared_ptr<const Chain> bound) : chain(std::move(bound)) {}
  duckdb::unique_ptr<FunctionData> Copy() const override { return duckdb::make_uniq<ChainData>(chain); }
  bool Equals(const FunctionData& other) const override { return other.Cast<ChainData>().chain == chain; }

  std::shared_ptr<const Chain> chain;
};

/// One thread's chunk; its steps own their vectors, its inputs are those of the call.
struct ChainState final : duckdb::FunctionLocalState {
  ChainState(duckdb::ClientContext& context, std::shared_ptr<const Chain> bound)
      : chain(std::move(bound)), executor(context, chain->steps) {
    duckdb::vector<bool> owned(chain->columns.size(), true);
    std::fill_n(owned.begin(), chain->inputs, false);
    chunk.Initialize(context, chain->columns, owned);
    executor.SetChunk(chunk);
  }

  std::shared_ptr<const Chain> chain;
  duckdb::ExpressionExecutor executor;
  duckdb::DataChunk chunk;
};

void RunChain(duckdb::DataChunk& args, duckdb::ExpressionState& state, duckdb::Vector& result) {
  auto& local = duckdb::ExecuteFunctionState::GetFunctionState(state)->Cast<ChainState>();
  const Chain& chain = *local.chain;
  local.chunk.Reset();
  for (std::size_t i = 0; i < chain.inputs; i++) {
    local.chunk.data[i].Reference(args.data[i]);
  }
  local.chunk.SetCardinality(args.size());
  for (std::size_t i = 0; i < chain.steps.size(); i++) {
    local.executor.ExecuteExpression(i, local.chunk.data[chain.inputs + i]);
  }
  result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
  auto& fields = duckdb::StructVector::GetEntries(result);
  for (std::size_t i = 0; i < chain.results.size(); i++) {
    fields[i]->Reference(local.chunk.data[chain.inputs + chain.results[i]]);
  }
}

duckdb::unique_ptr<duckdb::FunctionLocalState> InitChain(duckdb::ExpressionState& state,
                                                         const duckdb::BoundFunctionExpression&,
                                                         duckdb::FunctionData* data) {
  return duckdb::make_uniq<ChainState>(state.GetContext(), data->Cast<ChainData>().chain);
}

duckdb::unique_ptr<duckdb::FunctionData> BindChain(duckdb::ClientContext& context, duckdb::ScalarFunction& bound,
                                                   duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& arguments) {
  const auto& number = arguments.back()->Cast<duckdb::BoundConstantExpression>();
  const ParsedChain& parsed = RunState::Of(context).ChainAt(number.value.GetValue<std::int64_t>());
  arguments.pop_back();
  auto chain = std::make_shared<Chain>();
  chain->inputs = parsed.inputs;
  chain->results = parsed.results;
  for (const auto& argument : arguments) {
    chain->columns.push_back(argument->return_type);
  }
  if (chain->columns.size() != chain->inputs) {
    RaiseError(Error::Internal("a chain of projections got a wrong number of inputs"));
  }
  auto binder = duckdb::Binder::CreateBinder(context);
  for (const auto& step : parsed.steps) {
    StepBinder step_binder(*binder, context, chain->columns);
    auto body = step.body->Copy();
    auto expr = step_binder.Bind(body);
    if (expr->return_type != step.type) {
      RaiseError(Error::Internal("expression " + expr->ToString() + " has the type " + expr->return_type.ToString() +
                                 " where the plan says " + step.type.ToString()));
    }
    chain->columns.push_back(step.type);
    chain->steps.push_back(std::move(expr));
  }
  duckdb::child_list_t<LogicalType> fields;
  for (std::size_t i = 0; i < chain->results.size(); i++) {
    fields.emplace_back("f" + std::to_string(i), parsed.steps[chain->results[i]].type);
  }
  bound.arguments.assign(chain->columns.begin(), chain->columns.begin() + static_cast<std::ptrdiff_t>(chain->inputs));
  bound.varargs = LogicalType(duckdb::LogicalTypeId::INVALID);
  bound.return_type = LogicalType::STRUCT(std::move(fields));
  return duckdb::make_uniq<ChainData>(std::move(chain));
}

}  // namespace

void InstallProjectionChain(duckdb::DatabaseInstance& db) {
  duckdb::ScalarFunction function(kChainFunction, {}, LogicalType::ANY, RunChain, BindChain);
  function.varargs = LogicalType::ANY;
  function.init_local_state = InitChain;
  function.SetNullHandling(duckdb::FunctionNullHandling::SPECIAL_HANDLING);
  function.SetFallible();
  // Or filters that move below the projection would take a whole chain each with them.
  function.SetVolatile();
  duckdb::CreateScalarFunctionInfo info(function);
  info.internal = true;
  duckdb::Catalog::GetSystemCatalog(db).CreateFunction(duckdb::CatalogTransaction::GetSystemTransaction(db), info);
}

}  // namespace fleuve::engine
