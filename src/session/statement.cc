#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "session/executor_internal.h"
#include "session/pipelines.h"
#include "session/plan_text_internal.h"
#include "session/script_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "types/time_zone.h"

namespace fleuve::session {

using types::DataType;
using types::Value;

RowsResult Nothing() { return RowsResult{DataType::Struct({}), {}}; }

types::Schema TextColumns(const std::vector<std::string>& names) {
  std::vector<types::StructField> fields;
  for (const std::string& name : names) {
    fields.push_back({name, DataType::String(), true, {}});
  }
  return DataType::Struct(std::move(fields));
}

namespace {

RowsResult ConfigRows(std::vector<Value::List> rows) {
  return RowsResult{
      DataType::Struct({{"key", DataType::String(), false, {}}, {"value", DataType::String(), false, {}}}),
      std::move(rows)};
}

Result<RowsResult> SetConfigStatement(const pb::SetConfig& set, Config& config) {
  if (set.all()) {
    return Error::Unsupported("SET -v");
  }
  if (!set.has_key()) {
    std::vector<Value::List> rows;
    for (const auto& [key, value] : config.All()) {
      rows.push_back({Value(key), Value(value)});
    }
    return ConfigRows(std::move(rows));
  }
  if (set.has_value()) {
    FLEUVE_TRY(config.Set(set.key(), set.value()));
    return ConfigRows({{Value(set.key()), Value(set.value())}});
  }
  return ConfigRows({{Value(set.key()), Value(config.Text(set.key()).value_or("<undefined>"))}});
}

Result<RowsResult> SetTimeZoneStatement(const pb::SetTimeZone& set, Config& config) {
  const std::string zone = set.local() ? "UTC" : set.zone();
  FLEUVE_TRY(config.Set("spark.sql.session.timeZone", zone));
  return ConfigRows({{Value("spark.sql.session.timeZone"), Value(zone)}});
}

Result<RowsResult> ResetStatement(const pb::ResetConfig& reset, Config& config, const Services& services) {
  const auto restore = [&](const std::string& key) -> Result<void> {
    const auto initial = services.conf.find(key);
    if (initial != services.conf.end()) {
      config.Restore(key, initial->second);
      return {};
    }
    return config.Unset(key);
  };
  if (reset.has_key()) {
    FLEUVE_TRY(restore(reset.key()));
    return Nothing();
  }
  for (const auto& [key, value] : config.All()) {
    const ConfigKey* known = FindConfigKey(key);
    if (known == nullptr || !known->is_static) {
      FLEUVE_TRY(restore(key));
    }
  }
  return Nothing();
}

Result<RowsResult> UseStatement(const pb::UseDatabase& use, SessionState& state) {
  std::vector<std::string> parts = PartsOf(use.database());
  if (use.is_catalog()) {
    if (parts.size() != 1 || !EqualsIgnoreAsciiCase(parts[0], "spark_catalog")) {
      return Error(ErrorKind::kNotFound, "CATALOG_NOT_FOUND",
                   "The catalog " + QuoteParts(parts) +
                       " not found. Consider to set the SQL config \"spark.sql.catalog." + Join(parts, ".") +
                       "\" to a catalog plugin.")
          .With("catalogName", QuoteParts(parts));
    }
    return Nothing();
  }
  if (parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "spark_catalog")) {
    parts.erase(parts.begin());
  } else if (parts.size() == 1 && !use.is_namespace() && EqualsIgnoreAsciiCase(parts[0], "spark_catalog")) {
    return Nothing();
  }
  if (parts.size() != 1) {
    return DatabaseNotFound(parts);
  }
  auto database = state.services().catalog->GetDatabase(parts[0]);
  if (!database.ok()) {
    return database.error().kind() == ErrorKind::kNotFound ? DatabaseNotFound(parts) : database.error();
  }
  state.set_current_database(parts[0]);
  return Nothing();
}

}  // namespace

