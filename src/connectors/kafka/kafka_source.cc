#include <algorithm>
#include <cmath>
#include <functional>

#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "checkpoint/log_folder.h"
#include "connectors/kafka/kafka.h"
#include "connectors/kafka/kafka_internal.h"
#include "connectors/stream_relation.h"

namespace fleuve::connectors::kafka {

namespace {

std::vector<TopicPartition> KeysOf(const PartitionOffsets& offsets) {
  std::vector<TopicPartition> keys;
  for (const auto& [partition, offset] : offsets) {
    keys.push_back(partition);
  }
  return keys;
}

/// Offsets up to `limit` records after `from`, each partition in proportion to what it has.
PartitionOffsets Limited(std::int64_t limit, const PartitionOffsets& from, const PartitionOffsets& until) {
  double total = 0;
  std::map<TopicPartition, std::int64_t> sizes;
  for (const auto& [partition, end] : until) {
    const auto begin = from.find(partition);
    if (begin != from.end() && end > begin->second) {
      sizes[partition] = end - begin->second;
      total += static_cast<double>(end - begin->second);
    }
  }
  PartitionOffsets out = until;
  for (const auto& [partition, size] : sizes) {
    const double share = static_cast<double>(limit) * (static_cast<double>(size) / total);
    // Small partitions are not starved.
    const auto records = static_cast<std::int64_t>(share < 1 ? std::ceil(share) : std::floor(share));
    out[partition] = std::min(until.at(partition), from.at(partition) + records);
  }
  return out;
}

/// So much of a batch is read before it runs.
constexpr std::int64_t kReadAheadBytes = std::int64_t{16} << 20;

std::string GroupId(const SourceOptions& options, const std::string& place) {
  return options.group_id_prefix + "-" + NewUuid() + "-" +
         std::to_string(static_cast<std::int32_t>(std::hash<std::string>()(place)));
}

/// A Kafka stream as the analyzer sees it.
class KafkaRelation final : public BasicStreamRelation {
 public:
  KafkaRelation(SourceOptions options, types::Schema schema)
      : BasicStreamRelation(std::move(schema), "kafka", "kafka", options.all), parsed_(std::move(options)) {}
  const SourceOptions& parsed() const { return parsed_; }

 private:
  const SourceOptions parsed_;
};

class KafkaSource final : public Source {
 public:
  KafkaSource(SourceOptions options, SourceContext context, std::unique_ptr<Consumer> consumer)
      : options_(std::move(options)),
        context_(std::move(context)),
        schema_(std::make_shared<const types::Schema>(RecordSchema(options_.include_headers))),
        consumer_(std::move(consumer)) {}

  const types::Schema& schema() const override { return *schema_; }
  std::string description() const override { return options_.description(); }
  bool offsets_stand_alone() const override { return true; }

  Result<std::optional<Offset>> InitialOffset() override {
    checkpoint::LogFolder log(context_.checkpoint.store, context_.metadata_path);
    auto text = log.Read("0");
    if (text.ok()) {
      // Spark's first byte is a zero: its readers of long ago expect one.
      const std::size_t brace = text->find('{');
      if (brace == std::string::npos) {
        return Error(ErrorKind::kCorrupt, "", "The initial offsets in " + log.PathOf("0") + " cannot be read.");
      }
      FLEUVE_ASSIGN(initial_, OffsetsFromJson(text->substr(brace)));
      return std::optional<Offset>(OffsetsToJson(initial_));
    }
    if (text.error().kind() != ErrorKind::kNotFound) {
      return std::move(text).error();
    }
    auto limit = ParseLimit(options_.all, /*is_start=*/true, OffsetLimit::Kind::kLatest);
    if (!limit.ok()) {
      return std::move(limit).error();
    }
    FLEUVE_ASSIGN(const auto partitions, consumer_->Partitions());
    FLEUVE_ASSIGN(initial_, Plain(consumer_->Resolve(*limit, partitions, /*is_start=*/true)));
    const std::string json = OffsetsToJson(initial_);
    FLEUVE_TRY(log.Write("0", std::string(1, '\0') + "v1\n" + json));
    const std::string sources = context_.metadata_path.substr(0, context_.metadata_path.rfind('/'));
    records_ = {{log.PathOf("0")}, {log.path(), sources, context_.checkpoint.path}};
    return std::optional<Offset>(json);
  }

