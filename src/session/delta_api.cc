#include <algorithm>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "delta/connect/base.pb.h"
#include "delta/connect/commands.pb.h"
#include "delta/connect/relations.pb.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "plan/proto_types.h"
#include "proto/unpack.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "tables/commands.h"
#include "tables/modify.h"

namespace fleuve::session {

namespace sc = spark::connect;

namespace {

/// The name parts under which the resolver finds a table of the API.
Result<std::vector<std::string>> PartsOfTable(const ::delta::connect::DeltaTable& table) {
  if (table.has_path()) {
    if (!table.path().hadoop_conf().empty()) {
      return Error::Unsupported("Hadoop settings of DeltaTable.forPath");
    }
    return std::vector<std::string>{"delta", table.path().path()};
  }
  return sql::ParseMultipartName(table.table_or_view_name());
}

/// `DeltaTable.forPath(...).alias("t")`: the table and its alias.
struct ApiTarget {
  std::vector<std::string> parts;
  std::optional<std::string> alias;
};

Result<ApiTarget> TargetOf(const sc::Relation& relation) {
  ApiTarget target;
  const sc::Relation* at = &relation;
  while (at->has_subquery_alias()) {
    if (!target.alias) {
      target.alias = at->subquery_alias().alias();
    }
    at = &at->subquery_alias().input();
  }
  if (at->has_extension()) {
    const auto inner = pb::Unpack<::delta::connect::DeltaRelation>(at->extension());
    if (inner && inner->has_scan()) {
      FLEUVE_ASSIGN(target.parts, PartsOfTable(inner->scan().table()));
      return target;
    }
  }
  return Error::Unsupported("an operation of DeltaTable on something else than a Delta table");
}

Result<std::vector<std::string>> PathOf(const sc::Expression& field) {
  if (field.has_unresolved_attribute()) {
    return sql::ParseMultipartName(field.unresolved_attribute().unparsed_identifier());
  }
  if (field.has_expression_string()) {
    return sql::ParseMultipartName(field.expression_string().expression());
  }
  return Error::Unsupported("an assignment whose key is no column name");
}

plan::PlanPtr BothSides(const plan::PlanPtr& left, const plan::PlanPtr& right) {
  auto join = std::make_shared<plan::LogicalPlan>();
  join->kind = plan::PlanKind::kJoin;
  join->join_type = plan::JoinType::kInner;
  join->children = {left, right};
  join->output = left->output;
  join->output.insert(join->output.end(), right->output.begin(), right->output.end());
  return join;
}

/// Columns that MERGE cannot resolve have a condition of their own.
Result<plan::ExprPtr> OfMerge(Result<plan::ExprPtr> result) {
  if (!result.ok() && result.error().condition().starts_with("UNRESOLVED_COLUMN")) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_UNRESOLVED_EXPRESSION", result.error().message())
        .CausedBy(result.error());
  }
  return result;
}

void AddPart(const std::vector<std::string>& parts, pb::Name* name) {
  for (const std::string& part : parts) {
    name->add_parts(part);
  }
}

/// What the relations of the API do; they work when they are analyzed, as in the reference.
class DeltaApi {
 public:
  DeltaApi(SessionState& state, SessionResolver& resolver) : state_(state), resolver_(resolver) {}

