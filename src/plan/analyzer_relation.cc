#include <proto/unpack.h>
#include <spark/connect/base.pb.h>

#include <algorithm>
#include <charconv>
#include <random>

#include "columnar/ipc.h"
#include "plan/analyzer_internal.h"
#include "plan/coercion.h"
#include "plan/duration_text.h"
#include "plan/event_time.h"
#include "plan/function_builder.h"
#include "plan/recursive_table.h"
#include "sql/parser.h"
#include "types/parts.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

constexpr int kMaxDepth = 10000;

std::shared_ptr<LogicalPlan> Over(PlanKind kind, PlanPtr input) {
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = kind;
  plan->is_streaming = input->is_streaming;
  plan->output = input->output;
  plan->children.push_back(std::move(input));
  return plan;
}

Error LimitError(const char* subclass, const char* name, const std::string& text, const std::string& why) {
  return Error(ErrorKind::kInvalidArgument, std::string("INVALID_LIMIT_LIKE_EXPRESSION.") + subclass,
               "The limit like expression \"" + text + "\" is invalid. " + why)
      .With("name", name)
      .With("expr", "\"" + text + "\"");
}

}  // namespace

Result<PlanPtr> Analyzer::Relation(const sc::Relation& relation) {
  if (++depth_ > kMaxDepth) {
    --depth_;
    return Error::Unsupported("a plan of more than " + std::to_string(kMaxDepth) + " levels");
  }
  std::optional<std::string> outer_text;
  if (relation.has_common() && relation.common().origin().has_jvm_origin() &&
      relation.common().origin().jvm_origin().has_sql_text()) {
    outer_text = std::exchange(sql_text_, relation.common().origin().jvm_origin().sql_text());
  }
  Result<PlanPtr> plan = RelationBody(relation);
  if (outer_text) {
    sql_text_ = *std::move(outer_text);
  }
  --depth_;
  if (plan.ok() && relation.has_common() && relation.common().has_plan_id()) {
    Remember(relation.common().plan_id(), *plan);
  }
  return plan;
}

