#include "session/config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/bytes.h"
#include "types/time_zone.h"

namespace fleuve::session {

namespace {

constexpr auto kKeys = std::to_array<ConfigKey>({
#include "session/config_keys.inc"
});

constexpr auto kServed = std::to_array<std::pair<std::string_view, std::string_view>>({
#include "session/config_served.inc"
});

/// Spark core settings that only a new application can change.
constexpr std::string_view kCorePrefixes[] = {
    "spark.driver.",  "spark.executor.",   "spark.memory.",    "spark.jars",   "spark.submit.",
    "spark.network.", "spark.shuffle.",    "spark.rpc.",       "spark.cores.", "spark.dynamicAllocation.",
    "spark.kryo",     "spark.eventLog.",   "spark.ui.",        "spark.master", "spark.serializer",
    "spark.task.",    "spark.speculation", "spark.scheduler.", "spark.yarn.",  "spark.kubernetes."};

bool IsCoreKey(std::string_view key) {
  return std::any_of(std::begin(kCorePrefixes), std::end(kCorePrefixes),
                     [&](std::string_view prefix) { return key.starts_with(prefix); });
}

Error TypeMismatch(const std::string& key, const std::string& value, const std::string& type) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_CONF_VALUE.TYPE_MISMATCH",
               "The value '" + value + "' in the config \"" + key + "\" is invalid. It should be a/an '" + type +
                   "' value.")
      .With("confName", key)
      .With("confValue", value)
      .With("confType", type);
}

Error Requirement(const std::string& key, const std::string& value, const std::string& requirement) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_CONF_VALUE.REQUIREMENT",
               "The value '" + value + "' in the config \"" + key + "\" is invalid. " + requirement)
      .With("confName", key)
      .With("confValue", value)
      .With("confRequirement", requirement);
}

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  text = TrimAscii(text);
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

/// A number with a unit: `10s`, `5 min`, `64m`. \param units  unit to factor.
std::optional<std::int64_t> ParseUnits(std::string_view text,
                                       std::initializer_list<std::pair<std::string_view, std::int64_t>> units) {
  const std::string lower = AsciiLower(TrimAscii(text));
  std::size_t digits = 0;
  while (digits < lower.size() &&
         (std::isdigit(static_cast<unsigned char>(lower[digits])) != 0 || (digits == 0 && lower[digits] == '-'))) {
    ++digits;
  }
  const auto number = ParseInteger(std::string_view(lower).substr(0, digits));
  const std::string_view unit = TrimAscii(std::string_view(lower).substr(digits));
  if (!number) {
    return std::nullopt;
  }
  for (const auto& [name, factor] : units) {
    if (name == unit) {
      std::int64_t product = 0;
      return __builtin_mul_overflow(*number, factor, &product) ? std::nullopt : std::optional<std::int64_t>(product);
    }
  }
  return std::nullopt;
}

