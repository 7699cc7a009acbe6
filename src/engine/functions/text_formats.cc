#include <cmath>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/files/csv_record_internal.h"
#include "engine/files/json_value_internal.h"
#include "engine/files/row_target_internal.h"
#include "engine/files/text_value_internal.h"
#include "engine/functions/avro_internal.h"
#include "engine/functions/elements_internal.h"
#include "engine/functions/protobuf_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/value_text_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using duckdb::VectorType;
using types::DataType;
using types::TypeKind;

/// The options that stand as constant `i` of the call.
plan::Options OptionsAt(const ScalarSite& site, std::size_t i) {
  plan::Options options;
  const types::Value::List& list = site.Literal(i).list();
  for (std::size_t k = 0; k + 1 < list.size(); k += 2) {
    options[list[k].text()] = list[k + 1].text();
  }
  return options;
}

[[noreturn]] void ThrowMalformed(std::string_view record, const std::shared_ptr<const QueryContext>& context) {
  Error error(
      ErrorKind::kInvalidArgument, "MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION",
      "Malformed records are detected in record parsing: " + std::string(record) +
          ". Parse Mode: FAILFAST. To process malformed records as null result, try setting the option 'mode' as "
          "'PERMISSIVE'.");
  error = std::move(error)
              .With("badRecord", std::string(record))
              .With("failFastMode", "FAILFAST")
              .Family(ErrorFamily::kSpark);
  ThrowRowError(context ? std::move(error).At(*context) : std::move(error));
}

/// A struct's fields without the one that takes corrupt records.
struct RecordShape {
  DataType fields;
  std::vector<std::size_t> places;  ///< of the fields in the whole struct
  int corrupt = -1;
};

RecordShape ShapeOf(const DataType& type, const std::string& corrupt_column) {
  RecordShape shape;
  std::vector<types::StructField> fields;
  for (std::size_t i = 0; i < type.fields().size(); ++i) {
    const types::StructField& field = type.fields()[i];
    if (EqualsIgnoreAsciiCase(field.name, corrupt_column) && field.type.IsString()) {
      shape.corrupt = static_cast<int>(i);
      continue;
    }
    fields.push_back(field);
    shape.places.push_back(i);
  }
  shape.fields = DataType::Struct(std::move(fields));
  return shape;
}

bool IsBlank(std::string_view text) { return text.find_first_not_of(" \t\n\r\f\v") == std::string_view::npos; }

/// Spark finds this out when the function is about to run.
Result<void> CheckMode(const char* function, ParseMode mode) {
  if (mode != ParseMode::kDropMalformed) {
    return {};
  }
  return Error(ErrorKind::kInvalidArgument, "PARSE_MODE_UNSUPPORTED",
               "The function `" + std::string(function) +
                   "` doesn't support the DROPMALFORMED mode. Acceptable modes are PERMISSIVE and FAILFAST.")
      .With("funcName", "`" + std::string(function) + "`")
      .With("mode", "DROPMALFORMED");
}

