#pragma once

/// \file
/// A small Spark Connect client: SQL text in, tables as text out. It talks to any server, Apache Spark's included.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace fleuve::connect {

/// One session on one server. Threads: one caller at a time, but `Interrupt` from any thread.
class Client {
 public:
  /// \param url  `sc://host[:port][/;key=value...]`; `token` and `user_id` are understood, `use_ssl=true` selects TLS,
  ///             other keys travel as metadata.
  /// kInvalidArgument where the text is no such address; kTransient where nobody answers within 10 s.
  static Result<std::unique_ptr<Client>> Connect(const std::string& url);
  virtual ~Client() = default;

  /// Runs one statement. Gives what `show(max_rows, truncate=False)` prints of its result, or nothing where the result
  /// has no columns. Errors carry the server's message.
  virtual Result<std::string> RunSql(const std::string& text, std::int64_t max_rows) = 0;
  /// Asks the server to end what this session runs.
  virtual void Interrupt() = 0;
  /// Ends the session on the server.
  virtual void Release() = 0;
};

}  // namespace fleuve::connect
