#include <algorithm>
#include <mutex>

#include "engine/functions/elements_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/mersenne_twister.h"
#include "types/time_zone.h"
#include "types/value.h"

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

Error BadSequence(const std::string& start, const std::string& stop, const std::string& step,
                  const std::shared_ptr<const QueryContext>& context) {
  return WithContext(Error(ErrorKind::kInvalidArgument, "",
                           "requirement failed: Illegal sequence boundaries: " + start + " to " + stop + " by " + step)
                         .Family(ErrorFamily::kIllegalArgument),
                     context);
}

template <typename T>
Kernel SequenceKernel(bool has_step, std::shared_ptr<const QueryContext> context) {
  return [has_step, context](DataChunk& args, Vector& result) {
    Column starts(args.data[0], args.size());
    Column stops(args.data[1], args.size());
    std::optional<Column> steps;
    if (has_step) {
      steps.emplace(args.data[2], args.size());
    }
    auto* entries = FlatResult<duckdb::list_entry_t>(result);
    idx_t total = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(total, 0);
      if (starts.IsNull(row) || stops.IsNull(row) || (has_step && steps->IsNull(row))) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      const Int128 start = starts.Get<T>(row);
      const Int128 stop = stops.Get<T>(row);
      const Int128 step = has_step ? Int128{steps->Get<T>(row)} : start <= stop ? 1 : -1;
      if ((step == 0 && start != stop) || (step > 0 && start > stop) || (step < 0 && start < stop)) {
        ThrowRowError(BadSequence(std::to_string(static_cast<std::int64_t>(start)),
                                  std::to_string(static_cast<std::int64_t>(stop)),
                                  std::to_string(static_cast<std::int64_t>(step)), context));
      }
      const Int128 length = step == 0 ? 1 : (stop - start) / step + 1;
      CheckArrayLength(length > Int128{1} << 40 ? std::int64_t{1} << 40 : static_cast<std::int64_t>(length),
                       "sequence");
      const auto count = static_cast<idx_t>(length);
      duckdb::ListVector::Reserve(result, total + count);
      auto* data = FlatVector::GetData<T>(duckdb::ListVector::GetEntry(result));
      Int128 value = start;
      for (idx_t i = 0; i < count; ++i) {
        data[total + i] = static_cast<T>(value);
        value += step;
      }
      entries[row].length = count;
      total += count;
    }
    duckdb::ListVector::SetListSize(result, total);
  };
}

Result<Kernel> MakeSequence(const ScalarSite& site) {
  const bool has_step = site.size() > 2;
  switch (site.ArgumentType(0).kind()) {
    case TypeKind::kByte:
      return SequenceKernel<std::int8_t>(has_step, site.expr.context);
    case TypeKind::kShort:
      return SequenceKernel<std::int16_t>(has_step, site.expr.context);
    case TypeKind::kInt:
      return SequenceKernel<std::int32_t>(has_step, site.expr.context);
    default:
      return SequenceKernel<std::int64_t>(has_step, site.expr.context);
  }
}

/// Adds months to a wall-clock time; the day is cut to the month's length.
std::int64_t AddMonths(std::int64_t micros, std::int64_t months) {
  constexpr std::int64_t kDay = 86'400'000'000;
  std::int64_t days = micros / kDay;
  std::int64_t rest = micros % kDay;
  if (rest < 0) {
    rest += kDay;
    --days;
  }
  std::int64_t year;
  unsigned month;
  unsigned day;
  types::CivilFromDays(days, &year, &month, &day);
  std::int64_t index = year * 12 + static_cast<std::int64_t>(month) - 1 + months;
  year = index >= 0 ? index / 12 : (index - 11) / 12;
  month = static_cast<unsigned>(index - year * 12) + 1;
  const std::int64_t next_year = month == 12 ? year + 1 : year;
  const unsigned next_month = month == 12 ? 1 : month + 1;
  const auto last =
      static_cast<unsigned>(types::DaysFromCivil(next_year, next_month, 1) - types::DaysFromCivil(year, month, 1));
  return types::DaysFromCivil(year, month, std::min(day, last)) * kDay + rest;
}

