#include <algorithm>
#include <functional>

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "plan/coercion.h"
#include "tables/alter_internal.h"
#include "tables/column_default_internal.h"
#include "tables/commands.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::StructField;
using types::TypeKind;

namespace {

using Path = std::vector<std::string>;

std::string Dotted(const Path& path) { return Join(path, "."); }

Error Unresolved(const Path& path, const types::Schema& schema) {
  std::string all;
  for (const StructField& field : schema.fields()) {
    all += (all.empty() ? "`" : ", `") + field.name + "`";
  }
  return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION",
               "The column " + Dotted(path) + " cannot be resolved. The table has " + all + ".")
      .With("objectName", Dotted(path))
      .With("proposal", all);
}

/// The column that another one is to stand behind is not among its neighbours.
Error FieldNotFound(const std::string& name, const std::vector<StructField>& fields) {
  std::string all;
  for (const StructField& field : fields) {
    all += (all.empty() ? "`" : ", `") + field.name + "`";
  }
  return Error(ErrorKind::kInvalidArgument, "FIELD_NOT_FOUND", "No such struct field `" + name + "` in " + all + ".")
      .With("fieldName", "`" + name + "`")
      .With("fields", all);
}

/// A field below a column that has none.
Error NotStruct(const Path& path, const Path& parent) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_FIELD_NAME",
               "Field name `" + Dotted(path) + "` is invalid: `" + Dotted(parent) + "` is not a struct.")
      .With("fieldName", "`" + Dotted(path) + "`")
      .With("path", "`" + Dotted(parent) + "`");
}

using FieldsChange = std::function<Result<std::vector<StructField>>(std::vector<StructField>)>;

/// Lets `change` edit the fields of the struct at `parent` (through element, key and value).
Result<DataType> ChangeStruct(const DataType& type, const Path& parent, std::size_t at, const FieldsChange& change,
                              const std::function<Error()>& missing) {
  if (at == parent.size()) {
    if (!type.Is(TypeKind::kStruct)) {
      return missing();
    }
    FLEUVE_ASSIGN(std::vector<StructField> fields, change(type.fields()));
    return DataType::Struct(std::move(fields));
  }
  const std::string& part = parent[at];
  if (type.Is(TypeKind::kArray) && EqualsIgnoreAsciiCase(part, "element")) {
    FLEUVE_ASSIGN(DataType element, ChangeStruct(type.element(), parent, at + 1, change, missing));
    return DataType::Array(std::move(element), type.contains_null());
  }
  if (type.Is(TypeKind::kMap) && (EqualsIgnoreAsciiCase(part, "key") || EqualsIgnoreAsciiCase(part, "value"))) {
    const bool is_key = EqualsIgnoreAsciiCase(part, "key");
    FLEUVE_ASSIGN(DataType inner, ChangeStruct(is_key ? type.key() : type.value(), parent, at + 1, change, missing));
    return is_key ? DataType::Map(std::move(inner), type.value(), type.contains_null())
                  : DataType::Map(type.key(), std::move(inner), type.contains_null());
  }
  if (!type.Is(TypeKind::kStruct)) {
    return missing();
  }
  const auto index = types::FieldIndex(type, part);
  if (!index) {
    return missing();
  }
  std::vector<StructField> fields = type.fields();
  FLEUVE_ASSIGN(fields[*index].type, ChangeStruct(fields[*index].type, parent, at + 1, change, missing));
  return DataType::Struct(std::move(fields));
}

std::ptrdiff_t IndexOf(const std::vector<StructField>& fields, const std::string& name) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    if (EqualsIgnoreAsciiCase(fields[i].name, name)) {
      return static_cast<std::ptrdiff_t>(i);
    }
  }
  return -1;
}

