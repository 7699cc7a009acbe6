#include "plan/char_padding.h"

#include <algorithm>
#include <array>

#include "base/bytes.h"
#include "plan/call_function.h"
#include "plan/function_builder.h"
#include "types/parts.h"

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

constexpr std::string_view kDeclared = "__CHAR_VARCHAR_TYPE_STRING";

/// The type as it was declared, from a field's metadata; nullopt where it says nothing.
std::optional<DataType> DeclaredOf(const Json& metadata) {
  const Json* text = metadata.is_object() ? metadata.Find(kDeclared) : nullptr;
  if (text == nullptr || !text->is_string()) {
    return std::nullopt;
  }
  auto type = DataType::FromDdl(text->AsString());
  return type.ok() ? std::optional<DataType>(*type) : std::nullopt;
}

Result<ExprPtr> PadTo(const ExprPtr& value, int length, const AnalysisConfig& config) {
  FLEUVE_ASSIGN(ExprPtr padded,
                CallFunction("rpad",
                             {value, MakeLiteral(types::Value(static_cast<std::int64_t>(length)), DataType::Int()),
                              MakeLiteral(types::Value(" "), DataType::String())},
                             config));
  return WithDisplay(padded, value->display);
}

/// `value` with the CHAR parts of `declared` filled up.
Result<ExprPtr> Pad(const ExprPtr& value, const DataType& declared, const AnalysisConfig& config) {
  if (declared.Is(TypeKind::kChar)) {
    return PadTo(value, declared.length(), config);
  }
  if (!types::Holds(declared, TypeKind::kChar)) {
    return value;
  }
  if (!declared.Is(TypeKind::kStruct) || !value->type.Is(TypeKind::kStruct) ||
      declared.fields().size() != value->type.fields().size()) {
    return Error::Unsupported("CHAR values inside arrays and maps (" + declared.SimpleString() + ")");
  }
  std::vector<ExprPtr> parts;
  for (std::size_t i = 0; i < declared.fields().size(); ++i) {
    parts.push_back(MakeLiteral(types::Value(declared.fields()[i].name), DataType::String()));
    FLEUVE_ASSIGN(ExprPtr part, Pad(MakeGetField(value, static_cast<int>(i)), declared.fields()[i].type, config));
    parts.push_back(std::move(part));
  }
  FLEUVE_ASSIGN(ExprPtr made, CallFunction("named_struct", std::move(parts), config));
  const ExprPtr is_null = MakeCall("isnull", {value}, DataType::Boolean(), false);
  return WithDisplay(MakeCase({is_null, MakeNull(made->type), made}, true, made->type), value->display);
}

/// The length of a CHAR column or field; 0 for anything else.
int CharLengthOf(const ExprPtr& expr) {
  std::optional<DataType> declared;
  if (expr->kind == ExprKind::kAttribute) {
    declared = DeclaredOf(expr->attribute.metadata);
  } else if (expr->kind == ExprKind::kGetField && expr->children[0]->type.Is(TypeKind::kStruct)) {
    declared = DeclaredOf(expr->children[0]->type.fields()[static_cast<std::size_t>(expr->ordinal)].metadata);
  }
  return declared && declared->Is(TypeKind::kChar) && expr->type.IsString() ? declared->length() : 0;
}

int CharactersOf(const std::string& text) {
  return static_cast<int>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

}  // namespace

Result<PlanPtr> PadCharColumns(const PlanPtr& plan, const AnalysisConfig& config) {
  std::vector<ExprPtr> exprs;
  std::vector<Attribute> output;
  bool any = false;
  for (const Attribute& attribute : plan->output) {
    ExprPtr value = MakeAttribute(attribute);
    Attribute out = attribute;
    if (const auto declared = DeclaredOf(attribute.metadata); declared && types::Holds(*declared, TypeKind::kChar)) {
      FLEUVE_ASSIGN(value, Pad(value, *declared, config));
      out.id = NewAttributeId();
      any = true;
    }
    exprs.push_back(std::move(value));
    output.push_back(std::move(out));
  }
  if (!any) {
    return plan;
  }
  return MakeProject(plan, std::move(exprs), std::move(output));
}

Result<ExprPtr> PadCharAttributes(const ExprPtr& expr, const AnalysisConfig& config) {
  if (expr == nullptr || !AnyExpr(expr, [](const Expr& e) {
        return e.kind == ExprKind::kAttribute && DeclaredOf(e.attribute.metadata).has_value();
      })) {
    return expr;
  }
  Result<void> status;
  ExprPtr made = RewriteExpr(expr, [&](const ExprPtr& e) -> ExprPtr {
    if (e->kind != ExprKind::kAttribute || !status.ok()) {
      return nullptr;
    }
    const auto declared = DeclaredOf(e->attribute.metadata);
    if (!declared || !types::Holds(*declared, TypeKind::kChar)) {
      return nullptr;
    }
    auto padded = Pad(e, *declared, config);
    if (!padded.ok()) {
      status = std::move(padded).error();
      return nullptr;
    }
    return *std::move(padded);
  });
  FLEUVE_TRY(std::move(status));
  return made;
}

bool ComparesChars(std::string_view function) {
  static constexpr std::array<std::string_view, 10> kNames{"=", "==", "<=>", "<", "<=", ">", ">=", "!=", "<>", "in"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return EqualsIgnoreAsciiCase(name, function); });
}

Result<void> PadComparison(std::vector<ExprPtr>* operands, const AnalysisConfig& config) {
  int longest = 0;
  for (const ExprPtr& operand : *operands) {
    longest = std::max(longest, operand == nullptr ? 0 : CharLengthOf(operand));
  }
  if (longest == 0) {
    return {};
  }
  const auto literal_length = [](const ExprPtr& operand) {
    return operand != nullptr && operand->kind == ExprKind::kLiteral && operand->type.IsString() &&
                   !operand->value.is_null()
               ? CharactersOf(operand->value.text())
               : -1;
  };
  for (const ExprPtr& operand : *operands) {
    longest = std::max(longest, literal_length(operand));
  }
  for (ExprPtr& operand : *operands) {
    if (const int length = literal_length(operand); length >= 0 && length < longest) {
      operand = WithDisplay(MakeLiteral(types::Value(operand->value.text() +
                                                     std::string(static_cast<std::size_t>(longest - length), ' ')),
                                        operand->type),
                            operand->display);
    } else if (const int own = operand == nullptr ? 0 : CharLengthOf(operand); own > 0 && own < longest) {
      FLEUVE_ASSIGN(operand, PadTo(operand, longest, config));
    }
  }
  return {};
}

}  // namespace fleuve::plan
