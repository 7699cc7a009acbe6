#pragma once

/// \file
/// Settings of the process: flags win over FLEUVE_... variables, those over the file fleuve.conf.

#include <map>
#include <string>
#include <vector>

#include "base/result.h"

namespace fleuve::cli {

struct Settings {
  std::string host = "127.0.0.1";
  int port = 15002;
  /// Absolute path.
  std::string warehouse;
  std::string token;
  std::string log_level = "warn";
  /// What every session starts with.
  std::map<std::string, std::string> conf;
};

/// What the command line gave; empty where it gave nothing.
struct Flags {
  std::string host;
  std::string port;
  std::string warehouse;
  std::string log_level;
  /// `key=value` each.
  std::vector<std::string> conf;
};

/// Reads `<XDG config folder>/fleuve/fleuve.conf` (or the file named by FLEUVE_CONF_FILE), the variables FLEUVE_HOST,
/// FLEUVE_PORT, FLEUVE_WAREHOUSE, FLEUVE_TOKEN, FLEUVE_LOG_LEVEL, FLEUVE_CONF (`key=value` separated by `;`), then the
/// flags. kInvalidArgument names the place of what cannot be read.
Result<Settings> LoadSettings(const Flags& flags);

/// `$XDG_DATA_HOME/fleuve` and the like, with the defaults of the XDG base directory specification.
std::string XdgFolder(const char* variable, const char* below_home);

}  // namespace fleuve::cli
