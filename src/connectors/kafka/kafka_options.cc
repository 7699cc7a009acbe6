#include <algorithm>
#include <charconv>

#include "base/bytes.h"
#include "base/log.h"
#include "connectors/kafka/kafka_internal.h"

namespace fleuve::connectors::kafka {

namespace {

Error Illegal(std::string message) {
  return Error(ErrorKind::kInvalidArgument, "", std::move(message)).Family(ErrorFamily::kIllegalArgument);
}

bool ParseLong(std::string_view text, std::int64_t* value) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return code == std::errc() && end == text.data() + text.size() && !text.empty();
}

Result<std::int64_t> LongOf(const std::string& text) {
  std::int64_t value = 0;
  if (!ParseLong(TrimAscii(text), &value)) {
    return Error(ErrorKind::kInvalidArgument, "", "For input string: \"" + text + "\"")
        .Family(ErrorFamily::kNumberFormat);
  }
  return value;
}

Result<std::optional<std::int64_t>> LongOption(const plan::Options& options, const char* name) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return std::optional<std::int64_t>();
  }
  FLEUVE_ASSIGN(const std::int64_t value, LongOf(*text));
  return std::optional<std::int64_t>(value);
}

Result<bool> BooleanOption(const plan::Options& options, const char* name, bool fallback) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return fallback;
  }
  const std::string lower = AsciiLower(*text);
  if (lower != "true" && lower != "false") {
    return Illegal("For input string: \"" + *text + "\"");
  }
  return lower == "true";
}

/// `15m`, `500 ms`, `2h`, a bare number of milliseconds.
Result<std::int64_t> Duration(const std::string& text) {
  const std::string lower = AsciiLower(TrimAscii(text));
  const std::size_t digits = lower.find_first_not_of("0123456789");
  std::int64_t number = 0;
  const std::string unit =
      digits == std::string::npos ? "" : std::string(TrimAscii(std::string_view(lower).substr(digits)));
  if (ParseLong(std::string_view(lower).substr(0, digits), &number)) {
    for (const auto& [name, factor] : std::initializer_list<std::pair<std::string_view, std::int64_t>>{
             {"", 1}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"min", 60000}, {"h", 3600000}, {"d", 86400000}}) {
      if (unit == name) {
        return number * factor;
      }
    }
  }
  return Illegal("Failed to parse time string: " + text);
}

Error BadOffsets(const std::string& text) {
  return Illegal("Expected e.g. {\"topicA\":{\"0\":23,\"1\":-1},\"topicB\":{\"0\":-2}}, got " + text);
}

Result<PartitionOffsets> Timestamps(const std::string& text) {
  auto parsed = OffsetsFromJson(text);
  if (!parsed.ok()) {
    return Illegal(
        "Expected e.g. {\"topicA\": {\"0\": 123456789, \"1\": 123456789},\n\"topicB\": {\"0\": 123456789, \"1\": "
        "123456789}}, got " +
        text);
  }
  return parsed;
}

Result<std::vector<TopicPartition>> PartitionsFromJson(const std::string& text) {
  const Error bad = Illegal("Expected e.g. {\"topicA\":[0,1],\"topicB\":[0,1]}, got " + text);
  auto json = Json::Parse(text);
  if (!json.ok() || !json->is_object()) {
    return bad;
  }
  std::vector<TopicPartition> partitions;
  for (const auto& [topic, list] : json->fields()) {
    if (!list.is_array()) {
      return bad;
    }
    for (const Json& number : list.items()) {
      if (!number.is_int()) {
        return bad;
      }
      partitions.emplace_back(topic, static_cast<std::int32_t>(number.AsInt()));
    }
  }
  std::sort(partitions.begin(), partitions.end());
  return partitions;
}

/// Settings that begin with `kafka.`, without that; names in lower case.
std::map<std::string, std::string> ClientSettings(const plan::Options& options) {
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : options) {
    const std::string lower = AsciiLower(name);
    if (lower.starts_with("kafka.")) {
      settings[lower.substr(6)] = value;
    }
  }
  return settings;
}

constexpr const char* kStrategies = "subscribe, subscribepattern, assign";

}  // namespace

