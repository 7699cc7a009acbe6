#include "sql/parser_internal.h"

namespace fleuve::sql {

Result<pb::Command*> Parser::ParseCreate() {
  const std::size_t first = at_;
  bool or_replace = false;
  bool replace_only = false;
  if (AcceptWord("REPLACE")) {
    replace_only = true;
  } else {
    FLEUVE_TRY(ExpectWord("CREATE"));
    if (AcceptWords({"OR", "REPLACE"})) {
      or_replace = true;
    }
  }
  if (AcceptWords({"OR", "REFRESH"})) {
    return ParseCreateDataset(true, false);
  }
  if (!replace_only && (IsWord("MATERIALIZED") || (IsWord("STREAMING") && !or_replace) || IsWord("LIVE") ||
                        (IsAnyWord({"TEMPORARY", "PRIVATE"}) && IsAnyWord({"LIVE", "STREAMING", "MATERIALIZED"}, 1)))) {
    return ParseCreateDataset(false, or_replace);
  }
  if (IsWord("FLOW")) {
    return ParseCreateFlow();
  }
  bool temporary = false;
  bool global = false;
  bool external = false;
  while (true) {
    if (IsWord("GLOBAL")) {
      Advance();
      global = true;
    } else if (IsAnyWord({"TEMP", "TEMPORARY"})) {
      Advance();
      temporary = true;
    } else if (IsWord("EXTERNAL")) {
      Advance();
      external = true;
    } else {
      break;
    }
  }
  if (IsWord("TABLE")) {
    return ParseCreateTable(or_replace, replace_only, external, temporary);
  }
  if (replace_only) {
    return SyntaxError();
  }
  if (IsWord("VIEW") && !external && (!global || temporary)) {
    return ParseCreateView(or_replace, temporary, global);
  }
  if (IsWord("FUNCTION") && !external && !global) {
    return ParseCreateFunction(or_replace, temporary);
  }
  if (IsAnyWord({"DATABASE", "SCHEMA", "NAMESPACE"}) && !or_replace && !external && !temporary && !global) {
    return ParseCreateDatabase();
  }
  if (IsAnyWord({"VARIABLE", "VAR"})) {
    at_ = first;
    return Refused("CREATE VARIABLE (use DECLARE)");
  }
  if (IsWord("ROLE") || (temporary && IsWord("MACRO"))) {
    return ErrorFrom(0, "INVALID_STATEMENT_OR_CLAUSE",
                     "The statement or clause: CREATE " + Current().upper + " is not valid.");
  }
  if (IsWord("INDEX") && !or_replace && !external && !temporary && !global) {
    return ParseIndex("CREATE");
  }
  if (IsAnyWord({"CATALOG", "VOLUME"})) {
    return Refused("CREATE " + Current().upper);
  }
  return SyntaxError();
}

// --------------------------------------------------------------------------------------------------------- tables

bool Parser::IsConstraintAhead() const {
  if (IsWord("CONSTRAINT") && IsIdentifier(1) && IsAnyWord({"CHECK", "PRIMARY", "UNIQUE", "FOREIGN"}, 2)) {
    return true;
  }
  return (IsWord("CHECK") && IsSymbol("(", 1)) || (IsWord("PRIMARY") && IsWord("KEY", 1)) ||
         (IsWord("FOREIGN") && IsWord("KEY", 1)) || (IsWord("UNIQUE") && IsSymbol("(", 1));
}

Result<void> Parser::ParseConstraint(pb::Constraint* constraint, const std::string& column) {
  if (AcceptWord("CONSTRAINT")) {
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    constraint->set_name(std::move(name));
  }
  if (AcceptWord("CHECK")) {
    FLEUVE_TRY(ExpectSymbol("("));
    std::string sql;
    const std::size_t first = at_;
    FLEUVE_ASSIGN(Expr condition, ParseConditionText(&sql));
    // Delta keeps a constraint's words with one space between them.
    sql.clear();
    for (std::size_t i = first; i < at_; ++i) {
      sql += (sql.empty() ? "" : " ") + TextBetween(i, i);
    }
    FLEUVE_TRY(ExpectSymbol(")"));
    constraint->mutable_check()->mutable_condition()->CopyFrom(*condition);
    constraint->mutable_check()->set_sql(std::move(sql));
  } else if (AcceptWords({"PRIMARY", "KEY"}) || IsWord("UNIQUE")) {
    const bool unique = AcceptWord("UNIQUE");
    auto* key = unique ? constraint->mutable_unique() : constraint->mutable_primary_key();
    if (IsSymbol("(")) {
      FLEUVE_ASSIGN(const std::vector<std::string> columns, ParseIdentifierList());
      for (const std::string& name : columns) {
        key->add_columns(name);
      }
    } else if (!column.empty()) {
      key->add_columns(column);
    }
  } else if (AcceptWords({"FOREIGN", "KEY"}) || (!column.empty() && IsWord("REFERENCES"))) {
    auto* key = constraint->mutable_foreign_key();
    if (IsWord("REFERENCES")) {
      key->add_columns(column);
    } else {
      FLEUVE_ASSIGN(const std::vector<std::string> columns, ParseIdentifierList());
      for (const std::string& name : columns) {
        key->add_columns(name);
      }
    }
    FLEUVE_TRY(ExpectWord("REFERENCES"));
    FLEUVE_TRY(ParseName(key->mutable_table()));
    if (IsSymbol("(")) {
      FLEUVE_ASSIGN(const std::vector<std::string> referenced, ParseIdentifierList());
      for (const std::string& name : referenced) {
        key->add_referenced(name);
      }
    }
  } else {
    return SyntaxError();
  }
  while (IsAnyWord({"ENFORCED", "RELY", "NORELY"}) || (IsWord("NOT") && IsWord("ENFORCED", 1))) {
    const bool negated = AcceptWord("NOT");
    constraint->add_characteristics((negated ? "NOT " : "") + Current().upper);
    Advance();
  }
  return {};
}

Result<void> Parser::ParseColumnOptions(pb::ColumnDefinition* column, bool with_position, Constraints* constraints) {
  while (true) {
    if (AcceptWords({"NOT", "NULL"})) {
      column->set_not_null(true);
    } else if (AcceptWord("COMMENT")) {
      FLEUVE_ASSIGN(std::string comment, ParseString());
      column->set_comment(std::move(comment));
    } else if (IsWord("DEFAULT")) {
      Advance();
      std::string sql;
      FLEUVE_ASSIGN(Expr value, ParseConditionText(&sql));
      column->set_default_sql(std::move(sql));
      column->mutable_default_value()->CopyFrom(*value);
    } else if (AcceptWord("GENERATED")) {
      const bool always = AcceptWord("ALWAYS");
      if (!always) {
        FLEUVE_TRY(ExpectWords({"BY", "DEFAULT"}));
      }
      FLEUVE_TRY(ExpectWord("AS"));
      if (AcceptWord("IDENTITY")) {
        auto* identity = column->mutable_identity();
        identity->set_always(always);
        identity->set_start(1);
        identity->set_step(1);
        if (AcceptSymbol("(")) {
          while (!IsSymbol(")")) {
            if (AcceptWords({"START", "WITH"})) {
              const bool negative = AcceptSymbol("-");
              FLEUVE_ASSIGN(const std::int64_t value, ParseIntegerToken());
              identity->set_start(negative ? -value : value);
            } else if (AcceptWords({"INCREMENT", "BY"})) {
              const bool negative = AcceptSymbol("-");
              FLEUVE_ASSIGN(const std::int64_t value, ParseIntegerToken());
              identity->set_step(negative ? -value : value);
              if (value == 0) {
                return ErrorFrom(at_ - 1, "IDENTITY_COLUMNS_ILLEGAL_STEP", "IDENTITY column step cannot be 0.");
              }
            } else if (!AcceptSymbol(",")) {
              return SyntaxError();
            }
          }
          FLEUVE_TRY(ExpectSymbol(")"));
        }
      } else {
        if (!always) {
          return SyntaxError();
        }
        FLEUVE_TRY(ExpectSymbol("("));
        std::string sql;
        FLEUVE_ASSIGN(Expr value, ParseConditionText(&sql));
        FLEUVE_TRY(ExpectSymbol(")"));
        column->set_generated_sql(std::move(sql));
        column->mutable_generated_value()->CopyFrom(*value);
      }
    } else if (with_position && AcceptWord("FIRST")) {
      column->set_first(true);
    } else if (with_position && AcceptWord("AFTER")) {
      FLEUVE_ASSIGN(std::string after, ParseIdentifier());
      column->set_after(std::move(after));
    } else if (IsWord("CONSTRAINT") || IsAnyWord({"PRIMARY", "UNIQUE", "CHECK", "REFERENCES"})) {
      if (constraints == nullptr) {
        return Refused("a constraint behind a column definition");
      }
      FLEUVE_TRY(ParseConstraint(constraints->Add(), column->name(column->name_size() - 1)));
    } else {
      return {};
    }
  }
}

Result<void> Parser::ParseColumnDefinition(pb::ColumnDefinition* column, bool nested_names, bool with_position,
                                           Constraints* constraints) {
  do {
    FLEUVE_ASSIGN(std::string part, ParseIdentifier());
    column->add_name(std::move(part));
  } while (nested_names && AcceptSymbol("."));
  AcceptSymbol(":");
  FLEUVE_ASSIGN(const types::DataType type, ParseType());
  column->set_type(type.Sql());
  return ParseColumnOptions(column, with_position, constraints);
}

Result<void> Parser::ParseTableElements(pb::CreateTable* create) {
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    if (IsConstraintAhead()) {
      FLEUVE_TRY(ParseConstraint(create->add_constraints()));
      continue;
    }
    FLEUVE_TRY(ParseColumnDefinition(create->add_columns(), false, false, create->mutable_constraints()));
  } while (AcceptSymbol(","));
  return ExpectSymbol(")");
}

