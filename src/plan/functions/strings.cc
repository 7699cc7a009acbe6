#include <set>

#include "base/bytes.h"
#include "plan/functions/registry_internal.h"

namespace fleuve::plan::functions {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

Result<ExprPtr> BuildConcat(Call& call) {
  std::string display = "concat(";
  for (std::size_t i = 0; i < call.size(); ++i) {
    display += (i > 0 ? ", " : "") + call.shown[i];
  }
  display += ")";
  if (call.size() == 0) {
    return call.Shown(MakeLiteral(Value(""), DataType::String()), display);
  }
  bool arrays = false;
  bool binaries = true;
  bool any = false;
  for (std::size_t i = 0; i < call.size(); ++i) {
    arrays = arrays || call.type(i).Is(TypeKind::kArray);
    if (!call.type(i).Is(TypeKind::kVoid)) {
      any = true;
      binaries = binaries && call.type(i).Is(TypeKind::kBinary);
    }
  }
  if (arrays) {
    for (std::size_t i = 0; i < call.size(); ++i) {
      if (!call.type(i).Is(TypeKind::kArray)) {
        return call.Mismatch("DATA_DIFF_TYPES", "Input to `concat` should all be the same type, but it's [\"" +
                                                    call.type(0).Sql() + "\", \"" + call.type(i).Sql() + "\"].");
      }
    }
    FLEUVE_ASSIGN(DataType type, call.ToCommon(0, call.size()));
    return call.Shown(call.Make("spark_concat_arrays", type), display);
  }
  if (any && binaries) {
    for (std::size_t i = 0; i < call.size(); ++i) {
      FLEUVE_TRY(call.To(i, DataType::Binary()));
    }
    return call.Shown(call.Make("spark_concat", DataType::Binary()), display);
  }
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (call.type(i).Is(TypeKind::kBinary)) {
      FLEUVE_TRY(call.Cast(i, DataType::String()));
    }
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  return call.Shown(call.Make("spark_concat", DataType::String()), display);
}

/// concat_ws(sep, ...): strings and arrays of strings.
Result<ExprPtr> BuildConcatWs(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  for (std::size_t i = 1; i < call.size(); ++i) {
    if (call.type(i).Is(TypeKind::kArray)) {
      FLEUVE_TRY(call.To(i, DataType::Array(DataType::String(), call.type(i).contains_null())));
    } else {
      FLEUVE_TRY(call.To(i, DataType::String()));
    }
  }
  return call.Make("spark_concat_ws", DataType::String(), call.args[0]->nullable);
}

DataType StringOrBinary(const Call& call) {
  return call.type(0).Is(TypeKind::kBinary) ? DataType::Binary() : DataType::String();
}

Result<ExprPtr> BuildSubstring(Call& call) {
  FLEUVE_TRY(call.ToOneOf(0, {DataType::String(), DataType::Binary()}));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  if (call.size() == 2) {
    call.Default(Value(std::int64_t{2147483647}), DataType::Int());
  } else {
    FLEUVE_TRY(call.To(2, DataType::Int()));
  }
  return call.Make("spark_substring", StringOrBinary(call));
}

Result<ExprPtr> BuildLeft(Call& call) {
  FLEUVE_TRY(call.ToOneOf(0, {DataType::String(), DataType::Binary()}));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  if (call.name == "left") {
    return call.Make("spark_left", StringOrBinary(call));
  }
  return call.Make("spark_right", StringOrBinary(call), true);
}

Result<ExprPtr> BuildPad(Call& call) {
  bool left = call.name == "lpad";
  FLEUVE_TRY(call.ToOneOf(0, {DataType::String(), DataType::Binary()}));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  bool binary = call.type(0).Is(TypeKind::kBinary);
  if (call.size() == 2) {
    if (binary) {
      call.Default(Value(std::string(1, '\0')), DataType::Binary());
    } else {
      call.Default(Value(" "), DataType::String());
    }
  } else {
    FLEUVE_TRY(call.To(2, binary ? DataType::Binary() : DataType::String()));
  }
  return call.Make(left ? "spark_lpad" : "spark_rpad", StringOrBinary(call));
}

/// trim(s), trim(chars, s): the characters come first, except for btrim(s, chars).
Result<ExprPtr> BuildTrim(Call& call) {
  const char* function = call.name == "ltrim"   ? "spark_ltrim"
                         : call.name == "rtrim" ? "spark_rtrim"
                         : call.name == "btrim" ? "spark_trim"
                                                : "spark_trim";
  std::string display = call.Display();
  if (call.size() == 2 && call.name == "trim") {
    // trim(chars, s), as ltrim and rtrim; btrim has them second.
    std::swap(call.args[0], call.args[1]);
    std::swap(call.shown[0], call.shown[1]);
    display = "TRIM(BOTH " + call.shown[1] + " FROM " + call.shown[0] + ")";
  } else if (call.size() == 2 && call.name == "ltrim") {
    // ltrim(chars, s)
    std::swap(call.args[0], call.args[1]);
    std::swap(call.shown[0], call.shown[1]);
    display = "TRIM(LEADING " + call.shown[1] + " FROM " + call.shown[0] + ")";
  } else if (call.size() == 2 && call.name == "rtrim") {
    std::swap(call.args[0], call.args[1]);
    std::swap(call.shown[0], call.shown[1]);
    display = "TRIM(TRAILING " + call.shown[1] + " FROM " + call.shown[0] + ")";
  } else if (call.size() == 2 && call.name == "trim_leading") {
    function = "spark_ltrim";
    display = "TRIM(LEADING " + call.shown[1] + " FROM " + call.shown[0] + ")";
  } else if (call.size() == 2 && call.name == "trim_trailing") {
    function = "spark_rtrim";
    display = "TRIM(TRAILING " + call.shown[1] + " FROM " + call.shown[0] + ")";
  }
  for (std::size_t i = 0; i < call.size(); ++i) {
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  return call.Shown(call.Make(function, DataType::String()), display);
}

Result<ExprPtr> BuildLength(Call& call) {
  FLEUVE_TRY(call.ToOneOf(0, {DataType::String(), DataType::Binary()}));
  const char* function = call.name == "octet_length" ? "spark_octet_length"
                         : call.name == "bit_length" ? "spark_bit_length"
                                                     : "spark_length";
  return call.Make(function, DataType::Int());
}

Result<ExprPtr> BuildSearch(Call& call) {
  // contains, startswith, endswith
  bool binary = call.type(0).Is(TypeKind::kBinary) && call.type(1).Is(TypeKind::kBinary);
  if (!binary) {
    FLEUVE_TRY(call.To(0, DataType::String()));
    FLEUVE_TRY(call.To(1, DataType::String()));
  }
  return call.Make("spark_" + call.name, DataType::Boolean(), binary || call.AnyNullable());
}

/// reverse: strings here; arrays go to the collection functions.
Result<ExprPtr> BuildReverse(Call& call) {
  if (call.type(0).Is(TypeKind::kArray)) {
    return call.Make("spark_array_reverse", call.type(0));
  }
  FLEUVE_TRY(call.To(0, DataType::String()));
  return call.Make("spark_reverse", DataType::String());
}

Result<ExprPtr> BuildOverlay(Call& call) {
  FLEUVE_TRY(call.ToOneOf(0, {DataType::String(), DataType::Binary()}));
  FLEUVE_TRY(call.To(1, StringOrBinary(call)));
  FLEUVE_TRY(call.To(2, DataType::Int()));
  if (call.size() == 3) {
    call.Default(Value(-1), DataType::Int());
  }
  FLEUVE_TRY(call.To(3, DataType::Int()));
  return call.Make("spark_overlay", StringOrBinary(call));
}

Result<ExprPtr> BuildElt(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Int()));
  bool binaries = true;
  for (std::size_t i = 1; i < call.size(); ++i) {
    binaries = binaries && call.type(i).Is(TypeKind::kBinary);
  }
  for (std::size_t i = 1; i < call.size() && !binaries; ++i) {
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  return call.Make("spark_elt" + ModeSuffix(call), binaries ? DataType::Binary() : DataType::String(), true,
                   call.ansi());
}

Result<ExprPtr> BuildFormatString(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  for (std::size_t i = 1; i < call.size(); ++i) {
    if (call.type(i).Is(TypeKind::kVoid)) {
      FLEUVE_TRY(call.Cast(i, DataType::String()));
    }
  }
  return call.Make("spark_format_string", DataType::String(), call.args[0]->nullable, true);
}

Result<ExprPtr> BuildFormatNumber(Call& call) {
  FLEUVE_TRY(call.ToNumeric(0));
  if (call.type(1).IsString()) {
    FLEUVE_TRY(call.To(1, DataType::String()));
  } else {
    FLEUVE_TRY(call.To(1, DataType::Int()));
  }
  return call.Make("spark_format_number", DataType::String(), true, true);
}

Result<ExprPtr> BuildBase64(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Binary()));
  return call.Make("spark_base64", DataType::String());
}

