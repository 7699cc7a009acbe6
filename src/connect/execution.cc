#include <algorithm>

#include "base/clock.h"
#include "base/ids.h"
#include "columnar/ipc.h"
#include "connect/execution_internal.h"
#include "connect/message_input_internal.h"
#include "plan/proto_types.h"
#include "spark/connect/base.pb.h"

namespace fleuve::connect {

namespace {

/// Sent responses that a client may ask for again after a broken stream.
constexpr std::int64_t kRetryBytes = std::int64_t{10} << 20;
/// One message stays below the 128 MiB that clients accept.
constexpr std::int64_t kMaxBatchBytes = 120795955;
constexpr std::int64_t kTargetBatchBytes = std::int64_t{32} << 20;
constexpr std::size_t kOldIds = 100000;
constexpr std::size_t kAbandonedKept = 10000;

std::int64_t NowMs() { return Clock::System()->MonotonicNanos() / 1000000; }

Error InvalidCursor(const std::string& kind, const std::string& text) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_CURSOR." + kind, "The cursor is invalid. " + text);
}

Error Disconnected() { return InvalidCursor("DISCONNECTED", "The cursor has been disconnected by the server."); }

}  // namespace

Error InvalidHandle(const std::string& kind, const std::string& handle, const std::string& what) {
  return Error(ErrorKind::kNotFound, "INVALID_HANDLE." + kind, "The handle " + handle + " is invalid. " + what)
      .With("handle", handle);
}

Execution::Execution(session::SessionPtr session, std::string operation_id, std::vector<std::string> tags,
                     ExecutionOptions options, std::size_t fingerprint)
    : session_(std::move(session)),
      operation_(std::make_shared<session::Operation>()),
      options_(std::move(options)),
      fingerprint_(fingerprint),
      detached_since_ms_(NowMs()) {
  operation_->id = std::move(operation_id);
  operation_->tags = std::move(tags);
}

std::shared_ptr<StreamReader> Execution::reader() const {
  std::lock_guard lock(mutex_);
  return reader_;
}

Result<void> Execution::PutSchema(const types::Schema& schema) {
  held_schema_ = std::make_shared<spark::connect::ExecutePlanResponse>();
  plan::TypeToProto(schema, held_schema_->mutable_schema());
  return {};
}

Result<void> Execution::AppendHeldSchema() {
  const auto message = std::exchange(held_schema_, nullptr);
  return message == nullptr ? Result<void>() : Append(message.get(), false);
}

Result<void> Execution::PutBatch(const columnar::RecordBatch& batch) {
  FLEUVE_TRY(operation_->token->Check());
  FLEUVE_TRY(AppendHeldSchema());
  const std::int64_t rows = batch.row_count();
  const std::int64_t most = std::max<std::int64_t>(options_.rows_per_batch, 1);
  // A message holds exactly one Arrow batch: clients count the rows of the first.
  if (rows <= most) {
    return EncodeAndAppend(batch);
  }
  for (std::int64_t offset = 0; offset < rows; offset += most) {
    FLEUVE_TRY(EncodeAndAppend(columnar::Slice(batch, offset, std::min(most, rows - offset))));
  }
  return {};
}

Result<void> Execution::EncodeAndAppend(const columnar::RecordBatch& batch) {
  FLEUVE_ASSIGN(std::string ipc,
                columnar::EncodeIpcStream(*batch.schema, {batch}, columnar::ArrowOptions{options_.time_zone}));
  const std::int64_t rows = batch.row_count();
  // A big batch is halved until it fits: chunks are needed only for single rows that are too large.
  if (rows > 1 && static_cast<std::int64_t>(ipc.size()) > kTargetBatchBytes) {
    ipc = std::string();
    FLEUVE_TRY(EncodeAndAppend(columnar::Slice(batch, 0, rows / 2)));
    return EncodeAndAppend(columnar::Slice(batch, rows / 2, rows - rows / 2));
  }
  return AppendEncoded(std::move(ipc), rows);
}

