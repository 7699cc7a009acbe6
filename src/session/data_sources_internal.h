#pragma once

/// \file
/// Data sources of this session's user. Private to this room.

#include <optional>
#include <string>

#include "connectors/user/user_source.h"
#include "session/session_state_internal.h"

namespace fleuve::session {

/// The registered source of this name, else one that an installed module offers (looked for once in a session, and not
/// for names that are built in); nullopt where there is none.
std::optional<connectors::user::SourceClass> FindUserSource(SessionState& state, const std::string& name);

}  // namespace fleuve::session
