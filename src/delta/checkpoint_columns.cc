#include "delta/checkpoint_columns_internal.h"

namespace fleuve::delta {

AddColumns::AddColumns(const columnar::RecordBatch& batch, const types::Schema& schema) {
  const auto at = types::FieldIndex(schema, "add");
  if (!at) {
    return;
  }
  const ArrowArray* top = batch.array->get();
  add_ = ColumnView(top->children[*at], top->offset);
  const auto& fields = schema.fields()[*at].type.fields();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const std::string& name = fields[i].name;
    ColumnView* column = name == "path"                      ? &path_
                         : name == "partitionValues"         ? &partition_values_
                         : name == "size"                    ? &size_
                         : name == "modificationTime"        ? &modification_time_
                         : name == "dataChange"              ? &data_change_
                         : name == "stats"                   ? &stats_
                         : name == "tags"                    ? &tags_
                         : name == "deletionVector"          ? &deletion_vector_
                         : name == "baseRowId"               ? &base_row_id_
                         : name == "defaultRowCommitVersion" ? &default_row_commit_version_
                         : name == "clusteringProvider"      ? &clustering_provider_
                                                             : nullptr;
    if (column != nullptr) {
      *column = add_.Child(i);
    }
  }
}

bool AddColumns::IsPlain(std::int64_t row) const {
  return path_.present() && !add_.IsNull(row) && !path_.IsNull(row) && tags_.IsNull(row) &&
         deletion_vector_.IsNull(row) && clustering_provider_.IsNull(row);
}

void AddColumns::AddTo(std::int64_t row, FileSegment::Builder* files) const {
  AddFile file;
  const std::string_view path = path_.Text(row);
  if (path.empty()) {
    return;
  }
  if (!partition_values_.IsNull(row)) {
    const auto [first, end] = partition_values_.Entries(row);
    const ColumnView entries = partition_values_.Items();
    for (std::int64_t i = first; i < end; ++i) {
      const ColumnView value = entries.Child(1);
      file.partition_values.emplace_back(std::string(entries.Child(0).Text(i)),
                                         value.IsNull(i) ? std::nullopt : std::optional<std::string>(value.Text(i)));
    }
  }
  file.size = size_.IsNull(row) ? 0 : size_.Long(row);
  file.modification_time = modification_time_.IsNull(row) ? 0 : modification_time_.Long(row);
  file.data_change = !data_change_.IsNull(row) && data_change_.Boolean(row);
  if (!base_row_id_.IsNull(row)) {
    file.base_row_id = base_row_id_.Long(row);
  }
  if (!default_row_commit_version_.IsNull(row)) {
    file.default_row_commit_version = default_row_commit_version_.Long(row);
  }
  files->Add(file, path, stats_.IsNull(row) ? std::string_view() : stats_.Text(row));
}

}  // namespace fleuve::delta