/// True where the path leads to a field, through element, key and value.
bool Exists(const types::Schema& schema, const Path& path) {
  const DataType* at = &schema;
  for (const std::string& part : path) {
    if (at->Is(TypeKind::kStruct)) {
      const auto index = types::FieldIndex(*at, part);
      if (!index) {
        return false;
      }
      at = &at->fields()[*index].type;
    } else if (at->Is(TypeKind::kArray) && EqualsIgnoreAsciiCase(part, "element")) {
      at = &at->element();
    } else if (at->Is(TypeKind::kMap) && EqualsIgnoreAsciiCase(part, "key")) {
      at = &at->key();
    } else if (at->Is(TypeKind::kMap) && EqualsIgnoreAsciiCase(part, "value")) {
      at = &at->value();
    } else {
      return false;
    }
  }
  return true;
}

Path ParentOf(const Path& path) { return {path.begin(), path.end() - 1}; }

/// Names of the table's columns that SQL texts in its metadata refer to.
Result<void> CheckNotUsed(const Alteration& a, const std::string& column, const plan::AnalysisConfig& config) {
  const plan::PlanPtr leaf = TableLeaf(a.snapshot, "the table");
  const auto uses = [&](const std::string& sql) -> Result<bool> {
    FLEUVE_ASSIGN(const plan::ExprPtr expr, AnalyzeSql(sql, leaf, config));
    return plan::AnyExpr(expr, [&](const plan::Expr& e) {
      return e.kind == plan::ExprKind::kAttribute && EqualsIgnoreAsciiCase(e.attribute.name, column);
    });
  };
  for (const auto& [key, sql] : a.metadata.configuration) {
    if (!key.starts_with("delta.constraints.")) {
      continue;
    }
    FLEUVE_ASSIGN(const bool used, uses(sql));
    if (used) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE",
                   "The column " + column + " is used by the CHECK constraint " + key.substr(18) + " (" + sql + ").")
          .With("columnName", column)
          .With("constraints", sql);
    }
  }
  for (const StructField& field : a.schema.fields()) {
    if (const std::string* sql = FieldText(field, "delta.generationExpression")) {
      FLEUVE_ASSIGN(const bool used, uses(*sql));
      if (used) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE",
                     "The column " + column + " is used by the generated column " + field.name + ".")
            .With("columnName", column)
            .With("generatedColumns", field.name);
      }
    }
  }
  return {};
}

Result<void> Store(Alteration& a, types::Schema schema, bool new_columns) {
  a.schema = std::move(schema);
  const std::string* feed = delta::FindIn(a.metadata.configuration, "delta.enableChangeDataFeed");
  if (feed != nullptr && EqualsIgnoreAsciiCase(*feed, "true")) {
    for (const char* reserved : {"_change_type", "_commit_version", "_commit_timestamp"}) {
      if (types::FieldIndex(a.schema, reserved)) {
        return Error(
                   ErrorKind::kInvalidArgument, "RESERVED_CDC_COLUMNS_ON_WRITE",
                   std::string("The column name ") + reserved + " is reserved on tables that keep a change data feed.")
            .With("columnList", reserved)
            .With("config", "delta.enableChangeDataFeed");
      }
    }
  }
  FLEUVE_TRY(CheckColumns(a.schema, delta::ColumnMappingMode(a.metadata) != "none"));
  a.metadata.schema_string = SchemaText(a.schema);
  return AssignColumnMapping(a.metadata, a.schema, new_columns);
}

/// A column as the history shows it: of nested types only their kind.
Json FieldJson(const StructField& field) {
  Json json = types::DataType::Struct({field}).ToJson()["fields"].items()[0];
  if (field.type.IsNested()) {
    json.Set("type", Json(field.type.Is(TypeKind::kStruct)  ? "struct"
                          : field.type.Is(TypeKind::kArray) ? "array"
                                                            : "map"));
  }
  return json;
}

/// Types that a column cannot be changed to as a whole; null for all others.
const char* UnchangeableKind(const DataType& to) {
  switch (to.kind()) {
    case TypeKind::kStruct:
      return "STRUCT_TYPE";
    case TypeKind::kArray:
      return "ARRAY_TYPE";
    case TypeKind::kMap:
      return "MAP_TYPE";
    case TypeKind::kYearMonthInterval:
    case TypeKind::kDayTimeInterval:
    case TypeKind::kCalendarInterval:
      return "INTERVAL_TYPE";
    default:
      return nullptr;
  }
}

