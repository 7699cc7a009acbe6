#pragma once

/// \file
/// Streams of files: Spark's file source and file sink, with their logs.

#include "connectors/sink.h"

namespace fleuve::connectors::files {

/// Adds the sources and sinks `json`, `csv`, `parquet`, `text`, `binaryfile` (source only), and `orc`, `avro`, `xml`,
/// which are refused by name.
void RegisterFileConnectors(ConnectorRegistry& registry);

}  // namespace fleuve::connectors::files
