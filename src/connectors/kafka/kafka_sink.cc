#include <cstring>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/log.h"
#include "connectors/kafka/kafka.h"
#include "connectors/kafka/kafka_internal.h"
#include "connectors/run_batch.h"
#include "plan/analyzer.h"

namespace fleuve::connectors::kafka {

namespace {

using types::DataType;
using types::TypeKind;

Error Analysis(std::string message) {
  std::string parameter = message;
  return Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_3080", std::move(message))
      .With("msg", std::move(parameter));
}

/// The bytes of one value of a string or binary column; nullopt: NULL.
std::optional<std::string_view> BytesAt(const ArrowArray& array, std::int64_t row) {
  const std::int64_t i = row + array.offset;
  const auto* validity = static_cast<const std::uint8_t*>(array.buffers[0]);
  if (validity != nullptr && array.null_count != 0 && (validity[i / 8] >> (i % 8) & 1) == 0) {
    return std::nullopt;
  }
  const auto* offsets = static_cast<const std::int32_t*>(array.buffers[1]);
  const auto* data = static_cast<const char*>(array.buffers[2]);
  return std::string_view(data + offsets[i], static_cast<std::size_t>(offsets[i + 1] - offsets[i]));
}

bool IsNullAt(const ArrowArray& array, std::int64_t row) {
  const std::int64_t i = row + array.offset;
  const auto* validity = array.n_buffers > 0 ? static_cast<const std::uint8_t*>(array.buffers[0]) : nullptr;
  return validity != nullptr && array.null_count != 0 && (validity[i / 8] >> (i % 8) & 1) == 0;
}

/// topic, key, value, headers, partition: their places in a projected plan.
enum Place { kTopic, kKey, kValue, kHeaders, kPartition, kPlaces };

DataType HeadersType() {
  return DataType::Array(
      DataType::Struct({{"key", DataType::String(), true, Json()}, {"value", DataType::Binary(), true, Json()}}), true);
}

/// The first column of exactly this name: the sink tells letter case whatever the session does, as Spark's.
const plan::Attribute* Find(const plan::PlanPtr& plan, const char* name) {
  for (const plan::Attribute& attribute : plan->output) {
    if (!attribute.hidden && attribute.name == name) {
      return &attribute;
    }
  }
  return nullptr;
}

Error WrongType(const char* name, const DataType& type, const char* wanted) {
  return Analysis(std::string(name) + " attribute unsupported type " + type.CatalogString() + ". " + name +
                  " must be a(n) " + wanted);
}

bool IsBytes(const DataType& type) { return type.IsString() || type.Is(TypeKind::kBinary); }

}  // namespace

/// The first refusal of the broker so far.
struct Producer::Outcome {
  rd_kafka_resp_err_t failure = RD_KAFKA_RESP_ERR_NO_ERROR;
};

Result<std::unique_ptr<Producer>> Producer::Open(const plan::Options& options) {
  FLEUVE_ASSIGN(const auto settings, ProducerSettings(options));
  std::unique_ptr<Producer> producer(new Producer());
  producer->outcome_ = std::make_unique<Outcome>();
  FLEUVE_ASSIGN(ConfPtr conf, MakeConf(settings, /*is_producer=*/true));
  rd_kafka_conf_set_opaque(conf.get(), producer->outcome_.get());
  rd_kafka_conf_set_dr_msg_cb(conf.get(), [](rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
    auto* outcome = static_cast<Outcome*>(opaque);
    if (outcome->failure == RD_KAFKA_RESP_ERR_NO_ERROR) {
      outcome->failure = message->err;
    }
  });
  if (!settings.contains("partitioner")) {
    FLEUVE_TRY(producer->partitioner_.Install(conf.get()));
  }
  FLEUVE_ASSIGN(producer->client_, MakeClient(RD_KAFKA_PRODUCER, std::move(conf)));
  if (const std::string* topic = plan::FindOption(options, "topic")) {
    producer->topic_ = std::string(TrimAscii(*topic));
  }
  producer->max_block_ms_ = NumberSetting(settings, "max.block.ms", 60000);
  producer->settings_ = settings;
  if (const auto id = settings.find("transactional.id"); id != settings.end()) {
    producer->transactional_id_ = id->second;
  }
  return producer;
}

Producer::~Producer() {
  if (client_) {
    rd_kafka_purge(client_.get(), RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
    rd_kafka_flush(client_.get(), 1000);
  }
}

Result<plan::PlanPtr> Producer::Project(const plan::PlanPtr& input) const {
  const plan::Attribute* columns[kPlaces] = {Find(input, "topic"), Find(input, "key"), Find(input, "value"),
                                             Find(input, "headers"), Find(input, "partition")};
  if (!topic_ && columns[kTopic] == nullptr) {
    return Analysis(
        "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic.");
  }
  if (!topic_ && !columns[kTopic]->type.IsString()) {
    return WrongType("topic", columns[kTopic]->type, "string");
  }
  if (columns[kKey] != nullptr && !IsBytes(columns[kKey]->type)) {
    return WrongType("key", columns[kKey]->type, "string or binary");
  }
  if (columns[kValue] == nullptr) {
    return Analysis("Required attribute 'value' not found");
  }
  if (!IsBytes(columns[kValue]->type)) {
    return WrongType("value", columns[kValue]->type, "string or binary");
  }
  if (columns[kHeaders] != nullptr && !columns[kHeaders]->type.EqualsIgnoringNullability(HeadersType())) {
    return WrongType("headers", columns[kHeaders]->type, "array<struct<key:string,value:binary>>");
  }
  if (columns[kPartition] != nullptr && !columns[kPartition]->type.Is(TypeKind::kInt)) {
    return WrongType("partition", columns[kPartition]->type, "int");
  }
  const DataType fallbacks[kPlaces] = {DataType::String(), DataType::Binary(), DataType::Binary(), HeadersType(),
                                       DataType::Int()};
  static constexpr const char* kNames[kPlaces] = {"topic", "key", "value", "headers", "partition"};
  std::vector<plan::ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (int i = 0; i < kPlaces; ++i) {
    plan::ExprPtr expr = columns[i] != nullptr ? plan::MakeAttribute(*columns[i]) : plan::MakeNull(fallbacks[i]);
    if (i == kTopic && topic_) {
      expr = plan::MakeLiteral(types::Value(*topic_), DataType::String());
    }
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = kNames[i];
    attribute.type = expr->type;
    output.push_back(std::move(attribute));
    exprs.push_back(std::move(expr));
  }
  return plan::MakeProject(input, std::move(exprs), std::move(output));
}

Result<void> Producer::Check() const {
  if (outcome_->failure != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return BrokerError(outcome_->failure, "a record could not be delivered to Kafka");
  }
  char text[512];
  const rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(client_.get(), text, sizeof text);
  if (fatal != RD_KAFKA_RESP_ERR_NO_ERROR) {
    return BrokerError(fatal, std::string("the Kafka client failed: ") + text);
  }
  return {};
}

Result<std::int64_t> Producer::Produce(columnar::BatchReader& rows, const CancellationTokenPtr& token) {
  std::int64_t count = 0;
  for (;;) {
    FLEUVE_ASSIGN(const auto batch, rows.Next());
    if (!batch) {
      return count;
    }
    const ArrowArray& array = *batch->array->get();
    const ArrowArray* columns[kPlaces];
    for (int i = 0; i < kPlaces; ++i) {
      columns[i] = array.children[i];
    }
    for (std::int64_t r = 0; r < array.length; ++r) {
      const std::int64_t row = r + array.offset;
      const auto topic = BytesAt(*columns[kTopic], row);
      if (!topic) {
        return Error(ErrorKind::kInvalidArgument, plain_errors_ ? "" : "KAFKA_NULL_TOPIC_IN_DATA",
                     "The Kafka message data sent to the producer contains a null topic. Use the `topic` option for "
                     "setting a default topic.");
      }
      const auto key = BytesAt(*columns[kKey], row);
      const auto value = BytesAt(*columns[kValue], row);
      std::int32_t partition = RD_KAFKA_PARTITION_UA;
      if (!IsNullAt(*columns[kPartition], row)) {
        partition =
            static_cast<const std::int32_t*>(columns[kPartition]->buffers[1])[row + columns[kPartition]->offset];
        if (partition < 0) {
          return Error(ErrorKind::kInvalidArgument, "",
                       "Invalid partition: " + std::to_string(partition) +
                           ". Partition number should always be non-negative or null.")
              .Family(ErrorFamily::kIllegalArgument);
        }
      }
      rd_kafka_headers_t* headers = nullptr;
      if (!IsNullAt(*columns[kHeaders], row)) {
        const ArrowArray& list = *columns[kHeaders];
        const auto* offsets = static_cast<const std::int32_t*>(list.buffers[1]);
        const ArrowArray& items = *list.children[0];
        headers = rd_kafka_headers_new(4);
        for (std::int64_t i = offsets[row + list.offset]; i < offsets[row + list.offset + 1]; ++i) {
          const auto name = BytesAt(*items.children[0], i + items.offset);
          const auto bytes = BytesAt(*items.children[1], i + items.offset);
          if (IsNullAt(items, i) || !name) {
            rd_kafka_headers_destroy(headers);
            return Error(ErrorKind::kInvalidArgument, "", "A Kafka header's key is null.");
          }
          rd_kafka_header_add(headers, name->data(), static_cast<ssize_t>(name->size()),
                              bytes ? bytes->data() : nullptr, bytes ? static_cast<ssize_t>(bytes->size()) : 0);
        }
      }
      const std::string name(*topic);
      // A value without bytes is not a value that is NULL.
      const char* key_bytes = !key ? nullptr : key->empty() ? "" : key->data();
      const char* value_bytes = !value ? nullptr : value->empty() ? "" : value->data();
      const std::size_t key_size = key ? key->size() : 0;
      const std::size_t value_size = value ? value->size() : 0;
      const std::int64_t began = Clock::System()->MonotonicNanos();
      for (;;) {
        const rd_kafka_resp_err_t code = rd_kafka_producev(
            client_.get(), RD_KAFKA_V_TOPIC(name.c_str()), RD_KAFKA_V_PARTITION(partition),
            RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(key_bytes, key_size),
            RD_KAFKA_V_VALUE(const_cast<char*>(value_bytes), value_size), RD_KAFKA_V_HEADERS(headers),
            RD_KAFKA_V_OPAQUE(reinterpret_cast<void*>(static_cast<std::intptr_t>(value_size))), RD_KAFKA_V_END);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
          break;
        }
        const bool waits = code == RD_KAFKA_RESP_ERR__QUEUE_FULL &&
                           Clock::System()->MonotonicNanos() - began < max_block_ms_ * 1000000;
        const Result<void> checked = Check();
        if (!waits || !checked.ok() || (token && token->cancelled())) {
          if (headers != nullptr) {
            rd_kafka_headers_destroy(headers);
          }
          FLEUVE_TRY(checked);
          if (token) {
            FLEUVE_TRY(token->Check());
          }
          return BrokerError(code, "a record could not be given to the Kafka client (topic " + name + ")");
        }
        rd_kafka_poll(client_.get(), 50);
      }
      if (++count % 1024 == 0) {
        rd_kafka_poll(client_.get(), 0);
        FLEUVE_TRY(Check());
        if (token) {
          FLEUVE_TRY(token->Check());
        }
      }
    }
  }
}

Result<void> Producer::Flush(const CancellationTokenPtr& token) {
  // Each record has a limit of its own (delivery.timeout.ms), after which it is reported as failed.
  while (rd_kafka_flush(client_.get(), 100) == RD_KAFKA_RESP_ERR__TIMED_OUT) {
    FLEUVE_TRY(Check());
    if (token) {
      FLEUVE_TRY(token->Check());
    }
  }
  return Check();
}

namespace {

/// Calls a step of a transaction again while the client says so. The client is told to abort where it must.
Result<void> Step(const std::string& what, const CancellationTokenPtr& token,
                  const std::function<rd_kafka_error_t*()>& call) {
  for (;;) {
    rd_kafka_error_t* error = call();
    if (error == nullptr) {
      return {};
    }
    const bool again = rd_kafka_error_is_retriable(error) != 0;
    const Error failed = BrokerError(rd_kafka_error_code(error), what + ": " + rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    if (!again) {
      return failed;
    }
    if (token) {
      FLEUVE_TRY(token->Check());
    }
  }
}

constexpr int kStepMs = 10000;

}  // namespace

Result<void> Producer::InitTransactions(const CancellationTokenPtr& token) {
  return Step("the transactions of " + transactional_id_ + " could not be begun", token,
              [&] { return rd_kafka_init_transactions(client_.get(), kStepMs); });
}

Result<void> Producer::BeginTransaction() {
  return Step("a transaction could not be begun", nullptr, [&] { return rd_kafka_begin_transaction(client_.get()); });
}

Result<void> Producer::CommitTransaction(const std::string& group, std::int64_t batch) {
  const std::unique_ptr<rd_kafka_topic_partition_list_t, void (*)(rd_kafka_topic_partition_list_t*)> offsets(
      rd_kafka_topic_partition_list_new(1), rd_kafka_topic_partition_list_destroy);
  rd_kafka_topic_partition_list_add(offsets.get(), topic_->c_str(), 0)->offset = batch + 1;
  const std::unique_ptr<rd_kafka_consumer_group_metadata_t, void (*)(rd_kafka_consumer_group_metadata_t*)> metadata(
      rd_kafka_consumer_group_metadata_new(group.c_str()), rd_kafka_consumer_group_metadata_destroy);
  FLEUVE_TRY(Step("the number of the batch could not be added to the transaction", nullptr, [&] {
    return rd_kafka_send_offsets_to_transaction(client_.get(), offsets.get(), metadata.get(), kStepMs);
  }));
  return Step("the transaction could not be committed", nullptr,
              [&] { return rd_kafka_commit_transaction(client_.get(), kStepMs); });
}

void Producer::AbortTransaction() {
  rd_kafka_error_t* error = rd_kafka_abort_transaction(client_.get(), kStepMs);
  if (error != nullptr) {
    LogWarn(std::string("kafka: a transaction could not be aborted; the broker ends it later: ") +
            rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
  }
}

Result<std::int64_t> Producer::NewestBatch(const std::string& group) const {
  std::map<std::string, std::string> settings;
  for (const auto& [name, value] : settings_) {
    if (name == "bootstrap.servers" || name == "security.protocol" || name.starts_with("sasl.") ||
        name.starts_with("ssl.") || name.starts_with("client.")) {
      settings[name] = value;
    }
  }
  settings["group.id"] = group;
  FLEUVE_ASSIGN(ConfPtr conf, MakeConf(settings, /*is_producer=*/false));
  FLEUVE_ASSIGN(const KafkaPtr client, MakeClient(RD_KAFKA_CONSUMER, std::move(conf)));
  const std::unique_ptr<rd_kafka_topic_partition_list_t, void (*)(rd_kafka_topic_partition_list_t*)> offsets(
      rd_kafka_topic_partition_list_new(1), rd_kafka_topic_partition_list_destroy);
  rd_kafka_topic_partition_list_add(offsets.get(), topic_->c_str(), 0);
  for (int attempt = 0;; ++attempt) {
    const rd_kafka_resp_err_t code = rd_kafka_committed(client.get(), offsets.get(), kStepMs);
    const rd_kafka_topic_partition_t& one = offsets->elems[0];
    const rd_kafka_resp_err_t failed = code != RD_KAFKA_RESP_ERR_NO_ERROR ? code : one.err;
    if (failed == RD_KAFKA_RESP_ERR_NO_ERROR) {
      return one.offset >= 0 ? one.offset - 1 : -1;
    }
    if (attempt >= 5) {
      return BrokerError(failed, "the newest batch of " + group + " could not be asked for");
    }
  }
}

namespace {

class KafkaBatch final : public StagedBatch {
 public:
  explicit KafkaBatch(std::int64_t rows) : rows_(rows) {}
  Result<CommitOutcome> Commit() override { return CommitOutcome::kCommitted; }
  std::int64_t num_output_rows() const override { return rows_; }

 private:
  const std::int64_t rows_;
};

/// A batch that Kafka has already.
class HeldBatch final : public StagedBatch {
 public:
  bool already_there() const override { return true; }
  Result<CommitOutcome> Commit() override { return CommitOutcome::kAlreadyThere; }
};

/// Rows of an open transaction.
class TransactionBatch final : public StagedBatch {
 public:
  TransactionBatch(std::shared_ptr<Producer> producer, std::string group, std::int64_t batch, std::int64_t rows)
      : producer_(std::move(producer)), group_(std::move(group)), batch_(batch), rows_(rows) {}
  ~TransactionBatch() override {
    if (!ended_) {
      producer_->AbortTransaction();
    }
  }
  Result<CommitOutcome> Commit() override {
    FLEUVE_TRY(producer_->CommitTransaction(group_, batch_));
    ended_ = true;
    return CommitOutcome::kCommitted;
  }
  std::int64_t num_output_rows() const override { return rows_; }

 private:
  const std::shared_ptr<Producer> producer_;
  const std::string group_;
  const std::int64_t batch_;
  const std::int64_t rows_;
  bool ended_ = false;
};

/// At least once: a batch that is run again is written again. With kafka.transactional.id exactly once: the rows of a
/// batch and the number of the batch become visible in one transaction of the broker.
class KafkaSink final : public Sink {
 public:
  KafkaSink(plan::Options options, const std::string& query_id)
      : options_(std::move(options)),
        is_transactional_(FindSetting(options_, "transactional.id")),
        group_("fleuve-" + query_id) {}

  std::string description() const override {
    return "org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaTable@" +
           std::to_string(reinterpret_cast<std::uintptr_t>(this) % 100000000);
  }
  bool run_is_effect() const override { return !is_transactional_; }

  Result<SinkRecord> Newest() override {
    SinkRecord record;
    if (is_transactional_) {
      FLEUVE_TRY(OpenProducer(nullptr));
      FLEUVE_ASSIGN(record.newest_batch, producer_->NewestBatch(group_));
      newest_ = record.newest_batch;
    }
    return record;
  }

  Result<std::unique_ptr<StagedBatch>> Run(const SinkBatch& batch) override {
    FLEUVE_TRY(OpenProducer(batch.token));
    FLEUVE_ASSIGN(const plan::PlanPtr projected, producer_->Project(batch.plan));
    if (is_transactional_ && batch.is_recovered) {
      FLEUVE_ASSIGN(newest_, producer_->NewestBatch(group_));
    }
    if (is_transactional_ && newest_ >= batch.batch_id.value) {
      return std::unique_ptr<StagedBatch>(std::make_unique<HeldBatch>());
    }
    FLEUVE_ASSIGN(auto reader, RunBatch(batch, projected));
    if (is_transactional_) {
      FLEUVE_TRY(producer_->BeginTransaction());
    }
    auto rows = producer_->Produce(*reader, batch.token);
    auto flushed = rows.ok() ? producer_->Flush(batch.token) : Result<void>();
    if (!rows.ok() || !flushed.ok()) {
      if (is_transactional_) {
        producer_->AbortTransaction();
      }
      // A client that failed once is not used again.
      producer_.reset();
      return rows.ok() ? std::move(flushed).error() : std::move(rows).error();
    }
    if (is_transactional_) {
      return std::unique_ptr<StagedBatch>(
          std::make_unique<TransactionBatch>(producer_, group_, batch.batch_id.value, *rows));
    }
    return std::unique_ptr<StagedBatch>(std::make_unique<KafkaBatch>(*rows));
  }

 private:
  static bool FindSetting(const plan::Options& options, const std::string& name) {
    return plan::FindOption(options, "kafka." + name) != nullptr;
  }

  Result<void> OpenProducer(const CancellationTokenPtr& token) {
    if (producer_) {
      return {};
    }
    FLEUVE_ASSIGN(std::shared_ptr<Producer> producer, Producer::Open(options_));
    producer->set_plain_errors(true);
    if (is_transactional_) {
      FLEUVE_TRY(producer->InitTransactions(token));
    }
    producer_ = std::move(producer);
    return {};
  }

  const plan::Options options_;
  const bool is_transactional_;
  /// Under this name the broker keeps the number of the newest batch.
  const std::string group_;
  std::shared_ptr<Producer> producer_;
  std::int64_t newest_ = -1;
};

class KafkaSinkProvider final : public SinkProvider {
 public:
  Result<void> CheckSpec(const SinkSpec& spec, const SinkContext&) override {
    FLEUVE_ASSIGN(const auto settings, ProducerSettings(spec.options));
    FLEUVE_ASSIGN(const ConfPtr conf, MakeConf(settings, /*is_producer=*/true));
    if (settings.contains("transactional.id") && plan::FindOption(spec.options, "topic") == nullptr) {
      return Error(ErrorKind::kInvalidArgument, "",
                   "Option 'kafka.transactional.id' needs the option 'topic': the number of the newest batch is kept "
                   "with it.")
          .Family(ErrorFamily::kIllegalArgument);
    }
    return {};
  }
  Result<std::unique_ptr<Sink>> MakeSink(const SinkSpec& spec, const SinkContext& context) override {
    return std::unique_ptr<Sink>(std::make_unique<KafkaSink>(spec.options, context.query_id));
  }
};

}  // namespace

Result<void> WriteTopic(engine::Engine& engine, const plan::PlanPtr& input, const plan::Options& options,
                        const plan::AnalysisConfig& config, const CancellationTokenPtr& token) {
  FLEUVE_ASSIGN(const auto producer, Producer::Open(options));
  if (producer->is_transactional()) {
    return Error::Unsupported("the Kafka setting 'kafka.transactional.id' in a batch write");
  }
  FLEUVE_ASSIGN(const plan::PlanPtr projected, producer->Project(input));
  FLEUVE_ASSIGN(const plan::PlanPtr prepared, plan::Prepare(projected, config));
  engine::ExecuteOptions execute;
  execute.token = token;
  FLEUVE_ASSIGN(const auto reader, engine.Execute(prepared, execute));
  FLEUVE_TRY(producer->Produce(*reader, token));
  return producer->Flush(token);
}

void RegisterKafka(ConnectorRegistry& registry) {
  registry.AddSource("kafka", MakeKafkaSourceProvider());
  registry.AddSink("kafka", std::make_shared<KafkaSinkProvider>());
}

}  // namespace fleuve::connectors::kafka
