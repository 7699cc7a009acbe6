#include "session/workbench.h"

#include "base/big_stack.h"
#include "base/bytes.h"
#include "base/log.h"
#include "fleuve/plan.pb.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "spark/connect/commands.pb.h"
#include "stream/manager.h"
#include "tables/commands.h"
#include "tables/create.h"

namespace fleuve::session {

namespace sc = spark::connect;

namespace {

/// Runs `work` where deep plans are safe and hands its result out.
template <typename T>
Result<T> Deep(const std::function<Result<T>()>& work) {
  std::optional<Result<T>> result;
  RunOnBigStack([&] { result = work(); });
  return *std::move(result);
}

std::string Display(const std::vector<std::string>& name) { return Join(name, "."); }

}  // namespace

plan::PlanPtr NoRows(const types::Schema& schema) { return RowsLeaf(schema, {}); }

Workbench::Workbench(SessionPtr session, CancellationTokenPtr token)
    : session_(std::move(session)),
      token_(token == nullptr ? std::make_shared<CancellationToken>() : std::move(token)),
      services_(&session_->state().services()) {}

Workbench::~Workbench() = default;

sql::ParserOptions Workbench::ParserSettings() { return SessionResolver(session_->state()).ParserSettings(); }

std::string Workbench::current_database() { return session_->state().current_database(); }

Result<void> Workbench::SetCurrentDatabase(const std::string& name) {
  if (!services_->catalog->GetDatabase(AsciiLower(name)).ok()) {
    return DatabaseNotFound({name});
  }
  session_->state().set_current_database(name);
  return {};
}

std::vector<std::string> FullName(const std::vector<std::string>& parts, const std::string& catalog,
                                  const std::string& database) {
  std::vector<std::string> full;
  for (const std::string& part : parts) {
    full.push_back(AsciiLower(part));
  }
  if (full.size() == 1) {
    full.insert(full.begin(), AsciiLower(database));
  }
  if (full.size() == 2) {
    full.insert(full.begin(), catalog);
  }
  return full;
}

Result<plan::PlanPtr> Workbench::Analyze(const sc::Relation& relation, NameScope* names) {
  return Deep<plan::PlanPtr>([&]() -> Result<plan::PlanPtr> {
    SessionResolver resolver(session_->state());
    resolver.set_names(names);
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    return Executor(session_->state(), operation).AnalyzeWith(resolver, relation);
  });
}

Result<std::optional<TableFacts>> Workbench::Find(const std::vector<std::string>& name) {
  SessionResolver resolver(session_->state());
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(name, false));
  if (!target.row) {
    return std::optional<TableFacts>();
  }
  TableFacts facts;
  facts.is_view = target.row->kind == catalog::TableKind::kView;
  facts.format = target.provider;
  facts.notes = {target.row->properties.begin(), target.row->properties.end()};
  if (facts.is_view) {
    return std::optional<TableFacts>(std::move(facts));
  }
  if (target.provider == "delta") {
    FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, services_->logs->Open(target.location)->Latest());
    facts.schema = snapshot->schema();
    for (const types::StructField& field : snapshot->partition_schema().fields()) {
      facts.partition_by.push_back(field.name);
    }
    facts.cluster_by = tables::ClusteringOf(*snapshot);
    facts.comment = snapshot->metadata().description;
    for (const auto& [key, value] : snapshot->metadata().configuration) {
      facts.properties[key] = value;
    }
    facts.version = snapshot->version();
    return std::optional<TableFacts>(std::move(facts));
  }
  if (!target.row->schema_json.empty()) {
    FLEUVE_ASSIGN(const Json json, Json::Parse(target.row->schema_json));
    FLEUVE_ASSIGN(facts.schema, types::DataType::FromJson(json));
  }
  facts.partition_by = target.row->partition_columns;
  facts.comment = target.row->comment.empty() ? std::nullopt : std::optional(target.row->comment);
  facts.properties = facts.notes;
  return std::optional<TableFacts>(std::move(facts));
}

