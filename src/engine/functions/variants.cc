#include <charconv>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/carriers_internal.h"
#include "engine/functions/aggregates_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/variant_internal.h"
#include "types/time_zone.h"

namespace fleuve::engine {

using types::DataType;
using types::TypeKind;

namespace {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using duckdb::VectorType;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') {
    text.remove_prefix(1);
  }
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
    text.remove_suffix(1);
  }
  return text;
}

/// A decimal rescaled, or nullopt where it does not fit.
std::optional<Int128> Rescale(Int128 value, int scale, int precision, int to_scale) {
  if (to_scale >= scale) {
    if (to_scale - scale > 38 || __builtin_mul_overflow(value, PowerOfTen(to_scale - scale), &value)) {
      return std::nullopt;
    }
  } else {
    value = DropDigits(value, scale - to_scale);
  }
  const Int128 bound = PowerOfTen(precision);
  return value < bound && value > -bound ? std::optional<Int128>(value) : std::nullopt;
}

std::optional<types::Value> Number(const VariantView& view, const DataType& type) {
  // As a decimal (exact) or as a double.
  std::optional<std::pair<Int128, int>> exact;
  double real = 0;
  switch (view.kind()) {
    case VariantKind::kLong:
      exact = {view.integer(), 0};
      break;
    case VariantKind::kBoolean:
      exact = {view.boolean() ? 1 : 0, 0};
      break;
    case VariantKind::kDecimal:
      exact = view.decimal();
      break;
    case VariantKind::kDouble:
    case VariantKind::kFloat:
      real = view.real();
      break;
    case VariantKind::kTimestamp:
      exact = {view.integer() >= 0 ? view.integer() / 1000000 : -((-view.integer() + 999999) / 1000000), 0};
      break;
    case VariantKind::kString: {
      const std::string text(Trim(view.text()));
      if (type.Is(TypeKind::kFloat) || type.Is(TypeKind::kDouble)) {
        char* end = nullptr;
        real = std::strtod(text.c_str(), &end);
        if (text.empty() || end != text.c_str() + text.size()) {
          return std::nullopt;
        }
        break;
      }
      auto parsed = types::DecimalFromString(text);
      if (!parsed.ok() || (type.IsIntegral() && text.find_first_of("eE") != std::string::npos)) {
        return std::nullopt;
      }
      exact = *parsed;
      break;
    }
    default:
      return std::nullopt;
  }
  if (type.Is(TypeKind::kFloat) || type.Is(TypeKind::kDouble)) {
    if (exact) {
      real = std::strtod(types::DecimalToString(exact->first, exact->second).c_str(), nullptr);
    }
    return types::Value(type.Is(TypeKind::kFloat) ? static_cast<double>(static_cast<float>(real)) : real);
  }
  if (type.Is(TypeKind::kDecimal)) {
    if (!exact) {
      auto parsed = types::DecimalFromString(JavaDoubleToString(real));
      if (!parsed.ok()) {
        return std::nullopt;
      }
      exact = *parsed;
    }
    const auto value = Rescale(exact->first, exact->second, type.precision(), type.scale());
    return value ? std::optional<types::Value>(types::Value(*value)) : std::nullopt;
  }
  Int128 whole = 0;
  if (exact) {
    whole = exact->first / PowerOfTen(exact->second);
  } else {
    if (std::isnan(real) || std::fabs(real) > 9.3e18) {
      return std::nullopt;
    }
    whole = static_cast<Int128>(real);
  }
  const auto fits = [&](auto zero) {
    using T = decltype(zero);
    return whole >= std::numeric_limits<T>::min() && whole <= std::numeric_limits<T>::max();
  };
  const bool ok = type.Is(TypeKind::kByte)    ? fits(std::int8_t{})
                  : type.Is(TypeKind::kShort) ? fits(std::int16_t{})
                  : type.Is(TypeKind::kInt)   ? fits(std::int32_t{})
                                              : fits(std::int64_t{});
  return ok ? std::optional<types::Value>(types::Value(static_cast<std::int64_t>(whole))) : std::nullopt;
}

