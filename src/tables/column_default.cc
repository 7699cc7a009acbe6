#include "plan/coercion.h"
#include "tables/column_default_internal.h"
#include "tables/schema_internal.h"
#include "types/value.h"

namespace fleuve::tables {

using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::TypeKind;

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
  return (expr.type.IsNumeric() && to.IsNumeric()) || (expr.type.IsDateTime() && to.IsDateTime());
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
                    plan::CanUpCast(value->type, field.type);
  if (!fits || !AlignExpr(value, field.type, true, config).ok()) {
    return invalid("DATA_TYPE", "is no " + field.type.Sql());
  }
  return {};
}

}  // namespace fleuve::tables
