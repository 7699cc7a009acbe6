#include "cli/settings.h"

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include "base/bytes.h"
#include "storage/object_store.h"

namespace fleuve::cli {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

Error BadSetting(const std::string& place, const std::string& why) {
  return Error(ErrorKind::kInvalidArgument, "FLEUVE_SETTINGS", place + ": " + why);
}

Result<void> SetPort(Settings& settings, const std::string& text, const std::string& place) {
  int port = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), port).ptr;
  if (end != text.data() + text.size() || port < 0 || port > 65535) {
    return BadSetting(place, "'" + text + "' is no port; give a number from 0 to 65535");
  }
  settings.port = port;
  return {};
}

/// One `key value` of the file or one `key=value` of a flag.
Result<void> SetKey(Settings& settings, const std::string& key, const std::string& value, const std::string& place) {
  if (key == "fleuve.server.host") {
    settings.host = value;
  } else if (key == "fleuve.server.port") {
    return SetPort(settings, value, place);
  } else if (key == "fleuve.server.token") {
    settings.token = value;
  } else if (key == "fleuve.log.level") {
    settings.log_level = value;
  } else if (key == "fleuve.warehouse" || key == "spark.sql.warehouse.dir") {
    settings.warehouse = value;
  } else if (key.find('.') == key.npos) {
    return BadSetting(place, "'" + key + "' is no setting; keys look like spark.sql.session.timeZone");
  } else {
    settings.conf[key] = value;
  }
  return {};
}

Result<void> SetPair(Settings& settings, const std::string& pair, const std::string& place) {
  const auto equals = pair.find('=');
  if (equals == pair.npos) {
    return BadSetting(place, "'" + pair + "' has no '='; write key=value");
  }
  return SetKey(settings, std::string(TrimAscii(pair.substr(0, equals))), pair.substr(equals + 1), place);
}

Result<void> ReadFile(Settings& settings, const std::string& path) {
  FLEUVE_ASSIGN(const std::string text, storage::LocalStore()->Get(path));
  int number = 0;
  for (const auto& raw : Split(text, '\n')) {
    ++number;
    const std::string_view line = TrimAscii(raw);
    if (line.empty() || line.front() == '#') {
      continue;
    }
    const std::string place = path + " line " + std::to_string(number);
    const auto end = line.find_first_of(" \t=");
    if (end == line.npos) {
      return BadSetting(place, "'" + std::string(line) + "' has no value; write key value");
    }
    std::string_view value = TrimAscii(line.substr(end));
    if (!value.empty() && value.front() == '=') {
      value = TrimAscii(value.substr(1));
    }
    FLEUVE_TRY(SetKey(settings, std::string(line.substr(0, end)), std::string(value), place));
  }
  return {};
}

}  // namespace

std::string XdgFolder(const char* variable, const char* below_home) {
  std::string folder = Environment(variable);
  if (folder.empty() || folder[0] != '/') {
    const std::string home = Environment("HOME");
    folder = (home.empty() ? std::string("/tmp") : home) + "/" + below_home;
  }
  return folder + "/fleuve";
}

Result<Settings> LoadSettings(const Flags& flags) {
  Settings settings;
  const std::string named = Environment("FLEUVE_CONF_FILE");
  const std::string file = named.empty() ? XdgFolder("XDG_CONFIG_HOME", ".config") + "/fleuve.conf" : named;
  if (!named.empty() || std::filesystem::exists(file)) {
    FLEUVE_TRY(ReadFile(settings, file));
  }
  if (const auto value = Environment("FLEUVE_HOST"); !value.empty()) {
    settings.host = value;
  }
  if (const auto value = Environment("FLEUVE_PORT"); !value.empty()) {
    FLEUVE_TRY(SetPort(settings, value, "FLEUVE_PORT"));
  }
  if (const auto value = Environment("FLEUVE_WAREHOUSE"); !value.empty()) {
    settings.warehouse = value;
  }
  if (const auto value = Environment("FLEUVE_TOKEN"); !value.empty()) {
    settings.token = value;
  }
  if (const auto value = Environment("FLEUVE_LOG_LEVEL"); !value.empty()) {
    settings.log_level = value;
  }
  if (const auto value = Environment("FLEUVE_CONF"); !value.empty()) {
    for (const auto& pair : Split(value, ';')) {
      if (!TrimAscii(pair).empty()) {
        FLEUVE_TRY(SetPair(settings, pair, "FLEUVE_CONF"));
      }
    }
  }
  if (!flags.host.empty()) {
    settings.host = flags.host;
  }
  if (!flags.port.empty()) {
    FLEUVE_TRY(SetPort(settings, flags.port, "--port"));
  }
  if (!flags.warehouse.empty()) {
    settings.warehouse = flags.warehouse;
  }
  if (!flags.log_level.empty()) {
    settings.log_level = flags.log_level;
  }
  for (const auto& pair : flags.conf) {
    FLEUVE_TRY(SetPair(settings, pair, "--conf"));
  }
  if (settings.warehouse.empty()) {
    settings.warehouse = XdgFolder("XDG_DATA_HOME", ".local/share") + "/warehouse";
  }
  FLEUVE_ASSIGN(const auto location, storage::Resolve(settings.warehouse));
  settings.warehouse = location.path;
  for (const char* level : {"debug", "info", "warn", "error"}) {
    if (settings.log_level == level) {
      return settings;
    }
  }
  return BadSetting("log level", "'" + settings.log_level + "' is none of debug, info, warn, error");
}

}  // namespace fleuve::cli
