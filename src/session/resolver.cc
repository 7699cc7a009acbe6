#include <charconv>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "connectors/autoloader/auto_loader.h"
#include "connectors/files/file_table.h"
#include "connectors/kafka/kafka.h"
#include "connectors/sink.h"
#include "operators/state_table.h"
#include "plan/analyzer.h"
#include "plan/reader_schema.h"
#include "session/data_sources_internal.h"
#include "session/resolver_internal.h"
#include "session/substitution_internal.h"
#include "session/workbench.h"
#include "spark/connect/relations.pb.h"
#include "tables/change_feed.h"
#include "tables/options.h"

namespace fleuve::session {

using plan::Options;
using plan::ResolvedTable;

namespace {

constexpr int kMaxViewDepth = 100;

/// `versionAsOf`, `timestampAsOf` of the options.
Result<delta::TimeTravel> TravelOf(const Options& options, const std::string& zone) {
  delta::TimeTravel when;
  const std::string* version = plan::FindOption(options, "versionAsOf");
  const std::string* timestamp = plan::FindOption(options, "timestampAsOf");
  if (version != nullptr && timestamp != nullptr) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_ONEOF_IN_TIMETRAVEL",
                 "Please either provide 'timestampAsOf' or 'versionAsOf' for time travel.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  if (version != nullptr) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(version->data(), version->data() + version->size(), number);
    if (code != std::errc() || end != version->data() + version->size()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
                   "'" + *version + "' is not a valid version to travel to: it must be a number.")
          .With("timeTravelKey", "versionAsOf")
          .Family(ErrorFamily::kIllegalArgument);
    }
    when.version = number;
  }
  if (timestamp != nullptr) {
    const auto micros = types::ParseTimestamp(*timestamp, zone);
    if (!micros) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_INVALID",
                   "The provided timestamp (" + *timestamp + ") cannot be converted to a valid timestamp.")
          .With("expr", "'" + *timestamp + "'");
    }
    when.timestamp_ms = *micros >= 0 ? *micros / 1000 : (*micros - 999) / 1000;
  }
  return when;
}

/// All rows of an analyzed plan. \param token  may be null.
Result<std::vector<types::Value::List>> AllRows(engine::Engine& engine, const plan::PlanPtr& plan,
                                                const plan::AnalysisConfig& config, const CancellationTokenPtr& token) {
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(plan, config));
  engine::ExecuteOptions options;
  options.token = token;
  FLEUVE_ASSIGN(auto reader, engine.Execute(prepared, options));
  std::vector<types::Value::List> rows;
  while (true) {
    FLEUVE_ASSIGN(auto batch, reader->Next());
    if (!batch) {
      return rows;
    }
    FLEUVE_ASSIGN(auto part, columnar::RowsFromBatch(*batch));
    std::move(part.begin(), part.end(), std::back_inserter(rows));
  }
}

/// Only Delta tables have versions.
Result<void> RefuseTravel(const Options& options, const std::vector<std::string>& parts) {
  if (plan::FindOption(options, "versionAsOf") == nullptr && plan::FindOption(options, "timestampAsOf") == nullptr) {
    return {};
  }
  return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TIME_TRAVEL",
               "The feature is not supported: time travel on the relation " + QuoteParts(parts) + ".")
      .With("relationId", QuoteParts(parts))
      .Family(ErrorFamily::kAnalysis);
}

/// Cuts `@v12` or `@yyyyMMddHHmmssSSS` off a table path and turns it into options.
Result<void> SplitPathVersion(std::string* path, Options* options) {
  const std::size_t at = path->rfind('@');
  if (at == std::string::npos) {
    return {};
  }
  const std::string suffix = path->substr(at + 1);
  const bool version =
      suffix.size() > 1 && suffix[0] == 'v' && suffix.find_first_not_of("0123456789", 1) == std::string::npos;
  const bool time = suffix.size() == 17 && suffix.find_first_not_of("0123456789") == std::string::npos;
  if (!version && !time) {
    return {};
  }
  if (plan::FindOption(*options, "versionAsOf") != nullptr || plan::FindOption(*options, "timestampAsOf") != nullptr) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_UNSUPPORTED_TIME_TRAVEL_MULTIPLE_FORMATS",
                 "Cannot specify time travel in multiple formats: the path " + *path +
                     " says a version, and so do the options.");
  }
  if (version) {
    (*options)["versionAsOf"] = suffix.substr(1);
  } else {
    (*options)["timestampAsOf"] = suffix.substr(0, 4) + "-" + suffix.substr(4, 2) + "-" + suffix.substr(6, 2) + " " +
                                  suffix.substr(8, 2) + ":" + suffix.substr(10, 2) + ":" + suffix.substr(12, 2) + "." +
                                  suffix.substr(14, 3);
  }
  path->resize(at);
  return {};
}

