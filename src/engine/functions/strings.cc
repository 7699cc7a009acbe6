#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/bytes.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/utf8_internal.h"

namespace fleuve::engine {

using types::TypeKind;

std::string UpperText(std::string_view text) {
  if (IsAscii(text)) {
    return AsciiUpper(text);
  }
  icu::UnicodeString wide = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int>(text.size())));
  std::string out;
  wide.toUpper(icu::Locale::getRoot()).toUTF8String(out);
  return out;
}

std::string LowerText(std::string_view text) {
  if (IsAscii(text)) {
    return AsciiLower(text);
  }
  icu::UnicodeString wide = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int>(text.size())));
  std::string out;
  wide.toLower(icu::Locale::getRoot()).toUTF8String(out);
  return out;
}

namespace {

// ---- Pieces ----

Str SubstringText(Str text, std::int64_t position, std::int64_t length) {
  if (length <= 0) {
    return Str();
  }
  std::int64_t start = 0;
  if (position > 0) {
    start = position - 1;
  } else if (position < 0) {
    start = CountCharacters(text) + position;
  }
  std::int64_t end = start + length;
  if (end <= 0) {
    return Str();
  }
  std::size_t from = start > 0 ? OffsetOf(text, start) : 0;
  Str rest = text.substr(from);
  return rest.substr(0, OffsetOf(rest, end - std::max<std::int64_t>(start, 0)));
}

Str SubstringBytes(Str text, std::int64_t position, std::int64_t length) {
  if (length <= 0) {
    return Str();
  }
  auto size = static_cast<std::int64_t>(text.size());
  std::int64_t start = position > 0 ? position - 1 : position < 0 ? size + position : 0;
  std::int64_t end = std::min(start + length, size);
  start = std::max<std::int64_t>(start, 0);
  if (end <= start) {
    return Str();
  }
  return text.substr(static_cast<std::size_t>(start), static_cast<std::size_t>(end - start));
}

Result<Kernel> MakeSubstring(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kBinary)) {
    return MapRows<Str, Str, std::int32_t, std::int32_t>(SubstringBytes);
  }
  return MapRows<Str, Str, std::int32_t, std::int32_t>(SubstringText);
}

Result<Kernel> MakeLeft(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kBinary)) {
    return MapRows<Str, Str, std::int32_t>([](Str text, std::int32_t n) { return SubstringBytes(text, 1, n); });
  }
  return MapRows<Str, Str, std::int32_t>([](Str text, std::int32_t n) { return SubstringText(text, 1, n); });
}

Result<Kernel> MakeRight(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kBinary)) {
    return MapRows<Str, Str, std::int32_t>(
        [](Str text, std::int32_t n) { return n <= 0 ? Str() : SubstringBytes(text, -std::int64_t{n}, n); });
  }
  return MapRows<Str, Str, std::int32_t>(
      [](Str text, std::int32_t n) { return n <= 0 ? Str() : SubstringText(text, -std::int64_t{n}, n); });
}

