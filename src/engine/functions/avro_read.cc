#include <map>
#include <mutex>

#include "avro/resolution.h"
#include "engine/functions/avro_internal.h"
#include "engine/functions/avro_vectors_internal.h"
#include "engine/functions/rows_internal.h"
#include "plan/avro_options.h"
#include "registry/schema_registry.h"

namespace fleuve::engine {

using duckdb::DataChunk;
using duckdb::FlatVector;
using duckdb::idx_t;
using duckdb::Vector;
using types::DataType;
using types::TypeKind;

namespace {

/// Readings of values by the number of the schema that wrote them. Threads: any.
class RegisteredWriters {
 public:
  RegisteredWriters(std::shared_ptr<registry::SchemaRegistry> registry, avro::Schema reader)
      : registry_(std::move(registry)), reader_(std::move(reader)) {}

  /// Null where the registry does not know the number: the value is broken. Other errors are the registry's own.
  Result<std::shared_ptr<const avro::Resolution>> For(std::int32_t id) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto known = known_.find(id); known != known_.end()) {
        return known->second;
      }
    }
    auto writer = registry_->ById(id);
    if (!writer.ok()) {
      if (writer.error().kind() == ErrorKind::kNotFound) {
        return std::shared_ptr<const avro::Resolution>();
      }
      return std::move(writer).error();
    }
    auto resolution = std::make_shared<const avro::Resolution>(*std::move(writer), reader_);
    const std::lock_guard lock(mutex_);
    return known_.emplace(id, std::move(resolution)).first->second;
  }

 private:
  const std::shared_ptr<registry::SchemaRegistry> registry_;
  const avro::Schema reader_;
  std::mutex mutex_;
  std::map<std::int32_t, std::shared_ptr<const avro::Resolution>> known_;
};

/// How the kernel reads one value after the other. Immutable. Threads: any.
struct Reading {
  plan::AvroOptions options;
  /// Of every value; null where `writers` tell it of each.
  std::shared_ptr<const avro::Resolution> resolution;
  std::unique_ptr<RegisteredWriters> writers;
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

/// The resolution of the last value is most often that of the next one.
struct Writer {
  std::int32_t id = -1;
  std::shared_ptr<const avro::Resolution> resolution;
};

/// Takes the number of the schema off the value. Null: it has none that the registry knows.
const avro::Resolution* WriterOf(const Reading& reading, Writer& last, Str* bytes) {
  if (reading.writers == nullptr) {
    return reading.resolution.get();
  }
  const auto id = registry::SchemaIdOf(*bytes);
  if (!id) {
    return nullptr;
  }
  if (*id != last.id || last.resolution == nullptr) {
    auto found = reading.writers->For(*id);
    if (!found.ok()) {
      ThrowRowError(std::move(found).error());
    }
    last = {*id, *std::move(found)};
  }
  bytes->remove_prefix(registry::kPrefixBytes);
  return last.resolution.get();
}

bool ReadValue(const Reading& reading, Writer& last, avro::Decoder<AvroVectors>& decoder, Str bytes, Vector& result,
               idx_t row) {
  const avro::Resolution* resolution = WriterOf(reading, last, &bytes);
  if (!reading.column || resolution == nullptr) {
    return false;
  }
  avro::ByteReader in(bytes);
  const bool is_empty = reading.type.Is(TypeKind::kStruct) && reading.type.fields().empty();
  if (is_empty) {
    PutNothing(reading.type, result, row);
    return decoder.Read(resolution->root(), in, {});
  }
  if (!decoder.Read(resolution->root(), in, {&*reading.column, &result, row})) {
    return false;
  }
  return !reading.type.Is(TypeKind::kStruct) || !FlatVector::IsNull(result, row);
}

}  // namespace

plan::Options AvroOptionsAt(const ScalarSite& site, std::size_t i) {
  plan::Options options;
  const types::Value::List& list = site.Literal(i).list();
  for (std::size_t k = 0; k + 1 < list.size(); k += 2) {
    options[list[k].text()] = list[k + 1].text();
  }
  return options;
}

Result<Kernel> MakeFromAvro(const ScalarSite& site) {
  auto reading = std::make_shared<Reading>();
  FLEUVE_ASSIGN(reading->options, plan::AvroOptions::Parse(AvroOptionsAt(site, 2), "from_avro"));
  FLEUVE_ASSIGN(const avro::Schema reader,
                avro::Schema::Parse(reading->options.schema.value_or(site.Literal(1).text())));
  if (reading->options.registry) {
    reading->writers =
        std::make_unique<RegisteredWriters>(registry::SchemaRegistry::At(*reading->options.registry), reader);
  } else {
    FLEUVE_ASSIGN(avro::Schema writer, avro::Schema::Parse(site.Literal(1).text()));
    reading->resolution = std::make_shared<const avro::Resolution>(std::move(writer), reader);
  }
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
    Writer last;
    for (idx_t row = 0; row < args.size(); ++row) {
      if (bytes.IsNull(row)) {
        FlatVector::SetNull(result, row, true);
        continue;
      }
      if (ReadValue(*reading, last, decoder, bytes.Get<Str>(row), result, row)) {
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
