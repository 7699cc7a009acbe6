// Data sources that the user wrote in Python: registered by a client, or offered by an installed module.

#include <spark/connect/commands.pb.h>
#include <spark/connect/relations.pb.h>

#include "base/bytes.h"
#include "base/log.h"
#include "connectors/files/file_table.h"
#include "connectors/sink.h"
#include "session/data_sources_internal.h"
#include "session/executor_internal.h"
#include "session/user_code_internal.h"

namespace fleuve::session {

namespace sc = spark::connect;
using connectors::user::SourceClass;

namespace {

bool IsBuiltIn(const Services& services, const std::string& name) {
  if (connectors::files::IsFileFormat(name) || services.connectors->source(name) != nullptr ||
      services.connectors->sink(name) != nullptr) {
    return true;
  }
  for (const char* known : {"delta", "orc", "avro", "xml", "jdbc", "hive", "socket", "kinesis", "statestore",
                            "state-metadata", "libsvm", "image"}) {
    if (name == known) {
      return true;
    }
  }
  return false;
}

SourceClass PlaceOf(SessionState& state) {
  SourceClass place;
  place.workers = state.services().workers;
  place.setup = WorkerSetupOf(state.session());
  place.limits = WorkerLimitsOf(state.session(), *place.workers);
  return place;
}

}  // namespace

std::optional<SourceClass> FindUserSource(SessionState& state, const std::string& name) {
  const auto& services = state.services();
  if (services.workers == nullptr) {
    return std::nullopt;
  }
  std::optional<SourceClass> found = state.FindDataSource(name);
  if (!found && !IsBuiltIn(services, AsciiLower(name))) {
    if (!state.LookedForDataSources()) {
      auto installed = connectors::user::FindInstalled(PlaceOf(state));
      if (!installed.ok()) {
        LogWarn("no data sources of installed Python modules: " + installed.error().ToString());
        return std::nullopt;
      }
      state.PutInstalledDataSources(*std::move(installed));
    }
    found = state.FindDataSource(name);
  }
  if (found) {
    // What the session has set since: its interpreter, its files, its limits.
    const SourceClass place = PlaceOf(state);
    found->setup = place.setup;
    found->limits = place.limits;
  }
  return found;
}

Result<void> Executor::RegisterDataSource(const sc::CommonInlineUserDefinedDataSource& proto) {
  if (!proto.has_python_data_source()) {
    return Error::Unsupported("a data source in another language than Python");
  }
  if (state_.services().workers == nullptr) {
    return Error::Unsupported("data sources in Python, in a process without Python workers");
  }
  if (IsBuiltIn(state_.services(), AsciiLower(proto.name()))) {
    return Error(ErrorKind::kAlreadyExists, "DATA_SOURCE_ALREADY_EXISTS",
                 "Data source '" + proto.name() +
                     "' already exists. Please choose a different name for the new data source.")
        .With("provider", proto.name());
  }
  SourceClass source = PlaceOf(state_);
  source.name = proto.name();
  source.command = proto.python_data_source().command();
  source.python_version = proto.python_data_source().python_ver();
  state_.PutDataSource(std::move(source));
  return {};
}

Result<void> Executor::WriteUserSource(const SourceClass& source, const plan::PlanPtr& input, tables::SaveMode mode,
                                       const plan::Options& options) {
  if (mode != tables::SaveMode::kAppend && mode != tables::SaveMode::kOverwrite) {
    const std::string shown = mode == tables::SaveMode::kIgnore ? "\"Ignore\"" : "\"ErrorIfExists\"";
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
                 "The data source \"" + source.name + "\" cannot be written in the " + shown +
                     " mode. Please use either the \"Append\" or \"Overwrite\" mode instead.")
        .With("source", source.name)
        .With("createMode", shown);
  }
  FLEUVE_ASSIGN(const auto engine, state_.Engine());
  return connectors::user::WriteRows(*engine, source, input, options, mode == tables::SaveMode::kOverwrite,
                                     state_.AnalysisSettings(), token_);
}

}  // namespace fleuve::session
