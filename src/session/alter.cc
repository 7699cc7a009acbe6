#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "tables/commands.h"

namespace fleuve::session {

using types::DataType;
using types::StructField;

Result<RowsResult> Executor::DropTable(const std::vector<std::string>& parts, bool if_exists, bool view,
                                       SessionResolver& resolver) {
  if (resolver.FindTemporaryView(parts) != nullptr) {
    if (parts.size() == 1 ? !state_.DropView(parts[0]) : !state_.DropGlobalView(parts[1])) {
      return TableNotFound(parts);
    }
    return Nothing();
  }
  auto target = resolver.Target(parts, true);
  if (!target.ok()) {
    if (if_exists && target.error().kind() == ErrorKind::kNotFound) {
      return Nothing();
    }
    return target.error();
  }
  if (target->is_path) {
    return Error::Unsupported("DROP TABLE of a path");
  }
  const bool is_view = target->row->kind == catalog::TableKind::kView;
  if (is_view != view) {
    const std::string name = QuoteParts({"spark_catalog", target->database, target->name});
    return view ? Error(ErrorKind::kInvalidArgument, "WRONG_COMMAND_FOR_OBJECT_TYPE",
                        "The operation DROP VIEW requires a VIEW. But " + name +
                            " is a EXTERNAL or MANAGED. Use DROP TABLE instead.")
                : Error(ErrorKind::kInvalidArgument, "WRONG_COMMAND_FOR_OBJECT_TYPE",
                        "The operation DROP TABLE requires a EXTERNAL or MANAGED. But " + name +
                            " is a VIEW. Use DROP VIEW instead.");
  }
  FLEUVE_TRY(state_.services().catalog->DropTable(target->database, target->name));
  state_.CacheTable(target->display, false);
  return Nothing();
}

Result<RowsResult> Executor::CreateViewStatement(const pb::CreateView& create, const std::string& text,
                                                 SessionResolver& resolver) {
  (void)text;
  const std::vector<std::string> parts = PartsOf(create.view());
  if (create.has_provider()) {
    if (!create.temporary() || parts.size() != 1) {
      return Error::Unsupported("CREATE VIEW ... USING");
    }
    std::optional<types::Schema> schema;
    if (create.has_schema()) {
      FLEUVE_ASSIGN(schema, sql::ParseColumnList(create.schema()));
    }
    FLEUVE_ASSIGN(const plan::ResolvedTable table,
                  resolver.ResolveDataSource(create.provider(), schema, ToOptions(create.options()), {}, {}, false));
    if (state_.FindView(parts[0]) != nullptr && !create.or_replace()) {
      return TempViewExists(parts);
    }
    state_.PutView(parts[0], LeafOf(table.table, {}));
    return Nothing();
  }
  FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeWith(resolver, create.query()));
  std::vector<plan::Attribute> visible;
  for (const plan::Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      visible.push_back(attribute);
    }
  }
  if (!create.columns().empty()) {
    const auto given = static_cast<std::size_t>(create.columns_size());
    if (given != visible.size()) {
      return Error(ErrorKind::kInvalidArgument,
                   given > visible.size() ? "CREATE_VIEW_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"
                                          : "CREATE_VIEW_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
                   "Cannot create view " + QuoteParts(parts) + ", the reason is that " + std::to_string(given) +
                       " view columns stand against " + std::to_string(visible.size()) + " data columns.")
          .With("viewName", QuoteParts(parts));
    }
    std::vector<plan::ExprPtr> exprs;
    std::vector<plan::Attribute> output;
    for (std::size_t i = 0; i < given; ++i) {
      exprs.push_back(plan::MakeAttribute(visible[i]));
      plan::Attribute renamed = visible[i];
      renamed.id = plan::NewAttributeId();
      renamed.name = create.columns(static_cast<int>(i)).name();
      renamed.qualifier.clear();
      if (create.columns(static_cast<int>(i)).has_comment()) {
        renamed.metadata.Set("comment", Json(create.columns(static_cast<int>(i)).comment()));
      }
      output.push_back(std::move(renamed));
    }
    plan = plan::MakeProject(plan, std::move(exprs), std::move(output));
  }
  for (std::size_t i = 0; i < visible.size(); ++i) {
    for (std::size_t j = 0; create.columns().empty() && j < i; ++j) {
      if (EqualsIgnoreAsciiCase(visible[i].name, visible[j].name)) {
        return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                     "The column " + types::QuoteIdentifier(visible[i].name) +
                         " already exists. Choose another name or rename the existing column.")
            .With("columnName", types::QuoteIdentifier(visible[i].name));
      }
    }
  }
  if (create.temporary()) {
    const bool global = create.global() || (parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "global_temp"));
    if (parts.size() > (global ? 2u : 1u)) {
      return Error(
          ErrorKind::kInvalidArgument, "TEMP_VIEW_NAME_TOO_MANY_NAME_PARTS",
          "CREATE TEMPORARY VIEW or the corresponding Dataset APIs only accept single-part view names, but got: " +
              QuoteParts(parts) + ".");
    }
    const std::string& name = parts.back();
    const bool exists = (global ? state_.FindGlobalView(name) : state_.FindView(name)) != nullptr;
    if (exists && !create.or_replace()) {
      if (create.if_not_exists()) {
        return Nothing();
      }
      return TempViewExists(global ? std::vector<std::string>{"global_temp", name} : parts);
    }
    const std::string full = global ? "global_temp." + AsciiLower(name) : AsciiLower(name);
    if (exists && resolver.used_views().contains(full)) {
      return Error(ErrorKind::kInvalidArgument, "RECURSIVE_VIEW",
                   "Recursive view " + QuoteParts(Split(full, '.')) + " detected (cycle: " +
                       QuoteParts(Split(full, '.')) + " -> " + QuoteParts(Split(full, '.')) + ").")
          .With("viewIdent", QuoteParts(Split(full, '.')));
    }
    auto view = std::make_shared<TemporaryView>();
    if (plan->is_streaming || resolver.HasLocalViews()) {
      // What the text alone cannot say again.
      view->plan = plan;
    } else {
      view->text = create.query_sql();
      view->database = resolver.database();
      view->schema = plan::SchemaOf(*plan);
    }
    if (global) {
      state_.PutGlobalView(name, std::move(view));
    } else {
      state_.PutView(name, std::move(view));
    }
    return Nothing();
  }
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, false));
  if (target.is_path) {
    return Error::Unsupported("CREATE VIEW with a path as its name");
  }
  if (!state_.services().catalog->GetDatabase(target.database).ok()) {
    return DatabaseNotFound({target.database});
  }
  if (target.row) {
    if (create.if_not_exists()) {
      return Nothing();
    }
    if (target.row->kind != catalog::TableKind::kView) {
      return create.or_replace() ? Error(ErrorKind::kInvalidArgument, "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
                                         "The table " + QuoteParts({"spark_catalog", target.database, target.name}) +
                                             " does not support CREATE OR REPLACE VIEW.")
                                 : TableExists(target.display);
    }
    if (!create.or_replace()) {
      return TableExists(target.display);
    }
  }
  if (const auto& used = resolver.used_views(); !used.empty()) {
    const std::string name = QuoteParts({"spark_catalog", target.database, target.name});
    const std::string other = QuoteParts(Split(*used.begin(), '.'));
    return Error(ErrorKind::kInvalidArgument, "INVALID_TEMP_OBJ_REFERENCE",
                 "Cannot create the persistent object " + name +
                     " of the type VIEW because it references to the temporary object " + other +
                     " of the type VIEW. Please make the temporary object " + other +
                     " persistent, or make the persistent object " + name + " temporary.")
        .With("objName", name)
        .With("obj", "VIEW")
        .With("tempObjName", other)
        .With("tempObj", "VIEW");
  }
  bool temporary = false;
  plan::VisitPlan(plan, [&](const plan::LogicalPlan& node) { temporary = temporary || node.is_streaming; });
  if (temporary) {
    return Error::Unsupported("permanent views over streams");
  }
  if (AsciiLower(target.name) != target.name) {
    return Error::Unsupported("a view name with capital letters where spark.sql.caseSensitive is true");
  }
  catalog::Table row;
  row.database = target.database;
  row.name = target.name;
  row.kind = catalog::TableKind::kView;
  row.comment = create.comment();
  row.properties = ToOptions(create.properties());
  row.view_text = create.query_sql();
  row.view_database = resolver.database();
  row.schema_json = plan::SchemaOf(*plan).ToJson().Dump();
  row.owner = state_.services().user;
  row.created_ms = state_.services().clock->NowMillis();
  FLEUVE_TRY(state_.services().catalog->CreateTable(std::move(row), target.row.has_value()));
  return Nothing();
}

