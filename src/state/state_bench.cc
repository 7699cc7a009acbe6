// What a store costs: bytes of memory per key, CPU milliseconds per batch (of its own thread; for syncs, of the clock),
// the longest batch, bytes written, the time to open it again.
//
//   state_bench FOLDER KEYS [BATCHES [ROWS [LIMIT_MB]]]
//   state_bench FOLDER                                     opens what an earlier run left, and no more
//
// Keys are windows (a time, a number), values a count, as a windowed aggregation has them. The first batches fill the
// store with KEYS keys; then BATCHES batches read and put ROWS keys drawn at random; then it is opened again. FOLDER
// must be new. With LIMIT_MB, rows that find no room in it lie in a file beside FOLDER.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <random>

#include "base/ids.h"
#include "state/byte_codec.h"
#include "state/store.h"

namespace fleuve::state {
namespace {

constexpr std::int64_t kFillRows = 100000;

double Now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Of this thread, or of all: what a machine that is busy with other things does not change.
double CpuNow(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// A field of /proc/self/status in MB.
double StatusMb(const std::string& field) {
  std::ifstream status("/proc/self/status");
  std::string name;
  double kb = 0;
  while (status >> name) {
    if (name == field + ":" && status >> kb) {
      return kb / 1024;
    }
  }
  return 0;
}

void Check(const Result<void>& result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::exit(1);
  }
}

template <typename T>
T Take(Result<T> result) {
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.error().message().c_str());
    std::exit(1);
  }
  return *std::move(result);
}

void AppendKey(std::int64_t number, ByteRows& keys) {
  const std::int64_t window = 1700000000000000 + number % 100 * 10000000;
  AppendTime(keys.bytes(), window);
  keys.bytes().push_back('\0');
  keys.bytes().push_back('\0');
  AppendRaw(keys.bytes(), window - 10000000);
  AppendRaw(keys.bytes(), window);
  AppendRaw(keys.bytes(), number * 7919);
  keys.EndRow();
}

struct Percentiles {
  std::vector<double> seconds;
  double at(double share) {
    std::sort(seconds.begin(), seconds.end());
    return seconds.empty() ? 0 : seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
  }
};

std::unique_ptr<Store> Reopen(const StoreSpec& spec, const Version& version) {
  const double began = Now();
  const double began_cpu = CpuNow();
  const double began_all = CpuNow(CLOCK_PROCESS_CPUTIME_ID);
  auto store = Take(Store::Open(spec, version));
  std::printf("opened in %.2f s, %.2f s of CPU in its thread, %.2f in all: %ld rows, rss %.0f MB, peak %.0f MB\n",
              Now() - began, CpuNow() - began_cpu, CpuNow(CLOCK_PROCESS_CPUTIME_ID) - began_all,
              static_cast<long>(store->row_count(0)), StatusMb("VmRSS"), StatusMb("VmHWM"));
  return store;
}

StoreSpec Spec(const std::string& folder, std::int64_t limit_mb) {
  StoreSpec spec;
  spec.folder = {storage::LocalStore(), folder};
  spec.operator_name = "stateStoreSave";
  spec.spaces = {{"default", true, "struct<window,bigint>", "struct<bigint>", ""}};
  if (limit_mb > 0) {
    spec.budget = std::make_shared<MemoryBudget>();
    spec.budget->limit_bytes = limit_mb << 20;
    spec.spill_folder = folder + ".spill";
  }
  return spec;
}

int OpenOnly(const std::string& folder) {
  const StoreSpec spec = Spec(folder, 0);
  Version newest;
  for (const auto& file : Take(spec.folder.store->List(folder))) {
    const std::string name = file.path.substr(file.path.rfind('/') + 1);
    if (name.ends_with(".changes")) {
      newest.number = std::max<std::int64_t>(newest.number, std::atoll(name.c_str()));
    }
  }
  Reopen(spec, newest);
  return 0;
}

