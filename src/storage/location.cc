#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "storage/memory_store.h"
#include "storage/object_store.h"

namespace fleuve::storage {
namespace {

std::string Normalise(std::string_view path) {
  std::vector<std::string_view> parts;
  std::size_t at = 0;
  while (at <= path.size()) {
    const auto slash = std::min(path.find('/', at), path.size());
    const std::string_view part = path.substr(at, slash - at);
    if (part == "..") {
      if (!parts.empty()) {
        parts.pop_back();
      }
    } else if (!part.empty() && part != ".") {
      parts.push_back(part);
    }
    at = slash + 1;
  }
  std::string out;
  for (const auto part : parts) {
    out += '/';
    out += part;
  }
  return out.empty() ? "/" : out;
}

}  // namespace

Result<Location> Resolve(std::string_view uri) {
  if (uri.empty()) {
    return Error(ErrorKind::kInvalidArgument, "PATH_NOT_FOUND", "The path is empty.");
  }
  const auto colon = uri.find(':');
  const auto slash = uri.find('/');
  if (colon == uri.npos || (slash != uri.npos && slash < colon) || colon < 2) {
    std::string path(uri);
    if (path[0] != '/') {
      path = std::filesystem::current_path().string() + "/" + path;
    }
    return Location{LocalStore(), Normalise(path)};
  }
  const std::string scheme = AsciiLower(uri.substr(0, colon));
  std::string_view rest = uri.substr(colon + 1);
  if (scheme == "file" || scheme == "memory") {
    if (rest.starts_with("//")) {
      rest.remove_prefix(2);
      rest.remove_prefix(std::min(rest.size(), rest.find('/')));  // an authority such as localhost
    }
    std::string path = PercentDecode(rest);
    if (path.empty() || path[0] != '/') {
      path.insert(0, scheme == "file" ? std::filesystem::current_path().string() + "/" : "/");
    }
    if (scheme == "memory") {
      static const std::shared_ptr<ObjectStore> memory = MemoryStore::Make();
      return Location{memory, Normalise(path)};
    }
    return Location{LocalStore(), Normalise(path)};
  }
  for (const std::string_view cloud : {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "adl", "hdfs",
                                       "dbfs", "http", "https", "r2", "oss"}) {
    if (scheme == cloud) {
      return Error::Unsupported("paths of the scheme '" + scheme + ":' (" + std::string(uri) + ")");
    }
  }
  return Error(ErrorKind::kInvalidArgument, "FLEUVE_UNKNOWN_SCHEME",
               "No file system for the scheme '" + scheme + "' of the path " + std::string(uri) +
                   ". Use a local path or file:/path.");
}

std::string ToFileUri(std::string_view absolute_path) {
  // What java.net.URI leaves alone in a path; everything else, and non-ASCII, is percent-encoded by Hadoop's Path.
  return "file:" + PercentEncode(absolute_path, "/!$&'()*+,;=:@");
}

}  // namespace fleuve::storage
