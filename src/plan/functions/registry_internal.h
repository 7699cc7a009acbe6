#pragma once

/// \file
/// How function builders are written: a table per file, a `Call` that coerces arguments as Spark does and makes nodes.

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/coercion_internal.h"
#include "plan/function_builder.h"

namespace fleuve::plan::functions {

/// One use of a function while its expression is built. `args` start as the user's arguments and are coerced in place;
/// `shown` keeps their display texts as they were.
class Call {
 public:
  explicit Call(const FunctionCall& source);

  const FunctionCall& source;
  const AnalysisConfig& config;
  /// Lower case, as called (an alias stays an alias).
  std::string name;
  std::vector<ExprPtr> args;
  std::vector<std::string> shown;

  std::size_t size() const { return args.size(); }
  const types::DataType& type(std::size_t i) const { return args[i]->type; }
  bool ansi() const { return config.ansi; }
  /// A setting as true or false.
  bool Conf(const std::string& key, bool fallback) const;

  /// Casts argument `i` to `type` by Spark's implicit rules. DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE otherwise.
  Result<void> To(std::size_t i, const types::DataType& type);
  /// Keeps the argument where its kind is one of `accepted`; else casts it to the first of them that Spark casts to.
  Result<void> ToOneOf(std::size_t i, std::initializer_list<types::DataType> accepted);
  /// Numbers stay; strings become doubles (NULL too).
  Result<void> ToNumeric(std::size_t i);
  /// Brings the arguments from..to-1 (step) to one type. DATATYPE_MISMATCH.DATA_DIFF_TYPES otherwise.
  Result<types::DataType> ToCommon(std::size_t from, std::size_t to, std::size_t step = 1);
  Result<types::DataType> ToCommon(const std::vector<std::size_t>& which);
  /// Explicit cast of an argument in the session's mode.
  Result<void> Cast(std::size_t i, const types::DataType& type);
  /// Appends a literal that the display shows (a default value).
  void Default(types::Value value, const types::DataType& type);
  /// Appends a literal that the display does not show (zone, flags).
  void Hidden(types::Value value, const types::DataType& type);
  /// The argument's value where it is a literal (casts of literals included where the value is plain).
  const types::Value* LiteralOf(std::size_t i) const;

  bool AnyNullable() const;
  /// `name(a, b)` of the shown arguments.
  std::string Display() const { return Display(name); }
  std::string Display(std::string_view as) const;
  /// kCall of `function` over `args`, shown as `name(...)`.
  ExprPtr Make(std::string function, types::DataType type, bool nullable, bool can_fail = false) const;
  ExprPtr Make(std::string function, types::DataType type) const {
    return Make(std::move(function), type, AnyNullable());
  }
  /// `expr` shown as `display`, its errors pointing at the call.
  ExprPtr Shown(const ExprPtr& expr, std::string display) const;
  /// kAggregate of `function` over `args`, with distinct, filter and order of the call, shown as Spark shows it.
  ExprPtr Aggregate(std::string function, types::DataType type, bool nullable) const;
  ExprPtr Aggregate(std::string function, types::DataType type, bool nullable, std::string display) const;

  /// DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE for argument `i`. \param required  as SQL, e.g. "STRING".
  Error Unexpected(std::size_t i, const std::string& required) const;
  /// DATATYPE_MISMATCH.`subclass` of the whole call.
  Error Mismatch(const std::string& subclass, const std::string& message) const;
  Error WrongCount(const std::string& expected) const;
  Result<void> Count(std::size_t from, std::size_t to) const;
};

using Build = Result<ExprPtr> (*)(Call& call);

enum Flags : unsigned {
  kNone = 0,
  kFails = 1,          ///< may raise an error on some row
  kFailsAnsi = 2,      ///< may raise under ANSI, gives NULL otherwise (`_legacy` is appended to the implementation)
  kNullable = 4,       ///< NULL even where no argument is
  kNotNull = 8,        ///< never NULL
  kZone = 16,          ///< the session's zone is appended as a literal
  kVolatile = 32,      ///< not deterministic
  kHideDefaults = 64,  ///< defaults are not shown
  kUpper = 128,        ///< shown in upper case: SQRT(4)
};

/// A function. Either `build`, or a signature such as `ss,i=1>b`: argument types, after a comma optional ones (with a
/// default or, without `=`, left out), then the result. Letters: s string, i int, l long, d double, b boolean,
/// x binary, D date, T timestamp, N timestamp_ntz, n any number, S string or binary (kept), A anything (kept),
/// z (result only) same as the first argument.
struct Entry {
  const char* name;
  FunctionKind kind;
  const char* implementation;
  const char* signature;
  unsigned flags;
  Build build;
  int min_args;
  int max_args;  ///< -1: any number
};

constexpr Entry Simple(const char* name, const char* implementation, const char* signature, unsigned flags = kNone) {
  return Entry{name, FunctionKind::kScalar, implementation, signature, flags, nullptr, 0, -1};
}
constexpr Entry Scalar(const char* name, int min_args, int max_args, Build build) {
  return Entry{name, FunctionKind::kScalar, nullptr, nullptr, kNone, build, min_args, max_args};
}
constexpr Entry Agg(const char* name, int min_args, int max_args, Build build) {
  return Entry{name, FunctionKind::kAggregate, nullptr, nullptr, kNone, build, min_args, max_args};
}
constexpr Entry Window(const char* name, int min_args, int max_args, Build build) {
  return Entry{name, FunctionKind::kWindow, nullptr, nullptr, kNone, build, min_args, max_args};
}

using Table = std::vector<Entry>;

// One per file; listed in function_builder.cc.
const Table& OperatorFunctions();
const Table& ConditionalFunctions();
const Table& CastFunctions();
const Table& StringFunctions();
const Table& RegexpFunctions();
const Table& MathFunctions();
const Table& HashFunctions();
const Table& BitmapFunctions();
const Table& DateTimeFunctions();
const Table& IntervalFunctions();
const Table& AggregateFunctions();
const Table& StatisticFunctions();
const Table& WindowFunctions();
const Table& MiscFunctions();
const Table& NestedFunctions();
const Table& CollectionFunctions();
const Table& HigherOrderFunctions();
const Table& TextFormatFunctions();
const Table& VariantFunctions();

/// Runs a table entry: counts arguments, coerces by signature or calls its builder.
Result<ExprPtr> Run(const Entry& entry, const FunctionCall& source);

/// Calls another function by name over typed arguments (rewrites such as nvl2 → if).
Result<ExprPtr> CallNamed(const Call& call, const char* name, std::vector<ExprPtr> args);

/// `_try`, `_legacy` or nothing.
std::string ModeSuffix(const Call& call);

/// A fresh seed for rand() and its kin.
std::uint64_t RandomSeed();

}  // namespace fleuve::plan::functions
