#include <algorithm>

#include "plan/analyzer_internal.h"

namespace fleuve::plan {

using types::DataType;
using types::TypeKind;

Result<void> CheckComparable(const PlanPtr& plan);

namespace {

/// Equal but for the names of struct fields (and nullability).
bool SameShape(const DataType& a, const DataType& b) {
  if (a.kind() != b.kind()) {
    return false;
  }
  switch (a.kind()) {
    case TypeKind::kArray:
      return SameShape(a.element(), b.element());
    case TypeKind::kMap:
      return SameShape(a.key(), b.key()) && SameShape(a.value(), b.value());
    case TypeKind::kStruct: {
      if (a.fields().size() != b.fields().size()) {
        return false;
      }
      for (std::size_t i = 0; i < a.fields().size(); ++i) {
        if (!SameShape(a.fields()[i].type, b.fields()[i].type)) {
          return false;
        }
      }
      return true;
    }
    default:
      return a.EqualsIgnoringNullability(b);
  }
}

/// The type with every part nullable where either says so; the shapes are equal.
DataType MergeNullability(const DataType& a, const DataType& b) { return a == b ? a : a.AsNullable(); }

}  // namespace

Result<PlanPtr> Analyzer::CastColumns(const PlanPtr& plan, const std::vector<DataType>& types) {
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output = plan->output;
  bool changed = false;
  for (std::size_t i = 0; i < output.size(); ++i) {
    ExprPtr expr = AttributeExpr(output[i]);
    if (!output[i].type.EqualsIgnoringNullability(types[i])) {
      FLEUVE_ASSIGN(expr, MakeCast(expr, types[i], config_));
      output[i].id = NewAttributeId();
      output[i].type = expr->type;
      output[i].nullable = expr->nullable;
      output[i].qualifier.clear();
      changed = true;
    }
    exprs.push_back(std::move(expr));
  }
  return changed ? MakeProject(plan, std::move(exprs), std::move(output)) : plan;
}

Result<std::vector<PlanPtr>> Analyzer::WidenInputs(std::vector<PlanPtr> inputs, const std::string& operation) {
  const std::size_t width = inputs.front()->output.size();
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i]->output.size() != width) {
      return Error(ErrorKind::kInvalidArgument, "NUM_COLUMNS_MISMATCH",
                   operation +
                       " can only be performed on inputs with the same number of columns, but the first input "
                       "has " +
                       std::to_string(width) + " columns and the " + (i == 1 ? "second" : std::to_string(i + 1)) +
                       " input has " + std::to_string(inputs[i]->output.size()) + " columns.")
          .With("operator", operation)
          .With("firstNumColumns", std::to_string(width))
          .With("invalidOrdinalNum", i == 1 ? "second" : std::to_string(i + 1))
          .With("invalidNumColumns", std::to_string(inputs[i]->output.size()));
    }
  }
  std::vector<DataType> wanted;
  for (std::size_t column = 0; column < width; ++column) {
    DataType type = inputs.front()->output[column].type;
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const DataType& other = inputs[i]->output[column].type;
      if (type.EqualsIgnoringNullability(other)) {
        type = MergeNullability(type, other);
        continue;
      }
      if (SameShape(type, other)) {
        type = type.AsNullable();
        continue;
      }
      const std::optional<DataType> wider = WiderType(type, other, config_);
      if (!wider) {
        return Error(ErrorKind::kInvalidArgument, "INCOMPATIBLE_COLUMN_TYPE",
                     operation + " can only be performed on tables with compatible column types. The " +
                         std::to_string(column + 1) + "th column of the " +
                         (i == 1 ? "second" : std::to_string(i + 1)) + " table is " + TypesSql(other) +
                         " type which is not compatible with " + TypesSql(type) +
                         " at the same column of the first table.")
            .With("operator", operation)
            .With("columnOrdinalNumber", std::to_string(column + 1))
            .With("tableOrdinalNumber", i == 1 ? "second" : std::to_string(i + 1))
            .With("dataType1", TypesSql(other))
            .With("dataType2", TypesSql(type))
            .With("hint", "");
      }
      type = *wider;
    }
    wanted.push_back(std::move(type));
  }
  for (PlanPtr& input : inputs) {
    FLEUVE_ASSIGN(input, CastColumns(input, wanted));
  }
  return inputs;
}

Result<PlanPtr> Analyzer::Union(std::vector<PlanPtr> inputs) {
  FLEUVE_ASSIGN(inputs, WidenInputs(std::move(inputs), "UNION"));
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kUnion;
  plan->all = true;
  plan->output = inputs.front()->output;
  for (std::size_t i = 0; i < plan->output.size(); ++i) {
    plan->output[i].qualifier.clear();
    for (const PlanPtr& input : inputs) {
      plan->output[i].nullable = plan->output[i].nullable || input->output[i].nullable;
      plan->output[i].type = MergeNullability(plan->output[i].type, input->output[i].type);
    }
  }
  for (const PlanPtr& input : inputs) {
    plan->is_streaming = plan->is_streaming || input->is_streaming;
  }
  plan->children = std::move(inputs);
  return PlanPtr(std::move(plan));
}

