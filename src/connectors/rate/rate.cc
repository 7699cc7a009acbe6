#include "connectors/rate/rate.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/bytes.h"
#include "base/json.h"
#include "checkpoint/log_folder.h"
#include "columnar/arrays.h"
#include "connectors/stream_relation.h"

namespace fleuve::connectors::rate {

namespace {

constexpr std::int64_t kChunkRows = 65536;

types::Schema RateSchema() {
  return types::DataType::Struct(
      {{"timestamp", types::DataType::Timestamp(), true, {}}, {"value", types::DataType::Long(), true, {}}});
}

Error BadOption(const std::string& value, const std::string& option, const char* must) {
  return Error(ErrorKind::kInvalidArgument, "",
               "Invalid value '" + value + "'. The option '" + option + "' must " + must)
      .Family(ErrorFamily::kIllegalArgument);
}

/// A whole number; NumberFormatException's words otherwise.
Result<std::int64_t> ParseLong(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const std::int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || errno != 0 || std::isspace(static_cast<unsigned char>(text[0])) != 0) {
    return Error(ErrorKind::kInvalidArgument, "", "For input string: \"" + text + "\"")
        .Family(ErrorFamily::kNumberFormat);
  }
  return value;
}

Result<std::int64_t> LongOption(const plan::Options& options, const char* name, std::int64_t fallback) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return fallback;
  }
  return ParseLong(*text);
}

/// `5s`, `2m`, `1h`, `90`: whole seconds.
Result<std::int64_t> SecondsOption(const plan::Options& options, const char* name, std::int64_t fallback) {
  const std::string* given = plan::FindOption(options, name);
  if (given == nullptr) {
    return fallback;
  }
  const std::string text = AsciiLower(TrimAscii(*given));
  const std::size_t digits_end = text.find_first_not_of("0123456789", !text.empty() && text[0] == '-' ? 1 : 0);
  const std::string suffix = digits_end == std::string::npos ? "s" : text.substr(digits_end);
  FLEUVE_ASSIGN(const std::int64_t number, ParseLong(text.substr(0, digits_end)));
  if (suffix == "us") return number / 1000000;
  if (suffix == "ms") return number / 1000;
  if (suffix == "s") return number;
  if (suffix == "m" || suffix == "min") return number * 60;
  if (suffix == "h") return number * 3600;
  if (suffix == "d") return number * 86400;
  return Error(ErrorKind::kInvalidArgument, "",
               "Failed to parse time string: " + *given +
                   ". Time must be specified as seconds (s), milliseconds (ms), "
                   "microseconds (us), minutes (m or min), hour (h), or day (d). E.g. 50s, 100ms, or 250us.")
      .Family(ErrorFamily::kNumberFormat);
}

struct Longs {
  std::vector<std::int64_t> timestamps;
  std::vector<std::int64_t> values;
};

/// Rows of (timestamp, value).
columnar::RecordBatch MakeBatch(const std::shared_ptr<const types::Schema>& schema, std::shared_ptr<const Longs> data) {
  const auto rows = static_cast<std::int64_t>(data->values.size());
  return columnar::MakeBatch(schema, rows,
                             {columnar::MakeArray(rows, 0, {nullptr, data->timestamps.data()}, {}, data),
                              columnar::MakeArray(rows, 0, {nullptr, data->values.data()}, {}, data)});
}

/// Rows first..last-1, their time told by `time_of` in microseconds.
template <typename TimeOf>
BatchInput MakeRows(std::int64_t first, std::int64_t last, TimeOf time_of) {
  auto rows = std::make_shared<plan::RowScan>();
  const auto schema = std::make_shared<const types::Schema>(RateSchema());
  for (std::int64_t at = first; at < last; at += kChunkRows) {
    auto chunk = std::make_unique<Longs>();
    const std::int64_t end = std::min(last, at + kChunkRows);
    chunk->timestamps.reserve(static_cast<std::size_t>(end - at));
    chunk->values.reserve(static_cast<std::size_t>(end - at));
    for (std::int64_t value = at; value < end; ++value) {
      chunk->timestamps.push_back(time_of(value));
      chunk->values.push_back(value);
    }
    rows->batches.push_back(MakeBatch(schema, std::move(chunk)));
  }
  BatchInput input;
  input.rows = std::move(rows);
  input.row_count = std::max<std::int64_t>(0, last - first);
  return input;
}