Result<PlanPtr> Analyzer::RelationBody(const sc::Relation& relation) {
  switch (relation.rel_type_case()) {
    case sc::Relation::kRead: {
      // One streaming DataFrame used twice is one source (a union with itself, say).
      const auto known =
          relation.common().has_plan_id() ? plans_by_id_.find(relation.common().plan_id()) : plans_by_id_.end();
      if (relation.read().is_streaming() && known != plans_by_id_.end()) {
        return FreshInstance(known->second.front().plan);
      }
      return Read(relation.read());
    }
    case sc::Relation::kProject:
      return Project(relation.project());
    case sc::Relation::kFilter: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.filter().input()));
      return Filter(input, relation.filter().condition(), false);
    }
    case sc::Relation::kJoin:
      return Join(relation.join(), false);
    case sc::Relation::kLateralJoin:
      return LateralJoin(relation.lateral_join());
    case sc::Relation::kSetOp:
      return SetOperation(relation.set_op());
    case sc::Relation::kSort:
      return Sort(relation.sort());
    case sc::Relation::kLimit: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.limit().input()));
      return Limit(input, PlanKind::kLimit, relation.limit().limit());
    }
    case sc::Relation::kOffset: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.offset().input()));
      return Limit(input, PlanKind::kOffset, relation.offset().offset());
    }
    case sc::Relation::kTail: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.tail().input()));
      return Limit(input, PlanKind::kTail, relation.tail().limit());
    }
    case sc::Relation::kAggregate:
      return Aggregate(relation.aggregate());
    case sc::Relation::kSql:
      return Sql(relation.sql());
    case sc::Relation::kLocalRelation:
      return LocalRelation(relation.local_relation());
    case sc::Relation::kCachedLocalRelation: {
      FLEUVE_ASSIGN(std::string bytes, resolver_.CachedArtifact(relation.cached_local_relation().hash()));
      sc::LocalRelation local;
      if (!local.ParseFromString(bytes)) {
        return Error(ErrorKind::kCorrupt, "INTERNAL_ERROR", "a cached local relation cannot be read");
      }
      return LocalRelation(local);
    }
    case sc::Relation::kChunkedCachedLocalRelation:
      return ChunkedLocalRelation(relation.chunked_cached_local_relation());
    case sc::Relation::kCachedRemoteRelation: {
      FLEUVE_ASSIGN(PlanPtr plan, resolver_.ResolveCachedRelation(relation.cached_remote_relation().relation_id()));
      return FreshInstance(plan);
    }
    case sc::Relation::kSample:
      return Sample(relation.sample());
    case sc::Relation::kDeduplicate:
      return Deduplicate(relation.deduplicate());
    case sc::Relation::kRange: {
      const sc::Range& range = relation.range();
      return Range(range.has_start() ? range.start() : 0, range.end(), range.step(),
                   range.has_num_partitions() ? range.num_partitions() : 0);
    }
    case sc::Relation::kSubqueryAlias: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.subquery_alias().input()));
      const auto& qualifier = relation.subquery_alias().qualifier();
      return SubqueryAlias(std::move(input), relation.subquery_alias().alias(),
                           std::vector<std::string>(qualifier.begin(), qualifier.end()));
    }
    case sc::Relation::kToDf:
      return ToDf(relation.to_df());
    case sc::Relation::kWithColumnsRenamed:
      return WithColumnsRenamed(relation.with_columns_renamed());
    case sc::Relation::kWithColumns:
      return WithColumns(relation.with_columns());
    case sc::Relation::kDrop:
      return Drop(relation.drop());
    case sc::Relation::kToSchema:
      return ToSchema(relation.to_schema());
    case sc::Relation::kHint:
      return Hint(relation.hint());
    case sc::Relation::kUnpivot:
      return Unpivot(relation.unpivot());
    case sc::Relation::kRepartition: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.repartition().input()));
      if (relation.repartition().num_partitions() <= 0) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                     "Number of partitions (" + std::to_string(relation.repartition().num_partitions()) +
                         ") must be positive.")
            .Family(ErrorFamily::kIllegalArgument);
      }
      auto plan = Over(PlanKind::kRepartition, std::move(input));
      plan->shuffle = !relation.repartition().has_shuffle() || relation.repartition().shuffle();
      plan->count = relation.repartition().num_partitions();
      return PlanPtr(std::move(plan));
    }
    case sc::Relation::kRepartitionByExpression:
      return RepartitionByExpression(relation.repartition_by_expression());
    case sc::Relation::kCollectMetrics:
      return Metrics(relation.collect_metrics());
    case sc::Relation::kWithWatermark:
      return Watermark(relation.with_watermark());
    case sc::Relation::kParse:
      return Parse(relation.parse());
    case sc::Relation::kFillNa:
      return FillNa(relation.fill_na());
    case sc::Relation::kDropNa:
      return DropNa(relation.drop_na());
    case sc::Relation::kReplace:
      return Replace(relation.replace());
    case sc::Relation::kSummary: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.summary().input()));
      const auto& statistics = relation.summary().statistics();
      return Describe(input, {}, std::vector<std::string>(statistics.begin(), statistics.end()), true);
    }
    case sc::Relation::kDescribe: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.describe().input()));
      const auto& columns = relation.describe().cols();
      return Describe(input, std::vector<std::string>(columns.begin(), columns.end()),
                      {"count", "mean", "stddev", "min", "max"}, columns.empty());
    }
    case sc::Relation::kCov: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.cov().input()));
      return Covariance(input, relation.cov().col1(), relation.cov().col2(), false);
    }
    case sc::Relation::kCorr: {
      if (relation.corr().has_method() && relation.corr().method() != "pearson") {
        return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                     "Currently only the calculation of the Pearson Correlation coefficient is supported.")
            .Family(ErrorFamily::kIllegalArgument);
      }
      FLEUVE_ASSIGN(PlanPtr input, Relation(relation.corr().input()));
      return Covariance(input, relation.corr().col1(), relation.corr().col2(), true);
    }
    case sc::Relation::kApproxQuantile:
      return ApproxQuantile(relation.approx_quantile());
    case sc::Relation::kSampleBy:
      return SampleBy(relation.sample_by());
    case sc::Relation::kUnresolvedTableValuedFunction:
      return TableFunction(relation.unresolved_table_valued_function().function_name(),
                           relation.unresolved_table_valued_function().arguments());
    case sc::Relation::kWithRelations:
      return WithRelations(relation.with_relations());
    case sc::Relation::kExtension:
      return ExtensionRelation(relation);
    case sc::Relation::kCrosstab:
      return Crosstab(relation.crosstab());
    case sc::Relation::kFreqItems:
      return FreqItems(relation.freq_items());
    case sc::Relation::kTranspose:
      return Transpose(relation.transpose());
    case sc::Relation::kAsOfJoin:
      return Error::Unsupported("as-of joins");
    case sc::Relation::kNearestByJoin:
      return Error::Unsupported("nearest-by joins");
    case sc::Relation::kRelationChanges:
      return Error::Unsupported("the relation of DataFrameReader.changes");
    case sc::Relation::kMapPartitions:
      return MapPartitions(relation.map_partitions());
    case sc::Relation::kGroupMap:
      return GroupMap(relation.group_map());
    case sc::Relation::kCoGroupMap:
      return CoGroupMap(relation.co_group_map());
    case sc::Relation::kApplyInPandasWithState:
      return ApplyWithState(relation.apply_in_pandas_with_state());
    case sc::Relation::kCommonInlineUserDefinedTableFunction:
      return ExternalTable(relation.common_inline_user_defined_table_function());
    case sc::Relation::kCommonInlineUserDefinedDataSource:
      return Error::Unsupported("Python data sources");
    case sc::Relation::kMlRelation:
      return Error::Unsupported("machine learning relations");
    case sc::Relation::kShowString:
    case sc::Relation::kHtmlString:
    case sc::Relation::kCatalog:
      return Error::Unsupported("a relation of this kind inside another plan");
    case sc::Relation::kUnknown:
    case sc::Relation::REL_TYPE_NOT_SET:
      break;
  }
  return Error::Unsupported("a relation without a known type");
}

