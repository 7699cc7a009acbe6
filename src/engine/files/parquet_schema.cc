// The schema of a Parquet file, from its footer.

#include <algorithm>
#include <cstring>

#include "engine/files/byte_stream_internal.h"
#include "engine/infer.h"

namespace fleuve::engine {

namespace {

using types::DataType;
using types::StructField;

/// The compact protocol of Thrift, as far as a footer needs it. Reading past the end sets `failed`.
class ThriftReader {
 public:
  explicit ThriftReader(std::string_view bytes) : bytes_(bytes) {}

  bool failed() const { return failed_; }

  std::uint8_t Byte() {
    if (position_ >= bytes_.size()) {
      failed_ = true;
      return 0;
    }
    return static_cast<std::uint8_t>(bytes_[position_++]);
  }
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = Byte();
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
    failed_ = true;
    return 0;
  }
  std::int64_t Integer() {
    const std::uint64_t value = Varint();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::string Text() {
    const std::uint64_t size = Varint();
    if (failed_ || size > bytes_.size() - position_) {
      failed_ = true;
      return {};
    }
    std::string text(bytes_.substr(position_, size));
    position_ += size;
    return text;
  }
  /// The next field of a struct: its id and type; false at the struct's end.
  bool Field(std::int16_t* id, std::uint8_t* type) {
    const std::uint8_t head = Byte();
    if (failed_ || head == 0) {
      return false;
    }
    *type = head & 0x0F;
    const std::uint8_t delta = head >> 4;
    *id = delta != 0 ? static_cast<std::int16_t>(*id + delta) : static_cast<std::int16_t>(Integer());
    return true;
  }
  std::uint64_t ListSize(std::uint8_t* type) {
    const std::uint8_t head = Byte();
    *type = head & 0x0F;
    const std::uint8_t size = head >> 4;
    return size == 15 ? Varint() : size;
  }
  void Skip(std::uint8_t type, int depth = 0) {
    if (failed_ || depth > 32) {
      failed_ = true;
      return;
    }
    switch (type) {
      case 1:
      case 2:
        break;
      case 3:
        Byte();
        break;
      case 4:
      case 5:
      case 6:
        Varint();
        break;
      case 7:
        for (int i = 0; i < 8; ++i) {
          Byte();
        }
        break;
      case 8:
        Text();
        break;
      case 9:
      case 10: {
        std::uint8_t element = 0;
        const std::uint64_t size = ListSize(&element);
        for (std::uint64_t i = 0; i < size && !failed_; ++i) {
          // Booleans in lists take a byte each.
          element == 1 || element == 2 ? static_cast<void>(Byte()) : Skip(element, depth + 1);
        }
        break;
      }
      case 11: {
        const std::uint64_t size = Varint();
        if (size > 0) {
          const std::uint8_t kinds = Byte();
          for (std::uint64_t i = 0; i < size && !failed_; ++i) {
            Skip(kinds >> 4, depth + 1);
            Skip(kinds & 0x0F, depth + 1);
          }
        }
        break;
      }
      case 12: {
        std::int16_t id = 0;
        std::uint8_t field = 0;
        while (Field(&id, &field)) {
          Skip(field, depth + 1);
        }
        break;
      }
      default:
        failed_ = true;
    }
  }

 private:
  std::string_view bytes_;
  std::size_t position_ = 0;
  bool failed_ = false;
};

/// One element of the schema tree, as the footer lists it.
struct Element {
  int physical = -1;
  int type_length = 0;
  int repetition = 0;  ///< 0 required, 1 optional, 2 repeated
  std::string name;
  int children = 0;
  int converted = -1;
  int scale = 0;
  int precision = 0;
  /// Field id of the logical type union; 0: none.
  int logical = 0;
  bool utc = true;
  int unit = 0;  ///< 1 millis, 2 micros, 3 nanos
  int width = 0;
  bool is_signed = true;
};

void ReadLogicalType(ThriftReader& in, Element& element) {
  std::int16_t id = 0;
  std::uint8_t type = 0;
  while (in.Field(&id, &type)) {
    element.logical = id;
    if (type != 12) {
      in.Skip(type);
      continue;
    }
    std::int16_t inner = 0;
    std::uint8_t kind = 0;
    while (in.Field(&inner, &kind)) {
      if (id == 5 && inner == 1) {
        element.scale = static_cast<int>(in.Integer());
      } else if (id == 5 && inner == 2) {
        element.precision = static_cast<int>(in.Integer());
      } else if ((id == 7 || id == 8) && inner == 1) {
        element.utc = kind == 1;
      } else if ((id == 7 || id == 8) && inner == 2 && kind == 12) {
        std::int16_t unit = 0;
        std::uint8_t unit_kind = 0;
        while (in.Field(&unit, &unit_kind)) {
          element.unit = unit;
          in.Skip(unit_kind);
        }
      } else if (id == 10 && inner == 1) {
        element.width = static_cast<std::int8_t>(in.Byte());
      } else if (id == 10 && inner == 2) {
        element.is_signed = kind == 1;
      } else {
        in.Skip(kind);
      }
    }
  }
}

Element ReadElement(ThriftReader& in) {
  Element element;
  std::int16_t id = 0;
  std::uint8_t type = 0;
  while (in.Field(&id, &type)) {
    switch (id) {
      case 1:
        element.physical = static_cast<int>(in.Integer());
        break;
      case 2:
        element.type_length = static_cast<int>(in.Integer());
        break;
      case 3:
        element.repetition = static_cast<int>(in.Integer());
        break;
      case 4:
        element.name = in.Text();
        break;
      case 5:
        element.children = static_cast<int>(in.Integer());
        break;
      case 6:
        element.converted = static_cast<int>(in.Integer());
        break;
      case 7:
        element.scale = static_cast<int>(in.Integer());
        break;
      case 8:
        element.precision = static_cast<int>(in.Integer());
        break;
      case 10:
        ReadLogicalType(in, element);
        break;
      default:
        in.Skip(type);
    }
  }
  return element;
}

Error CannotConvert(const Element& element, const char* what) {
  return Error(ErrorKind::kUnsupported, "_LEGACY_ERROR_TEMP_1172",
               "Parquet type not supported: " + std::string(what) + " (column " + element.name + ").");
}

/// Turns the elements into Spark's types.
class Converter {
 public:
  explicit Converter(const std::vector<Element>& elements) : elements_(elements) {}

