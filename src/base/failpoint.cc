#include "base/failpoint.h"

#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace fleuve {
namespace internal {

std::atomic<bool> failpoints_armed{false};

namespace {

struct Armed {
  std::string action;
  long at = 1;
  long passed = 0;
};

std::mutex mutex;

std::map<std::string, Armed, std::less<>>& Table() {
  static std::map<std::string, Armed, std::less<>> table;
  return table;
}

}  // namespace

Result<void> HitFailpoint(std::string_view name) {
  std::string action;
  {
    const std::lock_guard lock(mutex);
    const auto found = Table().find(name);
    if (found == Table().end() || ++found->second.passed != found->second.at) {
      return {};
    }
    action = found->second.action;
  }
  if (action == "kill") {
    std::raise(SIGKILL);
  } else if (action == "stop") {
    std::raise(SIGSTOP);
  } else if (action == "abort") {
    std::abort();
  } else {
    return Error(ErrorKind::kTransient, "FLEUVE_FAILPOINT", "the failpoint " + std::string(name) + " is armed");
  }
  return {};
}

}  // namespace internal

Result<void> ArmFailpointsFromEnvironment() {
  const char* value = std::getenv("FLEUVE_FAILPOINTS");
  if (value == nullptr || *value == '\0') {
    return {};
  }
  std::string_view rest = value;
  const std::lock_guard lock(internal::mutex);
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const auto equals = item.find('=');
    const std::string_view action_at = equals == item.npos ? std::string_view() : item.substr(equals + 1);
    const std::string action(action_at.substr(0, action_at.find('@')));
    internal::Armed armed{.action = action};
    if (const auto at = action_at.find('@'); at != action_at.npos) {
      armed.at = std::atol(std::string(action_at.substr(at + 1)).c_str());
    }
    if (armed.at < 1 || (action != "kill" && action != "stop" && action != "abort" && action != "error")) {
      return Error(ErrorKind::kInvalidArgument, "FLEUVE_FAILPOINT",
                   "FLEUVE_FAILPOINTS: cannot read '" + std::string(item) +
                       "'; write name=kill|stop|abort|error with an optional @N");
    }
    internal::Table()[std::string(item.substr(0, equals))] = armed;
  }
  internal::failpoints_armed.store(true);
  return {};
}

}  // namespace fleuve
