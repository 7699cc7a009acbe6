#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "columnar/ipc.h"
#include "plan/analyzer_internal.h"
#include "plan/char_padding.h"
#include "plan/event_time.h"
#include "plan/external.h"
#include "plan/row_ids.h"

// Clients of Spark 4.0 still fill the fields that later protocols call deprecated.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

/// A schema as text: Spark's JSON or DDL.
Result<types::Schema> ParseSchemaText(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  DataType type;
  if (first != std::string::npos && (text[first] == '{' || text[first] == '"')) {
    FLEUVE_ASSIGN(Json json, Json::Parse(text));
    FLEUVE_ASSIGN(type, DataType::FromJson(json));
  } else {
    FLEUVE_ASSIGN(type, DataType::FromDdl(text));
  }
  if (type.Is(TypeKind::kVoid)) {
    return DataType::Struct({});
  }
  if (!type.Is(TypeKind::kStruct)) {
    type = DataType::Struct({types::StructField{"value", type, true, {}}});
  }
  return type;
}

Options ToOptions(const google::protobuf::Map<std::string, std::string>& map) {
  return Options(map.begin(), map.end());
}

DataType WithoutLengths(const DataType& type) {
  if (type.Is(TypeKind::kChar) || type.Is(TypeKind::kVarchar)) {
    return DataType::String();
  }
  return type;
}

Attribute MetadataAttribute(const std::vector<std::string>& qualifier, DataType type = MetadataColumnType()) {
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = "_metadata";
  attribute.type = std::move(type);
  attribute.nullable = false;
  attribute.qualifier = qualifier;
  attribute.hidden = true;
  return attribute;
}

/// A literal's value in a wider type, where that needs no run of the engine.
std::optional<types::Value> Widen(const types::Value& value, const DataType& from, const DataType& to) {
  if (value.is_null() || from.EqualsIgnoringNullability(to)) {
    return value;
  }
  if (from.IsIntegral()) {
    if (to.IsIntegral()) {
      return value;
    }
    if (to.Is(TypeKind::kDouble)) {
      return types::Value(static_cast<double>(value.integer()));
    }
    if (to.Is(TypeKind::kDecimal)) {
      types::Int128 unscaled = value.integer();
      for (int i = 0; i < to.scale(); ++i) {
        unscaled *= 10;
      }
      return types::Value(unscaled);
    }
  }
  if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal) && to.scale() >= from.scale()) {
    types::Int128 unscaled = value.decimal();
    for (int i = from.scale(); i < to.scale(); ++i) {
      unscaled *= 10;
    }
    return types::Value(unscaled);
  }
  return std::nullopt;
}

}  // namespace

Result<PlanPtr> Analyzer::Read(const sc::Read& read) {
  switch (read.read_type_case()) {
    case sc::Read::kNamedTable: {
      FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(read.named_table().unparsed_identifier()));
      return NamedTable(parts, ToOptions(read.named_table().options()), read.is_streaming());
    }
    case sc::Read::kDataSource: {
      const sc::Read::DataSource& source = read.data_source();
      std::optional<types::Schema> schema;
      if (source.has_schema() && !source.schema().empty()) {
        FLEUVE_ASSIGN(schema, ParseSchemaText(source.schema()));
      }
      if (source.has_source_name() && !source.source_name().empty()) {
        return Error::Unsupported("named streaming sources");
      }
      FLEUVE_ASSIGN(
          ResolvedTable table,
          resolver_.ResolveDataSource(source.format(), schema, ToOptions(source.options()),
                                      std::vector<std::string>(source.paths().begin(), source.paths().end()),
                                      std::vector<std::string>(source.predicates().begin(), source.predicates().end()),
                                      read.is_streaming()));
      return FromResolved(table);
    }
    default:
      return Error::Unsupported("a read of an unknown kind");
  }
}

