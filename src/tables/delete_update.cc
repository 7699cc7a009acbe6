#include <algorithm>

#include "base/bytes.h"
#include "plan/char_padding.h"
#include "tables/modify_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::Value;

namespace {

Json PredicateParameter(const ExprPtr& condition, const char* without = nullptr) {
  Json::Array predicates;
  if (condition != nullptr) {
    predicates.emplace_back(condition->display);
  } else if (without != nullptr) {
    predicates.emplace_back(without);
  }
  Json parameters(Json::Object{});
  parameters.Set("predicate", Json(Json(std::move(predicates)).Dump()));
  return parameters;
}

/// Aggregates, windows and what is not deterministic cannot be assigned; subqueries can.
Result<void> CheckValue(const ExprPtr& value, const std::string& statement) {
  FLEUVE_TRY(CheckOfRow(value, statement));
  if (!value->deterministic) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                 "The value " + value->display + " of " + statement + " is not deterministic.")
        .With("sqlExprs", value->display);
  }
  return {};
}

Result<std::int64_t> Delete(const TableContext& context, const TableRef& table, const plan::PlanPtr& target,
                            const ExprPtr& asked, bool truncate) {
  const std::int64_t start = context.logs->context().clock->MonotonicNanos();
  FLEUVE_TRY(CheckCondition(asked, "DELETE"));
  FLEUVE_ASSIGN(const ExprPtr condition, plan::PadCharAttributes(asked, context.config));
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, SnapshotOf(target));
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
  delta::Transaction transaction(log, snapshot);
  std::vector<delta::Action> actions;
  FLEUVE_ASSIGN(const bool done, AddAppTransaction(context, *snapshot, &actions));
  if (done) {
    return std::int64_t{0};
  }
  if (const std::string* append_only = snapshot->Property("delta.appendOnly"); append_only && *append_only == "true") {
    return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                 "The table only takes appends: its property delta.appendOnly is true.")
        .With("config", "delta.appendOnly");
  }
  auto rewritten = DeleteRows(context, snapshot, target->output, condition, true);
  if (!rewritten.ok()) {
    return WriteError(std::move(rewritten).error());
  }
  Rewrite rewrite = *std::move(rewritten);
  if (condition == nullptr) {
    transaction.ReadWholeTable();
  } else {
    transaction.ReadFiles(rewrite.candidates, SplitAnd(condition), target->output, true);
  }
  actions.insert(actions.end(), rewrite.actions.begin(), rewrite.actions.end());
  if (actions.empty()) {
    return std::int64_t{0};
  }
  delta::Operation operation = NamedOperation(context, truncate ? "TRUNCATE" : "DELETE");
  operation.parameters = truncate ? Json(Json::Object{}) : PredicateParameter(condition, "true");
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  const std::string elapsed = Millis(start, context.logs->context().clock->MonotonicNanos());
  operation.metrics = {{"numRemovedFiles", number(rewrite.removed_files)},
                       {"numRemovedBytes", number(rewrite.removed_bytes)},
                       {"numCopiedRows", number(rewrite.copied_rows)},
                       {"numDeletionVectorsAdded", number(rewrite.vectors_added)},
                       {"executionTimeMs", elapsed},
                       {"numDeletionVectorsUpdated", number(rewrite.vectors_updated)},
                       {"numAddedFiles", number(static_cast<std::int64_t>(rewrite.written.adds.size()))},
                       {"numDeletionVectorsRemoved", number(rewrite.vectors_removed)},
                       {"numAddedChangeFiles", number(static_cast<std::int64_t>(rewrite.changes.adds.size()))},
                       {"numDeletedRows", number(rewrite.deleted_rows)},
                       {"scanTimeMs", "0"},
                       {"numAddedBytes", number(rewrite.written.bytes)},
                       {"rewriteTimeMs", elapsed}};
  if (truncate) {
    operation.metrics = {{"numRemovedFiles", number(rewrite.removed_files)}, {"executionTimeMs", elapsed}};
  }
  std::vector<std::string> files = rewrite.written.files;
  files.insert(files.end(), rewrite.changes.files.begin(), rewrite.changes.files.end());
  std::vector<std::string> folders = rewrite.written.folders;
  folders.insert(folders.end(), rewrite.changes.folders.begin(), rewrite.changes.folders.end());
  operation.tags = RowTrackingTags(*snapshot);
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation), files, folders));
  log->WaitForBackground();
  return rewrite.deleted_rows;
}

}  // namespace

Result<RowsResult> DeleteFrom(const TableContext& context, const TableRef& table, const plan::PlanPtr& target,
                              const ExprPtr& condition) {
  FLEUVE_ASSIGN(const std::int64_t rows, Delete(context, table, target, condition, false));
  return AffectedRows(rows);
}

Result<void> TruncateTable(const TableContext& context, const TableRef& table, const plan::PlanPtr& target) {
  FLEUVE_TRY(Delete(context, table, target, nullptr, true));
  return {};
}

