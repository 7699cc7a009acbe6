#include "pipelines/definitions.h"

#include "base/bytes.h"
#include "fleuve/plan.pb.h"
#include "plan/proto_types.h"
#include "sql/parser.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;
using types::DataType;

namespace {

CodeLocation LocationOf(const sc::SourceCodeLocation& location) {
  return CodeLocation{location.file_name(), location.line_number()};
}

std::vector<std::string> PartsOf(const pb::Name& name) { return {name.parts().begin(), name.parts().end()}; }

Result<Expectation::Action> ActionOf(const std::string& text) {
  const std::string lower = AsciiLower(text);
  if (lower == "warn") return Expectation::Action::kWarn;
  if (lower == "drop") return Expectation::Action::kDrop;
  if (lower == "fail") return Expectation::Action::kFail;
  return Error(ErrorKind::kInvalidArgument, "",
               "The action of an expectation is warn, drop or fail, not '" + text + "'.")
      .Family(ErrorFamily::kIllegalArgument);
}

Error WithoutRelation(const std::string& flow) {
  return Error(ErrorKind::kInvalidArgument, "", "The flow " + flow + " has no query.")
      .Family(ErrorFamily::kIllegalArgument);
}

/// A plain column of AUTO CDC's lists.
Result<std::string> ColumnName(const sc::Expression& expression) {
  if (!expression.has_unresolved_attribute()) {
    return Error(ErrorKind::kInvalidArgument, "AUTOCDC_NON_COLUMN_IDENTIFIER",
                 "The lists of an AUTO CDC flow take columns, not expressions.");
  }
  const std::string& written = expression.unresolved_attribute().unparsed_identifier();
  FLEUVE_ASSIGN(const std::vector<std::string> parts, sql::ParseMultipartName(written));
  if (parts.size() != 1) {
    return Error(ErrorKind::kInvalidArgument, "AUTOCDC_MULTIPART_COLUMN_IDENTIFIER",
                 "The lists of an AUTO CDC flow take top-level columns, not " + written + ".")
        .With("columnName", written);
  }
  return parts[0];
}

Error BothLists() {
  return Error(ErrorKind::kInvalidArgument, "AUTOCDC_BOTH_COLUMN_LIST_AND_EXCEPT_COLUMN_LIST",
               "An AUTO CDC flow takes a column list or an except column list, not both.");
}

using Expressions = google::protobuf::RepeatedPtrField<sc::Expression>;

/// One of two lists; nullopt where both are empty.
Result<std::optional<ChangeRules::Columns>> ColumnsOf(const Expressions& list, const Expressions& except) {
  if (!list.empty() && !except.empty()) {
    return BothLists();
  }
  if (list.empty() && except.empty()) {
    return std::optional<ChangeRules::Columns>();
  }
  ChangeRules::Columns columns;
  columns.except = !except.empty();
  for (const sc::Expression& column : columns.except ? except : list) {
    FLEUVE_ASSIGN(std::string name, ColumnName(column));
    columns.names.push_back(std::move(name));
  }
  return std::optional<ChangeRules::Columns>(std::move(columns));
}

Result<ChangeRules> RulesOf(const sc::PipelineCommand::DefineFlow::AutoCdcFlowDetails& details) {
  ChangeRules rules;
  for (const sc::Expression& key : details.keys()) {
    FLEUVE_ASSIGN(std::string name, ColumnName(key));
    rules.keys.push_back(std::move(name));
  }
  if (details.has_sequence_by()) {
    rules.sequence = std::make_shared<const sc::Expression>(details.sequence_by());
  }
  if (details.has_apply_as_deletes()) {
    rules.deletes = std::make_shared<const sc::Expression>(details.apply_as_deletes());
  }
  if (details.has_apply_as_truncates()) {
    rules.truncates = std::make_shared<const sc::Expression>(details.apply_as_truncates());
  }
  FLEUVE_ASSIGN(rules.columns, ColumnsOf(details.column_list(), details.except_column_list()));
  FLEUVE_ASSIGN(rules.ignore_null_columns,
                ColumnsOf(details.ignore_null_updates_column_list(), details.ignore_null_updates_except_column_list()));
  rules.ignore_null_updates = rules.ignore_null_columns.has_value();
  const int type = static_cast<int>(details.stored_as_scd_type());
  if (type < 0 || type > 2) {
    return Error::Unsupported("SCD type " + std::to_string(type));
  }
  rules.scd_type = type == 2 ? 2 : 1;
  return rules;
}

/// A table by its name, read as a stream.
std::shared_ptr<const sc::Relation> StreamOf(const std::string& name) {
  auto relation = std::make_shared<sc::Relation>();
  relation->mutable_read()->mutable_named_table()->set_unparsed_identifier(name);
  relation->mutable_read()->set_is_streaming(true);
  return relation;
}

}  // namespace