Result<PlanPtr> Analyzer::NamedTable(const std::vector<std::string>& parts, const Options& options, bool is_streaming) {
  if (parts.size() == 1 && !is_streaming) {
    for (std::size_t i = tables_.size(); i > 0; --i) {
      const CommonTable& table = tables_[i - 1];
      if (!EqualNames(table.name, parts.front(), config_.case_sensitive)) {
        continue;
      }
      if (table.plan == nullptr) {
        return Error(
            ErrorKind::kInvalidArgument, "INVALID_RECURSIVE_REFERENCE.PLACE",
            "Invalid recursive reference found inside the WITH RECURSIVE clause: recursive references are only "
            "allowed in the second part of a UNION ALL.");
      }
      return SubqueryAlias(FreshInstance(table.plan), table.name, {});
    }
  }
  FLEUVE_ASSIGN(ResolvedTable table, resolver_.ResolveTable(parts, options, is_streaming));
  return FromResolved(table);
}

Result<PlanPtr> Analyzer::FromResolved(const ResolvedTable& table) {
  auto plan = std::make_shared<LogicalPlan>();
  if (table.table != nullptr) {
    plan->kind = PlanKind::kTable;
    plan->table = table.table;
    plan->output = WithoutEventTime(AttributesOf(table.table->schema(), table.qualified_name));
    if (table.table->provider() == "delta") {
      // Columns of no type yet have no values and are not shown.
      for (Attribute& attribute : plan->output) {
        attribute.hidden = attribute.type.Is(TypeKind::kVoid);
      }
    }
    if (table.table->has_file_metadata()) {
      plan->output.push_back(MetadataAttribute(
          table.qualified_name, RowIdsOf(*table.table) != nullptr ? RowIdMetadataType() : MetadataColumnType()));
    }
    return PadCharColumns(plan, config_);
  }
  if (table.stream != nullptr) {
    plan->kind = PlanKind::kStream;
    plan->stream = table.stream;
    plan->is_streaming = true;
    plan->output = WithoutEventTime(AttributesOf(table.stream->schema(), table.qualified_name));
    if (table.stream->has_file_metadata()) {
      plan->output.push_back(MetadataAttribute(table.qualified_name));
    }
    return PadCharColumns(plan, config_);
  }
  PlanPtr view;
  if (table.view_plan != nullptr) {
    view = FreshInstance(table.view_plan);
  } else if (table.view != nullptr) {
    if (++view_depth_ > 100) {
      view_depth_ = 0;
      return Error(ErrorKind::kInvalidArgument, "VIEW_EXCEED_MAX_NESTED_DEPTH",
                   "The depth of the view exceeds the maximum view resolution depth (100).");
    }
    std::vector<const Scope*> outer;
    std::vector<CommonTable> tables;
    std::string text;
    std::swap(outer, outer_scopes_);
    std::swap(tables, tables_);
    std::swap(text, sql_text_);
    Result<PlanPtr> analyzed = Relation(*table.view);
    std::swap(text, sql_text_);
    std::swap(tables, tables_);
    std::swap(outer, outer_scopes_);
    --view_depth_;
    if (!analyzed.ok()) {
      return std::move(analyzed).error();
    }
    view = *std::move(analyzed);
  } else {
    return Error::Internal("a table name was resolved to nothing");
  }
  view = WithoutHidden(view);
  if (table.qualified_name.empty()) {
    return view;
  }
  std::vector<std::string> qualifier = table.qualified_name;
  const std::string alias = qualifier.back();
  qualifier.pop_back();
  return SubqueryAlias(std::move(view), alias, qualifier);
}

Result<PlanPtr> Analyzer::Sql(const sc::SQL& sql) {
  FLEUVE_ASSIGN(auto query, resolver_.ParseSql(sql));
  kept_.push_back(query);
  std::string text = std::exchange(sql_text_, sql.query());
  Result<PlanPtr> plan = Relation(*query);
  sql_text_ = std::move(text);
  return plan;
}

Result<PlanPtr> Analyzer::LocalRelation(const sc::LocalRelation& relation) {
  std::vector<std::string> streams;
  if (relation.has_data() && !relation.data().empty()) {
    streams.push_back(relation.data());
  }
  return LocalRows(std::move(streams), relation.schema());
}

