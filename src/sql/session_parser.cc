#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<pb::Command*> Parser::ParseShow() {
  pb::Command* command = NewCommand();
  auto* show = command->mutable_show();
  FLEUVE_TRY(ExpectWord("SHOW"));
  const auto database = [&]() -> Result<void> {
    if (AcceptWord("IN") || AcceptWord("FROM")) {
      return ParseName(show->mutable_database());
    }
    return {};
  };
  const auto pattern = [&]() -> Result<void> {
    if (AcceptWord("LIKE") || Current().kind == TokenKind::kString) {
      FLEUVE_ASSIGN(std::string text, ParseString());
      show->set_pattern(std::move(text));
    }
    return {};
  };
  if (IsAnyWord({"DATABASES", "SCHEMAS", "NAMESPACES"})) {
    Advance();
    show->set_what(pb::Show::DATABASES);
    FLEUVE_TRY(database());
    FLEUVE_TRY(pattern());
    return command;
  }
  if (AcceptWord("TABLES")) {
    show->set_what(pb::Show::TABLES);
    FLEUVE_TRY(database());
    FLEUVE_TRY(pattern());
    return command;
  }
  if (AcceptWords({"TABLE", "EXTENDED"})) {
    show->set_what(pb::Show::TABLE_EXTENDED);
    FLEUVE_TRY(database());
    FLEUVE_TRY(ExpectWord("LIKE"));
    FLEUVE_ASSIGN(std::string text, ParseString());
    show->set_pattern(std::move(text));
    if (IsWord("PARTITION")) {
      FLEUVE_TRY(ParsePartitionSpec(show->mutable_partition()));
    }
    return command;
  }
  if (AcceptWord("VIEWS")) {
    show->set_what(pb::Show::VIEWS);
    FLEUVE_TRY(database());
    FLEUVE_TRY(pattern());
    return command;
  }
  if (AcceptWord("COLUMNS")) {
    show->set_what(pb::Show::COLUMNS);
    if (!AcceptWord("IN")) {
      FLEUVE_TRY(ExpectWord("FROM"));
    }
    FLEUVE_TRY(ParseName(show->mutable_table()));
    FLEUVE_TRY(database());
    return command;
  }
  if (AcceptWord("TBLPROPERTIES")) {
    show->set_what(pb::Show::TABLE_PROPERTIES);
    FLEUVE_TRY(ParseName(show->mutable_table()));
    if (AcceptSymbol("(")) {
      FLEUVE_ASSIGN(const pb::Property property, ParseProperty());
      show->set_property_key(property.key());
      FLEUVE_TRY(ExpectSymbol(")"));
    }
    return command;
  }
  if (AcceptWords({"CREATE", "TABLE"})) {
    show->set_what(pb::Show::CREATE_TABLE);
    FLEUVE_TRY(ParseName(show->mutable_table()));
    show->set_as_serde(AcceptWords({"AS", "SERDE"}));
    return command;
  }
  if (AcceptWord("PARTITIONS")) {
    show->set_what(pb::Show::PARTITIONS);
    FLEUVE_TRY(ParseName(show->mutable_table()));
    if (IsWord("PARTITION")) {
      FLEUVE_TRY(ParsePartitionSpec(show->mutable_partition()));
    }
    return command;
  }
  if (IsWord("FUNCTIONS") || (IsAnyWord({"USER", "SYSTEM", "ALL"}) && IsWord("FUNCTIONS", 1))) {
    if (!IsWord("FUNCTIONS")) {
      show->set_function_scope(Current().upper);
      Advance();
    }
    Advance();
    show->set_what(pb::Show::FUNCTIONS);
    FLEUVE_TRY(database());
    FLEUVE_TRY(pattern());
    if (IsIdentifier()) {
      FLEUVE_TRY(ParseName(show->mutable_function()));
    }
    return command;
  }
  if (AcceptWord("CATALOGS")) {
    show->set_what(pb::Show::CATALOGS);
    FLEUVE_TRY(pattern());
    return command;
  }
  if (AreWords({"CURRENT", "DATABASE"}) || AreWords({"CURRENT", "SCHEMA"}) || AreWords({"CURRENT", "NAMESPACE"})) {
    Advance();
    Advance();
    show->set_what(pb::Show::CURRENT_DATABASE);
    return command;
  }
  if (AcceptWord("VARIABLES")) {
    show->set_what(pb::Show::VARIABLES);
    return command;
  }
  if (IsAnyWord({"GRANT", "ROLES", "PRINCIPALS", "LOCKS", "TRANSACTIONS", "INDEXES", "COMPACTIONS"})) {
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE",
                     "The statement or clause: SHOW " + Current().upper + " is not valid.");
  }
  if (IsAnyWord({"PROCEDURES", "COLLATIONS"})) {
    return Refused("SHOW " + Current().upper);
  }
  return SyntaxError();
}

