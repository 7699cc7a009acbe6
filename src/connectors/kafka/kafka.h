#pragma once

/// \file
/// Kafka topics: stream source and sink, batch reads and writes, on librdkafka.

#include <memory>

#include "base/cancellation.h"
#include "connectors/sink.h"
#include "engine/engine.h"
#include "plan/resolver.h"

namespace fleuve::connectors::kafka {

/// Adds the source and the sink `kafka`.
void RegisterKafka(ConnectorRegistry& registry);

/// A batch read: the records between the starting and the ending offsets, both resolved at each run. Errors are the
/// ones that `load()` raises (options), the rest comes when the table is read.
Result<std::shared_ptr<const plan::TableSource>> KafkaTable(const plan::Options& options,
                                                            const plan::AnalysisConfig& config);

/// Writes the visible columns of an analyzed plan (key, value, topic, headers, partition) and waits until the broker
/// has taken all.
Result<void> WriteTopic(engine::Engine& engine, const plan::PlanPtr& input, const plan::Options& options,
                        const plan::AnalysisConfig& config, const CancellationTokenPtr& token);

}  // namespace fleuve::connectors::kafka
