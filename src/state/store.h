#pragma once

/// \file
/// The state of one stateful operator of one query: rows of bytes under keys of bytes, by version.
///
/// Version 0 is empty; batch N makes version N+1 of version N. A batch works on the store in place; `Stage` writes what
/// changed as a changelog file, which must be durable before the sink commits; `Apply` makes the new version the
/// current one. The files alone are the truth: `Open` rebuilds any retained version from the newest snapshot at or
/// before it and the changelogs after it.
///
///   <checkpoint>/state/<operator>/<version>_<attempt>.changes     every version: names the attempt it was made from
///   <checkpoint>/state/<operator>/<version>_<attempt>.snapshot    some versions: all rows, or the last of them
///   <checkpoint>/state/<operator>/<version>_<id>.<n>.part         the rows before
///   <checkpoint>/state/<operator>/_metadata/metadata              operator's number and name, in Spark's form
///   <checkpoint>/state/<operator>/_metadata/schema                spaces with the types of their keys and values
///
/// An attempt is one run of one batch (a UUID). Files are never replaced. A run that was given up leaves a changelog of
/// a version that was never committed; the next run of its batch takes it over (the sink holds that very attempt:
/// `FindChangelog`, then `Open` at it) or removes it before it writes its own. So a committed version has one attempt.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "state/byte_rows.h"
#include "storage/object_store.h"

namespace fleuve::state {

/// Names a space of a store: its position in `StoreSpec::spaces`.
using SpaceId = std::size_t;

/// One kind of rows in a store; keys of different spaces do not meet.
struct SpaceSpec {
  std::string name;
  /// True: every key begins with eight bytes that say its time (`AppendTime`); `Range` is served by an index over them,
  /// and costs what it gives. False: keys are looked up only, or scanned.
  bool timed = false;
  /// The types of keys and values as the operator describes them; compared on restart. `value_note` names further what
  /// must not change (the functions behind the columns).
  std::string key_schema;
  std::string value_schema;
  std::string value_note;
  /// True: as `timed`, but the eight bytes stand in front of every value. Not together with `timed`.
  bool timed_by_value = false;
  /// For who reads the state as a table: the columns of keys and values (schema JSON), times in front left out. Empty:
  /// the space is not to be read so.
  std::string key_columns{};
  std::string value_columns{};
};

/// Memory that the rows of one query's stores may take together; what a batch changed is held beside it until it is
/// committed. Threads: the query's.
struct MemoryBudget {
  std::int64_t limit_bytes = 0;
  std::int64_t used_bytes = 0;
  /// How many stores share it.
  std::int64_t stores = 1;
};

/// What a store is made for.
struct StoreSpec {
  /// `<checkpoint>/state/<operator>` and its store.
  storage::Location folder;
  int operator_id = 0;
  /// Spark's name: stateStoreSave, dedupe, symmetricHashJoin, ...
  std::string operator_name;
  /// Spark's number of partitions, for the metadata file only.
  std::int64_t partitions = 200;
  std::vector<SpaceSpec> spaces;
  /// Versions that can still be opened, counted back from the newest.
  std::int64_t versions_to_retain = 100;
  /// Null: no limit.
  std::shared_ptr<MemoryBudget> budget{};
  /// A folder of this machine where rows may lie that find no room in the store's part of the budget; empty: all rows
  /// stay in memory.
  std::string spill_folder{};
};

/// A version and the attempt that made it. Version 0 has no attempt.
struct Version {
  std::int64_t number = 0;
  std::string attempt;
};

/// What `Stage` wrote: paths that must be synced before the version counts.
struct StagedFiles {
  std::vector<std::string> files;
  std::vector<std::string> folders;
};

/// What a changelog says of itself.
struct ChangelogHeader {
  Version version;
  /// The attempt of the version before it; empty for version 1.
  std::string base_attempt;
  /// The watermark that its batch ended with.
  std::int64_t next_watermark_ms = 0;
};

struct StoreMetrics {
  std::int64_t memory_bytes = 0;
  /// Bytes of the newest changelog.
  std::int64_t changelog_bytes = 0;
};

/// Threads: one caller at a time.
///
/// Errors: CANNOT_LOAD_STATE_STORE.* (kCorrupt, kNotFound) for files that are missing, cut off or not ours;
/// CANNOT_WRITE_STATE_STORE.CANNOT_COMMIT where the changelog cannot be written; FLEUVE_STATE_MEMORY_LIMIT
/// (kResourceExhausted) where the rows outgrow the budget: the query ends, and goes on from its checkpoint with a
/// larger one. Where the process has no memory left, methods throw std::bad_alloc; `Open` and `Discard` serve then.
class Store {
 public:
  virtual ~Store() = default;

