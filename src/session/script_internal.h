#pragma once

/// \file
/// Runs BEGIN ... END.

#include "base/result.h"
#include "session/executor_internal.h"

namespace fleuve::pb {
class Script;
}

namespace fleuve::session {

/// Runs a script; gives the rows of the last query that ran, or nothing. Its variables live as session variables until
/// their block ends and hide those of the same name meanwhile.
Result<RowsResult> RunScript(const pb::Script& script, Executor& executor, SessionState& state,
                             SessionResolver& resolver);

}  // namespace fleuve::session