Result<pb::Command*> Parser::ParseDescribe() {
  pb::Command* command = NewCommand();
  Advance();
  if (AcceptWord("DETAIL")) {
    auto* detail = command->mutable_describe_detail();
    std::string path;
    bool has_path = false;
    FLEUVE_TRY(ParseNameOrPath(detail->mutable_table(), &path, &has_path));
    if (has_path) {
      detail->set_path(std::move(path));
    }
    return command;
  }
  if (IsWord("HISTORY") && (IsIdentifier(1) || Ahead(1).kind == TokenKind::kString)) {
    Advance();
    auto* history = command->mutable_describe_history();
    std::string path;
    bool has_path = false;
    AcceptWord("TABLE");
    FLEUVE_TRY(ParseNameOrPath(history->mutable_table(), &path, &has_path));
    if (has_path) {
      history->set_path(std::move(path));
    }
    if (AcceptWord("LIMIT")) {
      FLEUVE_ASSIGN(const std::int64_t limit, ParseIntegerToken());
      history->set_limit(limit);
    }
    return command;
  }
  if (IsWord("FUNCTION") && !EndsStatement(1)) {
    Advance();
    auto* describe = command->mutable_describe_function();
    describe->set_extended(AcceptWord("EXTENDED"));
    if (IsIdentifier()) {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
      std::string name;
      for (const std::string& part : parts) {
        name += (name.empty() ? "" : ".") + part;
      }
      describe->set_function(std::move(name));
    } else {
      describe->set_function(Current().text);
      Advance();
    }
    return command;
  }
  if (IsAnyWord({"DATABASE", "SCHEMA", "NAMESPACE"}) && (IsIdentifier(1))) {
    Advance();
    auto* describe = command->mutable_describe_database();
    describe->set_extended(AcceptWord("EXTENDED"));
    FLEUVE_TRY(ParseName(describe->mutable_database()));
    return command;
  }
  if (IsWord("QUERY") && IsQueryAhead(1)) {
    Advance();
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    command->mutable_describe_query()->mutable_query()->CopyFrom(*query);
    return command;
  }
  if (IsQueryAhead(0) && !IsWord("TABLE")) {
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    command->mutable_describe_query()->mutable_query()->CopyFrom(*query);
    return command;
  }
  auto* describe = command->mutable_describe_table();
  if (IsWord("TABLE") && IsIdentifier(1)) {
    Advance();
  }
  if (IsAnyWord({"EXTENDED", "FORMATTED"}) && IsIdentifier(1)) {
    Advance();
    describe->set_extended(true);
  }
  FLEUVE_TRY(ParseName(describe->mutable_table()));
  if (IsWord("PARTITION") && IsSymbol("(", 1)) {
    FLEUVE_TRY(ParsePartitionSpec(describe->mutable_partition()));
  }
  if (AcceptWords({"AS", "JSON"})) {
    describe->set_as_json(true);
    return command;
  }
  if (IsIdentifier()) {
    FLEUVE_TRY(ParseColumnPath(describe->mutable_column()));
  }
  return command;
}

