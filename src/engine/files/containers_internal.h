#pragma once

/// \file
/// XML and Avro files as a row of JSON documents each, so that one reader serves all three.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "plan/scan.h"
#include "types/data_type.h"

namespace fleuve::engine {

/// Threads: one at a time.
class DocumentSource {
 public:
  virtual ~DocumentSource() = default;
  /// The next record as JSON; `raw` is its own text where it has one (else equal to `json`). A record that cannot be
  /// parsed gives a `json` that is none. False at the end. The texts live until the next call.
  virtual Result<bool> Next(std::string_view* json, std::string_view* raw) = 0;
};

/// Options of XML files: rowTag (required), attributePrefix, valueTag, excludeAttribute, ignoreSurroundingSpaces,
/// nullValue, encoding. Others that Spark knows are refused by name.
Result<void> CheckXmlOptions(const plan::Options& options);
/// \param schema  tells where arrays and structs are wanted; leaves are strings.
Result<std::unique_ptr<DocumentSource>> OpenXml(const std::string& path, const plan::Options& options,
                                                const types::Schema& schema);
/// Codecs null, deflate and bzip2.
Result<std::unique_ptr<DocumentSource>> OpenAvro(const std::string& path);

}  // namespace fleuve::engine