std::string NameOf(const TopicPartition& partition) { return partition.first + "-" + std::to_string(partition.second); }

std::string OffsetsToJson(const PartitionOffsets& offsets) {
  std::string out = "{";
  const std::string* topic = nullptr;
  for (const auto& [partition, offset] : offsets) {
    if (topic == nullptr || *topic != partition.first) {
      out += topic == nullptr ? "" : "},";
      AppendJsonString(out, partition.first);
      out += ":{";
      topic = &partition.first;
    } else {
      out += ",";
    }
    out += "\"" + std::to_string(partition.second) + "\":" + std::to_string(offset);
  }
  return out + (topic == nullptr ? "}" : "}}");
}

Result<PartitionOffsets> OffsetsFromJson(const std::string& text) {
  auto json = Json::Parse(text);
  if (!json.ok() || !json->is_object()) {
    return BadOffsets(text);
  }
  PartitionOffsets offsets;
  for (const auto& [topic, partitions] : json->fields()) {
    if (!partitions.is_object()) {
      return BadOffsets(text);
    }
    for (const auto& [number, offset] : partitions.fields()) {
      std::int64_t partition = 0;
      if (!ParseLong(number, &partition) || !offset.is_int()) {
        return BadOffsets(text);
      }
      offsets[{topic, static_cast<std::int32_t>(partition)}] = offset.AsInt();
    }
  }
  return offsets;
}

std::string SourceOptions::description() const {
  switch (strategy) {
    case Strategy::kSubscribe:
      return "KafkaV2[Subscribe[" + Join(topics, ", ") + "]]";
    case Strategy::kSubscribePattern:
      return "KafkaV2[SubscribePattern[" + pattern_text + "]]";
    case Strategy::kAssign: {
      std::vector<std::string> names;
      for (const auto& partition : assigned) {
        names.push_back(NameOf(partition));
      }
      return "KafkaV2[Assign[" + Join(names, ", ") + "]]";
    }
  }
  return "KafkaV2[]";
}

Result<OffsetLimit> ParseLimit(const plan::Options& options, bool is_start, OffsetLimit::Kind fallback) {
  OffsetLimit limit;
  if (const std::string* text = plan::FindOption(options, is_start ? "startingTimestamp" : "endingTimestamp")) {
    limit.kind = OffsetLimit::Kind::kTimestamp;
    if (!ParseLong(TrimAscii(*text), &limit.timestamp)) {
      return Illegal("Expected a single long value, got " + *text);
    }
    return limit;
  }
  if (const std::string* text =
          plan::FindOption(options, is_start ? "startingOffsetsByTimestamp" : "endingOffsetsByTimestamp")) {
    limit.kind = OffsetLimit::Kind::kTimestamps;
    FLEUVE_ASSIGN(limit.timestamps, Timestamps(std::string(TrimAscii(*text))));
    return limit;
  }
  const std::string* text = plan::FindOption(options, is_start ? "startingOffsets" : "endingOffsets");
  if (text == nullptr) {
    limit.kind = fallback;
    return limit;
  }
  const std::string trimmed(TrimAscii(*text));
  if (EqualsIgnoreAsciiCase(trimmed, "latest")) {
    limit.kind = OffsetLimit::Kind::kLatest;
  } else if (EqualsIgnoreAsciiCase(trimmed, "earliest")) {
    limit.kind = OffsetLimit::Kind::kEarliest;
  } else {
    limit.kind = OffsetLimit::Kind::kSpecific;
    FLEUVE_ASSIGN(limit.offsets, OffsetsFromJson(trimmed));
  }
  return limit;
}

Result<void> CheckBatchLimits(const OffsetLimit& start, const OffsetLimit& end) {
  if (start.kind == OffsetLimit::Kind::kLatest) {
    return Illegal("starting offset can't be latest for batch queries on Kafka");
  }
  for (const auto& [partition, offset] : start.offsets) {
    if (offset == kLatest) {
      return Illegal("startingOffsets for " + NameOf(partition) + " can't be latest for batch queries on Kafka");
    }
  }
  if (end.kind == OffsetLimit::Kind::kEarliest) {
    return Illegal("ending offset can't be earliest for batch queries on Kafka");
  }
  for (const auto& [partition, offset] : end.offsets) {
    if (offset == kEarliest) {
      return Illegal("ending offset for " + NameOf(partition) + " can't be earliest for batch queries on Kafka");
    }
  }
  return {};
}