Result<PlanPtr> Analyzer::ExtensionRelation(const sc::Relation& relation) {
  auto extension = fleuve::pb::Unpack<fleuve::pb::RelationExtension>(relation.extension());
  if (!extension) {
    FLEUVE_ASSIGN(std::optional<PlanPtr> known, resolver_.ResolveExtension(relation.extension()));
    if (known) {
      return *std::move(known);
    }
    return Error::Unsupported("the extension relation " + relation.extension().type_url());
  }
  switch (extension->kind_case()) {
    case fleuve::pb::RelationExtension::kAggregate:
      return SqlAggregate(extension->aggregate());
    case fleuve::pb::RelationExtension::kHaving:
      return Having(extension->having());
    case fleuve::pb::RelationExtension::kNaturalJoin:
      return Join(extension->natural_join().join(), true);
    case fleuve::pb::RelationExtension::kLateralView:
      return LateralView(extension->lateral_view());
    case fleuve::pb::RelationExtension::kWith:
      return WithTables(extension->with());
    case fleuve::pb::RelationExtension::kInlineTable:
      return InlineTable(extension->inline_table());
    case fleuve::pb::RelationExtension::kTimeTravel:
      return TimeTravel(extension->time_travel());
    case fleuve::pb::RelationExtension::kStreamOf:
      if (extension->stream_of().input().has_unresolved_table_valued_function()) {
        const auto& function = extension->stream_of().input().unresolved_table_valued_function();
        return TableFunction(function.function_name(), function.arguments(), true);
      }
      return Error::Unsupported("STREAM over something else than a table or a table function");
    case fleuve::pb::RelationExtension::kPivot:
      return SqlPivot(extension->pivot());
    case fleuve::pb::RelationExtension::kUnpivot:
      return SqlUnpivot(extension->unpivot());
    case fleuve::pb::RelationExtension::kLimit:
      return LimitByExpression(extension->limit());
    case fleuve::pb::RelationExtension::kPipe:
      return Pipe(extension->pipe());
    case fleuve::pb::RelationExtension::kDistinct: {
      FLEUVE_ASSIGN(PlanPtr input, Relation(extension->distinct().input()));
      return DistinctRows(std::move(input));
    }
    case fleuve::pb::RelationExtension::kWatermark:
      return WatermarkBy(extension->watermark());
    case fleuve::pb::RelationExtension::kDynamicTable: {
      FLEUVE_ASSIGN(ExprPtr name, Expression(extension->dynamic_table().name(), Scope()));
      const std::optional<std::string> text = ConstantText(name);
      if (!text) {
        return Error(ErrorKind::kInvalidArgument, "NOT_A_CONSTANT_STRING.NOT_CONSTANT",
                     "The expression " + name->display +
                         " used for the routine or clause IDENTIFIER must be a constant STRING which is NOT NULL.");
      }
      FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(*text));
      return NamedTable(parts, {}, false);
    }
    case fleuve::pb::RelationExtension::KIND_NOT_SET:
      break;
  }
  return Error::Unsupported("an extension relation of an unknown kind");
}

