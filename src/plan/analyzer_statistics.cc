#include <algorithm>
#include <charconv>
#include <limits>
#include <set>

#include "columnar/ipc.h"
#include "plan/analyzer_internal.h"
#include "plan/proto_types.h"

namespace fleuve::plan {

using types::DataType;
using types::TypeKind;

Result<PlanPtr> Analyzer::Describe(const PlanPtr& input, std::vector<std::string> columns,
                                   std::vector<std::string> statistics, bool all_columns) {
  if (statistics.empty()) {
    statistics = {"count", "mean", "stddev", "min", "25%", "50%", "75%", "max"};
  }
  std::vector<std::optional<double>> fractions;
  for (const std::string& statistic : statistics) {
    static const std::set<std::string> kKnown = {
        "count", "count_distinct", "approx_count_distinct", "mean", "stddev", "min", "max"};
    fractions.emplace_back();
    if (statistic.ends_with("%")) {
      double percent = 0;
      const char* end = statistic.data() + statistic.size() - 1;
      const auto parsed = std::from_chars(statistic.data(), end, percent);
      if (parsed.ec != std::errc() || parsed.ptr != end || percent < 0 || percent > 100) {
        return Error(ErrorKind::kInvalidArgument, "UNRECOGNIZED_STATISTIC",
                     "Unable to parse " + statistic + " as a percentile.")
            .Family(ErrorFamily::kIllegalArgument)
            .With("stats", statistic);
      }
      fractions.back() = percent / 100;
    } else if (!kKnown.contains(statistic)) {
      return Error(ErrorKind::kInvalidArgument, "UNRECOGNIZED_STATISTIC",
                   "The statistic " + statistic +
                       " is not recognized. Valid statistics include `count`, `count_distinct`, "
                       "`approx_count_distinct`, `mean`, `stddev`, `min`, `max`, and percentile values.")
          .Family(ErrorFamily::kIllegalArgument)
          .With("stats", statistic);
    }
  }
  std::vector<Attribute> described;
  if (all_columns) {
    for (const Attribute& attribute : input->output) {
      if (!attribute.hidden) {
        described.push_back(attribute);
      }
    }
  } else {
    google::protobuf::RepeatedPtrField<std::string> names;
    for (const std::string& name : columns) {
      *names.Add() = name;
    }
    FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, names));
    for (const std::size_t i : positions) {
      described.push_back(input->output[i]);
    }
  }
  std::erase_if(described,
                [](const Attribute& attribute) { return !attribute.type.IsNumeric() && !attribute.type.IsString(); });
  std::vector<SelectItem> items;
  for (std::size_t s = 0; s < statistics.size(); ++s) {
    for (const Attribute& attribute : described) {
      const ExprPtr column = AttributeExpr(attribute);
      ExprPtr number = column;
      if (attribute.type.IsString()) {
        FLEUVE_ASSIGN(number, MakeCast(column, DataType::Double(), CastMode::kTry, config_));
      }
      ExprPtr value;
      if (fractions[s]) {
        FLEUVE_ASSIGN(
            value, Call("percentile_approx", {number, MakeLiteral(types::Value(*fractions[s]), DataType::Double())}));
      } else if (statistics[s] == "count_distinct") {
        FunctionCall call;
        call.name = "count";
        call.arguments = {column};
        call.argument_names.resize(1);
        call.distinct = true;
        call.config = &config_;
        FLEUVE_ASSIGN(value, BuildFunction(call));
      } else if (statistics[s] == "mean" || statistics[s] == "stddev") {
        FLEUVE_ASSIGN(value, Call(statistics[s] == "mean" ? "avg" : "stddev", {number}));
      } else {
        FLEUVE_ASSIGN(value, Call(statistics[s], {column}));
      }
      SelectItem item;
      FLEUVE_ASSIGN(item.expr, MakeCast(value, DataType::String(), config_));
      item.name = attribute.name;
      item.is_alias = true;
      items.push_back(std::move(item));
    }
  }
  FLEUVE_ASSIGN(PlanPtr aggregated, MakeAggregate(input, AggregateParts(), std::move(items)));
  const std::vector<Attribute> cells = WithoutHidden(aggregated)->output;
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kExpand;
  plan->is_streaming = input->is_streaming;
  const auto add = [&plan](const std::string& name) {
    Attribute attribute;
    attribute.id = NewAttributeId();
    attribute.name = name;
    attribute.type = DataType::String();
    plan->output.push_back(std::move(attribute));
  };
  add("summary");
  for (const Attribute& attribute : described) {
    add(attribute.name);
  }
  for (std::size_t s = 0; s < statistics.size(); ++s) {
    std::vector<ExprPtr> row;
    row.push_back(MakeLiteral(types::Value(statistics[s]), DataType::String()));
    for (std::size_t c = 0; c < described.size(); ++c) {
      row.push_back(AttributeExpr(cells[s * described.size() + c]));
    }
    plan->projections.push_back(std::move(row));
  }
  plan->children.push_back(std::move(aggregated));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::Covariance(const PlanPtr& input, const std::string& a, const std::string& b,
                                     bool correlation) {
  google::protobuf::RepeatedPtrField<std::string> names;
  *names.Add() = a;
  *names.Add() = b;
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, names));
  std::vector<ExprPtr> columns;
  for (const std::size_t i : positions) {
    const Attribute& attribute = input->output[i];
    if (!attribute.type.IsNumeric()) {
      return Error(ErrorKind::kInvalidArgument, "",
                   std::string("requirement failed: Currently ") + (correlation ? "correlation" : "covariance") +
                       " calculation for columns with dataType " + attribute.type.SimpleString() + " not supported.")
          .Family(ErrorFamily::kIllegalArgument);
    }
    FLEUVE_ASSIGN(ExprPtr column, MakeCast(AttributeExpr(attribute), DataType::Double(), config_));
    // Unlike the SQL functions: NULL counts as 0, and fewer than two rows give a number too.
    FLEUVE_ASSIGN(column, Call("coalesce", {column, MakeLiteral(types::Value(0.0), DataType::Double())}));
    columns.push_back(std::move(column));
  }
  SelectItem item;
  FLEUVE_ASSIGN(item.expr, Call(correlation ? "corr" : "covar_samp", std::move(columns)));
  const double nothing = correlation ? std::numeric_limits<double>::quiet_NaN() : 0.0;
  FLEUVE_ASSIGN(item.expr, Call("coalesce", {item.expr, MakeLiteral(types::Value(nothing), DataType::Double())}));
  item.name = correlation ? "corr" : "cov";
  item.is_alias = true;
  std::vector<SelectItem> items;
  items.push_back(std::move(item));
  return MakeAggregate(input, AggregateParts(), std::move(items));
}

