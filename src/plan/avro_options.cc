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

Result<void> SetTime(const std::string& name, const std::string& value, std::int64_t* millis) {
  char* end = nullptr;
  *millis = std::strtol(value.c_str(), &end, 10);
  if (value.empty() || *end != '\0' || *millis <= 0) {
    return InvalidOption(name, "must be a number of milliseconds.");
  }
  return {};
}

/// The registry's options under the names of Confluent's clients, with the prefix that Databricks puts before them.
std::string RegistryName(std::string name) {
  if (name == "schemaregistryaddress") {
    return "url";
  }
  if (name.starts_with("confluent.")) {
    name.erase(0, 10);
  }
  constexpr std::string_view kPrefix = "schema.registry.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : "";
}

/// False where there is no such option.
Result<bool> SetRegistry(const std::string& key, const std::string& name, const std::string& value,
                         AvroOptions* options, registry::Address* address) {
  if (name == "url") {
    for (const std::string& url : Split(value, ',')) {
      const std::string_view trimmed = TrimAscii(url);
      if (!trimmed.starts_with("http://") && !trimmed.starts_with("https://")) {
        return InvalidOption(key, "'" + std::string(trimmed) + "' is no http or https address.");
      }
      address->urls.emplace_back(trimmed);
    }
  } else if (name == "subject") {
    options->subject = value;
  } else if (name == "basic.auth.user.info") {
    address->user_info = value;
  } else if (name == "basic.auth.credentials.source") {
    if (AsciiUpper(value) != "USER_INFO") {
      return InvalidOption(key, "only USER_INFO is served.");
    }
  } else if (name == "bearer.auth.token") {
    address->bearer_token = value;
  } else if (name == "ssl.ca.location") {
    address->ca_file = value;
  } else if (name == "http.connect.timeout.ms") {
    FLEUVE_TRY(SetTime(key, value, &address->connect_timeout_ms));
  } else if (name == "http.read.timeout.ms") {
    FLEUVE_TRY(SetTime(key, value, &address->read_timeout_ms));
  } else if (name == "auto.register.schemas") {
    const std::string text = AsciiLower(value);
    if (text != "true" && text != "false") {
      return InvalidOption(key, "Cannot cast value '" + value + "' to Boolean.");
    }
    options->auto_register = text == "true";
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool AvroOptions::IsSecret(const std::string& name) {
  const std::string registry_name = RegistryName(AsciiLower(name));
  return registry_name == "basic.auth.user.info" || registry_name == "bearer.auth.token";
}

Result<AvroOptions> AvroOptions::Parse(const Options& options, const std::string& function) {
  AvroOptions parsed;
  registry::Address address;
  bool names_registry = false;
  for (const auto& [key, value] : options) {
    const std::string name = AsciiLower(key);
    const bool of_registry = !RegistryName(name).empty();
    if (function == (of_registry ? "schema_of_avro" : "to_avro")) {
      return Error::Unsupported("the option " + key + " of " + function);
    }
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
      const std::string registry_name = RegistryName(name);
      FLEUVE_ASSIGN(const bool known, SetRegistry(key, registry_name, value, &parsed, &address));
      if (!known) {
        return Error::Unsupported("the option " + key + " of " + function);
      }
      names_registry = true;
    }
  }
  if (names_registry && address.urls.empty()) {
    return InvalidOption("schema.registry.url", "it is missing, but other options of a schema registry are set.");
  }
  if (names_registry) {
    parsed.registry = std::move(address);
  }
  return parsed;
}

}  // namespace fleuve::plan
