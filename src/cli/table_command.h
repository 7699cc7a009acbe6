#pragma once

/// \file
/// `fleuve table`: what a person does with one table from the command line.

#include <string>

#include "base/result.h"

namespace fleuve::cli {

/// What the command line says of a table.
struct TableCommand {
  /// history, detail, optimize, vacuum, restore, check or repair.
  std::string action;
  std::string path;
  std::string where;
  std::string zorder_by;
  std::string retain_hours;
  std::string version;
  std::string timestamp;
  bool dry_run = false;
  /// vacuum: what the log says was removed, without a look at the folder.
  bool lite = false;
  /// optimize: files that are clustered already too.
  bool full = false;
  bool skip_data = false;
};

/// The SQL statement of an action that is one; kInvalidArgument where an option is missing.
Result<std::string> TableSql(const TableCommand& command);

/// True for `check` and `repair`, which no SQL statement says.
bool IsFileCheck(const TableCommand& command);
/// Prints one line per problem (or per file taken out). 0: the table is sound or was repaired; 2: problems were found.
Result<int> RunFileCheck(const TableCommand& command);

}  // namespace fleuve::cli
