#include <algorithm>

#include "base/bytes.h"
#include "connectors/files/file_table.h"
#include "connectors/files/file_write.h"
#include "connectors/kafka/kafka.h"
#include "engine/engine.h"
#include "plan/analyzer.h"
#include "session/data_sources_internal.h"
#include "session/executor_internal.h"
#include "session/expr_sql_internal.h"
#include "session/table_plans_internal.h"
#include "tables/create.h"
#include "tables/modify.h"
#include "types/parts.h"

namespace fleuve::session {

namespace sc = spark::connect;
using tables::SaveMode;

namespace {

SaveMode ModeOf(sc::WriteOperation::SaveMode mode) {
  switch (mode) {
    case sc::WriteOperation::SAVE_MODE_APPEND:
      return SaveMode::kAppend;
    case sc::WriteOperation::SAVE_MODE_OVERWRITE:
      return SaveMode::kOverwrite;
    case sc::WriteOperation::SAVE_MODE_IGNORE:
      return SaveMode::kIgnore;
    default:
      return SaveMode::kErrorIfExists;
  }
}

connectors::files::SaveMode FileModeOf(SaveMode mode) {
  switch (mode) {
    case SaveMode::kAppend:
      return connectors::files::SaveMode::kAppend;
    case SaveMode::kOverwrite:
      return connectors::files::SaveMode::kOverwrite;
    case SaveMode::kIgnore:
      return connectors::files::SaveMode::kIgnore;
    case SaveMode::kErrorIfExists:
      break;
  }
  return connectors::files::SaveMode::kErrorIfExists;
}

Error NeedsBatch(const std::string& method) {
  return Error(ErrorKind::kInvalidArgument, "CALL_ON_STREAMING_DATASET_UNSUPPORTED",
               "The method `" + method + "` can not be called on streaming Dataset/DataFrame.")
      .With("methodName", "`" + method + "`");
}

bool HoldsInterval(const types::DataType& type) {
  return types::Holds(type, types::TypeKind::kDayTimeInterval) ||
         types::Holds(type, types::TypeKind::kYearMonthInterval) ||
         types::Holds(type, types::TypeKind::kCalendarInterval);
}

/// save() to a path asks the format before the table does.
Result<void> CheckSavedTypes(const plan::LogicalPlan& input) {
  for (const plan::Attribute& attribute : input.output) {
    if (!attribute.hidden && HoldsInterval(attribute.type)) {
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
                   "The Delta datasource doesn't support the column `" + attribute.name + "` of the type \"" +
                       attribute.type.Sql() + "\".")
          .With("columnName", "`" + attribute.name + "`")
          .With("columnType", "\"" + attribute.type.Sql() + "\"")
          .With("format", "Delta");
    }
  }
  return {};
}

}  // namespace

Error TableExists(const std::string& display) {
  return Error(
             ErrorKind::kAlreadyExists, "TABLE_OR_VIEW_ALREADY_EXISTS",
             "Cannot create table or view " + QuoteParts(Split(display, '.')) +
                 " because it already exists. Choose a different name, drop or replace the existing object, or add the "
                 "IF NOT EXISTS clause to tolerate pre-existing objects.")
      .With("relationName", QuoteParts(Split(display, '.')));
}

Result<tables::TableContext> Executor::TablesContext() {
  tables::TableContext context;
  FLEUVE_ASSIGN(auto engine, state_.Engine());
  engines_.push_back(engine);
  context.logs = state_.services().logs.get();
  context.engine = engine.get();
  context.config = state_.AnalysisSettings();
  context.token = token_;
  return context;
}

Result<void> Executor::WriteDelta(const tables::TableRef& table, const plan::PlanPtr& input,
                                  const tables::WriteSpec& spec) {
  FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
  FLEUVE_TRY(tables::Write(context, table, input, spec));
  return {};
}