  Result<DataType> Root() {
    if (elements_.empty()) {
      return Error::Internal("a Parquet footer without schema");
    }
    next_ = 1;
    return Struct(elements_[0]);
  }

 private:
  Result<DataType> Struct(const Element& group) {
    std::vector<StructField> fields;
    for (int i = 0; i < group.children; ++i) {
      if (next_ >= elements_.size()) {
        return Error(ErrorKind::kCorrupt, "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER", "a schema is cut off");
      }
      const Element& child = elements_[next_];
      FLEUVE_ASSIGN(DataType type, Field());
      fields.push_back({child.name, std::move(type), true, {}});
    }
    return DataType::Struct(std::move(fields));
  }

  /// The element at `next_` with all below it.
  Result<DataType> Field() {
    const Element& element = elements_[next_++];
    FLEUVE_ASSIGN(DataType type, Single(element));
    // A repeated field outside a LIST or MAP group is a list by itself.
    if (element.repetition == 2) {
      return DataType::Array(std::move(type));
    }
    return type;
  }

  Result<DataType> Single(const Element& element) {
    if (element.physical >= 0 || element.children == 0) {
      return Primitive(element);
    }
    const bool is_list = element.logical == 3 || element.converted == 3;
    const bool is_map = element.logical == 2 || element.converted == 1 || element.converted == 2;
    if (is_list && element.children == 1) {
      return List(element);
    }
    if (is_map && element.children == 1) {
      const Element& pairs = elements_[next_++];
      if (pairs.children != 2) {
        return CannotConvert(element, "a map without keys and values");
      }
      FLEUVE_ASSIGN(DataType key, Field());
      FLEUVE_ASSIGN(DataType value, Field());
      return DataType::Map(std::move(key), std::move(value));
    }
    return Struct(element);
  }

  Result<DataType> List(const Element& list) {
    const Element& repeated = elements_[next_];
    const bool element_is_repeated = repeated.children == 0 || repeated.children > 1 || repeated.name == "array" ||
                                     repeated.name == list.name + "_tuple";
    if (element_is_repeated) {
      ++next_;
      FLEUVE_ASSIGN(DataType element, Single(repeated));
      return DataType::Array(std::move(element));
    }
    ++next_;
    FLEUVE_ASSIGN(DataType element, Field());
    return DataType::Array(std::move(element));
  }

