#include <algorithm>

#include "sql/parser_internal.h"

namespace fleuve::sql {
namespace {

using FunctionType = sc::Expression::UnresolvedFunction;

// Binds tighter than predicates: the level where values start.
constexpr int kComparison = 1;

bool IsTimestampUnit(std::string_view upper) {
  static const char* const kUnits[] = {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE",  "HOUR", "DAY",
                                       "DAYOFYEAR",   "WEEK",        "MONTH",  "QUARTER", "YEAR"};
  return std::any_of(std::begin(kUnits), std::end(kUnits), [&](const char* unit) { return upper == unit; });
}

}  // namespace

// ------------------------------------------------------------------------------------------------- words and calls

Result<Parser::Expr> Parser::ParseWordExpression() {
  const std::size_t first = at_;
  if (IsLambdaAhead()) {
    return ParseLambda();
  }
  if (Current().kind == TokenKind::kWord) {
    const std::string word = Current().upper;
    const bool call = IsSymbol("(", 1);
    const bool qualified = IsSymbol(".", 1);
    if (Ahead(1).kind == TokenKind::kString && word != "ESCAPE") {
      static const char* const kTypes[] = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ",
                                           "TIME", "X",         "INTERVAL"};
      for (const char* type : kTypes) {
        if (word == type) {
          Advance();
          if (word == "INTERVAL") {
            return ParseIntervalLiteral(first);
          }
          return ParseTypedLiteral(word, first);
        }
      }
    }
    if (word == "INTERVAL" && IsIntervalLiteralAhead()) {
      Advance();
      return ParseIntervalLiteral(first);
    }
    if (word == "CASE" && !call && !qualified && !IsSymbol(",", 1) && !IsSymbol(")", 1) && !EndsStatement(1)) {
      return ParseCase();
    }
    if (word == "CASE" && call) {
      return ParseCase();
    }
    if (!qualified && !call) {
      if (word == "TRUE" || word == "FALSE") {
        Advance();
        return Spanned(BoolLiteral(word == "TRUE"), first);
      }
      if (word == "NULL") {
        Advance();
        return Spanned(NullLiteral(), first);
      }
      if (word == "DEFAULT" && default_allowed_) {
        Advance();
        pb::ExpressionExtension extension;
        extension.mutable_default_value();
        return Spanned(Extended(extension), first);
      }
    }
    if (call) {
      if (word == "CAST") {
        return ParseCast(sc::Expression::Cast::EVAL_MODE_UNSPECIFIED);
      }
      if (word == "TRY_CAST") {
        return ParseCast(sc::Expression::Cast::EVAL_MODE_TRY);
      }
      if (word == "TRIM") {
        return ParseTrim();
      }
      if (word == "SUBSTR" || word == "SUBSTRING") {
        return ParseSubstring();
      }
      if (word == "POSITION") {
        return ParsePosition();
      }
      if (word == "OVERLAY") {
        return ParseOverlay();
      }
      if (word == "EXTRACT") {
        return ParseExtract();
      }
      if (word == "STRUCT") {
        return ParseStructCall();
      }
      if (word == "IDENTIFIER") {
        return ParseIdentifierClause();
      }
      if (word == "EXISTS" && IsQueryAhead(2)) {
        Advance();
        Advance();
        FLEUVE_ASSIGN(Rel query, ParseQuery());
        FLEUVE_TRY(ExpectSymbol(")"));
        FLEUVE_ASSIGN(Expr exists, MakeSubquery(pb::Subquery::EXISTS, query, {}));
        return Spanned(exists, first);
      }
      if ((word == "TIMESTAMPADD" || word == "DATEADD" || word == "DATE_ADD" || word == "TIMESTAMPDIFF" ||
           word == "DATEDIFF" || word == "DATE_DIFF" || word == "TIMEDIFF") &&
          ((Ahead(2).kind == TokenKind::kWord && IsTimestampUnit(Ahead(2).upper)) ||
           Ahead(2).kind == TokenKind::kString) &&
          IsSymbol(",", 3)) {
        // Two arguments: the plain function (its first argument a column that is named like a unit, or a string).
        std::size_t ahead = 2;
        int level = 0;
        int commas = 0;
        while (Ahead(ahead).kind != TokenKind::kEnd) {
          if (IsSymbol("(", ahead) || IsSymbol("[", ahead)) {
            ++level;
          } else if (IsSymbol(")", ahead) || IsSymbol("]", ahead)) {
            if (level-- == 0) {
              break;
            }
          } else if (IsSymbol(",", ahead) && level == 0) {
            ++commas;
          }
          ++ahead;
        }
        if (commas == 2) {
          return ParseTimestampUnitCall(word);
        }
      }
    }
  }
  // A name: parts joined by dots, then a call, a star or a column.
  std::vector<std::string> parts;
  while (true) {
    if (Current().kind == TokenKind::kWord) {
      for (const char c : Current().text) {
        if (static_cast<unsigned char>(c) >= 0x80) {
          const std::string name = Current().text;
          Advance();
          return ErrorFrom(
              at_ - 1, "INVALID_IDENTIFIER",
              "The unquoted identifier " + name + " is invalid and must be back quoted as: `" + name + "`.");
        }
      }
    }
    parts.push_back(Current().text);
    Advance();
    if (IsSymbol(".") && IsSymbol("*", 1)) {
      Advance();
      Advance();
      return ParseStar(parts, first);
    }
    if (!IsSymbol(".") || !IsIdentifier(1)) {
      break;
    }
    Advance();
  }
  if (IsSymbol("(")) {
    return ParseFunctionCall(parts, first);
  }
  return Spanned(Attribute(parts), first);
}

