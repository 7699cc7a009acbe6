#include <unicode/regex.h>
#include <unicode/unistr.h>

#include <memory>
#include <unordered_map>

#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/text_split_internal.h"
#include "engine/functions/utf8_internal.h"

namespace fleuve::engine {

namespace {

// ---- LIKE ----

/// A pattern taken apart: literal characters, `_` and `%`.
struct LikePattern {
  enum class Kind : std::uint8_t { kText, kOne, kAny };
  struct Token {
    Kind kind;
    std::string text;  ///< one character
  };
  std::vector<Token> tokens;
  bool plain_text = true;  ///< no wildcard
  std::string literal;
};

LikePattern ParseLike(Str text, char escape) {
  LikePattern out;
  const Str pattern = text;
  auto fail = [&](const char* subclass, const std::string& message) {
    ThrowRowError(Error(ErrorKind::kInvalidArgument, std::string("INVALID_FORMAT.") + subclass, message)
                      .With("format", "'" + std::string(pattern) + "'")
                      .Family(ErrorFamily::kAnalysis));
  };
  for (std::size_t at = 0; at < text.size();) {
    std::size_t step = StepAt(text, at);
    if (text[at] == escape) {
      if (at + 1 >= text.size()) {
        fail("ESC_AT_THE_END",
             "The format is invalid: '" + std::string(pattern) + "'. The escape character is not allowed to end with.");
      }
      char next = text[at + 1];
      if (next != '_' && next != '%' && next != escape) {
        fail("ESC_IN_THE_MIDDLE", "The format is invalid: '" + std::string(pattern) +
                                      "'. The escape character is not allowed to precede '" + next + "'.");
      }
      out.tokens.push_back({LikePattern::Kind::kText, std::string(text.substr(at + 1, 1))});
      at += 2;
      continue;
    }
    if (text[at] == '%') {
      if (out.tokens.empty() || out.tokens.back().kind != LikePattern::Kind::kAny) {
        out.tokens.push_back({LikePattern::Kind::kAny, std::string()});
      }
    } else if (text[at] == '_') {
      out.tokens.push_back({LikePattern::Kind::kOne, std::string()});
    } else {
      out.tokens.push_back({LikePattern::Kind::kText, std::string(text.substr(at, step))});
    }
    at += step;
  }
  for (const LikePattern::Token& token : out.tokens) {
    out.plain_text = out.plain_text && token.kind == LikePattern::Kind::kText;
    out.literal += token.text;
  }
  return out;
}

bool MatchLike(const LikePattern& pattern, Str text) {
  if (pattern.plain_text) {
    return text == Str(pattern.literal);
  }
  const auto& tokens = pattern.tokens;
  std::size_t at = 0;
  std::size_t token = 0;
  std::size_t star = tokens.size();
  std::size_t star_at = 0;
  while (at < text.size()) {
    if (token < tokens.size()) {
      const LikePattern::Token& t = tokens[token];
      if (t.kind == LikePattern::Kind::kAny) {
        star = token++;
        star_at = at;
        continue;
      }
      std::size_t step = StepAt(text, at);
      if (t.kind == LikePattern::Kind::kOne ||
          (t.text.size() <= text.size() - at && text.substr(at, t.text.size()) == Str(t.text))) {
        at += t.kind == LikePattern::Kind::kOne ? step : t.text.size();
        ++token;
        continue;
      }
    }
    if (star == tokens.size()) {
      return false;
    }
    star_at += StepAt(text, star_at);
    at = star_at;
    token = star + 1;
  }
  while (token < tokens.size() && tokens[token].kind == LikePattern::Kind::kAny) {
    ++token;
  }
  return token == tokens.size();
}

/// like(text, pattern, escape)
template <bool kIgnoreCase>
Result<Kernel> MakeLike(const ScalarSite& site) {
  char escape = site.Literal(2).text()[0];
  return MapRows<bool, Str, Str>([escape](Str text, Str pattern) {
    thread_local std::string last;
    thread_local char last_escape = 0;
    thread_local bool last_folded = false;
    thread_local std::shared_ptr<const LikePattern> parsed;
    if (!parsed || last != pattern || last_escape != escape || last_folded != kIgnoreCase) {
      parsed = std::make_shared<const LikePattern>(ParseLike(kIgnoreCase ? Str(LowerText(pattern)) : pattern, escape));
      last = std::string(pattern);
      last_escape = escape;
      last_folded = kIgnoreCase;
    }
    if (kIgnoreCase) {
      return MatchLike(*parsed, LowerText(text));
    }
    return MatchLike(*parsed, text);
  });
}

// ---- Regular expressions ----

bool IsPlain(Str pattern) { return pattern.find_first_of("\\[](){}*+?|^$.") == Str::npos; }

/// Java's classes mean ASCII; ICU's mean Unicode.
std::string FromJava(Str pattern) {
  static const std::unordered_map<char, std::pair<const char*, const char*>> kClasses = {
      {'d', {"[0-9]", "[^0-9]"}},
      {'w', {"[a-zA-Z_0-9]", "[^a-zA-Z_0-9]"}},
      {'s', {"[ \\t\\n\\x0B\\f\\r]", "[^ \\t\\n\\x0B\\f\\r]"}}};
  static const std::unordered_map<std::string, const char*> kPosix = {
      {"Lower", "[a-z]"},           {"Upper", "[A-Z]"},
      {"ASCII", "[\\x00-\\x7F]"},   {"Alpha", "[a-zA-Z]"},
      {"Digit", "[0-9]"},           {"Alnum", "[a-zA-Z0-9]"},
      {"Graph", "[\\x21-\\x7E]"},   {"Print", "[\\x20-\\x7E]"},
      {"Blank", "[ \\t]"},          {"Cntrl", "[\\x00-\\x1F\\x7F]"},
      {"XDigit", "[0-9a-fA-F]"},    {"Space", "[ \\t\\n\\x0B\\f\\r]"},
      {"Punct", "[!-/:-@\\[-`{-~]"}};
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '\\' || i + 1 >= pattern.size()) {
      out += pattern[i];
      continue;
    }
    char c = pattern[i + 1];
    if (c == 'Q') {
      std::size_t end = pattern.find("\\E", i + 2);
      std::size_t stop = end == Str::npos ? pattern.size() : end + 2;
      out += pattern.substr(i, stop - i);
      i = stop - 1;
      continue;
    }
    char lower = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
    if (auto found = kClasses.find(lower); found != kClasses.end()) {
      out += c == lower ? found->second.first : found->second.second;
      ++i;
      continue;
    }
    if ((c == 'p' || c == 'P') && i + 2 < pattern.size() && pattern[i + 2] == '{') {
      std::size_t end = pattern.find('}', i);
      if (end != Str::npos) {
        std::string name(pattern.substr(i + 3, end - i - 3));
        if (auto found = kPosix.find(name); found != kPosix.end()) {
          std::string set = found->second;
          out += c == 'p' ? set : "[^" + set.substr(1);
          i = end;
          continue;
        }
        if (name.rfind("Is", 0) == 0) {
          // IsAlphabetic, IsLatin, ...: ICU has them without the prefix.
          out += std::string("\\") + c + "{" + name.substr(2) + "}";
          i = end;
          continue;
        }
      }
    }
    out += pattern[i];
    out += c;
    ++i;
  }
  return out;
}

