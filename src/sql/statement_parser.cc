#include "proto/unpack.h"
#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<Parser::AnyStatement> Parser::ParseAnyStatement() {
  const std::size_t first = at_;
  AnyStatement statement;
  if (IsWord("WITH")) {
    FLEUVE_ASSIGN(statement, ParseWithStatement());
  } else if (IsAnyWord({"SELECT", "FROM", "VALUES", "TABLE"}) || IsSymbol("(")) {
    FLEUVE_ASSIGN(statement.query, ParseQuery());
  } else {
    FLEUVE_ASSIGN(statement.command, ParseCommand());
  }
  statement.text = TextFrom(first);
  if (statement.command != nullptr) {
    statement.command->set_sql_text(statement.text);
  }
  return statement;
}

Result<Parser::AnyStatement> Parser::ParseWithStatement() {
  const std::size_t first = at_;
  AnyStatement statement;
  pb::RelationExtension extension;
  auto* with = extension.mutable_with();
  FLEUVE_TRY(ParseCommonTables(with));
  if (IsAnyWord({"MERGE", "INSERT"})) {
    const bool merge = IsWord("MERGE");
    FLEUVE_ASSIGN(statement.command, ParseCommand());
    // The names are seen by the rows that are written.
    sc::Relation* source = merge ? statement.command->mutable_merge()->mutable_source()
                                 : statement.command->mutable_insert()->mutable_query();
    std::string alias;
    if (merge && source->has_subquery_alias()) {
      alias = source->subquery_alias().alias();
    } else if (merge && source->has_read()) {
      auto parts = sql::ParseMultipartName(source->read().named_table().unparsed_identifier());
      alias = parts.ok() ? parts->back() : "";
    }
    with->mutable_body()->CopyFrom(*source);
    source->Clear();
    if (alias.empty()) {
      pb::Pack(extension, source->mutable_extension());
    } else {
      source->mutable_subquery_alias()->set_alias(alias);
      pb::Pack(extension, source->mutable_subquery_alias()->mutable_input()->mutable_extension());
    }
    return statement;
  }
  if (IsAnyWord({"UPDATE", "DELETE"})) {
    return Refused("WITH before UPDATE or DELETE");
  }
  FLEUVE_ASSIGN(Rel body, ParseQuery());
  with->mutable_body()->CopyFrom(*body);
  statement.query = SpannedRel(ExtendedRel(extension), first);
  return statement;
}

Result<pb::Command*> Parser::ParseCommand() {
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  if (Current().kind != TokenKind::kWord) {
    return SyntaxError();
  }
  using Rule = Result<pb::Command*> (Parser::*)();
  static const struct {
    std::string_view word;
    Rule rule;
  } kRules[] = {
      {"CREATE", &Parser::ParseCreate},     {"REPLACE", &Parser::ParseCreate},
      {"DROP", &Parser::ParseDrop},         {"ALTER", &Parser::ParseAlter},
      {"SHOW", &Parser::ParseShow},         {"DESCRIBE", &Parser::ParseDescribe},
      {"DESC", &Parser::ParseDescribe},     {"SET", &Parser::ParseSet},
      {"RESET", &Parser::ParseReset},       {"USE", &Parser::ParseUse},
      {"INSERT", &Parser::ParseInsert},     {"DELETE", &Parser::ParseDelete},
      {"UPDATE", &Parser::ParseUpdate},     {"MERGE", &Parser::ParseMerge},
      {"TRUNCATE", &Parser::ParseTruncate}, {"CACHE", &Parser::ParseCache},
      {"UNCACHE", &Parser::ParseUncache},   {"CLEAR", &Parser::ParseUncache},
      {"REFRESH", &Parser::ParseRefresh},   {"EXPLAIN", &Parser::ParseExplain},
      {"OPTIMIZE", &Parser::ParseOptimize}, {"VACUUM", &Parser::ParseVacuum},
      {"RESTORE", &Parser::ParseRestore},   {"COMMENT", &Parser::ParseComment},
      {"ANALYZE", &Parser::ParseAnalyze},   {"CONVERT", &Parser::ParseConvert},
      {"GENERATE", &Parser::ParseGenerate}, {"REORG", &Parser::ParseReorg},
      {"MSCK", &Parser::ParseRepair},       {"REPAIR", &Parser::ParseRepair},
      {"DECLARE", &Parser::ParseDeclare},   {"EXECUTE", &Parser::ParseExecuteImmediate},
      {"BEGIN", &Parser::ParseScript},      {"APPLY", &Parser::ParseApplyChanges},
  };
  for (const auto& rule : kRules) {
    if (IsWord(rule.word)) {
      return (this->*rule.rule)();
    }
  }
  if (IsAnyWord({"ADD", "LIST"}) && IsAnyWord({"JAR", "JARS", "FILE", "FILES", "ARCHIVE", "ARCHIVES"}, 1)) {
    return Refused(Current().upper + " " + Ahead(1).upper);
  }
  if (AreWords({"LOAD", "DATA"})) {
    return ParseLoadData();
  }
  if (IsWord("CALL") && IsIdentifier(1)) {
    return Refused("CALL");
  }
  if (IsAnyWord({"COMMIT", "ROLLBACK"})) {
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE",
                     "The statement or clause: " + Current().upper + " is not valid.");
  }
  if (IsAnyWord({"GRANT", "REVOKE", "EXPORT", "IMPORT", "LOCK", "UNLOCK", "START", "DFS"}) && IsIdentifier(1)) {
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE",
                     "The statement or clause: " + Current().upper + " " + Ahead(1).upper + " is not valid.");
  }
  return SyntaxError();
}