Result<PlanPtr> Analyzer::ChunkedLocalRelation(const sc::ChunkedCachedLocalRelation& relation) {
  std::vector<std::string> streams;
  for (const std::string& hash : relation.datahashes()) {
    FLEUVE_ASSIGN(std::string bytes, resolver_.CachedArtifact(hash));
    streams.push_back(std::move(bytes));
  }
  std::string schema;
  if (relation.has_schemahash()) {
    FLEUVE_ASSIGN(schema, resolver_.CachedArtifact(relation.schemahash()));
  }
  return LocalRows(std::move(streams), schema);
}

Result<PlanPtr> Analyzer::LocalRows(std::vector<std::string> streams, const std::string& schema_text) {
  std::optional<types::Schema> wanted;
  if (!schema_text.empty()) {
    FLEUVE_ASSIGN(wanted, ParseSchemaText(schema_text));
  }
  auto rows = std::make_shared<RowScan>();
  std::optional<types::Schema> found;
  for (const std::string& stream : streams) {
    FLEUVE_ASSIGN(columnar::IpcContent content, columnar::DecodeIpcStream(stream));
    if (!found) {
      found = content.schema;
    } else if (!found->EqualsIgnoringNullability(content.schema)) {
      return Error(ErrorKind::kInvalidArgument, "CONNECT_INVALID_PLAN.FIELD_NOT_FOUND",
                   "The chunks of a local relation differ in their schemas.");
    }
    std::move(content.batches.begin(), content.batches.end(), std::back_inserter(rows->batches));
  }
  if (!found) {
    if (!wanted) {
      return Error(ErrorKind::kInvalidArgument, "CONNECT_INVALID_PLAN.INPUT_DATA_NO_SCHEMA",
                   "Schema for LocalRelation is required when the input data is not provided.");
    }
    found = *wanted;
    std::vector<types::StructField> fields = found->fields();
    for (types::StructField& field : fields) {
      field.type = WithoutLengths(field.type);
    }
    found = DataType::Struct(std::move(fields));
    wanted = found;
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kRows;
  plan->rows = std::move(rows);
  plan->output = AttributesOf(*found);
  if (!wanted) {
    return PlanPtr(std::move(plan));
  }
  if (wanted->fields().size() != found->fields().size()) {
    return Error(ErrorKind::kInvalidArgument, "NUM_COLUMNS_MISMATCH",
                 "The local relation has " + std::to_string(found->fields().size()) + " columns and its schema " +
                     std::to_string(wanted->fields().size()) + ".");
  }
  PlanPtr below;
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  bool casts = false;
  for (std::size_t i = 0; i < plan->output.size(); ++i) {
    const types::StructField& field = wanted->fields()[i];
    const DataType type = WithoutLengths(field.type);
    Attribute& attribute = plan->output[i];
    attribute.name = field.name;
    attribute.metadata = field.metadata;
    if (attribute.type.EqualsIgnoringNullability(type)) {
      attribute.type = type;
      attribute.nullable = field.nullable;
      exprs.push_back(MakeAttribute(attribute));
      output.push_back(attribute);
      continue;
    }
    casts = true;
    FLEUVE_ASSIGN(ExprPtr cast, MakeCast(MakeAttribute(attribute), type, config_));
    exprs.push_back(std::move(cast));
    output.push_back(attribute);
    output.back().id = NewAttributeId();
    output.back().type = type;
    output.back().nullable = field.nullable;
  }
  below = std::move(plan);
  return casts ? MakeProject(std::move(below), std::move(exprs), std::move(output)) : below;
}

Result<PlanPtr> Analyzer::InlineTable(const fleuve::pb::InlineTable& table) {
  std::vector<std::vector<ExprPtr>> rows;
  for (const auto& row : table.rows()) {
    std::vector<ExprPtr> values;
    for (const sc::Expression& expression : row.values()) {
      const sc::Expression* source = expression.has_alias() ? &expression.alias().expr() : &expression;
      Result<ExprPtr> value = Expression(*source, Scope());
      if (!value.ok()) {
        if (IsUnresolvedColumn(value.error())) {
          return Error(ErrorKind::kInvalidArgument, "INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE",
                       "Invalid inline table. Cannot evaluate the expression in inline table definition.");
        }
        return std::move(value).error();
      }
      if (!(*value)->deterministic || HasAggregate(*value) || HasWindow(*value)) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_INLINE_TABLE.CANNOT_EVALUATE_EXPRESSION_IN_INLINE_TABLE",
                     "Invalid inline table. Cannot evaluate the expression " + (*value)->display +
                         " in inline table definition.")
            .With("expr", (*value)->display);
      }
      values.push_back(*std::move(value));
    }
    if (!rows.empty() && rows.front().size() != values.size()) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_INLINE_TABLE.NUM_COLUMNS_MISMATCH",
                   "Invalid inline table. Inline table expected " + std::to_string(rows.front().size()) +
                       " columns but found " + std::to_string(values.size()) + " columns in row " +
                       std::to_string(rows.size()) + ".");
    }
    rows.push_back(std::move(values));
  }
  if (rows.empty()) {
    return Error::Internal("an inline table without rows");
  }
  std::vector<types::StructField> fields;
  bool literals = true;
  for (std::size_t column = 0; column < rows.front().size(); ++column) {
    types::StructField field;
    field.name = "col" + std::to_string(column + 1);
    field.nullable = false;
    std::vector<DataType> all;
    for (const std::vector<ExprPtr>& row : rows) {
      if (all.empty() || !(all.back() == row[column]->type)) {
        all.push_back(row[column]->type);
      }
      field.nullable = field.nullable || row[column]->nullable;
    }
    // Text mixes with nothing else here.
    bool text = false;
    bool other = false;
    for (const DataType& type : all) {
      text = text || type.IsString();
      other = other || (!type.IsString() && !type.Is(TypeKind::kVoid));
    }
    std::optional<DataType> wider = all.front();
    if (text && other) {
      wider.reset();
    } else if (all.size() > 1) {
      wider = WiderType(all, config_);
    }
    if (!wider) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_INLINE_TABLE.INCOMPATIBLE_TYPES_IN_INLINE_TABLE",
                   "Invalid inline table. Found incompatible types in the column " + QuoteParts({field.name}) +
                       " for inline table.")
          .With("colName", QuoteParts({field.name}));
    }
    field.type = *wider;
    for (std::vector<ExprPtr>& row : rows) {
      ExprPtr& value = row[column];
      if (value->kind == ExprKind::kLiteral) {
        if (std::optional<types::Value> widened = Widen(value->value, value->type, field.type)) {
          value = MakeLiteral(*std::move(widened), field.type);
          continue;
        }
      }
      FLEUVE_ASSIGN(value, MakeCast(value, field.type, config_));
      literals = literals && value->kind == ExprKind::kLiteral;
      field.nullable = field.nullable || value->nullable;
    }
    for (const std::vector<ExprPtr>& row : rows) {
      literals = literals && row[column]->kind == ExprKind::kLiteral && !row[column]->type.Is(TypeKind::kVoid);
    }
    fields.push_back(std::move(field));
  }
  const types::Schema schema = DataType::Struct(std::move(fields));
  auto plan = std::make_shared<LogicalPlan>();
  plan->output = AttributesOf(schema);
  if (literals) {
    std::vector<types::Value::List> values;
    for (const std::vector<ExprPtr>& row : rows) {
      types::Value::List list;
      for (const ExprPtr& value : row) {
        list.push_back(value->value);
      }
      values.push_back(std::move(list));
    }
    FLEUVE_ASSIGN(columnar::RecordBatch batch, columnar::BatchFromRows(schema, values));
    auto scan = std::make_shared<RowScan>();
    scan->batches.push_back(std::move(batch));
    plan->kind = PlanKind::kRows;
    plan->rows = std::move(scan);
    return PlanPtr(std::move(plan));
  }
  auto one = std::make_shared<LogicalPlan>();
  one->kind = PlanKind::kOneRow;
  plan->kind = PlanKind::kExpand;
  plan->projections = std::move(rows);
  plan->children.push_back(std::move(one));
  return PlanPtr(std::move(plan));
}

