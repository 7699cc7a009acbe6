#include "proto/unpack.h"
#include "sql/parser_internal.h"

namespace fleuve::sql {

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') {
      c = static_cast<char>(c - 'a' + 'A');
    }
  }
  return out;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') {
      c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return out;
}

std::string QuotePart(std::string_view part) {
  bool plain = !part.empty();
  bool digits = true;
  for (const char c : part) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool digit = c >= '0' && c <= '9';
    plain = plain && (letter || digit);
    digits = digits && digit;
  }
  if (plain && !digits) {
    return std::string(part);
  }
  std::string out = "`";
  for (const char c : part) {
    out.push_back(c);
    if (c == '`') {
      out.push_back('`');
    }
  }
  out.push_back('`');
  return out;
}

std::string QuoteParts(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) {
      out.push_back('.');
    }
    out += QuotePart(part);
  }
  return out;
}

Parser::Parser(std::string_view text, const ParserOptions& options, google::protobuf::Arena* arena)
    : text_(text), options_(options), arena_(arena) {}

Result<void> Parser::Tokenize() {
  LexerOptions lexer;
  lexer.double_quoted_identifiers = options_.double_quoted_identifiers;
  lexer.escaped_string_literals = options_.escaped_string_literals;
  FLEUVE_ASSIGN(tokens_, Lex(text_, lexer));
  behind_parentheses_.resize(tokens_.size());
  for (std::size_t i = tokens_.size(); i-- > 0;) {
    const bool open = tokens_[i].kind == TokenKind::kSymbol && tokens_[i].text == "(";
    behind_parentheses_[i] = open ? behind_parentheses_[i + 1] : i;
  }
  return {};
}

// ------------------------------------------------------------------------------------------------------- tokens

bool Parser::IsWord(std::string_view upper, std::size_t ahead) const {
  const Token& token = Ahead(ahead);
  return token.kind == TokenKind::kWord && token.upper == upper;
}

bool Parser::IsAnyWord(std::initializer_list<std::string_view> words, std::size_t ahead) const {
  for (const std::string_view word : words) {
    if (IsWord(word, ahead)) {
      return true;
    }
  }
  return false;
}

bool Parser::IsSymbol(std::string_view symbol, std::size_t ahead) const {
  const Token& token = Ahead(ahead);
  return token.kind == TokenKind::kSymbol && token.text == symbol;
}

bool Parser::AreWords(std::initializer_list<std::string_view> words) const {
  std::size_t ahead = 0;
  for (const std::string_view word : words) {
    if (!IsWord(word, ahead++)) {
      return false;
    }
  }
  return true;
}

bool Parser::AcceptWord(std::string_view upper) {
  if (!IsWord(upper)) {
    return false;
  }
  Advance();
  return true;
}

bool Parser::AcceptWords(std::initializer_list<std::string_view> words) {
  if (!AreWords(words)) {
    return false;
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    Advance();
  }
  return true;
}

bool Parser::AcceptSymbol(std::string_view symbol) {
  if (!IsSymbol(symbol)) {
    return false;
  }
  Advance();
  return true;
}

Result<void> Parser::ExpectWord(std::string_view upper) {
  if (!AcceptWord(upper)) {
    return SyntaxErrorAt(at_, std::string(upper));
  }
  return {};
}

Result<void> Parser::ExpectWords(std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    FLEUVE_TRY(ExpectWord(word));
  }
  return {};
}

Result<void> Parser::ExpectSymbol(std::string_view symbol) {
  if (!AcceptSymbol(symbol)) {
    return SyntaxErrorAt(at_, std::string(symbol));
  }
  return {};
}

Result<void> Parser::ExpectTypeClose() {
  Token& token = tokens_[at_];
  if (token.kind == TokenKind::kSymbol && (token.text == ">>" || token.text == ">>>")) {
    token.text.pop_back();
    ++token.start;
    ++token.column;
    return {};
  }
  return ExpectSymbol(">");
}

Result<void> Parser::ExpectEnd() {
  while (AcceptSymbol(";")) {
  }
  if (!AtEnd()) {
    return SyntaxError();
  }
  return {};
}

bool Parser::IsIdentifier(std::size_t ahead) const {
  const Token& token = Ahead(ahead);
  return token.kind == TokenKind::kQuoted || token.kind == TokenKind::kWord;
}

bool Parser::IsStrictIdentifier(std::size_t ahead) const {
  return IsIdentifier(ahead) && !IsAnyWord({"ANTI", "CROSS", "EXCEPT", "FULL", "INNER", "INTERSECT", "JOIN", "LATERAL",
                                            "LEFT", "NATURAL", "ON", "RIGHT", "SEMI", "MINUS", "UNION", "USING"},
                                           ahead);
}