/// `a.element`: a field, and the way down its type.
Path TypePathOf(const types::Schema& schema, Path* path) {
  const DataType* at = &schema;
  for (std::size_t i = 0; i < path->size(); ++i) {
    if (!at->Is(TypeKind::kStruct)) {
      // Only arrays and maps to the end: no field lies below.
      const DataType* down = at;
      for (std::size_t k = i; k < path->size(); ++k) {
        if (down->Is(TypeKind::kArray) && EqualsIgnoreAsciiCase((*path)[k], "element")) {
          down = &down->element();
        } else if (down->Is(TypeKind::kMap) && EqualsIgnoreAsciiCase((*path)[k], "key")) {
          down = &down->key();
        } else if (down->Is(TypeKind::kMap) && EqualsIgnoreAsciiCase((*path)[k], "value")) {
          down = &down->value();
        } else {
          return {};
        }
      }
      const Path rest(path->begin() + static_cast<std::ptrdiff_t>(i), path->end());
      path->resize(i);
      return rest;
    }
    const auto index = types::FieldIndex(*at, (*path)[i]);
    if (!index) {
      return {};
    }
    at = &at->fields()[*index].type;
  }
  return {};
}

DataType ReplaceInside(const DataType& type, const Path& path, std::size_t at, const DataType& with) {
  if (at == path.size()) {
    return with;
  }
  if (type.Is(TypeKind::kArray)) {
    return DataType::Array(ReplaceInside(type.element(), path, at + 1, with), type.contains_null());
  }
  const bool is_key = EqualsIgnoreAsciiCase(path[at], "key");
  return is_key ? DataType::Map(ReplaceInside(type.key(), path, at + 1, with), type.value(), type.contains_null())
                : DataType::Map(type.key(), ReplaceInside(type.value(), path, at + 1, with), type.contains_null());
}

const DataType& Inside(const DataType& type, const Path& path) {
  const DataType* at = &type;
  for (const std::string& part : path) {
    at = at->Is(TypeKind::kArray) ? &at->element() : EqualsIgnoreAsciiCase(part, "key") ? &at->key() : &at->value();
  }
  return *at;
}

}  // namespace

Result<void> AddColumns(const TableContext& context, const TableRef& table, const std::vector<NewColumn>& columns) {
  return Alter(context, table, "ADD COLUMNS", [&](Alteration& a) -> Result<void> {
    types::Schema schema = a.schema;
    Json::Array described;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const Path& path = columns[i].path;
      if (std::any_of(columns.begin(), columns.begin() + static_cast<std::ptrdiff_t>(i), [&](const NewColumn& other) {
            return std::equal(other.path.begin(), other.path.end(), path.begin(), path.end(), EqualsIgnoreAsciiCase);
          })) {
        return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                     "The column `" + Dotted(path) +
                         "` already exists. Choose another name or rename the existing "
                         "column.")
            .With("columnName", "`" + Dotted(path) + "`");
      }
    }
    for (const NewColumn& column : columns) {
      if (!column.nullable) {
        return Error(ErrorKind::kUnsupported, "DELTA_OPERATION_NOT_ALLOWED",
                     "NOT NULL columns cannot be added to a table (" + Dotted(column.path) + ").")
            .With("operation", "NOT NULL in ALTER TABLE ADD COLUMNS");
      }
      if (column.default_sql) {
        return Error(ErrorKind::kUnsupported, "WRONG_COLUMN_DEFAULTS_FOR_DELTA_ALTER_TABLE_ADD_COLUMN_NOT_SUPPORTED",
                     "A column with a default cannot be added: add it, then set its default.");
      }
      StructField field{column.path.back(), column.type, true, Json(Json::Object{})};
      if (column.comment) {
        field.metadata.Set("comment", Json(*column.comment));
      }
      field = StoredSchema(DataType::Struct({field}), false).fields()[0];
      FLEUVE_ASSIGN(
          schema, ChangeStruct(
                      schema, ParentOf(column.path), 0,
                      [&](std::vector<StructField> fields) -> Result<std::vector<StructField>> {
                        if (IndexOf(fields, field.name) >= 0) {
                          return Error(ErrorKind::kInvalidArgument, "FIELD_ALREADY_EXISTS",
                                       "Cannot add column, because `" + Dotted(column.path) + "` already exists.")
                              .With("op", "add")
                              .With("fieldNames", Dotted(column.path));
                        }
                        auto place = fields.end();
                        if (column.position.first) {
                          place = fields.begin();
                        } else if (!column.position.after.empty()) {
                          const auto at = IndexOf(fields, column.position.after);
                          if (at < 0) {
                            return FieldNotFound(column.position.after, fields);
                          }
                          place = fields.begin() + at + 1;
                        }
                        fields.insert(place, field);
                        return fields;
                      },
                      [&] {
                        const Path parent = ParentOf(column.path);
                        return Exists(a.schema, parent) ? NotStruct(column.path, parent) : Unresolved(parent, a.schema);
                      }));
      Json one(Json::Object{});
      one.Set("column", FieldJson(field));
      if (column.path.size() > 1) {
        Json shown = FieldJson(field);
        shown.Set("name", Json(Dotted(column.path)));
        one.Set("column", std::move(shown));
      }
      if (column.position.first) {
        one.Set("position", Json("FIRST"));
      } else if (!column.position.after.empty()) {
        one.Set("position", Json("AFTER " + column.position.after));
      }
      described.push_back(std::move(one));
    }
    a.parameters.Set("columns", Json(Json(std::move(described)).Dump()));
    return Store(a, std::move(schema), true);
  });
}

