#include <algorithm>
#include <set>

#include "plan/analyzer_internal.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

const Attribute* FindVisible(const std::vector<Attribute>& columns, const std::string& name, bool case_sensitive,
                             int* matches) {
  const Attribute* found = nullptr;
  *matches = 0;
  for (const Attribute& attribute : columns) {
    if (!attribute.hidden && EqualNames(attribute.name, name, case_sensitive)) {
      found = found == nullptr ? &attribute : found;
      ++*matches;
    }
  }
  return found;
}

Result<JoinType> TypeOf(sc::Join_JoinType type) {
  switch (type) {
    case sc::Join::JOIN_TYPE_INNER:
      return JoinType::kInner;
    case sc::Join::JOIN_TYPE_FULL_OUTER:
      return JoinType::kFull;
    case sc::Join::JOIN_TYPE_LEFT_OUTER:
      return JoinType::kLeft;
    case sc::Join::JOIN_TYPE_RIGHT_OUTER:
      return JoinType::kRight;
    case sc::Join::JOIN_TYPE_LEFT_ANTI:
      return JoinType::kLeftAnti;
    case sc::Join::JOIN_TYPE_LEFT_SEMI:
      return JoinType::kLeftSemi;
    case sc::Join::JOIN_TYPE_CROSS:
      return JoinType::kCross;
    default:
      return Error::Unsupported("a join of type " + std::to_string(type));
  }
}

}  // namespace

Result<PlanPtr> Analyzer::Join(const sc::Join& join, bool natural) {
  if (join.has_join_data_type()) {
    return Error::Unsupported("joinWith of typed datasets");
  }
  FLEUVE_ASSIGN(PlanPtr left, Relation(join.left()));
  FLEUVE_ASSIGN(PlanPtr right, Relation(join.right()));
  return JoinOver(std::move(left), std::move(right), join.join_type(),
                  join.has_join_condition() ? &join.join_condition() : nullptr,
                  std::vector<std::string>(join.using_columns().begin(), join.using_columns().end()), natural, false);
}

Result<PlanPtr> Analyzer::LateralJoin(const sc::LateralJoin& join) {
  FLEUVE_ASSIGN(PlanPtr left, Relation(join.left()));
  const Scope scope = ScopeOf(left);
  outer_scopes_.push_back(&scope);
  Result<PlanPtr> right = Relation(join.right());
  outer_scopes_.pop_back();
  if (!right.ok()) {
    return std::move(right).error();
  }
  switch (join.join_type()) {
    case sc::Join::JOIN_TYPE_INNER:
    case sc::Join::JOIN_TYPE_LEFT_OUTER:
    case sc::Join::JOIN_TYPE_CROSS:
      break;
    default:
      return Error(ErrorKind::kInvalidArgument, "INVALID_LATERAL_JOIN_TYPE",
                   "The lateral join cannot be used with this join type: only inner, left outer and cross joins can be "
                   "lateral.");
  }
  sc::Join_JoinType type = join.join_type();
  if (type == sc::Join::JOIN_TYPE_LEFT_OUTER && !join.has_join_condition()) {
    // Beside a bare generator Spark keeps only the rows for which the generator gives some.
    PlanPtr source = *right;
    while (source->kind == PlanKind::kProject) {
      source = source->children.front();
    }
    const bool generator = source->kind == PlanKind::kGenerate || source->kind == PlanKind::kExternal;
    if (generator && source->children.front()->kind == PlanKind::kOneRow) {
      type = sc::Join::JOIN_TYPE_INNER;
    }
  }
  return JoinOver(std::move(left), *std::move(right), type,
                  join.has_join_condition() ? &join.join_condition() : nullptr, {}, false, true);
}