Result<Parser::Expr> Parser::ParseCase() {
  const std::size_t first = at_;
  FLEUVE_TRY(ExpectWord("CASE"));
  Expr operand = nullptr;
  if (!IsWord("WHEN")) {
    FLEUVE_ASSIGN(operand, ParseExpression());
  }
  std::vector<Expr> arguments;
  while (AcceptWord("WHEN")) {
    const std::size_t when = at_;
    FLEUVE_ASSIGN(Expr condition, ParseExpression());
    if (operand != nullptr) {
      condition = Spanned(Call("==", {arguments.empty() ? operand : Copy(operand), condition}), when);
    }
    FLEUVE_TRY(ExpectWord("THEN"));
    FLEUVE_ASSIGN(Expr value, ParseExpression());
    arguments.push_back(condition);
    arguments.push_back(value);
  }
  if (arguments.empty()) {
    return SyntaxError();
  }
  if (AcceptWord("ELSE")) {
    FLEUVE_ASSIGN(Expr value, ParseExpression());
    arguments.push_back(value);
  }
  FLEUVE_TRY(ExpectWord("END"));
  return Spanned(CallOf("when", arguments), first);
}

Result<Parser::Expr> Parser::ParseCast(sc::Expression::Cast::EvalMode mode) {
  const std::size_t first = at_;
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  FLEUVE_ASSIGN(Expr value, ParseExpression());
  FLEUVE_TRY(ExpectWord("AS"));
  FLEUVE_ASSIGN(const types::DataType type, ParseType());
  FLEUVE_TRY(ExpectSymbol(")"));
  Expr cast = New<sc::Expression>();
  cast->mutable_cast()->set_allocated_expr(value);
  cast->mutable_cast()->set_type_str(type.Sql());
  if (mode != sc::Expression::Cast::EVAL_MODE_UNSPECIFIED) {
    cast->mutable_cast()->set_eval_mode(mode);
  }
  return Spanned(cast, first);
}

