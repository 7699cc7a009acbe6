#include <algorithm>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "delta/table_source.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "plan/coercion.h"
#include "proto/unpack.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "tables/modify.h"

namespace fleuve::session {

namespace sc = spark::connect;
using types::DataType;
using types::Value;

Result<plan::PlanPtr> Executor::TableLeaf(const std::vector<std::string>& parts,
                                          const std::optional<std::string>& alias, SessionResolver& resolver) {
  FLEUVE_ASSIGN(const plan::ResolvedTable table, resolver.ResolveTable(parts, {}, false));
  if (table.table == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                 "The statement expects a table but " + QuoteParts(parts) + " is a view.");
  }
  return LeafOf(table.table, alias ? std::vector<std::string>{*alias} : table.qualified_name);
}

Result<tables::TableRef> Executor::DeltaTarget(const std::vector<std::string>& parts, SessionResolver& resolver,
                                               const std::string& what) {
  if (resolver.FindTemporaryView(parts) != nullptr) {
    return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                 "'" + what + "' expects a table but " + QuoteParts(parts) + " is a view.");
  }
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
  if (target.row && target.row->kind == catalog::TableKind::kView) {
    return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                 "'" + what + "' expects a table but " + QuoteParts(parts) + " is a view.");
  }
  if (target.provider != "delta") {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                 "The feature is not supported: Table " + QuoteParts(Split(target.display, '.')) +
                     " does not support " + what + ".")
        .Family(ErrorFamily::kAnalysis);
  }
  return RefOf(target);
}

Result<void> Executor::NotForDelta(const std::vector<std::string>& parts, const std::string& what,
                                   SessionResolver& resolver) {
  if (resolver.FindTemporaryView(parts) != nullptr) {
    return {};
  }
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
  if (target.provider != "delta") {
    return {};
  }
  return Error(ErrorKind::kUnsupported, "NOT_SUPPORTED_COMMAND_FOR_V2_TABLE", what + " is not supported for v2 tables.")
      .With("cmd", what);
}

namespace {

/// The table below projections that give every column of it under its own name; null where there is none.
plan::PlanPtr WholeTable(plan::PlanPtr plan) {
  while (plan->kind == plan::PlanKind::kProject) {
    const plan::PlanPtr& child = plan->children[0];
    std::vector<const plan::Attribute*> visible;
    for (const plan::Attribute& attribute : child->output) {
      if (!attribute.hidden) {
        visible.push_back(&attribute);
      }
    }
    std::size_t at = 0;
    for (std::size_t i = 0; i < plan->exprs.size(); ++i) {
      const plan::ExprPtr& expr = plan->exprs[i];
      if (plan->output[i].hidden) {
        continue;
      }
      if (at == visible.size() || expr->kind != plan::ExprKind::kAttribute || expr->attribute.id != visible[at]->id ||
          plan->output[i].name != visible[at]->name) {
        return nullptr;
      }
      ++at;
    }
    if (at != visible.size()) {
      return nullptr;
    }
    plan = child;
  }
  return plan->kind == plan::PlanKind::kTable ? plan : nullptr;
}

bool ReadsDelta(const plan::PlanPtr& plan) {
  return (plan->kind == plan::PlanKind::kTable && plan->table != nullptr && plan->table->provider() == "delta") ||
         std::any_of(plan->children.begin(), plan->children.end(), ReadsDelta);
}

}  // namespace