Result<void> Workbench::Create(const TableDraft& draft) {
  return Deep<void>([&]() -> Result<void> {
    SessionResolver resolver(session_->state());
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(draft.name, false));
    if (target.row) {
      return TableExists(target.display);
    }
    NewTable table;
    table.provider = AsciiLower(draft.format.empty() ? session_->config().GetOr("spark.sql.sources.default", "delta")
                                                     : draft.format);
    table.schema = draft.schema;
    table.partition_by = draft.partition_by;
    table.cluster_by = draft.cluster_by;
    table.comment = draft.comment;
    table.properties = draft.properties;
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    return Executor(session_->state(), operation).MakeTable(target, table);
  });
}

Result<void> Workbench::AddColumns(const std::vector<std::string>& name, const types::Schema& schema) {
  Fill fill;
  fill.merge_schema = true;
  FLEUVE_TRY(Write(name, NoRows(schema), fill));
  return {};
}

Result<void> Workbench::Empty(const std::vector<std::string>& name, const types::Schema& schema) {
  Fill fill;
  fill.overwrite = true;
  FLEUVE_ASSIGN(const auto facts, Find(name));
  if (facts && facts->format != "delta") {
    return Error::Unsupported("emptying the table " + Display(name) + " of the format " + facts->format);
  }
  FLEUVE_TRY(Write(name, NoRows(schema), fill));
  return {};
}

namespace {

/// Something done to a Delta table of the catalog.
Result<void> Change(SessionState& state, const CancellationTokenPtr& token, const std::vector<std::string>& name,
                    const std::string& what,
                    const std::function<Result<void>(const tables::TableContext&, const tables::TableRef&)>& change) {
  return Deep<void>([&]() -> Result<void> {
    SessionResolver resolver(state);
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(name, true));
    if (target.provider != "delta") {
      return Error::Unsupported("changing the " + what + " of the table " + target.display + " of the format " +
                                target.provider);
    }
    const auto operation = std::make_shared<Operation>();
    operation->token = token;
    Executor executor(state, operation);
    FLEUVE_ASSIGN(const tables::TableContext context, executor.TablesContext());
    return change(context, RefOf(target));
  });
}

}  // namespace

Result<void> Workbench::SetProperties(const std::vector<std::string>& name, const plan::Options& properties) {
  return Change(session_->state(), token_, name, "properties",
                [&](const tables::TableContext& context, const tables::TableRef& table) {
                  return tables::SetProperties(context, table, properties);
                });
}

Result<void> Workbench::SetComment(const std::vector<std::string>& name, const std::optional<std::string>& comment) {
  return Change(session_->state(), token_, name, "comment",
                [&](const tables::TableContext& context, const tables::TableRef& table) {
                  return tables::SetComment(context, table, comment);
                });
}

Result<void> Workbench::SetClustering(const std::vector<std::string>& name, const std::vector<std::string>& columns) {
  return Change(session_->state(), token_, name, "clustering",
                [&](const tables::TableContext& context, const tables::TableRef& table) {
                  return tables::SetClustering(context, table, columns);
                });
}

Result<void> Workbench::SetNotes(const std::vector<std::string>& name, const plan::Options& notes) {
  SessionResolver resolver(session_->state());
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(name, true));
  if (!target.row) {
    return TableNotFound(name);
  }
  catalog::Table row = *target.row;
  row.properties = {notes.begin(), notes.end()};
  return services_->catalog->AlterTable(row);
}

Result<void> Workbench::PublishView(const std::vector<std::string>& name, const std::string& text,
                                    const sc::Relation& query, const std::optional<std::string>& comment,
                                    const plan::Options& properties) {
  return Deep<void>([&]() -> Result<void> {
    pb::CreateView create;
    for (const std::string& part : name) {
      create.mutable_view()->add_parts(part);
    }
    create.set_or_replace(true);
    create.set_query_sql(text);
    *create.mutable_query() = query;
    if (comment) {
      create.set_comment(*comment);
    }
    for (const auto& [key, value] : properties) {
      auto* property = create.add_properties();
      property->set_key(key);
      property->set_value(value);
      property->set_has_value(true);
    }
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    SessionResolver resolver(session_->state());
    FLEUVE_TRY(Executor(session_->state(), operation).CreateViewStatement(create, text, resolver));
    return {};
  });
}

