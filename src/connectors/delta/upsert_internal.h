#pragma once

/// \file
/// The Delta sink's upsert: each batch updates the rows whose keys it has and inserts the others, in one commit.

#include <memory>
#include <string>
#include <vector>

#include "connectors/sink.h"
#include "delta/log.h"
#include "tables/write.h"

namespace fleuve::connectors::delta {

/// What the options `upsertKeys` (a comma list) and `sequenceBy` say.
struct UpsertOptions {
  std::vector<std::string> keys;
  /// Empty: none; then no batch may hold a key twice.
  std::string sequence_by;
};

/// nullopt: the stream does not upsert. FLEUVE_UPSERT_OPTIONS for options that do not fit each other or the mode.
Result<std::optional<UpsertOptions>> ParseUpsertOptions(const plan::Options& options, const std::string& output_mode);

/// The rows of a batch, one per key: the one greatest by `sequence_by`.
/// FLEUVE_UPSERT_NULL_KEY, FLEUVE_UPSERT_NULL_SEQUENCE, FLEUVE_UPSERT_SEQUENCE_REQUIRED (a key comes twice and nothing
/// tells which row is the newer one); UNRESOLVED_COLUMN where a named column is not there.
Result<plan::PlanPtr> ReduceToKeys(const UpsertOptions& options, const SinkBatch& batch);

/// Merges reduced rows into a table that exists, with the transaction of the batch in the same commit; computed anew
/// where another commit came first. False: the table already holds the batch.
Result<bool> MergeByKeys(const UpsertOptions& options, const plan::PlanPtr& rows, const tables::TableContext& context,
                         const tables::TableRef& table, const std::string& query_id, std::int64_t batch_id,
                         bool merge_schema);

}  // namespace fleuve::connectors::delta
