// Spark's file source: new files of a folder or glob, in the order of their modification times.

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "connectors/files/file_log.h"
#include "connectors/files/file_schema.h"
#include "connectors/files/file_stream_internal.h"
#include "connectors/folder_watch.h"
#include "connectors/stream_relation.h"
#include "storage/object_store.h"

namespace fleuve::connectors::files {

namespace {

using plan::FileFormat;

Error BadOption(const std::string& text) {
  return Error(ErrorKind::kInvalidArgument, "", text).Family(ErrorFamily::kIllegalArgument);
}

Result<std::optional<std::int64_t>> PositiveOption(const plan::Options& options, const char* name) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return std::optional<std::int64_t>();
  }
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (code != std::errc() || end != text->data() + text->size() || value <= 0) {
    return BadOption("Invalid value '" + *text + "' for option '" + name + "', must be a positive integer");
  }
  return std::optional<std::int64_t>(value);
}

Result<bool> FlagOption(const plan::Options& options, const char* name) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return false;
  }
  if (EqualsIgnoreAsciiCase(*text, "true") || EqualsIgnoreAsciiCase(*text, "false")) {
    return EqualsIgnoreAsciiCase(*text, "true");
  }
  return BadOption("Invalid value '" + *text + "' for option '" + name + "', must be 'true' or 'false'");
}

/// `7d`, `30s`, `100`: milliseconds, a number alone too.
Result<std::int64_t> DurationOption(const plan::Options& options, const char* name, std::int64_t fallback) {
  const std::string* given = plan::FindOption(options, name);
  if (given == nullptr) {
    return fallback;
  }
  const std::string text = AsciiLower(TrimAscii(*given));
  const std::size_t digits = text.find_first_not_of("0123456789");
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit = digits == std::string::npos ? "ms" : std::string(TrimAscii(text.substr(digits)));
  if (code == std::errc() && end != text.data()) {
    if (unit == "ms") return value;
    if (unit == "us") return value / 1000;
    if (unit == "s") return value * 1000;
    if (unit == "m" || unit == "min") return value * 60000;
    if (unit == "h") return value * 3600000;
    if (unit == "d") return value * 86400000;
  }
  return Error(ErrorKind::kInvalidArgument, "",
               "Failed to parse time string: " + *given +
                   ". Time must be specified as seconds (s), milliseconds (ms), "
                   "microseconds (us), minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us.")
      .Family(ErrorFamily::kNumberFormat);
}

enum class CleanMode { kOff, kArchive, kDelete };

struct SourceOptions {
  std::optional<std::int64_t> max_files;
  std::optional<std::int64_t> max_bytes;
  bool latest_first = false;
  bool file_name_only = false;
  std::int64_t max_file_age_ms = 7LL * 86400000;
  std::int64_t max_cached_files = 10000;
  double discard_ratio = 0.2;
  CleanMode clean = CleanMode::kOff;
  std::string archive_folder;
};