Result<void> Executor::WriteFiles(const std::string& format, const std::string& path, const plan::PlanPtr& input,
                                  SaveMode mode, const std::vector<std::string>& partition_by,
                                  const plan::Options& options) {
  connectors::files::FileWriteRequest request;
  request.format = format;
  request.path = path;
  request.mode = FileModeOf(mode);
  request.partition_by = partition_by;
  request.options = options;
  FLEUVE_ASSIGN(const auto engine, state_.Engine());
  const plan::AnalysisConfig config = state_.AnalysisSettings();
  engine::ExecuteOptions execute;
  execute.token = token_;
  FLEUVE_TRY(connectors::files::WriteFolder(*engine, input, request, config, execute));
  return {};
}

Result<Filled> Executor::FillFiles(const TableTarget& target, const plan::PlanPtr& input, bool overwrite) {
  catalog::Table row = *target.row;
  types::Schema schema;
  if (!row.schema_json.empty()) {
    FLEUVE_ASSIGN(const Json json, Json::Parse(row.schema_json));
    FLEUVE_ASSIGN(schema, types::DataType::FromJson(json));
  }
  plan::PlanPtr fitted = input;
  const types::Schema given = plan::SchemaOf(*input).AsNullable();
  const bool reshaped = overwrite && !given.EqualsIgnoringNullability(schema);
  if (!reshaped) {
    FLEUVE_ASSIGN(fitted, FitColumns(input, schema, true, state_.AnalysisSettings(), target.display));
  }
  FLEUVE_TRY(WriteFiles(target.provider, target.location.path, fitted,
                        overwrite ? SaveMode::kOverwrite : SaveMode::kAppend, row.partition_columns,
                        {row.options.begin(), row.options.end()}));
  if (reshaped) {
    row.schema_json = given.ToJson().Dump();
    FLEUVE_TRY(state_.services().catalog->AlterTable(row));
  }
  return Filled{};
}