  Result<std::optional<Offset>> LatestOffset(const std::optional<Offset>& start, Admission admission) override {
    FLEUVE_ASSIGN(const PartitionOffsets from, OffsetsFromJson(start ? *start : OffsetsToJson(initial_)));
    if (available_now_ && target_) {
      latest_ = *target_;
    } else {
      FLEUVE_ASSIGN(latest_, Newest());
      if (available_now_) {
        target_ = latest_;
      }
    }
    PartitionOffsets end = latest_;
    if (admission == Admission::kRateLimited) {
      if (options_.min_offsets && IsDelayed(from)) {
        return std::optional<Offset>(OffsetsToJson(from));
      }
      if (options_.max_offsets) {
        PartitionOffsets begin = from;
        FLEUVE_ASSIGN(const PartitionOffsets fresh, NewPartitions(from, latest_));
        begin.insert(fresh.begin(), fresh.end());
        end = Limited(*options_.max_offsets, begin, latest_);
      }
    }
    if (end == from && listening_) {
      FLEUVE_TRY(consumer_->Position(from));
    }
    return std::optional<Offset>(OffsetsToJson(end));
  }

  Result<void> PrepareForAvailableNow() override {
    available_now_ = true;
    return {};
  }

  Result<BatchInput> Read(const std::optional<Offset>& start, const Offset& end) override {
    FLEUVE_ASSIGN(const PartitionOffsets from, OffsetsFromJson(start ? *start : OffsetsToJson(initial_)));
    FLEUVE_ASSIGN(const PartitionOffsets until, OffsetsFromJson(end));
    std::string gone;
    for (const auto& [partition, offset] : from) {
      if (!until.contains(partition)) {
        gone += (gone.empty() ? "" : ", ") + NameOf(partition);
      }
    }
    if (!gone.empty()) {
      FLEUVE_TRY(consumer_->DataLoss("Partitions [" + gone + "] have been deleted"));
    }
    FLEUVE_ASSIGN(const PartitionOffsets fresh, NewPartitions(from, until));
    std::vector<OffsetRange> ranges;
    for (const auto& [partition, offset] : until) {
      const auto known = from.find(partition);
      OffsetRange range{partition, 0, offset};
      if (known != from.end()) {
        range.from = known->second;
      } else if (const auto first = fresh.find(partition); first != fresh.end()) {
        range.from = first->second;
        if (range.from > 0) {
          FLEUVE_TRY(consumer_->DataLoss("Added partition " + NameOf(partition) + " starts from " +
                                         std::to_string(range.from) + " instead of 0"));
        }
      }
      if (range.until < range.from) {
        FLEUVE_TRY(consumer_->DataLoss("Partition " + NameOf(partition) + " offset was changed from " +
                                       std::to_string(range.from) + " to " + std::to_string(range.until)));
        range.from = range.until;
      }
      ranges.push_back(std::move(range));
    }
    // A small batch is read before it runs; of a large one what is read so far is the beginning.
    FLEUVE_TRY(consumer_->Begin(ranges));
    FLEUVE_ASSIGN(auto batches, consumer_->ReadSome(schema_, kReadAheadBytes, nullptr));
    BatchInput input;
    if (!consumer_->at_end()) {
      input.make_plans = Feed(
          consumer_.get(), std::move(batches), std::move(ranges),
          [options = options_, path = context_.metadata_path, token = context_.token] {
            return Consumer::Open(options, GroupId(options, path), token);
          },
          schema_);
      return input;
    }
    input.row_count = 0;
    for (const columnar::RecordBatch& batch : batches) {
      input.row_count += batch.row_count();
    }
    auto rows = std::make_shared<plan::RowScan>();
    rows->batches = std::move(batches);
    input.rows = std::move(rows);
    return input;
  }

  DurableRecords TakeDurableRecords() override { return std::exchange(records_, {}); }

  std::map<std::string, std::string> Metrics(const std::optional<Offset>& latest_consumed) override {
    if (!latest_consumed || latest_.empty()) {
      return {};
    }
    auto consumed = OffsetsFromJson(*latest_consumed);
    if (!consumed.ok() || consumed->empty()) {
      return {};
    }
    std::int64_t lowest = INT64_MAX;
    std::int64_t highest = 0;
    double sum = 0;
    std::int64_t count = 0;
    for (const auto& [partition, offset] : latest_) {
      const auto at = consumed->find(partition);
      const std::int64_t behind = at == consumed->end() ? offset : std::max<std::int64_t>(0, offset - at->second);
      lowest = std::min(lowest, behind);
      highest = std::max(highest, behind);
      sum += static_cast<double>(behind);
      ++count;
    }
    return {{"minOffsetsBehindLatest", std::to_string(lowest)},
            {"maxOffsetsBehindLatest", std::to_string(highest)},
            {"avgOffsetsBehindLatest", JavaDoubleToString(sum / static_cast<double>(count))}};
  }