Result<Executor::ModifyTarget> Executor::TargetOfModify(const std::vector<std::string>& parts,
                                                        const std::optional<std::string>& alias,
                                                        SessionResolver& resolver, const std::string& what) {
  const bool temporary = resolver.FindTemporaryView(parts) != nullptr;
  bool is_view = temporary;
  if (!temporary) {
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
    is_view = target.row && target.row->kind == catalog::TableKind::kView;
  }
  if (is_view) {
    FLEUVE_ASSIGN(const plan::ResolvedTable view, resolver.ResolveTable(parts, {}, false));
    if (!ReadsDelta(view.view_plan)) {
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                   "The feature is not supported: Table " + QuoteParts(parts) + " does not support " + what + ".")
          .Family(ErrorFamily::kAnalysis);
    }
    if (!temporary) {
      return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_SOURCE",
                   what + " destination only supports Delta sources: " + QuoteParts(parts) + " is a view.")
          .With("operation", what)
          .With("plan", QuoteParts(parts));
    }
    const plan::PlanPtr whole = WholeTable(view.view_plan);
    const auto table = whole == nullptr ? nullptr : std::dynamic_pointer_cast<const delta::DeltaTable>(whole->table);
    if (table == nullptr) {
      return Error(ErrorKind::kUnsupported, "DELTA_UNEXPECTED_PARTIAL_SCAN",
                   "Expect a full scan of a Delta table, but the view " + QuoteParts(parts) +
                       " shows only a part of one, or computes columns.")
          .With("path", QuoteParts(parts));
    }
    ModifyTarget out;
    out.table.location = table->snapshot()->location();
    out.table.name = table->name();
    out.leaf = LeafOf(table, alias ? std::vector<std::string>{*alias} : parts);
    return out;
  }
  ModifyTarget out;
  FLEUVE_ASSIGN(out.table, DeltaTarget(parts, resolver, what));
  FLEUVE_ASSIGN(out.leaf, TableLeaf(parts, alias, resolver));
  return out;
}

namespace {

bool IsDefault(const sc::Expression& expression) {
  if (!expression.has_extension()) {
    return false;
  }
  const auto extension = pb::Unpack<pb::ExpressionExtension>(expression.extension());
  return extension && extension->has_default_value();
}

/// The default of a column as an expression; NULL where it has none.
sc::Expression DefaultOf(const types::Schema& schema, const std::string& column) {
  sc::Expression expression;
  const auto index = types::FieldIndex(schema, column);
  const Json* text = index ? schema.fields()[*index].metadata.Find("CURRENT_DEFAULT") : nullptr;
  if (text != nullptr && !text->AsString().empty()) {
    expression.mutable_expression_string()->set_expression(text->AsString());
  } else {
    expression.mutable_literal()->mutable_null()->mutable_null();
  }
  return expression;
}

}  // namespace

Result<std::optional<sc::Relation>> Executor::FillDefaults(const pb::Insert& insert, SessionResolver& resolver) {
  if (!insert.query().has_extension()) {
    return std::optional<sc::Relation>();
  }
  auto extension = pb::Unpack<pb::RelationExtension>(insert.query().extension());
  if (!extension || !extension->has_inline_table()) {
    return std::optional<sc::Relation>();
  }
  bool any = false;
  for (const auto& row : extension->inline_table().rows()) {
    for (const sc::Expression& value : row.values()) {
      any = any || IsDefault(value);
    }
  }
  if (!any) {
    return std::optional<sc::Relation>();
  }
  FLEUVE_ASSIGN(const plan::PlanPtr leaf, TableLeaf(PartsOf(insert.table()), std::nullopt, resolver));
  const types::Schema schema = plan::SchemaOf(*leaf);
  std::vector<std::string> columns(insert.columns().begin(), insert.columns().end());
  if (columns.empty()) {
    for (const types::StructField& field : schema.fields()) {
      bool fixed = false;
      for (const auto& item : insert.partition().items()) {
        fixed = fixed || (item.has_value() && EqualsIgnoreAsciiCase(item.column(), field.name));
      }
      if (!fixed) {
        columns.push_back(field.name);
      }
    }
  }
  for (auto& row : *extension->mutable_inline_table()->mutable_rows()) {
    for (int i = 0; i < row.values_size(); ++i) {
      if (IsDefault(row.values(i)) && static_cast<std::size_t>(i) < columns.size()) {
        *row.mutable_values(i) = DefaultOf(schema, columns[static_cast<std::size_t>(i)]);
      }
    }
  }
  sc::Relation relation = insert.query();
  pb::Pack(*extension, relation.mutable_extension());
  return std::optional<sc::Relation>(std::move(relation));
}

