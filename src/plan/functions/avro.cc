#include "base/bytes.h"
#include "plan/avro_options.h"
#include "plan/functions/options_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

const char* const kOrdinals[] = {"first", "second", "third"};

Error Hint(const Call& call, std::size_t i, const std::string& wanted) {
  const std::string message = std::string("The ") + kOrdinals[i] + " argument of the " + AsciiUpper(call.name) +
                              " SQL function must be " + wanted;
  return call.Mismatch("TYPE_CHECK_FAILURE_WITH_HINT", message + ".").With("msg", message).With("hint", "");
}

/// A schema in JSON, as argument `i`; nullopt where it is NULL.
Result<std::optional<std::string>> SchemaText(const Call& call, std::size_t i, const char* direction) {
  const Value* text = ConstantOf(call.args[i]);
  if (call.type(i).Is(TypeKind::kVoid) || (text != nullptr && text->is_null() && call.type(i).IsString())) {
    return std::optional<std::string>();
  }
  if (text == nullptr || !call.type(i).IsString()) {
    return Hint(call, i,
                std::string("a constant string containing the JSON representation of the schema to use for converting "
                            "the value ") +
                    direction + " AVRO format");
  }
  return std::optional(text->text());
}

/// Appends NULL for an argument that was not given, as Spark shows it.
void Complete(Call& call, std::size_t count) {
  while (call.size() < count) {
    call.Default(Value(), DataType::Void());
  }
}

Result<Options> AvroOptionsOf(Call& call, std::size_t i) {
  if (call.type(i).Is(TypeKind::kVoid)) {
    return Options();
  }
  auto options = OptionsOf(call, i);
  if (!options.ok()) {
    return Hint(call, i,
                "a constant map of strings to strings containing the options to use for converting the value from AVRO "
                "format");
  }
  return options;
}

/// The type that values of a schema have under these options.
Result<DataType> TypeOf(const std::string& schema_text, const AvroOptions& options) {
  FLEUVE_ASSIGN(const avro::Schema schema, avro::Schema::Parse(options.schema.value_or(schema_text)));
  FLEUVE_ASSIGN(avro::SparkType type, avro::ToSpark(schema.root(), options.types));
  return options.permissive ? type.type.AsNullable() : std::move(type.type);
}

ExprPtr Shown(const Call& call, const ExprPtr& expr, std::string display) {
  auto copy = std::make_shared<Expr>(*expr);
  copy->display = std::move(display);
  copy->context = call.source.context;
  return copy;
}

}  // namespace

Result<ExprPtr> BuildFromAvro(Call& call) {
  Complete(call, 3);
  const std::string display = call.Display();
  FLEUVE_ASSIGN(const auto schema, SchemaText(call, 1, "from"));
  FLEUVE_ASSIGN(const Options options, AvroOptionsOf(call, 2));
  FLEUVE_ASSIGN(const AvroOptions parsed, AvroOptions::Parse(options, call.name));
  FLEUVE_ASSIGN(DataType type, TypeOf(schema.value_or(""), parsed));
  FLEUVE_TRY(avro::Schema::Parse(schema.value_or("")));
  if (!call.type(0).Is(TypeKind::kBinary) && !call.type(0).Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "BINARY");
  }
  call.args.resize(1);
  FLEUVE_TRY(call.To(0, DataType::Binary()));
  call.Hidden(Value(schema.value_or("")), DataType::String());
  HideOptions(call, options);
  call.Hidden(Value(call.config.case_sensitive), DataType::Boolean());
  return Shown(call, call.Make("spark_from_avro", std::move(type), true, true), display);
}

Result<ExprPtr> BuildToAvro(Call& call) {
  Complete(call, 2);
  const std::string display = call.Display();
  FLEUVE_ASSIGN(const auto schema, SchemaText(call, 1, "to"));
  call.args.resize(1);
  const bool nullable = call.args[0]->nullable;
  call.Hidden(schema ? Value(*schema) : Value(), DataType::String());
  call.Hidden(Value(nullable), DataType::Boolean());
  call.Hidden(Value(call.config.case_sensitive), DataType::Boolean());
  return Shown(call, call.Make("spark_to_avro", DataType::Binary(), nullable, true), display);
}

Result<ExprPtr> BuildSchemaOfAvro(Call& call) {
  Complete(call, 2);
  const std::string display = call.Display();
  FLEUVE_ASSIGN(const auto schema, SchemaText(call, 0, "from"));
  FLEUVE_ASSIGN(const Options options, AvroOptionsOf(call, 1));
  FLEUVE_ASSIGN(const AvroOptions parsed, AvroOptions::Parse(options, call.name));
  FLEUVE_ASSIGN(const DataType type, TypeOf(schema.value_or(""), parsed));
  return Shown(call, MakeLiteral(Value(type.Sql()), DataType::String()), display);
}

}  // namespace fleuve::plan::functions