Result<PlanPtr> Analyzer::ApproxQuantile(const sc::StatApproxQuantile& quantile) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(quantile.input()));
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, quantile.cols()));
  if (quantile.relative_error() < 0) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                 "requirement failed: Relative Error must be non-negative but got " +
                     std::to_string(quantile.relative_error()))
        .Family(ErrorFamily::kIllegalArgument);
  }
  std::vector<ExprPtr> probabilities;
  for (const double probability : quantile.probabilities()) {
    probabilities.push_back(MakeLiteral(types::Value(probability), DataType::Double()));
  }
  types::Value::List values;
  for (const double probability : quantile.probabilities()) {
    values.push_back(types::Value(probability));
  }
  const ExprPtr wanted = MakeLiteral(types::Value(std::move(values)), DataType::Array(DataType::Double(), false));
  const int accuracy = quantile.relative_error() <= 1e-6 ? 1000000 : static_cast<int>(1 / quantile.relative_error());
  std::vector<ExprPtr> results;
  for (const std::size_t i : positions) {
    FLEUVE_ASSIGN(ExprPtr column, MakeCast(AttributeExpr(input->output[i]), DataType::Double(), config_));
    FLEUVE_ASSIGN(column, Call("nanvl", {column, MakeNull(DataType::Double())}));
    FLEUVE_ASSIGN(
        ExprPtr value,
        Call("percentile_approx", {column, wanted, MakeLiteral(types::Value(std::max(accuracy, 1)), DataType::Int())}));
    const ExprPtr none = MakeLiteral(types::Value(types::Value::List()), DataType::Array(DataType::Double(), false));
    FLEUVE_ASSIGN(value, Call("coalesce", {value, none}));
    results.push_back(std::move(value));
  }
  SelectItem item;
  FLEUVE_ASSIGN(item.expr, Call("array", std::move(results)));
  item.name = "approx_quantile";
  item.is_alias = true;
  std::vector<SelectItem> items;
  items.push_back(std::move(item));
  return MakeAggregate(std::move(input), AggregateParts(), std::move(items));
}

