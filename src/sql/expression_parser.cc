#include <algorithm>
#include <functional>

#include "sql/parser_internal.h"

namespace fleuve::sql {

namespace {

struct BinaryOperator {
  std::string_view symbol;
  const char* function;
  int precedence;
};

// Higher binds tighter.
constexpr int kComparison = 1;
constexpr BinaryOperator kBinaryOperators[] = {
    {"=", "==", kComparison},
    {"==", "==", kComparison},
    {"<=>", "<=>", kComparison},
    {"<>", "!=", kComparison},
    {"!=", "!=", kComparison},
    {"<", "<", kComparison},
    {"<=", "<=", kComparison},
    {">", ">", kComparison},
    {">=", ">=", kComparison},
    {"|", "|", 2},
    {"^", "^", 3},
    {"&", "&", 4},
    {"<<", "<<", 5},
    {">>", ">>", 5},
    {">>>", ">>>", 5},
    {"+", "+", 6},
    {"-", "-", 6},
    {"||", "||", 6},
    {"*", "*", 7},
    {"/", "/", 7},
    {"%", "%", 7},
};

/// Words that cannot start an expression unless what follows shows that they are names.
bool IsClauseWord(const Token& token) {
  static const char* const kWords[] = {"AND",    "AS",        "BETWEEN", "ELSE",  "EXCEPT", "FROM", "GROUP", "HAVING",
                                       "IN",     "INTERSECT", "IS",      "JOIN",  "LIMIT",  "ON",   "OR",    "ORDER",
                                       "SELECT", "THEN",      "UNION",   "USING", "WHEN",   "WHERE"};
  if (token.kind != TokenKind::kWord) {
    return false;
  }
  return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) { return token.upper == word; });
}

}  // namespace

Result<Parser::Expr> Parser::ParseExpression() {
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  return ParseBoolean();
}

Result<Parser::Expr> Parser::ParseNamedExpression() {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr expression, ParseExpression());
  std::vector<std::string> names;
  if (AcceptWord("AS")) {
    if (AcceptSymbol("(")) {
      do {
        FLEUVE_ASSIGN(std::string name, ParseIdentifier());
        names.push_back(std::move(name));
      } while (AcceptSymbol(","));
      FLEUVE_TRY(ExpectSymbol(")"));
    } else {
      FLEUVE_ASSIGN(std::string name, ParseIdentifier());
      names.push_back(std::move(name));
    }
  } else if (IsSymbol("(") && IsIdentifier(1) && (IsSymbol(",", 2) || IsSymbol(")", 2)) &&
             expression->has_unresolved_function()) {
    // `f(x) (a, b)`: aliases of a generator without AS.
    Advance();
    do {
      FLEUVE_ASSIGN(std::string name, ParseIdentifier());
      names.push_back(std::move(name));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
  } else if (IsImplicitAlias()) {
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    names.push_back(std::move(name));
  }
  if (names.empty()) {
    return expression;
  }
  Expr alias = New<sc::Expression>();
  alias->mutable_alias()->set_allocated_expr(expression);
  for (std::string& name : names) {
    alias->mutable_alias()->add_name(std::move(name));
  }
  return Spanned(alias, first);
}

bool Parser::IsExpressionStart() const {
  const Token& token = Current();
  if (token.kind == TokenKind::kEnd || token.kind == TokenKind::kUnknown || token.kind == TokenKind::kHint ||
      token.kind == TokenKind::kHintEnd) {
    return false;
  }
  if (token.kind == TokenKind::kSymbol) {
    static constexpr std::string_view kStarts[] = {"(", "-", "+", "~", "!", "*", ":", "?"};
    return std::any_of(std::begin(kStarts), std::end(kStarts), [&](std::string_view s) { return token.text == s; });
  }
  if (IsClauseWord(token)) {
    const Token& next = Ahead(1);
    return (next.kind == TokenKind::kSymbol && (next.text == "," || next.text == ")" || next.text == "." ||
                                                next.text == "=" || next.text == "<" || next.text == ">")) ||
           ((token.upper == "ORDER" || token.upper == "GROUP") && EndsStatement(1));
  }
  return true;
}

