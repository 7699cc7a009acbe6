#include "storage/memory_store.h"

#include <map>
#include <mutex>
#include <set>

#include "base/clock.h"

namespace fleuve::storage {
namespace {

std::string ParentOf(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == 0 || slash == path.npos ? "/" : std::string(path.substr(0, slash));
}

std::string_view NameOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

/// The bytes of a file, under however many names.
struct Content {
  std::string bytes;
  /// The bytes that a power cut leaves: what was there at the last sync.
  std::optional<std::string> synced_bytes;
  std::int64_t modified_ms = 0;
  std::int64_t id = 0;
};

/// Invariants: `names_` is what readers see; `durable_names_` is what the synced folders hold on the disk. A name
/// survives a power cut only with content that was synced; otherwise it comes back empty, as a journalled file system
/// without a sync of the file may leave it.
class MemoryObjectStore final : public MemoryStore {
 public:
  Result<std::string> Get(std::string_view path) override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(path);
    if (found == names_.end()) {
      return NotFound(path);
    }
    return found->second->bytes;
  }

  Result<std::string> GetRange(std::string_view path, std::int64_t offset, std::int64_t length) override {
    FLEUVE_ASSIGN(const std::string bytes, Get(path));
    if (offset >= static_cast<std::int64_t>(bytes.size())) {
      return std::string();
    }
    return bytes.substr(static_cast<std::size_t>(offset), static_cast<std::size_t>(length));
  }

  Result<ObjectMeta> Head(std::string_view path) override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(path);
    if (found != names_.end()) {
      return MetaOf(found->first, *found->second);
    }
    if (IsFolder(path)) {
      ObjectMeta meta;
      meta.path = std::string(path);
      meta.is_directory = true;
      return meta;
    }
    return NotFound(path);
  }

  Result<void> Put(std::string_view path, std::string_view bytes, PutMode mode) override {
    const std::lock_guard lock(mutex_);
    if (mode == PutMode::kIfAbsent && names_.contains(path)) {
      return Exists(path);
    }
    names_[std::string(path)] = NewContent(bytes);
    return {};
  }

  Result<void> Delete(std::string_view path) override {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(path);
    if (found == names_.end()) {
      return NotFound(path);
    }
    names_.erase(found);
    return {};
  }

  Result<void> DeleteAll(std::string_view path) override {
    const std::lock_guard lock(mutex_);
    const std::string prefix = std::string(path) + "/";
    std::erase_if(names_, [&](const auto& entry) { return entry.first == path || entry.first.starts_with(prefix); });
    std::erase_if(folders_, [&](const auto& name) { return name == path || name.starts_with(prefix); });
    return {};
  }

  Result<void> CreateDirectory(std::string_view path) override {
    const std::lock_guard lock(mutex_);
    folders_.insert(std::string(path));
    return {};
  }

  Result<std::vector<ObjectMeta>> List(std::string_view folder, std::string_view start_after) override {
    const std::lock_guard lock(mutex_);
    if (!IsFolder(folder)) {
      return NotFound(folder);
    }
    const std::string prefix = folder == "/" ? "/" : std::string(folder) + "/";
    std::map<std::string, ObjectMeta> children;
    const auto add_folder = [&](std::string_view path) {
      const std::string_view rest = path.substr(prefix.size());
      const std::string child = prefix + std::string(rest.substr(0, rest.find('/')));
      ObjectMeta meta;
      meta.path = child;
      meta.is_directory = true;
      children.emplace(child, meta);
    };
    for (auto it = names_.lower_bound(prefix); it != names_.end() && it->first.starts_with(prefix); ++it) {
      if (it->first.find('/', prefix.size()) != std::string::npos) {
        add_folder(it->first);
      } else {
        children.emplace(it->first, MetaOf(it->first, *it->second));
      }
    }
    for (auto it = folders_.lower_bound(prefix); it != folders_.end() && it->starts_with(prefix); ++it) {
      if (it->size() > prefix.size()) {
        add_folder(*it);
      }
    }
    std::vector<ObjectMeta> found;
    for (auto& [path, meta] : children) {
      if (NameOf(path) > start_after) {
        found.push_back(std::move(meta));
      }
    }
    return found;
  }

