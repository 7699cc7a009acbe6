#pragma once

/// \file
/// Finding files: globs, folders, hidden names, filters on name and time. Shared by tables, streams and Auto Loader.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/scan.h"

namespace fleuve::connectors::files {

struct ListedFile {
  /// Absolute, not encoded.
  std::string path;
  std::int64_t size_bytes = 0;
  std::int64_t modified_ms = 0;
  std::int64_t modified_nanos = 0;
};

/// Which of the files found are taken.
struct ListFilter {
  /// Glob on the file's name; empty: all.
  std::string name_glob;
  /// Exclusive bounds on the modification time in milliseconds.
  std::optional<std::int64_t> after_ms;
  std::optional<std::int64_t> before_ms;
};

/// Options pathGlobFilter, modifiedAfter, modifiedBefore. Errors name the option.
Result<ListFilter> MakeListFilter(const plan::Options& options, const std::string& session_zone);

/// True where the text has characters that make it a glob: * ? [ {.
bool IsGlob(std::string_view path);
/// Hadoop's glob of one name: ? * [abc] [a-z] [^a] {ab,cd} (nested), \ before a plain character. `*` and `?` never
/// match a `/` unless `across_folders`.
bool GlobMatches(std::string_view pattern, std::string_view text, bool across_folders = false);
/// Names that Spark never reads: beginning with `.` or with `_` (but for `key=value`), half-copied ones.
bool IsHiddenName(std::string_view name);

/// The files and folders that a path with globs names, sorted; the path itself where it has none. Absolute paths.
/// Folders that cannot be read are skipped. Empty where nothing matches.
std::vector<std::string> ExpandGlob(const std::string& path);

/// What `stat` says; nullopt where there is nothing.
std::optional<ListedFile> StatFile(const std::string& path, bool* is_directory = nullptr);

/// All files below a folder (or the file itself), hidden names left out at every level, sorted by path.
/// kPermissionDenied and the like where a folder cannot be listed; a folder that vanished meanwhile is skipped.
Result<std::vector<ListedFile>> ListFiles(const std::string& path, const ListFilter& filter);

/// The absolute local path of what a user wrote (`storage::Resolve`), globs kept as they are. kUnsupported for stores
/// that are not the local disk.
Result<std::string> LocalPathOf(const std::string& path);

/// A scan's entry for a file.
plan::ScanFile ToScanFile(const ListedFile& file);

}  // namespace fleuve::connectors::files