Result<Parser::Expr> Parser::BalancedChain(const std::string& function, const std::vector<Expr>& terms,
                                           std::size_t first) {
  // A long chain becomes a tree of logarithmic depth, split as Spark splits it.
  std::function<Expr(std::size_t, std::size_t)> build = [&](std::size_t low, std::size_t high) -> Expr {
    if (low == high) {
      return terms[low];
    }
    if (high - low == 1) {
      return Spanned(Call(function, {terms[low], terms[high]}), first);
    }
    const std::size_t middle = low + (high - low) / 2;
    Expr left = build(low, middle);
    Expr right = build(middle + 1, high);
    return Spanned(Call(function, {left, right}), first);
  };
  return build(0, terms.size() - 1);
}

Result<Parser::Expr> Parser::ParseBoolean() {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr left, ParseAnd());
  if (!IsWord("OR")) {
    return left;
  }
  std::vector<Expr> terms{left};
  while (AcceptWord("OR")) {
    FLEUVE_ASSIGN(Expr term, ParseAnd());
    terms.push_back(term);
  }
  return BalancedChain("or", terms, first);
}

Result<Parser::Expr> Parser::ParseAnd() {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr left, ParseNot());
  if (!IsWord("AND")) {
    return left;
  }
  std::vector<Expr> terms{left};
  while (AcceptWord("AND")) {
    FLEUVE_ASSIGN(Expr term, ParseNot());
    terms.push_back(term);
  }
  return BalancedChain("and", terms, first);
}

Result<Parser::Expr> Parser::ParseNot() {
  const std::size_t first = at_;
  const bool not_word = IsWord("NOT") && !IsSymbol(",", 1) && !IsSymbol(")", 1) && !EndsStatement(1);
  if (not_word || IsSymbol("!")) {
    Advance();
    Depth depth(&depth_);
    FLEUVE_TRY(CheckDepth());
    FLEUVE_ASSIGN(Expr inner, ParseNot());
    return Spanned(Call("not", {inner}), first);
  }
  return ParsePredicated();
}

Result<Parser::Expr> Parser::ParsePredicated() {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr value, ParseValue(kComparison));
  if (IsWord("NOT") && IsAnyWord({"BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP"}, 1)) {
    Advance();
    return ParsePredicate(value, first, true);
  }
  if (IsSymbol("!") && IsAnyWord({"BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP"}, 1)) {
    Advance();
    return ParsePredicate(value, first, true);
  }
  if (IsAnyWord({"BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS"})) {
    return ParsePredicate(value, first, false);
  }
  return value;
}

