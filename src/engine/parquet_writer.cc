#include "parquet_writer.hpp"

#include <filesystem>
#include <future>

#include "duckdb/common/types/column/column_data_collection.hpp"
#include "engine/carriers_internal.h"
#include "engine/parquet_variants_internal.h"
#include "engine/parquet_writer_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

using duckdb::LogicalType;
using types::DataType;
using types::TypeKind;

namespace {

/// A row group is ended early when its rows take about this much memory.
constexpr duckdb::idx_t kRowGroupBytes = 64 << 20;

/// The carrier with the file's field names.
LogicalType FileType(const DataType& type, const DataType& physical) {
  switch (type.kind()) {
    case TypeKind::kArray:
      return LogicalType::LIST(FileType(type.element(), physical.element()));
    case TypeKind::kMap:
      return LogicalType::MAP(FileType(type.key(), physical.key()), FileType(type.value(), physical.value()));
    case TypeKind::kStruct: {
      duckdb::child_list_t<LogicalType> fields;
      for (std::size_t i = 0; i < type.fields().size(); i++) {
        fields.emplace_back(physical.fields()[i].name, FileType(type.fields()[i].type, physical.fields()[i].type));
      }
      return LogicalType::STRUCT(std::move(fields));
    }
    case TypeKind::kVariant:
      return VariantGroupType();
    default:
      return CarrierType(type);
  }
}

void CheckType(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::kVoid:
    case TypeKind::kCalendarInterval:
    case TypeKind::kTime:
      RaiseError(Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
                       "The Parquet datasource doesn't support a column of the type " + type.Sql() + ".")
                     .With("columnType", "\"" + type.Sql() + "\"")
                     .With("format", "Parquet"));
    case TypeKind::kArray:
      CheckType(type.element());
      break;
    case TypeKind::kMap:
      CheckType(type.key());
      CheckType(type.value());
      break;
    case TypeKind::kStruct:
      if (type.fields().empty()) {
        RaiseError(Error(ErrorKind::kInvalidArgument, "EMPTY_SCHEMA_NOT_SUPPORTED_FOR_DATASOURCE",
                         "The Parquet datasource does not support writing empty or nested empty schemas."));
      }
      for (const auto& field : type.fields()) {
        CheckType(field.type);
      }
      break;
    default:
      break;
  }
}

duckdb_parquet::CompressionCodec::type Codec(const std::string& compression) {
  const std::string name = duckdb::StringUtil::Lower(compression);
  if (name == "snappy") {
    return duckdb_parquet::CompressionCodec::SNAPPY;
  }
  if (name == "zstd") {
    return duckdb_parquet::CompressionCodec::ZSTD;
  }
  if (name == "gzip") {
    return duckdb_parquet::CompressionCodec::GZIP;
  }
  if (name == "uncompressed" || name == "none") {
    return duckdb_parquet::CompressionCodec::UNCOMPRESSED;
  }
  if (name == "lz4") {
    return duckdb_parquet::CompressionCodec::LZ4;
  }
  if (name == "lz4_raw" || name == "lz4raw") {
    return duckdb_parquet::CompressionCodec::LZ4_RAW;
  }
  if (name == "brotli") {
    return duckdb_parquet::CompressionCodec::BROTLI;
  }
  RaiseError(
      Error(ErrorKind::kInvalidArgument, "CODEC_NOT_AVAILABLE.WITH_AVAILABLE_CODECS_SUGGESTION",
            "The codec " + compression +
                " is not available. Available codecs are brotli, uncompressed, lz4, lz4_raw, gzip, snappy, none, "
                "zstd."));
}

/// Field ids of one level. Names of a level that differ only in case cannot be told apart by DuckDB.
void AddFieldIds(const DataType& type, const DataType& physical, duckdb::ChildFieldIDs* ids);

void AddField(const std::string& name, const Json* id, const DataType& type, const DataType& physical,
              duckdb::ChildFieldIDs* ids) {
  duckdb::FieldID field = id != nullptr ? duckdb::FieldID(static_cast<std::int32_t>(id->AsInt())) : duckdb::FieldID();
  AddFieldIds(type, physical, &field.child_field_ids);
  ids->ids->insert(std::make_pair(name, std::move(field)));
}

void AddFieldIds(const DataType& type, const DataType& physical, duckdb::ChildFieldIDs* ids) {
  switch (type.kind()) {
    case TypeKind::kArray:
      AddField("element", nullptr, type.element(), physical.element(), ids);
      break;
    case TypeKind::kMap:
      AddField("key", nullptr, type.key(), physical.key(), ids);
      AddField("value", nullptr, type.value(), physical.value(), ids);
      break;
    case TypeKind::kStruct:
      for (std::size_t i = 0; i < type.fields().size(); i++) {
        const auto& field = physical.fields()[i];
        AddField(field.name, field.metadata.Find("parquet.field.id"), type.fields()[i].type, field.type, ids);
      }
      break;
    default:
      break;
  }
}

}  // namespace

void CheckParquetOptions(const ParquetFileOptions& options) {
  CheckType(options.schema);
  (void)Codec(options.compression);
}