  Result<plan::PlanPtr> Relation(const ::delta::connect::DeltaRelation& relation) {
    switch (relation.relation_type_case()) {
      case ::delta::connect::DeltaRelation::kScan: {
        FLEUVE_ASSIGN(const auto parts, PartsOfTable(relation.scan().table()));
        return Leaf(parts, std::nullopt);
      }
      case ::delta::connect::DeltaRelation::kDescribeHistory: {
        FLEUVE_TRY(Open(relation.describe_history().table()));
        return Rows(tables::DescribeHistory(context_, ref_, std::nullopt));
      }
      case ::delta::connect::DeltaRelation::kDescribeDetail: {
        FLEUVE_TRY(Open(relation.describe_detail().table()));
        return Rows(tables::DescribeDetail(context_, ref_));
      }
      case ::delta::connect::DeltaRelation::kRestoreTable: {
        const auto& restore = relation.restore_table();
        FLEUVE_TRY(Open(restore.table()));
        delta::TimeTravel when;
        if (restore.has_version()) {
          when.version = restore.version();
        } else {
          const auto micros = types::ParseTimestamp(restore.timestamp(), context_.config.session_zone);
          if (!micros) {
            return Error(
                       ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_INVALID",
                       "The provided timestamp (" + restore.timestamp() + ") cannot be converted to a valid timestamp.")
                .With("expr", restore.timestamp());
          }
          when.timestamp_ms = *micros / 1000;
        }
        return Rows(tables::Restore(context_, ref_, when));
      }
      case ::delta::connect::DeltaRelation::kIsDeltaTable: {
        FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(relation.is_delta_table().path()));
        FLEUVE_ASSIGN(const bool exists, state_.services().logs->Open(location)->Exists());
        return Rows(tables::RowsResult{types::DataType::Struct({{"value", types::DataType::Boolean(), false, Json()}}),
                                       {{types::Value(exists)}}});
      }
      case ::delta::connect::DeltaRelation::kDeleteFromTable:
        return Delete(relation.delete_from_table());
      case ::delta::connect::DeltaRelation::kUpdateTable:
        return Update(relation.update_table());
      case ::delta::connect::DeltaRelation::kMergeIntoTable:
        return Merge(relation.merge_into_table());
      case ::delta::connect::DeltaRelation::kOptimizeTable: {
        const auto& optimize = relation.optimize_table();
        FLEUVE_TRY(Open(optimize.table()));
        tables::OptimizeSpec spec;
        for (const std::string& filter : optimize.partition_filters()) {
          spec.where = spec.where ? "(" + *spec.where + ") AND (" + filter + ")" : filter;
        }
        spec.zorder_by.assign(optimize.zorder_columns().begin(), optimize.zorder_columns().end());
        return Rows(tables::Optimize(context_, ref_, spec));
      }
      case ::delta::connect::DeltaRelation::kConvertToDelta:
        return Convert(relation.convert_to_delta());
      case ::delta::connect::DeltaRelation::RELATION_TYPE_NOT_SET:
        break;
    }
    return Error::Unsupported("a Delta relation of an unknown kind");
  }

  /// Finds a table and readies what commands on it need.
  Result<void> Open(const ::delta::connect::DeltaTable& table) {
    FLEUVE_ASSIGN(const auto parts, PartsOfTable(table));
    return OpenParts(parts);
  }
  Result<void> OpenParts(const std::vector<std::string>& parts) {
    FLEUVE_ASSIGN(const TableTarget target, resolver_.Target(parts, true));
    if (target.provider != "delta") {
      return Error(ErrorKind::kUnsupported, "DELTA_TABLE_ONLY_OPERATION", target.display + " is not a Delta table.")
          .With("tableName", target.display);
    }
    ref_ = RefOf(target);
    FLEUVE_ASSIGN(engine_, state_.Engine());
    context_.logs = state_.services().logs.get();
    context_.engine = engine_.get();
    context_.config = resolver_.Config();
    return {};
  }
  const tables::TableContext& context() const { return context_; }
  const tables::TableRef& ref() const { return ref_; }

 private:
  /// Converts and gives the new table, as `DeltaTable.convertToDelta` shows it: its name.
  Result<plan::PlanPtr> Convert(const ::delta::connect::ConvertToDelta& convert) {
    FLEUVE_ASSIGN(const auto parts, sql::ParseMultipartName(convert.identifier()));
    types::Schema partitions = types::DataType::Struct({});
    if (convert.has_partition_schema_string()) {
      FLEUVE_ASSIGN(partitions, types::DataType::FromDdl(convert.partition_schema_string()));
    } else if (convert.has_partition_schema_struct()) {
      FLEUVE_ASSIGN(partitions, plan::TypeFromProto(convert.partition_schema_struct()));
    }
    pb::Command command;
    AddPart(parts, command.mutable_convert_to_delta()->mutable_table());
    for (const types::StructField& field : partitions.fields()) {
      auto* column = command.mutable_convert_to_delta()->add_partition_columns();
      column->add_name(field.name);
      column->set_type(field.type.Sql());
    }
    Executor executor(state_, nullptr);
    FLEUVE_TRY(executor.RunStatement(command, resolver_));
    FLEUVE_ASSIGN(const TableTarget target, resolver_.Target(parts, true));
    const std::string name =
        target.is_path ? "delta." + types::QuoteIdentifier(target.location.path) : target.database + "." + target.name;
    return Rows(
        tables::RowsResult{types::DataType::Struct({{"table_identifier", types::DataType::String(), true, Json()}}),
                           {{types::Value(name)}}});
  }

