// The consumer: topics, offsets, records between offsets.

#include <algorithm>
#include <chrono>
#include <set>
#include <thread>

#include "base/clock.h"
#include "base/log.h"
#include "connectors/kafka/kafka_internal.h"

namespace fleuve::connectors::kafka {

namespace {

/// The longest wait between two looks at the cancellation token.
constexpr int kSliceMs = 100;
/// Records of one partition that are held while others are waited for.
constexpr std::size_t kHeldRecords = 20000;
/// What a read keeps in memory.
constexpr std::int64_t kHeldBytes = std::int64_t{256} << 20;

struct ListDeleter {
  void operator()(rd_kafka_topic_partition_list_t* list) const { rd_kafka_topic_partition_list_destroy(list); }
};
using ListPtr = std::unique_ptr<rd_kafka_topic_partition_list_t, ListDeleter>;

ListPtr ListOf(const PartitionOffsets& offsets) {
  ListPtr list(rd_kafka_topic_partition_list_new(static_cast<int>(offsets.size())));
  for (const auto& [partition, offset] : offsets) {
    rd_kafka_topic_partition_list_add(list.get(), partition.first.c_str(), partition.second)->offset = offset;
  }
  return list;
}

std::int64_t NowMs() { return Clock::System()->MonotonicNanos() / 1000000; }

Error NotThere(const std::string& topic) {
  LogWarn("kafka: the topic " + topic + " does not exist");
  return Error(ErrorKind::kNotFound, "",
               "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host this "
               "topic-partition.");
}

std::string NamesOf(const PartitionOffsets& offsets) {
  std::string out = "Set(";
  for (const auto& [partition, offset] : offsets) {
    out += (out.size() > 4 ? ", " : "") + NameOf(partition);
  }
  return out + ")";
}

}  // namespace

Consumer::Consumer(SourceOptions options, CancellationTokenPtr token, KafkaPtr client, KafkaPtr query)
    : options_(std::move(options)), token_(std::move(token)), client_(std::move(client)), query_(std::move(query)) {
  api_timeout_ms_ = NumberSetting(options_.client, "default.api.timeout.ms", 60000);
  chunk_ = std::max<std::int64_t>(1, NumberSetting(options_.client, "max.poll.records", 1000));
}

Result<std::unique_ptr<Consumer>> Consumer::Open(const SourceOptions& options, const std::string& group_id,
                                                 CancellationTokenPtr token) {
  std::map<std::string, std::string> settings = options.client;
  settings.emplace("group.id", group_id);
  FLEUVE_ASSIGN(ConfPtr conf, MakeConf(settings, /*is_producer=*/false));
  FLEUVE_ASSIGN(KafkaPtr client, MakeClient(RD_KAFKA_CONSUMER, std::move(conf)));
  rd_kafka_poll_set_consumer(client.get());
  FLEUVE_ASSIGN(ConfPtr query_conf, MakeConf(settings, /*is_producer=*/false));
  FLEUVE_ASSIGN(KafkaPtr query, MakeClient(RD_KAFKA_CONSUMER, std::move(query_conf)));
  std::unique_ptr<Consumer> consumer(new Consumer(options, std::move(token), std::move(client), std::move(query)));
  consumer->queue_ = rd_kafka_queue_get_consumer(consumer->client_.get());
  return consumer;
}

Consumer::~Consumer() {
  if (queue_ != nullptr) {
    rd_kafka_queue_cb_event_enable(queue_, nullptr, nullptr);
  }
  feeds_.clear();
  if (queue_ != nullptr) {
    rd_kafka_queue_destroy(queue_);
  }
}

Result<std::vector<TopicPartition>> Consumer::AllPartitions(const std::string* topic) {
  rd_kafka_topic_t* handle = nullptr;
  if (topic != nullptr) {
    handle = rd_kafka_topic_new(query_.get(), topic->c_str(), nullptr);
    if (handle == nullptr) {
      return BrokerError(rd_kafka_last_error(), "the topic " + *topic);
    }
  }
  std::vector<TopicPartition> found;
  rd_kafka_resp_err_t code = RD_KAFKA_RESP_ERR__TIMED_OUT;
  const std::int64_t deadline = NowMs() + api_timeout_ms_;
  std::optional<Error> error;
  int missing = 0;
  for (;;) {
    if (token_ && token_->cancelled()) {
      error = Error::Cancelled();
      break;
    }
    const struct rd_kafka_metadata* metadata = nullptr;
    code = rd_kafka_metadata(query_.get(), topic == nullptr ? 1 : 0, handle, &metadata, kSliceMs * 5);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
      rd_kafka_resp_err_t topic_code = RD_KAFKA_RESP_ERR_NO_ERROR;
      for (int t = 0; t < metadata->topic_cnt; ++t) {
        const struct rd_kafka_metadata_topic& one = metadata->topics[t];
        topic_code = one.err;
        for (int p = 0; p < one.partition_cnt; ++p) {
          found.emplace_back(one.topic, one.partitions[p].id);
        }
      }
      rd_kafka_metadata_destroy(metadata);
      if (topic == nullptr || (topic_code == RD_KAFKA_RESP_ERR_NO_ERROR && !found.empty())) {
        break;
      }
      // A topic that was just made may not be known to each broker yet.
      if (++missing > options_.fetch_retries) {
        error = topic_code == RD_KAFKA_RESP_ERR_NO_ERROR || topic_code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART
                    ? NotThere(*topic)
                    : BrokerError(topic_code, "the topic " + *topic);
        break;
      }
      found.clear();
      std::this_thread::sleep_for(std::chrono::milliseconds(std::max<std::int64_t>(kSliceMs, options_.fetch_retry_ms)));
      continue;
    }
    if (NowMs() >= deadline) {
      error = BrokerError(code, "Timed out waiting for a node assignment. Call: describeTopics");
      break;
    }
  }
  if (handle != nullptr) {
    rd_kafka_topic_destroy(handle);
  }
  if (error) {
    return *std::move(error);
  }
  return found;
}

