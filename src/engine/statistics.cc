#include <cmath>

#include "engine/carriers_internal.h"
#include "engine/parquet_writer_internal.h"

namespace fleuve::engine {

using duckdb::idx_t;
using types::DataType;
using types::TypeKind;

struct StatisticsCollector::Leaf {
  std::vector<std::size_t> place;  ///< column, then field numbers
  ColumnStatistics result;
  bool bounds = false;
  bool seen = false;
  bool nan = false;
  types::Int128 min_number = 0;
  types::Int128 max_number = 0;
  double min_real = 0;
  double max_real = 0;
  std::string min_text;
  std::string max_text;
};

namespace {

bool HasBounds(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
    case TypeKind::kFloat:
    case TypeKind::kDouble:
    case TypeKind::kDecimal:
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
    case TypeKind::kDate:
    case TypeKind::kTimestamp:
    case TypeKind::kTimestampNtz:
      return true;
    default:
      return false;
  }
}

template <typename T, typename Leaf>
void AddNumbers(duckdb::Vector& vector, idx_t count, const duckdb::ValidityMask* parents, Leaf& leaf) {
  const auto* values = duckdb::FlatVector::GetData<T>(vector);
  const auto& mask = duckdb::FlatVector::Validity(vector);
  bool any = false;
  T low{};
  T high{};
  idx_t nulls = 0;
  for (idx_t i = 0; i < count; i++) {
    if (!mask.RowIsValid(i) || (parents != nullptr && !parents->RowIsValid(i))) {
      nulls++;
      continue;
    }
    const T value = values[i];
    if (!any) {
      any = true;
      low = high = value;
    } else {
      low = value < low ? value : low;
      high = high < value ? value : high;
    }
  }
  leaf.result.null_count += static_cast<std::int64_t>(nulls);
  if (!any) {
    return;
  }
  types::Int128 wide_low = 0;
  types::Int128 wide_high = 0;
  if constexpr (std::is_same_v<T, duckdb::hugeint_t>) {
    wide_low = ToInt128(low);
    wide_high = ToInt128(high);
  } else {
    wide_low = low;
    wide_high = high;
  }
  leaf.min_number = leaf.seen ? std::min(leaf.min_number, wide_low) : wide_low;
  leaf.max_number = leaf.seen ? std::max(leaf.max_number, wide_high) : wide_high;
  leaf.seen = true;
}

template <typename T, typename Leaf>
void AddReals(duckdb::Vector& vector, idx_t count, const duckdb::ValidityMask* parents, Leaf& leaf) {
  const auto* values = duckdb::FlatVector::GetData<T>(vector);
  const auto& mask = duckdb::FlatVector::Validity(vector);
  for (idx_t i = 0; i < count; i++) {
    if (!mask.RowIsValid(i) || (parents != nullptr && !parents->RowIsValid(i))) {
      leaf.result.null_count++;
      continue;
    }
    const double value = values[i];
    if (std::isnan(value)) {
      leaf.nan = true;
      continue;
    }
    leaf.min_real = leaf.seen ? std::min(leaf.min_real, value) : value;
    leaf.max_real = leaf.seen ? std::max(leaf.max_real, value) : value;
    leaf.seen = true;
  }
}

template <typename Leaf>
void AddTexts(duckdb::Vector& vector, idx_t count, const duckdb::ValidityMask* parents, Leaf& leaf) {
  const auto* values = duckdb::FlatVector::GetData<duckdb::string_t>(vector);
  const auto& mask = duckdb::FlatVector::Validity(vector);
  std::string_view low;
  std::string_view high;
  bool any = false;
  for (idx_t i = 0; i < count; i++) {
    if (!mask.RowIsValid(i) || (parents != nullptr && !parents->RowIsValid(i))) {
      leaf.result.null_count++;
      continue;
    }
    const std::string_view value(values[i].GetData(), values[i].GetSize());
    if (!any) {
      any = true;
      low = high = value;
    } else if (value < low) {
      low = value;
    } else if (high < value) {
      high = value;
    }
  }
  if (!any) {
    return;
  }
  if (!leaf.seen || low < leaf.min_text) {
    leaf.min_text = low;
  }
  if (!leaf.seen || high > leaf.max_text) {
    leaf.max_text = high;
  }
  leaf.seen = true;
}

}  // namespace