  Result<plan::PlanPtr> Leaf(const std::vector<std::string>& parts, const std::optional<std::string>& alias) {
    auto resolved = resolver_.ResolveTable(parts, {}, false);
    if (!resolved.ok() && parts.size() == 2 && parts[0] == "delta" &&
        (resolved.error().condition() == "PATH_NOT_FOUND" || resolved.error().condition() == "DELTA_TABLE_NOT_FOUND")) {
      return Error(ErrorKind::kNotFound, "DELTA_MISSING_DELTA_TABLE", "`" + parts[1] + "` is not a Delta table.")
          .With("tableName", parts[1]);
    }
    FLEUVE_ASSIGN(const plan::ResolvedTable table, std::move(resolved));
    if (table.table == nullptr) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_TABLE_ONLY_OPERATION",
                   QuoteParts(parts) + " is no Delta table.");
    }
    return LeafOf(table.table, alias ? std::vector<std::string>{*alias} : table.qualified_name);
  }

  static Result<plan::PlanPtr> Rows(Result<tables::RowsResult> result) {
    FLEUVE_ASSIGN(const tables::RowsResult rows, std::move(result));
    FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(rows.schema, rows.rows));
    return RowsLeaf(rows.schema, {std::move(batch)});
  }

  template <typename List>
  Result<std::vector<tables::Assignment>> Assignments(const List& list, const plan::PlanPtr& scope, bool of_merge) {
    std::vector<tables::Assignment> out;
    for (const ::delta::connect::Assignment& item : list) {
      tables::Assignment assignment;
      FLEUVE_ASSIGN(assignment.path, PathOf(item.field()));
      auto value = plan::AnalyzeExpression(item.value(), scope, resolver_);
      FLEUVE_ASSIGN(assignment.value, of_merge ? OfMerge(std::move(value)) : std::move(value));
      out.push_back(std::move(assignment));
    }
    return out;
  }

  Result<plan::PlanPtr> Delete(const ::delta::connect::DeleteFromTable& remove) {
    FLEUVE_ASSIGN(const ApiTarget target, TargetOf(remove.target()));
    FLEUVE_ASSIGN(const plan::PlanPtr leaf, Leaf(target.parts, target.alias));
    FLEUVE_TRY(OpenParts(target.parts));
    plan::ExprPtr condition;
    if (remove.has_condition()) {
      FLEUVE_ASSIGN(condition, plan::AnalyzeExpression(remove.condition(), leaf, resolver_));
    }
    return Rows(tables::DeleteFrom(context_, ref_, leaf, condition));
  }

  Result<plan::PlanPtr> Update(const ::delta::connect::UpdateTable& update) {
    FLEUVE_ASSIGN(const ApiTarget target, TargetOf(update.target()));
    FLEUVE_ASSIGN(const plan::PlanPtr leaf, Leaf(target.parts, target.alias));
    FLEUVE_TRY(OpenParts(target.parts));
    plan::ExprPtr condition;
    if (update.has_condition()) {
      FLEUVE_ASSIGN(condition, plan::AnalyzeExpression(update.condition(), leaf, resolver_));
    }
    FLEUVE_ASSIGN(const auto assignments, Assignments(update.assignments(), leaf, false));
    return Rows(tables::UpdateTable(context_, ref_, leaf, assignments, condition));
  }

  Result<plan::PlanPtr> Merge(const ::delta::connect::MergeIntoTable& merge) {
    FLEUVE_ASSIGN(const ApiTarget target, TargetOf(merge.target()));
    tables::MergeSpec spec;
    FLEUVE_ASSIGN(spec.target, Leaf(target.parts, target.alias));
    FLEUVE_TRY(OpenParts(target.parts));
    FLEUVE_ASSIGN(spec.source, plan::Analyze(merge.source(), resolver_));
    const plan::PlanPtr both = BothSides(spec.target, spec.source);
    FLEUVE_ASSIGN(spec.condition, OfMerge(plan::AnalyzeExpression(merge.condition(), both, resolver_)));
    spec.schema_evolution = merge.with_schema_evolution();
    const auto clauses = [&](const auto& actions, const plan::PlanPtr& scope,
                             std::vector<tables::MergeClause>* out) -> Result<void> {
      for (const ::delta::connect::MergeIntoTable::Action& action : actions) {
        using Action = ::delta::connect::MergeIntoTable::Action;
        tables::MergeClause clause;
        if (action.has_condition()) {
          FLEUVE_ASSIGN(clause.condition, OfMerge(plan::AnalyzeExpression(action.condition(), scope, resolver_)));
        }
        switch (action.action_type_case()) {
          case Action::kDeleteAction:
            clause.kind = tables::MergeClause::Kind::kDelete;
            break;
          case Action::kUpdateAction: {
            FLEUVE_ASSIGN(clause.assignments, Assignments(action.update_action().assignments(), scope, true));
            break;
          }
          case Action::kUpdateStarAction:
            clause.star = true;
            break;
          case Action::kInsertAction: {
            clause.kind = tables::MergeClause::Kind::kInsert;
            FLEUVE_ASSIGN(clause.assignments, Assignments(action.insert_action().assignments(), scope, true));
            break;
          }
          case Action::kInsertStarAction:
            clause.kind = tables::MergeClause::Kind::kInsert;
            clause.star = true;
            break;
          case Action::ACTION_TYPE_NOT_SET:
            return Error::Unsupported("a merge action without a kind");
        }
        out->push_back(std::move(clause));
      }
      return {};
    };
    FLEUVE_TRY(clauses(merge.matched_actions(), both, &spec.matched));
    FLEUVE_TRY(clauses(merge.not_matched_actions(), spec.source, &spec.not_matched));
    FLEUVE_TRY(clauses(merge.not_matched_by_source_actions(), spec.target, &spec.not_matched_by_source));
    return Rows(tables::MergeInto(context_, ref_, spec));
  }

  SessionState& state_;
  SessionResolver& resolver_;
  std::shared_ptr<engine::Engine> engine_;
  tables::TableContext context_;
  tables::TableRef ref_;
};