Result<std::vector<TopicPartition>> Consumer::Partitions() {
  const bool is_assign = options_.strategy == Strategy::kAssign;
  std::vector<TopicPartition> found;
  if (options_.strategy == Strategy::kSubscribePattern) {
    FLEUVE_ASSIGN(const auto all, AllPartitions(nullptr));
    for (const TopicPartition& partition : all) {
      if (options_.pattern->Find(partition.first)) {
        found.push_back(partition);
      }
    }
  } else {
    std::set<std::string> topics(options_.topics.begin(), options_.topics.end());
    for (const TopicPartition& partition : options_.assigned) {
      topics.insert(partition.first);
    }
    for (const std::string& topic : topics) {
      FLEUVE_ASSIGN(const auto partitions, AllPartitions(&topic));
      for (const TopicPartition& partition : partitions) {
        // Assigned partitions that are not there yet are left out until they are, as Spark does.
        if (!is_assign || std::binary_search(options_.assigned.begin(), options_.assigned.end(), partition)) {
          found.push_back(partition);
        }
      }
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

Result<PartitionOffsets> Consumer::QueryTimes(const PartitionOffsets& times) {
  if (times.empty()) {
    return PartitionOffsets();
  }
  const std::int64_t deadline = NowMs() + api_timeout_ms_;
  int failures = 0;
  for (;;) {
    if (token_) {
      FLEUVE_TRY(token_->Check());
    }
    const ListPtr list = ListOf(times);
    const rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(query_.get(), list.get(), kSliceMs * 20);
    rd_kafka_resp_err_t failed = code;
    std::string where = "the offsets of Kafka partitions";
    PartitionOffsets found;
    for (int i = 0; failed == RD_KAFKA_RESP_ERR_NO_ERROR && i < list->cnt; ++i) {
      const rd_kafka_topic_partition_t& one = list->elems[i];
      if (one.err != RD_KAFKA_RESP_ERR_NO_ERROR) {
        failed = one.err;
        where = "the offset of the partition " + NameOf({one.topic, one.partition});
      }
      found[{one.topic, one.partition}] = one.offset;
    }
    if (failed == RD_KAFKA_RESP_ERR_NO_ERROR) {
      return found;
    }
    const bool may_pass = failed == RD_KAFKA_RESP_ERR__TIMED_OUT || failed == RD_KAFKA_RESP_ERR__TRANSPORT ||
                          failed == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN ||
                          failed == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE ||
                          failed == RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION;
    if (NowMs() >= deadline || (!may_pass && ++failures > options_.fetch_retries)) {
      return BrokerError(failed, where);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::clamp<std::int64_t>(options_.fetch_retry_ms, 1, 1000)));
  }
}

Result<PartitionOffsets> Consumer::EndsOf(const std::vector<TopicPartition>& partitions, std::int64_t which) {
  PartitionOffsets times;
  for (const TopicPartition& partition : partitions) {
    times[partition] = which;
  }
  return QueryTimes(times);
}

Result<PartitionOffsets> Consumer::Resolve(const OffsetLimit& limit, const std::vector<TopicPartition>& partitions,
                                           bool is_start) {
  PartitionOffsets wanted;
  PartitionOffsets known;
  for (const TopicPartition& partition : partitions) {
    known[partition] = 0;
  }
  const auto names_them_all = [&] {
    return wanted.size() == known.size() &&
           std::all_of(wanted.begin(), wanted.end(), [&](const auto& one) { return known.contains(one.first); });
  };
  switch (limit.kind) {
    case OffsetLimit::Kind::kEarliest:
      return EndsOf(partitions, kEarliest);
    case OffsetLimit::Kind::kLatest:
      return EndsOf(partitions, kLatest);
    case OffsetLimit::Kind::kSpecific: {
      wanted = limit.offsets;
      if (!names_them_all()) {
        return Error(ErrorKind::kInvalidArgument, "KAFKA_START_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                     "Partitions specified for Kafka start offsets don't match what are assigned. Maybe topic "
                     "partitions are created or deleted while the query is running. Specified: " +
                         NamesOf(wanted) + " Assigned: " + NamesOf(known))
            .With("specifiedPartitions", NamesOf(wanted))
            .With("assignedPartitions", NamesOf(known));
      }
      PartitionOffsets ends;
      for (const auto& [partition, offset] : wanted) {
        if (offset < 0) {
          ends[partition] = offset;
        }
      }
      FLEUVE_ASSIGN(const PartitionOffsets found, QueryTimes(ends));
      for (const auto& [partition, offset] : found) {
        wanted[partition] = offset;
      }
      return wanted;
    }
    case OffsetLimit::Kind::kTimestamp:
      for (const TopicPartition& partition : partitions) {
        wanted[partition] = limit.timestamp;
      }
      break;
    case OffsetLimit::Kind::kTimestamps: {
      wanted = limit.timestamps;
      if (!names_them_all()) {
        return Error(ErrorKind::kInvalidArgument, "KAFKA_TIMESTAMP_OFFSET_DOES_NOT_MATCH_ASSIGNED",
                     "Partitions specified for Kafka timestamp-based " + std::string(is_start ? "starting" : "ending") +
                         " offset don't match what are assigned. Maybe topic partitions are created or deleted while "
                         "the query is running. Specified: " +
                         NamesOf(wanted) + " Assigned: " + NamesOf(known))
            .With("position", is_start ? "start" : "end")
            .With("specifiedPartitions", NamesOf(wanted))
            .With("assignedPartitions", NamesOf(known));
      }
      break;
    }
  }
  const PartitionOffsets times = wanted;
  // A time before the first of all is not asked for: the broker takes negative ones for names of offsets.
  PartitionOffsets found;
  PartitionOffsets asked;
  for (const auto& [partition, time] : times) {
    if (time < 0) {
      found[partition] = kLatest;
    } else {
      asked[partition] = time;
    }
  }
  FLEUVE_ASSIGN(PartitionOffsets answered, QueryTimes(asked));
  found.merge(answered);
  std::vector<TopicPartition> unmatched;
  for (const auto& [partition, offset] : found) {
    if (offset < 0) {
      unmatched.push_back(partition);
    }
  }
  if (!unmatched.empty() && is_start && !options_.latest_when_no_match) {
    return Error(ErrorKind::kInvalidArgument, "",
                 "No offset matched from request of topic-partition " + NameOf(unmatched.front()) + " and timestamp " +
                     std::to_string(times.at(unmatched.front())) + ".")
        .Family(ErrorFamily::kIllegalArgument);
  }
  FLEUVE_ASSIGN(const PartitionOffsets ends, EndsOf(unmatched, kLatest));
  for (const auto& [partition, offset] : ends) {
    found[partition] = offset;
  }
  return found;
}

Error DataLost(const std::string& reason, std::string condition) {
  return Error(ErrorKind::kCorrupt, std::move(condition),
               "Some data may have been lost because they are not available in Kafka any more; either the data was "
               "aged out by Kafka or the topic may have been deleted before all the data in the topic was processed. "
               "If you don't want your streaming query to fail on such cases, set the source option failOnDataLoss to "
               "false. Reason: " +
                   reason + ".");
}

Result<void> Consumer::DataLoss(const std::string& reason) const {
  if (!options_.fail_on_data_loss) {
    LogWarn("kafka: " + reason + ". Some data may have been lost: failOnDataLoss is false, the query goes on");
    return {};
  }
  return DataLost(reason);
}

Result<void> Consumer::Assign(const PartitionOffsets& offsets) {
  feeds_.clear();
  const ListPtr list = ListOf(offsets);
  const rd_kafka_resp_err_t code = rd_kafka_assign(client_.get(), list.get());
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return BrokerError(code, "the partitions could not be assigned");
  }
  for (const auto& [partition, offset] : offsets) {
    Feed feed;
    feed.next = offset;
    feed.reached = offset;
    feeds_[partition] = std::move(feed);
  }
  return {};
}

Result<void> Consumer::Position(const PartitionOffsets& offsets) {
  const bool stands =
      offsets.size() == feeds_.size() && std::all_of(offsets.begin(), offsets.end(), [&](const auto& one) {
        const auto at = feeds_.find(one.first);
        return at != feeds_.end() && at->second.next == one.second;
      });
  if (!stands) {
    FLEUVE_TRY(Assign(offsets));
  }
  // What waits in the client's queue would keep it from telling of more.
  for (;;) {
    FLEUVE_ASSIGN(const int moved, Pump(0));
    if (moved == 0) {
      return {};
    }
  }
}

void Consumer::Listen(std::function<void()> callback) {
  if (!callback) {
    rd_kafka_queue_cb_event_enable(queue_, nullptr, nullptr);
    return;
  }
  callback_ = std::make_shared<std::function<void()>>(std::move(callback));
  rd_kafka_queue_cb_event_enable(
      queue_, [](rd_kafka_t*, void* opaque) { (*static_cast<std::function<void()>*>(opaque))(); }, callback_.get());
}

Result<int> Consumer::Pump(int timeout_ms) {
  std::vector<rd_kafka_message_t*> batch(static_cast<std::size_t>(chunk_) + 1);
  // A call waits for as many records as it is given room for: only the first one is waited for.
  auto count = rd_kafka_consume_batch_queue(queue_, timeout_ms, batch.data(), 1);
  if (count == 1) {
    const auto more = rd_kafka_consume_batch_queue(queue_, 0, batch.data() + 1, batch.size() - 1);
    count += more > 0 ? more : 0;
  }
  if (count < 0) {
    return BrokerError(rd_kafka_last_error(), "records could not be read");
  }
  for (std::int64_t i = 0; i < count; ++i) {
    MessagePtr message(batch[static_cast<std::size_t>(i)]);
    if (message->rkt == nullptr) {
      if (message->err == RD_KAFKA_RESP_ERR__FATAL) {
        failure_ = BrokerError(message->err, "the Kafka client failed");
      }
      // A broker that is gone may come back: who waits for records has a limit of its own.
      continue;
    }
    const auto at = feeds_.find({rd_kafka_topic_name(message->rkt), message->partition});
    if (at == feeds_.end()) {
      continue;
    }
    Feed& feed = at->second;
    switch (message->err) {
      case RD_KAFKA_RESP_ERR_NO_ERROR:
        if (message->offset >= feed.reached) {
          feed.reached = message->offset + 1;
          feed.held.push_back(std::move(message));
        }
        break;
      case RD_KAFKA_RESP_ERR__PARTITION_EOF:
        feed.reached = std::max(feed.reached, message->offset);
        break;
      case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
      case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
        feed.out_of_range = true;
        break;
      case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
      case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
      case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
      case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        failure_ = BrokerError(message->err, "the partition " + NameOf(at->first));
        break;
      default:
        LogWarn("kafka: the partition " + NameOf(at->first) + ": " + rd_kafka_err2str(message->err));
        break;
    }
    if (feed.held.size() > kHeldRecords && !feed.paused) {
      feed.paused = true;
      rd_kafka_pause_partitions(client_.get(), ListOf({{at->first, 0}}).get());
    }
  }
  return static_cast<int>(count);
}

Result<std::vector<columnar::RecordBatch>> Consumer::Read(const std::vector<OffsetRange>& ranges,
                                                          const std::shared_ptr<const types::Schema>& schema) {
  FLEUVE_TRY(Begin(ranges));
  return ReadInto(schema, INT64_MAX, std::make_shared<Spill>(kHeldBytes), nullptr);
}

Result<void> Consumer::Begin(const std::vector<OffsetRange>& ranges) {
  failure_.reset();
  open_.clear();
  PartitionOffsets starts;
  for (const OffsetRange& range : ranges) {
    starts[range.partition] = range.from;
    if (range.until > range.from) {
      open_[range.partition] = range;
    }
  }
  const bool stands = std::all_of(open_.begin(), open_.end(), [&](const auto& one) {
    const auto at = feeds_.find(one.first);
    return at != feeds_.end() && at->second.next == one.second.from && !at->second.out_of_range;
  });
  return stands ? Result<void>() : Assign(starts);
}

Result<std::vector<columnar::RecordBatch>> Consumer::ReadSome(const std::shared_ptr<const types::Schema>& schema,
                                                              std::int64_t most_bytes,
                                                              const CancellationTokenPtr& token) {
  return ReadInto(schema, most_bytes, std::make_shared<Spill>(INT64_MAX), token);
}

Result<std::vector<columnar::RecordBatch>> Consumer::ReadInto(const std::shared_ptr<const types::Schema>& schema,
                                                              std::int64_t most_bytes,
                                                              const std::shared_ptr<Spill>& spill,
                                                              const CancellationTokenPtr& token) {
  std::map<TopicPartition, RowBuilder> builders;
  for (const auto& [partition, range] : open_) {
    builders.emplace(partition, RowBuilder(schema, options_.include_headers, spill));
  }
  std::int64_t bytes = 0;
  std::int64_t last_progress = NowMs();
  while (!open_.empty() && bytes < most_bytes) {
    for (const CancellationTokenPtr& each : {token_, token}) {
      if (each) {
        FLEUVE_TRY(each->Check());
      }
    }
    for (auto at = open_.begin(); at != open_.end() && bytes < most_bytes;) {
      const OffsetRange& range = at->second;
      Feed& feed = feeds_.at(range.partition);
      RowBuilder& builder = builders.at(range.partition);
      const std::int64_t before = builder.bytes();
      bool done = false;
      while (!feed.held.empty() && bytes + builder.bytes() - before < most_bytes) {
        if (feed.held.front()->offset >= range.until) {
          done = true;
          break;
        }
        builder.Add(*feed.held.front());
        feed.next = feed.held.front()->offset + 1;
        feed.held.pop_front();
        last_progress = NowMs();
      }
      bytes += builder.bytes() - before;
      if (feed.held.empty()) {
        done = done || feed.reached >= range.until;
        if (feed.paused) {
          feed.paused = false;
          rd_kafka_resume_partitions(client_.get(), ListOf({{range.partition, 0}}).get());
        }
      }
      if (done) {
        feed.next = range.until;
        at = open_.erase(at);
        continue;
      }
      if (feed.out_of_range && feed.held.empty()) {
        const std::int64_t lost_from = std::max(range.from, feed.reached);
        FLEUVE_TRY(DataLoss("Could not read records in offset [" + std::to_string(lost_from) + ", " +
                            std::to_string(range.until) + ") for topic partition " + NameOf(range.partition)));
        FLEUVE_ASSIGN(const PartitionOffsets earliest, EndsOf({range.partition}, kEarliest));
        const std::int64_t first = earliest.at(range.partition);
        feed.out_of_range = false;
        feed.reached = std::max(feed.reached, first);
        if (first < range.until && first > lost_from) {
          const ListPtr list = ListOf({{range.partition, first}});
          rd_kafka_error_t* error = rd_kafka_seek_partitions(client_.get(), list.get(), 5000);
          if (error != nullptr) {
            const Error failed(ErrorKind::kTransient, "", rd_kafka_error_string(error));
            rd_kafka_error_destroy(error);
            return failed;
          }
        } else {
          // Nothing of the range is left.
          feed.next = -1;
          at = open_.erase(at);
          continue;
        }
      }
      ++at;
    }
    if (open_.empty() || bytes >= most_bytes) {
      break;
    }
    FLEUVE_ASSIGN(const int moved, Pump(kSliceMs));
    if (failure_) {
      return *failure_;
    }
    const std::int64_t now = NowMs();
    if (moved > 0) {
      last_progress = now;
    } else if (now - last_progress > options_.poll_timeout_ms) {
      const OffsetRange& range = open_.begin()->second;
      return Error(ErrorKind::kTransient, "",
                   "Cannot fetch record for offset " + std::to_string(feeds_.at(range.partition).reached) + " in " +
                       std::to_string(options_.poll_timeout_ms) + " milliseconds (partition " +
                       NameOf(range.partition) + ")");
    }
  }
  std::vector<columnar::RecordBatch> batches;
  for (auto& [partition, builder] : builders) {
    for (auto& batch : builder.Take()) {
      batches.push_back(std::move(batch));
    }
  }
  return batches;
}

}  // namespace fleuve::connectors::kafka
