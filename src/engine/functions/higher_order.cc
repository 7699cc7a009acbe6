#include <algorithm>
#include <map>

#include "engine/functions/elements_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::SelectionVector;
using duckdb::Vector;
using duckdb::VectorType;
using types::DataType;

using Lambda = std::shared_ptr<const BoundLambda>;

/// The elements of the rows that are not NULL, in order: where each lies, and which row it belongs to.
struct Gathered {
  SelectionVector at;
  std::vector<std::uint32_t> rows;
  std::vector<std::int32_t> positions;
  idx_t count = 0;

  Gathered(const ListArgument& list, idx_t rows_count) {
    for (idx_t row = 0; row < rows_count; ++row) {
      count += list.IsNull(row) ? 0 : list.length(row);
    }
    at.Initialize(std::max<idx_t>(count, 1));
    rows.reserve(count);
    positions.reserve(count);
    idx_t next = 0;
    for (idx_t row = 0; row < rows_count; ++row) {
      for (idx_t i = 0; !list.IsNull(row) && i < list.length(row); ++i) {
        at.set_index(next++, list.offset(row) + i);
        rows.push_back(static_cast<std::uint32_t>(row));
        positions.push_back(static_cast<std::int32_t>(i));
      }
    }
  }
  /// The positions as a vector of INTEGER.
  Vector Positions() const {
    Vector vector(duckdb::LogicalType::INTEGER, std::max<idx_t>(count, 1));
    std::copy(positions.begin(), positions.end(), FlatVector::GetData<std::int32_t>(vector));
    return vector;
  }
};

/// The body's results for all elements; `second` is the vector of the second parameter, if the lambda has one.
Vector EvaluateAll(const BoundLambda& lambda, DataChunk& args, Vector& source, const Gathered& gathered,
                   std::vector<Vector*> more) {
  Vector out(lambda.result_type(), std::max<idx_t>(gathered.count, 1));
  if (gathered.count == 0) {
    return out;
  }
  Vector elements(source, gathered.at, gathered.count);
  std::vector<Vector*> parameters{&elements};
  parameters.insert(parameters.end(), more.begin(), more.end());
  parameters.resize(lambda.parameter_count(), nullptr);
  lambda.Evaluate(args, parameters, gathered.rows.data(), gathered.count, out);
  return out;
}

Vector EvaluateWithPosition(const BoundLambda& lambda, DataChunk& args, Vector& source, const Gathered& gathered) {
  if (lambda.parameter_count() == 1) {
    return EvaluateAll(lambda, args, source, gathered, {});
  }
  Vector positions = gathered.Positions();
  return EvaluateAll(lambda, args, source, gathered, {&positions});
}

Result<Kernel> MakeTransform(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  return Kernel([lambda](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Gathered gathered(list, args.size());
    Vector out = EvaluateWithPosition(*lambda, args, list.child(), gathered);
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    idx_t at = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      const idx_t length = list.IsNull(row) ? 0 : list.length(row);
      entries[row] = duckdb::list_entry_t(at, length);
      at += length;
      if (list.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
      }
    }
    duckdb::ListVector::Append(result, out, gathered.count);
  });
}

/// True, false or (-1) NULL of row `i` of a boolean vector.
int Truth(const Column& column, idx_t i) { return column.IsNull(i) ? -1 : column.Get<bool>(i) ? 1 : 0; }

