#include "session/listener_bus_internal.h"
#include "spark/connect/base.pb.h"

namespace fleuve::session {

namespace sc = spark::connect;

class ListenerBus::Forwarder final : public stream::Listener {
 public:
  explicit Forwarder(std::shared_ptr<ResultSink> sink) : sink_(std::move(sink)) {}
  /// Tells the client that its listener hears from now on: before every event, as the client drops what comes earlier.
  void Confirm() {
    std::call_once(confirmed_, [this] {
      sc::ExecutePlanResponse message;
      message.mutable_streaming_query_listener_events_result()->set_listener_bus_listener_added(true);
      sink_->PutMessage(std::move(message)).IgnoreBecause("the client is gone; the operation ends through its token");
    });
  }
  void OnEvent(stream::EventKind kind, const std::string& event_json) override {
    sc::StreamingQueryEventType type = sc::QUERY_PROGRESS_UNSPECIFIED;
    switch (kind) {
      case stream::EventKind::kStarted:
        return;  // travels in the answer to start()
      case stream::EventKind::kProgress:
        type = sc::QUERY_PROGRESS_EVENT;
        break;
      case stream::EventKind::kIdle:
        type = sc::QUERY_IDLE_EVENT;
        break;
      case stream::EventKind::kTerminated:
        type = sc::QUERY_TERMINATED_EVENT;
        break;
    }
    Confirm();
    sc::ExecutePlanResponse message;
    auto* event = message.mutable_streaming_query_listener_events_result()->add_events();
    event->set_event_json(event_json);
    event->set_event_type(type);
    sink_->PutMessage(std::move(message)).IgnoreBecause("the client is gone; the operation ends through its token");
  }

 private:
  std::shared_ptr<ResultSink> sink_;
  std::once_flag confirmed_;
};

ListenerBus::ListenerBus(std::shared_ptr<stream::Manager> queries, std::string session_key, OperationPtr operation)
    : queries_(std::move(queries)),
      session_key_(std::move(session_key)),
      operation_(std::move(operation)),
      sink_(operation_->sink) {}

ListenerBus::~ListenerBus() { Stop(); }

void ListenerBus::Start(std::function<void()> on_cancel) {
  // It listens before the client is told so: a query that the client starts next may be over within a millisecond.
  auto forwarder = std::make_shared<Forwarder>(sink_);
  {
    std::lock_guard lock(mutex_);
    if (!stopped_) {
      listener_key_ = queries_->AddListener(session_key_, forwarder);
    }
  }
  forwarder->Confirm();
  operation_->token->AddCallback(std::move(on_cancel));
}

void ListenerBus::Stop() {
  std::int64_t key = 0;
  {
    std::lock_guard lock(mutex_);
    if (stopped_) {
      return;
    }
    stopped_ = true;
    key = listener_key_;
  }
  if (key != 0) {
    queries_->RemoveListener(key);
  }
  sink_->End({});
}

}  // namespace fleuve::session
