#include <algorithm>

#include "sql/parser_internal.h"

namespace fleuve::sql {

namespace {

/// Words that end a select item or a table without being an alias of it.
bool IsClauseStart(const Token& token) {
  static const char* const kWords[] = {
      "WHERE",   "GROUP",  "ORDER",   "HAVING",  "LIMIT",   "OFFSET", "UNION",     "EXCEPT",   "MINUS",   "INTERSECT",
      "WINDOW",  "LATERAL", "SORT",   "CLUSTER", "DISTRIBUTE", "FROM", "ON",       "USING",    "JOIN",    "CROSS",
      "INNER",   "LEFT",   "RIGHT",   "FULL",    "NATURAL", "SEMI",   "ANTI",      "PIVOT",    "UNPIVOT", "TABLESAMPLE",
      "SET",     "WHEN",   "SELECT",  "AND",     "OR",      "THEN",   "ELSE",      "END",      "IS",      "IN",
      "BETWEEN", "LIKE",   "ILIKE",   "RLIKE",   "NOT",     "AS",     "DO",        "FOR",      "VALUES",  "QUALIFY",
      "UNTIL",   "INTO",   "FILTER",  "OVER",    "DIV",     "ASC",    "DESC",      "ZORDER",   "WITH"};
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
    return token.upper == "FROM" && IsSymbol(",", 1);
  }
  return true;
}

Parser::Rel Parser::MakeProject(Rel input, const std::vector<Expr>& expressions) const {
  Rel relation = New<sc::Relation>();
  if (input != nullptr) {
    relation->mutable_project()->set_allocated_input(input);
  }
  for (Expr expression : expressions) {
    relation->mutable_project()->mutable_expressions()->AddAllocated(expression);
  }
  return relation;
}

void Parser::CloseWindowScope(bool pass_on) {
  WindowScope scope = std::move(window_scopes_.back());
  window_scopes_.pop_back();
  if (pass_on && !window_scopes_.empty()) {
    // ORDER BY behind the SELECT sees its windows.
    for (const auto& [name, definition] : scope) {
      window_scopes_.back()[name] = definition;
    }
  }
}

Result<void> Parser::ReadWindowsAhead() {
  // The WINDOW clause stands behind the expressions that use it.
  int level = 0;
  for (std::size_t i = at_; i < tokens_.size(); ++i) {
    const Token& token = tokens_[i];
    if (token.kind == TokenKind::kSymbol) {
      if (token.text == "(" || token.text == "[") {
        ++level;
      } else if (token.text == ")" || token.text == "]") {
        if (level-- == 0) {
          return {};
        }
      } else if (token.text == ";" && level == 0) {
        return {};
      }
    }
    if (level != 0 || token.kind != TokenKind::kWord || token.upper != "WINDOW" || i + 2 >= tokens_.size() ||
        tokens_[i + 2].upper != "AS") {
      continue;
    }
    const std::size_t mark = at_;
    at_ = i;
    auto result = ParseWindowClause();
    at_ = mark;
    return result;
  }
  return {};
}

Result<void> Parser::ParseWindowClause() {
  if (!IsWord("WINDOW") || !IsIdentifier(1) || !IsWord("AS", 2)) {
    return {};
  }
  Advance();
  do {
    FLEUVE_ASSIGN(const std::string name, ParseIdentifier());
    FLEUVE_TRY(ExpectWord("AS"));
    auto* window = New<sc::Expression::Window>();
    if (IsIdentifier()) {
      const auto found = window_scopes_.back().find(Upper(Current().text));
      if (found == window_scopes_.back().end()) {
        return SyntaxError();
      }
      Advance();
      window->CopyFrom(*found->second);
    } else {
      FLEUVE_TRY(ParseWindowSpec(window));
    }
    window_scopes_.back()[Upper(name)] = window;
  } while (AcceptSymbol(","));
  return {};
}

// ------------------------------------------------------------------------------------------------------- queries

Result<Parser::Rel> Parser::ParseQuery() {
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  if (IsWord("WITH")) {
    return ParseWith();
  }
  window_scopes_.emplace_back();
  auto result = [&]() -> Result<Rel> {
    FLEUVE_ASSIGN(Rel term, ParseQueryTerm(0));
    FLEUVE_ASSIGN(Rel organized, ParseOrganization(term));
    while (IsSymbol("|>")) {
      Advance();
      FLEUVE_ASSIGN(organized, ParsePipe(organized));
    }
    return organized;
  }();
  if (!result.ok()) {
    window_scopes_.pop_back();
    return result;
  }
  CloseWindowScope(false);
  return result;
}

Result<void> Parser::ParseCommonTables(pb::With* with) {
  FLEUVE_TRY(ExpectWord("WITH"));
  with->set_recursive(AcceptWord("RECURSIVE"));
  std::vector<std::string> seen;
  do {
    const std::size_t name_at = at_;
    auto* table = with->add_tables();
    FLEUVE_ASSIGN(const std::string name, ParseIdentifier());
    table->set_name(name);
    if (std::find(seen.begin(), seen.end(), Upper(name)) != seen.end()) {
      return ErrorFrom(name_at, "DUPLICATED_CTE_NAMES",
                       "CTE definition can't have duplicate names: '" + name + "'.")
          .With("duplicateNames", "'" + name + "'");
    }
    seen.push_back(Upper(name));
    if (IsSymbol("(") && IsIdentifier(1) && (IsSymbol(",", 2) || IsSymbol(")", 2))) {
      FLEUVE_ASSIGN(const std::vector<std::string> names, ParseIdentifierList());
      for (const std::string& column : names) {
        table->add_column_names(column);
      }
    }
    if (AcceptWords({"MAX", "RECURSION", "LEVEL"})) {
      FLEUVE_ASSIGN(const std::int64_t level, ParseIntegerToken());
      table->set_max_recursion_level(level);
    }
    AcceptWord("AS");
    FLEUVE_TRY(ExpectSymbol("("));
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    FLEUVE_TRY(ExpectSymbol(")"));
    table->mutable_relation()->CopyFrom(*query);
  } while (AcceptSymbol(","));
  return {};
}

Result<Parser::Rel> Parser::ParseWith() {
  const std::size_t first = at_;
  pb::RelationExtension extension;
  FLEUVE_TRY(ParseCommonTables(extension.mutable_with()));
  FLEUVE_ASSIGN(Rel body, ParseQuery());
  extension.mutable_with()->mutable_body()->CopyFrom(*body);
  return SpannedRel(ExtendedRel(extension), first);
}

Result<Parser::Rel> Parser::MakeSetOperation(Rel left, Rel right, sc::SetOperation::SetOpType type, bool all,
                                             bool by_name) {
  Rel relation = New<sc::Relation>();
  auto* operation = relation->mutable_set_op();
  operation->set_allocated_left_input(left);
  operation->set_allocated_right_input(right);
  operation->set_set_op_type(type);
  operation->set_is_all(all);
  operation->set_by_name(by_name);
  return relation;
}

Result<Parser::Rel> Parser::ParseQueryTerm(int min_precedence) {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Rel left, ParseQueryPrimary());
  while (true) {
    if (IsWord("INTERSECT") || IsAnyWord({"UNION", "EXCEPT", "MINUS"})) {
      const bool intersect = IsWord("INTERSECT");
      const int precedence = intersect ? 2 : 1;
      if (precedence < min_precedence) {
        return left;
      }
      const auto type = intersect          ? sc::SetOperation::SET_OP_TYPE_INTERSECT
                        : IsWord("UNION") ? sc::SetOperation::SET_OP_TYPE_UNION
                                          : sc::SetOperation::SET_OP_TYPE_EXCEPT;
      Advance();
      const bool all = AcceptWord("ALL");
      if (!all) {
        AcceptWord("DISTINCT");
      }
      const bool by_name = AcceptWords({"BY", "NAME"});
      FLEUVE_ASSIGN(Rel right, ParseQueryTerm(precedence + 1));
      FLEUVE_ASSIGN(left, MakeSetOperation(left, right, type, all, by_name));
      SpannedRel(left, first);
      continue;
    }
    if (min_precedence == 0 && IsSymbol("|>")) {
      Advance();
      FLEUVE_ASSIGN(left, ParsePipe(left));
      SpannedRel(left, first);
      continue;
    }
    return left;
  }
}

