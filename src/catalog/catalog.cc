#include "catalog/catalog.h"

#include <sqlite3.h>

#include <filesystem>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/log.h"
#include "catalog/statement_internal.h"
#include "storage/object_store.h"

namespace fleuve::catalog {
namespace {

constexpr int kSchemaVersion = 1;
constexpr const char* kSchema = R"(
CREATE TABLE databases (name TEXT PRIMARY KEY, comment TEXT, location TEXT, properties TEXT, owner TEXT);
CREATE TABLE tables (database TEXT, name TEXT, kind TEXT, provider TEXT, location TEXT, comment TEXT, schema_json TEXT,
  partition_columns TEXT, properties TEXT, options TEXT, view_text TEXT, view_database TEXT, owner TEXT,
  created_ms INTEGER, PRIMARY KEY (database, name));
CREATE TABLE intents (delete_folder TEXT PRIMARY KEY);
PRAGMA user_version = 1;
)";

constexpr const char* kSelectTable =
    "SELECT database, name, kind, provider, location, comment, schema_json, partition_columns, properties, options,"
    " view_text, view_database, owner, created_ms FROM tables WHERE database = ?1";

std::string MapToJson(const std::map<std::string, std::string>& map) {
  Json json{Json::Object()};
  for (const auto& [key, value] : map) {
    json.Set(key, value);
  }
  return json.Dump();
}

std::map<std::string, std::string> MapFromJson(const std::string& text) {
  std::map<std::string, std::string> map;
  if (const auto json = Json::Parse(text); json.ok()) {
    for (const auto& [key, value] : json->fields()) {
      map[key] = value.AsString();
    }
  }
  return map;
}

std::string ListToJson(const std::vector<std::string>& list) {
  Json json{Json::Array()};
  for (const auto& item : list) {
    json.Append(item);
  }
  return json.Dump();
}

std::vector<std::string> ListFromJson(const std::string& text) {
  std::vector<std::string> list;
  if (const auto json = Json::Parse(text); json.ok()) {
    for (const auto& item : json->items()) {
      list.push_back(item.AsString());
    }
  }
  return list;
}

std::string_view KindName(TableKind kind) {
  switch (kind) {
    case TableKind::kManaged:
      return "MANAGED";
    case TableKind::kExternal:
      return "EXTERNAL";
    case TableKind::kView:
      return "VIEW";
  }
  return "VIEW";
}

Table TableFromRow(const Statement& row) {
  Table table;
  table.database = row.Text(0);
  table.name = row.Text(1);
  const std::string kind = row.Text(2);
  table.kind = kind == "MANAGED" ? TableKind::kManaged : kind == "EXTERNAL" ? TableKind::kExternal : TableKind::kView;
  table.provider = row.Text(3);
  table.location = row.Text(4);
  table.comment = row.Text(5);
  table.schema_json = row.Text(6);
  table.partition_columns = ListFromJson(row.Text(7));
  table.properties = MapFromJson(row.Text(8));
  table.options = MapFromJson(row.Text(9));
  table.view_text = row.Text(10);
  table.view_database = row.Text(11);
  table.owner = row.Text(12);
  table.created_ms = row.Number(13);
  return table;
}

Database DatabaseFromRow(const Statement& row) {
  return {row.Text(0), row.Text(1), row.Text(2), MapFromJson(row.Text(3)), row.Text(4)};
}

Error DatabaseNotFound(const std::string& name) {
  return Error(ErrorKind::kNotFound, "SCHEMA_NOT_FOUND",
               "The schema `spark_catalog`.`" + name +
                   "` cannot be found. Verify the spelling and correctness of the "
                   "schema and catalog.")
      .With("schemaName", "`spark_catalog`.`" + name + "`");
}

std::string QuotedTable(const std::string& database, const std::string& name) {
  return "`spark_catalog`.`" + database + "`.`" + name + "`";
}

Error TableNotFound(const std::string& database, const std::string& name) {
  return Error(ErrorKind::kNotFound, "TABLE_OR_VIEW_NOT_FOUND",
               "The table or view " + QuotedTable(database, name) +
                   " cannot be found. Verify the spelling and correctness of the schema and catalog.")
      .With("relationName", QuotedTable(database, name));
}

Error TableExists(const std::string& database, const std::string& name) {
  return Error(
             ErrorKind::kAlreadyExists, "TABLE_OR_VIEW_ALREADY_EXISTS",
             "Cannot create table or view " + QuotedTable(database, name) +
                 " because it already exists. Choose a different name, drop or replace the existing object, or add the "
                 "IF NOT EXISTS clause.")
      .With("relationName", QuotedTable(database, name));
}

}  // namespace