Result<pb::Command*> Parser::ParseSet() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWord("SET"));
  if (EndsStatement(0)) {
    command->mutable_set_config();
    return command;
  }
  if (AcceptWord("CATALOG")) {
    auto* use = command->mutable_use_database();
    use->set_is_catalog(true);
    if (Current().kind == TokenKind::kString) {
      FLEUVE_ASSIGN(std::string name, ParseString());
      use->mutable_database()->add_parts(std::move(name));
      return command;
    }
    FLEUVE_TRY(ParseName(use->mutable_database()));
    return command;
  }
  if (AcceptWords({"TIME", "ZONE"})) {
    auto* set = command->mutable_set_time_zone();
    if (AcceptWord("LOCAL")) {
      set->set_local(true);
      return command;
    }
    if (IsWord("INTERVAL")) {
      const std::size_t first = at_;
      FLEUVE_ASSIGN(Expr interval, ParsePrimary());
      if (!interval->has_literal() || !interval->literal().has_day_time_interval()) {
        return ErrorFrom(first, "_LEGACY_ERROR_TEMP_0044",
                         "The interval value must be in the range of [-18, +18] hours.");
      }
      const std::int64_t seconds = interval->literal().day_time_interval() / 1'000'000;
      const std::int64_t absolute = seconds < 0 ? -seconds : seconds;
      if (absolute > 18 * 3600) {
        return ErrorFrom(first, "_LEGACY_ERROR_TEMP_0044",
                         "The interval value must be in the range of [-18, +18] hours.");
      }
      char text[32];
      std::snprintf(text, sizeof text, "%c%02d:%02d", seconds < 0 ? '-' : '+', static_cast<int>(absolute / 3600),
                    static_cast<int>(absolute / 60 % 60));
      set->set_zone(text);
      return command;
    }
    if (Current().kind == TokenKind::kString) {
      FLEUVE_ASSIGN(std::string zone, ParseString());
      set->set_zone(std::move(zone));
      return command;
    }
    return SyntaxError();
  }
  if (IsAnyWord({"VAR", "VARIABLE"}) && !IsSymbol(".", 1) && !IsSymbol("=", 1)) {
    Advance();
    return ParseSetVariable();
  }
  if (IsWord("ROLE")) {
    return Refused("SET ROLE");
  }
  if (IsSymbol("-") && IsWord("V", 1)) {
    Advance();
    Advance();
    command->mutable_set_config()->set_all(true);
    return command;
  }
  // The key is text up to `=`, the value text up to the end of the statement.
  auto* set = command->mutable_set_config();
  const std::size_t first = at_;
  if (Current().kind == TokenKind::kQuoted) {
    set->set_key(Current().text);
    Advance();
  } else {
    while (!EndsStatement(0) && !IsSymbol("=") && !IsSymbol("==")) {
      Advance();
    }
    set->set_key(TextFrom(first));
  }
  if (set->key().find_first_of(" \t\n") != std::string::npos || set->key().empty()) {
    return ErrorFrom(
        first, "INVALID_SET_SYNTAX",
        "Expected format is 'SET', 'SET key', or 'SET key=value'. If you want to include special characters "
        "in key, or include semicolon in value, please use backquotes, e.g., SET `key`=`value`.");
  }
  if (AcceptSymbol("=")) {
    if (Current().kind == TokenKind::kQuoted && EndsStatement(1)) {
      set->set_value(Current().text);
      Advance();
      return command;
    }
    // As written, quotes included: SET has no strings.
    const int start = Current().start;
    while (!EndsStatement(0)) {
      Advance();
    }
    const int stop = AtEnd() && at_ > 0 ? static_cast<int>(text_.size()) : Current().start;
    std::string value(text_.substr(static_cast<std::size_t>(std::min<int>(start, static_cast<int>(text_.size()))),
                                   static_cast<std::size_t>(std::max(0, stop - start))));
    while (!value.empty() &&
           (value.back() == ' ' || value.back() == '\n' || value.back() == '\t' || value.back() == '\r')) {
      value.pop_back();
    }
    set->set_value(std::move(value));
  }
  return command;
}

Result<pb::Command*> Parser::ParseReset() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWord("RESET"));
  auto* reset = command->mutable_reset_config();
  if (EndsStatement(0)) {
    return command;
  }
  if (Current().kind == TokenKind::kQuoted) {
    reset->set_key(Current().text);
    Advance();
    return command;
  }
  const std::size_t first = at_;
  while (!EndsStatement(0)) {
    Advance();
  }
  reset->set_key(TextFrom(first));
  if (reset->key().find_first_of(" \t\n") != std::string::npos) {
    return ErrorFrom(
        first, "INVALID_RESET_COMMAND_FORMAT",
        "Expected format is 'RESET' or 'RESET key'. If you want to include special characters in key, please "
        "use backquotes, e.g., RESET `key`.");
  }
  return command;
}

Result<pb::Command*> Parser::ParseUse() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWord("USE"));
  auto* use = command->mutable_use_database();
  if (IsAnyWord({"DATABASE", "SCHEMA", "NAMESPACE"}) && IsIdentifier(1)) {
    Advance();
    use->set_is_namespace(true);
  } else if (IsWord("CATALOG") && IsIdentifier(1)) {
    Advance();
    use->set_is_catalog(true);
  }
  FLEUVE_TRY(ParseName(use->mutable_database()));
  return command;
}

Result<pb::Command*> Parser::ParseComment() {
  pb::Command* command = NewCommand();
  auto* comment = command->mutable_comment();
  FLEUVE_TRY(ExpectWords({"COMMENT", "ON"}));
  if (!IsAnyWord({"TABLE", "DATABASE", "SCHEMA", "NAMESPACE", "COLUMN", "VIEW"})) {
    return SyntaxError();
  }
  comment->set_object(IsAnyWord({"SCHEMA", "NAMESPACE"}) ? "DATABASE" : Current().upper);
  Advance();
  FLEUVE_TRY(ParseName(comment->mutable_name()));
  FLEUVE_TRY(ExpectWord("IS"));
  if (!AcceptWord("NULL")) {
    FLEUVE_ASSIGN(std::string text, ParseString());
    comment->set_text(std::move(text));
  }
  return command;
}

