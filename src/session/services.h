#pragma once

/// \file
/// What the process lends to its sessions. Filled by `main` (or a test) before the first session, then only read.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/resource_lease.h"
#include "base/result.h"
#include "plan/logical_plan.h"
#include "types/data_type.h"

namespace fleuve::catalog {
class Catalog;
}
namespace fleuve::connectors {
class ConnectorRegistry;
}
namespace fleuve::delta {
class LogRegistry;
}
namespace fleuve::engine {
class Engine;
}
namespace fleuve::python {
class WorkerPool;
}
namespace fleuve::stream {
class Manager;
}

namespace fleuve::session {

/// A temporary view: of a DataFrame (its plan), or of SQL text that is analyzed anew at each use.
struct TemporaryView {
  plan::PlanPtr plan;
  std::string text;
  /// Where the text's names are looked up.
  std::string database;
  /// The text's columns: the view keeps the names it was made with.
  types::Schema schema;
};
using TemporaryViewPtr = std::shared_ptr<const TemporaryView>;

/// Views of `global_temp`, shared by all sessions. Threads: any, under `mutex`.
struct GlobalViews {
  std::mutex mutex;
  /// By lower-case name.
  std::map<std::string, TemporaryViewPtr> views;
};

class Pipelines;

struct Services {
  std::shared_ptr<catalog::Catalog> catalog;
  std::shared_ptr<stream::Manager> queries;
  std::shared_ptr<const connectors::ConnectorRegistry> connectors;
  std::shared_ptr<delta::LogRegistry> logs;
  std::shared_ptr<ResourceBudget> budget;
  /// Processes for the user's Python; null: there are none (functions are refused).
  std::shared_ptr<python::WorkerPool> workers;
  /// `sc://127.0.0.1:15002/;token=...`: where such a process reaches this server; empty text: nowhere.
  std::function<std::string()> own_url;
  /// Declarative pipelines; null: there are none (their messages are refused).
  std::shared_ptr<Pipelines> pipelines;
  /// A new instance for the batch queries of one session; called when it first runs something.
  std::function<Result<std::shared_ptr<engine::Engine>>()> make_engine;
  Clock* clock = Clock::System();
  /// Absolute path of `spark.sql.warehouse.dir`.
  std::string warehouse;
  /// A folder of this process for artifacts, spilled data and temporary checkpoints; removed by `main` at the end.
  std::string scratch;
  /// Settings every session starts with (command line, configuration file).
  std::map<std::string, std::string> conf;
  /// What current_user() says.
  std::string user = "fleuve";
  std::shared_ptr<GlobalViews> global_views = std::make_shared<GlobalViews>();
};

}  // namespace fleuve::session
