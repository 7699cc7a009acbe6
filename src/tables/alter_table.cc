#include <algorithm>
#include <set>

#include "base/bytes.h"
#include "delta/row_tracking.h"
#include "delta/skipping.h"
#include "plan/char_padding.h"
#include "plan/function_builder.h"
#include "tables/alter_internal.h"
#include "tables/clustering_internal.h"
#include "tables/commands.h"
#include "tables/data_files_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/upgrades_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::Value;

Result<void> Alter(const TableContext& context, const TableRef& table, const std::string& operation,
                   const std::function<Result<void>(Alteration&)>& change) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  Alteration alteration;
  FLEUVE_ASSIGN(alteration.snapshot, log->Latest());
  FLEUVE_TRY(delta::CheckWritable(alteration.snapshot->protocol(), table.name));
  alteration.metadata = alteration.snapshot->metadata();
  alteration.schema = alteration.snapshot->schema();
  FLEUVE_TRY(change(alteration));
  if (!alteration.changed) {
    return {};
  }
  delta::Transaction transaction(log, alteration.snapshot);
  if (alteration.reads_table) {
    transaction.ReadWholeTable();
  }
  FLEUVE_TRY(transaction.UpdateMetadata(std::move(alteration.metadata)));
  delta::Operation op = NamedOperation(context, operation);
  op.parameters = std::move(alteration.parameters);
  FLEUVE_TRY(transaction.Commit(std::move(alteration.actions), std::move(op)));
  log->WaitForBackground();
  return {};
}

Result<void> SetProperties(const TableContext& context, const TableRef& table, const plan::Options& properties) {
  auto outcome = CheckProperties(properties);
  if (!outcome.ok() && outcome.error().condition().empty() &&
      outcome.error().family() == ErrorFamily::kIllegalArgument) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2045",
                 "Unsupported table change: " + outcome.error().message())
        .Family(ErrorFamily::kIllegalArgument);
  }
  FLEUVE_ASSIGN(const delta::StringMap checked, std::move(outcome));
  const std::string* mode = delta::FindIn(checked, "delta.columnMapping.mode");
  const std::string* tracking = delta::FindIn(checked, "delta.enableRowTracking");
  if (mode != nullptr || tracking != nullptr) {
    FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, context.logs->Open(table.location)->Latest());
    FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
    if (mode != nullptr && *mode == "none" && delta::ColumnMappingMode(snapshot->metadata()) != "none") {
      return RemoveColumnMapping(context, table, checked);
    }
    if (tracking != nullptr && EqualsIgnoreAsciiCase(*tracking, "true") && !delta::TracksRows(snapshot->metadata())) {
      FLEUVE_TRY(BackfillRowIds(context, table));
    }
  }
  return Alter(context, table, "SET TBLPROPERTIES", [&](Alteration& a) -> Result<void> {
    const std::string before = delta::ColumnMappingMode(a.metadata);
    Json given(Json::Object{});
    for (const auto& [key, value] : checked) {
      if (key == "comment") {
        a.metadata.description = value;
      } else if (key.starts_with("delta.constraints.")) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_ADD_CONSTRAINTS",
                     "Use ALTER TABLE ADD CONSTRAINT to add constraints.");
      } else {
        delta::SetIn(a.metadata.configuration, key, value);
      }
      given.Set(key, Json(value));
    }
    FLEUVE_TRY(CheckStatisticsColumns(a.metadata, a.schema));
    const std::string after = delta::ColumnMappingMode(a.metadata);
    if (before != after) {
      if (before != "none" || after != "name") {
        return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                     "The column mapping mode cannot be changed from '" + before + "' to '" + after + "'.")
            .With("oldMode", before)
            .With("newMode", after);
      }
      FLEUVE_TRY(AssignColumnMapping(a.metadata, a.schema, false));
    }
    const std::string* feed = delta::FindIn(a.metadata.configuration, "delta.enableChangeDataFeed");
    if (feed != nullptr && EqualsIgnoreAsciiCase(*feed, "true")) {
      for (const char* reserved : {"_change_type", "_commit_version", "_commit_timestamp"}) {
        if (types::FieldIndex(a.schema, reserved)) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
                       std::string("The change data feed cannot be enabled: the table has a column ") + reserved + ".")
              .With("columnList", reserved);
        }
      }
    }
    a.parameters.Set("properties", Json(given.Dump()));
    return {};
  });
}

Result<void> UnsetProperties(const TableContext& context, const TableRef& table, const std::vector<std::string>& keys) {
  return Alter(context, table, "UNSET TBLPROPERTIES", [&](Alteration& a) -> Result<void> {
    Json::Array list;
    for (const std::string& key : keys) {
      std::erase_if(a.metadata.configuration, [&](const auto& entry) {
        return entry.first == key || (AsciiLower(key).starts_with("delta.") && EqualsIgnoreAsciiCase(entry.first, key));
      });
      if (key == "comment") {
        a.metadata.description.reset();
      }
      list.emplace_back(key);
    }
    if (delta::ColumnMappingMode(a.metadata) != delta::ColumnMappingMode(a.snapshot->metadata())) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
                   "Column mapping cannot be switched off by removing the property.");
    }
    a.parameters.Set("properties", Json(Json(std::move(list)).Dump()));
    a.parameters.Set("ifExists", Json(true));  // a key that is not there is never an error
    return {};
  });
}