Result<pb::Command*> Parser::ParseAnalyze() {
  pb::Command* command = NewCommand();
  auto* analyze = command->mutable_analyze();
  FLEUVE_TRY(ExpectWord("ANALYZE"));
  if (AcceptWord("TABLES")) {
    analyze->set_tables_in(true);
    if (AcceptWord("IN") || AcceptWord("FROM")) {
      FLEUVE_TRY(ParseName(analyze->mutable_database()));
    }
  } else {
    FLEUVE_TRY(ExpectWord("TABLE"));
    FLEUVE_TRY(ParseName(analyze->mutable_table()));
    if (IsWord("PARTITION")) {
      FLEUVE_TRY(ParsePartitionSpec(analyze->mutable_partition()));
    }
  }
  FLEUVE_TRY(ExpectWords({"COMPUTE"}));
  if (AcceptWord("DELTA")) {
    analyze->set_delta(true);
  }
  FLEUVE_TRY(ExpectWord("STATISTICS"));
  if (AcceptWord("NOSCAN")) {
    analyze->set_no_scan(true);
  } else if (AcceptWords({"FOR", "ALL", "COLUMNS"})) {
    analyze->set_all_columns(true);
  } else if (AcceptWords({"FOR", "COLUMNS"})) {
    do {
      FLEUVE_ASSIGN(std::string column, ParseIdentifier());
      analyze->add_columns(std::move(column));
    } while (AcceptSymbol(","));
  }
  return command;
}

// ------------------------------------------------------------------------------------------------------- variables

Result<pb::Command*> Parser::ParseDeclare() {
  pb::Command* command = NewCommand();
  auto* declare = command->mutable_declare_variable();
  FLEUVE_TRY(ExpectWord("DECLARE"));
  declare->set_or_replace(AcceptWords({"OR", "REPLACE"}));
  if ((IsWord("VARIABLE") || IsWord("VAR")) && IsIdentifier(1)) {
    Advance();
  }
  do {
    FLEUVE_TRY(ParseName(declare->add_names()));
  } while (AcceptSymbol(","));
  if (!IsWord("DEFAULT") && !IsSymbol("=") && IsIdentifier()) {
    FLEUVE_ASSIGN(const types::DataType type, ParseType());
    declare->set_type(type.Sql());
  }
  if (AcceptWord("DEFAULT") || AcceptSymbol("=")) {
    std::string sql;
    FLEUVE_ASSIGN(Expr value, ParseConditionText(&sql));
    declare->mutable_default_value()->CopyFrom(*value);
    declare->set_default_sql(std::move(sql));
  } else if (!declare->has_type()) {
    return SyntaxError();
  }
  return command;
}

Result<pb::Command*> Parser::ParseSetVariable() {
  pb::Command* command = NewCommand();
  auto* set = command->mutable_set_variable();
  if (AcceptSymbol("(")) {
    do {
      FLEUVE_TRY(ParseName(set->add_targets()));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
    FLEUVE_TRY(ExpectSymbol("="));
    FLEUVE_TRY(ExpectSymbol("("));
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    FLEUVE_TRY(ExpectSymbol(")"));
    AttachText(query);
    set->mutable_query()->CopyFrom(*query);
    return command;
  }
  do {
    FLEUVE_TRY(ParseAssignment(set->add_assignments()));
  } while (AcceptSymbol(","));
  return command;
}

Result<pb::Command*> Parser::ParseExecuteImmediate() {
  pb::Command* command = NewCommand();
  auto* execute = command->mutable_execute_immediate();
  FLEUVE_TRY(ExpectWords({"EXECUTE", "IMMEDIATE"}));
  FLEUVE_ASSIGN(Expr text, ParseExpression());
  execute->mutable_text()->CopyFrom(*text);
  const auto using_clause = [&]() -> Result<void> {
    if (!AcceptWord("USING")) {
      return {};
    }
    const bool parentheses = AcceptSymbol("(");
    do {
      FLEUVE_ASSIGN(Expr argument, ParseNamedExpression());
      execute->add_arguments()->CopyFrom(*argument);
    } while (AcceptSymbol(","));
    return parentheses ? ExpectSymbol(")") : Result<void>();
  };
  FLEUVE_TRY(using_clause());
  if (AcceptWord("INTO")) {
    do {
      FLEUVE_TRY(ParseName(execute->add_into()));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(using_clause());
  }
  return command;
}

}  // namespace fleuve::sql
