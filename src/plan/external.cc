#include "plan/external.h"

#include "plan/logical_plan.h"

namespace fleuve::plan {

ExternalCallKind ExternalFunction::call_kind() const {
  switch (eval_type) {
    case 100:
    case 101:
    case 200:
    case 250:
      return ExternalCallKind::kScalar;
    case 204:
    case 251:
      return ExternalCallKind::kScalarIter;
    case 205:
    case 207:
      return ExternalCallKind::kMap;
    case 201:
    case 209:
    case 215:
    case 216:
      return ExternalCallKind::kGroupMap;
    case 206:
    case 210:
      return ExternalCallKind::kCoGroupMap;
    case 202:
    case 203:
    case 217:
    case 252:
    case 253:
    case 254:
      return ExternalCallKind::kAggregate;
    case 208:
    case 211:
    case 212:
    case 213:
    case 214:
      return ExternalCallKind::kGroupState;
    case 300:
    case 301:
    case 302:
      return ExternalCallKind::kTable;
    default:
      return ExternalCallKind::kOther;
  }
}

bool ExternalFunction::Same(const ExternalFunction& other) const {
  return this == &other ||
         (name == other.name && eval_type == other.eval_type && command == other.command &&
          python_version == other.python_version && includes == other.includes && type == other.type &&
          deterministic == other.deterministic && table_state == other.table_state);
}

bool PassesChild(const LogicalPlan& node) {
  const ExternalKind kind = node.external->kind;
  return kind == ExternalKind::kEvaluate || kind == ExternalKind::kTable || kind == ExternalKind::kWindow;
}

std::size_t PassedColumns(const LogicalPlan& node) {
  switch (node.external->kind) {
    case ExternalKind::kEvaluate:
    case ExternalKind::kWindow:
      return node.output.size() - node.external->calls.size();
    case ExternalKind::kTable:
      return node.output.size() - node.external->calls.front().chain.back()->type.fields().size();
    default:
      return 0;
  }
}

bool IsExternal(const Expr& expr) { return expr.external != nullptr; }

bool HasExternal(const ExprPtr& expr) { return AnyExpr(expr, IsExternal); }

}  // namespace fleuve::plan
