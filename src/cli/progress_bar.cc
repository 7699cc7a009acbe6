#include "cli/progress_bar.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>

#include "base/clock.h"
#include "base/progress.h"

namespace fleuve::cli {
namespace {

constexpr std::int64_t kFirstNanos = 300'000'000;
constexpr std::int64_t kEveryNanos = 100'000'000;

int TerminalWidth() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/// The pieces of work follow each other or are nested; the one that spoke last is shown.
class Bar {
 public:
  void Show(std::string_view what, std::int64_t done, std::int64_t total, bool ended) {
    const std::lock_guard lock(mutex_);
    const std::int64_t now = Clock::System()->MonotonicNanos();
    if (ended) {
      Clear();
      began_ = 0;
      return;
    }
    if (began_ == 0) {
      began_ = now;
    }
    if (now - began_ < kFirstNanos || now - drawn_ < kEveryNanos) {
      return;
    }
    drawn_ = now;
    const std::string line = ProgressLine(what, done, total, TerminalWidth() - 1);
    std::fprintf(stderr, "\r%s\033[K", line.c_str());
    std::fflush(stderr);
    is_on_screen_ = true;
  }

 private:
  void Clear() {
    if (is_on_screen_) {
      std::fputs("\r\033[K", stderr);
      std::fflush(stderr);
      is_on_screen_ = false;
    }
  }

  std::mutex mutex_;
  std::int64_t began_ = 0;
  std::int64_t drawn_ = 0;
  bool is_on_screen_ = false;
};

}  // namespace

std::string ProgressLine(std::string_view what, std::int64_t done, std::int64_t total, int width) {
  std::string line(what);
  if (total > 0) {
    const std::int64_t within = std::clamp<std::int64_t>(done, 0, total);
    const std::string percent = std::to_string(within * 100 / total);
    const std::string tail = " " + std::string(3 - percent.size(), ' ') + percent + " % " + std::to_string(done) +
                             " of " + std::to_string(total);
    const int room = std::min(40, width - static_cast<int>(line.size() + tail.size()) - 3);
    if (room >= 5) {
      const auto filled = static_cast<std::size_t>(within * room / total);
      line += " [" + std::string(filled, '#') + std::string(static_cast<std::size_t>(room) - filled, '-') + "]";
    }
    line += tail;
  } else {
    line += " " + std::to_string(done);
  }
  return line.substr(0, static_cast<std::size_t>(std::max(0, width)));
}

void ShowProgress() {
  if (::isatty(STDERR_FILENO) == 0) {
    return;
  }
  Progress::SendTo([bar = std::make_shared<Bar>()](std::string_view what, std::int64_t done, std::int64_t total,
                                                   bool ended) { bar->Show(what, done, total, ended); });
}

}  // namespace fleuve::cli