Result<Parser::Rel> Parser::ParseQueryPrimary() {
  const std::size_t first = at_;
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  if (IsWord("SELECT")) {
    return ParseSelect();
  }
  if (IsWord("FROM")) {
    return ParseFromFirst();
  }
  if (IsWord("VALUES")) {
    FLEUVE_ASSIGN(Rel table, ParseInlineTable());
    return ParseTableAlias(table, true);
  }
  if (AcceptWord("TABLE")) {
    FLEUVE_ASSIGN(const std::vector<std::string> name, ParseNameParts());
    Rel relation = New<sc::Relation>();
    relation->mutable_read()->mutable_named_table()->set_unparsed_identifier(QuoteParts(name));
    return SpannedRel(relation, first);
  }
  if (AcceptSymbol("(")) {
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    FLEUVE_TRY(ExpectSymbol(")"));
    return query;
  }
  if (IsAnyWord({"MAP", "REDUCE"}) && !AtEnd()) {
    return SyntaxError();
  }
  return SyntaxError();
}

Result<Parser::Rel> Parser::ParseFromFirst() {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Rel input, ParseFromClause());
  FLEUVE_ASSIGN(input, ParseLateralViews(input));
  if (IsWord("SELECT")) {
    window_scopes_.emplace_back();
    auto result = ParseSelectTail(input, true, first);
    if (!result.ok()) {
      window_scopes_.pop_back();
      return result;
    }
    CloseWindowScope(true);
    if (IsWord("SELECT")) {
      return Refused("FROM with several SELECT clauses");
    }
    return result;
  }
  if (IsWord("INSERT")) {
    return Refused("FROM ... INSERT INTO ...");
  }
  return input;
}