Result<void> Parser::ParseTransforms(pb::CreateTable* create) {
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    if (IsIdentifier() && IsSymbol("(", 1)) {
      auto* transform = create->add_partitioned_by();
      transform->set_function(Lower(Current().text));
      Advance();
      Advance();
      do {
        if (IsIdentifier()) {
          FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
          for (const std::string& part : parts) {
            transform->add_column(part);
          }
        } else {
          transform->add_arguments(Current().text);
          Advance();
        }
      } while (AcceptSymbol(","));
      FLEUVE_TRY(ExpectSymbol(")"));
      continue;
    }
    if (IsIdentifier() && (IsSymbol(",", 1) || IsSymbol(")", 1) || IsSymbol(".", 1))) {
      auto* transform = create->add_partitioned_by();
      transform->set_function("identity");
      FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
      for (const std::string& part : parts) {
        transform->add_column(part);
      }
      continue;
    }
    FLEUVE_TRY(ParseColumnDefinition(create->add_partition_columns(), false, false));
  } while (AcceptSymbol(","));
  return ExpectSymbol(")");
}

Result<void> Parser::ParseClusterBy(google::protobuf::RepeatedPtrField<pb::Name>* columns, bool* is_auto,
                                    bool* is_none) {
  if (AcceptWord("NONE")) {
    *is_none = true;
    return {};
  }
  if (AcceptWord("AUTO")) {
    *is_auto = true;
    return {};
  }
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    FLEUVE_TRY(ParseColumnPath(columns->Add()));
  } while (AcceptSymbol(","));
  return ExpectSymbol(")");
}

