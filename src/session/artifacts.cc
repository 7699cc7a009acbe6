#include "session/artifacts.h"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

namespace fleuve::session {

namespace fs = std::filesystem;

ArtifactStore::~ArtifactStore() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

Result<std::string> ArtifactStore::PathOf(const std::string& name) const {
  const std::string plain = name.substr(0, name.find('#'));
  const fs::path relative = fs::path(plain).lexically_normal();
  if (plain.empty() || relative.is_absolute() || *relative.begin() == ".." || relative.filename().empty()) {
    return Error(ErrorKind::kInvalidArgument, "INTERNAL_ERROR", "Bad artifact name: " + name);
  }
  const std::string kind = relative.begin()->string();
  if (kind == "forward_to_fs") {
    return Error(ErrorKind::kUnsupported, "",
                 "Uploading artifact file to local file system destination path is not supported.")
        .Family(ErrorFamily::kUnsupportedOperation);
  }
  if (kind != "cache" && kind != "pyfiles" && kind != "files" && kind != "archives" && kind != "jars" &&
      kind != "classes") {
    return Error::Unsupported("artifacts named " + name);
  }
  return (fs::path(folder_) / relative).string();
}

Result<void> ArtifactStore::Add(const std::string& name, std::string_view bytes) {
  FLEUVE_ASSIGN(const std::string path, PathOf(name));
  std::lock_guard lock(mutex_);
  std::error_code code;
  if (known_.contains(name)) {
    std::ifstream existing(path, std::ios::binary);
    std::stringstream content;
    content << existing.rdbuf();
    if (content.view() == bytes || name.starts_with("cache/")) {
      return {};
    }
    return Error(ErrorKind::kAlreadyExists, "ARTIFACT_ALREADY_EXISTS",
                 "The artifact " + name +
                     " already exists. Please choose a different name for the new artifact because "
                     "it cannot be overwritten.")
        .With("normalizedRemoteRelativePath", name);
  }
  fs::create_directories(fs::path(path).parent_path(), code);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) {
    return Error(ErrorKind::kResourceExhausted, "INTERNAL_ERROR", "Cannot write the artifact " + name + " to " + path);
  }
  known_[name] = static_cast<std::int64_t>(bytes.size());
  return {};
}

bool ArtifactStore::Exists(const std::string& name) const {
  std::lock_guard lock(mutex_);
  return known_.contains(name);
}

Result<std::string> ArtifactStore::CacheBytes(const std::string& hash) const {
  const std::string name = "cache/" + hash;
  if (!Exists(name)) {
    return Error(ErrorKind::kNotFound, "INTERNAL_ERROR",
                 "Not found any cached local relation with the hash: " + hash + ".");
  }
  FLEUVE_ASSIGN(const std::string path, PathOf(name));
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  if (!in) {
    return Error(ErrorKind::kNotFound, "INTERNAL_ERROR", "The cached local relation " + hash + " cannot be read.");
  }
  return std::move(content).str();
}

Result<void> ArtifactStore::CopyFrom(const ArtifactStore& other) {
  std::map<std::string, std::int64_t> names;
  {
    std::lock_guard lock(other.mutex_);
    names = other.known_;
  }
  for (const auto& [name, size] : names) {
    FLEUVE_ASSIGN(const std::string path, other.PathOf(name));
    std::ifstream in(path, std::ios::binary);
    std::stringstream content;
    content << in.rdbuf();
    FLEUVE_TRY(Add(name, content.view()));
  }
  return {};
}

}  // namespace fleuve::session
