#include "plan/reader_schema.h"

#include <algorithm>

namespace fleuve::plan {
namespace {

using types::DataType;
using types::TypeKind;

bool HoldsLengths(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return true;
    case TypeKind::kArray:
      return HoldsLengths(type.element());
    case TypeKind::kMap:
      return HoldsLengths(type.key()) || HoldsLengths(type.value());
    case TypeKind::kStruct:
      return std::ranges::any_of(type.fields(), [](const auto& field) { return HoldsLengths(field.type); });
    default:
      return false;
  }
}

}  // namespace

Result<void> RefuseCharTypes(const DataType& type) {
  if (!HoldsLengths(type)) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING",
               "The char/varchar type can't be used in the table schema. If you want Spark treat them as string type "
               "as same as Spark 3.0 and earlier, please set \"spark.sql.legacy.charVarcharAsString\" to \"true\".")
      .Family(ErrorFamily::kAnalysis);
}

}  // namespace fleuve::plan
