#include <cstdint>

#include "sql/lexer_internal.h"

namespace fleuve::sql {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool IsWordCharacter(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }
/// Letters outside ASCII: part of the word, so that the error names the whole of it.
bool IsForeign(char c) { return static_cast<unsigned char>(c) >= 0x80; }

void AppendUtf8(std::uint32_t code, std::string* out) {
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code >> 6)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code >> 12)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  } else {
    out->push_back(static_cast<char>(0xF0 | (code >> 18)));
    out->push_back(static_cast<char>(0x80 | ((code >> 12) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | ((code >> 6) & 0x3F)));
    out->push_back(static_cast<char>(0x80 | (code & 0x3F)));
  }
}

bool ReadHex(std::string_view text, std::size_t at, int digits, std::uint32_t* code) {
  if (at + static_cast<std::size_t>(digits) > text.size()) {
    return false;
  }
  *code = 0;
  for (int i = 0; i < digits; ++i) {
    const char c = text[at + static_cast<std::size_t>(i)];
    std::uint32_t value;
    if (IsDigit(c)) {
      value = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      value = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return false;
    }
    *code = *code * 16 + value;
  }
  return true;
}

class Lexer {
 public:
  Lexer(std::string_view text, const LexerOptions& options) : text_(text), options_(options) {}

  Result<std::vector<Token>> Run() {
    while (true) {
      FLEUVE_ASSIGN(const bool space, SkipSpace());
      if (at_ >= text_.size()) {
        break;
      }
      Begin(space);
      Next();
    }
    Begin(true);
    token_.kind = TokenKind::kEnd;
    token_.stop = token_.start - 1;
    tokens_.push_back(std::move(token_));
    return std::move(tokens_);
  }

 private:
  char Peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void Advance() {
    if (text_[at_] == '\n') {
      ++line_;
      column_ = 0;
    } else if ((static_cast<unsigned char>(text_[at_]) & 0xC0) != 0x80) {
      ++column_;
    }
    ++at_;
  }
  void Advance(std::size_t count) {
    for (std::size_t i = 0; i < count && at_ < text_.size(); ++i) {
      Advance();
    }
  }

  void Begin(bool space) {
    token_ = Token();
    token_.start = static_cast<int>(at_);
    token_.line = line_;
    token_.column = column_;
    token_.space_before = space;
  }

  void End(TokenKind kind, std::string text) {
    token_.kind = kind;
    token_.text = std::move(text);
    token_.stop = static_cast<int>(at_) - 1;
    tokens_.push_back(std::move(token_));
  }