Result<Parser::Rel> Parser::ParseSelect() {
  const std::size_t first = at_;
  window_scopes_.emplace_back();
  auto result = ParseSelectTail(nullptr, false, first);
  if (!result.ok()) {
    window_scopes_.pop_back();
    return result;
  }
  CloseWindowScope(true);
  return result;
}

Result<Parser::Rel> Parser::ParseSelectTail(Rel input, bool from_seen, std::size_t first) {
  FLEUVE_TRY(ExpectWord("SELECT"));
  FLEUVE_TRY(ReadWindowsAhead());
  std::vector<std::pair<std::string, std::vector<Expr>>> hints;
  while (Current().kind == TokenKind::kHint) {
    Advance();
    while (Current().kind != TokenKind::kHintEnd) {
      if (AcceptSymbol(",")) {
        continue;
      }
      FLEUVE_ASSIGN(std::string name, ParseIdentifier());
      std::vector<Expr> arguments;
      if (AcceptSymbol("(")) {
        if (!IsSymbol(")")) {
          do {
            FLEUVE_ASSIGN(Expr argument, ParseExpression());
            arguments.push_back(argument);
          } while (AcceptSymbol(","));
        }
        FLEUVE_TRY(ExpectSymbol(")"));
      }
      hints.emplace_back(std::move(name), std::move(arguments));
    }
    Advance();
  }
  if (IsWord("TRANSFORM") && IsSymbol("(", 1)) {
    // A script transformation has USING behind its arguments; the function does not.
    std::size_t ahead = 2;
    int level = 1;
    while (level > 0 && Ahead(ahead).kind != TokenKind::kEnd) {
      level += IsSymbol("(", ahead) ? 1 : IsSymbol(")", ahead) ? -1 : 0;
      ++ahead;
    }
    if (IsAnyWord({"USING", "ROW"}, ahead)) {
      return Refused("SELECT TRANSFORM ... USING a script");
    }
  }
  bool distinct = false;
  if (IsWord("DISTINCT") && !IsSymbol(",", 1) && !IsSymbol(".", 1) && Ahead(1).kind != TokenKind::kEnd && !IsWord("FROM", 1)) {
    Advance();
    distinct = true;
  } else if (IsWord("ALL") && !IsSymbol(",", 1) && !IsSymbol(".", 1) && Ahead(1).kind != TokenKind::kEnd &&
             !IsWord("FROM", 1)) {
    Advance();
  }
  std::vector<Expr> select;
  do {
    FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
    select.push_back(item);
  } while (AcceptSymbol(","));
  if (!from_seen && IsWord("FROM")) {
    FLEUVE_ASSIGN(input, ParseFromClause());
  }
  FLEUVE_ASSIGN(input, ParseLateralViews(input));
  if (AcceptWord("WHERE")) {
    FLEUVE_ASSIGN(Expr condition, ParseExpression());
    Rel filter = New<sc::Relation>();
    if (input == nullptr) {
      // A condition over the one row of a SELECT without FROM.
      Rel project = New<sc::Relation>();
      project->mutable_project();
      input = project;
    }
    filter->mutable_filter()->set_allocated_input(input);
    filter->mutable_filter()->set_allocated_condition(condition);
    input = SpannedRel(filter, first);
  }
  Rel result = nullptr;
  if (AcceptWords({"GROUP", "BY"})) {
    FLEUVE_ASSIGN(result, ParseGroupBy(input, select));
  } else {
    result = MakeProject(input, select);
  }
  SpannedRel(result, first);
  if (AcceptWord("HAVING")) {
    FLEUVE_ASSIGN(Expr condition, ParseExpression());
    pb::RelationExtension extension;
    extension.mutable_having()->mutable_input()->CopyFrom(*result);
    extension.mutable_having()->mutable_condition()->CopyFrom(*condition);
    result = SpannedRel(ExtendedRel(extension), first);
  }
  if (IsWord("QUALIFY")) {
    return SyntaxError();
  }
  FLEUVE_TRY(ParseWindowClause());
  if (distinct) {
    Rel deduplicate = New<sc::Relation>();
    deduplicate->mutable_deduplicate()->set_allocated_input(result);
    deduplicate->mutable_deduplicate()->set_all_columns_as_keys(true);
    result = SpannedRel(deduplicate, first);
  }
  return ParseHints(result, hints);
}

