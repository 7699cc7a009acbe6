#include "plan/row_ids.h"

namespace fleuve::plan {

using types::DataType;

const RowIdSource* RowIdsOf(const TableSource& table) {
  const auto* ids = dynamic_cast<const RowIdSource*>(&table);
  return ids != nullptr && ids->has_row_ids() ? ids : nullptr;
}

types::DataType RowIdMetadataType() {
  std::vector<types::StructField> fields = MetadataColumnType().fields();
  for (const char* name : {"row_id", "base_row_id", "default_row_commit_version", "row_commit_version"}) {
    fields.push_back({name, DataType::Long(), true, Json(Json::Object{})});
  }
  return DataType::Struct(std::move(fields));
}

}  // namespace fleuve::plan
