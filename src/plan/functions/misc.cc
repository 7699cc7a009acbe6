#include <random>

#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

std::uint64_t RandomSeed() {
  static thread_local std::mt19937_64 generator{std::random_device{}()};
  return generator();
}

namespace {

Result<ExprPtr> BuildSessionText(Call& call) {
  std::string text;
  if (call.name == "current_catalog") {
    text = call.config.current_catalog;
  } else if (call.name == "version") {
    text = "4.1.1 fleuve";
  } else if (call.name == "current_user" || call.name == "user" || call.name == "session_user") {
    text = call.config.current_user;
  } else {
    text = call.config.current_database;
  }
  const std::string shown = call.name == "current_database" ? "current_schema" : call.name;
  return WithDisplay(MakeLiteral(Value(text), DataType::String()), shown + "()");
}

Result<ExprPtr> BuildUuid(Call& call) {
  std::int64_t seed = static_cast<std::int64_t>(RandomSeed());
  const std::string display = call.name + "()";
  if (call.size() == 1) {
    const Value* literal = call.LiteralOf(0);
    if (literal == nullptr || literal->is_null() || !call.type(0).IsIntegral()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `seed` should be a foldable integer.");
    }
    seed = literal->integer();
  }
  return WithDisplay(
      MakeCall("spark_uuid", {MakeLiteral(Value(seed), DataType::Long())}, DataType::String(), false, false, false),
      display);
}

Result<ExprPtr> BuildRowId(Call& call) {
  return WithDisplay(MakeCall("spark_monotonically_increasing_id", {}, DataType::Long(), false, false, false),
                     call.Display());
}

Result<ExprPtr> BuildPartitionId(Call& call) {
  // A result has one partition.
  return WithDisplay(MakeLiteral(Value(0), DataType::Int()),
                     call.name == "spark_partition_id" ? "SPARK_PARTITION_ID()" : call.Display());
}

Result<ExprPtr> BuildInputFile(Call& call) {
  if (call.name != "input_file_name") {
    return WithDisplay(MakeLiteral(Value(std::int64_t{-1}), DataType::Long()), call.Display());
  }
  return WithDisplay(MakeCall("spark_input_file_name", {}, DataType::String(), false, false, false), call.Display());
}

Result<ExprPtr> BuildRaiseError(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  ExprPtr made = call.Make("spark_raise_error", DataType::Void(), true, true);
  auto copy = std::make_shared<Expr>(*made);
  copy->display = "raise_error(USER_RAISED_EXCEPTION, map(errorMessage, " + call.shown[0] + "))";
  copy->deterministic = false;
  return copy;
}

Result<ExprPtr> BuildAssertTrue(Call& call) {
  if (!call.type(0).Is(TypeKind::kBoolean) && !call.type(0).Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "BOOLEAN");
  }
  FLEUVE_TRY(call.To(0, DataType::Boolean()));
  if (call.size() == 1) {
    call.Default(Value("'" + call.shown[0] + "' is not true!"), DataType::String());
  } else {
    FLEUVE_TRY(call.To(1, DataType::String()));
  }
  ExprPtr made = call.Make("spark_assert_true", DataType::Void(), true, true);
  auto copy = std::make_shared<Expr>(*made);
  copy->deterministic = false;
  return copy;
}

}  // namespace

const Table& MiscFunctions() {
  static const Table table = {
      Scalar("current_catalog", 0, 0, BuildSessionText),
      Scalar("current_database", 0, 0, BuildSessionText),
      Scalar("current_schema", 0, 0, BuildSessionText),
      Scalar("current_user", 0, 0, BuildSessionText),
      Scalar("user", 0, 0, BuildSessionText),
      Scalar("session_user", 0, 0, BuildSessionText),
      Scalar("version", 0, 0, BuildSessionText),
      Scalar("uuid", 0, 1, BuildUuid),
      Scalar("monotonically_increasing_id", 0, 0, BuildRowId),
      Scalar("spark_partition_id", 0, 0, BuildPartitionId),
      Scalar("input_file_name", 0, 0, BuildInputFile),
      Scalar("input_file_block_start", 0, 0, BuildInputFile),
      Scalar("input_file_block_length", 0, 0, BuildInputFile),
      Scalar("raise_error", 1, 1, BuildRaiseError),
      Scalar("assert_true", 1, 2, BuildAssertTrue),
  };
  return table;
}

}  // namespace fleuve::plan::functions
