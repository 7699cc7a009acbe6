#include <algorithm>
#include <cctype>
#include <charconv>

#include "engine/files/containers_internal.h"
#include "engine/files/format_options_internal.h"
#include "engine/infer.h"

namespace fleuve::engine {

namespace {

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// A value that an option cannot have, where Spark's readers give the error no condition.
Error BadValue(const std::string& name, const std::string& value, const std::string& wanted,
               ErrorFamily family = ErrorFamily::kIllegalArgument) {
  return Error(ErrorKind::kInvalidArgument, "",
               "Invalid value '" + value + "' for option '" + name + "': " + wanted + ".")
      .Family(family);
}

/// A switch of CSV; Spark names those that are neither true nor false.
Result<bool> FlagOption(const plan::Options& options, const char* name, bool fallback) {
  auto flag = BoolOption(options, name, fallback);
  if (flag.ok()) {
    return flag;
  }
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2147",
               std::string(name) + " flag can be true or false.")
      .With("paramName", name)
      .Family(ErrorFamily::kSpark);
}

/// Refuses an encoding that Spark's readers and writers of text do not know; `reader` is the class that says so.
Result<void> CheckEncoding(const std::string& encoding, const char* reader) {
  static constexpr std::string_view kKnown[] = {"iso-8859-1", "us-ascii", "utf-16", "utf-16be",
                                                "utf-16le",   "utf-32",   "utf-8"};
  static constexpr std::string_view kOthers[] = {"utf8", "ascii", "latin1", "iso8859_1", "utf-32be", "utf-32le"};
  const std::string name = Lower(encoding);
  if (std::ranges::find(kKnown, name) != std::end(kKnown) || std::ranges::find(kOthers, name) != std::end(kOthers)) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.CHARSET",
               "The value of parameter(s) `charset` in `" + std::string(reader) +
                   "` is invalid: expects one of the iso-8859-1, us-ascii, utf-16, utf-16be, utf-16le, utf-32, utf-8, "
                   "but got " +
                   encoding + ".")
      .With("parameter", "`charset`")
      .With("functionName", "`" + std::string(reader) + "`")
      .With("charset", encoding)
      .With("charsets", "iso-8859-1, us-ascii, utf-16, utf-16be, utf-16le, utf-32, utf-8")
      .Family(ErrorFamily::kIllegalArgument);
}

/// The first of several names of one option that is set.
const std::string* FindAny(const plan::Options& options, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const std::string* value = plan::FindOption(options, name)) {
      return value;
    }
  }
  return nullptr;
}

std::string TextOption(const plan::Options& options, std::initializer_list<const char*> names,
                       const std::string& fallback) {
  const std::string* value = FindAny(options, names);
  return value != nullptr ? *value : fallback;
}

Result<std::int64_t> IntOption(const plan::Options& options, const char* name, std::int64_t fallback) {
  const std::string* value = plan::FindOption(options, name);
  if (value == nullptr) {
    return fallback;
  }
  std::int64_t parsed = 0;
  const auto [end, code] = std::from_chars(value->data(), value->data() + value->size(), parsed);
  if (code != std::errc() || end != value->data() + value->size()) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2146",
                 std::string(name) + " should be an integer. Found " + *value + ".")
        .With("paramName", name)
        .With("value", *value)
        .Family(ErrorFamily::kRuntime);
  }
  return parsed;
}

/// One character, or nothing: `\t`, `\\`, `\u0000` and the like are understood as Spark does.
Result<char> CharOption(const plan::Options& options, std::initializer_list<const char*> names, char fallback) {
  const char* first = *names.begin();
  const std::string* value = FindAny(options, names);
  if (value == nullptr) {
    return fallback;
  }
  if (value->empty()) {
    return '\0';
  }
  if (*value == "\\u0000" || *value == "\\0") {
    return '\0';
  }
  if (value->size() == 1) {
    return (*value)[0];
  }
  if (*value == "\\t") {
    return '\t';
  }
  if (*value == "\\\\") {
    return '\\';
  }
  if (*value == "\\\"") {
    return '"';
  }
  if (*value == "\\'") {
    return '\'';
  }
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2145",
               std::string(first) + " cannot be more than one character.")
      .With("paramName", first)
      .Family(ErrorFamily::kRuntime);
}

