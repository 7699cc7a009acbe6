#include <httplib.h>

#include "registry/http_internal.h"

namespace fleuve::registry {

Result<Reply> Request(const Address& address, const std::string& url, const std::string& path,
                      const std::optional<std::string>& body) {
  const std::size_t scheme = url.find("://");
  const std::size_t slash = scheme == std::string::npos ? std::string::npos : url.find('/', scheme + 3);
  std::string prefix = slash == std::string::npos ? "" : url.substr(slash);
  while (prefix.ends_with('/')) {
    prefix.pop_back();
  }
  httplib::Client client(url.substr(0, slash));
  if (!client.is_valid()) {
    return Error(ErrorKind::kInvalidArgument, "", "it is no http or https address");
  }
  client.set_connection_timeout(address.connect_timeout_ms / 1000, address.connect_timeout_ms % 1000 * 1000);
  client.set_read_timeout(address.read_timeout_ms / 1000, address.read_timeout_ms % 1000 * 1000);
  client.set_write_timeout(address.read_timeout_ms / 1000, address.read_timeout_ms % 1000 * 1000);
  if (!address.user_info.empty()) {
    const std::size_t colon = address.user_info.find(':');
    client.set_basic_auth(address.user_info.substr(0, colon),
                          colon == std::string::npos ? "" : address.user_info.substr(colon + 1));
  }
  if (!address.bearer_token.empty()) {
    client.set_bearer_token_auth(address.bearer_token);
  }
  if (!address.ca_file.empty()) {
    client.set_ca_cert_path(address.ca_file);
  }
  const httplib::Headers headers = {{"Accept", "application/vnd.schemaregistry.v1+json, application/json"}};
  const httplib::Result result =
      body ? client.Post(prefix + path, headers, *body, "application/vnd.schemaregistry.v1+json")
           : client.Get(prefix + path, headers);
  if (!result) {
    return Error(ErrorKind::kTransient, "", "no answer: " + httplib::to_string(result.error()));
  }
  return Reply{result->status, result->body};
}

}  // namespace fleuve::registry
