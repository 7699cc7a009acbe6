// Which partition a record goes to that names none: as Java's producer chooses.

#include "connectors/kafka/kafka_internal.h"

namespace fleuve::connectors::kafka {

namespace {

/// Java's batch.size: after so many bytes of values the next partition is chosen.
constexpr std::int64_t kBytesPerStay = 16384;

std::int32_t PartitionOf(const rd_kafka_topic_t* topic, const void* key, std::size_t key_size, std::int32_t partitions,
                         void* opaque, void* message) {
  if (key != nullptr) {
    return rd_kafka_msg_partitioner_murmur2(topic, key, key_size, partitions, opaque, message);
  }
  return static_cast<StickyPartitioner*>(opaque)->Next(topic, partitions, reinterpret_cast<std::intptr_t>(message));
}

}  // namespace

std::int32_t StickyPartitioner::Next(const rd_kafka_topic_t* topic, std::int32_t partitions, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Stay& stay = stays_[topic];
  if (stay.bytes_left <= 0 || stay.partition >= partitions) {
    // Whether a leader can be reached is not asked: until the client has connected to them all it knows of none.
    stay = {std::uniform_int_distribution<std::int32_t>(0, partitions - 1)(random_), kBytesPerStay};
  }
  stay.bytes_left -= bytes;
  return stay.partition;
}

Result<void> StickyPartitioner::Install(rd_kafka_conf_t* conf) {
  rd_kafka_topic_conf_t* topics = rd_kafka_conf_get_default_topic_conf(conf);
  // librdkafka's own way chooses anew at every record while it is not yet connected to the leader.
  if (topics == nullptr ||
      rd_kafka_conf_set(conf, "sticky.partitioning.linger.ms", "0", nullptr, 0) != RD_KAFKA_CONF_OK) {
    return Error::Internal("the Kafka client takes no partitioner");
  }
  rd_kafka_topic_conf_set_opaque(topics, this);
  rd_kafka_topic_conf_set_partitioner_cb(topics, PartitionOf);
  return {};
}

}  // namespace fleuve::connectors::kafka
