// Commits whose answer was lost, and commits that another writer has renamed its own over.
#include <gtest/gtest.h>

#include "base/clock.h"
#include "delta/table_fixture_internal.h"

namespace fleuve::delta {
namespace {

class LostCommits : public TableTest {
 protected:
  /// Puts another commit in the place of one, as a rename that does not look does.
  void Replace(std::int64_t version, const std::string& file) {
    std::string text;
    CommitInfo info;
    info.operation = "WRITE";
    info.engine_info = "careless";
    info.txn_id = "theirs";
    AppendJsonLine(text, info);
    AppendJsonLine(text, File(file));
    ASSERT_TRUE(store_->Put(CommitPath("/t", version), text, storage::PutMode::kOverwrite).ok());
  }
};

TEST_F(LostCommits, AReplacedCommitIsToldOnce) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("ours")}).ok());
  Replace(1, "theirs");
  const auto told = log->Latest();
  ASSERT_FALSE(told.ok());
  EXPECT_EQ(told.error().condition(), "FLEUVE_COMMIT_REPLACED");
  EXPECT_NE(told.error().message().find("careless"), std::string::npos) << told.error().message();
  const auto now = log->Latest();
  ASSERT_TRUE(now.ok()) << now.error().ToString();
  EXPECT_FALSE((*now)->FindFile("ours"));
  EXPECT_TRUE((*now)->FindFile("theirs"));
}

TEST_F(LostCommits, OneBehindLaterCommitsIsToldToo) {
  ManualClock clock(1'700'000'000'000'000);
  LogContext context;
  context.clock = &clock;
  LogRegistry registry(std::move(context));
  Make();
  const auto log = registry.Open({store_, "/t"});
  ASSERT_TRUE(Append(log, {File("ours")}).ok());
  Replace(1, "theirs");
  ASSERT_TRUE(Append(Fresh(), {File("later")}).ok());
  // A reader that looks before the commit has settled need not see it; the first one after that must.
  clock.AdvanceMicros(3'000'000);
  EXPECT_EQ(log->Latest().error().condition(), "FLEUVE_COMMIT_REPLACED");
  EXPECT_EQ((*log->Latest())->version(), 2);
}

TEST_F(LostCommits, OneReplacedBeforeTheCommitReturnsFailsTheCommit) {
  Make();
  bool committed = false;
  const auto faulty = storage::MakeFaultyStore(store_, [&](std::string_view operation, std::string_view path) {
    if (committed && operation == "Head" && path == CommitPath("/t", 1)) {
      committed = false;
      Replace(1, "theirs");
    }
    committed = committed || operation == "CommitStaged";
    return storage::Fault::kNone;
  });
  LogRegistry registry(LogContext{});
  const auto version = Append(registry.Open({faulty, "/t"}), {File("ours")});
  ASSERT_FALSE(version.ok());
  EXPECT_EQ(version.error().condition(), "FLEUVE_COMMIT_REPLACED");
}

TEST_F(LostCommits, ATableMadeAnewIsNone) {
  const auto log = Make();
  ASSERT_TRUE(Append(log, {File("ours")}).ok());
  ASSERT_TRUE(store_->DeleteAll("/t").ok());
  const auto maker = Fresh();
  {
    Transaction txn(maker, nullptr);
    Metadata other = SimpleMetadata();
    other.id = "00000000-0000-4000-8000-000000000001";
    ASSERT_TRUE(txn.UpdateMetadata(std::move(other)).ok());
    ASSERT_TRUE(txn.Commit({}, {.name = "CREATE TABLE"}).ok());
  }
  ASSERT_TRUE(Append(maker, {File("new")}).ok());
  const auto now = log->Latest();
  ASSERT_TRUE(now.ok()) << now.error().ToString();
  EXPECT_TRUE((*now)->FindFile("new"));
}

/// What another writer does while our answer is lost.
enum class Meanwhile { kNothing, kAppends };

class LostAnswers : public LostCommits,
                    public testing::WithParamInterface<std::tuple<storage::Fault, Meanwhile, bool>> {};

TEST_P(LostAnswers, AreSettledByReadingBack) {
  const storage::Fault fault = std::get<0>(GetParam());
  const Meanwhile meanwhile = std::get<1>(GetParam());
  const bool in_commit_times = std::get<2>(GetParam());
  StringMap properties;
  if (in_commit_times) {
    properties = {{"delta.enableInCommitTimestamps", "true"}};
  }
  Make({}, properties);
  int calls = 0;
  const auto faulty = storage::MakeFaultyStore(store_, [&](std::string_view operation, std::string_view) {
    if (operation != "CommitStaged" || ++calls > 2) {
      return storage::Fault::kNone;
    }
    if (calls == 1 && meanwhile == Meanwhile::kAppends && fault != storage::Fault::kFailAfter) {
      EXPECT_TRUE(Append(Fresh(), {File("theirs")}).ok());
    }
    return fault;
  });
  LogRegistry registry(LogContext{});
  const auto version = Append(registry.Open({faulty, "/t"}), {File("ours")});
  ASSERT_TRUE(version.ok()) << version.error().ToString();
  if (meanwhile == Meanwhile::kAppends && fault == storage::Fault::kFailAfter) {
    ASSERT_TRUE(Append(Fresh(), {File("theirs")}).ok());
  }
  const auto now = *Fresh()->Latest();
  EXPECT_TRUE(now->FindFile("ours"));
  EXPECT_EQ(now->FindFile("theirs").has_value(), meanwhile == Meanwhile::kAppends);
  EXPECT_EQ(now->version(), meanwhile == Meanwhile::kAppends ? 2 : 1) << "once, and at no version twice";
  EXPECT_EQ(now->file_count(), now->version());
}

INSTANTIATE_TEST_SUITE_P(Faults, LostAnswers,
                         testing::Combine(testing::Values(storage::Fault::kFailBefore, storage::Fault::kFailAfter,
                                                          storage::Fault::kFailUnknown),
                                          testing::Values(Meanwhile::kNothing, Meanwhile::kAppends), testing::Bool()));

}  // namespace
}  // namespace fleuve::delta
