// Data types and column lists in DDL text.
#include <algorithm>
#include <cstdlib>

#include "base/bytes.h"
#include "types/data_type.h"

namespace fleuve::types {
namespace {

/// Reads types from text. One object per call.
class DdlReader {
 public:
  explicit DdlReader(std::string_view text) : text_(text) {}

  Result<DataType> ReadTypeOrColumns() {
    const std::size_t start = at_;
    auto type = ReadType();
    if (type.ok() && AtEnd()) {
      return type;
    }
    at_ = start;
    auto columns = ReadColumns('\0');
    if (columns.ok() && AtEnd()) {
      return DataType::Struct(std::move(columns).value());
    }
    // The message that belongs to what the user most likely wrote.
    if (!type.ok() && text_.find_first_of(" ,") == std::string_view::npos) {
      return std::move(type).error();
    }
    return columns.ok() ? Unexpected() : std::move(columns).error();
  }

 private:
  void SkipBlanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }
  bool AtEnd() {
    SkipBlanks();
    return at_ >= text_.size();
  }
  bool Take(char c) {
    SkipBlanks();
    if (at_ < text_.size() && text_[at_] == c) {
      ++at_;
      return true;
    }
    return false;
  }
  bool Peek(char c) {
    SkipBlanks();
    return at_ < text_.size() && text_[at_] == c;
  }

  Error Unexpected() {
    SkipBlanks();
    const std::string where = at_ < text_.size() ? "'" + std::string(text_.substr(at_, 1)) + "'" : "end of input";
    return Error(ErrorKind::kInvalidArgument, "PARSE_SYNTAX_ERROR",
                 "Syntax error at or near " + where + " in the type text '" + std::string(text_) + "'.")
        .With("error", where)
        .With("hint", "");
  }

  static bool WordChar(char c) {
    return (std::isalnum(static_cast<unsigned char>(c)) != 0) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
  }

  /// The next word, or empty.
  std::string Word() {
    SkipBlanks();
    const std::size_t start = at_;
    while (at_ < text_.size() && WordChar(text_[at_])) {
      ++at_;
    }
    return std::string(text_.substr(start, at_ - start));
  }

  bool TakeWord(std::string_view word) {
    const std::size_t start = at_;
    if (EqualsIgnoreAsciiCase(Word(), word)) {
      return true;
    }
    at_ = start;
    return false;
  }

  Result<std::string> Name() {
    if (Take('`')) {
      std::string name;
      while (at_ < text_.size()) {
        if (text_[at_] == '`') {
          if (at_ + 1 < text_.size() && text_[at_ + 1] == '`') {
            ++at_;
          } else {
            ++at_;
            return name;
          }
        }
        name += text_[at_++];
      }
      return Unexpected();
    }
    std::string name = Word();
    if (name.empty()) {
      return Unexpected();
    }
    return name;
  }

