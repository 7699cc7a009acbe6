// The initial snapshot in the order of event times: each batch takes the rows of one range of times, whatever files
// they are in, so that no row of the snapshot is late.

#include <algorithm>

#include "columnar/ipc.h"
#include "connectors/delta/delta_source_internal.h"
#include "delta/skipping.h"
#include "engine/engine.h"
#include "plan/analyzer.h"
#include "types/value.h"

namespace fleuve::connectors::delta {

namespace {

using types::DataType;
using types::TypeKind;
using types::Value;

std::int64_t CeilMillis(std::int64_t micros) { return micros >= 0 ? (micros + 999) / 1000 : -(-micros / 1000); }

/// Statistics keep milliseconds: a maximum may be up to 999 microseconds too small.
std::int64_t Widest(std::int64_t micros) { return micros % 1000 == 0 ? micros + 999 : micros; }

std::optional<std::int64_t> Micros(const Json& value, const DataType& type) {
  if (!value.is_string()) {
    return std::nullopt;
  }
  return type.Is(TypeKind::kTimestampNtz) ? types::ParseTimestampNtz(value.AsString())
                                          : types::ParseTimestamp(value.AsString(), "UTC");
}

std::optional<std::int64_t> MicrosOf(const Value& value) {
  return value.is_null() ? std::nullopt : std::optional<std::int64_t>(value.integer());
}

}  // namespace

Result<void> DeltaSource::CheckEventOrder(const std::optional<Offset>& start, const std::optional<Offset>& end) const {
  for (const auto* text : {&start, &end}) {
    if (!*text) {
      continue;
    }
    FLEUVE_ASSIGN(const DeltaOffset offset, DeltaOffset::Parse(**text, table_id_));
    if (offset.is_starting && offset.event_time_ms.has_value() != event_order_) {
      return Error(ErrorKind::kConflict, "FLEUVE_EVENT_TIME_ORDER_CHANGED",
                   "The initial snapshot of the Delta stream is being read " +
                       std::string(event_order_ ? "without" : "with") +
                       " withEventTimeOrder according to the checkpoint; this cannot be changed before the snapshot is "
                       "finished. Restart as before, or use a new checkpoint location.");
    }
  }
  return {};
}

Result<EventBounds> DeltaSource::BoundsOf(const dl::AddFile& file) const {
  const EventTime& event = *context_.event_time;
  const DataType& type = event.time->type;
  // The names of the column from the outside in.
  std::vector<const plan::Expr*> steps;
  const plan::Expr* at = event.time.get();
  while (at->kind == plan::ExprKind::kGetField) {
    steps.push_back(at);
    at = at->children[0].get();
  }
  if (!event.is_plain_column) {
    return ScanBounds(file);
  }
  FLEUVE_ASSIGN(const types::Schema schema, SchemaOfJson(metadata_.schema_string));
  const auto top = types::FieldIndex(schema, at->attribute.name);
  if (!top) {
    return ScanBounds(file);
  }
  const types::StructField* field = &schema.fields()[*top];
  std::vector<std::string> names = {dl::PhysicalName(*field, metadata_)};
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    field = &field->type.fields()[static_cast<std::size_t>((*step)->ordinal)];
    names.push_back(dl::PhysicalName(*field, metadata_));
  }
  EventBounds bounds;
  for (const auto& [name, value] : file.partition_values) {
    if (names.size() == 1 && name == names[0]) {
      FLEUVE_ASSIGN(const Value parsed, dl::ParsePartitionValue(value, type));
      bounds.low_micros = MicrosOf(parsed);
      bounds.high_micros = bounds.low_micros;
      bounds.may_have_null = !bounds.low_micros;
      return bounds;
    }
  }
  auto stats = file.stats.empty() ? Result<Json>(Json()) : Json::Parse(file.stats);
  if (!stats.ok() || !stats->is_object()) {
    return ScanBounds(file);
  }
  const auto find = [&](const char* kind) -> const Json* {
    const Json* value = stats->Find(kind);
    for (const std::string& name : names) {
      value = value == nullptr ? nullptr : value->Find(name);
    }
    return value;
  };
  const Json* low = find("minValues");
  const Json* high = find("maxValues");
  const Json* nulls = find("nullCount");
  bounds.may_have_null = nulls == nullptr || !nulls->is_int() || nulls->AsInt() > 0;
  if (nulls != nullptr && nulls->is_int() && nulls->AsInt() == dl::NumRecords(file)) {
    return bounds;
  }
  bounds.low_micros = low == nullptr ? std::nullopt : Micros(*low, type);
  bounds.high_micros = high == nullptr ? std::nullopt : Micros(*high, type);
  if (!bounds.low_micros || !bounds.high_micros) {
    return ScanBounds(file);
  }
  bounds.high_micros = Widest(*bounds.high_micros);
  return bounds;
}

