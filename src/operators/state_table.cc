#include "operators/state_table.h"

#include <algorithm>
#include <map>

#include "base/bytes.h"
#include "base/json.h"
#include "columnar/ipc.h"
#include "operators/row_codec_internal.h"
#include "operators/user_state_internal.h"
#include "state/store.h"

namespace fleuve::operators {

namespace {

using types::DataType;
using types::Value;

/// Rows that were read when the table was opened.
class RowsTable final : public plan::TableSource {
 public:
  RowsTable(types::Schema schema, std::string name, std::vector<columnar::RecordBatch> batches)
      : schema_(std::move(schema)), name_(std::move(name)), batches_(std::move(batches)) {}
  const types::Schema& schema() const override { return schema_; }
  std::string name() const override { return name_; }
  std::string provider() const override { return name_; }
  bool has_file_metadata() const override { return false; }
  Result<std::shared_ptr<const plan::FileScan>> PlanScan(const std::vector<plan::ExprPtr>&,
                                                         const std::vector<plan::Attribute>&) const override {
    return std::shared_ptr<const plan::FileScan>();
  }
  Result<std::shared_ptr<const plan::RowScan>> PlanRows() const override {
    auto rows = std::make_shared<plan::RowScan>();
    rows->batches = batches_;
    return std::shared_ptr<const plan::RowScan>(std::move(rows));
  }