Result<void> TakeProperties(const plan::Options& properties, Dataset* dataset, std::vector<std::string>* unknown) {
  constexpr std::string_view kExpectations = "fleuve.expectations.";
  constexpr std::string_view kAction = ".action";
  for (const auto& [key, value] : properties) {
    if (key == "pipelines.reset.allowed") {
      dataset->resettable = !EqualsIgnoreAsciiCase(value, "false");
    } else if (key.starts_with("pipelines.")) {
      unknown->push_back(key);
    } else if (key.starts_with(kExpectations)) {
      if (key.ends_with(kAction) && properties.contains(key.substr(0, key.size() - kAction.size()))) {
        continue;
      }
      Expectation expectation;
      expectation.name = key.substr(kExpectations.size());
      expectation.sql = value;
      if (const auto action = properties.find(key + std::string(kAction)); action != properties.end()) {
        FLEUVE_ASSIGN(expectation.action, ActionOf(action->second));
      }
      FLEUVE_TRY(sql::ParseExpression(expectation.sql));
      dataset->expectations.push_back(std::move(expectation));
    } else {
      dataset->properties[key] = value;
    }
  }
  return {};
}

Result<std::vector<std::string>> Define(const sc::PipelineCommand::DefineOutput& output, Graph* graph,
                                        std::vector<std::string>* unknown) {
  Dataset dataset;
  FLEUVE_ASSIGN(dataset.name, sql::ParseMultipartName(output.output_name()));
  if (output.has_comment()) {
    dataset.comment = output.comment();
  }
  dataset.location = LocationOf(output.source_code_location());
  if (output.has_extension()) {
    return Error::Unsupported("the output extension " + output.extension().type_url());
  }
  switch (output.output_type()) {
    case sc::OUTPUT_TYPE_UNSPECIFIED:  // a table of older programs: its query tells
    case sc::MATERIALIZED_VIEW:
    case sc::TABLE: {
      dataset.kind = output.output_type() == sc::TABLE ? DatasetKind::kStreamingTable : DatasetKind::kMaterializedView;
      dataset.kind_by_query = output.output_type() == sc::OUTPUT_TYPE_UNSPECIFIED;
      const auto& details = output.table_details();
      dataset.format = AsciiLower(details.format());
      dataset.partition_by.assign(details.partition_cols().begin(), details.partition_cols().end());
      dataset.cluster_by.assign(details.clustering_columns().begin(), details.clustering_columns().end());
      if (!dataset.partition_by.empty() && !dataset.cluster_by.empty()) {
        return Error(ErrorKind::kInvalidArgument, "SPECIFY_CLUSTER_BY_WITH_PARTITIONED_BY_IS_NOT_ALLOWED",
                     "Cannot specify both CLUSTER BY and PARTITIONED BY.");
      }
      if (details.has_schema_data_type()) {
        FLEUVE_ASSIGN(dataset.schema, plan::TypeFromProto(details.schema_data_type()));
      } else if (!details.schema_string().empty()) {
        FLEUVE_ASSIGN(dataset.schema, sql::ParseColumnList(details.schema_string()));
      }
      FLEUVE_TRY(
          TakeProperties({details.table_properties().begin(), details.table_properties().end()}, &dataset, unknown));
      break;
    }
    case sc::TEMPORARY_VIEW:
      dataset.kind = DatasetKind::kTemporaryView;
      if (output.has_table_details()) {
        // Not what PySpark's own client sends for a view: expectations travel as properties of a table.
        FLEUVE_TRY(TakeProperties(
            {output.table_details().table_properties().begin(), output.table_details().table_properties().end()},
            &dataset, unknown));
      }
      break;
    case sc::SINK:
      dataset.kind = DatasetKind::kSink;
      dataset.format = AsciiLower(output.sink_details().format());
      dataset.options = {output.sink_details().options().begin(), output.sink_details().options().end()};
      break;
    default:
      return Error::Unsupported("an output of no known type");
  }
  return graph->Add(std::move(dataset), graph->database());
}

Result<std::vector<std::string>> Define(const sc::PipelineCommand::DefineFlow& define, Graph* graph) {
  Flow flow;
  FLEUVE_ASSIGN(flow.name, sql::ParseMultipartName(define.flow_name()));
  FLEUVE_ASSIGN(flow.target, sql::ParseMultipartName(define.target_dataset_name()));
  flow.conf = {define.sql_conf().begin(), define.sql_conf().end()};
  flow.database = graph->database();
  flow.once = define.once();
  flow.location = LocationOf(define.source_code_location());
  if (define.has_relation_flow_details()) {
    if (!define.relation_flow_details().has_relation()) {
      return WithoutRelation(define.flow_name());
    }
    flow.query = std::make_shared<const sc::Relation>(define.relation_flow_details().relation());
  } else if (define.has_auto_cdc_flow_details()) {
    if (define.auto_cdc_flow_details().source().empty()) {
      return Error(ErrorKind::kInvalidArgument, "AUTOCDC_MISSING_SOURCE",
                   "The AUTO CDC flow " + define.flow_name() + " names no source.");
    }
    FLEUVE_ASSIGN(flow.changes, RulesOf(define.auto_cdc_flow_details()));
    flow.query = StreamOf(define.auto_cdc_flow_details().source());
  } else if (define.has_extension()) {
    return Error::Unsupported("the flow extension " + define.extension().type_url());
  } else {
    return WithoutRelation(define.flow_name());
  }
  return graph->Add(std::move(flow));
}

