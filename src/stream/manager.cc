#include "stream/manager.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/log.h"
#include "plan/streaming_check.h"
#include "stream/batch_plan_internal.h"
#include "stream/query_internal.h"

namespace fleuve::stream {

namespace {

constexpr std::int64_t kKeepEndedMs = 3600 * 1000;
constexpr std::size_t kKeepEnded = 200;

/// Delivers events to listeners, one at a time, in the order they came. Its thread starts with the first event that has
/// somebody to hear it.
class EventBus {
 public:
  ~EventBus() {
    {
      std::lock_guard lock(mutex_);
      ending_ = true;
      wake_.notify_all();
    }
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  std::int64_t Add(const std::string& session_key, std::shared_ptr<Listener> listener) {
    std::lock_guard lock(mutex_);
    listeners_[next_key_] = {session_key, std::move(listener)};
    return next_key_++;
  }

  void Remove(std::int64_t key) {
    std::unique_lock lock(mutex_);
    listeners_.erase(key);
    // A callback of this listener that runs now is waited for, unless it is the one that removes itself.
    if (std::this_thread::get_id() != thread_.get_id()) {
      idle_.wait(lock, [&] { return delivering_ != key; });
    }
  }

  void Post(EventKind kind, const std::string& session_key, std::string json) {
    std::lock_guard lock(mutex_);
    const bool heard = std::any_of(listeners_.begin(), listeners_.end(),
                                   [&](const auto& entry) { return entry.second.first == session_key; });
    if (!heard) {
      return;
    }
    events_.push_back({kind, session_key, std::move(json)});
    if (!thread_.joinable()) {
      thread_ = std::thread([this] { Loop(); });
    }
    wake_.notify_all();
  }

  /// In the calling thread.
  void Deliver(EventKind kind, const std::string& session_key, const std::string& json) {
    std::vector<std::shared_ptr<Listener>> targets;
    {
      std::lock_guard lock(mutex_);
      for (const auto& [key, entry] : listeners_) {
        if (entry.first == session_key) {
          targets.push_back(entry.second);
        }
      }
    }
    for (const auto& listener : targets) {
      listener->OnEvent(kind, json);
    }
  }

 private:
  struct Event {
    EventKind kind;
    std::string session_key;
    std::string json;
  };

  void Loop() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ending_ || !events_.empty(); });
      if (events_.empty()) {
        return;
      }
      Event event = std::move(events_.front());
      events_.pop_front();
      std::vector<std::int64_t> keys;
      for (const auto& [key, entry] : listeners_) {
        if (entry.first == event.session_key) {
          keys.push_back(key);
        }
      }
      for (const std::int64_t key : keys) {
        auto it = listeners_.find(key);
        if (it == listeners_.end()) {
          continue;
        }
        auto listener = it->second.second;
        delivering_ = key;
        lock.unlock();
        listener->OnEvent(event.kind, event.json);
        lock.lock();
        delivering_ = 0;
        idle_.notify_all();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  std::map<std::int64_t, std::pair<std::string, std::shared_ptr<Listener>>> listeners_;
  std::deque<Event> events_;
  std::int64_t next_key_ = 1;
  std::int64_t delivering_ = 0;
  bool ending_ = false;
  std::thread thread_;
};

/// What awaitAnyTermination knows of a session.
struct SessionEnds {
  bool any_ended = false;
  std::optional<Error> last_failure;
};

/// Shared with the queries, which may outlive the manager for a moment.
struct Registry {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::shared_ptr<MicroBatchQuery>> active;
  std::vector<std::shared_ptr<MicroBatchQuery>> ended;
  std::map<std::string, SessionEnds> sessions;
};

Error NoCheckpointLocation() {
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1298",
               "checkpointLocation must be specified either through option(\"checkpointLocation\", ...) or "
               "SparkSession.conf.set(\"spark.sql.streaming.checkpointLocation\", ...).")
      .Family(ErrorFamily::kAnalysis);
}

class ManagerImpl final : public Manager {
 public:
  explicit ManagerImpl(ManagerOptions options) : host_(std::make_shared<LoopHost>()) {
    host_->options = std::move(options);
    const int at_once = host_->options.budget ? host_->options.budget->threads() : 1;
    host_->engines = EnginePool::Make(host_->options.make_engine, static_cast<std::size_t>(at_once) + 1);
    host_->post = [bus = bus_](EventKind kind, const std::string& session, std::string json) {
      bus->Post(kind, session, std::move(json));
    };
    host_->ended = [registry = registry_](const QueryPtr& query) { Ended(*registry, query); };
  }

