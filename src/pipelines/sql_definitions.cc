// The statements of a pipeline's SQL files.
#include <algorithm>

#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "pipelines/definitions.h"
#include "spark/connect/relations.pb.h"
#include "sql/parser.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;

namespace {

std::vector<std::string> PartsOf(const pb::Name& name) { return {name.parts().begin(), name.parts().end()}; }

/// One file while its statements are read.
class SqlFile {
 public:
  SqlFile(std::string file, Graph* graph, std::vector<std::string>* unknown)
      : file_(std::move(file)), graph_(graph), unknown_(unknown), database_(graph->database()) {}

  Result<void> Read(const sql::Statement& statement, int line);

 private:
  Error Refused(const std::string& message, const sql::Statement& statement, int line) const {
    const std::string where = file_.empty() ? "" : file_ + ":" + std::to_string(line);
    return Error(ErrorKind::kInvalidArgument, "PIPELINE_SQL_GRAPH_ELEMENT_REGISTRATION_ERROR",
                 message + "\n" + statement.text + "\n" + where)
        .With("message", message)
        .With("offendingQuery", statement.text)
        .With("codeLocation", where);
  }
  Result<void> Use(const pb::UseDatabase& use, const sql::Statement& statement, int line);
  Result<void> AddFlow(std::vector<std::string> name, std::vector<std::string> target,
                       std::shared_ptr<const sc::Relation> query, bool once, std::optional<ChangeRules> changes,
                       bool is_default, int line);
  Result<void> AddView(const pb::CreateView& create, const sql::Statement& statement, int line);