[[noreturn]] void FailPattern(const std::string& function, Str pattern) {
  ThrowRowError(
      Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.PATTERN",
            "The value of parameter(s) `regexp` in `" + function + "` is invalid: '" + std::string(pattern) + "'.")
          .With("parameter", "`regexp`")
          .With("functionName", "`" + function + "`")
          .With("value", "'" + std::string(pattern) + "'")
          .Family(ErrorFamily::kRuntime));
}

/// A compiled pattern of this thread, ready to match.
class Matcher {
 public:
  Matcher(const std::string& function, Str pattern) : function_(function) {
    UErrorCode status = U_ZERO_ERROR;
    std::string translated = FromJava(pattern);
    icu::UnicodeString wide =
        icu::UnicodeString::fromUTF8(icu::StringPiece(translated.data(), static_cast<int>(translated.size())));
    matcher_ = std::make_unique<icu::RegexMatcher>(wide, 0, status);
    if (U_FAILURE(status)) {
      FailPattern(function, pattern);
    }
    // Steps of the engine; a pattern that needs more is refused rather than left to run.
    matcher_->setTimeLimit(100000, status);
  }

  /// The text stays alive in here.
  void Reset(Str text) {
    text_ = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int>(text.size())));
    matcher_->reset(text_);
  }
  bool Find() {
    UErrorCode status = U_ZERO_ERROR;
    bool found = matcher_->find(status) != 0;
    Check(status);
    return found;
  }
  std::string Group(int number) {
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeString group = matcher_->group(number, status);
    std::string out;
    group.toUTF8String(out);
    return out;
  }
  int groups() const { return matcher_->groupCount(); }
  int start() {
    UErrorCode status = U_ZERO_ERROR;
    return matcher_->start(status);
  }
  int end() {
    UErrorCode status = U_ZERO_ERROR;
    return matcher_->end(status);
  }
  /// Characters before the UTF-16 offset.
  std::int32_t CharactersBefore(int offset) const { return text_.countChar32(0, offset); }
  std::string Between(int from, int to) const {
    std::string out;
    text_.tempSubStringBetween(from, to).toUTF8String(out);
    return out;
  }
  int size() const { return text_.length(); }
  int OffsetOfCharacter(std::int32_t n) const { return text_.moveIndex32(0, n); }
  icu::RegexMatcher& icu() { return *matcher_; }
  void Check(UErrorCode status) const {
    if (U_FAILURE(status)) {
      ThrowRowError(
          Error(ErrorKind::kResourceExhausted, "FLEUVE_REGEXP_LIMIT",
                "The regular expression in `" + function_ + "` needs too many steps (" + u_errorName(status) + ").")
              .Family(ErrorFamily::kRuntime));
    }
  }

 private:
  std::string function_;
  std::unique_ptr<icu::RegexMatcher> matcher_;
  icu::UnicodeString text_;
};