Result<std::string> SeparatorOption(const plan::Options& options) {
  const std::string value = TextOption(options, {"sep", "delimiter"}, ",");
  if (value.empty()) {
    return BadValue("sep", value, "the delimiter cannot be empty");
  }
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] != '\\') {
      out.push_back(value[i]);
      continue;
    }
    if (i + 1 == value.size()) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_DELIMITER_VALUE.SINGLE_BACKSLASH",
                   "Invalid value for delimiter. Single backslash is prohibited. It has special meaning as beginning "
                   "of an escape sequence. To get the backslash character, pass a string with two backslashes as the "
                   "delimiter.");
    }
    const char next = value[++i];
    switch (next) {
      case 't':
        out.push_back('\t');
        break;
      case 'r':
        out.push_back('\r');
        break;
      case 'b':
        out.push_back('\b');
        break;
      case 'f':
        out.push_back('\f');
        break;
      case '\\':
      case '"':
      case '\'':
        out.push_back(next);
        break;
      case 'u':
        if (value.substr(i - 1) == "\\u0000") {
          out.push_back('\0');
          i += 4;
          break;
        }
        [[fallthrough]];
      default:
        return Error(ErrorKind::kInvalidArgument, "INVALID_DELIMITER_VALUE.UNSUPPORTED_SPECIAL_CHARACTER",
                     "Invalid value for delimiter. Unsupported special character for delimiter: " + value + ".");
    }
  }
  return out;
}

Result<void> RefuseSet(const plan::Options& options, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (plan::FindOption(options, name) != nullptr) {
      return Error::Unsupported(std::string("option ") + name + " of file sources");
    }
  }
  return {};
}

Result<void> CheckLocale(const plan::Options& options) {
  if (const std::string* locale = plan::FindOption(options, "locale")) {
    const std::string name = Lower(*locale);
    if (name != "en-us" && name != "en_us" && name != "us" && name != "en") {
      return Error::Unsupported("option locale with value " + *locale);
    }
  }
  return {};
}

Result<void> FillShared(const plan::Options& options, const std::string& zone, ReadOptions& out) {
  const std::string mode = Lower(TextOption(options, {"mode"}, "permissive"));
  out.mode = mode == "dropmalformed" ? ParseMode::kDropMalformed
             : mode == "failfast"    ? ParseMode::kFailFast
                                     : ParseMode::kPermissive;
  out.corrupt_column = TextOption(options, {"columnNameOfCorruptRecord"}, "_corrupt_record");
  out.rescued_column = TextOption(options, {"rescuedDataColumn"}, "");
  FLEUVE_ASSIGN(out.rescued_file_path, BoolOption(options, "fleuve.rescuedFilePath", true));
  FLEUVE_ASSIGN(out.case_sensitive, BoolOption(options, "readerCaseSensitive", true));
  FLEUVE_ASSIGN(out.multi_line, BoolOption(options, "multiLine", false));
  out.line_separator = TextOption(options, {"lineSep"}, "");
  if (const std::string* separator = plan::FindOption(options, "lineSep"); separator != nullptr && separator->empty()) {
    return BadValue("lineSep", "", "'lineSep' cannot be an empty string");
  }
  out.encoding = TextOption(options, {"encoding", "charset"}, "");
  FLEUVE_ASSIGN(out.ignore_missing_files, BoolOption(options, "ignoreMissingFiles", false));
  FLEUVE_ASSIGN(out.ignore_corrupt_files, BoolOption(options, "ignoreCorruptFiles", false));
  out.bad_records_path = TextOption(options, {"badRecordsPath"}, "");
  if (const std::string* ratio = plan::FindOption(options, "samplingRatio")) {
    char* end = nullptr;
    out.sampling_ratio = std::strtod(ratio->c_str(), &end);
    if (end == ratio->c_str() || *end != '\0') {
      return BadValue("samplingRatio", *ratio, "must be a number", ErrorFamily::kNumberFormat);
    }
    if (!(out.sampling_ratio > 0)) {
      return BadValue("samplingRatio", *ratio, "samplingRatio should be greater than 0");
    }
  }
  const std::string date = TextOption(options, {"dateFormat"}, "");
  const std::string timestamp = TextOption(options, {"timestampFormat"}, "");
  const std::string ntz = TextOption(options, {"timestampNTZFormat"}, "");
  FLEUVE_ASSIGN(out.times,
                TimeText::Make(date, timestamp, ntz, TextOption(options, {"timeZone", "timestampZone"}, zone)));
  FLEUVE_ASSIGN(out.parsing_fallback, BoolOption(options, "enableDateTimeParsingFallback", false));
  FLEUVE_TRY(CheckLocale(options));
  FLEUVE_TRY(RefuseSet(options, {"singleVariantColumn"}));
  return {};
}

}  // namespace

