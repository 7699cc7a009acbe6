#pragma once

/// \file
/// Options, offsets, client and rows of the Kafka connector.

#include <librdkafka/rdkafka.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/cancellation.h"
#include "columnar/record_batch.h"
#include "connectors/sink.h"
#include "types/java_regex.h"

namespace fleuve::connectors::kafka {

using TopicPartition = std::pair<std::string, std::int32_t>;
/// Next offset to read of each partition.
using PartitionOffsets = std::map<TopicPartition, std::int64_t>;

/// Offsets that stand for ends of a partition, as in `startingOffsets`.
constexpr std::int64_t kLatest = -1;
constexpr std::int64_t kEarliest = -2;

/// `t-0`.
std::string NameOf(const TopicPartition& partition);
/// `{"t":{"0":534,"1":134}}`.
std::string OffsetsToJson(const PartitionOffsets& offsets);
/// IllegalArgumentException with an example where the text is none.
Result<PartitionOffsets> OffsetsFromJson(const std::string& text);

enum class Strategy { kSubscribe, kSubscribePattern, kAssign };

/// A position as the user wrote it.
struct OffsetLimit {
  enum class Kind { kEarliest, kLatest, kSpecific, kTimestamp, kTimestamps };
  Kind kind = Kind::kLatest;
  PartitionOffsets offsets;
  /// Milliseconds.
  std::int64_t timestamp = 0;
  PartitionOffsets timestamps;
};

struct SourceOptions {
  Strategy strategy = Strategy::kSubscribe;
  std::vector<std::string> topics;
  std::shared_ptr<const types::JavaRegex> pattern;
  std::string pattern_text;
  std::vector<TopicPartition> assigned;
  /// Settings of the client, Java names without `kafka.`.
  std::map<std::string, std::string> client;
  bool include_headers = false;
  bool fail_on_data_loss = true;
  std::string group_id_prefix;
  std::optional<std::int64_t> max_offsets;
  std::optional<std::int64_t> min_offsets;
  std::int64_t max_trigger_delay_ms = 15 * 60 * 1000;
  std::int64_t poll_timeout_ms = 120000;
  int fetch_retries = 3;
  std::int64_t fetch_retry_ms = 10;
  /// startingOffsetsByTimestampStrategy is `latest`.
  bool latest_when_no_match = false;
  /// As written; parsed when the query starts (streams) or at once (batch).
  plan::Options all;

  std::string description() const;
};

/// What `load()` refuses, in Spark's order and words.
Result<SourceOptions> ParseSourceOptions(const plan::Options& options, bool is_stream);
/// startingTimestamp, startingOffsetsByTimestamp, startingOffsets (or ending...), the first that is set.
Result<OffsetLimit> ParseLimit(const plan::Options& options, bool is_start, OffsetLimit::Kind fallback);
/// Refusals of batch reads: latest as a start, earliest as an end.
Result<void> CheckBatchLimits(const OffsetLimit& start, const OffsetLimit& end);

/// Settings of the producer, Java names without `kafka.`.
Result<std::map<std::string, std::string>> ProducerSettings(const plan::Options& options);

struct ConfDeleter {
  void operator()(rd_kafka_conf_t* conf) const { rd_kafka_conf_destroy(conf); }
};
using ConfPtr = std::unique_ptr<rd_kafka_conf_t, ConfDeleter>;
/// librdkafka's configuration of Java settings. kUnsupported by name for what it does not have.
Result<ConfPtr> MakeConf(const std::map<std::string, std::string>& settings, bool is_producer);
/// A setting that the connector itself serves, as milliseconds or a count.
std::int64_t NumberSetting(const std::map<std::string, std::string>& settings, const std::string& name,
                           std::int64_t fallback);

struct KafkaDeleter {
  void operator()(rd_kafka_t* client) const;
};
using KafkaPtr = std::unique_ptr<rd_kafka_t, KafkaDeleter>;
Result<KafkaPtr> MakeClient(rd_kafka_type_t type, ConfPtr conf);
/// An error of the broker or the network.
Error BrokerError(rd_kafka_resp_err_t code, const std::string& what);

/// key, value, topic, partition, offset, timestamp, timestampType[, headers].
types::Schema RecordSchema(bool include_headers);

/// Takes the bytes of a large read out of the process's memory: they lie in a nameless file that is mapped, whose pages
/// the system writes out and forgets as it needs. Threads: one at a time.
class Spill {
 public:
  /// \param limit_bytes  so much of a read stays where it is.
  explicit Spill(std::int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  /// A mapped copy of the bytes; null: they stay where they are (the read is small, or there is no room on the disk).
  std::shared_ptr<const std::uint8_t> Store(const std::vector<std::uint8_t>& bytes);

 private:
  const std::int64_t limit_bytes_;
  std::int64_t seen_bytes_ = 0;
};

/// Collects records into Arrow batches. Threads: one at a time.
class RowBuilder {
 public:
  RowBuilder(std::shared_ptr<const types::Schema> schema, bool include_headers, std::shared_ptr<Spill> spill);
  ~RowBuilder();
  RowBuilder(RowBuilder&&) noexcept;
  RowBuilder& operator=(RowBuilder&&) noexcept;
  void Add(const rd_kafka_message_t& message);
  /// The batches so far; the builder is empty afterwards.
  std::vector<columnar::RecordBatch> Take();
  /// Of keys, values and headers so far.
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Columns;
  void Close();