Result<ExprPtr> BuildHex(Call& call) {
  FLEUVE_TRY(call.ToOneOf(0, {DataType::Long(), DataType::Binary(), DataType::String()}));
  return call.Make("spark_hex", DataType::String());
}

Result<ExprPtr> BuildToBinary(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  bool is_try = call.name == "try_to_binary";
  std::string display = call.Display();
  if (call.size() == 1) {
    call.Hidden(Value("hex"), DataType::String());
  }
  FLEUVE_TRY(call.To(1, DataType::String()));
  const Value* format = call.LiteralOf(1);
  if (format == nullptr) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `fmt` should be a foldable \"STRING\" expression.");
  }
  static const std::set<std::string> kFormats = {"hex", "base64", "utf-8", "utf8"};
  if (format->is_null() || (is_try && !kFormats.contains(AsciiLower(format->text())))) {
    return call.Shown(MakeNull(DataType::Binary()), display);
  }
  const bool nullable = is_try || call.AnyNullable() || AsciiLower(format->text()) != "base64";
  return call.Shown(
      call.Make(is_try ? "spark_to_binary_try" : "spark_to_binary", DataType::Binary(), nullable, !is_try), display);
}

Result<ExprPtr> BuildParseUrl(Call& call) {
  for (std::size_t i = 0; i < call.size(); ++i) {
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  bool is_try = call.name == "try_parse_url" || !call.ansi();
  return call.Make(is_try ? "spark_parse_url_try" : "spark_parse_url", DataType::String(), true, !is_try);
}

Result<ExprPtr> BuildMask(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  static const char* kDefaults[] = {"X", "x", "n"};
  for (std::size_t i = 1; i < 5; ++i) {
    if (i < call.size()) {
      FLEUVE_TRY(call.To(i, DataType::String()));
    } else if (i < 4) {
      call.Default(Value(kDefaults[i - 1]), DataType::String());
    } else {
      call.Default(Value(), DataType::String());
    }
  }
  return call.Make("spark_mask", DataType::String(), true);
}

Result<ExprPtr> BuildSplitPart(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  FLEUVE_TRY(call.To(2, DataType::Int()));
  return call.Make("spark_split_part", DataType::String(), true, true);
}

Result<ExprPtr> BuildSentences(Call& call) {
  for (std::size_t i = 0; i < call.size(); ++i) {
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  while (call.size() < 3) {
    call.Default(Value(""), DataType::String());
  }
  DataType type = DataType::Array(DataType::Array(DataType::String(), false), false);
  return call.Make("spark_sentences", type, true);
}

Result<ExprPtr> BuildEncode(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  return call.Make("spark_encode", DataType::Binary(), true, true);
}

Result<ExprPtr> BuildStrToMap(Call& call) {
  for (std::size_t i = 0; i < call.size(); ++i) {
    FLEUVE_TRY(call.To(i, DataType::String()));
  }
  if (call.size() < 2) {
    call.Default(Value(","), DataType::String());
  }
  if (call.size() < 3) {
    call.Default(Value(":"), DataType::String());
  }
  bool last_wins = false;
  if (call.config.conf) {
    auto policy = call.config.conf("spark.sql.mapKeyDedupPolicy");
    last_wins = policy && *policy == "LAST_WIN";
  }
  call.Hidden(Value(last_wins), DataType::Boolean());
  return call.Make("spark_str_to_map", DataType::Map(DataType::String(), DataType::String()), call.args[0]->nullable,
                   true);
}

Result<ExprPtr> BuildSpace(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::Int()));
  return call.Make("spark_space", DataType::String());
}