  static Result<DataType> Primitive(const Element& e) {
    const bool decimal = e.logical == 5 || e.converted == 5;
    switch (e.physical) {
      case 0:
        return DataType::Boolean();
      case 1:
        if (decimal) {
          return DataType::Decimal(e.precision, e.scale);
        }
        if (e.logical == 6 || e.converted == 6) {
          return DataType::Date();
        }
        if (e.logical == 10 || (e.converted >= 11 && e.converted <= 18)) {
          const int width = e.logical == 10                          ? e.width
                            : e.converted == 11 || e.converted == 15 ? 8
                            : e.converted == 12 || e.converted == 16 ? 16
                                                                     : 32;
          const bool is_signed = e.logical == 10 ? e.is_signed : e.converted >= 15;
          if (width == 8) {
            return is_signed ? DataType::Byte() : DataType::Short();
          }
          if (width == 16) {
            return is_signed ? DataType::Short() : DataType::Int();
          }
          return is_signed ? DataType::Int() : DataType::Long();
        }
        if (e.logical == 7 || e.converted == 7) {
          return CannotConvert(e, "INT32 (TIME_MILLIS)");
        }
        return DataType::Int();
      case 2:
        if (decimal) {
          return DataType::Decimal(e.precision, e.scale);
        }
        if (e.logical == 8) {
          if (e.unit == 3) {
            return CannotConvert(e, "INT64 (TIMESTAMP(NANOS,...))");
          }
          return e.utc ? DataType::Timestamp() : DataType::TimestampNtz();
        }
        if (e.converted == 9 || e.converted == 10) {
          return DataType::Timestamp();
        }
        if (e.logical == 7 || e.converted == 8) {
          return CannotConvert(e, "INT64 (TIME_MICROS)");
        }
        if ((e.logical == 10 && !e.is_signed) || e.converted == 14) {
          return DataType::Decimal(20, 0);
        }
        return DataType::Long();
      case 3:
        return DataType::Timestamp();
      case 4:
        return DataType::Float();
      case 5:
        return DataType::Double();
      case 6:
      case 7:
        if (decimal) {
          return DataType::Decimal(e.precision, e.scale);
        }
        if (e.logical == 1 || e.logical == 4 || e.logical == 12 || e.converted == 0 || e.converted == 4 ||
            e.converted == 19) {
          return DataType::String();
        }
        return DataType::Binary();
      default:
        return CannotConvert(e, "unknown");
    }
  }

  const std::vector<Element>& elements_;
  std::size_t next_ = 0;
};

Error BadFooter(const std::string& path, const std::string& why) {
  return Error(ErrorKind::kCorrupt, "FAILED_READ_FILE.CANNOT_READ_FILE_FOOTER",
               "Encountered error while reading file " + path +
                   ". Could not read footer. Please ensure that the file is in either ORC or Parquet format. (" + why +
                   ")")
      .With("path", path);
}

}  // namespace

Result<types::Schema> ReadParquetSchema(const std::string& path) {
  FILE* in = std::fopen(path.c_str(), "rb");
  if (in == nullptr) {
    return FailedReadFile(path, Error(ErrorKind::kNotFound, "FAILED_READ_FILE.NO_HINT", "no such file"));
  }
  std::string tail(8, '\0');
  std::string footer;
  bool good = std::fseek(in, 0, SEEK_END) == 0;
  const long size = std::ftell(in);
  good = good && size >= 12 && std::fseek(in, size - 8, SEEK_SET) == 0 && std::fread(tail.data(), 1, 8, in) == 8 &&
         std::memcmp(tail.data() + 4, "PAR1", 4) == 0;
  if (good) {
    std::uint32_t length = 0;
    std::memcpy(&length, tail.data(), 4);
    good = static_cast<long>(length) <= size - 12;
    if (good) {
      footer.resize(length);
      good = std::fseek(in, size - 8 - static_cast<long>(length), SEEK_SET) == 0 &&
             std::fread(footer.data(), 1, length, in) == length;
    }
  }
  std::fclose(in);
  if (!good) {
    return BadFooter(path, "it is not a Parquet file");
  }
  ThriftReader reader(footer);
  std::vector<Element> elements;
  std::string spark_schema;
  std::int16_t id = 0;
  std::uint8_t type = 0;
  while (reader.Field(&id, &type)) {
    std::uint8_t element = 0;
    if (id == 2 && type == 9) {
      const std::uint64_t count = reader.ListSize(&element);
      for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
        elements.push_back(ReadElement(reader));
      }
    } else if (id == 5 && type == 9) {
      const std::uint64_t count = reader.ListSize(&element);
      for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
        std::int16_t pair_id = 0;
        std::uint8_t pair_type = 0;
        std::string key;
        std::string value;
        while (reader.Field(&pair_id, &pair_type)) {
          if (pair_id == 1) {
            key = reader.Text();
          } else if (pair_id == 2) {
            value = reader.Text();
          } else {
            reader.Skip(pair_type);
          }
        }
        if (key == "org.apache.spark.sql.parquet.row.metadata") {
          spark_schema = std::move(value);
        }
      }
    } else {
      reader.Skip(type);
    }
  }
  if (reader.failed()) {
    return BadFooter(path, "the footer is broken");
  }
  if (!spark_schema.empty()) {
    if (auto json = Json::Parse(spark_schema); json.ok()) {
      if (auto schema = DataType::FromJson(*json); schema.ok() && schema->Is(types::TypeKind::kStruct)) {
        return schema->AsNullable();
      }
    }
  }
  return Converter(elements).Root();
}

}  // namespace fleuve::engine