Result<Kernel> MakeFromJson(const ScalarSite& site) {
  FLEUVE_ASSIGN(JsonOptions made, MakeJsonOptions(OptionsAt(site, 1), site.Literal(2).text()));
  FLEUVE_TRY(CheckMode("from_json", made.mode));
  made.strings_rewritten = true;
  auto options = std::make_shared<JsonOptions>(std::move(made));
  const DataType type = site.expr.type;
  auto context = site.expr.context;
  const bool fail_fast = options->mode == ParseMode::kFailFast;
  return Kernel([options, type, context, fail_fast](DataChunk& args, Vector& result) {
    Column documents(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    const bool is_struct = type.Is(TypeKind::kStruct);
    const RecordShape shape = is_struct ? ShapeOf(type, options->corrupt_column) : RecordShape();
    const bool of_structs = type.Is(TypeKind::kArray) && type.element().Is(TypeKind::kStruct);
    auto root = CompileJsonNode(is_struct ? shape.fields : type);
    JsonValueParser parser(*options, nullptr);
    std::vector<Vector*> columns;
    if (is_struct) {
      auto& entries = duckdb::StructVector::GetEntries(result);
      for (std::size_t place : shape.places) {
        columns.push_back(entries[place].get());
      }
    }
    for (idx_t row = 0; row < args.size(); ++row) {
      if (documents.IsNull(row) || IsBlank(documents.Get<Str>(row))) {
        FlatVector::SetNull(result, row, true);
        if (type.Is(TypeKind::kArray) || type.Is(TypeKind::kMap)) {
          FlatVector::GetData<duckdb::list_entry_t>(result)[row] =
              duckdb::list_entry_t(duckdb::ListVector::GetListSize(result), 0);
        }
        continue;
      }
      const Str text = documents.Get<Str>(row);
      JsonScanner& scanner = parser.scanner();
      scanner.Reset(text);
      const JsonToken token = scanner.Begin();
      JsonOutcome outcome = JsonOutcome::kSyntax;
      if (is_struct) {
        if (token == JsonToken::kObject) {
          outcome = parser.Object(*root, columns, row, nullptr);
        }
        if (outcome == JsonOutcome::kSyntax) {
          for (Vector* column : columns) {
            FlatVector::SetNull(*column, row, true);
          }
        }
        const bool bad =
            outcome == JsonOutcome::kSyntax || outcome == JsonOutcome::kPartial || outcome == JsonOutcome::kMismatch;
        if (bad && fail_fast) {
          ThrowMalformed(text, context);
        }
        if (shape.corrupt >= 0) {
          Vector& column = *duckdb::StructVector::GetEntries(result)[static_cast<std::size_t>(shape.corrupt)];
          if (bad) {
            FlatVector::GetData<duckdb::string_t>(column)[row] = Physical<Str>::Write(column, text);
          } else {
            FlatVector::SetNull(column, row, true);
          }
        }
        continue;
      }
      if (type.Is(TypeKind::kVariant)) {
        scanner.Reset(text);
        outcome = parser.Value(*root, result, row, nullptr);
        if (outcome != JsonOutcome::kOk) {
          if (fail_fast) {
            ThrowMalformed(text, context);
          }
          FlatVector::SetNull(result, row, true);
        }
        continue;
      }
      // Arrays and maps: a document of another kind is NULL.
      const idx_t before = duckdb::ListVector::GetListSize(result);
      if (type.Is(TypeKind::kArray) && token == JsonToken::kObject && of_structs) {
        // One object is an array of one.
        duckdb::ListVector::Reserve(result, before + 1);
        Vector& child = duckdb::ListVector::GetEntry(result);
        std::vector<Vector*> fields;
        for (auto& entry : duckdb::StructVector::GetEntries(child)) {
          fields.push_back(entry.get());
        }
        outcome = parser.Object(*root->element, fields, before, nullptr);
        if (outcome != JsonOutcome::kSyntax) {
          duckdb::ListVector::SetListSize(result, before + 1);
          FlatVector::GetData<duckdb::list_entry_t>(result)[row] = duckdb::list_entry_t(before, 1);
        }
      } else if (token == (type.Is(TypeKind::kArray) ? JsonToken::kArray : JsonToken::kObject)) {
        outcome = parser.Value(*root, result, row, nullptr);
      }
      const bool bad = outcome != JsonOutcome::kOk && outcome != JsonOutcome::kExtra;
      if (bad && fail_fast) {
        ThrowMalformed(text, context);
      }
      if (outcome == JsonOutcome::kSyntax || outcome == JsonOutcome::kMismatch) {
        FlatVector::SetNull(result, row, true);
        FlatVector::GetData<duckdb::list_entry_t>(result)[row] =
            duckdb::list_entry_t(duckdb::ListVector::GetListSize(result), 0);
      }
    }
  });
}

// ------------------------------------------------------------------------------------------------------------ writing

template <typename T>
auto At(const duckdb::RecursiveUnifiedVectorFormat& format, idx_t index) {
  return Physical<T>::Read(duckdb::UnifiedVectorFormat::GetData<typename Physical<T>::Type>(format.unified)[index]);
}

void AppendBase64(std::string& out, std::string_view bytes) {
  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto byte = [&](std::size_t k) {
      return k < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[k])) : 0U;
    };
    const std::uint32_t bits = (byte(i) << 16) | (byte(i + 1) << 8) | byte(i + 2);
    out.push_back(kLetters[bits >> 18]);
    out.push_back(kLetters[(bits >> 12) & 63]);
    out.push_back(i + 1 < bytes.size() ? kLetters[(bits >> 6) & 63] : '=');
    out.push_back(i + 2 < bytes.size() ? kLetters[bits & 63] : '=');
  }
}

