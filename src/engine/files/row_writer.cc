// Writing JSON lines, CSV and text files.

#include <bzlib.h>
#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cmath>
#include <cstring>

#include "base/json.h"
#include "duckdb/common/types/decimal.hpp"
#include "engine/carriers_internal.h"
#include "engine/files/file_functions_internal.h"
#include "engine/files/format_options_internal.h"
#include "engine/raise_internal.h"

namespace fleuve::engine {

namespace {

using duckdb::idx_t;
using types::TypeKind;

constexpr std::size_t kBlock = 1 << 18;

Error WriteError(const std::string& path, int code) {
  const ErrorKind kind = code == ENOSPC || code == EDQUOT  ? ErrorKind::kResourceExhausted
                         : code == EACCES || code == EROFS ? ErrorKind::kPermissionDenied
                                                           : ErrorKind::kTransient;
  return Error(kind, "TASK_WRITE_FAILED", "Task failed while writing rows to " + path + ": " + std::strerror(code));
}

/// A new file, compressed or not. Raises.
class OutputFile {
 public:
  OutputFile(std::string path, const std::string& compression) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd_ < 0) {
      RaiseError(WriteError(path_, errno));
    }
    out_.resize(kBlock);
    if (compression == "gzip" || compression == "deflate") {
      std::memset(&z_, 0, sizeof(z_));
      FLEUVE_CHECK(deflateInit2(&z_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, compression == "gzip" ? 15 + 16 : 15, 8,
                                Z_DEFAULT_STRATEGY) == Z_OK);
      kind_ = Kind::kZlib;
    } else if (compression == "bzip2") {
      std::memset(&bz_, 0, sizeof(bz_));
      FLEUVE_CHECK(BZ2_bzCompressInit(&bz_, 9, 0, 0) == BZ_OK);
      kind_ = Kind::kBzip2;
    }
  }
  ~OutputFile() {
    if (kind_ == Kind::kZlib) {
      deflateEnd(&z_);
    } else if (kind_ == Kind::kBzip2) {
      BZ2_bzCompressEnd(&bz_);
    }
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(std::string_view text, bool finish) {
    switch (kind_) {
      case Kind::kPlain:
        Put(text.data(), text.size());
        break;
      case Kind::kZlib:
        z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
        z_.avail_in = static_cast<uInt>(text.size());
        for (;;) {
          z_.next_out = reinterpret_cast<Bytef*>(out_.data());
          z_.avail_out = static_cast<uInt>(out_.size());
          const int code = deflate(&z_, finish ? Z_FINISH : Z_NO_FLUSH);
          Put(out_.data(), out_.size() - z_.avail_out);
          if (finish ? code == Z_STREAM_END : z_.avail_in == 0 && z_.avail_out != 0) {
            break;
          }
        }
        break;
      case Kind::kBzip2:
        bz_.next_in = const_cast<char*>(text.data());
        bz_.avail_in = static_cast<unsigned>(text.size());
        for (;;) {
          if (!finish && bz_.avail_in == 0) {
            break;
          }
          bz_.next_out = out_.data();
          bz_.avail_out = static_cast<unsigned>(out_.size());
          const int code = BZ2_bzCompress(&bz_, finish ? BZ_FINISH : BZ_RUN);
          Put(out_.data(), out_.size() - bz_.avail_out);
          if (finish && code == BZ_STREAM_END) {
            break;
          }
        }
        break;
    }
  }

  std::int64_t bytes() const { return bytes_; }

  void Close() {
    const int code = ::close(fd_);
    fd_ = -1;
    if (code != 0) {
      RaiseError(WriteError(path_, errno));
    }
  }

 private:
  void Put(const char* data, std::size_t size) {
    while (size > 0) {
      const ssize_t put = ::write(fd_, data, size);
      if (put < 0) {
        if (errno == EINTR) {
          continue;
        }
        RaiseError(WriteError(path_, errno));
      }
      data += put;
      size -= static_cast<std::size_t>(put);
      bytes_ += put;
    }
  }

  enum class Kind { kPlain, kZlib, kBzip2 };
  const std::string path_;
  int fd_ = -1;
  Kind kind_ = Kind::kPlain;
  std::vector<char> out_;
  z_stream z_;
  bz_stream bz_;
  std::int64_t bytes_ = 0;
};

/// A vector with the means to read one row of it.
struct Column {
  duckdb::UnifiedVectorFormat format;
  std::vector<Column> children;
};

void Prepare(duckdb::Vector& vector, idx_t count, Column& column) {
  vector.ToUnifiedFormat(count, column.format);
  const auto id = vector.GetType().id();
  column.children.clear();
  if (id == duckdb::LogicalTypeId::STRUCT) {
    // Children follow the struct's own rows once it is flat.
    vector.Flatten(count);
    vector.ToUnifiedFormat(count, column.format);
    auto& entries = duckdb::StructVector::GetEntries(vector);
    column.children.resize(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i) {
      Prepare(*entries[i], count, column.children[i]);
    }
  } else if (id == duckdb::LogicalTypeId::LIST) {
    column.children.resize(1);
    Prepare(duckdb::ListVector::GetEntry(vector), duckdb::ListVector::GetListSize(vector), column.children[0]);
  } else if (id == duckdb::LogicalTypeId::MAP) {
    const idx_t size = duckdb::ListVector::GetListSize(vector);
    column.children.resize(2);
    duckdb::ListVector::GetEntry(vector).Flatten(size);
    Prepare(duckdb::MapVector::GetKeys(vector), size, column.children[0]);
    Prepare(duckdb::MapVector::GetValues(vector), size, column.children[1]);
  }
}

template <typename T>
T At(const Column& column, idx_t row) {
  return duckdb::UnifiedVectorFormat::GetData<T>(column.format)[column.format.sel->get_index(row)];
}

bool IsNull(const Column& column, idx_t row) {
  return !column.format.validity.RowIsValid(column.format.sel->get_index(row));
}

std::string_view Text(const duckdb::string_t& text) { return {text.GetData(), text.GetSize()}; }

types::Int128 DecimalAt(const Column& column, idx_t row, int precision) {
  if (precision <= 4) {
    return At<std::int16_t>(column, row);
  }
  if (precision <= 9) {
    return At<std::int32_t>(column, row);
  }
  if (precision <= 18) {
    return At<std::int64_t>(column, row);
  }
  return ToInt128(At<duckdb::hugeint_t>(column, row));
}

/// Java's BigDecimal.toString of a value with a scale.
std::string BigDecimalText(types::Int128 unscaled, int scale) {
  if (scale <= 6 || unscaled == 0) {
    if (unscaled == 0 && scale > 6) {
      return "0E-" + std::to_string(scale);
    }
    return types::DecimalToString(unscaled, scale);
  }
  types::Int128 magnitude = unscaled < 0 ? -unscaled : unscaled;
  std::string digits;
  while (magnitude > 0) {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(magnitude % 10)));
    magnitude /= 10;
  }
  const int exponent = static_cast<int>(digits.size()) - 1 - scale;
  if (exponent >= -6) {
    return types::DecimalToString(unscaled, scale);
  }
  std::string out = unscaled < 0 ? "-" : "";
  out += digits[0];
  if (digits.size() > 1) {
    out += "." + digits.substr(1);
  }
  return out + "E" + std::to_string(exponent);
}