Result<Parser::Rel> Parser::ParseHints(Rel input,
                                       const std::vector<std::pair<std::string, std::vector<Expr>>>& hints) {
  for (auto hint = hints.rbegin(); hint != hints.rend(); ++hint) {
    Rel relation = New<sc::Relation>();
    relation->mutable_hint()->set_allocated_input(input);
    relation->mutable_hint()->set_name(hint->first);
    for (Expr parameter : hint->second) {
      relation->mutable_hint()->mutable_parameters()->AddAllocated(parameter);
    }
    input = relation;
  }
  return input;
}

// ------------------------------------------------------------------------------------------------------ GROUP BY

Result<int> Parser::AddGrouping(GroupingState* state, Expr expression, std::size_t first) {
  // The same text is the same expression.
  std::string key;
  for (std::size_t i = first; i < at_; ++i) {
    key += tokens_[i].kind == TokenKind::kWord ? tokens_[i].upper
           : tokens_[i].kind == TokenKind::kString ? "'" + tokens_[i].text + "'"
                                                   : tokens_[i].text;
    key.push_back(' ');
  }
  const auto [entry, inserted] = state->index_of.emplace(key, static_cast<int>(state->expressions.size()));
  if (inserted) {
    state->expressions.push_back(expression);
  }
  return entry->second;
}

Result<std::vector<int>> Parser::ParseGroupingTuple(GroupingState* state) {
  std::vector<int> items;
  if (IsSymbol("(") && !IsQueryAhead(1)) {
    // `(a, b)` is a set of its own; `(a + b) * 2` and `(a)` are expressions.
    const std::size_t mark = at_;
    Advance();
    if (AcceptSymbol(")")) {
      return items;
    }
    bool tuple = true;
    do {
      const std::size_t first = at_;
      auto item = ParseExpression();
      if (!item.ok()) {
        return std::move(item).error();
      }
      FLEUVE_ASSIGN(const int index, AddGrouping(state, *item, first));
      items.push_back(index);
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    tuple = IsSymbol(",") || IsSymbol(")");
    if (tuple || items.size() > 1) {
      return items;
    }
    at_ = mark;
    items.clear();
  }
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr item, ParseExpression());
  FLEUVE_ASSIGN(const int index, AddGrouping(state, item, first));
  items.push_back(index);
  return items;
}

