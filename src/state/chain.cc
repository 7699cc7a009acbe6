#include <algorithm>

#include "state/chain_internal.h"

namespace fleuve::state {

namespace {

/// The files of one version, by binary search.
std::pair<std::vector<StoreFile>::const_iterator, std::vector<StoreFile>::const_iterator> OfVersion(
    const std::vector<StoreFile>& files, std::int64_t number) {
  struct Less {
    bool operator()(const StoreFile& file, std::int64_t n) const { return file.name.version.number < n; }
    bool operator()(std::int64_t n, const StoreFile& file) const { return n < file.name.version.number; }
  };
  return std::equal_range(files.begin(), files.end(), number, Less());
}

/// The only changelog of a version; null where there is none, or more than one (`several`).
const StoreFile* OnlyChanges(const std::vector<StoreFile>& files, std::int64_t number, bool* several) {
  const StoreFile* found = nullptr;
  *several = false;
  const auto [begin, end] = OfVersion(files, number);
  for (auto at = begin; at != end; ++at) {
    if (at->name.kind == FileKind::kChanges) {
      *several = found != nullptr;
      found = &*at;
      if (*several) {
        return nullptr;
      }
    }
  }
  return found;
}

const StoreFile* FindFile(const std::vector<StoreFile>& files, const Version& version, FileKind kind) {
  const auto [begin, end] = OfVersion(files, version.number);
  const auto at = std::find_if(begin, end, [&](const StoreFile& file) {
    return file.name.kind == kind && file.name.version.attempt == version.attempt;
  });
  return at == end ? nullptr : &*at;
}

Error NotThere(const StoreSpec& spec, const std::string& path) {
  return CannotLoad(ErrorKind::kNotFound, "CANNOT_READ_DELTA_FILE_NOT_EXISTS",
                    "Error reading delta file " + path + " of the state of operator " +
                        std::to_string(spec.operator_id) + " (" + spec.operator_name + "): " + path +
                        " does not exist.");
}

}  // namespace

Result<std::vector<StoreFile>> ListFiles(const storage::Location& folder) {
  std::vector<StoreFile> files;
  auto listed = folder.store->List(folder.path);
  if (!listed.ok()) {
    if (listed.error().kind() == ErrorKind::kNotFound) {
      return files;
    }
    return std::move(listed).error();
  }
  for (const storage::ObjectMeta& meta : *listed) {
    FileName name = ParseFileName(std::string_view(meta.path).substr(meta.path.rfind('/') + 1));
    if (name.version.number >= 0) {
      files.push_back(StoreFile{meta.path, std::move(name), meta.size_bytes});
    }
  }
  std::stable_sort(files.begin(), files.end(), [](const StoreFile& a, const StoreFile& b) {
    return a.name.version.number < b.name.version.number;
  });
  return files;
}

Result<Chain> FindChain(const StoreSpec& spec, const std::vector<StoreFile>& files, const Version& at,
                        const std::set<std::string>& damaged) {
  storage::ObjectStore& store = *spec.folder.store;
  Chain chain;
  chain.version = at;
  if (at.attempt.empty()) {
    bool several = false;
    const StoreFile* only = OnlyChanges(files, at.number, &several);
    if (several) {
      return CannotLoad(ErrorKind::kCorrupt, "UNEXPECTED_VERSION",
                        "Version " + std::to_string(at.number) + " of the state in " + spec.folder.path +
                            " was written by more than one run, and nothing says which of them was committed.");
    }
    if (only != nullptr) {
      chain.version.attempt = only->name.version.attempt;
    }
  }
  // Backwards from the wanted version to where a snapshot was begun, or to the beginning.
  std::int64_t floor = 0;
  Version wanted = chain.version;
  while (wanted.number > floor) {
    const StoreFile* snapshot = chain.snapshot ? nullptr : FindFile(files, wanted, FileKind::kSnapshot);
    if (snapshot != nullptr && !damaged.contains(snapshot->path)) {
      FLEUVE_ASSIGN(const auto head, ReadHead(store, snapshot->path));
      // A snapshot that was cut off by a crash is no loss: the changelogs below it are still there.
      if (head && head->kind == FileKind::kSnapshot) {
        chain.snapshot = *snapshot;
        chain.parts = head->parts;
        floor = head->parts.from;
        continue;
      }
    }
    const StoreFile* changes = FindFile(files, wanted, FileKind::kChanges);
    if (changes == nullptr) {
      return NotThere(spec, ChangelogPath(spec.folder.path, wanted));
    }
    chain.changes.push_back(*changes);
    // What a changelog was made from, its first lines say; where there is one only, reading it in its turn will show.
    bool several = false;
    const StoreFile* only = OnlyChanges(files, wanted.number - 1, &several);
    Version before{wanted.number - 1, only == nullptr ? "" : only->name.version.attempt};
    if (before.number > 0 && (several || only == nullptr)) {
      FLEUVE_ASSIGN(const auto head, ReadHead(store, changes->path));
      before.attempt = head ? head->header.base_attempt : "";
    }
    wanted = before;
  }
  std::reverse(chain.changes.begin(), chain.changes.end());
  return chain;
}

}  // namespace fleuve::state