Matcher& MatcherOf(const std::string& function, Str pattern) {
  thread_local std::unordered_map<std::string, std::unique_ptr<Matcher>> cache;
  std::string key(pattern);
  auto found = cache.find(key);
  if (found == cache.end()) {
    if (cache.size() > 64) {
      cache.clear();
    }
    found = cache.emplace(std::move(key), std::make_unique<Matcher>(function, pattern)).first;
  }
  return *found->second;
}

Result<Kernel> MakeRLike(const ScalarSite&) {
  return MapRows<bool, Str, Str>([](Str text, Str pattern) {
    if (IsPlain(pattern)) {
      return text.find(pattern) != Str::npos;
    }
    Matcher& matcher = MatcherOf("rlike", pattern);
    matcher.Reset(text);
    return matcher.Find();
  });
}

void CheckGroup(const std::string& function, int groups, std::int32_t index) {
  if (index < 0 || index > groups) {
    ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX",
                        "The value of parameter(s) `idx` in `" + function +
                            "` is invalid: Expects group index between 0 "
                            "and " +
                            std::to_string(groups) + ", but got " + std::to_string(index) + ".")
                      .With("parameter", "`idx`")
                      .With("functionName", "`" + function + "`")
                      .With("groupCount", std::to_string(groups))
                      .With("groupIndex", std::to_string(index))
                      .Family(ErrorFamily::kRuntime));
  }
}