Result<void> Parser::ParseCreateTableClauses(pb::CreateTable* create) {
  const auto once = [&](bool seen, std::string_view clause) -> Result<void> {
    if (seen) {
      return ErrorFrom(at_ - 1, "DUPLICATE_CLAUSES",
                       "Found duplicate clauses: " + std::string(clause) + ". Please, remove one of them.")
          .With("clauseName", std::string(clause));
    }
    return {};
  };
  while (true) {
    if (AcceptWord("USING")) {
      FLEUVE_TRY(once(create->has_provider(), "USING"));
      FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
      std::string provider;
      for (const std::string& part : parts) {
        provider += (provider.empty() ? "" : ".") + part;
      }
      create->set_provider(std::move(provider));
    } else if (IsWord("OPTIONS") && IsSymbol("(", 1)) {
      Advance();
      FLEUVE_TRY(once(create->options_size() > 0, "OPTIONS"));
      FLEUVE_TRY(ParseProperties(create->mutable_options()));
    } else if (AcceptWords({"PARTITIONED", "BY"})) {
      FLEUVE_TRY(once(create->partitioned_by_size() + create->partition_columns_size() > 0, "PARTITIONED BY"));
      FLEUVE_TRY(ParseTransforms(create));
    } else if (AcceptWords({"CLUSTER", "BY"})) {
      FLEUVE_TRY(once(create->cluster_by_size() > 0, "CLUSTER BY"));
      bool is_auto = false;
      bool is_none = false;
      FLEUVE_TRY(ParseClusterBy(create->mutable_cluster_by(), &is_auto, &is_none));
      create->set_cluster_by_auto(is_auto);
      create->set_cluster_by_none(is_none);
    } else if (AcceptWords({"CLUSTERED", "BY"})) {
      FLEUVE_ASSIGN(const std::vector<std::string> columns, ParseIdentifierList());
      for (const std::string& column : columns) {
        create->mutable_bucket()->add_columns(column);
      }
      if (AcceptWords({"SORTED", "BY"})) {
        FLEUVE_TRY(ExpectSymbol("("));
        do {
          FLEUVE_ASSIGN(sc::Expression::SortOrder * order, ParseSortItem());
          create->mutable_bucket()->add_sorted_by()->CopyFrom(*order);
        } while (AcceptSymbol(","));
        FLEUVE_TRY(ExpectSymbol(")"));
      }
      FLEUVE_TRY(ExpectWord("INTO"));
      FLEUVE_ASSIGN(const std::int64_t count, ParseIntegerToken());
      create->mutable_bucket()->set_count(static_cast<std::int32_t>(count));
      FLEUVE_TRY(ExpectWord("BUCKETS"));
    } else if (AcceptWord("LOCATION")) {
      FLEUVE_TRY(once(create->has_location(), "LOCATION"));
      FLEUVE_ASSIGN(std::string location, ParseString());
      create->set_location(std::move(location));
    } else if (AcceptWord("COMMENT")) {
      FLEUVE_TRY(once(create->has_comment(), "COMMENT"));
      FLEUVE_ASSIGN(std::string comment, ParseString());
      create->set_comment(std::move(comment));
    } else if (IsWord("TBLPROPERTIES") && IsSymbol("(", 1)) {
      Advance();
      FLEUVE_TRY(once(create->properties_size() > 0, "TBLPROPERTIES"));
      FLEUVE_TRY(ParseProperties(create->mutable_properties()));
    } else if (AcceptWords({"DEFAULT", "COLLATION"})) {
      FLEUVE_ASSIGN(std::string collation, ParseIdentifier());
      create->set_collation(std::move(collation));
    } else if (AreWords({"STORED", "AS"}) || AreWords({"STORED", "BY"}) || AreWords({"ROW", "FORMAT"}) ||
               AreWords({"SKEWED", "BY"})) {
      return Refused("CREATE TABLE ... " + Current().upper + " " + Ahead(1).upper + " (Hive tables)");
    } else {
      return {};
    }
  }
}