Result<PlanPtr> Analyzer::TimeTravel(const fleuve::pb::TimeTravel& travel) {
  if (!travel.input().has_read() || !travel.input().read().has_named_table()) {
    return Error::Unsupported("time travel of something that is no table");
  }
  const auto& named = travel.input().read().named_table();
  FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(named.unparsed_identifier()));
  if (parts.size() == 1) {
    for (const CommonTable& table : tables_) {
      if (EqualNames(table.name, parts.front(), config_.case_sensitive)) {
        return Error(ErrorKind::kUnsupported, "UNSUPPORTED_FEATURE.TIME_TRAVEL",
                     "The feature is not supported: time travel on the relation " +
                         types::QuoteIdentifier(parts.front()) + ", which a WITH clause defines.")
            .With("relationId", types::QuoteIdentifier(parts.front()))
            .Family(ErrorFamily::kAnalysis);
      }
    }
  }
  Options options = ToOptions(named.options());
  if (travel.has_version()) {
    options["versionAsOf"] = travel.version();
  } else {
    FLEUVE_ASSIGN(ExprPtr timestamp, Expression(travel.timestamp(), Scope()));
    const auto invalid = [&](const char* condition, const char* why) {
      return Error(ErrorKind::kInvalidArgument, std::string("INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.") + condition,
                   "The time travel timestamp expression " + timestamp->display + " is invalid. " + why)
          .With("expr", "\"" + timestamp->display + "\"");
    };
    const auto not_a_time = [&] { return invalid("INPUT", "Cannot be casted to the \"TIMESTAMP\" type."); };
    FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(timestamp));
    if (!value) {
      if (!timestamp->deterministic) {
        return invalid("NON_DETERMINISTIC", "It must be deterministic.");
      }
      FLEUVE_ASSIGN(value, ValueOfConstant(timestamp));
    }
    if (value->is_null() || (timestamp->type.Is(TypeKind::kString) &&
                             !types::ParseTimestamp(std::string(value->text()), config_.session_zone))) {
      return not_a_time();
    }
    if (timestamp->type.IsNumeric() || timestamp->type.Is(TypeKind::kBoolean)) {
      // Seconds since the epoch, as a cast says.
      FLEUVE_ASSIGN(timestamp, MakeCast(timestamp, DataType::Timestamp(), config_));
      FLEUVE_ASSIGN(value, ValueOfConstant(timestamp));
    }
    switch (timestamp->type.kind()) {
      case TypeKind::kString:
        options["timestampAsOf"] = value->text();
        break;
      case TypeKind::kDate:
        options["timestampAsOf"] = types::DateToString(value->integer());
        break;
      case TypeKind::kTimestamp: {
        FLEUVE_ASSIGN(options["timestampAsOf"], types::TimestampToString(value->integer(), config_.session_zone));
        break;
      }
      case TypeKind::kTimestampNtz:
        options["timestampAsOf"] = types::TimestampNtzToString(value->integer());
        break;
      default:
        return not_a_time();
    }
  }
  return NamedTable(parts, options, false);
}