Result<PlanPtr> Analyzer::SubqueryAlias(PlanPtr input, const std::string& alias,
                                        const std::vector<std::string>& qualifier) {
  std::vector<std::string> parts = qualifier;
  parts.push_back(alias);
  std::vector<Attribute> output = input->output;
  std::vector<ExprPtr> exprs;
  for (Attribute& attribute : output) {
    exprs.push_back(AttributeExpr(attribute));
    attribute.qualifier = parts;
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kProject;
  plan->is_streaming = input->is_streaming;
  plan->exprs = std::move(exprs);
  plan->output = std::move(output);
  // A named projection: names below it are out of sight.
  plan->name = alias;
  plan->children.push_back(std::move(input));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::Range(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t parts) {
  if (step == 0) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE", "requirement failed: step (0) cannot be 0")
        .Family(ErrorFamily::kIllegalArgument);
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kRange;
  plan->range = {start, end, step};
  plan->count = parts;
  Attribute id;
  id.id = NewAttributeId();
  id.name = "id";
  id.type = DataType::Long();
  id.nullable = false;
  plan->output.push_back(std::move(id));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::Limit(const PlanPtr& input, PlanKind kind, std::int64_t count) {
  if (count < 0) {
    return LimitError("IS_NEGATIVE", kind == PlanKind::kOffset ? "offset" : "limit", std::to_string(count),
                      "The evaluated value must be equal to or greater than 0.");
  }
  auto plan = Over(kind, input);
  plan->count = count;
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::LimitByExpression(const fleuve::pb::LimitExpression& limit) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(limit.input()));
  const char* name = limit.is_offset() ? "offset" : "limit";
  Result<ExprPtr> analyzed = Expression(limit.count(), Scope());
  if (!analyzed.ok()) {
    if (IsUnresolvedColumn(analyzed.error())) {
      const Scope scope = ScopeOf(input);
      FLEUVE_ASSIGN(ExprPtr column, Expression(limit.count(), scope));
      return LimitError("IS_UNFOLDABLE", name, column->display, "All expressions must be foldable.");
    }
    return std::move(analyzed).error();
  }
  ExprPtr count = *std::move(analyzed);
  if (!count->type.IsIntegral() || count->type.Is(TypeKind::kLong)) {
    if (count->type.Is(TypeKind::kVoid)) {
      return LimitError("IS_NULL", name, count->display, "The evaluated value must not be null.");
    }
    return LimitError("DATA_TYPE", name, count->display,
                      "The expression must be integer type, but got " + TypesSql(count->type) + ".");
  }
  FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(count));
  if (!value) {
    return LimitError("IS_UNFOLDABLE", name, count->display, "All expressions must be foldable.");
  }
  if (value->is_null()) {
    return LimitError("IS_NULL", name, count->display, "The evaluated value must not be null.");
  }
  return Limit(input, limit.is_offset() ? PlanKind::kOffset : PlanKind::kLimit, value->integer());
}

Result<PlanPtr> Analyzer::Sample(const sc::Sample& sample) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(sample.input()));
  if (sample.deterministic_order()) {
    auto sort = Over(PlanKind::kSort, input);
    for (const Attribute& attribute : input->output) {
      if (!attribute.hidden && types::IsOrderable(attribute.type)) {
        SortKey key;
        key.expr = AttributeExpr(attribute);
        sort->order_by.push_back(std::move(key));
      }
    }
    input = std::move(sort);
  }
  const double lower = sample.lower_bound();
  const double upper = sample.upper_bound();
  const bool replacement = sample.with_replacement();
  if ((replacement && upper < 0) || (!replacement && (lower < 0 || upper > 1 + 1e-6 || lower > upper))) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                 "requirement failed: Sampling fraction (" + std::to_string(upper - lower) +
                     ") must be on interval [0, " +
                     (replacement ? "infinity) with replacement" : "1] without replacement"))
        .Family(ErrorFamily::kIllegalArgument);
  }
  auto plan = Over(PlanKind::kSample, std::move(input));
  plan->sample.lower = lower;
  plan->sample.upper = upper;
  plan->sample.with_replacement = replacement;
  if (sample.has_seed()) {
    plan->sample.seed = sample.seed();
  } else {
    std::random_device device;
    plan->sample.seed = (static_cast<std::int64_t>(device()) << 31) ^ device();
  }
  return PlanPtr(std::move(plan));
}

namespace {

/// The microseconds of a delay.
Result<std::int64_t> WatermarkDelay(const std::string& text) {
  const auto interval = ParseDurationText(text);
  if (!interval.ok()) {
    return Error(interval.error()).Family(ErrorFamily::kAnalysis);
  }
  // A month counts as 31 days.
  constexpr std::int64_t kDayMicros = 86400000000;
  std::int64_t micros = 0;
  if (__builtin_mul_overflow(interval->months * std::int64_t{31} + interval->days, kDayMicros, &micros) ||
      __builtin_add_overflow(micros, interval->micros, &micros)) {
    return Error(ErrorKind::kInvalidArgument, "", "long overflow").Family(ErrorFamily::kArithmetic);
  }
  if (micros < 0) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "requirement failed: delay threshold (" + text + ") should not be negative.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  return micros;
}

}  // namespace

Result<PlanPtr> Analyzer::Watermark(const sc::WithWatermark& watermark) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(watermark.input()));
  FLEUVE_ASSIGN(const std::int64_t delay_micros, WatermarkDelay(watermark.delay_threshold()));
  FLEUVE_ASSIGN(const std::vector<std::string> parts, SplitIdentifier(watermark.event_time()));
  if (!input->is_streaming) {
    return input;  // the column need not exist
  }
  FLEUVE_ASSIGN(const ExprPtr column, Name(parts, ScopeOf(input)));
  return WatermarkOver(std::move(input), column, parts, delay_micros);
}