void AppendBase64(std::string& out, std::string_view bytes) {
  constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t k) {
      return k < bytes.size() ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[k])) : 0U;
    };
    const std::uint32_t bits = (at(i) << 16) | (at(i + 1) << 8) | at(i + 2);
    out.push_back(kLetters[bits >> 18]);
    out.push_back(kLetters[(bits >> 12) & 63]);
    out.push_back(i + 1 < bytes.size() ? kLetters[(bits >> 6) & 63] : '=');
    out.push_back(i + 2 < bytes.size() ? kLetters[bits & 63] : '=');
  }
}

/// JSON text with everything outside ASCII as \uXXXX.
void AppendAsciiJson(std::string& out, std::string_view text) {
  std::string quoted;
  AppendJsonString(quoted, text);
  for (std::size_t i = 0; i < quoted.size();) {
    const auto byte = static_cast<unsigned char>(quoted[i]);
    if (byte < 0x80) {
      out.push_back(quoted[i++]);
      continue;
    }
    const std::size_t length = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
    std::uint32_t code = byte & (0xFF >> (length + 1));
    for (std::size_t k = 1; k < length && i + k < quoted.size(); ++k) {
      code = (code << 6) | (static_cast<unsigned char>(quoted[i + k]) & 0x3F);
    }
    i += length;
    char unit[16];
    if (code >= 0x10000) {
      code -= 0x10000;
      std::snprintf(unit, sizeof(unit), "\\u%04X\\u%04X", 0xD800 + (code >> 10), 0xDC00 + (code & 0x3FF));
    } else {
      std::snprintf(unit, sizeof(unit), "\\u%04X", code);
    }
    out += unit;
  }
}