  Result<bool> SkipSpace() {
    bool any = false;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
        Advance();
      } else if (static_cast<unsigned char>(c) == 0xC2 && static_cast<unsigned char>(Peek(1)) == 0xA0) {
        Advance(2);  // no-break space
      } else if (static_cast<unsigned char>(c) == 0xE3 && static_cast<unsigned char>(Peek(1)) == 0x80 &&
                 static_cast<unsigned char>(Peek(2)) == 0x80) {
        Advance(3);  // ideographic space
      } else if (c == '-' && Peek(1) == '-') {
        // A backslash before the line break continues the comment.
        while (at_ < text_.size() && Peek() != '\n') {
          if (Peek() == '\\' && Peek(1) == '\n') {
            Advance();
          }
          Advance();
        }
      } else if (c == '/' && Peek(1) == '*' && Peek(2) != '+') {
        FLEUVE_TRY(SkipComment());
      } else {
        return any;
      }
      any = true;
    }
    return any;
  }

  Result<void> SkipComment() {
    const int start = static_cast<int>(at_);
    const int line = line_;
    const int column = column_;
    int depth = 0;
    while (at_ < text_.size()) {
      if (Peek() == '/' && Peek(1) == '*') {
        ++depth;
        Advance(2);
      } else if (Peek() == '*' && Peek(1) == '/') {
        Advance(2);
        if (--depth == 0) {
          return {};
        }
      } else {
        Advance();
      }
    }
    QueryContext context;
    context.fragment = std::string(text_.substr(static_cast<std::size_t>(start)));
    context.start_index = start;
    context.stop_index = static_cast<int>(text_.size()) - 1;
    context.line = line;
    context.column = column;
    return Error(ErrorKind::kInvalidArgument, "UNCLOSED_BRACKETED_COMMENT",
                 "Found an unclosed bracketed comment. Please, append */ at the end of the comment.")
        .At(std::move(context));
  }

  void Next() {
    const char c = Peek();
    if (c == '/' && Peek(1) == '*' && Peek(2) == '+') {
      Advance(3);
      in_hint_ = true;
      return End(TokenKind::kHint, "/*+");
    }
    if (in_hint_ && c == '*' && Peek(1) == '/') {
      Advance(2);
      in_hint_ = false;
      return End(TokenKind::kHintEnd, "*/");
    }
    if ((c == 'r' || c == 'R') && (Peek(1) == '\'' || Peek(1) == '"')) {
      Advance();
      return ReadString(true);
    }
    if (c == '\'' || (c == '"' && !options_.double_quoted_identifiers)) {
      return ReadString(false);
    }
    if (c == '`' || c == '"') {
      return ReadQuoted(c);
    }
    if (IsDigit(c) || (c == '.' && IsDigit(Peek(1)))) {
      if (ReadNumber()) {
        return;
      }
    }
    if (IsWordCharacter(c) || IsForeign(c)) {
      return ReadWord();
    }
    for (const char* symbol :
         {"<=>", ">>>", "->", "=>", "::", "||", "<=", ">=", "<>", "!=", "==", "<<", ">>", "|>", "!<", "!>"}) {
      const std::string_view view(symbol);
      if (text_.substr(at_, view.size()) == view) {
        if (view == "!<" || view == "!>") {
          break;
        }
        Advance(view.size());
        return End(TokenKind::kSymbol, std::string(view));
      }
    }
    static constexpr std::string_view kSymbols = "()[]{},.;:?+-*/%=<>!~&|^";
    Advance();
    const bool known = kSymbols.find(c) != std::string_view::npos;
    End(known ? TokenKind::kSymbol : TokenKind::kUnknown, std::string(1, c));
  }

  void ReadWord() {
    const std::size_t start = at_;
    while (IsWordCharacter(Peek()) || IsForeign(Peek())) {
      Advance();
    }
    std::string word(text_.substr(start, at_ - start));
    token_.upper = word;
    for (char& c : token_.upper) {
      if (c >= 'a' && c <= 'z') {
        c = static_cast<char>(c - 'a' + 'A');
      }
    }
    End(TokenKind::kWord, std::move(word));
  }

  /// A string ends at its quote; a doubled quote stands for one.
  void ReadString(bool raw) {
    const char quote = Peek();
    const std::size_t open = at_;
    Advance();
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == '\\' && !raw && !options_.escaped_string_literals && at_ + 1 < text_.size()) {
        Advance(2);
      } else if (c == quote && Peek(1) == quote && !raw) {
        Advance(2);
      } else if (c == quote) {
        const std::string_view inside = text_.substr(start, at_ - start);
        Advance();
        if (raw) {
          return End(TokenKind::kString, std::string(inside));
        }
        if (options_.escaped_string_literals) {
          std::string plain;
          for (std::size_t i = 0; i < inside.size(); ++i) {
            plain.push_back(inside[i]);
            if (inside[i] == quote) {
              ++i;
            }
          }
          return End(TokenKind::kString, std::move(plain));
        }
        return End(TokenKind::kString, Unescape(inside, quote));
      } else {
        Advance();
      }
    }
    End(TokenKind::kUnknown, std::string(text_.substr(open)));
  }

  void ReadQuoted(char quote) {
    const std::size_t open = at_;
    Advance();
    std::string name;
    while (at_ < text_.size()) {
      const char c = Peek();
      if (c == quote && Peek(1) == quote) {
        name.push_back(quote);
        Advance(2);
      } else if (c == quote) {
        Advance();
        return End(TokenKind::kQuoted, std::move(name));
      } else {
        name.push_back(c);
        Advance();
      }
    }
    End(TokenKind::kUnknown, std::string(text_.substr(open)));
  }

  /// False (and nothing consumed) where the digits start a word such as `2x`.
  bool ReadNumber() {
    std::size_t i = at_;
    const auto at = [&](std::size_t k) { return k < text_.size() ? text_[k] : '\0'; };
    while (IsDigit(at(i))) {
      ++i;
    }
    bool has_point = false;
    // `1..2` and `1.a` do not exist as numbers with a point; `1.` does.
    if (at(i) == '.' && !(IsLetter(at(i + 1)) && !ExponentAt(i + 1)) && at(i + 1) != '_' && at(i + 1) != '.') {
      has_point = true;
      ++i;
      while (IsDigit(at(i))) {
        ++i;
      }
    }
    bool has_exponent = false;
    if (ExponentAt(i)) {
      has_exponent = true;
      i += at(i + 1) == '+' || at(i + 1) == '-' ? 2 : 1;
      while (IsDigit(at(i))) {
        ++i;
      }
    }
    const std::size_t digits_end = i;
    TokenKind kind = has_exponent ? TokenKind::kExponent : has_point ? TokenKind::kDecimal : TokenKind::kInteger;
    const char suffix = static_cast<char>(at(i) & ~0x20);
    if (IsLetter(at(i))) {
      if (suffix == 'B' && (at(i + 1) | 0x20) == 'd') {
        kind = TokenKind::kBigDecimal;
        i += 2;
      } else if (suffix == 'D') {
        kind = TokenKind::kDouble;
        i += 1;
      } else if (suffix == 'F') {
        kind = TokenKind::kFloat;
        i += 1;
      } else if (!has_point && !has_exponent && (suffix == 'L' || suffix == 'S' || suffix == 'Y')) {
        kind = suffix == 'L' ? TokenKind::kLong : suffix == 'S' ? TokenKind::kShort : TokenKind::kByte;
        i += 1;
      }
    }
    if (IsWordCharacter(at(i)) || IsForeign(at(i))) {
      if (!has_point || text_[at_] == '.') {
        if (text_[at_] == '.') {
          return false;
        }
        return false;
      }
      // `1.5abc`: the number ends before the letters.
      i = digits_end;
      if (IsWordCharacter(at(i))) {
        return false;
      }
    }
    std::string digits(text_.substr(at_, digits_end - at_));
    Advance(i - at_);
    End(kind, std::move(digits));
    return true;
  }

  /// `e`, an optional sign and a digit at `i`.
  bool ExponentAt(std::size_t i) const {
    const auto at = [&](std::size_t k) { return k < text_.size() ? text_[k] : '\0'; };
    if (at(i) != 'e' && at(i) != 'E') {
      return false;
    }
    std::size_t k = i + (at(i + 1) == '+' || at(i + 1) == '-' ? 2 : 1);
    if (!IsDigit(at(k))) {
      return false;
    }
    while (IsDigit(at(k))) {
      ++k;
    }
    // `1e3x` is a word.
    const bool suffix = ((at(k) | 0x20) == 'd' || (at(k) | 0x20) == 'f') && !IsWordCharacter(at(k + 1));
    const bool big = (at(k) | 0x20) == 'b' && (at(k + 1) | 0x20) == 'd';
    return !IsWordCharacter(at(k)) || suffix || big;
  }

  std::string_view text_;
  LexerOptions options_;
  std::size_t at_ = 0;
  int line_ = 1;
  int column_ = 0;
  bool in_hint_ = false;
  Token token_;
  std::vector<Token> tokens_;
};

}  // namespace

