#include "pipelines/checkpoints.h"

#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/ids.h"

namespace fleuve::pipelines {

Result<storage::Location> Checkpoints::Root(const std::string& storage) {
  if (storage.empty()) {
    return Error(ErrorKind::kInvalidArgument, "", "Storage root must not be empty.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  const std::size_t colon = storage.find(':');
  const std::size_t slash = storage.find('/');
  const bool absolute = colon != std::string::npos && colon > 0 && colon < slash && slash == colon + 1;
  if (!absolute) {
    return Error(ErrorKind::kInvalidArgument, "PIPELINE_STORAGE_ROOT_INVALID",
                 "Pipeline storage root must be an absolute path with a URI scheme (e.g., file://, s3a://, hdfs://). "
                 "Got: `" +
                     storage + "`.")
        .With("storage_root", storage);
  }
  return storage::Resolve(storage);
}

std::string Checkpoints::BaseOf(const Flow& flow) const {
  return root_.path + "/_checkpoints/" + Join(flow.target, "/") + "/" + flow.name.back();
}

std::string Checkpoints::MarkerOf(const Dataset& table) const {
  return root_.path + "/_checkpoints/" + Join(table.name, "/") + "/_reset";
}

Result<std::int64_t> Checkpoints::Generation(const Flow& flow) const {
  auto listed = root_.store->List(BaseOf(flow));
  if (!listed.ok()) {
    if (listed.error().kind() == ErrorKind::kNotFound) {
      return std::int64_t{-1};
    }
    return listed.error();
  }
  std::int64_t newest = -1;
  for (const storage::ObjectMeta& child : *listed) {
    const std::string name = child.path.substr(child.path.rfind('/') + 1);
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code == std::errc() && end == name.data() + name.size()) {
      newest = std::max(newest, number);
    }
  }
  return newest;
}

Result<std::string> Checkpoints::Folder(const Flow& flow) const {
  FLEUVE_ASSIGN(const std::int64_t generation, Generation(flow));
  return BaseOf(flow) + "/" + std::to_string(std::max<std::int64_t>(generation, 0));
}

Result<std::string> Checkpoints::NextFolder(const Flow& flow) const {
  FLEUVE_ASSIGN(const std::int64_t generation, Generation(flow));
  return BaseOf(flow) + "/" + std::to_string(generation + 1);
}

Result<void> Checkpoints::PutDurably(const std::string& path, const std::string& bytes) {
  FLEUVE_TRY(root_.store->Put(path, bytes, storage::PutMode::kOverwrite));
  const std::vector<std::string> files = {path};
  std::vector<std::string> folders;
  for (std::string folder = path.substr(0, path.rfind('/')); folder.size() >= root_.path.size() && !folder.empty();
       folder = folder.substr(0, folder.rfind('/'))) {
    folders.push_back(folder);
  }
  return root_.store->Sync(files, folders);
}

Result<bool> Checkpoints::IsResetPending(const Dataset& table) const {
  auto found = root_.store->Head(MarkerOf(table));
  if (found.ok()) {
    return true;
  }
  if (found.error().kind() == ErrorKind::kNotFound) {
    return false;
  }
  return found.error();
}

Result<void> Checkpoints::BeginReset(const Dataset& table) { return PutDurably(MarkerOf(table), "{}"); }

Result<void> Checkpoints::EndReset(const Dataset& table, const std::vector<const Flow*>& flows) {
  std::vector<std::string> folders;
  for (const Flow* flow : flows) {
    FLEUVE_ASSIGN(const std::string next, NextFolder(*flow));
    FLEUVE_TRY(root_.store->CreateDirectory(next));
    folders.push_back(next.substr(0, next.rfind('/')));
    folders.push_back(folders.back().substr(0, folders.back().rfind('/')));
  }
  FLEUVE_TRY(root_.store->Sync({}, folders));
  return root_.store->Delete(MarkerOf(table));
}

Result<std::string> Checkpoints::OnceId(const Flow& flow) {
  FLEUVE_ASSIGN(const std::string folder, Folder(flow));
  const std::string path = folder + "/metadata";
  auto known = root_.store->Get(path);
  if (known.ok()) {
    FLEUVE_ASSIGN(const Json json, Json::Parse(*known));
    return json["id"].AsString();
  }
  if (known.error().kind() != ErrorKind::kNotFound) {
    return known.error();
  }
  Json json;
  json.Set("id", Json(NewUuid()));
  FLEUVE_TRY(PutDurably(path, json.Dump()));
  return json["id"].AsString();
}

Result<bool> Checkpoints::IsOnceDone(const Flow& flow) const {
  FLEUVE_ASSIGN(const std::string folder, Folder(flow));
  auto found = root_.store->Head(folder + "/_done");
  if (found.ok()) {
    return true;
  }
  if (found.error().kind() == ErrorKind::kNotFound) {
    return false;
  }
  return found.error();
}

Result<void> Checkpoints::SetOnceDone(const Flow& flow) {
  FLEUVE_ASSIGN(const std::string folder, Folder(flow));
  return PutDurably(folder + "/_done", "{}");
}

}  // namespace fleuve::pipelines