Error DatabaseNotFound(const std::vector<std::string>& parts) {
  std::vector<std::string> full = parts;
  if (full.size() == 1) {
    full.insert(full.begin(), "spark_catalog");
  }
  return Error(ErrorKind::kNotFound, "SCHEMA_NOT_FOUND",
               "The schema " + QuoteParts(full) +
                   " cannot be found. Verify the spelling and correctness of the schema and catalog.")
      .With("schemaName", QuoteParts(full));
}

Result<std::string> DatabaseOf(const std::vector<std::string>& parts) {
  if (parts.size() == 1) {
    return AsciiLower(parts[0]);
  }
  if (parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "spark_catalog")) {
    return AsciiLower(parts[1]);
  }
  return DatabaseNotFound(parts);
}

namespace {

Result<RowsResult> CreateDatabaseStatement(const pb::CreateDatabase& create, SessionState& state) {
  FLEUVE_ASSIGN(const std::string name, DatabaseOf(PartsOf(create.database())));
  catalog::Database database;
  database.name = name;
  database.comment = create.comment();
  if (create.has_location()) {
    FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(create.location()));
    database.location = location.path;
  }
  for (const pb::Property& property : create.properties()) {
    database.properties[property.key()] = property.value();
  }
  database.owner = state.services().user;
  auto done = state.services().catalog->CreateDatabase(std::move(database));
  if (!done.ok() && done.error().kind() == ErrorKind::kAlreadyExists && create.if_not_exists()) {
    return Nothing();
  }
  FLEUVE_TRY(std::move(done));
  return Nothing();
}

Result<RowsResult> DropDatabaseStatement(const pb::DropDatabase& drop, SessionState& state) {
  FLEUVE_ASSIGN(const std::string name, DatabaseOf(PartsOf(drop.database())));
  auto done = state.services().catalog->DropDatabase(name, drop.cascade());
  if (!done.ok() && done.error().kind() == ErrorKind::kNotFound) {
    if (drop.if_exists()) {
      return Nothing();
    }
    return DatabaseNotFound({name});
  }
  FLEUVE_TRY(std::move(done));
  return Nothing();
}

Result<RowsResult> AlterDatabaseStatement(const pb::AlterDatabase& alter, SessionState& state) {
  FLEUVE_ASSIGN(const std::string name, DatabaseOf(PartsOf(alter.database())));
  auto found = state.services().catalog->GetDatabase(name);
  if (!found.ok()) {
    return DatabaseNotFound({name});
  }
  catalog::Database database = *found;
  for (const pb::Property& property : alter.properties()) {
    database.properties[property.key()] = property.value();
  }
  for (const std::string& key : alter.unset_keys()) {
    database.properties.erase(key);
  }
  if (alter.has_location()) {
    FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(alter.location()));
    database.location = location.path;
  }
  FLEUVE_TRY(state.services().catalog->AlterDatabase(database));
  return Nothing();
}

}  // namespace