/// False for the relations of the API that only read.
bool HasEffects(const ::delta::connect::DeltaRelation& relation) {
  switch (relation.relation_type_case()) {
    case ::delta::connect::DeltaRelation::kScan:
    case ::delta::connect::DeltaRelation::kDescribeHistory:
    case ::delta::connect::DeltaRelation::kDescribeDetail:
    case ::delta::connect::DeltaRelation::kIsDeltaTable:
      return false;
    default:
      return true;
  }
}

Result<pb::CreateTable> ToCreateTable(const ::delta::connect::CreateDeltaTable& create) {
  pb::CreateTable out;
  using Create = ::delta::connect::CreateDeltaTable;
  if (create.has_table_name()) {
    FLEUVE_ASSIGN(const auto parts, sql::ParseMultipartName(create.table_name()));
    AddPart(parts, out.mutable_table());
    if (create.has_location()) {
      out.set_location(create.location());
    }
  } else if (create.has_location()) {
    AddPart({"delta", create.location()}, out.mutable_table());
  } else {
    return Error(ErrorKind::kInvalidArgument, "DELTA_CREATE_TABLE_MISSING_TABLE_NAME_OR_LOCATION",
                 "A table name or a location must be given.");
  }
  out.set_provider("delta");
  out.set_if_not_exists(create.mode() == Create::MODE_CREATE_IF_NOT_EXISTS);
  out.set_replace(create.mode() == Create::MODE_REPLACE || create.mode() == Create::MODE_CREATE_OR_REPLACE);
  out.set_or_create(create.mode() == Create::MODE_CREATE_OR_REPLACE);
  if (create.has_comment()) {
    out.set_comment(create.comment());
  }
  for (const auto& column : create.columns()) {
    auto* definition = out.add_columns();
    definition->add_name(column.name());
    FLEUVE_ASSIGN(const types::DataType type, plan::TypeFromProto(column.data_type()));
    definition->set_type(type.Sql());
    definition->set_not_null(!column.nullable());
    if (column.has_comment()) {
      definition->set_comment(column.comment());
    }
    if (column.has_generated_always_as()) {
      definition->set_generated_sql(column.generated_always_as());
    }
    if (column.has_identity_info()) {
      definition->mutable_identity()->set_always(!column.identity_info().allow_explicit_insert());
      definition->mutable_identity()->set_start(column.identity_info().start());
      definition->mutable_identity()->set_step(column.identity_info().step());
    }
  }
  for (const std::string& column : create.partitioning_columns()) {
    auto* transform = out.add_partitioned_by();
    transform->set_function("identity");
    transform->add_column(column);
  }
  for (const std::string& column : create.clustering_columns()) {
    FLEUVE_ASSIGN(const auto parts, sql::ParseMultipartName(column));
    AddPart(parts, out.add_cluster_by());
  }
  for (const auto& [key, value] : create.properties()) {
    auto* property = out.add_properties();
    property->set_key(key);
    property->set_value(value);
  }
  return out;
}

}  // namespace