/// sequence(start, stop, step, default_step, zone) over dates and timestamps.
Result<Kernel> MakeSequenceTime(const ScalarSite& site) {
  const DataType type = site.ArgumentType(0);
  const DataType step_type = site.ArgumentType(2);
  const bool default_step = site.Literal(3).boolean();
  FLEUVE_ASSIGN(std::shared_ptr<const types::TimeZone> zone, types::TimeZone::Find(site.Literal(4).text()));
  auto context = site.expr.context;
  return Kernel([type, step_type, default_step, zone, context](DataChunk& args, Vector& result) {
    constexpr std::int64_t kDay = 86'400'000'000;
    const bool dates = type.Is(TypeKind::kDate);
    const bool zoned = type.Is(TypeKind::kTimestamp);
    Column starts(args.data[0], args.size());
    Column stops(args.data[1], args.size());
    const bool calendar = step_type.Is(TypeKind::kCalendarInterval);
    if (calendar) {
      args.data[2].Flatten(args.size());
    }
    Column steps(args.data[2], args.size());
    auto* entries = FlatResult<duckdb::list_entry_t>(result);
    idx_t total = 0;
    for (idx_t row = 0; row < args.size(); ++row) {
      entries[row] = duckdb::list_entry_t(total, 0);
      if (starts.IsNull(row) || stops.IsNull(row) || steps.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      const std::int64_t start = dates ? starts.Get<std::int32_t>(row) * kDay : starts.Get<std::int64_t>(row);
      const std::int64_t stop = dates ? stops.Get<std::int32_t>(row) * kDay : stops.Get<std::int64_t>(row);
      std::int64_t months = 0;
      std::int64_t days = 0;
      std::int64_t micros = 0;
      if (calendar) {
        auto& parts = duckdb::StructVector::GetEntries(args.data[2]);
        months = Column(*parts[0], args.size()).Get<std::int32_t>(row);
        days = Column(*parts[1], args.size()).Get<std::int32_t>(row);
        micros = Column(*parts[2], args.size()).Get<std::int64_t>(row);
      } else if (step_type.Is(TypeKind::kYearMonthInterval)) {
        months = steps.Get<std::int32_t>(row);
      } else {
        micros = steps.Get<std::int64_t>(row);
        if (dates || default_step || micros % kDay == 0) {
          // Whole days go by the calendar.
          days = micros / kDay;
          micros -= days * kDay;
        }
      }
      if (default_step && start > stop) {
        days = -days;
      }
      if (dates && micros != 0) {
        ThrowRowError(BadSequence(std::to_string(start), std::to_string(stop), "a part of a day", context));
      }
      const std::int64_t direction = months + days + (micros > 0 ? 1 : micros < 0 ? -1 : 0);
      if ((direction == 0 && start != stop) || (direction > 0 && start > stop) || (direction < 0 && start < stop)) {
        ThrowRowError(BadSequence(std::to_string(start), std::to_string(stop), "its step", context));
      }
      const std::int64_t local = zoned ? zone->UtcToLocal(start) : start;
      for (std::int64_t i = 0;; ++i) {
        std::int64_t value;
        if (months == 0 && days == 0) {
          value = start + i * micros;
        } else {
          value = AddMonths(local, i * months) + i * days * kDay;
          value = zoned ? zone->LocalToUtc(value) : value;
          value += i * micros;
        }
        if (direction >= 0 ? value > stop : value < stop) {
          break;
        }
        CheckArrayLength(i + 1 > 100'000'000 ? std::int64_t{1} << 40 : i + 1, "sequence");
        duckdb::ListVector::Reserve(result, total + 1);
        auto& child = duckdb::ListVector::GetEntry(result);
        if (dates) {
          FlatVector::GetData<std::int32_t>(child)[total] = static_cast<std::int32_t>(value / kDay);
        } else {
          FlatVector::GetData<std::int64_t>(child)[total] = value;
        }
        ++total;
        ++entries[row].length;
        if (direction == 0) {
          break;
        }
      }
    }
    duckdb::ListVector::SetListSize(result, total);
  });
}

Result<Kernel> MakeShuffle(const ScalarSite& site) {
  const std::int64_t seed = site.Literal(1).integer();
  auto random = std::make_shared<MersenneTwister>(seed);
  auto mutex = std::make_shared<std::mutex>();
  return Kernel([random, mutex](DataChunk& args, Vector& result) {
    ListArgument list(args.data[0], args.size());
    ListBuilder builder(result);
    std::lock_guard lock(*mutex);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (list.IsNull(row)) {
        builder.NullRow(row);
        continue;
      }
      std::vector<idx_t> order(list.length(row));
      for (idx_t i = 0; i < order.size(); ++i) {
        const auto j = static_cast<idx_t>(random->NextBelow(static_cast<std::int32_t>(i + 1)));
        order[i] = order[j];
        order[j] = i;
      }
      for (idx_t i : order) {
        builder.Add(list.child(), list.offset(row) + i);
      }
      builder.EndRow(row);
    }
    builder.Finish();
  });
}