  Result<std::string> QuotedText() {
    SkipBlanks();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') {
      return Unexpected();
    }
    ++at_;
    std::string out;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
      }
      out += text_[at_++];
    }
    if (at_ >= text_.size()) {
      return Unexpected();
    }
    ++at_;
    return out;
  }

  Result<std::vector<int>> Numbers() {
    std::vector<int> numbers;
    if (!Take('(')) {
      return numbers;
    }
    do {
      const bool negative = Take('-');
      const std::string word = Word();
      if (word.empty() || word.size() > 9 ||
          !std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        return Unexpected();
      }
      numbers.push_back((negative ? -1 : 1) * std::atoi(word.c_str()));
    } while (Take(','));
    if (!Take(')')) {
      return Unexpected();
    }
    return numbers;
  }

  Result<std::vector<StructField>> ReadColumns(char end) {
    std::vector<StructField> fields;
    if (end != '\0' && Peek(end)) {
      return fields;
    }
    do {
      FLEUVE_ASSIGN(auto name, Name());
      if (!Take(':') && AtEnd()) {
        return Unexpected();
      }
      FLEUVE_ASSIGN(auto type, ReadType());
      StructField field{std::move(name), std::move(type), true, Json()};
      while (true) {
        if (TakeWord("not")) {
          if (!TakeWord("null")) {
            return Unexpected();
          }
          field.nullable = false;
        } else if (TakeWord("comment")) {
          FLEUVE_ASSIGN(auto comment, QuotedText());
          field.metadata.Set("comment", std::move(comment));
        } else if (TakeWord("null")) {
          field.nullable = true;
        } else {
          break;
        }
      }
      fields.push_back(std::move(field));
    } while (Take(','));
    return fields;
  }

  Result<DataType> ReadInterval() {
    const std::string start = AsciiLower(Word());
    std::string end = start;
    if (TakeWord("to")) {
      end = AsciiLower(Word());
    }
    const auto index = [](const std::string& name, std::initializer_list<std::string_view> names) {
      int i = 0;
      for (const auto& n : names) {
        if (n == name) {
          return i;
        }
        ++i;
      }
      return -1;
    };
    const auto days = {std::string_view("day"), std::string_view("hour"), std::string_view("minute"),
                       std::string_view("second")};
    const auto years = {std::string_view("year"), std::string_view("month")};
    if (index(start, days) >= 0 && index(end, days) >= index(start, days)) {
      return DataType::DayTimeInterval(index(start, days), index(end, days));
    }
    if (index(start, years) >= 0 && index(end, years) >= index(start, years)) {
      return DataType::YearMonthInterval(index(start, years), index(end, years));
    }
    return Unexpected();
  }

  Result<DataType> ReadType() {
    if (++depth_ > 1000) {
      return Error(ErrorKind::kInvalidArgument, "PARSE_SYNTAX_ERROR", "the type text is nested too deeply");
    }
    const std::size_t start = at_;
    const std::string word = AsciiLower(Word());
    auto type = ReadTypeAfter(word, start);
    --depth_;
    return type;
  }

  Result<DataType> ReadTypeAfter(const std::string& word, std::size_t start) {
    if (word == "array") {
      if (!Take('<')) {
        return Unexpected();
      }
      FLEUVE_ASSIGN(auto element, ReadType());
      return Take('>') ? Result<DataType>(DataType::Array(std::move(element))) : Unexpected();
    }
    if (word == "map") {
      if (!Take('<')) {
        return Unexpected();
      }
      FLEUVE_ASSIGN(auto key, ReadType());
      if (!Take(',')) {
        return Unexpected();
      }
      FLEUVE_ASSIGN(auto value, ReadType());
      return Take('>') ? Result<DataType>(DataType::Map(std::move(key), std::move(value))) : Unexpected();
    }
    if (word == "struct") {
      if (!Take('<')) {
        return Unexpected();
      }
      FLEUVE_ASSIGN(auto fields, ReadColumns('>'));
      return Take('>') ? Result<DataType>(DataType::Struct(std::move(fields))) : Unexpected();
    }
    if (word == "interval") {
      const std::size_t after = at_;
      auto interval = ReadInterval();
      if (interval.ok()) {
        return interval;
      }
      at_ = after;
      return DataType::Of(TypeKind::kCalendarInterval);
    }
    FLEUVE_ASSIGN(const auto numbers, Numbers());
    if (word == "decimal" || word == "dec" || word == "numeric") {
      const int precision = numbers.empty() ? 10 : numbers[0];
      const int scale = numbers.size() < 2 ? 0 : numbers[1];
      if (precision > 38) {
        return Error(ErrorKind::kInvalidArgument, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
                     "Decimal precision " + std::to_string(precision) + " exceeds max precision 38.")
            .With("precision", std::to_string(precision))
            .With("maxPrecision", "38");
      }
      if (scale > precision) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_DECIMAL_SCALE",
                     "Decimal scale (" + std::to_string(scale) + ") cannot be greater than precision (" +
                         std::to_string(precision) + ").");
      }
      return DataType::Decimal(precision, scale);
    }
    if ((word == "char" || word == "character") && numbers.size() == 1) {
      return DataType::Char(numbers[0]);
    }
    if (word == "varchar" && numbers.size() == 1) {
      return DataType::Varchar(numbers[0]);
    }
    if (word == "char" || word == "character" || word == "varchar") {
      return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISSING_SIZE",
                   "DataType " + AsciiUpper(word) + " requires a length parameter, for example " + AsciiUpper(word) +
                       "(10). Please specify the length.")
          .With("type", AsciiUpper(word));
    }
    if (word == "time" && numbers.size() <= 1) {
      return DataType::Of(TypeKind::kTime);
    }
    if (numbers.empty()) {
      if (word == "string" && TakeWord("collate")) {
        FLEUVE_ASSIGN(auto collation, Name());
        return DataType::String(AsciiUpper(collation));
      }
      for (const auto& [name, kind] :
           std::initializer_list<std::pair<std::string_view, TypeKind>>{{"boolean", TypeKind::kBoolean},
                                                                        {"tinyint", TypeKind::kByte},
                                                                        {"byte", TypeKind::kByte},
                                                                        {"smallint", TypeKind::kShort},
                                                                        {"short", TypeKind::kShort},
                                                                        {"int", TypeKind::kInt},
                                                                        {"integer", TypeKind::kInt},
                                                                        {"bigint", TypeKind::kLong},
                                                                        {"long", TypeKind::kLong},
                                                                        {"float", TypeKind::kFloat},
                                                                        {"real", TypeKind::kFloat},
                                                                        {"double", TypeKind::kDouble},
                                                                        {"string", TypeKind::kString},
                                                                        {"binary", TypeKind::kBinary},
                                                                        {"date", TypeKind::kDate},
                                                                        {"timestamp", TypeKind::kTimestamp},
                                                                        {"timestamp_ltz", TypeKind::kTimestamp},
                                                                        {"timestamp_ntz", TypeKind::kTimestampNtz},
                                                                        {"void", TypeKind::kVoid},
                                                                        {"null", TypeKind::kVoid},
                                                                        {"variant", TypeKind::kVariant}}) {
        if (word == name) {
          return DataType::Of(kind);
        }
      }
    }
    if (word.empty()) {
      return Unexpected();
    }
    const std::string written = AsciiUpper(std::string(text_.substr(start, at_ - start)));
    return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_DATATYPE", "Unsupported data type \"" + written + "\".")
        .With("typeName", "\"" + written + "\"");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Result<DataType> DataType::FromDdl(std::string_view text) { return DdlReader(text).ReadTypeOrColumns(); }

}  // namespace fleuve::types
