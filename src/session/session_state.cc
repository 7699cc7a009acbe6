#include "base/bytes.h"
#include "session/listener_bus_internal.h"
#include "session/session_state_internal.h"

namespace fleuve::session {

SessionState::SessionState(Session* session, std::shared_ptr<const Services> services)
    : session_(session), services_(std::move(services)) {}

SessionState::~SessionState() = default;

Result<std::shared_ptr<engine::Engine>> SessionState::Engine() {
  std::lock_guard lock(engine_mutex_);
  if (engine_ == nullptr) {
    FLEUVE_ASSIGN(engine_, services_->make_engine());
  }
  return engine_;
}

namespace {

plan::AnalysisConfig Settings(const Config& config, const Services& services, std::string database) {
  plan::AnalysisConfig settings;
  settings.ansi = config.GetBool("spark.sql.ansi.enabled");
  settings.case_sensitive = config.GetBool("spark.sql.caseSensitive");
  settings.session_zone = config.GetOr("spark.sql.session.timeZone", "UTC");
  settings.now_micros = services.clock->NowMicros();
  settings.current_database = std::move(database);
  settings.current_user = services.user;
  settings.legacy_size_of_null = config.GetBool("spark.sql.legacy.sizeOfNull") && !settings.ansi;
  return settings;
}

}  // namespace

plan::AnalysisConfig SessionState::AnalysisSettings() {
  plan::AnalysisConfig settings = Settings(config(), *services_, current_database());
  settings.conf = [session = session_->weak_from_this()](const std::string& key) -> std::optional<std::string> {
    const auto alive = session.lock();
    return alive == nullptr ? std::nullopt : alive->config().Find(key);
  };
  return settings;
}

plan::AnalysisConfig SessionState::FrozenSettings() {
  plan::AnalysisConfig settings = Settings(config(), *services_, current_database());
  settings.conf = [frozen = std::make_shared<const Config>(config())](const std::string& key) {
    return frozen->Find(key);
  };
  return settings;
}

std::string SessionState::current_database() {
  std::lock_guard lock(mutex_);
  return current_database_;
}

void SessionState::set_current_database(std::string name) {
  std::lock_guard lock(mutex_);
  current_database_ = AsciiLower(name);
}

namespace {

/// A view's name as it is kept: a session that minds case tells `v` and `V` apart.
std::string ViewKey(const Config& config, const std::string& name) {
  return config.GetBool("spark.sql.caseSensitive") ? name : AsciiLower(name);
}

template <typename Map>
auto FindIn(Map& map, const std::string& key) -> typename Map::mapped_type {
  const auto found = map.find(key);
  return found == map.end() ? typename Map::mapped_type{} : found->second;
}

template <typename Map>
auto FindOptionalIn(Map& map, const std::string& name) -> std::optional<typename Map::mapped_type> {
  const auto found = map.find(AsciiLower(name));
  return found == map.end() ? std::nullopt : std::optional<typename Map::mapped_type>(found->second);
}

}  // namespace

namespace {

TemporaryViewPtr ViewOf(plan::PlanPtr plan) {
  auto view = std::make_shared<TemporaryView>();
  view->plan = std::move(plan);
  return view;
}

}  // namespace

void SessionState::PutView(const std::string& name, TemporaryViewPtr view) {
  std::lock_guard lock(mutex_);
  views_[ViewKey(config(), name)].swap(view);  // the old one dies after the lock
}

void SessionState::PutView(const std::string& name, plan::PlanPtr plan) { PutView(name, ViewOf(std::move(plan))); }

TemporaryViewPtr SessionState::FindView(const std::string& name) {
  std::lock_guard lock(mutex_);
  return FindIn(views_, ViewKey(config(), name));
}

bool SessionState::DropView(const std::string& name) {
  std::lock_guard lock(mutex_);
  return views_.erase(ViewKey(config(), name)) > 0;
}

std::vector<std::pair<std::string, TemporaryViewPtr>> SessionState::Views() {
  std::lock_guard lock(mutex_);
  return {views_.begin(), views_.end()};
}

void SessionState::PutGlobalView(const std::string& name, TemporaryViewPtr view) {
  std::lock_guard lock(services_->global_views->mutex);
  services_->global_views->views[ViewKey(config(), name)].swap(view);
}

void SessionState::PutGlobalView(const std::string& name, plan::PlanPtr plan) {
  PutGlobalView(name, ViewOf(std::move(plan)));
}

TemporaryViewPtr SessionState::FindGlobalView(const std::string& name) {
  std::lock_guard lock(services_->global_views->mutex);
  return FindIn(services_->global_views->views, ViewKey(config(), name));
}

bool SessionState::DropGlobalView(const std::string& name) {
  std::lock_guard lock(services_->global_views->mutex);
  return services_->global_views->views.erase(ViewKey(config(), name)) > 0;
}

std::vector<std::pair<std::string, TemporaryViewPtr>> SessionState::GlobalViewList() {
  std::lock_guard lock(services_->global_views->mutex);
  return {services_->global_views->views.begin(), services_->global_views->views.end()};
}

void SessionState::PutRelation(const std::string& id, plan::PlanPtr plan) {
  std::lock_guard lock(mutex_);
  relations_[id] = std::move(plan);
}

plan::PlanPtr SessionState::FindRelation(const std::string& id) {
  std::lock_guard lock(mutex_);
  const auto found = relations_.find(id);
  return found == relations_.end() ? nullptr : found->second;
}

void SessionState::DropRelation(const std::string& id) {
  plan::PlanPtr gone;
  std::lock_guard lock(mutex_);
  if (const auto found = relations_.find(id); found != relations_.end()) {
    gone = std::move(found->second);
    relations_.erase(found);
  }
}

void SessionState::PutFunction(const std::string& name, plan::SqlFunction function) {
  std::lock_guard lock(mutex_);
  functions_[AsciiLower(name)] = std::move(function);
}

std::optional<plan::SqlFunction> SessionState::FindFunction(const std::string& name) {
  std::lock_guard lock(mutex_);
  return FindOptionalIn(functions_, name);
}

bool SessionState::DropFunction(const std::string& name) {
  std::lock_guard lock(mutex_);
  return functions_.erase(AsciiLower(name)) > 0;
}

std::vector<std::string> SessionState::FunctionNames() {
  std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, function] : functions_) {
    names.push_back(name);
  }
  return names;
}

