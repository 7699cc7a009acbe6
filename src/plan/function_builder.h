#pragma once

/// \file
/// From a function's name and typed arguments to a typed expression: coercion, result type, implementation.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/expr.h"
#include "plan/resolver.h"

namespace fleuve::plan {

/// One use of a function, its arguments analyzed but not yet coerced.
struct FunctionCall {
  /// As written by the user; looked up without case. Operators come as Spark Connect names them: + - * / % == <=> < and
  /// or not ...
  std::string name;
  /// Null where the argument is a lambda: ask `bind_lambda`.
  std::vector<ExprPtr> arguments;
  /// Names of `name => value` arguments, empty for positional ones. For `struct` also the aliases (`struct(1 AS a)`).
  std::vector<std::string> argument_names;
  bool distinct = false;
  bool is_star = false;  ///< count(*)
  bool ignore_nulls = false;
  ExprPtr filter;
  std::vector<SortKey> within_group;
  const AnalysisConfig* config = nullptr;
  std::shared_ptr<const QueryContext> context;
  /// Analyzes the lambda at `index` with these parameters (type and nullability matter); gives a kLambda whose body is
  /// typed. kInvalidArgument where the argument is no lambda or has another number of parameters.
  std::function<Result<ExprPtr>(std::size_t index, const std::vector<Attribute>& parameters)> bind_lambda;
  /// Number of parameters the lambda at `index` was written with; 0 = no lambda.
  std::function<std::size_t(std::size_t index)> lambda_arity;
};

enum class FunctionKind { kScalar, kAggregate, kWindow, kGenerator };

/// True and the kind where a function of this name is known (also if not implemented yet).
std::optional<FunctionKind> FindFunctionKind(std::string_view name);

/// Builds the expression of a scalar, aggregate or window function: a kCall, kCast, kCase, kAggregate, ... with its
/// display text. Aggregates may come back as an expression *over* kAggregate nodes.
/// Names without a place in Spark's list: `[]` item of an array or value of a map (`x[y]`), `get_array_struct_fields`
/// (array of structs, literal int ordinal).
/// UNRESOLVED_ROUTINE where no such function exists; kUnsupported where Spark has it and we do not; WRONG_NUM_ARGS and
/// DATATYPE_MISMATCH.* as Spark says.
Result<ExprPtr> BuildFunction(const FunctionCall& call);

/// The interval that text such as `5 minutes`, `interval 1 day 2 hours` or `1.5 seconds` names (watermark delays,
/// window widths, casts). CANNOT_PARSE_INTERVAL where it is none.
Result<types::CalendarInterval> ParseIntervalText(std::string_view text);

/// The constant parameters of window(): microseconds. A window is `spark_window(time, window, slide, start, index)`:
/// the index-th (0-based) window that holds the time, latest first, NULL where there is no such window. `BuildFunction`
/// gives it with the index -1: a mark that the analyzer makes into a column of a projection below the node that holds
/// it.
struct TimeWindowSpec {
  ExprPtr time;
  std::int64_t window = 0;
  std::int64_t slide = 0;
  std::int64_t start = 0;
  /// struct<start, end> of the time's type.
  types::DataType type;
  /// How many windows one row can be in.
  std::int64_t overlap() const { return (window + slide - 1) / slide; }
};
/// Of a call of window(time, width[, slide[, start]]) with its arguments analyzed. DATATYPE_MISMATCH.* as Spark says.
Result<TimeWindowSpec> AnalyzeTimeWindow(const FunctionCall& call);
/// The index-th window of a row.
ExprPtr MakeTimeWindow(const TimeWindowSpec& spec, std::int64_t index);

/// A generator's column names and types, and its coerced arguments.
struct GeneratorResult {
  GeneratorSpec spec;
  std::vector<types::StructField> columns;
};
Result<GeneratorResult> BuildGenerator(const FunctionCall& call);

}  // namespace fleuve::plan