Result<Kernel> MakeConcat(const ScalarSite& site) {
  std::size_t columns = site.expr.children.size();
  return Kernel([columns](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::vector<Column> inputs;
    bool constant = true;
    for (std::size_t i = 0; i < columns; ++i) {
      inputs.emplace_back(args.data[i], args.size());
      constant = constant && args.data[i].GetVectorType() == duckdb::VectorType::CONSTANT_VECTOR;
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    for (duckdb::idx_t row = 0; row < (constant ? 1 : args.size()); ++row) {
      std::size_t size = 0;
      bool null = false;
      for (const Column& input : inputs) {
        if (input.IsNull(row)) {
          null = true;
          break;
        }
        size += input.Get<Str>(row).size();
      }
      if (null) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      duckdb::string_t target = duckdb::StringVector::EmptyString(result, size);
      char* at = target.GetDataWriteable();
      for (const Column& input : inputs) {
        Str part = input.Get<Str>(row);
        std::copy(part.begin(), part.end(), at);
        at += part.size();
      }
      target.Finalize();
      out[row] = target;
    }
    if (constant) {
      result.SetVectorType(duckdb::VectorType::CONSTANT_VECTOR);
    }
  });
}

/// concat_ws: NULL parts are left out, arrays are spread.
Result<Kernel> MakeConcatWs(const ScalarSite& site) {
  std::vector<bool> arrays;
  for (const plan::ExprPtr& child : site.expr.children) {
    arrays.push_back(child->type.Is(TypeKind::kArray));
  }
  return Kernel([arrays](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::vector<Column> inputs;
    std::vector<std::optional<Column>> elements;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      inputs.emplace_back(args.data[i], args.size());
      elements.emplace_back();
      if (arrays[i]) {
        elements.back().emplace(duckdb::ListVector::GetEntry(args.data[i]),
                                duckdb::ListVector::GetListSize(args.data[i]));
      }
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    std::string buffer;
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (inputs[0].IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      Str separator = inputs[0].Get<Str>(row);
      buffer.clear();
      bool first = true;
      auto add = [&](Str part) {
        if (!first) {
          buffer += separator;
        }
        first = false;
        buffer += part;
      };
      for (std::size_t i = 1; i < arrays.size(); ++i) {
        if (inputs[i].IsNull(row)) {
          continue;
        }
        if (!arrays[i]) {
          add(inputs[i].Get<Str>(row));
          continue;
        }
        const auto& entry = inputs[i].Data<duckdb::list_entry_t>()[inputs[i].Index(row)];
        for (duckdb::idx_t k = entry.offset; k < entry.offset + entry.length; ++k) {
          if (!elements[i]->IsNull(k)) {
            add(elements[i]->Get<Str>(k));
          }
        }
      }
      out[row] = Physical<Str>::Write(result, buffer);
    }
  });
}

template <bool kLeft>
std::string Pad(Str text, std::int32_t length, Str pad, bool binary) {
  if (length <= 0) {
    return std::string();
  }
  std::int64_t have = binary ? static_cast<std::int64_t>(text.size()) : CountCharacters(text);
  if (have >= length) {
    return std::string(binary ? text.substr(0, static_cast<std::size_t>(length))
                              : text.substr(0, OffsetOf(text, length)));
  }
  std::string fill;
  std::int64_t unit = binary ? static_cast<std::int64_t>(pad.size()) : CountCharacters(pad);
  std::int64_t missing = length - have;
  if (unit > 0) {
    for (std::int64_t i = 0; i < missing / unit; ++i) {
      fill += pad;
    }
    std::int64_t rest = missing % unit;
    fill += binary ? pad.substr(0, static_cast<std::size_t>(rest)) : pad.substr(0, OffsetOf(pad, rest));
  }
  return kLeft ? fill + std::string(text) : std::string(text) + fill;
}

template <bool kLeft>
Result<Kernel> MakePad(const ScalarSite& site) {
  bool binary = site.ArgumentType(0).Is(TypeKind::kBinary);
  return MapRows<Str, Str, std::int32_t, Str>(
      [binary](Str text, std::int32_t length, Str pad) { return Pad<kLeft>(text, length, pad, binary); });
}

bool Holds(Str set, Str character) {
  for (std::size_t at = 0; at < set.size(); at += StepAt(set, at)) {
    if (set.substr(at, StepAt(set, at)) == character) {
      return true;
    }
  }
  return false;
}

Str TrimLeft(Str text, Str set) {
  while (!text.empty()) {
    std::size_t step = StepAt(text, 0);
    if (!Holds(set, text.substr(0, step))) {
      break;
    }
    text.remove_prefix(step);
  }
  return text;
}

Str TrimRight(Str text, Str set) {
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80 && text.size() - start < 4) {
      --start;
    }
    if (StepAt(text, start) != text.size() - start) {
      start = text.size() - 1;
    }
    if (!Holds(set, text.substr(start))) {
      break;
    }
    text.remove_suffix(text.size() - start);
  }
  return text;
}

