#pragma once

/// \file
/// One pass over the text of a JSON document with the grammar, and the leniencies, of Jackson.

#include <emmintrin.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/files/format_options_internal.h"

namespace fleuve::engine {

/// What stands at the scanner's place.
enum class JsonToken : std::uint8_t {
  kObject,
  kArray,
  kString,
  kInteger,
  kFraction,  ///< has a point or an exponent, or is NaN or an infinity
  kTrue,
  kFalse,
  kNull,
  kError,
};

/// Threads: one at a time. Texts given out live until the next call.
class JsonScanner {
 public:
  static constexpr int kMaxDepth = 1000;

  explicit JsonScanner(const JsonOptions& options)
      : comments_(options.allow_comments),
        unquoted_names_(options.allow_unquoted_names),
        single_quotes_(options.allow_single_quotes),
        leading_zeros_(options.allow_leading_zeros),
        non_numeric_(options.allow_non_numeric),
        backslash_any_(options.allow_backslash_any),
        control_characters_(options.allow_control_characters) {}

  void Reset(std::string_view text) {
    p_ = text.data();
    end_ = p_ + text.size();
    if (text.size() >= 3 && text.substr(0, 3) == "\xEF\xBB\xBF") {
      p_ += 3;
    }
    error_ = nullptr;
  }

  const char* position() const { return p_; }
  /// What is wrong, for people; null while nothing is.
  const char* error() const { return error_; }

  /// Skips blanks (and comments where allowed); false at the end of the text or in a broken comment.
  bool SkipBlank() {
    while (p_ < end_) {
      const char c = *p_;
      if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
        ++p_;
        continue;
      }
      if (comments_ && c == '/') {
        if (!SkipComment()) {
          return false;
        }
        continue;
      }
      return true;
    }
    return false;
  }

  /// What begins here (blanks skipped). Nothing is consumed, but for true, false and null.
  JsonToken Begin() {
    if (!SkipBlank()) {
      return Fail("unexpected end of input");
    }
    switch (*p_) {
      case '{':
        return JsonToken::kObject;
      case '[':
        return JsonToken::kArray;
      case '"':
        return JsonToken::kString;
      case '\'':
        return single_quotes_ ? JsonToken::kString : Fail("unexpected character");
      case 't':
        return Literal("true", JsonToken::kTrue);
      case 'f':
        return Literal("false", JsonToken::kFalse);
      case 'n':
        return Literal("null", JsonToken::kNull);
      default:
        return Number();
    }
  }

  /// The text of the number that `Begin` found (consumed by it).
  std::string_view number() const { return number_; }

  /// After `{`: the next name. 1: got one, its colon consumed; 0: the object ended; -1: error.
  int NextName(bool first, std::string_view* name) {
    if (!SkipBlank()) {
      return FailInt("unexpected end of input within an object");
    }
    if (*p_ == '}') {
      ++p_;
      return 0;
    }
    if (!first) {
      if (*p_ != ',') {
        return FailInt("a comma was expected between fields");
      }
      ++p_;
      if (!SkipBlank()) {
        return FailInt("unexpected end of input within an object");
      }
    }
    if (*p_ == '"' || (*p_ == '\'' && single_quotes_)) {
      if (!String(name)) {
        return -1;
      }
    } else if (!unquoted_names_ || !Bare(name)) {
      return FailInt("a name in double quotes was expected");
    }
    if (p_ < end_ && *p_ == ':') {
      ++p_;
      return 1;
    }
    // The name may live in the scratch text, which blanks do not touch.
    if (!SkipBlank() || *p_ != ':') {
      return FailInt("a colon was expected after a name");
    }
    ++p_;
    return 1;
  }

  /// After `[`: 1: an element follows; 0: the array ended; -1: error.
  int NextElement(bool first) {
    if (!SkipBlank()) {
      return FailInt("unexpected end of input within an array");
    }
    if (*p_ == ']') {
      ++p_;
      return 0;
    }
    if (!first) {
      if (*p_ != ',') {
        return FailInt("a comma was expected between elements");
      }
      ++p_;
      if (!SkipBlank()) {
        return FailInt("unexpected end of input within an array");
      }
      if (*p_ == ']') {
        return FailInt("a value was expected after a comma");
      }
    }
    return 1;
  }

  /// Consumes `{` or `[`.
  void Open() { ++p_; }

  /// Consumes a string that begins here; its text without escapes.
  bool String(std::string_view* text) {
    const char quote = *p_;
    const char* begin = ++p_;
    if (quote == '"') {
      const __m128i quotes = _mm_set1_epi8('"');
      const __m128i slashes = _mm_set1_epi8('\\');
      const __m128i last_control = _mm_set1_epi8(0x1F);
      while (end_ - p_ >= 16) {
        const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p_));
        const __m128i hits = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quotes), _mm_cmpeq_epi8(block, slashes)),
                                          _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block));
        const int mask = _mm_movemask_epi8(hits);
        if (mask != 0) {
          p_ += __builtin_ctz(static_cast<unsigned>(mask));
          if (*p_ == '"') {
            *text = std::string_view(begin, static_cast<std::size_t>(p_ - begin));
            ++p_;
            return true;
          }
          break;
        }
        p_ += 16;
      }
    }
    return SlowString(quote, begin, text);
  }

  /// True for a text that `String` had to put together, which does not stand in the document.
  bool IsUnescaped(std::string_view text) const { return text.data() == scratch_.data(); }

  /// Consumes any value that begins here, checking its grammar.
  bool SkipValue() {
    const JsonToken token = Begin();
    return SkipRest(token);
  }
  /// The same after `Begin` gave `token`.
  bool SkipRest(JsonToken token);

 private:
  JsonToken Fail(const char* error) {
    if (error_ == nullptr) {
      error_ = error;
    }
    return JsonToken::kError;
  }
  int FailInt(const char* error) {
    Fail(error);
    return -1;
  }
  bool FailBool(const char* error) {
    Fail(error);
    return false;
  }
  static bool IsNamePart(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' ||
           static_cast<unsigned char>(c) >= 0x80;
  }
  JsonToken Literal(std::string_view word, JsonToken token) {
    const auto left = static_cast<std::size_t>(end_ - p_);
    if (left < word.size() || std::string_view(p_, word.size()) != word ||
        (left > word.size() && IsNamePart(p_[word.size()]))) {
      return Fail("unrecognized token");
    }
    literal_ = std::string_view(p_, word.size());
    p_ += word.size();
    return token;
  }
  JsonToken Number();
  JsonToken NonNumeric(const char* begin);
  bool SkipComment();
  bool Bare(std::string_view* name);
  bool SlowString(char quote, const char* begin, std::string_view* text);

  const bool comments_;
  const bool unquoted_names_;
  const bool single_quotes_;
  const bool leading_zeros_;
  const bool non_numeric_;
  const bool backslash_any_;
  const bool control_characters_;

  const char* p_ = nullptr;
  const char* end_ = nullptr;
  const char* error_ = nullptr;
  std::string_view number_;
  std::string_view literal_;
  std::string scratch_;
  int depth_ = 0;
};

/// `raw` without blanks between tokens.
std::string CompactJson(std::string_view raw);

}  // namespace fleuve::engine