Result<std::optional<plan::PlanPtr>> SessionResolver::ResolveExtension(const google::protobuf::Any& extension) {
  const auto relation = pb::Unpack<::delta::connect::DeltaRelation>(extension);
  if (!relation) {
    return std::optional<plan::PlanPtr>();
  }
  has_effects_ = has_effects_ || HasEffects(*relation);
  DeltaApi api(state_, *this);
  FLEUVE_ASSIGN(plan::PlanPtr plan, api.Relation(*relation));
  return std::optional<plan::PlanPtr>(std::move(plan));
}

Result<bool> Executor::DeltaCommand(const google::protobuf::Any& extension) {
  const auto command = pb::Unpack<::delta::connect::DeltaCommand>(extension);
  if (!command) {
    return false;
  }
  SessionResolver resolver(state_);
  DeltaApi api(state_, resolver);
  switch (command->command_type_case()) {
    case ::delta::connect::DeltaCommand::kVacuumTable: {
      const auto& vacuum = command->vacuum_table();
      FLEUVE_TRY(api.Open(vacuum.table()));
      FLEUVE_TRY(tables::Vacuum(
          api.context(), api.ref(),
          vacuum.has_retention_hours() ? std::optional<double>(vacuum.retention_hours()) : std::nullopt, false));
      return true;
    }
    case ::delta::connect::DeltaCommand::kUpgradeTableProtocol: {
      const auto& upgrade = command->upgrade_table_protocol();
      FLEUVE_TRY(api.Open(upgrade.table()));
      FLEUVE_TRY(tables::SetProperties(api.context(), api.ref(),
                                       {{"delta.minReaderVersion", std::to_string(upgrade.reader_version())},
                                        {"delta.minWriterVersion", std::to_string(upgrade.writer_version())}}));
      return true;
    }
    case ::delta::connect::DeltaCommand::kAddFeatureSupport: {
      const auto& add = command->add_feature_support();
      FLEUVE_TRY(api.Open(add.table()));
      FLEUVE_TRY(
          tables::SetProperties(api.context(), api.ref(), {{"delta.feature." + add.feature_name(), "supported"}}));
      return true;
    }
    case ::delta::connect::DeltaCommand::kCreateDeltaTable: {
      FLEUVE_ASSIGN(const pb::CreateTable create, ToCreateTable(command->create_delta_table()));
      FLEUVE_TRY(CreateTable(create, resolver));
      return true;
    }
    case ::delta::connect::DeltaCommand::kCloneTable: {
      const auto& clone = command->clone_table();
      if (!clone.is_shallow()) {
        return Error::Unsupported("deep clones of tables");
      }
      FLEUVE_ASSIGN(const auto parts, PartsOfTable(clone.table()));
      plan::Options when;
      if (clone.has_version()) {
        when["versionAsOf"] = std::to_string(clone.version());
      } else if (clone.has_timestamp()) {
        when["timestampAsOf"] = clone.timestamp();
      }
      FLEUVE_ASSIGN(const plan::ResolvedTable source, resolver.ResolveTable(parts, when, false));
      if (source.table == nullptr) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_TABLE_ONLY_OPERATION", "Only Delta tables can be cloned.");
      }
      CloneTarget target;
      const bool is_path = clone.target().starts_with("/") || clone.target().find(":/") != std::string::npos;
      if (is_path) {
        target.parts = {"delta", clone.target()};
      } else {
        FLEUVE_ASSIGN(target.parts, sql::ParseMultipartName(clone.target()));
      }
      target.replace = clone.replace();
      target.or_create = true;
      target.properties = plan::Options(clone.properties().begin(), clone.properties().end());
      FLEUVE_TRY(Clone(LeafOf(source.table, {}), target, resolver));
      return true;
    }
    case ::delta::connect::DeltaCommand::kGenerate:
      FLEUVE_TRY(api.Open(command->generate().table()));
      FLEUVE_TRY(tables::GenerateManifest(api.context(), api.ref(), command->generate().mode()));
      return true;
    case ::delta::connect::DeltaCommand::kDropFeatureSupport: {
      const auto& drop = command->drop_feature_support();
      FLEUVE_TRY(api.Open(drop.table()));
      FLEUVE_TRY(tables::DropFeature(api.context(), api.ref(), drop.feature_name(), drop.truncate_history()));
      return true;
    }
    case ::delta::connect::DeltaCommand::COMMAND_TYPE_NOT_SET:
      break;
  }
  return Error::Unsupported("a Delta command of an unknown kind");
}

}  // namespace fleuve::session