Result<pb::Command*> Parser::ParseCreateTable(bool or_replace, bool replace_only, bool external, bool temporary) {
  pb::Command* command = NewCommand();
  FLEUVE_TRY(ExpectWord("TABLE"));
  pb::CreateTable create;
  create.set_replace(or_replace || replace_only);
  create.set_or_create(or_replace);
  create.set_external(external);
  create.set_temporary(temporary);
  if (!create.replace()) {
    create.set_if_not_exists(AcceptWords({"IF", "NOT", "EXISTS"}));
  }
  FLEUVE_TRY(ParseName(create.mutable_table()));
  if (IsAnyWord({"SHALLOW", "DEEP", "CLONE"})) {
    FLEUVE_TRY(ParseClone(command, create.table(), create.replace(), or_replace, create.if_not_exists()));
    return command;
  }
  if (AcceptWord("LIKE")) {
    FLEUVE_TRY(ParseName(create.mutable_like()));
    FLEUVE_TRY(ParseCreateTableClauses(&create));
    FLEUVE_TRY(CheckTableProperties(create.properties()));
    *command->mutable_create_table() = std::move(create);
    return command;
  }
  if (IsSymbol("(") && !IsQueryAhead(1)) {
    FLEUVE_TRY(ParseTableElements(&create));
  }
  FLEUVE_TRY(ParseCreateTableClauses(&create));
  const bool as = AcceptWord("AS");
  if (as || IsQueryAhead(0)) {
    const std::size_t first = at_;
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    create.mutable_query()->CopyFrom(*query);
    create.set_query_sql(TextFrom(first));
    if (create.columns_size() > 0) {
      return ErrorFrom(0, "_LEGACY_ERROR_TEMP_0035",
                       "Operation not allowed: Schema may not be specified in a Create Table As Select (CTAS) "
                       "statement.");
    }
    if (create.partition_columns_size() > 0) {
      return ErrorFrom(0, "_LEGACY_ERROR_TEMP_0035",
                       "Operation not allowed: Partition column types may not be specified in Create Table As Select "
                       "(CTAS).");
    }
  }
  if (create.cluster_by_size() > 0 && create.partitioned_by_size() + create.partition_columns_size() > 0) {
    return ErrorFrom(0, "_LEGACY_ERROR_TEMP_0035",
                     "Operation not allowed: Clustering and partitioning cannot both be specified.");
  }
  FLEUVE_TRY(CheckTableProperties(create.properties()));
  *command->mutable_create_table() = std::move(create);
  return command;
}

