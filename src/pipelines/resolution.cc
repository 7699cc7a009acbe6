#include "pipelines/resolution.h"

#include <algorithm>

#include "base/bytes.h"
#include "pipelines/changes_internal.h"
#include "pipelines/stubs_internal.h"
#include "spark/connect/relations.pb.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;
using session::NameScope;
using types::DataType;
using types::StructField;

namespace {

bool IsView(const Dataset& dataset) {
  return dataset.kind == DatasetKind::kTemporaryView || dataset.kind == DatasetKind::kPersistedView;
}

/// A view must be read the way that it gives its rows.
Result<void> CheckViewRead(const Dataset& view, bool view_streams, bool read_streams, session::Workbench& place) {
  if (view_streams == read_streams || view.kind == DatasetKind::kPersistedView ||
      place.session().config().GetOr("pipelines.incompatibleViewCheck.enabled", "true") == "false") {
    return {};
  }
  const std::string name = QuotedName(view.name);
  return Error(
             ErrorKind::kInvalidArgument,
             view_streams ? "INCOMPATIBLE_STREAMING_VIEW_READ" : "INCOMPATIBLE_BATCH_VIEW_READ",
             "View " + name + " is a " + (view_streams ? "streaming" : "batch") +
                 " view and must be referenced using " +
                 (view_streams ? "SparkSession#readStream" : "SparkSession#read") +
                 ". This check can be disabled by setting Spark conf pipelines.incompatibleViewCheck.enabled = false.")
      .With("datasetIdentifier", name);
}

/// The type of a column that two flows give; nullopt: they do not go together.
std::optional<DataType> Merged(const DataType& a, const DataType& b);

std::optional<std::vector<StructField>> MergedFields(const std::vector<StructField>& a,
                                                     const std::vector<StructField>& b) {
  std::vector<StructField> fields = a;
  for (const StructField& field : b) {
    const auto same = std::find_if(fields.begin(), fields.end(), [&](const StructField& other) {
      return EqualsIgnoreAsciiCase(other.name, field.name);
    });
    if (same == fields.end()) {
      fields.push_back(field);
      continue;
    }
    auto type = Merged(same->type, field.type);
    if (!type) {
      return std::nullopt;
    }
    same->type = *std::move(type);
    same->nullable = same->nullable || field.nullable;
  }
  return fields;
}

std::optional<DataType> Merged(const DataType& a, const DataType& b) {
  if (a.EqualsIgnoringNullability(b) || b.Is(types::TypeKind::kVoid)) {
    return a;
  }
  if (a.Is(types::TypeKind::kVoid)) {
    return b;
  }
  if (a.Is(types::TypeKind::kStruct) && b.Is(types::TypeKind::kStruct)) {
    if (auto fields = MergedFields(a.fields(), b.fields()); fields) {
      return DataType::Struct(*std::move(fields));
    }
  }
  return std::nullopt;
}

/// The relation that a flow runs: with the expectations of its target.
std::shared_ptr<const sc::Relation> RelationOf(const Graph& graph, const Flow& flow) {
  const auto target = graph.FindKey(KeyOf(flow.target));
  if (!target) {
    return flow.query;
  }
  const Dataset& dataset = graph.datasets()[*target];
  return WithExpectations(flow.query, dataset, ExpectationLabel(dataset));
}

/// Gives sources that track a schema a place for it.
class SourcePlaces {
 public:
  SourcePlaces(const Flow& flow, const SourceFolder& folder) : flow_(flow), folder_(folder) {}
  plan::Options Fill(const std::string& format, plan::Options options) {
    if (format != "cloudfiles" && format != "read_files" && format != "cloud_files") {
      return options;
    }
    const int source = next_++;
    for (const char* key : {"cloudFiles.schemaLocation", "schemaLocation"}) {
      if (plan::FindOption(options, key) != nullptr) {
        return options;
      }
    }
    options["cloudFiles.schemaLocation"] = folder_(flow_, source);
    return options;
  }

 private:
  const Flow& flow_;
  const SourceFolder& folder_;
  int next_ = 0;
};

class Analysis {
 public:
  Analysis(Graph& graph, Stage& stage, const SourceFolder& folder, const FailureListener& failed)
      : graph_(graph), stage_(stage), folder_(folder), failed_(failed) {
    resolved_.flows.resize(graph.flows().size());
    resolved_.datasets.resize(graph.datasets().size());
    flows_.resize(graph.flows().size());
    states_.resize(graph.datasets().size(), State::kNew);
  }