namespace {

/// `to` in place of `from`: fields by name, in the order of `to`; metadata of fields that stay is kept. The text of
/// what cannot change where it cannot.
Result<DataType> Rearrange(const DataType& from, const DataType& to, const Path& path,
                           const std::function<Error(const std::string&)>& refuse) {
  if (from.Is(TypeKind::kStruct) && to.Is(TypeKind::kStruct)) {
    for (const StructField& field : from.fields()) {
      if (!types::FieldIndex(to, field.name)) {
        return refuse("dropping column " + field.name);
      }
    }
    std::vector<StructField> fields;
    for (const StructField& field : to.fields()) {
      const auto at = types::FieldIndex(from, field.name);
      if (!at) {
        if (!field.nullable) {
          return refuse("adding non-nullable column " + field.name);
        }
        fields.push_back(field);
        continue;
      }
      StructField kept = from.fields()[*at];
      Path inner = path;
      inner.push_back(kept.name);
      FLEUVE_ASSIGN(kept.type, Rearrange(kept.type, field.type, inner, refuse));
      if (const Json* comment = field.metadata.Find("comment")) {
        kept.metadata.Set("comment", *comment);
      }
      fields.push_back(std::move(kept));
    }
    return DataType::Struct(std::move(fields));
  }
  if (from.Is(TypeKind::kArray) && to.Is(TypeKind::kArray)) {
    FLEUVE_ASSIGN(DataType element, Rearrange(from.element(), to.element(), path, refuse));
    return DataType::Array(std::move(element), from.contains_null());
  }
  if (from.Is(TypeKind::kMap) && to.Is(TypeKind::kMap)) {
    FLEUVE_ASSIGN(DataType key, Rearrange(from.key(), to.key(), path, refuse));
    FLEUVE_ASSIGN(DataType value, Rearrange(from.value(), to.value(), path, refuse));
    return DataType::Map(std::move(key), std::move(value), from.contains_null());
  }
  if (!from.EqualsIgnoringNullability(to)) {
    return refuse("changing data type of " + Dotted(path) + " from " + from.Sql() + " to " + to.Sql());
  }
  return from;
}

}  // namespace