Result<ExprPtr> BuildRepeat(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::Int()));
  return call.Make("spark_repeat", DataType::String());
}

Result<ExprPtr> BuildToNumber(Call& call) {
  FLEUVE_TRY(call.To(0, DataType::String()));
  FLEUVE_TRY(call.To(1, DataType::String()));
  const Value* format = call.LiteralOf(1);
  if (format == nullptr || format->is_null()) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `format` should be a foldable \"STRING\" expression.");
  }
  int before = 0;
  int after = 0;
  bool point = false;
  for (char c : format->text()) {
    if (c == '.' || c == 'D' || c == 'd') {
      point = true;
    } else if (c == '9' || c == '0') {
      ++(point ? after : before);
    }
  }
  bool is_try = call.name == "try_to_number";
  return call.Make(is_try ? "spark_to_number_try" : "spark_to_number", DataType::Decimal(before + after, after),
                   is_try || call.AnyNullable(), !is_try);
}

/// to_char / to_varchar: numbers, dates and timestamps, binary.
Result<ExprPtr> BuildToChar(Call& call) {
  const DataType& type = call.type(0);
  if (type.IsDateTime()) {
    return CallNamed(call, "date_format", {call.args[0], call.args[1]});
  }
  if (type.Is(TypeKind::kBinary)) {
    const Value* format = call.LiteralOf(1);
    if (format == nullptr || format->is_null()) {
      return call.Mismatch("NON_FOLDABLE_INPUT", "the input `format` should be a foldable \"STRING\" expression.");
    }
    std::string text = format->text();
    const char* name = text == "base64" ? "base64" : text == "hex" ? "hex" : nullptr;
    Result<ExprPtr> made =
        name != nullptr ? CallNamed(call, name, {call.args[0]})
                        : CallNamed(call, "decode", {call.args[0], MakeLiteral(Value(text), DataType::String())});
    // to_varchar keeps its name, without the format where that is no argument of what it stands for.
    if (!made.ok() || call.name == "to_char") {
      return made;
    }
    return call.Shown(*made, name != nullptr ? call.name + "(" + call.shown[0] + ")" : call.Display());
  }
  if (type.IsIntegral()) {
    FLEUVE_TRY(call.Cast(0, DecimalForType(type)));
  } else if (!type.Is(TypeKind::kDecimal)) {
    FLEUVE_TRY(call.To(0, DataType::Decimal(38, 18)));
  }
  FLEUVE_TRY(call.To(1, DataType::String()));
  const Value* format = call.LiteralOf(1);
  if (format == nullptr || format->is_null()) {
    return call.Mismatch("NON_FOLDABLE_INPUT", "the input `format` should be a foldable \"STRING\" expression.");
  }
  call.name = "to_char";
  return call.Make("spark_to_char", DataType::String(), call.AnyNullable(), true);
}

