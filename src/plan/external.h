#pragma once

/// \file
/// Functions of the user in another language, and the operators that run them outside the engine: rows go out as Arrow
/// batches and come back as Arrow batches. `engine` runs the operators through the interfaces here; a room above
/// implements them.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "columnar/record_batch.h"
#include "plan/expr.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::plan {

struct ExternalOperator;

/// What a run does next.
struct ExternalEvent {
  enum class Kind {
    kNeedInput,  ///< to be answered by Give or GiveEnd
    kOutput,     ///< `batch`: rows in the operator's output schema
    kDone,       ///< the run is over
  };
  Kind kind = Kind::kDone;
  columnar::RecordBatch batch;
};

/// One run of an external operator. The other side asks for each batch, so neither waits on a full pipe. Threads: one
/// caller at a time. Dropping it ends the run.
class ExternalRun {
 public:
  virtual ~ExternalRun() = default;
  /// Waits for what comes next. An error that the user's function raised is a PythonException.
  virtual Result<ExternalEvent> Next() = 0;
  /// Rows in the operator's input schema.
  virtual Result<void> Give(const columnar::RecordBatch& batch) = 0;
  /// No more rows come.
  virtual Result<void> GiveEnd() = 0;
};

/// What a table function says of itself when it is asked (a UDTF with a method `analyze`).
struct ExternalTableShape {
  types::Schema schema;
  bool single_partition = false;
  /// Names of columns of the table argument.
  std::vector<std::string> partition_by;
  struct Key {
    std::string column;
    bool ascending = true;
    std::optional<bool> nulls_first;
  };
  std::vector<Key> order_by;
  /// Names of the columns of the table argument that it wants; empty: all.
  std::vector<std::string> select;
  /// The pickled result of `analyze`, handed back to the running function; empty: none.
  std::string state;
};

/// An argument of a table function as `analyze` sees it.
struct ExternalArgument {
  std::string name;
  types::DataType type;
  /// NULL where it is no constant.
  types::Value value;
  bool is_constant = false;
  bool is_table = false;
};

/// Who answers what running functions ask in the middle of their work (state). Threads: the one that runs the operator.
class ExternalQuestions {
 public:
  virtual ~ExternalQuestions() = default;
  /// \param reply_bytes  what goes back beside the answer.
  virtual Result<Json> Answer(const Json& question, std::string_view bytes, std::string* reply_bytes) = 0;
};

struct ExternalFunction;

/// Where functions of one session run. Threads: any.
class ExternalRuntime {
 public:
  virtual ~ExternalRuntime() = default;
  /// Starts a run. \param input, output  schemas of the batches that go out and that come back; \param token  ends
  /// waits with kCancelled; may be null.
  virtual Result<std::unique_ptr<ExternalRun>> Start(const ExternalOperator& op, const types::Schema& input,
                                                     const types::Schema& output, CancellationTokenPtr token) = 0;
  /// Asks a table function without a declared schema.
  virtual Result<ExternalTableShape> AnalyzeTableFunction(const ExternalFunction& function,
                                                          const std::vector<ExternalArgument>& arguments) = 0;
};

/// Where and how the functions of one session run.
struct ExternalContext {
  std::shared_ptr<ExternalRuntime> runtime;
  /// Settings that functions depend on, by Spark's key.
  std::map<std::string, std::string> settings;
  std::string session_zone = "UTC";
  /// Rows of one batch.
  std::int64_t batch_rows = 10000;
};

/// How a function is called. The names follow PySpark's evaluation types.
enum class ExternalCallKind {
  kScalar,      ///< one value for each row
  kScalarIter,  ///< batches in, batches out, as many rows
  kMap,         ///< batches in, batches out, any number of rows
  kGroupMap,    ///< a group in, rows out
  kCoGroupMap,  ///< two groups in, rows out
  kAggregate,   ///< a group in, one value out
  kTable,       ///< one row in, rows out
  kGroupState,  ///< a group and its state in, rows out
  kOther,       ///< kinds that are not served
};

/// A function of the user.
struct ExternalFunction {
  std::string name;
  /// PySpark's evaluation type (100 = one row at a time, 200 = pandas, ...).
  int eval_type = 0;
  /// The pickled function; never looked into here.
  std::string command;
  std::string python_version;
  std::vector<std::string> includes;
  /// What it returns: a value, or a struct of the columns where it returns rows.
  types::DataType type;
  bool deterministic = true;
  /// Of a table function whose shape was asked for.
  std::string table_state;
  /// Not part of what the function is.
  std::shared_ptr<const ExternalContext> context;

  ExternalCallKind call_kind() const;
  bool Same(const ExternalFunction& other) const;
};

/// One function, or several of which each takes the result of the one before (innermost first), over arguments.
struct ExternalCall {
  std::vector<std::shared_ptr<const ExternalFunction>> chain;
  /// Positions among the node's `exprs`.
  std::vector<int> arguments;
  /// One per argument; empty: positional.
  std::vector<std::string> argument_names;
};

enum class ExternalKind : int {
  /// Columns of the child, then one per call. Arguments: `exprs`.
  kEvaluate,
  /// What the only call makes of all rows.
  kMap,
  /// What the only call makes of each group: the rows with equal values of `grouping`, in the order of the node's
  /// `order_by`. When the plan runs, its child is sorted by both.
  kGroupMap,
  /// As kGroupMap with rows of two sides: the first column of `exprs` (INT 0 or 1) tells which; then `left_arguments`
  /// columns of the left side, then those of the right one.
  kCoGroupMap,
  /// `grouping`, then one column per call; one row per group. The child is sorted by `grouping`.
  kAggregate,
  /// Columns of the child, then what the only call makes of each row.
  kTable,
  /// What the only call (a table function) makes of each partition of rows; as kGroupMap.
  kTableOfRows,
  /// As kGroupMap, with state for each group; runs also where there are no rows.
  kGroupState,
  /// Groups as in kAggregate; columns of the child, then one per call over the rows of its frame (see `framed`).
  kWindow,
};

/// What a kExternal plan node does.
struct ExternalOperator {
  ExternalKind kind = ExternalKind::kEvaluate;
  std::vector<ExternalCall> calls;
  std::shared_ptr<const ExternalContext> context;
  std::size_t left_arguments = 0;
  /// kMap: no more than so many rows are asked for (a function may go on for ever); -1: all.
  std::int64_t row_limit = -1;
  /// kTable: a row without results stays, with NULLs.
  bool outer = false;
  /// kGroupState: as the user said it. `timeout` is NoTimeout, ProcessingTimeTimeout, EventTimeTimeout; or the time
  /// mode None, ProcessingTime, EventTime of a stateful processor, which has no type of its state.
  std::string output_mode;
  std::string timeout;
  std::optional<types::DataType> state_type;
  /// kGroupState on a stream: where the state is; null: it lives as long as the run.
  std::shared_ptr<ExternalQuestions> questions;
  /// kWindow: one per call; -1: its frame is the whole group; else the position among `exprs` of the number of rows up
  /// to the frame's end (LONG); the next one is the number of rows in the frame.
  std::vector<int> framed;
};

/// True where the node gives columns of its child first.
bool PassesChild(const LogicalPlan& node);
/// How many of its first columns are the child's.
std::size_t PassedColumns(const LogicalPlan& node);
bool IsExternal(const Expr& expr);
/// True where a function of the user stands in the tree, aggregates and window functions included.
bool HasExternal(const ExprPtr& expr);

}  // namespace fleuve::plan
