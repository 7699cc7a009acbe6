#include "delta/row_tracking.h"

#include "base/bytes.h"
#include "base/ids.h"
#include "delta/table_source.h"

namespace fleuve::delta {
namespace {

constexpr std::string_view kDomain = "delta.rowTracking";
constexpr std::string_view kRowIdName = "delta.rowTracking.materializedRowIdColumnName";
constexpr std::string_view kVersionName = "delta.rowTracking.materializedRowCommitVersionColumnName";

bool Flag(const Metadata& metadata, std::string_view key) {
  const std::string* value = FindIn(metadata.configuration, key);
  return value != nullptr && EqualsIgnoreAsciiCase(*value, "true");
}

std::optional<std::int64_t> MarkOf(const std::string& configuration) {
  auto json = Json::Parse(configuration);
  if (!json.ok()) {
    return std::nullopt;
  }
  const Json* mark = json->Find("rowIdHighWaterMark");
  return mark != nullptr && mark->is_int() ? std::optional<std::int64_t>(mark->AsInt()) : std::nullopt;
}

}  // namespace

bool AssignsRowIds(const Protocol& protocol, const Metadata& metadata) {
  return HasFeature(protocol, "rowTracking") && !Flag(metadata, "delta.rowTrackingSuspended");
}

bool TracksRows(const Metadata& metadata) { return Flag(metadata, "delta.enableRowTracking"); }

std::optional<MaterializedRowIds> MaterializedRowIdsOf(const Metadata& metadata) {
  const std::string* id = FindIn(metadata.configuration, kRowIdName);
  const std::string* version = FindIn(metadata.configuration, kVersionName);
  if (id == nullptr || version == nullptr) {
    return std::nullopt;
  }
  return MaterializedRowIds{*id, *version};
}

void NameMaterializedRowIds(Metadata* metadata) {
  if (!TracksRows(*metadata)) {
    return;
  }
  if (FindIn(metadata->configuration, kRowIdName) == nullptr) {
    SetIn(metadata->configuration, kRowIdName, "_row-id-col-" + NewUuid());
  }
  if (FindIn(metadata->configuration, kVersionName) == nullptr) {
    SetIn(metadata->configuration, kVersionName, "_row-commit-version-col-" + NewUuid());
  }
}

std::int64_t RowIdHighWaterMark(const Snapshot* snapshot) {
  if (snapshot == nullptr) {
    return -1;
  }
  const auto domain = snapshot->Domain(kDomain);
  return domain ? MarkOf(*domain).value_or(-1) : -1;
}

std::optional<std::int64_t> RowIdHighWaterMark(const Action& action) {
  const auto* domain = std::get_if<DomainMetadata>(&action);
  return domain != nullptr && domain->domain == kDomain && !domain->removed ? MarkOf(domain->configuration)
                                                                            : std::nullopt;
}

Result<void> AssignRowIds(std::vector<Action>* actions, std::int64_t high_water_mark, std::int64_t version) {
  std::int64_t mark = high_water_mark;
  for (Action& action : *actions) {
    auto* add = std::get_if<AddFile>(&action);
    if (add == nullptr) {
      continue;
    }
    if (!add->base_row_id) {
      const std::int64_t rows = NumRecords(*add);
      if (rows < 0) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
                     "Row ids cannot be given to the file " + add->path + ": its number of rows is not known.");
      }
      add->base_row_id = mark + 1;
      mark += rows;
    }
    if (!add->default_row_commit_version) {
      add->default_row_commit_version = version;
    }
  }
  if (mark != high_water_mark) {
    actions->emplace_back(DomainMetadata{
        std::string(kDomain),
        "{\"rowIdHighWaterMark\":" + std::to_string(mark) + ",\"domainName\":\"" + std::string(kDomain) + "\"}",
        false});
  }
  return {};
}

}  // namespace fleuve::delta
