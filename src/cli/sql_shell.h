#pragma once

/// \file
/// SQL from a text or from a person.

#include <string>

#include "base/result.h"
#include "connect/client.h"

namespace fleuve::cli {

/// Runs the statements of `text` one after the other and prints each result; stops at the first error.
Result<void> RunSqlText(connect::Client& client, const std::string& text);

/// Reads statements from standard input until its end: with line editing, history and a prompt on a terminal, else as
/// one text. Returns the exit code.
int RunSqlShell(connect::Client& client);

}  // namespace fleuve::cli