std::optional<std::int64_t> ParseMilliseconds(std::string_view text) {
  return ParseUnits(text,
                    {{"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}});
}

std::optional<std::int64_t> ParseBytes(std::string_view text) {
  return ParseUnits(text, {{"", 1},
                           {"b", 1},
                           {"k", 1 << 10},
                           {"kb", 1 << 10},
                           {"m", 1 << 20},
                           {"mb", 1 << 20},
                           {"g", 1 << 30},
                           {"gb", 1 << 30},
                           {"t", std::int64_t{1} << 40},
                           {"tb", std::int64_t{1} << 40}});
}

/// The value as it is kept, or why it cannot be.
Result<std::string> Check(const ConfigKey& key, const std::string& name, const std::string& value) {
  switch (key.type) {
    case ConfigType::kText:
      break;
    case ConfigType::kBoolean: {
      const std::string lower = AsciiLower(TrimAscii(value));
      if (lower != "true" && lower != "false") {
        return TypeMismatch(name, value, "boolean");
      }
      return lower;
    }
    case ConfigType::kInteger: {
      const auto number = ParseInteger(value);
      if (!number || *number < std::numeric_limits<std::int32_t>::min() ||
          *number > std::numeric_limits<std::int32_t>::max()) {
        return TypeMismatch(name, value, "int");
      }
      break;
    }
    case ConfigType::kLong:
      if (!ParseInteger(value)) {
        return TypeMismatch(name, value, "long");
      }
      break;
    case ConfigType::kDouble: {
      char* end = nullptr;
      const std::string text(TrimAscii(value));
      (void)std::strtod(text.c_str(), &end);
      if (text.empty() || *end != '\0') {
        return TypeMismatch(name, value, "double");
      }
      break;
    }
    case ConfigType::kMilliseconds: {
      const auto parsed = ParseMilliseconds(value);
      if (!parsed) {
        return TypeMismatch(name, value, "time in ms");
      }
      return std::to_string(*parsed) + "ms";
    }
    case ConfigType::kSeconds: {
      const auto parsed =
          ParseInteger(value) ? std::optional<std::int64_t>(*ParseInteger(value) * 1000) : ParseMilliseconds(value);
      if (!parsed) {
        return TypeMismatch(name, value, "time in s");
      }
      return std::to_string(*parsed / 1000) + "s";
    }
    case ConfigType::kBytes: {
      const auto parsed = ParseBytes(value);
      if (!parsed) {
        return TypeMismatch(name, value, "bytes in b");
      }
      return std::to_string(*parsed) + "b";
    }
    case ConfigType::kZone:
      if (!types::TimeZone::Find(value).ok()) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_CONF_VALUE.TIME_ZONE",
                     "The value '" + value + "' in the config \"" + name +
                         "\" is invalid. Cannot resolve the given timezone.")
            .With("confName", name)
            .With("confValue", value);
      }
      break;
  }
  // Values that are one of a few words, or bounded.
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"spark.sql.mapKeyDedupPolicy", "EXCEPTION,LAST_WIN"},
      {"spark.sql.sources.partitionOverwriteMode", "STATIC,DYNAMIC"},
      {"spark.sql.storeAssignmentPolicy", "ANSI,LEGACY,STRICT"},
      {"spark.sql.timestampType", "TIMESTAMP_LTZ,TIMESTAMP_NTZ"},
      {"spark.sql.legacy.timeParserPolicy", "EXCEPTION,CORRECTED,LEGACY"},
      {"spark.sql.parquet.datetimeRebaseModeInRead", "EXCEPTION,CORRECTED,LEGACY"},
      {"spark.sql.parquet.datetimeRebaseModeInWrite", "EXCEPTION,CORRECTED,LEGACY"},
      {"spark.sql.parquet.int96RebaseModeInRead", "EXCEPTION,CORRECTED,LEGACY"},
      {"spark.sql.parquet.int96RebaseModeInWrite", "EXCEPTION,CORRECTED,LEGACY"},
      {"fleuve.durability", "STRICT,PROCESS"},
  };
  for (const auto& [known, words] : kWords) {
    if (known == name) {
      const std::vector<std::string> allowed = Split(words, ',');
      if (std::find(allowed.begin(), allowed.end(), AsciiUpper(value)) == allowed.end()) {
        return Error(ErrorKind::kInvalidArgument, "INVALID_CONF_VALUE.OUT_OF_RANGE_OF_OPTIONS",
                     "The value '" + value + "' in the config \"" + name + "\" is invalid. It should be one of '" +
                         Join(allowed, ", ") + "'.")
            .With("confName", name)
            .With("confValue", value)
            .With("confOptions", Join(allowed, ", "));
      }
      if (name.ends_with("RebaseModeInWrite") && AsciiUpper(value) != "CORRECTED") {
        return Error::Unsupported("writing dates and timestamps in the calendar that " + name + " = " + value +
                                  " asks for");
      }
      return known == "fleuve.durability" ? AsciiLower(value) : AsciiUpper(value);
    }
  }
  if (name == "spark.sql.streaming.multipleWatermarkPolicy") {
    const std::string policy = AsciiLower(TrimAscii(value));
    if (policy != "min" && policy != "max") {
      return Requirement(name, value, "Invalid value for '" + name + "'. Valid values are 'min' and 'max'");
    }
    return policy;
  }
  if (name == "spark.sql.shuffle.partitions" && *ParseInteger(value) <= 0) {
    return Requirement(name, value, "The value of spark.sql.shuffle.partitions must be positive");
  }
  return key.type == ConfigType::kText ? value : std::string(TrimAscii(value));
}

}  // namespace

const ConfigKey* FindConfigKey(std::string_view name) {
  const auto it = std::find_if(kKeys.begin(), kKeys.end(), [&](const ConfigKey& key) { return key.name == name; });
  return it == kKeys.end() ? nullptr : &*it;
}