Error TempViewExists(const std::vector<std::string>& parts) {
  return Error(ErrorKind::kAlreadyExists, "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
               "Cannot create the temporary view " + QuoteParts(parts) +
                   " because it already exists. Choose a different name, drop or replace the existing view, or add the "
                   "IF "
                   "NOT EXISTS clause to tolerate pre-existing views.")
      .With("relationName", QuoteParts(parts));
}

namespace {

tables::ColumnPosition PositionOf(bool first, const std::string& after) { return {first, after}; }

Result<std::vector<tables::NewColumn>> NewColumns(
    const google::protobuf::RepeatedPtrField<pb::ColumnDefinition>& list) {
  std::vector<tables::NewColumn> columns;
  for (const pb::ColumnDefinition& column : list) {
    tables::NewColumn out;
    out.path.assign(column.name().begin(), column.name().end());
    FLEUVE_ASSIGN(out.type, sql::ParseDataType(column.type()));
    out.nullable = !column.not_null();
    if (column.has_comment()) {
      out.comment = column.comment();
    }
    if (column.has_default_sql()) {
      out.default_sql = column.default_sql();
    }
    if (column.has_generated_sql() || column.has_identity()) {
      return Error::Unsupported("generated columns in ALTER TABLE");
    }
    out.position = PositionOf(column.first(), column.after());
    columns.push_back(std::move(out));
  }
  return columns;
}

}  // namespace