Result<void> Executor::Write(const sc::WriteOperation& write) {
  FLEUVE_ASSIGN(const plan::PlanPtr input, AnalyzeRelation(write.input()));
  if (input->is_streaming) {
    return NeedsBatch("write");
  }
  const plan::Options options = OptionsOf(write.options());
  const std::string format =
      AsciiLower(write.source().empty() ? state_.config().GetOr("spark.sql.sources.default", "delta") : write.source());
  const SaveMode mode = ModeOf(write.mode());
  const std::vector<std::string> partition_by(write.partitioning_columns().begin(), write.partitioning_columns().end());
  const std::vector<std::string> cluster_by(write.clustering_columns().begin(), write.clustering_columns().end());
  if (write.has_bucket_by()) {
    const bool saves_table = write.has_table() && write.table().save_method() ==
                                                      sc::WriteOperation::SaveTable::TABLE_SAVE_METHOD_SAVE_AS_TABLE;
    if (!saves_table) {
      const std::string method = write.has_table() ? "insertInto" : "save";
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1312",
                   "'" + method + "' does not support bucketBy right now.")
          .With("operation", method)
          .Family(ErrorFamily::kAnalysis);
    }
    if (format != "delta") {
      return Error::Unsupported("buckets of tables (bucketBy)");
    }
    return Error(ErrorKind::kUnsupported, "DELTA_OPERATION_NOT_ALLOWED_DETAIL",
                 "Operation not allowed: `Bucketing` is not supported for Delta tables")
        .With("operation", "Bucketing");
  }
  if (!write.sort_column_names().empty()) {
    return Error(ErrorKind::kInvalidArgument, "SORT_BY_WITHOUT_BUCKETING",
                 "sortBy must be used together with bucketBy.");
  }
  plan::Options all = options;
  if (write.with_schema_evolution()) {
    all["mergeSchema"] = "true";
  }
  if (write.has_table()) {
    FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(write.table().table_name()));
    const auto method = write.table().save_method();
    if (method == sc::WriteOperation::SaveTable::TABLE_SAVE_METHOD_SAVE_AS_TABLE) {
      const auto partitions = partition_by.empty() ? std::nullopt : std::optional(partition_by);
      return SaveAsTable(parts, format, input, mode, partitions, cluster_by, all);
    }
    if (method != sc::WriteOperation::SaveTable::TABLE_SAVE_METHOD_INSERT_INTO) {
      return Error::Unsupported("this way of saving a table");
    }
    if (!partition_by.empty()) {
      return Error(
                 ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1309",
                 "insertInto() can't be used together with partitionBy(). Partition columns have already been defined "
                 "for the table. It is not necessary to use partitionBy().")
          .Family(ErrorFamily::kAnalysis);
    }
    SessionResolver resolver(state_);
    if (resolver.FindTemporaryView(parts) != nullptr) {
      return TableNotFound(parts);
    }
    return InsertRows(parts, resolver, input, [&](tables::WriteSpec* spec) {
      spec->mode = mode == SaveMode::kOverwrite ? SaveMode::kOverwrite : SaveMode::kAppend;
      spec->match = tables::ColumnMatch::kByPosition;
      spec->options = all;
      spec->is_insert = true;
    });
  }
  std::string path = write.path();
  if (path.empty()) {
    if (const std::string* option = plan::FindOption(options, "path"); option != nullptr) {
      path = *option;
    }
  } else if (plan::FindOption(options, "path") != nullptr) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1307",
                 "There is a 'path' option set and save() is called with a path parameter. Either remove the path "
                 "option, "
                 "or call save() without the parameter. To ignore this check, set "
                 "'spark.sql.legacy.pathOptionBehavior.enabled' to 'true'.")
        .Family(ErrorFamily::kAnalysis);
  }
  if (const auto source = FindUserSource(state_, format)) {
    if (!partition_by.empty() || !cluster_by.empty()) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "requirement failed: The provided partitioning or clustering columns do not match the existing "
                   "table's.")
          .Family(ErrorFamily::kIllegalArgument);
    }
    return WriteUserSource(
        *source, input, mode,
        connectors::user::WithPaths(options, path.empty() ? std::vector<std::string>() : std::vector{path}));
  }
  if (format == "noop") {
    if (mode == SaveMode::kErrorIfExists || mode == SaveMode::kIgnore) {
      const std::string name = mode == SaveMode::kIgnore ? "Ignore" : "ErrorIfExists";
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATA_SOURCE_SAVE_MODE",
                   "The data source \"noop\" cannot be written in the " + name +
                       " mode. Please use either the \"Append\" or \"Overwrite\" mode instead.")
          .With("source", "noop")
          .With("createMode", "\"" + name + "\"")
          .Family(ErrorFamily::kAnalysis);
    }
    FLEUVE_ASSIGN(const auto engine, state_.Engine());
    const plan::AnalysisConfig config = state_.AnalysisSettings();
    FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(input, config));
    engine::ExecuteOptions execute;
    execute.token = token_;
    FLEUVE_ASSIGN(auto reader, engine->Execute(prepared, execute));
    while (true) {
      FLEUVE_ASSIGN(const auto batch, reader->Next());
      if (!batch) {
        return {};
      }
    }
  }
  if (format == "kafka") {
    if (mode == SaveMode::kOverwrite || mode == SaveMode::kIgnore) {
      const std::string name = mode == SaveMode::kOverwrite ? "Overwrite" : "Ignore";
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3081",
                   "Save mode " + name +
                       " not allowed for Kafka. Allowed save modes are Append and ErrorIfExists (default).")
          .With("mode", name);
    }
    FLEUVE_ASSIGN(const auto engine, state_.Engine());
    return connectors::kafka::WriteTopic(*engine, input, options, state_.AnalysisSettings(), token_);
  }
  if (path.empty()) {
    return Error(ErrorKind::kInvalidArgument, format == "delta" ? "" : "_LEGACY_ERROR_TEMP_2047",
                 "'path' is not specified")
        .Family(ErrorFamily::kIllegalArgument);
  }
  if (format == "delta") {
    FLEUVE_TRY(CheckSavedTypes(*input));
    tables::TableRef table;
    FLEUVE_ASSIGN(table.location, storage::Resolve(path));
    table.name = "delta.`" + path + "`";
    tables::WriteSpec spec;
    spec.mode = mode;
    spec.match = tables::ColumnMatch::kByName;
    if (!partition_by.empty()) {
      spec.partition_by = partition_by;
    }
    spec.cluster_by = cluster_by;
    spec.options = all;
    return WriteDelta(table, input, spec);
  }
  if (!cluster_by.empty()) {
    return Error::Unsupported("clusterBy() for the format " + format);
  }
  if (connectors::files::IsFileFormat(format)) {
    return WriteFiles(format, path, input, mode, partition_by, options);
  }
  return UnknownProvider(format, "batch writes");
}