  Result<ResolvedGraph> Run();

 private:
  friend class StubScope;
  enum class State { kNew, kBusy, kDone };
  struct FlowState {
    bool done = false;
    plan::PlanPtr plan;
    std::optional<Error> error;
    /// The error is that of a flow before it.
    bool upstream = false;
  };

  /// Analyzes the flows of a dataset. The error says only that some of them failed.
  Result<void> Settle(std::size_t dataset);
  void SettleFlow(std::size_t flow);
  Result<plan::PlanPtr> AnalyzeFlow(std::size_t index, bool* upstream);
  Result<void> SchemaOf(std::size_t dataset);
  Error Unresolved() const;
  Error Circular() const;
  Result<void> Confs();
  Result<void> CheckSchemas() const;
  Result<void> CheckQueries() const;
  Result<void> CheckViews() const;
  Result<void> CheckResets() const;
  Result<void> CheckKinds() const;
  /// Tables below a flow, through views.
  void Tables(std::size_t flow, std::set<std::size_t>* tables, std::set<std::size_t>* views) const;

  Graph& graph_;
  Stage& stage_;
  const SourceFolder& folder_;
  const FailureListener& failed_;
  ResolvedGraph resolved_;
  std::vector<FlowState> flows_;
  std::vector<State> states_;
  /// Reader and what it reads.
  std::optional<std::pair<std::size_t, std::size_t>> cycle_;
};

/// Names as a flow sees them while the graph is analyzed.
class StubScope final : public NameScope {
 public:
  StubScope(Analysis& analysis, std::size_t flow, session::Workbench& place)
      : analysis_(analysis),
        flow_(analysis.graph_.flows()[flow]),
        index_(flow),
        place_(place),
        sources_(flow_, analysis.folder_) {}

  Result<std::optional<Answer>> Resolve(const std::vector<std::string>& parts, const plan::Options& options,
                                        bool is_streaming) override {
    const auto found = analysis_.graph_.Find(parts, flow_.database);
    if (!found || analysis_.graph_.datasets()[*found].kind == DatasetKind::kSink) {
      return std::optional<Answer>();
    }
    const Dataset& dataset = analysis_.graph_.datasets()[*found];
    analysis_.resolved_.flows[index_].reads.insert(*found);
    if (analysis_.states_[*found] == Analysis::State::kBusy) {
      if (!analysis_.cycle_) {
        const auto reader = analysis_.graph_.FindKey(KeyOf(flow_.target));
        analysis_.cycle_ = {reader.value_or(*found), *found};
      }
      upstream_ = true;
      return Error(ErrorKind::kInvalidArgument, "", Join(dataset.name, ".") + " is being resolved itself");
    }
    if (auto settled = analysis_.Settle(*found); !settled.ok()) {
      upstream_ = true;
      return settled.error();
    }
    const ResolvedDataset& settled = analysis_.resolved_.datasets[*found];
    Answer answer;
    plan::ResolvedTable table;
    table.qualified_name = dataset.name;
    if (IsView(dataset)) {
      if (settled.flows.empty()) {
        return Error(ErrorKind::kInvalidArgument, "PIPELINE_DATASET_WITHOUT_FLOW",
                     "Pipeline dataset " + QuotedName(dataset.name) + " does not have any defined flows.")
            .With("identifier", QuotedName(dataset.name));
      }
      table.view_plan = analysis_.flows_[settled.flows[0]].plan;
      FLEUVE_TRY(CheckViewRead(dataset, table.view_plan->is_streaming, is_streaming, place_));
    } else if (is_streaming) {
      table.stream = std::make_shared<StubStream>(Join(dataset.name, "."), settled.schema, options);
    } else {
      table.table = std::make_shared<StubTable>(Join(dataset.name, "."), settled.schema);
    }
    answer.table = std::move(table);
    return std::optional<Answer>(std::move(answer));
  }

  plan::Options SourceOptions(const std::string& format, plan::Options options) override {
    return sources_.Fill(format, std::move(options));
  }

  bool upstream() const { return upstream_; }

