#include "cli/process.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "base/bytes.h"
#include "catalog/catalog.h"
#include "connectors/autoloader/auto_loader.h"
#include "connectors/console/console.h"
#include "connectors/delta/delta_stream.h"
#include "connectors/files/file_stream.h"
#include "connectors/kafka/kafka.h"
#include "connectors/memory/memory.h"
#include "connectors/noop/noop.h"
#include "connectors/rate/rate.h"
#include "connectors/sink.h"
#include "connectors/user/user_source.h"
#include "delta/log.h"
#include "engine/engine.h"
#include "engine/parquet_files.h"
#include "pipelines/service.h"
#include "python/worker.h"
#include "stream/manager.h"

namespace fleuve::cli {
namespace {

/// A fresh folder of this process below the system's temporary one.
Result<std::string> MakeScratch() {
  const char* base = std::getenv("TMPDIR");
  std::string name = std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/fleuve-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) {
    return Error(ErrorKind::kPermissionDenied, "FLEUVE_PERMISSION_DENIED",
                 "cannot create a folder like " + name + "; name another place in TMPDIR");
  }
  return name;
}

/// Where processes of this machine reach the server; known once it listens.
class OwnUrl {
 public:
  void Set(const Settings& settings, int port) {
    std::string host = settings.host == "0.0.0.0" || settings.host == "::" ? "127.0.0.1" : settings.host;
    std::string parameters = "/";
    if (!settings.token.empty()) {
      // PySpark sends a token over a connection without TLS only to this name.
      host = "localhost";
      parameters += ";token=" + PercentEncode(settings.token);
    }
    std::lock_guard lock(mutex_);
    text_ = "sc://" + host + ":" + std::to_string(port) + parameters;
  }
  std::string Get() {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

}  // namespace

Result<std::unique_ptr<Process>> Process::Start(const Settings& settings) {
  std::unique_ptr<Process> process(new Process());
  process->host_ = settings.host;
  FLEUVE_ASSIGN(process->scratch_, MakeScratch());
  FLEUVE_ASSIGN(std::shared_ptr<catalog::Catalog> catalog, catalog::Catalog::Open(settings.warehouse));

  auto services = std::make_shared<session::Services>();
  services->catalog = std::move(catalog);
  services->warehouse = settings.warehouse;
  services->scratch = process->scratch_;
  for (const auto& [key, value] : settings.conf) {
    FLEUVE_ASSIGN(services->conf[key], session::CanonicalValue(key, value));
  }
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  services->budget = std::make_shared<ResourceBudget>(cores, ResourceBudget::DefaultMemoryBytes());
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') {
    services->user = user;
  }

  delta::LogContext log_context;
  log_context.parquet_reader = engine::MakeParquetReader();
  log_context.parquet_writer = engine::MakeParquetWriter();
  const auto durability = services->conf.find("fleuve.durability");
  if (durability != services->conf.end() && durability->second == "process") {
    log_context.durability = delta::Durability::kProcess;
  }
  services->logs = std::make_shared<delta::LogRegistry>(std::move(log_context));

  auto registry = std::make_shared<connectors::ConnectorRegistry>();
  connectors::autoloader::RegisterAutoLoader(*registry);
  connectors::console::RegisterConsole(*registry);
  connectors::delta::RegisterDelta(*registry, services->logs);
  connectors::files::RegisterFileConnectors(*registry);
  connectors::kafka::RegisterKafka(*registry);
  connectors::memory::RegisterMemory(*registry);
  connectors::noop::RegisterNoop(*registry);
  connectors::rate::RegisterRate(*registry);
  connectors::user::RegisterUserSources(*registry);
  services->connectors = registry;

  const auto engine_maker = [scratch = process->scratch_, budget = services->budget](int threads) {
    return [scratch, budget, threads]() -> Result<std::shared_ptr<engine::Engine>> {
      engine::EngineOptions options;
      options.threads = threads;
      options.memory_bytes = budget->memory_bytes();
      options.spill_directory = scratch + "/spill";
      options.budget = budget;
      FLEUVE_ASSIGN(auto engine, engine::Engine::Open(options));
      return std::shared_ptr<engine::Engine>(std::move(engine));
    };
  };
  services->make_engine = engine_maker(cores);

  python::WorkerLimits worker_limits;
  worker_limits.memory_bytes = services->budget->memory_bytes();
  services->workers = python::WorkerPool::Make(process->scratch_, worker_limits);
  const auto own_url = std::make_shared<OwnUrl>();
  services->own_url = [own_url] { return own_url->Get(); };

  stream::ManagerOptions manager_options;
  manager_options.connectors = registry;
  manager_options.make_engine = engine_maker(1);
  manager_options.budget = services->budget;
  manager_options.scratch = process->scratch_;
  services->queries = stream::Manager::Make(std::move(manager_options));

  services->pipelines = pipelines::MakePipelines();

  process->services_ = services;
  process->sessions_ = std::make_shared<session::SessionManager>(services);
  connect::ServerOptions server_options;
  server_options.token = settings.token;
  const session::Config conf(services->conf);
  server_options.detached_timeout_ms = conf.GetInt("spark.connect.execute.manager.detachedTimeout");
  server_options.stream_duration_ms = conf.GetInt("spark.connect.execute.reattachable.senderMaxStreamDuration");
  server_options.message_bytes = conf.GetInt("spark.connect.grpc.maxInboundMessageSize");
  process->server_ = std::make_unique<connect::Server>(process->sessions_, server_options);
  FLEUVE_ASSIGN(process->port_, process->server_->Start(settings.host, settings.port));
  own_url->Set(settings, process->port_);
  return process;
}

Process::~Process() { Stop(0); }

void Process::Stop(std::int64_t grace_ms) {
  if (stopped_) {
    return;
  }
  stopped_ = true;
  if (services_ && services_->queries) {
    services_->queries->StopAll(grace_ms);
  }
  if (server_) {
    server_->Stop(200);
  }
  if (sessions_) {
    sessions_->CloseAll();
  }
  server_.reset();
  sessions_.reset();
  services_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(scratch_, ignored);
}

}  // namespace fleuve::cli