void SortRows(const DataType& element, DataChunk& args, Vector& result, bool nulls_first_of_ascending,
              const Column* ascending) {
  ListArgument list(args.data[0], args.size());
  Elements elements(element, list.child(), list.size());
  ListBuilder builder(result);
  std::vector<idx_t> order;
  std::vector<idx_t> nulls;
  for (idx_t row = 0; row < args.size(); ++row) {
    if (list.IsNull(row) || (ascending != nullptr && ascending->IsNull(row))) {
      builder.NullRow(row);
      continue;
    }
    const bool up = ascending == nullptr || ascending->Get<bool>(row);
    order.clear();
    nulls.clear();
    for (idx_t i = 0; i < list.length(row); ++i) {
      const idx_t at = list.offset(row) + i;
      (elements.IsNull(at) ? nulls : order).push_back(at);
    }
    std::stable_sort(order.begin(), order.end(), [&](idx_t a, idx_t b) {
      const int compared = elements.Compare(a, elements, b);
      return up ? compared < 0 : compared > 0;
    });
    const bool nulls_first = nulls_first_of_ascending && up;
    if (nulls_first) {
      for (idx_t at : nulls) {
        builder.Add(list.child(), at);
      }
    }
    for (idx_t at : order) {
      builder.Add(list.child(), at);
    }
    if (!nulls_first) {
      for (idx_t at : nulls) {
        builder.Add(list.child(), at);
      }
    }
    builder.EndRow(row);
  }
  builder.Finish();
}

Result<Kernel> MakeSortArray(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) {
    Column ascending(args.data[1], args.size());
    SortRows(element, args, result, true, &ascending);
  });
}

Result<Kernel> MakeArraySort(const ScalarSite& site) {
  const DataType element = site.ArgumentType(0).element();
  return Kernel([element](DataChunk& args, Vector& result) { SortRows(element, args, result, false, nullptr); });
}

}  // namespace

const ScalarTable& ArrayOrderKernels() {
  static const ScalarTable table = {
      {"spark_sequence", Nulls::kOwn, MakeSequence},    {"spark_sequence_time", Nulls::kOwn, MakeSequenceTime},
      {"spark_shuffle", Nulls::kOwn, MakeShuffle},      {"spark_sort_array", Nulls::kOwn, MakeSortArray},
      {"spark_array_sort", Nulls::kOwn, MakeArraySort},
  };
  return table;
}

}  // namespace fleuve::engine
