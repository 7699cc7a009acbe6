#include <gtest/gtest.h>

#include <vector>

#include "session/listener_bus_internal.h"
#include "spark/connect/base.pb.h"

namespace fleuve::session {
namespace {

namespace sc = spark::connect;

/// What the client would read, in order.
class RecordingSink final : public ResultSink {
 public:
  Result<void> PutSchema(const types::Schema& /*schema*/) override { return {}; }
  Result<void> PutBatch(const columnar::RecordBatch& /*batch*/) override { return {}; }
  Result<void> PutMessage(sc::ExecutePlanResponse message) override {
    const auto& result = message.streaming_query_listener_events_result();
    if (result.listener_bus_listener_added()) {
      texts.emplace_back("added");
    }
    for (const auto& event : result.events()) {
      texts.push_back(event.event_json());
    }
    return {};
  }
  void End(Result<void> /*outcome*/) override { texts.emplace_back("end"); }

  std::vector<std::string> texts;
};

/// Has no queries; a listener that is added hears of one before `AddListener` returns, as when a query is fast.
class FastManager final : public stream::Manager {
 public:
  explicit FastManager(const RecordingSink* sink) : sink_(sink) {}
  Result<stream::QueryPtr> Start(stream::QueryRequest /*request*/) override { return Error::Internal("no queries"); }
  std::vector<stream::QueryPtr> Active(const std::string& /*session_key*/) const override { return {}; }
  stream::QueryPtr Get(const std::string& /*session_key*/, const std::string& /*id*/) const override { return nullptr; }
  stream::QueryPtr Find(const std::string& /*session_key*/, const std::string& /*id*/,
                        const std::string& /*run_id*/) const override {
    return nullptr;
  }
  Result<bool> AwaitAny(const std::string& /*session_key*/, std::optional<std::int64_t> /*timeout_ms*/,
                        const CancellationTokenPtr& /*token*/) override {
    return false;
  }
  void ResetTerminated(const std::string& /*session_key*/) override {}
  std::int64_t AddListener(const std::string& /*session_key*/, std::shared_ptr<stream::Listener> listener) override {
    told_before = sink_->texts;
    listener->OnEvent(stream::EventKind::kProgress, "first");
    listener->OnEvent(stream::EventKind::kTerminated, "second");
    return 1;
  }
  void RemoveListener(std::int64_t key) override { removed = key; }
  void StopSession(const std::string& /*session_key*/) override {}
  void StopAll(std::int64_t /*grace_ms*/) override {}
  std::vector<stream::QueryPtr> All() const override { return {}; }

  std::vector<std::string> told_before;
  std::int64_t removed = 0;

 private:
  const RecordingSink* const sink_;
};

TEST(ListenerBus, HearsBeforeTheClientIsToldSoAndConfirmsBeforeEveryEvent) {
  auto sink = std::make_shared<RecordingSink>();
  auto manager = std::make_shared<FastManager>(sink.get());
  auto operation = std::make_shared<Operation>();
  operation->sink = sink;
  auto bus = std::make_shared<ListenerBus>(manager, "session", operation);
  bus->Start([] {});
  EXPECT_EQ(manager->told_before, std::vector<std::string>());
  EXPECT_EQ(sink->texts, (std::vector<std::string>{"added", "first", "second"}));
  bus->Stop();
  bus->Stop();
  EXPECT_EQ(manager->removed, 1);
  EXPECT_EQ(sink->texts.back(), "end");
  EXPECT_EQ(sink->texts.size(), 4U);
}

}  // namespace
}  // namespace fleuve::session
