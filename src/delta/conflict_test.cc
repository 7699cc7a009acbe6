// Every pair of commits that race for one version, at both isolation levels, and commits that mark rows of one file.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>

#include "delta/deletion_vector.h"
#include "delta/table_fixture_internal.h"

namespace fleuve::delta {
namespace {

using types::DataType;

const std::vector<plan::Attribute>& Columns() {
  static const std::vector<plan::Attribute> columns{
      {plan::NewAttributeId(), "id", DataType::Int(), true, {}, {}, false},
      {plan::NewAttributeId(), "p", DataType::String(), true, {}, {}, false}};
  return columns;
}

plan::ExprPtr Compare(const char* op, std::size_t column, types::Value value) {
  return plan::MakeCall(
      op, {plan::MakeAttribute(Columns()[column]), plan::MakeLiteral(std::move(value), Columns()[column].type)},
      DataType::Boolean(), true);
}

RemoveFile Gone(const std::string& path, bool data_change) {
  RemoveFile remove = fleuve::delta::Gone(path);
  remove.data_change = data_change;
  return remove;
}

AddFile New(const std::string& path, const char* p, bool data_change = true) {
  AddFile add = File(path, 0, 9, p);
  add.data_change = data_change;
  return add;
}

/// What one side of a race does to a table with the files `x` and `y`, one a partition.
struct Change {
  const char* name;
  std::function<Result<std::vector<Action>>(Transaction&, const std::string& mine)> make;
};

std::vector<Change> Changes() {
  const auto read = [](Transaction& txn, const char* p) {
    txn.ReadFiles({File(p, 0, 9, p)}, {Compare("eq", 1, p)}, Columns());
  };
  using Actions = Result<std::vector<Action>>;
  return {
      {"append x",
       [](Transaction&, const std::string& mine) -> Actions { return std::vector<Action>{New(mine, "x")}; }},
      {"append y",
       [](Transaction&, const std::string& mine) -> Actions { return std::vector<Action>{New(mine, "y")}; }},
      {"insert what the table has",
       [](Transaction& txn, const std::string& mine) -> Actions {
         txn.ReadWholeTable();
         return std::vector<Action>{New(mine, "x")};
       }},
      {"delete x",
       [=](Transaction& txn, const std::string&) -> Actions {
         read(txn, "x");
         return std::vector<Action>{Gone("x", true)};
       }},
      {"delete y",
       [=](Transaction& txn, const std::string&) -> Actions {
         read(txn, "y");
         return std::vector<Action>{Gone("y", true)};
       }},
      {"update x",
       [=](Transaction& txn, const std::string& mine) -> Actions {
         read(txn, "x");
         return std::vector<Action>{Gone("x", true), New(mine, "x")};
       }},
      {"optimize x",
       [=](Transaction& txn, const std::string& mine) -> Actions {
         read(txn, "x");
         return std::vector<Action>{Gone("x", false), New(mine, "x", false)};
       }},
      {"optimize y",
       [=](Transaction& txn, const std::string& mine) -> Actions {
         read(txn, "y");
         return std::vector<Action>{Gone("y", false), New(mine, "y", false)};
       }},
      {"overwrite",
       [](Transaction& txn, const std::string& mine) -> Actions {
         txn.ReadWholeTable();
         return std::vector<Action>{Gone("x", true), Gone("y", true), New(mine, "x")};
       }},
      {"change metadata",
       [](Transaction& txn, const std::string& mine) -> Actions {
         Metadata metadata = txn.metadata();
         metadata.description = mine;
         FLEUVE_TRY(txn.UpdateMetadata(std::move(metadata)));
         return std::vector<Action>{};
       }},
      {"change protocol",
       [](Transaction& txn, const std::string&) -> Actions {
         txn.UpdateProtocol(Protocol{1, 3, {}, {}});
         return std::vector<Action>{};
       }},
      {"app",
       [](Transaction& txn, const std::string&) -> Actions {
         txn.ReadApp("app");
         return std::vector<Action>{SetTransaction{"app", 1, 1}};
       }},
  };
}

/// One letter a winner, in the order of `Changes`: `.` no conflict, A append, R delete-read, D delete-delete,
/// M metadata, P protocol, T transaction.
const std::map<std::string, std::pair<const char*, const char*>> kExpected = {
    // ours                          Serializable    WriteSerializable
    {"append x", {".........MP.", ".........MP."}},
    {"append y", {".........MP.", ".........MP."}},
    {"insert what the table has", {"AAARRA..AMP.", "..ARRA..AMP."}},
    {"delete x", {"A.AR.AR.AMP.", "..AR.AR.AMP."}},
    {"delete y", {".A..R..RRMP.", "....R..RRMP."}},
    {"update x", {"A.AR.AR.AMP.", "..AR.AR.AMP."}},
    {"optimize x", {"...R.RR.RMP.", "...R.RR.RMP."}},
    {"optimize y", {"....R..RRMP.", "....R..RRMP."}},
    {"overwrite", {"AAARRADDAMP.", "..ARRADDAMP."}},
    {"change metadata", {".........MP.", ".........MP."}},
    {"change protocol", {".........MP.", ".........MP."}},
    {"app", {".........MPT", ".........MPT"}},
};

char Letter(const std::string& condition) {
  static const std::map<std::string, char> letters{
      {"DELTA_CONCURRENT_APPEND", 'A'}, {"DELTA_CONCURRENT_DELETE_READ", 'R'}, {"DELTA_CONCURRENT_DELETE_DELETE", 'D'},
      {"DELTA_METADATA_CHANGED", 'M'},  {"DELTA_PROTOCOL_CHANGED", 'P'},       {"DELTA_CONCURRENT_TRANSACTION", 'T'}};
  const auto at = letters.find(condition);
  return at == letters.end() ? '?' : at->second;
}

class Matrix : public testing::TestWithParam<bool> {};

TEST_P(Matrix, EveryPairOfChangesConflictsOrNot) {
  const bool weak = GetParam();
  const std::vector<Change> changes = Changes();
  for (const Change& ours : changes) {
    std::string row;
    for (const Change& theirs : changes) {
      const auto store = storage::MemoryStore::Make();
      LogRegistry here(LogContext{});
      LogRegistry there(LogContext{});
      const auto log = here.Open({store, "/t"});
      {
        Transaction txn(log, nullptr);
        Metadata metadata = SimpleMetadata({"p"});
        metadata.configuration = {{"delta.isolationLevel", weak ? "WriteSerializable" : "Serializable"}};
        ASSERT_TRUE(txn.UpdateMetadata(std::move(metadata)).ok());
        ASSERT_TRUE(txn.Commit({New("x", "x"), New("y", "y")}, {.name = "WRITE"}).ok());
      }
      Transaction slow(log, *log->Latest());
      auto actions = ours.make(slow, "ours");
      ASSERT_TRUE(actions.ok());
      {
        const auto other = there.Open({store, "/t"});
        Transaction fast(other, *other->Latest());
        auto winner = theirs.make(fast, "theirs");
        ASSERT_TRUE(winner.ok());
        const auto done = fast.Commit(*std::move(winner), {.name = "WRITE"});
        ASSERT_TRUE(done.ok()) << theirs.name << ": " << done.error().ToString();
      }
      const bool adds = std::any_of(actions->begin(), actions->end(),
                                    [](const Action& action) { return std::holds_alternative<AddFile>(action); });
      const auto done = slow.Commit(*std::move(actions), {.name = "WRITE"});
      row += done.ok() ? '.' : Letter(done.error().condition());
      // Either way the table is one of the two, whole: nothing of a refused commit is there.
      LogRegistry reader(LogContext{});
      const auto after = reader.Open({store, "/t"})->Latest();
      ASSERT_TRUE(after.ok());
      EXPECT_EQ((*after)->version(), done.ok() ? 2 : 1) << ours.name << " after " << theirs.name;
      EXPECT_EQ((*after)->FindFile("ours").has_value(), done.ok() && adds);
    }
    const auto& [strong_row, weak_row] = kExpected.at(ours.name);
    EXPECT_EQ(row, weak ? weak_row : strong_row) << ours.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Levels, Matrix, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "WriteSerializable" : "Serializable");
});

class RowConflicts : public TableTest {
 protected:
  DeltaLogPtr MakeTracked(bool tracked = true) {
    const auto log =
        Make({}, {{"delta.enableDeletionVectors", "true"}, {"delta.enableRowTracking", tracked ? "true" : "false"}});
    EXPECT_TRUE(Append(log, {File("f", 0, 9), File("g", 10, 19)}).ok());
    return log;
  }

