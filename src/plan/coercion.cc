#include "plan/coercion.h"

#include <algorithm>
#include <functional>

#include "base/bytes.h"
#include "plan/coercion_internal.h"
#include "types/numeric_rank.h"

namespace fleuve::plan {

using types::DataType;
using types::StructField;
using types::TypeKind;

namespace {

constexpr int kMaxPrecision = 38;

bool IsAtomic(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kVoid:
    case TypeKind::kArray:
    case TypeKind::kMap:
    case TypeKind::kStruct:
    case TypeKind::kCalendarInterval:
    case TypeKind::kVariant:
      return false;
    default:
      return true;
  }
}

/// True where every value of `from` fits into the decimal `to`.
bool DecimalHolds(const DataType& to, const DataType& from) {
  DataType have = from.IsIntegral() ? DecimalForType(from) : from;
  if (!have.Is(TypeKind::kDecimal)) {
    return false;
  }
  return have.precision() - have.scale() <= to.precision() - to.scale() && have.scale() <= to.scale();
}

using Finder = std::function<std::optional<DataType>(const DataType&, const DataType&)>;

std::optional<DataType> ForComplex(const DataType& a, const DataType& b, const Finder& find) {
  if (a.kind() != b.kind()) {
    return std::nullopt;
  }
  if (a.Is(TypeKind::kArray)) {
    auto element = find(a.element(), b.element());
    if (!element) {
      return std::nullopt;
    }
    return DataType::Array(*element, a.contains_null() || b.contains_null());
  }
  if (a.Is(TypeKind::kMap)) {
    auto key = find(a.key(), b.key());
    auto value = find(a.value(), b.value());
    if (!key || !value) {
      return std::nullopt;
    }
    return DataType::Map(*key, *value, a.contains_null() || b.contains_null());
  }
  if (a.Is(TypeKind::kStruct)) {
    if (a.fields().size() != b.fields().size()) {
      return std::nullopt;
    }
    std::vector<StructField> fields;
    for (std::size_t i = 0; i < a.fields().size(); ++i) {
      const StructField& x = a.fields()[i];
      const StructField& y = b.fields()[i];
      if (!EqualsIgnoreAsciiCase(x.name, y.name)) {
        return std::nullopt;
      }
      auto type = find(x.type, y.type);
      if (!type) {
        return std::nullopt;
      }
      fields.push_back({x.name, *type, x.nullable || y.nullable, Json()});
    }
    return DataType::Struct(std::move(fields));
  }
  return std::nullopt;
}

std::optional<DataType> Tightest(const DataType& a, const DataType& b, bool ansi) {
  if (a == b) {
    return a;
  }
  if (a.EqualsIgnoringNullability(b) && !a.IsNested()) {
    return a;
  }
  if (a.Is(TypeKind::kVoid)) {
    return b;
  }
  if (b.Is(TypeKind::kVoid)) {
    return a;
  }
  if (a.IsString() && b.IsString()) {
    if (a.Is(TypeKind::kString) && b.Is(TypeKind::kString) && a.collation() != b.collation()) {
      return std::nullopt;
    }
    return a.Is(TypeKind::kString) ? a : (b.Is(TypeKind::kString) ? b : DataType::String());
  }
  if (a.IsIntegral() && b.Is(TypeKind::kDecimal) && DecimalHolds(b, a)) {
    return b;
  }
  if (b.IsIntegral() && a.Is(TypeKind::kDecimal) && DecimalHolds(a, b)) {
    return a;
  }
  int rank_a = types::NumericRank(a.kind());
  int rank_b = types::NumericRank(b.kind());
  if (rank_a != 0 && rank_b != 0) {
    const DataType& wider = rank_a > rank_b ? a : b;
    if (ansi && wider.Is(TypeKind::kFloat)) {
      return DataType::Double();
    }
    return wider;
  }
  if (a.IsDateTime() && b.IsDateTime()) {
    if (a.Is(TypeKind::kTimestamp) || b.Is(TypeKind::kTimestamp)) {
      return DataType::Timestamp();
    }
    return DataType::TimestampNtz();
  }
  if (a.Is(TypeKind::kDayTimeInterval) && b.Is(TypeKind::kDayTimeInterval)) {
    return DataType::DayTimeInterval(std::min(a.precision(), b.precision()), std::max(a.scale(), b.scale()));
  }
  if (a.Is(TypeKind::kYearMonthInterval) && b.Is(TypeKind::kYearMonthInterval)) {
    return DataType::YearMonthInterval(std::min(a.precision(), b.precision()), std::max(a.scale(), b.scale()));
  }
  return ForComplex(a, b, [ansi](const DataType& x, const DataType& y) { return Tightest(x, y, ansi); });
}

std::optional<DataType> WiderDecimal(const DataType& a, const DataType& b) {
  if (a.Is(TypeKind::kDecimal) && b.Is(TypeKind::kDecimal)) {
    int scale = std::max(a.scale(), b.scale());
    int range = std::max(a.precision() - a.scale(), b.precision() - b.scale());
    return BoundedDecimalPreferIntegral(range + scale, scale);
  }
  if (a.Is(TypeKind::kDecimal) && b.IsIntegral()) {
    return WiderDecimal(a, DecimalForType(b));
  }
  if (b.Is(TypeKind::kDecimal) && a.IsIntegral()) {
    return WiderDecimal(DecimalForType(a), b);
  }
  auto floating = [](const DataType& t) { return t.Is(TypeKind::kFloat) || t.Is(TypeKind::kDouble); };
  if ((a.Is(TypeKind::kDecimal) && floating(b)) || (b.Is(TypeKind::kDecimal) && floating(a))) {
    return DataType::Double();
  }
  return std::nullopt;
}

std::optional<DataType> WiderString(const DataType& a, const DataType& b, bool ansi) {
  if (b.IsString() && !a.IsString()) {
    return WiderString(b, a, ansi);
  }
  if (!a.IsString() || !IsAtomic(b)) {
    return std::nullopt;
  }
  if (!ansi) {
    if (b.Is(TypeKind::kBinary) || b.Is(TypeKind::kBoolean)) {
      return std::nullopt;
    }
    return DataType::String();
  }
  if (b.IsIntegral()) {
    return DataType::Long();
  }
  if (b.IsFractional()) {
    return DataType::Double();
  }
  return b;
}

std::optional<DataType> Wider(const DataType& a, const DataType& b, bool ansi) {
  if (auto type = Tightest(a, b, ansi)) {
    return type;
  }
  if (auto type = WiderDecimal(a, b)) {
    return type;
  }
  if (auto type = WiderString(a, b, ansi)) {
    return type;
  }
  return ForComplex(a, b, [ansi](const DataType& x, const DataType& y) { return Wider(x, y, ansi); });
}

/// The decimals that an integral type's values need.
bool CanCastInMode(const DataType& from, const DataType& to, bool ansi) {
  if (from == to || from.Is(TypeKind::kVoid)) {
    return true;
  }
  if (from.Is(TypeKind::kVariant)) {
    return !to.Is(TypeKind::kCalendarInterval);
  }
  if (to.Is(TypeKind::kVariant)) {
    // Structs and maps become variants by to_variant_object only.
    return from.Is(TypeKind::kArray) ? CanCastInMode(from.element(), to, ansi)
                                     : !from.Is(TypeKind::kCalendarInterval) && !from.IsNested();
  }
  if (to.Is(TypeKind::kVoid)) {
    return false;
  }
  if (to.IsString()) {
    return true;
  }
  switch (to.kind()) {
    case TypeKind::kBinary:
      return from.IsString() || from.Is(TypeKind::kBinary) || (!ansi && from.IsIntegral());
    case TypeKind::kBoolean:
      return from.IsString() || from.IsNumeric() || from.Is(TypeKind::kBoolean) ||
             (!ansi && (from.Is(TypeKind::kDate) || from.Is(TypeKind::kTimestamp)));
    case TypeKind::kTimestamp:
      return from.IsString() || from.IsNumeric() || from.IsDateTime() || (!ansi && from.Is(TypeKind::kBoolean));
    case TypeKind::kTimestampNtz:
    case TypeKind::kDate:
      return from.IsString() || from.IsDateTime();
    case TypeKind::kCalendarInterval:
      return from.IsString() || from.Is(TypeKind::kCalendarInterval);
    case TypeKind::kDayTimeInterval:
      return from.IsString() || from.IsIntegral() || from.Is(TypeKind::kDayTimeInterval) || from.Is(TypeKind::kDecimal);
    case TypeKind::kYearMonthInterval:
      return from.IsString() || from.IsIntegral() || from.Is(TypeKind::kYearMonthInterval) ||
             from.Is(TypeKind::kDecimal);
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
    case TypeKind::kDecimal:
      if (from.Is(TypeKind::kDayTimeInterval) || from.Is(TypeKind::kYearMonthInterval)) {
        return from.precision() == from.scale();
      }
      [[fallthrough]];
    case TypeKind::kFloat:
    case TypeKind::kDouble:
      return from.IsString() || from.IsNumeric() || from.Is(TypeKind::kBoolean) || from.Is(TypeKind::kTimestamp) ||
             (!ansi && from.Is(TypeKind::kDate));
    case TypeKind::kArray:
      return from.Is(TypeKind::kArray) && CanCastInMode(from.element(), to.element(), ansi);
    case TypeKind::kMap:
      return from.Is(TypeKind::kMap) && CanCastInMode(from.key(), to.key(), ansi) &&
             CanCastInMode(from.value(), to.value(), ansi);
    case TypeKind::kStruct: {
      if (!from.Is(TypeKind::kStruct) || from.fields().size() != to.fields().size()) {
        return false;
      }
      for (std::size_t i = 0; i < from.fields().size(); ++i) {
        if (!CanCastInMode(from.fields()[i].type, to.fields()[i].type, ansi)) {
          return false;
        }
      }
      return true;
    }
    default:
      return false;
  }
}

/// Spark's Cast.forceNullable.
bool ForceNullable(const DataType& from, const DataType& to) {
  if (from.Is(TypeKind::kVoid) || from.EqualsIgnoringNullability(to)) {
    return false;
  }
  if (from.Is(TypeKind::kVariant)) {
    return true;
  }
  if (from.IsString()) {
    return !to.Is(TypeKind::kBinary) && !to.IsString();
  }
  if (to.IsString()) {
    return false;
  }
  if (from.Is(TypeKind::kTimestamp) && (to.Is(TypeKind::kByte) || to.Is(TypeKind::kShort) || to.Is(TypeKind::kInt))) {
    return true;
  }
  if ((from.Is(TypeKind::kFloat) || from.Is(TypeKind::kDouble)) && to.Is(TypeKind::kTimestamp)) {
    return true;
  }
  if (from.Is(TypeKind::kTimestamp) && to.Is(TypeKind::kDate)) {
    return false;
  }
  if (to.Is(TypeKind::kDate) || to.Is(TypeKind::kCalendarInterval)) {
    return true;
  }
  if (to.Is(TypeKind::kDecimal)) {
    return !(from.Is(TypeKind::kBoolean) ? to.precision() - to.scale() >= 1 : DecimalHolds(to, from));
  }
  if (from.IsFractional() && to.IsIntegral()) {
    return true;
  }
  return false;
}

bool CastCanFailAnsi(const DataType& from, const DataType& to) {
  if (from.Is(TypeKind::kVoid) || from.EqualsIgnoringNullability(to)) {
    return false;
  }
  if (from.Is(TypeKind::kVariant)) {
    return true;
  }
  if (to.IsString() || to.Is(TypeKind::kVariant)) {
    return false;
  }
  if (from.IsString()) {
    return !to.Is(TypeKind::kBinary) && !to.Is(TypeKind::kCalendarInterval);
  }
  int rank_from = types::NumericRank(from.kind());
  int rank_to = types::NumericRank(to.kind());
  if (rank_to != 0) {
    if (rank_from != 0) {
      return rank_to < rank_from && !to.IsFractional();
    }
    if (from.Is(TypeKind::kDecimal)) {
      return !to.IsFractional();
    }
    return from.Is(TypeKind::kTimestamp) ? rank_to < types::NumericRank(TypeKind::kLong)
                                         : from.Is(TypeKind::kDayTimeInterval) || from.Is(TypeKind::kYearMonthInterval);
  }
  switch (to.kind()) {
    case TypeKind::kDecimal:
      return !(from.Is(TypeKind::kBoolean) ? to.precision() - to.scale() >= 1 : DecimalHolds(to, from));
    case TypeKind::kBoolean:
      return false;
    case TypeKind::kTimestamp:
      return false;
    case TypeKind::kTimestampNtz:
    case TypeKind::kDate:
      return false;
    case TypeKind::kArray:
      return CastCanFailAnsi(from.element(), to.element());
    case TypeKind::kMap:
      return CastCanFailAnsi(from.key(), to.key()) || CastCanFailAnsi(from.value(), to.value());
    case TypeKind::kStruct:
      for (std::size_t i = 0; i < from.fields().size(); ++i) {
        if (CastCanFailAnsi(from.fields()[i].type, to.fields()[i].type)) {
          return true;
        }
      }
      return false;
    default:
      return true;
  }
}

}  // namespace

