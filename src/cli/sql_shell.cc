#include "cli/sql_shell.h"

#include <histedit.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>

#include "base/bytes.h"
#include "base/progress.h"
#include "cli/settings.h"
#include "cli/signals.h"
#include "sql/parser.h"

namespace fleuve::cli {
namespace {

constexpr std::int64_t kRowsShownMax = 1000;
const char* prompt_text = "fleuve> ";

char* Prompt(EditLine* /*line*/) { return const_cast<char*>(prompt_text); }

}  // namespace

Result<void> RunSqlText(connect::Client& client, const std::string& text) {
  FLEUVE_ASSIGN(const auto statements, sql::ParseStatements(text));
  std::optional<Progress> progress;
  if (statements.size() > 1) {
    progress.emplace("statements", static_cast<std::int64_t>(statements.size()));
  }
  for (const auto& statement : statements) {
    FLEUVE_ASSIGN(const std::string shown, client.RunSql(statement.text, kRowsShownMax));
    if (!shown.empty()) {
      std::cout << shown << std::flush;
    }
    if (progress) {
      progress->Advance();
    }
  }
  return {};
}

int RunSqlShell(connect::Client& client) {
  if (::isatty(STDIN_FILENO) == 0) {
    const std::string text(std::istreambuf_iterator<char>(std::cin), {});
    const auto run = RunSqlText(client, text);
    if (!run.ok()) {
      std::fprintf(stderr, "%s\n", run.error().ToString().c_str());
      return 1;
    }
    return 0;
  }
  const std::string folder = XdgFolder("XDG_STATE_HOME", ".local/state");
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  const std::string history_file = folder + "/history";
  EditLine* line = el_init("fleuve", stdin, stdout, stderr);
  ::History* past = history_init();
  HistEvent event;
  ::history(past, &event, H_SETSIZE, 1000);
  ::history(past, &event, H_LOAD, history_file.c_str());
  el_set(line, EL_PROMPT, Prompt);
  el_set(line, EL_EDITOR, "emacs");
  el_set(line, EL_SIGNAL, 1);
  el_set(line, EL_HIST, ::history, past);
  el_source(line, nullptr);
  std::string pending;
  while (true) {
    prompt_text = pending.empty() ? "fleuve> " : "      > ";
    int count = 0;
    const char* input = el_gets(line, &count);
    if (input == nullptr || count <= 0) {
      break;
    }
    pending += input;
    const std::string_view trimmed = TrimAscii(pending);
    if (trimmed == "exit" || trimmed == "quit" || trimmed == "exit;" || trimmed == "quit;") {
      break;
    }
    if (trimmed.empty()) {
      pending.clear();
      continue;
    }
    // A text that ends with ';' and does not parse is wrong, not unfinished, unless the ';' stands inside a string.
    if (trimmed.back() != ';') {
      continue;
    }
    const auto parsed = sql::ParseStatements(pending);
    if (!parsed.ok() && parsed.error().message().find("end of input") != std::string::npos) {
      continue;
    }
    ::history(past, &event, H_ENTER, pending.c_str());
    const auto run = RunSqlText(client, pending);
    if (!run.ok()) {
      std::fprintf(stderr, "%s\n", run.error().ToString().c_str());
    }
    pending.clear();
  }
  ::history(past, &event, H_SAVE, history_file.c_str());
  history_end(past);
  el_end(line);
  std::fputc('\n', stdout);
  return 0;
}

}  // namespace fleuve::cli