  /// Marks rows of a file besides those that are marked; `more` is added too.
  Result<void> Mark(Transaction& txn, const std::string& path, std::vector<std::uint64_t> rows,
                    std::vector<plan::ExprPtr> filters, bool rows_alone = true, std::vector<Action> more = {}) {
    const AddFile before = *txn.snapshot()->FindFile(path);
    RemoveFile remove = fleuve::delta::Gone(path);
    remove.deletion_vector = before.deletion_vector;
    if (before.deletion_vector) {
      FLEUVE_ASSIGN(const auto old, LoadDeletionVector(*before.deletion_vector, {store_, "/t"}));
      rows.insert(rows.end(), old->rows().begin(), old->rows().end());
      std::sort(rows.begin(), rows.end());
    }
    FLEUVE_ASSIGN(const auto written, WriteDeletionVectors({rows}, {store_, "/t"}));
    AddFile add = before;
    add.deletion_vector = written.descriptors[0];
    txn.ReadFiles({before}, std::move(filters), Columns(), rows_alone);
    more.emplace_back(std::move(remove));
    more.emplace_back(std::move(add));
    FLEUVE_TRY(txn.Commit(std::move(more), {.name = "DELETE"}, {written.file}, {"/t"}));
    return {};
  }

  std::vector<std::uint64_t> Marked(const std::string& path) {
    const auto snapshot = *Fresh()->Latest();
    const AddFile file = *snapshot->FindFile(path);
    return file.deletion_vector ? (*LoadDeletionVector(*file.deletion_vector, {store_, "/t"}))->rows()
                                : std::vector<std::uint64_t>();
  }