std::string ParquetExtension(const std::string& compression) {
  switch (Codec(compression)) {
    case duckdb_parquet::CompressionCodec::SNAPPY:
      return ".snappy.parquet";
    case duckdb_parquet::CompressionCodec::ZSTD:
      return ".zstd.parquet";
    case duckdb_parquet::CompressionCodec::GZIP:
      return ".gz.parquet";
    case duckdb_parquet::CompressionCodec::LZ4:
      return ".lz4hadoop.parquet";
    case duckdb_parquet::CompressionCodec::LZ4_RAW:
      return ".lz4raw.parquet";
    case duckdb_parquet::CompressionCodec::BROTLI:
      return ".br.parquet";
    default:
      return ".parquet";
  }
}

struct ParquetFileWriter::State {
  State(duckdb::ClientContext& client, const ParquetFileOptions& file_options, std::string file_path)
      : context(client), options(file_options), path(std::move(file_path)) {
    for (std::size_t i = 0; i < options.schema.fields().size(); i++) {
      types.push_back(FileType(options.schema.fields()[i].type, options.physical_schema.fields()[i].type));
      names.push_back(options.physical_schema.fields()[i].name);
    }
    NewBuffer();
  }

  ~State() {
    if (encoding.valid()) {
      encoding.wait();
    }
  }

  void NewBuffer() {
    buffer = std::make_unique<duckdb::ColumnDataCollection>(context, types);
    buffer->InitializeAppend(append);
  }

  void Open() {
    duckdb::ChildFieldIDs ids;
    AddFieldIds(options.schema, options.physical_schema, &ids);
    duckdb::vector<std::pair<duckdb::string, duckdb::string>> metadata;
    for (const auto& [key, value] : options.key_value_metadata) {
      metadata.emplace_back(key, value);
    }
    writer = std::make_unique<duckdb::ParquetWriter>(
        context, duckdb::FileSystem::GetFileSystem(context), path, types, names, Codec(options.compression),
        std::move(ids), duckdb::ShreddingType(), metadata, nullptr, duckdb::optional_idx(), duckdb::idx_t(1) << 20,
        false, 0.01, 3, duckdb::ParquetVersion::V1, duckdb::GeoParquetVersion::NONE);
  }

  void Encode(duckdb::ColumnDataCollection& rows) {
    if (writer == nullptr) {
      Open();
    }
    writer->Flush(rows, transform);
  }

  /// Waits for the row group before; raises what it raised.
  void Join() {
    if (encoding.valid()) {
      encoding.get();
      encoding_bytes = 0;
      written_bytes = writer->FileSize();
    }
  }

  /// Ends the row group; more rows come.
  void EndRowGroup() {
    Join();
    auto lease = options.budget != nullptr ? options.budget->TryAcquire() : nullptr;
    if (lease == nullptr) {
      Encode(*buffer);
      written_bytes = writer->FileSize();
    } else {
      encoding_bytes = buffer->SizeInBytes();
      encoding = std::async(std::launch::async, [this, rows = std::move(buffer), held = std::move(lease)]() mutable {
        Encode(*rows);
        rows.reset();
        held.reset();
      });
    }
    NewBuffer();
  }

  duckdb::ClientContext& context;
  const ParquetFileOptions& options;
  std::string path;
  duckdb::vector<LogicalType> types;
  duckdb::vector<duckdb::string> names;
  std::unique_ptr<duckdb::ColumnDataCollection> buffer;
  duckdb::ColumnDataAppendState append;
  std::unique_ptr<duckdb::ParquetWriter> writer;
  duckdb::unique_ptr<duckdb::ParquetWriteTransformData> transform;
  /// The row group that another thread encodes: until it is joined, `writer` and `transform` are that thread's.
  std::future<void> encoding;
  duckdb::idx_t encoding_bytes = 0;
  duckdb::idx_t written_bytes = 0;
};

ParquetFileWriter::ParquetFileWriter(duckdb::ClientContext& context, const ParquetFileOptions& options,
                                     std::string path)
    : state_(std::make_unique<State>(context, options, std::move(path))) {}

ParquetFileWriter::~ParquetFileWriter() = default;

void ParquetFileWriter::Write(duckdb::DataChunk& rows) {
  // The file's types differ from the carriers in field names only.
  duckdb::DataChunk renamed;
  renamed.InitializeEmpty(state_->types);
  for (std::size_t i = 0; i < state_->types.size(); i++) {
    if (rows.data[i].GetType() == state_->types[i]) {
      renamed.data[i].Reference(rows.data[i]);
    } else {
      renamed.data[i].Reinterpret(rows.data[i]);
    }
  }
  renamed.SetCardinality(rows.size());
  state_->buffer->Append(state_->append, renamed);
  if (static_cast<std::int64_t>(state_->buffer->Count()) >= state_->options.row_group_rows ||
      state_->buffer->SizeInBytes() >= kRowGroupBytes) {
    state_->EndRowGroup();
  }
}

std::int64_t ParquetFileWriter::bytes() const {
  // What waits in memory gets smaller by about half when it is written. The same rows give the same sizes, whatever
  // the other thread has done meanwhile: files are cut by them.
  return static_cast<std::int64_t>(state_->written_bytes +
                                   (state_->encoding_bytes + state_->buffer->SizeInBytes()) / 2);
}

std::int64_t ParquetFileWriter::Finish() {
  state_->Join();
  if (state_->buffer->Count() > 0) {
    state_->Encode(*state_->buffer);
  }
  if (state_->writer == nullptr) {
    state_->Open();
  }
  state_->writer->Finalize();
  state_->writer.reset();
  return static_cast<std::int64_t>(std::filesystem::file_size(state_->path));
}

}  // namespace fleuve::engine
