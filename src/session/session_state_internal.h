#pragma once

/// \file
/// What a session remembers between calls. Private to this room.

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "connectors/user/user_source.h"
#include "engine/engine.h"
#include "plan/resolver.h"
#include "session/session.h"

namespace fleuve::session {

class ListenerBus;

/// How persist() asked for a frame to be kept.
struct StorageLevel {
  bool use_disk = false;
  bool use_memory = false;
  bool use_off_heap = false;
  bool deserialized = false;
  int replication = 1;
};

/// Threads: every method from any thread.
class SessionState {
 public:
  SessionState(Session* session, std::shared_ptr<const Services> services);
  ~SessionState();

  Session& session() { return *session_; }
  const Services& services() const { return *services_; }
  Config& config() { return session_->config(); }
  /// The instance for batch queries, opened at the first call.
  Result<std::shared_ptr<engine::Engine>> Engine();
  /// Settings of an analysis that begins now. `conf` answers for as long as the session lives.
  plan::AnalysisConfig AnalysisSettings();
  /// The same with values that do not follow later changes (a streaming query).
  plan::AnalysisConfig FrozenSettings();

  std::string current_database();
  void set_current_database(std::string name);

  // Temporary views: names without case.
  void PutView(const std::string& name, TemporaryViewPtr view);
  void PutView(const std::string& name, plan::PlanPtr plan);
  TemporaryViewPtr FindView(const std::string& name);
  bool DropView(const std::string& name);
  std::vector<std::pair<std::string, TemporaryViewPtr>> Views();
  void PutGlobalView(const std::string& name, TemporaryViewPtr view);
  void PutGlobalView(const std::string& name, plan::PlanPtr plan);
  TemporaryViewPtr FindGlobalView(const std::string& name);
  bool DropGlobalView(const std::string& name);
  std::vector<std::pair<std::string, TemporaryViewPtr>> GlobalViewList();

  // Plans kept for the client: checkpoint(), foreachBatch.
  void PutRelation(const std::string& id, plan::PlanPtr plan);
  plan::PlanPtr FindRelation(const std::string& id);
  void DropRelation(const std::string& id);

  // SQL functions and variables by lower-case name.
  void PutFunction(const std::string& name, plan::SqlFunction function);
  std::optional<plan::SqlFunction> FindFunction(const std::string& name);
  bool DropFunction(const std::string& name);
  std::vector<std::string> FunctionNames();
  // Data sources in Python by name without case: registered ones, then those of installed modules.
  void PutDataSource(connectors::user::SourceClass source);
  void PutInstalledDataSources(std::vector<connectors::user::SourceClass> sources);
  std::optional<connectors::user::SourceClass> FindDataSource(const std::string& name);
  bool LookedForDataSources();
  void PutVariable(const std::string& name, plan::SessionVariable variable);
  std::optional<plan::SessionVariable> FindVariable(const std::string& name);
  bool DropVariable(const std::string& name);
  void PutVariableDefault(const std::string& name, types::Value value);
  types::Value VariableDefault(const std::string& name);

  // persist(): by the plan's normalized text; tables by full name.
  void Persist(const std::string& plan_text, StorageLevel level);
  void Unpersist(const std::string& plan_text);
  std::optional<StorageLevel> Persisted(const std::string& plan_text);
  void CacheTable(const std::string& name, bool cached);
  bool IsTableCached(const std::string& name);
  void ClearCache();

  // The listener bus: at most one.
  bool StartBus(const OperationPtr& operation);
  void StopBus();
  bool HasBus();

  void CopyTo(SessionState& other);
  void Close();

 private:
  Session* const session_;
  const std::shared_ptr<const Services> services_;

  std::mutex engine_mutex_;
  std::shared_ptr<engine::Engine> engine_;

  std::mutex mutex_;
  std::string current_database_ = "default";
  std::map<std::string, TemporaryViewPtr> views_;
  std::map<std::string, plan::PlanPtr> relations_;
  std::map<std::string, plan::SqlFunction> functions_;
  std::map<std::string, connectors::user::SourceClass> data_sources_;
  bool looked_for_data_sources_ = false;
  std::map<std::string, plan::SessionVariable> variables_;
  std::map<std::string, types::Value> variable_defaults_;
  std::map<std::string, StorageLevel> persisted_;
  std::set<std::string> cached_tables_;
  std::shared_ptr<ListenerBus> bus_;
};

}  // namespace fleuve::session
