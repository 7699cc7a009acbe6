#include "base/bytes.h"
#include "plan/coercion.h"
#include "session/table_plans_internal.h"

namespace fleuve::session {

plan::PlanPtr LeafOf(std::shared_ptr<const plan::TableSource> table, std::vector<std::string> qualifier) {
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kTable;
  for (const types::StructField& field : table->schema().fields()) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = field.name;
    attribute.type = field.type;
    attribute.nullable = field.nullable;
    attribute.metadata = field.metadata;
    attribute.qualifier = qualifier;
    leaf->output.push_back(std::move(attribute));
  }
  leaf->table = std::move(table);
  return leaf;
}

plan::PlanPtr RowsLeaf(const types::Schema& schema, std::vector<columnar::RecordBatch> batches) {
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kRows;
  for (const types::StructField& field : schema.fields()) {
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = field.name;
    attribute.type = field.type;
    attribute.nullable = field.nullable;
    attribute.metadata = field.metadata;
    leaf->output.push_back(std::move(attribute));
  }
  auto rows = std::make_shared<plan::RowScan>();
  rows->batches = std::move(batches);
  leaf->rows = std::move(rows);
  return leaf;
}

Result<plan::PlanPtr> FitColumns(const plan::PlanPtr& input, const types::Schema& schema, bool by_name,
                                 const plan::AnalysisConfig& config, const std::string& table) {
  std::vector<plan::Attribute> visible;
  for (const plan::Attribute& attribute : input->output) {
    if (!attribute.hidden) {
      visible.push_back(attribute);
    }
  }
  const auto& fields = schema.fields();
  if (visible.size() != fields.size()) {
    const bool more = visible.size() > fields.size();
    return Error(ErrorKind::kInvalidArgument,
                 std::string("INSERT_COLUMN_ARITY_MISMATCH.") +
                     (more ? "TOO_MANY_DATA_COLUMNS" : "NOT_ENOUGH_DATA_COLUMNS"),
                 "Cannot write to " + QuoteParts(Split(table, '.')) + ", the reason is " +
                     (more ? "too many" : "not enough") + " data columns.")
        .With("tableName", QuoteParts(Split(table, '.')));
  }
  std::vector<plan::ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::size_t source = i;
    if (by_name) {
      source = visible.size();
      for (std::size_t v = 0; v < visible.size(); ++v) {
        const bool same = config.case_sensitive ? visible[v].name == fields[i].name
                                                : EqualsIgnoreAsciiCase(visible[v].name, fields[i].name);
        if (same) {
          source = v;
        }
      }
      if (source == visible.size()) {
        return Error(ErrorKind::kInvalidArgument, "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_FIND_DATA",
                     "Cannot write incompatible data for the table " + QuoteParts(Split(table, '.')) +
                         ": Cannot find data for the output column " + types::QuoteIdentifier(fields[i].name) + ".")
            .With("tableName", QuoteParts(Split(table, '.')))
            .With("colName", types::QuoteIdentifier(fields[i].name));
      }
    }
    plan::ExprPtr expr = plan::MakeAttribute(visible[source]);
    if (!visible[source].type.EqualsIgnoringNullability(fields[i].type)) {
      if (!plan::CanStoreAssign(visible[source].type, fields[i].type)) {
        return Error(ErrorKind::kInvalidArgument, "INCOMPATIBLE_DATA_FOR_TABLE.CANNOT_SAFELY_CAST",
                     "Cannot write incompatible data for the table " + QuoteParts(Split(table, '.')) +
                         ": Cannot safely cast " + types::QuoteIdentifier(fields[i].name) + " \"" +
                         visible[source].type.Sql() + "\" to \"" + fields[i].type.Sql() + "\".")
            .With("tableName", QuoteParts(Split(table, '.')))
            .With("colName", types::QuoteIdentifier(fields[i].name))
            .With("srcType", "\"" + visible[source].type.Sql() + "\"")
            .With("targetType", "\"" + fields[i].type.Sql() + "\"");
      }
      FLEUVE_ASSIGN(expr, plan::MakeCast(expr, fields[i].type, plan::CastMode::kAnsi, config));
    }
    plan::Attribute attribute = visible[source];
    attribute.id = plan::NewAttributeId();
    attribute.name = fields[i].name;
    attribute.type = fields[i].type;
    attribute.qualifier.clear();
    exprs.push_back(std::move(expr));
    output.push_back(std::move(attribute));
  }
  return plan::MakeProject(input, std::move(exprs), std::move(output));
}

tables::TableRef RefOf(const TableTarget& target) {
  tables::TableRef table;
  table.location = target.location;
  table.name = target.display;
  if (!target.is_path) {
    table.catalog_name = {"spark_catalog", target.database, target.name};
    table.is_managed = target.row && target.row->kind == catalog::TableKind::kManaged;
  }
  return table;
}

Error UnknownProvider(const std::string& format, const std::string& what) {
  for (const char* known :
       {"orc", "avro", "xml", "kafka", "jdbc", "socket", "console", "memory", "rate", "rate-micro-batch", "cloudfiles",
        "text", "csv", "json", "parquet", "binaryfile", "hive", "delta"}) {
    if (format == known) {
      return Error::Unsupported(what + " of the format " + format);
    }
  }
  return Error(
             ErrorKind::kNotFound, "DATA_SOURCE_NOT_FOUND",
             "Failed to find the data source: " + format +
                 ". Make sure the provider name is correct and the package is properly registered and compatible with "
                 "your Spark version.")
      .With("provider", format);
}

}  // namespace fleuve::session
