# Third-party libraries, as tools/setup lays them out. Which room may link which stands in the rooms' CMakeLists.txt.
execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/setup --print-root OUTPUT_VARIABLE FLEUVE_DEPS
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(NOT EXISTS ${FLEUVE_DEPS}/proto/.pin)
  message(FATAL_ERROR "dependencies are missing in ${FLEUVE_DEPS}: run `make setup`")
endif()

set(CMAKE_BUILD_RPATH ${FLEUVE_DEPS}/duckdb/lib ${FLEUVE_DEPS}/arrow/lib)
set(CMAKE_INSTALL_RPATH "$ORIGIN;$ORIGIN/../lib")

add_library(duckdb SHARED IMPORTED)
set_target_properties(duckdb PROPERTIES IMPORTED_LOCATION ${FLEUVE_DEPS}/duckdb/lib/libduckdb.so)
set(duckdb_include ${FLEUVE_DEPS}/duckdb/include)
target_include_directories(duckdb SYSTEM INTERFACE ${duckdb_include}/src/include)

# Parquet and JSON internals of DuckDB: linked only where they are used.
add_library(duckdb_internals INTERFACE)
target_link_libraries(duckdb_internals INTERFACE duckdb)
target_include_directories(duckdb_internals SYSTEM INTERFACE
  ${duckdb_include}/extension/parquet/include ${duckdb_include}/extension/json/include
  ${duckdb_include}/third_party/fmt/include ${duckdb_include}/third_party/re2
  ${duckdb_include}/third_party/utf8proc/include ${duckdb_include}/third_party/fast_float
  ${duckdb_include}/third_party/parquet ${duckdb_include}/third_party/thrift
  ${duckdb_include}/third_party/fastpforlib ${duckdb_include}/third_party/zstd/include
  ${duckdb_include}/third_party/brotli/include ${duckdb_include}/third_party/mbedtls/include
  ${duckdb_include}/third_party/lz4 ${duckdb_include}/third_party/snappy ${duckdb_include}/third_party/miniz
  ${duckdb_include}/third_party/yyjson/include)

add_library(arrow SHARED IMPORTED)
set_target_properties(arrow PROPERTIES IMPORTED_LOCATION ${FLEUVE_DEPS}/arrow/lib/libarrow.so.2600)
target_include_directories(arrow SYSTEM INTERFACE ${FLEUVE_DEPS}/arrow/include)

unset(re2_FOUND CACHE)
find_package(Threads REQUIRED)
find_package(Protobuf 3.21 REQUIRED)
find_package(gRPC CONFIG REQUIRED)
find_package(simdjson CONFIG REQUIRED)
find_package(fmt CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(GTest REQUIRED)
find_package(benchmark CONFIG REQUIRED)
find_package(ICU 72 REQUIRED COMPONENTS uc i18n data)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(BZip2 REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2_PACKAGE REQUIRED IMPORTED_TARGET re2) # not named re2: gRPC's config looks for that
pkg_check_modules(edit REQUIRED IMPORTED_TARGET libedit)
pkg_check_modules(yaml REQUIRED IMPORTED_TARGET yaml-cpp)
pkg_check_modules(httplib REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(zstd REQUIRED IMPORTED_TARGET libzstd)
find_library(ROARING roaring REQUIRED) # the package's CMake config is broken
