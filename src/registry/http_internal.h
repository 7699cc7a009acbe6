#pragma once

/// \file
/// One request to one address. Private to this room.

#include <optional>
#include <string>

#include "base/result.h"
#include "registry/schema_registry.h"

namespace fleuve::registry {

struct Reply {
  int status = 0;
  std::string body;
};

/// The reply, whatever its status; kTransient with the reason where none came.
/// \param url  of `address`; \param path  begins with a slash; \param body  of a POST, else a GET.
Result<Reply> Request(const Address& address, const std::string& url, const std::string& path,
                      const std::optional<std::string>& body);

}  // namespace fleuve::registry