enum class Side { kBoth, kLeft, kRight };

template <Side kSide>
Str TrimText(Str text, Str set) {
  if (kSide != Side::kRight) {
    text = TrimLeft(text, set);
  }
  if (kSide != Side::kLeft) {
    text = TrimRight(text, set);
  }
  return text;
}

template <Side kSide>
Result<Kernel> MakeTrim(const ScalarSite& site) {
  if (site.size() >= 2) {
    return MapRows<Str, Str, Str>(TrimText<kSide>);
  }
  return MapRows<Str, Str>([](Str text) { return TrimText<kSide>(text, " "); });
}

// ---- Case ----

Result<Kernel> MakeUpper(const ScalarSite&) { return MapRows<Str, Str>(UpperText); }
Result<Kernel> MakeLower(const ScalarSite&) { return MapRows<Str, Str>(LowerText); }

Result<Kernel> MakeInitCap(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    std::string lowered = LowerText(text);
    std::string out;
    bool start = true;
    for (std::size_t at = 0; at < lowered.size();) {
      std::size_t step = StepAt(lowered, at);
      if (start) {
        AppendUtf8(out, static_cast<std::uint32_t>(u_totitle(static_cast<UChar32>(DecodeAt(lowered, at)))));
      } else {
        out.append(lowered, at, step);
      }
      start = lowered[at] == ' ';
      at += step;
    }
    return out;
  });
}

// ---- Lengths and positions ----

Result<Kernel> MakeLength(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kBinary)) {
    return MapRows<std::int32_t, Str>([](Str text) { return static_cast<std::int32_t>(text.size()); });
  }
  return MapRows<std::int32_t, Str>([](Str text) { return static_cast<std::int32_t>(CountCharacters(text)); });
}

Result<Kernel> MakeOctetLength(const ScalarSite&) {
  return MapRows<std::int32_t, Str>([](Str text) { return static_cast<std::int32_t>(text.size()); });
}

Result<Kernel> MakeBitLength(const ScalarSite&) {
  return MapRows<std::int32_t, Str>([](Str text) { return static_cast<std::int32_t>(text.size() * 8); });
}

/// Position from 1 of `part` at or after the character `start` (from 0); 0 where it is not there.
std::int32_t Position(Str text, Str part, std::int64_t start) {
  std::size_t from = OffsetOf(text, start);
  if (from > text.size()) {
    return 0;
  }
  std::size_t at = text.find(part, from);
  if (at == Str::npos) {
    return 0;
  }
  return static_cast<std::int32_t>(CountCharacters(text.substr(0, at))) + 1;
}

Result<Kernel> MakeInstr(const ScalarSite&) {
  return MapRows<std::int32_t, Str, Str>([](Str text, Str part) { return Position(text, part, 0); });
}

/// locate(part, text, position): a NULL position gives 0.
Result<Kernel> MakeLocate(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    Column part(args.data[0], args.size());
    Column text(args.data[1], args.size());
    Column position(args.data[2], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<std::int32_t>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (position.IsNull(row)) {
        out[row] = 0;
      } else if (part.IsNull(row) || text.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
      } else {
        std::int32_t start = position.Get<std::int32_t>(row);
        out[row] = start < 1 ? 0 : Position(text.Get<Str>(row), part.Get<Str>(row), start - 1);
      }
    }
  });
}

Result<Kernel> MakeFindInSet(const ScalarSite&) {
  return MapRows<std::int32_t, Str, Str>([](Str word, Str set) -> std::int32_t {
    if (word.find(',') != Str::npos) {
      return 0;
    }
    std::int32_t number = 1;
    while (true) {
      std::size_t comma = set.find(',');
      if (set.substr(0, comma) == word) {
        return number;
      }
      if (comma == Str::npos) {
        return 0;
      }
      set.remove_prefix(comma + 1);
      ++number;
    }
  });
}

