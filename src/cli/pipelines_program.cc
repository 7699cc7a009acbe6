#include "cli/pipelines_program.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>

#include "cli/pipelines_module_internal.h"
#include "cli/python_program.h"
#include "storage/object_store.h"

namespace fleuve::cli {

Result<int> RunPipelinesProgram(const std::vector<std::string>& words, const std::string& url) {
  const char* base = std::getenv("TMPDIR");
  std::string folder = std::string(base == nullptr || *base == '\0' ? "/tmp" : base) + "/fleuve-pipelines-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    return Error(ErrorKind::kPermissionDenied, "FLEUVE_PERMISSION_DENIED",
                 "cannot create a folder like " + folder + "; name another place in TMPDIR");
  }
  const auto run = [&]() -> Result<int> {
    for (const EmbeddedFile& file : PipelinesModuleFiles()) {
      FLEUVE_TRY(
          storage::LocalStore()->Put(folder + "/" + std::string(file.path), file.text, storage::PutMode::kOverwrite));
    }
    std::error_code unknown;
    const auto binary = std::filesystem::read_symlink("/proc/self/exe", unknown);
    ::setenv("FLEUVE_BINARY", unknown ? "fleuve" : binary.c_str(), 1);
    std::vector<std::string> all = {"-c",
                                    // PySpark 4.2 takes a main module without a file for its own doctests.
                                    "import runpy, sys; __file__ = sys.argv[1]; sys.path.insert(0, sys.argv.pop(1)); "
                                    "sys.dont_write_bytecode = True; "
                                    "runpy.run_module('fleuve_pipelines', run_name='__main__')",
                                    folder};
    all.insert(all.end(), words.begin(), words.end());
    return RunPython(all, url);
  };
  auto code = run();
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}

int PrintSpecJson() {
  const std::string text(std::istreambuf_iterator<char>(std::cin), {});
  const auto json = YamlToJson(text);
  if (!json.ok()) {
    std::cerr << json.error().message() << "\n";
    return 1;
  }
  std::cout << *json << "\n";
  return 0;
}

}  // namespace fleuve::cli
