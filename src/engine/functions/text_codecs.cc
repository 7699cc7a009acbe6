#include <unicode/ucnv.h>
#include <unicode/unistr.h>

#include "base/bytes.h"
#include "engine/functions/rows_internal.h"
#include "engine/functions/tables_internal.h"
#include "engine/functions/utf8_internal.h"

namespace fleuve::engine {

namespace {

using plan::CastMode;
using types::TypeKind;

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::optional<std::string> Unhex(Str text) {
  std::string out;
  std::size_t at = 0;
  if (text.size() % 2 != 0) {
    int digit = HexDigit(text[0]);
    if (digit < 0) {
      return std::nullopt;
    }
    out += static_cast<char>(digit);
    at = 1;
  }
  for (; at < text.size(); at += 2) {
    int high = HexDigit(text[at]);
    int low = HexDigit(text[at + 1]);
    if (high < 0 || low < 0) {
      return std::nullopt;
    }
    out += static_cast<char>(high * 16 + low);
  }
  return out;
}

Result<Kernel> MakeHex(const ScalarSite& site) {
  if (site.ArgumentType(0).Is(TypeKind::kLong)) {
    return MapRows<Str, std::int64_t>([](std::int64_t value) {
      auto bits = static_cast<std::uint64_t>(value);
      std::string out;
      do {
        out.insert(out.begin(), "0123456789ABCDEF"[bits & 15]);
        bits >>= 4;
      } while (bits != 0);
      return out;
    });
  }
  return MapRows<Str, Str>([](Str text) { return AsciiUpper(HexEncode(text)); });
}

Result<Kernel> MakeUnhex(const ScalarSite&) { return MapRows<Str, Str>(Unhex); }

Result<Kernel> MakeBase64(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) { return Base64Encode(text); });
}

/// As Java's MIME decoder: what is no base64 character is skipped.
std::optional<std::string> DecodeMime(Str text) {
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  bool ended = false;
  for (char c : text) {
    int value = c >= 'A' && c <= 'Z'   ? c - 'A'
                : c >= 'a' && c <= 'z' ? c - 'a' + 26
                : c >= '0' && c <= '9' ? c - '0' + 52
                : c == '+'             ? 62
                : c == '/'             ? 63
                                       : -1;
    if (c == '=') {
      if (count == 1) {
        return std::nullopt;
      }
      ended = true;
      continue;
    }
    if (value < 0 || ended) {
      continue;
    }
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    if (++count == 4) {
      out += static_cast<char>(bits >> 16);
      out += static_cast<char>(bits >> 8);
      out += static_cast<char>(bits);
      bits = 0;
      count = 0;
    }
  }
  if (count == 1) {
    return std::nullopt;
  }
  if (count == 2) {
    out += static_cast<char>(bits >> 4);
  } else if (count == 3) {
    out += static_cast<char>(bits >> 10);
    out += static_cast<char>(bits >> 2);
  }
  return out;
}

[[noreturn]] void FailConversion(Str text, const char* format) {
  ThrowRowError(Error(ErrorKind::kInvalidArgument, "CONVERSION_INVALID_INPUT",
                      "The value '" + std::string(text) +
                          "' (\"STRING\") cannot be converted to \"BINARY\" because its "
                          "value does not follow the format " +
                          format + ". Use `try_to_binary` to tolerate malformed input.")
                    .With("str", "'" + std::string(text) + "'")
                    .With("fmt", std::string("'") + format + "'")
                    .Family(ErrorFamily::kIllegalArgument));
}

Result<Kernel> MakeUnbase64(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    auto bytes = DecodeMime(text);
    if (!bytes) {
      FailConversion(text, "BASE64");
    }
    return *bytes;
  });
}

// ---- Character sets ----

