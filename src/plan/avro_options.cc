#include "plan/avro_options.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/bytes.h"

namespace fleuve::plan {

namespace {

constexpr int kMaxRecursion = 15;

Error InvalidOption(const std::string& name, const std::string& message) {
  return Error(ErrorKind::kInvalidArgument, "STDS_INVALID_OPTION_VALUE.WITH_MESSAGE",
               "Invalid value for source option '" + name + "': " + message)
      .With("optionName", name)
      .With("message", message)
      .Family(ErrorFamily::kAnalysis);
}

Result<void> SetMode(const std::string& value, const std::string& function, AvroOptions* options) {
  const std::string mode = AsciiUpper(value);
  if (mode == "DROPMALFORMED") {
    return Error(ErrorKind::kInvalidArgument, "PARSE_MODE_UNSUPPORTED",
                 "The function `" + function +
                     "` doesn't support the DROPMALFORMED mode. Acceptable modes are PERMISSIVE and FAILFAST.")
        .With("funcName", "`" + function + "`")
        .With("mode", mode);
  }
  options->permissive = mode != "FAILFAST";
  return {};
}

Result<void> SetDepth(const std::string& value, AvroOptions* options) {
  char* end = nullptr;
  const long depth = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0') {
    return Error(ErrorKind::kInvalidArgument, "", "For input string: \"" + value + "\"")
        .Family(ErrorFamily::kNumberFormat);
  }
  if (depth > kMaxRecursion) {
    return InvalidOption("recursiveFieldMaxDepth", "Should not be greater than " + std::to_string(kMaxRecursion) + ".");
  }
  options->types.recursion_depth = depth < 0 ? -1 : static_cast<int>(depth);
  return {};
}

Result<void> SetCalendar(const std::string& value, AvroOptions* options) {
  const std::string mode = AsciiUpper(value);
  if (mode != "CORRECTED" && mode != "LEGACY" && mode != "EXCEPTION") {
    return InvalidOption("datetimeRebaseMode", "must be CORRECTED, LEGACY or EXCEPTION.");
  }
  options->calendar = mode == "CORRECTED" ? AvroCalendar::kCorrected
                      : mode == "LEGACY"  ? AvroCalendar::kLegacy
                                          : AvroCalendar::kException;
  return {};
}

Result<std::string> ReadSchemaFile(const std::string& url) {
  std::string path = url;
  if (path.starts_with("file:")) {
    path.erase(0, 5);
    path.erase(0, path.starts_with("///") ? 2 : 0);
    path = PercentDecode(path);
  }
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return Error(ErrorKind::kNotFound, "", "File " + url + " of the option avroSchemaUrl does not exist")
        .Family(ErrorFamily::kAnalysis);
  }
  return text.str();
}

}  // namespace

Result<AvroOptions> AvroOptions::Parse(const Options& options, const std::string& function) {
  AvroOptions parsed;
  for (const auto& [key, value] : options) {
    const std::string name = AsciiLower(key);
    if (name == "mode") {
      FLEUVE_TRY(SetMode(value, function, &parsed));
    } else if (name == "avroschema") {
      parsed.schema = value;
    } else if (name == "avroschemaurl") {
      if (FindOption(options, "avroSchema") == nullptr) {
        FLEUVE_ASSIGN(parsed.schema, ReadSchemaFile(value));
      }
    } else if (name == "recursivefieldmaxdepth") {
      FLEUVE_TRY(SetDepth(value, &parsed));
    } else if (name == "datetimerebasemode") {
      FLEUVE_TRY(SetCalendar(value, &parsed));
    } else if (name == "enablestableidentifiersforuniontype") {
      const std::string text = AsciiLower(value);
      if (text != "true" && text != "false") {
        return InvalidOption("enableStableIdentifiersForUnionType", "Cannot cast value '" + value + "' to Boolean.");
      }
      parsed.types.stable_union_names = text == "true";
    } else if (name == "stableidentifierprefixforuniontype") {
      parsed.types.stable_prefix = value;
    } else {
      return Error::Unsupported("the option " + key + " of " + function);
    }
  }
  return parsed;
}

}  // namespace fleuve::plan