Result<RowsResult> Executor::RunStatement(const pb::Command& command, SessionResolver& resolver) {
  switch (command.kind_case()) {
    case pb::Command::kCreateTable:
      return CreateTable(command.create_table(), resolver);
    case pb::Command::kDropTable:
      return DropTable(PartsOf(command.drop_table().table()), command.drop_table().if_exists(), false, resolver);
    case pb::Command::kDropView:
      return DropTable(PartsOf(command.drop_view().view()), command.drop_view().if_exists(), true, resolver);
    case pb::Command::kAlterTable:
      return AlterTable(command.alter_table(), resolver);
    case pb::Command::kCreateView:
      return CreateViewStatement(command.create_view(), command.sql_text(), resolver);
    case pb::Command::kCreateDatabase:
      return CreateDatabaseStatement(command.create_database(), state_);
    case pb::Command::kDropDatabase:
      return DropDatabaseStatement(command.drop_database(), state_);
    case pb::Command::kAlterDatabase:
      return AlterDatabaseStatement(command.alter_database(), state_);
    case pb::Command::kUseDatabase:
      return UseStatement(command.use_database(), state_);
    case pb::Command::kShow:
      return ShowStatement(command.show(), resolver);
    case pb::Command::kDescribeTable:
      return Describe(command.describe_table(), resolver);
    case pb::Command::kDescribeQuery: {
      FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeWith(resolver, command.describe_query().query()));
      return DescribeColumns(plan::SchemaOf(*plan), {});
    }
    case pb::Command::kSetConfig:
      return SetConfigStatement(command.set_config(), state_.config());
    case pb::Command::kSetTimeZone:
      return SetTimeZoneStatement(command.set_time_zone(), state_.config());
    case pb::Command::kResetConfig:
      return ResetStatement(command.reset_config(), state_.config(), state_.services());
    case pb::Command::kInsert:
      return Insert(command.insert(), resolver);
    case pb::Command::kMerge:
      return Merge(command.merge(), resolver);
    case pb::Command::kDelete:
    case pb::Command::kUpdate:
    case pb::Command::kTruncate:
      return ModifyStatement(command, resolver);
    case pb::Command::kDescribeDatabase:
    case pb::Command::kDescribeFunction:
    case pb::Command::kDescribeDetail:
    case pb::Command::kDescribeHistory:
    case pb::Command::kOptimize:
    case pb::Command::kVacuum:
    case pb::Command::kRestore:
    case pb::Command::kComment:
    case pb::Command::kCacheTable:
    case pb::Command::kUncacheTable:
    case pb::Command::kClearCache:
    case pb::Command::kRefresh:
      return MaintenanceStatement(command, resolver);
    case pb::Command::kCreateFunction:
    case pb::Command::kDropFunction:
    case pb::Command::kDeclareVariable:
    case pb::Command::kSetVariable:
    case pb::Command::kDropVariable:
    case pb::Command::kExecuteImmediate:
      return VariableStatement(command, resolver);
    case pb::Command::kExplain: {
      const pb::Explain& explain = command.explain();
      std::string text;
      if (explain.has_query()) {
        FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeWith(resolver, explain.query()));
        plan::PlanPtr prepared;
        if (!plan->is_streaming) {
          FLEUVE_ASSIGN(prepared, plan::Prepare(plan, state_.AnalysisSettings()));
        }
        text = ExplainText(plan, prepared, AsciiLower(pb::Explain::Mode_Name(explain.mode())));
      } else {
        text = "== Physical Plan ==\nExecute Command\n";
      }
      return RowsResult{DataType::Struct({{"plan", DataType::String(), false, {}}}), {{Value(text)}}};
    }
    case pb::Command::kAnalyze:
      if (!command.analyze().tables_in()) {
        FLEUVE_TRY(NotForDelta(PartsOf(command.analyze().table()), "ANALYZE TABLE", resolver));
      }
      return Error::Unsupported("ANALYZE TABLE");
    case pb::Command::kCloneTable:
    case pb::Command::kConvertToDelta:
    case pb::Command::kGenerateManifest:
    case pb::Command::kReorg:
      return DeltaStatement(command, resolver);
    case pb::Command::kRepairTable:
      FLEUVE_TRY(NotForDelta(PartsOf(command.repair_table().table()), "MSCK REPAIR TABLE", resolver));
      return Error::Unsupported("MSCK REPAIR TABLE");
    case pb::Command::kScript:
      return RunScript(command.script(), *this, state_, resolver);
    case pb::Command::kCall:
      return Error::Unsupported("CALL");
    case pb::Command::kCreatePipelineDataset:
    case pb::Command::kRefreshDataset:
      if (state_.services().pipelines == nullptr) {
        return Error::Unsupported("streaming tables and materialized views in a process without pipelines");
      }
      FLEUVE_TRY(state_.services().pipelines->RunStatement(state_.session(), command, operation_));
      return Nothing();
    case pb::Command::kCreateFlow:
      return Error::Unsupported("CREATE FLOW outside a pipeline");
    case pb::Command::kAddResource:
      return Error::Unsupported("ADD " + command.add_resource().what());
    case pb::Command::KIND_NOT_SET:
      break;
  }
  return Error::Internal("a SQL command of no kind");
}

}  // namespace fleuve::session