Result<void> ReplaceColumns(const TableContext& context, const TableRef& table, const std::vector<NewColumn>& columns) {
  return Alter(context, table, "REPLACE COLUMNS", [&](Alteration& a) -> Result<void> {
    std::vector<StructField> fields;
    for (const NewColumn& column : columns) {
      StructField field{column.path.back(), column.type, column.nullable, Json(Json::Object{})};
      if (column.comment) {
        field.metadata.Set("comment", Json(*column.comment));
      }
      fields.push_back(std::move(field));
    }
    const types::Schema asked = StoredSchema(DataType::Struct(std::move(fields)), false);
    FLEUVE_ASSIGN(types::Schema schema, Rearrange(a.schema, asked, {}, [&](const std::string& details) {
                    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_ALTER_TABLE_REPLACE_COL_OP",
                                 "Unsupported ALTER TABLE REPLACE COLUMNS operation. Reason: " + details +
                                     ". Failed to change schema from: " + a.schema.SimpleString() +
                                     " to: " + asked.SimpleString())
                        .With("details", details)
                        .With("oldSchema", a.schema.SimpleString())
                        .With("newSchema", asked.SimpleString());
                  }));
    Json::Array described;
    for (const StructField& field : asked.fields()) {
      described.push_back(FieldJson(field));
    }
    a.parameters.Set("columns", Json(Json(std::move(described)).Dump()));
    return Store(a, std::move(schema), true);
  });
}

Result<void> RenameColumn(const TableContext& context, const TableRef& table, const std::vector<std::string>& path,
                          const std::string& name) {
  return Alter(context, table, "RENAME COLUMN", [&](Alteration& a) -> Result<void> {
    std::string old_name;
    FLEUVE_ASSIGN(types::Schema schema,
                  ChangeStruct(
                      a.schema, ParentOf(path), 0,
                      [&](std::vector<StructField> fields) -> Result<std::vector<StructField>> {
                        const auto at = IndexOf(fields, path.back());
                        if (at < 0) {
                          return Unresolved(path, a.schema);
                        }
                        const auto other = IndexOf(fields, name);
                        if (other >= 0 && other != at) {
                          return Error(ErrorKind::kInvalidArgument, "FIELD_ALREADY_EXISTS",
                                       "Cannot rename column, because `" + name + "` already exists.")
                              .With("op", "rename")
                              .With("fieldNames", name);
                        }
                        StructField& field = fields[static_cast<std::size_t>(at)];
                        old_name = field.name;
                        field.name = name;
                        return fields;
                      },
                      [&] { return Unresolved(path, a.schema); }));
    FLEUVE_TRY(CheckNotUsed(a, path[0], context.config));
    if (delta::ColumnMappingMode(a.metadata) == "none") {
      return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_RENAME_COLUMN",
                   "Columns can be renamed only where column mapping is on: set the table property "
                   "'delta.columnMapping.mode' = 'name'.");
    }
    if (path.size() == 1) {
      for (std::string& partition : a.metadata.partition_columns) {
        if (EqualsIgnoreAsciiCase(partition, old_name)) {
          partition = name;
        }
      }
    }
    a.parameters.Set("oldColumnPath", Json(Dotted(path)));
    Path renamed = ParentOf(path);
    renamed.push_back(name);
    a.parameters.Set("newColumnPath", Json(Dotted(renamed)));
    return Store(a, std::move(schema), false);
  });
}

