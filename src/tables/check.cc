#include <algorithm>
#include <cmath>

#include "base/progress.h"
#include "delta/deletion_vector.h"
#include "delta/row_tracking.h"
#include "delta/skipping.h"
#include "delta/table_source.h"
#include "delta/transaction.h"
#include "tables/commands.h"
#include "tables/file_statistics_internal.h"
#include "tables/measure_files_internal.h"
#include "tables/rewrite_internal.h"
#include "tables/write_options_internal.h"

namespace fleuve::tables {

using types::DataType;
using types::Value;

namespace {

/// How many files are read at once: bounds the plan, not the memory.
constexpr std::size_t kFilesAtOnce = 500;

class Checker {
 public:
  Checker(const TableContext& context, const TableRef& table) : context_(context), table_(table) {
    result_.schema = DataType::Struct({{"kind", DataType::String(), false, Json()},
                                       {"path", DataType::String(), true, Json()},
                                       {"problem", DataType::String(), false, Json()}});
  }

  Result<RowsResult> Run(bool read_data) {
    const delta::DeltaLogPtr log = context_.logs->Open(table_.location);
    FLEUVE_ASSIGN(const std::vector<std::string> log_problems, log->Check());
    for (const std::string& problem : log_problems) {
      Add("log", "", problem);
    }
    auto latest = log->Latest();
    if (!latest.ok()) {
      if (log_problems.empty()) {
        return std::move(latest).error();
      }
      return std::move(result_);
    }
    const delta::SnapshotPtr snapshot = *latest;
    const std::vector<delta::AddFile> files = snapshot->AllFiles();
    std::vector<delta::AddFile> readable;
    Progress progress(read_data ? "check: files found and read" : "check: files found",
                      static_cast<std::int64_t>(files.size()) * (read_data ? 2 : 1));
    for (const delta::AddFile& add : files) {
      progress.Advance();
      FLEUVE_TRY(context_.token ? context_.token->Check() : Result<void>());
      if (Present(add)) {
        readable.push_back(add);
      }
    }
    if (read_data && !snapshot->schema().fields().empty()) {
      const std::vector<StatisticsLeaf> leaves = IndexedLeaves(snapshot->metadata(), snapshot->schema());
      for (std::size_t at = 0; at < readable.size(); at += kFilesAtOnce) {
        const std::vector<delta::AddFile> some(
            readable.begin() + static_cast<std::ptrdiff_t>(at),
            readable.begin() + static_cast<std::ptrdiff_t>(std::min(readable.size(), at + kFilesAtOnce)));
        FLEUVE_TRY(Measure(*snapshot, some, leaves));
        progress.Advance(static_cast<std::int64_t>(some.size()));
      }
    }
    return std::move(result_);
  }

 private:
  void Add(const char* kind, const std::string& path, const std::string& problem) {
    result_.rows.push_back({Value(kind), path.empty() ? Value() : Value(path), Value(problem)});
  }

  /// The file is there with its size, and so is its deletion vector.
  bool Present(const delta::AddFile& add) {
    const auto path = delta::AbsolutePath(table_.location, add.path);
    if (!path.ok()) {
      Add("file", add.path, path.error().message());
      return false;
    }
    const auto head = table_.location.store->Head(*path);
    if (!head.ok()) {
      Add("file", add.path,
          head.error().kind() == ErrorKind::kNotFound ? "the file does not exist" : head.error().message());
      return false;
    }
    if (head->size_bytes != add.size) {
      Add("file", add.path,
          "the file has " + std::to_string(head->size_bytes) + " bytes, the log says " + std::to_string(add.size));
      return false;
    }
    if (add.deletion_vector) {
      const auto rows = delta::LoadDeletionVector(*add.deletion_vector, table_.location);
      if (!rows.ok()) {
        Add("vector", add.path, rows.error().message());
        return false;
      }
      const std::int64_t records = delta::NumRecords(add);
      if (records >= 0 && !(*rows)->rows().empty() && (*rows)->rows().back() >= static_cast<std::uint64_t>(records)) {
        Add("vector", add.path, "the deletion vector names rows that the file does not have");
      }
    }
    return true;
  }

  Result<void> Measure(const delta::Snapshot& snapshot, const std::vector<delta::AddFile>& files,
                       const std::vector<StatisticsLeaf>& leaves) {
    auto measured = MeasureFiles(context_, table_.location, snapshot.metadata(), files, leaves);
    if (!measured.ok()) {
      if (files.size() == 1) {
        Add("file", files[0].path, measured.error().message());
        return {};
      }
      // One of them cannot be read: find it.
      const auto middle = files.begin() + static_cast<std::ptrdiff_t>(files.size() / 2);
      FLEUVE_TRY(Measure(snapshot, {files.begin(), middle}, leaves));
      return Measure(snapshot, {middle, files.end()}, leaves);
    }
    for (std::size_t i = 0; i < files.size(); ++i) {
      Compare(files[i], (*measured)[i], leaves);
    }
    return {};
  }

