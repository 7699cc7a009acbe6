#include <cctype>
#include <cstdlib>
#include <vector>

#include "session/substitution_internal.h"

namespace fleuve::session {

namespace {

using Setting = std::function<std::optional<std::string>(const std::string&)>;

/// What `${reference}` stands for; nullopt: nothing that is known.
std::optional<std::string> ValueOf(const std::string& reference, const Setting& setting) {
  std::size_t colon = 0;
  while (colon < reference.size() &&
         (std::isalnum(static_cast<unsigned char>(reference[colon])) != 0 || reference[colon] == '_')) {
    ++colon;
  }
  const bool prefixed = colon > 0 && colon + 1 < reference.size() && reference[colon] == ':';
  const std::string prefix = prefixed ? reference.substr(0, colon) : "";
  const std::string name = prefixed ? reference.substr(colon + 1) : reference;
  if (prefix.empty() || prefix == "spark" || prefix == "sparkconf" || prefix == "hivevar" || prefix == "hiveconf") {
    return setting(name).value_or("");
  }
  if (prefix == "env") {
    if (const char* value = std::getenv(name.c_str()); value != nullptr) {
      return value;
    }
  }
  return std::nullopt;
}

std::string Substitute(std::string_view text, const Setting& setting, std::vector<std::string>& open) {
  std::string out;
  while (true) {
    const std::size_t begin = text.find("${");
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) {
      return out.append(text);
    }
    const std::string reference(text.substr(begin + 2, end - begin - 2));
    bool plain = !reference.empty();
    for (const char c : reference) {
      plain = plain && std::isspace(static_cast<unsigned char>(c)) == 0;
    }
    bool circular = false;
    for (const std::string& outer : open) {
      circular = circular || outer == reference;
    }
    const std::optional<std::string> value = plain && !circular ? ValueOf(reference, setting) : std::nullopt;
    if (!value) {
      out.append(text.substr(0, begin + 2));
      text.remove_prefix(begin + 2);
      continue;
    }
    out.append(text.substr(0, begin));
    open.push_back(reference);
    out += Substitute(*value, setting, open);
    open.pop_back();
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::string SubstituteVariables(std::string_view text, const Setting& setting) {
  std::vector<std::string> open;
  return Substitute(text, setting, open);
}

}  // namespace fleuve::session
