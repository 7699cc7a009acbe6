#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<void> Parser::CheckTableProperties(const google::protobuf::RepeatedPtrField<pb::Property>& properties) const {
  static constexpr std::pair<std::string_view, std::string_view> kReserved[] = {
      {"provider", "please use the USING clause to specify it"},
      {"location", "please use the LOCATION clause to specify it"},
      {"owner", "it will be set to the current user"},
      {"external", "please use CREATE EXTERNAL TABLE"},
      {"is_managed_location", "it is set by the catalog"}};
  for (const pb::Property& property : properties) {
    for (const auto& [name, hint] : kReserved) {
      if (property.key() == name) {
        return ErrorFrom(0, "UNSUPPORTED_FEATURE.SET_TABLE_PROPERTY",
                         "The feature is not supported: " + property.key() + " is a reserved table property, " +
                             std::string(hint) + ".");
      }
    }
  }
  return {};
}

Result<pb::Command*> Parser::ParseDrop() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWord("DROP"));
  if (AcceptWord("TABLE")) {
    auto* drop = command->mutable_drop_table();
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    FLEUVE_TRY(ParseName(drop->mutable_table()));
    drop->set_purge(AcceptWord("PURGE"));
    return command;
  }
  if (AcceptWord("VIEW")) {
    auto* drop = command->mutable_drop_view();
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    FLEUVE_TRY(ParseName(drop->mutable_view()));
    return command;
  }
  if (IsAnyWord({"DATABASE", "SCHEMA", "NAMESPACE"})) {
    Advance();
    auto* drop = command->mutable_drop_database();
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    FLEUVE_TRY(ParseName(drop->mutable_database()));
    if (AcceptWord("CASCADE")) {
      drop->set_cascade(true);
    } else {
      AcceptWord("RESTRICT");
    }
    return command;
  }
  const bool temporary = AcceptWord("TEMPORARY") || AcceptWord("TEMP");
  if (AcceptWord("FUNCTION")) {
    auto* drop = command->mutable_drop_function();
    drop->set_temporary(temporary);
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    FLEUVE_TRY(ParseName(drop->mutable_function()));
    return command;
  }
  if (temporary && (AcceptWord("VARIABLE") || AcceptWord("VAR"))) {
    auto* drop = command->mutable_drop_variable();
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    FLEUVE_TRY(ParseName(drop->mutable_name()));
    return command;
  }
  if (IsWord("ROLE") || (temporary && IsWord("MACRO"))) {
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE",
                     "The statement or clause: DROP " + Current().upper + " is not valid.");
  }
  if (IsWord("INDEX") && !temporary) {
    return ParseIndex("DROP");
  }
  if (IsAnyWord({"CATALOG", "MATERIALIZED", "STREAMING"})) {
    return Refused("DROP " + Current().upper);
  }
  return SyntaxError();
}

Result<pb::Command*> Parser::ParseAlter() {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWord("ALTER"));
  if (IsAnyWord({"DATABASE", "SCHEMA", "NAMESPACE"})) {
    Advance();
    auto* alter = command->mutable_alter_database();
    FLEUVE_TRY(ParseName(alter->mutable_database()));
    if (AcceptWords({"SET", "LOCATION"})) {
      FLEUVE_ASSIGN(std::string location, ParseString());
      alter->set_location(std::move(location));
      return command;
    }
    const bool unset = AcceptWord("UNSET");
    if (!unset) {
      FLEUVE_TRY(ExpectWord("SET"));
    }
    if (!AcceptWord("DBPROPERTIES")) {
      FLEUVE_TRY(ExpectWord("PROPERTIES"));
    }
    google::protobuf::RepeatedPtrField<pb::Property> properties;
    FLEUVE_TRY(ParseProperties(&properties));
    for (const auto& property : properties) {
      if (unset) {
        alter->add_unset_keys(property.key());
      } else {
        *alter->add_properties() = property;
      }
    }
    return command;
  }
  if (IsWord("INDEX")) {
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE", "The statement or clause: ALTER INDEX is not valid.");
  }
  auto* alter = command->mutable_alter_table();
  if (AcceptWord("VIEW")) {
    alter->set_is_view(true);
  } else {
    FLEUVE_TRY(ExpectWord("TABLE"));
  }
  FLEUVE_TRY(ParseName(alter->mutable_table()));
  FLEUVE_TRY(ParseAlterTable(alter));
  return command;
}

