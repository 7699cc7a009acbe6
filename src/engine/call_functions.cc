#include <atomic>
#include <optional>

#include "duckdb/parser/expression/columnref_expression.hpp"
#include "duckdb/parser/parsed_data/create_aggregate_function_info.hpp"
#include "duckdb/parser/parsed_data/create_scalar_function_info.hpp"
#include "duckdb/planner/binder.hpp"
#include "duckdb/planner/expression/bound_cast_expression.hpp"
#include "duckdb/planner/expression/bound_reference_expression.hpp"
#include "duckdb/planner/expression_binder.hpp"
#include "engine/call_functions_internal.h"
#include "engine/carriers_internal.h"
#include "engine/functions/register_internal.h"
#include "engine/lambda_internal.h"
#include "engine/raise_internal.h"
#include "engine/run_state_internal.h"

namespace fleuve::engine {
namespace {

using duckdb::LogicalType;

/// Binds a lambda's body: its column references are its inputs, by position.
class LambdaBinder : public duckdb::ExpressionBinder {
 public:
  LambdaBinder(duckdb::Binder& binder, duckdb::ClientContext& context, const ParsedLambda& lambda)
      : ExpressionBinder(binder, context), lambda_(lambda) {}

 protected:
  duckdb::BindResult BindExpression(duckdb::unique_ptr<duckdb::ParsedExpression>& expr, duckdb::idx_t depth,
                                    bool root_expression) override {
    if (expr->GetExpressionClass() == duckdb::ExpressionClass::COLUMN_REF) {
      const auto& reference = expr->Cast<duckdb::ColumnRefExpression>();
      std::string name;
      for (const auto& part : reference.column_names) {
        name += (name.empty() ? "" : ".") + part;
      }
      for (std::size_t i = 0; i < lambda_.inputs.size(); i++) {
        if (lambda_.inputs[i] == name) {
          return duckdb::BindResult(
              duckdb::make_uniq<duckdb::BoundReferenceExpression>(lambda_.input_types[i], duckdb::idx_t(i)));
        }
      }
      RaiseError(Error::Internal("a lambda refers to " + name + ", which it did not capture"));
    }
    return ExpressionBinder::BindExpression(expr, depth, root_expression);
  }

 private:
  const ParsedLambda& lambda_;
};

class ExecutedLambda final : public BoundLambda {
 public:
  ExecutedLambda(duckdb::ClientContext& context, const ParsedLambda& lambda)
      : context_(context), run_(RunState::Of(context)) {
    auto binder = duckdb::Binder::CreateBinder(context);
    LambdaBinder lambda_binder(*binder, context, lambda);
    auto body = lambda.body->Copy();
    body_ = lambda_binder.Bind(body);
    input_types_.assign(lambda.input_types.begin(), lambda.input_types.end());
    parameter_count_ = lambda.parameter_count;
    captures_ = lambda.capture_arguments;
    for (std::size_t i = 0; i < captures_.size(); i++) {
      if (lambda.inputs[parameter_count_ + i] == kDrawInput) {
        draw_ = i;
      }
    }
  }

  const LogicalType& result_type() const override { return body_->return_type; }
  std::size_t parameter_count() const override { return parameter_count_; }

  void Evaluate(duckdb::DataChunk& args, const std::vector<duckdb::Vector*>& parameters, const std::uint32_t* rows,
                duckdb::idx_t count, duckdb::Vector& result) const override {
    duckdb::ExpressionExecutor executor(context_, *body_);
    duckdb::SelectionVector element_rows(STANDARD_VECTOR_SIZE);
    duckdb::SelectionVector element_offsets(STANDARD_VECTOR_SIZE);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t start = 0; start < count; start += STANDARD_VECTOR_SIZE) {
      // One row may have millions of elements, and a fold comes here once for each.
      run_.CheckCancelled();
      const auto size = std::min<duckdb::idx_t>(STANDARD_VECTOR_SIZE, count - start);
      for (duckdb::idx_t i = 0; i < size; i++) {
        element_rows.set_index(i, rows[start + i]);
        element_offsets.set_index(i, start + i);
      }
      duckdb::DataChunk input;
      if (!input_types_.empty()) {
        input.InitializeEmpty(input_types_);
      }
      for (std::size_t i = 0; i < parameter_count_; i++) {
        input.data[i].Slice(*parameters[i], element_offsets, size);
      }
      for (std::size_t i = 0; i < captures_.size(); i++) {
        if (draw_ == i) {
          const auto first = draws_.fetch_add(static_cast<std::int64_t>(size), std::memory_order_relaxed);
          duckdb::Vector numbers(LogicalType::BIGINT, size);
          numbers.Sequence(first, 1, size);
          input.data[parameter_count_ + i].Reference(numbers);
        } else {
          input.data[parameter_count_ + i].Slice(args.data[captures_[i]], element_rows, size);
        }
      }
      input.SetCardinality(size);
      duckdb::Vector out(body_->return_type);
      executor.ExecuteExpression(input, out);
      duckdb::VectorOperations::Copy(out, result, size, 0, start);
    }
  }

