// What the log of a Delta table costs, without a server: one line of figures per word given.
//
//   log_bench make FOLDER [FILES [COLUMNS [PARTITIONS [COMMITS]]]]   a table whose data files are not there
//   log_bench cold FOLDER      a first snapshot: seconds, CPU seconds, megabytes of the process at most
//   log_bench next FOLDER N    a version of another writer, N times: milliseconds of CPU until it is seen
//   log_bench commit FOLDER N  N commits of one file, and what they cost with and without checkpoints
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "delta/log.h"
#include "delta/transaction.h"
#include "engine/parquet_files.h"
#include "storage/object_store.h"

namespace fleuve::tables {
namespace {

double Seconds() { return static_cast<double>(Clock::System()->MonotonicNanos()) / 1e9; }

double CpuSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double PeakMegabytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

delta::LogContext Context() {
  delta::LogContext context;
  context.parquet_reader = engine::MakeParquetReader();
  context.parquet_writer = engine::MakeParquetWriter();
  context.durability = delta::Durability::kProcess;
  return context;
}

delta::AddFile File(std::int64_t number, std::int64_t columns, std::int64_t partitions) {
  delta::AddFile add;
  const std::string n = std::to_string(number);
  add.path = "part-" + n + "-3e6b2f0a-0000-4000-8000-000000000000-c000.snappy.parquet";
  if (partitions > 0) {
    const std::string value = std::to_string(number % partitions);
    add.path.insert(0, "p=" + value + "/");
    add.partition_values = {{"p", value}};
  }
  add.size = 40000 + number % 1000;
  add.modification_time = 1700000000000 + number;
  std::string low;
  std::string nulls;
  for (std::int64_t c = 0; c < std::min<std::int64_t>(columns, 32); ++c) {
    const std::string name = (c == 0 ? "\"" : ",\"") + ("c" + std::to_string(c)) + "\":";
    low += name + std::to_string(number * 1000 + c);
    nulls += name + "0";
  }
  add.stats =
      "{\"numRecords\":1000,\"minValues\":{" + low + "},\"maxValues\":{" + low + "},\"nullCount\":{" + nulls + "}}";
  return add;
}

int Make(const std::string& path, std::int64_t files, std::int64_t columns, std::int64_t partitions,
         std::int64_t commits) {
  delta::LogRegistry logs(Context());
  const auto log = logs.Open({storage::LocalStore(), path});
  delta::Metadata metadata;
  metadata.id = "3f0f0a6e-0000-4000-8000-000000000000";
  metadata.schema_string = "{\"type\":\"struct\",\"fields\":[";
  for (std::int64_t c = 0; c < columns; ++c) {
    metadata.schema_string +=
        "{\"name\":\"c" + std::to_string(c) + "\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}},";
  }
  metadata.schema_string += "{\"name\":\"p\",\"type\":\"long\",\"nullable\":true,\"metadata\":{}}]}";
  if (partitions > 0) {
    metadata.partition_columns = {"p"};
  }
  std::vector<delta::Action> actions;
  for (std::int64_t i = 0; i < files; ++i) {
    actions.emplace_back(File(i, columns, partitions));
  }
  delta::Transaction first(log, nullptr);
  if (!first.UpdateMetadata(std::move(metadata)).ok() || !first.Commit(std::move(actions), {.name = "WRITE"}).ok() ||
      !log->Checkpoint({}).ok()) {
    return 1;
  }
  for (std::int64_t i = 0; i < commits; ++i) {
    delta::Transaction next(log, *log->Latest());
    if (!next.Commit({File(files + i, columns, partitions)}, {.name = "WRITE"}).ok()) {
      return 1;
    }
  }
  return 0;
}

int Cold(const std::string& path) {
  const double start = Seconds();
  const double cpu = CpuSeconds();
  delta::LogRegistry logs(Context());
  const auto snapshot = logs.Open({storage::LocalStore(), path})->Latest();
  if (!snapshot.ok()) {
    std::fprintf(stderr, "%s\n", snapshot.error().ToString().c_str());
    return 1;
  }
  std::printf("cold: version %lld, %lld files: %.2f s, %.2f CPU s, %.0f MB\n",
              static_cast<long long>((*snapshot)->version()), static_cast<long long>((*snapshot)->file_count()),
              Seconds() - start, CpuSeconds() - cpu, PeakMegabytes());
  return 0;
}

int Next(const std::string& path, int rounds) {
  delta::LogRegistry here(Context());
  delta::LogContext bare = Context();
  bare.parquet_writer = nullptr;  // no checkpoints within the figures
  delta::LogRegistry there(std::move(bare));
  const auto reader = here.Open({storage::LocalStore(), path});
  const auto writer = there.Open({storage::LocalStore(), path});
  if (!reader->Latest().ok() || !writer->Latest().ok()) {
    return 1;
  }
  std::vector<double> commits;
  std::vector<double> reads;
  for (int i = 0; i < rounds; ++i) {
    delta::Transaction txn(writer, *writer->Latest());
    double cpu = CpuSeconds();
    if (!txn.Commit({File(1'000'000'000 + i + Clock::System()->NowMicros() % 1000000 * 1000, 3, 0)}, {.name = "WRITE"})
             .ok()) {
      return 1;
    }
    commits.push_back((CpuSeconds() - cpu) * 1000);
    cpu = CpuSeconds();
    if (!reader->Latest().ok()) {
      return 1;
    }
    reads.push_back((CpuSeconds() - cpu) * 1000);
  }
  const auto say = [](const char* what, std::vector<double>& all) {
    std::sort(all.begin(), all.end());
    double sum = 0;
    for (const double one : all) {
      sum += one;
    }
    std::printf("%s: p50 %.3f ms, p99 %.3f ms, mean %.3f ms of CPU\n", what, all[all.size() / 2],
                all[all.size() * 99 / 100], sum / static_cast<double>(all.size()));
  };
  say("commit without syncs", commits);
  say("next version seen", reads);
  return 0;
}

int Commits(const std::string& path, int rounds) {
  for (const bool checkpoints : {false, true}) {
    double cpu = 0;
    double start = 0;
    {
      delta::LogContext context = Context();
      if (!checkpoints) {
        context.parquet_writer = nullptr;
      }
      delta::LogRegistry logs(std::move(context));
      const auto log = logs.Open({storage::LocalStore(), path});
      if (!log->Latest().ok()) {
        return 1;
      }
      cpu = CpuSeconds();
      start = Seconds();
      for (int i = 0; i < rounds; ++i) {
        delta::Transaction txn(log, *log->Latest());
        if (!txn.Commit({File(2'000'000'000 + Clock::System()->NowMicros() % 1'000'000'000, 3, 0)}, {.name = "WRITE"})
                 .ok()) {
          return 1;
        }
      }
      std::printf("%d commits %s checkpoints: %.3f ms each", rounds, checkpoints ? "with" : "without",
                  (Seconds() - start) * 1000 / rounds);
    }  // waits for checkpoints
    std::printf(", %.3f ms of CPU each\n", (CpuSeconds() - cpu) * 1000 / rounds);
  }
  return 0;
}

}  // namespace
}  // namespace fleuve::tables

int main(int argc, char** argv) {
  const std::string word = argc > 2 ? argv[1] : "";
  const auto number = [&](int at, int fallback) { return argc > at ? std::atoi(argv[at]) : fallback; };
  if (word == "make") {
    return fleuve::tables::Make(argv[2], number(3, 1000000), number(4, 3), number(5, 0), number(6, 0));
  }
  if (word == "cold") {
    return fleuve::tables::Cold(argv[2]);
  }
  if (word == "next") {
    return fleuve::tables::Next(argv[2], number(3, 200));
  }
  if (word == "commit") {
    return fleuve::tables::Commits(argv[2], number(3, 1000));
  }
  std::fprintf(stderr, "log_bench make|cold|next|commit FOLDER ...\n");
  return 1;
}
