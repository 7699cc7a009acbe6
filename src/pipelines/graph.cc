#include "pipelines/graph.h"

#include "base/bytes.h"
#include "session/workbench.h"
#include "types/data_type.h"

namespace fleuve::pipelines {

std::string KindName(DatasetKind kind) {
  switch (kind) {
    case DatasetKind::kStreamingTable:
      return "streaming table";
    case DatasetKind::kMaterializedView:
      return "materialized view";
    case DatasetKind::kTemporaryView:
      return "temporary view";
    case DatasetKind::kPersistedView:
      return "persisted view";
    case DatasetKind::kSink:
      break;
  }
  return "sink";
}

std::string CodeLocation::ToString() const {
  return file.empty() ? "" : line > 0 ? file + ":" + std::to_string(line) : file;
}

std::string QuotedName(const std::vector<std::string>& name) {
  std::string out;
  for (const std::string& part : name) {
    out += (out.empty() ? "" : ".") + types::QuoteIdentifier(part);
  }
  return out;
}

std::string KeyOf(const std::vector<std::string>& name) { return AsciiLower(Join(name, ".")); }

std::string Flow::display() const { return Join(name, "."); }

Graph::Graph(std::string id, std::string catalog, std::string database, std::map<std::string, std::string> conf)
    : id_(std::move(id)), catalog_(std::move(catalog)), database_(AsciiLower(database)), conf_(std::move(conf)) {}

std::vector<std::string> Graph::Qualify(const std::vector<std::string>& parts, const std::string& database) const {
  return session::FullName(parts, catalog_, database);
}

std::optional<std::size_t> Graph::FindKey(const std::string& key) const {
  const auto found = dataset_of_.find(key);
  return found == dataset_of_.end() ? std::nullopt : std::optional<std::size_t>(found->second);
}

std::optional<std::size_t> Graph::Find(const std::vector<std::string>& parts, const std::string& database) const {
  if (parts.size() == 1) {
    // Views and sinks of the graph have names of one part.
    if (const auto found = FindKey(AsciiLower(parts[0])); found) {
      return found;
    }
  }
  if (parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "live")) {
    // How older programs mark a dataset of the graph.
    if (const auto found = Find({parts[1]}, database); found) {
      return found;
    }
  }
  if (parts.empty() || parts.size() > 3 || parts.back().find('/') != std::string::npos) {
    return std::nullopt;
  }
  return FindKey(KeyOf(Qualify(parts, database)));
}

Result<std::vector<std::string>> Graph::Add(Dataset dataset, const std::string& database) {
  const std::string written = Join(dataset.name, ".");
  const bool single = dataset.kind == DatasetKind::kTemporaryView || dataset.kind == DatasetKind::kSink;
  if (single && dataset.name.size() != 1) {
    const bool view = dataset.kind == DatasetKind::kTemporaryView;
    return Error(ErrorKind::kInvalidArgument,
                 view ? "MULTIPART_TEMPORARY_VIEW_NAME_NOT_SUPPORTED" : "MULTIPART_SINK_NAME_NOT_SUPPORTED",
                 std::string(view ? "Temporary view" : "Sink") + " with multipart name '" + written +
                     "' is not supported.")
        .With(view ? "viewName" : "sinkName", written);
  }
  if (!single) {
    dataset.name = Qualify(dataset.name, database);
  }
  const std::string key = KeyOf(dataset.name);
  const auto [found, fresh] = dataset_of_.emplace(key, datasets_.size());
  if (!fresh) {
    const std::string before = KindName(datasets_[found->second].kind);
    const std::string now = KindName(dataset.kind);
    return Error(ErrorKind::kInvalidArgument, "PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT",
                 "A duplicate identifier was found for elements registered in the pipeline's dataflow graph. Attempted "
                 "to register a " +
                     now + " with identifier " + QuotedName(dataset.name) + ", but a " + before +
                     " has already been registered with that identifier. Please ensure all outputs created within this "
                     "pipeline have unique identifiers.")
        .With("outputName", QuotedName(dataset.name))
        .With("outputType1", now)
        .With("outputType2", before);
  }
  if (single) {
    // Flows that came before it took it for a table.
    for (Flow& flow : flows_) {
      const bool meant = flow.target.size() == 3 && flow.target[1] == flow.database && flow.target[2] == key;
      if (meant && !FindKey(KeyOf(flow.target))) {
        flow_of_.erase(KeyOf(flow.name));
        flow.name = {flow.name.back()};
        flow.target = dataset.name;
        flow_of_.emplace(KeyOf(flow.name), static_cast<std::size_t>(&flow - flows_.data()));
      }
    }
  }
  datasets_.push_back(std::move(dataset));
  return datasets_.back().name;
}

Result<std::vector<std::string>> Graph::Add(Flow flow) {
  const auto target = Find(flow.target, flow.database);
  const bool into_view_or_sink = target && (datasets_[*target].kind == DatasetKind::kTemporaryView ||
                                            datasets_[*target].kind == DatasetKind::kSink);
  flow.is_default = flow.is_default || KeyOf(flow.name) == KeyOf(flow.target);
  if (target) {
    flow.target = datasets_[*target].name;
  } else {
    flow.target = Qualify(flow.target, flow.database);
  }
  if (flow.is_default) {
    flow.name = flow.target;
  } else if (flow.name.size() != 1) {
    const std::string name = Join(flow.name, ".");
    return Error(ErrorKind::kInvalidArgument, "MULTIPART_FLOW_NAME_NOT_SUPPORTED",
                 "Flow with multipart name '" + name + "' is not supported.")
        .With("flowName", name);
  } else if (!into_view_or_sink) {
    flow.name = {flow.target[0], flow.target[1], flow.name[0]};
  }
  if (const auto other = FindKey(KeyOf(flow.name)); other && !flow.is_default) {
    const std::string name = QuotedName(flow.name);
    return Error(ErrorKind::kInvalidArgument, "FLOW_NAME_CONFLICTS_WITH_TABLE",
                 "Flow name " + name + " conflicts with the " + KindName(datasets_[*other].kind) +
                     " of the same name. Choose a unique name for the flow.")
        .With("flowName", name);
  }
  const auto [found, fresh] = flow_of_.emplace(KeyOf(flow.name), flows_.size());
  if (!fresh) {
    const std::string names = QuotedName(flows_[found->second].target) + ", " + QuotedName(flow.target);
    // Two queries for one materialized view are told apart from two flows that merely share a name.
    return Error(ErrorKind::kInvalidArgument, "PIPELINE_DUPLICATE_IDENTIFIERS.FLOW",
                 "A duplicate identifier was found for elements registered in the pipeline's dataflow graph. Flow " +
                     QuotedName(flow.name) + " was found in multiple datasets: " + names)
        .With("flowName", QuotedName(flow.name))
        .With("datasetNames", names);
  }
  flows_.push_back(std::move(flow));
  return flows_.back().name;
}

}  // namespace fleuve::pipelines
