#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/functions/aggregates_internal.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/text_numbers_internal.h"
#include "engine/functions/text_split_internal.h"
#include "engine/functions/utf8_internal.h"

namespace fleuve::engine {

namespace {

using plan::CastMode;
using types::DataType;
using types::TypeKind;

/// Commas between groups of three digits of the whole part.
std::string Grouped(const std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) {
      out += ',';
    }
    out += digits[i];
  }
  return out;
}

// ---- format_string ----

/// One argument of format_string in plain C++.
struct FormatArgument {
  enum class Kind { kNull, kBoolean, kWhole, kReal, kDecimal, kText } kind = Kind::kNull;
  bool boolean = false;
  Int128 whole = 0;  ///< also the unscaled value of a decimal
  int scale = 0;
  int bytes = 8;  ///< of a whole number
  double real = 0;
  bool single = false;
  Str text;
};

struct FormatSpec {
  bool left = false, plus = false, space = false, zero = false, comma = false, paren = false, alternate = false;
  int width = -1;
  int precision = -1;
  char conversion = 0;
  bool upper = false;
};

[[noreturn]] void FailFormat(Str format, const std::string& why) {
  // Java's own exception, without a condition.
  ThrowRowError(Error(ErrorKind::kInvalidArgument, "",
                      "The format '" + std::string(format) + "' of `format_string` is invalid: " + why + ".")
                    .Family(ErrorFamily::kIllegalArgument));
}

std::string Padded(const FormatSpec& spec, std::string body) {
  std::int64_t have = CountCharacters(body);
  if (spec.width > have) {
    std::string fill(static_cast<std::size_t>(spec.width - have), ' ');
    body = spec.left ? body + fill : fill + body;
  }
  return body;
}

/// Sign, grouping and zeros around the digits of a number.
std::string Signed(const FormatSpec& spec, bool negative, std::string digits) {
  std::size_t whole = digits.find_first_not_of("0123456789");
  if (spec.comma) {
    digits = Grouped(digits.substr(0, whole)) + (whole == std::string::npos ? "" : digits.substr(whole));
  }
  std::string prefix = negative ? (spec.paren ? "(" : "-") : spec.plus ? "+" : spec.space ? " " : "";
  std::string suffix = negative && spec.paren ? ")" : "";
  if (spec.zero) {
    std::size_t size = prefix.size() + digits.size() + suffix.size();
    if (spec.width > static_cast<int>(size)) {
      digits.insert(0, static_cast<std::size_t>(spec.width) - size, '0');
    }
  }
  return Padded(spec, prefix + digits + suffix);
}

/// Digits of a double with `precision` decimals, rounded half up on its decimal form.
std::string FixedDigits(double value, int precision) {
  Int128 unscaled = 0;
  double magnitude = std::fabs(value);
  if (magnitude < 1e18 && precision <= 15 &&
      ParseDecimal(JavaDoubleToString(magnitude), 38, precision, &unscaled) == DecimalParse::kOk) {
    return types::DecimalToString(unscaled, precision);
  }
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, "%.*f", precision, magnitude);
  return buffer;
}