void SessionState::PutDataSource(connectors::user::SourceClass source) {
  std::lock_guard lock(mutex_);
  data_sources_[AsciiLower(source.name)] = std::move(source);
}

void SessionState::PutInstalledDataSources(std::vector<connectors::user::SourceClass> sources) {
  std::lock_guard lock(mutex_);
  for (auto& source : sources) {
    data_sources_.try_emplace(AsciiLower(source.name), std::move(source));
  }
  looked_for_data_sources_ = true;
}

std::optional<connectors::user::SourceClass> SessionState::FindDataSource(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto found = data_sources_.find(AsciiLower(name));
  return found == data_sources_.end() ? std::nullopt : std::optional(found->second);
}

bool SessionState::LookedForDataSources() {
  std::lock_guard lock(mutex_);
  return looked_for_data_sources_;
}

void SessionState::PutVariable(const std::string& name, plan::SessionVariable variable) {
  std::lock_guard lock(mutex_);
  variables_[AsciiLower(name)] = std::move(variable);
}

std::optional<plan::SessionVariable> SessionState::FindVariable(const std::string& name) {
  std::lock_guard lock(mutex_);
  return FindOptionalIn(variables_, name);
}

bool SessionState::DropVariable(const std::string& name) {
  std::lock_guard lock(mutex_);
  return variables_.erase(AsciiLower(name)) > 0;
}

void SessionState::PutVariableDefault(const std::string& name, types::Value value) {
  std::lock_guard lock(mutex_);
  variable_defaults_[AsciiLower(name)] = std::move(value);
}

types::Value SessionState::VariableDefault(const std::string& name) {
  std::lock_guard lock(mutex_);
  return FindIn(variable_defaults_, AsciiLower(name));
}

void SessionState::Persist(const std::string& plan_text, StorageLevel level) {
  std::lock_guard lock(mutex_);
  persisted_[plan_text] = level;
}

void SessionState::Unpersist(const std::string& plan_text) {
  std::lock_guard lock(mutex_);
  persisted_.erase(plan_text);
}

std::optional<StorageLevel> SessionState::Persisted(const std::string& plan_text) {
  std::lock_guard lock(mutex_);
  const auto found = persisted_.find(plan_text);
  return found == persisted_.end() ? std::nullopt : std::optional<StorageLevel>(found->second);
}

void SessionState::CacheTable(const std::string& name, bool cached) {
  std::lock_guard lock(mutex_);
  if (cached) {
    cached_tables_.insert(AsciiLower(name));
  } else {
    cached_tables_.erase(AsciiLower(name));
  }
}

bool SessionState::IsTableCached(const std::string& name) {
  std::lock_guard lock(mutex_);
  return cached_tables_.contains(AsciiLower(name));
}

void SessionState::ClearCache() {
  std::lock_guard lock(mutex_);
  persisted_.clear();
  cached_tables_.clear();
}

bool SessionState::StartBus(const OperationPtr& operation) {
  std::shared_ptr<ListenerBus> bus;
  {
    std::lock_guard lock(mutex_);
    if (bus_ != nullptr) {
      return false;
    }
    bus_ = std::make_shared<ListenerBus>(services_->queries, session_->key().ToString(), operation);
    bus = bus_;
  }
  bus->Start([session = session_->weak_from_this()] {
    if (const auto alive = session.lock(); alive != nullptr) {
      alive->state().StopBus();
    }
  });
  return true;
}

void SessionState::StopBus() {
  std::shared_ptr<ListenerBus> bus;
  {
    std::lock_guard lock(mutex_);
    bus = std::move(bus_);
    bus_ = nullptr;
  }
  if (bus != nullptr) {
    bus->Stop();
  }
}

bool SessionState::HasBus() {
  std::lock_guard lock(mutex_);
  return bus_ != nullptr;
}

void SessionState::CopyTo(SessionState& other) {
  std::scoped_lock lock(mutex_, other.mutex_);
  other.current_database_ = current_database_;
  other.views_ = views_;
  other.functions_ = functions_;
  other.data_sources_ = data_sources_;
  other.looked_for_data_sources_ = looked_for_data_sources_;
  other.variables_ = variables_;
  other.variable_defaults_ = variable_defaults_;
  other.relations_ = relations_;
}

void SessionState::Close() {
  StopBus();
  std::map<std::string, TemporaryViewPtr> views;
  std::map<std::string, plan::PlanPtr> relations;
  std::shared_ptr<engine::Engine> engine;
  {
    std::lock_guard lock(mutex_);
    views.swap(views_);
    relations.swap(relations_);
    functions_.clear();
    data_sources_.clear();
    variables_.clear();
    persisted_.clear();
    cached_tables_.clear();
  }
  std::lock_guard lock(engine_mutex_);
  engine.swap(engine_);
}

}  // namespace fleuve::session
