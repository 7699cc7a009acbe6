#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<void> Parser::ParseInsertColumns(pb::Insert* insert) {
  if (AcceptWords({"BY", "NAME"})) {
    insert->set_by_name(true);
  } else if (IsSymbol("(") && IsIdentifier(1) && !IsQueryWord(1)) {
    FLEUVE_ASSIGN(const std::vector<std::string> columns, ParseIdentifierList());
    for (const std::string& column : columns) {
      insert->add_columns(column);
    }
  }
  return {};
}

Result<pb::Command*> Parser::ParseInsert() {
  pb::Command* command = NewCommand();
  auto* insert = command->mutable_insert();
  FLEUVE_TRY(ExpectWord("INSERT"));
  if (AcceptWords({"WITH", "SCHEMA", "EVOLUTION"})) {
    insert->set_schema_evolution(true);
  }
  if (AcceptWord("OVERWRITE")) {
    insert->set_overwrite(true);
    if (IsWord("DIRECTORY") || (IsWord("LOCAL") && IsWord("DIRECTORY", 1))) {
      return Refused("INSERT OVERWRITE DIRECTORY");
    }
    AcceptWord("TABLE");
  } else {
    FLEUVE_TRY(ExpectWord("INTO"));
    AcceptWord("TABLE");
  }
  FLEUVE_TRY(ParseName(insert->mutable_table()));
  if (IsWord("WITH") && IsSymbol("(", 1)) {
    Advance();
    FLEUVE_TRY(ParseProperties(insert->mutable_options()));
  }
  if (IsWord("PARTITION") && IsSymbol("(", 1)) {
    FLEUVE_TRY(ParsePartitionSpec(insert->mutable_partition()));
    if (AcceptWords({"IF", "NOT", "EXISTS"})) {
      insert->set_if_not_exists(true);
    }
  }
  if (AcceptWords({"REPLACE", "WHERE"})) {
    if (insert->overwrite()) {
      return SyntaxErrorAt(at_ - 2);
    }
    std::string sql;
    FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
    insert->mutable_replace_where()->CopyFrom(*condition);
    insert->set_replace_where_sql(std::move(sql));
    insert->set_overwrite(true);
  } else if (AcceptWords({"REPLACE", "USING"})) {
    return Refused("INSERT INTO ... REPLACE USING");
  } else if (AcceptWords({"REPLACE", "ON"})) {
    return Refused("INSERT INTO ... REPLACE ON");
  }
  FLEUVE_TRY(ParseInsertColumns(insert));
  default_allowed_ = true;
  auto query = ParseQuery();
  default_allowed_ = false;
  if (!query.ok()) {
    return std::move(query).error();
  }
  AttachText(*query);
  insert->mutable_query()->CopyFrom(**query);
  return command;
}

Result<pb::Command*> Parser::ParseDelete() {
  pb::Command* command = NewCommand();
  auto* statement = command->mutable_delete_();
  FLEUVE_TRY(ExpectWords({"DELETE", "FROM"}));
  FLEUVE_TRY(ParseName(statement->mutable_table()));
  if (AcceptWord("AS") || IsImplicitAlias()) {
    FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
    statement->set_alias(std::move(alias));
  }
  if (AcceptWord("WHERE")) {
    std::string sql;
    FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
    statement->mutable_condition()->CopyFrom(*condition);
    statement->set_condition_sql(std::move(sql));
  }
  return command;
}

Result<void> Parser::ParseAssignment(pb::Assignment* assignment) {
  FLEUVE_TRY(ParseColumnPath(assignment->mutable_column()));
  if (!AcceptSymbol("==")) {
    FLEUVE_TRY(ExpectSymbol("="));
  }
  const std::size_t first = at_;
  default_allowed_ = true;
  auto value = ParseExpression();
  default_allowed_ = false;
  if (!value.ok()) {
    return std::move(value).error();
  }
  assignment->set_value_sql(TextFrom(first));
  AttachText(*value);
  assignment->mutable_value()->CopyFrom(**value);
  return {};
}

