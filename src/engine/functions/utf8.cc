#include <unicode/unistr.h>

#include "engine/functions/utf8_internal.h"

namespace fleuve::engine {

std::string MakeValidUtf8(std::string_view text) {
  std::string out;
  icu::UnicodeString::fromUTF8(icu::StringPiece(text.data(), static_cast<int>(text.size()))).toUTF8String(out);
  return out;
}

}  // namespace fleuve::engine
