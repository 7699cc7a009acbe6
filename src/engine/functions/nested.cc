#include <algorithm>

#include "engine/functions/aggregates_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using types::TypeKind;

Result<Kernel> MakeStruct(const ScalarSite& site) {
  std::size_t fields = site.expr.children.size();
  return Kernel([fields](duckdb::DataChunk& args, duckdb::Vector& result) {
    auto& entries = duckdb::StructVector::GetEntries(result);
    if (fields == 0) {
      result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
      for (duckdb::idx_t row = 0; row < args.size(); ++row) {
        duckdb::FlatVector::SetNull(*entries[0], row, true);
      }
      return;
    }
    bool constant = true;
    for (std::size_t i = 0; i < fields; ++i) {
      constant = constant && args.data[i].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
      entries[i]->Reference(args.data[i]);
    }
    result.SetVectorType(constant ? duckdb::VectorType::CONSTANT_VECTOR : duckdb::VectorType::FLAT_VECTOR);
  });
}

Result<Kernel> MakeArray(const ScalarSite& site) {
  std::size_t width = site.expr.children.size();
  return Kernel([width](duckdb::DataChunk& args, duckdb::Vector& result) {
    duckdb::idx_t rows = args.size();
    bool constant = true;
    for (std::size_t i = 0; i < width; ++i) {
      constant = constant && args.data[i].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    }
    if (constant) {
      rows = 1;
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* entries = duckdb::FlatVector::GetData<duckdb::list_entry_t>(result);
    duckdb::idx_t total = rows * width;
    duckdb::ListVector::Reserve(result, total);
    auto& child = duckdb::ListVector::GetEntry(result);
    for (duckdb::idx_t row = 0; row < rows; ++row) {
      entries[row] = duckdb::list_entry_t(row * width, width);
    }
    for (std::size_t i = 0; i < width; ++i) {
      for (duckdb::idx_t row = 0; row < rows; ++row) {
        duckdb::VectorOperations::Copy(args.data[i], child, row + 1, row, row * width + i);
      }
    }
    duckdb::ListVector::SetListSize(result, total);
    if (constant) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
    }
  });
}