Error UnsupportedType(const char* format, const std::string& column, const types::DataType& type) {
  return Error(ErrorKind::kUnsupported, "UNSUPPORTED_DATA_TYPE_FOR_DATASOURCE",
               std::string("The ") + format + " datasource doesn't support the column `" + column + "` of the type \"" +
                   type.Sql() + "\".");
}

class TextFileWriter final : public RowFileWriter {
 public:
  TextFileWriter(const WriteSpec& spec, const types::Schema& schema, const std::string& path)
      : format_(spec.format),
        options_(ValueOrRaise(MakeTextWriteOptions(spec.format, spec.options, spec.compression, spec.session_zone))),
        schema_(schema),
        file_(path, options_.compression) {
    if (format_ == plan::FileFormat::kText && (schema.fields().size() != 1 || !schema.fields()[0].type.IsString())) {
      RaiseError(Error(ErrorKind::kInvalidArgument, "_LEGACY_ERROR_TEMP_1290",
                       "Text data source supports only a single column of strings."));
    }
    if (format_ == plan::FileFormat::kCsv && options_.header) {
      bool first = true;
      for (const types::StructField& field : schema_.fields()) {
        if (!first) {
          buffer_ += options_.delimiter;
        }
        first = false;
        AppendCsvText(field.name, false);
      }
      buffer_ += options_.line_separator;
    }
  }

  void Write(duckdb::DataChunk& rows) override {
    columns_.resize(rows.ColumnCount());
    for (idx_t i = 0; i < rows.ColumnCount(); ++i) {
      Prepare(rows.data[i], rows.size(), columns_[i]);
    }
    for (idx_t row = 0; row < rows.size(); ++row) {
      switch (format_) {
        case plan::FileFormat::kJson:
          AppendJsonStruct(schema_, columns_, row);
          break;
        case plan::FileFormat::kCsv:
          AppendCsvRow(row);
          break;
        default:
          if (!IsNull(columns_[0], row)) {
            buffer_ += Text(At<duckdb::string_t>(columns_[0], row));
          }
          break;
      }
      buffer_ += options_.line_separator;
      if (buffer_.size() >= kBlock) {
        file_.Write(buffer_, false);
        buffer_.clear();
      }
    }
  }

  std::int64_t bytes() const override { return file_.bytes() + static_cast<std::int64_t>(buffer_.size()); }

  std::int64_t Finish() override {
    file_.Write(buffer_, true);
    buffer_.clear();
    file_.Close();
    return file_.bytes();
  }