 private:
  types::Schema schema_;
  std::string name_;
  std::vector<columnar::RecordBatch> batches_;
};

Error InvalidOption(const std::string& subclass, const std::string& option, const std::string& what) {
  return Error(ErrorKind::kInvalidArgument, "STDS_INVALID_OPTION_VALUE." + subclass,
               "Invalid value for source option '" + option + "': " + what)
      .With("optionName", option);
}

Result<std::string> PathOption(const plan::Options& options) {
  const std::string* path = plan::FindOption(options, "path");
  if (path == nullptr) {
    return Error(ErrorKind::kInvalidArgument, "STDS_REQUIRED_OPTION_UNSPECIFIED", "'path' must be specified.")
        .With("optionName", "path");
  }
  return *path;
}

Result<void> CheckNames(const plan::Options& options, const std::vector<std::string>& known,
                        const std::string& format) {
  for (const auto& [name, value] : options) {
    if (std::find(known.begin(), known.end(), AsciiLower(name)) == known.end()) {
      return Error::Unsupported("the option " + name + " of the format " + format);
    }
  }
  return {};
}

/// Nullopt where the option is not set.
Result<std::optional<std::int64_t>> NumberOption(const plan::Options& options, const std::string& name) {
  const std::string* text = plan::FindOption(options, name);
  if (text == nullptr) {
    return std::optional<std::int64_t>();
  }
  std::int64_t value = 0;
  const std::size_t sign = text->starts_with("-") ? 1 : 0;
  if (text->size() == sign || text->size() > 18) {
    return InvalidOption("WITH_MESSAGE", name, "it is no number: " + *text + ".");
  }
  for (char c : text->substr(sign)) {
    if (c < '0' || c > '9') {
      return InvalidOption("WITH_MESSAGE", name, "it is no number: " + *text + ".");
    }
    value = value * 10 + (c - '0');
  }
  if (sign != 0) {
    return InvalidOption("IS_NEGATIVE", name, "cannot be negative.");
  }
  return std::optional<std::int64_t>(value);
}

/// The oldest and the newest committed batch.
Result<std::pair<std::int64_t, std::int64_t>> CommittedBatches(const storage::Location& checkpoint) {
  std::int64_t first = -1;
  std::int64_t last = -1;
  auto listed = checkpoint.store->List(checkpoint.path + "/commits");
  if (!listed.ok() && listed.error().kind() != ErrorKind::kNotFound) {
    return std::move(listed).error();
  }
  for (const auto& meta : listed.ok() ? *listed : std::vector<storage::ObjectMeta>()) {
    const std::string name = meta.path.substr(meta.path.rfind('/') + 1);
    if (name.empty() || name.size() > 18 ||
        !std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) {
      continue;
    }
    const std::int64_t batch = std::stoll(name);
    first = first < 0 ? batch : std::min(first, batch);
    last = std::max(last, batch);
  }
  if (last < 0) {
    return Error(ErrorKind::kNotFound, "STDS_COMMITTED_BATCH_UNAVAILABLE",
                 "No committed batch found, checkpoint location: " + checkpoint.path +
                     ". Ensure that the query has run and committed any microbatch before stopping.")
        .With("checkpointLocation", checkpoint.path);
  }
  return std::pair(first, last);
}

/// A value of one struct column whose fields are `row` (a row of `fields` columns).
std::string AsStruct(std::string_view row) {
  std::string out(1, '\0');
  out.append(row);
  return out;
}

/// What a stateful processor has kept of itself, as Spark's JSON.
Result<std::string> ProcessorProperties(const storage::Location& folder, std::int64_t batch) {
  FLEUVE_ASSIGN(const state::StoreSpec spec, state::ReadSpec(folder));
  FLEUVE_ASSIGN(const auto store, state::Store::Open(spec, state::Version{batch + 1, ""}));
  const auto index = std::find_if(spec.spaces.begin(), spec.spaces.end(),
                                  [](const state::SpaceSpec& space) { return space.name == kProcessorIndex; });
  if (index == spec.spaces.end()) {
    return std::string();
  }
  const auto space = static_cast<state::SpaceId>(index - spec.spaces.begin());
  std::map<std::int64_t, Json> variables;
  std::optional<Error> failure;
  store->Scan(space, [&](std::string_view key, std::string_view value) {
    if (!key.starts_with(kVariableRow)) {
      return true;
    }
    auto kept = Json::Parse(value);
    if (!kept.ok()) {
      failure = std::move(kept).error();
      return false;
    }
    Json variable;
    variable.Set("stateName", std::string(key.substr(kVariableRow.size())))
        .Set("stateVariableType", (*kept)["kind"].AsString())
        .Set("ttlEnabled", (*kept)["ttl"].AsBool());
    variables.emplace((*kept)["position"].AsInt(), std::move(variable));
    return true;
  });
  if (failure) {
    return *std::move(failure);
  }
  Json::Array list;
  for (auto& [position, variable] : variables) {
    list.push_back(std::move(variable));
  }
  std::string time_mode(store->Get(space, "timeMode"));
  if (time_mode == "None") {
    time_mode = "NoTime";
  }
  Json json;
  json.Set("timeMode", time_mode)
      .Set("outputMode", std::string(store->Get(space, "outputMode")))
      .Set("stateVariables", Json(std::move(list)));
  return json.Dump();
}

}  // namespace

Result<std::shared_ptr<const plan::TableSource>> OpenStateTable(const plan::Options& options) {
  FLEUVE_TRY(CheckNames(options, {"path", "operatorid", "batchid", "storename"}, "statestore"));
  FLEUVE_ASSIGN(const std::string path, PathOption(options));
  FLEUVE_ASSIGN(const auto operator_id, NumberOption(options, "operatorId"));
  FLEUVE_ASSIGN(const auto batch_id, NumberOption(options, "batchId"));
  const std::string* store_name = plan::FindOption(options, "storeName");
  if (store_name != nullptr && *store_name != "default") {
    return Error::Unsupported("the state store " + *store_name + " as a table");
  }
  FLEUVE_ASSIGN(const storage::Location checkpoint, storage::Resolve(path));
  std::int64_t batch = batch_id.value_or(-1);
  if (!batch_id) {
    FLEUVE_ASSIGN(const auto committed, CommittedBatches(checkpoint));
    batch = committed.second;
  }
  const storage::Location state_folder{checkpoint.store, checkpoint.path + "/state"};
  // Refuses what another engine wrote.
  FLEUVE_ASSIGN(const auto found, state::FindOperators(state_folder));
  const std::int64_t number = operator_id.value_or(0);
  if (std::none_of(found.begin(), found.end(), [&](const auto& one) { return one.id == number; })) {
    return InvalidOption("WITH_MESSAGE", "operatorId",
                         "the checkpoint " + path + " has no state of an operator " + std::to_string(number) + ".");
  }
  FLEUVE_ASSIGN(const state::StoreSpec spec,
                state::ReadSpec({state_folder.store, state_folder.path + "/" + std::to_string(number)}));
  const state::SpaceSpec& space = spec.spaces[0];
  if (space.key_columns.empty() || space.value_columns.empty()) {
    return Error::Unsupported("the state of the operator " + spec.operator_name + " as a table");
  }
  FLEUVE_ASSIGN(const Json key_json, Json::Parse(space.key_columns));
  FLEUVE_ASSIGN(const Json value_json, Json::Parse(space.value_columns));
  FLEUVE_ASSIGN(const DataType key_type, DataType::FromJson(key_json));
  FLEUVE_ASSIGN(const DataType value_type, DataType::FromJson(value_json));
  FLEUVE_ASSIGN(const auto store, state::Store::Open(spec, state::Version{batch + 1, ""}));
  auto schema = std::make_shared<types::Schema>(DataType::Struct({{"key", key_type, true, Json()},
                                                                  {"value", value_type, true, Json()},
                                                                  {"partition_id", DataType::Int(), true, Json()}}));
  std::vector<columnar::RecordBatch> batches;
  BatchedRows rows(RowDecoder(schema, {1, 1, 1}), &batches);
  const std::string partition(5, '\0');
  std::string value;
  store->Scan(0, [&](std::string_view key, std::string_view kept) {
    value.clear();
    if (space.timed_by_value) {
      // The time is the value's one field.
      const std::int64_t time = state::TimeOf(kept);
      value.push_back('\0');
      value.append(reinterpret_cast<const char*>(&time), sizeof(time));
    } else if (kept.empty()) {
      value.assign((value_type.fields().size() + 7) / 8, '\xFF');
    } else {
      value = kept;
    }
    return rows.Add({AsStruct(space.timed ? key.substr(8) : key), AsStruct(value), partition});
  });
  FLEUVE_TRY(rows.Finish());
  return std::shared_ptr<const plan::TableSource>(
      std::make_shared<RowsTable>(*schema, "statestore", std::move(batches)));
}

Result<std::shared_ptr<const plan::TableSource>> OpenStateMetadata(const plan::Options& options) {
  FLEUVE_TRY(CheckNames(options, {"path"}, "state-metadata"));
  FLEUVE_ASSIGN(const std::string path, PathOption(options));
  FLEUVE_ASSIGN(const storage::Location checkpoint, storage::Resolve(path));
  FLEUVE_ASSIGN(const auto committed, CommittedBatches(checkpoint));
  FLEUVE_ASSIGN(const auto found, state::FindOperators({checkpoint.store, checkpoint.path + "/state"}));
  const types::Schema schema = DataType::Struct({{"operatorId", DataType::Long(), true, Json()},
                                                 {"operatorName", DataType::String(), true, Json()},
                                                 {"stateStoreName", DataType::String(), true, Json()},
                                                 {"numPartitions", DataType::Int(), true, Json()},
                                                 {"minBatchId", DataType::Long(), true, Json()},
                                                 {"maxBatchId", DataType::Long(), true, Json()},
                                                 {"operatorProperties", DataType::String(), true, Json()}});
  std::vector<Value::List> rows;
  for (const auto& one : found) {
    std::string properties;
    if (one.name.starts_with("transformWithState")) {
      const std::string folder = checkpoint.path + "/state/" + std::to_string(one.id);
      FLEUVE_ASSIGN(properties, ProcessorProperties({checkpoint.store, folder}, committed.second));
    }
    rows.push_back({Value(std::int64_t{one.id}), Value(one.name), Value("default"), Value(one.partitions),
                    Value(committed.first), Value(committed.second), Value(properties)});
  }
  std::vector<columnar::RecordBatch> batches;
  if (!rows.empty()) {
    FLEUVE_ASSIGN(auto batch, columnar::BatchFromRows(schema, rows));
    batches.push_back(std::move(batch));
  }
  return std::shared_ptr<const plan::TableSource>(
      std::make_shared<RowsTable>(schema, "state-metadata", std::move(batches)));
}

}  // namespace fleuve::operators
