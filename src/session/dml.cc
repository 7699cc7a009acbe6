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

namespace {

/// Commands of Delta alone, which say so where the table is none.
bool IsOfDelta(const std::string& what) {
  return what == "OPTIMIZE" || what == "VACUUM" || what == "RESTORE" || what == "REORG TABLE" || what == "GENERATE" ||
         what == "DESCRIBE HISTORY" || what == "DESCRIBE DETAIL";
}

Error NotDelta(const std::string& condition, const std::string& what, const std::string& name) {
  Error error =
      Error(ErrorKind::kUnsupported, condition, name + " is not a Delta table. " + what + " is only for those.")
          .With("operation", what);
  return condition == "DELTA_ONLY_OPERATION" ? error : std::move(error).With("tableName", name);
}

Error ViewNotTable(const std::string& what, const std::vector<std::string>& name) {
  return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
               "'" + what + "' expects a table but " + QuoteParts(name) + " is a view.")
      .With("operation", what)
      .With("viewName", QuoteParts(name));
}

}  // namespace

Result<tables::TableRef> Executor::DeltaTarget(const std::vector<std::string>& parts, SessionResolver& resolver,
                                               const std::string& what) {
  if (resolver.FindTemporaryView(parts) != nullptr) {
    return what == "RESTORE" ? NotDelta("DELTA_ONLY_OPERATION", what, QuoteParts(parts)) : ViewNotTable(what, parts);
  }
  FLEUVE_ASSIGN(TableTarget target, resolver.Target(parts, true));
  if (target.row && target.row->kind == catalog::TableKind::kView) {
    if (what == "RESTORE") {
      return NotDelta("DELTA_ONLY_OPERATION", what, QuoteParts(parts));
    }
    return ViewNotTable(what, {"spark_catalog", target.database, target.name});
  }
  const bool is_modification = what == "DELETE" || what == "UPDATE" || what == "MERGE INTO TABLE";
  if (target.is_path && target.provider == "delta" && PathWithoutVersion(parts[1]) != parts[1]) {
    if (is_modification) {
      return OldVersionRefused(parts[1]);
    }
    if (what == "OPTIMIZE" || what == "VACUUM" || what == "DESCRIBE HISTORY") {
      FLEUVE_ASSIGN(target, resolver.Target({parts[0], PathWithoutVersion(parts[1])}, true));
    }
  }
  if (target.provider != "delta") {
    if (target.is_path && !is_modification) {
      return TableNotFound(parts);
    }
    if (IsOfDelta(what)) {
      return NotDelta(what == "REORG TABLE" ? "DELTA_NOT_A_DELTA_TABLE" : "DELTA_ONLY_OPERATION", what, target.display);
    }
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                 "The feature is not supported: Table " + QuoteParts(Split(target.display, '.')) +
                     " does not support " + what + ".")
        .Family(ErrorFamily::kAnalysis);
  }
  if (target.is_path && !is_modification && what != "RESTORE" && what != "DESCRIBE DETAIL") {
    FLEUVE_ASSIGN(const bool exists, state_.services().logs->Open(target.location)->Exists());
    if (!exists && what == "DESCRIBE HISTORY") {
      return NotDelta("DELTA_TABLE_ONLY_OPERATION", what, types::QuoteIdentifier(parts[1]));
    }
    if (!exists && what == "REORG TABLE") {
      return NotDelta("DELTA_ONLY_OPERATION", what, target.display);
    }
    if (!exists) {
      return Error(ErrorKind::kNotFound, "DELTA_MISSING_DELTA_TABLE", target.display + " is not a Delta table.")
          .With("tableName", types::QuoteIdentifier(parts[1]));
    }
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

/// A view made of projections above one table.
struct ProjectedTable {
  plan::PlanPtr table;                     ///< null where the view is made of something else
  std::vector<plan::Attribute> shown;      ///< the table's columns that it shows under their own names
  std::vector<std::string> foreign_names;  ///< of its columns that the table does not have
  bool only_columns = true;                ///< no column is computed or takes another one's name
  bool in_order = false;                   ///< the shown columns are all of the table's, in its order
};

ProjectedTable Projected(const plan::PlanPtr& view) {
  ProjectedTable out;
  plan::PlanPtr at = view;
  while (at->kind == plan::PlanKind::kProject) {
    at = at->children[0];
  }
  if (at->kind != plan::PlanKind::kTable) {
    return out;
  }
  out.table = at;
  // What each name of a level stands for: an attribute of the table, or something else.
  const auto column = [&](plan::AttributeId id) -> const plan::Attribute* {
    for (const plan::Attribute& attribute : at->output) {
      if (attribute.id == id && !attribute.hidden) {
        return &attribute;
      }
    }
    return nullptr;
  };
  for (const plan::Attribute& visible : view->output) {
    if (visible.hidden) {
      continue;
    }
    // Down the projections as long as the expression is a plain column.
    plan::AttributeId id = visible.id;
    bool plain = true;
    for (plan::PlanPtr level = view; plain && level->kind == plan::PlanKind::kProject; level = level->children[0]) {
      for (std::size_t i = 0; i < level->output.size(); ++i) {
        if (level->output[i].id == id) {
          plain = level->exprs[i]->kind == plan::ExprKind::kAttribute;
          id = plain ? level->exprs[i]->attribute.id : id;
          break;
        }
      }
    }
    const bool known = std::any_of(at->output.begin(), at->output.end(), [&](const plan::Attribute& attribute) {
      return !attribute.hidden && EqualsIgnoreAsciiCase(attribute.name, visible.name);
    });
    if (!known) {
      out.foreign_names.push_back(visible.name);
    }
    const plan::Attribute* source = plain ? column(id) : nullptr;
    if (source == nullptr || source->name != visible.name) {
      out.only_columns = false;
    } else {
      out.shown.push_back(*source);
    }
  }
  const auto visible = std::count_if(at->output.begin(), at->output.end(), [](const auto& a) { return !a.hidden; });
  out.in_order = out.only_columns && static_cast<std::ptrdiff_t>(out.shown.size()) == visible;
  std::size_t next = 0;
  for (const plan::Attribute& attribute : at->output) {
    if (!attribute.hidden && out.in_order) {
      out.in_order = out.shown[next++].id == attribute.id;
    }
  }
  return out;
}

bool ReadsDelta(const plan::PlanPtr& plan) {
  return (plan->kind == plan::PlanKind::kTable && plan->table != nullptr && plan->table->provider() == "delta") ||
         std::any_of(plan->children.begin(), plan->children.end(), ReadsDelta);
}

Error PartialScan(const std::vector<std::string>& parts) {
  return Error(ErrorKind::kUnsupported, "DELTA_UNEXPECTED_PARTIAL_SCAN",
               "Expect a full scan of a Delta table, but the view " + QuoteParts(parts) +
                   " shows only a part of one, or computes columns.")
      .With("path", QuoteParts(parts));
}

/// The leaf with only those of its columns that bear the names of `shown`.
plan::PlanPtr Narrowed(const plan::PlanPtr& leaf, const std::vector<plan::Attribute>& shown) {
  auto narrow = std::make_shared<plan::LogicalPlan>(*leaf);
  std::erase_if(narrow->output, [&](const plan::Attribute& attribute) {
    return std::none_of(shown.begin(), shown.end(),
                        [&](const plan::Attribute& one) { return one.name == attribute.name; });
  });
  return narrow;
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
    const ProjectedTable shown = Projected(view.view_plan);
    const auto table =
        shown.table == nullptr ? nullptr : std::dynamic_pointer_cast<const delta::DeltaTable>(shown.table->table);
    if (table == nullptr) {
      return PartialScan(parts);
    }
    const std::size_t columns = table->schema().fields().size();
    if (what == "MERGE INTO TABLE") {
      if (shown.shown.size() + shown.foreign_names.size() != columns && !shown.in_order) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
                     "The view " + QuoteParts(parts) + " does not have the columns of its Delta table.");
      }
      if (!shown.in_order) {
        return PartialScan(parts);
      }
    }
    if (!shown.foreign_names.empty()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CANNOT_RESOLVE_COLUMN",
                   "Can't resolve column " + shown.foreign_names[0] + " of the view " + QuoteParts(parts) +
                       " in its Delta table.")
          .With("columnName", shown.foreign_names[0])
          .With("schema", table->schema().SimpleString());
    }
    // A row that is deleted goes whole; of one that is updated every column must be known.
    if (!shown.only_columns || (what == "UPDATE" && shown.shown.size() != columns)) {
      return PartialScan(parts);
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

/// Whether a column takes no NULL and has no default.
bool MustHaveValue(const types::Schema& schema, const std::string& column) {
  const auto index = types::FieldIndex(schema, column);
  return index && !schema.fields()[*index].nullable &&
         schema.fields()[*index].metadata.Find("CURRENT_DEFAULT") == nullptr;
}

/// Statements that change rows say it in one way where a generator stands.
template <typename T>
Result<T> OutsideSelect(Result<T> result) {
  if (result.ok() || result.error().condition() != "UNSUPPORTED_GENERATOR.NESTED_IN_EXPRESSIONS") {
    return result;
  }
  return Error(ErrorKind::kUnsupported, "UNSUPPORTED_GENERATOR.OUTSIDE_SELECT",
               "The generator is not supported outside the SELECT clause.")
      .Family(ErrorFamily::kAnalysis);
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
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.INSERT_PARTITION_SPEC_IF_NOT_EXISTS",
                 "The feature is not supported: INSERT INTO " + QuoteParts(PartsOf(insert.table())) +
                     " with IF NOT EXISTS in the PARTITION spec.")
        .With("tableName", QuoteParts(PartsOf(insert.table())))
        .Family(ErrorFamily::kAnalysis);
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
        return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITHOUT_SUGGESTION",
                     "Cannot resolve DEFAULT in a MERGE clause.")
            .With("objectName", "DEFAULT");
      }
      if (MustHaveValue(plan::SchemaOf(*target), assignment.path.back())) {
        return Error(ErrorKind::kInvalidArgument, "NO_DEFAULT_COLUMN_VALUE_AVAILABLE",
                     "The column " + assignment.path.back() + " is not nullable and has no default value.")
            .With("colName", types::QuoteIdentifier(assignment.path.back()));
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
    const std::vector<std::string> parts = PartsOf(truncate.table());
    FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(parts, resolver, "TRUNCATE TABLE"));
    if (truncate.has_partition()) {
      return Error(ErrorKind::kUnsupported, "DELTA_TRUNCATE_TABLE_PARTITION_NOT_SUPPORTED",
                   "Operation not allowed: TRUNCATE TABLE on Delta tables does not support partition predicates; use "
                   "DELETE to delete specific partitions or rows.");
    }
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
    plan::PlanPtr scope = target.leaf;
    if (resolver.FindTemporaryView(parts) != nullptr) {
      FLEUVE_ASSIGN(const plan::ResolvedTable view, resolver.ResolveTable(parts, {}, false));
      scope = Narrowed(target.leaf, Projected(view.view_plan).shown);
    }
    plan::ExprPtr condition;
    if (remove.has_condition()) {
      FLEUVE_ASSIGN(condition, OutsideSelect(plan::AnalyzeExpression(remove.condition(), scope, resolver)));
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
  FLEUVE_ASSIGN(const auto assignments, OutsideSelect(AssignmentsOf(update.assignments(), leaf, leaf, resolver)));
  return tables::UpdateTable(context, target.table, leaf, assignments, condition);
}

