#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/analyzer.h"
#include "session/executor_internal.h"
#include "session/statement_internal.h"
#include "session/table_plans_internal.h"
#include "tables/commands.h"

namespace fleuve::session {

using types::DataType;
using types::Value;

namespace {

/// A statement's table: its name, or a path.
template <typename Message>
std::vector<std::string> NameOrPath(const Message& message) {
  return message.has_path() ? std::vector<std::string>{"delta", message.path()} : PartsOf(message.table());
}

/// What a statement says of a path in quotes where no Delta table is.
template <typename Message>
Result<void> CheckTextPath(const Message& message, const std::string& what, SessionState& state) {
  if (!message.has_path()) {
    return {};
  }
  FLEUVE_ASSIGN(const storage::Location location, storage::Resolve(message.path()));
  FLEUVE_ASSIGN(const bool exists, state.services().logs->Open(location)->Exists());
  if (exists) {
    return {};
  }
  return Error(ErrorKind::kUnsupported, "DELTA_TABLE_ONLY_OPERATION",
               message.path() + " is not a Delta table. " + what + " is only for those.")
      .With("tableName", types::QuoteIdentifier(message.path()))
      .With("operation", what);
}

Result<RowsResult> DescribeDatabaseStatement(const pb::DescribeDatabase& describe, SessionState& state) {
  FLEUVE_ASSIGN(const std::string name, DatabaseOf(PartsOf(describe.database())));
  auto found = state.services().catalog->GetDatabase(name);
  if (!found.ok()) {
    return found.error().kind() == ErrorKind::kNotFound ? DatabaseNotFound({name}) : found.error();
  }
  RowsResult result;
  result.schema =
      DataType::Struct({{"info_name", DataType::String(), false, {}}, {"info_value", DataType::String(), false, {}}});
  result.rows = {{Value("Catalog Name"), Value("spark_catalog")},
                 {Value("Namespace Name"), Value(found->name)},
                 {Value("Comment"), Value(found->comment)},
                 {Value("Location"), Value(storage::ToFileUri(found->location))},
                 {Value("Owner"), Value(found->owner)}};
  if (describe.extended()) {
    std::vector<std::string> pairs;
    for (const auto& [key, value] : found->properties) {
      pairs.push_back("(" + key + "," + value + ")");
    }
    result.rows.push_back({Value("Properties"), Value(pairs.empty() ? "" : "(" + Join(pairs, ", ") + ")")});
  }
  return result;
}

}  // namespace

Result<RowsResult> Executor::MaintenanceStatement(const pb::Command& command, SessionResolver& resolver) {
  switch (command.kind_case()) {
    case pb::Command::kDescribeDatabase:
      return DescribeDatabaseStatement(command.describe_database(), state_);
    case pb::Command::kDescribeFunction: {
      const std::string& name = command.describe_function().function();
      if (const auto function = state_.FindFunction(name); function) {
        return RowsResult{DataType::Struct({{"function_desc", DataType::String(), false, {}}}),
                          {{Value("Function: " + function->name)}}};
      }
      return Error(ErrorKind::kNotFound, "UNRESOLVED_ROUTINE",
                   "Cannot resolve routine " + types::QuoteIdentifier(name) +
                       " on search path [`system`.`builtin`, `system`.`session`, `spark_catalog`.`default`].")
          .With("routineName", types::QuoteIdentifier(name));
    }
    case pb::Command::kDescribeDetail: {
      FLEUVE_ASSIGN(const tables::TableRef table,
                    DeltaTarget(NameOrPath(command.describe_detail()), resolver, "DESCRIBE DETAIL"));
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      return tables::DescribeDetail(context, table);
    }
    case pb::Command::kDescribeHistory: {
      const pb::DescribeHistory& history = command.describe_history();
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(NameOrPath(history), resolver, "DESCRIBE HISTORY"));
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      return tables::DescribeHistory(context, table,
                                     history.has_limit() ? std::optional<std::int64_t>(history.limit()) : std::nullopt);
    }
    case pb::Command::kOptimize: {
      const pb::Optimize& optimize = command.optimize();
      FLEUVE_TRY(CheckTextPath(optimize, "OPTIMIZE", state_));
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(NameOrPath(optimize), resolver, "OPTIMIZE"));
      tables::OptimizeSpec spec;
      spec.full = optimize.full();
      if (optimize.has_condition()) {
        spec.where = optimize.condition_sql();
      }
      for (const pb::Name& column : optimize.zorder_by()) {
        spec.zorder_by.push_back(Join(PartsOf(column), "."));
      }
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      return tables::Optimize(context, table, spec);
    }
    case pb::Command::kVacuum: {
      const pb::Vacuum& vacuum = command.vacuum();
      if (vacuum.has_inventory()) {
        return Error::Unsupported("VACUUM ... USING INVENTORY");
      }
      FLEUVE_TRY(CheckTextPath(vacuum, "VACUUM", state_));
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(NameOrPath(vacuum), resolver, "VACUUM"));
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      return tables::Vacuum(context, table,
                            vacuum.has_retain_hours() ? std::optional<double>(vacuum.retain_hours()) : std::nullopt,
                            vacuum.dry_run(), vacuum.lite());
    }
    case pb::Command::kRestore: {
      const pb::Restore& restore = command.restore();
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(NameOrPath(restore), resolver, "RESTORE"));
      delta::TimeTravel when;
      if (restore.has_version()) {
        when.version = std::strtoll(restore.version().c_str(), nullptr, 10);
      } else {
        FLEUVE_ASSIGN(const plan::ExprPtr expr,
                      plan::AnalyzeExpression(restore.timestamp(), RowsLeaf(DataType::Struct({}), {}), resolver));
        FLEUVE_ASSIGN(const Value time, ValueOf(expr));
        std::optional<std::int64_t> micros;
        if (!time.is_null()) {
          if (expr->type.IsString()) {
            micros = types::ParseTimestamp(time.text(), resolver.Config().session_zone);
          } else if (expr->type.Is(types::TypeKind::kTimestamp)) {
            micros = time.integer();
          } else if (expr->type.Is(types::TypeKind::kDate)) {
            micros = types::ParseTimestamp(types::DateToString(time.integer()), resolver.Config().session_zone);
          }
        }
        if (!micros) {
          return Error(ErrorKind::kInvalidArgument, "DELTA_TIMESTAMP_INVALID",
                       "The provided timestamp cannot be converted to a valid timestamp.");
        }
        when.timestamp_ms = *micros / 1000;
      }
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      return tables::Restore(context, table, when);
    }
    case pb::Command::kComment: {
      const pb::Comment& comment = command.comment();
      const std::optional<std::string> text = comment.has_text() ? std::optional(comment.text()) : std::nullopt;
      const std::string object = AsciiUpper(comment.object());
      if (object == "DATABASE" || object == "SCHEMA" || object == "NAMESPACE") {
        FLEUVE_ASSIGN(const std::string name, DatabaseOf(PartsOf(comment.name())));
        auto found = state_.services().catalog->GetDatabase(name);
        if (!found.ok()) {
          return DatabaseNotFound({name});
        }
        found->comment = text.value_or("");
        FLEUVE_TRY(state_.services().catalog->AlterDatabase(*found));
        return Nothing();
      }
      if (object != "TABLE") {
        return Error::Unsupported("COMMENT ON " + object);
      }
      FLEUVE_ASSIGN(const tables::TableRef table, DeltaTarget(PartsOf(comment.name()), resolver, "COMMENT ON TABLE"));
      FLEUVE_ASSIGN(const tables::TableContext context, TablesContext());
      FLEUVE_TRY(tables::SetComment(context, table, text));
      return Nothing();
    }
    case pb::Command::kCacheTable: {
      const pb::CacheTable& cache = command.cache_table();
      const std::vector<std::string> parts = PartsOf(cache.table());
      if (cache.has_query()) {
        FLEUVE_ASSIGN(plan::PlanPtr plan, AnalyzeWith(resolver, cache.query()));
        if (parts.size() != 1 || state_.FindView(parts[0]) != nullptr) {
          return TempViewExists(parts);
        }
        state_.PutView(parts[0], std::move(plan));
      } else {
        FLEUVE_TRY(resolver.ResolveTable(parts, {}, false));
      }
      state_.CacheTable(Join(parts, "."), true);
      return Nothing();
    }
    case pb::Command::kUncacheTable: {
      const std::vector<std::string> parts = PartsOf(command.uncache_table().table());
      auto found = resolver.ResolveTable(parts, {}, false);
      if (!found.ok() && !command.uncache_table().if_exists()) {
        return found.error();
      }
      state_.CacheTable(Join(parts, "."), false);
      return Nothing();
    }
    case pb::Command::kClearCache:
      state_.ClearCache();
      return Nothing();
    case pb::Command::kRefresh: {
      // Every analysis reads tables as they are: there is nothing stale to forget.
      const pb::Refresh& refresh = command.refresh();
      if (refresh.has_table()) {
        FLEUVE_TRY(resolver.ResolveTable(PartsOf(refresh.table()), {}, false));
      }
      return Nothing();
    }
    default:
      break;
  }
  return Error::Internal("a maintenance statement of no kind");
}

}  // namespace fleuve::session
