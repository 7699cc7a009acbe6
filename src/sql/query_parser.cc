#include <algorithm>
#include <set>

#include "sql/parser_internal.h"

namespace fleuve::sql {

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
      } else if ((token.text == ";" || token.text == "|>") && level == 0) {
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
  std::set<std::string> read;
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
    if (!read.insert(Upper(name)).second) {
      return ErrorFrom(at_ - 1, "INVALID_SQL_SYNTAX.REPETITIVE_WINDOW_DEFINITION",
                       "Invalid SQL syntax: The definition of window `" + name + "` is repetitive.")
          .With("windowName", "`" + name + "`");
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
      return ErrorFrom(name_at, "DUPLICATED_CTE_NAMES", "CTE definition can't have duplicate names: '" + name + "'.")
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
      const auto type = intersect         ? sc::SetOperation::SET_OP_TYPE_INTERSECT
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
    return ParseSelect(nullptr, at_);
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
    Rel again = New<sc::Relation>();
    again->CopyFrom(*input);
    FLEUVE_ASSIGN(Rel result, ParseSelect(input, first));
    // Of several SELECT clauses each has its own ORDER BY and LIMIT; those of one alone belong to the query.
    const std::size_t end = at_;
    auto ordered = ParseOrganization(result);
    if (!ordered.ok() || !IsWord("SELECT")) {
      at_ = end;
      return result;
    }
    Rel united = *ordered;
    while (IsWord("SELECT")) {
      Rel source = New<sc::Relation>();
      source->CopyFrom(*again);
      FLEUVE_ASSIGN(Rel next, ParseSelect(source, first));
      FLEUVE_ASSIGN(next, ParseOrganization(next));
      FLEUVE_ASSIGN(united, MakeSetOperation(united, next, sc::SetOperation::SET_OP_TYPE_UNION, true, false));
      SpannedRel(united, first);
    }
    return united;
  }
  if (IsWord("INSERT")) {
    return Refused("FROM ... INSERT INTO ...");
  }
  return input;
}

Result<Parser::Rel> Parser::ParseSelect(Rel from, std::size_t first) {
  window_scopes_.emplace_back();
  auto result = ParseSelectTail(from, from != nullptr, first);
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
  if (IsWord("DISTINCT") && !IsSymbol(",", 1) && !IsSymbol(".", 1) && !EndsStatement(1) && !IsWord("FROM", 1)) {
    Advance();
    distinct = true;
  } else if (IsWord("ALL") && !IsSymbol(",", 1) && !IsSymbol(".", 1) && !EndsStatement(1) && !IsWord("FROM", 1)) {
    Advance();
  }
  std::vector<Expr> select;
  if (IsWord("FROM") && IsIdentifier(1) && EndsStatement(2)) {
    // No clause word is reserved: a column `from` with an alias.
    Expr column = New<sc::Expression>();
    column->mutable_unresolved_attribute()->set_unparsed_identifier("`" + Current().text + "`");
    Advance();
    Expr alias = New<sc::Expression>();
    alias->mutable_alias()->set_allocated_expr(Spanned(column, at_ - 1));
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    alias->mutable_alias()->add_name(std::move(name));
    select.push_back(Spanned(alias, first));
  } else {
    do {
      FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
      select.push_back(item);
    } while (AcceptSymbol(","));
  }
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
    pb::RelationExtension extension;
    extension.mutable_distinct()->mutable_input()->CopyFrom(*result);
    result = SpannedRel(ExtendedRel(extension), first);
  }
  return ParseHints(result, hints);
}

Result<Parser::Rel> Parser::ParseHints(Rel input, const std::vector<std::pair<std::string, std::vector<Expr>>>& hints) {
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

// --------------------------------------------------------------------------------------- ORDER BY, LIMIT and so on

Result<Parser::Rel> Parser::ParseOrganization(Rel input) {
  const std::size_t first = at_;
  const auto parse_orders = [&](Rel relation, bool global) -> Result<Rel> {
    auto* sort = relation->mutable_sort();
    sort->set_is_global(global);
    do {
      if (global && IsWord("ALL") && sort->order_size() == 0 && !IsSymbol(".", 1) && !IsSymbol("(", 1) &&
          !IsSymbol(",", 1)) {
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
  if (IsWord("OFFSET") && !EndsStatement(1)) {
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
    // SELECT * EXCEPT (...): a column that is not there is an error.
    pb::ExpressionExtension star;
    do {
      FLEUVE_ASSIGN(const std::string column, ParseIdentifier());
      star.mutable_star_except()->add_names(QuoteParts({column}));
    } while (AcceptSymbol(","));
    pb::RelationExtension extension;
    extension.mutable_pipe()->set_select(true);
    extension.mutable_pipe()->mutable_input()->CopyFrom(*input);
    extension.mutable_pipe()->add_expressions()->CopyFrom(*Spanned(Extended(star), first));
    return SpannedRel(ExtendedRel(extension), first);
  }
  if (IsAnyWord({"SELECT", "EXTEND", "SET", "AGGREGATE"})) {
    pb::RelationExtension extension;
    auto* pipe = extension.mutable_pipe();
    const std::string word = Current().upper;
    Advance();
    if (word == "SELECT" || word == "EXTEND") {
      const bool distinct = word == "SELECT" && AcceptWord("DISTINCT");
      window_scopes_.emplace_back();
      const auto items = [&]() -> Result<void> {
        FLEUVE_TRY(ReadWindowsAhead());
        do {
          FLEUVE_ASSIGN(Expr item, ParseNamedExpression());
          pipe->add_expressions()->CopyFrom(*item);
        } while (AcceptSymbol(","));
        return ParseWindowClause();
      }();
      window_scopes_.pop_back();
      FLEUVE_TRY(items);
      if (word == "SELECT") {
        pipe->set_select(true);
      } else {
        pipe->set_extend(true);
      }
      pipe->mutable_input()->CopyFrom(*input);
      Rel result = SpannedRel(ExtendedRel(extension), first);
      if (distinct) {
        pb::RelationExtension distinct_rows;
        distinct_rows.mutable_distinct()->mutable_input()->CopyFrom(*result);
        result = SpannedRel(ExtendedRel(distinct_rows), first);
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
          if ((IsAnyWord({"ROLLUP", "CUBE"}) && IsSymbol("(", 1)) || AreWords({"GROUPING", "SETS"})) {
            return ErrorFrom(at_, "UNSUPPORTED_FEATURE.PIPE_OPERATOR_AGGREGATE_UNSUPPORTED_CASE",
                             "The feature is not supported: The SQL pipe operator syntax with aggregation (using |> "
                             "AGGREGATE) does not support " +
                                 Current().upper + ".");
          }
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
  if (IsWord("PIVOT") || IsWord("UNPIVOT") ||
      IsAnyWord({"JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "NATURAL", "SEMI", "ANTI"})) {
    return ParseJoins(input);
  }
  if (IsAnyWord({"ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET"})) {
    const bool order = !IsAnyWord({"LIMIT", "OFFSET"});
    FLEUVE_ASSIGN(Rel organized, ParseOrganization(input));
    if (order && (organized->has_limit() || organized->has_offset())) {
      return ErrorFrom(
          first, "MULTIPLE_QUERY_RESULT_CLAUSES_WITH_PIPE_OPERATORS",
          "ORDER BY and LIMIT cannot coexist in the same SQL pipe operator using '|>'. Please separate the "
          "multiple result clauses into separate pipe operators and then retry the query again.");
    }
    return organized;
  }
  return SyntaxError();
}

}  // namespace fleuve::sql