Result<Parser::Expr> Parser::ParsePredicate(Expr value, std::size_t first, bool negated) {
  if (AcceptWord("BETWEEN")) {
    FLEUVE_ASSIGN(Expr lower, ParseValue(kComparison));
    FLEUVE_TRY(ExpectWord("AND"));
    FLEUVE_ASSIGN(Expr upper, ParseValue(kComparison));
    Expr between = Spanned(Call("between", {value, lower, upper}), first);
    return Spanned(Negate(between, negated), first);
  }
  if (AcceptWord("IN")) {
    FLEUVE_TRY(ExpectSymbol("("));
    if (IsQueryAhead(0)) {
      const std::size_t mark = at_;
      auto query = ParseQuery();
      if (query.ok() && IsSymbol(")")) {
        Advance();
        const auto row = rows_.find(value);
        const std::vector<Expr> values = row != rows_.end() ? row->second : std::vector<Expr>{value};
        FLEUVE_ASSIGN(Expr in, MakeSubquery(pb::Subquery::IN, *query, values));
        Spanned(in, first);
        return Spanned(Negate(in, negated), first);
      }
      if (!IsSymbol("(", 0) && tokens_[mark].text != "(") {
        return query.ok() ? Result<Expr>(SyntaxError()) : Result<Expr>(std::move(query).error());
      }
      at_ = mark;
    }
    std::vector<Expr> arguments{value};
    do {
      FLEUVE_ASSIGN(Expr item, ParseExpression());
      arguments.push_back(item);
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    Expr in = Spanned(CallOf("in", arguments), first);
    return Spanned(Negate(in, negated), first);
  }
  if (IsAnyWord({"LIKE", "ILIKE"})) {
    const std::string function = Current().upper == "LIKE" ? "like" : "ilike";
    Advance();
    if (IsAnyWord({"ANY", "SOME", "ALL"}) && IsSymbol("(", 1)) {
      return ParseQuantifiedLike(value, function, negated);
    }
    FLEUVE_ASSIGN(Expr pattern, ParseValue(kComparison));
    std::vector<Expr> arguments{value, pattern};
    if (AcceptWord("ESCAPE")) {
      const std::size_t at = at_;
      FLEUVE_ASSIGN(std::string escape, ParseString());
      if (escape.empty() || (static_cast<unsigned char>(escape[0]) < 0x80 && escape.size() != 1)) {
        return ErrorFrom(at, "INVALID_ESC",
                         "`EscapeChar` should be a string literal of length one, but got '" + escape + "'.");
      }
      arguments.push_back(StringLiteral(std::move(escape)));
    }
    Expr like = Spanned(CallOf(function, arguments), first);
    return Spanned(Negate(like, negated), first);
  }
  if (AcceptWord("RLIKE") || AcceptWord("REGEXP")) {
    FLEUVE_ASSIGN(Expr pattern, ParseValue(kComparison));
    Expr rlike = Spanned(Call("rlike", {value, pattern}), first);
    return Spanned(Negate(rlike, negated), first);
  }
  FLEUVE_TRY(ExpectWord("IS"));
  const bool is_not = AcceptWord("NOT");
  if (AcceptWord("NULL")) {
    return Spanned(Call(is_not ? "isNotNull" : "isNull", {value}), first);
  }
  if (AcceptWord("UNKNOWN")) {
    return Spanned(Call(is_not ? "isNotNull" : "isNull", {value}), first);
  }
  if (IsAnyWord({"TRUE", "FALSE"})) {
    const bool wanted = IsWord("TRUE");
    Advance();
    Expr same = Spanned(Call("<=>", {value, BoolLiteral(wanted)}), first);
    return Spanned(Negate(same, is_not), first);
  }
  if (AcceptWords({"DISTINCT", "FROM"})) {
    FLEUVE_ASSIGN(Expr other, ParseValue(kComparison));
    Expr same = Spanned(Call("<=>", {value, other}), first);
    return Spanned(Negate(same, !is_not), first);
  }
  return SyntaxError();
}

Result<Parser::Expr> Parser::ParseQuantifiedLike(Expr value, const std::string& function, bool negated) {
  const std::size_t first = at_;
  const bool all = IsWord("ALL");
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  if (IsSymbol(")")) {
    return ErrorFrom(first, "INVALID_SQL_SYNTAX.EMPTY_PARTITION_VALUE", "Expected something between '(' and ')'.");
  }
  std::vector<Expr> patterns;
  bool constant = true;
  do {
    FLEUVE_ASSIGN(Expr pattern, ParseExpression());
    constant = constant && pattern->has_literal() && pattern->literal().has_string();
    patterns.push_back(pattern);
  } while (AcceptSymbol(","));
  FLEUVE_TRY(ExpectSymbol(")"));
  if (constant) {
    // One function over all patterns, as its name in a result shows.
    std::vector<Expr> arguments{value};
    arguments.insert(arguments.end(), patterns.begin(), patterns.end());
    return Spanned(CallOf((negated ? "not" : "") + function + (all ? "all" : "any"), arguments), first);
  }
  std::vector<Expr> terms;
  for (Expr pattern : patterns) {
    Expr like = Spanned(Call(function, {terms.empty() ? value : Copy(value), pattern}), first);
    terms.push_back(Spanned(Negate(like, negated), first));
  }
  return BalancedChain(all ? "and" : "or", terms, first);
}

// ------------------------------------------------------------------------------------------------- value expressions

Result<Parser::Expr> Parser::ParseValue(int min_precedence) {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr left, ParseUnary());
  while (true) {
    const char* function = nullptr;
    int precedence = 0;
    if (Current().kind == TokenKind::kSymbol) {
      for (const BinaryOperator& candidate : kBinaryOperators) {
        if (candidate.symbol == Current().text) {
          function = candidate.function;
          precedence = candidate.precedence;
          break;
        }
      }
    } else if (IsWord("DIV")) {
      function = "div";
      precedence = 7;
    }
    if (function == nullptr || precedence < min_precedence) {
      return left;
    }
    Advance();
    Depth depth(&depth_);
    FLEUVE_TRY(CheckDepth());
    FLEUVE_ASSIGN(Expr right, ParseValue(precedence + 1));
    const std::string_view name(function);
    if (name == "!=") {
      left = Spanned(Call("not", {Spanned(Call("==", {left, right}), first)}), first);
    } else {
      left = Spanned(Call(name == "||" ? "concat" : function, {left, right}), first);
    }
  }
}