Result<ExprPtr> Analyzer::WithFields(const ExprPtr& expr, const DataType& target) {
  if (!target.Is(TypeKind::kStruct) || !expr->type.Is(TypeKind::kStruct)) {
    return expr;
  }
  std::vector<ExprPtr> parts;
  for (const types::StructField& field : target.fields()) {
    const std::optional<std::size_t> ordinal = types::FieldIndex(expr->type, field.name, config_.case_sensitive);
    ExprPtr part;
    if (ordinal) {
      FLEUVE_ASSIGN(part, WithFields(MakeGetField(expr, static_cast<int>(*ordinal)), field.type));
    } else {
      part = MakeNull(field.type);
    }
    parts.push_back(MakeLiteral(types::Value(field.name), DataType::String()));
    parts.push_back(std::move(part));
  }
  FLEUVE_ASSIGN(ExprPtr made, Call("named_struct", std::move(parts)));
  if (!expr->nullable) {
    return made;
  }
  FLEUVE_ASSIGN(ExprPtr is_null, Call("isnull", {expr}));
  return MakeCase({is_null, MakeNull(made->type), made}, true, made->type);
}

Result<void> Analyzer::MatchFields(PlanPtr& left, PlanPtr& right, bool allow_missing) {
  const bool case_sensitive = config_.case_sensitive;
  // The fields of the left type in their order, then those that only the right one has.
  const std::function<std::optional<DataType>(const DataType&, const DataType&)> merge =
      [&](const DataType& a, const DataType& b) -> std::optional<DataType> {
    if (!a.Is(TypeKind::kStruct) || !b.Is(TypeKind::kStruct)) {
      return a;
    }
    std::vector<types::StructField> fields;
    for (const types::StructField& field : a.fields()) {
      const std::optional<std::size_t> other = types::FieldIndex(b, field.name, case_sensitive);
      if (!other && !allow_missing) {
        return std::nullopt;
      }
      fields.push_back(field);
      if (!other) {
        fields.back().nullable = true;
        continue;
      }
      const std::optional<DataType> merged = merge(field.type, b.fields()[*other].type);
      if (!merged) {
        return std::nullopt;
      }
      fields.back().type = *merged;
      fields.back().nullable = field.nullable || b.fields()[*other].nullable;
    }
    for (const types::StructField& field : b.fields()) {
      if (types::FieldIndex(a, field.name, case_sensitive)) {
        continue;
      }
      if (!allow_missing) {
        return std::nullopt;
      }
      fields.push_back(field);
      fields.back().nullable = true;
    }
    return DataType::Struct(std::move(fields));
  };
  PlanPtr* sides[] = {&left, &right};
  std::vector<std::optional<DataType>> wanted(left->output.size());
  for (std::size_t i = 0; i < wanted.size() && i < right->output.size(); ++i) {
    const DataType& a = left->output[i].type;
    const DataType& b = right->output[i].type;
    if (a.Is(TypeKind::kStruct) && b.Is(TypeKind::kStruct) && !a.EqualsIgnoringNullability(b)) {
      wanted[i] = merge(a, b);
    }
  }
  for (PlanPtr* side : sides) {
    std::vector<ExprPtr> exprs;
    std::vector<Attribute> output = (*side)->output;
    bool changed = false;
    for (std::size_t i = 0; i < output.size(); ++i) {
      ExprPtr expr = AttributeExpr(output[i]);
      const bool has_target = i < wanted.size() && wanted[i].has_value();
      bool same_names = has_target && wanted[i]->fields().size() == output[i].type.fields().size();
      for (std::size_t f = 0; same_names && f < wanted[i]->fields().size(); ++f) {
        same_names = wanted[i]->fields()[f].name == output[i].type.fields()[f].name &&
                     !wanted[i]->fields()[f].type.Is(TypeKind::kStruct);
      }
      if (has_target && !same_names) {
        FLEUVE_ASSIGN(expr, WithFields(expr, *wanted[i]));
        output[i].id = NewAttributeId();
        output[i].type = expr->type;
        output[i].nullable = expr->nullable;
        output[i].qualifier.clear();
        changed = true;
      }
      exprs.push_back(std::move(expr));
    }
    if (changed) {
      *side = MakeProject(*side, std::move(exprs), std::move(output));
    }
  }
  return {};
}

