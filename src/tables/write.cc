#include "tables/write.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "plan/char_padding.h"
#include "plan/coercion.h"
#include "tables/clustering_internal.h"
#include "tables/create_parameters_internal.h"
#include "tables/data_files_internal.h"
#include "tables/identity_internal.h"
#include "tables/insert_columns_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/schema_internal.h"
#include "tables/write_options_internal.h"
#include "types/parts.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::TypeKind;

namespace {

class Pending final : public PendingWrite {
 public:
  bool skipped() const override { return skipped_; }
  const std::vector<std::string>& files() const override { return files_; }
  const std::vector<std::string>& folders() const override { return folders_; }
  Result<delta::CommitResult> Commit(bool sync) override {
    if (skipped_) {
      return delta::CommitResult{};
    }
    return transaction_->CommitStaged(sync && !caller_syncs_);
  }
  const std::string& log_folder() const override { return log_folder_; }
  std::int64_t row_count() const override { return rows_; }
  std::int64_t file_count() const override { return file_count_; }

  bool skipped_ = false;
  bool caller_syncs_ = false;
  std::vector<std::string> files_;
  std::vector<std::string> folders_;
  std::string log_folder_;
  std::unique_ptr<delta::Transaction> transaction_;
  std::int64_t rows_ = 0;
  std::int64_t file_count_ = 0;
};

std::string JsonList(const std::vector<std::string>& items) {
  Json::Array array;
  for (const std::string& item : items) {
    array.emplace_back(item);
  }
  return Json(std::move(array)).Dump();
}

bool SameNames(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), EqualsIgnoreAsciiCase);
}

types::Schema SchemaOfColumns(const std::vector<NamedColumn>& columns, const plan::PlanPtr& input) {
  std::vector<StructField> fields;
  for (const NamedColumn& column : columns) {
    StructField field{column.name, column.value->type, column.value->nullable, Json(Json::Object{})};
    if (column.value->kind == plan::ExprKind::kAttribute) {
      for (const plan::Attribute& attribute : input->output) {
        if (attribute.id == column.value->attribute.id && attribute.metadata.is_object()) {
          field.metadata = attribute.metadata;
        }
      }
    }
    fields.push_back(std::move(field));
  }
  return DataType::Struct(std::move(fields));
}

/// A write on its way, step by step.
class Writer {
 public:
  Writer(const TableContext& context, const TableRef& table, const WriteSpec& spec)
      : context_(context), table_(table), spec_(spec) {
    // saveAsTable(append) on a table of the catalog is an insert by name.
    spec_.store_assignment = spec_.store_assignment || spec_.is_insert ||
                             (!table_.catalog_name.empty() && spec_.mode == SaveMode::kAppend && !spec_.stream);
  }

  Result<std::unique_ptr<PendingWrite>> Prepare(const plan::PlanPtr& input) {
    FLEUVE_TRY(Open());
    auto pending = std::make_unique<Pending>();
    pending->log_folder_ = delta::LogFolder(table_.location.path);
    pending->caller_syncs_ = spec_.stream && spec_.stream->caller_syncs_log;
    if (spec_.stream && HasVoid(input)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                   "A stream cannot write columns of type void: cast them to a type.");
    }
    if (!spec_.stream && AlreadyDone()) {
      pending->skipped_ = true;
      return std::unique_ptr<PendingWrite>(std::move(pending));
    }
    if (snapshot_ != nullptr && spec_.mode == SaveMode::kErrorIfExists) {
      return Error(ErrorKind::kAlreadyExists, "DELTA_PATH_EXISTS",
                   "Cannot write to the existing table " + table_.name + ": set mode append or overwrite.")
          .With("path", table_.location.path);
    }
    if (snapshot_ != nullptr && spec_.mode == SaveMode::kIgnore) {
      pending->skipped_ = true;
      return std::unique_ptr<PendingWrite>(std::move(pending));
    }
    FLEUVE_TRY(ResolveColumns(input));
    FLEUVE_TRY(ResolveTable(input));
    if (spec_.stream && AlreadyDone()) {
      pending->skipped_ = true;
      return std::unique_ptr<PendingWrite>(std::move(pending));
    }
    if (overwrite_ && snapshot_ != nullptr && snapshot_->BooleanProperty("delta.appendOnly", false)) {
      return Error(ErrorKind::kUnsupported, "DELTA_CANNOT_MODIFY_APPEND_ONLY",
                   "The table only takes appends: its property delta.appendOnly is true.")
          .With("table_name", table_.name)
          .With("config", "delta.appendOnly");
    }
    transaction_ = std::make_unique<delta::Transaction>(log_, snapshot_);
    if (metadata_changed_) {
      FLEUVE_TRY(transaction_->UpdateMetadata(metadata_));
      metadata_ = transaction_->metadata();
    }
    FLEUVE_TRY(delta::CheckWritable(transaction_->protocol(), table_.name));