Result<PlanPtr> Analyzer::WatermarkBy(const fleuve::pb::WatermarkClause& clause) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(clause.input()));
  FLEUVE_ASSIGN(const auto written, sql::ParseExpression(clause.delay()));
  FLEUVE_ASSIGN(const ExprPtr literal, Expression(*written, Scope()));
  // Errors name it as SQL writes it.
  FLEUVE_ASSIGN(const std::int64_t delay_micros, WatermarkDelay(literal->display));
  if (clause.column().has_unresolved_star()) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_USAGE_OF_STAR_OR_REGEX",
                 "Invalid usage of '*' in a WATERMARK clause.")
        .With("elem", "'*'")
        .With("prettyName", "UnresolvedEventTimeWatermark");
  }
  std::vector<SelectItem> items;
  FLEUVE_TRY(AppendItem(clause.column(), ScopeOf(input), input, items));
  if (items.size() != 1) {
    return Error::Unsupported("several columns in a WATERMARK clause");
  }
  const SelectItem& item = items.front();
  if (item.expr->kind == ExprKind::kAttribute && !item.is_alias) {
    return WatermarkOver(std::move(input), item.expr, {item.name}, delay_micros);
  }
  if (!item.is_alias) {
    return Error(ErrorKind::kInvalidArgument, "REQUIRES_EXPLICIT_NAME_IN_WATERMARK_CLAUSE",
                 "The watermark clause requires an explicit name if an expression is specified, but got " +
                     item.expr->display + ".")
        .With("sqlExpr", item.expr->display);
  }
  const Attribute column = OutputAttribute(item);
  std::vector<ExprPtr> exprs = {item.expr};
  std::vector<Attribute> output = {column};
  for (const Attribute& attribute : input->output) {
    exprs.push_back(AttributeExpr(attribute));
    output.push_back(attribute);
  }
  PlanPtr computed = MakeProject(std::move(input), std::move(exprs), std::move(output));
  return WatermarkOver(std::move(computed), AttributeExpr(column), {item.name}, delay_micros);
}

Result<PlanPtr> Analyzer::WatermarkOver(PlanPtr input, const ExprPtr& column, const std::vector<std::string>& name,
                                        std::int64_t delay_micros) {
  if (!input->is_streaming) {
    return input;
  }
  // A window, or another struct with an `end`.
  bool is_time = column->type.Is(TypeKind::kTimestamp);
  for (std::size_t i = 0; column->type.Is(TypeKind::kStruct) && i < column->type.fields().size(); ++i) {
    const types::StructField& field = column->type.fields()[i];
    if (field.name == "end" && field.type.Is(TypeKind::kTimestamp)) {
      is_time = true;
      if (i != 1 || column->type.fields().size() != 2) {
        return Error::Unsupported("a watermark on a struct that is no window (" + name.back() + ")");
      }
    }
  }
  if (!is_time || column->kind != ExprKind::kAttribute) {
    return Error(ErrorKind::kInvalidArgument, "EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE",
                 "The event time " + QuoteParts(name) + " has the invalid type " + TypesSql(column->type) +
                     ", but expected \"TIMESTAMP\".")
        .With("eventName", QuoteParts(name))
        .With("eventType", TypesSql(column->type));
  }
  auto plan = Over(PlanKind::kWatermark, std::move(input));
  plan->event_time = column->attribute.id;
  plan->delay_micros = delay_micros;
  plan->output = WithWatermark(std::move(plan->output), plan->event_time, delay_micros);
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::Metrics(const sc::CollectMetrics& metrics) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(metrics.input()));
  if (metrics.name().empty()) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_OBSERVED_METRICS.MISSING_NAME",
                 "Invalid observed metrics. The observed metrics should be named.");
  }
  FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(metrics.metrics(), input, false));
  auto plan = Over(PlanKind::kMetrics, input);
  plan->name = metrics.name();
  for (const SelectItem& item : items) {
    if (item.generator || HasWindow(item.expr)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_OBSERVED_METRICS.WINDOW_EXPRESSIONS_UNSUPPORTED",
                   "Invalid observed metrics. Window expressions are not allowed in observed metrics.");
    }
    const bool distinct =
        AnyExpr(item.expr, [](const Expr& node) { return node.kind == ExprKind::kAggregate && node.distinct; });
    if (distinct) {
      return Error(
          ErrorKind::kInvalidArgument, "INVALID_OBSERVED_METRICS.AGGREGATE_EXPRESSION_WITH_DISTINCT_UNSUPPORTED",
          "Invalid observed metrics. Aggregate expressions with DISTINCT are not allowed in observed metrics.");
    }
    // Columns outside of aggregates have no single value.
    const std::function<bool(const ExprPtr&)> bare = [&bare](const ExprPtr& expr) {
      if (expr->kind == ExprKind::kAggregate) {
        return false;
      }
      if (expr->kind == ExprKind::kAttribute) {
        return true;
      }
      const std::vector<ExprPtr> operands = OperandsOf(*expr);
      return std::any_of(operands.begin(), operands.end(), bare);
    };
    if (bare(item.expr)) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_OBSERVED_METRICS.NON_AGGREGATE_FUNC_ARG_IS_ATTRIBUTE",
                   "Invalid observed metrics. Attribute " + item.expr->display +
                       " can only be used as an argument to an aggregate function.");
    }
    plan->exprs.push_back(WithDisplay(item.expr, item.name));
  }
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::WithRelations(const sc::WithRelations& relation) {
  if (relation.root().has_sql()) {
    const std::size_t before = tables_.size();
    std::vector<CommonTable> added;
    for (const sc::Relation& reference : relation.references()) {
      if (!reference.has_subquery_alias()) {
        return Error(ErrorKind::kInvalidArgument, "CONNECT_INVALID_PLAN.SQL_WITH_REFERENCES",
                     "A SQL text refers to a plan that has no name.");
      }
      FLEUVE_ASSIGN(PlanPtr plan, Relation(reference.subquery_alias().input()));
      added.push_back({reference.subquery_alias().alias(), std::move(plan)});
    }
    std::move(added.begin(), added.end(), std::back_inserter(tables_));
    Result<PlanPtr> plan = Relation(relation.root());
    tables_.resize(before);
    return plan;
  }
  const auto before = references_;
  for (const sc::Relation& reference : relation.references()) {
    references_[reference.common().plan_id()] = &reference;
  }
  Result<PlanPtr> plan = Relation(relation.root());
  references_ = before;
  return plan;
}

