#pragma once

/// \file
/// A dataflow graph as its definitions say it: datasets, and flows that fill them. Nothing is analyzed yet.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "plan/logical_plan.h"
#include "types/data_type.h"

namespace spark::connect {
class Expression;
class Relation;
}  // namespace spark::connect

namespace fleuve::pipelines {

enum class DatasetKind { kStreamingTable, kMaterializedView, kTemporaryView, kPersistedView, kSink };

/// `streaming table`, ...: for messages.
std::string KindName(DatasetKind kind);

/// What every row of a dataset shall satisfy.
struct Expectation {
  enum class Action { kWarn, kDrop, kFail };
  std::string name;
  /// SQL condition over the row; anything but TRUE is a violation.
  std::string sql;
  Action action = Action::kWarn;
};

/// Where a definition stands; empty where its client did not say.
struct CodeLocation {
  std::string file;
  int line = 0;
  std::string ToString() const;
};

struct Dataset {
  DatasetKind kind = DatasetKind::kStreamingTable;
  /// It is a streaming table after all where its query is a stream.
  bool kind_by_query = false;
  /// Of tables and persisted views catalog, database and name in lower case; of temporary views and sinks the name as
  /// written.
  std::vector<std::string> name;
  std::optional<std::string> comment;
  /// Lower case; empty: the session's default. Of a sink its provider.
  std::string format;
  /// Table properties, without those that only the pipeline reads.
  plan::Options properties;
  /// `pipelines.reset.allowed`: a full refresh may empty it.
  bool resettable = true;
  /// Of a sink.
  plan::Options options;
  std::vector<std::string> partition_by;
  std::vector<std::string> cluster_by;
  /// Declared columns.
  std::optional<types::Schema> schema;
  std::vector<Expectation> expectations;
  /// Of a persisted view: its query as text.
  std::string view_text;
  CodeLocation location;

  bool is_table() const { return kind == DatasetKind::kStreamingTable || kind == DatasetKind::kMaterializedView; }
};

/// Changes of rows that are applied to a table by key (AUTO CDC).
struct ChangeRules {
  struct Columns {
    std::vector<std::string> names;
    bool except = false;
  };
  std::vector<std::string> keys;
  /// Over the columns of the events; null: not given.
  std::shared_ptr<const spark::connect::Expression> sequence;
  std::shared_ptr<const spark::connect::Expression> deletes;
  std::shared_ptr<const spark::connect::Expression> truncates;
  bool ignore_null_updates = false;
  std::optional<Columns> ignore_null_columns;
  std::optional<Columns> columns;
  int scd_type = 1;
  std::optional<Columns> track_history;
};

struct Flow {
  /// As its target where the target is a table, else one part.
  std::vector<std::string> name;
  std::vector<std::string> target;
  std::shared_ptr<const spark::connect::Relation> query;
  /// Settings of this flow alone.
  std::map<std::string, std::string> conf;
  /// Where its unqualified names are looked up, lower case.
  std::string database;
  /// Made together with its target.
  bool is_default = false;
  /// Runs one time, and again after a full refresh.
  bool once = false;
  std::optional<ChangeRules> changes;
  CodeLocation location;

  std::string display() const;
};

/// A name as SQL and messages have it: each part in backticks.
std::string QuotedName(const std::vector<std::string>& name);
/// A name as a key: lower case, joined by dots.
std::string KeyOf(const std::vector<std::string>& name);

/// Threads: one at a time (its owner's lock).
class Graph {
 public:
  /// \param catalog, database  what unqualified names of its definitions mean, fixed from now on.
  Graph(std::string id, std::string catalog, std::string database, std::map<std::string, std::string> conf);

  const std::string& id() const { return id_; }
  const std::string& catalog() const { return catalog_; }
  const std::string& database() const { return database_; }
  /// Settings of every flow.
  const std::map<std::string, std::string>& conf() const { return conf_; }
  const std::vector<Dataset>& datasets() const { return datasets_; }
  const std::vector<Flow>& flows() const { return flows_; }

  /// One to three parts as catalog, database and name in lower case.
  std::vector<std::string> Qualify(const std::vector<std::string>& parts, const std::string& database) const;

  /// PIPELINE_DUPLICATE_IDENTIFIERS.OUTPUT, MULTIPART_TEMPORARY_VIEW_NAME_NOT_SUPPORTED,
  /// MULTIPART_SINK_NAME_NOT_SUPPORTED. \param dataset  with its name as written; it is qualified here.
  /// Returns the name that it has got.
  Result<std::vector<std::string>> Add(Dataset dataset, const std::string& database);
  /// PIPELINE_DUPLICATE_IDENTIFIERS.FLOW, FLOW_NAME_CONFLICTS_WITH_TABLE, MULTIPART_FLOW_NAME_NOT_SUPPORTED. Names as
  /// written; a flow into a table is named within the table's catalog and database.
  Result<std::vector<std::string>> Add(Flow flow);

  /// Says what a dataset with `kind_by_query` is.
  void Decide(std::size_t dataset, DatasetKind kind) { datasets_[dataset].kind = kind; }

  /// What a name means inside a flow: index of a dataset, or nullopt for what is outside the graph.
  std::optional<std::size_t> Find(const std::vector<std::string>& parts, const std::string& database) const;
  /// By full name.
  std::optional<std::size_t> FindKey(const std::string& key) const;

 private:
  const std::string id_;
  const std::string catalog_;
  const std::string database_;
  const std::map<std::string, std::string> conf_;
  std::vector<Dataset> datasets_;
  std::vector<Flow> flows_;
  std::map<std::string, std::size_t> dataset_of_;
  std::map<std::string, std::size_t> flow_of_;
};

}  // namespace fleuve::pipelines