 private:
  Analysis& analysis_;
  const Flow& flow_;
  const std::size_t index_;
  session::Workbench& place_;
  SourcePlaces sources_;
  bool upstream_ = false;
};

Result<plan::PlanPtr> Analysis::AnalyzeFlow(std::size_t index, bool* upstream) {
  const Flow& flow = graph_.flows()[index];
  std::map<std::string, std::string> conf = graph_.conf();
  for (const auto& [key, value] : flow.conf) {
    conf[key] = value;
  }
  FLEUVE_ASSIGN(session::Workbench place, stage_.Place(conf, flow.database));
  StubScope scope(*this, index, place);
  auto plan = place.Analyze(*RelationOf(graph_, flow), &scope);
  *upstream = scope.upstream();
  FLEUVE_TRY(plan);
  ResolvedFlow& resolved = resolved_.flows[index];
  resolved.is_streaming = (*plan)->is_streaming;
  resolved.schema = plan::SchemaOf(**plan);
  if (flow.changes) {
    FLEUVE_ASSIGN(resolved.schema, ChangeTargetSchema(*flow.changes, *flow.query, resolved.schema, place, &scope));
  }
  return plan;
}

void Analysis::SettleFlow(std::size_t index) {
  FlowState& state = flows_[index];
  if (state.done) {
    return;
  }
  state.done = true;
  resolved_.flows[index].flow = index;
  auto plan = AnalyzeFlow(index, &state.upstream);
  if (plan.ok()) {
    state.plan = *std::move(plan);
    return;
  }
  state.error = plan.error();
}

Result<void> Analysis::Settle(std::size_t dataset) {
  if (states_[dataset] == State::kNew) {
    states_[dataset] = State::kBusy;
    for (const std::size_t flow : resolved_.datasets[dataset].flows) {
      SettleFlow(flow);
    }
    states_[dataset] = State::kDone;
    resolved_.order.push_back(dataset);
  }
  for (const std::size_t flow : resolved_.datasets[dataset].flows) {
    if (flows_[flow].error) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "Failed to read the dataset '" + Join(graph_.datasets()[dataset].name, ".") +
                       "': it could not be resolved itself.")
          .Family(ErrorFamily::kAnalysis);
    }
  }
  return SchemaOf(dataset);
}

Result<void> Analysis::SchemaOf(std::size_t index) {
  ResolvedDataset& dataset = resolved_.datasets[index];
  const Dataset& declared = graph_.datasets()[index];
  if (declared.schema) {
    dataset.schema = *declared.schema;
    return {};
  }
  std::vector<StructField> fields;
  for (const std::size_t flow : dataset.flows) {
    const types::Schema& next = resolved_.flows[flow].schema;
    auto merged = MergedFields(fields, next.fields());
    if (!merged) {
      return Error(ErrorKind::kInvalidArgument, "UNABLE_TO_INFER_PIPELINE_TABLE_SCHEMA",
                   "Failed to infer the schema for table " + QuotedName(declared.name) +
                       " from its upstream flows. Please modify the flows that write to this table to make their "
                       "schemas compatible.\n\nInferred schema so far:\n" +
                       DataType::Struct(fields).SimpleString() + "\n\nIncompatible schema:\n" + next.SimpleString())
          .With("tableName", QuotedName(declared.name))
          .With("inferredDataSchema", DataType::Struct(fields).SimpleString())
          .With("incompatibleDataSchema", next.SimpleString());
    }
    fields = *std::move(merged);
  }
  dataset.schema = DataType::Struct(std::move(fields)).AsNullable();
  return {};
}

Error Analysis::Circular() const {
  const std::string reader = Join(graph_.datasets()[cycle_->first].name, ".");
  const std::string read = Join(graph_.datasets()[cycle_->second].name, ".");
  return Error(
             ErrorKind::kInvalidArgument, "",
             "The datasets '" + reader + "' and '" + read + "' depend on each other: '" + reader + "' reads '" + read +
                 "', and '" + read + "' reads, perhaps through others, '" + reader +
                 "'. Circular dependencies are not supported in a pipeline. Please remove the dependency between them.")
      .Family(ErrorFamily::kAnalysis);
}

