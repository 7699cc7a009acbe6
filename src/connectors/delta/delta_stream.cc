#include "connectors/delta/delta_stream.h"

#include <cctype>

#include "base/bytes.h"
#include "connectors/delta/delta_sink_internal.h"
#include "connectors/delta/delta_source_internal.h"

namespace fleuve::connectors::delta {

namespace {

Error TimeTravelRefused() {
  return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
               "Cannot time travel views, subqueries, streams or change data feed queries.")
      .SqlState("0AKDC")
      .Family(ErrorFamily::kAnalysis);
}

Error SchemaNotSet() {
  return Error(ErrorKind::kNotFound, "DELTA_SCHEMA_NOT_SET",
               "Table schema is not set. Write data into it or use CREATE TABLE to set the schema.");
}

/// `/x@v12`, `/x@20240101000000000`.
bool HasVersionSuffix(const std::string& path) {
  const auto at = path.rfind('@');
  if (at == std::string::npos || at + 1 == path.size()) {
    return false;
  }
  const std::string rest = path.substr(at + 1);
  const bool version = (rest[0] == 'v' || rest[0] == 'V') && rest.size() > 1 &&
                       rest.find_first_not_of("0123456789", 1) == std::string::npos;
  const bool time = rest.size() == 17 && rest.find_first_not_of("0123456789") == std::string::npos;
  return version || time;
}

class DeltaSourceProvider final : public SourceProvider {
 public:
  explicit DeltaSourceProvider(std::shared_ptr<dl::LogRegistry> logs) : logs_(std::move(logs)) {}

  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig&) override {
    std::string path;
    if (!request.paths.empty()) {
      path = request.paths.front();
    } else if (const std::string* option = plan::FindOption(request.options, "path")) {
      path = *option;
    }
    if (path.empty()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_PATH_NOT_SET", "'path' is not specified.")
          .SqlState("42601")
          .Family(ErrorFamily::kIllegalArgument);
    }
    if (request.paths.size() > 1) {
      return Error::Unsupported("a Delta stream over several paths");
    }
    for (const char* name : {"versionAsOf", "timestampAsOf"}) {
      if (plan::FindOption(request.options, name) != nullptr) {
        return TimeTravelRefused();
      }
    }
    FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(path));
    const dl::DeltaLogPtr log = logs_->Open(location);
    FLEUVE_ASSIGN(const bool exists, log->Exists());
    if (!exists) {
      return HasVersionSuffix(path) ? TimeTravelRefused() : SchemaNotSet();
    }
    FLEUVE_ASSIGN(const dl::SnapshotPtr snapshot, log->Latest());
    if (snapshot->schema().fields().empty()) {
      return SchemaNotSet();
    }
    types::Schema schema = dl::ReadSchemaOf(snapshot->schema());
    for (const char* name : {"readChangeFeed", "readChangeData"}) {
      FLEUVE_ASSIGN(const bool wanted, BooleanOption(request.options, name, false));
      if (wanted) {
        return Error::Unsupported(std::string("the option '") + name + "' of a Delta stream (the change data feed)");
      }
    }
    if (request.schema && !request.schema->fields().empty()) {
      if (!request.schema->AsNullable().EqualsIgnoringNullability(schema.AsNullable())) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_READ_SOURCE_SCHEMA_CONFLICT",
                     "The schema provided by the user does not match the schema of the Delta table at " +
                         location.path + ". Leave the schema out.");
      }
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2242",
                   "delta does not support user-specified schema.")
          .Family(ErrorFamily::kUnsupportedOperation);
    }
    const std::string name = request.table_name.empty() ? "delta.`" + path + "`" : Join(request.table_name, ".");
    return std::shared_ptr<const plan::StreamRelation>(std::make_shared<DeltaStreamRelation>(
        std::move(schema), name, request.options, location, snapshot->metadata(), snapshot->version()));
  }

  Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                             const SourceContext& context) override {
    auto table = std::dynamic_pointer_cast<const DeltaStreamRelation>(relation);
    if (!table) {
      return Error::Internal("a Delta stream without a Delta relation");
    }
    FLEUVE_ASSIGN(DeltaSourceOptions options, ParseDeltaSourceOptions(table->options()));
    dl::DeltaLogPtr log = logs_->Open(table->location());
    FLEUVE_ASSIGN(dl::SnapshotPtr snapshot, log->Latest());
    types::Schema read = table->schema();
    return std::unique_ptr<Source>(std::make_unique<DeltaSource>(std::move(table), std::move(options), context,
                                                                 std::move(log), std::move(snapshot), std::move(read)));
  }

 private:
  std::shared_ptr<dl::LogRegistry> logs_;
};

class DeltaSinkProvider final : public SinkProvider {
 public:
  explicit DeltaSinkProvider(std::shared_ptr<dl::LogRegistry> logs) : logs_(std::move(logs)) {}

  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext&) override {
    if (spec.output_mode != "append" && spec.output_mode != "complete") {
      std::string mode = spec.output_mode;
      mode[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(mode[0])));
      return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_OUTPUT_MODE",
                   "Data source org.apache.spark.sql.delta.sources.DeltaDataSource does not support " + mode +
                       " output mode")
          .With("dataSource", "org.apache.spark.sql.delta.sources.DeltaDataSource")
          .With("mode", mode)
          .SqlState("0AKDC")
          .Family(ErrorFamily::kAnalysis);
    }
    if (PathOf(spec).empty()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_PATH_NOT_SET", "'path' is not specified.")
          .SqlState("42601")
          .Family(ErrorFamily::kIllegalArgument);
    }
    return {};
  }

  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& context) override {
    const std::string path = PathOf(spec);
    FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(path));
    const std::string shown = spec.table_name.empty() ? path : storage::ToFileUri(location.path);
    return MakeDeltaSink(spec, context, location, "DeltaSink[" + shown + "]", logs_);
  }

 private:
  static std::string PathOf(const SinkSpec& spec) {
    if (!spec.path.empty()) {
      return spec.path;
    }
    const std::string* option = plan::FindOption(spec.options, "path");
    return option == nullptr ? std::string() : *option;
  }

  std::shared_ptr<dl::LogRegistry> logs_;
};

}  // namespace

void RegisterDelta(ConnectorRegistry& registry, std::shared_ptr<dl::LogRegistry> logs) {
  registry.AddSource("delta", std::make_shared<DeltaSourceProvider>(logs));
  registry.AddSink("delta", std::make_shared<DeltaSinkProvider>(logs));
}

}  // namespace fleuve::connectors::delta
