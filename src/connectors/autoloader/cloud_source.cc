// A running Auto Loader stream: discovery, admission, exactly once, cleaning.

#include <algorithm>
#include <chrono>
#include <deque>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "connectors/autoloader/auto_loader.h"
#include "connectors/autoloader/cloud_schema_internal.h"
#include "connectors/autoloader/ledger_internal.h"
#include "connectors/folder_watch.h"

namespace fleuve::connectors::autoloader {

namespace {

using files::ListedFile;

/// A file that was written less than this ago may still be written to.
constexpr std::int64_t kSettledNanos = 1000000000;
/// Two equal looks this far apart tell that it is not.
constexpr std::int64_t kLookMs = 100;

class CloudSource final : public Source {
 public:
  CloudSource(std::shared_ptr<const CloudRelation> relation, SourceContext context)
      : relation_(std::move(relation)),
        context_(std::move(context)),
        clock_(Clock::System()),
        ledger_(context_.checkpoint.store, context_.metadata_path) {}

  ~CloudSource() override { Stop(); }

  const types::Schema& schema() const override { return relation_->schema(); }
  std::string description() const override { return "CloudFilesSource[" + PathUri() + "]"; }

  Result<std::optional<Offset>> InitialOffset() override {
    FLEUVE_ASSIGN(const bool started, ledger_.Open());
    if (!started) {
      std::vector<ListedFile> existing;
      if (!relation_->cloud().include_existing) {
        FLEUVE_ASSIGN(existing, relation_->List());
      }
      FLEUVE_TRY(ledger_.Start(relation_->cloud().include_existing, existing, clock_->NowMillis()));
    }
    if (relation_->cloud().clean != Clean::kOff) {
      FLEUVE_ASSIGN(commit_times_, CommitTimes(context_.checkpoint, context_.index));
      FLEUVE_TRY(CleanSource());
    }
    return std::optional<Offset>();
  }

  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission admission) override {
    look_again_.reset();
    std::int64_t from = 0;
    if (start) {
      FLEUVE_ASSIGN(from, SequenceOf(*start));
    }
    // A segment that was written before a crash is the next batch, with its files.
    if (const auto end = ledger_.SegmentEndAfter(from)) {
      return std::optional<Offset>(OffsetText(*end, PathUri()));
    }
    if (!available_only_ && admission == Admission::kAllAvailable) {
      FLEUVE_TRY(DiscoverAndWait());
    } else if (!available_only_ && (pending_.empty() || PendingIsShort())) {
      FLEUVE_TRY(Discover());
    }
    std::vector<ListedFile> taken;
    const CloudOptions& cloud = relation_->cloud();
    std::int64_t bytes = 0;
    while (!pending_.empty()) {
      if (admission == Admission::kRateLimited) {
        if (cloud.max_files && static_cast<std::int64_t>(taken.size()) >= *cloud.max_files) {
          break;
        }
        if (cloud.max_bytes && !taken.empty() && bytes >= *cloud.max_bytes) {
          break;
        }
      }
      bytes += pending_.front().size_bytes;
      taken.push_back(std::move(pending_.front()));
      pending_.pop_front();
    }
    if (taken.empty()) {
      return start;
    }
    for (const ListedFile& file : taken) {
      pending_paths_.erase(file.path);
    }
    look_again_.reset();
    FLEUVE_ASSIGN(const std::int64_t last, ledger_.Append(taken, clock_->NowMillis()));
    return std::optional<Offset>(OffsetText(last, PathUri()));
  }

  Result<void> PrepareForAvailableNow() override {
    FLEUVE_TRY(DiscoverAndWait());
    available_only_ = true;
    return {};
  }

  Result<void> Recover(const std::optional<Offset>&, const std::optional<Offset>& end) override {
    if (end) {
      FLEUVE_ASSIGN(const std::int64_t to, SequenceOf(*end));
      if (to > ledger_.last()) {
        return Error(ErrorKind::kNotFound, "CF_INTERNAL_ERROR.INVALID_STATE",
                     "the record of seen files ends at " + std::to_string(ledger_.last()));
      }
    }
    return {};
  }

  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override {
    std::int64_t from = 0;
    if (start) {
      FLEUVE_ASSIGN(from, SequenceOf(*start));
    }
    FLEUVE_ASSIGN(const std::int64_t to, SequenceOf(end));
    FLEUVE_ASSIGN(const auto entries, ledger_.Range(from, to));
    const CloudOptions& cloud = relation_->cloud();
    const std::string* ignore = plan::FindOption(cloud.reader, "ignoreMissingFiles");
    const bool ignore_missing = ignore != nullptr && EqualsIgnoreAsciiCase(*ignore, "true");
    std::vector<ListedFile> batch;
    std::set<std::string> seen;
    for (const LedgerEntry& entry : entries) {
      auto file = files::StatFile(entry.path);
      if (!file) {
        if (ignore_missing) {
          continue;
        }
        return Error(ErrorKind::kNotFound, "FAILED_READ_FILE.FILE_NOT_EXIST",
                     "Encountered error while reading file " + storage::ToFileUri(entry.path) +
                         ". File does not exist. Set option 'ignoreMissingFiles' to true to go on without it.")
            .With("path", storage::ToFileUri(entry.path));
      }
      if (file->modified_nanos != entry.modified_nanos || file->size_bytes != entry.size_bytes) {
        if (!cloud.allow_overwrites) {
          return Error(ErrorKind::kConflict, "CF_FILE_CHANGED",
                       "The file " + storage::ToFileUri(entry.path) +
                           " changed after it was planned for this batch. Restore it, or set option "
                           "'cloudFiles.allowOverwrites' to true to read it as it is now.")
              .With("path", storage::ToFileUri(entry.path));
        }
        LogWarn("the file " + entry.path + " changed after it was planned: it is read as it is now");
      }
      if (seen.insert(entry.path).second) {
        batch.push_back(std::move(*file));
      }
    }
    BatchInput input;
    if (!batch.empty()) {
      FLEUVE_ASSIGN(input, relation_->Input(batch));
    }
    return input;
  }