Error Analysis::Unresolved() const {
  std::vector<std::string> direct;
  std::vector<std::string> downstream;
  std::string causes;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (!flows_[i].error) {
      continue;
    }
    const std::string name = graph_.flows()[i].display();
    (flows_[i].upstream ? downstream : direct).push_back(name);
    if (!flows_[i].upstream) {
      causes += "\n" + name + ": " + flows_[i].error->ToString();
    }
  }
  return Error(ErrorKind::kInvalidArgument, "",
               "Failed to resolve flows in the pipeline.\n\nA flow fails to resolve because of an error of its own, or "
               "because it reads a dataset that failed to resolve.\n\nFlows with errors: " +
                   Join(direct, ", ") + "\nFlows that failed due to upstream errors: " + Join(downstream, ", ") + "\n" +
                   causes)
      .Family(ErrorFamily::kAnalysis);
}

void Analysis::Tables(std::size_t flow, std::set<std::size_t>* tables, std::set<std::size_t>* views) const {
  for (const std::size_t read : resolved_.flows[flow].reads) {
    if (!IsView(graph_.datasets()[read])) {
      tables->insert(read);
    } else if (views->insert(read).second) {
      for (const std::size_t inner : resolved_.datasets[read].flows) {
        Tables(inner, tables, views);
      }
    }
  }
}

Result<void> Analysis::Confs() {
  for (std::size_t i = 0; i < graph_.flows().size(); ++i) {
    std::set<std::size_t> tables;
    std::set<std::size_t> views;
    Tables(i, &tables, &views);
    std::map<std::string, std::pair<std::string, std::string>> from_views;  // key -> value, flow
    for (const std::size_t view : views) {
      for (const std::size_t inner : resolved_.datasets[view].flows) {
        const Flow& flow = graph_.flows()[inner];
        for (const auto& [key, value] : flow.conf) {
          const auto [other, fresh] = from_views.emplace(key, std::pair(value, flow.display()));
          if (!fresh && other->second.first != value) {
            const std::string dataset = graph_.flows()[i].display();
            return Error(ErrorKind::kInvalidArgument, "DUPLICATE_FLOW_SQL_CONF",
                         "Found duplicate sql conf for dataset '" + dataset + "': '" + key + "' is defined by both '" +
                             other->second.second + "' and '" + flow.display() + "'")
                .With("datasetName", dataset)
                .With("key", key)
                .With("flowName1", other->second.second)
                .With("flowName2", flow.display());
          }
        }
      }
    }
    std::map<std::string, std::string>& conf = resolved_.flows[i].conf;
    conf = graph_.conf();
    for (const auto& [key, value] : from_views) {
      conf[key] = value.first;
    }
    for (const auto& [key, value] : graph_.flows()[i].conf) {
      conf[key] = value;
    }
    const auto target = graph_.FindKey(KeyOf(graph_.flows()[i].target));
    if (target) {
      resolved_.datasets[*target].upstream.insert(tables.begin(), tables.end());
    }
    resolved_.flows[i].tables = std::move(tables);
  }
  return {};
}

Result<void> Analysis::CheckSchemas() const {
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    const Dataset& dataset = graph_.datasets()[i];
    if (!dataset.is_table() || !dataset.schema) {
      continue;
    }
    for (const std::size_t flow : resolved_.datasets[i].flows) {
      const types::Schema& given = resolved_.flows[flow].schema;
      const auto merged = MergedFields(dataset.schema->fields(), given.fields());
      if (merged && DataType::Struct(*merged).EqualsIgnoringNullability(*dataset.schema)) {
        continue;
      }
      const std::string hint =
          dataset.kind == DatasetKind::kStreamingTable
              ? "Streaming tables are stateful and remember data that has already been processed. If you want to "
                "recompute the table from scratch, please full refresh the table."
              : "";
      return Error(ErrorKind::kInvalidArgument, "USER_SPECIFIED_AND_INFERRED_SCHEMA_NOT_COMPATIBLE",
                   "Table '" + Join(dataset.name, ".") +
                       "' has a user-specified schema that is incompatible with the schema inferred from its query.\n" +
                       hint + "\n\nDeclared schema:\n" + dataset.schema->SimpleString() + "\n\nInferred schema:\n" +
                       given.SimpleString())
          .With("tableName", Join(dataset.name, "."))
          .With("streamingTableHint", hint)
          .With("specifiedSchema", dataset.schema->SimpleString())
          .With("inferredDataSchema", given.SimpleString());
    }
  }
  return {};
}