/// A source whose columns are always the same takes a schema that says just these, as Spark's does.
Result<void> CheckFixedSchema(const types::Schema& given, const types::Schema& fixed) {
  if (given.fields().empty() || given.EqualsIgnoringNullability(fixed)) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1133",
               "The user-specified schema doesn't match the actual schema: user-specified: " + types::ToDdl(given) +
                   ", actual: " + types::ToDdl(fixed) + ". Leave the schema out, or give the actual one.")
      .With("schema", types::ToDdl(given))
      .With("actualSchema", types::ToDdl(fixed));
}

Error SourceNotFound(const std::string& format) {
  return Error(ErrorKind::kNotFound, "DATA_SOURCE_NOT_FOUND",
               "Failed to find the data source: " + format +
                   ". Make sure the provider name is correct and the package "
                   "is properly registered and compatible with your Spark version.")
      .With("provider", format);
}

Error PathGivenTwice(bool is_streaming) {
  return Error(
             ErrorKind::kInvalidArgument, is_streaming ? "_LEGACY_ERROR_TEMP_1188" : "_LEGACY_ERROR_TEMP_1306",
             "There is a 'path' or 'paths' option set and load() is called with path parameters. Either remove the "
             "path option if it's the same as the path parameter, or add it to the load() parameter if you do want to "
             "read multiple paths. To ignore this check, set 'spark.sql.legacy.pathOptionBehavior.enabled' to 'true'.")
      .Family(ErrorFamily::kAnalysis);
}

}  // namespace

std::string QuoteParts(const std::vector<std::string>& parts) {
  std::vector<std::string> quoted;
  for (const std::string& part : parts) {
    quoted.push_back(types::QuoteIdentifier(part));
  }
  return Join(quoted, ".");
}

Error TableNotFound(const std::vector<std::string>& parts) {
  return Error(ErrorKind::kNotFound, "TABLE_OR_VIEW_NOT_FOUND",
               "The table or view " + QuoteParts(parts) +
                   " cannot be found. Verify the spelling and correctness of the schema and catalog. If you did not "
                   "qualify the name with a schema, verify the current_schema() output, or qualify the name with the "
                   "correct schema and catalog. To tolerate the error on drop use DROP VIEW IF EXISTS or DROP TABLE IF "
                   "EXISTS.")
      .With("relationName", QuoteParts(parts));
}

plan::AnalysisConfig SessionResolver::Config() {
  // One clock reading for the whole analysis.
  if (!config_) {
    config_ = state_.AnalysisSettings();
    config_->current_database = database_;
  }
  return *config_;
}

sql::ParserOptions SessionResolver::ParserSettings() {
  const session::Config& conf = state_.config();
  sql::ParserOptions options;
  options.session_zone = Config().session_zone;
  options.timestamp_is_ltz = conf.GetOr("spark.sql.timestampType", "TIMESTAMP_LTZ") == "TIMESTAMP_LTZ";
  options.double_quoted_identifiers = conf.GetBool("spark.sql.ansi.doubleQuotedIdentifiers");
  options.escaped_string_literals = conf.GetBool("spark.sql.parser.escapedStringLiterals");
  options.now_micros = Config().now_micros;
  return options;
}

void SessionResolver::AddLocalView(const std::string& name, plan::PlanPtr plan) {
  auto view = std::make_shared<TemporaryView>();
  view->plan = std::move(plan);
  local_views_[AsciiLower(name)] = std::move(view);
}

TemporaryViewPtr SessionResolver::FindTemporaryView(const std::vector<std::string>& parts) {
  if (parts.size() == 1) {
    if (const auto found = local_views_.find(AsciiLower(parts[0])); found != local_views_.end()) {
      return found->second;
    }
    return state_.FindView(parts[0]);
  }
  if (parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "global_temp")) {
    return state_.FindGlobalView(parts[1]);
  }
  return nullptr;
}

