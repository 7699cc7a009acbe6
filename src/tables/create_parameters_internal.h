#pragma once

/// \file
/// What the history says of a table's creation.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "delta/actions.h"
#include "tables/context.h"

namespace fleuve::tables {

/// The parameters that the history has of CREATE TABLE and its kin.
Json CreateParameters(const TableRef& table, const delta::Metadata& metadata,
                      const std::vector<std::string>& cluster_by, const std::optional<std::string>& comment);

}  // namespace fleuve::tables
