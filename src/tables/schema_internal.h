#pragma once

/// \file
/// How the columns of an input become those of a table: matching, evolution, casts, defaults.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "delta/actions.h"
#include "plan/expr.h"
#include "plan/logical_plan.h"
#include "plan/resolver.h"
#include "types/data_type.h"

namespace fleuve::tables {

struct MergeRules {
  /// New columns and fields are added (mergeSchema).
  bool add_columns = false;
  /// Different types are fine where a cast exists; the table's type stays.
  bool allow_casts = false;
  /// Wider types change the table's (type widening).
  bool widen = false;
};

/// The table's schema after data of `data` has been written to it. DELTA_FAILED_TO_MERGE_FIELDS,
/// DELTA_METADATA_MISMATCH, DELTA_DUPLICATE_COLUMNS_FOUND.
Result<types::Schema> MergeSchemas(const types::Schema& table, const types::Schema& data, const MergeRules& rules,
                                   const plan::AnalysisConfig& config);

/// True where type widening may change a column's type so.
bool CanWiden(const types::DataType& from, const types::DataType& to);
/// The types that automatic widening may give a column: all, those of one family, or none, as
/// `spark.databricks.delta.typeWidening.allowAutomaticWidening` says.
bool MayWidenAutomatically(const types::DataType& from, const types::DataType& to, const plan::AnalysisConfig& config);
/// `after` with `delta.typeChanges` in the metadata of every field whose type is wider than in `before`.
types::Schema RecordTypeChanges(const types::Schema& before, const types::Schema& after);

/// `expr` as a value of `to`: struct fields by name or by position, missing ones NULL, leaves cast by ANSI rules.
Result<plan::ExprPtr> AlignExpr(const plan::ExprPtr& expr, const types::DataType& to, bool by_name,
                                const plan::AnalysisConfig& config);

/// Analyzes SQL text over the columns of `input` (constraints, defaults, generated columns, predicates).
Result<plan::ExprPtr> AnalyzeSql(const std::string& sql, const plan::PlanPtr& input,
                                 const plan::AnalysisConfig& config);
/// Top-level conjuncts.
std::vector<plan::ExprPtr> SplitAnd(const plan::ExprPtr& condition);

/// COLUMN_ALREADY_EXISTS-like duplicates (DELTA_DUPLICATE_COLUMNS_FOUND), forbidden characters
/// (DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES) unless names are mapped, types that no table has
/// (DELTA_UNSUPPORTED_DATA_TYPES and others).
Result<void> CheckColumns(const types::Schema& schema, bool names_are_mapped);
/// DELTA_COMPLEX_TYPE_COLUMN_CONTAINS_NULL_TYPE where the data has arrays or maps of untyped NULLs.
Result<void> CheckNestedVoid(const types::Schema& data);
/// DELTA_PARTITION_COLUMN_NOT_FOUND, DELTA_INVALID_PARTITION_COLUMN_TYPE, DELTA_CANNOT_USE_ALL_COLUMNS_FOR_PARTITION.
/// Returns the names as the schema spells them.
Result<std::vector<std::string>> CheckPartitionColumns(const types::Schema& schema,
                                                       const std::vector<std::string>& columns);

/// The schema as a new table keeps it: everything nullable where `nullable`, CHAR and VARCHAR as strings that say so in
/// their metadata, metadata an object.
types::Schema StoredSchema(const types::Schema& schema, bool nullable);
/// Gives columns ids and physical names where `delta.columnMapping.mode` asks for them and they have none. New tables
/// get random physical names, others keep the column's name.
Result<void> AssignColumnMapping(delta::Metadata& metadata, types::Schema& schema, bool new_table);
/// `type` without the entries of its fields' metadata for which `drop` is true, at every depth.
types::DataType WithoutFieldMetadata(const types::DataType& type, const std::function<bool(std::string_view)>& drop);
/// `schemaString`.
std::string SchemaText(const types::Schema& schema);

/// DELTA_COLUMN_DATA_SKIPPING_NOT_SUPPORTED_TYPE where `delta.dataSkippingStatsColumns` names a column without bounds.
Result<void> CheckStatisticsColumns(const delta::Metadata& metadata, const types::Schema& schema);

/// Checks `delta.*` keys (DELTA_UNKNOWN_CONFIGURATION) and values; returns them with Delta's spelling.
Result<delta::StringMap> CheckProperties(const plan::Options& properties);

/// Names as they stand in the metadata of a field.
const std::string* FieldText(const types::StructField& field, std::string_view key);

}  // namespace fleuve::tables