Result<PlanPtr> Analyzer::SetOperation(const sc::SetOperation& set) {
  FLEUVE_ASSIGN(PlanPtr left, Relation(set.left_input()));
  FLEUVE_ASSIGN(PlanPtr right, Relation(set.right_input()));
  left = WithoutHidden(left);
  right = WithoutHidden(right);
  const char* name = set.set_op_type() == sc::SetOperation::SET_OP_TYPE_INTERSECT ? "INTERSECT"
                     : set.set_op_type() == sc::SetOperation::SET_OP_TYPE_EXCEPT  ? "EXCEPT"
                                                                                  : "UNION";
  if (set.by_name()) {
    std::vector<Attribute> missing_left;
    std::vector<ExprPtr> exprs;
    std::vector<Attribute> output;
    std::vector<bool> used(right->output.size(), false);
    const auto duplicate = [this](const PlanPtr& plan) -> Result<void> {
      for (std::size_t i = 0; i < plan->output.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
          if (EqualNames(plan->output[i].name, plan->output[j].name, config_.case_sensitive)) {
            return Error(ErrorKind::kInvalidArgument, "COLUMN_ALREADY_EXISTS",
                         "The column " + QuoteParts({plan->output[i].name}) +
                             " already exists. Choose another name or rename the existing column.")
                .With("columnName", QuoteParts({plan->output[i].name}));
          }
        }
      }
      return {};
    };
    FLEUVE_TRY(duplicate(left));
    FLEUVE_TRY(duplicate(right));
    for (const Attribute& attribute : left->output) {
      std::size_t i = 0;
      while (i < right->output.size() && !EqualNames(right->output[i].name, attribute.name, config_.case_sensitive)) {
        ++i;
      }
      if (i < right->output.size()) {
        used[i] = true;
        exprs.push_back(AttributeExpr(right->output[i]));
        output.push_back(right->output[i]);
        continue;
      }
      if (!set.allow_missing_columns()) {
        std::string names;
        for (const Attribute& other : right->output) {
          names += (names.empty() ? "" : ", ") + other.name;
        }
        return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1201",
                     "Cannot resolve column name \"" + attribute.name + "\" among (" + names + ").")
            .Family(ErrorFamily::kAnalysis)
            .With("colName", attribute.name)
            .With("fieldNames", names);
      }
      exprs.push_back(MakeNull(attribute.type));
      output.push_back(attribute);
      output.back().id = NewAttributeId();
      output.back().nullable = true;
    }
    std::vector<ExprPtr> left_exprs;
    std::vector<Attribute> left_output = left->output;
    for (const Attribute& attribute : left->output) {
      left_exprs.push_back(AttributeExpr(attribute));
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (used[i]) {
        continue;
      }
      if (!set.allow_missing_columns()) {
        return Error(ErrorKind::kInvalidArgument, "NUM_COLUMNS_MISMATCH",
                     std::string(name) + " can only be performed on inputs with the same number of columns.")
            .With("operator", name);
      }
      exprs.push_back(AttributeExpr(right->output[i]));
      output.push_back(right->output[i]);
      left_exprs.push_back(MakeNull(right->output[i].type));
      left_output.push_back(right->output[i]);
      left_output.back().id = NewAttributeId();
      left_output.back().nullable = true;
      left_output.back().qualifier.clear();
    }
    right = MakeProject(std::move(right), std::move(exprs), std::move(output));
    if (left_output.size() != left->output.size()) {
      left = MakeProject(std::move(left), std::move(left_exprs), std::move(left_output));
    }
    FLEUVE_TRY(MatchFields(left, right, set.allow_missing_columns()));
  }
  if (set.set_op_type() == sc::SetOperation::SET_OP_TYPE_UNION) {
    FLEUVE_ASSIGN(PlanPtr all, Union({std::move(left), std::move(right)}));
    if (!set.has_is_all() || set.is_all()) {
      return all;
    }
    return DistinctRows(std::move(all));
  }
  auto plan = std::make_shared<LogicalPlan>();
  switch (set.set_op_type()) {
    case sc::SetOperation::SET_OP_TYPE_INTERSECT:
      plan->kind = PlanKind::kIntersect;
      break;
    case sc::SetOperation::SET_OP_TYPE_EXCEPT:
      plan->kind = PlanKind::kExcept;
      break;
    default:
      return Error::Unsupported("a set operation of type " + std::to_string(set.set_op_type()));
  }
  plan->all = set.is_all();
  FLEUVE_ASSIGN(std::vector<PlanPtr> inputs,
                WidenInputs({std::move(left), std::move(right)}, std::string(name) + (plan->all ? " ALL" : "")));
  FLEUVE_TRY(CheckComparable(inputs[0]));
  FLEUVE_TRY(CheckComparable(inputs[1]));
  plan->is_streaming = inputs[0]->is_streaming || inputs[1]->is_streaming;
  plan->output = inputs[0]->output;
  for (std::size_t i = 0; i < plan->output.size(); ++i) {
    Attribute& attribute = plan->output[i];
    attribute.qualifier.clear();
    attribute.type = MergeNullability(attribute.type, inputs[1]->output[i].type);
    if (plan->kind == PlanKind::kIntersect) {
      attribute.nullable = attribute.nullable && inputs[1]->output[i].nullable;
    }
  }
  plan->children = std::move(inputs);
  return PlanPtr(std::move(plan));
}

}  // namespace fleuve::plan