Result<TableTarget> SessionResolver::Target(const std::vector<std::string>& parts, bool must_exist) {
  TableTarget target;
  if (parts.empty() || parts.size() > 3) {
    return parts.empty() ? TableNotFound({""}) : TableNotFound(parts);
  }
  if (parts.size() == 2 && parts[1].find('/') != std::string::npos) {
    const std::string format = AsciiLower(parts[0]);
    if (format == "delta" || connectors::files::IsFileFormat(format)) {
      target.is_path = true;
      target.provider = format;
      FLEUVE_ASSIGN(target.location, storage::Resolve(parts[1]));
      target.display = format + ".`" + parts[1] + "`";
      return target;
    }
  }
  if (parts.size() == 2 && must_exist && parts[1].find('/') != std::string::npos && state_.FindDataSource(parts[0])) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATASOURCE_FOR_DIRECT_QUERY",
                 "Unsupported data source type for direct query on files: " + parts[0])
        .With("dataSourceType", parts[0]);
  }
  std::vector<std::string> rest = parts;
  if (rest.size() == 3) {
    if (!EqualsIgnoreAsciiCase(rest[0], "spark_catalog")) {
      if (must_exist) {
        return TableNotFound(parts);
      }
      return Error(ErrorKind::kNotFound, "CATALOG_NOT_FOUND",
                   "The catalog " + types::QuoteIdentifier(rest[0]) + " not found.")
          .With("catalogName", types::QuoteIdentifier(rest[0]));
    }
    rest.erase(rest.begin());
  }
  target.database = rest.size() == 2 ? AsciiLower(rest[0]) : database_;
  // Tables have names in lower case: a session that minds case finds nothing under another spelling.
  const bool other_case = AsciiLower(rest.back()) != rest.back() && Config().case_sensitive;
  target.name = other_case ? rest.back() : AsciiLower(rest.back());
  target.display = "spark_catalog." + target.database + "." + target.name;
  if (other_case) {
    return must_exist ? Result<TableTarget>(TableNotFound(parts)) : Result<TableTarget>(std::move(target));
  }
  auto row = state_.services().catalog->GetTable(target.database, target.name);
  if (row.ok()) {
    target.row = *row;
    target.provider = AsciiLower(row->provider);
    if (!row->location.empty()) {
      FLEUVE_ASSIGN(target.location, storage::Resolve(row->location));
    }
    return target;
  }
  if (row.error().kind() != ErrorKind::kNotFound) {
    return row.error();
  }
  if (must_exist) {
    return TableNotFound(parts);
  }
  return target;
}

Result<plan::PlanPtr> SessionResolver::ExpandView(const std::string& name, const std::string& text,
                                                  const std::string& database, const types::Schema& schema) {
  if (view_depth_ >= kMaxViewDepth) {
    return Error(ErrorKind::kInvalidArgument, "VIEW_EXCEED_MAX_NESTED_DEPTH",
                 "The depth of view " + name + " exceeds the maximum view resolution depth (100).");
  }
  SessionResolver inner(state_, database);
  inner.view_depth_ = view_depth_ + 1;
  inner.config_ = config_;
  inner.used_views_ = used_views_;
  FLEUVE_ASSIGN(auto relation, sql::ParseQuery(text, inner.ParserSettings()));
  FLEUVE_ASSIGN(plan::PlanPtr plan, plan::Analyze(*relation, inner));
  if (!schema.Is(types::TypeKind::kStruct)) {
    return plan;
  }
  // The view keeps the names it was made with.
  std::vector<plan::Attribute> visible;
  for (const plan::Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      visible.push_back(attribute);
    }
  }
  if (visible.size() != schema.fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "INCOMPATIBLE_VIEW_SCHEMA_CHANGE",
                 "The SQL query of view " + name + " has an incompatible schema change: it gives " +
                     std::to_string(visible.size()) + " columns instead of " + std::to_string(schema.fields().size()) +
                     ".");
  }
  std::vector<plan::ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (std::size_t i = 0; i < visible.size(); ++i) {
    exprs.push_back(plan::MakeAttribute(visible[i]));
    plan::Attribute renamed = visible[i];
    renamed.id = plan::NewAttributeId();
    renamed.name = schema.fields()[i].name;
    renamed.metadata = schema.fields()[i].metadata;
    renamed.qualifier.clear();
    output.push_back(std::move(renamed));
  }
  return plan::MakeProject(plan, std::move(exprs), std::move(output));
}

std::string PathWithoutVersion(std::string path) {
  Options options;
  static_cast<void>(SplitPathVersion(&path, &options));
  return path;
}

Error OldVersionRefused(const std::string& path) {
  const std::string version = path.substr(PathWithoutVersion(path).size() + 1);
  return Error(ErrorKind::kUnsupported, "DELTA_FAILED_SCAN_WITH_HISTORICAL_VERSION",
               "The statement needs the newest version of the table; the path " + path + " names an old one.")
      .With("historicalVersion", version.substr(version.starts_with('v') ? 1 : 0));
}

