#include "pipelines/run.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

#include "base/big_stack.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/log.h"
#include "pipelines/flow_runs_internal.h"

namespace fleuve::pipelines {

namespace {

/// What becomes of a table in this run.
enum class Choice { kExcluded, kRefresh, kReset };

Error IllegalArgument(const std::string& message) {
  return Error(ErrorKind::kInvalidArgument, "", message).Family(ErrorFamily::kIllegalArgument);
}

Result<void> CheckRequest(const Graph& graph, const RunRequest& request) {
  if (request.full_refresh_all && (!request.full_refresh.empty() || !request.refresh.empty())) {
    return IllegalArgument(request.full_refresh.empty()
                               ? "Cannot specify a subset to refresh when full refresh all is set to true."
                               : "Cannot specify a subset to full refresh when full refresh all is set to true.");
  }
  std::vector<std::string> both;
  for (const std::string& name : request.refresh) {
    for (const std::string& other : request.full_refresh) {
      if (KeyOf(graph.Qualify(Split(name, '.'), graph.database())) ==
          KeyOf(graph.Qualify(Split(other, '.'), graph.database()))) {
        both.push_back(name);
      }
    }
  }
  if (!both.empty()) {
    return IllegalArgument("Datasets specified for refresh and full refresh cannot overlap: " + Join(both, ", "));
  }
  return {};
}

Result<std::vector<Choice>> Choose(const Graph& graph, const RunRequest& request, const Checkpoints& checkpoints) {
  const auto holds = [&](const std::vector<std::string>& names, const Dataset& dataset) {
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return KeyOf(graph.Qualify(Split(name, '.'), graph.database())) == KeyOf(dataset.name);
    });
  };
  const bool some = !request.refresh.empty() || !request.full_refresh.empty();
  std::vector<Choice> choices;
  for (const Dataset& dataset : graph.datasets()) {
    Choice choice = some ? Choice::kExcluded : Choice::kRefresh;
    if (dataset.is_table()) {
      if (holds(request.refresh, dataset)) {
        choice = Choice::kRefresh;
      }
      if (holds(request.full_refresh, dataset)) {
        if (!dataset.resettable) {
          const std::string name = Join(dataset.name, ".");
          return Error(ErrorKind::kInvalidArgument, "TABLE_NOT_RESETTABLE",
                       "The table '" + name +
                           "' cannot be fully refreshed: its property pipelines.reset.allowed is false.")
              .With("tableName", name);
        }
        choice = Choice::kReset;
      }
      if (request.full_refresh_all && dataset.resettable) {
        choice = Choice::kReset;
      }
      if (choice == Choice::kRefresh) {
        // A run that died within a full refresh left the table in between.
        FLEUVE_ASSIGN(const bool pending, checkpoints.IsResetPending(dataset));
        choice = pending ? Choice::kReset : choice;
      }
    }
    choices.push_back(choice);
  }
  return choices;
}

/// A number out of a setting, with or without a unit of seconds.
std::int64_t Number(session::Workbench& place, const std::string& key, std::int64_t fallback) {
  const std::string text = place.session().config().GetOr(key, "");
  return text.empty() ? fallback : std::strtoll(text.c_str(), nullptr, 10);
}

/// Runs flows beside each other, in the order of what they read.
class Scheduler {
 public:
  Scheduler(const RunContext& run, const std::vector<Choice>& choices) : run_(run), choices_(choices) {
    units_.resize(run.graph.flows().size());
  }

  Result<void> Run();

 private:
  enum class State { kIdle, kQueued, kRunning, kDone, kFailed, kSkipped, kExcluded };
  struct Unit {
    State state = State::kIdle;
    int failures = 0;
    std::chrono::steady_clock::time_point not_before;
    std::optional<Error> error;
    std::thread thread;
  };