 private:
  duckdb::ClientContext& context_;
  const RunState& run_;  // the context keeps it
  duckdb::unique_ptr<duckdb::Expression> body_;
  duckdb::vector<LogicalType> input_types_;
  std::size_t parameter_count_ = 0;
  std::vector<std::size_t> captures_;
  /// Which of the captures is kDrawInput.
  std::optional<std::size_t> draw_;
  mutable std::atomic<std::int64_t> draws_{0};
};

/// The call that the last argument names; the argument is taken off and the others are compared with what the plan
/// says.
const Call& TakeCall(duckdb::ClientContext& context,
                     duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& arguments) {
  const auto& number = arguments.back()->Cast<duckdb::BoundConstantExpression>();
  const auto& call = RunState::Of(context).CallAt(number.value.GetValue<std::int64_t>());
  arguments.pop_back();
  if (arguments.size() != call.arguments.size()) {
    RaiseError(Error::Internal("function " + call.expr->function + " got a wrong number of arguments"));
  }
  for (std::size_t i = 0; i < arguments.size(); i++) {
    if (arguments[i]->return_type != call.arguments[i]) {
      RaiseError(Error::Internal("argument " + std::to_string(i + 1) + " of " + call.expr->function + " in " +
                                 call.expr->display + " has the type " + arguments[i]->return_type.ToString() +
                                 " where the plan says " + call.arguments[i].ToString()));
    }
  }
  return call;
}

duckdb::unique_ptr<duckdb::FunctionData> BindCall(duckdb::ClientContext& context, duckdb::ScalarFunction& bound,
                                                  duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& arguments) {
  const auto& call = TakeCall(context, arguments);
  std::vector<std::shared_ptr<const BoundLambda>> lambdas;
  for (const auto& lambda : call.lambdas) {
    lambdas.push_back(std::make_shared<ExecutedLambda>(context, lambda));
  }
  const auto result = CarrierType(call.expr->type);
  auto made = ValueOrRaise(MakeScalar(call.expr, call.arguments, result, std::move(lambdas)));
  made.function.arguments.assign(call.arguments.begin(), call.arguments.end());
  made.function.varargs = LogicalType(duckdb::LogicalTypeId::INVALID);
  made.function.return_type = result;
  made.function.bind = nullptr;
  bound = std::move(made.function);
  return std::move(made.bind_data);
}

void NeverCalled(duckdb::DataChunk&, duckdb::ExpressionState&, duckdb::Vector&) {
  RaiseError(Error::Internal("an unbound function was called"));
}

duckdb::unique_ptr<duckdb::FunctionData> BindAggregate(
    duckdb::ClientContext& context, duckdb::AggregateFunction& bound,
    duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& arguments) {
  const auto& call = TakeCall(context, arguments);
  const auto result = CarrierType(call.expr->type);
  auto made = ValueOrRaise(MakeAggregate(*call.expr, call.arguments, result));
  made.function.arguments.assign(call.arguments.begin(), call.arguments.end());
  made.function.varargs = LogicalType(duckdb::LogicalTypeId::INVALID);
  made.function.return_type = result;
  made.function.bind = nullptr;
  if (made.function.name.empty()) {
    made.function.name = call.expr->function;
  }
  bound = std::move(made.function);
  return std::move(made.bind_data);
}

duckdb::idx_t NoState(const duckdb::AggregateFunction&) { return 1; }
void NoInitialize(const duckdb::AggregateFunction&, duckdb::data_ptr_t) {}
void NoUpdate(duckdb::Vector[], duckdb::AggregateInputData&, duckdb::idx_t, duckdb::Vector&, duckdb::idx_t) {}
void NoCombine(duckdb::Vector&, duckdb::Vector&, duckdb::AggregateInputData&, duckdb::idx_t) {}
void NoFinalize(duckdb::Vector&, duckdb::AggregateInputData&, duckdb::Vector&, duckdb::idx_t, duckdb::idx_t) {}

/// Leaves the expression alone where its type is right; a NULL of no type gets it.
duckdb::unique_ptr<duckdb::Expression> ReplaceTyped(duckdb::FunctionBindExpressionInput& input) {
  auto& child = input.children[0];
  const auto& wanted = input.children[1]->return_type;
  if (child->return_type == wanted) {
    return std::move(child);
  }
  if ((child->return_type.IsIntegral() && wanted.IsIntegral()) ||
      child->return_type.id() == duckdb::LogicalTypeId::SQLNULL) {
    return duckdb::BoundCastExpression::AddCastToType(input.context, std::move(child), wanted);
  }
  RaiseError(Error::Internal("expression " + child->ToString() + " has the type " + child->return_type.ToString() +
                             " where the plan says " + wanted.ToString()));
}

duckdb::unique_ptr<duckdb::FunctionData> BindTyped(duckdb::ClientContext&, duckdb::ScalarFunction& bound,
                                                   duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& arguments) {
  bound.arguments = {arguments[0]->return_type, arguments[1]->return_type};
  bound.return_type = arguments[1]->return_type;
  return nullptr;
}

void TooManyRows(duckdb::DataChunk&, duckdb::ExpressionState&, duckdb::Vector&) {
  RaiseError(Error(ErrorKind::kInvalidArgument, "SCALAR_SUBQUERY_TOO_MANY_ROWS",
                   "More than one row returned by a subquery used as an expression."));
}

duckdb::unique_ptr<duckdb::FunctionData> BindTooManyRows(
    duckdb::ClientContext&, duckdb::ScalarFunction& bound,
    duckdb::vector<duckdb::unique_ptr<duckdb::Expression>>& arguments) {
  bound.arguments = {arguments[0]->return_type};
  bound.return_type = arguments[0]->return_type;
  return nullptr;
}

}  // namespace

