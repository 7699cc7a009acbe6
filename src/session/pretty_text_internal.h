#pragma once

/// \file
/// Values and tables as show() prints them. Private to this room.

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "types/data_type.h"
#include "types/value.h"

namespace fleuve::session {

/// `NULL`, `{1, a}`, `[1, 2]`, `{k -> v}`, `[01 FF]`: Spark's pretty string. \param zone  of timestamps.
Result<std::string> PrettyValue(const types::Value& value, const types::DataType& type, const std::string& zone);
/// Columns that a text takes on a terminal: wide East Asian characters count two.
std::int64_t DisplayWidth(std::string_view text);

/// The text of show(). \param cells  at most `num_rows` + 1 rows of the cells' whole texts; \param truncate  0: whole.
std::string ShowString(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& cells,
                       std::int64_t num_rows, std::int64_t truncate, bool vertical);
/// The HTML table of notebooks.
std::string HtmlString(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& cells,
                       std::int64_t num_rows, std::int64_t truncate);

}  // namespace fleuve::session