Result<void> Parser::ParseClone(pb::Command* command, const pb::Name& table, bool replace, bool or_create,
                                bool if_not_exists) {
  auto* clone = command->mutable_clone_table();
  *clone->mutable_table() = table;
  clone->set_replace(replace);
  clone->set_or_create(or_create);
  clone->set_if_not_exists(if_not_exists);
  if (!AcceptWord("SHALLOW")) {
    // Only SHALLOW CLONE is in the grammar.
    return SyntaxError();
  }
  clone->set_shallow(true);
  FLEUVE_TRY(ExpectWord("CLONE"));
  FLEUVE_ASSIGN(Rel source, ParseTableReference());
  FLEUVE_ASSIGN(source, ParseTimeTravel(source));
  clone->mutable_source()->CopyFrom(*source);
  while (true) {
    if (IsWord("TBLPROPERTIES") && IsSymbol("(", 1)) {
      Advance();
      FLEUVE_TRY(ParseProperties(clone->mutable_properties()));
    } else if (AcceptWord("LOCATION")) {
      FLEUVE_ASSIGN(std::string location, ParseString());
      clone->set_location(std::move(location));
    } else {
      return {};
    }
  }
}

// ------------------------------------------------------------------------------------- views, databases, functions

Result<pb::Command*> Parser::ParseCreateView(bool or_replace, bool temporary, bool global) {
  pb::Command* command = NewCommand();
  auto* view = command->mutable_create_view();
  FLEUVE_TRY(ExpectWord("VIEW"));
  view->set_or_replace(or_replace);
  view->set_temporary(temporary || global);
  view->set_global(global);
  view->set_if_not_exists(AcceptWords({"IF", "NOT", "EXISTS"}));
  FLEUVE_TRY(ParseName(view->mutable_view()));
  if (view->temporary() && IsSymbol("(") && IsIdentifier(1) && IsIdentifier(2) && !IsWord("COMMENT", 2)) {
    // CREATE TEMPORARY VIEW v (a INT) USING csv OPTIONS (...)
    Advance();
    const std::size_t first = at_;
    FLEUVE_TRY(ParseColumnListType());
    view->set_schema(TextFrom(first));
    FLEUVE_TRY(ExpectSymbol(")"));
  } else if (AcceptSymbol("(")) {
    do {
      auto* column = view->add_columns();
      FLEUVE_ASSIGN(std::string name, ParseIdentifier());
      column->set_name(std::move(name));
      if (AcceptWord("COMMENT")) {
        FLEUVE_ASSIGN(std::string comment, ParseString());
        column->set_comment(std::move(comment));
      }
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectSymbol(")"));
  }
  if (AcceptWord("USING")) {
    FLEUVE_ASSIGN(const std::vector<std::string> parts, ParseNameParts());
    std::string provider;
    for (const std::string& part : parts) {
      provider += (provider.empty() ? "" : ".") + part;
    }
    view->set_provider(std::move(provider));
    if (AcceptWord("OPTIONS")) {
      FLEUVE_TRY(ParseProperties(view->mutable_options()));
    }
    return command;
  }
  while (!IsWord("AS")) {
    if (AcceptWord("COMMENT")) {
      FLEUVE_ASSIGN(std::string comment, ParseString());
      view->set_comment(std::move(comment));
    } else if (IsWord("TBLPROPERTIES") && IsSymbol("(", 1)) {
      Advance();
      FLEUVE_TRY(ParseProperties(view->mutable_properties()));
    } else if (AcceptWords({"WITH", "SCHEMA"})) {
      std::string mode;
      while (IsAnyWord({"BINDING", "COMPENSATION", "EVOLUTION", "TYPE"})) {
        mode += (mode.empty() ? "" : " ") + Current().upper;
        Advance();
      }
      view->set_schema_mode(std::move(mode));
    } else if (AcceptWords({"DEFAULT", "COLLATION"})) {
      FLEUVE_ASSIGN(std::string collation, ParseIdentifier());
      view->set_collation(std::move(collation));
    } else if (AreWords({"WITH", "METRICS"})) {
      return Refused("CREATE VIEW ... WITH METRICS");
    } else {
      return SyntaxErrorAt(at_, "AS");
    }
  }
  FLEUVE_TRY(ExpectWord("AS"));
  const std::size_t first = at_;
  FLEUVE_ASSIGN(Rel query, ParseQuery());
  AttachText(query);
  view->mutable_query()->CopyFrom(*query);
  view->set_query_sql(TextFrom(first));
  return command;
}