Result<Kernel> MakeExtract(const ScalarSite&) {
  return MapRows<Str, Str, Str, std::int32_t>([](Str text, Str pattern, std::int32_t index) {
    Matcher& matcher = MatcherOf("regexp_extract", pattern);
    matcher.Reset(text);
    if (!matcher.Find()) {
      return std::string();
    }
    CheckGroup("regexp_extract", matcher.groups(), index);
    return matcher.Group(index);
  });
}

Result<Kernel> MakeReplace(const ScalarSite&) {
  return MapRows<Str, Str, Str, Str, std::int32_t>([](Str text, Str pattern, Str replacement, std::int32_t position) {
    Matcher& matcher = MatcherOf("regexp_replace", pattern);
    matcher.Reset(text);
    int start = matcher.OffsetOfCharacter(position - 1);
    if (start >= matcher.size() && start != 0) {
      return std::string(text);
    }
    UErrorCode status = U_ZERO_ERROR;
    if (start > 0) {
      matcher.icu().region(start, matcher.size(), status);
    }
    icu::UnicodeString wide =
        icu::UnicodeString::fromUTF8(icu::StringPiece(replacement.data(), static_cast<int>(replacement.size())));
    icu::UnicodeString out;
    while (matcher.Find()) {
      matcher.icu().appendReplacement(out, wide, status);
      if (U_FAILURE(status)) {
        ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_REGEXP_REPLACE",
                            "Could not perform regexp_replace for source = \"" + std::string(text) +
                                "\", pattern = \"" + std::string(pattern) + "\", replacement = \"" +
                                std::string(replacement) + "\" and position = " + std::to_string(position) + ".")
                          .With("source", std::string(text))
                          .With("pattern", std::string(pattern))
                          .With("replacement", std::string(replacement))
                          .With("position", std::to_string(position))
                          .Family(ErrorFamily::kRuntime));
      }
    }
    matcher.icu().appendTail(out);
    std::string bytes;
    out.toUTF8String(bytes);
    return bytes;
  });
}

Result<Kernel> MakeCount(const ScalarSite&) {
  return MapRows<std::int32_t, Str, Str>([](Str text, Str pattern) {
    Matcher& matcher = MatcherOf("regexp_count", pattern);
    matcher.Reset(text);
    std::int32_t count = 0;
    while (matcher.Find()) {
      ++count;
    }
    return count;
  });
}

Result<Kernel> MakeInstr(const ScalarSite&) {
  return MapRows<std::int32_t, Str, Str>([](Str text, Str pattern) {
    Matcher& matcher = MatcherOf("regexp_instr", pattern);
    matcher.Reset(text);
    return matcher.Find() ? matcher.CharactersBefore(matcher.start()) + 1 : 0;
  });
}

Result<Kernel> MakeSubstr(const ScalarSite&) {
  return MapRows<Str, Str, Str>([](Str text, Str pattern) -> std::optional<std::string> {
    Matcher& matcher = MatcherOf("regexp_substr", pattern);
    matcher.Reset(text);
    if (!matcher.Find()) {
      return std::nullopt;
    }
    std::string out = matcher.Group(0);
    if (out.empty()) {
      return std::nullopt;
    }
    return out;
  });
}

/// A kernel whose rows are lists of texts: `f(row)` fills them, false = NULL.
template <typename F>
void FillTextLists(duckdb::DataChunk& args, duckdb::Vector& result, F f) {
  result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
  auto* entries = duckdb::FlatVector::GetData<duckdb::list_entry_t>(result);
  std::vector<std::string> parts;
  duckdb::idx_t at = 0;
  for (duckdb::idx_t row = 0; row < args.size(); ++row) {
    parts.clear();
    if (!f(row, parts)) {
      duckdb::FlatVector::SetNull(result, row, true);
      continue;
    }
    duckdb::ListVector::Reserve(result, at + parts.size());
    auto& child = duckdb::ListVector::GetEntry(result);
    auto* data = duckdb::FlatVector::GetData<duckdb::string_t>(child);
    entries[row] = duckdb::list_entry_t(at, parts.size());
    for (const std::string& part : parts) {
      data[at++] = duckdb::StringVector::AddStringOrBlob(child, part.data(), part.size());
    }
    duckdb::ListVector::SetListSize(result, at);
  }
}

}  // namespace

