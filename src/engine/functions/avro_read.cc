#include "avro/resolution.h"
#include "engine/functions/avro_internal.h"
#include "engine/functions/avro_vectors_internal.h"
#include "engine/functions/rows_internal.h"
#include "plan/avro_options.h"

namespace fleuve::engine {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using types::DataType;
using types::TypeKind;

namespace {

plan::Options OptionsAt(const ScalarSite& site, std::size_t i) {
  plan::Options options;
  const types::Value::List& list = site.Literal(i).list();
  for (std::size_t k = 0; k + 1 < list.size(); k += 2) {
    options[list[k].text()] = list[k + 1].text();
  }
  return options;
}

/// How the kernel reads one value after the other. Immutable. Threads: any.
struct Reading {
  plan::AvroOptions options;
  std::shared_ptr<const avro::Resolution> resolution;
  /// nullopt: no value can be read.
  std::optional<AvroColumn> column;
  DataType type;
  std::shared_ptr<const types::TimeZone> zone;
  std::shared_ptr<const QueryContext> context;
};

/// Spark reads the struct at the top out of a record: a union of several types, or a NULL, is none.
bool ReadsTop(const avro::Node& reader, const DataType& type) {
  return !type.Is(TypeKind::kStruct) || type.fields().empty() || reader.kind == avro::Kind::kRecord ||
         (reader.kind == avro::Kind::kUnion && reader.NonNull().size() == 1);
}

[[noreturn]] void ThrowMalformed(const Reading& reading) {
  Error error = Error(ErrorKind::kInvalidArgument, "",
                      "Malformed records are detected in record parsing. Current parse Mode: FAILFAST. To process "
                      "malformed records as null result, try setting the option 'mode' as 'PERMISSIVE'.")
                    .Family(ErrorFamily::kSpark);
  ThrowRowError(reading.context ? std::move(error).At(*reading.context) : std::move(error));
}

/// What PERMISSIVE gives for a broken value: a struct of NULLs, or NULL.
void PutNothing(const DataType& type, Vector& result, idx_t row) {
  if (!type.Is(TypeKind::kStruct)) {
    FlatVector::SetNull(result, row, true);
    return;
  }
  for (auto& entry : duckdb::StructVector::GetEntries(result)) {
    FlatVector::SetNull(*entry, row, true);
  }
}

bool ReadValue(const Reading& reading, avro::Decoder<AvroVectors>& decoder, Str bytes, Vector& result, idx_t row) {
  if (!reading.column) {
    return false;
  }
  avro::ByteReader in(bytes);
  const bool is_empty = reading.type.Is(TypeKind::kStruct) && reading.type.fields().empty();
  if (is_empty) {
    PutNothing(reading.type, result, row);
    return decoder.Read(reading.resolution->root(), in, {});
  }
  if (!decoder.Read(reading.resolution->root(), in, {&*reading.column, &result, row})) {
    return false;
  }
  return !reading.type.Is(TypeKind::kStruct) || !FlatVector::IsNull(result, row);
}

}  // namespace

Result<Kernel> MakeFromAvro(const ScalarSite& site) {
  auto reading = std::make_shared<Reading>();
  FLEUVE_ASSIGN(reading->options, plan::AvroOptions::Parse(OptionsAt(site, 2), "from_avro"));
  FLEUVE_ASSIGN(const avro::Schema writer, avro::Schema::Parse(site.Literal(1).text()));
  avro::Schema reader = writer;
  if (reading->options.schema) {
    FLEUVE_ASSIGN(reader, avro::Schema::Parse(*reading->options.schema));
  }
  reading->resolution = std::make_shared<const avro::Resolution>(writer, reader);
  reading->type = site.expr.type;
  if (ReadsTop(reader.root(), reading->type)) {
    reading->column = CompileAvroColumn(reader.root(), reading->type, site.Literal(4).boolean());
  }
  FLEUVE_ASSIGN(reading->zone, types::TimeZone::Find(site.Literal(3).text()));
  reading->context = site.expr.context;
  return Kernel([reading](DataChunk& args, Vector& result) {
    const Column bytes(args.data[0], args.size());
    result.SetVectorType(duckdb::VectorType::FLAT_VECTOR);
    AvroVectors vectors(reading->options.calendar, reading->zone);
    avro::Decoder<AvroVectors> decoder(vectors);
    for (idx_t row = 0; row < args.size(); ++row) {
      if (bytes.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      if (ReadValue(*reading, decoder, bytes.Get<Str>(row), result, row)) {
        continue;
      }
      if (!reading->options.permissive) {
        ThrowMalformed(*reading);
      }
      FlatVector::Validity(result).SetValid(row);
      PutNothing(reading->type, result, row);
    }
  });
}

}  // namespace fleuve::engine
