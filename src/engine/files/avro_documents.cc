// Avro container files.

#include <bzlib.h>
#include <zlib.h>

#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "avro/decoder.h"
#include "avro/resolution.h"
#include "avro/schema.h"
#include "base/bytes.h"
#include "base/json.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/containers_internal.h"
#include "engine/functions/avro_vectors_internal.h"
#include "engine/infer.h"
#include "types/value.h"

namespace fleuve::engine {

namespace {

Error Broken(const std::string& path, const std::string& what) {
  return Error(ErrorKind::kCorrupt, "FAILED_READ_FILE.NO_HINT", "the Avro file " + path + " is broken: " + what);
}

/// JSON text as the target of the Avro decoder: the reader of documents makes rows of it.
class JsonText {
 public:
  struct Place {
    const avro::Node* node = nullptr;
    explicit operator bool() const { return node != nullptr; }
  };

  std::string& out() { return out_; }

  bool Null(Place) { return Add("null"); }
  bool Boolean(Place, bool value) { return Add(value ? "true" : "false"); }
  bool Int(Place, std::int32_t value) { return Add(std::to_string(value)); }
  bool Long(Place place, std::int64_t value) {
    using avro::Logical;
    const Logical logical = place.node->logical;
    if (logical == Logical::kCustomDecimal) {
      return Add(types::DecimalToString(value, place.node->scale));
    }
    const bool is_local = logical == Logical::kLocalTimestampMillis || logical == Logical::kLocalTimestampMicros;
    if (!is_local && logical != Logical::kTimestampMillis && logical != Logical::kTimestampMicros) {
      return Add(std::to_string(value));
    }
    const bool millis = logical == Logical::kLocalTimestampMillis || logical == Logical::kTimestampMillis;
    std::int64_t micros = value;
    if (millis && __builtin_mul_overflow(value, std::int64_t{1000}, &micros)) {
      return false;
    }
    AppendJsonString(out_, types::TimestampNtzToString(micros) + (is_local ? "" : "Z"));
    return true;
  }
  bool Float(Place, float value) { return Number(value, JavaFloatToString(value)); }
  bool Double(Place, double value) { return Number(value, JavaDoubleToString(value)); }
  bool Bytes(Place place, std::string_view value) {
    if (place.node->logical != avro::Logical::kDecimal) {
      AppendJsonString(out_, Base64Encode(value));
      return true;
    }
    const auto number = AvroDecimal(value);
    return number && Add(types::DecimalToString(*number, place.node->scale));
  }
  bool Text(Place, std::string_view value) {
    AppendJsonString(out_, value);
    return true;
  }
  bool BeginRecord(Place, const avro::Node&) { return Open('{'); }
  Place Field(Place, const avro::Node& node, std::size_t field) {
    Name(node.fields[field].name);
    return {node.fields[field].type};
  }
  void EndRecord(Place) { out_.push_back('}'); }
  bool BeginList(Place) { return Open('['); }
  Place Item(Place place) {
    Separate();
    return {place.node->children[0]};
  }
  void EndList(Place) { out_.push_back(']'); }
  bool BeginMap(Place) { return Open('{'); }
  Place Entry(Place place, std::string_view key) {
    Name(key);
    return {place.node->children[0]};
  }
  void EndMap(Place) { out_.push_back('}'); }
  Place Branch(Place, const avro::Node& union_node, int branch) {
    return {union_node.children[static_cast<std::size_t>(branch)]};
  }

 private:
  bool Add(std::string_view text) {
    out_ += text;
    return true;
  }
  bool Number(double value, const std::string& text) {
    if (std::isfinite(value)) {
      return Add(text);
    }
    AppendJsonString(out_, text);
    return true;
  }
  bool Open(char bracket) {
    out_.push_back(bracket);
    return true;
  }
  void Separate() {
    if (out_.back() != '{' && out_.back() != '[' && out_.back() != ':') {
      out_.push_back(',');
    }
  }
  void Name(std::string_view name) {
    Separate();
    AppendJsonString(out_, name);
    out_.push_back(':');
  }

