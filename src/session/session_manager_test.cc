#include "session/session_manager.h"

#include <gtest/gtest.h>

#include <thread>

namespace fleuve::session {
namespace {

constexpr const char* kId = "00112233-4455-6677-8899-aabbccddeeff";
constexpr const char* kOtherId = "00112233-4455-6677-8899-aabbccddee00";

std::shared_ptr<const Services> TestServices() {
  auto services = std::make_shared<Services>();
  services->scratch = testing::TempDir() + "session_manager_test";
  return services;
}

TEST(SessionManagerTest, HandlesAreCheckedAsClientsExpect) {
  SessionManager manager(TestServices());
  EXPECT_EQ(manager.Get({"u", "abc"}, "").error().condition(), "INVALID_HANDLE.FORMAT");
  EXPECT_EQ(manager.Get({"u", kId}, "", false).error().condition(), "INVALID_HANDLE.SESSION_NOT_FOUND");
  EXPECT_EQ(manager.Get({"u", kId}, kOtherId).error().condition(), "INVALID_HANDLE.SESSION_CHANGED");
  const SessionPtr session = manager.Get({"u", kId}, "").value();
  EXPECT_EQ(manager.Get({"u", kId}, session->server_side_id()).value(), session);
  EXPECT_NE(manager.Get({"other", kId}, "").value(), session);
  EXPECT_EQ(manager.Get({"u", kId}, kOtherId).error().condition(), "INVALID_HANDLE.SESSION_CHANGED");
  EXPECT_EQ(manager.Release({"u", kId}, false), session);
  EXPECT_TRUE(session->closed());
  EXPECT_EQ(manager.Release({"u", kId}, false), nullptr);
  EXPECT_EQ(manager.Get({"u", kId}, "").error().condition(), "INVALID_HANDLE.SESSION_CLOSED");
}

TEST(SessionManagerTest, ClonesCarrySettingsAndArtifacts) {
  SessionManager manager(TestServices());
  const SessionPtr session = manager.Get({"u", kId}, "").value();
  ASSERT_TRUE(session->config().Set("my.key", "v").ok());
  ASSERT_TRUE(session->artifacts().Add("cache/abc", "bytes").ok());
  const SessionPtr clone = manager.Clone(session, kOtherId).value();
  EXPECT_EQ(clone->config().Get("my.key").value(), "v");
  EXPECT_EQ(clone->artifacts().CacheBytes("abc").value(), "bytes");
  ASSERT_TRUE(clone->config().Set("my.key", "w").ok());
  EXPECT_EQ(session->config().Get("my.key").value(), "v");
  EXPECT_EQ(manager.Clone(session, kOtherId).error().condition(),
            "INVALID_CLONE_SESSION_REQUEST.TARGET_SESSION_ID_ALREADY_EXISTS");
}

TEST(SessionManagerTest, TheEndOfARunInterruptsRefusesAndWaits) {
  SessionManager manager(TestServices());
  const SessionPtr session = manager.Get({"u", kId}, "").value();
  const auto operation = [](const std::string& id) {
    auto made = std::make_shared<Operation>();
    made->id = id;
    made->run = RunOfClient(ClientOfRun("run 1") + " spark/4.1.1 os/linux");
    return made;
  };
  EXPECT_EQ(operation("x")->run, "run");  // a client's name ends at the first blank
  EXPECT_EQ(RunOfClient("_SPARK_CONNECT_PYTHON spark/4.1.1"), "");
  EXPECT_EQ(session->AddOperation(operation("early")).error().kind(), ErrorKind::kCancelled);
  session->BeginRun("run");
  const auto running = operation("a");
  ASSERT_TRUE(session->AddOperation(running).ok());
  std::thread worker([&] {
    while (!running->token->cancelled()) {
      std::this_thread::yield();
    }
    EXPECT_EQ(session->AddOperation(operation("late")).error().kind(), ErrorKind::kCancelled);
    session->RemoveOperation(running);
  });
  session->EndRun("run", 10000);
  EXPECT_TRUE(running->token->cancelled());
  worker.join();
}

TEST(SessionManagerTest, InterruptsReachByIdTagAndAll) {
  SessionManager manager(TestServices());
  const SessionPtr session = manager.Get({"u", kId}, "").value();
  const auto add = [&](const std::string& id, const std::string& tag) {
    auto operation = std::make_shared<Operation>();
    operation->id = id;
    operation->tags = {tag};
    EXPECT_TRUE(session->AddOperation(operation).ok());
    return operation;
  };
  const auto a = add("a", "x");
  const auto b = add("b", "y");
  EXPECT_EQ(session->AddOperation(a).error().kind(), ErrorKind::kAlreadyExists);
  EXPECT_EQ(session->InterruptTag("x"), std::vector<std::string>{"a"});
  EXPECT_TRUE(a->token->cancelled());
  EXPECT_FALSE(b->token->cancelled());
  EXPECT_TRUE(session->InterruptOperation("nope").empty());
  EXPECT_EQ(session->InterruptAll().size(), 2u);
  EXPECT_TRUE(b->token->cancelled());
}

TEST(ArtifactStoreTest, NamesStayInsideTheFolder) {
  ArtifactStore store(testing::TempDir() + "artifact_store_test");
  ASSERT_TRUE(store.Add("pyfiles/m.py", "x = 1").ok());
  EXPECT_TRUE(store.Exists("pyfiles/m.py"));
  EXPECT_TRUE(store.Add("pyfiles/m.py", "x = 1").ok());
  EXPECT_EQ(store.Add("pyfiles/m.py", "x = 2").error().condition(), "ARTIFACT_ALREADY_EXISTS");
  EXPECT_FALSE(store.Add("../evil", "x").ok());
  EXPECT_FALSE(store.Add("pyfiles/../../evil", "x").ok());
  EXPECT_FALSE(store.Add("/etc/evil", "x").ok());
  EXPECT_FALSE(store.Add("forward_to_fs/tmp/x", "x").ok());
  EXPECT_FALSE(store.CacheBytes("missing").ok());
}

}  // namespace
}  // namespace fleuve::session