std::string CanonicalCharset(Str name) {
  std::string upper = AsciiUpper(name);
  static const char* kKnown[] = {"US-ASCII", "ISO-8859-1", "UTF-8", "UTF-16BE", "UTF-16LE", "UTF-16", "UTF-32"};
  for (const char* known : kKnown) {
    if (upper == known) {
      return upper;
    }
  }
  ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.CHARSET",
                      "The value of parameter(s) `charset` in `encode` is invalid: expects one of the iso-8859-1, "
                      "us-ascii, utf-16, utf-16be, utf-16le, utf-32, utf-8, but got " +
                          std::string(name) + ".")
                    .With("charset", std::string(name))
                    .Family(ErrorFamily::kIllegalArgument));
}

std::string EncodeText(Str text, Str charset) {
  std::string name = CanonicalCharset(charset);
  if (name == "UTF-8") {
    return std::string(text);
  }
  icu::UnicodeString wide = icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int>(text.size())));
  std::string out;
  auto put16 = [&](bool big) {
    for (int i = 0; i < wide.length(); ++i) {
      char16_t c = wide[i];
      out += static_cast<char>(big ? c >> 8 : c);
      out += static_cast<char>(big ? c : c >> 8);
    }
  };
  if (name == "UTF-16BE" || name == "UTF-16") {
    if (name == "UTF-16" && wide.length() > 0) {
      out += "\xFE\xFF";
    }
    put16(true);
    return out;
  }
  if (name == "UTF-16LE") {
    put16(false);
    return out;
  }
  std::uint32_t limit = name == "US-ASCII" ? 0x7F : 0xFF;
  for (int i = 0; i < wide.length();) {
    auto c = static_cast<std::uint32_t>(wide.char32At(i));
    i = wide.moveIndex32(i, 1);
    if (name == "UTF-32") {
      for (int shift = 24; shift >= 0; shift -= 8) {
        out += static_cast<char>(c >> shift);
      }
    } else if (c > limit) {
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "MALFORMED_CHARACTER_CODING",
                          "Invalid value found when performing `encode` with " + std::string(charset))
                        .With("function", "`encode`")
                        .With("charset", std::string(charset))
                        .Family(ErrorFamily::kRuntime));
    } else {
      out += static_cast<char>(c);
    }
  }
  return out;
}

std::string DecodeText(Str bytes, Str charset) {
  std::string name = CanonicalCharset(charset);
  auto malformed = [&]() {
    ThrowRowError(Error(ErrorKind::kInvalidArgument, "MALFORMED_CHARACTER_CODING",
                        "Invalid value found when performing `decode` with " + std::string(charset))
                      .With("function", "`decode`")
                      .With("charset", std::string(charset))
                      .Family(ErrorFamily::kRuntime));
  };
  if (name == "UTF-8") {
    if (!IsValidUtf8(bytes)) {
      malformed();
    }
    return std::string(bytes);
  }
  std::string out;
  auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])); };
  if (name == "US-ASCII" || name == "ISO-8859-1") {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (name == "US-ASCII" && byte(i) > 0x7F) {
        malformed();
      }
      AppendUtf8(out, byte(i));
    }
    return out;
  }
  if (name == "UTF-32") {
    if (bytes.size() % 4 != 0) {
      malformed();
    }
    for (std::size_t i = 0; i < bytes.size(); i += 4) {
      AppendUtf8(out, byte(i) << 24 | byte(i + 1) << 16 | byte(i + 2) << 8 | byte(i + 3));
    }
    return out;
  }
  bool big = name != "UTF-16LE";
  std::size_t start = 0;
  if (name == "UTF-16" && bytes.size() >= 2) {
    if (byte(0) == 0xFE && byte(1) == 0xFF) {
      start = 2;
    } else if (byte(0) == 0xFF && byte(1) == 0xFE) {
      start = 2;
      big = false;
    }
  }
  if ((bytes.size() - start) % 2 != 0) {
    malformed();
  }
  icu::UnicodeString wide;
  for (std::size_t i = start; i < bytes.size(); i += 2) {
    wide.append(static_cast<char16_t>(big ? byte(i) << 8 | byte(i + 1) : byte(i + 1) << 8 | byte(i)));
  }
  wide.toUTF8String(out);
  return out;
}

