#include "base/bytes.h"
#include "plan/avro_options.h"
#include "plan/functions/options_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

const char* const kOrdinals[] = {"first", "second", "third", "fourth"};

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

/// Passwords stand in no column's name.
void Redact(Call& call, std::size_t i, const Options& options) {
  std::string text;
  bool secret = false;
  for (const auto& [key, value] : options) {
    const bool hide = AvroOptions::IsSecret(key);
    secret = secret || hide;
    text += (text.empty() ? "" : ", ") + key + ", " + (hide ? "*********(redacted)" : value);
  }
  if (secret) {
    call.shown[i] = "map(" + text + ")";
  }
}

/// The type that values of a schema have under these options.
Result<DataType> TypeOf(const std::string& schema_text, const AvroOptions& options) {
  FLEUVE_ASSIGN(const avro::Schema schema, avro::Schema::Parse(options.schema.value_or(schema_text)));
  FLEUVE_ASSIGN(avro::SparkType type, avro::ToSpark(schema.root(), options.types));
  return options.permissive ? type.type.AsNullable() : std::move(type.type);
}

/// What both functions are told beside their value.
struct SchemaArguments {
  /// nullopt where none was given: NULL, or an empty text beside a registry.
  std::optional<std::string> schema;
  Options options;
  AvroOptions parsed;
};

/// `(value, schema[, options])`, or `(value, subject, address of a registry[, options])`.
Result<SchemaArguments> Arguments(Call& call, const char* direction) {
  SchemaArguments arguments;
  const Value* address = call.size() > 2 && call.type(2).IsString() ? ConstantOf(call.args[2]) : nullptr;
  const bool by_address = address != nullptr && !address->is_null();
  const bool from = call.name == "from_avro";
  if (!by_address && call.size() > 3) {
    return call.WrongCount(from ? "[2, 3]" : "[1, 2]");
  }
  if (!by_address) {
    Complete(call, from ? 3 : 2);
  }
  const std::size_t options_at = by_address ? 3 : 2;
  if (call.size() > options_at) {
    FLEUVE_ASSIGN(arguments.options, AvroOptionsOf(call, options_at));
    Redact(call, options_at, arguments.options);
  }
  FLEUVE_ASSIGN(arguments.schema, SchemaText(call, 1, direction));
  if (by_address) {
    arguments.options["schema.registry.subject"] = arguments.schema.value_or("");
    arguments.options["schema.registry.url"] = address->text();
    arguments.schema.reset();
  }
  FLEUVE_ASSIGN(arguments.parsed, AvroOptions::Parse(arguments.options, call.name));
  if (arguments.parsed.schema) {  // a file is read once: the query keeps what it had
    std::erase_if(arguments.options, [](const auto& option) {
      return EqualsIgnoreAsciiCase(option.first, "avroSchemaUrl") || EqualsIgnoreAsciiCase(option.first, "avroSchema");
    });
    arguments.options["avroSchema"] = *arguments.parsed.schema;
  }
  if (arguments.parsed.registry && arguments.schema && arguments.schema->empty()) {
    arguments.schema.reset();
  }
  return arguments;
}

/// The newest schema of the subject that the options name.
Result<registry::SchemaRegistry::Registered> Newest(const AvroOptions& options, const std::string& function) {
  if (options.subject.empty()) {
    return Error(ErrorKind::kInvalidArgument, "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE",
                 "Invalid value for source option 'schema.registry.subject': " + function +
                     " needs a schema or the subject of one.")
        .With("optionName", "schema.registry.subject")
        .With("message", function + " needs a schema or the subject of one.")
        .Family(ErrorFamily::kAnalysis);
  }
  return registry::SchemaRegistry::At(*options.registry)->Newest(options.subject);
}

}  // namespace

Result<ExprPtr> BuildFromAvro(Call& call) {
  if (call.size() < 2 || call.size() > 4) {
    return call.WrongCount("[2, 3]");
  }
  FLEUVE_ASSIGN(SchemaArguments arguments, Arguments(call, "from"));
  const std::string display = call.Display();
  const AvroOptions& parsed = arguments.parsed;
  if (parsed.registry && !arguments.schema && !parsed.schema) {
    FLEUVE_ASSIGN(const auto newest, Newest(parsed, call.name));
    arguments.schema = newest.text;
  }
  const std::string schema = arguments.schema.value_or("");
  FLEUVE_ASSIGN(DataType type, TypeOf(schema, parsed));
  if (!parsed.registry) {
    FLEUVE_TRY(avro::Schema::Parse(schema));
  }
  if (!call.type(0).Is(TypeKind::kBinary) && !call.type(0).Is(TypeKind::kVoid)) {
    return call.Unexpected(0, "BINARY");
  }
  call.args.resize(1);
  FLEUVE_TRY(call.To(0, DataType::Binary()));
  call.Hidden(Value(schema), DataType::String());
  HideOptions(call, arguments.options);
  call.Hidden(Value(call.config.case_sensitive), DataType::Boolean());
  return call.Shown(call.Make("spark_from_avro", std::move(type), true, true), display);
}

Result<ExprPtr> BuildToAvro(Call& call) {
  if (call.size() < 1 || call.size() > 4) {
    return call.WrongCount("[1, 2]");
  }
  FLEUVE_ASSIGN(SchemaArguments arguments, Arguments(call, "to"));
  const std::string display = call.Display();
  Value id;
  if (arguments.parsed.registry && !arguments.schema) {
    // The schema of a query stays what it is now; a subject that is new gets the one of the data.
    auto newest = Newest(arguments.parsed, call.name);
    if (newest.ok()) {
      arguments.schema = newest->text;
      id = Value(std::int64_t{newest->id});
    } else if (newest.error().kind() != ErrorKind::kNotFound || !arguments.parsed.auto_register) {
      return std::move(newest).error();
    }
  }
  call.args.resize(1);
  const bool nullable = call.args[0]->nullable;
  call.Hidden(arguments.schema ? Value(*arguments.schema) : Value(), DataType::String());
  call.Hidden(Value(nullable), DataType::Boolean());
  call.Hidden(Value(call.config.case_sensitive), DataType::Boolean());
  HideOptions(call, arguments.options);
  call.Hidden(std::move(id), DataType::Int());
  return call.Shown(call.Make("spark_to_avro", DataType::Binary(), nullable, true), display);
}

Result<ExprPtr> BuildSchemaOfAvro(Call& call) {
  Complete(call, 2);
  const std::string display = call.Display();
  FLEUVE_ASSIGN(const auto schema, SchemaText(call, 0, "from"));
  FLEUVE_ASSIGN(const Options options, AvroOptionsOf(call, 1));
  FLEUVE_ASSIGN(const AvroOptions parsed, AvroOptions::Parse(options, call.name));
  FLEUVE_ASSIGN(const DataType type, TypeOf(schema.value_or(""), parsed));
  return call.Shown(MakeLiteral(Value(type.Sql()), DataType::String()), display);
}

}  // namespace fleuve::plan::functions