StatisticsCollector::StatisticsCollector(const types::Schema& schema, const types::Schema& physical_schema,
                                         int leaves) {
  const std::function<void(const DataType&, const DataType&, std::vector<std::size_t>, std::vector<std::string>)> add =
      [&](const DataType& type, const DataType& physical, std::vector<std::size_t> place,
          std::vector<std::string> path) {
        if (type.Is(TypeKind::kStruct) && !type.fields().empty()) {
          for (std::size_t i = 0; i < type.fields().size(); i++) {
            auto inner_place = place;
            inner_place.push_back(i);
            auto inner_path = path;
            inner_path.push_back(physical.fields()[i].name);
            add(type.fields()[i].type, physical.fields()[i].type, std::move(inner_place), std::move(inner_path));
          }
          return;
        }
        if (leaves >= 0 && leaves_.size() >= static_cast<std::size_t>(leaves)) {
          return;
        }
        auto leaf = std::make_unique<Leaf>();
        leaf->place = std::move(place);
        leaf->result.path = std::move(path);
        leaf->result.type = type;
        leaf->result.null_count = 0;
        leaf->bounds = HasBounds(type);
        leaves_.push_back(std::move(leaf));
      };
  for (std::size_t i = 0; i < schema.fields().size(); i++) {
    add(schema.fields()[i].type, physical_schema.fields()[i].type, {i}, {physical_schema.fields()[i].name});
  }
}

StatisticsCollector::~StatisticsCollector() = default;

void StatisticsCollector::Add(duckdb::DataChunk& rows) {
  const idx_t count = rows.size();
  for (auto& leaf : leaves_) {
    duckdb::Vector* vector = &rows.data[leaf->place[0]];
    vector->Flatten(count);
    duckdb::ValidityMask parents;
    bool has_parents = false;
    for (std::size_t depth = 1; depth < leaf->place.size(); depth++) {
      const auto& mask = duckdb::FlatVector::Validity(*vector);
      if (!mask.AllValid()) {
        if (!has_parents) {
          parents.Initialize(count);
          has_parents = true;
        }
        for (idx_t i = 0; i < count; i++) {
          if (!mask.RowIsValid(i)) {
            parents.SetInvalid(i);
          }
        }
      }
      vector = duckdb::StructVector::GetEntries(*vector)[leaf->place[depth]].get();
      vector->Flatten(count);
    }
    const duckdb::ValidityMask* above = has_parents ? &parents : nullptr;
    if (!leaf->bounds) {
      const auto& mask = duckdb::FlatVector::Validity(*vector);
      if (!mask.AllValid() || has_parents) {
        for (idx_t i = 0; i < count; i++) {
          if (!mask.RowIsValid(i) || (above != nullptr && !above->RowIsValid(i))) {
            leaf->result.null_count++;
          }
        }
      }
      continue;
    }
    switch (vector->GetType().InternalType()) {
      case duckdb::PhysicalType::INT8:
        AddNumbers<std::int8_t>(*vector, count, above, *leaf);
        break;
      case duckdb::PhysicalType::INT16:
        AddNumbers<std::int16_t>(*vector, count, above, *leaf);
        break;
      case duckdb::PhysicalType::INT32:
        AddNumbers<std::int32_t>(*vector, count, above, *leaf);
        break;
      case duckdb::PhysicalType::INT64:
        AddNumbers<std::int64_t>(*vector, count, above, *leaf);
        break;
      case duckdb::PhysicalType::INT128:
        AddNumbers<duckdb::hugeint_t>(*vector, count, above, *leaf);
        break;
      case duckdb::PhysicalType::FLOAT:
        AddReals<float>(*vector, count, above, *leaf);
        break;
      case duckdb::PhysicalType::DOUBLE:
        AddReals<double>(*vector, count, above, *leaf);
        break;
      default:
        AddTexts(*vector, count, above, *leaf);
        break;
    }
  }
}

std::vector<ColumnStatistics> StatisticsCollector::Take() {
  std::vector<ColumnStatistics> all;
  for (auto& leaf : leaves_) {
    auto& result = leaf->result;
    const bool only_nan = leaf->nan && !leaf->seen;
    if (leaf->bounds && (leaf->seen || only_nan)) {
      switch (result.type.kind()) {
        case TypeKind::kFloat:
        case TypeKind::kDouble:
          // NaN is the largest value of all.
          result.min = types::Value(only_nan ? std::nan("") : leaf->min_real);
          result.max = types::Value(leaf->nan ? std::nan("") : leaf->max_real);
          break;
        case TypeKind::kDecimal:
          result.min = types::Value(leaf->min_number);
          result.max = types::Value(leaf->max_number);
          break;
        case TypeKind::kString:
        case TypeKind::kChar:
        case TypeKind::kVarchar:
          result.min = types::Value(std::move(leaf->min_text));
          result.max = types::Value(std::move(leaf->max_text));
          break;
        default:
          result.min = types::Value(static_cast<std::int64_t>(leaf->min_number));
          result.max = types::Value(static_cast<std::int64_t>(leaf->max_number));
          break;
      }
    }
    all.push_back(std::move(result));
  }
  leaves_.clear();
  return all;
}

}  // namespace fleuve::engine