Result<Parser::Expr> Parser::ParseUnary() {
  const std::size_t first = at_;
  if (IsSymbol("-")) {
    const TokenKind next = Ahead(1).kind;
    const bool number = next >= TokenKind::kInteger && next <= TokenKind::kBigDecimal;
    if (!number) {
      Advance();
      Depth depth(&depth_);
      FLEUVE_TRY(CheckDepth());
      FLEUVE_ASSIGN(Expr inner, ParseUnary());
      return Spanned(Call("unary_minus", {inner}), first);
    }
    return ParsePostfix();
  }
  if (IsSymbol("+") || IsSymbol("~")) {
    const bool plus = IsSymbol("+");
    Advance();
    Depth depth(&depth_);
    FLEUVE_TRY(CheckDepth());
    FLEUVE_ASSIGN(Expr inner, ParseUnary());
    return Spanned(Call(plus ? "positive" : "~", {inner}), first);
  }
  return ParsePostfix();
}

Result<Parser::Expr> Parser::ParsePostfix() {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr base, ParsePrimary());
  int levels = 0;
  while (true) {
    if (++levels > kDepthMax) {
      depth_ = kDepthMax + 1;
      return CheckDepth().error();
    }
    if (IsSymbol("[")) {
      Advance();
      FLEUVE_ASSIGN(Expr index, ParseValue(kComparison));
      FLEUVE_TRY(ExpectSymbol("]"));
      Expr item = New<sc::Expression>();
      item->mutable_unresolved_extract_value()->set_allocated_child(base);
      item->mutable_unresolved_extract_value()->set_allocated_extraction(index);
      base = Spanned(item, first);
      continue;
    }
    if (IsSymbol(".") && IsIdentifier(1)) {
      Advance();
      const std::string field = Current().text;
      Advance();
      Expr item = New<sc::Expression>();
      item->mutable_unresolved_extract_value()->set_allocated_child(base);
      item->mutable_unresolved_extract_value()->set_allocated_extraction(StringLiteral(field));
      base = Spanned(item, first);
      continue;
    }
    if (IsSymbol("::")) {
      Advance();
      FLEUVE_ASSIGN(const types::DataType type, ParseType());
      Expr cast = New<sc::Expression>();
      cast->mutable_cast()->set_allocated_expr(base);
      cast->mutable_cast()->set_type_str(type.Sql());
      base = Spanned(cast, first);
      continue;
    }
    if (IsSymbol(":") && (IsIdentifier(1) || IsSymbol("[", 1))) {
      Advance();
      std::string path = "$";
      bool is_first = true;
      while (true) {
        if (IsSymbol("[")) {
          Advance();
          if (Current().kind == TokenKind::kString) {
            FLEUVE_ASSIGN(const std::string key, ParseString());
            path += "['" + key + "']";
          } else if (AcceptSymbol("*")) {
            path += "[*]";
          } else {
            FLEUVE_ASSIGN(const std::int64_t index, ParseIntegerToken());
            path += "[" + std::to_string(index) + "]";
          }
          FLEUVE_TRY(ExpectSymbol("]"));
        } else if (is_first || (IsSymbol(".") && IsIdentifier(1))) {
          if (!is_first) {
            Advance();
          }
          path += Current().kind == TokenKind::kQuoted ? "['" + Current().text + "']" : "." + Current().text;
          Advance();
        } else {
          break;
        }
        is_first = false;
      }
      pb::ExpressionExtension extension;
      extension.mutable_variant_path()->mutable_child()->CopyFrom(*base);
      extension.mutable_variant_path()->set_path(path);
      base = Spanned(Extended(extension), first);
      continue;
    }
    if (IsWord("COLLATE") && IsIdentifier(1)) {
      Advance();
      std::string name = Current().text;
      Advance();
      while (IsSymbol(".") && IsIdentifier(1)) {
        Advance();
        name = Current().text;
        Advance();
      }
      base = Spanned(Call("collate", {base, StringLiteral(std::move(name))}), first);
      continue;
    }
    return base;
  }
}