  std::shared_ptr<const types::Schema> schema_;
  bool include_headers_;
  std::shared_ptr<Spill> spill_;
  std::unique_ptr<Columns> columns_;
  std::vector<columnar::RecordBatch> done_;
  std::int64_t bytes_ = 0;
};

/// What a range of one partition holds.
struct OffsetRange {
  TopicPartition partition;
  std::int64_t from = 0;
  /// Exclusive.
  std::int64_t until = 0;
};

/// Records that were asked for are not there any more. \param condition  none in a stream, whose errors stand without.
Error DataLost(const std::string& reason, std::string condition = "");

/// One consumer: topics, offsets, records. No offset is ever committed, no group is joined. Threads: one at a time, but
/// the listener's callback comes from any thread.
class Consumer {
 public:
  /// \param group_id  for the broker's quotas and logs.
  static Result<std::unique_ptr<Consumer>> Open(const SourceOptions& options, const std::string& group_id,
                                                CancellationTokenPtr token);
  ~Consumer();

  /// The partitions that the options mean now.
  Result<std::vector<TopicPartition>> Partitions();
  /// The end (`kLatest`) or the beginning (`kEarliest`) of each partition.
  Result<PartitionOffsets> EndsOf(const std::vector<TopicPartition>& partitions, std::int64_t which);
  /// The offsets that a limit means for these partitions.
  Result<PartitionOffsets> Resolve(const OffsetLimit& limit, const std::vector<TopicPartition>& partitions,
                                   bool is_start);
  /// The records of the ranges, by partition.
  Result<std::vector<columnar::RecordBatch>> Read(const std::vector<OffsetRange>& ranges,
                                                  const std::shared_ptr<const types::Schema>& schema);
  /// Begins to read the ranges, which `ReadSome` then does.
  Result<void> Begin(const std::vector<OffsetRange>& ranges);
  /// The next records: all that are left, or as many as have about `most_bytes`. Empty only at the end of the ranges.
  /// \param token  ends the wait, beside the consumer's own; may be null.
  Result<std::vector<columnar::RecordBatch>> ReadSome(const std::shared_ptr<const types::Schema>& schema,
                                                      std::int64_t most_bytes, const CancellationTokenPtr& token);
  /// True when the ranges are read.
  bool at_end() const { return open_.empty(); }
  /// Fetches from here on, so that the listener hears of new records.
  Result<void> Position(const PartitionOffsets& offsets);
  /// `callback` is called when records come in.
  void Listen(std::function<void()> callback);
  /// The end of what is lost: an error, or a warning without failOnDataLoss.
  Result<void> DataLoss(const std::string& reason) const;

 private:
  Consumer(SourceOptions options, CancellationTokenPtr token, KafkaPtr client, KafkaPtr query);
  /// The first offset at or after a time (milliseconds, or `kLatest`, `kEarliest`) of each partition; negative where
  /// there is none.
  Result<PartitionOffsets> QueryTimes(const PartitionOffsets& times);
  Result<std::vector<TopicPartition>> AllPartitions(const std::string* topic);
  Result<void> Assign(const PartitionOffsets& offsets);
  /// Moves what has come in from the client's queue into `held_`.
  Result<int> Pump(int timeout_ms);
  /// As `ReadSome`, into builders with this spill.
  Result<std::vector<columnar::RecordBatch>> ReadInto(const std::shared_ptr<const types::Schema>& schema,
                                                      std::int64_t most_bytes, const std::shared_ptr<Spill>& spill,
                                                      const CancellationTokenPtr& token);

