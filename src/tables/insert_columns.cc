#include <algorithm>
#include <map>
#include <set>

#include "base/bytes.h"
#include "plan/coercion.h"
#include "plan/function_builder.h"
#include "tables/data_files_internal.h"
#include "tables/identity_internal.h"
#include "tables/insert_columns_internal.h"
#include "tables/schema_internal.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::StructField;

namespace {

std::vector<const plan::Attribute*> Visible(const plan::PlanPtr& plan) {
  std::vector<const plan::Attribute*> out;
  for (const plan::Attribute& attribute : plan->output) {
    if (!attribute.hidden) {
      out.push_back(&attribute);
    }
  }
  return out;
}

Error ArityMismatch(std::size_t data, std::size_t table) {
  return Error(ErrorKind::kInvalidArgument, "DELTA_INSERT_COLUMN_ARITY_MISMATCH",
               "Cannot write to the table: it expects " + std::to_string(table) + " columns, the data has " +
                   std::to_string(data) + ".")
      .With("numColumns", std::to_string(table))
      .With("insertColumns", std::to_string(data));
}

Error UnknownColumn(const std::string& name, const types::Schema& schema) {
  std::string all;
  for (const StructField& field : schema.fields()) {
    all += (all.empty() ? "`" : ", `") + field.name + "`";
  }
  return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_COLUMN.WITH_SUGGESTION",
               "A column with the name `" + name + "` cannot be resolved. The table has " + all + ".")
      .With("objectName", "`" + name + "`")
      .With("proposal", all);
}

bool Narrows(const types::DataType& from, const types::DataType& to) {
  if (from.IsNested() && to.IsNested()) {
    return true;
  }
  return from.IsNumeric() && to.IsNumeric() && !(from == to);
}

/// A struct by position keeps a surplus of fields as the data has it, so that the schema check can name it.
Result<ExprPtr> Assign(const ExprPtr& value, const StructField& field, bool by_name,
                       const plan::AnalysisConfig& config) {
  if (field.type.Is(types::TypeKind::kStruct) && value->type.Is(types::TypeKind::kStruct) && by_name) {
    const auto& have = value->type.fields();
    for (const StructField& inner : have) {
      if (!types::FieldIndex(field.type, inner.name)) {
        return value;  // left to the schema merge
      }
    }
    if (have.size() < field.type.fields().size()) {
      return ArityMismatch(have.size(), field.type.fields().size());
    }
  }
  return AlignExpr(value, field.type, by_name, config);
}

}  // namespace

Result<std::vector<NamedColumn>> ResolveInputColumns(const plan::PlanPtr& input, const types::Schema* schema,
                                                     const std::vector<std::string>& partition_columns,
                                                     const WriteSpec& spec, const plan::AnalysisConfig& config,
                                                     bool widens, bool* narrows) {
  const std::vector<const plan::Attribute*> visible = Visible(input);
  std::vector<NamedColumn> columns;
  *narrows = false;
  const bool assigns =
      schema != nullptr && !spec.stream && (spec.store_assignment || spec.match == ColumnMatch::kByPosition);
  if (!assigns) {
    for (const plan::Attribute* attribute : visible) {
      columns.push_back({attribute->name, plan::MakeAttribute(*attribute)});
    }
    return columns;
  }
  // Constants of PARTITION (p = 1).
  std::set<std::string> constant;
  for (const auto& [name, value] : spec.static_partitions) {
    const auto at = types::FieldIndex(*schema, name);
    if (!at) {
      return UnknownColumn(name, *schema);
    }
    const StructField& field = schema->fields()[*at];
    const bool is_partition = std::any_of(partition_columns.begin(), partition_columns.end(),
                                          [&name = name](const auto& p) { return EqualsIgnoreAsciiCase(p, name); });
    if (!is_partition) {
      return Error(ErrorKind::kInvalidArgument, "NON_PARTITION_COLUMN",
                   "PARTITION clause cannot contain the non-partition column: `" + name + "`.");
    }
    if (value) {
      types::DataType type = types::DataType::String();
      try {
        (void)value->integer();
        type = types::DataType::Long();
      } catch (const std::bad_variant_access&) {
        try {
          (void)value->boolean();
          type = types::DataType::Boolean();
        } catch (const std::bad_variant_access&) {
          try {
            (void)value->real();
            type = types::DataType::Double();
          } catch (const std::bad_variant_access&) {
          }
        }
      }
      ExprPtr literal = value->is_null() ? plan::MakeNull(field.type) : plan::MakeLiteral(*value, type);
      FLEUVE_ASSIGN(literal, AlignExpr(literal, field.type, true, config));
      columns.push_back({field.name, std::move(literal)});
      constant.insert(AsciiLower(field.name));
    }
  }
  const auto add = [&](const StructField& field, const plan::Attribute& attribute, bool by_name) -> Result<void> {
    if (widens && MayWidenAutomatically(field.type, attribute.type, config)) {
      columns.push_back({field.name, plan::MakeAttribute(attribute)});
      return {};
    }
    *narrows = *narrows || Narrows(attribute.type, field.type);
    FLEUVE_ASSIGN(ExprPtr value, Assign(plan::MakeAttribute(attribute), field, by_name, config));
    columns.push_back({field.name, std::move(value)});
    return {};
  };
  if (!spec.insert_columns.empty()) {
    std::set<std::string> seen;
    std::vector<const StructField*> targets;
    for (const std::string& name : spec.insert_columns) {
      const auto at = types::FieldIndex(*schema, name);
      if (!at) {
        return UnknownColumn(name, *schema);
      }
      if (!seen.insert(AsciiLower(name)).second) {
        return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                     "The column `" + name + "` stands more than once in the column list.")
            .With("columnName", "`" + name + "`");
      }
      targets.push_back(&schema->fields()[*at]);
    }
    if (targets.size() != visible.size()) {
      return Error(ErrorKind::kInvalidArgument,
                   targets.size() > visible.size() ? "INSERT_COLUMN_ARITY_MISMATCH.NOT_ENOUGH_DATA_COLUMNS"
                                                   : "INSERT_COLUMN_ARITY_MISMATCH.TOO_MANY_DATA_COLUMNS",
                   "The column list names " + std::to_string(targets.size()) + " columns, the data has " +
                       std::to_string(visible.size()) + ".");
    }
    for (std::size_t i = 0; i < targets.size(); ++i) {
      FLEUVE_TRY(add(*targets[i], *visible[i], false));
    }
    return columns;
  }
  if (spec.match == ColumnMatch::kByPosition) {
    std::vector<const StructField*> targets;
    for (const StructField& field : schema->fields()) {
      if (!constant.contains(AsciiLower(field.name))) {
        targets.push_back(&field);
      }
    }
    // Generated and defaulted columns at the end may be left out.
    if (visible.size() < targets.size()) {
      return ArityMismatch(visible.size() + constant.size(), schema->fields().size());
    }
    for (std::size_t i = 0; i < visible.size(); ++i) {
      if (i < targets.size()) {
        FLEUVE_TRY(add(*targets[i], *visible[i], false));
      } else {
        columns.push_back({visible[i]->name, plan::MakeAttribute(*visible[i])});
      }
    }
    return columns;
  }
  for (const plan::Attribute* attribute : visible) {
    const auto at = types::FieldIndex(*schema, attribute->name);
    if (at) {
      FLEUVE_TRY(add(schema->fields()[*at], *attribute, true));
    } else {
      columns.push_back({attribute->name, plan::MakeAttribute(*attribute)});
    }
  }
  return columns;
}