Result<bool> BoolOption(const plan::Options& options, const char* name, bool fallback) {
  const std::string* value = plan::FindOption(options, name);
  if (value == nullptr) {
    return fallback;
  }
  const std::string text = Lower(*value);
  if (text == "true") {
    return true;
  }
  if (text == "false") {
    return false;
  }
  return BadValue(name, *value, "must be true or false");
}

Result<JsonOptions> MakeJsonOptions(const plan::Options& options, const std::string& zone) {
  JsonOptions out;
  FLEUVE_TRY(FillShared(options, zone, out));
  FLEUVE_ASSIGN(out.allow_comments, BoolOption(options, "allowComments", false));
  FLEUVE_ASSIGN(out.allow_unquoted_names, BoolOption(options, "allowUnquotedFieldNames", false));
  FLEUVE_ASSIGN(out.allow_single_quotes, BoolOption(options, "allowSingleQuotes", true));
  FLEUVE_ASSIGN(out.allow_leading_zeros, BoolOption(options, "allowNumericLeadingZeros", false));
  FLEUVE_ASSIGN(out.allow_non_numeric, BoolOption(options, "allowNonNumericNumbers", true));
  FLEUVE_ASSIGN(out.allow_backslash_any, BoolOption(options, "allowBackslashEscapingAnyCharacter", false));
  FLEUVE_ASSIGN(out.allow_control_characters, BoolOption(options, "allowUnquotedControlChars", false));
  FLEUVE_ASSIGN(out.primitives_as_string, BoolOption(options, "primitivesAsString", false));
  FLEUVE_ASSIGN(out.prefers_decimal, BoolOption(options, "prefersDecimal", false));
  FLEUVE_ASSIGN(out.infer_timestamp, BoolOption(options, "inferTimestamp", false));
  FLEUVE_ASSIGN(out.drop_all_null, BoolOption(options, "dropFieldIfAllNull", false));
  FLEUVE_TRY(RefuseSet(options, {"maxNestingDepth", "maxNumLen", "maxStringLen"}));
  out.container = TextOption(options, {"fleuve.container"}, "");
  out.strings_hold_values = out.container == "xml";
  if (out.container == "xml") {
    FLEUVE_TRY(CheckXmlOptions(options));
  }
  if (plan::FindOption(options, "encoding") != nullptr || plan::FindOption(options, "charset") != nullptr) {
    FLEUVE_TRY(CheckEncoding(out.encoding, "JSONOptions"));
  }
  const std::string encoding = Lower(out.encoding);
  if (encoding.starts_with("utf-16") || encoding.starts_with("utf-32")) {
    if (!out.multi_line && out.line_separator.empty()) {
      return BadValue("encoding", out.encoding, "the lineSep option must be specified for this encoding");
    }
  }
  return out;
}

