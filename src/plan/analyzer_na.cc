#include <algorithm>
#include <set>

#include "plan/analyzer_internal.h"
#include "plan/proto_types.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

enum class ValueClass { kNumber, kText, kBoolean, kNull, kOther };

ValueClass ClassOf(const DataType& type) {
  if (type.IsNumeric()) {
    return ValueClass::kNumber;
  }
  if (type.IsString()) {
    return ValueClass::kText;
  }
  if (type.Is(TypeKind::kBoolean)) {
    return ValueClass::kBoolean;
  }
  return type.Is(TypeKind::kVoid) ? ValueClass::kNull : ValueClass::kOther;
}

}  // namespace

/// Positions of the named top-level columns; every visible one where there are no names.
Result<std::vector<std::size_t>> Analyzer::ColumnPositions(
    const PlanPtr& input, const google::protobuf::RepeatedPtrField<std::string>& names) {
  std::vector<std::size_t> positions;
  if (names.empty()) {
    for (std::size_t i = 0; i < input->output.size(); ++i) {
      if (!input->output[i].hidden) {
        positions.push_back(i);
      }
    }
    return positions;
  }
  for (const std::string& name : names) {
    FLEUVE_ASSIGN(std::vector<std::string> parts, SplitIdentifier(name));
    const Scope scope = ScopeOf(input);
    FLEUVE_ASSIGN(ExprPtr column, Name(parts, scope));
    if (column->kind != ExprKind::kAttribute) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_FEATURE.REPLACE_NESTED_COLUMN",
                   "The feature is not supported: The replace function does not support nested column " +
                       QuoteParts(parts) + ".");
    }
    for (std::size_t i = 0; i < input->output.size(); ++i) {
      if (input->output[i].id == column->attribute.id) {
        positions.push_back(i);
        break;
      }
    }
  }
  return positions;
}

Result<PlanPtr> Analyzer::FillNa(const sc::NAFill& fill) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(fill.input()));
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, fill.cols()));
  if (fill.values().empty() || (fill.values_size() > 1 && fill.values_size() != fill.cols_size())) {
    return Error(ErrorKind::kInvalidArgument, "CONNECT_INVALID_PLAN.NA_FILL_VALUES_LENGTH_MISMATCH",
                 "When values contains more than 1 items, values and cols should have the same length.");
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output = input->output;
  for (const Attribute& attribute : output) {
    exprs.push_back(AttributeExpr(attribute));
  }
  for (std::size_t k = 0; k < positions.size(); ++k) {
    const std::size_t i = positions[k];
    FLEUVE_ASSIGN(ExprPtr value, LiteralFromProto(fill.values(fill.values_size() == 1 ? 0 : static_cast<int>(k))));
    const Attribute attribute = output[i];
    if (ClassOf(value->type) == ValueClass::kOther || ClassOf(value->type) == ValueClass::kNull) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                   "Unsupported value type " + value->type.SimpleString() + " (" + value->display + ").")
          .Family(ErrorFamily::kIllegalArgument);
    }
    if (ClassOf(attribute.type) != ClassOf(value->type)) {
      continue;
    }
    ExprPtr column = AttributeExpr(attribute);
    if (attribute.type.Is(TypeKind::kDouble) || attribute.type.Is(TypeKind::kFloat)) {
      FLEUVE_ASSIGN(column, Call("nanvl", {column, MakeNull(attribute.type)}));
    }
    FLEUVE_ASSIGN(ExprPtr replacement, MakeCast(value, attribute.type, CastMode::kLegacy, config_));
    FLEUVE_ASSIGN(ExprPtr filled, Call("coalesce", {column, replacement}));
    FLEUVE_ASSIGN(filled, MakeCast(filled, attribute.type, CastMode::kLegacy, config_));
    exprs[i] = filled;
    output[i].id = NewAttributeId();
    output[i].nullable = filled->nullable;
    output[i].qualifier.clear();
  }
  return MakeProject(std::move(input), std::move(exprs), std::move(output));
}