  std::optional<Offset> ReportLatestOffset() override {
    return latest_.empty() ? std::nullopt : std::optional<Offset>(OffsetsToJson(latest_));
  }

  bool SetDataListener(std::function<void()> callback) override {
    // A batch that waits for more records or for its time is looked for again and again.
    listening_ = callback && !options_.min_offsets;
    consumer_->Listen(listening_ ? std::move(callback) : nullptr);
    // New topics of a pattern announce themselves to nobody: they are looked for besides.
    return listening_ && options_.strategy != Strategy::kSubscribePattern;
  }

  void Stop() override { consumer_->Listen(nullptr); }

 private:
  /// In a stream, errors stand without the names of their conditions.
  template <typename T>
  static Result<T> Plain(Result<T> result) {
    if (result.ok()) {
      return result;
    }
    return Error(result.error().kind(), "", result.error().message()).Family(result.error().family());
  }

  Result<PartitionOffsets> Newest() {
    FLEUVE_ASSIGN(const auto partitions, consumer_->Partitions());
    return consumer_->EndsOf(partitions, kLatest);
  }

  /// Where partitions begin that `until` has and `from` has not.
  Result<PartitionOffsets> NewPartitions(const PartitionOffsets& from, const PartitionOffsets& until) {
    std::vector<TopicPartition> added;
    for (const TopicPartition& partition : KeysOf(until)) {
      if (!from.contains(partition)) {
        added.push_back(partition);
      }
    }
    return consumer_->EndsOf(added, kEarliest);
  }

  /// minOffsetsPerTrigger: true where the batch waits for more records, but not longer than maxTriggerDelay.
  bool IsDelayed(const PartitionOffsets& from) {
    const std::int64_t now = Clock::System()->NowMillis();
    std::int64_t waiting = 0;
    for (const auto& [partition, offset] : latest_) {
      const auto at = from.find(partition);
      waiting += offset - (at == from.end() ? 0 : at->second);
    }
    if (now - last_trigger_ms_ < options_.max_trigger_delay_ms && waiting < *options_.min_offsets) {
      return true;
    }
    last_trigger_ms_ = now;
    return false;
  }

  const SourceOptions options_;
  const SourceContext context_;
  const std::shared_ptr<const types::Schema> schema_;
  const std::unique_ptr<Consumer> consumer_;
  PartitionOffsets initial_;
  PartitionOffsets latest_;
  bool available_now_ = false;
  bool listening_ = false;
  std::optional<PartitionOffsets> target_;
  /// The first trigger of a run waits for nothing.
  std::int64_t last_trigger_ms_ = 0;
  DurableRecords records_;
};

class KafkaSourceProvider final : public SourceProvider {
 public:
  Result<std::shared_ptr<const plan::StreamRelation>> Resolve(const StreamRequest& request,
                                                              const plan::AnalysisConfig&) override {
    FLEUVE_ASSIGN(SourceOptions options, ParseSourceOptions(request.options, /*is_stream=*/true));
    types::Schema schema = RecordSchema(options.include_headers);
    if (request.schema && !request.schema->fields().empty()) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "requirement failed: Kafka source has a fixed schema and cannot be set with a custom one")
          .Family(ErrorFamily::kIllegalArgument);
    }
    return std::shared_ptr<const plan::StreamRelation>(
        std::make_shared<KafkaRelation>(std::move(options), std::move(schema)));
  }

  Result<std::unique_ptr<Source>> MakeSource(const std::shared_ptr<const plan::StreamRelation>& relation,
                                             const SourceContext& context) override {
    auto kafka = std::dynamic_pointer_cast<const KafkaRelation>(relation);
    if (!kafka) {
      return Error::Internal("a Kafka stream without a Kafka relation");
    }
    SourceOptions options = kafka->parsed();
    FLEUVE_ASSIGN(auto consumer, Consumer::Open(options, GroupId(options, context.metadata_path), context.token));
    return std::unique_ptr<Source>(std::make_unique<KafkaSource>(std::move(options), context, std::move(consumer)));
  }
};

/// \param start, end  what the message calls the two offsets.
Error StartBeyondEnd(const char* condition, const std::string& start, const std::string& end,
                     const OffsetRange& range) {
  const std::string from = std::to_string(range.from);
  const std::string until = std::to_string(range.until);
  const std::string partition = std::to_string(range.partition.second);
  return Error(ErrorKind::kInvalidArgument, condition,
               "The " + start + " " + from + " is greater than the " + end + " " + until + " for topic " +
                   range.partition.first + " partition " + partition + ".")
      .With("startOffset", from)
      .With("endOffset", until)
      .With("topic", range.partition.first)
      .With("partition", partition);
}