  ~ManagerImpl() override { StopAll(0); }

  Result<QueryPtr> Start(QueryRequest request) override;

  std::vector<QueryPtr> Active(const std::string& session_key) const override {
    std::vector<QueryPtr> out;
    std::lock_guard lock(registry_->mutex);
    for (const auto& query : registry_->active) {
      if (query->session_key() == session_key) {
        out.push_back(query);
      }
    }
    return out;
  }

  QueryPtr Get(const std::string& session_key, const std::string& id) const override {
    std::lock_guard lock(registry_->mutex);
    for (const auto& query : registry_->active) {
      if (query->session_key() == session_key && query->id() == id) {
        return query;
      }
    }
    return nullptr;
  }

  QueryPtr Find(const std::string& session_key, const std::string& id, const std::string& run_id) const override {
    std::lock_guard lock(registry_->mutex);
    for (const auto* list : {&registry_->active, &registry_->ended}) {
      for (const auto& query : *list) {
        if (query->session_key() == session_key && query->id() == id && query->run_id() == run_id) {
          return query;
        }
      }
    }
    return nullptr;
  }

  Result<bool> AwaitAny(const std::string& session_key, std::optional<std::int64_t> timeout_ms,
                        const CancellationTokenPtr& token) override {
    auto registry = registry_;
    std::int64_t key = 0;
    if (token) {
      key = token->AddCallback([registry] {
        std::lock_guard lock(registry->mutex);
        registry->changed.notify_all();
      });
    }
    bool ended = false;
    std::optional<Error> failure;
    {
      std::unique_lock lock(registry->mutex);
      const auto done = [&] { return registry->sessions[session_key].any_ended || (token && token->cancelled()); };
      if (timeout_ms) {
        registry->changed.wait_for(lock, std::chrono::milliseconds(*timeout_ms), done);
      } else {
        registry->changed.wait(lock, done);
      }
      ended = registry->sessions[session_key].any_ended;
      failure = registry->sessions[session_key].last_failure;
    }
    if (token) {
      token->RemoveCallback(key);
    }
    if (failure) {
      return *std::move(failure);
    }
    if (!ended && token) {
      FLEUVE_TRY(token->Check());
    }
    return ended;
  }

  void ResetTerminated(const std::string& session_key) override {
    std::lock_guard lock(registry_->mutex);
    registry_->sessions[session_key] = {};
  }

  std::int64_t AddListener(const std::string& session_key, std::shared_ptr<Listener> listener) override {
    return bus_->Add(session_key, std::move(listener));
  }
  void RemoveListener(std::int64_t key) override { bus_->Remove(key); }

  void StopSession(const std::string& session_key) override {
    for (const auto& query : Active(session_key)) {
      query->Stop().IgnoreBecause("a query that does not stop in time ends with the process");
    }
    std::lock_guard lock(registry_->mutex);
    std::erase_if(registry_->ended, [&](const auto& query) { return query->session_key() == session_key; });
    registry_->sessions.erase(session_key);
  }

  void StopAll(std::int64_t grace_ms) override {
    std::vector<std::shared_ptr<MicroBatchQuery>> queries;
    {
      std::lock_guard lock(registry_->mutex);
      stopping_all_ = true;
      queries = registry_->active;
    }
    for (const auto& query : queries) {
      query->RequestGracefulStop();
    }
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(grace_ms);
    for (const auto& query : queries) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (!query->WaitEnded(std::max<std::int64_t>(0, left.count()))) {
        LogWarn(
            "a streaming query did not end its batch in time; the batch is cancelled and runs again at the next start");
        query->Stop().IgnoreBecause("the process ends");
      }
    }
  }

