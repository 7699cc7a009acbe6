#pragma once

/// \file
/// The schema tracking log of a stream: which schema, configuration and protocol its rows are read with from which
/// version on, and what the user must have allowed before the stream goes on past a change.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/log_folder.h"
#include "delta/actions.h"
#include "delta/log.h"
#include "plan/resolver.h"

namespace fleuve::connectors::delta {

namespace dl = ::fleuve::delta;

/// One entry, in the members and order of the reference.
struct TrackedMetadata {
  std::string table_id;
  std::int64_t version = 0;
  std::string data_schema_json;
  std::string partition_schema_json;
  std::string source_path;
  std::optional<dl::StringMap> configuration;
  std::optional<dl::Protocol> protocol;
  /// The entry before this one in meaning, where it replaced others.
  std::optional<std::int64_t> previous;

  static Result<TrackedMetadata> Of(const dl::Metadata& metadata, const dl::Protocol& protocol, std::int64_t version,
                                    std::string source_path);
  std::string ToText() const;
  /// DELTA_STREAMING_SCHEMA_LOG_DESERIALIZE_FAILED, DELTA_STREAMING_SCHEMA_LOG_PARSE_SCHEMA_FAILED.
  static Result<TrackedMetadata> Parse(const std::string& text, const std::string& path);
  /// The metadata that a stream reads with: `latest` with what the entry says.
  Result<dl::Metadata> Apply(dl::Metadata latest) const;
};

/// Threads: one at a time.
class SchemaLog {
 public:
  /// Reads the newest entry. \param folder  `<location>/_schema_log_<table id>[_<tracking id>]`.
  /// DELTA_STREAMING_SCHEMA_LOG_INCOMPATIBLE_DELTA_TABLE_ID where it is of another table.
  static Result<SchemaLog> Open(const storage::Location& folder, const std::string& table_id);

  bool empty() const { return number_ < 0; }
  /// Number of the newest entry; -1: none.
  std::int64_t number() const { return number_; }
  const TrackedMetadata& newest() const { return newest_; }
  /// The entry that the newest one follows; nullopt: it is the first.
  Result<std::optional<TrackedMetadata>> Predecessor();
  /// Adds an entry and makes it durable. \param replace  it stands for the newest entry, whose predecessor it takes
  /// over. DELTA_STREAMING_SCHEMA_LOCATION_CONFLICT where another stream has written the number.
  Result<void> Add(TrackedMetadata entry, bool replace);

 private:
  explicit SchemaLog(checkpoint::LogFolder folder) : folder_(std::move(folder)) {}
  Result<TrackedMetadata> Read(std::int64_t number);

  checkpoint::LogFolder folder_;
  std::int64_t number_ = -1;
  TrackedMetadata newest_;
};

/// True where one of schema, partition columns, `delta.` properties and protocol differs (T-11).
Result<bool> IsChange(const TrackedMetadata& before, const TrackedMetadata& after);
/// Consecutive commits after the newest entry that change only metadata or protocol become one entry (T-14).
Result<void> MergeChanges(SchemaLog& log, const dl::DeltaLogPtr& table);
/// The change from the entry before to the newest one must be readable, and allowed by options or settings (T-16).
/// DELTA_SCHEMA_CHANGED_WITH_VERSION, DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION.
Result<void> CheckAllowed(SchemaLog& log, const plan::Options& options, const plan::AnalysisConfig& config);
/// DELTA_STREAMING_METADATA_EVOLUTION: the log has a new entry; a restart reads with it.
Error MetadataEvolution(const TrackedMetadata& entry);

/// A setting as text; nullopt where it is not set.
std::optional<std::string> ConfOf(const plan::AnalysisConfig& config, const std::string& key);
bool BooleanConf(const plan::AnalysisConfig& config, const std::string& key, bool fallback);
/// The schema that a JSON text holds.
Result<types::Schema> SchemaOfJson(const std::string& text);

}  // namespace fleuve::connectors::delta