Result<ResolvedTable> SessionResolver::OpenDelta(const storage::Location& location, const std::string& display,
                                                 const Options& options, std::vector<std::string> qualified_name) {
  FLEUVE_ASSIGN(const delta::TimeTravel when, TravelOf(options, Config().session_zone));
  ResolvedTable resolved;
  resolved.qualified_name = std::move(qualified_name);
  const delta::DeltaLogPtr log = state_.services().logs->Open(location);
  FLEUVE_ASSIGN(const auto feed, tables::FlagOption(options, "readChangeFeed"));
  FLEUVE_ASSIGN(const auto data, tables::FlagOption(options, "readChangeData"));
  if (feed.value_or(false) || data.value_or(false)) {
    if (when.version || when.timestamp_ms) {
      return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_TIME_TRAVEL_VIEWS",
                   "A change feed cannot be read together with time travel.");
    }
    const plan::AnalysisConfig config = Config();
    FLEUVE_ASSIGN(const auto bounds, tables::ChangeBoundsOf(options, config));
    FLEUVE_ASSIGN(resolved.view_plan, tables::ChangeFeed(log, bounds.first, bounds.second, config));
    return resolved;
  }
  if (when.version || when.timestamp_ms) {
    FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, delta::Travel(log, when));
    resolved.table = std::make_shared<PinnedTable>(std::make_shared<delta::DeltaTable>(snapshot, display));
    return resolved;
  }
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  resolved.table = std::make_shared<delta::DeltaTable>(snapshot, display);
  return resolved;
}

Result<ResolvedTable> SessionResolver::OpenStream(const std::string& format, const std::optional<types::Schema>& schema,
                                                  const Options& options, std::vector<std::string> paths,
                                                  std::vector<std::string> table_name) {
  connectors::StreamRequest request;
  request.format = AsciiLower(format);
  request.schema = schema;
  request.options = names_ == nullptr ? options : names_->SourceOptions(request.format, options);
  request.paths = std::move(paths);
  request.table_name = table_name;
  connectors::SourceProvider* provider = state_.services().connectors->source(request.format);
  if (provider == nullptr) {
    if (request.format == "memory") {
      return SourceNotFound(format);
    }
    if (state_.services().connectors->sink(request.format) != nullptr || request.format == "jdbc") {
      return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_2049",
                   "Data source " + format + " does not support streamed reading.")
          .Family(ErrorFamily::kUnsupportedOperation);
    }
    if (request.format == "socket" || request.format == "kinesis") {
      return Error::Unsupported("the streaming source " + format);
    }
    return SourceNotFound(format);
  }
  ResolvedTable resolved;
  FLEUVE_ASSIGN(resolved.stream, provider->Resolve(request, Config()));
  resolved.qualified_name = std::move(table_name);
  return resolved;
}

Result<ResolvedTable> SessionResolver::TableChanges(const std::string& function,
                                                    const std::vector<plan::TableFunctionArgument>& arguments) {
  if (arguments.size() < 2 || arguments.size() > 3) {
    return Error(ErrorKind::kInvalidArgument, "INCORRECT_NUMBER_OF_ARGUMENTS",
                 "The function " + function + " takes 2 or 3 arguments, not " + std::to_string(arguments.size()) + ".")
        .With("functionName", function)
        .With("minArgs", "2")
        .With("maxArgs", "3")
        .With("failure", "incorrect number");
  }
  const auto unsupported = [&](const types::DataType& type) {
    return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_EXPRESSION",
                 "An argument of type " + type.Sql() + " is not supported by " + function + ".")
        .With("expType", type.Sql())
        .With("causedBy", function);
  };
  if (!arguments[0].type.IsString() || arguments[0].value.is_null()) {
    return unsupported(arguments[0].type);
  }
  const std::string& named = arguments[0].value.text();
  delta::DeltaLogPtr log;
  if (function == "table_changes_by_path") {
    FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(named));
    log = state_.services().logs->Open(location);
    FLEUVE_ASSIGN(const bool exists, log->Exists());
    if (!exists) {
      return Error(ErrorKind::kNotFound, "DELTA_MISSING_DELTA_TABLE", "`" + named + "` is not a Delta table.")
          .With("tableName", named);
    }
  } else {
    FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(named));
    FLEUVE_ASSIGN(const TableTarget target, Target(parts, true));
    if (target.provider != "delta") {
      return Error(ErrorKind::kUnsupported, "DELTA_TABLE_ONLY_OPERATION",
                   named + " is not a Delta table; " + function + " is only supported for Delta tables.")
          .With("tableName", named)
          .With("operation", function);
    }
    log = state_.services().logs->Open(target.location);
  }
  std::vector<tables::ChangeBound> bounds(2);
  const plan::AnalysisConfig config = Config();
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const plan::TableFunctionArgument& argument = arguments[i];
    if (argument.value.is_null()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CDC_READ_NULL_RANGE_BOUNDARY",
                   "The start and end of a change feed must not be NULL.");
    }
    if (argument.type.Is(types::TypeKind::kInt) || argument.type.Is(types::TypeKind::kLong)) {
      bounds[i - 1].version = argument.value.integer();
    } else if (argument.type.IsString() || argument.type.Is(types::TypeKind::kTimestamp)) {
      const auto micros = argument.type.IsString() ? types::ParseTimestamp(argument.value.text(), config.session_zone)
                                                   : std::optional(argument.value.integer());
      if (!micros) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_INVALID",
                     "The provided timestamp (" + argument.value.text() + ") cannot be converted to a valid timestamp.")
            .With("expr", argument.value.text());
      }
      bounds[i - 1].timestamp_ms = *micros >= 0 ? *micros / 1000 : (*micros - 999) / 1000;
    } else {
      return unsupported(argument.type);
    }
  }
  ResolvedTable resolved;
  FLEUVE_ASSIGN(resolved.view_plan, tables::ChangeFeed(log, bounds[0], bounds[1], config));
  resolved.qualified_name = {function};
  return resolved;
}

