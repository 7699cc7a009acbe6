#pragma once

/// \file
/// Databases, tables and views by name, durable in one SQLite file of the warehouse.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

struct sqlite3;

namespace fleuve::catalog {

struct Database {
  std::string name;  ///< lower case
  std::string comment;
  /// Absolute path of the folder that its managed tables live in.
  std::string location;
  std::map<std::string, std::string> properties;
  std::string owner;
};

enum class TableKind { kManaged, kExternal, kView };

/// What the catalog knows of a table or view. A Delta table's schema and properties are in its log, not here.
struct Table {
  std::string database;  ///< lower case
  std::string name;      ///< lower case
  TableKind kind = TableKind::kManaged;
  std::string provider;  ///< `delta`, `parquet`, ...; empty for a view
  /// Absolute path; empty for a view.
  std::string location;
  std::string comment;
  /// Spark's JSON of the schema: views and tables without a log of their own; else empty.
  std::string schema_json;
  std::vector<std::string> partition_columns;
  std::map<std::string, std::string> properties;
  std::map<std::string, std::string> options;
  /// A view's query, and the database that its names are resolved in.
  std::string view_text;
  std::string view_database;
  std::string owner;
  std::int64_t created_ms = 0;
};

/// The catalog of one warehouse. Names are compared without case and kept in lower case, as Spark's are.
///
/// Invariants: (1) a managed table's row appears after its first commit and disappears before its folder: a crash
/// leaves at most a folder without a row, never a row without data; (2) a folder to be deleted is first written down as
/// an intent, in the transaction that deletes the row, and `Open` finishes intents that a crash left. Threads: any.
/// Several processes may open one warehouse: SQLite's locks order them (WAL, synchronous FULL).
class Catalog {
 public:
  /// Opens or creates `<warehouse>/fleuve-catalog.sqlite` and the database `default`, whose location is the warehouse
  /// itself. FLEUVE_CATALOG_VERSION (kUnsupported) where a newer version wrote it; kCorrupt where it is no catalog.
  static Result<std::unique_ptr<Catalog>> Open(const std::string& warehouse);
  ~Catalog();
  Catalog(const Catalog&) = delete;
  Catalog& operator=(const Catalog&) = delete;

  const std::string& warehouse() const { return warehouse_; }

  /// SCHEMA_ALREADY_EXISTS (kAlreadyExists). An empty location becomes `<warehouse>/<name>.db`.
  Result<void> CreateDatabase(Database database);
  /// SCHEMA_NOT_FOUND; SCHEMA_NOT_EMPTY unless `cascade`, which drops its tables too; `default` cannot be dropped.
  Result<void> DropDatabase(const std::string& name, bool cascade);
  /// SCHEMA_NOT_FOUND (kNotFound).
  Result<Database> GetDatabase(const std::string& name);
  /// Sorted by name.
  Result<std::vector<Database>> ListDatabases();
  Result<void> AlterDatabase(const Database& database);

  /// Where a new managed table of this name lives: `<database folder>/<name>`, or a name of its own where a renamed
  /// table still lies there.
  Result<std::string> DefaultTableLocation(const std::string& database, const std::string& name);
  /// TABLE_OR_VIEW_ALREADY_EXISTS (kAlreadyExists) unless `replace`; SCHEMA_NOT_FOUND.
  Result<void> CreateTable(Table table, bool replace = false);
  /// TABLE_OR_VIEW_NOT_FOUND (kNotFound).
  Result<Table> GetTable(const std::string& database, const std::string& name);
  /// Sorted by name; views included.
  Result<std::vector<Table>> ListTables(const std::string& database);
  /// Drops the row and, of a managed table, the folder. TABLE_OR_VIEW_NOT_FOUND.
  Result<void> DropTable(const std::string& database, const std::string& name);
  /// Renames the row; a managed table stays in its folder. TABLE_OR_VIEW_NOT_FOUND, TABLE_OR_VIEW_ALREADY_EXISTS.
  Result<void> RenameTable(const std::string& database, const std::string& from, const std::string& to_database,
                           const std::string& to);
  /// Replaces a table's row. TABLE_OR_VIEW_NOT_FOUND.
  Result<void> AlterTable(const Table& table);

 private:
  Catalog(std::string warehouse, sqlite3* db) : warehouse_(std::move(warehouse)), db_(db) {}
  Result<void> FinishIntents();
  Result<void> DropTableLocked(const Table& table);
  Result<Database> GetDatabaseLocked(const std::string& name);
  Result<std::optional<Table>> FindTableLocked(const std::string& database, const std::string& name);
  Result<void> WriteTableLocked(const Table& table);

  std::string warehouse_;
  std::mutex mutex_;
  sqlite3* db_;
};

}  // namespace fleuve::catalog