Result<pb::Command*> Parser::ParseCreateDatabase() {
  pb::Command* command = NewCommand();
  auto* database = command->mutable_create_database();
  Advance();
  database->set_if_not_exists(AcceptWords({"IF", "NOT", "EXISTS"}));
  FLEUVE_TRY(ParseName(database->mutable_database()));
  while (true) {
    if (AcceptWord("COMMENT")) {
      FLEUVE_ASSIGN(std::string comment, ParseString());
      database->set_comment(std::move(comment));
    } else if (AcceptWord("LOCATION")) {
      FLEUVE_ASSIGN(std::string location, ParseString());
      database->set_location(std::move(location));
    } else if (AcceptWords({"MANAGED", "LOCATION"})) {
      return Refused("CREATE SCHEMA ... MANAGED LOCATION");
    } else if (AcceptWord("WITH") || IsAnyWord({"DBPROPERTIES", "PROPERTIES"})) {
      if (!AcceptWord("DBPROPERTIES")) {
        FLEUVE_TRY(ExpectWord("PROPERTIES"));
      }
      FLEUVE_TRY(ParseProperties(database->mutable_properties()));
    } else if (AcceptWords({"DEFAULT", "COLLATION"})) {
      FLEUVE_ASSIGN(std::string collation, ParseIdentifier());
      database->set_collation(std::move(collation));
    } else {
      return command;
    }
  }
}

