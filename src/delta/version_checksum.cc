#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "delta/actions_internal.h"
#include "delta/features.h"
#include "delta/version_checksum_internal.h"

namespace fleuve::delta {
namespace {

std::string ChecksumPath(std::string_view table_path, std::int64_t version) {
  return LogFolder(table_path) + "/" + VersionName(version) + ".crc";
}

/// Lists longer than this are left out: every commit would write them again.
constexpr std::size_t kMostListed = 100;

/// The body of an action's line: `{"metaData":{...}}` without its name.
std::string BodyOf(const Action& action) {
  const std::string line = ToJsonLine(action);
  const std::size_t from = line.find(':') + 1;
  return line.substr(from, line.rfind('}') - from);
}

template <typename T>
void AppendList(std::string& out, const char* name, const LayeredMap<T>& values) {
  std::vector<std::string> bodies;
  values.ForEach([&](const T& value) {
    if constexpr (std::is_same_v<T, DomainMetadata>) {
      if (value.removed) {
        return;
      }
    }
    if (bodies.size() <= kMostListed) {
      bodies.push_back(BodyOf(value));
    }
  });
  if (bodies.size() <= kMostListed) {
    out += std::string(",\"") + name + "\":[" + Join(bodies, ",") + "]";
  }
}

std::optional<std::int64_t> WholeNumber(const Json& json) {
  return json.is_int() ? std::optional<std::int64_t>(json.AsInt()) : std::nullopt;
}

}  // namespace

Result<void> WriteVersionChecksum(const SnapshotState& state, const std::string& txn_id,
                                  std::optional<std::int64_t> in_commit_timestamp) {
  std::string text = "{\"txnId\":" + Json(txn_id).Dump();
  text += ",\"tableSizeBytes\":" + std::to_string(state.files->bytes());
  text += ",\"numFiles\":" + std::to_string(state.files->count());
  text += ",\"numMetadata\":1,\"numProtocol\":1";
  if (in_commit_timestamp) {
    text += ",\"inCommitTimestampOpt\":" + std::to_string(*in_commit_timestamp);
  }
  AppendList(text, "setTransactions", state.transactions);
  AppendList(text, "domainMetadata", state.domains);
  text += ",\"metadata\":" + BodyOf(state.shape->metadata);
  text += ",\"protocol\":" + BodyOf(*state.protocol);
  text += "}";
  return state.location.store->Put(ChecksumPath(state.location.path, state.version), text,
                                   storage::PutMode::kOverwrite);
}

std::optional<VersionChecksum> ParseVersionChecksum(std::string_view text) {
  const auto json = Json::Parse(text);
  if (!json.ok() || !json->is_object()) {
    return std::nullopt;
  }
  const auto bytes = WholeNumber((*json)["tableSizeBytes"]);
  const auto files = WholeNumber((*json)["numFiles"]);
  if (!bytes || !files) {
    return std::nullopt;
  }
  VersionChecksum checksum;
  checksum.table_size_bytes = *bytes;
  checksum.num_files = *files;
  if (const Json& metadata = (*json)["metadata"]; metadata.is_object()) {
    if (!metadata["id"].is_string() || !metadata["schemaString"].is_string()) {
      return std::nullopt;
    }
    auto parsed = MetadataFromJson(metadata);
    if (!parsed.ok()) {
      return std::nullopt;
    }
    checksum.metadata = *std::move(parsed);
  }
  if (const Json& protocol = (*json)["protocol"]; protocol.is_object()) {
    checksum.protocol = ProtocolFromJson(protocol);
  }
  if (const Json& list = (*json)["setTransactions"]; list.is_array()) {
    checksum.transactions.emplace();
    for (const Json& item : list.items()) {
      if (!item["appId"].is_string() || !item["version"].is_int()) {
        return std::nullopt;
      }
      checksum.transactions->push_back(
          {item["appId"].AsString(), item["version"].AsInt(), WholeNumber(item["lastUpdated"])});
    }
  }
  if (const Json& list = (*json)["domainMetadata"]; list.is_array()) {
    checksum.domains.emplace();
    for (const Json& item : list.items()) {
      if (!item["domain"].is_string() || !item["configuration"].is_string()) {
        return std::nullopt;
      }
      checksum.domains->push_back({item["domain"].AsString(), item["configuration"].AsString(), false});
    }
  }
  return checksum;
}

std::optional<VersionChecksum> ReadVersionChecksum(const storage::Location& table, std::int64_t version) {
  const auto text = table.store->Get(ChecksumPath(table.path, version));
  return text.ok() ? ParseVersionChecksum(*text) : std::nullopt;
}

std::vector<std::string> DifferencesFrom(const VersionChecksum& checksum, const SnapshotState& state) {
  std::vector<std::string> out;
  const auto number = [&](const char* what, std::int64_t said, std::int64_t is) {
    if (said != is) {
      out.push_back(std::string(what) + " is " + std::to_string(is) + " by the log and " + std::to_string(said) +
                    " by the checksum");
    }
  };
  number("the number of files", checksum.num_files, state.files->count());
  number("the size in bytes", checksum.table_size_bytes, state.files->bytes());
  if (checksum.metadata && state.shape) {
    // The order of properties says nothing.
    const auto sorted = [](Metadata m) {
      std::sort(m.configuration.begin(), m.configuration.end());
      std::sort(m.format_options.begin(), m.format_options.end());
      return m;
    };
    if (!(sorted(*checksum.metadata) == sorted(state.shape->metadata))) {
      out.emplace_back("the metadata is not that of the checksum");
    }
  }
  if (checksum.protocol && state.protocol && FeaturesOf(*checksum.protocol) != FeaturesOf(*state.protocol)) {
    out.emplace_back("the protocol is not that of the checksum");
  }
  if (checksum.transactions) {
    // Expired ones may be left out on either side.
    for (const SetTransaction& said : *checksum.transactions) {
      const SetTransaction* is = state.transactions.Find(said.app_id);
      if (is != nullptr && is->version != said.version) {
        out.push_back("the transaction of the application " + said.app_id + " is " + std::to_string(is->version) +
                      " by the log and " + std::to_string(said.version) + " by the checksum");
      }
    }
  }
  if (checksum.domains) {
    std::map<std::string, std::string> said;
    for (const DomainMetadata& domain : *checksum.domains) {
      said[domain.domain] = domain.configuration;
    }
    state.domains.ForEach([&](const DomainMetadata& domain) {
      const auto at = said.find(domain.domain);
      if (!domain.removed && (at == said.end() || at->second != domain.configuration)) {
        out.push_back("the domain " + domain.domain + " is not that of the checksum");
      }
    });
  }
  return out;
}

Result<void> CompareWithChecksum(const SnapshotState& state) {
  const auto checksum = ReadVersionChecksum(state.location, state.version);
  if (!checksum) {
    return {};
  }
  const std::vector<std::string> differences = DifferencesFrom(*checksum, state);
  if (differences.empty()) {
    return {};
  }
  const std::string version = std::to_string(state.version);
  return Error(ErrorKind::kCorrupt, "DELTA_TXN_LOG_FAILED_INTEGRITY",
               "The log of " + state.location.path + " does not agree with its checksum of version " + version + ": " +
                   Join(differences, "; ") + ".")
      .With("version", version)
      .With("mismatchStringOpt", Join(differences, "; "));
}

}  // namespace fleuve::delta