Result<void> Execution::AppendEncoded(std::string ipc, std::int64_t rows) {
  const auto size = static_cast<std::int64_t>(ipc.size());
  std::int64_t chunk =
      options_.chunk_bytes > 0 ? std::clamp<std::int64_t>(options_.chunk_bytes, 1024, kMaxBatchBytes) : kMaxBatchBytes;
  if (!options_.allow_chunking) {
    if (size > kMaxBatchBytes) {
      return Error(ErrorKind::kResourceExhausted, "FLEUVE_ROW_TOO_LARGE",
                   "One row of the result takes " + std::to_string(size) +
                       " bytes, more than the 120795955 bytes that one message may hold.");
    }
    chunk = std::max<std::int64_t>(size, 1);
  }
  const std::int64_t chunks = std::max<std::int64_t>((size + chunk - 1) / chunk, 1);
  for (std::int64_t i = 0; i < chunks; ++i) {
    spark::connect::ExecutePlanResponse message;
    auto* out = message.mutable_arrow_batch();
    out->set_row_count(rows);
    out->set_start_offset(row_offset_);
    if (options_.allow_chunking) {
      out->set_chunk_index(i);
      out->set_num_chunks_in_batch(chunks);
    }
    if (chunks == 1) {
      out->set_data(std::move(ipc));
    } else {
      out->set_data(ipc.substr(static_cast<std::size_t>(i * chunk), static_cast<std::size_t>(chunk)));
    }
    FLEUVE_TRY(Append(&message, true));
  }
  row_offset_ += rows;
  return {};
}

Result<void> Execution::PutMessage(spark::connect::ExecutePlanResponse message) {
  FLEUVE_TRY(AppendHeldSchema());
  return Append(&message, false);
}

Result<void> Execution::Append(spark::connect::ExecutePlanResponse* message, bool wait_for_room) {
  Response response;
  response.id = NewUuid();
  message->set_session_id(session_->key().session_id);
  message->set_server_side_session_id(session_->server_side_id());
  message->set_operation_id(operation_->id);
  message->set_response_id(response.id);
  FLEUVE_ASSIGN(response.bytes, SerializeMessage(*message));
  response.size = static_cast<std::int64_t>(response.bytes.Length());
  std::shared_ptr<StreamReader> reader;
  {
    std::unique_lock lock(mutex_);
    if (wait_for_room) {
      room_.wait(lock, [&] {
        return ended_ || abandoned_ || unsent_bytes_ == 0 || unsent_bytes_ + response.size <= options_.buffer_bytes;
      });
    }
    if (ended_ || abandoned_) {
      return Error::Cancelled("Operation has been canceled.");
    }
    index_of_id_[response.id] = first_index_ + static_cast<std::int64_t>(responses_.size());
    unsent_bytes_ += response.size;
    responses_.push_back(std::move(response));
    reader = reader_;
  }
  if (reader != nullptr) {
    reader->Wake();
  }
  return {};
}

void Execution::End(Result<void> outcome) {
  if (outcome.ok()) {
    outcome = AppendHeldSchema();
  }
  if (outcome.ok() && options_.reattachable) {
    spark::connect::ExecutePlanResponse message;
    message.mutable_result_complete();
    outcome = Append(&message, false);
  }
  // The operation holds its sink only while it runs, or the two would keep each other.
  const auto self = shared_from_this();
  session_->RemoveOperation(operation_);
  operation_->sink = nullptr;
  if (outcome.ok()) {
    Finish(std::nullopt);
  } else if (outcome.error().kind() == ErrorKind::kCancelled) {
    Finish(Error::Cancelled("Operation has been canceled."));
  } else {
    Finish(std::move(outcome).error());
  }
}

void Execution::Cancelled() { Finish(Error::Cancelled("Operation has been canceled.")); }

void Execution::Finish(std::optional<Error> error) {
  std::shared_ptr<StreamReader> reader;
  {
    std::lock_guard lock(mutex_);
    if (ended_) {
      return;
    }
    ended_ = true;
    error_ = std::move(error);
    reader = reader_;
    room_.notify_all();
  }
  if (reader != nullptr) {
    reader->Wake();
  }
}

