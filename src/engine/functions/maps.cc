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

/// One part of every entry as a list.
template <bool kKeys>
Result<Kernel> MakeParts(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    ListArgument map(args.data[0], args.size());
    ListBuilder builder(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (map.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t i = 0; i < map.length(row); ++i) {
        builder.Add(kKeys ? map.keys() : map.values(), map.offset(row) + i);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

/// array<struct<key, value>>
Result<Kernel> MakeEntries(const ScalarSite&) {
  return Kernel([](DataChunk& args, Vector& result) {
    ListArgument map(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* entries = FlatVector::GetData<duckdb::list_entry_t>(result);
    ElementPicker keys;
    ElementPicker values;
    idx_t total = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(total, 0);
      if (map.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      for (idx_t i = 0; i < map.length(row); ++i) {
        keys.Add(map.keys(), map.offset(row) + i);
        values.Add(map.values(), map.offset(row) + i);
      }
      entries[row].length = map.length(row);
      total += map.length(row);
    }
    duckdb::ListVector::Reserve(result, total);
    auto& fields = duckdb::StructVector::GetEntries(duckdb::ListVector::GetEntry(result));
    keys.CopyInto(*fields[0], 0);
    values.CopyInto(*fields[1], 0);
    duckdb::ListVector::SetListSize(result, total);
  });
}

Result<Kernel> MakeContainsKey(const ScalarSite& site) {
  const DataType key = site.ArgumentType(0).key();
  return Kernel([key](DataChunk& args, Vector& result) {
    ListArgument map(args.data[0], args.size());
    Elements keys(key, map.keys(), map.size());
    Elements wanted(key, args.data[1], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<bool>(result);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (map.IsNull(row) || wanted.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      bool found = false;
      for (idx_t i = 0; i < map.length(row) && !found; ++i) {
        found = keys.Compare(map.offset(row) + i, wanted, row) == 0;
      }
      out[row] = found;
    }
  });
}

bool LastWins(const ScalarSite& site) { return site.Literal(site.size() - 1).boolean(); }

/// map(key, value, ...)
Result<Kernel> MakeMap(const ScalarSite& site) {
  const std::size_t pairs = (site.size() - 1) / 2;
  const DataType key = site.expr.type.key();
  const bool last_wins = LastWins(site);
  return Kernel([pairs, key, last_wins](DataChunk& args, Vector& result) {
    std::vector<Elements> keys;
    for (std::size_t i = 0; i < pairs; ++i) {
      args.data[2 * i].Flatten(args.size());
      args.data[2 * i + 1].Flatten(args.size());
      keys.emplace_back(key, args.data[2 * i], args.size());
    }
    MapBuilder builder(result, key, last_wins);
    for (idx_t row = 0; row < args.size(); ++row) {
      for (std::size_t i = 0; i < pairs; ++i) {
        builder.Add(keys[i], args.data[2 * i], row, &args.data[2 * i + 1], row);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeConcat(const ScalarSite& site) {
  const std::size_t width = site.size() - 1;
  const DataType key = site.expr.type.key();
  const bool last_wins = LastWins(site);
  return Kernel([width, key, last_wins](DataChunk& args, Vector& result) {
    std::vector<ListArgument> maps;
    std::vector<Elements> keys;
    for (std::size_t i = 0; i < width; ++i) {
      maps.emplace_back(args.data[i], args.size());
      keys.emplace_back(key, maps[i].keys(), maps[i].size());
    }
    MapBuilder builder(result, key, last_wins);
    for (idx_t row = 0; row < args.size(); ++row) {
      bool null = false;
      for (const ListArgument& map : maps) {
        null = null || map.IsNull(row);
      }
      if (null) {
        builder.NullRow(row);
        continue;
      }
      for (std::size_t i = 0; i < width; ++i) {
        for (idx_t k = 0; k < maps[i].length(row); ++k) {
          const idx_t at = maps[i].offset(row) + k;
          builder.Add(keys[i], maps[i].keys(), at, &maps[i].values(), at);
        }
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeFromArrays(const ScalarSite& site) {
  const DataType key = site.expr.type.key();
  const bool last_wins = LastWins(site);
  auto context = site.expr.context;
  return Kernel([key, last_wins, context](DataChunk& args, Vector& result) {
    ListArgument names(args.data[0], args.size());
    ListArgument values(args.data[1], args.size());
    Elements keys(key, names.child(), names.size());
    MapBuilder builder(result, key, last_wins);
    builder.KeepZeros();
    for (idx_t row = 0; row < args.size(); ++row) {
      if (names.IsNull(row) || values.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      if (names.length(row) != values.length(row)) {
        Error error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2128",
                    "The key array and value array of MapData must have the same length.");
        error = std::move(error).Family(ErrorFamily::kRuntime);
        ThrowRowError(context ? std::move(error).At(*context) : std::move(error));
      }
      for (idx_t k = 0; k < names.length(row); ++k) {
        builder.Add(keys, names.child(), names.offset(row) + k, &values.child(), values.offset(row) + k);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

Result<Kernel> MakeFromEntries(const ScalarSite& site) {
  const DataType key = site.expr.type.key();
  const bool last_wins = LastWins(site);
  return Kernel([key, last_wins](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    auto& structs = list.child();
    auto& validity = FlatVector::Validity(structs);
    auto& fields = duckdb::StructVector::GetEntries(structs);
    Elements keys(key, *fields[0], list.size());
    MapBuilder builder(result, key, last_wins);
    for (idx_t row = 0; row < args.size(); ++row) {
      bool null = list.IsNull(row);
      for (idx_t k = 0; !null && k < list.length(row); ++k) {
        null = !validity.RowIsValid(list.offset(row) + k);
      }
      if (null) {
        builder.NullRow(row);
        continue;
      }
      for (idx_t k = 0; k < list.length(row); ++k) {
        const idx_t at = list.offset(row) + k;
        builder.Add(keys, *fields[0], at, fields[1].get(), at);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

}  // namespace

const ScalarTable& MapKernels() {
  static const ScalarTable table = {
      {"spark_map", Nulls::kOwn, MakeMap},
      {"spark_map_keys", Nulls::kOwn, MakeParts<true>},
      {"spark_map_values", Nulls::kOwn, MakeParts<false>},
      {"spark_map_entries", Nulls::kOwn, MakeEntries},
      {"spark_map_contains_key", Nulls::kOwn, MakeContainsKey},
      {"spark_map_concat", Nulls::kOwn, MakeConcat},
      {"spark_map_from_arrays", Nulls::kOwn, MakeFromArrays},
      {"spark_map_from_entries", Nulls::kOwn, MakeFromEntries},
  };
  return table;
}

}  // namespace fleuve::engine