/// Scalars as the text formats print them. False for NULL-like and nested types.
bool ScalarText(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, idx_t index,
                const TextWriteOptions& options, std::string& out) {
  switch (type.kind()) {
    case TypeKind::kBoolean:
      out += At<bool>(format, index) ? "true" : "false";
      return true;
    case TypeKind::kByte:
      out += std::to_string(At<std::int8_t>(format, index));
      return true;
    case TypeKind::kShort:
      out += std::to_string(At<std::int16_t>(format, index));
      return true;
    case TypeKind::kInt:
      out += std::to_string(At<std::int32_t>(format, index));
      return true;
    case TypeKind::kLong:
      out += std::to_string(At<std::int64_t>(format, index));
      return true;
    case TypeKind::kFloat:
      out += JavaFloatToString(At<float>(format, index));
      return true;
    case TypeKind::kDouble:
      out += JavaDoubleToString(At<double>(format, index));
      return true;
    case TypeKind::kDecimal:
      out += types::DecimalToString(
          WithDecimalCarrier(type.precision(), [&](auto zero) -> Int128 { return At<decltype(zero)>(format, index); }),
          type.scale());
      return true;
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      out += At<Str>(format, index);
      return true;
    case TypeKind::kBinary:
      AppendBase64(out, At<Str>(format, index));
      return true;
    case TypeKind::kDate:
      options.times.FormatDate(At<std::int32_t>(format, index), out);
      return true;
    case TypeKind::kTimestamp:
      options.times.FormatTimestamp(At<std::int64_t>(format, index), out);
      return true;
    case TypeKind::kTimestampNtz:
      options.times.FormatTimestampNtz(At<std::int64_t>(format, index), out);
      return true;
    case TypeKind::kDayTimeInterval:
      out += IntervalText(At<std::int64_t>(format, index), type);
      return true;
    case TypeKind::kYearMonthInterval:
      out += IntervalText(At<std::int32_t>(format, index), type);
      return true;
    case TypeKind::kCalendarInterval: {
      const auto part = [&](std::size_t i) -> idx_t { return format.children[i].unified.sel->get_index(index); };
      out += CalendarIntervalText(At<std::int32_t>(format.children[0], part(0)),
                                  At<std::int32_t>(format.children[1], part(1)),
                                  At<std::int64_t>(format.children[2], part(2)));
      return true;
    }
    default:
      return false;
  }
}

class JsonWriter {
 public:
  explicit JsonWriter(const TextWriteOptions& options) : options_(options) {}