Result<Kernel> MakeContains(const ScalarSite&) {
  return MapRows<bool, Str, Str>([](Str text, Str part) { return text.find(part) != Str::npos; });
}
Result<Kernel> MakeStartsWith(const ScalarSite&) {
  return MapRows<bool, Str, Str>([](Str text, Str part) { return text.starts_with(part); });
}
Result<Kernel> MakeEndsWith(const ScalarSite&) {
  return MapRows<bool, Str, Str>([](Str text, Str part) { return text.ends_with(part); });
}

// ---- Rewriting ----

Result<Kernel> MakeReverse(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    std::string out(text.size(), '\0');
    std::size_t end = text.size();
    for (std::size_t at = 0; at < text.size();) {
      std::size_t step = StepAt(text, at);
      end -= step;
      std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(at), step, out.begin() + static_cast<std::ptrdiff_t>(end));
      at += step;
    }
    return out;
  });
}

Result<Kernel> MakeRepeat(const ScalarSite&) {
  return MapRows<Str, Str, std::int32_t>([](Str text, std::int32_t times) {
    std::string out;
    for (std::int32_t i = 0; i < times; ++i) {
      out += text;
    }
    return out;
  });
}

Result<Kernel> MakeSpace(const ScalarSite&) {
  return MapRows<Str, std::int32_t>(
      [](std::int32_t count) { return std::string(static_cast<std::size_t>(std::max(count, 0)), ' '); });
}

Result<Kernel> MakeReplace(const ScalarSite&) {
  return MapRows<Str, Str, Str, Str>([](Str text, Str search, Str replacement) {
    if (search.empty()) {
      return std::string(text);
    }
    std::string out;
    std::size_t at = 0;
    while (true) {
      std::size_t found = text.find(search, at);
      if (found == Str::npos) {
        out += text.substr(at);
        return out;
      }
      out += text.substr(at, found - at);
      out += replacement;
      at = found + search.size();
    }
  });
}

Result<Kernel> MakeTranslate(const ScalarSite&) {
  return MapRows<Str, Str, Str, Str>([](Str text, Str from, Str to) {
    std::unordered_map<std::string, std::optional<std::string>> table;
    std::size_t b = 0;
    for (std::size_t a = 0; a < from.size(); a += StepAt(from, a)) {
      std::optional<std::string> target;
      if (b < to.size()) {
        target = std::string(to.substr(b, StepAt(to, b)));
        b += StepAt(to, b);
      }
      table.emplace(std::string(from.substr(a, StepAt(from, a))), target);
    }
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      std::size_t step = StepAt(text, at);
      std::string character(text.substr(at, step));
      auto found = table.find(character);
      if (found == table.end()) {
        out += character;
      } else if (found->second) {
        out += *found->second;
      }
      at += step;
    }
    return out;
  });
}

Result<Kernel> MakeOverlay(const ScalarSite& site) {
  bool binary = site.ArgumentType(0).Is(TypeKind::kBinary);
  return MapRows<Str, Str, Str, std::int32_t, std::int32_t>(
      [binary](Str text, Str replacement, std::int32_t position, std::int32_t length) {
        auto cut = binary ? SubstringBytes : SubstringText;
        std::int64_t size = length >= 0 ? length
                            : binary    ? static_cast<std::int64_t>(replacement.size())
                                        : CountCharacters(replacement);
        std::string out(cut(text, 1, std::int64_t{position} - 1));
        out += replacement;
        out += cut(text, std::int64_t{position} + size, 2147483647);
        return out;
      });
}