Result<std::string> Parser::ParseIdentifier() {
  if (!IsIdentifier()) {
    return SyntaxError();
  }
  const Token& token = Current();
  if (token.kind == TokenKind::kWord) {
    for (const char c : token.text) {
      if (static_cast<unsigned char>(c) >= 0x80) {
        Advance();
        return ErrorFrom(
            at_ - 1, "INVALID_IDENTIFIER",
            "The unquoted identifier " + token.text + " is invalid and must be back quoted as: `" + token.text + "`.");
      }
    }
    // `a-b` written without blanks is a name that needs quotes.
    if (IsSymbol("-", 1) && !Ahead(1).space_before && IsIdentifier(2) && !Ahead(2).space_before &&
        Ahead(2).kind == TokenKind::kWord) {
      const std::size_t first = at_;
      const std::string name = token.text + "-" + Ahead(2).text;
      Advance();
      Advance();
      Advance();
      return ErrorFrom(first, "INVALID_IDENTIFIER",
                       "The unquoted identifier " + name + " is invalid and must be back quoted as: `" + name + "`.");
    }
  }
  std::string name = token.text;
  Advance();
  return name;
}

Result<std::string> Parser::ParseString() {
  if (Current().kind != TokenKind::kString) {
    return SyntaxError();
  }
  std::string text;
  while (Current().kind == TokenKind::kString) {
    text += Current().text;
    Advance();
  }
  return text;
}

Result<std::int64_t> Parser::ParseIntegerToken() {
  if (Current().kind != TokenKind::kInteger && Current().kind != TokenKind::kLong) {
    return SyntaxError();
  }
  if (Current().text.size() > 18) {
    return SyntaxError();
  }
  const std::int64_t value = std::stoll(Current().text);
  Advance();
  return value;
}

// ------------------------------------------------------------------------------------------- errors and positions

namespace {

/// The text with a marker line, as Spark prints it below a parse error.
std::string Marked(std::string_view text, int line, int column, bool is_end) {
  std::string out = "\n\n== SQL ==\n";
  int number = 1;
  std::size_t at = 0;
  while (true) {
    const std::size_t end = text.find('\n', at);
    out += text.substr(at, end == std::string_view::npos ? std::string_view::npos : end - at);
    out.push_back('\n');
    if (number == line) {
      out += std::string(static_cast<std::size_t>(column), '-') + "^^^\n";
    }
    if (end == std::string_view::npos) {
      break;
    }
    at = end + 1;
    ++number;
  }
  (void)is_end;
  return out;
}

}  // namespace

Error Parser::SyntaxError() const { return SyntaxErrorAt(at_); }

Error Parser::SyntaxErrorAt(std::size_t index, std::string hint) const {
  const Token& token = tokens_[index];
  const bool is_end = token.kind == TokenKind::kEnd;
  QueryContext context;
  const int start = is_end ? std::max(0, static_cast<int>(text_.size()) - 1) : token.start;
  const int stop = is_end ? start : token.stop;
  context.start_index = start;
  context.stop_index = stop;
  context.line = token.line;
  context.column = token.column;
  context.fragment =
      is_end || text_.empty()
          ? std::string()
          : std::string(text_.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(stop - start + 1)));
  const std::string near = is_end ? "end of input" : "'" + context.fragment + "'";
  std::string message = "Syntax error at or near " + near;
  if (!hint.empty()) {
    message += ": missing '" + hint + "'";
  }
  message += ". SQLSTATE: 42601 (line " + std::to_string(token.line) + ", pos " + std::to_string(token.column) + ")" +
             Marked(text_, token.line, token.column, is_end);
  return Error(ErrorKind::kInvalidArgument, "PARSE_SYNTAX_ERROR", std::move(message))
      .With("error", near)
      .With("hint", hint.empty() ? std::string() : ": missing '" + hint + "'")
      .At(std::move(context));
}

Error Parser::ErrorFrom(std::size_t first, std::string condition, std::string message) const {
  const Token& token = tokens_[first];
  QueryContext context;
  context.start_index = token.start;
  context.stop_index = std::max(token.stop, Previous().stop);
  context.line = token.line;
  context.column = token.column;
  context.fragment = TextFrom(first);
  return Error(ErrorKind::kInvalidArgument, std::move(condition), std::move(message)).At(std::move(context));
}

Error Parser::Refused(std::string_view what) const { return Error::Unsupported(what); }

std::string Parser::TextFrom(std::size_t first_token) const { return TextBetween(first_token, at_ == 0 ? 0 : at_ - 1); }

