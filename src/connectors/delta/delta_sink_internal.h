#pragma once

/// \file
/// The Delta sink: one batch, one commit with `txn(appId = query id, version = batch id)`.

#include <memory>

#include "connectors/sink.h"
#include "delta/log.h"

namespace fleuve::connectors::delta {

/// \param location  the table's folder; it need not exist. FLEUVE_UPSERT_OPTIONS as `ParseUpsertOptions`.
Result<std::unique_ptr<Sink>> MakeDeltaSink(const SinkSpec& spec, const SinkContext& context,
                                            const storage::Location& location, std::string description,
                                            std::shared_ptr<fleuve::delta::LogRegistry> logs);

}  // namespace fleuve::connectors::delta