Result<RowsResult> Executor::Insert(const pb::Insert& insert, SessionResolver& resolver) {
  if (insert.has_directory()) {
    return Error::Unsupported("INSERT OVERWRITE DIRECTORY");
  }
  if (!insert.replace_using().empty()) {
    return Error::Unsupported("INSERT ... REPLACE USING");
  }
  if (insert.if_not_exists()) {
    return Error::Unsupported("INSERT OVERWRITE ... IF NOT EXISTS");
  }
  FLEUVE_ASSIGN(const std::optional<sc::Relation> filled, FillDefaults(insert, resolver));
  FLEUVE_ASSIGN(const plan::PlanPtr input, AnalyzeWith(resolver, filled ? *filled : insert.query()));
  if (input->is_streaming) {
    return Error(
        ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3102",
        "Queries with streaming sources must be executed with writeStream.start(), or from a streaming table or flow "
        "definition within a Spark Declarative Pipeline.;");
  }
  std::vector<std::pair<std::string, std::optional<Value>>> partitions;
  for (const auto& item : insert.partition().items()) {
    std::optional<Value> value;
    if (item.has_value()) {
      FLEUVE_ASSIGN(const plan::ExprPtr expr,
                    plan::AnalyzeExpression(item.value(), RowsLeaf(DataType::Struct({}), {}), resolver));
      FLEUVE_ASSIGN(const plan::PlanPtr leaf, TableLeaf(PartsOf(insert.table()), std::nullopt, resolver));
      const types::Schema schema = plan::SchemaOf(*leaf);
      const auto index = types::FieldIndex(schema, item.column());
      if (!index) {
        return Error(ErrorKind::kInvalidArgument, "NON_PARTITION_COLUMN",
                     "PARTITION clause cannot contain the non-partition column: " +
                         types::QuoteIdentifier(item.column()) + ".")
            .With("columnName", types::QuoteIdentifier(item.column()));
      }
      // The constant in the partition column's type, computed as any other expression.
      FLEUVE_ASSIGN(const plan::ExprPtr cast, plan::MakeCast(expr, schema.fields()[*index].type, resolver.Config()));
      FLEUVE_ASSIGN(value, ValueOf(cast));
    }
    partitions.emplace_back(item.column(), std::move(value));
  }
  FLEUVE_TRY(InsertRows(PartsOf(insert.table()), resolver, input, [&](tables::WriteSpec* spec) {
    spec->mode =
        insert.overwrite() || insert.has_replace_where() ? tables::SaveMode::kOverwrite : tables::SaveMode::kAppend;
    spec->match = insert.by_name() ? tables::ColumnMatch::kByName : tables::ColumnMatch::kByPosition;
    spec->options = ToOptions(insert.options());
    if (insert.schema_evolution()) {
      spec->options["mergeSchema"] = "true";
    }
    spec->insert_columns.assign(insert.columns().begin(), insert.columns().end());
    spec->static_partitions = partitions;
    spec->is_insert = true;
    if (insert.has_replace_where()) {
      spec->replace_where = insert.replace_where_sql();
    }
  }));
  return Nothing();
}

namespace {

Result<std::vector<tables::Assignment>> AssignmentsOf(const google::protobuf::RepeatedPtrField<pb::Assignment>& list,
                                                      const plan::PlanPtr& scope, const plan::PlanPtr& target,
                                                      SessionResolver& resolver) {
  std::vector<tables::Assignment> assignments;
  for (const pb::Assignment& item : list) {
    tables::Assignment assignment;
    assignment.path = PartsOf(item.column());
    if (IsDefault(item.value())) {
      if (target == nullptr) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_UNRESOLVED_EXPRESSION",
                     "Cannot resolve DEFAULT in a MERGE clause.");
      }
      FLEUVE_ASSIGN(assignment.value, plan::AnalyzeExpression(
                                          DefaultOf(plan::SchemaOf(*target), assignment.path.back()), scope, resolver));
    } else {
      FLEUVE_ASSIGN(assignment.value, plan::AnalyzeExpression(item.value(), scope, resolver));
    }
    assignments.push_back(std::move(assignment));
  }
  return assignments;
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

}  // namespace