void InstallCallFunctions(duckdb::DatabaseInstance& db) {
  auto& catalog = duckdb::Catalog::GetSystemCatalog(db);
  const auto transaction = duckdb::CatalogTransaction::GetSystemTransaction(db);

  duckdb::ScalarFunction call(kCallFunction, {}, LogicalType::ANY, NeverCalled, BindCall);
  call.varargs = LogicalType::ANY;
  call.SetNullHandling(duckdb::FunctionNullHandling::SPECIAL_HANDLING);
  duckdb::CreateScalarFunctionInfo call_info(call);
  call_info.internal = true;
  catalog.CreateFunction(transaction, call_info);

  duckdb::ScalarFunction typed(kTypedFunction, {LogicalType::ANY, LogicalType::ANY}, LogicalType::ANY, NeverCalled,
                               BindTyped);
  typed.SetNullHandling(duckdb::FunctionNullHandling::SPECIAL_HANDLING);
  typed.bind_expression = ReplaceTyped;
  duckdb::CreateScalarFunctionInfo typed_info(typed);
  typed_info.internal = true;
  catalog.CreateFunction(transaction, typed_info);

  duckdb::ScalarFunction too_many(kTooManyRowsFunction, {LogicalType::ANY}, LogicalType::ANY, TooManyRows,
                                  BindTooManyRows);
  too_many.SetNullHandling(duckdb::FunctionNullHandling::SPECIAL_HANDLING);
  too_many.SetFallible();
  too_many.SetVolatile();
  duckdb::CreateScalarFunctionInfo too_many_info(too_many);
  too_many_info.internal = true;
  catalog.CreateFunction(transaction, too_many_info);

  duckdb::AggregateFunction aggregate(kAggregateFunction, {}, LogicalType::ANY, NoState, NoInitialize, NoUpdate,
                                      NoCombine, NoFinalize, duckdb::FunctionNullHandling::SPECIAL_HANDLING, nullptr,
                                      BindAggregate);
  aggregate.varargs = LogicalType::ANY;
  duckdb::CreateAggregateFunctionInfo aggregate_info(aggregate);
  aggregate_info.internal = true;
  catalog.CreateFunction(transaction, aggregate_info);
}

}  // namespace fleuve::engine