Result<Filled> Workbench::Write(const std::vector<std::string>& name, const plan::PlanPtr& plan, const Fill& fill) {
  return Deep<Filled>([&]() -> Result<Filled> {
    SessionState& state = session_->state();
    SessionResolver resolver(state);
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(name, true));
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    Executor executor(state, operation);
    Filled filled;
    if (target.provider != "delta") {
      if (!fill.app_id.empty() || fill.merge_schema) {
        return Error::Unsupported("this write into the table " + target.display + " of the format " + target.provider);
      }
      return executor.FillFiles(target, plan, fill.overwrite);
    }
    tables::WriteSpec spec;
    spec.mode = fill.overwrite ? tables::SaveMode::kOverwrite : tables::SaveMode::kAppend;
    spec.store_assignment = !fill.overwrite;
    if (fill.overwrite) {
      spec.options["overwriteSchema"] = "true";
      spec.options["partitionOverwriteMode"] = "static";
    }
    if (fill.merge_schema) {
      spec.options["mergeSchema"] = "true";
    }
    if (!fill.app_id.empty()) {
      spec.options["txnAppId"] = fill.app_id;
      spec.options["txnVersion"] = std::to_string(fill.app_version);
    }
    FLEUVE_ASSIGN(tables::TableContext context, executor.TablesContext());
    context.observer = std::make_shared<engine::RunObserver>();
    FLEUVE_ASSIGN(const auto pending, tables::PrepareWrite(context, RefOf(target), plan, spec));
    filled.written = !pending->skipped();
    filled.rows = pending->row_count();
    FLEUVE_TRY(target.location.store->Sync(pending->files(), pending->folders()));
    FLEUVE_TRY(pending->Commit());
    filled.metrics = context.observer->metrics();
    return filled;
  });
}

Result<stream::QueryPtr> Workbench::Start(const StreamDraft& draft) {
  return Deep<stream::QueryPtr>([&]() -> Result<stream::QueryPtr> {
    SessionState& state = session_->state();
    SessionResolver resolver(state);
    StreamStart start;
    start.plan = draft.plan;
    start.trigger.kind = stream::TriggerKind::kAvailableNow;
    start.output_mode = "append";
    start.format = draft.format;
    start.options = draft.options;
    start.options["checkpointLocation"] = draft.checkpoint;
    start.table = draft.table;
    start.sink_provider = draft.sink_provider;
    start.sink_name = draft.format;
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    return Executor(state, operation).LaunchStream(resolver, std::move(start));
  });
}

void Workbench::PutRows(const std::string& view, const types::Schema& schema,
                        std::vector<columnar::RecordBatch> batches) {
  session_->state().PutView(view, RowsLeaf(schema, std::move(batches)));
}

void Workbench::DropRows(const std::string& view) { session_->state().DropView(view); }

Result<std::vector<types::Value::List>> Workbench::Query(const std::string& text) {
  return Deep<std::vector<types::Value::List>>([&]() -> Result<std::vector<types::Value::List>> {
    SessionResolver resolver(session_->state());
    FLEUVE_ASSIGN(const auto relation, sql::ParseQuery(text, resolver.ParserSettings()));
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    Executor executor(session_->state(), operation);
    FLEUVE_ASSIGN(const plan::PlanPtr plan, executor.AnalyzeWith(resolver, *relation));
    return executor.CollectRows(plan);
  });
}

Result<void> Workbench::RunSql(const std::string& text) {
  return Deep<void>([&]() -> Result<void> {
    SessionResolver resolver(session_->state());
    FLEUVE_ASSIGN(const sql::Statement statement, sql::ParseStatement(text, resolver.ParserSettings()));
    if (statement.command == nullptr) {
      return Error::Internal("a query where a command was meant");
    }
    const auto operation = std::make_shared<Operation>();
    operation->token = token_;
    FLEUVE_TRY(Executor(session_->state(), operation).RunStatement(*statement.command, resolver));
    return {};
  });
}

}  // namespace fleuve::session
