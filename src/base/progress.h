#pragma once

/// \file
/// How far a piece of long work is, told to whoever runs the process: a bar on a terminal, or nobody.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fleuve {

/// One piece of work, from its making to its end. Where nobody listens it costs a test of a pointer.
/// Threads: `Advance` from any thread.
class Progress {
 public:
  /// \param done  of `total`, in whatever the work counts. \param ended  the work is over, also when it failed.
  using Sink = std::function<void(std::string_view what, std::int64_t done, std::int64_t total, bool ended)>;
  /// Sends what all pieces of work of the process say to `sink`, which is called from their threads. Once, before work
  /// begins.
  static void SendTo(Sink sink);

  /// \param what  `checking files`. \param total  0 where it is not known.
  Progress(std::string_view what, std::int64_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void Advance(std::int64_t by = 1);

 private:
  std::string what_;
  std::int64_t total_;
  std::atomic<std::int64_t> done_{0};
};

}  // namespace fleuve
