#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "delta/log.h"
#include "delta/transaction.h"
#include "engine/parquet_files.h"
#include "storage/object_store.h"
#include "tests/fuzz/fuzzer.h"

// The input says which bytes of real checkpoint files are changed, in groups of four: which file, where (two), to what.
const char* const kSeeds[] = {"abcdefghijklmnop", "~~~~~~~~zzzzzzzz", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", nullptr};

namespace {

using namespace fleuve;

std::string ReadAll(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

delta::LogContext Context() {
  delta::LogContext context;
  context.parquet_reader = engine::MakeParquetReader();
  context.parquet_writer = engine::MakeParquetWriter();
  context.durability = delta::Durability::kProcess;
  return context;
}

/// A table with one checkpoint, without the commits before it. Goes with the process.
struct Table {
  std::string path;
  std::vector<std::filesystem::path> files;
  std::vector<std::string> bytes;

  Table(const char* policy, bool parquet_top) {
    std::string name = (std::filesystem::temp_directory_path() / "fleuve-fuzz-XXXXXX").string();
    path = ::mkdtemp(name.data());
    delta::LogRegistry logs(Context());
    const auto log = logs.Open({storage::LocalStore(), path});
    delta::Transaction txn(log, nullptr);
    delta::Metadata metadata;
    metadata.id = "3f0f0a6e-0000-4000-8000-000000000000";
    metadata.schema_string =
        R"({"type":"struct","fields":[{"name":"id","type":"integer","nullable":true,"metadata":{}},)"
        R"({"name":"p","type":"string","nullable":true,"metadata":{}}]})";
    metadata.partition_columns = {"p"};
    metadata.configuration = {{"delta.checkpointPolicy", policy}};
    (void)txn.UpdateMetadata(std::move(metadata));
    std::vector<delta::Action> actions{delta::SetTransaction{"app", 1, 2}};
    for (int i = 0; i < 20; ++i) {
      delta::AddFile add;
      add.path = "p=x/f" + std::to_string(i);
      add.partition_values = {{"p", "x"}};
      add.size = 10;
      add.stats = R"({"numRecords":1,"minValues":{"id":1},"maxValues":{"id":2},"nullCount":{"id":0}})";
      actions.emplace_back(add);
    }
    (void)txn.Commit(std::move(actions), {.name = "WRITE"});
    (void)log->Checkpoint({.part_rows = 0, .parquet_top = parquet_top});
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path + "/_delta_log")) {
      const std::string file = entry.path().filename().string();
      if (file.find(".checkpoint.") != std::string::npos && file[0] != '.') {
        files.push_back(entry.path());
        bytes.push_back(ReadAll(entry.path()));
      }
    }
    std::filesystem::remove(delta::CommitPath(path, 0));
  }
  ~Table() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Table tables[] = {Table("classic", false), Table("v2", false), Table("v2", true)};
  Table& table = tables[size == 0 ? 0 : data[0] % 3];
  if (table.files.empty()) {
    return 0;
  }
  std::vector<std::string> changed = table.bytes;
  for (std::size_t at = 0; at + 4 <= size; at += 4) {
    std::string& bytes = changed[data[at] % changed.size()];
    // The end of a Parquet file is what says how to read the rest.
    const std::size_t place = (data[at + 1] * 256U + data[at + 2]) % bytes.size();
    bytes[data[at] % 2 == 0 ? place : bytes.size() - 1 - place] = static_cast<char>(data[at + 3]);
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    std::ofstream(table.files[i], std::ios::binary | std::ios::trunc) << changed[i];
  }
  delta::LogRegistry logs(Context());
  if (const auto snapshot = logs.Open({storage::LocalStore(), table.path})->Latest(); snapshot.ok()) {
    (void)(*snapshot)->AllFiles();
    (void)(*snapshot)->Tombstones();
  }
  return 0;
}
