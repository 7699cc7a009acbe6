#pragma once

/// \file
/// What every table command needs, and how it names its table.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "base/result.h"
#include "delta/log.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"
#include "storage/object_store.h"
#include "types/value.h"

namespace fleuve::engine {
class Engine;
class RunObserver;
}  // namespace fleuve::engine

namespace fleuve::tables {

/// Everything a command uses; the pointers outlive it.
struct TableContext {
  delta::LogRegistry* logs = nullptr;
  engine::Engine* engine = nullptr;
  /// Session settings: zone, ANSI, `spark.databricks.delta.*` through `conf`.
  plan::AnalysisConfig config;
  CancellationTokenPtr token;
  /// To be given to the run of the input (rows of its leaves, observe()); may be null.
  std::shared_ptr<engine::RunObserver> observer;
  /// Called with the input's prepared plan before it runs; may be empty.
  std::function<void(const plan::PlanPtr& prepared)> on_prepared;
};

/// A table by its folder.
struct TableRef {
  storage::Location location;
  /// As errors name it: `spark_catalog.default.t`, delta.`/path`.
  std::string name;
  /// True for a managed table (goes into `isManaged` of CREATE TABLE).
  bool is_managed = false;
  /// Full name of a table in the catalog; empty for path tables.
  std::vector<std::string> catalog_name;
};

/// A small result: DESCRIBE HISTORY, metrics of DELETE, ...
struct RowsResult {
  types::Schema schema;
  std::vector<types::Value::List> rows;
};

}  // namespace fleuve::tables
