#pragma once

/// \file
/// What the process lends to its sessions. Filled by `main` (or a test) before the first session, then only read.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/resource_lease.h"

namespace fleuve::catalog {
class Catalog;
}
namespace fleuve::connectors {
class ConnectorRegistry;
}
namespace fleuve::stream {
class QueryManager;
}

namespace fleuve::session {

struct Services {
  std::shared_ptr<catalog::Catalog> catalog;
  std::shared_ptr<stream::QueryManager> queries;
  std::shared_ptr<connectors::ConnectorRegistry> connectors;
  std::shared_ptr<ResourceBudget> budget;
  Clock* clock = Clock::System();
  /// Absolute path of `spark.sql.warehouse.dir`.
  std::string warehouse;
  /// A folder of this process for artifacts, spilled data and temporary checkpoints; removed by `main` at the end.
  std::string scratch;
  /// Settings every session starts with (command line, configuration file).
  std::map<std::string, std::string> conf;
  /// What current_user() says.
  std::string user = "fleuve";
};

}  // namespace fleuve::session
