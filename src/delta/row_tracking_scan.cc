#include "delta/row_tracking_scan.h"

namespace fleuve::delta {

using plan::ExprPtr;
using types::DataType;

void AddRowIdColumns(const MaterializedRowIds& names, plan::FileScan* scan) {
  const auto with = [&](const types::Schema& schema) {
    std::vector<types::StructField> fields = schema.fields();
    for (const std::string& name : {names.row_id, names.commit_version}) {
      fields.push_back({name, DataType::Long(), true, Json(Json::Object{})});
    }
    return DataType::Struct(std::move(fields));
  };
  scan->data_schema = with(scan->data_schema);
  if (scan->physical_schema) {
    scan->physical_schema = with(*scan->physical_schema);
  }
  std::vector<types::StructField> constants = scan->constants_schema.fields();
  for (const char* name : {"__base_row_id", "__base_version"}) {
    constants.push_back({name, DataType::Long(), true, Json()});
  }
  scan->constants_schema = DataType::Struct(std::move(constants));
  scan->with_row_index = true;
}

void AppendRowIdConstants(const AddFile& add, plan::ScanFile* file) {
  file->constants.push_back(add.base_row_id ? types::Value(*add.base_row_id) : types::Value());
  file->constants.push_back(add.default_row_commit_version ? types::Value(*add.default_row_commit_version)
                                                           : types::Value());
}

RowIdValues RowIdValuesOf(const ExprPtr& kept_id, const ExprPtr& kept_version, const ExprPtr& base_row_id,
                          const ExprPtr& default_version, const ExprPtr& position) {
  const ExprPtr counted = plan::MakeCall("spark_add", {base_row_id, position}, DataType::Long(), true);
  return {plan::MakeCall("coalesce", {kept_id, counted}, DataType::Long(), true),
          plan::MakeCall("coalesce", {kept_version, default_version}, DataType::Long(), true)};
}

}  // namespace fleuve::delta