Error SqliteError(sqlite3* db, std::string_view what) {
  const int code = sqlite3_errcode(db);
  const std::string message = "the catalog could not " + std::string(what) + ": " + sqlite3_errmsg(db);
  switch (code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Error(ErrorKind::kTransient, "FLEUVE_CATALOG", message);
    case SQLITE_FULL:
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_DISK_FULL", message);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return Error(ErrorKind::kPermissionDenied, "FLEUVE_CATALOG", message);
    default:
      return Error(ErrorKind::kCorrupt, "FLEUVE_CATALOG", message);
  }
}

Result<std::unique_ptr<Catalog>> Catalog::Open(const std::string& warehouse) {
  FLEUVE_ASSIGN(const auto location, storage::Resolve(warehouse));
  if (!location.store->is_local()) {
    return Error::Unsupported("a warehouse that is not on the local disk (" + warehouse + ")");
  }
  FLEUVE_TRY(location.store->CreateDirectory(location.path));
  sqlite3* db = nullptr;
  const std::string file = location.path + "/fleuve-catalog.sqlite";
  const int opened =
      sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  std::unique_ptr<Catalog> catalog(new Catalog(location.path, db));
  if (opened != SQLITE_OK) {
    return SqliteError(db, "open " + file);
  }
  sqlite3_busy_timeout(db, 10000);
  if (sqlite3_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;", nullptr, nullptr, nullptr) != SQLITE_OK) {
    return SqliteError(db, "open " + file);
  }
  WriteTransaction transaction(db);
  FLEUVE_TRY(transaction.Begin());
  std::int64_t version = 0;
  {
    Statement read(db, "PRAGMA user_version");
    FLEUVE_ASSIGN(const bool row, read.Step());
    version = row ? read.Number(0) : 0;
  }
  if (version > kSchemaVersion) {
    return Error(ErrorKind::kUnsupported, "FLEUVE_CATALOG_VERSION",
                 file + " was written by a newer version of Fleuve (catalog version " + std::to_string(version) + ")");
  }
  if (version == 0) {
    if (sqlite3_exec(db, kSchema, nullptr, nullptr, nullptr) != SQLITE_OK) {
      return SqliteError(db, "create its tables in " + file);
    }
    FLEUVE_TRY(Statement(db, "INSERT INTO databases VALUES ('default', 'Default Hive database', ?1, '{}', '')")
                   .Bind(location.path)
                   .Run());
  }
  FLEUVE_TRY(transaction.Commit());
  FLEUVE_TRY(catalog->FinishIntents());
  return catalog;
}

Catalog::~Catalog() { sqlite3_close_v2(db_); }

Result<void> Catalog::FinishIntents() {
  std::vector<std::string> folders;
  {
    Statement read(db_, "SELECT delete_folder FROM intents");
    while (true) {
      FLEUVE_ASSIGN(const bool row, read.Step());
      if (!row) {
        break;
      }
      folders.push_back(read.Text(0));
    }
  }
  for (const auto& folder : folders) {
    // A table that was made anew in the same place keeps its files.
    Statement used(db_, "SELECT 1 FROM tables WHERE location = ?1");
    used.Bind(folder);
    FLEUVE_ASSIGN(const bool in_use, used.Step());
    if (!in_use) {
      FLEUVE_TRY(storage::LocalStore()->DeleteAll(folder));
    }
    FLEUVE_TRY(Statement(db_, "DELETE FROM intents WHERE delete_folder = ?1").Bind(folder).Run());
  }
  return {};
}

Result<Database> Catalog::GetDatabaseLocked(const std::string& name) {
  Statement read(db_, "SELECT name, comment, location, properties, owner FROM databases WHERE name = ?1");
  read.Bind(AsciiLower(name));
  FLEUVE_ASSIGN(const bool row, read.Step());
  if (!row) {
    return DatabaseNotFound(name);
  }
  return DatabaseFromRow(read);
}

Result<std::optional<Table>> Catalog::FindTableLocked(const std::string& database, const std::string& name) {
  Statement read(db_, (std::string(kSelectTable) + " AND name = ?2").c_str());
  read.Bind(AsciiLower(database)).Bind(AsciiLower(name));
  FLEUVE_ASSIGN(const bool row, read.Step());
  if (!row) {
    return std::optional<Table>();
  }
  return std::optional<Table>(TableFromRow(read));
}

Result<void> Catalog::WriteTableLocked(const Table& table) {
  return Statement(db_, "INSERT OR REPLACE INTO tables VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)")
      .Bind(AsciiLower(table.database))
      .Bind(AsciiLower(table.name))
      .Bind(std::string(KindName(table.kind)))
      .Bind(table.provider)
      .Bind(table.location)
      .Bind(table.comment)
      .Bind(table.schema_json)
      .Bind(ListToJson(table.partition_columns))
      .Bind(MapToJson(table.properties))
      .Bind(MapToJson(table.options))
      .Bind(table.view_text)
      .Bind(table.view_database)
      .Bind(table.owner)
      .Bind(table.created_ms)
      .Run();
}