Result<pb::Command*> Parser::ParseUpdate() {
  pb::Command* command = NewCommand();
  auto* update = command->mutable_update();
  FLEUVE_TRY(ExpectWord("UPDATE"));
  FLEUVE_TRY(ParseName(update->mutable_table()));
  if (AcceptWord("AS") || IsImplicitAlias()) {
    FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
    update->set_alias(std::move(alias));
  }
  FLEUVE_TRY(ExpectWord("SET"));
  do {
    FLEUVE_TRY(ParseAssignment(update->add_assignments()));
  } while (AcceptSymbol(","));
  if (AcceptWord("WHERE")) {
    std::string sql;
    FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
    update->mutable_condition()->CopyFrom(*condition);
    update->set_condition_sql(std::move(sql));
  }
  return command;
}

Result<void> Parser::RefuseColumnAliases(const char* statement) {
  if (!IsSymbol("(")) {
    return {};
  }
  return ErrorFrom(0, "COLUMN_ALIASES_NOT_ALLOWED",
                   std::string("Columns aliases are not allowed in ") + statement + ".")
      .With("op", statement);
}

Result<pb::Command*> Parser::ParseMerge() {
  pb::Command* command = NewCommand();
  auto* merge = command->mutable_merge();
  FLEUVE_TRY(ExpectWord("MERGE"));
  if (AcceptWords({"WITH", "SCHEMA", "EVOLUTION"})) {
    merge->set_schema_evolution(true);
  }
  FLEUVE_TRY(ExpectWord("INTO"));
  FLEUVE_TRY(ParseName(merge->mutable_table()));
  if (!IsWord("USING") && (AcceptWord("AS") || IsImplicitAlias())) {
    FLEUVE_ASSIGN(std::string alias, ParseIdentifier());
    merge->set_alias(std::move(alias));
    FLEUVE_TRY(RefuseColumnAliases("MERGE"));
  }
  FLEUVE_TRY(ExpectWord("USING"));
  FLEUVE_ASSIGN(Rel source, ParseRelationPrimary());
  AttachText(source);
  merge->mutable_source()->CopyFrom(*source);
  FLEUVE_TRY(ExpectWord("ON"));
  std::string sql;
  FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
  merge->mutable_condition()->CopyFrom(*condition);
  merge->set_condition_sql(std::move(sql));
  while (IsWord("WHEN")) {
    const std::size_t when_at = at_;
    Advance();
    auto* clause = merge->add_clauses();
    if (AcceptWord("MATCHED")) {
      clause->set_when(pb::Merge::Clause::MATCHED);
    } else {
      FLEUVE_TRY(ExpectWords({"NOT", "MATCHED"}));
      clause->set_when(pb::Merge::Clause::NOT_MATCHED);
      if (AcceptWord("BY")) {
        if (AcceptWord("SOURCE")) {
          clause->set_when(pb::Merge::Clause::NOT_MATCHED_BY_SOURCE);
        } else {
          FLEUVE_TRY(ExpectWord("TARGET"));
        }
      }
    }
    // The grammar's order: all WHEN MATCHED, all WHEN NOT MATCHED [BY TARGET], all WHEN NOT MATCHED BY SOURCE.
    if (merge->clauses_size() > 1 && clause->when() < merge->clauses(merge->clauses_size() - 2).when()) {
      return SyntaxErrorAt(when_at);
    }
    if (AcceptWord("AND")) {
      std::string clause_sql;
      FLEUVE_ASSIGN(Expr clause_condition, ParseConditionText(&clause_sql));
      clause->mutable_condition()->CopyFrom(*clause_condition);
      clause->set_condition_sql(std::move(clause_sql));
    }
    FLEUVE_TRY(ExpectWord("THEN"));
    if (IsWord("DELETE") && clause->when() != pb::Merge::Clause::NOT_MATCHED) {
      Advance();
      clause->set_action(pb::Merge::Clause::DELETE);
      continue;
    }
    if (IsWord("UPDATE") && clause->when() != pb::Merge::Clause::NOT_MATCHED) {
      Advance();
      FLEUVE_TRY(ExpectWord("SET"));
      clause->set_action(pb::Merge::Clause::UPDATE);
      if (IsSymbol("*") && clause->when() == pb::Merge::Clause::MATCHED) {
        Advance();
        clause->set_star(true);
        continue;
      }
      do {
        FLEUVE_TRY(ParseAssignment(clause->add_assignments()));
      } while (AcceptSymbol(","));
      continue;
    }
    if (IsWord("INSERT") && clause->when() == pb::Merge::Clause::NOT_MATCHED) {
      Advance();
      clause->set_action(pb::Merge::Clause::INSERT);
      if (AcceptSymbol("*")) {
        clause->set_star(true);
        continue;
      }
      std::vector<pb::Name> columns;
      FLEUVE_TRY(ExpectSymbol("("));
      do {
        FLEUVE_TRY(ParseColumnPath(&columns.emplace_back()));
      } while (AcceptSymbol(","));
      FLEUVE_TRY(ExpectSymbol(")"));
      FLEUVE_TRY(ExpectWord("VALUES"));
      const auto wrong_count = [&] {
        return ErrorFrom(when_at, "_LEGACY_ERROR_TEMP_0006", "The number of inserted values cannot match the fields.");
      };
      FLEUVE_TRY(ExpectSymbol("("));
      std::size_t index = 0;
      do {
        const std::size_t first = at_;
        default_allowed_ = true;
        auto value = ParseExpression();
        default_allowed_ = false;
        if (!value.ok()) {
          return std::move(value).error();
        }
        if (index >= columns.size()) {
          return wrong_count();
        }
        auto* assignment = clause->add_assignments();
        *assignment->mutable_column() = columns[index++];
        assignment->set_value_sql(TextFrom(first));
        AttachText(*value);
        assignment->mutable_value()->CopyFrom(**value);
      } while (AcceptSymbol(","));
      if (index != columns.size()) {
        return wrong_count();
      }
      FLEUVE_TRY(ExpectSymbol(")"));
      continue;
    }
    return SyntaxError();
  }
  if (merge->clauses_size() == 0) {
    return ErrorFrom(at_ - 1, "MERGE_WITHOUT_WHEN", "There must be at least one WHEN clause in a MERGE statement.");
  }
  // Only the last clause of its kind may stand without a condition.
  static constexpr const char* kConditions[] = {"NON_LAST_MATCHED_CLAUSE_OMIT_CONDITION",
                                                "NON_LAST_NOT_MATCHED_BY_TARGET_CLAUSE_OMIT_CONDITION",
                                                "NON_LAST_NOT_MATCHED_BY_SOURCE_CLAUSE_OMIT_CONDITION"};
  for (int i = 0; i < merge->clauses_size(); ++i) {
    for (int k = i + 1; k < merge->clauses_size(); ++k) {
      if (merge->clauses(i).when() == merge->clauses(k).when() && !merge->clauses(i).has_condition()) {
        return ErrorFrom(
            0, kConditions[merge->clauses(i).when()],
            "When there are more than one such clauses in a MERGE statement, only the last one can omit the "
            "condition.");
      }
    }
  }
  return command;
}