bool CanUpCast(const DataType& from, const DataType& to) {
  if (from == to || from.Is(TypeKind::kVoid)) {
    return true;
  }
  int rank_from = types::NumericRank(from.kind());
  int rank_to = types::NumericRank(to.kind());
  if (rank_from != 0 && rank_to != 0) {
    return rank_from <= rank_to;
  }
  if (to.Is(TypeKind::kDecimal)) {
    return DecimalHolds(to, from);
  }
  if (to.IsString()) {
    return IsAtomic(from) || from.Is(TypeKind::kCalendarInterval);
  }
  if (from.Is(TypeKind::kDate) || from.Is(TypeKind::kTimestampNtz) || from.Is(TypeKind::kTimestamp)) {
    return to.Is(TypeKind::kTimestamp) || to.Is(TypeKind::kTimestampNtz);
  }
  if (from.Is(TypeKind::kArray) && to.Is(TypeKind::kArray)) {
    return CanUpCast(from.element(), to.element());
  }
  if (from.Is(TypeKind::kMap) && to.Is(TypeKind::kMap)) {
    return CanUpCast(from.key(), to.key()) && CanUpCast(from.value(), to.value());
  }
  if (from.Is(TypeKind::kStruct) && to.Is(TypeKind::kStruct) && from.fields().size() == to.fields().size()) {
    for (std::size_t i = 0; i < from.fields().size(); ++i) {
      if (!CanUpCast(from.fields()[i].type, to.fields()[i].type)) {
        return false;
      }
    }
    return true;
  }
  return false;
}