Result<std::string> CanonicalValue(const std::string& key, const std::string& value) {
  const ConfigKey* known = FindConfigKey(key);
  if (known == nullptr) {
    // These ask for the ways of older versions: what is not known here is not done.
    if (key.starts_with("spark.sql.legacy.") && AsciiLower(TrimAscii(value)) != "false") {
      return Error::Unsupported("the setting " + key + " = " + value);
    }
    return value;
  }
  FLEUVE_ASSIGN(std::string kept, Check(*known, key, value));
  for (const auto& [name, served] : kServed) {
    if (name == key && !EqualsIgnoreAsciiCase(kept, served)) {
      return Error::Unsupported("the setting " + key + " = " + value + " (" + std::string(served) + " is served)");
    }
  }
  return kept;
}

Config::Config(std::map<std::string, std::string> initial) : values_(std::move(initial)) {}

Config::Config(const Config& other) {
  std::lock_guard lock(other.mutex_);
  values_ = other.values_;
}

Result<void> Config::Set(const std::string& key, const std::string& value) {
  const ConfigKey* known = FindConfigKey(key);
  if (known != nullptr && known->is_static) {
    return Error(ErrorKind::kInvalidArgument, "CANNOT_MODIFY_STATIC_CONFIG",
                 "Cannot modify the value of the static Spark config: \"" + key + "\".")
        .With("key", "\"" + key + "\"");
  }
  if (known == nullptr && IsCoreKey(key)) {
    return Error(ErrorKind::kInvalidArgument, "CANNOT_MODIFY_CONFIG",
                 "Cannot modify the value of the Spark config: \"" + key + "\".")
        .With("key", "\"" + key + "\"")
        .With("docroot", "https://spark.apache.org/docs/latest");
  }
  FLEUVE_TRY(CanonicalValue(key, value));
  std::lock_guard lock(mutex_);
  values_[key] = value;
  return {};
}

namespace {

std::optional<std::string> DefaultOf(const std::string& key) {
  const ConfigKey* known = FindConfigKey(key);
  return known != nullptr && known->default_value ? std::optional<std::string>(*known->default_value) : std::nullopt;
}

}  // namespace

std::optional<std::string> Config::SetText(const std::string& key) const {
  std::lock_guard lock(mutex_);
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional<std::string>(found->second);
}

std::optional<std::string> Config::Text(const std::string& key) const {
  auto set = SetText(key);
  return set ? std::move(set) : DefaultOf(key);
}

std::optional<std::string> Config::Find(const std::string& key) const {
  const auto set = SetText(key);
  if (!set) {
    return DefaultOf(key);
  }
  auto value = CanonicalValue(key, *set);
  return value.ok() ? *std::move(value) : *set;
}

Result<std::string> Config::Get(const std::string& key) const {
  if (auto value = Text(key); value) {
    return *value;
  }
  return Error(ErrorKind::kNotFound, "SQL_CONF_NOT_FOUND",
               "The SQL config \"" + key + "\" cannot be found. Please verify that the config exists.")
      .With("sqlConf", "\"" + key + "\"");
}

std::string Config::GetOr(const std::string& key, const std::string& fallback) const {
  return Find(key).value_or(fallback);
}

bool Config::GetBool(const std::string& key) const { return Find(key).value_or("false") == "true"; }

std::int64_t Config::GetInt(const std::string& key, std::int64_t fallback) const {
  const auto value = Find(key);
  if (!value) {
    return fallback;
  }
  const ConfigKey* known = FindConfigKey(key);
  std::optional<std::int64_t> number;
  if (known != nullptr && known->type == ConfigType::kMilliseconds) {
    number = ParseMilliseconds(*value);
  } else if (known != nullptr && known->type == ConfigType::kBytes) {
    number = ParseBytes(*value);
  } else {
    number = ParseInteger(*value);
  }
  return number.value_or(fallback);
}

Result<void> Config::Unset(const std::string& key) {
  const ConfigKey* known = FindConfigKey(key);
  if (known != nullptr && known->is_static) {
    return Error(ErrorKind::kInvalidArgument, "CANNOT_MODIFY_STATIC_CONFIG",
                 "Cannot modify the value of the static Spark config: \"" + key + "\".")
        .With("key", "\"" + key + "\"");
  }
  std::lock_guard lock(mutex_);
  values_.erase(key);
  return {};
}

std::vector<std::pair<std::string, std::string>> Config::All() const {
  std::lock_guard lock(mutex_);
  return {values_.begin(), values_.end()};
}

void Config::Restore(const std::string& key, const std::string& value) {
  std::lock_guard lock(mutex_);
  values_[key] = value;
}

bool Config::IsModifiable(const std::string& key) const {
  const ConfigKey* known = FindConfigKey(key);
  return known != nullptr && !known->is_static;
}

}  // namespace fleuve::session
