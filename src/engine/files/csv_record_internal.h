#pragma once

/// \file
/// The fields of one CSV record, and the records of a file, with the quoting rules of the parser that Spark uses.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/format_options_internal.h"

namespace fleuve::engine {

/// One field: its text without quotes. An empty field has `is_empty_quoted` set where quotes stood there.
struct CsvField {
  std::string_view text;
  bool is_empty_quoted = false;
};

/// Spark's rules for headers: empty names become `_c0`, equal names get their place behind them.
std::vector<std::string> CsvColumnNames(const std::vector<std::string>& header, bool case_sensitive,
                                        const std::string& null_value);

/// Splits records. Threads: one at a time.
class CsvSplitter {
 public:
  explicit CsvSplitter(const CsvOptions& options) : options_(options) {}

  enum class Outcome { kOk, kOpenQuote, kTooManyColumns, kTooLongColumn, kUnescapedQuote };
  /// Splits one record. The texts live until the next call or as long as `record`.
  /// kOpenQuote: the record ended inside quotes (the fields are those found so far, the last one cut).
  Outcome Split(std::string_view record);
  const std::vector<CsvField>& fields() const { return fields_; }

 private:
  struct Quoted {
    std::size_t next = 0;
    bool open = false;
    bool bad = false;
  };
  Quoted ParseQuoted(std::string_view record, std::size_t begin, std::string& out);
  std::string_view Trim(std::string_view text) const;

  const CsvOptions& options_;
  std::vector<CsvField> fields_;
  /// Storage of fields that are not verbatim in the record.
  std::vector<std::unique_ptr<std::string>> texts_;
  std::size_t used_texts_ = 0;
};

/// The records of (part of) a file: blank lines and comments left out, several lines joined where quotes hold a line
/// break and `multiLine` is set. Threads: one at a time.
class CsvRecords {
 public:
  CsvRecords(const CsvOptions& options, std::unique_ptr<ByteStream> stream, std::int64_t begin, std::int64_t end);
  /// False at the end. The text lives until the next call; `splitter().fields()` holds its fields. A record beyond the
  /// limits of maxColumns and maxCharsPerColumn is an error without a condition.
  Result<bool> Next(std::string_view* record, CsvSplitter::Outcome* outcome);
  /// The next record is not split (count(*) without columns).
  Result<bool> NextUnsplit(std::string_view* record);
  const CsvSplitter& splitter() const { return splitter_; }

 private:
  Result<bool> NextLine(std::string_view* line);
  Result<bool> NextRecord(std::string_view* record, CsvSplitter::Outcome* outcome);
  /// Adds what ended the last line to a record that goes on inside quotes: \n where it is the file's usual line end.
  void AppendLineBreak();

  const CsvOptions& options_;
  LineReader lines_;
  CsvSplitter splitter_;
  std::string joined_;
  /// What ended the file's first line.
  std::string usual_end_;
  const bool normalizes_;
  std::int64_t rows_to_skip_;
};

}  // namespace fleuve::engine