Result<Parser::Sets> Parser::ParseGroupingElement(GroupingState* state, bool* plain) {
  *plain = false;
  const bool rollup = IsWord("ROLLUP") && IsSymbol("(", 1);
  const bool cube = IsWord("CUBE") && IsSymbol("(", 1);
  if (rollup || cube) {
    Advance();
    Advance();
    Sets parts;
    do {
      FLEUVE_ASSIGN(std::vector<int> part, ParseGroupingTuple(state));
      parts.push_back(std::move(part));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    Sets sets;
    if (rollup) {
      for (std::size_t length = parts.size() + 1; length-- > 0;) {
        std::vector<int> set;
        for (std::size_t i = 0; i < length; ++i) {
          set.insert(set.end(), parts[i].begin(), parts[i].end());
        }
        sets.push_back(std::move(set));
      }
      return sets;
    }
    if (parts.size() > 12) {
      return Refused("CUBE over more than 12 columns");
    }
    const std::size_t count = std::size_t{1} << parts.size();
    for (std::size_t mask = count; mask-- > 0;) {
      std::vector<int> set;
      for (std::size_t i = 0; i < parts.size(); ++i) {
        if ((mask >> (parts.size() - 1 - i)) & 1) {
          set.insert(set.end(), parts[i].begin(), parts[i].end());
        }
      }
      sets.push_back(std::move(set));
    }
    return sets;
  }
  if (AreWords({"GROUPING", "SETS"}) && IsSymbol("(", 2)) {
    Advance();
    Advance();
    Advance();
    Sets sets;
    do {
      if ((IsWord("ROLLUP") || IsWord("CUBE")) && IsSymbol("(", 1)) {
        bool ignored = false;
        FLEUVE_ASSIGN(const Sets inner, ParseGroupingElement(state, &ignored));
        sets.insert(sets.end(), inner.begin(), inner.end());
      } else if (AreWords({"GROUPING", "SETS"}) && IsSymbol("(", 2)) {
        bool ignored = false;
        FLEUVE_ASSIGN(const Sets inner, ParseGroupingElement(state, &ignored));
        sets.insert(sets.end(), inner.begin(), inner.end());
      } else {
        FLEUVE_ASSIGN(std::vector<int> set, ParseGroupingTuple(state));
        sets.push_back(std::move(set));
      }
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    return sets;
  }
  *plain = true;
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr item, ParseExpression());
  const auto row = rows_.find(item);
  std::vector<int> set;
  if (row != rows_.end() && IsSymbol("(", 0)) {
    return SyntaxError();
  }
  FLEUVE_ASSIGN(const int index, AddGrouping(state, item, first));
  set.push_back(index);
  return Sets{set};
}

Result<Parser::Rel> Parser::ParseGroupBy(Rel input, const std::vector<Expr>& select) {
  pb::RelationExtension extension;
  auto* aggregate = extension.mutable_aggregate();
  if (input != nullptr) {
    aggregate->mutable_input()->CopyFrom(*input);
  } else {
    aggregate->mutable_input()->mutable_project();
  }
  GroupingState state;
  if (IsWord("ALL") && !IsSymbol(",", 1) && !IsSymbol(".", 1) && !IsSymbol("(", 1)) {
    Advance();
    aggregate->set_group_by_all(true);
  } else {
    Sets product{{}};
    bool any_sets = false;
    do {
      bool plain = false;
      FLEUVE_ASSIGN(const Sets sets, ParseGroupingElement(&state, &plain));
      any_sets = any_sets || !plain;
      Sets next;
      for (const auto& left : product) {
        for (const auto& right : sets) {
          std::vector<int> joined = left;
          for (const int index : right) {
            if (std::find(joined.begin(), joined.end(), index) == joined.end()) {
              joined.push_back(index);
            }
          }
          next.push_back(std::move(joined));
        }
      }
      if (next.size() > 65536) {
        return Refused("more than 65,536 grouping sets");
      }
      product = std::move(next);
    } while (AcceptSymbol(","));
    if (AreWords({"WITH", "ROLLUP"}) || AreWords({"WITH", "CUBE"})) {
      const bool rollup = IsWord("ROLLUP", 1);
      Advance();
      Advance();
      const std::size_t count = state.expressions.size();
      product.clear();
      any_sets = true;
      if (rollup) {
        for (std::size_t length = count + 1; length-- > 0;) {
          std::vector<int> set;
          for (std::size_t i = 0; i < length; ++i) {
            set.push_back(static_cast<int>(i));
          }
          product.push_back(std::move(set));
        }
      } else {
        if (count > 12) {
          return Refused("CUBE over more than 12 columns");
        }
        for (std::size_t mask = std::size_t{1} << count; mask-- > 0;) {
          std::vector<int> set;
          for (std::size_t i = 0; i < count; ++i) {
            if ((mask >> (count - 1 - i)) & 1) {
              set.push_back(static_cast<int>(i));
            }
          }
          product.push_back(std::move(set));
        }
      }
    } else if (AreWords({"GROUPING", "SETS"}) && IsSymbol("(", 2)) {
      // GROUP BY a, b GROUPING SETS (...): the sets alone count.
      bool plain = false;
      FLEUVE_ASSIGN(product, ParseGroupingElement(&state, &plain));
      any_sets = true;
    }
    if (any_sets) {
      for (const auto& set : product) {
        auto* message = aggregate->add_sets();
        for (const int index : set) {
          message->add_index(index);
        }
      }
    }
  }
  for (Expr item : select) {
    aggregate->add_select()->CopyFrom(*item);
  }
  for (Expr item : state.expressions) {
    aggregate->add_grouping()->CopyFrom(*item);
  }
  return ExtendedRel(extension);
}

// ---------------------------------------------------------------------------------------------------------- FROM

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
    if (!inner->has_subquery_alias() && IsStrictIdentifier() && (IsImplicitAlias() || IsWord("AS"))) {
      return ParseTableAlias(inner);
    }
    if (IsImplicitAlias() || IsWord("AS")) {
      return ParseTableAlias(inner);
    }
    return inner;
  }
  if (IsWord("VALUES") && !IsSymbol(".", 1) && Ahead(1).kind != TokenKind::kEnd && !IsWord("AS", 1) && !IsWord("WHERE", 1)) {
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
    if (AcceptWord("WATERMARK")) {
      return Refused("WATERMARK in SQL");
    }
    return ParseTableAlias(inner);
  }
  FLEUVE_ASSIGN(Rel table, ParseTableReference());
  FLEUVE_ASSIGN(table, ParseTimeTravel(table));
  FLEUVE_ASSIGN(table, ParseSample(table));
  if (IsWord("WATERMARK") && !IsSymbol(",", 1)) {
    return Refused("WATERMARK in SQL");
  }
  return ParseTableAlias(table);
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
  return Ahead(1).kind == TokenKind::kQuoted || (!IsClauseStart(Ahead(1)) && (IsSymbol(".", 2) || IsSymbol("(", 2) || true));
}