Result<EventBounds> DeltaSource::ScanBounds(const dl::AddFile& file) const {
  const EventTime& event = *context_.event_time;
  FLEUVE_ASSIGN(plan::FileScan scan, dl::MakeScan(metadata_));
  scan.session_zone = context_.config.session_zone;
  FLEUVE_ASSIGN(plan::ScanFile one, dl::MakeScanFile(scan, metadata_, file, log_->location()));
  scan.files.push_back(std::move(one));
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  for (const types::Schema* schema : {&scan.data_schema, &scan.partition_schema}) {
    for (const plan::Attribute& fresh : plan::AttributesOf(*schema)) {
      const auto known = std::find_if(event.columns.begin(), event.columns.end(),
                                      [&](const plan::Attribute& column) { return column.name == fresh.name; });
      leaf->output.push_back(known == event.columns.end() ? fresh : *known);
    }
  }
  leaf->scan = std::make_shared<const plan::FileScan>(std::move(scan));
  plan::Attribute output;
  output.id = plan::NewAttributeId();
  output.name = "time";
  output.type = event.time->type;
  FLEUVE_ASSIGN(const plan::PlanPtr prepared,
                plan::Prepare(plan::MakeProject(leaf, {event.time}, {output}), context_.config));
  engine::ExecuteOptions options;
  options.token = context_.token;
  // Rare: a computed time, or files of a writer that keeps no statistics.
  engine::EngineOptions small;
  small.threads = 1;
  small.memory_bytes = std::int64_t{256} << 20;
  FLEUVE_ASSIGN(const auto engine, engine::Engine::Open(small));
  FLEUVE_ASSIGN(const auto reader, engine->Execute(prepared, options));
  EventBounds bounds;
  bounds.may_have_null = false;
  for (;;) {
    FLEUVE_ASSIGN(const auto batch, reader->Next());
    if (!batch) {
      return bounds;
    }
    FLEUVE_ASSIGN(const auto rows, columnar::RowsFromBatch(*batch));
    for (const auto& row : rows) {
      if (const auto micros = MicrosOf(row[0])) {
        bounds.low_micros = std::min(bounds.low_micros.value_or(*micros), *micros);
        bounds.high_micros = std::max(bounds.high_micros.value_or(*micros), *micros);
      } else {
        bounds.may_have_null = true;
      }
    }
  }
}

Result<void> DeltaSource::LoadBounds(std::int64_t version) {
  if (bounds_version_ == version) {
    return {};
  }
  FLEUVE_ASSIGN(const auto snapshot, SnapshotFiles(version));
  bounds_.clear();
  for (std::int64_t i = 0; i < snapshot->count(); ++i) {
    FLEUVE_ASSIGN(EventBounds bounds, BoundsOf(snapshot->file(i)));
    bounds_.emplace_back(std::move(bounds), std::shared_ptr<const dl::AddFile>(snapshot, &snapshot->file(i)));
  }
  // Files without any time come first: their rows go with the first batch.
  std::stable_sort(bounds_.begin(), bounds_.end(), [](const auto& a, const auto& b) {
    return a.first.high_micros.value_or(INT64_MIN) < b.first.high_micros.value_or(INT64_MIN);
  });
  bounds_version_ = version;
  return {};
}

Result<DeltaOffset> DeltaSource::WalkBuckets(const DeltaOffset& from, Budget budget) {
  FLEUVE_TRY(LoadBounds(from.version));
  const DeltaOffset done{from.version + 1, -1, false};
  std::optional<std::int64_t> bound = from.event_time_ms;
  for (const auto& [bounds, file] : bounds_) {
    const std::optional<std::int64_t> high =
        bounds.high_micros ? std::optional<std::int64_t>(CeilMillis(*bounds.high_micros)) : std::nullopt;
    if (from.event_time_ms && (!high || *high <= *from.event_time_ms)) {
      continue;
    }
    if (high && bound && bound != from.event_time_ms && *high <= *bound) {
      // Ends with the same millisecond as the file before: the same bucket.
      budget.Take(file->size);
      continue;
    }
    // Files without times alone make no bucket.
    if (!budget.Take(file->size) && bound && bound != from.event_time_ms) {
      DeltaOffset end = from;
      end.event_time_ms = bound;
      return end;
    }
    if (high) {
      bound = high;
    }
  }
  return done;
}

Result<BatchInput> DeltaSource::ReadBucket(const DeltaOffset& from, const DeltaOffset& end) {
  FLEUVE_TRY(LoadBounds(from.version));
  const std::optional<std::int64_t> low = from.event_time_ms;
  const std::optional<std::int64_t> high = end.event_time_ms;
  std::vector<const dl::AddFile*> files;
  for (const auto& [bounds, file] : bounds_) {
    const bool has_null_rows = !low && bounds.may_have_null;
    const bool above = !low || (bounds.high_micros && *bounds.high_micros >= (*low + 1) * 1000);
    const bool below = !high || (bounds.low_micros && *bounds.low_micros < (*high + 1) * 1000);
    const bool has_times = bounds.high_micros.has_value() && above && below;
    if ((has_null_rows || has_times) && !IsExcluded(*file)) {
      files.push_back(file.get());
    }
  }
  FLEUVE_ASSIGN(BatchInput input, InputOf(files));
  const plan::ExprPtr& time = context_.event_time->time;
  const auto compare = [&](const char* op, std::int64_t millis) {
    return plan::MakeCall(op, {time, plan::MakeLiteral(Value(millis * 1000), time->type)}, DataType::Boolean(), true);
  };
  plan::ExprPtr filter;
  if (low) {
    filter = compare("ge", *low + 1);
  }
  if (high) {
    plan::ExprPtr until = compare("lt", *high + 1);
    if (!low) {
      until = plan::MakeCall("or", {plan::MakeCall("isnull", {time}, DataType::Boolean(), false), until},
                             DataType::Boolean(), true);
    }
    filter = filter ? plan::MakeAnd(std::move(filter), std::move(until)) : std::move(until);
  }
  input.filter = std::move(filter);
  if (input.scan) {
    input.row_count = -1;
  }
  return input;
}

}  // namespace fleuve::connectors::delta