namespace {

/// The rows of saveAsTable() in mode append for a table of files: columns by name, partitions as the table has them.
Result<plan::PlanPtr> FitAppended(const TableTarget& target, const plan::PlanPtr& input,
                                  const std::vector<std::string>& partition_by, const plan::AnalysisConfig& config) {
  const catalog::Table& row = *target.row;
  const std::string table = QuoteParts(Split(target.display, '.'));
  const bool same_partitions =
      std::ranges::equal(partition_by, row.partition_columns,
                         [](const std::string& a, const std::string& b) { return EqualsIgnoreAsciiCase(a, b); });
  if (!same_partitions) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1163",
                 "Specified partitioning does not match that of the existing table " + table +
                     ". Specified partition columns: [" + Join(partition_by, ", ") +
                     "]. Existing partition columns: [" + Join(row.partition_columns, ", ") + "].")
        .Family(ErrorFamily::kAnalysis);
  }
  FLEUVE_ASSIGN(const Json json, Json::Parse(row.schema_json));
  FLEUVE_ASSIGN(const types::Schema schema, types::DataType::FromJson(json));
  const types::Schema given = plan::SchemaOf(*input);
  if (given.fields().size() != schema.fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1161",
                 "The column number of the existing table " + table + "(" + schema.SimpleString() +
                     ") doesn't match the data schema(" + given.SimpleString() + ")")
        .Family(ErrorFamily::kAnalysis);
  }
  for (const types::StructField& field : schema.fields()) {
    if (!types::FieldIndex(given, field.name, config.case_sensitive)) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1162",
                   "cannot resolve '" + field.name + "' given input columns: [" + given.SimpleString() + "]")
          .Family(ErrorFamily::kAnalysis);
    }
  }
  return FitColumns(input, schema, true, config, target.display);
}

}  // namespace

Result<void> Executor::SaveAsTable(const std::vector<std::string>& parts, const std::string& provider,
                                   const plan::PlanPtr& input, SaveMode mode,
                                   const std::optional<std::vector<std::string>>& partition_by,
                                   const std::vector<std::string>& cluster_by, const plan::Options& options) {
  SessionResolver resolver(state_);
  FLEUVE_ASSIGN(TableTarget target, resolver.Target(parts, false));
  if (target.is_path) {
    tables::TableRef table;
    table.location = target.location;
    table.name = target.display;
    if (target.provider != "delta") {
      return Error::Unsupported("saveAsTable() into " + target.display);
    }
    tables::WriteSpec spec;
    spec.mode = mode;
    spec.partition_by = partition_by;
    spec.cluster_by = cluster_by;
    spec.options = options;
    return WriteDelta(table, input, spec);
  }
  if (target.row && target.row->kind == catalog::TableKind::kView) {
    return Error(ErrorKind::kInvalidArgument, "TABLE_OR_VIEW_ALREADY_EXISTS",
                 "Cannot create table " + target.display + " because a view of this name exists.")
        .With("relationName", QuoteParts(Split(target.display, '.')));
  }
  if (target.row && mode == SaveMode::kErrorIfExists) {
    return TableExists(target.display);
  }
  if (target.row && mode == SaveMode::kIgnore) {
    return {};
  }
  plan::Options rest = options;
  std::string path;
  if (const std::string* option = plan::FindOption(options, "path"); option != nullptr) {
    path = *option;
    std::erase_if(rest, [](const auto& entry) { return EqualsIgnoreAsciiCase(entry.first, "path"); });
  }
  if (target.row) {
    const bool of_files = target.provider != "delta" && provider != "delta";
    if (target.provider != provider && !(of_files && mode == SaveMode::kOverwrite)) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1159",
                   "The format of the existing table " + target.display + " is `" + target.provider +
                       "`. It doesn't match the specified format `" + provider + "`.");
    }
    if (provider == "delta") {
      tables::WriteSpec spec;
      spec.mode = mode;
      spec.partition_by = partition_by;
      spec.cluster_by = cluster_by;
      spec.options = rest;
      if (mode == SaveMode::kOverwrite) {
        spec.operation = "CREATE OR REPLACE TABLE AS SELECT";
      }
      return WriteDelta(RefOf(target), input, spec);
    }
    const std::vector<std::string> partitions = partition_by.value_or(std::vector<std::string>());
    catalog::Table row = *target.row;
    if (mode == SaveMode::kAppend) {
      FLEUVE_ASSIGN(const plan::PlanPtr fitted, FitAppended(target, input, partitions, state_.AnalysisSettings()));
      plan::Options merged{row.options.begin(), row.options.end()};
      for (const auto& [name, value] : rest) {
        merged[name] = value;
      }
      return WriteFiles(provider, target.location.path, fitted, SaveMode::kAppend, row.partition_columns, merged);
    }
    // A new table in the place of the old one.
    FLEUVE_TRY(WriteFiles(provider, target.location.path, input, SaveMode::kOverwrite, partitions, rest));
    std::vector<types::StructField> ordered;
    std::vector<types::StructField> last;
    const types::Schema given = plan::SchemaOf(*input).AsNullable();
    for (const types::StructField& field : given.fields()) {
      const bool is_partition = std::ranges::any_of(
          partitions, [&](const std::string& name) { return EqualsIgnoreAsciiCase(name, field.name); });
      (is_partition ? last : ordered).push_back(field);
    }
    ordered.insert(ordered.end(), last.begin(), last.end());
    row.provider = provider;
    row.partition_columns = partitions;
    row.options = {rest.begin(), rest.end()};
    row.schema_json = types::DataType::Struct(std::move(ordered)).ToJson().Dump();
    return state_.services().catalog->AlterTable(row);
  }
  NewTable table;
  table.provider = provider;
  table.location = path;
  table.options = rest;
  table.partition_by = partition_by.value_or(std::vector<std::string>());
  table.cluster_by = cluster_by;
  table.query = input;
  table.operation = mode == SaveMode::kOverwrite ? "CREATE OR REPLACE TABLE AS SELECT" : "CREATE TABLE AS SELECT";
  return MakeTable(target, table);
}