Result<void> SetComment(const TableContext& context, const TableRef& table, const std::optional<std::string>& comment) {
  return Alter(context, table, "SET TBLPROPERTIES", [&](Alteration& a) -> Result<void> {
    a.metadata.description = comment;
    Json given(Json::Object{});
    given.Set("comment", Json(comment.value_or("")));
    a.parameters.Set("properties", Json(given.Dump()));
    return {};
  });
}

std::vector<std::string> ClusteringOf(const delta::Snapshot& snapshot) { return ClusteringColumns(snapshot); }

Result<void> SetClustering(const TableContext& context, const TableRef& table,
                           const std::vector<std::string>& columns) {
  return Alter(context, table, "CLUSTER BY", [&](Alteration& a) -> Result<void> {
    if (!a.metadata.partition_columns.empty()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED",
                   "A partitioned table cannot be clustered.");
    }
    if (!delta::HasFeature(a.snapshot->protocol(), "clustering")) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_ALTER_TABLE_CLUSTER_BY_NOT_ALLOWED",
                   "ALTER TABLE CLUSTER BY works only on tables created with CLUSTER BY.");
    }
    const std::vector<std::string> before = ClusteringColumns(*a.snapshot);
    FLEUVE_ASSIGN(delta::DomainMetadata domain, ClusteringDomain(a.schema, a.metadata, columns));
    a.actions.emplace_back(std::move(domain));
    a.parameters.Set("oldClusteringColumns", Json(Join(before, ",")));
    a.parameters.Set("newClusteringColumns", Json(Join(columns, ",")));
    return {};
  });
}

Result<void> AddConstraint(const TableContext& context, const TableRef& table, const std::string& name,
                           const std::string& sql) {
  return Alter(context, table, "ADD CONSTRAINT", [&](Alteration& a) -> Result<void> {
    const std::string key = "delta.constraints." + AsciiLower(name);
    if (const std::string* old_sql = delta::FindIn(a.metadata.configuration, key)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CONSTRAINT_ALREADY_EXISTS",
                   "The constraint " + name + " already exists: " + *old_sql)
          .With("constraintName", name)
          .With("oldConstraint", *old_sql);
    }
    const plan::PlanPtr leaf = TableLeaf(a.snapshot, table.name);
    FLEUVE_ASSIGN(plan::ExprPtr condition, AnalyzeSql(sql, leaf, context.config));
    FLEUVE_ASSIGN(condition, plan::PadCharAttributes(condition, context.config));
    if (!condition->type.Is(types::TypeKind::kBoolean)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT",
                   "The CHECK constraint " + name + " (" + sql + ") is no boolean expression.")
          .With("name", name)
          .With("expr", sql);
    }
    FLEUVE_ASSIGN(const plan::ExprPtr count, CountViolations(condition, context.config));
    FLEUVE_ASSIGN(const plan::PlanPtr plan, AggregateAll(leaf, {count}));
    FLEUVE_ASSIGN(const auto rows, RunRows(context, plan));
    if (!rows.empty() && !rows[0][0].is_null() && rows[0][0].integer() > 0) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION",
                   std::to_string(rows[0][0].integer()) + " rows of " + table.name +
                       " break the new CHECK constraint " + sql + ".")
          .With("numRows", std::to_string(rows[0][0].integer()))
          .With("tableName", table.name)
          .With("checkConstraint", sql);
    }
    delta::SetIn(a.metadata.configuration, key, sql);
    a.reads_table = true;
    a.parameters.Set("name", Json(name));
    a.parameters.Set("expr", Json(sql));
    return {};
  });
}

Result<void> DropConstraint(const TableContext& context, const TableRef& table, const std::string& name,
                            bool if_exists) {
  return Alter(context, table, "DROP CONSTRAINT", [&](Alteration& a) -> Result<void> {
    const std::string key = "delta.constraints." + AsciiLower(name);
    const std::string* sql = delta::FindIn(a.metadata.configuration, key);
    if (sql == nullptr) {
      if (if_exists) {  // a commit says that there was nothing to drop
        a.parameters.Set("name", Json(name));
        a.parameters.Set("existed", Json(false));
        return {};
      }
      return Error(ErrorKind::kInvalidArgument, "DELTA_CONSTRAINT_DOES_NOT_EXIST",
                   "Cannot drop the constraint " + name + " of " + table.name + ": there is none of this name.")
          .With("constraintName", name)
          .With("tableName", table.name);
    }
    a.parameters.Set("name", Json(name));
    a.parameters.Set("expr", Json(*sql));
    delta::EraseFrom(a.metadata.configuration, key);
    a.parameters.Set("existed", Json(true));
    return {};
  });
}

}  // namespace fleuve::tables