types::DataType DecimalForType(const types::DataType& type) {
  switch (type.kind()) {
    case TypeKind::kByte:
      return DataType::Decimal(3, 0);
    case TypeKind::kShort:
      return DataType::Decimal(5, 0);
    case TypeKind::kInt:
      return DataType::Decimal(10, 0);
    case TypeKind::kLong:
      return DataType::Decimal(20, 0);
    case TypeKind::kFloat:
      return DataType::Decimal(14, 7);
    case TypeKind::kDouble:
      return DataType::Decimal(30, 15);
    case TypeKind::kDecimal:
      return type;
    default:
      return DataType::Decimal(kMaxPrecision, 18);
  }
}

types::DataType BoundedDecimal(int precision, int scale) {
  return DataType::Decimal(std::min(precision, kMaxPrecision), std::min(scale, kMaxPrecision));
}

types::DataType BoundedDecimalPreferIntegral(int precision, int scale) {
  if (precision <= kMaxPrecision) {
    return DataType::Decimal(precision, scale);
  }
  return DataType::Decimal(kMaxPrecision, std::max(0, scale - (precision - kMaxPrecision)));
}

types::DataType AdjustedDecimal(int precision, int scale) {
  if (precision <= kMaxPrecision) {
    return DataType::Decimal(precision, scale);
  }
  if (scale < 0) {
    return DataType::Decimal(kMaxPrecision, scale);
  }
  int integral = precision - scale;
  int min_scale = std::min(scale, 6);
  return DataType::Decimal(kMaxPrecision, std::max(kMaxPrecision - integral, min_scale));
}