  void Append(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, idx_t row, std::string& out) {
    const idx_t index = format.unified.sel->get_index(row);
    if (type.Is(TypeKind::kVoid) || !format.unified.validity.RowIsValid(index)) {
      out += "null";
      return;
    }
    switch (type.kind()) {
      case TypeKind::kStruct: {
        out.push_back('{');
        bool first = true;
        for (std::size_t i = 0; i < type.fields().size(); ++i) {
          const types::StructField& field = type.fields()[i];
          const auto& child = format.children[i];
          const bool null =
              field.type.Is(TypeKind::kVoid) || !child.unified.validity.RowIsValid(child.unified.sel->get_index(index));
          if (null && options_.ignore_null_fields) {
            continue;
          }
          if (!first) {
            out.push_back(',');
          }
          first = false;
          AppendText(field.name, out);
          out.push_back(':');
          Append(field.type, child, index, out);
        }
        out.push_back('}');
        return;
      }
      case TypeKind::kArray: {
        const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
        out.push_back('[');
        for (idx_t i = 0; i < entry.length; ++i) {
          if (i > 0) {
            out.push_back(',');
          }
          Append(type.element(), format.children[0], entry.offset + i, out);
        }
        out.push_back(']');
        return;
      }
      case TypeKind::kMap: {
        const auto entry = duckdb::UnifiedVectorFormat::GetData<duckdb::list_entry_t>(format.unified)[index];
        const auto& pairs = format.children[0];
        out.push_back('{');
        for (idx_t i = 0; i < entry.length; ++i) {
          if (i > 0) {
            out.push_back(',');
          }
          const idx_t at = pairs.unified.sel->get_index(entry.offset + i);
          AppendKey(type.key(), pairs.children[0], at, out);
          out.push_back(':');
          Append(type.value(), pairs.children[1], at, out);
        }
        out.push_back('}');
        return;
      }
      default:
        break;
    }
    std::string text;
    if (!ScalarText(type, format, index, options_, text)) {
      ThrowRowError(Error::Unsupported("to_json of " + type.Sql()));
    }
    const bool real = type.Is(TypeKind::kFloat) || type.Is(TypeKind::kDouble);
    const bool bare = type.IsNumeric() || type.Is(TypeKind::kBoolean);
    if (bare && (!real || (text[0] != 'N' && text.find('I') == std::string::npos))) {
      out += text;
    } else {
      AppendText(text, out);
    }
  }

 private:
  void AppendText(std::string_view text, std::string& out) {
    if (!options_.escape_non_ascii) {
      AppendJsonString(out, text);
      return;
    }
    std::string quoted;
    AppendJsonString(quoted, text);
    for (std::size_t i = 0; i < quoted.size();) {
      const auto byte = static_cast<unsigned char>(quoted[i]);
      if (byte < 0x80) {
        out.push_back(quoted[i++]);
        continue;
      }
      const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
      std::uint32_t code = byte & (0xFFU >> (length + 1));
      for (std::size_t k = 1; k < length && i + k < quoted.size(); ++k) {
        code = (code << 6) | (static_cast<unsigned char>(quoted[i + k]) & 0x3F);
      }
      i += length;
      char unit[16];
      if (code >= 0x10000) {
        code -= 0x10000;
        std::snprintf(unit, sizeof(unit), "\\u%04X\\u%04X", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
      } else {
        std::snprintf(unit, sizeof(unit), "\\u%04X", code);
      }
      out += unit;
    }
  }

  /// Spark prints the number behind a key that is a date or a time.
  void AppendKey(const DataType& type, const duckdb::RecursiveUnifiedVectorFormat& format, idx_t row,
                 std::string& out) {
    const idx_t index = format.unified.sel->get_index(row);
    std::string text;
    if (type.Is(TypeKind::kDate)) {
      text = std::to_string(At<std::int32_t>(format, index));
    } else if (type.Is(TypeKind::kTimestamp) || type.Is(TypeKind::kTimestampNtz)) {
      text = std::to_string(At<std::int64_t>(format, index));
    } else if (!ScalarText(type, format, index, options_, text)) {
      ThrowRowError(Error::Unsupported("to_json of a map with keys of type " + type.Sql()));
    }
    AppendText(text, out);
  }

  const TextWriteOptions& options_;
};

Result<Kernel> MakeToJson(const ScalarSite& site) {
  plan::Options given = OptionsAt(site, 1);
  bool pretty = false;
  for (auto entry = given.begin(); entry != given.end();) {
    if (EqualsIgnoreAsciiCase(entry->first, "pretty")) {
      pretty = EqualsIgnoreAsciiCase(entry->second, "true");
      entry = given.erase(entry);
    } else {
      ++entry;
    }
  }
  FLEUVE_ASSIGN(TextWriteOptions made,
                MakeTextWriteOptions(plan::FileFormat::kJson, given, "none", site.Literal(2).text()));
  auto options = std::make_shared<TextWriteOptions>(std::move(made));
  const DataType type = site.ArgumentType(0);
  if (type.Is(TypeKind::kVariant)) {
    return Error::Unsupported("to_json of VARIANT");
  }
  return Kernel([options, type, pretty](DataChunk& args, Vector& result) {
    args.data[0].Flatten(args.size());
    duckdb::RecursiveUnifiedVectorFormat format;
    Vector::RecursiveToUnifiedFormat(args.data[0], args.size(), format);
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<duckdb::string_t>(result);
    JsonWriter writer(*options);
    std::string text;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (!format.unified.validity.RowIsValid(format.unified.sel->get_index(row))) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      text.clear();
      writer.Append(type, format, row, text);
      if (pretty) {
        if (auto json = Json::Parse(text); json.ok()) {
          text = json->DumpPretty();
        }
      }
      out[row] = Physical<Str>::Write(result, text);
    }
  });
}