Result<Kernel> MakeFilter(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  return Kernel([lambda](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Gathered gathered(list, args.size());
    Vector out = EvaluateWithPosition(*lambda, args, list.child(), gathered);
    Column kept(out, gathered.count);
    ListBuilder builder(result);
    idx_t next = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < list.length(row); ++i) {
        if (Truth(kept, next++) == 1) {
          builder.Add(list.child(), list.offset(row) + i);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

/// A stable sort that stays in bounds whatever `less` says, were it by chance.
template <typename Less>
void MergeSort(std::vector<idx_t>& items, const Less& less) {
  std::vector<idx_t> merged(items.size());
  for (std::size_t width = 1; width < items.size(); width *= 2) {
    for (std::size_t first = 0; first < items.size(); first += 2 * width) {
      const auto begin = items.begin() + static_cast<std::ptrdiff_t>(first);
      const auto middle = items.begin() + static_cast<std::ptrdiff_t>(std::min(first + width, items.size()));
      const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(first + 2 * width, items.size()));
      std::merge(begin, middle, middle, end, merged.begin() + static_cast<std::ptrdiff_t>(first), less);
    }
    items.swap(merged);
  }
}

/// `kernel` for one row after the other: what depends on the number of evaluations before it (rand in a body) then has
/// Spark's order.
Kernel RowByRow(Kernel kernel) {
  return [kernel = std::move(kernel)](DataChunk& args, Vector& result) {
    result.SetVectorType(VectorType::FLAT_VECTOR);
    for (idx_t row = 0; row < args.size(); ++row) {
      DataChunk one;
      one.InitializeEmpty(args.GetTypes());
      SelectionVector at(1);
      at.set_index(0, row);
      for (idx_t i = 0; i < args.ColumnCount(); ++i) {
        one.data[i].Slice(args.data[i], at, 1);
      }
      one.SetCardinality(1);
      Vector out(result.GetType(), 1);
      kernel(one, out);
      duckdb::VectorOperations::Copy(out, result, 1, 0, row);
    }
  };
}

/// exists and forall stop at the element that decides: later elements are not looked at, as they may raise.
template <bool kExists>
Result<Kernel> MakeQuantifier(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  const bool stops = site.expr.can_fail || !site.expr.deterministic;
  Kernel kernel([lambda, stops](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<bool>(result);
    std::vector<int> state(args.size(), kExists ? 0 : 1);
    std::vector<bool> done(args.size(), false);
    const auto note = [&](idx_t row, int truth) {
      if (truth == (kExists ? 1 : 0)) {
        state[row] = truth;
        done[row] = true;
      } else if (truth == -1) {
        state[row] = -1;
      }
    };
    if (!stops) {
      Gathered gathered(list, args.size());
      Vector truths = EvaluateAll(*lambda, args, list.child(), gathered, {});
      Column column(truths, gathered.count);
      for (idx_t i = 0; i < gathered.count; ++i) {
        if (!done[gathered.rows[i]]) {
          note(gathered.rows[i], Truth(column, i));
        }
      }
    } else {
      for (idx_t position = 0;; ++position) {
        SelectionVector at(std::max<idx_t>(args.size(), 1));
        std::vector<std::uint32_t> rows;
        for (idx_t row = 0; row < args.size(); ++row) {
          if (!done[row] && !list.IsNull(row) && position < list.length(row)) {
            at.set_index(rows.size(), list.offset(row) + position);
            rows.push_back(static_cast<std::uint32_t>(row));
          }
        }
        if (rows.empty()) {
          break;
        }
        Vector elements(list.child(), at, rows.size());
        Vector truths(lambda->result_type(), rows.size());
        lambda->Evaluate(args, {&elements}, rows.data(), rows.size(), truths);
        Column column(truths, rows.size());
        for (idx_t i = 0; i < rows.size(); ++i) {
          note(rows[i], Truth(column, i));
        }
      }
    }
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row) || state[row] == -1) {
        FlatVector::SetNull(result, row, true);
      } else {
        out[row] = state[row] == 1;
      }
    }
  });
  return site.expr.deterministic ? std::move(kernel) : RowByRow(std::move(kernel));
}

