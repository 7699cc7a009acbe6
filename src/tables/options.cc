#include "tables/options.h"

#include "base/bytes.h"

namespace fleuve::tables {

Error IllegalOption(const std::string& name, const std::string& value, const std::string& explain) {
  return Error(ErrorKind::kInvalidArgument, "DELTA_ILLEGAL_OPTION",
               "Invalid value '" + value + "' for option '" + name + "', " + explain)
      .With("input", value)
      .With("name", name)
      .With("explain", explain);
}

Result<std::optional<bool>> FlagOption(const plan::Options& options, const std::string& name) {
  const std::string* value = plan::FindOption(options, name);
  if (value == nullptr) {
    return std::optional<bool>();
  }
  if (EqualsIgnoreAsciiCase(*value, "true")) {
    return std::optional<bool>(true);
  }
  if (EqualsIgnoreAsciiCase(*value, "false")) {
    return std::optional<bool>(false);
  }
  return IllegalOption(name, *value, "must be 'true' or 'false'");
}

}  // namespace fleuve::tables
