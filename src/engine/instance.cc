#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/big_stack.h"
#include "base/ids.h"
#include "duckdb/main/pending_query_result.hpp"
#include "duckdb/main/stream_query_result.hpp"
#include "duckdb/main/valid_checker.hpp"
#include "duckdb/parser/statement/select_statement.hpp"
#include "engine/call_functions_internal.h"
#include "engine/carriers_internal.h"
#include "engine/files/file_functions_internal.h"
#include "engine/instance_internal.h"
#include "engine/leaf_functions_internal.h"
#include "engine/parquet_scan_internal.h"
#include "engine/projection_chain_internal.h"
#include "engine/raise_internal.h"
#include "engine/translate_internal.h"

namespace fleuve::engine {
namespace {

// The pair of library and headers is pinned; anything else must not start.
constexpr const char* kDuckdbVersion = "v1.5.6";
constexpr const char* kDuckdbSourceId = "069cc9f9b5";

/// Plans with more nodes than this are bound on a big stack.
constexpr int kDeepPlan = 60;

std::int64_t ReadNumber(const char* path) {
  std::ifstream file(path);
  std::int64_t value = -1;
  return file >> value ? value : -1;
}

std::int64_t MachineMemory() {
  std::int64_t total =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::int64_t>(::sysconf(_SC_PAGESIZE));
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::int64_t limit = ReadNumber(path);
    if (limit > 0 && limit < total) {
      total = limit;
    }
  }
  return total;
}

int Depth(const plan::PlanPtr& plan) {
  int nodes = 0;
  plan::VisitPlan(plan, [&nodes](const plan::LogicalPlan& node) {
    nodes++;
    const auto count = [&nodes](const plan::ExprPtr& expr) {
      int parts = 0;
      plan::VisitExpr(expr, [&parts](const plan::Expr&) { parts++; });
      nodes += parts / 40;
    };
    for (const auto& expr : node.exprs) {
      count(expr);
    }
    if (node.condition != nullptr) {
      count(node.condition);
    }
  });
  return nodes;
}

/// Between two looks at work that other threads do.
class Patience {
 public:
  void Wait() {
    std::this_thread::sleep_for(pause_);
    pause_ = std::min(pause_ * 2, std::chrono::microseconds(1000));
  }
  void Reset() { pause_ = kFirst; }

 private:
  static constexpr std::chrono::microseconds kFirst{20};
  std::chrono::microseconds pause_ = kFirst;
};

/// Works on the query until it has rows or has ended. DuckDB's own loop asks for work without a pause while other
/// threads have all of it.
void WaitUntilReady(duckdb::PendingQueryResult& pending) {
  Patience patience;
  for (;;) {
    const auto outcome = pending.ExecuteTask();
    if (outcome == duckdb::PendingExecutionResult::NO_TASKS_AVAILABLE) {
      patience.Wait();
    } else if (outcome == duckdb::PendingExecutionResult::RESULT_NOT_READY) {
      patience.Reset();
    } else if (outcome == duckdb::PendingExecutionResult::BLOCKED) {
      pending.WaitForTask();
    } else {
      return;
    }
  }
}

/// The same for the next rows of a running query.
void WaitUntilReady(duckdb::StreamQueryResult& stream) {
  Patience patience;
  for (;;) {
    const auto outcome = stream.ExecuteTask();
    if (outcome == duckdb::StreamExecutionResult::NO_TASKS_AVAILABLE) {
      patience.Wait();
    } else if (outcome == duckdb::StreamExecutionResult::CHUNK_NOT_READY) {
      patience.Reset();
    } else if (outcome == duckdb::StreamExecutionResult::BLOCKED) {
      stream.WaitForTask();
    } else {
      return;
    }
  }
}

}  // namespace

std::vector<plan::Attribute> VisibleColumns(const plan::LogicalPlan& plan) {
  std::vector<plan::Attribute> columns;
  for (const auto& attribute : plan.output) {
    if (!attribute.hidden) {
      columns.push_back(attribute);
    }
  }
  return columns;
}

