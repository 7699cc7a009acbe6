#include <cmath>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using types::TypeKind;

template <typename T, bool kMax>
Kernel ExtremeKernel(std::size_t columns) {
  return [columns](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::vector<Column> inputs;
    for (std::size_t i = 0; i < columns; ++i) {
      inputs.emplace_back(args.data[i], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto& validity = duckdb::FlatVector::Validity(result);
    auto* out = duckdb::FlatVector::GetData<typename Physical<T>::Type>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      bool set = false;
      T best{};
      for (const Column& input : inputs) {
        if (input.IsNull(row)) {
          continue;
        }
        T value = input.Get<T>(row);
        int order = set ? Compare(value, best) : 0;
        if (!set || (kMax ? order > 0 : order < 0)) {
          best = value;
          set = true;
        }
      }
      if (set) {
        out[row] = Physical<T>::Write(result, best);
      } else {
        validity.SetInvalid(row);
      }
    }
  };
}

template <bool kMax>
Kernel NestedExtremeKernel(std::size_t columns) {
  return [columns](duckdb::DataChunk& args, duckdb::Vector& result) {
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      duckdb::Value best(result.GetType());
      for (std::size_t i = 0; i < columns; ++i) {
        duckdb::Value value = args.data[i].GetValue(row);
        if (!value.IsNull() &&
            (best.IsNull() || (kMax ? CompareValues(value, best) > 0 : CompareValues(value, best) < 0))) {
          best = value;
        }
      }
      result.SetValue(row, best);
    }
  };
}

template <bool kMax>
Result<Kernel> MakeExtreme(const ScalarSite& site) {
  Kernel made;
  if (!WithCarrier(site.expr.type,
                   [&](auto zero) { made = ExtremeKernel<decltype(zero), kMax>(site.expr.children.size()); })) {
    made = NestedExtremeKernel<kMax>(site.expr.children.size());
  }
  return made;
}

template <typename T>
Kernel NanvlKernel() {
  return [](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column a(args.data[0], args.size());
    Column b(args.data[1], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<T>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      const Column* from = &a;
      if (!a.IsNull(row) && std::isnan(a.Get<T>(row))) {
        from = &b;
      }
      if (from->IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
      } else {
        out[row] = from->Get<T>(row);
      }
    }
  };
}

Result<Kernel> MakeNanvl(const ScalarSite& site) {
  return site.expr.type.Is(TypeKind::kFloat) ? NanvlKernel<float>() : NanvlKernel<double>();
}

template <typename T>
Kernel IsNanKernel() {
  return [](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column a(args.data[0], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<bool>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      out[row] = !a.IsNull(row) && std::isnan(a.Get<T>(row));
    }
  };
}

Result<Kernel> MakeIsNan(const ScalarSite& site) {
  return site.ArgumentType(0).Is(TypeKind::kFloat) ? IsNanKernel<float>() : IsNanKernel<double>();
}

}  // namespace

const ScalarTable& ConditionalKernels() {
  static const ScalarTable table = {
      {"spark_greatest", Nulls::kOwn, MakeExtreme<true>},
      {"spark_least", Nulls::kOwn, MakeExtreme<false>},
      {"spark_nanvl", Nulls::kOwn, MakeNanvl},
      {"spark_isnan", Nulls::kOwn, MakeIsNan},
  };
  return table;
}

}  // namespace fleuve::engine