Result<PlanPtr> Analyzer::WithTables(const fleuve::pb::With& with) {
  const std::size_t before = tables_.size();
  const auto analyze = [&]() -> Result<PlanPtr> {
    for (int i = 0; i < with.tables_size(); ++i) {
      const fleuve::pb::CommonTable& table = with.tables(i);
      for (int j = 0; j < i; ++j) {
        if (EqualNames(with.tables(j).name(), table.name(), config_.case_sensitive)) {
          return Error(ErrorKind::kInvalidArgument, "DUPLICATED_CTE_NAMES",
                       "The CTE definition contains duplicate names: " + QuoteParts({table.name()}) + ".")
              .Family(ErrorFamily::kParse)
              .With("duplicateNames", QuoteParts({table.name()}));
        }
      }
      const std::size_t own = tables_.size();
      if (with.recursive()) {
        // Its own name, without a plan: using it is a recursion.
        tables_.push_back({table.name(), nullptr});
      }
      Result<PlanPtr> plan = Relation(table.relation());
      tables_.resize(own);
      if (!plan.ok() && plan.error().condition() == "INVALID_RECURSIVE_REFERENCE.PLACE") {
        plan = RecursiveTable(table);
      }
      if (!plan.ok()) {
        return std::move(plan).error();
      }
      FLEUVE_ASSIGN(PlanPtr made, Renamed(WithoutHidden(*plan), table));
      tables_.push_back({table.name(), std::move(made)});
    }
    return Relation(with.body());
  };
  Result<PlanPtr> plan = analyze();
  tables_.resize(before);
  return plan;
}