void SplitText(Str text, Str pattern, std::int32_t limit, std::vector<std::string>& parts) {
  if (pattern.empty() && !text.empty()) {
    std::int64_t characters = CountCharacters(text);
    std::int64_t most = limit <= 0 || limit > characters ? characters : limit;
    std::size_t at = 0;
    for (std::int64_t i = 0; i + 1 < most; ++i) {
      std::size_t step = StepAt(text, at);
      parts.emplace_back(text.substr(at, step));
      at += step;
    }
    parts.emplace_back(text.substr(at));
    return;
  }
  auto full = [&] { return limit > 0 && static_cast<std::int32_t>(parts.size()) + 1 >= limit; };
  if (IsPlain(pattern)) {
    std::size_t at = 0;
    while (!pattern.empty() && !full()) {
      std::size_t found = text.find(pattern, at);
      if (found == Str::npos) {
        break;
      }
      parts.emplace_back(text.substr(at, found - at));
      at = found + pattern.size();
    }
    parts.emplace_back(text.substr(at));
    return;
  }
  Matcher& matcher = MatcherOf("split", pattern);
  matcher.Reset(text);
  int at = 0;
  while (!full() && matcher.Find()) {
    if (matcher.end() == 0) {
      continue;  // nothing matched at the start gives no empty part
    }
    parts.push_back(matcher.Between(at, matcher.start()));
    at = matcher.end();
  }
  parts.push_back(matcher.Between(at, matcher.size()));
}

namespace {

Result<Kernel> MakeSplit(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column text(args.data[0], args.size());
    Column pattern(args.data[1], args.size());
    Column limit(args.data[2], args.size());
    FillTextLists(args, result, [&](duckdb::idx_t row, std::vector<std::string>& parts) {
      if (text.IsNull(row) || pattern.IsNull(row) || limit.IsNull(row)) {
        return false;
      }
      SplitText(text.Get<Str>(row), pattern.Get<Str>(row), limit.Get<std::int32_t>(row), parts);
      return true;
    });
  });
}

Result<Kernel> MakeExtractAll(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column text(args.data[0], args.size());
    Column pattern(args.data[1], args.size());
    Column index(args.data[2], args.size());
    FillTextLists(args, result, [&](duckdb::idx_t row, std::vector<std::string>& parts) {
      if (text.IsNull(row) || pattern.IsNull(row) || index.IsNull(row)) {
        return false;
      }
      Matcher& matcher = MatcherOf("regexp_extract_all", pattern.Get<Str>(row));
      matcher.Reset(text.Get<Str>(row));
      while (matcher.Find()) {
        CheckGroup("regexp_extract_all", matcher.groups(), index.Get<std::int32_t>(row));
        parts.push_back(matcher.Group(index.Get<std::int32_t>(row)));
      }
      return true;
    });
  });
}

}  // namespace

const ScalarTable& RegexpKernels() {
  static const ScalarTable table = {
      {"spark_like", Nulls::kPropagate, MakeLike<false>},
      {"spark_ilike", Nulls::kPropagate, MakeLike<true>},
      {"spark_rlike", Nulls::kPropagate, MakeRLike},
      {"spark_regexp_extract", Nulls::kPropagate, MakeExtract},
      {"spark_regexp_extract_all", Nulls::kPropagate, MakeExtractAll},
      {"spark_regexp_replace", Nulls::kPropagate, MakeReplace},
      {"spark_regexp_count", Nulls::kPropagate, MakeCount},
      {"spark_regexp_instr", Nulls::kPropagate, MakeInstr},
      {"spark_regexp_substr", Nulls::kPropagate, MakeSubstr},
      {"spark_split", Nulls::kPropagate, MakeSplit},
  };
  return table;
}

}  // namespace fleuve::engine
