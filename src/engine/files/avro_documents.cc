// Avro container files.

#include <bzlib.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "base/bytes.h"
#include "base/json.h"
#include "engine/files/byte_stream_internal.h"
#include "engine/files/containers_internal.h"
#include "engine/infer.h"
#include "types/value.h"

namespace fleuve::engine {

namespace {

using types::DataType;
using types::StructField;

Error Broken(const std::string& path, const char* what) {
  return Error(ErrorKind::kCorrupt, "FAILED_READ_FILE.NO_HINT",
               "the Avro file " + path + " is broken: " + std::string(what));
}

/// A schema node.
struct AvroType {
  enum class Kind {
    kNull,
    kBoolean,
    kInt,
    kLong,
    kFloat,
    kDouble,
    kBytes,
    kString,
    kRecord,
    kEnum,
    kArray,
    kMap,
    kFixed,
    kUnion
  };
  Kind kind = Kind::kNull;
  std::string logical;
  int precision = 0;
  int scale = 0;
  std::int64_t size = 0;
  std::vector<std::string> names;                   ///< of a record's fields, of an enum's symbols
  std::vector<std::shared_ptr<AvroType>> children;  ///< fields, branches, element or value
};
using AvroTypePtr = std::shared_ptr<AvroType>;

class SchemaReader {
 public:
  Result<AvroTypePtr> Read(const Json& json) {
    if (json.is_string()) {
      return Named(json.AsString());
    }
    auto type = std::make_shared<AvroType>();
    if (json.is_array()) {
      type->kind = AvroType::Kind::kUnion;
      for (const Json& branch : json.items()) {
        FLEUVE_ASSIGN(AvroTypePtr child, Read(branch));
        type->children.push_back(std::move(child));
      }
      return type;
    }
    const Json& kind = json["type"];
    if (!kind.is_string()) {
      return Read(kind);
    }
    const std::string& name = kind.AsString();
    if (name == "record" || name == "error") {
      type->kind = AvroType::Kind::kRecord;
      Remember(json, type);
      for (const Json& field : json["fields"].items()) {
        type->names.push_back(field["name"].AsString());
        FLEUVE_ASSIGN(AvroTypePtr child, Read(field["type"]));
        type->children.push_back(std::move(child));
      }
      return type;
    }
    if (name == "enum") {
      type->kind = AvroType::Kind::kEnum;
      Remember(json, type);
      for (const Json& symbol : json["symbols"].items()) {
        type->names.push_back(symbol.AsString());
      }
      return type;
    }
    if (name == "array" || name == "map") {
      type->kind = name == "array" ? AvroType::Kind::kArray : AvroType::Kind::kMap;
      FLEUVE_ASSIGN(AvroTypePtr child, Read(json[name == "array" ? "items" : "values"]));
      type->children.push_back(std::move(child));
      return type;
    }
    if (name == "fixed") {
      type->kind = AvroType::Kind::kFixed;
      type->size = json["size"].AsInt();
      Remember(json, type);
    } else {
      FLEUVE_ASSIGN(AvroTypePtr plain, Named(name));
      *type = *plain;
    }
    type->logical = json["logicalType"].AsString();
    type->precision = static_cast<int>(json["precision"].AsInt());
    type->scale = static_cast<int>(json["scale"].AsInt());
    return type;
  }

 private:
  void Remember(const Json& json, const AvroTypePtr& type) {
    const std::string& name = json["name"].AsString();
    named_[name] = type;
    const std::string& space = json["namespace"].AsString();
    if (!space.empty()) {
      named_[space + "." + name] = type;
    }
  }

