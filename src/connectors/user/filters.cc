#include <cstdlib>
#include <optional>

#include "columnar/ipc.h"
#include "connectors/user/source_task_internal.h"
#include "plan/expr.h"

namespace fleuve::connectors::user {

namespace {

using plan::Expr;
using plan::ExprKind;
using plan::ExprPtr;
using types::DataType;
using types::TypeKind;
using types::Value;

/// A column, or a field of one: `path` gets its parts.
bool ColumnOf(const Expr& expr, std::vector<std::string>* path) {
  if (expr.kind == ExprKind::kAttribute) {
    path->push_back(expr.attribute.name);
    return true;
  }
  if (expr.kind != ExprKind::kGetField || !ColumnOf(*expr.children[0], path)) {
    return false;
  }
  path->push_back(expr.children[0]->type.fields()[static_cast<std::size_t>(expr.ordinal)].name);
  return true;
}

/// What can stand in a filter's value.
bool IsTold(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
    case TypeKind::kFloat:
    case TypeKind::kDouble:
    case TypeKind::kDecimal:
    case TypeKind::kString:
    case TypeKind::kBinary:
    case TypeKind::kDate:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return true;
    default:
      return false;
  }
}

bool IsConstant(const Expr& expr) {
  return expr.kind == ExprKind::kLiteral && !expr.value.is_null() && IsTold(expr.type);
}

/// A constant in the type of what it is compared with: a literal, or a number made wider.
std::optional<Value> ConstantOf(const Expr& expr) {
  if (IsConstant(expr)) {
    return expr.value;
  }
  if (expr.kind != ExprKind::kCast || !IsConstant(*expr.children[0])) {
    return std::nullopt;
  }
  const Value& value = expr.children[0]->value;
  const DataType& from = expr.children[0]->type;
  if (expr.type.Is(TypeKind::kDouble) && from.Is(TypeKind::kDecimal)) {
    return Value(std::strtod(types::DecimalToString(value.decimal(), from.scale()).c_str(), nullptr));
  }
  if (expr.type.Is(TypeKind::kDouble) && from.IsIntegral()) {
    return Value(static_cast<double>(value.integer()));
  }
  if (expr.type.Is(TypeKind::kDecimal) && (from.Is(TypeKind::kDecimal) || from.IsIntegral())) {
    types::Int128 unscaled = from.IsIntegral() ? types::Int128(value.integer()) : value.decimal();
    const int digits = expr.type.scale() - (from.IsIntegral() ? 0 : from.scale());
    if (digits < 0 || digits > 18) {
      return std::nullopt;
    }
    for (int i = 0; i < digits; ++i) {
      if (__builtin_mul_overflow(unscaled, types::Int128(10), &unscaled)) {
        return std::nullopt;
      }
    }
    return Value(unscaled);
  }
  return std::nullopt;
}

bool Fits(const Value& value, const DataType& type) {
  const std::int64_t bits = type.Is(TypeKind::kByte)    ? 8
                            : type.Is(TypeKind::kShort) ? 16
                            : type.Is(TypeKind::kInt)   ? 32
                                                        : 64;
  if (bits == 64) {
    return true;
  }
  const std::int64_t limit = std::int64_t{1} << (bits - 1);
  return value.integer() >= -limit && value.integer() < limit;
}

/// `<`, seen from the other side.
std::string Mirrored(const std::string& function) {
  if (function == "lt") return "gt";
  if (function == "le") return "ge";
  if (function == "gt") return "lt";
  if (function == "ge") return "le";
  return function;
}

/// Filters of one query, while they are gathered.
class Teller {
 public:
  Result<PushedFilters> Tell(const std::vector<ExprPtr>& conjuncts) {
    // What must not be NULL for the query to give rows comes first, as Spark infers it.
    for (const ExprPtr& conjunct : conjuncts) {
      RequireValues(*conjunct);
    }
    for (std::size_t i = 0; i < conjuncts.size(); ++i) {
      origin_ = static_cast<int>(i);
      One(*conjuncts[i], false);
    }
    if (!fields_.empty()) {
      const types::Schema schema = DataType::Struct(fields_);
      FLEUVE_ASSIGN(const columnar::RecordBatch batch, columnar::BatchFromRows(schema, {values_}));
      FLEUVE_ASSIGN(made_.values, columnar::EncodeIpcStream(schema, {batch}, {}));
    } else {
      const types::Schema schema = DataType::Struct({{"_0", DataType::Int(), true, {}}});
      FLEUVE_ASSIGN(const columnar::RecordBatch batch, columnar::BatchFromRows(schema, {{Value()}}));
      FLEUVE_ASSIGN(made_.values, columnar::EncodeIpcStream(schema, {batch}, {}));
    }
    return std::move(made_);
  }