struct RateOptions {
  std::int64_t rows_per_second = 1;
  std::int64_t ramp_up_seconds = 0;
  std::optional<std::int64_t> partitions;

  static Result<RateOptions> Parse(const plan::Options& options) {
    RateOptions parsed;
    FLEUVE_ASSIGN(parsed.rows_per_second, LongOption(options, "rowsPerSecond", 1));
    if (parsed.rows_per_second <= 0) {
      return BadOption(std::to_string(parsed.rows_per_second), "rowsPerSecond", "be positive");
    }
    FLEUVE_ASSIGN(parsed.ramp_up_seconds, SecondsOption(options, "rampUpTime", 0));
    if (parsed.ramp_up_seconds < 0) {
      return BadOption(std::to_string(parsed.ramp_up_seconds), "rampUpTime", "not be negative");
    }
    if (plan::FindOption(options, "numPartitions") != nullptr) {
      FLEUVE_ASSIGN(const std::int64_t partitions, LongOption(options, "numPartitions", 1));
      if (partitions <= 0) {
        return BadOption(std::to_string(partitions), "numPartitions", "be positive");
      }
      parsed.partitions = partitions;
    }
    return parsed;
  }

  /// The first value that belongs after second `second`.
  std::int64_t ValueAt(std::int64_t second) const {
    const std::int64_t step = rows_per_second / (ramp_up_seconds + 1);
    if (second <= ramp_up_seconds) {
      return step * second * (second + 1) / 2;
    }
    return step * ramp_up_seconds * (ramp_up_seconds + 1) / 2 + (second - ramp_up_seconds) * rows_per_second;
  }
};

class RateSource final : public Source {
 public:
  RateSource(RateOptions options, SourceContext context, Clock* clock)
      : options_(options), context_(std::move(context)), clock_(clock), schema_(RateSchema()) {}

  const types::Schema& schema() const override { return schema_; }
  std::string description() const override {
    return "RateStreamV2[rowsPerSecond=" + std::to_string(options_.rows_per_second) +
           ", rampUpTimeSeconds=" + std::to_string(options_.ramp_up_seconds) +
           ", numPartitions=" + (options_.partitions ? std::to_string(*options_.partitions) : "default");
  }
  bool offsets_stand_alone() const override { return true; }