  Result<AvroTypePtr> Named(const std::string& name) {
    using Kind = AvroType::Kind;
    static const std::map<std::string, Kind> kPlain = {
        {"null", Kind::kNull},   {"boolean", Kind::kBoolean}, {"int", Kind::kInt},     {"long", Kind::kLong},
        {"float", Kind::kFloat}, {"double", Kind::kDouble},   {"bytes", Kind::kBytes}, {"string", Kind::kString}};
    const auto plain = kPlain.find(name);
    if (plain != kPlain.end()) {
      auto type = std::make_shared<AvroType>();
      type->kind = plain->second;
      return type;
    }
    const auto known = named_.find(name);
    if (known != named_.end()) {
      return known->second;
    }
    const auto tail = named_.find(name.substr(name.rfind('.') + 1));
    if (tail != named_.end()) {
      return tail->second;
    }
    return Error(ErrorKind::kCorrupt, "FAILED_READ_FILE.NO_HINT", "an Avro schema names an unknown type: " + name);
  }

  std::map<std::string, AvroTypePtr> named_;
};

Result<DataType> ToSparkType(const AvroType& type, int depth = 0) {
  using Kind = AvroType::Kind;
  if (depth > 50) {
    return Error::Unsupported("recursive Avro schemas");
  }
  switch (type.kind) {
    case Kind::kNull:
      return DataType::Void();
    case Kind::kBoolean:
      return DataType::Boolean();
    case Kind::kInt:
      return type.logical == "date" ? DataType::Date() : DataType::Int();
    case Kind::kLong:
      if (type.logical == "timestamp-millis" || type.logical == "timestamp-micros") {
        return DataType::Timestamp();
      }
      if (type.logical == "local-timestamp-millis" || type.logical == "local-timestamp-micros") {
        return DataType::TimestampNtz();
      }
      return DataType::Long();
    case Kind::kFloat:
      return DataType::Float();
    case Kind::kDouble:
      return DataType::Double();
    case Kind::kBytes:
    case Kind::kFixed:
      if (type.logical == "decimal" && type.precision > 0) {
        return DataType::Decimal(type.precision, type.scale);
      }
      return DataType::Binary();
    case Kind::kString:
    case Kind::kEnum:
      return DataType::String();
    case Kind::kRecord: {
      std::vector<StructField> fields;
      for (std::size_t i = 0; i < type.names.size(); ++i) {
        FLEUVE_ASSIGN(DataType child, ToSparkType(*type.children[i], depth + 1));
        fields.push_back({type.names[i], std::move(child), true, {}});
      }
      return DataType::Struct(std::move(fields));
    }
    case Kind::kArray: {
      FLEUVE_ASSIGN(DataType child, ToSparkType(*type.children[0], depth + 1));
      return DataType::Array(std::move(child));
    }
    case Kind::kMap: {
      FLEUVE_ASSIGN(DataType child, ToSparkType(*type.children[0], depth + 1));
      return DataType::Map(DataType::String(), std::move(child));
    }
    case Kind::kUnion: {
      std::vector<const AvroType*> real;
      for (const AvroTypePtr& child : type.children) {
        if (child->kind != Kind::kNull) {
          real.push_back(child.get());
        }
      }
      if (real.empty()) {
        return DataType::Void();
      }
      if (real.size() == 1) {
        return ToSparkType(*real[0], depth + 1);
      }
      if (real.size() == 2) {
        const auto is = [&](Kind a, Kind b) {
          return (real[0]->kind == a && real[1]->kind == b) || (real[0]->kind == b && real[1]->kind == a);
        };
        if (is(Kind::kInt, Kind::kLong)) {
          return DataType::Long();
        }
        if (is(Kind::kFloat, Kind::kDouble)) {
          return DataType::Double();
        }
      }
      return Error::Unsupported("Avro unions of several types");
    }
  }
  return Error::Internal("an Avro type of no kind");
}

/// Bytes of a file or block, read from front to back.
class AvroBytes {
 public:
  explicit AvroBytes(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  bool at_end() const { return at_ >= bytes_.size(); }
  std::int64_t Long() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ >= bytes_.size()) {
        failed_ = true;
        return 0;
      }
      const auto byte = static_cast<std::uint8_t>(bytes_[at_++]);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) {
        return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
      }
    }
    failed_ = true;
    return 0;
  }
  std::string_view Take(std::int64_t size) {
    if (size < 0 || static_cast<std::uint64_t>(size) > bytes_.size() - at_) {
      failed_ = true;
      return {};
    }
    const std::string_view out = bytes_.substr(at_, static_cast<std::size_t>(size));
    at_ += static_cast<std::size_t>(size);
    return out;
  }
  std::string_view Bytes() { return Take(Long()); }
  /// How many items the next block of an array or map has; 0 ends it. Only items that take no bytes (nulls) can be more
  /// than the bytes that are left: of these a file could promise without end.
  std::int64_t BlockCount() {
    constexpr std::int64_t kMostEmptyItems = 1 << 20;
    std::int64_t count = Long();
    if (count < 0) {
      Long();  // the block's size in bytes
      count = count == std::numeric_limits<std::int64_t>::min() ? std::numeric_limits<std::int64_t>::max() : -count;
    }
    failed_ = failed_ || count > std::max(kMostEmptyItems, static_cast<std::int64_t>(bytes_.size() - at_));
    return failed_ ? 0 : count;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

/// False where the number has more than 128 bits.
bool AppendDecimal(std::string& out, std::string_view bytes, int scale) {
  const auto is_negative = [](char byte) { return (static_cast<unsigned char>(byte) & 0x80) != 0; };
  const bool negative = !bytes.empty() && is_negative(bytes[0]);
  while (bytes.size() > sizeof(types::Int128) && bytes[0] == (negative ? '\xff' : '\0') &&
         is_negative(bytes[1]) == negative) {
    bytes.remove_prefix(1);
  }
  if (bytes.size() > sizeof(types::Int128)) {
    return false;
  }
  types::Int128 value = negative ? -1 : 0;
  for (const char byte : bytes) {
    value = static_cast<types::Int128>(static_cast<unsigned __int128>(value) << 8) | static_cast<unsigned char>(byte);
  }
  out += types::DecimalToString(value, scale);
  return true;
}

/// Appends the next value as JSON; false where the bytes are broken.
bool AppendValue(const AvroType& type, AvroBytes& in, std::string& out, int depth = 0) {
  using Kind = AvroType::Kind;
  if (depth > 200 || in.failed()) {
    return false;
  }
  const auto blocks = [&](auto item) {
    bool first = true;
    for (;;) {
      const std::int64_t count = in.BlockCount();
      if (in.failed()) {
        return false;
      }
      if (count == 0) {
        return true;
      }
      for (std::int64_t i = 0; i < count; ++i) {
        if (!first) {
          out.push_back(',');
        }
        first = false;
        if (!item()) {
          return false;
        }
      }
    }
  };
  switch (type.kind) {
    case Kind::kNull:
      out += "null";
      break;
    case Kind::kBoolean: {
      const std::string_view byte = in.Take(1);
      out += !byte.empty() && byte[0] != 0 ? "true" : "false";
      break;
    }
    case Kind::kInt:
      out += std::to_string(in.Long());
      break;
    case Kind::kLong: {
      const std::int64_t value = in.Long();
      if (type.logical.starts_with("timestamp-") || type.logical.starts_with("local-timestamp-")) {
        std::int64_t micros = value;
        if (type.logical.ends_with("millis") && __builtin_mul_overflow(value, std::int64_t{1000}, &micros)) {
          return false;
        }
        AppendJsonString(out, types::TimestampNtzToString(micros) + (type.logical[0] == 't' ? "Z" : ""));
      } else {
        out += std::to_string(value);
      }
      break;
    }
    case Kind::kFloat:
    case Kind::kDouble: {
      const std::string_view raw = in.Take(type.kind == Kind::kFloat ? 4 : 8);
      if (in.failed()) {
        return false;
      }
      double value = 0;
      std::string text;
      if (type.kind == Kind::kFloat) {
        float narrow = 0;
        std::memcpy(&narrow, raw.data(), 4);
        value = narrow;
        text = JavaFloatToString(narrow);
      } else {
        std::memcpy(&value, raw.data(), 8);
        text = JavaDoubleToString(value);
      }
      if (std::isfinite(value)) {
        out += text;
      } else {
        AppendJsonString(out, text);
      }
      break;
    }
    case Kind::kBytes:
    case Kind::kFixed: {
      const std::string_view raw = type.kind == Kind::kBytes ? in.Bytes() : in.Take(type.size);
      if (type.logical == "decimal" && type.precision > 0) {
        return !in.failed() && AppendDecimal(out, raw, type.scale);
      } else {
        AppendJsonString(out, Base64Encode(raw));
      }
      break;
    }
    case Kind::kString:
      AppendJsonString(out, in.Bytes());
      break;
    case Kind::kEnum: {
      const std::int64_t symbol = in.Long();
      if (symbol < 0 || symbol >= static_cast<std::int64_t>(type.names.size())) {
        return false;
      }
      AppendJsonString(out, type.names[static_cast<std::size_t>(symbol)]);
      break;
    }
    case Kind::kRecord:
      out.push_back('{');
      for (std::size_t i = 0; i < type.names.size(); ++i) {
        if (i > 0) {
          out.push_back(',');
        }
        AppendJsonString(out, type.names[i]);
        out.push_back(':');
        if (!AppendValue(*type.children[i], in, out, depth + 1)) {
          return false;
        }
      }
      out.push_back('}');
      break;
    case Kind::kArray: {
      out.push_back('[');
      if (!blocks([&] { return AppendValue(*type.children[0], in, out, depth + 1); })) {
        return false;
      }
      out.push_back(']');
      break;
    }
    case Kind::kMap: {
      out.push_back('{');
      const bool good = blocks([&] {
        AppendJsonString(out, in.Bytes());
        out.push_back(':');
        return AppendValue(*type.children[0], in, out, depth + 1);
      });
      if (!good) {
        return false;
      }
      out.push_back('}');
      break;
    }
    case Kind::kUnion: {
      const std::int64_t branch = in.Long();
      if (branch < 0 || branch >= static_cast<std::int64_t>(type.children.size())) {
        return false;
      }
      return AppendValue(*type.children[static_cast<std::size_t>(branch)], in, out, depth + 1);
    }
  }
  return !in.failed();
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
  AvroTypePtr schema;
  std::string codec;
  std::string sync;
};

Result<Header> ReadHeader(AvroBytes& in, const std::string& path) {
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
  auto json = Json::Parse(schema);
  if (in.failed() || !json.ok()) {
    return Broken(path, "its header is cut off");
  }
  SchemaReader reader;
  FLEUVE_ASSIGN(header.schema, reader.Read(*json));
  return header;
}

class AvroDocuments final : public DocumentSource {
 public:
  AvroDocuments(std::string bytes, std::string path)
      : bytes_(std::move(bytes)), path_(std::move(path)), file_(bytes_), block_(std::string_view()) {}

  Result<void> Open() {
    FLEUVE_ASSIGN(header_, ReadHeader(file_, path_));
    if (header_.schema->kind != AvroType::Kind::kRecord) {
      return Error::Unsupported("Avro files whose schema is no record");
    }
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
      block_ = AvroBytes(content_);
    }
    --left_;
    out_.clear();
    if (!AppendValue(*header_.schema, block_, out_)) {
      return Broken(path_, "a record does not fit the schema");
    }
    *json = out_;
    *raw = out_;
    return true;
  }

 private:
  const std::string bytes_;
  const std::string path_;
  AvroBytes file_;
  Header header_;
  std::string content_;
  AvroBytes block_;
  std::int64_t left_ = 0;
  std::string out_;
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
  AvroBytes in(bytes);
  FLEUVE_ASSIGN(const Header header, ReadHeader(in, path));
  FLEUVE_ASSIGN(DataType type, ToSparkType(*header.schema));
  if (!type.Is(types::TypeKind::kStruct)) {
    return Error::Unsupported("Avro files whose schema is no record");
  }
  return type;
}

}  // namespace fleuve::engine