Result<ExprPtr> BuildTrimmedCollation(Call& call) {
  return WithDisplay(
      MakeLiteral(Value("SYSTEM.BUILTIN." +
                        (call.type(0).collation().empty() ? std::string("UTF8_BINARY") : call.type(0).collation())),
                  DataType::String()),
      call.Display());
}

}  // namespace

const Table& StringFunctions() {
  static const Table table = {
      Scalar("concat", 0, -1, BuildConcat),
      Scalar("||", 2, 2, BuildConcat),
      Scalar("concat_ws", 1, -1, BuildConcatWs),
      Scalar("substring", 2, 3, BuildSubstring),
      Scalar("substr", 2, 3, BuildSubstring),
      Scalar("left", 2, 2, BuildLeft),
      Scalar("right", 2, 2, BuildLeft),
      Scalar("lpad", 2, 3, BuildPad),
      Scalar("rpad", 2, 3, BuildPad),
      Scalar("trim", 1, 2, BuildTrim),
      Scalar("ltrim", 1, 2, BuildTrim),
      Scalar("rtrim", 1, 2, BuildTrim),
      Scalar("btrim", 1, 2, BuildTrim),
      Scalar("trim_leading", 2, 2, BuildTrim),
      Scalar("trim_trailing", 2, 2, BuildTrim),
      Scalar("length", 1, 1, BuildLength),
      Scalar("len", 1, 1, BuildLength),
      Scalar("char_length", 1, 1, BuildLength),
      Scalar("character_length", 1, 1, BuildLength),
      Scalar("octet_length", 1, 1, BuildLength),
      Scalar("bit_length", 1, 1, BuildLength),
      Scalar("contains", 2, 2, BuildSearch),
      Scalar("startswith", 2, 2, BuildSearch),
      Scalar("endswith", 2, 2, BuildSearch),
      Scalar("reverse", 1, 1, BuildReverse),
      Scalar("overlay", 3, 4, BuildOverlay),
      Scalar("elt", 2, -1, BuildElt),
      Scalar("format_string", 1, -1, BuildFormatString),
      Scalar("printf", 1, -1, BuildFormatString),
      Scalar("format_number", 2, 2, BuildFormatNumber),
      Scalar("base64", 1, 1, BuildBase64),
      Scalar("hex", 1, 1, BuildHex),
      Scalar("to_binary", 1, 2, BuildToBinary),
      Scalar("try_to_binary", 1, 2, BuildToBinary),
      Scalar("parse_url", 2, 3, BuildParseUrl),
      Scalar("try_parse_url", 2, 3, BuildParseUrl),
      Scalar("mask", 1, 5, BuildMask),
      Scalar("split_part", 3, 3, BuildSplitPart),
      Scalar("sentences", 1, 3, BuildSentences),
      Scalar("encode", 2, 2, BuildEncode),
      Scalar("str_to_map", 1, 3, BuildStrToMap),
      Scalar("space", 1, 1, BuildSpace),
      Scalar("repeat", 2, 2, BuildRepeat),
      Scalar("to_number", 2, 2, BuildToNumber),
      Scalar("try_to_number", 2, 2, BuildToNumber),
      Scalar("to_char", 2, 2, BuildToChar),
      Scalar("to_varchar", 2, 2, BuildToChar),
      Scalar("collation", 1, 1, BuildTrimmedCollation),
      Simple("upper", "spark_upper", "s>s"),
      Simple("ucase", "spark_upper", "s>s"),
      Simple("lower", "spark_lower", "s>s"),
      Simple("lcase", "spark_lower", "s>s"),
      Simple("initcap", "spark_initcap", "s>s"),
      Simple("ascii", "spark_ascii", "s>i"),
      Simple("chr", "spark_chr", "l>s"),
      Simple("char", "spark_chr", "l>s"),
      Simple("instr", "spark_instr", "ss>i"),
      Simple("locate", "spark_locate", "ss,i=1>i"),
      Simple("position", "spark_locate", "ss,i=1>i"),
      Simple("find_in_set", "spark_find_in_set", "ss>i"),
      Simple("levenshtein", "spark_levenshtein", "ss,i>i"),
      Simple("soundex", "spark_soundex", "s>s"),
      Simple("replace", "spark_replace", "ss,s=>s"),
      Simple("translate", "spark_translate", "sss>s"),
      Simple("substring_index", "spark_substring_index", "ssi>s"),
      Simple("unbase64", "spark_unbase64", "s>x", kFails),
      Simple("unhex", "spark_unhex", "s>x", kNullable),
      Simple("url_encode", "spark_url_encode", "s>s", kNullable),
      Simple("url_decode", "spark_url_decode", "s>s", kFails | kNullable),
      Simple("try_url_decode", "spark_url_decode_try", "s>s", kNullable),
      Simple("luhn_check", "spark_luhn_check", "s>b", kNullable),
      Simple("is_valid_utf8", "spark_is_valid_utf8", "s>b", kNullable),
      Simple("make_valid_utf8", "spark_make_valid_utf8", "s>s", kNullable),
      Simple("validate_utf8", "spark_validate_utf8", "s>s", kFails | kNullable),
      Simple("try_validate_utf8", "spark_try_validate_utf8", "s>s", kNullable),
      Simple("quote", "spark_quote", "s>s", kNullable),
  };
  return table;
}

}  // namespace fleuve::plan::functions