Result<void> DropColumns(const TableContext& context, const TableRef& table,
                         const std::vector<std::vector<std::string>>& paths, bool if_exists) {
  return Alter(context, table, "DROP COLUMNS", [&](Alteration& a) -> Result<void> {
    for (const Path& path : paths) {
      if (!if_exists && !Exists(a.schema, path)) {
        return Unresolved(path, a.schema);
      }
    }
    if (delta::ColumnMappingMode(a.metadata) == "none") {
      return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_DROP_COLUMN",
                   "Columns can be dropped only where column mapping is on: set the table property "
                   "'delta.columnMapping.mode' = 'name'.");
    }
    types::Schema schema = a.schema;
    Json::Array dropped;
    for (const Path& path : paths) {
      if (path.size() == 1 && std::any_of(a.metadata.partition_columns.begin(), a.metadata.partition_columns.end(),
                                          [&](const auto& p) { return EqualsIgnoreAsciiCase(p, path[0]); })) {
        return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_DROP_PARTITION_COLUMN",
                     "The partition column " + path[0] + " cannot be dropped.")
            .With("columnList", path[0]);
      }
      FLEUVE_TRY(CheckNotUsed(a, path[0], context.config));
      bool missing = false;
      auto changed = ChangeStruct(
          schema, ParentOf(path), 0,
          [&](std::vector<StructField> fields) -> Result<std::vector<StructField>> {
            const auto at = IndexOf(fields, path.back());
            if (at < 0) {
              missing = true;
              return Unresolved(path, a.schema);
            }
            if (fields.size() == 1) {
              return Error(ErrorKind::kInvalidArgument, "DELTA_DROP_COLUMN_ON_SINGLE_FIELD_SCHEMA",
                           "The only column of a schema cannot be dropped.");
            }
            fields.erase(fields.begin() + at);
            return fields;
          },
          [&] {
            missing = true;
            return Unresolved(path, a.schema);
          });
      if (!changed.ok()) {
        if (missing && if_exists) {
          continue;
        }
        return std::move(changed).error();
      }
      schema = *std::move(changed);
      dropped.emplace_back(Dotted(path));
    }
    if (dropped.empty()) {
      a.changed = false;
      return {};
    }
    a.parameters.Set("columns", Json(Json(std::move(dropped)).Dump()));
    return Store(a, std::move(schema), false);
  });
}