std::optional<DataType> TightestCommonType(const DataType& a, const DataType& b, const AnalysisConfig& config) {
  return Tightest(a, b, config.ansi);
}

std::optional<DataType> WiderType(const DataType& a, const DataType& b, const AnalysisConfig& config) {
  return Wider(a, b, config.ansi);
}

std::optional<DataType> WiderType(const std::vector<DataType>& all, const AnalysisConfig& config) {
  // Strings last, as Spark does: the result does not depend on where the strings stand.
  std::optional<DataType> result = DataType::Void();
  auto merge = [&](bool strings) {
    for (const DataType& type : all) {
      if (result && type.IsString() == strings) {
        result = Wider(*result, type, config.ansi);
      }
    }
  };
  if (config.ansi) {
    merge(false);
    merge(true);
  } else {
    merge(true);
    merge(false);
  }
  return result;
}

bool CanImplicitlyCast(const DataType& from, const DataType& to, const AnalysisConfig& config) {
  if (from.Is(TypeKind::kVoid) || from.EqualsIgnoringNullability(to)) {
    return true;
  }
  if (from.IsString() && IsAtomic(to)) {
    return config.ansi || !to.Is(TypeKind::kBoolean);
  }
  if (config.ansi) {
    return CanStoreAssign(from, to);
  }
  if (from.IsNumeric() && to.IsNumeric()) {
    return true;
  }
  if (from.IsDateTime() && to.IsDateTime()) {
    return true;
  }
  if (to.IsString()) {
    return IsAtomic(from);
  }
  if (from.Is(TypeKind::kArray) && to.Is(TypeKind::kArray)) {
    return CanImplicitlyCast(from.element(), to.element(), config);
  }
  if (from.Is(TypeKind::kMap) && to.Is(TypeKind::kMap)) {
    return CanImplicitlyCast(from.key(), to.key(), config) && CanImplicitlyCast(from.value(), to.value(), config);
  }
  return from.Is(TypeKind::kDayTimeInterval) ? to.Is(TypeKind::kDayTimeInterval)
                                             : from.Is(TypeKind::kYearMonthInterval) && to.kind() == from.kind();
}