  bool Finished() const {
    return std::all_of(units_.begin(), units_.end(),
                       [](const Unit& unit) { return unit.state != State::kQueued && unit.state != State::kRunning; });
  }
  /// Nullopt: waits for others.
  std::optional<bool> Ready(std::size_t flow) const;
  void Launch(std::size_t flow);
  void Ended(std::size_t flow, Result<void> outcome, Json details);
  void Say(std::size_t flow, const std::string& level, const std::string& status, const std::string& text,
           Json details = {}) {
    details.Set("status", Json(status));
    details.Set("flow_name", Json(run_.graph.flows()[flow].display()));
    details.Set("dataset_name", Json(Join(run_.graph.flows()[flow].target, ".")));
    const std::string place = run_.graph.flows()[flow].location.ToString();
    if (!place.empty()) {
      details.Set("defined_at", Json(place));
    }
    run_.events.Send(level, "flow_progress", text, std::move(details));
  }

  const RunContext& run_;
  const std::vector<Choice>& choices_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Unit> units_;
  int running_ = 0;
  std::optional<Error> first_error_;
};

std::optional<bool> Scheduler::Ready(std::size_t flow) const {
  bool waits = false;
  for (const std::size_t table : run_.resolved.flows[flow].tables) {
    for (const std::size_t upstream : run_.resolved.datasets[table].flows) {
      const State state = units_[upstream].state;
      if (state == State::kFailed || state == State::kSkipped) {
        return false;
      }
      waits = waits || state == State::kQueued || state == State::kRunning;
    }
  }
  return waits ? std::nullopt : std::optional<bool>(true);
}

void Scheduler::Launch(std::size_t flow) {
  Unit& unit = units_[flow];
  if (unit.thread.joinable()) {
    unit.thread.join();  // of the try before: it has said so and ends
  }
  unit.state = State::kRunning;
  ++running_;
  unit.thread = std::thread([this, flow] {
    Json details;
    Result<void> outcome;
    const std::string name = run_.graph.flows()[flow].display();
    const auto say = [&](const char* state) { Say(flow, "INFO", state, "Flow " + name + " is " + state + "."); };
    RunOnBigStack([&] { outcome = RunFlow(run_, flow, say, &details); });
    Ended(flow, std::move(outcome), std::move(details));
  });
}

void Scheduler::Ended(std::size_t flow, Result<void> outcome, Json details) {
  const std::string name = run_.graph.flows()[flow].display();
  int tries = 1;
  std::int64_t wait_s = 0;
  if (!outcome.ok() && outcome.error().kind() != ErrorKind::kCancelled) {
    auto place = run_.stage.Place(run_.resolved.flows[flow].conf, run_.graph.flows()[flow].database);
    const int failures = units_[flow].failures + 1;  // written by this thread alone
    if (place.ok() && outcome.error().condition() != "EXPECTATION_VIOLATION") {
      tries = 1 + static_cast<int>(Number(*place, "spark.sql.pipelines.maxFlowRetryAttempts", 2));
      const std::int64_t least = Number(*place, "spark.sql.pipelines.execution.watchdog.minRetryTime", 5);
      const std::int64_t most = Number(*place, "spark.sql.pipelines.execution.watchdog.maxRetryTime", 3600);
      wait_s = std::min(most, least << std::min(failures - 1, 30));
    }
    const bool again = failures < tries;
    details.Set("error", Json(outcome.error().ToString()));
    LogWarn("pipeline flow " + name + " failed: " + outcome.error().ToString());
    Say(flow, again ? "WARN" : "ERROR", "FAILED", "Flow '" + name + "' has FAILED.", std::move(details));
  } else if (outcome.ok()) {
    Say(flow, "INFO", "COMPLETED", "Flow " + name + " has COMPLETED.", std::move(details));
  }
  if (auto flushed = run_.events.Flush(); !flushed.ok()) {
    LogWarn("the event log of a pipeline cannot be written: " + flushed.error().ToString());
  }
  std::lock_guard lock(mutex_);
  Unit& unit = units_[flow];
  --running_;
  if (outcome.ok()) {
    unit.state = State::kDone;
  } else {
    ++unit.failures;
    if (unit.failures < tries && outcome.error().kind() != ErrorKind::kCancelled) {
      unit.state = State::kQueued;
      unit.not_before = std::chrono::steady_clock::now() + std::chrono::seconds(wait_s);
    } else {
      unit.state = State::kFailed;
      unit.error = outcome.error();
      if (!first_error_) {
        first_error_ = outcome.error();
      }
    }
  }
  changed_.notify_all();
}

