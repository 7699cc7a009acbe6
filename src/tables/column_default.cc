#include "tables/column_default_internal.h"
#include "tables/schema_internal.h"
#include "types/value.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::TypeKind;

bool CanUpCast(const DataType& from, const DataType& to) {
  const auto rank = [](const DataType& t) {
    switch (t.kind()) {
      case TypeKind::kByte:
        return 1;
      case TypeKind::kShort:
        return 2;
      case TypeKind::kInt:
        return 3;
      case TypeKind::kLong:
        return 4;
      case TypeKind::kFloat:
        return 5;
      case TypeKind::kDouble:
        return 6;
      default:
        return 0;
    }
  };
  if (from.EqualsIgnoringNullability(to)) {
    return true;
  }
  if (rank(from) > 0 && rank(to) > 0) {
    return rank(from) < rank(to);
  }
  const auto digits = [](const DataType& t) { return t.precision() - t.scale(); };
  if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal)) {
    return to.scale() >= from.scale() && digits(to) >= digits(from);
  }
  if (rank(from) > 0 && rank(from) <= 4 && to.Is(TypeKind::kDecimal)) {
    static constexpr int kDigits[] = {0, 3, 5, 10, 20};
    return digits(to) >= kDigits[rank(from)];
  }
  if (to.Is(TypeKind::kString)) {
    return !from.IsNested() && !from.Is(TypeKind::kBinary) && !from.Is(TypeKind::kVariant) &&
           !from.Is(TypeKind::kBoolean);
  }
  if (from.Is(TypeKind::kDate)) {
    return to.Is(TypeKind::kTimestamp) || to.Is(TypeKind::kTimestampNtz);
  }
  return from.Is(TypeKind::kVoid);
}

namespace {

/// A literal of another type whose value the type has: 5L for INT, '2020-01-01' for DATE.
bool LiteralFits(const plan::Expr& expr, const DataType& to) {
  const types::Value& value = expr.value;
  if (value.is_null()) {
    return true;
  }
  if (expr.type.IsString()) {
    return (to.Is(TypeKind::kDate) && types::ParseDate(value.text())) ||
           (to.Is(TypeKind::kTimestamp) && types::ParseTimestamp(value.text(), "UTC")) ||
           (to.Is(TypeKind::kTimestampNtz) && types::ParseTimestampNtz(value.text())) ||
           (to.IsNumeric() && types::DecimalFromString(value.text()).ok());
  }
  if (expr.type.IsIntegral() && to.IsIntegral()) {
    const std::int64_t number = value.integer();
    const int bits = to.Is(TypeKind::kByte) ? 8 : to.Is(TypeKind::kShort) ? 16 : to.Is(TypeKind::kInt) ? 32 : 64;
    return bits == 64 || (number >= -(1LL << (bits - 1)) && number < (1LL << (bits - 1)));
  }
  return expr.type.IsNumeric() && to.IsNumeric();
}

}  // namespace

Result<void> CheckDefault(const std::string& sql, const StructField& field, const plan::AnalysisConfig& config) {
  const auto invalid = [&](const char* why, const std::string& text) {
    return Error(ErrorKind::kInvalidArgument, std::string("INVALID_DEFAULT_VALUE.") + why,
                 "The default value " + sql + " of column " + field.name + " " + text + ".")
        .With("colName", "`" + field.name + "`")
        .With("defaultValue", sql);
  };
  auto one_row = std::make_shared<plan::LogicalPlan>();
  one_row->kind = plan::PlanKind::kOneRow;
  auto analyzed = AnalyzeSql(sql, one_row, config);
  if (!analyzed.ok() && analyzed.error().condition().starts_with("UNRESOLVED_COLUMN")) {
    return invalid("UNRESOLVED_EXPRESSION", "refers to what is not there");
  }
  FLEUVE_ASSIGN(const ExprPtr value, std::move(analyzed));
  if (plan::AnyExpr(value, [](const plan::Expr& e) { return e.kind == plan::ExprKind::kSubquery; })) {
    return invalid("SUBQUERY_EXPRESSION", "has a subquery");
  }
  // A literal number may have a wider type as long as its value fits.
  const bool fits = value->type.Is(TypeKind::kVoid) || value->type.EqualsIgnoringNullability(field.type) ||
                    (value->kind == plan::ExprKind::kLiteral && LiteralFits(*value, field.type)) ||
                    CanUpCast(value->type, field.type);
  if (!fits || !AlignExpr(value, field.type, true, config).ok()) {
    return invalid("DATA_TYPE", "is no " + field.type.Sql());
  }
  return {};
}

}  // namespace fleuve::tables