  Result<std::vector<ObjectMeta>> ListRecursive(std::string_view folder) override {
    const std::lock_guard lock(mutex_);
    const std::string prefix = folder == "/" ? "/" : std::string(folder) + "/";
    std::vector<ObjectMeta> found;
    for (auto it = names_.lower_bound(prefix); it != names_.end() && it->first.starts_with(prefix); ++it) {
      found.push_back(MetaOf(it->first, *it->second));
    }
    return found;
  }

  Result<std::string> Stage(std::string_view path, std::string_view bytes, std::string_view attempt) override {
    const std::string staged = ParentOf(path) + "/." + std::string(NameOf(path)) + "." + std::string(attempt) + ".tmp";
    FLEUVE_TRY(Put(staged, bytes, PutMode::kOverwrite));
    return staged;
  }

  Result<void> CommitStaged(std::string_view staged, std::string_view path) override {
    const std::lock_guard lock(mutex_);
    const auto from = names_.find(staged);
    if (from == names_.end()) {
      return NotFound(staged);
    }
    if (names_.contains(path)) {
      return Exists(path);
    }
    const auto content = from->second;
    names_.erase(from);
    names_[std::string(path)] = content;
    return {};
  }

  Result<void> Sync(std::span<const std::string> files, std::span<const std::string> folders) override {
    const std::lock_guard lock(mutex_);
    for (const auto& path : files) {
      const auto found = names_.find(path);
      if (found == names_.end()) {
        return NotFound(path);
      }
      found->second->synced_bytes = found->second->bytes;
    }
    for (const auto& folder : folders) {
      const std::string prefix = folder == "/" ? "/" : folder + "/";
      const auto direct_child = [&](const std::string& path) {
        return path.starts_with(prefix) && path.find('/', prefix.size()) == std::string::npos;
      };
      std::erase_if(durable_names_, [&](const auto& entry) { return direct_child(entry.first); });
      for (const auto& [path, content] : names_) {
        if (direct_child(path)) {
          durable_names_[path] = content;
        }
      }
    }
    return {};
  }

  void PowerCut() override {
    const std::lock_guard lock(mutex_);
    names_ = durable_names_;
    for (auto& [path, content] : names_) {
      content->bytes = content->synced_bytes.value_or("");
    }
  }

 private:
  static Error NotFound(std::string_view path) {
    return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND", "no object at " + std::string(path));
  }
  static Error Exists(std::string_view path) {
    return Error(ErrorKind::kAlreadyExists, "", "there is an object at " + std::string(path));
  }

  std::shared_ptr<Content> NewContent(std::string_view bytes) {
    auto content = std::make_shared<Content>();
    content->bytes = std::string(bytes);
    content->modified_ms = Clock::System()->NowMillis();
    content->id = ++last_id_;
    return content;
  }

  static ObjectMeta MetaOf(const std::string& path, const Content& content) {
    ObjectMeta meta;
    meta.path = path;
    meta.size_bytes = static_cast<std::int64_t>(content.bytes.size());
    meta.modified_ms = content.modified_ms;
    meta.etag = std::to_string(content.id);
    return meta;
  }

  bool IsFolder(std::string_view path) const {
    const std::string prefix = path == "/" ? "/" : std::string(path) + "/";
    const auto name = names_.lower_bound(prefix);
    if (path == "/" || folders_.contains(path) || (name != names_.end() && name->first.starts_with(prefix))) {
      return true;
    }
    const auto folder = folders_.lower_bound(prefix);
    return folder != folders_.end() && folder->starts_with(prefix);
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Content>, std::less<>> names_;
  std::map<std::string, std::shared_ptr<Content>, std::less<>> durable_names_;
  std::set<std::string, std::less<>> folders_;
  std::int64_t last_id_ = 0;
};

}  // namespace

std::shared_ptr<MemoryStore> MemoryStore::Make() { return std::make_shared<MemoryObjectStore>(); }

}  // namespace fleuve::storage
