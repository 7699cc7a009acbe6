// The program `fleuve`: reads the command line and hands over.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>

#include "base/failpoint.h"
#include "base/log.h"
#include "cli/pipelines_program.h"
#include "cli/process.h"
#include "cli/progress_bar.h"
#include "cli/python_program.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "cli/sql_shell.h"
#include "cli/table_command.h"
#include "cli/version.h"
#include "connect/client.h"
#include "storage/object_store.h"

namespace fleuve::cli {
namespace {

/// How long SIGTERM waits for batches in flight; with what follows the process ends within 5 s.
constexpr std::int64_t kStopGraceMs = 4000;
constexpr std::int64_t kEndMs = 4800;

int Fail(const Error& error) {
  std::fprintf(stderr, "fleuve: %s\n", error.ToString().c_str());
  return 1;
}

LogLevel LevelOf(const std::string& name) {
  return name == "debug"  ? LogLevel::kDebug
         : name == "info" ? LogLevel::kInfo
         : name == "warn" ? LogLevel::kWarn
                          : LogLevel::kError;
}

Result<Settings> Load(const Flags& flags) {
  FLEUVE_ASSIGN(Settings settings, LoadSettings(flags));
  SetLogLevel(LevelOf(settings.log_level));
  return settings;
}

int Serve(const Flags& flags, bool until_input_ends) {
  BlockEndSignals();
  const auto settings = Load(flags);
  if (!settings.ok()) {
    return Fail(settings.error());
  }
  auto process = Process::Start(*settings);
  if (!process.ok()) {
    return Fail(process.error());
  }
  std::cout << "listening on " << (*process)->url() << std::endl;
  if (until_input_ends) {
    EndWithInput();
  }
  WaitForEndSignal();
  EndProcessAfter(kEndMs);
  (*process)->Stop(kStopGraceMs);
  return 0;
}

/// An embedded server on a free loopback port, unless the user named a server.
struct Target {
  std::unique_ptr<Process> process;
  std::string url;
};

Result<Target> FindTarget(Flags flags, const std::string& remote) {
  Target target;
  if (!remote.empty()) {
    target.url = remote;
    return target;
  }
  flags.host = "127.0.0.1";
  flags.port = "0";
  FLEUVE_ASSIGN(const Settings settings, Load(flags));
  FLEUVE_ASSIGN(target.process, Process::Start(settings));
  target.url = target.process->url();
  return target;
}

bool HasEnding(const std::string& file, std::string_view ending) {
  return file.size() > ending.size() && file.ends_with(ending);
}

Result<int> RunSqlOn(const std::string& url, const std::string& text, bool interactive) {
  FLEUVE_ASSIGN(const auto client, connect::Client::Connect(url));
  if (interactive) {
    const int code = RunSqlShell(*client);
    client->Release();
    return code;
  }
  auto run = RunSqlText(*client, text);
  client->Release();
  FLEUVE_TRY(std::move(run));
  return 0;
}

int RunProgram(const Flags& flags, const std::string& file, const std::vector<std::string>& arguments,
               const std::string& remote) {
  const bool is_sql = HasEnding(file, ".sql");
  if (!is_sql && !HasEnding(file, ".py")) {
    return Fail(Error(ErrorKind::kInvalidArgument, "", file + ": only .py and .sql files can be run"));
  }
  std::string text;
  if (is_sql) {
    auto read = storage::LocalStore()->Get(file);
    if (!read.ok()) {
      return Fail(read.error());
    }
    text = *std::move(read);
  }
  if (!is_sql) {
    BlockEndSignals();
  }
  auto target = FindTarget(flags, remote);
  if (!target.ok()) {
    return Fail(target.error());
  }
  if (is_sql) {
    ShowProgress();
  }
  const auto code = is_sql ? RunSqlOn(target->url, text, false) : RunPythonProgram(file, arguments, target->url);
  if (target->process) {
    target->process->Stop(kStopGraceMs);
  }
  return code.ok() ? *code : Fail(code.error());
}

int Sql(const Flags& flags, const std::string& text, const std::string& file, const std::string& remote) {
  std::string statements = text;
  if (!file.empty()) {
    auto read = storage::LocalStore()->Get(file);
    if (!read.ok()) {
      return Fail(read.error());
    }
    statements = *std::move(read);
  }
  auto target = FindTarget(flags, remote);
  if (!target.ok()) {
    return Fail(target.error());
  }
  const auto code = RunSqlOn(target->url, statements, text.empty() && file.empty());
  if (target->process) {
    target->process->Stop(kStopGraceMs);
  }
  return code.ok() ? *code : Fail(code.error());
}

int Table(const Flags& flags, const TableCommand& command) {
  ShowProgress();
  if (IsFileCheck(command)) {
    const auto code = RunFileCheck(command);
    return code.ok() ? *code : Fail(code.error());
  }
  const auto statement = TableSql(command);
  return statement.ok() ? Sql(flags, *statement, "", "") : Fail(statement.error());
}

int Pipelines(const Flags& flags, const std::vector<std::string>& words, const std::string& remote) {
  if (words == std::vector<std::string>{"spec-json"}) {
    return PrintSpecJson();
  }
  BlockEndSignals();
  const char* known = std::getenv("SPARK_REMOTE");
  Target target;
  // A project is made without a server.
  if (!words.empty() && (words[0] == "run" || words[0] == "dry-run")) {
    auto found = FindTarget(flags, remote.empty() && known != nullptr ? known : remote);
    if (!found.ok()) {
      return Fail(found.error());
    }
    target = *std::move(found);
  }
  const auto code = RunPipelinesProgram(words, target.url);
  if (target.process) {
    target.process->Stop(kStopGraceMs);
  }
  return code.ok() ? *code : Fail(code.error());
}

/// Cuts the words behind `run ... FILE` or `pipelines ... COMMAND` off: they belong to the program, options included.
/// Returns how many words are ours.
int OwnWords(int argc, char** argv) {
  if (argc < 3 || (std::string_view(argv[1]) != "run" && std::string_view(argv[1]) != "pipelines")) {
    return argc;
  }
  for (int i = 2; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("-")) {
      return i + 1;
    }
    if (word == "--warehouse" || word == "--conf" || word == "--log-level" || word == "--remote") {
      ++i;  // its value
    }
  }
  return argc;
}

int Main(int argc, char** argv) {
  if (const auto armed = ArmFailpointsFromEnvironment(); !armed.ok()) {
    return Fail(armed.error());
  }
  CLI::App app{"Fleuve: Spark Structured Streaming on Delta Lake without the JVM", "fleuve"};
  app.require_subcommand(1);
  app.footer(
      "Settings: flags, then FLEUVE_HOST, FLEUVE_PORT, FLEUVE_WAREHOUSE, FLEUVE_TOKEN, FLEUVE_LOG_LEVEL, FLEUVE_CONF\n"
      "(key=value;key=value), then the file fleuve.conf in the XDG configuration folder (or FLEUVE_CONF_FILE) with "
      "lines\n"
      "`key value`. FLEUVE_PYTHON names the Python of `fleuve run FILE.py`.");
  Flags flags;
  const auto add_common = [&](CLI::App* command) {
    command->add_option("--warehouse", flags.warehouse, "folder of managed tables and of the catalog");
    command->add_option("--conf", flags.conf, "key=value: a setting of every session; may be repeated")
        ->take_all()
        ->allow_extra_args(false);
    command->add_option("--log-level", flags.log_level, "debug, info, warn (default) or error");
  };
  int code = 0;

  CLI::App* server = app.add_subcommand("server", "serve Spark Connect clients until SIGTERM or SIGINT");
  server->add_option("--host", flags.host, "address to listen on (default 127.0.0.1)");
  server->add_option("--port", flags.port, "port to listen on, 0 for a free one (default 15002)");
  bool until_input_ends = false;
  server->add_flag("--until-stdin-closes", until_input_ends,
                   "end also when the standard input does: with the program that holds its other end");
  add_common(server);
  server->callback([&] { code = Serve(flags, until_input_ends); });

  std::string file;
  std::string remote;
  const int own_words = OwnWords(argc, argv);
  const std::vector<std::string> arguments(argv + own_words, argv + argc);
  CLI::App* run = app.add_subcommand("run", "run a .py program (with `spark` defined) or a .sql script");
  run->add_option("file", file, "FILE.py or FILE.sql")->required();
  run->footer("Words after FILE are the program's arguments.");
  run->add_option("--remote", remote,
                  "sc://host:port of another server (Apache Spark's too) instead of an embedded one");
  add_common(run);
  run->callback([&] { code = RunProgram(flags, file, arguments, remote); });

  std::string action;
  CLI::App* pipelines = app.add_subcommand("pipelines", "make, check and run projects of declarative pipelines");
  pipelines->add_option("command", action, "init, run or dry-run")->required();
  pipelines->footer(
      "Words after the command are those of PySpark's spark-pipelines: run [--spec FILE] [--full-refresh a,b]\n"
      "[--full-refresh-all] [--refresh a,b], dry-run [--spec FILE], init --name NAME.");
  pipelines->add_option("--remote", remote,
                        "sc://host:port of a server (default: SPARK_REMOTE, else an embedded server)");
  add_common(pipelines);
  pipelines->callback([&] {
    std::vector<std::string> words = {action};
    words.insert(words.end(), arguments.begin(), arguments.end());
    code = Pipelines(flags, words, remote);
  });

  std::string text;
  std::string script;
  CLI::App* sql = app.add_subcommand("sql", "a SQL shell, or SQL from -e or -f");
  sql->add_option("-e", text, "statements to run");
  sql->add_option("-f", script, "a file of statements to run")->excludes("-e");
  sql->add_option("--remote", remote, "sc://host:port of another server instead of an embedded one");
  add_common(sql);
  sql->callback([&] { code = Sql(flags, text, script, remote); });

  TableCommand on_table;
  CLI::App* table = app.add_subcommand("table", "look at a Delta table by its path, and keep it in order");
  table->require_subcommand(1);
  const auto add_action = [&](const char* name, const char* what) {
    CLI::App* action = table->add_subcommand(name, what);
    action->add_option("path", on_table.path, "folder of the table")->required();
    add_common(action);
    action->callback([&, name] {
      on_table.action = name;
      code = Table(flags, on_table);
    });
    return action;
  };
  add_action("history", "its commits, newest first");
  add_action("detail", "schema, size, properties, protocol");
  CLI::App* optimize = add_action("optimize", "write small files anew as large ones");
  optimize->add_option("--where", on_table.where, "SQL condition on partition columns");
  optimize->add_option("--zorder-by", on_table.zorder_by, "columns to order by, separated by commas");
  optimize->add_flag("--full", on_table.full, "clustered tables: files that are clustered already too");
  CLI::App* vacuum = add_action("vacuum", "delete files that no version within the retention needs");
  vacuum->add_option("--retain", on_table.retain_hours, "hours");
  vacuum->add_flag("--lite", on_table.lite, "only files that the log says were removed: the folder is not listed");
  vacuum->add_flag("--dry-run", on_table.dry_run, "only tell which files would go");
  CLI::App* restore = add_action("restore", "go back to an earlier version");
  restore->add_option("--version", on_table.version, "number of the version");
  restore->add_option("--timestamp", on_table.timestamp, "time of the version")->excludes("--version");
  CLI::App* check = add_action("check", "read log and files, and tell what is wrong (exit code 2)");
  check->add_flag("--skip-data", on_table.skip_data, "do not read data files: presence and sizes alone");
  CLI::App* repair = add_action("repair", "take files that are gone out of the table");
  repair->add_flag("--dry-run", on_table.dry_run, "only tell which files are gone");

  CLI::App* version = app.add_subcommand("version", "print the version");
  version->callback([] { std::cout << "fleuve " << kVersion << " (Spark Connect " << kSparkVersion << ")\n"; });

  CLI11_PARSE(app, own_words, argv);
  return code;
}

}  // namespace
}  // namespace fleuve::cli

int main(int argc, char** argv) {
  // Under the name fleuve-pipelines the program is its command of that name.
  std::vector<char*> words(argv, argv + argc);
  std::string command = "pipelines";
  if (argc > 0 && std::string_view(argv[0]).ends_with("fleuve-pipelines")) {
    words.insert(words.begin() + 1, command.data());
  }
  const int count = static_cast<int>(words.size());
  words.push_back(nullptr);
  return fleuve::cli::Main(count, words.data());
}