Result<SourceOptions> ParseSourceOptions(const plan::Options& options) {
  for (const char* name : {"modifiedBefore", "modifiedAfter"}) {
    if (plan::FindOption(options, name) != nullptr) {
      return BadOption("option '" + AsciiLower(name) + "' is not allowed in file stream sources");
    }
  }
  SourceOptions out;
  FLEUVE_ASSIGN(out.max_files, PositiveOption(options, "maxFilesPerTrigger"));
  FLEUVE_ASSIGN(out.max_bytes, PositiveOption(options, "maxBytesPerTrigger"));
  if (out.max_files && out.max_bytes) {
    return BadOption("Options 'maxFilesPerTrigger' and 'maxBytesPerTrigger' can't be both set at the same time");
  }
  FLEUVE_ASSIGN(out.latest_first, FlagOption(options, "latestFirst"));
  FLEUVE_ASSIGN(out.file_name_only, FlagOption(options, "fileNameOnly"));
  FLEUVE_ASSIGN(out.max_file_age_ms, DurationOption(options, "maxFileAge", out.max_file_age_ms));
  if (const std::string* text = plan::FindOption(options, "maxCachedFiles")) {
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), out.max_cached_files);
    if (code != std::errc() || end != text->data() + text->size() || out.max_cached_files < 0) {
      return BadOption("Invalid value '" + *text +
                       "' for option 'maxCachedFiles', must be an integer greater than or equal to 0");
    }
  }
  if (const std::string* text = plan::FindOption(options, "discardCachedInputRatio")) {
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), out.discard_ratio);
    if (code != std::errc() || end != text->data() + text->size() || !(out.discard_ratio >= 0) ||
        out.discard_ratio > 1) {
      return BadOption("Invalid value '" + *text +
                       "' for option 'discardCachedInputRatio', must be a positive double value not greater than 1.0");
    }
  }
  if (const std::string* mode = plan::FindOption(options, "cleanSource")) {
    const std::string lower = AsciiLower(*mode);
    if (lower == "archive") {
      out.clean = CleanMode::kArchive;
      const std::string* folder = plan::FindOption(options, "sourceArchiveDir");
      if (folder == nullptr) {
        return BadOption("Archive mode must be used with 'sourceArchiveDir' option.");
      }
      FLEUVE_ASSIGN(out.archive_folder, LocalPathOf(*folder));
    } else if (lower == "delete") {
      out.clean = CleanMode::kDelete;
    } else if (lower != "off") {
      return BadOption("Invalid mode for clean source option Some(" + *mode + "). Must be one of ARCHIVE,DELETE,OFF");
    }
  }
  return out;
}

/// A path as the log holds it: `file:///a%20b`.
std::string LogUri(const std::string& path) { return "file://" + storage::ToFileUri(path).substr(5); }

/// Which files have been seen: by path or by name, forgotten when older than the newest by more than an age.
class SeenFiles {
 public:
  SeenFiles(std::int64_t max_age_ms, bool name_only) : max_age_ms_(max_age_ms), name_only_(name_only) {}

  bool IsNew(const std::string& path, std::int64_t time) const {
    return time >= last_purge_ && !times_.contains(KeyOf(path));
  }
  void Add(const std::string& path, std::int64_t time) {
    times_[KeyOf(path)] = time;
    newest_ = std::max(newest_, time);
  }
  void Purge() {
    if (max_age_ms_ == INT64_MAX) {
      return;
    }
    last_purge_ = newest_ - max_age_ms_;
    std::erase_if(times_, [&](const auto& entry) { return entry.second < last_purge_; });
  }

 private:
  std::string KeyOf(const std::string& path) const { return name_only_ ? path.substr(path.rfind('/') + 1) : path; }

  const std::int64_t max_age_ms_;
  const bool name_only_;
  std::unordered_map<std::string, std::int64_t> times_;
  std::int64_t newest_ = 0;
  std::int64_t last_purge_ = 0;
};

/// What an entry of the log says.
struct LogFile {
  std::string path;
  std::int64_t modified_ms = 0;
  std::int64_t batch = 0;
};

Result<LogFile> ParseEntry(const std::string& line) {
  FLEUVE_ASSIGN(const Json entry, Json::Parse(line));
  LogFile file;
  FLEUVE_ASSIGN(file.path, LocalPathOf(entry["path"].AsString()));
  file.modified_ms = entry["timestamp"].AsInt();
  file.batch = entry["batchId"].AsInt();
  return file;
}

std::string FormatEntry(const ListedFile& file, std::int64_t batch) {
  Json line = Json::Object{};
  line.Set("path", LogUri(file.path));
  line.Set("timestamp", file.modified_ms);
  line.Set("batchId", batch);
  return line.Dump();
}

