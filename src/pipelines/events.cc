#include "pipelines/events.h"

#include <array>

#include "base/ids.h"
#include "base/log.h"
#include "spark/connect/base.pb.h"
#include "types/value.h"

namespace fleuve::pipelines {

Events::Events(session::OperationPtr operation, std::optional<storage::Location> log, std::string pipeline,
               std::string run, Clock* clock)
    : operation_(std::move(operation)),
      log_(std::move(log)),
      pipeline_(std::move(pipeline)),
      run_(std::move(run)),
      clock_(clock) {}

void Events::Send(const std::string& level, const std::string& type, const std::string& message, Json details) {
  std::lock_guard lock(mutex_);
  const std::int64_t now = clock_->NowMicros();
  if (operation_ != nullptr && operation_->sink != nullptr && !message.empty()) {
    spark::connect::ExecutePlanResponse response;
    auto* event = response.mutable_pipeline_event_result()->mutable_event();
    event->set_message(message);
    event->mutable_timestamp()->set_seconds(now / 1000000);
    event->mutable_timestamp()->set_nanos(static_cast<std::int32_t>(now % 1000000 * 1000));
    // A client that is gone is told of by the operation's token.
    operation_->sink->PutMessage(std::move(response)).IgnoreBecause("the run goes on without a listener");
  }
  if (!log_) {
    return;
  }
  Json line;
  line.Set("id", Json(NewUuid()));
  line.Set("timestamp", Json(now / 1000));
  line.Set("level", Json(level));
  line.Set("event_type", Json(type));
  line.Set("message", Json(message));
  Json origin;
  origin.Set("pipeline_id", Json(pipeline_));
  origin.Set("update_id", Json(run_));
  line.Set("origin", std::move(origin));
  line.Set("details", std::move(details));
  lines_ += line.Dump() + "\n";
}

Result<void> Events::Flush() {
  std::lock_guard lock(mutex_);
  if (!log_ || lines_.size() == written_) {
    return {};
  }
  const std::string path = log_->path + "/" + run_ + ".json";
  FLEUVE_TRY(log_->store->Put(path, lines_, storage::PutMode::kOverwrite));
  written_ = lines_.size();
  return {};
}

}  // namespace fleuve::pipelines
