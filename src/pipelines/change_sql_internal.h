#pragma once

/// \file
/// AUTO CDC as SQL: how events go into the book of a flow, and what the book makes of the target. Private to this room.
///
/// The book is a Delta table in the flow's checkpoint. What the target holds depends on the book alone, and the book on
/// the set of events alone: neither their order nor the cut of batches matters, and a batch that is applied twice
/// changes nothing.

#include <string>
#include <vector>

#include "pipelines/graph.h"
#include "types/data_type.h"

namespace fleuve::pipelines {

/// Texts for one flow. The book has the columns of the events that the target takes, and its own behind them.
class ChangeSql {
 public:
  /// \param events  columns of the events: the source's, then those of `ChangeEvents`. \param target  name of the
  /// target, \param book  folder of the book, \param view  name of the view over a batch.
  ChangeSql(const ChangeRules& rules, const types::Schema& events, const std::vector<std::string>& target,
            const std::string& book, std::string view);

  /// Type 1 without IGNORE NULL UPDATES keeps the newest event of each key; the others keep every event.
  bool keeps_all_events() const { return keeps_all_; }
  /// The columns of the target that events fill.
  const std::vector<types::StructField>& columns() const { return columns_; }

  std::string CreateBook() const;
  std::string AddBookColumns(const std::vector<types::StructField>& fields) const;
  /// One row: events without a sequence, events without a key, the newest truncation.
  std::string Check() const;
  /// The batch goes into the book. \param batch  marks the keys that it touches.
  std::string Record(const std::string& batch) const;
  /// The rows of touched keys go into the target. \param all_keys  of every key: a truncation was among the events.
  std::string Apply(const std::string& batch, bool all_keys) const;

 private:
  std::string Keys(const std::string& prefix) const;
  /// `a.k1 <op> b.k1 AND ...`
  std::string SameKeys(const std::string& a, const std::string& b, const std::string& op) const;
  std::string RecordNewest(const std::string& batch) const;
  std::string RecordAll(const std::string& batch) const;
  std::string NewestRows(const std::string& batch, bool all_keys) const;
  std::string FilledRows(const std::string& batch, bool all_keys) const;
  std::string MergeRows(const std::string& rows) const;
  std::string MergeVersions(const std::string& batch) const;
  bool IsKey(const std::string& name) const;
  bool IgnoresNull(const std::string& name) const;
  bool IsTracked(const std::string& name) const;

  const ChangeRules& rules_;
  std::vector<types::StructField> columns_;
  std::vector<std::string> keys_;
  std::string sequence_type_;
  std::string target_;
  std::string book_;
  std::string view_;
  bool keeps_all_ = false;
};

}  // namespace fleuve::pipelines
