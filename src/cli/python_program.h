#pragma once

/// \file
/// Runs a Python program in the user's own Python with `spark` already there.

#include <string>
#include <vector>

#include "base/result.h"

namespace fleuve::cli {

/// Runs `file` in `python::UserPython()` with `arguments`; `spark` is a session of the server at `url`. Returns the
/// program's exit code (128 + n where signal n ended it; 1 with one sentence on standard error where pyspark is
/// missing). SIGINT and SIGTERM that this process gets are passed on. kNotFound where the Python cannot be started.
Result<int> RunPythonProgram(const std::string& file, const std::vector<std::string>& arguments,
                             const std::string& url);

/// Runs a Python with `words` behind its name as `RunPythonProgram` runs a file; SPARK_REMOTE is `url` where that is
/// not empty.
Result<int> RunPython(const std::vector<std::string>& words, const std::string& url);

}  // namespace fleuve::cli