  DurableRecords TakeDurableRecords() override { return ledger_.TakeDurableRecords(); }

  Result<void> Commit(const Offset& end) override {
    if (relation_->cloud().clean == Clean::kOff) {
      return {};
    }
    FLEUVE_ASSIGN(const std::int64_t to, SequenceOf(end));
    if (commit_times_.empty() || commit_times_.back().first < to) {
      commit_times_.emplace_back(to, clock_->NowMillis());
    }
    return CleanSource();
  }

  std::map<std::string, std::string> Metrics(const std::optional<Offset>&) override {
    std::int64_t bytes = 0;
    for (const ListedFile& file : pending_) {
      bytes += file.size_bytes;
    }
    return {{"numFilesOutstanding", std::to_string(pending_.size())},
            {"numBytesOutstanding", std::to_string(bytes)},
            {"approximateQueueSize", "0"}};
  }

  std::optional<Offset> ReportLatestOffset() override {
    return OffsetText(ledger_.last() + static_cast<std::int64_t>(pending_.size()), PathUri());
  }

  bool SetDataListener(std::function<void()> callback) override {
    watch_ = WatchFolder(relation_->base(), true, [this, callback](const FolderEvent& event) {
      if (event.is_complete && !event.path.empty()) {
        const std::lock_guard lock(mutex_);
        if (complete_.size() > kMostComplete) {
          complete_.clear();
        }
        complete_.insert(event.path);
      }
      if (event.is_complete || event.is_directory || event.path.empty()) {
        callback();
      }
    });
    return watch_ != nullptr;
  }

  std::optional<std::int64_t> LookAgainMs() override { return look_again_; }

  void Stop() override { watch_.reset(); }

 private:
  static constexpr std::size_t kMostComplete = 100000;
  struct Look {
    std::int64_t size_bytes = 0;
    std::int64_t modified_nanos = 0;
    std::int64_t at_nanos = 0;
  };

  std::string PathUri() const { return storage::ToFileUri(relation_->path()); }

  bool PendingIsShort() const {
    const CloudOptions& cloud = relation_->cloud();
    if (cloud.max_files && static_cast<std::int64_t>(pending_.size()) >= *cloud.max_files) {
      return false;
    }
    if (cloud.max_bytes && !cloud.max_files) {
      std::int64_t bytes = 0;
      for (const ListedFile& file : pending_) {
        bytes += file.size_bytes;
      }
      return bytes < *cloud.max_bytes;
    }
    return true;
  }

  /// True where nobody can still be writing the file, as far as can be told.
  bool IsSettled(const ListedFile& file) {
    const std::int64_t now_nanos = clock_->NowMicros() * 1000;
    const std::int64_t age = now_nanos - file.modified_nanos;
    if (age >= kSettledNanos) {
      return true;
    }
    {
      const std::lock_guard lock(mutex_);
      if (complete_.erase(file.path) != 0) {
        return true;
      }
    }
    const std::int64_t ticks = clock_->MonotonicNanos();
    auto [look, is_new] = looks_.try_emplace(file.path, Look{file.size_bytes, file.modified_nanos, ticks});
    if (!is_new) {
      if (look->second.size_bytes == file.size_bytes && look->second.modified_nanos == file.modified_nanos) {
        if (ticks - look->second.at_nanos >= kLookMs * 1000000) {
          looks_.erase(look);
          return true;
        }
      } else {
        look->second = Look{file.size_bytes, file.modified_nanos, ticks};
      }
    }
    const std::int64_t left = std::max<std::int64_t>(1, kLookMs - (ticks - look->second.at_nanos) / 1000000);
    look_again_ = std::min(look_again_.value_or(left), left);
    return false;
  }

