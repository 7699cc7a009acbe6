#include <algorithm>
#include <cstdlib>

#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;

Call::Call(const FunctionCall& call) : source(call), config(*call.config), name(AsciiLower(call.name)) {
  args = call.arguments;
  for (const ExprPtr& arg : args) {
    shown.push_back(arg ? arg->display : std::string());
  }
}

bool Call::Conf(const std::string& key, bool fallback) const {
  if (!config.conf) {
    return fallback;
  }
  auto value = config.conf(key);
  return value ? EqualsIgnoreAsciiCase(*value, "true") : fallback;
}

std::string Call::Display(std::string_view as) const {
  std::string text(as);
  text += '(';
  for (std::size_t i = 0; i < shown.size(); ++i) {
    if (i > 0) {
      text += ", ";
    }
    text += shown[i];
  }
  return text + ')';
}

Error Call::Unexpected(std::size_t i, const std::string& required) const {
  static constexpr const char* kOrdinals[] = {"first", "second", "third", "fourth", "fifth", "sixth", "seventh"};
  std::string ordinal = i < 7 ? kOrdinals[i] : std::to_string(i + 1) + "th";
  return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
               "Cannot resolve \"" + Display() + "\" due to data type mismatch: The " + ordinal +
                   " parameter requires the \"" + required + "\" type, however \"" + shown[i] + "\" has the type \"" +
                   args[i]->type.Sql() + "\".")
      .With("sqlExpr", "\"" + Display() + "\"")
      .With("paramIndex", ordinal)
      .With("requiredType", "\"" + required + "\"")
      .With("inputSql", "\"" + shown[i] + "\"")
      .With("inputType", "\"" + args[i]->type.Sql() + "\"");
}

Error Call::Mismatch(const std::string& subclass, const std::string& message) const {
  return Error(ErrorKind::kInvalidArgument, "DATATYPE_MISMATCH." + subclass,
               "Cannot resolve \"" + Display() + "\" due to data type mismatch: " + message)
      .With("sqlExpr", "\"" + Display() + "\"");
}

Error Call::WrongCount(const std::string& expected) const {
  return Error(ErrorKind::kInvalidArgument, "WRONG_NUM_ARGS.WITHOUT_SUGGESTION",
               "The `" + name + "` requires " + expected + " parameters but the actual number is " +
                   std::to_string(args.size()) + ".")
      .With("functionName", "`" + name + "`")
      .With("expectedNum", expected)
      .With("actualNum", std::to_string(args.size()));
}

Result<void> Call::Count(std::size_t from, std::size_t to) const {
  if (args.size() < from || args.size() > to) {
    return WrongCount(from == to ? std::to_string(from) : "[" + std::to_string(from) + ", " + std::to_string(to) + "]");
  }
  return {};
}

Result<void> Call::To(std::size_t i, const DataType& type) {
  if (args[i] == nullptr) {
    return Unexpected(i, type.Sql());
  }
  const DataType& from = args[i]->type;
  if (from.kind() == type.kind() &&
      (type.IsString() || type.Is(TypeKind::kDayTimeInterval) || type.Is(TypeKind::kYearMonthInterval))) {
    return {};
  }
  if (!CanImplicitlyCast(from, type, config)) {
    return Unexpected(i, type.Sql());
  }
  return Cast(i, type);
}

namespace {

/// A literal of another type where that takes no arithmetic: NULLs, and whole numbers that fit. Null where it does.
ExprPtr CastLiteral(const ExprPtr& expr, const DataType& type) {
  if (expr->kind != ExprKind::kLiteral) {
    return nullptr;
  }
  types::Value value = expr->value;
  if (!value.is_null()) {
    if (!expr->type.IsIntegral() || !type.IsIntegral()) {
      return nullptr;
    }
    int bits = type.Is(TypeKind::kByte) ? 7 : type.Is(TypeKind::kShort) ? 15 : type.Is(TypeKind::kInt) ? 31 : 63;
    std::int64_t number = value.integer();
    if (bits < 63 && (number >= (std::int64_t{1} << bits) || number < -(std::int64_t{1} << bits))) {
      return nullptr;
    }
  }
  auto copy = std::make_shared<Expr>(*expr);
  copy->type = type;
  copy->nullable = value.is_null();
  return copy;
}

}  // namespace