bool CanCast(const DataType& from, const DataType& to, const AnalysisConfig& config) {
  return CanCastInMode(from, to, config.ansi);
}

bool CanStoreAssign(const DataType& from, const DataType& to) {
  if (from == to || from.Is(TypeKind::kVoid)) {
    return true;
  }
  if (from.IsNumeric() && to.IsNumeric()) {
    return true;
  }
  if (to.IsString()) {
    return IsAtomic(from) || from.Is(TypeKind::kCalendarInterval);
  }
  if (from.IsDateTime() && to.IsDateTime()) {
    return true;
  }
  if (from.kind() != to.kind()) {
    return false;
  }
  switch (from.kind()) {
    case TypeKind::kArray:
      return CanStoreAssign(from.element(), to.element());
    case TypeKind::kMap:
      return CanStoreAssign(from.key(), to.key()) && CanStoreAssign(from.value(), to.value());
    case TypeKind::kStruct:
      if (from.fields().size() != to.fields().size()) {
        return false;
      }
      for (std::size_t i = 0; i < from.fields().size(); ++i) {
        if (!CanStoreAssign(from.fields()[i].type, to.fields()[i].type)) {
          return false;
        }
      }
      return true;
    default:
      return true;
  }
}

Result<ExprPtr> MakeCast(const ExprPtr& expr, const DataType& type, const AnalysisConfig& config) {
  return MakeCast(expr, type, config.ansi ? CastMode::kAnsi : CastMode::kLegacy, config);
}