 private:
  /// Every column that makes `expr` NULL when it is NULL itself.
  void RequireValues(const Expr& expr) {
    std::vector<std::string> path;
    if (ColumnOf(expr, &path)) {
      for (const auto& known : required_) {
        if (known == path) {
          return;
        }
      }
      required_.push_back(path);
      origin_ = -1;
      Add("IsNotNull", path, false);
      return;
    }
    if (expr.kind == ExprKind::kCast) {
      RequireValues(*expr.children[0]);
      return;
    }
    if (expr.kind != ExprKind::kCall) {
      return;
    }
    for (const char* strict : {"eq", "ne", "lt", "le", "gt", "ge", "not", "spark_like", "spark_startswith",
                               "spark_endswith", "spark_contains", "spark_add", "spark_subtract", "spark_multiply"}) {
      if (expr.function == strict) {
        if (expr.function == "not" && expr.children[0]->kind == ExprKind::kCall &&
            (expr.children[0]->function == "isnull" || expr.children[0]->function == "isnotnull")) {
          return;
        }
        for (const ExprPtr& child : expr.children) {
          RequireValues(*child);
        }
        return;
      }
    }
  }

  void Put(Json filter) {
    made_.filters.push_back(std::move(filter));
    made_.origin.push_back(origin_);
  }

  Json Base(const std::string& name, const std::vector<std::string>& path, bool negated) {
    Json::Array parts;
    for (const std::string& part : path) {
      parts.emplace_back(part);
    }
    Json filter = Json(Json::Object{});
    filter.Set("name", name).Set("column", std::move(parts)).Set("negated", negated);
    return filter;
  }

  void Add(const std::string& name, const std::vector<std::string>& path, bool negated) {
    Put(Base(name, path, negated));
  }

  std::int64_t Keep(const Value& value, const DataType& type) {
    fields_.push_back({"_" + std::to_string(fields_.size()), type, true, {}});
    values_.push_back(value);
    return static_cast<std::int64_t>(values_.size()) - 1;
  }

  void AddValue(const std::string& name, const std::vector<std::string>& path, const Value& value, const DataType& type,
                bool negated) {
    Json filter = Base(name, path, negated);
    filter.Set("value", Keep(value, type));
    Put(std::move(filter));
  }

  /// A column on one side and a constant on the other; a column made wider is compared in its own type.
  bool Sides(const Expr& column, const Expr& constant, std::vector<std::string>* path, DataType* type, Value* value) {
    const std::optional<Value> found = ConstantOf(constant);
    if (!found) {
      return false;
    }
    *value = *found;
    *type = constant.type;
    if (column.kind == ExprKind::kCast && column.type.IsIntegral() && column.children[0]->type.IsIntegral()) {
      *type = column.children[0]->type;
      return Fits(*value, *type) && ColumnOf(*column.children[0], path);
    }
    return ColumnOf(column, path);
  }

  void One(const Expr& expr, bool negated) {
    std::vector<std::string> path;
    if (expr.type.Is(TypeKind::kBoolean) && ColumnOf(expr, &path)) {
      AddValue("EqualTo", path, Value(true), DataType::Boolean(), negated);
      return;
    }
    path.clear();
    if (expr.kind != ExprKind::kCall) {
      return;
    }
    const std::string& f = expr.function;
    if (f == "not" && !negated) {
      One(*expr.children[0], true);
    } else if ((f == "isnull" || f == "isnotnull") && ColumnOf(*expr.children[0], &path)) {
      const bool null = (f == "isnull") != negated;
      if (!null && KnownValue(path)) {
        return;
      }
      Add(null ? "IsNull" : "IsNotNull", path, false);
    } else if (f == "eq" || f == "ne" || f == "lt" || f == "le" || f == "gt" || f == "ge" || f == "eqnullsafe") {
      Comparison(expr, negated);
    } else if (f == "in") {
      In(expr, negated);
    } else if (f == "spark_startswith" || f == "spark_endswith" || f == "spark_contains") {
      if (expr.children.size() >= 2 && IsConstant(*expr.children[1]) && expr.children[1]->type.IsString() &&
          ColumnOf(*expr.children[0], &path)) {
        AddValue(f == "spark_startswith" ? "StringStartsWith"
                 : f == "spark_endswith" ? "StringEndsWith"
                                         : "StringContains",
                 path, expr.children[1]->value, DataType::String(), negated);
      }
    } else if (f == "spark_like") {
      Like(expr, negated);
    }
  }

