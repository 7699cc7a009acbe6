#pragma once

/// \file
/// What reading and writing deletion vectors share.

#include <cstdint>
#include <string_view>

namespace fleuve::delta {

inline constexpr std::uint32_t kVectorMagic = 1681511377;

/// CRC-32 of a vector's bytes, as its file keeps it.
std::uint32_t VectorChecksum(std::string_view bytes);

}  // namespace fleuve::delta