Result<void> Execution::Attach(std::shared_ptr<StreamReader> reader, const std::string& last_response_id) {
  std::shared_ptr<StreamReader> before;
  {
    std::lock_guard lock(mutex_);
    std::int64_t start = 1;
    if (!last_response_id.empty()) {
      const auto found = index_of_id_.find(last_response_id);
      if (found == index_of_id_.end()) {
        return InvalidCursor("POSITION_NOT_FOUND", "The cursor position id " + last_response_id + " is not found.")
            .With("responseId", last_response_id);
      }
      start = found->second + 1;
    }
    if (start < first_index_) {
      std::string id;
      for (const auto& [known, index] : index_of_id_) {
        if (index == start) {
          id = known;
        }
      }
      return InvalidCursor(
                 "POSITION_NOT_AVAILABLE",
                 "The cursor position id " + id + " is no longer available at index " + std::to_string(start) + ".")
          .With("index", std::to_string(start))
          .With("responseId", id);
    }
    before = std::move(reader_);
    reader_ = std::move(reader);
    cut_ = false;
    in_flight_ = false;
    // Responses from `start` on are sent again.
    next_send_ = start;
    unsent_bytes_ = 0;
    sent_bytes_ = 0;
    for (std::size_t i = 0; i < responses_.size(); ++i) {
      (first_index_ + static_cast<std::int64_t>(i) < start ? sent_bytes_ : unsent_bytes_) += responses_[i].size;
    }
    room_.notify_all();
  }
  if (before != nullptr) {
    before->Wake();
  }
  return {};
}

void Execution::Detach(const StreamReader* reader) {
  std::shared_ptr<StreamReader> gone;
  bool abandon = false;
  {
    std::lock_guard lock(mutex_);
    if (reader_.get() != reader) {
      return;
    }
    gone = std::move(reader_);
    reader_ = nullptr;
    in_flight_ = false;
    detached_since_ms_ = NowMs();
    abandon = !options_.reattachable;
  }
  if (abandon) {
    Abandon();
  }
}

NextStep Execution::Next(const StreamReader* reader) {
  std::lock_guard lock(mutex_);
  NextStep step;
  if (reader_.get() != reader || abandoned_) {
    step.kind = NextStep::Kind::kFail;
    step.error = Disconnected();
    return step;
  }
  const std::int64_t position = next_send_ - first_index_;
  if (position >= 0 && position < static_cast<std::int64_t>(responses_.size())) {
    if (cut_) {
      step.kind = NextStep::Kind::kEnd;
      return step;
    }
    step.kind = NextStep::Kind::kSend;
    step.bytes = responses_[static_cast<std::size_t>(position)].bytes;
    in_flight_ = true;
    given_ = true;
    return step;
  }
  if (ended_) {
    step.kind = error_ ? NextStep::Kind::kFail : NextStep::Kind::kEnd;
    step.error = error_;
    return step;
  }
  step.kind = cut_ ? NextStep::Kind::kEnd : NextStep::Kind::kWait;
  return step;
}

void Execution::Sent(const StreamReader* reader) {
  std::lock_guard lock(mutex_);
  if (reader_.get() != reader || !in_flight_) {
    return;
  }
  in_flight_ = false;
  const std::int64_t position = next_send_ - first_index_;
  if (position >= 0 && position < static_cast<std::int64_t>(responses_.size())) {
    const std::int64_t size = responses_[static_cast<std::size_t>(position)].size;
    unsent_bytes_ -= size;
    sent_bytes_ += size;
  }
  ++next_send_;
  DropSent();
  room_.notify_all();
}

void Execution::DropSent() {
  const std::int64_t keep = options_.reattachable ? kRetryBytes : 0;
  while (!responses_.empty() && first_index_ < next_send_ && sent_bytes_ > keep) {
    sent_bytes_ -= responses_.front().size;
    old_ids_.push_back(responses_.front().id);
    responses_.pop_front();
    ++first_index_;
  }
  while (old_ids_.size() > kOldIds) {
    index_of_id_.erase(old_ids_.front());
    old_ids_.pop_front();
  }
}

