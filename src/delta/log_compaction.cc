#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_set>

#include "base/ids.h"
#include "delta/actions_internal.h"
#include "delta/log_compaction_internal.h"

namespace fleuve::delta {

std::string CompactionPath(std::string_view table_path, std::int64_t first, std::int64_t last) {
  return LogFolder(table_path) + "/" + VersionName(first) + "." + VersionName(last) + ".compacted.json";
}

namespace {

template <typename File>
std::string Key(const File& file) {
  return file.path + '\0' + (file.deletion_vector ? file.deletion_vector->UniqueId() : std::string());
}

}  // namespace

bool IsReconciled(const std::vector<Action>& actions) {
  std::unordered_set<std::string> files;
  return std::all_of(actions.begin(), actions.end(), [&](const Action& action) {
    if (const auto* add = std::get_if<AddFile>(&action)) {
      return files.insert(Key(*add)).second;
    }
    const auto* remove = std::get_if<RemoveFile>(&action);
    return remove == nullptr || files.insert(Key(*remove)).second;
  });
}

std::vector<Action> Compact(const std::vector<std::vector<Action>>& commits) {
  std::optional<Protocol> protocol;
  std::optional<Metadata> metadata;
  std::map<std::string, SetTransaction> transactions;
  std::map<std::string, DomainMetadata> domains;
  std::map<std::string, Action> files;
  for (const std::vector<Action>& commit : commits) {
    // Within a commit removals come first: a file both removed and added is there.
    for (const Action& action : commit) {
      if (const auto* remove = std::get_if<RemoveFile>(&action)) {
        files.insert_or_assign(Key(*remove), *remove);
      }
    }
    for (const Action& action : commit) {
      if (const auto* add = std::get_if<AddFile>(&action)) {
        files.insert_or_assign(Key(*add), *add);
      } else if (const auto* p = std::get_if<Protocol>(&action)) {
        protocol = *p;
      } else if (const auto* m = std::get_if<Metadata>(&action)) {
        metadata = *m;
      } else if (const auto* txn = std::get_if<SetTransaction>(&action)) {
        transactions.insert_or_assign(txn->app_id, *txn);
      } else if (const auto* domain = std::get_if<DomainMetadata>(&action)) {
        domains.insert_or_assign(domain->domain, *domain);
      }
    }
  }
  std::vector<Action> out;
  if (protocol) {
    out.emplace_back(*std::move(protocol));
  }
  if (metadata) {
    out.emplace_back(*std::move(metadata));
  }
  for (auto& [id, txn] : transactions) {
    out.emplace_back(std::move(txn));
  }
  for (auto& [name, domain] : domains) {
    out.emplace_back(std::move(domain));
  }
  for (auto& [name, file] : files) {
    out.push_back(std::move(file));
  }
  return out;
}

Result<void> WriteCompaction(DeltaLog& log, std::int64_t first, std::int64_t last) {
  std::vector<std::vector<Action>> commits;
  for (std::int64_t version = first; version <= last; ++version) {
    FLEUVE_ASSIGN(Commit commit, log.ReadCommit(version));
    commits.push_back(std::move(commit.actions));
  }
  std::string text;
  for (const Action& action : Compact(commits)) {
    AppendJsonLine(text, action);
  }
  auto& store = *log.location().store;
  const std::string path = CompactionPath(log.location().path, first, last);
  // Durable before it has its name: a reader takes it for the commits.
  FLEUVE_ASSIGN(const std::string staged, store.Stage(path, text, NewUuid()));
  if (log.context().durability == Durability::kStrict) {
    const std::array<std::string, 1> files{staged};
    FLEUVE_TRY(store.Sync(files, {}));
  }
  auto named = store.CommitStaged(staged, path);
  if (!named.ok()) {
    store.Delete(staged).IgnoreBecause("another writer was first");
    if (named.error().kind() != ErrorKind::kAlreadyExists) {
      return named;
    }
  }
  return {};
}

}  // namespace fleuve::delta
