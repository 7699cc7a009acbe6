#pragma once

/// \file
/// A running operation as clients see it: a window of numbered responses that can be read again after a broken stream.

#include <grpcpp/support/byte_buffer.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "connect/server.h"
#include "session/operation.h"
#include "session/session.h"

namespace fleuve::connect {

/// A response stream that reads an execution. Threads: any; called without locks of the execution.
class StreamReader {
 public:
  virtual ~StreamReader() = default;
  /// There may be more to send.
  virtual void Wake() = 0;
};

/// What a reader does next.
struct NextStep {
  enum class Kind { kSend, kWait, kEnd, kFail };
  Kind kind = Kind::kWait;
  grpc::ByteBuffer bytes;
  std::optional<Error> error;
};

struct ExecutionOptions {
  bool reattachable = false;
  bool allow_chunking = false;
  std::int64_t chunk_bytes = 0;
  std::int64_t buffer_bytes = 0;
  std::int64_t rows_per_batch = 10000;
  std::string time_zone = "UTC";
};

/// One operation. Threads: any.
class Execution final : public session::ResultSink, public std::enable_shared_from_this<Execution> {
 public:
  Execution(session::SessionPtr session, std::string operation_id, std::vector<std::string> tags,
            ExecutionOptions options, std::size_t fingerprint);

  const session::SessionPtr& session() const { return session_; }
  const session::OperationPtr& operation() const { return operation_; }
  const std::string& id() const { return operation_->id; }
  bool reattachable() const { return options_.reattachable; }
  std::size_t fingerprint() const { return fingerprint_; }

  // ResultSink.
  Result<void> PutSchema(const types::Schema& schema) override;
  Result<void> PutBatch(const columnar::RecordBatch& batch) override;
  Result<void> PutMessage(spark::connect::ExecutePlanResponse message) override;
  void End(Result<void> outcome) override;

  /// Makes `reader` the one that reads on after `last_response_id` (empty: from the start) and disconnects the one
  /// before it. INVALID_CURSOR.*.
  Result<void> Attach(std::shared_ptr<StreamReader> reader, const std::string& last_response_id);
  void Detach(const StreamReader* reader);
  /// For the attached reader; others get INVALID_CURSOR.DISCONNECTED.
  NextStep Next(const StreamReader* reader);
  /// The response that `Next` gave last has left.
  void Sent(const StreamReader* reader);

  /// Forgets responses up to and with this one. INVALID_CURSOR.POSITION_NOT_FOUND.
  Result<void> ReleaseUntil(const std::string& response_id);
  /// Nobody will read on: interrupts, ends an attached stream as disconnected.
  void Abandon();
  /// The client asked for the end: the stream fails with OPERATION_CANCELED at once.
  void Cancelled();

  bool ended() const;
  std::optional<Error> failure() const;
  /// What comes of an execution that nobody reads.
  enum class Fate {
    kKept,
    kAbandoned,  ///< its client would miss something: it must not run again under its id
    kForgotten,  ///< its client has seen nothing of it and, should it come back, runs it again without noticing
  };
  /// Abandons the execution if no stream has been attached for `abandon_ms`, or for `forget_ms` where it can be
  /// forgotten.
  /// \param left_ms  kKept: lowered to the time until the next look.
  Fate AbandonIfDetached(std::int64_t abandon_ms, std::int64_t forget_ms, std::int64_t* left_ms);
  /// Asks the reader to end its stream cleanly, so that the client reattaches.
  void CutStream();

 private:
  struct Response {
    std::string id;
    grpc::ByteBuffer bytes;
    std::int64_t size = 0;
  };

  Result<void> Append(spark::connect::ExecutePlanResponse* message, bool wait_for_room);
  Result<void> AppendEncoded(std::string ipc, std::int64_t rows);
  Result<void> EncodeAndAppend(const columnar::RecordBatch& batch);
  Result<void> AppendHeldSchema();
  void Finish(std::optional<Error> error);
  void DropSent();
  std::shared_ptr<StreamReader> reader() const;

  const session::SessionPtr session_;
  const session::OperationPtr operation_;
  const ExecutionOptions options_;
  const std::size_t fingerprint_;

  // Of the producing thread.
  std::int64_t row_offset_ = 0;
  /// Leaves with the first batch: until then the client has seen nothing.
  std::shared_ptr<spark::connect::ExecutePlanResponse> held_schema_;

  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<Response> responses_;
  std::int64_t first_index_ = 1;  ///< number of responses_.front()
  std::int64_t next_send_ = 1;    ///< number of the next response to send
  bool given_ = false;            ///< a reader was given a response
  bool in_flight_ = false;        ///< responses_[next_send_] was given out and has not left
  std::int64_t unsent_bytes_ = 0;
  std::int64_t sent_bytes_ = 0;
  std::map<std::string, std::int64_t> index_of_id_;
  std::deque<std::string> old_ids_;
  bool ended_ = false;
  bool abandoned_ = false;
  bool cut_ = false;
  std::optional<Error> error_;
  std::shared_ptr<StreamReader> reader_;
  std::int64_t detached_since_ms_ = 0;
};

using ExecutionPtr = std::shared_ptr<Execution>;

/// All operations of the service. Threads: any.
class ExecutionTable {
 public:
  /// The running or kept execution, or null.
  ExecutionPtr Find(const session::SessionKey& key, const std::string& id) const;
  bool WasAbandoned(const session::SessionKey& key, const std::string& id) const;
  /// False where the id is taken.
  bool Add(const session::SessionKey& key, const ExecutionPtr& execution);
  /// \param remember  later ExecutePlan calls with this id are OPERATION_ABANDONED.
  void Remove(const session::SessionKey& key, const std::string& id, bool remember);
  std::vector<std::pair<session::SessionKey, ExecutionPtr>> All() const;
  std::vector<ExecutionPtr> OfSession(const session::SessionKey& key) const;

 private:
  using Key = std::pair<session::SessionKey, std::string>;
  mutable std::mutex mutex_;
  std::map<Key, ExecutionPtr> executions_;
  std::set<Key> abandoned_;
  std::deque<Key> abandoned_order_;
};

Error InvalidHandle(const std::string& kind, const std::string& handle, const std::string& what);

}  // namespace fleuve::connect