namespace {

/// The columns of partitionedBy(): plain names only.
Result<std::vector<std::string>> PartitionNames(const google::protobuf::RepeatedPtrField<sc::Expression>& columns) {
  std::vector<std::string> names;
  for (const sc::Expression& column : columns) {
    if (!column.has_unresolved_attribute()) {
      return Error::Unsupported("partition transforms such as years() and bucket()");
    }
    FLEUVE_ASSIGN(const auto parts, sql::ParseMultipartName(column.unresolved_attribute().unparsed_identifier()));
    names.push_back(Join(parts, "."));
  }
  return names;
}

}  // namespace

Result<void> Executor::WriteV2(const sc::WriteOperationV2& write) {
  FLEUVE_ASSIGN(const plan::PlanPtr input, AnalyzeRelation(write.input()));
  if (input->is_streaming) {
    return NeedsBatch("writeTo");
  }
  SessionResolver resolver(state_);
  FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(write.table_name()));
  FLEUVE_ASSIGN(TableTarget target, resolver.Target(parts, false));
  plan::Options options = OptionsOf(write.options());
  if (write.with_schema_evolution()) {
    options["mergeSchema"] = "true";
  }
  const auto mode = write.mode();
  const bool creates = mode == sc::WriteOperationV2::MODE_CREATE || mode == sc::WriteOperationV2::MODE_REPLACE ||
                       mode == sc::WriteOperationV2::MODE_CREATE_OR_REPLACE;
  bool exists = target.row.has_value();
  if (target.is_path && target.provider == "delta") {
    FLEUVE_ASSIGN(exists, state_.services().logs->Open(target.location)->Exists());
  }
  if (creates) {
    if (exists && mode == sc::WriteOperationV2::MODE_CREATE) {
      return TableExists(target.display);
    }
    if (!exists && mode == sc::WriteOperationV2::MODE_REPLACE) {
      return TableNotFound(parts);
    }
    NewTable table;
    table.provider = AsciiLower(write.has_provider() && !write.provider().empty()
                                    ? write.provider()
                                    : state_.config().GetOr("spark.sql.sources.default", "delta"));
    table.options = options;
    table.properties = OptionsOf(write.table_properties());
    FLEUVE_ASSIGN(table.partition_by, PartitionNames(write.partitioning_columns()));
    table.cluster_by.assign(write.clustering_columns().begin(), write.clustering_columns().end());
    table.query = input;
    table.replace = mode != sc::WriteOperationV2::MODE_CREATE;
    table.operation = mode == sc::WriteOperationV2::MODE_CREATE    ? "CREATE TABLE AS SELECT"
                      : mode == sc::WriteOperationV2::MODE_REPLACE ? "REPLACE TABLE AS SELECT"
                                                                   : "CREATE OR REPLACE TABLE AS SELECT";
    return MakeTable(target, table);
  }
  if (!exists) {
    return TableNotFound(parts);
  }
  std::optional<std::string> condition;
  if (mode == sc::WriteOperationV2::MODE_OVERWRITE && write.has_overwrite_condition()) {
    const sc::Expression& expression = write.overwrite_condition();
    if (expression.has_expression_string()) {
      condition = expression.expression_string().expression();
    } else {
      FLEUVE_ASSIGN(const plan::PlanPtr leaf, TableLeaf(parts, std::nullopt, resolver));
      FLEUVE_ASSIGN(const plan::ExprPtr expr, plan::AnalyzeExpression(expression, leaf, resolver));
      FLEUVE_ASSIGN(condition, ExprSql(expr));
    }
    if (EqualsIgnoreAsciiCase(*condition, "true")) {
      condition.reset();
    }
  }
  return InsertRows(parts, resolver, input, [&](tables::WriteSpec* spec) {
    spec->mode = mode == sc::WriteOperationV2::MODE_APPEND ? SaveMode::kAppend : SaveMode::kOverwrite;
    spec->match = tables::ColumnMatch::kByName;
    spec->options = options;
    spec->replace_where = condition;
    if (mode == sc::WriteOperationV2::MODE_OVERWRITE_PARTITIONS) {
      spec->options["partitionOverwriteMode"] = "dynamic";
    }
  });
}

