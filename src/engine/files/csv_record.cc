#include <cstring>

#include "engine/files/csv_record_internal.h"

namespace fleuve::engine {

namespace {

bool IsBlank(std::string_view line) {
  for (const char c : line) {
    if (static_cast<unsigned char>(c) > ' ') {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string_view CsvSplitter::Trim(std::string_view text) const {
  if (options_.trim_trailing) {
    while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
      text.remove_suffix(1);
    }
  }
  return text;
}

CsvSplitter::Quoted CsvSplitter::ParseQuoted(std::string_view record, std::size_t begin, std::string& out) {
  const char quote = options_.quote;
  const char escape = options_.escape;
  const char escape_escape = options_.escape_escape;
  const std::string_view delimiter = options_.delimiter;
  const auto at_delimiter = [&](std::size_t at) { return record.substr(at, delimiter.size()) == delimiter; };
  out.clear();
  std::size_t i = begin;
  while (i < record.size()) {
    const char c = record[i];
    if (escape != '\0' && c == escape && escape != quote) {
      if (i + 1 < record.size() && record[i + 1] == quote) {
        out.push_back(quote);
        i += 2;
        continue;
      }
      if (escape_escape != '\0' && escape_escape == escape && i + 1 < record.size() && record[i + 1] == escape) {
        out.push_back(escape);
        i += 2;
        continue;
      }
      out.push_back(c);
      ++i;
      continue;
    }
    if (escape_escape != '\0' && escape_escape != escape && c == escape_escape && i + 1 < record.size() &&
        record[i + 1] == escape) {
      out.push_back(escape);
      i += 2;
      continue;
    }
    if (c != quote) {
      out.push_back(c);
      ++i;
      continue;
    }
    // A quote: the end, a doubled quote where quotes escape themselves, or a stray one.
    if (i + 1 == record.size() || at_delimiter(i + 1)) {
      return {i + 1, false, false};
    }
    if (escape == quote && record[i + 1] == quote) {
      out.push_back(quote);
      i += 2;
      continue;
    }
    if (static_cast<unsigned char>(record[i + 1]) <= ' ') {
      // Blanks after the closing quote are dropped where nothing else follows them.
      std::size_t j = i + 1;
      while (j < record.size() && static_cast<unsigned char>(record[j]) <= ' ' && !at_delimiter(j)) {
        ++j;
      }
      if (j == record.size() || at_delimiter(j)) {
        return {j, false, false};
      }
    } else if (record[i + 1] == quote) {
      // Two quotes and then the end of the field: the first one belongs to the text.
      if (i + 2 == record.size() || at_delimiter(i + 2)) {
        out.push_back(quote);
        return {i + 2, false, false};
      }
    }
    if (!options_.stop_at_delimiter) {
      return {i, false, true};
    }
    // A stray quote: the field is what stands there, quotes and all, up to the next delimiter.
    std::size_t end = record.find(delimiter, i + 1);
    if (end == std::string_view::npos) {
      end = record.size();
    }
    std::string raw(1, quote);
    raw += out;
    raw += record.substr(i, end - i);
    if (options_.trim_trailing) {
      while (!raw.empty() && static_cast<unsigned char>(raw.back()) <= ' ') {
        raw.pop_back();
      }
    }
    out = std::move(raw);
    return {end, false, false};
  }
  return {record.size(), true, false};
}

CsvSplitter::Outcome CsvSplitter::Split(std::string_view record) {
  fields_.clear();
  used_texts_ = 0;
  const std::string_view delimiter = options_.delimiter;
  std::size_t at = 0;
  Outcome outcome = Outcome::kOk;
  for (;;) {
    if (static_cast<std::int64_t>(fields_.size()) >= options_.max_columns) {
      return Outcome::kTooManyColumns;
    }
    std::size_t begin = at;
    if (options_.trim_leading) {
      while (begin < record.size() && static_cast<unsigned char>(record[begin]) <= ' ' &&
             record.substr(begin, delimiter.size()) != delimiter) {
        ++begin;
      }
    }
    std::size_t next = 0;
    CsvField field;
    if (options_.quote != '\0' && begin < record.size() && record[begin] == options_.quote) {
      // Most quoted fields hold neither quotes nor escapes.
      const std::size_t close = record.find(options_.quote, begin + 1);
      const bool ends = close != std::string_view::npos &&
                        (close + 1 == record.size() || record.substr(close + 1, delimiter.size()) == delimiter);
      if (ends &&
          (options_.escape == '\0' ||
           record.substr(begin + 1, close - begin - 1).find(options_.escape) == std::string_view::npos) &&
          options_.escape != options_.quote) {
        field.text = record.substr(begin + 1, close - begin - 1);
        next = close + 1;
      } else {
        if (used_texts_ == texts_.size()) {
          texts_.push_back(std::make_unique<std::string>());
        }
        std::string& text = *texts_[used_texts_++];
        const Quoted quoted = ParseQuoted(record, begin + 1, text);
        if (quoted.bad) {
          return Outcome::kUnescapedQuote;
        }
        if (quoted.open) {
          outcome = Outcome::kOpenQuote;
        }
        field.text = text;
        next = quoted.next;
      }
      field.is_empty_quoted = field.text.empty();
    } else {
      next = delimiter.size() == 1 ? record.find(delimiter[0], begin) : record.find(delimiter, begin);
      if (next == std::string_view::npos) {
        next = record.size();
      }
      field.text = Trim(record.substr(begin, next - begin));
    }
    if (options_.max_column_chars >= 0 && static_cast<std::int64_t>(field.text.size()) > options_.max_column_chars) {
      return Outcome::kTooLongColumn;
    }
    fields_.push_back(field);
    if (next >= record.size()) {
      return outcome;
    }
    at = next + delimiter.size();
  }
}

CsvRecords::CsvRecords(const CsvOptions& options, std::unique_ptr<ByteStream> stream, std::int64_t begin,
                       std::int64_t end)
    : options_(options),
      lines_(std::move(stream), begin, end, options.line_separator),
      splitter_(options),
      normalizes_(options.multi_line && options.line_separator.empty()),
      rows_to_skip_(begin == 0 ? options.skip_rows : 0) {}

Result<bool> CsvRecords::NextLine(std::string_view* line) {
  for (;;) {
    FLEUVE_ASSIGN(const bool more, lines_.Next(line));
    if (!more) {
      return false;
    }
    if (usual_end_.empty()) {
      usual_end_ = lines_.terminator();
    }
    if (line->starts_with("\xEF\xBB\xBF")) {
      line->remove_prefix(3);
    }
    if (rows_to_skip_ > 0) {
      --rows_to_skip_;
      continue;
    }
    if (IsBlank(*line) || (options_.comment != '\0' && (*line)[0] == options_.comment)) {
      continue;
    }
    return true;
  }
}

Result<bool> CsvRecords::NextUnsplit(std::string_view* record) {
  if (options_.multi_line) {
    CsvSplitter::Outcome ignored = CsvSplitter::Outcome::kOk;
    return Next(record, &ignored);
  }
  return NextLine(record);
}

void CsvRecords::AppendLineBreak() {
  const std::string_view end = lines_.terminator();
  if (normalizes_ && end == usual_end_) {
    joined_ += '\n';
  } else {
    joined_ += end;
  }
}

Result<bool> CsvRecords::Next(std::string_view* record, CsvSplitter::Outcome* outcome) {
  FLEUVE_ASSIGN(const bool more, NextRecord(record, outcome));
  // These limits guard the reader, not the data: in no parse mode does such a record count as malformed.
  if (more && *outcome == CsvSplitter::Outcome::kTooManyColumns) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "A record has more than " + std::to_string(options_.max_columns) + " columns (option maxColumns).")
        .Family(ErrorFamily::kSpark);
  }
  if (more && *outcome == CsvSplitter::Outcome::kTooLongColumn) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "A value is longer than " + std::to_string(options_.max_column_chars) +
                     " characters (option maxCharsPerColumn).")
        .Family(ErrorFamily::kSpark);
  }
  return more;
}

Result<bool> CsvRecords::NextRecord(std::string_view* record, CsvSplitter::Outcome* outcome) {
  FLEUVE_ASSIGN(const bool more, NextLine(record));
  if (!more) {
    return false;
  }
  *outcome = splitter_.Split(*record);
  if (*outcome != CsvSplitter::Outcome::kOpenQuote || !options_.multi_line) {
    return true;
  }
  joined_.assign(*record);
  while (*outcome == CsvSplitter::Outcome::kOpenQuote) {
    AppendLineBreak();
    std::string_view line;
    bool has_quote = false;
    // Lines without a quote cannot end the field.
    for (;;) {
      FLEUVE_ASSIGN(const bool again, lines_.Next(&line));
      if (!again) {
        *record = joined_;
        splitter_.Split(joined_);
        *outcome = CsvSplitter::Outcome::kOpenQuote;
        return true;
      }
      joined_ += line;
      has_quote = line.find(options_.quote) != std::string_view::npos;
      if (has_quote) {
        break;
      }
      AppendLineBreak();
    }
    *outcome = splitter_.Split(joined_);
  }
  *record = joined_;
  return true;
}

}  // namespace fleuve::engine
