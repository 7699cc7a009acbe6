#include "python/worker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace fleuve::python {
namespace {

using ::testing::HasSubstr;

class WorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/fleuve_worker_test_XXXXXX";
    folder_ = ::mkdtemp(name);
    pool_ = WorkerPool::Make(folder_);
    setup_.executable = "python3";
    setup_.owner = "test";
  }
  void TearDown() override {
    pool_.reset();
    std::filesystem::remove_all(folder_);
  }
  BorrowedWorker Borrow() {
    auto worker = pool_->Borrow(setup_);
    EXPECT_TRUE(worker.ok()) << worker.error().ToString();
    return *std::move(worker);
  }
  static Task Probe(const std::string& action) {
    Task task;
    task.kind = "probe";
    task.header.Set("action", action).Set("text", "boom");
    return task;
  }
  /// Answers every wish for input with its end; the last event or error.
  static Result<Event> Finish(Worker& worker) {
    while (true) {
      FLEUVE_ASSIGN(Event event, worker.Next());
      if (event.kind == EventKind::kNeedInput) {
        FLEUVE_TRY(worker.GiveEnd(event.channel));
      } else if (event.kind == EventKind::kMessage) {
        FLEUVE_TRY(worker.Reply(Json(Json::Object{{"answer", Json(3)}}), event.bytes));
      } else {
        return event;
      }
    }
  }
  std::string folder_;
  std::shared_ptr<WorkerPool> pool_;
  WorkerSetup setup_;
};

TEST_F(WorkerTest, FramesThatAreNoneEndTheTask) {
  // A message without the size of its text, an unknown type, a length beyond every limit.
  for (const char* frame : {"M\\000\\000\\000\\000\\002\\000\\000\\000\\000\\000\\000\\000xx",
                            "?\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000\\000",
                            "D\\000\\000\\000\\000\\377\\377\\377\\377\\377\\377\\377\\377"}) {
    setup_.executable = folder_ + "/odd_python";
    std::ofstream(setup_.executable) << "#!/bin/sh\nprintf '" << frame << "' >&3\nexec cat <&3 >/dev/null\n";
    std::filesystem::permissions(setup_.executable, std::filesystem::perms::owner_all);
    BorrowedWorker worker = Borrow();
    ASSERT_TRUE(worker->Begin(Probe(""), nullptr).ok());
    const auto event = worker->Next();
    ASSERT_FALSE(event.ok());
    EXPECT_THAT(event.error().message(), HasSubstr("sent a frame"));
    EXPECT_FALSE(worker->is_free());
  }
}

TEST_F(WorkerTest, InputIsAskedForAndComesBack) {
  BorrowedWorker worker = Borrow();
  Task task = Probe("");
  const std::string blob(100000, 'x');
  task.blobs = {blob, "y"};
  ASSERT_TRUE(worker->Begin(task, nullptr).ok());
  const std::string large(5000000, 'z');
  for (int i = 0; i < 2; ++i) {
    auto need = worker->Next();
    ASSERT_TRUE(need.ok()) << need.error().ToString();
    ASSERT_EQ(need->kind, EventKind::kNeedInput);
    ASSERT_TRUE(worker->Give(large).ok());
    auto output = worker->Next();
    ASSERT_TRUE(output.ok());
    EXPECT_EQ(output->kind, EventKind::kOutput);
    EXPECT_EQ(output->bytes, large);
  }
  auto done = Finish(*worker.get());
  ASSERT_TRUE(done.ok()) << done.error().ToString();
  EXPECT_EQ(done->message["blobs"].items().at(0).AsInt(), 100000);
  EXPECT_EQ(done->message["pid"].AsInt(), worker->pid());
}

TEST_F(WorkerTest, AProcessServesManyTasksOfOneOwnerAlone) {
  pid_t first = 0;
  {
    BorrowedWorker worker = Borrow();
    ASSERT_TRUE(worker->Begin(Probe("ask"), nullptr).ok());
    auto done = Finish(*worker.get());
    ASSERT_TRUE(done.ok()) << done.error().ToString();
    EXPECT_EQ(done->message["answer"].AsInt(), 3);
    EXPECT_EQ(done->message["data"].AsInt(), 3);
    first = worker->pid();
  }
  EXPECT_EQ(Borrow()->pid(), first);
  setup_.owner = "another";
  EXPECT_NE(Borrow()->pid(), first);
}

TEST_F(WorkerTest, RaisedErrorsCarryTheTracebackAndLeaveTheWorkerFree) {
  BorrowedWorker worker = Borrow();
  ASSERT_TRUE(worker->Begin(Probe("raise"), nullptr).ok());
  auto done = Finish(*worker.get());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().condition(), "PYTHON_EXCEPTION");
  EXPECT_THAT(done.error().message(), HasSubstr("Traceback (most recent call last):"));
  EXPECT_THAT(done.error().message(), HasSubstr("ValueError: the probe raises: boom"));
  ASSERT_TRUE(worker->is_free());
  ASSERT_TRUE(worker->Begin(Probe("print"), nullptr).ok());
  EXPECT_TRUE(Finish(*worker.get()).ok());
}

TEST_F(WorkerTest, DeathLimitsAndCancellationAreTold) {
  BorrowedWorker worker = Borrow();
  ASSERT_TRUE(worker->Begin(Probe("die"), nullptr).ok());
  auto done = Finish(*worker.get());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().condition(), "FLEUVE_PYTHON_WORKER_DIED");
  EXPECT_THAT(done.error().message(), HasSubstr("signal 9"));

  worker = Borrow();
  Task task = Probe("grow");
  task.limits.memory_bytes = 200 << 20;
  ASSERT_TRUE(worker->Begin(task, nullptr).ok());
  done = Finish(*worker.get());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().condition(), "FLEUVE_PYTHON_MEMORY_LIMIT");

  worker = Borrow();
  task = Probe("hang");
  task.limits.task_ms = 300;
  ASSERT_TRUE(worker->Begin(task, nullptr).ok());
  done = Finish(*worker.get());
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().condition(), "FLEUVE_PYTHON_TIME_LIMIT");

  worker = Borrow();
  auto token = std::make_shared<CancellationToken>();
  ASSERT_TRUE(worker->Begin(Probe("hang"), token).ok());
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    token->Cancel();
  });
  done = Finish(*worker.get());
  canceller.join();
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind(), ErrorKind::kCancelled);
}

TEST_F(WorkerTest, AMissingInterpreterIsNamed) {
  setup_.executable = "/no/such/python";
  auto worker = pool_->Borrow(setup_);
  ASSERT_FALSE(worker.ok());
  EXPECT_EQ(worker.error().condition(), "FLEUVE_NO_PYTHON");
  EXPECT_THAT(worker.error().message(), HasSubstr("/no/such/python"));
}

}  // namespace
}  // namespace fleuve::python
