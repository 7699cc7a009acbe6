#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/json.h"
#include "session/pretty_text_internal.h"

namespace fleuve::session {

using types::DataType;
using types::TypeKind;
using types::Value;

namespace {

std::string Padded(std::uint64_t number, int width) {
  std::string text = std::to_string(number);
  return text.size() < static_cast<std::size_t>(width)
             ? std::string(static_cast<std::size_t>(width) - text.size(), '0') + text
             : text;
}

/// INTERVAL '1 02:03:04.5' DAY TO SECOND, from `start` to `end` (0 day .. 3 second).
std::string DayTimeText(std::int64_t micros, int start, int end) {
  static constexpr const char* kNames[] = {"DAY", "HOUR", "MINUTE", "SECOND"};
  const bool negative = micros < 0;
  std::uint64_t rest = negative ? ~static_cast<std::uint64_t>(micros) + 1 : static_cast<std::uint64_t>(micros);
  static constexpr std::uint64_t kUnits[] = {86400000000ULL, 3600000000ULL, 60000000ULL, 1000000ULL};
  std::string text = negative ? "-" : "";
  for (int field = start; field <= end; ++field) {
    const std::uint64_t count = rest / kUnits[field];
    rest %= kUnits[field];
    if (field > start) {
      text += field == 1 ? " " : ":";
    }
    text += Padded(count, field == 0 ? 1 : 2);
    if (field == 3 && rest != 0) {
      std::string fraction = Padded(rest, 6);
      fraction.erase(fraction.find_last_not_of('0') + 1);
      text += "." + fraction;
    }
  }
  std::string name = kNames[start];
  if (end != start) {
    name += std::string(" TO ") + kNames[end];
  }
  return "INTERVAL '" + text + "' " + name;
}

std::string YearMonthText(std::int64_t months, int start, int end) {
  const bool negative = months < 0;
  const std::uint64_t rest = static_cast<std::uint64_t>(negative ? -months : months);
  const std::string sign = negative ? "-" : "";
  if (start == 0 && end == 0) {
    return "INTERVAL '" + sign + std::to_string(rest / 12) + "' YEAR";
  }
  if (start == 1) {
    return "INTERVAL '" + sign + std::to_string(rest) + "' MONTH";
  }
  return "INTERVAL '" + sign + std::to_string(rest / 12) + "-" + std::to_string(rest % 12) + "' YEAR TO MONTH";
}

std::string CalendarText(const types::CalendarInterval& interval) {
  std::vector<std::string> parts;
  const auto put = [&](std::int64_t count, const char* unit) {
    if (count != 0) {
      parts.push_back(std::to_string(count) + " " + unit);
    }
  };
  put(interval.months / 12, "years");
  put(interval.months % 12, "months");
  put(interval.days, "days");
  std::int64_t rest = interval.micros;
  put(rest / 3600000000LL, "hours");
  rest %= 3600000000LL;
  put(rest / 60000000LL, "minutes");
  rest %= 60000000LL;
  if (rest != 0) {
    std::string seconds = rest < 0 ? "-" : "";
    const std::uint64_t magnitude = static_cast<std::uint64_t>(std::abs(rest));
    seconds += std::to_string(magnitude / 1000000);
    if (magnitude % 1000000 != 0) {
      std::string fraction = Padded(magnitude % 1000000, 6);
      fraction.erase(fraction.find_last_not_of('0') + 1);
      seconds += "." + fraction;
    }
    parts.push_back(seconds + " seconds");
  }
  if (parts.empty()) {
    return "0 seconds";
  }
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : " ") + part;
  }
  return text;
}

std::string BinaryText(const std::string& bytes) {
  std::string text = "[";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, "%02X", static_cast<unsigned char>(bytes[i]));
    text += (i == 0 ? "" : " ") + std::string(hex);
  }
  return text + "]";
}

struct Character {
  std::size_t bytes;
  std::uint32_t code;
};

Character CharacterAt(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::size_t length = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  length = std::min(length, text.size() - at);
  std::uint32_t code = length == 1 ? lead : lead & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    code = code << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3FU);
  }
  return {length, code};
}

