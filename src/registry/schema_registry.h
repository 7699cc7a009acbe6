#pragma once

/// \file
/// Confluent's schema registry: schemas of topics by subject and by the number that stands before each value.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "avro/schema.h"
#include "base/result.h"

namespace fleuve::registry {

/// Which registry, and how to speak to it.
struct Address {
  /// `http://host:port/prefix` or https; the next one is asked where one does not answer.
  std::vector<std::string> urls;
  /// `user:password` of basic authentication; empty: none.
  std::string user_info;
  std::string bearer_token;
  /// A file of certificates (PEM) for https; empty: the system's.
  std::string ca_file;
  std::int64_t connect_timeout_ms = 5000;
  std::int64_t read_timeout_ms = 10000;

  auto operator<=>(const Address&) const = default;
};

/// Values on the wire begin with a zero and the schema's number, big endian.
inline constexpr std::size_t kPrefixBytes = 5;
/// The number before a value; nullopt where there is none.
std::optional<std::int32_t> SchemaIdOf(std::string_view value);
std::string PrefixOf(std::int32_t id);

/// Errors: FLEUVE_SCHEMA_REGISTRY_UNAVAILABLE (kTransient: nobody answered, several times; names the address and
/// remembers nothing, so the next call asks again), FLEUVE_SCHEMA_REGISTRY_REFUSED (kNotFound: it has no such thing;
/// kPermissionDenied; kInvalidArgument). Threads: any; no lock is held while it waits.
class SchemaRegistry {
 public:
  struct Registered {
    std::int32_t id = 0;
    std::string text;
  };

  /// The registry at this address: one for all that ask, with what it has learned.
  static std::shared_ptr<SchemaRegistry> At(const Address& address);
  explicit SchemaRegistry(Address address) : address_(std::move(address)) {}

  /// What a number stands for: that never changes and is asked once.
  Result<avro::Schema> ById(std::int32_t id);
  /// The newest version of a subject, as it was at most `kNewestMs` ago.
  Result<Registered> Newest(const std::string& subject);
  /// The number of a schema under a subject. \param add  registers it where it is unknown; else that is an error.
  Result<std::int32_t> IdOf(const std::string& subject, const std::string& text, bool add);

  static constexpr std::int64_t kNewestMs = 2000;

 private:
  struct Known {
    Registered schema;
    std::int64_t at_ms = 0;
  };
  /// \param body  of a POST; nullopt: a GET.
  Result<Json> Ask(const std::string& path, const std::optional<std::string>& body) const;

  const Address address_;
  std::mutex mutex_;
  std::map<std::int32_t, avro::Schema> by_id_;
  std::map<std::int32_t, std::pair<Error, std::int64_t>> unknown_;  ///< and when that was heard
  std::map<std::string, Known> newest_;
  std::map<std::pair<std::string, std::string>, std::int32_t> ids_;
};

}  // namespace fleuve::registry