Error EndBeyondNewest(const OffsetRange& range, std::int64_t newest) {
  const std::string partition = NameOf(range.partition);
  return DataLost("Could not read records in offset range [" + std::to_string(range.from) + ", " +
                      std::to_string(range.until) + ") of " + partition + ": its newest offset is " +
                      std::to_string(newest),
                  "KAFKA_DATA_LOSS.COULD_NOT_READ_OFFSET_RANGE")
      .With("topicPartition", partition)
      .With("startOffset", std::to_string(range.from))
      .With("endOffset", std::to_string(range.until));
}

/// Offsets that the user gave for both ends are compared before the broker is asked.
Result<void> CheckGivenRanges(const OffsetLimit& start, const OffsetLimit& end) {
  for (const auto& [partition, from] : start.offsets) {
    const auto until = end.offsets.find(partition);
    if (from >= 0 && until != end.offsets.end() && until->second >= 0 && from > until->second) {
      return StartBeyondEnd("UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET", "specified start offset", "end offset",
                            {partition, from, until->second});
    }
  }
  return {};
}

/// A batch read: offsets are resolved and records read each time the plan is about to run.
class KafkaBatchTable final : public plan::TableSource {
 public:
  KafkaBatchTable(SourceOptions options, OffsetLimit start, OffsetLimit end)
      : options_(std::move(options)),
        start_(std::move(start)),
        end_(std::move(end)),
        schema_(std::make_shared<const types::Schema>(RecordSchema(options_.include_headers))) {}

  const types::Schema& schema() const override { return *schema_; }
  std::string name() const override { return "kafka"; }
  std::string provider() const override { return "kafka"; }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>&,
                                                         const std::vector<plan::Attribute>&) const override {
    return std::shared_ptr<const plan::FileScan>();
  }
  Result<std::shared_ptr<const plan::RowScan>> PlanRows() const override {
    FLEUVE_TRY(CheckGivenRanges(start_, end_));
    FLEUVE_ASSIGN(const auto consumer, Consumer::Open(options_, GroupId(options_, ""), nullptr));
    FLEUVE_ASSIGN(const auto partitions, consumer->Partitions());
    FLEUVE_ASSIGN(const PartitionOffsets from, consumer->Resolve(start_, partitions, /*is_start=*/true));
    FLEUVE_ASSIGN(const PartitionOffsets until, consumer->Resolve(end_, partitions, /*is_start=*/false));
    FLEUVE_ASSIGN(const PartitionOffsets newest, consumer->EndsOf(partitions, kLatest));
    std::vector<OffsetRange> ranges;
    for (const auto& [partition, offset] : until) {
      OffsetRange range{partition, from.at(partition), offset};
      if (range.from > range.until) {
        return StartBeyondEnd("RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET", "resolved start offset",
                              "resolved end offset", range);
      }
      if (const std::int64_t last = newest.at(partition); range.until > last) {
        if (options_.fail_on_data_loss) {
          return EndBeyondNewest(range, last);
        }
        LogWarn("kafka: " + NameOf(partition) + " ends at offset " + std::to_string(last) + ", before the ending one " +
                std::to_string(range.until) + ": failOnDataLoss is false, what is there is read");
        range.until = std::max(range.from, last);
      }
      ranges.push_back(std::move(range));
    }
    auto rows = std::make_shared<plan::RowScan>();
    FLEUVE_ASSIGN(rows->batches, consumer->Read(ranges, schema_));
    return std::shared_ptr<const plan::RowScan>(std::move(rows));
  }

 private:
  const SourceOptions options_;
  const OffsetLimit start_;
  const OffsetLimit end_;
  const std::shared_ptr<const types::Schema> schema_;
};

}  // namespace

Result<std::shared_ptr<const plan::TableSource>> KafkaTable(const plan::Options& options, const plan::AnalysisConfig&) {
  FLEUVE_ASSIGN(OffsetLimit start, ParseLimit(options, /*is_start=*/true, OffsetLimit::Kind::kEarliest));
  FLEUVE_ASSIGN(OffsetLimit end, ParseLimit(options, /*is_start=*/false, OffsetLimit::Kind::kLatest));
  FLEUVE_TRY(CheckBatchLimits(start, end));
  FLEUVE_ASSIGN(SourceOptions parsed, ParseSourceOptions(options, /*is_stream=*/false));
  return std::shared_ptr<const plan::TableSource>(
      std::make_shared<KafkaBatchTable>(std::move(parsed), std::move(start), std::move(end)));
}

std::shared_ptr<SourceProvider> MakeKafkaSourceProvider() { return std::make_shared<KafkaSourceProvider>(); }

}  // namespace fleuve::connectors::kafka