Result<void> Executor::InsertRows(const std::vector<std::string>& parts, SessionResolver& resolver,
                                  const plan::PlanPtr& input, const std::function<void(tables::WriteSpec*)>& fill) {
  if (resolver.FindTemporaryView(parts) != nullptr) {
    return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                 "'INSERT' expects a table but " + QuoteParts(parts) + " is a view.")
        .With("viewName", QuoteParts(parts))
        .With("operation", "INSERT");
  }
  FLEUVE_ASSIGN(TableTarget target, resolver.Target(parts, true));
  tables::WriteSpec spec;
  fill(&spec);
  if (target.provider == "delta") {
    if (target.is_path && PathWithoutVersion(parts[1]) != parts[1]) {
      return OldVersionRefused(parts[1]);
    }
    return WriteDelta(RefOf(target), input, spec);
  }
  if (target.row && target.row->kind == catalog::TableKind::kView) {
    return Error(ErrorKind::kInvalidArgument, "EXPECT_TABLE_NOT_VIEW.NO_ALTERNATIVE",
                 "'INSERT' expects a table but " + QuoteParts(parts) + " is a view.");
  }
  if (!spec.insert_columns.empty() || !spec.static_partitions.empty() || spec.replace_where) {
    return Error::Unsupported("column lists, PARTITION and REPLACE WHERE in INSERT INTO a table of format " +
                              target.provider);
  }
  // Files take their columns as they are: by position, with the table's names and types.
  FLEUVE_ASSIGN(const plan::PlanPtr leaf, TableLeaf(parts, std::nullopt, resolver));
  FLEUVE_ASSIGN(const plan::PlanPtr fitted,
                FitColumns(input, plan::SchemaOf(*leaf), spec.match == tables::ColumnMatch::kByName,
                           state_.AnalysisSettings(), target.display));
  return WriteFiles(target.provider, target.location.path, fitted, spec.mode,
                    target.row ? target.row->partition_columns : std::vector<std::string>(), spec.options);
}

}  // namespace fleuve::session