std::optional<types::Value> Scalar(const VariantView& view, const DataType& type, const types::TimeZone& zone) {
  const VariantKind kind = view.kind();
  const bool nested = kind == VariantKind::kObject || kind == VariantKind::kArray;
  if (type.IsString()) {
    if (kind == VariantKind::kString) {
      return types::Value(std::string(view.text()));
    }
    std::string text;
    view.AppendJson(text, zone);
    if (!nested && text.size() >= 2 && text.front() == '"') {
      text = text.substr(1, text.size() - 2);
      if (kind == VariantKind::kTimestamp) {
        text = types::TimestampNtzToString(zone.UtcToLocal(view.integer()));
      }
    }
    return types::Value(std::move(text));
  }
  if (nested) {
    return std::nullopt;
  }
  if (type.IsNumeric()) {
    return Number(view, type);
  }
  switch (type.kind()) {
    case TypeKind::kBoolean:
      if (kind == VariantKind::kBoolean) {
        return types::Value(view.boolean());
      }
      if (kind == VariantKind::kLong) {
        return types::Value(view.integer() != 0);
      }
      if (kind == VariantKind::kString) {
        const std::string_view text = Trim(view.text());
        for (const char* word : {"true", "t", "yes", "y", "1"}) {
          if (EqualsIgnoreAsciiCase(text, word)) {
            return types::Value(true);
          }
        }
        for (const char* word : {"false", "f", "no", "n", "0"}) {
          if (EqualsIgnoreAsciiCase(text, word)) {
            return types::Value(false);
          }
        }
      }
      return std::nullopt;
    case TypeKind::kBinary:
      if (kind == VariantKind::kBinary || kind == VariantKind::kString) {
        return types::Value(std::string(view.text()));
      }
      return std::nullopt;
    case TypeKind::kDate:
      if (kind == VariantKind::kDate) {
        return types::Value(view.integer());
      }
      if (kind == VariantKind::kString) {
        const auto days = types::ParseDate(view.text());
        return days ? std::optional<types::Value>(types::Value(*days)) : std::nullopt;
      }
      return std::nullopt;
    case TypeKind::kTimestamp:
      if (kind == VariantKind::kTimestamp) {
        return types::Value(view.integer());
      }
      if (kind == VariantKind::kString) {
        const auto micros = types::ParseTimestamp(view.text(), zone.id());
        return micros ? std::optional<types::Value>(types::Value(*micros)) : std::nullopt;
      }
      return std::nullopt;
    case TypeKind::kTimestampNtz:
      if (kind == VariantKind::kTimestampNtz) {
        return types::Value(view.integer());
      }
      if (kind == VariantKind::kString) {
        const auto micros = types::ParseTimestampNtz(view.text());
        return micros ? std::optional<types::Value>(types::Value(*micros)) : std::nullopt;
      }
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

/// The two byte strings of variants by row.
class VariantColumn {
 public:
  VariantColumn(Vector& vector, idx_t count) {
    vector.Flatten(count);
    validity_ = &FlatVector::Validity(vector);
    auto& entries = duckdb::StructVector::GetEntries(vector);
    value_.emplace(*entries[0], count);
    metadata_.emplace(*entries[1], count);
  }
  bool IsNull(idx_t row) const { return !validity_->RowIsValid(row) || value_->IsNull(row); }
  VariantView At(idx_t row) const { return VariantView(value_->Get<Str>(row), metadata_->Get<Str>(row)); }

 private:
  const duckdb::ValidityMask* validity_;
  std::optional<Column> value_;
  std::optional<Column> metadata_;
};

void PutVariant(Vector& result, idx_t row, std::string_view value, std::string_view metadata) {
  auto& entries = duckdb::StructVector::GetEntries(result);
  FlatVector::GetData<duckdb::string_t>(*entries[0])[row] = Physical<Str>::Write(*entries[0], value);
  FlatVector::GetData<duckdb::string_t>(*entries[1])[row] = Physical<Str>::Write(*entries[1], metadata);
}

[[noreturn]] void ThrowMalformedJson(std::string_view json, const std::shared_ptr<const QueryContext>& context) {
  Error error(ErrorKind::kInvalidArgument, "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
              "Malformed records are detected in record parsing: " + std::string(json) + ". Parse Mode: FAILFAST.");
  error = std::move(error)
              .With("badRecord", std::string(json))
              .With("failFastMode", "FAILFAST")
              .Family(ErrorFamily::kSpark);
  ThrowRowError(context ? std::move(error).At(*context) : std::move(error));
}

Result<Kernel> MakeParseJson(const ScalarSite& site) {
  const bool tolerant = site.expr.function.ends_with("_try");
  auto context = site.expr.context;
  return Kernel([tolerant, context](DataChunk& args, Vector& result) {
    Column texts(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (texts.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      const auto bytes = VariantFromJson(texts.Get<Str>(row));
      if (!bytes) {
        if (!tolerant) {
          ThrowMalformedJson(texts.Get<Str>(row), context);
        }
        FlatVector::SetNull(result, row, true);
        continue;
      }
      PutVariant(result, row, bytes->value, bytes->metadata);
    }
  });
}

[[noreturn]] void ThrowInvalidCast(const VariantView& view, const DataType& type, const types::TimeZone& zone,
                                   const std::shared_ptr<const QueryContext>& context) {
  std::string text;
  view.AppendJson(text, zone);
  Error error(ErrorKind::kInvalidArgument, "INVALID_VARIANT_CAST",
              "The variant value `" + text + "` cannot be cast into \"" + type.Sql() +
                  "\". Please use `try_variant_get` instead.");
  error = std::move(error).With("value", text).With("dataType", "\"" + type.Sql() + "\"").Family(ErrorFamily::kRuntime);
  ThrowRowError(context ? std::move(error).At(*context) : std::move(error));
}

/// Stores a variant, cast, into a row.
void StoreCast(const VariantView& view, const DataType& type, bool tolerant, const types::TimeZone& zone,
               const std::shared_ptr<const QueryContext>& context, Vector& result, idx_t row) {
  if (type.Is(TypeKind::kVariant)) {
    PutVariant(result, row, view.bytes(), view.metadata());
    return;
  }
  const auto value = VariantToValue(view, type, zone);
  if (!value && !tolerant) {
    ThrowInvalidCast(view, type, zone, context);
  }
  if (!value || value->IsNull()) {
    FlatVector::SetNull(result, row, true);
    return;
  }
  result.SetValue(row, *value);
}

/// variant_get(variant, path, zone): the type is the result's.
Result<Kernel> MakeGet(const ScalarSite& site) {
  const bool tolerant = site.expr.function.ends_with("_try");
  const DataType type = site.expr.type;
  auto context = site.expr.context;
  FLEUVE_ASSIGN(std::shared_ptr<const types::TimeZone> zone, types::TimeZone::Find(site.Literal(2).text()));
  return Kernel([tolerant, type, context, zone](DataChunk& args, Vector& result) {
    VariantColumn variants(args.data[0], args.size());
    Column paths(args.data[1], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    for (idx_t row = 0; row < args.size(); ++row) {
      std::optional<VariantView> found;
      if (!variants.IsNull(row) && !paths.IsNull(row)) {
        found = FollowVariantPath(variants.At(row), paths.Get<Str>(row));
      }
      if (!found) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      StoreCast(*found, type, tolerant, *zone, context, result, row);
    }
  });
}

Result<Kernel> MakeIsNull(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    VariantColumn variants(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<bool>(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      out[row] = !variants.IsNull(row) && variants.At(row).kind() == VariantKind::kNull;
    }
  });
}

template <bool kSchema>
Result<Kernel> MakeText(const ScalarSite& site) {
  FLEUVE_ASSIGN(std::shared_ptr<const types::TimeZone> zone,
                types::TimeZone::Find(site.Literal(site.size() - 1).text()));
  return Kernel([zone](DataChunk& args, Vector& result) {
    VariantColumn variants(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<duckdb::string_t>(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (variants.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      std::string text;
      if (kSchema) {
        text = variants.At(row).Schema();
      } else {
        variants.At(row).AppendJson(text, *zone);
      }
      out[row] = Physical<Str>::Write(result, text);
    }
  });
}

/// variant_explode: array<struct<pos, key, value>> for the generator.
Result<Kernel> MakeExplode(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    VariantColumn variants(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    idx_t total = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(total, 0);
      if (variants.IsNull(row)) {
        continue;
      }
      const VariantView view = variants.At(row);
      const bool object = view.kind() == VariantKind::kObject;
      if (!object && view.kind() != VariantKind::kArray) {
        continue;
      }
      const idx_t count = view.size();
      duckdb::ListVector::Reserve(result, total + count);
      auto& fields = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
      for (idx_t i = 0; i < count; ++i) {
        FlatVector::GetData<std::int32_t>(*fields[0])[total + i] = static_cast<std::int32_t>(i);
        if (object) {
          FlatVector::GetData<duckdb::string_t>(*fields[1])[total + i] = Physical<Str>::Write(*fields[1], view.name(i));
        } else {
          FlatVector::SetNull(*fields[1], total + i, true);
        }
        PutVariant(*fields[2], total + i, view.child(i).bytes(), view.metadata());
      }
      entries[row].length = count;
      total += count;
    }
    duckdb::ListVector::SetListSize(result, total);
  });
}

}  // namespace

std::optional<duckdb::Value> VariantToValue(const VariantView& view, const DataType& type,
                                            const types::TimeZone& zone) {
  const VariantKind kind = view.kind();
  if (type.Is(TypeKind::kVariant)) {
    return duckdb::Value::STRUCT({{"f0", duckdb::Value::BLOB_RAW(std::string(view.bytes()))},
                                  {"f1", duckdb::Value::BLOB_RAW(std::string(view.metadata()))}});
  }
  if (kind == VariantKind::kNull) {
    return duckdb::Value(CarrierType(type));
  }
  switch (type.kind()) {
    case TypeKind::kArray: {
      if (kind != VariantKind::kArray) {
        return std::nullopt;
      }
      duckdb::vector<duckdb::Value> items;
      for (std::size_t i = 0, count = view.size(); i < count; ++i) {
        auto item = VariantToValue(view.child(i), type.element(), zone);
        if (!item) {
          return std::nullopt;
        }
        items.push_back(std::move(*item));
      }
      return duckdb::Value::LIST(CarrierType(type.element()), std::move(items));
    }
    case TypeKind::kMap: {
      if (kind != VariantKind::kObject || !type.key().IsString()) {
        return std::nullopt;
      }
      duckdb::vector<duckdb::Value> keys;
      duckdb::vector<duckdb::Value> values;
      for (std::size_t i = 0, count = view.size(); i < count; ++i) {
        auto item = VariantToValue(view.child(i), type.value(), zone);
        if (!item) {
          return std::nullopt;
        }
        keys.push_back(CarrierValue(types::Value(std::string(view.name(i))), type.key()));
        values.push_back(std::move(*item));
      }
      return duckdb::Value::MAP(CarrierType(type.key()), CarrierType(type.value()), std::move(keys), std::move(values));
    }
    case TypeKind::kStruct: {
      if (kind != VariantKind::kObject) {
        return std::nullopt;
      }
      duckdb::child_list_t<duckdb::Value> fields;
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        const types::StructField& field = type.fields()[i];
        const auto found = view.Field(field.name);
        auto item = found ? VariantToValue(*found, field.type, zone)
                          : std::optional<duckdb::Value>(duckdb::Value(CarrierType(field.type)));
        if (!item) {
          return std::nullopt;
        }
        fields.emplace_back("f" + std::to_string(i), std::move(*item));
      }
      return duckdb::Value::STRUCT(std::move(fields));
    }
    default: {
      const auto value = Scalar(view, type, zone);
      return value ? std::optional<duckdb::Value>(CarrierValue(*value, type)) : std::nullopt;
    }
  }
}

Result<Caster> MakeVariantCaster(const DataType& to, plan::CastMode mode, std::shared_ptr<const types::TimeZone> zone,
                                 std::shared_ptr<const QueryContext> context) {
  const bool tolerant = mode == plan::CastMode::kTry;
  return Caster([to, tolerant, zone, context](Vector& in, idx_t count, Vector& out) {
    VariantColumn variants(in, count);
    for (idx_t row = 0; row < count; ++row) {
      if (variants.IsNull(row)) {
        FlatVector::SetNull(out, row, true);
        continue;
      }
      StoreCast(variants.At(row), to, tolerant, *zone, context, out, row);
    }
  });
}

Caster MakeToVariantCaster(const DataType& from) {
  return [from](Vector& in, idx_t count, Vector& out) {
    in.Flatten(count);
    duckdb::RecursiveUnifiedVectorFormat format;
    Vector::RecursiveToUnifiedFormat(in, count, format);
    for (idx_t row = 0; row < count; ++row) {
      if (!format.unified.validity.RowIsValid(format.unified.sel->get_index(row))) {
        FlatVector::SetNull(out, row, true);
        continue;
      }
      const VariantBytes bytes = VariantFromValue(from, format, row);
      PutVariant(out, row, bytes.value, bytes.metadata);
    }
  };
}

namespace {

Result<Kernel> MakeToVariant(const ScalarSite& site) {
  Caster caster = MakeToVariantCaster(site.ArgumentType(0));
  return Kernel([caster](DataChunk& args, Vector& result) {
    result.SetVectorType(VectorType::FLAT_VECTOR);
    caster(args.data[0], args.size(), result);
  });
}

/// schema_of_variant_agg: the schema that all values have in common.
struct SchemaAggregate {
  struct State {
    VariantShape shape;
  };
  static void Step(State& state, const Inputs& inputs, idx_t row, const AggregateData&) {
    const duckdb::Value value = inputs.Value(0, row);
    if (value.IsNull()) {
      return;
    }
    const auto& parts = duckdb::StructValue::GetChildren(value);
    const std::string bytes = duckdb::StringValue::Get(parts[0]);
    const std::string metadata = duckdb::StringValue::Get(parts[1]);
    state.shape = MergeShapes(state.shape, VariantView(bytes, metadata).ShapeOfValue());
  }
  static void Merge(const State& from, State& into, const AggregateData&) {
    into.shape = MergeShapes(into.shape, from.shape);
  }
  static void Finish(State& state, Vector& result, idx_t row, const AggregateData&) {
    FinishValue<Str>(result, row, ShapeText(state.shape));
  }
};

Result<AggregateImplementation> MakeSchemaAggregate(const AggregateSite& site) {
  return RowAggregate<SchemaAggregate>::Make(site);
}

}  // namespace

const AggregateTable& VariantAggregates() {
  static const AggregateTable table = {{"spark_schema_of_variant_agg", MakeSchemaAggregate}};
  return table;
}

const ScalarTable& VariantKernels() {
  static const ScalarTable table = {
      {"spark_parse_json", Nulls::kPropagate, MakeParseJson},
      {"spark_variant_get", Nulls::kPropagate, MakeGet},
      {"spark_is_variant_null", Nulls::kOwn, MakeIsNull},
      {"spark_variant_to_json", Nulls::kPropagate, MakeText<false>},
      {"spark_schema_of_variant", Nulls::kPropagate, MakeText<true>},
      {"spark_variant_explode", Nulls::kOwn, MakeExplode},
      {"spark_to_variant_object", Nulls::kPropagate, MakeToVariant},
  };
  return table;
}

}  // namespace fleuve::engine