std::string Unescape(std::string_view inside, char quote) {
  std::string out;
  out.reserve(inside.size());
  for (std::size_t i = 0; i < inside.size(); ++i) {
    const char c = inside[i];
    if (c == quote && i + 1 < inside.size() && inside[i + 1] == quote) {
      out.push_back(quote);
      ++i;
      continue;
    }
    if (c != '\\' || i + 1 >= inside.size()) {
      out.push_back(c);
      continue;
    }
    const char next = inside[++i];
    std::uint32_t code = 0;
    if (next == 'u' && ReadHex(inside, i + 1, 4, &code)) {
      std::uint32_t low = 0;
      if (code >= 0xD800 && code < 0xDC00 && i + 6 < inside.size() && inside[i + 5] == '\\' && inside[i + 6] == 'u' &&
          ReadHex(inside, i + 7, 4, &low) && low >= 0xDC00 && low < 0xE000) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
      AppendUtf8(code, &out);
      i += 4;
    } else if (next == 'U' && ReadHex(inside, i + 1, 8, &code) && code <= 0x10FFFF) {
      AppendUtf8(code, &out);
      i += 8;
    } else if ((next == '0' || next == '1') && i + 2 < inside.size() && inside[i + 1] >= '0' && inside[i + 1] <= '7' &&
               inside[i + 2] >= '0' && inside[i + 2] <= '7') {
      AppendUtf8(static_cast<std::uint32_t>((next - '0') * 64 + (inside[i + 1] - '0') * 8 + (inside[i + 2] - '0')),
                 &out);
      i += 2;
    } else {
      switch (next) {
        case '0':
          out.push_back('\0');
          break;
        case 'b':
          out.push_back('\b');
          break;
        case 'n':
          out.push_back('\n');
          break;
        case 'r':
          out.push_back('\r');
          break;
        case 't':
          out.push_back('\t');
          break;
        case 'Z':
          out.push_back('\x1A');
          break;
        case '%':
        case '_':
          out.push_back('\\');
          out.push_back(next);
          break;
        default:
          out.push_back(next);
          break;
      }
    }
  }
  return out;
}

Result<std::vector<Token>> Lex(std::string_view text, const LexerOptions& options) {
  return Lexer(text, options).Run();
}

}  // namespace fleuve::sql
