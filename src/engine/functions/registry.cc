#include <map>
#include <mutex>
#include <unordered_map>

#include "engine/duckdb_pch.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

constexpr std::string_view kErrorMark = "fleuve-row-error:";
/// The oldest errors are dropped beyond this number.
constexpr std::size_t kMostParked = 4096;

struct ParkedErrors {
  std::mutex mutex;
  std::uint64_t next = 1;
  std::map<std::uint64_t, Error> errors;
};

ParkedErrors& Parked() {
  static auto* parked = new ParkedErrors();
  return *parked;
}

template <typename Entry>
using Names = std::unordered_map<std::string_view, const Entry*>;

const Names<ScalarEntry>& Scalars() {
  static const auto* names = [] {
    auto* map = new Names<ScalarEntry>();
    for (const ScalarTable* table :
         {&ArrayKernels(),    &ArrayOrderKernels(), &MapKernels(),        &HigherOrderKernels(), &TextFormatKernels(),
          &JsonPathKernels(), &VariantKernels(),    &ArithmeticKernels(), &CastKernels(),        &ConditionalKernels(),
          &DateKernels(),     &HashKernels(),       &IntervalKernels(),   &MathKernels(),        &MiscKernels(),
          &NestedKernels(),   &StringKernels(),     &TextCodecKernels(),  &RegexpKernels(),      &DateFormatKernels(),
          &FormatKernels(),   &OrderKeyKernels(),   &BitmapKernels(),     &CipherKernels()}) {
      for (const ScalarEntry& entry : *table) {
        (*map)[entry.name] = &entry;
      }
    }
    return map;
  }();
  return *names;
}

const Names<AggregateEntry>& Aggregates() {
  static const auto* names = [] {
    auto* map = new Names<AggregateEntry>();
    for (const AggregateTable* table :
         {&SumAggregates(), &OrderAggregates(), &StatisticAggregates(), &SketchAggregates(), &BitmapAggregates(),
          &CollectAggregates(), &VariantAggregates()}) {
      for (const AggregateEntry& entry : *table) {
        (*map)[entry.name] = &entry;
      }
    }
    return map;
  }();
  return *names;
}

/// The entry of a name; a name that ends in `_try` or `_legacy` may share its base's.
template <typename Entry>
const Entry* Find(const Names<Entry>& names, std::string_view name) {
  if (auto found = names.find(name); found != names.end()) {
    return found->second;
  }
  for (std::string_view suffix : {std::string_view("_try"), std::string_view("_legacy")}) {
    if (name.ends_with(suffix)) {
      auto found = names.find(name.substr(0, name.size() - suffix.size()));
      return found == names.end() ? nullptr : found->second;
    }
  }
  return nullptr;
}

/// Tells calls apart that differ in nothing that DuckDB sees.
struct CallData : public duckdb::FunctionData {
  explicit CallData(std::string text) : key(std::move(text)) {}
  std::string key;
  duckdb::unique_ptr<duckdb::FunctionData> Copy() const override { return duckdb::make_uniq<CallData>(key); }
  bool Equals(const duckdb::FunctionData& other) const override { return key == other.Cast<CallData>().key; }
};

std::string KeyOf(const plan::Expr& expr) {
  std::string key = expr.function;
  key += '|' + expr.type.SimpleString() + '|' + std::to_string(static_cast<int>(expr.cast_mode)) + '|' + expr.zone;
  for (const plan::ExprPtr& child : expr.children) {
    if (child->kind == plan::ExprKind::kLambda) {
      // A body is told by its node: two lambdas are the same only where they are one.
      key += '|' + std::to_string(reinterpret_cast<std::uintptr_t>(child.get()));
    } else {
      key += '|' + child->type.SimpleString();
    }
  }
  return key;
}

}  // namespace

void ThrowRowError(Error error) {
  ParkedErrors& parked = Parked();
  std::uint64_t number = 0;
  {
    std::lock_guard lock(parked.mutex);
    if (parked.errors.size() >= kMostParked) {
      parked.errors.erase(parked.errors.begin());
    }
    number = parked.next++;
    parked.errors.emplace(number, std::move(error));
  }
  throw duckdb::InvalidInputException(std::string(kErrorMark) + std::to_string(number));
}