Result<Kernel> MakeSubstringIndex(const ScalarSite&) {
  return MapRows<Str, Str, Str, std::int32_t>([](Str text, Str delimiter, std::int32_t count) -> Str {
    if (delimiter.empty() || count == 0) {
      return Str();
    }
    if (count > 0) {
      std::size_t at = 0;
      while (true) {
        std::size_t found = text.find(delimiter, at);
        if (found == Str::npos) {
          return text;
        }
        if (--count == 0) {
          return text.substr(0, found);
        }
        at = found + 1;
      }
    }
    std::size_t end = text.size() + 1;
    while (true) {
      if (end == 0) {
        return text;
      }
      std::size_t found = text.rfind(delimiter, end - 1);
      if (found == Str::npos) {
        return text;
      }
      if (++count == 0) {
        return text.substr(found + delimiter.size());
      }
      end = found;
    }
  });
}

Result<Kernel> MakeSplitPart(const ScalarSite&) {
  return MapRows<Str, Str, Str, std::int32_t>([](Str text, Str delimiter, std::int32_t number) -> Str {
    if (number == 0) {
      ThrowRowError(
          Error(ErrorKind::kInvalidArgument, "INVALID_INDEX_OF_ZERO",
                "The index 0 is invalid. An index shall be either < 0 or > 0 (the first element has index 1).")
              .Family(ErrorFamily::kRuntime));
    }
    std::vector<Str> parts;
    if (delimiter.empty()) {
      parts.push_back(text);
    } else {
      std::size_t at = 0;
      while (true) {
        std::size_t found = text.find(delimiter, at);
        parts.push_back(text.substr(at, found == Str::npos ? Str::npos : found - at));
        if (found == Str::npos) {
          break;
        }
        at = found + delimiter.size();
      }
    }
    std::int64_t index = number > 0 ? number - 1 : static_cast<std::int64_t>(parts.size()) + number;
    if (index < 0 || index >= static_cast<std::int64_t>(parts.size())) {
      return Str();
    }
    return parts[static_cast<std::size_t>(index)];
  });
}

Result<Kernel> MakeElt(const ScalarSite& site) {
  std::size_t columns = site.expr.children.size();
  bool ansi = ModeOf(site.expr) == plan::CastMode::kAnsi;
  return Kernel([columns, ansi](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::vector<Column> inputs;
    for (std::size_t i = 0; i < columns; ++i) {
      inputs.emplace_back(args.data[i], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (inputs[0].IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      std::int32_t index = inputs[0].Get<std::int32_t>(row);
      if (index < 1 || index >= static_cast<std::int64_t>(columns)) {
        if (ansi) {
          ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_ARRAY_INDEX",
                              "The index " + std::to_string(index) + " is out of bounds. The array has " +
                                  std::to_string(columns - 1) + " elements.")
                            .With("indexValue", std::to_string(index))
                            .With("arraySize", std::to_string(columns - 1))
                            .Family(ErrorFamily::kArrayIndexOutOfBounds));
        }
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      const Column& chosen = inputs[static_cast<std::size_t>(index)];
      if (chosen.IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
      } else {
        out[row] = Physical<Str>::Write(result, chosen.Get<Str>(row));
      }
    }
  });
}

// ---- Characters ----

Result<Kernel> MakeAscii(const ScalarSite&) {
  return MapRows<std::int32_t, Str>(
      [](Str text) { return text.empty() ? 0 : static_cast<std::int32_t>(DecodeAt(text, 0)); });
}

Result<Kernel> MakeChr(const ScalarSite&) {
  return MapRows<Str, std::int64_t>([](std::int64_t code) {
    std::string out;
    if (code >= 0) {
      AppendUtf8(out, static_cast<std::uint32_t>(code & 0xFF));
    }
    return out;
  });
}

std::vector<std::uint32_t> Characters(Str text) {
  std::vector<std::uint32_t> out;
  for (std::size_t at = 0; at < text.size(); at += StepAt(text, at)) {
    out.push_back(DecodeAt(text, at));
  }
  return out;
}

std::int32_t Levenshtein(Str left, Str right) {
  std::vector<std::uint32_t> a = Characters(left);
  std::vector<std::uint32_t> b = Characters(right);
  std::vector<std::int32_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = static_cast<std::int32_t>(j);
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::int32_t diagonal = row[0];
    row[0] = static_cast<std::int32_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::int32_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

Result<Kernel> MakeLevenshtein(const ScalarSite& site) {
  if (site.size() == 3) {
    return MapRows<std::int32_t, Str, Str, std::int32_t>([](Str a, Str b, std::int32_t most) {
      std::int32_t distance = Levenshtein(a, b);
      return distance > most ? -1 : distance;
    });
  }
  return MapRows<std::int32_t, Str, Str>(Levenshtein);
}

Result<Kernel> MakeSoundex(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    static constexpr char kCodes[] = "01230127022455012623017202";
    if (text.empty()) {
      return std::string();
    }
    auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
    char first = upper(text[0]);
    if (first < 'A' || first > 'Z') {
      return std::string(text);
    }
    std::string out(1, first);
    char last = kCodes[first - 'A'];
    for (std::size_t i = 1; i < text.size() && out.size() < 4; ++i) {
      char c = upper(text[i]);
      if (c < 'A' || c > 'Z') {
        last = '0';
        continue;
      }
      char code = kCodes[c - 'A'];
      if (code == '7') {
        continue;  // h and w do not separate
      }
      if (code != '0' && code != last) {
        out += code;
      }
      last = code;
    }
    out.resize(4, '0');
    return out;
  });
}

