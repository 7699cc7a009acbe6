#include "connectors/files/file_listing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "storage/object_store.h"
#include "types/value.h"

namespace fleuve::connectors::files {

namespace {

/// Alternatives of the outermost braces: `a{b,c{d,e}}f` gives `abf`, `ac{d,e}f`.
std::vector<std::string> ExpandBraces(std::string_view pattern) {
  std::size_t open = std::string_view::npos;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\') {
      ++i;
    } else if (pattern[i] == '{') {
      open = i;
      break;
    }
  }
  if (open == std::string_view::npos) {
    return {std::string(pattern)};
  }
  int depth = 0;
  std::vector<std::string> alternatives;
  std::size_t begin = open + 1;
  std::size_t close = std::string_view::npos;
  for (std::size_t i = open; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\') {
      ++i;
    } else if (c == '{') {
      ++depth;
    } else if (c == '}' && --depth == 0) {
      alternatives.emplace_back(pattern.substr(begin, i - begin));
      close = i;
      break;
    } else if (c == ',' && depth == 1) {
      alternatives.emplace_back(pattern.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (close == std::string_view::npos) {
    return {std::string(pattern)};
  }
  std::vector<std::string> out;
  for (const std::string& alternative : alternatives) {
    for (std::string& rest : ExpandBraces(pattern.substr(close + 1))) {
      for (std::string& inner : ExpandBraces(alternative)) {
        out.push_back(std::string(pattern.substr(0, open)) + inner + rest);
      }
    }
  }
  return out;
}

bool MatchSimple(std::string_view pattern, std::string_view text, bool across) {
  std::size_t p = 0;
  std::size_t t = 0;
  while (p < pattern.size()) {
    const char c = pattern[p];
    if (c == '*') {
      while (p < pattern.size() && pattern[p] == '*') {
        ++p;
      }
      for (std::size_t k = t;; ++k) {
        if (MatchSimple(pattern.substr(p), text.substr(k), across)) {
          return true;
        }
        if (k >= text.size() || (text[k] == '/' && !across)) {
          return false;
        }
      }
    }
    if (t >= text.size()) {
      return false;
    }
    if (c == '?') {
      if (text[t] == '/' && !across) {
        return false;
      }
      ++p;
      ++t;
      continue;
    }
    if (c == '[') {
      std::size_t q = p + 1;
      const bool negated = q < pattern.size() && (pattern[q] == '^' || pattern[q] == '!');
      q += negated ? 1 : 0;
      bool hit = false;
      bool first = true;
      while (q < pattern.size() && (pattern[q] != ']' || first)) {
        first = false;
        char low = pattern[q];
        if (low == '\\' && q + 1 < pattern.size()) {
          low = pattern[++q];
        }
        char high = low;
        if (q + 2 < pattern.size() && pattern[q + 1] == '-' && pattern[q + 2] != ']') {
          high = pattern[q + 2];
          q += 2;
        }
        hit = hit || (text[t] >= low && text[t] <= high);
        ++q;
      }
      if (q >= pattern.size() || hit == negated || text[t] == '/') {
        return false;
      }
      p = q + 1;
      ++t;
      continue;
    }
    const char plain = c == '\\' && p + 1 < pattern.size() ? pattern[++p] : c;
    if (text[t] != plain) {
      return false;
    }
    ++p;
    ++t;
  }
  return t == text.size();
}

ListedFile FromStat(std::string path, const struct stat& info) {
  ListedFile file;
  file.path = std::move(path);
  file.size_bytes = info.st_size;
  file.modified_nanos = static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1000000000 + info.st_mtim.tv_nsec;
  file.modified_ms = file.modified_nanos / 1000000;
  return file;
}

bool Passes(const ListFilter& filter, std::string_view name, const ListedFile& file) {
  if (!filter.name_glob.empty() && !GlobMatches(filter.name_glob, name)) {
    return false;
  }
  return (!filter.after_ms || file.modified_ms > *filter.after_ms) &&
         (!filter.before_ms || file.modified_ms < *filter.before_ms);
}

Error ListError(const std::string& path, int code) {
  const ErrorKind kind = code == EACCES || code == EPERM ? ErrorKind::kPermissionDenied : ErrorKind::kTransient;
  return Error(kind, "FAILED_READ_FILE.NO_HINT", "cannot list " + path + ": " + std::strerror(code));
}

Result<void> Walk(const std::string& folder, const ListFilter& filter, std::vector<ListedFile>& out) {
  DIR* dir = ::opendir(folder.c_str());
  if (dir == nullptr) {
    if (errno == ENOENT) {
      return {};
    }
    return ListError(folder, errno);
  }
  std::vector<std::string> folders;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == ".." || IsHiddenName(name)) {
      continue;
    }
    struct stat info{};
    if (::fstatat(::dirfd(dir), entry->d_name, &info, 0) != 0) {
      continue;
    }
    if (S_ISDIR(info.st_mode)) {
      folders.emplace_back(name);
      continue;
    }
    if (!S_ISREG(info.st_mode)) {
      continue;
    }
    ListedFile file = FromStat(folder + "/" + std::string(name), info);
    if (Passes(filter, name, file)) {
      out.push_back(std::move(file));
    }
  }
  ::closedir(dir);
  for (const std::string& name : folders) {
    FLEUVE_TRY(Walk(folder + "/" + name, filter, out));
  }
  return {};
}