std::string Parser::TextBetween(std::size_t first_token, std::size_t last_token) const {
  if (last_token < first_token || last_token >= tokens_.size()) {
    return "";
  }
  const int start = tokens_[first_token].start;
  const int stop = tokens_[last_token].stop;
  if (stop < start) {
    return "";
  }
  return std::string(text_.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(stop - start + 1)));
}

void Parser::SetOrigin(sc::Origin* origin, std::size_t first_token) const {
  const Token& token = tokens_[first_token];
  auto* jvm = origin->mutable_jvm_origin();
  jvm->set_line(token.line);
  jvm->set_start_position(token.column);
  jvm->set_start_index(token.start);
  jvm->set_stop_index(std::max(token.start, Previous().stop));
}

Parser::Expr Parser::Spanned(Expr expression, std::size_t first_token) const {
  SetOrigin(expression->mutable_common()->mutable_origin(), first_token);
  return expression;
}

Parser::Rel Parser::SpannedRel(Rel relation, std::size_t first_token) const {
  SetOrigin(relation->mutable_common()->mutable_origin(), first_token);
  return relation;
}

void Parser::FillSpan(pb::SourceSpan* span, std::size_t first_token) const {
  const Token& token = tokens_[first_token];
  span->set_start(token.start);
  span->set_stop(Previous().stop);
  span->set_line(token.line);
  span->set_column(token.column);
}

void Parser::AttachText(Rel relation) {
  relation->mutable_common()->mutable_origin()->mutable_jvm_origin()->set_sql_text(std::string(text_));
}

void Parser::AttachText(Expr expression) {
  expression->mutable_common()->mutable_origin()->mutable_jvm_origin()->set_sql_text(std::string(text_));
}

Result<void> Parser::CheckDepth() const {
  if (depth_ > kDepthMax) {
    return Error(ErrorKind::kInvalidArgument, "FAILED_TO_PARSE_TOO_COMPLEX",
                 "The statement, including potential SQL functions and referenced views, was too complex to parse: it "
                 "nests deeper than 10,000 levels.");
  }
  return {};
}

// ------------------------------------------------------------------------------------------------ making messages

Parser::Expr Parser::Attribute(const std::vector<std::string>& parts) const {
  Expr expression = New<sc::Expression>();
  for (auto scope = lambda_scopes_.rbegin(); scope != lambda_scopes_.rend(); ++scope) {
    for (const std::string& name : *scope) {
      if (Upper(name) == Upper(parts[0])) {
        auto* variable = expression->mutable_unresolved_named_lambda_variable();
        for (const std::string& part : parts) {
          variable->add_name_parts(part);
        }
        return expression;
      }
    }
  }
  expression->mutable_unresolved_attribute()->set_unparsed_identifier(QuoteParts(parts));
  return expression;
}

Parser::Expr Parser::CallOf(std::string name, const std::vector<Expr>& arguments) const {
  Expr expression = New<sc::Expression>();
  auto* function = expression->mutable_unresolved_function();
  function->set_function_name(std::move(name));
  for (Expr argument : arguments) {
    function->mutable_arguments()->AddAllocated(argument);
  }
  return expression;
}

Parser::Expr Parser::Call(std::string name, std::initializer_list<Expr> arguments) const {
  return CallOf(std::move(name), std::vector<Expr>(arguments));
}

Parser::Expr Parser::StringLiteral(std::string value) const {
  Expr expression = New<sc::Expression>();
  expression->mutable_literal()->set_string(std::move(value));
  return expression;
}

Parser::Expr Parser::IntLiteral(std::int32_t value) const {
  Expr expression = New<sc::Expression>();
  expression->mutable_literal()->set_integer(value);
  return expression;
}

Parser::Expr Parser::BoolLiteral(bool value) const {
  Expr expression = New<sc::Expression>();
  expression->mutable_literal()->set_boolean(value);
  return expression;
}

Parser::Expr Parser::NullLiteral() const {
  Expr expression = New<sc::Expression>();
  expression->mutable_literal()->mutable_null()->mutable_null();
  return expression;
}

Parser::Expr Parser::Extended(const pb::ExpressionExtension& extension) const {
  Expr expression = New<sc::Expression>();
  pb::Pack(extension, expression->mutable_extension());
  return expression;
}

Parser::Rel Parser::ExtendedRel(const pb::RelationExtension& extension) const {
  Rel relation = New<sc::Relation>();
  pb::Pack(extension, relation->mutable_extension());
  return relation;
}

Parser::Expr Parser::Negate(Expr expression, bool negate) const {
  return negate ? Call("not", {expression}) : expression;
}

Parser::Expr Parser::Copy(Expr expression) const {
  Expr copy = New<sc::Expression>();
  copy->CopyFrom(*expression);
  return copy;
}

}  // namespace fleuve::sql
