#pragma once

/// \file
/// What went wrong, for code (kind), for the user (condition, message) and for people (context).

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleuve {

/// What the caller shall do about an error. A closed list: code decides by it, never by text.
enum class ErrorKind {
  kInvalidArgument,    ///< the request is wrong whatever the state: report
  kNotFound,           ///< the thing is not there: decide
  kAlreadyExists,      ///< the thing is already there: decide
  kConflict,           ///< another commit makes ours invalid as it stands: rebase or report
  kOutcomeUnknown,     ///< the request may have been carried out: read back before anything else
  kTransient,          ///< it was not carried out: the same call may be repeated
  kResourceExhausted,  ///< memory, disk, quota: shed or report
  kUnsupported,        ///< valid, but this build does not do it: report
  kCorrupt,            ///< stored bytes break their format: stop, report path and position
  kPermissionDenied,   ///< the store or the catalog refused
  kCancelled,          ///< stop, deadline or interrupt: unwind quietly
  kInternal,           ///< a bug of ours: log, fail the query
};

/// The exception family a client raises: which PySpark class an error becomes.
enum class ErrorFamily {
  kAnalysis,               ///< AnalysisException
  kParse,                  ///< ParseException
  kArithmetic,             ///< ArithmeticException
  kArrayIndexOutOfBounds,  ///< ArrayIndexOutOfBoundsException
  kNumberFormat,           ///< NumberFormatException
  kDateTime,               ///< DateTimeException
  kIllegalArgument,        ///< IllegalArgumentException
  kUnsupportedOperation,   ///< UnsupportedOperationException
  kRuntime,                ///< SparkRuntimeException
  kStreamingQuery,         ///< StreamingQueryException
  kNoSuchElement,          ///< SparkNoSuchElementException
  kTableAlreadyExists,     ///< an AnalysisException with a class of its own in Scala
  kDelta,                  ///< Delta's exceptions: the condition names DELTA_...
  kSpark,                  ///< SparkException
};

/// Where in a SQL text an error points to. Offsets in bytes; line from 1, column from 0.
struct QueryContext {
  std::string object_type;
  std::string object_name;
  std::string fragment;
  std::string call_site;
  int start_index = -1;
  int stop_index = -1;
  int line = 0;
  int column = 0;
};

/// One failure. Cheap to move; built once, enriched with context on the way up.
///
/// `condition` is Spark's condition name (`DIVIDE_BY_ZERO`, `UNRESOLVED_COLUMN.WITH_SUGGESTION`) or one of ours
/// (`FLEUVE_...`); `message` is the whole sentence without the condition in front; SQLSTATE and family come from
/// the table in error_conditions.inc.
class [[nodiscard]] Error {
 public:
  Error(ErrorKind kind, std::string condition, std::string message);

  /// An error without a condition of its own: INTERNAL_ERROR. Use for bugs only.
  static Error Internal(std::string message);
  /// A valid request that this build does not serve: condition UNSUPPORTED_FEATURE.FLEUVE naming `what`.
  static Error Unsupported(std::string_view what);
  static Error Cancelled(std::string message = "the operation was cancelled");

  /// Adds a message parameter as Spark names it (`fieldName`); returned by value for chaining.
  Error With(std::string name, std::string value) &&;
  Error Context(std::string frame) &&;
  Error At(QueryContext context) &&;
  Error CausedBy(Error cause) &&;
  /// Overrides the SQLSTATE of the table.
  Error SqlState(std::string state) &&;
  Error Family(ErrorFamily family) &&;

  ErrorKind kind() const { return data_->kind; }
  const std::string& condition() const { return data_->condition; }
  const std::string& message() const { return data_->message; }
  const std::vector<std::pair<std::string, std::string>>& parameters() const { return data_->parameters; }
  const std::vector<std::string>& frames() const { return data_->frames; }
  const std::vector<QueryContext>& contexts() const { return data_->contexts; }
  /// The error that led to this one, or null.
  const Error* cause() const { return data_->cause.get(); }
  /// Five characters, or empty where the condition has none.
  std::string sql_state() const;
  ErrorFamily family() const;
  /// `[CONDITION] message SQLSTATE: 12345`, as Spark prints it.
  std::string ToString() const;

 private:
  struct Data {
    ErrorKind kind;
    std::string condition;
    std::string message;
    std::vector<std::pair<std::string, std::string>> parameters;
    std::vector<std::string> frames;
    std::vector<QueryContext> contexts;
    std::shared_ptr<const Error> cause;
    std::string sql_state;
    std::optional<ErrorFamily> family;
  };
  std::shared_ptr<Data> data_;
};

}  // namespace fleuve