Result<PlanPtr> Analyzer::DropNa(const sc::NADrop& drop) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(drop.input()));
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, drop.cols()));
  std::vector<ExprPtr> present;
  for (const std::size_t i : positions) {
    const Attribute& attribute = input->output[i];
    FLEUVE_ASSIGN(ExprPtr valid, Call("isnotnull", {AttributeExpr(attribute)}));
    if (attribute.type.Is(TypeKind::kDouble) || attribute.type.Is(TypeKind::kFloat)) {
      FLEUVE_ASSIGN(ExprPtr nan, Call("isnan", {AttributeExpr(attribute)}));
      FLEUVE_ASSIGN(ExprPtr no_nan, Call("not", {nan}));
      valid = MakeAnd(valid, no_nan);
    }
    present.push_back(std::move(valid));
  }
  const std::int64_t needed =
      drop.has_min_non_nulls() ? drop.min_non_nulls() : static_cast<std::int64_t>(present.size());
  if (needed <= 0 || present.empty()) {
    return input;
  }
  ExprPtr condition;
  if (needed == static_cast<std::int64_t>(present.size())) {
    for (const ExprPtr& valid : present) {
      condition = condition == nullptr ? valid : MakeAnd(condition, valid);
    }
  } else if (needed == 1) {
    for (const ExprPtr& valid : present) {
      if (condition == nullptr) {
        condition = valid;
      } else {
        FLEUVE_ASSIGN(condition, Call("or", {condition, valid}));
      }
    }
  } else {
    ExprPtr sum;
    for (const ExprPtr& valid : present) {
      ExprPtr one = MakeCase({valid, MakeLiteral(types::Value(1), DataType::Int())}, false, DataType::Int());
      one = MakeCase(
          {valid, MakeLiteral(types::Value(1), DataType::Int()), MakeLiteral(types::Value(0), DataType::Int())}, true,
          DataType::Int());
      if (sum == nullptr) {
        sum = one;
      } else {
        FLEUVE_ASSIGN(sum, Call("+", {sum, one}));
      }
    }
    FLEUVE_ASSIGN(condition, Call(">=", {sum, MakeLiteral(types::Value(needed), DataType::Int())}));
  }
  return MakeFilter(std::move(input), std::move(condition));
}

Result<PlanPtr> Analyzer::Replace(const sc::NAReplace& replace) {
  FLEUVE_ASSIGN(PlanPtr input, Relation(replace.input()));
  google::protobuf::RepeatedPtrField<std::string> names;
  for (const std::string& name : replace.cols()) {
    if (name != "*") {
      *names.Add() = name;
    }
  }
  FLEUVE_ASSIGN(std::vector<std::size_t> positions, ColumnPositions(input, names));
  std::vector<std::pair<ExprPtr, ExprPtr>> pairs;
  ValueClass wanted = ValueClass::kNull;
  for (const auto& replacement : replace.replacements()) {
    FLEUVE_ASSIGN(ExprPtr from, LiteralFromProto(replacement.old_value()));
    FLEUVE_ASSIGN(ExprPtr to, LiteralFromProto(replacement.new_value()));
    for (const ExprPtr& value : {from, to}) {
      const ValueClass which = ClassOf(value->type);
      if (which == ValueClass::kOther) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE",
                     "Unsupported value type " + value->type.SimpleString() + " (" + value->display + ").")
            .Family(ErrorFamily::kIllegalArgument);
      }
      wanted = wanted == ValueClass::kNull && !value->value.is_null() ? which : wanted;
    }
    pairs.emplace_back(std::move(from), std::move(to));
  }
  if (pairs.empty()) {
    return input;
  }
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output = input->output;
  for (const Attribute& attribute : output) {
    exprs.push_back(AttributeExpr(attribute));
  }
  for (const std::size_t i : positions) {
    const Attribute attribute = output[i];
    if (ClassOf(attribute.type) != wanted) {
      continue;
    }
    const ExprPtr column = AttributeExpr(attribute);
    std::vector<ExprPtr> branches;
    for (const auto& [from, to] : pairs) {
      ExprPtr condition;
      if (from->value.is_null()) {
        FLEUVE_ASSIGN(condition, Call("isnull", {column}));
      } else {
        FLEUVE_ASSIGN(condition, Call("==", {column, from}));
      }
      FLEUVE_ASSIGN(ExprPtr value, MakeCast(to, attribute.type, CastMode::kLegacy, config_));
      branches.push_back(std::move(condition));
      branches.push_back(std::move(value));
    }
    branches.push_back(column);
    exprs[i] = MakeCase(std::move(branches), true, attribute.type);
    output[i].id = NewAttributeId();
    output[i].nullable = exprs[i]->nullable;
    output[i].qualifier.clear();
  }
  return MakeProject(std::move(input), std::move(exprs), std::move(output));
}

}  // namespace fleuve::plan
