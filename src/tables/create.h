#pragma once

/// \file
/// CREATE and REPLACE of Delta tables, with or without a query.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"
#include "tables/context.h"

namespace fleuve::tables {

struct CreateSpec {
  /// Columns as declared. Per field, metadata as Spark keeps it: `comment`, `CURRENT_DEFAULT`, `EXISTS_DEFAULT`,
  /// `delta.generationExpression`, `delta.identity.start|step|allowExplicitInsert`. Ignored where `query` is set.
  types::Schema schema;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  std::optional<std::string> comment;
  /// TBLPROPERTIES (and `delta.*` options), user keys included.
  plan::Options properties;
  /// AS SELECT: analyzed plan.
  plan::PlanPtr query;
  /// CREATE OR REPLACE, REPLACE; `if_not_exists` is the caller's (a table in the catalog).
  bool replace = false;
  /// REPLACE without CREATE, saveAsTable overwrite, ...: how commitInfo names it.
  std::string operation = "CREATE TABLE";
  /// saveAsTable(mode=append|overwrite) and writeTo options.
  plan::Options options;
};

/// Creates (or replaces) the table in its folder with one commit. An existing log at the location without `replace`: an
/// empty schema adopts it; else schema, partitioning and properties must equal it (DELTA_CREATE_TABLE_SCHEME_MISMATCH,
/// DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING, DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY). A folder with files but
/// without a log: DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION.
/// Returns the schema of the table as the catalog may show it.
Result<types::Schema> CreateTable(const TableContext& context, const TableRef& table, const CreateSpec& spec);

}  // namespace fleuve::tables
