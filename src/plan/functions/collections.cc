#include "base/bytes.h"
#include "plan/functions/registry_internal.h"
#include "types/parts.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

namespace {

Result<void> NeedArray(Call& call, std::size_t i) {
  if (call.args[i] == nullptr) {
    return call.Mismatch("UNEXPECTED_INPUT_TYPE", "An array is required.");
  }
  if (call.type(i).Is(TypeKind::kVoid)) {
    return call.Cast(i, DataType::Array(DataType::Void()));
  }
  if (!call.type(i).Is(TypeKind::kArray)) {
    return call.Unexpected(i, "ARRAY");
  }
  return {};
}

Result<void> NeedMap(Call& call, std::size_t i) {
  if (call.type(i).Is(TypeKind::kVoid)) {
    return call.Cast(i, DataType::Map(DataType::Void(), DataType::Void()));
  }
  if (!call.type(i).Is(TypeKind::kMap)) {
    return call.Unexpected(i, "MAP");
  }
  return {};
}

Result<void> NeedOrderable(Call& call, const DataType& type) {
  if (!types::IsOrderable(type)) {
    return call.Mismatch("INVALID_ORDERING_TYPE",
                         "The `" + call.name + "` does not support ordering on type \"" + type.Sql() + "\".");
  }
  return {};
}

Result<void> NeedComparable(Call& call, const DataType& type) {
  if (type.Is(TypeKind::kMap) || type.Is(TypeKind::kVariant)) {
    return call.Mismatch("INVALID_ORDERING_TYPE",
                         "The `" + call.name + "` does not support ordering on type \"" + type.Sql() + "\".");
  }
  return {};
}

/// The type that holds elements and keys of both types. Text and other types do not meet here; decimals meet numbers
/// only where `widened`.
std::optional<DataType> ElementType(const Call& call, const DataType& a, const DataType& b, bool widened) {
  if (a.EqualsIgnoringNullability(b)) {
    return a;
  }
  if (a.IsString() != b.IsString() && !a.Is(TypeKind::kVoid) && !b.Is(TypeKind::kVoid)) {
    return std::nullopt;
  }
  const bool nested = a.IsNested() || b.IsNested();
  return widened || nested ? WiderType(a, b, call.config) : TightestCommonType(a, b, call.config);
}

/// Brings an array and a value to one element type.
Result<DataType> ArrayAndValue(Call& call, std::size_t array, std::size_t value, bool null_refused,
                               bool widened = true) {
  if (null_refused && call.type(array).Is(TypeKind::kVoid)) {
    return call.Mismatch("NULL_TYPE", "Null typed values cannot be used as arguments of `" + call.name + "`.");
  }
  if (!null_refused && call.type(array).Is(TypeKind::kVoid)) {
    return call.Unexpected(array, "ARRAY");
  }
  FLEUVE_TRY(NeedArray(call, array));
  const DataType element = call.type(array).element();
  if (null_refused && call.type(value).Is(TypeKind::kVoid)) {
    return call.Mismatch("NULL_TYPE", "Null typed values cannot be used as arguments of `" + call.name + "`.");
  }
  const std::optional<DataType> common = ElementType(call, element, call.type(value), widened);
  if (!common) {
    return call
        .Mismatch("ARRAY_FUNCTION_DIFF_TYPES",
                  "Input to `" + call.name +
                      "` should have been \"ARRAY\" followed by a value with same element type, but "
                      "it's [\"" +
                      call.type(array).Sql() + "\", \"" + call.type(value).Sql() + "\"].")
        .With("functionName", "`" + call.name + "`")
        .With("leftType", "\"" + call.type(array).Sql() + "\"")
        .With("rightType", "\"" + call.type(value).Sql() + "\"");
  }
  FLEUVE_TRY(call.Cast(array, DataType::Array(*common, call.type(array).contains_null())));
  FLEUVE_TRY(call.Cast(value, *common));
  return *common;
}

/// Brings two arrays to one element type; the result may hold NULL where `nulls` says of which.
Result<DataType> TwoArrays(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(NeedArray(call, 1));
  const DataType a = call.type(0).element();
  const DataType b = call.type(1).element();
  const std::optional<DataType> common = ElementType(call, a, b, false);
  if (!common) {
    return call.Mismatch("BINARY_ARRAY_DIFF_TYPES",
                         "Input to function `" + call.name +
                             "` should have been two \"ARRAY\" with same element type, but it's [\"" +
                             call.type(0).Sql() + "\", \"" + call.type(1).Sql() + "\"].");
  }
  FLEUVE_TRY(call.Cast(0, DataType::Array(*common, call.type(0).contains_null())));
  FLEUVE_TRY(call.Cast(1, DataType::Array(*common, call.type(1).contains_null())));
  return *common;
}

// ------------------------------------------------------------------------------------------------------------ arrays

Result<ExprPtr> BuildSize(Call& call) {
  const DataType& type = call.type(0);
  if (type.Is(TypeKind::kVoid)) {
    FLEUVE_TRY(call.Cast(0, DataType::Array(DataType::Void())));
  } else if (!type.Is(TypeKind::kArray) && !type.Is(TypeKind::kMap)) {
    return call.Unexpected(0, "(\"ARRAY\" or \"MAP\")");
  }
  const bool legacy = call.name != "array_size" && call.config.legacy_size_of_null && !call.ansi();
  if (call.name == "array_size") {
    FLEUVE_TRY(NeedArray(call, 0));
  }
  const std::string display = call.Display();
  call.Hidden(Value(legacy), DataType::Boolean());
  return call.Shown(call.Make("spark_size", DataType::Int(), !legacy && call.args[0]->nullable), display);
}

Result<ExprPtr> BuildContains(Call& call) {
  FLEUVE_ASSIGN(const DataType element, ArrayAndValue(call, 0, 1, true));
  FLEUVE_TRY(NeedComparable(call, element));
  return call.Make("spark_array_contains", DataType::Boolean(), call.AnyNullable() || call.type(0).contains_null());
}

Result<ExprPtr> BuildPosition(Call& call) {
  FLEUVE_ASSIGN(const DataType element, ArrayAndValue(call, 0, 1, false));
  FLEUVE_TRY(NeedComparable(call, element));
  return call.Make("spark_array_position", DataType::Long());
}

Result<ExprPtr> BuildRemove(Call& call) {
  FLEUVE_ASSIGN(const DataType element, ArrayAndValue(call, 0, 1, false));
  FLEUVE_TRY(NeedComparable(call, element));
  return call.Make("spark_array_remove", call.type(0));
}

Result<ExprPtr> BuildAppend(Call& call) {
  FLEUVE_ASSIGN(const DataType element, ArrayAndValue(call, 0, 1, false, false));
  const bool nulls = true;
  const std::string function = call.name == "array_append" ? "spark_array_append" : "spark_array_prepend";
  return call.Make(function, DataType::Array(element, nulls), call.args[0]->nullable);
}

Result<ExprPtr> BuildInsert(Call& call) {
  FLEUVE_ASSIGN(const DataType element, ArrayAndValue(call, 0, 2, false, false));
  if (call.type(1).IsString()) {
    return call.Unexpected(1, "INT");
  }
  FLEUVE_TRY(call.To(1, DataType::Int()));
  const std::string display = call.Display();
  const bool legacy = call.Conf("spark.sql.legacy.negativeIndexInArrayInsert", false);
  call.Hidden(Value(legacy), DataType::Boolean());
  return call.Shown(call.Make("spark_array_insert", DataType::Array(element, true),
                              call.args[0]->nullable || call.args[1]->nullable, true),
                    display);
}

Result<ExprPtr> BuildCompact(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  return call.Make("spark_array_compact", DataType::Array(call.type(0).element(), false));
}

Result<ExprPtr> BuildSameArray(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(NeedComparable(call, call.type(0).element()));
  return call.Make("spark_" + call.name, call.type(0));
}

Result<ExprPtr> BuildSetOperation(Call& call) {
  FLEUVE_ASSIGN(const DataType element, TwoArrays(call));
  FLEUVE_TRY(NeedComparable(call, element));
  const bool a = call.type(0).contains_null();
  const bool b = call.type(1).contains_null();
  const bool nulls = call.name == "array_union" ? a || b : call.name == "array_intersect" ? a && b : a;
  return call.Make("spark_" + call.name, DataType::Array(element, nulls));
}

Result<ExprPtr> BuildOverlap(Call& call) {
  FLEUVE_ASSIGN(const DataType element, TwoArrays(call));
  FLEUVE_TRY(NeedComparable(call, element));
  return call.Make("spark_arrays_overlap", DataType::Boolean(),
                   call.AnyNullable() || call.type(0).contains_null() || call.type(1).contains_null());
}

Result<ExprPtr> BuildExtreme(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(NeedOrderable(call, call.type(0).element()));
  return call.Make("spark_" + call.name, call.type(0).element(), true);
}

Result<ExprPtr> BuildJoin(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  if (!call.type(0).element().IsString()) {
    FLEUVE_TRY(call.To(0, DataType::Array(DataType::String(), call.type(0).contains_null())));
  }
  for (std::size_t i = 1; i < call.size(); ++i) {
    if (!call.type(i).IsString() && !call.type(i).Is(TypeKind::kVoid)) {
      return call.Unexpected(i, "STRING");
    }
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  return call.Make("spark_array_join", DataType::String());
}

Result<ExprPtr> BuildRepeat(Call& call) {
  if (call.type(1).IsString()) {
    return call.Unexpected(1, "INT");
  }
  FLEUVE_TRY(call.To(1, DataType::Int()));
  return call.Make("spark_array_repeat", DataType::Array(call.type(0), call.args[0]->nullable), call.args[1]->nullable,
                   true);
}

std::string ZipName(const ExprPtr& argument, std::size_t i, const std::string& alias) {
  if (!alias.empty()) {
    return alias;
  }
  if (argument->kind == ExprKind::kAttribute || argument->kind == ExprKind::kLambdaVariable) {
    return argument->attribute.name;
  }
  if (argument->kind == ExprKind::kGetField) {
    return argument->children[0]->type.fields()[static_cast<std::size_t>(argument->ordinal)].name;
  }
  return std::to_string(i);
}

Result<ExprPtr> BuildZip(Call& call) {
  std::vector<StructField> fields;
  for (std::size_t i = 0; i < call.size(); ++i) {
    const std::string alias = i < call.source.argument_names.size() ? call.source.argument_names[i] : "";
    std::string name = ZipName(call.args[i], i, alias);
    FLEUVE_TRY(NeedArray(call, i));
    fields.push_back({std::move(name), call.type(i).element(), true, Json()});
  }
  return call.Make("spark_arrays_zip", DataType::Array(DataType::Struct(std::move(fields)), false));
}

Result<ExprPtr> BuildFlatten(Call& call) {
  const DataType& type = call.type(0);
  if (!type.Is(TypeKind::kArray) || !type.element().Is(TypeKind::kArray)) {
    return call.Unexpected(0, "ARRAY\" of \"ARRAY");
  }
  return call.Make("spark_flatten", DataType::Array(type.element().element(), type.element().contains_null()),
                   call.args[0]->nullable || type.contains_null());
}

Result<ExprPtr> BuildSlice(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  FLEUVE_TRY(call.To(2, DataType::Int()));
  return call.Make("spark_slice", call.type(0), call.AnyNullable(), true);
}

Result<ExprPtr> BuildSequence(Call& call) {
  const std::string display = call.Display();
  DataType type = call.type(0);
  const auto is_time = [](const DataType& t) {
    return t.Is(TypeKind::kDate) || t.Is(TypeKind::kTimestamp) || t.Is(TypeKind::kTimestampNtz);
  };
  if (is_time(type) || is_time(call.type(1))) {
    const auto common = WiderType(call.type(0), call.type(1), call.config);
    if (!common || !is_time(*common)) {
      return call.Mismatch(
          "SEQUENCE_WRONG_INPUT_TYPES",
          "`sequence` uses the wrong parameter type. The parameter type must conform to: 1. The start and "
          "stop expressions must resolve to the same type. 2. For dates and timestamps the step "
          "expression must be an interval.");
    }
    type = *common;
    FLEUVE_TRY(call.Cast(0, type));
    FLEUVE_TRY(call.Cast(1, type));
    if (call.size() == 3) {
      const DataType& step = call.type(2);
      if (step.IsString()) {
        FLEUVE_TRY(call.Cast(2, DataType::Of(TypeKind::kCalendarInterval)));
      } else if (!step.Is(TypeKind::kCalendarInterval) && !step.Is(TypeKind::kDayTimeInterval) &&
                 !step.Is(TypeKind::kYearMonthInterval)) {
        return call.Mismatch("SEQUENCE_WRONG_INPUT_TYPES",
                             "`sequence` uses the wrong parameter type: the step must be an interval.");
      }
    } else {
      // One day, in the direction of the end.
      call.Hidden(Value(std::int64_t{86'400'000'000}), DataType::DayTimeInterval(0, 0));
      call.Hidden(Value(true), DataType::Boolean());
    }
    while (call.size() < 4) {
      call.Hidden(Value(false), DataType::Boolean());
    }
    call.Hidden(Value(call.config.session_zone), DataType::String());
    return call.Shown(call.Make("spark_sequence_time", DataType::Array(type, false), call.AnyNullable(), true),
                      display);
  }
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (call.type(i).IsString()) {
      FLEUVE_TRY(call.Cast(i, DataType::Long()));
    } else if (!call.type(i).IsIntegral() && !call.type(i).Is(TypeKind::kVoid)) {
      return call.Mismatch("SEQUENCE_WRONG_INPUT_TYPES",
                           "`sequence` uses the wrong parameter type: start, stop and step must be integral.");
    }
  }
  FLEUVE_ASSIGN(type, call.ToCommon(0, call.size()));
  if (type.Is(TypeKind::kVoid)) {
    type = DataType::Int();
    for (std::size_t i = 0; i < call.size(); ++i) {
      FLEUVE_TRY(call.Cast(i, type));
    }
  }
  return call.Shown(call.Make("spark_sequence", DataType::Array(type, false), call.AnyNullable(), true), display);
}

Result<ExprPtr> BuildShuffle(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  const std::string display = "shuffle(" + call.shown[0] + ")";
  std::int64_t seed = static_cast<std::int64_t>(RandomSeed());
  if (call.size() == 2) {
    const Value* literal = call.LiteralOf(1);
    if (literal == nullptr || literal->is_null() || !call.type(1).IsIntegral()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `seed` should be a foldable integer.");
    }
    seed = literal->integer();
    call.args.pop_back();
  }
  call.Hidden(Value(seed), DataType::Long());
  ExprPtr made = call.Make("spark_shuffle", call.type(0));
  auto copy = std::make_shared<Expr>(*made);
  copy->deterministic = false;
  copy->display = display;
  return copy;
}

Result<ExprPtr> BuildSortArray(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(NeedOrderable(call, call.type(0).element()));
  if (call.size() == 1) {
    call.Default(Value(true), DataType::Boolean());
  } else if (!call.type(1).Is(TypeKind::kBoolean)) {
    return call.Unexpected(1, "BOOLEAN");
  }
  return call.Make("spark_sort_array", call.type(0), call.args[0]->nullable);
}

Result<ExprPtr> BuildGet(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  const std::string display = call.Display();
  call.Hidden(Value(false), DataType::Boolean());
  return call.Shown(call.Make("spark_element", call.type(0).element(), true), display);
}

Result<ExprPtr> BuildElementAt(Call& call) {
  const bool tolerant = call.name == "try_element_at";
  const std::string display = call.Display();
  if (call.type(0).Is(TypeKind::kMap)) {
    const DataType map = call.type(0);
    const auto common = ElementType(call, map.key(), call.type(1), false);
    if (!common) {
      return call.Mismatch("MAP_FUNCTION_DIFF_TYPES",
                           "Input to `" + call.name +
                               "` should have been \"MAP\" followed by a value with same key "
                               "type, but it's [\"" +
                               map.Sql() + "\", \"" + call.type(1).Sql() + "\"].");
    }
    FLEUVE_TRY(call.Cast(0, DataType::Map(*common, map.value(), map.contains_null())));
    FLEUVE_TRY(call.Cast(1, *common));
    call.Hidden(Value(false), DataType::Boolean());
    return call.Shown(call.Make("spark_element", map.value(), true), display);
  }
  if (!call.type(0).Is(TypeKind::kArray)) {
    return call.Unexpected(0, "(\"ARRAY\" or \"MAP\")");
  }
  if (!call.type(1).IsIntegral() || call.type(1).Is(TypeKind::kLong)) {
    if (!call.type(1).Is(TypeKind::kVoid)) {
      return call.Unexpected(1, "INT");
    }
  }
  FLEUVE_TRY(call.Cast(1, DataType::Int()));
  const bool fails = call.ansi() && !tolerant;
  call.Hidden(Value(fails), DataType::Boolean());
  // Index 0 is an error in every mode.
  return call.Shown(call.Make("spark_element_at", call.type(0).element(), true, true), display);
}

Result<ExprPtr> BuildFieldsOfArray(Call& call) {
  const Value* ordinal = call.LiteralOf(1);
  if (ordinal == nullptr || !call.type(0).Is(TypeKind::kArray) || !call.type(0).element().Is(TypeKind::kStruct)) {
    return Error::Internal("get_array_struct_fields over " + call.type(0).SimpleString());
  }
  const StructField& field = call.type(0).element().fields()[static_cast<std::size_t>(ordinal->integer())];
  return call.Make("spark_array_fields", DataType::Array(field.type, call.type(0).contains_null() || field.nullable));
}

// -------------------------------------------------------------------------------------------------------------- maps

bool LastWins(const Call& call) {
  if (!call.config.conf) {
    return false;
  }
  auto policy = call.config.conf("spark.sql.mapKeyDedupPolicy");
  return policy && EqualsIgnoreAsciiCase(*policy, "LAST_WIN");
}

Result<void> NeedMapKey(Call& call, const DataType& key) {
  if (key.Is(TypeKind::kMap)) {
    return call.Mismatch("INVALID_MAP_KEY_TYPE", "The key of map cannot be/contain \"" + key.Sql() + "\".");
  }
  return {};
}

Result<ExprPtr> BuildMapKeys(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  return call.Make("spark_map_keys", DataType::Array(call.type(0).key()));
}

Result<ExprPtr> BuildMapValues(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  return call.Make("spark_map_values", DataType::Array(call.type(0).value()));
}

Result<ExprPtr> BuildMapEntries(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  const DataType& map = call.type(0);
  return call.Make("spark_map_entries",
                   DataType::Array(DataType::Struct({{"key", map.key(), false, Json()},
                                                     {"value", map.value(), map.contains_null(), Json()}}),
                                   false));
}

Result<ExprPtr> BuildMapContainsKey(Call& call) {
  FLEUVE_TRY(NeedMap(call, 0));
  if (call.type(1).Is(TypeKind::kVoid)) {
    return call.Mismatch("NULL_TYPE", "Null typed values cannot be used as arguments of `map_contains_key`.");
  }
  const DataType map = call.type(0);
  const auto common = ElementType(call, map.key(), call.type(1), false);
  if (!common) {
    return call.Mismatch(
        "MAP_FUNCTION_DIFF_TYPES",
        "Input to `map_contains_key` should have been \"MAP\" followed by a value with same key type, but "
        "it's [\"" +
            map.Sql() + "\", \"" + call.type(1).Sql() + "\"].");
  }
  FLEUVE_TRY(call.Cast(0, DataType::Map(*common, map.value(), map.contains_null())));
  FLEUVE_TRY(call.Cast(1, *common));
  return call.Make("spark_map_contains_key", DataType::Boolean(), true);
}

Result<ExprPtr> BuildMapConcat(Call& call) {
  const std::string display = call.Display();
  if (call.size() == 0) {
    return call.Shown(MakeCall("spark_map", {MakeLiteral(Value(false), DataType::Boolean())},
                               DataType::Map(DataType::String(), DataType::String(), false), false),
                      display);
  }
  bool nulls = false;
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (!call.type(i).Is(TypeKind::kMap) && !call.type(i).Is(TypeKind::kVoid)) {
      return call.Mismatch("MAP_CONCAT_DIFF_TYPES",
                           "The `map_concat` should all be of type map, but it's [\"" + call.type(i).Sql() + "\"].");
    }
    nulls = nulls || call.type(i).contains_null();
  }
  const auto texts_differ = [](const DataType& a, const DataType& b) {
    return a.IsString() != b.IsString() && !a.Is(TypeKind::kVoid) && !b.Is(TypeKind::kVoid);
  };
  const auto keys_differ = [&](std::size_t i) {
    return call.type(i).Is(TypeKind::kMap) && call.type(0).Is(TypeKind::kMap) &&
           (texts_differ(call.type(i).key(), call.type(0).key()) ||
            texts_differ(call.type(i).value(), call.type(0).value()));
  };
  for (std::size_t i = 1; i < call.size(); ++i) {
    if (keys_differ(i)) {
      return call.Mismatch("DATA_DIFF_TYPES", "Input to `map_concat` should all be the same type, but it's [\"" +
                                                  call.type(0).Sql() + "\", \"" + call.type(i).Sql() + "\"].");
    }
  }
  FLEUVE_ASSIGN(const DataType type, call.ToCommon(0, call.size()));
  const bool nullable = call.AnyNullable();
  call.Hidden(Value(LastWins(call)), DataType::Boolean());
  return call.Shown(call.Make("spark_map_concat", type, nullable, true), display);
}

Result<ExprPtr> BuildMapFromArrays(Call& call) {
  FLEUVE_TRY(NeedArray(call, 0));
  FLEUVE_TRY(NeedArray(call, 1));
  FLEUVE_TRY(NeedMapKey(call, call.type(0).element()));
  const std::string display = call.Display();
  const DataType type = DataType::Map(call.type(0).element(), call.type(1).element(), call.type(1).contains_null());
  const bool nullable = call.AnyNullable();
  call.Hidden(Value(LastWins(call)), DataType::Boolean());
  return call.Shown(call.Make("spark_map_from_arrays", type, nullable, true), display);
}

Result<ExprPtr> BuildMapFromEntries(Call& call) {
  const DataType& type = call.type(0);
  if (!type.Is(TypeKind::kArray) || !type.element().Is(TypeKind::kStruct) || type.element().fields().size() != 2) {
    return call.Unexpected(0, "ARRAY\" of pair \"STRUCT");
  }
  const auto& fields = type.element().fields();
  FLEUVE_TRY(NeedMapKey(call, fields[0].type));
  const std::string display = call.Display();
  const DataType map = DataType::Map(fields[0].type, fields[1].type, fields[1].nullable);
  const bool nullable = call.args[0]->nullable || type.contains_null();
  call.Hidden(Value(LastWins(call)), DataType::Boolean());
  return call.Shown(call.Make("spark_map_from_entries", map, nullable, true), display);
}

}  // namespace

const Table& CollectionFunctions() {
  static const Table table = {
      Scalar("size", 1, 1, BuildSize),
      Scalar("cardinality", 1, 1, BuildSize),
      Scalar("array_size", 1, 1, BuildSize),
      Scalar("array_contains", 2, 2, BuildContains),
      Scalar("array_position", 2, 2, BuildPosition),
      Scalar("array_remove", 2, 2, BuildRemove),
      Scalar("array_append", 2, 2, BuildAppend),
      Scalar("array_prepend", 2, 2, BuildAppend),
      Scalar("array_insert", 3, 3, BuildInsert),
      Scalar("array_compact", 1, 1, BuildCompact),
      Scalar("array_distinct", 1, 1, BuildSameArray),
      Scalar("array_union", 2, 2, BuildSetOperation),
      Scalar("array_intersect", 2, 2, BuildSetOperation),
      Scalar("array_except", 2, 2, BuildSetOperation),
      Scalar("arrays_overlap", 2, 2, BuildOverlap),
      Scalar("array_max", 1, 1, BuildExtreme),
      Scalar("array_min", 1, 1, BuildExtreme),
      Scalar("array_join", 2, 3, BuildJoin),
      Scalar("array_repeat", 2, 2, BuildRepeat),
      Scalar("arrays_zip", 0, -1, BuildZip),
      Scalar("flatten", 1, 1, BuildFlatten),
      Scalar("slice", 3, 3, BuildSlice),
      Scalar("sequence", 2, 3, BuildSequence),
      Scalar("shuffle", 1, 2, BuildShuffle),
      Scalar("sort_array", 1, 2, BuildSortArray),
      Scalar("get", 2, 2, BuildGet),
      Scalar("element_at", 2, 2, BuildElementAt),
      Scalar("try_element_at", 2, 2, BuildElementAt),
      Scalar("get_array_struct_fields", 2, 2, BuildFieldsOfArray),
      Scalar("map_keys", 1, 1, BuildMapKeys),
      Scalar("map_values", 1, 1, BuildMapValues),
      Scalar("map_entries", 1, 1, BuildMapEntries),
      Scalar("map_contains_key", 2, 2, BuildMapContainsKey),
      Scalar("map_concat", 0, -1, BuildMapConcat),
      Scalar("map_from_arrays", 2, 2, BuildMapFromArrays),
      Scalar("map_from_entries", 1, 1, BuildMapFromEntries),
  };
  return table;
}

}  // namespace fleuve::plan::functions
