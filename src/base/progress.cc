#include "base/progress.h"

namespace fleuve {
namespace {

Progress::Sink& TheSink() {
  static Progress::Sink sink;
  return sink;
}

}  // namespace

void Progress::SendTo(Sink sink) { TheSink() = std::move(sink); }

Progress::Progress(std::string_view what, std::int64_t total) : what_(what), total_(total) { Advance(0); }

Progress::~Progress() {
  if (const Sink& sink = TheSink()) {
    sink(what_, done_, total_, true);
  }
}

void Progress::Advance(std::int64_t by) {
  const std::int64_t done = done_ += by;
  if (const Sink& sink = TheSink()) {
    sink(what_, done, total_, false);
  }
}

}  // namespace fleuve
