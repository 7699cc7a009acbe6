#include <cstring>

#include "engine/files/json_scanner_internal.h"

namespace fleuve::engine {

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int HexValue(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

void AppendCodePoint(std::string& out, std::uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c));
  } else if (c < 0x800) {
    out.push_back(static_cast<char>(0xC0 | (c >> 6)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else if (c < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | (c >> 12)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  } else {
    out.push_back(static_cast<char>(0xF0 | (c >> 18)));
    out.push_back(static_cast<char>(0x80 | ((c >> 12) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | ((c >> 6) & 0x3F)));
    out.push_back(static_cast<char>(0x80 | (c & 0x3F)));
  }
}

/// Four hex digits; -1 where there are none.
int ReadHex4(const char* p, const char* end) {
  if (end - p < 4) {
    return -1;
  }
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = HexValue(p[i]);
    if (digit < 0) {
      return -1;
    }
    value = value * 16 + digit;
  }
  return value;
}

}  // namespace

JsonToken JsonScanner::NonNumeric(const char* begin) {
  if (!non_numeric_) {
    return Fail("unrecognized token");
  }
  const char* p = begin;
  if (*p == '-' || *p == '+') {
    ++p;
  }
  const bool is_signed = p != begin;
  for (const std::string_view word : {std::string_view("NaN"), std::string_view("Infinity"), std::string_view("INF")}) {
    const auto left = static_cast<std::size_t>(end_ - p);
    if (left >= word.size() && std::string_view(p, word.size()) == word &&
        (left == word.size() || !IsNamePart(p[word.size()])) && !(is_signed && word == "NaN")) {
      p += word.size();
      number_ = std::string_view(begin, static_cast<std::size_t>(p - begin));
      p_ = p;
      return JsonToken::kFraction;
    }
  }
  return Fail("unrecognized token");
}

JsonToken JsonScanner::Number() {
  const char* begin = p_;
  const char* p = begin;
  if (p < end_ && *p == '-') {
    ++p;
  }
  if (p >= end_ || !IsDigit(*p)) {
    return NonNumeric(begin);
  }
  if (*p == '0' && p + 1 < end_ && IsDigit(p[1]) && !leading_zeros_) {
    return Fail("leading zeroes are not allowed in a number");
  }
  while (p < end_ && IsDigit(*p)) {
    ++p;
  }
  JsonToken token = JsonToken::kInteger;
  if (p < end_ && *p == '.') {
    ++p;
    if (p >= end_ || !IsDigit(*p)) {
      return Fail("a decimal point must be followed by a digit");
    }
    while (p < end_ && IsDigit(*p)) {
      ++p;
    }
    token = JsonToken::kFraction;
  }
  if (p < end_ && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p < end_ && (*p == '+' || *p == '-')) {
      ++p;
    }
    if (p >= end_ || !IsDigit(*p)) {
      return Fail("an exponent must have a digit");
    }
    while (p < end_ && IsDigit(*p)) {
      ++p;
    }
    token = JsonToken::kFraction;
  }
  number_ = std::string_view(begin, static_cast<std::size_t>(p - begin));
  p_ = p;
  return token;
}

bool JsonScanner::SkipComment() {
  if (end_ - p_ >= 2 && p_[1] == '/') {
    while (p_ < end_ && *p_ != '\n' && *p_ != '\r') {
      ++p_;
    }
    return true;
  }
  if (end_ - p_ >= 2 && p_[1] == '*') {
    const std::string_view rest(p_ + 2, static_cast<std::size_t>(end_ - p_ - 2));
    const std::size_t at = rest.find("*/");
    if (at == std::string_view::npos) {
      return FailBool("a comment is not closed");
    }
    p_ += 2 + at + 2;
    return true;
  }
  return FailBool("unexpected character '/'");
}

bool JsonScanner::Bare(std::string_view* name) {
  const char* begin = p_;
  if (p_ >= end_ || !IsNamePart(*p_) || IsDigit(*p_)) {
    return false;
  }
  while (p_ < end_ && IsNamePart(*p_)) {
    ++p_;
  }
  *name = std::string_view(begin, static_cast<std::size_t>(p_ - begin));
  return true;
}

