#pragma once

/// \file
/// Parts of the log format that several files of the room need.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/result.h"
#include "delta/actions.h"

namespace fleuve::delta {

/// `00000000000000000012`.
std::string VersionName(std::int64_t version);

/// Typed forms of parsed members.
Result<Metadata> MetadataFromJson(const Json& json);
Protocol ProtocolFromJson(const Json& json);
CommitInfo CommitInfoFromJson(const Json& json);

}  // namespace fleuve::delta