Result<void> Analysis::CheckQueries() const {
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    const Dataset& dataset = graph_.datasets()[i];
    const auto& flows = resolved_.datasets[i].flows;
    const bool changes = std::any_of(flows.begin(), flows.end(),
                                     [&](std::size_t flow) { return graph_.flows()[flow].changes.has_value(); });
    std::vector<std::string> names;
    for (const std::size_t flow : flows) {
      names.push_back(graph_.flows()[flow].display());
    }
    if (dataset.kind == DatasetKind::kMaterializedView && flows.size() > 1) {
      return Error(ErrorKind::kInvalidArgument, "MATERIALIZED_VIEW_WITH_MULTIPLE_QUERIES",
                   "Materialized view " + QuotedName(dataset.name) +
                       " has multiple queries. Materialized views can only have one query associated with them. The "
                       "queries: " +
                       Join(names, ", ") + ".")
          .With("tableName", QuotedName(dataset.name))
          .With("queries", Join(names, ","));
    }
    if (changes && flows.size() > 1) {
      return Error(ErrorKind::kInvalidArgument, "AUTOCDC_MULTIPLE_FLOWS_TO_TARGET",
                   "The table " + QuotedName(dataset.name) +
                       " has an AUTO CDC flow and may have no other flow. Its flows: " + Join(names, ", ") + ".")
          .With("tableName", QuotedName(dataset.name))
          .With("flows", Join(names, ","));
    }
  }
  return {};
}

Result<void> Analysis::CheckViews() const {
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    const Dataset& dataset = graph_.datasets()[i];
    if (dataset.kind != DatasetKind::kPersistedView) {
      continue;
    }
    for (const std::size_t flow : resolved_.datasets[i].flows) {
      for (const std::size_t read : resolved_.flows[flow].reads) {
        const Dataset& other = graph_.datasets()[read];
        if (other.kind == DatasetKind::kTemporaryView) {
          return Error(ErrorKind::kInvalidArgument, "INVALID_TEMP_OBJ_REFERENCE",
                       "Cannot create the persistent object " + QuotedName(dataset.name) +
                           " of the type VIEW because it references to the temporary object " + QuotedName(other.name) +
                           " of the type VIEW. Please make the temporary object " + QuotedName(other.name) +
                           " persistent, or make the persistent object " + QuotedName(dataset.name) + " temporary.")
              .With("objName", QuotedName(dataset.name))
              .With("obj", "VIEW")
              .With("tempObjName", QuotedName(other.name))
              .With("tempObj", "VIEW");
        }
      }
    }
  }
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    const Dataset& dataset = graph_.datasets()[i];
    if (resolved_.datasets[i].flows.empty() && dataset.kind != DatasetKind::kSink) {
      return Error(ErrorKind::kInvalidArgument, "PIPELINE_DATASET_WITHOUT_FLOW",
                   "Pipeline dataset " + QuotedName(dataset.name) +
                       " does not have any defined flows. Please attach a query with the dataset's definition, or "
                       "explicitly define at least one flow that writes to the dataset.")
          .With("identifier", QuotedName(dataset.name));
    }
  }
  return {};
}

Result<void> Analysis::CheckResets() const {
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    const Dataset& dataset = graph_.datasets()[i];
    if (dataset.kind != DatasetKind::kStreamingTable || dataset.resettable) {
      continue;
    }
    std::set<std::size_t> all;
    std::vector<std::size_t> open = {i};
    while (!open.empty()) {
      const std::size_t next = open.back();
      open.pop_back();
      for (const std::size_t upstream : resolved_.datasets[next].upstream) {
        if (all.insert(upstream).second) {
          open.push_back(upstream);
        }
      }
    }
    std::vector<std::string> resettable;
    for (const std::size_t upstream : all) {
      if (graph_.datasets()[upstream].resettable) {
        resettable.push_back(Join(graph_.datasets()[upstream].name, "."));
      }
    }
    if (!resettable.empty()) {
      const std::string name = Join(dataset.name, ".");
      return Error(ErrorKind::kInvalidArgument, "INVALID_RESETTABLE_DEPENDENCY",
                   "Tables " + Join(resettable, ", ") +
                       " are resettable but have a non-resettable downstream dependency '" + name +
                       "'. `reset` will fail as Spark Streaming does not support deleted source data. You can either "
                       "remove the pipelines.reset.allowed=false property from '" +
                       name + "' or add it to its upstream dependencies.")
          .With("upstreamResettableTables", Join(resettable, ", "))
          .With("downstreamTable", name)
          .With("resetAllowedKey", "pipelines.reset.allowed");
    }
  }
  return {};
}