Result<pb::Command*> Parser::ParseCreateFunction(bool or_replace, bool temporary) {
  pb::Command* command = NewCommand();
  auto* function = command->mutable_create_function();
  FLEUVE_TRY(ExpectWord("FUNCTION"));
  function->set_or_replace(or_replace);
  function->set_temporary(temporary);
  function->set_if_not_exists(AcceptWords({"IF", "NOT", "EXISTS"}));
  FLEUVE_TRY(ParseName(function->mutable_function()));
  if (IsWord("AS")) {
    Advance();
    FLEUVE_ASSIGN(std::string name, ParseString());
    function->set_class_name(std::move(name));
    return command;
  }
  FLEUVE_TRY(ExpectSymbol("("));
  if (!IsSymbol(")")) {
    do {
      auto* parameter = function->add_parameters();
      FLEUVE_ASSIGN(std::string name, ParseIdentifier());
      parameter->set_name(std::move(name));
      FLEUVE_ASSIGN(const types::DataType type, ParseType());
      parameter->set_type(type.Sql());
      while (true) {
        if (AcceptWord("DEFAULT")) {
          std::string sql;
          FLEUVE_ASSIGN(Expr value, ParseConditionText(&sql));
          parameter->mutable_default_value()->CopyFrom(*value);
          parameter->set_default_sql(std::move(sql));
        } else if (AcceptWord("COMMENT")) {
          FLEUVE_ASSIGN(std::string comment, ParseString());
          parameter->set_comment(std::move(comment));
        } else {
          break;
        }
      }
    } while (AcceptSymbol(","));
  }
  FLEUVE_TRY(ExpectSymbol(")"));
  if (AcceptWord("RETURNS")) {
    if (AcceptWord("TABLE")) {
      function->set_returns_table(true);
      if (AcceptSymbol("(")) {
        do {
          FLEUVE_TRY(ParseColumnDefinition(function->add_table_columns(), false, false));
        } while (AcceptSymbol(","));
        FLEUVE_TRY(ExpectSymbol(")"));
      }
    } else {
      FLEUVE_ASSIGN(const types::DataType type, ParseType());
      function->set_return_type(type.Sql());
    }
  }
  while (!IsWord("RETURN")) {
    if (AcceptWord("COMMENT")) {
      FLEUVE_ASSIGN(std::string comment, ParseString());
      function->set_comment(std::move(comment));
    } else if (AcceptWord("LANGUAGE")) {
      if (!IsWord("SQL")) {
        return Refused("CREATE FUNCTION ... LANGUAGE " + Current().upper);
      }
      Advance();
      function->add_characteristics("LANGUAGE SQL");
    } else if (AcceptWord("DETERMINISTIC")) {
      function->add_characteristics("DETERMINISTIC");
    } else if (AcceptWords({"NOT", "DETERMINISTIC"})) {
      function->add_characteristics("NOT DETERMINISTIC");
    } else if (AcceptWords({"CONTAINS", "SQL"})) {
      function->add_characteristics("CONTAINS SQL");
    } else if (AcceptWords({"READS", "SQL", "DATA"})) {
      function->add_characteristics("READS SQL DATA");
    } else if (AcceptWords({"SQL", "SECURITY"})) {
      function->add_characteristics("SQL SECURITY " + Current().upper);
      Advance();
    } else {
      return SyntaxError();
    }
  }
  FLEUVE_TRY(ExpectWord("RETURN"));
  const std::size_t first = at_;
  if (function->returns_table()) {
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    AttachText(query);
    function->mutable_table_body()->CopyFrom(*query);
  } else if (IsQueryWord(0)) {
    FLEUVE_ASSIGN(Rel query, ParseQuery());
    FLEUVE_ASSIGN(Expr subquery, MakeSubquery(pb::Subquery::SCALAR, query, {}));
    Expr body = Spanned(subquery, first);
    AttachText(body);
    function->mutable_body()->CopyFrom(*body);
  } else {
    FLEUVE_ASSIGN(Expr body, ParseExpression());
    AttachText(body);
    function->mutable_body()->CopyFrom(*body);
  }
  function->set_body_sql(TextFrom(first));
  return command;
}

}  // namespace fleuve::sql