Result<types::Value> Analyzer::ValueOfConstant(const ExprPtr& expr) {
  auto one = std::make_shared<LogicalPlan>();
  one->kind = PlanKind::kOneRow;
  Attribute attribute;
  attribute.id = NewAttributeId();
  attribute.name = "value";
  attribute.type = expr->type;
  FLEUVE_ASSIGN(const auto rows, resolver_.RunQuery(MakeProject(one, {expr}, {attribute})));
  return rows.at(0).at(0);
}

Result<std::optional<types::Value>> Analyzer::ConstantValue(const ExprPtr& expr) {
  if (expr->kind == ExprKind::kLiteral) {
    return std::optional<types::Value>(expr->value);
  }
  if (expr->kind == ExprKind::kCast) {
    const ExprPtr& child = expr->children.front();
    FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(child));
    if (!value) {
      return std::optional<types::Value>();
    }
    if (std::optional<types::Value> widened = Widen(*value, child->type, expr->type)) {
      return widened;
    }
    if (child->type.Is(TypeKind::kString) && expr->type.Is(TypeKind::kTimestamp)) {
      const std::optional<std::int64_t> micros = types::ParseTimestamp(value->text(), config_.session_zone);
      return micros ? std::optional<types::Value>(types::Value(*micros)) : std::optional<types::Value>();
    }
    if (child->type.Is(TypeKind::kString) && expr->type.Is(TypeKind::kDate)) {
      const std::optional<std::int64_t> days = types::ParseDate(value->text());
      return days ? std::optional<types::Value>(types::Value(*days)) : std::optional<types::Value>();
    }
    return std::optional<types::Value>();
  }
  if (expr->kind == ExprKind::kCall && expr->type.IsIntegral()) {
    std::vector<std::int64_t> values;
    for (const ExprPtr& child : expr->children) {
      FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(child));
      if (!value || value->is_null() || !child->type.IsIntegral()) {
        if (child->kind == ExprKind::kLiteral && values.size() == 2) {
          break;
        }
        return std::optional<types::Value>();
      }
      values.push_back(value->integer());
    }
    const std::string& shown = expr->display;
    if (values.size() == 1 && shown.starts_with("(- ")) {
      return std::optional<types::Value>(types::Value(-values[0]));
    }
    if (values.size() >= 2) {
      const std::string a = expr->children[0]->display;
      const std::string b = expr->children[1]->display;
      if (shown == "(" + a + " + " + b + ")") {
        return std::optional<types::Value>(types::Value(values[0] + values[1]));
      }
      if (shown == "(" + a + " - " + b + ")") {
        return std::optional<types::Value>(types::Value(values[0] - values[1]));
      }
      if (shown == "(" + a + " * " + b + ")") {
        return std::optional<types::Value>(types::Value(values[0] * values[1]));
      }
    }
  }
  return std::optional<types::Value>();
}