  /// The condition that the slower of two commits ends with; empty: none.
  std::string Race(const std::function<Result<void>(Transaction&)>& theirs,
                   const std::function<Result<void>(Transaction&)>& ours) {
    const auto log = registry_.Open({store_, "/t"});
    const auto other = Fresh();
    Transaction slow(log, *log->Latest());
    Transaction fast(other, *other->Latest());
    const auto first = theirs(fast);
    EXPECT_TRUE(first.ok()) << first.error().ToString();
    const auto second = ours(slow);
    return second.ok() ? "" : second.error().condition();
  }
};

TEST_F(RowConflicts, CommitsThatMarkOtherRowsOfAFileAreBothThere) {
  MakeTracked();
  const auto mark = [&](std::vector<std::uint64_t> rows) {
    return [this, rows](Transaction& txn) { return Mark(txn, "f", rows, {Compare("lt", 0, 5)}); };
  };
  EXPECT_EQ(Race(mark({1, 2}), mark({4})), "");
  EXPECT_EQ(Marked("f"), (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_EQ(Race(mark({5}), mark({0, 7})), "") << "the second time there is a vector already";
  EXPECT_EQ(Marked("f"), (std::vector<std::uint64_t>{0, 1, 2, 4, 5, 7}));
  EXPECT_EQ(Race(mark({8, 9}), mark({9})), "DELTA_CONCURRENT_DELETE_READ");
  EXPECT_EQ(Marked("f"), (std::vector<std::uint64_t>{0, 1, 2, 4, 5, 7, 8, 9}));
  // A commit that has looked at the file and taken rows of another one alone.
  EXPECT_EQ(Race(mark({3}),
                 [&](Transaction& txn) {
                   txn.ReadFiles({File("f")}, {Compare("lt", 0, 5)}, Columns(), true);
                   return Mark(txn, "g", {1}, {Compare("lt", 0, 15)});
                 }),
            "");
  EXPECT_EQ((*Fresh()->Latest())->row_count(), 10);
}

TEST_F(RowConflicts, RowsThatAreNewCountByTheirStatistics) {
  MakeTracked();
  const auto update = [&](const char* name, int low, int high) {
    return [=, this](Transaction& txn) {
      return Mark(txn, "f", {static_cast<std::uint64_t>(low)}, {Compare("eq", 0, low)}, true, {File(name, high, high)});
    };
  };
  EXPECT_EQ(Race(update("a", 1, 1), update("b", 2, 2)), "");
  EXPECT_EQ(Race(update("c", 3, 4), update("d", 4, 5)), "DELTA_CONCURRENT_APPEND") << "3 became 4, and 4 was read";
}

TEST_F(RowConflicts, ResultsThatDependOnOtherRowsConflict) {
  MakeTracked();
  const auto mark = [&](std::vector<std::uint64_t> rows, bool alone) {
    return [this, rows, alone](Transaction& txn) { return Mark(txn, "f", rows, {Compare("lt", 0, 5)}, alone); };
  };
  EXPECT_EQ(Race(mark({1}, true), mark({2}, false)), "DELTA_CONCURRENT_APPEND");
  EXPECT_EQ(Race(
                [&](Transaction& txn) -> Result<void> {
                  txn.ReadFiles({*txn.snapshot()->FindFile("f")}, {}, {});
                  RemoveFile remove = fleuve::delta::Gone("f");
                  remove.deletion_vector = txn.snapshot()->FindFile("f")->deletion_vector;
                  remove.data_change = false;
                  AddFile whole = File("whole");
                  whole.data_change = false;
                  FLEUVE_TRY(txn.Commit({remove, whole}, {.name = "OPTIMIZE"}));
                  return {};
                },
                mark({3}, true)),
            "DELTA_CONCURRENT_DELETE_READ")
      << "a file written anew has its rows elsewhere";
}

TEST_F(RowConflicts, RowsThatComeBackConflict) {
  const auto log = MakeTracked();
  {
    Transaction txn(log, *log->Latest());
    ASSERT_TRUE(Mark(txn, "f", {1, 2}, {Compare("lt", 0, 5)}).ok());
  }
  const AddFile with_two = *(*log->Latest())->FindFile("f");
  {
    Transaction txn(log, *log->Latest());
    ASSERT_TRUE(Mark(txn, "f", {3}, {Compare("lt", 0, 5)}).ok());
  }
  const auto restore = [&](Transaction& txn) -> Result<void> {
    RemoveFile remove = fleuve::delta::Gone("f");
    remove.deletion_vector = txn.snapshot()->FindFile("f")->deletion_vector;
    FLEUVE_TRY(txn.Commit({remove, with_two}, {.name = "RESTORE"}));
    return {};
  };
  EXPECT_EQ(Race(restore,
                 [&](Transaction& txn) {
                   txn.ReadFiles({File("f")}, {Compare("lt", 0, 5)}, Columns(), true);
                   return Mark(txn, "g", {1}, {Compare("lt", 0, 15)});
                 }),
            "DELTA_CONCURRENT_DELETE_READ")
      << "row 3 was gone when it was looked for, and is there again";
}

TEST_F(RowConflicts, TablesThatDoNotTrackRowsConflictByFiles) {
  MakeTracked(false);
  const auto mark = [&](std::vector<std::uint64_t> rows) {
    return [this, rows](Transaction& txn) { return Mark(txn, "f", rows, {Compare("lt", 0, 5)}); };
  };
  EXPECT_EQ(Race(mark({1}), mark({2})), "DELTA_CONCURRENT_APPEND");
}

TEST_F(RowConflicts, ManyThatMarkOneRowEachNeedNoSecondTry) {
  const auto log = MakeTracked();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (std::uint64_t row = 0; row < 10; ++row) {
    const auto own = Fresh();
    const auto snapshot = *own->Latest();
    threads.emplace_back([&, row, own, snapshot] {
      Transaction txn(own, snapshot);
      failures += Mark(txn, "f", {row}, {Compare("eq", 0, static_cast<int>(row))}).ok() ? 0 : 1;
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Marked("f").size(), 10u);
}

TEST_F(TableTest, HundredsOfWritersLoseNothing) {
  Make();
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int t = 0; t < 300; ++t) {
    const auto log = t % 3 == 0 ? registry_.Open({store_, "/t"}) : Fresh();
    threads.emplace_back([this, t, log, &failures] {
      for (int i = 0; i < 2; ++i) {
        failures += Append(log, {File("t" + std::to_string(t) + "-" + std::to_string(i))}).ok() ? 0 : 1;
      }
    });
  }
  for (auto& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(failures, 0);
  const auto snapshot = *Fresh()->Latest();
  EXPECT_EQ(snapshot->version(), 600);
  EXPECT_EQ(snapshot->file_count(), 600);
}

}  // namespace
}  // namespace fleuve::delta
