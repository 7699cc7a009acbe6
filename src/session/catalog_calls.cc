#include <algorithm>

#include "base/bytes.h"
#include "plan/function_builder.h"
#include "plan/function_names.h"
#include "plan/proto_types.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"

namespace fleuve::session {

namespace sc = spark::connect;
using types::DataType;
using types::StructField;
using types::Value;

namespace {

types::Schema DatabaseSchema() { return TextColumns({"name", "catalog", "description", "locationUri"}); }

types::Schema TableSchema() {
  return DataType::Struct({{"name", DataType::String(), true, {}},
                           {"catalog", DataType::String(), true, {}},
                           {"namespace", DataType::Array(DataType::String()), true, {}},
                           {"description", DataType::String(), true, {}},
                           {"tableType", DataType::String(), true, {}},
                           {"isTemporary", DataType::Boolean(), false, {}}});
}

RowsResult TextValue(const std::string& value) { return RowsResult{TextColumns({"value"}), {{Value(value)}}}; }

RowsResult BooleanValue(bool value) {
  return RowsResult{DataType::Struct({{"value", DataType::Boolean(), false, {}}}), {{Value(value)}}};
}

/// What setters answer: a column, no row.
RowsResult NoValue() { return RowsResult{DataType::Struct({{"value", DataType::String(), false, {}}}), {}}; }

Value::List DatabaseRow(const catalog::Database& database) {
  return {Value(database.name), Value("spark_catalog"), Value(database.comment),
          Value(storage::ToFileUri(database.location))};
}

Value::List ViewRow(const std::string& name, bool global) {
  return {Value(name),        Value(),    Value(global ? Value::List{Value("global_temp")} : Value::List{}), Value(),
          Value("TEMPORARY"), Value(true)};
}

Value OptionalText(const std::string& text) { return text.empty() ? Value() : Value(text); }

Value::List TableRow(const catalog::Table& table) {
  const char* kind = table.kind == catalog::TableKind::kView      ? "VIEW"
                     : table.kind == catalog::TableKind::kManaged ? "MANAGED"
                                                                  : "EXTERNAL";
  return {Value(table.name),
          Value("spark_catalog"),
          Value(Value::List{Value(table.database)}),
          OptionalText(table.comment),
          Value(kind),
          Value(false)};
}

/// The name of a call with its separate database.
template <typename Call>
Result<std::vector<std::string>> NameOf(const Call& call) {
  FLEUVE_ASSIGN(std::vector<std::string> parts, sql::ParseMultipartName(call.table_name()));
  if (call.has_db_name()) {
    FLEUVE_ASSIGN(const std::vector<std::string> database, sql::ParseMultipartName(call.db_name()));
    parts.insert(parts.begin(), database.begin(), database.end());
  }
  return parts;
}

types::Schema FunctionSchema() {
  return DataType::Struct({{"name", DataType::String(), true, {}},
                           {"catalog", DataType::String(), true, {}},
                           {"namespace", DataType::Array(DataType::String()), true, {}},
                           {"description", DataType::String(), true, {}},
                           {"className", DataType::String(), true, {}},
                           {"isTemporary", DataType::Boolean(), false, {}}});
}

/// Built-in functions and those of the session alike have no catalog: Spark calls both temporary.
Value::List FunctionRow(const std::string& name) {
  return {Value(name), Value(), Value(), Value(), Value(""), Value(true)};
}

bool FunctionKnown(SessionState& state, const std::string& name) {
  return plan::FindFunctionKind(name).has_value() || state.FindFunction(name).has_value();
}

bool IsMissing(const Error& error) { return error.kind() == ErrorKind::kNotFound; }

}  // namespace

Result<RowsResult> Executor::RunCatalog(const sc::Catalog& call) {
  catalog::Catalog& catalog = *state_.services().catalog;
  SessionResolver resolver(state_);
  const auto find_database = [&](const std::string& text) -> Result<catalog::Database> {
    FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(text));
    FLEUVE_ASSIGN(const std::string name, DatabaseOf(parts));
    auto found = catalog.GetDatabase(name);
    if (!found.ok() && IsMissing(found.error())) {
      return DatabaseNotFound({name});
    }
    return found;
  };
  switch (call.cat_type_case()) {
    case sc::Catalog::kCurrentDatabase:
      return TextValue(state_.current_database());
    case sc::Catalog::kSetCurrentDatabase: {
      FLEUVE_ASSIGN(const catalog::Database database, find_database(call.set_current_database().db_name()));
      state_.set_current_database(database.name);
      return NoValue();
    }
    case sc::Catalog::kListDatabases: {
      RowsResult result{DatabaseSchema(), {}};
      FLEUVE_ASSIGN(const auto databases, catalog.ListDatabases());
      for (const catalog::Database& database : databases) {
        if (!call.list_databases().has_pattern() || MatchesPattern(database.name, call.list_databases().pattern())) {
          result.rows.push_back(DatabaseRow(database));
        }
      }
      return result;
    }
    case sc::Catalog::kGetDatabase: {
      FLEUVE_ASSIGN(const catalog::Database database, find_database(call.get_database().db_name()));
      return RowsResult{DatabaseSchema(), {DatabaseRow(database)}};
    }
    case sc::Catalog::kDatabaseExists: {
      const auto found = find_database(call.database_exists().db_name());
      if (!found.ok() && !IsMissing(found.error())) {
        return found.error();
      }
      return BooleanValue(found.ok());
    }
    case sc::Catalog::kListTables: {
      const auto& list = call.list_tables();
      RowsResult result{TableSchema(), {}};
      const auto matches = [&](const std::string& name) {
        return !list.has_pattern() || MatchesPattern(name, list.pattern());
      };
      const bool global = list.has_db_name() && EqualsIgnoreAsciiCase(list.db_name(), "global_temp");
      if (!global) {
        FLEUVE_ASSIGN(
            const catalog::Database database,
            find_database(list.has_db_name() ? list.db_name() : types::QuoteIdentifier(state_.current_database())));
        FLEUVE_ASSIGN(const auto tables, catalog.ListTables(database.name));
        for (const catalog::Table& table : tables) {
          if (matches(table.name)) {
            result.rows.push_back(TableRow(table));
          }
        }
      } else {
        for (const auto& [name, plan] : state_.GlobalViewList()) {
          if (matches(name)) {
            result.rows.push_back(ViewRow(name, true));
          }
        }
      }
      for (const auto& [name, plan] : state_.Views()) {
        if (matches(name)) {
          result.rows.push_back(ViewRow(name, false));
        }
      }
      return result;
    }
    case sc::Catalog::kGetTable: {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, NameOf(call.get_table()));
      if (resolver.FindTemporaryView(parts) != nullptr) {
        return RowsResult{TableSchema(), {ViewRow(AsciiLower(parts.back()), parts.size() == 2)}};
      }
      FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
      if (!target.row) {
        return TableNotFound(parts);
      }
      return RowsResult{TableSchema(), {TableRow(*target.row)}};
    }
    case sc::Catalog::kTableExists: {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, NameOf(call.table_exists()));
      if (resolver.FindTemporaryView(parts) != nullptr) {
        return BooleanValue(true);
      }
      const auto target = resolver.Target(parts, true);
      if (!target.ok() && !IsMissing(target.error())) {
        return target.error();
      }
      if (target.ok() && target->is_path && target->provider == "delta") {
        FLEUVE_ASSIGN(const bool exists, state_.services().logs->Open(target->location)->Exists());
        return BooleanValue(exists);
      }
      return BooleanValue(target.ok());
    }
    case sc::Catalog::kListColumns: {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, NameOf(call.list_columns()));
      FLEUVE_ASSIGN(const plan::ResolvedTable table, resolver.ResolveTable(parts, {}, false));
      const types::Schema schema = table.table != nullptr ? table.table->schema() : plan::SchemaOf(*table.view_plan);
      std::vector<std::string> partitions;
      std::vector<std::string> clusters;
      if (const auto delta = std::dynamic_pointer_cast<const delta::DeltaTable>(table.table); delta != nullptr) {
        partitions = delta->snapshot()->metadata().partition_columns;
      } else if (const auto target = resolver.Target(parts, true); target.ok() && target->row) {
        partitions = target->row->partition_columns;
      }
      RowsResult result;
      result.schema = DataType::Struct({{"name", DataType::String(), true, {}},
                                        {"description", DataType::String(), true, {}},
                                        {"dataType", DataType::String(), true, {}},
                                        {"nullable", DataType::Boolean(), false, {}},
                                        {"isPartition", DataType::Boolean(), false, {}},
                                        {"isBucket", DataType::Boolean(), false, {}},
                                        {"isCluster", DataType::Boolean(), false, {}}});
      for (const StructField& field : schema.fields()) {
        const bool partition = std::any_of(partitions.begin(), partitions.end(), [&](const std::string& name) {
          return EqualsIgnoreAsciiCase(name, field.name);
        });
        const Json* comment = field.metadata.Find("comment");
        result.rows.push_back({Value(field.name), comment == nullptr ? Value() : Value(comment->AsString()),
                               Value(field.type.SimpleString()), Value(field.nullable), Value(partition), Value(false),
                               Value(false)});
      }
      return result;
    }
    case sc::Catalog::kCreateTable:
    case sc::Catalog::kCreateExternalTable: {
      NewTable table;
      std::string name;
      if (call.has_create_table()) {
        const auto& create = call.create_table();
        name = create.table_name();
        table.location = create.path();
        table.provider = create.source();
        table.options = OptionsOf(create.options());
        if (!create.description().empty()) {
          table.comment = create.description();
        }
        if (create.has_schema()) {
          FLEUVE_ASSIGN(table.schema, plan::TypeFromProto(create.schema()));
        }
      } else {
        const auto& create = call.create_external_table();
        name = create.table_name();
        table.location = create.path();
        table.provider = create.source();
        table.options = OptionsOf(create.options());
        if (create.has_schema()) {
          FLEUVE_ASSIGN(table.schema, plan::TypeFromProto(create.schema()));
        }
      }
      if (const std::string* path = plan::FindOption(table.options, "path");
          path != nullptr && table.location.empty()) {
        table.location = *path;
      }
      std::erase_if(table.options, [](const auto& entry) { return EqualsIgnoreAsciiCase(entry.first, "path"); });
      if (table.provider.empty()) {
        table.provider = state_.config().GetOr("spark.sql.sources.default", "delta");
      }
      table.provider = AsciiLower(table.provider);
      if (!table.schema.Is(types::TypeKind::kStruct)) {
        table.schema = DataType::Struct({});
      }
      FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(name));
      FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, false));
      if (target.row) {
        return TableExists(target.display);
      }
      FLEUVE_TRY(MakeTable(target, table));
      SessionResolver fresh(state_);
      FLEUVE_ASSIGN(const plan::ResolvedTable made, fresh.ResolveTable(parts, {}, false));
      FLEUVE_ASSIGN(auto rows, CollectRows(LeafOf(made.table, made.qualified_name)));
      return RowsResult{made.table->schema(), std::move(rows)};
    }
    case sc::Catalog::kDropTempView:
      return BooleanValue(state_.DropView(call.drop_temp_view().view_name()));
    case sc::Catalog::kDropGlobalTempView:
      return BooleanValue(state_.DropGlobalView(call.drop_global_temp_view().view_name()));
    case sc::Catalog::kIsCached: {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(call.is_cached().table_name()));
      FLEUVE_TRY(resolver.ResolveTable(parts, {}, false));
      return BooleanValue(state_.IsTableCached(Join(parts, ".")));
    }
    case sc::Catalog::kCacheTable:
    case sc::Catalog::kUncacheTable: {
      const bool cache = call.has_cache_table();
      FLEUVE_ASSIGN(
          const std::vector<std::string> parts,
          sql::ParseMultipartName(cache ? call.cache_table().table_name() : call.uncache_table().table_name()));
      FLEUVE_TRY(resolver.ResolveTable(parts, {}, false));
      state_.CacheTable(Join(parts, "."), cache);
      return NoValue();
    }
    case sc::Catalog::kClearCache:
      state_.ClearCache();
      return NoValue();
    case sc::Catalog::kRefreshTable: {
      // Every analysis reads tables as they are: there is nothing stale to forget.
      FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(call.refresh_table().table_name()));
      FLEUVE_TRY(resolver.ResolveTable(parts, {}, false));
      return NoValue();
    }
    case sc::Catalog::kRefreshByPath:
      return NoValue();
    case sc::Catalog::kCurrentCatalog:
      return TextValue("spark_catalog");
    case sc::Catalog::kSetCurrentCatalog:
      if (!EqualsIgnoreAsciiCase(call.set_current_catalog().catalog_name(), "spark_catalog")) {
        const std::string& name = call.set_current_catalog().catalog_name();
        return Error(ErrorKind::kNotFound, "CATALOG_NOT_FOUND",
                     "The catalog " + types::QuoteIdentifier(name) +
                         " not found. Consider to set the SQL config \"spark.sql.catalog." + name +
                         "\" to a catalog plugin.")
            .With("catalogName", types::QuoteIdentifier(name));
      }
      return NoValue();
    case sc::Catalog::kListCatalogs: {
      RowsResult result{TextColumns({"name", "description"}), {}};
      if (!call.list_catalogs().has_pattern() || MatchesPattern("spark_catalog", call.list_catalogs().pattern())) {
        result.rows.push_back({Value("spark_catalog"), Value()});
      }
      return result;
    }
    case sc::Catalog::kDropTable: {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(call.drop_table().table_name()));
      FLEUVE_TRY(DropTable(parts, call.drop_table().if_exists(), false, resolver));
      return NoValue();
    }
    case sc::Catalog::kDropView: {
      FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(call.drop_view().view_name()));
      FLEUVE_TRY(DropTable(parts, call.drop_view().if_exists(), true, resolver));
      return NoValue();
    }
    case sc::Catalog::kRecoverPartitions:
      return Error::Unsupported("catalog.recoverPartitions");
    case sc::Catalog::kListFunctions: {
      RowsResult result{FunctionSchema(), {}};
      const auto& list = call.list_functions();
      if (list.has_db_name()) {
        FLEUVE_TRY(find_database(list.db_name()));
      }
      for (const std::vector<std::string>& names : {plan::KnownFunctionNames(), state_.FunctionNames()}) {
        for (const std::string& name : names) {
          if (!list.has_pattern() || MatchesPattern(name, list.pattern())) {
            result.rows.push_back(FunctionRow(name));
          }
        }
      }
      return result;
    }
    case sc::Catalog::kGetFunction: {
      FLEUVE_ASSIGN(const auto parts, sql::ParseMultipartName(call.get_function().function_name()));
      if (!FunctionKnown(state_, parts.back())) {
        return Error(ErrorKind::kNotFound, "UNRESOLVED_ROUTINE",
                     "Cannot resolve routine " + QuoteParts(parts) +
                         " on search path [`system`.`builtin`, `system`.`session`, `spark_catalog`.`" +
                         state_.current_database() + "`].")
            .With("routineName", QuoteParts(parts));
      }
      return RowsResult{FunctionSchema(), {FunctionRow(AsciiLower(parts.back()))}};
    }
    case sc::Catalog::kFunctionExists: {
      FLEUVE_ASSIGN(const auto parts, sql::ParseMultipartName(call.function_exists().function_name()));
      return BooleanValue(FunctionKnown(state_, parts.back()));
    }
    case sc::Catalog::CAT_TYPE_NOT_SET:
      break;
    default:
      return Error::Unsupported(
          "the catalog call " +
          call.GetDescriptor()->FindFieldByNumber(static_cast<int>(call.cat_type_case()))->name());
  }
  return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "The catalog call is not set.");
}

}  // namespace fleuve::session