int Run(const std::string& folder, std::int64_t keys_wanted, int batches, int rows, std::int64_t limit_mb) {
  const StoreSpec spec = Spec(folder, limit_mb);
  auto store = Take(Store::Open(spec, Version{}));
  ByteRows keys;
  ByteRows values;
  std::vector<std::string_view> known;
  std::string value(1, '\0');
  AppendRaw(value, std::int64_t{0});
  const double rss_empty = StatusMb("VmRSS");
  Percentiles work;
  Percentiles stage;
  Percentiles sync;
  Percentiles apply;
  const auto finish = [&] {
    double mark = CpuNow();
    const StagedFiles staged = Take(store->Stage(NewUuid(), 0));
    stage.seconds.push_back(CpuNow() - mark);
    mark = Now();
    Check(spec.folder.store->Sync(staged.files, staged.folders));
    sync.seconds.push_back(Now() - mark);
    mark = CpuNow();
    Check(store->Apply());
    apply.seconds.push_back(CpuNow() - mark);
  };
  const auto print = [&](const char* what) {
    std::printf(
        "%s: work p50 %.2f p99 %.2f max %.2f  stage %.2f/%.2f  sync %.2f/%.2f  apply p50 %.2f p99 %.2f max %.2f ms\n",
        what, work.at(0.5) * 1e3, work.at(0.99) * 1e3, work.at(1) * 1e3, stage.at(0.5) * 1e3, stage.at(1) * 1e3,
        sync.at(0.5) * 1e3, sync.at(1) * 1e3, apply.at(0.5) * 1e3, apply.at(0.99) * 1e3, apply.at(1) * 1e3);
    work = {};
    stage = {};
    sync = {};
    apply = {};
    const double used = StatusMb("VmRSS") - rss_empty;
    const double peak = StatusMb("VmHWM") - rss_empty;
    std::printf("  rows %ld  rss %.0f MB (%.0f B/key)  peak %.0f MB (%.0f B/key)  told %.0f MB\n",
                static_cast<long>(store->row_count(0)), used, used * 1048576 / static_cast<double>(store->row_count(0)),
                peak, peak * 1048576 / static_cast<double>(store->row_count(0)),
                static_cast<double>(store->metrics().memory_bytes) / 1048576);
  };
  double began = Now();
  for (std::int64_t first = 0; first < keys_wanted; first += kFillRows) {
    keys.Clear();
    values.Clear();
    for (std::int64_t i = first; i < std::min(keys_wanted, first + kFillRows); ++i) {
      AppendKey(i, keys);
      values.Add(value);
    }
    const double mark = CpuNow();
    store->GetMany(0, keys, &known);
    store->PutMany(0, keys, values);
    work.seconds.push_back(CpuNow() - mark);
    finish();
  }
  std::printf("fill %.2f s\n", Now() - began);
  print("fill batches of 100000");
  std::mt19937_64 random(1);
  began = Now();
  for (int batch = 0; batch < batches; ++batch) {
    keys.Clear();
    values.Clear();
    for (int i = 0; i < rows; ++i) {
      AppendKey(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(keys_wanted)), keys);
      values.Add(value);
    }
    const double mark = CpuNow();
    store->GetMany(0, keys, &known);
    store->PutMany(0, keys, values);
    work.seconds.push_back(CpuNow() - mark);
    finish();
  }
  std::printf("%d batches of %d rows: %.2f s\n", batches, rows, Now() - began);
  print("touch");
  const Version version = store->version();
  store.reset();
  const auto files = Take(spec.folder.store->List(folder));
  double bytes = 0;
  for (const auto& file : files) {
    bytes += static_cast<double>(file.size_bytes);
  }
  std::printf("%zu files, %.0f MB\n", files.size(), bytes / 1048576);
  store = Reopen(spec, version);
  began = CpuNow();
  std::int64_t gone = 0;
  keys.Clear();
  store->Range(0, INT64_MIN, 1700000000000000, [&](std::string_view key, std::string_view) {
    keys.Add(key);
    return true;
  });
  store->RemoveMany(0, keys);
  gone = static_cast<std::int64_t>(keys.size());
  std::printf("evicted %ld rows in %.2f ms\n", static_cast<long>(gone), (CpuNow() - began) * 1e3);
  return 0;
}

}  // namespace
}  // namespace fleuve::state

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "state_bench FOLDER [KEYS [BATCHES [ROWS [LIMIT_MB]]]]\n");
    return 2;
  }
  if (argc == 2) {
    return fleuve::state::OpenOnly(argv[1]);
  }
  return fleuve::state::Run(argv[1], std::atoll(argv[2]), argc > 3 ? std::atoi(argv[3]) : 300,
                            argc > 4 ? std::atoi(argv[4]) : 1000, argc > 5 ? std::atoll(argv[5]) : 0);
}