  std::vector<QueryPtr> All() const override {
    std::vector<QueryPtr> out;
    std::lock_guard lock(registry_->mutex);
    out.insert(out.end(), registry_->active.begin(), registry_->active.end());
    out.insert(out.end(), registry_->ended.begin(), registry_->ended.end());
    return out;
  }

 private:
  struct CheckpointPlace {
    storage::Location location;
    bool temporary = false;
    bool given = false;
  };

  static void Ended(Registry& registry, const QueryPtr& query) {
    std::lock_guard lock(registry.mutex);
    auto it = std::find_if(registry.active.begin(), registry.active.end(),
                           [&](const auto& candidate) { return candidate.get() == query.get(); });
    if (it != registry.active.end()) {
      registry.ended.push_back(*it);
      registry.active.erase(it);
    }
    const std::int64_t now = Clock::System()->NowMillis();
    std::erase_if(registry.ended, [&](const auto& ended) {
      return ended.get() != query.get() && ended->ended_at_ms() != 0 && now - ended->ended_at_ms() > kKeepEndedMs;
    });
    if (registry.ended.size() > kKeepEnded) {
      registry.ended.erase(registry.ended.begin());
    }
    auto& session = registry.sessions[query->session_key()];
    session.any_ended = true;
    if (auto failure = query->failure()) {
      session.last_failure = failure->error;
    }
    registry.changed.notify_all();
  }

  Result<CheckpointPlace> ResolveCheckpoint(const QueryRequest& request,
                                            const connectors::SinkProvider& provider) const;
  Result<void> StopRunsOf(const QueryRequest& request, const std::optional<std::string>& id, const std::string& path);
  Result<void> CheckName(const QueryRequest& request) const;
  /// What the sources refuse before the query exists.
  Result<void> CheckSources(const QueryRequest& request, const storage::Location& checkpoint) const;

  std::shared_ptr<EventBus> bus_ = std::make_shared<EventBus>();
  std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
  std::shared_ptr<LoopHost> host_;
  /// One start at a time: names and checkpoints are checked and taken together.
  std::mutex start_mutex_;
  bool stopping_all_ = false;
};

Result<ManagerImpl::CheckpointPlace> ManagerImpl::ResolveCheckpoint(const QueryRequest& request,
                                                                    const connectors::SinkProvider& provider) const {
  CheckpointPlace place;
  std::string uri;
  if (const std::string* option = plan::FindOption(request.sink.options, "checkpointLocation");
      option != nullptr && !option->empty()) {
    uri = *option;
    place.given = true;
  } else {
    const auto parent =
        request.config.conf ? request.config.conf("spark.sql.streaming.checkpointLocation") : std::nullopt;
    if (parent && !parent->empty()) {
      uri = *parent + "/" + (request.name ? *request.name : NewUuid());
      place.given = true;
    } else if (provider.uses_temporary_checkpoint()) {
      uri = host_->options.scratch + "/temporary-" + NewUuid();
      place.temporary = true;
    } else {
      return NoCheckpointLocation();
    }
  }
  FLEUVE_ASSIGN(place.location, storage::Resolve(uri));
  return place;
}

Result<void> ManagerImpl::CheckName(const QueryRequest& request) const {
  if (!request.name) {
    return {};
  }
  for (const auto& query : Active(request.session_key)) {
    if (query->name() == request.name) {
      return Error(ErrorKind::kAlreadyExists, "",
                   "Cannot start query with name " + *request.name +
                       " as a query with that name is already active in this SparkSession")
          .Family(ErrorFamily::kIllegalArgument);
    }
  }
  return {};
}

