#include "base/big_stack.h"

#include <pthread.h>

namespace fleuve {
namespace {

constexpr std::size_t kStackBytes = std::size_t{512} << 20;
thread_local bool on_big_stack = false;

void* Run(void* argument) {
  on_big_stack = true;
  (*static_cast<const std::function<void()>*>(argument))();
  return nullptr;
}

}  // namespace

void RunOnBigStack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_t thread;
  if (on_big_stack) {
    work();
    return;
  }
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  const int failed = pthread_create(&thread, &attributes, Run, const_cast<std::function<void()>*>(&work));
  pthread_attr_destroy(&attributes);
  if (failed != 0) {
    work();
    return;
  }
  pthread_join(thread, nullptr);
}

}  // namespace fleuve
