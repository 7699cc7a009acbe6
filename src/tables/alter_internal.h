#pragma once

/// \file
/// A commit that only changes what a table is.

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "delta/transaction.h"
#include "tables/context.h"

namespace fleuve::tables {

/// What a change works on. `changed` false: nothing is committed.
struct Alteration {
  delta::SnapshotPtr snapshot;
  delta::Metadata metadata;
  types::Schema schema;
  Json parameters{Json::Object{}};
  std::vector<delta::Action> actions;
  bool reads_table = false;
  bool changed = true;
};

/// Reads the table, lets `change` edit the metadata, commits it as `operation`.
Result<void> Alter(const TableContext& context, const TableRef& table, const std::string& operation,
                   const std::function<Result<void>(Alteration&)>& change);

}  // namespace fleuve::tables
