#pragma once

namespace fleuve::cli {

inline constexpr const char* kVersion = FLEUVE_VERSION;
/// The Spark version that clients are told.
inline constexpr const char* kSparkVersion = "4.1.1";

}  // namespace fleuve::cli