std::optional<Error> TakeRowError(std::string_view message) {
  std::size_t at = message.find(kErrorMark);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  std::uint64_t number = 0;
  for (std::size_t i = at + kErrorMark.size(); i < message.size() && message[i] >= '0' && message[i] <= '9'; ++i) {
    number = number * 10 + static_cast<std::uint64_t>(message[i] - '0');
  }
  ParkedErrors& parked = Parked();
  std::lock_guard lock(parked.mutex);
  auto found = parked.errors.find(number);
  if (found == parked.errors.end()) {
    return std::nullopt;
  }
  // It stays: DuckDB may show one failure more than once (a query that is retried, a stream and its checkpoint).
  return found->second;
}

Result<ScalarImplementation> MakeScalar(const plan::ExprPtr& expr, const std::vector<duckdb::LogicalType>& arguments,
                                        const duckdb::LogicalType& result,
                                        std::vector<std::shared_ptr<const BoundLambda>> lambdas) {
  std::string name = expr->kind == plan::ExprKind::kCast ? "spark_cast" : expr->function;
  const ScalarEntry* entry = Find(Scalars(), name);
  if (entry == nullptr) {
    return Error::Unsupported("the function " + name);
  }
  // The kernel may refer to the node for as long as it lives.
  ScalarSite site{*expr, arguments, result, std::move(lambdas)};
  FLEUVE_ASSIGN(Kernel kernel, entry->make(site));
  duckdb::vector<duckdb::LogicalType> types(arguments.begin(), arguments.end());
  duckdb::ScalarFunction function(
      name, types, result,
      [expr, kernel = std::move(kernel)](duckdb::DataChunk& args, duckdb::ExpressionState&, duckdb::Vector& out) {
        kernel(args, out);
      },
      nullptr, nullptr, nullptr, nullptr, duckdb::LogicalType(duckdb::LogicalTypeId::INVALID),
      expr->deterministic ? duckdb::FunctionStability::CONSISTENT : duckdb::FunctionStability::VOLATILE,
      duckdb::FunctionNullHandling::SPECIAL_HANDLING);
  if (expr->can_fail) {
    function.SetFallible();
  }
  return ScalarImplementation{std::move(function), duckdb::make_uniq<CallData>(KeyOf(*expr))};
}

bool HasScalar(std::string_view name) { return Find(Scalars(), name) != nullptr; }

Result<AggregateImplementation> MakeAggregate(const plan::Expr& expr, const std::vector<duckdb::LogicalType>& arguments,
                                              const duckdb::LogicalType& result) {
  const std::string_view name = WithoutForm(expr.function);
  const AggregateEntry* entry = Find(Aggregates(), name);
  if (entry == nullptr) {
    return Error::Unsupported("the aggregate function " + std::string(name));
  }
  AggregateForm form = AggregateForm::kWhole;
  plan::Expr whole;
  if (name.size() != expr.function.size()) {
    const std::string_view ending = std::string_view(expr.function).substr(name.size());
    form = ending == "#partial" ? AggregateForm::kPartial
           : ending == "#merge" ? AggregateForm::kMerge
                                : AggregateForm::kFinal;
    whole = expr;
    whole.function = std::string(name);
    whole.type = expr.children.back()->type;
    whole.children.pop_back();
    if (form != AggregateForm::kPartial) {
      whole.children.erase(whole.children.begin());
    }
  }
  FLEUVE_ASSIGN(AggregateImplementation made,
                entry->make(AggregateSite{form == AggregateForm::kWhole ? expr : whole, arguments, result, form}));
  made.function.name = expr.function;
  made.function.SetFallible();
  return made;
}

bool HasAggregate(std::string_view name) { return Find(Aggregates(), name) != nullptr; }

std::string_view WithoutForm(std::string_view aggregate) {
  for (std::string_view ending :
       {std::string_view("#partial"), std::string_view("#merge"), std::string_view("#final")}) {
    if (aggregate.ends_with(ending)) {
      return aggregate.substr(0, aggregate.size() - ending.size());
    }
  }
  return aggregate;
}

}  // namespace fleuve::engine