Result<void> ManagerImpl::StopRunsOf(const QueryRequest& request, const std::optional<std::string>& id,
                                     const std::string& path) {
  std::vector<std::shared_ptr<MicroBatchQuery>> running;
  {
    std::lock_guard lock(registry_->mutex);
    for (const auto& query : registry_->active) {
      if ((id && query->id() == *id) || query->checkpoint_path() == path) {
        running.push_back(query);
      }
    }
  }
  for (const auto& query : running) {
    const auto allowed =
        request.config.conf ? request.config.conf("spark.sql.streaming.stopActiveRunOnRestart") : std::nullopt;
    if (allowed && AsciiLower(*allowed) == "false") {
      return Error(
                 ErrorKind::kConflict, "",
                 "Cannot start query with id " + query->id() +
                     " as another query with same id is already active. Perhaps you are attempting to restart a query "
                     "from checkpoint that is already active. You may stop the old query by setting the SQL "
                     "configuration: spark.conf.set(\"spark.sql.streaming.stopActiveRunOnRestart\", true) and retry.")
          .Family(ErrorFamily::kSpark);
    }
    LogWarn("stopping the run " + query->run_id() + " of query " + query->id() + " because it is started again");
    FLEUVE_TRY(query->Stop());
  }
  return {};
}

Result<void> ManagerImpl::CheckSources(const QueryRequest& request, const storage::Location& checkpoint) const {
  std::map<std::string, std::vector<std::shared_ptr<const plan::StreamRelation>>> by_provider;
  for (const auto& stream : DistinctStreams(request.plan)) {
    by_provider[AsciiLower(stream->provider())].push_back(stream);
  }
  for (const auto& [name, relations] : by_provider) {
    if (connectors::SourceProvider* provider = host_->options.connectors->source(name); provider != nullptr) {
      FLEUVE_TRY(provider->CheckStart(relations, checkpoint, request.config));
    }
  }
  return {};
}