Result<Parser::Expr> Parser::ParsePrimary() {
  const std::size_t first = at_;
  const Token& token = Current();
  switch (token.kind) {
    case TokenKind::kInteger:
    case TokenKind::kLong:
    case TokenKind::kShort:
    case TokenKind::kByte:
    case TokenKind::kDecimal:
    case TokenKind::kExponent:
    case TokenKind::kFloat:
    case TokenKind::kDouble:
    case TokenKind::kBigDecimal: {
      return ParseNumber(false);
    }
    case TokenKind::kString: {
      FLEUVE_ASSIGN(std::string text, ParseString());
      return Spanned(StringLiteral(std::move(text)), first);
    }
    case TokenKind::kSymbol:
      if (token.text == "-") {
        Advance();
        FLEUVE_ASSIGN(Expr number, ParseNumber(true));
        return Spanned(number, first);
      }
      if (token.text == "(") {
        return ParseParenthesized();
      }
      if (token.text == "*") {
        Advance();
        return ParseStar({}, first);
      }
      if (token.text == ":" || token.text == "?") {
        return ParseParameter();
      }
      return SyntaxError();
    case TokenKind::kWord:
    case TokenKind::kQuoted:
      if (!IsExpressionStart()) {
        return SyntaxError();
      }
      return ParseWordExpression();
    default:
      return SyntaxError();
  }
}

/// A parameter counts as the literal that it would be in the text: a decimal has the digits of its value.
static sc::Expression* AsWritten(sc::Expression* value) {
  if (value->has_literal() && value->literal().has_decimal()) {
    value->mutable_literal()->mutable_decimal()->clear_precision();
    value->mutable_literal()->mutable_decimal()->clear_scale();
  }
  return value;
}

Result<Parser::Expr> Parser::ParseParameter() {
  const std::size_t first = at_;
  const bool by_name = !options_.named_parameters.empty();
  const bool by_position = !options_.positional_parameters.empty();
  if ((IsSymbol("?") && by_name && !by_position) || (IsSymbol(":") && by_position && !by_name)) {
    return ErrorFrom(first, "INVALID_QUERY_MIXED_QUERY_PARAMETERS",
                     "Parameterized query must either use positional, or named parameters, but not both.");
  }
  if (AcceptSymbol("?")) {
    if (positional_next_ >= options_.positional_parameters.size()) {
      return ErrorFrom(first, "UNBOUND_SQL_PARAMETER",
                       "Found the unbound parameter: _" + std::to_string(tokens_[first].start) +
                           ". Please, fix `args` and provide a mapping of the "
                           "parameter to either a SQL literal or collection constructor functions.")
          .With("name", "_" + std::to_string(tokens_[first].start));
    }
    Expr value = New<sc::Expression>();
    value->CopyFrom(*options_.positional_parameters[positional_next_++]);
    return AsWritten(value);
  }
  FLEUVE_TRY(ExpectSymbol(":"));
  if (!IsIdentifier()) {
    return SyntaxError();
  }
  const std::string name = Current().text;
  Advance();
  const auto found = options_.named_parameters.find(name);
  if (found == options_.named_parameters.end()) {
    return ErrorFrom(first, "UNBOUND_SQL_PARAMETER",
                     "Found the unbound parameter: " + name +
                         ". Please, fix `args` and provide a mapping of the parameter to either a SQL literal or "
                         "collection constructor functions.")
        .With("name", name);
  }
  Expr value = New<sc::Expression>();
  value->CopyFrom(*found->second);
  return AsWritten(value);
}

