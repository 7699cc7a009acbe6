#pragma once

/// \file
/// Text encodings of bytes: hexadecimal, base64, percent; UTF-8 checks; text splitting.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fleuve {

std::string HexEncode(std::string_view bytes);
std::string Base64Encode(std::string_view bytes);
/// kInvalidArgument where `text` is not base64 (standard alphabet, padding optional).
Result<std::string> Base64Decode(std::string_view text);
/// Percent-encodes everything but the unreserved characters of RFC 3986 and those in `keep`.
std::string PercentEncode(std::string_view text, std::string_view keep = "");
/// Decodes %XX; a stray % stays as it is.
std::string PercentDecode(std::string_view text);
bool IsValidUtf8(std::string_view text);
/// ASCII only; other bytes stay.
std::string AsciiLower(std::string_view text);
std::string AsciiUpper(std::string_view text);
bool EqualsIgnoreAsciiCase(std::string_view a, std::string_view b);
std::string_view TrimAscii(std::string_view text);
std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);

}  // namespace fleuve
