#include <algorithm>
#include <unordered_set>

#include "engine/functions/elements_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using duckdb::VectorType;
using types::DataType;
using types::TypeKind;

template <typename T>
T* FlatResult(Vector& result) {
  result.SetVectorType(VectorType::FLAT_VECTOR);
  return FlatVector::GetData<T>(result);
}

Error WithContext(Error error, const std::shared_ptr<const QueryContext>& context) {
  return context ? std::move(error).At(*context) : error;
}

Result<Kernel> MakeSize(const ScalarSite& site) {
  const bool minus_one = site.Literal(1).boolean();
  return Kernel([minus_one](DataChunk& args, Vector& result) {
    Column lists(args.data[0], args.size());
    auto* entries = lists.Data<duckdb::list_entry_t>();
    auto* out = FlatResult<std::int32_t>(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (lists.IsNull(row)) {
        if (minus_one) {
          out[row] = -1;
        } else {
          FlatVector::SetNull(result, row, true);
        }
        continue;
      }
      out[row] = static_cast<std::int32_t>(entries[lists.Index(row)].length);
    }
  });
}

/// Looks for the second argument among the elements of the first: `f(row, position)`, -1 = not found.
template <typename F>
void Search(const DataType& element, DataChunk& args, F f) {
  ListArgument list(args.data[0], args.size());
  Elements elements(element, list.child(), list.size());
  Elements wanted(element, args.data[1], args.size());
  for (idx_t row = 0; row < args.size(); ++row) {
    if (list.IsNull(row) || wanted.IsNull(row)) {
      f(row, -2, false);
      continue;
    }
    std::int64_t found = -1;
    bool null_seen = false;
    for (idx_t i = 0; i < list.length(row); ++i) {
      const idx_t at = list.offset(row) + i;
      if (elements.IsNull(at)) {
        null_seen = true;
      } else if (elements.Compare(at, wanted, row) == 0) {
        found = static_cast<std::int64_t>(i);
        break;
      }
    }
    f(row, found, null_seen);
  }
}

Result<Kernel> MakeContains(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    auto* out = FlatResult<bool>(result);
    Search(element, args, [&](idx_t row, std::int64_t found, bool null_seen) {
      out[row] = found >= 0;
      if (found == -2 || (found < 0 && null_seen)) {
        FlatVector::SetNull(result, row, true);
      }
    });
  });
}

Result<Kernel> MakePosition(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    auto* out = FlatResult<std::int64_t>(result);
    Search(element, args, [&](idx_t row, std::int64_t found, bool) {
      out[row] = found + 1;
      if (found == -2) {
        FlatVector::SetNull(result, row, true);
      }
    });
  });
}