Result<pb::Command*> Parser::ParseTruncate() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWords({"TRUNCATE", "TABLE"}));
  FLEUVE_TRY(ParseName(command->mutable_truncate()->mutable_table()));
  if (IsWord("PARTITION")) {
    FLEUVE_TRY(ParsePartitionSpec(command->mutable_truncate()->mutable_partition()));
  }
  return command;
}

Result<pb::Command*> Parser::ParseCache() {
  pb::Command* command = NewCommand();
  auto* cache = command->mutable_cache_table();
  FLEUVE_TRY(ExpectWord("CACHE"));
  cache->set_lazy(AcceptWord("LAZY"));
  FLEUVE_TRY(ExpectWord("TABLE"));
  FLEUVE_TRY(ParseName(cache->mutable_table()));
  if (AcceptWord("OPTIONS")) {
    FLEUVE_TRY(ParseProperties(cache->mutable_options()));
  }
  AcceptWord("AS");
  if (IsQueryAhead(0)) {
    const std::size_t first = at_;
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    cache->mutable_query()->CopyFrom(*query);
    cache->set_query_sql(TextFrom(first));
  }
  return command;
}

Result<pb::Command*> Parser::ParseUncache() {
  pb::Command* command = NewCommand();
  if (AcceptWords({"CLEAR", "CACHE"})) {
    command->mutable_clear_cache();
    return command;
  }
  FLEUVE_TRY(ExpectWords({"UNCACHE", "TABLE"}));
  command->mutable_uncache_table()->set_if_exists(AcceptWords({"IF", "EXISTS"}));
  FLEUVE_TRY(ParseName(command->mutable_uncache_table()->mutable_table()));
  return command;
}