/// The ranges that Spark counts as full width.
bool IsWide(std::uint32_t code) {
  return (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
         (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
         (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) || (code >= 0xFFE0 && code <= 0xFFE6);
}

/// UTF-16 units, as Java counts a string's length.
std::int64_t JavaLength(std::string_view text) {
  std::int64_t length = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Character c = CharacterAt(text, i);
    length += c.code >= 0x10000 ? 2 : 1;
    i += c.bytes;
  }
  return length;
}

std::string JavaPrefix(std::string_view text, std::int64_t units) {
  std::size_t i = 0;
  while (i < text.size() && units > 0) {
    const Character c = CharacterAt(text, i);
    units -= c.code >= 0x10000 ? 2 : 1;
    i += c.bytes;
  }
  return std::string(text.substr(0, i));
}

std::string EscapeMeta(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\v':
        out += "\\v";
        break;
      case '\a':
        out += "\\a";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string CutCell(const std::string& text, std::int64_t truncate) {
  const std::string escaped = EscapeMeta(text);
  if (truncate <= 0 || JavaLength(escaped) <= truncate) {
    return escaped;
  }
  return truncate < 4 ? JavaPrefix(escaped, truncate) : JavaPrefix(escaped, truncate - 3) + "...";
}

std::string Pad(const std::string& text, std::int64_t width, bool right_aligned) {
  const std::string blanks(static_cast<std::size_t>(std::max<std::int64_t>(width - DisplayWidth(text), 0)), ' ');
  return right_aligned ? blanks + text : text + blanks;
}

}  // namespace

std::int64_t DisplayWidth(std::string_view text) {
  std::int64_t width = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Character c = CharacterAt(text, i);
    width += IsWide(c.code) || c.code >= 0x10000 ? 2 : 1;
    i += c.bytes;
  }
  return width;
}

Result<std::string> PrettyValue(const Value& value, const DataType& type, const std::string& zone) {
  if (value.is_null()) {
    return std::string("NULL");
  }
  switch (type.kind()) {
    case TypeKind::kVoid:
      return std::string("NULL");
    case TypeKind::kBoolean:
      return std::string(value.boolean() ? "true" : "false");
    case TypeKind::kByte:
    case TypeKind::kShort:
    case TypeKind::kInt:
    case TypeKind::kLong:
      return std::to_string(value.integer());
    case TypeKind::kFloat:
      return JavaFloatToString(static_cast<float>(value.real()));
    case TypeKind::kDouble:
      return JavaDoubleToString(value.real());
    case TypeKind::kDecimal:
      return types::DecimalToString(value.decimal(), type.scale());
    case TypeKind::kString:
    case TypeKind::kChar:
    case TypeKind::kVarchar:
      return value.text();
    case TypeKind::kBinary:
      return BinaryText(value.text());
    case TypeKind::kDate:
      return types::DateToString(value.integer());
    case TypeKind::kTimestamp:
      return types::TimestampToString(value.integer(), zone);
    case TypeKind::kTimestampNtz:
      return types::TimestampNtzToString(value.integer());
    case TypeKind::kDayTimeInterval:
      return DayTimeText(value.integer(), type.precision(), type.scale());
    case TypeKind::kYearMonthInterval:
      return YearMonthText(value.integer(), type.precision(), type.scale());
    case TypeKind::kCalendarInterval:
      return CalendarText(value.interval());
    case TypeKind::kArray: {
      std::string text = "[";
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        FLEUVE_ASSIGN(std::string element, PrettyValue(value.list()[i], type.element(), zone));
        text += (i == 0 ? "" : ", ") + element;
      }
      return text + "]";
    }
    case TypeKind::kMap: {
      std::string text = "{";
      for (std::size_t i = 0; i < value.list().size(); ++i) {
        FLEUVE_ASSIGN(std::string key, PrettyValue(value.list()[i].list()[0], type.key(), zone));
        FLEUVE_ASSIGN(std::string item, PrettyValue(value.list()[i].list()[1], type.value(), zone));
        text += (i == 0 ? "" : ", ") + key + " -> " + item;
      }
      return text + "}";
    }
    case TypeKind::kStruct: {
      std::string text = "{";
      for (std::size_t i = 0; i < type.fields().size(); ++i) {
        FLEUVE_ASSIGN(std::string field, PrettyValue(value.list()[i], type.fields()[i].type, zone));
        text += (i == 0 ? "" : ", ") + field;
      }
      return text + "}";
    }
    case TypeKind::kVariant:
    case TypeKind::kTime:
      break;
  }
  return Error::Unsupported("show() of values of type " + type.Sql());
}