Result<std::int64_t> ParseOffset(const Offset& offset) {
  std::int64_t number = 0;
  const auto [end, code] = std::from_chars(offset.data(), offset.data() + offset.size(), number);
  if (code == std::errc() && end == offset.data() + offset.size()) {
    return number;
  }
  FLEUVE_ASSIGN(const Json json, Json::Parse(offset));
  const Json* value = json.Find("logOffset");
  if (value == nullptr || !value->is_int()) {
    return Error(ErrorKind::kCorrupt, "", "The offset " + offset + " is none of a file source.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  return value->AsInt();
}

class FileSource final : public Source {
 public:
  FileSource(std::shared_ptr<const FileRelation> relation, SourceContext context, SourceOptions options)
      : relation_(std::move(relation)),
        context_(std::move(context)),
        options_(std::move(options)),
        log_(context_.checkpoint.store, context_.metadata_path, CompactInterval(context_)),
        seen_(
            options_.latest_first && (options_.max_files || options_.max_bytes) ? INT64_MAX : options_.max_file_age_ms,
            options_.file_name_only) {}

  Result<void> Open() {
    FLEUVE_TRY(log_.Open());
    FLEUVE_ASSIGN(const auto lines, log_.ReadAll());
    for (const std::string& line : lines) {
      FLEUVE_ASSIGN(LogFile file, ParseEntry(line));
      seen_.Add(file.path, file.modified_ms);
      known_[file.batch].push_back(std::move(file));
    }
    seen_.Purge();
    if (options_.clean != CleanMode::kOff) {
      FLEUVE_ASSIGN(const auto logged, SinkLogFiles(relation_->path()));
      if (logged) {
        return Error(ErrorKind::kUnsupported, "",
                     "Clean up source files is not supported when reading from the output directory of FileStreamSink.")
            .Family(ErrorFamily::kUnsupportedOperation);
      }
    }
    if (options_.clean == CleanMode::kArchive && (options_.archive_folder + "/").starts_with(relation_->path() + "/")) {
      return BadOption("Base archive path cannot be placed under the source path: " + options_.archive_folder);
    }
    return {};
  }

  const types::Schema& schema() const override { return relation_->schema(); }
  std::string description() const override { return "FileStreamSource[" + storage::ToFileUri(relation_->path()) + "]"; }
  Result<std::optional<Offset>> InitialOffset() override { return std::optional<Offset>(); }

  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission admission) override {
    std::int64_t from = -1;
    if (start) {
      FLEUVE_ASSIGN(from, ParseOffset(*start));
    }
    // An entry that was written before a crash is the next batch.
    if (log_.newest() > from && !delivered_all_) {
      delivered_all_ = true;
      return std::optional<Offset>(OffsetText(log_.newest()));
    }
    delivered_all_ = true;
    std::vector<ListedFile> fresh;
    if (has_unread_) {
      fresh = std::move(unread_);
      unread_.clear();
      has_unread_ = false;
    } else {
      std::vector<ListedFile> all;
      if (available_) {
        all = *available_;
      } else {
        FLEUVE_ASSIGN(all, List());
      }
      for (ListedFile& file : all) {
        if (seen_.IsNew(file.path, file.modified_ms)) {
          fresh.push_back(std::move(file));
        }
      }
      if (options_.file_name_only) {
        DropEqualNames(fresh);
      }
    }
    std::vector<ListedFile> rest;
    if (admission == Admission::kRateLimited) {
      Limit(fresh, rest);
    }
    if (!rest.empty()) {
      if (static_cast<std::int64_t>(rest.size()) > options_.max_cached_files) {
        rest.resize(static_cast<std::size_t>(options_.max_cached_files));
      }
      has_unread_ = !rest.empty();
      unread_ = std::move(rest);
    }
    for (const ListedFile& file : fresh) {
      seen_.Add(file.path, file.modified_ms);
    }
    seen_.Purge();
    if (!fresh.empty()) {
      const std::int64_t id = log_.newest() + 1;
      std::vector<std::string> lines;
      for (const ListedFile& file : fresh) {
        lines.push_back(FormatEntry(file, id));
        known_[id].push_back({file.path, file.modified_ms, id});
      }
      FLEUVE_TRY(log_.Append(id, lines));
      FLEUVE_TRY(DeleteExpired());
    }
    if (log_.newest() < 0) {
      return std::optional<Offset>();
    }
    return std::optional<Offset>(OffsetText(log_.newest()));
  }

  Result<void> PrepareForAvailableNow() override {
    FLEUVE_ASSIGN(available_, List());
    return {};
  }

  Result<void> Recover(const std::optional<Offset>& start, const std::optional<Offset>& end) override {
    if (start) {
      // Which files were read is known from this log alone: without it they would all be read again.
      FLEUVE_ASSIGN(const std::int64_t from, ParseOffset(*start));
      if (from > log_.newest()) {
        return Error(ErrorKind::kCorrupt, "",
                     "batch " + std::to_string(from) + " doesn't exist in the file source's log below " +
                         context_.checkpoint.path +
                         ": which files were read is not known any more. Restore the checkpoint's folder `sources`, or "
                         "start with a new checkpoint location.");
      }
    }
    if (end) {
      FLEUVE_ASSIGN(const std::int64_t to, ParseOffset(*end));
      if (to > log_.newest()) {
        return Error(ErrorKind::kNotFound, "", "the file log has no entry " + std::to_string(to));
      }
    }
    return {};
  }

  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override {
    std::int64_t from = -1;
    if (start) {
      FLEUVE_ASSIGN(from, ParseOffset(*start));
    }
    FLEUVE_ASSIGN(const std::int64_t to, ParseOffset(end));
    const std::string* ignore = plan::FindOption(relation_->reader_options(), "ignoreMissingFiles");
    const bool ignore_missing = ignore != nullptr && EqualsIgnoreAsciiCase(*ignore, "true");
    std::vector<ListedFile> files;
    for (std::int64_t id = from + 1; id <= to; ++id) {
      FLEUVE_ASSIGN(const std::vector<LogFile>* entries, EntriesOf(id));
      for (const LogFile& entry : *entries) {
        auto file = StatFile(entry.path);
        if (!file) {
          if (ignore_missing) {
            continue;
          }
          file = ListedFile{entry.path, 0, entry.modified_ms, entry.modified_ms * 1000000};
        }
        files.push_back(std::move(*file));
      }
    }
    BatchInput input;
    if (!files.empty()) {
      FLEUVE_ASSIGN(input.scan, relation_->Scan(files, context_.config.session_zone));
    }
    return input;
  }

  DurableRecords TakeDurableRecords() override { return log_.TakeDurableRecords(); }

  Result<void> Commit(const Offset& end) override {
    FLEUVE_ASSIGN(const std::int64_t to, ParseOffset(end));
    if (options_.clean != CleanMode::kOff) {
      for (const auto& [id, entries] : known_) {
        if (id > cleaned_ && id <= to) {
          for (const LogFile& entry : entries) {
            Clean(entry);
          }
        }
      }
    }
    cleaned_ = std::max(cleaned_, to);
    // What is committed is in the log; memory keeps the last entries only.
    while (!known_.empty() && known_.begin()->first < to) {
      known_.erase(known_.begin());
    }
    return {};
  }

  bool SetDataListener(std::function<void()> callback) override {
    if (IsGlob(relation_->path())) {
      return false;
    }
    watch_ = WatchFolder(relation_->path(), true, [callback](const FolderEvent& event) {
      // A file that was only created is still being written.
      if (event.is_complete || event.is_directory || event.path.empty()) {
        callback();
      }
    });
    return watch_ != nullptr;
  }

  void Stop() override { watch_.reset(); }

 private:
  /// The number that a setting begins with (a unit of milliseconds may follow).
  static std::int64_t NumberOf(const SourceContext& context, const char* key, std::int64_t fallback) {
    const std::string text = ConfText(context.config, key, std::to_string(fallback));
    std::int64_t value = fallback;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  }
  static std::int64_t CompactInterval(const SourceContext& context) {
    const std::int64_t value = NumberOf(context, "spark.sql.streaming.fileSource.log.compactInterval", 10);
    return value > 0 ? value : 10;
  }

  static Offset OffsetText(std::int64_t id) { return "{\"logOffset\":" + std::to_string(id) + "}"; }

  Result<std::vector<ListedFile>> List() const {
    FLEUVE_ASSIGN(std::vector<ListedFile> files, relation_->List());
    const bool newest_first = options_.latest_first;
    std::sort(files.begin(), files.end(), [newest_first](const ListedFile& a, const ListedFile& b) {
      if (a.modified_ms != b.modified_ms) {
        return newest_first ? a.modified_ms > b.modified_ms : a.modified_ms < b.modified_ms;
      }
      return a.path < b.path;
    });
    return files;
  }

  static void DropEqualNames(std::vector<ListedFile>& files) {
    std::unordered_map<std::string, bool> names;
    std::erase_if(files, [&](const ListedFile& file) {
      return !names.emplace(file.path.substr(file.path.rfind('/') + 1), true).second;
    });
  }

  void Limit(std::vector<ListedFile>& taken, std::vector<ListedFile>& rest) const {
    std::size_t count = taken.size();
    if (options_.max_files) {
      count = std::min(count, static_cast<std::size_t>(*options_.max_files));
    } else if (options_.max_bytes) {
      std::int64_t total = 0;
      count = 0;
      while (count < taken.size()) {
        total += taken[count].size_bytes;
        if (count > 0 && total > *options_.max_bytes) {
          break;
        }
        ++count;
      }
    }
    if (count == taken.size()) {
      return;
    }
    rest.assign(std::make_move_iterator(taken.begin() + static_cast<std::ptrdiff_t>(count)),
                std::make_move_iterator(taken.end()));
    taken.resize(count);
    if (options_.latest_first) {
      rest.clear();
      return;
    }
    // A small remainder is not kept: a new listing may find more.
    double size = static_cast<double>(rest.size());
    double limit = options_.max_files ? static_cast<double>(*options_.max_files) : 0;
    if (options_.max_bytes) {
      size = 0;
      for (const ListedFile& file : rest) {
        size += static_cast<double>(file.size_bytes);
      }
      limit = static_cast<double>(*options_.max_bytes);
    }
    if (size < limit * options_.discard_ratio) {
      rest.clear();
    }
  }

  Result<const std::vector<LogFile>*> EntriesOf(std::int64_t id) {
    const auto found = known_.find(id);
    if (found != known_.end()) {
      return &found->second;
    }
    FLEUVE_ASSIGN(const auto lines, log_.Read(id));
    std::vector<LogFile>& entries = known_[id];
    for (const std::string& line : lines) {
      FLEUVE_ASSIGN(LogFile file, ParseEntry(line));
      if (file.batch == id) {
        entries.push_back(std::move(file));
      }
    }
    return &entries;
  }

  Result<void> DeleteExpired() {
    if (!ConfBool(context_.config, "spark.sql.streaming.fileSource.log.deletion", true)) {
      return {};
    }
    return log_.DeleteExpired(NumberOf(context_, "spark.sql.streaming.minBatchesToRetain", 100),
                              NumberOf(context_, "spark.sql.streaming.fileSource.log.cleanupDelay", 600000),
                              Clock::System()->NowMillis());
  }

  void Clean(const LogFile& entry) const {
    std::error_code code;
    if (options_.clean == CleanMode::kDelete) {
      std::filesystem::remove(entry.path, code);
    } else {
      const std::filesystem::path target = options_.archive_folder + entry.path;
      std::filesystem::create_directories(target.parent_path(), code);
      std::filesystem::rename(entry.path, target, code);
    }
    if (code) {
      LogWarn("cannot clean the source file " + entry.path + ": " + code.message());
    }
  }

  const std::shared_ptr<const FileRelation> relation_;
  const SourceContext context_;
  const SourceOptions options_;
  FileLog log_;
  SeenFiles seen_;
  std::optional<std::vector<ListedFile>> available_;
  std::vector<ListedFile> unread_;
  bool has_unread_ = false;
  bool delivered_all_ = false;
  std::map<std::int64_t, std::vector<LogFile>> known_;
  std::int64_t cleaned_ = -1;
  std::unique_ptr<FolderWatch> watch_;
};

class FileSourceProvider final : public SourceProvider {
 public:
  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig& config) override {
    FLEUVE_ASSIGN(auto relation, FileRelation::Make(request, config));
    return std::shared_ptr<const plan::StreamRelation>(std::move(relation));
  }

  Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                             const SourceContext& context) override {
    auto file_relation = std::dynamic_pointer_cast<const FileRelation>(relation);
    FLEUVE_CHECK(file_relation != nullptr);
    FLEUVE_ASSIGN(SourceOptions options, ParseSourceOptions(file_relation->options()));
    auto source = std::make_unique<FileSource>(std::move(file_relation), context, std::move(options));
    FLEUVE_TRY(source->Open());
    return std::unique_ptr<Source>(std::move(source));
  }
};

}  // namespace