// ---------------------------------------------------------------------------------------------------------------- CSV

bool IsCsvType(const DataType& type) {
  return !type.IsNested() && !type.Is(TypeKind::kBinary) && !type.Is(TypeKind::kVariant) && !type.Is(TypeKind::kVoid);
}

Result<Kernel> MakeFromCsv(const ScalarSite& site) {
  const DataType type = site.expr.type;
  for (const types::StructField& field : type.fields()) {
    if (!IsCsvType(field.type)) {
      return Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATATYPE",
                   "Unsupported data type \"" + field.type.Sql() + "\".")
          .With("typeName", "\"" + field.type.Sql() + "\"");
    }
  }
  FLEUVE_ASSIGN(CsvOptions made, MakeCsvOptions(OptionsAt(site, 1), site.Literal(2).text()));
  FLEUVE_TRY(CheckMode("from_csv", made.mode));
  auto options = std::make_shared<CsvOptions>(std::move(made));
  auto context = site.expr.context;
  const bool fail_fast = options->mode == ParseMode::kFailFast;
  return Kernel([options, type, context, fail_fast](DataChunk& args, Vector& result) {
    Column records(args.data[0], args.size());
    result.SetVectorType(VectorType::FLAT_VECTOR);
    const RecordShape shape = ShapeOf(type, options->corrupt_column);
    auto& entries = duckdb::StructVector::GetEntries(result);
    CsvSplitter splitter(*options);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (records.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      const Str text = records.Get<Str>(row);
      const auto outcome = splitter.Split(text);
      bool bad = outcome != CsvSplitter::Outcome::kOk && outcome != CsvSplitter::Outcome::kOpenQuote;
      bool misfit = false;
      const auto& fields = splitter.fields();
      for (std::size_t i = 0; i < shape.places.size(); ++i) {
        Vector& column = *entries[shape.places[i]];
        if (bad || i >= fields.size() || text.empty()) {
          FlatVector::SetNull(column, row, true);
          continue;
        }
        std::string_view token = fields[i].text;
        if (token.empty()) {
          token = fields[i].is_empty_quoted ? std::string_view(options->empty_value)
                                            : std::string_view(options->null_value);
        }
        if (token == options->null_value) {
          FlatVector::SetNull(column, row, true);
        } else if (!StoreCsvValue(*options, shape.fields.fields()[i].type, token, column, row)) {
          // The fields behind it are read all the same.
          FlatVector::SetNull(column, row, true);
          misfit = true;
        }
      }
      bad = bad || misfit;
      if (bad && fail_fast) {
        ThrowMalformed(text, context);
      }
      if (shape.corrupt >= 0) {
        Vector& column = *entries[static_cast<std::size_t>(shape.corrupt)];
        if (bad) {
          FlatVector::GetData<duckdb::string_t>(column)[row] = Physical<Str>::Write(column, text);
        } else {
          FlatVector::SetNull(column, row, true);
        }
      }
    }
  });
}

