#include <algorithm>

#include "base/bytes.h"
#include "pipelines/changes_internal.h"
#include "spark/connect/relations.pb.h"

namespace fleuve::pipelines {

namespace sc = spark::connect;
using types::StructField;

namespace {

const StructField* FindField(const types::Schema& schema, const std::string& name) {
  for (const StructField& field : schema.fields()) {
    if (EqualsIgnoreAsciiCase(field.name, name)) {
      return &field;
    }
  }
  return nullptr;
}

bool Holds(const std::vector<std::string>& names, const std::string& name) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& other) { return EqualsIgnoreAsciiCase(other, name); });
}

Error Refused(const std::string& condition, const std::string& message) {
  return Error(ErrorKind::kInvalidArgument, condition, message);
}

}  // namespace

std::shared_ptr<const sc::Relation> ChangeEvents(const ChangeRules& rules, const sc::Relation& events) {
  auto relation = std::make_shared<sc::Relation>();
  auto* project = relation->mutable_project();
  *project->mutable_input() = events;
  project->add_expressions()->mutable_unresolved_star();
  const auto add = [&](const char* name, const std::shared_ptr<const sc::Expression>& expression, bool flag) {
    auto* alias = project->add_expressions()->mutable_alias();
    alias->add_name(name);
    if (!flag) {
      *alias->mutable_expr() = *expression;
      return;
    }
    // Only TRUE counts; without a condition nothing does.
    auto* function = alias->mutable_expr()->mutable_unresolved_function();
    function->set_function_name("coalesce");
    if (expression != nullptr) {
      auto* cast = function->add_arguments()->mutable_cast();
      *cast->mutable_expr() = *expression;
      cast->set_type_str("BOOLEAN");
    }
    function->add_arguments()->mutable_literal()->set_boolean(false);
  };
  add(kSequenceColumn, rules.sequence, false);
  add(kDeleteColumn, rules.deletes, true);
  add(kTruncateColumn, rules.truncates, true);
  return relation;
}

Result<types::Schema> ChangeTargetSchema(const ChangeRules& rules, const sc::Relation& events,
                                         const types::Schema& source, session::Workbench& place,
                                         session::NameScope* names) {
  if (rules.keys.empty()) {
    return Refused("AUTOCDC_EMPTY_KEYS", "An AUTO CDC flow needs at least one key column.");
  }
  if (rules.sequence == nullptr) {
    return Refused("AUTOCDC_MISSING_SEQUENCE_BY", "An AUTO CDC flow needs SEQUENCE BY: what orders its events.");
  }
  std::vector<std::string> unknown;
  const auto look = [&](const std::vector<std::string>& columns) {
    for (const std::string& name : columns) {
      if (FindField(source, name) == nullptr) {
        unknown.push_back(name);
      }
    }
  };
  look(rules.keys);
  for (const auto& columns : {rules.columns, rules.ignore_null_columns, rules.track_history}) {
    if (columns) {
      look(columns->names);
    }
  }
  if (!unknown.empty()) {
    return Refused("AUTOCDC_COLUMNS_NOT_FOUND_IN_SCHEMA",
                   "An AUTO CDC flow names columns that its source does not have: " + Join(unknown, ", ") + ".")
        .With("missingColumns", Join(unknown, ", "));
  }
  if (rules.scd_type == 2 && rules.truncates != nullptr) {
    return Refused("AUTOCDC_TRUNCATE_NOT_SUPPORTED", "APPLY AS TRUNCATE WHEN goes with SCD type 1 only.");
  }
  if (rules.scd_type == 1 && rules.track_history) {
    return Refused("AUTOCDC_TRACK_HISTORY_NOT_SUPPORTED", "TRACK HISTORY ON goes with SCD type 2 only.");
  }
  std::vector<StructField> fields;
  for (const StructField& field : source.fields()) {
    const bool selected = !rules.columns || Holds(rules.columns->names, field.name) != rules.columns->except;
    if (selected) {
      fields.push_back(field);
      fields.back().nullable = true;
    }
  }
  const types::Schema selected = types::DataType::Struct(fields);
  for (const std::string& key : rules.keys) {
    if (FindField(selected, key) == nullptr) {
      return Refused("AUTOCDC_KEY_NOT_IN_SELECTED_SCHEMA",
                     "The key column " + key + " of an AUTO CDC flow is not among its selected columns.")
          .With("keyColumn", key);
    }
  }
  FLEUVE_ASSIGN(const plan::PlanPtr marked, place.Analyze(*ChangeEvents(rules, events), names));
  if (rules.scd_type == 2) {
    const types::Schema all = plan::SchemaOf(*marked);
    for (const char* bound : {"__START_AT", "__END_AT"}) {
      fields.push_back({bound, FindField(all, kSequenceColumn)->type.AsNullable(), true, {}});
    }
  }
  return types::DataType::Struct(std::move(fields));
}

}  // namespace fleuve::pipelines