  struct MessageDeleter {
    void operator()(rd_kafka_message_t* message) const { rd_kafka_message_destroy(message); }
  };
  using MessagePtr = std::unique_ptr<rd_kafka_message_t, MessageDeleter>;
  /// One assigned partition.
  struct Feed {
    /// The next offset wanted from `held` (or from the client where that is empty).
    std::int64_t next = 0;
    std::deque<MessagePtr> held;
    /// Nothing below this offset is still to come.
    std::int64_t reached = 0;
    bool paused = false;
    /// The broker no longer has `next`.
    bool out_of_range = false;
  };

  const SourceOptions options_;
  const CancellationTokenPtr token_;
  std::int64_t api_timeout_ms_ = 60000;
  std::int64_t chunk_ = 1000;
  KafkaPtr client_;
  /// Asks for topics and offsets: on the connection of the records such questions wait for the answer to a fetch.
  KafkaPtr query_;
  rd_kafka_queue_t* queue_ = nullptr;
  std::map<TopicPartition, Feed> feeds_;
  /// Ranges that are being read.
  std::map<TopicPartition, OffsetRange> open_;
  std::optional<Error> failure_;
  std::shared_ptr<std::function<void()>> callback_;
};

/// Opens a consumer of its own for a read that happens again.
using OpenConsumer = std::function<Result<std::unique_ptr<Consumer>>()>;
/// Makes plans that together read ranges piece by piece while they run, so that a batch of any size needs the memory of
/// a few pieces. The plans of one call belong together: they may run again once a run of all of them is over.
/// \param consumer  has begun to read `ranges`: the plans of the first call go on with it; it outlives their runs and
/// does nothing else while they last. \param first  what it has given so far.
std::function<std::vector<plan::PlanPtr>()> Feed(Consumer* consumer, std::vector<columnar::RecordBatch> first,
                                                 std::vector<OffsetRange> ranges, OpenConsumer open,
                                                 std::shared_ptr<const types::Schema> schema);

std::shared_ptr<SourceProvider> MakeKafkaSourceProvider();

/// Where records without a key and a partition go: they stay with one partition for 16 kB of values, then with another,
/// as with Java's producer; records with a key go by its murmur2 hash. Any thread.
class StickyPartitioner {
 public:
  /// Makes producers of this configuration ask this object, which outlives them. The message opaque of their records is
  /// the size of the value in bytes.
  Result<void> Install(rd_kafka_conf_t* conf);
  /// For the client's callback. \param partitions  how many the topic has, 1 or more.
  std::int32_t Next(const rd_kafka_topic_t* topic, std::int32_t partitions, std::int64_t bytes);

 private:
  struct Stay {
    std::int32_t partition = 0;
    std::int64_t bytes_left = 0;
  };
  std::mutex mutex_;
  std::minstd_rand random_{std::random_device()()};
  std::unordered_map<const rd_kafka_topic_t*, Stay> stays_;
};

/// Produces rows. Threads: one at a time.
class Producer {
 public:
  static Result<std::unique_ptr<Producer>> Open(const plan::Options& options);
  ~Producer();
  /// Checks the columns of a plan's visible output and gives the plan that the rows come from: topic, key, value,
  /// headers, partition. Errors in Spark's words.
  Result<plan::PlanPtr> Project(const plan::PlanPtr& input) const;
  /// Hands the rows of a projected plan to the client. Call `Flush` at the end.
  Result<std::int64_t> Produce(columnar::BatchReader& rows, const CancellationTokenPtr& token);
  /// Waits until the broker has taken everything; the first refusal is the error.
  Result<void> Flush(const CancellationTokenPtr& token);
  /// kafka.transactional.id is set: rows become visible with `CommitTransaction`.
  bool is_transactional() const { return !transactional_id_.empty(); }
  /// Ends what an earlier producer of this id left open and makes it unable to write more. Once, before the first
  /// transaction.
  Result<void> InitTransactions(const CancellationTokenPtr& token);
  Result<void> BeginTransaction();
  /// Rows of the transaction become visible together with the record that `group` has done everything up to `batch`.
  Result<void> CommitTransaction(const std::string& group, std::int64_t batch);
  void AbortTransaction();
  /// The newest batch that `group` has recorded; -1: none.
  Result<std::int64_t> NewestBatch(const std::string& group) const;
  /// What the query does not prefix with a condition.
  void set_plain_errors(bool plain) { plain_errors_ = plain; }

 private:
  Producer() = default;
  Result<void> Check() const;

  StickyPartitioner partitioner_;  // outlives the client, which calls it
  KafkaPtr client_;
  std::optional<std::string> topic_;
  std::map<std::string, std::string> settings_;
  std::string transactional_id_;
  std::int64_t max_block_ms_ = 60000;
  bool plain_errors_ = false;
  struct Outcome;
  std::unique_ptr<Outcome> outcome_;
};

}  // namespace fleuve::connectors::kafka