Result<PlanPtr> Analyzer::Renamed(PlanPtr plan, const fleuve::pb::CommonTable& table) {
  if (table.column_names_size() == 0) {
    return plan;
  }
  if (static_cast<std::size_t>(table.column_names_size()) != plan->output.size()) {
    return Error(ErrorKind::kInvalidArgument, "ASSIGNMENT_ARITY_MISMATCH",
                 "The number of columns of the common table " + QuoteParts({table.name()}) +
                     " does not match its list of names.");
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output = plan->output;
  for (std::size_t c = 0; c < output.size(); ++c) {
    exprs.push_back(AttributeExpr(output[c]));
    output[c].name = table.column_names(static_cast<int>(c));
    output[c].id = NewAttributeId();
  }
  return MakeProject(std::move(plan), std::move(exprs), std::move(output));
}

Result<PlanPtr> Analyzer::RecursiveTable(const fleuve::pb::CommonTable& table) {
  const sc::Relation* definition = &table.relation();
  if (definition->has_subquery_alias()) {
    definition = &definition->subquery_alias().input();
  }
  if (!definition->has_set_op() || definition->set_op().set_op_type() != sc::SetOperation::SET_OP_TYPE_UNION) {
    return Error(
        ErrorKind::kInvalidArgument, "INVALID_RECURSIVE_CTE",
        "Invalid recursive definition found. Recursive queries must contain an UNION or an UNION ALL statement "
        "with 2 children.");
  }
  if (definition->set_op().has_is_all() && !definition->set_op().is_all()) {
    return Error(ErrorKind::kInvalidArgument, "UNION_NOT_SUPPORTED_IN_RECURSIVE_CTE",
                 "The UNION operator is not yet supported within recursive common table expressions (WITH clauses that "
                 "refer to themselves, directly or indirectly). Please use UNION ALL instead.");
  }
  if (!outer_scopes_.empty()) {
    return Error::Unsupported("a recursive common table inside a correlated subquery");
  }
  const std::size_t own = tables_.size();
  // Inside a table whose recursion is still to be found, the reference may be to that one: its caller comes again.
  const bool nested =
      std::any_of(tables_.begin(), tables_.end(), [](const CommonTable& known) { return known.plan == nullptr; });
  tables_.push_back({table.name(), nullptr});
  Result<PlanPtr> anchor = Relation(definition->set_op().left_input());
  tables_.resize(own);
  if (!anchor.ok() && anchor.error().condition() == "INVALID_RECURSIVE_REFERENCE.PLACE" && !nested) {
    return Error(
        ErrorKind::kInvalidArgument, "INVALID_RECURSIVE_CTE",
        "Invalid recursive definition found. Recursive queries must contain an UNION or an UNION ALL statement "
        "with 2 children. The first child needs to be the anchor term without any recursive references.");
  }
  if (!anchor.ok()) {
    return std::move(anchor).error();
  }
  PlanPtr first = WithoutHidden(*anchor);
  if (first->is_streaming) {
    return Error::Unsupported("a recursive common table over a stream");
  }
  FLEUVE_ASSIGN(PlanPtr shape, Renamed(first, table));
  std::vector<types::StructField> fields;
  std::vector<DataType> column_types;
  for (const Attribute& attribute : shape->output) {
    fields.push_back({attribute.name, attribute.type.AsNullable(), true, {}});
    column_types.push_back(attribute.type.AsNullable());
  }
  const types::Schema schema = DataType::Struct(std::move(fields));
  const auto limit = [this](const char* key, std::int64_t fallback) {
    const auto text = config_.conf ? config_.conf(key) : std::nullopt;
    std::int64_t number = fallback;
    if (text.has_value()) {
      std::from_chars(text->data(), text->data() + text->size(), number);
    }
    return number;
  };
  RecursiveSource::Parts parts;
  parts.name = table.name();
  parts.schema = schema;
  parts.anchor = std::move(first);
  parts.max_level =
      table.has_max_recursion_level() ? table.max_recursion_level() : limit("spark.sql.cteRecursionLevelLimit", 100);
  parts.max_rows = limit("spark.sql.cteRecursionRowLimit", 1000000);
  parts.last_round = std::make_shared<RowScan>();
  // The step is analyzed once over a leaf that stands for the rows of the round before.
  auto last = std::make_shared<LogicalPlan>();
  last->kind = PlanKind::kRows;
  last->output = AttributesOf(schema);
  last->rows = parts.last_round;
  tables_.push_back({table.name(), std::move(last)});
  Result<PlanPtr> step = Relation(definition->set_op().right_input());
  tables_.resize(own);
  if (!step.ok()) {
    return std::move(step).error();
  }
  parts.step = WithoutHidden(*step);
  if (parts.step->output.size() != column_types.size()) {
    return Error(ErrorKind::kInvalidArgument, "NUM_COLUMNS_MISMATCH",
                 "UNION can only be performed on inputs with the same number of columns.")
        .With("operator", "UNION");
  }
  for (std::size_t i = 0; i < column_types.size(); ++i) {
    const DataType& type = parts.step->output[i].type;
    const auto wider = type.EqualsIgnoringNullability(column_types[i]) ? std::optional<DataType>(column_types[i])
                                                                       : WiderType(column_types[i], type, config_);
    if (!wider || !wider->EqualsIgnoringNullability(column_types[i])) {
      return Error(ErrorKind::kInvalidArgument, "CANNOT_MERGE_INCOMPATIBLE_DATA_TYPE",
                   "Failed to merge incompatible data types " + TypesSql(column_types[i]) + " and " + TypesSql(type) +
                       ". Please check the data types of the columns being merged and ensure that they are compatible.")
          .With("left", TypesSql(column_types[i]))
          .With("right", TypesSql(type));
    }
  }
  FLEUVE_ASSIGN(parts.step, CastColumns(parts.step, column_types));
  FLEUVE_ASSIGN(parts.run, resolver_.QueryRunner());
  auto made = std::make_shared<LogicalPlan>();
  made->kind = PlanKind::kTable;
  made->output = AttributesOf(schema);
  made->table = std::make_shared<RecursiveSource>(std::move(parts));
  // The caller gives the names of the list again.
  return PlanPtr(std::move(made));
}

Result<PlanPtr> Analyzer::Pipe(const fleuve::pb::PipeOperator& pipe) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(pipe.input()));
  if (pipe.kind_case() == fleuve::pb::PipeOperator::kAggregate) {
    FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(pipe.grouping(), input, false));
    AggregateParts parts;
    for (SelectItem& item : items) {
      if (item.expr != nullptr && item.expr->kind == ExprKind::kLiteral && item.expr->type.Is(TypeKind::kInt) &&
          !item.is_alias) {
        const std::int64_t position = item.expr->value.integer();
        std::vector<Attribute> visible = WithoutHidden(input)->output;
        if (position < 1 || position > static_cast<std::int64_t>(visible.size())) {
          return Error(ErrorKind::kInvalidArgument, "GROUP_BY_POS_OUT_OF_RANGE",
                       "GROUP BY position " + std::to_string(position) + " is not in select list.")
              .With("index", std::to_string(position))
              .With("size", std::to_string(visible.size()));
        }
        item.expr = AttributeExpr(visible[static_cast<std::size_t>(position - 1)]);
        item.name = item.expr->attribute.name;
      }
      parts.grouping.push_back(item.expr);
    }
    Scope scope = ScopeOf(input);
    for (const sc::Expression& expression : pipe.expressions()) {
      const std::size_t first = items.size();
      FLEUVE_TRY(AppendItem(expression, scope, input, items));
      for (std::size_t i = first; i < items.size(); ++i) {
        if (items[i].expr != nullptr && !HasAggregate(items[i].expr)) {
          return Error(ErrorKind::kInvalidArgument, "PIPE_OPERATOR_AGGREGATE_EXPRESSION_CONTAINS_NO_AGGREGATE_FUNCTION",
                       "Non-grouping expression " + items[i].expr->display +
                           " is provided as an argument to the |> AGGREGATE pipe operator but does not contain any "
                           "aggregate function; please update it to include an aggregate function.")
              .With("expr", items[i].expr->display);
        }
      }
    }
    return MakeAggregate(std::move(input), parts, std::move(items));
  }
  FLEUVE_ASSIGN(std::vector<SelectItem> items, SelectItems(pipe.expressions(), input, true));
  const char* clause = pipe.kind_case() == fleuve::pb::PipeOperator::kExtend ? "EXTEND"
                       : pipe.kind_case() == fleuve::pb::PipeOperator::kSet  ? "SET"
                                                                             : "SELECT";
  for (const SelectItem& item : items) {
    if (item.expr != nullptr && HasAggregate(item.expr)) {
      return Error(ErrorKind::kInvalidArgument, "PIPE_OPERATOR_CONTAINS_AGGREGATE_FUNCTION",
                   "Aggregate function " + item.expr->display + " is not allowed when using the pipe operator |> " +
                       clause + " clause; please use the pipe operator |> AGGREGATE clause instead.")
          .With("expr", item.expr->display)
          .With("clause", clause);
    }
  }
  switch (pipe.kind_case()) {
    case fleuve::pb::PipeOperator::kSelect:
      return MakeSelect(std::move(input), std::move(items));
    case fleuve::pb::PipeOperator::kExtend: {
      std::vector<SelectItem> all;
      for (const Attribute& attribute : input->output) {
        if (!attribute.hidden) {
          SelectItem item;
          item.expr = AttributeExpr(attribute);
          item.name = attribute.name;
          all.push_back(std::move(item));
        }
      }
      std::move(items.begin(), items.end(), std::back_inserter(all));
      return MakeSelect(std::move(input), std::move(all));
    }
    case fleuve::pb::PipeOperator::kSet: {
      std::vector<SelectItem> all;
      for (const Attribute& attribute : input->output) {
        if (!attribute.hidden) {
          SelectItem item;
          item.expr = AttributeExpr(attribute);
          item.name = attribute.name;
          all.push_back(std::move(item));
        }
      }
      for (int i = 0; i < pipe.names_size(); ++i) {
        FLEUVE_ASSIGN(std::vector<std::string> name, SplitIdentifier(pipe.names(i)));
        bool found = false;
        for (SelectItem& item : all) {
          if (EqualNames(item.name, name.back(), config_.case_sensitive)) {
            item.expr = items.at(static_cast<std::size_t>(i)).expr;
            item.is_alias = true;
            found = true;
          }
        }
        if (!found) {
          return UnresolvedColumn(name, {&input->output});
        }
      }
      return MakeSelect(std::move(input), std::move(all));
    }
    default:
      break;
  }
  return Error::Unsupported("a pipe operator of an unknown kind");
}

}  // namespace fleuve::plan