Result<void> Parser::ParseName(pb::Name* name) {
  const std::size_t first = at_;
  if (IsWord("IDENTIFIER") && IsSymbol("(", 1)) {
    Advance();
    Advance();
    FLEUVE_ASSIGN(Expr text, ParseExpression());
    FLEUVE_TRY(ExpectSymbol(")"));
    const auto constant = ConstantText(*text);
    if (!constant) {
      return Refused("IDENTIFIER(...) with an expression that is no constant, in a command");
    }
    FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(*constant));
    for (const std::string& part : parts) {
      name->add_parts(part);
    }
    FillSpan(name->mutable_span(), first);
    return {};
  }
  FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
  for (const std::string& part : parts) {
    name->add_parts(part);
  }
  FillSpan(name->mutable_span(), first);
  return {};
}

Result<void> Parser::ParseColumnPath(pb::Name* name) { return ParseName(name); }

Result<void> Parser::ParseNameOrPath(pb::Name* name, std::string* path, bool* has_path) {
  *has_path = false;
  if (Current().kind == TokenKind::kString) {
    FLEUVE_ASSIGN(*path, ParseString());
    *has_path = true;
    return {};
  }
  return ParseName(name);
}

Result<pb::Property> Parser::ParseProperty() {
  pb::Property property;
  if (Current().kind == TokenKind::kString) {
    FLEUVE_ASSIGN(std::string key, ParseString());
    property.set_key(std::move(key));
  } else {
    std::string key;
    do {
      if (!IsIdentifier()) {
        return SyntaxError();
      }
      key += (key.empty() ? "" : ".") + Current().text;
      Advance();
    } while (AcceptSymbol("."));
    property.set_key(std::move(key));
  }
  if (IsSymbol("=") || IsSymbol("==")) {
    Advance();
  } else if (IsSymbol(",") || IsSymbol(")")) {
    return property;
  }
  property.set_has_value(true);
  const Token& token = Current();
  const bool negative = IsSymbol("-");
  if (token.kind == TokenKind::kString) {
    FLEUVE_ASSIGN(std::string value, ParseString());
    property.set_value(std::move(value));
  } else if (negative || (token.kind >= TokenKind::kInteger && token.kind <= TokenKind::kBigDecimal)) {
    const std::size_t first = at_;
    if (negative) {
      Advance();
    }
    if (Current().kind < TokenKind::kInteger || Current().kind > TokenKind::kBigDecimal) {
      return SyntaxError();
    }
    Advance();
    property.set_value(TextFrom(first));
  } else if (IsAnyWord({"TRUE", "FALSE"})) {
    property.set_value(Lower(token.text));
    Advance();
  } else {
    return SyntaxError();
  }
  return property;
}

Result<void> Parser::ParseProperties(google::protobuf::RepeatedPtrField<pb::Property>* properties) {
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    const std::size_t first = at_;
    FLEUVE_ASSIGN(pb::Property property, ParseProperty());
    for (const auto& other : *properties) {
      if (other.key() == property.key()) {
        return ErrorFrom(first, "DUPLICATE_KEY", "Found duplicate keys `" + property.key() + "`.")
            .With("keyColumn", "`" + property.key() + "`");
      }
    }
    *properties->Add() = std::move(property);
  } while (AcceptSymbol(","));
  return ExpectSymbol(")");
}

Result<void> Parser::ParsePartitionSpec(pb::PartitionSpec* spec) {
  FLEUVE_TRY(ExpectWord("PARTITION"));
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    auto* item = spec->add_items();
    FLEUVE_ASSIGN(std::string column, ParseIdentifier());
    item->set_column(std::move(column));
    if (IsSymbol("=") || IsSymbol("==")) {
      Advance();
      const std::size_t first = at_;
      FLEUVE_ASSIGN(Expr value, ParseValue(2));
      item->mutable_value()->CopyFrom(*value);
      item->set_value_text(value->has_literal() && value->literal().has_string() ? value->literal().string()
                                                                                 : TextFrom(first));
    }
  } while (AcceptSymbol(","));
  return ExpectSymbol(")");
}

Result<Parser::Expr> Parser::ParseConditionText(std::string* sql) {
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Expr condition, ParseExpression());
  *sql = TextFrom(first);
  AttachText(condition);
  return condition;
}

}  // namespace fleuve::sql