Result<ResolvedTable> SessionResolver::ResolveTableFunction(const std::string& function,
                                                            const std::vector<plan::TableFunctionArgument>& arguments,
                                                            bool is_streaming) {
  if (function.starts_with("table_changes")) {
    if (is_streaming) {
      return Error::Unsupported("STREAM over " + function + ": use readStream with the option readChangeFeed");
    }
    return TableChanges(function, arguments);
  }
  std::vector<std::string> positional;
  Options named;
  for (const plan::TableFunctionArgument& argument : arguments) {
    for (const auto& [key, value] : argument.entries) {
      named[key] = value;
    }
    if (!argument.entries.empty()) {
      continue;
    }
    if (!argument.name.empty() && !(EqualsIgnoreAsciiCase(argument.name, "path") && function == "read_files")) {
      named[argument.name] = argument.text;
    } else {
      positional.push_back(argument.text);
    }
  }
  const std::size_t wanted = function == "cloud_files" ? 2 : 1;
  if (positional.size() != wanted) {
    return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                 "The `" + function + "` requires " + std::to_string(wanted) +
                     " positional parameters but the actual number is " + std::to_string(positional.size()) + ".");
  }
  if (names_ != nullptr && function != "cloud_files_state" && is_streaming) {
    named = names_->SourceOptions(function, std::move(named));
  }
  ResolvedTable resolved;
  if (function == "cloud_files_state") {
    FLEUVE_ASSIGN(resolved.table, connectors::autoloader::CloudFilesState(positional[0]));
  } else if (function == "cloud_files") {
    FLEUVE_ASSIGN(resolved.stream,
                  connectors::autoloader::CloudFilesStream(positional[0], positional[1], named, Config()));
  } else if (is_streaming) {
    FLEUVE_ASSIGN(resolved.stream, connectors::autoloader::ReadFilesStream(positional[0], named, Config()));
  } else {
    FLEUVE_ASSIGN(resolved.table, connectors::autoloader::ReadFilesTable(positional[0], named, Config()));
  }
  return resolved;
}

Result<ResolvedTable> SessionResolver::ResolveTable(const std::vector<std::string>& parts, const Options& options,
                                                    bool is_streaming) {
  if (names_ != nullptr) {
    FLEUVE_ASSIGN(auto answer, names_->Resolve(parts, options, is_streaming));
    if (answer && answer->table) {
      return *std::move(answer->table);
    }
    if (answer) {
      return ResolveOwnTable(answer->renamed, options, is_streaming);
    }
  }
  return ResolveOwnTable(parts, options, is_streaming);
}