 private:
  void AppendJsonStruct(const types::DataType& type, const std::vector<Column>& columns, idx_t row) {
    buffer_.push_back('{');
    bool first = true;
    const auto& fields = type.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const bool null = fields[i].type.Is(TypeKind::kVoid) || IsNull(columns[i], row);
      if (null && options_.ignore_null_fields) {
        continue;
      }
      if (!first) {
        buffer_.push_back(',');
      }
      first = false;
      AppendText(fields[i].name);
      buffer_.push_back(':');
      if (null) {
        buffer_ += "null";
      } else {
        AppendJson(fields[i].type, columns[i], row, fields[i].name);
      }
    }
    buffer_.push_back('}');
  }

  void AppendText(std::string_view text) {
    if (options_.escape_non_ascii) {
      AppendAsciiJson(buffer_, text);
    } else {
      AppendJsonString(buffer_, text);
    }
  }

  void AppendQuoted(const std::string& text) {
    buffer_.push_back('"');
    buffer_ += text;
    buffer_.push_back('"');
  }

  void AppendJson(const types::DataType& type, const Column& column, idx_t row, const std::string& name) {
    switch (type.kind()) {
      case TypeKind::kBoolean:
        buffer_ += At<bool>(column, row) ? "true" : "false";
        break;
      case TypeKind::kByte:
        buffer_ += std::to_string(At<std::int8_t>(column, row));
        break;
      case TypeKind::kShort:
        buffer_ += std::to_string(At<std::int16_t>(column, row));
        break;
      case TypeKind::kInt:
        buffer_ += std::to_string(At<std::int32_t>(column, row));
        break;
      case TypeKind::kLong:
        buffer_ += std::to_string(At<std::int64_t>(column, row));
        break;
      case TypeKind::kFloat: {
        const float value = At<float>(column, row);
        const std::string text = JavaFloatToString(value);
        std::isfinite(value) ? void(buffer_ += text) : AppendQuoted(text);
        break;
      }
      case TypeKind::kDouble: {
        const double value = At<double>(column, row);
        const std::string text = JavaDoubleToString(value);
        std::isfinite(value) ? void(buffer_ += text) : AppendQuoted(text);
        break;
      }
      case TypeKind::kDecimal:
        buffer_ += BigDecimalText(DecimalAt(column, row, type.precision()), type.scale());
        break;
      case TypeKind::kString:
      case TypeKind::kChar:
      case TypeKind::kVarchar:
        AppendText(Text(At<duckdb::string_t>(column, row)));
        break;
      case TypeKind::kBinary:
        buffer_.push_back('"');
        AppendBase64(buffer_, Text(At<duckdb::string_t>(column, row)));
        buffer_.push_back('"');
        break;
      case TypeKind::kDate: {
        std::string text;
        options_.times.FormatDate(At<duckdb::date_t>(column, row).days, text);
        AppendText(text);
        break;
      }
      case TypeKind::kTimestamp: {
        std::string text;
        options_.times.FormatTimestamp(At<duckdb::timestamp_t>(column, row).value, text);
        AppendText(text);
        break;
      }
      case TypeKind::kTimestampNtz: {
        std::string text;
        options_.times.FormatTimestampNtz(At<duckdb::timestamp_t>(column, row).value, text);
        AppendText(text);
        break;
      }
      case TypeKind::kArray: {
        const auto entry = At<duckdb::list_entry_t>(column, row);
        buffer_.push_back('[');
        for (idx_t i = 0; i < entry.length; ++i) {
          if (i > 0) {
            buffer_.push_back(',');
          }
          if (type.element().Is(TypeKind::kVoid) || IsNull(column.children[0], entry.offset + i)) {
            buffer_ += "null";
          } else {
            AppendJson(type.element(), column.children[0], entry.offset + i, name);
          }
        }
        buffer_.push_back(']');
        break;
      }
      case TypeKind::kMap: {
        const auto entry = At<duckdb::list_entry_t>(column, row);
        buffer_.push_back('{');
        for (idx_t i = 0; i < entry.length; ++i) {
          if (i > 0) {
            buffer_.push_back(',');
          }
          AppendMapKey(type.key(), column.children[0], entry.offset + i, name);
          buffer_.push_back(':');
          if (type.value().Is(TypeKind::kVoid) || IsNull(column.children[1], entry.offset + i)) {
            buffer_ += "null";
          } else {
            AppendJson(type.value(), column.children[1], entry.offset + i, name);
          }
        }
        buffer_.push_back('}');
        break;
      }
      case TypeKind::kStruct:
        AppendJsonStruct(type, column.children, row);
        break;
      default:
        RaiseError(UnsupportedType("JSON", name, type));
    }
  }

  void AppendMapKey(const types::DataType& type, const Column& column, idx_t row, const std::string& name) {
    if (type.IsString()) {
      AppendText(Text(At<duckdb::string_t>(column, row)));
      return;
    }
    const std::size_t before = buffer_.size();
    if (type.IsDateTime()) {
      // Spark prints the number behind a key that is a date or a time.
      buffer_ += "\"" +
                 (type.Is(TypeKind::kDate) ? std::to_string(At<duckdb::date_t>(column, row).days)
                                           : std::to_string(At<duckdb::timestamp_t>(column, row).value)) +
                 "\"";
      return;
    }
    AppendJson(type, column, row, name);
    if (buffer_[before] != '"') {
      buffer_.insert(before, "\"");
      buffer_.push_back('"');
    }
  }

  void AppendCsvRow(idx_t row) {
    const auto& fields = schema_.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (i > 0) {
        buffer_ += options_.delimiter;
      }
      const types::DataType& type = fields[i].type;
      const Column& column = columns_[i];
      if (type.Is(TypeKind::kVoid) || IsNull(column, row)) {
        AppendCsvText(options_.null_value, true);
        continue;
      }
      switch (type.kind()) {
        case TypeKind::kBoolean:
          AppendCsvText(At<bool>(column, row) ? "true" : "false", true);
          break;
        case TypeKind::kByte:
          AppendCsvText(std::to_string(At<std::int8_t>(column, row)), true);
          break;
        case TypeKind::kShort:
          AppendCsvText(std::to_string(At<std::int16_t>(column, row)), true);
          break;
        case TypeKind::kInt:
          AppendCsvText(std::to_string(At<std::int32_t>(column, row)), true);
          break;
        case TypeKind::kLong:
          AppendCsvText(std::to_string(At<std::int64_t>(column, row)), true);
          break;
        case TypeKind::kFloat:
          AppendCsvText(JavaFloatToString(At<float>(column, row)), true);
          break;
        case TypeKind::kDouble:
          AppendCsvText(JavaDoubleToString(At<double>(column, row)), true);
          break;
        case TypeKind::kDecimal:
          AppendCsvText(BigDecimalText(DecimalAt(column, row, type.precision()), type.scale()), true);
          break;
        case TypeKind::kString:
        case TypeKind::kChar:
        case TypeKind::kVarchar:
          AppendCsvText(Text(At<duckdb::string_t>(column, row)), false);
          break;
        case TypeKind::kDate: {
          text_.clear();
          options_.times.FormatDate(At<duckdb::date_t>(column, row).days, text_);
          AppendCsvText(text_, false);
          break;
        }
        case TypeKind::kTimestamp: {
          text_.clear();
          options_.times.FormatTimestamp(At<duckdb::timestamp_t>(column, row).value, text_);
          AppendCsvText(text_, false);
          break;
        }
        case TypeKind::kTimestampNtz: {
          text_.clear();
          options_.times.FormatTimestampNtz(At<duckdb::timestamp_t>(column, row).value, text_);
          AppendCsvText(text_, false);
          break;
        }
        default:
          RaiseError(UnsupportedType("CSV", fields[i].name, type));
      }
    }
  }

  /// \param is_plain  a number or a null value: an empty one is no empty text
  void AppendCsvText(std::string_view text, bool is_plain) {
    if (options_.trim_leading) {
      while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') {
        text.remove_prefix(1);
      }
    }
    if (options_.trim_trailing) {
      while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') {
        text.remove_suffix(1);
      }
    }
    if (text.empty()) {
      if (!is_plain) {
        buffer_ += options_.empty_value;
      } else if (options_.quote_all) {
        buffer_.push_back(options_.quote);
        buffer_.push_back(options_.quote);
      }
      return;
    }
    const bool has_quote = options_.quote != '\0' && text.find(options_.quote) != std::string_view::npos;
    bool quoted = options_.quote_all || text.find(options_.delimiter) != std::string_view::npos ||
                  text.find('\n') != std::string_view::npos || text.find('\r') != std::string_view::npos ||
                  (has_quote && options_.escape_quotes) || text.front() == options_.quote;
    quoted = quoted && options_.quote != '\0';
    if (!quoted) {
      buffer_ += text;
      return;
    }
    buffer_.push_back(options_.quote);
    for (const char c : text) {
      if (c == options_.quote) {
        buffer_.push_back(options_.escape);
      } else if (c == options_.escape && options_.escape_escape != '\0') {
        buffer_.push_back(options_.escape_escape);
      }
      buffer_.push_back(c);
    }
    buffer_.push_back(options_.quote);
  }

  const plan::FileFormat format_;
  const TextWriteOptions options_;
  const types::Schema schema_;
  OutputFile file_;
  std::string buffer_;
  std::string text_;
  std::vector<Column> columns_;
};

}  // namespace

std::unique_ptr<RowFileWriter> MakeRowFileWriter(const WriteSpec& spec, const types::Schema& schema,
                                                 const std::string& path) {
  return std::make_unique<TextFileWriter>(spec, schema, path);
}

std::string RowFileExtension(const WriteSpec& spec) {
  const TextWriteOptions options =
      ValueOrRaise(MakeTextWriteOptions(spec.format, spec.options, spec.compression, spec.session_zone));
  std::string out = spec.format == plan::FileFormat::kJson  ? ".json"
                    : spec.format == plan::FileFormat::kCsv ? ".csv"
                                                            : ".txt";
  if (options.compression == "gzip") {
    out += ".gz";
  } else if (options.compression == "bzip2") {
    out += ".bz2";
  } else if (options.compression == "deflate") {
    out += ".deflate";
  }
  return out;
}

}  // namespace fleuve::engine
