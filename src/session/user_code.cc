#include <algorithm>
#include <filesystem>

#include "session/user_code_internal.h"

namespace fleuve::session {

namespace fs = std::filesystem;

python::WorkerSetup WorkerSetupOf(Session& session) {
  python::WorkerSetup setup;
  setup.owner = session.key().ToString();
  setup.executable = session.config().GetOr("spark.sql.execution.pyspark.python", "");
  const std::string folder = session.artifacts().folder();
  std::error_code code;
  const std::string modules = folder + "/pyfiles";
  if (fs::is_directory(modules, code)) {
    setup.module_paths.push_back(modules);
    for (const auto& entry : fs::directory_iterator(modules, code)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".zip" || extension == ".egg" || extension == ".jar" || extension == ".whl") {
        setup.module_paths.push_back(entry.path().string());
      }
    }
    std::sort(setup.module_paths.begin() + 1, setup.module_paths.end());
  }
  if (fs::is_directory(folder + "/files", code)) {
    setup.environment["FLEUVE_WORKER_FILES"] = folder + "/files";
  }
  return setup;
}

python::WorkerLimits WorkerLimitsOf(Session& session, const python::WorkerPool& pool) {
  python::WorkerLimits limits = pool.default_limits();
  if (const std::int64_t bytes = session.config().GetInt("fleuve.python.memoryLimit", 0); bytes > 0) {
    limits.memory_bytes = bytes;
  }
  if (const std::int64_t ms = session.config().GetInt("fleuve.python.taskTimeout", 0); ms > 0) {
    limits.task_ms = ms;
  }
  return limits;
}

}  // namespace fleuve::session
