#pragma once

/// \file
/// Settings of one session: values by key over the registry of known keys (config_keys.inc).

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace fleuve::session {

/// What kind of text a key takes; anything else is INVALID_CONF_VALUE.TYPE_MISMATCH.
enum class ConfigType { kText, kBoolean, kInteger, kLong, kDouble, kMilliseconds, kSeconds, kBytes, kZone };

/// A key that Fleuve knows.
struct ConfigKey {
  std::string_view name;
  ConfigType type = ConfigType::kText;
  /// Canonical text, or nullopt where there is no default.
  std::optional<std::string_view> default_value;
  /// True: fixed when the server starts; `set` is CANNOT_MODIFY_STATIC_CONFIG.
  bool is_static = false;
};

/// The known key `name`, or null.
const ConfigKey* FindConfigKey(std::string_view name);

/// What `value` means for `key`: of known keys the canonical form. INVALID_CONF_VALUE.* where the key does not take it.
Result<std::string> CanonicalValue(const std::string& key, const std::string& value);

/// The user reads a setting as it was written (`Text`), the server in its canonical form (`Find` and what follows it).
/// Threads: every method from any thread.
class Config {
 public:
  /// \param initial  what the server gives to every session, taken by `CanonicalValue`.
  explicit Config(std::map<std::string, std::string> initial = {});
  Config(const Config& other);
  Config& operator=(const Config&) = delete;

  /// CANNOT_MODIFY_STATIC_CONFIG, CANNOT_MODIFY_CONFIG, INVALID_CONF_VALUE.* where Spark refuses.
  Result<void> Set(const std::string& key, const std::string& value);
  /// What was set, as it was written; known defaults left out.
  std::optional<std::string> SetText(const std::string& key) const;
  /// What was set, as it was written, or the known default; nullopt where there is neither.
  std::optional<std::string> Text(const std::string& key) const;
  /// As `Text`; SQL_CONF_NOT_FOUND (kNotFound) where there is neither.
  Result<std::string> Get(const std::string& key) const;
  /// The value, or the known default; nullopt where there is neither.
  std::optional<std::string> Find(const std::string& key) const;
  /// The value or `fallback`, known defaults left out.
  std::string GetOr(const std::string& key, const std::string& fallback) const;
  bool GetBool(const std::string& key) const;
  std::int64_t GetInt(const std::string& key, std::int64_t fallback = 0) const;
  /// Same refusals as `Set`.
  Result<void> Unset(const std::string& key);
  /// What was set, as it was written, without defaults, sorted by key.
  std::vector<std::pair<std::string, std::string>> All() const;
  bool IsModifiable(const std::string& key) const;
  /// Takes over a value as another session had it, unchecked.
  void Restore(const std::string& key, const std::string& value);

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
};

}  // namespace fleuve::session
