#include "session/operation.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "connectors/sink.h"
#include "delta/connect/relations.pb.h"
#include "delta/log.h"
#include "engine/engine.h"
#include "engine/parquet_files.h"
#include "proto/unpack.h"
#include "session/services.h"
#include "session/session.h"
#include "spark/connect/base.pb.h"

namespace fleuve::session {
namespace {

namespace sc = spark::connect;
namespace dc = ::delta::connect;

/// Counts rows; what the operation was when the first result came.
class CountingSink final : public ResultSink {
 public:
  explicit CountingSink(const Operation* operation) : operation_(operation) {}
  Result<void> PutSchema(const types::Schema& /*schema*/) override {
    repeatable = operation_->repeatable;
    return {};
  }
  Result<void> PutBatch(const columnar::RecordBatch& batch) override {
    rows += batch.row_count();
    return {};
  }
  Result<void> PutMessage(sc::ExecutePlanResponse /*message*/) override { return {}; }
  void End(Result<void> /*outcome*/) override {}

  bool repeatable = false;
  std::int64_t rows = 0;

 private:
  const Operation* const operation_;
};

class OperationTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto services = std::make_shared<Services>();
    services->scratch = folder_ + "/scratch";
    services->connectors = std::make_shared<connectors::ConnectorRegistry>();
    delta::LogContext context;
    context.parquet_reader = engine::MakeParquetReader();
    context.parquet_writer = engine::MakeParquetWriter();
    services->logs = std::make_shared<delta::LogRegistry>(std::move(context));
    services->make_engine = []() -> Result<std::shared_ptr<engine::Engine>> {
      FLEUVE_ASSIGN(auto engine, engine::Engine::Open({}));
      return std::shared_ptr<engine::Engine>(std::move(engine));
    };
    session_ = std::make_shared<Session>(SessionKey{"u", "00112233-4455-6677-8899-aabbccddeeff"}, services);
    sc::Plan plan;
    sc::WriteOperation& write = *plan.mutable_command()->mutable_write_operation();
    write.set_source("delta");
    write.set_path(folder_ + "/t");
    write.set_mode(sc::WriteOperation::SAVE_MODE_ERROR_IF_EXISTS);
    sc::Range& range = *write.mutable_input()->mutable_range();
    range.set_start(0);
    range.set_end(10);
    range.set_step(1);
    EXPECT_FALSE(Repeatable(plan)) << "commands have effects";
  }

  /// Runs a plan. Whether it was repeatable, which it is before the first result as after the last one.
  bool Repeatable(const sc::Plan& plan) {
    const auto operation = std::make_shared<Operation>();
    const auto sink = std::make_shared<CountingSink>(operation.get());
    operation->sink = sink;
    const auto ran = session_->Execute(plan, operation);
    EXPECT_TRUE(ran.ok()) << ran.error().ToString();
    EXPECT_EQ(sink->repeatable, operation->repeatable.load());
    rows_ = sink->rows;
    return operation->repeatable;
  }
  bool Repeatable(const sc::Relation& root) {
    sc::Plan plan;
    *plan.mutable_root() = root;
    return Repeatable(plan);
  }

  void SetTable(dc::DeltaTable* table) const { table->mutable_path()->set_path(folder_ + "/t"); }
  static sc::Relation Of(const dc::DeltaRelation& relation) {
    sc::Relation root;
    pb::Pack(relation, root.mutable_extension());
    return root;
  }
  sc::Relation Scan() const {
    dc::DeltaRelation relation;
    SetTable(relation.mutable_scan()->mutable_table());
    return Of(relation);
  }

  const std::string folder_ = testing::TempDir() + "operation_test";
  std::shared_ptr<Session> session_;
  std::int64_t rows_ = 0;
};

TEST_F(OperationTest, QueriesAreRepeatable) {
  EXPECT_TRUE(Repeatable(Scan()));
  EXPECT_EQ(rows_, 10);
  sc::Relation show;
  *show.mutable_show_string()->mutable_input() = Scan();
  EXPECT_TRUE(Repeatable(show));
  dc::DeltaRelation relation;
  SetTable(relation.mutable_describe_history()->mutable_table());
  EXPECT_TRUE(Repeatable(Of(relation)));
  SetTable(relation.mutable_describe_detail()->mutable_table());
  EXPECT_TRUE(Repeatable(Of(relation)));
  relation.mutable_is_delta_table()->set_path(folder_ + "/t");
  EXPECT_TRUE(Repeatable(Of(relation)));
}

TEST_F(OperationTest, RelationsThatChangeATableAreNot) {
  dc::DeltaRelation relation;
  *relation.mutable_update_table()->mutable_target() = Scan();
  dc::Assignment& assignment = *relation.mutable_update_table()->add_assignments();
  assignment.mutable_field()->mutable_expression_string()->set_expression("id");
  assignment.mutable_value()->mutable_expression_string()->set_expression("id + 1");
  EXPECT_FALSE(Repeatable(Of(relation)));

  sc::Relation show;
  *show.mutable_show_string()->mutable_input() = Of(relation);
  EXPECT_FALSE(Repeatable(show)) << "inside of another relation";

  sc::Relation joined;
  *joined.mutable_join()->mutable_left() = Of(relation);
  *joined.mutable_join()->mutable_right() = Scan();
  joined.mutable_join()->set_join_type(sc::Join::JOIN_TYPE_CROSS);
  EXPECT_FALSE(Repeatable(joined)) << "whatever is read beside it";

  SetTable(relation.mutable_optimize_table()->mutable_table());
  EXPECT_FALSE(Repeatable(Of(relation)));
  SetTable(relation.mutable_restore_table()->mutable_table());
  relation.mutable_restore_table()->set_version(0);
  EXPECT_FALSE(Repeatable(Of(relation)));
  *relation.mutable_delete_from_table()->mutable_target() = Scan();
  EXPECT_FALSE(Repeatable(Of(relation)));
  EXPECT_TRUE(Repeatable(Scan()));
  EXPECT_EQ(rows_, 0);
}

}  // namespace
}  // namespace fleuve::session