/// aggregate(array, zero, merge, finish): element by element, all rows of the chunk at a time.
Result<Kernel> MakeAggregate(const ScalarSite& site) {
  const Lambda merge = site.lambdas.at(0);
  const Lambda finish = site.lambdas.size() > 1 ? site.lambdas[1] : nullptr;
  Kernel kernel([merge, finish](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    const idx_t count = args.size();
    Vector state(args.data[1].GetType(), std::max<idx_t>(count, 1));
    duckdb::VectorOperations::Copy(args.data[1], state, count, 0, 0);
    for (idx_t position = 0;; ++position) {
      SelectionVector at(std::max<idx_t>(count, 1));
      SelectionVector where(std::max<idx_t>(count, 1));
      std::vector<std::uint32_t> rows;
      for (idx_t row = 0; row < count; ++row) {
        if (!list.IsNull(row) && position < list.length(row)) {
          at.set_index(rows.size(), list.offset(row) + position);
          where.set_index(rows.size(), row);
          rows.push_back(static_cast<std::uint32_t>(row));
        }
      }
      if (rows.empty()) {
        break;
      }
      Vector elements(list.child(), at, rows.size());
      Vector accumulated(state, where, rows.size());
      Vector merged(merge->result_type(), rows.size());
      merge->Evaluate(args, {&accumulated, &elements}, rows.data(), rows.size(), merged);
      Vector next(state.GetType(), std::max<idx_t>(count, 1));
      SelectionVector kept(std::max<idx_t>(count, 1));
      // Rows without an element at this position keep their state.
      ElementPicker picker;
      idx_t k = 0;
      for (idx_t row = 0; row < count; ++row) {
        if (k < rows.size() && rows[k] == row) {
          picker.Add(merged, k++);
        } else {
          picker.Add(state, row);
        }
      }
      picker.CopyInto(next, 0);
      state.Reference(next);
    }
    result.SetVectorType(VectorType::FLAT_VECTOR);
    if (finish == nullptr) {
      duckdb::VectorOperations::Copy(state, result, count, 0, 0);
    } else {
      SelectionVector where(std::max<idx_t>(count, 1));
      std::vector<std::uint32_t> rows;
      for (idx_t row = 0; row < count; ++row) {
        if (!list.IsNull(row)) {
          where.set_index(rows.size(), row);
          rows.push_back(static_cast<std::uint32_t>(row));
        }
      }
      if (!rows.empty()) {
        Vector accumulated(state, where, rows.size());
        Vector finished(finish->result_type(), rows.size());
        finish->Evaluate(args, {&accumulated}, rows.data(), rows.size(), finished);
        ElementPicker picker;
        idx_t k = 0;
        for (idx_t row = 0; row < count; ++row) {
          if (k < rows.size() && rows[k] == row) {
            picker.Add(finished, k++);
          } else {
            picker.AddNull();
          }
        }
        picker.CopyInto(result, 0);
      }
    }
    for (idx_t row = 0; row < count; ++row) {
      if (list.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
      }
    }
  });
  return site.expr.deterministic ? std::move(kernel) : RowByRow(std::move(kernel));
}

/// Elements out of pickers as a vector of their own.
Vector Picked(const ElementPicker& picker, const duckdb::LogicalType& type) {
  Vector out(type, std::max<idx_t>(picker.size(), 1));
  picker.CopyInto(out, 0);
  return out;
}

Result<Kernel> MakeZipWith(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  return Kernel([lambda](DataChunk& args, Vector& result) {
    ListArgument a(args.data[0], args.size());
    ListArgument b(args.data[1], args.size());
    ElementPicker left;
    ElementPicker right;
    std::vector<std::uint32_t> rows;
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(rows.size(), 0);
      if (a.IsNull(row) || b.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      const idx_t length = std::max(a.length(row), b.length(row));
      for (idx_t i = 0; i < length; ++i) {
        if (i < a.length(row)) {
          left.Add(a.child(), a.offset(row) + i);
        } else {
          left.AddNull();
        }
        if (i < b.length(row)) {
          right.Add(b.child(), b.offset(row) + i);
        } else {
          right.AddNull();
        }
        rows.push_back(static_cast<std::uint32_t>(row));
      }
      entries[row].length = length;
    }
    if (rows.empty()) {
      return;
    }
    Vector x = Picked(left, a.child().GetType());
    Vector y = Picked(right, b.child().GetType());
    Vector out(lambda->result_type(), rows.size());
    lambda->Evaluate(args, {&x, &y}, rows.data(), rows.size(), out);
    duckdb::ListVector::Append(result, out, rows.size());
  });
}

/// The body's results for all entries of a map.
Vector EvaluateEntries(const BoundLambda& lambda, DataChunk& args, const ListArgument& map, const Gathered& gathered) {
  Vector out(lambda.result_type(), std::max<idx_t>(gathered.count, 1));
  if (gathered.count > 0) {
    Vector keys(map.keys(), gathered.at, gathered.count);
    Vector values(map.values(), gathered.at, gathered.count);
    lambda.Evaluate(args, {&keys, &values}, gathered.rows.data(), gathered.count, out);
  }
  return out;
}

