// The Java client's settings as librdkafka's, by name.

#include <charconv>

#include "base/bytes.h"
#include "base/log.h"
#include "connectors/kafka/kafka_internal.h"

namespace fleuve::connectors::kafka {

namespace {

/// Names that differ.
const std::map<std::string, std::string>& Renamed() {
  static const std::map<std::string, std::string> names = {
      {"fetch.max.wait.ms", "fetch.wait.max.ms"},
      {"receive.buffer.bytes", "socket.receive.buffer.bytes"},
      {"send.buffer.bytes", "socket.send.buffer.bytes"},
      {"max.request.size", "message.max.bytes"},
      {"ssl.keystore.certificate.chain", "ssl.certificate.pem"},
      {"ssl.keystore.key", "ssl.key.pem"},
      {"ssl.truststore.certificates", "ssl.ca.pem"},
  };
  return names;
}

/// Served by the connector, not by the client.
bool IsOurs(const std::string& name) {
  return name == "default.api.timeout.ms" || name == "max.poll.records" || name == "max.block.ms";
}

/// The value of `key="..."` in a JAAS line; empty where it has none.
std::string JaasValue(const std::string& text, const std::string& key) {
  std::size_t at = text.find(key + "=");
  if (at == std::string::npos) {
    return "";
  }
  at += key.size() + 1;
  if (at < text.size() && (text[at] == '"' || text[at] == '\'')) {
    std::string value;
    const char quote = text[at];
    for (++at; at < text.size() && text[at] != quote; ++at) {
      if (text[at] == '\\' && at + 1 < text.size()) {
        ++at;
      }
      value += text[at];
    }
    return value;
  }
  return text.substr(at, text.find_first_of(" ;\t\n", at) - at);
}

Error Refused(const std::string& name, const std::string& why) {
  return Error::Unsupported("the Kafka setting 'kafka." + name + "'" + (why.empty() ? "" : ": " + why));
}

Result<void> Set(rd_kafka_conf_t* conf, const std::string& name, const std::string& value,
                 const std::string& java_name) {
  char text[512];
  switch (rd_kafka_conf_set(conf, name.c_str(), value.c_str(), text, sizeof text)) {
    case RD_KAFKA_CONF_OK:
      return {};
    case RD_KAFKA_CONF_UNKNOWN:
      return Refused(java_name, "");
    default:
      return Error(ErrorKind::kInvalidArgument, "",
                   "Invalid value " + value + " for configuration " + java_name + ": " + text)
          .Family(ErrorFamily::kIllegalArgument);
  }
}

/// Settings of more than one name, or whose values differ. \return true: done.
Result<bool> SetSpecial(rd_kafka_conf_t* conf, const std::string& name, const std::string& value,
                        const std::map<std::string, std::string>& settings) {
  if (name == "sasl.jaas.config") {
    if (value.find("PlainLoginModule") == std::string::npos && value.find("ScramLoginModule") == std::string::npos) {
      return Refused(name, "only PlainLoginModule and ScramLoginModule are served");
    }
    FLEUVE_TRY(Set(conf, "sasl.username", JaasValue(value, "username"), name));
    FLEUVE_TRY(Set(conf, "sasl.password", JaasValue(value, "password"), name));
    return true;
  }
  if (name == "ssl.endpoint.identification.algorithm") {
    const std::string lower = AsciiLower(value);
    FLEUVE_TRY(Set(conf, name, lower.empty() ? "none" : lower, name));
    return true;
  }
  if (name == "fetch.max.bytes" && value.size() < 7) {
    // A consumer sends no records, but librdkafka wants a fetch to hold the largest (1,000,000 bytes by default) it may
    // send.
    FLEUVE_TRY(Set(conf, "message.max.bytes", value.size() < 4 ? "1000" : value, name));
    return false;
  }
  const auto type_of = [&](const char* key) {
    const auto at = settings.find(key);
    return at == settings.end() ? std::string("JKS") : AsciiUpper(at->second);
  };
  if (name == "ssl.truststore.type" || name == "ssl.keystore.type") {
    return true;  // looked at together with the store
  }
  if (name == "ssl.truststore.location") {
    if (type_of("ssl.truststore.type") != "PEM") {
      return Refused(name, "a store of the type " + type_of("ssl.truststore.type") +
                               "; set ssl.truststore.type to PEM and name a file of certificates");
    }
    FLEUVE_TRY(Set(conf, "ssl.ca.location", value, name));
    return true;
  }
  if (name == "ssl.keystore.location") {
    if (type_of("ssl.keystore.type") == "PEM") {
      FLEUVE_TRY(Set(conf, "ssl.certificate.location", value, name));
      FLEUVE_TRY(Set(conf, "ssl.key.location", value, name));
      return true;
    }
    if (type_of("ssl.keystore.type") != "PKCS12") {
      return Refused(name, "a store of the type " + type_of("ssl.keystore.type") + "; PEM and PKCS12 are served");
    }
    FLEUVE_TRY(Set(conf, name, value, name));
    return true;
  }
  if (name == "buffer.memory") {
    std::int64_t bytes = 0;
    std::from_chars(value.data(), value.data() + value.size(), bytes);
    FLEUVE_TRY(Set(conf, "queue.buffering.max.kbytes", std::to_string(std::max<std::int64_t>(1, bytes / 1024)), name));
    return true;
  }
  if (name == "compression.type" && AsciiLower(value) == "none") {
    FLEUVE_TRY(Set(conf, "compression.type", "none", name));
    return true;
  }
  return false;
}

void Log(const rd_kafka_t*, int level, const char*, const char* text) {
  if (level <= 4) {
    LogWarn(std::string("kafka: ") + text);
  }
}

}  // namespace

std::int64_t NumberSetting(const std::map<std::string, std::string>& settings, const std::string& name,
                           std::int64_t fallback) {
  const auto at = settings.find(name);
  std::int64_t value = fallback;
  if (at != settings.end()) {
    std::from_chars(at->second.data(), at->second.data() + at->second.size(), value);
  }
  return value;
}

Result<ConfPtr> MakeConf(const std::map<std::string, std::string>& settings, bool is_producer) {
  ConfPtr conf(rd_kafka_conf_new());
  rd_kafka_conf_set_log_cb(conf.get(), Log);
  if (is_producer) {
    // As the Java client has them by default.
    FLEUVE_TRY(Set(conf.get(), "partitioner", "murmur2_random", "partitioner"));
    FLEUVE_TRY(Set(conf.get(), "enable.idempotence", "true", "enable.idempotence"));
    FLEUVE_TRY(Set(conf.get(), "linger.ms", "5", "linger.ms"));
    const auto acks = settings.find("acks");
    if (acks != settings.end() && acks->second != "all" && acks->second != "-1" &&
        !settings.contains("enable.idempotence")) {
      FLEUVE_TRY(Set(conf.get(), "enable.idempotence", "false", "enable.idempotence"));
    }
  } else {
    FLEUVE_TRY(Set(conf.get(), "enable.auto.commit", "false", "enable.auto.commit"));
    FLEUVE_TRY(Set(conf.get(), "enable.auto.offset.store", "false", "enable.auto.offset.store"));
    FLEUVE_TRY(Set(conf.get(), "enable.partition.eof", "true", "enable.partition.eof"));
    FLEUVE_TRY(Set(conf.get(), "auto.offset.reset", "error", "auto.offset.reset"));
    // Java reads what is not committed unless told otherwise; librdkafka's own default differs.
    FLEUVE_TRY(Set(conf.get(), "isolation.level", "read_uncommitted", "isolation.level"));
    FLEUVE_TRY(Set(conf.get(), "fetch.wait.max.ms", "100", "fetch.max.wait.ms"));
    // A full queue makes librdkafka pause for a second, however soon it is empty again: a short one costs most of the
    // time of a long read.
    FLEUVE_TRY(Set(conf.get(), "queued.max.messages.kbytes", "262144", "queued.max.messages.kbytes"));
    FLEUVE_TRY(Set(conf.get(), "queued.min.messages", "1000000", "queued.min.messages"));
    FLEUVE_TRY(Set(conf.get(), "fetch.error.backoff.ms", "100", "fetch.error.backoff.ms"));
  }
  for (const auto& [name, value] : settings) {
    if (IsOurs(name)) {
      continue;
    }
    FLEUVE_ASSIGN(const bool done, SetSpecial(conf.get(), name, value, settings));
    if (done) {
      continue;
    }
    const auto renamed = Renamed().find(name);
    FLEUVE_TRY(Set(conf.get(), renamed == Renamed().end() ? name : renamed->second, value, name));
  }
  return conf;
}

void KafkaDeleter::operator()(rd_kafka_t* client) const {
  // Nothing is left to be said to the broker: offsets are never committed, groups never joined.
  rd_kafka_destroy_flags(client, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

Result<KafkaPtr> MakeClient(rd_kafka_type_t type, ConfPtr conf) {
  char text[512];
  rd_kafka_t* client = rd_kafka_new(type, conf.get(), text, sizeof text);
  if (client == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "", std::string("Failed to construct kafka client: ") + text)
        .Family(ErrorFamily::kIllegalArgument);
  }
  (void)conf.release();  // the client's now
  return KafkaPtr(client);
}

Error BrokerError(rd_kafka_resp_err_t code, const std::string& what) {
  const bool transient = code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__TRANSPORT ||
                         code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
  return Error(transient ? ErrorKind::kTransient : ErrorKind::kNotFound, "",
               what + ": " + rd_kafka_err2str(code) + " (" + rd_kafka_err2name(code) + ")");
}

}  // namespace fleuve::connectors::kafka
