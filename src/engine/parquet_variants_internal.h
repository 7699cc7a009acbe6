#pragma once

/// \file
/// VARIANT columns of Parquet files: groups `metadata`, `value` and, where they are shredded, `typed_value`.

#include "duckdb/common/multi_file/multi_file_data.hpp"
#include "engine/duckdb_pch.h"
#include "parquet_reader.hpp"
#include "types/data_type.h"

namespace fleuve::engine {

/// Lets the reader show groups that are marked as VARIANT as the plain structs they are. DuckDB's own VARIANT would
/// change the values.
void ShowVariantsAsStructs(duckdb::ParquetReader& reader);

/// True where the group's values must be put together from several parts.
bool IsShreddedVariant(const duckdb::MultiFileColumnDefinition& group);

/// The definition that reads a group of a file as it is.
duckdb::MultiFileColumnDefinition AsInFile(const duckdb::MultiFileColumnDefinition& group);

/// `value`, whose shredded variants are as in the file and all else as the carrier of `type`, as that carrier.
duckdb::unique_ptr<duckdb::Expression> WithWholeVariants(duckdb::unique_ptr<duckdb::Expression> value,
                                                         const types::DataType& type);

/// The struct that the writer writes as a VARIANT group: `value` and `metadata`.
duckdb::LogicalType VariantGroupType();

}  // namespace fleuve::engine
