#include "plan/stream_join.h"

#include <algorithm>
#include <cmath>

#include "plan/event_time.h"
#include "plan/prepare_internal.h"

namespace fleuve::plan {

namespace {

using types::TypeKind;

struct Sides {
  bool left = false;
  bool right = false;
};

Sides SidesOf(const ExprPtr& expr, const Ids& left, const Ids& right) {
  Sides sides;
  VisitExpr(expr, [&](const Expr& node) {
    if (node.kind == ExprKind::kAttribute) {
      sides.left = sides.left || left.contains(node.attribute.id.value);
      sides.right = sides.right || right.contains(node.attribute.id.value);
    }
  });
  return sides;
}

/// A sum of columns, each once or negated, and a constant in microseconds.
struct Sum {
  std::vector<std::pair<Attribute, int>> terms;
  double micros = 0;

  void Add(const Sum& other, int sign) {
    for (const auto& [attribute, factor] : other.terms) {
      terms.emplace_back(attribute, factor * sign);
    }
    micros += other.micros * sign;
  }
};

std::optional<Sum> SumOf(const Expr& expr);

std::optional<Sum> LiteralSum(const Expr& expr) {
  Sum sum;
  if (expr.value.is_null()) {
    return std::nullopt;
  }
  switch (expr.type.kind()) {
    case TypeKind::kTimestamp:
    case TypeKind::kDayTimeInterval:
      sum.micros = static_cast<double>(expr.value.integer());
      return sum;
    case TypeKind::kCalendarInterval: {
      const auto& interval = expr.value.interval();
      if (interval.months != 0) {
        return std::nullopt;
      }
      sum.micros = static_cast<double>(interval.days) * 86400e6 + static_cast<double>(interval.micros);
      return sum;
    }
    default:
      break;
  }
  // Numbers stand beside times that were cast to numbers: seconds.
  if (expr.type.IsIntegral()) {
    sum.micros = static_cast<double>(expr.value.integer()) * 1e6;
    return sum;
  }
  if (expr.type.Is(TypeKind::kDouble) || expr.type.Is(TypeKind::kFloat)) {
    sum.micros = expr.value.real() * 1e6;
    return sum;
  }
  return std::nullopt;
}

std::optional<Sum> Both(const Expr& expr, int sign) {
  auto left = SumOf(*expr.children[0]);
  const auto right = SumOf(*expr.children[1]);
  if (!left || !right) {
    return std::nullopt;
  }
  left->Add(*right, sign);
  return left;
}

std::optional<Sum> SumOf(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kLiteral:
      return LiteralSum(expr);
    case ExprKind::kAttribute: {
      Sum sum;
      sum.terms.emplace_back(expr.attribute, 1);
      return sum;
    }
    case ExprKind::kCast:
      if (expr.children[0]->type.IsNumeric() || expr.children[0]->type.Is(TypeKind::kTimestamp)) {
        return SumOf(*expr.children[0]);
      }
      return std::nullopt;
    case ExprKind::kGetField: {
      // The end of a window.
      if (expr.ordinal == 1 && expr.children[0]->kind == ExprKind::kAttribute &&
          WatermarkDelayMs(expr.children[0]->attribute)) {
        Sum sum;
        sum.terms.emplace_back(expr.children[0]->attribute, 1);
        return sum;
      }
      return std::nullopt;
    }
    case ExprKind::kCall:
      if (expr.function == "spark_time_add" || expr.function.starts_with("spark_interval_add") ||
          expr.function.starts_with("spark_add")) {
        return expr.children.size() >= 2 ? Both(expr, 1) : std::nullopt;
      }
      if (expr.function == "spark_timestamp_minus_timestamp" || expr.function.starts_with("spark_interval_subtract") ||
          expr.function.starts_with("spark_subtract")) {
        return expr.children.size() >= 2 ? Both(expr, -1) : std::nullopt;
      }
      if (expr.function.starts_with("spark_negate") || expr.function.starts_with("spark_calendar_negate")) {
        auto sum = SumOf(*expr.children[0]);
        if (!sum) {
          return std::nullopt;
        }
        Sum negated;
        negated.Add(*sum, -1);
        return negated;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// From `less < more`: the offset of the state's watermark; nullopt where it says nothing.
std::optional<double> OffsetFrom(const Expr& less, const Expr& more, const Ids& side, const Ids& other) {
  auto sum = SumOf(more);
  const auto rest = SumOf(less);
  if (!sum || !rest) {
    return std::nullopt;
  }
  // side's column > other's watermark + constant.
  sum->Add(*rest, -1);
  const Attribute* column = nullptr;
  const Attribute* marked = nullptr;
  for (const auto& [attribute, factor] : sum->terms) {
    if (side.contains(attribute.id.value)) {
      if (column != nullptr || factor != 1) {
        return std::nullopt;
      }
      column = &attribute;
    } else if (other.contains(attribute.id.value)) {
      if (marked != nullptr || factor != -1 || !WatermarkDelayMs(attribute)) {
        return std::nullopt;
      }
      marked = &attribute;
    } else {
      return std::nullopt;
    }
  }
  if (column == nullptr || marked == nullptr) {
    return std::nullopt;
  }
  return -sum->micros;
}

/// The time that a column with a watermark stands for: itself, or the end of the window.
ExprPtr TimeOf(const ExprPtr& expr) { return expr->type.Is(TypeKind::kStruct) ? MakeGetField(expr, 1) : expr; }

}  // namespace

StreamJoinParts SplitStreamJoin(const LogicalPlan& join) {
  StreamJoinParts parts;
  const Ids left = IdsOf(join.children[0]->output);
  const Ids right = IdsOf(join.children[1]->output);
  const std::vector<ExprPtr> conditions =
      join.condition == nullptr ? std::vector<ExprPtr>() : Flatten(join.condition, "and");
  for (const ExprPtr& condition : conditions) {
    const bool equality = condition->kind == ExprKind::kCall && condition->children.size() == 2 &&
                          (condition->function == "eq" || condition->function == "eqnullsafe");
    if (equality) {
      const ExprPtr& a = condition->children[0];
      const ExprPtr& b = condition->children[1];
      const Sides of_a = SidesOf(a, left, right);
      const Sides of_b = SidesOf(b, left, right);
      const bool null_safe = condition->function == "eqnullsafe";
      if (of_a.left && !of_a.right && of_b.right && !of_b.left) {
        parts.keys.push_back(JoinKey{a, b, null_safe});
        continue;
      }
      if (of_a.right && !of_a.left && of_b.left && !of_b.right) {
        parts.keys.push_back(JoinKey{b, a, null_safe});
        continue;
      }
    }
    const Sides sides = SidesOf(condition, left, right);
    if (condition->deterministic && sides.left && !sides.right) {
      parts.left_only.push_back(condition);
    } else if (condition->deterministic && sides.right && !sides.left) {
      parts.right_only.push_back(condition);
    } else {
      parts.both.push_back(condition);
    }
  }
  return parts;
}

bool HasWatermarkInKeys(const StreamJoinParts& parts) {
  return std::any_of(parts.keys.begin(), parts.keys.end(), [](const JoinKey& key) {
    return (key.left->kind == ExprKind::kAttribute && CarriesWatermark(key.left)) ||
           (key.right->kind == ExprKind::kAttribute && CarriesWatermark(key.right));
  });
}

std::optional<std::int64_t> JoinStateOffsetMs(const std::vector<Attribute>& side, const std::vector<Attribute>& other,
                                              const ExprPtr& condition) {
  if (condition == nullptr || EventTimeColumn(other) == nullptr) {
    return std::nullopt;
  }
  const Ids side_ids = IdsOf(side);
  const Ids other_ids = IdsOf(other);
  std::optional<std::int64_t> least;
  for (const ExprPtr& part : Flatten(condition, "and")) {
    if (part->kind != ExprKind::kCall || part->children.size() != 2) {
      continue;
    }
    const Expr& a = *part->children[0];
    const Expr& b = *part->children[1];
    std::optional<double> micros;
    bool strict = false;
    if (part->function == "lt" || part->function == "le") {
      micros = OffsetFrom(a, b, side_ids, other_ids);
      strict = part->function == "lt";
    } else if (part->function == "gt" || part->function == "ge") {
      micros = OffsetFrom(b, a, side_ids, other_ids);
      strict = part->function == "gt";
    }
    if (micros) {
      const auto ms = static_cast<std::int64_t>(std::floor(*micros / 1000)) - (strict ? 0 : 1);
      least = std::min(least.value_or(ms), ms);
    }
  }
  return least;
}

JoinExpiries StreamJoinExpiries(const LogicalPlan& join, const StreamJoinParts& parts) {
  JoinExpiries expiries;
  for (const bool of_left : {true, false}) {
    // The key with a watermark on either side says for both when its rows expire.
    for (const JoinKey& key : parts.keys) {
      const ExprPtr& marked = of_left ? key.left : key.right;
      if (marked->kind == ExprKind::kAttribute && CarriesWatermark(marked) && !expiries.left) {
        expiries.left = JoinExpiry{TimeOf(key.left), true, 0};
        expiries.right = JoinExpiry{TimeOf(key.right), true, 0};
      }
    }
  }
  if (expiries.left) {
    return expiries;
  }
  const auto& left = join.children[0]->output;
  const auto& right = join.children[1]->output;
  const auto value_expiry = [&](const std::vector<Attribute>& side,
                                const std::vector<Attribute>& other) -> std::optional<JoinExpiry> {
    const Attribute* column = EventTimeColumn(side);
    if (column == nullptr) {
      return std::nullopt;
    }
    const auto offset = JoinStateOffsetMs(side, other, join.condition);
    if (!offset) {
      return std::nullopt;
    }
    return JoinExpiry{TimeOf(MakeAttribute(*column)), false, *offset};
  };
  expiries.left = value_expiry(left, right);
  expiries.right = value_expiry(right, left);
  return expiries;
}

}  // namespace fleuve::plan
