#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "engine/duckdb_symbols_internal.h"

namespace fleuve::engine {

void* LibraryFunction(const char* mangled) {
  void* found = dlsym(RTLD_NEXT, mangled);
  if (found == nullptr) {
    std::fprintf(stderr, "libduckdb lacks %s\n", mangled);
    std::abort();
  }
  return found;
}

bool ReachesUs(const char* mangled) { return dlsym(RTLD_DEFAULT, mangled) != LibraryFunction(mangled); }

}  // namespace fleuve::engine
