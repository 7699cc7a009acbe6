#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::StructField;
using types::TypeKind;
using types::Value;

namespace {

/// struct(a, b AS x, 1): named after columns, aliases or positions.
Result<ExprPtr> BuildStruct(Call& call) {
  std::vector<StructField> fields;
  std::string display = "struct(";
  for (std::size_t i = 0; i < call.size(); ++i) {
    std::string name;
    std::string shown = call.shown[i];
    if (i < call.source.argument_names.size() && !call.source.argument_names[i].empty()) {
      name = call.source.argument_names[i];
      shown += " AS " + name;
    } else if (call.args[i]->kind == ExprKind::kAttribute || call.args[i]->kind == ExprKind::kLambdaVariable) {
      name = call.args[i]->attribute.name;
    } else if (call.args[i]->kind == ExprKind::kGetField) {
      name = call.args[i]->children[0]->type.fields()[static_cast<std::size_t>(call.args[i]->ordinal)].name;
    } else {
      name = "col" + std::to_string(i + 1);
    }
    Json metadata;
    if (call.args[i]->kind == ExprKind::kAttribute) {
      metadata = call.args[i]->attribute.metadata;
    }
    fields.push_back({name, call.type(i), call.args[i]->nullable, metadata});
    display += (i > 0 ? ", " : "") + shown;
  }
  return WithDisplay(MakeCall("spark_struct", call.args, DataType::Struct(fields), false), display + ")");
}

Result<ExprPtr> BuildNamedStruct(Call& call) {
  if (call.size() % 2 != 0 || call.size() == 0) {
    return call.WrongCount("2n (n > 0)");
  }
  std::vector<StructField> fields;
  std::vector<ExprPtr> values;
  for (std::size_t i = 0; i < call.size(); i += 2) {
    const Value* name = call.LiteralOf(i);
    if (name == nullptr || !call.type(i).IsString()) {
      return call.Mismatch(
          "CREATE_NAMED_STRUCT_WITHOUT_FOLDABLE_STRING",
          "Only foldable \"STRING\" expressions are allowed to appear at odd position, but they are [\"" +
              call.shown[i] + "\"].");
    }
    if (name->is_null()) {
      return call.Mismatch("UNEXPECTED_NULL", "The field name must not be null.");
    }
    fields.push_back({name->text(), call.type(i + 1), call.args[i + 1]->nullable, Json()});
    values.push_back(call.args[i + 1]);
  }
  return WithDisplay(MakeCall("spark_struct", values, DataType::Struct(fields), false), call.Display("named_struct"));
}

Result<ExprPtr> BuildArray(Call& call) {
  std::string display = call.Display("array");
  FLEUVE_ASSIGN(DataType element, call.ToCommon(0, call.size()));
  if (call.size() == 0) {
    element = DataType::Void();
  }
  return WithDisplay(MakeCall("spark_array", call.args, DataType::Array(element, call.AnyNullable()), false), display);
}

Result<ExprPtr> BuildMap(Call& call) {
  if (call.size() % 2 != 0) {
    return call.WrongCount("2n (n > 0)");
  }
  std::string display = call.Display("map");
  DataType key;
  DataType value;
  bool nullable = false;
  if (call.size() > 0) {
    FLEUVE_ASSIGN(key, call.ToCommon(0, call.size(), 2));
    FLEUVE_ASSIGN(value, call.ToCommon(1, call.size(), 2));
    for (std::size_t i = 1; i < call.size(); i += 2) {
      nullable = nullable || call.args[i]->nullable;
    }
  }
  if (key.Is(TypeKind::kMap)) {
    return call.Mismatch("INVALID_MAP_KEY_TYPE", "The key of map cannot be/contain \"" + key.Sql() + "\".");
  }
  bool last_wins = false;
  if (call.config.conf) {
    auto policy = call.config.conf("spark.sql.mapKeyDedupPolicy");
    last_wins = policy && EqualsIgnoreAsciiCase(*policy, "LAST_WIN");
  }
  call.Hidden(Value(last_wins), DataType::Boolean());
  return WithDisplay(MakeCall("spark_map", call.args, DataType::Map(key, value, nullable), false, call.size() > 1),
                     display);
}

/// array[index] (from 0) and map[key].
Result<ExprPtr> BuildElement(Call& call) {
  std::string display = call.shown[0] + "[" + call.shown[1] + "]";
  const DataType container = call.type(0);
  if (container.Is(TypeKind::kArray)) {
    if (!call.type(1).IsIntegral()) {
      if (!call.type(1).Is(TypeKind::kVoid)) {
        return call.Unexpected(1, "INTEGRAL");
      }
    }
    FLEUVE_TRY(call.Cast(1, DataType::Int()));
    const Value* index = call.LiteralOf(1);
    bool nullable = true;
    if (index == nullptr) {
      nullable = !call.ansi() || container.contains_null() || call.AnyNullable();
    } else if (!index->is_null() && call.args[0]->kind == ExprKind::kCall && call.args[0]->function == "spark_array" &&
               index->integer() >= 0 && index->integer() < static_cast<std::int64_t>(call.args[0]->children.size())) {
      nullable = call.args[0]->children[static_cast<std::size_t>(index->integer())]->nullable;
    }
    call.Hidden(Value(call.ansi()), DataType::Boolean());
    return WithDisplay(call.Make("spark_element", container.element(), nullable, call.ansi()), display);
  }
  if (!container.Is(TypeKind::kMap)) {
    return call.Unexpected(0, "ARRAY\" or \"MAP");
  }
  FLEUVE_TRY(call.To(1, container.key()));
  call.Hidden(Value(false), DataType::Boolean());
  return WithDisplay(call.Make("spark_element", container.value(), true), display);
}

}  // namespace

const Table& NestedFunctions() {
  static const Table table = {
      Scalar("struct", 0, -1, BuildStruct),  Scalar("named_struct", 0, -1, BuildNamedStruct),
      Scalar("array", 0, -1, BuildArray),    Scalar("map", 0, -1, BuildMap),
      Scalar("create_map", 0, -1, BuildMap), Scalar("[]", 2, 2, BuildElement),
  };
  return table;
}

}  // namespace fleuve::plan::functions
