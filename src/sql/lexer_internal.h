#pragma once

/// \file
/// SQL text to tokens.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fleuve::sql {

enum class TokenKind {
  kEnd,
  kWord,     ///< identifier or keyword: `upper` for comparison, `text` as written
  kQuoted,   ///< `x`: `text` without quotes
  kString,   ///< 'x', "x", r'x': `text` decoded
  kInteger,  ///< digits
  kLong,     ///< digits without the suffix L; likewise below
  kShort,
  kByte,
  kDecimal,     ///< 1.5
  kExponent,    ///< 1e3
  kFloat,       ///< 1.5F
  kDouble,      ///< 1.5D
  kBigDecimal,  ///< 12BD
  kSymbol,      ///< operator or punctuation in `text`
  kHint,        ///< /*+: the hint's tokens follow up to a kHintEnd
  kHintEnd,
  kUnknown,  ///< a character no token starts with, or an unclosed string
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  std::string upper;  ///< kWord only
  int start = 0;      ///< byte offset of the first character
  int stop = 0;       ///< byte offset of the last character
  int line = 1;       ///< from 1
  int column = 0;     ///< from 0
  bool space_before = false;
};

struct LexerOptions {
  bool double_quoted_identifiers = false;
  bool escaped_string_literals = false;
};

/// All tokens of `text`, the last one kEnd. UNCLOSED_BRACKETED_COMMENT; everything else that is odd becomes a kUnknown
/// token, so that the parser can say where.
Result<std::vector<Token>> Lex(std::string_view text, const LexerOptions& options);

/// Decodes the inside of a quoted string: backslash escapes, doubled quotes.
std::string Unescape(std::string_view inside, char quote);

}  // namespace fleuve::sql