Result<Kernel> MakeMapFilter(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  return Kernel([lambda](DataChunk& args, Vector& result) {
    ListArgument map(args.data[0], args.size());
    Gathered gathered(map, args.size());
    Vector out = EvaluateEntries(*lambda, args, map, gathered);
    Column kept(out, gathered.count);
    ListBuilder builder(result);
    idx_t next = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (map.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < map.length(row); ++i) {
        if (Truth(kept, next++) == 1) {
          builder.Add(map.child(), map.offset(row) + i);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeTransformValues(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  const DataType key = site.expr.type.key();
  return Kernel([lambda, key](DataChunk& args, Vector& result) {
    ListArgument map(args.data[0], args.size());
    Gathered gathered(map, args.size());
    Vector out = EvaluateEntries(*lambda, args, map, gathered);
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    ElementPicker keys;
    ElementPicker values;
    idx_t next = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      const idx_t length = map.IsNull(row) ? 0 : map.length(row);
      entries[row] = duckdb::list_entry_t(next, length);
      if (map.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
      }
      for (idx_t i = 0; i < length; ++i) {
        keys.Add(map.keys(), map.offset(row) + i);
        values.Add(out, next++);
      }
    }
    duckdb::ListVector::Reserve(result, next);
    auto& parts = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
    keys.CopyInto(*parts[0], 0);
    values.CopyInto(*parts[1], 0);
    duckdb::ListVector::SetListSize(result, next);
  });
}

Result<Kernel> MakeTransformKeys(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  const DataType key = site.expr.type.key();
  const bool last_wins = site.Literal(site.size() - 1).boolean();
  return Kernel([lambda, key, last_wins](DataChunk& args, Vector& result) {
    ListArgument map(args.data[0], args.size());
    Gathered gathered(map, args.size());
    Vector out = EvaluateEntries(*lambda, args, map, gathered);
    Elements keys(key, out, gathered.count);
    MapBuilder builder(result, key, last_wins);
    builder.KeepZeros();
    idx_t next = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (map.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < map.length(row); ++i) {
        builder.Add(keys, out, next++, &map.values(), map.offset(row) + i);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeMapZipWith(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  const DataType key = site.expr.type.key();
  return Kernel([lambda, key](DataChunk& args, Vector& result) {
    ListArgument a(args.data[0], args.size());
    ListArgument b(args.data[1], args.size());
    Elements x(key, a.keys(), a.size());
    Elements y(key, b.keys(), b.size());
    ElementPicker keys;
    ElementPicker left;
    ElementPicker right;
    std::vector<std::uint32_t> rows;
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(rows.size(), 0);
      if (a.IsNull(row) || b.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      std::map<std::string, idx_t> in_b;
      for (idx_t i = 0; i < b.length(row); ++i) {
        in_b.emplace(y.Key(b.offset(row) + i), b.offset(row) + i);
      }
      std::map<std::string, bool> in_a;
      for (idx_t i = 0; i < a.length(row); ++i) {
        const idx_t at = a.offset(row) + i;
        std::string bytes = x.Key(at);
        keys.Add(a.keys(), at);
        left.Add(a.values(), at);
        if (auto found = in_b.find(bytes); found != in_b.end()) {
          right.Add(b.values(), found->second);
        } else {
          right.AddNull();
        }
        in_a.emplace(std::move(bytes), true);
        rows.push_back(static_cast<std::uint32_t>(row));
      }
      for (idx_t i = 0; i < b.length(row); ++i) {
        const idx_t at = b.offset(row) + i;
        if (!in_a.contains(y.Key(at))) {
          keys.Add(b.keys(), at);
          left.AddNull();
          right.Add(b.values(), at);
          rows.push_back(static_cast<std::uint32_t>(row));
        }
      }
      entries[row].length = rows.size() - entries[row].offset;
    }
    if (rows.empty()) {
      return;
    }
    Vector k = Picked(keys, a.keys().GetType());
    Vector v1 = Picked(left, a.values().GetType());
    Vector v2 = Picked(right, b.values().GetType());
    Vector out(lambda->result_type(), rows.size());
    lambda->Evaluate(args, {&k, &v1, &v2}, rows.data(), rows.size(), out);
    duckdb::ListVector::Reserve(result, rows.size());
    auto& parts = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
    duckdb::VectorOperations::Copy(k, *parts[0], rows.size(), 0, 0);
    duckdb::VectorOperations::Copy(out, *parts[1], rows.size(), 0, 0);
    duckdb::ListVector::SetListSize(result, rows.size());
  });
}

/// array_sort with a comparison. Small arrays have all their pairs compared at once; the sort then looks them up.
Result<Kernel> MakeSortBy(const ScalarSite& site) {
  const Lambda lambda = site.lambdas.at(0);
  auto context = site.expr.context;
  return Kernel([lambda, context](DataChunk& args, Vector& result) {
    constexpr idx_t kAllPairsMost = 40;
    ListArgument list(args.data[0], args.size());
    ListBuilder builder(result);
    const auto compare = [&](const std::vector<std::pair<idx_t, idx_t>>& pairs, std::uint32_t row) {
      SelectionVector left(pairs.size());
      SelectionVector right(pairs.size());
      std::vector<std::uint32_t> rows(pairs.size(), row);
      for (idx_t i = 0; i < pairs.size(); ++i) {
        left.set_index(i, pairs[i].first);
        right.set_index(i, pairs[i].second);
      }
      Vector x(list.child(), left, pairs.size());
      Vector y(list.child(), right, pairs.size());
      Vector out(lambda->result_type(), pairs.size());
      lambda->Evaluate(args, {&x, &y}, rows.data(), pairs.size(), out);
      Column column(out, pairs.size());
      std::vector<std::int32_t> orders(pairs.size());
      for (idx_t i = 0; i < pairs.size(); ++i) {
        if (column.IsNull(i)) {
          Error error(
              ErrorKind::kInvalidArgument, "COMPARATOR_RETURNS_NULL",
              "The comparator has returned a NULL for a comparison between two elements. It should return a "
              "positive integer for \"greater than\", 0 for \"equal\" and a negative integer for \"less than\".");
          error = std::move(error).Family(ErrorFamily::kRuntime);
          ThrowRowError(context ? std::move(error).At(*context) : std::move(error));
        }
        orders[i] = column.Get<std::int32_t>(i);
      }
      return orders;
    };
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      const idx_t length = list.length(row);
      const idx_t offset = list.offset(row);
      std::vector<idx_t> order(length);
      for (idx_t i = 0; i < length; ++i) {
        order[i] = i;
      }
      const auto row_number = static_cast<std::uint32_t>(row);
      if (length > 1 && length <= kAllPairsMost) {
        std::vector<std::pair<idx_t, idx_t>> pairs;
        for (idx_t i = 0; i < length; ++i) {
          for (idx_t j = 0; j < length; ++j) {
            if (i != j) {
              pairs.emplace_back(offset + i, offset + j);
            }
          }
        }
        const std::vector<std::int32_t> orders = compare(pairs, row_number);
        std::stable_sort(order.begin(), order.end(), [&](idx_t a, idx_t b) {
          return a != b && orders[a * (length - 1) + (b > a ? b - 1 : b)] < 0;
        });
      } else if (length > 1) {
        MergeSort(order, [&](idx_t a, idx_t b) { return compare({{offset + a, offset + b}}, row_number)[0] < 0; });
      }
      for (idx_t i : order) {
        builder.Add(list.child(), offset + i);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

}  // namespace

const ScalarTable& HigherOrderKernels() {
  static const ScalarTable table = {
      {"spark_transform", Nulls::kOwn, MakeTransform},
      {"spark_filter", Nulls::kOwn, MakeFilter},
      {"spark_exists", Nulls::kOwn, MakeQuantifier<true>},
      {"spark_forall", Nulls::kOwn, MakeQuantifier<false>},
      {"spark_aggregate", Nulls::kOwn, MakeAggregate},
      {"spark_zip_with", Nulls::kOwn, MakeZipWith},
      {"spark_map_filter", Nulls::kOwn, MakeMapFilter},
      {"spark_transform_values", Nulls::kOwn, MakeTransformValues},
      {"spark_transform_keys", Nulls::kOwn, MakeTransformKeys},
      {"spark_map_zip_with", Nulls::kOwn, MakeMapZipWith},
      {"spark_array_sort_by", Nulls::kOwn, MakeSortBy},
  };
  return table;
}

}  // namespace fleuve::engine