Result<std::shared_ptr<const FileRelation>> FileRelation::Make(const StreamRequest& request,
                                                               const plan::AnalysisConfig& config) {
  auto relation = std::shared_ptr<FileRelation>(new FileRelation());
  FLEUVE_ASSIGN(relation->format_, ParseFormat(request.format));
  relation->provider_ = FormatName(relation->format_);
  relation->options_ = request.options;
  plan::Options reader = request.options;
  if (const std::string container = ContainerOf(request.format); !container.empty()) {
    reader["fleuve.container"] = container;
    relation->provider_ = container;
  }
  FLEUVE_ASSIGN(relation->reader_options_, ReaderOptions(relation->format_, reader, config));
  std::vector<std::string> paths = request.paths;
  if (paths.empty()) {
    if (const std::string* path = plan::FindOption(request.options, "path")) {
      paths.push_back(*path);
    }
  }
  if (paths.empty()) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2047", "'path' is not specified.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  if (paths.size() > 1) {
    return Error::Unsupported("a file stream over several paths");
  }
  FLEUVE_ASSIGN(relation->path_, LocalPathOf(paths[0]));
  if (!IsGlob(relation->path_) && !StatFile(relation->path_)) {
    return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND", "Path does not exist: " + paths[0] + ".")
        .With("path", paths[0]);
  }
  const bool fixed =
      relation->format_ == FileFormat::kText;  // binary files have columns, but no schema of their own here
  const bool given = request.schema && !request.schema->fields().empty();
  if (!given && !fixed && !ConfBool(config, "spark.sql.streaming.schemaInference", false)) {
    return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2048",
                 "Schema must be specified when creating a streaming source DataFrame. If some files already exist in "
                 "the directory, then depending on the file format you may be able to create a static DataFrame on "
                 "that directory with 'spark.read.load(directory)' and infer schema from it.")
        .Family(ErrorFamily::kIllegalArgument);
  }
  relation->find_.filter = {};
  plan::Options find_options = request.options;
  std::erase_if(find_options, [](const auto& option) {
    return EqualsIgnoreAsciiCase(option.first, "modifiedBefore") ||
           EqualsIgnoreAsciiCase(option.first, "modifiedAfter");
  });
  FLEUVE_ASSIGN(relation->find_, MakeFindOptions(find_options, config));
  FLEUVE_ASSIGN(FoundFiles all, FindFiles({relation->path_}, relation->find_, IsGlob(relation->path_)));
  const FoundFiles found = Distinct(std::move(all));
  Partitioning partitioning;
  if (!relation->find_.recursive) {
    const bool infer = ConfBool(config, "spark.sql.sources.partitionColumnTypeInference.enabled", true);
    FLEUVE_ASSIGN(partitioning, DiscoverPartitions(found.files, found.bases, given ? request.schema : std::nullopt,
                                                   infer, config.case_sensitive, config.session_zone));
  }
  types::Schema data;
  if (given) {
    data = *request.schema;
  } else {
    const bool partitioned = !partitioning.schema.fields().empty();
    FLEUVE_ASSIGN(data, InferFileSchema(relation->format_,
                                        partitioned                 ? partitioning.files
                                        : relation->find_.recursive ? found.files
                                                                    : DirectChildren(found).files,
                                        relation->reader_options_, config));
  }
  FLEUVE_ASSIGN(relation->schema_, MakeSchema(relation->format_, data, partitioning.schema, config.case_sensitive));
  relation->case_sensitive_ = config.case_sensitive;
  return std::shared_ptr<const FileRelation>(std::move(relation));
}

