#include "base/bytes.h"
#include "base/json.h"
#include "session/expr_sql_internal.h"
#include "types/value.h"

namespace fleuve::session {

using plan::Expr;
using plan::ExprKind;
using types::TypeKind;

namespace {

std::string Quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    out += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return out + "'";
}

Result<std::string> LiteralSql(const Expr& literal) {
  const types::Value& value = literal.value;
  if (value.is_null()) {
    return "CAST(NULL AS " + literal.type.Sql() + ")";
  }
  switch (literal.type.kind()) {
    case TypeKind::kBoolean:
      return std::string(value.boolean() ? "true" : "false");
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kLong:
      return "CAST(" + std::to_string(value.integer()) + " AS " + literal.type.Sql() + ")";
    case TypeKind::kInt:
      return std::to_string(value.integer());
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return "CAST('" + JavaDoubleToString(value.real()) + "' AS " + literal.type.Sql() + ")";
    case TypeKind::kDecimal:
      return "CAST('" + types::DecimalToString(value.decimal(), literal.type.scale()) + "' AS " + literal.type.Sql() +
             ")";
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return Quoted(value.text());
    case TypeKind::kBinary:
      return "X'" + HexEncode(value.text()) + "'";
    case TypeKind::kDate:
      return "DATE '" + types::DateToString(value.integer()) + "'";
    case TypeKind::kTimestamp: {
      FLEUVE_ASSIGN(const std::string text, types::TimestampToString(value.integer(), "UTC"));
      return "TIMESTAMP '" + text + "Z'";
    }
    case TypeKind::kTimestampNtz:
      return "TIMESTAMP_NTZ '" + types::TimestampNtzToString(value.integer()) + "'";
    default:
      return Error::Unsupported("a condition with a literal of type " + literal.type.Sql());
  }
}

}  // namespace

Result<std::string> ExprSql(const plan::ExprPtr& expr) {
  std::vector<std::string> children;
  for (const plan::ExprPtr& child : expr->children) {
    FLEUVE_ASSIGN(std::string text, ExprSql(child));
    children.push_back(std::move(text));
  }
  switch (expr->kind) {
    case ExprKind::kLiteral:
      return LiteralSql(*expr);
    case ExprKind::kAttribute:
      return types::QuoteIdentifier(expr->attribute.name);
    case ExprKind::kCast:
      return "CAST(" + children[0] + " AS " + expr->type.Sql() + ")";
    case ExprKind::kGetField: {
      const auto& fields = expr->children[0]->type.fields();
      return children[0] + "." + types::QuoteIdentifier(fields.at(static_cast<std::size_t>(expr->ordinal)).name);
    }
    case ExprKind::kCall: {
      static constexpr std::pair<std::string_view, std::string_view> kOperators[] = {
          {"and", "AND"}, {"or", "OR"}, {"eq", "="},  {"ne", "<>"},         {"lt", "<"},
          {"le", "<="},   {"gt", ">"},  {"ge", ">="}, {"eqnullsafe", "<=>"}};
      for (const auto& [name, symbol] : kOperators) {
        if (expr->function == name) {
          return "(" + Join(children, " " + std::string(symbol) + " ") + ")";
        }
      }
      if (expr->function == "not") {
        return "(NOT " + children[0] + ")";
      }
      if (expr->function == "isnull" || expr->function == "isnotnull") {
        return "(" + children[0] + (expr->function == "isnull" ? " IS NULL)" : " IS NOT NULL)");
      }
      if (expr->function == "in") {
        const std::string first = children[0];
        children.erase(children.begin());
        return "(" + first + " IN (" + Join(children, ", ") + "))";
      }
      break;
    }
    default:
      break;
  }
  return Error::Unsupported("the expression " + expr->display + " in an overwrite condition");
}

}  // namespace fleuve::session
