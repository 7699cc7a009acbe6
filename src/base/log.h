#pragma once

/// \file
/// The process log on standard error: one line an event. Threads: any.

#include <string_view>

namespace fleuve {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

/// Events below `level` are dropped (default kWarn).
void SetLogLevel(LogLevel level);
void Log(LogLevel level, std::string_view message);
inline void LogInfo(std::string_view message) { Log(LogLevel::kInfo, message); }
inline void LogWarn(std::string_view message) { Log(LogLevel::kWarn, message); }
inline void LogError(std::string_view message) { Log(LogLevel::kError, message); }

}  // namespace fleuve