Result<void> Parser::ParseAlterTable(pb::AlterTable* alter) {
  if (alter->is_view() && (IsWord("AS") || IsQueryAhead(0))) {
    AcceptWord("AS");
    const std::size_t first = at_;
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    alter->mutable_view_as()->mutable_query()->CopyFrom(*query);
    alter->mutable_view_as()->set_query_sql(TextFrom(first));
    return {};
  }
  if (AcceptWords({"RENAME", "TO"})) {
    return ParseName(alter->mutable_rename()->mutable_new_name());
  }
  if (AcceptWords({"SET", "TBLPROPERTIES"})) {
    FLEUVE_TRY(ParseProperties(alter->mutable_set_properties()->mutable_properties()));
    return CheckTableProperties(alter->set_properties().properties());
  }
  if (AcceptWords({"UNSET", "TBLPROPERTIES"})) {
    auto* unset = alter->mutable_unset_properties();
    unset->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    google::protobuf::RepeatedPtrField<pb::Property> properties;
    FLEUVE_TRY(ParseProperties(&properties));
    FLEUVE_TRY(CheckTableProperties(properties));
    for (const auto& property : properties) {
      unset->add_keys(property.key());
    }
    return {};
  }
  if (alter->is_view()) {
    if (IsWord("WITH") || IsWord("SET") || IsWord("UNSET")) {
      return Refused("ALTER VIEW ... " + Current().upper + " " + Ahead(1).upper);
    }
    return SyntaxError();
  }
  if (AcceptWords({"RENAME", "COLUMN"})) {
    auto* rename = alter->mutable_rename_column();
    FLEUVE_TRY(ParseColumnPath(rename->mutable_column()));
    FLEUVE_TRY(ExpectWord("TO"));
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    rename->set_new_name(std::move(name));
    return {};
  }
  if (IsWord("ADD") && (IsAnyWord({"COLUMN", "COLUMNS"}, 1))) {
    Advance();
    Advance();
    auto* add = alter->mutable_add_columns();
    add->set_if_not_exists(AcceptWords({"IF", "NOT", "EXISTS"}));
    const bool parentheses = AcceptSymbol("(");
    do {
      FLEUVE_TRY(ParseColumnDefinition(add->add_columns(), true, true));
    } while (AcceptSymbol(","));
    if (parentheses) {
      FLEUVE_TRY(ExpectSymbol(")"));
    }
    return {};
  }
  if (IsWord("ADD") && (IsWord("CONSTRAINT", 1) || IsAnyWord({"CHECK", "PRIMARY", "UNIQUE", "FOREIGN"}, 1))) {
    Advance();
    FLEUVE_TRY(ParseConstraint(alter->mutable_add_constraint()->mutable_constraint()));
    const pb::Constraint& constraint = alter->add_constraint().constraint();
    for (const std::string& characteristic : constraint.characteristics()) {
      if (constraint.has_check() && characteristic != "ENFORCED") {
        return ErrorFrom(
            0, "UNSUPPORTED_CONSTRAINT_CHARACTERISTIC",
            "Constraint characteristic '" + characteristic + "' is not supported for constraint type 'CHECK'.");
      }
    }
    return {};
  }
  if (AcceptWords({"DROP", "CONSTRAINT"})) {
    auto* drop = alter->mutable_drop_constraint();
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    drop->set_name(std::move(name));
    drop->set_cascade(AcceptWord("CASCADE"));
    AcceptWord("RESTRICT");
    return {};
  }
  if (IsWord("DROP") && IsAnyWord({"COLUMN", "COLUMNS"}, 1)) {
    Advance();
    Advance();
    auto* drop = alter->mutable_drop_columns();
    drop->set_if_exists(AcceptWords({"IF", "EXISTS"}));
    const bool parentheses = AcceptSymbol("(");
    do {
      FLEUVE_TRY(ParseColumnPath(drop->add_columns()));
    } while (AcceptSymbol(","));
    if (parentheses) {
      FLEUVE_TRY(ExpectSymbol(")"));
    }
    return {};
  }
  if (AcceptWords({"DROP", "FEATURE"})) {
    auto* drop = alter->mutable_drop_feature();
    if (Current().kind == TokenKind::kString) {
      FLEUVE_ASSIGN(std::string feature, ParseString());
      drop->set_feature(std::move(feature));
    } else {
      FLEUVE_ASSIGN(std::string feature, ParseIdentifier());
      drop->set_feature(std::move(feature));
    }
    drop->set_truncate_history(AcceptWords({"TRUNCATE", "HISTORY"}));
    return {};
  }
  if (AcceptWords({"REPLACE", "COLUMNS"})) {
    auto* replace = alter->mutable_replace_columns();
    const bool parentheses = AcceptSymbol("(");
    do {
      FLEUVE_TRY(ParseColumnDefinition(replace->add_columns(), false, true));
    } while (AcceptSymbol(","));
    if (parentheses) {
      FLEUVE_TRY(ExpectSymbol(")"));
    }
    return {};
  }
  if (AcceptWords({"CLUSTER", "BY"})) {
    bool is_auto = false;
    bool is_none = false;
    auto* cluster = alter->mutable_cluster_by();
    FLEUVE_TRY(ParseClusterBy(cluster->mutable_columns(), &is_auto, &is_none));
    cluster->set_auto_(is_auto);
    cluster->set_none(is_none);
    return {};
  }
  if (AcceptWords({"SET", "LOCATION"})) {
    FLEUVE_ASSIGN(std::string location, ParseString());
    alter->mutable_set_location()->set_location(std::move(location));
    return {};
  }
  if (IsAnyWord({"ALTER", "CHANGE"})) {
    return ParseAlterColumn(alter);
  }
  if (IsWord("ADD") || (IsWord("DROP") && (IsWord("IF", 1) || IsWord("PARTITION", 1)))) {
    auto* change = alter->mutable_partition_change();
    change->set_add(IsWord("ADD"));
    Advance();
    change->set_if_clause(AcceptWords({"IF", "NOT", "EXISTS"}) || AcceptWords({"IF", "EXISTS"}));
    if (!IsWord("PARTITION")) {
      return SyntaxError();
    }
    while (IsWord("PARTITION")) {
      FLEUVE_TRY(ParsePartitionSpec(change->add_partitions()));
      if (AcceptWord("LOCATION")) {
        FLEUVE_TRY(ParseString());
      }
      AcceptSymbol(",");
    }
    change->set_purge(AcceptWord("PURGE"));
    return {};
  }
  if (AreWords({"UNSET", "DEFAULT"}) || AreWords({"DEFAULT", "COLLATION"})) {
    return Refused("ALTER TABLE ... " + Current().upper + " " + Ahead(1).upper);
  }
  if (AcceptWords({"RECOVER", "PARTITIONS"})) {
    alter->set_unsupported("ALTER TABLE ... RECOVER PARTITIONS");
    return {};
  }
  pb::PartitionSpec partition;
  if (IsWord("PARTITION")) {
    FLEUVE_TRY(ParsePartitionSpec(&partition));
    if (AcceptWords({"RENAME", "TO"})) {
      auto* change = alter->mutable_partition_change();
      *change->add_partitions() = partition;
      return ParsePartitionSpec(change->add_partitions());
    }
    if (AcceptWords({"SET", "LOCATION"})) {
      FLEUVE_ASSIGN(std::string location, ParseString());
      alter->mutable_set_location()->set_location(std::move(location));
      for (const auto& item : partition.items()) {
        alter->mutable_set_location()->add_partition()->set_key(item.column());
      }
      return {};
    }
  }
  google::protobuf::RepeatedPtrField<pb::Property> properties;
  if (AcceptWords({"SET", "SERDE"})) {
    FLEUVE_TRY(ParseString());
    if (AcceptWords({"WITH", "SERDEPROPERTIES"})) {
      FLEUVE_TRY(ParseProperties(&properties));
    }
    alter->set_unsupported("ALTER TABLE ... SET SERDE");
    return {};
  }
  if (AcceptWords({"SET", "SERDEPROPERTIES"})) {
    alter->set_unsupported("ALTER TABLE ... SET SERDEPROPERTIES");
    return ParseProperties(&properties);
  }
  // Clauses of Hive that Spark names and never had.
  if (IsAnyWord(
          {"CLUSTERED", "SKEWED", "NOT", "TOUCH", "COMPACT", "CONCATENATE", "ARCHIVE", "UNARCHIVE", "EXCHANGE"}) ||
      AreWords({"SET", "FILEFORMAT"}) || AreWords({"SET", "SKEWED"})) {
    std::string clause = Current().upper;
    if (IsAnyWord({"CLUSTERED", "SKEWED", "NOT", "SET", "EXCHANGE", "ARCHIVE", "UNARCHIVE"})) {
      clause += " " + Ahead(1).upper;
    }
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE",
                     "The statement or clause: ALTER TABLE " + clause + " is not valid.");
  }
  return SyntaxError();
}