Result<PlanPtr> Analyzer::SampleBy(const sc::StatSampleBy& sample) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(sample.input()));
  const Scope scope = ScopeOf(input);
  FLEUVE_ASSIGN(ExprPtr column, Expression(sample.col(), scope));
  std::vector<ExprPtr> branches;
  for (const auto& fraction : sample.fractions()) {
    if (fraction.fraction() < 0 || fraction.fraction() > 1) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                   "requirement failed: Fractions must be in [0, 1].")
          .Family(ErrorFamily::kIllegalArgument);
    }
    FLEUVE_ASSIGN(ExprPtr stratum, LiteralFromProto(fraction.stratum()));
    FLEUVE_ASSIGN(ExprPtr equal, Call("<=>", {column, stratum}));
    branches.push_back(std::move(equal));
    branches.push_back(MakeLiteral(types::Value(fraction.fraction()), DataType::Double()));
  }
  ExprPtr limit = MakeLiteral(types::Value(0.0), DataType::Double());
  if (!branches.empty()) {
    branches.push_back(limit);
    limit = MakeCase(std::move(branches), true, DataType::Double());
  }
  std::vector<ExprPtr> seed;
  if (sample.has_seed()) {
    seed.push_back(MakeLiteral(types::Value(static_cast<std::int64_t>(sample.seed())), DataType::Long()));
  }
  FLEUVE_ASSIGN(ExprPtr random, Call("rand", std::move(seed)));
  FLEUVE_ASSIGN(ExprPtr condition, Call("<", {random, limit}));
  return MakeFilter(std::move(input), std::move(condition));
}

Result<PlanPtr> Analyzer::Crosstab(const sc::StatCrosstab& crosstab) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(crosstab.input()));
  if (input->is_streaming) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3063",
                 "pivot is not supported on a streaming DataFrames/Datasets")
        .Family(ErrorFamily::kAnalysis);
  }
  google::protobuf::RepeatedPtrField<std::string> names;
  *names.Add() = crosstab.col1();
  *names.Add() = crosstab.col2();
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, names));
  std::vector<ExprPtr> texts;
  for (const std::size_t i : positions) {
    FLEUVE_ASSIGN(ExprPtr text, MakeCast(AttributeExpr(input->output[i]), DataType::String(), config_));
    FLEUVE_ASSIGN(text, Call("coalesce", {text, MakeLiteral(types::Value("null"), DataType::String())}));
    texts.push_back(std::move(text));
  }
  const std::int64_t limit = 10000;
  FLEUVE_ASSIGN(std::vector<types::Value> found, DistinctValues(input, texts[1], limit));
  if (found.size() > static_cast<std::size_t>(limit)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                 "The number of distinct values for " + crosstab.col2() + " can't exceed 10000.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  std::vector<PivotColumn> values;
  for (const types::Value& value : found) {
    values.push_back({MakeLiteral(value, DataType::String()), value.text()});
  }
  SelectItem key;
  key.expr = texts[0];
  key.name = crosstab.col1() + "_" + crosstab.col2();
  key.is_alias = true;
  SelectItem count;
  FLEUVE_ASSIGN(count.expr, Call("count", {MakeLiteral(types::Value(1), DataType::Int())}));
  count.name = "count";
  count.is_alias = true;
  std::vector<SelectItem> keys;
  keys.push_back(std::move(key));
  std::vector<SelectItem> counts;
  counts.push_back(std::move(count));
  FLEUVE_ASSIGN(PlanPtr pivoted, MakePivot(input, std::move(keys), texts[1], values, counts));
  std::vector<SelectItem> items;
  for (std::size_t i = 0; i < pivoted->output.size(); ++i) {
    SelectItem item;
    item.expr = AttributeExpr(pivoted->output[i]);
    item.name = pivoted->output[i].name;
    item.is_alias = true;
    if (i > 0) {
      FLEUVE_ASSIGN(item.expr, Call("coalesce", {item.expr, MakeLiteral(types::Value(0), DataType::Long())}));
    }
    items.push_back(std::move(item));
  }
  return MakeSelect(std::move(pivoted), std::move(items));
}

