#include "cli/signals.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/log.h"

namespace fleuve::cli {
namespace {

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void BlockEndSignals() {
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

int WaitForEndSignal() {
  const sigset_t signals = EndSignals();
  int received = 0;
  sigwait(&signals, &received);
  return received;
}

void EndWithInput() {
  std::thread([] {
    char ignored[512];
    ssize_t got = 0;
    do {
      got = ::read(STDIN_FILENO, ignored, sizeof(ignored));
    } while (got > 0 || (got < 0 && errno == EINTR));
    ::kill(::getpid(), SIGTERM);
  }).detach();
}

void EndProcessAfter(std::int64_t after_ms) {
  std::thread([after_ms] {
    std::this_thread::sleep_for(std::chrono::milliseconds(after_ms));
    LogWarn("work that does not end by itself is left behind");
    ::_exit(0);
  }).detach();
}

void UnblockEndSignals() {
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace fleuve::cli