Result<CsvOptions> MakeCsvOptions(const plan::Options& options, const std::string& zone) {
  CsvOptions out;
  FLEUVE_TRY(FillShared(options, zone, out));
  FLEUVE_ASSIGN(out.delimiter, SeparatorOption(options));
  if (plan::FindOption(options, "encoding") != nullptr || plan::FindOption(options, "charset") != nullptr) {
    FLEUVE_TRY(CheckEncoding(out.encoding, "CSVOptions"));
  }
  FLEUVE_ASSIGN(out.quote, CharOption(options, {"quote"}, '"'));
  FLEUVE_ASSIGN(out.escape, CharOption(options, {"escape"}, '\\'));
  FLEUVE_ASSIGN(out.escape_escape,
                CharOption(options, {"charToEscapeQuoteEscaping"}, out.quote == out.escape ? '\0' : out.escape));
  FLEUVE_ASSIGN(out.comment, CharOption(options, {"comment"}, '\0'));
  FLEUVE_ASSIGN(out.header, FlagOption(options, "header", false));
  FLEUVE_ASSIGN(out.enforce_schema, FlagOption(options, "enforceSchema", true));
  FLEUVE_ASSIGN(out.infer_schema, FlagOption(options, "inferSchema", false));
  FLEUVE_ASSIGN(out.prefer_date, FlagOption(options, "preferDate", true));
  FLEUVE_ASSIGN(out.trim_leading, FlagOption(options, "ignoreLeadingWhiteSpace", false));
  FLEUVE_ASSIGN(out.trim_trailing, FlagOption(options, "ignoreTrailingWhiteSpace", false));
  FLEUVE_TRY(FlagOption(options, "columnPruning", true));  // what is read does not depend on it
  FLEUVE_TRY(FlagOption(options, "escapeQuotes", true));
  FLEUVE_TRY(FlagOption(options, "quoteAll", false));
  out.null_value = TextOption(options, {"nullValue"}, "");
  out.empty_value = TextOption(options, {"emptyValue"}, "");
  out.nan_value = TextOption(options, {"nanValue"}, "NaN");
  out.positive_infinity = TextOption(options, {"positiveInf"}, "Inf");
  out.negative_infinity = TextOption(options, {"negativeInf"}, "-Inf");
  FLEUVE_ASSIGN(out.max_columns, IntOption(options, "maxColumns", 20480));
  FLEUVE_ASSIGN(out.max_column_chars, IntOption(options, "maxCharsPerColumn", -1));
  FLEUVE_ASSIGN(out.skip_rows, IntOption(options, "skipRows", 0));
  FLEUVE_ASSIGN(out.by_header, BoolOption(options, "fleuve.csvByHeader", false));
  const std::string handling = Lower(TextOption(options, {"unescapedQuoteHandling"}, "stop_at_delimiter"));
  if (handling != "stop_at_delimiter") {
    if (handling == "raise_error") {
      out.stop_at_delimiter = false;
    } else if (handling == "stop_at_closing_quote" || handling == "back_to_delimiter" || handling == "skip_value") {
      return Error::Unsupported("option unescapedQuoteHandling with value " + handling);
    } else {
      return BadValue("unescapedQuoteHandling", handling, "no such handling");
    }
  }
  if (out.line_separator.size() > 2) {
    return BadValue("lineSep", out.line_separator, "'lineSep' can contain only 1 or 2 characters");
  }
  return out;
}

Result<TextOptions> MakeTextOptions(const plan::Options& options, const std::string& zone) {
  TextOptions out;
  FLEUVE_TRY(FillShared(options, zone, out));
  FLEUVE_ASSIGN(out.whole_text, BoolOption(options, "wholeText", false));
  return out;
}

