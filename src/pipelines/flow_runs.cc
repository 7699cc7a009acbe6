#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "pipelines/changes_internal.h"
#include "pipelines/expectations_internal.h"
#include "pipelines/flow_runs_internal.h"

namespace fleuve::pipelines {

using types::StructField;

namespace {

/// The query's columns as the dataset declares them: order, comments, columns that it does not give as NULL.
Result<plan::PlanPtr> AsDeclared(const plan::PlanPtr& plan, const types::Schema& declared) {
  std::vector<plan::ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (const StructField& field : declared.fields()) {
    const auto found = std::find_if(plan->output.begin(), plan->output.end(), [&](const plan::Attribute& attribute) {
      return !attribute.hidden && EqualsIgnoreAsciiCase(attribute.name, field.name);
    });
    plan::Attribute attribute;
    if (found == plan->output.end() || found->type.Is(types::TypeKind::kVoid)) {
      exprs.push_back(plan::MakeLiteral(types::Value(), field.type));
      attribute.type = field.type;
      attribute.nullable = true;
    } else {
      exprs.push_back(plan::MakeAttribute(*found));
      attribute = *found;
      attribute.qualifier.clear();
    }
    attribute.id = plan::NewAttributeId();
    attribute.name = field.name;
    attribute.metadata = field.metadata;
    attribute.nullable = attribute.nullable && field.nullable;
    output.push_back(std::move(attribute));
  }
  return plan::MakeProject(plan, std::move(exprs), std::move(output));
}

/// Numbers of observe(): by name of the metric.
struct Counts {
  std::vector<std::string> keys;
  std::vector<std::int64_t> values;
  void Add(const std::string& key, std::int64_t value) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i] == key) {
        values[i] += value;
        return;
      }
    }
    keys.push_back(key);
    values.push_back(value);
  }
};

/// Counts of the datasets whose expectations the flow passes: its target and the views that it reads.
void AddQuality(const RunContext& run, const std::map<std::string, Counts>& counts, Json* details) {
  Json quality;
  for (const Dataset& dataset : run.graph.datasets()) {
    const auto found = counts.find(ExpectationLabel(dataset));
    if (found == counts.end()) {
      continue;
    }
    const Json one = QualityOf(dataset, found->second.keys, found->second.values);
    quality.Set("dropped_records", Json(quality["dropped_records"].AsInt() + one["dropped_records"].AsInt()));
    Json::Array all = quality["expectations"].items();
    for (const Json& expectation : one["expectations"].items()) {
      all.push_back(expectation);
    }
    quality.Set("expectations", Json(std::move(all)));
  }
  if (!quality.is_null()) {
    details->Set("data_quality", std::move(quality));
  }
}

std::map<std::string, Counts> CountsOf(const std::vector<engine::ObservedMetrics>& metrics) {
  std::map<std::string, Counts> counts;
  for (const engine::ObservedMetrics& one : metrics) {
    for (std::size_t i = 0; i < one.row.size(); ++i) {
      counts[one.name].Add(one.schema.fields()[i].name, one.row[i].is_null() ? 0 : one.row[i].integer());
    }
  }
  return counts;
}

/// A stream that met changed rows says what its user can do.
Error WithAnswers(const Error& error) {
  static constexpr std::string_view kConditions[] = {"DELTA_SOURCE_TABLE_IGNORE_CHANGES", "DELTA_SOURCE_IGNORE_DELETE",
                                                     "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"};
  if (std::find(std::begin(kConditions), std::end(kConditions), error.condition()) == std::end(kConditions)) {
    return error;
  }
  Error answer(error.kind(), error.condition(),
               error.message() +
                   "\nIn a pipeline there are four answers: skip such commits with the option skipChangeCommits; do a "
                   "full refresh of this table and of those that stream from it; read the change data feed of the "
                   "source and apply it with AUTO CDC; or define the table as a materialized view.");
  for (const auto& [name, value] : error.parameters()) {
    answer = std::move(answer).With(name, value);
  }
  return answer;
}

Result<void> RunMaterializedView(const RunContext& run, std::size_t index, const std::function<void(const char*)>& say,
                                 Json* details) {
  const Flow& flow = run.graph.flows()[index];
  const Dataset& dataset = run.graph.datasets()[*run.graph.FindKey(KeyOf(flow.target))];
  say("PLANNING");
  FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeForRun(run.graph, run.resolved, index, run.stage, run.folder));
  if (dataset.schema) {
    FLEUVE_ASSIGN(plan, AsDeclared(plan, *dataset.schema));
  }
  FLEUVE_ASSIGN(session::Workbench place, run.stage.Place(run.resolved.flows[index].conf, flow.database));
  say("STARTING");
  say("RUNNING");
  session::Fill fill;
  fill.overwrite = true;
  FLEUVE_ASSIGN(const session::Filled filled, place.Write(dataset.name, plan, fill));
  details->Set("maintenance", Json("MAINTENANCE_TYPE_COMPLETE_RECOMPUTE"));
  details->Set("num_output_rows", Json(filled.rows));
  AddQuality(run, CountsOf(filled.metrics), details);
  return {};
}

