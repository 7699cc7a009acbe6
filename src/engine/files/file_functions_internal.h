#pragma once

/// \file
/// Table functions that read files of text formats, and writers for them.
///
/// Readers: `fleuve_json`, `fleuve_csv`, `fleuve_text`, `fleuve_binary`. Their only argument is a BIGINT, the number of
/// the leaf: `RunState::Of(context).LeafAt(number)` gives the FileScan (keep the shared_ptr<Leaf> in the bind data).
/// They return all output columns of the node in order (data, partition, constants, `_metadata` if asked for), named
/// c0, c1, ..., with the carrier types (engine/carriers_internal.h). They support projection pushdown, no filter
/// pushdown, several threads (one file, or one range of a file, per task), give `get_partition_data` so that DuckDB
/// keeps the order of files and lines (batch index ascending with file and position), add every row to `Leaf::rows`,
/// and check `RunState::CheckCancelled` at least every 10 ms. Zero projected columns (count(*)) must work: set the
/// cardinality only.

#include <memory>
#include <string>

#include "engine/duckdb_pch.h"
#include "engine/engine.h"
#include "plan/scan.h"

namespace fleuve::engine {

/// Registers the readers above in an instance.
void RegisterFileReaders(duckdb::DatabaseInstance& db);
/// Puts one table function into an instance's catalog.
void InstallTableFunction(duckdb::DatabaseInstance& db, duckdb::TableFunction function);

/// Writes rows of one schema to one file. Throws through RaiseError. Threads: one at a time.
class RowFileWriter {
 public:
  virtual ~RowFileWriter() = default;
  /// \param rows  columns in the schema's order, carrier types; flat or not.
  virtual void Write(duckdb::DataChunk& rows) = 0;
  /// Bytes written so far (about).
  virtual std::int64_t bytes() const = 0;
  /// Ends and closes the file; not synced. Returns its size.
  virtual std::int64_t Finish() = 0;
};

/// A writer of JSON lines, CSV or text. Options that are not served are refused by name. Raises.
std::unique_ptr<RowFileWriter> MakeRowFileWriter(const WriteSpec& spec, const types::Schema& schema,
                                                 const std::string& path);
/// File name extension with compression for a text format: `.json`, `.csv.gz`, ...
std::string RowFileExtension(const WriteSpec& spec);

}  // namespace fleuve::engine
