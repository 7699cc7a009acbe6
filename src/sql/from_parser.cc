#include <algorithm>

#include "sql/parser_internal.h"

namespace fleuve::sql {

namespace {

/// Words that end a select item or a table without being an alias of it.
bool IsClauseStart(const Token& token) {
  static const char* const kWords[] = {
      "WHERE",   "GROUP",   "ORDER",  "HAVING",  "LIMIT",      "OFFSET", "UNION", "EXCEPT", "MINUS",   "INTERSECT",
      "WINDOW",  "LATERAL", "SORT",   "CLUSTER", "DISTRIBUTE", "FROM",   "ON",    "USING",  "JOIN",    "CROSS",
      "INNER",   "LEFT",    "RIGHT",  "FULL",    "NATURAL",    "SEMI",   "ANTI",  "PIVOT",  "UNPIVOT", "TABLESAMPLE",
      "SET",     "WHEN",    "SELECT", "AND",     "OR",         "THEN",   "ELSE",  "END",    "IS",      "IN",
      "BETWEEN", "LIKE",    "ILIKE",  "RLIKE",   "NOT",        "AS",     "DO",    "FOR",    "VALUES",  "QUALIFY",
      "UNTIL",   "INTO",    "FILTER", "OVER",    "DIV",        "ASC",    "DESC",  "ZORDER", "WITH"};
  if (token.kind != TokenKind::kWord) {
    return false;
  }
  return std::any_of(std::begin(kWords), std::end(kWords), [&](const char* word) { return token.upper == word; });
}

}  // namespace

bool Parser::IsImplicitAlias() const {
  const Token& token = Current();
  if (token.kind == TokenKind::kQuoted) {
    return true;
  }
  if (token.kind != TokenKind::kWord) {
    return false;
  }
  if (IsClauseStart(token)) {
    // A clause word is a name only where nothing of its clause can follow.
    return EndsStatement(1) || (token.upper == "FROM" && IsSymbol(",", 1));
  }
  return true;
}

Result<Parser::Rel> Parser::ParseFromClause() {
  FLEUVE_TRY(ExpectWord("FROM"));
  FLEUVE_ASSIGN(Rel left, ParseRelation());
  while (AcceptSymbol(",")) {
    const std::size_t first = at_;
    const bool lateral = AcceptWord("LATERAL");
    FLEUVE_ASSIGN(Rel right, ParseRelationPrimary());
    Rel join = New<sc::Relation>();
    if (lateral) {
      join->mutable_lateral_join()->set_allocated_left(left);
      join->mutable_lateral_join()->set_allocated_right(right);
      join->mutable_lateral_join()->set_join_type(sc::Join::JOIN_TYPE_INNER);
      left = SpannedRel(join, first);
      FLEUVE_ASSIGN(left, ParseJoins(left));
    } else {
      // Joins bind tighter than the comma.
      FLEUVE_ASSIGN(right, ParseJoins(right));
      join->mutable_join()->set_allocated_left(left);
      join->mutable_join()->set_allocated_right(right);
      join->mutable_join()->set_join_type(sc::Join::JOIN_TYPE_INNER);
      left = SpannedRel(join, first);
    }
  }
  return left;
}

Result<Parser::Rel> Parser::ParseRelation() {
  AcceptWord("LATERAL");
  FLEUVE_ASSIGN(Rel left, ParseRelationPrimary());
  return ParseJoins(left);
}

Result<Parser::Rel> Parser::ParseJoins(Rel left) {
  while (true) {
    const std::size_t first = at_;
    if (IsWord("PIVOT") && IsSymbol("(", 1)) {
      FLEUVE_ASSIGN(left, ParsePivot(left));
      continue;
    }
    if (IsWord("UNPIVOT") && (IsSymbol("(", 1) || IsWord("NULLS", 2))) {
      FLEUVE_ASSIGN(left, ParseUnpivot(left));
      continue;
    }
    const bool natural = IsWord("NATURAL");
    std::size_t ahead = natural ? 1 : 0;
    auto type = sc::Join::JOIN_TYPE_INNER;
    if (IsWord("JOIN", ahead)) {
      ahead += 1;
    } else if (IsWord("INNER", ahead) && IsWord("JOIN", ahead + 1)) {
      ahead += 2;
    } else if (IsWord("CROSS", ahead) && IsWord("JOIN", ahead + 1)) {
      type = sc::Join::JOIN_TYPE_CROSS;
      ahead += 2;
    } else if (IsAnyWord({"LEFT", "RIGHT", "FULL"}, ahead)) {
      type = IsWord("LEFT", ahead)    ? sc::Join::JOIN_TYPE_LEFT_OUTER
             : IsWord("RIGHT", ahead) ? sc::Join::JOIN_TYPE_RIGHT_OUTER
                                      : sc::Join::JOIN_TYPE_FULL_OUTER;
      const bool is_left = IsWord("LEFT", ahead);
      ++ahead;
      if (IsWord("OUTER", ahead)) {
        ++ahead;
      } else if (is_left && IsWord("SEMI", ahead)) {
        type = sc::Join::JOIN_TYPE_LEFT_SEMI;
        ++ahead;
      } else if (is_left && IsWord("ANTI", ahead)) {
        type = sc::Join::JOIN_TYPE_LEFT_ANTI;
        ++ahead;
      }
      if (!IsWord("JOIN", ahead)) {
        while (at_ + 1 < tokens_.size() && ahead-- > 0) {
          Advance();
        }
        return SyntaxError();
      }
      ++ahead;
    } else if (IsAnyWord({"SEMI", "ANTI"}, ahead) && IsWord("JOIN", ahead + 1)) {
      type = IsWord("SEMI", ahead) ? sc::Join::JOIN_TYPE_LEFT_SEMI : sc::Join::JOIN_TYPE_LEFT_ANTI;
      ahead += 2;
    } else {
      if (natural) {
        Advance();
        return SyntaxError();
      }
      return left;
    }
    for (std::size_t i = 0; i < ahead; ++i) {
      Advance();
    }
    const bool lateral = AcceptWord("LATERAL");
    FLEUVE_ASSIGN(Rel right, ParseRelationPrimary());
    Expr condition = nullptr;
    std::vector<std::string> using_columns;
    if (!natural) {
      if (AcceptWord("ON")) {
        FLEUVE_ASSIGN(condition, ParseExpression());
      } else if (IsWord("USING") && IsSymbol("(", 1)) {
        Advance();
        FLEUVE_ASSIGN(using_columns, ParseIdentifierList());
      }
    }
    Rel relation = New<sc::Relation>();
    if (lateral) {
      if (natural || !using_columns.empty()) {
        return Refused("a LATERAL join with NATURAL or USING");
      }
      auto* join = relation->mutable_lateral_join();
      join->set_allocated_left(left);
      join->set_allocated_right(right);
      if (condition != nullptr) {
        join->set_allocated_join_condition(condition);
      }
      join->set_join_type(type);
      left = SpannedRel(relation, first);
      continue;
    }
    auto* join = relation->mutable_join();
    join->set_allocated_left(left);
    join->set_allocated_right(right);
    if (condition != nullptr) {
      join->set_allocated_join_condition(condition);
    }
    for (std::string& column : using_columns) {
      join->add_using_columns(std::move(column));
    }
    join->set_join_type(type);
    if (natural) {
      pb::RelationExtension extension;
      extension.mutable_natural_join()->mutable_join()->CopyFrom(*join);
      relation = ExtendedRel(extension);
    }
    left = SpannedRel(relation, first);
  }
}

Result<std::vector<std::string>> Parser::ParseIdentifierList() {
  FLEUVE_TRY(ExpectSymbol("("));
  std::vector<std::string> names;
  do {
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    names.push_back(std::move(name));
  } while (AcceptSymbol(","));
  FLEUVE_TRY(ExpectSymbol(")"));
  return names;
}

Result<Parser::Rel> Parser::ParseTableAlias(Rel input, bool is_inline_table) {
  const std::size_t first = at_;
  const bool as = AcceptWord("AS");
  if (as ? !IsIdentifier() : (!IsImplicitAlias() || !IsStrictIdentifier())) {
    if (as) {
      return SyntaxError();
    }
    return input;
  }
  FLEUVE_ASSIGN(const std::string alias, ParseIdentifier());
  if (IsSymbol("(") && IsIdentifier(1) && (IsSymbol(",", 2) || IsSymbol(")", 2))) {
    FLEUVE_ASSIGN(const std::vector<std::string> names, ParseIdentifierList());
    if (is_inline_table) {
      // The number of names is checked where the rows are known.
      const auto extension = input->extension();
      pb::RelationExtension table;
      if (table.ParseFromString(extension.value()) && table.inline_table().rows_size() > 0 &&
          table.inline_table().rows(0).values_size() != static_cast<int>(names.size())) {
        return ErrorFrom(first, "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
                         "Invalid inline table. Inline table expected " + std::to_string(names.size()) +
                             " columns but found " + std::to_string(table.inline_table().rows(0).values_size()) +
                             " columns in row 0.")
            .With("expectedNumCols", std::to_string(names.size()))
            .With("actualNumCols", std::to_string(table.inline_table().rows(0).values_size()))
            .With("rowIndex", "0");
      }
    }
    Rel renamed = New<sc::Relation>();
    renamed->mutable_to_df()->set_allocated_input(input);
    for (const std::string& name : names) {
      renamed->mutable_to_df()->add_column_names(name);
    }
    input = SpannedRel(renamed, first);
  }
  Rel relation = New<sc::Relation>();
  relation->mutable_subquery_alias()->set_allocated_input(input);
  relation->mutable_subquery_alias()->set_alias(alias);
  return SpannedRel(relation, first);
}

Result<Parser::Rel> Parser::ParseInlineTable() {
  const std::size_t first = at_;
  FLEUVE_TRY(ExpectWord("VALUES"));
  pb::RelationExtension extension;
  auto* table = extension.mutable_inline_table();
  do {
    const std::size_t row_at = at_;
    FLEUVE_ASSIGN(Expr item, ParseExpression());
    auto* row = table->add_rows();
    const auto found = rows_.find(item);
    if (found != rows_.end()) {
      for (const Expr value : found->second) {
        row->add_values()->CopyFrom(*value);
      }
    } else {
      row->add_values()->CopyFrom(*item);
    }
    if (row->values_size() != table->rows(0).values_size()) {
      return ErrorFrom(row_at, "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
                       "Invalid inline table. Inline table expected " + std::to_string(table->rows(0).values_size()) +
                           " columns but found " + std::to_string(row->values_size()) + " columns in row " +
                           std::to_string(table->rows_size() - 1) + ".")
          .With("expectedNumCols", std::to_string(table->rows(0).values_size()))
          .With("actualNumCols", std::to_string(row->values_size()))
          .With("rowIndex", std::to_string(table->rows_size() - 1));
    }
  } while (AcceptSymbol(","));
  return SpannedRel(ExtendedRel(extension), first);
}

Result<Parser::Rel> Parser::ParseRelationPrimary() {
  const std::size_t first = at_;
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  if (IsSymbol("(")) {
    Advance();
    Rel inner = nullptr;
    if (IsQueryAhead(0)) {
      // `((SELECT ...) x JOIN ...)` starts like a query.
      const std::size_t mark = at_;
      const bool certain = IsQueryWord(0);
      const std::size_t windows = window_scopes_.size();
      auto query = ParseQuery();
      if (query.ok() && IsSymbol(")")) {
        inner = *query;
      } else if (certain) {
        return query.ok() ? Result<Rel>(SyntaxError()) : Result<Rel>(std::move(query).error());
      } else {
        window_scopes_.resize(windows);
        at_ = mark;
      }
    }
    if (inner == nullptr) {
      FLEUVE_ASSIGN(inner, ParseRelation());
      while (AcceptSymbol(",")) {
        FLEUVE_ASSIGN(Rel right, ParseRelation());
        Rel join = New<sc::Relation>();
        join->mutable_join()->set_allocated_left(inner);
        join->mutable_join()->set_allocated_right(right);
        join->mutable_join()->set_join_type(sc::Join::JOIN_TYPE_INNER);
        inner = join;
      }
    }
    FLEUVE_TRY(ExpectSymbol(")"));
    FLEUVE_ASSIGN(inner, ParseSample(inner));
    FLEUVE_ASSIGN(inner, ParseWatermark(inner));
    if (!inner->has_subquery_alias() && IsStrictIdentifier() && (IsImplicitAlias() || IsWord("AS"))) {
      return ParseTableAlias(inner);
    }
    if (IsImplicitAlias() || IsWord("AS")) {
      return ParseTableAlias(inner);
    }
    return inner;
  }
  if (IsWord("VALUES") && !IsSymbol(".", 1) && !EndsStatement(1) && !IsWord("AS", 1) && !IsWord("WHERE", 1)) {
    FLEUVE_ASSIGN(Rel table, ParseInlineTable());
    return ParseTableAlias(table, true);
  }
  if (IsWord("TABLE") && IsSymbol("(", 1)) {
    return Refused("a TABLE(...) argument as a relation");
  }
  if (IsWord("STREAM") && (IsSymbol("(", 1) || (IsIdentifier(1) && IsImplicitStreamTarget()))) {
    Advance();
    const bool parentheses = AcceptSymbol("(");
    FLEUVE_ASSIGN(Rel inner, ParseTableReference());
    if (parentheses) {
      FLEUVE_TRY(ExpectSymbol(")"));
    }
    if (inner->has_read()) {
      inner->mutable_read()->set_is_streaming(true);
    } else {
      pb::RelationExtension extension;
      extension.mutable_stream_of()->mutable_input()->CopyFrom(*inner);
      inner = ExtendedRel(extension);
    }
    SpannedRel(inner, first);
    FLEUVE_ASSIGN(inner, ParseSample(inner));
    FLEUVE_ASSIGN(inner, ParseWatermark(inner));
    return ParseTableAlias(inner);
  }
  FLEUVE_ASSIGN(Rel table, ParseTableReference());
  FLEUVE_ASSIGN(table, ParseTimeTravel(table));
  FLEUVE_ASSIGN(table, ParseSample(table));
  FLEUVE_ASSIGN(table, ParseWatermark(table));
  return ParseTableAlias(table);
}

Result<Parser::Rel> Parser::ParseWatermark(Rel input) {
  if (!IsWord("WATERMARK")) {
    return input;
  }
  const std::size_t first = at_;
  Advance();
  auto column = ParseExpression();
  std::string name;
  if (column.ok() && (AcceptWord("AS") || !(IsWord("DELAY") && IsWord("OF", 1)))) {
    auto given = ParseIdentifier();
    name = given.ok() ? *given : "";
  }
  if (!column.ok() || !AcceptWord("DELAY")) {
    at_ = first;  // a table alias of that name
    return input;
  }
  FLEUVE_TRY(ExpectWord("OF"));
  FLEUVE_TRY(ExpectWord("INTERVAL"));
  const std::size_t value = at_;
  const bool is_string = Current().kind == TokenKind::kString;
  const auto delay = ParseIntervalLiteral(value - 1);
  if (is_string && at_ == value + 1) {
    return SyntaxError();  // a literal may be a string without a unit, a delay may not
  }
  FLEUVE_TRY(delay);
  const std::string text = TextFrom(value - 1);
  pb::RelationExtension extension;
  auto* clause = extension.mutable_watermark();
  clause->mutable_input()->CopyFrom(*input);
  if (name.empty()) {
    clause->mutable_column()->CopyFrom(**column);
  } else {
    clause->mutable_column()->mutable_alias()->mutable_expr()->CopyFrom(**column);
    clause->mutable_column()->mutable_alias()->add_name(name);
  }
  clause->set_delay(text);
  return SpannedRel(ExtendedRel(extension), first);
}

Result<Parser::Rel> Parser::ParseTableReference() {
  const std::size_t first = at_;
  if (IsWord("IDENTIFIER") && IsSymbol("(", 1)) {
    Advance();
    Advance();
    FLEUVE_ASSIGN(Expr name, ParseExpression());
    FLEUVE_TRY(ExpectSymbol(")"));
    const auto text = ConstantText(*name);
    if (!text) {
      pb::RelationExtension extension;
      extension.mutable_dynamic_table()->mutable_name()->CopyFrom(*name);
      return SpannedRel(ExtendedRel(extension), first);
    }
    FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(*text));
    if (IsSymbol("(")) {
      return ParseTableFunction(parts, first);
    }
    Rel relation = New<sc::Relation>();
    relation->mutable_read()->mutable_named_table()->set_unparsed_identifier(QuoteParts(parts));
    return SpannedRel(relation, first);
  }
  if (!IsIdentifier() || (Current().kind == TokenKind::kWord && IsClauseStart(Current()) && !IsStrictIdentifier())) {
    return SyntaxError();
  }
  FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
  if (IsSymbol("(")) {
    return ParseTableFunction(parts, first);
  }
  Rel relation = New<sc::Relation>();
  auto* table = relation->mutable_read()->mutable_named_table();
  table->set_unparsed_identifier(QuoteParts(parts));
  SpannedRel(relation, first);
  if (IsWord("WITH") && IsSymbol("(", 1)) {
    Advance();
    google::protobuf::RepeatedPtrField<pb::Property> options;
    FLEUVE_TRY(ParseProperties(&options));
    for (const auto& option : options) {
      (*table->mutable_options())[option.key()] = option.value();
    }
  }
  return relation;
}

