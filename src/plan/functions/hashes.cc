#include "plan/functions/registry_internal.h"
#include "types/parts.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

Result<ExprPtr> BuildHash(Call& call) {
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (types::Holds(call.type(i), TypeKind::kMap) && !call.Conf("spark.sql.legacy.allowHashOnMapType", false)) {
      return call.Mismatch("HASH_MAP_TYPE",
                           "Input to the function `" + call.name + "` cannot contain elements of the \"MAP\" type.");
    }
  }
  bool wide = call.name == "xxhash64";
  return call.Make(wide ? "spark_xxhash64" : "spark_hash", wide ? DataType::Long() : DataType::Int(), false);
}

Result<ExprPtr> BuildSha2(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Binary()));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  return call.Make("spark_sha2", DataType::String(), true);
}

}  // namespace

const Table& HashFunctions() {
  static const Table table = {
      Scalar("hash", 1, -1, BuildHash),
      Scalar("xxhash64", 1, -1, BuildHash),
      Scalar("sha2", 2, 2, BuildSha2),
      Simple("md5", "spark_md5", "x>s"),
      Simple("sha", "spark_sha1", "x>s"),
      Simple("sha1", "spark_sha1", "x>s"),
      Simple("crc32", "spark_crc32", "x>l"),
      Simple("aes_encrypt", "spark_aes_encrypt", "xx,s=GCM,s=DEFAULT,x=,x=>x", kFails | kNullable),
      Simple("aes_decrypt", "spark_aes_decrypt", "xx,s=GCM,s=DEFAULT,x=>x", kFails | kNullable),
      Simple("try_aes_decrypt", "spark_aes_decrypt_try", "xx,s=GCM,s=DEFAULT,x=>x", kNullable),
  };
  return table;
}

}  // namespace fleuve::plan::functions