Result<void> Analysis::CheckKinds() const {
  for (std::size_t i = 0; i < graph_.flows().size(); ++i) {
    const Flow& flow = graph_.flows()[i];
    const auto target = graph_.FindKey(KeyOf(flow.target));
    const bool streams = resolved_.flows[i].is_streaming;
    const std::string name = QuotedName(flow.name);
    const std::string table = QuotedName(flow.target);
    const auto wrong = [&](const char* kind, const std::string& text) {
      return Error(ErrorKind::kInvalidArgument, std::string("INVALID_FLOW_QUERY_TYPE.") + kind,
                   "Flow " + name + " returns an invalid relation type. " + text)
          .With("flowIdentifier", name)
          .With("tableIdentifier", table);
    };
    if (!target) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "Flow " + name + " writes to " + table + ", which is no dataset of this pipeline.")
          .Family(ErrorFamily::kAnalysis);
    }
    const Dataset& dataset = graph_.datasets()[*target];
    if (flow.once && streams && !flow.changes) {
      return wrong("STREAMING_RELATION_FOR_ONCE_FLOW",
                   name +
                       " is an append once-flow that is defined by a streaming relation. Append once-flows may only "
                       "be defined by or return a batch relation.");
    }
    switch (dataset.kind) {
      case DatasetKind::kStreamingTable:
      case DatasetKind::kSink:
        if (!streams && !flow.once) {
          return wrong("BATCH_RELATION_FOR_STREAMING_TABLE",
                       "Streaming tables may only be defined by streaming relations, but the flow " + name +
                           " attempts to write a batch relation to the streaming table " + table +
                           ". Consider using the STREAM operator in Spark-SQL to convert the batch relation into a "
                           "streaming relation, or populating the streaming table with an append once-flow instead.");
        }
        break;
      case DatasetKind::kMaterializedView:
        if (streams) {
          return wrong("STREAMING_RELATION_FOR_MATERIALIZED_VIEW",
                       "Materialized views may only be defined by a batch relation, but the flow " + name +
                           " attempts to write a streaming relation to the materialized view " + table + ".");
        }
        break;
      case DatasetKind::kPersistedView:
        if (streams) {
          return wrong("STREAMING_RELATION_FOR_PERSISTED_VIEW",
                       "Persisted views may only be defined by a batch relation, but the flow " + name +
                           " attempts to write a streaming relation to the persisted view " + table + ".");
        }
        break;
      case DatasetKind::kTemporaryView:
        if (flow.changes) {
          return wrong("AUTOCDC_RELATION_FOR_TEMPORARY_VIEW",
                       "The AUTO CDC flow " + name + " cannot write to the temporary view " + table + ".");
        }
        break;
    }
  }
  return {};
}