Result<TextWriteOptions> MakeTextWriteOptions(plan::FileFormat format, const plan::Options& options,
                                              const std::string& compression, const std::string& zone) {
  TextWriteOptions out;
  out.times = TimeText();
  const std::string default_timestamp = "yyyy-MM-dd'T'HH:mm:ss[.SSS][XXX]";
  const std::string default_ntz = "yyyy-MM-dd'T'HH:mm:ss[.SSS]";
  FLEUVE_ASSIGN(out.times, TimeText::Make(TextOption(options, {"dateFormat"}, ""),
                                          TextOption(options, {"timestampFormat"}, default_timestamp),
                                          TextOption(options, {"timestampNTZFormat"}, default_ntz),
                                          TextOption(options, {"timeZone"}, zone)));
  out.line_separator = TextOption(options, {"lineSep"}, "\n");
  if (out.line_separator.empty()) {
    return BadValue("lineSep", "", "'lineSep' cannot be an empty string");
  }
  const std::string codec = Lower(TextOption(options, {"compression", "codec"}, compression));
  if (codec == "gzip" || codec == "bzip2" || codec == "deflate") {
    out.compression = codec;
  } else if (codec == "none" || codec == "uncompressed" || codec.empty()) {
    out.compression = "none";
  } else if (codec == "lz4" || codec == "snappy" || codec == "zstd") {
    return Error::Unsupported("compression " + codec + " of text files");
  } else {
    return Error(ErrorKind::kInvalidArgument, "CODEC_NOT_AVAILABLE.WITH_AVAILABLE_CODECS_SUGGESTION",
                 "The codec " + codec + " is not available. Available codecs are bzip2, deflate, gzip, none.");
  }
  const std::string encoding = Lower(TextOption(options, {"encoding", "charset"}, "utf-8"));
  if (encoding != "utf-8" && encoding != "utf8") {
    return Error::Unsupported("writing text files in encoding " + encoding);
  }
  FLEUVE_TRY(CheckLocale(options));
  if (format == plan::FileFormat::kJson) {
    FLEUVE_ASSIGN(out.ignore_null_fields, BoolOption(options, "ignoreNullFields", true));
    FLEUVE_ASSIGN(out.escape_non_ascii, BoolOption(options, "writeNonAsciiCharacterAsCodePoint", false));
    FLEUVE_TRY(RefuseSet(options, {"pretty"}));
  } else if (format == plan::FileFormat::kCsv) {
    FLEUVE_ASSIGN(out.delimiter, SeparatorOption(options));
    FLEUVE_ASSIGN(out.quote, CharOption(options, {"quote"}, '"'));
    FLEUVE_ASSIGN(out.escape, CharOption(options, {"escape"}, '\\'));
    FLEUVE_ASSIGN(out.escape_escape,
                  CharOption(options, {"charToEscapeQuoteEscaping"}, out.quote == out.escape ? '\0' : out.escape));
    FLEUVE_ASSIGN(out.quote_all, FlagOption(options, "quoteAll", false));
    FLEUVE_ASSIGN(out.escape_quotes, FlagOption(options, "escapeQuotes", true));
    FLEUVE_ASSIGN(out.header, FlagOption(options, "header", false));
    FLEUVE_ASSIGN(out.trim_leading, FlagOption(options, "ignoreLeadingWhiteSpace", true));
    FLEUVE_ASSIGN(out.trim_trailing, FlagOption(options, "ignoreTrailingWhiteSpace", true));
    out.null_value = TextOption(options, {"nullValue"}, "");
    out.empty_value = TextOption(options, {"emptyValue"}, "\"\"");
    out.nan_value = TextOption(options, {"nanValue"}, "NaN");
  }
  return out;
}

Result<void> CheckReadOptions(plan::FileFormat format, const plan::Options& options, const std::string& session_zone) {
  switch (format) {
    case plan::FileFormat::kJson: {
      FLEUVE_TRY(MakeJsonOptions(options, session_zone));
      return {};
    }
    case plan::FileFormat::kCsv: {
      FLEUVE_TRY(MakeCsvOptions(options, session_zone));
      return {};
    }
    case plan::FileFormat::kText: {
      FLEUVE_TRY(MakeTextOptions(options, session_zone));
      return {};
    }
    default: {
      FLEUVE_TRY(BoolOption(options, "ignoreMissingFiles", false));
      FLEUVE_TRY(BoolOption(options, "ignoreCorruptFiles", false));
      for (const char* name : {"datetimeRebaseMode", "int96RebaseMode"}) {
        const std::string* mode = plan::FindOption(options, name);
        const std::string lower = mode == nullptr ? "corrected" : Lower(*mode);
        if (format == plan::FileFormat::kParquet && lower != "corrected" && lower != "legacy" && lower != "exception") {
          return BadValue(name, *mode, "must be CORRECTED, LEGACY or EXCEPTION");
        }
      }
      return {};
    }
  }
}

Result<void> CheckWriteOptions(plan::FileFormat format, const plan::Options& options, const std::string& compression,
                               const std::string& session_zone) {
  if (format != plan::FileFormat::kParquet) {
    FLEUVE_TRY(MakeTextWriteOptions(format, options, compression, session_zone));
  }
  return {};
}

}  // namespace fleuve::engine
