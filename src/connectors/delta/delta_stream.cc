#include "connectors/delta/delta_stream.h"

#include <cctype>
#include <set>

#include "base/bytes.h"
#include "connectors/delta/delta_sink_internal.h"
#include "connectors/delta/delta_source_internal.h"
#include "connectors/delta/upsert_internal.h"
#include "tables/options.h"

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

/// `file:/x` and `file:///x` are `/x`.
std::string PathOfUri(const std::string& uri) {
  auto location = storage::Resolve(uri);
  return location.ok() ? location->path : uri;
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

/// Where the schema of the stream is tracked; nullopt: it is not.
Result<std::optional<storage::Location>> TrackingOf(const plan::Options& options, const std::string& table_id,
                                                    const plan::AnalysisConfig& config) {
  FLEUVE_ASSIGN(auto folder, TrackingFolder(options, table_id));
  if (!folder) {
    return folder;
  }
  if (!BooleanConf(config, "spark.databricks.delta.streaming.schemaTracking.enabled", true)) {
    return Error(ErrorKind::kUnsupported, "", "Schema tracking location is not supported for Delta streaming source")
        .Family(ErrorFamily::kUnsupportedOperation);
  }
  if (BooleanConf(config, "spark.databricks.delta.streaming.unsafeReadOnIncompatibleColumnMappingSchemaChanges.enabled",
                  false)) {
    return std::optional<storage::Location>();
  }
  return folder;
}

Result<void> CheckTracking(SchemaLog& tracked, const DeltaStreamRelation& table, const DeltaSourceOptions& options,
                           const SourceContext& context) {
  if (tracked.empty()) {
    return {};
  }
  if (tracked.number() != table.tracked_entry()) {
    return MetadataEvolution(tracked.newest());
  }
  if (!options.fail_on_data_loss) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "requirement failed: Using schema evolution with failOnDataLoss=false is not supported")
        .Family(ErrorFamily::kIllegalArgument);
  }
  const std::string path = storage::ToFileUri(context.metadata_path);
  if (BooleanConf(context.config, "spark.databricks.delta.streaming.schemaTracking.metadataPathCheck.enabled", true) &&
      !tracked.newest().source_path.empty() && PathOfUri(tracked.newest().source_path) != PathOfUri(path)) {
    return Error(
               ErrorKind::kInvalidArgument, "",
               "requirement failed: The Delta source metadata path used for execution '" + path +
                   "' is different from the one persisted for previous processing '" + tracked.newest().source_path +
                   "'. Please check if the schema location has been reused across different streaming sources. Pick a "
                   "new `schemaTrackingLocation` or use `streamingSourceTrackingId` to distinguish between streaming "
                   "sources.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  return CheckAllowed(tracked, table.options(), context.config);
}

/// withEventTimeOrder needs a watermark whose column can be followed down to this source alone.
Result<void> CheckEventTime(const DeltaSourceOptions& options, const SourceContext& context) {
  const bool wanted = options.with_event_time_order.value_or(
      BooleanConf(context.config, "spark.databricks.delta.withEventTimeOrder.enabled", false));
  if (!wanted || !context.event_time || options.has_start()) {
    return {};
  }
  if (options.read_change_feed) {
    return Error::Unsupported("the option 'withEventTimeOrder' together with 'readChangeFeed'");
  }
  std::string refusal = context.event_time->refusal;
  if (refusal.empty() && !context.event_time->time->type.Is(types::TypeKind::kTimestamp) &&
      !context.event_time->time->type.Is(types::TypeKind::kTimestampNtz)) {
    refusal = "the event time is no timestamp";
  }
  if (!refusal.empty()) {
    return Error(ErrorKind::kUnsupported, "FLEUVE_EVENT_TIME_ORDER_UNSUPPORTED",
                 "withEventTimeOrder cannot be used here: " + refusal + ".")
        .Family(ErrorFamily::kUnsupportedOperation);
  }
  return {};
}

class DeltaSourceProvider final : public SourceProvider {
 public:
  explicit DeltaSourceProvider(std::shared_ptr<dl::LogRegistry> logs) : logs_(std::move(logs)) {}

  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig& config) override {
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
    dl::Metadata metadata = snapshot->metadata();
    FLEUVE_ASSIGN(auto tracking, TrackingOf(request.options, metadata.id, config));
    std::int64_t entry = -1;
    if (tracking) {
      FLEUVE_ASSIGN(SchemaLog tracked, SchemaLog::Open(*tracking, metadata.id));
      if (BooleanConf(config, "spark.databricks.delta.streaming.schemaTracking.mergeConsecutiveSchemaChanges.enabled",
                      true)) {
        FLEUVE_TRY(MergeChanges(tracked, log));
      }
      entry = tracked.number();
      if (!tracked.empty()) {
        FLEUVE_ASSIGN(metadata, tracked.newest().Apply(std::move(metadata)));
      }
    }
    FLEUVE_ASSIGN(const types::Schema stored, SchemaOfJson(metadata.schema_string));
    types::Schema schema = dl::ReadSchemaOf(stored);
    FLEUVE_ASSIGN(const bool feed, ReadsChangeFeed(request.options));
    if (feed) {
      schema = tables::WithChangeFields(schema);
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
    auto relation = std::make_shared<DeltaStreamRelation>(std::move(schema), name, request.options, location,
                                                          std::move(metadata), snapshot->version());
    if (tracking) {
      relation->Track(*std::move(tracking), entry);
    }
    return std::shared_ptr<const plan::StreamRelation>(std::move(relation));
  }

  Result<void> CheckStart(const std::vector<std::shared_ptr<const plan::StreamRelation>>& relations,
                          const storage::Location& checkpoint, const plan::AnalysisConfig& config) override {
    std::set<std::string> taken;
    for (const auto& relation : relations) {
      const auto* table = dynamic_cast<const DeltaStreamRelation*>(relation.get());
      if (table == nullptr || !table->tracking()) {
        continue;
      }
      const storage::Location& folder = *table->tracking();
      const bool is_below = folder.store == checkpoint.store && folder.path.starts_with(checkpoint.path + "/");
      if (!is_below &&
          !BooleanConf(config, "spark.databricks.delta.streaming.allowSchemaLocationOutsideCheckpointLocation",
                       false)) {
        const std::string location = folder.path.substr(0, folder.path.rfind('/'));
        return Error(ErrorKind::kInvalidArgument, "DELTA_STREAMING_SCHEMA_LOCATION_NOT_UNDER_CHECKPOINT",
                     "Schema location '" + location + "' must be placed under checkpoint location '" + checkpoint.path +
                         "'.")
            .With("schemaTrackingLocation", location)
            .With("checkpointLocation", checkpoint.path);
      }
      if (!taken.insert(folder.path).second) {
        return Error(
                   ErrorKind::kConflict, "DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT",
                   "Detected conflicting schema location '" + folder.path +
                       "' while streaming from table or table located at '" + table->location().path +
                       "'.\nAnother stream may be reusing the same schema location, which is not allowed.\nPlease "
                       "provide a new unique `schemaTrackingLocation` path or `streamingSourceTrackingId` as a reader "
                       "option for one of the streams from this table.")
            .With("loc", folder.path)
            .With("table", table->location().path);
      }
    }
    return {};
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
    FLEUVE_ASSIGN(const types::Schema stored, SchemaOfJson(table->metadata().schema_string));
    types::Schema read = dl::ReadSchemaOf(stored);
    std::optional<SchemaLog> tracked;
    if (table->tracking()) {
      FLEUVE_ASSIGN(tracked, SchemaLog::Open(*table->tracking(), snapshot->metadata().id));
      FLEUVE_TRY(CheckTracking(*tracked, *table, options, context));
    }
    FLEUVE_TRY(CheckEventTime(options, context));
    return std::unique_ptr<Source>(std::make_unique<DeltaSource>(std::move(table), std::move(options), context,
                                                                 std::move(log), std::move(snapshot), std::move(read),
                                                                 std::move(tracked)));
  }

 private:
  std::shared_ptr<dl::LogRegistry> logs_;
};

class DeltaSinkProvider final : public SinkProvider {
 public:
  explicit DeltaSinkProvider(std::shared_ptr<dl::LogRegistry> logs) : logs_(std::move(logs)) {}

  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext&) override {
    FLEUVE_ASSIGN(const auto upsert, ParseUpsertOptions(spec.options, spec.output_mode));
    if (!upsert && spec.output_mode != "append" && spec.output_mode != "complete") {
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
    // The other options are only looked at when a batch is written.
    for (const char* name : {"mergeSchema", "optimizeWrite"}) {
      FLEUVE_TRY(tables::FlagOption(spec.options, name));
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
