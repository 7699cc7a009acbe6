// Schemas (the text up to the first byte 1) and values that claim to be written by them (the rest).
#include "avro/decoder.h"
#include "avro/resolution.h"
#include "avro/schema.h"
#include "tests/fuzz/fuzzer.h"

namespace {

/// A target that keeps nothing, whose places end at the depth that a table's types may have.
struct Nowhere {
  struct Place {
    int depth = 0;
    explicit operator bool() const { return depth < 100; }
  };
  bool Null(Place) { return true; }
  bool Boolean(Place, bool) { return true; }
  bool Int(Place, std::int32_t) { return true; }
  bool Long(Place, std::int64_t) { return true; }
  bool Float(Place, float) { return true; }
  bool Double(Place, double) { return true; }
  bool Bytes(Place, std::string_view) { return true; }
  bool Text(Place, std::string_view) { return true; }
  bool BeginRecord(Place, const fleuve::avro::Node&) { return true; }
  Place Field(Place place, const fleuve::avro::Node&, std::size_t) { return {place.depth + 1}; }
  void EndRecord(Place) {}
  bool BeginList(Place) { return true; }
  Place Item(Place place) { return {place.depth + 1}; }
  void EndList(Place) {}
  bool BeginMap(Place) { return true; }
  Place Entry(Place place, std::string_view) { return {place.depth + 1}; }
  void EndMap(Place) {}
  Place Branch(Place place, const fleuve::avro::Node&, int) { return place; }
};

}  // namespace

const char* const kSeeds[] = {
    R"({"type":"record","name":"r","namespace":"n","fields":[{"name":"a","type":"int"},{"name":"b","type":["null","string"]}]})"
    "\x01\x02\x02\x02z",
    R"({"type":"record","name":"r","fields":[{"name":"m","type":{"type":"map","values":{"type":"array","items":"long"}}},{"name":"u","type":["int","string",{"type":"enum","name":"E","symbols":["A","B"]}],"default":1}]})"
    "\x01\x02\x02k\x04\x06\x08\x01\x01\x02",
    R"({"type":"record","name":"N","fields":[{"name":"id","type":"int"},{"name":"next","type":["null","N"],"default":null}]})"
    "\x01\x02\x02\x02\x02\x02",
    R"({"type":"fixed","name":"f","size":3,"logicalType":"decimal","precision":5,"scale":2})"
    "\x01"
    "abc",
    R"({"type":"array","items":{"type":"array","items":"null"}})"
    "\x01\x02\x80\x80\x7a\x01",
    R"([{"type":"record","name":"A","fields":[{"name":"x","type":"double","default":1}]},{"type":"array","items":"A"}])"
    "\x01\x02\x01",
    nullptr};

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fleuve::avro;  // NOLINT: a program of its own
  const std::string_view all = AsText(data, size);
  const std::size_t end = std::min(all.find('\x01'), all.size());
  const auto schema = Schema::Parse(all.substr(0, end));
  if (!schema.ok()) {
    return 0;
  }
  const std::string text = Text(schema->root());
  const auto again = Schema::Parse(text);
  TypeOptions options;
  options.recursion_depth = 3;
  (void)ToSpark(schema->root(), options);
  const Resolution resolution(*schema, again.ok() ? *again : *schema);
  Nowhere nowhere;
  ByteReader in(all.substr(std::min(end + 1, all.size())));
  (void)Decoder<Nowhere>(nowhere).Read(resolution.root(), in, {});
  return 0;
}