  /// Opens `at` (version 0: an empty store; `at.attempt` may be empty where only one attempt of the version exists).
  /// Left-overs of later versions go with the first `Stage`.
  /// STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE, STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE where the folder's schema is
  /// another one. \param schema_check  false: types are not compared (spark.sql.streaming.stateStore.stateSchemaCheck).
  static Result<std::unique_ptr<Store>> Open(const StoreSpec& spec, const Version& at, bool schema_check = true);

  virtual const Version& version() const = 0;

  /// The value of each key; a view without data (`data() == nullptr`) where the key is absent. Views stay valid until
  /// the next change of the store.
  virtual void GetMany(SpaceId space, const ByteRows& keys, std::vector<std::string_view>* values) const = 0;
  virtual std::string_view Get(SpaceId space, std::string_view key) const = 0;
  /// Keys and values side by side; a key that is there gets the new value.
  virtual void PutMany(SpaceId space, const ByteRows& keys, const ByteRows& values) = 0;
  virtual void Put(SpaceId space, std::string_view key, std::string_view value) = 0;
  /// Puts the rows whose keys are absent, the first of equal keys. `added[i]` tells whether row i was put.
  virtual void AddMany(SpaceId space, const ByteRows& keys, const ByteRows& values, std::vector<bool>* added) = 0;
  /// Absent keys are ignored. `Remove` tells whether the key was there.
  virtual void RemoveMany(SpaceId space, const ByteRows& keys) = 0;
  virtual bool Remove(SpaceId space, std::string_view key) = 0;

  /// Rows of a timed space whose time t has from <= t <= to, by ascending time (order within one time is not told).
  /// `visit` gives false to stop; it must not change the store.
  using Visit = std::function<bool(std::string_view key, std::string_view value)>;
  virtual void Range(SpaceId space, std::int64_t from, std::int64_t to, const Visit& visit) const = 0;
  /// Every row of a space, in no order.
  virtual void Scan(SpaceId space, const Visit& visit) const = 0;
  /// Rows in the space.
  virtual std::int64_t row_count(SpaceId space) const = 0;

  /// FLEUVE_STATE_MEMORY_LIMIT where the budget is overrun; asked now and then while rows are put.
  virtual Result<void> CheckMemory() = 0;
  /// Ends a batch: writes its changes (also when there are none) as the changelog of version()+1 under
  /// `attempt`. Nothing is synced.
  virtual Result<StagedFiles> Stage(const std::string& attempt, std::int64_t next_watermark_ms) = 0;
  /// The staged version counts. Where the changelogs since the last snapshot outgrow it, another one is begun: each
  /// call takes it a piece further, and a thread of its own writes and syncs the pieces. Versions out of retention are
  /// removed.
  virtual Result<void> Apply() = 0;
  /// Gives the changes since `version()` up, staged or not; the store is as it was opened or last applied.
  virtual Result<void> Discard() = 0;
  virtual StoreMetrics metrics() const = 0;
};

/// The header of a changelog that was written whole; nullopt where there is none of this version and attempt. An empty
/// attempt stands for the only one of the version.
Result<std::optional<ChangelogHeader>> FindChangelog(const storage::Location& folder, const Version& version);

/// What the `state` folder of a checkpoint holds: operators by number.
struct FoundOperator {
  int id = 0;
  std::string name;
  std::int64_t partitions = 0;
};
/// Empty where there is no state. CANNOT_LOAD_STATE_STORE.UNCATEGORIZED with an explanation where another engine wrote
/// it (no folder of ours, Spark's .delta, .zip or .changelog files).
Result<std::vector<FoundOperator>> FindOperators(const storage::Location& state_folder);

/// What the folder of a store says of it (`_metadata`). kNotFound where there is none.
Result<StoreSpec> ReadSpec(const storage::Location& folder);

/// The value of `stateStore.providerClass` in offsets of queries with state of ours: another engine refuses it by name.
inline constexpr std::string_view kProviderClass = "fleuve.StateStore";
/// The setting by which a session names a class of stores.
inline constexpr const char* kProviderClassKey = "spark.sql.streaming.stateStore.providerClass";
/// The classes that a session may name: Spark's own. Rows in memory, or beyond it on disk; the files in the checkpoint
/// are the same.
inline constexpr const char* kMemoryProviderClass =
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider";
inline constexpr std::string_view kSpillingProviderClass =
    "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider";

/// STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE or ..._VALUE_...: the state has rows of other types. \param where  what
/// follows the two schemas in the message.
Error SchemaNotCompatible(bool key, const std::string& stored, const std::string& wanted, const std::string& where);

/// CANNOT_LOAD_STATE_STORE.`subclass`: what lies in the state cannot be read.
Error CannotLoad(ErrorKind kind, const std::string& subclass, std::string message);

/// Eight bytes that sort as the time does (microseconds, any sign): the beginning of keys in timed spaces.
void AppendTime(std::string& key, std::int64_t micros);
std::int64_t TimeOf(std::string_view key);

}  // namespace fleuve::state
