#include "sql/parser_internal.h"

namespace fleuve::sql {

// Streaming tables, materialized views and flows: definitions of a pipeline, and statements of their own.

Result<pb::Command*> Parser::ParseCreateDataset(bool or_refresh, bool or_replace) {
  pb::Command* command = NewCommand();
  auto* dataset = command->mutable_create_pipeline_dataset();
  dataset->set_or_refresh(or_refresh);
  dataset->set_or_replace(or_replace);
  const bool hidden = AcceptWord("PRIVATE") || AcceptWord("TEMPORARY");
  if (AcceptWord("MATERIALIZED")) {
    FLEUVE_TRY(ExpectWord("VIEW"));
  } else {
    dataset->set_streaming(AcceptWord("STREAMING"));
    const bool live = AcceptWord("LIVE");
    if (live && AcceptWord("VIEW")) {
      dataset->set_view(true);
    } else {
      FLEUVE_TRY(ExpectWord("TABLE"));
    }
  }
  if (hidden && !dataset->view()) {
    return Refused("CREATE PRIVATE tables and materialized views (use a temporary view)");
  }
  if (!or_refresh && !or_replace) {
    dataset->set_if_not_exists(AcceptWords({"IF", "NOT", "EXISTS"}));
  }
  FLEUVE_TRY(ParseName(dataset->mutable_name()));
  *dataset->mutable_table()->mutable_table() = dataset->name();
  if (IsSymbol("(") && !IsQueryAhead(1)) {
    FLEUVE_TRY(ParseDatasetElements(dataset));
  }
  FLEUVE_TRY(ParseCreateTableClauses(dataset->mutable_table()));
  if (IsWord("SCHEDULE")) {
    return Refused("SCHEDULE of a dataset");
  }
  if (AreWords({"TRIGGER", "ON"})) {
    return Refused("TRIGGER ON UPDATE of a dataset");
  }
  if (AreWords({"REFRESH", "POLICY"})) {
    return Refused("REFRESH POLICY");
  }
  if (AreWords({"ROW", "FILTER"}) || AreWords({"WITH", "ROW"})) {
    return Refused("ROW FILTER");
  }
  FLEUVE_TRY(ParseDatasetSource(dataset));
  const pb::CreateTable& table = dataset->table();
  if (table.cluster_by_size() > 0 && table.partitioned_by_size() + table.partition_columns_size() > 0) {
    return ErrorFrom(0, "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED",
                     "Cannot specify both CLUSTER BY and PARTITIONED BY.");
  }
  if (!dataset->streaming() && !table.has_query()) {
    return SyntaxError();
  }
  return command;
}

bool Parser::IsExpectationAhead() const { return IsWord("CONSTRAINT") && IsIdentifier(1) && IsWord("EXPECT", 2); }

Result<void> Parser::ParseExpectation(pb::Expectation* expectation) {
  FLEUVE_TRY(ExpectWord("CONSTRAINT"));
  FLEUVE_ASSIGN(std::string name, ParseIdentifier());
  expectation->set_name(std::move(name));
  FLEUVE_TRY(ExpectWord("EXPECT"));
  FLEUVE_TRY(ExpectSymbol("("));
  std::string sql;
  FLEUVE_TRY(ParseConditionText(&sql));
  expectation->set_sql(std::move(sql));
  FLEUVE_TRY(ExpectSymbol(")"));
  if (AcceptWords({"ON", "VIOLATION"})) {
    if (AcceptWords({"DROP", "ROW"})) {
      expectation->set_action(pb::Expectation::DROP_ROW);
    } else {
      FLEUVE_TRY(ExpectWords({"FAIL", "UPDATE"}));
      expectation->set_action(pb::Expectation::FAIL_UPDATE);
    }
  }
  return {};
}

Result<void> Parser::ParseDatasetElements(pb::CreatePipelineDataset* dataset) {
  FLEUVE_TRY(ExpectSymbol("("));
  do {
    if (IsExpectationAhead()) {
      FLEUVE_TRY(ParseExpectation(dataset->add_expectations()));
    } else if (IsConstraintAhead()) {
      return Refused("a constraint other than EXPECT of a dataset");
    } else {
      FLEUVE_TRY(ParseColumnDefinition(dataset->mutable_table()->add_columns(), false, false));
    }
  } while (AcceptSymbol(","));
  return ExpectSymbol(")");
}

Result<void> Parser::ParseDatasetSource(pb::CreatePipelineDataset* dataset) {
  const auto query = [&]() -> Result<void> {
    const std::size_t first = at_;
    FLEUVE_ASSIGN(Rel relation, ParseQuery());
    AttachText(relation);
    dataset->mutable_table()->mutable_query()->CopyFrom(*relation);
    dataset->mutable_table()->set_query_sql(TextFrom(first));
    return {};
  };
  if (AcceptWord("AS")) {
    return query();
  }
  if (!IsWord("FLOW")) {
    return {};
  }
  Advance();
  if (AcceptWords({"INSERT", "BY", "NAME"})) {
    return query();
  }
  if (IsWord("REPLACE")) {
    return Refused("FLOW REPLACE WHERE");
  }
  FLEUVE_TRY(ExpectWords({"AUTO", "CDC"}));
  *dataset->mutable_auto_cdc()->mutable_target() = dataset->name();
  return ParseAutoCdc(dataset->mutable_auto_cdc());
}

Result<pb::Command*> Parser::ParseCreateFlow() {
  pb::Command* command = NewCommand();
  auto* flow = command->mutable_create_flow();
  FLEUVE_TRY(ExpectWord("FLOW"));
  FLEUVE_TRY(ParseName(flow->mutable_name()));
  if (AcceptWord("COMMENT")) {
    FLEUVE_ASSIGN(std::string comment, ParseString());
    flow->set_comment(std::move(comment));
  }
  FLEUVE_TRY(ExpectWord("AS"));
  if (AcceptWords({"AUTO", "CDC"})) {
    flow->set_once(AcceptWord("ONCE"));
    FLEUVE_TRY(ExpectWord("INTO"));
    FLEUVE_TRY(ParseName(flow->mutable_auto_cdc()->mutable_target()));
    FLEUVE_TRY(ParseAutoCdc(flow->mutable_auto_cdc()));
    return command;
  }
  auto* insert = flow->mutable_insert();
  FLEUVE_TRY(ExpectWord("INSERT"));
  if (AcceptWord("OVERWRITE")) {
    insert->set_overwrite(true);
  } else {
    FLEUVE_TRY(ExpectWord("INTO"));
    // A table may have this name: then BY NAME or a query follows.
    if (IsWord("ONCE") && IsIdentifier(1) && !IsWord("BY", 1) && !IsQueryWord(1)) {
      Advance();
      flow->set_once(true);
    }
  }
  AcceptWord("TABLE");
  FLEUVE_TRY(ParseName(insert->mutable_table()));
  if (IsWord("PARTITION") && IsSymbol("(", 1)) {
    FLEUVE_TRY(ParsePartitionSpec(insert->mutable_partition()));
  }
  if (AcceptWords({"IF", "NOT", "EXISTS"})) {
    insert->set_if_not_exists(true);
  }
  FLEUVE_TRY(ParseInsertColumns(insert));
  FLEUVE_ASSIGN(Rel query, ParseQuery());
  AttachText(query);
  insert->mutable_query()->CopyFrom(*query);
  return command;
}

Result<pb::Command*> Parser::ParseApplyChanges() {
  pb::Command* command = NewCommand();
  auto* flow = command->mutable_create_flow();
  FLEUVE_TRY(ExpectWords({"APPLY", "CHANGES", "INTO"}));
  FLEUVE_TRY(ParseName(flow->mutable_auto_cdc()->mutable_target()));
  FLEUVE_TRY(ParseAutoCdc(flow->mutable_auto_cdc()));
  return command;
}

Result<void> Parser::ParseAutoCdcColumns(pb::AutoCdc::Columns* columns) {
  if (AcceptSymbol("*")) {
    FLEUVE_TRY(ExpectWord("EXCEPT"));
    columns->set_except(true);
  }
  if (IsSymbol("(")) {
    FLEUVE_ASSIGN(const std::vector<std::string> names, ParseIdentifierList());
    columns->mutable_names()->Add(names.begin(), names.end());
    return {};
  }
  if (columns->except()) {
    return SyntaxError();
  }
  do {
    FLEUVE_ASSIGN(std::string name, ParseIdentifier());
    columns->add_names(std::move(name));
  } while (AcceptSymbol(","));
  return {};
}

Result<void> Parser::ParseAutoCdc(pb::AutoCdc* cdc) {
  FLEUVE_TRY(ExpectWord("FROM"));
  // No alias: KEYS (...) would look like one.
  const bool marked = IsWord("STREAM") && (IsSymbol("(", 1) || IsIdentifier(1));
  if (marked) {
    Advance();
  }
  const bool parentheses = marked && AcceptSymbol("(");
  FLEUVE_ASSIGN(Rel source, ParseTableReference());
  if (parentheses) {
    FLEUVE_TRY(ExpectSymbol(")"));
  }
  if (source->has_read()) {
    source->mutable_read()->set_is_streaming(true);
    cdc->mutable_source()->CopyFrom(*source);
  } else {
    pb::RelationExtension extension;
    extension.mutable_stream_of()->mutable_input()->CopyFrom(*source);
    cdc->mutable_source()->CopyFrom(*ExtendedRel(extension));
  }
  cdc->set_scd_type(1);
  // The clauses come in any order.
  while (true) {
    std::string sql;
    if (IsWord("KEYS") && IsSymbol("(", 1)) {
      Advance();
      FLEUVE_ASSIGN(const std::vector<std::string> keys, ParseIdentifierList());
      cdc->mutable_keys()->Add(keys.begin(), keys.end());
    } else if (AcceptWords({"IGNORE", "NULL", "UPDATES"})) {
      cdc->set_ignore_null_updates(true);
      if (AcceptWord("ON")) {
        FLEUVE_TRY(ParseAutoCdcColumns(cdc->mutable_ignore_null_columns()));
      }
    } else if (AcceptWords({"APPLY", "AS", "DELETE", "WHEN"})) {
      FLEUVE_TRY(ParseConditionText(&sql));
      cdc->set_delete_sql(std::move(sql));
    } else if (AcceptWords({"APPLY", "AS", "TRUNCATE", "WHEN"})) {
      FLEUVE_TRY(ParseConditionText(&sql));
      cdc->set_truncate_sql(std::move(sql));
    } else if (AcceptWords({"SEQUENCE", "BY"})) {
      FLEUVE_TRY(ParseConditionText(&sql));
      cdc->set_sequence_sql(std::move(sql));
    } else if (AreWords({"SYSTEM", "SEQUENCE"})) {
      return Refused("SYSTEM SEQUENCE BY of AUTO CDC");
    } else if (AreWords({"COLUMNS", "TO", "UPDATE"})) {
      return Refused("COLUMNS TO UPDATE of AUTO CDC");
    } else if (AcceptWord("COLUMNS")) {
      FLEUVE_TRY(ParseAutoCdcColumns(cdc->mutable_columns()));
    } else if (AcceptWords({"STORED", "AS"})) {
      if (IsWord("BITEMPORAL")) {
        return Refused("STORED AS BITEMPORAL of AUTO CDC");
      }
      FLEUVE_TRY(ExpectWords({"SCD", "TYPE"}));
      FLEUVE_ASSIGN(const std::int64_t type, ParseIntegerToken());
      if (type != 1 && type != 2) {
        return SyntaxErrorAt(at_ - 1);
      }
      cdc->set_scd_type(static_cast<std::int32_t>(type));
    } else if (AcceptWords({"TRACK", "HISTORY", "ON"})) {
      FLEUVE_TRY(ParseAutoCdcColumns(cdc->mutable_track_history()));
    } else {
      return {};
    }
  }
}

Result<pb::Command*> Parser::ParseRefreshDataset() {
  pb::Command* command = NewCommand();
  auto* refresh = command->mutable_refresh_dataset();
  refresh->set_streaming(IsWord("STREAMING"));
  Advance();
  Advance();
  FLEUVE_TRY(ParseName(refresh->mutable_name()));
  refresh->set_full(AcceptWord("FULL"));
  // Both run here and now; an answer before the end is not to be had.
  if (IsWord("ASYNC")) {
    return Refused("REFRESH ... ASYNC");
  }
  AcceptWord("SYNC");
  return command;
}

}  // namespace fleuve::sql