Result<Parser::Expr> Parser::ParseStar(const std::vector<std::string>& target, std::size_t first) {
  if (IsWord("EXCEPT") && IsSymbol("(", 1) && IsIdentifier(2) && !IsQueryWord(2)) {
    Advance();
    Advance();
    pb::ExpressionExtension extension;
    auto* except = extension.mutable_star_except();
    except->set_target(QuoteParts(target));
    do {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
      except->add_names(QuoteParts(parts));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    return Spanned(Extended(extension), first);
  }
  Expr star = New<sc::Expression>();
  star->mutable_unresolved_star();
  if (!target.empty()) {
    star->mutable_unresolved_star()->set_unparsed_target(QuoteParts(target) + ".*");
  }
  return Spanned(star, first);
}

bool Parser::IsQueryWord(std::size_t ahead) const {
  if (IsAnyWord({"SELECT", "WITH"}, ahead)) {
    return !IsSymbol(",", ahead + 1) && !IsSymbol(")", ahead + 1) && !IsSymbol(".", ahead + 1);
  }
  if (IsWord("FROM", ahead)) {
    return IsIdentifier(ahead + 1) || IsSymbol("(", ahead + 1);
  }
  if (IsWord("TABLE", ahead)) {
    return IsIdentifier(ahead + 1);
  }
  if (IsWord("VALUES", ahead)) {
    return !EndsStatement(ahead + 1) && !IsSymbol(",", ahead + 1) && !IsSymbol(")", ahead + 1) &&
           !IsSymbol(".", ahead + 1);
  }
  return false;
}

bool Parser::IsQueryAhead(std::size_t ahead) const {
  const std::size_t index = std::min(at_ + ahead, tokens_.size() - 1);
  return IsQueryWord(behind_parentheses_[index] - at_);
}

Result<Parser::Expr> Parser::MakeSubquery(pb::Subquery::Kind kind, Rel relation, const std::vector<Expr>& values) {
  pb::ExpressionExtension extension;
  auto* subquery = extension.mutable_subquery();
  subquery->set_kind(kind);
  subquery->mutable_relation()->CopyFrom(*relation);
  for (const Expr value : values) {
    subquery->add_values()->CopyFrom(*value);
  }
  return Extended(extension);
}

Result<Parser::Expr> Parser::ParseParenthesized() {
  const std::size_t first = at_;
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  if (IsLambdaAhead()) {
    return ParseLambda();
  }
  if (IsQueryAhead(1)) {
    Advance();
    const bool certain = IsQueryWord(0);
    const std::size_t windows = window_scopes_.size();
    auto query = ParseQuery();
    if (query.ok() && AcceptSymbol(")")) {
      FLEUVE_ASSIGN(Expr subquery, MakeSubquery(pb::Subquery::SCALAR, *query, {}));
      return Spanned(subquery, first);
    }
    if (certain) {
      return query.ok() ? Result<Expr>(SyntaxError()) : Result<Expr>(std::move(query).error());
    }
    // `((SELECT 1) + 1)`: the inner parentheses hold the query.
    window_scopes_.resize(windows);
    at_ = first;
  }
  Advance();
  std::vector<Expr> items;
  do {
    FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
    items.push_back(item);
  } while (AcceptSymbol(","));
  FLEUVE_TRY(ExpectSymbol(")"));
  if (items.size() == 1) {
    if (items[0]->has_alias()) {
      return SyntaxErrorAt(first);
    }
    return items[0];
  }
  std::vector<Expr> arguments;
  std::vector<Expr> values;
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::string name = "col" + std::to_string(i + 1);
    Expr value = items[i];
    if (value->has_alias()) {
      name = value->alias().name(0);
      value = items[i]->mutable_alias()->mutable_expr();
      value = Copy(value);
    } else if (value->has_unresolved_attribute()) {
      const std::string& text = value->unresolved_attribute().unparsed_identifier();
      auto parts = sql::ParseMultipartName(text);
      name = parts.ok() && !parts->empty() ? parts->back() : text;
    } else if (value->has_unresolved_named_lambda_variable()) {
      const auto& parts = value->unresolved_named_lambda_variable().name_parts();
      name = parts.Get(parts.size() - 1);
    }
    arguments.push_back(StringLiteral(std::move(name)));
    arguments.push_back(value);
    values.push_back(value);
  }
  Expr row = Spanned(CallOf("named_struct", arguments), first);
  rows_[row] = std::move(values);
  return row;
}

bool Parser::IsLambdaAhead() const {
  if (IsIdentifier() && IsSymbol("->", 1)) {
    return true;
  }
  if (!IsSymbol("(")) {
    return false;
  }
  std::size_t ahead = 1;
  while (true) {
    if (!IsIdentifier(ahead)) {
      return false;
    }
    ++ahead;
    if (IsSymbol(",", ahead)) {
      ++ahead;
      continue;
    }
    return IsSymbol(")", ahead) && IsSymbol("->", ahead + 1);
  }
}

Result<Parser::Expr> Parser::ParseLambda() {
  const std::size_t first = at_;
  std::vector<std::string> names;
  if (AcceptSymbol("(")) {
    do {
      names.push_back(Current().text);
      Advance();
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
  } else {
    names.push_back(Current().text);
    Advance();
  }
  FLEUVE_TRY(ExpectSymbol("->"));
  lambda_scopes_.push_back(names);
  auto body = ParseExpression();
  lambda_scopes_.pop_back();
  if (!body.ok()) {
    return std::move(body).error();
  }
  Expr lambda = New<sc::Expression>();
  lambda->mutable_lambda_function()->set_allocated_function(*body);
  for (const std::string& name : names) {
    lambda->mutable_lambda_function()->add_arguments()->add_name_parts(name);
  }
  return Spanned(lambda, first);
}

}  // namespace fleuve::sql