  std::string out_;
};

/// Documents have no place for the members of a union.
Result<void> CheckUnions(const avro::Node& node, std::set<const avro::Node*>* seen) {
  if (!seen->insert(&node).second) {
    return {};
  }
  if (node.kind == avro::Kind::kUnion && avro::IsMemberUnion(node) && !node.NonNull().empty()) {
    return Error::Unsupported("Avro files with unions of several types");
  }
  for (const avro::Node* child : node.children) {
    FLEUVE_TRY(CheckUnions(*child, seen));
  }
  for (const avro::Field& field : node.fields) {
    FLEUVE_TRY(CheckUnions(*field.type, seen));
  }
  return {};
}
Result<void> CheckUnions(const avro::Node& node) {
  std::set<const avro::Node*> seen;
  return CheckUnions(node, &seen);
}

Result<std::string> Decompress(const std::string& codec, std::string_view block, const std::string& path) {
  if (codec.empty() || codec == "null") {
    return std::string(block);
  }
  std::string out;
  std::vector<char> buffer(1 << 18);
  if (codec == "deflate") {
    z_stream z;
    std::memset(&z, 0, sizeof(z));
    FLEUVE_CHECK(inflateInit2(&z, -15) == Z_OK);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(block.data()));
    z.avail_in = static_cast<uInt>(block.size());
    int code = Z_OK;
    do {
      z.next_out = reinterpret_cast<Bytef*>(buffer.data());
      z.avail_out = static_cast<uInt>(buffer.size());
      code = inflate(&z, Z_NO_FLUSH);
      out.append(buffer.data(), buffer.size() - z.avail_out);
    } while (code == Z_OK && (z.avail_in > 0 || z.avail_out == 0));
    inflateEnd(&z);
    if (code != Z_STREAM_END && code != Z_OK) {
      return Broken(path, "a block does not inflate");
    }
    return out;
  }
  if (codec == "bzip2") {
    bz_stream bz;
    std::memset(&bz, 0, sizeof(bz));
    FLEUVE_CHECK(BZ2_bzDecompressInit(&bz, 0, 0) == BZ_OK);
    bz.next_in = const_cast<char*>(block.data());
    bz.avail_in = static_cast<unsigned>(block.size());
    int code = BZ_OK;
    do {
      bz.next_out = buffer.data();
      bz.avail_out = static_cast<unsigned>(buffer.size());
      code = BZ2_bzDecompress(&bz);
      out.append(buffer.data(), buffer.size() - bz.avail_out);
    } while (code == BZ_OK && (bz.avail_in > 0 || bz.avail_out == 0));
    BZ2_bzDecompressEnd(&bz);
    if (code != BZ_STREAM_END) {
      return Broken(path, "a block does not decompress");
    }
    return out;
  }
  return Error::Unsupported("Avro files compressed with " + codec + " (" + path + ")");
}

/// Magic, metadata, sync marker.
struct Header {
  std::optional<avro::Schema> schema;
  std::string codec;
  std::string sync;
};

Result<Header> ReadHeader(avro::ByteReader& in, const std::string& path) {
  if (in.Take(4) != std::string_view("Obj\x01", 4)) {
    return Broken(path, "it is no Avro container file");
  }
  Header header;
  std::string schema;
  for (;;) {
    const std::int64_t count = in.BlockCount();
    if (in.failed()) {
      return Broken(path, "its header is cut off");
    }
    if (count == 0) {
      break;
    }
    for (std::int64_t i = 0; i < count && !in.failed(); ++i) {
      const std::string key(in.Bytes());
      const std::string value(in.Bytes());
      if (key == "avro.schema") {
        schema = value;
      } else if (key == "avro.codec") {
        header.codec = value;
      }
    }
  }
  header.sync = std::string(in.Take(16));
  if (in.failed()) {
    return Broken(path, "its header is cut off");
  }
  auto parsed = avro::Schema::Parse(schema);
  if (!parsed.ok()) {
    return Broken(path, "its schema is wrong: " + parsed.error().message());
  }
  header.schema = *std::move(parsed);
  return header;
}

class AvroDocuments final : public DocumentSource {
 public:
  AvroDocuments(std::string bytes, std::string path)
      : bytes_(std::move(bytes)), path_(std::move(path)), file_(bytes_), block_(std::string_view()) {}

  Result<void> Open() {
    FLEUVE_ASSIGN(header_, ReadHeader(file_, path_));
    if (header_.schema->root().kind != avro::Kind::kRecord) {
      return Error::Unsupported("Avro files whose schema is no record");
    }
    FLEUVE_TRY(CheckUnions(header_.schema->root()));
    resolution_ = std::make_unique<avro::Resolution>(*header_.schema, *header_.schema);
    return {};
  }

  Result<bool> Next(std::string_view* json, std::string_view* raw) override {
    while (left_ == 0) {
      if (file_.at_end()) {
        return false;
      }
      left_ = file_.Long();
      const std::string_view block = file_.Bytes();
      if (file_.failed() || left_ < 0 || file_.Take(16) != header_.sync) {
        return Broken(path_, "a block is cut off");
      }
      FLEUVE_ASSIGN(content_, Decompress(header_.codec, block, path_));
      block_ = avro::ByteReader(content_);
    }
    --left_;
    text_.out().clear();
    const avro::Action& action = resolution_->root();
    if (!avro::Decoder<JsonText>(text_).Read(action, block_, {action.reader})) {
      return Broken(path_, "a record does not fit the schema");
    }
    *json = text_.out();
    *raw = text_.out();
    return true;
  }

 private:
  const std::string bytes_;
  const std::string path_;
  avro::ByteReader file_;
  Header header_;
  std::string content_;
  avro::ByteReader block_;
  std::unique_ptr<avro::Resolution> resolution_;
  std::int64_t left_ = 0;
  JsonText text_;
};

}  // namespace

Result<std::unique_ptr<DocumentSource>> OpenAvro(const std::string& path) {
  FLEUVE_ASSIGN(std::string bytes, ReadWholeFile(path));
  auto documents = std::make_unique<AvroDocuments>(std::move(bytes), path);
  FLEUVE_TRY(documents->Open());
  return std::unique_ptr<DocumentSource>(std::move(documents));
}

Result<types::Schema> ReadAvroFileSchema(const std::string& path) {
  FLEUVE_ASSIGN(const std::string bytes, ReadWholeFile(path));
  avro::ByteReader in(bytes);
  FLEUVE_ASSIGN(const Header header, ReadHeader(in, path));
  if (header.schema->root().kind != avro::Kind::kRecord) {
    return Error::Unsupported("Avro files whose schema is no record");
  }
  FLEUVE_ASSIGN(const avro::SparkType type, avro::ToSpark(header.schema->root(), {}));
  FLEUVE_TRY(CheckUnions(header.schema->root()));
  return type.type.AsNullable();
}

}  // namespace fleuve::engine
