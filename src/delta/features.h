#pragma once

/// \file
/// Protocol versions and table features: what is known, what a table needs, what we read and write.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "types/data_type.h"

namespace fleuve::delta {

/// DELTA_UNSUPPORTED_FEATURES_FOR_READ or DELTA_INVALID_PROTOCOL_VERSION (kUnsupported) where this build must not read.
Result<void> CheckReadable(const Protocol& protocol, std::string_view table);
/// DELTA_UNSUPPORTED_FEATURES_FOR_WRITE or DELTA_INVALID_PROTOCOL_VERSION where this build must not write.
Result<void> CheckWritable(const Protocol& protocol, std::string_view table);

/// True where the protocol supports the feature, by name or by its version.
bool HasFeature(const Protocol& protocol, std::string_view feature);
/// All features that the protocol supports, implied ones included, sorted.
std::vector<std::string> FeaturesOf(const Protocol& protocol);
/// The protocol with a feature added: versions are raised to (1,7), (2,7) or (3,7) as the feature needs; legacy
/// features are raised by version where the table is still without a feature list. kInvalidArgument
/// DELTA_UNSUPPORTED_FEATURES_IN_CONFIG for unknown names.
Result<Protocol> WithFeature(const Protocol& protocol, std::string_view feature);
/// The feature's name as the protocol spells it; empty for unknown ones.
std::string_view FeatureName(std::string_view name);
/// The protocol without a feature: what old versions imply is listed, and a list that an old version says goes back to
/// that version. The caller has seen to it that the table no longer uses it.
Result<Protocol> WithoutFeature(const Protocol& protocol, std::string_view feature);
/// Features that a table of this metadata needs (schema types, properties, constraints, defaults, ...), by Spark's
/// rules.
Result<std::vector<std::string>> FeaturesNeeded(const Metadata& metadata, const types::Schema& schema);
/// The protocol for a new table or after a metadata change: `current` raised as far as needed. `delta.feature.*`,
/// `delta.minReaderVersion` and `delta.minWriterVersion` of `metadata.configuration` are honoured and taken out of it.
/// \param current  null: a new table starts from (1,2).
Result<Protocol> ProtocolFor(const Protocol* current, Metadata& metadata, const types::Schema& schema);

}  // namespace fleuve::delta