Result<void> Catalog::CreateDatabase(Database database) {
  const std::lock_guard lock(mutex_);
  database.name = AsciiLower(database.name);
  if (database.location.empty()) {
    database.location = warehouse_ + "/" + database.name + ".db";
  }
  FLEUVE_ASSIGN(const auto location, storage::Resolve(database.location));
  WriteTransaction transaction(db_);
  FLEUVE_TRY(transaction.Begin());
  const auto existing = GetDatabaseLocked(database.name);
  if (existing.ok()) {
    return Error(ErrorKind::kAlreadyExists, "SCHEMA_ALREADY_EXISTS",
                 "Cannot create schema `" + database.name +
                     "` because it already exists. Choose a different name, drop "
                     "the existing schema, or add the IF NOT EXISTS clause to tolerate pre-existing schema.")
        .With("schemaName", "`" + database.name + "`");
  }
  FLEUVE_TRY(location.store->CreateDirectory(location.path));
  FLEUVE_TRY(Statement(db_, "INSERT INTO databases VALUES (?1, ?2, ?3, ?4, ?5)")
                 .Bind(database.name)
                 .Bind(database.comment)
                 .Bind(location.path)
                 .Bind(MapToJson(database.properties))
                 .Bind(database.owner)
                 .Run());
  return transaction.Commit();
}

Result<void> Catalog::DropDatabase(const std::string& name, bool cascade) {
  const std::lock_guard lock(mutex_);
  {
    WriteTransaction transaction(db_);
    FLEUVE_TRY(transaction.Begin());
    FLEUVE_ASSIGN(const Database database, GetDatabaseLocked(name));
    if (database.name == "default") {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.DROP_DATABASE",
                   "The feature is not supported: Drop the default database `spark_catalog`.`default`.");
    }
    std::vector<Table> tables;
    {
      Statement read(db_, kSelectTable);
      read.Bind(database.name);
      while (true) {
        FLEUVE_ASSIGN(const bool row, read.Step());
        if (!row) {
          break;
        }
        tables.push_back(TableFromRow(read));
      }
    }
    if (!tables.empty() && !cascade) {
      return Error(ErrorKind::kInvalidArgument, "SCHEMA_NOT_EMPTY",
                   "Cannot drop a schema `" + database.name +
                       "` because it contains objects. Use DROP SCHEMA ... CASCADE "
                       "to drop the schema and all its objects.")
          .With("schemaName", "`" + database.name + "`");
    }
    for (const auto& table : tables) {
      FLEUVE_TRY(DropTableLocked(table));
    }
    FLEUVE_TRY(Statement(db_, "DELETE FROM databases WHERE name = ?1").Bind(database.name).Run());
    if (database.location != warehouse_) {
      FLEUVE_TRY(Statement(db_, "INSERT OR REPLACE INTO intents VALUES (?1)").Bind(database.location).Run());
    }
    FLEUVE_TRY(transaction.Commit());
  }
  return FinishIntents();
}

Result<Database> Catalog::GetDatabase(const std::string& name) {
  const std::lock_guard lock(mutex_);
  return GetDatabaseLocked(name);
}

Result<std::vector<Database>> Catalog::ListDatabases() {
  const std::lock_guard lock(mutex_);
  std::vector<Database> databases;
  Statement read(db_, "SELECT name, comment, location, properties, owner FROM databases ORDER BY name");
  while (true) {
    FLEUVE_ASSIGN(const bool row, read.Step());
    if (!row) {
      return databases;
    }
    databases.push_back(DatabaseFromRow(read));
  }
}

Result<void> Catalog::AlterDatabase(const Database& database) {
  const std::lock_guard lock(mutex_);
  WriteTransaction transaction(db_);
  FLEUVE_TRY(transaction.Begin());
  FLEUVE_ASSIGN(const Database existing, GetDatabaseLocked(database.name));
  FLEUVE_TRY(
      Statement(db_, "UPDATE databases SET comment = ?2, location = ?3, properties = ?4, owner = ?5 WHERE name = ?1")
          .Bind(existing.name)
          .Bind(database.comment)
          .Bind(database.location)
          .Bind(MapToJson(database.properties))
          .Bind(database.owner)
          .Run());
  return transaction.Commit();
}

Result<std::string> Catalog::DefaultTableLocation(const std::string& database, const std::string& name) {
  const std::lock_guard lock(mutex_);
  FLEUVE_ASSIGN(const Database found, GetDatabaseLocked(database));
  std::string location = found.location + "/" + AsciiLower(name);
  Statement used(db_, "SELECT 1 FROM tables WHERE location = ?1 AND NOT (database = ?2 AND name = ?3)");
  used.Bind(location).Bind(found.name).Bind(AsciiLower(name));
  FLEUVE_ASSIGN(const bool taken, used.Step());
  if (taken) {  // by a table that was renamed
    location += "-" + NewUuid().substr(0, 8);
  }
  return location;
}