Result<void> Scheduler::Run() {
  for (std::size_t i = 0; i < units_.size(); ++i) {
    const Dataset& target = run_.graph.datasets()[*run_.graph.FindKey(KeyOf(run_.graph.flows()[i].target))];
    if (!target.is_table() && target.kind != DatasetKind::kSink) {
      continue;  // views run inside their readers
    }
    const std::string name = run_.graph.flows()[i].display();
    if (choices_[*run_.graph.FindKey(KeyOf(target.name))] == Choice::kExcluded) {
      units_[i].state = State::kExcluded;
      Say(i, "INFO", "EXCLUDED", "Flow '" + name + "' is EXCLUDED.");
      continue;
    }
    units_[i].state = State::kQueued;
    Say(i, "INFO", "QUEUED", "Flow " + name + " is QUEUED.");
  }
  FLEUVE_ASSIGN(session::Workbench place, run_.stage.Place(run_.graph.conf()));
  const std::int64_t most =
      std::max<std::int64_t>(1, Number(place, "spark.sql.pipelines.execution.maxConcurrentFlows", 16));
  const std::int64_t wake = run_.stage.token()->AddCallback([this] {
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  });
  {
    std::unique_lock lock(mutex_);
    while (!Finished()) {
      if (run_.stage.token()->cancelled()) {
        for (Unit& unit : units_) {
          unit.state = unit.state == State::kQueued ? State::kSkipped : unit.state;
        }
        changed_.wait(lock, [&] { return running_ == 0; });
        break;
      }
      const auto now = std::chrono::steady_clock::now();
      auto next = now + std::chrono::hours(1);
      bool moved = false;
      for (std::size_t i = 0; i < units_.size(); ++i) {
        if (units_[i].state != State::kQueued) {
          continue;
        }
        const auto ready = Ready(i);
        if (ready && !*ready) {
          units_[i].state = State::kSkipped;
          Say(i, "WARN", "SKIPPED",
              "Flow '" + run_.graph.flows()[i].display() + "' SKIPPED due to upstream failure(s).");
          moved = true;
        } else if (ready && running_ < most) {
          if (units_[i].not_before <= now) {
            Launch(i);
          } else {
            next = std::min(next, units_[i].not_before);
          }
        }
      }
      if (!moved && !Finished()) {
        changed_.wait_until(lock, next);
      }
    }
  }
  run_.stage.token()->RemoveCallback(wake);
  for (Unit& unit : units_) {
    if (unit.thread.joinable()) {
      unit.thread.join();
    }
  }
  FLEUVE_TRY(run_.stage.token()->Check());
  if (first_error_) {
    return *first_error_;
  }
  return {};
}

Result<void> Execute(const RunContext& run, const std::vector<Choice>& choices) {
  for (const std::size_t dataset : run.resolved.order) {
    if (run.graph.datasets()[dataset].is_table() && choices[dataset] != Choice::kExcluded) {
      FLEUVE_TRY(run.stage.token()->Check());
      FLEUVE_TRY(Materialize(run, dataset, choices[dataset] == Choice::kReset));
    }
  }
  // Where only some tables are refreshed, a view over others may find nothing yet.
  const bool everything =
      std::none_of(choices.begin(), choices.end(), [](Choice choice) { return choice == Choice::kExcluded; });
  std::optional<Error> unpublished;
  for (const std::size_t dataset : run.resolved.order) {
    if (run.graph.datasets()[dataset].kind == DatasetKind::kPersistedView) {
      if (auto done = PublishView(run, dataset); !done.ok()) {
        const std::string name = Join(run.graph.datasets()[dataset].name, ".");
        Json details;
        details.Set("error", Json(done.error().ToString()));
        run.events.Send(everything ? "ERROR" : "WARN", "dataset_definition",
                        "View '" + name + "' has FAILED to be published.", std::move(details));
        if (everything && !unpublished) {
          unpublished = done.error();
        }
      }
    }
  }
  FLEUVE_TRY(Scheduler(run, choices).Run());
  if (unpublished) {
    return *unpublished;
  }
  return {};
}

}  // namespace