Result<Kernel> MakeRemove(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Elements elements(element, list.child(), list.size());
    Elements unwanted(element, args.data[1], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row) || unwanted.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < list.length(row); ++i) {
        const idx_t at = list.offset(row) + i;
        if (elements.IsNull(at) || elements.Compare(at, unwanted, row) != 0) {
          builder.Add(list.child(), at);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

template <bool kAtEnd>
Result<Kernel> MakeAppend(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      if (!kAtEnd) {
        builder.Add(args.data[1], row);
      }
      for (idx_t i = 0; i < list.length(row); ++i) {
        builder.Add(list.child(), list.offset(row) + i);
      }
      if (kAtEnd) {
        builder.Add(args.data[1], row);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Error ZeroIndex(const std::shared_ptr<const QueryContext>& context) {
  return WithContext(
      Error(ErrorKind::kInvalidArgument, "INVALID_INDEX_OF_ZERO",
            "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).")
          .Family(ErrorFamily::kRuntime),
      context);
}

Result<Kernel> MakeInsert(const ScalarSite& site) {
  const bool legacy = site.Literal(3).boolean();
  auto context = site.expr.context;
  return Kernel([legacy, context](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Column positions(args.data[1], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row) || positions.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      std::int64_t position = positions.Get<std::int32_t>(row);
      if (position == 0) {
        ThrowRowError(ZeroIndex(context));
      }
      const auto length = static_cast<std::int64_t>(list.length(row));
      const auto at = [&](std::int64_t i) { return list.offset(row) + static_cast<idx_t>(i); };
      if (position > 0) {
        CheckArrayLength(std::max(length + 1, position), "array_insert");
        for (std::int64_t i = 0; i < std::min(length, position - 1); ++i) {
          builder.Add(list.child(), at(i));
        }
        for (std::int64_t i = length; i < position - 1; ++i) {
          builder.AddNull();
        }
        builder.Add(args.data[2], row);
        for (std::int64_t i = position - 1; i < length; ++i) {
          builder.Add(list.child(), at(i));
        }
      } else {
        // -1: behind the last element; further down the array grows at its front.
        std::int64_t index = length + position + (legacy ? 0 : 1);
        if (index < 0) {
          const std::int64_t gap = -index - (legacy ? 0 : 0);
          CheckArrayLength(length + 1 + gap, "array_insert");
          builder.Add(args.data[2], row);
          for (std::int64_t i = 0; i < gap; ++i) {
            builder.AddNull();
          }
          index = 0;
          for (std::int64_t i = 0; i < length; ++i) {
            builder.Add(list.child(), at(i));
          }
        } else {
          for (std::int64_t i = 0; i < index; ++i) {
            builder.Add(list.child(), at(i));
          }
          builder.Add(args.data[2], row);
          for (std::int64_t i = index; i < length; ++i) {
            builder.Add(list.child(), at(i));
          }
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeCompact(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Elements elements(element, list.child(), list.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < list.length(row); ++i) {
        if (!elements.IsNull(list.offset(row) + i)) {
          builder.Add(list.child(), list.offset(row) + i);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeDistinct(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Elements elements(element, list.child(), list.size());
    ListBuilder builder(result);
    std::unordered_set<std::string> seen;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      seen.clear();
      for (idx_t i = 0; i < list.length(row); ++i) {
        const idx_t at = list.offset(row) + i;
        if (seen.insert(elements.SetKey(at)).second) {
          builder.Add(list.child(), at);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

enum class SetOperation { kUnion, kIntersect, kExcept };

template <SetOperation kOperation>
Result<Kernel> MakeSets(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    ListArgument a(args.data[0], args.size());
    ListArgument b(args.data[1], args.size());
    Elements x(element, a.child(), a.size());
    Elements y(element, b.child(), b.size());
    ListBuilder builder(result);
    std::unordered_set<std::string> seen;
    std::unordered_set<std::string> other;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (a.IsNull(row) || b.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      seen.clear();
      other.clear();
      if (kOperation != SetOperation::kUnion) {
        for (idx_t i = 0; i < b.length(row); ++i) {
          other.insert(y.SetKey(b.offset(row) + i));
        }
      }
      for (idx_t i = 0; i < a.length(row); ++i) {
        const idx_t at = a.offset(row) + i;
        std::string key = x.SetKey(at);
        const bool wanted =
            kOperation == SetOperation::kUnion || other.contains(key) == (kOperation == SetOperation::kIntersect);
        if (wanted && seen.insert(std::move(key)).second) {
          builder.Add(a.child(), at);
        }
      }
      if (kOperation == SetOperation::kUnion) {
        for (idx_t i = 0; i < b.length(row); ++i) {
          const idx_t at = b.offset(row) + i;
          if (seen.insert(y.SetKey(at)).second) {
            builder.Add(b.child(), at);
          }
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeOverlap(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    ListArgument a(args.data[0], args.size());
    ListArgument b(args.data[1], args.size());
    Elements x(element, a.child(), a.size());
    Elements y(element, b.child(), b.size());
    auto* out = FlatResult<bool>(result);
    std::unordered_set<std::string> keys;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (a.IsNull(row) || b.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      keys.clear();
      bool nulls = false;
      for (idx_t i = 0; i < a.length(row); ++i) {
        const idx_t at = a.offset(row) + i;
        if (x.IsNull(at)) {
          nulls = true;
        } else {
          keys.insert(x.SetKey(at));
        }
      }
      bool found = false;
      for (idx_t i = 0; i < b.length(row) && !found; ++i) {
        const idx_t at = b.offset(row) + i;
        if (y.IsNull(at)) {
          nulls = true;
        } else {
          found = keys.contains(y.SetKey(at));
        }
      }
      out[row] = found;
      if (!found && nulls && a.length(row) > 0 && b.length(row) > 0) {
        FlatVector::SetNull(result, row, true);
      }
    }
  });
}

/// Rows of a picker as the whole result.
void FillResult(const ElementPicker& picker, Vector& result) {
  result.SetVectorType(VectorType::FLAT_VECTOR);
  picker.CopyInto(result, 0);
}

template <bool kMax>
Result<Kernel> MakeExtreme(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Elements elements(element, list.child(), list.size());
    ElementPicker picker;
    for (idx_t row = 0; row < args.size(); ++row) {
      std::int64_t best = -1;
      for (idx_t i = 0; !list.IsNull(row) && i < list.length(row); ++i) {
        const idx_t at = list.offset(row) + i;
        if (elements.IsNull(at)) {
          continue;
        }
        const int order = best < 0 ? 0 : elements.Compare(at, elements, static_cast<idx_t>(best));
        if (best < 0 || (kMax ? order > 0 : order < 0)) {
          best = static_cast<std::int64_t>(at);
        }
      }
      if (best < 0) {
        picker.AddNull();
      } else {
        picker.Add(list.child(), static_cast<idx_t>(best));
      }
    }
    FillResult(picker, result);
  });
}

Result<Kernel> MakeJoin(const ScalarSite& site) {
  const bool replaces = site.size() > 2;
  return Kernel([replaces](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Column texts(list.child(), list.size());
    Column separators(args.data[1], args.size());
    std::optional<Column> replacements;
    if (replaces) {
      replacements.emplace(args.data[2], args.size());
    }
    auto* out = FlatResult<duckdb::string_t>(result);
    std::string joined;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row) || separators.IsNull(row) || (replaces && replacements->IsNull(row))) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      joined.clear();
      bool first = true;
      for (idx_t i = 0; i < list.length(row); ++i) {
        const idx_t at = list.offset(row) + i;
        const bool null = texts.IsNull(at);
        if (null && !replaces) {
          continue;
        }
        if (!first) {
          joined += separators.Get<Str>(row);
        }
        first = false;
        joined += null ? replacements->Get<Str>(row) : texts.Get<Str>(at);
      }
      out[row] = Physical<Str>::Write(result, joined);
    }
  });
}

Result<Kernel> MakeRepeat(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    Column counts(args.data[1], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (counts.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      CheckArrayLength(std::max(0, counts.Get<std::int32_t>(row)), "array_repeat");
      for (std::int32_t i = 0; i < counts.Get<std::int32_t>(row); ++i) {
        builder.Add(args.data[0], row);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeZip(const ScalarSite& site) {
  const std::size_t width = site.size();
  return Kernel([width](DataChunk& args, Vector& result) {
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    std::vector<ListArgument> lists;
    for (std::size_t i = 0; i < width; ++i) {
      lists.emplace_back(args.data[i], args.size());
    }
    std::vector<ElementPicker> pickers(width);
    idx_t total = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      idx_t length = 0;
      bool null = false;
      for (const ListArgument& list : lists) {
        null = null || list.IsNull(row);
        length = std::max(length, list.IsNull(row) ? 0 : list.length(row));
      }
      if (null) {
        entries[row] = duckdb::list_entry_t(total, 0);
        FlatVector::SetNull(result, row, true);
        continue;
      }
      for (std::size_t i = 0; i < width; ++i) {
        for (idx_t k = 0; k < length; ++k) {
          if (k < lists[i].length(row)) {
            pickers[i].Add(lists[i].child(), lists[i].offset(row) + k);
          } else {
            pickers[i].AddNull();
          }
        }
      }
      entries[row] = duckdb::list_entry_t(total, length);
      total += length;
    }
    duckdb::ListVector::Reserve(result, total);
    auto& fields = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
    for (std::size_t i = 0; i < width; ++i) {
      pickers[i].CopyInto(*fields[i], 0);
    }
    duckdb::ListVector::SetListSize(result, total);
  });
}

Result<Kernel> MakeFlatten(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    ListArgument outer(args.data[0], args.size());
    ListArgument inner(outer.child(), outer.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      bool null = outer.IsNull(row);
      std::int64_t length = 0;
      for (idx_t i = 0; !null && i < outer.length(row); ++i) {
        null = inner.IsNull(outer.offset(row) + i);
        length += null ? 0 : static_cast<std::int64_t>(inner.length(outer.offset(row) + i));
      }
      if (null) {
        builder.NullRow(row);
        continue;
      }
      CheckArrayLength(length, "flatten");
      for (idx_t i = 0; i < outer.length(row); ++i) {
        const idx_t at = outer.offset(row) + i;
        for (idx_t k = 0; k < inner.length(at); ++k) {
          builder.Add(inner.child(), inner.offset(at) + k);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeConcatArrays(const ScalarSite& site) {
  const std::size_t width = site.size();
  return Kernel([width](DataChunk& args, Vector& result) {
    std::vector<ListArgument> lists;
    for (std::size_t i = 0; i < width; ++i) {
      lists.emplace_back(args.data[i], args.size());
    }
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (std::any_of(lists.begin(), lists.end(), [&](const ListArgument& list) { return list.IsNull(row); })) {
        builder.NullRow(row);
        continue;
      }
      for (const ListArgument& list : lists) {
        for (idx_t k = 0; k < list.length(row); ++k) {
          builder.Add(list.child(), list.offset(row) + k);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeReverse(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = list.length(row); i-- > 0;) {
        builder.Add(list.child(), list.offset(row) + i);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeSlice(const ScalarSite& site) {
  auto context = site.expr.context;
  return Kernel([context](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Column starts(args.data[1], args.size());
    Column lengths(args.data[2], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row) || starts.IsNull(row) || lengths.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      const std::int64_t start = starts.Get<std::int32_t>(row);
      const std::int64_t length = lengths.Get<std::int32_t>(row);
      if (start == 0) {
        ThrowRowError(
            WithContext(Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.START",
                              "The value of parameter(s) `start` in `slice` is invalid: Expects a positive or a "
                              "negative value for `start`, but got 0.")
                            .Family(ErrorFamily::kRuntime),
                        context));
      }
      if (length < 0) {
        ThrowRowError(
            WithContext(Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.LENGTH",
                              "The value of parameter(s) `length` in `slice` is invalid: Expects `length` greater "
                              "than or equal to 0, but got " +
                                  std::to_string(length) + ".")
                            .Family(ErrorFamily::kRuntime),
                        context));
      }
      const auto size = static_cast<std::int64_t>(list.length(row));
      const std::int64_t from = start > 0 ? start - 1 : size + start;
      if (from >= 0) {
        for (std::int64_t i = from; i < std::min(size, from + length); ++i) {
          builder.Add(list.child(), list.offset(row) + static_cast<idx_t>(i));
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

/// element_at(array, index): index from 1, negative from the end.
Result<Kernel> MakeElementAt(const ScalarSite& site) {
  const bool fails = site.Literal(2).boolean();
  auto context = site.expr.context;
  return Kernel([fails, context](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    Column indexes(args.data[1], args.size());
    ElementPicker picker;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row) || indexes.IsNull(row)) {
        picker.AddNull();
        continue;
      }
      const std::int64_t index = indexes.Get<std::int32_t>(row);
      const auto size = static_cast<std::int64_t>(list.length(row));
      if (index == 0) {
        ThrowRowError(ZeroIndex(context));
      }
      if (index > size || -index > size) {
        if (fails) {
          ThrowRowError(WithContext(
              Error(
                  ErrorKind::kInvalidArgument, "INVALID_ARRAY_INDEX_IN_ELEMENT_AT",
                  "The index " + std::to_string(index) + " is out of bounds. The array has " + std::to_string(size) +
                      " elements. Use `try_element_at` to tolerate accessing element at invalid index and return NULL "
                      "instead.")
                  .With("indexValue", std::to_string(index))
                  .With("arraySize", std::to_string(size))
                  .Family(ErrorFamily::kArrayIndexOutOfBounds),
              context));
        }
        picker.AddNull();
        continue;
      }
      picker.Add(list.child(), list.offset(row) + static_cast<idx_t>(index > 0 ? index - 1 : size + index));
    }
    FillResult(picker, result);
  });
}

/// One field of each struct of an array.
Result<Kernel> MakeArrayFields(const ScalarSite& site) {
  const auto ordinal = static_cast<std::size_t>(site.Literal(1).integer());
  return Kernel([ordinal](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    auto& structs = list.child();
    auto& validity = FlatVector::Validity(structs);
    auto& field = *duckdb::StructVector::GetEntries(structs)[ordinal];
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < list.length(row); ++i) {
        const idx_t at = list.offset(row) + i;
        if (validity.RowIsValid(at)) {
          builder.Add(field, at);
        } else {
          builder.AddNull();
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

}  // namespace

const ScalarTable& ArrayKernels() {
  static const ScalarTable table = {
      {"spark_size", Nulls::kOwn, MakeSize},
      {"spark_array_contains", Nulls::kOwn, MakeContains},
      {"spark_array_position", Nulls::kOwn, MakePosition},
      {"spark_array_remove", Nulls::kOwn, MakeRemove},
      {"spark_array_append", Nulls::kOwn, MakeAppend<true>},
      {"spark_array_prepend", Nulls::kOwn, MakeAppend<false>},
      {"spark_array_insert", Nulls::kOwn, MakeInsert},
      {"spark_array_compact", Nulls::kOwn, MakeCompact},
      {"spark_array_distinct", Nulls::kOwn, MakeDistinct},
      {"spark_array_union", Nulls::kOwn, MakeSets<SetOperation::kUnion>},
      {"spark_array_intersect", Nulls::kOwn, MakeSets<SetOperation::kIntersect>},
      {"spark_array_except", Nulls::kOwn, MakeSets<SetOperation::kExcept>},
      {"spark_arrays_overlap", Nulls::kOwn, MakeOverlap},
      {"spark_array_max", Nulls::kOwn, MakeExtreme<true>},
      {"spark_array_min", Nulls::kOwn, MakeExtreme<false>},
      {"spark_array_join", Nulls::kOwn, MakeJoin},
      {"spark_array_repeat", Nulls::kOwn, MakeRepeat},
      {"spark_arrays_zip", Nulls::kOwn, MakeZip},
      {"spark_flatten", Nulls::kOwn, MakeFlatten},
      {"spark_concat_arrays", Nulls::kOwn, MakeConcatArrays},
      {"spark_array_reverse", Nulls::kOwn, MakeReverse},
      {"spark_slice", Nulls::kOwn, MakeSlice},
      {"spark_element_at", Nulls::kOwn, MakeElementAt},
      {"spark_array_fields", Nulls::kOwn, MakeArrayFields},
  };
  return table;
}

}  // namespace fleuve::engine