Result<plan::PlanPtr> FillColumns(const plan::PlanPtr& input, const std::vector<NamedColumn>& columns,
                                  const types::Schema& schema, const plan::AnalysisConfig& config, bool identities) {
  FLEUVE_ASSIGN(const std::vector<std::size_t> counted, GeneratedIdentities(columns, schema));
  const auto find = [&](const std::string& name) -> const NamedColumn* {
    for (const NamedColumn& column : columns) {
      if (EqualsIgnoreAsciiCase(column.name, name)) {
        return &column;
      }
    }
    return nullptr;
  };
  std::vector<ExprPtr> exprs;
  std::vector<std::size_t> generated;
  for (std::size_t i = 0; i < schema.fields().size(); ++i) {
    const StructField& field = schema.fields()[i];
    if (const NamedColumn* column = find(field.name)) {
      FLEUVE_ASSIGN(ExprPtr value, AlignExpr(column->value, field.type, true, config));
      exprs.push_back(std::move(value));
      continue;
    }
    if (FieldText(field, "delta.generationExpression") != nullptr) {
      generated.push_back(i);
      exprs.push_back(plan::MakeNull(field.type));
      continue;
    }
    if (const std::string* sql = FieldText(field, "CURRENT_DEFAULT")) {
      auto one_row = std::make_shared<plan::LogicalPlan>();
      one_row->kind = plan::PlanKind::kOneRow;
      FLEUVE_ASSIGN(ExprPtr value, AnalyzeSql(*sql, one_row, config));
      FLEUVE_ASSIGN(value, AlignExpr(value, field.type, true, config));
      exprs.push_back(std::move(value));
      continue;
    }
    exprs.push_back(plan::MakeNull(field.type));
  }
  plan::PlanPtr plan = ProjectTo(input, std::move(exprs), schema);
  if (identities) {
    plan = FillIdentities(plan, schema, counted);
  }
  if (!generated.empty()) {
    // Generated columns see the others as they will be stored.
    std::vector<ExprPtr> with;
    for (const plan::Attribute& attribute : plan->output) {
      with.push_back(plan::MakeAttribute(attribute));
    }
    for (const std::size_t i : generated) {
      const StructField& field = schema.fields()[i];
      FLEUVE_ASSIGN(ExprPtr value, AnalyzeSql(*FieldText(field, "delta.generationExpression"), plan, config));
      FLEUVE_ASSIGN(value, AlignExpr(value, field.type, true, config));
      with[i] = std::move(value);
    }
    plan = ProjectTo(plan, std::move(with), schema);
  }
  return plan;
}

}  // namespace fleuve::tables