std::string FormatOne(const FormatSpec& spec, const FormatArgument& argument, Str format) {
  using Kind = FormatArgument::Kind;
  switch (spec.conversion) {
    case 'b':
      return Padded(spec, argument.kind == Kind::kNull      ? "false"
                          : argument.kind == Kind::kBoolean ? (argument.boolean ? "true" : "false")
                                                            : "true");
    case 's': {
      std::string text;
      switch (argument.kind) {
        case Kind::kNull:
          text = "null";
          break;
        case Kind::kBoolean:
          text = argument.boolean ? "true" : "false";
          break;
        case Kind::kWhole:
          text = types::DecimalToString(argument.whole, 0);
          break;
        case Kind::kReal:
          text = argument.single ? JavaFloatToString(static_cast<float>(argument.real))
                                 : JavaDoubleToString(argument.real);
          break;
        case Kind::kDecimal:
          text = types::DecimalToString(argument.whole, argument.scale);
          break;
        case Kind::kText:
          text = std::string(argument.text);
          break;
      }
      if (spec.precision >= 0) {
        text = text.substr(0, OffsetOf(text, spec.precision));
      }
      return Padded(spec, text);
    }
    default:
      break;
  }
  if (argument.kind == Kind::kNull) {
    return Padded(spec, "null");
  }
  switch (spec.conversion) {
    case 'd': {
      if (argument.kind != Kind::kWhole) {
        FailFormat(format, "d != a value that is no integer");
      }
      bool negative = argument.whole < 0;
      return Signed(spec, negative, types::DecimalToString(negative ? -argument.whole : argument.whole, 0));
    }
    case 'x':
    case 'o': {
      if (argument.kind != Kind::kWhole) {
        FailFormat(format, std::string(1, spec.conversion) + " != a value that is no integer");
      }
      auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(argument.whole));
      if (argument.bytes < 8) {
        bits &= (std::uint64_t{1} << (argument.bytes * 8)) - 1;
      }
      std::string digits;
      unsigned shift = spec.conversion == 'x' ? 4 : 3;
      do {
        digits.insert(digits.begin(), "0123456789abcdef"[bits & ((1U << shift) - 1)]);
        bits >>= shift;
      } while (bits != 0);
      if (spec.alternate) {
        digits.insert(0, spec.conversion == 'x' ? "0x" : "0");
      }
      if (spec.zero && spec.width > static_cast<int>(digits.size())) {
        digits.insert(0, static_cast<std::size_t>(spec.width) - digits.size(), '0');
      }
      return Padded(spec, digits);
    }
    case 'c': {
      std::string out;
      if (argument.kind == Kind::kWhole) {
        AppendUtf8(out, static_cast<std::uint32_t>(argument.whole));
      } else {
        FailFormat(format, "c != a value that is no character");
      }
      return Padded(spec, out);
    }
    case 'f':
    case 'e':
    case 'g': {
      int precision = spec.precision >= 0 ? spec.precision : 6;
      if (argument.kind == Kind::kDecimal && spec.conversion == 'f') {
        bool negative = argument.whole < 0;
        Int128 magnitude = negative ? -argument.whole : argument.whole;
        std::string digits;
        if (precision <= argument.scale) {
          digits = types::DecimalToString(DropDigits(magnitude, argument.scale - precision), precision);
        } else {
          digits = types::DecimalToString(magnitude, argument.scale);
          if (argument.scale == 0) {
            digits += '.';
          }
          digits.append(static_cast<std::size_t>(precision - argument.scale), '0');
        }
        return Signed(spec, negative, digits);
      }
      double value = 0;
      if (argument.kind == Kind::kReal) {
        value = argument.real;
      } else if (argument.kind == Kind::kDecimal) {
        value = std::strtod(types::DecimalToString(argument.whole, argument.scale).c_str(), nullptr);
      } else {
        FailFormat(format, std::string(1, spec.conversion) + " != a value that is no fraction");
      }
      if (std::isnan(value)) {
        return Padded(spec, "NaN");
      }
      bool negative = std::signbit(value);
      if (std::isinf(value)) {
        FormatSpec plain = spec;
        plain.zero = false;
        plain.comma = false;
        return Signed(plain, negative, "Infinity");
      }
      if (spec.conversion == 'f') {
        return Signed(spec, negative, FixedDigits(value, precision));
      }
      char buffer[512];
      if (spec.conversion == 'e') {
        std::snprintf(buffer, sizeof buffer, "%.*e", precision, std::fabs(value));
        return Signed(spec, negative, buffer);
      }
      if (precision == 0) {
        precision = 1;
      }
      double magnitude = std::fabs(value);
      if (magnitude != 0 && (magnitude < 1e-4 || magnitude >= std::pow(10, precision))) {
        std::snprintf(buffer, sizeof buffer, "%.*e", precision - 1, magnitude);
      } else {
        int exponent = magnitude == 0 ? 0 : static_cast<int>(std::floor(std::log10(magnitude)));
        std::snprintf(buffer, sizeof buffer, "%.*f", std::max(precision - 1 - exponent, 0), magnitude);
      }
      return Signed(spec, negative, buffer);
    }
    default:
      FailFormat(format, std::string("unknown conversion ") + spec.conversion);
  }
}