Result<QueryPtr> ManagerImpl::Start(QueryRequest request) {
  if (!request.plan || !request.plan->is_streaming) {
    return Error(ErrorKind::kInvalidArgument, "WRITE_STREAM_NOT_ALLOWED",
                 "`writeStream` can be called only on streaming Dataset/DataFrame.");
  }
  FLEUVE_ASSIGN(request.sink.output_mode, ParseOutputMode(request.sink.output_mode));
  request.sink.format = AsciiLower(request.sink.format);
  const std::shared_ptr<connectors::SinkProvider> own_provider = request.sink_provider;
  connectors::SinkProvider* provider =
      own_provider ? own_provider.get() : host_->options.connectors->sink(request.sink.format);
  if (provider == nullptr) {
    if (host_->options.connectors->source(request.sink.format) != nullptr) {
      return Error(ErrorKind::kInvalidArgument, "STREAMING_OUTPUT_MODE.UNSUPPORTED_DATASOURCE",
                   "Data source " + request.sink.format + " does not support streamed writing.")
          .SqlState("42KDE");
    }
    return Error(ErrorKind::kNotFound, "DATA_SOURCE_NOT_FOUND",
                 "Failed to find the data source: " + request.sink.format +
                     ". Make sure the provider name is correct and the package is properly registered and compatible "
                     "with your version.")
        .With("provider", request.sink.format);
  }
  std::lock_guard start_lock(start_mutex_);
  {
    std::lock_guard lock(registry_->mutex);
    if (stopping_all_) {
      return Error::Cancelled("the server is stopping: no query can be started");
    }
  }
  connectors::SinkContext context;
  context.run_id = NewUuid();
  context.query_name = request.name;
  context.schema = plan::SchemaOf(*request.plan);
  context.config = request.config;
  context.hooks = request.hooks;
  for (const auto& column : request.sink.partition_by) {
    if (!types::FieldIndex(context.schema, column, request.config.case_sensitive)) {
      std::vector<std::string> names;
      for (const auto& field : context.schema.fields()) {
        names.push_back(field.name);
      }
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1196",
                   "Partition column " + column + " not found in existing columns (" + Join(names, ", ") + ").")
          .Family(ErrorFamily::kAnalysis);
    }
  }
  // The sink's own refusals come before those of the plan, as in Spark; the query id is not known yet.
  FLEUVE_TRY(provider->CheckSpec(request.sink, context));
  FLEUVE_ASSIGN(const CheckpointPlace place, ResolveCheckpoint(request, *provider));
  FLEUVE_TRY(CheckName(request));
  if (request.sink.format == "memory" && place.given && request.sink.output_mode != "complete") {
    checkpoint::LogFolder offsets(place.location.store, place.location.path + "/offsets");
    FLEUVE_ASSIGN(const auto names, offsets.List());
    if (!names.empty()) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1299",
                   "This query does not support recovering from checkpoint location. Delete " + place.location.path +
                       "/offsets to start over.")
          .Family(ErrorFamily::kAnalysis);
    }
  }
  FLEUVE_TRY(CheckPlan(request));
  FLEUVE_TRY(CheckSources(request, place.location));
  FLEUVE_ASSIGN(const auto known_id, checkpoint::Checkpoint::ReadQueryId(place.location));
  FLEUVE_TRY(StopRunsOf(request, known_id, place.location.path));
  const auto durability = request.config.conf ? request.config.conf("fleuve.durability") : std::nullopt;
  if (durability && *durability != "strict" && *durability != "process") {
    return Error(ErrorKind::kInvalidArgument, "INVALID_CONF_VALUE.TYPE_MISMATCH",
                 "fleuve.durability is '" + *durability + "': it must be strict or process.");
  }
  const bool sync = !place.temporary && (!durability || *durability == "strict");
  MicroBatchQuery::Parts parts;
  FLEUVE_ASSIGN(parts.checkpoint, checkpoint::Checkpoint::Open(place.location, sync));
  context.query_id = parts.checkpoint->query_id();
  parts.run_id = context.run_id;
  FLEUVE_ASSIGN(parts.sink, provider->MakeSink(request.sink, context));
  parts.temporary_checkpoint = place.temporary;
  parts.host = host_;
  parts.request = std::move(request);
  parts.request.plan = plan::ReplaceStreamingSets(parts.request.plan);
  auto query = std::make_shared<MicroBatchQuery>(std::move(parts));
  {
    std::lock_guard lock(registry_->mutex);
    registry_->active.push_back(query);
  }
  bus_->Deliver(EventKind::kStarted, query->session_key(), query->started_event());
  query->Begin();
  return QueryPtr(query);
}

}  // namespace

plan::StreamingRules RulesOf(const QueryRequest& request) {
  const auto is_on = [&request](const char* key) {
    const auto value = request.config.conf ? request.config.conf(key) : std::nullopt;
    return !value || AsciiLower(*value) != "false";
  };
  plan::StreamingRules rules;
  rules.output_mode = request.sink.output_mode;
  rules.check_correctness = is_on("spark.sql.streaming.statefulOperator.checkCorrectness.enabled");
  rules.allow_multiple = is_on("spark.sql.streaming.statefulOperator.allowMultiple");
  return rules;
}

Result<void> CheckPlan(const QueryRequest& request) {
  FLEUVE_TRY(plan::CheckStreaming(request.plan, RulesOf(request)));
  operators::StatefulOptions options;
  options.output_mode = request.sink.output_mode;
  options.config = request.config;
  auto made = operators::StatefulQuery::Make(request.plan, std::move(options));
  // What no operator here serves is told before the query starts; Spark's own refusals come where Spark has them.
  if (!made.ok() && made.error().condition() == "UNSUPPORTED_FEATURE.FLEUVE") {
    return std::move(made).error();
  }
  return {};
}

std::shared_ptr<Manager> Manager::Make(ManagerOptions options) {
  return std::make_shared<ManagerImpl>(std::move(options));
}

}  // namespace fleuve::stream
