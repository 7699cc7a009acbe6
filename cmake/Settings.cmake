# Language, warnings, sanitizers, tools: what every target of ours is compiled with.
set(CMAKE_CXX_STANDARD 20) # Arrow's headers use std::span
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

set(FLEUVE_SANITIZE "" CACHE STRING "sanitizers, e.g. address;undefined or thread")
option(FLEUVE_FUZZ "build the fuzzers (clang)" OFF)

# Checks stay on in every build: NDEBUG is never defined.
set(CMAKE_CXX_FLAGS_RELEASE "-O2")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()
add_link_options(-Wl,--as-needed)

if(FLEUVE_SANITIZE)
  list(JOIN FLEUVE_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${sanitizers})
endif()

add_library(fleuve_warnings INTERFACE)
target_compile_options(fleuve_warnings INTERFACE -Wall -Wextra -Werror
  -Wno-deprecated-declarations # fields that older clients still send are marked deprecated
 
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
  -Wno-dangling-pointer -Wno-free-nonheap-object>)