Instance::Instance(const EngineOptions& options) : budget_(options.budget) {
  if (duckdb::DuckDB::LibraryVersion() != std::string(kDuckdbVersion) ||
      duckdb::DuckDB::SourceID() != std::string(kDuckdbSourceId)) {
    RaiseError(Error::Internal(std::string("the library libduckdb.so is version ") + duckdb::DuckDB::LibraryVersion() +
                               " (" + duckdb::DuckDB::SourceID() + "), not " + kDuckdbVersion));
  }
  const int threads =
      options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::int64_t memory = options.memory_bytes > 0 ? options.memory_bytes : MachineMemory() / 10 * 6;
  std::string spill = options.spill_directory;
  if (spill.empty()) {
    own_spill_directory_ = (std::filesystem::temp_directory_path() / ("fleuve-spill-" + NewUuid())).string();
    spill = own_spill_directory_;
  }
  duckdb::DBConfig config;
  config.SetOptionByName("threads", duckdb::Value::BIGINT(threads));
  config.SetOptionByName("memory_limit", duckdb::Value(std::to_string(memory) + "B"));
  config.SetOptionByName("temp_directory", duckdb::Value(spill));
  config.SetOptionByName("enable_external_file_cache", duckdb::Value::BOOLEAN(false));
  config.SetOptionByName("autoinstall_known_extensions", duckdb::Value::BOOLEAN(false));
  config.SetOptionByName("autoload_known_extensions", duckdb::Value::BOOLEAN(false));
  config.SetOptionByName("allow_community_extensions", duckdb::Value::BOOLEAN(false));
  // A filter that moves above a projection leaves rows to it that it must not see where it can fail.
  config.SetOptionByName("disabled_optimizers", duckdb::Value("filter_pullup"));
  config.SetOptionByName("max_expression_depth", duckdb::Value::UBIGINT(20000));
  db_ = std::make_unique<duckdb::DuckDB>(nullptr, &config);
  threads_ = threads;

  duckdb::Connection connection(*db_);
  auto zone = connection.Query("SET GLOBAL TimeZone='UTC'");
  if (zone->HasError()) {
    zone->ThrowError();
  }
  connection.BeginTransaction();
  InstallCallFunctions(db());
  InstallProjectionChain(db());
  InstallLeafFunctions(db());
  InstallExternalOperator(db());
  InstallSampleFunctions(db());
  InstallParquetScan(db());
  RegisterFileReaders(db());
  connection.Commit();
}

Instance::~Instance() {
  db_.reset();
  if (!own_spill_directory_.empty()) {
    std::error_code ignored;
    std::filesystem::remove_all(own_spill_directory_, ignored);
  }
}

bool Instance::Invalidated() { return duckdb::ValidChecker::IsInvalidated(db()); }

void Instance::Set(const std::string& name, duckdb::Value value) {
  duckdb::Connection connection(*db_);
  auto result = connection.Query("SET GLOBAL " + name + "=" + value.ToSQLString());
  if (result->HasError()) {
    result->ThrowError();
  }
}

Run::Run(std::shared_ptr<Instance> instance, plan::PlanPtr plan, const ExecuteOptions& options,
         std::int64_t buffer_bytes)
    : instance_(std::move(instance)), plan_(std::move(plan)), options_(options) {
  if (options_.token != nullptr && options_.token->cancelled()) {
    RaiseError(Error::Cancelled());
  }
  columns_ = VisibleColumns(*plan_);
  state_ = duckdb::make_shared_ptr<RunState>();
  state_->token = options_.token;
  state_->observer = options_.observer;
  connection_ = std::make_unique<duckdb::Connection>(instance_->db());
  connection_->context->registered_state->Insert(RunState::kName, state_);
  if (buffer_bytes > 0) {
    connection_->context->config.streaming_buffer_size = static_cast<duckdb::idx_t>(buffer_bytes);
  }
  if (options_.token != nullptr) {
    // The context may outlive this run by the length of one callback.
    duckdb::weak_ptr<duckdb::ClientContext> context = connection_->context;
    callback_ = options_.token->AddCallback([context] {
      if (auto alive = context.lock()) {
        alive->Interrupt();
      }
    });
  }
  try {
    Start();
  } catch (...) {
    StopListening();
    // Here and not while the exception unwinds: DuckDB's context then skips waiting for the tasks that it has
    // scheduled, and they would run on with freed memory.
    result_.reset();
    connection_.reset();
    throw;
  }
}