std::string FormatAll(Str format, const std::vector<FormatArgument>& arguments) {
  std::string out;
  std::size_t next = 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < format.size();) {
    if (format[i] != '%') {
      out += format[i++];
      continue;
    }
    ++i;
    FormatSpec spec;
    std::size_t index = 0;
    auto number = [&]() {
      std::size_t value = 0;
      while (i < format.size() && format[i] >= '0' && format[i] <= '9') {
        value = std::min<std::size_t>(value * 10 + static_cast<std::size_t>(format[i++] - '0'), 100000);
      }
      return value;
    };
    std::size_t mark = i;
    std::size_t first = number();
    if (i < format.size() && format[i] == '$' && i > mark) {
      index = first;
      ++i;
    } else {
      i = mark;
    }
    bool relative = false;
    for (bool flags = true; flags && i < format.size();) {
      switch (format[i]) {
        case '-':
          spec.left = true;
          break;
        case '+':
          spec.plus = true;
          break;
        case ' ':
          spec.space = true;
          break;
        case '0':
          spec.zero = true;
          break;
        case ',':
          spec.comma = true;
          break;
        case '(':
          spec.paren = true;
          break;
        case '#':
          spec.alternate = true;
          break;
        case '<':
          relative = true;
          break;
        default:
          flags = false;
          continue;
      }
      ++i;
    }
    if (i < format.size() && format[i] >= '1' && format[i] <= '9') {
      spec.width = static_cast<int>(number());
    }
    if (i < format.size() && format[i] == '.') {
      ++i;
      spec.precision = static_cast<int>(number());
    }
    if (i >= format.size()) {
      FailFormat(format, "it ends within a conversion");
    }
    char c = format[i++];
    if (c == '%') {
      out += Padded(spec, "%");
      continue;
    }
    if (c == 'n') {
      out += '\n';
      continue;
    }
    spec.upper = c >= 'A' && c <= 'Z';
    spec.conversion = static_cast<char>(spec.upper ? c + 32 : c);
    if (std::string_view("bsdxocfeg").find(spec.conversion) == Str::npos || c == 'D' || c == 'O' || c == 'F') {
      FailFormat(format, std::string("unknown conversion ") + c);
    }
    std::size_t at = relative ? last : index > 0 ? index - 1 : next++;
    if (at >= arguments.size()) {
      FailFormat(format, "an argument is missing");
    }
    last = at;
    std::string one = FormatOne(spec, arguments[at], format);
    out += spec.upper ? UpperText(one) : one;
  }
  return out;
}