Result<RowsResult> Executor::ModifyStatement(const pb::Command& command, SessionResolver& resolver) {
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  if (command.has_truncate()) {
    const pb::Truncate& truncate = command.truncate();
    if (truncate.has_partition()) {
      return Error::Unsupported("TRUNCATE TABLE ... PARTITION");
    }
    const std::vector<std::string> parts = PartsOf(truncate.table());
    FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(parts, resolver, "TRUNCATE TABLE"));
    FLEUVE_ASSIGN(const plan::PlanPtr leaf, TableLeaf(parts, std::nullopt, resolver));
    FLEUVE_TRY(tables::TruncateTable(context, table, leaf));
    return Nothing();
  }
  if (command.has_delete_()) {
    const pb::Delete& remove = command.delete_();
    const std::vector<std::string> parts = PartsOf(remove.table());
    FLEUVE_ASSIGN(
        const ModifyTarget target,
        TargetOfModify(parts, remove.has_alias() ? std::optional(remove.alias()) : std::nullopt, resolver, "DELETE"));
    plan::ExprPtr condition;
    if (remove.has_condition()) {
      FLEUVE_ASSIGN(condition, plan::AnalyzeExpression(remove.condition(), target.leaf, resolver));
    }
    return tables::DeleteFrom(context, target.table, target.leaf, condition);
  }
  const pb::Update& update = command.update();
  const std::vector<std::string> parts = PartsOf(update.table());
  FLEUVE_ASSIGN(
      const ModifyTarget target,
      TargetOfModify(parts, update.has_alias() ? std::optional(update.alias()) : std::nullopt, resolver, "UPDATE"));
  const plan::PlanPtr& leaf = target.leaf;
  plan::ExprPtr condition;
  if (update.has_condition()) {
    FLEUVE_ASSIGN(condition, plan::AnalyzeExpression(update.condition(), leaf, resolver));
  }
  FLEUVE_ASSIGN(const auto assignments, AssignmentsOf(update.assignments(), leaf, leaf, resolver));
  return tables::UpdateTable(context, target.table, leaf, assignments, condition);
}

namespace {

/// Columns that MERGE cannot resolve have a condition of their own.
template <typename T>
Result<T> OfMerge(Result<T> result) {
  if (!result.ok() && result.error().condition().starts_with("UNRESOLVED_COLUMN")) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_UNRESOLVED_EXPRESSION", result.error().message())
        .CausedBy(result.error());
  }
  return result;
}

}  // namespace

namespace {

/// Delta's own condition where a clause names a column that its rows do not have.
Error MergeError(Error error) {
  if (!error.condition().starts_with("UNRESOLVED_COLUMN")) {
    return error;
  }
  std::string name;
  for (const auto& [key, value] : error.parameters()) {
    name = key == "objectName" ? value : name;
  }
  return Error(ErrorKind::kInvalidArgument, "DELTA_MERGE_UNRESOLVED_EXPRESSION",
               "Cannot resolve " + name + " in a clause of MERGE: " + error.message())
      .With("sqlExpr", name);
}

}  // namespace

Result<RowsResult> Executor::Merge(const pb::Merge& merge, SessionResolver& resolver) {
  auto outcome = MergeStatement(merge, resolver);
  return outcome.ok() ? std::move(outcome) : Result<RowsResult>(MergeError(outcome.error()));
}

Result<RowsResult> Executor::MergeStatement(const pb::Merge& merge, SessionResolver& resolver) {
  const std::vector<std::string> parts = PartsOf(merge.table());
  FLEUVE_ASSIGN(const ModifyTarget target,
                TargetOfModify(parts, merge.has_alias() ? std::optional(merge.alias()) : std::nullopt, resolver,
                               "MERGE INTO TABLE"));
  tables::MergeSpec spec;
  spec.target = target.leaf;
  FLEUVE_ASSIGN(spec.source, AnalyzeWith(resolver, merge.source()));
  const plan::PlanPtr both = BothSides(spec.target, spec.source);
  FLEUVE_ASSIGN(spec.condition, OfMerge(plan::AnalyzeExpression(merge.condition(), both, resolver)));
  spec.schema_evolution = merge.schema_evolution();
  for (const pb::Merge::Clause& clause : merge.clauses()) {
    tables::MergeClause out;
    out.kind = clause.action() == pb::Merge::Clause::DELETE   ? tables::MergeClause::Kind::kDelete
               : clause.action() == pb::Merge::Clause::UPDATE ? tables::MergeClause::Kind::kUpdate
                                                              : tables::MergeClause::Kind::kInsert;
    out.star = clause.star();
    const plan::PlanPtr& scope = clause.when() == pb::Merge::Clause::MATCHED       ? both
                                 : clause.when() == pb::Merge::Clause::NOT_MATCHED ? spec.source
                                                                                   : spec.target;
    if (clause.has_condition()) {
      FLEUVE_ASSIGN(out.condition, OfMerge(plan::AnalyzeExpression(clause.condition(), scope, resolver)));
    }
    FLEUVE_ASSIGN(out.assignments, OfMerge(AssignmentsOf(clause.assignments(), scope, nullptr, resolver)));
    (clause.when() == pb::Merge::Clause::MATCHED       ? spec.matched
     : clause.when() == pb::Merge::Clause::NOT_MATCHED ? spec.not_matched
                                                       : spec.not_matched_by_source)
        .push_back(std::move(out));
  }
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  return tables::MergeInto(context, target.table, spec);
}