Result<void> Execution::ReleaseUntil(const std::string& response_id) {
  std::lock_guard lock(mutex_);
  const auto found = index_of_id_.find(response_id);
  if (found == index_of_id_.end()) {
    return InvalidCursor("POSITION_NOT_FOUND", "The cursor position id " + response_id + " is not found.")
        .With("responseId", response_id);
  }
  const std::int64_t last = found->second;
  while (!responses_.empty() && first_index_ <= last) {
    if (first_index_ < next_send_) {
      sent_bytes_ -= responses_.front().size;
    } else {
      // A response may be released before the transport has told that it left.
      unsent_bytes_ -= responses_.front().size;
      next_send_ = first_index_ + 1;
      in_flight_ = false;
    }
    old_ids_.push_back(responses_.front().id);
    responses_.pop_front();
    ++first_index_;
  }
  room_.notify_all();
  return {};
}

void Execution::Abandon() {
  std::shared_ptr<StreamReader> reader;
  {
    std::lock_guard lock(mutex_);
    abandoned_ = true;
    reader = reader_;
    room_.notify_all();
  }
  operation_->token->Cancel();
  if (reader != nullptr) {
    reader->Wake();
  }
}

bool Execution::ended() const {
  std::lock_guard lock(mutex_);
  return ended_;
}

std::optional<Error> Execution::failure() const {
  std::lock_guard lock(mutex_);
  return error_;
}

Execution::Fate Execution::AbandonIfDetached(std::int64_t abandon_ms, std::int64_t forget_ms, std::int64_t* left_ms) {
  bool forget = false;
  {
    std::lock_guard lock(mutex_);
    if (reader_ != nullptr) {
      return Fate::kKept;
    }
    forget = !given_ && operation_->repeatable;
    const std::int64_t left = detached_since_ms_ + (forget ? std::min(forget_ms, abandon_ms) : abandon_ms) - NowMs();
    if (left > 0) {
      *left_ms = std::min(*left_ms, left);
      return Fate::kKept;
    }
    abandoned_ = true;
    room_.notify_all();
  }
  operation_->token->Cancel();
  // Its client may come with the same id before the last thread has left it.
  session_->RemoveOperation(operation_);
  return forget ? Fate::kForgotten : Fate::kAbandoned;
}

void Execution::CutStream() {
  {
    std::lock_guard lock(mutex_);
    cut_ = true;
  }
  if (auto current = reader(); current != nullptr) {
    current->Wake();
  }
}

ExecutionPtr ExecutionTable::Find(const session::SessionKey& key, const std::string& id) const {
  std::lock_guard lock(mutex_);
  const auto found = executions_.find({key, id});
  return found == executions_.end() ? nullptr : found->second;
}

bool ExecutionTable::WasAbandoned(const session::SessionKey& key, const std::string& id) const {
  std::lock_guard lock(mutex_);
  return abandoned_.contains({key, id});
}

bool ExecutionTable::Add(const session::SessionKey& key, const ExecutionPtr& execution) {
  std::lock_guard lock(mutex_);
  return executions_.emplace(Key{key, execution->id()}, execution).second;
}

void ExecutionTable::Remove(const session::SessionKey& key, const std::string& id, bool remember) {
  ExecutionPtr gone;
  std::lock_guard lock(mutex_);
  const Key full{key, id};
  if (const auto found = executions_.find(full); found != executions_.end()) {
    gone = found->second;
    executions_.erase(found);
  }
  if (remember && abandoned_.insert(full).second) {
    abandoned_order_.push_back(full);
    if (abandoned_order_.size() > kAbandonedKept) {
      abandoned_.erase(abandoned_order_.front());
      abandoned_order_.pop_front();
    }
  }
}

std::vector<std::pair<session::SessionKey, ExecutionPtr>> ExecutionTable::All() const {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<session::SessionKey, ExecutionPtr>> all;
  for (const auto& [key, execution] : executions_) {
    all.emplace_back(key.first, execution);
  }
  return all;
}

std::vector<ExecutionPtr> ExecutionTable::OfSession(const session::SessionKey& key) const {
  std::lock_guard lock(mutex_);
  std::vector<ExecutionPtr> found;
  for (const auto& [full, execution] : executions_) {
    if (full.first == key) {
      found.push_back(execution);
    }
  }
  return found;
}

}  // namespace fleuve::connect
