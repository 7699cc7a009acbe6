#include <unordered_map>

#include "engine/functions/calendar_internal.h"
#include "engine/functions/date_pattern_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"

namespace fleuve::engine {

namespace {

using plan::CastMode;
using types::TypeKind;
using Zone = std::shared_ptr<const types::TimeZone>;

const DatePattern& PatternOf(Str pattern, bool parsing) {
  thread_local std::unordered_map<std::string, std::shared_ptr<const DatePattern>> cache;
  std::string key(1, parsing ? 'p' : 'f');
  key += pattern;
  auto found = cache.find(key);
  if (found == cache.end()) {
    auto made = DatePattern::Compile(pattern, parsing);
    if (!made.ok()) {
      ThrowRowError(std::move(made).error());
    }
    if (cache.size() > 64) {
      cache.clear();
    }
    found = cache.emplace(std::move(key), *made).first;
  }
  return *found->second;
}

/// date_format(time, pattern, zone)
Result<Kernel> MakeDateFormat(const ScalarSite& site) {
  FLEUVE_ASSIGN(Zone zone, types::TimeZone::Find(site.Literal(2).text()));
  return MapRows<Str, std::int64_t, Str>(
      [zone](std::int64_t micros, Str pattern) { return PatternOf(pattern, false).Format(micros, *zone); });
}

/// from_unixtime(seconds, pattern, zone)
Result<Kernel> MakeFromUnixtime(const ScalarSite& site) {
  FLEUVE_ASSIGN(Zone zone, types::TimeZone::Find(site.Literal(2).text()));
  return MapRows<Str, std::int64_t, Str>([zone](std::int64_t seconds, Str pattern) -> std::optional<std::string> {
    std::int64_t micros = 0;
    if (__builtin_mul_overflow(seconds, std::int64_t{1000000}, &micros)) {
      return std::nullopt;
    }
    return PatternOf(pattern, false).Format(micros, *zone);
  });
}

/// parse_timestamp(text, pattern, zone, is_try)
Result<Kernel> MakeParse(const ScalarSite& site) {
  FLEUVE_ASSIGN(Zone zone, types::TimeZone::Find(site.Literal(2).text()));
  bool quiet = ModeOf(site.expr) == CastMode::kTry;
  bool ntz = site.expr.type.Is(TypeKind::kTimestampNtz);
  auto context = site.expr.context;
  return MapRows<std::int64_t, Str, Str>(
      [zone, quiet, ntz, context](Str text, Str pattern) -> std::optional<std::int64_t> {
        auto parsed = PatternOf(pattern, true).Parse(text);
        if (!parsed) {
          if (quiet) {
            return std::nullopt;
          }
          Error error =
              Error(ErrorKind::kInvalidArgument, "CANNOT_PARSE_TIMESTAMP",
                    "Text '" + std::string(text) + "' could not be parsed by the pattern '" + std::string(pattern) +
                        "'. Use `try_to_timestamp` to tolerate invalid input string and return NULL instead.")
                  .With("func", "`try_to_timestamp`")
                  .With("message", "Text '" + std::string(text) + "' could not be parsed")
                  .Family(ErrorFamily::kDateTime);
          if (context) {
            error = std::move(error).At(*context);
          }
          ThrowRowError(std::move(error));
        }
        if (ntz) {
          return parsed->local;
        }
        return (parsed->zone ? parsed->zone : zone)->LocalToUtc(parsed->local);
      });
}

}  // namespace

const ScalarTable& DateFormatKernels() {
  static const ScalarTable table = {
      {"spark_date_format", Nulls::kPropagate, MakeDateFormat},
      {"spark_from_unixtime", Nulls::kPropagate, MakeFromUnixtime},
      {"spark_parse_timestamp", Nulls::kPropagate, MakeParse},
  };
  return table;
}

}  // namespace fleuve::engine