Result<void> Call::Cast(std::size_t i, const DataType& type) {
  if (!args[i]->type.EqualsIgnoringNullability(type) && !type.IsNested()) {
    if (ExprPtr literal = CastLiteral(args[i], type)) {
      args[i] = std::move(literal);
      return {};
    }
  }
  FLEUVE_ASSIGN(args[i], MakeCast(args[i], type, config));
  return {};
}

Result<void> Call::ToOneOf(std::size_t i, std::initializer_list<DataType> accepted) {
  if (args[i] == nullptr) {
    return Unexpected(i, accepted.begin()->Sql());
  }
  for (const DataType& type : accepted) {
    if (args[i]->type.kind() == type.kind() || (args[i]->type.IsString() && type.IsString())) {
      return {};
    }
  }
  for (const DataType& type : accepted) {
    if (CanImplicitlyCast(args[i]->type, type, config)) {
      return Cast(i, type);
    }
  }
  std::string required = "(";
  for (const DataType& type : accepted) {
    required += (required.size() > 1 ? "\" or \"" : "\"") + type.Sql();
  }
  return Unexpected(i, required + "\")");
}

Result<void> Call::ToNumeric(std::size_t i) {
  const DataType& from = args[i]->type;
  if (from.IsNumeric()) {
    return {};
  }
  if (from.IsString() || from.Is(TypeKind::kVoid)) {
    return Cast(i, DataType::Double());
  }
  return Unexpected(i, "NUMERIC");
}

Result<DataType> Call::ToCommon(const std::vector<std::size_t>& which) {
  std::vector<DataType> all;
  for (std::size_t i : which) {
    all.push_back(args[i]->type);
  }
  std::optional<DataType> type = all.empty() ? DataType::Void() : all.front();
  for (const DataType& other : all) {
    if (!other.EqualsIgnoringNullability(*type)) {
      type = WiderType(all, config);
      break;
    }
  }
  if (!type) {
    std::string types;
    for (const DataType& t : all) {
      types += (types.empty() ? "\"" : ", \"") + t.Sql() + "\"";
    }
    return Mismatch("DATA_DIFF_TYPES",
                    "Input to `" + name + "` should all be the same type, but it's [" + types + "].");
  }
  for (std::size_t i : which) {
    FLEUVE_TRY(Cast(i, *type));
  }
  // Nullability of parts: the widest of all.
  bool nested = type->IsNested();
  return nested ? WiderType(all, config).value_or(*type) : *type;
}

Result<DataType> Call::ToCommon(std::size_t from, std::size_t to, std::size_t step) {
  std::vector<std::size_t> which;
  for (std::size_t i = from; i < to; i += step) {
    which.push_back(i);
  }
  return ToCommon(which);
}

void Call::Default(types::Value value, const DataType& type) {
  args.push_back(MakeLiteral(std::move(value), type));
  shown.push_back(args.back()->display);
}

void Call::Hidden(types::Value value, const DataType& type) { args.push_back(MakeLiteral(std::move(value), type)); }

const types::Value* Call::LiteralOf(std::size_t i) const {
  const Expr* node = args[i].get();
  return node != nullptr && node->kind == ExprKind::kLiteral ? &node->value : nullptr;
}

bool Call::AnyNullable() const {
  return std::any_of(args.begin(), args.end(), [](const ExprPtr& arg) { return arg->nullable; });
}

ExprPtr Call::Make(std::string function, DataType type, bool nullable, bool can_fail) const {
  return Shown(MakeCall(std::move(function), args, std::move(type), nullable, can_fail), Display());
}

ExprPtr Call::Shown(const ExprPtr& expr, std::string display) const {
  auto copy = std::make_shared<Expr>(*expr);
  copy->display = std::move(display);
  copy->context = source.context;
  return copy;
}

ExprPtr Call::Aggregate(std::string function, DataType type, bool nullable) const {
  std::string text = name + "(" + (source.distinct ? "DISTINCT " : "");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    text += (i > 0 ? ", " : "") + shown[i];
  }
  return Aggregate(std::move(function), std::move(type), nullable, text + ")");
}

