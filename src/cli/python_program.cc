#include "cli/python_program.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "cli/signals.h"
#include "python/worker.h"

namespace fleuve::cli {
namespace {

// The program sees itself as __main__, its own arguments and its own folder on the path, as under plain python3.
constexpr const char* kBootstrap = R"(
import os, runpy, sys
__file__ = sys.argv[1]  # PySpark 4.2 takes a main module without a file for its own doctests
try:
    from pyspark.sql import SparkSession
    import pyspark.sql.connect.session
except ImportError as missing:
    sys.exit("fleuve: %s has no PySpark with its Connect client (%s); install it with: %s -m pip install "
             "pyspark-client==4.1.1" % (sys.executable, missing, sys.executable))
file, sys.argv = sys.argv[1], sys.argv[1:]
sys.path[0] = os.path.dirname(os.path.abspath(file))
spark = SparkSession.builder.remote(os.environ["SPARK_REMOTE"]).getOrCreate()
try:
    runpy.run_path(file, init_globals={"spark": spark}, run_name="__main__")
finally:
    try:
        spark.stop()
    except Exception:
        pass
)";

}  // namespace

Result<int> RunPythonProgram(const std::string& file, const std::vector<std::string>& arguments,
                             const std::string& url) {
  if (::access(file.c_str(), R_OK) != 0) {
    return Error(ErrorKind::kNotFound, "PATH_NOT_FOUND", "cannot read " + file + ": " + std::strerror(errno));
  }
  std::vector<std::string> words = {"-c", kBootstrap, file};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return RunPython(words, url);
}

Result<int> RunPython(const std::vector<std::string>& words, const std::string& url) {
  std::string interpreter = python::UserPython();
  std::vector<std::string> all = words;
  std::vector<char*> argv = {interpreter.data()};
  for (auto& word : all) {
    argv.push_back(word.data());
  }
  argv.push_back(nullptr);
  if (!url.empty()) {
    ::setenv("SPARK_REMOTE", url.c_str(), 1);
  }
  int exec_failed[2];
  if (::pipe2(exec_failed, O_CLOEXEC) != 0) {
    return Error(ErrorKind::kResourceExhausted, "", "cannot open a pipe");
  }
  const pid_t child = ::fork();
  if (child < 0) {
    return Error(ErrorKind::kResourceExhausted, "", "cannot start a process");
  }
  if (child == 0) {
    UnblockEndSignals();
    std::signal(SIGPIPE, SIG_DFL);
    ::execvp(argv[0], argv.data());
    const int code = errno;
    (void)!::write(exec_failed[1], &code, sizeof(code));
    ::_exit(127);
  }
  ::close(exec_failed[1]);
  int code = 0;
  const bool failed = ::read(exec_failed[0], &code, sizeof(code)) == sizeof(code);
  ::close(exec_failed[0]);
  int status = 0;
  if (failed) {
    ::waitpid(child, &status, 0);
    return Error(ErrorKind::kNotFound, "FLEUVE_NO_PYTHON",
                 "cannot start the Python '" + interpreter + "' (" + std::strerror(code) +
                     "); name one in FLEUVE_PYTHON or activate a virtual environment");
  }
  // A terminal sends SIGINT to the child as well; a plain kill of this process is passed on.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  const timespec wait{0, 50000000};
  while (::waitpid(child, &status, WNOHANG) == 0) {
    const int received = ::sigtimedwait(&signals, nullptr, &wait);
    if (received == SIGTERM || (received == SIGINT && ::isatty(STDIN_FILENO) == 0)) {
      ::kill(child, received);
    }
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace fleuve::cli