Result<ResolvedTable> SessionResolver::ResolveOwnTable(const std::vector<std::string>& parts, const Options& options,
                                                       bool is_streaming) {
  if (const TemporaryViewPtr view = FindTemporaryView(parts); view != nullptr) {
    FLEUVE_TRY(RefuseTravel(options, parts));
    ResolvedTable resolved;
    used_views_->insert(AsciiLower(Join(parts, ".")));
    if (view->plan != nullptr) {
      FLEUVE_ASSIGN(resolved.view_plan, RefreshTables(state_, view->plan));
    } else {
      FLEUVE_ASSIGN(resolved.view_plan, ExpandView(QuoteParts(parts), view->text, view->database, view->schema));
    }
    if (is_streaming && !resolved.view_plan->is_streaming) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1008",
                   Join(parts, ".") +
                       " is not a temp view of streaming logical plan, please use batch API such as "
                       "`DataFrameReader.table` to read it.")
          .Family(ErrorFamily::kAnalysis);
    }
    resolved.qualified_name = parts;
    return resolved;
  }
  FLEUVE_ASSIGN(TableTarget target, Target(parts, true));
  if (target.is_path) {
    if (target.provider == "delta") {
      Options all = options;
      std::string path = parts[1];
      FLEUVE_TRY(SplitPathVersion(&path, &all));
      if (is_streaming) {
        return OpenStream("delta", std::nullopt, all, {path}, {});
      }
      FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(path));
      FLEUVE_ASSIGN(const bool exists, state_.services().logs->Open(location)->Exists());
      if (!exists) {
        if (!location.store->Head(location.path).ok()) {
          return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND", "Path does not exist: " + path + ".").With("path", path);
        }
        return Error(ErrorKind::kNotFound, "DELTA_TABLE_NOT_FOUND", "Delta table `" + path + "` doesn't exist.")
            .With("tableName", "`" + path + "`");
      }
      return OpenDelta(location, "delta.`" + path + "`", all, {"spark_catalog", "delta", path});
    }
    if (is_streaming) {
      return OpenStream(target.provider, std::nullopt, options, {parts[1]}, {});
    }
    return ResolveDataSource(target.provider, std::nullopt, options, {parts[1]}, {}, false);
  }
  const catalog::Table& row = *target.row;
  std::vector<std::string> full = {"spark_catalog", target.database, target.name};
  if (row.kind == catalog::TableKind::kView) {
    if (is_streaming) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1018",
                   QuoteParts(full) +
                       " is a permanent view, which is not supported by streaming reading API such as "
                       "`DataStreamReader.table` yet.")
          .Family(ErrorFamily::kAnalysis);
    }
    FLEUVE_TRY(RefuseTravel(options, full));
    ResolvedTable resolved;
    types::Schema schema;
    if (!row.schema_json.empty()) {
      FLEUVE_ASSIGN(const Json json, Json::Parse(row.schema_json));
      FLEUVE_ASSIGN(schema, types::DataType::FromJson(json));
    }
    FLEUVE_ASSIGN(resolved.view_plan, ExpandView(QuoteParts(full), row.view_text,
                                                 row.view_database.empty() ? row.database : row.view_database, schema));
    resolved.qualified_name = std::move(full);
    return resolved;
  }
  if (is_streaming) {
    std::optional<types::Schema> schema;
    if (target.provider != "delta" && !row.schema_json.empty()) {
      FLEUVE_ASSIGN(const Json json, Json::Parse(row.schema_json));
      FLEUVE_ASSIGN(schema, types::DataType::FromJson(json));
    }
    Options all = row.options;
    for (const auto& [key, value] : options) {
      all[key] = value;
    }
    return OpenStream(target.provider, schema, all, {row.location}, full);
  }
  if (target.provider == "delta") {
    if (plan::FindOption(options, "versionAsOf") != nullptr && plan::FindOption(options, "timestampAsOf") != nullptr) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_TIME_TRAVEL_SPEC",
                   "Cannot specify both version and timestamp when time travelling the table.");
    }
    return OpenDelta(target.location, target.display, options, std::move(full));
  }
  FLEUVE_TRY(RefuseTravel(options, full));
  connectors::files::FileReadRequest request;
  request.format = target.provider;
  if (!row.schema_json.empty()) {
    FLEUVE_ASSIGN(const Json json, Json::Parse(row.schema_json));
    FLEUVE_ASSIGN(request.schema, types::DataType::FromJson(json));
  }
  request.options = row.options;
  for (const auto& [key, value] : options) {
    request.options[key] = value;
  }
  request.paths = {row.location};
  ResolvedTable resolved;
  FLEUVE_ASSIGN(resolved.table, connectors::files::MakeFileTable(request, Config()));
  resolved.qualified_name = std::move(full);
  return resolved;
}

