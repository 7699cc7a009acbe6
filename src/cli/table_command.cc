#include "cli/table_command.h"

#include <cstdio>
#include <iostream>

#include "base/bytes.h"
#include "delta/log.h"
#include "engine/engine.h"
#include "engine/parquet_files.h"
#include "storage/object_store.h"
#include "tables/commands.h"
#include "types/data_type.h"

namespace fleuve::cli {

namespace {

std::string TableAt(const std::string& path) { return "delta." + types::QuoteIdentifier(path); }

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string::npos;
}

}  // namespace

Result<std::string> TableSql(const TableCommand& command) {
  FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(command.path));
  const std::string table = TableAt(location.path);
  if (command.action == "history") {
    return "DESCRIBE HISTORY " + table;
  }
  if (command.action == "detail") {
    return "DESCRIBE DETAIL " + table;
  }
  if (command.action == "optimize") {
    return "OPTIMIZE " + table + (command.full ? " FULL" : "") +
           (command.where.empty() ? "" : " WHERE " + command.where) +
           (command.zorder_by.empty() ? "" : " ZORDER BY (" + command.zorder_by + ")");
  }
  if (command.action == "vacuum") {
    if (!command.retain_hours.empty() && !IsNumber(command.retain_hours)) {
      return Error(ErrorKind::kInvalidArgument, "", "--retain takes a number of hours, not " + command.retain_hours);
    }
    return "VACUUM " + table + (command.lite ? " LITE" : "") +
           (command.retain_hours.empty() ? "" : " RETAIN " + command.retain_hours + " HOURS") +
           (command.dry_run ? " DRY RUN" : "");
  }
  if (command.version.empty() == command.timestamp.empty()) {
    return Error(ErrorKind::kInvalidArgument, "", "restore takes --version or --timestamp");
  }
  if (!command.version.empty() && !IsNumber(command.version)) {
    return Error(ErrorKind::kInvalidArgument, "", "--version takes a number, not " + command.version);
  }
  return "RESTORE TABLE " + table + " TO " +
         (command.version.empty() ? "TIMESTAMP AS OF '" + command.timestamp + "'" : "VERSION AS OF " + command.version);
}

bool IsFileCheck(const TableCommand& command) { return command.action == "check" || command.action == "repair"; }

Result<int> RunFileCheck(const TableCommand& command) {
  delta::LogContext log_context;
  log_context.parquet_reader = engine::MakeParquetReader();
  log_context.parquet_writer = engine::MakeParquetWriter();
  delta::LogRegistry logs(std::move(log_context));
  FLEUVE_ASSIGN(const std::unique_ptr<engine::Engine> engine, engine::Engine::Open({}));
  tables::TableContext context;
  context.logs = &logs;
  context.engine = engine.get();
  context.config.conf = [](const std::string&) { return std::optional<std::string>(); };
  tables::TableRef table;
  FLEUVE_ASSIGN(table.location, storage::Resolve(command.path));
  table.name = TableAt(table.location.path);
  if (command.action == "repair") {
    FLEUVE_ASSIGN(const tables::RowsResult gone, tables::RepairTable(context, table, command.dry_run));
    for (const auto& row : gone.rows) {
      std::cout << row[0].text() << "\n";
    }
    std::cout << gone.rows.size() << (command.dry_run ? " files would be" : " files were") << " taken out of the table"
              << std::endl;
    return 0;
  }
  FLEUVE_ASSIGN(const tables::RowsResult problems, tables::CheckTable(context, table, !command.skip_data));
  for (const auto& row : problems.rows) {
    std::cout << row[0].text() << ": " << (row[1].is_null() ? "" : row[1].text() + ": ") << row[2].text() << "\n";
  }
  if (problems.rows.empty()) {
    FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, logs.Open(table.location)->Latest());
    std::cout << "version " << snapshot->version() << ", " << snapshot->file_count() << " files, "
              << snapshot->size_bytes() << " bytes: no problem found" << std::endl;
    return 0;
  }
  std::cout << problems.rows.size() << " problems found" << std::endl;
  return 2;
}

}  // namespace fleuve::cli