Result<void> RunGraph(Graph graph, const RunRequest& request, session::Session& session,
                      const session::OperationPtr& operation, const CancellationTokenPtr& token) {
  FLEUVE_TRY(CheckRequest(graph, request));
  FLEUVE_ASSIGN(storage::Location root, Checkpoints::Root(request.storage));
  Stage stage(session, token);
  FLEUVE_ASSIGN(session::Workbench place, stage.Place(graph.conf()));
  const session::Services& services = place.services();
  const std::string run_id = NewUuid();
  Checkpoints checkpoints(root);
  std::optional<storage::Location> log;
  if (!request.dry) {
    log = storage::Location{root.store, root.path + "/_events"};
  }
  Events events(operation, log, graph.id(), run_id, services.clock);

  for (const std::string& warning : request.warnings) {
    events.Send("WARN", "graph_created", warning);
  }
  FLEUVE_ASSIGN(const std::vector<Choice> choices, Choose(graph, request, checkpoints));
  const auto choice_of = [&](const Flow& flow) {
    const auto target = graph.FindKey(KeyOf(flow.target));
    return target ? choices[*target] : Choice::kRefresh;
  };
  // While the graph is analyzed, a source that keeps a schema finds the one it has, or writes into a scratch folder.
  const std::string scratch = services.scratch + "/pipeline-" + run_id;
  const SourceFolder analysis_folder = [&](const Flow& flow, int source) -> std::string {
    const std::string own = "/_source_" + std::to_string(source);
    if (choice_of(flow) != Choice::kReset) {
      const auto folder = checkpoints.Folder(flow);
      if (folder.ok() && root.store->Head(*folder + own).ok()) {
        return *folder + own;
      }
    }
    return scratch + "/" + KeyOf(flow.name) + own;
  };
  const auto clean = [&] {
    storage::LocalStore()->DeleteAll(scratch).IgnoreBecause("a scratch folder; the process removes what is left");
  };
  auto resolved = Resolve(graph, stage, analysis_folder, [&](const Flow& flow, const Error& error, bool upstream) {
    Json details;
    details.Set("error", Json(error.ToString()));
    details.Set("flow_name", Json(flow.display()));
    events.Send(upstream ? "WARN" : "ERROR", "flow_definition",
                std::string("Failed to resolve flow") + (upstream ? " due to upstream failure: '" : ": '") +
                    flow.display() + "'.",
                std::move(details));
  });
  clean();
  FLEUVE_TRY(resolved);
  if (!request.dry) {
    const SourceFolder folder = [&](const Flow& flow, int source) {
      const auto found = checkpoints.Folder(flow);
      return (found.ok() ? *found : scratch) + "/_source_" + std::to_string(source);
    };
    const RunContext run{graph, *resolved, stage, checkpoints, events, folder};
    auto done = Execute(run, choices);
    if (!done.ok()) {
      Json details;
      details.Set("state", Json("FAILED"));
      details.Set("error", Json(done.error().ToString()));
      events.Send("ERROR", "update_progress", "", std::move(details));
      events.Flush().IgnoreBecause("the run's own error is told");
      return done;
    }
  }
  Json details;
  details.Set("state", Json("COMPLETED"));
  events.Send("INFO", "update_progress", "Run is COMPLETED.", std::move(details));
  return events.Flush();
}

}  // namespace fleuve::pipelines