Result<ExprPtr> MakeCast(const ExprPtr& expr, const DataType& type, CastMode mode, const AnalysisConfig& config) {
  const DataType& from = expr->type;
  if (from.EqualsIgnoringNullability(type)) {
    return expr;
  }
  if (type.Is(TypeKind::kTime)) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_TIME_TYPE", "The data type TIME is not supported.");
  }
  if (!CanCastInMode(from, type, mode != CastMode::kLegacy)) {
    auto mismatch = [&](const char* subclass, std::string more) {
      return Error(ErrorKind::kInvalidArgument, std::string("DATATYPE_MISMATCH.") + subclass,
                   "Cannot resolve \"CAST(" + expr->display + " AS " + type.Sql() +
                       ")\" due to data type mismatch: cannot cast \"" + from.Sql() + "\" to \"" + type.Sql() + "\"" +
                       more + ".")
          .With("sqlExpr", "\"CAST(" + expr->display + " AS " + type.Sql() + ")\"")
          .With("srcType", "\"" + from.Sql() + "\"")
          .With("targetType", "\"" + type.Sql() + "\"");
    };
    if (from.IsNumeric() && type.Is(TypeKind::kDate) && mode != CastMode::kLegacy) {
      return mismatch("CAST_WITH_FUNC_SUGGESTION",
                      ". To convert values from \"" + from.Sql() +
                          "\" to \"DATE\", you can use the functions `DATE_FROM_UNIX_DATE` instead");
    }
    if (from.Is(TypeKind::kDate) && type.IsNumeric()) {
      return mismatch("CAST_WITH_FUNC_SUGGESTION", ", you can use the functions `UNIX_DATE` instead");
    }
    if (mode == CastMode::kAnsi && CanCastInMode(from, type, false)) {
      return mismatch("CAST_WITH_CONF_SUGGESTION", " with ANSI mode on");
    }
    return mismatch("CAST_WITHOUT_SUGGESTION", "");
  }
  Expr node;
  node.kind = ExprKind::kCast;
  node.type = type;
  node.children = {expr};
  node.cast_mode = mode;
  node.zone = config.session_zone;
  node.display = expr->display;
  node.context = expr->context;
  bool fails = CastCanFailAnsi(from, type);
  node.can_fail = expr->can_fail || (mode == CastMode::kAnsi && fails);
  node.deterministic = expr->deterministic;
  if (mode == CastMode::kTry) {
    bool kept = (from.IsString() && type.Is(TypeKind::kBinary)) ||
                (CanUpCast(from, type) && !(from.Is(TypeKind::kDecimal) && type.IsIntegral()));
    node.nullable = expr->nullable || !kept;
  } else {
    // In ANSI mode a decimal that does not fit another one is an error.
    const bool fails_instead = mode == CastMode::kAnsi && type.Is(TypeKind::kDecimal) && from.Is(TypeKind::kDecimal);
    node.nullable = expr->nullable || from.Is(TypeKind::kVoid) || (!fails_instead && ForceNullable(from, type));
  }
  return std::make_shared<const Expr>(std::move(node));
}

}  // namespace fleuve::plan