std::optional<std::string> Analyzer::ConstantText(const ExprPtr& expr) {
  if (expr->kind == ExprKind::kLiteral && expr->type.IsString() && !expr->value.is_null()) {
    return expr->value.text();
  }
  if (expr->kind == ExprKind::kCall && expr->type.IsString()) {
    // Names put together with || or concat.
    if (expr->function.find("concat") == std::string::npos) {
      return std::nullopt;
    }
    std::string text;
    for (const ExprPtr& child : expr->children) {
      const std::optional<std::string> part = ConstantText(child);
      if (!part) {
        return std::nullopt;
      }
      text += *part;
    }
    return text;
  }
  return std::nullopt;
}

Result<PlanPtr> Analyzer::FileFunction(const std::string& name,
                                       const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                       bool is_streaming) {
  const auto text_of = [&](const sc::Expression& argument, std::string* text) -> Result<void> {
    FLEUVE_ASSIGN(ExprPtr expr, Expression(argument, Scope()));
    if (const std::optional<std::string> constant = ConstantText(expr)) {
      *text = *constant;
      return {};
    }
    FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(expr));
    if (value && !value->is_null() && expr->type.IsIntegral()) {
      *text = std::to_string(value->integer());
      return {};
    }
    if (value && !value->is_null() && expr->type.Is(TypeKind::kBoolean)) {
      *text = value->boolean() ? "true" : "false";
      return {};
    }
    return Error(ErrorKind::kInvalidArgument, "NON_FOLDABLE_ARGUMENT",
                 "The function `" + name + "` requires the parameter " + expr->display +
                     " to be a foldable expression of the type \"STRING\", but the actual argument is a non-foldable.");
  };
  std::vector<TableFunctionArgument> given;
  if (name.starts_with("table_changes")) {
    for (const sc::Expression& argument : arguments) {
      FLEUVE_ASSIGN(ExprPtr expr, Expression(argument, Scope()));
      FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(expr));
      if (given.empty() && expr->kind != ExprKind::kLiteral) {
        return Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_EXPRESSION",
                     "The table name of " + name + " must be a string literal, not " + expr->display + ".")
            .With("expType", expr->type.Sql())
            .With("causedBy", "table name")
            .With("supportedTypes", "StringType literal");
      }
      if (!value) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_CDC_NON_CONSTANT_ARGUMENT",
                     "The argument " + expr->display + " of " + name + " must be a constant.")
            .With("sqlExpr", expr->display)
            .With("functionName", name);
      }
      given.push_back({"", "", {}, *std::move(value), expr->type});
    }
    FLEUVE_ASSIGN(ResolvedTable table, resolver_.ResolveTableFunction(name, given, is_streaming));
    return FromResolved(table);
  }
  for (const sc::Expression& argument : arguments) {
    TableFunctionArgument one;
    const sc::Expression* value = &argument;
    if (argument.has_named_argument_expression()) {
      one.name = argument.named_argument_expression().key();
      value = &argument.named_argument_expression().value();
    }
    if (value->has_unresolved_function() && LowerName(value->unresolved_function().function_name()) == "map") {
      const auto& entries = value->unresolved_function().arguments();
      for (int i = 0; i + 1 < entries.size(); i += 2) {
        std::pair<std::string, std::string> entry;
        FLEUVE_TRY(text_of(entries[i], &entry.first));
        FLEUVE_TRY(text_of(entries[i + 1], &entry.second));
        one.entries.push_back(std::move(entry));
      }
    } else {
      FLEUVE_TRY(text_of(*value, &one.text));
    }
    given.push_back(std::move(one));
  }
  FLEUVE_ASSIGN(ResolvedTable table, resolver_.ResolveTableFunction(name, given, is_streaming));
  return FromResolved(table);
}

