#pragma once

/// \file
/// Definitions of a graph out of the messages and the SQL files of a client.

#include <string>
#include <vector>

#include "base/result.h"
#include "pipelines/graph.h"
#include "session/workbench.h"
#include "spark/connect/pipelines.pb.h"

namespace fleuve::pb {
class AutoCdc;
class CreateFlow;
class CreatePipelineDataset;
}  // namespace fleuve::pb

namespace fleuve::pipelines {

/// Takes the properties apart that only a pipeline reads: `pipelines.reset.allowed`, `fleuve.expectations.<name>` (a
/// condition) and `fleuve.expectations.<name>.action` (warn, drop, fail). \param unknown  other `pipelines.*` keys,
/// which are left out.
Result<void> TakeProperties(const plan::Options& properties, Dataset* dataset, std::vector<std::string>* unknown);

/// Each gives the full name of what was defined.
Result<std::vector<std::string>> Define(const spark::connect::PipelineCommand::DefineOutput& output, Graph* graph,
                                        std::vector<std::string>* unknown);
Result<std::vector<std::string>> Define(const spark::connect::PipelineCommand::DefineFlow& flow, Graph* graph);

/// A dataset of SQL without its flow.
Result<Dataset> DatasetOf(const pb::CreatePipelineDataset& create, std::vector<std::string>* unknown);
/// The rules of AUTO CDC.
Result<ChangeRules> RulesOf(const pb::AutoCdc& cdc);

/// Every statement of a file, in order: SET and USE hold for what follows in it.
/// PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR for statements that define nothing.
Result<void> DefineSql(const std::string& text, const std::string& file, session::Workbench& place, Graph* graph,
                       std::vector<std::string>* unknown);

}  // namespace fleuve::pipelines