Result<void> AlterColumn(const TableContext& context, const TableRef& table, const ColumnChange& asked) {
  return Alter(context, table, "CHANGE COLUMN", [&](Alteration& a) -> Result<void> {
    StructField changed;
    ColumnChange change = asked;
    const Path inside = TypePathOf(a.schema, &change.path);
    const auto edit = [&](std::vector<StructField> fields) -> Result<std::vector<StructField>> {
      const auto at = IndexOf(fields, change.path.back());
      if (at < 0) {
        return Unresolved(change.path, a.schema);
      }
      StructField field = fields[static_cast<std::size_t>(at)];
      const auto refuse = [&](const std::string& what) {
        return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_ALTER_TABLE_CHANGE_COL_OP",
                     "ALTER TABLE CHANGE COLUMN cannot change " + Dotted(change.path) + " " + what + ".")
            .With("fieldPath", Dotted(change.path))
            .With("oldField", field.type.Sql())
            .With("newField", change.type ? change.type->Sql() : "");
      };
      if (change.type) {
        const types::DataType to =
            StoredSchema(DataType::Struct({{"x", *change.type, true, Json()}}), false).fields()[0].type;
        const std::string* length = FieldText(field, "__CHAR_VARCHAR_TYPE_STRING");
        if (change.type->Is(TypeKind::kVarchar) || change.type->Is(TypeKind::kChar) ||
            (length != nullptr && to.Is(TypeKind::kString))) {
          if (!field.type.Is(TypeKind::kString)) {
            return refuse("from " + field.type.SimpleString() + " to " + change.type->SimpleString());
          }
          if (change.type->Is(TypeKind::kString)) {
            Json::Object kept;
            for (const auto& [key, value] : field.metadata.fields()) {
              if (key != "__CHAR_VARCHAR_TYPE_STRING") {
                kept.emplace_back(key, value);
              }
            }
            field.metadata = Json(std::move(kept));
          } else {
            FLEUVE_ASSIGN(const DataType from, DataType::FromDdl(length == nullptr ? "string" : *length));
            if (!from.Is(change.type->kind()) || from.length() > change.type->length()) {
              return Error(ErrorKind::kUnsupported, "NOT_SUPPORTED_CHANGE_COLUMN",
                           "ALTER TABLE CHANGE COLUMN cannot change " + Dotted(change.path) + " from " +
                               from.SimpleString() + " to " + change.type->SimpleString() + ".")
                  .Family(ErrorFamily::kAnalysis);
            }
            field.metadata.Set("__CHAR_VARCHAR_TYPE_STRING", Json(change.type->SimpleString()));
          }
        } else if (const DataType& now = Inside(field.type, inside); !now.EqualsIgnoringNullability(to)) {
          if (const char* kind = UnchangeableKind(to)) {
            return Error(ErrorKind::kUnsupported, std::string("CANNOT_UPDATE_FIELD.") + kind,
                         "Cannot update " + Dotted(change.path) + " type: update its parts instead.")
                .With("table", table.name)
                .With("fieldName", Dotted(change.path))
                .Family(ErrorFamily::kAnalysis);
          }
          if (!plan::CanUpCast(now, to)) {
            return Error(ErrorKind::kUnsupported, "NOT_SUPPORTED_CHANGE_COLUMN",
                         "ALTER TABLE CHANGE COLUMN cannot change " + Dotted(change.path) + " from " +
                             now.SimpleString() + " to " + to.SimpleString() + ".")
                .Family(ErrorFamily::kAnalysis);
          }
          if (!a.snapshot->BooleanProperty("delta.enableTypeWidening", false) || !CanWiden(now, to)) {
            return refuse("from " + now.SimpleString() + " to " + to.SimpleString());
          }
          const StructField before = field;
          field.type = ReplaceInside(field.type, inside, 0, to);
          field = RecordTypeChanges(DataType::Struct({before}), DataType::Struct({field})).fields()[0];
        }
      }
      if (change.nullable && *change.nullable != field.nullable) {
        if (!*change.nullable) {
          return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2330",
                       "Cannot change nullable column to non-nullable: " + Dotted(change.path) + ".")
              .Family(ErrorFamily::kAnalysis);
        }
        field.nullable = true;
      }
      if (change.comment) {
        field.metadata.Set("comment", Json(*change.comment));
      }
      if (change.set_default) {
        if (!delta::HasFeature(a.snapshot->protocol(), "allowColumnDefaults")) {
          return Error(ErrorKind::kInvalidArgument, "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
                       "Column defaults need the table feature allowColumnDefaults: set the table property "
                       "'delta.feature.allowColumnDefaults' = 'supported'.");
        }
        FLEUVE_TRY(CheckDefault(*change.set_default, field, context.config));
        field.metadata.Set("CURRENT_DEFAULT", Json(*change.set_default));
      }
      if (change.drop_default) {
        Json::Object kept;
        for (const auto& [key, value] : field.metadata.fields()) {
          if (key != "CURRENT_DEFAULT") {
            kept.emplace_back(key, value);
          }
        }
        field.metadata = Json(std::move(kept));
      }
      changed = field;
      if (!change.position) {
        fields[static_cast<std::size_t>(at)] = std::move(field);
        return fields;
      }
      fields.erase(fields.begin() + at);
      auto place = fields.begin();
      if (!change.position->first) {
        const auto after = IndexOf(fields, change.position->after);
        if (after < 0) {
          return Unresolved({change.position->after}, a.schema);
        }
        place = fields.begin() + after + 1;
      }
      fields.insert(place, std::move(field));
      return fields;
    };
    FLEUVE_ASSIGN(types::Schema schema, ChangeStruct(a.schema, ParentOf(change.path), 0, edit,
                                                     [&] { return Unresolved(change.path, a.schema); }));
    if (change.type && change.path.size() == 1) {
      FLEUVE_TRY(CheckNotUsed(a, change.path[0], context.config));
    }
    // The history names the column by its path; what it says of types that were widened is no part of it.
    changed.name = Dotted(change.path);
    if (changed.metadata.Find("delta.typeChanges") != nullptr) {
      Json::Object kept;
      for (const auto& [key, value] : changed.metadata.fields()) {
        if (key != "delta.typeChanges") {
          kept.emplace_back(key, value);
        }
      }
      changed.metadata = Json(std::move(kept));
    }
    a.parameters.Set("column", Json(FieldJson(changed).Dump()));
    if (change.position) {
      a.parameters.Set("position", Json(change.position->first ? "FIRST" : "AFTER " + change.position->after));
    }
    return Store(a, std::move(schema), false);
  });
}

}  // namespace fleuve::tables
