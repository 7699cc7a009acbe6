#include "plan/analyzer.h"

#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>

#include "base/big_stack.h"
#include "plan/analyzer_internal.h"
#include "plan/input_file_internal.h"
#include "plan/time_windows_internal.h"

namespace fleuve::plan {

Result<void> CheckUnknownFields(const google::protobuf::Message& message) {
  std::vector<const google::protobuf::Message*> pending{&message};
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  while (!pending.empty()) {
    const google::protobuf::Message& current = *pending.back();
    pending.pop_back();
    const google::protobuf::Reflection& reflection = *current.GetReflection();
    const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(current);
    if (!unknown.empty()) {
      return Error::Unsupported("field " + std::to_string(unknown.field(0).number()) + " of the message " +
                                current.GetTypeName());
    }
    fields.clear();
    reflection.ListFields(current, &fields);
    for (const google::protobuf::FieldDescriptor* field : fields) {
      if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
        continue;
      }
      if (field->is_repeated()) {
        for (int i = 0; i < reflection.FieldSize(current, field); ++i) {
          pending.push_back(&reflection.GetRepeatedMessage(current, field, i));
        }
      } else {
        pending.push_back(&reflection.GetMessage(current, field));
      }
    }
  }
  return {};
}

bool HasAggregate(const ExprPtr& expr) {
  std::vector<ExprPtr> pending{expr};
  while (!pending.empty()) {
    const ExprPtr node = std::move(pending.back());
    pending.pop_back();
    if (node->kind == ExprKind::kAggregate) {
      return true;
    }
    if (node->kind == ExprKind::kWindow) {
      // The window's own function is no aggregate of the query; its operands may hold some.
      const std::vector<ExprPtr> operands = OperandsOf(*node);
      for (std::size_t i = 1; i < operands.size(); ++i) {
        pending.push_back(operands[i]);
      }
      for (ExprPtr& operand : OperandsOf(*operands.front())) {
        pending.push_back(operand);
      }
      continue;
    }
    for (const ExprPtr& operand : OperandsOf(*node)) {
      pending.push_back(operand);
    }
  }
  return false;
}

bool HasWindow(const ExprPtr& expr) {
  return AnyExpr(expr, [](const Expr& node) { return node.kind == ExprKind::kWindow; });
}

PlanPtr FreshInstance(const PlanPtr& plan) {
  std::unordered_map<std::int64_t, AttributeId> fresh;
  const auto renew = [&fresh](Attribute& attribute) {
    auto [entry, is_new] = fresh.try_emplace(attribute.id.value);
    if (is_new) {
      entry->second = NewAttributeId();
    }
    attribute.id = entry->second;
  };
  const std::function<PlanPtr(const PlanPtr&)> rewrite_plan = [&](const PlanPtr& root) {
    return RewritePlan(root, [&](const PlanPtr& node) -> PlanPtr {
      auto copy = std::make_shared<LogicalPlan>(*MapExpressions(node, [&](const ExprPtr& expr) {
        return RewriteExpr(expr, [&](const ExprPtr& part) -> ExprPtr {
          if (part->kind == ExprKind::kAttribute) {
            const auto entry = fresh.find(part->attribute.id.value);
            if (entry == fresh.end()) {
              return nullptr;
            }
            auto renewed = std::make_shared<Expr>(*part);
            renewed->attribute.id = entry->second;
            return renewed;
          }
          if (part->kind == ExprKind::kSubquery) {
            auto renewed = std::make_shared<Expr>(*part);
            renewed->subquery = rewrite_plan(part->subquery);
            return renewed;
          }
          return nullptr;
        });
      }));
      for (Attribute& attribute : copy->output) {
        renew(attribute);
      }
      for (AttributeId& key : copy->keys) {
        const auto entry = fresh.find(key.value);
        key = entry == fresh.end() ? key : entry->second;
      }
      const auto event_time = fresh.find(copy->event_time.value);
      if (event_time != fresh.end()) {
        copy->event_time = event_time->second;
      }
      return copy;
    });
  };
  return rewrite_plan(plan);
}

std::string TypesSql(const types::DataType& type) { return "\"" + type.Sql() + "\""; }

Analyzer::Analyzer(Resolver& resolver) : resolver_(resolver), config_(resolver.Config()) {}

std::optional<std::string> Analyzer::Conf(const std::string& key) const {
  return config_.conf ? config_.conf(key) : std::optional<std::string>();
}

Scope Analyzer::ScopeOf(const PlanPtr& plan) const {
  Scope scope;
  scope.tiers.push_back(&plan->output);
  return scope;
}

void Analyzer::Remember(std::int64_t plan_id, const PlanPtr& plan) { plans_by_id_[plan_id].push_back({plan, depth_}); }

Result<PlanPtr> Analyze(const sc::Relation& relation, Resolver& resolver) {
  FLEUVE_TRY(CheckUnknownFields(relation));
  std::optional<Result<PlanPtr>> result;
  RunOnBigStack([&] {
    Analyzer analyzer(resolver);
    result = analyzer.Relation(relation);
    if (result->ok()) {
      result = ResolveTimeWindows(**result);
    }
    if (result->ok()) {
      result = FillInputFileNames(**result);
    }
  });
  return *std::move(result);
}

Result<ExprPtr> AnalyzeExpression(const sc::Expression& expression, const PlanPtr& input, Resolver& resolver) {
  FLEUVE_TRY(CheckUnknownFields(expression));
  std::optional<Result<ExprPtr>> result;
  RunOnBigStack([&] {
    Analyzer analyzer(resolver);
    result = analyzer.Expression(expression, analyzer.ScopeOf(input));
  });
  return *std::move(result);
}

}  // namespace fleuve::plan
