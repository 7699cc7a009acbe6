#include "checkpoint/log_folder.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/bytes.h"
#include "base/ids.h"

namespace fleuve::checkpoint {

namespace {

constexpr std::size_t kBytesPerChecksum = 512;

const std::array<std::uint32_t, 256>& CrcTable() {
  static const std::array<std::uint32_t, 256> table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) {
        value = (value & 1U) != 0 ? (value >> 1U) ^ 0xEDB88320U : value >> 1U;
      }
      made[i] = value;
    }
    return made;
  }();
  return table;
}

std::uint32_t Crc32(std::string_view bytes) {
  std::uint32_t value = 0xFFFFFFFFU;
  for (const char c : bytes) {
    value = CrcTable()[(value ^ static_cast<unsigned char>(c)) & 0xFFU] ^ (value >> 8U);
  }
  return ~value;
}

void AppendBigEndian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) {
    out.push_back(static_cast<char>((value >> static_cast<unsigned>(shift)) & 0xFFU));
  }
}

bool ParseId(std::string_view text, std::int64_t* id) {
  if (text.empty() || (text.size() > 1 && text[0] == '0')) {
    return false;
  }
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *id);
  return code == std::errc() && end == text.data() + text.size() && *id >= 0;
}

std::string ChecksumPath(const std::string& folder, std::string_view name) {
  return folder + "/." + std::string(name) + ".crc";
}

Result<void> IgnoreMissing(Result<void> result) {
  if (!result.ok() && result.error().kind() == ErrorKind::kNotFound) {
    return {};
  }
  return result;
}

}  // namespace

std::string HadoopChecksums(std::string_view bytes) {
  std::string out("crc\0", 4);
  AppendBigEndian(out, kBytesPerChecksum);
  for (std::size_t at = 0; at < bytes.size(); at += kBytesPerChecksum) {
    AppendBigEndian(out, Crc32(bytes.substr(at, kBytesPerChecksum)));
  }
  return out;
}

Result<std::vector<LogName>> LogFolder::List(bool remove_leftovers) {
  auto listed = store_->List(path_);
  if (!listed.ok()) {
    if (listed.error().kind() == ErrorKind::kNotFound) {
      return std::vector<LogName>{};
    }
    return std::move(listed).error();
  }
  std::vector<LogName> names;
  for (const auto& object : *listed) {
    const std::string_view name = std::string_view(object.path).substr(object.path.rfind('/') + 1);
    LogName entry;
    if (ParseId(name, &entry.id)) {
      names.push_back(entry);
    } else if (name.ends_with(".compact") && ParseId(name.substr(0, name.size() - 8), &entry.id)) {
      entry.is_compact = true;
      names.push_back(entry);
    } else if (remove_leftovers && name.starts_with(".") && name.ends_with(".tmp")) {
      FLEUVE_TRY(IgnoreMissing(store_->Delete(object.path)));
    }
  }
  std::sort(names.begin(), names.end(), [](const LogName& a, const LogName& b) { return a.id < b.id; });
  return names;
}

Result<std::string> LogFolder::Read(std::string_view name) { return store_->Get(PathOf(name)); }

Result<void> LogFolder::Write(std::string_view name, std::string_view text) {
  const std::string path = PathOf(name);
  FLEUVE_ASSIGN(const std::string staged, store_->Stage(path, text, NewUuid()));
  auto committed = store_->CommitStaged(staged, path);
  if (!committed.ok()) {
    const ErrorKind kind = committed.error().kind();
    if (kind == ErrorKind::kTransient) {
      committed = store_->CommitStaged(staged, path);
    }
    if (!committed.ok()) {
      // An answer may have been lost: what stands there now decides.
      auto present = store_->Get(path);
      const bool ours = present.ok() && *present == text && kind != ErrorKind::kAlreadyExists;
      if (present.ok()) {
        store_->Delete(staged).IgnoreBecause("a hidden left-over is removed at the next start");
      }
      if (!ours) {
        if (committed.error().kind() == ErrorKind::kAlreadyExists || present.ok()) {
          return Error(
                     ErrorKind::kAlreadyExists, "CONCURRENT_STREAM_LOG_UPDATE",
                     "Concurrent update to the log. Multiple streaming jobs detected for " + std::string(name) +
                         ".\nPlease make sure only one streaming job runs on a specific checkpoint location at a time. "
                         "The file is " +
                         path + ".")
              .With("batchId", std::string(name));
        }
        return std::move(committed).error();
      }
    }
  }
  return store_->Put(ChecksumPath(path_, name), HadoopChecksums(text), storage::PutMode::kOverwrite);
}

Result<void> LogFolder::Remove(std::string_view name) {
  FLEUVE_TRY(IgnoreMissing(store_->Delete(PathOf(name))));
  return IgnoreMissing(store_->Delete(ChecksumPath(path_, name)));
}

Result<std::string> LogFolder::MoveAway(std::string_view name, const std::string& folder) {
  FLEUVE_ASSIGN(const std::string bytes, store_->Get(PathOf(name)));
  FLEUVE_TRY(store_->CreateDirectory(folder));
  const std::string target =
      folder + "/" + path_.substr(path_.rfind('/') + 1) + "-" + std::string(name) + "-" + NewUuid();
  FLEUVE_TRY(store_->Put(target, bytes, storage::PutMode::kIfAbsent));
  FLEUVE_TRY(Remove(name));
  return target;
}

Result<LogText> ParseLogText(std::string_view text, int max_version, std::string_view path) {
  const std::string prefix = "Failed to read log file " + std::string(path) + ". ";
  if (text.empty()) {
    return Error(ErrorKind::kCorrupt, "", prefix + "Incomplete log file");
  }
  std::vector<std::string> lines = Split(text, '\n');
  const std::string& first = lines.front();
  std::int64_t version = 0;
  if (first.size() < 2 || first[0] != 'v' || !ParseId(std::string_view(first).substr(1), &version) || version <= 0) {
    return Error(ErrorKind::kCorrupt, "MALFORMED_LOG_FILE",
                 prefix + "[MALFORMED_LOG_FILE] Log file was malformed: failed to read correct log version from " +
                     first + ". SQLSTATE: KD002")
        .With("text", first);
  }
  if (version > max_version) {
    const std::string max = std::to_string(max_version);
    return Error(
               ErrorKind::kUnsupported, "INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION",
               prefix +
                   "[INVALID_LOG_VERSION.MAX_SUPPORTED_VERSION] UnsupportedLogVersion. The maximum supported log "
                   "version is v" +
                   max + ", but encountered v" + std::to_string(version) +
                   ". The log file was produced by a newer version and cannot be read by this version. Please upgrade. "
                   "SQLSTATE: KD002")
        .With("matchedVersion", std::to_string(version))
        .With("maxSupportedVersion", max);
  }
  LogText parsed;
  parsed.version = static_cast<int>(version);
  parsed.lines.assign(std::make_move_iterator(lines.begin() + 1), std::make_move_iterator(lines.end()));
  return parsed;
}

}  // namespace fleuve::checkpoint