namespace {

/// A part of MERGE, analyzed: Delta has a condition of its own where it names a column that its rows do not have.
template <typename T>
Result<T> OfMerge(Result<T> result, const std::string& where, const plan::PlanPtr& rows) {
  if (result.ok() || !result.error().condition().starts_with("UNRESOLVED_COLUMN")) {
    return OutsideSelect(std::move(result));
  }
  std::string name;
  for (const auto& [key, value] : result.error().parameters()) {
    name = key == "objectName" ? value : name;
  }
  std::erase(name, '`');
  return tables::UnresolvedInMerge(name, where, *rows).CausedBy(result.error());
}

}  // namespace

Result<RowsResult> Executor::Merge(const pb::Merge& merge, SessionResolver& resolver) {
  const std::vector<std::string> parts = PartsOf(merge.table());
  FLEUVE_ASSIGN(const ModifyTarget target,
                TargetOfModify(parts, merge.has_alias() ? std::optional(merge.alias()) : std::nullopt, resolver,
                               "MERGE INTO TABLE"));
  tables::MergeSpec spec;
  spec.target = target.leaf;
  FLEUVE_ASSIGN(spec.source, AnalyzeWith(resolver, merge.source()));
  const plan::PlanPtr both = BothSides(spec.target, spec.source);
  FLEUVE_ASSIGN(spec.condition,
                OfMerge(plan::AnalyzeExpression(merge.condition(), both, resolver), "search condition", both));
  spec.schema_evolution = merge.schema_evolution();
  for (const pb::Merge::Clause& clause : merge.clauses()) {
    tables::MergeClause out;
    out.kind = clause.action() == pb::Merge::Clause::DELETE   ? tables::MergeClause::Kind::kDelete
               : clause.action() == pb::Merge::Clause::UPDATE ? tables::MergeClause::Kind::kUpdate
                                                              : tables::MergeClause::Kind::kInsert;
    out.star = clause.star();
    const std::string action = tables::ActionOf(out);
    const plan::PlanPtr& scope = clause.when() == pb::Merge::Clause::MATCHED       ? both
                                 : clause.when() == pb::Merge::Clause::NOT_MATCHED ? spec.source
                                                                                   : spec.target;
    if (clause.has_condition()) {
      FLEUVE_ASSIGN(out.condition, OfMerge(plan::AnalyzeExpression(clause.condition(), scope, resolver),
                                           action + " condition", scope));
    }
    FLEUVE_ASSIGN(out.assignments,
                  OfMerge(AssignmentsOf(clause.assignments(), scope, nullptr, resolver), action + " clause", scope));
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
  FLEUVE_ASSIGN(spec.condition,
                OfMerge(plan::AnalyzeExpression(command.merge_condition(), both, resolver), "search condition", both));
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
      const std::string verb = tables::ActionOf(clause);
      if (merge.has_condition()) {
        FLEUVE_ASSIGN(clause.condition,
                      OfMerge(plan::AnalyzeExpression(merge.condition(), scope, resolver), verb + " condition", scope));
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
        FLEUVE_ASSIGN(assignment.value,
                      OfMerge(plan::AnalyzeExpression(item.value(), scope, resolver), verb + " clause", scope));
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