Result<RowsResult> Executor::AlterTable(const pb::AlterTable& alter, SessionResolver& resolver) {
  const std::vector<std::string> parts = PartsOf(alter.table());
  catalog::Catalog& catalog = *state_.services().catalog;
  const bool global = parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "global_temp");
  const TemporaryViewPtr temporary = global              ? state_.FindGlobalView(parts[1])
                                     : parts.size() == 1 ? state_.FindView(parts[0])
                                                         : nullptr;
  if (temporary != nullptr && alter.has_view_as()) {
    pb::CreateView create;
    *create.mutable_view() = alter.table();
    create.set_or_replace(true);
    create.set_temporary(true);
    create.set_global(global);
    *create.mutable_query() = alter.view_as().query();
    create.set_query_sql(alter.view_as().query_sql());
    return CreateViewStatement(create, alter.view_as().query_sql(), resolver);
  }
  if (temporary != nullptr && alter.has_rename()) {
    const std::vector<std::string> to = PartsOf(alter.rename().new_name());
    if ((global ? state_.FindGlobalView(to.back()) : state_.FindView(to.back())) != nullptr) {
      return TempViewExists(to);
    }
    if (global) {
      state_.PutGlobalView(to.back(), temporary);
      state_.DropGlobalView(parts.back());
    } else {
      state_.PutView(to.back(), temporary);
      state_.DropView(parts.back());
    }
    return Nothing();
  }
  if (temporary != nullptr && !alter.is_view()) {
    return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                 "'ALTER TABLE' expects a table but " + QuoteParts(parts) + " is a view.");
  }
  if (alter.has_rename()) {
    FLEUVE_ASSIGN(const TableTarget from, resolver.Target(parts, true));
    if (alter.is_view() && from.row && from.row->kind != catalog::TableKind::kView) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1123",
                   "Cannot rename a table with ALTER VIEW. Please use ALTER TABLE instead.");
    }
    std::vector<std::string> to = PartsOf(alter.rename().new_name());
    if (to.size() == 1 && !from.database.empty()) {
      to.insert(to.begin(), from.database);
    }
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(to, false));
    if (from.is_path || target.is_path) {
      return Error::Unsupported("ALTER TABLE ... RENAME of a path");
    }
    if (!from.database.empty() && from.database != target.database) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1073",
                   "RENAME TABLE source and destination databases do not match: '" + from.database + "' != '" +
                       target.database + "'.")
          .With("db", from.database)
          .With("newDb", target.database);
    }
    FLEUVE_TRY(catalog.RenameTable(from.database, from.name, target.database, target.name));
    return Nothing();
  }
  if (alter.has_view_as()) {
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
    if (!target.row || target.row->kind != catalog::TableKind::kView) {
      return Error(ErrorKind::kInvalidArgument, "EXPECT_VIEW_NOT_TABLE.NO_ALTERNATIVE",
                   "'ALTER VIEW ... AS' expects a view but " + QuoteParts(parts) + " is a table.");
    }
    FLEUVE_ASSIGN(const plan::PlanPtr plan, AnalyzeWith(resolver, alter.view_as().query()));
    catalog::Table row = *target.row;
    row.view_text = alter.view_as().query_sql();
    row.view_database = resolver.database();
    row.schema_json = plan::SchemaOf(*plan).ToJson().Dump();
    FLEUVE_TRY(catalog.AlterTable(row));
    return Nothing();
  }
  if (alter.is_view()) {
    FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
    catalog::Table row = *target.row;
    if (alter.has_set_properties()) {
      for (const auto& [key, value] : ToOptions(alter.set_properties().properties())) {
        row.properties[key] = value;
      }
    } else if (alter.has_unset_properties()) {
      for (const std::string& key : alter.unset_properties().keys()) {
        row.properties.erase(key);
      }
    } else {
      return Error::Unsupported("this ALTER VIEW statement");
    }
    FLEUVE_TRY(catalog.AlterTable(row));
    return Nothing();
  }
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
  if (alter.has_unsupported()) {
    if (alter.unsupported().ends_with(" INDEX")) {
      return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_1332",
                   alter.unsupported() + " is not supported in this table " + target.display + ".");
    }
    FLEUVE_TRY(NotForDelta(parts, alter.unsupported(), resolver));
    return Error::Unsupported(alter.unsupported());
  }
  if (target.provider != "delta" && target.row && (alter.has_set_properties() || alter.has_unset_properties())) {
    catalog::Table row = *target.row;
    for (const auto& [key, value] : ToOptions(alter.set_properties().properties())) {
      row.properties[key] = value;
    }
    for (const std::string& key : alter.unset_properties().keys()) {
      row.properties.erase(key);
    }
    FLEUVE_TRY(catalog.AlterTable(row));
    return Nothing();
  }
  FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(parts, resolver, "ALTER TABLE"));
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  switch (alter.kind_case()) {
    case pb::AlterTable::kAddColumns: {
      FLEUVE_ASSIGN(const std::vector<tables::NewColumn> columns, NewColumns(alter.add_columns().columns()));
      FLEUVE_TRY(tables::AddColumns(context, table, columns));
      return Nothing();
    }
    case pb::AlterTable::kDropColumns: {
      std::vector<std::vector<std::string>> paths;
      for (const pb::Name& column : alter.drop_columns().columns()) {
        paths.push_back(PartsOf(column));
      }
      FLEUVE_TRY(tables::DropColumns(context, table, paths, alter.drop_columns().if_exists()));
      return Nothing();
    }
    case pb::AlterTable::kRenameColumn:
      FLEUVE_TRY(tables::RenameColumn(context, table, PartsOf(alter.rename_column().column()),
                                      alter.rename_column().new_name()));
      return Nothing();
    case pb::AlterTable::kAlterColumn: {
      for (const auto& change : alter.alter_column().changes()) {
        if (change.sync_identity()) {
          FLEUVE_TRY(tables::SyncIdentity(context, table, PartsOf(change.column())));
          continue;
        }
        if (change.has_new_name() && !EqualsIgnoreAsciiCase(change.new_name(), PartsOf(change.column()).back())) {
          return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_0034",
                       "Operation not allowed: Renaming column is not supported in Hive-style ALTER COLUMN, please run "
                       "RENAME COLUMN instead.")
              .Family(ErrorFamily::kParse);
        }
        tables::ColumnChange out;
        out.path = PartsOf(change.column());
        if (change.has_type()) {
          FLEUVE_ASSIGN(out.type, sql::ParseDataType(change.type()));
        }
        if (change.set_not_null()) {
          out.nullable = false;
        } else if (change.drop_not_null()) {
          out.nullable = true;
        }
        if (change.has_comment()) {
          out.comment = change.comment();
        }
        if (change.has_default_sql()) {
          out.set_default = change.default_sql();
        }
        out.drop_default = change.drop_default();
        if (change.first() || change.has_after()) {
          out.position = PositionOf(change.first(), change.after());
        }
        FLEUVE_TRY(tables::AlterColumn(context, table, out));
      }
      return Nothing();
    }
    case pb::AlterTable::kClusterBy: {
      const auto& cluster = alter.cluster_by();
      if (cluster.auto_()) {
        return Error::Unsupported("ALTER TABLE ... CLUSTER BY AUTO");
      }
      std::vector<std::string> columns;
      for (const pb::Name& name : cluster.columns()) {
        columns.push_back(Join(PartsOf(name), "."));
      }
      FLEUVE_TRY(tables::SetClustering(context, table, columns));
      return Nothing();
    }
    case pb::AlterTable::kSetProperties:
      FLEUVE_TRY(tables::SetProperties(context, table, ToOptions(alter.set_properties().properties())));
      return Nothing();
    case pb::AlterTable::kUnsetProperties:
      FLEUVE_TRY(tables::UnsetProperties(
          context, table, {alter.unset_properties().keys().begin(), alter.unset_properties().keys().end()}));
      return Nothing();
    case pb::AlterTable::kAddConstraint: {
      const pb::Constraint& constraint = alter.add_constraint().constraint();
      if (!constraint.has_check() || !constraint.has_name() || !constraint.characteristics().empty()) {
        return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TABLE_OPERATION",
                     "The feature is not supported: Table " + QuoteParts(Split(target.display, '.')) +
                         " does not support ADD CONSTRAINT, but for ADD CONSTRAINT name CHECK (condition).")
            .Family(ErrorFamily::kAnalysis);
      }
      FLEUVE_TRY(tables::AddConstraint(context, table, constraint.name(), constraint.check().sql()));
      return Nothing();
    }
    case pb::AlterTable::kDropConstraint:
      FLEUVE_TRY(
          tables::DropConstraint(context, table, alter.drop_constraint().name(), alter.drop_constraint().if_exists()));
      return Nothing();
    case pb::AlterTable::kSetLocation: {
      if (!alter.set_location().partition().empty()) {
        return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_1045",
                     "ALTER TABLE SET LOCATION does not support partition for v2 tables.");
      }
      if (!target.row) {
        return Error::Unsupported("ALTER TABLE ... SET LOCATION of a path");
      }
      FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(alter.set_location().location()));
      const auto there = context.logs->Open(location)->Latest();
      if (!there.ok() && there.error().condition() == "DELTA_TABLE_NOT_FOUND") {
        return Error(ErrorKind::kNotFound, "DELTA_MISSING_DELTA_TABLE",
                     location.path + " is not a Delta table, so it cannot be the location of one.")
            .With("tableName", location.path);
      }
      FLEUVE_TRY(there);
      FLEUVE_ASSIGN(const delta::SnapshotPtr now, context.logs->Open(table.location)->Latest());
      if (!(*there)->schema().EqualsIgnoringNullability(now->schema()) ||
          (*there)->metadata().partition_columns != now->metadata().partition_columns) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_SET_LOCATION_SCHEMA_MISMATCH",
                     "The new location holds a table of another schema: " + (*there)->schema().SimpleString() +
                         " instead of " + now->schema().SimpleString() + ".")
            .With("original", now->schema().SimpleString())
            .With("destination", (*there)->schema().SimpleString());
      }
      catalog::Table row = *target.row;
      row.location = location.path;
      row.kind = catalog::TableKind::kExternal;
      FLEUVE_TRY(catalog.AlterTable(row));
      return Nothing();
    }
    case pb::AlterTable::kReplaceColumns: {
      FLEUVE_ASSIGN(const std::vector<tables::NewColumn> columns, NewColumns(alter.replace_columns().columns()));
      FLEUVE_TRY(tables::ReplaceColumns(context, table, columns));
      return Nothing();
    }
    case pb::AlterTable::kColumnsClause:
      return Error::Unsupported("ALTER TABLE ... CLUSTER BY");
    case pb::AlterTable::kDropFeature:
      FLEUVE_TRY(
          tables::DropFeature(context, table, alter.drop_feature().feature(), alter.drop_feature().truncate_history()));
      return Nothing();
    case pb::AlterTable::kPartitionChange:
      return Error(ErrorKind::kUnsupported, "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
                   "The partition command is invalid. Table " + table.name + " does not support partition management.")
          .With("name", table.name)
          .Family(ErrorFamily::kAnalysis);
    default:
      break;
  }
  return Error::Unsupported("this ALTER TABLE statement");
}

}  // namespace fleuve::session
