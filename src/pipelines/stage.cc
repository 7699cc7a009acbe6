#include "pipelines/stage.h"

#include "base/ids.h"

namespace fleuve::pipelines {

Stage::~Stage() {
  for (const auto& [key, session] : sessions_) {
    session->Close();
  }
}

Result<session::Workbench> Stage::Place(const std::map<std::string, std::string>& conf) { return Place(conf, ""); }

Result<session::Workbench> Stage::Place(const std::map<std::string, std::string>& conf, const std::string& database) {
  std::lock_guard lock(mutex_);
  session::SessionPtr& session = sessions_[{conf, database}];
  if (session == nullptr) {
    session::SessionKey key = origin_.key();
    key.session_id += "/flow-" + NewUuid();
    FLEUVE_ASSIGN(session::SessionPtr fresh, origin_.Clone(std::move(key)));
    for (const auto& [name, value] : conf) {
      FLEUVE_TRY(fresh->config().Set(name, value));
    }
    if (!database.empty()) {
      FLEUVE_TRY(session::Workbench(fresh, token_).SetCurrentDatabase(database));
    }
    session = std::move(fresh);
  }
  return session::Workbench(session, token_);
}

}  // namespace fleuve::pipelines