Result<PlanPtr> Analyzer::Transpose(const sc::Transpose& transpose) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(transpose.input()));
  input = WithoutHidden(input);
  if (input->is_streaming) {
    return Error::Unsupported("transpose on a stream");
  }
  ExprPtr index;
  if (transpose.index_columns_size() > 1) {
    return Error(ErrorKind::kInvalidArgument, "TRANSPOSE_INVALID_INDEX_COLUMN",
                 "Invalid index column for TRANSPOSE because: Only one index column is allowed.");
  }
  if (transpose.index_columns_size() == 1) {
    const Scope scope = ScopeOf(input);
    FLEUVE_ASSIGN(index, Expression(transpose.index_columns(0), scope));
  } else if (!input->output.empty()) {
    index = AttributeExpr(input->output.front());
  }
  if (index == nullptr) {
    return input;
  }
  if (index->kind != ExprKind::kAttribute || index->type.IsNested()) {
    return Error(ErrorKind::kInvalidArgument, "TRANSPOSE_INVALID_INDEX_COLUMN",
                 "Invalid index column for TRANSPOSE because: Index column must be an atomic attribute.");
  }
  std::vector<Attribute> columns;
  for (const Attribute& attribute : input->output) {
    if (attribute.id != index->attribute.id) {
      columns.push_back(attribute);
    }
  }
  DataType type = columns.empty() ? DataType::String() : columns.front().type;
  for (const Attribute& attribute : columns) {
    const std::optional<DataType> wider = WiderType(type, attribute.type, config_);
    if (!wider || wider->IsString() != type.IsString()) {
      return Error(ErrorKind::kInvalidArgument, "TRANSPOSE_NO_LEAST_COMMON_TYPE",
                   "Transpose requires non-index columns to share a least common type, but " + TypesSql(type) +
                       " and " + TypesSql(attribute.type) + " do not.")
          .With("dt1", TypesSql(type))
          .With("dt2", TypesSql(attribute.type));
    }
    type = *wider;
  }
  std::vector<SelectItem> items;
  const auto add = [&items](ExprPtr expr, const std::string& name) {
    SelectItem item;
    item.expr = std::move(expr);
    item.name = name;
    item.is_alias = true;
    items.push_back(std::move(item));
  };
  FLEUVE_ASSIGN(ExprPtr name, MakeCast(index, DataType::String(), config_));
  add(name, "name");
  for (const Attribute& attribute : columns) {
    FLEUVE_ASSIGN(ExprPtr value, MakeCast(AttributeExpr(attribute), type, config_));
    add(std::move(value), attribute.name);
  }
  auto sort = std::make_shared<LogicalPlan>();
  sort->kind = PlanKind::kSort;
  sort->output = input->output;
  SortKey key;
  key.expr = index;
  sort->order_by.push_back(std::move(key));
  sort->children.push_back(input);
  auto head = std::make_shared<LogicalPlan>();
  head->kind = PlanKind::kLimit;
  head->count = 501;
  head->output = sort->output;
  head->children.push_back(std::move(sort));
  FLEUVE_ASSIGN(PlanPtr query, MakeSelect(std::move(head), std::move(items)));
  FLEUVE_ASSIGN(std::vector<types::Value::List> rows, resolver_.RunQuery(query));
  if (rows.size() > 500) {
    return Error(ErrorKind::kInvalidArgument, "TRANSPOSE_EXCEED_ROW_LIMIT",
                 "Number of rows exceeds the allowed limit of 500 for TRANSPOSE.");
  }
  std::vector<types::StructField> fields{{"key", DataType::String(), false, {}}};
  for (const types::Value::List& row : rows) {
    if (!row.front().is_null()) {
      fields.push_back({row.front().text(), type, true, {}});
    }
  }
  std::vector<types::Value::List> turned;
  for (std::size_t c = 0; c < columns.size(); ++c) {
    types::Value::List line{types::Value(columns[c].name)};
    for (const types::Value::List& row : rows) {
      if (!row.front().is_null()) {
        line.push_back(row[c + 1]);
      }
    }
    turned.push_back(std::move(line));
  }
  const types::Schema schema = DataType::Struct(std::move(fields));
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kRows;
  plan->output = AttributesOf(schema);
  FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(schema, turned));
  auto scan = std::make_shared<RowScan>();
  scan->batches.push_back(std::move(batch));
  plan->rows = std::move(scan);
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::FreqItems(const sc::StatFreqItems& items) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(items.input()));
  if (input->is_streaming) {
    return Error(
               ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3102",
               "Queries with streaming sources must be executed with writeStream.start(), or from a streaming table or "
               "flow definition within a Spark Declarative Pipeline.;")
        .Family(ErrorFamily::kAnalysis);
  }
  const double support = items.has_support() ? items.support() : 0.01;
  if (!(support >= 1e-4 && support <= 1)) {
    return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                 "requirement failed: Support must be in [1e-4, 1], but got " + JavaDoubleToString(support) + ".")
        .Family(ErrorFamily::kIllegalArgument);
  }
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, items.cols()));
  const std::size_t room = static_cast<std::size_t>(1 / support);
  std::vector<types::StructField> fields;
  types::Value::List result;
  for (const std::size_t i : positions) {
    const Attribute& attribute = input->output[i];
    FLEUVE_ASSIGN(std::vector<types::Value::List> rows, resolver_.RunQuery(Restore(input, {attribute})));
    // Karp, Papadimitriou and Shenker: counters of which every one is lowered when a new value finds no room.
    std::vector<std::pair<types::Value, std::int64_t>> counters;
    for (types::Value::List& row : rows) {
      const auto known = std::find_if(counters.begin(), counters.end(),
                                      [&row](const auto& entry) { return entry.first == row.front(); });
      if (known != counters.end()) {
        ++known->second;
        continue;
      }
      if (counters.size() < room) {
        counters.emplace_back(std::move(row.front()), 1);
        continue;
      }
      std::int64_t least = counters.front().second;
      for (const auto& entry : counters) {
        least = std::min(least, entry.second);
      }
      const std::int64_t remaining = 1 - least;
      if (remaining >= 0) {
        std::erase_if(counters, [least](const auto& entry) { return entry.second <= least; });
        for (auto& entry : counters) {
          entry.second -= least;
        }
        if (remaining > 0) {
          counters.emplace_back(std::move(row.front()), remaining);
        }
      } else {
        for (auto& entry : counters) {
          --entry.second;
        }
      }
    }
    types::Value::List found;
    for (auto& entry : counters) {
      found.push_back(std::move(entry.first));
    }
    fields.push_back({attribute.name + "_freqItems", DataType::Array(attribute.type), true, {}});
    result.push_back(types::Value(std::move(found)));
  }
  const types::Schema schema = DataType::Struct(std::move(fields));
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kRows;
  plan->output = AttributesOf(schema);
  FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(schema, {result}));
  auto scan = std::make_shared<RowScan>();
  scan->batches.push_back(std::move(batch));
  plan->rows = std::move(scan);
  return PlanPtr(std::move(plan));
}

}  // namespace fleuve::plan