Result<Kernel> MakeEncode(const ScalarSite&) { return MapRows<Str, Str, Str>(EncodeText); }
Result<Kernel> MakeDecode(const ScalarSite&) { return MapRows<Str, Str, Str>(DecodeText); }

Result<Kernel> MakeToBinary(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  return MapRows<Str, Str, Str>([is_try](Str text, Str format) -> std::optional<std::string> {
    std::string kind = AsciiLower(format);
    std::optional<std::string> out;
    if (kind == "hex") {
      out = Unhex(text);
    } else if (kind == "utf-8" || kind == "utf8") {
      return std::string(text);
    } else if (kind == "base64") {
      // Strict here: only base64 characters, and whole groups.
      std::size_t digits = 0;
      bool good = true;
      for (char c : text) {
        bool blank = c == ' ' || c == '\n' || c == '\r' || c == '\t';
        bool known = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '/' || c == '=';
        good = good && (blank || known);
        digits += known ? 1 : 0;
      }
      if (good && digits % 4 == 0) {
        out = DecodeMime(text);
      }
    } else {
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_PARAMETER_VALUE.BINARY_FORMAT",
                          "The value of parameter(s) `fmt` in `to_binary` is invalid: expects one of binary formats "
                          "'base64', 'hex', 'utf-8', but got '" +
                              std::string(format) + "'.")
                        .Family(ErrorFamily::kIllegalArgument));
    }
    if (!out && !is_try) {
      FailConversion(text, kind == "hex" ? "HEX" : "BASE64");
    }
    return out;
  });
}

// ---- URLs ----

Result<Kernel> MakeUrlEncode(const ScalarSite&) {
  return MapRows<Str, Str>([](Str text) {
    std::string out;
    for (char c : text) {
      bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == '*' || c == '_';
      if (plain && static_cast<unsigned char>(c) < 0x80) {
        out += c;
      } else if (c == ' ') {
        out += '+';
      } else {
        auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += "0123456789ABCDEF"[byte >> 4];
        out += "0123456789ABCDEF"[byte & 15];
      }
    }
    return out;
  });
}

Result<Kernel> MakeUrlDecode(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  return MapRows<Str, Str>([is_try](Str text) -> std::optional<std::string> {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '+') {
        out += ' ';
      } else if (text[i] == '%') {
        int high = i + 2 < text.size() + 0 ? HexDigit(text[i + 1]) : -1;
        int low = i + 2 < text.size() ? HexDigit(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
          if (is_try) {
            return std::nullopt;
          }
          ThrowRowError(Error(ErrorKind::kInvalidArgument, "CANNOT_DECODE_URL",
                              "The provided URL cannot be decoded: " + std::string(text) +
                                  ". Please ensure that the URL is properly formatted and try again.")
                            .With("url", std::string(text))
                            .Family(ErrorFamily::kIllegalArgument));
        }
        out += static_cast<char>(high * 16 + low);
        i += 2;
      } else {
        out += text[i];
      }
    }
    return out;
  });
}

/// The parts of a URI as java.net.URI tells them.
struct Uri {
  bool valid = true;
  std::optional<Str> scheme, authority, user, host, path, query, fragment;
};