  Result<std::optional<Offset>> InitialOffset() override {
    checkpoint::LogFolder log(context_.checkpoint.store, context_.metadata_path);
    auto text = log.Read("0");
    if (text.ok()) {
      FLEUVE_ASSIGN(const auto parsed, checkpoint::ParseLogText(*text, 1, log.PathOf("0")));
      if (parsed.lines.empty()) {
        return Error(ErrorKind::kCorrupt, "", "Failed to read log file " + log.PathOf("0") + ". Incomplete log file");
      }
      FLEUVE_ASSIGN(creation_ms_, ParseLong(parsed.lines[0]));
    } else if (text.error().kind() == ErrorKind::kNotFound) {
      creation_ms_ = clock_->NowMillis();
      FLEUVE_TRY(log.Write("0", "v1\n" + std::to_string(creation_ms_)));
      const std::string sources = context_.metadata_path.substr(0, context_.metadata_path.rfind('/'));
      records_ = {{log.PathOf("0")}, {log.path(), sources, context_.checkpoint.path}};
    } else {
      return std::move(text).error();
    }
    last_ms_ = clock_->NowMillis();
    return std::optional<Offset>("0");
  }

  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>&, Admission) override {
    last_ms_ = std::max(last_ms_, clock_->NowMillis());
    const std::int64_t now =
        available_now_ ? *available_now_ : std::max<std::int64_t>(0, (last_ms_ - creation_ms_) / 1000);
    return std::optional<Offset>(std::to_string(now));
  }

  Result<void> PrepareForAvailableNow() override {
    last_ms_ = std::max(last_ms_, clock_->NowMillis());
    available_now_ = std::max<std::int64_t>(0, (last_ms_ - creation_ms_) / 1000);
    return {};
  }

  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override {
    FLEUVE_ASSIGN(const std::int64_t from, ParseLong(start.value_or("0")));
    FLEUVE_ASSIGN(const std::int64_t to, ParseLong(end));
    if (from > to) {
      return Error(
          ErrorKind::kInvalidArgument, "",
          "assertion failed: startSeconds(" + std::to_string(from) + ") > endSeconds(" + std::to_string(to) + ")");
    }
    const std::int64_t first = options_.ValueAt(from);
    const std::int64_t last = options_.ValueAt(to);
    const double ms_per_value =
        last > first ? static_cast<double>((to - from) * 1000) / static_cast<double>(last - first) : 0.0;
    const std::int64_t start_ms = creation_ms_ + from * 1000;
    return MakeRows(first, last, [&](std::int64_t value) {
      return (start_ms + std::llround(static_cast<double>(value - first) * ms_per_value)) * 1000;
    });
  }

  DurableRecords TakeDurableRecords() override { return std::exchange(records_, {}); }

 private:
  const RateOptions options_;
  const SourceContext context_;
  Clock* const clock_;
  const types::Schema schema_;
  std::int64_t creation_ms_ = 0;
  std::int64_t last_ms_ = 0;
  std::optional<std::int64_t> available_now_;
  DurableRecords records_;
};

struct MicroBatchOptions {
  std::int64_t rows_per_batch = 0;
  std::int64_t partitions = 1;
  std::int64_t start_timestamp = 0;
  std::int64_t advance_ms = 1000;

  static Result<MicroBatchOptions> Parse(const plan::Options& options) {
    MicroBatchOptions parsed;
    FLEUVE_ASSIGN(parsed.rows_per_batch, LongOption(options, "rowsPerBatch", 0));
    if (parsed.rows_per_batch <= 0) {
      return BadOption(std::to_string(parsed.rows_per_batch), "rowsPerBatch", "be positive");
    }
    FLEUVE_ASSIGN(parsed.partitions, LongOption(options, "numPartitions", 1));
    if (parsed.partitions <= 0) {
      return BadOption(std::to_string(parsed.partitions), "numPartitions", "be positive");
    }
    FLEUVE_ASSIGN(parsed.start_timestamp, LongOption(options, "startTimestamp", 0));
    if (parsed.start_timestamp < 0) {
      return BadOption(std::to_string(parsed.start_timestamp), "startTimestamp", "be non-negative");
    }
    FLEUVE_ASSIGN(parsed.advance_ms, LongOption(options, "advanceMillisPerBatch", 1000));
    if (parsed.advance_ms < 0) {
      return BadOption(std::to_string(parsed.advance_ms), "advanceMillisPerBatch", "be non-negative");
    }
    return parsed;
  }
};

struct MicroBatchOffset {
  std::int64_t offset = 0;
  std::int64_t timestamp = 0;

  std::string Text() const {
    return "{\"offset\":" + std::to_string(offset) + ",\"timestamp\":" + std::to_string(timestamp) + "}";
  }
  static Result<MicroBatchOffset> Parse(const Offset& text) {
    auto json = Json::Parse(text);
    if (!json.ok() || !(*json)["offset"].is_int() || !(*json)["timestamp"].is_int()) {
      return Error(ErrorKind::kCorrupt, "", "The offset is none of the source rate-micro-batch: " + text);
    }
    return MicroBatchOffset{(*json)["offset"].AsInt(), (*json)["timestamp"].AsInt()};
  }
};