Result<ResolvedGraph> Analysis::Run() {
  const bool anything = std::any_of(graph_.datasets().begin(), graph_.datasets().end(),
                                    [](const Dataset& dataset) { return dataset.kind != DatasetKind::kTemporaryView; });
  if (!anything) {
    return Error(
        ErrorKind::kInvalidArgument, "RUN_EMPTY_PIPELINE",
        "Pipelines are expected to have at least one non-temporary dataset defined (tables, persisted views) but no "
        "non-temporary datasets were found in your pipeline. Please verify that you have included the expected source "
        "files, and that your source code includes table definitions (e.g., CREATE MATERIALIZED VIEW in SQL code, "
        "@dp.table in python code).");
  }
  for (std::size_t i = 0; i < graph_.flows().size(); ++i) {
    if (const auto target = graph_.FindKey(KeyOf(graph_.flows()[i].target)); target) {
      resolved_.datasets[*target].flows.push_back(i);
    }
  }
  std::optional<Error> schema_error;
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    auto settled = Settle(i);
    if (!settled.ok() && !settled.error().condition().empty() && !schema_error) {
      schema_error = settled.error();
    }
    FLEUVE_TRY(stage_.token()->Check());
  }
  for (std::size_t i = 0; i < graph_.flows().size(); ++i) {
    SettleFlow(i);  // into a name that is no dataset
  }
  if (cycle_) {
    return Circular();
  }
  bool failed = false;
  for (std::size_t i = 0; i < flows_.size(); ++i) {
    if (flows_[i].error) {
      failed = failed || !flows_[i].upstream || !schema_error;
      failed_(graph_.flows()[i], *flows_[i].error, flows_[i].upstream);
    }
  }
  if (failed) {
    return Unresolved();
  }
  for (std::size_t i = 0; i < graph_.datasets().size(); ++i) {
    const auto& flows = resolved_.datasets[i].flows;
    if (graph_.datasets()[i].kind_by_query &&
        std::any_of(flows.begin(), flows.end(), [&](std::size_t flow) { return resolved_.flows[flow].is_streaming; })) {
      graph_.Decide(i, DatasetKind::kStreamingTable);
    }
  }
  FLEUVE_TRY(Confs());
  if (schema_error) {
    return *schema_error;
  }
  FLEUVE_TRY(CheckSchemas());
  FLEUVE_TRY(CheckQueries());
  FLEUVE_TRY(CheckViews());
  FLEUVE_TRY(CheckResets());
  FLEUVE_TRY(CheckKinds());
  return std::move(resolved_);
}

/// Names as a flow sees them when it runs.
class RunScope final : public NameScope {
 public:
  RunScope(const Graph& graph, const ResolvedGraph& resolved, const ResolvedFlow& reader, std::size_t flow,
           Stage& stage, const SourceFolder& folder, SourcePlaces& sources)
      : graph_(graph),
        resolved_(resolved),
        reader_(reader),
        flow_(graph.flows()[flow]),
        stage_(stage),
        folder_(folder),
        sources_(sources) {}

  Result<plan::PlanPtr> Analyze() {
    FLEUVE_ASSIGN(session::Workbench place, stage_.Place(reader_.conf, flow_.database));
    const auto relation = RelationOf(graph_, flow_);
    return place.Analyze(flow_.changes ? *ChangeEvents(*flow_.changes, *relation) : *relation, this);
  }

  Result<std::optional<Answer>> Resolve(const std::vector<std::string>& parts, const plan::Options& options,
                                        bool is_streaming) override {
    (void)options;
    (void)is_streaming;
    const auto found = graph_.Find(parts, flow_.database);
    if (!found || graph_.datasets()[*found].kind == DatasetKind::kSink) {
      return std::optional<Answer>();
    }
    const Dataset& dataset = graph_.datasets()[*found];
    Answer answer;
    if (dataset.kind != DatasetKind::kTemporaryView) {
      answer.renamed = dataset.name;
      return std::optional<Answer>(std::move(answer));
    }
    // The view runs as a part of its reader, with the reader's settings; its sources are the reader's too.
    RunScope inner(graph_, resolved_, reader_, resolved_.datasets[*found].flows.at(0), stage_, folder_, sources_);
    plan::ResolvedTable table;
    FLEUVE_ASSIGN(table.view_plan, inner.Analyze());
    table.qualified_name = dataset.name;
    answer.table = std::move(table);
    return std::optional<Answer>(std::move(answer));
  }

  plan::Options SourceOptions(const std::string& format, plan::Options options) override {
    return sources_.Fill(format, std::move(options));
  }

 private:
  const Graph& graph_;
  const ResolvedGraph& resolved_;
  const ResolvedFlow& reader_;
  const Flow& flow_;
  Stage& stage_;
  const SourceFolder& folder_;
  SourcePlaces& sources_;
};

}  // namespace

std::string ExpectationLabel(const Dataset& dataset) { return "expectations." + KeyOf(dataset.name); }

Result<ResolvedGraph> Resolve(Graph& graph, Stage& stage, const SourceFolder& folder, const FailureListener& failed) {
  return Analysis(graph, stage, folder, failed).Run();
}

Result<plan::PlanPtr> AnalyzeForRun(const Graph& graph, const ResolvedGraph& resolved, std::size_t flow, Stage& stage,
                                    const SourceFolder& folder) {
  SourcePlaces sources(graph.flows()[flow], folder);
  return RunScope(graph, resolved, resolved.flows[flow], flow, stage, folder, sources).Analyze();
}

}  // namespace fleuve::pipelines