Result<PlanPtr> Analyzer::JoinOver(PlanPtr left, PlanPtr right, sc::Join_JoinType proto_type,
                                   const sc::Expression* condition, std::vector<std::string> using_columns,
                                   bool natural, bool lateral) {
  FLEUVE_ASSIGN(JoinType type, TypeOf(proto_type));
  const bool left_only = type == JoinType::kLeftSemi || type == JoinType::kLeftAnti;
  if (natural) {
    for (const Attribute& attribute : left->output) {
      int matches = 0;
      if (!attribute.hidden &&
          FindVisible(right->output, attribute.name, config_.case_sensitive, &matches) != nullptr) {
        using_columns.push_back(attribute.name);
      }
    }
  }
  auto plan = std::make_shared<LogicalPlan>();
  plan->kind = PlanKind::kJoin;
  plan->lateral = lateral;
  plan->is_streaming = left->is_streaming || right->is_streaming;
  std::vector<Attribute> both = left->output;
  both.insert(both.end(), right->output.begin(), right->output.end());
  ExprPtr on;
  std::vector<ExprPtr> left_keys;
  std::vector<ExprPtr> right_keys;
  for (const std::string& name : using_columns) {
    const std::vector<Attribute>* sides[] = {&left->output, &right->output};
    ExprPtr keys[2];
    for (int side = 0; side < 2; ++side) {
      int matches = 0;
      const Attribute* found = FindVisible(*sides[side], name, config_.case_sensitive, &matches);
      if (found == nullptr) {
        std::string names;
        for (const Attribute& attribute : *sides[side]) {
          if (!attribute.hidden) {
            names += (names.empty() ? "" : ", ") + QuoteParts({attribute.name});
          }
        }
        return Error(ErrorKind::kInvalidArgument, "UNRESOLVED_USING_COLUMN_FOR_JOIN",
                     "USING column " + QuoteParts({name}) + " cannot be resolved on the " +
                         (side == 0 ? "left" : "right") + " side of the join. The " + (side == 0 ? "left" : "right") +
                         "-side columns: [" + names + "].")
            .With("colName", QuoteParts({name}))
            .With("side", side == 0 ? "left" : "right")
            .With("suggestion", names);
      }
      if (matches > 1) {
        return Error(ErrorKind::kInvalidArgument, "AMBIGUOUS_REFERENCE",
                     "Reference " + QuoteParts({name}) + " is ambiguous.")
            .With("name", QuoteParts({name}));
      }
      Attribute named = *found;
      keys[side] = MakeAttribute(named);
    }
    FLEUVE_ASSIGN(ExprPtr equal, Call("==", {keys[0], keys[1]}));
    on = on == nullptr ? equal : MakeAnd(on, equal);
    left_keys.push_back(keys[0]);
    right_keys.push_back(keys[1]);
  }
  if (condition != nullptr) {
    Scope scope;
    scope.tiers.push_back(&both);
    FLEUVE_ASSIGN(ExprPtr made, Expression(*condition, scope));
    if (HasAggregate(made) || HasWindow(made)) {
      return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_EXPR_FOR_OPERATOR",
                   "A query operator contains one or more unsupported expressions: a join condition cannot hold "
                   "aggregate or window functions.");
    }
    if (!made->type.Is(TypeKind::kBoolean) && !made->type.Is(TypeKind::kVoid)) {
      return Error(ErrorKind::kInvalidArgument, "JOIN_CONDITION_IS_NOT_BOOLEAN_TYPE",
                   "The join condition \"" + made->display + "\" has the invalid type " + TypesSql(made->type) +
                       ", expected \"BOOLEAN\".")
          .With("joinCondition", "\"" + made->display + "\"")
          .With("conditionType", TypesSql(made->type));
    }
    if (!made->deterministic) {
      return Error(ErrorKind::kInvalidArgument, "INVALID_NON_DETERMINISTIC_EXPRESSIONS",
                   "The join condition \"" + made->display + "\" is not deterministic.")
          .With("sqlExprs", "\"" + made->display + "\"")
          .Family(ErrorFamily::kAnalysis);
    }
    FLEUVE_ASSIGN(made, AsBoolean(made, "Join"));
    on = on == nullptr ? made : MakeAnd(on, made);
  }
  if (type == JoinType::kCross && on != nullptr) {
    type = JoinType::kInner;
  }
  if (type == JoinType::kInner && on == nullptr) {
    type = JoinType::kCross;
  }
  plan->join_type = type;
  plan->condition = on;
  const bool left_nullable = type == JoinType::kRight || type == JoinType::kFull;
  const bool right_nullable = type == JoinType::kLeft || type == JoinType::kFull;
  plan->output = left_only ? left->output : both;
  for (std::size_t i = 0; i < plan->output.size(); ++i) {
    Attribute& attribute = plan->output[i];
    attribute.nullable = attribute.nullable || (i < left->output.size() ? left_nullable : right_nullable);
  }
  plan->children.push_back(std::move(left));
  plan->children.push_back(std::move(right));
  if (using_columns.empty()) {
    return PlanPtr(std::move(plan));
  }
  const std::size_t left_size = plan->children[0]->output.size();
  const auto current = [&plan](const ExprPtr& key) -> const Attribute& {
    return *std::find_if(plan->output.begin(), plan->output.end(),
                         [&key](const Attribute& attribute) { return attribute.id == key->attribute.id; });
  };
  std::vector<Attribute> output;
  std::vector<ExprPtr> exprs;
  std::set<std::int64_t> keys;
  std::vector<Attribute> hidden;
  for (std::size_t i = 0; i < using_columns.size(); ++i) {
    keys.insert(left_keys[i]->attribute.id.value);
    keys.insert(right_keys[i]->attribute.id.value);
    if (left_only) {
      output.push_back(current(left_keys[i]));
      exprs.push_back(AttributeExpr(output.back()));
      continue;
    }
    const Attribute left_key = current(left_keys[i]);
    const Attribute right_key = current(right_keys[i]);
    if (type == JoinType::kFull) {
      FLEUVE_ASSIGN(ExprPtr merged, Call("coalesce", {AttributeExpr(left_key), AttributeExpr(right_key)}));
      Attribute attribute;
      attribute.id = NewAttributeId();
      attribute.name = left_key.name;
      attribute.type = merged->type;
      attribute.nullable = merged->nullable;
      output.push_back(std::move(attribute));
      exprs.push_back(std::move(merged));
      hidden.push_back(left_key);
      hidden.push_back(right_key);
    } else {
      output.push_back(type == JoinType::kRight ? right_key : left_key);
      exprs.push_back(AttributeExpr(output.back()));
      hidden.push_back(type == JoinType::kRight ? left_key : right_key);
    }
  }
  for (std::size_t i = 0; i < plan->output.size(); ++i) {
    const Attribute& attribute = plan->output[i];
    if ((left_only && i >= left_size) || keys.contains(attribute.id.value)) {
      continue;
    }
    output.push_back(attribute);
    exprs.push_back(AttributeExpr(attribute));
  }
  for (Attribute& attribute : hidden) {
    attribute.hidden = true;
    exprs.push_back(AttributeExpr(attribute));
    output.push_back(std::move(attribute));
  }
  return MakeProject(std::move(plan), std::move(exprs), std::move(output));
}

}  // namespace fleuve::plan
