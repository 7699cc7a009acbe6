#include <cmath>
#include <cstring>

#include "duckdb/parser/parsed_data/create_scalar_function_info.hpp"
#include "engine/leaf_functions_internal.h"
#include "engine/raise_internal.h"
#include "engine/xor_shift_random.h"

namespace fleuve::engine {

using duckdb::idx_t;
using duckdb::LogicalType;

namespace {

/// One generator per executor; rows come in order, so it stands before the next row.
struct SamplerState : duckdb::FunctionLocalState {
  explicit SamplerState(std::int64_t seed) : random(seed) {}
  XorShiftRandom random;
  std::int64_t next_row = 0;
};

std::int64_t ConstantSeed(const duckdb::BoundFunctionExpression& expr) {
  return expr.children.back()->Cast<duckdb::BoundConstantExpression>().value.GetValue<std::int64_t>();
}

duckdb::unique_ptr<duckdb::FunctionLocalState> InitBernoulli(duckdb::ExpressionState&,
                                                             const duckdb::BoundFunctionExpression& expr,
                                                             duckdb::FunctionData*) {
  return duckdb::make_uniq<SamplerState>(ConstantSeed(expr));
}

duckdb::unique_ptr<duckdb::FunctionLocalState> InitPoisson(duckdb::ExpressionState&,
                                                           const duckdb::BoundFunctionExpression& expr,
                                                           duckdb::FunctionData*) {
  return duckdb::make_uniq<SamplerState>(~ConstantSeed(expr));
}

void CheckOrder(SamplerState& state, std::int64_t row) {
  if (row != state.next_row) {
    RaiseError(Error::Internal("rows reached a sampler out of order"));
  }
  state.next_row++;
}

void Bernoulli(duckdb::DataChunk& args, duckdb::ExpressionState& state, duckdb::Vector& result) {
  auto& sampler = duckdb::ExecuteFunctionState::GetFunctionState(state)->Cast<SamplerState>();
  args.Flatten();
  const auto* rows = duckdb::FlatVector::GetData<std::int64_t>(args.data[0]);
  const auto* lower = duckdb::FlatVector::GetData<double>(args.data[1]);
  const auto* upper = duckdb::FlatVector::GetData<double>(args.data[2]);
  auto* kept = duckdb::FlatVector::GetData<bool>(result);
  for (idx_t i = 0; i < args.size(); i++) {
    CheckOrder(sampler, rows[i]);
    if (upper[i] - lower[i] <= 0) {
      kept[i] = false;
      continue;
    }
    const double x = sampler.random.NextDouble();
    kept[i] = x >= lower[i] && x < upper[i];
  }
}

/// A list with one element per copy of the row.
void Poisson(duckdb::DataChunk& args, duckdb::ExpressionState& state, duckdb::Vector& result) {
  auto& sampler = duckdb::ExecuteFunctionState::GetFunctionState(state)->Cast<SamplerState>();
  args.Flatten();
  const auto* rows = duckdb::FlatVector::GetData<std::int64_t>(args.data[0]);
  const auto* mean = duckdb::FlatVector::GetData<double>(args.data[1]);
  auto* lists = duckdb::FlatVector::GetData<duckdb::list_entry_t>(result);
  idx_t total = 0;
  for (idx_t i = 0; i < args.size(); i++) {
    CheckOrder(sampler, rows[i]);
    idx_t copies = 0;
    if (mean[i] > 0) {
      const double limit = std::exp(-mean[i]);
      double product = sampler.random.NextDouble();
      while (product > limit) {
        copies++;
        product *= sampler.random.NextDouble();
      }
    }
    lists[i] = duckdb::list_entry_t(total, copies);
    total += copies;
  }
  duckdb::ListVector::Reserve(result, total);
  duckdb::ListVector::SetListSize(result, total);
  std::memset(duckdb::FlatVector::GetData(duckdb::ListVector::GetEntry(result)), 0, total);
}

void Install(duckdb::DatabaseInstance& db, duckdb::ScalarFunction function) {
  function.SetVolatile();
  function.SetNullHandling(duckdb::FunctionNullHandling::SPECIAL_HANDLING);
  duckdb::CreateScalarFunctionInfo info(std::move(function));
  info.internal = true;
  duckdb::Catalog::GetSystemCatalog(db).CreateFunction(duckdb::CatalogTransaction::GetSystemTransaction(db), info);
}

}  // namespace

void InstallSampleFunctions(duckdb::DatabaseInstance& db) {
  duckdb::ScalarFunction bernoulli("fleuve_bernoulli_sample",
                                   {LogicalType::BIGINT, LogicalType::DOUBLE, LogicalType::DOUBLE, LogicalType::BIGINT},
                                   LogicalType::BOOLEAN, Bernoulli);
  bernoulli.init_local_state = InitBernoulli;
  Install(db, std::move(bernoulli));
  duckdb::ScalarFunction poisson("fleuve_poisson_sample",
                                 {LogicalType::BIGINT, LogicalType::DOUBLE, LogicalType::BIGINT},
                                 LogicalType::LIST(LogicalType::TINYINT), Poisson);
  poisson.init_local_state = InitPoisson;
  Install(db, std::move(poisson));
}

}  // namespace fleuve::engine