std::string ShowString(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& cells,
                       std::int64_t num_rows, std::int64_t truncate, bool vertical) {
  const bool has_more = static_cast<std::int64_t>(cells.size()) > num_rows;
  const std::size_t rows = has_more ? static_cast<std::size_t>(num_rows) : cells.size();
  std::vector<std::string> header;
  for (const std::string& name : names) {
    header.push_back(EscapeMeta(name));
  }
  std::vector<std::vector<std::string>> body;
  for (std::size_t r = 0; r < rows; ++r) {
    std::vector<std::string> row;
    for (const std::string& cell : cells[r]) {
      row.push_back(CutCell(cell, truncate));
    }
    body.push_back(std::move(row));
  }
  std::string out;
  constexpr std::int64_t kMinWidth = 3;
  if (!vertical) {
    std::vector<std::int64_t> widths(names.size(), kMinWidth);
    for (std::size_t c = 0; c < names.size(); ++c) {
      widths[c] = std::max(widths[c], DisplayWidth(header[c]));
      for (const auto& row : body) {
        widths[c] = std::max(widths[c], DisplayWidth(row[c]));
      }
    }
    std::string separator = "+";
    for (const std::int64_t width : widths) {
      separator += std::string(static_cast<std::size_t>(width), '-') + "+";
    }
    if (names.empty()) {
      separator = "++";
    }
    separator += "\n";
    const auto line = [&](const std::vector<std::string>& row) {
      std::string text = "|";
      for (std::size_t c = 0; c < row.size(); ++c) {
        text += Pad(row[c], widths[c], truncate > 0) + "|";
      }
      return (names.empty() ? std::string("||") : text) + "\n";
    };
    out += separator + line(header) + separator;
    for (const auto& row : body) {
      out += line(row);
    }
    out += separator;
  } else {
    std::int64_t name_width = kMinWidth;
    std::int64_t data_width = kMinWidth;
    for (const std::string& name : header) {
      name_width = std::max(name_width, DisplayWidth(name));
    }
    for (const auto& row : body) {
      for (const std::string& cell : row) {
        data_width = std::max(data_width, DisplayWidth(cell));
      }
    }
    for (std::size_t r = 0; r < body.size(); ++r) {
      std::string head = "-RECORD " + std::to_string(r);
      const auto total = static_cast<std::size_t>(name_width + data_width + 5);
      if (head.size() < total) {
        head += std::string(total - head.size(), '-');
      }
      out += head + "\n";
      for (std::size_t c = 0; c < header.size(); ++c) {
        out += " " + Pad(header[c], name_width, false) + " | " + Pad(body[r][c], data_width, false) + " \n";
      }
    }
    if (body.empty()) {
      out += "(0 rows)";
    }
  }
  if (has_more) {
    out += "only showing top " + std::to_string(num_rows) + (num_rows == 1 ? " row" : " rows");
  }
  return out;
}

std::string HtmlString(const std::vector<std::string>& names, const std::vector<std::vector<std::string>>& cells,
                       std::int64_t num_rows, std::int64_t truncate) {
  const auto escape = [](const std::string& text) {
    std::string out;
    for (const char c : text) {
      switch (c) {
        case '<':
          out += "&lt;";
          break;
        case '>':
          out += "&gt;";
          break;
        case '&':
          out += "&amp;";
          break;
        case '"':
          out += "&quot;";
          break;
        case '\'':
          out += "&#39;";
          break;
        default:
          out += c;
      }
    }
    return out;
  };
  const bool has_more = static_cast<std::int64_t>(cells.size()) > num_rows;
  const std::size_t rows = has_more ? static_cast<std::size_t>(num_rows) : cells.size();
  std::string out = "<table border='1'>\n<tr>";
  for (std::size_t c = 0; c < names.size(); ++c) {
    out += (c == 0 ? "<th>" : "</th><th>") + escape(CutCell(names[c], truncate));
  }
  out += "</th></tr>\n";
  for (std::size_t r = 0; r < rows; ++r) {
    out += "<tr>";
    for (std::size_t c = 0; c < names.size(); ++c) {
      out += (c == 0 ? "<td>" : "</td><td>") + escape(CutCell(cells[r][c], truncate));
    }
    out += "</td></tr>\n";
  }
  out += "</table>\n";
  if (has_more) {
    out += "only showing top " + std::to_string(num_rows) + (num_rows == 1 ? " row\n" : " rows\n");
  }
  return out;
}

}  // namespace fleuve::session