    FLEUVE_TRY(CheckLeftOut());
    if (const std::string* feed = delta::FindIn(metadata_.configuration, "delta.enableChangeDataFeed");
        feed != nullptr && EqualsIgnoreAsciiCase(*feed, "true")) {
      for (const char* reserved : {"_change_type", "_commit_version", "_commit_timestamp"}) {
        if (types::FieldIndex(schema_, reserved)) {
          return Error(ErrorKind::kInvalidArgument, "RESERVED_CDC_COLUMNS_ON_WRITE",
                       std::string("The column name ") + reserved +
                           " is reserved on tables that keep a change data feed: rename the column.")
              .With("columnList", reserved)
              .With("config", "delta.enableChangeDataFeed");
        }
      }
    }
    FLEUVE_ASSIGN(plan::PlanPtr rows, FillColumns(input, columns_, schema_, context_.config));
    FLEUVE_ASSIGN(std::vector<RowConstraint> constraints, ConstraintsOf(metadata_, schema_, rows, context_.config));
    FLEUVE_TRY(ResolveOverwrite(rows, &constraints));

    DataFileOptions files;
    files.data_change = spec_.stream ? true : options_.data_change;
    files.max_file_rows = options_.max_records_per_file.value_or(0);
    if (options_.compression) {
      files.compression = *options_.compression;
    }
    files.by_task = true;
    files.empty_file = !spec_.stream;
    auto run = WriteDataFiles(context_, table_.location, metadata_, schema_, rows, constraints, files);
    if (!run.ok()) {
      return RunError(std::move(run).error());
    }
    DataFiles written = *std::move(run);
    FLEUVE_ASSIGN(const std::vector<std::size_t> counted, GeneratedIdentities(columns_, schema_));
    if (!counted.empty() && written.row_count > 0) {
      metadata_.schema_string = SchemaText(AdvanceIdentities(schema_, counted, written.row_count));
      FLEUVE_TRY(transaction_->UpdateMetadata(metadata_));
      if (!metadata_changed_) {
        tags_ = {{"delta.identity.schemaUpdate", "true"}};
      }
    }
    std::vector<delta::Action> actions;
    if (app_) {
      app_->last_updated = Now();
      actions.emplace_back(*app_);
      if (spec_.stream) {
        transaction_->ReadApp(app_->app_id);
      }
    }
    if (spec_.stream && spec_.stream->reads_target) {
      transaction_->ReadWholeTable();
    }
    if (clustering_) {
      actions.emplace_back(*clustering_);
    }
    for (const delta::AddFile& add : written.adds) {
      actions.emplace_back(add);
    }
    FLEUVE_TRY(AddRemovals(written, &actions));
    if (actions.empty() && !spec_.stream && !overwrite_ && !metadata_changed_ && snapshot_ != nullptr) {
      pending->skipped_ = true;  // an append of nothing is no version
      return std::unique_ptr<PendingWrite>(std::move(pending));
    }
    FLEUVE_ASSIGN(const delta::StagedCommit staged, transaction_->Stage(std::move(actions), MakeOperation(written)));
    pending->files_ = written.files;
    pending->files_.insert(pending->files_.end(), extra_files_.begin(), extra_files_.end());
    pending->files_.push_back(staged.file);
    pending->folders_ = written.folders;
    pending->folders_.insert(pending->folders_.end(), extra_folders_.begin(), extra_folders_.end());
    pending->folders_.insert(pending->folders_.end(), staged.folders.begin(), staged.folders.end());
    std::sort(pending->folders_.begin(), pending->folders_.end());
    pending->folders_.erase(std::unique(pending->folders_.begin(), pending->folders_.end()), pending->folders_.end());
    pending->rows_ = written.row_count;
    pending->file_count_ = static_cast<std::int64_t>(written.adds.size());
    pending->transaction_ = std::move(transaction_);
    return std::unique_ptr<PendingWrite>(std::move(pending));
  }

  Result<void> Check(const types::Schema& data) {
    FLEUVE_TRY(Open());
    if (spec_.stream && types::Holds(data, TypeKind::kVoid)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_NULL_SCHEMA_IN_STREAMING_WRITE",
                   "A stream cannot write columns of type void: cast them to a type.");
    }
    auto leaf = std::make_shared<plan::LogicalPlan>();
    leaf->kind = plan::PlanKind::kRows;
    leaf->output = plan::AttributesOf(data);
    FLEUVE_TRY(ResolveColumns(leaf));
    return ResolveTable(leaf);
  }

 private:
  std::int64_t Now() const { return context_.logs->context().clock->NowMillis(); }

  static bool HasVoid(const plan::PlanPtr& input) {
    return std::any_of(input->output.begin(), input->output.end(),
                       [](const plan::Attribute& a) { return !a.hidden && types::Holds(a.type, TypeKind::kVoid); });
  }

  Result<void> Open() {
    log_ = context_.logs->Open(table_.location);
    auto latest = log_->Latest();
    if (latest.ok()) {
      snapshot_ = *latest;
    } else if (latest.error().condition() != "DELTA_TABLE_NOT_FOUND") {
      return std::move(latest).error();
    }
    FLEUVE_ASSIGN(options_, ReadWriteOptions(spec_.options, context_.config));
    if (spec_.replace_where) {
      options_.replace_where = spec_.replace_where;
    }
    if (spec_.stream) {
      app_ = delta::SetTransaction{spec_.stream->query_id, spec_.stream->batch_id, std::nullopt};
      options_.replace_where.reset();
      options_.dynamic_overwrite = false;
    } else {
      FLEUVE_ASSIGN(app_, ReadAppTransaction(spec_.options, context_.config));
    }
    overwrite_ = spec_.mode == SaveMode::kOverwrite || (spec_.stream && spec_.stream->output_mode == "Complete");
    return {};
  }

  bool AlreadyDone() const {
    if (!app_ || snapshot_ == nullptr) {
      return false;
    }
    const auto last = snapshot_->Transaction(app_->app_id);
    return last && last->version >= app_->version;
  }

  Result<void> ResolveColumns(const plan::PlanPtr& input) {
    FLEUVE_ASSIGN(columns_, ResolveInputColumns(input, snapshot_ == nullptr ? nullptr : &snapshot_->schema(),
                                                snapshot_ == nullptr ? std::vector<std::string>()
                                                                     : snapshot_->metadata().partition_columns,
                                                spec_, context_.config,
                                                options_.merge_schema && snapshot_ != nullptr &&
                                                    snapshot_->BooleanProperty("delta.enableTypeWidening", false),
                                                &narrows_));
    return {};
  }

  /// INSERT with a column list must name the columns that cannot be NULL.
  Result<void> CheckLeftOut() const {
    if (!spec_.is_insert || snapshot_ == nullptr) {
      return {};
    }
    for (const StructField& field : schema_.fields()) {
      const bool given = std::any_of(columns_.begin(), columns_.end(), [&](const NamedColumn& column) {
        return EqualsIgnoreAsciiCase(column.name, field.name);
      });
      if (!given && !field.nullable && FieldText(field, "CURRENT_DEFAULT") == nullptr &&
          FieldText(field, "delta.generationExpression") == nullptr) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_INSERT_COLUMN_MISMATCH",
                     "The column " + field.name + " is NOT NULL and has no default: it must be given a value.")
            .With("columnName", field.name);
      }
    }
    return {};
  }

  /// Schema and metadata after this write.
  Result<void> ResolveTable(const plan::PlanPtr& input) {
    const types::Schema data = SchemaOfColumns(columns_, input);
    FLEUVE_TRY(CheckNestedVoid(data));
    if (snapshot_ == nullptr) {
      return NewTable(data);
    }
    metadata_ = snapshot_->metadata();
    schema_ = snapshot_->schema();
    const bool dynamic = IsDynamic();
    if (overwrite_ && options_.overwrite_schema && !dynamic && !options_.replace_where) {
      return OverwriteSchema(data);
    }
    MergeRules rules;
    rules.add_columns = options_.merge_schema;
    rules.allow_casts = spec_.stream || spec_.store_assignment || spec_.match == ColumnMatch::kByPosition;
    rules.widen = snapshot_->BooleanProperty("delta.enableTypeWidening", false);
    auto merging = MergeSchemas(schema_, data, rules, context_.config);
    if (!merging.ok() && spec_.is_insert && merging.error().condition() == "DELTA_DUPLICATE_COLUMNS_FOUND.DATA") {
      return Error(ErrorKind::kInvalidArgument, "DELTA_DUPLICATE_COLUMNS_FOUND.READ_SCHEMA", merging.error().message());
    }
    FLEUVE_ASSIGN(types::Schema merged, std::move(merging));
    if (spec_.partition_by && !spec_.partition_by->empty() &&
        !SameNames(*spec_.partition_by, metadata_.partition_columns)) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_METADATA_MISMATCH",
                   "The table is partitioned by " + JsonList(metadata_.partition_columns) + ", the write by " +
                       JsonList(*spec_.partition_by) + ".");
    }
    if (!spec_.cluster_by.empty() && !SameNames(spec_.cluster_by, ClusteringColumns(*snapshot_))) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CLUSTERING_COLUMNS_MISMATCH",
                   "The table is clustered by " + JsonList(ClusteringColumns(*snapshot_)) + ", the write by " +
                       JsonList(spec_.cluster_by) + ".");
    }
    if (!(merged == schema_)) {
      merged = RecordTypeChanges(schema_, StoredSchema(merged, false));
      FLEUVE_TRY(CheckColumns(merged, delta::ColumnMappingMode(metadata_) != "none"));
      schema_ = std::move(merged);
      metadata_.schema_string = SchemaText(schema_);
      FLEUVE_TRY(AssignColumnMapping(metadata_, schema_, true));
      metadata_changed_ = true;
    }
    return {};
  }

  Result<void> NewTable(const types::Schema& data) {
    FLEUVE_ASSIGN(const types::Schema checked,
                  MergeSchemas(DataType::Struct({}), data, {true, true, false}, context_.config));
    metadata_.id = NewUuid();
    metadata_.created_time = Now();
    metadata_.configuration = DefaultProperties(context_.config);
    plan::Options properties;
    for (const auto& [key, value] : spec_.options) {
      if (AsciiLower(key).starts_with("delta.")) {
        properties[key] = value;
      }
    }
    FLEUVE_ASSIGN(const delta::StringMap given, CheckProperties(properties));
    for (const auto& [key, value] : given) {
      delta::SetIn(metadata_.configuration, key, value);
    }
    schema_ = StoredSchema(checked, true);
    FLEUVE_TRY(CheckColumns(schema_, delta::ColumnMappingMode(metadata_) != "none"));
    FLEUVE_ASSIGN(metadata_.partition_columns,
                  CheckPartitionColumns(schema_, spec_.partition_by.value_or(std::vector<std::string>())));
    metadata_.schema_string = SchemaText(schema_);
    FLEUVE_TRY(AssignColumnMapping(metadata_, schema_, true));
    FLEUVE_TRY(CheckStatisticsColumns(metadata_, schema_));
    if (!spec_.cluster_by.empty()) {
      FLEUVE_ASSIGN(clustering_, ClusteringDomain(schema_, metadata_, spec_.cluster_by));
      delta::SetIn(metadata_.configuration, "delta.feature.clustering", "supported");
    }
    metadata_changed_ = true;
    return {};
  }

  Result<void> OverwriteSchema(const types::Schema& data) {
    FLEUVE_ASSIGN(const types::Schema checked,
                  MergeSchemas(DataType::Struct({}), data, {true, true, false}, context_.config));
    types::Schema stored = StoredSchema(checked, true);
    const bool new_schema = !stored.EqualsIgnoringNullability(StoredSchema(schema_, true));
    const std::vector<std::string> wanted = spec_.partition_by.value_or(std::vector<std::string>());
    // No partitioning given is none.
    const bool new_partitions = !SameNames(wanted, metadata_.partition_columns);
    if (!new_schema && !new_partitions) {
      return {};
    }
    FLEUVE_TRY(CheckColumns(stored, delta::ColumnMappingMode(metadata_) != "none"));
    FLEUVE_ASSIGN(metadata_.partition_columns, CheckPartitionColumns(stored, wanted));
    schema_ = std::move(stored);
    metadata_.schema_string = SchemaText(schema_);
    FLEUVE_TRY(AssignColumnMapping(metadata_, schema_, true));
    metadata_changed_ = true;
    schema_replaced_ = true;
    return {};
  }

  bool IsDynamic() const {
    if (!overwrite_ || spec_.stream || metadata_.partition_columns.empty()) {
      return false;
    }
    if (options_.dynamic_overwrite) {
      return *options_.dynamic_overwrite;
    }
    const auto mode = Conf(context_.config, "spark.sql.sources.partitionOverwriteMode");
    return mode && EqualsIgnoreAsciiCase(*mode, "dynamic") && !options_.replace_where;
  }

  /// What goes: everything, matching partitions, or the rows of a predicate.
  Result<void> ResolveOverwrite(const plan::PlanPtr& rows, std::vector<RowConstraint>* constraints) {
    if (!overwrite_ || snapshot_ == nullptr) {
      return {};
    }
    if (options_.replace_where) {
      if (options_.dynamic_overwrite.value_or(false) && !metadata_.partition_columns.empty()) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
                     "The options replaceWhere and partitionOverwriteMode=dynamic cannot be used together.");
      }
      leaf_ = TableLeaf(snapshot_, table_.name);
      auto condition = AnalyzeSql(*options_.replace_where, leaf_, context_.config);
      if (!condition.ok()) {
        if (condition.error().family() == ErrorFamily::kParse) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_FAILED_RECOGNIZE_PREDICATE",
                       "The predicate '" + *options_.replace_where + "' cannot be understood.")
              .With("predicate", *options_.replace_where)
              .CausedBy(std::move(condition).error());
        }
        return std::move(condition).error();
      }
      FLEUVE_ASSIGN(condition_, plan::PadCharAttributes(*condition, context_.config));
      FLEUVE_ASSIGN(ExprPtr of_data, AnalyzeSql(*options_.replace_where, rows, context_.config));
      constraints->push_back({std::move(of_data), Error(ErrorKind::kInvalidArgument, "DELTA_REPLACE_WHERE_MISMATCH",
                                                        "The data to write has rows that do not match replaceWhere '" +
                                                            *options_.replace_where + "'.")
                                                      .With("replaceWhere", *options_.replace_where)
                                                      .With("message", "")});
      return {};
    }
    if (!spec_.static_partitions.empty() && !IsDynamic()) {
      // INSERT OVERWRITE t PARTITION (p = 1): only that part goes.
      leaf_ = TableLeaf(snapshot_, table_.name);
      for (const NamedColumn& column : columns_) {
        const auto fixed =
            std::find_if(spec_.static_partitions.begin(), spec_.static_partitions.end(),
                         [&](const auto& p) { return p.second && EqualsIgnoreAsciiCase(p.first, column.name); });
        if (fixed == spec_.static_partitions.end()) {
          continue;
        }
        const auto at = types::FieldIndex(snapshot_->schema(), column.name);
        const ExprPtr equal = plan::MakeCall("eqnullsafe", {plan::MakeAttribute(leaf_->output[*at]), column.value},
                                             DataType::Boolean(), false);
        condition_ = condition_ == nullptr ? equal : plan::MakeAnd(condition_, equal);
        const std::string text =
            "(" + column.name + " <=> " +
            plan::LiteralSql(*fixed->second, snapshot_->schema().fields()[*at].type, context_.config.session_zone) +
            ")";
        static_text_ = static_text_.empty() ? text : "(" + static_text_ + " AND " + text + ")";
      }
    }
    return {};
  }

  /// Change files that say the written rows are inserts.
  Result<void> WriteInserts(const DataFiles& written, std::vector<delta::Action>* actions) {
    if (metadata_changed_) {
      return Error::Unsupported("replaceWhere that changes the schema of a table with a change data feed");
    }
    FLEUVE_ASSIGN(const FileRows rows, ScanFiles(snapshot_, written.adds, leaf_->output));
    FLEUVE_ASSIGN(const DataFiles changes,
                  WriteChangeFiles(context_, snapshot_, rows.plan, leaf_->output, "insert", actions));
    extra_files_.insert(extra_files_.end(), changes.files.begin(), changes.files.end());
    extra_folders_.insert(extra_folders_.end(), changes.folders.begin(), changes.folders.end());
    return {};
  }

  Result<void> AddRemovals(const DataFiles& written, std::vector<delta::Action>* actions) {
    if (!overwrite_ || snapshot_ == nullptr) {
      return {};
    }
    const bool change = spec_.stream ? true : options_.data_change;
    const std::int64_t now = Now();
    if (condition_ != nullptr) {
      FLEUVE_ASSIGN(Rewrite rewrite, DeleteRows(context_, snapshot_, leaf_->output, condition_, change));
      transaction_->ReadFiles(rewrite.candidates, SplitAnd(condition_), leaf_->output);
      extra_files_ = rewrite.written.files;
      extra_files_.insert(extra_files_.end(), rewrite.changes.files.begin(), rewrite.changes.files.end());
      extra_folders_ = rewrite.written.folders;
      extra_folders_.insert(extra_folders_.end(), rewrite.changes.folders.begin(), rewrite.changes.folders.end());
      removed_files_ = rewrite.removed_files;
      removed_bytes_ = rewrite.removed_bytes;
      deleted_rows_ = rewrite.deleted_rows;
      copied_rows_ = rewrite.copied_rows;
      copied_files_ = static_cast<std::int64_t>(rewrite.written.adds.size());
      change_files_ = static_cast<std::int64_t>(rewrite.changes.adds.size());
      actions->insert(actions->end(), rewrite.actions.begin(), rewrite.actions.end());
      // A feed with change files is read from them alone: the new rows must stand there too.
      return rewrite.changes.adds.empty() || written.adds.empty() ? Result<void>() : WriteInserts(written, actions);
    }
    std::vector<delta::AddFile> gone;
    if (IsDynamic()) {
      std::set<std::string> partitions;
      for (const delta::AddFile& add : written.adds) {
        partitions.insert(delta::PartitionFolder(Sorted(add.partition_values)));
      }
      snapshot_->ForEachFile([&](const delta::AddFile& add) {
        if (partitions.contains(delta::PartitionFolder(Sorted(add.partition_values)))) {
          gone.push_back(add);
        }
      });
      transaction_->ReadWholeTable();
    } else {
      gone = snapshot_->AllFiles();
      transaction_->ReadWholeTable();
    }
    for (const delta::AddFile& add : gone) {
      actions->emplace_back(RemovalOf(add, now, change));
      ++removed_files_;
      removed_bytes_ += add.size;
    }
    return {};
  }

  static delta::PartitionValues Sorted(delta::PartitionValues values) {
    std::sort(values.begin(), values.end());
    return values;
  }

  Json WriteParameters() const {
    Json parameters(Json::Object{});
    parameters.Set("mode", Json(spec_.mode == SaveMode::kOverwrite       ? "Overwrite"
                                : spec_.mode == SaveMode::kAppend        ? "Append"
                                : spec_.mode == SaveMode::kErrorIfExists ? "ErrorIfExists"
                                                                         : "Ignore"));
    parameters.Set("partitionBy", Json(JsonList(spec_.partition_by.value_or(std::vector<std::string>()))));
    if (!spec_.cluster_by.empty()) {
      parameters.Set("clusterBy", Json(JsonList(spec_.cluster_by)));
    }
    if (options_.replace_where) {
      parameters.Set("predicate", Json(*options_.replace_where));
    } else if (!static_text_.empty()) {
      parameters.Set("predicate", Json(static_text_));
    }
    return parameters;
  }

  /// saveAsTable over a table that is there.
  Json ReplaceParameters() const {
    Json parameters = CreateParameters(table_, metadata_, spec_.cluster_by, metadata_.description);
    parameters.Set("isV1SaveAsTableOverwrite", Json(true));
    return parameters;
  }

  delta::Operation MakeOperation(const DataFiles& written) const {
    delta::Operation operation = NamedOperation(context_, spec_.operation.empty() ? "WRITE" : spec_.operation);
    operation.user_metadata = options_.user_metadata;  // the write's own option wins
    operation.tags = tags_;
    const auto number = [](std::int64_t n) { return std::to_string(n); };
    Json parameters(Json::Object{});
    if (spec_.stream) {
      operation.name = "STREAMING UPDATE";
      parameters.Set("outputMode", Json(spec_.stream->output_mode));
      parameters.Set("queryId", Json(spec_.stream->query_id));
      parameters.Set("epochId", Json(number(spec_.stream->batch_id)));
      operation.txn_id = spec_.stream->attempt_id;
      if (overwrite_) {
        // It stands for the whole table, whatever was there.
        operation.is_blind_append = false;
      }
      operation.fleuve = spec_.stream->commit_fields;
      operation.metrics = {{"numRemovedFiles", number(removed_files_)},
                           {"numAddedFiles", number(static_cast<std::int64_t>(written.adds.size()))},
                           {"numOutputRows", number(written.row_count)},
                           {"numOutputBytes", number(written.bytes)}};
    } else {
      parameters = spec_.operation.empty() ? WriteParameters() : ReplaceParameters();
      if (IsDynamic()) {
        parameters.Set("isDynamicPartitionOverwrite", Json(true));
      }
      if (options_.overwrite_schema && !options_.replace_where) {
        parameters.Set("canOverwriteSchema", Json(true));
      }
      if (options_.merge_schema) {
        parameters.Set("canMergeSchema", Json(true));
      }
      // Rows of the files of before that stay are written again beside the new ones.
      operation.metrics = {{"numFiles", number(written.written_files + copied_files_)}};
      if (overwrite_ && snapshot_ != nullptr) {
        operation.metrics.emplace_back("numRemovedFiles", number(removed_files_));
        operation.metrics.emplace_back("numRemovedBytes", number(removed_bytes_));
      }
      if (condition_ != nullptr) {
        operation.metrics.emplace_back("numDeletedRows", number(deleted_rows_));
        operation.metrics.emplace_back("numCopiedRows", number(copied_rows_));
        operation.metrics.emplace_back("numAddedChangeFiles", number(change_files_));
      }
      operation.metrics.emplace_back("numOutputRows", number(written.row_count + copied_rows_));
      operation.metrics.emplace_back("numOutputBytes", number(written.bytes));
    }
    operation.parameters = std::move(parameters);
    return operation;
  }

  Error RunError(Error error) const {
    if ((error.condition() == "CAST_OVERFLOW" || error.condition().starts_with("NUMERIC_VALUE_OUT_OF_RANGE")) &&
        narrows_) {
      return Error(error.kind(), "CAST_OVERFLOW_IN_TABLE_INSERT",
                   "A value of the data does not fit the type of its column: " + error.message());
    }
    // A source that stops the stream for new columns says so itself.
    const bool by_data = error.kind() == ErrorKind::kInvalidArgument && !error.condition().starts_with("DELTA_") &&
                         !error.condition().starts_with("UNKNOWN_FIELD_EXCEPTION");
    if (spec_.stream && by_data) {
      return Error(error.kind(), "TASK_WRITE_FAILED", "Writing rows to " + table_.name + " failed: " + error.ToString())
          .CausedBy(error);
    }
    return error;
  }

  const TableContext& context_;
  const TableRef& table_;
  WriteSpec spec_;
  WriteOptions options_;
  delta::DeltaLogPtr log_;
  delta::SnapshotPtr snapshot_;
  bool overwrite_ = false;
  std::optional<delta::SetTransaction> app_;
  std::vector<NamedColumn> columns_;
  bool narrows_ = false;
  delta::Metadata metadata_;
  types::Schema schema_;
  bool metadata_changed_ = false;
  bool schema_replaced_ = false;
  plan::PlanPtr leaf_;
  ExprPtr condition_;
  /// `condition_` of a static partition, as the history says it.
  std::string static_text_;
  std::unique_ptr<delta::Transaction> transaction_;
  std::vector<std::string> extra_files_;
  std::vector<std::string> extra_folders_;
  delta::StringMap tags_;
  std::optional<delta::DomainMetadata> clustering_;
  std::int64_t removed_files_ = 0;
  std::int64_t removed_bytes_ = 0;
  std::int64_t deleted_rows_ = 0;
  std::int64_t copied_rows_ = 0;
  std::int64_t copied_files_ = 0;
  std::int64_t change_files_ = 0;
};

}  // namespace

Result<std::unique_ptr<PendingWrite>> PrepareWrite(const TableContext& context, const TableRef& table,
                                                   const plan::PlanPtr& input, const WriteSpec& spec) {
  Writer writer(context, table, spec);
  return writer.Prepare(input);
}

Result<void> CheckWrite(const TableContext& context, const TableRef& table, const types::Schema& input,
                        const WriteSpec& spec) {
  Writer writer(context, table, spec);
  return writer.Check(input);
}

Result<std::optional<std::int64_t>> Write(const TableContext& context, const TableRef& table,
                                          const plan::PlanPtr& input, const WriteSpec& spec) {
  FLEUVE_ASSIGN(auto pending, PrepareWrite(context, table, input, spec));
  if (pending->skipped()) {
    return std::optional<std::int64_t>();
  }
  if (context.logs->context().durability == delta::Durability::kStrict) {
    FLEUVE_TRY(table.location.store->Sync(pending->files(), pending->folders()));
  }
  FLEUVE_ASSIGN(const delta::CommitResult result, pending->Commit(true));
  context.logs->Open(table.location)->WaitForBackground();
  return std::optional<std::int64_t>(result.version);
}

}  // namespace fleuve::tables