Result<void> RunOnce(const RunContext& run, std::size_t index, const std::function<void(const char*)>& say,
                     Json* details) {
  const Flow& flow = run.graph.flows()[index];
  const Dataset& dataset = run.graph.datasets()[*run.graph.FindKey(KeyOf(flow.target))];
  if (!dataset.is_table()) {
    return Error::Unsupported("a flow that runs once into a " + KindName(dataset.kind));
  }
  say("PLANNING");
  FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeForRun(run.graph, run.resolved, index, run.stage, run.folder));
  FLEUVE_ASSIGN(session::Workbench place, run.stage.Place(run.resolved.flows[index].conf, flow.database));
  say("STARTING");
  say("RUNNING");
  // The table's log remembers the write: a run that dies before it is struck off does not add the rows twice.
  session::Fill fill;
  FLEUVE_ASSIGN(fill.app_id, run.checkpoints.OnceId(flow));
  FLEUVE_ASSIGN(const session::Filled filled, place.Write(dataset.name, plan, fill));
  details->Set("num_output_rows", Json(filled.rows));
  AddQuality(run, CountsOf(filled.metrics), details);
  return {};
}

Result<void> RunStream(const RunContext& run, std::size_t index, const std::function<void(const char*)>& say,
                       Json* details) {
  const Flow& flow = run.graph.flows()[index];
  const std::size_t target = *run.graph.FindKey(KeyOf(flow.target));
  const Dataset& dataset = run.graph.datasets()[target];
  say("STARTING");
  session::StreamDraft draft;
  FLEUVE_ASSIGN(draft.plan, AnalyzeForRun(run.graph, run.resolved, index, run.stage, run.folder));
  FLEUVE_ASSIGN(session::Workbench place, run.stage.Place(run.resolved.flows[index].conf, flow.database));
  FLEUVE_ASSIGN(draft.checkpoint, run.checkpoints.Folder(flow));
  if (flow.changes) {
    FLEUVE_ASSIGN(draft.sink_provider, MakeChangeSink(run, index));
    draft.format = "autocdc";
  } else if (dataset.kind == DatasetKind::kSink) {
    draft.format = dataset.format;
    draft.options = dataset.options;
  } else {
    draft.table = dataset.name;
    if (!dataset.schema) {
      // A source may have gained columns since the graph was analyzed.
      FLEUVE_ASSIGN(const auto facts, place.Find(dataset.name));
      const types::Schema given = plan::SchemaOf(*draft.plan).AsNullable();
      for (const StructField& field : given.fields()) {
        const bool there = facts && std::any_of(facts->schema.fields().begin(), facts->schema.fields().end(),
                                                [&](const StructField& other) {
                                                  return EqualsIgnoreAsciiCase(other.name, field.name);
                                                });
        if (!there && facts && facts->format == "delta") {
          FLEUVE_TRY(place.AddColumns(dataset.name, given));
          break;
        }
      }
    }
  }
  FLEUVE_ASSIGN(const stream::QueryPtr query, place.Start(draft));
  say("RUNNING");
  auto ended = query->AwaitTermination(std::nullopt, run.stage.token());
  if (run.stage.token()->cancelled()) {
    query->Stop().IgnoreBecause("the run ends as cancelled");
    return run.stage.token()->Check();
  }
  std::map<std::string, Counts> counts;
  std::int64_t rows = 0;
  for (const std::string& text : query->RecentProgress()) {
    const auto progress = Json::Parse(text);
    if (!progress.ok()) {
      continue;
    }
    for (const Json& source : (*progress)["sources"].items()) {
      rows += source["numInputRows"].AsInt();
    }
    for (const auto& [name, metrics] : (*progress)["observedMetrics"].fields()) {
      const auto& fields = metrics["schema"]["fields"].items();
      const auto& values = metrics["values"].items();
      for (std::size_t i = 0; i < fields.size() && i < values.size(); ++i) {
        counts[name].Add(fields[i]["name"].AsString(), values[i].AsInt());
      }
    }
  }
  details->Set("num_input_rows", Json(rows));
  AddQuality(run, counts, details);
  if (!ended.ok()) {
    const Error* cause = ended.error().cause();
    return cause != nullptr ? *cause : ended.error();
  }
  return {};
}

}  // namespace

Result<void> RunFlow(const RunContext& run, std::size_t index, const std::function<void(const char* state)>& say,
                     Json* details) {
  const Flow& flow = run.graph.flows()[index];
  const Dataset& dataset = run.graph.datasets()[*run.graph.FindKey(KeyOf(flow.target))];
  const bool materialized_view = dataset.kind == DatasetKind::kMaterializedView;
  const auto attempt = [&]() -> Result<void> {
    if (materialized_view) {
      return RunMaterializedView(run, index, say, details);
    }
    if (!flow.once) {
      return RunStream(run, index, say, details);
    }
    FLEUVE_ASSIGN(const bool done, run.checkpoints.IsOnceDone(flow));
    if (done) {
      return {};
    }
    FLEUVE_TRY(flow.changes ? RunStream(run, index, say, details) : RunOnce(run, index, say, details));
    return run.checkpoints.SetOnceDone(flow);
  };
  auto done = attempt();
  if (done.ok()) {
    return {};
  }
  if (auto violation = ViolationIn(done.error()); violation) {
    return *std::move(violation);
  }
  return WithAnswers(done.error());
}

}  // namespace fleuve::pipelines