  const std::string file_;
  Graph* const graph_;
  std::vector<std::string>* const unknown_;
  std::string database_;
  std::map<std::string, std::string> conf_;
};

Result<void> SqlFile::Use(const pb::UseDatabase& use, const sql::Statement& statement, int line) {
  std::vector<std::string> parts = PartsOf(use.database());
  const auto is_catalog = [&](const std::string& name) { return EqualsIgnoreAsciiCase(name, graph_->catalog()); };
  if (use.is_catalog() || (parts.size() == 1 && !use.is_namespace() && is_catalog(parts[0]))) {
    if (parts.size() != 1 || !is_catalog(parts[0])) {
      return Refused("The catalog " + Join(parts, ".") + " does not exist.", statement, line);
    }
    // The schema that was current is gone with it.
    database_ = "default";
    return {};
  }
  if (parts.size() == 2 && is_catalog(parts[0])) {
    parts.erase(parts.begin());
  }
  if (parts.size() != 1) {
    return Refused("A schema has a name of one part, perhaps behind a catalog.", statement, line);
  }
  database_ = AsciiLower(parts[0]);
  return {};
}

Result<void> SqlFile::AddFlow(std::vector<std::string> name, std::vector<std::string> target,
                              std::shared_ptr<const sc::Relation> query, bool once, std::optional<ChangeRules> changes,
                              bool is_default, int line) {
  Flow flow;
  flow.name = std::move(name);
  flow.target = std::move(target);
  flow.query = std::move(query);
  flow.once = once;
  flow.changes = std::move(changes);
  flow.conf = conf_;
  flow.database = database_;
  flow.is_default = is_default;
  flow.location = CodeLocation{file_, line};
  FLEUVE_TRY(graph_->Add(std::move(flow)));
  return {};
}

Result<void> SqlFile::AddView(const pb::CreateView& create, const sql::Statement& statement, int line) {
  if (create.global() || create.has_provider()) {
    return Refused(create.global() ? "Global temporary views cannot be defined in a pipeline."
                                   : "Views over a data source cannot be defined in a pipeline.",
                   statement, line);
  }
  Dataset view;
  view.kind = create.temporary() ? DatasetKind::kTemporaryView : DatasetKind::kPersistedView;
  view.name = PartsOf(create.view());
  if (create.has_comment()) {
    view.comment = create.comment();
  }
  for (const pb::Property& property : create.properties()) {
    view.properties[property.key()] = property.value();
  }
  view.view_text = create.query_sql();
  view.location = CodeLocation{file_, line};
  auto query = std::make_shared<sc::Relation>(create.query());
  if (create.columns_size() > 0) {
    auto renamed = std::make_shared<sc::Relation>();
    *renamed->mutable_to_df()->mutable_input() = *query;
    std::string names;
    for (const auto& column : create.columns()) {
      renamed->mutable_to_df()->add_column_names(column.name());
      names += (names.empty() ? "" : ", ") + types::QuoteIdentifier(column.name());
    }
    query = std::move(renamed);
    view.view_text = "SELECT * FROM (" + view.view_text + ") AS v(" + names + ")";
  }
  FLEUVE_ASSIGN(const std::vector<std::string> name, graph_->Add(std::move(view), database_));
  return AddFlow(name, name, std::move(query), false, std::nullopt, true, line);
}

Result<void> SqlFile::Read(const sql::Statement& statement, int line) {
  if (statement.command == nullptr) {
    return Refused("A query defines nothing in a pipeline.", statement, line);
  }
  const pb::Command& command = *statement.command;
  switch (command.kind_case()) {
    case pb::Command::kSetConfig:
      if (!command.set_config().has_key() || !command.set_config().has_value()) {
        return Refused("SET needs a key and a value in a pipeline.", statement, line);
      }
      conf_[command.set_config().key()] = command.set_config().value();
      return {};
    case pb::Command::kSetTimeZone:
      conf_["spark.sql.session.timeZone"] = command.set_time_zone().local() ? "UTC" : command.set_time_zone().zone();
      return {};
    case pb::Command::kUseDatabase:
      return Use(command.use_database(), statement, line);
    case pb::Command::kCreateView:
      return AddView(command.create_view(), statement, line);
    case pb::Command::kCreatePipelineDataset: {
      const pb::CreatePipelineDataset& create = command.create_pipeline_dataset();
      FLEUVE_ASSIGN(Dataset dataset, DatasetOf(create, unknown_));
      dataset.location = CodeLocation{file_, line};
      FLEUVE_ASSIGN(const std::vector<std::string> name, graph_->Add(std::move(dataset), database_));
      if (create.has_auto_cdc()) {
        FLEUVE_ASSIGN(ChangeRules rules, RulesOf(create.auto_cdc()));
        return AddFlow(name, name, std::make_shared<const sc::Relation>(create.auto_cdc().source()), false,
                       std::move(rules), true, line);
      }
      if (!create.table().has_query()) {
        return {};
      }
      return AddFlow(name, name, std::make_shared<const sc::Relation>(create.table().query()), false, std::nullopt,
                     true, line);
    }
    case pb::Command::kCreateFlow: {
      const pb::CreateFlow& create = command.create_flow();
      if (create.has_auto_cdc()) {
        FLEUVE_ASSIGN(ChangeRules rules, RulesOf(create.auto_cdc()));
        const std::vector<std::string> target = PartsOf(create.auto_cdc().target());
        return AddFlow(create.has_name() ? PartsOf(create.name()) : target, target,
                       std::make_shared<const sc::Relation>(create.auto_cdc().source()), create.once(),
                       std::move(rules), !create.has_name(), line);
      }
      const pb::Insert& insert = create.insert();
      const char* refused = insert.overwrite()          ? "INSERT OVERWRITE"
                            : insert.has_partition()    ? "PARTITION"
                            : insert.columns_size() > 0 ? "a column list"
                            : insert.if_not_exists()    ? "IF NOT EXISTS"
                                                        : nullptr;
      if (refused != nullptr) {
        return Refused(std::string("A flow takes INSERT INTO table [BY NAME] query, without ") + refused + ".",
                       statement, line);
      }
      return AddFlow(PartsOf(create.name()), PartsOf(insert.table()),
                     std::make_shared<const sc::Relation>(insert.query()), create.once(), std::nullopt, false, line);
    }
    default:
      return Refused("This statement is not supported in a pipeline's SQL files.", statement, line);
  }
}

}  // namespace

Result<void> DefineSql(const std::string& text, const std::string& file, session::Workbench& place, Graph* graph,
                       std::vector<std::string>* unknown) {
  FLEUVE_ASSIGN(const std::vector<sql::Statement> statements, sql::ParseStatements(text, place.ParserSettings()));
  SqlFile reader(file, graph, unknown);
  std::size_t from = 0;
  for (const sql::Statement& statement : statements) {
    // Statements keep their text as written, so the next one is found behind the one before.
    const std::size_t at = text.find(statement.text, from);
    const std::size_t start = at == std::string::npos ? from : at;
    const int line =
        1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(start), '\n'));
    from = start + statement.text.size();
    FLEUVE_TRY(reader.Read(statement, line));
  }
  return {};
}

}  // namespace fleuve::pipelines