Result<void> Catalog::CreateTable(Table table, bool replace) {
  const std::lock_guard lock(mutex_);
  WriteTransaction transaction(db_);
  FLEUVE_TRY(transaction.Begin());
  FLEUVE_ASSIGN(const Database database, GetDatabaseLocked(table.database));
  FLEUVE_ASSIGN(const auto existing, FindTableLocked(table.database, table.name));
  if (existing && !replace) {
    return TableExists(database.name, AsciiLower(table.name));
  }
  if (table.created_ms == 0) {
    table.created_ms = existing ? existing->created_ms : Clock::System()->NowMillis();
  }
  FLEUVE_TRY(WriteTableLocked(table));
  FLEUVE_TRY(Failpoint("catalog.create.before_commit"));
  return transaction.Commit();
}

Result<Table> Catalog::GetTable(const std::string& database, const std::string& name) {
  const std::lock_guard lock(mutex_);
  FLEUVE_ASSIGN(auto found, FindTableLocked(database, name));
  if (!found) {
    return TableNotFound(AsciiLower(database), AsciiLower(name));
  }
  return *std::move(found);
}

Result<std::vector<Table>> Catalog::ListTables(const std::string& database) {
  const std::lock_guard lock(mutex_);
  FLEUVE_ASSIGN(const Database found, GetDatabaseLocked(database));
  std::vector<Table> tables;
  Statement read(db_, (std::string(kSelectTable) + " ORDER BY name").c_str());
  read.Bind(found.name);
  while (true) {
    FLEUVE_ASSIGN(const bool row, read.Step());
    if (!row) {
      return tables;
    }
    tables.push_back(TableFromRow(read));
  }
}

Result<void> Catalog::DropTableLocked(const Table& table) {
  FLEUVE_TRY(Statement(db_, "DELETE FROM tables WHERE database = ?1 AND name = ?2")
                 .Bind(table.database)
                 .Bind(table.name)
                 .Run());
  if (table.kind == TableKind::kManaged) {
    FLEUVE_TRY(Statement(db_, "INSERT OR REPLACE INTO intents VALUES (?1)").Bind(table.location).Run());
  }
  return {};
}

Result<void> Catalog::DropTable(const std::string& database, const std::string& name) {
  const std::lock_guard lock(mutex_);
  {
    WriteTransaction transaction(db_);
    FLEUVE_TRY(transaction.Begin());
    FLEUVE_ASSIGN(const auto table, FindTableLocked(database, name));
    if (!table) {
      return TableNotFound(AsciiLower(database), AsciiLower(name));
    }
    FLEUVE_TRY(DropTableLocked(*table));
    FLEUVE_TRY(transaction.Commit());
  }
  FLEUVE_TRY(Failpoint("catalog.drop.before_folder"));
  return FinishIntents();
}

Result<void> Catalog::RenameTable(const std::string& database, const std::string& from, const std::string& to_database,
                                  const std::string& to) {
  const std::lock_guard lock(mutex_);
  WriteTransaction transaction(db_);
  FLEUVE_TRY(transaction.Begin());
  FLEUVE_ASSIGN(auto table, FindTableLocked(database, from));
  if (!table) {
    return TableNotFound(AsciiLower(database), AsciiLower(from));
  }
  FLEUVE_ASSIGN(const Database target, GetDatabaseLocked(to_database));
  FLEUVE_ASSIGN(const auto taken, FindTableLocked(to_database, to));
  if (taken) {
    return TableExists(target.name, AsciiLower(to));
  }
  FLEUVE_TRY(Statement(db_, "DELETE FROM tables WHERE database = ?1 AND name = ?2")
                 .Bind(table->database)
                 .Bind(table->name)
                 .Run());
  table->database = target.name;
  table->name = AsciiLower(to);
  // A managed table stays in its folder: names live here, files do not move, and no crash can part the two.
  FLEUVE_TRY(WriteTableLocked(*table));
  return transaction.Commit();
}

Result<void> Catalog::AlterTable(const Table& table) {
  const std::lock_guard lock(mutex_);
  WriteTransaction transaction(db_);
  FLEUVE_TRY(transaction.Begin());
  FLEUVE_ASSIGN(const auto existing, FindTableLocked(table.database, table.name));
  if (!existing) {
    return TableNotFound(AsciiLower(table.database), AsciiLower(table.name));
  }
  FLEUVE_TRY(WriteTableLocked(table));
  return transaction.Commit();
}

}  // namespace fleuve::catalog