std::string NameOf(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Milliseconds of the timestamp in an option.
Result<std::optional<std::int64_t>> TimeOption(const plan::Options& options, const char* name,
                                               const std::string& session_zone) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return std::optional<std::int64_t>();
  }
  const std::string* zone = plan::FindOption(options, "timeZone");
  const auto micros = types::ParseTimestamp(*text, zone != nullptr ? *zone : session_zone);
  if (!micros) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1294",
                 "The timestamp provided for the '" + std::string(name) +
                     "' option is invalid. The expected format is 'YYYY-MM-DDTHH:mm:ss', but the provided timestamp: " +
                     *text)
        .With("timeString", *text)
        .Family(ErrorFamily::kAnalysis);
  }
  return std::optional<std::int64_t>(*micros / 1000);
}

}  // namespace

Result<ListFilter> MakeListFilter(const plan::Options& options, const std::string& session_zone) {
  ListFilter filter;
  if (const std::string* glob = plan::FindOption(options, "pathGlobFilter")) {
    filter.name_glob = *glob;
  }
  FLEUVE_ASSIGN(filter.after_ms, TimeOption(options, "modifiedAfter", session_zone));
  FLEUVE_ASSIGN(filter.before_ms, TimeOption(options, "modifiedBefore", session_zone));
  return filter;
}

bool IsGlob(std::string_view path) { return path.find_first_of("*?[{") != std::string_view::npos; }

bool GlobMatches(std::string_view pattern, std::string_view text, bool across_folders) {
  for (const std::string& alternative : ExpandBraces(pattern)) {
    if (MatchSimple(alternative, text, across_folders)) {
      return true;
    }
  }
  return false;
}

bool IsHiddenName(std::string_view name) {
  if (name.empty() || name.front() == '.') {
    return true;
  }
  if (name.front() == '_' && name.find('=') == std::string_view::npos) {
    return true;
  }
  constexpr std::string_view kCopying = "._COPYING_";
  return name.size() >= kCopying.size() && name.substr(name.size() - kCopying.size()) == kCopying;
}

std::vector<std::string> ExpandGlob(const std::string& path) {
  if (!IsGlob(path)) {
    return {path};
  }
  std::vector<std::string> found;
  for (const std::string& alternative : ExpandBraces(path)) {
    std::vector<std::string> here = {""};
    for (const std::string& part : Split(std::string_view(alternative).substr(1), '/')) {
      if (part.empty()) {
        continue;
      }
      std::vector<std::string> next;
      for (const std::string& base : here) {
        if (!IsGlob(part)) {
          struct stat info{};
          if (::stat((base + "/" + part).c_str(), &info) == 0) {
            next.push_back(base + "/" + part);
          }
          continue;
        }
        DIR* dir = ::opendir(base.empty() ? "/" : base.c_str());
        if (dir == nullptr) {
          continue;
        }
        while (const dirent* entry = ::readdir(dir)) {
          const std::string_view name = entry->d_name;
          if (name != "." && name != ".." && GlobMatches(part, name)) {
            next.push_back(base + "/" + std::string(name));
          }
        }
        ::closedir(dir);
      }
      here = std::move(next);
    }
    found.insert(found.end(), here.begin(), here.end());
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::optional<ListedFile> StatFile(const std::string& path, bool* is_directory) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) {
    return std::nullopt;
  }
  if (is_directory != nullptr) {
    *is_directory = S_ISDIR(info.st_mode);
  }
  return FromStat(path, info);
}

Result<std::vector<ListedFile>> ListFiles(const std::string& path, const ListFilter& filter) {
  std::vector<ListedFile> files;
  bool is_directory = false;
  auto self = StatFile(path, &is_directory);
  if (!self) {
    return files;
  }
  if (!is_directory) {
    const std::string name = NameOf(path);
    if (!IsHiddenName(name) && Passes(filter, name, *self)) {
      files.push_back(std::move(*self));
    }
    return files;
  }
  FLEUVE_TRY(Walk(path, filter, files));
  std::sort(files.begin(), files.end(), [](const ListedFile& a, const ListedFile& b) { return a.path < b.path; });
  return files;
}

Result<std::string> LocalPathOf(const std::string& path) {
  FLEUVE_ASSIGN(storage::Location location, storage::Resolve(path));
  if (!location.store->is_local()) {
    return Error::Unsupported("files outside the local file system (" + path + ")");
  }
  return location.path;
}

plan::ScanFile ToScanFile(const ListedFile& file) {
  plan::ScanFile scan;
  scan.path = file.path;
  scan.uri = storage::ToFileUri(file.path);
  scan.size_bytes = file.size_bytes;
  scan.modified_ms = file.modified_ms;
  return scan;
}

}  // namespace fleuve::connectors::files
