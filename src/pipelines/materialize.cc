#include <algorithm>

#include "base/bytes.h"
#include "pipelines/flow_runs_internal.h"

namespace fleuve::pipelines {

using types::StructField;

namespace {

bool SameNames(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), EqualsIgnoreAsciiCase);
}

Error OtherPartitions(const std::vector<std::string>& wanted, const std::vector<std::string>& there) {
  return Error(ErrorKind::kInvalidArgument, "CANNOT_UPDATE_PARTITION_COLUMNS",
               "Declared partitioning " + Join(wanted, ", ") + " conflicts with existing table partitioning " +
                   Join(there, ", ") +
                   ". Please delete the table or change the declared partitioning to match its partitions.")
      .With("requestedPartitionColumns", Join(wanted, ", "))
      .With("existingPartitionColumns", Join(there, ", "));
}

/// True where `schema` has a column, or a field inside one, that `there` lacks.
bool Lacks(const types::DataType& there, const types::DataType& wanted) {
  if (!there.Is(types::TypeKind::kStruct) || !wanted.Is(types::TypeKind::kStruct)) {
    return false;
  }
  for (const StructField& field : wanted.fields()) {
    const auto same = std::find_if(there.fields().begin(), there.fields().end(), [&](const StructField& other) {
      return EqualsIgnoreAsciiCase(other.name, field.name);
    });
    if (same == there.fields().end() || Lacks(same->type, field.type)) {
      return true;
    }
  }
  return false;
}

}  // namespace

Result<void> Materialize(const RunContext& run, std::size_t index, bool reset) {
  const Dataset& dataset = run.graph.datasets()[index];
  const types::Schema& schema = run.resolved.datasets[index].schema;
  FLEUVE_ASSIGN(session::Workbench place, run.stage.Place(run.graph.conf()));
  FLEUVE_ASSIGN(const auto facts, place.Find(dataset.name));
  const bool streams = dataset.kind == DatasetKind::kStreamingTable;
  if (streams && reset) {
    FLEUVE_TRY(run.checkpoints.BeginReset(dataset));
  }
  if (!facts) {
    session::TableDraft draft;
    draft.name = dataset.name;
    draft.format = dataset.format;
    draft.schema = schema;
    draft.partition_by = dataset.partition_by;
    draft.cluster_by = dataset.cluster_by;
    draft.comment = dataset.comment;
    draft.properties = dataset.properties;
    FLEUVE_TRY(place.Create(draft));
  } else {
    if (facts->is_view) {
      return Error(ErrorKind::kInvalidArgument, "TABLE_OR_VIEW_ALREADY_EXISTS",
                   "Cannot create the " + KindName(dataset.kind) + " " + Join(dataset.name, ".") +
                       " because a view of this name exists.")
          .With("relationName", QuotedName(dataset.name));
    }
    if (!dataset.format.empty() && dataset.format != facts->format) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_CHANGE_PROVIDER",
                   "The table " + Join(dataset.name, ".") + " has the format " + facts->format +
                       ", its definition says " + dataset.format + ": the format of a table cannot be changed.");
    }
    if (!SameNames(dataset.partition_by, facts->partition_by)) {
      return OtherPartitions(dataset.partition_by, facts->partition_by);
    }
    if (!SameNames(dataset.cluster_by, facts->cluster_by)) {
      return OtherPartitions(dataset.cluster_by, facts->cluster_by);
    }
    plan::Options changed;
    for (const auto& [key, value] : dataset.properties) {
      const auto there = facts->properties.find(key);
      if (there == facts->properties.end() || there->second != value) {
        changed[key] = value;
      }
    }
    if (streams && reset) {
      FLEUVE_TRY(place.Empty(dataset.name, schema));
    } else if (streams && Lacks(facts->schema, schema)) {
      FLEUVE_TRY(place.AddColumns(dataset.name, schema.AsNullable()));
    }
    if (!changed.empty()) {
      FLEUVE_TRY(place.SetProperties(dataset.name, changed));
    }
    if (dataset.comment && dataset.comment != facts->comment) {
      FLEUVE_TRY(place.SetComment(dataset.name, dataset.comment));
    }
  }
  if (streams && reset) {
    std::vector<const Flow*> flows;
    for (const std::size_t flow : run.resolved.datasets[index].flows) {
      flows.push_back(&run.graph.flows()[flow]);
    }
    FLEUVE_TRY(run.checkpoints.EndReset(dataset, flows));
  }
  return {};
}

Result<void> PublishView(const RunContext& run, std::size_t index) {
  const Dataset& dataset = run.graph.datasets()[index];
  const std::size_t flow = run.resolved.datasets[index].flows.at(0);
  FLEUVE_ASSIGN(session::Workbench place,
                run.stage.Place(run.resolved.flows[flow].conf, run.graph.flows()[flow].database));
  return place.PublishView(dataset.name, dataset.view_text, *run.graph.flows()[flow].query, dataset.comment,
                           dataset.properties);
}

}  // namespace fleuve::pipelines