Result<Kernel> MakeFormatString(const ScalarSite& site) {
  std::vector<DataType> types;
  for (std::size_t i = 1; i < site.size(); ++i) {
    const DataType& type = site.ArgumentType(i);
    if (type.IsNested() || type.Is(TypeKind::kCalendarInterval) || type.Is(TypeKind::kVariant)) {
      return Error::Unsupported("format_string of " + type.Sql());
    }
    types.push_back(type);
  }
  return Kernel([types](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column format(args.data[0], args.size());
    std::vector<Column> columns;
    for (std::size_t i = 0; i < types.size(); ++i) {
      columns.emplace_back(args.data[i + 1], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    std::vector<FormatArgument> arguments(types.size());
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (format.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      for (std::size_t i = 0; i < types.size(); ++i) {
        FormatArgument& argument = arguments[i];
        argument = FormatArgument();
        if (columns[i].IsNull(row)) {
          continue;
        }
        WithCarrier(types[i], [&](auto zero) {
          using T = decltype(zero);
          T value = columns[i].Get<T>(row);
          if constexpr (std::is_same_v<T, Str>) {
            argument.kind = FormatArgument::Kind::kText;
            argument.text = value;
          } else if constexpr (std::is_same_v<T, bool>) {
            argument.kind = FormatArgument::Kind::kBoolean;
            argument.boolean = value;
          } else if constexpr (std::is_floating_point_v<T>) {
            argument.kind = FormatArgument::Kind::kReal;
            argument.real = static_cast<double>(value);
            argument.single = sizeof(T) == 4;
          } else {
            bool decimal = types[i].Is(TypeKind::kDecimal);
            argument.kind = decimal ? FormatArgument::Kind::kDecimal : FormatArgument::Kind::kWhole;
            argument.whole = value;
            argument.scale = decimal ? types[i].scale() : 0;
            argument.bytes = sizeof(T);
          }
        });
      }
      out[row] = Physical<Str>::Write(result, FormatAll(format.Get<Str>(row), arguments));
    }
  });
}

// ---- format_number ----

/// A decimal pattern: optional grouping, least and most digits.
struct NumberPattern {
  bool grouping = true;
  int least_whole = 1;
  int least_fraction = 0;
  int most_fraction = 0;
  std::string prefix, suffix;
};

NumberPattern ParseNumberPattern(Str text) {
  NumberPattern pattern;
  pattern.grouping = false;
  pattern.least_whole = 0;
  bool fraction = false;
  bool seen = false;
  for (char c : text) {
    if (c == ';') {
      break;
    }
    if (c == '#' || c == '0') {
      seen = true;
      if (fraction) {
        ++pattern.most_fraction;
        pattern.least_fraction += c == '0' ? 1 : 0;
      } else {
        pattern.least_whole += c == '0' ? 1 : 0;
      }
    } else if (c == ',') {
      pattern.grouping = true;
    } else if (c == '.') {
      fraction = true;
    } else if (c == '%' || c == 'E' || c == '\'') {
      ThrowRowError(Error::Unsupported("format_number with the pattern " + std::string(text)));
    } else {
      (seen ? pattern.suffix : pattern.prefix) += c;
    }
  }
  return pattern;
}

/// Text of unscaled / 10^scale by a pattern, rounded half to even as Java's DecimalFormat.
std::string FormatByPattern(bool negative, const std::string& plain, const NumberPattern& pattern) {
  std::size_t point = plain.find('.');
  std::string whole = plain.substr(0, point);
  std::string fraction = point == std::string::npos ? "" : plain.substr(point + 1);
  auto most = static_cast<std::size_t>(pattern.most_fraction);
  if (fraction.size() > most) {
    char next = fraction[most];
    bool rest = fraction.find_first_not_of('0', most + 1) != std::string::npos;
    std::string kept = whole + fraction.substr(0, most);
    bool odd = !kept.empty() && (kept.back() - '0') % 2 != 0;
    if (next > '5' || (next == '5' && (rest || odd))) {
      std::size_t i = kept.size();
      while (i > 0 && kept[i - 1] == '9') {
        kept[--i] = '0';
      }
      if (i == 0) {
        kept.insert(kept.begin(), '1');
      } else {
        ++kept[i - 1];
      }
    }
    whole = kept.substr(0, kept.size() - most);
    fraction = kept.substr(kept.size() - most);
  }
  while (fraction.size() > static_cast<std::size_t>(pattern.least_fraction) && fraction.back() == '0') {
    fraction.pop_back();
  }
  fraction.append(
      std::max<std::size_t>(static_cast<std::size_t>(pattern.least_fraction), fraction.size()) - fraction.size(), '0');
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  if (static_cast<int>(whole.size()) < pattern.least_whole) {
    whole.insert(0, static_cast<std::size_t>(pattern.least_whole) - whole.size(), '0');
  }
  if (whole.empty() && fraction.empty()) {
    whole = "0";
  }
  std::string out = pattern.grouping ? Grouped(whole) : whole;
  if (!fraction.empty()) {
    out += "." + fraction;
  }
  return (negative ? "-" : "") + pattern.prefix + out + pattern.suffix;
}

/// All decimal digits of a number: `1234.5`, never with an exponent.
template <typename T>
std::string PlainDigits(T value, int scale, bool* negative, std::optional<std::string>* special) {
  if constexpr (std::is_floating_point_v<T>) {
    *negative = std::signbit(value);
    if (std::isnan(value)) {
      *special = "NaN";
    } else if (std::isinf(value)) {
      *special = *negative ? "-\xE2\x88\x9E" : "\xE2\x88\x9E";
    }
    // The shortest digits, moved out of their exponent.
    std::string text = JavaDoubleToString(std::fabs(static_cast<double>(value)));
    std::size_t e = text.find('E');
    if (e == std::string::npos) {
      return text;
    }
    int exponent = std::atoi(text.c_str() + e + 1);
    std::string digits = text.substr(0, 1) + text.substr(2, e - 2);
    int point = 1 + exponent;
    if (point <= 0) {
      return "0." + std::string(static_cast<std::size_t>(-point), '0') + digits;
    }
    if (static_cast<std::size_t>(point) >= digits.size()) {
      return digits + std::string(static_cast<std::size_t>(point) - digits.size(), '0');
    }
    return digits.substr(0, static_cast<std::size_t>(point)) + "." + digits.substr(static_cast<std::size_t>(point));
  } else {
    Int128 wide = value;
    *negative = wide < 0;
    return types::DecimalToString(wide < 0 ? -wide : wide, scale);
  }
}

Result<Kernel> MakeFormatNumber(const ScalarSite& site) {
  DataType type = site.ArgumentType(0);
  bool by_pattern = site.ArgumentType(1).IsString();
  return Kernel([type, by_pattern](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column number(args.data[0], args.size());
    Column digits(args.data[1], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (number.IsNull(row) || digits.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      NumberPattern pattern;
      if (by_pattern) {
        Str text = digits.Get<Str>(row);
        if (text.empty()) {
          pattern.most_fraction = 0;
        } else {
          pattern = ParseNumberPattern(text);
        }
      } else {
        std::int32_t places = digits.Get<std::int32_t>(row);
        if (places < 0) {
          duckdb::FlatVector::SetNull(result, row, true);
          continue;
        }
        pattern.least_fraction = places;
        pattern.most_fraction = places;
      }
      bool negative = false;
      std::optional<std::string> special;
      std::string plain;
      WithCarrier(type, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (!std::is_same_v<T, Str> && !std::is_same_v<T, bool>) {
          plain = PlainDigits(number.Get<T>(row), type.Is(TypeKind::kDecimal) ? type.scale() : 0, &negative, &special);
        }
      });
      out[row] = Physical<Str>::Write(result, special ? *special : FormatByPattern(negative, plain, pattern));
    }
  });
}

// ---- to_char, to_number ----

/// A number format of Spark: `$99G999D99S`.
struct NumberFormat {
  std::string whole;     ///< of 9, 0 and comma
  std::string fraction;  ///< of 9 and 0
  bool dollar = false;
  char sign = 0;  ///< S or M (MI)
  bool sign_first = false;
  bool brackets = false;

  std::size_t WholeDigits() const {
    return static_cast<std::size_t>(std::count_if(whole.begin(), whole.end(), [](char c) { return c != ','; }));
  }
};

Error BadNumberFormat(const std::string& format) {
  return Error(ErrorKind::kInvalidArgument, "INVALID_FORMAT.UNEXPECTED_TOKEN",
               "The format is invalid: '" + format + "'. Found an unexpected token.")
      .With("format", "'" + format + "'");
}

Result<NumberFormat> ParseNumberFormat(const std::string& source) {
  std::string text = AsciiUpper(source);
  NumberFormat out;
  bool fraction = false;
  bool digits = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '9' || c == '0') {
      digits = true;
      (fraction ? out.fraction : out.whole) += c;
    } else if ((c == ',' || c == 'G') && !fraction) {
      out.whole += ',';
    } else if ((c == '.' || c == 'D') && !fraction) {
      fraction = true;
    } else if (c == '$' && !out.dollar) {
      out.dollar = true;
    } else if (c == 'S' && out.sign == 0) {
      out.sign = 'S';
      out.sign_first = !digits;
    } else if (c == 'M' && i + 1 < text.size() && text[i + 1] == 'I' && out.sign == 0) {
      out.sign = 'M';
      out.sign_first = !digits;
      ++i;
    } else if (c == 'P' && i + 2 == text.size() && text[i + 1] == 'R') {
      out.brackets = true;
      ++i;
    } else {
      return BadNumberFormat(source);
    }
  }
  if (!digits) {
    return BadNumberFormat(source);
  }
  return out;
}