ExprPtr Call::Aggregate(std::string function, DataType type, bool nullable, std::string display) const {
  auto node = std::make_shared<Expr>();
  node->kind = ExprKind::kAggregate;
  node->function = std::move(function);
  node->type = std::move(type);
  node->nullable = nullable;
  node->children = args;
  node->distinct = source.distinct;
  node->ignore_nulls = source.ignore_nulls;
  node->filter = source.filter;
  node->order_by = source.within_group;
  node->context = source.context;
  for (const ExprPtr& child : args) {
    node->can_fail = node->can_fail || child->can_fail;
    node->deterministic = node->deterministic && child->deterministic;
  }
  if (source.filter) {
    node->can_fail = node->can_fail || source.filter->can_fail;
    display += " FILTER (WHERE " + source.filter->display + ")";
  }
  node->display = std::move(display);
  return node;
}

namespace {

struct Parameter {
  char letter;
  bool optional = false;
  bool has_default = false;
  std::string value;
};

struct Signature {
  std::vector<Parameter> parameters;
  bool variadic = false;  // '*' repeats the last parameter
  char result = 's';
};

Signature ParseSignature(std::string_view text) {
  Signature out;
  bool optional = false;
  std::size_t i = 0;
  while (i < text.size() && text[i] != '>') {
    char c = text[i];
    if (c == ',') {
      optional = true;
      ++i;
      continue;
    }
    if (c == '*') {
      out.variadic = true;
      ++i;
      continue;
    }
    Parameter p{c, optional, false, {}};
    ++i;
    if (i < text.size() && text[i] == '=') {
      ++i;
      p.has_default = true;
      while (i < text.size() && text[i] != ',' && text[i] != '>') {
        p.value += text[i++];
      }
    }
    out.parameters.push_back(std::move(p));
  }
  out.result = i + 1 < text.size() ? text[i + 1] : 'A';
  return out;
}

DataType TypeOfLetter(char letter) {
  switch (letter) {
    case 's':
      return DataType::String();
    case 'i':
      return DataType::Int();
    case 'l':
      return DataType::Long();
    case 'd':
      return DataType::Double();
    case 'f':
      return DataType::Float();
    case 'b':
      return DataType::Boolean();
    case 'x':
      return DataType::Binary();
    case 'y':
      return DataType::Byte();
    case 'D':
      return DataType::Date();
    case 'T':
      return DataType::Timestamp();
    case 'N':
      return DataType::TimestampNtz();
    default:
      return DataType::Void();
  }
}

Result<void> Coerce(Call& call, std::size_t i, char letter) {
  switch (letter) {
    case 'n':
      return call.ToNumeric(i);
    case 'A':
      return {};
    case 'S':
      return call.ToOneOf(i, {DataType::String(), DataType::Binary()});
    default:
      return call.To(i, TypeOfLetter(letter));
  }
}

std::string Counts(int from, int to) {
  if (to < 0) {
    return "> " + std::to_string(from - 1);
  }
  if (from == to) {
    return std::to_string(from);
  }
  std::string counts = "[" + std::to_string(from);
  for (int count = from + 1; count <= to; ++count) {
    counts += ", " + std::to_string(count);
  }
  return counts + "]";
}

Error LambdaRefused(const Call& call) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_LAMBDA_FUNCTION_CALL.NON_HIGHER_ORDER_FUNCTION",
               "Invalid lambda function call. A lambda function should only be used in a higher order function. "
               "However, its class is `" +
                   call.name + "`, which is not a higher order function.")
      .With("class", "`" + call.name + "`");
}

/// Levels of arrays, maps and structs in a value. Clients read about 45, Arrow's readers 64; and the cost of a type
/// grows with the square of its depth.
constexpr int kTypeLevelsMax = 100;

int Levels(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return 1 + Levels(type.element());
    case TypeKind::kMap:
      return 1 + std::max(Levels(type.key()), Levels(type.value()));
    case TypeKind::kStruct: {
      int most = 0;
      for (const auto& field : type.fields()) {
        most = std::max(most, Levels(field.type));
      }
      return 1 + most;
    }
    default:
      return 0;
  }
}

}  // namespace

std::string ModeSuffix(const Call& call) { return call.ansi() ? "" : "_legacy"; }