/// array[index] from 0 and map[key]: children container, index, and for arrays whether a wrong index is an error.
Result<Kernel> MakeElement(const ScalarSite& site) {
  bool fails = site.Literal(2).boolean();
  auto context = site.expr.context;
  if (site.ArgumentType(0).Is(TypeKind::kArray)) {
    return Kernel([fails, context](duckdb::DataChunk& args, duckdb::Vector& result) {
      Column lists(args.data[0], args.size());
      Column indexes(args.data[1], args.size());
      auto* entries = lists.Data<duckdb::list_entry_t>();
      auto& child = duckdb::ListVector::GetEntry(args.data[0]);
      result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
      duckdb::SelectionVector from(std::max<duckdb::idx_t>(args.size(), 1));
      std::vector<duckdb::idx_t> nulls;
      bool any = false;
      for (duckdb::idx_t row = 0; row < args.size(); ++row) {
        from.set_index(row, 0);
        if (lists.IsNull(row) || indexes.IsNull(row)) {
          nulls.push_back(row);
          continue;
        }
        const auto& entry = entries[lists.Index(row)];
        std::int64_t index = indexes.Get<std::int32_t>(row);
        if (index < 0 || index >= static_cast<std::int64_t>(entry.length)) {
          if (fails) {
            Error error =
                Error(ErrorKind::kInvalidArgument, "INVALID_ARRAY_INDEX",
                      "The index " + std::to_string(index) + " is out of bounds. The array has " +
                          std::to_string(entry.length) +
                          " elements. Use the SQL function `get()` to tolerate accessing element at invalid index and "
                          "return NULL instead.")
                    .With("indexValue", std::to_string(index))
                    .With("arraySize", std::to_string(entry.length))
                    .Family(ErrorFamily::kArrayIndexOutOfBounds);
            if (context) {
              error = std::move(error).At(*context);
            }
            ThrowRowError(std::move(error));
          }
          nulls.push_back(row);
          continue;
        }
        from.set_index(row, entry.offset + static_cast<duckdb::idx_t>(index));
        any = true;
      }
      if (any) {
        duckdb::VectorOperations::Copy(child, result, from, args.size(), 0, 0);
      }
      for (duckdb::idx_t row : nulls) {
        duckdb::FlatVector::SetNull(result, row, true);
      }
    });
  }
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column maps(args.data[0], args.size());
    Column wanted(args.data[1], args.size());
    auto* entries = maps.Data<duckdb::list_entry_t>();
    auto& keys = duckdb::MapVector::GetKeys(args.data[0]);
    auto& values = duckdb::MapVector::GetValues(args.data[0]);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    duckdb::SelectionVector from(std::max<duckdb::idx_t>(args.size(), 1));
    std::vector<duckdb::idx_t> nulls;
    bool any = false;
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      from.set_index(row, 0);
      bool found = false;
      if (!maps.IsNull(row) && !wanted.IsNull(row)) {
        const auto& entry = entries[maps.Index(row)];
        duckdb::Value key = entry.length > 0 ? args.data[1].GetValue(row) : duckdb::Value();
        for (duckdb::idx_t i = 0; i < entry.length && !found; ++i) {
          if (CompareValues(keys.GetValue(entry.offset + i), key) == 0) {
            from.set_index(row, entry.offset + i);
            found = true;
          }
        }
      }
      if (!found) {
        nulls.push_back(row);
      }
      any = any || found;
    }
    if (any) {
      duckdb::VectorOperations::Copy(values, result, from, args.size(), 0, 0);
    }
    for (duckdb::idx_t row : nulls) {
      duckdb::FlatVector::SetNull(result, row, true);
    }
  });
}

/// Maps with their entries in the order of the keys.
Result<Kernel> MakeMapSort(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column maps(args.data[0], args.size());
    auto* entries = maps.Data<duckdb::list_entry_t>();
    auto& keys = duckdb::MapVector::GetKeys(args.data[0]);
    auto& values = duckdb::MapVector::GetValues(args.data[0]);
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::list_entry_t>(result);
    std::vector<duckdb::idx_t> order;
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (maps.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      const auto& entry = entries[maps.Index(row)];
      std::vector<std::pair<duckdb::Value, duckdb::idx_t>> sorted;
      for (duckdb::idx_t i = 0; i < entry.length; ++i) {
        sorted.emplace_back(keys.GetValue(entry.offset + i), entry.offset + i);
      }
      std::stable_sort(sorted.begin(), sorted.end(),
                       [](const auto& a, const auto& b) { return CompareValues(a.first, b.first) < 0; });
      out[row] = duckdb::list_entry_t(order.size(), entry.length);
      for (const auto& [key, at] : sorted) {
        order.push_back(at);
      }
    }
    duckdb::ListVector::Reserve(result, order.size());
    duckdb::ListVector::SetListSize(result, order.size());
    if (order.empty()) {
      return;
    }
    duckdb::SelectionVector selection(order.size());
    for (duckdb::idx_t i = 0; i < order.size(); ++i) {
      selection.set_index(i, order[i]);
    }
    duckdb::VectorOperations::Copy(keys, duckdb::MapVector::GetKeys(result), selection, order.size(), 0, 0);
    duckdb::VectorOperations::Copy(values, duckdb::MapVector::GetValues(result), selection, order.size(), 0, 0);
  });
}

}  // namespace

const ScalarTable& NestedKernels() {
  static const ScalarTable table = {
      {"spark_struct", Nulls::kOwn, MakeStruct},
      {"spark_array", Nulls::kOwn, MakeArray},
      {"spark_map_sort", Nulls::kPropagate, MakeMapSort},
      {"spark_element", Nulls::kPropagate, MakeElement},
  };
  return table;
}

}  // namespace fleuve::engine
