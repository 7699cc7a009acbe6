#include <map>
#include <vector>

#include "base/bytes.h"
#include "columnar/ipc.h"
#include "plan/external.h"
#include "plan/scan.h"
#include "session/plan_text_internal.h"

namespace fleuve::session {

namespace {

using plan::Expr;
using plan::ExprKind;
using plan::ExprPtr;
using plan::LogicalPlan;
using plan::PlanKind;
using plan::PlanPtr;

class Printer {
 public:
  explicit Printer(bool normalized) : normalized_(normalized) {}

  std::string Tree(const PlanPtr& root) {
    std::string out;
    struct Item {
      PlanPtr node;
      std::string prefix;
      bool last;
      bool root;
    };
    std::vector<Item> stack = {{root, "", true, true}};
    while (!stack.empty()) {
      const Item item = stack.back();
      stack.pop_back();
      out += item.root ? "" : item.prefix + (item.last ? "+- " : ":- ");
      out += Line(*item.node) + "\n";
      const std::string below = item.root ? "" : item.prefix + (item.last ? "   " : ":  ");
      for (std::size_t i = item.node->children.size(); i-- > 0;) {
        stack.push_back({item.node->children[i], below, i + 1 == item.node->children.size(), false});
      }
    }
    return out;
  }

 private:
  std::string Id(plan::AttributeId id) {
    if (!normalized_) {
      return std::to_string(id.value);
    }
    const auto [it, fresh] = ids_.try_emplace(id.value, ids_.size());
    return std::to_string(it->second);
  }

  std::string Name(const plan::Attribute& attribute) { return attribute.name + "#" + Id(attribute.id); }

  std::string Text(const ExprPtr& expr) {
    if (expr == nullptr) {
      return "";
    }
    switch (expr->kind) {
      case ExprKind::kLiteral:
        return expr->display.empty() || normalized_ ? LiteralText(*expr) : expr->display;
      case ExprKind::kAttribute:
      case ExprKind::kLambdaVariable:
        return Name(expr->attribute);
      case ExprKind::kCast:
        return "cast(" + Text(expr->children[0]) + " as " + expr->type.SimpleString() + ")";
      case ExprKind::kGetField:
        return Text(expr->children[0]) + "." + std::to_string(expr->ordinal);
      case ExprKind::kSubquery:
        return "subquery(" + (expr->subquery ? Tree(expr->subquery) : "") + ")";
      case ExprKind::kCase:
      case ExprKind::kCall:
      case ExprKind::kLambda:
      case ExprKind::kAggregate:
      case ExprKind::kWindow:
        break;
    }
    std::string name = expr->function;
    if (expr->kind == ExprKind::kCase) {
      name = "case";
    } else if (expr->kind == ExprKind::kLambda) {
      name = "lambda";
    } else if (expr->kind == ExprKind::kWindow) {
      name = "window";
    }
    std::vector<std::string> arguments;
    for (const ExprPtr& child : expr->children) {
      arguments.push_back(Text(child));
    }
    std::string text = name + "(" + (expr->distinct ? "distinct " : "") + Join(arguments, ", ") + ")";
    if (expr->filter != nullptr) {
      text += " filter (" + Text(expr->filter) + ")";
    }
    if (expr->kind == ExprKind::kWindow) {
      text += " over (" + List(expr->window.partition_by) + "; " + Keys(expr->window.order_by) + ")";
    }
    return text;
  }

  static std::string LiteralText(const Expr& literal) {
    return literal.display.empty() ? "literal:" + literal.type.SimpleString() : literal.display;
  }

  std::string List(const std::vector<ExprPtr>& exprs) {
    std::vector<std::string> parts;
    for (const ExprPtr& expr : exprs) {
      parts.push_back(Text(expr));
    }
    return "[" + Join(parts, ", ") + "]";
  }

  std::string Keys(const std::vector<plan::SortKey>& keys) {
    std::vector<std::string> parts;
    for (const plan::SortKey& key : keys) {
      parts.push_back(Text(key.expr) + (key.ascending ? " ASC" : " DESC") +
                      (key.nulls_first ? " NULLS FIRST" : " NULLS LAST"));
    }
    return "[" + Join(parts, ", ") + "]";
  }

  std::string Output(const LogicalPlan& node) {
    std::vector<std::string> parts;
    for (const plan::Attribute& attribute : node.output) {
      if (!attribute.hidden) {
        parts.push_back(Name(attribute));
      }
    }
    return "[" + Join(parts, ", ") + "]";
  }

  std::string External(const LogicalPlan& node) {
    static constexpr const char* kNames[] = {
        "EvalPython",        "MapInPython",    "FlatMapGroupsInPython", "FlatMapCoGroupsInPython",
        "AggregateInPython", "EvalPythonUDTF", "EvalPythonUDTF",        "FlatMapGroupsInPythonWithState",
        "WindowInPython"};
    std::vector<std::string> calls;
    for (const plan::ExternalCall& call : node.external->calls) {
      std::string name;
      for (const auto& function : call.chain) {
        name = name.empty() ? function->name : function->name + "(" + name + ")";
      }
      calls.push_back(std::move(name));
    }
    return std::string(kNames[static_cast<std::size_t>(node.external->kind)]) + " [" + Join(calls, ", ") + "] " +
           List(node.grouping) + List(node.exprs) + " " + Output(node);
  }