Result<ExprPtr> Run(const Entry& entry, const FunctionCall& source) {
  Call call(source);
  if (entry.build != nullptr) {
    int count = static_cast<int>(call.size());
    if (!source.is_star && (count < entry.min_args || (entry.max_args >= 0 && count > entry.max_args))) {
      return call.WrongCount(Counts(entry.min_args, entry.max_args));
    }
    for (std::size_t i = 0; i < call.size(); ++i) {
      // Lambdas come as null and are bound by the builders that take them.
      if (call.args[i] == nullptr) {
        if (!source.lambda_arity || source.lambda_arity(i) == 0) {
          return Error::Internal("function argument is missing");
        }
        const Table& higher_order = HigherOrderFunctions();
        if (&entry < higher_order.data() || &entry >= higher_order.data() + higher_order.size()) {
          return LambdaRefused(call);
        }
      }
    }
    FLEUVE_ASSIGN(ExprPtr made, entry.build(call));
    if (Levels(made->type) > kTypeLevelsMax) {
      return Error::Unsupported("a value of more than " + std::to_string(kTypeLevelsMax) +
                                " levels of arrays, maps and structs");
    }
    return made;
  }
  Signature signature = ParseSignature(entry.signature);
  std::size_t required = 0;
  for (const Parameter& p : signature.parameters) {
    required += p.optional ? 0 : 1;
  }
  std::size_t most = signature.variadic ? ~std::size_t{0} : signature.parameters.size();
  if (call.size() < required || call.size() > most) {
    return call.WrongCount(
        Counts(static_cast<int>(required), signature.variadic ? -1 : static_cast<int>(signature.parameters.size())));
  }
  const std::size_t given = call.size();
  for (std::size_t i = call.size(); i < signature.parameters.size(); ++i) {
    const Parameter& p = signature.parameters[i];
    if (!p.has_default) {
      break;
    }
    types::Value value;
    DataType type = TypeOfLetter(p.letter);
    if (p.letter == 'i' || p.letter == 'l') {
      value = types::Value(static_cast<std::int64_t>(std::atoll(p.value.c_str())));
    } else if (p.letter == 'b') {
      value = types::Value(p.value == "true");
    } else if (p.letter == 'd') {
      value = types::Value(std::atof(p.value.c_str()));
    } else {
      value = types::Value(p.value);
      type = DataType::String();
    }
    if ((entry.flags & kHideDefaults) != 0) {
      call.Hidden(std::move(value), type);
    } else {
      call.Default(std::move(value), type);
    }
  }
  for (std::size_t i = 0; i < given; ++i) {
    const Parameter& p = signature.parameters[std::min(i, signature.parameters.size() - 1)];
    if (call.args[i] == nullptr) {
      return LambdaRefused(call);
    }
    FLEUVE_TRY(Coerce(call, i, p.letter));
  }
  bool nullable = (entry.flags & kNullable) != 0 || ((entry.flags & kNotNull) == 0 && call.AnyNullable());
  DataType result = signature.result == 'z' ? call.args[0]->type : TypeOfLetter(signature.result);
  if (signature.result == 'z' && (result.IsString() || result.Is(TypeKind::kVoid))) {
    result = result.Is(TypeKind::kString) ? result : DataType::String();
  }
  if ((entry.flags & kZone) != 0) {
    call.Hidden(types::Value(call.config.session_zone), DataType::String());
  }
  std::string implementation = entry.implementation;
  bool fails = (entry.flags & kFails) != 0;
  if ((entry.flags & kFailsAnsi) != 0) {
    implementation += ModeSuffix(call);
    fails = call.ansi();
    nullable = nullable || !call.ansi();
  }
  if ((entry.flags & kUpper) != 0) {
    call.name = AsciiUpper(call.name);
  }
  ExprPtr made = call.Make(std::move(implementation), std::move(result), nullable, fails);
  if ((entry.flags & kVolatile) != 0) {
    auto copy = std::make_shared<Expr>(*made);
    copy->deterministic = false;
    made = copy;
  }
  return made;
}

Result<ExprPtr> CallNamed(const Call& call, const char* name, std::vector<ExprPtr> args) {
  FunctionCall inner;
  inner.name = name;
  inner.arguments = std::move(args);
  inner.config = &call.config;
  inner.context = call.source.context;
  return BuildFunction(inner);
}

}  // namespace fleuve::plan::functions