bool JsonScanner::SlowString(char quote, const char* begin, std::string_view* text) {
  bool plain = true;
  for (;;) {
    if (p_ >= end_) {
      return FailBool("unexpected end of input in a string");
    }
    const char c = *p_;
    if (c == quote) {
      if (plain) {
        *text = std::string_view(begin, static_cast<std::size_t>(p_ - begin));
      } else {
        *text = scratch_;
      }
      ++p_;
      return true;
    }
    if (static_cast<unsigned char>(c) < 0x20 && !control_characters_) {
      return FailBool("unquoted control character in a string");
    }
    if (c != '\\') {
      if (!plain) {
        scratch_.push_back(c);
      }
      ++p_;
      continue;
    }
    if (plain) {
      scratch_.assign(begin, static_cast<std::size_t>(p_ - begin));
      plain = false;
    }
    ++p_;
    if (p_ >= end_) {
      return FailBool("unexpected end of input in a string");
    }
    const char escaped = *p_++;
    switch (escaped) {
      case 'b':
        scratch_.push_back('\b');
        break;
      case 't':
        scratch_.push_back('\t');
        break;
      case 'n':
        scratch_.push_back('\n');
        break;
      case 'f':
        scratch_.push_back('\f');
        break;
      case 'r':
        scratch_.push_back('\r');
        break;
      case '"':
      case '/':
      case '\\':
        scratch_.push_back(escaped);
        break;
      case 'u': {
        const int unit = ReadHex4(p_, end_);
        if (unit < 0) {
          return FailBool("a hex digit was expected in an escape");
        }
        p_ += 4;
        auto code = static_cast<std::uint32_t>(unit);
        if (code >= 0xD800 && code < 0xDC00) {
          const int low = end_ - p_ >= 6 && p_[0] == '\\' && p_[1] == 'u' ? ReadHex4(p_ + 2, end_) : -1;
          if (low >= 0xDC00 && low < 0xE000) {
            p_ += 6;
            code = 0x10000 + ((code - 0xD800) << 10) + (static_cast<std::uint32_t>(low) - 0xDC00);
          } else {
            code = '?';
          }
        } else if (code >= 0xDC00 && code < 0xE000) {
          code = '?';
        }
        AppendCodePoint(scratch_, code);
        break;
      }
      default:
        if (!backslash_any_ && !(escaped == '\'' && single_quotes_)) {
          return FailBool("unrecognized character escape");
        }
        scratch_.push_back(escaped);
        break;
    }
  }
}

bool JsonScanner::SkipRest(JsonToken token) {
  switch (token) {
    case JsonToken::kObject: {
      if (++depth_ > kMaxDepth) {
        --depth_;
        return FailBool("the document nests too deeply");
      }
      Open();
      bool first = true;
      bool good = true;
      for (;;) {
        std::string_view name;
        const int got = NextName(first, &name);
        if (got <= 0) {
          good = got == 0;
          break;
        }
        first = false;
        if (!SkipValue()) {
          good = false;
          break;
        }
      }
      --depth_;
      return good;
    }
    case JsonToken::kArray: {
      if (++depth_ > kMaxDepth) {
        --depth_;
        return FailBool("the document nests too deeply");
      }
      Open();
      bool first = true;
      bool good = true;
      for (;;) {
        const int got = NextElement(first);
        if (got <= 0) {
          good = got == 0;
          break;
        }
        first = false;
        if (!SkipValue()) {
          good = false;
          break;
        }
      }
      --depth_;
      return good;
    }
    case JsonToken::kString: {
      std::string_view text;
      return String(&text);
    }
    case JsonToken::kError:
      return false;
    default:
      return true;
  }
}

std::string CompactJson(std::string_view raw) {
  std::string out;
  out.reserve(raw.size());
  char quote = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char c = raw[i];
    if (quote != 0) {
      out.push_back(c);
      if (c == '\\' && i + 1 < raw.size()) {
        out.push_back(raw[++i]);
      } else if (c == quote) {
        quote = 0;
      }
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      continue;
    }
    if (c == '"' || c == '\'') {
      quote = c;
    }
    out.push_back(c);
  }
  return out;
}

}  // namespace fleuve::engine