Result<void> Executor::MergeCommand(const sc::MergeIntoTableCommand& command) {
  SessionResolver resolver(state_);
  if (command.match_actions().empty() && command.not_matched_actions().empty() &&
      command.not_matched_by_source_actions().empty()) {
    return Error(ErrorKind::kInvalidArgument, "NO_MERGE_ACTION_SPECIFIED",
                 "df.mergeInto needs to be followed by at least one of whenMatched, whenNotMatched and "
                 "whenNotMatchedBySource.");
  }
  FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(command.target_table_name()));
  FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(parts, resolver, "MERGE INTO TABLE"));
  tables::MergeSpec spec;
  FLEUVE_ASSIGN(spec.target, TableLeaf(parts, std::nullopt, resolver));
  FLEUVE_ASSIGN(spec.source, AnalyzeWith(resolver, command.source_table_plan()));
  const plan::PlanPtr both = BothSides(spec.target, spec.source);
  FLEUVE_ASSIGN(spec.condition, plan::AnalyzeExpression(command.merge_condition(), both, resolver));
  spec.schema_evolution = command.with_schema_evolution();
  const auto clauses = [&](const google::protobuf::RepeatedPtrField<sc::Expression>& actions,
                           const plan::PlanPtr& scope, std::vector<tables::MergeClause>* out) -> Result<void> {
    for (const sc::Expression& action : actions) {
      if (!action.has_merge_action()) {
        return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "A merge action is expected.");
      }
      const sc::MergeAction& merge = action.merge_action();
      tables::MergeClause clause;
      switch (merge.action_type()) {
        case sc::MergeAction::ACTION_TYPE_DELETE:
          clause.kind = tables::MergeClause::Kind::kDelete;
          break;
        case sc::MergeAction::ACTION_TYPE_INSERT:
          clause.kind = tables::MergeClause::Kind::kInsert;
          break;
        case sc::MergeAction::ACTION_TYPE_INSERT_STAR:
          clause.kind = tables::MergeClause::Kind::kInsert;
          clause.star = true;
          break;
        case sc::MergeAction::ACTION_TYPE_UPDATE:
          clause.kind = tables::MergeClause::Kind::kUpdate;
          break;
        case sc::MergeAction::ACTION_TYPE_UPDATE_STAR:
          clause.kind = tables::MergeClause::Kind::kUpdate;
          clause.star = true;
          break;
        default:
          return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "The merge action has no type.");
      }
      if (merge.has_condition()) {
        FLEUVE_ASSIGN(clause.condition, plan::AnalyzeExpression(merge.condition(), scope, resolver));
      }
      for (const auto& item : merge.assignments()) {
        tables::Assignment assignment;
        if (item.key().has_unresolved_attribute()) {
          FLEUVE_ASSIGN(assignment.path,
                        sql::ParseMultipartName(item.key().unresolved_attribute().unparsed_identifier()));
        } else if (item.key().has_expression_string()) {
          FLEUVE_ASSIGN(assignment.path, sql::ParseMultipartName(item.key().expression_string().expression()));
        } else {
          return Error::Unsupported("a merge assignment whose key is no column name");
        }
        FLEUVE_ASSIGN(assignment.value, plan::AnalyzeExpression(item.value(), scope, resolver));
        clause.assignments.push_back(std::move(assignment));
      }
      out->push_back(std::move(clause));
    }
    return {};
  };
  FLEUVE_TRY(clauses(command.match_actions(), both, &spec.matched));
  FLEUVE_TRY(clauses(command.not_matched_actions(), spec.source, &spec.not_matched));
  FLEUVE_TRY(clauses(command.not_matched_by_source_actions(), spec.target, &spec.not_matched_by_source));
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  FLEUVE_TRY(tables::MergeInto(context, table, spec));
  return {};
}

}  // namespace fleuve::session