/// The unscaled value that `text` shows in this format; nullopt where it does not match.
std::optional<Int128> ReadNumber(const NumberFormat& format, Str input) {
  Str text = TrimAll(input);
  bool negative = false;
  if (format.brackets && !text.empty() && text.front() == '<' && text.back() == '>') {
    negative = true;
    text = text.substr(1, text.size() - 2);
  }
  auto take_sign = [&](bool front) {
    if (text.empty()) {
      return;
    }
    char c = front ? text.front() : text.back();
    if (c == '-' || (c == '+' && format.sign == 'S')) {
      negative = c == '-';
      front ? text.remove_prefix(1) : text.remove_suffix(1);
    }
  };
  if (format.sign != 0) {
    take_sign(format.sign_first);
  }
  if (format.dollar) {
    if (text.empty() || text.front() != '$') {
      return std::nullopt;
    }
    text.remove_prefix(1);
    if (format.sign != 0 && format.sign_first && !negative) {
      take_sign(true);
    }
  }
  std::size_t point = text.find('.');
  Str whole = text.substr(0, point);
  Str fraction = point == Str::npos ? Str() : text.substr(point + 1);
  if (point != Str::npos && format.fraction.empty()) {
    return std::nullopt;
  }
  // The whole part against the format, from the right.
  std::size_t f = format.whole.size();
  std::size_t w = whole.size();
  std::string digits;
  while (w > 0) {
    char c = whole[--w];
    if (f == 0) {
      return std::nullopt;
    }
    char expected = format.whole[--f];
    if (c == ',') {
      if (expected != ',') {
        return std::nullopt;
      }
    } else if (c >= '0' && c <= '9') {
      if (expected == ',') {
        return std::nullopt;
      }
      digits.insert(digits.begin(), c);
    } else {
      return std::nullopt;
    }
  }
  // Digits that the format demands (a run that starts with 0) must be there.
  if (!format.whole.empty() && format.whole.front() == '0' && digits.size() < format.WholeDigits()) {
    return std::nullopt;
  }
  if (digits.empty() && fraction.empty()) {
    return std::nullopt;
  }
  if (fraction.size() > format.fraction.size()) {
    return std::nullopt;
  }
  for (char c : fraction) {
    if (c < '0' || c > '9') {
      return std::nullopt;
    }
    digits += c;
  }
  digits.append(format.fraction.size() - fraction.size(), '0');
  Int128 value = 0;
  for (char c : digits) {
    value = value * 10 + (c - '0');
  }
  return negative ? -value : value;
}

