#include <map>
#include <set>

#include "base/bytes.h"
#include "delta/table_source.h"
#include "tables/commands.h"

namespace fleuve::tables {

Result<void> GenerateManifest(const TableContext& context, const TableRef& table, const std::string& mode) {
  if (!EqualsIgnoreAsciiCase(mode, "symlink_format_manifest")) {
    return Error(ErrorKind::kUnsupported, "DELTA_MODE_NOT_SUPPORTED",
                 "The mode " + mode + " is not supported. Supported modes are: symlink_format_manifest")
        .With("mode", mode)
        .With("supportedModes", "symlink_format_manifest");
  }
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, context.logs->Open(table.location)->Latest());
  // One manifest per partition: readers of manifests know neither the log nor deletion vectors.
  std::map<std::string, std::string> manifests;
  Result<void> walked;
  snapshot->ForEachFile(
      [&](const delta::AddFile& add) {
        if (!walked.ok()) {
          return;
        }
        if (add.deletion_vector) {
          walked = Error(ErrorKind::kUnsupported, "DELTA_UNSUPPORTED_GENERATE_WITH_DELETION_VECTORS",
                         "Manifests cannot be generated for a table with deletion vectors: run REORG TABLE ... APPLY "
                         "(PURGE) first.");
          return;
        }
        auto path = delta::AbsolutePath(table.location, add.path);
        if (!path.ok()) {
          walked = std::move(path).error();
          return;
        }
        manifests[delta::PartitionFolder(add.partition_values)] += storage::ToFileUri(*path) + "\n";
      },
      false);
  FLEUVE_TRY(std::move(walked));
  if (manifests.empty() && snapshot->metadata().partition_columns.empty()) {
    manifests[""];
  }
  auto& store = *table.location.store;
  const std::string root = table.location.path + "/_symlink_format_manifest";
  std::set<std::string> kept;
  for (const auto& [folder, lines] : manifests) {
    const std::string path = root + "/" + (folder.empty() ? "" : folder + "/") + "manifest";
    FLEUVE_TRY(store.Put(path, lines, storage::PutMode::kOverwrite));
    kept.insert(path);
  }
  // Manifests of partitions that are gone.
  const auto there = store.ListRecursive(root);
  if (!there.ok()) {
    return there.error().kind() == ErrorKind::kNotFound ? Result<void>() : Result<void>(there.error());
  }
  for (const storage::ObjectMeta& entry : *there) {
    if (!entry.is_directory && !kept.contains(entry.path) && entry.path.ends_with("/manifest")) {
      FLEUVE_TRY(store.Delete(entry.path));
    }
  }
  return {};
}

}  // namespace fleuve::tables