Result<pb::Command*> Parser::ParseRefresh() {
  pb::Command* command = NewCommand();
  auto* refresh = command->mutable_refresh();
  FLEUVE_TRY(ExpectWord("REFRESH"));
  if (AcceptWord("FUNCTION")) {
    FLEUVE_TRY(ParseName(refresh->mutable_function()));
    return command;
  }
  if ((IsWord("MATERIALIZED") && IsWord("VIEW", 1)) || (IsWord("STREAMING") && IsWord("TABLE", 1))) {
    return ParseRefreshDataset();
  }
  if (Current().kind == TokenKind::kString) {
    FLEUVE_ASSIGN(std::string path, ParseString());
    refresh->set_path(std::move(path));
    return command;
  }
  AcceptWord("TABLE");
  FLEUVE_TRY(ParseName(refresh->mutable_table()));
  return command;
}

Result<pb::Command*> Parser::ParseExplain() {
  pb::Command* command = NewCommand();
  auto* explain = command->mutable_explain();
  FLEUVE_TRY(ExpectWord("EXPLAIN"));
  static const struct {
    std::string_view word;
    pb::Explain::Mode mode;
  } kModes[] = {{"EXTENDED", pb::Explain::EXTENDED},
                {"CODEGEN", pb::Explain::CODEGEN},
                {"COST", pb::Explain::COST},
                {"FORMATTED", pb::Explain::FORMATTED},
                {"LOGICAL", pb::Explain::EXTENDED}};
  for (const auto& mode : kModes) {
    if (IsWord(mode.word) && !AtEnd()) {
      Advance();
      explain->set_mode(mode.mode);
      break;
    }
  }
  FLEUVE_ASSIGN(const AnyStatement inner, ParseAnyStatement());
  if (inner.query != nullptr) {
    AttachText(inner.query);
    explain->mutable_query()->CopyFrom(*inner.query);
  } else {
    explain->mutable_command()->CopyFrom(*inner.command);
  }
  return command;
}

// ------------------------------------------------------------------------------------------------ Delta maintenance

Result<pb::Command*> Parser::ParseOptimize() {
  pb::Command* command = NewCommand();
  auto* optimize = command->mutable_optimize();
  FLEUVE_TRY(ExpectWord("OPTIMIZE"));
  std::string path;
  bool has_path = false;
  FLEUVE_TRY(ParseNameOrPath(optimize->mutable_table(), &path, &has_path));
  if (has_path) {
    optimize->set_path(std::move(path));
  }
  optimize->set_full(AcceptWord("FULL"));
  if (AcceptWord("WHERE")) {
    std::string sql;
    FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
    optimize->mutable_condition()->CopyFrom(*condition);
    optimize->set_condition_sql(std::move(sql));
  }
  if (AcceptWords({"ZORDER", "BY"})) {
    const bool parentheses = AcceptSymbol("(");
    do {
      FLEUVE_TRY(ParseColumnPath(optimize->add_zorder_by()));
    } while (AcceptSymbol(","));
    if (parentheses) {
      FLEUVE_TRY(ExpectSymbol(")"));
    }
  }
  return command;
}

