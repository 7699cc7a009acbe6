#include "plan/function_builder.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/bytes.h"
#include "plan/function_names.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan {

namespace {

using functions::Entry;
using functions::Table;

const std::unordered_map<std::string, const Entry*>& Registry() {
  static const auto* registry = [] {
    auto* map = new std::unordered_map<std::string, const Entry*>();
    const Table* tables[] = {
        &functions::OperatorFunctions(),   &functions::ConditionalFunctions(), &functions::CastFunctions(),
        &functions::StringFunctions(),     &functions::RegexpFunctions(),      &functions::MathFunctions(),
        &functions::HashFunctions(),       &functions::BitmapFunctions(),      &functions::DateTimeFunctions(),
        &functions::IntervalFunctions(),   &functions::AggregateFunctions(),   &functions::StatisticFunctions(),
        &functions::WindowFunctions(),     &functions::MiscFunctions(),        &functions::NestedFunctions(),
        &functions::CollectionFunctions(), &functions::HigherOrderFunctions(), &functions::TextFormatFunctions(),
        &functions::VariantFunctions(),
    };
    for (const Table* table : tables) {
      for (const Entry& entry : *table) {
        (*map)[entry.name] = &entry;
      }
    }
    return map;
  }();
  return *registry;
}

const std::unordered_map<std::string, FunctionKind>& KnownNames() {
  static const auto* names = new std::unordered_map<std::string, FunctionKind>{
#include "plan/functions/known_names.inc"
  };
  return *names;
}

}  // namespace

std::optional<FunctionKind> FindFunctionKind(std::string_view name) {
  std::string key = AsciiLower(name);
  if (auto found = Registry().find(key); found != Registry().end()) {
    return found->second->kind;
  }
  if (auto found = KnownNames().find(key); found != KnownNames().end()) {
    return found->second;
  }
  return std::nullopt;
}

std::vector<std::string> KnownFunctionNames() {
  std::vector<std::string> names;
  for (const auto& [name, kind] : KnownNames()) {
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<ExprPtr> BuildFunction(const FunctionCall& call) {
  std::string key = AsciiLower(call.name);
  if (auto found = Registry().find(key); found != Registry().end()) {
    return functions::Run(*found->second, call);
  }
  static const std::set<std::string> kOfTime = {"current_time", "make_time", "time_diff",
                                                "time_trunc",   "to_time",   "try_to_time"};
  if (kOfTime.contains(key)) {
    return Error(ErrorKind::kUnsupported, "UNSUPPORTED_TIME_TYPE", "The data type TIME is not supported.");
  }
  if (KnownNames().contains(key)) {
    return Error::Unsupported("the function " + key);
  }
  return Error(ErrorKind::kNotFound, "UNRESOLVED_ROUTINE",
               "Cannot resolve routine `" + call.name + "` on search path [`system`.`builtin`, `system`.`session`, `" +
                   call.config->current_catalog + "`.`" + call.config->current_database + "`].")
      .With("routineName", "`" + call.name + "`")
      .With("searchPath", "[`system`.`builtin`, `system`.`session`, `" + call.config->current_catalog + "`.`" +
                              call.config->current_database + "`]");
}

}  // namespace fleuve::plan