Result<Kernel> MakeLuhn(const ScalarSite&) {
  return MapRows<bool, Str>([](Str text) {
    if (text.empty()) {
      return false;
    }
    int sum = 0;
    bool twice = false;
    for (std::size_t i = text.size(); i > 0; --i) {
      char c = text[i - 1];
      if (c < '0' || c > '9') {
        return false;
      }
      int digit = c - '0';
      if (twice) {
        digit *= 2;
        digit = digit > 9 ? digit - 9 : digit;
      }
      sum += digit;
      twice = !twice;
    }
    return sum % 10 == 0;
  });
}

Result<Kernel> MakeMask(const ScalarSite&) {
  return Kernel([](duckdb::DataChunk& args, duckdb::Vector& result) {
    std::vector<Column> inputs;
    for (std::size_t i = 0; i < 5; ++i) {
      inputs.emplace_back(args.data[i], args.size());
    }
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    auto* out = duckdb::FlatVector::GetData<duckdb::string_t>(result);
    for (duckdb::idx_t row = 0; row < args.size(); ++row) {
      if (inputs[0].IsNull(row)) {
        duckdb::FlatVector::SetNull(result, row, true);
        continue;
      }
      Str text = inputs[0].Get<Str>(row);
      std::string masked;
      auto put = [&](std::size_t kind, Str character) {
        masked += inputs[kind].IsNull(row) ? character : inputs[kind].Get<Str>(row);
      };
      for (std::size_t at = 0; at < text.size();) {
        std::size_t step = StepAt(text, at);
        auto c = static_cast<UChar32>(DecodeAt(text, at));
        Str character = text.substr(at, step);
        put(u_isUUppercase(c) ? 1 : u_isULowercase(c) ? 2 : u_isdigit(c) ? 3 : 4, character);
        at += step;
      }
      out[row] = Physical<Str>::Write(result, masked);
    }
  });
}

Result<Kernel> MakeQuote(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    std::string out = "'";
    for (char c : text) {
      if (c == '\'') {
        out += '\\';
      }
      out += c;
    }
    return out + "'";
  });
}

// ---- UTF-8 ----