  /// Lists and adds new files to `pending_`, oldest first. \param only  these paths, where not null.
  Result<void> Discover(const std::set<std::string>* only = nullptr) {
    look_again_.reset();
    FLEUVE_ASSIGN(auto listed, relation_->List());
    if (relation_->cloud().max_age_ms) {
      ledger_.ForgetBefore(clock_->NowMillis() - *relation_->cloud().max_age_ms);
    }
    std::vector<ListedFile> fresh;
    for (ListedFile& file : listed) {
      if ((only != nullptr && !only->contains(file.path)) || pending_paths_.contains(file.path) ||
          !ledger_.IsNew(file, relation_->cloud().allow_overwrites)) {
        continue;
      }
      if (IsSettled(file)) {
        fresh.push_back(std::move(file));
      }
    }
    if (only != nullptr && fresh.empty() && !look_again_) {
      looks_.clear();
    }
    std::sort(fresh.begin(), fresh.end(), [](const ListedFile& a, const ListedFile& b) {
      return a.modified_nanos != b.modified_nanos ? a.modified_nanos < b.modified_nanos : a.path < b.path;
    });
    for (ListedFile& file : fresh) {
      pending_paths_.insert(file.path);
      pending_.push_back(std::move(file));
    }
    return {};
  }

  /// The same, and waits for the files that are there now but may still be written to.
  Result<void> DiscoverAndWait() {
    FLEUVE_TRY(Discover());
    while (look_again_) {
      if (context_.token != nullptr) {
        FLEUVE_TRY(context_.token->Check());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(std::min<std::int64_t>(*look_again_, kLookMs)));
      std::set<std::string> waited;
      for (const auto& [path, look] : looks_) {
        waited.insert(path);
      }
      FLEUVE_TRY(Discover(&waited));
    }
    return {};
  }

  /// Removes or moves files whose batch was committed long enough ago. Best effort.
  Result<void> CleanSource() {
    const CloudOptions& cloud = relation_->cloud();
    std::int64_t to = cleaned_;
    for (const auto& [sequence, time_ms] : commit_times_) {
      if (time_ms + cloud.retention_ms <= clock_->NowMillis()) {
        to = std::max(to, std::min(sequence, ledger_.last()));
      }
    }
    if (to <= cleaned_) {
      return {};
    }
    FLEUVE_ASSIGN(const auto entries, ledger_.Range(cleaned_, to));
    for (const LedgerEntry& entry : entries) {
      const auto file = files::StatFile(entry.path);
      if (!file || file->modified_nanos != entry.modified_nanos || file->size_bytes != entry.size_bytes) {
        continue;
      }
      std::error_code code;
      if (cloud.clean == Clean::kDelete) {
        std::filesystem::remove(entry.path, code);
      } else {
        const std::string base = relation_->base() + "/";
        const std::string relative = entry.path.starts_with(base) ? entry.path.substr(base.size())
                                                                  : entry.path.substr(entry.path.rfind('/') + 1);
        const std::filesystem::path target = std::filesystem::path(cloud.move_folder) / relative;
        std::filesystem::create_directories(target.parent_path(), code);
        std::filesystem::rename(entry.path, target, code);
        if (code == std::errc::cross_device_link) {
          code.clear();
          std::filesystem::copy_file(entry.path, target, code);
          if (!code) {
            std::filesystem::remove(entry.path, code);
          }
        }
      }
      if (code) {
        LogWarn("cannot clean the source file " + entry.path + ": " + code.message());
      }
    }
    cleaned_ = to;
    return {};
  }

  const std::shared_ptr<const CloudRelation> relation_;
  const SourceContext context_;
  Clock* const clock_;
  Ledger ledger_;
  std::deque<ListedFile> pending_;
  std::set<std::string> pending_paths_;
  std::map<std::string, Look> looks_;
  std::optional<std::int64_t> look_again_;
  bool available_only_ = false;
  std::vector<std::pair<std::int64_t, std::int64_t>> commit_times_;
  std::int64_t cleaned_ = 0;
  std::mutex mutex_;
  std::set<std::string> complete_;
  std::unique_ptr<FolderWatch> watch_;
};

class CloudProvider final : public SourceProvider {
 public:
  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig& config) override {
    FLEUVE_ASSIGN(auto relation,
                  CloudRelation::Make(request.paths, request.schema, request.options, false, false, config));
    return std::shared_ptr<const plan::StreamRelation>(std::move(relation));
  }
  Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                             const SourceContext& context) override {
    auto cloud = std::dynamic_pointer_cast<const CloudRelation>(relation);
    FLEUVE_CHECK(cloud != nullptr);
    return std::unique_ptr<Source>(std::make_unique<CloudSource>(std::move(cloud), context));
  }
};

}  // namespace

void RegisterAutoLoader(ConnectorRegistry& registry) {
  auto provider = std::make_shared<CloudProvider>();
  registry.AddSource("cloudfiles", provider);
}

}  // namespace fleuve::connectors::autoloader
