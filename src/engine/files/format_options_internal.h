#pragma once

/// \file
/// Options of the text formats, read and checked once. What is not served is refused by name.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/files/date_pattern_internal.h"
#include "plan/scan.h"

namespace fleuve::engine {

/// What a reader does with a record that it cannot make sense of.
enum class ParseMode { kPermissive, kDropMalformed, kFailFast };

/// Options that several formats share.
struct ReadOptions {
  ParseMode mode = ParseMode::kPermissive;
  std::string corrupt_column = "_corrupt_record";
  /// Empty: nothing is rescued.
  std::string rescued_column;
  bool rescued_file_path = true;
  /// Names of fields and headers must match exactly.
  bool case_sensitive = true;
  bool multi_line = false;
  std::string line_separator;
  std::string encoding;
  bool ignore_missing_files = false;
  bool ignore_corrupt_files = false;
  std::string bad_records_path;
  double sampling_ratio = 1.0;
  TimeText times;
  /// Values that do not match a given pattern may be in the default form.
  bool parsing_fallback = false;
};

struct JsonOptions : ReadOptions {
  bool allow_comments = false;
  bool allow_unquoted_names = false;
  bool allow_single_quotes = true;
  bool allow_leading_zeros = false;
  bool allow_non_numeric = true;
  bool allow_backslash_any = false;
  bool allow_control_characters = false;
  bool primitives_as_string = false;
  bool prefers_decimal = false;
  bool infer_timestamp = false;
  bool drop_all_null = false;
  /// A string column takes other values as a JSON writer prints them (12.5 for 12.50), not as they stand in the text.
  bool strings_rewritten = false;
  /// Documents are made of text alone (XML): strings are read as values of any type.
  bool strings_hold_values = false;
  /// `xml` or `avro`: documents stand in files of that format; empty: JSON text. (option fleuve.container)
  std::string container;
};

struct CsvOptions : ReadOptions {
  std::string delimiter = ",";
  char quote = '"';  ///< '\0': none
  char escape = '\\';
  /// '\0': none; else the character that escapes an escape before a quote.
  char escape_escape = '\\';
  char comment = '\0';
  bool header = false;
  bool enforce_schema = true;
  bool infer_schema = false;
  bool prefer_date = true;
  bool trim_leading = false;
  bool trim_trailing = false;
  std::string null_value;
  std::string empty_value;
  std::string nan_value = "NaN";
  std::string positive_infinity = "Inf";
  std::string negative_infinity = "-Inf";
  std::int64_t max_columns = 20480;
  std::int64_t max_column_chars = -1;
  std::int64_t skip_rows = 0;
  bool stop_at_delimiter = true;
  /// Columns are found by each file's own header.
  bool by_header = false;
};

struct TextOptions : ReadOptions {
  bool whole_text = false;
};

/// Bad values: kInvalidArgument; what is not served: kUnsupported; both name the option. \param zone  session zone
Result<JsonOptions> MakeJsonOptions(const plan::Options& options, const std::string& zone);
Result<CsvOptions> MakeCsvOptions(const plan::Options& options, const std::string& zone);
Result<TextOptions> MakeTextOptions(const plan::Options& options, const std::string& zone);

/// Writing.
struct TextWriteOptions {
  TimeText times;
  std::string line_separator = "\n";
  /// none, gzip, bzip2, deflate.
  std::string compression = "none";
  bool ignore_null_fields = true;
  bool escape_non_ascii = false;
  // CSV
  std::string delimiter = ",";
  char quote = '"';
  char escape = '\\';
  char escape_escape = '\\';
  bool quote_all = false;
  bool escape_quotes = true;
  bool header = false;
  bool trim_leading = true;
  bool trim_trailing = true;
  std::string null_value;
  std::string empty_value = "\"\"";
  std::string nan_value = "NaN";
};
Result<TextWriteOptions> MakeTextWriteOptions(plan::FileFormat format, const plan::Options& options,
                                              const std::string& compression, const std::string& zone);

/// `true` / `false` in any letter case. kInvalidArgument naming the option otherwise.
Result<bool> BoolOption(const plan::Options& options, const char* name, bool fallback);

}  // namespace fleuve::engine