class RateMicroBatchSource final : public Source {
 public:
  explicit RateMicroBatchSource(MicroBatchOptions options) : options_(options), schema_(RateSchema()) {}

  const types::Schema& schema() const override { return schema_; }
  std::string description() const override {
    return "RatePerMicroBatchStream[rowsPerBatch=" + std::to_string(options_.rows_per_batch) +
           ", numPartitions=" + std::to_string(options_.partitions) +
           ", startTimestamp=" + std::to_string(options_.start_timestamp) +
           ", advanceMsPerBatch=" + std::to_string(options_.advance_ms) + "]";
  }
  bool offsets_stand_alone() const override { return true; }

  Result<std::optional<Offset>> InitialOffset() override {
    return std::optional<Offset>(MicroBatchOffset{0, options_.start_timestamp}.Text());
  }
  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission) override {
    if (available_now_ && target_) {
      return target_;
    }
    FLEUVE_ASSIGN(MicroBatchOffset at,
                  MicroBatchOffset::Parse(start ? *start : MicroBatchOffset{0, options_.start_timestamp}.Text()));
    at.offset += options_.rows_per_batch;
    at.timestamp += options_.advance_ms;
    if (available_now_) {
      target_ = at.Text();
    }
    return std::optional<Offset>(at.Text());
  }
  Result<void> PrepareForAvailableNow() override {
    available_now_ = true;
    return {};
  }
  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override {
    FLEUVE_ASSIGN(const MicroBatchOffset from,
                  MicroBatchOffset::Parse(start ? *start : MicroBatchOffset{0, options_.start_timestamp}.Text()));
    FLEUVE_ASSIGN(const MicroBatchOffset to, MicroBatchOffset::Parse(end));
    return MakeRows(from.offset, to.offset, [&](std::int64_t) { return from.timestamp * 1000; });
  }

 private:
  const MicroBatchOptions options_;
  const types::Schema schema_;
  bool available_now_ = false;
  std::optional<Offset> target_;
};

class RateProvider final : public SourceProvider {
 public:
  RateProvider(bool micro_batch, Clock* clock) : micro_batch_(micro_batch), clock_(clock) {}

  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig&) override {
    const std::string name = micro_batch_ ? "rate-micro-batch" : "rate";
    if (request.schema) {
      return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_2242",
                   std::string(micro_batch_ ? "RatePerMicroBatchProvider" : "RateStreamProvider") +
                       " source does not support user-specified schema.")
          .Family(ErrorFamily::kUnsupportedOperation);
    }
    if (micro_batch_) {
      FLEUVE_TRY(MicroBatchOptions::Parse(request.options));
    } else {
      FLEUVE_TRY(RateOptions::Parse(request.options));
    }
    return std::shared_ptr<const plan::StreamRelation>(
        std::make_shared<BasicStreamRelation>(RateSchema(), name, name, request.options));
  }

  Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                             const SourceContext& context) override {
    if (micro_batch_) {
      FLEUVE_ASSIGN(auto options, MicroBatchOptions::Parse(relation->options()));
      return std::unique_ptr<Source>(std::make_unique<RateMicroBatchSource>(options));
    }
    FLEUVE_ASSIGN(auto options, RateOptions::Parse(relation->options()));
    return std::unique_ptr<Source>(std::make_unique<RateSource>(options, context, clock_));
  }

 private:
  const bool micro_batch_;
  Clock* const clock_;
};

}  // namespace

void RegisterRate(ConnectorRegistry& registry, Clock* clock) {
  registry.AddSource("rate", std::make_shared<RateProvider>(false, clock));
  registry.AddSource("rate-micro-batch", std::make_shared<RateProvider>(true, clock));
}

}  // namespace fleuve::connectors::rate
