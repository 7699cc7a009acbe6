#include <algorithm>
#include <regex>

#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/function_names.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"

namespace fleuve::session {

using types::DataType;
using types::StructField;
using types::Value;

namespace {

/// Matches without case: `*` any text, `.` and the rest as they are.
bool MatchesOne(std::string_view name, std::string_view pattern) {
  std::size_t n = 0;
  std::size_t p = 0;
  std::size_t star = std::string_view::npos;
  std::size_t mark = 0;
  while (n < name.size()) {
    if (p < pattern.size() && (pattern[p] == name[n] || pattern[p] == '.')) {
      ++n;
      ++p;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      mark = n;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      n = ++mark;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

std::string TableKindName(const catalog::Table& row) {
  switch (row.kind) {
    case catalog::TableKind::kManaged:
      return "MANAGED";
    case catalog::TableKind::kExternal:
      return "EXTERNAL";
    case catalog::TableKind::kView:
      break;
  }
  return "VIEW";
}

}  // namespace

bool MatchesPattern(const std::string& name, const std::string& pattern) {
  const std::string lower = AsciiLower(name);
  for (const std::string& part : Split(pattern, '|')) {
    const std::string trimmed = AsciiLower(TrimAscii(part));
    if (MatchesOne(lower, trimmed)) {
      return true;
    }
  }
  return false;
}

namespace {

/// Properties of a table as SHOW TBLPROPERTIES lists them.
Result<std::map<std::string, std::string>> PropertiesOf(SessionState& state, const TableTarget& target) {
  std::map<std::string, std::string> properties;
  if (target.provider == "delta") {
    FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, state.services().logs->Open(target.location)->Latest());
    for (const auto& [key, value] : snapshot->metadata().configuration) {
      properties[key] = value;
    }
    properties["delta.minReaderVersion"] = std::to_string(snapshot->protocol().min_reader_version);
    properties["delta.minWriterVersion"] = std::to_string(snapshot->protocol().min_writer_version);
    for (const std::string& feature : snapshot->protocol().writer_features.value_or(std::vector<std::string>())) {
      properties["delta.feature." + feature] = "supported";
    }
    for (const std::string& feature : snapshot->protocol().reader_features.value_or(std::vector<std::string>())) {
      properties["delta.feature." + feature] = "supported";
    }
  } else if (target.row) {
    properties.insert(target.row->properties.begin(), target.row->properties.end());
  }
  return properties;
}

std::string SqlString(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' ? "\\'" : c == '\\' ? "\\\\" : std::string(1, c);
  }
  return out + "'";
}

}  // namespace

Result<RowsResult> Executor::ShowStatement(const pb::Show& show, SessionResolver& resolver) {
  catalog::Catalog& catalog = *state_.services().catalog;
  const auto matches = [&](const std::string& name) {
    return !show.has_pattern() || MatchesPattern(name, show.pattern());
  };
  std::string database = resolver.database();
  const std::vector<std::string> database_parts = PartsOf(show.database());
  const bool global = database_parts.size() == 1 && EqualsIgnoreAsciiCase(database_parts[0], "global_temp");
  if (!database_parts.empty() && !global) {
    FLEUVE_ASSIGN(database, DatabaseOf(database_parts));
  }
  std::vector<std::string> table_parts = PartsOf(show.table());
  if (table_parts.size() == 1 && !database_parts.empty()) {
    table_parts.insert(table_parts.begin(), database_parts.begin(), database_parts.end());
  }
  RowsResult result;
  switch (show.what()) {
    case pb::Show::DATABASES: {
      result.schema = DataType::Struct({{"namespace", DataType::String(), false, {}}});
      FLEUVE_ASSIGN(const auto databases, catalog.ListDatabases());
      for (const catalog::Database& entry : databases) {
        if (matches(entry.name)) {
          result.rows.push_back({Value(entry.name)});
        }
      }
      return result;
    }
    case pb::Show::TABLES:
    case pb::Show::VIEWS: {
      const bool views = show.what() == pb::Show::VIEWS;
      result.schema = DataType::Struct({{"namespace", DataType::String(), false, {}},
                                        {views ? "viewName" : "tableName", DataType::String(), false, {}},
                                        {"isTemporary", DataType::Boolean(), false, {}}});
      if (!global) {
        if (!catalog.GetDatabase(database).ok()) {
          return DatabaseNotFound({database});
        }
        FLEUVE_ASSIGN(const auto tables, catalog.ListTables(database));
        for (const catalog::Table& table : tables) {
          if (matches(table.name) && (!views || table.kind == catalog::TableKind::kView)) {
            result.rows.push_back({Value(database), Value(table.name), Value(false)});
          }
        }
      } else {
        for (const auto& [name, plan] : state_.GlobalViewList()) {
          if (matches(name)) {
            result.rows.push_back({Value("global_temp"), Value(name), Value(true)});
          }
        }
      }
      for (const auto& [name, plan] : state_.Views()) {
        if (matches(name)) {
          result.rows.push_back({Value(""), Value(name), Value(true)});
        }
      }
      return result;
    }
    case pb::Show::COLUMNS: {
      result.schema = DataType::Struct({{"col_name", DataType::String(), false, {}}});
      FLEUVE_ASSIGN(const plan::ResolvedTable table, resolver.ResolveTable(table_parts, {}, false));
      const types::Schema schema = table.table != nullptr ? table.table->schema() : plan::SchemaOf(*table.view_plan);
      for (const StructField& field : schema.fields()) {
        result.rows.push_back({Value(field.name)});
      }
      return result;
    }
    case pb::Show::TABLE_PROPERTIES: {
      result.schema =
          DataType::Struct({{"key", DataType::String(), false, {}}, {"value", DataType::String(), false, {}}});
      FLEUVE_ASSIGN(const TableTarget target, resolver.Target(table_parts, true));
      FLEUVE_ASSIGN(const auto properties, PropertiesOf(state_, target));
      if (show.has_property_key()) {
        const auto found = properties.find(show.property_key());
        result.rows.push_back(
            {Value(show.property_key()),
             Value(found != properties.end()
                       ? found->second
                       : "Table " + target.display + " does not have property: " + show.property_key())});
        return result;
      }
      for (const auto& [key, value] : properties) {
        result.rows.push_back({Value(key), Value(value)});
      }
      return result;
    }
    case pb::Show::CREATE_TABLE: {
      result.schema = DataType::Struct({{"createtab_stmt", DataType::String(), false, {}}});
      if (resolver.FindTemporaryView(table_parts) != nullptr) {
        return Error(ErrorKind::kInvalidArgument, "EXPECT_PERMANENT_VIEW_NOT_TEMP",
                     "'SHOW CREATE TABLE' expects a permanent view but " + QuoteParts(table_parts) + " is a temp view.")
            .With("operation", "SHOW CREATE TABLE")
            .With("viewName", QuoteParts(table_parts));
      }
      FLEUVE_ASSIGN(const TableTarget target, resolver.Target(table_parts, true));
      if (target.row && target.row->kind == catalog::TableKind::kView) {
        FLEUVE_ASSIGN(const plan::ResolvedTable view, resolver.ResolveTable(table_parts, {}, false));
        std::vector<std::string> names;
        for (const StructField& field : plan::SchemaOf(*view.view_plan).fields()) {
          names.push_back("  " + types::QuoteIfNeeded(field.name));
        }
        result.rows.push_back({Value("CREATE VIEW " + target.database + "." + target.name + " (\n" +
                                     Join(names, ",\n") + ")\nAS " + target.row->view_text + "\n")});
        return result;
      }
      FLEUVE_ASSIGN(const plan::ResolvedTable table, resolver.ResolveTable(table_parts, {}, false));
      std::vector<std::string> columns;
      for (const StructField& field : table.table->schema().fields()) {
        std::string line = "  " + types::QuoteIfNeeded(field.name) + " " + field.type.Sql();
        if (!field.nullable) {
          line += " NOT NULL";
        }
        if (const Json* comment = field.metadata.Find("comment"); comment != nullptr) {
          line += " COMMENT " + SqlString(comment->AsString());
        }
        columns.push_back(std::move(line));
      }
      std::string text =
          "CREATE TABLE " + target.display + " (\n" + Join(columns, ",\n") + ")\nUSING " + target.provider + "\n";
      std::vector<std::string> partitions = target.row ? target.row->partition_columns : std::vector<std::string>();
      std::string comment = target.row ? target.row->comment : "";
      if (const auto delta = std::dynamic_pointer_cast<const delta::DeltaTable>(table.table); delta != nullptr) {
        partitions.clear();
        for (const StructField& field : delta->snapshot()->partition_schema().fields()) {
          partitions.push_back(field.name);
        }
        comment = delta->snapshot()->metadata().description.value_or("");
      }
      if (!partitions.empty()) {
        text += "PARTITIONED BY (" + Join(partitions, ", ") + ")\n";
      }
      if (!comment.empty()) {
        text += "COMMENT " + SqlString(comment) + "\n";
      }
      if (target.row && target.row->kind == catalog::TableKind::kExternal) {
        text += "LOCATION " + SqlString(storage::ToFileUri(target.location.path)) + "\n";
      }
      FLEUVE_ASSIGN(const auto properties, PropertiesOf(state_, target));
      std::vector<std::string> lines;
      for (const auto& [key, value] : properties) {
        lines.push_back("  " + SqlString(key) + " = " + SqlString(value));
      }
      if (!lines.empty()) {
        text += "TBLPROPERTIES (\n" + Join(lines, ",\n") + ")\n";
      }
      result.rows.push_back({Value(text)});
      return result;
    }
    case pb::Show::CATALOGS:
      result.schema = DataType::Struct({{"catalog", DataType::String(), false, {}}});
      if (matches("spark_catalog")) {
        result.rows.push_back({Value("spark_catalog")});
      }
      return result;
    case pb::Show::CURRENT_DATABASE:
      result.schema =
          DataType::Struct({{"catalog", DataType::String(), false, {}}, {"namespace", DataType::String(), false, {}}});
      result.rows.push_back({Value("spark_catalog"), Value(state_.current_database())});
      return result;
    case pb::Show::PARTITIONS: {
      FLEUVE_ASSIGN(const TableTarget target, resolver.Target(table_parts, true));
      if (target.provider == "delta") {
        return Error(ErrorKind::kUnsupported, "INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED",
                     "The partition command is invalid. Table " + QuoteParts(Split(target.display, '.')) +
                         " does not support partition management.")
            .With("name", QuoteParts(Split(target.display, '.')))
            .Family(ErrorFamily::kAnalysis);
      }
      return Error::Unsupported("SHOW PARTITIONS of tables of the format " + target.provider);
    }
    case pb::Show::FUNCTIONS: {
      result.schema = DataType::Struct({{"function", DataType::String(), false, {}}});
      const std::string& scope = show.function_scope();
      std::vector<std::string> names;
      if (!EqualsIgnoreAsciiCase(scope, "USER")) {
        names = plan::KnownFunctionNames();
      }
      if (!EqualsIgnoreAsciiCase(scope, "SYSTEM")) {
        const std::vector<std::string> own = state_.FunctionNames();
        names.insert(names.end(), own.begin(), own.end());
        std::sort(names.begin(), names.end());
      }
      for (const std::string& name : names) {
        const bool wanted = show.has_function()
                                ? EqualsIgnoreAsciiCase(name, show.function().parts(show.function().parts_size() - 1))
                                : matches(name);
        if (wanted) {
          result.rows.push_back({Value(name)});
        }
      }
      return result;
    }
    case pb::Show::TABLE_EXTENDED: {
      result.schema = DataType::Struct({{"namespace", DataType::String(), false, {}},
                                        {"tableName", DataType::String(), false, {}},
                                        {"isTemporary", DataType::Boolean(), false, {}},
                                        {"information", DataType::String(), false, {}}});
      FLEUVE_ASSIGN(const auto tables, catalog.ListTables(database));
      for (const catalog::Table& table : tables) {
        if (matches(table.name)) {
          std::string information = "Catalog: spark_catalog\nDatabase: " + database + "\nTable: " + table.name +
                                    "\nType: " + TableKindName(table) + "\n";
          if (!table.provider.empty()) {
            information += "Provider: " + table.provider + "\nLocation: " + storage::ToFileUri(table.location) + "\n";
          }
          result.rows.push_back({Value(database), Value(table.name), Value(false), Value(information)});
        }
      }
      return result;
    }
    case pb::Show::VARIABLES:
      return Error::Unsupported("SHOW VARIABLES");
    default:
      break;
  }
  return Error::Unsupported("this SHOW statement");
}

RowsResult DescribeColumns(const types::Schema& schema, const std::vector<std::string>& partition_columns) {
  RowsResult result;
  result.schema = DataType::Struct({{"col_name", DataType::String(), false, {}},
                                    {"data_type", DataType::String(), false, {}},
                                    {"comment", DataType::String(), true, {}}});
  const auto row = [](const StructField& field) {
    const Json* comment = field.metadata.Find("comment");
    return Value::List{Value(field.name), Value(field.type.SimpleString()),
                       comment == nullptr ? Value() : Value(comment->AsString())};
  };
  for (const StructField& field : schema.fields()) {
    result.rows.push_back(row(field));
  }
  if (!partition_columns.empty()) {
    result.rows.push_back({Value("# Partition Information"), Value(""), Value("")});
    result.rows.push_back({Value("# col_name"), Value("data_type"), Value("comment")});
    for (const std::string& name : partition_columns) {
      for (const StructField& field : schema.fields()) {
        if (EqualsIgnoreAsciiCase(field.name, name)) {
          result.rows.push_back(row(field));
        }
      }
    }
  }
  return result;
}

Result<RowsResult> Executor::Describe(const pb::DescribeTable& describe, SessionResolver& resolver) {
  if (describe.as_json()) {
    return Error::Unsupported("DESCRIBE ... AS JSON");
  }
  const std::vector<std::string> parts = PartsOf(describe.table());
  FLEUVE_ASSIGN(const plan::ResolvedTable table, resolver.ResolveTable(parts, {}, false));
  if (describe.has_partition()) {
    if (table.table != nullptr && table.table->provider() == "delta") {
      return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_1111",
                   "DESCRIBE does not support partition for v2 tables.");
    }
    return Error::Unsupported("DESCRIBE ... PARTITION");
  }
  const types::Schema schema = table.table != nullptr ? table.table->schema() : plan::SchemaOf(*table.view_plan);
  if (describe.has_column()) {
    const std::vector<std::string> path = PartsOf(describe.column());
    const auto index = path.size() == 1 ? types::FieldIndex(schema, path[0]) : std::nullopt;
    if (!index) {
      std::vector<std::string> names;
      for (const StructField& field : schema.fields()) {
        names.push_back(types::QuoteIdentifier(field.name));
      }
      return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                   "A column, variable, or function parameter with name " + QuoteParts(path) +
                       " cannot be resolved. Did you mean one of the following? [" + Join(names, ", ") + "].")
          .With("objectName", QuoteParts(path))
          .With("proposal", Join(names, ", "));
    }
    const StructField& field = schema.fields()[*index];
    const Json* comment = field.metadata.Find("comment");
    RowsResult result;
    result.schema =
        DataType::Struct({{"info_name", DataType::String(), false, {}}, {"info_value", DataType::String(), false, {}}});
    result.rows = {{Value("col_name"), Value(field.name)},
                   {Value("data_type"), Value(field.type.SimpleString())},
                   {Value("comment"), Value(comment == nullptr ? "NULL" : comment->AsString())}};
    return result;
  }
  if (table.table == nullptr) {
    return DescribeColumns(schema, {});
  }
  FLEUVE_ASSIGN(const TableTarget target, resolver.Target(parts, true));
  std::vector<std::string> partitions;
  std::map<std::string, std::string> properties;
  std::string comment = target.row ? target.row->comment : "";
  if (const auto delta = std::dynamic_pointer_cast<const delta::DeltaTable>(table.table); delta != nullptr) {
    for (const StructField& field : delta->snapshot()->partition_schema().fields()) {
      partitions.push_back(field.name);
    }
    comment = delta->snapshot()->metadata().description.value_or("");
  } else if (target.row) {
    partitions = target.row->partition_columns;
  }
  RowsResult result = DescribeColumns(schema, partitions);
  if (!describe.extended()) {
    return result;
  }
  const auto line = [&](const std::string& name, const std::string& value) {
    result.rows.push_back({Value(name), Value(value), Value("")});
  };
  line("", "");
  line("# Detailed Table Information", "");
  line("Name", target.display);
  if (target.row) {
    line("Type", TableKindName(*target.row));
  }
  if (!comment.empty()) {
    line("Comment", comment);
  }
  line("Location", storage::ToFileUri(target.location.path));
  line("Provider", target.provider);
  if (target.row) {
    line("Owner", target.row->owner);
  }
  FLEUVE_ASSIGN(properties, PropertiesOf(state_, target));
  std::vector<std::string> pairs;
  for (const auto& [key, value] : properties) {
    pairs.push_back(key + "=" + value);
  }
  line("Table Properties", "[" + Join(pairs, ",") + "]");
  return result;
}

}  // namespace fleuve::session
