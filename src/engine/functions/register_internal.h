#pragma once

/// \file
/// The door between the translator of typed plans and our own DuckDB functions. No function is put into DuckDB's
/// catalog: the translator asks for the implementation of a typed node and builds the bound DuckDB expression from it.
/// So an implementation knows Spark's types, the result type and its constant arguments when it is made.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "duckdb.hpp"
#include "duckdb/function/aggregate_function.hpp"
#include "duckdb/function/scalar_function.hpp"
#include "engine/lambda_internal.h"
#include "plan/expr.h"

namespace fleuve::engine {

// ---- Errors of rows ----

/// Raises `error` out of a DuckDB callback. DuckDB carries only text, so the error is parked in a table of the process
/// and the exception holds its number.
[[noreturn]] void ThrowRowError(Error error);
/// The parked error that the text of a DuckDB exception names, nullopt where it names none.
std::optional<Error> TakeRowError(std::string_view duckdb_message);

// ---- Scalar functions ----

/// What the maker of a kernel knows: the typed node (kCall or kCast) and the DuckDB types of its children and result.
struct ScalarSite {
  const plan::Expr& expr;
  std::vector<duckdb::LogicalType> arguments;
  duckdb::LogicalType result;
  /// Functions whose value depends on the row's place (spark_rand, spark_randn, spark_uuid, spark_shuffle,
  /// spark_randstr, spark_uniform, spark_monotonically_increasing_id) get a BIGINT as their very last argument beyond
  /// the children: the row's index from 0. Their rows come in order, from one thread at a time. One per lambda child,
  /// in order. `arguments` holds the non-lambda children, then the columns that lambdas capture.
  std::vector<std::shared_ptr<const BoundLambda>> lambdas;

  const types::DataType& ArgumentType(std::size_t i) const { return expr.children[i]->type; }
  std::size_t size() const { return expr.children.size(); }
  /// True where argument `i` is a literal (constant parameters always are).
  bool IsLiteral(std::size_t i) const {
    return i < expr.children.size() && expr.children[i]->kind == plan::ExprKind::kLiteral;
  }
  const types::Value& Literal(std::size_t i) const { return expr.children[i]->value; }
};

/// Computes `args.size()` rows of `result`. Must cope with flat, constant and dictionary vectors. Runs on many threads
/// at once: a kernel keeps no mutable state except under a lock or per thread.
using Kernel = std::function<void(duckdb::DataChunk& args, duckdb::Vector& result)>;
using KernelMaker = Result<Kernel> (*)(const ScalarSite& site);

enum class Nulls {
  kPropagate,  ///< NULL in any argument gives NULL; the kernel still has to do it
  kOwn,        ///< the kernel decides
};

/// Registers a scalar function under the name that plan expressions carry.
struct ScalarEntry {
  const char* name;
  Nulls nulls;
  KernelMaker make;
};

/// The DuckDB function for a node: kCast (registered under `spark_cast`) or kCall named `spark_*`. Stability comes from
/// `expr.deterministic`, fallibility from `expr.can_fail`. The bind data makes two calls equal only where they are.
/// kUnsupported where no such function is registered.
struct ScalarImplementation {
  duckdb::ScalarFunction function;
  duckdb::unique_ptr<duckdb::FunctionData> bind_data;
};
Result<ScalarImplementation> MakeScalar(const plan::ExprPtr& expr, const std::vector<duckdb::LogicalType>& arguments,
                                        const duckdb::LogicalType& result,
                                        std::vector<std::shared_ptr<const BoundLambda>> lambdas = {});
bool HasScalar(std::string_view name);

// ---- Aggregate functions ----

/// The DuckDB function for a kAggregate node named `spark_*`; `arguments` are the carriers of its children. Names
/// `duck_*` are DuckDB's own aggregates (`duck_count_star`, `duck_min`, ...), which the translator binds itself.
/// Distinct, filter and order are the translator's.
/// Which form of an aggregate is wanted (aggregate_states_internal.h).
enum class AggregateForm { kWhole, kPartial, kMerge, kFinal };
struct AggregateSite {
  /// The call as it is without a form: its own children and result type.
  const plan::Expr& expr;
  /// The carriers of the children that DuckDB sees.
  std::vector<duckdb::LogicalType> arguments;
  duckdb::LogicalType result;
  AggregateForm form = AggregateForm::kWhole;

  const types::DataType& ArgumentType(std::size_t i) const { return expr.children[i]->type; }
  const types::Value& Literal(std::size_t i) const { return expr.children[i]->value; }
};
struct AggregateImplementation {
  duckdb::AggregateFunction function;
  duckdb::unique_ptr<duckdb::FunctionData> bind_data;
};
using AggregateMaker = Result<AggregateImplementation> (*)(const AggregateSite& site);
struct AggregateEntry {
  const char* name;
  AggregateMaker make;
};
Result<AggregateImplementation> MakeAggregate(const plan::Expr& expr, const std::vector<duckdb::LogicalType>& arguments,
                                              const duckdb::LogicalType& result);
bool HasAggregate(std::string_view name);
/// The name without `#partial`, `#merge`, `#final`.
std::string_view WithoutForm(std::string_view aggregate);

// ---- Tables of the files ----

/// Every file of engine/functions defines one such table of its functions and is listed in `registry.cc`.
using ScalarTable = std::vector<ScalarEntry>;
using AggregateTable = std::vector<AggregateEntry>;

}  // namespace fleuve::engine
