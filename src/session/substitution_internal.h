#pragma once

/// \file
/// `${name}` in SQL text (`spark.sql.variable.substitute`).

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fleuve::session {

/// `text` with its references replaced, those inside of values too. `${name}`, `${spark:name}`, `${sparkconf:name}`,
/// `${hivevar:name}` and `${hiveconf:name}` are settings, empty where there is none; `${env:NAME}` is the server's
/// environment. What names nothing stays as it is, as does a reference to a value that refers to itself.
/// \param setting  a setting by its key
std::string SubstituteVariables(std::string_view text,
                                const std::function<std::optional<std::string>(const std::string&)>& setting);

}  // namespace fleuve::session
