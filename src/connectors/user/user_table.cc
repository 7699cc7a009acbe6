#include <map>

#include "base/bytes.h"
#include "connectors/user/source_task_internal.h"
#include "plan/planned_source.h"

namespace fleuve::connectors::user {

namespace {

class UserTable final : public plan::TableSource, public plan::PlannedSource {
 public:
  UserTable(MadeSource made, plan::AnalysisConfig config) : made_(std::move(made)), config_(std::move(config)) {}

  const types::Schema& schema() const override { return made_.schema; }
  std::string name() const override { return made_.source.name; }
  std::string provider() const override { return AsciiLower(made_.source.name); }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>&,
                                                         const std::vector<plan::Attribute>&) const override {
    // There are no files to name.
    auto none = std::make_shared<plan::FileScan>();
    none->data_schema = made_.schema;
    return std::shared_ptr<const plan::FileScan>(std::move(none));
  }

  Result<plan::PlannedRead> PlanRead(const std::vector<plan::ExprPtr>& filters,
                                     const std::vector<plan::Attribute>& columns) const override {
    const auto flag = config_.conf ? config_.conf("spark.sql.python.filterPushdown.enabled") : std::nullopt;
    const bool pushdown = flag && EqualsIgnoreAsciiCase(*flag, "true");
    FLEUVE_ASSIGN(const PushedFilters told, TellFilters(pushdown ? filters : std::vector<plan::ExprPtr>()));
    python::Task task;
    task.kind = "data_source";
    task.header.Set("action", "plan")
        .Set("python_version", made_.source.python_version)
        .Set("schema", made_.schema.ToJson())
        .Set("pushdown", pushdown)
        .Set("filters", told.filters)
        .Set("most_rows", MostRows(config_));
    task.blobs = {made_.instance, told.values};
    task.limits = made_.source.limits;
    auto ran = RunTask(made_.source, task);
    if (!ran.ok()) {
      return SourceError(std::move(ran).error(), "initialize", "reader");
    }
    if (ran->outputs.size() != 2) {
      return Error::Internal("a read of the data source " + name() + " was not planned");
    }
    plan::PlannedRead read;
    FLEUVE_ASSIGN(read.plan, ReadPlan(made_, ran->outputs[0], ran->outputs[1], columns, config_));
    std::vector<bool> accepted(told.filters.size(), false);
    for (const Json& position : ran->result["accepted"].items()) {
      accepted[static_cast<std::size_t>(position.AsInt())] = true;
    }
    for (std::size_t i = 0; i < filters.size() && pushdown; ++i) {
      bool any = false;
      bool all = true;
      for (std::size_t f = 0; f < accepted.size(); ++f) {
        if (told.origin[f] == static_cast<int>(i)) {
          any = true;
          all = all && accepted[f];
        }
      }
      if (any && all) {
        read.applied.push_back(i);
      }
    }
    return read;
  }

 private:
  const MadeSource made_;
  const plan::AnalysisConfig config_;
};

/// The settings of a read as they are now: a stream that joins with the table outlives the session.
plan::AnalysisConfig Frozen(plan::AnalysisConfig config) {
  std::map<std::string, std::string> kept;
  for (const char* key : {"spark.sql.execution.arrow.maxRecordsPerBatch", "spark.sql.execution.pyspark.binaryAsBytes",
                          "spark.sql.python.filterPushdown.enabled"}) {
    if (auto value = config.conf ? config.conf(key) : std::nullopt) {
      kept.emplace(key, *std::move(value));
    }
  }
  config.conf = [kept = std::move(kept)](const std::string& key) -> std::optional<std::string> {
    const auto found = kept.find(key);
    return found == kept.end() ? std::nullopt : std::optional(found->second);
  };
  return config;
}

}  // namespace

plan::Options WithPaths(plan::Options options, const std::vector<std::string>& paths) {
  if (paths.size() == 1) {
    std::erase_if(options, [](const auto& entry) { return EqualsIgnoreAsciiCase(entry.first, "path"); });
    options["path"] = paths[0];
  } else if (paths.size() > 1) {
    Json::Array list;
    for (const std::string& path : paths) {
      list.emplace_back(path);
    }
    options["paths"] = Json(std::move(list)).Dump();
  }
  return options;
}

Result<std::shared_ptr<const plan::TableSource>> OpenTable(const SourceClass& source,
                                                           const std::optional<types::Schema>& schema,
                                                           const plan::Options& options,
                                                           const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(MadeSource made, MakeSource(source, schema, options));
  return std::shared_ptr<const plan::TableSource>(std::make_shared<UserTable>(std::move(made), Frozen(config)));
}

}  // namespace fleuve::connectors::user