Result<Kernel> MakeToNumber(const ScalarSite& site) {
  FLEUVE_ASSIGN(NumberFormat format, ParseNumberFormat(site.Literal(1).text()));
  std::string source = site.Literal(1).text();
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  return WithDecimalCarrier(site.expr.type.precision(), [&](auto zero) -> Result<Kernel> {
    using T = decltype(zero);
    return MapRows<T, Str>([format, source, is_try](Str text) -> std::optional<T> {
      auto value = ReadNumber(format, text);
      if (!value && !is_try) {
        ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_FORMAT.MISMATCH_INPUT",
                            "The format is invalid: '" + source + "'. The input \"STRING\" '" + std::string(text) +
                                "' does not match the format.")
                          .With("format", "'" + source + "'")
                          .With("input", "'" + std::string(text) + "'")
                          .Family(ErrorFamily::kIllegalArgument));
      }
      return value ? std::optional<T>(static_cast<T>(*value)) : std::nullopt;
    });
  });
}

std::string WriteNumber(const NumberFormat& format, Int128 value, int scale) {
  bool negative = value < 0;
  std::string plain = types::DecimalToString(negative ? -value : value, scale);
  std::size_t point = plain.find('.');
  std::string whole = plain.substr(0, point);
  std::string fraction = point == std::string::npos ? "" : plain.substr(point + 1);
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  bool fits = whole.size() <= format.WholeDigits();
  if (fraction.size() > format.fraction.size()) {
    fits = fits && fraction.find_first_not_of('0', format.fraction.size()) == std::string::npos;
    fraction.resize(format.fraction.size());
  }
  std::string body;
  std::size_t w = whole.size();
  bool zeros = false;
  // From the right; where the number has no more digits the format decides.
  std::string reversed;
  std::size_t first_zero = format.whole.find('0');
  for (std::size_t f = format.whole.size(); f > 0; --f) {
    char c = format.whole[f - 1];
    zeros = first_zero != std::string::npos && f - 1 >= first_zero;
    if (c == ',') {
      reversed += w > 0 || zeros ? ',' : ' ';
    } else if (!fits) {
      reversed += '#';
    } else if (w > 0) {
      reversed += whole[--w];
    } else {
      reversed += zeros || (f == format.whole.size() && format.fraction.empty()) ? '0' : ' ';
    }
  }
  body.assign(reversed.rbegin(), reversed.rend());
  std::size_t blanks = std::min(body.find_first_not_of(' '), body.size());
  std::string lead = body.substr(0, blanks);
  body = body.substr(blanks);
  if (!format.fraction.empty()) {
    fraction.append(format.fraction.size() - fraction.size(), '0');
    body += "." + (fits ? fraction : std::string(format.fraction.size(), '#'));
  }
  if (format.dollar) {
    body = "$" + body;
  }
  std::string sign = format.sign == 'S' ? (negative ? "-" : "+") : format.sign == 'M' ? (negative ? "-" : " ") : "";
  body = format.sign_first ? sign + body : body + sign;
  if (format.brackets) {
    body = negative ? "<" + body + ">" : " " + body + " ";
  }
  return lead + body;
}