Result<Parser::Rel> Parser::ParseTableFunction(const std::vector<std::string>& name, std::size_t first) {
  FLEUVE_TRY(ExpectSymbol("("));
  Rel relation = New<sc::Relation>();
  auto* function = relation->mutable_unresolved_table_valued_function();
  function->set_function_name(name.size() == 1 ? name[0] : QuoteParts(name));
  if (!IsSymbol(")")) {
    do {
      FLEUVE_ASSIGN(Expr argument, ParseFunctionArgument());
      function->mutable_arguments()->AddAllocated(argument);
    } while (AcceptSymbol(","));
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  return SpannedRel(relation, first);
}

bool Parser::IsImplicitStreamTarget() const {
  // `STREAM t`: but `stream AS s`, `stream WHERE`, `stream JOIN` are a table of that name.
  return Ahead(1).kind == TokenKind::kQuoted || !IsClauseStart(Ahead(1));
}

Result<Parser::Rel> Parser::ParseTimeTravel(Rel input) {
  const std::size_t first = at_;
  std::size_t ahead = IsWord("FOR") ? 1 : 0;
  const bool version =
      IsAnyWord({"VERSION", "SYSTEM_VERSION"}, ahead) && IsWord("AS", ahead + 1) && IsWord("OF", ahead + 2);
  const bool timestamp =
      IsAnyWord({"TIMESTAMP", "SYSTEM_TIME"}, ahead) && IsWord("AS", ahead + 1) && IsWord("OF", ahead + 2);
  if (!version && !timestamp) {
    return input;
  }
  for (std::size_t i = 0; i < ahead + 3; ++i) {
    Advance();
  }
  pb::RelationExtension extension;
  auto* travel = extension.mutable_time_travel();
  travel->mutable_input()->CopyFrom(*input);
  if (version) {
    if (Current().kind == TokenKind::kString) {
      FLEUVE_ASSIGN(std::string text, ParseString());
      travel->set_version(std::move(text));
    } else if (Current().kind == TokenKind::kInteger) {
      travel->set_version(Current().text);
      Advance();
    } else {
      return SyntaxError();
    }
  } else {
    FLEUVE_ASSIGN(Expr value, ParseValue(1));
    travel->mutable_timestamp()->CopyFrom(*value);
  }
  return SpannedRel(ExtendedRel(extension), first);
}

Result<Parser::Rel> Parser::ParseSample(Rel input) {
  if (!IsWord("TABLESAMPLE")) {
    return input;
  }
  const std::size_t first = at_;
  Advance();
  AcceptWord("SYSTEM");
  AcceptWord("BERNOULLI");
  FLEUVE_TRY(ExpectSymbol("("));
  double fraction = 0;
  std::int64_t rows = -1;
  if (AcceptWord("BUCKET")) {
    FLEUVE_ASSIGN(const std::int64_t bucket, ParseIntegerToken());
    FLEUVE_TRY(ExpectWords({"OUT", "OF"}));
    FLEUVE_ASSIGN(const std::int64_t buckets, ParseIntegerToken());
    if (IsWord("ON")) {
      return Refused("TABLESAMPLE (BUCKET x OUT OF y ON ...)");
    }
    if (buckets <= 0) {
      return SyntaxError();
    }
    fraction = static_cast<double>(bucket) / static_cast<double>(buckets);
  } else if (Current().kind == TokenKind::kWord && !IsAnyWord({"ROWS", "PERCENT"}, 1)) {
    return ErrorFrom(first, "INVALID_SQL_SYNTAX.INVALID_TABLESAMPLE",
                     "A size in bytes is not accepted in TABLESAMPLE.");
  } else {
    const bool negative = AcceptSymbol("-");
    if (AreWords({"ROWS"})) {
      return SyntaxError();
    }
    if ((Current().kind == TokenKind::kInteger || Current().kind == TokenKind::kDecimal) && IsWord("PERCENT", 1)) {
      fraction = std::stod(Current().text) / 100 * (negative ? -1 : 1);
      Advance();
      Advance();
    } else {
      FLEUVE_ASSIGN(Expr count, ParseExpression());
      FLEUVE_TRY(ExpectWord("ROWS"));
      if (!count->has_literal() || !count->literal().has_integer()) {
        return Refused("TABLESAMPLE with a number of rows that is no literal");
      }
      rows = count->literal().integer();
    }
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  std::optional<std::int64_t> seed;
  if (AcceptWord("REPEATABLE")) {
    FLEUVE_TRY(ExpectSymbol("("));
    FLEUVE_ASSIGN(seed, ParseIntegerToken());
    FLEUVE_TRY(ExpectSymbol(")"));
  }
  Rel relation = New<sc::Relation>();
  if (rows >= 0) {
    relation->mutable_limit()->set_allocated_input(input);
    relation->mutable_limit()->set_limit(static_cast<std::int32_t>(rows));
    return SpannedRel(relation, first);
  }
  if (fraction < 0 || fraction > 1) {
    return ErrorFrom(first, "_LEGACY_ERROR_TEMP_0064",
                     "Sampling fraction (" + std::to_string(fraction) + ") must be on interval [0, 1].");
  }
  relation->mutable_sample()->set_allocated_input(input);
  relation->mutable_sample()->set_lower_bound(0);
  relation->mutable_sample()->set_upper_bound(fraction);
  if (seed) {
    relation->mutable_sample()->set_seed(*seed);
  }
  return SpannedRel(relation, first);
}

Result<Parser::Rel> Parser::ParseLateralViews(Rel input) {
  while (IsWord("LATERAL") && IsWord("VIEW", 1)) {
    const std::size_t first = at_;
    Advance();
    Advance();
    pb::RelationExtension extension;
    auto* view = extension.mutable_lateral_view();
    if (input != nullptr) {
      view->mutable_input()->CopyFrom(*input);
    } else {
      view->mutable_input()->mutable_project();
    }
    view->set_outer(AcceptWord("OUTER"));
    const std::size_t at = at_;
    FLEUVE_ASSIGN(const std::vector<std::string> name, ParseNameParts());
    FLEUVE_ASSIGN(Expr generator, ParseFunctionCall(name, at));
    view->mutable_generator()->CopyFrom(*generator);
    if (!IsWord("AS") && IsImplicitAlias()) {
      FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
      view->set_alias(std::move(alias));
    }
    if (AcceptWord("AS") || (IsIdentifier() && IsImplicitAlias())) {
      do {
        FLEUVE_ASSIGN(std::string column, ParseIdentifier());
        view->add_column_names(std::move(column));
      } while (AcceptSymbol(","));
    }
    input = SpannedRel(ExtendedRel(extension), first);
  }
  if (IsWord("PIVOT") && IsSymbol("(", 1)) {
    FLEUVE_ASSIGN(input, ParsePivot(input));
  }
  if (IsWord("UNPIVOT") && (IsSymbol("(", 1) || IsWord("NULLS", 2))) {
    FLEUVE_ASSIGN(input, ParseUnpivot(input));
  }
  return input;
}

Result<Parser::Rel> Parser::ParsePivot(Rel input) {
  const std::size_t first = at_;
  FLEUVE_TRY(ExpectWord("PIVOT"));
  FLEUVE_TRY(ExpectSymbol("("));
  pb::RelationExtension extension;
  auto* pivot = extension.mutable_pivot();
  pivot->mutable_input()->CopyFrom(*input);
  do {
    FLEUVE_ASSIGN(Expr aggregate, ParseNamedExpression());
    pivot->add_aggregates()->CopyFrom(*aggregate);
  } while (AcceptSymbol(","));
  FLEUVE_TRY(ExpectWord("FOR"));
  if (AcceptSymbol("(")) {
    do {
      FLEUVE_ASSIGN(Expr column, ParseValue(2));
      pivot->add_columns()->CopyFrom(*column);
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
  } else {
    FLEUVE_ASSIGN(Expr column, ParsePostfix());
    pivot->add_columns()->CopyFrom(*column);
  }
  FLEUVE_TRY(ExpectWord("IN"));
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    FLEUVE_ASSIGN(Expr item, ParseExpression());
    auto* value = pivot->add_values();
    const auto row = rows_.find(item);
    if (row != rows_.end()) {
      for (const Expr part : row->second) {
        value->add_values()->CopyFrom(*part);
      }
    } else {
      value->add_values()->CopyFrom(*item);
    }
    AcceptWord("AS");
    if (IsIdentifier()) {
      FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
      value->set_alias(std::move(alias));
    }
  } while (AcceptSymbol(","));
  FLEUVE_TRY(ExpectSymbol(")"));
  FLEUVE_TRY(ExpectSymbol(")"));
  return ParseTableAlias(SpannedRel(ExtendedRel(extension), first));
}

Result<Parser::Rel> Parser::ParseUnpivot(Rel input) {
  const std::size_t first = at_;
  FLEUVE_TRY(ExpectWord("UNPIVOT"));
  pb::RelationExtension extension;
  auto* unpivot = extension.mutable_unpivot();
  unpivot->mutable_input()->CopyFrom(*input);
  if (AcceptWords({"INCLUDE", "NULLS"})) {
    unpivot->set_include_nulls(true);
  } else {
    AcceptWords({"EXCLUDE", "NULLS"});
  }
  FLEUVE_TRY(ExpectSymbol("("));
  const bool several = IsSymbol("(");
  if (several) {
    FLEUVE_ASSIGN(const std::vector<std::string> names, ParseIdentifierList());
    for (const std::string& name : names) {
      unpivot->add_value_names(name);
    }
  } else {
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    unpivot->add_value_names(std::move(name));
  }
  FLEUVE_TRY(ExpectWord("FOR"));
  FLEUVE_ASSIGN(std::string name_column, ParseIdentifier());
  unpivot->set_name_column(std::move(name_column));
  FLEUVE_TRY(ExpectWord("IN"));
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    auto* source = unpivot->add_sources();
    const bool tuple = several && AcceptSymbol("(");
    do {
      const std::size_t at = at_;
      FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
      source->add_columns()->CopyFrom(*Spanned(Attribute(parts), at));
    } while (tuple && AcceptSymbol(","));
    if (tuple) {
      FLEUVE_TRY(ExpectSymbol(")"));
    }
    AcceptWord("AS");
    if (IsIdentifier()) {
      FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
      source->set_alias(std::move(alias));
    }
  } while (AcceptSymbol(","));
  FLEUVE_TRY(ExpectSymbol(")"));
  FLEUVE_TRY(ExpectSymbol(")"));
  return ParseTableAlias(SpannedRel(ExtendedRel(extension), first));
}

}  // namespace fleuve::sql