  void Compare(const delta::AddFile& add, const FileMeasure& measure, const std::vector<StatisticsLeaf>& leaves) {
    if (add.stats.empty()) {
      return;
    }
    const auto json = Json::Parse(add.stats);
    if (!json.ok()) {
      Add("statistics", add.path, "the statistics are no JSON");
      return;
    }
    const Json& records = (*json)["numRecords"];
    if (records.is_int() && records.AsInt() != measure.rows) {
      Add("statistics", add.path,
          "numRecords is " + std::to_string(records.AsInt()) + ", the file has " + std::to_string(measure.rows) +
              " rows");
    }
    // With deleted rows bounds and counts may be those of before.
    const bool exact = !add.deletion_vector;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      const LeafStatistics& leaf = measure.leaves[i];
      const Json* nulls = Member((*json)["nullCount"], leaves[i].path);
      if (exact && nulls != nullptr && nulls->is_int() && leaf.null_count >= 0 && nulls->AsInt() != leaf.null_count) {
        Add("statistics", add.path,
            "nullCount of " + Name(leaves[i]) + " is " + std::to_string(nulls->AsInt()) + ", the file has " +
                std::to_string(leaf.null_count));
      }
      Bound(add, leaves[i], Member((*json)["minValues"], leaves[i].path), leaf.min, false);
      Bound(add, leaves[i], Member((*json)["maxValues"], leaves[i].path), leaf.max, true);
    }
  }

  void Bound(const delta::AddFile& add, const StatisticsLeaf& leaf, const Json* said, const Value& measured,
             bool is_max) {
    if (said == nullptr || said->is_null() || measured.is_null()) {
      return;
    }
    const std::string text = said->is_string() ? said->AsString() : said->Dump();
    const auto value = delta::ParsePartitionValue(text, leaf.type);
    if (!value.ok() || value->is_null()) {
      return;
    }
    const auto order = delta::CompareValues(*value, measured);
    // Times are cut to milliseconds.
    const bool time = leaf.type.Is(types::TypeKind::kTimestamp) || leaf.type.Is(types::TypeKind::kTimestampNtz);
    const bool real = leaf.type.Is(types::TypeKind::kFloat) || leaf.type.Is(types::TypeKind::kDouble);
    if (!order || (real && std::isnan(measured.real())) ||
        (time && std::abs(value->integer() - measured.integer()) < 1000)) {
      return;
    }
    if (is_max ? *order < 0 : *order > 0) {
      Add("statistics", add.path,
          std::string(is_max ? "maxValues" : "minValues") + " of " + Name(leaf) + " is " + text +
              ", and the file has values beyond it");
    }
  }

  static std::string Name(const StatisticsLeaf& leaf) {
    std::string out;
    for (const std::string& part : leaf.path) {
      out += (out.empty() ? "" : ".") + part;
    }
    return out;
  }

  static const Json* Member(const Json& object, const std::vector<std::string>& path) {
    const Json* at = &object;
    for (const std::string& part : path) {
      at = at->is_object() ? at->Find(part) : nullptr;
      if (at == nullptr) {
        return nullptr;
      }
    }
    return at;
  }

  const TableContext& context_;
  const TableRef& table_;
  RowsResult result_;
};

}  // namespace

Result<RowsResult> CheckTable(const TableContext& context, const TableRef& table, bool read_data) {
  Checker checker(context, table);
  return checker.Run(read_data);
}

Result<RowsResult> RepairTable(const TableContext& context, const TableRef& table, bool dry_run) {
  const delta::DeltaLogPtr log = context.logs->Open(table.location);
  FLEUVE_ASSIGN(const delta::SnapshotPtr snapshot, log->Latest());
  FLEUVE_TRY(delta::CheckWritable(snapshot->protocol(), table.name));
  RowsResult result;
  result.schema = DataType::Struct({{"dataFilePath", DataType::String(), false, Json()}});
  std::vector<delta::Action> actions;
  std::vector<delta::AddFile> gone;
  const std::int64_t now = context.logs->context().clock->NowMillis();
  for (const delta::AddFile& add : snapshot->AllFiles()) {
    FLEUVE_ASSIGN(const std::string path, delta::AbsolutePath(table.location, add.path));
    const auto head = table.location.store->Head(path);
    if (head.ok()) {
      continue;
    }
    if (head.error().kind() != ErrorKind::kNotFound) {
      return head.error();
    }
    result.rows.push_back({Value(add.path)});
    actions.emplace_back(RemovalOf(add, now, true));
    gone.push_back(add);
  }
  if (dry_run || actions.empty()) {
    return result;
  }
  delta::Transaction transaction(log, snapshot);
  transaction.ReadFiles(gone, {}, {});
  delta::Operation operation = NamedOperation(context, "FSCK");
  operation.metrics = {{"numRemovedFiles", std::to_string(gone.size())}};
  FLEUVE_TRY(transaction.Commit(std::move(actions), std::move(operation)));
  log->WaitForBackground();
  return result;
}

}  // namespace fleuve::tables