Result<void> Parser::ParseAlterColumn(pb::AlterTable* alter) {
  const bool change_form = IsWord("CHANGE");
  Advance();
  AcceptWord("COLUMN");
  auto* alter_column = alter->mutable_alter_column();
  do {
    auto* change = alter_column->add_changes();
    FLEUVE_TRY(ParseColumnPath(change->mutable_column()));
    if (change_form && IsIdentifier() && !IsWord("TYPE") && !IsAnyWord({"SET", "DROP", "FIRST", "AFTER", "COMMENT"})) {
      // CHANGE COLUMN old new type [COMMENT c] [FIRST | AFTER x]
      FLEUVE_ASSIGN(std::string new_name, ParseIdentifier());
      change->set_new_name(std::move(new_name));
      AcceptSymbol(":");
      FLEUVE_ASSIGN(const types::DataType type, ParseType());
      change->set_type(type.Sql());
    } else if (AcceptWord("TYPE")) {
      FLEUVE_ASSIGN(const types::DataType type, ParseType());
      change->set_type(type.Sql());
    }
    bool any = change->has_type();
    while (true) {
      if (AcceptWord("COMMENT")) {
        FLEUVE_ASSIGN(std::string comment, ParseString());
        change->set_comment(std::move(comment));
      } else if (AcceptWord("FIRST")) {
        change->set_first(true);
      } else if (AcceptWord("AFTER")) {
        FLEUVE_ASSIGN(std::string after, ParseIdentifier());
        change->set_after(std::move(after));
      } else if (AcceptWords({"SET", "NOT", "NULL"})) {
        change->set_set_not_null(true);
      } else if (AcceptWords({"DROP", "NOT", "NULL"})) {
        change->set_drop_not_null(true);
      } else if (AcceptWords({"DROP", "DEFAULT"})) {
        change->set_drop_default(true);
      } else if (AcceptWords({"SYNC", "IDENTITY"})) {
        change->set_sync_identity(true);
      } else if (AcceptWords({"SET", "DEFAULT"})) {
        std::string sql;
        FLEUVE_ASSIGN(Expr value, ParseConditionText(&sql));
        change->set_default_sql(std::move(sql));
        change->mutable_default_value()->CopyFrom(*value);
      } else {
        break;
      }
      any = true;
    }
    if (!any) {
      return SyntaxError();
    }
  } while (AcceptSymbol(","));
  return {};
}

}  // namespace fleuve::sql