Result<Parser::Rel> Parser::ParseTimeTravel(Rel input) {
  const std::size_t first = at_;
  std::size_t ahead = IsWord("FOR") ? 1 : 0;
  const bool version = IsAnyWord({"VERSION", "SYSTEM_VERSION"}, ahead) && IsWord("AS", ahead + 1) && IsWord("OF", ahead + 2);
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
    return ErrorFrom(first, "INVALID_SQL_SYNTAX.INVALID_TABLESAMPLE", "A size in bytes is not accepted in TABLESAMPLE.");
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
    return ErrorFrom(first, "_LEGACY_ERROR_TEMP_0064", "Sampling fraction (" + std::to_string(fraction) +
                                                           ") must be on interval [0, 1].");
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

// --------------------------------------------------------------------------------------- ORDER BY, LIMIT and so on

Result<Parser::Rel> Parser::ParseOrganization(Rel input) {
  const std::size_t first = at_;
  const auto parse_orders = [&](Rel relation, bool global) -> Result<Rel> {
    auto* sort = relation->mutable_sort();
    sort->set_is_global(global);
    do {
      if (global && IsWord("ALL") && sort->order_size() == 0 && !IsSymbol(".", 1) && !IsSymbol("(", 1) && !IsSymbol(",", 1)) {
        const std::size_t at = at_;
        Advance();
        auto* order = New<sc::Expression::SortOrder>();
        const bool descending = AcceptWord("DESC");
        if (!descending) {
          AcceptWord("ASC");
        }
        bool nulls_first = !descending;
        if (AcceptWord("NULLS")) {
          nulls_first = AcceptWord("FIRST");
          if (!nulls_first) {
            FLEUVE_TRY(ExpectWord("LAST"));
          }
        }
        pb::ExpressionExtension extension;
        extension.mutable_order_by_all();
        order->set_allocated_child(Spanned(Extended(extension), at));
        order->set_direction(descending ? sc::Expression::SortOrder::SORT_DIRECTION_DESCENDING
                                        : sc::Expression::SortOrder::SORT_DIRECTION_ASCENDING);
        order->set_null_ordering(nulls_first ? sc::Expression::SortOrder::SORT_NULLS_FIRST
                                             : sc::Expression::SortOrder::SORT_NULLS_LAST);
        sort->mutable_order()->AddAllocated(order);
        break;
      }
      FLEUVE_ASSIGN(sc::Expression::SortOrder * order, ParseSortItem());
      sort->mutable_order()->AddAllocated(order);
    } while (AcceptSymbol(","));
    return relation;
  };
  const auto repartition = [&](Rel child, const std::vector<Expr>& keys) {
    Rel relation = New<sc::Relation>();
    relation->mutable_repartition_by_expression()->set_allocated_input(child);
    for (Expr key : keys) {
      relation->mutable_repartition_by_expression()->mutable_partition_exprs()->AddAllocated(key);
    }
    return relation;
  };
  if (AcceptWords({"ORDER", "BY"})) {
    Rel sort = New<sc::Relation>();
    FLEUVE_ASSIGN(sort, parse_orders(sort, true));
    sort->mutable_sort()->set_allocated_input(input);
    input = SpannedRel(sort, first);
  } else {
    if (AcceptWords({"CLUSTER", "BY"})) {
      std::vector<Expr> keys;
      Rel sort = New<sc::Relation>();
      sort->mutable_sort()->set_is_global(false);
      do {
        FLEUVE_ASSIGN(Expr key, ParseExpression());
        auto* order = sort->mutable_sort()->add_order();
        order->mutable_child()->CopyFrom(*key);
        order->set_direction(sc::Expression::SortOrder::SORT_DIRECTION_ASCENDING);
        order->set_null_ordering(sc::Expression::SortOrder::SORT_NULLS_FIRST);
        keys.push_back(key);
      } while (AcceptSymbol(","));
      sort->mutable_sort()->set_allocated_input(repartition(input, keys));
      input = SpannedRel(sort, first);
    } else {
      if (AcceptWords({"DISTRIBUTE", "BY"})) {
        std::vector<Expr> keys;
        do {
          FLEUVE_ASSIGN(Expr key, ParseExpression());
          keys.push_back(key);
        } while (AcceptSymbol(","));
        input = SpannedRel(repartition(input, keys), first);
      }
      if (AcceptWords({"SORT", "BY"})) {
        Rel sort = New<sc::Relation>();
        FLEUVE_ASSIGN(sort, parse_orders(sort, false));
        sort->mutable_sort()->set_allocated_input(input);
        input = SpannedRel(sort, first);
      }
    }
  }
  FLEUVE_TRY(ParseWindowClause());
  Expr limit = nullptr;
  Expr offset = nullptr;
  std::size_t limit_at = at_;
  std::size_t offset_at = at_;
  if (IsWord("LIMIT")) {
    limit_at = at_;
    Advance();
    if (IsWord("ALL")) {
      Advance();
    } else {
      FLEUVE_ASSIGN(limit, ParseExpression());
    }
  }
  if (IsWord("OFFSET") && Ahead(1).kind != TokenKind::kEnd) {
    offset_at = at_;
    Advance();
    FLEUVE_ASSIGN(offset, ParseExpression());
  }
  const auto apply = [&](Rel child, Expr count, bool is_offset, std::size_t at) -> Rel {
    if (count->has_literal() && count->literal().has_integer() && count->literal().integer() >= 0) {
      Rel relation = New<sc::Relation>();
      if (is_offset) {
        relation->mutable_offset()->set_allocated_input(child);
        relation->mutable_offset()->set_offset(count->literal().integer());
      } else {
        relation->mutable_limit()->set_allocated_input(child);
        relation->mutable_limit()->set_limit(count->literal().integer());
      }
      return SpannedRel(relation, at);
    }
    pb::RelationExtension extension;
    auto* general = extension.mutable_limit();
    general->mutable_input()->CopyFrom(*child);
    general->mutable_count()->CopyFrom(*count);
    general->set_is_offset(is_offset);
    return SpannedRel(ExtendedRel(extension), at);
  };
  if (offset != nullptr) {
    input = apply(input, offset, true, offset_at);
  }
  if (limit != nullptr) {
    input = apply(input, limit, false, limit_at);
  }
  return input;
}

// ------------------------------------------------------------------------------------------------------- |> operators

Result<Parser::Rel> Parser::ParsePipe(Rel input) {
  const std::size_t first = at_;
  if (AcceptWord("WHERE")) {
    FLEUVE_ASSIGN(Expr condition, ParseExpression());
    Rel filter = New<sc::Relation>();
    filter->mutable_filter()->set_allocated_input(input);
    filter->mutable_filter()->set_allocated_condition(condition);
    return SpannedRel(filter, first);
  }
  if (AcceptWord("AS")) {
    FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
    Rel relation = New<sc::Relation>();
    relation->mutable_subquery_alias()->set_allocated_input(input);
    relation->mutable_subquery_alias()->set_alias(std::move(alias));
    return SpannedRel(relation, first);
  }
  if (AcceptWord("DROP")) {
    Rel relation = New<sc::Relation>();
    relation->mutable_drop()->set_allocated_input(input);
    do {
      FLEUVE_ASSIGN(std::string column, ParseIdentifier());
      relation->mutable_drop()->add_column_names(std::move(column));
    } while (AcceptSymbol(","));
    return SpannedRel(relation, first);
  }
  if (IsAnyWord({"SELECT", "EXTEND", "SET", "AGGREGATE"})) {
    pb::RelationExtension extension;
    auto* pipe = extension.mutable_pipe();
    const std::string word = Current().upper;
    Advance();
    if (word == "SELECT" || word == "EXTEND") {
      const bool distinct = word == "SELECT" && AcceptWord("DISTINCT");
      do {
        FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
        pipe->add_expressions()->CopyFrom(*item);
      } while (AcceptSymbol(","));
      if (word == "SELECT") {
        pipe->set_select(true);
      } else {
        pipe->set_extend(true);
      }
      pipe->mutable_input()->CopyFrom(*input);
      Rel result = SpannedRel(ExtendedRel(extension), first);
      if (distinct) {
        Rel deduplicate = New<sc::Relation>();
        deduplicate->mutable_deduplicate()->set_allocated_input(result);
        deduplicate->mutable_deduplicate()->set_all_columns_as_keys(true);
        result = SpannedRel(deduplicate, first);
      }
      return result;
    }
    if (word == "SET") {
      pipe->set_set(true);
      do {
        FLEUVE_ASSIGN(std::string name, ParseIdentifier());
        if (!AcceptSymbol("==")) {
          FLEUVE_TRY(ExpectSymbol("="));
        }
        FLEUVE_ASSIGN(Expr value, ParseExpression());
        pipe->add_names(std::move(name));
        pipe->add_expressions()->CopyFrom(*value);
      } while (AcceptSymbol(","));
    } else {
      pipe->set_aggregate(true);
      if (!AreWords({"GROUP", "BY"})) {
        do {
          FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
          pipe->add_expressions()->CopyFrom(*item);
        } while (AcceptSymbol(","));
      }
      if (AcceptWords({"GROUP", "BY"})) {
        do {
          FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
          pipe->add_grouping()->CopyFrom(*item);
        } while (AcceptSymbol(","));
      }
    }
    pipe->mutable_input()->CopyFrom(*input);
    return SpannedRel(ExtendedRel(extension), first);
  }
  if (IsAnyWord({"UNION", "EXCEPT", "MINUS", "INTERSECT"})) {
    const auto type = IsWord("INTERSECT") ? sc::SetOperation::SET_OP_TYPE_INTERSECT
                      : IsWord("UNION")   ? sc::SetOperation::SET_OP_TYPE_UNION
                                          : sc::SetOperation::SET_OP_TYPE_EXCEPT;
    Advance();
    const bool all = AcceptWord("ALL");
    if (!all) {
      AcceptWord("DISTINCT");
    }
    const bool by_name = AcceptWords({"BY", "NAME"});
    FLEUVE_ASSIGN(Rel right, ParseQueryTerm(1));
    return MakeSetOperation(input, right, type, all, by_name);
  }
  if (IsWord("TABLESAMPLE")) {
    return ParseSample(input);
  }
  if (IsWord("PIVOT") || IsWord("UNPIVOT") || IsAnyWord({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL", "SEMI", "ANTI"})) {
    return ParseJoins(input);
  }
  if (IsAnyWord({"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"})) {
    return ParseOrganization(input);
  }
  return SyntaxError();
}

}  // namespace fleuve::sql
