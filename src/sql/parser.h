#pragma once

/// \file
/// From Spark SQL text to unresolved plans: the only way in.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "types/data_type.h"

namespace spark::connect {
class Expression;
class Relation;
}  // namespace spark::connect

namespace fleuve::pb {
class Command;
}

namespace fleuve::sql {

/// Settings that the meaning of a text depends on.
struct ParserOptions {
  /// Zone of TIMESTAMP literals without one.
  std::string session_zone = "UTC";
  /// False: TIMESTAMP means timestamp without time zone (spark.sql.timestampType = TIMESTAMP_NTZ).
  bool timestamp_is_ltz = true;
  /// "x" is an identifier, not a string (spark.sql.ansi.doubleQuotedIdentifiers).
  bool double_quoted_identifiers = false;
  /// Backslashes in strings are plain characters (spark.sql.parser.escapedStringLiterals).
  bool escaped_string_literals = false;
  /// What `now`, `today` in literals mean: microseconds since the epoch.
  std::int64_t now_micros = 0;
  /// Values for `:name` and `?`. A marker without a value: UNBOUND_SQL_PARAMETER.
  std::map<std::string, const spark::connect::Expression*> named_parameters;
  std::vector<const spark::connect::Expression*> positional_parameters;
};

/// One statement: a query or a command. Exactly one of the two is set. The messages live in one arena that the pointers
/// share: copies are cheap, destruction is flat however deep the plan.
struct Statement {
  std::shared_ptr<const spark::connect::Relation> query;
  std::shared_ptr<const pb::Command> command;
  /// As written, without the semicolon.
  std::string text;
};

/// Parses exactly one statement (a semicolon at the end is allowed). Needs no large stack of the caller.
/// Errors: PARSE_SYNTAX_ERROR and its like with line, position and fragment (family kParse); kUnsupported for what
/// Spark knows and this build does not.
Result<Statement> ParseStatement(std::string_view text, const ParserOptions& options = {});

/// Parses statements separated by semicolons; comments and empty statements are left out.
Result<std::vector<Statement>> ParseStatements(std::string_view text, const ParserOptions& options = {});

/// Parses one query; a command is PARSE_SYNTAX_ERROR.
Result<std::shared_ptr<const spark::connect::Relation>> ParseQuery(std::string_view text,
                                                                   const ParserOptions& options = {});

/// Parses one expression as `expr("...")`, `selectExpr`, `where("...")` take it: with `AS name`, `*`.
Result<std::shared_ptr<const spark::connect::Expression>> ParseExpression(std::string_view text,
                                                                          const ParserOptions& options = {});

/// `array<int>`, `struct<a: int>`, `DECIMAL(10, 2)`. UNSUPPORTED_DATATYPE where the name is no type.
Result<types::DataType> ParseDataType(std::string_view text, const ParserOptions& options = {});

/// `a INT, b STRING NOT NULL COMMENT 'x'`: gives a struct.
Result<types::DataType> ParseColumnList(std::string_view text, const ParserOptions& options = {});

/// One type or a column list (as `schema("...")` takes it); the error is that of the column list.
Result<types::DataType> ParseSchema(std::string_view text, const ParserOptions& options = {});

/// `catalog.database.table` with backticks: the parts without quotes, one to any number.
Result<std::vector<std::string>> ParseMultipartName(std::string_view text);

/// `PARTITION BY` style property value or interval text: microseconds of `interval 1 day`, `10 minutes`.
/// Months count as kInvalidArgument.
Result<std::int64_t> ParseDurationMicros(std::string_view text);

}  // namespace fleuve::sql