void AppendCsvField(std::string_view text, bool is_plain, const TextWriteOptions& options, std::string& out) {
  while (options.trim_leading && !text.empty() && static_cast<unsigned char>(text.front()) <= ' ') {
    text.remove_prefix(1);
  }
  while (options.trim_trailing && !text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
    text.remove_suffix(1);
  }
  if (text.empty()) {
    if (!is_plain) {
      out += options.empty_value;
    } else if (options.quote_all) {
      out.push_back(options.quote);
      out.push_back(options.quote);
    }
    return;
  }
  const bool has_quote = options.quote != '\0' && text.find(options.quote) != std::string_view::npos;
  const bool quoted =
      options.quote != '\0' && (options.quote_all || text.find(options.delimiter) != std::string_view::npos ||
                                text.find_first_of("\r\n") != std::string_view::npos ||
                                (has_quote && options.escape_quotes) || text.front() == options.quote);
  if (!quoted) {
    out += text;
    return;
  }
  out.push_back(options.quote);
  for (const char c : text) {
    if (c == options.quote) {
      out.push_back(options.escape);
    } else if (c == options.escape && options.escape_escape != '\0') {
      out.push_back(options.escape_escape);
    }
    out.push_back(c);
  }
  out.push_back(options.quote);
}

Result<Kernel> MakeToCsv(const ScalarSite& site) {
  FLEUVE_ASSIGN(TextWriteOptions made,
                MakeTextWriteOptions(plan::FileFormat::kCsv, OptionsAt(site, 1), "none", site.Literal(2).text()));
  auto options = std::make_shared<TextWriteOptions>(std::move(made));
  const DataType type = site.ArgumentType(0);
  FLEUVE_ASSIGN(std::shared_ptr<const types::TimeZone> zone, types::TimeZone::Find(site.Literal(2).text()));
  return Kernel([options, type, zone](DataChunk& args, Vector& result) {
    args.data[0].Flatten(args.size());
    duckdb::RecursiveUnifiedVectorFormat format;
    Vector::RecursiveToUnifiedFormat(args.data[0], args.size(), format);
    auto& entries = duckdb::StructVector::GetEntries(args.data[0]);
    std::vector<std::unique_ptr<ValueText>> nested(type.fields().size());
    for (std::size_t i = 0; i < nested.size(); ++i) {
      if (type.fields()[i].type.IsNested()) {
        nested[i] = std::make_unique<ValueText>(type.fields()[i].type, zone);
        nested[i]->Bind(*entries[i], args.size());
      }
    }
    result.SetVectorType(VectorType::FLAT_VECTOR);
    auto* out = FlatVector::GetData<duckdb::string_t>(result);
    std::string line;
    std::string text;
    for (idx_t row = 0; row < args.size(); ++row) {
      const idx_t index = format.unified.sel->get_index(row);
      if (!format.unified.validity.RowIsValid(index)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      line.clear();
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        if (i > 0) {
          line += options->delimiter;
        }
        const DataType& field = type.fields()[i].type;
        const auto& child = format.children[i];
        const idx_t at = child.unified.sel->get_index(index);
        if (field.Is(TypeKind::kVoid) || !child.unified.validity.RowIsValid(at)) {
          AppendCsvField(options->null_value, true, *options, line);
          continue;
        }
        text.clear();
        if (nested[i] != nullptr) {
          nested[i]->Append(index, text);
        } else if (!ScalarText(field, child, at, *options, text)) {
          ThrowRowError(Error::Unsupported("to_csv of " + field.Sql()));
        }
        AppendCsvField(text, field.IsNumeric() || field.Is(TypeKind::kBoolean), *options, line);
      }
      out[row] = Physical<Str>::Write(result, line);
    }
  });
}

}  // namespace

const ScalarTable& TextFormatKernels() {
  static const ScalarTable table = {
      {"spark_from_avro", Nulls::kOwn, MakeFromAvro},     {"spark_to_avro", Nulls::kOwn, MakeToAvro},
      {"spark_from_json", Nulls::kOwn, MakeFromJson},     {"spark_from_protobuf", Nulls::kOwn, MakeFromProtobuf},
      {"spark_to_protobuf", Nulls::kOwn, MakeToProtobuf}, {"spark_to_json", Nulls::kOwn, MakeToJson},
      {"spark_from_csv", Nulls::kOwn, MakeFromCsv},       {"spark_to_csv", Nulls::kOwn, MakeToCsv},
  };
  return table;
}

}  // namespace fleuve::engine