  std::string Projection(const LogicalPlan& node) {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < node.exprs.size() && i < node.output.size(); ++i) {
      const ExprPtr& expr = node.exprs[i];
      const bool same = expr->kind == ExprKind::kAttribute && expr->attribute.id == node.output[i].id;
      parts.push_back(same ? Name(node.output[i]) : Text(expr) + " AS " + Name(node.output[i]));
    }
    return "[" + Join(parts, ", ") + "]";
  }

  /// Rows are the same where their bytes are.
  static std::string ContentHash(const LogicalPlan& node) {
    std::size_t hash = 0;
    for (const columnar::RecordBatch& batch : node.rows ? node.rows->batches : std::vector<columnar::RecordBatch>()) {
      const auto bytes = columnar::EncodeIpcStream(*batch.schema, {batch}, columnar::ArrowOptions{});
      hash = hash * 31 + (bytes.ok() ? std::hash<std::string>()(*bytes) : 0);
    }
    return std::to_string(hash);
  }

  std::string Line(const LogicalPlan& node) {
    switch (node.kind) {
      case PlanKind::kOneRow:
        return "OneRowRelation";
      case PlanKind::kRows:
        return "LocalRelation " + Output(node) + (normalized_ ? " " + ContentHash(node) : "");
      case PlanKind::kRange:
        return "Range (" + std::to_string(node.range.start) + ", " + std::to_string(node.range.end) +
               ", step=" + std::to_string(node.range.step) + ")" + (normalized_ ? " " + Output(node) : "");
      case PlanKind::kTable:
        return "Relation " + node.table->name() + Output(node) + " " + node.table->provider();
      case PlanKind::kFileScan:
        return "FileScan " + Output(node) + " files=" + std::to_string(node.scan ? node.scan->files.size() : 0);
      case PlanKind::kStream:
        return "StreamingRelation " + (node.stream ? node.stream->name() : "") + Output(node);
      case PlanKind::kProject:
        return "Project " + Projection(node);
      case PlanKind::kFilter:
        return "Filter " + Text(node.condition);
      case PlanKind::kAggregate:
        return "Aggregate " + List(node.grouping) + ", " + List(node.aggregates) + " -> " + Output(node);
      case PlanKind::kJoin: {
        static constexpr const char* kNames[] = {"Inner",    "LeftOuter", "RightOuter", "FullOuter",
                                                 "LeftSemi", "LeftAnti",  "Cross"};
        return std::string("Join ") + kNames[static_cast<int>(node.join_type)] +
               (node.condition ? ", " + Text(node.condition) : "");
      }
      case PlanKind::kUnion:
        return "Union";
      case PlanKind::kIntersect:
        return node.all ? "Intersect All" : "Intersect";
      case PlanKind::kExcept:
        return node.all ? "Except All" : "Except";
      case PlanKind::kDistinct: {
        std::vector<std::string> keys;
        for (const plan::AttributeId id : node.keys) {
          keys.push_back("#" + Id(id));
        }
        return "Distinct [" + Join(keys, ", ") + "]";
      }
      case PlanKind::kSort:
        return "Sort " + Keys(node.order_by) + ", true";
      case PlanKind::kLimit:
        return "Limit " + std::to_string(node.count);
      case PlanKind::kOffset:
        return "Offset " + std::to_string(node.count);
      case PlanKind::kTail:
        return "Tail " + std::to_string(node.count);
      case PlanKind::kSample:
        return "Sample " + JavaDoubleToString(node.sample.lower) + ", " + JavaDoubleToString(node.sample.upper) + ", " +
               (node.sample.with_replacement ? "true" : "false") + ", " + std::to_string(node.sample.seed);
      case PlanKind::kWindow:
        return "Window " + List(node.exprs);
      case PlanKind::kGenerate:
        return "Generate " + node.generator.function + List(node.generator.arguments) +
               (node.generator.outer ? ", true, " : ", false, ") + Output(node);
      case PlanKind::kExpand:
        return "Expand " + Output(node);
      case PlanKind::kRepartition:
        return "Repartition " + std::to_string(node.count) + ", " + (node.shuffle ? "true" : "false");
      case PlanKind::kWatermark:
        return "EventTimeWatermark #" + Id(node.event_time) + ", " + std::to_string(node.delay_micros) + " us";
      case PlanKind::kMetrics:
        if (node.event_time.value != 0) {
          return "EventTimeWatermark #" + Id(node.event_time);
        }
        return "CollectMetrics " + node.name + ", " + List(node.exprs);
      case PlanKind::kExternal:
        return External(node);
    }
    return "Unknown";
  }

  const bool normalized_;
  std::map<std::int64_t, std::size_t> ids_;
};

}  // namespace

std::string PlanText(const PlanPtr& plan, bool normalized) { return Printer(normalized).Tree(plan); }

std::string ExplainText(const PlanPtr& analyzed, const PlanPtr& prepared, const std::string& mode) {
  const std::string physical = prepared == nullptr ? "No physical plan: a streaming plan is planned batch by batch.\n"
                                                   : PlanText(prepared, false);
  if (mode == "extended" || mode == "cost" || mode == "codegen") {
    const std::string logical = PlanText(analyzed, false);
    return "== Parsed Logical Plan ==\n" + logical + "\n== Analyzed Logical Plan ==\n" + logical +
           "\n== Optimized Logical Plan ==\n" + physical + "\n== Physical Plan ==\n" + physical;
  }
  return "== Physical Plan ==\n" + physical + "\n";
}

}  // namespace fleuve::session
