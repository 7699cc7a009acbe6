#include "plan/reader_schema.h"

#include "types/parts.h"

namespace fleuve::plan {

Result<void> RefuseCharTypes(const types::DataType& type) {
  if (!types::HoldsLengths(type)) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "UNSUPPORTED_CHAR_OR_VARCHAR_AS_STRING",
               "The char/varchar type can't be used in the table schema. If you want Spark treat them as string type "
               "as same as Spark 3.0 and earlier, please set \"spark.sql.legacy.charVarcharAsString\" to \"true\".")
      .Family(ErrorFamily::kAnalysis);
}

}  // namespace fleuve::plan