Result<PlanPtr> Analyzer::TableFunction(const std::string& name,
                                        const google::protobuf::RepeatedPtrField<sc::Expression>& arguments,
                                        bool is_streaming) {
  FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(name));
  const std::string lower = LowerName(parts.back());
  if (parts.size() == 1 && (lower == "read_files" || lower == "cloud_files" || lower == "cloud_files_state" ||
                            lower == "table_changes" || lower == "table_changes_by_path")) {
    return FileFunction(lower, arguments, is_streaming);
  }
  if (is_streaming) {
    return Error::Unsupported("STREAM over the table-valued function " + lower);
  }
  const bool is_builtin = parts.size() == 1 || LowerName(parts[parts.size() - 2]) == "builtin";
  if (is_builtin && lower == "range") {
    std::vector<std::int64_t> numbers;
    for (const sc::Expression& argument : arguments) {
      FLEUVE_ASSIGN(ExprPtr expr, Expression(argument, Scope()));
      FLEUVE_ASSIGN(std::optional<types::Value> value, ConstantValue(expr));
      if (!value || value->is_null() || !expr->type.IsIntegral()) {
        return Error(ErrorKind::kInvalidArgument, "UNEXPECTED_INPUT_TYPE",
                     "The " + std::to_string(numbers.size() + 1) +
                         " parameter of function `range` requires the \"BIGINT\" type, however \"" + expr->display +
                         "\" has the type " + TypesSql(expr->type) + ".");
      }
      numbers.push_back(value->integer());
    }
    if (numbers.empty() || numbers.size() > 4) {
      return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                   "The `range` requires [1, 2, 3, 4] parameters but the actual number is " +
                       std::to_string(numbers.size()) + ".")
          .With("functionName", "`range`")
          .With("expectedNum", "[1, 2, 3, 4]")
          .With("actualNum", std::to_string(numbers.size()));
    }
    if (numbers.size() == 1) {
      return Range(0, numbers[0], 1);
    }
    return Range(numbers[0], numbers[1], numbers.size() > 2 ? numbers[2] : 1, numbers.size() > 3 ? numbers[3] : 0);
  }
  if (is_builtin && FindFunctionKind(lower) == FunctionKind::kGenerator) {
    auto one = std::make_shared<LogicalPlan>();
    one->kind = PlanKind::kOneRow;
    FLEUVE_ASSIGN(FunctionCall call, MakeFunctionCall(lower, arguments, FunctionOptions(), Scope(), nullptr));
    FLEUVE_ASSIGN(GeneratorResult generator, BuildGenerator(call));
    auto plan = std::make_shared<LogicalPlan>();
    plan->kind = PlanKind::kGenerate;
    plan->generator = generator.spec;
    for (const types::StructField& column : generator.columns) {
      Attribute attribute;
      attribute.id = NewAttributeId();
      attribute.name = column.name;
      attribute.type = column.type;
      attribute.nullable = column.nullable || generator.spec.outer;
      plan->output.push_back(std::move(attribute));
    }
    plan->children.push_back(std::move(one));
    return PlanPtr(std::move(plan));
  }
  FLEUVE_ASSIGN(std::optional<SqlFunction> function, resolver_.ResolveFunction(parts));
  if (function && function->external != nullptr && function->external->call_kind() == ExternalCallKind::kTable) {
    return ExternalTable(function->external, arguments);
  }
  if (function && function->query != nullptr) {
    std::vector<std::pair<std::string, ExprPtr>> bound;
    for (std::size_t i = 0; i < function->parameters.size(); ++i) {
      const sc::Expression* value = nullptr;
      if (i < static_cast<std::size_t>(arguments.size())) {
        value = &arguments.Get(static_cast<int>(i));
      } else if (i < function->defaults.size() && function->defaults[i] != nullptr) {
        value = function->defaults[i].get();
      }
      if (value == nullptr) {
        break;
      }
      FLEUVE_ASSIGN(ExprPtr made, Expression(*value, Scope()));
      FLEUVE_ASSIGN(made, MakeCast(made, function->parameters[i].type, config_));
      bound.emplace_back(function->parameters[i].name, std::move(made));
    }
    if (bound.size() != function->parameters.size() ||
        static_cast<std::size_t>(arguments.size()) > function->parameters.size()) {
      return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
                   "The " + QuoteParts(parts) + " requires " + std::to_string(function->parameters.size()) +
                       " parameters but the actual number is " + std::to_string(arguments.size()) + ".");
    }
    Scope parameters;
    parameters.function_parameters = &bound;
    std::vector<const Scope*> outer{&parameters};
    std::vector<CommonTable> tables;
    std::swap(outer, outer_scopes_);
    std::swap(tables, tables_);
    if (++view_depth_ > 100) {
      return Error::Unsupported("SQL functions nested more than 100 levels deep");
    }
    Result<PlanPtr> plan = Relation(*function->query);
    --view_depth_;
    std::swap(tables, tables_);
    std::swap(outer, outer_scopes_);
    if (!plan.ok()) {
      return std::move(plan).error();
    }
    PlanPtr made = WithoutHidden(*plan);
    if (function->return_type.Is(TypeKind::kStruct) && function->return_type.fields().size() == made->output.size()) {
      std::vector<DataType> wanted;
      for (const types::StructField& field : function->return_type.fields()) {
        wanted.push_back(field.type);
      }
      FLEUVE_ASSIGN(made, CastColumns(made, wanted));
      std::vector<ExprPtr> exprs;
      std::vector<Attribute> output = made->output;
      for (std::size_t i = 0; i < output.size(); ++i) {
        exprs.push_back(AttributeExpr(output[i]));
        output[i].name = function->return_type.fields()[i].name;
        output[i].id = NewAttributeId();
      }
      made = MakeProject(made, std::move(exprs), std::move(output));
    }
    return SubqueryAlias(std::move(made), parts.back(), {});
  }
  return Error(ErrorKind::kInvalidArgument, "UNRESOLVABLE_TABLE_VALUED_FUNCTION",
               "Could not resolve " + QuoteParts(parts) + " to a table-valued function. Please make sure that " +
                   QuoteParts(parts) +
                   " is defined as a table-valued function and that all required parameters are provided correctly.")
      .With("name", QuoteParts(parts));
}

Result<PlanPtr> Analyzer::Parse(const sc::Parse& parse) {
  (void)parse;
  return Error::Unsupported("reading JSON or CSV out of a DataFrame of strings (spark.read.json(df))");
}

}  // namespace fleuve::plan