Result<RowsResult> UpdateTable(const TableContext& context, const TableRef& table, const plan::PlanPtr& target,
                               const std::vector<Assignment>& asked_assignments, const ExprPtr& asked) {
  const std::int64_t start = context.logs->context().clock->MonotonicNanos();
  FLEUVE_TRY(CheckCondition(asked, "UPDATE"));
  FLEUVE_ASSIGN(const ExprPtr condition, plan::PadCharAttributes(asked, context.config));
  std::vector<Assignment> assignments = asked_assignments;
  for (Assignment& assignment : assignments) {
    DropQualifier(&assignment.path, target);
    FLEUVE_TRY(CheckValue(assignment.value, "UPDATE"));
    FLEUVE_ASSIGN(assignment.value, plan::PadCharAttributes(assignment.value, context.config));
  }
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, SnapshotOf(target));
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
  const types::Schema& schema = snapshot->schema();
  std::vector<ExprPtr> old_values;
  for (const plan::Attribute& attribute : target->output) {
    old_values.push_back(plan::MakeAttribute(attribute));
  }
  for (const Assignment& assignment : assignments) {
    const auto at = types::FieldIndex(schema, assignment.path[0]);
    if (at && schema.fields()[*at].metadata.Find("delta.identity.start") != nullptr) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_IDENTITY_COLUMNS_UPDATE_NOT_SUPPORTED",
                   "Identity columns cannot be updated.");
    }
  }
  FLEUVE_ASSIGN(std::vector<ExprPtr> new_values,
                ApplyAssignments(schema, old_values, assignments, MissingFields::kRefused, context.config,
                                 [&](const std::string& name) {
                                   return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION",
                                                "The column " + name + " cannot be resolved.")
                                       .With("objectName", "`" + name + "`");
                                 }));
  if (const std::string* append_only = snapshot->Property("delta.appendOnly"); append_only && *append_only == "true") {
    return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                 "The table only takes appends: its property delta.appendOnly is true.")
        .With("config", "delta.appendOnly");
  }
  delta::Transaction transaction(log, snapshot);
  std::vector<delta::Action> actions;
  FLEUVE_ASSIGN(const bool done, AddAppTransaction(context, *snapshot, &actions));
  if (done) {
    return AffectedRows(0);
  }
  const bool marks = MarksRows(context, *snapshot, "update");
  FLEUVE_ASSIGN(const TouchedFiles touched, FindTouched(context, snapshot, target->output, condition, marks));
  if (condition == nullptr) {
    transaction.ReadWholeTable();
  } else {
    transaction.ReadFiles(touched.candidates, SplitAnd(condition), target->output, true);
  }
  std::int64_t updated = 0;
  std::int64_t copied = 0;
  std::int64_t removed_files = 0;
  std::int64_t removed_bytes = 0;
  MarkedRows marked;
  DataFiles written;
  DataFiles changes;
  if (!touched.files.empty()) {
    std::vector<delta::AddFile> files;
    // Files written anew whole, and files of which only the matching rows are written again.
    std::vector<delta::AddFile> whole;
    std::vector<delta::AddFile> parts;
    std::vector<delta::AddFile> vector_files;
    std::vector<RowNumbers> vector_rows;
    const std::int64_t now = context.logs->context().clock->NowMillis();
    for (const TouchedFiles::File& file : touched.files) {
      files.push_back(file.add);
      updated += std::max<std::int64_t>(file.matching, 0);
      if (!file.positions.empty()) {
        parts.push_back(file.add);
        vector_files.push_back(file.add);
        vector_rows.push_back(file.positions);
        continue;
      }
      whole.push_back(file.add);
      copied += file.rows - file.matching;
      ++removed_files;
      removed_bytes += file.add.size;
      marked.vectors_removed += marks && file.add.deletion_vector ? 1 : 0;
      actions.emplace_back(RemovalOf(file.add, now, true));
    }
    if (!vector_files.empty()) {
      FLEUVE_ASSIGN(MarkedRows some, MarkRows(context, snapshot, vector_files, vector_rows, true));
      some.vectors_removed += marked.vectors_removed;
      marked = std::move(some);
      removed_files += static_cast<std::int64_t>(vector_files.size());
      actions.insert(actions.end(), marked.actions.begin(), marked.actions.end());
      removed_files += marked.removed_files;
      removed_bytes += marked.removed_bytes;
    }
    const ExprPtr matches = condition == nullptr ? nullptr : IsTrue(condition);
    std::vector<std::string> assigned;
    for (const Assignment& assignment : assignments) {
      assigned.push_back(assignment.path[0]);
    }
    const auto rows_of = [&](const std::vector<delta::AddFile>& from, bool only_matching,
                             bool row_ids) -> Result<plan::PlanPtr> {
      FLEUVE_ASSIGN(const FileRows rows, ScanFiles(snapshot, from, target->output, {.row_ids = row_ids}));
      std::vector<ExprPtr> values;
      for (std::size_t i = 0; i < new_values.size(); ++i) {
        values.push_back(matches == nullptr || only_matching || new_values[i] == old_values[i]
                             ? new_values[i]
                             : plan::MakeCase({matches, new_values[i], old_values[i]}, true, schema.fields()[i].type));
      }
      types::Schema with_ids = schema;
      if (!rows.row_ids.empty()) {
        // Changed rows keep their id; the commit that changed them is this one.
        const ExprPtr version = plan::MakeAttribute(rows.row_ids[1]);
        const ExprPtr none = plan::MakeNull(DataType::Long());
        AppendRowIds(
            snapshot->metadata(),
            {plan::MakeAttribute(rows.row_ids[0]),
             matches == nullptr || only_matching ? none
                                                 : plan::MakeCase({matches, none, version}, true, DataType::Long())},
            &values, &with_ids);
      }
      const plan::PlanPtr kept = only_matching && matches != nullptr ? plan::MakeFilter(rows.plan, matches) : rows.plan;
      return RecomputeGenerated(ProjectTo(kept, std::move(values), with_ids), schema, assigned, context.config);
    };
    std::vector<plan::PlanPtr> results;
    if (!whole.empty()) {
      FLEUVE_ASSIGN(plan::PlanPtr rows, rows_of(whole, false, true));
      results.push_back(std::move(rows));
    }
    if (!parts.empty()) {
      FLEUVE_ASSIGN(plan::PlanPtr rows, rows_of(parts, true, true));
      results.push_back(std::move(rows));
    }
    const plan::PlanPtr result = UnionOf(std::move(results));
    FLEUVE_ASSIGN(const auto constraints, ConstraintsOf(snapshot->metadata(), schema, result, context.config));
    auto run = WriteDataFiles(context, table.location, snapshot->metadata(), schema, result, constraints, {});
    if (!run.ok()) {
      return WriteError(std::move(run).error());
    }
    written = *std::move(run);
    for (const delta::AddFile& add : written.adds) {
      actions.emplace_back(add);
    }
    if (KeepsChanges(*snapshot)) {
      std::vector<StructField> fields = schema.fields();
      fields.push_back({"_change_type", DataType::String(), true, Json()});
      const types::Schema change_schema = DataType::Struct(fields);
      const auto with_type = [&](const plan::PlanPtr& from, const std::vector<ExprPtr>& values, const char* type) {
        std::vector<ExprPtr> exprs = values;
        exprs.push_back(plan::MakeLiteral(Value(type), DataType::String()));
        return ProjectTo(from, std::move(exprs), change_schema);
      };
      FLEUVE_ASSIGN(const FileRows before, ScanFiles(snapshot, files, target->output));
      FLEUVE_ASSIGN(const plan::PlanPtr after, rows_of(files, true, false));
      std::vector<ExprPtr> after_values;
      for (const plan::Attribute& attribute : after->output) {
        after_values.push_back(plan::MakeAttribute(attribute));
      }
      const plan::PlanPtr both =
          UnionOf({with_type(matches == nullptr ? before.plan : plan::MakeFilter(before.plan, matches), old_values,
                             "update_preimage"),
                   with_type(after, after_values, "update_postimage")});
      DataFileOptions options;
      options.subfolder = "_change_data";
      options.statistics = false;
      FLEUVE_ASSIGN(changes, WriteDataFiles(context, table.location, snapshot->metadata(), schema, both, {}, options));
      for (const delta::AddFile& add : changes.adds) {
        actions.emplace_back(delta::AddCdcFile{add.path, add.partition_values, add.size, std::nullopt});
      }
    }
  }
  if (actions.empty()) {
    return AffectedRows(0);
  }
  delta::Operation operation = NamedOperation(context, "UPDATE");
  operation.parameters = PredicateParameter(condition);
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  const std::string elapsed = Millis(start, context.logs->context().clock->MonotonicNanos());
  operation.tags = RowTrackingTags(*snapshot);
  operation.metrics = {{"numRemovedFiles", number(removed_files)},
                       {"numRemovedBytes", number(removed_bytes)},
                       {"numCopiedRows", number(copied)},
                       {"numDeletionVectorsAdded", number(marked.vectors_added)},
                       {"executionTimeMs", elapsed},
                       {"numDeletionVectorsUpdated", number(marked.vectors_updated)},
                       {"scanTimeMs", "0"},
                       {"numAddedFiles", number(static_cast<std::int64_t>(written.adds.size()))},
                       {"numUpdatedRows", number(updated)},
                       {"numDeletionVectorsRemoved", number(marked.vectors_removed)},
                       {"numAddedChangeFiles", number(static_cast<std::int64_t>(changes.adds.size()))},
                       {"numAddedBytes", number(written.bytes)},
                       {"rewriteTimeMs", elapsed}};
  std::vector<std::string> files = written.files;
  files.insert(files.end(), changes.files.begin(), changes.files.end());
  std::vector<std::string> folders = written.folders;
  folders.insert(folders.end(), changes.folders.begin(), changes.folders.end());
  if (!marked.vector_file.empty()) {
    files.push_back(marked.vector_file);
    folders.push_back(table.location.path);
  }
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation), files, folders));
  log->WaitForBackground();
  return AffectedRows(updated);
}

}  // namespace fleuve::tables