Result<SourceOptions> ParseSourceOptions(const plan::Options& options, bool is_stream) {
  SourceOptions parsed;
  parsed.all = options;
  if (is_stream) {
    if (plan::FindOption(options, "endingOffsets") != nullptr) {
      return Illegal("ending offset not valid in streaming queries");
    }
    for (const char* name : {"endingOffsetsByTimestamp", "endingTimestamp"}) {
      if (plan::FindOption(options, name) != nullptr) {
        return Illegal("ending timestamp not valid in streaming queries");
      }
    }
  }
  const std::string* subscribe = plan::FindOption(options, "subscribe");
  const std::string* pattern = plan::FindOption(options, "subscribePattern");
  const std::string* assign = plan::FindOption(options, "assign");
  const int given = (subscribe != nullptr) + (pattern != nullptr) + (assign != nullptr);
  if (given == 0) {
    return Illegal(std::string("One of the following options must be specified for Kafka source: ") + kStrategies +
                   ". See the docs for more details.");
  }
  if (given > 1) {
    return Illegal(std::string("Only one of the following options can be specified for Kafka source: ") + kStrategies +
                   ". See the docs for more details.");
  }
  if (assign != nullptr) {
    parsed.strategy = Strategy::kAssign;
    if (!TrimAscii(*assign).starts_with("{")) {
      return Illegal("No topicpartitions to assign as specified value for option 'assign' is '" + *assign + "'");
    }
    FLEUVE_ASSIGN(parsed.assigned, PartitionsFromJson(*assign));
  } else if (subscribe != nullptr) {
    for (const std::string& part : Split(*subscribe, ',')) {
      const std::string topic(TrimAscii(part));
      if (!topic.empty() && std::find(parsed.topics.begin(), parsed.topics.end(), topic) == parsed.topics.end()) {
        parsed.topics.push_back(topic);
      }
    }
    if (parsed.topics.empty()) {
      return Illegal("No topics to subscribe to as specified value for option 'subscribe' is '" + *subscribe + "'");
    }
  } else {
    parsed.strategy = Strategy::kSubscribePattern;
    parsed.pattern_text = std::string(TrimAscii(*pattern));
    if (parsed.pattern_text.empty()) {
      return Illegal("Pattern to subscribe is empty as specified value for option 'subscribePattern' is '" + *pattern +
                     "'");
    }
    if (auto alone = types::JavaRegex::Compile(parsed.pattern_text); !alone.ok()) {
      return Illegal(alone.error().message());
    }
    FLEUVE_ASSIGN(parsed.pattern, types::JavaRegex::Compile("^(?:" + parsed.pattern_text + ")$"));
  }
  // How many tasks read is no matter of the results: one reader serves all partitions.
  FLEUVE_ASSIGN(const auto min_partitions, LongOption(options, "minPartitions"));
  if (min_partitions && *min_partitions <= 0) {
    return Illegal("minPartitions must be positive");
  }
  FLEUVE_ASSIGN(const auto max_records, LongOption(options, "maxRecordsPerPartition"));
  if (max_records && *max_records <= 0) {
    return Illegal("maxRecordsPerPartition must be positive");
  }
  parsed.client = ClientSettings(options);
  if (parsed.client.contains("group.id")) {
    LogWarn("kafka.group.id is set: the group is shared with other consumers of that id");
  }
  if (parsed.client.contains("auto.offset.reset")) {
    return Illegal(
        "\nKafka option 'auto.offset.reset' is not supported.\nInstead set the source option 'startingoffsets' to "
        "'earliest' or 'latest'\nto specify where to start. Structured Streaming manages which offsets are "
        "consumed\ninternally, rather than relying on the kafkaConsumer to do it. This will ensure that no\ndata is "
        "missed when new topics/partitions are dynamically subscribed. Note that\n'startingoffsets' only applies when "
        "a new Streaming query is started, and\nthat resuming will always pick up from where the query left off. See "
        "the docs for more\ndetails.\n         ");
  }
  for (const auto& [kind, what] : {std::pair("key", "keys"), std::pair("value", "values")}) {
    if (parsed.client.contains(std::string(kind) + ".deserializer")) {
      return Illegal("Kafka option '" + std::string(kind) + ".deserializer' is not supported as " + what +
                     " are deserialized as byte arrays with ByteArrayDeserializer. Use DataFrame operations to "
                     "explicitly deserialize the " +
                     what + ".");
    }
  }
  for (const char* name : {"enable.auto.commit", "interceptor.classes"}) {
    if (parsed.client.contains(name)) {
      return Illegal(std::string("Kafka option '") + name + "' is not supported");
    }
  }
  if (!parsed.client.contains("bootstrap.servers")) {
    return Illegal("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka consumer");
  }
  FLEUVE_ASSIGN(parsed.min_offsets, LongOption(options, "minOffsetsPerTrigger"));
  FLEUVE_ASSIGN(parsed.max_offsets, LongOption(options, "maxOffsetsPerTrigger"));
  if (parsed.min_offsets && parsed.max_offsets && *parsed.min_offsets > *parsed.max_offsets) {
    return Illegal("The value of minOffsetPerTrigger(" + std::to_string(*parsed.min_offsets) +
                   ") is higher than the maxOffsetsPerTrigger(" + std::to_string(*parsed.max_offsets) + ").");
  }
  if (const std::string* text = plan::FindOption(options, "maxTriggerDelay")) {
    FLEUVE_ASSIGN(parsed.max_trigger_delay_ms, Duration(*text));
  }
  FLEUVE_ASSIGN(parsed.include_headers, BooleanOption(options, "includeHeaders", false));
  FLEUVE_ASSIGN(parsed.fail_on_data_loss, BooleanOption(options, "failOnDataLoss", true));
  parsed.group_id_prefix = is_stream ? "spark-kafka-source" : "spark-kafka-relation";
  if (const std::string* text = plan::FindOption(options, "groupIdPrefix")) {
    parsed.group_id_prefix = *text;
  }
  FLEUVE_ASSIGN(const auto poll, LongOption(options, "kafkaConsumer.pollTimeoutMs"));
  parsed.poll_timeout_ms = poll.value_or(parsed.poll_timeout_ms);
  FLEUVE_ASSIGN(const auto retries, LongOption(options, "fetchOffset.numRetries"));
  parsed.fetch_retries = static_cast<int>(retries.value_or(parsed.fetch_retries));
  FLEUVE_ASSIGN(const auto wait, LongOption(options, "fetchOffset.retryIntervalMs"));
  parsed.fetch_retry_ms = wait.value_or(parsed.fetch_retry_ms);
  if (const std::string* text = plan::FindOption(options, "startingOffsetsByTimestampStrategy")) {
    const std::string lower = AsciiLower(*text);
    if (lower != "error" && lower != "latest") {
      return Illegal("Unknown strategy '" + *text + "' for startingOffsetsByTimestampStrategy: error or latest");
    }
    parsed.latest_when_no_match = lower == "latest";
  }
  if (!is_stream && parsed.max_offsets) {
    LogWarn("maxOffsetsPerTrigger option ignored in batch queries");
  }
  // What the client would refuse is refused now, and not when the query runs.
  FLEUVE_ASSIGN(const ConfPtr conf, MakeConf(parsed.client, /*is_producer=*/false));
  return parsed;
}

Result<std::map<std::string, std::string>> ProducerSettings(const plan::Options& options) {
  std::map<std::string, std::string> settings = ClientSettings(options);
  for (const char* kind : {"key", "value"}) {
    if (settings.contains(std::string(kind) + ".serializer")) {
      return Illegal("Kafka option '" + std::string(kind) + ".serializer' is not supported as " + kind +
                     "s are serialized with ByteArraySerializer.");
    }
  }
  if (!settings.contains("bootstrap.servers")) {
    return Illegal("Option 'kafka.bootstrap.servers' must be specified for configuring Kafka producer");
  }
  return settings;
}

}  // namespace fleuve::connectors::kafka