Result<pb::Command*> Parser::ParseVacuum() {
  pb::Command* command = NewCommand();
  auto* vacuum = command->mutable_vacuum();
  FLEUVE_TRY(ExpectWord("VACUUM"));
  std::string path;
  bool has_path = false;
  FLEUVE_TRY(ParseNameOrPath(vacuum->mutable_table(), &path, &has_path));
  if (has_path) {
    vacuum->set_path(std::move(path));
  }
  const auto twice = [&](const char* clause) {
    return ErrorFrom(0, "DUPLICATE_CLAUSES", std::string("Found duplicate clauses: ") + clause + ".")
        .With("clauseName", clause);
  };
  while (true) {
    if (IsAnyWord({"FULL", "LITE"}) && (vacuum->full() || vacuum->lite())) {
      return twice("LITE/FULL");
    }
    if (IsWord("RETAIN") && vacuum->has_retain_hours()) {
      return twice("RETAIN");
    }
    if (IsWord("DRY") && vacuum->dry_run()) {
      return twice("DRY RUN");
    }
    if (AcceptWord("USING")) {
      FLEUVE_TRY(ExpectWord("INVENTORY"));
      return Refused("VACUUM ... USING INVENTORY");
    }
    if (AcceptWord("FULL")) {
      vacuum->set_full(true);
    } else if (AcceptWord("LITE")) {
      vacuum->set_lite(true);
    } else if (AcceptWord("RETAIN")) {
      const bool negative = AcceptSymbol("-");
      if (Current().kind != TokenKind::kInteger && Current().kind != TokenKind::kDecimal) {
        return SyntaxError();
      }
      vacuum->set_retain_hours(std::stod(Current().text) * (negative ? -1 : 1));
      Advance();
      FLEUVE_TRY(ExpectWord("HOURS"));
    } else if (AcceptWords({"DRY", "RUN"})) {
      vacuum->set_dry_run(true);
    } else {
      return command;
    }
  }
}

Result<pb::Command*> Parser::ParseRestore() {
  pb::Command* command = NewCommand();
  auto* restore = command->mutable_restore();
  FLEUVE_TRY(ExpectWord("RESTORE"));
  AcceptWord("TABLE");
  std::string path;
  bool has_path = false;
  FLEUVE_TRY(ParseNameOrPath(restore->mutable_table(), &path, &has_path));
  if (has_path) {
    restore->set_path(std::move(path));
  }
  AcceptWord("TO");
  AcceptWord("FOR");
  if (AcceptWords({"VERSION", "AS", "OF"})) {
    if (Current().kind == TokenKind::kString) {
      return Error(ErrorKind::kInvalidArgument, "", "For input string: \"'" + Current().text + "'\"")
          .Family(ErrorFamily::kIllegalArgument);
    }
    if (Current().kind != TokenKind::kInteger) {
      return SyntaxError();
    }
    restore->set_version(Current().text);
    Advance();
    return command;
  }
  FLEUVE_TRY(ExpectWords({"TIMESTAMP", "AS", "OF"}));
  FLEUVE_ASSIGN(Expr timestamp, ParseExpression());
  restore->mutable_timestamp()->CopyFrom(*timestamp);
  return command;
}