Result<Kernel> MakeIsValidUtf8(const ScalarSite&) { return MapRows<bool, Str>(IsValidUtf8); }
Result<Kernel> MakeMakeValidUtf8(const ScalarSite&) { return MapRows<Str, Str>(MakeValidUtf8); }
Result<Kernel> MakeValidateUtf8(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    if (!IsValidUtf8(text)) {
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_UTF8_STRING",
                          "Invalid UTF8 byte sequence found in string: " + HexEncode(text) + ".")
                        .Family(ErrorFamily::kIllegalArgument));
    }
    return text;
  });
}
Result<Kernel> MakeTryValidateUtf8(const ScalarSite&) {
  return MapRows<Str, Str>(
      [](Str text) -> std::optional<Str> { return IsValidUtf8(text) ? std::optional<Str>(text) : std::nullopt; });
}

}  // namespace

const ScalarTable& StringKernels() {
  static const ScalarTable table = {
      {"spark_concat", Nulls::kPropagate, MakeConcat},
      {"spark_concat_ws", Nulls::kOwn, MakeConcatWs},
      {"spark_substring", Nulls::kPropagate, MakeSubstring},
      {"spark_left", Nulls::kPropagate, MakeLeft},
      {"spark_right", Nulls::kPropagate, MakeRight},
      {"spark_lpad", Nulls::kPropagate, MakePad<true>},
      {"spark_rpad", Nulls::kPropagate, MakePad<false>},
      {"spark_trim", Nulls::kPropagate, MakeTrim<Side::kBoth>},
      {"spark_ltrim", Nulls::kPropagate, MakeTrim<Side::kLeft>},
      {"spark_rtrim", Nulls::kPropagate, MakeTrim<Side::kRight>},
      {"spark_upper", Nulls::kPropagate, MakeUpper},
      {"spark_lower", Nulls::kPropagate, MakeLower},
      {"spark_initcap", Nulls::kPropagate, MakeInitCap},
      {"spark_length", Nulls::kPropagate, MakeLength},
      {"spark_octet_length", Nulls::kPropagate, MakeOctetLength},
      {"spark_bit_length", Nulls::kPropagate, MakeBitLength},
      {"spark_instr", Nulls::kPropagate, MakeInstr},
      {"spark_locate", Nulls::kOwn, MakeLocate},
      {"spark_find_in_set", Nulls::kPropagate, MakeFindInSet},
      {"spark_contains", Nulls::kPropagate, MakeContains},
      {"spark_startswith", Nulls::kPropagate, MakeStartsWith},
      {"spark_endswith", Nulls::kPropagate, MakeEndsWith},
      {"spark_reverse", Nulls::kPropagate, MakeReverse},
      {"spark_repeat", Nulls::kPropagate, MakeRepeat},
      {"spark_space", Nulls::kPropagate, MakeSpace},
      {"spark_replace", Nulls::kPropagate, MakeReplace},
      {"spark_translate", Nulls::kPropagate, MakeTranslate},
      {"spark_overlay", Nulls::kPropagate, MakeOverlay},
      {"spark_substring_index", Nulls::kPropagate, MakeSubstringIndex},
      {"spark_split_part", Nulls::kPropagate, MakeSplitPart},
      {"spark_elt", Nulls::kOwn, MakeElt},
      {"spark_ascii", Nulls::kPropagate, MakeAscii},
      {"spark_chr", Nulls::kPropagate, MakeChr},
      {"spark_levenshtein", Nulls::kPropagate, MakeLevenshtein},
      {"spark_soundex", Nulls::kPropagate, MakeSoundex},
      {"spark_luhn_check", Nulls::kPropagate, MakeLuhn},
      {"spark_mask", Nulls::kOwn, MakeMask},
      {"spark_quote", Nulls::kPropagate, MakeQuote},
      {"spark_is_valid_utf8", Nulls::kPropagate, MakeIsValidUtf8},
      {"spark_make_valid_utf8", Nulls::kPropagate, MakeMakeValidUtf8},
      {"spark_validate_utf8", Nulls::kPropagate, MakeValidateUtf8},
      {"spark_try_validate_utf8", Nulls::kPropagate, MakeTryValidateUtf8},
  };
  return table;
}

}  // namespace fleuve::engine
