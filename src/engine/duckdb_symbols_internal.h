#pragma once

/// \file
/// Functions of DuckDB that this program defines itself. The library calls its own functions through the dynamic
/// linker, which finds the program's definition first; so a function that DuckDB lacks a way to extend is extended by
/// defining it here and calling the library's for everything else. See docs/adr/0007-functions-put-before-duckdb.md.

namespace fleuve::engine {

/// The library's own definition. Ends the process where there is none: the pinned version has it.
/// \param mangled  the linker's name
void* LibraryFunction(const char* mangled);

/// True where the library's calls of a function reach a definition of the program's own.
bool ReachesUs(const char* mangled);

/// Raises an internal error where one of our definitions is not the one that DuckDB calls.
void CheckParquetCodecs();
void CheckParquetVariants();

}  // namespace fleuve::engine