Result<Parser::Expr> Parser::ParseTrim() {
  const std::size_t first = at_;
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  std::string function = "trim";
  bool special = false;
  if (IsAnyWord({"BOTH", "LEADING", "TRAILING"}) && !IsSymbol(",", 1) && !IsSymbol(")", 1) && !IsSymbol(".", 1)) {
    function = IsWord("LEADING") ? "ltrim" : IsWord("TRAILING") ? "rtrim" : "trim";
    special = true;
    Advance();
  }
  if (special && AcceptWord("FROM")) {
    FLEUVE_ASSIGN(Expr source, ParseExpression());
    FLEUVE_TRY(ExpectSymbol(")"));
    return Spanned(Call(function, {source}), first);
  }
  if (IsSymbol(")")) {
    Advance();
    return Spanned(CallOf(function, {}), first);
  }
  FLEUVE_ASSIGN(Expr value, ParseFunctionArgument());
  if (AcceptWord("FROM")) {
    FLEUVE_ASSIGN(Expr source, ParseExpression());
    FLEUVE_TRY(ExpectSymbol(")"));
    // The two-argument functions take the trimmed characters first.
    return Spanned(Call(function, {value, source}), first);
  }
  if (special) {
    return SyntaxErrorAt(at_, "FROM");
  }
  std::vector<Expr> arguments{value};
  while (AcceptSymbol(",")) {
    FLEUVE_ASSIGN(Expr more, ParseFunctionArgument());
    arguments.push_back(more);
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  return Spanned(CallOf(function, arguments), first);
}

Result<Parser::Expr> Parser::ParseSubstring() {
  const std::size_t first = at_;
  const std::string name = Lower(Current().text);
  if (IsSymbol(")", 2)) {
    Advance();
    return ParseFunctionCall({name}, first);
  }
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  FLEUVE_ASSIGN(Expr source, ParseFunctionArgument());
  std::vector<Expr> arguments{source};
  if (AcceptWord("FROM")) {
    FLEUVE_ASSIGN(Expr position, ParseValue(kComparison));
    arguments.push_back(position);
    if (AcceptWord("FOR")) {
      FLEUVE_ASSIGN(Expr length, ParseValue(kComparison));
      arguments.push_back(length);
    }
  } else {
    while (AcceptSymbol(",")) {
      FLEUVE_ASSIGN(Expr more, ParseFunctionArgument());
      arguments.push_back(more);
    }
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  return Spanned(CallOf(name, arguments), first);
}

Result<Parser::Expr> Parser::ParsePosition() {
  const std::size_t first = at_;
  if (IsSymbol(")", 2)) {
    Advance();
    return ParseFunctionCall({"position"}, first);
  }
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  const std::size_t inside = at_;
  FLEUVE_ASSIGN(Expr part, ParseValue(kComparison));
  if (AcceptWord("IN")) {
    FLEUVE_ASSIGN(Expr source, ParseValue(kComparison));
    FLEUVE_TRY(ExpectSymbol(")"));
    return Spanned(Call("locate", {part, source}), first);
  }
  at_ = inside - 1;
  return ParseFunctionCall({"position"}, first);
}

Result<Parser::Expr> Parser::ParseOverlay() {
  const std::size_t first = at_;
  if (IsSymbol(")", 2)) {
    Advance();
    return ParseFunctionCall({"overlay"}, first);
  }
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  FLEUVE_ASSIGN(Expr input, ParseFunctionArgument());
  std::vector<Expr> arguments{input};
  if (AcceptWord("PLACING")) {
    FLEUVE_ASSIGN(Expr replace, ParseValue(kComparison));
    arguments.push_back(replace);
    FLEUVE_TRY(ExpectWord("FROM"));
    FLEUVE_ASSIGN(Expr position, ParseValue(kComparison));
    arguments.push_back(position);
    if (AcceptWord("FOR")) {
      FLEUVE_ASSIGN(Expr length, ParseValue(kComparison));
      arguments.push_back(length);
    }
  } else {
    while (AcceptSymbol(",")) {
      FLEUVE_ASSIGN(Expr more, ParseFunctionArgument());
      arguments.push_back(more);
    }
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  return Spanned(CallOf("overlay", arguments), first);
}

Result<Parser::Expr> Parser::ParseExtract() {
  const std::size_t first = at_;
  if (IsIdentifier(2) && IsWord("FROM", 3)) {
    Advance();
    Advance();
    const std::string field = Current().text;
    Advance();
    Advance();
    FLEUVE_ASSIGN(Expr source, ParseValue(kComparison));
    FLEUVE_TRY(ExpectSymbol(")"));
    return Spanned(Call("extract", {StringLiteral(field), source}), first);
  }
  Advance();
  return ParseFunctionCall({"extract"}, first);
}

Result<Parser::Expr> Parser::ParseStructCall() {
  const std::size_t first = at_;
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  std::vector<Expr> arguments;
  if (!IsSymbol(")")) {
    do {
      FLEUVE_ASSIGN(Expr argument, ParseNamedExpression());
      arguments.push_back(argument);
    } while (AcceptSymbol(","));
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  return Spanned(CallOf("struct", arguments), first);
}

Result<Parser::Expr> Parser::ParseTimestampUnitCall(const std::string& function) {
  const std::size_t first = at_;
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  if (Current().kind == TokenKind::kString) {
    const std::string text = Current().text;
    Advance();
    return ErrorFrom(
        first, "INVALID_PARAMETER_VALUE.DATETIME_UNIT",
        "The value of parameter(s) `unit` in `" + Lower(function) +
            "` is invalid: expects one of the units "
            "without quotes YEAR, QUARTER, MONTH, WEEK, DAY, DAYOFYEAR, HOUR, MINUTE, SECOND, MILLISECOND, "
            "MICROSECOND, but got the string literal '" +
            text + "'.");
  }
  const std::string unit = Current().text;  // as written: it is shown
  Advance();
  std::vector<Expr> arguments{StringLiteral(unit)};
  while (AcceptSymbol(",")) {
    FLEUVE_ASSIGN(Expr argument, ParseValue(kComparison));
    arguments.push_back(argument);
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  const bool add = function == "TIMESTAMPADD" || function == "DATEADD" || function == "DATE_ADD";
  return Spanned(CallOf(add ? "timestampadd" : "timestampdiff", arguments), first);
}

std::optional<std::string> Parser::ConstantText(const sc::Expression& expression) {
  if (expression.has_literal() && expression.literal().has_string()) {
    return expression.literal().string();
  }
  if (expression.has_unresolved_function()) {
    const auto& function = expression.unresolved_function();
    const std::string name = Lower(function.function_name());
    if (name == "concat") {
      std::string out;
      for (const auto& argument : function.arguments()) {
        const auto part = ConstantText(argument);
        if (!part) {
          return std::nullopt;
        }
        out += *part;
      }
      return out;
    }
    if ((name == "lower" || name == "upper") && function.arguments_size() == 1) {
      const auto part = ConstantText(function.arguments(0));
      if (!part) {
        return std::nullopt;
      }
      return name == "lower" ? Lower(*part) : Upper(*part);
    }
  }
  return std::nullopt;
}

Result<Parser::Expr> Parser::ParseIdentifierClause() {
  const std::size_t first = at_;
  Advance();
  FLEUVE_TRY(ExpectSymbol("("));
  FLEUVE_ASSIGN(Expr name, ParseExpression());
  FLEUVE_TRY(ExpectSymbol(")"));
  const auto text = ConstantText(*name);
  if (text) {
    FLEUVE_ASSIGN(std::vector<std::string> parts, sql::ParseMultipartName(*text));
    if (IsSymbol("(")) {
      return ParseFunctionCall(parts, first);
    }
    while (IsSymbol(".") && IsIdentifier(1)) {
      Advance();
      parts.push_back(Current().text);
      Advance();
    }
    return Spanned(Attribute(parts), first);
  }
  pb::ExpressionExtension extension;
  auto* dynamic = extension.mutable_dynamic_name();
  dynamic->mutable_name()->CopyFrom(*name);
  if (AcceptSymbol("(")) {
    dynamic->set_is_function(true);
    if (!IsSymbol(")")) {
      do {
        FLEUVE_ASSIGN(Expr argument, ParseFunctionArgument());
        dynamic->add_arguments()->CopyFrom(*argument);
      } while (AcceptSymbol(","));
    }
    FLEUVE_TRY(ExpectSymbol(")"));
  }
  return Spanned(Extended(extension), first);
}

Result<Parser::Expr> Parser::ParseFunctionArgument() {
  if (IsIdentifier() && IsSymbol("=>", 1)) {
    const std::size_t first = at_;
    const std::string key = Current().text;
    Advance();
    Advance();
    FLEUVE_ASSIGN(Expr value, ParseFunctionArgument());
    Expr named = New<sc::Expression>();
    named->mutable_named_argument_expression()->set_key(key);
    named->mutable_named_argument_expression()->set_allocated_value(value);
    return Spanned(named, first);
  }
  if (IsWord("TABLE") && (IsSymbol("(", 1) || IsIdentifier(1))) {
    const std::size_t first = at_;
    Advance();
    Rel relation = nullptr;
    if (AcceptSymbol("(")) {
      if (IsQueryAhead(0)) {
        FLEUVE_ASSIGN(relation, ParseQuery());
      } else {
        FLEUVE_ASSIGN(relation, ParseTableReference());
      }
      FLEUVE_TRY(ExpectSymbol(")"));
    } else {
      FLEUVE_ASSIGN(relation, ParseTableReference());
    }
    pb::ExpressionExtension extension;
    auto* table = extension.mutable_table_argument();
    table->mutable_relation()->CopyFrom(*relation);
    if (AcceptWords({"WITH", "SINGLE", "PARTITION"})) {
      table->mutable_options()->set_with_single_partition(true);
    } else if (IsAnyWord({"PARTITION", "DISTRIBUTE"})) {
      Advance();
      FLEUVE_TRY(ExpectWord("BY"));
      const bool several = AcceptSymbol("(");
      do {
        FLEUVE_ASSIGN(Expr part, ParseExpression());
        table->mutable_options()->add_partition_spec()->CopyFrom(*part);
      } while (several && AcceptSymbol(","));
      if (several) {
        FLEUVE_TRY(ExpectSymbol(")"));
      }
    }
    if (table->has_options() && IsAnyWord({"ORDER", "SORT"})) {
      Advance();
      FLEUVE_TRY(ExpectWord("BY"));
      const bool several = AcceptSymbol("(");
      do {
        FLEUVE_ASSIGN(sc::Expression::SortOrder * order, ParseSortItem());
        table->mutable_options()->add_order_spec()->CopyFrom(*order);
      } while (several && AcceptSymbol(","));
      if (several) {
        FLEUVE_TRY(ExpectSymbol(")"));
      }
    }
    return Spanned(Extended(extension), first);
  }
  return ParseExpression();
}

Result<Parser::Expr> Parser::ParseFunctionCall(const std::vector<std::string>& name, std::size_t first) {
  FLEUVE_TRY(ExpectSymbol("("));
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  Expr call = New<sc::Expression>();
  auto* function = call->mutable_unresolved_function();
  function->set_function_name(name.size() == 1 ? name[0] : QuoteParts(name));
  bool ignore_nulls_inside = false;
  if (!IsSymbol(")")) {
    if (IsWord("DISTINCT") && !IsSymbol(",", 1) && !IsSymbol(")", 1) && !IsSymbol(".", 1)) {
      Advance();
      function->set_is_distinct(true);
    } else if (IsWord("ALL") && !IsSymbol(",", 1) && !IsSymbol(")", 1) && !IsSymbol(".", 1)) {
      Advance();
    }
    do {
      FLEUVE_ASSIGN(Expr argument, ParseFunctionArgument());
      function->mutable_arguments()->AddAllocated(argument);
      if (AcceptWords({"IGNORE", "NULLS"})) {
        ignore_nulls_inside = true;
      } else {
        AcceptWords({"RESPECT", "NULLS"});
      }
    } while (AcceptSymbol(","));
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  Spanned(call, first);
  if (ignore_nulls_inside) {
    pb::ExpressionExtension extension;
    auto* modifiers = extension.mutable_function();
    modifiers->mutable_function()->CopyFrom(*function);
    modifiers->set_ignore_nulls(true);
    call = Spanned(Extended(extension), first);
    if (IsWord("FILTER") && IsSymbol("(", 1)) {
      return Refused("IGNORE NULLS inside the parentheses together with FILTER");
    }
    if (IsWord("OVER")) {
      return ParseWindowOver(call, first);
    }
    return call;
  }
  return ParseFunctionTail(function, call, first);
}

Result<Parser::Expr> Parser::ParseFunctionTail(FunctionType* function, Expr call, std::size_t first) {
  pb::ExpressionExtension extension;
  auto* modifiers = extension.mutable_function();
  bool modified = false;
  if (AcceptWords({"WITHIN", "GROUP"})) {
    FLEUVE_TRY(ExpectSymbol("("));
    FLEUVE_TRY(ExpectWords({"ORDER", "BY"}));
    do {
      FLEUVE_ASSIGN(sc::Expression::SortOrder * order, ParseSortItem());
      modifiers->add_within_group()->CopyFrom(*order);
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    modified = true;
  }
  if (IsWord("FILTER") && IsSymbol("(", 1) && IsWord("WHERE", 2)) {
    Advance();
    Advance();
    Advance();
    FLEUVE_ASSIGN(Expr condition, ParseExpression());
    FLEUVE_TRY(ExpectSymbol(")"));
    modifiers->mutable_filter()->CopyFrom(*condition);
    modified = true;
  }
  if (AcceptWords({"IGNORE", "NULLS"})) {
    modifiers->set_ignore_nulls(true);
    modified = true;
  } else {
    AcceptWords({"RESPECT", "NULLS"});
  }
  if (modified) {
    modifiers->mutable_function()->CopyFrom(*function);
    call = Spanned(Extended(extension), first);
  }
  if (IsWord("OVER") && (IsSymbol("(", 1) || IsIdentifier(1))) {
    return ParseWindowOver(call, first);
  }
  return call;
}

}  // namespace fleuve::sql