void Run::Start() {
  std::exception_ptr failure;
  const auto bind = [this, &failure] {
    try {
      TranslateOptions translate;
      translate.single_thread = instance_->threads() == 1;
      Translator translator(*state_, translate);
      auto statement = translator.Statement(plan_, columns_);
      auto pending =
          connection_->context->PendingQuery(duckdb::unique_ptr<duckdb::SQLStatement>(std::move(statement)),
                                             duckdb::QueryParameters(duckdb::QueryResultOutputType::ALLOW_STREAMING));
      if (pending->HasError()) {
        pending->ThrowError();
      }
      if (options_.token != nullptr && options_.token->cancelled()) {
        // DuckDB forgets an interrupt that comes before it has begun.
        RaiseError(Error::Cancelled());
      }
      for (std::size_t i = 0; i < columns_.size(); i++) {
        const auto expected = CarrierType(columns_[i].type);
        if (pending->types[i] != expected) {
          RaiseError(Error::Internal("column " + columns_[i].name + " has the type " + pending->types[i].ToString() +
                                     " where the plan says " + expected.ToString()));
        }
      }
      WaitUntilReady(*pending);
      if (pending->HasError()) {
        pending->ThrowError();
      }
      result_ = pending->Execute();
      if (result_->HasError()) {
        result_->ThrowError();
      }
    } catch (...) {
      failure = std::current_exception();
    }
  };
  if (Depth(plan_) > kDeepPlan) {
    RunOnBigStack(bind);
  } else {
    bind();
  }
  if (failure) {
    std::rethrow_exception(failure);
  }
}

void Run::StopListening() {
  if (callback_ >= 0) {
    options_.token->RemoveCallback(callback_);
    callback_ = -1;
  }
}

Run::~Run() {
  StopListening();
  result_.reset();
  connection_.reset();
}

duckdb::unique_ptr<duckdb::DataChunk> Run::Next() {
  if (finished_) {
    return nullptr;
  }
  if (options_.token != nullptr && options_.token->cancelled()) {
    // Rows that wait already are not given any more.
    finished_ = true;
    RaiseError(Error::Cancelled());
  }
  if (result_->type == duckdb::QueryResultType::STREAM_RESULT) {
    WaitUntilReady(result_->Cast<duckdb::StreamQueryResult>());
  }
  duckdb::unique_ptr<duckdb::DataChunk> chunk;
  if (!result_->HasError()) {
    chunk = result_->Fetch();
  }
  if (result_->HasError()) {
    finished_ = true;
    if (options_.token != nullptr && options_.token->cancelled()) {
      RaiseError(Error::Cancelled());
    }
    result_->ThrowError();
  }
  if (chunk != nullptr && chunk->size() > 0) {
    return chunk;
  }
  finished_ = true;
  if (options_.token != nullptr && options_.token->cancelled()) {
    RaiseError(Error::Cancelled());
  }
  if (options_.observer != nullptr) {
    FinishObserver();
  }
  return nullptr;
}

void Run::FinishObserver() {
  for (const auto& leaf : state_->leaves()) {
    options_.observer->AddLeafRows(leaf->node.get(), leaf->rows.load());
  }
  for (const auto& kept : state_->metrics()) {
    const auto& node = *kept->node;
    ObservedMetrics metrics;
    metrics.name = node.name;
    // The aggregates over the kept rows, as a plan of their own.
    auto rows = std::make_shared<plan::LogicalPlan>();
    rows->kind = plan::PlanKind::kRows;
    rows->output = kept->inputs;
    auto aggregate = std::make_shared<plan::LogicalPlan>();
    aggregate->kind = plan::PlanKind::kAggregate;
    aggregate->children = {rows};
    aggregate->aggregates = node.exprs;
    std::vector<types::StructField> fields;
    for (const auto& expr : node.exprs) {
      plan::Attribute attribute;
      attribute.id = plan::NewAttributeId();
      attribute.name = expr->display;
      attribute.type = expr->type;
      attribute.nullable = expr->nullable;
      fields.push_back({expr->display, expr->type, expr->nullable, Json()});
      aggregate->output.push_back(std::move(attribute));
    }
    metrics.schema = types::DataType::Struct(std::move(fields));
    auto state = duckdb::make_shared_ptr<RunState>();
    duckdb::Connection connection(instance_->db());
    connection.context->registered_state->Insert(RunState::kName, state);
    TranslateOptions translate;
    translate.single_thread = instance_->threads() == 1;
    Translator translator(*state, translate);
    translator.SetCollection(rows.get(), kept->rows.get());
    auto statement = translator.Statement(aggregate, aggregate->output);
    auto result = connection.context->Query(duckdb::unique_ptr<duckdb::SQLStatement>(std::move(statement)),
                                            duckdb::QueryParameters());
    if (result->HasError()) {
      result->ThrowError();
    }
    auto chunk = result->Fetch();
    for (std::size_t i = 0; i < aggregate->output.size(); i++) {
      metrics.row.push_back(FromCarrier(chunk->GetValue(i, 0), aggregate->output[i].type));
    }
    options_.observer->AddMetrics(std::move(metrics));
  }
}

}  // namespace fleuve::engine
