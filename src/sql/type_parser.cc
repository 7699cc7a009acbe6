#include "sql/parser_internal.h"

namespace fleuve::sql {

using types::DataType;
using types::TypeKind;

Result<DataType> Parser::ParseType() {
  Depth depth(&depth_);
  FLEUVE_TRY(CheckDepth());
  const std::size_t first = at_;
  if (!IsIdentifier()) {
    return SyntaxError();
  }
  const std::string name = Upper(Current().text);
  Advance();
  if (name == "ARRAY") {
    FLEUVE_TRY(ExpectSymbol("<"));
    FLEUVE_ASSIGN(DataType element, ParseType());
    FLEUVE_TRY(ExpectTypeClose());
    return DataType::Array(std::move(element));
  }
  if (name == "MAP") {
    FLEUVE_TRY(ExpectSymbol("<"));
    FLEUVE_ASSIGN(DataType key, ParseType());
    FLEUVE_TRY(ExpectSymbol(","));
    FLEUVE_ASSIGN(DataType value, ParseType());
    FLEUVE_TRY(ExpectTypeClose());
    return DataType::Map(std::move(key), std::move(value));
  }
  if (name == "STRUCT") {
    std::vector<types::StructField> fields;
    if (AcceptSymbol("<>")) {
      return DataType::Struct({});
    }
    FLEUVE_TRY(ExpectSymbol("<"));
    if (IsSymbol(">")) {
      Advance();
      return DataType::Struct({});
    }
    do {
      types::StructField field;
      FLEUVE_ASSIGN(field.name, ParseIdentifier());
      AcceptSymbol(":");
      FLEUVE_ASSIGN(field.type, ParseType());
      if (AcceptWords({"NOT", "NULL"})) {
        field.nullable = false;
      }
      if (AcceptWord("COMMENT")) {
        FLEUVE_ASSIGN(std::string comment, ParseString());
        field.metadata.Set("comment", Json(std::move(comment)));
      }
      fields.push_back(std::move(field));
    } while (AcceptSymbol(","));
    FLEUVE_TRY(ExpectTypeClose());
    return DataType::Struct(std::move(fields));
  }
  if (name == "INTERVAL") {
    static const char* const kDayFields[] = {"DAY", "HOUR", "MINUTE", "SECOND"};
    static const char* const kYearFields[] = {"YEAR", "MONTH"};
    const auto field_of = [&](const char* const* names, int count) {
      for (int i = 0; i < count; ++i) {
        if (IsWord(names[i]) || IsWord(std::string(names[i]) + "S")) {
          return i;
        }
      }
      return -1;
    };
    const int year = field_of(kYearFields, 2);
    const int day = field_of(kDayFields, 4);
    if (year < 0 && day < 0) {
      return DataType::Of(TypeKind::kCalendarInterval);
    }
    Advance();
    int end = year >= 0 ? year : day;
    if (IsWord("TO")) {
      Advance();
      end = year >= 0 ? field_of(kYearFields, 2) : field_of(kDayFields, 4);
      if (end < 0 || end <= (year >= 0 ? year : day)) {
        return SyntaxError();
      }
      Advance();
    }
    return year >= 0 ? DataType::YearMonthInterval(year, end) : DataType::DayTimeInterval(day, end);
  }
  if (name == "TIMESTAMP" && AreWords({"WITHOUT", "TIME", "ZONE"})) {
    AcceptWords({"WITHOUT", "TIME", "ZONE"});
    return DataType::TimestampNtz();
  }
  std::vector<std::int64_t> parameters;
  if (IsSymbol("(") && (Ahead(1).kind == TokenKind::kInteger || IsSymbol("-", 1) || IsSymbol(")", 1))) {
    Advance();
    if (!IsSymbol(")")) {
      do {
        const bool negative = AcceptSymbol("-");
        FLEUVE_ASSIGN(const std::int64_t value, ParseIntegerToken());
        parameters.push_back(negative ? -value : value);
      } while (AcceptSymbol(","));
    }
    FLEUVE_TRY(ExpectSymbol(")"));
  }
  const auto unsupported = [&] {
    return ErrorFrom(first, "UNSUPPORTED_DATATYPE", "Unsupported data type \"" + Upper(TextFrom(first)) + "\".")
        .With("typeName", "\"" + Upper(TextFrom(first)) + "\"");
  };
  if (name == "DECIMAL" || name == "DEC" || name == "NUMERIC") {
    if (parameters.size() > 2) {
      return unsupported();
    }
    const std::int64_t precision = parameters.empty() ? 10 : parameters[0];
    const std::int64_t scale = parameters.size() < 2 ? 0 : parameters[1];
    if (precision > 38) {
      return ErrorFrom(first, "DECIMAL_PRECISION_EXCEEDS_MAX_PRECISION",
                       "Decimal precision " + std::to_string(precision) + " exceeds max precision 38.")
          .With("precision", std::to_string(precision))
          .With("maxPrecision", "38");
    }
    if (scale > precision) {
      return ErrorFrom(first, "_LEGACY_ERROR_TEMP_1228",
                       "Decimal scale " + std::to_string(scale) + " cannot be greater than precision " +
                           std::to_string(precision) + ".");
    }
    if (precision < 1 || scale < 0) {
      return unsupported();
    }
    return DataType::Decimal(static_cast<int>(precision), static_cast<int>(scale));
  }
  if (name == "CHAR" || name == "CHARACTER" || name == "VARCHAR") {
    if (parameters.size() != 1) {
      return ErrorFrom(first, "DATATYPE_MISSING_SIZE",
                       "DataType \"" + (name == "CHARACTER" ? std::string("CHAR") : name) +
                           "\" requires a length parameter, for example \"" + name + "\"(10).");
    }
    if (parameters[0] < 1 || parameters[0] > INT32_MAX) {
      return unsupported();
    }
    const int length = static_cast<int>(parameters[0]);
    return name == "VARCHAR" ? DataType::Varchar(length) : DataType::Char(length);
  }
  if (name == "TIME") {
    return DataType::Of(TypeKind::kTime);
  }
  if (!parameters.empty()) {
    return unsupported();
  }
  if (name == "STRING") {
    if (IsWord("COLLATE") && IsIdentifier(1)) {
      Advance();
      std::string collation = Current().text;
      Advance();
      while (IsSymbol(".") && IsIdentifier(1)) {
        Advance();
        collation = Current().text;
        Advance();
      }
      return DataType::String(Upper(collation));
    }
    return DataType::String();
  }
  if (name == "INT" || name == "INTEGER") {
    return DataType::Int();
  }
  if (name == "BIGINT" || name == "LONG") {
    return DataType::Long();
  }
  if (name == "SMALLINT" || name == "SHORT") {
    return DataType::Short();
  }
  if (name == "TINYINT" || name == "BYTE") {
    return DataType::Byte();
  }
  if (name == "BOOLEAN") {
    return DataType::Boolean();
  }
  if (name == "FLOAT" || name == "REAL") {
    return DataType::Float();
  }
  if (name == "DOUBLE") {
    return DataType::Double();
  }
  if (name == "DATE") {
    return DataType::Date();
  }
  if (name == "TIMESTAMP") {
    return options_.timestamp_is_ltz ? DataType::Timestamp() : DataType::TimestampNtz();
  }
  if (name == "TIMESTAMP_LTZ") {
    return DataType::Timestamp();
  }
  if (name == "TIMESTAMP_NTZ") {
    return DataType::TimestampNtz();
  }
  if (name == "BINARY") {
    return DataType::Binary();
  }
  if (name == "VOID" || name == "NULL") {
    return DataType::Void();
  }
  if (name == "VARIANT") {
    return DataType::Variant();
  }
  return unsupported();
}

Result<DataType> Parser::ParseColumnListType() {
  std::vector<types::StructField> fields;
  do {
    types::StructField field;
    FLEUVE_ASSIGN(field.name, ParseIdentifier());
    AcceptSymbol(":");
    FLEUVE_ASSIGN(field.type, ParseType());
    while (true) {
      if (AcceptWords({"NOT", "NULL"})) {
        field.nullable = false;
      } else if (AcceptWord("COMMENT")) {
        FLEUVE_ASSIGN(std::string comment, ParseString());
        field.metadata.Set("comment", Json(std::move(comment)));
      } else if (IsWord("DEFAULT")) {
        Advance();
        const std::size_t from = at_;
        FLEUVE_TRY(ParseExpression());
        const std::string sql = TextFrom(from);
        field.metadata.Set("CURRENT_DEFAULT", Json(sql));
        field.metadata.Set("EXISTS_DEFAULT", Json(sql));
      } else {
        break;
      }
    }
    fields.push_back(std::move(field));
  } while (AcceptSymbol(","));
  return DataType::Struct(std::move(fields));
}

Result<std::vector<std::string>> Parser::ParseNameParts() {
  std::vector<std::string> parts;
  do {
    FLEUVE_ASSIGN(std::string part, ParseIdentifier());
    parts.push_back(std::move(part));
  } while (IsSymbol(".") && IsIdentifier(1) && AcceptSymbol("."));
  return parts;
}

}  // namespace fleuve::sql