  bool KnownValue(const std::vector<std::string>& path) const {
    for (const auto& known : required_) {
      if (known == path) {
        return true;
      }
    }
    return false;
  }

  void Comparison(const Expr& expr, bool negated) {
    std::vector<std::string> path;
    DataType type;
    std::string f = expr.function;
    Value value;
    if (!Sides(*expr.children[0], *expr.children[1], &path, &type, &value)) {
      path.clear();
      if (!Sides(*expr.children[1], *expr.children[0], &path, &type, &value)) {
        return;
      }
      f = Mirrored(f);
    }
    if (f == "ne") {
      f = "eq";
      negated = !negated;
    }
    if (negated && f != "eq" && f != "eqnullsafe") {
      f = f == "lt" ? "ge" : f == "le" ? "gt" : f == "gt" ? "le" : "lt";
      negated = false;
    }
    AddValue(f == "eq"           ? "EqualTo"
             : f == "eqnullsafe" ? "EqualNullSafe"
             : f == "lt"         ? "LessThan"
             : f == "le"         ? "LessThanOrEqual"
             : f == "gt"         ? "GreaterThan"
                                 : "GreaterThanOrEqual",
             path, value, type, negated);
  }

  void In(const Expr& expr, bool negated) {
    std::vector<std::string> path;
    if (!ColumnOf(*expr.children[0], &path)) {
      return;
    }
    for (std::size_t i = 1; i < expr.children.size(); ++i) {
      if (!IsConstant(*expr.children[i])) {
        return;
      }
    }
    Json::Array values;
    for (std::size_t i = 1; i < expr.children.size(); ++i) {
      values.emplace_back(Keep(expr.children[i]->value, expr.children[i]->type));
    }
    Json filter = Base("In", path, negated);
    filter.Set("values", std::move(values));
    Put(std::move(filter));
  }

  /// `a%`, `%a`, `%a%`, `a%b`, `a`: what Spark makes of them.
  void Like(const Expr& expr, bool negated) {
    std::vector<std::string> path;
    if (expr.children.size() < 2 || !IsConstant(*expr.children[1]) || !ColumnOf(*expr.children[0], &path)) {
      return;
    }
    const std::string pattern = expr.children[1]->value.text();
    const bool escaped = expr.children.size() > 2 && IsConstant(*expr.children[2]) &&
                         pattern.find(expr.children[2]->value.text()) != std::string::npos;
    if (escaped || pattern.find('_') != std::string::npos) {
      return;
    }
    const auto text = [&](const char* name, std::string value) {
      AddValue(name, path, Value(std::move(value)), DataType::String(), negated);
    };
    const std::size_t first = pattern.find('%');
    const std::size_t last = pattern.rfind('%');
    if (first == std::string::npos) {
      text("EqualTo", pattern);
    } else if (first == last && first == pattern.size() - 1 && first > 0) {
      text("StringStartsWith", pattern.substr(0, first));
    } else if (first == last && first == 0 && pattern.size() > 1) {
      text("StringEndsWith", pattern.substr(1));
    } else if (first == 0 && last == pattern.size() - 1 && pattern.size() > 2 && pattern.find('%', 1) == last) {
      text("StringContains", pattern.substr(1, last - 1));
    } else if (first == last && pattern.size() > 1 && !negated) {
      // Both may hold where the ends overlap: the pattern itself is still looked at.
      origin_ = -1;
      text("StringStartsWith", pattern.substr(0, first));
      text("StringEndsWith", pattern.substr(first + 1));
    }
  }

  PushedFilters made_;
  std::vector<types::StructField> fields_;
  Value::List values_;
  std::vector<std::vector<std::string>> required_;
  int origin_ = -1;
};

}  // namespace

Result<PushedFilters> TellFilters(const std::vector<ExprPtr>& conjuncts) { return Teller().Tell(conjuncts); }

}  // namespace fleuve::connectors::user
