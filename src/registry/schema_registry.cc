#include "registry/schema_registry.h"

#include <chrono>
#include <thread>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "registry/http_internal.h"

namespace fleuve::registry {

namespace {

constexpr int kAttempts = 3;
constexpr std::int64_t kPauseMs = 100;
/// How long a number that nobody knows is not asked for again.
constexpr std::int64_t kUnknownMs = 5000;

std::int64_t NowMs() { return Clock::System()->MonotonicNanos() / 1'000'000; }

Error Unavailable(const std::string& url, const std::string& reason) {
  return Error(ErrorKind::kTransient, "FLEUVE_SCHEMA_REGISTRY_UNAVAILABLE",
               "The schema registry at " + url + " cannot be reached (" + reason +
                   "). Start the query again when it can.")
      .With("address", url)
      .With("reason", reason);
}

Error Refused(ErrorKind kind, const std::string& url, const std::string& what, const std::string& reason) {
  return Error(kind, "FLEUVE_SCHEMA_REGISTRY_REFUSED",
               "The schema registry at " + url + " does not give " + what + ": " + reason + ".")
      .With("address", url)
      .With("request", what)
      .With("reason", reason);
}

/// The registry's own words, or the body.
std::string ReasonOf(const Reply& reply) {
  const auto json = Json::Parse(reply.body);
  const std::string text = json.ok() ? (*json)["message"].AsString() : "";
  return (text.empty() ? reply.body.substr(0, 200) : text) + " (HTTP " + std::to_string(reply.status) + ")";
}

bool IsAnswer(const Reply& reply) { return reply.status < 500 && reply.status != 429; }

/// Only schemas that stand alone and are Avro's can be read.
Result<void> CheckKind(const Json& reply, const std::string& what) {
  const std::string& kind = reply["schemaType"].AsString();
  if (!kind.empty() && kind != "AVRO") {
    return Error::Unsupported(what + " of the schema registry: it is of type " + kind);
  }
  if (!reply["references"].items().empty()) {
    return Error::Unsupported(what + " of the schema registry: it refers to other schemas");
  }
  return {};
}

}  // namespace

std::optional<std::int32_t> SchemaIdOf(std::string_view value) {
  if (value.size() < kPrefixBytes || value[0] != 0) {
    return std::nullopt;
  }
  std::uint32_t id = 0;
  for (std::size_t i = 1; i < kPrefixBytes; ++i) {
    id = id << 8 | static_cast<unsigned char>(value[i]);
  }
  return static_cast<std::int32_t>(id);
}

std::string PrefixOf(std::int32_t id) {
  const auto raw = static_cast<std::uint32_t>(id);
  return {'\0', static_cast<char>(raw >> 24), static_cast<char>(raw >> 16), static_cast<char>(raw >> 8),
          static_cast<char>(raw)};
}

std::shared_ptr<SchemaRegistry> SchemaRegistry::At(const Address& address) {
  static std::mutex mutex;
  static auto* const known = new std::map<Address, std::shared_ptr<SchemaRegistry>>();
  const std::lock_guard lock(mutex);
  auto& registry = (*known)[address];
  if (registry == nullptr) {
    registry = std::make_shared<SchemaRegistry>(address);
  }
  return registry;
}

Result<Json> SchemaRegistry::Ask(const std::string& path, const std::optional<std::string>& body) const {
  std::string reason;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs << attempt));
    }
    for (const std::string& url : address_.urls) {
      auto reply = Request(address_, url, path, body);
      if (!reply.ok() || !IsAnswer(*reply)) {
        reason = reply.ok() ? ReasonOf(*reply) : reply.error().message();
        LogWarn("schema registry " + url + ": " + reason);
        continue;
      }
      if (reply->status != 200) {
        const ErrorKind kind = reply->status == 404                           ? ErrorKind::kNotFound
                               : reply->status == 401 || reply->status == 403 ? ErrorKind::kPermissionDenied
                                                                              : ErrorKind::kInvalidArgument;
        return Refused(kind, url, path, ReasonOf(*reply));
      }
      auto json = Json::Parse(reply->body);
      if (!json.ok() || !json->is_object()) {
        return Refused(ErrorKind::kInvalidArgument, url, path, "its answer is no JSON object");
      }
      return json;
    }
  }
  return Unavailable(Join(address_.urls, ","), reason);
}

namespace {

/// The number of a schema in an answer.
Result<std::int32_t> NumberIn(const Json& reply, const Address& address) {
  const Json& id = reply["id"];
  if (!id.is_int()) {
    return Refused(ErrorKind::kInvalidArgument, Join(address.urls, ","), "the number of a schema",
                   "its answer has no integer \"id\"");
  }
  return static_cast<std::int32_t>(id.AsInt());
}

}  // namespace

Result<avro::Schema> SchemaRegistry::ById(std::int32_t id) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = by_id_.find(id); known != by_id_.end()) {
      return known->second;
    }
    if (const auto unknown = unknown_.find(id); unknown != unknown_.end()) {
      if (NowMs() - unknown->second.second < kUnknownMs) {
        return unknown->second.first;
      }
      unknown_.erase(unknown);
    }
  }
  const std::string what = "schema " + std::to_string(id);
  auto reply = Ask("/schemas/ids/" + std::to_string(id), std::nullopt);
  if (!reply.ok()) {
    if (reply.error().kind() == ErrorKind::kNotFound) {
      const std::lock_guard lock(mutex_);
      std::erase_if(unknown_, [](const auto& entry) { return NowMs() - entry.second.second >= kUnknownMs; });
      unknown_.insert_or_assign(id, std::pair(reply.error(), NowMs()));
    }
    return std::move(reply).error();
  }
  FLEUVE_TRY(CheckKind(*reply, what));
  FLEUVE_ASSIGN(avro::Schema schema, avro::Schema::Parse((*reply)["schema"].AsString()));
  const std::lock_guard lock(mutex_);
  return by_id_.emplace(id, std::move(schema)).first->second;
}

Result<SchemaRegistry::Registered> SchemaRegistry::Newest(const std::string& subject) {
  {
    const std::lock_guard lock(mutex_);
    const auto known = newest_.find(subject);
    if (known != newest_.end() && NowMs() - known->second.at_ms < kNewestMs) {
      return known->second.schema;
    }
  }
  FLEUVE_ASSIGN(const Json reply, Ask("/subjects/" + PercentEncode(subject) + "/versions/latest", std::nullopt));
  FLEUVE_TRY(CheckKind(reply, "subject " + subject));
  FLEUVE_ASSIGN(const std::int32_t id, NumberIn(reply, address_));
  Registered found{id, reply["schema"].AsString()};
  const std::lock_guard lock(mutex_);
  newest_[subject] = {found, NowMs()};
  return found;
}

Result<std::int32_t> SchemaRegistry::IdOf(const std::string& subject, const std::string& text, bool add) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = ids_.find({subject, text}); known != ids_.end()) {
      return known->second;
    }
  }
  Json body;
  body.Set("schema", Json(text));
  FLEUVE_ASSIGN(const Json reply, Ask("/subjects/" + PercentEncode(subject) + (add ? "/versions" : ""), body.Dump()));
  FLEUVE_ASSIGN(const std::int32_t id, NumberIn(reply, address_));
  const std::lock_guard lock(mutex_);
  ids_[{subject, text}] = id;
  return id;
}

}  // namespace fleuve::registry