Uri ParseUri(Str text) {
  Uri uri;
  for (char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == '"' || c == '<' || c == '>' || c == '\\' || c == '^' ||
        c == '`' || c == '{' || c == '|' || c == '}') {
      uri.valid = false;
      return uri;
    }
  }
  Str rest = text;
  if (std::size_t hash = rest.find('#'); hash != Str::npos) {
    uri.fragment = rest.substr(hash + 1);
    rest = rest.substr(0, hash);
  }
  if (std::size_t colon = rest.find(':');
      colon != Str::npos && rest.substr(0, colon).find_first_of("/?") == Str::npos) {
    uri.scheme = rest.substr(0, colon);
    rest = rest.substr(colon + 1);
  }
  if (std::size_t question = rest.find('?'); question != Str::npos) {
    uri.query = rest.substr(question + 1);
    rest = rest.substr(0, question);
  }
  if (rest.starts_with("//")) {
    rest.remove_prefix(2);
    std::size_t slash = rest.find('/');
    Str authority = rest.substr(0, slash);
    rest = slash == Str::npos ? Str() : rest.substr(slash);
    if (!authority.empty()) {
      uri.authority = authority;
      Str host = authority;
      if (std::size_t at = host.rfind('@'); at != Str::npos) {
        uri.user = host.substr(0, at);
        host = host.substr(at + 1);
      }
      if (std::size_t colon = host.rfind(':'); colon != Str::npos && host.find(']', colon) == Str::npos) {
        host = host.substr(0, colon);
      }
      if (!host.empty()) {
        uri.host = host;
      }
    }
  }
  uri.path = rest;
  return uri;
}

Result<Kernel> MakeParseUrl(const ScalarSite& site) {
  bool is_try = ModeOf(site.expr) == CastMode::kTry;
  auto part = [is_try](Str text, Str kind, std::optional<Str> key) -> std::optional<std::string> {
    Uri uri = ParseUri(text);
    if (!uri.valid) {
      if (is_try) {
        return std::nullopt;
      }
      ThrowRowError(Error(ErrorKind::kInvalidArgument, "INVALID_URL",
                          "The url is invalid: " + std::string(text) +
                              ". Use `try_parse_url` to tolerate invalid URL and return NULL instead.")
                        .With("url", std::string(text))
                        .Family(ErrorFamily::kIllegalArgument));
    }
    std::optional<std::string> out;
    auto take = [&](const std::optional<Str>& value) {
      if (value) {
        out = std::string(*value);
      }
    };
    if (kind == "HOST") {
      take(uri.host);
    } else if (kind == "PATH") {
      take(uri.path);
    } else if (kind == "QUERY") {
      take(uri.query);
    } else if (kind == "REF") {
      take(uri.fragment);
    } else if (kind == "PROTOCOL") {
      take(uri.scheme);
    } else if (kind == "AUTHORITY") {
      take(uri.authority);
    } else if (kind == "USERINFO") {
      take(uri.user);
    } else if (kind == "FILE") {
      out = std::string(uri.path.value_or(Str())) + (uri.query ? "?" + std::string(*uri.query) : "");
    }
    if (!key) {
      return out;
    }
    if (kind != "QUERY" || !out) {
      return std::nullopt;
    }
    for (const std::string& pair : Split(*out, '&')) {
      if (pair.rfind(std::string(*key) + "=", 0) == 0) {
        return pair.substr(key->size() + 1);
      }
    }
    return std::nullopt;
  };
  if (site.size() == 3) {
    return MapRows<Str, Str, Str, Str>([part](Str text, Str kind, Str key) { return part(text, kind, key); });
  }
  return MapRows<Str, Str, Str>([part](Str text, Str kind) { return part(text, kind, std::nullopt); });
}

}  // namespace

const ScalarTable& TextCodecKernels() {
  static const ScalarTable table = {
      {"spark_hex", Nulls::kPropagate, MakeHex},
      {"spark_unhex", Nulls::kPropagate, MakeUnhex},
      {"spark_base64", Nulls::kPropagate, MakeBase64},
      {"spark_unbase64", Nulls::kPropagate, MakeUnbase64},
      {"spark_encode", Nulls::kPropagate, MakeEncode},
      {"spark_decode", Nulls::kPropagate, MakeDecode},
      {"spark_to_binary", Nulls::kPropagate, MakeToBinary},
      {"spark_url_encode", Nulls::kPropagate, MakeUrlEncode},
      {"spark_url_decode", Nulls::kPropagate, MakeUrlDecode},
      {"spark_parse_url", Nulls::kPropagate, MakeParseUrl},
  };
  return table;
}

}  // namespace fleuve::engine