Result<Kernel> MakeToChar(const ScalarSite& site) {
  FLEUVE_ASSIGN(NumberFormat format, ParseNumberFormat(site.Literal(1).text()));
  int scale = site.ArgumentType(0).scale();
  return WithDecimalCarrier(site.ArgumentType(0).precision(), [&](auto zero) -> Result<Kernel> {
    using T = decltype(zero);
    return MapRows<Str, T>([format, scale](T value) { return WriteNumber(format, Int128{value}, scale); });
  });
}

// ---- sentences, str_to_map ----

Result<Kernel> MakeSentences(const ScalarSite& site) {
  std::string language =
      site.size() > 1 && site.IsLiteral(1) && !site.Literal(1).is_null() ? site.Literal(1).text() : "en";
  return Kernel([language](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column text(args.data[0], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    UErrorCode status = U_ZERO_ERROR;
    icu::Locale locale(language.c_str());
    std::unique_ptr<icu::BreakIterator> sentences(icu::BreakIterator::createSentenceInstance(locale, status));
    std::unique_ptr<icu::BreakIterator> words(icu::BreakIterator::createWordInstance(locale, status));
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (text.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      Str bytes = text.Get<Str>(row);
      icu::UnicodeString wide =
          icu::UnicodeString::fromUTF8(icu::StringPiece(bytes.data(), static_cast<int>(bytes.size())));
      sentences->setText(wide);
      duckdb::vector<duckdb::Value> all;
      for (int from = sentences->first(), to = sentences->next(); to != icu::BreakIterator::DONE;
           from = to, to = sentences->next()) {
        icu::UnicodeString sentence(wide, from, to - from);
        words->setText(sentence);
        duckdb::vector<duckdb::Value> parts;
        for (int a = words->first(), b = words->next(); b != icu::BreakIterator::DONE; a = b, b = words->next()) {
          if (words->getRuleStatus() >= 100) {
            std::string word;
            sentence.tempSubStringBetween(a, b).toUTF8String(word);
            parts.emplace_back(word);
          }
        }
        all.push_back(duckdb::Value::LIST(duckdb::LogicalType::VARCHAR, std::move(parts)));
      }
      result.SetValue(row,
                      duckdb::Value::LIST(duckdb::LogicalType::LIST(duckdb::LogicalType::VARCHAR), std::move(all)));
    }
  });
}

/// str_to_map(text, pair delimiter, key delimiter, last_wins)
Result<Kernel> MakeStrToMap(const ScalarSite& site) {
  bool last_wins = site.Literal(3).boolean();
  return Kernel([last_wins](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column text(args.data[0], args.size());
    Column pairs(args.data[1], args.size());
    Column separator(args.data[2], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (text.IsNull(row) || pairs.IsNull(row) || separator.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      std::vector<std::string> parts;
      SplitText(text.Get<Str>(row), pairs.Get<Str>(row), -1, parts);
      std::vector<std::pair<std::string, std::optional<std::string>>> entries;
      for (const std::string& part : parts) {
        std::vector<std::string> sides;
        SplitText(part, separator.Get<Str>(row), 2, sides);
        std::optional<std::string> value;
        if (sides.size() > 1) {
          value = sides[1];
        }
        auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == sides[0]; });
        if (found == entries.end()) {
          entries.emplace_back(sides[0], value);
        } else if (last_wins) {
          found->second = value;
        } else {
          ThrowRowError(
              Error(ErrorKind::kInvalidArgument, "DUPLICATED_MAP_KEY",
                    "Duplicate map key " + sides[0] +
                        " was found, please check the input data. If you want to remove the duplicated keys, "
                        "you can set \"spark.sql.mapKeyDedupPolicy\" to \"LAST_WIN\" so that the key inserted "
                        "at last takes precedence.")
                  .With("key", sides[0])
                  .With("mapKeyDedupPolicy", "\"spark.sql.mapKeyDedupPolicy\"")
                  .Family(ErrorFamily::kRuntime));
        }
      }
      duckdb::vector<duckdb::Value> keys;
      duckdb::vector<duckdb::Value> values;
      for (const auto& [key, value] : entries) {
        keys.emplace_back(key);
        values.push_back(value ? duckdb::Value(*value) : duckdb::Value(duckdb::LogicalType::VARCHAR));
      }
      result.SetValue(row, duckdb::Value::MAP(duckdb::LogicalType::VARCHAR, duckdb::LogicalType::VARCHAR,
                                              std::move(keys), std::move(values)));
    }
  });
}

}  // namespace

const ScalarTable& FormatKernels() {
  static const ScalarTable table = {
      {"spark_format_string", Nulls::kOwn, MakeFormatString},
      {"spark_format_number", Nulls::kPropagate, MakeFormatNumber},
      {"spark_to_number", Nulls::kPropagate, MakeToNumber},
      {"spark_to_char", Nulls::kPropagate, MakeToChar},
      {"spark_sentences", Nulls::kPropagate, MakeSentences},
      {"spark_str_to_map", Nulls::kPropagate, MakeStrToMap},
  };
  return table;
}

}  // namespace fleuve::engine