Result<pb::Command*> Parser::ParseConvert() {
  pb::Command* command = NewCommand();
  auto* convert = command->mutable_convert_to_delta();
  FLEUVE_TRY(ExpectWords({"CONVERT", "TO", "DELTA"}));
  FLEUVE_TRY(ParseName(convert->mutable_table()));
  if (AcceptWords({"NO", "STATISTICS"})) {
    convert->set_no_statistics(true);
  }
  if (AcceptWords({"PARTITIONED", "BY"})) {
    FLEUVE_TRY(ExpectSymbol("("));
    do {
      FLEUVE_TRY(ParseColumnDefinition(convert->add_partition_columns(), false, false));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
  }
  return command;
}

Result<pb::Command*> Parser::ParseGenerate() {
  pb::Command* command = NewCommand();
  auto* generate = command->mutable_generate_manifest();
  FLEUVE_TRY(ExpectWord("GENERATE"));
  FLEUVE_ASSIGN(std::string mode, ParseIdentifier());
  generate->set_mode(std::move(mode));
  FLEUVE_TRY(ExpectWords({"FOR", "TABLE"}));
  FLEUVE_TRY(ParseName(generate->mutable_table()));
  return command;
}

Result<pb::Command*> Parser::ParseReorg() {
  pb::Command* command = NewCommand();
  auto* reorg = command->mutable_reorg();
  FLEUVE_TRY(ExpectWords({"REORG", "TABLE"}));
  FLEUVE_TRY(ParseName(reorg->mutable_table()));
  if (AcceptWord("WHERE")) {
    std::string sql;
    FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
    reorg->mutable_condition()->CopyFrom(*condition);
    reorg->set_condition_sql(std::move(sql));
  }
  FLEUVE_TRY(ExpectWord("APPLY"));
  FLEUVE_TRY(ExpectSymbol("("));
  const std::size_t first = at_;
  int level = 0;
  while (!AtEnd() && !(level == 0 && IsSymbol(")"))) {
    level += IsSymbol("(") ? 1 : IsSymbol(")") ? -1 : 0;
    Advance();
  }
  reorg->set_apply(Upper(TextFrom(first)));
  FLEUVE_TRY(ExpectSymbol(")"));
  return command;
}

Result<pb::Command*> Parser::ParseIndex(const std::string& verb) {
  pb::Command* command = NewCommand();
  auto* statement = command->mutable_alter_table();
  statement->set_unsupported(verb + " INDEX");
  FLEUVE_TRY(ExpectWord("INDEX"));
  AcceptWords({"IF", "NOT", "EXISTS"}) || AcceptWords({"IF", "EXISTS"});
  FLEUVE_TRY(ParseIdentifier());
  FLEUVE_TRY(ExpectWord("ON"));
  AcceptWord("TABLE");
  FLEUVE_TRY(ParseName(statement->mutable_table()));
  while (!AtEnd() && !IsSymbol(";")) {
    Advance();  // method, columns, options: no table has any
  }
  return command;
}

Result<pb::Command*> Parser::ParseLoadData() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWords({"LOAD", "DATA"}));
  AcceptWord("LOCAL");
  FLEUVE_TRY(ExpectWord("INPATH"));
  FLEUVE_TRY(ParseString());
  AcceptWord("OVERWRITE");
  FLEUVE_TRY(ExpectWords({"INTO", "TABLE"}));
  auto* statement = command->mutable_alter_table();
  statement->set_unsupported("LOAD DATA");
  FLEUVE_TRY(ParseName(statement->mutable_table()));
  if (pb::PartitionSpec partition; IsWord("PARTITION")) {
    FLEUVE_TRY(ParsePartitionSpec(&partition));
  }
  return command;
}

Result<pb::Command*> Parser::ParseRepair() {
  pb::Command* command = NewCommand();
  AcceptWord("MSCK");
  FLEUVE_TRY(ExpectWords({"REPAIR", "TABLE"}));
  FLEUVE_TRY(ParseName(command->mutable_repair_table()->mutable_table()));
  if (IsAnyWord({"ADD", "DROP", "SYNC"})) {
    Advance();
    FLEUVE_TRY(ExpectWord("PARTITIONS"));
  }
  return command;
}

}  // namespace fleuve::sql
