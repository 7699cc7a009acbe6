#pragma once

/// \file
/// SQLite behind Results: one prepared statement, and a transaction that rolls back unless committed.

#include <sqlite3.h>

#include <string>
#include <string_view>

#include "base/result.h"

namespace fleuve::catalog {

/// The Error of SQLite's last failure on `db`.
Error SqliteError(sqlite3* db, std::string_view what);

/// One statement, used once.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) : db_(db) {
    failed_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) != SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& Bind(const std::string& text) {
    if (!failed_) {
      sqlite3_bind_text(statement_, ++bound_, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
    }
    return *this;
  }
  Statement& Bind(std::int64_t number) {
    if (!failed_) {
      sqlite3_bind_int64(statement_, ++bound_, number);
    }
    return *this;
  }
  /// True: a row is there; false: the end.
  Result<bool> Step() {
    if (failed_) {
      return SqliteError(db_, "prepare");
    }
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_ROW) {
      return true;
    }
    if (code == SQLITE_DONE) {
      return false;
    }
    return SqliteError(db_, "run");
  }
  Result<void> Run() {
    FLEUVE_ASSIGN(const bool row, Step());
    (void)row;
    return {};
  }
  std::string Text(int column) const {
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return text == nullptr ? std::string()
                           : std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column)));
  }
  std::int64_t Number(int column) const { return sqlite3_column_int64(statement_, column); }

 private:
  sqlite3* db_;
  sqlite3_stmt* statement_ = nullptr;
  bool failed_;
  int bound_ = 0;
};

/// BEGIN IMMEDIATE ... COMMIT; rolls back when it dies uncommitted.
class WriteTransaction {
 public:
  explicit WriteTransaction(sqlite3* db) : db_(db) {}
  ~WriteTransaction() {
    if (open_) {
      sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
    }
  }
  WriteTransaction(const WriteTransaction&) = delete;
  WriteTransaction& operator=(const WriteTransaction&) = delete;
  Result<void> Begin() {
    if (sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK) {
      return SqliteError(db_, "begin");
    }
    open_ = true;
    return {};
  }
  Result<void> Commit() {
    if (sqlite3_exec(db_, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) {
      return SqliteError(db_, "commit");
    }
    open_ = false;
    return {};
  }

 private:
  sqlite3* db_;
  bool open_ = false;
};

}  // namespace fleuve::catalog
