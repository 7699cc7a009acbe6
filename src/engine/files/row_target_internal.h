#pragma once

/// \file
/// Where readers of text formats put rows, and what they share: modes, corrupt records, rescued data, bad records
/// files.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/duckdb_pch.h"
#include "engine/files/format_options_internal.h"
#include "plan/scan.h"

namespace fleuve::engine {

/// The columns of one output chunk that a reader fills. Columns that nobody asked for are null.
struct RowTarget {
  /// One per field of the scan's data schema.
  std::vector<duckdb::Vector*> columns;
  /// The rescued data column where it stands among the constants; else it is among `columns`.
  duckdb::Vector* rescued = nullptr;
};

/// Where malformed records go under option badRecordsPath: `<path>/<time>/bad_records/part-...`. One per scan, made
/// with the first bad record. Threads: any.
class BadRecords {
 public:
  explicit BadRecords(std::string path);
  void Add(const std::string& uri, std::string_view record, std::string_view reason);
  /// A file that could not be read: below bad_files.
  void AddFile(const std::string& uri, std::string_view reason);

 private:
  void Write(const char* folder, std::string line);
  const std::string path_;
  const std::string time_;
  const std::string name_;
  std::mutex mutex_;
};

/// One file, or part of a file, of one format. Raises errors. Threads: one at a time.
class RecordReader {
 public:
  virtual ~RecordReader() = default;
  /// Fills rows 0..n-1 of the target, n <= capacity; 0 at the end.
  virtual duckdb::idx_t Read(RowTarget& target, duckdb::idx_t capacity) = 0;
};

/// The part of a file that one reader reads.
struct FilePart {
  const plan::ScanFile* file = nullptr;
  std::int64_t begin = 0;
  std::int64_t end = -1;  ///< -1: to the end
};

/// What a scan's readers share. Read-only but for `bad_records`.
struct TextScanPlan {
  const plan::FileScan* scan = nullptr;
  /// Index in the data schema of the columns for corrupt records and rescued data; -1 where there is none.
  int corrupt_index = -1;
  int rescued_index = -1;
  std::unique_ptr<BadRecords> bad_records;
  JsonOptions json;
  CsvOptions csv;
  TextOptions text;
  /// Which data columns the query reads.
  std::vector<bool> wanted;
  bool rescued_wanted = false;
};

std::unique_ptr<RecordReader> MakeJsonReader(const TextScanPlan& plan, const FilePart& part);
std::unique_ptr<RecordReader> MakeCsvReader(const TextScanPlan& plan, const FilePart& part);
std::unique_ptr<RecordReader> MakeTextReader(const TextScanPlan& plan, const FilePart& part);

/// MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION of mode FAILFAST.
Error MalformedRecord(const std::string& uri, std::string_view record, std::string_view reason);

void SetText(duckdb::Vector& vector, duckdb::idx_t row, std::string_view text);
void SetNull(duckdb::Vector& vector, duckdb::idx_t row);

}  // namespace fleuve::engine
