#pragma once

/// \file
/// The checksum of `_last_checkpoint`: MD5 over the document's canonical form, as the protocol describes it.

#include <string>
#include <string_view>

#include "base/json.h"

namespace fleuve::delta {

/// Lower-case hexadecimal.
std::string Md5Hex(std::string_view text);
/// `"a"=1,"b"+"c"+0="x"`: paths and values, sorted; the top member `checksum` left out.
std::string CanonicalJson(const Json& json);

}  // namespace fleuve::delta
