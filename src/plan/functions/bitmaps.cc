#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;

namespace {

/// Spark casts nothing to a bitmap, not even NULL.
Result<void> NeedsBinary(const Call& call) {
  if (!call.type(0).Is(TypeKind::kBinary)) {
    return call.Unexpected(0, "BINARY");
  }
  return {};
}

Result<ExprPtr> BuildCount(Call& call) {
  FLEUVE_TRY(NeedsBinary(call));
  return call.Make("spark_bitmap_count", DataType::Long());
}

Result<ExprPtr> BuildConstruct(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Long()));
  return call.Aggregate("spark_bitmap_construct_agg", DataType::Binary(), false);
}

/// bitmap_or_agg and bitmap_and_agg.
Result<ExprPtr> BuildCombine(Call& call) {
  FLEUVE_TRY(NeedsBinary(call));
  return call.Aggregate("spark_" + call.name, DataType::Binary(), false);
}

}  // namespace

const Table& BitmapFunctions() {
  static const Table table = {
      Simple("bitmap_bit_position", "spark_bitmap_bit_position", "l>l"),
      Simple("bitmap_bucket_number", "spark_bitmap_bucket_number", "l>l"),
      Scalar("bitmap_count", 1, 1, BuildCount),
      Agg("bitmap_construct_agg", 1, 1, BuildConstruct),
      Agg("bitmap_or_agg", 1, 1, BuildCombine),
      Agg("bitmap_and_agg", 1, 1, BuildCombine),
  };
  return table;
}

}  // namespace fleuve::plan::functions