Result<ResolvedTable> SessionResolver::ResolveDataSource(const std::string& format,
                                                         const std::optional<types::Schema>& schema,
                                                         const Options& options, const std::vector<std::string>& paths,
                                                         const std::vector<std::string>& predicates,
                                                         bool is_streaming) {
  const std::string name =
      AsciiLower(format.empty() ? state_.config().GetOr("spark.sql.sources.default", "delta") : format);
  if (!predicates.empty()) {
    return Error::Unsupported("predicates of the data source " + name);
  }
  if (schema) {
    FLEUVE_TRY(plan::RefuseCharTypes(*schema));
  }
  std::vector<std::string> all_paths = paths;
  const std::string* path_option = plan::FindOption(options, "path");
  if (all_paths.empty()) {
    if (path_option != nullptr) {
      all_paths.push_back(*path_option);
    }
  } else if ((path_option != nullptr || (!is_streaming && plan::FindOption(options, "paths") != nullptr)) &&
             state_.config().GetOr("spark.sql.legacy.pathOptionBehavior.enabled", "false") != "true") {
    return PathGivenTwice(is_streaming);
  }
  if (const auto source = FindUserSource(state_, name)) {
    const Options own = connectors::user::WithPaths(options, all_paths);
    ResolvedTable resolved;
    if (is_streaming) {
      FLEUVE_ASSIGN(resolved.stream, connectors::user::OpenStream(*source, schema, own, Config()));
    } else {
      FLEUVE_ASSIGN(resolved.table, connectors::user::OpenTable(*source, schema, own, Config()));
    }
    return resolved;
  }
  if (is_streaming) {
    return OpenStream(name, schema, options, all_paths, {});
  }
  if (name == "statestore" || name == "state-metadata") {
    Options all = options;
    if (all_paths.size() == 1) {
      all["path"] = all_paths[0];
    }
    ResolvedTable resolved;
    FLEUVE_ASSIGN(resolved.table,
                  name == "statestore" ? operators::OpenStateTable(all) : operators::OpenStateMetadata(all));
    return resolved;
  }
  if (name == "delta") {
    if (all_paths.size() != 1) {
      return Error(ErrorKind::kInvalidArgument, "",
                   all_paths.empty() ? "'path' is not specified" : "Delta tables are read from one path")
          .Family(ErrorFamily::kIllegalArgument);
    }
    if (schema && !schema->fields().empty()) {
      return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_2242",
                   "delta source does not support user-specified schema.")
          .Family(ErrorFamily::kUnsupportedOperation);
    }
    Options rest = options;
    std::string path = all_paths[0];
    FLEUVE_TRY(SplitPathVersion(&path, &rest));
    FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(path));
    FLEUVE_ASSIGN(const bool exists, state_.services().logs->Open(location)->Exists());
    if (!exists) {
      auto meta = location.store->Head(location.path);
      if (!meta.ok() && meta.error().kind() == ErrorKind::kNotFound) {
        return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND",
                     "Path does not exist: " + storage::ToFileUri(location.path) + ".")
            .With("path", storage::ToFileUri(location.path));
      }
      return Error(ErrorKind::kNotFound, "DELTA_TABLE_NOT_FOUND", "Delta table `" + path + "` doesn't exist.")
          .With("tableName", "`" + path + "`");
    }
    return OpenDelta(location, "delta.`" + path + "`", rest, {});
  }
  if (connectors::files::IsFileFormat(name)) {
    connectors::files::FileReadRequest request;
    request.format = name;
    request.schema = schema;
    request.options = options;
    if (state_.Persisted("")) {
      // Spark answers a query for corrupt records alone from the rows it holds.
      request.options["fleuve.corruptRecordAlone"] = "true";
    }
    request.paths = all_paths;
    ResolvedTable resolved;
    FLEUVE_ASSIGN(resolved.table, connectors::files::MakeFileTable(request, Config()));
    return resolved;
  }
  if (name == "cloudfiles") {
    return connectors::autoloader::BatchReadRefused();
  }
  if (name == "kafka") {
    ResolvedTable resolved;
    FLEUVE_ASSIGN(resolved.table, connectors::kafka::KafkaTable(options, Config()));
    if (schema) {
      FLEUVE_TRY(CheckFixedSchema(*schema, resolved.table->schema()));
    }
    return resolved;
  }
  if (state_.services().connectors->source(name) != nullptr || name == "jdbc" || name == "rate") {
    return Error::Unsupported("batch reads of the data source " + name);
  }
  return SourceNotFound(name);
}

Result<plan::PlanPtr> SessionResolver::ResolveCachedRelation(const std::string& id) {
  if (plan::PlanPtr plan = state_.FindRelation(id); plan != nullptr) {
    return plan;
  }
  return Error(ErrorKind::kNotFound, "INTERNAL_ERROR", "No DataFrame with id " + id + " is found.")
      .With("message", "No DataFrame with id " + id + " is found.");
}

Result<std::string> SessionResolver::CachedArtifact(const std::string& hash) {
  return state_.session().artifacts().CacheBytes(hash);
}

Result<std::shared_ptr<const spark::connect::Relation>> SessionResolver::ParseQuery(const std::string& sql) {
  return sql::ParseQuery(sql, ParserSettings());
}

