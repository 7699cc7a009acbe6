#include <algorithm>

#include "base/bytes.h"
#include "delta/skipping.h"
#include "tables/clustering_internal.h"
#include "tables/file_statistics_internal.h"

namespace fleuve::tables {

Result<delta::DomainMetadata> ClusteringDomain(const types::Schema& schema, const delta::Metadata& metadata,
                                               const std::vector<std::string>& columns) {
  if (columns.size() > 4) {
    return Error(ErrorKind::kInvalidArgument, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS",
                 "CLUSTER BY takes at most 4 columns, not " + std::to_string(columns.size()) + ".")
        .With("numColumnsLimit", "4")
        .With("actualNumColumns", std::to_string(columns.size()));
  }
  const std::vector<StatisticsLeaf> indexed = IndexedLeaves(metadata, schema);
  Json::Array all;
  for (const std::string& column : columns) {
    Json::Array path;
    std::vector<std::string> physical;
    const types::Schema* at = &schema;
    const types::StructField* field = nullptr;
    for (const std::string& part : Split(column, '.')) {
      const auto index = types::FieldIndex(*at, part);
      if (!index) {
        return Error(ErrorKind::kInvalidArgument, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA",
                     "The clustering column " + column + " is not in the schema.")
            .With("columnName", column)
            .With("tableSchema", schema.SimpleString());
      }
      field = &at->fields()[*index];
      physical.push_back(delta::PhysicalName(*field, metadata));
      path.emplace_back(physical.back());
      at = &field->type;
    }
    const types::DataType& type = field->type;
    if (!type.IsNumeric() && !type.IsDateTime() && !type.IsString()) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED",
                   "The clustering column " + column + " of type " + type.SimpleString() + " has no order to skip by.")
          .With("columnsWithDataTypes", column + " : " + type.Sql());
    }
    const bool has_bounds = std::any_of(indexed.begin(), indexed.end(), [&](const StatisticsLeaf& leaf) {
      return std::equal(leaf.path.begin(), leaf.path.end(), physical.begin(), physical.end());
    });
    if (!has_bounds) {
      return Error(ErrorKind::kInvalidArgument, "DELTA_CLUSTERING_COLUMN_MISSING_STATS",
                   "CLUSTER BY needs statistics of the column " + column +
                       ": place it among the first ones, or name it in delta.dataSkippingStatsColumns.")
          .With("columns", column)
          .With("schema", schema.SimpleString());
    }
    all.emplace_back(std::move(path));
  }
  Json configuration(Json::Object{});
  configuration.Set("clusteringColumns", Json(std::move(all)));
  configuration.Set("domainName", Json("delta.clustering"));
  return delta::DomainMetadata{"delta.clustering", configuration.Dump(), false};
}

std::vector<std::string> ClusteringColumns(const delta::Snapshot& snapshot) {
  std::vector<std::string> names;
  const auto domain = snapshot.Domain("delta.clustering");
  if (!domain) {
    return names;
  }
  const auto json = Json::Parse(*domain);
  if (!json.ok()) {
    return names;
  }
  for (const Json& path : (*json)["clusteringColumns"].items()) {
    const types::Schema* at = &snapshot.schema();
    std::vector<std::string> logical;
    for (const Json& part : path.items()) {
      for (const types::StructField& field : at->fields()) {
        if (delta::PhysicalName(field, snapshot.metadata()) == part.AsString()) {
          logical.push_back(field.name);
          at = &field.type;
          break;
        }
      }
    }
    names.push_back(Join(logical, "."));
  }
  return names;
}

}  // namespace fleuve::tables
