// Parquet files whose columns do not fit the schema: what cannot be read goes as JSON into the rescued column. And the
// types that Auto Loader widens.

#include <algorithm>

#include "base/bytes.h"
#include "connectors/autoloader/cloud_schema_internal.h"
#include "plan/call_function.h"

namespace fleuve::connectors::autoloader {

namespace {

using files::ListedFile;
using plan::ExprPtr;
using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

/// Constant column of the scan: the file's address.
constexpr const char* kPathColumn = "__fleuve_file_path";

/// The type that holds both, where Auto Loader widens `from` to it.
std::optional<DataType> Wider(const DataType& from, const DataType& to, bool dates) {
  const auto decimal = [](int whole, int scale) {
    return whole + scale > 38 ? std::optional<DataType>()
                              : std::optional<DataType>(DataType::Decimal(whole + scale, scale));
  };
  if (from.IsIntegral()) {
    if (to.IsIntegral()) {
      return to.kind() > from.kind() ? std::optional<DataType>(to) : std::nullopt;
    }
    const int whole = from.Is(TypeKind::kLong) ? 20 : 10;
    if (to.Is(TypeKind::kDecimal)) {
      return decimal(std::max(whole, to.precision() - to.scale()), to.scale());
    }
    return to.Is(TypeKind::kDouble) && !from.Is(TypeKind::kLong) ? std::optional<DataType>(to) : std::nullopt;
  }
  if (from.Is(TypeKind::kFloat) && to.Is(TypeKind::kDouble)) {
    return to;
  }
  if (from.Is(TypeKind::kDecimal) && to.Is(TypeKind::kDecimal)) {
    const int whole = std::max(from.precision() - from.scale(), to.precision() - to.scale());
    const int scale = std::max(from.scale(), to.scale());
    return whole == from.precision() - from.scale() && scale == from.scale() ? std::nullopt : decimal(whole, scale);
  }
  if (dates && from.Is(TypeKind::kDate) && to.Is(TypeKind::kTimestampNtz)) {
    return to;
  }
  return std::nullopt;
}

bool Widen(const DataType& current, const DataType& found, const std::string& name, bool dates, DataType* out,
           std::vector<std::string>* names);

bool WidenStruct(const DataType& current, const DataType& found, const std::string& prefix,
                 const std::vector<Hint>& hints, bool dates, DataType* out, std::vector<std::string>* names) {
  std::vector<StructField> fields = current.fields();
  bool changed = false;
  for (StructField& field : fields) {
    const bool hinted = std::any_of(hints.begin(), hints.end(),
                                    [&](const Hint& hint) { return EqualsIgnoreAsciiCase(hint.path[0], field.name); });
    const auto at = types::FieldIndex(found, field.name);
    DataType type;
    if (!hinted && at && Widen(field.type, found.fields()[*at].type, prefix + field.name, dates, &type, names)) {
      field.type = std::move(type);
      changed = true;
    }
  }
  if (changed) {
    *out = DataType::Struct(std::move(fields));
  }
  return changed;
}

bool Widen(const DataType& current, const DataType& found, const std::string& name, bool dates, DataType* out,
           std::vector<std::string>* names) {
  if (current.Is(TypeKind::kStruct) && found.Is(TypeKind::kStruct)) {
    return WidenStruct(current, found, name + ".", {}, dates, out, names);
  }
  if (current.Is(TypeKind::kArray) && found.Is(TypeKind::kArray)) {
    DataType element;
    if (!Widen(current.element(), found.element(), name + ".element", dates, &element, names)) {
      return false;
    }
    *out = DataType::Array(std::move(element), true);
    return true;
  }
  if (auto wider = Wider(current, found, dates)) {
    *out = *std::move(wider);
    names->push_back(name);
    return true;
  }
  return false;
}

}  // namespace

std::optional<types::Schema> WidenFields(const types::Schema& current, const types::Schema& found,
                                         const std::vector<Hint>& hints, bool dates, std::vector<std::string>* names) {
  DataType out;
  return WidenStruct(current, found, "", hints, dates, &out, names) ? std::optional<types::Schema>(std::move(out))
                                                                    : std::nullopt;
}

Result<plan::PlanPtr> CloudRelation::RescuePlan(const std::vector<ListedFile>& files,
                                                const std::vector<StructField>& found,
                                                const std::vector<std::string>& absent) const {
  const PartitionedFiles split = PartitionsOf(files);
  // A column that has moved to the folders' names is read from there, whatever the files have.
  std::vector<StructField> columns = found;
  std::erase_if(columns, [&](const StructField& column) {
    return types::FieldIndex(split.schema.partition, column.name).has_value();
  });
  const auto same = [&](const std::string& a, const std::string& b) {
    return MatchesCase() ? a == b : EqualsIgnoreAsciiCase(a, b);
  };
  const auto rescues = [&](const std::string& name) {
    return std::find_if(columns.begin(), columns.end(),
                        [&](const StructField& column) { return same(column.name, name); });
  };
  // The file's own types for what is rescued, the stream's for the rest. A column with fields that the schema lacks is
  // read as the file has it; its known fields are picked from it.
  std::vector<StructField> data;
  for (const StructField& field : split.schema.data.fields()) {
    if (std::find(absent.begin(), absent.end(), field.name) != absent.end()) {
      continue;
    }
    const auto own = rescues(field.name);
    data.push_back(own == columns.end() ? field : *own);
  }
  for (const StructField& column : columns) {
    if (!types::FieldIndex(data_, column.name, MatchesCase())) {
      data.push_back(column);
    }
  }
  const files::SplitSchema own{DataType::Struct(data), split.schema.partition, DataType::Struct(data)};
  FLEUVE_ASSIGN(auto scan, files::MakeScan(cloud_.format, own, reader_, config_.session_zone, files, split.values));
  scan->constants_schema = DataType::Struct({{kPathColumn, DataType::String(), true, {}}});
  for (plan::ScanFile& file : scan->files) {
    file.constants = {Value(file.uri)};
  }
  scan->with_metadata = true;
  auto leaf = std::make_shared<plan::LogicalPlan>();
  leaf->kind = plan::PlanKind::kFileScan;
  for (const types::Schema* schema : {&scan->data_schema, &scan->partition_schema, &scan->constants_schema}) {
    for (plan::Attribute& attribute : plan::AttributesOf(*schema)) {
      leaf->output.push_back(std::move(attribute));
    }
  }
  plan::Attribute metadata;
  metadata.id = plan::NewAttributeId();
  metadata.name = "_metadata";
  metadata.type = plan::MetadataColumnType();
  metadata.hidden = true;
  leaf->output.push_back(metadata);
  leaf->scan = std::move(scan);
  const auto read = [&](const std::string& name) -> ExprPtr {
    for (const plan::Attribute& attribute : leaf->output) {
      if (same(attribute.name, name)) {
        return plan::MakeAttribute(attribute);
      }
    }
    return nullptr;
  };
  // {"column": value, ..., "_file_path": "..."} where one of the columns has a value.
  std::vector<ExprPtr> members;
  ExprPtr any;
  for (const StructField& column : columns) {
    const ExprPtr value = read(column.name);
    FLEUVE_ASSIGN(ExprPtr kept, RescuedPart(value, column));
    ExprPtr there = plan::MakeCall("isnotnull", {kept}, DataType::Boolean(), false);
    any = any ? plan::MakeCall("or", {any, there}, DataType::Boolean(), false) : std::move(there);
    members.push_back(plan::MakeLiteral(Value(column.name), DataType::String()));
    members.push_back(std::move(kept));
  }
  const std::string* with_path = plan::FindOption(reader_, "fleuve.rescuedFilePath");
  if (with_path == nullptr || *with_path != "false") {
    members.push_back(plan::MakeLiteral(Value("_file_path"), DataType::String()));
    members.push_back(read(kPathColumn));
  }
  ExprPtr json = plan::MakeNull(DataType::String());
  if (any) {
    FLEUVE_ASSIGN(const ExprPtr object, plan::CallFunction("named_struct", std::move(members), config_));
    FLEUVE_ASSIGN(const ExprPtr text, plan::CallFunction("to_json", {object}, config_));
    json = plan::MakeCase({any, text}, false, DataType::String());
  }
  std::vector<ExprPtr> exprs;
  std::vector<plan::Attribute> output;
  for (const StructField& field : all_.fields()) {
    const auto own = rescues(field.name);
    ExprPtr value = read(field.name);
    if (field.name == rescued_column_) {
      value = json;
    } else if (own != columns.end()) {
      FLEUVE_ASSIGN(value, KnownPart(value, field.type));
    } else if (!value) {
      value = plan::MakeNull(field.type);
    }
    plan::Attribute attribute;
    attribute.id = plan::NewAttributeId();
    attribute.name = field.name;
    attribute.type = field.type;
    exprs.push_back(std::move(value));
    output.push_back(std::move(attribute));
  }
  plan::Attribute passed = metadata;
  passed.id = plan::NewAttributeId();
  exprs.push_back(plan::MakeAttribute(metadata));
  output.push_back(std::move(passed));
  return plan::MakeProject(leaf, std::move(exprs), std::move(output));
}

/// Of a column of a file: what the schema has no place for; the whole value where the column itself is unknown or of
/// another type.
Result<ExprPtr> CloudRelation::RescuedPart(const ExprPtr& value, const StructField& column) const {
  const auto at = types::FieldIndex(data_, column.name, MatchesCase());
  if (!at || !column.type.Is(TypeKind::kStruct) || !data_.fields()[*at].type.Is(TypeKind::kStruct)) {
    return value;
  }
  const DataType& known = data_.fields()[*at].type;
  std::vector<ExprPtr> members;
  ExprPtr any;
  for (std::size_t i = 0; i < column.type.fields().size(); ++i) {
    const StructField& field = column.type.fields()[i];
    const auto inside = types::FieldIndex(known, field.name);
    if (inside && known.fields()[*inside].type.EqualsIgnoringNullability(field.type)) {
      continue;
    }
    ExprPtr member = plan::MakeGetField(value, static_cast<int>(i));
    ExprPtr there = plan::MakeCall("isnotnull", {member}, DataType::Boolean(), false);
    any = any ? plan::MakeCall("or", {any, there}, DataType::Boolean(), false) : std::move(there);
    members.push_back(plan::MakeLiteral(Value(field.name), DataType::String()));
    members.push_back(std::move(member));
  }
  if (members.empty()) {
    return value;
  }
  FLEUVE_ASSIGN(const ExprPtr object, plan::CallFunction("named_struct", std::move(members), config_));
  return plan::MakeCase({any, object}, false, object->type);
}

/// The fields of a file's column that the schema knows under the same type; NULL for everything else.
Result<ExprPtr> CloudRelation::KnownPart(const ExprPtr& value, const DataType& type) const {
  if (value->type.EqualsIgnoringNullability(type)) {
    return value;
  }
  if (!value->type.Is(TypeKind::kStruct) || !type.Is(TypeKind::kStruct)) {
    return plan::MakeNull(type);
  }
  std::vector<ExprPtr> members;
  for (const StructField& field : type.fields()) {
    const auto at = types::FieldIndex(value->type, field.name);
    ExprPtr member = plan::MakeNull(field.type);
    if (at) {
      FLEUVE_ASSIGN(member, KnownPart(plan::MakeGetField(value, static_cast<int>(*at)), field.type));
    }
    members.push_back(plan::MakeLiteral(Value(field.name), DataType::String()));
    members.push_back(std::move(member));
  }
  FLEUVE_ASSIGN(const ExprPtr object, plan::CallFunction("named_struct", std::move(members), config_));
  return plan::MakeCase({plan::MakeCall("isnotnull", {value}, DataType::Boolean(), false), object}, false, type);
}

}  // namespace fleuve::connectors::autoloader