Result<sql::Statement> SessionResolver::ParseStatement(const spark::connect::SQL& sql) {
  sql::ParserOptions options = ParserSettings();
  std::vector<std::unique_ptr<spark::connect::Expression>> literals;
  const auto keep = [&](const spark::connect::Expression::Literal& literal) {
    literals.push_back(std::make_unique<spark::connect::Expression>());
    *literals.back()->mutable_literal() = literal;
    return literals.back().get();
  };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  for (const auto& [name, value] : sql.args()) {
    options.named_parameters[name] = keep(value);
  }
  for (const auto& value : sql.pos_args()) {
    options.positional_parameters.push_back(keep(value));
  }
#pragma GCC diagnostic pop
  for (const auto& [name, value] : sql.named_arguments()) {
    options.named_parameters[name] = &value;
  }
  for (const auto& value : sql.pos_arguments()) {
    options.positional_parameters.push_back(&value);
  }
  const plan::AnalysisConfig config = state_.AnalysisSettings();
  if (sql.query().find("${") != std::string::npos && config.conf("spark.sql.variable.substitute") == "true") {
    return sql::ParseStatement(SubstituteVariables(sql.query(), config.conf), options);
  }
  return sql::ParseStatement(sql.query(), options);
}

Result<std::shared_ptr<const spark::connect::Relation>> SessionResolver::ParseSql(const spark::connect::SQL& sql) {
  FLEUVE_ASSIGN(sql::Statement statement, ParseStatement(sql));
  if (statement.query == nullptr) {
    return Error::Unsupported("a SQL command inside a query");
  }
  return statement.query;
}

Result<std::vector<types::Value::List>> SessionResolver::RunQuery(const plan::PlanPtr& plan) {
  FLEUVE_ASSIGN(const auto engine, state_.Engine());
  return AllRows(*engine, plan, Config(), token_);
}

Result<std::function<Result<std::vector<types::Value::List>>(const plan::PlanPtr&)>> SessionResolver::QueryRunner() {
  FLEUVE_ASSIGN(auto engine, state_.Engine());
  return std::function<Result<std::vector<types::Value::List>>(const plan::PlanPtr&)>(
      [engine = std::move(engine), config = state_.FrozenSettings()](const plan::PlanPtr& plan) {
        // Such plans may outlive the operation that was analyzed: its token does not speak for them.
        return AllRows(*engine, plan, config, nullptr);
      });
}

Result<std::optional<plan::SqlFunction>> SessionResolver::ResolveFunction(const std::vector<std::string>& parts) {
  return state_.FindFunction(parts.back());
}

Result<std::optional<plan::SessionVariable>> SessionResolver::ResolveVariable(const std::vector<std::string>& parts) {
  const bool qualified =
      parts.size() == 1 || (parts.size() == 2 && EqualsIgnoreAsciiCase(parts[0], "session")) ||
      (parts.size() == 3 && EqualsIgnoreAsciiCase(parts[0], "system") && EqualsIgnoreAsciiCase(parts[1], "session"));
  if (!qualified && parts.size() == 2) {
    // A column of the row that a FOR loop of a script is at.
    return state_.FindVariable(parts[0] + "." + parts[1]);
  }
  return qualified ? state_.FindVariable(parts.back()) : std::optional<plan::SessionVariable>();
}

Result<std::shared_ptr<const plan::TableSource>> RefreshTable(SessionState& state,
                                                              const std::shared_ptr<const plan::TableSource>& table) {
  const auto delta_table = std::dynamic_pointer_cast<const delta::DeltaTable>(table);
  if (delta_table == nullptr) {
    return table;
  }
  FLEUVE_ASSIGN(const delta::SnapshotPtr latest,
                state.services().logs->Open(delta_table->snapshot()->location())->Latest());
  if (latest == delta_table->snapshot()) {
    return table;
  }
  if (!latest->schema().EqualsIgnoringNullability(delta_table->schema())) {
    return Error(
               ErrorKind::kInvalidArgument, "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
               "The schema of your Delta table " + delta_table->name() +
                   " has changed in an incompatible way since your DataFrame or DeltaTable object was created. Please "
                   "redefine your DataFrame or DeltaTable object.")
        .With("schemaDiff", latest->schema().SimpleString());
  }
  return std::shared_ptr<const plan::TableSource>(std::make_shared<delta::DeltaTable>(latest, delta_table->name()));
}

Result<plan::PlanPtr> RefreshTables(SessionState& state, const plan::PlanPtr& plan) {
  std::optional<Error> failure;
  plan::PlanPtr refreshed = plan::RewritePlan(plan, [&](const plan::PlanPtr& node) -> plan::PlanPtr {
    if (node->kind != plan::PlanKind::kTable || failure) {
      return nullptr;
    }
    auto table = RefreshTable(state, node->table);
    if (!table.ok()) {
      failure = table.error();
      return nullptr;
    }
    if (*table == node->table) {
      return nullptr;
    }
    auto copy = std::make_shared<plan::LogicalPlan>(*node);
    copy->table = *table;
    return copy;
  });
  if (failure) {
    return *failure;
  }
  return refreshed;
}

}  // namespace fleuve::session
