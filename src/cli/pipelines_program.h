#pragma once

/// \file
/// `fleuve pipelines`: PySpark's pipelines command in the user's own Python, with our additions.

#include <string>
#include <vector>

#include "base/result.h"

namespace fleuve::cli {

/// \param words  the command and its options. \param url  the server; empty: the command needs none.
/// Gives the program's exit code. kNotFound where the Python cannot be started.
Result<int> RunPipelinesProgram(const std::vector<std::string>& words, const std::string& url);

/// Reads YAML from the standard input and prints it as JSON; the exit code, 1 with a sentence on standard error where
/// it is no YAML.
int PrintSpecJson();

/// One YAML document as JSON: plain scalars have the types that YAML 1.1 gives them. kInvalidArgument with the place of
/// the fault.
Result<std::string> YamlToJson(const std::string& yaml);

}  // namespace fleuve::cli