Result<ChangeRules> RulesOf(const pb::AutoCdc& cdc) {
  ChangeRules rules;
  rules.keys.assign(cdc.keys().begin(), cdc.keys().end());
  const auto expression = [](const std::string& sql) {
    auto made = std::make_shared<sc::Expression>();
    made->mutable_expression_string()->set_expression(sql);
    return made;
  };
  if (cdc.has_sequence_sql()) {
    rules.sequence = expression(cdc.sequence_sql());
  }
  if (cdc.has_delete_sql()) {
    rules.deletes = expression(cdc.delete_sql());
  }
  if (cdc.has_truncate_sql()) {
    rules.truncates = expression(cdc.truncate_sql());
  }
  const auto columns = [](const pb::AutoCdc::Columns& list) {
    return ChangeRules::Columns{{list.names().begin(), list.names().end()}, list.except()};
  };
  rules.ignore_null_updates = cdc.ignore_null_updates();
  if (cdc.has_ignore_null_columns()) {
    rules.ignore_null_columns = columns(cdc.ignore_null_columns());
  }
  if (cdc.has_columns()) {
    rules.columns = columns(cdc.columns());
  }
  if (cdc.has_track_history()) {
    rules.track_history = columns(cdc.track_history());
  }
  rules.scd_type = cdc.scd_type();
  return rules;
}

Result<Dataset> DatasetOf(const pb::CreatePipelineDataset& create, std::vector<std::string>* unknown) {
  const pb::CreateTable& table = create.table();
  Dataset dataset;
  dataset.kind = create.view()        ? DatasetKind::kTemporaryView
                 : create.streaming() ? DatasetKind::kStreamingTable
                                      : DatasetKind::kMaterializedView;
  dataset.name = PartsOf(create.name());
  if (dataset.name.size() == 2 && EqualsIgnoreAsciiCase(dataset.name[0], "live")) {
    dataset.name.erase(dataset.name.begin());
  }
  if (table.has_comment()) {
    dataset.comment = table.comment();
  }
  dataset.format = AsciiLower(table.provider());
  if (table.has_location() || table.options_size() > 0) {
    return Error::Unsupported(std::string(table.has_location() ? "LOCATION" : "OPTIONS") + " of a " +
                              KindName(dataset.kind));
  }
  if (table.has_bucket() || table.cluster_by_auto() || table.has_collation()) {
    return Error::Unsupported(std::string(table.has_bucket()        ? "CLUSTERED BY ... INTO BUCKETS"
                                          : table.cluster_by_auto() ? "CLUSTER BY AUTO"
                                                                    : "DEFAULT COLLATION") +
                              " of a " + KindName(dataset.kind));
  }
  std::vector<types::StructField> fields;
  for (const pb::ColumnDefinition& column : table.columns()) {
    FLEUVE_ASSIGN(types::StructField field, session::DeclaredColumn(column));
    fields.push_back(std::move(field));
  }
  for (const pb::ColumnDefinition& column : table.partition_columns()) {
    FLEUVE_ASSIGN(types::StructField field, session::DeclaredColumn(column));
    dataset.partition_by.push_back(field.name);
    fields.push_back(std::move(field));
  }
  if (!fields.empty()) {
    dataset.schema = DataType::Struct(std::move(fields));
  }
  for (const pb::Transform& transform : table.partitioned_by()) {
    if (transform.function() != "identity" || transform.column_size() != 1) {
      return Error::Unsupported("partitioning a " + KindName(dataset.kind) + " by anything but plain columns");
    }
    dataset.partition_by.push_back(transform.column(0));
  }
  for (const pb::Name& column : table.cluster_by()) {
    dataset.cluster_by.push_back(Join(PartsOf(column), "."));
  }
  plan::Options properties;
  for (const pb::Property& property : table.properties()) {
    properties[property.key()] = property.value();
  }
  FLEUVE_TRY(TakeProperties(properties, &dataset, unknown));
  for (const pb::Expectation& expectation : create.expectations()) {
    Expectation made;
    made.name = expectation.name();
    made.sql = expectation.sql();
    made.action = expectation.action() == pb::Expectation::DROP_ROW      ? Expectation::Action::kDrop
                  : expectation.action() == pb::Expectation::FAIL_UPDATE ? Expectation::Action::kFail
                                                                         : Expectation::Action::kWarn;
    for (const Expectation& other : dataset.expectations) {
      if (other.name == made.name) {
        return Error(
                   ErrorKind::kInvalidArgument, "",
                   "The dataset " + Join(dataset.name, ".") + " has two expectations with the name " + made.name + ".")
            .Family(ErrorFamily::kAnalysis);
      }
    }
    dataset.expectations.push_back(std::move(made));
  }
  return dataset;
}

}  // namespace fleuve::pipelines
