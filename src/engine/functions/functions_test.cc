// Functions from their names to their values: the plan's builders and the engine's kernels together, without a query.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

#include "duckdb/execution/expression_executor_state.hpp"
#include "engine/carriers_internal.h"
#include "engine/functions/register_internal.h"
#include "engine/functions/text_numbers_internal.h"
#include "engine/functions/value_text_internal.h"
#include "engine/raise_internal.h"
#include "plan/coercion.h"
#include "plan/function_builder.h"

namespace fleuve::engine {
namespace {

using plan::ExprPtr;
using types::DataType;
using types::Value;

plan::AnalysisConfig Config(bool ansi = true, const std::string& zone = "UTC") {
  plan::AnalysisConfig config;
  config.ansi = ansi;
  config.session_zone = zone;
  config.now_micros = 1700000000000000;
  return config;
}

ExprPtr Text(const char* text) { return plan::MakeLiteral(Value(text), DataType::String()); }
ExprPtr Int(std::int64_t value) { return plan::MakeLiteral(Value(value), DataType::Int()); }
ExprPtr Double(double value) { return plan::MakeLiteral(Value(value), DataType::Double()); }
ExprPtr Decimal(std::int64_t unscaled, int precision, int scale) {
  return plan::MakeLiteral(Value(types::Int128{unscaled}), DataType::Decimal(precision, scale));
}
ExprPtr Null() { return plan::MakeNull(DataType::Void()); }
ExprPtr Timestamp(const char* text) {
  return plan::MakeLiteral(Value(*types::ParseTimestamp(text, "UTC")), DataType::Timestamp());
}
ExprPtr Date(const char* text) { return plan::MakeLiteral(Value(*types::ParseDate(text)), DataType::Date()); }

/// How the rows of the chunk lie in memory.
enum class Form { kConstant, kFlat, kDictionary };

/// The value of a node whose leaves are literals, as Spark's cast to string prints it (or the error's condition).
duckdb::Value Evaluate(const ExprPtr& expr, Form form) {
  if (expr->kind == plan::ExprKind::kLiteral) {
    return CarrierValue(expr->value, expr->type);
  }
  std::vector<duckdb::LogicalType> types;
  duckdb::vector<duckdb::LogicalType> chunk_types;
  std::vector<duckdb::Value> values;
  for (const ExprPtr& child : expr->children) {
    types.push_back(CarrierType(child->type));
    chunk_types.push_back(types.back());
    values.push_back(Evaluate(child, form));
  }
  auto made = ValueOrRaise(MakeScalar(expr, types, CarrierType(expr->type)));
  duckdb::DataChunk chunk;
  chunk.InitializeEmpty(chunk_types);
  for (std::size_t i = 0; i < values.size(); ++i) {
    duckdb::Vector flat(types[i], 3);
    for (duckdb::idx_t row = 0; row < 3; ++row) {
      flat.SetValue(row, values[i]);
    }
    if (form == Form::kConstant) {
      duckdb::Vector constant(values[i]);
      chunk.data[i].Reference(constant);
    } else if (form == Form::kFlat) {
      chunk.data[i].Reference(flat);
    } else {
      duckdb::SelectionVector selection(3);
      for (duckdb::idx_t row = 0; row < 3; ++row) {
        selection.set_index(row, 2 - row);
      }
      duckdb::Vector sliced(flat, selection, 3);
      chunk.data[i].Reference(sliced);
    }
  }
  chunk.SetCardinality(3);
  duckdb::Vector result(CarrierType(expr->type), 3);
  duckdb::BoundConstantExpression dummy(duckdb::Value(1));
  duckdb::ExpressionExecutorState root;
  duckdb::ExpressionState state(dummy, root);
  made.function.function(chunk, state, result);
  return result.GetValue(2);
}

std::string Show(const ExprPtr& expr, Form form, const std::string& zone) {
  try {
    duckdb::Value value = Evaluate(expr, form);
    if (value.IsNull()) {
      return "NULL";
    }
    duckdb::Vector one(value);
    ValueText text(expr->type, *types::TimeZone::Find(zone));
    text.Bind(one, 1);
    std::string out;
    text.Append(0, out);
    return out;
  } catch (std::exception& caught) {
    return ToError(duckdb::ErrorData(caught)).condition();
  }
}

Result<ExprPtr> Build(const std::string& name, std::vector<ExprPtr> arguments, const plan::AnalysisConfig& config) {
  plan::FunctionCall call;
  call.name = name;
  call.arguments = std::move(arguments);
  call.config = &config;
  return plan::BuildFunction(call);
}

/// A call as the argument of another.
ExprPtr Fn(const std::string& name, std::vector<ExprPtr> arguments) {
  return *Build(name, std::move(arguments), Config());
}

std::string Call(const std::string& name, std::vector<ExprPtr> arguments,
                 const plan::AnalysisConfig& config = Config()) {
  auto built = Build(name, std::move(arguments), config);
  if (!built.ok()) {
    return built.error().condition();
  }
  std::string constant = Show(*built, Form::kConstant, config.session_zone);
  EXPECT_EQ(constant, Show(*built, Form::kFlat, config.session_zone)) << name;
  EXPECT_EQ(constant, Show(*built, Form::kDictionary, config.session_zone)) << name;
  return constant;
}

std::string Cast(const ExprPtr& expr, const DataType& type, plan::CastMode mode = plan::CastMode::kAnsi) {
  auto made = plan::MakeCast(expr, type, mode, Config());
  return made.ok() ? Show(*made, Form::kFlat, "UTC") : made.error().condition();
}

TEST(Functions, ArithmeticFollowsTheMode) {
  EXPECT_EQ(Call("+", {Int(2147483647), Int(1)}), "ARITHMETIC_OVERFLOW");
  EXPECT_EQ(Call("+", {Int(2147483647), Int(1)}, Config(false)), "-2147483648");
  EXPECT_EQ(Call("try_add", {Int(2147483647), Int(1)}), "NULL");
  EXPECT_EQ(Call("/", {Int(7), Int(2)}), "3.5");
  EXPECT_EQ(Call("/", {Int(1), Int(0)}), "DIVIDE_BY_ZERO");
  EXPECT_EQ(Call("%", {Int(-7), Int(3)}), "-1");
  EXPECT_EQ(Call("pmod", {Int(-7), Int(3)}), "2");
  EXPECT_EQ(Call("div", {Int(-7), Int(2)}), "-3");
  EXPECT_EQ(Call("+", {Text("2"), Int(1)}), "3");
  EXPECT_EQ(Call("+", {Text("2"), Text("3")}), "DATATYPE_MISMATCH.BINARY_OP_WRONG_TYPE");
}

TEST(Functions, DecimalsKeepSparksScale) {
  ExprPtr a = Decimal(1234567, 10, 2);
  ExprPtr b = Decimal(12345, 5, 4);
  EXPECT_EQ(Call("+", {a, b}), "12346.9045");
  EXPECT_EQ(Call("*", {a, b}), "15240.729615");
  EXPECT_EQ(Call("/", {a, b}), "10000.54272985");
  EXPECT_EQ(Call("%", {a, b}), "0.6700");
  EXPECT_EQ(Call("round", {Decimal(2345, 4, 3), Int(2)}), "2.35");
  EXPECT_EQ(Call("bround", {Decimal(2345, 4, 3), Int(2)}), "2.34");
}

TEST(Functions, DecimalsOfRealsAreThoseOfTheirTexts) {
  std::mt19937_64 random(7);
  std::vector<double> values = {0.0,       -0.0,   0.005, 0.015, 1.005, 2.675, 1e15, 999999999999999.0,
                                0.1 + 0.2, 5e-324, 1e300};
  for (int i = 0; i < 100000; ++i) {
    const double whole = static_cast<double>(static_cast<std::int64_t>(random() % 2000000000000) - 1000000000000);
    values.push_back(whole / std::pow(10, static_cast<double>(random() % 12)));
    values.push_back(std::nextafter(values.back(), 0));
    const double bits = std::bit_cast<double>(random());
    if (std::isfinite(bits)) {
      values.push_back(bits);
    }
  }
  for (const double value : values) {
    for (const auto& [precision, scale] : {std::pair(12, 2), std::pair(10, 0), std::pair(18, 9), std::pair(38, 18)}) {
      types::Int128 expected = 0;
      types::Int128 got = 0;
      const auto outcome = ParseDecimal(JavaDoubleToString(value), precision, scale, &expected);
      ASSERT_EQ(DecimalOfReal(value, precision, scale, &got), outcome) << JavaDoubleToString(value);
      ASSERT_TRUE(outcome != DecimalParse::kOk || got == expected) << JavaDoubleToString(value) << " " << scale;
    }
  }
}

TEST(Functions, CastsOfText) {
  EXPECT_EQ(Cast(Text(" 12 "), DataType::Int()), "12");
  EXPECT_EQ(Cast(Text("1.5"), DataType::Int()), "CAST_INVALID_INPUT");
  EXPECT_EQ(Cast(Text("12.7"), DataType::Int(), plan::CastMode::kLegacy), "12");
  EXPECT_EQ(Cast(Text("1e3"), DataType::Decimal(6, 1)), "1000.0");
  EXPECT_EQ(Cast(Text("1.555"), DataType::Decimal(10, 2)), "1.56");
  EXPECT_EQ(Cast(Text("abc"), DataType::Double(), plan::CastMode::kTry), "NULL");
  EXPECT_EQ(Cast(Double(1e10), DataType::String()), "1.0E10");
  EXPECT_EQ(Cast(Double(1.9), DataType::Int()), "1");
  EXPECT_EQ(Cast(Double(128), DataType::Byte()), "CAST_OVERFLOW");
  EXPECT_EQ(Cast(Text("2024-02-30"), DataType::Date()), "CAST_INVALID_INPUT");
  EXPECT_EQ(Cast(Int(5), DataType::Date()), "DATATYPE_MISMATCH.CAST_WITH_FUNC_SUGGESTION");
  EXPECT_EQ(Cast(Text("1 10:00:00"), DataType::DayTimeInterval(0, 3)), "INTERVAL '1 10:00:00' DAY TO SECOND");
}

TEST(Functions, Strings) {
  EXPECT_EQ(Call("substring", {Text("Spark SQL"), Int(-3), Int(2)}), "SQ");
  EXPECT_EQ(Call("substring", {Text("añb€c"), Int(2), Int(3)}), "ñb€");
  EXPECT_EQ(Call("upper", {Text("straße")}), "STRASSE");
  EXPECT_EQ(Call("concat_ws", {Text("-"), Text("a"), Null(), Text("b")}), "a-b");
  EXPECT_EQ(Call("lpad", {Text("hi"), Int(5), Text("??")}), "???hi");
  EXPECT_EQ(Call("regexp_replace", {Text("100-200"), Text("(\\d+)-(\\d+)"), Text("$2-$1")}), "200-100");
  EXPECT_EQ(Call("regexp_extract", {Text("foo"), Text("(o)"), Int(3)}), "INVALID_PARAMETER_VALUE.REGEX_GROUP_INDEX");
  EXPECT_EQ(Call("like", {Text("a%c"), Text("a\\%c")}), "true");
  EXPECT_EQ(Call("split", {Text("a,b,,"), Text(",")}), "[a, b, , ]");
  EXPECT_EQ(Call("format_string", {Text("%05d|%-5s|%.2f"), Int(42), Text("ab"), Double(3.14159)}), "00042|ab   |3.14");
  EXPECT_EQ(Call("format_number", {Double(1.5), Int(0)}), "2");
  EXPECT_EQ(Call("soundex", {Text("Ashcraft")}), "A261");
}

TEST(Functions, Ciphers) {
  const auto key = Text("0000111122223333");
  EXPECT_EQ(Call("hex", {Fn("aes_encrypt", {Text("Spark"), key, Text("ecb")})}), "348FF37EBDE05B7880BA339068FBDA5E");
  for (const char* mode : {"ECB", "CBC", "GCM"}) {
    const auto sealed = Fn("aes_encrypt", {Text("a longer text than one block"), key, Text(mode)});
    EXPECT_EQ(Call("hex", {Fn("aes_decrypt", {sealed, key, Text(mode)})}),
              Call("hex", {Text("a longer text than one block")}))
        << mode;
  }
  EXPECT_EQ(Call("aes_encrypt", {Text("a"), Text("short")}), "INVALID_PARAMETER_VALUE.AES_KEY_LENGTH");
  EXPECT_EQ(Call("aes_encrypt", {Text("a"), key, Text("OFB")}), "UNSUPPORTED_FEATURE.AES_MODE");
  EXPECT_EQ(Call("aes_decrypt", {Text("0123456789012345678901234567"), key}),
            "INVALID_PARAMETER_VALUE.AES_CRYPTO_ERROR");
  EXPECT_EQ(Call("try_aes_decrypt", {Text("0123456789012345678901234567"), key}), "NULL");
}

TEST(Functions, HashesAreSparks) {
  EXPECT_EQ(Call("hash", {Int(1)}), "-559580957");
  EXPECT_EQ(Call("hash", {Text("Spark SQL")}), "1516360745");
  EXPECT_EQ(Call("xxhash64", {Text("The quick brown fox jumps over the lazy dog")}), "-6152153990451020481");
  EXPECT_EQ(Call("md5", {Text("Spark")}), "8cde774d6f7333752ed72cacddb05126");
  EXPECT_EQ(Call("crc32", {Text("Spark")}), "1557323817");
}

TEST(Functions, DatesAndZones) {
  EXPECT_EQ(Call("add_months", {Date("2024-01-31"), Int(1)}), "2024-02-29");
  EXPECT_EQ(Call("date_trunc", {Text("WEEK"), Timestamp("2024-05-17 13:45:59")}), "2024-05-13 00:00:00");
  EXPECT_EQ(Call("hour", {Timestamp("2024-07-01 12:00:00")}, Config(true, "America/New_York")), "8");
  EXPECT_EQ(Call("date_format", {Timestamp("2024-07-01 12:00:00"), Text("yyyy-MM-dd HH:mm XXX z")},
                 Config(true, "America/New_York")),
            "2024-07-01 08:00 -04:00 EDT");
  EXPECT_EQ(Call("to_timestamp", {Text("20240309102030"), Text("yyyyMMddHHmmss")}), "2024-03-09 10:20:30");
  EXPECT_EQ(Call("to_date", {Text("9 Mar 2024"), Text("d MMM yyyy")}), "2024-03-09");
  EXPECT_EQ(Call("to_timestamp", {Text("2024-03-09"), Text("YYYY-MM-dd")}),
            "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_PATTERN_RECOGNITION");
  EXPECT_EQ(Call("months_between", {Timestamp("1997-02-28 10:30:00"), Date("1996-10-30")}), "3.94959677");
  EXPECT_EQ(Call("+", {Date("2024-01-01"), Text("1")}), "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE");
}

TEST(Functions, UnknownAndUnserved) {
  EXPECT_EQ(Call("no_such_function", {Int(1)}), "UNRESOLVED_ROUTINE");
  EXPECT_EQ(Call("xpath", {Text("<a/>"), Text("a")}), "UNSUPPORTED_FEATURE.FLEUVE");
  EXPECT_EQ(Call("upper", {Int(1), Int(2)}), "WRONG_NUM_ARGS.WITHOUT_SUGGESTION");
}

TEST(Functions, IntervalsOutOfText) {
  auto interval = plan::ParseIntervalText("interval 1 day 2 hours -1.5 seconds");
  ASSERT_TRUE(interval.ok());
  EXPECT_EQ(interval->days, 1);
  EXPECT_EQ(interval->micros, 7200000000 - 1500000);
  EXPECT_EQ(plan::ParseIntervalText("five minutes").error().condition(), "CANNOT_PARSE_INTERVAL");
}

}  // namespace
}  // namespace fleuve::engine