Result<std::vector<ListedFile>> FileRelation::List() const {
  FLEUVE_ASSIGN(FoundFiles all, FindFiles({path_}, find_, true));
  const FoundFiles found = Distinct(std::move(all));
  if (find_.recursive) {
    return found.files;
  }
  for (std::size_t i = 0; i < found.files.size(); ++i) {
    if (!PartitionLevels(found.bases[i], found.files[i].path).empty()) {
      return found.files;
    }
  }
  return DirectChildren(found).files;
}

Result<std::shared_ptr<const plan::FileScan>> FileRelation::Scan(const std::vector<ListedFile>& files,
                                                                 const std::string& session_zone) const {
  std::vector<std::vector<std::optional<std::string>>> values;
  SplitSchema schema = schema_;
  const std::vector<std::string> roots = ExpandGlob(path_);
  const auto base_of = [&](const ListedFile& file) -> std::string {
    if (!find_.base_path.empty()) {
      return find_.base_path;
    }
    for (const std::string& root : roots) {
      if (file.path.size() > root.size() && file.path.starts_with(root) && file.path[root.size()] == '/') {
        return root;
      }
    }
    return file.path.substr(0, file.path.rfind('/'));
  };
  if (!find_.recursive) {
    // A column may have appeared in folder names after the stream was defined.
    for (const ListedFile& file : files) {
      for (const auto& [name, value] : PartitionLevels(base_of(file), file.path)) {
        const auto in_data = types::FieldIndex(schema.data, name, case_sensitive_);
        if (!in_data) {
          continue;
        }
        if (*in_data + 1 != schema.data.fields().size()) {
          bool rest_are_levels = true;
          for (std::size_t i = *in_data; i < schema.data.fields().size(); ++i) {
            bool is_level = false;
            for (const auto& [other, ignored] : PartitionLevels(base_of(file), file.path)) {
              is_level = is_level ||
                         types::FieldIndex(types::DataType::Struct({schema.data.fields()[i]}), other, case_sensitive_);
            }
            rest_are_levels = rest_are_levels && is_level;
          }
          if (!rest_are_levels) {
            return Error::Unsupported("partition column " + name +
                                      " that stands before data columns in the schema of a file stream");
          }
        }
        std::vector<types::StructField> partition(schema.data.fields().begin() + static_cast<std::ptrdiff_t>(*in_data),
                                                  schema.data.fields().end());
        std::vector<types::StructField> data(schema.data.fields().begin(),
                                             schema.data.fields().begin() + static_cast<std::ptrdiff_t>(*in_data));
        partition.insert(partition.end(), schema.partition.fields().begin(), schema.partition.fields().end());
        schema.data = types::DataType::Struct(std::move(data));
        schema.partition = types::DataType::Struct(std::move(partition));
      }
    }
  }
  for (const ListedFile& file : files) {
    std::vector<std::optional<std::string>> row(schema.partition.fields().size());
    if (!row.empty()) {
      for (auto& [name, value] : PartitionLevels(base_of(file), file.path)) {
        if (const auto at = types::FieldIndex(schema.partition, name, case_sensitive_)) {
          row[*at] = std::move(value);
        }
      }
    }
    values.push_back(std::move(row));
  }
  FLEUVE_ASSIGN(auto scan, MakeScan(format_, schema, reader_options_, session_zone, files, values));
  return std::shared_ptr<const plan::FileScan>(std::move(scan));
}

void RegisterFileConnectors(ConnectorRegistry& registry) {
  auto source = std::make_shared<FileSourceProvider>();
  for (const char* format : {"json", "csv", "parquet", "text", "binaryfile", "orc", "avro", "xml"}) {
    registry.AddSource(format, source);
  }
  auto sink = MakeFileSinkProvider();
  for (const char* format : {"json", "csv", "parquet", "text", "orc", "avro", "xml"}) {
    registry.AddSink(format, sink);
  }
}

}  // namespace fleuve::connectors::files
